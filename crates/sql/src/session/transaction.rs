//! How statements reach the database: alone as one ordered transaction, or in a block over a snapshot.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ordain_db::data::Key;
use ordain_db::error::{Error, Limit, Outcome};
use ordain_db::procedure::footprint::{Declaration, Footprint};
use ordain_db::procedure::overlay::{Overlay, Written};
use ordain_db::procedure::{Stop, Transaction};
use sqlparser::ast::Statement;

use super::answer::same_columns;
use super::block::{Block, Made};
use super::database::{NoRows, of_call, of_database, of_read};
use super::deliver::Deliver;
use super::numbers::{Numbers, refuse_restarted};
use super::past::PARAMETER;
use super::views::{Sight, Views};
use super::{Session, View, definitions};
use crate::bind::{self, Prepared};
use crate::catalog::{Catalog, Loading};
use crate::error::{SqlError, SqlState};
use crate::execute::columns::QueryEngine;
use crate::execute::declare::declare;
use crate::execute::receive::{Collected, Digesting, Receive};
use crate::execute::{Draw, Failure, Inputs, Interrupt, Kept, Output, Patience, Pending, Run};
use crate::plan::{Action, Plan, SharedPlan};
use crate::procedure::{Step, Undone, encode_steps};
use crate::types::{Datum, SqlType, Values, Zone};

/// Most times that a statement is planned anew since definitions have changed meanwhile.
pub(super) const PLANNINGS_MAX: usize = 200;

/// The command that a plan is of.
pub(super) fn command(plan: &Plan) -> &'static str {
    match plan.action {
        Action::Query(_) if !plan.sequences.is_empty() => "nextval()",
        Action::Query(_) => "SELECT",
        Action::Insert { .. } => "INSERT",
        Action::Update { .. } => "UPDATE",
        Action::Delete { .. } => "DELETE",
        _ => "a definition",
    }
}

/// Whether a plan only reads.
pub(super) fn reads_only(plan: &Plan) -> bool {
    matches!(plan.action, Action::Query(_)) && plan.sequences.is_empty()
}

fn only_reads(command: &str) -> SqlError {
    let message = format!("cannot execute {command} in a read-only transaction");
    SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message)
}

impl Session {
    /// A block that begins now.
    pub(super) fn new_block(&mut self) -> Result<Block, SqlError> {
        let mut block = Block::new(self.catalog()?, self.database.now(), self.settings.changes());
        block.read_only = self.only_reads();
        let as_of = self.settings.get(PARAMETER)?;
        if !as_of.is_empty() {
            block.enter(self.look_back(as_of)?);
        }
        Ok(block)
    }

    /// Whether the transaction, or the next one if there is none, may only read.
    pub(super) fn only_reads(&self) -> bool {
        let default = || self.settings.get("default_transaction_read_only").is_ok_and(|value| value == "on");
        self.block.as_ref().map_or_else(default, |block| block.read_only)
    }

    /// Fails for what changes something in a transaction that only reads.
    pub(super) fn refuse_change(&self, command: &str) -> Result<(), SqlError> {
        if self.only_reads() { Err(only_reads(command)) } else { Ok(()) }
    }

