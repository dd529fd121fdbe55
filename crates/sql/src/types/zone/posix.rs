//! Zones that are written as POSIX has them: an abbreviation and hours west of UTC, such as `XYZ-3` and `<+02>-02`.
//!
//! Left out are those with a rule for summer, such as `XYZ-3ABC`.

use super::Fixed;

/// What all distances to UTC are less than, in seconds: a week.
pub(super) const SECONDS_MAX: i32 = 168 * 3_600;

/// The zone that a text means.
pub(super) fn parse(text: &str) -> Option<Fixed> {
    let (abbreviation, distance) = match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?,
        None => {
            let end = text.find(|c: char| c.is_ascii_digit() || matches!(c, ',' | '+' | '-'))?;
            text.split_at(end)
        }
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b':' | b'.');
    if abbreviation.len() > Fixed::ABBREVIATION_BYTES_MAX || !abbreviation.bytes().all(fits) {
        return None;
    }
    let (west, clock) = match distance.strip_prefix('-') {
        Some(clock) => (-1, clock),
        None => (1, distance.strip_prefix('+').unwrap_or(distance)),
    };
    let mut seconds = 0;
    let mut unit = 3_600;
    for part in clock.split(':') {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = part.parse::<i32>().ok().filter(|_| is_number)?;
        if unit == 0 || number > if unit == 3_600 { 167 } else { 59 } {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    let mut padded = [0; Fixed::ABBREVIATION_BYTES_MAX];
    for (place, byte) in padded.iter_mut().zip(abbreviation.bytes()) {
        *place = byte.to_ascii_uppercase();
    }
    Some(Fixed { seconds: -west * seconds, abbreviation: padded })
}

/// `02`, `02:30` or `02:30:15`.
fn clock(seconds: i64) -> String {
    let seconds = seconds.abs();
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (minutes, rest) {
        (0, 0) => format!("{hours:02}"),
        (_, 0) => format!("{hours:02}:{minutes:02}"),
        _ => format!("{hours:02}:{minutes:02}:{rest:02}"),
    }
}

/// The name of the zone that has nothing but a distance to UTC, in seconds east of it.
pub(super) fn name_of_distance(seconds: i64) -> String {
    let (east, west) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
    let clock = clock(seconds);
    format!("<{east}{clock}>{west}{clock}")
}

/// The name by which [`parse`] finds a zone.
pub(super) fn name(fixed: &Fixed) -> String {
    let seconds = i64::from(fixed.seconds);
    let west = if seconds < 0 { '+' } else { '-' };
    let clock = clock(seconds);
    format!("<{}>{west}{clock}", fixed.abbreviation())
}
