//! `RENAME` of relations, columns and constraints, and `OWNER TO` of what is no table.

use sqlparser::ast::{
    AlterSchema, AlterSchemaOperation, AlterTableOperation, ObjectName, RenameTableNameKind,
};

use super::super::Binder;
use super::super::names::{last_name, name_of, qualified};
use super::Draft;
use super::alter::required;
use super::constraints::is_free_constraint;
use super::create::relation_literal;
use super::dependents::{Dependent, Dependents};
use crate::catalog::{Definition, Index, Table};
use crate::error::{SqlError, SqlState};

impl Draft<'_> {
    pub(super) fn rename(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        to: &RenameTableNameKind,
    ) -> Result<String, SqlError> {
        let new = new_name(to)?;
        self.is_free(schema, &new, false)?;
        refuse_if_read("a table", &self.views_of(schema, name))?;
        self.rename_in_foreign_keys(schema, name, table, &new)?;
        self.set(schema, name, None);
        for (sequence, _) in self.owned(schema, name) {
            if let Some(Definition::Sequence(known)) = self.catalog.get(schema, &sequence) {
                let mut moved = known.clone();
                moved.owner = moved.owner.map(|(_, column)| (new.clone(), column));
                self.set(schema, &sequence, Some(Definition::Sequence(moved)));
            }
        }
        let indexes = table.indexes.iter().map(|index| &index.name);
        for index in indexes.chain(table.primary_key.iter().map(|key| &key.name)) {
            self.set(schema, index, Some(Definition::Index(new.clone())));
        }
        Ok(new)
    }

    /// `ALTER TABLE`, `ALTER VIEW` and `ALTER SEQUENCE` of what is no table.
    pub(super) fn alter_other(
        &mut self,
        schema: &str,
        name: &str,
        mut known: Definition,
        operations: &[AlterTableOperation],
    ) -> Result<&'static str, SqlError> {
        let tag = match known {
            Definition::View { .. } => "ALTER VIEW",
            Definition::Sequence(_) => "ALTER SEQUENCE",
            _ => "ALTER TABLE",
        };
        match (&mut known, operations) {
            (_, [AlterTableOperation::OwnerTo { new_owner }]) => self.check_owner(new_owner)?,
            (Definition::Index(table), [AlterTableOperation::RenameTable { table_name }]) => {
                let mut of = self.table(schema, table)?;
                self.rename_index_of(schema, table, &mut of, name, &new_name(table_name)?)?;
                self.set(schema, table, Some(Definition::Table(of)));
            }
            (
                Definition::View { .. } | Definition::Sequence(_),
                [AlterTableOperation::RenameTable { table_name }],
            ) => {
                let new = new_name(table_name)?;
                self.is_free(schema, &new, false)?;
                refuse_if_read("a relation", &self.views_of(schema, name))?;
                self.rename_in_defaults(schema, name, &new)?;
                self.set(schema, name, None);
                self.set(schema, &new, Some(known));
            }
            (
                Definition::View { columns, .. },
                [AlterTableOperation::RenameColumn { old_column_name, new_column_name }],
            ) => {
                let (old, new) = (name_of(old_column_name), name_of(new_column_name));
                refuse_if_read("a column", &self.views_of(schema, name))?;
                if columns.contains(&new) {
                    let message = format!("column \"{new}\" of relation \"{name}\" already exists");
                    return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
                }
                let column = columns.iter_mut().find(|column| **column == old).ok_or_else(|| {
                    let message = format!("column \"{old}\" does not exist");
                    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
                })?;
                *column = new;
                self.set(schema, name, Some(known));
            }
            (Definition::View { .. } | Definition::Sequence(_) | Definition::Index(_), [other, ..]) => {
                return Err(SqlError::unsupported(format!("{tag} {other}")));
            }
            _ => return Err(super::super::undefined_table(Some(schema), name)),
        }
        Ok(tag)
    }

    /// Lets the defaults of columns that draw from a sequence name it as it will be called.
    fn rename_in_defaults(&mut self, schema: &str, name: &str, new: &str) -> Result<(), SqlError> {
        let dependents = self.dependents(&[(schema.to_owned(), name.to_owned())]);
        for dependent in dependents.all() {
            let Dependent::Default { table: (table_schema, table_name), column } = dependent else {
                continue;
            };
            let mut table = self.table(table_schema, table_name)?;
            let column = &mut table.columns[usize::from(*column)];
            let [old, new] = [name, new].map(|name| relation_literal(schema, name));
            // As a default is kept, it has the whole name, unless the sequence was made by the same statement.
            let renamed = column.default.as_ref().map(|default| default.replace(&old, &new));
            if renamed == column.default {
                let what = format!("renaming a sequence that the default of column {} names", column.name);
                return Err(SqlError::unsupported(what)
                    .with_hint("Drop the default, rename, and set the default again."));
            }
            column.default = renamed;
            self.set(table_schema, table_name, Some(Definition::Table(table)));
        }
        Ok(())
    }

    /// `ALTER SCHEMA`.
    pub(super) fn alter_schema(&mut self, alter: &AlterSchema) -> Result<&'static str, SqlError> {
        let name = last_name(&alter.name)?;
        if !self.catalog.has_schema(&name) {
            let message = format!("schema \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message));
        }
        match alter.operations.as_slice() {
            [AlterSchemaOperation::OwnerTo { owner }] => self.check_owner(owner)?,
            _ => return Err(SqlError::unsupported(format!("{alter}"))),
        }
        Ok("ALTER SCHEMA")
    }

    pub(super) fn rename_column(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        (old, new): (&str, &str),
    ) -> Result<(), SqlError> {
        let number = required(name, table, old)?;
        if table.column(new).is_some() {
            let message = format!("column \"{new}\" of relation \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let before = table.clone();
        for check in &mut table.checks {
            let binder = Binder::new(&self.catalog, self.surroundings);
            check.condition = binder.with_column_renamed(&check.condition, (name, &before), number, new)?;
        }
        for column in &mut table.columns {
            if let Some(value) = &mut column.generated {
                let binder = Binder::new(&self.catalog, self.surroundings);
                *value = binder.with_column_renamed(value, (name, &before), number, new)?;
            }
        }
        for text in table.indexes.iter_mut().flat_map(Index::texts_mut) {
            let binder = Binder::new(&self.catalog, self.surroundings);
            *text = binder.with_column_renamed(text, (name, &before), number, new)?;
        }
        table.columns[usize::from(number)].name = new.to_owned();
        for (sequence, _) in self.owned(schema, name) {
            if let Some(Definition::Sequence(known)) = self.catalog.get(schema, &sequence)
                && known.owner.as_ref().is_some_and(|(_, column)| column == old)
            {
                let mut moved = known.clone();
                moved.owner = Some((name.to_owned(), new.to_owned()));
                self.set(schema, &sequence, Some(Definition::Sequence(moved)));
            }
        }
        let views = self.views_without(schema, name, table, old);
        refuse_if_read("a column", &views)?;
        self.check_expressions(name, table)
    }

    pub(super) fn rename_constraint(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        (old, new): (&str, String),
    ) -> Result<(), SqlError> {
        let undefined = || {
            let message = format!("constraint \"{old}\" for table \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        };
        let checks = table.checks.iter().map(|check| &check.name);
        let mut others = checks.chain(table.foreign_keys.iter().map(|known| &known.name));
        if !others.any(|known| known == old) {
            let keys = table.primary_key.iter().map(|key| &key.name);
            let indexes = table.indexes.iter().filter(|index| index.constraint).map(|index| &index.name);
            keys.chain(indexes).find(|known| *known == old).ok_or_else(undefined)?;
            return self.rename_index_of(schema, name, table, old, &new);
        }
        is_free_constraint(name, table, &new)?;
        let checks = table.checks.iter_mut().map(|check| &mut check.name);
        let foreign_keys = table.foreign_keys.iter_mut().map(|known| &mut known.name);
        if let Some(known) = checks.chain(foreign_keys).find(|known| *known == old) {
            *known = new;
        }
        Ok(())
    }

    /// `ALTER INDEX … RENAME TO`.
    pub(super) fn rename_index(
        &mut self,
        name: &ObjectName,
        to: &ObjectName,
    ) -> Result<&'static str, SqlError> {
        let (schema, name) = qualified(name)?;
        let (schema, table_name) = match self.locate(schema.as_deref(), &name) {
            Some((schema, Definition::Index(table))) => (schema, table),
            Some(_) => {
                let message = format!("\"{name}\" is not an index");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            None => return Err(super::super::undefined_table(schema.as_deref(), &name)),
        };
        let mut table = self.table(&schema, &table_name)?;
        self.rename_index_of(&schema, &table_name, &mut table, &name, &last_name(to)?)?;
        self.set(&schema, &table_name, Some(Definition::Table(table)));
        Ok("ALTER INDEX")
    }

    /// Renames an index, and the constraint that it may stand for.
    fn rename_index_of(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        old: &str,
        new: &str,
    ) -> Result<(), SqlError> {
        self.is_free(schema, new, false)?;
        let indexes = table.indexes.iter_mut().map(|index| &mut index.name);
        let mut names = indexes.chain(table.primary_key.iter_mut().map(|key| &mut key.name));
        if let Some(known) = names.find(|known| *known == old) {
            new.clone_into(known);
        }
        self.set(schema, old, None);
        self.set(schema, new, Some(Definition::Index(name.to_owned())));
        Ok(())
    }
}

fn new_name(to: &RenameTableNameKind) -> Result<String, SqlError> {
    let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = to;
    last_name(to)
}

/// A view is kept as it was written, so what it names must keep its name.
fn refuse_if_read(what: &str, views: &Dependents) -> Result<(), SqlError> {
    match views.first() {
        None => Ok(()),
        Some(view) => Err(SqlError::unsupported(format!("renaming {what} that is read by {view}"))
            .with_hint("Drop the view, rename, and create the view again.")),
    }
}
