//! Dates, times and intervals made of their parts, read after patterns, and put into bins.

use super::date_time::timestamp;
use super::*;
use crate::types::Numeric;
use crate::types::calendar::{self, DAY, HOUR, MINUTE};
use crate::types::text::date_time::{pattern, zone_or_distance};

pub(super) const TABLE: &[Entry] = &[
    strict("make_time", &[INT4, INT4, FLOAT8], TIME, |a, _| make_time(a, 0).map(Datum::Time)),
    strict("make_timestamp", &[INT4, INT4, INT4, INT4, INT4, FLOAT8], TIMESTAMP, |a, _| {
        make_timestamp(a, Zone::Utc)
    }),
    strict("make_timestamptz", &[INT4, INT4, INT4, INT4, INT4, FLOAT8], TIMESTAMPTZ, |a, context| {
        make_timestamp(a, context.zone)
    }),
    strict("make_timestamptz", &[INT4, INT4, INT4, INT4, INT4, FLOAT8, TEXT], TIMESTAMPTZ, |a, _| {
        make_timestamp(a, zone_or_distance(text(a, 6)?)?)
    }),
    lenient("make_interval", &[], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4, INT4], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4, INT4, INT4], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4, INT4, INT4, INT4], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4, INT4, INT4, INT4, INT4], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4, INT4, INT4, INT4, INT4, INT4], INTERVAL, |a, _| make_interval(a)),
    strict("make_interval", &[INT4, INT4, INT4, INT4, INT4, INT4, FLOAT8], INTERVAL, |a, _| make_interval(a)),
    strict("date_bin", &[INTERVAL, TIMESTAMP, TIMESTAMP], TIMESTAMP, |a, _| date_bin(a)),
    strict("date_bin", &[INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ], TIMESTAMPTZ, |a, _| date_bin(a)),
    strict("justify_hours", &[INTERVAL], INTERVAL, |a, _| justify(a, true, false)),
    strict("justify_days", &[INTERVAL], INTERVAL, |a, _| justify(a, false, true)),
    strict("justify_interval", &[INTERVAL], INTERVAL, |a, _| justify(a, true, true)),
    // All values are finite here.
    strict("isfinite", &[DATE], BOOL, |_, _| Ok(Datum::Bool(true))),
    strict("isfinite", &[TIMESTAMP], BOOL, |_, _| Ok(Datum::Bool(true))),
    strict("isfinite", &[TIMESTAMPTZ], BOOL, |_, _| Ok(Datum::Bool(true))),
    strict("isfinite", &[INTERVAL], BOOL, |_, _| Ok(Datum::Bool(true))),
    strict("to_date", &[TEXT, TEXT], DATE, |a, _| {
        time_pattern::to_date(text(a, 0)?, text(a, 1)?).map(Datum::Date)
    }),
    strict("to_timestamp", &[TEXT, TEXT], TIMESTAMPTZ, |a, context| {
        time_pattern::to_timestamp(text(a, 0)?, text(a, 1)?, context.zone).map(Datum::Timestamp)
    }),
    strict("to_char", &[NUMERIC, TEXT], TEXT, |a, _| number_pattern::to_char(number(a, 0)?, text(a, 1)?)),
    strict("to_char", &[INT4, TEXT], TEXT, |a, _| {
        number_pattern::to_char(&Numeric::from(int(a, 0)?), text(a, 1)?)
    }),
    strict("to_char", &[INT8, TEXT], TEXT, |a, _| {
        number_pattern::to_char(&Numeric::from(int(a, 0)?), text(a, 1)?)
    }),
    strict("to_char", &[FLOAT8, TEXT], TEXT, |a, _| {
        number_pattern::float_to_char(float(a, 0)?, number_pattern::FLOAT8_DIGITS, text(a, 1)?)
    }),
    strict("to_char", &[INTERVAL, TEXT], TEXT, |a, _| match a.first() {
        Some(Datum::Interval { months, days, microseconds }) => {
            Ok(Datum::Text(pattern::format_interval(*months, *days, *microseconds, text(a, 1)?)))
        }
        _ => Err(unexpected(0)),
    }),
    strict("to_number", &[TEXT, TEXT], NUMERIC, |a, _| number_pattern::to_number(text(a, 0)?, text(a, 1)?)),
];

