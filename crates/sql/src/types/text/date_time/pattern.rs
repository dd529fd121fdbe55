//! Timestamps in the patterns of `to_char`: the common ones. What is no pattern stands for itself.

use super::{DAYS, MONTHS};
use crate::types::Zone;
use crate::types::calendar::{self, Civil, DAY, HOUR, MINUTE, SECOND};
use crate::types::zone::Moment;

/// Those that show no letters may be in lower case as well.
const PATTERNS: [&str; 71] = [
    "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "A.M.", "P.M.", "a.m.", "p.m.", "AM", "PM", "am", "pm", "B.C.", "A.D.", "b.c.", "a.d.", "BC", "AD", "bc",
    "ad", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "IW", "ID", "I", "MONTH", "Month",
    "month", "MON", "Mon", "mon", "MM", "RM", "rm", "DAY", "Day", "day", "DY", "Dy", "dy", "DDD", "DD", "D",
    "WW", "W", "CC", "J", "Q", "TZH", "TZM", "TZ", "tz", "OF",
];

/// The pattern that a text begins with: the longest.
fn pattern_of(text: &str) -> Option<&'static str> {
    let fitting = PATTERNS.iter().filter_map(|name| {
        let beginning = text.get(..name.len())?;
        let is_lower = beginning.eq_ignore_ascii_case(name)
            && !beginning.contains(|letter: char| letter.is_ascii_uppercase());
        let is_same = beginning == *name;
        (is_same || is_lower).then_some((name.len(), is_same, *name))
    });
    fitting.max().map(|(_, _, name)| name)
}

/// Months as Roman numbers.
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What is counted in a moment or an interval.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    /// Microseconds; of an interval they may be more than a day.
    time: i64,
    /// Days since 2000-01-01, if it is a moment.
    days: Option<i64>,
    /// What holds in the zone, if it has one.
    moment: Option<Moment>,
}

/// The text of a timestamp after a pattern, in a zone if it is a moment.
pub(crate) fn format(at: i64, zone: Option<Zone>, pattern: &str) -> String {
    let moment = zone.map(|zone| zone.moment(at));
    let local = at + moment.as_ref().map_or(0, |moment| moment.offset);
    let (days, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let Civil { year, month, day } = calendar::civil_of(days);
    formatted(&Parts { year, month, day, time, days: Some(days), moment }, pattern)
}

/// The text of an interval after a pattern. Names of months and days are empty.
pub(crate) fn format_interval(months: i32, days: i32, microseconds: i64, pattern: &str) -> String {
    let (year, month) = (i64::from(months / 12), i64::from(months % 12));
    let parts = Parts { year, month, day: i64::from(days), time: microseconds, days: None, moment: None };
    formatted(&parts, pattern)
}

fn formatted(parts: &Parts, pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            out.push_str(text);
            rest = after;
            continue;
        }
        let (fill, body) = match rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            Some(body) => (false, body),
            None => (true, rest),
        };
        let (is_translated, body) = match body.strip_prefix("TM").or_else(|| body.strip_prefix("tm")) {
            Some(body) => (true, body),
            None => (false, body),
        };
        if let Some(name) = pattern_of(body) {
            let value = value(name, parts);
            let value = match (fill, is_translated) {
                (false, _) => trim(&value),
                // Names that are translated are not filled.
                (true, true) => value.trim_end(),
                (true, false) => value.as_str(),
            };
            out.push_str(value);
            rest = &body[name.len()..];
            for suffix in ["TH", "th"] {
                if let Some(after) =
                    rest.strip_prefix(suffix).filter(|_| value.ends_with(|last: char| last.is_ascii_digit()))
                {
                    let ending = crate::types::functions::ordinal(value);
                    out.push_str(&if suffix == "TH" { ending.to_uppercase() } else { ending.to_owned() });
                    rest = after;
                }
            }
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Without blanks at the end and zeros at the start, but for the last digit.
fn trim(value: &str) -> &str {
    let value = value.trim_end();
    let trimmed = value.trim_start_matches('0');
    if trimmed.is_empty() { &value[value.len().saturating_sub(1)..] } else { trimmed }
}

fn value(name: &str, parts: &Parts) -> String {
    let Parts { year, month, day, time, .. } = *parts;
    let shown = if year > 0 || parts.days.is_none() { year } else { 1 - year };
    let hour = time / HOUR;
    let (offset, abbreviation) = match &parts.moment {
        Some(moment) => (moment.offset, moment.abbreviation.as_str()),
        None => (0, ""),
    };
    let sign = if offset < 0 { '-' } else { '+' };
    let half = |capital: bool, dots: bool| {
        let text = match (hour % 24 < 12, dots) {
            (true, false) => "AM",
            (false, false) => "PM",
            (true, true) => "A.M.",
            (false, true) => "P.M.",
        };
        if capital { text.to_owned() } else { text.to_ascii_lowercase() }
    };
    let era = |capital: bool, dots: bool| {
        let text = match (year > 0, dots) {
            (true, false) => "AD",
            (false, false) => "BC",
            (true, true) => "A.D.",
            (false, true) => "B.C.",
        };
        if capital { text.to_owned() } else { text.to_ascii_lowercase() }
    };
    match name {
        "HH24" => two_digits(hour),
        "HH12" | "HH" => two_digits(if hour % 12 == 0 { 12 } else { hour % 12 }),
        "MI" => two_digits(time % HOUR / MINUTE),
        "SSSS" | "SSSSS" => (time / SECOND).to_string(),
        "SS" => two_digits(time % MINUTE / SECOND),
        "MS" => format!("{:03}", time % SECOND / 1_000),
        "US" => format!("{:06}", time % SECOND),
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let digits = usize::from(name.as_bytes()[2] - b'0');
            format!("{:06}", (time % SECOND).abs())[..digits].to_owned()
        }
        "AM" | "PM" => half(true, false),
        "am" | "pm" => half(false, false),
        "A.M." | "P.M." => half(true, true),
        "a.m." | "p.m." => half(false, true),
        "BC" | "AD" => era(true, false),
        "bc" | "ad" => era(false, false),
        "B.C." | "A.D." => era(true, true),
        "b.c." | "a.d." => era(false, true),
        "Y,YYY" => format!("{},{:03}", shown / 1000, shown % 1000),
        "YYYY" => format!("{shown:04}"),
        "YYY" => format!("{:03}", shown % 1000),
        "YY" => format!("{:02}", shown % 100),
        "Y" => (shown % 10).to_string(),
        "MM" => format!("{month:02}"),
        "DD" => format!("{day:02}"),
        "CC" => format!("{:02}", if shown > 0 { (shown + 99) / 100 } else { shown / 100 }),
        "TZ" => abbreviation.to_ascii_uppercase(),
        "tz" => abbreviation.to_ascii_lowercase(),
        "TZH" => format!("{sign}{:02}", offset.abs() / HOUR),
        "OF" if offset % HOUR == 0 => format!("{sign}{:02}", offset.abs() / HOUR),
        "OF" => format!("{sign}{:02}:{:02}", offset.abs() / HOUR, offset.abs() % HOUR / MINUTE),
        "TZM" => format!("{:02}", offset.abs() % HOUR / MINUTE),
        "Q" if month == 0 => "0".to_owned(),
        "Q" => ((month - 1) / 3 + 1).to_string(),
        _ => parts.days.map_or_else(String::new, |days| of_day(name, days, month)),
    }
}

