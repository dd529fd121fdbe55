//! Open snapshots and the old versions that are kept for them.
//!
//! A version written at `a` and superseded at `b` can be seen at the positions from `a` up to but not including `b`. It is
//! kept while a snapshot is open there, and *pinned* to the newest such snapshot. When that snapshot is closed, its
//! pinned versions await collection: each is then freed, or pinned to the next older snapshot that sees it. So
//! collection looks only at versions of which something has changed, however many a long-lived snapshot holds.

use std::collections::VecDeque;

use super::stamp::Stamp;

/// A version that is kept for snapshots.
#[derive(Clone, Copy)]
pub(super) struct Pinned {
    /// The record of the version.
    pub(super) record: u32,
    /// The position that wrote it.
    pub(super) from: Stamp,
    /// The position that superseded it.
    pub(super) to: Stamp,
}

/// A position at which snapshots are open.
struct OpenSnapshot {
    at: Stamp,
    /// How many are open at this position, at least 1.
    holders: usize,
    /// Versions for which this is the newest snapshot that sees them.
    pinned: Vec<Pinned>,
}

/// All open snapshots.
#[derive(Default)]
pub(super) struct Snapshots {
    /// In ascending order of positions.
    open: Vec<OpenSnapshot>,
    /// Versions pinned to snapshots that have been closed. No list is empty.
    released: VecDeque<Vec<Pinned>>,
}

impl Snapshots {
    /// Opens a snapshot.
    pub(super) fn open(&mut self, at: Stamp) {
        match self.open.binary_search_by_key(&at, |snapshot| snapshot.at) {
            Ok(place) => self.open[place].holders += 1,
            Err(place) => self.open.insert(place, OpenSnapshot { at, holders: 1, pinned: Vec::new() }),
        }
    }

    /// Closes a snapshot.
    pub(super) fn close(&mut self, at: Stamp) {
        let Ok(place) = self.open.binary_search_by_key(&at, |snapshot| snapshot.at) else {
            panic!("no snapshot is open at {}", at.position());
        };
        self.open[place].holders -= 1;
        if self.open[place].holders == 0 {
            let closed = self.open.remove(place);
            if !closed.pinned.is_empty() {
                self.released.push_back(closed.pinned);
            }
        }
    }

    /// Whether a snapshot is open at a position.
    pub(super) fn is_open(&self, at: Stamp) -> bool {
        self.open.binary_search_by_key(&at, |snapshot| snapshot.at).is_ok()
    }

    /// The newest open snapshot that sees a version written at `from` and superseded at `to`.
    #[inline]
    fn newest_between(&self, from: Stamp, to: Stamp) -> Option<usize> {
        // The usual cases first: no snapshot, or a version that is newer than all of them.
        if self.open.last().is_none_or(|newest| newest.at < from) {
            return None;
        }
        let place = self.open.partition_point(|snapshot| snapshot.at < to).checked_sub(1)?;
        (self.open[place].at >= from).then_some(place)
    }

    /// Whether a snapshot sees a version written at `from` and superseded at `to`.
    #[inline]
    pub(super) fn see(&self, from: Stamp, to: Stamp) -> bool {
        self.newest_between(from, to).is_some()
    }

    /// Keeps a version until no snapshot sees it any more; returns false if none does.
    pub(super) fn pin(&mut self, version: Pinned) -> bool {
        match self.newest_between(version.from, version.to) {
            Some(place) => {
                self.open[place].pinned.push(version);
                true
            }
            None => false,
        }
    }

    /// Takes a version that may have become invisible.
    pub(super) fn take_released(&mut self) -> Option<Pinned> {
        let list = self.released.front_mut()?;
        let taken = list.pop();
        if list.is_empty() {
            self.released.pop_front();
        }
        taken
    }
}
