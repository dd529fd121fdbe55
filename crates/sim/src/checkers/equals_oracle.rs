//! The cluster equals the oracle: what it did is what the log prescribes, executed serially.
//!
//! With `S(n)` for the state after the first n transactions of the log, from the loaded rows on, as the
//! [`oracle`](crate::oracle) makes it:
//!
//! - the transaction at place n has the verdict, the reads and the writes that it has on `S(n-1)`, at every participant that
//!   ran it, each with the writes to the keys that it holds (CAL-06: equivalent to exactly the sequencers' order);
//! - a snapshot at place n, and each page of it, has the rows of `S(n-1)` (CAL-98: results equal those at one position of the log);
//! - when the run has finished, each partition has the rows of the last state that it is to hold, and the digests of the
//!   partitions add up to that of the last state (CAL-04: the state is a function of the log alone).
//!
//! This finds what the serialization graph cannot show: phantoms, serializability in another order than that of the log,
//! and rows that were damaged after they were written.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::data::Owner;
use ordain_db::execution::Executed;
use ordain_db::execution::trace::Version;
use ordain_db::hash::Digest;
use ordain_db::message::Work;
use ordain_db::position::{PartitionId, Position};

use super::Findings;
use super::evidence::{Evidence, Seen as Row, first_difference};
use super::replicas_agree::{agree, reads_difference, told_of};
use super::wording;
use crate::history::{Invocation, PageRead, SnapshotRead};
use crate::oracle::Oracle;

/// Checks the property.
///
/// # Errors
/// With the first position that differs, and the first key there with both rows.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut oracle = Oracle::new(evidence.workload)?;
    let mut checker = Checker { evidence, findings: Findings::default() };
    let mut snapshots: BTreeMap<Position, Seen<'_>> = BTreeMap::new();
    for snapshot in &evidence.history.snapshots {
        snapshots.entry(snapshot.position).or_default().whole.push(snapshot);
    }
    for page in &evidence.history.pages {
        snapshots.entry(page.at).or_default().pages.push(page);
    }
    // Snapshots without a place in the order, ascending.
    let mut unordered = snapshots.iter().filter(|(at, _)| at.is_beyond()).peekable();
    for (position, ordered) in &evidence.history.log {
        while let Some((_, reads)) = unordered.next_if(|(at, _)| *at < position) {
            checker.compare_seen(reads, &oracle.rows());
        }
        let expected = match oracle.run(*position, ordered) {
            Ok(expected) => expected,
            Err(problem) => {
                // From here on the oracle knows no state to compare with.
                checker.findings.note(|| problem);
                return checker.findings.finish();
            }
        };
        if let Some(expected) = expected {
            let runs = evidence.history.executed.get(position).map_or(&[][..], Vec::as_slice);
            runs.iter().for_each(|(partition, run)| checker.compare_run(*partition, run, &expected));
        }
        if matches!(ordered.work, Work::OpenSnapshot(_))
            && let Some(reads) = snapshots.get(position)
        {
            checker.compare_seen(reads, &oracle.rows());
        }
    }
    let rows = oracle.rows();
    unordered.for_each(|(_, reads)| checker.compare_seen(reads, &rows));
    for snapshot in &evidence.history.snapshots {
        checker.check_place(snapshot);
    }
    if evidence.finished() {
        checker.compare_rows(&oracle.rows());
        checker.compare_digests(oracle.digest());
    }
    checker.findings.finish()
}

/// What was read of one snapshot.
#[derive(Default)]
struct Seen<'h> {
    whole: Vec<&'h SnapshotRead>,
    pages: Vec<&'h PageRead>,
}

struct Checker<'e, 'a> {
    evidence: &'e Evidence<'a>,
    findings: Findings,
}

impl Checker<'_, '_> {
    fn compare_run(&mut self, partition: PartitionId, run: &Executed, expected: &Executed) {
        let (position, schema) = (expected.position, self.evidence.schema());
        self.findings.require(agree(run, expected), || {
            format!(
                "{position}: at {partition} it {}, in the serial run it {}",
                wording::verdict(&run.verdict),
                wording::verdict(&expected.verdict),
            )
        });
        let partitions = self.evidence.history.partitions;
        let held = |(key, _): &&Version| {
            schema.owner(key, partitions).is_ok_and(|owner: Owner| owner.includes(partition))
        };
        let writes: Vec<Version> = expected.writes.iter().filter(held).cloned().collect();
        let reads = told_of(&expected.reads, run);
        for (done, found, right) in [("read", &run.reads, &reads), ("wrote", &run.writes, &writes)] {
            if found == right {
                continue;
            }
            self.findings.note(|| match reads_difference(found, right) {
                Some((key, found, right)) => format!(
                    "{position}: {partition} {done} {} of {}, the serial run {}",
                    describe(self.evidence, key, found),
                    wording::key(schema, key),
                    describe(self.evidence, key, right),
                ),
                None => format!("{position}: {partition} {done} the right rows, but in another order"),
            });
        }
    }

