//! Numbers on command lines, each with the range that it may have: what is no number, too small or too large is refused where it
//! is read, before anything is made of it.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Milliseconds that an epoch may last.
pub const EPOCH_MILLISECONDS: RangeInclusive<f64> = 0.001..=10_000.0;

/// Milliseconds that a transaction may be let wait for locks.
pub const LOCK_WAIT_MILLISECONDS: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// Reads a number within a range: a parser for a value on the command line. `unit` is for the message.
pub fn number_within(
    range: RangeInclusive<f64>,
    unit: &'static str,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let wrong = || format!("give a number of {unit} from {} to {}", range.start(), range.end());
        // Neither infinite numbers nor what is none is within a range.
        text.parse::<f64>().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
    }
}

/// The time of a number of seconds that is within a range as above. What is outside of all of them becomes no time, or a very long
/// one, for those who check times: numbers may also come from files.
pub fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(if number > 0.0 { Duration::MAX } else { Duration::ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_the_range_is_refused() {
        let read = number_within(EPOCH_MILLISECONDS, "milliseconds");
        for good in ["0.001", "10", "1e4"] {
            assert_eq!(read(good), Ok(good.parse().unwrap()));
        }
        for wrong in ["nan", "inf", "-inf", "-1", "0", "1e300", "1e-300", "-0.0", "ten", "", "1e999"] {
            assert_eq!(
                read(wrong),
                Err("give a number of milliseconds from 0.001 to 10000".to_owned()),
                "{wrong}"
            );
        }
    }

    #[test]
    fn no_number_is_too_much_for_a_time() {
        assert_eq!(seconds(0.25), Duration::from_millis(250));
        for nothing in [f64::NAN, -1.0, f64::NEG_INFINITY, 0.0, 1e-300] {
            assert_eq!(seconds(nothing), Duration::ZERO, "{nothing}");
        }
        for much in [1e300, f64::INFINITY, f64::MAX] {
            assert_eq!(seconds(much), Duration::MAX, "{much}");
        }
    }
}
