//! `information_schema.columns` and `information_schema.element_types`.

use super::super::{Catalog, Column, Definition, Sequence};
use super::types::TYPES;
use super::{DescribedView, Names, System, defaults, empty, number, text};
use crate::types::interval_fields::{self, Fields};
use crate::types::{BaseType, Datum, SqlType};

/// The most bytes of a text, and of one of its characters, as PostgreSQL tells them.
const TEXT_BYTES_MAX: i64 = 1 << 30;
const CHARACTER_BYTES_MAX: i64 = 4;

/// The columns of `columns`.
const COLUMNS: &str = "table_catalog:name table_schema:name table_name:name column_name:name ordinal_position:int4 \
    column_default:text is_nullable:text data_type:text character_maximum_length:int4 character_octet_length:int4 \
    numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:text \
    interval_precision:int4 character_set_catalog:name character_set_schema:name character_set_name:name \
    collation_catalog:name collation_schema:name collation_name:name domain_catalog:name domain_schema:name \
    domain_name:name udt_catalog:name udt_schema:name udt_name:name scope_catalog:name scope_schema:name \
    scope_name:name maximum_cardinality:int4 dtd_identifier:name is_self_referencing:text is_identity:text \
    identity_generation:text identity_start:text identity_increment:text identity_maximum:text identity_minimum:text \
    identity_cycle:text is_generated:text generation_expression:text is_updatable:text";

/// The columns of `element_types`.
const ELEMENT_COLUMNS: &str = "object_catalog:name object_schema:name object_name:name object_type:text \
    collection_type_identifier:name data_type:text character_maximum_length:int4 character_octet_length:int4 \
    character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name \
    collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
    datetime_precision:int4 interval_type:text interval_precision:int4 domain_default:text udt_catalog:name \
    udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 \
    dtd_identifier:name";

/// A column of a table or a view.
struct Told<'c> {
    schema: &'c str,
    relation: &'c str,
    place: i64,
    name: &'c str,
    data_type: SqlType,
    /// The column, if it is one of a table.
    column: Option<&'c Column>,
}

fn all<'c>(catalog: &'c Catalog, views: &[DescribedView<'c>]) -> Vec<Told<'c>> {
    let mut told = Vec::new();
    for (schema, relation, definition) in catalog.iter() {
        let Definition::Table(table) = definition else { continue };
        for (place, column) in (1..).zip(&table.columns).filter(|(_, column)| !column.dropped) {
            let (name, data_type, column) = (column.name.as_str(), column.data_type, Some(column));
            told.push(Told { schema, relation, place, name, data_type, column });
        }
    }
    for view in views {
        for (place, (name, data_type)) in (1..).zip(&view.columns) {
            let (schema, relation, name, data_type) = (view.schema, view.name, *name, *data_type);
            told.push(Told { schema, relation, place, name, data_type, column: None });
        }
    }
    told
}

pub(super) fn information(names: Names<'_>, views: &[DescribedView<'_>]) -> System {
    let rows = all(names.catalog, views).into_iter().map(|told| row(names, &told));
    (rows.collect(), empty::parsed(COLUMNS).collect())
}

fn row(names: Names<'_>, told: &Told<'_>) -> Vec<Datum> {
    let database = names.surroundings.database.as_str();
    let Told { schema, relation, place, name, data_type, column } = *told;
    let yes = |value: bool| text(if value { "YES" } else { "NO" });
    let identity = column.and_then(|column| column.identity);
    let mut row = vec![text(database), text(schema), text(relation), text(name), number(place)];
    row.push(column.and_then(|column| defaults::shown(column, names)).map_or(Datum::Null, text));
    row.push(yes(!column.is_some_and(|column| column.not_null)));
    row.push(if data_type.array { text("ARRAY") } else { text(data_type.plain().name()) });
    row.extend(sizes(data_type));
    row.push(interval_type(data_type).map_or(Datum::Null, text));
    row.extend(nothing(10));
    row.extend([text(database), text("pg_catalog"), text(type_name(data_type))]);
    row.extend(nothing(4));
    row.extend([text(place.to_string()), yes(false), yes(identity.is_some())]);
    row.push(identity.map_or(Datum::Null, |always| text(if always { "ALWAYS" } else { "BY DEFAULT" })));
    let sequence = identity.and_then(|_| sequence_of(names.catalog, schema, relation, name));
    match sequence {
        None => {
            row.extend(nothing(4));
            row.push(yes(false));
        }
        Some(sequence) => {
            let Sequence { start, increment, maximum, minimum, cycles, .. } = sequence;
            row.extend([start, increment, maximum, minimum].map(|value| text(value.to_string())));
            row.push(yes(*cycles));
        }
    }
    let generation = column.and_then(defaults::generation);
    row.push(text(if generation.is_some() { "ALWAYS" } else { "NEVER" }));
    row.push(generation.map_or(Datum::Null, |expression| text(format!("({expression})"))));
    row.push(yes(column.is_some()));
    row
}

/// The sequence that a column takes its numbers from.
fn sequence_of<'c>(catalog: &'c Catalog, schema: &str, table: &str, column: &str) -> Option<&'c Sequence> {
    catalog.iter().find_map(|(in_schema, _, definition)| match definition {
        Definition::Sequence(sequence) if in_schema == schema => {
            let owner = sequence.owner.as_ref()?;
            (owner.0 == table && owner.1 == column).then_some(sequence)
        }
        _ => None,
    })
}

/// What the elements of arrays are.
pub(super) fn element_types(names: Names<'_>, views: &[DescribedView<'_>]) -> System {
    let database = names.surroundings.database.as_str();
    let arrays = all(names.catalog, views).into_iter().filter(|told| told.data_type.array);
    // What is told of elements are their types only.
    let row = |told: Told<'_>| {
        let element = told.data_type.element();
        let mut row = vec![text(database), text(told.schema), text(told.relation)];
        row.extend([text("TABLE"), text(told.place.to_string()), text(element.plain().name())]);
        row.extend(nothing(15));
        row.extend([text(database), text("pg_catalog"), text(type_name(element))]);
        row.extend(nothing(4));
        row.push(text(format!("a{}", told.place)));
        row
    };
    (arrays.map(row).collect(), empty::parsed(ELEMENT_COLUMNS).collect())
}

fn nothing(count: usize) -> impl Iterator<Item = Datum> {
    std::iter::repeat_n(Datum::Null, count)
}

/// Most characters and bytes, precision, its radix, scale, and digits of seconds.
fn sizes(data_type: SqlType) -> [Datum; 6] {
    let (length, bytes) = character_sizes(data_type);
    let (precision, radix, scale) = numeric_sizes(data_type);
    let optional = |value: Option<i64>| value.map_or(Datum::Null, number);
    [length, bytes, precision, radix, scale, time_digits(data_type)].map(optional)
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
        BaseType::Interval => Some(interval_fields::digits(data_type.modifier).unwrap_or(6).into()),
        BaseType::Time | BaseType::Timestamp | BaseType::TimestampTz => {
            Some(if data_type.modifier < 0 { 6 } else { i64::from(data_type.modifier) })
        }
        _ => None,
    }
}

/// The fields of an interval that has not all, with the digits of its seconds if that says them.
fn interval_type(data_type: SqlType) -> Option<String> {
    let is_interval = data_type.base == BaseType::Interval && !data_type.array;
    Fields::of(data_type.modifier).filter(|_| is_interval)?;
    Some(data_type.name().strip_prefix("interval ")?.to_uppercase())
}
