//! Dates and times as text: what PostgreSQL reads with the date style `ISO, MDY`, and ISO 8601 out.

pub(crate) mod pattern;

use super::{interval::millionths, invalid, put};
use crate::error::{SqlError, SqlState};
use crate::types::calendar::{self, Civil, DAY, HOUR, MINUTE, SECOND};
use crate::types::zone::abbreviation;
use crate::types::{BaseType, Zone};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// The zone that a text names where one is converted to: an abbreviation, a name of the database, or one as POSIX has it.
pub(crate) fn zone(name: &str) -> Result<Zone, SqlError> {
    if let Some(offset) = abbreviation(&name.to_ascii_lowercase()) {
        return Ok(Zone::fixed((offset / SECOND) as i32).unwrap_or_default());
    }
    Zone::named(name).ok_or_else(|| unrecognized(name))
}

/// The zone that a text names where a moment is made of its parts: the same, or a distance to UTC with a sign, east being positive.
pub(crate) fn zone_or_distance(name: &str) -> Result<Zone, SqlError> {
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    if !name.starts_with(['+', '-']) {
        return zone(name);
    }
    match read_offset(name) {
        Ok(offset) => Ok(Zone::fixed((offset / SECOND) as i32).unwrap_or_default()),
        Err(Problem::Displacement) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("numeric time zone \"{name}\" out of range"),
        )),
        Err(_) => Err(unrecognized(name)),
    }
}

fn unrecognized(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
}

/// What a text says. Nothing is taken for today or midnight yet.
#[derive(Default)]
struct Fields {
    date: Option<i64>,
    time: Option<i64>,
    zone: Option<WrittenZone>,
    /// Numbers and the month by name, until they make a date.
    numbers: Vec<String>,
    month: Option<i64>,
    before_christ: bool,
    epoch: bool,
}

/// A zone in a text.
#[derive(Clone, Copy)]
enum WrittenZone {
    /// Microseconds east of UTC.
    Distance(i64),
    /// One whose distance may depend on the date.
    Named(Zone),
}

/// Why a text is no date or time.
enum Problem {
    Syntax,
    Range,
    Displacement,
    Unsupported(&'static str),
    Zone(String),
}

impl Problem {
    fn into_error(self, text: &str, type_name: &str) -> SqlError {
        match self {
            Problem::Syntax => invalid(text, type_name),
            Problem::Range => SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            ),
            Problem::Displacement => {
                SqlError::new(SqlState(*b"22009"), format!("time zone displacement out of range: \"{text}\""))
            }
            Problem::Unsupported(what) => SqlError::unsupported(what),
            Problem::Zone(name) => unrecognized(&name),
        }
    }
}

/// Days since 2000-01-01; a time in the text is checked and dropped.
pub(super) fn parse_date(text: &str) -> Result<i32, SqlError> {
    let fields = read(text).map_err(|problem| problem.into_error(text, "date"))?;
    let days = match fields.date {
        Some(days) => days,
        None if fields.epoch => -calendar::EPOCH_DAYS,
        None => return Err(invalid(text, "date")),
    };
    calendar::check_date(days)
        .map_err(|error| SqlError::new(error.state, format!("date out of range: \"{text}\"")))
}

/// Microseconds since midnight; a date and a zone in the text are dropped.
pub(super) fn parse_time(text: &str) -> Result<i64, SqlError> {
    let fields = read(text).map_err(|problem| problem.into_error(text, "time"))?;
    let needs_date = match fields.zone {
        Some(WrittenZone::Named(zone)) => zone.steady_offset().is_none(),
        _ => false,
    };
    fields.time.filter(|_| !needs_date || fields.date.is_some()).ok_or_else(|| invalid(text, "time"))
}

