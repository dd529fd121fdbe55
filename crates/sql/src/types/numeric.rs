//! `numeric`: decimal numbers of any length that is allowed.
//!
//! A value is an integer and the number of its digits after the point. What fits 128 bits, which is nearly everything that is
//! ever stored, needs no allocation. `1.0` and `1.00` are equal and print differently, as in PostgreSQL. `Infinity` is left out.

mod functions;

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{SqlError, SqlState};

/// Digits that may stand before the point.
const WHOLE_DIGITS_MAX: u64 = 131_072;
/// Digits that may stand after the point.
pub const SCALE_MAX: u16 = 16_383;
/// Digits after the point that a number of 128 bits may have, about.
const SCALE_SHORT: usize = 40;
/// Digits after the point that divisions, roots and powers give at most.
const RESULT_SCALE_MAX: i64 = 1_000;
/// Digits that divisions, roots and powers give at least.
const SIGNIFICANT_DIGITS: i64 = 16;

/// A decimal number, or "not a number".
#[derive(Clone, Debug)]
pub struct Numeric(Form);

/// `Small` whenever it fits, so that each number with its scale has one form.
#[derive(Clone, Debug)]
enum Form {
    NotANumber,
    Small { unscaled: i128, scale: u16 },
    Large(Box<(BigInt, u16)>),
}

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// An integer that is not zero without the zeros at its end, and how many these are.
fn without_zeros(integer: i128) -> (i128, i32) {
    let mut zeros = 0;
    // Most fit 64 bits, which are divided faster.
    let Ok(mut short) = i64::try_from(integer) else {
        let mut long = integer;
        while long % 10 == 0 {
            long /= 10;
            zeros += 1;
        }
        return (long, zeros);
    };
    while short % 10 == 0 {
        short /= 10;
        zeros += 1;
    }
    (i128::from(short), zeros)
}

fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// The quotient with the half rounded away from zero.
fn divide_rounding(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let quotient = dividend / divisor;
    let rest = dividend - &quotient * divisor;
    if (rest.magnitude() << 1u8) < *divisor.magnitude() {
        return quotient;
    }
    if (dividend.sign() == Sign::Minus) == (divisor.sign() == Sign::Minus) {
        quotient + 1
    } else {
        quotient - 1
    }
}

/// A number as it is written.
struct Written {
    is_negative: bool,
    digits: String,
    scale: i64,
}

impl Numeric {
    /// "Not a number": equal to itself and above all numbers.
    pub const NAN: Numeric = Numeric(Form::NotANumber);
    /// Zero without digits after the point.
    pub const ZERO: Numeric = Numeric(Form::Small { unscaled: 0, scale: 0 });
    /// One without digits after the point.
    pub const ONE: Numeric = Numeric(Form::Small { unscaled: 1, scale: 0 });

    /// `unscaled` divided by ten to the power of `scale`.
    pub const fn new(unscaled: i128, scale: u16) -> Numeric {
        Numeric(Form::Small { unscaled, scale })
    }

    /// `unscaled` divided by ten to the power of `scale`; an error if it has more digits than a `numeric` may.
    pub fn from_big(unscaled: BigInt, scale: u16) -> Result<Numeric, SqlError> {
        if let Ok(unscaled) = i128::try_from(&unscaled) {
            return Ok(Numeric(Form::Small { unscaled, scale }));
        }
        // 3.32 bits make a digit: what has fewer bits than 3 times the digits is short enough without being counted.
        let digits_max = WHOLE_DIGITS_MAX + u64::from(scale);
        if unscaled.bits() > digits_max * 3 && unscaled.magnitude().to_string().len() as u64 > digits_max {
            return Err(overflow());
        }
        Ok(Numeric(Form::Large(Box::new((unscaled, scale)))))
    }

    /// How many bytes its digits take beyond what nearly every number has: those after the point too that are zeros, as it has them as soon as
    /// it meets another number.
    #[inline]
    pub fn large_bytes(&self) -> usize {
        let (bytes, scale) = match &self.0 {
            Form::NotANumber => return 0,
            Form::Small { scale, .. } => (0, usize::from(*scale)),
            Form::Large(large) => (large.0.bits() as usize / 8, usize::from(large.1)),
        };
        // A digit takes 3.32 bits.
        if scale > SCALE_SHORT { bytes.max(scale * 5 / 12) } else { bytes }
    }

    /// The integer and the scale, if it fits 128 bits; none of "not a number" either.
    #[inline]
    pub fn short(&self) -> Option<(i128, u16)> {
        match &self.0 {
            Form::Small { unscaled, scale } => Some((*unscaled, *scale)),
            Form::NotANumber | Form::Large(_) => None,
        }
    }

