//! Which values parameters of a session can have.

use std::borrow::Cow;

use super::setting_table::{Kind, Setting};
use super::settings::truth;
use crate::error::{SqlError, SqlState};

/// The value that a parameter gets, if it is one of those that nothing but `SHOW` looks at; `None` for another.
pub(super) fn checked<'v>(name: &str, value: &'v str) -> Option<Result<Cow<'v, str>, SqlError>> {
    let lower = value.trim().to_ascii_lowercase();
    Some(match Setting::find(name)?.kind {
        Kind::Text => return None,
        Kind::Time => milliseconds(name, value).map(|time| Cow::Owned(shown(time, &TIMES))),
        Kind::Boolean => match truth(&lower) {
            Some(is_on) => Ok(Cow::Borrowed(if is_on { "on" } else { "off" })),
            None => {
                let message = format!("parameter \"{name}\" requires a Boolean value");
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        },
        Kind::Number if lower.parse::<f64>().is_ok_and(|cost| cost >= 0.0) => Ok(Cow::Borrowed(value)),
        Kind::Number => Err(invalid(name, value)),
        Kind::Memory(unit) => match kilobytes(value, unit) {
            Some(size) => Ok(Cow::Owned(shown(size, &SIZES))),
            None => {
                let hint = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
                Err(invalid(name, value).with_hint(hint))
            }
        },
        Kind::Word(words) if words.contains(&lower.as_str()) => Ok(Cow::Owned(lower)),
        // PostgreSQL takes the forms of a Boolean for these two words, too.
        Kind::Word(words) if words.contains(&"on") && truth(&lower).is_some() => Ok(Cow::Owned(lower)),
        Kind::Word(words) => {
            Err(invalid(name, value).with_hint(format!("Available values: {}.", words.join(", "))))
        }
    })
}

/// The units of times and how many milliseconds each has, the longest first. A microsecond is less than one.
const TIMES: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// A time as a whole number of milliseconds: it is given so, or with a unit.
pub(super) fn milliseconds(name: &str, value: &str) -> Result<i64, SqlError> {
    let text = value.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, unit) = (text[..end].parse::<f64>().map_err(|_| invalid(name, value))?, text[end..].trim());
    let factor = match TIMES.iter().find(|(known, _)| *known == unit) {
        Some((_, factor)) => *factor as f64,
        None if unit.is_empty() => 1.0,
        None if unit == "us" => 1e-3,
        None => {
            let hint = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
            return Err(invalid(name, value).with_hint(hint));
        }
    };
    let time = (number * factor).round_ties_even();
    if !(0.0..=f64::from(i32::MAX)).contains(&time) {
        let message =
            format!("{time} ms is outside the valid range for parameter \"{name}\" (0 .. {})", i32::MAX);
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(time as i64)
}

/// The units of memory and how many kB each has, the largest first. A byte is less than one.
const SIZES: [(&str, i64); 4] = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)];

/// A size of memory as a whole number of kB: it is given with a unit, or in units of so many kB.
fn kilobytes(value: &str, unit: u32) -> Option<i64> {
    let text = value.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim() {
        "" => f64::from(unit),
        "B" => 1.0 / 1024.0,
        name => SIZES.iter().find(|(known, _)| *known == name)?.1 as f64,
    };
    let size = (number * factor).round_ties_even();
    (size <= f64::from(i32::MAX) * f64::from(unit)).then_some(size as i64)
}

/// A number with the largest unit of which it is a whole one.
fn shown(number: i64, units: &[(&str, i64)]) -> String {
    match units.iter().find(|(_, factor)| number > 0 && number % factor == 0) {
        Some((unit, factor)) => format!("{}{unit}", number / factor),
        None => number.to_string(),
    }
}

/// A value as `pg_settings` has it: a number of the parameter's own unit.
pub(super) fn in_base_unit(setting: &Setting, value: &str) -> String {
    let number = match setting.kind {
        Kind::Time => milliseconds(setting.name, value).ok(),
        Kind::Memory(unit) => kilobytes(value, unit).map(|size| size / i64::from(unit)),
        _ => None,
    };
    number.map_or_else(|| value.to_owned(), |number| number.to_string())
}

/// `DateStyle`: dates are written as ISO 8601 has them, and a month is read before a day.
pub(super) fn check_date_style(value: &str) -> Result<(), SqlError> {
    for word in value.split(',').map(|word| word.trim().to_ascii_lowercase()) {
        match word.as_str() {
            "iso" | "mdy" | "us" | "noneuro" | "noneuropean" | "default" => {}
            "sql" | "postgres" | "german" => {
                return Err(SqlError::unsupported(format!(
                    "the value \"{value}\" of parameter \"datestyle\""
                )));
            }
            "dmy" | "ymd" | "euro" | "european" => {
                let what = format!("the value \"{value}\" of parameter \"datestyle\"");
                return Err(SqlError::unsupported(what).with_hint(
                    "The order is MDY. Write dates as 2026-12-31, which is read in the same way in every order.",
                ));
            }
            _ => return Err(invalid("DateStyle", value)),
        }
    }
    Ok(())
}

/// `extra_float_digits`: numbers are always written so that they are read as the same ones.
pub(super) fn check_float_digits(value: &str) -> Result<(), SqlError> {
    match value.trim().parse::<i32>() {
        Ok(1..=3) => Ok(()),
        Ok(-15..=0) => {
            let what = format!("the value {value} of parameter \"extra_float_digits\"");
            Err(SqlError::unsupported(what)
                .with_hint("Numbers are written with the digits that it takes to read the same ones. Use round() or to_char() for fewer."))
        }
        Ok(other) => {
            let message =
                format!("{other} is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        Err(_) => Err(invalid("extra_float_digits", value)),
    }
}

fn invalid(name: &str, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