/// Microseconds since 2000-01-01, in UTC for `timestamptz`; without a zone the text is taken to be in `zone`. For `timestamp` a zone
/// in the text is dropped.
pub(super) fn parse_timestamp(text: &str, base: BaseType, zone: Zone) -> Result<i64, SqlError> {
    let zoned = base == BaseType::TimestampTz;
    let name = if zoned { "timestamp with time zone" } else { "timestamp" };
    let fields = read(text).map_err(|problem| problem.into_error(text, name))?;
    let days = match fields.date {
        Some(days) => days,
        None if fields.epoch => -calendar::EPOCH_DAYS,
        None => return Err(invalid(text, name)),
    };
    let local = days.checked_mul(DAY).and_then(|at| at.checked_add(fields.time.unwrap_or(0)));
    let at = match fields.zone {
        _ if !zoned => local,
        // The epoch is a moment.
        None if fields.epoch => local,
        None => local.and_then(|local| zone.to_moment(local)),
        Some(WrittenZone::Distance(distance)) => local.and_then(|local| local.checked_sub(distance)),
        Some(WrittenZone::Named(zone)) => local.and_then(|local| zone.to_moment(local)),
    };
    calendar::check_timestamp(at)
        .map_err(|error| SqlError::new(error.state, format!("timestamp out of range: \"{text}\"")))
}

fn read(text: &str) -> Result<Fields, Problem> {
    let lower = text.trim_ascii().to_ascii_lowercase();
    let mut fields = Fields::default();
    let mut rest = lower.as_str();
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_whitespace() || first == ',' {
            rest = &rest[1..];
        } else if first.is_ascii_alphabetic() {
            rest = read_word(rest, &mut fields)?;
        } else if matches!(first, '+' | '-') && fields.time.is_some() && fields.zone.is_none() {
            let end = rest[1..].find(|c: char| !matches!(c, '0'..='9' | ':')).map_or(rest.len(), |at| at + 1);
            fields.zone = Some(WrittenZone::Distance(read_offset(&rest[..end])?));
            rest = &rest[end..];
        } else if first.is_ascii_digit() {
            rest = read_number(rest, &mut fields)?;
        } else if matches!(first, '-' | '/' | '.') && !fields.numbers.is_empty()
            || first == '-' && fields.month.is_some()
        {
            rest = &rest[1..];
        } else {
            return Err(Problem::Syntax);
        }
    }
    finish_date(&mut fields)?;
    if fields.time.is_none() && fields.zone.is_some() && !fields.epoch {
        // A zone may follow a date, but nothing is left over to take it from.
        fields.time = Some(0);
    }
    Ok(fields)
}

fn read_word<'a>(rest: &'a str, fields: &mut Fields) -> Result<&'a str, Problem> {
    let end = rest.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    if let Some(end) = end_of_zone(rest, end, fields) {
        let name = &rest[..end];
        let zone = Zone::named(name).ok_or_else(|| Problem::Zone(name.to_owned()))?;
        set_zone(fields, WrittenZone::Named(zone))?;
        return Ok(&rest[end..]);
    }
    let named = |names: &[&str]| {
        names
            .iter()
            .position(|name| word == *name || word == &name[..3] || (*name == "september" && word == "sept"))
    };
    if let Some(month) = named(&MONTHS) {
        if fields.month.replace(month as i64 + 1).is_some() {
            return Err(Problem::Syntax);
        }
    } else if let Some(offset) = abbreviation(word) {
        set_zone(fields, WrittenZone::Distance(offset))?;
    } else if named(&DAYS).is_none() {
        match word {
            "bc" => fields.before_christ = true,
            "ad" | "at" | "on" => {}
            "t" if after.starts_with(|c: char| c.is_ascii_digit()) => {}
            "epoch" => fields.epoch = true,
            "allballs" => fields.time = Some(0),
            "am" | "pm" => {
                let time = fields.time.ok_or(Problem::Syntax)?;
                let hour = time / HOUR;
                if hour > 12 || hour == 0 && word == "pm" {
                    return Err(Problem::Range);
                }
                let shift = if word == "pm" { 12 } else { 0 };
                fields.time = Some(time % HOUR + (hour % 12 + shift) * HOUR);
            }
            "infinity" => return Err(Problem::Unsupported("an infinite date or time")),
            "now" | "today" | "tomorrow" | "yesterday" => {
                return Err(Problem::Unsupported(
                    "a word for the present in a literal (use current_timestamp)",
                ));
            }
            _ => {
                let zone = Zone::named(word).ok_or(Problem::Syntax)?;
                set_zone(fields, WrittenZone::Named(zone))?;
            }
        }
    }
    Ok(after)
}

