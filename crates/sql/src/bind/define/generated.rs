//! Generated columns: what their expressions may be, and what becomes of them when a table changes.

use sqlparser::ast::Expr;

use super::super::{Binder, walk};
use super::Draft;
use super::dependents::{Dependent, Dependents, shown};
use crate::catalog::{Column, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;

impl Draft<'_> {
    /// Writes the expressions of generated columns, from one on, with the schemas of what they name.
    pub(super) fn qualify_generated(&self, name: &str, table: &mut Table, first: usize) {
        for place in first..table.columns.len() {
            if let Some(written) = table.columns[place].generated.clone() {
                let binder = Binder::new(&self.catalog, self.surroundings);
                let qualified = binder.qualified_expression(&written, Some((name, table)));
                table.columns[place].generated = Some(qualified);
            }
        }
    }

    /// The generated columns whose values follow from a column, by number.
    fn generated_from(&self, name: &str, table: &Table, number: u16) -> Result<Vec<u16>, SqlError> {
        let generated = Binder::new(&self.catalog, self.surroundings).generated(name, table)?;
        let reads = |value: &Expression| {
            let mut reads = false;
            walk::columns(value, |read| reads |= read == number);
            reads
        };
        Ok(generated.iter().filter(|one| reads(&one.value)).map(|one| one.column).collect())
    }

    /// The generated columns that cannot be without a column.
    pub(super) fn generated_with(
        &self,
        (schema, name): (&str, &str),
        table: &Table,
        number: u16,
        on: &str,
    ) -> Result<Dependents, SqlError> {
        let mut dependents = Dependents::default();
        for generated in self.generated_from(name, table, number)? {
            let column = table.columns[usize::from(generated)].name.clone();
            let told = format!("column {column} of table {}", shown(schema, name));
            dependents.add(Dependent::Column(column), told, on);
        }
        Ok(dependents)
    }

    /// Fails if a column that gets another type is one from which others follow.
    pub(super) fn refuse_generating(&self, name: &str, table: &Table, number: u16) -> Result<(), SqlError> {
        let Some(generated) = self.generated_from(name, table, number)?.first().copied() else {
            return Ok(());
        };
        let [column, generated] = [number, generated].map(|at| &table.columns[usize::from(at)].name);
        let message = "cannot alter type of a column used by a generated column";
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_detail(format!("Column \"{column}\" is used by generated column \"{generated}\".")))
    }

    /// `DROP EXPRESSION`: values stay as they are, and later ones are given.
    pub(super) fn drop_expression(
        &mut self,
        name: &str,
        column: &mut Column,
        may_be_none: bool,
    ) -> Result<(), SqlError> {
        if column.generated.take().is_some() {
            return Ok(());
        }
        let message =
            format!("column \"{}\" of relation \"{name}\" is not a stored generated column", column.name);
        if may_be_none {
            self.remark(format!("{message}, skipping"));
            return Ok(());
        }
        Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
    }
}

/// Fails unless the values of generated columns follow from the values of others, which are given, and from nothing else.
pub(super) fn check_generated(binder: &mut Binder<'_>, name: &str, table: &Table) -> Result<(), SqlError> {
    for column in &table.columns {
        let Some(written) = &column.generated else { continue };
        let mut read = None;
        walk::columns(&binder.generation(name, table, column, written)?, |number| {
            let column = &table.columns[usize::from(number)];
            read = read.or(column.generated.is_some().then_some(&column.name));
        });
        if let Some(column) = read {
            let message = format!("cannot use generated column \"{column}\" in column generation expression");
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
                .with_detail("A generated column cannot reference another generated column."));
        }
        if !binder.is_of_row(|binder| binder.generation(name, table, column, written))? {
            let message = "generation expression is not immutable";
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
    }
    Ok(())
}

/// Fails for a generated column, which has no default of its own; the hint says what takes its expression away.
pub(super) fn refuse_generated(name: &str, column: &Column, hints: bool) -> Result<(), SqlError> {
    if column.generated.is_none() {
        return Ok(());
    }
    let message = format!("column \"{}\" of relation \"{name}\" is a generated column", column.name);
    let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
    Err(if hints {
        error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
    } else {
        error
    })
}

/// Makes a column a generated one.
pub(super) fn set_generation(table: &str, column: &mut Column, written: &Expr) -> Result<(), SqlError> {
    if column.generated.replace(written.to_string()).is_none() {
        return Ok(());
    }
    let message =
        format!("multiple generation clauses specified for column \"{}\" of table \"{table}\"", column.name);
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

/// Fails for a column whose values are said to come from several places.
pub(super) fn check_sources(table: &str, column: &Column, is_serial: bool) -> Result<(), SqlError> {
    let both = |other: &str| {
        let message = format!(
            "both {other} and generation expression specified for column \"{}\" of table \"{table}\"",
            column.name
        );
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
    };
    match (&column.generated, column.identity, &column.default) {
        (Some(_), Some(_), _) => both("identity"),
        (Some(_), None, default) if is_serial || default.is_some() => both("default"),
        _ => Ok(()),
    }
}
