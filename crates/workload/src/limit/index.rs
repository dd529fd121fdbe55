//! Finds records by the hash of their keys: open addressing with 8-byte slots.
//!
//! Eight slots make a bucket, one cache line. Keys that differ only in the last three bits share their home bucket, each in
//! a slot of its own: the lines of an order are inserted into two cache lines and not into ten. Probing goes from bucket
//! to bucket and keeps the place within it.

use super::records::RecordNumber;

/// Slots of a bucket.
const BUCKET_SLOTS: usize = 8;

/// Slots of an empty index, as a power of two.
const SLOT_BITS_MIN: u32 = 10;

/// What tells keys apart in the index, in 32 bits: the hash of all but the last three bits of the key, whose upper
/// bits choose the home bucket, and below it three bits for the place within a bucket.
#[inline]
pub(super) fn tag(key: &[u8]) -> u32 {
    let (last, start) = key.split_last().unwrap_or((&0, &[]));
    let group = ordain_db::hash::key_hash(start) ^ u64::from(last >> 3);
    let hash = (group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
    // Places are changed by the hash: keys that all end alike must not crowd one place.
    hash ^ u32::from(last & 7)
}

/// The index.
pub(super) struct Index {
    /// `tag << 32 | record`, or 0. A power of two of them.
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
    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Where probing for a tag starts.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        let bucket = tag >> (32 - self.slot_bits);
        (bucket & !7 | tag & 7) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + BUCKET_SLOTS) & (self.slots.len() - 1)
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

    /// The first record with the tag, if any: most likely that of its key.
    #[inline]
    pub(super) fn probable(&self, tag: u32) -> Option<RecordNumber> {
        self.find(tag, |_| true).map(|(_, record)| record)
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

    /// Empties a slot and closes the gap, so that no later entry is cut off from its home.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of every shape spread over the slots: as many first probes hit as with a random hash.
    #[test]
    fn homes_are_spread() {
        let shapes: [fn(u32) -> Vec<u8>; 4] = [
            |number| number.to_be_bytes().to_vec(),
            |number| (number * 8).to_be_bytes().to_vec(),
            |number| [&number.to_be_bytes()[..], &[0, 0]].concat(),
            |number| u64::from(number).to_le_bytes().to_vec(),
        ];
        for shape in shapes {
            let mut index = Index::default();
            for number in 0..100_000 {
                index.insert(tag(&shape(number)), RecordNumber(number + 1));
            }
            let mut direct = 0;
            for number in 0..100_000 {
                let (slot, _) = index.find(tag(&shape(number)), |record| record.0 == number + 1).unwrap();
                direct += u32::from(slot == index.home(tag(&shape(number))));
            }
            assert!(direct > 75_000, "{direct}");
        }
    }

    #[test]
    fn neighbours_share_a_bucket() {
        let index = Index::default();
        let bucket = |key: [u8; 2]| index.home(tag(&key)) / BUCKET_SLOTS;
        assert!((8..16).all(|last| bucket([1, last]) == bucket([1, 8])));
    }
}
