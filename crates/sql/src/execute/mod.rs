//! Running plans: the same code inside of an ordered transaction, and over a snapshot with a block's own writes.
//!
//! Deterministic: a run is a function of the plan, its [`Inputs`] and the rows it reads. What differs between runs, such as the time, is
//! among the inputs.

mod aggregate;
mod among;
mod budget;
pub mod columns;
mod decide;
pub mod declare;
mod entries;
mod evaluate;
mod fill;
mod foreign_keys;
mod interrupt;
mod join;
mod kept;
mod keyed;
mod modify;
mod order;
mod query;
mod random;
pub mod receive;
mod rows;
mod scalar;
mod window;
mod work;

use std::collections::BTreeMap;
use std::rc::Rc;

use ordain_db::hash::Seed;
use ordain_db::procedure::{Stop, Transaction};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::catalog::version;
use crate::error::{SqlError, SqlState};
use crate::keys::{DEFINITION_COLUMN, Storages};
use crate::plan::{Action, DefinitionChange, Node, Plan, Reliance, SequenceShape, TableShape};
use crate::state::Signal;
use crate::types::{Datum, Values, Zone, operators, row};
use budget::Claim;
use columns::Way;
use query::Wanted;
use receive::{Receive, Watched};

pub use budget::{Budget, Keeping, Kept};
pub use entries::values_in_index;
pub use foreign_keys::{Pending, refers_to_nothing};
pub use interrupt::{Interrupt, terminated};
pub use scalar::{evaluate, try_evaluate};
pub use work::{Patience, WORK_AHEAD_MAX, WORK_MAX};

/// A row in the course of a run.
pub type Row = Vec<Datum>;

/// What most statements have one of: that needs no allocation.
type Few<T> = SmallVec<[T; 1]>;

/// The rows of a result in the form of [`row::encode`].
pub type EncodedRows = Few<Vec<u8>>;

/// What rows take in memory, about.
pub fn bytes_of(rows: &[Vec<u8>]) -> usize {
    rows.iter().map(|row| size_of::<Vec<u8>>() + row.len()).sum()
}

/// Most numbers of a sequence that are drawn at a time for a statement of a block.
pub(crate) const RESERVED_MAX: u32 = 1024;

/// Most bytes of rows that one statement may hold at a time, roughly.
const HELD_BYTES_MAX: usize = 512 * 1024 * 1024;

/// What a run takes besides its plan.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// The values of the statement's parameters.
    pub parameters: Values,
    /// The time at which its transaction began, in microseconds since 2000-01-01 UTC.
    pub now: i64,
    /// The time zone of its session.
    pub zone: Zone,
    /// A number that no other statement has: hidden keys, random numbers and hashes follow from it.
    pub seed: u128,
    /// Numbers that were drawn from sequences before, in the order in which the run takes them; it fails with [`none_drawn`] where it takes
    /// more. Without, it draws from the sequences itself.
    pub drawn: Option<Vec<i64>>,
    /// What the session has answered to the questions of the statement, in their order.
    pub answers: Vec<Datum>,
    /// Whether it is told what each node of the plan gives.
    pub observes: bool,
    /// Whether it claims its tables as a whole, since it touches more rows than can be claimed one by one.
    pub claims_tables: bool,
}

impl Inputs {
    /// What hashes follow from that others are not to know before: the part of the seed that is random.
    pub fn hash_seed(&self) -> Seed {
        Seed(self.seed as u64)
    }
}

/// What came out of a statement.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Output {
    /// Encoded rows.
    pub rows: EncodedRows,
    /// How many rows it wrote.
    pub written: u64,
    /// The storages of sequences that it drew from, with the last number of each; that which was drawn from last is the last.
    pub drawn: Vec<(u32, i64)>,
    /// What each node of the plan gave, if that was asked for: each before its inputs.
    pub observed: Vec<Observed>,
    /// What its session is to do to others, by their numbers: each once.
    pub signals: Vec<(i32, Signal)>,
}

/// What a node of a plan gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Observed {
    /// Rows, in all its runs.
    pub rows: u64,
    /// How many times it ran.
    pub runs: u64,
    /// How it ran, if it could have run over columns.
    pub way: Option<Way>,
}

impl Output {
    /// Notes that a number was drawn.
    pub(crate) fn note_drawn(&mut self, storage: u32, value: i64) {
        self.drawn.retain(|(known, _)| *known != storage);
        self.drawn.push((storage, value));
    }
}

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// The statement fails, and with it its transaction.
    Sql(SqlError),
    /// The database stopped it.
    Stop(Stop),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Sql(error)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        Failure::Stop(stop)
    }
}

