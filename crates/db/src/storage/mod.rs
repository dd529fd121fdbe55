//! Storage: rows by key, with versions by position (Calvin §3: create, read, update, delete and nothing more; CAL-14).
//!
//! A storage holds the newest version of every row, and older ones only while an open snapshot can see them. It knows
//! keys, rows and positions; it names no engine, no lock and no message.

//!
//! Three things here are for durability. [`Storage::load`] takes the rows of a checkpoint, [`Storage::scan_records`] gives
//! them (the formats are in [`crate::checkpoint`]), and [`Storage::take_epoch_digests`] tells what was written, so that
//! replicas can find out that they differ.

pub mod conformance;
pub mod memory;
pub mod write_digests;

use std::ops::ControlFlow;

use crate::data::{Direction, KeyRange};
use crate::hash::Digest;
use crate::position::{Epoch, Position};

/// Handle to the newest version of a row; valid until that key is next put or deleted, or garbage is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId(pub u32);

/// What a scan does with each key and row, until it breaks.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// How far a scan of all records has come: see [`Storage::scan_records`]. What it counts is the storage's own affair, but
/// that 0 is the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordCursor(pub u64);

impl RecordCursor {
    /// Where a scan begins.
    pub const START: RecordCursor = RecordCursor(0);
}

/// What a scan of all records does with each key and row.
pub type VisitRecord<'a> = dyn FnMut(&[u8], &[u8]) + 'a;

/// What an engine asks of a storage.
///
/// Per key, writes come in ascending order of position; across keys they may come in any order. `hash` is always
/// [`crate::hash::key_hash`] of `key`. Reads take a position: [`Position::LATEST`], or that of an open snapshot.
pub trait Storage {
    /// Announces look-ups of the keys with these hashes. It changes nothing but how long they take: a storage may fetch from
    /// slower memory for many keys at once what would otherwise be waited for key by key. Best with 20 to 100 hashes.
    fn prefetch(&self, hashes: &[u64]) {
        let _ = hashes;
    }

    /// Finds the newest version of a row. A deleted row is not found.
    fn locate(&self, key: &[u8], hash: u64) -> Option<RecordId>;

    /// The bytes of a located row.
    fn row(&self, record: RecordId) -> &[u8];

    /// The row as of a position.
    fn get(&self, key: &[u8], hash: u64, at: Position) -> Option<&[u8]>;

    /// Inserts a row of an initial population or of a checkpoint, written at `position`, unless there is a version of the key;
    /// returns whether it did. It is not counted among the writes of [`take_epoch_digests`](Storage::take_epoch_digests).
    fn load(&mut self, key: &[u8], hash: u64, row: &[u8], position: Position) -> bool;

    /// Inserts a row or replaces it as a whole; returns where it now is.
    fn put(&mut self, key: &[u8], hash: u64, row: &[u8], position: Position) -> RecordId;

    /// The bytes of a located row, to be changed in place without changing their length. The version that open snapshots
    /// see is kept aside first.
    fn modify(&mut self, record: RecordId, position: Position) -> &mut [u8];

    /// As [`modify`](Storage::modify), for a caller that says what the change is. `change` counts for
    /// [`take_epoch_digests`](Storage::take_epoch_digests) in place of the new row, which then need not be read as a whole: of
    /// a row in slow memory most may never be needed. Equal changes must make equal rows of equal rows.
    fn modify_by(&mut self, record: RecordId, hash: u64, change: &[u8], position: Position) -> &mut [u8];

    /// Deletes a row if there is one.
    fn delete(&mut self, key: &[u8], hash: u64, position: Position);

    /// Visits the rows of a range in the order of keys as of a position, from the end of the range that the direction begins at,
    /// until the visitor breaks. In both directions it takes as long as the rows that were visited.
    ///
    /// Takes `&mut self` since a storage may build its order on demand.
    fn scan(&mut self, range: &KeyRange, direction: Direction, at: Position, visit: &mut Visit<'_>);

    /// From now on keeps what can be read at `at`, until the snapshot is closed. Versions overwritten before the call by
    /// writes after `at` are lost: open a snapshot before any later position is written.
    fn open_snapshot(&mut self, at: Position);

    /// Ends a snapshot. The watermark, below which no version is needed, moves to the oldest snapshot that is still open.
    fn close_snapshot(&mut self, at: Position);

    /// Frees versions and deleted rows that no snapshot can see, at most about `budget` of them; returns how many.
    fn collect_garbage(&mut self, budget: usize) -> usize;

    /// Digest of all rows of the tables that `include` allows, as of a position.
    fn digest(&self, at: Position, include: &dyn Fn(&[u8]) -> bool) -> Digest;

    /// Visits every row as of an open snapshot once, in no particular order, a slice at a time: no order is built and nothing
    /// is copied for it.
    ///
    /// The first slice begins at [`RecordCursor::START`], each other one where the slice before ended; `None` is the end.
    /// Between slices rows may be written, and snapshots opened, read and closed. A slice ends when it has gone through
    /// `budget_bytes` of memory and looked at one record at least.
    ///
    /// Writes at or before `at` must be finished before the first slice, and panic from then on until the snapshot is closed
    /// (CAL-93). One scan can be under way at a time: the start of one ends another, and so does the closing of its snapshot.
    ///
    /// # Panics
    ///
    /// If no snapshot is open at `at`, or the cursor is not where the scan under way has come to.
    fn scan_records(
        &mut self,
        at: Position,
        cursor: RecordCursor,
        budget_bytes: usize,
        visit: &mut VisitRecord<'_>,
    ) -> Option<RecordCursor>;

    /// Hands out and forgets the digests of what was written in each epoch up to `through`, in ascending order of epochs;
    /// epochs without writes are not among them. No write of these epochs may come later.
    ///
    /// The digest of an epoch is the sum of the [digests](write_digests::write_digest) of all calls of
    /// [`put`](Storage::put), [`modify`](Storage::modify), [`modify_by`](Storage::modify_by) and, if there was a row,
    /// [`delete`](Storage::delete). Storages
    /// that were given the same writes have the same digests, in whatever order the writes of different keys came; others
    /// have different ones, but for collisions of hashes. A storage may be made so that it keeps none, to save their cost.
    fn take_epoch_digests(&mut self, through: Epoch, out: &mut Vec<(Epoch, Digest)>);

    /// Sizes, for reports and tests.
    fn statistics(&self) -> Statistics;
}

/// Sizes of a storage.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Rows that the newest state has.
    pub rows: usize,
    /// Versions kept only for open snapshots, and deleted rows not yet freed.
    pub garbage: usize,
    /// Bytes set aside for keys, rows and their headers.
    pub record_bytes: usize,
    /// Bytes of the indexes.
    pub index_bytes: usize,
}