/// Where the name of a zone ends that has more than letters, if one can stand here: after a date, and with a sign or a slash after the
/// letters, or a digit.
fn end_of_zone(rest: &str, word: usize, fields: &Fields) -> Option<usize> {
    let has_date = fields.numbers.len() + usize::from(fields.month.is_some()) >= 3;
    let follows = rest[word..].chars().next()?;
    let may_begin = matches!(follows, '-' | '/' | '+') || follows.is_ascii_digit() && &rest[..word] != "t";
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '/' | '_' | '.' | ':');
    let end = rest.find(|c: char| !goes_on(c)).unwrap_or(rest.len());
    (has_date && may_begin).then_some(end)
}

fn set_zone(fields: &mut Fields, zone: WrittenZone) -> Result<(), Problem> {
    if fields.zone.replace(zone).is_some() { Err(Problem::Syntax) } else { Ok(()) }
}

fn read_number<'a>(rest: &'a str, fields: &mut Fields) -> Result<&'a str, Problem> {
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let after = &rest[end..];
    if after.starts_with(':') {
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | ':' | '.')).unwrap_or(rest.len());
        set_time(fields, read_clock(&rest[..end])?)?;
        return Ok(&rest[end..]);
    }
    let digits = &rest[..end];
    let has_date = fields.numbers.len() + usize::from(fields.month.is_some()) >= 3;
    if has_date {
        // The time without colons, with or without seconds.
        let (clock, after) = match after.strip_prefix('.') {
            Some(fraction) if digits.len() == 6 => {
                let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
                (format!("{}.{}", spread(digits), &fraction[..end]), &fraction[end..])
            }
            _ => (spread(digits), after),
        };
        if !matches!(digits.len(), 4 | 6) {
            return Err(Problem::Syntax);
        }
        set_time(fields, read_clock(&clock)?)?;
        return Ok(after);
    }
    if digits.len() == 8 && fields.numbers.is_empty() && fields.month.is_none() {
        let (year, month, day) = (&digits[..4], &digits[4..6], &digits[6..]);
        fields.numbers.extend([year, month, day].map(str::to_owned));
    } else {
        fields.numbers.push(digits.to_owned());
    }
    Ok(after)
}

/// With a colon after any two digits.
fn spread(digits: &str) -> String {
    let mut clock = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 2 == 0 {
            clock.push(':');
        }
        clock.push(digit);
    }
    clock
}

fn set_time(fields: &mut Fields, time: i64) -> Result<(), Problem> {
    if fields.time.replace(time).is_some() { Err(Problem::Syntax) } else { Ok(()) }
}

fn read_clock(text: &str) -> Result<i64, Problem> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    let mut parts = clock.split(':').map(|part| part.parse::<i64>().map_err(|_| Problem::Syntax));
    let hours = parts.next().ok_or(Problem::Syntax)??;
    let minutes = parts.next().ok_or(Problem::Syntax)??;
    let seconds = parts.next().transpose()?.unwrap_or(0);
    if parts.next().is_some() {
        return Err(Problem::Syntax);
    }
    if hours > 24 || minutes > 59 || seconds > 60 {
        return Err(Problem::Range);
    }
    let time = hours * HOUR + minutes * MINUTE + seconds * SECOND + millionths(fraction);
    if time > DAY { Err(Problem::Range) } else { Ok(time) }
}

/// `+02`, `+0230`, `+02:30`, `+02:30:15`: microseconds east of UTC.
fn read_offset(text: &str) -> Result<i64, Problem> {
    let digits = &text[1..];
    let clock = match digits.len() {
        _ if digits.contains(':') => digits.to_owned(),
        1 | 2 => format!("{digits}:00"),
        3 => spread(&format!("0{digits}")),
        4 | 6 => spread(digits),
        _ => return Err(Problem::Syntax),
    };
    let offset = read_clock(&clock)?;
    if offset >= 16 * HOUR {
        return Err(Problem::Displacement);
    }
    Ok(if text.starts_with('-') { -offset } else { offset })
}

