//! Numbers of sequences: they are drawn outside of the transaction that asks, as in PostgreSQL.

use super::Session;
use super::block::Block;
use crate::error::{SqlError, SqlState};
use crate::execute::{Draw, Inputs, Output};
use crate::plan::{Action, Expression, Node, Plan, SequenceShape};
use crate::procedure::Step;
use crate::types::Datum;

/// Draws numbers of sequences in transactions of their own.
pub(super) struct Numbers<'s> {
    session: &'s Session,
    /// Sequences that begin anew when the block commits, and not before.
    restarted: Vec<u32>,
    drawn: Vec<i64>,
}

impl<'s> Numbers<'s> {
    /// For a statement of a block.
    pub(super) fn of(session: &'s Session, block: &Block) -> Numbers<'s> {
        Numbers { session, restarted: restarted(block), drawn: Vec::new() }
    }

    /// The numbers that were drawn, in their order.
    pub(super) fn drawn(self) -> Vec<i64> {
        self.drawn
    }

    fn refuse_restarted(&self, sequence: &SequenceShape) -> Result<(), SqlError> {
        if !self.restarted.contains(&sequence.storage) {
            return Ok(());
        }
        let what = format!("drawing from sequence \"{}\" in the block that restarts it", sequence.name);
        Err(SqlError::unsupported(what).with_hint("Restart it with setval, or in a transaction before."))
    }
}

/// Where the sequences are that a block has begin anew.
fn restarted(block: &Block) -> Vec<u32> {
    let of_step = |step: &Step| match &step.plan.action {
        Action::Define { sequences, .. } => sequences.iter().map(|(storage, _)| *storage).collect(),
        _ => Vec::new(),
    };
    block.steps.iter().flat_map(of_step).collect()
}

impl Draw for Numbers<'_> {
    fn draw(&mut self, sequence: &SequenceShape) -> Result<i64, SqlError> {
        self.refuse_restarted(sequence)?;
        let drawn = self.session.draw(sequence, 1)?;
        self.drawn.extend(&drawn);
        drawn
            .first()
            .copied()
            .ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a sequence gave no number"))
    }

    fn set(&mut self, sequence: &SequenceShape, value: i64, called: bool) -> Result<(), SqlError> {
        self.refuse_restarted(sequence)?;
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
