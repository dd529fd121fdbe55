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

/// Bytes of a value of JSON that was read, with its key and the room that is made for more of them.
const JSON_VALUE_BYTES: usize = 112;

/// Of shorter texts nobody asks how much memory they take for a while.
const SHORT_BYTES: usize = 1 << 20;

/// The work of reading digits is their square divided by this; of so many it is next to nothing.
const DIGITS_READ: u64 = 8_192;
const DIGITS_LONG: usize = 1_000;

/// The work of dividing one `numeric` by another, and of a power with a fraction besides that of its digits.
const DIVISION: u64 = 30;
const STEPS_OF_FRACTION: f64 = 3_000.0;

/// Longest text that is made.
const LENGTH_MAX: u64 = 1 << 30;

/// More states than a regular expression may have.
const STATES_MAX: u64 = 1 << 15;

/// How the work of a function grows with what it is given.
#[derive(Clone, Copy)]
enum Growth {
    /// With the bytes.
    Bytes,
    /// With the bytes, which are written in another form, or digested.
    Written,
    /// With the bytes, each of which is much: it is looked up.
    ManyPerByte,
    /// With the bytes, which are parsed as JSON.
    Parsing,
    /// With the digits of a text, which is read as a number.
    Digits,
    /// With the length that is asked for.
    Padding,
    /// With the bytes of the second argument, which is a pattern: each of its fields is looked up and written, with the digits of a number.
    Pattern,
    /// With the characters, each of which is looked up.
    Characters,
    /// With the bytes of the first argument for each of those of the second.
    Product,
    /// With the elements of the first array for each of those of the second.
    Elements,
    /// With the elements of an array, each of which is compared with another value.
    Among,
    /// A regular expression is looked for once.
    Search,
    /// It is looked for again and again: each time as far as it may [reach](Reach).
    Searches,
    /// With the digits of the result.
    Power,
    /// With the digits of the result.
    Factorial,
}

