//! Whether a procedure's guard and functors do what its run does: for tests of procedures (translation validation, ALO-144).
//!
//! The paper translates transactions into functors by hand (Fan and Golab, §IV-B), and so is it here: that a
//! [guard](super::Procedure::guard) stops exactly where the [run](super::Procedure::run) does, and a
//! [functor](super::Procedure::functor) does to its key what the run does, is up to who writes them. [`check_functors`] finds out for given
//! arguments and rows. A test calls it over random ones, and over those at the borders: with rows missing, and numbers at their ends.

use std::collections::BTreeMap;
use std::fmt;

use super::layers::{self, Layers};
use super::overlay::{self, Written};
use super::registry::Decoded;
use super::transaction::{Access, Found};
use super::{Catalog, Footprint, Functor, ProcedureId, Stop, Transaction};
use crate::data::row::FixedValue;
use crate::data::{Direction, Key, KeyRange, Row, Table};

/// The rows that a call finds.
pub trait State {
    /// The encoded row of a key, if there is one.
    fn row(&mut self, key: &Key) -> Option<Vec<u8>>;

    /// The rows of a range that come first in a direction, at most `limit`, in its order.
    fn rows(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<(Key, Vec<u8>)>;
}

impl State for BTreeMap<Key, Vec<u8>> {
    fn row(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.get(key).cloned()
    }

    fn rows(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<(Key, Vec<u8>)> {
        let inside = direction.of_ascending(self.iter().filter(|(key, _)| range.contains(key)));
        inside.take(limit).map(|(key, row)| (key.clone(), row.clone())).collect()
    }
}

/// What [`check_functors`] has compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared {
    /// How many functors the call has: 0 if it declares none, or if engines [leave them out](super::Declaration::functor).
    pub functors: usize,
    /// Whether the call commits.
    pub commits: bool,
}

/// How a procedure's guard and functors differ from its run, a sentence for each difference.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Differences(pub Vec<String>);

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// Runs a call as a whole, and by guard and functors, on the same rows, and compares what they say and write. Nothing is changed.
///
/// The arguments are [encoded](super::encode_arguments).
///
/// # Errors
/// The differences; or why the call cannot be declared.
pub fn check_functors(
    catalog: &Catalog,
    procedure: ProcedureId,
    arguments: &[u8],
    rows: &mut dyn State,
) -> Result<Compared, Differences> {
    let Catalog { schema, procedures } = catalog;
    let mut footprint = Footprint::default();
    let name = procedures.name(procedure);
    let refuse = |problem: String| Differences(vec![format!("{name} cannot be declared: {problem}")]);
    procedures
        .declare(procedure, arguments, schema, 1, &mut footprint)
        .map_err(|error| refuse(error.to_string()))?;
    let decoded = procedures.decode(procedure, arguments).map_err(|stop| refuse(format!("{stop:?}")))?;
    let mut whole = Trial::new(rows);
    let mut output = Vec::new();
    let ran =
        whole.run(catalog, |transaction| procedures.run(procedure, arguments, transaction, &mut output));
    let written = whole.written;
    let mut comparison =
        Comparison { catalog, footprint: &footprint, decoded: &decoded, differences: Vec::new() };
    if footprint.has_functors() {
        comparison.guard(&ran, rows);
    }
    if footprint.has_functors() && ran.is_ok() {
        comparison.functors(&written, rows);
        comparison.only_functors(&written, &output);
    }
    if !comparison.differences.is_empty() {
        return Err(Differences(comparison.differences));
    }
    let functors = footprint.keys().iter().filter(|entry| footprint.functor(entry).is_some()).count();
    Ok(Compared { functors, commits: ran.is_ok() })
}

struct Comparison<'a> {
    catalog: &'a Catalog,
    footprint: &'a Footprint,
    decoded: &'a Decoded<'a>,
    differences: Vec<String>,
}

