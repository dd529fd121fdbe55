//! Aggregates of values in order: percentiles, and the most frequent value.

use super::super::{Datum, SqlType, Zone, compare, functions, operators};
use super::AggregateId;
use crate::error::{SqlError, SqlState};
use operators::{BinaryOperator, Resolved};

/// The value of an aggregate over sorted values of a type, none of them null. A percentile has a fraction, or an array of such.
pub(super) fn finish(
    id: AggregateId,
    values: &[Datum],
    ty: SqlType,
    fraction: &Datum,
) -> Result<Datum, SqlError> {
    if values.is_empty() || id != AggregateId::Mode && fraction.is_null() {
        return Ok(Datum::Null);
    }
    let one = |fraction: &Datum| match (id, fraction) {
        (_, Datum::Float(fraction)) if !(0.0..=1.0).contains(fraction) => Err(out_of_range(*fraction)),
        (AggregateId::PercentileDiscrete, Datum::Float(fraction)) => Ok(discrete(values, *fraction)),
        (_, Datum::Float(fraction)) => continuous(values, ty, *fraction),
        _ => Ok(Datum::Null),
    };
    match fraction {
        _ if id == AggregateId::Mode => Ok(most_frequent(values)),
        Datum::Array(fractions) => {
            let (mut found, mut bytes) = (Vec::with_capacity(fractions.len()), 0);
            for fraction in fractions {
                let value = one(fraction)?;
                bytes += functions::length(&value);
                functions::check_length(bytes as usize)?;
                found.push(value);
            }
            Ok(Datum::Array(found))
        }
        fraction => one(fraction),
    }
}

fn out_of_range(fraction: f64) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("percentile value {fraction} is not between 0 and 1"),
    )
}

/// The first value that has at least that fraction of all before it and at it.
fn discrete(values: &[Datum], fraction: f64) -> Datum {
    let place = (fraction * values.len() as f64).ceil() as usize;
    values[place.max(1).min(values.len()) - 1].clone()
}

/// The value at that fraction of the way from the first to the last, between two where it lies between.
fn continuous(values: &[Datum], ty: SqlType, fraction: f64) -> Result<Datum, SqlError> {
    let place = fraction * (values.len() - 1) as f64;
    let (low, high) = (&values[place.floor() as usize], &values[place.ceil() as usize]);
    let part = place - place.floor();
    if part == 0.0 {
        return Ok(low.clone());
    }
    if let (Datum::Float(low), Datum::Float(high)) = (low, high) {
        return Ok(Datum::Float(low + part * (high - low)));
    }
    let same = Resolved { left: ty, right: ty, result: ty };
    let difference = operators::binary(BinaryOperator::Subtract, high, low, &same, Zone::Utc)?;
    let by_float = Resolved { left: ty, right: SqlType::FLOAT8, result: ty };
    let step =
        operators::binary(BinaryOperator::Multiply, &difference, &Datum::Float(part), &by_float, Zone::Utc)?;
    operators::binary(BinaryOperator::Add, low, &step, &same, Zone::Utc)
}

/// The first of the values that are there most often.
fn most_frequent(values: &[Datum]) -> Datum {
    let (mut best, mut most, mut start) = (0, 0, 0);
    for place in 0..values.len() {
        if !compare::equal(&values[place], &values[start]) {
            start = place;
        }
        if place + 1 - start > most {
            (best, most) = (start, place + 1 - start);
        }
    }
    values[best].clone()
}
