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
