//! What depends on what is dropped or changed: views that read it, foreign keys that refer to it, defaults that draw from it.

use super::super::Binder;
use super::Draft;
use crate::catalog::{Catalog, Column, Definition, Named, PUBLIC, Table};
use crate::error::{SqlError, SqlState};
use crate::types::SqlType;

/// What cannot be without something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Dependent {
    View(Named),
    ForeignKey {
        /// The table that refers.
        table: Named,
        object: u32,
    },
    /// A generated column of the table that is changed.
    Column(String),
    /// The default of a column, by its number.
    Default {
        table: Named,
        column: u16,
    },
}

/// Dependents, each with what it depends on as PostgreSQL tells it.
#[derive(Default)]
pub(super) struct Dependents {
    found: Vec<(Dependent, String)>,
    /// The names of them.
    names: Vec<String>,
}

impl Dependents {
    pub(super) fn add(&mut self, dependent: Dependent, name: String, on: &str) {
        if !self.found.iter().any(|(known, _)| *known == dependent) {
            self.found.push((dependent, format!("{name} depends on {on}")));
            self.names.push(name);
        }
    }

    /// Whether a view is among them.
    pub(super) fn has_view(&self, view: &Named) -> bool {
        self.found.iter().any(|(found, _)| matches!(found, Dependent::View(found) if found == view))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Dependent> {
        self.found.iter().map(|(dependent, _)| dependent)
    }

    /// The first of them, as errors name it.
    pub(super) fn first(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

/// A name as messages show it.
pub(super) fn shown(schema: &str, name: &str) -> String {
    if schema == PUBLIC { name.to_owned() } else { format!("{schema}.{name}") }
}

impl Draft<'_> {
    /// What depends on some relations and is none of them: views that read them, views that read these, and foreign keys of other tables.
    pub(super) fn dependents(&mut self, dropped: &[Named]) -> Dependents {
        // What is a session's own is needed by nobody else. Nothing at all is what a schema has in which nothing may be.
        let is_own = |(schema, _): &Named| *schema == self.surroundings.temporary;
        if dropped.is_empty() || !dropped.iter().all(is_own) {
            self.rely_on_nothing_new();
        }
        let mut dependents = Dependents::default();
        for (schema, name) in dropped {
            let Some(Definition::Table(table)) = self.catalog.get(schema, name) else { continue };
            let on = format!("table {}", shown(schema, name));
            for referrer in table.referrers.iter().filter(|referrer| !dropped.contains(&referrer.table)) {
                self.add_foreign_key_to(&mut dependents, &referrer.table, referrer.object, &on);
            }
        }
        self.add_views(&mut dependents, dropped.to_vec(), dropped);
        self.add_defaults(&mut dependents, dropped);
        dependents
    }

    /// Adds the defaults of other tables that draw from sequences which are dropped, be it since they go with tables that are.
    fn add_defaults(&self, dependents: &mut Dependents, dropped: &[Named]) {
        let mut storages = Vec::new();
        for (schema, name) in dropped {
            match self.catalog.get(schema, name) {
                Some(Definition::Sequence(sequence)) => {
                    storages.push((sequence.storage, schema.clone(), name.clone()));
                }
                Some(Definition::Table(_)) => {
                    let owned = self.owned(schema, name).into_iter();
                    storages.extend(owned.map(|(sequence, storage)| (storage, schema.clone(), sequence)));
                }
                _ => {}
            }
        }
        if storages.is_empty() {
            return;
        }
        for (schema, name, definition) in self.catalog.iter() {
            let Definition::Table(table) = definition else { continue };
            if dropped.iter().any(|(known, relation)| known == schema && relation == name) {
                continue;
            }
            for (number, column) in (0..).zip(&table.columns) {
                for (storage, sequence_schema, sequence) in &storages {
                    if self.draws_from(column, *storage) {
                        let table = (schema.to_owned(), name.to_owned());
                        let column_shown = format!(
                            "default value for column {} of table {}",
                            column.name,
                            shown(schema, name)
                        );
                        let on = format!("sequence {}", shown(sequence_schema, sequence));
                        dependents.add(Dependent::Default { table, column: number }, column_shown, &on);
                    }
                }
            }
        }
    }

    /// Whether the default of a column takes its numbers from a sequence.
    fn draws_from(&self, column: &Column, storage: u32) -> bool {
        if !column.default.as_ref().is_some_and(|default| default.contains("val")) {
            return false;
        }
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        binder.default_of(column).is_ok() && binder.sequences.iter().any(|known| known.storage == storage)
    }

    /// The views that read a relation.
    pub(super) fn views_of(&mut self, schema: &str, name: &str) -> Dependents {
        self.rely_on_nothing_new();
        let mut dependents = Dependents::default();
        self.add_views(&mut dependents, vec![(schema.to_owned(), name.to_owned())], &[]);
        dependents
    }

    /// The foreign keys of any table that refer to some columns of a table.
    pub(super) fn referrers_of(
        &self,
        table: &Table,
        on: &str,
        refers: impl Fn(&[u16]) -> bool,
    ) -> Dependents {
        let mut dependents = Dependents::default();
        for referrer in &table.referrers {
            let (schema, name) = &referrer.table;
            let Some(Definition::Table(child)) = self.catalog.get(schema, name) else { continue };
            let known = child.foreign_keys.iter().find(|known| known.object == referrer.object);
            if known.is_some_and(|known| refers(&known.referenced)) {
                self.add_foreign_key_to(&mut dependents, &referrer.table, referrer.object, on);
            }
        }
        dependents
    }

    fn add_foreign_key_to(&self, dependents: &mut Dependents, table: &Named, object: u32, on: &str) {
        let Some(Definition::Table(child)) = self.catalog.get(&table.0, &table.1) else { return };
        let Some(known) = child.foreign_keys.iter().find(|known| known.object == object) else { return };
        let name = format!("constraint {} on table {}", known.name, shown(&table.0, &table.1));
        dependents.add(Dependent::ForeignKey { table: table.clone(), object }, name, on);
    }

    /// Adds the views that read some relations, and those that read these; but none that is dropped anyway.
    fn add_views(&self, dependents: &mut Dependents, mut read: Vec<Named>, dropped: &[Named]) {
        let views: Vec<(Named, Vec<Named>)> = self.views().collect();
        let mut place = 0;
        while let Some(on) = read.get(place).cloned() {
            let kind = match self.catalog.get(&on.0, &on.1) {
                Some(Definition::View { .. }) => "view",
                _ => "table",
            };
            let on_shown = format!("{kind} {}", shown(&on.0, &on.1));
            for (view, relations) in &views {
                if relations.contains(&on) && !read.contains(view) && !dropped.contains(view) {
                    let name = format!("view {}", shown(&view.0, &view.1));
                    dependents.add(Dependent::View(view.clone()), name, &on_shown);
                    read.push(view.clone());
                }
            }
            place += 1;
        }
    }

    /// All views, with the relations that each names.
    fn views(&self) -> impl Iterator<Item = (Named, Vec<Named>)> {
        self.catalog.iter().filter_map(|(schema, name, definition)| {
            let Definition::View { query, .. } = definition else { return None };
            let mut binder = Binder::new(&self.catalog, self.surroundings);
            let query = crate::syntax::parse_query(query).ok()?;
            // A view that cannot be read any more depends on what it named until then.
            drop(binder.query(&query));
            Some(((schema.to_owned(), name.to_owned()), binder.relations))
        })
    }

    /// The views that a change of a table would take columns from, or make columns of other types in, and those that read them.
    pub(super) fn views_without(
        &mut self,
        schema: &str,
        name: &str,
        changed: &Table,
        on: &str,
    ) -> Dependents {
        self.rely_on_nothing_new();
        let mut dependents = Dependents::default();
        let views = self.catalog.iter().filter_map(|(schema, name, definition)| match definition {
            Definition::View { query, .. } => Some((schema, name, query)),
            _ => None,
        });
        let views: Vec<(&str, &str, &String)> = views.collect();
        if views.is_empty() {
            return dependents;
        }
        let mut after = self.catalog.clone();
        // What was encoded just now can be decoded.
        drop(after.insert(schema, name, &Definition::Table(changed.clone()).encode()));
        let mut broken = Vec::new();
        for (schema, name, query) in views {
            let columns = self.view_columns(&self.catalog, query);
            if columns.is_some() && columns != self.view_columns(&after, query) {
                broken.push((schema.to_owned(), name.to_owned()));
            }
        }
        // Those that read others of them are among the views of these.
        let views: Vec<(Named, Vec<Named>)> = self.views().collect();
        let reads_broken = |view: &Named| {
            let known = views.iter().find(|(known, _)| known == view);
            known.is_some_and(|(_, relations)| relations.iter().any(|relation| broken.contains(relation)))
        };
        let first: Vec<Named> = broken.iter().filter(|view| !reads_broken(view)).cloned().collect();
        for view in &first {
            let name = format!("view {}", shown(&view.0, &view.1));
            dependents.add(Dependent::View(view.clone()), name, on);
        }
        self.add_views(&mut dependents, first, &[]);
        dependents
    }

    /// The types of a view's columns; `None` if it cannot be read.
    pub(super) fn view_columns(&self, catalog: &Catalog, query: &str) -> Option<Vec<SqlType>> {
        let query = crate::syntax::parse_query(query).ok()?;
        let (_, fields) = Binder::new(catalog, self.surroundings).query(&query).ok()?;
        Some(fields.into_iter().map(|field| field.data_type).collect())
    }

    /// Drops dependents if that is asked for; else they are an error. `own` is the table that is changed, which is not in the catalog
    /// yet as it will be.
    pub(super) fn drop_dependents(
        &mut self,
        what: &str,
        dependents: Dependents,
        cascade: bool,
        own: Option<(&Named, &mut Table)>,
    ) -> Result<(), SqlError> {
        if dependents.found.is_empty() {
            return Ok(());
        }
        if !cascade {
            return Err(still_needed(what, &dependents));
        }
        match dependents.names.as_slice() {
            [one] => self.remark(format!("drop cascades to {one}")),
            several => self.remark(format!("drop cascades to {} other objects", several.len())),
        }
        let mut own = own;
        for (dependent, _) in dependents.found {
            match dependent {
                Dependent::View((schema, name)) => self.set(&schema, &name, None),
                Dependent::Column(column) => {
                    if let Some((at, table)) = &mut own {
                        self.drop_column(&at.0, &at.1, table, &column, (false, true))?;
                    }
                }
                Dependent::Default { table: at, column } => {
                    let mut table = self.table(&at.0, &at.1)?;
                    if let Some(column) = table.columns.get_mut(usize::from(column)) {
                        column.default = None;
                    }
                    self.set(&at.0, &at.1, Some(Definition::Table(table)));
                }
                Dependent::ForeignKey { table: at, object } => match &mut own {
                    Some((name, table)) if **name == at => self.drop_by_object(&at, table, object)?,
                    _ => {
                        let mut table = self.table(&at.0, &at.1)?;
                        self.drop_by_object(&at, &mut table, object)?;
                        self.set(&at.0, &at.1, Some(Definition::Table(table)));
                        // The table that it referred to is the one that is changed.
                        if let Some((_, table)) = &mut own {
                            table.referrers.retain(|known| known.object != object);
                        }
                    }
                },
            }
        }
        Ok(())
    }

    fn drop_by_object(&mut self, at: &Named, table: &mut Table, object: u32) -> Result<(), SqlError> {
        match table.foreign_keys.iter().position(|known| known.object == object) {
            Some(place) => self.remove_foreign_key(&at.0, &at.1, table, place),
            None => Ok(()),
        }
    }
}

fn still_needed(what: &str, dependents: &Dependents) -> SqlError {
    let it = if what == DESIRED_OBJECTS { "them" } else { "it" };
    let message = format!("cannot drop {what} because other objects depend on {it}");
    let details: Vec<&str> = dependents.found.iter().map(|(_, detail)| detail.as_str()).collect();
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(details.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// What several objects that are dropped together are called.
pub(super) const DESIRED_OBJECTS: &str = "desired object(s)";
