//! Functions of numbers. Those of floats that hardware does not round correctly come from `libm`, which gives the same bits
//! everywhere.

use super::*;
use crate::types::cast::out_of_range;
use crate::types::operators::{BinaryOperator, Resolved, binary, float_power};

const INT2: Kind = Kind::Of(SqlType::INT2);

pub(super) const TABLE: &[Entry] = &[
    strict("abs", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(float(a, 0)?.abs()))),
    strict("abs", &[INT2], INT2, |a, _| absolute(a, SqlType::INT2)),
    strict("abs", &[INT4], INT4, |a, _| absolute(a, SqlType::INT4)),
    strict("abs", &[INT8], INT8, |a, _| absolute(a, SqlType::INT8)),
    strict("abs", &[Kind::Of(SqlType::FLOAT4)], Kind::Of(SqlType::FLOAT4), |a, _| {
        Ok(Datum::Float(float(a, 0)?.abs()))
    }),
    strict("abs", &[NUMERIC], NUMERIC, |a, _| Ok(Datum::Numeric(number(a, 0)?.absolute()))),
    strict("sign", &[FLOAT8], FLOAT8, |a, _| {
        let value = float(a, 0)?;
        Ok(Datum::Float(f64::from(i8::from(value > 0.0) - i8::from(value < 0.0))))
    }),
    strict("sign", &[NUMERIC], NUMERIC, |a, _| Ok(Datum::Numeric(number(a, 0)?.sign()))),
    strict("ceil", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(float(a, 0)?.ceil()))),
    strict("ceil", &[NUMERIC], NUMERIC, |a, _| number(a, 0)?.ceiling().map(Datum::Numeric)),
    strict("ceiling", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(float(a, 0)?.ceil()))),
    strict("ceiling", &[NUMERIC], NUMERIC, |a, _| number(a, 0)?.ceiling().map(Datum::Numeric)),
    strict("floor", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(float(a, 0)?.floor()))),
    strict("floor", &[NUMERIC], NUMERIC, |a, _| number(a, 0)?.floor().map(Datum::Numeric)),
    strict("round", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(float(a, 0)?.round_ties_even()))),
    strict("round", &[NUMERIC], NUMERIC, |a, _| number(a, 0)?.round(0).map(Datum::Numeric)),
    strict("round", &[NUMERIC, INT4], NUMERIC, |a, _| number(a, 0)?.round(places(a)?).map(Datum::Numeric)),
    strict("trunc", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(float(a, 0)?.trunc()))),
    strict("trunc", &[NUMERIC], NUMERIC, |a, _| number(a, 0)?.truncate(0).map(Datum::Numeric)),
    strict("trunc", &[NUMERIC, INT4], NUMERIC, |a, _| number(a, 0)?.truncate(places(a)?).map(Datum::Numeric)),
    strict("mod", &[INT2, INT2], INT2, |a, _| modulo(a, SqlType::INT2)),
    strict("mod", &[INT4, INT4], INT4, |a, _| modulo(a, SqlType::INT4)),
    strict("mod", &[INT8, INT8], INT8, |a, _| modulo(a, SqlType::INT8)),
    strict("mod", &[NUMERIC, NUMERIC], NUMERIC, |a, _| modulo(a, SqlType::NUMERIC)),
    strict("div", &[NUMERIC, NUMERIC], NUMERIC, |a, _| {
        number(a, 0)?.divide_truncating(number(a, 1)?).map(Datum::Numeric)
    }),
    strict("sqrt", &[FLOAT8], FLOAT8, |a, _| {
        let value = float(a, 0)?;
        if value < 0.0 {
            return Err(SqlError::new(SqlState(*b"2201F"), "cannot take square root of a negative number"));
        }
        Ok(Datum::Float(value.sqrt()))
    }),
    strict("sqrt", &[NUMERIC], NUMERIC, |a, _| number(a, 0)?.square_root().map(Datum::Numeric)),
    strict("power", &[FLOAT8, FLOAT8], FLOAT8, |a, _| {
        float_power(float(a, 0)?, float(a, 1)?).map(Datum::Float)
    }),
    strict("power", &[NUMERIC, NUMERIC], NUMERIC, |a, _| {
        number(a, 0)?.power(number(a, 1)?).map(Datum::Numeric)
    }),
    strict("pow", &[FLOAT8, FLOAT8], FLOAT8, |a, _| {
        float_power(float(a, 0)?, float(a, 1)?).map(Datum::Float)
    }),
    strict("pow", &[NUMERIC, NUMERIC], NUMERIC, |a, _| {
        number(a, 0)?.power(number(a, 1)?).map(Datum::Numeric)
    }),
    strict("exp", &[FLOAT8], FLOAT8, |a, _| {
        let value = float(a, 0)?;
        let result = libm::exp(value);
        let problem = match () {
            () if result.is_infinite() && value.is_finite() => "overflow",
            () if result == 0.0 && value.is_finite() => "underflow",
            () => return Ok(Datum::Float(result)),
        };
        let message = format!("value out of range: {problem}");
        Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
    }),
    strict("ln", &[FLOAT8], FLOAT8, |a, _| logarithm(float(a, 0)?, libm::log)),
    strict("log", &[FLOAT8], FLOAT8, |a, _| logarithm(float(a, 0)?, libm::log10)),
    strict("log10", &[FLOAT8], FLOAT8, |a, _| logarithm(float(a, 0)?, libm::log10)),
    strict("degrees", &[FLOAT8], FLOAT8, |a, _| scaled(float(a, 0)?, |angle| angle / RADIANS_PER_DEGREE)),
    strict("radians", &[FLOAT8], FLOAT8, |a, _| scaled(float(a, 0)?, |angle| angle * RADIANS_PER_DEGREE)),
    strict("sin", &[FLOAT8], FLOAT8, |a, _| periodic(float(a, 0)?, libm::sin)),
    strict("cos", &[FLOAT8], FLOAT8, |a, _| periodic(float(a, 0)?, libm::cos)),
    strict("tan", &[FLOAT8], FLOAT8, |a, _| periodic(float(a, 0)?, libm::tan)),
    strict("cot", &[FLOAT8], FLOAT8, |a, _| periodic(float(a, 0)?, |value| 1.0 / libm::tan(value))),
    strict("asin", &[FLOAT8], FLOAT8, |a, _| of_unit(float(a, 0)?, libm::asin)),
    strict("acos", &[FLOAT8], FLOAT8, |a, _| of_unit(float(a, 0)?, libm::acos)),
    strict("atan", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(libm::atan(float(a, 0)?)))),
    strict("atan2", &[FLOAT8, FLOAT8], FLOAT8, |a, _| {
        Ok(Datum::Float(libm::atan2(float(a, 0)?, float(a, 1)?)))
    }),
    strict("sinh", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(libm::sinh(float(a, 0)?)))),
    strict("cosh", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(libm::cosh(float(a, 0)?)))),
    strict("tanh", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(libm::tanh(float(a, 0)?)))),
    strict("cbrt", &[FLOAT8], FLOAT8, |a, _| Ok(Datum::Float(libm::cbrt(float(a, 0)?)))),
    strict("gcd", &[INT4, INT4], INT4, |a, _| divisor(a, SqlType::INT4)),
    strict("gcd", &[INT8, INT8], INT8, |a, _| divisor(a, SqlType::INT8)),
    strict("lcm", &[INT4, INT4], INT4, |a, _| multiple(a, SqlType::INT4)),
    strict("lcm", &[INT8, INT8], INT8, |a, _| multiple(a, SqlType::INT8)),
    strict("factorial", &[INT8], NUMERIC, |a, _| factorial(int(a, 0)?)),
    strict("scale", &[NUMERIC], INT4, |a, _| {
        let value = number(a, 0)?;
        Ok(if value.is_nan() { Datum::Null } else { Datum::Int(i64::from(value.scale())) })
    }),
    strict("width_bucket", &[NUMERIC, NUMERIC, NUMERIC, INT4], INT4, |a, _| width_bucket(a)),
    strict("width_bucket", &[FLOAT8, FLOAT8, FLOAT8, INT4], INT4, |a, _| width_bucket_float(a)),
    lenient("pi", &[], FLOAT8, |_, _| Ok(Datum::Float(std::f64::consts::PI))),
];

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