/// At least two digits, after the sign of a part of an interval that is negative.
fn two_digits(part: i64) -> String {
    let width = if part < 0 { 3 } else { 2 };
    format!("{part:0width$}")
}

/// What is told of a day of the calendar.
fn of_day(name: &str, days: i64, month: i64) -> String {
    let month_name = MONTHS[(month - 1) as usize];
    let day_name = DAYS[calendar::day_of_week(days) as usize];
    let (iso_year, iso_week) = calendar::iso_week(days);
    // Before the year 1 years are counted backwards.
    let iso_year = if iso_year > 0 { iso_year } else { 1 - iso_year };
    let iso_day = (calendar::day_of_week(days) + 6) % 7 + 1;
    match name {
        // Padded to the longest.
        "RM" => format!("{:<4}", ROMAN[(month - 1) as usize]),
        "rm" => format!("{:<4}", ROMAN[(month - 1) as usize].to_ascii_lowercase()),
        "IYYY" => format!("{iso_year:04}"),
        "IYY" => format!("{:03}", iso_year % 1000),
        "IY" => format!("{:02}", iso_year % 100),
        "I" => (iso_year % 10).to_string(),
        "IDDD" => format!("{:03}", (iso_week - 1) * 7 + iso_day),
        "IW" => format!("{iso_week:02}"),
        "ID" => iso_day.to_string(),
        "DDD" => format!("{:03}", calendar::day_of_year(days)),
        "D" => (calendar::day_of_week(days) + 1).to_string(),
        "WW" => format!("{:02}", (calendar::day_of_year(days) - 1) / 7 + 1),
        "W" => ((calendar::civil_of(days).day - 1) / 7 + 1).to_string(),
        "J" => (days + 2_451_545).to_string(),
        _ if name.eq_ignore_ascii_case("mon") => as_written(name, &month_name[..3]),
        _ if name.eq_ignore_ascii_case("dy") => as_written(name, &day_name[..3]),
        // Whole names are padded to the longest.
        _ if name.eq_ignore_ascii_case("month") => as_written(name, &format!("{month_name:<9}")),
        _ => as_written(name, &format!("{day_name:<9}")),
    }
}

/// In upper case, with a capital, or in lower case, as the pattern is.
fn as_written(pattern: &str, name: &str) -> String {
    let upper = |at: usize| pattern.as_bytes().get(at).is_some_and(u8::is_ascii_uppercase);
    match (upper(0), upper(1)) {
        (true, true) => name.to_ascii_uppercase(),
        (true, false) => name[..1].to_ascii_uppercase() + &name[1..],
        _ => name.to_owned(),
    }
}
