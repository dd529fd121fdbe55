//! The arena: where keys and rows stand.
//!
//! A record is one version of a row: a header of 32 bytes, the key and the row, together, so that the key check of a
//! look-up brings the version and the start of the row into the cache with it. Records are addressed by a number of
//! 32 bits, their offset in granules of 16 bytes, which is half the size of a pointer and cannot dangle.
//!
//! ```text
//! byte 0       2       6        8       16           18           20         22        24      28     32
//! ┌────────────┬───────┬────────┬───────┬────────────┬────────────┬──────────┬─────────┬───────┬──────┬─────┬─────┐
//! │ flags      │ index │ origin │ epoch │ key length │ row length │ granules │ unused  │ older │ slot │ key │ row │
//! └────────────┴───────┴────────┴───────┴────────────┴────────────┴──────────┴─────────┴───────┴──────┴─────┴─────┘
//! ```
//!
//! Memory comes in zeroed segments of 16 MiB, of which the operating system lends pages only as they are touched; the first
//! segment grows by doubling, so that a small storage stays small. A freed record is kept for the next record of
//! the same size; it is never split or joined, so that a granule at which a record once began always is the beginning
//! of a record, and the arena can be read from front to back.
//!
//! What is read on the hot path is written for few instructions: while a look-up waits for memory, the processor runs
//! ahead into the next one only as far as its reorder buffer goes, some 300 instructions.

use super::stamp::Stamp;
use crate::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};

/// The number that no record has.
pub(super) const NONE: u32 = 0;

/// The row is deleted by this version.
pub(super) const DELETED: u16 = 1;
/// A newer version has taken the place of this one; its slot is the number of the newer record.
pub(super) const SUPERSEDED: u16 = 2;
/// The memory is free; `older` is the next free record of the same size.
const FREE: u16 = 4;

const GRANULE_BYTES: usize = 16;
const HEADER_BYTES: usize = 32;
const HEADER_GRANULES: usize = HEADER_BYTES / GRANULE_BYTES;
const SEGMENT_GRANULES_LOG2: u32 = 20;
const SEGMENT_GRANULES: usize = 1 << SEGMENT_GRANULES_LOG2;
const SEGMENT_BYTES: usize = SEGMENT_GRANULES * GRANULE_BYTES;
const SEGMENTS_MAX: usize = 1 << (u32::BITS - SEGMENT_GRANULES_LOG2);
/// Bytes that the first segment begins with.
const FIRST_SEGMENT_BYTES_MIN: usize = 64 * 1024;
const RECORD_GRANULES_MAX: usize = (HEADER_BYTES + KEY_BYTES_MAX + ROW_BYTES_MAX).div_ceil(GRANULE_BYTES);

