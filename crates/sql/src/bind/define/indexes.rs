//! Indexes: `CREATE INDEX`, and what belongs to them wherever they are made.

use std::collections::BTreeSet;

use sqlparser::ast::{CreateIndex, Expr, Ident, IndexColumn, IndexType};

use super::super::Binder;
use super::super::expression::unnested;
use super::super::names::{last_name, name_of, qualified};
use super::constraints::{KEY_COLUMNS_MAX, column_of, column_order, multiple_keys, refuse_method};
use super::create::columns_of;
use super::storage_options::check_options;
use super::{Build, Draft, undefined_index};
use crate::bind::part_names;
use crate::catalog::{ColumnOrder, Definition, Index, KeyPart, PrimaryKey, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, IndexState};

/// An index that is to be added.
pub(super) struct NewIndex {
    pub name: String,
    pub parts: Vec<KeyPart>,
    /// Of the first parts; the others are in the usual order.
    pub orders: Vec<ColumnOrder>,
    pub included: Vec<u16>,
    pub predicate: Option<String>,
    pub unique: bool,
    pub constraint: bool,
    pub covering: bool,
    /// Whether the table has no rows.
    pub is_empty: bool,
}

impl NewIndex {
    /// The index of a unique constraint.
    pub(super) fn of_constraint(name: String, columns: Vec<u16>, included: Vec<u16>) -> NewIndex {
        NewIndex {
            name,
            parts: columns.into_iter().map(KeyPart::Column).collect(),
            orders: Vec::new(),
            included,
            predicate: None,
            unique: true,
            constraint: true,
            covering: false,
            is_empty: false,
        }
    }
}

