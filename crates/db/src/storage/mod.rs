//! Storage: rows by key, with versions by position (Calvin §3: create, read, update, delete and nothing more; CAL-14).
//!
//! A storage holds the newest version of every row, and older ones only while an open snapshot can see them. It knows
//! keys, rows and positions; it names no engine, no lock and no message.

pub mod conformance;
pub mod memory;

use std::ops::ControlFlow;

use crate::data::KeyRange;
use crate::hash::Digest;
use crate::position::Position;

/// Handle to the newest version of a row; valid until that key is next put or deleted, or garbage is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId(pub u32);

/// What a scan does with each key and row, until it breaks.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

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

    /// Inserts a row or replaces it as a whole; returns where it now is.
    fn put(&mut self, key: &[u8], hash: u64, row: &[u8], position: Position) -> RecordId;

    /// The bytes of a located row, to be changed in place without changing their length. The version that open snapshots
    /// see is kept aside first.
    fn modify(&mut self, record: RecordId, position: Position) -> &mut [u8];

    /// Deletes a row if there is one.
    fn delete(&mut self, key: &[u8], hash: u64, position: Position);

    /// Visits the rows of a range in ascending order of keys as of a position, until the visitor breaks.
    ///
    /// Takes `&mut self` since a storage may build its order on demand.
    fn scan(&mut self, range: &KeyRange, at: Position, visit: &mut Visit<'_>);

    /// From now on keeps what can be read at `at`, until the snapshot is closed. Versions overwritten before the call by
    /// writes after `at` are lost: open a snapshot before any later position is written.
    fn open_snapshot(&mut self, at: Position);

    /// Ends a snapshot. The watermark, below which no version is needed, moves to the oldest snapshot that is still open.
    fn close_snapshot(&mut self, at: Position);

    /// Frees versions and deleted rows that no snapshot can see, at most about `budget` of them; returns how many.
    fn collect_garbage(&mut self, budget: usize) -> usize;

    /// Digest of all rows of the tables that `include` allows, as of a position.
    fn digest(&self, at: Position, include: &dyn Fn(&[u8]) -> bool) -> Digest;

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