fn finite(value: f64) -> Result<Datum, SqlError> {
    if value.is_infinite() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    Ok(Datum::Float(value))
}

/// What only an infinite angle may be infinite for.
fn scaled(angle: f64, scale: fn(f64) -> f64) -> Result<Datum, SqlError> {
    if angle.is_infinite() { Ok(Datum::Float(angle)) } else { finite(scale(angle)) }
}

fn input_out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

fn periodic(value: f64, of: fn(f64) -> f64) -> Result<Datum, SqlError> {
    if value.is_infinite() { Err(input_out_of_range()) } else { Ok(Datum::Float(of(value))) }
}

fn of_unit(value: f64, of: fn(f64) -> f64) -> Result<Datum, SqlError> {
    if value.abs() > 1.0 { Err(input_out_of_range()) } else { Ok(Datum::Float(of(value))) }
}

fn greatest_divisor(left: i64, right: i64) -> u64 {
    let (mut left, mut right) = (left.unsigned_abs(), right.unsigned_abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

fn divisor(arguments: &[Datum], ty: SqlType) -> Result<Datum, SqlError> {
    let divisor = greatest_divisor(int(arguments, 0)?, int(arguments, 1)?);
    cast::integer_in_range(i64::try_from(divisor).map_err(|_| out_of_range(ty))?, ty)
}

fn multiple(arguments: &[Datum], ty: SqlType) -> Result<Datum, SqlError> {
    let (left, right) = (int(arguments, 0)?, int(arguments, 1)?);
    if left == 0 || right == 0 {
        return Ok(Datum::Int(0));
    }
    let other = right.unsigned_abs() / greatest_divisor(left, right);
    let multiple = left.unsigned_abs().checked_mul(other).and_then(|multiple| i64::try_from(multiple).ok());
    cast::integer_in_range(multiple.ok_or_else(|| out_of_range(ty))?, ty)
}

/// Factorials beyond this one have more digits than are worth their time.
const FACTORIAL_MAX: i64 = 10_000;

fn factorial(of: i64) -> Result<Datum, SqlError> {
    if of < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    if of > FACTORIAL_MAX {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format"));
    }
    let product = (1..=of).fold(num_bigint::BigInt::from(1), |product, factor| product * factor);
    crate::types::Numeric::from_big(product, 0).map(Datum::Numeric)
}

fn bucket_error(message: &str) -> SqlError {
    SqlError::new(SqlState(*b"2201G"), message)
}

fn bucket_count(arguments: &[Datum]) -> Result<i64, SqlError> {
    match int(arguments, 3)? {
        count if count > 0 => Ok(count),
        _ => Err(bucket_error("count must be greater than zero")),
    }
}

/// In which of equal parts between two bounds a value lies: 0 before the first, one more than there are behind the last.
fn width_bucket(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let count = bucket_count(arguments)?;
    let (value, low, high) = (number(arguments, 0)?, number(arguments, 1)?, number(arguments, 2)?);
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    let width = high.subtract(low)?;
    if width.is_zero() {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    // Counted from the lower bound on, whichever way it goes.
    let (distance, width) = if width.is_negative() {
        (low.subtract(value)?, width.negate())
    } else {
        (value.subtract(low)?, width)
    };
    if distance.is_negative() {
        return Ok(Datum::Int(0));
    }
    let part = distance.multiply(&crate::types::Numeric::from(count))?.divide_truncating(&width)?;
    let bucket = part.to_i64().map_or(count, |part| part.min(count)) + 1;
    cast::integer_in_range(bucket, SqlType::INT4)
}

fn width_bucket_float(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let count = bucket_count(arguments)?;
    let (value, low, high) = (float(arguments, 0)?, float(arguments, 1)?, float(arguments, 2)?);
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let (before, behind) =
        if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    let bucket = match (before, behind) {
        (true, _) => 0,
        (_, true) => count + 1,
        _ => ((count as f64 * ((value - low) / (high - low))) as i64).min(count - 1) + 1,
    };
    cast::integer_in_range(bucket, SqlType::INT4)
}

fn absolute(arguments: &[Datum], ty: SqlType) -> Result<Datum, SqlError> {
    let value = int(arguments, 0)?.checked_abs().ok_or_else(|| out_of_range(ty))?;
    cast::integer_in_range(value, ty)
}

fn places(arguments: &[Datum]) -> Result<i32, SqlError> {
    // More digits than numbers may have are as good as the most.
    Ok(int(arguments, 1)?.clamp(-2000, 2000) as i32)
}

fn modulo(arguments: &[Datum], ty: SqlType) -> Result<Datum, SqlError> {
    let [left, right] = arguments else { return Err(unexpected(1)) };
    binary(BinaryOperator::Modulo, left, right, &Resolved { left: ty, right: ty, result: ty }, Zone::Utc)
}

fn logarithm(value: f64, of: fn(f64) -> f64) -> Result<Datum, SqlError> {
    let problem = if value == 0.0 {
        "zero"
    } else if value < 0.0 {
        "a negative number"
    } else {
        return Ok(Datum::Float(of(value)));
    };
    Err(SqlError::new(SqlState(*b"2201E"), format!("cannot take logarithm of {problem}")))
}
