//! Functions that programs ask the catalog with.

use super::*;
use crate::bind::names::{names_in, quoted};
use crate::types::operators::{BinaryOperator, Resolved, binary};
use crate::types::{Numeric, others};

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

/// Those that came later.
pub(super) const SIZES: &[Entry] =
    &[strict("pg_size_bytes", &[TEXT], INT8, |arguments, _| size_in_bytes(text(arguments, 0)?))];

/// A number of bytes with a unit, as `pg_size_pretty` writes it.
fn size_in_bytes(written: &str) -> Result<Datum, SqlError> {
    const UNITS: [(&str, u32); 6] =
        [("bytes", 0), ("kb", 10), ("mb", 20), ("gb", 30), ("tb", 40), ("pb", 50)];
    let invalid = || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid size: \"{written}\""));
    let trimmed = written.trim();
    let is_part = |character: char| character.is_ascii_digit() || matches!(character, '.' | '+' | '-');
    let mut end = trimmed.find(|character| !is_part(character)).unwrap_or(trimmed.len());
    // An exponent, unless the letter begins a unit.
    let rest = &trimmed[end..];
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let digits = unsigned.len() - unsigned.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        if digits > 0 {
            end += rest.len() - unsigned.len() + digits;
        }
    }
    let (number, unit) = trimmed.split_at(end);
    let number = Numeric::parse(number).map_err(|_| invalid())?;
    let unit = unit.trim().to_ascii_lowercase();
    let known = UNITS.iter().find(|(known, _)| unit == *known || unit.is_empty());
    let (_, shift) = known.ok_or_else(|| {
        let hint = "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".";
        invalid().with_hint(hint)
    })?;
    let resolved = Resolved { left: SqlType::NUMERIC, right: SqlType::NUMERIC, result: SqlType::NUMERIC };
    let factor = Datum::Numeric(Numeric::from(1_i64 << shift));
    let bytes = binary(BinaryOperator::Multiply, &Datum::Numeric(number), &factor, &resolved, Zone::Utc)?;
    cast::cast(bytes, SqlType::NUMERIC, SqlType::INT8, Zone::Utc)
}

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
        None => others::shown(oid).unwrap_or_else(|| "???".to_owned()),
    }
}
