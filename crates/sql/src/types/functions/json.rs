//! Functions of JSON. Values of `json` keep their text; those of `jsonb` are in its normal form, and so are their parts.

mod changes;

use super::*;
use crate::types::json::{self, Item, Value, parse, put_array, put_object, put_quoted, quote};
use crate::types::{BaseType, Numeric, text as text_form};
use changes::{Change, change, insert, path_of, set};

const JSON: Kind = Kind::Of(SqlType::JSON);
const JSONB: Kind = Kind::Of(SqlType::JSONB);
const TEXTS: Kind = Kind::Of(SqlType::TEXT.array_of());

/// What `jsonb` is compared by.
pub(crate) const ORDER_OF_JSONB: &str = "order of jsonb";

pub(super) const ORDER: &[Entry] =
    &[strict(ORDER_OF_JSONB, &[JSONB], BYTEA, |a, _| json::order(text(a, 0)?).map(Datum::Bytes))];

pub(super) const TABLE: &[Entry] = &[
    // The operators `->`, `->>`, `#>` and `#>>`.
    strict("json_object_field", &[JSON, TEXT], JSON, |a, _| Ok(part(field(&item(a)?, text(a, 1)?)))),
    strict("jsonb_object_field", &[JSONB, TEXT], JSONB, |a, _| Ok(part(field(&item(a)?, text(a, 1)?)))),
    strict("json_object_field_text", &[JSON, TEXT], TEXT, |a, _| Ok(shown(field(&item(a)?, text(a, 1)?)))),
    strict("jsonb_object_field_text", &[JSONB, TEXT], TEXT, |a, _| Ok(shown(field(&item(a)?, text(a, 1)?)))),
    strict("json_array_element", &[JSON, INT4], JSON, |a, _| Ok(part(element(&item(a)?, int(a, 1)?)))),
    strict("jsonb_array_element", &[JSONB, INT4], JSONB, |a, _| {
        Ok(part(element_or_scalar(&item(a)?, int(a, 1)?)))
    }),
    strict("json_array_element_text", &[JSON, INT4], TEXT, |a, _| Ok(shown(element(&item(a)?, int(a, 1)?)))),
    strict("jsonb_array_element_text", &[JSONB, INT4], TEXT, |a, _| {
        Ok(shown(element_or_scalar(&item(a)?, int(a, 1)?)))
    }),
    strict("json_at_path", &[JSON, TEXTS], JSON, |a, _| Ok(part(at_path(&item(a)?, array(a, 1)?)))),
    strict("jsonb_at_path", &[JSONB, TEXTS], JSONB, |a, _| Ok(part(at_path(&item(a)?, array(a, 1)?)))),
    strict("json_at_path_text", &[JSON, TEXTS], TEXT, |a, _| Ok(shown(at_path(&item(a)?, array(a, 1)?)))),
    strict("jsonb_at_path_text", &[JSONB, TEXTS], TEXT, |a, _| Ok(shown(at_path(&item(a)?, array(a, 1)?)))),
    variadic("json_extract_path", &[JSON, TEXT], JSON, |a, _| extract(a, part)),
    variadic("jsonb_extract_path", &[JSONB, TEXT], JSONB, |a, _| extract(a, part)),
    variadic("json_extract_path_text", &[JSON, TEXT], TEXT, |a, _| extract(a, shown)),
    variadic("jsonb_extract_path_text", &[JSONB, TEXT], TEXT, |a, _| extract(a, shown)),
    // The operators `@>`, `<@`, `?`, `?|` and `?&`.
    strict("jsonb_contains", &[JSONB, JSONB], BOOL, |a, _| {
        Ok(Datum::Bool(contains(&item(a)?, &parse(text(a, 1)?)?, true)))
    }),
    strict("jsonb_contained", &[JSONB, JSONB], BOOL, |a, _| {
        Ok(Datum::Bool(contains(&parse(text(a, 1)?)?, &item(a)?, true)))
    }),
    strict("jsonb_exists", &[JSONB, TEXT], BOOL, |a, _| Ok(Datum::Bool(exists_in(&item(a)?, text(a, 1)?)))),
    strict("jsonb_exists_any", &[JSONB, TEXTS], BOOL, |a, _| {
        let item = item(a)?;
        Ok(Datum::Bool(keys(array(a, 1)?).any(|key| exists_in(&item, key))))
    }),
    strict("jsonb_exists_all", &[JSONB, TEXTS], BOOL, |a, _| {
        let item = item(a)?;
        Ok(Datum::Bool(keys(array(a, 1)?).all(|key| exists_in(&item, key))))
    }),
    // The operators `||`, `-` and `#-`.
    strict("jsonb_concat", &[JSONB, JSONB], JSONB, |a, _| concat(&item(a)?, &parse(text(a, 1)?)?)),
    strict("jsonb_delete", &[JSONB, TEXT], JSONB, |a, _| delete_keys(&item(a)?, &[text(a, 1)?])),
    strict("jsonb_delete", &[JSONB, TEXTS], JSONB, |a, _| {
        delete_keys(&item(a)?, &keys(array(a, 1)?).collect::<Vec<_>>())
    }),
    strict("jsonb_delete", &[JSONB, INT4], JSONB, |a, _| delete_element(&item(a)?, int(a, 1)?)),
    strict("jsonb_delete_path", &[JSONB, TEXTS], JSONB, |a, _| {
        let (path, whole): (Vec<&str>, _) = (path_of(array(a, 1)?)?, item(a)?);
        if !matches!(whole.value, Value::Array(_) | Value::Object(_)) {
            return Err(parameter_error("cannot delete path in scalar"));
        }
        // There is nothing in it to be found, whatever the path is.
        if whole.is_empty() {
            return Ok(jsonb(whole.text.to_owned()));
        }
        change(&whole, &path, &Change::Delete).map(jsonb)
    }),
    strict("jsonb_set", &[JSONB, TEXTS, JSONB], JSONB, |a, _| set(a, true)),
    strict("jsonb_set", &[JSONB, TEXTS, JSONB, BOOL], JSONB, |a, _| {
        set(a, a.get(3) == Some(&Datum::Bool(true)))
    }),
    strict("jsonb_insert", &[JSONB, TEXTS, JSONB], JSONB, |a, _| insert(a, false)),
    strict("jsonb_insert", &[JSONB, TEXTS, JSONB, BOOL], JSONB, |a, _| {
        insert(a, a.get(3) == Some(&Datum::Bool(true)))
    }),
    strict("json_typeof", &[JSON], TEXT, |a, _| Ok(Datum::Text(item(a)?.kind().to_owned()))),
    strict("jsonb_typeof", &[JSONB], TEXT, |a, _| Ok(Datum::Text(item(a)?.kind().to_owned()))),
    strict("json_array_length", &[JSON], INT4, |a, _| array_length(&item(a)?)),
    strict("jsonb_array_length", &[JSONB], INT4, |a, _| array_length(&item(a)?)),
    strict("json_strip_nulls", &[JSON], JSON, |a, _| Ok(stripped(&item(a)?, ",", ":"))),
    strict("jsonb_strip_nulls", &[JSONB], JSONB, |a, _| Ok(stripped(&item(a)?, ", ", ": "))),
    strict("jsonb_pretty", &[JSONB], TEXT, |a, _| {
        let mut out = String::new();
        put_pretty(&item(a)?, 0, &mut out)?;
        Ok(Datum::Text(out))
    }),
    // Values of any type.
    strict("to_json", &[Kind::Any], JSON, |a, context| Ok(Datum::Text(of_pair(a, context.zone)?))),
    strict("to_jsonb", &[Kind::Any], JSONB, |a, context| {
        json::normalise(&of_pair(a, context.zone)?).map(Datum::Text)
    }),
    strict("row_to_json", &[JSON], JSON, |a, _| Ok(Datum::Text(text(a, 0)?.to_owned()))),
    strict("array_to_json", &[Kind::Any], JSON, |a, context| Ok(Datum::Text(of_pair(a, context.zone)?))),
    // A row, by the names and values of its columns.
    variadic(ROW, &[Kind::Any], JSON, |a, context| Ok(Datum::Text(build_object(a, ":", ",", context.zone)?))),
    lenient("json_build_object", &[], JSON, |_, _| Ok(Datum::Text("{}".to_owned()))),
    variadic("json_build_object", &[Kind::Any], JSON, |a, context| {
        Ok(Datum::Text(build_object(a, " : ", ", ", context.zone)?))
    }),
    lenient("jsonb_build_object", &[], JSONB, |_, _| Ok(Datum::Text("{}".to_owned()))),
    variadic("jsonb_build_object", &[Kind::Any], JSONB, |a, context| {
        json::normalise(&build_object(a, ":", ",", context.zone)?).map(Datum::Text)
    }),
    lenient("json_build_array", &[], JSON, |_, _| Ok(Datum::Text("[]".to_owned()))),
    variadic("json_build_array", &[Kind::Any], JSON, |a, context| {
        Ok(Datum::Text(build_array(a, context.zone)?))
    }),
    lenient("jsonb_build_array", &[], JSONB, |_, _| Ok(Datum::Text("[]".to_owned()))),
    variadic("jsonb_build_array", &[Kind::Any], JSONB, |a, context| {
        json::normalise(&build_array(a, context.zone)?).map(Datum::Text)
    }),
    strict("json_object", &[TEXTS], JSON, |a, _| object_of_texts(a).map(Datum::Text)),
    strict("json_object", &[TEXTS, TEXTS], JSON, |a, _| object_of_texts(a).map(Datum::Text)),
    strict("jsonb_object", &[TEXTS], JSONB, |a, _| json::normalise(&object_of_texts(a)?).map(Datum::Text)),
    strict("jsonb_object", &[TEXTS, TEXTS], JSONB, |a, _| {
        json::normalise(&object_of_texts(a)?).map(Datum::Text)
    }),
];

