//! Functions of dates, times and intervals.

use super::*;
use crate::types::Numeric;
use crate::types::calendar::{self, Civil, DAY, HOUR, MINUTE, SECOND};
use crate::types::text::date_time::{pattern, zone};

pub(super) const TABLE: &[Entry] = &[
    lenient("now", &[], TIMESTAMPTZ, |_, context| Ok(Datum::Timestamp(context.now))),
    lenient("current_timestamp", &[], TIMESTAMPTZ, |_, context| Ok(Datum::Timestamp(context.now))),
    lenient("transaction_timestamp", &[], TIMESTAMPTZ, |_, context| Ok(Datum::Timestamp(context.now))),
    lenient("localtimestamp", &[], TIMESTAMP, |_, context| Ok(Datum::Timestamp(local_now(context)))),
    lenient("current_date", &[], DATE, |_, context| {
        calendar::check_date(local_now(context).div_euclid(DAY)).map(Datum::Date)
    }),
    lenient("current_time", &[], TIME, |_, context| Ok(Datum::Time(local_now(context).rem_euclid(DAY)))),
    lenient("localtime", &[], TIME, |_, context| Ok(Datum::Time(local_now(context).rem_euclid(DAY)))),
    strict("date_trunc", &[TEXT, TIMESTAMP], TIMESTAMP, |a, _| truncate(a, SqlType::TIMESTAMP, Zone::Utc)),
    strict("date_trunc", &[TEXT, TIMESTAMPTZ], TIMESTAMPTZ, |a, context| {
        truncate(a, SqlType::TIMESTAMPTZ, context.zone)
    }),
    strict("date_trunc", &[TEXT, TIMESTAMPTZ, TEXT], TIMESTAMPTZ, |a, _| {
        truncate(a, SqlType::TIMESTAMPTZ, zone(text(a, 2)?)?)
    }),
    strict("date_trunc", &[TEXT, INTERVAL], INTERVAL, |a, _| truncate(a, SqlType::INTERVAL, Zone::Utc)),
    strict("date_part", &[TEXT, TIMESTAMP], FLOAT8, |a, c| part_float(a, SqlType::TIMESTAMP, c)),
    strict("date_part", &[TEXT, TIMESTAMPTZ], FLOAT8, |a, c| part_float(a, SqlType::TIMESTAMPTZ, c)),
    strict("date_part", &[TEXT, DATE], FLOAT8, |a, c| part_float(a, SqlType::DATE, c)),
    strict("date_part", &[TEXT, TIME], FLOAT8, |a, c| part_float(a, SqlType::TIME, c)),
    strict("date_part", &[TEXT, INTERVAL], FLOAT8, |a, c| part_float(a, SqlType::INTERVAL, c)),
    // `EXTRACT(field FROM value)` is `extract('field', value)`.
    strict("extract", &[TEXT, TIMESTAMP], NUMERIC, |a, c| part_numeric(a, SqlType::TIMESTAMP, c)),
    strict("extract", &[TEXT, TIMESTAMPTZ], NUMERIC, |a, c| part_numeric(a, SqlType::TIMESTAMPTZ, c)),
    strict("extract", &[TEXT, DATE], NUMERIC, |a, c| part_numeric(a, SqlType::DATE, c)),
    strict("extract", &[TEXT, TIME], NUMERIC, |a, c| part_numeric(a, SqlType::TIME, c)),
    strict("extract", &[TEXT, INTERVAL], NUMERIC, |a, c| part_numeric(a, SqlType::INTERVAL, c)),
    strict("age", &[TIMESTAMP, TIMESTAMP], INTERVAL, |a, _| {
        Ok(age(timestamp(a, 0)?, timestamp(a, 1)?, Zone::Utc))
    }),
    strict("age", &[TIMESTAMPTZ, TIMESTAMPTZ], INTERVAL, |a, context| {
        Ok(age(timestamp(a, 0)?, timestamp(a, 1)?, context.zone))
    }),
    strict("age", &[TIMESTAMP], INTERVAL, |a, context| {
        Ok(age(local_midnight(context), timestamp(a, 0)?, Zone::Utc))
    }),
    strict("age", &[TIMESTAMPTZ], INTERVAL, |a, context| {
        let midnight = calendar::check_timestamp(context.zone.to_moment(local_midnight(context)))?;
        Ok(age(midnight, timestamp(a, 0)?, context.zone))
    }),
    strict("make_date", &[INT4, INT4, INT4], DATE, |a, _| make_date(int(a, 0)?, int(a, 1)?, int(a, 2)?)),
    strict("to_timestamp", &[FLOAT8], TIMESTAMPTZ, |a, _| to_timestamp(float(a, 0)?)),
    strict("to_char", &[TIMESTAMP, TEXT], TEXT, |a, _| {
        Ok(Datum::Text(pattern::format(timestamp(a, 0)?, None, text(a, 1)?)))
    }),
    strict("to_char", &[TIMESTAMPTZ, TEXT], TEXT, |a, context| {
        Ok(Datum::Text(pattern::format(timestamp(a, 0)?, Some(context.zone), text(a, 1)?)))
    }),
    // `value AT TIME ZONE zone` is `timezone(zone, value)`.
    strict("timezone", &[TEXT, TIMESTAMP], TIMESTAMPTZ, |a, _| {
        let zone = zone(text(a, 0)?)?;
        calendar::check_timestamp(zone.to_moment(timestamp(a, 1)?)).map(Datum::Timestamp)
    }),
    strict("timezone", &[TEXT, TIMESTAMPTZ], TIMESTAMP, |a, _| {
        let zone = zone(text(a, 0)?)?;
        calendar::check_timestamp(Some(zone.to_local(timestamp(a, 1)?))).map(Datum::Timestamp)
    }),
    strict("timezone", &[INTERVAL, TIMESTAMP], TIMESTAMPTZ, |a, _| {
        calendar::check_timestamp(timestamp(a, 1)?.checked_sub(distance(a)?)).map(Datum::Timestamp)
    }),
    strict("timezone", &[INTERVAL, TIMESTAMPTZ], TIMESTAMP, |a, _| {
        calendar::check_timestamp(timestamp(a, 1)?.checked_add(distance(a)?)).map(Datum::Timestamp)
    }),
];

