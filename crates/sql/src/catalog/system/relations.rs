//! Tables of relations: `pg_class`, `pg_attribute`, `pg_index` and their like.

use super::super::{Catalog, Column, ColumnOrder, Definition, PUBLIC, Table};
use super::{
    DescribedView, INFORMATION_SCHEMA, OWNER, PG_CATALOG, PUBLIC_OBJECT, System, number, text, truth,
};
use crate::bind::TEMPORARY;
use crate::types::{Datum, SqlType};

/// A relation, as `pg_class` has it.
struct Relation<'c> {
    object: u32,
    schema: &'c str,
    name: String,
    kind: &'static str,
    columns: usize,
    table: Option<&'c Table>,
}

/// The number of a schema.
pub(super) fn schema_object(catalog: &Catalog, schema: &str) -> u32 {
    match schema {
        PUBLIC => PUBLIC_OBJECT,
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        other => catalog.get(other, "").and_then(Definition::object).unwrap_or(0),
    }
}

fn relations(catalog: &Catalog) -> Vec<Relation<'_>> {
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
            let (kind, columns) = ("i", index.columns.len());
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

/// An index of a table, its primary key among them.
pub(super) struct Indexed {
    pub object: u32,
    pub name: String,
    pub columns: Vec<u16>,
    pub orders: Vec<ColumnOrder>,
    pub unique: bool,
    pub primary: bool,
    pub constraint: bool,
    pub ready: bool,
}

pub(super) fn indexes(table: Option<&Table>) -> Vec<Indexed> {
    let Some(table) = table else { return Vec::new() };
    let key = table.primary_key.iter().map(|key| Indexed {
        object: key.object,
        name: key.name.clone(),
        columns: key.columns.clone(),
        orders: vec![ColumnOrder::default(); key.columns.len()],
        unique: true,
        primary: true,
        constraint: true,
        ready: true,
    });
    let others = table.indexes.iter().map(|index| Indexed {
        object: index.object,
        name: index.name.clone(),
        columns: index.columns.clone(),
        orders: index.orders.clone(),
        unique: index.unique,
        primary: false,
        constraint: index.constraint,
        ready: index.state == crate::plan::IndexState::Ready,
    });
    key.chain(others).collect()
}

/// The names and numbers of a table's indexes.
pub(crate) fn index_numbers(definition: Option<&Definition>) -> Vec<(String, u32)> {
    let table = match definition {
        Some(Definition::Table(table)) => Some(table),
        _ => None,
    };
    indexes(table).into_iter().map(|index| (index.name, index.object)).collect()
}

/// The system table with a name.
pub(super) fn table(catalog: &Catalog, views: &[DescribedView<'_>], name: &str) -> Option<System> {
    match name {
        "pg_class" => Some(classes(catalog)),
        "pg_attribute" => Some(pg_attribute(catalog, views)),
        "pg_index" => Some(pg_index(catalog)),
        "pg_constraint" => Some(super::constraints::pg_constraint(catalog)),
        "pg_attrdef" => Some(defaults(catalog)),
        "pg_namespace" => Some(namespaces(catalog)),
        _ => None,
    }
}

fn classes(catalog: &Catalog) -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("relname", SqlType::NAME),
        ("relnamespace", SqlType::OID),
        ("reltype", SqlType::OID),
        ("reloftype", SqlType::OID),
        ("relowner", SqlType::OID),
        ("relam", SqlType::OID),
        ("reltablespace", SqlType::OID),
        ("relpages", SqlType::INT4),
        ("reltuples", SqlType::FLOAT4),
        ("reltoastrelid", SqlType::OID),
        ("relhasindex", SqlType::BOOL),
        ("relisshared", SqlType::BOOL),
        ("relpersistence", SqlType::TEXT),
        ("relkind", SqlType::TEXT),
        ("relnatts", SqlType::INT2),
        ("relchecks", SqlType::INT2),
        ("relhasrules", SqlType::BOOL),
        ("relhastriggers", SqlType::BOOL),
        ("relhassubclass", SqlType::BOOL),
        ("relrowsecurity", SqlType::BOOL),
        ("relforcerowsecurity", SqlType::BOOL),
        ("relreplident", SqlType::TEXT),
        ("relispartition", SqlType::BOOL),
        ("relpartbound", SqlType::TEXT),
        ("relacl", SqlType::TEXT.array_of()),
        ("reloptions", SqlType::TEXT.array_of()),
    ];
    let row = |relation: Relation<'_>| {
        let checks = relation.table.map_or(0, |table| table.checks.len() as i64);
        // Foreign keys are kept by triggers in PostgreSQL, and looked for only where there are some.
        let has_triggers =
            relation.table.is_some_and(|table| !table.foreign_keys.is_empty() || !table.referrers.is_empty());
        let has_index = relation.table.is_some_and(|table| !indexes(Some(table)).is_empty());
        let persistence = if relation.schema.starts_with(TEMPORARY) { "t" } else { "p" };
        vec![
            number(relation.object),
            text(relation.name),
            number(schema_object(catalog, relation.schema)),
            number(0),
            number(0),
            number(OWNER),
            number(if relation.kind == "i" { 403 } else { 2 }),
            number(0),
            number(0),
            Datum::Float(-1.0),
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
            text("d"),
            truth(false),
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]
    };
    (relations(catalog).into_iter().map(row).collect(), columns)
}

