//! Tables of constraints: `pg_constraint`, and the standard's views of them.

use super::super::{Catalog, Definition, ForeignKey, Table};
use super::indexes::{Indexed, indexes};
use super::relations::{column_list, schema_object};
use super::{Names, System, number, text, truth};
use crate::bind;
use crate::plan::ReferentialAction;
use crate::types::{Datum, SqlType};

/// A constraint of a table.
struct Constraint<'c> {
    object: u32,
    schema: &'c str,
    /// The name of the table.
    table_name: &'c str,
    table: &'c Table,
    name: String,
    kind: Kind<'c>,
}

enum Kind<'c> {
    Index(Indexed),
    Check(&'c str),
    Foreign(&'c ForeignKey),
}

impl Constraint<'_> {
    /// The letter in `pg_constraint`, and the standard's word.
    fn kind(&self) -> (&'static str, &'static str) {
        match &self.kind {
            Kind::Index(index) if index.primary => ("p", "PRIMARY KEY"),
            Kind::Index(_) => ("u", "UNIQUE"),
            Kind::Check(_) => ("c", "CHECK"),
            Kind::Foreign(_) => ("f", "FOREIGN KEY"),
        }
    }

    /// Its columns in the table. Those of a check are [those that it uses](Self::used).
    fn columns(&self) -> &[u16] {
        match &self.kind {
            Kind::Index(index) => &index.columns,
            Kind::Check(_) => &[],
            Kind::Foreign(foreign_key) => &foreign_key.columns,
        }
    }

    /// The columns of the table that it uses.
    fn used(&self, names: Names<'_>) -> Vec<u16> {
        match &self.kind {
            Kind::Check(condition) => bind::columns_of_check(
                self.table_name,
                self.table,
                condition,
                names.catalog,
                names.surroundings,
            ),
            _ => self.columns().to_vec(),
        }
    }

    fn foreign(&self) -> Option<&ForeignKey> {
        if let Kind::Foreign(foreign_key) = &self.kind { Some(foreign_key) } else { None }
    }

    /// Its text in `CREATE TABLE`.
    fn definition(&self) -> String {
        let columns = column_list(self.table, self.columns());
        match &self.kind {
            Kind::Index(index) => {
                let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
                let included = match index.included.as_slice() {
                    [] => String::new(),
                    included => format!(" INCLUDE ({})", column_list(self.table, included)),
                };
                format!("{kind} ({columns}){included}")
            }
            Kind::Check(condition) => format!("CHECK ({condition})"),
            Kind::Foreign(_) => format!("FOREIGN KEY ({columns})"),
        }
    }
}

fn constraints(catalog: &Catalog) -> Vec<Constraint<'_>> {
    let mut constraints = Vec::new();
    for (schema, table_name, definition) in catalog.iter() {
        let Definition::Table(table) = definition else { continue };
        let mut add = |object, name: &str, kind| {
            constraints.push(Constraint { object, schema, table_name, table, name: name.to_owned(), kind });
        };
        for index in indexes(Some(table)).into_iter().filter(|index| index.constraint) {
            add(index.object, &index.name.clone(), Kind::Index(index));
        }
        for foreign_key in &table.foreign_keys {
            add(foreign_key.object, &foreign_key.name, Kind::Foreign(foreign_key));
        }
        for check in &table.checks {
            add(check.object, &check.name, Kind::Check(&check.condition));
        }
    }
    constraints
}

/// The table that a foreign key refers to, and what is unique there.
fn referenced<'c>(catalog: &'c Catalog, foreign_key: &ForeignKey) -> Option<(&'c Table, Option<Indexed>)> {
    let (schema, name) = &foreign_key.table;
    let Some(Definition::Table(table)) = catalog.get(schema, name) else { return None };
    let is_target = |index: &Indexed| {
        let columns = &foreign_key.referenced;
        index.unique
            && index.ready
            && index.columns.len() == columns.len()
            && index.columns.iter().all(|column| columns.contains(column))
    };
    Some((table, indexes(Some(table)).into_iter().find(is_target)))
}

/// The letter of an action in `pg_constraint`, and the words of it.
fn action(action: ReferentialAction) -> (&'static str, &'static str) {
    match action {
        ReferentialAction::NoAction => ("a", "NO ACTION"),
        ReferentialAction::Restrict => ("r", "RESTRICT"),
        ReferentialAction::Cascade => ("c", "CASCADE"),
        ReferentialAction::SetNull => ("n", "SET NULL"),
        ReferentialAction::SetDefault => ("d", "SET DEFAULT"),
    }
}

