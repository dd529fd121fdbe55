//! The state of a key under VLL: how many transactions have requested it exclusively (CX) and shared (CS), and not which.
//!
//! The paper puts the two counters beside the record, or, where locks are managed apart from records as in Calvin, into
//! arrays with an element per record ("arrayed VLL", VLL §2.2). Storage knows no locks here and a record has no lasting
//! number, so a key gets a counter when somebody requests it and gives it back when nobody does any more: a dense array,
//! found through one word per bucket of hashes.
//!
//! A counter keeps its place while it is in use. Who requested it remembers the place, and finds it again without a hash.

use super::Mode;

/// Buckets of an empty table: 4 KiB, which stay in the nearest cache.
const BUCKETS_MIN: usize = 1024;

/// Buckets for each counter in use, at least: most keys that nobody holds are then seen not to be held by one word.
const BUCKETS_PER_COUNTER: usize = 4;

/// The place of a counter. It is below 2^31, since live transactions and their keys are limited.
pub(super) type Place = u32;

/// In a chain: no further counter. Chains hold places plus 1.
const END: u32 = 0;

#[derive(Clone, Copy)]
struct Counter {
    hash: u64,
    exclusive: u32,
    shared: u32,
    /// The next counter of the bucket, or the next that nobody uses.
    next: u32,
}

impl Counter {
    fn excludes(&self, mode: Mode) -> bool {
        match mode {
            Mode::Shared => self.exclusive > 0,
            Mode::Exclusive => self.exclusive + self.shared > 0,
        }
    }
}

/// Counters of requested keys, by the 64-bit hash of the key. Two keys with one hash share them, as they share a queue in
/// [`keys`](super::keys).
pub(super) struct Counters {
    /// The chain of each bucket. A power of two.
    buckets: Vec<u32>,
    counters: Vec<Counter>,
    /// By place: what an analysis notes of the key. Zero when the key gets its counter. Apart from the counters, so that
    /// the notes of many keys are in the nearest cache.
    pub(super) marks: Vec<u8>,
    /// The chain of counters that nobody uses. The last that was given back is the first that is used again: it is in the
    /// cache.
    unused: u32,
    in_use: usize,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            buckets: vec![END; BUCKETS_MIN],
            counters: Vec::new(),
            marks: Vec::new(),
            unused: END,
            in_use: 0,
        }
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").field("in_use", &self.in_use).finish_non_exhaustive()
    }
}

impl Counters {
    /// The low bits: the high ones decide the partition of a key that is placed by its hash, and are alike in all of them.
    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn find(&self, hash: u64) -> Option<Place> {
        let mut link = self.buckets[self.bucket(hash)];
        while link != END {
            let counter = &self.counters[link as usize - 1];
            if counter.hash == hash {
                return Some(link - 1);
            }
            link = counter.next;
        }
        None
    }

    /// Whether a request of the key would conflict with one that was made.
    #[inline]
    pub(super) fn excludes(&self, hash: u64, mode: Mode) -> bool {
        self.find(hash).is_some_and(|place| self.counters[place as usize].excludes(mode))
    }

