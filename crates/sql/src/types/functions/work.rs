//! How much work calls are, before they are made: where all others wait for a transaction, it may do so much and no more, and nobody can
//! interrupt a call. It is the same on every machine, as all that decides what a transaction does.

use std::str::Chars;
use std::sync::OnceLock;

use super::{FunctionId, entry_of};
use crate::types::operators::BinaryOperator;
use crate::types::{BaseType, Datum, Numeric, SqlType};

/// Work of reading a pattern: what each has, and what each state of its automaton adds.
const PATTERN: u64 = 1_000;
const PATTERN_STATE: u64 = 40;

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
    /// With the bytes of the second argument, which is a pattern: each of its fields is looked up and written, with the digits of a number.
    Pattern,
    /// With the characters, each of which is looked up.
    Characters,
    /// With the bytes of the first argument for each of those of the second.
    Product,
    /// With the elements of the first array for each of those of the second.
    Elements,
    /// A regular expression is looked for once.
    Search,
    /// It is looked for again and again: each time as far as the end of the text, if it [looks far](looks_far).
    Searches,
    /// With the digits of the result.
    Power,
    /// With the digits of the result.
    Factorial,
}

impl Growth {
    fn of(name: &str) -> Growth {
        match name.strip_prefix("set of ").unwrap_or(name) {
            "arraycontains" | "arraycontained" | "arrayoverlap" => Growth::Elements,
            "jsonb_contains" | "jsonb_contained" | "jsonb_exists_any" | "jsonb_exists_all"
            | "jsonb_delete" | "jsonb_delete_path" | "like_escape" => Growth::Product,
            "regexp_like" | "regexp_match" | "regexp_substr" | "substring" => Growth::Search,
            name if name.starts_with("regexp_") => Growth::Searches,
            "pow" | "power" => Growth::Power,
            "factorial" => Growth::Factorial,
            "to_char" => Growth::Pattern,
            "lower" | "upper" | "initcap" | "casefold" => Growth::Characters,
            "format" | "to_date" | "to_number" | "to_timestamp" | "timezone" | "date_trunc"
            | "string_to_array" | "encode" | "decode" | "md5" | "translate" | "btrim" | "ltrim" | "rtrim"
            | "trim" => Growth::ManyPerByte,
            name if name.starts_with("sha") => Growth::ManyPerByte,
            name if name.contains("json") => Growth::Parsing,
            _ => Growth::Bytes,
        }
    }
}

fn growth_of(function: FunctionId) -> Growth {
    static GROWTHS: OnceLock<Vec<Growth>> = OnceLock::new();
    let growths = GROWTHS.get_or_init(|| {
        (0..).map_while(|id| entry_of(FunctionId(id))).map(|entry| Growth::of(entry.name)).collect()
    });
    growths.get(usize::from(function.0)).copied().unwrap_or(Growth::ManyPerByte)
}

/// Whether a function looks for a regular expression, which it may have to compile.
pub(crate) fn is_search(function: FunctionId) -> bool {
    matches!(growth_of(function), Growth::Search | Growth::Searches)
}

/// The work of a function with these arguments, but for compiling regular expressions.
pub(crate) fn work_of_call(function: FunctionId, arguments: &[Datum]) -> u64 {
    let growth = growth_of(function);
    let lengths = arguments.iter().map(length);
    let (first, second) = (lengths.clone().next().unwrap_or(0), lengths.clone().nth(1).unwrap_or(0));
    let bytes: u64 = lengths.sum();
    let count = arguments.len() as u64;
    match growth {
        Growth::Bytes => 4 + 4 * count + bytes / 16 + 4 * arguments.iter().map(work_of_digits).sum::<u64>(),
        Growth::ManyPerByte => 120 + 4 * count + bytes,
        Growth::Pattern => 120 + bytes + 20 * second + first.saturating_mul(second) / 64,
        Growth::Characters => 4 + bytes / 2,
        Growth::Parsing => 60 + 4 * count + 3 * bytes,
        Growth::Product => 20 + 2 * bytes + first.saturating_mul(second) / 64,
        Growth::Elements => 20 + elements(arguments, 0).saturating_mul(elements(arguments, 1)) / 4,
        Growth::Search => 20 + work_of_search(first, arguments.get(1)),
        Growth::Searches => {
            let far = if looks_far(arguments.get(1)) { first.saturating_mul(first) / 64 } else { 0 };
            20 + bytes + far + work_of_search(first, arguments.get(1))
        }
        Growth::Power => match arguments {
            [base, exponent] => work_of_power(base, exponent),
            _ => 4,
        },
        Growth::Factorial => match arguments {
            [Datum::Int(number)] => {
                let number = *number as f64;
                work_of_digits_made(number * libm::log10(number.max(1.0)))
            }
            _ => 4,
        },
    }
}

