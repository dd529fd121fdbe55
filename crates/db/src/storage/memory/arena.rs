//! The arena: where keys and rows stand.
//!
//! A record is one version of a row: a header of 32 bytes, the key and the row, together, so that the key check of a
//! look-up brings the version and the start of the row into the cache with it. Records are addressed by a number of
//! 32 bits, their offset in granules of 16 bytes, which is half the size of a pointer and cannot dangle.
//!
//! ```text
//! byte 0      8       12       14           16           18         20      22        24      28     32
//! ┌───────────┬───────┬────────┬────────────┬────────────┬──────────┬───────┬─────────┬───────┬──────┬─────┬─────┐
//! │ epoch     │ index │ origin │ key length │ row length │ granules │ flags │ (unused)│ older │ slot │ key │ row │
//! └───────────┴───────┴────────┴────────────┴────────────┴──────────┴───────┴─────────┴───────┴──────┴─────┴─────┘
//! ```
//!
//! Memory comes in zeroed segments, each twice as long as the one before, so that the segment of a record is found by
//! counting zero bits and the operating system lends pages only as they are touched. A freed record is kept for the
//! next record of the same size; it is never split or joined, so that a granule at which a record once began always is
//! the beginning of a record, and the arena can be read from front to back.

use crate::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::position::{Epoch, PartitionId, Position};

/// The number that no record has.
pub(super) const NONE: u32 = 0;

/// Bytes of a granule, the unit of addresses and sizes.
pub(super) const GRANULE_BYTES: usize = 16;

const HEADER_BYTES: usize = 32;
const SEGMENT_GRANULES_MIN_LOG2: u32 = 12;
const SEGMENT_GRANULES_MIN: u32 = 1 << SEGMENT_GRANULES_MIN_LOG2;
const HEADER_GRANULES: u32 = (HEADER_BYTES / GRANULE_BYTES) as u32;

/// Most granules of one record.
const RECORD_GRANULES_MAX: usize = (HEADER_BYTES + KEY_BYTES_MAX + ROW_BYTES_MAX).div_ceil(GRANULE_BYTES);

/// The record is the newest version, but the row is deleted.
pub(super) const DELETED: u16 = 1;
/// The record is a version that a newer one has taken the place of; its slot is the number of the newer record.
pub(super) const SUPERSEDED: u16 = 2;
/// The memory of the record is free; its `older` is the next free record of the same size.
const FREE: u16 = 4;