// A segment holds the largest record, and a header can state its size and its lengths.
const _: () = assert!(RECORD_GRANULES_MAX < FIRST_SEGMENT_BYTES_MIN / GRANULE_BYTES);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(ROW_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(HEADER_BYTES.is_multiple_of(GRANULE_BYTES));

/// Records by number.
pub(super) struct Arena {
    /// All of [`SEGMENT_BYTES`] but the first, which may be shorter while it is the only one.
    segments: Vec<Vec<u8>>,
    /// The first granule that was never part of a record.
    next: usize,
    /// First free record by number of granules, or [`NONE`].
    free: Vec<u32>,
    /// Granules of all records that are not free.
    used_granules: usize,
}

/// The segment of a record and its byte offset there.
#[inline]
fn place(record: u32) -> (usize, usize) {
    let granule = record as usize;
    (granule >> SEGMENT_GRANULES_LOG2, granule % SEGMENT_GRANULES * GRANULE_BYTES)
}

/// Granules for a record with `bytes` of key and row. Large records are rounded up to one of eight sizes per power of
/// two, so that freed ones find a taker and rows can grow a little in place.
fn granules_for(bytes: usize) -> usize {
    let exact = (HEADER_BYTES + bytes).div_ceil(GRANULE_BYTES);
    let step = 1 << exact.ilog2().saturating_sub(3);
    exact.next_multiple_of(step).min(RECORD_GRANULES_MAX)
}

#[inline]
fn u16_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Where the key begins, where it ends and the row begins, and where the row ends, after the header.
#[inline]
fn extents(header: &[u8; HEADER_BYTES]) -> (usize, usize) {
    let key = usize::from(u16_at(header, 16));
    (key, key + usize::from(u16_at(header, 18)))
}

impl Arena {
    /// An arena without records.
    pub(super) fn new() -> Arena {
        Arena { segments: Vec::new(), next: NONE as usize + 1, free: Vec::new(), used_granules: 0 }
    }

    /// Bytes of all records that are not free.
    pub(super) fn used_bytes(&self) -> usize {
        self.used_granules * GRANULE_BYTES
    }

    /// Makes a record. It has no older version, slot 0 and no flags.
    pub(super) fn allocate(&mut self, key: &[u8], row: &[u8], stamp: Stamp) -> u32 {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        assert!(row.len() <= ROW_BYTES_MAX, "a row of {} bytes", row.len());
        let granules = granules_for(key.len() + row.len());
        let record = self.take_free(granules).unwrap_or_else(|| self.take_fresh(granules));
        self.used_granules += granules;
        let (header, rest) = self.record_mut(record);
        header[..16].copy_from_slice(&stamp.to_bytes(0));
        header[16..18].copy_from_slice(&(key.len() as u16).to_le_bytes());
        header[18..20].copy_from_slice(&(row.len() as u16).to_le_bytes());
        header[20..22].copy_from_slice(&(granules as u16).to_le_bytes());
        header[22..].fill(0);
        rest[..key.len()].copy_from_slice(key);
        rest[key.len()..key.len() + row.len()].copy_from_slice(row);
        record
    }

    fn take_free(&mut self, granules: usize) -> Option<u32> {
        let record = *self.free.get(granules)?;
        if record == NONE {
            return None;
        }
        assert_eq!(self.flags(record), FREE, "record {record} is on a free list");
        self.free[granules] = self.older(record);
        Some(record)
    }

    fn take_fresh(&mut self, granules: usize) -> u32 {
        let left = SEGMENT_GRANULES - self.next % SEGMENT_GRANULES;
        if granules > left {
            // What is left of the segment becomes a free record, so that the records of a segment leave no gap.
            if left >= HEADER_GRANULES {
                self.add_free(self.next as u32, left);
            }
            self.next += left;
        }
        let segment = self.next / SEGMENT_GRANULES;
        let end = (self.next % SEGMENT_GRANULES + granules) * GRANULE_BYTES;
        if self.segments.get(segment).is_none_or(|segment| segment.len() < end) {
            self.grow(segment, end);
        }
        let record = self.next as u32;
        self.next += granules;
        record
    }

    #[cold]
    fn grow(&mut self, segment: usize, end: usize) {
        assert!(segment < SEGMENTS_MAX, "the storage has used up its address space of 64 GiB");
        if segment > 0 {
            self.segments.push(vec![0; SEGMENT_BYTES]);
            return;
        }
        if self.segments.is_empty() {
            self.segments.push(vec![0; FIRST_SEGMENT_BYTES_MIN]);
        }
        let first = &mut self.segments[0];
        if first.len() < end {
            first.resize((first.len() * 2).min(SEGMENT_BYTES), 0);
        }
    }

    /// Frees a record: its number may be used again.
    pub(super) fn free(&mut self, record: u32) {
        assert_eq!(self.flags(record) & FREE, 0, "record {record} is freed twice");
        let granules = self.granules(record);
        self.used_granules -= granules;
        self.add_free(record, granules);
    }

    fn add_free(&mut self, record: u32, granules: usize) {
        if self.free.len() <= granules {
            self.free.resize(granules + 1, NONE);
        }
        let next = std::mem::replace(&mut self.free[granules], record);
        self.set_flags(record, FREE);
        self.set_older(record, next);
        let (header, _) = self.record_mut(record);
        header[20..22].copy_from_slice(&(granules as u16).to_le_bytes());
    }

    /// The numbers of all records that are not free, in the order of memory.
    pub(super) fn records(&self) -> impl Iterator<Item = u32> {
        let mut at = NONE as usize + 1;
        std::iter::from_fn(move || {
            while at < self.next {
                let left = SEGMENT_GRANULES - at % SEGMENT_GRANULES;
                if left < HEADER_GRANULES {
                    at += left;
                    continue;
                }
                let record = at as u32;
                at += self.granules(record);
                if self.flags(record) & FREE == 0 {
                    return Some(record);
                }
            }
            None
        })
    }

    /// The header of a record and everything after it.
    #[inline]
    fn record(&self, record: u32) -> (&[u8; HEADER_BYTES], &[u8]) {
        let (segment, offset) = place(record);
        match self.segments[segment][offset..].split_first_chunk() {
            Some(parts) => parts,
            None => unreachable!("a record has a header"),
        }
    }

    #[inline]
    fn record_mut(&mut self, record: u32) -> (&mut [u8; HEADER_BYTES], &mut [u8]) {
        let (segment, offset) = place(record);
        match self.segments[segment][offset..].split_first_chunk_mut() {
            Some(parts) => parts,
            None => unreachable!("a record has a header"),
        }
    }

    /// Reads what a look-up of the record will read, to have it in the cache. Which bytes it returns means nothing.
    #[inline]
    pub(super) fn touch(&self, record: u32) -> u8 {
        let (segment, offset) = place(record);
        let bytes = &self.segments[segment][offset..];
        // Header, key and the start of the row lie on two lines more often than on one.
        bytes[0] ^ bytes.get(64).unwrap_or(&0)
    }

    /// Whether the record has this key.
    #[inline]
    pub(super) fn has_key(&self, record: u32, key: &[u8]) -> bool {
        let (header, rest) = self.record(record);
        usize::from(u16_at(header, 16)) == key.len() && rest.starts_with(key)
    }

    /// The key. It is empty for superseded versions that were copied aside.
    #[inline]
    pub(super) fn key(&self, record: u32) -> &[u8] {
        let (header, rest) = self.record(record);
        &rest[..extents(header).0]
    }

    /// The row.
    #[inline]
    pub(super) fn row(&self, record: u32) -> &[u8] {
        let (header, rest) = self.record(record);
        let (start, end) = extents(header);
        &rest[start..end]
    }

    /// The row, to be changed without changing its length.
    #[inline]
    pub(super) fn row_mut(&mut self, record: u32) -> &mut [u8] {
        let (header, rest) = self.record_mut(record);
        let (start, end) = extents(header);
        &mut rest[start..end]
    }

    /// Whether a row fits into the record and does not leave most of it unused.
    pub(super) fn row_fits(&self, record: u32, row_bytes: usize) -> bool {
        let (header, _) = self.record(record);
        let needed = HEADER_BYTES + extents(header).0 + row_bytes;
        let capacity = self.granules(record) * GRANULE_BYTES;
        needed <= capacity && needed * 2 >= capacity
    }

    /// Replaces the row by one that [fits](Arena::row_fits).
    pub(super) fn replace_row(&mut self, record: u32, row: &[u8]) {
        debug_assert!(self.row_fits(record, row.len()), "the caller has checked the size");
        let (header, rest) = self.record_mut(record);
        header[18..20].copy_from_slice(&(row.len() as u16).to_le_bytes());
        let (start, end) = extents(header);
        rest[start..end].copy_from_slice(row);
    }

    /// The stamp of the position that wrote the version, and the flags: [`DELETED`], [`SUPERSEDED`].
    #[inline]
    pub(super) fn stamp(&self, record: u32) -> (Stamp, u16) {
        let (header, _) = self.record(record);
        Stamp::from_bytes(*header.first_chunk().unwrap_or(&[0; 16]))
    }

    /// Sets stamp and flags.
    #[inline]
    pub(super) fn set_stamp(&mut self, record: u32, stamp: Stamp, flags: u16) {
        let (header, _) = self.record_mut(record);
        header[..16].copy_from_slice(&stamp.to_bytes(flags));
    }

    /// Size of the record in granules.
    fn granules(&self, record: u32) -> usize {
        usize::from(u16_at(self.record(record).0, 20))
    }

    /// The flags.
    #[inline]
    pub(super) fn flags(&self, record: u32) -> u16 {
        u16_at(self.record(record).0, 0)
    }

    /// Sets the flags.
    pub(super) fn set_flags(&mut self, record: u32, flags: u16) {
        self.record_mut(record).0[..2].copy_from_slice(&flags.to_le_bytes());
    }

    /// The next older version, or [`NONE`].
    #[inline]
    pub(super) fn older(&self, record: u32) -> u32 {
        u32_at(self.record(record).0, 24)
    }

    /// Sets the next older version.
    pub(super) fn set_older(&mut self, record: u32, older: u32) {
        self.record_mut(record).0[24..28].copy_from_slice(&older.to_le_bytes());
    }

    /// For a newest version its place in the ordered index, for a superseded one the next newer version.
    #[inline]
    pub(super) fn slot(&self, record: u32) -> u32 {
        u32_at(self.record(record).0, 28)
    }

    /// Sets the slot.
    pub(super) fn set_slot(&mut self, record: u32, slot: u32) {
        self.record_mut(record).0[28..32].copy_from_slice(&slot.to_le_bytes());
    }
}
