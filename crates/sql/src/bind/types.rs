//! Names of types.

use std::fmt::Display;

use sqlparser::ast::{
    self, ArrayElemTypeDef, CharacterLength, DataType, DateTimeField, ExactNumberInfo, IntervalFields,
    ObjectName, TimezoneInfo,
};

use super::names::last_name;
use crate::error::{SqlError, SqlState};
use crate::types::interval_fields::{self, Field, Fields};
use crate::types::{BaseType, SqlType};

/// Most digits of a number that are kept before and after its point.
const PRECISION_MAX: u64 = 1000;

/// The type that a name stands for.
pub(super) fn sql_type(name: &DataType) -> Result<SqlType, SqlError> {
    Ok(match name {
        DataType::Bool | DataType::Boolean => SqlType::BOOL,
        DataType::SmallInt(_) | DataType::Int2(_) => SqlType::INT2,
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => SqlType::INT4,
        DataType::BigInt(_) | DataType::Int8(_) => SqlType::INT8,
        DataType::Real | DataType::Float4 => SqlType::FLOAT4,
        DataType::Float8 | DataType::DoublePrecision | DataType::Double(_) => SqlType::FLOAT8,
        DataType::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => SqlType::FLOAT4,
        DataType::Float(_) => SqlType::FLOAT8,
        DataType::Numeric(size) | DataType::Decimal(size) | DataType::Dec(size) => numeric(size)?,
        DataType::Text | DataType::String(None) => SqlType::TEXT,
        DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length) => {
            match characters(length.as_ref())? {
                Some(length) => SqlType::varchar(length),
                None => SqlType::VARCHAR,
            }
        }
        DataType::Char(length) | DataType::Character(length) => {
            SqlType::char(characters(length.as_ref())?.unwrap_or(1))
        }
        DataType::Bytea => SqlType::BYTEA,
        DataType::Date => SqlType::DATE,
        DataType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            with_digits(SqlType::TIME, *digits)
        }
        DataType::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            with_digits(SqlType::TIMESTAMP, *digits)
        }
        DataType::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            with_digits(SqlType::TIMESTAMPTZ, *digits)
        }
        DataType::Interval { fields, precision } => {
            interval(fields.as_ref().map(fields_named).transpose()?, *precision)?
        }
        DataType::Uuid => SqlType::UUID,
        DataType::JSON => SqlType::JSON,
        DataType::JSONB => SqlType::JSONB,
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => sql_type(element)?.array_of(),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => custom(name)?,
        DataType::Custom(name, modifiers) => match (last_name(name)?.as_str(), modifiers.as_slice()) {
            ("bpchar", [length]) => SqlType::char(counted(length.to_string().parse().ok())?),
            (other, _) => return Err(undefined(other)),
        },
        other => return Err(undefined(&other.to_string().to_lowercase())),
    })
}

fn fields_named(written: &IntervalFields) -> Result<Fields, SqlError> {
    use IntervalFields as Named;
    let (first, last) = match written {
        Named::Year => (Field::Year, Field::Year),
        Named::Month => (Field::Month, Field::Month),
        Named::Day => (Field::Day, Field::Day),
        Named::Hour => (Field::Hour, Field::Hour),
        Named::Minute => (Field::Minute, Field::Minute),
        Named::Second => (Field::Second, Field::Second),
        Named::YearToMonth => (Field::Year, Field::Month),
        Named::DayToHour => (Field::Day, Field::Hour),
        Named::DayToMinute => (Field::Day, Field::Minute),
        Named::DayToSecond => (Field::Day, Field::Second),
        Named::HourToMinute => (Field::Hour, Field::Minute),
        Named::HourToSecond => (Field::Hour, Field::Second),
        Named::MinuteToSecond => (Field::Minute, Field::Second),
    };
    Fields::new(first, last).ok_or_else(|| no_fields(written))
}

fn no_fields(written: &dyn Display) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("an interval has no fields {written}"))
}

