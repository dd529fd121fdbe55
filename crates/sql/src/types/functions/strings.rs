//! Functions of texts and bytes. Positions and lengths are in characters, from 1 on.

use std::collections::{BTreeMap, BTreeSet};

use md5::{Digest as _, Md5};

use super::*;
use crate::types::operators::{lower_character, upper_character};
use crate::types::text as text_form;

/// Bytes that a function gives at most.
const RESULT_BYTES_MAX: usize = 1 << 26;

pub(super) const TABLE: &[Entry] = &[
    strict("lower", &[TEXT], TEXT, |a, _| {
        Ok(Datum::Text(text(a, 0)?.chars().map(lower_character).collect()))
    }),
    strict("upper", &[TEXT], TEXT, |a, _| {
        Ok(Datum::Text(text(a, 0)?.chars().map(upper_character).collect()))
    }),
    strict("initcap", &[TEXT], TEXT, |a, _| Ok(Datum::Text(initcap(text(a, 0)?)))),
    strict("length", &[TEXT], INT4, |a, _| count(text(a, 0)?.chars().count())),
    strict("length", &[BYTEA], INT4, |a, _| count(bytes(a, 0)?.len())),
    strict("char_length", &[TEXT], INT4, |a, _| count(text(a, 0)?.chars().count())),
    strict("character_length", &[TEXT], INT4, |a, _| count(text(a, 0)?.chars().count())),
    strict("octet_length", &[TEXT], INT4, |a, _| count(text(a, 0)?.len())),
    strict("octet_length", &[BYTEA], INT4, |a, _| count(bytes(a, 0)?.len())),
    strict("bit_length", &[TEXT], INT4, |a, _| count(text(a, 0)?.len() * 8)),
    strict("substr", &[TEXT, INT4], TEXT, |a, _| substring(a)),
    strict("substr", &[TEXT, INT4, INT4], TEXT, |a, _| substring(a)),
    strict("substr", &[BYTEA, INT4], BYTEA, |a, _| substring_bytes(a)),
    strict("substr", &[BYTEA, INT4, INT4], BYTEA, |a, _| substring_bytes(a)),
    strict("substring", &[TEXT, INT4], TEXT, |a, _| substring(a)),
    strict("substring", &[TEXT, INT4, INT4], TEXT, |a, _| substring(a)),
    strict("substring", &[BYTEA, INT4], BYTEA, |a, _| substring_bytes(a)),
    strict("substring", &[BYTEA, INT4, INT4], BYTEA, |a, _| substring_bytes(a)),
    // `POSITION(a IN b)` is `position(b, a)`.
    strict("position", &[TEXT, TEXT], INT4, |a, _| position(a)),
    strict("strpos", &[TEXT, TEXT], INT4, |a, _| position(a)),
    strict("trim", &[TEXT], TEXT, |a, _| trim(a, true, true)),
    strict("trim", &[TEXT, TEXT], TEXT, |a, _| trim(a, true, true)),
    strict("btrim", &[TEXT], TEXT, |a, _| trim(a, true, true)),
    strict("btrim", &[TEXT, TEXT], TEXT, |a, _| trim(a, true, true)),
    strict("ltrim", &[TEXT], TEXT, |a, _| trim(a, true, false)),
    strict("ltrim", &[TEXT, TEXT], TEXT, |a, _| trim(a, true, false)),
    strict("rtrim", &[TEXT], TEXT, |a, _| trim(a, false, true)),
    strict("rtrim", &[TEXT, TEXT], TEXT, |a, _| trim(a, false, true)),
    strict("lpad", &[TEXT, INT4], TEXT, |a, _| pad(a, true)),
    strict("lpad", &[TEXT, INT4, TEXT], TEXT, |a, _| pad(a, true)),
    strict("rpad", &[TEXT, INT4], TEXT, |a, _| pad(a, false)),
    strict("rpad", &[TEXT, INT4, TEXT], TEXT, |a, _| pad(a, false)),
    strict("left", &[TEXT, INT4], TEXT, |a, _| {
        let value = text(a, 0)?;
        let end = index(value, int(a, 1)?);
        Ok(Datum::Text(value[..end].to_owned()))
    }),
    strict("right", &[TEXT, INT4], TEXT, |a, _| {
        let (value, count) = (text(a, 0)?, int(a, 1)?);
        // Zero characters from the right begin at the end, not at the start. The least number has no positive counterpart, so nothing is
        // left out for it, as in PostgreSQL.
        let start = match count {
            0 => value.len(),
            _ if count == i64::from(i32::MIN) => 0,
            _ => index(value, -count),
        };
        Ok(Datum::Text(value[start..].to_owned()))
    }),
    strict("replace", &[TEXT, TEXT, TEXT], TEXT, |a, _| replace(a)),
    strict("translate", &[TEXT, TEXT, TEXT], TEXT, |a, _| translate(a)),
    strict("repeat", &[TEXT, INT4], TEXT, |a, _| {
        let (value, times) = (text(a, 0)?, usize::try_from(int(a, 1)?).unwrap_or(0));
        check_length(value.len().saturating_mul(times))?;
        Ok(Datum::Text(value.repeat(times)))
    }),
    strict("reverse", &[TEXT], TEXT, |a, _| Ok(Datum::Text(text(a, 0)?.chars().rev().collect()))),
    variadic("concat", &[Kind::Any], TEXT, |a, context| join(&shown(a, context.zone)?, "")),
    variadic("concat_ws", &[TEXT, Kind::Any], TEXT, |a, context| {
        match shown(a, context.zone)?.split_first() {
            Some((Some(separator), values)) => join(values, separator),
            _ => Ok(Datum::Null),
        }
    }),
    strict("split_part", &[TEXT, TEXT, INT4], TEXT, |a, _| split_part(a)),
    strict("starts_with", &[TEXT, TEXT], BOOL, |a, _| Ok(Datum::Bool(text(a, 0)?.starts_with(text(a, 1)?)))),
    strict("ascii", &[TEXT], INT4, |a, _| {
        Ok(Datum::Int(text(a, 0)?.chars().next().map_or(0, |first| i64::from(u32::from(first)))))
    }),
    strict("chr", &[INT4], TEXT, |a, _| chr(int(a, 0)?)),
    strict("md5", &[TEXT], TEXT, |a, _| Ok(md5_text(text(a, 0)?.as_bytes()))),
    strict("md5", &[BYTEA], TEXT, |a, _| Ok(md5_text(bytes(a, 0)?))),
    strict("sha224", &[BYTEA], BYTEA, |a, _| Ok(Datum::Bytes(sha2::Sha224::digest(bytes(a, 0)?).to_vec()))),
    strict("sha256", &[BYTEA], BYTEA, |a, _| Ok(Datum::Bytes(sha2::Sha256::digest(bytes(a, 0)?).to_vec()))),
    strict("sha384", &[BYTEA], BYTEA, |a, _| Ok(Datum::Bytes(sha2::Sha384::digest(bytes(a, 0)?).to_vec()))),
    strict("sha512", &[BYTEA], BYTEA, |a, _| Ok(Datum::Bytes(sha2::Sha512::digest(bytes(a, 0)?).to_vec()))),
    strict("overlay", &[TEXT, TEXT, INT4], TEXT, |a, _| overlay(a, text(a, 1)?.chars().count() as i64)),
    strict("overlay", &[TEXT, TEXT, INT4, INT4], TEXT, |a, _| overlay(a, int(a, 3)?)),
    strict("convert_to", &[TEXT, TEXT], BYTEA, |a, _| {
        check_encoding(text(a, 1)?)?;
        Ok(Datum::Bytes(text(a, 0)?.as_bytes().to_vec()))
    }),
    strict("convert_from", &[BYTEA, TEXT], TEXT, |a, _| {
        check_encoding(text(a, 1)?)?;
        let text = str::from_utf8(bytes(a, 0)?).map_err(|_| {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
        })?;
        Ok(Datum::Text(text.to_owned()))
    }),
    strict("get_byte", &[BYTEA, INT4], INT4, |a, _| {
        let (value, at) = (bytes(a, 0)?, int(a, 1)?);
        let byte = usize::try_from(at).ok().and_then(|at| value.get(at));
        byte.map(|byte| Datum::Int(i64::from(*byte))).ok_or_else(|| {
            let message = format!("index {at} out of valid range, 0..{}", value.len() as i64 - 1);
            SqlError::new(SqlState(*b"2202E"), message)
        })
    }),
    strict("pg_size_pretty", &[INT8], TEXT, |a, _| Ok(Datum::Text(size_pretty(int(a, 0)?)))),
    strict("to_hex", &[INT4], TEXT, |a, _| Ok(Datum::Text(format!("{:x}", int(a, 0)? as i32)))),
    strict("to_hex", &[INT8], TEXT, |a, _| Ok(Datum::Text(format!("{:x}", int(a, 0)?)))),
    strict("encode", &[BYTEA, TEXT], TEXT, |a, _| encode(bytes(a, 0)?, text(a, 1)?).map(Datum::Text)),
    strict("decode", &[TEXT, TEXT], BYTEA, |a, _| decode(text(a, 0)?, text(a, 1)?).map(Datum::Bytes)),
    strict("quote_ident", &[TEXT], TEXT, |a, _| Ok(Datum::Text(quote_ident(text(a, 0)?)))),
];

