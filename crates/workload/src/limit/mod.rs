//! The limit: the best plain single-threaded layout, to run the same procedures with nothing in the way.
//!
//! A benchmark prints its throughput beside the database's: no order, locks, versions, messages, log or undo. Records stand
//! in one [arena](records), key beside row; one open-addressing [table](index) finds them; columns are replaced in place.
//!
//! What such a store mostly does is wait for memory, so the accesses of a call are made to overlap: what it declares is
//! touched before it runs, and what it inserts is added to the index when it has run.
//!
//! # Limits
//! - No undo: a procedure that aborts after its first write would leave that write behind. None of the benchmarks'
//!   does; they read everything that can make them abort before they write. Those of `append` do.
//! - The space of rows that are deleted, or put as a whole again, is not used again.
//! - A table that is scanned has its keys in a B-tree from its first scan on, which every later insert and delete pays for.

mod index;
mod records;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound;

use bytes::Bytes;
use ordain_db::data::row::FixedValue;
use ordain_db::data::{Direction, Key, KeyRange, Table};
use ordain_db::error::Error;
use ordain_db::hash::key_hash;
use ordain_db::procedure::transaction::{Access, Found};
use ordain_db::procedure::{Catalog, Declared, Footprint, Stop, Transaction};

use crate::{Call, Part, SnapshotReader, Workload};
use index::{Index, tag};
use records::{RecordNumber, Records};

/// Calls whose rows are touched together.
const GROUP_CALLS: usize = 8;

/// Rows that are put before they are added to the index together.
const PENDING_MAX: usize = 32;

/// A plain store. See the [module](self).
#[derive(Default)]
pub struct PlainStore {
    index: Index,
    records: Records,
    /// Tags and records of rows that were put and that the index does not know yet; at most one of each key. They hide
    /// what the index knows.
    pending: Vec<(u32, RecordNumber)>,
    /// Records of the tables that were scanned in the order of their keys, by table number; it knows what the index knows.
    orders: Vec<Option<BTreeMap<Key, RecordNumber>>>,
    // Buffers that runs reuse.
    footprint: Footprint,
    /// Tags, and then records, of the keys that are touched.
    found: Vec<u32>,
    scratch: Vec<u8>,
    output: Vec<u8>,
}

impl PlainStore {
    /// An empty store.
    pub fn new() -> PlainStore {
        PlainStore::default()
    }

    /// A store with all rows of a workload.
    pub fn load(workload: &dyn Workload) -> Result<PlainStore, Error> {
        let mut store = PlainStore::new();
        workload.load(Part::WHOLE, &mut |key, row| store.put_row(key, row))?;
        store.index_pending();
        Ok(store)
    }

    /// Runs a call; returns its encoded result.
    pub fn run(&mut self, catalog: &Catalog, call: &Call) -> Result<&[u8], Stop> {
        self.touch(catalog, std::slice::from_ref(call));
        self.run_touched(catalog, call)
    }

    /// Runs calls in order, in groups whose rows are touched together; `end` is given the encoded result of each.
    pub fn run_all(
        &mut self,
        catalog: &Catalog,
        calls: &[Call],
        mut end: impl FnMut(&Call, Result<&[u8], Stop>),
    ) {
        for group in calls.chunks(GROUP_CALLS) {
            self.touch(catalog, group);
            group.iter().for_each(|call| end(call, self.run_touched(catalog, call)));
        }
    }

    fn run_touched(&mut self, catalog: &Catalog, call: &Call) -> Result<&[u8], Stop> {
        let (mut scratch, mut output) = (std::mem::take(&mut self.scratch), std::mem::take(&mut self.output));
        output.clear();
        let mut transaction = Transaction::new(&catalog.schema, self, &mut scratch);
        let result = catalog.procedures.run(call.procedure, &call.arguments, &mut transaction, &mut output);
        (self.scratch, self.output) = (scratch, output);
        self.index_pending();
        result.map(|()| self.output.as_slice())
    }

