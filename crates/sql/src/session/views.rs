//! What a session sees of the database: a snapshot, and for a block a later one of what only the block knows.
//!
//! The way to the database is long, so what a statement is known to read by key is asked for at once, before it is needed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use ordain_db::data::row::FixedValue;
use ordain_db::data::{DataError, Direction, Key, KeyRange, Table};
use ordain_db::error::Error;
use ordain_db::procedure::Stop;
use ordain_db::procedure::footprint::Footprint;
use ordain_db::procedure::transaction::{Access, Found};

use super::View;
use super::block::Made;
use crate::execute::Interrupt;

/// Rows that are asked for at a time, at most: each takes a place in an inbox of the database.
const ASKED_TOGETHER_MAX: usize = 128;

/// Bytes of rows that are there before they are needed, at most. Rows that would come to more are read when they are needed.
const AHEAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of the memory that rows which are scanned share, at most, unless one is longer.
const PIECE_BYTES: usize = 64 * 1024;

/// A snapshot, with the definitions that were read in it: all statements of a block look at them.
pub(super) struct Sight {
    view: Box<dyn View>,
    definitions: BTreeMap<Key, Option<Bytes>>,
}

impl Sight {
    pub(super) fn new(view: Box<dyn View>) -> Sight {
        Sight { view, definitions: BTreeMap::new() }
    }

    pub(super) fn view(&self) -> &dyn View {
        &*self.view
    }
}

/// See the [module](self). What a block writes is laid over it.
pub(super) struct Views<'a> {
    /// What was there when the block began.
    sight: &'a mut Sight,
    /// A later snapshot, in which storages that only this block knows are read, and these storages.
    own: Option<(&'a dyn View, &'a BTreeMap<u32, Made>)>,
    /// Number of partitions.
    partitions: u16,
    /// The keys of all definitions.
    definitions: KeyRange,
    /// Set to end the statement.
    interrupt: &'a Interrupt,
    /// Rows that have come and were not needed so far. Each is given once.
    ahead: BTreeMap<Key, Option<Bytes>>,
    /// Bytes of them.
    ahead_bytes: usize,
    row: Option<Bytes>,
    /// Why the database could not be asked.
    pub problem: Option<Error>,
}

