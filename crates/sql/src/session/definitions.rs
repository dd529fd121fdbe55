//! How definitions reach the database, and what is done after them in bounded steps.

use std::ops::ControlFlow;
use std::sync::Arc;

use ordain_db::data::Direction;
use sqlparser::ast::{AlterTableOperation, ColumnOption, ObjectName, Statement, TableConstraint};

use super::Session;
use super::block::{Block, Made};
use super::database::of_read;
use super::transaction::PLANNINGS_MAX;
use crate::bind::{self, Build, Defined, RowCheck, Surroundings, Timing, Validation};
use crate::catalog::{Catalog, Definition, storage_numbers};
use crate::error::{SqlError, SqlState};
use crate::execute::receive::OutputDigest;
use crate::execute::{Inputs, Interrupt, Output};
use crate::plan::{Action, Plan, SharedPlan};
use crate::procedure::{Shown, Step};
use crate::types::Values;

/// The longest pause before a definition is tried once more, and how often it grows by as much.
const PAUSE_MICROSECONDS: u128 = 500;
const PAUSES_GROWING: usize = 40;

/// Rows of a table that are put into a new index in one transaction.
const FILL_ROWS: u32 = 500;

impl Session {
    /// Runs a definition of the client.
    pub(super) fn define(&mut self, statement: &Statement) -> Result<(Defined, u64), SqlError> {
        let told = Arc::clone(&self.interrupt);
        self.define_until(statement, Some(&told))
    }

    /// Runs a definition, which may be told to end while it is planned.
    pub(super) fn define_until(
        &mut self,
        statement: &Statement,
        told: Option<&Interrupt>,
    ) -> Result<(Defined, u64), SqlError> {
        self.surroundings.now = self.inputs(Values::new()).now;
        if self.block.is_some() {
            return self.define_in_block(statement, told);
        }
        self.refuse_change("a definition")?;
        let is_whole = is_to_be_whole(statement);
        let mut known = None;
        for attempt in 0..PLANNINGS_MAX {
            self.give_way(attempt);
            let catalog = self.catalog()?;
            let plan = |timing, session: &Session| {
                let random = session.database.unique();
                bind::define(statement, &catalog, &session.surroundings, timing, random, told)
            };
            let planned = match is_whole {
                true => self.planned_at_once(plan),
                false => plan(Timing::Afterwards, self),
            };
            if attempt == 0 && planned.as_ref().is_ok_and(|defined| defined.plan.is_none()) {
                // There is nothing to do by definitions that may be a second old.
                self.refresh(&catalog)?;
                continue;
            }
            let outcome = planned.and_then(|defined| {
                self.carry_out(&catalog, &defined, is_whole).map(|written| (defined, written))
            });
            match outcome {
                Ok((defined, written)) => {
                    self.refresh(&catalog)?;
                    if !is_whole {
                        self.finish(&defined)?;
                    }
                    self.database.sweep();
                    return Ok((defined, written));
                }
                Err(error) if is_whole && error.state == SqlState::PROGRAM_LIMIT_EXCEEDED => {
                    let hint = "Make each change, and add each constraint, by a statement of its own.";
                    return Err(error.with_hint(hint));
                }
                // What fails with new definitions too is wrong with the statement.
                Err(error) if !error.is_stale && known.as_ref() == Some(&error) => return Err(error),
                Err(error) => {
                    self.refresh(&catalog)?;
                    if is_whole && error.state == SqlState::SERIALIZATION_FAILURE && !error.is_stale {
                        self.refuse_by_block(statement, told)?;
                    }
                    known = Some(error);
                }
            }
        }
        Err(known.unwrap_or_else(crate::execute::stale))
    }

    /// What is left to be done when a definition is there.
    fn finish(&mut self, defined: &Defined) -> Result<(), SqlError> {
        defined.builds.iter().try_for_each(|build| self.build(build))?;
        defined.validations.iter().try_for_each(|validation| self.validate(validation))
    }

    /// Pauses before something is tried once more, for a time that is unlike that of others: definitions take numbers one after the
    /// other, and those who begin together would meet again.
    pub(super) fn give_way(&self, attempt: usize) {
        if attempt > 0 {
            let most = PAUSE_MICROSECONDS * attempt.min(PAUSES_GROWING) as u128;
            self.database.pause((self.database.unique() % most) as u64);
        }
    }

