//! Which values parameters of a session can have.

use std::borrow::Cow;

use super::settings::truth;
use crate::error::{SqlError, SqlState};

/// What values a parameter takes whose values nothing else looks at.
enum Kind {
    Boolean,
    /// A number.
    Cost,
    /// A number, which may have a unit of memory.
    Memory,
    /// One of several words.
    Word(&'static [&'static str]),
}

const LEVELS: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "check_function_bodies"
        | "default_transaction_deferrable"
        | "default_transaction_read_only"
        | "escape_string_warning"
        | "geqo"
        | "jit"
        | "row_security"
        | "synchronize_seqscans"
        | "transaction_deferrable"
        | "transaction_read_only" => Kind::Boolean,
        name if name.starts_with("enable_") => Kind::Boolean,
        "max_parallel_workers_per_gather"
        | "parallel_setup_cost"
        | "parallel_tuple_cost"
        | "random_page_cost"
        | "seq_page_cost" => Kind::Cost,
        "maintenance_work_mem" | "min_parallel_table_scan_size" | "work_mem" => Kind::Memory,
        "default_transaction_isolation" | "transaction_isolation" => Kind::Word(LEVELS),
        "synchronous_commit" => Kind::Word(&["local", "remote_write", "remote_apply", "on", "off"]),
        "xmloption" => Kind::Word(&["content", "document"]),
        _ => return None,
    })
}

/// The value that a parameter gets, if it is one of those that nothing but `SHOW` looks at; `None` for another.
pub(super) fn checked<'v>(name: &str, value: &'v str) -> Option<Result<Cow<'v, str>, SqlError>> {
    let lower = value.trim().to_ascii_lowercase();
    Some(match kind(name)? {
        Kind::Boolean => match truth(&lower) {
            Some(is_on) => Ok(Cow::Borrowed(if is_on { "on" } else { "off" })),
            None => {
                let message = format!("parameter \"{name}\" requires a Boolean value");
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        },
        Kind::Cost if lower.parse::<f64>().is_ok_and(|cost| cost >= 0.0) => Ok(Cow::Borrowed(value)),
        Kind::Memory if is_memory(value.trim()) => Ok(Cow::Borrowed(value)),
        Kind::Cost => Err(invalid(name, value)),
        Kind::Memory => {
            let hint = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
            Err(invalid(name, value).with_hint(hint))
        }
        Kind::Word(words) if words.contains(&lower.as_str()) => Ok(Cow::Owned(lower)),
        // PostgreSQL takes the forms of a Boolean for these two words, too.
        Kind::Word(words) if words.contains(&"on") && truth(&lower).is_some() => Ok(Cow::Owned(lower)),
        Kind::Word(words) => {
            Err(invalid(name, value).with_hint(format!("Available values: {}.", words.join(", "))))
        }
    })
}

fn is_memory(value: &str) -> bool {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let is_unit = matches!(value[end..].trim(), "" | "B" | "kB" | "MB" | "GB" | "TB");
    is_unit && value[..end].parse::<f64>().is_ok()
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
