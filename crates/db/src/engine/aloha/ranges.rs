//! Ranges that live transactions may still write, or have yet to read.
//!
//! A key in a range that an earlier transaction may write is *dependent* (Fan and Golab, §IV-E): whether it will have a version is known
//! only when that transaction has been computed, which is therefore its determinate functor. Who reads the key or the range waits for
//! it (ALO-114, ALO-118); and nothing later goes to the storage there before it, nor before a reader that has yet to look.
//!
//! Ranges are found through *clusters*: sets of ranges that overlap one with the other, so that clusters of a table are disjoint and in
//! order. Nearly all ranges in use are equal or disjoint. Then a cluster has one range, and a lookup costs the logarithm of their
//! number; else it also looks at the other ranges of the cluster that begin before its end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use smallvec::SmallVec;

use super::Waiter;
use crate::data::{Key, KeyRange};
use crate::hash::FastMap;
use crate::position::Position;
use crate::procedure::footprint::Access;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// By table, then by start. No table is without clusters.
    tables: FastMap<u16, Clusters>,
}

type Clusters = BTreeMap<Key, Cluster>;

/// Ranges that overlap, one with the other.
#[derive(Debug)]
struct Cluster {
    /// Where the last of them ends.
    end: Key,
    /// By start and end; at least one.
    groups: BTreeMap<(Key, Key), Group>,
    /// How many have left since it was last seen to be one cluster.
    left: usize,
}

/// Live transactions with the same range.
#[derive(Debug, Default)]
struct Group {
    /// Those that have not captured what they read in it.
    readers: BTreeMap<Position, Reader>,
    /// Those that may still write into it, each with who waits for that.
    writers: BTreeMap<Position, Vec<Waiter>>,
    /// Final versions in the range that wait for earlier ones of these, by the hashes of their keys.
    held: BTreeSet<(Position, u64)>,
}

/// A transaction that is about to read a range.
#[derive(Debug, Default)]
struct Reader {
    /// How many of its reads of the range are not captured yet.
    reads: u32,
    waiters: Vec<Waiter>,
}

impl Group {
    /// The first who is about to read or write.
    fn first(&self) -> Option<Position> {
        let (reader, writer) = (self.readers.keys().next(), self.writers.keys().next());
        reader.into_iter().chain(writer).min().copied()
    }
}

/// The number of a key's table.
pub(super) fn table_of(key: &[u8]) -> u16 {
    key.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

fn contains((start, end): &(Key, Key), key: &[u8]) -> bool {
    start.bytes() <= key && key < end.bytes()
}

fn overlap((start, end): &(Key, Key), range: &KeyRange) -> bool {
    *start < range.end && range.start < *end
}

/// The cluster around a key, by its start.
fn cluster_at<'a>(clusters: &'a Clusters, key: &[u8]) -> Option<(&'a Key, &'a Cluster)> {
    let bounds = (Bound::Unbounded, Bound::Included(key));
    clusters.range::<[u8], _>(bounds).next_back().filter(|(_, cluster)| key < cluster.end.bytes())
}

fn cluster_at_mut<'a>(clusters: &'a mut Clusters, key: &[u8]) -> Option<&'a mut Cluster> {
    let bounds = (Bound::Unbounded, Bound::Included(key));
    let last = clusters.range_mut::<[u8], _>(bounds).next_back();
    last.map(|(_, cluster)| cluster).filter(|cluster| key < cluster.end.bytes())
}

/// The starts of the clusters that overlap a range.
fn clusters_over<'a>(
    clusters: &'a Clusters,
    range: &KeyRange,
) -> impl Iterator<Item = (&'a Key, &'a Cluster)> {
    let bounds = (Bound::Excluded(range.start.bytes()), Bound::Excluded(range.end.bytes()));
    cluster_at(clusters, range.start.bytes()).into_iter().chain(clusters.range::<[u8], _>(bounds))
}

impl Cluster {
    /// The groups around a key.
    fn around(&self, key: &[u8]) -> impl Iterator<Item = &Group> {
        let begun = self.groups.iter().take_while(move |(place, _)| place.0.bytes() <= key);
        begun.filter(move |(place, _)| contains(place, key)).map(|(_, group)| group)
    }

    fn around_mut(&mut self, key: &[u8]) -> impl Iterator<Item = &mut Group> {
        let begun = self.groups.iter_mut().take_while(move |(place, _)| place.0.bytes() <= key);
        begun.filter(move |(place, _)| contains(place, key)).map(|(_, group)| group)
    }
}

