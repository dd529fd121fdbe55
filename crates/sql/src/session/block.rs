//! A transaction block: what it sees, what it has written, and what it will certify.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::View;
use super::overlay::Written;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::execute::Output;
use crate::plan::{Action, Expression, Node};
use crate::procedure::{Step, digest};
use crate::types::Datum;

/// A transaction block.
pub(super) struct Block {
    /// What it sees, from its first statement on.
    pub view: Option<Box<dyn View>>,
    /// A later snapshot, for storages that only it knows.
    pub own_view: Option<Box<dyn View>>,
    /// Storages that it has made.
    pub own: Vec<u32>,
    /// Those of them that were loaded, and whether they are copied to every partition: they are garbage if it fails.
    pub loaded: Vec<(u32, bool)>,
    pub written: Written,
    pub steps: Vec<Step>,
    /// Bytes of the steps, about.
    pub bytes: usize,
    pub writes: bool,
    /// The definitions, with its own changes.
    pub catalog: Arc<Catalog>,
    savepoints: Vec<Savepoint>,
    /// How many cursors it has declared.
    pub cursors: usize,
    /// The steps that certify the first of their rows: those of cursors.
    limited: BTreeSet<usize>,
    /// A statement has failed: nothing but the end is accepted.
    pub failed: bool,
    pub read_only: bool,
    /// Begun by the session, for statements that came together.
    pub implicit: bool,
    /// When it began.
    pub now: i64,
    pub garbage: bool,
    /// Statements that drop what is to end with it.
    pub at_end: Vec<String>,
}

/// Where a block can go back to.
struct Savepoint {
    name: String,
    written: Written,
    steps: usize,
    bytes: usize,
    writes: bool,
    catalog: Arc<Catalog>,
    cursors: usize,
}

impl Block {
    pub(super) fn new(catalog: Arc<Catalog>, now: i64) -> Block {
        Block {
            view: None,
            own_view: None,
            own: Vec::new(),
            loaded: Vec::new(),
            written: Written::new(),
            steps: Vec::new(),
            bytes: 0,
            writes: false,
            catalog,
            savepoints: Vec::new(),
            cursors: 0,
            limited: BTreeSet::new(),
            failed: false,
            read_only: false,
            implicit: false,
            now,
            garbage: false,
            at_end: Vec::new(),
        }
    }

    pub(super) fn save(&mut self, name: String) {
        self.savepoints.push(Savepoint {
            name,
            written: self.written.clone(),
            steps: self.steps.len(),
            bytes: self.bytes,
            writes: self.writes,
            catalog: Arc::clone(&self.catalog),
            cursors: self.cursors,
        });
    }

    /// How many statements it will run again at its end.
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Has a step, which is a query, certify the first of its rows, which are these; or that these are all of them.
    pub(super) fn certify_rows(&mut self, place: usize, rows: &[Vec<u8>], are_all: bool) {
        let Some(step) = self.steps.get_mut(place) else { return };
        let Action::Query(node) = &mut step.plan.action else { return };
        let limit = (!are_all).then_some(Expression::Constant(Datum::Int(rows.len() as i64)));
        if self.limited.insert(place) {
            let query = std::mem::replace(node, Node::Values(Vec::new()));
            *node = Node::Limit { input: Box::new(query), limit, offset: None };
        } else if let Node::Limit { limit: known, .. } = node {
            *known = limit;
        }
        step.shown = Some(digest(&Output { rows: rows.to_vec(), ..Output::default() }));
    }

    fn savepoint(&self, name: &str) -> Result<usize, SqlError> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, message)
        })
    }

    pub(super) fn release(&mut self, name: &str) -> Result<(), SqlError> {
        let place = self.savepoint(name)?;
        self.savepoints.truncate(place);
        Ok(())
    }

    pub(super) fn go_back(&mut self, name: &str) -> Result<(), SqlError> {
        let place = self.savepoint(name)?;
        self.savepoints.truncate(place + 1);
        let savepoint = &self.savepoints[place];
        self.written = savepoint.written.clone();
        self.steps.truncate(savepoint.steps);
        self.limited.retain(|step| *step < savepoint.steps);
        self.cursors = savepoint.cursors;
        (self.bytes, self.writes) = (savepoint.bytes, savepoint.writes);
        self.catalog = Arc::clone(&savepoint.catalog);
        self.failed = false;
        Ok(())
    }
}
