//! Which of the transactions that meet at a partition conflict there.

use std::collections::BTreeMap;
use std::ops::Bound;

use ordain_db::data::{Key, KeyRange};
use ordain_db::position::PartitionId;

use super::locked_at;
use super::touched::Touched;

/// All transactions, by the partitions that they touch.
pub(super) struct Meetings(Vec<Meeting>);

/// The transactions that touch one partition.
#[derive(Clone, Default)]
struct Meeting {
    /// How many there are; each has its place among them as its number.
    transactions: usize,
    /// Who touches a key, and whether to write it.
    keys: BTreeMap<Key, Vec<(usize, bool)>>,
    ranges: Vec<(usize, KeyRange, bool)>,
}

impl Meetings {
    pub(super) fn new(partitions: u16) -> Meetings {
        Meetings(vec![Meeting::default(); usize::from(partitions)])
    }

    /// Adds what a transaction touches at a partition.
    pub(super) fn add(&mut self, partition: PartitionId, touched: &Touched) {
        let Some(meeting) = self.0.get_mut(partition.index()) else { return };
        let place = meeting.transactions;
        meeting.transactions += 1;
        for (key, (owner, write)) in &touched.keys {
            if locked_at(*owner, *write, partition) {
                meeting.keys.entry(key.clone()).or_default().push((place, *write));
            }
        }
        let ranges = touched.ranges.iter().filter(|(_, owner, write)| locked_at(*owner, *write, partition));
        meeting.ranges.extend(ranges.map(|(range, _, write)| (place, range.clone(), *write)));
    }

    /// Of all pairs that meet at a partition, the share that conflict there.
    pub(super) fn conflicting_share(&self) -> f64 {
        let pairs = |meeting: &Meeting| {
            meeting.transactions as u64 * (meeting.transactions.saturating_sub(1)) as u64 / 2
        };
        let all: u64 = self.0.iter().map(pairs).sum();
        let conflicting: u64 = self.0.iter().map(Meeting::conflicts).sum();
        conflicting as f64 / (all as f64).max(1.0)
    }
}

impl Meeting {
    /// How many pairs conflict, each counted once however many keys they share.
    fn conflicts(&self) -> u64 {
        let mut pairs = Pairs::new(self.transactions);
        for touchers in self.keys.values() {
            for (writer, _) in touchers.iter().filter(|(_, write)| *write) {
                touchers.iter().for_each(|(other, _)| pairs.mark(*writer, *other));
            }
        }
        for (place, range, write) in &self.ranges {
            let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
            let within = if range.is_empty() { None } else { Some(self.keys.range::<[u8], _>(bounds)) };
            for (_, touchers) in within.into_iter().flatten() {
                let conflicting = touchers.iter().filter(|(_, other)| *write || *other);
                conflicting.for_each(|(other, _)| pairs.mark(*place, *other));
            }
            for (other, others, writes) in &self.ranges {
                let meet =
                    range.start.bytes() < others.end.bytes() && others.start.bytes() < range.end.bytes();
                if meet && (*write || *writes) {
                    pairs.mark(*place, *other);
                }
            }
        }
        pairs.count()
    }
}

/// A set of pairs of numbers: a bit for each pair with the lower number first.
struct Pairs {
    numbers: usize,
    bits: Vec<u64>,
}

impl Pairs {
    fn new(numbers: usize) -> Pairs {
        Pairs { numbers, bits: vec![0; (numbers * numbers).div_ceil(64)] }
    }

    /// Adds a pair; nothing is a pair with itself.
    fn mark(&mut self, one: usize, other: usize) {
        if one != other {
            let bit = one.min(other) * self.numbers + one.max(other);
            self.bits[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::data::{ColumnType, Owner, SchemaBuilder, Table};

    use super::*;

    fn table() -> Table {
        let table = Table::builder("t").column("id", ColumnType::Int32).primary_key(&["id"]);
        SchemaBuilder::new().table(table).unwrap()
    }

    /// A transaction of partition 0: `r1 w2 R3-5 W7-9`, with the ends of ranges left out.
    fn touched(text: &str) -> Touched {
        let table = table();
        let key = |id: &str| table.key((id.parse::<i32>().unwrap(),)).unwrap();
        let owner = Owner::Partition(PartitionId(0));
        let mut touched = Touched::default();
        for word in text.split_whitespace() {
            let (kind, ids) = word.split_at(1);
            match ids.split_once('-') {
                Some((start, end)) => {
                    let range = KeyRange { start: key(start), end: key(end) };
                    touched.ranges.push((range, owner, kind == "W"));
                }
                None => drop(touched.keys.insert(key(ids), (owner, kind == "w"))),
            }
        }
        touched
    }

    fn share(transactions: &[&str]) -> f64 {
        let mut meetings = Meetings::new(2);
        transactions.iter().for_each(|text| meetings.add(PartitionId(0), &touched(text)));
        // Who is alone at a partition meets nobody there.
        meetings.add(PartitionId(1), &touched("w1"));
        meetings.conflicting_share()
    }

    #[test]
    fn whoever_writes_what_another_touches_conflicts_with_it() {
        for (transactions, expected) in [
            (&["w1", "w1"][..], 1.0),
            (&["r1", "r1"], 0.0),
            (&["r1", "w1", "r1"], 2.0 / 3.0),
            (&["w1 w2 w3", "w1 w2 w3"], 1.0),
            (&["w1", "w2", "w3"], 0.0),
            (&["R1-5", "w4"], 1.0),
            (&["R1-5", "w5"], 0.0),
            (&["R1-5", "r4"], 0.0),
            (&["W1-5", "r4"], 1.0),
            (&["R1-5", "R2-3"], 0.0),
            (&["W1-5", "R4-9"], 1.0),
            (&["W1-5", "R5-9"], 0.0),
            (&["W1-5 w3"], 0.0),
            (&[], 0.0),
        ] {
            assert!(
                (share(transactions) - expected).abs() < 1e-12,
                "{transactions:?}: {}",
                share(transactions)
            );
        }
    }
}
