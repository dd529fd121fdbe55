//! Writes that only their writer sees: they are laid over what is there.

use std::collections::BTreeMap;

use super::layers::{self, Layers};
use super::transaction::{Access, Found};
use super::{Footprint, Stop};
use crate::data::row::FixedValue;
use crate::data::{DataError, Direction, Key, KeyRange, Table};

/// Rows that were written; `None` where one was deleted.
pub type Written = BTreeMap<Key, Option<Vec<u8>>>;

/// See the [module](self).
pub struct Overlay<'a> {
    below: &'a mut dyn Access,
    written: &'a mut Written,
}

impl<'a> Overlay<'a> {
    /// Lays what was `written` over what is there.
    pub fn new(below: &'a mut dyn Access, written: &'a mut Written) -> Overlay<'a> {
        Overlay { below, written }
    }
}

impl Access for Overlay<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        match self.written.get(key) {
            Some(row) => Ok(row.as_deref()),
            None => self.below.get(key),
        }
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.written.insert(key.clone(), Some(row.to_vec()));
        Ok(())
    }

    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        let Some(row) = self.get(key)? else { return Ok(false) };
        let mut row = row.to_vec();
        values.iter().for_each(|value| table.layout().replace(&mut row, value));
        self.written.insert(key.clone(), Some(row));
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.written.insert(key.clone(), None);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        layers::scan(self, range, direction, limit)
    }

    fn looks_ahead(&self) -> Option<u16> {
        self.below.looks_ahead()
    }

    fn look_ahead(&mut self, ahead: &Footprint, refused: Option<DataError>, all: bool) -> Result<(), Stop> {
        self.below.look_ahead(ahead, refused, all)
    }

    fn is_past_gaps(&self) -> bool {
        self.below.is_past_gaps()
    }

    fn computed(&mut self) -> Option<u64> {
        self.below.computed()
    }

    fn note_computed(&mut self, units: u64, result: u64) {
        self.below.note_computed(units, result);
    }
}

impl Layers for Overlay<'_> {
    fn below(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        self.below.scan(range, direction, limit)
    }

    fn written(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Key> {
        keys_in(self.written, range, direction, limit)
    }

    fn row(&mut self, key: &Key, _: Option<&[u8]>) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.written.get(key).cloned().flatten())
    }
}

/// The keys that were written and come first in a range, which is not empty.
pub(super) fn keys_in(written: &Written, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Key> {
    let keys = direction.of_ascending(written.range(range.start.clone()..range.end.clone()));
    keys.take(limit).map(|(key, _)| key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that cannot be written.
    struct Fixed(BTreeMap<Key, Vec<u8>>);

    impl Access for Fixed {
        fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
            Ok(self.0.get(key).map(Vec::as_slice))
        }

        fn put(&mut self, _: &Key, _: &[u8]) -> Result<(), Stop> {
            panic!("what is below is written")
        }

        fn replace(&mut self, _: &Table, _: &Key, _: &[FixedValue]) -> Result<bool, Stop> {
            panic!("what is below is written")
        }

        fn delete(&mut self, _: &Key) -> Result<(), Stop> {
            panic!("what is below is written")
        }

        fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
            let rows = direction.of_ascending(self.0.range(range.start.clone()..range.end.clone()));
            Ok(rows
                .take(limit)
                .map(|(key, row)| Found { key: key.clone(), row: row.clone().into() })
                .collect())
        }
    }

    fn key(number: u8) -> Key {
        Key::from_bytes(&[0, 0, number])
    }

    #[test]
    fn what_is_written_hides_what_is_below() {
        let mut below = Fixed((1..=6).map(|number| (key(number), vec![number])).collect());
        let mut written = Written::new();
        let mut overlay = Overlay::new(&mut below, &mut written);
        overlay.delete(&key(1)).unwrap();
        overlay.delete(&key(4)).unwrap();
        overlay.put(&key(2), &[20]).unwrap();
        overlay.put(&key(9), &[90]).unwrap();
        overlay.put(&key(5), &[50]).unwrap();
        overlay.delete(&key(5)).unwrap();
        assert_eq!(overlay.get(&key(1)).unwrap(), None);
        assert_eq!(overlay.get(&key(2)).unwrap(), Some(&[20][..]));
        assert_eq!(overlay.get(&key(3)).unwrap(), Some(&[3][..]));
        let range = KeyRange { start: key(1), end: key(10) };
        for limit in 0..6 {
            for (direction, all) in
                [(Direction::Ascending, [20, 3, 6, 90]), (Direction::Descending, [90, 6, 3, 20])]
            {
                let found = overlay.scan(&range, direction, limit).unwrap();
                let rows: Vec<u8> = found.iter().map(|found| found.row[0]).collect();
                assert_eq!(rows, all[..limit.min(all.len())]);
            }
        }
    }
}
