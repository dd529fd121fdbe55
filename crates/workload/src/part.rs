//! Parts of a workload's key space: what one partition of a cluster owns.

use std::fmt;

use ordain_db::data::{Key, Table};
use ordain_db::error::Error;
use ordain_db::position::PartitionId;

use crate::random::Random;

/// The sites or warehouses that one partition owns: those whose number is the partition's modulo the number of
/// partitions, as [`Partitioning::Column`](ordain_db::data::Partitioning) places them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    partition: PartitionId,
    partitions: u16,
}

impl Part {
    /// Everything: the one part of a cluster of one partition.
    pub const WHOLE: Part = Part { partition: PartitionId(0), partitions: 1 };

    /// What `partition` owns in a cluster of `partitions`.
    ///
    /// # Panics
    /// When there is no such partition.
    pub fn of(partition: PartitionId, partitions: u16) -> Part {
        assert!(partition.0 < partitions, "there is no partition {partition} among {partitions}");
        Part { partition, partitions }
    }

    /// Whether rows with this number in the partitioning column are in the part.
    pub fn includes(self, number: i64) -> bool {
        number.rem_euclid(i64::from(self.partitions)) == i64::from(self.partition.0)
    }

    /// Whether a key of a table is in the part.
    pub fn holds(self, table: &Table, key: &Key) -> bool {
        table.owner(key.bytes(), self.partitions).includes(self.partition)
    }

    /// The numbers from `first` to `last`, both included, that are in the part, ascending.
    pub fn numbers(self, first: i64, last: i64) -> impl Iterator<Item = i64> {
        (self.at(first, 0)..=last).step_by(usize::from(self.partitions))
    }

    /// How many numbers from `first` to `last`, both included, are in the part.
    pub fn count(self, first: i64, last: i64) -> u64 {
        let lowest = self.at(first, 0);
        if lowest > last { 0 } else { (last - lowest) as u64 / u64::from(self.partitions) + 1 }
    }

    /// The number with the given place among those of the part that are not below `first`.
    #[inline]
    fn at(self, first: i64, place: u64) -> i64 {
        let partitions = i64::from(self.partitions);
        first + (i64::from(self.partition.0) - first).rem_euclid(partitions) + place as i64 * partitions
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of {}", self.partition.0, self.partitions)
    }
}

/// The sites or warehouses that a generator's calls come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Homes {
    part: Part,
    first: i64,
    /// At least one.
    count: u64,
}

impl Homes {
    /// The numbers from `first` to `last`, both included, that are in the part; `what` they number, for people.
    pub(crate) fn new(part: Part, what: &str, first: i64, last: i64) -> Result<Homes, Error> {
        let count = part.count(first, last);
        if count == 0 {
            return Err(Error::Invalid(format!(
                "{part} has none of the {what} {first} to {last}: give at least as many {what} as partitions"
            )));
        }
        Ok(Homes { part, first, count })
    }

    /// A uniform draw.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> i64 {
        self.part.at(self.first, random.below(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_complete() {
        for partitions in 1..=5 {
            let mut all = Vec::new();
            for partition in 0..partitions {
                let part = Part::of(PartitionId(partition), partitions);
                let numbers: Vec<i64> = part.numbers(1, 12).collect();
                assert_eq!(numbers.len() as u64, part.count(1, 12));
                assert!(numbers.iter().all(|number| part.includes(*number)));
                all.extend(numbers);
            }
            all.sort_unstable();
            assert_eq!(all, (1..=12).collect::<Vec<i64>>());
        }
    }

    #[test]
    fn a_part_may_be_empty() {
        let part = Part::of(PartitionId(3), 4);
        assert_eq!((part.count(0, 2), part.numbers(0, 2).count()), (0, 0));
    }
}
