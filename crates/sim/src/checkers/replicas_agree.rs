//! Replicas agree: all who run a transaction do the same, and those who run it are its active participants.
//!
//! Every active participant has all reads and runs all of the logic (Calvin §3.2 phase 5, CAL-57). So for each position of
//! the log:
//!
//! - it was run by each active participant once and by nobody else; passive ones run nothing (CAL-52, CAL-55). At the end of
//!   a run that did not finish, participants may be missing;
//! - all runs have the verdict and the reads of each other (CAL-04, equal state at equal positions);
//! - each wrote keys that it holds, and only those (CAL-57).
//!
//! Nothing was run that the log does not have, and a snapshot runs nothing.
//!
//! And the replicas of a partition, in all their lives, have the same log, did the same at each position, and have the same rows
//! in the end (CAL-04, CAL-31). The world compares them as they tell: see [`History::disagreements`].
//!
//! [`History::disagreements`]: crate::history::History::disagreements

use std::collections::BTreeSet;

use bytes::Bytes;
use ordain_db::data::Owner;
use ordain_db::execution::trace::Version;
use ordain_db::execution::{Call, Executed};
use ordain_db::message::{Delivered, Ordered, Verdict};
use ordain_db::position::{PartitionId, PartitionSet, Position};
use ordain_db::procedure::Footprint;

use super::Findings;
use super::evidence::{Difference, Evidence, Seen, first_difference};
use super::wording;

/// Checks the property.
///
/// # Errors
/// With the first position at which it does not hold, and what differs there.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let history = evidence.history;
    let mut checker = Checker { evidence, findings: Findings::default(), spare: Vec::new() };
    for disagreement in &history.disagreements {
        checker.findings.note(|| disagreement.clone());
    }
    let positions: BTreeSet<Position> = history.log.keys().chain(history.executed.keys()).copied().collect();
    for position in positions {
        let runs = history.executed.get(&position).map_or(&[][..], Vec::as_slice);
        match history.log.get(&position) {
            Some(ordered) => checker.check(position, ordered, runs),
            None => checker.not_in_log(position, runs),
        }
    }
    checker.findings.finish()
}

/// Runs with the partitions at which they were.
type Runs<'a> = &'a [(PartitionId, Executed)];

struct Checker<'e, 'a> {
    evidence: &'e Evidence<'a>,
    findings: Findings,
    /// Footprints whose buffers can be filled again.
    #[allow(clippy::vec_box, reason = "as the database keeps them")]
    spare: Vec<Box<Footprint>>,
}

impl Checker<'_, '_> {
    fn not_in_log(&mut self, position: Position, runs: Runs<'_>) {
        if let Some((partition, run)) = runs.first() {
            let request = wording::request(run.request);
            self.findings
                .note(|| format!("{position}: {partition} ran {request}, but the log has nothing there"));
        }
    }

    fn check(&mut self, position: Position, ordered: &Ordered, runs: Runs<'_>) {
        match self.active(position, ordered) {
            Ok(active) => self.compare_partitions(position, &active, runs),
            Err(problem) => self.findings.note(|| format!("{position}: {problem}")),
        }
        for (partition, run) in runs {
            let (logged, ran) = (ordered.request, run.request);
            self.findings.require(run.position == position && logged == ran, || {
                format!(
                    "{position}: the log has {}, but {partition} ran {} as {}",
                    wording::request(logged),
                    wording::request(ran),
                    run.position,
                )
            });
            self.check_writes(position, *partition, run);
        }
        if let Some((first, rest)) = runs.split_first() {
            rest.iter().for_each(|other| self.compare_runs(position, first, other));
        }
    }

    /// The active participants of what the log has at a position.
    fn active(&mut self, position: Position, ordered: &Ordered) -> Result<PartitionSet, String> {
        let partitions = self.evidence.history.partitions;
        if position.origin.0 >= partitions {
            return Err(format!("there is no {} in the cluster", position.origin));
        }
        let delivered = Delivered { position, ordered: ordered.clone(), footprint: None };
        let catalog = self.evidence.workload.catalog();
        let call = Call::of(delivered, &mut self.spare, catalog, partitions);
        let call = call.map_err(|fatal| fatal.to_string())?;
        let Some(Call { footprint, .. }) = call else { return Ok(PartitionSet::EMPTY) };
        let active = footprint.active(position.origin);
        self.spare.push(footprint);
        Ok(active)
    }