/// The local time when the transaction began.
fn local_now(context: &CallContext) -> i64 {
    context.zone.to_local(context.now)
}

/// The beginning of the local day of the transaction, in local time.
fn local_midnight(context: &CallContext) -> i64 {
    local_now(context).div_euclid(DAY) * DAY
}

/// The distance to UTC that an interval is, in whole seconds.
fn distance(arguments: &[Datum]) -> Result<i64, SqlError> {
    match arguments.first() {
        Some(Datum::Interval { months: 0, days: 0, microseconds }) => Ok(microseconds / SECOND * SECOND),
        Some(interval) => {
            let shown = crate::types::text::to_string(interval, SqlType::INTERVAL, Zone::Utc);
            let message = format!("interval time zone \"{shown}\" must not include months or days");
            Err(parameter_error(message))
        }
        None => Err(unexpected(0)),
    }
}

pub(super) fn timestamp(arguments: &[Datum], at: usize) -> Result<i64, SqlError> {
    match arguments.get(at) {
        Some(Datum::Timestamp(value)) => Ok(*value),
        _ => Err(unexpected(at)),
    }
}

/// A part of a date or time. Singular and short names are those that PostgreSQL takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

fn part_of(name: &str, ty: SqlType) -> Result<Part, SqlError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Part::Microsecond,
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Part::Millisecond,
        "second" | "seconds" | "sec" | "secs" | "s" => Part::Second,
        "minute" | "minutes" | "min" | "mins" | "m" => Part::Minute,
        "hour" | "hours" | "hr" | "hrs" | "h" => Part::Hour,
        "day" | "days" | "d" => Part::Day,
        "week" | "weeks" | "w" => Part::Week,
        "month" | "months" | "mon" | "mons" => Part::Month,
        "quarter" | "qtr" => Part::Quarter,
        "year" | "years" | "yr" | "yrs" | "y" => Part::Year,
        "decade" | "decades" | "dec" | "decs" => Part::Decade,
        "century" | "centuries" | "cent" | "c" => Part::Century,
        "millennium" | "millennia" | "mil" | "mils" => Part::Millennium,
        "dow" => Part::DayOfWeek,
        "isodow" => Part::IsoDayOfWeek,
        "doy" => Part::DayOfYear,
        "isoyear" => Part::IsoYear,
        "julian" | "jd" | "j" => Part::Julian,
        "epoch" => Part::Epoch,
        "timezone" => Part::Zone,
        "timezone_hour" | "timezone_h" => Part::ZoneHour,
        "timezone_minute" | "timezone_m" => Part::ZoneMinute,
        other => {
            return Err(not_recognized(other, ty));
        }
    })
}

