//! The syntax of JSON, and the form that `jsonb` gives it: keys by length and bytes, the last of equal keys, one space after
//! colons and commas.
//!
//! As keys, and as what is grouped, two `jsonb` are equal if that form is, so `1` and `1.0` differ there. Operators and sorting compare them
//! by [`order`].

use std::collections::BTreeMap;

use super::key::{self, KeyBytes};
use super::{Datum, Numeric};
use crate::error::{SqlError, SqlState};

/// Nesting of arrays and objects; PostgreSQL's limit is that of its stack.
const DEPTH_MAX: u32 = 512;

/// The text as `json` keeps it: unchanged. An error if it is no JSON.
pub(crate) fn check(text: &str) -> Result<String, SqlError> {
    read(text, false).map(|_| text.to_owned())
}

/// The text as `jsonb` gives it out. An error if it is no JSON.
pub(crate) fn normalise(text: &str) -> Result<String, SqlError> {
    let item = parse(text)?;
    let mut out = String::with_capacity(text.len());
    item.put_normalised(&mut out);
    Ok(out)
}

/// Bytes in the order that PostgreSQL gives to values of `jsonb`: objects after arrays, then booleans, numbers, strings, and null; of arrays
/// and objects, those with fewer elements first. An error if the text is no JSON.
pub(crate) fn order(text: &str) -> Result<Vec<u8>, SqlError> {
    let item = parse(text)?;
    let mut out = KeyBytes::new();
    match &item.value {
        // By itself, it comes before values that are none.
        Value::Array(items) if items.is_empty() => {}
        _ => put_order(&item, &mut out)?,
    }
    Ok(out.into_vec())
}

fn put_order(item: &Item<'_>, out: &mut KeyBytes) -> Result<(), SqlError> {
    const NULL: u8 = 1;
    const STRING: u8 = 2;
    const NUMBER: u8 = 3;
    const BOOL: u8 = 4;
    const ARRAY: u8 = 5;
    const OBJECT: u8 = 6;
    let put_string = |value: &str, out: &mut KeyBytes| key::encode(&Datum::Text(value.to_owned()), out);
    match &item.value {
        Value::Null => out.push(NULL),
        Value::String(value) => {
            out.push(STRING);
            put_string(value, out);
        }
        Value::Number => {
            out.push(NUMBER);
            key::encode(&Datum::Numeric(Numeric::parse(item.text)?), out);
        }
        Value::Bool => out.extend([BOOL, u8::from(item.text == "true")]),
        Value::Array(items) => {
            out.push(ARRAY);
            out.extend_from_slice(&(items.len() as u32).to_be_bytes());
            items.iter().try_for_each(|item| put_order(item, out))?;
        }
        Value::Object(fields) => {
            // Equal keys are gone, and the others in their order, in the form of `jsonb`.
            out.push(OBJECT);
            out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
            for (key, item) in fields {
                put_string(key, out);
                put_order(item, out)?;
            }
        }
    }
    Ok(())
}

/// A value with the text that it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    /// The text, without blanks around it.
    pub text: &'a str,
    /// The value.
    pub value: Value<'a>,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number that `numeric` takes.
    Number,
    /// A string without its quotes and escapes.
    String(String),
    /// Its elements.
    Array(Vec<Item<'a>>),
    /// Its keys and values as they were written, equal keys too.
    Object(Vec<(String, Item<'a>)>),
}

/// Keys in the order of `jsonb`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'k>(usize, &'k str);

impl Item<'_> {
    /// Writes the form that `jsonb` gives it.
    fn put_normalised(&self, out: &mut String) {
        match &self.value {
            Value::Null | Value::Bool => out.push_str(self.text),
            // Without an exponent, with all its digits.
            Value::Number if self.text.contains(['e', 'E', '-']) => match Numeric::parse(self.text) {
                Ok(number) => out.push_str(&number.to_string()),
                Err(_) => out.push_str(self.text),
            },
            Value::Number => out.push_str(self.text),
            Value::String(value) => put_quoted(value, out),
            Value::Array(items) => put_array(items, out, |item, out| item.put_normalised(out)),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, item)| (key.as_str(), item));
                put_object(fields, out, |item, out| item.put_normalised(out));
            }
        }
    }

    /// What `->>` gives of it: a string without its quotes, none for `null`.
    pub(crate) fn shown(&self) -> Option<String> {
        match &self.value {
            Value::Null => None,
            Value::String(value) => Some(value.clone()),
            _ => Some(self.text.to_owned()),
        }
    }

    /// Whether it is an array or an object with nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }

    /// The name of its kind, as `json_typeof` tells it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool => "boolean",
            Value::Number => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }
}

/// Writes an array in the form of `jsonb`.
pub(crate) fn put_array<T>(
    items: impl IntoIterator<Item = T>,
    out: &mut String,
    mut put: impl FnMut(T, &mut String),
) {
    out.push('[');
    for (place, item) in items.into_iter().enumerate() {
        out.push_str(if place > 0 { ", " } else { "" });
        put(item, out);
    }
    out.push(']');
}

