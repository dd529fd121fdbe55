//! Rows of a range where what was written lies over what is below.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Stop;
use super::transaction::Found;
use crate::data::{Direction, Key, KeyRange};

/// What was written, and what it lies over.
pub(crate) trait Layers {
    /// The rows below that come first in a range.
    fn below(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop>;

    /// The keys that were written and come first in a range.
    fn written(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Key>;

    /// The row of a key that was written, over the one below; `None` if it was deleted.
    fn row(&mut self, key: &Key, below: Option<&[u8]>) -> Result<Option<Vec<u8>>, Stop>;
}

/// The rows that come first in a range. However much was written in it, no more is looked at than it takes to find them.
pub(crate) fn scan(
    layers: &mut impl Layers,
    range: &KeyRange,
    direction: Direction,
    limit: usize,
) -> Result<Vec<Found>, Stop> {
    if range.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let (mut rows, mut rest) = (Vec::new(), range.clone());
    // What was written may hide rows that are below: then there is another part, each twice as long as the one before.
    let mut most = limit;
    loop {
        let written = layers.written(&rest, direction, most);
        let below = layers.below(&rest, direction, most)?;
        let last_written = written.last().filter(|_| written.len() == most);
        let last_below = below.last().map(|found| &found.key).filter(|_| below.len() == most);
        // Up to here both are known.
        let ends = last_written.into_iter().chain(last_below);
        let end = ends.min_by(|one, other| direction.compare(*one, *other)).cloned();
        let is_known = |key: &Key| end.as_ref().is_none_or(|end| direction.compare(key, end).is_le());
        if written.is_empty() && rows.is_empty() {
            // All that is known, and no more than is wanted.
            rows = below;
            rows.truncate(limit);
        } else {
            let below = below.into_iter().filter(|found| is_known(&found.key));
            let mut part: BTreeMap<Key, Bytes> = below.map(|found| (found.key, found.row)).collect();
            for key in written.into_iter().filter(is_known) {
                let below = part.remove(&key);
                if let Some(row) = layers.row(&key, below.as_deref())? {
                    part.insert(key, row.into());
                }
            }
            let part = direction.of_ascending(part.into_iter()).take(limit - rows.len());
            rows.extend(part.map(|(key, row)| Found { key, row }));
        }
        match end {
            Some(end) if rows.len() < limit => rest = rest.unseen(direction, &end),
            _ => return Ok(rows),
        }
        most = most.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Rows {
        below: BTreeMap<Key, Vec<u8>>,
        written: BTreeMap<Key, Option<Vec<u8>>>,
        /// How many rows and keys were given.
        given: usize,
    }

    impl Layers for Rows {
        fn below(
            &mut self,
            range: &KeyRange,
            direction: Direction,
            limit: usize,
        ) -> Result<Vec<Found>, Stop> {
            let rows = direction.of_ascending(self.below.range(range.start.clone()..range.end.clone()));
            let rows = rows.take(limit).map(|(key, row)| Found { key: key.clone(), row: row.clone().into() });
            let rows: Vec<Found> = rows.collect();
            self.given += rows.len();
            Ok(rows)
        }

        fn written(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Key> {
            let keys = direction.of_ascending(self.written.range(range.start.clone()..range.end.clone()));
            let keys: Vec<Key> = keys.take(limit).map(|(key, _)| key.clone()).collect();
            self.given += keys.len();
            keys
        }

        fn row(&mut self, key: &Key, below: Option<&[u8]>) -> Result<Option<Vec<u8>>, Stop> {
            assert_eq!(
                below,
                self.below.get(key).map(Vec::as_slice),
                "what is below is found with what is over it"
            );
            Ok(self.written[key].clone())
        }
    }

    fn key(number: u8) -> Key {
        Key::from_bytes(&[number])
    }

    proptest! {
        #[test]
        fn it_gives_what_a_map_of_all_gives(
            below in proptest::collection::btree_map(0..40_u8, any::<u8>(), 0..40),
            written in proptest::collection::btree_map(0..40_u8, proptest::option::of(any::<u8>()), 0..40),
            (start, end) in (0..40_u8, 0..41_u8),
            limit in prop_oneof![0..12_usize, Just(usize::MAX)],
            descends in any::<bool>(),
        ) {
            let direction = if descends { Direction::Descending } else { Direction::Ascending };
            let range = KeyRange { start: key(start), end: key(end) };
            let mut all: BTreeMap<Key, Vec<u8>> = below.iter().map(|(number, row)| (key(*number), vec![*row])).collect();
            let mut rows = Rows { below: all.clone(), written: BTreeMap::new(), given: 0 };
            for (number, row) in &written {
                rows.written.insert(key(*number), row.map(|row| vec![row]));
                match row {
                    Some(row) => drop(all.insert(key(*number), vec![*row])),
                    None => drop(all.remove(&key(*number))),
                }
            }
            let expected = direction.of_ascending(all.into_iter().filter(|(key, _)| range.contains(key)));
            let expected: Vec<(Key, Vec<u8>)> = expected.take(limit).collect();
            let found = scan(&mut rows, &range, direction, limit).unwrap();
            let found: Vec<(Key, Vec<u8>)> = found.into_iter().map(|found| (found.key, found.row.to_vec())).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn few_rows_take_few_looks() {
        let below = (0..200).map(|number| (key(number), vec![number])).collect();
        let written = (0..200).map(|number| (key(number), (number >= 10).then(|| vec![1]))).collect();
        let mut rows = Rows { below, written, given: 0 };
        let range = KeyRange { start: key(0), end: key(200) };
        assert_eq!(scan(&mut rows, &range, Direction::Descending, 3).unwrap().len(), 3);
        assert_eq!(rows.given, 6);
        rows.given = 0;
        // Ten rows are hidden.
        assert_eq!(scan(&mut rows, &range, Direction::Ascending, 1).unwrap()[0].key, key(10));
        assert!(rows.given <= 2 * 15, "{}", rows.given);
    }
}
