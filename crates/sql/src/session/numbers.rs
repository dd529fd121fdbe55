//! Numbers of sequences: they are drawn outside of the transaction that asks, as in PostgreSQL.

use super::Session;
use super::block::Block;
use crate::error::{SqlError, SqlState};
use crate::execute::{Draw, Inputs, Output, none_drawn};
use crate::plan::{Action, Expression, Node, Plan, SequenceShape};
use crate::procedure::Step;
use crate::types::Datum;

/// Draws numbers of sequences in transactions of their own.
pub(super) struct Numbers<'s> {
    session: &'s Session,
    drawn: Vec<i64>,
    /// Whether the last one could not be drawn, so that the statement failed.
    has_failed: bool,
}

impl<'s> Numbers<'s> {
    /// For a statement of a block.
    pub(super) fn of(session: &'s Session) -> Numbers<'s> {
        Numbers { session, drawn: Vec::new(), has_failed: false }
    }

    /// The numbers that were drawn, in their order, and the error by which the statement fails when it runs again with these, if another
    /// one could not be drawn.
    pub(super) fn drawn(self) -> (Vec<i64>, Option<SqlError>) {
        (self.drawn, self.has_failed.then(none_drawn))
    }
}

/// Fails for sequences that the block, if there is one, has begin anew: that takes place when it commits, and not before.
pub(super) fn refuse_restarted(block: Option<&Block>, sequences: &[SequenceShape]) -> Result<(), SqlError> {
    let Some(block) = block.filter(|_| !sequences.is_empty()) else { return Ok(()) };
    let restarted = restarted(block);
    let Some(sequence) = sequences.iter().find(|sequence| restarted.contains(&sequence.storage)) else {
        return Ok(());
    };
    let what = format!("drawing from sequence \"{}\" in the block that restarts it", sequence.name);
    Err(SqlError::unsupported(what).with_hint("Restart it with setval, or in a transaction before."))
}

/// Where the sequences are that a block has begin anew.
fn restarted(block: &Block) -> Vec<u32> {
    let of_step = |step: &Step| match &step.plan.action {
        Action::Define { sequences, .. } => sequences.iter().map(|(storage, _)| *storage).collect(),
        _ => Vec::new(),
    };
    block.steps_in_force().flat_map(of_step).collect()
}

impl Draw for Numbers<'_> {
    fn draw(&mut self, sequence: &SequenceShape) -> Result<i64, SqlError> {
        let drawn = self.session.draw(sequence, 1);
        self.has_failed = drawn.is_err();
        let number = drawn?
            .first()
            .copied()
            .ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a sequence gave no number"))?;
        self.drawn.push(number);
        Ok(number)
    }

    fn set(&mut self, sequence: &SequenceShape, value: i64, called: bool) -> Result<(), SqlError> {
        let constant = |value| Box::new(Expression::Constant(value));
        let (value, called) = (constant(Datum::Int(value)), constant(Datum::Bool(called)));
        let set = Expression::SetValue { sequence: 0, value, called };
        self.session.of_sequence(sequence, vec![vec![set]]).map(drop)
    }
}

impl Session {
    /// Draws the next numbers of a sequence in a transaction of its own.
    pub(super) fn draw(&self, sequence: &SequenceShape, count: usize) -> Result<Vec<i64>, SqlError> {
        let output = self.of_sequence(sequence, vec![vec![Expression::NextValue(0)]; count])?;
        let mut drawn = Vec::with_capacity(count);
        for row in &output.rows {
            match crate::types::row::decode_column(row, 0)? {
                Some(Datum::Int(value)) => drawn.push(value),
                _ => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a sequence gave no number")),
            }
        }
        Ok(drawn)
    }

    /// Runs expressions of a sequence in a transaction of its own.
    fn of_sequence(&self, sequence: &SequenceShape, rows: Vec<Vec<Expression>>) -> Result<Output, SqlError> {
        let action = Action::Query(Node::Values(rows));
        let sequences = vec![sequence.clone()];
        let plan = Plan { sequences, ..Plan::of(action) };
        let inputs = Inputs { seed: self.database.random(), ..Inputs::default() };
        self.call(&[Step { plan: plan.into(), inputs, shown: None }])
    }
}
