//! What a workload's checker is given and what it answers.

use std::collections::BTreeMap;

use ordain_db::data::{DataError, KeyRange, Row, Table};
use ordain_db::error::Error;

/// Reads one state of a whole cluster.
pub trait SnapshotReader {
    /// Visits each row of a range once, in any order, with its encoded key; rows of replicated tables once, not once per
    /// partition. All scans of one reader see the same state.
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error>;
}

/// How the calls of one procedure ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcomes {
    /// Calls that committed.
    pub committed: u64,
    /// Calls that the procedure's logic aborted.
    pub aborted: u64,
    /// Calls whose end the client did not see: each may have committed or not.
    pub unknown: u64,
}

impl Outcomes {
    /// Whether `count` commits can have happened.
    pub fn allow(self, count: i64) -> bool {
        u64::try_from(count)
            .is_ok_and(|count| (self.committed..=self.committed + self.unknown).contains(&count))
    }

    /// How many commits can have happened, for messages.
    pub(crate) fn describe(self) -> String {
        if self.unknown == 0 {
            return self.committed.to_string();
        }
        format!("{} to {}", self.committed, self.committed + self.unknown)
    }
}

/// How all calls since the load ended, by procedure, as clients saw it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Totals(BTreeMap<String, Outcomes>);

impl Totals {
    /// No calls yet.
    pub fn new() -> Totals {
        Totals::default()
    }

    /// The outcomes of a procedure, to be counted up.
    pub fn of_mut(&mut self, procedure: &str) -> &mut Outcomes {
        if !self.0.contains_key(procedure) {
            self.0.insert(procedure.to_owned(), Outcomes::default());
        }
        self.0.get_mut(procedure).expect("inserted above")
    }

    /// The outcomes of a procedure; all zero when it was never called.
    pub fn of(&self, procedure: &str) -> Outcomes {
        self.0.get(procedure).copied().unwrap_or_default()
    }

    /// Adds what another client saw.
    pub fn add(&mut self, other: &Totals) {
        for (procedure, outcomes) in &other.0 {
            let sum = self.of_mut(procedure);
            sum.committed += outcomes.committed;
            sum.aborted += outcomes.aborted;
            sum.unknown += outcomes.unknown;
        }
    }
}

/// One condition of a workload, held against a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckLine {
    /// The condition, as a formula where there is one.
    pub condition: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was found: when violated, the first offending key and both values.
    pub detail: String,
}

/// Collects whether a condition holds over many keys: keeps the first violation and counts the others.
#[derive(Debug)]
pub(crate) struct Condition {
    condition: &'static str,
    checked: u64,
    violated: u64,
    first: String,
}

impl Condition {
    pub(crate) fn new(condition: &'static str) -> Condition {
        Condition { condition, checked: 0, violated: 0, first: String::new() }
    }

    /// Counts one key; `detail` is called for the first violation only.
    pub(crate) fn require(&mut self, holds: bool, detail: impl FnOnce() -> String) {
        self.checked += 1;
        if !holds {
            if self.violated == 0 {
                self.first = detail();
            }
            self.violated += 1;
        }
    }

    /// Counts one key whose two values must be equal.
    pub(crate) fn equal(&mut self, key: impl FnOnce() -> String, left: i64, right: i64) {
        self.require(left == right, || format!("{}: {left} against {right}", key()));
    }

    pub(crate) fn finish(self) -> CheckLine {
        let detail = match self.violated {
            0 => format!("checked {}", self.checked),
            violated => format!("{}; {violated} of {} violated", self.first, self.checked),
        };
        CheckLine { condition: self.condition.to_owned(), holds: self.violated == 0, detail }
    }
}

/// Visits each row of a table, with its key's columns as integers (0 for those of other types).
pub(crate) fn scan_table<const KEY: usize>(
    reader: &mut dyn SnapshotReader,
    table: &Table,
    mut visit: impl FnMut([i64; KEY], Row<'_>) -> Result<(), DataError>,
) -> Result<(), Error> {
    let mut failed = None;
    let mut visit_encoded = |key: &[u8], row: &[u8]| -> Result<(), DataError> {
        table.layout().check(row)?;
        let mut columns = [0; KEY];
        for (column, value) in columns.iter_mut().zip(table.key_values(key)?) {
            *column = value.integer().unwrap_or(0);
        }
        visit(columns, table.read(row))
    };
    reader.scan(&table.all(), &mut |key, row| {
        if failed.is_none() {
            failed = visit_encoded(key, row).err();
        }
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}
