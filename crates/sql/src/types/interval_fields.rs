//! The fields of an interval that a type keeps, `interval day to second(3)`, in the modifier that PostgreSQL has for them.

use std::fmt;

use super::calendar::{HOUR, MINUTE};

/// All fields, where a modifier says the digits of seconds only.
const ALL_FIELDS: i32 = 0x7FFF;

/// All digits, where a modifier says the fields only.
const ALL_DIGITS: i32 = 0xFFFF;

/// A field, the longest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Field {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

use Field::*;

const FIELDS: [Field; 6] = [Year, Month, Day, Hour, Minute, Second];

impl Field {
    /// The place in which PostgreSQL's modifiers have it.
    fn bit(self) -> i32 {
        1 << match self {
            Month => 1,
            Year => 2,
            Day => 3,
            Hour => 10,
            Minute => 11,
            Second => 12,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Year => "year",
            Month => "month",
            Day => "day",
            Hour => "hour",
            Minute => "minute",
            Second => "second",
        }
    }
}

/// The fields from one to another, which may be the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fields {
    pub(crate) first: Field,
    pub(crate) last: Field,
}

impl Fields {
    /// Years and months are one kind of interval, and all others another one: no fields go from one into the other.
    pub(crate) fn new(first: Field, last: Field) -> Option<Fields> {
        let is_one_kind = (first <= Month) == (last <= Month);
        (first <= last && is_one_kind).then_some(Fields { first, last })
    }

    /// The fields of a type with a modifier; none if it has all.
    pub(crate) fn of(modifier: i32) -> Option<Fields> {
        let bits = modifier >> 16;
        if modifier < 0 || bits == ALL_FIELDS {
            return None;
        }
        let mut has = FIELDS.into_iter().filter(|field| bits & field.bit() != 0);
        let first = has.next()?;
        Some(Fields { first, last: has.next_back().unwrap_or(first) })
    }

    fn bits(self) -> i32 {
        let within = FIELDS.into_iter().filter(|field| (self.first..=self.last).contains(field));
        within.map(Field::bit).sum()
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.first.name())?;
        if self.first == self.last { Ok(()) } else { write!(formatter, " to {}", self.last.name()) }
    }
}

/// The modifier of a type with some fields, or all, and so many digits of seconds, or all.
pub(crate) fn modifier(fields: Option<Fields>, digits: Option<i32>) -> i32 {
    if fields.is_none() && digits.is_none() {
        return -1;
    }
    fields.map_or(ALL_FIELDS, Fields::bits) << 16 | digits.unwrap_or(ALL_DIGITS)
}

/// The digits of seconds of a type with a modifier; none if it has all.
pub(crate) fn digits(modifier: i32) -> Option<i32> {
    let digits = modifier & ALL_DIGITS;
    (modifier >= 0 && digits != ALL_DIGITS).then_some(digits)
}

/// What fields keep of an interval, before its seconds are rounded: nothing below the last one, but all above the first.
pub(crate) fn kept(fields: Fields, (months, days, microseconds): (i32, i32, i64)) -> (i32, i32, i64) {
    match fields.last {
        Year => (months / 12 * 12, 0, 0),
        Month => (months, 0, 0),
        Day => (months, days, 0),
        Hour => (months, days, microseconds / HOUR * HOUR),
        Minute => (months, days, microseconds / MINUTE * MINUTE),
        Second => (months, days, microseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_those_of_postgresql() {
        let of = |first, last, digits| modifier(Fields::new(first, last), digits);
        assert_eq!(of(Year, Month, None), 458_751);
        assert_eq!(of(Hour, Hour, None), 67_174_399);
        assert_eq!(of(Day, Second, Some(2)), 470_286_338);
        assert_eq!(modifier(None, Some(0)), 2_147_418_112);
        assert_eq!(modifier(None, None), -1);
        for (at, first) in FIELDS.into_iter().enumerate() {
            for last in FIELDS.into_iter().skip(at) {
                let Some(fields) = Fields::new(first, last) else {
                    assert!(first <= Month && last > Month);
                    continue;
                };
                assert_eq!(Fields::of(modifier(Some(fields), None)), Some(fields));
                assert_eq!(Fields::of(modifier(Some(fields), Some(3))), Some(fields));
                assert_eq!(digits(modifier(Some(fields), Some(3))), Some(3));
                assert_eq!(digits(modifier(Some(fields), None)), None);
            }
        }
        assert_eq!(Fields::new(Minute, Hour), None);
        assert_eq!((Fields::of(-1), Fields::of(modifier(None, Some(3)))), (None, None));
    }
}
