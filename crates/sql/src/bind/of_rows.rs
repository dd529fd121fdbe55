//! Expressions over the row of a table: checks, and the values of generated columns.

use super::Binder;
use super::from::fields_of;
use super::scope::{Level, Relation};
use crate::catalog::{Column, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{CheckShape, Expression, GeneratedShape, TableShape};
use crate::syntax::parse_expression;

impl Binder<'_> {
    /// The table as plans know it.
    pub(super) fn shape_with_expressions(
        &mut self,
        name: &str,
        table: &Table,
    ) -> Result<TableShape, SqlError> {
        let (checks, generated) = (self.checks(name, table)?, self.generated(name, table)?);
        Ok(TableShape { checks, generated, ..table.shape(name) })
    }

    /// The checks of a table, bound.
    pub(super) fn checks(&mut self, name: &str, table: &Table) -> Result<Vec<CheckShape>, SqlError> {
        let mut checks = Vec::with_capacity(table.checks.len());
        for check in &table.checks {
            let condition = self.check_condition(name, table, &check.condition)?;
            checks.push(CheckShape { name: check.name.clone(), condition });
        }
        Ok(checks)
    }

    /// The values of the generated columns of a table, bound.
    pub(super) fn generated(&mut self, name: &str, table: &Table) -> Result<Vec<GeneratedShape>, SqlError> {
        let mut generated = Vec::new();
        for (number, column) in (0..).zip(&table.columns) {
            if let Some(written) = &column.generated {
                let value = self.generation(name, table, column, written)?;
                generated.push(GeneratedShape { column: number, value });
            }
        }
        Ok(generated)
    }

    /// A condition on the rows of a table.
    pub(super) fn check_condition(
        &mut self,
        name: &str,
        table: &Table,
        condition: &str,
    ) -> Result<Expression, SqlError> {
        let written = parse_expression(condition)?;
        let bound = self.over_rows(name, table, |binder| binder.condition(&written, "CHECK"));
        without_queries(bound?, "check constraint")
    }

    /// The value of a generated column.
    pub(super) fn generation(
        &mut self,
        name: &str,
        table: &Table,
        column: &Column,
        written: &str,
    ) -> Result<Expression, SqlError> {
        let written = parse_expression(written)?;
        let bound = self.over_rows(name, table, |binder| {
            let value = binder.expression(&written)?;
            binder.assigned_to(value, column.data_type, &column.name)
        });
        without_queries(bound.map_err(of_default)?, "column generation expression")
    }

    /// Binds something that sees the columns of a table.
    fn over_rows<T>(
        &mut self,
        name: &str,
        table: &Table,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let relation =
            Relation { name: name.to_owned(), fields: fields_of(table), offset: 0, key: Vec::new() };
        let own = vec![Level { relations: vec![relation], is_of_any_schema: true, ..Level::default() }];
        let levels = std::mem::replace(&mut self.levels, own);
        self.texts += 1;
        let bound = bind(self);
        self.texts -= 1;
        self.levels = levels;
        bound
    }
}

/// The error of a value that its column cannot take, which a definition gives.
fn of_default(error: SqlError) -> SqlError {
    if error.state != SqlState::DATATYPE_MISMATCH {
        return error;
    }
    SqlError { message: error.message.replace("but expression is", "but default expression is"), ..error }
}

/// Fails if there is a query in an expression that only a row, or nothing, may decide.
pub(super) fn without_queries(expression: Expression, place: &str) -> Result<Expression, SqlError> {
    let mut has_query = false;
    expression.visit(0, &mut |expression, _| {
        has_query |= matches!(expression, Expression::Subquery { .. });
    });
    match has_query {
        true => {
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot use subquery in {place}")))
        }
        false => Ok(expression),
    }
}
