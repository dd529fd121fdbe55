//! A transaction block: what it sees, what it has written, and what it will certify.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ordain_db::hash::FastSet;
use ordain_db::procedure::overlay::Written;

use super::View;
use super::constraints::Deferrals;
use super::past::Past;
use super::settings::Changes;
use super::transaction::reads_only;
use super::views::Sight;
use crate::catalog::{Catalog, Loading};
use crate::error::{SqlError, SqlState};
use crate::execute::columns::{Confined, QueryEngine};
use crate::execute::receive::{Digesting, OutputDigest};
use crate::execute::{Inputs, Output, Pending};
use crate::plan::{Action, Expression, Node, Plan, SharedPlan};
use crate::procedure::{Shown, Step, Undone, depends_on_rows, encode_steps, too_much};
use crate::types::Datum;

/// A transaction block.
pub(super) struct Block {
    /// What it sees, from its first statement on.
    pub view: Option<Sight>,
    /// A later snapshot, for storages that only it knows.
    pub own_view: Option<Box<dyn View>>,
    /// Storages that it has made.
    pub own: BTreeMap<u32, Made>,
    /// What it has said of those of them into which rows were loaded.
    pub loading: Option<Loading>,
    pub written: Written,
    pub steps: Vec<Step>,
    /// Those of them that it has gone back from: they certify what the client was shown, and have no effect.
    pub undone: Vec<Undone>,
    /// What steps have left to be checked at its end, by their numbers.
    pub pending: Vec<(usize, Vec<Pending>)>,
    /// Which foreign keys are checked at its end, where that was said.
    pub deferrals: Deferrals,
    /// Bytes of the steps, about.
    bytes: usize,
    /// The plans of the steps, as they are encoded.
    plans: FastSet<Bytes>,
    /// Whether it certifies at its end what its client was shown: it has written something, or asked for locks.
    pub certifies: bool,
    /// Whether its client was shown something that depends on what it sees.
    pub has_shown: bool,
    /// Whether it has run a statement that has a plan.
    pub has_run: bool,
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
    /// It reads as of a time in the past, and nothing else.
    pub past: bool,
    /// Begun by the session, for statements that came together.
    pub implicit: bool,
    /// When it began.
    pub now: i64,
    pub garbage: bool,
    /// What parameters of the session had been changed before.
    pub settings: Changes,
    /// Statements that drop what is to end with it.
    pub at_end: Vec<String>,
}

/// When a block has made a storage.
pub(super) struct Made {
    /// How many steps it had before.
    pub steps: usize,
    /// How many it had when rows were loaded last: those until then show the same whatever else is loaded.
    pub loaded: usize,
}

/// Where a block can go back to.
struct Savepoint {
    name: String,
    written: Written,
    steps: usize,
    certifies: bool,
    catalog: Arc<Catalog>,
    cursors: usize,
    /// How many portals had been made.
    portals: u64,
    settings: Changes,
    pending: usize,
    deferrals: Deferrals,
}

impl Block {
    pub(super) fn new(catalog: Arc<Catalog>, now: i64, settings: Changes) -> Block {
        Block {
            view: None,
            own_view: None,
            own: BTreeMap::new(),
            loading: None,
            written: Written::new(),
            steps: Vec::new(),
            undone: Vec::new(),
            pending: Vec::new(),
            deferrals: Deferrals::new(),
            bytes: 0,
            plans: FastSet::default(),
            certifies: false,
            has_shown: false,
            has_run: false,
            catalog,
            savepoints: Vec::new(),
            cursors: 0,
            limited: BTreeSet::new(),
            failed: false,
            read_only: false,
            past: false,
            implicit: false,
            now,
            garbage: false,
            settings,
            at_end: Vec::new(),
        }
    }

    /// Has it see a state that was kept, which nothing can be written to.
    pub(super) fn enter(&mut self, past: Past) {
        (self.view, self.catalog) = (Some(Sight::new(past.view)), past.catalog);
        (self.past, self.read_only) = (true, true);
    }

    /// Whether it can still be said which state it sees.
    pub(super) fn is_fresh(&self) -> bool {
        !self.has_shown && self.own.is_empty() && self.savepoints.is_empty()
    }

    pub(super) fn save(&mut self, name: String, portals: u64, settings: Changes) {
        self.savepoints.push(Savepoint {
            name,
            written: self.written.clone(),
            steps: self.steps.len(),
            certifies: self.certifies,
            catalog: Arc::clone(&self.catalog),
            cursors: self.cursors,
            portals,
            settings,
            pending: self.pending.len(),
            deferrals: self.deferrals.clone(),
        });
    }

