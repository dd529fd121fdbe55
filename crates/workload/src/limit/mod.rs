//! The limit: the best plain single-threaded layout, to run the same procedures with nothing in the way.
//!
//! A benchmark prints its throughput beside the database's: no order, locks, versions, messages, log or undo. Records stand
//! in one [arena](records), key beside row; one open-addressing [table](index) finds them. Writes happen in place and at once.
//! Before a call runs, what it declares is touched, so that the processor waits for its memory accesses together.
//!
//! # Limits
//! - No undo: a procedure that aborts after its first write would leave that write behind. None of this crate's does; they
//!   read everything that can make them abort before they write.
//! - The space of deleted and outgrown records is not used again.
//! - Scans in order sort the keys of a table at its first scan, and merge what was inserted since at each later one.

mod index;
mod records;

use std::hint::black_box;

use ordain_db::data::row::FixedValue;
use ordain_db::data::{Key, KeyRange, Table};
use ordain_db::error::Error;
use ordain_db::procedure::transaction::{Access, Found};
use ordain_db::procedure::{Catalog, Declared, Footprint, Stop, Transaction};

use crate::{Call, Part, SnapshotReader, Workload};
use index::{Index, Slot, tag};
use records::{RecordNumber, Records};

/// A plain store. See the [module](self).
#[derive(Default)]
pub struct PlainStore {
    index: Index,
    records: Records,
    /// Order of the tables that were scanned, by table number.
    orders: Vec<Option<Order>>,
    buffers: Buffers,
}

/// What runs reuse.
#[derive(Default)]
struct Buffers {
    footprint: Footprint,
    /// Tags, and then records, of the keys of the footprint.
    found: Vec<u32>,
    scratch: Vec<u8>,
    output: Vec<u8>,
}

