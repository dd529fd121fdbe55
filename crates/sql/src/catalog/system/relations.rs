//! Tables of relations: `pg_class`, `pg_attribute`, `pg_index` and their like.

use super::super::{Catalog, Column, Definition, PUBLIC, Table};
use super::indexes::{indexes, pg_index};
use super::{
    BTREE, DescribedView, INFORMATION_SCHEMA, Names, OWNER, PG_CATALOG, PUBLIC_OBJECT, System, defaults,
    empty, number, text, truth,
};
use crate::bind::is_temporary;
use crate::types::functions::quote_ident;
use crate::types::{Datum, SqlType};

/// Where the numbers of the types of rows begin: each is that of its relation, so much higher. `pg_type` does not list them.
const ROWS: u32 = 1 << 30;

/// The number of the access method of tables.
pub(super) const HEAP: u32 = 2;

/// A relation, as `pg_class` has it.
pub(super) struct Relation<'c> {
    pub object: u32,
    pub schema: &'c str,
    pub name: String,
    kind: &'static str,
    columns: usize,
    pub table: Option<&'c Table>,
}

/// The number of a schema.
pub(crate) fn schema_object(catalog: &Catalog, schema: &str) -> u32 {
    match schema {
        PUBLIC => PUBLIC_OBJECT,
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        other => catalog.get(other, "").and_then(Definition::object).unwrap_or(0),
    }
}

pub(super) fn relations(catalog: &Catalog) -> Vec<Relation<'_>> {
    let mut relations = Vec::new();
    for (schema, name, definition) in catalog.iter() {
        let (object, kind, columns, table) = match definition {
            Definition::Table(table) => (table.object, "r", table.columns.len(), Some(table)),
            Definition::Sequence(sequence) => (sequence.object, "S", 3, None),
            Definition::View { object, columns, .. } => (*object, "v", columns.len(), None),
            _ => continue,
        };
        relations.push(Relation { object, schema, name: name.to_owned(), kind, columns, table });
        for index in indexes(table) {
            let (kind, columns) = ("i", index.parts.len() + index.included.len());
            relations.push(Relation {
                object: index.object,
                schema,
                name: index.name,
                kind,
                columns,
                table: None,
            });
        }
    }
    relations
}

/// The system table with a name.
pub(super) fn table(names: Names<'_>, views: &[DescribedView<'_>], name: &str) -> Option<System> {
    let catalog = names.catalog;
    match name {
        "pg_class" => Some(classes(catalog)),
        "pg_attribute" => Some(pg_attribute(names, views)),
        "pg_index" => Some(pg_index(names)),
        "pg_constraint" => Some(super::constraints::pg_constraint(names)),
        "pg_attrdef" => Some(pg_attrdef(names)),
        "pg_namespace" => Some(namespaces(catalog)),
        _ => None,
    }
}

/// The columns of `pg_class`.
const CLASS_COLUMNS: &str = "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid \
    reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex:bool \
    relisshared:bool relpersistence:text relkind:text relnatts:int2 relchecks:int2 relhasrules:bool \
    relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool \
    relreplident:text relispartition:bool relpartbound:text relacl:text[] reloptions:text[]";

fn classes(catalog: &Catalog) -> System {
    let row = |relation: Relation<'_>| {
        let checks = relation.table.map_or(0, |table| table.checks.len() as i64);
        // Foreign keys are kept by triggers in PostgreSQL, and looked for only where there are some.
        let has_triggers =
            relation.table.is_some_and(|table| !table.foreign_keys.is_empty() || !table.referrers.is_empty());
        let has_index = relation.table.is_some_and(|table| !indexes(Some(table)).is_empty());
        let persistence = if is_temporary(relation.schema) { "t" } else { "p" };
        vec![
            number(relation.object),
            text(relation.name),
            number(schema_object(catalog, relation.schema)),
            number(if matches!(relation.kind, "r" | "v") { ROWS + relation.object } else { 0 }),
            number(0),
            number(OWNER),
            number(match relation.kind {
                "i" => BTREE,
                "r" => HEAP,
                _ => 0,
            }),
            number(if relation.kind == "v" { 0 } else { relation.object }),
            number(0),
            number(0),
            Datum::Float(-1.0),
            number(0),
            number(0),
            truth(has_index),
            truth(false),
            text(persistence),
            text(relation.kind),
            number(relation.columns as i64),
            number(checks),
            truth(false),
            truth(has_triggers),
            truth(false),
            truth(false),
            truth(false),
            truth(true),
            text(if relation.kind == "r" { "d" } else { "n" }),
            truth(false),
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]
    };
    (relations(catalog).into_iter().map(row).collect(), empty::parsed(CLASS_COLUMNS).collect())
}

/// A column of a table, a view or an index.
struct Attribute<'c> {
    relation: u32,
    name: String,
    place: i64,
    data_type: SqlType,
    /// The column, if it is one of a table.
    column: Option<&'c Column>,
}

