//! Functions that programs ask the catalog with.

use super::*;
use crate::bind::names::{names_in, quoted};

pub(super) const TABLE: &[Entry] =
    &[lenient("format_type", &[Kind::Of(SqlType::OID), INT4], TEXT, |arguments, _| {
        let Some(Datum::Int(oid)) = arguments.first() else { return Ok(Datum::Null) };
        let modifier = match arguments.get(1) {
            Some(Datum::Int(modifier)) => Some(*modifier as i32),
            _ => None,
        };
        Ok(Datum::Text(format_type(*oid as u32, modifier)))
    })];

/// Those that come with casts to `regclass`. They are the last of all, so that others keep their numbers.
pub(super) const NAMES: &[Entry] = &[
    strict(NAME_AS_QUOTED, &[TEXT], TEXT, |arguments, _| {
        let text = text(arguments, 0)?;
        let names = names_in(text, '.').filter(|names| names.len() <= 3);
        let names = names.ok_or_else(|| SqlError::new(SqlState::INVALID_NAME, "invalid name syntax"))?;
        let last = &names[names.len().saturating_sub(2)..];
        Ok(Datum::Text(last.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(".")))
    }),
    strict(NUMBER_OF_NONE, &[TEXT], Kind::Of(SqlType::OID), |arguments, _| {
        let name = text(arguments, 0)?;
        match name.trim().parse::<u32>() {
            Ok(number) => Ok(Datum::Int(i64::from(number))),
            Err(_) => {
                let message = format!("relation \"{}\" does not exist", name.replace('"', ""));
                Err(SqlError::new(SqlState::UNDEFINED_TABLE, message))
            }
        }
    }),
];

/// A name with its schema, if it has one, as [`quoted`] writes it: what `regclass` compares texts by that are computed. No statement can
/// call it, since no name of its own has such letters.
pub(crate) const NAME_AS_QUOTED: &str = "name as quoted";

/// The number that a text is which names no relation; else it is an error.
pub(crate) const NUMBER_OF_NONE: &str = "number of none";

fn format_type(oid: u32, modifier: Option<i32>) -> String {
    match SqlType::from_oid(oid, modifier.unwrap_or(-1)) {
        // Not the same as `character`, which has the length 1.
        Some(ty) if ty.is_same(SqlType::CHAR) && modifier == Some(-1) => "bpchar".to_owned(),
        Some(ty) => ty.name(),
        None if oid == 0 => "-".to_owned(),
        None => "???".to_owned(),
    }
}
