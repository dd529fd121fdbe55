//! The arena: where keys and rows stand.
//!
//! A record is one version of a row: a header of 32 bytes, the key and the row. Records begin at the borders of cache
//! lines, so that the key check of a look-up brings the version and the start of the row into the cache with it. They are
//! addressed by a number of 32 bits, that of their first line, which is half the size of a pointer and cannot dangle.
//!
//! ```text
//! byte 0       2       6        8       16           18           20         22        24      28     32
//! ┌────────────┬───────┬────────┬───────┬────────────┬────────────┬──────────┬─────────┬───────┬──────┬─────┬─────┐
//! │ flags      │ index │ origin │ epoch │ key length │ row length │ lines    │ unused  │ older │ slot │ key │ row │
//! └────────────┴───────┴────────┴───────┴────────────┴────────────┴──────────┴─────────┴───────┴──────┴─────┴─────┘
//! ```
//!
//! Memory comes in zeroed segments of 16 MiB, of which the operating system lends pages only as they are touched. A freed
//! record is kept for the next record of the same size; it is never split or joined, so that a line at which a record once
//! began always is the beginning of a record, and the arena can be read from front to back.
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

pub(super) const LINE_BYTES: usize = 64;
const HEADER_BYTES: usize = 32;
const SEGMENT_LINES_LOG2: u32 = 18;
const SEGMENT_LINES: usize = 1 << SEGMENT_LINES_LOG2;
/// A line more than needed, to begin at the border of one.
const SEGMENT_BYTES: usize = (SEGMENT_LINES + 1) * LINE_BYTES;
const SEGMENTS_MAX: usize = 1 << (u32::BITS - SEGMENT_LINES_LOG2);
const RECORD_LINES_MAX: usize = (HEADER_BYTES + KEY_BYTES_MAX + ROW_BYTES_MAX).div_ceil(LINE_BYTES);

