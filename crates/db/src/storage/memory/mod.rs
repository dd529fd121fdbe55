//! The storage in memory, laid out for the memory hierarchy.
//!
//! - [`arena`]: records, each one version of a row: header, key and row side by side.
//! - [`hash_index`]: from the hash of a key to its newest version.
//! - [`ordered_index`]: the order of a table's keys, built when the table is scanned.
//! - [`snapshots`]: which old versions are kept, and for whom.
//! - [`record_scan`]: how far a scan of all records has come.
//! - [`stamp`]: positions as integers.
//!
//! Look-up, read and change of a row wait twice for memory: for the slot of the hash index and for the record. With
//! [`prefetch`](Storage::prefetch) these waits are shared by all keys announced together; a key announced with 49 others
//! costs less than half of one that is not.
//!
//! The newest version stays where it is when it is changed; the version that an open snapshot sees is copied aside and
//! linked from it. Versions that no snapshot sees are overwritten at once, so that without snapshots there is never any
//! garbage.

mod arena;
mod hash_index;
mod ordered_index;
mod record_scan;
mod snapshots;
mod stamp;

use std::hint::black_box;

use self::arena::{Arena, DELETED, NONE, SUPERSEDED};
use self::hash_index::HashIndex;
use self::ordered_index::OrderedIndex;
use self::record_scan::RecordScan;
use self::snapshots::{Pinned, Snapshots};
use self::stamp::Stamp;
use super::write_digests::{Change, WriteDigests};
use super::{RecordCursor, RecordId, Statistics, Storage, Visit, VisitRecord};
use crate::data::{Direction, KeyRange};
use crate::hash::{Digest, key_hash};
use crate::position::{Epoch, Position};

/// Keys that are fetched from memory together.
const PREFETCH_KEYS_MAX: usize = 64;

/// What a storage in memory is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether it keeps the digests of [`Storage::take_epoch_digests`]; else there are none. Usually it does.
    pub write_digests: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { write_digests: true }
    }
}

/// Rows and their versions in memory.
pub struct MemoryStorage {
    arena: Arena,
    index: HashIndex,
    /// By table number.
    orders: Vec<OrderedIndex>,
    snapshots: Snapshots,
    /// Keys whose newest version is a row.
    rows: usize,
    /// Superseded versions, and keys whose newest version is a deletion.
    garbage: usize,
    /// Room for the row of a version that is being copied.
    copied_row: Vec<u8>,
    /// The scan of all records that was last begun, until its snapshot is closed.
    record_scan: Option<RecordScan>,
    /// `None` if the storage is to keep none.
    write_digests: Option<WriteDigests>,
    /// The record of the last [`modify`](Storage::modify), if its write is not in the digests yet, else [`NONE`]. Its row is
    /// the caller's to change until the next call that changes the storage, and is known only then.
    modified: u32,
}

impl Default for MemoryStorage {
    fn default() -> MemoryStorage {
        MemoryStorage::new()
    }
}

/// The number of a key's table. Keys too short to have one are ordered as if zeros followed, as byte strings are.
fn table_of(key: &[u8]) -> usize {
    let byte = |at: usize| usize::from(key.get(at).copied().unwrap_or(0));
    byte(0) << 8 | byte(1)
}

impl MemoryStorage {
    /// A storage without rows, with the usual options.
    pub fn new() -> MemoryStorage {
        MemoryStorage::with_options(Options::default())
    }

    /// A storage without rows.
    pub fn with_options(options: Options) -> MemoryStorage {
        MemoryStorage {
            arena: Arena::new(),
            index: HashIndex::new(),
            orders: Vec::new(),
            snapshots: Snapshots::default(),
            rows: 0,
            garbage: 0,
            copied_row: Vec::new(),
            record_scan: None,
            write_digests: options.write_digests.then(WriteDigests::default),
            modified: NONE,
        }
    }

    /// The newest version of a key, deleted or not.
    #[inline(always)]
    fn find(&self, key: &[u8], hash: u64) -> Option<u32> {
        debug_assert_eq!(hash, key_hash(key), "the hash is that of the key");
        self.index.find(hash, |record| self.arena.has_key(record, key))
    }

    fn insert(&mut self, key: &[u8], hash: u64, row: &[u8], stamp: Stamp) -> u32 {
        self.assert_not_sealed(stamp);
        let record = self.arena.allocate(key, row, stamp);
        self.index.insert(hash, record);
        let table = table_of(key);
        if self.orders.len() <= table {
            self.orders.resize_with(table + 1, OrderedIndex::default);
        }
        self.orders[table].insert(record, &mut self.arena);
        self.rows += 1;
        record
    }

