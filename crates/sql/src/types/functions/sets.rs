//! Functions that give rows. Each gives them as an array: of values or, if they have several columns, of arrays. Their names in the
//! table are behind [`SET`], so that no expression can call them.

use super::*;
use crate::types::calendar;
use crate::types::operators::{BinaryOperator, Resolved, binary};
use crate::types::zone::{ABBREVIATIONS, Moment};

const JSON: Kind = Kind::Of(SqlType::JSON);
const JSONB: Kind = Kind::Of(SqlType::JSONB);
const TEXTS: Kind = Kind::Of(SqlType::TEXT.array_of());
const JSONS: Kind = Kind::Of(SqlType::JSON.array_of());
const JSONBS: Kind = Kind::Of(SqlType::JSONB.array_of());
const INT8S: Kind = Kind::Of(SqlType::INT8.array_of());
const INT4S: Kind = Kind::Of(SqlType::INT4.array_of());
const NUMERICS: Kind = Kind::Of(SqlType::NUMERIC.array_of());
const TIMESTAMPS: Kind = Kind::Of(SqlType::TIMESTAMP.array_of());
const TIMESTAMPTZS: Kind = Kind::Of(SqlType::TIMESTAMPTZ.array_of());

/// What the name of a function that gives rows begins with in the table.
const SET: &str = "set of ";

const TIME_ZONES: &str = "pg_timezone_names";
const TIME_ZONE_ABBREVIATIONS: &str = "pg_timezone_abbrevs";

/// The functions without arguments that are views as well.
pub fn is_view(name: &str) -> bool {
    matches!(name, TIME_ZONES | TIME_ZONE_ABBREVIATIONS)
}

/// Most rows that a series has when it is made as a whole.
const SERIES_MAX: usize = 1 << 22;

macro_rules! set {
    ($name:literal) => {
        concat!("set of ", $name)
    };
}

pub(super) const TABLE: &[Entry] = &[
    strict(set!("json_array_elements"), &[JSON], JSONS, |a, _| json::elements(a, false).map(Datum::Array)),
    strict(set!("jsonb_array_elements"), &[JSONB], JSONBS, |a, _| json::elements(a, false).map(Datum::Array)),
    strict(set!("json_array_elements_text"), &[JSON], TEXTS, |a, _| {
        json::elements(a, true).map(Datum::Array)
    }),
    strict(set!("jsonb_array_elements_text"), &[JSONB], TEXTS, |a, _| {
        json::elements(a, true).map(Datum::Array)
    }),
    strict(set!("json_object_keys"), &[JSON], TEXTS, |a, _| {
        json::object_keys(a, "json_object_keys").map(Datum::Array)
    }),
    strict(set!("jsonb_object_keys"), &[JSONB], TEXTS, |a, _| {
        json::object_keys(a, "jsonb_object_keys").map(Datum::Array)
    }),
    strict(set!("json_each"), &[JSON], JSONS, |a, _| json::fields(a, false).map(Datum::Array)),
    strict(set!("jsonb_each"), &[JSONB], JSONBS, |a, _| json::fields(a, false).map(Datum::Array)),
    strict(set!("json_each_text"), &[JSON], TEXTS, |a, _| json::fields(a, true).map(Datum::Array)),
    strict(set!("jsonb_each_text"), &[JSONB], TEXTS, |a, _| json::fields(a, true).map(Datum::Array)),
    lenient(set!("pg_timezone_names"), &[], TEXTS, |_, context| Ok(time_zones(context))),
    lenient(set!("pg_timezone_abbrevs"), &[], TEXTS, |_, _| Ok(time_zone_abbreviations())),
    // Each match is an array itself.
    strict(set!("regexp_matches"), &[TEXT, TEXT], TEXTS, |a, _| regular::all_matches(a)),
    strict(set!("regexp_matches"), &[TEXT, TEXT, TEXT], TEXTS, |a, _| regular::all_matches(a)),
    strict(set!("regexp_split_to_table"), &[TEXT, TEXT], TEXTS, |a, _| regular::split(a)),
    strict(set!("regexp_split_to_table"), &[TEXT, TEXT, TEXT], TEXTS, |a, _| regular::split(a)),
    lenient(set!("string_to_table"), &[TEXT, TEXT], TEXTS, |a, _| arrays::string_to_array(a)),
    lenient(set!("string_to_table"), &[TEXT, TEXT, TEXT], TEXTS, |a, _| arrays::string_to_array(a)),
    strict(set!("generate_subscripts"), &[Kind::Array, INT4], INT4S, |a, _| {
        let length = if int(a, 1)? == 1 { array(a, 0)?.len() } else { 0 };
        Ok(Datum::Array((1..=length as i64).map(Datum::Int).collect()))
    }),
    // What PostgreSQL gives as records of a value `x` and its place `n` are arrays of the two.
    strict(set!("_pg_expandarray"), &[Kind::Array], INT4S, |a, _| {
        let record = |(place, value): (i64, &Datum)| match value {
            Datum::Int(_) => Ok(Datum::Array(vec![value.clone(), Datum::Int(place)])),
            _ => Err(SqlError::unsupported("_pg_expandarray of other than integers")),
        };
        Ok(Datum::Array((1..).zip(array(a, 0)?).map(record).collect::<Result<_, SqlError>>()?))
    }),
    strict(set!("generate_series"), &[INT4, INT4, INT4], INT4S, |a, _| {
        series(a, SqlType::INT4, SqlType::INT4, Zone::Utc)
    }),
    strict(set!("generate_series"), &[INT8, INT8, INT8], INT8S, |a, _| {
        series(a, SqlType::INT8, SqlType::INT8, Zone::Utc)
    }),
    strict(set!("generate_series"), &[NUMERIC, NUMERIC, NUMERIC], NUMERICS, |a, _| {
        series(a, SqlType::NUMERIC, SqlType::NUMERIC, Zone::Utc)
    }),
    strict(set!("generate_series"), &[TIMESTAMP, TIMESTAMP, INTERVAL], TIMESTAMPS, |a, _| {
        series(a, SqlType::TIMESTAMP, SqlType::INTERVAL, Zone::Utc)
    }),
    strict(set!("generate_series"), &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL], TIMESTAMPTZS, |a, context| {
        series(a, SqlType::TIMESTAMPTZ, SqlType::INTERVAL, context.zone)
    }),
];

