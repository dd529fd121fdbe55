//! Functions of arrays, which have one dimension.

use super::*;
use crate::types::compare;
use crate::types::text as text_form;

const TEXTS: Kind = Kind::Of(SqlType::TEXT.array_of());

pub(super) const TABLE: &[Entry] = &[
    strict("array_length", &[Kind::Array, INT4], INT4, |a, _| length(a)),
    strict("array_upper", &[Kind::Array, INT4], INT4, |a, _| length(a)),
    strict("array_lower", &[Kind::Array, INT4], INT4, |arguments, _| {
        let has = !array(arguments, 0)?.is_empty() && int(arguments, 1)? == 1;
        Ok(if has { Datum::Int(1) } else { Datum::Null })
    }),
    strict("array_ndims", &[Kind::Array], INT4, |a, _| {
        Ok(if array(a, 0)?.is_empty() { Datum::Null } else { Datum::Int(1) })
    }),
    strict("array_dims", &[Kind::Array], TEXT, |a, _| {
        let length = array(a, 0)?.len();
        Ok(if length == 0 { Datum::Null } else { Datum::Text(format!("[1:{length}]")) })
    }),
    strict("cardinality", &[Kind::Array], INT4, |arguments, _| {
        Ok(Datum::Int(array(arguments, 0)?.len() as i64))
    }),
    lenient("array_position", &[Kind::Array, Kind::Element], INT4, |a, _| position(a, 1)),
    lenient("array_position", &[Kind::Array, Kind::Element, INT4], INT4, |a, _| position(a, int(a, 2)?)),
    lenient("array_positions", &[Kind::Array, Kind::Element], Kind::Of(SqlType::INT4.array_of()), |a, _| {
        let [Datum::Array(values), wanted] = a else { return Ok(Datum::Null) };
        let found = (1..).zip(values).filter(|(_, value)| compare::equal(value, wanted));
        Ok(Datum::Array(found.map(|(at, _)| Datum::Int(at)).collect()))
    }),
    lenient("array_append", &[Kind::Array, Kind::Element], Kind::Array, |arguments, _| {
        let mut values = elements(arguments.first());
        values.extend(arguments.get(1).cloned());
        Ok(Datum::Array(values))
    }),
    lenient("array_prepend", &[Kind::Element, Kind::Array], Kind::Array, |arguments, _| {
        let mut values = arguments[..1].to_vec();
        values.extend(elements(arguments.get(1)));
        Ok(Datum::Array(values))
    }),
    lenient("array_cat", &[Kind::Array, Kind::Array], Kind::Array, |arguments, _| {
        if arguments.iter().all(|value| value.is_null()) {
            return Ok(Datum::Null);
        }
        let mut values = elements(arguments.first());
        values.extend(elements(arguments.get(1)));
        Ok(Datum::Array(values))
    }),
    lenient("array_remove", &[Kind::Array, Kind::Element], Kind::Array, |arguments, _| {
        let [Datum::Array(values), unwanted] = arguments else { return Ok(Datum::Null) };
        let kept = values.iter().filter(|value| !compare::equal(value, unwanted));
        Ok(Datum::Array(kept.cloned().collect()))
    }),
    lenient("array_replace", &[Kind::Array, Kind::Element, Kind::Element], Kind::Array, |arguments, _| {
        let [Datum::Array(values), from, to] = arguments else { return Ok(Datum::Null) };
        let replaced = values.iter().map(|value| if compare::equal(value, from) { to } else { value });
        Ok(Datum::Array(replaced.cloned().collect()))
    }),
    strict("trim_array", &[Kind::Array, INT4], Kind::Array, |a, _| {
        let (values, count) = (array(a, 0)?, int(a, 1)?);
        let Some(kept) = usize::try_from(count).ok().and_then(|count| values.len().checked_sub(count)) else {
            let message = format!("number of elements to trim must be between 0 and {}", values.len());
            return Err(SqlError::new(SqlState(*b"2202E"), message));
        };
        Ok(Datum::Array(values[..kept].to_vec()))
    }),
    // The operators `@>`, `<@` and `&&`.
    strict("arraycontains", &[Kind::Array, Kind::Array], BOOL, |a, _| Ok(Datum::Bool(has_all(a, 0, 1)?))),
    strict("arraycontained", &[Kind::Array, Kind::Array], BOOL, |a, _| Ok(Datum::Bool(has_all(a, 1, 0)?))),
    strict("arrayoverlap", &[Kind::Array, Kind::Array], BOOL, |a, _| {
        let (left, right) = (array(a, 0)?, array(a, 1)?);
        Ok(Datum::Bool(right.iter().any(|value| has(left, value))))
    }),
    // A part of an array: `array[from:to]`.
    lenient("array_slice", &[Kind::Array, INT4, INT4], Kind::Array, |a, _| {
        let [Datum::Array(values), Datum::Int(first), Datum::Int(last)] = a else { return Ok(Datum::Null) };
        let first = usize::try_from(*first - 1).unwrap_or(0).min(values.len());
        let last = usize::try_from(*last).unwrap_or(0).min(values.len());
        Ok(Datum::Array(values[first..last.max(first)].to_vec()))
    }),
    lenient("string_to_array", &[TEXT, TEXT], TEXTS, |a, _| string_to_array(a)),
    lenient("string_to_array", &[TEXT, TEXT, TEXT], TEXTS, |a, _| string_to_array(a)),
    lenient("array_to_string", &[Kind::Any, TEXT], TEXT, |a, context| array_to_string(a, context.zone)),
    lenient("array_to_string", &[Kind::Any, TEXT, TEXT], TEXT, |a, context| array_to_string(a, context.zone)),
];

