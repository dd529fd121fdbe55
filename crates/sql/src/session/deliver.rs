//! Rows that go to the client as they come, so that nobody keeps all of them.

use std::sync::Arc;

use sqlparser::ast::Statement;

use super::Session;
use super::answer::{Manner, Tag, describe, send_row};
use super::cursors::declaration;
use super::out::Out;
use crate::bind::{Field, Prepared};
use crate::error::{SqlError, SqlState};
use crate::execute::receive::{Collected, Receive, Unseen, pass_on};
use crate::plan::Action;
use crate::protocol::Format;
use crate::types::Datum;

/// Takes the rows of a statement, which may be planned anew before it gives any.
pub(super) trait Deliver: Receive {
    /// Hears of the plan that is about to run.
    fn expect(&mut self, _: &Prepared) {}
}

impl Deliver for Collected {}

impl Deliver for Unseen {}

/// Sends rows as answers to queries have them.
struct Sending<'a, 'o> {
    out: &'a mut Out<'o>,
    manner: Manner<'a>,
    /// Whether the client knows the columns, or has been told them.
    is_described: bool,
    fields: Arc<[Field]>,
    sent: usize,
}

impl Sending<'_, '_> {
    fn describe(&mut self) -> Result<(), SqlError> {
        if !std::mem::replace(&mut self.is_described, true) {
            describe(&self.fields, self.manner.formats, self.out)?;
        }
        Ok(())
    }
}

impl Receive for Sending<'_, '_> {
    fn receive(&mut self, row: &[Datum]) -> Result<(), SqlError> {
        self.describe()?;
        send_row(row, &self.fields, &self.manner, self.out)?;
        self.sent += 1;
        self.out.relieve()
    }
}

impl Deliver for Sending<'_, '_> {
    fn expect(&mut self, prepared: &Prepared) {
        self.fields = prepared.fields.clone().unwrap_or_default();
    }
}

/// Whether a statement gives rows as it runs; others give them, if any, when they are done.
pub(super) fn is_query(statement: &Statement, prepared: &Prepared) -> bool {
    let is_itself = declaration(statement).is_none() && !matches!(statement, Statement::Explain { .. });
    matches!(prepared.plan.action, Action::Query(_)) && is_itself
}

impl Session {
    /// Plans a statement without parameters, runs and answers it.
    pub(super) fn answer_planned(
        &mut self,
        statement: &Statement,
        out: &mut Out<'_>,
    ) -> Result<(), SqlError> {
        self.refuse_if_failed(Some(statement))?;
        let (_, prepared) = self.prepare(statement, &[])?;
        if !prepared.parameters.is_empty() {
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        self.answer_prepared(statement, &prepared, &[], out)
    }

    /// Runs and answers a statement whose columns the client does not know.
    pub(super) fn answer_prepared(
        &mut self,
        statement: &Statement,
        prepared: &Prepared,
        parameters: &[Datum],
        out: &mut Out<'_>,
    ) -> Result<(), SqlError> {
        if is_query(statement, prepared) {
            return self.answer_query(statement, prepared, parameters, (false, &[]), out);
        }
        let answer = self.run_planned(statement, prepared, parameters, false)?;
        self.answer(answer, &[], out)
    }

    /// Runs and answers a [query](is_query) all of whose rows are wanted.
    pub(super) fn answer_query(
        &mut self,
        statement: &Statement,
        prepared: &Prepared,
        parameters: &[Datum],
        (described, formats): (bool, &[Format]),
        out: &mut Out<'_>,
    ) -> Result<(), SqlError> {
        let manner = self.manner(formats);
        let mut to = Sending { out, manner, is_described: described, fields: Arc::default(), sent: 0 };
        let (_, output) = self.execute_to(statement, prepared, parameters, described, &mut to)?;
        pass_on(&output.rows, &mut to)?;
        to.describe()?;
        let sent = to.sent;
        self.tell(out);
        Tag::Counting("SELECT").say(sent, out);
        Ok(())
    }
}
