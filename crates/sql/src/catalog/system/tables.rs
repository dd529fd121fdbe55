//! The other system tables: databases, sequences, and views of what other tables have.

use super::super::{Catalog, Definition};
use super::{BTREE, OWNER, OWNER_NAME, System, comments, number, relations, text, truth, types, users};
use crate::bind::Surroundings;
use crate::types::{Datum, SqlType};

/// The names of those that have no numbers.
pub(super) const VIEWS: &[&str] = &[
    "pg_cursors",
    "pg_group",
    "pg_indexes",
    "pg_prepared_statements",
    "pg_roles",
    "pg_sequences",
    "pg_settings",
    "pg_shadow",
    "pg_stat_activity",
    "pg_stat_all_tables",
    "pg_stat_user_tables",
    "pg_statio_all_tables",
    "pg_statio_user_tables",
    "pg_tables",
    "pg_timezone_abbrevs",
    "pg_timezone_names",
    "pg_user",
    "pg_views",
];

/// The system table with a name.
pub(super) fn table(catalog: &Catalog, surroundings: &Surroundings, name: &str) -> Option<System> {
    match name {
        "pg_type" => Some(types::pg_type()),
        "pg_proc" => Some(types::pg_proc()),
        "pg_opclass" => Some(types::pg_opclass()),
        "pg_sequence" => Some(sequences(catalog)),
        "pg_am" => Some(access_methods()),
        "pg_database" => Some(databases(surroundings)),
        "pg_roles" | "pg_authid" => Some(users::roles(catalog)),
        "pg_shadow" => Some(users::users(catalog, false)),
        "pg_user" => Some(users::users(catalog, true)),
        "pg_group" => Some(users::groups(catalog)),
        "pg_sequences" => Some(pg_sequences(catalog)),
        "pg_tables" => Some(pg_tables(catalog)),
        "pg_views" => Some(pg_views(catalog)),
        "pg_indexes" => Some(pg_indexes(catalog)),
        "pg_statio_all_tables" | "pg_statio_user_tables" => Some(reads_of_tables(catalog)),
        "pg_depend" => Some(depend(catalog)),
        "pg_description" => Some(comments::descriptions(catalog)),
        "pg_shdescription" => Some(comments::shared_descriptions(catalog)),
        "pg_tablespace" => Some(tablespaces()),
        "pg_stat_all_tables" | "pg_stat_user_tables" => Some(statistics_of_tables(catalog)),
        _ => super::empty::table(name),
    }
}

fn sequences(catalog: &Catalog) -> System {
    let columns = vec![
        ("seqrelid", SqlType::OID),
        ("seqtypid", SqlType::OID),
        ("seqstart", SqlType::INT8),
        ("seqincrement", SqlType::INT8),
        ("seqmax", SqlType::INT8),
        ("seqmin", SqlType::INT8),
        ("seqcache", SqlType::INT8),
        ("seqcycle", SqlType::BOOL),
    ];
    let rows = catalog.iter().filter_map(|(_, _, definition)| match definition {
        Definition::Sequence(sequence) => Some(vec![
            number(sequence.object),
            number(sequence.data_type.oid()),
            number(sequence.start),
            number(sequence.increment),
            number(sequence.maximum),
            number(sequence.minimum),
            number(1),
            truth(sequence.cycles),
        ]),
        _ => None,
    });
    (rows.collect(), columns)
}

fn access_methods() -> System {
    let columns = vec![("oid", SqlType::OID), ("amname", SqlType::NAME), ("amtype", SqlType::TEXT)];
    let rows = vec![
        vec![number(relations::HEAP), text("heap"), text("t")],
        vec![number(BTREE), text("btree"), text("i")],
    ];
    (rows, columns)
}

