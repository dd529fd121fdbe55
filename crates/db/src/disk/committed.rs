//! Which records of a log are the order: for a backup, and for whoever else reads a log that is not theirs.
//!
//! A log on disk has more than the order. A replica may have entries on which its group never agreed, and later ones in their
//! place. So a reader goes over the records twice: the first time, [`LogSurvey`] finds out which of them count; the second
//! time, [`Committed`] picks these. Between the two, the log may grow.

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::{EntryKind, LogRecord, LogStart, Membership, RecordError};
use serde::{Deserialize, Serialize};

use crate::kept::decode_whole;
use crate::node::ordering::LoggedBatch;
use crate::position::Epoch;

/// An entry on which a group agreed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Its index in the log.
    pub index: u64,
    /// The term in which it was proposed.
    pub term: u64,
    /// What it is for.
    pub kind: EntryKind,
    /// The [`LoggedBatch`], or the log's own data.
    pub payload: Bytes,
}

/// What the log says of an epoch before the transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BatchHeader {
    /// The epoch.
    pub epoch: Epoch,
    /// When the leader closed it, in microseconds of its driver's time.
    pub closed_at: u64,
    /// The last epoch that had been delivered to the leader by then.
    pub delivered: Epoch,
    /// The level of what is shed for the sake of the leader, in thousandths.
    pub shed: u16,
    /// How many calls waited because execution at the leader had no room for more of them.
    pub held_back: u32,
}

impl LogEntry {
    /// The entry of a record, if it holds one.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn of(record: &[u8]) -> Result<Option<LogEntry>, RecordError> {
        Ok(match LogRecord::decode(record)? {
            LogRecord::Entry { index, term, kind, payload } => Some(LogEntry { index, term, kind, payload }),
            LogRecord::State { .. } | LogRecord::Start { .. } => None,
        })
    }

    /// The record that holds the entry.
    pub fn encode(&self) -> Bytes {
        let LogEntry { index, term, kind, ref payload } = *self;
        LogRecord::Entry { index, term, kind, payload: payload.clone() }.encode()
    }

    /// The epoch that the entry holds; `None` for what the log has for itself.
    ///
    /// # Errors
    /// When the payload is no batch.
    pub fn batch(&self) -> Result<Option<BatchHeader>, CommittedError> {
        if self.kind != EntryKind::Payload {
            return Ok(None);
        }
        // The header is at the begin of a batch, and the transactions need not be read.
        let header = postcard::take_from_bytes::<BatchHeader>(&self.payload);
        let damaged =
            |error: postcard::Error| CommittedError::Batch { index: self.index, error: error.to_string() };
        header.map(|(header, _)| Some(header)).map_err(damaged)
    }

    /// The whole batch of an entry that holds one.
    ///
    /// # Errors
    /// When the payload is no batch.
    pub fn decode_batch(&self) -> Result<LoggedBatch, CommittedError> {
        decode_whole(&self.payload).map_err(|error| CommittedError::Batch { index: self.index, error })
    }
}

/// Why the records of a log do not make an order.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommittedError {
    /// A record can not be read.
    #[error("record {sequence} of the log: {error}")]
    Record {
        /// Its sequence number.
        sequence: u64,
        /// What is wrong with it.
        error: RecordError,
    },
    /// The payload of an entry can not be read.
    #[error("entry {index} of the log holds no batch: {error}")]
    Batch {
        /// Its index.
        index: u64,
        /// What is wrong with it.
        error: String,
    },
    /// The log does not say where it begins.
    #[error("the log does not say where it begins: its oldest segments are missing")]
    NoStart,
    /// Entries are missing.
    #[error("the log has entry {found} where {expected} should be: segments are missing")]
    Gap {
        /// The index that should have come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// Epochs are missing.
    #[error("entry {index} of the log has {found} where {expected} should be")]
    Epochs {
        /// The index of the entry.
        index: u64,
        /// The epoch that should have come.
        expected: Epoch,
        /// The one that came.
        found: Epoch,
    },
    /// What was committed is no longer there.
    #[error("entries through {committed} were committed and the log ends at {last}")]
    Lost {
        /// The commit index that was recorded.
        committed: u64,
        /// Last index of the log.
        last: u64,
    },
}

/// An entry that counts as far as the records before tell.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: u64,
    sequence: u64,
    is_membership: bool,
}

