//! Where the logs of all partitions can be cut together, and what is left of a log that was cut.
//!
//! The state at the end of an epoch is one state of the whole database, as the epoch ends at the same place of the order on all
//! partitions. So a restore to an epoch needs of *every* partition a checkpoint at the end of one and the same earlier epoch,
//! the *base*, and all batches from there on. An epoch of which the batch of one partition is missing was not executed
//! anywhere, and nobody was told of what is in it.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_consensus::{LogRecord, LogStart};
use serde::{Deserialize, Serialize};

use super::committed::{CommittedError, LogEntry};
use crate::position::{Epoch, PartitionId};

/// Epochs without a gap; both ends are among them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EpochRange {
    /// The first one.
    pub first: Epoch,
    /// The last one.
    pub last: Epoch,
}

/// What is there of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holding {
    /// The partition.
    pub partition: PartitionId,
    /// The ends of epochs of which there is a checkpoint, with the time at which the epoch was closed, if it is known. Epoch 0
    /// stands for the rows that the partition had at first.
    pub bases: BTreeMap<Epoch, Option<u64>>,
    /// Epochs whose batches are there. They may overlap, and come in any order.
    pub batches: Vec<EpochRange>,
}

impl Holding {
    /// The last epoch that can be reached from a base.
    fn reach(&self, base: Epoch) -> Epoch {
        let mut ranges = self.batches.clone();
        ranges.sort_unstable();
        ranges.iter().fold(base, |reach, range| match range.first <= reach.next() {
            true => reach.max(range.last),
            false => reach,
        })
    }
}

/// Which state is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The newest one.
    Newest,
    /// That at the end of an epoch.
    Epoch(Epoch),
    /// That of a time in microseconds: the last one before a batch that was closed after it.
    Time(u64),
}

/// Where all logs are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The epoch of the checkpoints.
    pub base: Epoch,
    /// The last epoch.
    pub through: Epoch,
}

/// Why there is no cut.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CutError {
    /// No two things fit together.
    #[error(
        "nothing can be restored: there is no epoch of which all of {} have a checkpoint: take a backup of each when all \
         have the same checkpoint, or follow each",
        described(partitions)
    )]
    NoBase {
        /// The partitions.
        partitions: Vec<PartitionId>,
    },
    /// The epoch is not there.
    #[error("the state at the end of {wanted} is not there; there are those of {}", listed(ranges))]
    NoEpoch {
        /// What was wanted.
        wanted: Epoch,
        /// What there is.
        ranges: Vec<EpochRange>,
    },
    /// The time is not there.
    #[error(
        "the state of that time is not there: the oldest checkpoint of all partitions is of a later time or of none that is \
         known, or epochs between are missing; there are the ends of {}",
        listed(ranges)
    )]
    NoTime {
        /// What there is.
        ranges: Vec<EpochRange>,
    },
}

fn described(partitions: &[PartitionId]) -> String {
    let names: Vec<String> = partitions.iter().map(PartitionId::to_string).collect();
    names.join(", ")
}

fn listed(ranges: &[EpochRange]) -> String {
    let name = |EpochRange { first, last }: &EpochRange| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    let names: Vec<String> = ranges.iter().map(name).collect();
    names.join(", ")
}

/// The bases that all partitions have, ascending, each with the last epoch that all can reach from it.
fn reaches(holdings: &[Holding]) -> Vec<EpochRange> {
    let Some((one, others)) = holdings.split_first() else { return Vec::new() };
    let bases = one.bases.keys().filter(|base| others.iter().all(|other| other.bases.contains_key(base)));
    let reach = |base: &Epoch| holdings.iter().map(|holding| holding.reach(*base)).min();
    bases.map(|base| EpochRange { first: *base, last: reach(base).unwrap_or(*base) }).collect()
}

/// The epochs whose ends can be restored, ascending, as few ranges as possible.
pub fn restorable(holdings: &[Holding]) -> Vec<EpochRange> {
    let mut ranges: Vec<EpochRange> = Vec::new();
    for reach in reaches(holdings) {
        match ranges.last_mut().filter(|range| reach.first <= range.last.next()) {
            Some(range) => range.last = range.last.max(reach.last),
            None => ranges.push(reach),
        }
    }
    ranges
}

