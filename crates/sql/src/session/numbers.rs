//! Numbers of sequences: they are drawn outside of the transaction that asks, as in PostgreSQL.

use std::collections::{BTreeMap, VecDeque};

use super::Session;
use super::block::Block;
use crate::error::{SqlError, SqlState};
use crate::execute::{Draw, Inputs, RESERVED_MAX, none_drawn};
use crate::plan::{Action, Expression, Node, Plan, Reservation, SequenceShape};
use crate::procedure::Step;
use crate::types::Datum;

/// Draws numbers of sequences in transactions of their own: one at first, and then as many as were drawn before, so that a statement that
/// takes many waits for few transactions. What it does not take is [given back](Numbers::finish).
pub(super) struct Numbers<'s> {
    session: &'s Session,
    drawn: Vec<i64>,
    /// By the storages of their sequences.
    reserves: BTreeMap<u32, (SequenceShape, Reserve)>,
    /// Whether the last one could not be drawn, so that the statement failed.
    has_failed: bool,
}

/// Numbers of a sequence that were drawn.
#[derive(Default)]
struct Reserve {
    /// How many there were until now.
    count: u32,
    /// What stands for those that were drawn last.
    seed: u128,
    /// The last one that was taken.
    last: i64,
    left: VecDeque<i64>,
}

impl<'s> Numbers<'s> {
    /// For a statement of a block.
    pub(super) fn of(session: &'s Session) -> Numbers<'s> {
        Numbers { session, drawn: Vec::new(), reserves: BTreeMap::new(), has_failed: false }
    }

    /// The numbers that were taken, in their order, and the error by which the statement fails when it runs again with these, if another
    /// one could not be drawn. Numbers that are left are drawn again by the next, unless others have drawn since: then nobody does.
    pub(super) fn finish(self) -> (Vec<i64>, Option<SqlError>) {
        let unused = self.reserves.values().filter(|(_, reserve)| !reserve.left.is_empty());
        for (sequence, Reserve { seed, last, .. }) in unused {
            // What cannot be given back is lost, as are the numbers of a statement that fails.
            drop(self.session.reserve(sequence, Reservation::GiveBack { last: *last, seed: *seed }));
        }
        (self.drawn, self.has_failed.then(none_drawn))
    }

    fn next(&mut self, sequence: &SequenceShape) -> Result<i64, SqlError> {
        let (_, reserve) =
            self.reserves.entry(sequence.storage).or_insert_with(|| (sequence.clone(), Reserve::default()));
        if reserve.left.is_empty() {
            let most = reserve.count.clamp(1, RESERVED_MAX);
            let (numbers, seed) = self.session.reserve(sequence, Reservation::Draw(most))?;
            (reserve.left, reserve.seed) = (numbers.into(), seed);
            reserve.count = reserve.count.saturating_add(reserve.left.len() as u32);
        }
        reserve.last = reserve.left.pop_front().ok_or_else(no_number)?;
        Ok(reserve.last)
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
        let drawn = self.next(sequence);
        self.has_failed = drawn.is_err();
        let number = drawn?;
        self.drawn.push(number);
        Ok(number)
    }

    fn set(&mut self, sequence: &SequenceShape, value: i64, called: bool) -> Result<(), SqlError> {
        let constant = |value| Box::new(Expression::Constant(value));
        let (value, called) = (constant(Datum::Int(value)), constant(Datum::Bool(called)));
        let set = Expression::SetValue { sequence: 0, value, called };
        self.session.of_sequence(
            sequence,
            Action::Query(Node::Values(vec![vec![set]])),
            self.session.database.unique(),
        )?;
        // It goes on from there.
        self.reserves.remove(&sequence.storage);
        Ok(())
    }
}

fn no_number() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a sequence gave no number")
}

impl Session {
    /// Draws the next numbers of a sequence in a transaction of its own.
    pub(super) fn draw(&self, sequence: &SequenceShape, count: usize) -> Result<Vec<i64>, SqlError> {
        let rows = vec![vec![Expression::NextValue(0)]; count];
        self.of_sequence(sequence, Action::Query(Node::Values(rows)), self.database.unique())
    }

    /// Draws numbers of a sequence, or gives them back. Tells what stands for those that are drawn.
    fn reserve(
        &self,
        sequence: &SequenceShape,
        reservation: Reservation,
    ) -> Result<(Vec<i64>, u128), SqlError> {
        let seed = self.database.unique();
        Ok((self.of_sequence(sequence, Action::Reserve(reservation), seed)?, seed))
    }

    /// Does something with a sequence in a transaction of its own; the numbers that it gives.
    fn of_sequence(
        &self,
        sequence: &SequenceShape,
        action: Action,
        seed: u128,
    ) -> Result<Vec<i64>, SqlError> {
        let plan = Plan { sequences: vec![sequence.clone()], ..Plan::of(action) };
        let inputs = Inputs { seed, ..Inputs::default() };
        let output = self.call(&[Step { plan: plan.into(), inputs, shown: None }])?;
        let number = |row: &Vec<u8>| match crate::types::row::decode_column(row, 0)? {
            Some(Datum::Int(value)) => Ok(value),
            _ => Err(no_number()),
        };
        output.rows.iter().map(number).collect()
    }
}
