//! The plainest database that can be: an ordered map that one call after another reads and changes.
//!
//! It shares no code with execution: no footprint, no buffered writes, no remote reads. What it answers is right by
//! inspection, so that it can judge the serial engine too.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::data::row::FixedValue;
use ordain_db::data::{Direction, Key, KeyRange, Table};
use ordain_db::error::{Error, Outcome};
use ordain_db::hash::Digest;
use ordain_db::procedure::transaction::{Access, Found};
use ordain_db::procedure::{Catalog, Stop, Transaction};

use super::INTERPRET;

/// All rows by key.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Model {
    pub(crate) rows: BTreeMap<Key, Vec<u8>>,
}

impl Model {
    /// Runs a call of the interpreter to its end, or leaves no trace of it.
    pub(crate) fn call(&mut self, catalog: &Catalog, arguments: &[u8]) -> Outcome {
        let before = self.rows.clone();
        let (mut scratch, mut output) = (Vec::new(), Vec::new());
        let mut transaction = Transaction::new(&catalog.schema, self, &mut scratch);
        let result = catalog.procedures.run(INTERPRET, arguments, &mut transaction, &mut output);
        if result.is_err() {
            self.rows = before;
        }
        match result {
            Ok(()) => Ok(Bytes::from(output)),
            Err(Stop::Abort(reason)) => Err(Error::Aborted(reason)),
            Err(other) => panic!("the model knows no limits: {other:?}"),
        }
    }

    /// The digest that a cluster with these rows has.
    pub(crate) fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        self.rows.iter().for_each(|(key, row)| digest.add(key, row));
        digest
    }
}

impl Access for Model {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        Ok(self.rows.get(key).map(Vec::as_slice))
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.rows.insert(key.clone(), row.to_vec());
        Ok(())
    }

    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        let Some(row) = self.rows.get_mut(key) else { return Ok(false) };
        values.iter().for_each(|value| table.layout().replace(row, value));
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.rows.remove(key);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        let inside = direction.of_ascending(self.rows.iter().filter(|(key, _)| range.contains(key)));
        Ok(inside.take(limit).map(|(key, row)| Found { key: key.clone(), row: row.clone().into() }).collect())
    }
}
