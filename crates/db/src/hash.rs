//! Fixed hashing: the same on every machine, in every process and in every run.

#[allow(clippy::disallowed_types, reason = "they are given a fixed hasher below")]
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use rustc_hash::FxHasher;

/// A hash map with a fixed hasher. Its iteration order must still never decide anything.
#[allow(clippy::disallowed_types, reason = "the one place that gives the standard map a fixed hasher")]
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

/// Makes room in a map before it is crowded, for one whose entries come and go all the time: in a crowded map each that goes leaves a
/// mark, which every later search has to pass. To be called before an entry comes.
#[inline]
pub fn keep_sparse<K: Eq + Hash, V>(map: &mut FastMap<K, V>) {
    let more = map.len() / 2;
    if map.len() + more >= map.capacity() {
        map.reserve(more + 1);
    }
}

/// A hash set with a fixed hasher. Its iteration order must still never decide anything.
#[allow(clippy::disallowed_types, reason = "the one place that gives the standard set a fixed hasher")]
pub type FastSet<K> = HashSet<K, BuildHasherDefault<FxHasher>>;

/// A hash map for keys that users choose, whose hashes follow from a number that they cannot know beforehand: nobody prepares keys that
/// all have the same. Its iteration order must still never decide anything.
#[allow(clippy::disallowed_types, reason = "its hashes follow from a number that is given")]
pub type SeededMap<K, V> = HashMap<K, V, Seed>;

/// A set of such keys.
#[allow(clippy::disallowed_types, reason = "its hashes follow from a number that is given")]
pub type SeededSet<K> = HashSet<K, Seed>;

/// What the hashes of a [`SeededMap`] follow from.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seed(pub u64);

impl BuildHasher for Seed {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        SeededHasher(self.0)
    }
}

/// Hashes for a [`SeededMap`].
pub struct SeededHasher(u64);

impl Hasher for SeededHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        // Lengths come before their bytes, which are hashed with what becomes of this.
        self.0 = self.0.rotate_left(32) ^ value as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The hash of an encoded key: used by the storage index, the lock table and placement by hash, so that it is
/// computed once per transaction and key.
#[inline]
pub fn key_hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// Order-independent digest of a set of rows.
///
/// The digest is the sum of a 128-bit hash of each `(key, row)` pair, so that it does not depend on where rows
/// are stored or in which order they are visited, and parts of partitions can be added up. It covers logical
/// content only: no versions, no layout (trap 30 of the requirements).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Digest(pub u128);

impl Digest {
    /// Adds one row.
    pub fn add(&mut self, key: &[u8], row: &[u8]) {
        let key_part = xxhash_rust::xxh3::xxh3_128(key);
        let seed = key_part as u64 ^ (key_part >> 64) as u64;
        self.0 = self.0.wrapping_add(xxhash_rust::xxh3::xxh3_128_with_seed(row, seed) ^ key_part);
    }

    /// Adds the digest of another, disjoint set of rows.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_stays_sparse_and_small_while_entries_come_and_go() {
        let live = 2_560;
        let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut map = FastMap::default();
        for number in 0..100_000 {
            keep_sparse(&mut map);
            map.insert(key(number), ());
            if number >= live {
                map.remove(&key(number - live));
            }
            assert!(map.len() * 3 / 2 <= map.capacity() + 1, "{} of {}", map.len(), map.capacity());
        }
        assert_eq!(map.len() as u64, live);
        assert!(map.capacity() < 8_192, "{}", map.capacity());
    }
}