    /// Reads a little of each declared key's place in the index, and then of each record: accesses that do not depend on
    /// each other and so overlap, as those of a procedure do not. Each loop is short, so that the processor sees all of its
    /// accesses at once.
    fn touch(&mut self, catalog: &Catalog, calls: &[Call]) {
        let Catalog { schema, procedures } = catalog;
        self.found.clear();
        for call in calls {
            let declared =
                procedures.declare(call.procedure, &call.arguments, schema, 1, &mut self.footprint);
            // A call that fails to declare fails again when it runs.
            if declared == Ok(Declared::Complete) {
                self.found.extend(self.footprint.keys().iter().map(|entry| tag(entry.hash)));
            }
        }
        black_box(self.found.iter().fold(0, |seen, tag| seen ^ self.index.touch(*tag)));
        for found in &mut self.found {
            *found = self.index.find(*found, |_| true).map_or(0, |(_, record)| record.0);
        }
        black_box(self.found.iter().fold(0, |seen, record| seen ^ self.records.touch(RecordNumber(*record))));
    }

    /// Number of rows.
    pub fn rows(&mut self) -> usize {
        self.index_pending();
        self.index.len()
    }

    /// The row of a key.
    #[inline]
    pub fn get_row(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(key).map(|record| self.records.row(record))
    }

    /// Inserts or replaces a row.
    pub fn put_row(&mut self, key: &[u8], row: &[u8]) {
        let tag = tag(key_hash(key));
        let place = self.pending_place(key, tag);
        let record = self.records.append(key, row);
        match place {
            Some(place) => {
                let (_, old) = std::mem::replace(&mut self.pending[place], (tag, record));
                self.records.kill(old);
            }
            None => self.pending.push((tag, record)),
        }
        if self.pending.len() >= PENDING_MAX {
            self.index_pending();
        }
    }

    /// Deletes a row if there is one.
    pub fn delete_row(&mut self, key: &[u8]) {
        self.index_pending();
        let found = self.index.find(tag(key_hash(key)), |record| self.records.key(record) == key);
        if let Some((slot, record)) = found {
            self.index.remove(slot);
            self.records.kill(record);
            if let Some(Some(order)) = self.orders.get_mut(table_number(key)) {
                order.remove(key);
            }
        }
    }

    #[inline]
    fn pending_place(&self, key: &[u8], tag: u32) -> Option<usize> {
        self.pending.iter().position(|(other, record)| *other == tag && self.records.key(*record) == key)
    }

    /// The record of a key.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<RecordNumber> {
        let tag = tag(key_hash(key));
        if let Some(place) = self.pending_place(key, tag) {
            return Some(self.pending[place].1);
        }
        self.index.find(tag, |record| self.records.key(record) == key).map(|(_, record)| record)
    }

    /// Adds what was put to the index.
    fn index_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        black_box(pending.iter().fold(0, |seen, (tag, _)| seen ^ self.index.touch(*tag)));
        for (tag, record) in pending.drain(..) {
            let key = self.records.key(record);
            if let Some(Some(order)) = self.orders.get_mut(table_number(key)) {
                order.insert(Key::from_bytes(key), record);
            }
            if let Some((slot, old)) = self.index.find(tag, |other| self.records.key(other) == key) {
                self.index.replace(slot, record);
                self.records.kill(old);
            } else {
                self.index.insert(tag, record);
            }
        }
        self.pending = pending;
    }

    /// The records of a table in order.
    fn order(&mut self, table: usize) -> &BTreeMap<Key, RecordNumber> {
        if self.orders.len() <= table {
            self.orders.resize_with(table + 1, || None);
        }
        let records = &self.records;
        self.orders[table].get_or_insert_with(|| {
            let keyed = records.live().map(|record| (records.key(record), record));
            let in_table = keyed.filter(|(key, _)| table_number(key) == table);
            in_table.map(|(key, record)| (Key::from_bytes(key), record)).collect()
        })
    }

    /// The records of a range that come first in a direction, at most `limit`. The range lies in one table.
    fn records_in(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<RecordNumber> {
        if range.is_empty() {
            return Vec::new();
        }
        self.index_pending();
        let order = self.order(table_number(&range.start));
        let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
        let records = order.range::<[u8], _>(bounds).map(|(_, record)| *record);
        direction.of_ascending(records).take(limit).collect()
    }
}

