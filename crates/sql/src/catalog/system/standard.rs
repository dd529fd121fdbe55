//! Views of the standard's `information_schema`, besides those of [columns] and [constraints].

use super::super::{Catalog, Definition};
use super::{DescribedView, Names, OWNER_NAME, System, columns, constraints, number, text, users};
use crate::types::{Datum, SqlType};

/// The view with a name.
pub(super) fn table(names: Names<'_>, views: &[DescribedView<'_>], name: &str) -> Option<System> {
    let catalog = names.catalog;
    let database = names.surroundings.database.as_str();
    match name {
        "tables" => Some(information_tables(catalog, database)),
        "columns" => Some(columns::information(names, views)),
        "element_types" => Some(columns::element_types(names, views)),
        "sequences" => Some(information_sequences(catalog, database)),
        "views" => Some(information_views(catalog, database)),
        "schemata" => Some(schemata(names)),
        "table_privileges" | "role_table_grants" => Some(table_privileges(catalog, database)),
        "enabled_roles" => {
            // Who connects may do whatever the others may.
            let rows = users::all(catalog).into_iter().map(|role| vec![text(role.name)]);
            Some((rows.collect(), vec![("role_name", SqlType::NAME)]))
        }
        "information_schema_catalog_name" => {
            Some((vec![vec![text(database)]], vec![("catalog_name", SqlType::NAME)]))
        }
        "character_sets" => Some(character_sets(database)),
        other => constraints::information(names, database, other),
    }
}

fn yes(value: bool) -> Datum {
    text(if value { "YES" } else { "NO" })
}

fn schemata(names: Names<'_>) -> System {
    let columns = vec![
        ("catalog_name", SqlType::NAME),
        ("schema_name", SqlType::NAME),
        ("schema_owner", SqlType::NAME),
        ("default_character_set_catalog", SqlType::NAME),
        ("default_character_set_schema", SqlType::NAME),
        ("default_character_set_name", SqlType::NAME),
        ("sql_path", SqlType::TEXT),
    ];
    let row = |(_, schema): (u32, String)| {
        let mut row = vec![text(&names.surroundings.database), text(schema), text(OWNER_NAME)];
        row.resize(7, Datum::Null);
        row
    };
    (super::schema_names(names.catalog).into_iter().map(row).collect(), columns)
}

fn information_tables(catalog: &Catalog, database: &str) -> System {
    let columns = vec![
        ("table_catalog", SqlType::NAME),
        ("table_schema", SqlType::NAME),
        ("table_name", SqlType::NAME),
        ("table_type", SqlType::TEXT),
        ("self_referencing_column_name", SqlType::NAME),
        ("reference_generation", SqlType::TEXT),
        ("user_defined_type_catalog", SqlType::NAME),
        ("user_defined_type_schema", SqlType::NAME),
        ("user_defined_type_name", SqlType::NAME),
        ("is_insertable_into", SqlType::TEXT),
        ("is_typed", SqlType::TEXT),
        ("commit_action", SqlType::TEXT),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| {
        let (kind, is_table) = match definition {
            Definition::Table(_) if crate::bind::is_temporary(schema) => ("LOCAL TEMPORARY", true),
            Definition::Table(_) => ("BASE TABLE", true),
            Definition::View { .. } => ("VIEW", false),
            _ => return None,
        };
        let mut row = vec![text(database), text(schema), text(name), text(kind)];
        row.resize(9, Datum::Null);
        row.extend([yes(is_table), yes(false), Datum::Null]);
        Some(row)
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

/// Views. Nothing can be written through them.
fn information_views(catalog: &Catalog, database: &str) -> System {
    let columns = vec![
        ("table_catalog", SqlType::NAME),
        ("table_schema", SqlType::NAME),
        ("table_name", SqlType::NAME),
        ("view_definition", SqlType::TEXT),
        ("check_option", SqlType::TEXT),
        ("is_updatable", SqlType::TEXT),
        ("is_insertable_into", SqlType::TEXT),
        ("is_trigger_updatable", SqlType::TEXT),
        ("is_trigger_deletable", SqlType::TEXT),
        ("is_trigger_insertable_into", SqlType::TEXT),
    ];
    let row = |(schema, name, definition): (&str, &str, &Definition)| {
        let Definition::View { query, .. } = definition else { return None };
        let mut row = vec![text(database), text(schema), text(name), text(query), text("NONE")];
        row.extend([false; 5].map(yes));
        Some(row)
    };
    (catalog.iter().filter_map(row).collect(), columns)
}

/// What the owner of tables and views may do, which is all: nothing is granted to others.
fn table_privileges(catalog: &Catalog, database: &str) -> System {
    let columns = vec![
        ("grantor", SqlType::NAME),
        ("grantee", SqlType::NAME),
        ("table_catalog", SqlType::NAME),
        ("table_schema", SqlType::NAME),
        ("table_name", SqlType::NAME),
        ("privilege_type", SqlType::TEXT),
        ("is_grantable", SqlType::TEXT),
        ("with_hierarchy", SqlType::TEXT),
    ];
    let privileges = ["INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
    let mut rows = Vec::new();
    for (schema, name, definition) in catalog.iter() {
        if !matches!(definition, Definition::Table(_) | Definition::View { .. }) {
            continue;
        }
        for privilege in privileges {
            let mut row = [OWNER_NAME, OWNER_NAME, database, schema, name, privilege].map(text).to_vec();
            row.extend([yes(true), yes(privilege == "SELECT")]);
            rows.push(row);
        }
    }
    (rows, columns)
}

fn character_sets(database: &str) -> System {
    let names = [
        "character_set_catalog",
        "character_set_schema",
        "character_set_name",
        "character_repertoire",
        "form_of_use",
        "default_collate_catalog",
        "default_collate_schema",
        "default_collate_name",
    ];
    let mut row = vec![Datum::Null, Datum::Null];
    row.extend(["UTF8", "UCS", "UTF8", database, "pg_catalog", "ucs_basic"].map(text));
    (vec![row], names.map(|name| (name, SqlType::NAME)).to_vec())
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
            yes(sequence.cycles),
        ])
    };
    (catalog.iter().filter_map(row).collect(), columns)
}
