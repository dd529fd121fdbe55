//! Casts: which there are, where they need to be written, and what they do.

use serde::{Deserialize, Serialize};

use super::interval_fields::{self, Fields};
use super::{BaseType, Datum, Numeric, SqlType, Zone, calendar, text};
use crate::error::{SqlError, SqlState};
use BaseType::*;

/// Where a cast happens: by itself in an expression, when a value is stored in a column, or where it is written. What is
/// allowed in one is allowed in the later ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CastContext {
    /// In any expression.
    Implicit,
    /// Where a value is stored in a column.
    Assignment,
    /// Only where it is written.
    Explicit,
}

/// The weakest context in which the cast is allowed; none if it never is. Modifiers do not matter.
pub fn allowed(from: SqlType, to: SqlType) -> Option<CastContext> {
    use CastContext::*;
    if from.is_same(to) {
        return Some(Implicit);
    }
    if from.is_unknown() {
        return Some(Implicit);
    }
    if to.is_unknown() {
        return None;
    }
    if from.array && to.array {
        return allowed(from.element(), to.element());
    }
    if from.array || to.array {
        // Only through the text of the array.
        return through_text(from, to);
    }
    if let Some(context) = allowed_plain(from.base, to.base) {
        return Some(context);
    }
    through_text(from, to)
}

/// All values can become texts when stored, and texts all values where that is written.
fn through_text(from: SqlType, to: SqlType) -> Option<CastContext> {
    if to.is_text() {
        Some(CastContext::Assignment)
    } else if from.is_text() {
        Some(CastContext::Explicit)
    } else {
        None
    }
}

/// The casts of PostgreSQL's catalog between the types that Ordain has.
fn allowed_plain(from: BaseType, to: BaseType) -> Option<CastContext> {
    use CastContext::*;
    Some(match (from, to) {
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric | Oid) => Implicit,
        (Int4, Int8 | Float4 | Float8 | Numeric | Oid) => Implicit,
        (Int8, Float4 | Float8 | Numeric | Oid) => Implicit,
        (Float4, Float8) => Implicit,
        (Numeric, Float4 | Float8) => Implicit,
        (Int4, Int2) | (Int8, Int2 | Int4) | (Oid, Int4 | Int8) => Assignment,
        (Float4 | Float8, Int2 | Int4 | Int8 | Numeric) | (Float8, Float4) => Assignment,
        (Numeric, Int2 | Int4 | Int8) => Assignment,
        (Int4, Bool) | (Bool, Int4) => Explicit,
        (Text | Varchar | Char, Text | Varchar | Char | Name) => Implicit,
        (Name, Text) => Implicit,
        (Name, Varchar | Char) => Assignment,
        (Date, Timestamp | TimestampTz) | (Timestamp, TimestampTz) | (Time, Interval) => Implicit,
        (Timestamp | TimestampTz, Date | Time) | (TimestampTz, Timestamp) | (Interval, Time) => Assignment,
        (Json, Jsonb) | (Jsonb, Json) => Assignment,
        (Cidr, Inet) => Implicit,
        (Inet, Cidr) => Assignment,
        (Jsonb, Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric) => Explicit,
        _ => return None,
    })
}

/// Whether a cast gives the same in every session: texts of dates and moments, as PostgreSQL has it, need not, and moments have zones.
pub(crate) fn is_immutable(from: SqlType, to: SqlType) -> bool {
    if from.array != to.array {
        return false;
    }
    match (from.base, to.base) {
        (from, to) if from == to => true,
        (TimestampTz, _) | (_, TimestampTz) => false,
        (Date | Timestamp, _) if to.is_text() => false,
        (_, Date | Time | Timestamp) => !from.is_text() && !from.is_unknown(),
        _ => true,
    }
}

/// The value as the other type, with its modifier applied as where the cast is written: texts that are too long are cut off.
/// A value is not checked to be of the type `from`. Moments and local times become each other in `zone`. Errors: the cast does not exist (42846), or the value does not fit.
pub fn cast(datum: Datum, from: SqlType, to: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    if datum.is_null() {
        return Ok(datum);
    }
    let datum = convert(datum, from, to, zone)?;
    coerce_length(datum, to, true)
}

/// The value as it is stored in a column of the other type: like [`cast`], but texts that are too long are an error (22001).
pub fn assign(datum: Datum, from: SqlType, to: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    if datum.is_null() {
        return Ok(datum);
    }
    let datum = convert(datum, from, to.plain(), zone)?;
    coerce_length(datum, to, false)
}

fn convert(datum: Datum, from: SqlType, to: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    if from.is_same(to) {
        return Ok(datum);
    }
    if allowed(from, to).is_none() {
        return Err(cannot_cast(from, to));
    }
    match (datum, from.array, to.array) {
        (Datum::Array(values), true, true) => {
            let values = values.into_iter().map(|value| cast(value, from.element(), to.element(), zone));
            Ok(Datum::Array(values.collect::<Result<_, _>>()?))
        }
        (datum, false, false) => convert_plain(datum, from, to, zone),
        (datum, ..) => convert_through_text(datum, from, to, zone),
    }
}