/// The name of the function that makes a row an object: no statement can name it.
pub const ROW: &str = "row to json";

fn item(arguments: &[Datum]) -> Result<Item<'_>, SqlError> {
    parse(text(arguments, 0)?)
}

fn jsonb(value: String) -> Datum {
    Datum::Text(value)
}

fn part(found: Option<&Item<'_>>) -> Datum {
    found.map_or(Datum::Null, |item| Datum::Text(item.text.to_owned()))
}

fn shown(found: Option<&Item<'_>>) -> Datum {
    found.and_then(Item::shown).map_or(Datum::Null, Datum::Text)
}

/// The value of a key; of equal keys the last.
fn field<'i, 'a>(item: &'i Item<'a>, key: &str) -> Option<&'i Item<'a>> {
    match &item.value {
        Value::Object(fields) => fields.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value),
        _ => None,
    }
}

/// The place of an element: from the end if negative.
fn place(length: usize, number: i64) -> Option<usize> {
    let number = if number < 0 { number.checked_add(length as i64)? } else { number };
    usize::try_from(number).ok().filter(|place| *place < length)
}

fn element<'i, 'a>(item: &'i Item<'a>, number: i64) -> Option<&'i Item<'a>> {
    match &item.value {
        Value::Array(items) => items.get(place(items.len(), number)?),
        _ => None,
    }
}

