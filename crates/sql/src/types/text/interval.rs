//! Intervals as text, in the style `postgres`.

use super::{invalid, put};
use crate::error::{SqlError, SqlState};
use crate::types::Datum;
use crate::types::calendar::{DAY, HOUR, MINUTE, SECOND};
use crate::types::interval_fields::{Field, Fields};

/// What a unit is counted in.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Months(i64),
    Days(i64),
    Microseconds(i64),
}

/// The unit of a word; plurals are written out where they are common.
fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" => Unit::Microseconds(1),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Unit::Microseconds(1_000),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Microseconds(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Microseconds(MINUTE),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Microseconds(HOUR),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "dec" | "decs" | "decade" | "decades" => Unit::Months(120),
        "c" | "cent" | "century" | "centuries" => Unit::Months(1_200),
        "mil" | "mils" | "millennium" | "millennia" => Unit::Months(12_000),
        _ => return None,
    })
}

/// The unit of a number without one: that of the last field of its type.
fn unit_of(fields: Option<Fields>) -> Unit {
    match fields.map_or(Field::Second, |fields| fields.last) {
        Field::Year => Unit::Months(12),
        Field::Month => Unit::Months(1),
        Field::Day => Unit::Days(1),
        Field::Hour => Unit::Microseconds(HOUR),
        Field::Minute => Unit::Microseconds(MINUTE),
        Field::Second => Unit::Microseconds(SECOND),
    }
}

/// A number as its whole part and the fraction, both with its sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    microseconds: i64,
}

impl Sum {
    /// Adds a number of units. What is left of a month is days of 30 to the month, what is left of a day is time.
    fn add(&mut self, number: Number, unit: Unit) -> Option<()> {
        let Number { whole, fraction } = number;
        match unit {
            Unit::Months(count) => {
                self.months = self.months.checked_add(whole.checked_mul(count)?)?;
                // Years and more only leave months, of which there is a whole number.
                if count == 1 {
                    self.add_days(fraction * 30.0)?;
                } else {
                    let months = fraction * count as f64;
                    self.months = self.months.checked_add(months.round_ties_even() as i64)?;
                }
            }
            Unit::Days(count) => {
                self.days = self.days.checked_add(whole.checked_mul(count)?)?;
                self.add_days(fraction * count as f64)?;
            }
            Unit::Microseconds(count) => {
                self.microseconds = self.microseconds.checked_add(whole.checked_mul(count)?)?;
                self.add_microseconds(fraction * count as f64)?;
            }
        }
        Some(())
    }

    fn add_days(&mut self, days: f64) -> Option<()> {
        self.days = self.days.checked_add(days.trunc() as i64)?;
        self.add_microseconds(days.fract() * DAY as f64)
    }

    /// Adds microseconds, to the nearest one, and a half to that nearer to zero, as PostgreSQL does it.
    fn add_microseconds(&mut self, microseconds: f64) -> Option<()> {
        let rest = microseconds.fract();
        let more = if rest > 0.5 { 1 } else { -i64::from(rest < -0.5) };
        self.microseconds = self.microseconds.checked_add(microseconds.trunc() as i64)?.checked_add(more)?;
        Some(())
    }

    fn negated(self) -> Option<Sum> {
        Some(Sum {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            microseconds: self.microseconds.checked_neg()?,
        })
    }

    fn into_datum(self) -> Option<Datum> {
        Some(Datum::Interval {
            months: i32::try_from(self.months).ok()?,
            days: i32::try_from(self.days).ok()?,
            microseconds: self.microseconds,
        })
    }
}

/// Reads `1 year 2 mons 3 days 04:05:06`, `1 day ago`, `P1Y2M3DT4H5M6S`, `1-2` and their like. The fields of the type, if it has not all,
/// say what a number at the end counts. The error says what is wrong.
pub(crate) fn parse(text: &str, fields: Option<Fields>) -> Result<Datum, SqlError> {
    let lower = text.trim_ascii().to_ascii_lowercase();
    if lower.ends_with("infinity") {
        return Err(SqlError::unsupported("an infinite interval"));
    }
    let sum = match lower.strip_prefix('p') {
        Some(designators) => parse_iso(designators),
        None => parse_words(&lower, fields),
    };
    let sum = sum.ok_or_else(|| invalid(text, "interval"))?;
    sum.and_then(Sum::into_datum).ok_or_else(|| {
        SqlError::new(SqlState(*b"22015"), format!("interval field value out of range: \"{text}\""))
    })
}

