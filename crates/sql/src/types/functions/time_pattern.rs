//! Dates and times read after the patterns of `to_date` and `to_timestamp`.

use super::*;
use crate::types::calendar::{self, Civil, DAY, HOUR, MINUTE, SECOND};

/// What a pattern reads, longer names first where one begins with another. Upper and lower case are the same.
const NAMES: [&str; 47] = [
    "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "A.M.", "P.M.", "AM", "PM", "YYYY", "YYY", "YY", "Y", "MONTH", "MON", "MM", "DAY", "DY", "DDD", "DD",
    "D", "TZH", "TZM", "Q", "J", "FM", "B.C.", "A.D.", "BC", "AD", "IYYY", "IYY", "IY", "IDDD", "IW", "ID",
    "I",
];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const LONG_MONTHS: [&str; 12] = [
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
const LONG_DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// What has been read.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    /// Whether the year is one before Christ.
    before_christ: bool,
    /// Whether a year, a week or a day is that of the ISO's calendar, and whether one is of the other.
    is_iso: bool,
    is_gregorian: bool,
    /// The week of the ISO's year, and the day of that week from Monday on.
    week: Option<i64>,
    day_of_week: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    /// Whether the hour is one of twelve, and in the afternoon.
    afternoon: Option<bool>,
    twelve: bool,
    minute: i64,
    second: i64,
    /// Microseconds of the second.
    fraction: i64,
    /// Microseconds since midnight.
    of_day: Option<i64>,
    /// Microseconds east of UTC, if that is told.
    offset: Option<i64>,
}

/// The microseconds since 2000-01-01 UTC that a text shows after a pattern; without a distance to UTC it is in the zone.
pub(super) fn to_timestamp(value: &str, pattern: &str, zone: Zone) -> Result<i64, SqlError> {
    let read = read(value, pattern)?;
    let time = match read.of_day {
        Some(time) => time,
        None => hour(&read)? * HOUR + read.minute * MINUTE + read.second * SECOND + read.fraction,
    };
    let local = days(&read, value)?.checked_mul(DAY).and_then(|at| at.checked_add(time));
    calendar::check_timestamp(local.and_then(|local| match read.offset {
        Some(offset) => local.checked_sub(offset),
        None => zone.to_moment(local),
    }))
}

/// The day that a text shows after a pattern.
pub(super) fn to_date(value: &str, pattern: &str) -> Result<i32, SqlError> {
    let read = read(value, pattern)?;
    calendar::check_date(days(&read, value)?)
}

fn out_of_range(value: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("date/time field value out of range: \"{value}\""),
    )
}

fn hour(read: &Read) -> Result<i64, SqlError> {
    if !read.twelve && read.afternoon.is_none() {
        return Ok(read.hour);
    }
    if !(1..=12).contains(&read.hour) {
        let message = format!("hour \"{}\" is invalid for the 12-hour clock", read.hour);
        return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
            .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
    }
    Ok(read.hour % 12 + if read.afternoon == Some(true) { 12 } else { 0 })
}

/// Days since 2000-01-01. What is not told is the first; without a year it is that before the year 1.
fn days(read: &Read, value: &str) -> Result<i64, SqlError> {
    if let Some(julian) = read.julian {
        return Ok(julian - 2_451_545);
    }
    let year = read.year.unwrap_or(0);
    let year = if read.before_christ { -year } else { year };
    // There is no year 0 between those before and after.
    let year = if year < 0 { year + 1 } else { year };
    if read.is_iso && (read.week.is_some() || read.day_of_year.is_some()) {
        // The first week is that with the fourth of January in it.
        let fourth = calendar::days_of(Civil { year, month: 1, day: 4 });
        let monday = fourth - (calendar::day_of_week(fourth) + 6) % 7;
        let day = match (read.week, read.day_of_year) {
            (Some(week), _) => (week - 1) * 7 + read.day_of_week.unwrap_or(1),
            (None, day) => day.unwrap_or(1),
        };
        return Ok(monday + day - 1);
    }
    if let Some(day) = read.day_of_year {
        return Ok(calendar::days_of(Civil { year, month: 1, day: 1 }) + day - 1);
    }
    let (month, day) = (read.month.unwrap_or(1), read.day.unwrap_or(1));
    let valid = (1..=12).contains(&month) && (1..=calendar::days_of_month(year, month)).contains(&day);
    if !valid {
        return Err(out_of_range(value));
    }
    Ok(calendar::days_of(Civil { year, month, day }))
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// A number of at most that many digits, which may have a sign; how many digits it had.
    fn number(&mut self, name: &str, width: usize) -> Result<(i64, usize), SqlError> {
        self.skip_blanks();
        let unsigned = self.rest.strip_prefix(['-', '+']).filter(|_| name != "TZM");
        let digits: String =
            unsigned.unwrap_or(self.rest).chars().take_while(char::is_ascii_digit).take(width).collect();
        let Ok(number) = digits.parse::<i64>() else {
            let taken: String = self.rest.chars().take(width.min(name.len())).collect();
            let message = format!("invalid value \"{taken}\" for \"{name}\"");
            return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
                .with_detail("Value must be an integer."));
        };
        let negative = unsigned.is_some() && self.rest.starts_with('-');
        self.rest = &self.rest[digits.len() + usize::from(unsigned.is_some())..];
        Ok((if negative { -number } else { number }, digits.len()))
    }

    /// Which of some names comes next, as a number from 0 on.
    fn name(&mut self, name: &str, names: &[&str]) -> Result<i64, SqlError> {
        self.skip_blanks();
        for (place, known) in (0..).zip(names) {
            if let Some(start) = self.rest.get(..known.len())
                && start.eq_ignore_ascii_case(known)
            {
                self.rest = &self.rest[known.len()..];
                return Ok(place);
            }
        }
        let taken: String = self.rest.chars().take(name.len()).collect();
        let message = format!("invalid value \"{taken}\" for \"{name}\"");
        Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
            .with_detail("The given value did not match any of the allowed values for this field."))
    }
}