/// Makes a date of numbers: year, month and day if the first has three digits or more, else month, day and year.
fn finish_date(fields: &mut Fields) -> Result<(), Problem> {
    if fields.numbers.is_empty() && fields.month.is_none() {
        return Ok(());
    }
    let numbers: Vec<&str> = fields.numbers.iter().map(String::as_str).collect();
    let year_first = numbers.first().is_some_and(|first| first.len() > 2);
    let (year, month, day) = match (fields.month, numbers.as_slice()) {
        (Some(month), [year, day]) if year_first => (*year, month, *day),
        (Some(month), [day, year]) => (*year, month, *day),
        (None, [year, month, day]) if year_first => (*year, number(month)?, *day),
        (None, [month, day, year]) => (*year, number(month)?, *day),
        (None, [year, day]) if year_first && day.len() == 3 => {
            let january = Civil { year: number(year)?, month: 1, day: 1 };
            let day = number(day)?;
            if !(1..=365 + i64::from(calendar::days_of_month(january.year, 2) == 29)).contains(&day) {
                return Err(Problem::Range);
            }
            fields.date = Some(calendar::days_of(january) + day - 1);
            return Ok(());
        }
        _ => return Err(Problem::Syntax),
    };
    let day = number(day)?;
    let full_year = number(year)?;
    let year = match full_year {
        _ if fields.before_christ => 1 - full_year,
        0..70 if year.len() <= 2 => full_year + 2000,
        70..100 if year.len() <= 2 => full_year + 1900,
        _ => full_year,
    };
    let valid = (1..=12).contains(&month) && (1..=calendar::days_of_month(year, month)).contains(&day);
    if !valid || full_year == 0 && (fields.before_christ || year == 0) {
        return Err(Problem::Range);
    }
    fields.date = Some(calendar::days_of(Civil { year, month, day }));
    Ok(())
}

fn number(text: &str) -> Result<i64, Problem> {
    if text.len() > 9 {
        return Err(Problem::Range);
    }
    text.parse().map_err(|_| Problem::Syntax)
}

fn put_date(days: i64, out: &mut Vec<u8>) -> bool {
    let Civil { year, month, day } = calendar::civil_of(days);
    let shown = if year > 0 { year } else { 1 - year };
    put(out, format_args!("{shown:04}-{month:02}-{day:02}"));
    year <= 0
}

/// Appends `2001-02-03`, and ` BC` where it is due.
pub(super) fn format_date(days: i32, out: &mut Vec<u8>) {
    if put_date(i64::from(days), out) {
        out.extend_from_slice(b" BC");
    }
}

/// Appends `04:05:06`, and a fraction without zeros at its end.
pub(super) fn put_clock(microseconds: u64, out: &mut Vec<u8>) {
    let seconds = microseconds / 1_000_000;
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    let fraction = microseconds % 1_000_000;
    if fraction > 0 {
        let digits = format!("{fraction:06}");
        put(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// Appends `04:05:06`.
pub(super) fn format_time(time: i64, out: &mut Vec<u8>) {
    put_clock(time.unsigned_abs(), out);
}

/// Appends `2001-02-03 04:05:06`, in a zone with its distance to UTC: `+02`, `+05:30`, or `-00:44:30`.
pub(super) fn format_timestamp(at: i64, zone: Option<Zone>, out: &mut Vec<u8>) {
    put_timestamp(at, zone, ' ', out);
}

/// The same as `2001-02-03T04:05:06+02:00`, which always has the minutes of the distance.
pub(crate) fn iso_timestamp(at: i64, zone: Option<Zone>) -> String {
    let mut out = Vec::new();
    put_timestamp(at, zone, 'T', &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn put_timestamp(at: i64, zone: Option<Zone>, between: char, out: &mut Vec<u8>) {
    let offset = zone.map(|zone| zone.offset_at(at));
    let local = at + offset.unwrap_or(0);
    let before_christ = put_date(local.div_euclid(DAY), out);
    put(out, format_args!("{between}"));
    put_clock(local.rem_euclid(DAY).unsigned_abs(), out);
    if let Some(offset) = offset {
        put_offset(offset, between == 'T', out);
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

fn put_offset(offset: i64, with_minutes: bool, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let offset = offset.abs();
    put(out, format_args!("{:02}", offset / HOUR));
    let (minutes, seconds) = (offset % HOUR / MINUTE, offset % MINUTE / SECOND);
    if with_minutes || minutes != 0 || seconds != 0 {
        put(out, format_args!(":{minutes:02}"));
    }
    if seconds != 0 {
        put(out, format_args!(":{seconds:02}"));
    }
}
