//! What statements name that do nothing with it: it has to be there all the same.

use sqlparser::ast::ObjectName;

use super::names::qualified;
use super::{Binder, Surroundings, undefined_table};
use crate::catalog::{Catalog, Definition, system};
use crate::error::{SqlError, SqlState};

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