    /// Whether the newest version, written at `from`, must be kept when a write at `to` supersedes it.
    #[inline]
    fn must_keep(&self, from: Stamp, to: Stamp) -> bool {
        assert!(from <= to, "writes of one key ascend: {} comes after {}", to.position(), from.position());
        self.assert_not_sealed(to);
        self.snapshots.see(from, to)
    }

    /// Panics if a scan of all records relies on that no write at this position comes.
    #[inline]
    fn assert_not_sealed(&self, to: Stamp) {
        if let Some(scan) = &self.record_scan {
            assert!(
                to > scan.at,
                "a write at {} comes after the scan of all records at {} has begun",
                to.position(),
                scan.at.position()
            );
        }
    }

    /// Adds a write to the digests.
    #[inline]
    fn add_write(&mut self, position: Position, hash: u64, change: Change<'_>) {
        if let Some(digests) = &mut self.write_digests {
            digests.add(position, hash, change);
        }
    }

    /// Adds the last change in place to the digests, if that has been put off: it ends when another write begins.
    #[inline]
    fn end_modification(&mut self) {
        if self.modified != NONE {
            let record = std::mem::replace(&mut self.modified, NONE);
            let (row, position) = (self.arena.row(record), self.arena.stamp(record).0.position());
            if let Some(digests) = &mut self.write_digests {
                digests.add(position, key_hash(self.arena.key(record)), Change::Row(row));
            }
        }
    }

    /// Makes a new version of a row, with the same bytes.
    #[inline]
    fn renew(&mut self, newest: u32, to: Stamp) {
        let (from, flags) = self.arena.stamp(newest);
        assert_eq!(flags, 0, "{:?} is the newest version of a row", RecordId(newest));
        if self.must_keep(from, to) {
            self.keep_copy(newest, to);
        }
        self.arena.set_stamp(newest, to, 0);
    }

    /// Keeps a version that has just become the next older one of `newer`.
    fn pin(&mut self, record: u32, newer: u32, to: Stamp) {
        let (from, flags) = self.arena.stamp(record);
        self.arena.set_flags(record, flags | SUPERSEDED);
        self.arena.set_slot(record, newer);
        self.arena.set_older(newer, record);
        let older = self.arena.older(record);
        if older != NONE {
            self.arena.set_slot(older, record);
        }
        self.garbage += 1;
        let pinned = self.snapshots.pin(Pinned { record, from, to });
        assert!(pinned, "only what a snapshot sees is kept");
    }

    /// Copies the newest version aside, where it is the next older version.
    #[cold]
    fn keep_copy(&mut self, newest: u32, to: Stamp) {
        let (from, flags) = self.arena.stamp(newest);
        // The copy needs no key, as it is reached from the newest version only, and no row if it is a deletion.
        let mut row = std::mem::take(&mut self.copied_row);
        row.clear();
        row.extend_from_slice(if flags & DELETED == 0 { self.arena.row(newest) } else { &[] });
        let copy = self.arena.allocate(&[], &row, from);
        self.copied_row = row;
        self.arena.set_flags(copy, flags);
        self.arena.set_older(copy, self.arena.older(newest));
        self.pin(copy, newest, to);
    }

    /// Gives a row another record, since the new row does not fit into the old one.
    fn relocate(&mut self, newest: u32, hash: u64, row: &[u8], to: Stamp, keep: bool) -> u32 {
        let key = self.arena.key(newest).to_vec();
        let record = self.arena.allocate(&key, row, to);
        self.index.replace(hash, newest, record);
        self.orders[table_of(&key)].replace(newest, record, &mut self.arena);
        if keep {
            self.pin(newest, record, to);
        } else {
            let older = self.arena.older(newest);
            self.arena.set_older(record, older);
            if older != NONE {
                self.arena.set_slot(older, record);
            }
            self.arena.free(newest);
        }
        if let Some(scan) = &mut self.record_scan {
            scan.relocated(newest, record, version_at(&self.arena, record, scan.at));
        }
        record
    }

    /// Makes a row the newest version of its key; returns its record.
    fn place(&mut self, key: &[u8], hash: u64, row: &[u8], to: Stamp) -> u32 {
        let Some(newest) = self.find(key, hash) else {
            return self.insert(key, hash, row, to);
        };
        let (from, flags) = self.arena.stamp(newest);
        if flags & DELETED != 0 {
            self.rows += 1;
            self.garbage -= 1;
        }
        let keep = self.must_keep(from, to);
        if !self.arena.row_fits(newest, row.len()) {
            return self.relocate(newest, hash, row, to, keep);
        }
        if keep {
            self.keep_copy(newest, to);
        }
        self.arena.replace_row(newest, row);
        self.arena.set_stamp(newest, to, 0);
        newest
    }