impl Ranges {
    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether any of them overlaps a range.
    pub(super) fn touch(&self, range: &KeyRange) -> bool {
        let Some(clusters) = self.tables.get(&table_of(range.start.bytes())) else { return false };
        clusters_over(clusters, range)
            .any(|(_, cluster)| cluster.groups.keys().any(|place| overlap(place, range)))
    }

    /// Whether any of them contains a key.
    pub(super) fn touch_key(&self, key: &[u8]) -> bool {
        self.around(key).is_some_and(|cluster| cluster.around(key).next().is_some())
    }

    fn around(&self, key: &[u8]) -> Option<&Cluster> {
        cluster_at(self.tables.get(&table_of(key))?, key).map(|(_, cluster)| cluster)
    }

    /// Enters what a transaction is about to do with a range, which is not empty.
    pub(super) fn enter(&mut self, range: &KeyRange, position: Position, access: Access) {
        let clusters = self.tables.entry(table_of(range.start.bytes())).or_default();
        let group = group_of(clusters, range);
        if access.read {
            group.readers.entry(position).or_default().reads += 1;
        }
        if access.write {
            group.writers.entry(position).or_default();
        }
    }

    /// Who may still write a key after one position and before another: the list of those that wait for it.
    pub(super) fn writer_of_key(
        &mut self,
        key: &[u8],
        after: Option<Position>,
        before: Position,
    ) -> Option<&mut Vec<Waiter>> {
        let cluster = cluster_at_mut(self.tables.get_mut(&table_of(key))?, key)?;
        if after.is_some_and(|after| before <= after) {
            return None;
        }
        let bounds = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Excluded(before));
        let firsts = cluster.around_mut(key).filter_map(|group| group.writers.range_mut(bounds).next());
        firsts.min_by_key(|(position, _)| **position).map(|(_, waiters)| waiters)
    }

    /// Who may still write into a range before a position, likewise.
    pub(super) fn writer_of_range(&mut self, range: &KeyRange, before: Position) -> Option<&mut Vec<Waiter>> {
        let groups = self.over(range)?;
        let firsts = groups.filter_map(|group| group.writers.range_mut(..before).next());
        firsts.min_by_key(|(position, _)| **position).map(|(_, waiters)| waiters)
    }

    /// Who has yet to read something of a range before a position, likewise.
    pub(super) fn reader_of_range(&mut self, range: &KeyRange, before: Position) -> Option<&mut Vec<Waiter>> {
        let groups = self.over(range)?;
        let firsts = groups.filter_map(|group| group.readers.range_mut(..before).next());
        firsts.min_by_key(|(position, _)| **position).map(|(_, reader)| &mut reader.waiters)
    }

    /// The groups whose range overlaps one.
    fn over(&mut self, range: &KeyRange) -> Option<impl Iterator<Item = &mut Group>> {
        let clusters = self.tables.get_mut(&table_of(range.start.bytes()))?;
        let first = cluster_at(clusters, range.start.bytes()).map(|(start, _)| start.clone());
        let from = first.unwrap_or_else(|| range.start.clone());
        let over = clusters
            .range_mut::<[u8], _>((Bound::Included(from.bytes()), Bound::Excluded(range.end.bytes())));
        let groups = over.flat_map(|(_, cluster)| &mut cluster.groups);
        Some(groups.filter(move |(place, _)| overlap(place, range)).map(|(_, group)| group))
    }

    /// Whether a version must not go to the storage yet. Then it is held, and comes out of [`leave`](Ranges::leave) when it may be
    /// tried again.
    pub(super) fn hold(&mut self, key: &[u8], hash: u64, position: Position) -> bool {
        let Some(clusters) = self.tables.get_mut(&table_of(key)) else { return false };
        let Some(cluster) = cluster_at_mut(clusters, key) else { return false };
        let holds = |group: &&mut Group| group.first().is_some_and(|first| first < position);
        let Some(group) = cluster.around_mut(key).find(holds) else { return false };
        group.held.insert((position, hash));
        true
    }

    /// Whether a version would be held.
    pub(super) fn would_hold(&self, key: &[u8], position: Position) -> bool {
        let Some(cluster) = self.around(key) else { return false };
        cluster.around(key).any(|group| group.first().is_some_and(|first| first < position))
    }

    /// A transaction has done with a range what `access` says. Appends who waited for that, and the hashes of keys whose versions need not
    /// be held any longer.
    pub(super) fn leave(
        &mut self,
        range: &KeyRange,
        position: Position,
        access: Access,
        waiters: &mut Vec<Waiter>,
        released: &mut Vec<u64>,
    ) {
        let table = table_of(range.start.bytes());
        let Some(clusters) = self.tables.get_mut(&table) else { return };
        let Some((start, _)) = cluster_at(clusters, range.start.bytes()) else { return };
        let start = start.clone();
        let Some(cluster) = clusters.get_mut(&start) else { return };
        let place = (range.start.clone(), range.end.clone());
        let Some(group) = cluster.groups.get_mut(&place) else { return };
        if access.write
            && let Some(mut waiting) = group.writers.remove(&position)
        {
            waiters.append(&mut waiting);
        }
        if access.read
            && let Some(reader) = group.readers.get_mut(&position)
        {
            reader.reads -= 1;
            waiters.append(&mut reader.waiters);
            if reader.reads == 0 {
                group.readers.remove(&position);
            }
        }
        let first = group.first();
        while let Some((position, _)) = group.held.first()
            && first.is_none_or(|first| *position <= first)
            && let Some((_, hash)) = group.held.pop_first()
        {
            released.push(hash);
        }
        if first.is_some() {
            return;
        }
        cluster.groups.remove(&place);
        cluster.left += 1;
        // What was one cluster because of who has left is so at most as often as there are ranges in it.
        if cluster.left >= cluster.groups.len()
            && let Some(cluster) = clusters.remove(&start)
        {
            split(cluster.groups, clusters);
        }
        if clusters.is_empty() {
            self.tables.remove(&table);
        }
    }
}

