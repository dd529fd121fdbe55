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

/// The name without its schema.
pub(super) fn last_name(name: &ObjectName) -> Result<String, SqlError> {
    Ok(qualified(name)?.1)
}
