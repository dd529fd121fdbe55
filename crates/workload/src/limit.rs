//! The limit: the best plain single-threaded layout, to run the same procedures with nothing in the way.
//!
//! A benchmark prints its throughput beside the database's: no order, locks, versions, messages, log or undo. One arena holds
//! records, each a header, its key and its row side by side; one open-addressing table of 8-byte slots finds them. Writes
//! happen in place and at once.
//!
//! # Limits
//! - No undo: a procedure that aborts after its first write would leave that write behind. None of this crate's does; they
//!   read everything that can make them abort before they write.
//! - Deleted and outgrown records are not reclaimed.
//! - Ordered scans sort the keys of a table at its first scan, and merge what was inserted since at each later one.

use std::cmp::Ordering;
use std::hint::black_box;

use ordain_db::data::row::FixedValue;
use ordain_db::data::{Key, KeyRange, Table};
use ordain_db::error::Error;
use ordain_db::hash::key_hash;
use ordain_db::procedure::transaction::{Access, Found};
use ordain_db::procedure::{Catalog, Declared, Footprint, Stop, Transaction};

use crate::{Call, Part, SnapshotReader, Workload};

/// Bytes of a record before its key: lengths of row, space for the row, and key, 2 bytes each, and 2 unused.
const HEADER_BYTES: usize = 8;

/// Records start at multiples of this, so that 4 bytes address 32 GiB.
const RECORD_UNIT: usize = 8;

/// Slots of an empty table, as a power of two.
const SLOT_BITS_MIN: u32 = 10;

/// Calls whose rows are touched together.
const GROUP_CALLS: usize = 8;

/// A plain store. See the [module](self).
pub struct PlainStore {
    /// `tag << 32 | record`, or 0: the tag is the upper half of the key's hash, its top `slot_bits` bits are the slot where
    /// probing starts; `record` counts [`RECORD_UNIT`]s and is never 0.
    slots: Vec<u64>,
    slot_bits: u32,
    /// `2 * rows <= slots.len()`.
    rows: usize,
    arena: Vec<u8>,
    /// Order of the tables that were scanned, by table number.
    orders: Vec<Option<Order>>,
    /// Reused: footprints of the calls of a group.
    footprints: Vec<Footprint>,
    scratch: Vec<u8>,
    output: Vec<u8>,
}

/// The records of one table in the order of their keys.
#[derive(Default)]
struct Order {
    sorted: Vec<u32>,
    /// Inserted since `sorted` was made.
    added: Vec<u32>,
}

impl Default for PlainStore {
    fn default() -> PlainStore {
        PlainStore::new()
    }
}

impl PlainStore {
    /// An empty store.
    pub fn new() -> PlainStore {
        PlainStore {
            slots: vec![0; 1 << SLOT_BITS_MIN],
            slot_bits: SLOT_BITS_MIN,
            rows: 0,
            arena: vec![0; RECORD_UNIT],
            orders: Vec::new(),
            footprints: Vec::new(),
            scratch: Vec::new(),
            output: Vec::new(),
        }
    }

    /// A store with all rows of a workload.
    pub fn load(workload: &dyn Workload) -> Result<PlainStore, Error> {
        let mut store = PlainStore::new();
        workload.load(Part::WHOLE, &mut |key, row| store.put_row(key, row))?;
        Ok(store)
    }

    /// Runs a call; returns its encoded result.
    pub fn run(&mut self, catalog: &Catalog, call: &Call) -> Result<&[u8], Stop> {
        let (mut scratch, mut output) = (std::mem::take(&mut self.scratch), std::mem::take(&mut self.output));
        output.clear();
        let mut transaction = Transaction::new(&catalog.schema, self, &mut scratch);
        let result = catalog.procedures.run(call.procedure, &call.arguments, &mut transaction, &mut output);
        (self.scratch, self.output) = (scratch, output);
        result.map(|()| self.output.as_slice())
    }

