//! Rows that were read for a transaction before it runs: later ones may have written them since.

use std::ops::Range;

use super::write_buffer::Target;
use crate::data::{Key, KeyRange};
use crate::procedure::Footprint;
use crate::procedure::footprint::Access;

/// The rows of a footprint's entries that one partition holds, copied when each was known.
#[derive(Debug, Default)]
pub struct Captured {
    bytes: Vec<u8>,
    /// By key entry.
    keys: Vec<Captive>,
    /// By range entry: each row with its key, in order.
    ranges: Vec<Vec<(Range<usize>, Range<usize>)>>,
}

/// What is known of a key.
#[derive(Clone, Debug, Default)]
enum Captive {
    #[default]
    Unknown,
    NoRow,
    Row(Range<usize>),
}

impl Captured {
    /// Nothing is known of any entry yet.
    pub(crate) fn reset(&mut self, keys: usize, ranges: usize) {
        self.bytes.clear();
        self.keys.clear();
        self.keys.resize(keys, Captive::Unknown);
        self.ranges.iter_mut().for_each(Vec::clear);
        self.ranges.resize_with(ranges, Vec::new);
    }

    /// Takes the row of a key.
    pub(crate) fn key(&mut self, entry: usize, row: Option<&[u8]>) {
        self.keys[entry] = match row {
            Some(row) => Captive::Row(self.append(row)),
            None => Captive::NoRow,
        };
    }

    /// Takes the next row of a range, in the order of keys.
    pub(crate) fn range_row(&mut self, entry: usize, key: &[u8], row: &[u8]) {
        let found = (self.append(key), self.append(row));
        self.ranges[entry].push(found);
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Whether the row of a key, or that there is none, is known.
    pub(crate) fn knows(&self, entry: usize) -> bool {
        !matches!(self.keys[entry], Captive::Unknown)
    }

    /// The row of a key.
    #[inline]
    pub(crate) fn row(&self, entry: usize) -> Option<&[u8]> {
        match &self.keys[entry] {
            Captive::Row(place) => Some(&self.bytes[place.clone()]),
            Captive::Unknown | Captive::NoRow => None,
        }
    }

    /// The rows of a range, each with its key, in order.
    pub(crate) fn range(&self, entry: usize) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.ranges[entry].iter().map(|(key, row)| (&self.bytes[key.clone()], &self.bytes[row.clone()]))
    }

    /// The rows of a range that are within another one, each with its key, in order.
    pub(crate) fn range_within(
        &self,
        entry: usize,
        within: &KeyRange,
    ) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        let rows = &self.ranges[entry];
        let before = |bound: &Key| rows.partition_point(|(key, _)| self.bytes[key.clone()] < **bound);
        let found = rows.get(before(&within.start)..before(&within.end)).unwrap_or_default();
        found.iter().map(|(key, row)| (&self.bytes[key.clone()], &self.bytes[row.clone()]))
    }

    /// The row of a key in a range.
    pub(crate) fn row_in_range(&self, entry: usize, key: &[u8]) -> Option<&[u8]> {
        let rows = &self.ranges[entry];
        let place = rows.binary_search_by(|(found, _)| self.bytes[found.clone()].cmp(key)).ok()?;
        Some(&self.bytes[rows[place].1.clone()])
    }

    /// The row of what a run wrote, before it.
    pub(crate) fn row_of(&self, target: Target, key: &[u8], footprint: &Footprint) -> Option<&[u8]> {
        // What is written by its entry may be read as part of a range, and what is written as part of one may be read by its entry.
        let entry = match target {
            Target::Entry(entry) => Some(entry),
            Target::InRange { .. } => footprint.find(key),
        };
        if let Some(entry) = entry.filter(|entry| self.knows(*entry)) {
            return self.row(entry);
        }
        let range = footprint.find_range_of(key, Access::READ)?;
        self.row_in_range(range, key)
    }

    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_range_are_found_by_key_and_within_bounds() {
        let mut captured = Captured::default();
        captured.reset(0, 2);
        let keys: [&[u8]; 4] = [b"b", b"ba", b"d", b"f"];
        for (index, key) in keys.into_iter().enumerate() {
            captured.range_row(1, key, &[index as u8]);
        }
        for (index, key) in keys.into_iter().enumerate() {
            assert_eq!(captured.row_in_range(1, key), Some(&[index as u8][..]));
        }
        for other in [&b""[..], b"a", b"bb", b"e", b"g"] {
            assert_eq!(captured.row_in_range(1, other), None);
        }
        assert_eq!(captured.row_in_range(0, b"b"), None, "another range");
        let within = |start: &[u8], end: &[u8]| {
            let range = KeyRange { start: Key::from_bytes(start), end: Key::from_bytes(end) };
            captured.range_within(1, &range).map(|(key, _)| key.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(within(b"ba", b"f"), [&b"ba"[..], b"d"], "the end is not within");
        assert_eq!(within(b"a", b"z"), keys);
        assert_eq!(within(b"f", b"b"), [&b""[..]; 0], "an empty range");
    }
}