/// A column of a table, a view or an index.
struct Attribute<'c> {
    relation: u32,
    name: &'c str,
    place: i64,
    data_type: SqlType,
    /// The column, if it is one of a table.
    column: Option<&'c Column>,
}

fn attributes<'c>(catalog: &'c Catalog, views: &[DescribedView<'c>]) -> Vec<Attribute<'c>> {
    let mut attributes = Vec::new();
    for relation in relations(catalog) {
        let Some(table) = relation.table else { continue };
        for (place, column) in (1..).zip(&table.columns) {
            let (name, data_type, column) = (column.name.as_str(), column.data_type, Some(column));
            attributes.push(Attribute { relation: relation.object, name, place, data_type, column });
        }
        for index in indexes(Some(table)) {
            let columns = index.columns.iter().filter_map(|number| table.columns.get(usize::from(*number)));
            for (place, column) in (1..).zip(columns) {
                let (name, data_type) = (column.name.as_str(), column.data_type);
                attributes.push(Attribute { relation: index.object, name, place, data_type, column: None });
            }
        }
    }
    for view in views {
        for (place, (name, data_type)) in (1..).zip(&view.columns) {
            let (name, data_type) = (*name, *data_type);
            attributes.push(Attribute { relation: view.object, name, place, data_type, column: None });
        }
    }
    attributes
}

fn pg_attribute(catalog: &Catalog, views: &[DescribedView<'_>]) -> System {
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
        let Attribute { relation, place, data_type, column, .. } = attribute;
        let dropped = column.is_some_and(|column| column.dropped);
        let identity = match column.and_then(|column| column.identity) {
            None => "",
            Some(true) => "a",
            Some(false) => "d",
        };
        let name =
            if dropped { format!("........pg.dropped.{place}........") } else { attribute.name.to_owned() };
        let has_default = |column: &Column| column.default.is_some() && column.identity.is_none();
        vec![
            number(relation),
            text(name),
            number(if dropped { 0 } else { data_type.oid() }),
            number(data_type.size()),
            number(place),
            number(data_type.modifier),
            truth(column.is_some_and(|column| column.not_null)),
            truth(column.is_some_and(has_default)),
            text(identity),
            text(""),
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
    (attributes(catalog, views).into_iter().map(row).collect(), columns)
}

fn pg_index(catalog: &Catalog) -> System {
    let columns = vec![
        ("indexrelid", SqlType::OID),
        ("indrelid", SqlType::OID),
        ("indnatts", SqlType::INT2),
        ("indnkeyatts", SqlType::INT2),
        ("indisunique", SqlType::BOOL),
        ("indisprimary", SqlType::BOOL),
        ("indisexclusion", SqlType::BOOL),
        ("indimmediate", SqlType::BOOL),
        ("indisclustered", SqlType::BOOL),
        ("indisvalid", SqlType::BOOL),
        ("indisready", SqlType::BOOL),
        ("indislive", SqlType::BOOL),
        ("indisreplident", SqlType::BOOL),
        ("indkey", SqlType::INT2.vector_of()),
        ("indoption", SqlType::INT2.vector_of()),
        ("indclass", SqlType::OID.vector_of()),
        ("indcollation", SqlType::OID.vector_of()),
        ("indnullsnotdistinct", SqlType::BOOL),
        ("indexprs", SqlType::TEXT),
        ("indpred", SqlType::TEXT),
    ];
    let mut rows = Vec::new();
    for relation in relations(catalog) {
        for index in indexes(relation.table) {
            let count = index.columns.len() as i64;
            let numbers = index.columns.iter().map(|column| number(i64::from(*column) + 1)).collect();
            let options = index.orders.iter().map(|order| number(i64::from(order.option()))).collect();
            rows.push(vec![
                number(index.object),
                number(relation.object),
                number(count),
                number(count),
                truth(index.unique),
                truth(index.primary),
                truth(false),
                truth(true),
                truth(false),
                truth(index.ready),
                truth(true),
                truth(true),
                truth(false),
                Datum::Array(numbers),
                Datum::Array(options),
                Datum::Array(vec![number(0); index.columns.len()]),
                Datum::Array(vec![number(0); index.columns.len()]),
                truth(false),
                Datum::Null,
                Datum::Null,
            ]);
        }
    }
    (rows, columns)
}

fn defaults(catalog: &Catalog) -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("adrelid", SqlType::OID),
        ("adnum", SqlType::INT2),
        ("adbin", SqlType::TEXT),
    ];
    let mut rows = Vec::new();
    for relation in relations(catalog) {
        let Some(table) = relation.table else { continue };
        for (place, column) in (1_i64..).zip(&table.columns) {
            if let (Some(default), None) = (&column.default, column.identity) {
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
pub(crate) fn relation_names(catalog: &Catalog) -> Vec<(u32, String)> {
    let shown = |relation: Relation<'_>| {
        let name = match relation.schema {
            PUBLIC => relation.name,
            schema => format!("{schema}.{}", relation.name),
        };
        (relation.object, name)
    };
    relations(catalog).into_iter().map(shown).collect()
}

pub(super) fn column_list(table: &Table, columns: &[u16]) -> String {
    let names = columns.iter().map(|column| table.columns[usize::from(*column)].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// The numbers of indexes, and the statements that would make them.
pub(crate) fn index_definitions(catalog: &Catalog) -> Vec<(u32, String)> {
    let mut definitions = Vec::new();
    for relation in relations(catalog) {
        let Some(table) = relation.table else { continue };
        for index in indexes(Some(table)) {
            let unique = if index.unique { "UNIQUE " } else { "" };
            let columns = index.columns.iter().zip(&index.orders).map(|(column, order)| {
                let name = table.columns.get(usize::from(*column)).map_or("", |column| &column.name);
                format!("{name}{}", order.suffix())
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            let Relation { schema, name, .. } = &relation;
            let statement =
                format!("CREATE {unique}INDEX {} ON {schema}.{name} USING btree ({columns})", index.name);
            definitions.push((index.object, statement));
        }
    }
    definitions
}

/// The numbers of indexes, and the names of their columns.
pub(crate) fn index_columns(catalog: &Catalog) -> Vec<(u32, Vec<String>)> {
    let mut all = Vec::new();
    for relation in relations(catalog) {
        let Some(table) = relation.table else { continue };
        for index in indexes(Some(table)) {
            let name =
                |column: &u16| table.columns.get(usize::from(*column)).map(|column| column.name.clone());
            all.push((index.object, index.columns.iter().filter_map(name).collect()));
        }
    }
    all
}

/// The numbers of views, and their queries.
pub(crate) fn view_definitions(catalog: &Catalog) -> Vec<(u32, String)> {
    let views = catalog.iter().filter_map(|(_, _, definition)| match definition {
        Definition::View { object, query, .. } => Some((*object, query.clone())),
        _ => None,
    });
    views.collect()
}
