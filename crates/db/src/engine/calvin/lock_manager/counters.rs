//! The state of a key under VLL: how many transactions have requested it exclusively (CX) and shared (CS), and not which. Ours tells
//! also how many of them are blocked for this key.
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
    /// How many of them are blocked for this key.
    exclusive_blocked: u32,
    shared_blocked: u32,
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

    /// Whether a request would conflict with those alone that are blocked.
    fn is_open(&self, mode: Mode) -> bool {
        self.exclusive == self.exclusive_blocked
            && (mode == Mode::Shared || self.shared == self.shared_blocked)
    }
}

/// Counters of requested keys, by the 64-bit hash of the key. Two keys with one hash share them, as they share a queue in
/// [`keys`](super::keys).
pub(super) struct Counters {
    /// The chain of each bucket. A power of two.
    buckets: Vec<u32>,
    counters: Vec<Counter>,
    /// By place: what an analysis notes of the key. Zero but in an analysis. Apart from the counters, so that
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
        let counter = Counter {
            hash,
            exclusive: 0,
            shared: 0,
            exclusive_blocked: 0,
            shared_blocked: 0,
            next: self.buckets[bucket],
        };
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
                debug_assert_eq!(self.marks[link as usize - 1], 0, "nothing is requested in an analysis");
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

    /// Notes that a request, which is counted, is blocked.
    #[inline]
    pub(super) fn block(&mut self, place: Place, mode: Mode) {
        let counter = &mut self.counters[place as usize];
        match mode {
            Mode::Shared => counter.shared_blocked += 1,
            Mode::Exclusive => counter.exclusive_blocked += 1,
        }
    }

    /// Notes that a request is not blocked any more.
    #[inline]
    pub(super) fn unblock(&mut self, place: Place, mode: Mode) {
        let counter = &mut self.counters[place as usize];
        match mode {
            Mode::Shared => counter.shared_blocked -= 1,
            Mode::Exclusive => counter.exclusive_blocked -= 1,
        }
    }

    /// Takes a request back that is not blocked; whether that may leave a blocked one without conflict.
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
        counter.shared_blocked > 0 && counter.is_open(Mode::Shared)
            || counter.exclusive_blocked > 0 && counter.is_open(Mode::Exclusive)
    }

    /// Whether all requests that conflict with one that is blocked are blocked, too.
    #[inline]
    pub(super) fn is_open(&self, place: Place, mode: Mode) -> bool {
        self.counters[place as usize].is_open(mode)
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

    /// Requests of a key: shared and exclusive ones, those that are blocked after the others.
    #[derive(Default)]
    struct Known([Vec<Place>; 2], [usize; 2]);

    impl Known {
        fn is_open(&self, mode: Mode) -> bool {
            let Known(requests, blocked) = self;
            requests[1].len() == blocked[1] && (mode == Mode::Shared || requests[0].len() == blocked[0])
        }
    }

    proptest! {
        /// Against a map, with hashes of which many share a bucket, and with more of them than there are buckets at first.
        #[test]
        fn counters_count(actions in prop::collection::vec((0u64..4, 0u64..600, any::<bool>(), 0u8..6), 0..3000)) {
            let (mut counters, mut model) = (Counters::default(), BTreeMap::<u64, Known>::new());
            for (high, low, exclusive, action) in actions {
                let (hash, mode) = (high << 40 | low, if exclusive { Mode::Exclusive } else { Mode::Shared });
                let which = usize::from(exclusive);
                let known = model.entry(hash).or_default();
                match action {
                    0..2 if known.0[which].len() > known.1[which] => {
                        let place = known.0[which].pop().unwrap_or_default();
                        let open = known.1[0] > 0 && known.is_open(Mode::Shared)
                            || known.1[1] > 0 && known.is_open(Mode::Exclusive);
                        prop_assert_eq!(counters.remove(place, mode), open);
                    }
                    2 if known.1[which] > 0 => {
                        known.1[which] -= 1;
                        counters.unblock(known.0[which][0], mode);
                    }
                    _ => {
                        let conflicts = !known.0[1].is_empty() || exclusive && !known.0[0].is_empty();
                        prop_assert_eq!(counters.excludes(hash, mode), conflicts);
                        let (place, found) = counters.place(hash, mode);
                        prop_assert_eq!(found, conflicts);
                        prop_assert!(known.0.iter().flatten().all(|known| *known == place), "a counter keeps its place");
                        counters.add(place, mode);
                        known.0[which].push(place);
                        if conflicts {
                            counters.block(place, mode);
                            known.1[which] += 1;
                        }
                    }
                }
                let known = &model[&hash];
                prop_assert_eq!(counters.of(hash), (known.0[1].len() as u32, known.0[0].len() as u32));
                if let Some(place) = known.0.concat().first() {
                    for mode in [Mode::Shared, Mode::Exclusive] {
                        prop_assert_eq!(counters.is_open(*place, mode), known.is_open(mode));
                    }
                }
            }
            for (hash, known) in &model {
                prop_assert_eq!(counters.of(*hash), (known.0[1].len() as u32, known.0[0].len() as u32));
            }
            let in_use = model.values().filter(|known| !known.0.concat().is_empty()).count();
            prop_assert_eq!(counters.in_use, in_use);
        }
    }
}