/// The work of an operator between these values, but for compiling a regular expression.
pub(crate) fn work_of_operator(operator: BinaryOperator, left: &Datum, right: &Datum) -> u64 {
    let bytes = length(left) + length(right);
    if operator.is_regular() {
        return 4 + work_of_search(length(left), Some(right));
    }
    match (left, right) {
        (left, right) if operator == BinaryOperator::Power => work_of_power(left, right),
        (Datum::Text(text), Datum::Text(pattern)) if operator.is_match() => {
            4 + bytes / 16 + (text.len() as u64).saturating_mul(pattern.len() as u64) / 64
        }
        _ => 1 + bytes / 16 + work_of_digits(left) + work_of_digits(right),
    }
}

/// The work of looking for a regular expression in a text of so many bytes.
fn work_of_search(bytes: u64, pattern: Option<&Datum>) -> u64 {
    let Some(Datum::Text(pattern)) = pattern else { return 0 };
    bytes / 2 + bytes.saturating_mul(states_of(pattern, false)) / 64
}

/// The work of compiling a regular expression.
pub(crate) fn work_of_pattern(pattern: &str) -> u64 {
    PATTERN + PATTERN_STATE * states_of(pattern, true)
}

/// About how many states the automaton of a regular expression has. It is read as if blanks and comments meant nothing, too: it may say so itself,
/// and within a count.
fn states_of(pattern: &str, each: bool) -> u64 {
    let states = states_of_plain(pattern, each);
    if !(pattern.contains('{') && pattern.contains(|one: char| one == '#' || one.is_whitespace())) {
        return states;
    }
    let mut bare = String::with_capacity(pattern.len());
    for line in pattern.split('\n') {
        bare.extend(
            line.split('#').next().into_iter().flat_map(str::chars).filter(|one| !one.is_whitespace()),
        );
    }
    states.max(states_of_plain(&bare, each))
}

/// About how many states the automaton of a regular expression has, in each of which it may be at a character: a count makes copies of what is
/// before it. `each` says that those of a class are counted one by one, of which it is in a few at a time.
fn states_of_plain(pattern: &str, each: bool) -> u64 {
    // The states of what lies around, and at the end of what is looked at; and those of the last part.
    let (mut sums, mut last) = (vec![0_u64], 0_u64);
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        let more = match character {
            '(' => {
                sums.push(0);
                0
            }
            ')' if sums.len() > 1 => {
                last = sums.pop().unwrap_or(0);
                last
            }
            '{' => {
                let counts = until(&mut rest, '}').split(',');
                let most = counts.filter_map(|count| count.trim().parse::<u64>().ok()).max().unwrap_or(1);
                let more = last.saturating_mul(most.saturating_sub(1));
                last = last.saturating_add(more);
                more
            }
            '*' | '+' | '?' | '|' | '^' | '$' => 0,
            other => {
                last = states_of_one(other, &mut rest, each);
                last
            }
        };
        if let Some(sum) = sums.last_mut() {
            *sum = sum.saturating_add(more);
        }
    }
    sums.iter().fold(1, |all: u64, sum| all.saturating_add(*sum)).min(STATES_MAX)
}