fn count(value: usize) -> Result<Datum, SqlError> {
    Ok(Datum::Int(value as i64))
}

/// Fails if a value would have more bytes than may be.
pub(crate) fn check_length(bytes: usize) -> Result<(), SqlError> {
    if bytes > RESULT_BYTES_MAX {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    Ok(())
}

/// Each first letter of a word in upper case, the others in lower case; words are of letters and digits.
fn initcap(value: &str) -> String {
    let mut inside = false;
    let mut result = String::with_capacity(value.len());
    for character in value.chars() {
        result.push(if inside { lower_character(character) } else { upper_character(character) });
        inside = character.is_alphanumeric();
    }
    result
}

/// The byte behind that many characters, or before that many from the end if negative.
fn index(value: &str, characters: i64) -> usize {
    let from_start = if characters >= 0 {
        characters as usize
    } else {
        value.chars().count().saturating_sub(characters.unsigned_abs() as usize)
    };
    value.char_indices().nth(from_start).map_or(value.len(), |(at, _)| at)
}

/// The part of `length` that the second and third argument say, as places from 0 on.
fn part(arguments: &[Datum], length: usize) -> Result<(usize, usize), SqlError> {
    let start = int(arguments, 1)?;
    let end = match arguments.get(2) {
        None => i64::MAX,
        Some(_) => {
            let count = int(arguments, 2)?;
            if count < 0 {
                return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
            }
            start.saturating_add(count)
        }
    };
    let place = |at: i64| (at.max(1) as usize - 1).min(length);
    Ok((place(start), place(end).max(place(start))))
}

fn substring(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let value = text(arguments, 0)?;
    let (start, end) = part(arguments, value.len())?;
    Ok(Datum::Text(value.chars().skip(start).take(end - start).collect()))
}

fn substring_bytes(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let value = bytes(arguments, 0)?;
    let (start, end) = part(arguments, value.len())?;
    Ok(Datum::Bytes(value[start..end].to_vec()))
}

fn position(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let value = text(arguments, 0)?;
    let at = value.find(text(arguments, 1)?);
    count(at.map_or(0, |at| value[..at].chars().count() + 1))
}

/// The longest set of characters that is gone through for each character of a text, in bytes.
const SET_SEARCHED: usize = 32;

fn trim(arguments: &[Datum], start: bool, end: bool) -> Result<Datum, SqlError> {
    let mut value = text(arguments, 0)?;
    let set = if arguments.len() > 1 { text(arguments, 1)? } else { " " };
    // A set that is long would be gone through for each character.
    let known: Option<BTreeSet<char>> = (set.len() > SET_SEARCHED).then(|| set.chars().collect());
    let is_in = |character| {
        known.as_ref().map_or_else(|| set.contains(character), |known| known.contains(&character))
    };
    if start {
        value = value.trim_start_matches(is_in);
    }
    if end {
        value = value.trim_end_matches(is_in);
    }
    Ok(Datum::Text(value.to_owned()))
}

pub(super) fn pad(arguments: &[Datum], at_start: bool) -> Result<Datum, SqlError> {
    let value = text(arguments, 0)?;
    let length = usize::try_from(int(arguments, 1)?).unwrap_or(0);
    let fill = if arguments.len() > 2 { text(arguments, 2)? } else { " " };
    check_length(length)?;
    let missing = length.saturating_sub(value.chars().count());
    // Nothing is after the last character that there is.
    let kept = value.char_indices().nth(length).map_or(value, |(end, _)| &value[..end]);
    let filling = match fill.chars().count() {
        0 => String::new(),
        count => {
            let rest = fill.char_indices().nth(missing % count).map_or(0, |(end, _)| end);
            check_length(fill.len().saturating_mul(missing / count))?;
            fill.repeat(missing / count) + &fill[..rest]
        }
    };
    Ok(Datum::Text(if at_start { filling + kept } else { [kept, &filling].concat() }))
}

/// The text with that many characters from one on replaced by another text.
fn overlay(arguments: &[Datum], count: i64) -> Result<Datum, SqlError> {
    let (value, new, start) = (text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?);
    if start <= 0 {
        return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
    }
    let before: String = value.chars().take(start as usize - 1).collect();
    let after = usize::try_from(start - 1 + count).unwrap_or(0);
    let rest: String = value.chars().skip(after).collect();
    Ok(Datum::Text(format!("{before}{new}{rest}")))
}

/// Fails for any encoding but that which all texts have.
fn check_encoding(name: &str) -> Result<(), SqlError> {
    if matches!(name.to_ascii_lowercase().replace(['-', '_'], "").as_str(), "utf8" | "unicode") {
        return Ok(());
    }
    Err(SqlError::unsupported(format!("the encoding {name}")).with_hint("All texts are in UTF8."))
}

/// A number of bytes in the unit that gives up to five digits.
fn size_pretty(bytes: i64) -> String {
    // Half of the last digit is rounded away from zero at each step.
    let mut value = i128::from(bytes);
    let mut units = ["bytes", "kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    if value.abs() < 10 * 1024 {
        return format!("{value} {unit}");
    }
    value /= 512;
    for next in units {
        unit = next;
        if value.abs() < 2 * 10_240 - 1 {
            break;
        }
        if next != "PB" {
            value /= 1024;
        }
    }
    format!("{} {unit}", (value + value.signum()) / 2)
}

fn replace(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (value, from, to) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    if from.is_empty() {
        return Ok(Datum::Text(value.to_owned()));
    }
    check_length((value.len() / from.len()).saturating_mul(to.len()))?;
    Ok(Datum::Text(value.replace(from, to)))
}

/// Characters of the second argument become those of the third at the same place, or vanish.
fn translate(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (value, from, to) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    let mut others = to.chars();
    let mut ways = BTreeMap::new();
    for character in from.chars() {
        let other = others.next();
        // The first of equal ones counts.
        ways.entry(character).or_insert(other);
    }
    let translated =
        value.chars().filter_map(|character| ways.get(&character).copied().unwrap_or(Some(character)));
    Ok(Datum::Text(translated.collect()))
}

/// The texts that there are, with the separator between them.
fn join(values: &[Option<String>], separator: &str) -> Result<Datum, SqlError> {
    let texts: Vec<&str> = values.iter().filter_map(Option::as_deref).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    check_length(bytes.saturating_add(separator.len().saturating_mul(texts.len())))?;
    Ok(Datum::Text(texts.join(separator)))
}

fn split_part(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (value, separator, field) = (text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?);
    if field == 0 {
        return Err(parameter_error("field position must not be zero"));
    }
    let place = field.unsigned_abs() as usize - 1;
    let found = if separator.is_empty() {
        (place == 0 && !value.is_empty()).then_some(value)
    } else if field > 0 {
        value.split(separator).nth(place)
    } else {
        // Looked for from the start: where separators could overlap, that matters.
        let count = value.split(separator).count();
        count.checked_sub(place + 1).and_then(|place| value.split(separator).nth(place))
    };
    Ok(Datum::Text(found.unwrap_or("").to_owned()))
}

fn chr(code: i64) -> Result<Datum, SqlError> {
    let limit = |message: String| Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    if code < 0 {
        return Err(parameter_error("character number must be positive"));
    }
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some('\0') => limit("null character not permitted".to_owned()),
        Some(character) => Ok(Datum::Text(character.to_string())),
        None if code > 0x10_FFFF => limit(format!("requested character too large for encoding: {code}")),
        None => limit(format!("requested character not valid for encoding: {code}")),
    }
}

