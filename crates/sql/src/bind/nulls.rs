//! Calculations that are left out, since one of their operands is the constant null: whatever the rows are that the others read, and
//! whether these can be calculated at all, the result is null. PostgreSQL does the same.

use crate::plan::Expression;
use crate::types::operators::BinaryOperator;
use crate::types::{Datum, SqlType};

/// Whether a value is the constant null.
pub(super) fn is_null(value: &Expression) -> bool {
    matches!(value, Expression::Constant(Datum::Null))
}

/// Whether the result of an operator is null since one of its operands is.
pub(super) fn decides(
    operator: BinaryOperator,
    result: SqlType,
    left: &Expression,
    right: &Expression,
) -> bool {
    use BinaryOperator::{Concat, IsDistinctFrom, IsNotDistinctFrom};
    let other = match (is_null(left), is_null(right)) {
        (true, _) => right,
        (false, true) => left,
        (false, false) => return false,
    };
    let is_strict = match operator {
        IsDistinctFrom | IsNotDistinctFrom => false,
        // An array takes a null for an element.
        Concat => !result.array,
        _ => true,
    };
    // A comparison with a column tells that no row has to be read.
    let is_sight =
        result == SqlType::BOOL && matches!(other, Expression::Column(_) | Expression::Outer { .. });
    is_strict && !is_sight && is_left_out(other)
}

/// Whether the result of a strict function is null since one of its arguments is.
pub(super) fn decide(arguments: &[Expression]) -> bool {
    arguments.iter().any(is_null) && arguments.iter().all(is_left_out)
}

/// Whether a value is not calculated where that does not matter. PostgreSQL calculates what consists of constants beforehand, and fails
/// if it cannot.
fn is_left_out(value: &Expression) -> bool {
    let mut is_open = matches!(value, Expression::Constant(_));
    value.visit(0, &mut |expression, _| {
        is_open |= matches!(
            expression,
            Expression::Column(_)
                | Expression::Outer { .. }
                | Expression::Parameter(_)
                | Expression::Subquery { .. }
                | Expression::NextValue(_)
                | Expression::Random(_)
        );
    });
    is_open
}
