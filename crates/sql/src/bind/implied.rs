//! What follows from columns that are equal.

use super::path::{column_of, is_fixed};
use super::walk;
use crate::plan::Expression;
use crate::types::operators::BinaryOperator;

/// The conditions that follow from others, with which all rows comply: of two columns that are equal, one has the value that the other
/// has.
pub(super) fn implied(conditions: &[Expression]) -> Vec<Expression> {
    let pairs: Vec<(u16, u16)> = conditions.iter().filter_map(equal_columns).collect();
    let mut known: Vec<(u16, Expression)> = conditions.iter().filter_map(value_of_column).collect();
    let given = known.len();
    let mut next = 0;
    while let Some((column, condition)) = known.get(next).cloned() {
        next += 1;
        for (one, other) in &pairs {
            let equal = match column {
                _ if column == *one => *other,
                _ if column == *other => *one,
                _ => continue,
            };
            if !known.iter().any(|(known, _)| *known == equal) {
                let moved = |number| if number == column { equal } else { number };
                known.push((equal, walk::renumbered(condition.clone(), moved)));
            }
        }
    }
    known.drain(given..).map(|(_, condition)| condition).collect()
}

/// The two columns that a condition says to be equal, if they have the same type.
fn equal_columns(condition: &Expression) -> Option<(u16, u16)> {
    let Expression::Binary { operator: BinaryOperator::Equal, resolved, left, right } = condition else {
        return None;
    };
    match (&**left, &**right) {
        (Expression::Column(left), Expression::Column(right)) if resolved.left == resolved.right => {
            Some((*left, *right))
        }
        _ => None,
    }
}

/// The column that a condition says the value of, and the condition.
fn value_of_column(condition: &Expression) -> Option<(u16, Expression)> {
    let Expression::Binary { operator: BinaryOperator::Equal, left, right, .. } = condition else {
        return None;
    };
    let column = if is_fixed(right) {
        column_of(left)?
    } else if is_fixed(left) {
        column_of(right)?
    } else {
        return None;
    };
    Some((column, condition.clone()))
}
