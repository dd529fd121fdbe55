//! The entries of the log in memory, as `raft` reads them.

use std::collections::VecDeque;

use ::raft::eraftpb::{Entry, HardState, Snapshot};
use ::raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::log::LogStart;

use super::conversion::{conf_state, snapshot_metadata};

/// What an entry takes in a message besides its payload, in bytes, at most.
const ENTRY_OVERHEAD_BYTES: u64 = 32;

/// All entries from the log's start on. Entries are here as soon as they have been given out to be persisted; `raft` itself
/// keeps apart what of it is durable.
pub(super) struct Entries {
    start: LogStart,
    entries: VecDeque<Entry>,
    /// Where `raft` begins; it does not ask later.
    initial: HardState,
}

impl Entries {
    pub(super) fn new(start: LogStart, entries: VecDeque<Entry>, initial: HardState) -> Entries {
        Entries { start, entries, initial }
    }

    pub(super) fn start(&self) -> &LogStart {
        &self.start
    }

    pub(super) fn last(&self) -> u64 {
        self.entries.back().map_or(self.start.index, |entry| entry.index)
    }

    /// The entry at an index; none outside of the log.
    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        self.entries.get(self.position(index)?)
    }

    /// The term of an entry, or of the start; none outside of the log.
    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.start.index { Some(self.start.term) } else { Some(self.get(index)?.term) }
    }

    fn position(&self, index: u64) -> Option<usize> {
        usize::try_from(index.checked_sub(self.start.index + 1)?).ok()
    }

    /// Adds entries, in place of those from the first one's index on.
    pub(super) fn append(&mut self, new: Vec<Entry>) {
        let Some(first) = new.first() else { return };
        let position = self.position(first.index).filter(|position| *position <= self.entries.len());
        let position = position.expect("entries follow each other without gaps");
        self.entries.truncate(position);
        self.entries.extend(new);
    }

    /// Lets the log begin after an entry that it has.
    pub(super) fn compact(&mut self, start: LogStart) {
        let position = self.position(start.index).filter(|position| *position < self.entries.len());
        self.entries.drain(..=position.expect("the new start is an entry of the log"));
        self.start = start;
    }

    /// Lets the log begin after a checkpoint that replaces all of it.
    pub(super) fn replace(&mut self, start: LogStart) {
        self.entries.clear();
        self.start = start;
    }
}

impl Storage for Entries {
    fn initial_state(&self) -> ::raft::Result<RaftState> {
        Ok(RaftState::new(self.initial.clone(), conf_state(&self.start.membership)))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> ::raft::Result<Vec<Entry>> {
        let Some(position) = self.position(low) else {
            return Err(StorageError::Compacted.into());
        };
        assert!(high <= self.last() + 1, "entries to {high} were asked for, the last one is {}", self.last());
        let bytes_max = max_size.into().unwrap_or(u64::MAX);
        let mut bytes = 0;
        let wanted = self.entries.range(position..).take_while(|entry| {
            let is_first = bytes == 0;
            bytes += entry.data.len() as u64 + ENTRY_OVERHEAD_BYTES;
            entry.index < high && (is_first || bytes <= bytes_max)
        });
        Ok(wanted.cloned().collect())
    }

    fn term(&self, index: u64) -> ::raft::Result<u64> {
        let reason =
            if index < self.start.index { StorageError::Compacted } else { StorageError::Unavailable };
        self.term_at(index).ok_or(reason.into())
    }

    fn first_index(&self) -> ::raft::Result<u64> {
        Ok(self.start.index + 1)
    }

    fn last_index(&self) -> ::raft::Result<u64> {
        Ok(self.last())
    }

    /// Only the position: the checkpoint itself is the driver's. It makes `raft` stop sending entries to the follower until
    /// that has one.
    fn snapshot(&self, _request_index: u64, _to: u64) -> ::raft::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.set_metadata(snapshot_metadata(&self.start));
        Ok(snapshot)
    }
}