impl Growth {
    fn of(name: &str) -> Growth {
        match name.strip_prefix("set of ").unwrap_or(name) {
            "array_position" | "array_positions" | "array_remove" | "array_replace" => Growth::Among,
            "arraycontains" | "arraycontained" | "arrayoverlap" => Growth::Elements,
            "jsonb_contains" | "jsonb_contained" | "jsonb_exists_any" | "jsonb_exists_all"
            | "jsonb_delete" | "jsonb_delete_path" | "like_escape" => Growth::Product,
            "regexp_like" | "regexp_match" | "regexp_substr" | "substring" => Growth::Search,
            name if name.starts_with("regexp_") => Growth::Searches,
            "pow" | "power" => Growth::Power,
            "lpad" | "rpad" | "repeat" => Growth::Padding,
            "pg_size_bytes" => Growth::Digits,
            "factorial" => Growth::Factorial,
            "to_char" | "to_number" => Growth::Pattern,
            "lower" | "upper" | "initcap" | "casefold" => Growth::Characters,
            "format" | "to_date" | "to_timestamp" | "timezone" | "date_trunc" | "string_to_array"
            | "translate" | "similar_to_escape" | "pg_timezone_names" | "generate_series" => {
                Growth::ManyPerByte
            }
            "encode" | "decode" | "md5" | "btrim" | "ltrim" | "rtrim" | "trim" | "replace" | "split_part"
            | "concat" | "concat_ws" | "quote_ident" | "quote_literal" | "quote_nullable" | "reverse"
            | "array_to_string" | "overlay" => Growth::Written,
            name if name.starts_with("sha") => Growth::Written,
            "row_to_json" => Growth::Bytes,
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
pub fn work_of_call(function: FunctionId, arguments: &[Datum]) -> u64 {
    let growth = growth_of(function);
    let lengths = arguments.iter().map(length);
    let (first, second) = (lengths.clone().next().unwrap_or(0), lengths.clone().nth(1).unwrap_or(0));
    let bytes: u64 = lengths.sum();
    let count = arguments.len() as u64;
    match growth {
        Growth::Bytes => 4 + 4 * count + bytes / 16 + 4 * arguments.iter().map(work_of_digits).sum::<u64>(),
        Growth::Written => 20 + 4 * count + bytes / 4 + 4 * arguments.iter().map(work_of_digits).sum::<u64>(),
        Growth::ManyPerByte => {
            120 + 4 * count + bytes + 4 * arguments.iter().map(work_of_digits).sum::<u64>()
        }
        Growth::Digits => 20 + bytes + bytes.saturating_mul(bytes) / DIGITS_READ,
        Growth::Padding => {
            let asked = arguments.get(1).map_or(0, |asked| match asked {
                Datum::Int(asked) => u64::try_from(*asked).unwrap_or(0),
                _ => 0,
            });
            4 + bytes / 16 + asked.min(LENGTH_MAX) / 64
        }
        Growth::Pattern => 120 + bytes + 40 * second + first.saturating_mul(second) / 64,
        Growth::Characters => 4 + bytes / 2,
        Growth::Parsing => 40 + 4 * count + arguments.iter().map(work_of_parsing).sum::<u64>(),
        Growth::Product => {
            20 + arguments.iter().map(work_of_parsing).sum::<u64>() + first.saturating_mul(second) / 64
        }
        Growth::Elements => {
            let (left, right) = (elements(arguments, 0), elements(arguments, 1));
            let pairs = left.saturating_mul(right) / 4;
            let compared = first.saturating_mul(right).min(second.saturating_mul(left));
            let digits = |at: usize, others: u64| {
                arguments.get(at).map_or(0, work_of_digits).saturating_mul(others.max(1))
            };
            20 + pairs + compared / 512 + digits(0, right).saturating_add(digits(1, left))
        }
        Growth::Among => {
            let digits = arguments.iter().skip(1).map(work_of_digits).sum::<u64>();
            4 + bytes / 16 + elements(arguments, 0).saturating_mul(4 + digits)
        }
        Growth::Search => 20 + work_of_groups(first, arguments.get(1)),
        Growth::Searches => {
            let far = match arguments {
                [Datum::Text(text), Datum::Text(pattern), ..] => work_of_reaching(text, reach_of(pattern)),
                _ => 0,
            };
            20 + bytes + far + work_of_groups(first, arguments.get(1))
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
pub fn work_of_operator(operator: BinaryOperator, left: &Datum, right: &Datum) -> u64 {
    let bytes = length(left) + length(right);
    if operator.is_regular() {
        return 4 + work_of_search(length(left), Some(right));
    }
    match (left, right) {
        (left, right) if operator == BinaryOperator::Power => work_of_power(left, right),
        (Datum::Text(text), Datum::Text(pattern)) if operator.is_match() => {
            4 + bytes / 16 + (text.len() as u64).saturating_mul(pattern.len() as u64) / 64
        }
        (Datum::Numeric(_), _) if matches!(operator, BinaryOperator::Divide | BinaryOperator::Modulo) => {
            DIVISION + work_of_digits(left) + work_of_digits(right)
        }
        _ => 1 + bytes / 16 + work_of_digits(left) + work_of_digits(right),
    }
}

/// The work of looking for a regular expression in a text of so many bytes.
fn work_of_search(bytes: u64, pattern: Option<&Datum>) -> u64 {
    let Some(Datum::Text(pattern)) = pattern else { return 0 };
    bytes / 2 + bytes.saturating_mul(states_of(pattern, false)) / 64
}

/// The same where it matters which parts of the text its groups are: that is found out state by state.
fn work_of_groups(bytes: u64, pattern: Option<&Datum>) -> u64 {
    let Some(Datum::Text(text)) = pattern else { return 0 };
    let groups = text.bytes().filter(|byte| *byte == b'(').count() as u64;
    let each = states_of(text, false).saturating_mul(groups) / 16;
    work_of_search(bytes, pattern) + bytes.saturating_mul(each)
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

/// What something that repeats without end may go over.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// It does not repeat.
    #[default]
    Nothing,
    /// Blanks, or anything but blanks.
    Run,
    /// Anything but the end of a line.
    Line,
    /// Anything.
    All,
}

/// What is known of a part of a regular expression, in brackets or the whole.
#[derive(Clone, Copy, Default)]
struct Part {
    /// How far what repeats goes, after which nothing has come so far.
    open: Reach,
    /// How far what repeats goes, after which something comes.
    goes_on: Reach,
    /// It is one of several ways.
    has_ways: bool,
}

impl Part {
    /// Something comes.
    fn follow(&mut self) {
        (self.goes_on, self.open) = (self.goes_on.max(self.open), Reach::Nothing);
    }
}

/// How far looking for a regular expression may go on behind what is found then, each time: where there are several ways, and in one of them
/// something comes after what repeats without end, so that it may not come and a shorter way be the one.
fn reach_of(pattern: &str) -> Reach {
    let (mut around, mut part, mut last, mut far) =
        (Vec::new(), Part::default(), Reach::Nothing, Reach::Nothing);
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '|' => part = Part { open: Reach::Nothing, has_ways: true, ..part },
            '(' => {
                part.follow();
                around.push(std::mem::take(&mut part));
            }
            ')' => {
                let is_optional = rest.as_str().starts_with(['?', '*', '+', '{']);
                if part.has_ways || is_optional {
                    far = far.max(part.goes_on);
                }
                let inner = part;
                part = around.pop().unwrap_or_default();
                (part.open, part.goes_on) = (inner.open, part.goes_on.max(inner.goes_on));
                // What is in it may be anything.
                last = Reach::All;
            }
            '*' | '+' => part.open = part.open.max(last),
            '{' => {
                until(&mut rest, '}');
                part.open = part.open.max(last);
            }
            // Of a group, it was seen to before.
            '?' => {}
            '^' | '$' => part.goes_on = part.goes_on.max(part.open),
            other => {
                let text = rest.as_str();
                states_of_one(other, &mut rest, false);
                last = match other {
                    '.' => Reach::Line,
                    '\\' if text.starts_with(['D', 'S', 'W', 'p', 'P']) => Reach::All,
                    '[' if text.starts_with('^') => Reach::All,
                    // A class of blanks and others goes over both.
                    '[' if text[..text.len() - rest.as_str().len()].contains([' ', '\\', '[']) => Reach::All,
                    _ => Reach::Run,
                };
                part.follow();
            }
        }
    }
    if part.has_ways { far.max(part.goes_on) } else { far }
}

/// The work of going so far at each character of a text.
fn work_of_reaching(text: &str, reach: Reach) -> u64 {
    let longest = |is_end: fn(&(u8, u8)) -> bool| {
        let pairs = text.bytes().zip(text.bytes().skip(1));
        let (mut longest, mut run) = (1_u64, 1_u64);
        for pair in pairs {
            run = if is_end(&pair) { 1 } else { run + 1 };
            longest = longest.max(run);
        }
        longest
    };
    let run = match reach {
        Reach::Nothing => return 0,
        Reach::Run => longest(|(one, other)| one.is_ascii_whitespace() != other.is_ascii_whitespace()),
        Reach::Line => longest(|(one, _)| *one == b'\n'),
        Reach::All => text.len() as u64,
    };
    (text.len() as u64).saturating_mul(run) / 64
}

/// The work of a power: that of a numeric may have many digits, and a fraction in the exponent takes a step for about each.
fn work_of_power(base: &Datum, exponent: &Datum) -> u64 {
    let (Datum::Numeric(base), Datum::Numeric(exponent)) = (base, exponent) else { return 4 };
    if base.is_zero() || base.is_nan() || exponent.is_nan() {
        return 4;
    }
    // As many digits as either has after the point take part, and those of the result.
    let after_point = f64::from(base.scale().max(exponent.scale()));
    let magnitude = match base.to_f64().abs() {
        0.0 => -f64::from(base.scale()),
        value if value.is_infinite() => base.large_bytes() as f64 * 2.41,
        value => libm::log10(value),
    };
    let exponent = exponent.to_f64();
    let digits = (exponent * magnitude).abs().max(after_point);
    let steps = if exponent.fract() == 0.0 { 4.0 } else { 50.0 + digits };
    let work = steps * (4.0 + work_of_digits_made(digits) as f64);
    // Each step is a division of a number of some digits at least.
    let work = if exponent.fract() == 0.0 { work } else { work + STEPS_OF_FRACTION };
    // What is no number is small.
    work as u64
}

/// The work of making a number of so many digits.
fn work_of_digits_made(digits: f64) -> u64 {
    let bytes = digits * 0.42;
    (4.0 + bytes * bytes / 256.0) as u64
}

/// The work of calculating with a number that is large: digits are multiplied with digits, be it only to find how many there are.
#[inline]
pub(crate) fn work_of_digits(value: &Datum) -> u64 {
    match value {
        Datum::Numeric(number) => work_of_number(number),
        Datum::Array(values) => work_of_elements(values),
        _ => 0,
    }
}

fn work_of_elements(values: &[Datum]) -> u64 {
    values.iter().map(work_of_digits).sum()
}

/// The same of a number.
#[inline]
pub(crate) fn work_of_number(number: &Numeric) -> u64 {
    let bytes = number.large_bytes() as u64;
    bytes.saturating_mul(bytes) / 1024
}

/// The work of a cast to a type: what is parsed, or written as a text.
pub fn work_of_cast(value: &Datum, to: SqlType) -> u64 {
    let bytes = length(value);
    match to.base {
        BaseType::Json | BaseType::Jsonb => 40 + work_of_parsing(value),
        BaseType::Numeric => 4 + bytes + bytes.saturating_mul(bytes) / 1024 + work_of_long_numbers(value),
        // JSON is read as a number first.
        _ if to.is_numeric() => {
            10 + bytes / 2 + bytes.saturating_mul(bytes) / DIGITS_READ + 4 * work_of_digits(value)
        }
        _ => 10 + bytes / 2 + 4 * work_of_digits(value),
    }
}

/// Bytes of memory that a function needs while it runs, besides its arguments and its result, if that is much.
pub(crate) fn memory_of_call(function: FunctionId, arguments: &[Datum]) -> usize {
    match growth_of(function) {
        Growth::Parsing | Growth::Product => arguments.iter().map(memory_of_parsing).sum(),
        _ => 0,
    }
}

/// The same of a cast.
pub(crate) fn memory_of_cast(value: &Datum, to: SqlType) -> usize {
    match to.base {
        BaseType::Json | BaseType::Jsonb => memory_of_parsing(value),
        _ => 0,
    }
}

/// Bytes that the values of a long text of JSON take while it is read.
fn memory_of_parsing(value: &Datum) -> usize {
    match value {
        Datum::Text(text) if text.len() > SHORT_BYTES => {
            let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
            2 * text.len() + values * JSON_VALUE_BYTES
        }
        _ => 0,
    }
}

/// The work of parsing a text of JSON, or of an array of them.
fn work_of_parsing(value: &Datum) -> u64 {
    length(value) / 2 + work_of_long_numbers(value) + 4 * work_of_digits(value)
}

/// The work of reading the numbers of a text that are long, and of writing out those that have exponents.
fn work_of_long_numbers(value: &Datum) -> u64 {
    let Datum::Text(text) = value else { return 0 };
    let bytes = text.as_bytes();
    let mut work = 0_u64;
    if bytes.len() > DIGITS_LONG {
        for run in bytes.split(|byte| !byte.is_ascii_digit()).filter(|run| run.len() > DIGITS_LONG) {
            let digits = run.len() as u64;
            work = work.saturating_add(digits.saturating_mul(digits) / DIGITS_READ);
        }
    }
    for (place, _) in text.match_indices(['e', 'E']) {
        if place == 0 || !matches!(bytes[place - 1], b'0'..=b'9' | b'.') {
            continue;
        }
        let digits = bytes[place + 1..].iter().skip_while(|byte| matches!(byte, b'+' | b'-'));
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).take(6);
        let exponent = digits.fold(0, |sum: u64, digit| 10 * sum + u64::from(digit - b'0'));
        work = work.saturating_add(exponent.saturating_mul(exponent) / 16_384 + exponent / 16);
    }
    work
}

fn elements(arguments: &[Datum], at: usize) -> u64 {
    match arguments.get(at) {
        Some(Datum::Array(values)) => values.len() as u64,
        _ => 0,
    }
}

fn length_of_elements(values: &[Datum]) -> u64 {
    values.iter().map(|value| 16 + length(value)).sum()
}

/// Bytes of a value that are not in a row itself, those of arrays with their elements.
#[inline]
pub fn length(value: &Datum) -> u64 {
    match value {
        Datum::Text(text) => text.len() as u64,
        Datum::Bytes(bytes) => bytes.len() as u64,
        Datum::Array(values) => length_of_elements(values),
        Datum::Numeric(number) => number.large_bytes() as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_regular_expression_reaches() {
        let reaches = [
            (r"https?://[a-z]+", Reach::Nothing),
            (r"^\s+|\s+$", Reach::Run),
            (r"\d+(\.\d+)?|\w+", Reach::Run),
            (r"(\w+)=(\w+)?", Reach::Nothing),
            (r"[a-z]+(-[a-z]+)*|\d+", Reach::Run),
            (r"a+b|a", Reach::Run),
            (r"(a+b)?c", Reach::Run),
            (r"//.*\n|x", Reach::Line),
            (r"[^;]+;|x", Reach::All),
            (r"(?:a|b)*c|a", Reach::All),
            (r"[\w ]+x|a", Reach::All),
        ];
        for (pattern, reach) in reaches {
            assert!(reach_of(pattern) == reach, "{pattern}");
        }
        let text = "ab cd   efg\n";
        assert_eq!(work_of_reaching(&text.repeat(64), Reach::Run), 12 * 3);
        assert_eq!(work_of_reaching(&text.repeat(64), Reach::All), 12 * 12 * 64);
    }
}