fn read(value: &str, pattern: &str) -> Result<Read, SqlError> {
    let mut read = Read::default();
    let mut reader = Reader { rest: value };
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            let skipped = reader.rest.char_indices().nth(text.chars().count());
            reader.rest = skipped.map_or("", |(at, _)| &reader.rest[at..]);
            rest = after;
            continue;
        }
        let known = NAMES
            .iter()
            .find(|name| rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
        if let Some(name) = known {
            rest = &rest[name.len()..];
            // A number goes on to its end if no other follows at once.
            let open = rest.chars().next().is_none_or(|next| !next.is_ascii_alphabetic());
            field(name, open, &mut reader, &mut read)?;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        reader.skip_blanks();
        // A separator stands for any other; what is a letter in the pattern stands for one character.
        if let Some(next) = reader.rest.chars().next()
            && (first.is_ascii_alphanumeric()
                || !next.is_ascii_alphanumeric() && !matches!(next, '-' | '+')
                || next == first)
            && !first.is_whitespace()
        {
            reader.rest = &reader.rest[next.len_utf8()..];
        }
    }
    Ok(read)
}

fn field(name: &str, open: bool, reader: &mut Reader<'_>, read: &mut Read) -> Result<(), SqlError> {
    // More digits than any date has, and no more than can be reckoned with.
    let width = |usual: usize| if open { 9 } else { usual };
    read.is_iso |= name.starts_with('I');
    read.is_gregorian |=
        matches!(name, "YYYY" | "YYY" | "YY" | "Y" | "MONTH" | "MON" | "MM" | "DDD" | "DD" | "D");
    if read.is_iso && read.is_gregorian {
        let message = "invalid combination of date conventions";
        let hint = "Do not mix Gregorian and ISO week date conventions in a formatting template.";
        return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message).with_hint(hint));
    }
    match name {
        "IYYY" | "YYYY" => read.year = Some(reader.number(name, width(4))?.0),
        "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
            let (year, digits) = reader.number(name, width(name.len()))?;
            // The year that is nearest to 2020.
            read.year = Some(match digits {
                0..=2 => year + if year < 70 { 2000 } else { 1900 },
                3 => year + if year < 520 { 2000 } else { 1000 },
                _ => year,
            });
        }
        "MM" => read.month = Some(reader.number(name, width(2))?.0),
        "MONTH" => read.month = Some(reader.name(name, &LONG_MONTHS)? + 1),
        "MON" => read.month = Some(reader.name(name, &MONTHS)? + 1),
        "DD" => read.day = Some(reader.number(name, width(2))?.0),
        "IW" => read.week = Some(reader.number(name, width(2))?.0),
        "ID" => read.day_of_week = Some(reader.number(name, 1)?.0),
        "BC" | "AD" => read.before_christ = reader.name(name, &["ad", "bc"])? == 1,
        "B.C." | "A.D." => read.before_christ = reader.name(name, &["a.d.", "b.c."])? == 1,
        "DDD" | "IDDD" => read.day_of_year = Some(reader.number(name, width(3))?.0),
        "J" => read.julian = Some(reader.number(name, 9)?.0),
        "DAY" => drop(reader.name(name, &LONG_DAYS)?),
        "DY" => drop(reader.name(name, &LONG_DAYS.map(|day| &day[..3]))?),
        "D" | "Q" => drop(reader.number(name, 1)?),
        "HH24" => read.hour = reader.number(name, width(2))?.0,
        "HH12" | "HH" => {
            read.hour = reader.number(name, width(2))?.0;
            read.twelve = true;
        }
        "MI" => read.minute = reader.number(name, width(2))?.0,
        "SS" => read.second = reader.number(name, width(2))?.0,
        "SSSSS" | "SSSS" => read.of_day = Some(reader.number(name, 5)?.0 * SECOND),
        "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let most = if name == "MS" { 3 } else { 6 };
            let (number, digits) = reader.number(name, most)?;
            read.fraction = number * 10i64.pow(6 - digits as u32);
        }
        "AM" | "PM" => read.afternoon = Some(reader.name(name, &["am", "pm"])? == 1),
        "A.M." | "P.M." => read.afternoon = Some(reader.name(name, &["a.m.", "p.m."])? == 1),
        "TZH" => read.offset = Some(reader.number(name, 2)?.0 * HOUR),
        "TZM" => {
            let minutes = reader.number(name, 2)?.0 * MINUTE;
            let hours = read.offset.unwrap_or(0);
            read.offset = Some(hours + if hours < 0 { -minutes } else { minutes });
        }
        _ => {}
    }
    check(read)
}

/// Fails where a part of a time is out of its range.
fn check(read: &Read) -> Result<(), SqlError> {
    let fits =
        (0..=24).contains(&read.hour) && (0..60).contains(&read.minute) && (0..=60).contains(&read.second);
    if fits && read.of_day.is_none_or(|time| time <= DAY) {
        return Ok(());
    }
    Err(out_of_range(&format!("{}:{}:{}", read.hour, read.minute, read.second)))
}