impl Draft<'_> {
    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<&'static str, SqlError> {
        const TAG: &str = "CREATE INDEX";
        if create.nulls_distinct == Some(false) {
            return Err(SqlError::unsupported("an index with NULLS NOT DISTINCT"));
        }
        check_options(&create.with)?;
        if let Some(method) = &create.using {
            refuse_method(method)?;
        }
        if matches!(create.using, Some(IndexType::Hash)) && !create.include.is_empty() {
            let message = "access method \"hash\" does not support included columns";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let (schema, name) = qualified(&create.table_name)?;
        let Some((schema, Definition::Table(mut table))) = self.locate(schema.as_deref(), &name) else {
            return Err(super::super::undefined_table(schema.as_deref(), &name));
        };
        let parts = self.index_parts(&name, &table, &create.columns)?;
        let orders = create.columns.iter().map(column_order).collect();
        let included = included_columns(&table, &create.include)?;
        let predicate = create.predicate.as_ref().map(|written| self.row_text(&name, &table, written));
        let index_name = match &create.name {
            Some(name) => last_name(name)?,
            None => self.free_index_name(&schema, &name, &table, &parts, &included),
        };
        if !self.is_free(&schema, &index_name, create.if_not_exists)? {
            return Ok(TAG);
        }
        let index = NewIndex {
            name: index_name,
            parts,
            orders,
            included,
            predicate,
            unique: create.unique,
            constraint: false,
            covering: false,
            is_empty: false,
        };
        self.add_index(&schema, &name, &mut table, index);
        self.check_expressions(&name, &table)?;
        self.set(&schema, &name, Some(Definition::Table(table)));
        Ok(TAG)
    }

    /// The parts of an index as they are written.
    fn index_parts(
        &self,
        name: &str,
        table: &Table,
        written: &[IndexColumn],
    ) -> Result<Vec<KeyPart>, SqlError> {
        let mut parts = Vec::with_capacity(written.len());
        for column in written {
            let part = self.index_part(name, table, &column.column.expr)?;
            if let KeyPart::Column(number) = part
                && parts.contains(&part)
            {
                let name = &table.columns[usize::from(number)].name;
                let message = format!("column \"{name}\" appears twice");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            parts.push(part);
        }
        if parts.is_empty() || parts.len() > KEY_COLUMNS_MAX {
            let message =
                format!("cannot use {} columns in an index, but 1 to {KEY_COLUMNS_MAX}", parts.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(parts)
    }

    fn index_part(&self, name: &str, table: &Table, written: &Expr) -> Result<KeyPart, SqlError> {
        if let Expr::Identifier(column) = written {
            let name = name_of(column);
            return table.column(&name).map(KeyPart::Column).ok_or_else(|| {
                let message = format!("column \"{name}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            });
        }
        if is_operation(written) {
            let message = format!("syntax error at or near an operator of \"{written}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("Put an expression of an index in parentheses."));
        }
        let text = self.row_text(name, table, written);
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        Ok(match binder.index_expression(name, table, &text)?.expression {
            Expression::Column(number) => KeyPart::Column(number),
            _ => KeyPart::Expression(text),
        })
    }

    /// The text of an expression over the rows of a table as it is kept.
    fn row_text(&self, name: &str, table: &Table, written: &Expr) -> String {
        let binder = Binder::new(&self.catalog, self.surroundings);
        binder.qualified_expression(&unnested(written).to_string(), Some((name, table)))
    }

    /// A name for an index without one.
    pub(super) fn free_index_name(
        &self,
        schema: &str,
        name: &str,
        table: &Table,
        parts: &[KeyPart],
        included: &[u16],
    ) -> String {
        let names = part_names(table, parts, included);
        let names = names.iter().map(String::as_str);
        let words: Vec<&str> = std::iter::once(name).chain(names).chain(["idx"]).collect();
        self.free_name(schema, &words)
    }

    /// Adds an index to a table. It is filled now or later.
    pub(super) fn add_index(&mut self, schema: &str, name: &str, table: &mut Table, index: NewIndex) {
        let NewIndex { name: index_name, mut orders, is_empty, .. } = index;
        let state = if self.at_once || is_empty { IndexState::Ready } else { IndexState::Building };
        let object = self.number();
        let storage = self.storage();
        self.set(schema, &index_name, Some(Definition::Index(name.to_owned())));
        if !is_empty && self.at_once {
            self.fills.push((schema.to_owned(), name.to_owned(), index_name.clone()));
        } else if !is_empty {
            self.builds.push(Build {
                schema: schema.to_owned(),
                table: name.to_owned(),
                index: index_name.clone(),
            });
        }
        orders.resize(index.parts.len(), ColumnOrder::default());
        table.indexes.push(Index {
            object,
            name: index_name,
            storage,
            parts: index.parts,
            orders,
            included: index.included,
            predicate: index.predicate,
            unique: index.unique,
            constraint: index.constraint,
            covering: index.covering,
            state,
        });
    }

    /// Drops the indexes of a table that are about a column: those that it is a part of, that include it, compute something with it or have
    /// the rows that it tells; and what needs them.
    pub(super) fn drop_indexes_of(
        &mut self,
        (schema, name): (&str, &str),
        table: &mut Table,
        column: u16,
        (on, cascade): (&str, bool),
    ) -> Result<(), SqlError> {
        let mut place = 0;
        while let Some(index) = table.indexes.get(place) {
            let is_in = index.parts.contains(&KeyPart::Column(column)) || index.included.contains(&column);
            if is_in || self.columns_computed_with(name, table, index)?.contains(&column) {
                self.remove_index(schema, name, table, place, on, cascade)?;
            } else {
                place += 1;
            }
        }
        Ok(())
    }

    /// Whether an index of a table computes something with a column, or has the rows that it tells.
    pub(super) fn is_computed_with(&self, name: &str, table: &Table, column: u16) -> Result<bool, SqlError> {
        for index in &table.indexes {
            if self.columns_computed_with(name, table, index)?.contains(&column) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The columns with which an index computes something, or that tell which rows it has.
    fn columns_computed_with(
        &self,
        name: &str,
        table: &Table,
        index: &Index,
    ) -> Result<BTreeSet<u16>, SqlError> {
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        let mut columns = BTreeSet::new();
        for part in &index.parts {
            if let KeyPart::Expression(text) = part {
                columns.extend(columns_of(&mut binder.index_expression(name, table, text)?.expression));
            }
        }
        if let Some(text) = &index.predicate {
            columns.extend(columns_of(&mut binder.index_predicate(name, table, text)?));
        }
        Ok(columns)
    }

    /// Uses an index from now on; one that holds the rows becomes the table.
    pub(super) fn make_ready(&mut self, name: &str, table: &mut Table, index: &str) -> Result<(), SqlError> {
        let place = table.indexes.iter().position(|known| known.name == index);
        let place = place.ok_or_else(|| undefined_index(index))?;
        table.indexes[place].state = IndexState::Ready;
        if !table.indexes[place].covering {
            return Ok(());
        }
        if table.primary_key.is_some() {
            return Err(multiple_keys(name));
        }
        if table.indexes.len() > 1 {
            let message = format!("an index was added to table \"{name}\" while it was given a primary key");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("Drop it, add the primary key, and create it again."));
        }
        let index = table.indexes.remove(place);
        self.discard(table.storage, table.replicated);
        table.storage = index.storage;
        let columns = index.plain_columns().unwrap_or_default();
        for column in &columns {
            table.columns[usize::from(*column)].not_null = true;
        }
        let Index { object, name, included, .. } = index;
        table.primary_key = Some(PrimaryKey { object, name, columns, included });
        table.placing = 1;
        Ok(())
    }
}

/// The numbers of the columns that an index includes besides those by which it is ordered.
pub(super) fn included_columns(table: &Table, written: &[Ident]) -> Result<Vec<u16>, SqlError> {
    written.iter().map(|name| column_of(table, name)).collect()
}

/// Whether an expression needs parentheses where a column is expected.
fn is_operation(written: &Expr) -> bool {
    use sqlparser::ast::CastKind::DoubleColon;
    matches!(
        written,
        Expr::BinaryOp { .. }
            | Expr::UnaryOp { .. }
            | Expr::Cast { kind: DoubleColon, .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::AtTimeZone { .. }
            | Expr::CompoundFieldAccess { .. }
            | Expr::CompoundIdentifier(_)
            | Expr::Case { .. }
            | Expr::Value(_)
    )
}
