//! The scan of all records in the order of memory, while rows are written between its slices.
//!
//! A row is met at the record of its newest version, whose older versions are linked from it. Records stay where they are
//! as long as they live, with one exception: a row that outgrows its record gets another one. Such a row could be missed, if
//! it leaves what the scan has yet to go through, or be met twice, if it comes there. Both are noted here when it happens;
//! then every row is visited exactly once, however often it moves.
//!
//! Memory that was not in use when the scan began is left out. What is new there either did not exist at the snapshot or
//! has moved there, and that is noted.

use super::arena::{Arena, LINE_BYTES, SUPERSEDED};
use super::stamp::Stamp;
use super::version_at;
use crate::hash::FastSet;
use crate::storage::VisitRecord;

/// How far a scan has come.
pub(super) struct RecordScan {
    /// The position that it reads. No write at or before it may come any more.
    pub(super) at: Stamp,
    /// The line of memory that it looks at next.
    next: usize,
    /// The first line that it does not look at.
    end: usize,
    /// Versions that it sees of rows that left the part ahead before they were visited. A version is a record of its own by
    /// then, which stays until the snapshot is closed.
    moved: Vec<u32>,
    /// Records ahead to which a row has moved that was visited before, or is in `moved`.
    done: FastSet<u32>,
}

impl RecordScan {
    /// A scan that has visited nothing.
    pub(super) fn new(at: Stamp, arena: &Arena) -> RecordScan {
        RecordScan { at, next: arena.first(), end: arena.end(), moved: Vec::new(), done: FastSet::default() }
    }

    /// The line of memory that the scan looks at next.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// Goes on through about so many bytes of memory; returns whether the scan has come to its end.
    pub(super) fn slice(&mut self, arena: &Arena, budget_bytes: usize, visit: &mut VisitRecord<'_>) -> bool {
        let budget_lines = budget_bytes / LINE_BYTES;
        let mut lines = 0;
        while self.next < self.end {
            let (record, after) = arena.record_at(self.next);
            // Of free memory only the header is read.
            lines += if record.is_some() { after - self.next } else { 1 };
            self.next = after;
            if let Some(newest) = record
                && arena.flags(newest) & SUPERSEDED == 0
                && let Some(version) = version_at(arena, newest, self.at)
                && !self.done.contains(&newest)
            {
                visit(arena.key(newest), arena.row(version));
            }
            if lines >= budget_lines {
                return false;
            }
        }
        while let Some(version) = self.moved.pop() {
            visit(arena.key(newest_of(arena, version)), arena.row(version));
            lines += arena.record_at(version as usize).1 - version as usize;
            if lines >= budget_lines {
                return false;
            }
        }
        true
    }

    fn is_ahead(&self, record: u32) -> bool {
        (self.next..self.end).contains(&(record as usize))
    }

    /// Notes that the newest version of a row is in another record; `seen` is the older version that the scan sees.
    pub(super) fn relocated(&mut self, from: u32, to: u32, seen: Option<u32>) {
        let was_due = self.is_ahead(from) && !self.done.remove(&from);
        match (was_due, self.is_ahead(to)) {
            (true, false) => self.moved.extend(seen),
            (false, true) => {
                self.done.insert(to);
            }
            (true, true) | (false, false) => {}
        }
    }

    /// Notes that a row and all its versions are gone: another one may come to its record.
    pub(super) fn forgotten(&mut self, record: u32) {
        self.done.remove(&record);
    }
}

/// The record of the newest version, from that of any version of the row.
fn newest_of(arena: &Arena, version: u32) -> u32 {
    let mut record = version;
    while arena.flags(record) & SUPERSEDED != 0 {
        record = arena.slot(record);
    }
    record
}
