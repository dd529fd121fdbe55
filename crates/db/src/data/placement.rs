//! Which partition owns a key: by hash, by range, by a named column, or a copy everywhere.

use super::key::{KeyRange, encoded_width};
use super::schema::Table;
use super::value::ColumnType;
use crate::hash::key_hash;
use crate::position::PartitionId;

/// How the rows of a table are spread over the partitions of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partitioning {
    /// By a hash of the first `columns` columns of the key.
    Hash {
        /// Number of leading key columns that are hashed.
        columns: usize,
    },
    /// By ranges of the key. Boundary `i` is the first key (or key prefix) that belongs to range `i + 1`; range `i` lies
    /// on partition `i` modulo the number of partitions. Made by [`super::schema::TableBuilder::partition_by_range`].
    Range {
        /// Encoded boundaries in ascending order, without the table prefix.
        boundaries: Vec<Vec<u8>>,
    },
    /// By the value of one integer column of the key, modulo the number of partitions; columns before it must have a
    /// fixed width.
    Column {
        /// The place of the column in the key.
        key_column: usize,
    },
    /// Every partition holds all rows: reads are local everywhere, writes go everywhere.
    Replicated,
}

/// Who holds a key or a range of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// One partition.
    Partition(PartitionId),
    /// Every partition holds a full copy.
    Replicated,
    /// Each partition holds a part of the range.
    Split,
}

impl Owner {
    /// Whether the partition holds the key, or a part of the range.
    pub fn includes(self, partition: PartitionId) -> bool {
        match self {
            Owner::Partition(owner) => owner == partition,
            Owner::Replicated | Owner::Split => true,
        }
    }
}

impl Table {
    /// The owner of an encoded key of this table in a cluster of `partitions`.
    #[inline]
    pub fn owner(&self, key: &[u8], partitions: u16) -> Owner {
        if matches!(self.partitioning(), Partitioning::Replicated) {
            return Owner::Replicated;
        }
        if partitions == 1 {
            return Owner::Partition(PartitionId(0));
        }
        self.owner_of_columns(&key[2..], partitions).map_or(Owner::Split, Owner::Partition)
    }

    /// The owner of a range of keys of this table: one partition when the range lies within one value of the columns that
    /// decide the placement.
    pub fn range_owner(&self, range: &KeyRange, partitions: u16) -> Owner {
        match self.partitioning() {
            Partitioning::Replicated => Owner::Replicated,
            _ if partitions == 1 => Owner::Partition(PartitionId(0)),
            Partitioning::Range { boundaries } => {
                let (start, end) =
                    (range_of(boundaries, &range.start[2..]), end_range_of(boundaries, range, self));
                if start == end { Owner::Partition(range_partition(start, partitions)) } else { Owner::Split }
            }
            _ => self.prefix_owner(range, partitions),
        }
    }

    fn prefix_owner(&self, range: &KeyRange, partitions: u16) -> Owner {
        let Some(width) = self.deciding_bytes(&range.start[2..]) else { return Owner::Split };
        let prefix = super::key::Key::from_bytes(&range.start[..2 + width]);
        if range.end > prefix.successor_of_prefix() {
            return Owner::Split;
        }
        self.owner_of_columns(&range.start[2..], partitions).map_or(Owner::Split, Owner::Partition)
    }

    /// Number of leading bytes of the key's columns that decide the placement; `None` when `columns` ends before them.
    fn deciding_bytes(&self, columns: &[u8]) -> Option<usize> {
        let deciding = match self.partitioning() {
            Partitioning::Hash { columns } => *columns,
            Partitioning::Column { key_column } => key_column + 1,
            Partitioning::Range { .. } | Partitioning::Replicated => return None,
        };
        let mut width = 0;
        for column in self.key_columns().take(deciding) {
            width += encoded_width(&columns[width..], column)?;
        }
        Some(width)
    }

    #[inline]
    fn owner_of_columns(&self, columns: &[u8], partitions: u16) -> Option<PartitionId> {
        match self.partitioning() {
            Partitioning::Hash { .. } => {
                let hash = key_hash(&columns[..self.deciding_bytes(columns)?]);
                // Multiply-shift maps the hash evenly without a division.
                Some(PartitionId(((u128::from(hash) * u128::from(partitions)) >> 64) as u16))
            }
            Partitioning::Range { boundaries } => {
                Some(range_partition(range_of(boundaries, columns), partitions))
            }
            Partitioning::Column { .. } => {
                let (offset, column) = self.deciding_integer();
                let value = match column {
                    ColumnType::Int32 => {
                        i64::from(i32::from_be_bytes(*columns.get(offset..)?.first_chunk()?) ^ i32::MIN)
                    }
                    _ => i64::from_be_bytes(*columns.get(offset..)?.first_chunk()?) ^ i64::MIN,
                };
                Some(PartitionId(value.rem_euclid(i64::from(partitions)) as u16))
            }
            Partitioning::Replicated => None,
        }
    }
}

