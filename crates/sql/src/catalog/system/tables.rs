//! The other system tables: types, databases, users, settings, and the standard's views.

use super::super::{Catalog, Definition};
use super::{DescribedView, OWNER, PG_CATALOG, System, columns, number, text, truth};
use crate::bind::Surroundings;
use crate::types::{BaseType, Datum, SqlType};

/// All types by their names in `pg_type`.
pub(crate) const TYPES: &[(&str, SqlType)] = &[
    ("bool", SqlType::BOOL),
    ("bytea", SqlType::BYTEA),
    ("name", SqlType::NAME),
    ("int8", SqlType::INT8),
    ("int2", SqlType::INT2),
    ("int4", SqlType::INT4),
    ("text", SqlType::TEXT),
    ("oid", SqlType::OID),
    ("json", SqlType::JSON),
    ("float4", SqlType::FLOAT4),
    ("float8", SqlType::FLOAT8),
    ("bpchar", SqlType::of(BaseType::Char)),
    ("varchar", SqlType::VARCHAR),
    ("date", SqlType::DATE),
    ("time", SqlType::TIME),
    ("timestamp", SqlType::TIMESTAMP),
    ("timestamptz", SqlType::TIMESTAMPTZ),
    ("interval", SqlType::INTERVAL),
    ("numeric", SqlType::NUMERIC),
    ("uuid", SqlType::UUID),
    ("jsonb", SqlType::JSONB),
    ("unknown", SqlType::UNKNOWN),
];

/// The system table with a name.
pub(super) fn table(catalog: &Catalog, surroundings: &Surroundings, name: &str) -> Option<System> {
    match name {
        "pg_type" => Some(types()),
        "pg_settings" => Some(settings()),
        "pg_sequence" => Some(sequences(catalog)),
        "pg_am" => Some(access_methods()),
        "pg_database" => Some(databases(surroundings)),
        "pg_roles" | "pg_user" | "pg_authid" => Some(roles(catalog)),
        "pg_tables" => Some(pg_tables(catalog)),
        "pg_views" => Some(pg_views(catalog)),
        "pg_indexes" => Some(pg_indexes(catalog)),
        "pg_statio_all_tables" | "pg_statio_user_tables" => Some(reads_of_tables(catalog)),
        "pg_depend" => Some(depend(catalog)),
        "pg_tablespace" => Some(tablespaces()),
        "pg_stat_all_tables" | "pg_stat_user_tables" => Some(statistics_of_tables(catalog)),
        _ => super::empty::table(name),
    }
}

fn types() -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("typname", SqlType::NAME),
        ("typnamespace", SqlType::OID),
        ("typowner", SqlType::OID),
        ("typlen", SqlType::INT2),
        ("typtype", SqlType::TEXT),
        ("typcategory", SqlType::TEXT),
        ("typisdefined", SqlType::BOOL),
        ("typdelim", SqlType::TEXT),
        ("typrelid", SqlType::OID),
        ("typelem", SqlType::OID),
        ("typarray", SqlType::OID),
        ("typbasetype", SqlType::OID),
        ("typtypmod", SqlType::INT4),
        ("typnotnull", SqlType::BOOL),
        ("typcollation", SqlType::OID),
        ("typinput", SqlType::TEXT),
        ("typoutput", SqlType::TEXT),
        ("typreceive", SqlType::TEXT),
        ("typsend", SqlType::TEXT),
        ("typmodin", SqlType::TEXT),
        ("typmodout", SqlType::TEXT),
        ("typanalyze", SqlType::TEXT),
    ];
    let row = |name: String, data_type: SqlType, element: u32, array: u32| {
        let functions = type_functions(name.trim_start_matches('_'), data_type);
        let mut row = vec![
            number(data_type.oid()),
            text(name),
            number(PG_CATALOG),
            number(OWNER),
            number(data_type.size()),
            text("b"),
            text(data_type.category().to_string()),
            truth(true),
            text(","),
            number(0),
            number(element),
            number(array),
            number(0),
            number(-1),
            truth(false),
            number(0),
        ];
        row.extend(functions.map(text));
        row
    };
    let mut rows = Vec::new();
    for (name, data_type) in TYPES {
        let array = if data_type.is_unknown() { 0 } else { data_type.array_of().oid() };
        rows.push(row((*name).to_owned(), *data_type, 0, array));
        if array != 0 {
            rows.push(row(format!("_{name}"), data_type.array_of(), data_type.oid(), 0));
        }
    }
    (rows, columns)
}

