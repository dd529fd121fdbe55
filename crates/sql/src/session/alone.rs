//! Statements by themselves: each is a transaction of its own.

use ordain_db::error::{Error, Limit};

use super::Session;
use super::database::{of_call, of_database};
use super::transaction::{command, outcome_of, reads_only};
use crate::error::{SqlError, SqlState};
use crate::execute::receive::{Collected, Receive};
use crate::execute::{Inputs, Output};
use crate::plan::{Action, CallForm, Expression, Plan, SharedPlan};
use crate::procedure::{Step, encode_steps};

/// Most times that a statement which runs as a block of its own begins anew, since what it has read has changed meanwhile.
const ATTEMPTS_MAX: usize = 20;

/// Whether a plan that writes gives rows: what it has written, or a query that draws from sequences.
fn tells_rows(plan: &Plan) -> bool {
    match &plan.action {
        Action::Insert { returning, .. }
        | Action::Update { returning, .. }
        | Action::Delete { returning, .. } => returning.is_some(),
        Action::Query(_) => true,
        _ => false,
    }
}

impl Session {
    /// Runs a plan as a transaction of its own.
    pub(super) fn alone(&mut self, plan: &SharedPlan, inputs: Inputs) -> Result<Output, SqlError> {
        Collected::gather(|rows| self.alone_to(plan, inputs, rows))
    }

    pub(super) fn alone_to(
        &mut self,
        plan: &SharedPlan,
        inputs: Inputs,
        to: &mut dyn Receive,
    ) -> Result<Output, SqlError> {
        if let Action::Call { routine, arguments, form } = &plan.action {
            return self.call_routine(routine, arguments, *form, &inputs);
        }
        if reads_only(plan) && !matches!(&plan.action, Action::Query(node) if node.is_short()) {
            return self.over_snapshot_to(plan, &inputs, to);
        }
        let step = [Step { plan: plan.clone(), inputs, shown: None }];
        if !reads_only(plan) {
            self.refuse_change(command(plan))?;
            return match self.ordered(&step, &[])? {
                // Rows that are too many for the answer of an ordered transaction are not for one of a block.
                Err(Error::Exceeds(Limit::Result, _)) if tells_rows(plan) => {
                    self.as_block(plan, &step[0].inputs)
                }
                answer => self.output_of(answer),
            };
        }
        match outcome_of(self.database.read(encode_steps(&step, &[])?), &self.interrupt) {
            // A result that is too long for one answer is not for a snapshot.
            Err(error) if error.state == SqlState::PROGRAM_LIMIT_EXCEEDED => {
                self.over_snapshot_to(plan, &step[0].inputs, to)
            }
            outcome => outcome,
        }
    }

    /// Runs a plan as a block of its own: over a snapshot, and then certified, as often as it takes for nothing to have changed between.
    fn as_block(&mut self, plan: &SharedPlan, inputs: &Inputs) -> Result<Output, SqlError> {
        for attempt in 0..ATTEMPTS_MAX {
            self.give_way(attempt);
            self.begin_implicitly()?;
            let output = match self.in_block(plan, inputs.clone()) {
                Ok(output) => output,
                Err(error) => {
                    self.roll_back();
                    return Err(error);
                }
            };
            match self.commit() {
                Err(error) if error.state == SqlState::SERIALIZATION_FAILURE && !error.is_stale => {}
                outcome => return outcome.map(|()| output),
            }
        }
        let hint = "Run it again, or return less than 1 MiB of rows: then it has its turn and does not fail.";
        Err(of_database(Error::Contended).with_hint(hint))
    }

    /// Calls a procedure of the database: it is a transaction of its own.
    fn call_routine(
        &self,
        name: &str,
        arguments: &[Expression],
        form: CallForm,
        inputs: &Inputs,
    ) -> Result<Output, SqlError> {
        let routines = &self.surroundings.routines;
        let (routine, arguments) = routines.call(name, arguments, inputs)?;
        let answer = self.database.call_routine(routine.procedure, arguments);
        let result = answer.map_err(|error| match error {
            Error::Aborted(reason) => SqlError::new(SqlState::RAISE_EXCEPTION, reason),
            other => of_call(other, &self.interrupt),
        })?;
        routines.output(&routine, &result, form)
    }
}