/// `Some(None)` for what is too great.
type Parsed = Option<Option<Sum>>;

/// Numbers and letters, a `T` before those of the time.
fn parse_iso(text: &str) -> Parsed {
    let mut sum = Sum::default();
    let mut rest = text;
    let mut time = false;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('t') {
            if time || after.is_empty() {
                return None;
            }
            time = true;
            rest = after;
            continue;
        }
        let end = rest.find(|character: char| character.is_ascii_alphabetic())?;
        // A number has no other sign here than a minus.
        let number = parse_number(&rest[..end]).filter(|_| !rest.starts_with('+'))?;
        let unit = match (&rest[end..=end], time) {
            ("y", false) => Unit::Months(12),
            ("m", false) => Unit::Months(1),
            ("w", false) => Unit::Days(7),
            ("d", false) => Unit::Days(1),
            ("h", true) => Unit::Microseconds(HOUR),
            ("m", true) => Unit::Microseconds(MINUTE),
            ("s", true) => Unit::Microseconds(SECOND),
            _ => return None,
        };
        if sum.add(number, unit).is_none() {
            return Some(None);
        }
        rest = &rest[end + 1..];
    }
    Some(Some(sum))
}

fn parse_words(text: &str, fields: Option<Fields>) -> Parsed {
    let mut sum = Sum::default();
    let mut words = split(text.strip_prefix('@').unwrap_or(text));
    let ago = words.last() == Some(&"ago");
    if ago {
        words.pop();
    }
    if words.is_empty() {
        return None;
    }
    let bare = (!ago).then(|| unit_of(fields));
    let mut seen = Vec::new();
    let mut rest = words.as_slice();
    while let [word, after @ ..] = rest {
        rest = after;
        let added = if word.contains(':') {
            // It is all parts of a day.
            if seen.iter().any(|unit| matches!(unit, Unit::Microseconds(_))) {
                return None;
            }
            seen.extend([1, 1_000, SECOND, MINUTE, HOUR].map(Unit::Microseconds));
            parse_clock(word, fields)?
                .and_then(|clock| sum.microseconds.checked_add(clock))
                .map(|total| sum.microseconds = total)
        } else if let Some((years, months)) = parse_years_and_months(word) {
            if seen.contains(&Unit::Months(1)) {
                return None;
            }
            seen.push(Unit::Months(1));
            sum.add(years, Unit::Months(12)).and_then(|()| sum.add(months, Unit::Months(1)))
        } else {
            let number = parse_number(word)?;
            let unit = unit_behind(&mut rest, bare)?;
            // Each unit once: "1 day 1 day" is rather a mistake than two days.
            if seen.contains(&unit) {
                return None;
            }
            seen.push(unit);
            sum.add(number, unit)
        };
        if added.is_none() {
            return Some(None);
        }
    }
    Some(if ago { sum.negated() } else { Some(sum) })
}

/// The unit of a number from the words behind it, of which its name is taken; `bare` is that of a number at the end.
fn unit_behind(rest: &mut &[&str], bare: Option<Unit>) -> Option<Unit> {
    match **rest {
        [] => bare,
        // A number before a time is days, and so is one before hours.
        [next, ..] if next.contains(':') => Some(Unit::Days(1)),
        [next, ref behind @ ..] if parse_number(next).is_some() => {
            let next = behind.first().map_or(bare, |name| unit(name));
            (next == Some(Unit::Microseconds(HOUR))).then_some(Unit::Days(1))
        }
        [name, ref behind @ ..] => {
            *rest = behind;
            unit(name)
        }
    }
}

/// Words and numbers, which need no blank between them.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in text.split_ascii_whitespace() {
        let mut start = 0;
        let mut letters = part.starts_with(|first: char| first.is_ascii_alphabetic());
        for (at, character) in part.char_indices() {
            if character.is_ascii_alphabetic() != letters {
                words.push(&part[start..at]);
                start = at;
                letters = !letters;
            }
        }
        words.push(&part[start..]);
    }
    words
}

fn parse_number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let is_negative = text.starts_with('-');
    Some(if is_negative { Number { whole: -whole, fraction: -fraction } } else { Number { whole, fraction } })
}