fn convert_plain(datum: Datum, from: SqlType, to: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    match (&datum, to.base) {
        (Datum::Int(value), _) => convert_integer(*value, from, to, zone),
        (Datum::Float(value), _) if to.is_numeric() => convert_float(*value, from, to),
        (Datum::Numeric(value), _) if to.is_numeric() => convert_numeric(value, to),
        (Datum::Bool(value), Int4) => Ok(Datum::Int(i64::from(*value))),
        (Datum::Bool(value), _) if to.is_text() => {
            // The cast writes the words out; only the output of a column is a letter.
            text::parse(if *value { "true" } else { "false" }, to, zone)
        }
        (Datum::Date(days), Timestamp) => Ok(Datum::Timestamp(calendar::timestamp_of_date(*days)?)),
        (Datum::Date(days), TimestampTz) => {
            let moment = zone.to_moment(calendar::timestamp_of_date(*days)?);
            calendar::check_timestamp(moment).map(Datum::Timestamp).map_err(|_| calendar::date_out_of_range())
        }
        (Datum::Timestamp(local), TimestampTz) => {
            calendar::check_timestamp(zone.to_moment(*local)).map(Datum::Timestamp)
        }
        (Datum::Timestamp(at), Timestamp | Date | Time) => {
            let local = if from.base == TimestampTz { zone.to_local(*at) } else { *at };
            match to.base {
                Date => calendar::check_date(local.div_euclid(calendar::DAY)).map(Datum::Date),
                Time => Ok(Datum::Time(local.rem_euclid(calendar::DAY))),
                _ => calendar::check_timestamp(Some(local)).map(Datum::Timestamp),
            }
        }
        (Datum::Time(time), Interval) => Ok(Datum::Interval { months: 0, days: 0, microseconds: *time }),
        (Datum::Interval { microseconds, .. }, Time) => {
            Ok(Datum::Time(microseconds.rem_euclid(calendar::DAY)))
        }
        (Datum::Network(value), Inet) => Ok(Datum::Network(*value)),
        (Datum::Network(value), Cidr) => Ok(Datum::Network(value.network())),
        // The cast shows all bits, the output of a column not.
        (Datum::Network(_), Text | Varchar | Char) => convert_through_text(datum, SqlType::CIDR, to, zone),
        (Datum::Text(value), _) if from.base == Jsonb && !to.is_text() && to.base != Json => {
            convert_jsonb(value, to)
        }
        _ => convert_through_text(datum, from, to, zone),
    }
}

fn convert_through_text(datum: Datum, from: SqlType, to: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    // Only a literal is read as the fields of an interval say; what was a text before has seconds where it names nothing.
    let to = if to.base == Interval { to.plain() } else { to };
    match datum {
        // A cast of char(n) drops its blanks, which are not stored.
        Datum::Text(value) => text::parse(&value, to, zone),
        datum => text::parse(&text::to_string(&datum, from, zone), to, zone),
    }
}

/// `cannot cast type ... to ...`, as a statement that needs the cast is told.
pub fn cannot_cast(from: SqlType, to: SqlType) -> SqlError {
    let (from, to) = (from.plain().name(), to.plain().name());
    SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {from} to {to}"))
}

/// `integer out of range` and its like, for a type of numbers.
pub(crate) fn out_of_range(ty: SqlType) -> SqlError {
    let name = match ty.base {
        Oid => "OID".to_owned(),
        _ => ty.plain().name(),
    };
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

/// The integer if the type can have it.
pub(crate) fn integer_in_range(value: i64, ty: SqlType) -> Result<Datum, SqlError> {
    let (least, greatest) = text::number::range(ty.base);
    if (least..=greatest).contains(&value) { Ok(Datum::Int(value)) } else { Err(out_of_range(ty)) }
}

fn convert_integer(value: i64, from: SqlType, to: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    match to.base {
        // Four bytes are taken as they are, eight are checked.
        Oid if from.base != Int8 => Ok(Datum::Int(i64::from(value as i32 as u32))),
        Int4 if from.base == Oid => Ok(Datum::Int(i64::from(value as u32 as i32))),
        Int2 | Int4 | Int8 | Oid => integer_in_range(value, to),
        Float4 => Ok(Datum::Float(f64::from(value as f32))),
        Float8 => Ok(Datum::Float(value as f64)),
        Numeric => Ok(Datum::Numeric(Numeric::from(value))),
        Bool => Ok(Datum::Bool(value != 0)),
        _ => convert_through_text(Datum::Int(value), from, to, zone),
    }
}

fn convert_float(value: f64, from: SqlType, to: SqlType) -> Result<Datum, SqlError> {
    match to.base {
        Float8 => Ok(Datum::Float(value)),
        Float4 => single(value).map(Datum::Float),
        Numeric => {
            let digits = if from.base == Float4 { 6 } else { 15 };
            Numeric::from_f64(value, digits).map(Datum::Numeric)
        }
        _ => {
            let rounded = value.round_ties_even();
            // 2^63 is a double, and the first that does not fit; "not a number" is in no range.
            if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                return Err(out_of_range(to));
            }
            integer_in_range(rounded as i64, to)
        }
    }
}

