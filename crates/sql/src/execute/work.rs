//! How long a run may go on, and how much its values may be.

use std::cell::Cell;
use std::sync::Arc;

use super::columns::QueryEngine;
use super::{Interrupt, Run};
use crate::error::{SqlError, SqlState};
use crate::types::Datum;
use crate::types::functions::{check_length, length, work_of_digits};

/// Most work of a transaction at its place in the order: some seconds. A unit is about what the simplest part of an expression takes, some
/// 25 ns.
pub const WORK_MAX: u64 = 100_000_000;

/// Most work of a run that only looks ahead: what it does not come to is looked up later.
pub const WORK_AHEAD_MAX: u64 = WORK_MAX / 8;

/// Most work of an expression that is looked at before its statement runs.
pub(super) const WORK_BEFORE_MAX: u64 = 100_000;

/// Most work of all expressions of a statement whose keys are told before it runs.
pub(super) const WORK_DECLARED_MAX: u64 = 40 * WORK_BEFORE_MAX;

/// Most work of one step that nobody can interrupt, over a snapshot.
const WORK_AT_ONCE_MAX: u64 = 4 * WORK_MAX;

/// How much work lies between two looks at whether the statement was cancelled.
pub(super) const WORK_BETWEEN_LOOKS: u64 = 32_768;

/// The work of a row that is made or tested, besides its expressions.
const ROW: u64 = 8;

/// So many bytes are copied in a unit, and so many of a value for which the system is asked for memory anew.
const BYTES_COPIED: u64 = 512;
const BYTES_COPIED_OF_LONG: u64 = 32;

/// So many values of a row are copied in a unit, besides their bytes.
const COLUMNS_COPIED: u64 = 8;

/// From which size on values are long in this sense.
const LONG: u64 = 1 << 17;

/// How long a run may go on.
#[derive(Clone, Copy)]
pub enum Patience<'a> {
    /// In the order, where all others wait for it: as long as some of this work is left. The same on every replica.
    Limited(&'a Cell<u64>),
    /// Over a snapshot: until this is set. Parts of queries may run by the engine, if there is one.
    UntilTold(&'a Arc<Interrupt>, Option<&'a dyn QueryEngine>),
}

impl Run<'_, '_> {
    /// Counts a row that is made or tested.
    ///
    /// # Errors
    /// When it is time to end.
    pub(super) fn go_on(&mut self) -> Result<(), SqlError> {
        self.work(ROW)
    }

    /// Counts work, in [units](WORK_MAX).
    ///
    /// # Errors
    /// When it is time to end.
    pub(super) fn work(&mut self, work: u64) -> Result<(), SqlError> {
        match self.patience {
            Patience::Limited(left) => take(left, work),
            Patience::UntilTold(..) if work > WORK_AT_ONCE_MAX => Err(too_much_at_once()),
            Patience::UntilTold(told, _) => match self.until_look.checked_sub(work) {
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
            let message = "the transaction is more work than one may be in its place in the order";
            let hint = "All others wait for it: add a condition or an index, or read what it needs before by a query of its own.";
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint(hint))
        }
    }
}

fn too_much_at_once() -> SqlError {
    let message = "a function or an operator is too much work with values as long as these";
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .with_hint("Nobody could interrupt it: give it shorter ones.")
}

/// The work of copying the values of a row.
#[inline]
pub(super) fn work_of_copies<'v>(values: impl IntoIterator<Item = &'v Datum>) -> u64 {
    let (mut count, mut bytes) = (0, 0);
    for value in values {
        count += 1;
        bytes += work_of_copy(value);
    }
    count / COLUMNS_COPIED + bytes
}

/// The work of copying a value.
#[inline]
pub(super) fn work_of_copy(value: &Datum) -> u64 {
    let length = length(value);
    let bytes = length / if length < LONG { BYTES_COPIED } else { BYTES_COPIED_OF_LONG };
    match value {
        Datum::Array(values) => bytes + values.len() as u64 / elements_copied(values),
        _ => bytes,
    }
}

/// So many elements of an array are copied in a unit: those of some types need memory of their own.
fn elements_copied(values: &[Datum]) -> u64 {
    match values.first() {
        Some(Datum::Text(_) | Datum::Bytes(_) | Datum::Numeric(_) | Datum::Array(_)) => 1,
        _ => 4,
    }
}

/// The work of comparing values, or of making bytes of them that are compared.
pub(super) fn work_of_comparing<'v>(values: impl IntoIterator<Item = &'v Datum>) -> u64 {
    values.into_iter().map(|value| 1 + length(value) / 16 + work_of_digits(value)).sum()
}

/// Most bytes of the values of a row that is made, of a function's arguments, or of an array's elements, besides what each has if it is
/// short.
pub(super) const VALUES_BYTES_MAX: u64 = 1 << 28;

pub(super) fn too_long() -> SqlError {
    let message = format!("values that are computed together have more than {} MiB", VALUES_BYTES_MAX >> 20);
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// A value, unless it is longer than may be: else a few steps that double one would take all memory.
#[inline]
pub(super) fn limited(value: Datum) -> Result<Datum, SqlError> {
    let bytes = match &value {
        Datum::Text(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Array(values) => size_of_val(values.as_slice()),
        _ => 0,
    };
    check_length(bytes)?;
    Ok(value)
}