/// Gives numbers of sequences outside of the transaction that asks, as PostgreSQL does: they are gone even if it fails.
pub trait Draw {
    /// The next number.
    ///
    /// # Errors
    /// When the sequence is at its end, or the database cannot be asked.
    fn draw(&mut self, sequence: &SequenceShape) -> Result<i64, SqlError>;

    /// Has the sequence go on after a number if that was `called`, else with it.
    ///
    /// # Errors
    /// When the sequence does not have the number, or the database cannot be asked.
    fn set(&mut self, sequence: &SequenceShape, value: i64, called: bool) -> Result<(), SqlError>;
}

/// A run of a plan.
pub struct Run<'a, 't> {
    /// Reads and writes.
    pub transaction: &'a mut Transaction<'t>,
    storages: &'a Storages,
    plan: &'a Plan,
    inputs: &'a Inputs,
    /// The rows of the queries around the one that runs, the innermost last.
    outer: Vec<Row>,
    /// The values of each [`Let`](crate::plan::Expression::Let) around what is computed, the nearest last.
    locals: Vec<Row>,
    /// Hidden keys that were given out.
    hidden: u64,
    /// Numbers of `inputs.drawn` that were taken.
    drawn: usize,
    /// Random values that were given out.
    randoms: u64,
    /// What is told of the numbers that were drawn.
    noted: Output,
    /// Rows of subqueries that depend on nothing, by where their plan is in memory.
    kept: BTreeMap<usize, Rc<Vec<Row>>>,
    /// The rows of queries of `WITH`, by their numbers.
    once: BTreeMap<u16, Rc<Vec<Row>>>,
    /// What other rows are kept, by where their plan is in memory.
    kept_rows: BTreeMap<usize, kept::Kept>,
    /// The values of subqueries after `IN`, and of arrays, that depend on nothing, by where their plan is in memory.
    members: BTreeMap<usize, Rc<kept::Members>>,
    /// Rows of queries that have not run yet, by where their plan is in memory.
    ready: BTreeMap<usize, Vec<Row>>,
    /// Bytes of all of these.
    kept_bytes: usize,
    /// Whether a part of it was tried over columns.
    tried_columns: bool,
    /// Why parts of it no longer run over columns, if that has come to nothing.
    by_rows: Option<Way>,
    /// The rows that came last of the recursive queries that run, by their numbers.
    working: BTreeMap<u16, Rc<Vec<Row>>>,
    held: usize,
    /// What it has of what all statements may hold.
    claim: Claim<'a>,
    patience: Patience<'a>,
    /// How much work there is until it looks whether the statement was cancelled.
    until_look: u64,
    /// What nodes gave, by where they are in memory.
    observed: BTreeMap<usize, Observed>,
    /// Where numbers of sequences come from, if not from the transaction.
    source: Option<&'a mut dyn Draw>,
    /// What the statement has done to rows that foreign keys are about.
    notes: foreign_keys::Notes,
    /// What is to be checked at the end of the transaction.
    deferred: Vec<Pending>,
}

impl<'a, 't> Run<'a, 't> {
    fn new(
        transaction: &'a mut Transaction<'t>,
        storages: &'a Storages,
        plan: &'a Plan,
        inputs: &'a Inputs,
        source: Option<&'a mut dyn Draw>,
        patience: Patience<'a>,
    ) -> Run<'a, 't> {
        operators::begin_run();
        Run {
            transaction,
            storages,
            plan,
            inputs,
            outer: Vec::new(),
            locals: Vec::new(),
            hidden: 0,
            drawn: 0,
            randoms: 0,
            noted: Output::default(),
            kept: BTreeMap::new(),
            once: BTreeMap::new(),
            kept_rows: BTreeMap::new(),
            members: BTreeMap::new(),
            ready: BTreeMap::new(),
            tried_columns: false,
            by_rows: None,
            kept_bytes: 0,
            working: BTreeMap::new(),
            held: 0,
            claim: match patience {
                Patience::Limited(_) => Claim::default(),
                Patience::UntilTold(told, _) => Claim::of(told.budget()),
            },
            patience,
            until_look: 0,
            observed: BTreeMap::new(),
            source,
            notes: foreign_keys::Notes::default(),
            deferred: Vec::new(),
        }
    }