/// Rounded to a `real`; an error if nothing is left of it, or if it is too great.
pub(crate) fn single(value: f64) -> Result<f64, SqlError> {
    let rounded = f64::from(value as f32);
    let problem = if rounded.is_infinite() && !value.is_infinite() {
        "overflow"
    } else if rounded == 0.0 && value != 0.0 {
        "underflow"
    } else {
        return Ok(rounded);
    };
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {problem}")))
}

fn convert_numeric(value: &Numeric, to: SqlType) -> Result<Datum, SqlError> {
    match to.base {
        Numeric => Ok(Datum::Numeric(value.clone())),
        Float8 => match value.to_f64() {
            float if float.is_infinite() || (float == 0.0 && !value.is_zero()) => {
                Err(out_of_float_range(value, to))
            }
            float => Ok(Datum::Float(float)),
        },
        Float4 => match value.to_f32() {
            float if float.is_infinite() || (float == 0.0 && !value.is_zero()) => {
                Err(out_of_float_range(value, to))
            }
            float => Ok(Datum::Float(f64::from(float))),
        },
        _ if value.is_nan() => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot convert NaN to {}", to.plain().name()),
        )),
        _ => integer_in_range(value.to_i64().ok_or_else(|| out_of_range(to))?, to),
    }
}

fn out_of_float_range(value: &Numeric, to: SqlType) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("\"{value}\" is out of range for type {}", to.plain().name()),
    )
}

/// Numbers and booleans of JSON.
fn convert_jsonb(value: &str, to: SqlType) -> Result<Datum, SqlError> {
    let is_bool = matches!(value, "true" | "false");
    let is_number = value.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if to.base == Bool && is_bool {
        return Ok(Datum::Bool(value == "true"));
    }
    if to.is_numeric() && is_number {
        return convert_numeric(&Numeric::parse(value)?, to);
    }
    let kind = match value.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'n') => "null",
        _ if is_bool => "boolean",
        _ => "numeric",
    };
    Err(SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("cannot cast jsonb {kind} to type {}", to.plain().name()),
    ))
}

/// Applies the modifier of the type: the length of texts, the digits of `numeric`, those of seconds. A text that is too long is
/// cut off if the cast is explicit or only blanks are lost, else it is an error (22001).
pub fn coerce_length(datum: Datum, ty: SqlType, explicit: bool) -> Result<Datum, SqlError> {
    if ty.modifier < 0 {
        return Ok(datum);
    }
    match datum {
        Datum::Array(values) if ty.array => {
            let values = values.into_iter().map(|value| coerce_length(value, ty.element(), explicit));
            Ok(Datum::Array(values.collect::<Result<_, _>>()?))
        }
        Datum::Text(value) => coerce_text(value, ty, explicit).map(Datum::Text),
        Datum::Numeric(value) => coerce_numeric(value, ty).map(Datum::Numeric),
        Datum::Time(time) => Ok(Datum::Time(round_to(time, ty.modifier))),
        Datum::Timestamp(at) => Ok(Datum::Timestamp(round_to(at, ty.modifier))),
        Datum::Interval { months, days, microseconds } => {
            let mut kept = (months, days, microseconds);
            if let Some(fields) = Fields::of(ty.modifier) {
                kept = interval_fields::kept(fields, kept);
            }
            let (months, days, microseconds) = kept;
            let digits = interval_fields::digits(ty.modifier);
            let microseconds = digits.map_or(microseconds, |digits| round_to(microseconds, digits));
            Ok(Datum::Interval { months, days, microseconds })
        }
        datum => Ok(datum),
    }
}

fn coerce_text(mut value: String, ty: SqlType, explicit: bool) -> Result<String, SqlError> {
    let Some(length) = ty.length() else { return Ok(value) };
    if let Some((end, _)) = value.char_indices().nth(length) {
        if !explicit && !value[end..].trim_end_matches(' ').is_empty() {
            return Err(SqlError::new(
                SqlState::STRING_DATA_RIGHT_TRUNCATION,
                format!("value too long for type {}", ty.element().name()),
            ));
        }
        value.truncate(end);
    }
    if ty.base == Char {
        value.truncate(value.trim_end_matches(' ').len());
    }
    Ok(value)
}

fn coerce_numeric(value: Numeric, ty: SqlType) -> Result<Numeric, SqlError> {
    let Some((precision, scale)) = ty.precision_and_scale() else { return Ok(value) };
    if value.is_nan() {
        return Ok(value);
    }
    let rounded = value.round(i32::from(scale))?;
    let whole_digits = i32::from(precision) - i32::from(scale);
    if rounded.normalised_digits().1 <= whole_digits || rounded.is_zero() {
        return Ok(rounded);
    }
    let limit = if whole_digits == 0 { "1".to_owned() } else { format!("10^{whole_digits}") };
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
    )))
}

/// Rounded to digits of a second, the half away from zero.
fn round_to(microseconds: i64, digits: i32) -> i64 {
    let step = 10i64.pow(6 - digits.clamp(0, 6) as u32);
    let half = if microseconds < 0 { -step / 2 } else { step / 2 };
    microseconds.saturating_add(half) / step * step
}