    fn compare_seen(&mut self, seen: &Seen<'_>, rows: &BTreeMap<Bytes, Bytes>) {
        seen.whole.iter().for_each(|snapshot| self.compare_snapshot(snapshot, rows));
        seen.pages.iter().for_each(|page| self.compare_page(page, rows));
    }

    /// A page has the first rows of its range that the partition holds; it may be shorter than it was asked to be.
    fn compare_page(&mut self, read: &PageRead, rows: &BTreeMap<Bytes, Bytes>) {
        let (schema, partitions) = (self.evidence.schema(), self.evidence.history.partitions);
        let held =
            |key: &[u8]| schema.owner(key, partitions).is_ok_and(|owner| owner.includes(read.partition));
        let mut right: Vec<(&[u8], &[u8])> = rows
            .range(Bytes::copy_from_slice(read.range.start.bytes())..)
            .take_while(|(key, _)| read.range.contains(key))
            .filter(|(key, _)| held(key))
            .map(|(key, row)| (&key[..], &row[..]))
            .collect();
        right.sort_by(|left, right| read.direction.compare(left.0, right.0));
        let found: Vec<(&[u8], &[u8])> = read.page.rows.iter().collect();
        let is_right = right.starts_with(&found) && read.page.more == (found.len() < right.len());
        self.findings.require(is_right, || {
            let place = right.iter().zip(&found).position(|(right, found)| right != found);
            format!(
                "a page of {} rows of the snapshot at {} from {} is not that of the serial run, which has {} rows in the \
                 range; the first difference is at {place:?}",
                found.len(),
                read.at,
                read.partition,
                right.len()
            )
        });
    }

    fn compare_snapshot(&mut self, snapshot: &SnapshotRead, rows: &BTreeMap<Bytes, Bytes>) {
        if *rows == snapshot.rows {
            return;
        }
        let Some((key, right, found)) = first_difference(versions(rows), versions(&snapshot.rows)) else {
            return;
        };
        self.findings.note(|| {
            format!(
                "snapshot {} at {} has {} of {}, the serial run {}",
                wording::request(snapshot.request),
                snapshot.position,
                describe(self.evidence, key, found),
                wording::key(self.evidence.schema(), key),
                describe(self.evidence, key, right),
            )
        });
    }

    /// A snapshot is read at the place that the log gave it, or between epochs where its answer says so.
    fn check_place(&mut self, snapshot: &SnapshotRead) {
        let unordered = self.evidence.history.requests.get(&snapshot.request);
        if unordered.and_then(Invocation::unordered_snapshot) == Some(snapshot.position) {
            return;
        }
        let ordered = self.evidence.history.log.get(&snapshot.position);
        let opened = ordered.is_some_and(|ordered| {
            matches!(ordered.work, Work::OpenSnapshot(_)) && ordered.request == snapshot.request
        });
        self.findings.require(opened, || {
            let request = wording::request(snapshot.request);
            format!("snapshot {request} was read at {}, where the log does not open it", snapshot.position)
        });
    }

    /// Compares the rows of each partition at the end with those that it is to hold.
    fn compare_rows(&mut self, rows: &BTreeMap<Bytes, Bytes>) {
        let (schema, partitions) = (self.evidence.schema(), self.evidence.history.partitions);
        let found = &self.evidence.history.rows;
        if found.len() != usize::from(partitions) {
            return self.findings.note(|| {
                format!("the rows of {} partitions are known at the end, not of {partitions}", found.len())
            });
        }
        let mut held: Vec<Vec<Row<'_>>> = vec![Vec::new(); found.len()];
        for (key, row) in rows {
            match schema.owner(key, partitions) {
                Ok(Owner::Partition(partition)) => {
                    if let Some(held) = held.get_mut(partition.index()) {
                        held.push((key, Some(row)));
                    }
                }
                _ => held.iter_mut().for_each(|held| held.push((key, Some(row)))),
            }
        }
        for (partition, (held, found)) in held.into_iter().zip(found).enumerate() {
            if let Some((key, right, found)) = first_difference(held.into_iter(), versions(found)) {
                self.findings.note(|| {
                    format!(
                        "at the end p{partition} has {} of {}, the serial run {}",
                        describe(self.evidence, key, found),
                        wording::key(schema, key),
                        describe(self.evidence, key, right),
                    )
                });
            }
        }
    }

    fn compare_digests(&mut self, right: Digest) {
        let statuses = &self.evidence.history.statuses;
        let digests: Vec<u128> = statuses.iter().filter_map(|status| status.digest).collect();
        let partitions = self.evidence.history.partitions;
        if digests.len() != usize::from(partitions) {
            return self.findings.note(|| {
                format!(
                    "{} digests are known at the end, not those of {partitions} partitions",
                    digests.len()
                )
            });
        }
        let mut sum = Digest::default();
        digests.into_iter().for_each(|digest| sum.merge(Digest(digest)));
        self.findings.require(sum == right, || {
            format!("at the end the digests add up to {sum}, the serial run has {right}")
        });
    }
}

