//! Variances, deviations and correlations.

use super::super::{Datum, Numeric, SqlType};
use super::AggregateId;
use crate::error::SqlError;
use crate::types::functions::work_of_number;

/// Sums over pairs of floats, or over numbers that are exact. The second of a pair is called `x`, as PostgreSQL calls it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Sums {
    count: f64,
    x: f64,
    y: f64,
    /// Squares of the distances to the mean, and their product.
    xx: f64,
    yy: f64,
    xy: f64,
    /// The sum of exact numbers and of their squares.
    exact: Option<(Numeric, Numeric)>,
}

impl Sums {
    /// The work of finishing them: a quotient and a root of their digits.
    pub(super) fn work(&self) -> u64 {
        let numbers = self.exact.as_ref();
        numbers.map_or(0, |(sum, squares)| 64 * (work_of_number(sum) + work_of_number(squares)))
    }

    /// Takes a pair. What is added to the squares is found from the mean so far, so that nothing is lost where the numbers are large and
    /// near to each other.
    pub(super) fn add(&mut self, y: f64, x: f64) {
        let before = self.count;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before > 0.0 {
            let (dx, dy) = (x * self.count - self.x, y * self.count - self.y);
            let scale = 1.0 / (self.count * before);
            self.xx += dx * dx * scale;
            self.yy += dy * dy * scale;
            self.xy += dx * dy * scale;
        }
    }

    /// Takes a number by itself. Its squares are divided instead of multiplied with a quotient, as PostgreSQL does it.
    pub(super) fn add_one(&mut self, x: f64) {
        let before = self.count;
        self.count += 1.0;
        self.x += x;
        if before > 0.0 {
            let dx = x * self.count - self.x;
            self.xx += dx * dx / (self.count * before);
        }
    }

    /// Takes an exact number.
    pub(super) fn add_exact(&mut self, value: &Numeric) -> Result<(), SqlError> {
        self.count += 1.0;
        let square = value.multiply(value)?;
        self.exact = Some(match &self.exact {
            None => (value.clone(), square),
            Some((sum, squares)) => (sum.add(value)?, squares.add(&square)?),
        });
        Ok(())
    }

    pub(super) fn finish(self, id: AggregateId, count: i64) -> Result<Datum, SqlError> {
        use AggregateId::{DeviationPopulation, DeviationSample, VariancePopulation, VarianceSample};
        let least = if matches!(id, VarianceSample | DeviationSample) { 2 } else { 1 };
        if let VarianceSample | DeviationSample | VariancePopulation | DeviationPopulation = id {
            if count < least {
                return Ok(Datum::Null);
            }
            let divisor = count - (least - 1);
            let is_root = matches!(id, DeviationSample | DeviationPopulation);
            if let Some((sum, squares)) = &self.exact {
                let variance = exact_variance(sum, squares, count, divisor)?;
                // A deviation has as many digits as the variance.
                let root = || variance.square_root_to(variance.scale());
                return Ok(Datum::Numeric(if is_root { root()? } else { variance }));
            }
            let variance = self.xx / divisor as f64;
            return Ok(Datum::Float(if is_root { variance.sqrt() } else { variance }));
        }
        Ok(self.of_pairs(id).map_or(Datum::Null, Datum::Float))
    }

    fn of_pairs(&self, id: AggregateId) -> Option<f64> {
        use AggregateId as Id;
        let Sums { count, x, y, xx, yy, xy, .. } = *self;
        if count < 1.0 {
            return None;
        }
        match id {
            Id::Correlation => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            Id::CovariancePopulation => Some(xy / count),
            Id::CovarianceSample => (count > 1.0).then(|| xy / (count - 1.0)),
            Id::RegressionSlope => (xx != 0.0).then(|| xy / xx),
            Id::RegressionIntercept => (xx != 0.0).then(|| (y - x * xy / xx) / count),
            Id::RegressionSquare if yy == 0.0 => (xx != 0.0).then_some(1.0),
            Id::RegressionSquare => (xx != 0.0).then(|| xy * xy / (xx * yy)),
            Id::RegressionAverageX => Some(x / count),
            Id::RegressionAverageY => Some(y / count),
            Id::RegressionXX => Some(xx),
            Id::RegressionYY => Some(yy),
            _ => Some(xy),
        }
    }
}

fn exact_variance(sum: &Numeric, squares: &Numeric, count: i64, divisor: i64) -> Result<Numeric, SqlError> {
    let number = Numeric::from(count);
    let distance = number.multiply(squares)?.subtract(&sum.multiply(sum)?)?;
    if distance.is_negative() || distance.is_zero() {
        return Ok(Numeric::from(0));
    }
    distance.divide(&number.multiply(&Numeric::from(divisor))?)
}

/// The type that the arguments of such an aggregate are cast to and that of its result, from the type of the argument.
pub(super) fn variance_types(argument: SqlType) -> Option<(SqlType, SqlType)> {
    if argument.is_unknown() || argument.is_float() {
        return Some((SqlType::FLOAT8, SqlType::FLOAT8));
    }
    (argument.is_integer() || argument == SqlType::NUMERIC).then_some((SqlType::NUMERIC, SqlType::NUMERIC))
}

/// The average of values by their sum and number.
///
/// # Errors
/// When it does not fit.
pub fn average(sum: &Datum, count: i64) -> Result<Datum, SqlError> {
    match sum {
        Datum::Numeric(sum) => sum.divide(&Numeric::from(count)).map(Datum::Numeric),
        Datum::Float(sum) => Ok(Datum::Float(sum / count as f64)),
        Datum::Interval { .. } => super::super::operators::divide_interval(sum, count as f64),
        _ => Ok(Datum::Null),
    }
}