    /// The definitions that the next statement is planned with.
    pub(super) fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        match &self.block {
            Some(block) => Ok(Arc::clone(&block.catalog)),
            None => self.database.catalog(None).map_err(|error| of_read(error, &self.interrupt)),
        }
    }

    pub(super) fn refresh(&mut self, outdated: &Arc<Catalog>) -> Result<(), SqlError> {
        let newer = self.database.catalog(Some(outdated)).map(drop);
        newer.map_err(|error| of_read(error, &self.interrupt))
    }

    pub(super) fn inputs(&self, parameters: Values) -> Inputs {
        let now = self.block.as_ref().map_or_else(|| self.database.now(), |block| block.now);
        let zone = self.surroundings.zone;
        Inputs { parameters, now, zone, seed: self.database.unique(), ..Inputs::default() }
    }

    /// The same as [`prepare`](Session::prepare) where moments in the text without a zone are in one that the session may have left.
    pub(super) fn prepare_in(
        &mut self,
        zone: Zone,
        statement: &Statement,
        types: &[Option<SqlType>],
    ) -> Result<(Arc<Catalog>, Prepared), SqlError> {
        let own = std::mem::replace(&mut self.surroundings.zone, zone);
        let outcome = self.prepare(statement, types);
        self.surroundings.zone = own;
        outcome
    }

    /// Makes a plan of a statement. What is not there may be there by now: then it is looked up once more.
    pub(super) fn prepare(
        &mut self,
        statement: &Statement,
        types: &[Option<SqlType>],
    ) -> Result<(Arc<Catalog>, Prepared), SqlError> {
        if let Some(catalog) = self.past_catalog(statement)? {
            let prepared = bind::prepare(statement, &catalog, &self.surroundings, types, &self.interrupt)?;
            return Ok((catalog, prepared));
        }
        let catalog = self.catalog()?;
        match bind::prepare(statement, &catalog, &self.surroundings, types, &self.interrupt) {
            Ok(prepared) => Ok((catalog, prepared)),
            Err(error) => {
                if !self.renew(&catalog)? {
                    return Err(error);
                }
                let newer = self.catalog()?;
                let prepared = bind::prepare(statement, &newer, &self.surroundings, types, &self.interrupt)?;
                Ok((newer, prepared))
            }
        }
    }

    /// Looks up the definitions once more, for a block too unless it has changed some; whether that was done. A block that only reads and
    /// has read already goes on with those of its snapshot. One that writes gets the newest: a plan that is made from later ones than its
    /// snapshot's fails by what it relies on, since what it names is there by now, and the client may begin again.
    pub(super) fn renew(&mut self, outdated: &Arc<Catalog>) -> Result<bool, SqlError> {
        if self.block.as_ref().is_some_and(|block| block.garbage) {
            return Ok(false);
        }
        if self.block.as_ref().is_some_and(|block| block.past) {
            // Its definitions are those of then, with which a statement is planned that was planned before with others.
            return Ok(true);
        }
        if self.block.as_ref().is_some_and(|block| block.has_shown && block.read_only) {
            return self.renew_from_snapshot();
        }
        self.refresh(outdated)?;
        let newer = self.database.catalog(None).map_err(|error| of_read(error, &self.interrupt))?;
        if let Some(block) = &mut self.block {
            block.catalog = newer;
            if !block.has_shown {
                // It has shown nothing yet, and may see a later state as well.
                block.view = None;
            }
        }
        Ok(true)
    }

    /// Has a block go on with the definitions of its snapshot: those that it had when it began may be older.
    fn renew_from_snapshot(&mut self) -> Result<bool, SqlError> {
        let Some(block) = &mut self.block else { return Ok(false) };
        let Some(sight) = block.view.as_ref().filter(|_| !block.garbage) else { return Ok(false) };
        let catalog = definitions(sight.view(), &self.storages);
        block.catalog = Arc::new(catalog.map_err(|error| of_read(error, &self.interrupt))?);
        Ok(true)
    }

    /// Runs a planned statement: in the block if there is one. It is planned anew if definitions have changed; then the new plan is
    /// what tells its columns, which must be the same if the client has been told them. Its rows are counted as long as they are kept.
    pub(super) fn execute<'p>(
        &mut self,
        statement: &Statement,
        prepared: &'p Prepared,
        parameters: &[Datum],
        described: bool,
    ) -> Result<(Cow<'p, Prepared>, Output, Option<Kept>), SqlError> {
        let mut rows = Collected::counted(Kept::nothing(&self.keeping));
        let (prepared, output) = self.execute_to(statement, prepared, parameters, described, &mut rows)?;
        // What has written by itself has taken effect.
        let can_fail = self.block.is_some() || reads_only(&prepared.plan);
        let (output, kept) = rows.complete_counted(output, can_fail)?;
        Ok((prepared, output, kept))
    }

    /// The same for a statement whose rows go to the client as they come. Those that are in the output have not gone there.
    pub(super) fn execute_to<'p>(
        &mut self,
        statement: &Statement,
        prepared: &'p Prepared,
        parameters: &[Datum],
        described: bool,
        to: &mut dyn Deliver,
    ) -> Result<(Cow<'p, Prepared>, Output), SqlError> {
        let locking = crate::syntax::locking(statement);
        if let Some(strength) = locking {
            self.refuse_change(&format!("SELECT FOR {strength}"))?;
        }
        let is_cursor = super::cursors::declaration(statement).is_some();
        let mut prepared = Cow::Borrowed(prepared);
        let mut answered = Vec::new();
        for attempt in 0..PLANNINGS_MAX {
            self.give_way(attempt);
            let mut inputs = self.inputs(parameters.into());
            inputs.answers = self.answers_again(&prepared.questions, parameters, answered)?;
            answered = inputs.answers.clone();
            inputs.observes = self.observes;
            to.expect(&prepared);
            let outcome = if self.block.is_some() {
                self.in_block_to(&prepared.plan, inputs, to, is_cursor)
            } else {
                self.alone_to(&prepared.plan, inputs, to)
            };
            match outcome {
                Err(error) if error.is_stale && !self.is_repeating => {
                    let has_begun = self.block.as_ref().is_some_and(|block| !block.past && block.has_shown);
                    let is_renewed = match has_begun {
                        true => attempt == 0 && self.renew_from_snapshot()?,
                        false => {
                            let catalog = self.catalog()?;
                            self.renew(&catalog)?
                        }
                    };
                    if !is_renewed {
                        return Err(error);
                    }
                    let types: Vec<Option<SqlType>> = prepared.parameters.iter().copied().map(Some).collect();
                    let (_, newer) = self.prepare_in(prepared.zone, statement, &types)?;
                    if described {
                        same_columns(prepared.fields.as_deref(), newer.fields.as_deref())?;
                    }
                    prepared = Cow::Owned(newer);
                }
                Ok(output) => {
                    self.note_drawn(&output.drawn);
                    if let Some(block) = &mut self.block {
                        block.certifies |= locking.is_some();
                    }
                    for (process, signal) in &output.signals {
                        self.database.signal(*process, *signal);
                    }
                    return Ok((prepared, output));
                }
                Err(error) => return Err(taken(error, &prepared.plan).in_schema_of(&prepared.plan)),
            }
        }
        Err(crate::execute::stale())
    }

    /// Runs a query over a snapshot that is opened now.
    pub(super) fn over_snapshot(&self, plan: &Plan, inputs: &Inputs) -> Result<Output, SqlError> {
        Collected::gather(|rows| self.over_snapshot_to(plan, inputs, rows))
    }

    pub(super) fn over_snapshot_to(
        &self,
        plan: &Plan,
        inputs: &Inputs,
        to: &mut dyn Receive,
    ) -> Result<Output, SqlError> {
        let mut sight = Sight::new(self.view_for(plan)?);
        let mut written = Written::new();
        let mut views = self.views(&mut sight, None);
        let patience = Patience::UntilTold(&self.interrupt, self.query_engine.as_deref());
        run(&mut views, &mut written, self, (plan, inputs, patience), None, to).map(|(output, _)| output)
    }

    fn views<'v>(
        &'v self,
        sight: &'v mut Sight,
        own: Option<(&'v dyn View, &'v BTreeMap<u32, Made>)>,
    ) -> Views<'v> {
        let cluster = (self.database.partitions(), &self.storages.definitions);
        Views::new(sight, own, cluster, &self.interrupt)
    }

    /// What a plan sees that is run now.
    fn view_for(&self, plan: &Plan) -> Result<Box<dyn View>, SqlError> {
        match plan.tables.is_empty() && plan.reliances.is_empty() {
            true => Ok(Box::new(NoRows)),
            false => self.database.snapshot().map_err(|error| of_read(error, &self.interrupt)),
        }
    }

    /// Runs steps as one ordered transaction.
    pub(super) fn call(&self, steps: &[Step]) -> Result<Output, SqlError> {
        self.call_all(steps, &[])
    }

    /// The same with some that are undone.
    fn call_all(&self, steps: &[Step], undone: &[Undone]) -> Result<Output, SqlError> {
        self.output_of(self.ordered(steps, undone)?)
    }

    /// What the database answers to them. One that touches more than can be told key by key tells its tables.
    pub(super) fn ordered(&self, steps: &[Step], undone: &[Undone]) -> Result<Outcome, SqlError> {
        self.interrupt.error().filter(|_| self.interrupt.is_timed_out()).map_or(Ok(()), Err)?;
        let answer = self.database.call(encode_steps(steps, undone)?);
        let Err(Error::Exceeds(Limit::Footprint, _)) = answer else { return Ok(answer) };
        let mut steps = steps.to_vec();
        steps.iter_mut().for_each(|step| step.inputs.claims_tables = true);
        Ok(self.database.call(encode_steps(&steps, undone)?))
    }

    /// The output in an answer to a call.
    pub(super) fn output_of(&self, answer: Outcome) -> Result<Output, SqlError> {
        decoded(answer.map_err(|error| of_call(error, &self.interrupt))?)
    }

    /// Runs a plan in the block, over what it sees.
    pub(super) fn in_block(&mut self, plan: &SharedPlan, inputs: Inputs) -> Result<Output, SqlError> {
        Collected::gather(|rows| self.in_block_to(plan, inputs, rows, false))
    }

    fn in_block_to(
        &mut self,
        plan: &SharedPlan,
        mut inputs: Inputs,
        to: &mut dyn Receive,
        is_cursor: bool,
    ) -> Result<Output, SqlError> {
        refuse_restarted(self.block.as_ref(), &plan.sequences)?;
        let Some(mut block) = self.block.take() else { return Err(no_block()) };
        block.has_run = true;
        let plan = block.timed(plan);
        let mut rows = Digesting::new(to, &inputs, !block.read_only || block.certifies);
        let mut numbers = Numbers::of(self);
        let outcome = self.within(&mut block, &plan, &inputs, &mut numbers, &mut rows, is_cursor);
        let (drawn, another) = numbers.finish();
        (inputs.drawn, inputs.observes) = (Some(drawn), false);
        let noted = block.note(&plan, inputs, &outcome, another.as_ref(), rows);
        self.block = Some(block);
        noted.and(outcome.map(|(output, _)| output))
    }

    fn within(
        &self,
        block: &mut Block,
        plan: &SharedPlan,
        inputs: &Inputs,
        numbers: &mut Numbers<'_>,
        to: &mut dyn Receive,
        is_cursor: bool,
    ) -> Result<(Output, Vec<Pending>), SqlError> {
        let settles = matches!(plan.action, Action::Settle { .. });
        if block.read_only && !reads_only(plan) && !settles {
            return Err(only_reads(command(plan)));
        }
        if block.view.is_none() {
            let view = self.database.snapshot().map_err(|error| of_read(error, &self.interrupt))?;
            block.view = Some(Sight::new(view));
        }
        let engine = self.query_engine.as_deref().and_then(|engine| block.confine(engine, plan, is_cursor));
        let Some(sight) = &mut block.view else { return Err(no_block()) };
        let own = block.own_view.as_deref().map(|view| (view, &block.own));
        let mut views = self.views(sight, own);
        let written = &mut block.written;
        if let Action::Settle { constraints } = &plan.action {
            for (step, pending) in &block.pending {
                let Step { plan, inputs, .. } = &block.steps[*step];
                let due =
                    pending.iter().filter(|pending| pending.is_of(plan, constraints)).cloned().collect();
                over(&mut views, written, self, |transaction| {
                    let patience = Patience::UntilTold(&self.interrupt, None);
                    Run::settle(transaction, &self.storages, plan, inputs, patience, due)
                })?;
            }
        }
        let patience =
            Patience::UntilTold(&self.interrupt, engine.as_ref().map(|engine| engine as &dyn QueryEngine));
        run(&mut views, written, self, (plan, inputs, patience), Some(numbers), to)
    }

    /// Commits the block: what it did is done again at its place in the order, if that shows the client the same.
    pub(super) fn commit(&mut self) -> Result<(), SqlError> {
        if let Err(error) = self.drop_at_end() {
            self.roll_back();
            return Err(error);
        }
        let Some(mut block) = self.block.take() else { return Ok(()) };
        let outcome = self.commit_block(&mut block);
        self.give_locks_back();
        outcome
    }

    fn commit_block(&mut self, block: &mut Block) -> Result<(), SqlError> {
        if !block.certifies {
            self.end_local_settings();
            self.cursors.end_block(true);
            // It may have gone back to a savepoint from what it has loaded.
            self.abandon(block);
            return Ok(());
        }
        self.cursors.settle(block);
        if let Some(loading) = &block.loading {
            let (plan, inputs) = (loading.end(&block.catalog).into(), self.inputs(Values::new()));
            block.steps.push(Step { plan, inputs, shown: None });
        }
        let outcome = self
            .call_all(&block.steps, &block.undone)
            .map_err(|error| block.steps.iter().fold(error, |error, step| error.in_schema_of(&step.plan)));
        self.cursors.end_block(outcome.is_ok());
        match &outcome {
            Ok(_) => self.end_local_settings(),
            Err(_) => self.take_back_settings(&block.settings),
        }
        if let Err(error) = &outcome {
            self.abandon(block);
            if error.is_stale {
                // Else the next attempt would fail in the same way.
                let catalog = self.catalog()?;
                self.refresh(&catalog)?;
            }
        } else if block.garbage {
            let catalog = self.catalog()?;
            self.refresh(&catalog)?;
            self.database.sweep();
        }
        outcome.map(drop)
    }

    /// Ends the block without effect.
    pub(super) fn roll_back(&mut self) {
        if let Some(block) = self.block.take() {
            self.cursors.end_block(false);
            self.take_back_settings(&block.settings);
            self.abandon(&block);
            self.give_locks_back();
        }
    }

    /// Has what a block has loaded deleted, which has failed or has gone back from it. If it has not failed after all, as can be when nobody
    /// knows, that fails.
    fn abandon(&mut self, block: &Block) {
        let Some(loading) = &block.loading else { return };
        // The statement has ended.
        self.end_timing();
        let inputs = Inputs { seed: self.database.unique(), ..Inputs::default() };
        // Where the database is out of reach, the rows are deleted when their time is over.
        if self.call(&[Step { plan: loading.end(&Catalog::new()).into(), inputs, shown: None }]).is_ok() {
            self.database.sweep();
        }
    }

    /// Puts rows into storages that only the block knows, at once.
    pub(super) fn load(&mut self, mut plan: Plan, storages: &[(u32, bool)]) -> Result<u64, SqlError> {
        let known = self.block.as_ref().ok_or_else(no_block)?.loading.clone();
        let step = |plan: Plan| [Step { plan: plan.into(), inputs: self.inputs(Values::new()), shown: None }];
        let said = Loading::extended(known.as_ref(), storages, self.database.now());
        if let Some(said) = &said {
            self.call(&step(said.begin(known.as_ref())))?;
        }
        let loading = said.or(known);
        plan.reliances.extend(loading.iter().map(Loading::reliance));
        let load = step(plan);
        if let Some(block) = &mut self.block {
            block.loading = loading;
        }
        let output = self.call(&load)?;
        let view = self.database.snapshot().map_err(|error| of_read(error, &self.interrupt))?;
        if let Some(block) = &mut self.block {
            block.own_view = Some(view);
        }
        Ok(output.written)
    }
}