// A segment holds the largest record, and a header can state its size and its lengths.
const _: () = assert!(RECORD_LINES_MAX < SEGMENT_LINES);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(ROW_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(HEADER_BYTES <= LINE_BYTES);

/// Records by number.
pub(super) struct Arena {
    segments: Vec<Segment>,
    /// The first line that was never part of a record.
    next: usize,
    /// First free record by number of lines, or [`NONE`].
    free: Vec<u32>,
    /// Lines of all records that are not free.
    used_lines: usize,
}

/// `SEGMENT_LINES` lines of memory.
struct Segment {
    /// Of constant size, so that the compiler knows that a line is always in it.
    bytes: Box<[u8; SEGMENT_BYTES]>,
    /// Bytes before the first that stands at the border of a cache line.
    skew: usize,
}

impl Segment {
    fn new() -> Segment {
        let Ok(bytes) = vec![0; SEGMENT_BYTES].into_boxed_slice().try_into() else {
            unreachable!("the length is that of the type");
        };
        let bytes: Box<[u8; SEGMENT_BYTES]> = bytes;
        // Where memory lies affects speed and nothing else: any skew would do.
        let skew = bytes.as_ptr().align_offset(LINE_BYTES) % LINE_BYTES;
        Segment { bytes, skew }
    }

    /// Where the line of a record begins.
    #[inline(always)]
    fn offset(&self, record: u32) -> usize {
        // The remainders tell the compiler what the sum can be at most.
        self.skew % LINE_BYTES + record as usize % SEGMENT_LINES * LINE_BYTES
    }
}

/// Lines for a record with `bytes` of key and row. Large records are rounded up to one of eight sizes per power of
/// two, so that freed ones find a taker and rows can grow a little in place.
fn lines_for(bytes: usize) -> usize {
    let exact = (HEADER_BYTES + bytes).div_ceil(LINE_BYTES);
    let step = 1 << exact.ilog2().saturating_sub(3);
    exact.next_multiple_of(step).min(RECORD_LINES_MAX)
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

/// Whether two byte strings of equal length are equal. For keys this is faster than a call to compare memory.
#[inline(always)]
fn equal(left: &[u8], right: &[u8]) -> bool {
    match (left.last_chunk::<8>(), right.last_chunk::<8>()) {
        (Some(left_end), Some(right_end)) => {
            let words = left.chunks_exact(8).zip(right.chunks_exact(8));
            let differing = words.fold(0, |differing, (left, right)| differing | word(left) ^ word(right));
            differing | word(left_end) ^ word(right_end) == 0
        }
        _ => left == right,
    }
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Arena {
    /// An arena without records.
    pub(super) fn new() -> Arena {
        Arena { segments: Vec::new(), next: NONE as usize + 1, free: Vec::new(), used_lines: 0 }
    }

    /// Bytes of all records that are not free.
    pub(super) fn used_bytes(&self) -> usize {
        self.used_lines * LINE_BYTES
    }

    /// Makes a record. It has no older version, slot 0 and no flags.
    pub(super) fn allocate(&mut self, key: &[u8], row: &[u8], stamp: Stamp) -> u32 {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        assert!(row.len() <= ROW_BYTES_MAX, "a row of {} bytes", row.len());
        let lines = lines_for(key.len() + row.len());
        let record = self.take_free(lines).unwrap_or_else(|| self.take_fresh(lines));
        self.used_lines += lines;
        let (header, rest) = self.record_mut(record);
        header[..16].copy_from_slice(&stamp.to_bytes(0));
        header[16..18].copy_from_slice(&(key.len() as u16).to_le_bytes());
        header[18..20].copy_from_slice(&(row.len() as u16).to_le_bytes());
        header[20..22].copy_from_slice(&(lines as u16).to_le_bytes());
        header[22..].fill(0);
        rest[..key.len()].copy_from_slice(key);
        rest[key.len()..key.len() + row.len()].copy_from_slice(row);
        record
    }

    fn take_free(&mut self, lines: usize) -> Option<u32> {
        let record = *self.free.get(lines)?;
        if record == NONE {
            return None;
        }
        assert_eq!(self.flags(record), FREE, "record {record} is on a free list");
        self.free[lines] = self.older(record);
        Some(record)
    }

    fn take_fresh(&mut self, lines: usize) -> u32 {
        let left = SEGMENT_LINES - self.next % SEGMENT_LINES;
        if lines > left {
            // What is left of the segment becomes a free record, so that the records of a segment leave no gap.
            self.add_free(self.next as u32, left);
            self.next += left;
        }
        if self.next / SEGMENT_LINES == self.segments.len() {
            assert!(
                self.segments.len() < SEGMENTS_MAX,
                "the storage has used up its address space of 256 GiB"
            );
            self.segments.push(Segment::new());
        }
        let record = self.next as u32;
        self.next += lines;
        record
    }

    /// Frees a record: its number may be used again.
    pub(super) fn free(&mut self, record: u32) {
        assert_eq!(self.flags(record) & FREE, 0, "record {record} is freed twice");
        let lines = self.lines(record);
        self.used_lines -= lines;
        self.add_free(record, lines);
    }

    fn add_free(&mut self, record: u32, lines: usize) {
        if self.free.len() <= lines {
            self.free.resize(lines + 1, NONE);
        }
        let next = std::mem::replace(&mut self.free[lines], record);
        self.set_flags(record, FREE);
        self.set_older(record, next);
        let (header, _) = self.record_mut(record);
        header[20..22].copy_from_slice(&(lines as u16).to_le_bytes());
    }

    /// The line at which the first record begins.
    pub(super) fn first(&self) -> usize {
        NONE as usize + 1
    }

    /// The line after the last record.
    pub(super) fn end(&self) -> usize {
        self.next
    }

    /// The record that begins at a line, unless it is free, and the line after it.
    #[inline]
    pub(super) fn record_at(&self, line: usize) -> (Option<u32>, usize) {
        let record = line as u32;
        ((self.flags(record) & FREE == 0).then_some(record), line + self.lines(record))
    }

    /// The numbers of all records that are not free, in the order of memory.
    pub(super) fn records(&self) -> impl Iterator<Item = u32> {
        let mut line = self.first();
        std::iter::from_fn(move || {
            while line < self.next {
                let (record, after) = self.record_at(line);
                line = after;
                if record.is_some() {
                    return record;
                }
            }
            None
        })
    }

    #[inline(always)]
    fn segment(&self, record: u32) -> &Segment {
        &self.segments[(record >> SEGMENT_LINES_LOG2) as usize]
    }

    /// The header of a record.
    #[inline(always)]
    fn header(&self, record: u32) -> &[u8; HEADER_BYTES] {
        let segment = self.segment(record);
        match segment.bytes[segment.offset(record)..].first_chunk() {
            Some(header) => header,
            None => unreachable!("a segment holds whole lines"),
        }
    }

    /// The header of a record and everything after it.
    #[inline(always)]
    fn record(&self, record: u32) -> (&[u8; HEADER_BYTES], &[u8]) {
        let segment = self.segment(record);
        match segment.bytes[segment.offset(record)..].split_first_chunk() {
            Some(parts) => parts,
            None => unreachable!("a segment holds whole lines"),
        }
    }

    #[inline(always)]
    fn record_mut(&mut self, record: u32) -> (&mut [u8; HEADER_BYTES], &mut [u8]) {
        let segment = &mut self.segments[(record >> SEGMENT_LINES_LOG2) as usize];
        let offset = segment.offset(record);
        match segment.bytes[offset..].split_first_chunk_mut() {
            Some(parts) => parts,
            None => unreachable!("a segment holds whole lines"),
        }
    }

    /// Reads the first two lines of a record, to have them in the cache. What it returns means nothing.
    #[inline(always)]
    pub(super) fn touch(&self, record: u32) -> u8 {
        let segment = self.segment(record);
        let offset = segment.offset(record);
        segment.bytes[offset] ^ segment.bytes.get(offset + LINE_BYTES).unwrap_or(&0)
    }

    /// Whether the record has this key.
    #[inline(always)]
    pub(super) fn has_key(&self, record: u32, key: &[u8]) -> bool {
        let (header, rest) = self.record(record);
        usize::from(u16_at(header, 16)) == key.len()
            && rest.get(..key.len()).is_some_and(|own| equal(own, key))
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
        let capacity = self.lines(record) * LINE_BYTES;
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
        let header = self.header(record);
        Stamp::from_bytes(*header.first_chunk().unwrap_or(&[0; 16]))
    }

    /// Sets stamp and flags.
    #[inline]
    pub(super) fn set_stamp(&mut self, record: u32, stamp: Stamp, flags: u16) {
        let (header, _) = self.record_mut(record);
        header[..16].copy_from_slice(&stamp.to_bytes(flags));
    }

    /// Size of the record in lines.
    fn lines(&self, record: u32) -> usize {
        usize::from(u16_at(self.header(record), 20))
    }

    /// The flags.
    #[inline]
    pub(super) fn flags(&self, record: u32) -> u16 {
        u16_at(self.header(record), 0)
    }

    /// Sets the flags.
    pub(super) fn set_flags(&mut self, record: u32, flags: u16) {
        self.record_mut(record).0[..2].copy_from_slice(&flags.to_le_bytes());
    }

    /// The next older version, or [`NONE`].
    #[inline]
    pub(super) fn older(&self, record: u32) -> u32 {
        u32_at(self.header(record), 24)
    }

    /// Sets the next older version.
    pub(super) fn set_older(&mut self, record: u32, older: u32) {
        self.record_mut(record).0[24..28].copy_from_slice(&older.to_le_bytes());
    }

    /// For a newest version its place in the ordered index, for a superseded one the next newer version.
    #[inline]
    pub(super) fn slot(&self, record: u32) -> u32 {
        u32_at(self.header(record), 28)
    }

    /// Sets the slot.
    pub(super) fn set_slot(&mut self, record: u32, slot: u32) {
        self.record_mut(record).0[28..32].copy_from_slice(&slot.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;

    const STAMP: Stamp = Stamp::new(Position::LOADED);

    #[test]
    fn keys_are_compared_in_all_bytes_and_in_length() {
        let mut arena = Arena::new();
        for length in 0..40_usize {
            let key: Vec<u8> = (0..length as u8).collect();
            let record = arena.allocate(&key, b"row", STAMP);
            assert!(arena.has_key(record, &key));
            assert!(!arena.has_key(record, &[&key[..], b"r"].concat()), "a longer key");
            assert!(!arena.has_key(record, &key[..length.saturating_sub(1)]) || length == 0, "a shorter key");
            for changed in 0..length {
                let mut other = key.clone();
                other[changed] ^= 0x80;
                assert!(!arena.has_key(record, &other), "byte {changed} of {length}");
            }
        }
    }

    #[test]
    fn freed_memory_is_used_again() {
        let mut arena = Arena::new();
        let rows: Vec<Vec<u8>> = (0..1000).map(|number| vec![1; number * 7]).collect();
        let mut lines = 0;
        for round in 0..5 {
            let records: Vec<u32> = rows.iter().map(|row| arena.allocate(b"key", row, STAMP)).collect();
            assert!(records.iter().zip(&rows).all(|(record, row)| arena.row(*record) == row));
            assert_eq!(arena.records().count(), rows.len(), "all records are met from front to back");
            records.iter().for_each(|record| arena.free(*record));
            assert_eq!((arena.used_bytes(), arena.records().count()), (0, 0));
            if round == 0 {
                lines = arena.next;
            }
        }
        assert_eq!(arena.next, lines, "no round took fresh memory but the first");
    }

    #[test]
    fn records_of_many_segments_are_met_from_front_to_back() {
        let mut arena = Arena::new();
        let row = [7; 50_000];
        let mut records: Vec<u32> = (0..1000).map(|_| arena.allocate(b"key", &row, STAMP)).collect();
        assert!(arena.segments.len() >= 3, "the test reaches several segments");
        arena.free(records.remove(500));
        assert!(arena.records().eq(records.iter().copied()));
        assert!(records.iter().all(|record| arena.row(*record) == row && arena.key(*record) == b"key"));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_record_is_not_freed_twice() {
        let mut arena = Arena::new();
        let record = arena.allocate(b"key", b"row", STAMP);
        arena.free(record);
        arena.free(record);
    }
}