fn hex(value: &[u8]) -> String {
    let mut digits = Vec::new();
    text_form::put_hex(value, &mut digits);
    digits.into_iter().map(char::from).collect()
}

fn md5_text(value: &[u8]) -> Datum {
    Datum::Text(hex(&Md5::digest(value)))
}

fn unknown_encoding(name: &str) -> SqlError {
    parameter_error(format!("unrecognized encoding: \"{name}\""))
}

fn encode(value: &[u8], form: &str) -> Result<String, SqlError> {
    match form.to_ascii_lowercase().as_str() {
        "hex" => Ok(hex(value)),
        "base64" => Ok(encode_base64(value)),
        "escape" => Ok(encode_escape(value)),
        _ => Err(unknown_encoding(form)),
    }
}

fn decode(value: &str, form: &str) -> Result<Vec<u8>, SqlError> {
    match form.to_ascii_lowercase().as_str() {
        "hex" => text_form::parse_hex(value),
        "base64" => decode_base64(value),
        "escape" => text_form::parse_escape(value),
        _ => Err(unknown_encoding(form)),
    }
}

fn encode_escape(value: &[u8]) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value {
        match byte {
            b'\\' => escaped.push_str("\\\\"),
            0 | 0x80.. => escaped.push_str(&format!("\\{byte:03o}")),
            _ => escaped.push(char::from(*byte)),
        }
    }
    escaped
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// With a line break after each 76 characters, as in letters.
fn encode_base64(value: &[u8]) -> String {
    let mut encoded = String::with_capacity(value.len() / 3 * 4 + 4);
    for (at, three) in value.chunks(3).enumerate() {
        if at > 0 && at % 19 == 0 {
            encoded.push('\n');
        }
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * place) & 63) as usize];
            encoded.push(if place > three.len() { '=' } else { char::from(digit) });
        }
    }
    encoded
}