/// Goes over the records of a log, from the first one on.
#[derive(Debug, Default)]
pub struct LogSurvey {
    start: Option<LogStart>,
    commit: u64,
    /// Indexes ascending without gaps.
    entries: VecDeque<Place>,
}

impl LogSurvey {
    /// Takes the next record. `sequence` is its number in the log on disk.
    ///
    /// # Errors
    /// [`CommittedError`]: the log is damaged or incomplete.
    pub fn take(&mut self, sequence: u64, record: &[u8]) -> Result<(), CommittedError> {
        let record = LogRecord::decode(record).map_err(|error| CommittedError::Record { sequence, error })?;
        match record {
            LogRecord::Entry { index, kind, .. } => {
                return self.append(Place { index, sequence, is_membership: kind == EntryKind::Membership });
            }
            LogRecord::State { commit, .. } => self.commit = commit,
            LogRecord::Start { start, is_replacement } => {
                if is_replacement {
                    // The state came from another replica. What is before was perhaps never agreed on.
                    self.entries.clear();
                }
                self.start = Some(start);
            }
        }
        Ok(())
    }

    /// Adds an entry, in place of those from its index on.
    fn append(&mut self, place: Place) -> Result<(), CommittedError> {
        if let Some(first) = self.entries.front() {
            let keep = place.index.saturating_sub(first.index);
            self.entries.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
        }
        match self.entries.back() {
            Some(last) if place.index != last.index + 1 => {
                Err(CommittedError::Gap { expected: last.index + 1, found: place.index })
            }
            _ => {
                self.entries.push_back(place);
                Ok(())
            }
        }
    }

    /// What the records amount to. What a checkpoint covers is among it as far as it is still there: it was committed too.
    ///
    /// A group of one voter agrees with itself on all that it has durably. In a larger one the end of the log may be
    /// overwritten, so only what is recorded as committed counts; that record may be a little behind.
    ///
    /// # Errors
    /// [`CommittedError`]: the log is damaged or incomplete.
    pub fn finish(self) -> Result<Committed, CommittedError> {
        let LogSurvey { start, commit, entries } = self;
        let start = start.ok_or(CommittedError::NoStart)?;
        let first = entries.front().map_or(start.index + 1, |first| first.index);
        let last = entries.back().map_or(start.index, |last| last.index);
        if first > start.index + 1 {
            return Err(CommittedError::Gap { expected: start.index + 1, found: first });
        }
        let commit = commit.max(start.index);
        // A log that was cut below its start ends there, as far as it matters.
        if commit > last.max(start.index) {
            return Err(CommittedError::Lost { committed: commit, last });
        }
        let changes = entries.iter().any(|place| place.is_membership && place.index > start.index);
        let is_alone = is_alone(&start.membership) && !changes;
        let through = if is_alone { last } else { commit };
        let sequences = entries.iter().filter(|place| place.index <= through).map(|place| place.sequence);
        Ok(Committed { start, first, sequences: sequences.collect() })
    }
}

/// Whether one replica decides.
fn is_alone(membership: &Membership) -> bool {
    membership.voters.len() == 1 && !membership.is_joint()
}

/// The part of a log on which the group agreed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// Where the log begins for its own node.
    pub start: LogStart,
    /// The index of the first entry that is there.
    first: u64,
    /// Where the entries are in the log on disk, from the first one on.
    sequences: Vec<u64>,
}

impl Committed {
    /// The index of the first entry that is there, or of the next one if there is none.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The index of the last entry; that before [`first`](Committed::first) if there is none.
    pub fn last(&self) -> u64 {
        self.first + self.sequences.len() as u64 - 1
    }