pub(super) fn pg_constraint(names: Names<'_>) -> System {
    let catalog = names.catalog;
    let columns = vec![
        ("oid", SqlType::OID),
        ("conname", SqlType::NAME),
        ("connamespace", SqlType::OID),
        ("contype", SqlType::TEXT),
        ("condeferrable", SqlType::BOOL),
        ("condeferred", SqlType::BOOL),
        ("convalidated", SqlType::BOOL),
        ("conrelid", SqlType::OID),
        ("contypid", SqlType::OID),
        ("conindid", SqlType::OID),
        ("conparentid", SqlType::OID),
        ("confrelid", SqlType::OID),
        ("confupdtype", SqlType::TEXT),
        ("confdeltype", SqlType::TEXT),
        ("confmatchtype", SqlType::TEXT),
        ("conkey", SqlType::INT2.array_of()),
        ("confkey", SqlType::INT2.array_of()),
    ];
    let numbers =
        |columns: &[u16]| Datum::Array(columns.iter().map(|column| number(i64::from(*column) + 1)).collect());
    let row = |constraint: Constraint<'_>| {
        let foreign = constraint.foreign();
        let other = foreign.and_then(|foreign_key| referenced(catalog, foreign_key));
        let index = match (&constraint.kind, &other) {
            (Kind::Index(index), _) | (_, Some((_, Some(index)))) => index.object,
            _ => 0,
        };
        let letter = |of: fn(&ForeignKey) -> &'static str| text(foreign.map_or(" ", of));
        vec![
            number(constraint.object),
            text(&constraint.name),
            number(schema_object(catalog, constraint.schema)),
            text(constraint.kind().0),
            truth(foreign.is_some_and(|foreign_key| foreign_key.deferrable.is_some())),
            truth(foreign.is_some_and(|foreign_key| foreign_key.deferrable == Some(true))),
            truth(foreign.is_none_or(|foreign_key| foreign_key.validated)),
            number(constraint.table.object),
            number(0),
            number(index),
            number(0),
            number(other.as_ref().map_or(0, |(table, _)| table.object)),
            letter(|foreign_key| action(foreign_key.on_update).0),
            letter(|foreign_key| action(foreign_key.on_delete).0),
            letter(|_| "s"),
            // A check may be about none.
            Some(constraint.used(names))
                .filter(|used| !used.is_empty())
                .map_or(Datum::Null, |used| numbers(&used)),
            foreign.map_or(Datum::Null, |foreign_key| numbers(&foreign_key.referenced)),
        ]
    };
    (constraints(catalog).into_iter().map(row).collect(), columns)
}

/// The numbers of constraints, and their text in `CREATE TABLE`.
pub(crate) fn constraint_definitions(names: Names<'_>) -> Vec<(u32, String)> {
    let definition = |constraint: Constraint<'_>| {
        let mut definition = constraint.definition();
        if let Some(foreign_key) = constraint.foreign() {
            definition.push_str(&references(names, foreign_key));
        }
        (constraint.object, definition)
    };
    constraints(names.catalog).into_iter().map(definition).collect()
}

/// The text of a foreign key after its columns.
fn references(names: Names<'_>, foreign_key: &ForeignKey) -> String {
    let (schema, name) = &foreign_key.table;
    let columns = referenced(names.catalog, foreign_key)
        .map_or_else(String::new, |(table, _)| column_list(table, &foreign_key.referenced));
    let shown = names.shown(schema, name);
    let mut written = format!(" REFERENCES {shown}({columns})");
    for (event, chosen) in [("UPDATE", foreign_key.on_update), ("DELETE", foreign_key.on_delete)] {
        if chosen != ReferentialAction::NoAction {
            written.push_str(&format!(" ON {event} {}", action(chosen).1));
        }
    }
    written.push_str(match foreign_key.deferrable {
        None => "",
        Some(false) => " DEFERRABLE",
        Some(true) => " DEFERRABLE INITIALLY DEFERRED",
    });
    if !foreign_key.validated {
        written.push_str(" NOT VALID");
    }
    written
}