/// The same of a `jsonb`, of which PostgreSQL keeps one that is no array and no object as the only element of an array.
fn element_or_scalar<'i, 'a>(item: &'i Item<'a>, number: i64) -> Option<&'i Item<'a>> {
    match &item.value {
        Value::Array(_) | Value::Object(_) => element(item, number),
        _ => matches!(number, 0 | -1).then_some(item),
    }
}

fn at_path<'i, 'a>(item: &'i Item<'a>, path: &[Datum]) -> Option<&'i Item<'a>> {
    path.iter().try_fold(item, |item, step| {
        let Datum::Text(step) = step else { return None };
        match item.value {
            Value::Array(_) => element(item, step.trim().parse().ok()?),
            _ => field(item, step),
        }
    })
}

fn extract(arguments: &[Datum], as_what: fn(Option<&Item<'_>>) -> Datum) -> Result<Datum, SqlError> {
    if arguments.contains(&Datum::Null) {
        return Ok(Datum::Null);
    }
    Ok(as_what(at_path(&item(arguments)?, &arguments[1..])))
}

fn keys(list: &[Datum]) -> impl Iterator<Item = &str> {
    list.iter().filter_map(|key| match key {
        Datum::Text(key) => Some(key.as_str()),
        _ => None,
    })
}

/// Whether a string is a key of an object, an element of an array, or the value itself.
fn exists_in(item: &Item<'_>, key: &str) -> bool {
    match &item.value {
        Value::Object(fields) => fields.iter().any(|(known, _)| known == key),
        Value::Array(items) => items.iter().any(|item| matches!(&item.value, Value::String(it) if it == key)),
        Value::String(value) => value == key,
        _ => false,
    }
}

fn same(left: &Item<'_>, right: &Item<'_>) -> bool {
    match (&left.value, &right.value) {
        (Value::Number, Value::Number) => {
            let number = |item: &Item<'_>| Numeric::parse(item.text);
            left.text == right.text
                || matches!((number(left), number(right)), (Ok(left), Ok(right)) if left == right)
        }
        _ => left.text == right.text,
    }
}

/// Whether the first value has all that the second has. At the top an array may have a value that is no array.
fn contains(left: &Item<'_>, right: &Item<'_>, top: bool) -> bool {
    match (&left.value, &right.value) {
        (Value::Object(_), Value::Object(fields)) => {
            fields.iter().all(|(key, value)| field(left, key).is_some_and(|has| contains(has, value, false)))
        }
        (Value::Array(items), Value::Array(wanted)) => wanted.iter().all(|wanted| {
            items.iter().any(|item| match wanted.value {
                Value::Array(_) | Value::Object(_) => contains(item, wanted, false),
                _ => same(item, wanted),
            })
        }),
        (Value::Array(items), Value::Null | Value::Bool | Value::Number | Value::String(_)) if top => {
            items.iter().any(|item| same(item, right))
        }
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => false,
        _ => same(left, right),
    }
}

fn concat(left: &Item<'_>, right: &Item<'_>) -> Result<Datum, SqlError> {
    let mut out = String::new();
    let put = |text: &str, out: &mut String| out.push_str(text);
    if let (Value::Object(left), Value::Object(right)) = (&left.value, &right.value) {
        put_object(texts_of(left.iter().chain(right)), &mut out, put);
        return Ok(jsonb(out));
    }
    fn elements<'i>(item: &'i Item<'_>) -> Vec<&'i str> {
        match &item.value {
            Value::Array(items) => items.iter().map(|item| item.text).collect(),
            _ => vec![item.text],
        }
    }
    put_array(elements(left).into_iter().chain(elements(right)), &mut out, put);
    Ok(jsonb(out))
}

/// Keys, and the texts of their values.
fn texts_of<'i, 'a: 'i>(
    fields: impl IntoIterator<Item = &'i (String, Item<'a>)>,
) -> impl Iterator<Item = (&'i str, &'i str)> {
    fields.into_iter().map(|(key, value)| (key.as_str(), value.text))
}

