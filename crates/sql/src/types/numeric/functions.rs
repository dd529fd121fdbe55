//! Arithmetic of `numeric`. How many digits a result has follows PostgreSQL: at least 16 that count, and those of the operands.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::{
    Form, Numeric, RESULT_SCALE_MAX, SCALE_MAX, SIGNIFICANT_DIGITS, WHOLE_DIGITS_MAX, align, align_big,
    divide_rounding, division_by_zero, overflow, positive, power_of_ten,
};
use crate::error::{SqlError, SqlState};

impl Numeric {
    /// The sum; an error if it has too many digits.
    pub fn add(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        self.combine(other, i128::checked_add, |left, right| left + right)
    }

    /// The difference; an error if it has too many digits.
    pub fn subtract(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        self.combine(other, i128::checked_sub, |left, right| left - right)
    }

    /// What `%` gives: the rest of the division that truncates, with the sign of the dividend. An error for a divisor of zero.
    pub fn remainder(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if other.is_zero() && !self.is_nan() {
            return Err(division_by_zero());
        }
        self.combine(other, i128::checked_rem, |left, right| left % right)
    }

    fn combine(
        &self,
        other: &Numeric,
        small: fn(i128, i128) -> Option<i128>,
        large: fn(BigInt, BigInt) -> BigInt,
    ) -> Result<Numeric, SqlError> {
        if let (Form::Small { unscaled: left, scale: a }, Form::Small { unscaled: right, scale: b }) =
            (&self.0, &other.0)
            && let Some((left, right)) = align(*left, *a, *right, *b)
            && let Some(result) = small(left, right)
        {
            return Ok(Numeric::new(result, *a.max(b)));
        }
        let (Some(left), Some(right)) = (self.parts(), other.parts()) else { return Ok(Numeric::NAN) };
        let (left, right, scale) = align_big(left, right);
        Numeric::from_big(large(left, right), scale)
    }

    /// The product; an error if it has too many digits.
    pub fn multiply(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let (Form::Small { unscaled: left, scale: a }, Form::Small { unscaled: right, scale: b }) =
            (&self.0, &other.0)
            && let Some(result) = left.checked_mul(*right)
            && a + b <= SCALE_MAX
        {
            return Ok(Numeric::new(result, a + b));
        }
        let (Some((left, a)), Some((right, b))) = (self.parts(), other.parts()) else {
            return Ok(Numeric::NAN);
        };
        let scale = a + b;
        if scale <= SCALE_MAX {
            return Numeric::from_big(left * right, scale);
        }
        let divisor = power_of_ten(u32::from(scale - SCALE_MAX));
        Numeric::from_big(divide_rounding(&(left * right), &divisor), SCALE_MAX)
    }

    /// The quotient with as many digits as PostgreSQL gives; an error for a divisor of zero.
    pub fn divide(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if other.is_zero() && !self.is_nan() {
            return Err(division_by_zero());
        }
        let scale = self.quotient_scale(other);
        self.divide_to(other, scale)
    }

    /// The quotient rounded to `scale` digits after the point.
    fn divide_to(&self, other: &Numeric, scale: u16) -> Result<Numeric, SqlError> {
        let (Some((left, a)), Some((right, b))) = (self.parts(), other.parts()) else {
            return Ok(Numeric::NAN);
        };
        if other.is_zero() {
            return Err(division_by_zero());
        }
        let shift = i64::from(scale) + i64::from(b) - i64::from(a);
        let quotient = if shift >= 0 {
            divide_rounding(&(left * power_of_ten(shift as u32)), &right)
        } else {
            divide_rounding(&left, &(right * power_of_ten(shift.unsigned_abs() as u32)))
        };
        Numeric::from_big(quotient, scale)
    }

    fn quotient_scale(&self, other: &Numeric) -> u16 {
        let lead = |number: &Numeric| {
            let (digits, weight) = number.base_10000();
            (digits.first().copied().unwrap_or(0), i64::from(weight))
        };
        let (left_digit, left_weight) = lead(self);
        let (right_digit, right_weight) = lead(other);
        let weight = left_weight - right_weight - i64::from(left_digit <= right_digit);
        self.result_scale(SIGNIFICANT_DIGITS - weight * 4, other.scale())
    }

    /// At least the wanted digits, its own and `other`'s, within what results may have.
    fn result_scale(&self, wanted: i64, other: u16) -> u16 {
        wanted.max(i64::from(self.scale())).max(i64::from(other)).clamp(0, RESULT_SCALE_MAX) as u16
    }