/// The error of a key that is there already, with what to do where it has a number of a sequence: a statement by itself that fails gives its
/// number back, and would draw the same again.
fn taken(error: SqlError, plan: &Plan) -> SqlError {
    let constraint = error.subject.as_ref().map(|subject| subject.constraint.as_str());
    let is_key = plan.tables.iter().any(|shape| constraint == Some(shape.key_name.as_str()));
    match plan.sequences.first() {
        Some(sequence) if error.state == SqlState::UNIQUE_VIOLATION && is_key => {
            let name = &sequence.name;
            error.with_hint(format!(
                "If the number of sequence \"{name}\" is taken, have it go on after those that are, with setval or RESTART WITH."
            ))
        }
        _ => error,
    }
}

/// What the procedure has answered to a read.
pub(super) fn outcome_of(answer: Result<Bytes, Error>, interrupt: &Interrupt) -> Result<Output, SqlError> {
    decoded(answer.map_err(|error| of_read(error, interrupt))?)
}

fn decoded(answer: Bytes) -> Result<Output, SqlError> {
    postcard::from_bytes(&answer)
        .map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, format!("a malformed result: {error}")))
}

/// Runs a plan over snapshots, with what was written laid over them. What is for the end of the transaction comes with the output: it is
/// checked there, when it has its place in the order.
fn run(
    views: &mut Views<'_>,
    written: &mut Written,
    session: &Session,
    (plan, inputs, patience): (&Plan, &Inputs, Patience<'_>),
    source: Option<&mut dyn Draw>,
    to: &mut dyn Receive,
) -> Result<(Output, Vec<Pending>), SqlError> {
    read_ahead(views, written, session, plan, inputs)?;
    over(views, written, session, |transaction| match source {
        // Taken apart, since what is inside of an option cannot be lent for a shorter time.
        Some(source) => Run::run(transaction, &session.storages, plan, inputs, Some(source), patience, to),
        None => Run::run(transaction, &session.storages, plan, inputs, None, patience, to),
    })
}

/// Asks for the rows that a plan is known to read by their keys, all at once.
fn read_ahead(
    views: &mut Views<'_>,
    written: &Written,
    session: &Session,
    plan: &Plan,
    inputs: &Inputs,
) -> Result<(), SqlError> {
    let mut known = Footprint::default();
    let mut declaration = Declaration::new(&session.schema, session.database.partitions(), &mut known);
    // What else it reads is found out when it runs.
    let _is_all = declare(plan, inputs, &session.storages, &mut declaration);
    let read = known.keys().iter().filter(|entry| entry.access.read);
    let keys = read.map(|entry| Key::from_bytes(known.key(entry)));
    let asked = views.ask_ahead(keys.filter(|key| !written.contains_key(key)));
    asked.map_err(|stop| of_stop(stop, views, session))
}

/// Does something in a transaction over snapshots, with what was written laid over them.
fn over<T>(
    views: &mut Views<'_>,
    written: &mut Written,
    session: &Session,
    act: impl FnOnce(&mut Transaction<'_>) -> Result<T, Failure>,
) -> Result<T, SqlError> {
    let mut scratch = Vec::new();
    let mut overlay = Overlay::new(views, written);
    let mut transaction = Transaction::new(&session.schema, &mut overlay, &mut scratch);
    act(&mut transaction).map_err(|failure| match failure {
        Failure::Sql(error) => error,
        Failure::Stop(stop) => of_stop(stop, views, session),
    })
}

/// Why a run over snapshots has stopped.
fn of_stop(stop: Stop, views: &mut Views<'_>, session: &Session) -> SqlError {
    session.interrupt.error().unwrap_or_else(|| match views.problem.take() {
        Some(error) => of_database(error),
        None => match stop {
            Stop::Invalid(reason) => of_database(Error::Invalid(reason)),
            Stop::Exceeds(limit, reason) => of_database(Error::Exceeds(limit, reason)),
            stop => SqlError::new(SqlState::INTERNAL_ERROR, format!("{stop:?}")),
        },
    })
}

fn no_block() -> SqlError {
    SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress")
}