fn no_scalar() -> SqlError {
    parameter_error("cannot delete from scalar")
}

fn delete_keys(item: &Item<'_>, unwanted: &[&str]) -> Result<Datum, SqlError> {
    let mut out = String::new();
    let put = |text: &str, out: &mut String| out.push_str(text);
    match &item.value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !unwanted.contains(&key.as_str()));
            put_object(texts_of(kept), &mut out, put);
        }
        Value::Array(items) => {
            let is_unwanted = |item: &&Item<'_>| matches!(&item.value, Value::String(text) if unwanted.contains(&text.as_str()));
            let kept = items.iter().filter(|item| !is_unwanted(item));
            put_array(kept.map(|item| item.text), &mut out, put);
        }
        _ => return Err(no_scalar()),
    }
    Ok(jsonb(out))
}

fn delete_element(item: &Item<'_>, number: i64) -> Result<Datum, SqlError> {
    match &item.value {
        Value::Array(items) => {
            let unwanted = place(items.len(), number);
            let kept = items.iter().enumerate().filter(|(at, _)| Some(*at) != unwanted);
            let mut out = String::new();
            put_array(kept.map(|(_, item)| item.text), &mut out, |text, out| out.push_str(text));
            Ok(jsonb(out))
        }
        Value::Object(_) => Err(parameter_error("cannot delete from object using integer index")),
        _ => Err(no_scalar()),
    }
}