    /// The quotient without its fraction, as `div` gives it; an error for a divisor of zero.
    pub fn divide_truncating(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if other.is_zero() && !self.is_nan() {
            return Err(division_by_zero());
        }
        let (Some(left), Some(right)) = (self.parts(), other.parts()) else { return Ok(Numeric::NAN) };
        let (left, right, _) = align_big(left, right);
        Numeric::from_big(left / right, 0)
    }

    /// With the other sign.
    #[must_use]
    pub fn negate(&self) -> Numeric {
        Numeric::ZERO.subtract(self).unwrap_or(Numeric::NAN)
    }

    /// Without its sign.
    #[must_use]
    pub fn absolute(&self) -> Numeric {
        if self.is_negative() { self.negate() } else { self.clone() }
    }

    /// -1, 0 or 1, or "not a number".
    pub fn sign(&self) -> Numeric {
        if self.is_nan() {
            return Numeric::NAN;
        }
        Numeric::from(match self.cmp(&Numeric::ZERO) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
    }

    /// The greatest integer that is not above it.
    pub fn floor(&self) -> Result<Numeric, SqlError> {
        let whole = self.truncate(0)?;
        if !self.is_nan() && whole > *self { whole.subtract(&Numeric::ONE) } else { Ok(whole) }
    }

    /// The least integer that is not below it.
    pub fn ceiling(&self) -> Result<Numeric, SqlError> {
        let whole = self.truncate(0)?;
        if !self.is_nan() && whole < *self { whole.add(&Numeric::ONE) } else { Ok(whole) }
    }

    /// The square root; an error below zero.
    pub fn square_root(&self) -> Result<Numeric, SqlError> {
        if self.is_negative() {
            return Err(SqlError::new(SqlState(*b"2201F"), "cannot take square root of a negative number"));
        }
        let (_, weight) = self.base_10000();
        let root_weight = (i64::from(weight) + 1) * 4 / 2 - 1;
        self.square_root_to(self.result_scale(SIGNIFICANT_DIGITS - root_weight, 0))
    }

    /// The square root of a number that is not negative, with so many digits after the point.
    pub(crate) fn square_root_to(&self, result: u16) -> Result<Numeric, SqlError> {
        let Some((unscaled, scale)) = self.parts() else { return Ok(Numeric::NAN) };
        // With one digit more than wanted, and the last digit of a root never being a plain half, rounding is exact.
        let shift = 2 * (i64::from(result) + 1) - i64::from(scale);
        let radicand = if shift >= 0 {
            unscaled * power_of_ten(shift as u32)
        } else {
            unscaled / power_of_ten(shift.unsigned_abs() as u32)
        };
        let root = positive(radicand.magnitude().sqrt());
        Numeric::from_big(divide_rounding(&root, &BigInt::from(10)), result)
    }

    /// `self` to the power of `exponent`. Errors: zero to a negative power, a negative number to one with a fraction, too many digits.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() || exponent.is_nan() {
            let one = (*self == Numeric::ONE) || exponent.is_zero();
            return Ok(if one { Numeric::ONE } else { Numeric::NAN });
        }
        let invalid = |text| Err(SqlError::new(SqlState(*b"2201F"), text));
        if self.is_zero() && exponent.is_negative() {
            return invalid("zero raised to a negative power is undefined");
        }
        let whole = exponent.truncate(0)? == *exponent;
        if whole && let Some(power) = exponent.to_i64().and_then(|power| i32::try_from(power).ok()) {
            return self.whole_power(power);
        }
        if self.is_negative() {
            return invalid("a negative number raised to a non-integer power yields a complex result");
        }
        if self.is_zero() {
            return Numeric::from_big(
                BigInt::from(0),
                self.result_scale(SIGNIFICANT_DIGITS, exponent.scale()),
            );
        }
        self.fractional_power(exponent)
    }

    /// The decimal logarithm of the absolute value, roughly: it only chooses how many digits a result has.
    fn decimal_logarithm(&self) -> f64 {
        let (digits, exponent) = self.normalised_digits();
        let lead: f64 = digits.get(..digits.len().min(16)).and_then(|text| text.parse().ok()).unwrap_or(1.0);
        libm::log10(lead) + f64::from(exponent) - digits.len().min(16) as f64
    }

    fn whole_power(&self, exponent: i32) -> Result<Numeric, SqlError> {
        let weight = if self.is_zero() { 0.0 } else { f64::from(exponent) * self.decimal_logarithm() };
        if weight > WHOLE_DIGITS_MAX as f64 {
            return Err(overflow());
        }
        let scale = self.result_scale(SIGNIFICANT_DIGITS, 0);
        if weight + 1.0 < -f64::from(SCALE_MAX) {
            return Numeric::from_big(BigInt::from(0), scale);
        }
        // Each multiplication may cost half a unit of the last digit that is kept: as many digits more as there are such.
        let kept = 1 + i64::from(scale) + weight.max(0.0) as i64 + 8 + 10;
        let mut result = Numeric::ONE;
        let mut square = self.clone();
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.multiply(&square)?.limit_digits(kept)?;
            }
            rest >>= 1;
            if rest > 0 {
                square = square.multiply(&square)?.limit_digits(kept)?;
            }
        }
        if exponent < 0 { Numeric::ONE.divide_to(&result, scale) } else { result.round(i32::from(scale)) }
    }

    /// Rounded so that no more than `count` digits are left after the first one that counts.
    fn limit_digits(self, count: i64) -> Result<Numeric, SqlError> {
        let (_, exponent) = self.normalised_digits();
        let places = (count - i64::from(exponent)).clamp(0, i64::from(SCALE_MAX));
        if i64::from(self.scale()) <= places { Ok(self) } else { self.round(places as i32) }
    }

    /// Through logarithm and exponential, both as series over integers with digits to spare.
    fn fractional_power(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        let weight = self.decimal_logarithm() * exponent.to_f64();
        if weight > WHOLE_DIGITS_MAX as f64 {
            return Err(overflow());
        }
        if weight < -(RESULT_SCALE_MAX as f64) {
            return Numeric::from_big(BigInt::from(0), RESULT_SCALE_MAX as u16);
        }
        let scale = self.result_scale(SIGNIFICANT_DIGITS - weight as i64, exponent.scale());
        let working = u32::from(scale) + weight.abs() as u32 + 30;
        let logarithm = self.fixed_logarithm(working);
        let Some((factor, factor_scale)) = exponent.parts() else { return Ok(Numeric::NAN) };
        let product = logarithm * factor / power_of_ten(u32::from(factor_scale));
        let result = fixed_exponential(&product, working);
        Numeric::from_big(divide_rounding(&result, &power_of_ten(working - u32::from(scale))), scale)
    }

    /// The natural logarithm times ten to the power of `digits`, of a number above zero.
    fn fixed_logarithm(&self, digits: u32) -> BigInt {
        let one = power_of_ten(digits);
        let Some((unscaled, scale)) = self.parts() else { return BigInt::from(0) };
        let mut value = unscaled * &one / power_of_ten(u32::from(scale));
        // Halved or doubled until it is near one, where the series is short.
        let mut halvings = 0i64;
        let two = &one * 2;
        while value > two {
            value >>= 1u8;
            halvings += 1;
        }
        while value < one && value.sign() == num_bigint::Sign::Plus {
            value <<= 1u8;
            halvings -= 1;
        }
        near_one(&value, &one) + near_one(&two, &one) * halvings
    }
}

