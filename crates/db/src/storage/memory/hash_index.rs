//! The hash index: from the hash of a key to the number of its record.
//!
//! Open addressing with linear probing. An entry is 8 bytes, so that eight of them share a cache line: the upper half of
//! the key's hash as a tag and the record's number. The key itself is compared in the record, and only when the tag
//! matches, which happens by chance once in 2³² comparisons.
//!
//! An entry's home is its tag scaled to the capacity, so that growing needs no look at the records: the entries
//! stand nearly in the order of their tags before and after, and both tables are streamed. The index is cut into shards by
//! the low bits of the hash, and each begins with a different capacity: they never grow together, and no pause is longer
//! than that of one shard.

use super::arena::NONE;

const SHARDS: usize = 64;
const CAPACITY_MIN: usize = 16;

/// Most entries per 4 slots.
const LOAD_MAX_QUARTERS: usize = 3;

/// From hashes to records.
pub(super) struct HashIndex {
    /// By the low bits of the hash.
    shards: Box<[Shard; SHARDS]>,
}

/// A part of the index. `entries * 4 <= slots.len() * LOAD_MAX_QUARTERS`, so that every search meets an empty slot.
struct Shard {
    /// Tag in the upper and record in the lower half; 0 is empty, since no record is [`NONE`].
    slots: Box<[u64]>,
    entries: usize,
}

#[inline]
fn entry(hash: u64, record: u32) -> u64 {
    (hash & !0xFFFF_FFFF) | u64::from(record)
}

/// The slot at which the search for an entry begins.
#[inline]
fn home(entry: u64, capacity: usize) -> usize {
    (((entry >> 32) * capacity as u64) >> 32) as usize
}

/// Steps from one slot to another, around the end if need be.
#[inline]
fn distance(from: usize, to: usize, capacity: usize) -> usize {
    if to >= from { to - from } else { to + capacity - from }
}

impl HashIndex {
    /// An index without entries.
    pub(super) fn new() -> HashIndex {
        HashIndex { shards: Box::new(std::array::from_fn(Shard::new)) }
    }

    /// Bytes of the index.
    pub(super) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.len() * size_of::<u64>()).sum()
    }

    #[inline(always)]
    fn slots(&self, hash: u64) -> &[u64] {
        &self.shards[hash as usize % SHARDS].slots
    }

    /// The record with this hash that `matches`.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, matches: impl Fn(u32) -> bool) -> Option<u32> {
        let slots = self.slots(hash);
        let mut at = home(hash, slots.len());
        loop {
            let Some(found) = slots.get(at) else {
                at = 0;
                continue;
            };
            if *found == 0 {
                return None;
            }
            if (found ^ hash) >> 32 == 0 && matches(*found as u32) {
                return Some(*found as u32);
            }
            at += 1;
        }
    }

    /// Reads the slot at which a search begins, to have it in the cache. What it returns means nothing.
    #[inline(always)]
    pub(super) fn touch(&self, hash: u64) -> u64 {
        let slots = self.slots(hash);
        slots[home(hash, slots.len())]
    }

    /// Adds a record whose key is not in the index.
    pub(super) fn insert(&mut self, hash: u64, record: u32) {
        assert_ne!(record, NONE, "the index cannot hold the record that is none");
        let shard = &mut self.shards[hash as usize % SHARDS];
        if (shard.entries + 1) * 4 > shard.slots.len() * LOAD_MAX_QUARTERS {
            shard.grow();
        }
        shard.entries += 1;
        place(&mut shard.slots, entry(hash, record));
    }

    /// Puts another record in the place of one.
    pub(super) fn replace(&mut self, hash: u64, record: u32, other: u32) {
        let shard = &mut self.shards[hash as usize % SHARDS];
        let at = shard.slot_of(entry(hash, record));
        shard.slots[at] = entry(hash, other);
    }

    /// Takes a record out.
    pub(super) fn remove(&mut self, hash: u64, record: u32) {
        let shard = &mut self.shards[hash as usize % SHARDS];
        let mut hole = shard.slot_of(entry(hash, record));
        shard.entries -= 1;
        let capacity = shard.slots.len();
        let mut at = hole;
        // Entries after the hole move into it unless that would put them before their home: no tombstones are needed.
        loop {
            at = if at + 1 == capacity { 0 } else { at + 1 };
            let moved = shard.slots[at];
            if moved == 0 {
                break;
            }
            if distance(home(moved, capacity), at, capacity) >= distance(hole, at, capacity) {
                shard.slots[hole] = moved;
                hole = at;
            }
        }
        shard.slots[hole] = 0;
    }
}

