//! What follows from constants alone is computed once, and not for each row.

use super::walk;
use crate::execute::{Inputs, evaluate};
use crate::plan::{Expression, Node};
use crate::types::{BaseType, SqlType};

/// Computes the parts of a query's expressions that are of constants. What fails stays: perhaps it is never come to.
pub(super) fn compute(query: &mut Node) {
    walk::walk_node(query, 0, &mut |expression, _| {
        if !matches!(expression, Expression::Constant(_))
            && is_constant(expression)
            && let Some(value) = evaluate(expression, &Inputs::default())
        {
            *expression = Expression::Constant(value);
        }
    });
}

/// Whether an expression is of constants, and is the same in all sessions.
fn is_constant(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_) => true,
        Expression::Binary { resolved, left, right, .. } => {
            [resolved.left, resolved.right, resolved.result].into_iter().all(is_plain)
                && is_constant(left)
                && is_constant(right)
        }
        Expression::Unary { resolved, operand, .. } => {
            [resolved.operand, resolved.result].into_iter().all(is_plain) && is_constant(operand)
        }
        Expression::Cast { operand, from, to } => is_plain(*from) && is_plain(*to) && is_constant(operand),
        _ => false,
    }
}

/// Whether values of a type are short, and mean the same in all time zones.
fn is_plain(data_type: SqlType) -> bool {
    use BaseType::*;
    !data_type.array
        && matches!(
            data_type.base,
            Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric | Date | Timestamp | Interval
        )
}