    /// Forgets a key, whose newest version has no older one.
    fn forget(&mut self, newest: u32, hash: u64) {
        debug_assert_eq!(self.arena.older(newest), NONE, "older versions are freed first");
        self.index.remove(hash, newest);
        let table = table_of(self.arena.key(newest));
        self.orders[table].remove(newest, &mut self.arena);
        self.arena.free(newest);
        if let Some(scan) = &mut self.record_scan {
            scan.forgotten(newest);
        }
    }

    /// Frees a superseded version that no snapshot sees; and the deletion of its row, if it was the last to need it.
    /// Returns how many records were freed.
    fn free_version(&mut self, record: u32) -> usize {
        let (newer, older) = (self.arena.slot(record), self.arena.older(record));
        assert_eq!(self.arena.older(newer), record, "versions are linked in both directions");
        self.arena.set_older(newer, older);
        if older != NONE {
            self.arena.set_slot(older, newer);
        }
        self.arena.free(record);
        self.garbage -= 1;
        if older != NONE || self.arena.flags(newer) != DELETED {
            return 1;
        }
        self.forget(newer, key_hash(self.arena.key(newer)));
        self.garbage -= 1;
        2
    }
}

/// The version of a row that is seen at a position, from the newest one.
#[inline]
fn version_at(arena: &Arena, newest: u32, at: Stamp) -> Option<u32> {
    let (mut record, (mut stamp, mut flags)) = (newest, arena.stamp(newest));
    while stamp > at {
        record = arena.older(record);
        if record == NONE {
            return None;
        }
        (stamp, flags) = arena.stamp(record);
    }
    (flags & DELETED == 0).then_some(record)
}

impl Storage for MemoryStorage {
    fn prefetch(&self, hashes: &[u64]) {
        // Passes of short, independent steps, so that the processor waits for the memory of many keys at once. What the
        // passes read goes through `black_box`, lest the compiler leave out reads whose values nobody needs.
        for hashes in hashes.chunks(PREFETCH_KEYS_MAX) {
            black_box(hashes.iter().fold(0, |sum, hash| sum ^ self.index.touch(*hash)));
            let mut records = [NONE; PREFETCH_KEYS_MAX];
            for (record, hash) in records.iter_mut().zip(hashes) {
                *record = self.index.find(*hash, |_| true).unwrap_or(NONE);
            }
            let found = records.iter().filter(|record| **record != NONE);
            black_box(found.fold(0, |sum, record| sum ^ self.arena.touch(*record)));
        }
    }

    #[inline]
    fn locate(&self, key: &[u8], hash: u64) -> Option<RecordId> {
        let newest = self.find(key, hash)?;
        (self.arena.flags(newest) == 0).then_some(RecordId(newest))
    }

    #[inline]
    fn row(&self, record: RecordId) -> &[u8] {
        debug_assert_eq!(self.arena.flags(record.0), 0, "{record:?} is the newest version of a row");
        self.arena.row(record.0)
    }

    #[inline]
    fn get(&self, key: &[u8], hash: u64, at: Position) -> Option<&[u8]> {
        let newest = self.find(key, hash)?;
        version_at(&self.arena, newest, Stamp::new(at)).map(|version| self.arena.row(version))
    }

    fn load(&mut self, key: &[u8], hash: u64, row: &[u8], position: Position) -> bool {
        let is_new = self.find(key, hash).is_none();
        if is_new {
            self.insert(key, hash, row, Stamp::new(position));
        }
        is_new
    }

    fn put(&mut self, key: &[u8], hash: u64, row: &[u8], position: Position) -> RecordId {
        self.end_modification();
        let record = self.place(key, hash, row, Stamp::new(position));
        self.add_write(position, hash, Change::Row(row));
        RecordId(record)
    }

    #[inline]
    fn modify(&mut self, record: RecordId, position: Position) -> &mut [u8] {
        self.end_modification();
        self.renew(record.0, Stamp::new(position));
        if self.write_digests.is_some() {
            self.modified = record.0;
        }
        self.arena.row_mut(record.0)
    }

    #[inline]
    fn modify_by(&mut self, record: RecordId, hash: u64, change: &[u8], position: Position) -> &mut [u8] {
        debug_assert_eq!(hash, key_hash(self.arena.key(record.0)), "the hash is that of the key");
        self.end_modification();
        self.renew(record.0, Stamp::new(position));
        self.add_write(position, hash, Change::InPlace(change));
        self.arena.row_mut(record.0)
    }