    /// Notes a statement that it will run again at its end, if that can show something else then, with the rows that it has shown. If it
    /// failed, it may fail with `another` error when it runs again.
    ///
    /// # Errors
    /// When the statements are too long together.
    pub(super) fn note(
        &mut self,
        plan: &SharedPlan,
        inputs: Inputs,
        outcome: &Result<(Output, Vec<Pending>), SqlError>,
        another: Option<&SqlError>,
        rows: Digesting<'_>,
    ) -> Result<(), SqlError> {
        let (reads_only, is_query) = (reads_only(plan), matches!(plan.action, Action::Query(_)));
        let mut cut = None;
        let shown = match outcome {
            Ok((output, _)) if !plan.tables.is_empty() || !plan.sequences.is_empty() || !reads_only => {
                Shown::Output(rows.finish(output).value_of(plan))
            }
            // The client knows, and goes on from a savepoint.
            Err(error) if !self.savepoints.is_empty() && depends_on_rows(error) => {
                Shown::Error(rows.finish_with(another.unwrap_or(error)))
            }
            // The error tells nothing of rows, but some came before it.
            Err(_) if !self.savepoints.is_empty() && is_query && rows.digest().rows() > 0 => {
                let digest = rows.digest();
                let shown = Shown::Output(digest.value());
                cut = Some(digest);
                shown
            }
            _ => return Ok(()),
        };
        self.has_shown = true;
        if self.read_only && !self.certifies {
            // It will not write any more.
            return Ok(());
        }
        self.certifies |= !reads_only && outcome.is_ok();
        if let Ok((_, pending)) = outcome
            && !pending.is_empty()
        {
            self.pending.push((self.steps.len(), pending.clone()));
        }
        self.steps.push(Step { plan: plan.clone(), inputs, shown: Some(shown) });
        if let Some(rows) = cut {
            self.certify_digest(self.steps.len() - 1, &rows, false);
        }
        let step = &self.steps[self.steps.len() - 1..];
        self.bytes += encode_steps(step, &[])?.len();
        // Each plan is sent once.
        if let Some(encoded) = step.first().and_then(|step| step.plan.encoded().ok())
            && !self.plans.insert(encoded.clone())
        {
            self.bytes -= encoded.len();
        }
        // A block that only reads so far may not need to send them.
        if self.certifies && self.bytes > ordain_db::limits::ARGUMENTS_BYTES_MAX {
            return Err(too_much());
        }
        Ok(())
    }

    /// Whether rows can be loaded into a table at once, as if they had been there since its storage was made: the block has made that, has done
    /// nothing with it since, and cannot go back to something in between.
    pub(super) fn can_load(&self, storage: u32) -> bool {
        let Some(made) = self.own.get(&storage) else { return false };
        let is_of_it = |step: &Step| step.plan.tables.iter().any(|shape| shape.storage == storage);
        self.savepoints.iter().all(|savepoint| savepoint.steps <= made.steps)
            && !self.steps.iter().skip(made.loaded).any(is_of_it)
    }

    /// The steps that it has not gone back from.
    pub(super) fn steps_in_force(&self) -> impl Iterator<Item = &Step> {
        let is_undone = |number| self.undone.iter().any(|part| (part.first..part.end).contains(&number));
        (0..).zip(&self.steps).filter(move |(number, _)| !is_undone(*number)).map(|(_, step)| step)
    }

    /// How many statements it will run again at its end.
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Has a step, which is a query, certify the first of its rows, which are these; or that these are all of them.
    pub(super) fn certify_rows(&mut self, place: usize, rows: &[Vec<u8>], are_all: bool) {
        let Some(step) = self.steps.get(place) else { return };
        let mut digest = OutputDigest::new(&step.inputs, 0);
        rows.iter().for_each(|row| digest.add(row));
        self.certify_digest(place, &digest, are_all);
    }

    fn certify_digest(&mut self, place: usize, rows: &OutputDigest, are_all: bool) {
        let Some(step) = self.steps.get_mut(place) else { return };
        let mut plan = Plan::clone(&step.plan);
        let Action::Query(node) = &mut plan.action else { return };
        let limit = (!are_all).then_some(Expression::Constant(Datum::Int(rows.rows() as i64)));
        if self.limited.insert(place) {
            let query = std::mem::replace(node, Node::Values(Vec::new()));
            *node = Node::Limit { input: Box::new(query), limit, offset: None, ties: Vec::new() };
        } else if let Node::Limit { limit: known, .. } = node {
            *known = limit;
        }
        step.plan = plan.into();
        step.shown = Some(Shown::Output(rows.value()));
    }

    /// An engine for what may give its rows in another order than it will at the block's place in the order of transactions. Of a cursor
    /// the first rows are certified, and those before an error where there is a savepoint.
    pub(super) fn confine<'e>(
        &self,
        engine: &'e dyn QueryEngine,
        plan: &Plan,
        is_cursor: bool,
    ) -> Option<Confined<'e>> {
        if self.read_only && !self.certifies {
            return Some(Confined::anywhere(engine));
        }
        let part = plan.part_in_any_order().filter(|_| !is_cursor && self.savepoints.is_empty())?;
        Some(Confined::to(engine, part))
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

    /// Goes back to a savepoint; how many portals had been made, and what parameters of the session had been changed there.
    pub(super) fn go_back(&mut self, name: &str) -> Result<(u64, Changes), SqlError> {
        let place = self.savepoint(name)?;
        self.savepoints.truncate(place + 1);
        let savepoint = &mut self.savepoints[place];
        self.written = savepoint.written.clone();
        let (first, end) = (savepoint.steps as u32, self.steps.len() as u32);
        if first < end {
            self.undone.push(Undone { first, end });
        }
        // What follows is not part of what is undone if the block goes back here again.
        savepoint.steps = self.steps.len();
        self.cursors = savepoint.cursors;
        self.pending.truncate(savepoint.pending);
        self.deferrals.clone_from(&savepoint.deferrals);
        self.certifies = savepoint.certifies;
        self.catalog = Arc::clone(&savepoint.catalog);
        self.failed = false;
        Ok((savepoint.portals, savepoint.settings.clone()))
    }
}