fn databases(surroundings: &Surroundings) -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("datname", SqlType::NAME),
        ("datdba", SqlType::OID),
        ("encoding", SqlType::INT4),
        ("datcollate", SqlType::TEXT),
        ("datctype", SqlType::TEXT),
        ("datistemplate", SqlType::BOOL),
        ("datallowconn", SqlType::BOOL),
        ("datconnlimit", SqlType::INT4),
        ("datlocprovider", SqlType::TEXT),
        ("daticulocale", SqlType::TEXT),
        ("datcollversion", SqlType::TEXT),
        ("dattablespace", SqlType::OID),
        ("datacl", SqlType::TEXT.array_of()),
    ];
    let row = vec![
        number(super::DATABASE),
        text(&surroundings.database),
        number(OWNER),
        number(6),
        text("C"),
        text("C"),
        truth(false),
        truth(true),
        number(-1),
        text("c"),
        Datum::Null,
        Datum::Null,
        number(DEFAULT_TABLESPACE),
        Datum::Null,
    ];
    (vec![row], columns)
}

/// The number of the tablespace that everything counts as being in.
const DEFAULT_TABLESPACE: u32 = 1663;

fn tablespaces() -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("spcname", SqlType::NAME),
        ("spcowner", SqlType::OID),
        ("spcacl", SqlType::TEXT.array_of()),
        ("spcoptions", SqlType::TEXT.array_of()),
    ];
    let row = vec![number(DEFAULT_TABLESPACE), text("pg_default"), number(OWNER), Datum::Null, Datum::Null];
    (vec![row], columns)
}

