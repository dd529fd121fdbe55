//! `RENAME` of tables, columns, constraints and indexes.

use sqlparser::ast::{ObjectName, RenameTableNameKind};

use super::super::Binder;
use super::super::names::{last_name, qualified};
use super::Draft;
use super::alter::required;
use super::constraints::is_free_constraint;
use super::dependents::Dependents;
use crate::catalog::{Definition, Table};
use crate::error::{SqlError, SqlState};

impl Draft<'_> {
    pub(super) fn rename(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        to: &RenameTableNameKind,
    ) -> Result<String, SqlError> {
        let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = to;
        let to: &ObjectName = to;
        let new = last_name(to)?;
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

/// A view is kept as it was written, so what it names must keep its name.
fn refuse_if_read(what: &str, views: &Dependents) -> Result<(), SqlError> {
    match views.first() {
        None => Ok(()),
        Some(view) => Err(SqlError::unsupported(format!("renaming {what} that is read by {view}"))
            .with_hint("Drop the view, rename, and create the view again.")),
    }
}
