//! Names in statements.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::error::{SqlError, SqlState};

/// Longest name in bytes; longer ones are cut, as PostgreSQL does.
const NAME_BYTES_MAX: usize = 63;

/// A name as it is looked up: in lower case unless it was in quotes.
pub(crate) fn name_of(ident: &Ident) -> String {
    let mut name =
        if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() };
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    name
}

/// The parts of a name.
pub(crate) fn parts_of(name: &ObjectName) -> Result<Vec<String>, SqlError> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Ok(name_of(ident)),
        ObjectNamePart::Function(_) => Err(SqlError::unsupported("a name that is computed")),
    };
    name.0.iter().map(part).collect()
}

/// The schema, if there is one, and the name.
pub(super) fn qualified(name: &ObjectName) -> Result<(Option<String>, String), SqlError> {
    let mut parts = parts_of(name)?;
    let last = parts.pop().unwrap_or_default();
    match parts.len() {
        0 => Ok((None, last)),
        1 | 2 => Ok((parts.pop(), last)),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {name}"),
        )),
    }
}

/// The names in a text, in quotes or not, with a character between each two; `None` if it is no such text.
pub(crate) fn names_in(text: &str, between: char) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut characters = text.trim().chars().peekable();
    loop {
        while characters.next_if(|character| character.is_whitespace()).is_some() {}
        let mut name = String::new();
        if characters.next_if_eq(&'"').is_some() {
            loop {
                match characters.next()? {
                    '"' if characters.next_if_eq(&'"').is_none() => break,
                    other => name.push(other),
                }
            }
        } else {
            let is_part =
                |character: &char| !character.is_whitespace() && *character != between && *character != '"';
            while let Some(character) = characters.next_if(is_part) {
                name.push(character.to_ascii_lowercase());
            }
            if name.is_empty() {
                return None;
            }
        }
        names.push(name);
        while characters.next_if(|character| character.is_whitespace()).is_some() {}
        match characters.next() {
            None => return Some(names),
            Some(character) if character == between => {}
            Some(_) => return None,
        }
    }
}

/// The schema, if there is one, and the name in a text, as `regclass` reads it.
pub(super) fn relation_named(text: &str) -> Result<(Option<String>, String), SqlError> {
    let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut parts = names_in(text, '.').ok_or_else(invalid)?;
    let last = parts.pop().unwrap_or_default();
    match parts.len() {
        0..=2 => Ok((parts.pop(), last)),
        _ => Err(invalid()),
    }
}

/// Fails unless texts are ordered as a collation says: by their bytes.
pub(crate) fn known_collation(collation: &ObjectName) -> Result<(), SqlError> {
    let (schema, name) = qualified(collation)?;
    let is_known = matches!(name.as_str(), "C" | "POSIX" | "default" | "ucs_basic");
    if is_known && schema.as_deref().is_none_or(|schema| schema == "pg_catalog") {
        return Ok(());
    }
    let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        .with_hint("Texts are ordered by their bytes, as COLLATE \"C\" has it."))
}

/// A name as a statement needs it.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_plain = name.bytes().all(is_plain) && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_plain && !name.is_empty() { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The name without its schema.
pub(super) fn last_name(name: &ObjectName) -> Result<String, SqlError> {
    Ok(qualified(name)?.1)
}
