//! What statements name without a plan: what has only to be there, and what `COPY` is about.

use sqlparser::ast::{Ident, ObjectName};

use super::names::{name_of, qualified};
use super::{Binder, Surroundings, undefined_table};
use crate::catalog::{Catalog, Definition, system};
use crate::error::{SqlError, SqlState};

/// The columns of a table that `COPY` is about, if it is not about all: those that are named, or else those that are not generated.
///
/// # Errors
/// If a generated one is named.
pub fn copied(
    table: &ObjectName,
    named: &[Ident],
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Result<Vec<Ident>, SqlError> {
    let (schema, name) = qualified(table)?;
    let Some((_, Definition::Table(table))) =
        Binder::new(catalog, surroundings).find(schema.as_deref(), &name)
    else {
        // What is wrong with it, the statement says that it comes to.
        return Ok(named.to_vec());
    };
    let is_generated = |column: &str| {
        table.column(column).is_some_and(|number| table.columns[usize::from(number)].generated.is_some())
    };
    if let Some(column) = named.iter().map(name_of).find(|column| is_generated(column)) {
        let message = format!("column \"{column}\" is a generated column");
        return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
            .with_detail("Generated columns cannot be used in COPY."));
    }
    if !named.is_empty() || !table.columns.iter().any(|column| column.generated.is_some()) {
        return Ok(named.to_vec());
    }
    let given = table.columns.iter().filter(|column| !column.dropped && column.generated.is_none());
    Ok(given.map(|column| Ident::with_quote('"', &column.name)).collect())
}

/// Fails unless a name is that of a table or view, which can be locked.
///
/// # Errors
/// As PostgreSQL says it.
pub fn locked(name: &ObjectName, catalog: &Catalog, surroundings: &Surroundings) -> Result<(), SqlError> {
    let (schema, name) = qualified(name)?;
    match Binder::new(catalog, surroundings).find(schema.as_deref(), &name) {
        Some((_, Definition::Table(_) | Definition::View { .. })) => Ok(()),
        Some(_) => {
            let message = format!("\"{name}\" is not a table or view");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        None if schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
            && system::table_object(&name).is_some() =>
        {
            Ok(())
        }
        None => Err(undefined_table(schema.as_deref(), &name)),
    }
}