impl Comparison<'_> {
    /// ALO-101, ALO-102: the guard says what the run says, out of what was declared for it.
    fn guard(&mut self, ran: &Result<(), Stop>, rows: &mut dyn State) {
        let mut trial = Trial { guards: Some(self.footprint), ..Trial::new(rows) };
        let said = trial.run(self.catalog, |transaction| self.decoded.guard(transaction));
        let mut differ = |what: String| self.differences.push(what);
        match (said, ran) {
            (Ok(()), Ok(())) => {}
            (Ok(()), Err(stop)) => differ(format!("the guard passes, but the run stops: {stop:?}")),
            (Err(stop), Ok(())) => differ(format!("the guard stops, but the run does not: {stop:?}")),
            (Err(said), Err(stop)) if said == *stop => {}
            (Err(said), Err(stop)) => differ(format!("the guard stops with {said:?}, the run with {stop:?}")),
        }
    }

    /// Each functor leaves the row that the run leaves.
    fn functors(&mut self, written: &Written, rows: &mut dyn State) {
        for entry in self.footprint.keys() {
            let Some(functor) = self.footprint.functor(entry) else { continue };
            let key = Key::from_bytes(self.footprint.key(entry));
            let Ok(table) = self.catalog.schema.table_of(&key) else { continue };
            let before = rows.row(&key);
            let mut trial = Trial::new(rows);
            let computed = trial.run(self.catalog, |transaction| match functor {
                Functor::Own(number) => self.decoded.functor(number, &mut transaction.own_row(&key)?),
                Functor::Arithmetic { column, operation } => {
                    transaction.change(table, &key, column, operation).map(|_| ())
                }
            });
            let place = format!("key {key:?} of table {}", table.name());
            if let Err(stop) = computed {
                self.differences.push(format!("{place}: the functor stops: {stop:?}"));
                continue;
            }
            let by_functor = trial.written.remove(&key).unwrap_or_else(|| before.clone());
            let by_run = written.get(&key).cloned().unwrap_or(before);
            if by_functor != by_run {
                let [left, right] = [&by_functor, &by_run].map(|row| shown(table, row.as_deref()));
                self.differences.push(format!("{place}: the functor leaves {left}, the run {right}"));
            }
        }
    }

    /// Where the run is left out, it must have nothing else to do.
    fn only_functors(&mut self, written: &Written, output: &[u8]) {
        if !self.footprint.only_functors() {
            return;
        }
        if !output.is_empty() {
            self.differences.push("only functors are declared, but the run returns something".to_owned());
        }
        let has_functor = |key: &Key| {
            let entry = self.footprint.find(key).map(|place| &self.footprint.keys()[place]);
            entry.is_some_and(|entry| self.footprint.functor(entry).is_some())
        };
        let others = written.keys().filter(|key| !has_functor(key));
        let others = others.map(|key| format!("only functors are declared, but the run writes key {key:?}"));
        self.differences.extend(others);
    }
}

/// A row for people: the values of its columns.
fn shown(table: &Table, row: Option<&[u8]>) -> String {
    let Some(bytes) = row else { return "no row".to_owned() };
    let layout = table.layout();
    let row = Row::new(layout, bytes);
    let columns = (0..layout.column_count()).filter(|column| layout.column(*column).is_ok());
    let values = columns
        .map(|column| row.value(column).map_or_else(|error| error.to_string(), |value| format!("{value:?}")));
    format!("({})", values.collect::<Vec<_>>().join(", "))
}

/// A run over rows that stay as they are.
struct Trial<'a> {
    rows: &'a mut dyn State,
    written: Written,
    /// The row that was read last.
    read: Option<Vec<u8>>,
    /// If only what guards read may be touched: the footprint that tells what it is.
    guards: Option<&'a Footprint>,
}

impl<'a> Trial<'a> {
    fn new(rows: &'a mut dyn State) -> Trial<'a> {
        Trial { rows, written: Written::new(), read: None, guards: None }
    }

    fn run(
        &mut self,
        catalog: &Catalog,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut scratch = Vec::new();
        body(&mut Transaction::new(&catalog.schema, self, &mut scratch))
    }

    fn check(&self, key: &Key, writes: bool) -> Result<(), Stop> {
        let Some(footprint) = self.guards else { return Ok(()) };
        match footprint.find(key) {
            Some(place) if footprint.keys()[place].guards && !writes => Ok(()),
            _ => Err(Stop::Invalid(format!(
                "key {key:?}: a guard reads only keys that were declared for it, and writes none"
            ))),
        }
    }

    /// The row of a key as it is now.
    fn now(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.written.get(key).cloned().unwrap_or_else(|| self.rows.row(key))
    }
}

impl Access for Trial<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        self.check(key, false)?;
        self.read = self.now(key);
        Ok(self.read.as_deref())
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.check(key, true)?;
        self.written.insert(key.clone(), Some(row.to_vec()));
        Ok(())
    }

    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        self.check(key, true)?;
        let Some(mut row) = self.now(key) else { return Ok(false) };
        values.iter().for_each(|value| table.layout().replace(&mut row, value));
        self.written.insert(key.clone(), Some(row));
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.check(key, true)?;
        self.written.insert(key.clone(), None);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        self.check(&range.start, self.guards.is_some())?;
        layers::scan(self, range, direction, limit)
    }
}

impl Layers for Trial<'_> {
    fn below(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        let rows = self.rows.rows(range, direction, limit);
        Ok(rows.into_iter().map(|(key, row)| Found { key, row: row.into() }).collect())
    }

    fn written(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Key> {
        overlay::keys_in(&self.written, range, direction, limit)
    }

    fn row(&mut self, key: &Key, _: Option<&[u8]>) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.written.get(key).cloned().flatten())
    }
}