    fn compare_partitions(&mut self, position: Position, active: &PartitionSet, runs: Runs<'_>) {
        let mut ran = BTreeSet::new();
        for (partition, _) in runs {
            let known = partition.0 < self.evidence.history.partitions;
            self.findings.require(known && active.contains(*partition), || {
                format!("{position}: {partition} ran it, but is not among the active participants {active:?}")
            });
            self.findings.require(ran.insert(*partition), || format!("{position}: {partition} ran it twice"));
        }
        if self.evidence.finished()
            && let Some(missing) = active.iter().find(|partition| !ran.contains(partition))
        {
            self.findings
                .note(|| format!("{position}: {missing} did not run it, but is an active participant"));
        }
    }

    fn check_writes(&mut self, position: Position, partition: PartitionId, run: &Executed) {
        let (schema, partitions) = (self.evidence.schema(), self.evidence.history.partitions);
        let foreign = run.writes.iter().find(|(key, _)| {
            let owner = schema.owner(key, partitions);
            !matches!(owner, Ok(owner) if owner != Owner::Split && owner.includes(partition))
        });
        if let Some((key, _)) = foreign {
            let key = wording::key(schema, key);
            self.findings.note(|| format!("{position}: {partition} wrote {key}, which it does not hold"));
        }
    }

    fn compare_runs(
        &mut self,
        position: Position,
        (first, left): &(PartitionId, Executed),
        (other, right): &(PartitionId, Executed),
    ) {
        self.findings.require(agree(left, right), || {
            let (left, right) = (wording::verdict(&left.verdict), wording::verdict(&right.verdict));
            format!("{position}: at {first} it {left}, at {other} it {right}")
        });
        let (of_left, of_right) = (told_of(&left.reads, right), told_of(&right.reads, left));
        if of_left == of_right {
            return;
        }
        let schema = self.evidence.schema();
        self.findings.note(|| match reads_difference(&of_left, &of_right) {
            Some((key, left, right)) => format!(
                "{position}: {first} and {other} read different rows of {}: {} and {}",
                wording::key(schema, key),
                wording::read(schema, key, left),
                wording::read(schema, key, right),
            ),
            None => format!("{position}: {first} and {other} read the same rows in different order"),
        });
    }
}

/// Whether two runs of one call ended alike, as far as both tell.
pub(crate) fn agree(left: &Executed, right: &Executed) -> bool {
    let committed = |run: &Executed| matches!(run.verdict, Verdict::Committed(_));
    if left.scope.has_result() && right.scope.has_result() {
        return left.verdict == right.verdict;
    }
    committed(left) == committed(right)
}

/// Those of a run's reads that another run of the same call tells of, too.
pub(crate) fn told_of(reads: &[Version], other: &Executed) -> Vec<Version> {
    let is_told =
        |(key, _): &&Version| other.scope.has_all_reads() || other.reads.iter().any(|(told, _)| told == key);
    reads.iter().filter(is_told).cloned().collect()
}

