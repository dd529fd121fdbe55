//! Functions of values of any type.

use super::*;
use crate::types::compare;

pub(super) const TABLE: &[Entry] = &[
    variadic("greatest", &[Kind::Common], Kind::Common, |values, _| Ok(extreme(values, true))),
    variadic("least", &[Kind::Common], Kind::Common, |values, _| Ok(extreme(values, false))),
    variadic("num_nulls", &[Kind::Any], INT4, |a, _| count(a, |value| value.is_null())),
    variadic("num_nonnulls", &[Kind::Any], INT4, |a, _| count(a, |value| !value.is_null())),
    lenient("format", &[TEXT], TEXT, |a, _| match a.first() {
        Some(Datum::Text(pattern)) => format::format(pattern, &[]),
        _ => Ok(Datum::Null),
    }),
    variadic("format", &[TEXT, Kind::Any], TEXT, |a, context| match shown(a, context.zone)?.split_first() {
        Some((Some(pattern), arguments)) => format::format(pattern, arguments),
        _ => Ok(Datum::Null),
    }),
    strict("quote_literal", &[Kind::Any], TEXT, |a, context| quoted(a, context.zone)),
    lenient("quote_nullable", &[Kind::Any], TEXT, |a, context| match a.first() {
        Some(Datum::Null) => Ok(Datum::Text("NULL".to_owned())),
        _ => quoted(a, context.zone),
    }),
];

fn count(arguments: &[Datum], test: fn(&Datum) -> bool) -> Result<Datum, SqlError> {
    let values = pairs(arguments).collect::<Result<Vec<_>, SqlError>>()?;
    Ok(Datum::Int(values.iter().filter(|(value, _)| test(value)).count() as i64))
}

fn quoted(arguments: &[Datum], zone: Zone) -> Result<Datum, SqlError> {
    let (value, ty) = pairs(arguments).next().ok_or_else(|| unexpected(0))??;
    // As it is cast to a text, and not as it is shown.
    let text = cast::cast(value.clone(), ty, SqlType::TEXT, zone)?;
    Ok(Datum::Text(strings::quote_literal(super::text(&[text], 0)?)))
}

/// The greatest or least value that is not `Null`; of equal ones the first.
fn extreme(values: &[Datum], greatest: bool) -> Datum {
    let mut best = &Datum::Null;
    for value in values.iter().filter(|value| !value.is_null()) {
        let order = compare::compare(value, best);
        if best.is_null() || (if greatest { order.is_gt() } else { order.is_lt() }) {
            best = value;
        }
    }
    best.clone()
}
