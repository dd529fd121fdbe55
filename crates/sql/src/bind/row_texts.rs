//! Texts over the rows of a table that are kept with it: conditions of checks, values of generated columns, what indexes compute, and which
//! rows they have.

use sqlparser::ast::Expr;

use super::from::fields_of;
use super::scope::{Bound, Level, Relation};
use super::{Binder, Surroundings};
use crate::catalog::{Catalog, Column, Index, KeyPart, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{COMPUTED, CheckShape, ComputedShape, Expression, GeneratedShape, TableShape, is_same};
use crate::syntax::parse_expression;
use crate::types::SqlType;

impl Binder<'_> {
    /// A table as plans know it.
    pub(super) fn shape(&mut self, name: &str, table: &Table) -> Result<TableShape, SqlError> {
        let (checks, generated) = (self.checks(name, table)?, self.generated(name, table)?);
        Ok(TableShape { checks, generated, ..self.shape_with_indexes(name, table)? })
    }

    /// The same, without its checks and generated columns.
    fn shape_with_indexes(&mut self, name: &str, table: &Table) -> Result<TableShape, SqlError> {
        let mut shape = table.shape(name);
        for index in &table.indexes {
            let columns = self.columns_of_index(name, table, index, &mut shape.computed)?;
            let predicate = index.predicate.as_ref().map(|text| self.index_predicate(name, table, text));
            shape.indexes.push(index.shape(columns, predicate.transpose()?));
        }
        Ok(shape)
    }

    /// The numbers of an index's columns. What it computes is added to what the other indexes do, unless one computes the same.
    fn columns_of_index(
        &mut self,
        name: &str,
        table: &Table,
        index: &Index,
        computed: &mut Vec<ComputedShape>,
    ) -> Result<Vec<u16>, SqlError> {
        let mut columns = Vec::with_capacity(index.parts.len());
        for part in &index.parts {
            columns.push(match part {
                KeyPart::Column(column) => *column,
                KeyPart::Expression(text) => {
                    let Bound { expression, data_type } = self.index_expression(name, table, text)?;
                    let known = computed.iter().position(|known| is_same(&known.expression, &expression));
                    let place = known.unwrap_or_else(|| {
                        computed.push(ComputedShape { text: as_column(text), data_type, expression });
                        computed.len() - 1
                    });
                    COMPUTED + place as u16
                }
            });
        }
        Ok(columns)
    }

    /// The checks of a table, bound.
    fn checks(&mut self, name: &str, table: &Table) -> Result<Vec<CheckShape>, SqlError> {
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

    /// A condition that the rows of a table fulfil.
    pub(super) fn check_condition(
        &mut self,
        name: &str,
        table: &Table,
        condition: &str,
    ) -> Result<Expression, SqlError> {
        let written = parse_expression(condition)?;
        let bound = self.over_rows(name, table, |binder| binder.condition(&written, "CHECK"))?;
        without_queries(bound, "check constraint")
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

    /// The condition of the rows that an index has.
    pub(super) fn index_predicate(
        &mut self,
        name: &str,
        table: &Table,
        condition: &str,
    ) -> Result<Expression, SqlError> {
        let written = parse_expression(condition)?;
        let bound = self.over_rows(name, table, |binder| binder.condition(&written, "WHERE"))?;
        without_queries(bound, "index predicate")
    }

    /// A value that an index computes.
    pub(super) fn index_expression(
        &mut self,
        name: &str,
        table: &Table,
        text: &str,
    ) -> Result<Bound, SqlError> {
        let written = parse_expression(text)?;
        let bound = self.over_rows(name, table, |binder| {
            let bound = binder.expression(&written)?;
            if bound.data_type.is_unknown() { binder.implicit(bound, SqlType::TEXT) } else { Ok(bound) }
        })?;
        Ok(Bound { expression: without_queries(bound.expression, "index expression")?, ..bound })
    }

    /// Binds something over the rows of a table and nothing else.
    pub(super) fn over_rows<T>(
        &mut self,
        name: &str,
        table: &Table,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let relation =
            Relation { name: name.to_owned(), fields: fields_of(table), offset: 0, key: Vec::new() };
        let level = Level { relations: vec![relation], is_of_any_schema: true, ..Level::default() };
        let levels = std::mem::replace(&mut self.levels, vec![level]);
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

/// A table with its indexes as plans know them, without its checks: whatever else there is, its indexes mean the same.
///
/// # Errors
/// When an index computes what cannot be computed.
pub fn shape_with_indexes(name: &str, table: &Table) -> Result<TableShape, SqlError> {
    Binder::new(&Catalog::new(), &Surroundings::default()).shape_with_indexes(name, table)
}

/// The type of what an index computes, by its text; `None` if it cannot be bound.
pub(crate) fn type_of_expression(
    name: &str,
    table: &Table,
    text: &str,
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Option<SqlType> {
    let bound = Binder::new(catalog, surroundings).index_expression(name, table, text);
    bound.ok().map(|bound| bound.data_type)
}

/// The text of an expression as it stands where a column may: in parentheses unless it is the call of a function.
pub(crate) fn as_column(text: &str) -> String {
    let is_call = parse_expression(text).is_ok_and(|written| {
        matches!(
            written,
            Expr::Function(_)
                | Expr::Extract { .. }
                | Expr::Substring { .. }
                | Expr::Position { .. }
                | Expr::Overlay { .. }
                | Expr::Trim { .. }
                | Expr::Ceil { .. }
                | Expr::Floor { .. }
        )
    });
    if is_call { text.to_owned() } else { format!("({text})") }
}

/// The text of a condition as PostgreSQL shows it by itself: in parentheses unless it is the call of a function, or a column.
pub(crate) fn as_condition(text: &str) -> String {
    let is_column = parse_expression(text).is_ok_and(|written| matches!(written, Expr::Identifier(_)));
    if is_column { text.to_owned() } else { as_column(text) }
}
