//! Help for a dependent call that missed its footprint again and again: its next attempt may touch more than reconnaissance found.
//!
//! Between reconnaissance and the attempt somebody changes the rows that decide the footprint. If that happens faster than an
//! attempt gets through the order, the call would start over for ever (trap 7; the paper gives no bound). So after
//! [`RESTARTS_BEFORE_HELP`](crate::limits::RESTARTS_BEFORE_HELP) misses, or
//! [more](crate::limits::RESTARTS_BEFORE_DISTRIBUTED_HELP) if it touches several partitions, what differs between two attempts is
//! declared as a range that holds both: all keys with the columns that they have in common. Where the next miss leaves the range
//! it grows to fewer columns, so that no table takes more misses than its key has columns; and after [`RESTARTS_BEFORE_TABLES`]
//! misses whole tables are declared. What does not change from one attempt to the next stays as narrow as it was found.
//!
//! A range is locked like any other, and makes others wait longer than a key would: helped calls pay for themselves with the
//! parallelism of those around them. If other partitions take part, all its rows are sent to them. A call for which that would be
//! too much goes on without help, and ends as one that met too many others if it has no luck; if only whole tables are too much,
//! ranges it is again. What is declared is in the order, so all replicas know it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::data::{DataError, Direction, Key, KeyRange, Schema, Table};
use crate::limits::{READ_RESULTS_BYTES_MAX, RESTARTS_BEFORE_TABLES};
use crate::position::Position;
use crate::procedure::footprint::Access;
use crate::procedure::range_index::RangeIndex;
use crate::procedure::{Declaration, Footprint};
use crate::storage::Storage;

/// Keys of a footprint: one of its keys, or one of its ranges.
struct Region {
    keys: KeyRange,
    access: Access,
    /// Whether it is a range.
    is_range: bool,
}

/// Which keys of a table a region is widened to.
enum Widened {
    /// None but its own.
    Not,
    To(KeyRange),
}

/// Widens what reconnaissance found for an attempt after `restarts` misses, by what the attempt before had declared.
///
/// # Errors
/// If the widened footprint has too many entries.
pub fn widen(
    found: &Footprint,
    before: &Footprint,
    restarts: u32,
    schema: &Schema,
    partitions: u16,
) -> Result<Footprint, DataError> {
    let mut widened = Footprint::default();
    let mut declaration = Declaration::new(schema, partitions, &mut widened);
    let before = Known::new(regions(before));
    let (mut narrow, mut ranges) = (Vec::new(), BTreeMap::<KeyRange, Access>::new());
    for mut region in regions(found) {
        let table = schema.table_of(&region.keys.start)?;
        region.access = union_of(before.around(&region.keys), region.access);
        match widened_region(&region, &before, table, restarts) {
            Widened::Not => narrow.push(region),
            Widened::To(range) => {
                let access = ranges.entry(range).or_default();
                access.read |= region.access.read;
                access.write |= region.access.write;
            }
        }
    }
    for (range, access) in &mut ranges {
        *access = union_of(before.within(range), *access);
    }
    // An access is allowed by one entry or not at all: a range allows whatever is wanted of the keys in it.
    let widened_to =
        ranges.iter().map(|(range, access)| Region { keys: range.clone(), access: *access, is_range: true });
    let mut widened_to = Known::new(widened_to);
    narrow.retain(|region| {
        let Some(place) = widened_to.places_around(&region.keys).next() else { return true };
        let access = &mut widened_to.regions[place].access;
        access.read |= region.access.read;
        access.write |= region.access.write;
        false
    });
    for Region { keys, access, is_range } in narrow {
        match is_range {
            true => declaration.touch_range(&keys, access)?,
            false => declaration.touch(&keys.start, access)?,
        }
    }
    for Region { keys, access, .. } in widened_to.regions {
        declaration.touch_range(&keys, access)?;
    }
    Ok(widened)
}