fn versions(rows: &BTreeMap<Bytes, Bytes>) -> impl Iterator<Item = Row<'_>> {
    rows.iter().map(|(key, row)| (&key[..], Some(&row[..])))
}

/// One side of a difference; a key that a side does not name has no row there.
fn describe(evidence: &Evidence<'_>, key: &[u8], found: Option<Option<&[u8]>>) -> String {
    wording::row(evidence.schema(), key, found.flatten())
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind;
    use ordain_db::failpoint::NoFailpoints;
    use ordain_db::message::Verdict;

    use super::*;
    use crate::checkers::example::{self, bank};
    use crate::history::History;

    fn found(history: &History) -> Result<(), String> {
        check(&Evidence::new(history, &bank()).unwrap())
    }

    fn broken(change: impl FnOnce(&mut History, Position)) -> String {
        let mut history = example::run::<NoFailpoints>(EngineKind::Calvin, 2, 30);
        assert_eq!(found(&history), Ok(()));
        let position = example::position_between_partitions(&history);
        change(&mut history, position);
        found(&history).unwrap_err()
    }

    fn broken_run(change: impl Fn(&mut Executed)) -> String {
        broken(|history, position| {
            history.executed.get_mut(&position).unwrap().iter_mut().for_each(|(_, run)| change(run));
        })
    }

    #[test]
    fn runs_are_compared() {
        let problem = broken_run(|run| run.verdict = Verdict::Committed(Bytes::new()));
        assert!(
            problem.contains(
                ": at p0 it committed with result 0x, in the serial run it committed with result 0x"
            )
        );
        let problem = broken_run(|run| run.reads[0].1 = None);
        assert!(problem.contains(": p0 read no row of accounts (0, "), "{problem}");
        assert!(problem.contains("), the serial run ["), "{problem}");
        let problem = broken_run(|run| run.writes[0].1 = Some(example::version(0, 0, -5).1.unwrap()));
        assert!(problem.contains(": p0 wrote [-5] of accounts (0, "), "{problem}");
        let problem = broken_run(|run| run.writes.clear());
        assert!(problem.contains(": p0 wrote no row of accounts (0, "), "{problem}");
        let problem = broken_run(|run| run.reads.reverse());
        assert!(problem.contains(": p0 read the right rows, but in another order"), "{problem}");
    }

    #[test]
    fn snapshots_are_compared() {
        let problem =
            broken(|history, _| *history.snapshots[1].rows.values_mut().next().unwrap() = Bytes::new());
        assert!(problem.starts_with("snapshot c"), "{problem}");
        assert!(
            problem.contains("has bytes 0x that are no row of accounts (0, 0), the serial run ["),
            "{problem}"
        );
        let problem = broken(|history, _| {
            history.snapshots[1].rows.pop_last();
        });
        assert!(problem.contains("has no row of accounts (1, 9), the serial run ["), "{problem}");
        let problem = broken(|history, position| history.snapshots[1].position = position);
        assert!(problem.contains("where the log does not open it"), "{problem}");
    }

    #[test]
    fn the_last_state_is_compared() {
        let problem = broken(|history, _| {
            let (key, row) = history.rows[1].pop_first().unwrap();
            history.rows[0].insert(key, row);
        });
        assert!(problem.starts_with("at the end p0 has ["), "{problem}");
        assert!(problem.ends_with("of accounts (1, 0), the serial run no row (and 1 more)"), "{problem}");
        let problem = broken(|history, _| {
            history.rows.pop();
        });
        assert_eq!(problem, "the rows of 1 partitions are known at the end, not of 2");
        let problem = broken(|history, _| history.statuses[1].digest = Some(7));
        assert!(problem.starts_with("at the end the digests add up to "), "{problem}");
        let problem = broken(|history, _| history.statuses[1].digest = None);
        assert_eq!(problem, "1 digests are known at the end, not those of 2 partitions");
    }

    #[test]
    fn a_transaction_that_the_log_lacks_changes_what_follows() {
        let problem = broken(|history, position| {
            history.log.remove(&position);
        });
        assert!(problem.contains("the serial run"), "{problem}");
        let problem = broken(|history, position| {
            if let Some(Work::Call { arguments, .. }) =
                history.log.get_mut(&position).map(|ordered| &mut ordered.work)
            {
                *arguments = Bytes::new();
            }
        });
        assert!(problem.contains("cannot be executed"), "{problem}");
    }

    #[test]
    fn the_last_state_of_a_run_that_did_not_finish_is_left_alone() {
        let mut history = example::run::<NoFailpoints>(EngineKind::Calvin, 2, 30);
        history.rows.clear();
        history.statuses.clear();
        assert!(found(&history).is_err());
        history.unfinished = Some("stopped".to_owned());
        assert_eq!(found(&history), Ok(()));
    }
}
