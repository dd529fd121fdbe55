//! Which indexes a query may read: one that has some rows only where what is asked for implies that the rows are among them.
//!
//! Only what is seen without knowing values is taken for implied: the same condition in some form, alternatives that each imply it, and that
//! something is not null which a comparison that holds could not have seen null.

use super::path::mirrored;
use crate::plan::{Expression, IndexShape, IndexState, is_same};
use crate::types::functions;
use crate::types::operators::BinaryOperator;
use crate::types::{Datum, SqlType};

/// Whether an index has all rows that fulfil some conditions.
pub(super) fn has_all(index: &IndexShape, conditions: &[&Expression]) -> bool {
    let is_implied = |predicate: &Expression| implies(conditions, predicate);
    index.state == IndexState::Ready && !index.covering && index.predicate.as_ref().is_none_or(is_implied)
}

/// Whether a condition holds wherever several others do.
pub(super) fn implies(conditions: &[&Expression], wanted: &Expression) -> bool {
    match wanted {
        Expression::And(all) => all.iter().all(|one| implies(conditions, one)),
        one => conditions.iter().any(|condition| implies_one(condition, one)),
    }
}

/// Whether a condition holds wherever another does.
fn implies_one(condition: &Expression, wanted: &Expression) -> bool {
    if is_same(&canonical(condition, false), &canonical(wanted, false)) {
        return true;
    }
    match (condition, wanted) {
        (Expression::And(all), _) if all.iter().any(|one| implies_one(one, wanted)) => true,
        (Expression::Or(any), _) if any.iter().all(|one| implies_one(one, wanted)) => true,
        (_, Expression::Or(any)) => any.iter().any(|one| implies(&[condition], one)),
        (_, Expression::IsNull { operand, negated: true }) => fails_with(condition, operand),
        _ => false,
    }
}

/// A condition in the form that all have which hold for the same rows, as far as forms are known; if it `keeps_null`, that all have which are
/// also null for the same ones: what is not true within a `NOT` must be false there.
fn canonical(condition: &Expression, keeps_null: bool) -> Expression {
    let holds = |operand: &Expression, value: bool| match value {
        true => canonical(operand, keeps_null),
        false => Expression::Not(Box::new(canonical(operand, true))),
    };
    match condition {
        Expression::IsBoolean { operand, value, negated: false } if !keeps_null => holds(operand, *value),
        Expression::Not(operand) => holds(operand, false),
        Expression::Binary { operator: BinaryOperator::Equal, left, right, .. }
            if let Expression::Constant(Datum::Bool(value)) = **right =>
        {
            holds(left, value)
        }
        Expression::Binary { operator: BinaryOperator::Equal, left, right, .. }
            if let Expression::Constant(Datum::Bool(value)) = **left =>
        {
            holds(right, value)
        }
        Expression::Binary { operator, resolved, left, right }
            if let Some(operator) = mirrored(*operator).filter(|_| !left.reads_row()) =>
        {
            let resolved =
                crate::types::operators::Resolved { left: resolved.right, right: resolved.left, ..*resolved };
            Expression::Binary { operator, resolved, left: right.clone(), right: left.clone() }
        }
        Expression::InList { operand, list, resolved } if let [only] = list.as_slice() => {
            let (operator, left, right) = (BinaryOperator::Equal, operand.clone(), Box::new(only.clone()));
            Expression::Binary { operator, resolved: *resolved, left, right }
        }
        other => other.clone(),
    }
}

/// Whether a condition does not hold wherever a value is null.
fn fails_with(condition: &Expression, value: &Expression) -> bool {
    match condition {
        Expression::InList { operand, .. }
        | Expression::IsBoolean { operand, negated: false, .. }
        | Expression::Quantified { left: operand, all: false, .. } => is_null_with(operand, value),
        other => is_null_with(other, value),
    }
}

/// Whether an expression is null wherever a value is null that it is made of.
fn is_null_with(expression: &Expression, value: &Expression) -> bool {
    if is_same(expression, value) {
        return true;
    }
    match expression {
        Expression::Binary { operator, resolved, left, right } => {
            is_strict(*operator, resolved.result) && (is_null_with(left, value) || is_null_with(right, value))
        }
        Expression::Unary { operand, .. }
        | Expression::Not(operand)
        | Expression::Cast { operand, .. }
        | Expression::Coerce { operand, .. } => is_null_with(operand, value),
        Expression::Call { function, arguments } => {
            functions::is_strict(*function) && arguments.iter().any(|one| is_null_with(one, value))
        }
        _ => false,
    }
}

/// Whether an operator gives null wherever an operand is null.
fn is_strict(operator: BinaryOperator, result: SqlType) -> bool {
    match operator {
        BinaryOperator::IsDistinctFrom | BinaryOperator::IsNotDistinctFrom => false,
        // What is true or false may decide alone.
        BinaryOperator::And | BinaryOperator::Or => false,
        // An array takes a null for an element.
        BinaryOperator::Concat => !result.array,
        _ => true,
    }
}
