//! `information_schema.columns`.

use super::super::{Catalog, Column, Definition};
use super::tables::TYPES;
use super::{DescribedView, System, number, text};
use crate::types::{BaseType, Datum, SqlType};

/// The most bytes of a text, and of one of its characters, as PostgreSQL tells them.
const TEXT_BYTES_MAX: i64 = 1 << 30;
const CHARACTER_BYTES_MAX: i64 = 4;

const COLUMNS: &[(&str, SqlType)] = &[
    ("table_catalog", SqlType::NAME),
    ("table_schema", SqlType::NAME),
    ("table_name", SqlType::NAME),
    ("column_name", SqlType::NAME),
    ("ordinal_position", SqlType::INT4),
    ("column_default", SqlType::TEXT),
    ("is_nullable", SqlType::TEXT),
    ("data_type", SqlType::TEXT),
    ("character_maximum_length", SqlType::INT4),
    ("character_octet_length", SqlType::INT4),
    ("numeric_precision", SqlType::INT4),
    ("numeric_precision_radix", SqlType::INT4),
    ("numeric_scale", SqlType::INT4),
    ("datetime_precision", SqlType::INT4),
    ("interval_type", SqlType::TEXT),
    ("collation_name", SqlType::NAME),
    ("domain_name", SqlType::NAME),
    ("udt_catalog", SqlType::NAME),
    ("udt_schema", SqlType::NAME),
    ("udt_name", SqlType::NAME),
    ("is_identity", SqlType::TEXT),
    ("identity_generation", SqlType::TEXT),
    ("is_generated", SqlType::TEXT),
    ("generation_expression", SqlType::TEXT),
    ("is_updatable", SqlType::TEXT),
];

pub(super) fn information(catalog: &Catalog, views: &[DescribedView<'_>], database: &str) -> System {
    let mut rows = Vec::new();
    for (schema, name, definition) in catalog.iter() {
        let Definition::Table(table) = definition else { continue };
        for (place, column) in (1..).zip(&table.columns).filter(|(_, column)| !column.dropped) {
            let at = (schema, name, place);
            rows.push(row(database, at, &column.name, column.data_type, Some(column)));
        }
    }
    for view in views {
        for (place, (name, data_type)) in (1..).zip(&view.columns) {
            rows.push(row(database, (view.schema, view.name, place), name, *data_type, None));
        }
    }
    (rows, COLUMNS.to_vec())
}

fn row(
    database: &str,
    (schema, relation, place): (&str, &str, i64),
    name: &str,
    data_type: SqlType,
    column: Option<&Column>,
) -> Vec<Datum> {
    let yes = |value: bool| text(if value { "YES" } else { "NO" });
    let optional = |value: Option<i64>| value.map_or(Datum::Null, number);
    let (length, bytes) = character_sizes(data_type);
    let (precision, radix, scale) = numeric_sizes(data_type);
    let identity = column.and_then(|column| column.identity);
    vec![
        text(database),
        text(schema),
        text(relation),
        text(name),
        number(place),
        column
            .and_then(|column| column.default.as_ref())
            .filter(|_| identity.is_none())
            .map_or(Datum::Null, text),
        yes(!column.is_some_and(|column| column.not_null)),
        if data_type.array { text("ARRAY") } else { text(data_type.plain().name()) },
        optional(length),
        optional(bytes),
        optional(precision),
        optional(radix),
        optional(scale),
        optional(time_digits(data_type)),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        text(database),
        text("pg_catalog"),
        text(type_name(data_type)),
        yes(identity.is_some()),
        identity.map_or(Datum::Null, |always| text(if always { "ALWAYS" } else { "BY DEFAULT" })),
        text("NEVER"),
        Datum::Null,
        yes(column.is_some()),
    ]
}

/// The name in `pg_type`.
fn type_name(data_type: SqlType) -> String {
    let element = if data_type.array { data_type.element() } else { data_type }.plain();
    let name = TYPES.iter().find(|(_, known)| known.is_same(element)).map_or("", |(name, _)| name);
    if data_type.array { format!("_{name}") } else { name.to_owned() }
}

/// Most characters and most bytes of a text.
fn character_sizes(data_type: SqlType) -> (Option<i64>, Option<i64>) {
    if data_type.array || !matches!(data_type.base, BaseType::Text | BaseType::Varchar | BaseType::Char) {
        return (None, None);
    }
    match data_type.length() {
        Some(length) => (Some(length as i64), Some(length as i64 * CHARACTER_BYTES_MAX)),
        None => (None, Some(TEXT_BYTES_MAX)),
    }
}

/// The digits of a number, in which base they are, and how many are after the point.
fn numeric_sizes(data_type: SqlType) -> (Option<i64>, Option<i64>, Option<i64>) {
    if data_type.array {
        return (None, None, None);
    }
    match data_type.base {
        BaseType::Int2 => (Some(16), Some(2), Some(0)),
        BaseType::Int4 => (Some(32), Some(2), Some(0)),
        BaseType::Int8 => (Some(64), Some(2), Some(0)),
        BaseType::Float4 => (Some(24), Some(2), None),
        BaseType::Float8 => (Some(53), Some(2), None),
        BaseType::Numeric => {
            let sizes = data_type.precision_and_scale();
            (sizes.map(|(precision, _)| precision.into()), Some(10), sizes.map(|(_, scale)| scale.into()))
        }
        _ => (None, None, None),
    }
}

/// Digits after the point of seconds.
fn time_digits(data_type: SqlType) -> Option<i64> {
    if data_type.array {
        return None;
    }
    match data_type.base {
        BaseType::Date => Some(0),
        BaseType::Time | BaseType::Timestamp | BaseType::TimestampTz | BaseType::Interval => {
            Some(if data_type.modifier < 0 { 6 } else { i64::from(data_type.modifier & 0xffff) })
        }
        _ => None,
    }
}
