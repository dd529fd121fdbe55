//! Arithmetic of integers, floats and `numeric`. Whatever does not fit its type is an error.

use super::{BinaryOperator, UnaryOperator};
use crate::error::{SqlError, SqlState};
use crate::types::cast::{integer_in_range, out_of_range, single};
use crate::types::{BaseType, Datum, Numeric, SqlType};

/// What an operator was given does not have the types that it was resolved for: a mistake of Ordain.
pub(super) fn unexpected(symbol: &str) -> SqlError {
    SqlError::new(
        SqlState::INTERNAL_ERROR,
        format!("operands of {symbol} do not have the types it was resolved for"),
    )
}

fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// Two numbers of one type; the result has the same type.
pub(super) fn evaluate(
    operator: BinaryOperator,
    left: &Datum,
    right: &Datum,
    result: SqlType,
) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Int(left), Datum::Int(right)) => integers(operator, *left, *right, result),
        (Datum::Float(left), Datum::Float(right)) => {
            let value = floats(operator, *left, *right)?;
            let value = if result.base == BaseType::Float4 { single(value)? } else { value };
            Ok(Datum::Float(value))
        }
        (Datum::Numeric(left), Datum::Numeric(right)) => numerics(operator, left, right).map(Datum::Numeric),
        _ => Err(unexpected(operator.symbol())),
    }
}

fn integers(operator: BinaryOperator, left: i64, right: i64, ty: SqlType) -> Result<Datum, SqlError> {
    use BinaryOperator::*;
    let value = match operator {
        Add => left.checked_add(right),
        Subtract => left.checked_sub(right),
        Multiply => left.checked_mul(right),
        Divide | Modulo if right == 0 => return Err(division_by_zero()),
        Divide => left.checked_div(right),
        // The rest of the least number by -1 is 0, though the quotient does not fit.
        Modulo => Some(left.checked_rem(right).unwrap_or(0)),
        BitAnd => Some(left & right),
        BitOr => Some(left | right),
        BitXor => Some(left ^ right),
        ShiftLeft | ShiftRight => return Ok(Datum::Int(shift(operator == ShiftLeft, left, right, ty))),
        _ => return Err(unexpected(operator.symbol())),
    };
    integer_in_range(value.ok_or_else(|| out_of_range(ty))?, ty)
}

/// Shifts by the count modulo the bits of the type, as processors do; what is shifted out is lost. `smallint` is shifted as 32
/// bits.
fn shift(to_left: bool, value: i64, count: i64, ty: SqlType) -> i64 {
    let count = count as u32;
    match (ty.base, to_left) {
        (BaseType::Int8, true) => value.wrapping_shl(count),
        (BaseType::Int8, false) => value.wrapping_shr(count),
        (BaseType::Int2, true) => i64::from((value as i32).wrapping_shl(count) as i16),
        (_, true) => i64::from((value as i32).wrapping_shl(count)),
        (_, false) => i64::from((value as i32).wrapping_shr(count)),
    }
}

fn floats(operator: BinaryOperator, left: f64, right: f64) -> Result<f64, SqlError> {
    use BinaryOperator::*;
    let value = match operator {
        Add => left + right,
        Subtract => left - right,
        Multiply => left * right,
        Divide if right == 0.0 && !left.is_nan() => return Err(division_by_zero()),
        Divide => left / right,
        Power => return power(left, right),
        _ => return Err(unexpected(operator.symbol())),
    };
    let infinite = left.is_infinite() || right.is_infinite();
    if value.is_infinite() && !infinite {
        return Err(float_range("overflow"));
    }
    let lost = match operator {
        Multiply => left != 0.0 && right != 0.0,
        Divide => left != 0.0 && !infinite,
        _ => false,
    };
    if value == 0.0 && lost {
        return Err(float_range("underflow"));
    }
    Ok(canonical(value))
}

/// One "not a number", whatever sign the processor gave it.
pub(crate) fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

fn float_range(problem: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {problem}"))
}

/// A float to the power of another, with the same bits on every machine.
pub(crate) fn power(base: f64, exponent: f64) -> Result<f64, SqlError> {
    let invalid = |text: &str| Err(SqlError::new(SqlState(*b"2201F"), text));
    if base == 0.0 && exponent < 0.0 {
        return invalid("zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        return invalid("a negative number raised to a non-integer power yields a complex result");
    }
    let value = libm::pow(base, exponent);
    let finite = base.is_finite() && exponent.is_finite();
    if value.is_infinite() && finite {
        return Err(float_range("overflow"));
    }
    if value == 0.0 && base != 0.0 && finite {
        return Err(float_range("underflow"));
    }
    Ok(canonical(value))
}

fn numerics(operator: BinaryOperator, left: &Numeric, right: &Numeric) -> Result<Numeric, SqlError> {
    use BinaryOperator::*;
    match operator {
        Add => left.add(right),
        Subtract => left.subtract(right),
        Multiply => left.multiply(right),
        Divide => left.divide(right),
        Modulo => left.remainder(right),
        Power => left.power(right),
        _ => Err(unexpected(operator.symbol())),
    }
}

/// An operator before a value of the type of the result.
pub(super) fn unary(operator: UnaryOperator, operand: &Datum, ty: SqlType) -> Result<Datum, SqlError> {
    match (operator, operand) {
        (_, Datum::Null) => Ok(Datum::Null),
        (UnaryOperator::Plus, operand) => Ok(operand.clone()),
        (UnaryOperator::Not, Datum::Bool(value)) => Ok(Datum::Bool(!value)),
        (UnaryOperator::BitNot, Datum::Int(value)) => Ok(Datum::Int(!value)),
        (UnaryOperator::Negate, Datum::Int(value)) => {
            integer_in_range(value.checked_neg().ok_or_else(|| out_of_range(ty))?, ty)
        }
        (UnaryOperator::Negate, Datum::Float(value)) => Ok(Datum::Float(canonical(-value))),
        (UnaryOperator::Negate, Datum::Numeric(value)) => Ok(Datum::Numeric(value.negate())),
        (UnaryOperator::Negate, Datum::Interval { months, days, microseconds }) => {
            let negated = || {
                Some(Datum::Interval {
                    months: months.checked_neg()?,
                    days: days.checked_neg()?,
                    microseconds: microseconds.checked_neg()?,
                })
            };
            negated().ok_or_else(super::date_time::interval_range)
        }
        _ => Err(unexpected(operator.symbol())),
    }
}