fn range_of(boundaries: &[Vec<u8>], columns: &[u8]) -> usize {
    boundaries.partition_point(|boundary| boundary.as_slice() <= columns)
}

/// The range that the last key before the range's end falls into.
fn end_range_of(boundaries: &[Vec<u8>], range: &KeyRange, table: &Table) -> usize {
    match range.end.strip_prefix(&table.id().0.to_be_bytes()) {
        // The end is exclusive: a boundary equal to it is not reached.
        Some(columns) => boundaries.partition_point(|boundary| boundary.as_slice() < columns),
        None => boundaries.len(),
    }
}

fn range_partition(range: usize, partitions: u16) -> PartitionId {
    PartitionId((range % usize::from(partitions)) as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::{Key, SchemaBuilder, TableBuilder, Values};

    /// One table of each placement and key shape.
    fn tables() -> Vec<Table> {
        let builder = |name: &str| {
            Table::builder(name)
                .column("small", ColumnType::Int32)
                .column("big", ColumnType::Int64)
                .column("text", ColumnType::Text)
        };
        let keyed = |name: &str| builder(name).primary_key(&["small", "big", "text"]);
        let builders: Vec<TableBuilder> = vec![
            keyed("hash of all"),
            keyed("hash of one").partition_by_hash(1),
            keyed("hash of two").partition_by_hash(2),
            builder("hash of text").primary_key(&["text", "small", "big"]).partition_by_hash(1),
            keyed("first column").partition_by_column("small"),
            keyed("second column").partition_by_column("big"),
            keyed("range").partition_by_range(&[-10, 0, 7, 8, 1000]),
            builder("big range").primary_key(&["big", "text", "small"]).partition_by_range(&[-1, 1]),
            keyed("replicated").replicated(),
        ];
        let mut schema = SchemaBuilder::new();
        builders.into_iter().map(|builder| schema.table(builder).unwrap()).collect()
    }

    type Columns = (i32, i64, String);

    fn columns() -> impl Strategy<Value = Columns> {
        let small = prop_oneof![4 => -12..12_i32, 1 => any::<i32>()];
        let big = prop_oneof![4 => -3..3_i64, 1 => any::<i64>()];
        (small, big, "[\\x00ab]{0,2}")
    }

    /// Some leading columns of a key, encoded as a prefix of the table's keys.
    fn bound(table: &Table, columns: &Columns, count: usize) -> KeyRange {
        let (small, big, text) = (columns.0, columns.1, columns.2.as_str());
        fn first(table: &Table, values: impl Values + Copy) -> KeyRange {
            table.prefix(values).unwrap()
        }
        let types: Vec<ColumnType> = table.key_columns().collect();
        match (types[0], types[1], count) {
            (_, _, 0) => first(table, &[][..]),
            (ColumnType::Int32, _, 1) => first(table, (small,)),
            (ColumnType::Int32, _, 2) => first(table, (small, big)),
            (ColumnType::Int32, _, _) => first(table, (small, big, text)),
            (ColumnType::Int64, _, 1) => first(table, (big,)),
            (ColumnType::Int64, _, 2) => first(table, (big, text)),
            (ColumnType::Int64, _, _) => first(table, (big, text, small)),
            (_, _, 1) => first(table, (text,)),
            (_, _, 2) => first(table, (text, small)),
            (_, _, _) => first(table, (text, small, big)),
        }
    }

    fn key(table: &Table, columns: &Columns) -> Key {
        bound(table, columns, 3).start
    }

    proptest! {
        /// Whoever owns a range owns every key in it; and what one prefix decides is never split.
        #[test]
        fn ranges_are_owned_as_their_keys_are(
            from in columns(),
            to in columns(),
            other in columns(),
            counts in (0..4_usize, 0..4_usize),
            partitions in prop_oneof![1..9_u16, Just(256)],
        ) {
            for table in tables() {
                let (start, end) = (bound(&table, &from, counts.0), bound(&table, &to, counts.1));
                let ranges = [
                    start.clone(),
                    KeyRange { start: start.start.clone(), end: end.start.clone() },
                    KeyRange { start: start.start.clone(), end: end.end },
                    start.up_to(&key(&table, &other)),
                    start.after(&key(&table, &other)),
                    KeyRange::one(&key(&table, &from)),
                    table.all(),
                ];
                for range in ranges.iter().filter(|range| !range.is_empty()) {
                    let owner = table.range_owner(range, partitions);
                    for columns in [&from, &to, &other] {
                        let key = key(&table, columns);
                        if range.contains(&key) && owner != Owner::Split {
                            prop_assert_eq!(table.owner(&key, partitions), owner, "{}: {:?}", table.name(), range);
                        }
                    }
                }
                prop_assert_ne!(table.range_owner(&ranges[5], partitions), Owner::Split, "{}", table.name());
            }
        }

        #[test]
        fn keys_are_owned_by_a_partition_of_the_cluster(columns in columns(), partitions in 1..=256_u16) {
            for table in tables() {
                match table.owner(&key(&table, &columns), partitions) {
                    Owner::Partition(owner) => prop_assert!(owner.0 < partitions),
                    owner => prop_assert_eq!((owner, table.name()), (Owner::Replicated, "replicated")),
                }
            }
        }
    }

    fn named(name: &str) -> Table {
        tables().into_iter().find(|table| table.name() == name).unwrap()
    }

    fn partition(table: &Table, small: i32, big: i64, partitions: u16) -> u16 {
        match table.owner(&key(table, &(small, big, String::new())), partitions) {
            Owner::Partition(owner) => owner.0,
            owner => panic!("{owner:?}"),
        }
    }

    #[test]
    fn columns_place_by_their_value_modulo_partitions() {
        let (first, second) = (named("first column"), named("second column"));
        for value in -9..9_i32 {
            let expected = value.rem_euclid(4) as u16;
            assert_eq!(partition(&first, value, 5, 4), expected);
            assert_eq!(partition(&second, 5, i64::from(value), 4), expected);
        }
    }

    #[test]
    fn boundaries_are_the_first_of_their_range() {
        let table = named("range");
        for (value, range) in
            [(-11, 0), (-10, 1), (-1, 1), (0, 2), (6, 2), (7, 3), (8, 4), (999, 4), (1000, 5)]
        {
            assert_eq!(partition(&table, value, 0, 8), range, "{value}");
            assert_eq!(partition(&table, value, 0, 4), range % 4, "{value}");
        }
        let owner = |from: i32, to: i32| table.range_owner(&table.range((from,), (to,)).unwrap(), 8);
        assert_eq!(owner(0, 7), Owner::Partition(PartitionId(2)));
        assert_eq!(owner(0, 8), Owner::Split);
        assert_eq!(owner(7, 8), Owner::Partition(PartitionId(3)));
        assert_eq!(
            table.range_owner(&table.range((1000,), (1001,)).unwrap(), 8),
            Owner::Partition(PartitionId(5))
        );
        assert_eq!(table.range_owner(&table.all(), 8), Owner::Split);
        assert_eq!(table.range_owner(&table.all(), 1), Owner::Partition(PartitionId(0)));
    }

    #[test]
    fn a_prefix_of_the_deciding_columns_is_split_and_what_follows_is_not() {
        let table = named("hash of two");
        let owner = |range: KeyRange| table.range_owner(&range, 8);
        assert_eq!(owner(table.prefix((1_i32,)).unwrap()), Owner::Split);
        assert!(matches!(owner(table.prefix((1_i32, 2_i64)).unwrap()), Owner::Partition(_)));
        let within = table.range((1_i32, 2_i64, "a"), (1_i32, 2_i64, "b")).unwrap();
        assert_eq!(owner(within), owner(table.prefix((1_i32, 2_i64)).unwrap()));
        assert_eq!(
            owner(table.range((1_i32, 2_i64), (1_i32, 3_i64)).unwrap()),
            owner(table.prefix((1_i32, 2_i64)).unwrap())
        );
        assert_eq!(owner(table.range((1_i32, 2_i64), (1_i32, 4_i64)).unwrap()), Owner::Split);
    }

    #[test]
    fn hashes_spread_evenly() {
        let table = named("hash of one");
        let mut counts = [0; 8];
        (0..8000).for_each(|small| counts[usize::from(partition(&table, small, 0, 8))] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_key_that_ends_early_has_no_owner() {
        for table in
            tables().iter().filter(|table| !table.name().contains("range") && table.name() != "replicated")
        {
            assert_eq!(table.owner(&table.all().start, 4), Owner::Split, "{}", table.name());
        }
    }
}