    /// Carries out a definition; how many rows it wrote that the client is told of. If it `is_whole`, new foreign keys are checked with it.
    fn carry_out(&mut self, catalog: &Catalog, defined: &Defined, is_whole: bool) -> Result<u64, SqlError> {
        let Some(plan) = &defined.plan else { return Ok(0) };
        let mut steps = Vec::new();
        let none = |plan, inputs: Inputs| {
            let shown = Some(Shown::Output(OutputDigest::new(&inputs, 0).value()));
            Step { plan, inputs, shown }
        };
        for verification in &defined.verifications {
            if !self.alone(&verification.plan, self.inputs(Values::new()))?.rows.is_empty() {
                return Err(verification.error.clone());
            }
            steps.push(none(verification.plan.clone(), self.inputs(Values::new())));
        }
        for plan in defined.rewrites.iter().chain([plan]).chain(&defined.rows) {
            let inputs = self.inputs(Values::new());
            steps.push(Step { plan: plan.clone(), inputs, shown: None });
        }
        if is_whole {
            let changed = changed_by(catalog, plan)?;
            for validation in &defined.validations {
                let plan = bind::validation(&changed, &self.surroundings, validation)?.plan;
                steps.push(none(plan, self.inputs(Values::new())));
            }
        }
        let writes_rows = !defined.rewrites.is_empty() || defined.rows.is_some();
        match self.call(&steps) {
            Err(error) if writes_rows && error.state == SqlState::PROGRAM_LIMIT_EXCEEDED => {
                Err(too_many(&error))
            }
            Err(error) if !defined.rewrites.is_empty() => Err(of_rewrite(error)),
            outcome => Ok(outcome?.written),
        }
    }

    /// Fails as a definition fails in a block, which tells what rows are wrong: at its place in the order it is only known that some are.
    fn refuse_by_block(&mut self, statement: &Statement, told: Option<&Interrupt>) -> Result<(), SqlError> {
        self.block = Some(self.new_block()?);
        let outcome = self.define_in_block(statement, told);
        self.roll_back();
        match outcome {
            Err(error) if error.state != SqlState::SERIALIZATION_FAILURE => Err(error),
            _ => Ok(()),
        }
    }

    /// Plans what is done within one transaction.
    fn planned_at_once(
        &self,
        plan: impl Fn(Timing, &Session) -> Result<Defined, SqlError>,
    ) -> Result<Defined, SqlError> {
        let defined = plan(Timing::AtOnce(Vec::new()), self)?;
        if defined.fresh.is_empty() {
            return Ok(defined);
        }
        // Rows may be loaded into them before a block commits, so no other block may get the same, be it that this one fails.
        let drawn = self.draw(&storage_numbers(), defined.fresh.len())?;
        let storages = drawn.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
        plan(Timing::AtOnce(storages), self)
    }

    fn define_in_block(
        &mut self,
        statement: &Statement,
        told: Option<&Interrupt>,
    ) -> Result<(Defined, u64), SqlError> {
        if self.block.as_ref().is_some_and(|block| !block.has_shown) {
            let catalog = self.catalog()?;
            self.renew(&catalog)?;
        }
        self.define_so(|catalog, surroundings, timing, random| {
            bind::define(statement, catalog, surroundings, timing, random, told)
        })
    }

    /// Carries out in the block what is planned so.
    pub(super) fn define_so(
        &mut self,
        plan: impl Fn(&Catalog, &Surroundings, Timing, u128) -> Result<Defined, SqlError>,
    ) -> Result<(Defined, u64), SqlError> {
        let catalog = self.catalog()?;
        let defined = self.planned_at_once(|timing, session| {
            plan(&catalog, &session.surroundings, timing, session.database.unique())
        })?;
        for verification in &defined.verifications {
            if !self.in_block(&verification.plan, self.inputs(Values::new()))?.rows.is_empty() {
                return Err(verification.error.clone());
            }
        }
        let Some(plan) = &defined.plan else { return Ok((defined, 0)) };
        if !defined.rewrites.is_empty() && self.block.as_ref().is_some_and(|block| !block.pending.is_empty())
        {
            let message = "rows of a table cannot be written anew while foreign keys are still to be checked";
            return Err(SqlError::new(SqlState::OBJECT_IN_USE, message)
                .with_hint("Commit first, or change the table before its rows."));
        }
        let steps = self.block.as_ref().map_or(0, Block::steps);
        for rewrite in &defined.rewrites {
            self.in_block(rewrite, self.inputs(Values::new())).map_err(of_rewrite)?;
        }
        self.in_block(plan, self.inputs(Values::new()))?;
        let written = match &defined.rows {
            Some(rows) => self.in_block(rows, self.inputs(Values::new()))?.written,
            None => 0,
        };
        let changed = changed_by(&catalog, plan)?;
        if let Some(block) = &mut self.block {
            block.catalog = Arc::new(changed);
            block.own.extend(defined.fresh.iter().map(|storage| (*storage, Made { steps, loaded: steps })));
            block.garbage |= changes_any(plan);
        }
        for validation in &defined.validations {
            let catalog = self.catalog()?;
            self.check_in_block(&bind::validation(&catalog, &self.surroundings, validation)?)?;
        }
        Ok((defined, written))
    }