/// The views of `information_schema` about constraints.
pub(super) fn information(names: Names<'_>, database: &str, name: &str) -> Option<System> {
    let catalog = names.catalog;
    match name {
        "table_constraints" => Some(table_constraints(catalog, database)),
        "key_column_usage" => Some(key_column_usage(catalog, database)),
        "referential_constraints" => Some(referential_constraints(catalog, database)),
        "constraint_column_usage" => Some(constraint_column_usage(names, database)),
        "constraint_table_usage" => Some(constraint_table_usage(catalog, database)),
        "check_constraints" => Some(check_constraints(catalog, database)),
        _ => None,
    }
}

/// Database, schema and name of a constraint, then of its table.
const NAMES: [(&str, SqlType); 6] = [
    ("constraint_catalog", SqlType::NAME),
    ("constraint_schema", SqlType::NAME),
    ("constraint_name", SqlType::NAME),
    ("table_catalog", SqlType::NAME),
    ("table_schema", SqlType::NAME),
    ("table_name", SqlType::NAME),
];

fn names(constraint: &Constraint<'_>, database: &str) -> Vec<Datum> {
    let Constraint { schema, table_name, name, .. } = constraint;
    vec![text(database), text(*schema), text(name), text(database), text(*schema), text(*table_name)]
}

fn table_constraints(catalog: &Catalog, database: &str) -> System {
    let mut columns = NAMES.to_vec();
    columns.extend([
        ("constraint_type", SqlType::TEXT),
        ("is_deferrable", SqlType::TEXT),
        ("initially_deferred", SqlType::TEXT),
        ("enforced", SqlType::TEXT),
        ("nulls_distinct", SqlType::TEXT),
    ]);
    let yes = |value: bool| text(if value { "YES" } else { "NO" });
    let row = |constraint: Constraint<'_>| {
        let deferrable = constraint.foreign().and_then(|foreign_key| foreign_key.deferrable);
        let mut row = names(&constraint, database);
        row.push(text(constraint.kind().1));
        row.extend([deferrable.is_some(), deferrable == Some(true), true].map(yes));
        row.push(if constraint.kind().0 == "u" { yes(true) } else { Datum::Null });
        row
    };
    let not_null = not_null_columns(catalog).into_iter().map(|column| {
        let mut row = vec![text(database), text(column.schema), text(&column.name)];
        row.extend([text(database), text(column.schema), text(column.table), text("CHECK")]);
        row.extend([false, false, true].map(yes));
        row.push(Datum::Null);
        row
    });
    (constraints(catalog).into_iter().map(row).chain(not_null).collect(), columns)
}

/// A column that must have a value, which the standard's views tell of as of a check with a name.
struct NotNull<'c> {
    schema: &'c str,
    table: &'c str,
    name: String,
    condition: String,
}

fn not_null_columns(catalog: &Catalog) -> Vec<NotNull<'_>> {
    let mut columns = Vec::new();
    for (schema, table_name, definition) in catalog.iter() {
        let Definition::Table(table) = definition else { continue };
        let in_schema = schema_object(catalog, schema);
        for (place, column) in (1..).zip(&table.columns).filter(|(_, column)| !column.dropped) {
            if column.not_null {
                let name = format!("{in_schema}_{}_{place}_not_null", table.object);
                let condition = format!("{} IS NOT NULL", column.name);
                columns.push(NotNull { schema, table: table_name, name, condition });
            }
        }
    }
    columns
}

fn check_constraints(catalog: &Catalog, database: &str) -> System {
    let mut columns = NAMES[..3].to_vec();
    columns.push(("check_clause", SqlType::TEXT));
    let row = |schema: &str, name: &str, condition: String| {
        vec![text(database), text(schema), text(name), text(condition)]
    };
    let checks = constraints(catalog).into_iter().filter_map(|constraint| match constraint.kind {
        Kind::Check(condition) => Some(row(constraint.schema, &constraint.name, format!("({condition})"))),
        _ => None,
    });
    let not_null = not_null_columns(catalog);
    let not_null = not_null.into_iter().map(|column| row(column.schema, &column.name, column.condition));
    (checks.chain(not_null).collect(), columns)
}

