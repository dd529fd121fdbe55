//! Times as people write them, and as the log has them: microseconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};

/// The time now, in microseconds since 1970.
///
/// # Errors
/// When the machine's clock is before that.
pub fn now() -> Result<u64, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_err(|_| "the clock of this machine is before 1970: set it".to_owned())?;
    u64::try_from(since.as_micros())
        .map_err(|_| "the clock of this machine is out of range: set it".to_owned())
}

/// A time as RFC 3339 has it, in UTC.
pub fn format(microseconds: u64) -> String {
    let time = i64::try_from(microseconds).ok().and_then(DateTime::<Utc>::from_timestamp_micros);
    time.map_or_else(
        || format!("{microseconds} microseconds"),
        |time| time.to_rfc3339_opts(SecondsFormat::Micros, true),
    )
}

/// A time for names, which sort by it.
pub fn format_compact(microseconds: u64) -> String {
    format(microseconds).replace(['-', ':', '.'], "")
}

/// Reads a time as RFC 3339 has it.
///
/// # Errors
/// When it is none; says how to write it.
pub fn parse(text: &str) -> Result<u64, String> {
    let time = DateTime::parse_from_rfc3339(text).map_err(|error| {
        format!(
            "{text:?} is no time ({error}): write it as 2026-03-01T12:30:00Z or 2026-03-01T13:30:00.5+01:00"
        )
    })?;
    u64::try_from(time.timestamp_micros()).map_err(|_| format!("{text:?} is before 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        let time = parse("2026-03-01T13:30:00.25+01:00").unwrap();
        assert_eq!(format(time), "2026-03-01T12:30:00.250000Z");
        assert_eq!(format_compact(time), "20260301T123000250000Z");
        assert_eq!(parse(&format(time)), Ok(time));
        assert_eq!(format(u64::MAX), "18446744073709551615 microseconds");
        assert!(parse("yesterday").unwrap_err().contains("write it as"));
        assert!(parse("1969-12-31T23:59:59Z").unwrap_err().contains("before 1970"));
    }
}