/// Writes an object in the form of `jsonb`: the last of equal keys counts.
pub(crate) fn put_object<'k, T>(
    fields: impl Iterator<Item = (&'k str, T)>,
    out: &mut String,
    mut put: impl FnMut(T, &mut String),
) {
    let fields: BTreeMap<Key<'_>, T> = fields.map(|(key, value)| (Key(key.len(), key), value)).collect();
    out.push('{');
    for (place, (Key(_, key), value)) in fields.into_iter().enumerate() {
        out.push_str(if place > 0 { ", " } else { "" });
        put_quoted(key, out);
        out.push_str(": ");
        put(value, out);
    }
    out.push('}');
}

/// The value that a text is. An error if it is no JSON.
pub(crate) fn parse(text: &str) -> Result<Item<'_>, SqlError> {
    read(text, true)
}

fn read(text: &str, keeps: bool) -> Result<Item<'_>, SqlError> {
    let mut reader = Reader { text, at: 0, values: 0, keeps };
    let value = reader.value(0).filter(|_| {
        reader.skip_blanks();
        reader.at == text.len()
    });
    value.ok_or_else(|| {
        if reader.values > VALUES_MAX {
            let message = format!("JSON with more than {VALUES_MAX} values");
            return SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
        }
        // A backslash before a character of several bytes leaves the reader inside of it.
        let near: String = text[text.floor_char_boundary(reader.at)..].chars().take(20).collect();
        let detail = if near.is_empty() {
            "The input string ended unexpectedly.".to_owned()
        } else {
            format!("Near \"{near}\".")
        };
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
            .with_detail(detail)
    })
}

/// Most values of a JSON text: each takes much more memory than its text.
const VALUES_MAX: usize = 1 << 22;

/// As many digits as each `numeric` may have on either side of its point.
const DIGITS_SHORT: usize = 1_000;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many values began before.
    values: usize,
    /// Whether what it reads has all that is inside, and not only its kind and its text.
    keeps: bool,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Moves behind the byte, and blanks before it, if it is next.
    fn accept(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: u32) -> Option<Item<'a>> {
        self.values += 1;
        if depth > DEPTH_MAX || self.values > VALUES_MAX {
            return None;
        }
        self.skip_blanks();
        let start = self.at;
        let value = match self.peek()? {
            b'{' => Value::Object(self.object(depth)?),
            b'[' => Value::Array(self.array(depth)?),
            b'"' => Value::String(self.string()?),
            b'-' | b'0'..=b'9' => {
                self.number()?;
                Value::Number
            }
            _ => {
                let word = ["true", "false", "null"]
                    .into_iter()
                    .find(|word| self.text[self.at..].starts_with(word))?;
                self.at += word.len();
                if word == "null" { Value::Null } else { Value::Bool }
            }
        };
        Some(Item { text: &self.text[start..self.at], value })
    }

    fn object(&mut self, depth: u32) -> Option<Vec<(String, Item<'a>)>> {
        self.at += 1;
        let mut fields = Vec::new();
        if !self.accept(b'}') {
            loop {
                self.skip_blanks();
                (self.peek()? == b'"').then_some(())?;
                let key = self.string()?;
                self.accept(b':').then_some(())?;
                let value = self.value(depth + 1)?;
                if self.keeps {
                    fields.push((key, value));
                }
                if self.accept(b'}') {
                    break;
                }
                self.accept(b',').then_some(())?;
            }
        }
        Some(fields)
    }

    fn array(&mut self, depth: u32) -> Option<Vec<Item<'a>>> {
        self.at += 1;
        let mut values = Vec::new();
        if !self.accept(b']') {
            loop {
                let value = self.value(depth + 1)?;
                if self.keeps {
                    values.push(value);
                }
                if self.accept(b']') {
                    break;
                }
                self.accept(b',').then_some(())?;
            }
        }
        Some(values)
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Moves behind a number that `numeric` takes.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if matches!(self.peek(), Some(b'0'..=b'9')) {
            return None;
        }
        // Most are short, and need not be read.
        if text.len() <= DIGITS_SHORT && !text.contains(['e', 'E']) {
            return Some(());
        }
        Numeric::check(text).ok()
    }

    fn string(&mut self) -> Option<String> {
        self.at += 1;
        let mut value = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'))?;
            if self.keeps {
                value.push_str(&rest[..plain]);
            }
            self.at += plain + 1;
            match rest.as_bytes()[plain] {
                b'"' => return Some(value),
                b'\\' => {
                    let character = self.escape()?;
                    if self.keeps {
                        value.push(character);
                    }
                }
                _ => {
                    self.at -= 1;
                    return None;
                }
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits()?;
                if !(0xD800..0xDC00).contains(&first) {
                    // No text has a zero in it.
                    return char::from_u32(first).filter(|character| *character != '\0');
                }
                (self.text[self.at..].starts_with("\\u")).then_some(())?;
                self.at += 2;
                let second = self.four_digits()?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
                char::from_u32(0x10000 + ((first - 0xD800) << 10) + second)?
            }
            _ => return None,
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// A string in quotes, with escapes where it needs them.
pub(crate) fn quote(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    put_quoted(value, &mut quoted);
    quoted
}

/// Writes the same.
pub(crate) fn put_quoted(value: &str, out: &mut String) {
    out.push('"');
    if !value.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        out.push_str(value);
        out.push('"');
        return;
    }
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\u{20}' => out.push_str(&format!("\\u{:04x}", character as u32)),
            _ => out.push(character),
        }
    }
    out.push('"');
}
