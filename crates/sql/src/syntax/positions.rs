//! Where in a statement something is.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::{Location, Span, TokenWithSpan};

use crate::error::SqlError;

/// The line of what a client has sent: its column is a place in the whole text. Texts that are kept have lines of their own.
const SENT: u64 = u64::MAX;

/// Makes the columns of all spans places in the whole text, in characters from 1 on, so that what the parser makes of them needs no text to
/// tell its place.
pub(super) fn count_from_first(text: &str, tokens: &mut [TokenWithSpan]) {
    let mut before = vec![0];
    for line in text.split_inclusive('\n') {
        let last = before.last().copied().unwrap_or(0);
        before.push(last + line.chars().count() as u64);
    }
    let placed = |at: Location| {
        let line = usize::try_from(at.line).unwrap_or(usize::MAX).saturating_sub(1);
        let column = before.get(line).map_or(0, |before| before + at.column);
        Location { line: SENT, column }
    };
    for token in tokens {
        token.span = Span { start: placed(token.span.start), end: placed(token.span.end) };
    }
}

/// Where the parser has stopped, in characters from 1 on, by its message; and the message without that.
pub(super) fn stopped(message: &str) -> (&str, Option<u32>) {
    let Some((before, place)) = message.rsplit_once(" at Line: ") else { return (message, None) };
    let column =
        place.strip_prefix(&format!("{SENT}, Column: ")).and_then(|column| column.trim().parse().ok());
    (before, column.filter(|column| *column > 0))
}

/// An error with the place of a name in what a client has sent, unless it has one.
pub(crate) fn at(error: SqlError, span: Span) -> SqlError {
    let column =
        u32::try_from(span.start.column).ok().filter(|column| *column > 0 && span.start.line == SENT);
    SqlError { position: error.position.or(column), ..error }
}

/// The same for a name with several parts.
pub(crate) fn at_name(error: SqlError, name: &ObjectName) -> SqlError {
    let first = name.0.first().and_then(|part| part.as_ident());
    at(error, first.map_or_else(Span::empty, |ident: &Ident| ident.span))
}
