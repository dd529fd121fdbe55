//! What statements name that do nothing with it: it has to be there all the same.

use sqlparser::ast::{CommentObject, ObjectName};

use super::catalog_functions::type_number;
use super::names::{last_name, name_of, qualified};
use super::types::undefined as undefined_type;
use super::{Binder, Surroundings, undefined_table};
use crate::catalog::{Catalog, Definition, FIRST_USER, system, user_definition};
use crate::error::{SqlError, SqlState};
use crate::syntax::commented_constraint;
use crate::types::Datum;

/// Fails unless there is what `COMMENT ON` is about.
///
/// # Errors
/// As PostgreSQL says that it is not there.
pub fn commented(
    kind: CommentObject,
    name: &ObjectName,
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Result<(), SqlError> {
    let undefined = |kind: &str, name: &str| {
        let message = format!("{kind} \"{name}\" does not exist");
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
    };
    let last = last_name(name)?;
    match kind {
        CommentObject::Table
        | CommentObject::View
        | CommentObject::Index
        | CommentObject::Sequence
        | CommentObject::MaterializedView
        | CommentObject::ForeignTable => {
            let (schema, name) = qualified(name)?;
            let Some((_, found)) = Binder::new(catalog, surroundings).find(schema.as_deref(), &name) else {
                return Err(undefined_table(schema.as_deref(), &name));
            };
            let is_it = match found {
                Definition::Table(_) => kind == CommentObject::Table,
                Definition::View { .. } => kind == CommentObject::View,
                Definition::Index(_) => kind == CommentObject::Index,
                Definition::Sequence(_) => kind == CommentObject::Sequence,
                _ => false,
            };
            if is_it {
                return Ok(());
            }
            let kind = kind.to_string().to_lowercase();
            let article = if kind == "index" { "an" } else { "a" };
            let message = format!("\"{name}\" is not {article} {kind}");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        CommentObject::Column => match commented_constraint(name) {
            Some((table, constraint)) => {
                constraint_of(&table, &name_of(&constraint), &mut Binder::new(catalog, surroundings))
            }
            None => commented_column(name, catalog, surroundings),
        },
        CommentObject::Schema if !catalog.has_schema(&last) => {
            let message = format!("schema \"{last}\" does not exist");
            Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message))
        }
        CommentObject::Schema => Ok(()),
        CommentObject::Database if last != surroundings.database => {
            let message = format!("database \"{last}\" does not exist");
            Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message))
        }
        CommentObject::Database => Ok(()),
        CommentObject::Role | CommentObject::User
            if last != FIRST_USER && catalog.get("", &user_definition(&last)).is_none() =>
        {
            undefined("role", &last)
        }
        CommentObject::Role | CommentObject::User => Ok(()),
        CommentObject::Extension if last != "plpgsql" => undefined("extension", &last),
        CommentObject::Extension => Ok(()),
        CommentObject::Type => match type_number(&name.to_string()) {
            Datum::Null => Err(undefined_type(&name.to_string())),
            _ => Ok(()),
        },
        other => undefined(&other.to_string().to_lowercase(), &last),
    }
}

/// Fails unless a table has a constraint.
fn constraint_of(table: &ObjectName, constraint: &str, binder: &mut Binder<'_>) -> Result<(), SqlError> {
    let (schema, name) = qualified(table)?;
    let has_it = match binder.find(schema.as_deref(), &name) {
        Some((_, Definition::Table(table))) => table.constraints().any(|known| known == constraint),
        Some((_, Definition::Index(_))) => {
            let message = format!("cannot open relation \"{name}\"");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        Some(_) => false,
        None => return Err(undefined_table(schema.as_deref(), &name)),
    };
    if has_it {
        return Ok(());
    }
    let message = format!("constraint \"{constraint}\" for table \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

fn commented_column(
    name: &ObjectName,
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Result<(), SqlError> {
    let mut parts = name.clone();
    let column = parts.0.pop().map(|part| ObjectName(vec![part]));
    let column = column.as_ref().map(last_name).transpose()?.unwrap_or_default();
    let (schema, relation) = qualified(&parts)?;
    let is_there = match Binder::new(catalog, surroundings).find(schema.as_deref(), &relation) {
        Some((_, Definition::Table(table))) => table.column(&column).is_some(),
        Some((_, Definition::View { columns, .. })) => columns.contains(&column),
        Some(_) => {
            let message = format!("cannot set comment on relation \"{relation}\"");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        None => return Err(undefined_table(schema.as_deref(), &relation)),
    };
    if is_there {
        return Ok(());
    }
    let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
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