    /// Runs a plan to its end. The rows of a query go to `receiver`, those that are written and returned into the output. `source` gives numbers of sequences; without one they are drawn in the transaction, or taken from the
    /// inputs. What is to be checked at the end of the transaction is for [`settle`](Run::settle).
    ///
    /// # Errors
    /// See [`Failure`]. What was written until then must not take effect.
    pub fn run(
        transaction: &'a mut Transaction<'t>,
        storages: &'a Storages,
        plan: &'a Plan,
        inputs: &'a Inputs,
        source: Option<&'a mut dyn Draw>,
        patience: Patience<'a>,
        receiver: &mut dyn Receive,
    ) -> Result<(Output, Vec<Pending>), Failure> {
        let mut run = Run::new(transaction, storages, plan, inputs, source, patience);
        plan.reliances.iter().try_for_each(|reliance| run.check(reliance))?;
        let mut rows = Watched::new(receiver);
        let output = match run.act(&mut rows) {
            Err(Failure::Sql(error)) if !rows.has_any && run.may_go_by_rows(&error) => {
                let Run { transaction, source, .. } = run;
                run = Run::new(transaction, storages, plan, inputs, source, patience);
                run.by_rows = Some(Way::Refused);
                run.act(&mut rows)?
            }
            outcome => outcome?,
        };
        let observed = plan.action.source().filter(|_| inputs.observes);
        let observed = observed.map_or_else(Vec::new, |source| run.observed_of(source));
        Ok((Output { drawn: run.noted.drawn, signals: run.noted.signals, observed, ..output }, run.deferred))
    }

    /// Whether it could end otherwise if none of it ran over columns. Perhaps nobody asks for the row that was failed at: rows are read as they
    /// are asked for.
    fn may_go_by_rows(&self, error: &SqlError) -> bool {
        let Patience::UntilTold(told, _) = self.patience else { return false };
        let is_too_much = matches!(error.state, SqlState::OUT_OF_MEMORY | SqlState::PROGRAM_LIMIT_EXCEEDED);
        self.tried_columns && !is_too_much && told.error().is_none() && self.noted.drawn.is_empty()
    }

    /// Notes that a node ran.
    fn observe_run(&mut self, node: &Node) {
        if self.inputs.observes {
            self.observed.entry(std::ptr::from_ref(node).addr()).or_default().runs += 1;
        }
    }

    /// Notes that a node gave a row.
    fn observe_row(&mut self, node: &Node) {
        if self.inputs.observes {
            self.observed.entry(std::ptr::from_ref(node).addr()).or_default().rows += 1;
        }
    }

    /// Notes that a node, by where it is in memory, ran and gave so many rows.
    fn observe(&mut self, node: usize, rows: u64) {
        if self.inputs.observes {
            let Observed { rows: known, runs, .. } = self.observed.entry(node).or_default();
            *known += rows;
            *runs += 1;
        }
    }

    /// Notes how a node ran.
    fn observe_way(&mut self, node: &Node, way: Way) {
        if self.inputs.observes {
            self.observed.entry(std::ptr::from_ref(node).addr()).or_default().way = Some(way);
        }
    }

    /// What a node and those below it gave, each before its inputs.
    fn observed_of(&self, node: &Node) -> Vec<Observed> {
        let own = self.observed.get(&std::ptr::from_ref(node).addr());
        let mut all = vec![own.copied().unwrap_or_default()];
        let below = node.inputs().into_iter().chain(node.subqueries().into_iter().map(|(query, _)| query));
        below.for_each(|node| all.extend(self.observed_of(node)));
        all
    }

    fn act(&mut self, receiver: &mut dyn Receive) -> Result<Output, Failure> {
        match &self.plan.action {
            Action::Query(node) => {
                self.each(node, Wanted::ALL, &mut |_, row| {
                    receiver.receive(row)?;
                    Ok(true)
                })?;
                Ok(Output::default())
            }
            Action::Insert { table, source, on_conflict, returning } => {
                self.insert(*table, source, on_conflict, returning.as_deref())
            }
            Action::Update { table, source, assignments, returning } => {
                self.update(*table, source, assignments, returning.as_deref())
            }
            Action::Delete { table, source, returning } => self.delete(*table, source, returning.as_deref()),
            Action::Define { changes, fill, sequences } => {
                changes.iter().try_for_each(|change| self.define(change))?;
                for (table, index) in fill {
                    self.fill_all(self.table(*table)?, *index)?;
                }
                sequences.iter().try_for_each(|(storage, value)| self.set_sequence(*storage, *value))?;
                Ok(Output::default())
            }
            Action::Fill { table, index, after, rows } => {
                self.fill(self.table(*table)?, *index, after.as_deref(), *rows)
            }
            Action::Load { table, rows } => self.load(self.table(*table)?, rows),
            Action::Clear { storage, replicated, after, rows } => {
                self.clear((*storage, *replicated), after.as_deref(), *rows)
            }
            Action::Reserve(reservation) => self.reserve(reservation),
            // Whoever runs the statements before it knows what they have left.
            Action::Settle { .. } => Ok(Output::default()),
            Action::Call { routine, .. } => Err(within_a_block(routine).into()),
        }
    }