/// Chooses where to cut: from the newest base from which the target can be reached, since less is to be replayed then.
///
/// `closed_after` is only asked for a time: it names the first epoch after the one given, of a partition, whose batch was
/// closed after that time, among the epochs through the last one given.
///
/// # Errors
/// [`CutError`], or what `closed_after` could not tell.
pub fn choose<E: From<CutError>>(
    holdings: &[Holding],
    target: Target,
    closed_after: &mut dyn FnMut(PartitionId, EpochRange, u64) -> Result<Option<Epoch>, E>,
) -> Result<Cut, E> {
    let reaches = reaches(holdings);
    if reaches.is_empty() {
        let partitions = holdings.iter().map(|holding| holding.partition).collect();
        return Err(CutError::NoBase { partitions }.into());
    }
    match target {
        Target::Newest => {
            // Of those that reach the same, the newest base.
            let best = reaches.iter().max_by_key(|reach| (reach.last, reach.first));
            let EpochRange { first: base, last: through } = *best.unwrap_or(&reaches[0]);
            Ok(Cut { base, through })
        }
        Target::Epoch(wanted) => {
            let base = reaches.iter().rev().find(|reach| reach.first <= wanted && wanted <= reach.last);
            let ranges = restorable(holdings);
            let base = base.ok_or(CutError::NoEpoch { wanted, ranges })?.first;
            Ok(Cut { base, through: wanted })
        }
        Target::Time(time) => {
            for EpochRange { first: base, last } in reaches.into_iter().rev() {
                let mut through = last;
                for holding in holdings {
                    let after = EpochRange { first: base.next(), last: through };
                    if let Some(epoch) = closed_after(holding.partition, after, time)? {
                        through = Epoch(epoch.0 - 1);
                    }
                }
                if through > base || is_before(holdings, base, time) {
                    return Ok(Cut { base, through });
                }
            }
            Err(CutError::NoTime { ranges: restorable(holdings) }.into())
        }
    }
}

/// Whether the epoch of a base was closed by all partitions at or before a time, as far as is known. The rows that there were
/// at first are of any time.
fn is_before(holdings: &[Holding], base: Epoch, time: u64) -> bool {
    let closed = |holding: &Holding| holding.bases.get(&base).copied().flatten();
    base == Epoch(0) || holdings.iter().all(|holding| closed(holding).is_some_and(|closed| closed <= time))
}

/// The records of a log that was cut: those of a group that begins with this base and has agreed on all through the cut.
///
/// Indexes and terms stay as they were, since the checkpoint names them. Nobody has voted.
#[derive(Debug)]
pub struct CutLog {
    /// The entry that comes next.
    next: u64,
    term: u64,
    delivered: Epoch,
    through: Epoch,
}

impl CutLog {
    /// Begins a log after a base, and gives its first record. `start` is where the log goes on after the base.
    pub fn begin(start: LogStart, cut: Cut) -> (CutLog, Bytes) {
        let Cut { base, through } = cut;
        let log = CutLog { next: start.index + 1, term: start.term, delivered: base, through };
        (log, LogRecord::Start { start, is_replacement: true }.encode())
    }

    /// Takes the next entry, and gives its record if it is wanted. Entries may begin earlier, and go on after the cut.
    ///
    /// # Errors
    /// When an entry or an epoch is missing before.
    pub fn take(&mut self, entry: &LogEntry) -> Result<Option<Bytes>, CommittedError> {
        if entry.index < self.next || self.is_complete() {
            return Ok(None);
        }
        if entry.index > self.next {
            return Err(CommittedError::Gap { expected: self.next, found: entry.index });
        }
        if let Some(batch) = entry.batch()? {
            let expected = self.delivered.next();
            if batch.epoch != expected {
                return Err(CommittedError::Epochs { index: entry.index, expected, found: batch.epoch });
            }
            self.delivered = expected;
        }
        (self.next, self.term) = (entry.index + 1, self.term.max(entry.term));
        Ok(Some(entry.encode()))
    }

    /// Whether all entries through the cut are there.
    pub fn is_complete(&self) -> bool {
        self.delivered >= self.through
    }

    /// The last epoch that is there.
    pub fn delivered(&self) -> Epoch {
        self.delivered
    }