fn decode_base64(value: &str) -> Result<Vec<u8>, SqlError> {
    let mut decoded = Vec::with_capacity(value.len() / 4 * 3);
    let (mut bits, mut digits, mut padding) = (0u32, 0, 0);
    for character in value.chars().filter(|character| !matches!(character, ' ' | '\t' | '\n' | '\r')) {
        let digit = match character {
            '=' if digits >= 2 => {
                padding += 1;
                0
            }
            '=' => return Err(parameter_error("unexpected \"=\" while decoding base64 sequence")),
            _ => {
                let place = BASE64.iter().position(|digit| char::from(*digit) == character);
                place.filter(|_| padding == 0).ok_or_else(|| {
                    parameter_error(format!(
                        "invalid symbol \"{character}\" found while decoding base64 sequence"
                    ))
                })?
            }
        };
        bits = bits << 6 | digit as u32;
        digits += 1;
        if digits == 4 {
            decoded.extend_from_slice(&bits.to_be_bytes()[1..4 - padding.min(2)]);
            (bits, digits) = (0, 0);
        }
    }
    if digits != 0 {
        return Err(parameter_error("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(decoded)
}

/// Words that are no names without quotes.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// The name as a statement needs it: in quotes unless it is a plain word in lower case that is not reserved.
pub(crate) fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && RESERVED.binary_search(&name).is_err();
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

pub(super) fn quote_literal(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