fn attributes<'c>(names: Names<'c>, views: &[DescribedView<'c>]) -> Vec<Attribute<'c>> {
    let mut attributes = Vec::new();
    for relation in relations(names.catalog) {
        let Some(table) = relation.table else { continue };
        for (place, column) in (1..).zip(&table.columns) {
            let (name, data_type, column) = (column.name.clone(), column.data_type, Some(column));
            attributes.push(Attribute { relation: relation.object, name, place, data_type, column });
        }
        for index in indexes(Some(table)) {
            for (place, (name, data_type)) in (1..).zip(index.attributes(&relation.name, table, names)) {
                attributes.push(Attribute { relation: index.object, name, place, data_type, column: None });
            }
        }
    }
    for view in views {
        for (place, (name, data_type)) in (1..).zip(&view.columns) {
            let (name, data_type) = ((*name).to_owned(), *data_type);
            attributes.push(Attribute { relation: view.object, name, place, data_type, column: None });
        }
    }
    attributes
}

fn pg_attribute(names: Names<'_>, views: &[DescribedView<'_>]) -> System {
    let columns = vec![
        ("attrelid", SqlType::OID),
        ("attname", SqlType::NAME),
        ("atttypid", SqlType::OID),
        ("attlen", SqlType::INT2),
        ("attnum", SqlType::INT2),
        ("atttypmod", SqlType::INT4),
        ("attnotnull", SqlType::BOOL),
        ("atthasdef", SqlType::BOOL),
        ("attidentity", SqlType::TEXT),
        ("attgenerated", SqlType::TEXT),
        ("attisdropped", SqlType::BOOL),
        ("attislocal", SqlType::BOOL),
        ("attcollation", SqlType::OID),
        ("attndims", SqlType::INT4),
        ("attacl", SqlType::TEXT.array_of()),
        ("attoptions", SqlType::TEXT.array_of()),
        ("attstattarget", SqlType::INT4),
        ("attstorage", SqlType::TEXT),
        ("attcompression", SqlType::TEXT),
    ];
    let row = |attribute: Attribute<'_>| {
        let Attribute { relation, name, place, data_type, column } = attribute;
        let dropped = column.is_some_and(|column| column.dropped);
        let is_generated = column.is_some_and(|column| column.generated.is_some());
        let identity = match column.and_then(|column| column.identity) {
            None => "",
            Some(true) => "a",
            Some(false) => "d",
        };
        let name = if dropped { format!("........pg.dropped.{place}........") } else { name };
        vec![
            number(relation),
            text(name),
            number(if dropped { 0 } else { data_type.oid() }),
            number(data_type.size()),
            number(place),
            number(data_type.modifier),
            truth(column.is_some_and(|column| column.not_null)),
            truth(is_generated || column.is_some_and(|column| defaults::has(column, names))),
            text(identity),
            text(if is_generated { "s" } else { "" }),
            truth(dropped),
            truth(true),
            number(0),
            number(i64::from(data_type.array)),
            Datum::Null,
            Datum::Null,
            number(-1),
            text("p"),
            text(""),
        ]
    };
    (attributes(names, views).into_iter().map(row).collect(), columns)
}

fn pg_attrdef(names: Names<'_>) -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("adrelid", SqlType::OID),
        ("adnum", SqlType::INT2),
        ("adbin", SqlType::TEXT),
    ];
    let mut rows = Vec::new();
    for relation in relations(names.catalog) {
        let Some(table) = relation.table else { continue };
        for (place, column) in (1_i64..).zip(&table.columns) {
            if let Some(default) = defaults::generation(column).or_else(|| defaults::shown(column, names)) {
                rows.push(vec![number(0), number(relation.object), number(place), text(default)]);
            }
        }
    }
    (rows, columns)
}

fn namespaces(catalog: &Catalog) -> System {
    let columns = vec![("oid", SqlType::OID), ("nspname", SqlType::NAME), ("nspowner", SqlType::OID)];
    let row = |(object, schema)| vec![number(object), text(schema), number(OWNER)];
    (super::schema_names(catalog).into_iter().map(row).collect(), columns)
}

/// The numbers of relations, and their names as `regclass` shows them.
pub(crate) fn relation_names(names: Names<'_>) -> Vec<(u32, String)> {
    let shown = |relation: Relation<'_>| (relation.object, names.shown(relation.schema, &relation.name));
    let own = relations(names.catalog).into_iter().map(shown);
    let system = super::table_objects().map(|(name, object)| (object, name.to_owned()));
    own.chain(system).chain([(0, "-".to_owned())]).collect()
}

/// The numbers of relations, and whether each is found by its name without its schema.
pub(crate) fn relations_seen(names: Names<'_>) -> Vec<(u32, bool)> {
    let is_seen = |relation: Relation<'_>| {
        (relation.object, names.surroundings.sees(names.catalog, relation.schema, &relation.name))
    };
    let system = super::table_objects().map(|(_, object)| (object, true));
    relations(names.catalog).into_iter().map(is_seen).chain(system).collect()
}

pub(super) fn column_list(table: &Table, columns: &[u16]) -> String {
    let names = columns.iter().map(|column| quote_ident(&table.columns[usize::from(*column)].name));
    names.collect::<Vec<_>>().join(", ")
}

/// The numbers of views, and their queries.
pub(crate) fn view_definitions(catalog: &Catalog) -> Vec<(u32, String)> {
    let views = catalog.iter().filter_map(|(_, _, definition)| match definition {
        Definition::View { object, query, .. } => Some((*object, query.clone())),
        _ => None,
    });
    views.collect()
}