    fn delete(&mut self, key: &[u8], hash: u64, position: Position) {
        self.end_modification();
        let Some(newest) = self.find(key, hash) else { return };
        let (from, flags) = self.arena.stamp(newest);
        if flags & DELETED != 0 {
            return;
        }
        let to = Stamp::new(position);
        let keep = self.must_keep(from, to);
        self.add_write(position, hash, Change::Deletion);
        self.rows -= 1;
        if keep {
            self.keep_copy(newest, to);
        } else if self.arena.older(newest) == NONE {
            self.forget(newest, hash);
            return;
        }
        self.garbage += 1;
        self.arena.set_stamp(newest, to, DELETED);
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, at: Position, visit: &mut Visit<'_>) {
        if range.is_empty() || self.orders.is_empty() {
            return;
        }
        let at = Stamp::new(at);
        let (first, last) = (table_of(&range.start), table_of(&range.end));
        for table in direction.of_ascending(first..=last.min(self.orders.len() - 1)) {
            let open_ended = (table > first, table < last);
            let mut visit_record = |record: u32, arena: &Arena| match version_at(arena, record, at) {
                Some(version) => visit(arena.key(record), arena.row(version)).is_continue(),
                None => true,
            };
            if !self.orders[table].scan(range, direction, open_ended, &mut self.arena, &mut visit_record) {
                return;
            }
        }
    }

    fn open_snapshot(&mut self, at: Position) {
        self.snapshots.open(Stamp::new(at));
    }

    fn close_snapshot(&mut self, at: Position) {
        let at = Stamp::new(at);
        self.snapshots.close(at);
        if !self.snapshots.is_open(at) {
            self.record_scan.take_if(|scan| scan.at == at);
        }
    }

    fn collect_garbage(&mut self, budget: usize) -> usize {
        let (mut looked_at, mut freed) = (0, 0);
        while looked_at < budget
            && let Some(version) = self.snapshots.take_released()
        {
            looked_at += 1;
            if !self.snapshots.pin(version) {
                freed += self.free_version(version.record);
            }
        }
        freed
    }

    fn scan_records(
        &mut self,
        at: Position,
        cursor: RecordCursor,
        budget_bytes: usize,
        visit: &mut VisitRecord<'_>,
    ) -> Option<RecordCursor> {
        assert!(self.snapshots.is_open(Stamp::new(at)), "no snapshot is open at {at}");
        if cursor == RecordCursor::START {
            self.record_scan = Some(RecordScan::new(Stamp::new(at), &self.arena));
        }
        let Some(scan) = self.record_scan.as_mut().filter(|scan| scan.at == Stamp::new(at)) else {
            panic!("no scan of all records is under way at {at}: begin one");
        };
        let expected = RecordCursor(scan.next() as u64);
        assert!(
            cursor == expected || cursor == RecordCursor::START,
            "the scan is at {expected:?}, not {cursor:?}"
        );
        if scan.slice(&self.arena, budget_bytes, visit) {
            return None;
        }
        Some(RecordCursor(scan.next() as u64))
    }

    fn take_epoch_digests(&mut self, through: Epoch, out: &mut Vec<(Epoch, Digest)>) {
        self.end_modification();
        if let Some(digests) = &mut self.write_digests {
            digests.take(through, out);
        }
    }

    fn digest(&self, at: Position, include: &dyn Fn(&[u8]) -> bool) -> Digest {
        let at = Stamp::new(at);
        let mut digest = Digest::default();
        for newest in self.arena.records() {
            if self.arena.flags(newest) & SUPERSEDED != 0 {
                continue;
            }
            let key = self.arena.key(newest);
            if include(key)
                && let Some(version) = version_at(&self.arena, newest, at)
            {
                digest.add(key, self.arena.row(version));
            }
        }
        digest
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            rows: self.rows,
            garbage: self.garbage,
            record_bytes: self.arena.used_bytes(),
            index_bytes: self.index.bytes() + self.orders.iter().map(OrderedIndex::bytes).sum::<usize>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_may_keep_no_digests_of_writes() {
        for write_digests in [true, false] {
            let mut storage = MemoryStorage::with_options(Options { write_digests });
            let key = b"\0\x01key";
            let hash = key_hash(key);
            let position = Position { epoch: Epoch(1), ..Position::LOADED };
            let record = storage.put(key, hash, b"row", position);
            storage.modify(record, position)[0] = b'R';
            storage.modify_by(record, hash, b"change", position)[1] = b'O';
            storage.delete(key, hash, position);
            let mut digests = Vec::new();
            storage.take_epoch_digests(Epoch(1), &mut digests);
            assert_eq!(digests.len(), usize::from(write_digests));
        }
    }
}
