//! Integers and floats as text.

use super::{invalid, put};
use crate::error::{SqlError, SqlState};
use crate::types::{BaseType, SqlType};

fn out_of_range(text: &str, name: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value \"{text}\" is out of range for type {name}"),
    )
}

/// The least and the greatest value of an integer type.
pub(crate) fn range(base: BaseType) -> (i64, i64) {
    match base {
        BaseType::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        BaseType::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        BaseType::Oid => (0, i64::from(u32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Digits with a sign or without one, and blanks around them.
pub(super) fn parse_integer(text: &str, base: BaseType) -> Result<i64, SqlError> {
    let name = || SqlType::of(base).name();
    let trimmed = text.trim_ascii();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(text, &name()));
    }
    let (least, greatest) = range(base);
    match trimmed.parse::<i64>() {
        Ok(value) if (least..=greatest).contains(&value) => Ok(value),
        // The negative half of 32 bits is taken as the number with the same bits.
        Ok(value) if base == BaseType::Oid && value < 0 && value >= i64::from(i32::MIN) => {
            Ok(i64::from(value as i32 as u32))
        }
        _ => Err(out_of_range(text, &name())),
    }
}

/// A float as the standard library reads it, which rounds correctly; a `real` is read as such, not rounded twice.
pub(super) fn parse_float(text: &str, base: BaseType) -> Result<f64, SqlError> {
    let name = || SqlType::of(base).name();
    let trimmed = text.trim_ascii();
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let is_word = unsigned.starts_with(|first: char| first.is_ascii_alphabetic());
    let value =
        if base == BaseType::Float4 { trimmed.parse::<f32>().map(f64::from) } else { trimmed.parse::<f64>() };
    let value = value.map_err(|_| invalid(text, &name()))?;
    if is_word {
        // Only one "not a number", whatever its sign.
        return Ok(if value.is_nan() { f64::NAN } else { value });
    }
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or("");
    let lost = value == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if value.is_infinite() || lost {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{text}\" is out of range for type {}", name()),
        ));
    }
    Ok(value)
}

/// Appends the fewest digits that read as the same float, with an exponent where PostgreSQL prints one.
pub(super) fn format_float(value: f64, single: bool, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
    let scientific = if single { format!("{:e}", value as f32) } else { shortest_inside(value) };
    let (mantissa, exponent) = split_exponent(&scientific);
    let plain_below = if single { 6 } else { 15 };
    if (-4..plain_below).contains(&exponent) {
        if single {
            put(out, format_args!("{}", value as f32));
        } else {
            put(out, format_args!("{value}"));
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        put(out, format_args!("{mantissa}e{sign}{:02}", exponent.abs()));
    }
}

fn split_exponent(scientific: &str) -> (&str, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

/// The fewest digits that lie between the middles to the next floats. The standard library also takes a middle itself where reading
/// would round it to the float, such as 1e23; PostgreSQL does not.
fn shortest_inside(value: f64) -> String {
    let shortest = format!("{value:e}");
    if !is_middle(&shortest, value) {
        return shortest;
    }
    let candidates = (1..17).map(|digits| format!("{value:.digits$e}"));
    let mut inside = candidates.filter(|text| text.parse() == Ok(value) && !is_middle(text, value));
    let Some(found) = inside.next() else { return shortest };
    let (mantissa, exponent) = split_exponent(&found);
    format!("{}e{exponent}", mantissa.trim_end_matches('0'))
}

/// Whether the digits, which read as the float, are just in the middle to one of its neighbours. Only integers above 2^53 can be, and
/// few of them: one bit more than the float has must hold all their odd factors.
fn is_middle(scientific: &str, value: f64) -> bool {
    let (mantissa, exponent) = split_exponent(scientific);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let power = exponent - fraction.len() as i32;
    if !(0..=23).contains(&power) || value.abs() < 9_007_199_254_740_992.0 {
        return false;
    }
    let digits: u128 = format!("{whole}{fraction}").trim_start_matches('-').parse().unwrap_or(0);
    let odd = digits * 5u128.pow(power as u32);
    let odd = odd >> odd.trailing_zeros().min(127);
    let bits = u128::from(value.to_bits() & ((1 << 52) - 1) | 1 << 52);
    // Below a power of two the next float is only half as far.
    odd == 2 * bits + 1 || odd == 2 * bits - 1 || (bits == 1 << 52 && odd == 4 * bits - 1)
}