/// The group of a range, new if need be; the clusters that it overlaps become one.
fn group_of<'a>(clusters: &'a mut Clusters, range: &KeyRange) -> &'a mut Group {
    let around = cluster_at(clusters, range.start.bytes());
    let inside = around.filter(|(_, cluster)| range.end <= cluster.end).map(|(start, _)| start.clone());
    let start = inside.unwrap_or_else(|| {
        let touched: SmallVec<[Key; 2]> =
            clusters_over(clusters, range).map(|(start, _)| start.clone()).collect();
        let mut merged = Cluster { end: range.end.clone(), groups: BTreeMap::new(), left: 0 };
        let mut first = range.start.clone();
        for start in touched {
            let Some(mut cluster) = clusters.remove(&start) else { continue };
            first = first.min(start);
            merged.end = merged.end.max(cluster.end);
            merged.left += cluster.left;
            if merged.groups.len() < cluster.groups.len() {
                std::mem::swap(&mut merged.groups, &mut cluster.groups);
            }
            merged.groups.append(&mut cluster.groups);
        }
        clusters.insert(first.clone(), merged);
        first
    });
    let empty = || Cluster { end: range.end.clone(), groups: BTreeMap::new(), left: 0 };
    let cluster = clusters.entry(start).or_insert_with(empty);
    cluster.groups.entry((range.start.clone(), range.end.clone())).or_default()
}

