//! Arithmetic of dates, times and intervals.

use super::arithmetic::unexpected;
use super::{BinaryOperator, Resolved};
use crate::error::{SqlError, SqlState};
use crate::types::calendar::{self, DAY};
use crate::types::{BaseType, Datum, Zone};

/// Whether it is a value of these types.
pub(super) fn applies(datum: &Datum) -> bool {
    matches!(datum, Datum::Date(_) | Datum::Time(_) | Datum::Timestamp(_) | Datum::Interval { .. })
}

pub(crate) fn interval_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// Two values of the resolved types.
pub(super) fn evaluate(
    operator: BinaryOperator,
    left: &Datum,
    right: &Datum,
    resolved: &Resolved,
    zone: Zone,
) -> Result<Datum, SqlError> {
    use BinaryOperator::*;
    // All others count in days that have 24 hours.
    let zone = if resolved.result.base == BaseType::TimestampTz { zone } else { Zone::Utc };
    match (operator, left, right) {
        (Add, Datum::Date(days), Datum::Int(count)) | (Add, Datum::Int(count), Datum::Date(days)) => {
            add_days(*days, *count)
        }
        (Subtract, Datum::Date(days), Datum::Int(count)) => add_days(*days, -count),
        (Subtract, Datum::Date(left), Datum::Date(right)) => {
            Ok(Datum::Int(i64::from(*left) - i64::from(*right)))
        }
        (Add, Datum::Date(days), Datum::Time(time)) | (Add, Datum::Time(time), Datum::Date(days)) => {
            let midnight = calendar::timestamp_of_date(*days)?;
            calendar::check_timestamp(midnight.checked_add(*time)).map(Datum::Timestamp)
        }
        (Subtract, Datum::Timestamp(left), Datum::Timestamp(right)) => {
            let difference = left.checked_sub(*right).ok_or_else(interval_range)?;
            let days = (difference / DAY) as i32;
            Ok(Datum::Interval { months: 0, days, microseconds: difference % DAY })
        }
        (Subtract, Datum::Time(left), Datum::Time(right)) => {
            Ok(Datum::Interval { months: 0, days: 0, microseconds: left - right })
        }
        (Add, Datum::Interval { .. }, Datum::Interval { .. }) => combine(left, right, 1),
        (Subtract, Datum::Interval { .. }, Datum::Interval { .. }) => combine(left, right, -1),
        (Add | Subtract, at, Datum::Interval { months, days, microseconds }) => {
            let sign = if operator == Add { 1 } else { -1 };
            move_by(at, sign, (*months, *days, *microseconds), zone)
        }
        (Add, Datum::Interval { months, days, microseconds }, at) => {
            move_by(at, 1, (*months, *days, *microseconds), zone)
        }
        (Multiply, interval @ Datum::Interval { .. }, Datum::Float(factor))
        | (Multiply, Datum::Float(factor), interval @ Datum::Interval { .. }) => {
            scale(interval, |part| part * factor)
        }
        (Divide, interval @ Datum::Interval { .. }, Datum::Float(divisor)) => {
            if *divisor == 0.0 {
                return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
            }
            scale(interval, |part| part / divisor)
        }
        _ => {
            debug_assert!(resolved.result.base != BaseType::Unknown);
            Err(unexpected(operator.symbol()))
        }
    }
}

fn add_days(days: i32, count: i64) -> Result<Datum, SqlError> {
    calendar::check_date(i64::from(days) + count).map(Datum::Date)
}

/// Months first, then days, then time. Months and days keep the local time, as far as the day that they lead to has it.
fn move_by(
    at: &Datum,
    sign: i64,
    (months, days, microseconds): (i32, i32, i64),
    zone: Zone,
) -> Result<Datum, SqlError> {
    match at {
        Datum::Timestamp(at) => {
            let mut at = *at;
            if months != 0 {
                at = move_days(at, zone, |day| calendar::add_months(day, sign * i64::from(months)))?;
            }
            if days != 0 {
                at = move_days(at, zone, |day| day + sign * i64::from(days))?;
            }
            let moved = i128::from(at) + i128::from(sign) * i128::from(microseconds);
            calendar::check_timestamp(i64::try_from(moved).ok()).map(Datum::Timestamp)
        }
        Datum::Time(time) => {
            let moved = i128::from(*time) + i128::from(sign) * i128::from(microseconds);
            Ok(Datum::Time(moved.rem_euclid(i128::from(DAY)) as i64))
        }
        _ => Err(unexpected("+")),
    }
}

/// At the same local time of another day.
fn move_days(at: i64, zone: Zone, moved: impl FnOnce(i64) -> i64) -> Result<i64, SqlError> {
    let local = zone.to_local(at);
    let day = moved(local.div_euclid(DAY)).checked_mul(DAY);
    let local = day.and_then(|day| day.checked_add(local.rem_euclid(DAY)));
    calendar::check_timestamp(local.and_then(|local| zone.to_moment(local)))
}

/// The sum of two intervals, part by part, or the difference.
pub(crate) fn combine(left: &Datum, right: &Datum, sign: i64) -> Result<Datum, SqlError> {
    let (
        Datum::Interval { months, days, microseconds },
        Datum::Interval { months: m, days: d, microseconds: u },
    ) = (left, right)
    else {
        return Err(unexpected("+"));
    };
    let part = |left: i32, right: i32| {
        i32::try_from(i64::from(left) + sign * i64::from(right)).map_err(|_| interval_range())
    };
    let microseconds = i128::from(*microseconds) + i128::from(sign) * i128::from(*u);
    Ok(Datum::Interval {
        months: part(*months, *m)?,
        days: part(*days, *d)?,
        microseconds: i64::try_from(microseconds).map_err(|_| interval_range())?,
    })
}

/// Each part scaled; what is left of months becomes days, what is left of days becomes time.
pub(crate) fn scale(interval: &Datum, scaled: impl Fn(f64) -> f64) -> Result<Datum, SqlError> {
    let Datum::Interval { months, days, microseconds } = interval else { return Err(unexpected("*")) };
    let whole = |value: f64| {
        let fits = value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
        if fits { Ok(value.trunc()) } else { Err(interval_range()) }
    };
    // Rounded to microseconds, so that what was a whole number of them before stays one.
    let to_microseconds = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let exact_months = scaled(f64::from(*months));
    let exact_days = scaled(f64::from(*days));
    let new_months = whole(exact_months)?;
    let mut new_days = whole(exact_days)?;
    let mut month_days = to_microseconds((exact_months - new_months) * 30.0);
    let mut seconds = to_microseconds((exact_days - new_days + month_days - month_days.trunc()) * 86_400.0);
    // The two fractions together may make a day.
    if seconds.abs() >= 86_400.0 {
        let carried = (seconds / 86_400.0).trunc();
        new_days += carried;
        seconds -= carried * 86_400.0;
    }
    month_days = month_days.trunc();
    new_days = whole(new_days + month_days)?;
    let time = (scaled(*microseconds as f64) + seconds * 1e6).round_ties_even();
    if !(-9.223_372_036_854_775e18..9.223_372_036_854_775e18).contains(&time) {
        return Err(interval_range());
    }
    Ok(Datum::Interval { months: new_months as i32, days: new_days as i32, microseconds: time as i64 })
}