/// The tables that constraints use: for a foreign key, the one that it refers to. Checks are not told of.
fn constraint_table_usage(catalog: &Catalog, database: &str) -> System {
    let mut columns = NAMES[3..].to_vec();
    columns.extend(&NAMES[..3]);
    let row = |constraint: Constraint<'_>| {
        let (schema, name) = match &constraint.kind {
            Kind::Check(_) => return None,
            Kind::Index(_) => (constraint.schema, constraint.table_name),
            Kind::Foreign(foreign_key) => (foreign_key.table.0.as_str(), foreign_key.table.1.as_str()),
        };
        let own = names(&constraint, database).into_iter().take(3);
        Some([text(database), text(schema), text(name)].into_iter().chain(own).collect())
    };
    (constraints(catalog).into_iter().filter_map(row).collect(), columns)
}

fn key_column_usage(catalog: &Catalog, database: &str) -> System {
    let mut columns = NAMES.to_vec();
    columns.extend([
        ("column_name", SqlType::NAME),
        ("ordinal_position", SqlType::INT4),
        ("position_in_unique_constraint", SqlType::INT4),
    ]);
    let mut rows = Vec::new();
    for constraint in constraints(catalog) {
        let other = constraint.foreign().and_then(|foreign_key| {
            let (_, index) = referenced(catalog, foreign_key)?;
            Some((foreign_key, index?))
        });
        for (place, column) in constraint.columns().iter().enumerate() {
            let there = other.as_ref().and_then(|(foreign_key, index)| {
                let referenced = foreign_key.referenced.get(place)?;
                index.columns.iter().position(|known| known == referenced)
            });
            let mut row = names(&constraint, database);
            row.push(text(&constraint.table.columns[usize::from(*column)].name));
            row.push(number(place as i64 + 1));
            row.push(there.map_or(Datum::Null, |there| number(there as i64 + 1)));
            rows.push(row);
        }
    }
    (rows, columns)
}

fn referential_constraints(catalog: &Catalog, database: &str) -> System {
    let mut columns = NAMES[..3].to_vec();
    columns.extend([
        ("unique_constraint_catalog", SqlType::NAME),
        ("unique_constraint_schema", SqlType::NAME),
        ("unique_constraint_name", SqlType::NAME),
        ("match_option", SqlType::TEXT),
        ("update_rule", SqlType::TEXT),
        ("delete_rule", SqlType::TEXT),
    ]);
    let row = |constraint: Constraint<'_>| {
        let foreign_key = constraint.foreign()?;
        // An index that is no constraint has no name in the standard's views.
        let unique = referenced(catalog, foreign_key).and_then(|(_, index)| index);
        let unique = unique.filter(|index| index.constraint).map(|index| index.name);
        let known = |value: &str| unique.as_ref().map_or(Datum::Null, |_| text(value));
        let mut row = names(&constraint, database);
        row.truncate(3);
        row.extend([known(database), known(&foreign_key.table.0)]);
        row.push(unique.as_ref().map_or(Datum::Null, text));
        row.extend([
            text("NONE"),
            text(action(foreign_key.on_update).1),
            text(action(foreign_key.on_delete).1),
        ]);
        Some(row)
    };
    (constraints(catalog).into_iter().filter_map(row).collect(), columns)
}

/// The columns that constraints use: for a foreign key, those that it refers to.
fn constraint_column_usage(looked_up: Names<'_>, database: &str) -> System {
    let catalog = looked_up.catalog;
    let columns = vec![
        ("table_catalog", SqlType::NAME),
        ("table_schema", SqlType::NAME),
        ("table_name", SqlType::NAME),
        ("column_name", SqlType::NAME),
        ("constraint_catalog", SqlType::NAME),
        ("constraint_schema", SqlType::NAME),
        ("constraint_name", SqlType::NAME),
    ];
    let mut rows = Vec::new();
    for constraint in constraints(catalog) {
        let other = constraint.foreign().and_then(|foreign_key| {
            let (table, _) = referenced(catalog, foreign_key)?;
            let (schema, name) = &foreign_key.table;
            Some((schema.as_str(), name.as_str(), table, foreign_key.referenced.clone()))
        });
        let own = || (constraint.schema, constraint.table_name, constraint.table, constraint.used(looked_up));
        let (schema, name, table, used) = other.unwrap_or_else(own);
        for column in used {
            let column = &table.columns[usize::from(column)].name;
            let mut row = vec![text(database), text(schema), text(name), text(column)];
            row.extend(names(&constraint, database).into_iter().take(3));
            rows.push(row);
        }
    }
    (rows, columns)
}
