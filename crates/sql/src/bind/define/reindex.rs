//! `REINDEX`: indexes that nobody went on filling, since the process that did ended.

use sqlparser::ast::ObjectName;

use super::super::names::qualified;
use super::super::{Binder, Surroundings, undefined_table};
use super::Build;
use crate::catalog::{Catalog, Definition};
use crate::error::{SqlError, SqlState};
use crate::plan::IndexState;

/// The indexes that are to be filled so that a table has all that it should, or one index.
///
/// # Errors
/// When there is none with that name.
pub fn unfinished(
    name: &ObjectName,
    is_table: bool,
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Result<Vec<Build>, SqlError> {
    let (schema, name) = qualified(name)?;
    let found = Binder::new(catalog, surroundings).find(schema.as_deref(), &name);
    let (schema, table, index) = match found {
        Some((schema, Definition::Table(_))) if is_table => (schema, name, None),
        Some((schema, Definition::Index(table))) if !is_table => (schema, table.clone(), Some(name)),
        Some(_) => {
            let kind = if is_table { "a table" } else { "an index" };
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {kind}")));
        }
        None => return Err(undefined_table(schema.as_deref(), &name)),
    };
    let Some(Definition::Table(definition)) = catalog.get(&schema, &table) else {
        return Err(undefined_table(Some(&schema), &table));
    };
    let is_meant = |known: &str| index.as_ref().is_none_or(|index| index == known);
    let indexes = definition.indexes.iter();
    let indexes = indexes.filter(|known| known.state == IndexState::Building && is_meant(&known.name));
    let build = |known: &crate::catalog::Index| Build {
        schema: schema.clone(),
        table: table.clone(),
        index: known.name.clone(),
    };
    Ok(indexes.map(build).collect())
}