/// The names that PostgreSQL's functions of a type have: input, output, receive, send, modifier input and output, analyze.
fn type_functions(name: &str, data_type: SqlType) -> [String; 7] {
    let has_underscore = matches!(
        name,
        "json" | "jsonb" | "date" | "time" | "timestamp" | "timestamptz" | "interval" | "numeric" | "uuid"
    );
    let stem = match (data_type.array, has_underscore) {
        (true, _) => "array_".to_owned(),
        (false, true) => format!("{name}_"),
        (false, false) => name.to_owned(),
    };
    let has_modifier =
        matches!(name, "bpchar" | "varchar" | "time" | "timestamp" | "timestamptz" | "interval" | "numeric");
    let modifier = |way: &str| if has_modifier { format!("{name}typmod{way}") } else { "-".to_owned() };
    let [input, output, receive, send] = ["in", "out", "recv", "send"].map(|way| format!("{stem}{way}"));
    let analyze = if data_type.array { "array_typanalyze" } else { "-" };
    [input, output, receive, send, modifier("in"), modifier("out"), analyze.to_owned()]
}

/// Parameters that are the same for all sessions. `SHOW` knows the others.
fn settings() -> System {
    let columns = vec![("name", SqlType::NAME), ("setting", SqlType::TEXT)];
    let known = [
        ("max_identifier_length", "63"),
        ("max_index_keys", "32"),
        ("server_encoding", "UTF8"),
        ("server_version_num", crate::bind::VERSION_NUMBER),
    ];
    (known.map(|(name, setting)| vec![text(name), text(setting)]).to_vec(), columns)
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
    let rows = vec![vec![number(2), text("heap"), text("t")], vec![number(403), text("btree"), text("i")]];
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
        number(1),
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

fn roles(catalog: &Catalog) -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("rolname", SqlType::NAME),
        ("rolsuper", SqlType::BOOL),
        ("rolinherit", SqlType::BOOL),
        ("rolcreaterole", SqlType::BOOL),
        ("rolcreatedb", SqlType::BOOL),
        ("rolcanlogin", SqlType::BOOL),
        ("rolreplication", SqlType::BOOL),
        ("rolconnlimit", SqlType::INT4),
        ("rolbypassrls", SqlType::BOOL),
        ("rolvaliduntil", SqlType::TIMESTAMPTZ),
    ];
    let row = |object: u32, name: &str, may_connect: bool| {
        let mut row = vec![number(object), text(name)];
        row.extend([true, true, false, false, may_connect, false].map(truth));
        row.extend([number(-1), truth(true), Datum::Null]);
        row
    };
    let mut rows = vec![row(OWNER, "ordain", true)];
    for (_, name, definition) in catalog.iter() {
        if let Definition::User { object, .. } | Definition::Role { object, .. } = definition
            && let Some(name) = name.strip_prefix("user ").filter(|name| *name != "ordain")
        {
            let may_connect = matches!(definition, Definition::User { .. });
            rows.push(row(*object, name, may_connect));
        }
    }
    (rows, columns)
}

