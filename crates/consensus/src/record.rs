//! The persistent form of a log: records that are appended to the log on disk, and read back in order.
//!
//! A record is one byte of version and the rest in the `postcard` form. Later records supersede earlier ones:
//!
//! - an entry at index *i* supersedes all entries from *i* on;
//! - a state supersedes the state before;
//! - a start at index *i* ends the validity of entries through *i*, and, if it comes from a checkpoint that replaced this
//!   replica's state, of all entries before it.
//!
//! Frames, checksums and torn writes are the business of the log on disk, not of this form.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::log::{LogStart, RecoverError, ReplicaId};

/// The version of the form that is written, and of what the database keeps in entries.
const VERSION: u8 = 4;

/// What an entry of the log is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EntryKind {
    /// A proposed payload.
    Payload,
    /// The first entry of a term, which commits what comes before.
    Barrier,
    /// A change of the membership.
    Membership,
}

/// One record of a log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LogRecord {
    /// An entry.
    Entry {
        /// Its index.
        index: u64,
        /// The term in which it was proposed.
        term: u64,
        /// What it is for.
        kind: EntryKind,
        /// The proposed payload, or the log's own data.
        payload: Bytes,
    },
    /// What this replica has promised.
    State {
        /// Its term.
        term: u64,
        /// Whom it has voted for in this term.
        vote: Option<ReplicaId>,
        /// Entries through this index were known to be committed.
        commit: u64,
    },
    /// The log begins after a checkpoint.
    Start {
        /// The position of the checkpoint.
        start: LogStart,
        /// Whether the checkpoint replaced this replica's state, so that no entry before this record counts; else the
        /// entries after the start are kept.
        is_replacement: bool,
    },
}

/// Why a record can not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// The record is empty.
    #[error("it is empty")]
    Empty,
    /// It was written by a later version.
    #[error("it has version {0}, and this program knows {VERSION}: use the program that wrote it")]
    Version(u8),
    /// It does not follow the form.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl LogRecord {
    /// The record of a start from which entries are kept.
    pub(crate) fn compacted(start: &LogStart) -> Bytes {
        LogRecord::Start { start: start.clone(), is_replacement: false }.encode()
    }

    /// The record of a start that replaces all entries.
    pub(crate) fn replaced(start: &LogStart) -> Bytes {
        LogRecord::Start { start: start.clone(), is_replacement: true }.encode()
    }

    /// The record as bytes.
    pub fn encode(&self) -> Bytes {
        let encoded = postcard::to_extend(self, vec![VERSION]);
        Bytes::from(encoded.expect("a vector takes any number of bytes, and no field fails to encode"))
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the bytes are no record of a version known here, or something follows it.
    pub fn decode(bytes: &[u8]) -> Result<LogRecord, RecordError> {
        let (version, form) = bytes.split_first().ok_or(RecordError::Empty)?;
        if *version != VERSION {
            return Err(RecordError::Version(*version));
        }
        let (record, rest) =
            postcard::take_from_bytes(form).map_err(|error| RecordError::Damaged(error.to_string()))?;
        if !rest.is_empty() {
            return Err(RecordError::Damaged(format!("{} bytes follow it", rest.len())));
        }
        Ok(record)
    }
}

/// An entry, as records hold it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordedEntry {
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) kind: EntryKind,
    pub(crate) payload: Bytes,
}

impl RecordedEntry {
    /// The entry as an encoded record.
    pub(crate) fn encode(&self) -> Bytes {
        let RecordedEntry { index, term, kind, ref payload } = *self;
        LogRecord::Entry { index, term, kind, payload: payload.clone() }.encode()
    }
}

/// What a sequence of records amounts to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecoveredLog {
    pub(crate) start: LogStart,
    pub(crate) term: u64,
    pub(crate) vote: Option<ReplicaId>,
    pub(crate) commit: u64,
    /// All entries after the start, without gaps.
    pub(crate) entries: Vec<RecordedEntry>,
}

impl RecoveredLog {
    /// A log of which there is only the start.
    pub(crate) fn empty(start: LogStart) -> RecoveredLog {
        RecoveredLog { term: start.term, vote: None, commit: start.index, start, entries: Vec::new() }
    }

    /// The term of an entry, or of the start; none outside of the log.
    pub(crate) fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.start.index {
            return Some(self.start.term);
        }
        let position = usize::try_from(index.checked_sub(self.start.index + 1)?).ok()?;
        Some(self.entries.get(position)?.term)
    }

    /// Index of the last entry, or of the start.
    pub(crate) fn last(&self) -> u64 {
        self.entries.last().map_or(self.start.index, |entry| entry.index)
    }

    /// The highest term that occurs. A torn write may have left an entry of a term without the state that says so.
    pub(crate) fn newest_term(&self) -> u64 {
        let of_last = self.entries.last().map_or(self.start.term, |entry| entry.term);
        self.term.max(of_last)
    }

    /// Reads all records. None if there are none.
    ///
    /// The oldest segments may have been removed, so entries may come first that end at or before the start that comes later.
    pub(crate) fn read(records: impl Iterator<Item = Bytes>) -> Result<Option<RecoveredLog>, RecoverError> {
        let mut start: Option<LogStart> = None;
        let (mut term, mut vote, mut commit) = (0, None, 0);
        let mut entries: Vec<RecordedEntry> = Vec::new();
        let mut count = 0;
        for record in records {
            let record =
                LogRecord::decode(&record).map_err(|error| RecoverError::Record { ordinal: count, error })?;
            count += 1;
            match record {
                LogRecord::Entry { index, term, kind, payload } => {
                    append(&mut entries, RecordedEntry { index, term, kind, payload })?;
                }
                LogRecord::State { term: new_term, vote: new_vote, commit: new_commit } => {
                    (term, vote, commit) = (new_term, new_vote, new_commit);
                }
                LogRecord::Start { start: new, is_replacement } => {
                    entries.retain(|entry| !is_replacement && entry.index > new.index);
                    start = Some(new);
                }
            }
        }
        if count == 0 {
            return Ok(None);
        }
        let start = start.ok_or(RecoverError::NoStart { records: count })?;
        let mut expected = start.index + 1;
        for entry in &entries {
            if entry.index != expected {
                return Err(RecoverError::Gap { expected, found: entry.index });
            }
            expected += 1;
        }
        // A start says that what it covers was committed, whether or not a state said so.
        let commit = commit.max(start.index);
        if commit >= expected {
            return Err(RecoverError::Lost { committed: commit, last: expected - 1 });
        }
        Ok(Some(RecoveredLog { start, term, vote, commit, entries }))
    }
}

/// Adds an entry, in place of those from its index on.
fn append(entries: &mut Vec<RecordedEntry>, entry: RecordedEntry) -> Result<(), RecoverError> {
    if let Some(first) = entries.first() {
        let keep = entry.index.saturating_sub(first.index);
        entries.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
    }
    if let Some(last) = entries.last() {
        let expected = last.index + 1;
        if entry.index != expected {
            return Err(RecoverError::Gap { expected, found: entry.index });
        }
    }
    entries.push(entry);
    Ok(())
}
