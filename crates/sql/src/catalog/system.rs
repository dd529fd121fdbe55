//! PostgreSQL's system tables, as far as clients ask for them, made from the definitions when a statement that reads them is planned.

mod columns;
mod comments;
mod constraints;
mod defaults;
mod empty;
mod indexes;
mod relations;
mod standard;
mod tables;
mod types;
mod users;

use super::Catalog;
use crate::bind::Surroundings;
use crate::types::functions::quote_ident;
use crate::types::{Datum, SqlType};

pub(crate) use constraints::constraint_definitions;
pub(crate) use empty::TABLE_NUMBER;
pub(crate) use indexes::{index_columns, index_definitions, index_numbers};
pub(crate) use relations::{relation_names, relations_seen, schema_object, view_definitions};
pub(crate) use types::{TYPES, operator_class_numbers, type_numbers};

/// A column of a system table.
type Column = (&'static str, SqlType);

/// A system table: its rows and its columns.
pub(crate) type System = (Vec<Vec<Datum>>, Vec<Column>);

/// Numbers of PostgreSQL's schemas.
pub(crate) const PG_CATALOG: u32 = 11;
/// See [`PG_CATALOG`].
pub(crate) const PUBLIC_OBJECT: u32 = 2200;
/// See [`PG_CATALOG`].
pub(crate) const INFORMATION_SCHEMA: u32 = 13_000;
/// The number of the only user that owns things.
pub(crate) const OWNER: u32 = 10;
/// Its name.
const OWNER_NAME: &str = crate::catalog::FIRST_USER;
/// The number of the database.
pub(crate) const DATABASE: u32 = 1;
/// The number of the access method of indexes.
const BTREE: u32 = 403;

/// Numbers of system tables, by which other system tables name them.
const TABLES: [(&str, u32); 39] = [
    ("pg_aggregate", 2600),
    ("pg_am", 2601),
    ("pg_amop", 2602),
    ("pg_amproc", 2603),
    ("pg_attrdef", 2604),
    ("pg_attribute", 1249),
    ("pg_authid", 1260),
    ("pg_cast", 2605),
    ("pg_class", 1259),
    ("pg_collation", 3456),
    ("pg_constraint", 2606),
    ("pg_conversion", 2607),
    ("pg_database", 1262),
    ("pg_default_acl", 826),
    ("pg_depend", 2608),
    ("pg_description", 2609),
    ("pg_enum", 3501),
    ("pg_event_trigger", 3466),
    ("pg_extension", 3079),
    ("pg_foreign_data_wrapper", 2328),
    ("pg_foreign_server", 1417),
    ("pg_index", 2610),
    ("pg_inherits", 2611),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_opfamily", 2753),
    ("pg_policy", 3256),
    ("pg_proc", 1255),
    ("pg_rewrite", 2618),
    ("pg_sequence", 2224),
    ("pg_shdescription", 2396),
    ("pg_statistic_ext", 3381),
    ("pg_tablespace", 1213),
    ("pg_trigger", 2620),
    ("pg_ts_config", 3602),
    ("pg_ts_dict", 3600),
    ("pg_type", 1247),
];

/// The names and numbers of system tables.
pub(crate) fn table_objects() -> impl Iterator<Item = (&'static str, u32)> {
    TABLES.into_iter()
}

/// The number of the system table with a name.
pub(crate) fn table_object(name: &str) -> Option<u32> {
    table_objects().find(|(known, _)| *known == name).map(|(_, object)| object)
}

/// Whether a name without a schema is that of a system table.
pub(crate) fn is_named(name: &str) -> bool {
    table_object(name).is_some() || tables::VIEWS.contains(&name) || empty::is_named(name)
}

/// Where names are looked up, which decides how they are shown.
#[derive(Clone, Copy)]
pub(crate) struct Names<'c> {
    /// What is there.
    pub catalog: &'c Catalog,
    /// The path.
    pub surroundings: &'c Surroundings,
}

impl Names<'_> {
    /// The name of a relation, with its schema unless it is found without.
    fn shown(self, schema: &str, name: &str) -> String {
        if self.surroundings.sees(self.catalog, schema, name) {
            quote_ident(name)
        } else {
            with_schema(schema, name)
        }
    }

    /// The schema in which a name is found.
    fn schema_of(self, name: &str) -> Option<String> {
        self.surroundings.find(self.catalog, None, name).map(|(schema, _)| schema)
    }
}

fn with_schema(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// A view, with what its query gives: the catalog has only its text.
pub(crate) struct DescribedView<'c> {
    pub schema: &'c str,
    pub name: &'c str,
    pub object: u32,
    pub columns: Vec<(&'c str, SqlType)>,
}

/// Whether a system table of this name tells of the columns of views.
pub(crate) fn describes_views(name: &str) -> bool {
    matches!(name, "pg_attribute" | "columns" | "element_types")
}

/// The system table with a name. Those of `pg_catalog` need not be qualified.
pub(crate) fn table(
    catalog: &Catalog,
    views: &[DescribedView<'_>],
    surroundings: &Surroundings,
    schema: Option<&str>,
    name: &str,
) -> Option<System> {
    match schema {
        None | Some("pg_catalog") => {
            if schema.is_none() && !name.starts_with("pg_") {
                return None;
            }
            let names = Names { catalog, surroundings };
            let found = relations::table(names, views, name);
            let found = found.or_else(|| tables::table(catalog, surroundings, name))?;
            Some(empty::extended(name, found))
        }
        Some("information_schema") => {
            let names = Names { catalog, surroundings };
            let found = standard::table(names, views, name).or_else(|| empty::information(name));
            let (rows, mut columns) = found?;
            // Texts of the standard's views are of a domain over this type.
            let texts = columns.iter_mut().filter(|(_, data_type)| *data_type == SqlType::TEXT);
            texts.for_each(|(_, data_type)| *data_type = SqlType::VARCHAR);
            Some((rows, columns))
        }
        Some(_) => None,
    }
}

/// The numbers of schemas, with their names.
pub(crate) fn schema_names(catalog: &Catalog) -> Vec<(u32, String)> {
    let all = ["pg_catalog", "information_schema"].into_iter().chain(catalog.schemas());
    all.map(|schema| (schema_object(catalog, schema), schema.to_owned())).collect()
}

fn text(value: impl Into<String>) -> Datum {
    Datum::Text(value.into())
}

fn number(value: impl Into<i64>) -> Datum {
    Datum::Int(value.into())
}

fn truth(value: bool) -> Datum {
    Datum::Bool(value)
}
