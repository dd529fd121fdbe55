//! What a block sees: a snapshot, and over it what the block itself has written.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};

use ordain_db::data::row::FixedValue;
use ordain_db::data::{Key, KeyRange, Table};
use ordain_db::error::Error;
use ordain_db::procedure::Stop;
use ordain_db::procedure::transaction::{Access, Found};

use super::View;
use crate::execute::canceled;

/// Rows that a block has written; `None` where it has deleted one.
pub(super) type Written = BTreeMap<Key, Option<Vec<u8>>>;

/// See the [module](self).
pub(super) struct Overlay<'a> {
    /// What was there when the block began.
    pub view: &'a dyn View,
    /// A later snapshot, in which storages that only this block knows are read, and these storages.
    pub own: Option<(&'a dyn View, &'a [u32])>,
    /// What the block has written.
    pub written: &'a mut Written,
    /// Set to end the statement.
    pub interrupt: &'a AtomicBool,
    row: Vec<u8>,
    /// Why the database could not be asked.
    pub problem: Option<Error>,
}

impl<'a> Overlay<'a> {
    pub(super) fn new(
        view: &'a dyn View,
        own: Option<(&'a dyn View, &'a [u32])>,
        written: &'a mut Written,
        interrupt: &'a AtomicBool,
    ) -> Overlay<'a> {
        Overlay { view, own, written, interrupt, row: Vec::new(), problem: None }
    }

    /// The snapshot in which a key is looked up.
    fn view_of(&self, key: &Key) -> &'a dyn View {
        let storage = key.bytes().get(2..6).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        match (self.own, storage) {
            // As the database encodes an `int32`.
            (Some((own, storages)), Some(storage)) if storages.contains(&(storage ^ 1 << 31)) => own,
            _ => self.view,
        }
    }

    fn failed(&mut self, error: Error) -> Stop {
        let reason = error.to_string();
        self.problem = Some(error);
        Stop::Invalid(reason)
    }

    fn look(&self) -> Result<(), Stop> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Stop::Invalid(canceled().message)) } else { Ok(()) }
    }
}

impl Access for Overlay<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        self.look()?;
        if let Some(row) = self.written.get(key) {
            self.row.clear();
            return Ok(row.as_ref().map(|row| {
                self.row.extend_from_slice(row);
                self.row.as_slice()
            }));
        }
        match self.view_of(key).get(key) {
            Ok(None) => Ok(None),
            Ok(Some(row)) => {
                self.row.clear();
                self.row.extend_from_slice(&row);
                Ok(Some(&self.row))
            }
            Err(error) => Err(self.failed(error)),
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
        self.put(key, &row)?;
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.written.insert(key.clone(), None);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Found>, Stop> {
        self.look()?;
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let bounds = (Bound::Included(range.start.clone()), Bound::Excluded(range.end.clone()));
        let own: Vec<(&Key, &Option<Vec<u8>>)> = self.written.range(bounds).collect();
        let deleted = own.iter().filter(|(_, row)| row.is_none()).count();
        let mut found = Vec::new();
        let asked = self.view_of(&range.start).scan(range, limit.saturating_add(deleted), &mut |key, row| {
            found.push(Found { key: Key::from_bytes(key), row: row.to_vec() });
            ControlFlow::Continue(())
        });
        if own.is_empty() {
            return asked.map(|()| found).map_err(|error| self.failed(error));
        }
        let own: Written = own.into_iter().map(|(key, row)| (key.clone(), row.clone())).collect();
        asked.map_err(|error| self.failed(error))?;
        found.retain(|found| !own.contains_key(&found.key));
        let added = own.into_iter().filter_map(|(key, row)| Some(Found { key, row: row? }));
        found.extend(added);
        found.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        found.truncate(limit);
        Ok(found)
    }
}
