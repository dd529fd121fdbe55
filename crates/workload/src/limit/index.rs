//! Finds records by the hash of their keys: open addressing with buckets of one cache line.
//!
//! A bucket has eight entries, searched together. Keys that differ only in the last three bits have the same home bucket:
//! the lines of an order are inserted into two or three cache lines and not into ten. A full bucket overflows into the next.

use super::records::RecordNumber;

/// Entries of a bucket.
const ENTRIES: usize = 8;

/// Buckets of an empty index, as a power of two.
const BUCKET_BITS_MIN: u32 = 7;

/// The record of an entry that was removed from a full bucket: keys may have gone past it.
const REMOVED: u32 = u32::MAX;

/// What tells keys apart in the index: a hash of the key, whose upper bits choose the home bucket and do not depend on the
/// key's last three bits.
#[inline]
pub(super) fn tag(key: &[u8]) -> u32 {
    let (last, start) = key.split_last().unwrap_or((&0, &[]));
    let group = ordain_db::hash::key_hash(start) ^ u64::from(last >> 3);
    (group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32 ^ u32::from(last & 7)
}

/// Eight entries. An entry is free when its record is 0.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    tags: [u32; ENTRIES],
    records: [u32; ENTRIES],
}

const _: () = assert!(size_of::<Bucket>() == 64, "a bucket is one cache line");

impl Bucket {
    /// A bit for each entry that has the value; without branches.
    #[inline]
    fn matches(values: &[u32; ENTRIES], value: u32) -> u32 {
        values.iter().enumerate().fold(0, |mask, (entry, found)| mask | u32::from(*found == value) << entry)
    }
}

/// Which entry of which bucket.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    bucket: usize,
    entry: usize,
}

/// The index.
pub(super) struct Index {
    /// A power of two of them.
    buckets: Vec<Bucket>,
    bucket_bits: u32,
    /// `2 * used <= ENTRIES * buckets.len()`: entries that are not free.
    used: usize,
    rows: usize,
}

impl Default for Index {
    fn default() -> Index {
        Index::with_bits(BUCKET_BITS_MIN)
    }
}

impl Index {
    fn with_bits(bucket_bits: u32) -> Index {
        assert!(bucket_bits <= 29, "a plain store holds at most 2^31 rows");
        Index { buckets: vec![Bucket::default(); 1 << bucket_bits], bucket_bits, used: 0, rows: 0 }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        (tag >> (32 - self.bucket_bits)) as usize
    }

    #[inline]
    fn next(&self, bucket: usize) -> usize {
        (bucket + 1) & (self.buckets.len() - 1)
    }

    /// The entry and record that have the tag and pass the test.
    #[inline]
    pub(super) fn find(&self, tag: u32, is: impl Fn(RecordNumber) -> bool) -> Option<(Slot, RecordNumber)> {
        let mut number = self.home(tag);
        loop {
            let bucket = &self.buckets[number];
            let mut matches = Bucket::matches(&bucket.tags, tag);
            while matches != 0 {
                let entry = matches.trailing_zeros() as usize;
                let record = bucket.records[entry];
                if record != 0 && record != REMOVED && is(RecordNumber(record)) {
                    return Some((Slot { bucket: number, entry }, RecordNumber(record)));
                }
                matches &= matches - 1;
            }
            if Bucket::matches(&bucket.records, 0) != 0 {
                return None;
            }
            number = self.next(number);
        }
    }

    /// The record with the tag in its home bucket, most likely that of its key; or any number.
    #[inline]
    pub(super) fn probable(&self, tag: u32) -> RecordNumber {
        let bucket = &self.buckets[self.home(tag)];
        let entry = Bucket::matches(&bucket.tags, tag).trailing_zeros() as usize;
        RecordNumber(bucket.records[entry % ENTRIES])
    }

    /// Reads a little of the home bucket of the tag.
    #[inline]
    pub(super) fn touch(&self, tag: u32) -> u32 {
        self.buckets[self.home(tag)].tags[0]
    }

    /// Adds a record that is not there yet.
    pub(super) fn insert(&mut self, tag: u32, record: RecordNumber) {
        if (self.used + 1) * 2 > ENTRIES * self.buckets.len() {
            self.rebuild();
        }
        self.place(tag, record.0);
    }

    /// Makes room, and drops the marks of removed entries.
    #[cold]
    fn rebuild(&mut self) {
        let grow = self.rows * 4 > ENTRIES * self.buckets.len();
        let old = std::mem::replace(self, Index::with_bits(self.bucket_bits + u32::from(grow)));
        for bucket in old.buckets {
            for (tag, record) in bucket.tags.into_iter().zip(bucket.records) {
                if record != 0 && record != REMOVED {
                    self.place(tag, record);
                }
            }
        }
    }

    fn place(&mut self, tag: u32, record: u32) {
        let mut number = self.home(tag);
        loop {
            let free = Bucket::matches(&self.buckets[number].records, 0);
            if free != 0 {
                let entry = free.trailing_zeros() as usize;
                self.buckets[number].tags[entry] = tag;
                self.buckets[number].records[entry] = record;
                self.used += 1;
                self.rows += 1;
                return;
            }
            number = self.next(number);
        }
    }

    /// Points an entry to another record of the same key.
    pub(super) fn replace(&mut self, slot: Slot, record: RecordNumber) {
        self.buckets[slot.bucket].records[slot.entry] = record.0;
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, slot: Slot) {
        let bucket = &mut self.buckets[slot.bucket];
        let full = Bucket::matches(&bucket.records, 0) == 0;
        bucket.records[slot.entry] = if full { REMOVED } else { 0 };
        bucket.tags[slot.entry] = 0;
        self.used -= usize::from(!full);
        self.rows -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of every shape spread over the buckets: nearly all are found in their home bucket.
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
            let mut at_home = 0;
            for number in 0..100_000 {
                let tag = tag(&shape(number));
                let (slot, _) = index.find(tag, |record| record.0 == number + 1).unwrap();
                at_home += u32::from(slot.bucket == index.home(tag));
            }
            assert!(at_home > 85_000, "{at_home}");
        }
    }

    #[test]
    fn neighbours_share_a_bucket() {
        let index = Index::default();
        assert!((8..16).all(|last| index.home(tag(&[1, last])) == index.home(tag(&[1, 8]))));
    }

    /// Inserting and removing for ever does not fill the index.
    #[test]
    fn removed_entries_do_not_add_up() {
        let mut index = Index::default();
        for number in 1..100_000_u32 {
            index.insert(tag(&number.to_be_bytes()), RecordNumber(number));
            if number > 500 {
                let old = tag(&(number - 500).to_be_bytes());
                let (slot, _) = index.find(old, |record| record.0 == number - 500).unwrap();
                index.remove(slot);
            }
        }
        assert_eq!((index.len(), index.buckets.len()), (500, 256));
    }
}