fn array_length(item: &Item<'_>) -> Result<Datum, SqlError> {
    match &item.value {
        Value::Array(items) => Ok(Datum::Int(items.len() as i64)),
        Value::Object(_) => Err(parameter_error("cannot get array length of a non-array")),
        _ => Err(parameter_error("cannot get array length of a scalar")),
    }
}

/// Writes a value without the fields of objects that are null, with those separators.
fn put_stripped(item: &Item<'_>, comma: &str, colon: &str, out: &mut String) {
    match &item.value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !matches!(value.value, Value::Null));
            out.push('{');
            for (place, (key, value)) in kept.enumerate() {
                out.push_str(if place > 0 { comma } else { "" });
                put_quoted(key, out);
                out.push_str(colon);
                put_stripped(value, comma, colon, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { comma } else { "" });
                put_stripped(item, comma, colon, out);
            }
            out.push(']');
        }
        // Without escapes that it needs not have.
        Value::String(value) => put_quoted(value, out),
        _ => out.push_str(item.text),
    }
}

fn stripped(item: &Item<'_>, comma: &str, colon: &str) -> Datum {
    let mut out = String::with_capacity(item.text.len());
    put_stripped(item, comma, colon, &mut out);
    Datum::Text(out)
}

/// Writes a value with a line for each in it, and four blanks for each level.
fn put_pretty(item: &Item<'_>, level: usize, out: &mut String) -> Result<(), SqlError> {
    let put_line = |level: usize, out: &mut String| {
        out.push('\n');
        (0..level).for_each(|_| out.push_str("    "));
    };
    check_length(out.len())?;
    match &item.value {
        Value::Object(fields) => {
            out.push('{');
            for (place, (key, value)) in fields.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                put_line(level + 1, out);
                put_quoted(key, out);
                out.push_str(": ");
                put_pretty(value, level + 1, out)?;
            }
            put_line(level, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (place, value) in items.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                put_line(level + 1, out);
                put_pretty(value, level + 1, out)?;
            }
            put_line(level, out);
            out.push(']');
        }
        _ => out.push_str(item.text),
    }
    Ok(())
}

/// The value of any type as JSON.
pub(crate) fn of_value(value: &Datum, ty: SqlType, zone: Zone) -> String {
    match value {
        Datum::Null => "null".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Array(values) => {
            let values: Vec<String> =
                values.iter().map(|value| of_value(value, ty.element(), zone)).collect();
            format!("[{}]", values.join(","))
        }
        Datum::Text(value) if matches!(ty.base, BaseType::Json | BaseType::Jsonb) => value.clone(),
        Datum::Timestamp(at) => quote(&iso(*at, ty, zone)),
        _ => {
            let text = text_form::to_string(value, ty, zone);
            let is_number = ty.is_numeric() && ty.base != BaseType::Oid;
            let is_finite = text.starts_with(|first: char| first.is_ascii_digit())
                || text
                    .strip_prefix('-')
                    .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
            if is_number && is_finite { text } else { quote(&text) }
        }
    }
}

/// A timestamp as ISO 8601 has it, with the letter that stands between date and time.
fn iso(at: i64, ty: SqlType, zone: Zone) -> String {
    let zone = (ty.base == BaseType::TimestampTz).then_some(zone);
    text_form::date_time::iso_timestamp(at, zone)
}

fn of_pair(arguments: &[Datum], zone: Zone) -> Result<String, SqlError> {
    let (value, ty) = pairs(arguments).next().ok_or_else(|| unexpected(0))??;
    Ok(of_value(value, ty, zone))
}

/// An object of keys and values that follow each other.
fn build_object(arguments: &[Datum], colon: &str, comma: &str, zone: Zone) -> Result<String, SqlError> {
    let values = pairs(arguments).collect::<Result<Vec<_>, SqlError>>()?;
    if values.len() % 2 == 1 {
        return Err(parameter_error("argument list must have even number of elements")
            .with_hint("The arguments of json_build_object() must consist of alternating keys and values."));
    }
    let mut fields = Vec::with_capacity(values.len() / 2);
    for (at, pair) in values.chunks(2).enumerate() {
        let [(key, key_type), (value, ty)] = pair else { continue };
        let key = key_of(key, *key_type, 2 * at + 1, zone)?;
        fields.push(format!("{key}{colon}{}", of_value(value, *ty, zone)));
    }
    Ok(format!("{{{}}}", fields.join(comma)))
}