fn pg_tables(catalog: &Catalog) -> System {
    let columns = vec![
        ("schemaname", SqlType::NAME),
        ("tablename", SqlType::NAME),
        ("tableowner", SqlType::NAME),
        ("hasindexes", SqlType::BOOL),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| match definition {
        Definition::Table(table) => {
            let has_indexes = table.primary_key.is_some() || !table.indexes.is_empty();
            Some(vec![text(schema), text(name), text("ordain"), truth(has_indexes)])
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
        Definition::View { query, .. } => Some(vec![text(schema), text(name), text("ordain"), text(query)]),
        _ => None,
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

fn pg_indexes(catalog: &Catalog) -> System {
    let columns = vec![
        ("schemaname", SqlType::NAME),
        ("tablename", SqlType::NAME),
        ("indexname", SqlType::NAME),
        ("indexdef", SqlType::TEXT),
    ];
    let definitions = super::index_definitions(catalog);
    let names = super::relation_names(catalog);
    let mut rows = Vec::new();
    for (schema, name, definition) in catalog.iter() {
        let Definition::Index(table) = definition else { continue };
        let shown = if schema == super::super::PUBLIC { name.to_owned() } else { format!("{schema}.{name}") };
        let object = names.iter().find(|(_, known)| *known == shown).map(|(object, _)| *object);
        let statement = definitions.iter().find(|(known, _)| Some(*known) == object);
        let statement = statement.map_or(Datum::Null, |(_, statement)| text(statement));
        rows.push(vec![text(schema), text(table), text(name), statement]);
    }
    (rows, columns)
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

/// A view of the standard's `information_schema`.
pub(super) fn information(
    catalog: &Catalog,
    views: &[DescribedView<'_>],
    surroundings: &Surroundings,
    name: &str,
) -> Option<System> {
    let database = surroundings.database.as_str();
    match name {
        "tables" => Some(information_tables(catalog, database)),
        "columns" => Some(columns::information(catalog, views, database)),
        "sequences" => Some(information_sequences(catalog, database)),
        "schemata" => {
            let columns = vec![("catalog_name", SqlType::NAME), ("schema_name", SqlType::NAME)];
            let (rows, _) = super::relations::table(catalog, views, "pg_namespace")?;
            let row = |row: Vec<Datum>| vec![text(database), row.into_iter().nth(1).unwrap_or(Datum::Null)];
            Some((rows.into_iter().map(row).collect(), columns))
        }
        other => super::constraints::information(catalog, database, other),
    }
}

fn information_tables(catalog: &Catalog, database: &str) -> System {
    let columns = vec![
        ("table_catalog", SqlType::NAME),
        ("table_schema", SqlType::NAME),
        ("table_name", SqlType::NAME),
        ("table_type", SqlType::TEXT),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| {
        let kind = match definition {
            Definition::Table(_) => "BASE TABLE",
            Definition::View { .. } => "VIEW",
            _ => return None,
        };
        Some(vec![text(database), text(schema), text(name), text(kind)])
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

fn information_sequences(catalog: &Catalog, database: &str) -> System {
    let columns = vec![
        ("sequence_catalog", SqlType::NAME),
        ("sequence_schema", SqlType::NAME),
        ("sequence_name", SqlType::NAME),
        ("data_type", SqlType::TEXT),
        ("numeric_precision", SqlType::INT4),
        ("numeric_precision_radix", SqlType::INT4),
        ("numeric_scale", SqlType::INT4),
        ("start_value", SqlType::TEXT),
        ("minimum_value", SqlType::TEXT),
        ("maximum_value", SqlType::TEXT),
        ("increment", SqlType::TEXT),
        ("cycle_option", SqlType::TEXT),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| {
        let Definition::Sequence(sequence) = definition else { return None };
        // Those of identity columns are not shown.
        let table = sequence.owner.as_ref().and_then(|(table, _)| catalog.get(schema, table));
        if let (Some(Definition::Table(table)), Some((_, column))) = (table, &sequence.owner)
            && table.columns.iter().any(|known| known.name == *column && known.identity.is_some())
        {
            return None;
        }
        Some(vec![
            text(database),
            text(schema),
            text(name),
            text(sequence.data_type.name()),
            number(8 * i64::from(sequence.data_type.size())),
            number(2),
            number(0),
            text(sequence.start.to_string()),
            text(sequence.minimum.to_string()),
            text(sequence.maximum.to_string()),
            text(sequence.increment.to_string()),
            text(if sequence.cycles { "YES" } else { "NO" }),
        ])
    };
    (catalog.iter().filter_map(row).collect(), columns)
}