fn length(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let length = array(arguments, 0)?.len();
    let has = length > 0 && int(arguments, 1)? == 1;
    Ok(if has { Datum::Int(length as i64) } else { Datum::Null })
}

fn elements(array: Option<&Datum>) -> Vec<Datum> {
    match array {
        Some(Datum::Array(values)) => values.clone(),
        _ => Vec::new(),
    }
}

fn position(arguments: &[Datum], start: i64) -> Result<Datum, SqlError> {
    let Some(Datum::Array(values)) = arguments.first() else { return Ok(Datum::Null) };
    let wanted = arguments.get(1).ok_or_else(|| unexpected(1))?;
    let found = (1..).zip(values).find(|(at, value)| *at >= start && compare::equal(value, wanted));
    Ok(found.map_or(Datum::Null, |(at, _)| Datum::Int(at)))
}

/// Whether a value that is not null is among others.
fn has(values: &[Datum], wanted: &Datum) -> bool {
    !wanted.is_null() && values.iter().any(|value| compare::equal(value, wanted))
}

fn has_all(arguments: &[Datum], values: usize, wanted: usize) -> Result<bool, SqlError> {
    let values = array(arguments, values)?;
    Ok(array(arguments, wanted)?.iter().all(|wanted| has(values, wanted)))
}

/// The pieces of a text between separators; a piece that is the third argument is null. Without a separator each character is one.
pub(super) fn string_to_array(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let Some(Datum::Text(value)) = arguments.first() else { return Ok(Datum::Null) };
    let null = match arguments.get(2) {
        Some(Datum::Text(null)) => Some(null),
        _ => None,
    };
    let piece = |text: &str| {
        if null.is_some_and(|null| null == text) { Datum::Null } else { Datum::Text(text.to_owned()) }
    };
    match arguments.get(1) {
        _ if value.is_empty() => Ok(Datum::Array(Vec::new())),
        Some(Datum::Text(separator)) if separator.is_empty() => Ok(Datum::Array(vec![piece(value)])),
        Some(Datum::Text(separator)) => array_of(value.split(separator.as_str()).map(piece)),
        _ => array_of(value.chars().map(|character| piece(character.encode_utf8(&mut [0; 4])))),
    }
}

/// An array, unless it has more elements than may be.
pub(super) fn array_of(all: impl Iterator<Item = Datum>) -> Result<Datum, SqlError> {
    let mut elements = Vec::new();
    for element in all {
        check_length((elements.len() + 1) * size_of::<Datum>())?;
        elements.push(element);
    }
    Ok(Datum::Array(elements))
}

/// The elements as texts with a separator between them; nulls are left out, or are the third argument.
fn array_to_string(arguments: &[Datum], zone: Zone) -> Result<Datum, SqlError> {
    let values = pairs(arguments).collect::<Result<Vec<_>, SqlError>>()?;
    let (elements, ty, separator) = match values.as_slice() {
        [(Datum::Array(elements), ty), (Datum::Text(separator), _), ..] => (elements, *ty, separator),
        [(Datum::Null, _), ..] | [_, (Datum::Null, _), ..] => return Ok(Datum::Null),
        _ => {
            let types: Vec<SqlType> = values.iter().map(|(_, ty)| *ty).collect();
            return Err(undefined("array_to_string", &types));
        }
    };
    let null = values.get(2).and_then(|(null, _)| match null {
        Datum::Text(null) => Some(null.clone()),
        _ => None,
    });
    let (mut shown, mut is_first) = (String::new(), true);
    for element in elements {
        let text = match element {
            Datum::Null => null.clone(),
            element => Some(text_form::to_string(element, ty.element(), zone)),
        };
        let Some(text) = text else { continue };
        check_length(shown.len().saturating_add(separator.len()).saturating_add(text.len()))?;
        if !std::mem::take(&mut is_first) {
            shown.push_str(separator);
        }
        shown.push_str(&text);
    }
    Ok(Datum::Text(shown))
}

/// What the elements of an array of `char(n)` get their blanks by. No statement can call it, since no name of its own has a blank.
pub(crate) const PAD_EACH: &str = "pad each";

/// The elements with blanks up to a length.
fn pad_each(values: &[Datum], length: &Datum) -> Result<Datum, SqlError> {
    let padded = values.iter().map(|value| match value {
        Datum::Null => Ok(Datum::Null),
        value => strings::pad(&[value.clone(), length.clone()], false),
    });
    padded.collect::<Result<_, _>>().map(Datum::Array)
}

/// See [`PAD_EACH`]. It is behind all others, so that those keep their numbers.
pub(super) const LATER: &[Entry] =
    &[strict(PAD_EACH, &[TEXTS, INT4], TEXTS, |a, _| pad_each(array(a, 0)?, &a[1]))];