    /// The integer and the scale; none of "not a number".
    pub fn parts(&self) -> Option<(BigInt, u16)> {
        match &self.0 {
            Form::NotANumber => None,
            Form::Small { unscaled, scale } => Some((BigInt::from(*unscaled), *scale)),
            Form::Large(large) => Some((**large).clone()),
        }
    }

    /// Whether a text is a number that `numeric` takes.
    ///
    /// # Errors
    /// As of [`parse`](Numeric::parse).
    pub fn check(text: &str) -> Result<(), SqlError> {
        Numeric::read(text).map(drop)
    }

    /// Reads what `numeric` takes: a sign, digits, a point, an exponent, or `NaN`. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        let Some(Written { is_negative, digits, scale }) = Numeric::read(text)? else {
            return Ok(Numeric::NAN);
        };
        let mut unscaled = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default();
        if is_negative {
            unscaled = -unscaled;
        }
        match u16::try_from(scale) {
            Ok(scale) => Numeric::from_big(unscaled, scale),
            // Zero stays zero however many digits the exponent would add.
            Err(_) if unscaled.sign() == Sign::NoSign => Ok(Numeric::ZERO),
            Err(_) => Numeric::from_big(unscaled * power_of_ten(scale.unsigned_abs() as u32), 0),
        }
    }

    /// The digits that a text has, and how many of them stand after the point, less than none if zeros follow; none of "not a number".
    fn read(text: &str) -> Result<Option<Written>, SqlError> {
        let invalid = || {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type numeric: \"{text}\""),
            )
        };
        let trimmed = text.trim_ascii();
        if trimmed.eq_ignore_ascii_case("nan") {
            return Ok(None);
        }
        let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
        if ["infinity", "inf"].iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
            return Err(SqlError::unsupported("infinity as numeric"));
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent).ok_or_else(invalid)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let scale = fraction.len() as i64 - exponent;
        let significant = digits.trim_start_matches('0');
        if significant.len() as i64 - scale > WHOLE_DIGITS_MAX as i64 && !significant.is_empty() {
            return Err(overflow());
        }
        if scale > i64::from(SCALE_MAX) {
            return Err(overflow());
        }
        Ok(Some(Written { is_negative: trimmed.starts_with('-'), digits, scale }))
    }

    /// Whether it is "not a number".
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Form::NotANumber)
    }

    /// Whether it is zero, of any scale.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Form::Small { unscaled: 0, .. })
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Form::NotANumber => false,
            Form::Small { unscaled, .. } => *unscaled < 0,
            Form::Large(large) => large.0.sign() == Sign::Minus,
        }
    }

    /// Digits after the point; 0 of "not a number".
    pub fn scale(&self) -> u16 {
        match &self.0 {
            Form::NotANumber => 0,
            Form::Small { scale, .. } => *scale,
            Form::Large(large) => large.1,
        }
    }

    /// The digits of the integer without its sign, and without zeros in front: empty for zero.
    fn digits(&self) -> String {
        match &self.0 {
            Form::NotANumber | Form::Small { unscaled: 0, .. } => String::new(),
            Form::Small { unscaled, .. } => unscaled.unsigned_abs().to_string(),
            Form::Large(large) => large.0.magnitude().to_string(),
        }
    }

    /// The digits without zeros at either end, and the power of ten that `0.digits` is to be multiplied with. Equal numbers have
    /// equal digits and powers; zero has no digits.
    pub fn normalised_digits(&self) -> (String, i32) {
        let mut digits = self.digits();
        let exponent = digits.len() as i32 - i32::from(self.scale());
        digits.truncate(digits.trim_end_matches('0').len());
        if digits.is_empty() { (digits, 0) } else { (digits, exponent) }
    }

    /// Appends bytes that are equal if numbers are: of those that have the same value with another scale, too.
    pub fn hash_bytes(&self, out: &mut Vec<u8>) {
        // An integer without zeros at its end, and the power of ten that it is to be multiplied with.
        let (integer, power) = match &self.0 {
            Form::NotANumber => return out.push(2),
            Form::Small { unscaled: 0, .. } => (0, 0),
            Form::Small { unscaled, scale } => {
                let (integer, zeros) = without_zeros(*unscaled);
                (integer, zeros - i32::from(*scale))
            }
            Form::Large(_) => {
                let (digits, exponent) = self.normalised_digits();
                let power = exponent - digits.len() as i32;
                let signed = if self.is_negative() { format!("-{digits}") } else { digits };
                match signed.parse() {
                    Ok(integer) => (integer, power),
                    Err(_) => {
                        out.push(1);
                        out.extend_from_slice(&power.to_le_bytes());
                        out.extend_from_slice(&(signed.len() as u64).to_le_bytes());
                        return out.extend_from_slice(signed.as_bytes());
                    }
                }
            }
        };
        out.push(0);
        out.extend_from_slice(&power.to_le_bytes());
        out.extend_from_slice(&integer.to_le_bytes());
    }

    /// The number of [`Self::normalised_digits`].
    pub fn from_normalised_digits(negative: bool, digits: &str, exponent: i32) -> Result<Numeric, SqlError> {
        let sign = if negative { "-" } else { "" };
        let power = exponent - digits.len() as i32;
        Numeric::parse(&format!("{sign}0{digits}e{power}"))
    }

    /// The number in base 10000, as PostgreSQL keeps it: the digits without zeros at either end, and the power of the first.
    pub fn base_10000(&self) -> (Vec<u16>, i32) {
        let (digits, exponent) = self.normalised_digits();
        if digits.is_empty() {
            return (Vec::new(), 0);
        }
        let weight = (exponent - 1).div_euclid(4);
        let lead = (weight * 4 + 4 - exponent) as usize;
        let mut padded = "0".repeat(lead) + &digits;
        while !padded.len().is_multiple_of(4) {
            padded.push('0');
        }
        let group = |four: &[u8]| four.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
        (padded.as_bytes().chunks(4).map(group).collect(), weight)
    }

    /// Rounded to `places` digits after the point, the half away from zero, with just that many digits. Negative places round
    /// before the point.
    pub fn round(&self, places: i32) -> Result<Numeric, SqlError> {
        self.with_places(places, divide_rounding)
    }

    /// Cut off after `places` digits after the point. Negative places cut before the point.
    pub fn truncate(&self, places: i32) -> Result<Numeric, SqlError> {
        self.with_places(places, |dividend, divisor| dividend / divisor)
    }

    fn with_places(&self, places: i32, divide: fn(&BigInt, &BigInt) -> BigInt) -> Result<Numeric, SqlError> {
        let places = places.clamp(-(WHOLE_DIGITS_MAX as i32), i32::from(SCALE_MAX));
        let Some((unscaled, scale)) = self.parts() else { return Ok(Numeric::NAN) };
        let target = places.max(0) as u16;
        let drop = i32::from(scale) - places;
        if drop <= 0 {
            return Numeric::from_big(unscaled * power_of_ten(drop.unsigned_abs()), target);
        }
        let kept = divide(&unscaled, &power_of_ten(drop as u32));
        Numeric::from_big(kept * power_of_ten((-places).max(0) as u32), target)
    }

    /// Rounded to an integer, the half away from zero; none if it does not fit or is "not a number".
    pub fn to_i64(&self) -> Option<i64> {
        match self.round(0).ok()?.0 {
            Form::Small { unscaled, .. } => i64::try_from(unscaled).ok(),
            _ => None,
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        if self.is_nan() {
            return f64::NAN;
        }
        // The parser of the standard library rounds correctly, on every machine alike.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// The nearest single, as a double.
    pub fn to_f32(&self) -> f32 {
        if self.is_nan() {
            return f32::NAN;
        }
        self.to_string().parse().unwrap_or(f32::NAN)
    }

    /// The number with as many digits as PostgreSQL trusts a float with: 15 of a double, 6 of a single.
    pub fn from_f64(value: f64, significant_digits: usize) -> Result<Numeric, SqlError> {
        if value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if value.is_infinite() {
            return Err(SqlError::unsupported("infinity as numeric"));
        }
        let text = format!("{value:.*e}", significant_digits.saturating_sub(1));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        Numeric::parse(&format!("{mantissa}e{exponent}"))
    }

    /// A form of few bytes: nothing for "not a number", else the scale and the integer. It is not ordered.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (scale, integer) = match &self.0 {
            Form::NotANumber => return Vec::new(),
            Form::Small { unscaled, scale } => {
                let bytes = unscaled.to_be_bytes();
                // Bytes that only repeat the sign are left out.
                let sign = if *unscaled < 0 { 0xFF } else { 0 };
                let from =
                    (0..15).find(|at| bytes[*at] != sign || (bytes[at + 1] ^ sign) & 0x80 != 0).unwrap_or(15);
                (*scale, bytes[from..].to_vec())
            }
            Form::Large(large) => (large.1, large.0.to_signed_bytes_be()),
        };
        let mut bytes = Vec::with_capacity(integer.len() + 2);
        // The scale has 14 bits; nearly always 7 will do.
        if scale < 0x80 {
            bytes.push(scale as u8);
        } else {
            bytes.push((scale >> 8) as u8 | 0x80);
            bytes.push(scale as u8);
        }
        bytes.extend_from_slice(&integer);
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote; none of other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Numeric> {
        let Some((&first, rest)) = bytes.split_first() else { return Some(Numeric::NAN) };
        let (scale, rest) = if first < 0x80 {
            (u16::from(first), rest)
        } else {
            let (&low, rest) = rest.split_first()?;
            (u16::from(first & 0x7F) << 8 | u16::from(low), rest)
        };
        if scale > SCALE_MAX || rest.is_empty() {
            return None;
        }
        if rest.len() > 16 {
            return Numeric::from_big(BigInt::from_signed_bytes_be(rest), scale).ok();
        }
        let sign = if rest[0] & 0x80 == 0 { 0 } else { 0xFF };
        let mut wide = [sign; 16];
        wide[16 - rest.len()..].copy_from_slice(rest);
        Some(Numeric::new(i128::from_be_bytes(wide), scale))
    }
}

