//! Numbers of columns that are not known yet when they are first referred to.
//!
//! What `GROUPING()` and window functions give stands behind the aggregates of a query, whose number is known when all of it is bound.

use super::walk;
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node};

/// The first number of what `GROUPING()` gives.
const QUESTIONS: u16 = 0x8000;

/// The first number of what window functions give.
const WINDOWS: u16 = 0xC000;

/// Most of either in one query.
const COUNT_MAX: usize = 1664;

/// The provisional number of a `GROUPING()`.
pub(super) fn question(place: usize) -> Result<u16, SqlError> {
    provisional(QUESTIONS, place)
}

/// The provisional number of a call of a window function.
pub(super) fn window(place: usize) -> Result<u16, SqlError> {
    provisional(WINDOWS, place)
}

fn provisional(first: u16, place: usize) -> Result<u16, SqlError> {
    if place < COUNT_MAX {
        return Ok(first + place as u16);
    }
    let message = format!("a query can have at most {COUNT_MAX} window functions");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// What provisional numbers become.
#[derive(Default)]
pub(super) struct Numbering {
    /// The number of the first `GROUPING()`.
    pub questions: u16,
    /// The numbers of the calls of window functions.
    pub windows: Vec<u16>,
}

impl Numbering {
    fn settled(&self, column: u16) -> u16 {
        match column {
            ..QUESTIONS => column,
            QUESTIONS..WINDOWS => self.questions + (column - QUESTIONS),
            WINDOWS.. => self.windows.get(usize::from(column - WINDOWS)).copied().unwrap_or(column),
        }
    }

    /// Gives the columns of an expression their numbers.
    pub(super) fn settle(&self, expression: &mut Expression) {
        walk::renumber(expression, &|column| self.settled(column));
    }

    /// Gives the columns of the expressions of a node that has windows their numbers, but not those of its input.
    pub(super) fn settle_node(&self, node: &mut Node) {
        let Node::Window { partition, order, calls, .. } = node else { return };
        partition.iter_mut().for_each(|expression| self.settle(expression));
        order.iter_mut().for_each(|key| self.settle(&mut key.expression));
        for call in calls {
            walk::walk_window(call, 0, &mut |expression, depth| {
                walk::renumber_one(expression, depth, &|column| self.settled(column));
            });
        }
    }
}