/// Digits after the point as millionths.
pub(super) fn millionths(fraction: &str) -> i64 {
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |digit| i64::from(digit - b'0'));
    if fraction.len() > 6 {
        // Through a float, as PostgreSQL does: which halves are rounded up depends on it.
        let exact: f64 = format!("0.{fraction}").parse().unwrap_or(0.0);
        return (exact * 1e6).round_ties_even() as i64;
    }
    (0..6).fold(0, |sum, at| sum * 10 + digit(at))
}

/// `1-2` for a year and two months, with a sign for both.
fn parse_years_and_months(word: &str) -> Option<(Number, Number)> {
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    let (years, months) = unsigned.split_once('-')?;
    let sign = if word.starts_with('-') { -1 } else { 1 };
    let part = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let number = |whole: i64| Number { whole: sign * whole, fraction: 0.0 };
    Some((number(part(years)?), number(part(months).filter(|months| *months < 12)?)))
}

/// Hours, minutes and seconds, or minutes and seconds with a fraction or where they are all there is, with a sign for all. `Some(None)`
/// for what is too great.
fn parse_clock(word: &str, fields: Option<Fields>) -> Option<Option<i64>> {
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    let parts: Vec<&str> = unsigned.split(':').collect();
    let whole = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let seconds = |text: &str| {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.bytes().all(|byte| byte.is_ascii_digit()).then(|| millionths(fraction))?;
        Some((whole(seconds)?, fraction))
    };
    let is_short =
        fields.is_some_and(|fields| fields == Fields { first: Field::Minute, last: Field::Second });
    let (hours, minutes, (seconds, fraction)) = match parts[..] {
        [minutes, rest] if rest.contains('.') || is_short => (0, whole(minutes)?, seconds(rest)?),
        [hours, minutes] => (whole(hours)?, whole(minutes)?, (0, 0)),
        [hours, minutes, rest] => (whole(hours)?, whole(minutes)?, seconds(rest)?),
        _ => return None,
    };
    if minutes > 59 || seconds > 60 {
        return Some(None);
    }
    let rest = minutes * MINUTE + seconds * SECOND + fraction;
    let total = hours.checked_mul(HOUR).and_then(|hours| hours.checked_add(rest));
    Some(total.map(|total| if word.starts_with('-') { -total } else { total }))
}

/// Appends `P1Y2M3DT4H5M6.7S`: each part that is not zero has its sign.
pub fn format_iso(months: i32, days: i32, microseconds: i64, out: &mut Vec<u8>) {
    if (months, days, microseconds) == (0, 0, 0) {
        out.extend_from_slice(b"PT0S");
        return;
    }
    out.push(b'P');
    let days = [(i64::from(months / 12), 'Y'), (i64::from(months % 12), 'M'), (i64::from(days), 'D')];
    for (value, unit) in days.into_iter().filter(|(value, _)| *value != 0) {
        put(out, format_args!("{value}{unit}"));
    }
    if microseconds == 0 {
        return;
    }
    out.push(b'T');
    for (value, unit) in [(microseconds / HOUR, 'H'), (microseconds % HOUR / MINUTE, 'M')] {
        if value != 0 {
            put(out, format_args!("{value}{unit}"));
        }
    }
    let rest = microseconds % MINUTE;
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        let (seconds, fraction) = (rest.abs() / SECOND, rest.abs() % SECOND);
        let text = format!("{sign}{seconds}.{fraction:06}");
        put(out, format_args!("{}S", text.trim_end_matches('0').trim_end_matches('.')));
    }
}

/// Appends `1 year 2 mons 3 days 04:05:06`. A sign is printed where it differs from that of what stands before.
pub(super) fn format(months: i32, days: i32, microseconds: i64, out: &mut Vec<u8>) {
    let mut first = true;
    let mut before_negative = false;
    for (value, name) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if value == 0 {
            continue;
        }
        let blank = if first { "" } else { " " };
        let sign = if before_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        put(out, format_args!("{blank}{sign}{value} {name}{plural}"));
        before_negative = value < 0;
        first = false;
    }
    if microseconds == 0 && !first {
        return;
    }
    let blank = if first { "" } else { " " };
    let sign = match (microseconds < 0, before_negative) {
        (true, _) => "-",
        (false, true) => "+",
        (false, false) => "",
    };
    put(out, format_args!("{blank}{sign}"));
    super::date_time::put_clock(microseconds.unsigned_abs(), out);
}