/// A key as a string in quotes.
pub(crate) fn key_of(key: &Datum, ty: SqlType, number: usize, zone: Zone) -> Result<String, SqlError> {
    match key {
        Datum::Null => Err(parameter_error(format!("argument {number} cannot be null"))
            .with_hint("Object keys should be text.")),
        Datum::Array(_) => Err(parameter_error("key value must be scalar, not array, composite, or json")),
        Datum::Timestamp(at) => Ok(quote(&iso(*at, ty, zone))),
        key => Ok(quote(&text_form::to_string(key, ty, zone))),
    }
}

fn build_array(arguments: &[Datum], zone: Zone) -> Result<String, SqlError> {
    let mut values = Vec::with_capacity(arguments.len() / 2);
    for pair in pairs(arguments) {
        let (value, ty) = pair?;
        values.push(of_value(value, ty, zone));
    }
    Ok(format!("[{}]", values.join(", ")))
}

/// An object of keys and values in one array, or in one array each.
fn object_of_texts(arguments: &[Datum]) -> Result<String, SqlError> {
    let wrong = |message: &str| SqlError::new(SqlState(*b"2202E"), message);
    let first = array(arguments, 0)?;
    let pairs: Vec<(&Datum, &Datum)> = match arguments.get(1) {
        Some(Datum::Array(values)) if values.len() == first.len() => first.iter().zip(values).collect(),
        Some(_) => return Err(wrong("mismatched array dimensions")),
        None if first.len() % 2 == 1 => return Err(wrong("array must have even number of elements")),
        None => first.chunks(2).map(|pair| (&pair[0], &pair[1])).collect(),
    };
    let mut fields = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let Datum::Text(key) = key else {
            return Err(SqlError::new(SqlState(*b"22004"), "null value not allowed for object key"));
        };
        fields.push(format!("{} : {}", quote(key), of_value(value, SqlType::TEXT, Zone::Utc)));
    }
    Ok(format!("{{{}}}", fields.join(", ")))
}

/// The elements of an array, as they are or as texts.
pub(super) fn elements(arguments: &[Datum], as_text: bool) -> Result<Vec<Datum>, SqlError> {
    let item = item(arguments)?;
    match &item.value {
        Value::Array(items) => Ok(items.iter().map(|item| given(item, as_text)).collect()),
        Value::Object(_) => Err(parameter_error("cannot extract elements from an object")),
        _ => Err(parameter_error("cannot extract elements from a scalar")),
    }
}

/// A part as it is, or as a text.
fn given(item: &Item<'_>, as_text: bool) -> Datum {
    if as_text { item.shown().map_or(Datum::Null, Datum::Text) } else { Datum::Text(item.text.to_owned()) }
}

/// The keys of an object, each in a row with its value as it is or as a text.
pub(super) fn fields(arguments: &[Datum], as_text: bool) -> Result<Vec<Datum>, SqlError> {
    let item = item(arguments)?;
    match &item.value {
        Value::Object(fields) => {
            let row = |(key, item): &(String, Item<'_>)| {
                Datum::Array(vec![Datum::Text(key.clone()), given(item, as_text)])
            };
            Ok(fields.iter().map(row).collect())
        }
        Value::Array(_) => Err(parameter_error("cannot deconstruct an array as an object")),
        _ => Err(parameter_error("cannot deconstruct a scalar")),
    }
}

/// The keys of an object.
pub(super) fn object_keys(arguments: &[Datum], name: &str) -> Result<Vec<Datum>, SqlError> {
    let item = item(arguments)?;
    match &item.value {
        Value::Object(fields) => Ok(fields.iter().map(|(key, _)| Datum::Text(key.clone())).collect()),
        Value::Array(_) => Err(parameter_error(format!("cannot call {name} on an array"))),
        _ => Err(parameter_error(format!("cannot call {name} on a scalar"))),
    }
}