fn time_out_of_range(hour: i64, minute: i64, second: f64) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("time field value out of range: {hour}:{minute:02}:{second:02}"),
    )
}

/// Microseconds since midnight, from the arguments from one on.
fn make_time(arguments: &[Datum], first: usize) -> Result<i64, SqlError> {
    let (hour, minute) = (int(arguments, first)?, int(arguments, first + 1)?);
    let second = float(arguments, first + 2)?;
    let fits = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second)
        || hour == 24 && minute == 0 && second == 0.0;
    if !fits {
        return Err(time_out_of_range(hour, minute, second));
    }
    Ok(hour * HOUR + minute * MINUTE + (second * 1e6).round_ties_even() as i64)
}

/// The moment of a local time that is told by its parts.
fn make_timestamp(arguments: &[Datum], zone: Zone) -> Result<Datum, SqlError> {
    let date = date_time::make_date(int(arguments, 0)?, int(arguments, 1)?, int(arguments, 2)?)?;
    let Datum::Date(days) = date else { return Err(unexpected(0)) };
    let at = i64::from(days).checked_mul(DAY);
    let time = make_time(arguments, 3)?;
    let local = at.and_then(|at| at.checked_add(time));
    calendar::check_timestamp(local.and_then(|local| zone.to_moment(local))).map(Datum::Timestamp)
}

/// Of years, months, weeks, days, hours, minutes and seconds, as many as are given.
fn make_interval(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let out_of_range = || SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range");
    let part = |at: usize| if at < arguments.len() { int(arguments, at) } else { Ok(0) };
    let months = part(0)? * 12 + part(1)?;
    let days = part(2)? * 7 + part(3)?;
    let seconds = if arguments.len() > 6 { float(arguments, 6)? } else { 0.0 };
    // Far beyond any interval, and still an integer when counted in microseconds.
    if !(-9e12..9e12).contains(&seconds) {
        return Err(out_of_range());
    }
    let time = part(4)? * HOUR + part(5)? * MINUTE;
    let microseconds = time.checked_add((seconds * 1e6).round_ties_even() as i64).ok_or_else(out_of_range)?;
    Ok(Datum::Interval {
        months: i32::try_from(months).map_err(|_| out_of_range())?,
        days: i32::try_from(days).map_err(|_| out_of_range())?,
        microseconds,
    })
}

/// The beginning of the bin that a time is in, where bins of one length follow each other from an origin on.
fn date_bin(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let Some(Datum::Interval { months, days, microseconds }) = arguments.first() else {
        return Err(unexpected(0));
    };
    if *months != 0 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let length = i128::from(*days) * i128::from(DAY) + i128::from(*microseconds);
    if length <= 0 {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "stride must be greater than zero"));
    }
    let (at, origin) = (i128::from(timestamp(arguments, 1)?), i128::from(timestamp(arguments, 2)?));
    let start = origin + (at - origin).div_euclid(length) * length;
    calendar::check_timestamp(i64::try_from(start).ok()).map(Datum::Timestamp)
}

/// Makes days of 24 hours, and months of 30 days; all parts get the sign of the whole.
fn justify(arguments: &[Datum], hours: bool, days_too: bool) -> Result<Datum, SqlError> {
    let Some(Datum::Interval { months, days, microseconds }) = arguments.first() else {
        return Err(unexpected(0));
    };
    let out_of_range = || SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range");
    let (mut months, mut days, mut time) = (i64::from(*months), i64::from(*days), *microseconds);
    if hours {
        days += time / DAY;
        time %= DAY;
    }
    if days_too {
        months += days / 30;
        days %= 30;
        if months > 0 && (days < 0 || hours && days == 0 && time < 0) {
            months -= 1;
            days += 30;
        } else if months < 0 && (days > 0 || hours && days == 0 && time > 0) {
            months += 1;
            days -= 30;
        }
    }
    if hours {
        if days > 0 && time < 0 {
            days -= 1;
            time += DAY;
        } else if days < 0 && time > 0 {
            days += 1;
            time -= DAY;
        }
    }
    Ok(Datum::Interval {
        months: i32::try_from(months).map_err(|_| out_of_range())?,
        days: i32::try_from(days).map_err(|_| out_of_range())?,
        microseconds: time,
    })
}