    /// Checks that rows from before a foreign key refer to something. It is in force already, so what was written since need not be
    /// looked at, and a snapshot is enough.
    fn validate(&mut self, validation: &Validation) -> Result<(), SqlError> {
        for attempt in 0..PLANNINGS_MAX {
            self.give_way(attempt);
            let zone = self.surroundings.zone;
            let catalog = self.catalog()?;
            let check = bind::validation(&catalog, &self.surroundings, validation)?;
            let error = match self.over_snapshot(&check.plan, &self.inputs(Values::new())) {
                Err(error) if error.is_stale => {
                    self.refresh(&catalog)?;
                    continue;
                }
                Err(error) => Some(error),
                Ok(output) => output.rows.first().map(|row| check.error(row, zone)).transpose()?,
            };
            if error.is_none() || validation.is_new {
                let holds = error.is_none();
                self.retried(|session, catalog| {
                    bind::validated(catalog, &session.surroundings, validation, holds)
                })?;
            }
            return error.map_or(Ok(()), Err);
        }
        Err(crate::execute::stale())
    }

    /// Checks the rows of a table that the block sees, and again when it commits.
    pub(super) fn check_in_block(&mut self, check: &RowCheck) -> Result<(), SqlError> {
        let zone = self.surroundings.zone;
        match self.in_block(&check.plan, self.inputs(Values::new()))?.rows.first() {
            Some(row) => Err(check.error(row, zone)?),
            None => Ok(()),
        }
    }

    /// Fills an index in bounded steps, then has it used. If it cannot be filled it is taken back.
    fn build(&mut self, build: &Build) -> Result<(), SqlError> {
        let filled = self.fill(build);
        match filled {
            Ok(()) => self
                .retried(|session, catalog| bind::complete(catalog, &session.surroundings, build))
                .map(drop),
            Err(error) => {
                // That is not to be ended, too.
                self.end_timing();
                self.retried(|session, catalog| bind::take_back(catalog, &session.surroundings, build))?;
                self.database.sweep();
                Err(error)
            }
        }
    }