fn pg_tables(catalog: &Catalog) -> System {
    let columns = vec![
        ("schemaname", SqlType::NAME),
        ("tablename", SqlType::NAME),
        ("tableowner", SqlType::NAME),
        ("tablespace", SqlType::NAME),
        ("hasindexes", SqlType::BOOL),
        ("hasrules", SqlType::BOOL),
        ("hastriggers", SqlType::BOOL),
        ("rowsecurity", SqlType::BOOL),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| match definition {
        Definition::Table(table) => {
            let has_indexes = table.primary_key.is_some() || !table.indexes.is_empty();
            let has_triggers = !table.foreign_keys.is_empty() || !table.referrers.is_empty();
            let mut row = vec![text(schema), text(name), text(OWNER_NAME), Datum::Null];
            row.extend([has_indexes, false, has_triggers, false].map(truth));
            Some(row)
        }
        _ => None,
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

fn pg_views(catalog: &Catalog) -> System {
    let columns = vec![
        ("schemaname", SqlType::NAME),
        ("viewname", SqlType::NAME),
        ("viewowner", SqlType::NAME),
        ("definition", SqlType::TEXT),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| match definition {
        Definition::View { query, .. } => Some(vec![text(schema), text(name), text(OWNER_NAME), text(query)]),
        _ => None,
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

fn pg_indexes(catalog: &Catalog) -> System {
    let columns = vec![
        ("schemaname", SqlType::NAME),
        ("tablename", SqlType::NAME),
        ("indexname", SqlType::NAME),
        ("tablespace", SqlType::NAME),
        ("indexdef", SqlType::TEXT),
    ];
    let definitions = super::index_definitions(catalog, None);
    let mut rows = Vec::new();
    for (schema, name, definition) in catalog.iter() {
        let Definition::Index(table) = definition else { continue };
        let numbers = super::index_numbers(catalog.get(schema, table));
        let object = numbers.into_iter().find(|(known, _)| known == name).map(|(_, object)| object);
        let statement = definitions.iter().find(|(known, _)| Some(*known) == object);
        let statement = statement.map_or(Datum::Null, |(_, statement)| text(statement));
        rows.push(vec![text(schema), text(table), text(name), Datum::Null, statement]);
    }
    (rows, columns)
}

/// Sequences. What they gave last is no part of the definitions: it is null, as for who may not read it.
fn pg_sequences(catalog: &Catalog) -> System {
    let columns = vec![
        ("schemaname", SqlType::NAME),
        ("sequencename", SqlType::NAME),
        ("sequenceowner", SqlType::NAME),
        ("data_type", SqlType::TEXT),
        ("start_value", SqlType::INT8),
        ("min_value", SqlType::INT8),
        ("max_value", SqlType::INT8),
        ("increment_by", SqlType::INT8),
        ("cycle", SqlType::BOOL),
        ("cache_size", SqlType::INT8),
        ("last_value", SqlType::INT8),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| {
        let Definition::Sequence(sequence) = definition else { return None };
        Some(vec![
            text(schema),
            text(name),
            text(OWNER_NAME),
            text(sequence.data_type.name()),
            number(sequence.start),
            number(sequence.minimum),
            number(sequence.maximum),
            number(sequence.increment),
            truth(sequence.cycles),
            number(1),
            Datum::Null,
        ])
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

/// How often blocks of tables were read: there are none here.
fn reads_of_tables(catalog: &Catalog) -> System {
    let counts = [
        "heap_blks_read",
        "heap_blks_hit",
        "idx_blks_read",
        "idx_blks_hit",
        "toast_blks_read",
        "toast_blks_hit",
        "tidx_blks_read",
        "tidx_blks_hit",
    ];
    let mut columns =
        vec![("relid", SqlType::OID), ("schemaname", SqlType::NAME), ("relname", SqlType::NAME)];
    columns.extend(counts.map(|name| (name, SqlType::INT8)));
    let row = |(schema, name, definition): (&str, &str, &Definition)| match definition {
        Definition::Table(table) => {
            let mut row = vec![number(table.object), text(schema), text(name)];
            row.extend(counts.map(|_| number(0)));
            Some(row)
        }
        _ => None,
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

/// Which sequences go with which columns; nothing else is told.
fn depend(catalog: &Catalog) -> System {
    let columns = vec![
        ("classid", SqlType::OID),
        ("objid", SqlType::OID),
        ("objsubid", SqlType::INT4),
        ("refclassid", SqlType::OID),
        ("refobjid", SqlType::OID),
        ("refobjsubid", SqlType::INT4),
        ("deptype", SqlType::TEXT),
    ];
    let class = super::table_object("pg_class").unwrap_or_default();
    let row = |(schema, _, definition): (&str, &str, &Definition)| {
        let Definition::Sequence(sequence) = definition else { return None };
        let (table, column) = sequence.owner.as_ref()?;
        let Some(Definition::Table(table)) = catalog.get(schema, table) else { return None };
        let place = table.columns.iter().position(|known| known.name == *column && !known.dropped)?;
        let kind = if table.columns[place].identity.is_some() { "i" } else { "a" };
        let owner = [class, table.object].map(number);
        let mut row = vec![number(class), number(sequence.object), number(0)];
        row.extend(owner);
        row.extend([number(place as i64 + 1), text(kind)]);
        Some(row)
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

/// What was done to tables: nobody counts it.
fn statistics_of_tables(catalog: &Catalog) -> System {
    let counts = [
        "seq_scan",
        "seq_tup_read",
        "idx_scan",
        "idx_tup_fetch",
        "n_tup_ins",
        "n_tup_upd",
        "n_tup_del",
        "n_live_tup",
        "n_dead_tup",
    ];
    let times = ["last_vacuum", "last_autovacuum", "last_analyze", "last_autoanalyze"];
    let mut columns =
        vec![("relid", SqlType::OID), ("schemaname", SqlType::NAME), ("relname", SqlType::NAME)];
    columns.extend(counts.map(|name| (name, SqlType::INT8)));
    columns.extend(times.map(|name| (name, SqlType::TIMESTAMPTZ)));
    let row = |(schema, name, definition): (&str, &str, &Definition)| match definition {
        Definition::Table(table) => {
            let mut row = vec![number(table.object), text(schema), text(name)];
            row.resize(3 + counts.len() + times.len(), Datum::Null);
            Some(row)
        }
        _ => None,
    };
    (catalog.iter().filter_map(row).collect(), columns)
}