/// The records of one table in the order of their keys.
#[derive(Default)]
struct Order {
    sorted: Vec<RecordNumber>,
    /// Inserted since `sorted` was made.
    added: Vec<RecordNumber>,
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
        Ok(store)
    }

    /// Runs a call; returns its encoded result.
    pub fn run(&mut self, catalog: &Catalog, call: &Call) -> Result<&[u8], Stop> {
        let Catalog { schema, procedures } = catalog;
        let Buffers { mut footprint, mut found, mut scratch, mut output } = std::mem::take(&mut self.buffers);
        let declared = procedures.declare(call.procedure, &call.arguments, schema, 1, &mut footprint);
        if declared == Ok(Declared::Complete) {
            self.touch(&footprint, &mut found);
        }
        output.clear();
        let mut transaction = Transaction::new(schema, self, &mut scratch);
        let result = procedures.run(call.procedure, &call.arguments, &mut transaction, &mut output);
        self.buffers = Buffers { footprint, found, scratch, output };
        result.map(|()| self.buffers.output.as_slice())
    }

    /// Reads a little of each key's place in the index, and then of each record: accesses that do not depend on each other
    /// and so overlap, as those of a procedure do not. Each loop is short, so that the processor sees all of its accesses.
    fn touch(&self, footprint: &Footprint, found: &mut Vec<u32>) {
        found.clear();
        found.extend(footprint.keys().iter().map(|entry| tag(footprint.key(entry))));
        black_box(found.iter().fold(0, |seen, tag| seen ^ self.index.touch(*tag)));
        found.iter_mut().for_each(|tag| *tag = self.index.probable(*tag).0);
        black_box(found.iter().fold(0, |seen, record| seen ^ self.records.touch(RecordNumber(*record))));
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.index.len()
    }

    /// The row of a key.
    #[inline]
    pub fn get_row(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(key).map(|(_, record)| self.records.row(record))
    }

    /// Inserts or replaces a row.
    pub fn put_row(&mut self, key: &[u8], row: &[u8]) {
        let Some((slot, record)) = self.find(key) else {
            let record = self.records.append(key, row);
            self.index.insert(tag(key), record);
            if let Some(Some(order)) = self.orders.get_mut(table_number(key)) {
                order.added.push(record);
            }
            return;
        };
        if !self.records.overwrite(record, row) {
            let moved = self.records.append(key, row);
            self.records.kill(record);
            self.index.replace(slot, moved);
            self.forget_order(key);
        }
    }

    /// Deletes a row if there is one.
    pub fn delete_row(&mut self, key: &[u8]) {
        let Some((slot, record)) = self.find(key) else { return };
        self.index.remove(slot);
        self.records.kill(record);
        self.forget_order(key);
    }

    /// The index entry and record of a key.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<(Slot, RecordNumber)> {
        self.index.find(tag(key), |record| self.records.key(record) == key)
    }

    fn forget_order(&mut self, key: &[u8]) {
        if let Some(order) = self.orders.get_mut(table_number(key)) {
            *order = None;
        }
    }

    /// Puts the records of a table in order.
    fn sort(&mut self, table: usize) {
        if self.orders.len() <= table {
            self.orders.resize_with(table + 1, || None);
        }
        let mut order = self.orders[table].take().unwrap_or_else(|| {
            let records =
                self.records.live().filter(|record| table_number(self.records.key(*record)) == table);
            Order { sorted: Vec::new(), added: records.collect() }
        });
        if !order.added.is_empty() {
            let key = |record: &RecordNumber| self.records.key(*record);
            // A stable sort finds ascending runs and merges them: loads come in order of keys, and `sorted` is one run.
            order.added.sort_by(|left, right| key(left).cmp(key(right)));
            order.sorted.append(&mut order.added);
            order.sorted.sort_by(|left, right| key(left).cmp(key(right)));
        }
        self.orders[table] = Some(order);
    }

    /// The records of a range, ascending. The range lies in one table.
    fn records_in(&mut self, range: &KeyRange) -> &[RecordNumber] {
        let table = table_number(&range.start);
        self.sort(table);
        let Some(Some(order)) = self.orders.get(table) else { return &[] };
        let before =
            |bound: &Key| order.sorted.partition_point(|record| self.records.key(*record) < bound.bytes());
        order.sorted.get(before(&range.start)..before(&range.end)).unwrap_or_default()
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
        let Some((_, record)) = self.find(key) else { return Ok(false) };
        let row = self.records.row_mut(record);
        values.iter().for_each(|value| table.layout().replace(row, value));
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.delete_row(key);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Found>, Stop> {
        let records = self.records_in(range);
        let records = records[..records.len().min(limit)].to_vec();
        let found = |record: &RecordNumber| Found {
            key: Key::from_bytes(self.records.key(*record)),
            row: self.records.row(*record).to_vec(),
        };
        Ok(records.iter().map(found).collect())
    }
}

impl SnapshotReader for PlainStore {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
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
                0..=5 => {
                    let row = vec![step as u8; random.below(40) as usize];
                    store.put_row(&key, &row);
                    model.insert(key.to_vec(), row);
                }
                6..=8 => {
                    store.delete_row(&key);
                    model.remove(key.bytes());
                }
                _ => assert_eq!(store.get_row(&key), model.get(key.bytes()).map(Vec::as_slice)),
            }
            assert_eq!(store.rows(), model.len());
            if step % 500 == 0 {
                let end = table.key((random.between(-1_500, 1_500) as i32,)).unwrap();
                assert_scans_agree(&mut store, &model, &KeyRange { start: key, end });
            }
        }
        tables.iter().for_each(|table| assert_scans_agree(&mut store, &model, &table.all()));
    }

    fn assert_scans_agree(store: &mut PlainStore, model: &BTreeMap<Vec<u8>, Vec<u8>>, range: &KeyRange) {
        let expected: Vec<_> = model
            .iter()
            .filter(|(key, _)| range.contains(key))
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        let found = Access::scan(store, range, usize::MAX).unwrap();
        let found: Vec<_> = found.into_iter().map(|found| (found.key.to_vec(), found.row)).collect();
        assert_eq!(found, expected);
        let mut visited = Vec::new();
        SnapshotReader::scan(store, range, &mut |key, row| visited.push((key.to_vec(), row.to_vec())))
            .unwrap();
        visited.sort();
        assert_eq!(visited, expected);
    }
}
