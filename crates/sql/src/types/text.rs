//! Values as text: what clients send and are sent, and what literals are read with.

mod array;
pub(crate) mod date_time;
pub(crate) mod interval;
pub(crate) mod network;
pub(crate) mod number;

use std::io::Write as _;

use super::functions::function_name;
use super::interval_fields::Fields;
use super::{BaseType, Datum, Numeric, SqlType, Zone, json};
use crate::error::{SqlError, SqlState};

/// The value that a text is in PostgreSQL's input syntax of the type. The modifier is applied as an explicit cast applies it. A
/// `timestamptz` without a zone of its own is taken to be in `zone`.
///
/// Errors have PostgreSQL's codes and texts. Refused are infinite dates and numbers, and words such as `now` that depend on
/// the time.
pub fn parse(text: &str, ty: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    if ty.array {
        return array::parse(text, ty.element(), zone);
    }
    let datum = parse_plain(text, ty, zone)?;
    super::cast::coerce_length(datum, ty, true)
}

fn parse_plain(text: &str, ty: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    let base = ty.base;
    Ok(match base {
        BaseType::Bool => Datum::Bool(parse_bool(text)?),
        BaseType::Int2 | BaseType::Int4 | BaseType::Int8 | BaseType::Oid => {
            Datum::Int(number::parse_integer(text, base)?)
        }
        BaseType::Float4 | BaseType::Float8 => Datum::Float(number::parse_float(text, base)?),
        BaseType::Numeric => Datum::Numeric(Numeric::parse(text)?),
        BaseType::Text | BaseType::Varchar | BaseType::Unknown => Datum::Text(check_text(text)?.to_owned()),
        BaseType::Char => Datum::Text(check_text(text)?.trim_end_matches(' ').to_owned()),
        BaseType::Name => Datum::Text(truncate_name(check_text(text)?).to_owned()),
        BaseType::Bytea => Datum::Bytes(parse_bytes(text)?),
        BaseType::Date => Datum::Date(date_time::parse_date(text)?),
        BaseType::Time => Datum::Time(date_time::parse_time(text)?),
        BaseType::Timestamp | BaseType::TimestampTz => {
            Datum::Timestamp(date_time::parse_timestamp(text, base, zone)?)
        }
        BaseType::Interval => interval::parse(text, Fields::of(ty.modifier))?,
        BaseType::Uuid => Datum::Uuid(parse_uuid(text)?),
        BaseType::Inet | BaseType::Cidr => Datum::Network(network::parse(text, base == BaseType::Cidr)?),
        BaseType::Json => Datum::Text(json::check(text)?),
        BaseType::Jsonb => Datum::Text(json::normalise(text)?),
    })
}

pub use interval::format_iso as format_iso_interval;

/// Appends the value in PostgreSQL's output syntax of the type: dates as ISO 8601 has them, `timestamptz` in `zone`, `bytea` as
/// hexadecimal digits. Nothing for `Null`, which has no text.
pub fn format(datum: &Datum, ty: SqlType, zone: Zone, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Datum::Int(value) if ty.is_regproc() => put(out, format_args!("{}", function_name(*value))),
        Datum::Int(value) => put(out, format_args!("{value}")),
        Datum::Float(value) => number::format_float(*value, ty.base == BaseType::Float4, out),
        Datum::Numeric(value) => put(out, format_args!("{value}")),
        Datum::Text(value) => {
            out.extend_from_slice(value.as_bytes());
            pad(value, ty, out);
        }
        Datum::Bytes(value) => {
            out.extend_from_slice(b"\\x");
            put_hex(value, out);
        }
        Datum::Date(value) => date_time::format_date(*value, out),
        Datum::Time(value) => date_time::format_time(*value, out),
        Datum::Timestamp(value) => {
            date_time::format_timestamp(*value, (ty.base == BaseType::TimestampTz).then_some(zone), out);
        }
        Datum::Interval { months, days, microseconds } => {
            interval::format(*months, *days, *microseconds, out);
        }
        Datum::Uuid(value) => format_uuid(*value, out),
        Datum::Network(value) => {
            let is_cidr = ty.base == BaseType::Cidr;
            let shown = if is_cidr { network::Shown::Whole } else { network::Shown::Inet };
            network::format(value, shown, out);
        }
        Datum::Array(values) if ty.is_vector() => {
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    out.push(b' ');
                }
                format(value, ty.element(), zone, out);
            }
        }
        Datum::Array(values) => array::format(values, ty.element(), zone, out),
    }
}