    /// Runs calls in order; `end` is given each one's encoded result.
    ///
    /// Calls are run in groups. The rows that a group's calls declare are touched together before the first of them runs: the
    /// processor waits for many memory accesses at once, not for one after the other.
    pub fn run_all(
        &mut self,
        catalog: &Catalog,
        calls: &[Call],
        mut end: impl FnMut(&Call, Result<&[u8], Stop>),
    ) {
        let mut footprints = std::mem::take(&mut self.footprints);
        footprints.resize_with(GROUP_CALLS, Footprint::default);
        for group in calls.chunks(GROUP_CALLS) {
            for (call, footprint) in group.iter().zip(&mut footprints) {
                let Catalog { schema, procedures } = catalog;
                // A call that fails to declare fails again when it runs.
                let declared = procedures.declare(call.procedure, &call.arguments, schema, 1, footprint);
                if declared != Ok(Declared::Complete) {
                    footprint.clear();
                }
            }
            self.touch(&footprints[..group.len()]);
            group.iter().for_each(|call| end(call, self.run(catalog, call)));
        }
        self.footprints = footprints;
    }

    /// Reads a little of each key's slot, and then of each record, so that both are in the processor's cache.
    fn touch(&self, footprints: &[Footprint]) {
        let mut seen = 0;
        for entry in footprints.iter().flat_map(|footprint| footprint.keys()) {
            seen ^= self.slots[self.home(entry.hash >> 32)];
        }
        for entry in footprints.iter().flat_map(|footprint| footprint.keys()) {
            let tag = entry.hash >> 32;
            let mut slot = self.home(tag);
            while self.slots[slot] >> 32 != tag && self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            let start = self.slots[slot] as u32 as usize * RECORD_UNIT;
            seen ^= u64::from(self.arena[start]);
            seen ^= u64::from(self.arena[(start + 40).min(self.arena.len() - 1)]);
        }
        black_box(seen);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The row of a key.
    pub fn get_row(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(key).map(|(_, record)| self.row(record))
    }

    /// Inserts or replaces a row.
    pub fn put_row(&mut self, key: &[u8], row: &[u8]) {
        match self.find(key) {
            Some((slot, record)) => self.overwrite(slot, record, key, row),
            None => {
                let record = self.append(key, row);
                self.insert_slot(key_hash(key) >> 32, record);
                if let Some(Some(order)) = self.orders.get_mut(table_number(key)) {
                    order.added.push(record);
                }
            }
        }
    }

    /// Deletes a row if there is one.
    pub fn delete_row(&mut self, key: &[u8]) {
        let Some((slot, _)) = self.find(key) else { return };
        self.remove_slot(slot);
        self.forget_order(key);
    }

    /// The slot and record of a key.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<(usize, u32)> {
        let tag = key_hash(key) >> 32;
        let mut slot = self.home(tag);
        loop {
            let entry = self.slots[slot];
            if entry >> 32 == tag && entry != 0 && self.key(entry as u32) == key {
                return Some((slot, entry as u32));
            }
            if entry == 0 {
                return None;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        (tag >> (32 - self.slot_bits)) as usize
    }

    /// Lengths of row, space for the row, and key.
    #[inline]
    fn header(&self, record: u32) -> [usize; 3] {
        let start = record as usize * RECORD_UNIT;
        let header: &[u8; HEADER_BYTES] = self.arena[start..].first_chunk().expect("records are whole");
        let header = u64::from_le_bytes(*header);
        [header & 0xFFFF, header >> 16 & 0xFFFF, header >> 32].map(|length| length as usize)
    }

    #[inline]
    fn key(&self, record: u32) -> &[u8] {
        let [_, _, key_length] = self.header(record);
        &self.arena[record as usize * RECORD_UNIT + HEADER_BYTES..][..key_length]
    }

    #[inline]
    fn row(&self, record: u32) -> &[u8] {
        let [row_length, _, key_length] = self.header(record);
        &self.arena[record as usize * RECORD_UNIT + HEADER_BYTES + key_length..][..row_length]
    }

    #[inline]
    fn row_mut(&mut self, record: u32) -> &mut [u8] {
        let [row_length, _, key_length] = self.header(record);
        &mut self.arena[record as usize * RECORD_UNIT + HEADER_BYTES + key_length..][..row_length]
    }

    fn append(&mut self, key: &[u8], row: &[u8]) -> u32 {
        let start = self.arena.len();
        let end = (start + HEADER_BYTES + key.len() + row.len()).next_multiple_of(RECORD_UNIT);
        let record = u32::try_from(start / RECORD_UNIT).expect("a plain store holds at most 32 GiB");
        let space = end - start - HEADER_BYTES - key.len();
        let header = row.len() as u64 | (space as u64) << 16 | (key.len() as u64) << 32;
        self.arena.extend_from_slice(&header.to_le_bytes());
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(row);
        self.arena.resize(end, 0);
        record
    }

    fn overwrite(&mut self, slot: usize, record: u32, key: &[u8], row: &[u8]) {
        let [row_length, space, _] = self.header(record);
        if row.len() > space {
            let moved = self.append(key, row);
            self.slots[slot] = self.slots[slot] >> 32 << 32 | u64::from(moved);
            self.forget_order(key);
            return;
        }
        if row.len() != row_length {
            let start = record as usize * RECORD_UNIT;
            self.arena[start..start + 2].copy_from_slice(&(row.len() as u16).to_le_bytes());
        }
        self.row_mut(record).copy_from_slice(row);
    }

    fn insert_slot(&mut self, tag: u64, record: u32) {
        self.rows += 1;
        if self.rows * 2 > self.slots.len() {
            self.slot_bits += 1;
            let old = std::mem::replace(&mut self.slots, vec![0; 1 << self.slot_bits]);
            old.into_iter().filter(|entry| *entry != 0).for_each(|entry| self.place(entry));
        }
        self.place(tag << 32 | u64::from(record));
    }

    fn place(&mut self, entry: u64) {
        let mut slot = self.home(entry >> 32);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = entry;
    }

    /// Empties a slot and closes the gap, so that no later entry is cut off from where its probing starts.
    fn remove_slot(&mut self, slot: usize) {
        self.rows -= 1;
        let mask = self.slots.len() - 1;
        let (mut gap, mut next) = (slot, slot);
        self.slots[gap] = 0;
        loop {
            next = (next + 1) & mask;
            let entry = self.slots[next];
            if entry == 0 {
                return;
            }
            let wanted = self.home(entry >> 32);
            if (next.wrapping_sub(wanted) & mask) >= (next.wrapping_sub(gap) & mask) {
                self.slots[gap] = entry;
                self.slots[next] = 0;
                gap = next;
            }
        }
    }

    fn forget_order(&mut self, key: &[u8]) {
        if let Some(order) = self.orders.get_mut(table_number(key)) {
            *order = None;
        }
    }

    /// Sorts what is not sorted yet of a table, and returns its place among the orders.
    fn sort(&mut self, table: usize) -> usize {
        if self.orders.len() <= table {
            self.orders.resize_with(table + 1, || None);
        }
        let mut order = self.orders[table].take().unwrap_or_else(|| {
            let records = self.slots.iter().filter(|entry| **entry != 0).map(|entry| *entry as u32);
            Order { sorted: Vec::new(), added: records.filter(|record| self.in_table(*record, table)).collect() }
        });
        if !order.added.is_empty() {
            let compare = |left: &u32, right: &u32| -> Ordering { self.key(*left).cmp(self.key(*right)) };
            order.added.sort_unstable_by(compare);
            order.sorted.append(&mut order.added);
            // The stable sort finds the two ascending runs and merges them.
            order.sorted.sort_by(compare);
        }
        self.orders[table] = Some(order);
        table
    }

    fn in_table(&self, record: u32, table: usize) -> bool {
        table_number(self.key(record)) == table
    }

    /// The records of a range, ascending. The range lies in one table.
    fn records_in(&mut self, range: &KeyRange) -> &[u32] {
        if range.is_empty() {
            return &[];
        }
        let table = self.sort(table_number(&range.start));
        let Some(order) = &self.orders[table] else { return &[] };
        let first = order.sorted.partition_point(|record| self.key(*record) < range.start.bytes());
        let length = order.sorted[first..].partition_point(|record| self.key(*record) < range.end.bytes());
        &order.sorted[first..first + length]
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
        let row = self.row_mut(record);
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
        let found = |record: &u32| Found {
            key: Key::from_bytes(self.key(*record)),
            row: self.row(*record).to_vec(),
        };
        Ok(records.iter().map(found).collect())
    }
}

impl SnapshotReader for PlainStore {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let records = self.records_in(range).to_vec();
        records.iter().for_each(|record| visit(self.key(*record), self.row(*record)));
        Ok(())
    }
}