/// Whether what the ranges of a footprint hold at this partition can be sent to others in one piece. What they hold at others is taken
/// to be no more.
pub fn can_be_sent(footprint: &Footprint, storage: &mut dyn Storage) -> bool {
    let mut left = READ_RESULTS_BYTES_MAX / 2;
    for entry in footprint.ranges().iter().filter(|entry| entry.access.read) {
        storage.scan(&entry.range, Direction::Ascending, Position::LATEST, &mut |key, row| {
            left = left.saturating_sub(key.len() + row.len());
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    left > 0
}

fn regions(footprint: &Footprint) -> impl Iterator<Item = Region> {
    let keys = footprint.keys().iter().map(|entry| {
        let keys = KeyRange::one(footprint.key(entry));
        Region { keys, access: entry.access, is_range: false }
    });
    let ranges = footprint.ranges().iter().map(|entry| {
        let keys = entry.range.clone();
        Region { keys, access: entry.access, is_range: true }
    });
    keys.chain(ranges)
}

/// Regions among which those around others are found.
struct Known {
    /// In the order of their keys.
    regions: Vec<Region>,
    index: RangeIndex,
}

impl Known {
    fn new(regions: impl Iterator<Item = Region>) -> Known {
        let mut regions: Vec<Region> = regions.collect();
        regions.sort_unstable_by(|one, other| one.keys.cmp(&other.keys));
        let index = RangeIndex::new(regions.len(), |place| &regions[place].keys);
        Known { regions, index }
    }

    /// The places of those that cover some keys, the last one first.
    fn places_around(&self, keys: &KeyRange) -> impl Iterator<Item = usize> {
        let range = |place: usize| &self.regions[place].keys;
        self.index.around(range, |start| *start <= keys.start, |end| *end >= keys.end)
    }

    /// Those that cover some keys.
    fn around(&self, keys: &KeyRange) -> impl Iterator<Item = &Region> {
        self.places_around(keys).map(|place| &self.regions[place])
    }

    /// Those that are covered by a range.
    fn within(&self, range: &KeyRange) -> impl Iterator<Item = &Region> {
        let first = self.regions.partition_point(|known| known.keys.start < range.start);
        let from = self.regions[first..].iter().take_while(|known| known.keys.start < range.end);
        from.filter(|known| known.keys.end <= range.end)
    }
}

/// An access with those that were declared of some keys before: attempts may read and write them in turns, and that is missed no more
/// often than the keys change.
fn union_of<'k>(known: impl Iterator<Item = &'k Region>, access: Access) -> Access {
    known.fold(access, |union, known| Access {
        read: union.read || known.access.read,
        write: union.write || known.access.write,
    })
}

fn widened_region(region: &Region, before: &Known, table: &Table, restarts: u32) -> Widened {
    if restarts >= RESTARTS_BEFORE_TABLES {
        return Widened::To(table.all());
    }
    if let Some(known) = before.around(&region.keys).find(|known| known.is_range) {
        return Widened::To(known.keys.clone());
    }
    if before.around(&region.keys).next().is_some() {
        return Widened::Not;
    }
    // In the order of keys, those that have most in common with it are next to it.
    let place = before.regions.partition_point(|known| known.keys < region.keys);
    let next_to_it = before.regions[..place].last().into_iter().chain(before.regions.get(place));
    let common = next_to_it.filter_map(|known| common_prefix(&region.keys, &known.keys, table));
    match common.max_by_key(|prefix| prefix.len()) {
        Some(prefix) => Widened::To(KeyRange::of_prefix(prefix)),
        None => Widened::Not,
    }
}

/// The table and the columns that all keys of both ranges begin with; `None` if the second is of another table.
fn common_prefix(one: &KeyRange, other: &KeyRange, table: &Table) -> Option<Key> {
    let mut prefixes = table.prefixes_of(&one.start);
    prefixes.reverse();
    prefixes.into_iter().find(|prefix| {
        let range = KeyRange::of_prefix(prefix.clone());
        range.covers(one) && range.covers(other)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::ColumnType::{Int32, Text};
    use crate::data::SchemaBuilder;
    use crate::storage::memory::MemoryStorage;

    fn schema() -> (Schema, Table, Table) {
        let mut schema = SchemaBuilder::new();
        let lines =
            Table::builder("lines").column("site", Int32).column("order", Int32).column("line", Int32);
        let lines = lines.primary_key(&["site", "order", "line"]).partition_by_column("site");
        let lines = schema.table(lines).unwrap();
        let names =
            schema.table(Table::builder("names").column("name", Text).primary_key(&["name"])).unwrap();
        (schema.finish(), lines, names)
    }

    fn footprint(regions: &[(KeyRange, Access)]) -> Footprint {
        let (schema, ..) = schema();
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(&schema, 3, &mut footprint);
        for (keys, access) in regions {
            match KeyRange::one(&keys.start) == *keys {
                true => declaration.touch(&keys.start, *access).unwrap(),
                false => declaration.touch_range(keys, *access).unwrap(),
            }
        }
        footprint
    }

    fn line(site: i32, order: i32, line: i32) -> KeyRange {
        KeyRange::one(&schema().1.key((site, order, line)).unwrap())
    }

    fn name(name: &str) -> KeyRange {
        KeyRange::one(&schema().2.key((name,)).unwrap())
    }

    /// What is declared of what was found, after as many misses.
    fn widened(
        found: &[(KeyRange, Access)],
        before: &[(KeyRange, Access)],
        restarts: u32,
    ) -> Vec<(KeyRange, Access)> {
        let footprint = widen(&footprint(found), &footprint(before), restarts, &schema().0, 3).unwrap();
        regions(&footprint).map(|region| (region.keys, region.access)).collect()
    }

    const READ: Access = Access::READ;
    const UPDATE: Access = Access::UPDATE;

    #[test]
    fn what_changed_is_widened_to_what_it_has_in_common() {
        let (_, lines, names) = schema();
        let before = [(name("a"), READ), (line(1, 7, 1), UPDATE), (line(2, 3, 1), UPDATE)];
        let found =
            [(name("a"), READ), (line(1, 8, 1), UPDATE), (line(2, 3, 2), READ), (line(2, 3, 1), UPDATE)];
        let orders = (lines.prefix((1,)).unwrap(), UPDATE);
        // The key that stayed is in the range of the one that came, and what is wanted of it is allowed there.
        let of_one_order = (lines.prefix((2, 3)).unwrap(), UPDATE);
        assert_eq!(widened(&found, &before, 2), [(name("a"), READ), orders, of_one_order]);
        // Names have nothing in common but their table.
        let other = widened(&[(name("b"), READ)], &[(name("a"), READ)], 2);
        assert_eq!(other, [(names.all(), READ)]);
        // There is nothing to compare it with.
        let new = [(line(1, 8, 1), UPDATE)];
        assert_eq!(widened(&new, &[(name("a"), READ)], 2), new);
    }

    #[test]
    fn a_range_grows_until_nothing_leaves_it() {
        let (_, lines, _) = schema();
        let order = |order: i32| lines.prefix((1, order)).unwrap();
        let seen = |last: i32| (order(7).up_to(&lines.key((1, 7, last)).unwrap()), READ);
        assert_eq!(widened(&[seen(5)], &[seen(4)], 2), [(order(7), READ)]);
        assert_eq!(widened(&[seen(3)], &[seen(4)], 2), [seen(4)], "what was declared is enough");
        assert_eq!(widened(&[seen(5)], &[(order(7), READ)], 3), [(order(7), READ)], "it stays");
        let site = (lines.prefix((1,)).unwrap(), READ);
        assert_eq!(widened(&[(order(8), READ)], &[(order(7), READ)], 3), std::slice::from_ref(&site));
        assert_eq!(widened(&[(line(2, 1, 1), READ)], &[site], 4), [(lines.all(), READ)]);
    }

    #[test]
    fn what_is_read_and_written_in_turns_is_declared_for_both() {
        let (_, lines, _) = schema();
        let key = [(line(1, 7, 1), READ)];
        let written = [(line(1, 7, 1), Access::WRITE)];
        assert_eq!(widened(&written, &key, 2), [(line(1, 7, 1), UPDATE)]);
        let order = [(lines.prefix((1, 7)).unwrap(), READ)];
        assert_eq!(widened(&written, &order, 3), [(lines.prefix((1, 7)).unwrap(), UPDATE)]);
    }

    #[test]
    fn what_is_too_much_to_send_is_not_declared() {
        let mut storage = MemoryStorage::new();
        let row = vec![7; 60_000];
        let mut add = |order| {
            let key = line(1, order, 1).start;
            storage.load(&key, key.hash(), &row, Position::LOADED);
            can_be_sent(&footprint(&[(schema().1.all(), READ)]), &mut storage)
        };
        let fits = (0..400).take_while(|order| add(*order)).count();
        assert_eq!(fits, READ_RESULTS_BYTES_MAX / 2 / 60_000);
        // What is only written is not sent.
        assert!(can_be_sent(&footprint(&[(schema().1.all(), Access::WRITE)]), &mut storage));
    }

    #[test]
    fn in_the_end_there_are_whole_tables() {
        let (_, lines, names) = schema();
        let found = [(line(1, 1, 1), READ), (line(2, 1, 1), Access::WRITE), (name("a"), READ)];
        let tables = [(lines.all(), UPDATE), (names.all(), READ)];
        assert_eq!(widened(&found, &found, RESTARTS_BEFORE_TABLES), tables);
        assert_eq!(widened(&found, &found, RESTARTS_BEFORE_TABLES - 1), found);
    }

    fn access() -> impl Strategy<Value = Access> {
        prop_oneof![Just(Access::READ), Just(Access::WRITE), Just(Access::UPDATE)]
    }

    fn one() -> impl Strategy<Value = (KeyRange, Access)> {
        let line = (0..3, 0..3, 0..3).prop_map(|(site, order, number)| line(site, order, number));
        (prop_oneof![line, "[ab]{0,2}".prop_map(|text| name(&text))], access())
    }

    proptest! {
        /// Whatever the rows that decide do: an attempt that misses a key of the table declares more columns' worth of it next
        /// time, so that a table with three key columns is missed three times at most after the first two attempts.
        #[test]
        fn no_table_is_missed_more_often_than_its_key_has_columns(
            finds in proptest::collection::vec(one(), 8),
        ) {
            let (schema, ..) = schema();
            let table = |(keys, _): &(KeyRange, Access)| keys.start.table();
            let one_table: Vec<_> = finds.iter().filter(|find| table(find) == table(&finds[0])).collect();
            let mut before = footprint(&[finds[0].clone()]);
            let mut misses = 0;
            for find in one_table {
                let found = footprint(std::slice::from_ref(find));
                let is_covered = |known: &Footprint| {
                    regions(known).any(|known| known.keys.covers(&find.0) && known.access.covers(find.1))
                };
                misses += u32::from(!is_covered(&before));
                before = widen(&found, &before, 2, &schema, 3).unwrap();
                prop_assert!(is_covered(&before));
            }
            // Each may be missed once more for each kind of access.
            prop_assert!(misses <= 3 + 2, "{misses}");
        }

        #[test]
        fn what_is_around_and_within_is_found(
            known in proptest::collection::vec((0..30_u8, 1..12_u8), 0..30),
            (start, length) in (0..30_u8, 1..12_u8),
        ) {
            let range = |start: u8, length: u8| KeyRange {
                start: Key::from_bytes(&[start]),
                end: Key::from_bytes(&[start + length]),
            };
            let keys = range(start, length);
            let regions: Vec<KeyRange> = known.iter().map(|(start, length)| range(*start, *length)).collect();
            let region = |keys: &KeyRange| Region { keys: keys.clone(), access: READ, is_range: true };
            let known = Known::new(regions.iter().map(region));
            let in_order = |mut found: Vec<KeyRange>| { found.sort(); found };
            let around = known.around(&keys).map(|region| region.keys.clone()).collect();
            let expected = regions.iter().filter(|known| known.covers(&keys)).cloned().collect();
            prop_assert_eq!(in_order(around), in_order(expected));
            let within = known.within(&keys).map(|region| region.keys.clone()).collect();
            let expected = regions.iter().filter(|known| keys.covers(known)).cloned().collect();
            prop_assert_eq!(in_order(within), in_order(expected));
        }

        #[test]
        fn all_that_was_found_is_declared(
            found in proptest::collection::vec(one(), 0..12),
            before in proptest::collection::vec(one(), 0..12),
            restarts in 2..20_u32,
        ) {
            let declared = widened(&found, &before, restarts);
            for (keys, access) in &found {
                let allowed = declared.iter().any(|(known, allowed)| known.covers(keys) && allowed.covers(*access));
                prop_assert!(allowed, "{keys:?} {access:?} in {declared:?}");
            }
        }
    }
}