/// An interval of some fields, or of all, with so many digits of a second.
fn interval(fields: Option<Fields>, digits: Option<u64>) -> Result<SqlType, SqlError> {
    if digits.is_some() && fields.is_some_and(|fields| fields.last != Field::Second) {
        let message = "only an interval with seconds has a precision";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let digits = digits.map(|digits| digits.min(6) as i32);
    Ok(SqlType { modifier: interval_fields::modifier(fields, digits), ..SqlType::INTERVAL })
}

/// The type of a literal `INTERVAL '…' DAY TO SECOND (3)`.
pub(crate) fn interval_of_literal(written: &ast::Interval) -> Result<SqlType, SqlError> {
    let Some(first) = &written.leading_field else { return Ok(SqlType::INTERVAL) };
    let last = written.last_field.as_ref().unwrap_or(first);
    let field = |written: &DateTimeField| match written {
        DateTimeField::Year => Some(Field::Year),
        DateTimeField::Month => Some(Field::Month),
        DateTimeField::Day => Some(Field::Day),
        DateTimeField::Hour => Some(Field::Hour),
        DateTimeField::Minute => Some(Field::Minute),
        DateTimeField::Second => Some(Field::Second),
        _ => None,
    };
    let fields = field(first).zip(field(last)).and_then(|(first, last)| Fields::new(first, last));
    // `HOUR TO HOUR` is no way to write one field.
    let fields = fields.filter(|fields| written.last_field.is_none() || fields.first != fields.last);
    let fields = fields.ok_or_else(|| no_fields(&format_args!("{first} TO {last}")))?;
    // The parser takes the digits of `SECOND (3)` for those before the point, and reads some after other fields.
    let digits = match (written.leading_precision, written.fractional_seconds_precision) {
        (Some(_), Some(_)) => return Err(no_fields(written)),
        (Some(_), None) if written.last_field.is_some() => return Err(no_fields(written)),
        (Some(digits), None) | (None, Some(digits)) => Some(digits),
        (None, None) => None,
    };
    interval(Some(fields), digits)
}

/// The type with so many digits of a second.
fn with_digits(data_type: SqlType, digits: Option<u64>) -> SqlType {
    // More are taken for the most there are, as PostgreSQL takes them.
    let modifier = digits.map_or(-1, |digits| digits.min(6) as i32);
    SqlType { modifier, ..data_type }
}

/// The type of a column, which may also name a sequence: `serial` and its like.
pub(super) fn serial_type(name: &DataType) -> Option<SqlType> {
    let DataType::Custom(name, _) = name else { return None };
    match last_name(name).ok()?.as_str() {
        "serial" | "serial4" => Some(SqlType::INT4),
        "bigserial" | "serial8" => Some(SqlType::INT8),
        "smallserial" | "serial2" => Some(SqlType::INT2),
        _ => None,
    }
}

fn custom(name: &ObjectName) -> Result<SqlType, SqlError> {
    let name = last_name(name)?;
    Ok(match name.as_str() {
        "bool" => SqlType::BOOL,
        "int2" => SqlType::INT2,
        "int4" => SqlType::INT4,
        "int8" => SqlType::INT8,
        "float4" => SqlType::FLOAT4,
        "float8" => SqlType::FLOAT8,
        "numeric" => SqlType::NUMERIC,
        "text" | "cstring" => SqlType::TEXT,
        "varchar" => SqlType::VARCHAR,
        "bpchar" => SqlType::of(BaseType::Char),
        "name" => SqlType::NAME,
        "bytea" => SqlType::BYTEA,
        "date" => SqlType::DATE,
        "time" => SqlType::TIME,
        "timestamp" => SqlType::TIMESTAMP,
        "timestamptz" => SqlType::TIMESTAMPTZ,
        "interval" => SqlType::INTERVAL,
        "uuid" => SqlType::UUID,
        "inet" => SqlType::INET,
        "cidr" => SqlType::CIDR,
        "json" => SqlType::JSON,
        "jsonb" => SqlType::JSONB,
        "oid" | "regproc" | "regtype" | "regnamespace" | "regrole" | "xid" | "cid" => SqlType::OID,
        other => return Err(undefined(other)),
    })
}

pub(super) fn undefined(name: &str) -> SqlError {
    crate::syntax::unknown_type(name)
}

fn numeric(size: &ExactNumberInfo) -> Result<SqlType, SqlError> {
    let (precision, scale) = match size {
        ExactNumberInfo::None => return Ok(SqlType::NUMERIC),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=PRECISION_MAX).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and {PRECISION_MAX}");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let scale =
        i16::try_from(scale).ok().filter(|scale| (-1000..=1000).contains(scale)).ok_or_else(|| {
            let message =
                format!("NUMERIC scale {scale} must be between -{PRECISION_MAX} and {PRECISION_MAX}");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })?;
    Ok(SqlType::numeric(precision as u16, scale))
}

fn characters(length: Option<&CharacterLength>) -> Result<Option<i32>, SqlError> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => counted(Some(*length)).map(Some),
    }
}

/// A length of texts, if it is one.
fn counted(length: Option<u64>) -> Result<i32, SqlError> {
    let length = length.and_then(|length| i32::try_from(length).ok());
    length.filter(|length| (1..=10_485_760).contains(length)).ok_or_else(|| {
        let message = "length for type varchar must be between 1 and 10485760";
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}