impl Shard {
    /// A shard without entries. Its capacity depends on its number, so that the shards take turns in growing.
    fn new(number: usize) -> Shard {
        let capacity = CAPACITY_MIN + CAPACITY_MIN * number / SHARDS;
        Shard { slots: vec![0; capacity].into_boxed_slice(), entries: 0 }
    }

    fn slot_of(&self, wanted: u64) -> usize {
        let mut at = home(wanted, self.slots.len());
        loop {
            let found = self.slots[at];
            assert_ne!(found, 0, "record {} is in the hash index", wanted as u32);
            if found == wanted {
                return at;
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    fn grow(&mut self) {
        let mut slots = vec![0; self.slots.len() * 2].into_boxed_slice();
        for entry in self.slots.iter().filter(|entry| **entry != 0) {
            place(&mut slots, *entry);
        }
        self.slots = slots;
    }
}

/// Puts an entry into the first empty slot from its home on.
fn place(slots: &mut [u64], entry: u64) {
    let mut at = home(entry, slots.len());
    while slots[at] != 0 {
        at = if at + 1 == slots.len() { 0 } else { at + 1 };
    }
    slots[at] = entry;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hashes of one shard whose homes are the first slots and the last, so that runs are long and go around the end.
    fn crowded_hash() -> impl Strategy<Value = u64> {
        (any::<bool>(), 0..8_u64, 0..2_u64).prop_map(|(last, tag, below)| {
            let tag = if last { 0xFFFF_FFFF - tag } else { tag };
            tag << 32 | below << 6
        })
    }

    proptest! {
        /// Inserts, replacements and removals against a plain list, with records that collide in all bits of the tag.
        #[test]
        fn agrees_with_a_list(operations in prop::collection::vec((crowded_hash(), 0..4_u32), 1..400)) {
            let mut index = HashIndex::new();
            let mut list: Vec<(u64, u32)> = Vec::new();
            for (number, (hash, operation)) in operations.into_iter().enumerate() {
                let found = list.iter().position(|(other, _)| *other == hash);
                match (operation, found) {
                    (0 | 1, None) => {
                        let record = number as u32 + 1;
                        index.insert(hash, record);
                        list.push((hash, record));
                    }
                    (2, Some(place)) => {
                        let record = number as u32 + 1;
                        index.replace(hash, list[place].1, record);
                        list[place].1 = record;
                    }
                    (_, Some(place)) => {
                        let (hash, record) = list.swap_remove(place);
                        index.remove(hash, record);
                    }
                    (_, None) => {}
                }
                for (hash, record) in &list {
                    prop_assert_eq!(index.find(*hash, |found| found == *record), Some(*record));
                }
                prop_assert_eq!(index.find(hash, |found| list.iter().all(|(_, record)| *record != found)), None);
            }
        }
    }

    #[test]
    fn shards_do_not_grow_together() {
        let mut index = HashIndex::new();
        let mut grown_at_once_most = 0;
        for number in 0..100_000_u32 {
            let before = index.bytes();
            index.insert(crate::hash::key_hash(&number.to_le_bytes()), number + 1);
            let grown = index.bytes() - before;
            grown_at_once_most = grown_at_once_most.max(grown * SHARDS / index.bytes());
        }
        assert!(grown_at_once_most <= 2, "a shard grew by {grown_at_once_most} times its share of the index");
    }
}
