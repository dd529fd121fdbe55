//! How much work calls are, before they are made: where all others wait for a transaction, it may do so much and no more, and nobody can
//! interrupt a call.

use std::sync::OnceLock;

use super::{FunctionId, entry_of};
use crate::types::operators::BinaryOperator;
use crate::types::{BaseType, Datum, SqlType};

/// Work of reading a pattern: what each has, what each state of its automaton adds, and what a class adds, which is many states.
const PATTERN: u64 = 1_000;
const PATTERN_BYTE: u64 = 40;
const PATTERN_CLASS: u64 = 10_000;

/// More states than a regular expression may have.
const STATES_MAX: u64 = 1 << 15;

/// How the work of a function grows with what it is given.
#[derive(Clone, Copy)]
enum Growth {
    /// With the bytes.
    Bytes,
    /// With the bytes, each of which is much: it is digested, looked up, or written in another form.
    ManyPerByte,
    /// With the bytes, which are parsed, and written again.
    Parsing,
    /// With the bytes of the first argument for each of those of the second.
    Product,
    /// With the elements of the first array for each of those of the second.
    Elements,
    /// A regular expression is looked for once.
    Search,
    /// It is looked for again and again: each time as far as the end of the text, if it has repetitions.
    Searches,
}

impl Growth {
    fn of(name: &str) -> Growth {
        match name {
            "arraycontains" | "arraycontained" | "arrayoverlap" => Growth::Elements,
            "jsonb_contains" | "jsonb_contained" | "jsonb_exists_any" | "jsonb_exists_all"
            | "jsonb_delete" | "jsonb_delete_path" | "like_escape" | "similar_to" => Growth::Product,
            "regexp_like" | "regexp_substr" => Growth::Search,
            _ if name.starts_with("regexp_") => Growth::Searches,
            "format" | "to_char" | "to_date" | "to_number" | "to_timestamp" | "timezone" | "date_trunc"
            | "string_to_array" | "string_to_table" | "encode" | "decode" | "md5" | "normalize"
            | "translate" | "btrim" | "ltrim" | "rtrim" | "trim" => Growth::ManyPerByte,
            _ if name.starts_with("sha") => Growth::ManyPerByte,
            _ if name.contains("json") => Growth::Parsing,
            _ => Growth::Bytes,
        }
    }
}

/// The work of a function with these arguments. `is_fixed` says that they are no other ones for the next row, but for the first.
pub(crate) fn work_of_call(function: FunctionId, arguments: &[Datum], is_fixed: bool) -> u64 {
    static GROWTHS: OnceLock<Vec<Growth>> = OnceLock::new();
    let growths = GROWTHS.get_or_init(|| {
        (0..).map_while(|id| entry_of(FunctionId(id))).map(|entry| Growth::of(entry.name)).collect()
    });
    let growth = growths.get(usize::from(function.0)).copied().unwrap_or(Growth::ManyPerByte);
    let lengths = arguments.iter().map(length);
    let (first, second) = (lengths.clone().next().unwrap_or(0), lengths.clone().nth(1).unwrap_or(0));
    let bytes: u64 = lengths.sum();
    let count = arguments.len() as u64;
    match growth {
        Growth::Bytes => 4 + 4 * count + bytes / 16 + 4 * arguments.iter().map(work_of_digits).sum::<u64>(),
        Growth::ManyPerByte => 60 + 4 * count + bytes,
        Growth::Parsing => 60 + 4 * count + 2 * bytes,
        Growth::Product => 20 + 2 * bytes + first.saturating_mul(second) / 64,
        Growth::Elements => 20 + elements(arguments, 0).saturating_mul(elements(arguments, 1)) / 4,
        Growth::Search => 20 + work_of_search(first, arguments.get(1), is_fixed),
        Growth::Searches => {
            let far = if repeats(arguments.get(1)) { first.saturating_mul(first) / 64 } else { 0 };
            20 + bytes + far + work_of_search(first, arguments.get(1), is_fixed)
        }
    }
}

/// The work of an operator between these values. `is_fixed` says that the right one is no other for the next row.
pub(crate) fn work_of_operator(operator: BinaryOperator, left: &Datum, right: &Datum, is_fixed: bool) -> u64 {
    let bytes = length(left) + length(right);
    if operator.is_regular() {
        return 4 + work_of_search(length(left), Some(right), is_fixed);
    }
    match (left, right) {
        (Datum::Text(text), Datum::Text(pattern)) if operator.is_match() => {
            4 + bytes / 16 + (text.len() as u64).saturating_mul(pattern.len() as u64) / 64
        }
        _ => 1 + bytes / 16 + work_of_digits(left) + work_of_digits(right),
    }
}

/// The work of looking for a regular expression in a text of so many bytes, and of reading it, which is done once if it stays the same.
fn work_of_search(bytes: u64, pattern: Option<&Datum>, is_fixed: bool) -> u64 {
    let Some(Datum::Text(pattern)) = pattern else { return 0 };
    let search = bytes / 2 + bytes.saturating_mul(states_of(pattern)) / 64;
    if is_fixed {
        return search;
    }
    let classes = pattern.bytes().filter(|byte| b"\\[".contains(byte)).count() as u64;
    let copies = states_of(pattern) / (pattern.len() as u64).max(1);
    search + PATTERN + PATTERN_BYTE * states_of(pattern) + PATTERN_CLASS * classes * copies
}

/// About how many states the automaton of a regular expression has, in each of which it may be at a byte: a count makes copies of what is
/// before it.
fn states_of(pattern: &str) -> u64 {
    let counts = pattern.split('{').skip(1).filter_map(|rest| {
        let end = rest.find('}')?;
        rest[..end].split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max()
    });
    counts.fold(pattern.len() as u64, |states, count| states.saturating_mul(count.max(1))).min(STATES_MAX)
}

/// The work of calculating with a number that is large: digits are multiplied with digits, be it only to find how many there are.
pub(crate) fn work_of_digits(value: &Datum) -> u64 {
    match value {
        Datum::Numeric(number) => {
            (number.large_bytes() as u64).saturating_mul(number.large_bytes() as u64) / 1024
        }
        _ => 0,
    }
}

/// The work of a cast to a type: what is parsed, or written as a text.
pub(crate) fn work_of_cast(value: &Datum, to: SqlType) -> u64 {
    let bytes = length(value);
    match to.base {
        BaseType::Json | BaseType::Jsonb => 60 + 2 * bytes,
        BaseType::Numeric => 4 + bytes + bytes.saturating_mul(bytes) / 1024,
        _ => 10 + bytes / 2 + 4 * work_of_digits(value),
    }
}

fn repeats(pattern: Option<&Datum>) -> bool {
    matches!(pattern, Some(Datum::Text(pattern)) if pattern.contains(['*', '+', '{']))
}

fn elements(arguments: &[Datum], at: usize) -> u64 {
    match arguments.get(at) {
        Some(Datum::Array(values)) => values.len() as u64,
        _ => 0,
    }
}

/// Bytes of a value that are not in a row itself, those of arrays with their elements.
pub(crate) fn length(value: &Datum) -> u64 {
    match value {
        Datum::Text(text) => text.len() as u64,
        Datum::Bytes(bytes) => bytes.len() as u64,
        Datum::Array(values) => values.iter().map(|value| 16 + length(value)).sum(),
        Datum::Numeric(number) => number.large_bytes() as u64,
        _ => 0,
    }
}
