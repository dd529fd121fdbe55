//! Values of `jsonb` with a change at a path: `jsonb_set`, `jsonb_insert` and `#-`.

use super::*;

/// What is done at the end of a path.
pub(super) enum Change<'c> {
    Delete,
    /// Replaces what is there; makes it if it is not there and the flag says so.
    Set(&'c str, bool),
    /// Puts an element before, or after, the one that is there; a key must not be there.
    Insert(&'c str, bool),
}

pub(super) fn path_of(path: &[Datum]) -> Result<Vec<&str>, SqlError> {
    let mut steps = Vec::with_capacity(path.len());
    for (at, step) in (1..).zip(path) {
        match step {
            Datum::Text(step) => steps.push(step.as_str()),
            _ => {
                let message = format!("path element at position {at} is null");
                return Err(SqlError::new(SqlState(*b"22004"), message));
            }
        }
    }
    Ok(steps)
}

pub(super) fn set(arguments: &[Datum], creates: bool) -> Result<Datum, SqlError> {
    let item = item(arguments)?;
    if matches!(item.value, Value::Null | Value::Bool | Value::Number | Value::String(_)) {
        return Err(parameter_error("cannot set path in scalar"));
    }
    let path = path_of(array(arguments, 1)?)?;
    // There is nothing in it to be found, whatever the path is.
    if !creates && item.is_empty() {
        return Ok(jsonb(item.text.to_owned()));
    }
    change(&item, &path, &Change::Set(text(arguments, 2)?, creates)).map(jsonb)
}

pub(super) fn insert(arguments: &[Datum], after: bool) -> Result<Datum, SqlError> {
    let item = item(arguments)?;
    if matches!(item.value, Value::Null | Value::Bool | Value::Number | Value::String(_)) {
        return Err(parameter_error("cannot set path in scalar"));
    }
    let path = path_of(array(arguments, 1)?)?;
    change(&item, &path, &Change::Insert(text(arguments, 2)?, after)).map(jsonb)
}

/// The value with a change at a path.
pub(super) fn change(item: &Item<'_>, path: &[&str], what: &Change<'_>) -> Result<String, SqlError> {
    let mut out = String::with_capacity(item.text.len());
    change_from(item, (path, 1), what, &mut out)?;
    Ok(out)
}

/// A part of a value that is written with a change.
enum Piece<'p> {
    /// As it is.
    Whole(&'p str),
    /// With the change in it.
    Changed(&'p Item<'p>),
}

/// Writes a value with a change at a path, which is the rest of one from a level on.
fn change_from(
    item: &Item<'_>,
    (path, level): (&[&str], usize),
    what: &Change<'_>,
    out: &mut String,
) -> Result<(), SqlError> {
    let mut outcome = Ok(());
    let Some((step, rest)) = path.split_first() else {
        out.push_str(item.text);
        return Ok(());
    };
    let put = |piece: Piece<'_>, out: &mut String| match piece {
        Piece::Whole(text) => out.push_str(text),
        Piece::Changed(item) => {
            if outcome.is_ok() {
                outcome = change_from(item, (rest, level + 1), what, out);
            }
        }
    };
    match &item.value {
        Value::Object(fields) => {
            let pieces = changed_fields(fields, step, rest.is_empty(), what)?;
            put_object(pieces.into_iter(), out, put);
        }
        Value::Array(items) => {
            put_array(changed_elements(items, step, (rest.is_empty(), level), what)?, out, put);
        }
        _ => out.push_str(item.text),
    }
    outcome
}

/// The fields of an object with a change in one of them, which is the end of its path if it `is_last`.
fn changed_fields<'p>(
    fields: &'p [(String, Item<'p>)],
    step: &'p str,
    is_last: bool,
    what: &Change<'p>,
) -> Result<Vec<(&'p str, Piece<'p>)>, SqlError> {
    let mut changed = Vec::with_capacity(fields.len() + 1);
    let is_there = fields.iter().any(|(key, _)| key == step);
    for (key, value) in fields {
        let piece = match what {
            _ if key != step => Piece::Whole(value.text),
            _ if !is_last => Piece::Changed(value),
            Change::Delete => continue,
            Change::Set(new, _) => Piece::Whole(new),
            Change::Insert(..) => {
                return Err(parameter_error("cannot replace existing key")
                    .with_hint("Try using the function jsonb_set to replace key value."));
            }
        };
        changed.push((key.as_str(), piece));
    }
    if !is_there
        && is_last
        && let Change::Set(new, true) | Change::Insert(new, _) = what
    {
        changed.push((step, Piece::Whole(new)));
    }
    Ok(changed)
}

/// The same of the elements of an array.
fn changed_elements<'p>(
    items: &'p [Item<'p>],
    step: &str,
    (is_last, level): (bool, usize),
    what: &Change<'p>,
) -> Result<Vec<Piece<'p>>, SqlError> {
    let number: i32 = step.trim().parse().map_err(|_| {
        let message = format!("path element at position {level} is not an integer: \"{step}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })?;
    let mut changed: Vec<Piece<'_>> = items.iter().map(|item| Piece::Whole(item.text)).collect();
    match (place(items.len(), number.into()), what) {
        (Some(place), _) if !is_last => changed[place] = Piece::Changed(&items[place]),
        (Some(place), Change::Delete) => drop(changed.remove(place)),
        (Some(place), Change::Set(new, _)) => changed[place] = Piece::Whole(new),
        (Some(place), Change::Insert(new, after)) => {
            changed.insert(place + usize::from(*after), Piece::Whole(new));
        }
        // Beyond the ends it is put at the end or the start.
        (None, Change::Set(new, true) | Change::Insert(new, _)) if is_last => {
            changed.insert(if number < 0 { 0 } else { items.len() }, Piece::Whole(new));
        }
        (None, _) => {}
    }
    Ok(changed)
}
