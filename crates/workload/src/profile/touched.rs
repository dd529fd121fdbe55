//! What one call touches.

use std::collections::BTreeMap;

use ordain_db::data::row::FixedValue;
use ordain_db::data::{Direction, Key, KeyRange, Owner, Schema, Table};
use ordain_db::position::PartitionId;
use ordain_db::procedure::transaction::{Access, Found};
use ordain_db::procedure::{Catalog, Footprint, Stop, Transaction};

use super::locked_at;
use crate::Call;
use crate::limit::PlainStore;

/// Keys and ranges, each with who holds it and whether it may be written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Touched {
    pub(super) keys: BTreeMap<Key, (Owner, bool)>,
    pub(super) ranges: Vec<(KeyRange, Owner, bool)>,
    /// Keys for which a functor is declared.
    pub(super) functors: usize,
}

impl Touched {
    pub(super) fn of_footprint(footprint: &Footprint) -> Touched {
        let key = |entry| Key::from_bytes(footprint.key(entry));
        let keys =
            footprint.keys().iter().map(|entry| (key(entry), (entry.owner, entry.access.write))).collect();
        let ranges = footprint.ranges().iter();
        let functors = footprint.keys().iter().filter(|entry| footprint.functor(entry).is_some());
        Touched {
            functors: functors.count(),
            keys,
            ranges: ranges.map(|entry| (entry.range.clone(), entry.owner, entry.access.write)).collect(),
        }
    }

    /// Whether anything may be written.
    pub(super) fn writes(&self) -> bool {
        self.keys.values().any(|(_, write)| *write) || self.ranges.iter().any(|(_, _, write)| *write)
    }

    /// The partitions that take part; the home alone if nothing is held by any in particular.
    pub(super) fn participants(&self, home: PartitionId, partitions: u16) -> Vec<PartitionId> {
        let locked = |partition: &PartitionId| {
            self.keys.values().any(|(owner, write)| locked_at(*owner, *write, *partition))
                || self.ranges.iter().any(|(_, owner, write)| locked_at(*owner, *write, *partition))
        };
        let all: Vec<PartitionId> = (0..partitions).map(PartitionId).filter(locked).collect();
        if all.is_empty() { vec![home] } else { all }
    }
}

/// Runs a call, and notes what it touches. One that aborts has touched what it had until then.
pub(super) fn record(catalog: &Catalog, store: &mut PlainStore, call: &Call, partitions: u16) -> Touched {
    let Catalog { schema, procedures } = catalog;
    let mut recorder = Recorder { schema, partitions, store, touched: Touched::default() };
    let (mut scratch, mut output) = (Vec::new(), Vec::new());
    let mut transaction = Transaction::new(schema, &mut recorder, &mut scratch);
    let _ = procedures.run(call.procedure, &call.arguments, &mut transaction, &mut output);
    recorder.touched
}

/// A store that notes what is touched of it.
struct Recorder<'a> {
    schema: &'a Schema,
    partitions: u16,
    store: &'a mut PlainStore,
    touched: Touched,
}

impl Recorder<'_> {
    fn note(&mut self, key: &Key, write: bool) -> Result<(), Stop> {
        let owner = self.schema.table_of(key)?.owner(key, self.partitions);
        self.touched.keys.entry(key.clone()).or_insert((owner, false)).1 |= write;
        Ok(())
    }
}

impl Access for Recorder<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        self.note(key, false)?;
        Access::get(self.store, key)
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.note(key, true)?;
        self.store.put(key, row)
    }

    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        self.note(key, true)?;
        self.store.replace(table, key, values)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.note(key, true)?;
        self.store.delete(key)
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        let owner = self.schema.table_of(&range.start)?.range_owner(range, self.partitions);
        self.touched.ranges.push((range.clone(), owner, false));
        Access::scan(self.store, range, direction, limit)
    }
}