/// The states of a part that stands for one character: a class has one for each way in which its bytes can go on.
fn states_of_one(first: char, rest: &mut Chars<'_>, each: bool) -> u64 {
    let states = match first {
        '\\' => match rest.next() {
            Some('w' | 'W') => 800,
            Some('p' | 'P') => {
                if rest.as_str().starts_with('{') {
                    until(rest, '}');
                }
                800
            }
            Some('d' | 'D') => 100,
            Some('s' | 'S') => 20,
            _ => 1,
        },
        '.' => 10,
        '[' => match is_wide(rest) {
            true => 800,
            false => 10,
        },
        _ => 1,
    };
    if each { states } else { 1 }
}

/// Whether a class, of which the rest is taken, may have many characters. Classes can be within each other.
fn is_wide(rest: &mut Chars<'_>) -> bool {
    let (mut depth, mut is_wide, mut is_first) = (1, false, true);
    while let Some(character) = rest.next() {
        match character {
            '^' if is_first => {
                is_wide = true;
                continue;
            }
            // At the beginning it stands for itself.
            ']' if is_first => {}
            ']' if depth == 1 => break,
            ']' => depth -= 1,
            '[' => {
                (depth, is_wide, is_first) = (depth + 1, true, true);
                continue;
            }
            '\\' => {
                is_wide = true;
                rest.next();
            }
            other => is_wide |= !other.is_ascii(),
        }
        is_first = false;
    }
    is_wide
}

/// What comes before a character, which is taken too.
fn until<'t>(rest: &mut Chars<'t>, end: char) -> &'t str {
    let text = rest.as_str();
    let (before, behind) = text.split_once(end).unwrap_or((text, ""));
    *rest = behind.chars();
    before
}

/// Whether looking for a regular expression may go on far behind what is found then, each time: where something that repeats is one of several
/// ways.
fn looks_far(pattern: Option<&Datum>) -> bool {
    let Some(Datum::Text(pattern)) = pattern else { return false };
    let has_ways = pattern.contains(['|', '?']) || [")*", ")+", "){"].iter().any(|way| pattern.contains(way));
    has_ways && pattern.contains(['*', '+', '{'])
}

/// The work of a power: that of a numeric may have many digits, and a fraction in the exponent takes a step for about each.
fn work_of_power(base: &Datum, exponent: &Datum) -> u64 {
    let (Datum::Numeric(base), Datum::Numeric(exponent)) = (base, exponent) else { return 4 };
    let (base, exponent) = (base.to_f64().abs(), exponent.to_f64());
    if base == 0.0 {
        return 4;
    }
    let digits = (exponent * libm::log10(base)).abs();
    let steps = if exponent.fract() == 0.0 { 4.0 } else { 50.0 + digits };
    let work = steps * (4.0 + work_of_digits_made(digits) as f64);
    // What is no number is small.
    work as u64
}

/// The work of making a number of so many digits.
fn work_of_digits_made(digits: f64) -> u64 {
    let bytes = digits * 0.42;
    (4.0 + bytes * bytes / 256.0) as u64
}

/// The work of calculating with a number that is large: digits are multiplied with digits, be it only to find how many there are.
pub(crate) fn work_of_digits(value: &Datum) -> u64 {
    match value {
        Datum::Numeric(number) => work_of_number(number),
        _ => 0,
    }
}

/// The same of a number.
pub(crate) fn work_of_number(number: &Numeric) -> u64 {
    let bytes = number.large_bytes() as u64;
    bytes.saturating_mul(bytes) / 1024
}

/// The work of a cast to a type: what is parsed, or written as a text.
pub(crate) fn work_of_cast(value: &Datum, to: SqlType) -> u64 {
    let bytes = length(value);
    match to.base {
        BaseType::Json | BaseType::Jsonb => 60 + 3 * bytes,
        BaseType::Numeric => 4 + bytes + bytes.saturating_mul(bytes) / 1024,
        _ => 10 + bytes / 2 + 4 * work_of_digits(value),
    }
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