    /// The last record: all is committed.
    pub fn end(self) -> Bytes {
        LogRecord::State { term: self.term, vote: None, commit: self.next - 1 }.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> EpochRange {
        EpochRange { first: Epoch(first), last: Epoch(last) }
    }

    fn holding(partition: u16, bases: &[(u64, Option<u64>)], batches: &[(u64, u64)]) -> Holding {
        Holding {
            partition: PartitionId(partition),
            bases: bases.iter().map(|(epoch, closed)| (Epoch(*epoch), *closed)).collect(),
            batches: batches.iter().map(|(first, last)| range(*first, *last)).collect(),
        }
    }

    fn cut(holdings: &[Holding], target: Target) -> Result<(u64, u64), CutError> {
        // Each epoch was closed at ten times its number, that of partition 1 one later.
        let mut closed_after = |partition: PartitionId, epochs: EpochRange, time: u64| {
            let closed = |epoch: u64| 10 * epoch + u64::from(partition.0);
            Ok::<_, CutError>((epochs.first.0..=epochs.last.0).find(|epoch| closed(*epoch) > time).map(Epoch))
        };
        choose(holdings, target, &mut closed_after).map(|cut| (cut.base.0, cut.through.0))
    }

    #[test]
    fn the_newest_state_is_the_last_epoch_that_all_have() {
        let holdings = [
            holding(0, &[(0, None), (5, None)], &[(4, 9), (1, 4)]),
            holding(1, &[(0, None), (5, None), (8, None)], &[(1, 12)]),
        ];
        assert_eq!(cut(&holdings, Target::Newest), Ok((5, 9)));
        assert_eq!(cut(&holdings, Target::Epoch(Epoch(9))), Ok((5, 9)));
        assert_eq!(cut(&holdings, Target::Epoch(Epoch(4))), Ok((0, 4)));
        assert_eq!(cut(&holdings, Target::Epoch(Epoch(5))), Ok((5, 5)));
        let wanted = Epoch(10);
        let error = cut(&holdings, Target::Epoch(wanted)).unwrap_err();
        assert_eq!(error, CutError::NoEpoch { wanted, ranges: vec![range(0, 9)] });
        assert!(error.to_string().ends_with("there are those of e0 to e9"), "{error}");
    }

    #[test]
    fn a_gap_in_one_partition_is_one_in_all() {
        let holdings = [
            holding(0, &[(2, None), (8, None)], &[(3, 5), (7, 11)]),
            holding(1, &[(2, None), (8, None)], &[(3, 20)]),
        ];
        assert_eq!(restorable(&holdings), [range(2, 5), range(8, 11)]);
        assert_eq!(cut(&holdings, Target::Epoch(Epoch(4))), Ok((2, 4)));
        assert!(cut(&holdings, Target::Epoch(Epoch(7))).is_err());
        assert_eq!(cut(&holdings, Target::Newest), Ok((8, 11)));
    }

    #[test]
    fn without_a_common_base_there_is_nothing() {
        let holdings = [holding(0, &[(2, None)], &[(1, 9)]), holding(1, &[(3, None)], &[(1, 9)])];
        let partitions = vec![PartitionId(0), PartitionId(1)];
        assert_eq!(cut(&holdings, Target::Newest), Err(CutError::NoBase { partitions }));
        assert_eq!(restorable(&holdings), []);
    }

    #[test]
    fn a_time_is_before_the_first_batch_after_it() {
        let both = |bases: &[(u64, Option<u64>)], batches: &[(u64, u64)]| {
            [holding(0, bases, batches), holding(1, bases, batches)]
        };
        let holdings = both(&[(0, None), (5, None)], &[(1, 9)]);
        assert_eq!(cut(&holdings, Target::Time(71)), Ok((5, 7)));
        assert_eq!(cut(&holdings, Target::Time(70)), Ok((5, 6)), "partition 1 closed epoch 7 at 71");
        assert_eq!(cut(&holdings, Target::Time(60)), Ok((0, 5)), "nothing says when epoch 5 was closed");
        assert_eq!(cut(&holdings, Target::Time(1)), Ok((0, 0)));
        assert_eq!(cut(&holdings, Target::Time(u64::MAX)), Ok((5, 9)));
        let known = both(&[(5, Some(51))], &[(6, 9)]);
        assert_eq!(cut(&known, Target::Time(60)), Ok((5, 5)));
        assert_eq!(cut(&known, Target::Time(50)), Err(CutError::NoTime { ranges: vec![range(5, 9)] }));
    }
}
