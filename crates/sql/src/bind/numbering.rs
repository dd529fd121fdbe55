//! How many columns the rows within a query can have, and the numbers of those that are not known yet when they are first referred to.
//!
//! What `GROUPING()` and window functions give stands behind the aggregates of a query, whose number is known when all of it is bound.

use super::walk;
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node};

/// The first number of what `GROUPING()` gives.
const QUESTIONS: u16 = 0x8000;

/// The first number of what window functions give.
const WINDOWS: u16 = 0xC000;

/// Most columns of a list, groups, aggregates or window functions of one query: as many as PostgreSQL's lists can have.
const COUNT_MAX: usize = 1664;

/// Most relations of one `FROM`: the joins of them are a tree as deep.
const RELATIONS_MAX: usize = 200;

/// Most columns of the relations of one `FROM`: all of them can be groups, before others and aggregates, and still have numbers below those
/// that are provisional.
const COLUMNS_MAX: usize = QUESTIONS as usize - 3 * COUNT_MAX;

/// Fails if something of a query has too many parts.
pub(super) fn check_count(count: usize, whole: &str, parts: &str) -> Result<(), SqlError> {
    check(count, COUNT_MAX, whole, parts)
}

/// Fails if there are too many relations in a `FROM`, or if they have too many columns.
pub(super) fn check_relations(count: usize, width: usize) -> Result<(), SqlError> {
    if count > RELATIONS_MAX {
        let message = format!("more than {RELATIONS_MAX} relations in FROM");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    check(width, COLUMNS_MAX, "the relations of a query", "columns")
}

fn check(count: usize, most: usize, whole: &str, parts: &str) -> Result<(), SqlError> {
    if count <= most {
        return Ok(());
    }
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, format!("{whole} can have at most {most} {parts}")))
}

/// The provisional number of a `GROUPING()`.
pub(super) fn question(place: usize) -> Result<u16, SqlError> {
    provisional(QUESTIONS, place)
}

/// The provisional number of a call of a window function.
pub(super) fn window(place: usize) -> Result<u16, SqlError> {
    provisional(WINDOWS, place)
}

fn provisional(first: u16, place: usize) -> Result<u16, SqlError> {
    check_count(place + 1, "a query", "window functions")?;
    Ok(first + place as u16)
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