fn not_recognized(name: &str, ty: SqlType) -> SqlError {
    let unit = name.to_ascii_lowercase();
    parameter_error(format!("unit \"{unit}\" not recognized for type {}", ty.name()))
}

fn not_supported(name: &str, ty: SqlType) -> SqlError {
    let unit = name.to_ascii_lowercase();
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{unit}\" not supported for type {}", ty.name()),
    )
}

/// A part as an integer and the digits of it that stand after the point.
type Value = (i128, u16);

fn part_value(arguments: &[Datum], ty: SqlType, context: &CallContext) -> Result<Value, SqlError> {
    let name = text(arguments, 0)?;
    let part = part_of(name, ty)?;
    let value = match arguments.get(1) {
        Some(Datum::Timestamp(at)) => {
            let offset = (ty == SqlType::TIMESTAMPTZ).then(|| context.zone.offset_at(*at));
            let local = at + offset.unwrap_or(0);
            clock_part(part, local.rem_euclid(DAY))
                .or_else(|| day_part(part, local.div_euclid(DAY)))
                .or_else(|| instant_part(part, *at, offset))
        }
        Some(Datum::Date(days)) => match part {
            Part::Julian => Some((i128::from(*days) + 2_451_545, 0)),
            Part::Epoch => Some(((i128::from(*days) + i128::from(calendar::EPOCH_DAYS)) * 86_400, 0)),
            _ => day_part(part, i64::from(*days)),
        },
        Some(Datum::Time(time)) => match part {
            Part::Epoch => Some((i128::from(*time), 6)),
            _ => clock_part(part, *time),
        },
        Some(Datum::Interval { months, days, microseconds }) => {
            interval_part(part, *months, *days, *microseconds)
        }
        _ => return Err(unexpected(1)),
    };
    value.ok_or_else(|| not_supported(name, ty))
}

fn part_numeric(arguments: &[Datum], ty: SqlType, context: &CallContext) -> Result<Datum, SqlError> {
    let (value, scale) = part_value(arguments, ty, context)?;
    Ok(Datum::Numeric(Numeric::new(value, scale)))
}

fn part_float(arguments: &[Datum], ty: SqlType, context: &CallContext) -> Result<Datum, SqlError> {
    let (value, scale) = part_value(arguments, ty, context)?;
    Ok(Datum::Float(Numeric::new(value, scale).to_f64()))
}

/// Of a time of the day, or of an interval, whose hours may be many.
fn clock_part(part: Part, time: i64) -> Option<Value> {
    let (value, scale) = match part {
        Part::Microsecond => (time % MINUTE, 0),
        Part::Millisecond => (time % MINUTE, 3),
        Part::Second => (time % MINUTE, 6),
        Part::Minute => (time % HOUR / MINUTE, 0),
        Part::Hour => (time / HOUR, 0),
        _ => return None,
    };
    Some((i128::from(value), scale))
}

