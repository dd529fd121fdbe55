//! Finds records by the hash of their keys: open addressing with linear probing in slots of 8 bytes.

use super::records::RecordNumber;

/// Slots of an empty index, as a power of two.
const SLOT_BITS_MIN: u32 = 10;

/// What tells keys apart in the index: the upper half of the key's hash. Its upper bits choose the slot where probing
/// starts, so that the index can grow without the keys.
#[inline]
pub(super) fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The index.
pub(super) struct Index {
    /// `tag << 32 | record`, or 0 when free. A power of two of them.
    slots: Vec<u64>,
    slot_bits: u32,
    /// `2 * rows <= slots.len()`.
    rows: usize,
}

impl Default for Index {
    fn default() -> Index {
        Index { slots: vec![0; 1 << SLOT_BITS_MIN], slot_bits: SLOT_BITS_MIN, rows: 0 }
    }
}

impl Index {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Where probing for a tag starts.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        (tag >> (32 - self.slot_bits)) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// The slot and record that have the tag and pass the test.
    #[inline]
    pub(super) fn find(&self, tag: u32, is: impl Fn(RecordNumber) -> bool) -> Option<(usize, RecordNumber)> {
        let mut slot = self.home(tag);
        loop {
            let entry = self.slots[slot];
            if entry == 0 {
                return None;
            }
            let record = RecordNumber(entry as u32);
            if (entry >> 32) as u32 == tag && is(record) {
                return Some((slot, record));
            }
            slot = self.next(slot);
        }
    }

    /// Reads what a search for the tag reads first.
    #[inline]
    pub(super) fn touch(&self, tag: u32) -> u64 {
        self.slots[self.home(tag)]
    }

    /// Adds a record that is not there yet.
    pub(super) fn insert(&mut self, tag: u32, record: RecordNumber) {
        self.rows += 1;
        if self.rows * 2 > self.slots.len() {
            self.slot_bits += 1;
            assert!(self.slot_bits <= 32, "a plain store holds at most 2^31 rows");
            let old = std::mem::replace(&mut self.slots, vec![0; 1 << self.slot_bits]);
            old.into_iter().filter(|entry| *entry != 0).for_each(|entry| self.place(entry));
        }
        self.place(u64::from(tag) << 32 | u64::from(record.0));
    }

    fn place(&mut self, entry: u64) {
        let mut slot = self.home((entry >> 32) as u32);
        while self.slots[slot] != 0 {
            slot = self.next(slot);
        }
        self.slots[slot] = entry;
    }

    /// Points a slot to another record of the same key.
    pub(super) fn replace(&mut self, slot: usize, record: RecordNumber) {
        self.slots[slot] = self.slots[slot] >> 32 << 32 | u64::from(record.0);
    }

    /// Frees a slot and closes the gap, so that no later entry is cut off from where its probing starts.
    pub(super) fn remove(&mut self, slot: usize) {
        self.rows -= 1;
        let mask = self.slots.len() - 1;
        let (mut gap, mut next) = (slot, slot);
        self.slots[gap] = 0;
        loop {
            next = self.next(next);
            let entry = self.slots[next];
            if entry == 0 {
                return;
            }
            let from_home = next.wrapping_sub(self.home((entry >> 32) as u32)) & mask;
            if from_home >= next.wrapping_sub(gap) & mask {
                self.slots[gap] = entry;
                self.slots[next] = 0;
                gap = next;
            }
        }
    }
}