/// Saturates: what is beyond 32 bits overflows in any case.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000_000);
    Some(if text.starts_with('-') { -value } else { value })
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::new(i128::from(value), 0)
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nan() {
            return formatter.write_str("NaN");
        }
        let scale = usize::from(self.scale());
        let mut digits = self.digits();
        if digits.len() <= scale {
            digits.insert_str(0, &"0".repeat(scale + 1 - digits.len()));
        }
        if self.is_negative() {
            formatter.write_str("-")?;
        }
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        formatter.write_str(whole)?;
        if scale > 0 { write!(formatter, ".{fraction}") } else { Ok(()) }
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let (Form::Small { unscaled: left, scale: a }, Form::Small { unscaled: right, scale: b }) =
            (&self.0, &other.0)
            && let Some((left, right)) = align(*left, *a, *right, *b)
        {
            return left.cmp(&right);
        }
        match (self.parts(), other.parts()) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => {
                let (left, right, _) = align_big(left, right);
                left.cmp(&right)
            }
        }
    }
}

impl Serialize for Numeric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Numeric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numeric, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Numeric::from_bytes(&bytes).ok_or_else(|| serde::de::Error::custom("no numeric"))
    }
}

/// Both integers at the greater of the scales, if they fit.
fn align(left: i128, left_scale: u16, right: i128, right_scale: u16) -> Option<(i128, i128)> {
    match left_scale.cmp(&right_scale) {
        Ordering::Equal => Some((left, right)),
        Ordering::Less => {
            let factor = 10i128.checked_pow(u32::from(right_scale - left_scale))?;
            Some((left.checked_mul(factor)?, right))
        }
        Ordering::Greater => {
            let factor = 10i128.checked_pow(u32::from(left_scale - right_scale))?;
            Some((left, right.checked_mul(factor)?))
        }
    }
}