/// `ln(value)` as `2 artanh((value - 1) / (value + 1))`, all times `one`.
fn near_one(value: &BigInt, one: &BigInt) -> BigInt {
    let ratio = (value - one) * one / (value + one);
    let square = &ratio * &ratio / one;
    let mut term = ratio;
    let mut sum = BigInt::from(0);
    let mut divisor = 1u32;
    while term.sign() != num_bigint::Sign::NoSign {
        sum += &term / divisor;
        term = term * &square / one;
        divisor += 2;
    }
    sum * 2
}

/// `exp(value)`, both times ten to the power of `digits`: halved eight times, summed up, squared eight times.
fn fixed_exponential(value: &BigInt, digits: u32) -> BigInt {
    // Squaring multiplies the error by 256, and large results carry it to digits before the point.
    let whole = u32::try_from(value.magnitude() / power_of_ten(digits).magnitude()).unwrap_or(0);
    let spare = 20 + whole;
    let halvings = 8 + whole.checked_ilog2().unwrap_or(0);
    let one = power_of_ten(digits + spare);
    let reduced: BigInt = (value * power_of_ten(spare)) >> halvings;
    let mut term = one.clone();
    let mut sum = one.clone();
    let mut divisor = 1u32;
    loop {
        term = term * &reduced / &one / divisor;
        if term.sign() == num_bigint::Sign::NoSign {
            break;
        }
        sum += &term;
        divisor += 1;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &one;
    }
    sum / power_of_ten(spare)
}