/// What stands for `generate_subscripts` of a vector, whose subscripts begin at 0. No statement can call it, as its name has blanks. It is
/// the last of all, so that others keep their numbers.
pub(crate) const SUBSCRIPTS_OF_VECTOR: &str = "subscripts of vector";

/// See [`SUBSCRIPTS_OF_VECTOR`].
pub(super) const VECTOR: &[Entry] =
    &[strict(set!("subscripts of vector"), &[Kind::Array, INT4], INT4S, |a, _| {
        let length = if int(a, 1)? == 1 { array(a, 0)?.len() } else { 0 };
        Ok(Datum::Array((0..length as i64).map(Datum::Int).collect()))
    })];

/// The zones that have names, as they are when the transaction begins.
fn time_zones(context: &CallContext) -> Datum {
    let zones = Zone::all().map(|(name, zone)| {
        let Moment { offset, is_summer, abbreviation } = zone.moment(context.now);
        Datum::Array(vec![
            Datum::Text(name.to_owned()),
            Datum::Text(abbreviation),
            Datum::Interval { months: 0, days: 0, microseconds: offset },
            Datum::Bool(is_summer),
        ])
    });
    Datum::Array(zones.collect())
}

/// The abbreviations that can follow a time.
fn time_zone_abbreviations() -> Datum {
    let abbreviations = ABBREVIATIONS.iter().map(|(abbreviation, seconds, is_summer)| {
        let microseconds = i64::from(*seconds) * calendar::SECOND;
        Datum::Array(vec![
            Datum::Text(abbreviation.to_ascii_uppercase()),
            Datum::Interval { months: 0, days: 0, microseconds },
            Datum::Bool(*is_summer),
        ])
    });
    Datum::Array(abbreviations.collect())
}

/// Whether a function of that name, in lower case, gives rows.
pub fn is_set(name: &str) -> bool {
    name == "unnest" || entries().any(|(_, entry)| entry.name.strip_prefix(SET) == Some(name))
}

/// The function of that name that gives rows, as [`resolve`] finds one.
///
/// # Errors
/// 42883 if there is none.
pub fn resolve_set(name: &str, arguments: &[SqlType]) -> Result<Function, SqlError> {
    resolve(&format!("{SET}{name}"), arguments).map_err(|_| undefined(name, arguments))
}

/// The columns of what a function gives, which gives arrays of that type.
pub fn set_columns(name: &str, result: SqlType) -> Vec<(&'static str, SqlType)> {
    match name {
        _ if name.contains("_each") => vec![("key", SqlType::TEXT), ("value", result.element())],
        _ if name.contains("_array_elements") => vec![("value", result.element())],
        TIME_ZONES => vec![
            ("name", SqlType::TEXT),
            ("abbrev", SqlType::TEXT),
            ("utc_offset", SqlType::INTERVAL),
            ("is_dst", SqlType::BOOL),
        ],
        TIME_ZONE_ABBREVIATIONS => {
            vec![("abbrev", SqlType::TEXT), ("utc_offset", SqlType::INTERVAL), ("is_dst", SqlType::BOOL)]
        }
        "regexp_matches" => vec![("", SqlType::TEXT.array_of())],
        "_pg_expandarray" => vec![("", SqlType::INT4.array_of())],
        _ => vec![("", result.element())],
    }
}

/// The values from one to another, by a step.
fn series(arguments: &[Datum], ty: SqlType, step_type: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    let [first, last, step] = arguments else { return Err(unexpected(2)) };
    let zero = match step {
        Datum::Int(_) => Datum::Int(0),
        Datum::Interval { .. } => Datum::Interval { months: 0, days: 0, microseconds: 0 },
        _ => Datum::Numeric(super::super::Numeric::from(0)),
    };
    let direction = crate::types::compare::compare(step, &zero);
    if direction.is_eq() {
        return Err(parameter_error("step size cannot equal zero"));
    }
    let resolved = Resolved { left: ty, right: step_type, result: ty };
    let (mut values, mut next, mut bytes) = (Vec::new(), first.clone(), 0);
    while crate::types::compare::compare(&next, last) != direction {
        if values.len() >= SERIES_MAX {
            let message = format!("a series of more than {SERIES_MAX} values");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        bytes += length(&next);
        check_length(bytes as usize)?;
        values.push(next.clone());
        // Beyond the last value of the type there is none to give.
        match binary(BinaryOperator::Add, &next, step, &resolved, zone) {
            Ok(following) => next = following,
            Err(_) => break,
        }
    }
    Ok(Datum::Array(values))
}