    /// Fills the indexes of a table, or one index, that were left when the process ended that filled them. One that cannot be filled stays
    /// as it is. That another session is about the same does no harm: an entry that is there is not entered again.
    pub(super) fn reindex(&mut self, name: &ObjectName, is_table: bool) -> Result<(), SqlError> {
        let catalog = self.catalog()?;
        let builds = bind::unfinished(name, is_table, &catalog, &self.surroundings)?;
        if builds.is_empty() {
            return Ok(());
        }
        if self.block.is_some() {
            let message = "REINDEX of an index that is not complete cannot run inside a transaction block";
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        self.refuse_change("REINDEX")?;
        for build in &builds {
            self.fill(build)?;
            self.retried(|session, catalog| bind::complete(catalog, &session.surroundings, build))?;
        }
        self.database.sweep();
        Ok(())
    }

    fn fill(&mut self, build: &Build) -> Result<(), SqlError> {
        let mut after = None;
        loop {
            self.interrupt.check()?;
            let output = self.retried(|session, catalog| {
                bind::fill(catalog, &session.surroundings, build, after.clone(), FILL_ROWS)
            })?;
            match output.rows.into_iter().next() {
                Some(last) => after = Some(last),
                None => return self.check_filled(build),
            }
        }
    }

    /// Fails if an index that holds rows, as a new primary key does, does not hold all of them: rows that are equal in all columns have one
    /// entry, and no entry tells which row it is of.
    fn check_filled(&mut self, build: &Build) -> Result<(), SqlError> {
        let catalog = self.catalog()?;
        let Some(Definition::Table(table)) = catalog.get(&build.schema, &build.table) else { return Ok(()) };
        let index = table.indexes.iter().find(|index| index.name == build.index && index.covering);
        let Some(index) = index else { return Ok(()) };
        let view = self.database.snapshot().map_err(|error| of_read(error, &self.interrupt))?;
        let mut counts = [0_u64; 2];
        for (count, storage) in counts.iter_mut().zip([table.storage, index.storage]) {
            let range = self.storages.all(table.replicated, storage)?;
            let counted = view.scan(&range, Direction::Ascending, usize::MAX, &mut |_, _| {
                *count += 1;
                if self.interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            counted.map_err(|error| of_read(error, &self.interrupt))?;
            self.interrupt.check()?;
        }
        if counts[0] == counts[1] {
            return Ok(());
        }
        let message = format!("could not create unique index \"{}\"", build.index);
        Err(SqlError::new(SqlState::UNIQUE_VIOLATION, message)
            .with_detail("Some rows are equal in all columns.")
            .of_constraint(&build.table, &build.index))
    }

    /// Plans and runs something, and again as long as definitions change meanwhile.
    fn retried(
        &mut self,
        plan: impl Fn(&Session, &Catalog) -> Result<SharedPlan, SqlError>,
    ) -> Result<Output, SqlError> {
        let mut known = None;
        for attempt in 0..PLANNINGS_MAX {
            self.give_way(attempt);
            let catalog = self.catalog()?;
            let made = plan(self, &catalog);
            let inputs = self.inputs(Values::new());
            let outcome = made.and_then(|plan| self.call(&[Step { plan, inputs, shown: None }]));
            match outcome {
                Err(error) if !error.is_stale && known.as_ref() == Some(&error) => return Err(error),
                Err(error) => {
                    self.refresh(&catalog)?;
                    known = Some(error);
                }
                outcome => {
                    self.refresh(&catalog)?;
                    return outcome;
                }
            }
        }
        Err(known.unwrap_or_else(crate::execute::stale))
    }
}

/// The definitions that there are when a plan has run that changes some.
fn changed_by(catalog: &Catalog, plan: &Plan) -> Result<Catalog, SqlError> {
    let mut changed = Catalog::clone(catalog);
    let Action::Define { changes, .. } = &plan.action else { return Ok(changed) };
    for change in changes {
        match &change.definition {
            Some(definition) => changed.insert(&change.schema, &change.name, definition)?,
            None => changed.remove(&change.schema, &change.name),
        }
    }
    Ok(changed)
}

/// Whether a plan changes definitions, and not only relies on some.
fn changes_any(plan: &Plan) -> bool {
    matches!(&plan.action, Action::Define { changes, .. } if !changes.is_empty())
}

/// Whether a definition must have no effect if rows from before it do not fulfil what it asks for. A foreign key alone can be taken
/// back, and so can the index of a constraint; what else the statement did, others may have seen.
fn is_to_be_whole(statement: &Statement) -> bool {
    let Statement::AlterTable(alter) = statement else { return false };
    match alter.operations.as_slice() {
        [AlterTableOperation::AddConstraint { .. } | AlterTableOperation::ValidateConstraint { .. }] => false,
        operations => operations.iter().any(asks_of_all_rows),
    }
}

/// Whether an action builds an index, or has a foreign key checked.
fn asks_of_all_rows(operation: &AlterTableOperation) -> bool {
    match operation {
        AlterTableOperation::AddConstraint { constraint, .. } => {
            matches!(constraint, TableConstraint::Unique(_) | TableConstraint::ForeignKey(_))
        }
        AlterTableOperation::AddColumn { column_def, .. } => {
            let mut options = column_def.options.iter().map(|option| &option.option);
            options.any(|option| matches!(option, ColumnOption::Unique(_) | ColumnOption::ForeignKey(_)))
        }
        AlterTableOperation::ValidateConstraint { .. } => true,
        _ => false,
    }
}

/// The error of a definition that writes rows anew, which is about rows that are there already.
fn of_rewrite(error: SqlError) -> SqlError {
    let Some(subject) = &error.subject else { return error };
    let table = &subject.table;
    let message = match error.state {
        SqlState::CHECK_VIOLATION => {
            format!(
                "check constraint \"{}\" of relation \"{table}\" is violated by some row",
                subject.constraint
            )
        }
        SqlState::NOT_NULL_VIOLATION => {
            format!("column \"{}\" of relation \"{table}\" contains null values", subject.column)
        }
        SqlState::UNIQUE_VIOLATION => format!("could not create unique index \"{}\"", subject.constraint),
        _ => return error,
    };
    let detail = error.detail.filter(|_| error.state == SqlState::UNIQUE_VIOLATION);
    let detail = detail.map(|detail| detail.replace("already exists", "is duplicated"));
    SqlError { message, detail, ..error }
}

/// The error of a definition that writes more rows than one transaction can.
fn too_many(error: &SqlError) -> SqlError {
    SqlError::new(error.state, "there are too many rows for one transaction")
        .with_detail(error.message.clone())
        .with_hint("Create a table or add a column as it is to be, and fill it in several transactions.")
}
