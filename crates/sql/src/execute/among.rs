//! Whether a value is among others, or compares with any or all of them.

use super::Failure;
use super::Row;
use crate::error::SqlError;
use crate::plan::Expression;
use crate::types::operators::{self, BinaryOperator, Resolved};
use crate::types::{Datum, SqlType, Zone, json};

/// Most values that are compared one by one, where they could be looked up.
pub(super) const COMPARED_MAX: usize = 8;

/// Values that are the same for all rows of a run, and of the type of what is looked for among them.
#[derive(Clone, Copy)]
pub(super) enum Fixed<'e> {
    /// After `IN`: more than are compared one by one.
    List(&'e [Expression]),
    /// After `= ANY`: as many as there are.
    Array(&'e Expression),
}

impl<'e> Fixed<'e> {
    pub(super) fn list(list: &'e [Expression], resolved: &Resolved) -> Option<Fixed<'e>> {
        let is_fixed = resolved.left == resolved.right
            && list.len() > COMPARED_MAX
            && list.iter().all(|other| matches!(other, Expression::Constant(_) | Expression::Parameter(_)));
        is_fixed.then_some(Fixed::List(list))
    }

    pub(super) fn array(array: &'e Expression, resolved: &Resolved) -> Option<Fixed<'e>> {
        let is_fixed = match array {
            Expression::Constant(_) | Expression::Parameter(_) => true,
            Expression::Subquery { correlated, .. } => !correlated,
            _ => false,
        };
        (is_fixed && resolved.left == resolved.right).then_some(Fixed::Array(array))
    }
}

/// Whether a value is among those of rows, one after the other.
pub(super) fn is_among(operand: Datum, resolved: &Resolved, rows: &[Row]) -> Result<Datum, Failure> {
    let mut found = Membership::new(operand, resolved);
    for other in rows {
        if found.try_next(other.first().unwrap_or(&Datum::Null))? {
            break;
        }
    }
    Ok(found.result())
}

/// Whether a value is among others: null if it is not, and one of them or itself is null.
pub(super) struct Membership<'a> {
    operand: Datum,
    resolved: &'a Resolved,
    result: Datum,
}

impl<'a> Membership<'a> {
    pub(super) fn new(operand: Datum, resolved: &'a Resolved) -> Membership<'a> {
        Membership { operand, resolved, result: Datum::Bool(false) }
    }

    /// Looks at one of the others; whether it is equal.
    pub(super) fn try_next(&mut self, other: &Datum) -> Result<bool, SqlError> {
        match operators::binary(BinaryOperator::Equal, &self.operand, other, self.resolved, Zone::Utc)? {
            Datum::Bool(true) => self.result = Datum::Bool(true),
            Datum::Bool(false) => {}
            _ => self.result = Datum::Null,
        }
        Ok(self.result == Datum::Bool(true))
    }

    pub(super) fn result(self) -> Datum {
        self.result
    }
}

/// What comparing a value with any or all elements of an array gives; `operate` is the operator, of two values of resolved types.
pub(super) fn quantified(
    operator: BinaryOperator,
    resolved: &Resolved,
    left: &Datum,
    array: &Datum,
    all: bool,
    operate: &mut dyn FnMut(&Resolved, &Datum, &Datum) -> Result<Datum, Failure>,
) -> Result<Datum, Failure> {
    let Datum::Array(elements) = array else { return Ok(Datum::Null) };
    let is_order = !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
    if is_order && resolved.left.is_same(SqlType::JSONB) {
        let ordered = |value: &Datum| match value {
            Datum::Text(text) => json::order(text).map(Datum::Bytes),
            other => Ok(other.clone()),
        };
        let elements = elements.iter().map(ordered).collect::<Result<Vec<Datum>, SqlError>>()?;
        let resolved = Resolved { left: SqlType::BYTEA, right: SqlType::BYTEA, ..*resolved };
        return quantified(operator, &resolved, &ordered(left)?, &Datum::Array(elements), all, operate);
    }
    let mut null = false;
    for element in elements {
        match operate(resolved, left, element)? {
            Datum::Bool(value) if value != all => return Ok(Datum::Bool(value)),
            Datum::Bool(_) => {}
            _ => null = true,
        }
    }
    Ok(if null { Datum::Null } else { Datum::Bool(all) })
}