fn day_part(part: Part, days: i64) -> Option<Value> {
    let Civil { year, month, day } = calendar::civil_of(days);
    // There is no year 0: the one before 1 is -1.
    let shown = |year: i64| if year > 0 { year } else { year - 1 };
    let value = match part {
        Part::Day => day,
        Part::Week => calendar::iso_week(days).1,
        Part::Month => month,
        Part::Quarter => (month - 1) / 3 + 1,
        Part::Year => shown(year),
        Part::Decade => year.div_euclid(10),
        Part::Century if year > 0 => (year + 99) / 100,
        Part::Century => -((100 - year) / 100),
        Part::Millennium if year > 0 => (year + 999) / 1000,
        Part::Millennium => -((1000 - year) / 1000),
        Part::DayOfWeek => calendar::day_of_week(days),
        Part::IsoDayOfWeek => (calendar::day_of_week(days) + 6) % 7 + 1,
        Part::DayOfYear => calendar::day_of_year(days),
        Part::IsoYear => shown(calendar::iso_week(days).0),
        _ => return None,
    };
    Some((i128::from(value), 0))
}

/// Of a timestamp, and of its distance to UTC if it has one.
fn instant_part(part: Part, at: i64, offset: Option<i64>) -> Option<Value> {
    let of_zone = |unit: i64, length: i64| Some((i128::from(offset? / unit % length), 0));
    match part {
        Part::Epoch => Some((i128::from(at) + i128::from(calendar::EPOCH_DAYS * DAY), 6)),
        Part::Zone => of_zone(SECOND, i64::MAX),
        Part::ZoneHour => of_zone(HOUR, i64::MAX),
        Part::ZoneMinute => of_zone(MINUTE, 60),
        Part::Julian => {
            let local = at + offset.unwrap_or(0);
            let fraction = Numeric::from(local.rem_euclid(DAY)).divide(&Numeric::from(DAY)).ok()?;
            let days = fraction.add(&Numeric::from(local.div_euclid(DAY) + 2_451_545)).ok()?;
            let (value, scale) = days.parts()?;
            Some((i128::try_from(value).ok()?, scale))
        }
        _ => None,
    }
}

fn interval_part(part: Part, months: i32, days: i32, microseconds: i64) -> Option<Value> {
    let (years, months) = (i64::from(months / 12), i64::from(months % 12));
    let value = match part {
        Part::Day => i64::from(days),
        Part::Month => months,
        Part::Quarter => months / 3 + 1,
        Part::Year => years,
        Part::Decade => years / 10,
        Part::Century => years / 100,
        Part::Millennium => years / 1000,
        Part::Epoch => {
            // A year is 365 days and a quarter, a month 30 days.
            let days = i128::from(years) * 1461 + i128::from(months * 30 + i64::from(days)) * 4;
            return Some((days * i128::from(DAY / 4) + i128::from(microseconds), 6));
        }
        _ => return clock_part(part, microseconds),
    };
    Some((i128::from(value), 0))
}

/// Everything that is finer than the part set to its beginning, of a moment in local time.
fn truncate(arguments: &[Datum], ty: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    let name = text(arguments, 0)?;
    let part = part_of(name, ty)?;
    match arguments.get(1) {
        Some(Datum::Timestamp(at)) => {
            let offset = zone.offset_at(*at);
            let local = truncate_timestamp(part, at + offset).ok_or_else(|| not_recognized(name, ty))?;
            // Within a day it stays at the same distance to UTC, even where the clock is changed.
            let truncated =
                if clock_step(part).is_some() { local.checked_sub(offset) } else { zone.to_moment(local) };
            calendar::check_timestamp(truncated).map(Datum::Timestamp)
        }
        Some(Datum::Interval { months, days, microseconds }) => {
            let truncated = truncate_interval(part, *months, *days, *microseconds);
            truncated.ok_or_else(|| not_supported(name, ty))
        }
        _ => Err(unexpected(1)),
    }
}

/// How long a part of a day is, in microseconds.
fn clock_step(part: Part) -> Option<i64> {
    Some(match part {
        Part::Microsecond => 1,
        Part::Millisecond => 1_000,
        Part::Second => SECOND,
        Part::Minute => MINUTE,
        Part::Hour => HOUR,
        _ => return None,
    })
}

