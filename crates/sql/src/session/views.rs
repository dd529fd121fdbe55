//! What a session sees of the database: a snapshot, and for a block a later one of what only the block knows.

use std::ops::ControlFlow;

use ordain_db::data::row::FixedValue;
use ordain_db::data::{Direction, Key, KeyRange, Table};
use ordain_db::error::Error;
use ordain_db::procedure::Stop;
use ordain_db::procedure::transaction::{Access, Found};

use super::View;
use crate::execute::Interrupt;

/// See the [module](self). What a block writes is laid over it.
pub(super) struct Views<'a> {
    /// What was there when the block began.
    view: &'a dyn View,
    /// A later snapshot, in which storages that only this block knows are read, and these storages.
    own: Option<(&'a dyn View, &'a [u32])>,
    /// Set to end the statement.
    interrupt: &'a Interrupt,
    row: Vec<u8>,
    /// Why the database could not be asked.
    pub problem: Option<Error>,
}

impl<'a> Views<'a> {
    pub(super) fn new(
        view: &'a dyn View,
        own: Option<(&'a dyn View, &'a [u32])>,
        interrupt: &'a Interrupt,
    ) -> Views<'a> {
        Views { view, own, interrupt, row: Vec::new(), problem: None }
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
        self.interrupt.error().map_or(Ok(()), |error| Err(Stop::Invalid(error.message)))
    }
}

fn read_only() -> Stop {
    Stop::Invalid("a snapshot cannot be written".to_owned())
}

impl Access for Views<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        self.look()?;
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

    fn put(&mut self, _: &Key, _: &[u8]) -> Result<(), Stop> {
        Err(read_only())
    }

    fn replace(&mut self, _: &Table, _: &Key, _: &[FixedValue]) -> Result<bool, Stop> {
        Err(read_only())
    }

    fn delete(&mut self, _: &Key) -> Result<(), Stop> {
        Err(read_only())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        self.look()?;
        let mut found = Vec::new();
        let asked = self.view_of(&range.start).scan(range, direction, limit, &mut |key, row| {
            found.push(Found { key: Key::from_bytes(key), row: row.to_vec() });
            ControlFlow::Continue(())
        });
        asked.map(|()| found).map_err(|error| self.failed(error))
    }
}
