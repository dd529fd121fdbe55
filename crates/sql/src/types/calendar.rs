//! Days and fields of the Gregorian calendar, which is taken to have held forever.

use crate::error::{SqlError, SqlState};

/// Microseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub(crate) const DAY: i64 = 24 * HOUR;
/// Days from 1970-01-01 to 2000-01-01, from which dates are counted.
pub(crate) const EPOCH_DAYS: i64 = 10_957;
/// The first day: 4714-11-24 BC, the Julian day 0.
pub(crate) const DATE_MIN: i64 = -2_451_545;
/// The last day: 5874897-12-31.
pub(crate) const DATE_MAX: i64 = 2_145_031_948;
/// The first microsecond of a timestamp: 4714-11-24 00:00:00 BC.
pub(crate) const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// The last microsecond of a timestamp: 294276-12-31 23:59:59.999999.
pub(crate) const TIMESTAMP_MAX: i64 = 9_223_371_331_199_999_999;

/// Days of a cycle after which the calendar repeats, of 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// Year (0 is 1 BC), month and day, each of the latter from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// Days since 2000-01-01. The year is taken to begin in March, so that the day of a leap year is its last.
pub(crate) fn days_of(civil: Civil) -> i64 {
    let year = if civil.month > 2 { civil.year } else { civil.year - 1 };
    let month = (civil.month + 9) % 12;
    let cycle = year.div_euclid(400);
    let year = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + civil.day - 1;
    let day_of_cycle = year * 365 + year / 4 - year / 100 + day_of_year;
    // 0000-03-01 is 730425 days before 2000-01-01.
    cycle * CYCLE_DAYS + day_of_cycle - 730_425
}

/// Year, month and day of days since 2000-01-01.
pub(crate) fn civil_of(days: i64) -> Civil {
    let days = days + 730_425;
    let cycle = days.div_euclid(CYCLE_DAYS);
    let day = days.rem_euclid(CYCLE_DAYS);
    // Leap days of the cycle are taken out one kind after another: each 4 years, not each 100, but at its end.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    Civil { year: year + cycle * 400 + i64::from(month <= 2), month, day }
}

/// Days of a month.
pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// 0 for Sunday to 6 for Saturday.
pub(crate) fn day_of_week(days: i64) -> i64 {
    // 2000-01-01 was a Saturday.
    (days + 6).rem_euclid(7)
}

/// From 1 on.
pub(crate) fn day_of_year(days: i64) -> i64 {
    let year = civil_of(days).year;
    days - days_of(Civil { year, month: 1, day: 1 }) + 1
}

/// Year and week as ISO 8601 has them: weeks begin on Mondays, the first has the year's first Thursday.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (day_of_week(days) + 6).rem_euclid(7) + 3;
    let year = civil_of(thursday).year;
    (year, (day_of_year(thursday) - 1) / 7 + 1)
}

/// The day as a date; an error if it is none.
pub(crate) fn check_date(days: i64) -> Result<i32, SqlError> {
    if !(DATE_MIN..=DATE_MAX).contains(&days) {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"));
    }
    i32::try_from(days).map_err(|_| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
}

/// The microseconds as a timestamp; an error if it is none.
pub(crate) fn check_timestamp(microseconds: Option<i64>) -> Result<i64, SqlError> {
    microseconds
        .filter(|at| (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(at))
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

/// Midnight of a day; an error if it is outside of what timestamps can say.
pub(crate) fn timestamp_of_date(days: i32) -> Result<i64, SqlError> {
    check_timestamp(i64::from(days).checked_mul(DAY)).map_err(|_| date_out_of_range())
}

/// The error of a date that timestamps cannot say.
pub(crate) fn date_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

/// Moved by months; a day that the month does not have becomes its last.
pub(crate) fn add_months(days: i64, months: i64) -> i64 {
    let civil = civil_of(days);
    let month = civil.year * 12 + civil.month - 1 + months;
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    days_of(Civil { year, month, day: civil.day.min(days_of_month(year, month)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_fields_agree_over_two_cycles() {
        let mut expected = Civil { year: 1600, month: 1, day: 1 };
        let start = days_of(expected);
        for days in start..start + 2 * CYCLE_DAYS {
            assert_eq!(civil_of(days), expected);
            assert_eq!(days_of(expected), days);
            expected.day += 1;
            if expected.day > days_of_month(expected.year, expected.month) {
                expected.day = 1;
                expected.month += 1;
            }
            if expected.month > 12 {
                expected.month = 1;
                expected.year += 1;
            }
        }
        assert_eq!(days_of(Civil { year: 2000, month: 1, day: 1 }), 0);
        assert_eq!(civil_of(DATE_MIN), Civil { year: -4713, month: 11, day: 24 });
        assert_eq!(civil_of(DATE_MAX), Civil { year: 5_874_897, month: 12, day: 31 });
        assert_eq!(days_of(Civil { year: 1970, month: 1, day: 1 }), -EPOCH_DAYS);
    }
}