fn align_big(
    (left, left_scale): (BigInt, u16),
    (right, right_scale): (BigInt, u16),
) -> (BigInt, BigInt, u16) {
    match left_scale.cmp(&right_scale) {
        Ordering::Equal => (left, right, left_scale),
        Ordering::Less => (left * power_of_ten(u32::from(right_scale - left_scale)), right, right_scale),
        Ordering::Greater => (left, right * power_of_ten(u32::from(left_scale - right_scale)), left_scale),
    }
}

/// The integer of a magnitude that is not negative.
fn positive(magnitude: BigUint) -> BigInt {
    BigInt::from_biguint(Sign::Plus, magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_equal_bytes_and_others_do_not() {
        let long = "170141183460469231731687303715884105728";
        let written = [
            "0",
            "0.00",
            "1",
            "1.0",
            "1.00000",
            "10",
            "-1",
            "-1.0",
            "0.1",
            "1e30",
            "1e50",
            "1000e47",
            "NaN",
            "-1e50",
            "9223372036854775807",
            "9223372036854775808",
            "9223372036854775810",
            "922337203685477581e1",
        ];
        let numbers =
            written.into_iter().map(str::to_owned).chain(["", "-"].into_iter().flat_map(|sign| {
                ["", ".0", ".000000", "0", "e3", "1"].map(|end| format!("{sign}{long}{end}"))
            }));
        let numbers: Vec<Numeric> = numbers.map(|number| Numeric::parse(&number).unwrap()).collect();
        let bytes = |number: &Numeric| {
            let mut bytes = Vec::new();
            number.hash_bytes(&mut bytes);
            bytes
        };
        for one in &numbers {
            for other in &numbers {
                assert_eq!(one == other, bytes(one) == bytes(other), "{one} and {other}");
            }
        }
    }
}