/// Makes clusters of groups.
fn split(groups: BTreeMap<(Key, Key), Group>, clusters: &mut Clusters) {
    let mut current: Option<(Key, Cluster)> = None;
    for ((start, end), group) in groups {
        match &mut current {
            Some((_, cluster)) if start < cluster.end => {
                cluster.end = cluster.end.clone().max(end.clone());
                cluster.groups.insert((start, end), group);
            }
            _ => {
                let place = (start.clone(), end.clone());
                let cluster = Cluster { end, groups: BTreeMap::from([(place, group)]), left: 0 };
                if let Some((start, done)) = current.replace((start, cluster)) {
                    clusters.insert(start, done);
                }
            }
        }
    }
    clusters.extend(current);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Read;
    use super::*;
    use crate::engine::live_table::Slot;
    use crate::position::{Epoch, PartitionId};

    fn at(index: u32) -> Position {
        Position { epoch: Epoch(1), origin: PartitionId(0), index }
    }

    /// Two tables, so that a lookup must not stray.
    fn key(number: u8) -> Key {
        Key::from_bytes(&[0, number / 16, number % 16])
    }

    fn waiter(number: u32) -> Waiter {
        Waiter { slot: Slot(number), read: Read::Key(number) }
    }

    /// A range that a transaction is about to read or write, with who waits for it.
    #[derive(Clone, Debug)]
    struct Entry {
        place: (Key, Key),
        position: Position,
        writes: bool,
        reads: u32,
        waiters: Vec<Waiter>,
    }

    /// All of it in a list that is looked through.
    #[derive(Default)]
    struct Naive {
        entries: Vec<Entry>,
        /// By range: versions that are held.
        held: BTreeMap<(Key, Key), BTreeSet<(Position, u64)>>,
    }

    impl Naive {
        fn enter(&mut self, range: &KeyRange, position: Position, writes: bool) {
            let place = (range.start.clone(), range.end.clone());
            let same = |entry: &&mut Entry| {
                entry.place == place && entry.position == position && entry.writes == writes
            };
            if let Some(known) = self.entries.iter_mut().find(same) {
                known.reads += 1;
                return;
            }
            self.entries.push(Entry { place, position, writes, reads: 1, waiters: Vec::new() });
        }

        /// The first by position, then by range, of those that are meant.
        fn first(&mut self, is_meant: impl Fn(&Entry) -> bool) -> Option<&mut Vec<Waiter>> {
            let meant = self.entries.iter_mut().filter(|entry| is_meant(entry));
            let first =
                meant.min_by(|left, right| (left.position, &left.place).cmp(&(right.position, &right.place)));
            first.map(|entry| &mut entry.waiters)
        }

        fn earliest(&self, place: &(Key, Key)) -> Option<Position> {
            let same = self.entries.iter().filter(|entry| entry.place == *place);
            same.map(|entry| entry.position).min()
        }

        fn hold(&mut self, key: &[u8], hash: u64, position: Position) -> bool {
            let places: BTreeSet<(Key, Key)> = self.entries.iter().map(|entry| entry.place.clone()).collect();
            let holds = |place: &(Key, Key)| {
                contains(place, key) && self.earliest(place).is_some_and(|first| first < position)
            };
            let Some(place) = places.into_iter().find(holds) else { return false };
            self.held.entry(place).or_default().insert((position, hash));
            true
        }

        fn leave(&mut self, range: &KeyRange, position: Position, writes: bool) -> (Vec<Waiter>, Vec<u64>) {
            let place = (range.start.clone(), range.end.clone());
            let mut waiters = Vec::new();
            for entry in &mut self.entries {
                if entry.place == place && entry.position == position && entry.writes == writes {
                    waiters.append(&mut entry.waiters);
                    entry.reads = if writes { 0 } else { entry.reads - 1 };
                }
            }
            self.entries.retain(|entry| entry.reads > 0);
            let first = self.earliest(&place);
            let mut released = Vec::new();
            if let Some(held) = self.held.get_mut(&place) {
                let out = |position: Position| first.is_none_or(|first| position <= first);
                released.extend(held.iter().filter(|(position, _)| out(*position)).map(|(_, hash)| *hash));
                held.retain(|(position, _)| !out(*position));
            }
            (waiters, released)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enter(u8, u8, u32, bool),
        Leave(usize),
        WriterOfKey(u8, Option<u32>, u32),
        WriterOfRange(u8, u8, u32),
        ReaderOfRange(u8, u8, u32),
        Hold(u8, u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (number, length, index) = (0..32_u8, 1..9_u8, 0..20_u32);
        prop_oneof![
            6 => (number.clone(), length.clone(), index.clone(), any::<bool>())
                .prop_map(|(from, length, index, writes)| Step::Enter(from, length, index, writes)),
            5 => any::<usize>().prop_map(Step::Leave),
            2 => (number.clone(), proptest::option::of(index.clone()), index.clone())
                .prop_map(|(key, after, before)| Step::WriterOfKey(key, after, before)),
            2 => (number.clone(), length.clone(), index.clone())
                .prop_map(|(from, length, before)| Step::WriterOfRange(from, length, before)),
            2 => (number.clone(), length, index.clone())
                .prop_map(|(from, length, before)| Step::ReaderOfRange(from, length, before)),
            2 => (number, index).prop_map(|(key, index)| Step::Hold(key, index)),
        ]
    }

    /// A range of keys of one table.
    fn range(from: u8, length: u8) -> KeyRange {
        let end = (from + length).min(from / 16 * 16 + 15).max(from + 1);
        // The last key of the first table has nothing after it but the next table's first.
        KeyRange { start: key(from), end: key(end) }
    }

    /// Clusters are disjoint, in order and as large as what is in them, or what was.
    fn check(ranges: &Ranges) {
        for clusters in ranges.tables.values() {
            assert!(!clusters.is_empty());
            let mut last: Option<&Key> = None;
            for (start, cluster) in clusters {
                assert!(last.is_none_or(|last| last <= start) && start < &cluster.end);
                assert!(!cluster.groups.is_empty() && cluster.left < cluster.groups.len() + 1);
                assert!(cluster.groups.keys().all(|(from, to)| start <= from && to <= &cluster.end));
                assert!(cluster.groups.values().all(|group| group.first().is_some()));
                last = Some(&cluster.end);
            }
        }
    }

    /// Asks both for somebody to wait for, and leaves the same new waiter with who was found.
    fn wait(number: u32, found: Option<&mut Vec<Waiter>>, expected: Option<&mut Vec<Waiter>>) {
        assert_eq!(found.is_some(), expected.is_some());
        found.into_iter().chain(expected).for_each(|waiters| waiters.push(waiter(number)));
    }

    fn access(writes: bool) -> Access {
        if writes { Access::WRITE } else { Access::READ }
    }

    fn check_against_naive(steps: &[Step]) {
        let (mut ranges, mut naive) = (Ranges::default(), Naive::default());
        for (number, step) in (0..).zip(steps) {
            match *step {
                Step::Enter(from, length, index, writes) => {
                    ranges.enter(&range(from, length), at(index), access(writes));
                    naive.enter(&range(from, length), at(index), writes);
                }
                Step::Leave(which) if !naive.entries.is_empty() => {
                    let Entry { place, position, writes, .. } =
                        naive.entries[which % naive.entries.len()].clone();
                    let range = KeyRange { start: place.0, end: place.1 };
                    let (mut waiters, mut released) = (Vec::new(), Vec::new());
                    ranges.leave(&range, position, access(writes), &mut waiters, &mut released);
                    assert_eq!((waiters, released), naive.leave(&range, position, writes));
                }
                Step::Leave(_) => {}
                Step::WriterOfKey(number_of_key, after, before) => {
                    let (key, after) = (key(number_of_key), after.map(at));
                    let expected = naive.first(|entry| {
                        let late = after.is_none_or(|after| after < entry.position);
                        entry.writes && contains(&entry.place, &key) && late && entry.position < at(before)
                    });
                    wait(number, ranges.writer_of_key(&key, after, at(before)), expected);
                    let touched = naive.entries.iter().any(|entry| contains(&entry.place, &key));
                    assert_eq!(ranges.touch_key(&key), touched);
                }
                Step::WriterOfRange(from, length, before) | Step::ReaderOfRange(from, length, before) => {
                    let (range, writes) = (range(from, length), matches!(step, Step::WriterOfRange(..)));
                    let expected = naive.first(|entry| {
                        entry.writes == writes && overlap(&entry.place, &range) && entry.position < at(before)
                    });
                    let found = match writes {
                        true => ranges.writer_of_range(&range, at(before)),
                        false => ranges.reader_of_range(&range, at(before)),
                    };
                    wait(number, found, expected);
                    let touched = naive.entries.iter().any(|entry| overlap(&entry.place, &range));
                    assert_eq!(ranges.touch(&range), touched);
                }
                Step::Hold(number_of_key, index) => {
                    let (key, hash) = (key(number_of_key), u64::from(number));
                    let would = ranges.would_hold(&key, at(index));
                    let held = ranges.hold(&key, hash, at(index));
                    assert_eq!((would, held), (held, naive.hold(&key, hash, at(index))));
                }
            }
            check(&ranges);
            assert_eq!(ranges.is_empty(), naive.entries.is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn clusters_find_what_a_list_finds(steps in proptest::collection::vec(step(), 1..120)) {
            check_against_naive(&steps);
        }
    }

    /// A range over all others makes one cluster of them; when it and as many of them as are left have gone, they are apart again.
    #[test]
    fn what_one_range_joined_comes_apart() {
        let mut ranges = Ranges::default();
        let small = |number: u8| range(number * 2, 1);
        (0..6).for_each(|number| ranges.enter(&small(number), at(u32::from(number)), Access::WRITE));
        assert_eq!(ranges.tables[&0].len(), 6);
        ranges.enter(&range(0, 15), at(9), Access::READ);
        assert_eq!(ranges.tables[&0].len(), 1);
        let mut leave = |range: &KeyRange, index, access| {
            ranges.leave(range, at(index), access, &mut Vec::new(), &mut Vec::new());
            ranges.tables[&0].len()
        };
        assert_eq!(leave(&range(0, 15), 9, Access::READ), 1);
        let left = [0, 1, 2].map(|number| leave(&small(number), u32::from(number), Access::WRITE));
        assert_eq!(left, [1, 1, 3]);
    }
}