    /// The entry of a record with its number in the log on disk, if it is one that counts and has this index or a higher one.
    ///
    /// # Errors
    /// [`CommittedError::Record`].
    pub fn pick(&self, from: u64, sequence: u64, record: &[u8]) -> Result<Option<LogEntry>, CommittedError> {
        match self.sequences.binary_search(&sequence) {
            Ok(place) if self.first + place as u64 >= from => {
                LogEntry::of(record).map_err(|error| CommittedError::Record { sequence, error })
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use ordain_consensus::ReplicaId;

    use super::*;

    fn entry(index: u64, term: u64) -> Bytes {
        let (epoch, delivered) = (Epoch(index), Epoch(index - 1));
        let batch = LoggedBatch {
            epoch,
            closed_at: 10 * index,
            delivered,
            shed: 0,
            held_back: 0,
            transactions: Vec::new(),
        };
        let payload = Bytes::from(postcard::to_allocvec(&batch).unwrap());
        LogEntry { index, term, kind: EntryKind::Payload, payload }.encode()
    }

    fn start(index: u64, voters: u16, is_replacement: bool) -> Bytes {
        let membership = Membership::of_voters((0..voters).map(ReplicaId));
        LogRecord::Start { start: LogStart { index, term: 1, membership }, is_replacement }.encode()
    }

    fn state(commit: u64) -> Bytes {
        LogRecord::State { term: 1, vote: None, commit }.encode()
    }

    /// Indexes and sequence numbers of what counts.
    fn survey(records: &[Bytes]) -> Result<Vec<(u64, u64)>, CommittedError> {
        let mut survey = LogSurvey::default();
        for (sequence, record) in (1..).zip(records) {
            survey.take(sequence, record)?;
        }
        let committed = survey.finish()?;
        let mut picked = Vec::new();
        for (sequence, record) in (1..).zip(records) {
            picked.extend(committed.pick(0, sequence, record)?.map(|entry| (entry.index, sequence)));
        }
        assert_eq!(picked.len() as u64, committed.last() + 1 - committed.first());
        if let [first, second, ..] = picked[..] {
            let record = |sequence: u64| &records[sequence as usize - 1];
            assert_eq!(committed.pick(second.0, first.1, record(first.1)), Ok(None));
            assert!(committed.pick(second.0, second.1, record(second.1)).unwrap().is_some());
        }
        Ok(picked)
    }

    #[test]
    fn alone_all_counts_and_in_a_group_what_is_committed() {
        let alone = [start(1, 1, true), state(1), entry(2, 2), entry(3, 2)];
        assert_eq!(survey(&alone), Ok(vec![(2, 3), (3, 4)]));
        let group = [start(1, 3, true), state(1), entry(2, 2), state(2), entry(3, 2)];
        assert_eq!(survey(&group), Ok(vec![(2, 3)]));
    }

    #[test]
    fn what_was_overwritten_does_not_count() {
        let records = [start(1, 3, true), entry(2, 2), entry(3, 2), entry(3, 4), state(3), entry(4, 4)];
        assert_eq!(survey(&records), Ok(vec![(2, 2), (3, 4)]));
    }

    #[test]
    fn what_a_checkpoint_covers_counts_as_long_as_it_is_there() {
        let records = [entry(5, 1), entry(6, 1), entry(7, 1), start(6, 3, false), state(7)];
        assert_eq!(survey(&records), Ok(vec![(5, 1), (6, 2), (7, 3)]));
        let replaced = [entry(5, 1), entry(6, 1), start(9, 3, true), state(9), entry(10, 1), state(10)];
        assert_eq!(survey(&replaced), Ok(vec![(10, 5)]));
    }

    #[test]
    fn what_is_missing_is_noticed() {
        assert_eq!(survey(&[entry(2, 1)]), Err(CommittedError::NoStart));
        let gap = survey(&[start(1, 1, true), entry(2, 1), entry(4, 1)]);
        assert_eq!(gap, Err(CommittedError::Gap { expected: 3, found: 4 }));
        let gap = survey(&[start(1, 1, true), entry(3, 1)]);
        assert_eq!(gap, Err(CommittedError::Gap { expected: 2, found: 3 }));
        let lost = survey(&[start(1, 3, true), entry(2, 1), state(3)]);
        assert_eq!(lost, Err(CommittedError::Lost { committed: 3, last: 2 }));
    }

    #[test]
    fn the_header_of_a_batch_is_at_its_begin() {
        let found = LogEntry::of(&entry(7, 1)).unwrap().unwrap();
        assert_eq!(
            found.batch(),
            Ok(Some(BatchHeader {
                epoch: Epoch(7),
                closed_at: 70,
                delivered: Epoch(6),
                shed: 0,
                held_back: 0
            }))
        );
        assert_eq!(found.decode_batch().unwrap().epoch, Epoch(7));
        let barrier = LogEntry { kind: EntryKind::Barrier, payload: Bytes::new(), ..found.clone() };
        assert_eq!(barrier.batch(), Ok(None));
        let empty = LogEntry { payload: Bytes::new(), ..found };
        assert!(empty.batch().is_err());
    }
}