    fn table(&self, number: u16) -> Result<&'a TableShape, SqlError> {
        let plan: &'a Plan = self.plan;
        plan.tables.get(usize::from(number)).ok_or_else(|| malformed("table"))
    }

    /// Fails unless a definition is the one that the plan was made from.
    fn check(&mut self, reliance: &Reliance) -> Result<(), Failure> {
        let key = self.storages.definition(&reliance.schema, &reliance.name)?;
        let found = match self.transaction.get(&key)? {
            Some(row) => Some(version(row.byte_string(DEFINITION_COLUMN).map_err(Stop::from)?)),
            None => None,
        };
        if found == reliance.version { Ok(()) } else { Err(stale().into()) }
    }

    fn define(&mut self, change: &DefinitionChange) -> Result<(), Failure> {
        let key = self.storages.definition(&change.schema, &change.name)?;
        match &change.definition {
            Some(definition) => {
                self.transaction.put(&self.storages.definitions, &key, (definition.as_slice(),))?;
            }
            None => self.transaction.delete(&key)?,
        }
        Ok(())
    }

    /// Counts bytes that the run holds until it [lets them go](Run::let_go).
    fn hold(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.held += bytes;
        self.check_held()
    }

    /// Counts bytes that the run holds to its end.
    fn keep(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.kept_bytes += bytes;
        self.check_held()
    }

    fn check_held(&mut self) -> Result<(), SqlError> {
        let bytes = self.held + self.kept_bytes;
        if bytes > HELD_BYTES_MAX {
            return Err(held_too_much());
        }
        self.claim.hold(bytes)
    }

    /// Counts bytes that the run holds no longer.
    fn let_go(&mut self, bytes: usize) {
        self.held -= bytes;
        self.claim.let_go(self.held + self.kept_bytes);
    }

    /// Does something whose result is held; how many bytes it comes to.
    fn holding<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<(T, usize), Failure> {
        let before = self.held;
        let done = act(self)?;
        Ok((done, self.held - before))
    }
}

/// The error of a plan whose definitions have changed. A session makes a new plan and tries again.
pub fn stale() -> SqlError {
    let message = "the definition of a table was changed by another transaction";
    let error = SqlError::new(SqlState::SERIALIZATION_FAILURE, message)
        .with_hint("Run the transaction again: it will use the tables as they are now.");
    SqlError { is_stale: true, ..error }
}

/// A session calls procedures by themselves; only in a block it comes to run the plan of a call.
pub(crate) fn within_a_block(routine: &str) -> SqlError {
    let message = format!("CALL {routine} cannot run inside a transaction block");
    SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message).with_hint("It is a transaction of its own.")
}

fn held_too_much() -> SqlError {
    let message = format!("the statement holds more than {} MiB of rows", HELD_BYTES_MAX >> 20);
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .with_hint("Read less at a time: add a condition or a LIMIT.")
}

/// The error of a run that needs more numbers than were drawn for it before: the next one could not be drawn then. It stands for the error of
/// then where a statement that failed so runs again.
pub(crate) fn none_drawn() -> SqlError {
    SqlError::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "the next number could not be drawn")
}

fn malformed(what: &str) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("malformed plan: no such {what}"))
}

/// Bytes that an allocation takes besides its own, about.
const ALLOCATION_BYTES: usize = 16;

/// Bytes that a row takes in memory, about: its place among others is in an allocation that may be half empty.
fn size_of_row(row: &[Datum]) -> usize {
    2 * size_of::<Row>() + ALLOCATION_BYTES + size_of_val(row) + row.iter().map(size_beyond).sum::<usize>()
}

/// Bytes that a value takes in memory besides those that each takes, about.
fn size_beyond(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => ALLOCATION_BYTES + text.len(),
        Datum::Bytes(bytes) => ALLOCATION_BYTES + bytes.len(),
        Datum::Array(values) => size_of_row(values),
        Datum::Numeric(number) => match number.large_bytes() {
            0 => 0,
            bytes => ALLOCATION_BYTES + bytes,
        },
        _ => 0,
    }
}

fn encode_row(values: &[Datum]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 * values.len());
    row::encode(values, &mut bytes);
    bytes
}