/// The value as a text of its own; see [`format()`].
pub fn to_string(datum: &Datum, ty: SqlType, zone: Zone) -> String {
    let mut out = Vec::new();
    format(datum, ty, zone, &mut out);
    // Everything that is appended is UTF-8; were it not, a client could still be answered.
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Appends the blanks that a `char(n)` is padded with.
pub(crate) fn pad(value: &str, ty: SqlType, out: &mut Vec<u8>) {
    if ty.base == BaseType::Char
        && let Some(length) = ty.length()
    {
        let missing = length.saturating_sub(value.chars().count());
        out.resize(out.len() + missing, b' ');
    }
}

/// Appends formatted text.
pub(crate) fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(arguments);
}

/// Appends two digits for each byte.
pub(crate) fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// `invalid input syntax for type ...`, with the code for what is no date or time.
pub(crate) fn invalid(text: &str, type_name: &str) -> SqlError {
    let state = match type_name {
        "date" | "time" | "timestamp" | "timestamp with time zone" | "interval" => {
            SqlState::INVALID_DATETIME_FORMAT
        }
        _ => SqlState::INVALID_TEXT_REPRESENTATION,
    };
    SqlError::new(state, format!("invalid input syntax for type {type_name}: \"{text}\""))
}

fn check_text(text: &str) -> Result<&str, SqlError> {
    if text.contains('\0') {
        return Err(SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}

/// The first 63 bytes, without a character that does not fit whole.
pub(crate) fn truncate_name(text: &str) -> &str {
    &text[..text.floor_char_boundary(63)]
}

fn parse_bool(text: &str) -> Result<bool, SqlError> {
    let word = text.trim_ascii().to_ascii_lowercase();
    let is_start = |of: &str, least: usize| word.len() >= least && of.starts_with(&word);
    if word == "1" || is_start("true", 1) || is_start("yes", 1) || is_start("on", 2) {
        Ok(true)
    } else if word == "0" || is_start("false", 1) || is_start("no", 1) || is_start("off", 2) {
        Ok(false)
    } else {
        Err(invalid(text, "boolean"))
    }
}

fn parse_bytes(text: &str) -> Result<Vec<u8>, SqlError> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return parse_hex(digits);
    }
    parse_escape(text)
}

/// Bytes as characters, with octal digits after a backslash for those that are none.
pub(crate) fn parse_escape(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = after;
            continue;
        }
        match after {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea",
                ));
            }
        }
    }
    Ok(bytes)
}

/// Bytes of hexadecimal digits, between whose pairs blanks may stand.
pub(crate) fn parse_hex(text: &str) -> Result<Vec<u8>, SqlError> {
    let invalid = |text: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    let digit = |character: char| {
        let digit = character.to_digit(16);
        digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{character}\"")))
    };
    while let Some(character) = characters.next() {
        if matches!(character, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(character)?;
        let low = characters
            .next()
            .ok_or_else(|| invalid("invalid hexadecimal data: odd number of digits".to_owned()))?;
        bytes.push((high << 4 | digit(low)?) as u8);
    }
    Ok(bytes)
}

/// 32 hexadecimal digits, in braces or not, with a dash after any four or none.
fn parse_uuid(text: &str) -> Result<u128, SqlError> {
    let error = || invalid(text, "uuid");
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or_else(error)?,
        None => text,
    };
    let mut value = 0;
    let mut digits = 0;
    let mut after_dash = true;
    for byte in inner.bytes() {
        if byte == b'-' {
            if after_dash || digits % 4 != 0 || digits == 32 {
                return Err(error());
            }
            after_dash = true;
            continue;
        }
        let digit = char::from(byte).to_digit(16).filter(|_| digits < 32).ok_or_else(error)?;
        value = value << 4 | u128::from(digit);
        digits += 1;
        after_dash = false;
    }
    if digits == 32 { Ok(value) } else { Err(error()) }
}

fn format_uuid(value: u128, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let mut from = 0;
    for to in [4, 6, 8, 10, 16] {
        if from > 0 {
            out.push(b'-');
        }
        put_hex(&bytes[from..to], out);
        from = to;
    }
}

/// Appends a digit of base 10000 as four of base 10.
pub(crate) fn put_digits(out: &mut String, digit: i16) {
    out.push_str(&format!("{digit:04}"));
}
