//! Constraints and indexes as they are written: their columns, and what is refused.

use std::collections::BTreeSet;

use sqlparser::ast::{
    ConstraintCharacteristics, DeferrableInitial, Expr, Ident, IndexColumn, IndexType, NullsDistinctOption,
    OrderBySort, TableConstraint, UniqueConstraint,
};

use super::super::names::name_of;
use super::super::{Binder, Surroundings, walk};
use super::create::{NewKey, Parts};
use super::foreign_keys::{NewForeignKey, numbers_of};
use super::indexes::included_columns;
use crate::catalog::{Catalog, ColumnOrder, Table};
use crate::error::{SqlError, SqlState};

/// Most columns of a key or an index.
pub(super) const KEY_COLUMNS_MAX: usize = 32;

pub(super) fn constrain(
    name: &str,
    table: &Table,
    parts: &mut Parts,
    constraint: &TableConstraint,
) -> Result<(), SqlError> {
    match constraint {
        TableConstraint::PrimaryKey(key) => {
            refuse_late("PRIMARY KEY", key.characteristics.as_ref())?;
            let columns = key_columns(table, &key.columns)?;
            let included = included_columns(table, &key.include)?;
            set_key(name, parts, NewKey { name: key.name.as_ref().map(name_of), columns, included })
        }
        TableConstraint::Unique(unique) => {
            refuse_unique(unique)?;
            let columns = key_columns(table, &unique.columns)?;
            let included = included_columns(table, &unique.include)?;
            parts.unique.push(NewKey { name: unique.name.as_ref().map(name_of), columns, included });
            Ok(())
        }
        TableConstraint::Check(check) => {
            parts.checks.push((check.name.as_ref().map(name_of), check.expr.to_string()));
            Ok(())
        }
        TableConstraint::ForeignKey(written) => {
            let name = written.name.as_ref().map(name_of);
            let (columns, written) = (numbers_of(table, &written.columns)?, written.clone());
            parts.foreign_keys.push(NewForeignKey { name, columns, written, not_valid: false });
            Ok(())
        }
        other => Err(SqlError::unsupported(format!("the constraint {other}"))),
    }
}

/// Refuses what is unique only at the end of a transaction.
pub(super) fn refuse_late(
    what: &str,
    characteristics: Option<&ConstraintCharacteristics>,
) -> Result<(), SqlError> {
    let is_late = |known: &ConstraintCharacteristics| {
        known.deferrable == Some(true) || known.initially == Some(DeferrableInitial::Deferred)
    };
    if characteristics.is_some_and(is_late) {
        let hint = "It is checked when rows are written; leave out DEFERRABLE.";
        return Err(SqlError::unsupported(format!("{what} DEFERRABLE")).with_hint(hint));
    }
    Ok(())
}

pub(super) fn refuse_unique(unique: &UniqueConstraint) -> Result<(), SqlError> {
    if unique.nulls_distinct == NullsDistinctOption::NotDistinct {
        return Err(SqlError::unsupported("UNIQUE NULLS NOT DISTINCT"));
    }
    refuse_late("UNIQUE", unique.characteristics.as_ref())
}

/// Refuses an index that would find what this database's do not. One of hashes finds nothing else.
pub(super) fn refuse_method(method: &IndexType) -> Result<(), SqlError> {
    match method {
        IndexType::BTree | IndexType::Hash => Ok(()),
        IndexType::Custom(name) => {
            let message = format!("access method \"{}\" does not exist", name_of(name));
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
        other => Err(SqlError::unsupported(format!("an index USING {}", other.to_string().to_lowercase()))),
    }
}

pub(super) fn set_key(table: &str, parts: &mut Parts, key: NewKey) -> Result<(), SqlError> {
    if parts.primary_key.is_some() {
        return Err(multiple_keys(table));
    }
    parts.primary_key = Some(key);
    Ok(())
}

pub(super) fn multiple_keys(table: &str) -> SqlError {
    let message = format!("multiple primary keys for table \"{table}\" are not allowed");
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

/// Fails if a table has a constraint with a name.
pub(super) fn is_free_constraint(name: &str, table: &Table, constraint: &str) -> Result<(), SqlError> {
    if table.constraint(constraint).is_some() {
        let message = format!("constraint \"{constraint}\" for relation \"{name}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    Ok(())
}

/// A name that no constraint of a table has: a stem, with a number behind it if need be.
pub(super) fn free_constraint(table: &Table, stem: &str) -> String {
    let taken: BTreeSet<&str> = table.constraints().map(|(name, _)| name).collect();
    super::first_free(stem, |name| !taken.contains(name))
}

/// The columns of a table that a check is about, by number, in the order in which they are mentioned.
pub(crate) fn columns_of_check(
    name: &str,
    table: &Table,
    condition: &str,
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Vec<u16> {
    let mut columns = Vec::new();
    if let Ok(bound) = Binder::new(catalog, surroundings).check_condition(name, table, condition) {
        walk::columns(&bound, |number| {
            if !columns.contains(&number) {
                columns.push(number);
            }
        });
    }
    columns
}

/// The numbers of the columns of a constraint.
fn key_columns(table: &Table, written: &[IndexColumn]) -> Result<Vec<u16>, SqlError> {
    if let Some(column) = written.iter().find(|column| column_order(column) != ColumnOrder::default()) {
        return Err(SqlError::unsupported(format!("the column {column} of a constraint")));
    }
    let mut columns = Vec::with_capacity(written.len());
    for column in written {
        let Expr::Identifier(name) = &column.column.expr else {
            return Err(SqlError::unsupported(format!("the expression {column} in a constraint"))
                .with_hint("Use CREATE UNIQUE INDEX."));
        };
        let number = column_of(table, name)?;
        if columns.contains(&number) {
            let message = format!("column \"{}\" appears twice", name_of(name));
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(number);
    }
    if columns.len() > KEY_COLUMNS_MAX {
        let message = format!("cannot use more than {KEY_COLUMNS_MAX} columns in an index");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(columns)
}

pub(super) fn column_order(written: &IndexColumn) -> ColumnOrder {
    let options = &written.column.options;
    let descending = matches!(options.sort, Some(OrderBySort::Desc));
    ColumnOrder { descending, nulls_first: options.nulls_first.unwrap_or(descending) }
}

pub(super) fn column_of(table: &Table, name: &Ident) -> Result<u16, SqlError> {
    let name = name_of(name);
    table.column(&name).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" named in key does not exist"))
    })
}