    /// The counter of a key, and whether a request would conflict with one that is counted. The caller counts its own next.
    #[inline]
    pub(super) fn place(&mut self, hash: u64, mode: Mode) -> (Place, bool) {
        match self.find(hash) {
            Some(place) => (place, self.counters[place as usize].excludes(mode)),
            None => (self.insert(hash), false),
        }
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> Place {
        if (self.in_use + 1) * BUCKETS_PER_COUNTER > self.buckets.len() {
            self.grow();
        }
        self.in_use += 1;
        let bucket = self.bucket(hash);
        let counter = Counter { hash, exclusive: 0, shared: 0, next: self.buckets[bucket] };
        let place = match self.unused {
            END => {
                self.counters.push(counter);
                self.marks.push(0);
                self.counters.len() as Place - 1
            }
            link => {
                let unused = &mut self.counters[link as usize - 1];
                self.unused = unused.next;
                *unused = counter;
                self.marks[link as usize - 1] = 0;
                link - 1
            }
        };
        self.buckets[bucket] = place + 1;
        place
    }

    /// Doubles the buckets. Every counter that is in a bucket is in one of the two that it becomes.
    #[cold]
    fn grow(&mut self) {
        let buckets = vec![END; self.buckets.len() * 2];
        let chains = std::mem::replace(&mut self.buckets, buckets);
        for chain in chains {
            let mut link = chain;
            while link != END {
                let place = link as usize - 1;
                let bucket = self.bucket(self.counters[place].hash);
                let next = std::mem::replace(&mut self.counters[place].next, self.buckets[bucket]);
                self.buckets[bucket] = link;
                link = next;
            }
        }
    }

    /// Counts a request.
    #[inline]
    pub(super) fn add(&mut self, place: Place, mode: Mode) {
        let counter = &mut self.counters[place as usize];
        match mode {
            Mode::Shared => counter.shared += 1,
            Mode::Exclusive => counter.exclusive += 1,
        }
    }

    /// Takes a request back; whether another is left that it conflicted with, so that somebody may have waited for it.
    #[inline]
    pub(super) fn remove(&mut self, place: Place, mode: Mode) -> bool {
        let counter = &mut self.counters[place as usize];
        match mode {
            Mode::Shared => counter.shared -= 1,
            Mode::Exclusive => counter.exclusive -= 1,
        }
        if counter.exclusive + counter.shared == 0 {
            self.give_back(place);
            return false;
        }
        mode == Mode::Exclusive || counter.exclusive > 0
    }

    /// Whether one request, which is counted, conflicts with no other that is: CX is 1 and CS is 0 if it is exclusive, CX is 0
    /// if it is shared (VLL §2.1).
    #[inline]
    pub(super) fn is_alone(&self, place: Place, mode: Mode) -> bool {
        let counter = &self.counters[place as usize];
        match mode {
            Mode::Shared => counter.exclusive == 0,
            Mode::Exclusive => counter.exclusive + counter.shared == 1,
        }
    }

    #[inline]
    fn give_back(&mut self, place: Place) {
        self.in_use -= 1;
        let Counter { hash, next, .. } = self.counters[place as usize];
        let bucket = self.bucket(hash);
        let mut link = self.buckets[bucket];
        if link == place + 1 {
            self.buckets[bucket] = next;
        } else {
            while self.counters[link as usize - 1].next != place + 1 {
                link = self.counters[link as usize - 1].next;
            }
            self.counters[link as usize - 1].next = next;
        }
        self.counters[place as usize].next = self.unused;
        self.unused = place + 1;
    }

    /// CX and CS of a key.
    pub(super) fn of(&self, hash: u64) -> (u32, u32) {
        self.find(hash).map_or((0, 0), |place| {
            let counter = self.counters[place as usize];
            (counter.exclusive, counter.shared)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map, with hashes of which many share a bucket, and with more of them than there are buckets at first.
        #[test]
        fn counters_count(actions in prop::collection::vec((0u64..4, 0u64..600, any::<bool>(), any::<bool>()), 0..3000)) {
            let (mut counters, mut model) = (Counters::default(), BTreeMap::<u64, [Vec<Place>; 2]>::new());
            for (high, low, exclusive, releases) in actions {
                let (hash, mode) = (high << 40 | low, if exclusive { Mode::Exclusive } else { Mode::Shared });
                let known = model.entry(hash).or_default();
                if releases {
                    if let Some(place) = known[usize::from(exclusive)].pop() {
                        let [shared, exclusive_left] = [known[0].len(), known[1].len()];
                        let left = exclusive_left > 0 || exclusive && shared > 0;
                        prop_assert_eq!(counters.remove(place, mode), left);
                    }
                } else {
                    let conflicts = !known[1].is_empty() || exclusive && !known[0].is_empty();
                    prop_assert_eq!(counters.excludes(hash, mode), conflicts);
                    let (place, found) = counters.place(hash, mode);
                    prop_assert_eq!(found, conflicts);
                    prop_assert!(known.iter().flatten().all(|known| *known == place), "a counter keeps its place");
                    counters.add(place, mode);
                    known[usize::from(exclusive)].push(place);
                }
                let known = &model[&hash];
                prop_assert_eq!(counters.of(hash), (known[1].len() as u32, known[0].len() as u32));
            }
            for (hash, known) in &model {
                prop_assert_eq!(counters.of(*hash), (known[1].len() as u32, known[0].len() as u32));
            }
            let in_use = model.values().filter(|known| !known.concat().is_empty()).count();
            prop_assert_eq!(counters.in_use, in_use);
        }
    }
}