/// The lowest key of which two runs read different rows.
pub(crate) fn reads_difference<'v>(left: &'v [Version], right: &'v [Version]) -> Option<Difference<'v>> {
    let sorted = |reads: &'v [Version]| {
        let mut reads: Vec<Seen<'v>> =
            reads.iter().map(|(key, row)| (&key[..], row.as_ref().map(Bytes::as_ref))).collect();
        reads.sort_unstable();
        reads.into_iter()
    };
    first_difference(sorted(left), sorted(right))
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind;
    use ordain_db::failpoint::NoFailpoints;
    use ordain_db::message::Work;

    use super::*;
    use crate::checkers::example::{self, bank};
    use crate::history::History;

    fn found(history: &History) -> Result<(), String> {
        check(&Evidence::new(history, &bank()).unwrap())
    }

    /// A history of two partitions, and the position of a transfer between them that committed.
    fn history() -> (History, Position) {
        let history = example::run::<NoFailpoints>(EngineKind::Calvin, 2, 30);
        assert_eq!(found(&history), Ok(()));
        let position = example::position_between_partitions(&history);
        (history, position)
    }

    fn broken(change: impl FnOnce(&mut Vec<(PartitionId, Executed)>)) -> String {
        let (mut history, position) = history();
        change(history.executed.get_mut(&position).unwrap());
        let problem = found(&history).unwrap_err();
        assert!(problem.starts_with(&format!("{position}: ")), "{problem}");
        problem
    }

    #[test]
    fn verdicts_and_reads_are_compared() {
        let problem = broken(|runs| runs[1].1.verdict = Verdict::FootprintMissed);
        assert!(problem.contains(": at p0 it committed with result 0x"), "{problem}");
        assert!(problem.contains(", at p1 it missed its footprint"), "{problem}");
        let problem = broken(|runs| runs[1].1.reads[0].1 = None);
        assert!(problem.contains("p0 and p1 read different rows of accounts (0, "), "{problem}");
        assert!(problem.contains("] and no row"), "{problem}");
        let problem = broken(|runs| {
            runs[1].1.reads.pop();
        });
        assert!(problem.contains("and it was not read"), "{problem}");
        let problem = broken(|runs| runs[1].1.reads.reverse());
        assert!(problem.contains("in different order"), "{problem}");
    }

    #[test]
    fn who_runs_is_compared_with_the_footprint() {
        let problem = broken(|runs| {
            runs.remove(1);
        });
        assert!(problem.contains("p1 did not run it, but is an active participant"), "{problem}");
        let problem = broken(|runs| runs.push(runs[1].clone()));
        assert!(problem.contains("p1 ran it twice"), "{problem}");
        let problem = broken(|runs| runs[1].0 = PartitionId(7));
        assert!(problem.contains("p7 ran it, but is not among the active participants {0, 1}"), "{problem}");
        let problem = broken(|runs| runs[1].1.request.sequence += 100);
        assert!(problem.contains(": the log has c"), "{problem}");
        let problem = broken(|runs| runs[0].1.writes = runs[1].1.writes.clone());
        assert!(problem.contains("p0 wrote accounts (1, "), "{problem}");
        assert!(problem.contains("which it does not hold"), "{problem}");
    }

    #[test]
    fn a_run_that_did_not_finish_may_lack_participants() {
        let (mut history, position) = history();
        history.executed.get_mut(&position).unwrap().remove(1);
        history.unfinished = Some("stopped".to_owned());
        assert_eq!(found(&history), Ok(()));
    }

    #[test]
    fn what_was_run_is_in_the_log() {
        let (mut history, position) = history();
        history.log.remove(&position);
        let problem = found(&history).unwrap_err();
        assert!(problem.starts_with(&format!("{position}: p0 ran c")), "{problem}");
        assert!(problem.ends_with("but the log has nothing there"), "{problem}");
        let (mut history, position) = self::history();
        let (at, _) =
            history.log.iter().find(|(_, ordered)| matches!(ordered.work, Work::OpenSnapshot(_))).unwrap();
        let runs = history.executed[&position].clone();
        history.executed.insert(*at, runs);
        assert!(found(&history).unwrap_err().contains("not among the active participants {}"));
    }

    #[test]
    fn a_log_that_cannot_be_is_told() {
        let (mut history, position) = history();
        let ordered = history.log.remove(&position).unwrap();
        history.log.insert(Position { origin: PartitionId(900), ..position }, ordered.clone());
        assert!(found(&history).is_err());
        let (mut history, _) = self::history();
        let mut strange = ordered;
        if let Work::Call { arguments, .. } = &mut strange.work {
            *arguments = Bytes::from_static(&[0xFF]);
        }
        history.log.insert(position, strange);
        let problem = found(&history).unwrap_err();
        assert!(problem.contains("cannot be executed here"), "{problem}");
    }
}
