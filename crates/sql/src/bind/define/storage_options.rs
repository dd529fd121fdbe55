//! The storage options of tables and indexes: one of our own, and those of PostgreSQL, which mean nothing here.

use sqlparser::ast::{CreateTableOptions, Expr, SqlOption, Value};

use super::super::names::parts_of;
use crate::error::{SqlError, SqlState};
use crate::session::truth;

/// Those that PostgreSQL knows, but for the ones that begin with `autovacuum_`.
const KNOWN: [&str; 14] = [
    "buffering",
    "deduplicate_items",
    "fastupdate",
    "fillfactor",
    "gin_pending_list_limit",
    "log_autovacuum_min_duration",
    "oids",
    "pages_per_range",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_max_eager_freeze_failure_rate",
    "vacuum_truncate",
];

/// The option that makes a table one of which every partition has all rows.
const REPLICATED: &str = "replicated";

/// Whether the options of a new table have `replicated`.
pub(super) fn is_replicated(options: &CreateTableOptions) -> Result<bool, SqlError> {
    let options = match options {
        CreateTableOptions::None => return Ok(false),
        CreateTableOptions::With(options) => options,
        other => return Err(SqlError::unsupported(format!("the option {other}"))),
    };
    let mut is_replicated = false;
    for option in options {
        match named(option)? {
            (name, None) if name == REPLICATED => is_replicated = true,
            (name, Some(value)) if name == REPLICATED => {
                is_replicated = truth(&value).ok_or_else(|| {
                    let message = format!("invalid value for boolean option \"{REPLICATED}\": {value}");
                    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                })?;
            }
            (name, _) => check_name(&name)?,
        }
    }
    Ok(is_replicated)
}

/// Fails unless options are known, and mean nothing.
pub(super) fn check_options(options: &[Expr]) -> Result<(), SqlError> {
    for option in options {
        let name = match option {
            Expr::BinaryOp { left, .. } => left.as_ref(),
            other => other,
        };
        check_name(&name.to_string().to_ascii_lowercase())?;
    }
    Ok(())
}

/// The same for those of a table that is there.
pub(super) fn check_changed(options: &[SqlOption]) -> Result<(), SqlError> {
    for option in options {
        let (name, _) = named(option)?;
        if name == REPLICATED {
            return Err(SqlError::unsupported("ALTER TABLE with the option replicated")
                .with_hint("Create a table WITH (replicated = true), and copy the rows."));
        }
        check_name(&name)?;
    }
    Ok(())
}

fn named(option: &SqlOption) -> Result<(String, Option<String>), SqlError> {
    match option {
        SqlOption::Ident(name) => Ok((parts_of(name)?.join("."), None)),
        SqlOption::KeyValue { key, value } => {
            let value = match value {
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) => text.clone(),
                    other => other.to_string(),
                },
                other => other.to_string(),
            };
            Ok((parts_of(key)?.join("."), Some(value)))
        }
        other => Err(SqlError::unsupported(format!("the option {other}"))),
    }
}

fn check_name(name: &str) -> Result<(), SqlError> {
    let plain = name.strip_prefix("toast.").unwrap_or(name);
    if plain.starts_with("autovacuum_") || KNOWN.contains(&plain) {
        return Ok(());
    }
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unrecognized parameter \"{name}\"")))
}