// The first segment holds the largest record, and a header can state its size and its lengths.
const _: () = assert!(RECORD_GRANULES_MAX < SEGMENT_GRANULES_MIN as usize);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(ROW_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(HEADER_BYTES.is_multiple_of(GRANULE_BYTES));

/// Records by number.
pub(super) struct Arena {
    /// Segment `i` has `SEGMENT_GRANULES_MIN << i` granules.
    segments: Vec<Box<[u8]>>,
    /// The first granule that was never part of a record.
    next: u32,
    /// First free record by number of granules, or [`NONE`].
    free: Vec<u32>,
    /// Granules of all records that are not free.
    used_granules: usize,
}

/// The segment of a record and its byte offset there.
#[inline]
fn place(record: u32) -> (usize, usize) {
    let shifted = u64::from(record) + u64::from(SEGMENT_GRANULES_MIN);
    let segment = shifted.ilog2() - SEGMENT_GRANULES_MIN_LOG2;
    let offset = shifted - (u64::from(SEGMENT_GRANULES_MIN) << segment);
    (segment as usize, offset as usize * GRANULE_BYTES)
}

/// The first granule after the first `segments` segments.
fn segments_end(segments: usize) -> u64 {
    (u64::from(SEGMENT_GRANULES_MIN) << segments) - u64::from(SEGMENT_GRANULES_MIN)
}

/// Granules for a record with `bytes` of key and row. Large records are rounded up to one of eight sizes per power of
/// two, so that freed ones find a taker and rows can grow a little in place.
fn granules_for(bytes: usize) -> u32 {
    let exact = (HEADER_BYTES + bytes).div_ceil(GRANULE_BYTES) as u32;
    let step = 1 << exact.ilog2().saturating_sub(3);
    exact.next_multiple_of(step).min(RECORD_GRANULES_MAX as u32)
}

impl Arena {
    /// An arena without records.
    pub(super) fn new() -> Arena {
        Arena { segments: Vec::new(), next: NONE + 1, free: Vec::new(), used_granules: 0 }
    }

    /// Bytes of all records that are not free.
    pub(super) fn used_bytes(&self) -> usize {
        self.used_granules * GRANULE_BYTES
    }

    /// Makes a record. It has no older version, slot 0 and no flags.
    pub(super) fn allocate(&mut self, key: &[u8], row: &[u8], position: Position) -> u32 {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        assert!(row.len() <= ROW_BYTES_MAX, "a row of {} bytes", row.len());
        let granules = granules_for(key.len() + row.len());
        let record = self.take_free(granules).unwrap_or_else(|| self.take_fresh(granules));
        self.used_granules += granules as usize;
        let bytes = self.bytes_mut(record);
        let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
        header[14..16].copy_from_slice(&(key.len() as u16).to_le_bytes());
        header[16..18].copy_from_slice(&(row.len() as u16).to_le_bytes());
        header[18..20].copy_from_slice(&(granules as u16).to_le_bytes());
        header[20..32].fill(0);
        rest[..key.len()].copy_from_slice(key);
        rest[key.len()..key.len() + row.len()].copy_from_slice(row);
        self.set_position(record, position);
        record
    }

    fn take_free(&mut self, granules: u32) -> Option<u32> {
        let record = *self.free.get(granules as usize)?;
        if record == NONE {
            return None;
        }
        assert_eq!(self.flags(record), FREE, "record {record} is on a free list");
        self.free[granules as usize] = self.older(record);
        Some(record)
    }

    fn take_fresh(&mut self, granules: u32) -> u32 {
        let end = segments_end(self.segments.len());
        if u64::from(self.next) + u64::from(granules) > end {
            // What is left of the segment becomes a free record, so that the records of a segment leave no gap.
            let rest = end.saturating_sub(u64::from(self.next)) as u32;
            if rest >= HEADER_GRANULES {
                self.write_free(self.next, rest);
            }
            let next_end = segments_end(self.segments.len() + 1);
            assert!(next_end <= u64::from(u32::MAX), "the storage has used up its address space of 64 GiB");
            self.segments.push(vec![0; (next_end - end) as usize * GRANULE_BYTES].into_boxed_slice());
            self.next = (end as u32).max(NONE + 1);
        }
        let record = self.next;
        self.next += granules;
        record
    }

    /// Frees a record: its number may be used again.
    pub(super) fn free(&mut self, record: u32) {
        assert_eq!(self.flags(record) & FREE, 0, "record {record} is freed twice");
        let granules = self.granules(record);
        self.used_granules -= granules as usize;
        self.write_free(record, granules);
    }

    fn write_free(&mut self, record: u32, granules: u32) {
        let class = granules as usize;
        if self.free.len() <= class {
            self.free.resize(class + 1, NONE);
        }
        let next = std::mem::replace(&mut self.free[class], record);
        let bytes = self.bytes_mut(record);
        bytes[18..20].copy_from_slice(&(granules as u16).to_le_bytes());
        self.set_flags(record, FREE);
        self.set_older(record, next);
    }

    /// The numbers of all records that are not free, in the order of memory.
    pub(super) fn records(&self) -> impl Iterator<Item = u32> {
        let mut at = NONE + 1;
        std::iter::from_fn(move || {
            while at < self.next {
                let (segment, offset) = place(at);
                let rest = (self.segments[segment].len() - offset) / GRANULE_BYTES;
                if rest < HEADER_GRANULES as usize {
                    at += rest as u32;
                    continue;
                }
                let record = at;
                at += self.granules(record);
                if self.flags(record) & FREE == 0 {
                    return Some(record);
                }
            }
            None
        })
    }

    #[inline]
    fn bytes(&self, record: u32) -> &[u8] {
        let (segment, offset) = place(record);
        &self.segments[segment][offset..]
    }

    #[inline]
    fn bytes_mut(&mut self, record: u32) -> &mut [u8] {
        let (segment, offset) = place(record);
        &mut self.segments[segment][offset..]
    }

    #[inline]
    fn u16_at(bytes: &[u8], at: usize) -> u16 {
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    }

    #[inline]
    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }

    /// The key. It is empty for superseded versions that were copied aside.
    #[inline]
    pub(super) fn key(&self, record: u32) -> &[u8] {
        let (header, rest) = self.bytes(record).split_at(HEADER_BYTES);
        &rest[..usize::from(Self::u16_at(header, 14))]
    }

    /// The row.
    #[inline]
    pub(super) fn row(&self, record: u32) -> &[u8] {
        let (header, rest) = self.bytes(record).split_at(HEADER_BYTES);
        let start = usize::from(Self::u16_at(header, 14));
        &rest[start..start + usize::from(Self::u16_at(header, 16))]
    }

    /// The row, to be changed without changing its length.
    #[inline]
    pub(super) fn row_mut(&mut self, record: u32) -> &mut [u8] {
        let (header, rest) = self.bytes_mut(record).split_at_mut(HEADER_BYTES);
        let start = usize::from(Self::u16_at(header, 14));
        &mut rest[start..start + usize::from(Self::u16_at(header, 16))]
    }

    /// Whether a row fits into the record and does not leave most of it unused.
    pub(super) fn row_fits(&self, record: u32, row_bytes: usize) -> bool {
        let needed = HEADER_BYTES + usize::from(Self::u16_at(self.bytes(record), 14)) + row_bytes;
        let capacity = self.granules(record) as usize * GRANULE_BYTES;
        needed <= capacity && needed * 2 >= capacity
    }

    /// Replaces the row by one that [fits](Arena::row_fits).
    pub(super) fn replace_row(&mut self, record: u32, row: &[u8]) {
        debug_assert!(self.row_fits(record, row.len()), "the caller has checked the size");
        let bytes = self.bytes_mut(record);
        let start = HEADER_BYTES + usize::from(Self::u16_at(bytes, 14));
        bytes[start..start + row.len()].copy_from_slice(row);
        bytes[16..18].copy_from_slice(&(row.len() as u16).to_le_bytes());
    }

    /// The position that wrote the version.
    #[inline]
    pub(super) fn position(&self, record: u32) -> Position {
        let bytes = self.bytes(record);
        let epoch = u64::from(Self::u32_at(bytes, 0)) | u64::from(Self::u32_at(bytes, 4)) << 32;
        Position {
            epoch: Epoch(epoch),
            origin: PartitionId(Self::u16_at(bytes, 12)),
            index: Self::u32_at(bytes, 8),
        }
    }

    /// Sets the position that wrote the version.
    #[inline]
    pub(super) fn set_position(&mut self, record: u32, position: Position) {
        let bytes = self.bytes_mut(record);
        bytes[0..8].copy_from_slice(&position.epoch.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&position.index.to_le_bytes());
        bytes[12..14].copy_from_slice(&position.origin.0.to_le_bytes());
    }

    /// Size of the record in granules.
    fn granules(&self, record: u32) -> u32 {
        u32::from(Self::u16_at(self.bytes(record), 18))
    }

    /// The flags: [`DELETED`], [`SUPERSEDED`].
    #[inline]
    pub(super) fn flags(&self, record: u32) -> u16 {
        Self::u16_at(self.bytes(record), 20)
    }

    /// Sets the flags.
    pub(super) fn set_flags(&mut self, record: u32, flags: u16) {
        self.bytes_mut(record)[20..22].copy_from_slice(&flags.to_le_bytes());
    }

    /// The next older version, or [`NONE`].
    #[inline]
    pub(super) fn older(&self, record: u32) -> u32 {
        Self::u32_at(self.bytes(record), 24)
    }

    /// Sets the next older version.
    pub(super) fn set_older(&mut self, record: u32, older: u32) {
        self.bytes_mut(record)[24..28].copy_from_slice(&older.to_le_bytes());
    }

    /// For a newest version its place in the ordered index, for a superseded one the next newer version.
    #[inline]
    pub(super) fn slot(&self, record: u32) -> u32 {
        Self::u32_at(self.bytes(record), 28)
    }

    /// Sets the slot.
    pub(super) fn set_slot(&mut self, record: u32, slot: u32) {
        self.bytes_mut(record)[28..32].copy_from_slice(&slot.to_le_bytes());
    }
}
