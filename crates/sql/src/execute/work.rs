//! How long a run may go on.

use std::cell::Cell;

use super::{Interrupt, Run};
use crate::error::{SqlError, SqlState};
use crate::types::Datum;

/// Most work of a transaction at its place in the order, in rows that are made or tested: some seconds.
pub const WORK_MAX: u64 = 20_000_000;

/// Most work of a run that only looks ahead: what it does not come to is looked up later.
pub const WORK_AHEAD_MAX: u64 = WORK_MAX / 8;

/// Most work of an expression that is looked at before its statement runs.
pub(super) const WORK_BEFORE_MAX: u64 = 16_384;

/// How much work lies between two looks at whether the statement was cancelled.
const WORK_BETWEEN_LOOKS: u64 = 4096;

/// So many bytes of long values that go into a function or come out of one are as much work as a row.
const BYTES_OF_WORK: usize = 256;

/// The work of reading a regular expression that is another one for each row.
pub(super) const WORK_OF_PATTERN: u64 = 256;

/// How long a run may go on.
#[derive(Clone, Copy)]
pub enum Patience<'a> {
    /// In the order, where all others wait for it: as long as some of this work is left. The same on every replica.
    Limited(&'a Cell<u64>),
    /// Over a snapshot: until this is set.
    UntilTold(&'a Interrupt),
}

impl Run<'_, '_> {
    /// Counts a row that is made or tested.
    ///
    /// # Errors
    /// When it is time to end.
    pub(super) fn go_on(&mut self) -> Result<(), SqlError> {
        self.work(1)
    }

    /// Counts work, in rows.
    ///
    /// # Errors
    /// When it is time to end.
    pub(super) fn work(&mut self, work: u64) -> Result<(), SqlError> {
        match self.patience {
            Patience::Limited(left) => take(left, work),
            Patience::UntilTold(told) => match self.until_look.checked_sub(work) {
                Some(left) => {
                    self.until_look = left;
                    Ok(())
                }
                None => {
                    self.until_look = WORK_BETWEEN_LOOKS;
                    told.error().map_or(Ok(()), Err)
                }
            },
        }
    }
}

/// Takes work from what is left.
pub(super) fn take(left: &Cell<u64>, work: u64) -> Result<(), SqlError> {
    match left.get().checked_sub(work) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => {
            left.set(0);
            let message = format!(
                "the transaction tests more than {WORK_MAX} rows, or values as long, in its place in the order"
            );
            let hint = "All others wait for it: add a condition or an index, or read what it needs before by a query of its own.";
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint(hint))
        }
    }
}

/// The work that a function has with these values besides its row: with those that are long.
pub(super) fn work_of<'v>(values: impl IntoIterator<Item = &'v Datum>) -> u64 {
    (values.into_iter().map(length_of).sum::<usize>() / BYTES_OF_WORK) as u64
}

fn length_of(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Array(values) => values.len() * 32,
        // Numbers are multiplied digit by digit.
        Datum::Numeric(number) => number.large_bytes().saturating_mul(number.large_bytes()) / 64,
        _ => 0,
    }
}
