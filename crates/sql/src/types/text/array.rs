//! Arrays as text: `{1,2,NULL,"a b"}`. One dimension that begins at 1 is all that there is.

use super::{parse as parse_value, to_string};
use crate::error::{SqlError, SqlState};
use crate::types::functions::check_length;
use crate::types::{Datum, SqlType, Zone};

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\""))
        .with_detail(detail)
}

/// The array of elements of that type.
pub(super) fn parse(text: &str, element: SqlType, zone: Zone) -> Result<Datum, SqlError> {
    let inner = text.trim_ascii();
    if inner.starts_with('[') {
        return Err(SqlError::unsupported("an array with bounds"));
    }
    let Some(inner) = inner.strip_prefix('{') else {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    };
    let mut reader = Reader { whole: text, rest: inner };
    let mut values = Vec::new();
    reader.skip_blanks();
    if !reader.accept('}') {
        loop {
            check_length((values.len() + 1) * size_of::<Datum>())?;
            values.push(match reader.element()? {
                Some(value) => parse_value(&value, element, zone)?,
                None => Datum::Null,
            });
            if reader.accept('}') {
                break;
            }
            if !reader.accept(',') {
                return Err(malformed(text, "Unexpected end of input."));
            }
        }
    }
    if !reader.rest.is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    Ok(Datum::Array(values))
}

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn accept(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The text of the next element, or none for `NULL`. What follows is a comma, a brace, or a mistake.
    fn element(&mut self) -> Result<Option<String>, SqlError> {
        self.skip_blanks();
        if self.rest.starts_with('{') {
            return Err(SqlError::unsupported("an array of several dimensions"));
        }
        let quoted = self.accept('"');
        let mut value = String::new();
        // Blanks at the end do not count, unless a backslash stands before them.
        let mut kept = 0;
        let mut escaped = false;
        loop {
            let Some(next) = self.rest.chars().next() else {
                return Err(malformed(self.whole, "Unexpected end of input."));
            };
            match next {
                '"' if quoted => {
                    self.accept('"');
                    self.skip_blanks();
                    if !self.rest.starts_with([',', '}']) {
                        return Err(malformed(self.whole, "Incorrectly quoted array element."));
                    }
                    return Ok(Some(value));
                }
                ',' | '}' if !quoted => break,
                '"' | '{' if !quoted => {
                    return Err(malformed(self.whole, &format!("Unexpected \"{next}\" character.")));
                }
                '\\' => {
                    self.accept('\\');
                    let Some(next) = self.rest.chars().next() else {
                        return Err(malformed(self.whole, "Unexpected end of input."));
                    };
                    value.push(next);
                    self.accept(next);
                    escaped = true;
                    kept = value.len();
                }
                _ => {
                    value.push(next);
                    self.accept(next);
                    if !next.is_ascii_whitespace() {
                        kept = value.len();
                    }
                }
            }
        }
        value.truncate(kept);
        if value.is_empty() && !escaped {
            let next = &self.rest[..1];
            return Err(malformed(self.whole, &format!("Unexpected \"{next}\" character.")));
        }
        Ok((escaped || !value.eq_ignore_ascii_case("null")).then_some(value))
    }
}

/// Appends the array of elements of that type.
pub(super) fn format(values: &[Datum], element: SqlType, zone: Zone, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if value.is_null() {
            out.extend_from_slice(b"NULL");
        } else {
            format_element(&to_string(value, element, zone), out);
        }
    }
    out.push(b'}');
}

fn format_element(text: &str, out: &mut Vec<u8>) {
    let special =
        |byte: u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | 0x0B) || byte.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.bytes().any(special) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}
