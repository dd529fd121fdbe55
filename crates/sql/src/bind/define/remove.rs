//! `DROP` and `TRUNCATE`.

use sqlparser::ast::{CascadeOption, ObjectName, ObjectType, Truncate, TruncateIdentityOption};

use super::super::names::{last_name, qualified};
use super::Draft;
use super::dependents::{DESIRED_OBJECTS, shown};
use crate::catalog::{Definition, Named, PUBLIC, STATE_SCHEMA, Table};
use crate::error::{SqlError, SqlState};

impl Draft<'_> {
    pub(super) fn remove(
        &mut self,
        object_type: ObjectType,
        if_exists: bool,
        names: &[ObjectName],
        cascade: bool,
    ) -> Result<&'static str, SqlError> {
        let (tag, kind) = match object_type {
            ObjectType::Table => ("DROP TABLE", "table"),
            ObjectType::Index => ("DROP INDEX", "index"),
            ObjectType::View => ("DROP VIEW", "view"),
            ObjectType::Sequence => ("DROP SEQUENCE", "sequence"),
            ObjectType::Schema => ("DROP SCHEMA", "schema"),
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        };
        let mut targets = Vec::new();
        for name in names {
            if object_type == ObjectType::Schema {
                self.drop_schema(&last_name(name)?, if_exists, cascade)?;
                continue;
            }
            let (schema, name) = qualified(name)?;
            let found = self
                .locate(schema.as_deref(), &name)
                .filter(|(_, definition)| is_kind(definition, object_type));
            match found {
                Some((schema, _)) => targets.push((schema, name)),
                None if if_exists => self.remark(format!("{kind} \"{name}\" does not exist, skipping")),
                None => {
                    let state = match object_type {
                        ObjectType::Index => SqlState::UNDEFINED_OBJECT,
                        _ => SqlState::UNDEFINED_TABLE,
                    };
                    return Err(SqlError::new(state, format!("{kind} \"{name}\" does not exist")));
                }
            }
        }
        if matches!(object_type, ObjectType::Table | ObjectType::View | ObjectType::Sequence) {
            self.refuse_identities(&targets)?;
            let what = match targets.as_slice() {
                [(schema, name)] => format!("{kind} {}", shown(schema, name)),
                _ => DESIRED_OBJECTS.to_owned(),
            };
            let dependents = self.dependents(&targets);
            self.drop_dependents(&what, dependents, cascade, None)?;
            self.forget_referrers(&targets)?;
        }
        for (schema, name) in targets {
            if let Some(definition) = self.catalog.get(&schema, &name).cloned() {
                self.drop_object(&schema, &name, definition, cascade)?;
            }
        }
        Ok(tag)
    }

    /// Fails if one of what is dropped is a sequence that an identity column is made of.
    fn refuse_identities(&self, dropped: &[Named]) -> Result<(), SqlError> {
        for (schema, name) in dropped {
            let Some(Definition::Sequence(sequence)) = self.catalog.get(schema, name) else { continue };
            let Some((table, column)) = &sequence.owner else { continue };
            let Some(Definition::Table(owner)) = self.catalog.get(schema, table) else { continue };
            let number = owner.column(column);
            let is_identity =
                number.is_some_and(|number| owner.columns[usize::from(number)].identity.is_some());
            if is_identity {
                let (table, name) = (shown(schema, table), shown(schema, name));
                let message = format!(
                    "cannot drop sequence {name} because column {column} of table {table} requires it"
                );
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_hint(format!("You can drop column {column} of table {table} instead.")));
            }
        }
        Ok(())
    }

    /// Has the tables that are referred to by some that are dropped forget these.
    fn forget_referrers(&mut self, dropped: &[Named]) -> Result<(), SqlError> {
        for (schema, name) in dropped {
            let Some(Definition::Table(table)) = self.catalog.get(schema, name).cloned() else { continue };
            for foreign_key in table.foreign_keys.iter().filter(|known| !dropped.contains(&known.table)) {
                let (schema, name) = &foreign_key.table;
                let mut other = self.table(schema, name)?;
                other.referrers.retain(|known| known.object != foreign_key.object);
                self.set(schema, name, Some(Definition::Table(other)));
            }
        }
        Ok(())
    }

    fn drop_object(
        &mut self,
        schema: &str,
        name: &str,
        definition: Definition,
        cascade: bool,
    ) -> Result<(), SqlError> {
        match definition {
            Definition::Table(table) => self.drop_table(schema, name, &table),
            Definition::Index(table_name) => return self.drop_index(schema, name, &table_name, cascade),
            Definition::Sequence(sequence) => {
                self.discard(sequence.storage, false);
                self.set(schema, name, None);
            }
            _ => self.set(schema, name, None),
        }
        Ok(())
    }

    fn drop_table(&mut self, schema: &str, name: &str, table: &Table) {
        self.discard(table.storage, table.replicated);
        for index in &table.indexes {
            self.discard(index.storage, table.replicated);
            self.set(schema, &index.name, None);
        }
        if let Some(key) = &table.primary_key {
            self.set(schema, &key.name, None);
        }
        for (sequence, storage) in self.owned(schema, name) {
            self.discard(storage, false);
            self.set(schema, &sequence, None);
        }
        self.set(schema, name, None);
    }

    /// The sequences that go with a table.
    pub(super) fn owned(&self, schema: &str, table: &str) -> Vec<(String, u32)> {
        let owned = |(known, name, definition): (&str, &str, &Definition)| match definition {
            Definition::Sequence(sequence)
                if known == schema && sequence.owner.as_ref().is_some_and(|(owner, _)| owner == table) =>
            {
                Some((name.to_owned(), sequence.storage))
            }
            _ => None,
        };
        self.catalog.iter().filter_map(owned).collect()
    }

    fn drop_index(
        &mut self,
        schema: &str,
        name: &str,
        table_name: &str,
        cascade: bool,
    ) -> Result<(), SqlError> {
        let mut table = self.table(schema, table_name)?;
        let place = table.indexes.iter().position(|index| index.name == name && !index.constraint);
        let Some(place) = place else {
            let message = format!(
                "cannot drop index {name} because constraint {name} on table {table_name} requires it"
            );
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
        };
        let what = format!("index {}", shown(schema, name));
        self.remove_index(schema, table_name, &mut table, place, &what, cascade)?;
        self.set(schema, table_name, Some(Definition::Table(table)));
        Ok(())
    }

    /// Takes an index from a table, and what needs it.
    pub(super) fn remove_index(
        &mut self,
        schema: &str,
        table_name: &str,
        table: &mut Table,
        place: usize,
        what: &str,
        cascade: bool,
    ) -> Result<(), SqlError> {
        let index = table.indexes.remove(place);
        let dependents = self.referrers_of(table, &format!("index {}", index.name), |columns| {
            super::super::foreign_keys::target(table, columns).is_none()
        });
        let at = (schema.to_owned(), table_name.to_owned());
        self.drop_dependents(what, dependents, cascade, Some((&at, &mut *table)))?;
        self.discard(index.storage, table.replicated);
        self.set(schema, &index.name, None);
        Ok(())
    }

    /// Takes the primary key from a table, and what needs it. Its rows are written anew, as they are kept by their keys.
    pub(super) fn remove_primary_key(
        &mut self,
        schema: &str,
        table_name: &str,
        table: &mut Table,
        what: &str,
        cascade: bool,
    ) -> Result<(), SqlError> {
        let Some(key) = table.primary_key.take() else { return Ok(()) };
        table.placing = 1;
        let rest = table.clone();
        let referrers = self.referrers_of(table, &format!("index {}", key.name), |columns| {
            super::super::foreign_keys::target(&rest, columns).is_none()
        });
        let at = (schema.to_owned(), table_name.to_owned());
        self.drop_dependents(what, referrers, cascade, Some((&at, &mut *table)))?;
        // Those that are grouped by it have all columns of its rows.
        let views = self.views_without(schema, table_name, table, what);
        self.drop_dependents(what, views, cascade, None)?;
        self.set(schema, &key.name, None);
        Ok(())
    }

    fn drop_schema(&mut self, name: &str, if_exists: bool, cascade: bool) -> Result<(), SqlError> {
        if !self.catalog.has_schema(name) {
            if matches!(name, "pg_catalog" | "information_schema" | STATE_SCHEMA) {
                let message =
                    format!("cannot drop schema {name} because it is required by the database system");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            let message = format!("schema \"{name}\" does not exist");
            if if_exists {
                self.remark(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message));
        }
        let inside = self.catalog.iter().filter(|(schema, object, _)| *schema == name && !object.is_empty());
        let inside: Vec<(String, Definition)> =
            inside.map(|(_, object, definition)| (object.to_owned(), definition.clone())).collect();
        if !inside.is_empty() && !cascade {
            let message = format!("cannot drop schema {name} because other objects depend on it");
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let targets: Vec<Named> =
            inside.iter().map(|(object, _)| (name.to_owned(), object.clone())).collect();
        let dependents = self.dependents(&targets);
        self.drop_dependents(&format!("schema {name}"), dependents, cascade, None)?;
        self.forget_referrers(&targets)?;
        for (object, definition) in inside {
            match definition {
                Definition::Table(table) => self.drop_table(name, &object, &table),
                Definition::Sequence(sequence) if self.catalog.get(name, &object).is_some() => {
                    self.discard(sequence.storage, false);
                    self.set(name, &object, None);
                }
                _ => self.set(name, &object, None),
            }
        }
        self.set(name, "", (name == PUBLIC).then_some(Definition::NoSchema));
        Ok(())
    }

    /// Gives tables new, empty storages.
    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<&'static str, SqlError> {
        let named = truncate.table_names.iter().map(|target| self.located(&target.name));
        let mut targets = named.collect::<Result<Vec<Named>, SqlError>>()?;
        self.add_referring(&mut targets, truncate.cascade == Some(CascadeOption::Cascade))?;
        for (schema, name) in targets {
            if truncate.identity == Some(TruncateIdentityOption::Restart) {
                self.restart_sequences(&schema, &name);
            }
            self.empty(&schema, &name)?;
        }
        Ok("TRUNCATE TABLE")
    }

    /// Gives a table new, empty storages, whatever refers to it.
    pub(super) fn renew(&mut self, table: &ObjectName) -> Result<(), SqlError> {
        let (schema, name) = self.located(table)?;
        self.empty(&schema, &name)
    }

    fn located(&mut self, table: &ObjectName) -> Result<Named, SqlError> {
        let (schema, name) = qualified(table)?;
        match self.locate(schema.as_deref(), &name) {
            Some((schema, Definition::Table(_))) => Ok((schema, name)),
            _ => Err(super::super::undefined_table(schema.as_deref(), &name)),
        }
    }

    fn empty(&mut self, schema: &str, name: &str) -> Result<(), SqlError> {
        let mut table = self.table(schema, name)?;
        self.renew_storages(&mut table);
        self.set(schema, name, Some(Definition::Table(table)));
        Ok(())
    }

    /// Adds the tables that refer to tables that are emptied, if that is asked for; else they are an error.
    fn add_referring(&mut self, targets: &mut Vec<Named>, cascade: bool) -> Result<(), SqlError> {
        let mut place = 0;
        while let Some((schema, name)) = targets.get(place).cloned() {
            for referrer in self.table(&schema, &name)?.referrers {
                let child = referrer.table;
                if targets.contains(&child) {
                    continue;
                }
                if !cascade {
                    let message = "cannot truncate a table referenced in a foreign key constraint";
                    let detail = format!("Table \"{}\" references \"{name}\".", child.1);
                    let hint = format!(
                        "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                        child.1
                    );
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                        .with_detail(detail)
                        .with_hint(hint));
                }
                self.remark(format!("truncate cascades to table \"{}\"", child.1));
                targets.push(child);
            }
            place += 1;
        }
        Ok(())
    }

    fn restart_sequences(&mut self, schema: &str, table: &str) {
        for (sequence, _) in self.owned(schema, table) {
            if let Some(Definition::Sequence(definition)) = self.catalog.get(schema, &sequence) {
                let before = definition.start.wrapping_sub(definition.increment);
                self.sequences.push((definition.storage, before));
            }
        }
    }
}

fn is_kind(definition: &Definition, object_type: ObjectType) -> bool {
    matches!(
        (definition, object_type),
        (Definition::Table(_), ObjectType::Table)
            | (Definition::Index(_), ObjectType::Index)
            | (Definition::View { .. }, ObjectType::View)
            | (Definition::Sequence(_), ObjectType::Sequence)
    )
}