fn truncate_timestamp(part: Part, at: i64) -> Option<i64> {
    if let Some(step) = clock_step(part) {
        return Some(at.div_euclid(step) * step);
    }
    let days = at.div_euclid(DAY);
    let Civil { year, month, .. } = calendar::civil_of(days);
    let first = |year: i64, month: i64| calendar::days_of(Civil { year, month, day: 1 });
    let days = match part {
        Part::Day => days,
        Part::Week => days - (calendar::day_of_week(days) + 6) % 7,
        Part::Month => first(year, month),
        Part::Quarter => first(year, (month - 1) / 3 * 3 + 1),
        Part::Year => first(year, 1),
        Part::Decade => first(year.div_euclid(10) * 10, 1),
        // Centuries and millennia begin with a year 1.
        Part::Century => first((year - 1).div_euclid(100) * 100 + 1, 1),
        Part::Millennium => first((year - 1).div_euclid(1000) * 1000 + 1, 1),
        _ => return None,
    };
    days.checked_mul(DAY)
}

fn truncate_interval(part: Part, months: i32, days: i32, microseconds: i64) -> Option<Datum> {
    if let Some(step) = clock_step(part) {
        return Some(Datum::Interval { months, days, microseconds: microseconds / step * step });
    }
    let step = match part {
        Part::Day => return Some(Datum::Interval { months, days, microseconds: 0 }),
        Part::Month => 1,
        Part::Quarter => 3,
        Part::Year => 12,
        Part::Decade => 120,
        Part::Century => 1_200,
        Part::Millennium => 12_000,
        _ => return None,
    };
    Some(Datum::Interval { months: months / step * step, days: 0, microseconds: 0 })
}

/// The difference in years, months, days and time of two local times, counted from the earlier on.
fn age(later: i64, earlier: i64, zone: Zone) -> Datum {
    let negative = later < earlier;
    let (end, start) = if negative { (earlier, later) } else { (later, earlier) };
    let (end, start) = (zone.to_local(end), zone.to_local(start));
    let (last, first) = (calendar::civil_of(end.div_euclid(DAY)), calendar::civil_of(start.div_euclid(DAY)));
    let mut months = (last.year - first.year) * 12 + last.month - first.month;
    let mut days = last.day - first.day;
    let mut time = end.rem_euclid(DAY) - start.rem_euclid(DAY);
    if time < 0 {
        time += DAY;
        days -= 1;
    }
    if days < 0 {
        // The month that the earlier one is in lends its days.
        days += calendar::days_of_month(first.year, first.month);
        months -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    Datum::Interval { months: (sign * months) as i32, days: (sign * days) as i32, microseconds: sign * time }
}

pub(super) fn make_date(year: i64, month: i64, day: i64) -> Result<Datum, SqlError> {
    let out_of_range = || {
        SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date field value out of range: {year}-{month:02}-{day:02}"),
        )
    };
    // Years before Christ are negative, and there is no year 0.
    let counted = if year < 0 { year + 1 } else { year };
    let valid = year != 0
        && (1..=12).contains(&month)
        && (1..=calendar::days_of_month(counted, month)).contains(&day);
    if !valid {
        return Err(out_of_range());
    }
    let days = calendar::days_of(Civil { year: counted, month, day });
    calendar::check_date(days).map(Datum::Date).map_err(|_| out_of_range())
}

fn to_timestamp(seconds: f64) -> Result<Datum, SqlError> {
    let out_of_range = || {
        let shown = crate::types::text::to_string(&Datum::Float(seconds), SqlType::FLOAT8, Zone::Utc);
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{shown}\""))
    };
    // Far beyond all timestamps, and still an integer when counted in microseconds.
    if !(-1e13..1e13).contains(&seconds) {
        return Err(out_of_range());
    }
    let at = ((seconds - (calendar::EPOCH_DAYS * 86_400) as f64) * 1e6).round_ties_even() as i64;
    calendar::check_timestamp(Some(at)).map(Datum::Timestamp).map_err(|_| out_of_range())
}