fn table_number(key: &[u8]) -> usize {
    ordain_db::data::key::table_of(key).map_or(0, |table| usize::from(table.0))
}

impl Access for PlainStore {
    #[inline]
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        Ok(self.get_row(key))
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.put_row(key, row);
        Ok(())
    }

    #[inline]
    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        let Some(record) = self.find(key) else { return Ok(false) };
        let row = self.records.row_mut(record);
        values.iter().for_each(|value| table.layout().replace(row, value));
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.delete_row(key);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        let records = self.records_in(range, direction, limit);
        let found = |record: &RecordNumber| Found {
            key: Key::from_bytes(self.records.key(*record)),
            row: Bytes::copy_from_slice(self.records.row(*record)),
        };
        Ok(records.iter().map(found).collect())
    }
}

impl SnapshotReader for PlainStore {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.index_pending();
        for record in self.records.live() {
            let key = self.records.key(record);
            if range.contains(key) {
                visit(key, self.records.row(record));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ordain_db::data::{ColumnType, SchemaBuilder, TableBuilder};

    use super::*;
    use crate::random::Random;

    fn tables() -> [Table; 2] {
        let builder = |name| -> TableBuilder { Table::builder(name).column("id", ColumnType::Int32) };
        let mut schema = SchemaBuilder::new();
        ["first", "second"].map(|name| schema.table(builder(name).primary_key(&["id"])).unwrap())
    }

    /// The store against a sorted map, over random puts of changing lengths, deletes, gets and scans.
    #[test]
    fn behaves_like_a_sorted_map() {
        let tables = tables();
        let mut random = Random::new(1, "plain store", &[]);
        let (mut store, mut model) = (PlainStore::new(), BTreeMap::<Vec<u8>, Vec<u8>>::new());
        for step in 0..60_000 {
            let table = &tables[random.below(2) as usize];
            let key = table.key((random.between(-1_500, 1_500) as i32,)).unwrap();
            match random.below(10) {
                0..=4 => {
                    let row = vec![step as u8; random.below(40) as usize];
                    store.put_row(&key, &row);
                    model.insert(key.to_vec(), row);
                }
                5 if step % 2 == 0 => {
                    store.delete_row(&key);
                    model.remove(key.bytes());
                }
                5 => assert_eq!(store.rows(), model.len()),
                _ => assert_eq!(store.get_row(&key), model.get(key.bytes()).map(Vec::as_slice)),
            }
            if step % 500 == 0 {
                let end = table.key((random.between(-1_500, 1_500) as i32,)).unwrap();
                assert_scans_agree(&mut store, &model, &KeyRange { start: key, end });
            }
        }
        tables.iter().for_each(|table| assert_scans_agree(&mut store, &model, &table.all()));
    }

    fn assert_scans_agree(store: &mut PlainStore, model: &BTreeMap<Vec<u8>, Vec<u8>>, range: &KeyRange) {
        let in_range = model.iter().filter(|(key, _)| range.contains(key));
        let expected: Vec<_> = in_range.map(|(key, row)| (key.clone(), row.clone())).collect();
        for direction in [Direction::Ascending, Direction::Descending] {
            let found = Access::scan(store, range, direction, usize::MAX).unwrap();
            let found = found.into_iter().map(|found| (found.key.to_vec(), found.row.to_vec()));
            assert!(found.eq(direction.of_ascending(expected.iter().cloned())), "{range:?} {direction:?}");
        }
        let mut visited = Vec::new();
        let mut visit = |key: &[u8], row: &[u8]| visited.push((key.to_vec(), row.to_vec()));
        SnapshotReader::scan(store, range, &mut visit).unwrap();
        visited.sort();
        assert_eq!(visited, expected);
    }
}