impl<'a> Views<'a> {
    /// `definitions` is the table of them.
    pub(super) fn new(
        sight: &'a mut Sight,
        own: Option<(&'a dyn View, &'a BTreeMap<u32, Made>)>,
        (partitions, definitions): (u16, &Table),
        interrupt: &'a Interrupt,
    ) -> Views<'a> {
        Views {
            sight,
            own,
            partitions,
            definitions: definitions.all(),
            interrupt,
            ahead: BTreeMap::new(),
            ahead_bytes: 0,
            row: None,
            problem: None,
        }
    }

    /// The later snapshot, if it is the one in which a key is looked up.
    fn own_view_of(&self, key: &[u8]) -> Option<&'a dyn View> {
        let (own, storages) = self.own?;
        let storage = u32::from_be_bytes(key.get(2..6)?.try_into().ok()?);
        // As the database encodes an `int32`.
        storages.contains_key(&(storage ^ 1 << 31)).then_some(own)
    }

    /// The snapshot in which a key is looked up.
    fn view_of(&self, key: &[u8]) -> &dyn View {
        self.own_view_of(key).unwrap_or(&*self.sight.view)
    }

    /// Asks for rows that will be needed, unless they are there.
    ///
    /// # Errors
    /// When the statement is to end, or the database cannot be asked.
    pub(super) fn ask_ahead(&mut self, keys: impl Iterator<Item = Key>) -> Result<(), Stop> {
        let is_missing = |key: &Key| {
            !self.sight.definitions.contains_key(key)
                && !self.ahead.contains_key(key)
                && self.own_view_of(key.bytes()).is_none()
        };
        let missing: Vec<Key> = keys.filter(is_missing).collect();
        for keys in missing.chunks(ASKED_TOGETHER_MAX) {
            if self.ahead_bytes > AHEAD_BYTES_MAX {
                break;
            }
            self.look()?;
            let rows = self.sight.view.get_all(keys).map_err(|error| self.failed(error))?;
            for (key, row) in keys.iter().zip(rows) {
                if self.definitions.contains(key.bytes()) {
                    self.sight.definitions.insert(key.clone(), row);
                } else {
                    self.ahead_bytes += row.as_ref().map_or(0, Bytes::len);
                    self.ahead.insert(key.clone(), row);
                }
            }
        }
        Ok(())
    }

    /// What is known of the row of a key.
    fn known(&mut self, key: &Key) -> Option<Option<Bytes>> {
        if let Some(row) = self.sight.definitions.get(key) {
            return Some(row.clone());
        }
        let row = self.ahead.remove(key)?;
        self.ahead_bytes -= row.as_ref().map_or(0, Bytes::len);
        Some(row)
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
        self.row = match self.known(key) {
            Some(row) => row,
            None => self.view_of(key.bytes()).get(key).map_err(|error| self.failed(error))?,
        };
        Ok(self.row.as_deref())
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
        // Many rows are parts of one piece of memory.
        let (mut found, mut bytes) = (Vec::new(), BytesMut::new());
        let asked = self.view_of(range.start.bytes()).scan(range, direction, limit, &mut |key, row| {
            if bytes.capacity() < row.len() {
                let all = row.len().saturating_mul(limit - found.len());
                bytes = BytesMut::with_capacity(all.min(PIECE_BYTES).max(row.len()));
            }
            bytes.extend_from_slice(row);
            found.push(Found { key: Key::from_bytes(key), row: bytes.split().freeze() });
            ControlFlow::Continue(())
        });
        asked.map(|()| found).map_err(|error| self.failed(error))
    }

    fn looks_ahead(&self) -> Option<u16> {
        Some(self.partitions)
    }

    fn look_ahead(&mut self, ahead: &Footprint, _: Option<DataError>, _: bool) -> Result<(), Stop> {
        let read = ahead.keys().iter().filter(|entry| entry.access.read);
        self.ask_ahead(read.map(|entry| Key::from_bytes(ahead.key(entry))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use ordain_db::data::SchemaBuilder;

    use super::*;
    use crate::keys::Storages;

    /// Tells each time that it is asked, and for how much.
    #[derive(Clone)]
    struct Counting(Sender<usize>);

    impl View for Counting {
        fn get_all(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
            self.0.send(keys.len()).unwrap();
            Ok(keys.iter().map(|key| Some(Bytes::copy_from_slice(key.bytes()))).collect())
        }

        fn get(&self, key: &Key) -> Result<Option<Bytes>, Error> {
            Ok(self.get_all(std::slice::from_ref(key))?.remove(0))
        }

        fn scan(
            &self,
            _: &KeyRange,
            _: Direction,
            _: usize,
            _: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
        ) -> Result<(), Error> {
            panic!("nobody scans")
        }
    }

    #[test]
    fn what_is_asked_for_ahead_is_asked_for_once_and_together() {
        let mut schema = SchemaBuilder::default();
        let storages = Storages::register(&mut schema).unwrap();
        let definition = storages.definition("public", "t").unwrap();
        let row = |number: u16| Key::from_bytes(&[0xff, 0xff, 0, 0, 0, 0, (number >> 8) as u8, number as u8]);
        let (tell, told) = channel();
        let (view, interrupt) = (Counting(tell), Interrupt::default());
        let asked = || told.try_iter().collect::<Vec<usize>>();
        let mut sight = Sight::new(Box::new(view.clone()));
        for times in 0..2 {
            let mut views = Views::new(&mut sight, None, (1, &storages.definitions), &interrupt);
            views.ask_ahead([definition.clone(), row(1), row(2)].into_iter()).unwrap();
            assert_eq!(asked(), [3 - times], "definitions are known from statement to statement");
            views.ask_ahead([row(2), row(3)].into_iter()).unwrap();
            assert_eq!(asked(), [1]);
            for key in [definition.clone(), row(1), row(3), row(2), definition.clone()] {
                assert_eq!(views.get(&key).unwrap(), Some(key.bytes()));
            }
            assert!(asked().is_empty());
            assert_eq!((views.ahead.len(), views.ahead_bytes), (0, 0));
            assert_eq!(views.get(&row(4)).unwrap(), Some(row(4).bytes()));
            assert_eq!(asked(), [1], "what nobody has told of is asked for when it is needed");
            views.ask_ahead((10..300).map(row)).unwrap();
            assert_eq!(asked(), [128, 128, 34]);
            let storages_of_its_own = BTreeMap::from([(1 << 31, Made { steps: 0, loaded: 0 })]);
            let mut views = Views::new(
                &mut sight,
                Some((&view, &storages_of_its_own)),
                (1, &storages.definitions),
                &interrupt,
            );
            views.ask_ahead([row(1)].into_iter()).unwrap();
            assert!(asked().is_empty(), "it would be looked for in the wrong snapshot");
        }
    }
}
