//! Aggregates: one value of many rows.

mod ordered;
mod statistics;

pub use statistics::average;

use serde::{Deserialize, Serialize};

use super::functions::{length, work_of_digits};
use super::operators::{self, BinaryOperator, Resolved};
use super::{BaseType, Datum, Numeric, SqlType, Zone, compare, functions};
use crate::error::{SqlError, SqlState};
use BaseType::*;

/// Which aggregate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum AggregateId {
    /// `count(*)`
    CountRows,
    /// `count(x)`
    Count,
    /// `sum`
    Sum,
    /// `avg`
    Average,
    /// `min`
    Least,
    /// `max`
    Greatest,
    /// `bool_and`, `every`
    BoolAnd,
    /// `bool_or`
    BoolOr,
    /// `string_agg`
    StringAggregate,
    /// `array_agg`
    ArrayAggregate,
    /// `bit_and`
    BitAnd,
    /// `bit_or`
    BitOr,
    /// `bit_xor`
    BitXor,
    /// `variance`, `var_samp`
    VarianceSample,
    /// `var_pop`
    VariancePopulation,
    /// `stddev`, `stddev_samp`
    DeviationSample,
    /// `stddev_pop`
    DeviationPopulation,
    /// `corr`
    Correlation,
    /// `covar_pop`
    CovariancePopulation,
    /// `covar_samp`
    CovarianceSample,
    /// `regr_count`
    RegressionCount,
    /// `regr_slope`
    RegressionSlope,
    /// `regr_intercept`
    RegressionIntercept,
    /// `regr_r2`
    RegressionSquare,
    /// `regr_avgx`
    RegressionAverageX,
    /// `regr_avgy`
    RegressionAverageY,
    /// `regr_sxx`
    RegressionXX,
    /// `regr_syy`
    RegressionYY,
    /// `regr_sxy`
    RegressionXY,
    /// `json_agg`
    JsonArray,
    /// `json_agg` of rows or arrays, each of which is in a line of its own
    JsonLines,
    /// `jsonb_agg`
    JsonbArray,
    /// `json_object_agg`
    JsonObject,
    /// `jsonb_object_agg`
    JsonbObject,
    /// `percentile_cont`, of the values in order and a fraction
    PercentileContinuous,
    /// `percentile_disc`, of the values in order and a fraction
    PercentileDiscrete,
    /// `mode`, of the values in order
    Mode,
}

/// An aggregate that was chosen for some arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Aggregate {
    /// What to compute.
    pub id: AggregateId,
    /// The types that the arguments must be cast to; none for `count(*)`.
    pub arguments: Vec<SqlType>,
    /// The type of what it gives.
    pub result: SqlType,
}

impl Aggregate {
    /// Whether what it has of its arguments grows with their number.
    pub fn keeps_arguments(&self) -> bool {
        use AggregateId::{
            ArrayAggregate, JsonArray, JsonLines, JsonObject, JsonbArray, JsonbObject, Mode,
            PercentileContinuous, PercentileDiscrete, StringAggregate,
        };
        matches!(
            self.id,
            StringAggregate
                | ArrayAggregate
                | JsonArray
                | JsonLines
                | JsonbArray
                | JsonObject
                | JsonbObject
                | PercentileContinuous
                | PercentileDiscrete
                | Mode
        )
    }

    /// Whether the states of parts of some rows can be [merged](State::merge) into that of all of them.
    pub fn merges(&self) -> bool {
        match self.id {
            AggregateId::CountRows
            | AggregateId::Count
            | AggregateId::Least
            | AggregateId::Greatest
            | AggregateId::BoolAnd
            | AggregateId::BoolOr => true,
            // A sum of floats depends on the order of its parts.
            AggregateId::Sum | AggregateId::Average => {
                !self.arguments.iter().any(|ty| matches!(ty.base, Float4 | Float8))
            }
            _ => false,
        }
    }
}

/// Whether there is an aggregate of that name, in lower case.
pub fn exists(name: &str) -> bool {
    id_of(name).is_some()
}

fn id_of(name: &str) -> Option<AggregateId> {
    Some(match name {
        "count" => AggregateId::Count,
        "sum" => AggregateId::Sum,
        "avg" => AggregateId::Average,
        "min" => AggregateId::Least,
        "max" => AggregateId::Greatest,
        "bool_and" | "every" => AggregateId::BoolAnd,
        "bool_or" => AggregateId::BoolOr,
        "string_agg" => AggregateId::StringAggregate,
        "array_agg" => AggregateId::ArrayAggregate,
        "bit_and" => AggregateId::BitAnd,
        "bit_or" => AggregateId::BitOr,
        "bit_xor" => AggregateId::BitXor,
        "variance" | "var_samp" => AggregateId::VarianceSample,
        "var_pop" => AggregateId::VariancePopulation,
        "stddev" | "stddev_samp" => AggregateId::DeviationSample,
        "stddev_pop" => AggregateId::DeviationPopulation,
        "corr" => AggregateId::Correlation,
        "covar_pop" => AggregateId::CovariancePopulation,
        "covar_samp" => AggregateId::CovarianceSample,
        "regr_count" => AggregateId::RegressionCount,
        "regr_slope" => AggregateId::RegressionSlope,
        "regr_intercept" => AggregateId::RegressionIntercept,
        "regr_r2" => AggregateId::RegressionSquare,
        "regr_avgx" => AggregateId::RegressionAverageX,
        "regr_avgy" => AggregateId::RegressionAverageY,
        "regr_sxx" => AggregateId::RegressionXX,
        "regr_syy" => AggregateId::RegressionYY,
        "regr_sxy" => AggregateId::RegressionXY,
        "json_agg" => AggregateId::JsonArray,
        "jsonb_agg" => AggregateId::JsonbArray,
        "json_object_agg" => AggregateId::JsonObject,
        "jsonb_object_agg" => AggregateId::JsonbObject,
        "percentile_cont" => AggregateId::PercentileContinuous,
        "percentile_disc" => AggregateId::PercentileDiscrete,
        "mode" => AggregateId::Mode,
        _ => return None,
    })
}

/// Whether an aggregate takes its values in the order of `WITHIN GROUP`: they are its first argument.
pub fn is_ordered(name: &str) -> bool {
    id_of(name).is_some_and(AggregateId::is_ordered)
}

impl AggregateId {
    fn is_ordered(self) -> bool {
        matches!(self, Self::PercentileContinuous | Self::PercentileDiscrete | Self::Mode)
    }

    /// Whether it takes pairs of floats.
    fn is_of_pairs(self) -> bool {
        use AggregateId::*;
        matches!(
            self,
            Correlation
                | CovariancePopulation
                | CovarianceSample
                | RegressionCount
                | RegressionSlope
                | RegressionIntercept
                | RegressionSquare
                | RegressionAverageX
                | RegressionAverageY
                | RegressionXX
                | RegressionYY
                | RegressionXY
        )
    }

    /// Whether it is one of a variance.
    fn is_variance(self) -> bool {
        use AggregateId::*;
        matches!(self, VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation)
    }

    /// Whether it makes JSON.
    fn is_json(self) -> bool {
        use AggregateId::*;
        matches!(self, JsonArray | JsonLines | JsonbArray | JsonObject | JsonbObject)
    }
}

/// The aggregate of that name, in lower case, for arguments of those types; none stand for `count(*)`. Error 42883 if there is none.
pub fn resolve(name: &str, arguments: &[SqlType]) -> Result<Aggregate, SqlError> {
    let undefined = || functions::undefined(name, arguments);
    let id = id_of(name).ok_or_else(undefined)?;
    if id == AggregateId::Count && arguments.is_empty() {
        return Ok(Aggregate { id: AggregateId::CountRows, arguments: Vec::new(), result: SqlType::INT8 });
    }
    let plain: Vec<SqlType> = arguments.iter().map(|ty| ty.plain()).collect();
    let (arguments, result) = match (id, plain.as_slice()) {
        (AggregateId::StringAggregate, [text, separator]) => {
            string_aggregate(*text, *separator).ok_or_else(undefined)?
        }
        (AggregateId::StringAggregate, _) => return Err(undefined()),
        (AggregateId::Least | AggregateId::Greatest, [argument])
            if argument.base == Char && !argument.array =>
        {
            // With its length: what is stored without blanks is padded to it again.
            (vec![arguments[0]], arguments[0])
        }
        (AggregateId::ArrayAggregate, [argument]) if argument.base == Char && !argument.array => {
            (vec![arguments[0]], arguments[0].array_of())
        }
        (id, _) if id.is_of_pairs() || id.is_ordered() || id.is_json() => {
            special(id, &plain).ok_or_else(undefined)?
        }
        (_, [argument]) => {
            let (argument, result) = one_argument(id, *argument).ok_or_else(undefined)?;
            (vec![argument], result)
        }
        _ => return Err(undefined()),
    };
    let lines = |ty: &SqlType| ty.array;
    let id = match id {
        AggregateId::JsonArray if arguments.first().is_some_and(lines) => AggregateId::JsonLines,
        id => id,
    };
    Ok(Aggregate { id, arguments, result })
}

/// The types of the arguments and of the result of aggregates that are not of one value.
fn special(id: AggregateId, given: &[SqlType]) -> Option<(Vec<SqlType>, SqlType)> {
    let known = |ty: SqlType| if ty.is_unknown() { SqlType::TEXT } else { ty };
    let is_float = |ty: &SqlType| ty.is_unknown() || ty.is_numeric() && ty.base != Oid;
    match (id, given) {
        (AggregateId::JsonArray, [value]) => Some((vec![known(*value)], SqlType::JSON)),
        (AggregateId::JsonbArray, [value]) => Some((vec![known(*value)], SqlType::JSONB)),
        (AggregateId::JsonObject, [key, value]) => Some((vec![known(*key), known(*value)], SqlType::JSON)),
        (AggregateId::JsonbObject, [key, value]) => Some((vec![known(*key), known(*value)], SqlType::JSONB)),
        (AggregateId::Mode, [value]) => Some((vec![known(*value)], known(*value))),
        (AggregateId::PercentileDiscrete | AggregateId::PercentileContinuous, [value, fraction]) => {
            let fractions = if fraction.array { SqlType::FLOAT8.array_of() } else { SqlType::FLOAT8 };
            is_float(&fraction.element()).then_some(())?;
            let value = match id {
                AggregateId::PercentileDiscrete => known(*value),
                _ if *value == SqlType::INTERVAL => *value,
                _ => is_float(value).then_some(SqlType::FLOAT8)?,
            };
            Some((vec![value, fractions], if fraction.array { value.array_of() } else { value }))
        }
        (id, [y, x]) if id.is_of_pairs() && is_float(y) && is_float(x) => {
            let result = if id == AggregateId::RegressionCount { SqlType::INT8 } else { SqlType::FLOAT8 };
            Some((vec![SqlType::FLOAT8; 2], result))
        }
        _ => None,
    }
}

fn string_aggregate(text: SqlType, separator: SqlType) -> Option<(Vec<SqlType>, SqlType)> {
    let is = |ty: SqlType, wanted: fn(SqlType) -> bool| ty.is_unknown() || wanted(ty);
    let bytes = |ty: SqlType| ty == SqlType::BYTEA;
    if is(text, SqlType::is_text) && is(separator, SqlType::is_text) {
        Some((vec![SqlType::TEXT; 2], SqlType::TEXT))
    } else if is(text, bytes) && is(separator, bytes) {
        Some((vec![SqlType::BYTEA; 2], SqlType::BYTEA))
    } else {
        None
    }
}

/// The type that the argument is cast to, and that of the result.
fn one_argument(id: AggregateId, argument: SqlType) -> Option<(SqlType, SqlType)> {
    // A literal whose type is open is a float where numbers are wanted, else a text.
    let known = |otherwise: SqlType| if argument.is_unknown() { otherwise } else { argument };
    match id {
        AggregateId::CountRows | AggregateId::Count => Some((known(SqlType::TEXT), SqlType::INT8)),
        AggregateId::Sum | AggregateId::Average => {
            let argument = known(SqlType::FLOAT8);
            if argument.array {
                return None;
            }
            let sum = id == AggregateId::Sum;
            let result = match argument.base {
                Int2 | Int4 if sum => SqlType::INT8,
                Int2 | Int4 | Int8 | Numeric => SqlType::NUMERIC,
                Float4 if sum => SqlType::FLOAT4,
                Float4 | Float8 => SqlType::FLOAT8,
                Interval => SqlType::INTERVAL,
                Time => return Some((SqlType::INTERVAL, SqlType::INTERVAL)),
                _ => return None,
            };
            Some((argument, result))
        }
        AggregateId::Least | AggregateId::Greatest => {
            let argument = known(SqlType::TEXT);
            let argument = match argument.base {
                Varchar | Name if !argument.array => SqlType::TEXT,
                Cidr if !argument.array => SqlType::INET,
                Bool | Json | Jsonb | Uuid | Bytea => return None,
                _ => argument,
            };
            Some((argument, argument))
        }
        AggregateId::BoolAnd | AggregateId::BoolOr => {
            (known(SqlType::BOOL) == SqlType::BOOL).then_some((SqlType::BOOL, SqlType::BOOL))
        }
        AggregateId::ArrayAggregate => {
            let argument = known(SqlType::TEXT);
            (!argument.array).then_some((argument, argument.array_of()))
        }
        AggregateId::BitAnd | AggregateId::BitOr | AggregateId::BitXor => {
            argument.is_integer().then_some((argument, argument))
        }
        id if id.is_variance() => statistics::variance_types(argument),
        _ => None,
    }
}

/// What an aggregate has seen so far.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    id: AggregateId,
    argument: SqlType,
    result: SqlType,
    count: i64,
    /// The sum, extreme, conjunction or text so far; `Null` before the first value.
    value: Datum,
    values: Vec<Datum>,
    /// The fraction of a percentile, or the type of the second argument's place.
    fraction: Datum,
    second: SqlType,
    sums: statistics::Sums,
    /// JSON so far, without its last bracket.
    json: String,
    /// In which JSON shows moments.
    zone: Zone,
}

impl State {
    /// Nothing seen yet. Moments are shown in `zone`.
    pub fn new(aggregate: &Aggregate, zone: Zone) -> State {
        State {
            id: aggregate.id,
            argument: aggregate.arguments.first().copied().unwrap_or(SqlType::UNKNOWN),
            result: aggregate.result,
            count: 0,
            value: Datum::Null,
            values: Vec::new(),
            fraction: Datum::Null,
            second: aggregate.arguments.get(1).copied().unwrap_or(SqlType::UNKNOWN),
            sums: statistics::Sums::default(),
            json: String::new(),
            zone,
        }
    }

    /// Takes the arguments of one row, which have the aggregate's types. `Null` does not count, but for `count(*)` and `array_agg`. An
    /// error if a sum does not fit.
    pub fn add(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        if self.id == AggregateId::CountRows {
            self.count += 1;
            return Ok(());
        }
        let Some(value) = arguments.first() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "an aggregate was given no argument"));
        };
        if self.id == AggregateId::ArrayAggregate {
            self.values.push(value.clone());
            return Ok(());
        }
        if self.id.is_json() {
            return self.add_json(value, arguments.get(1));
        }
        if value.is_null() {
            return Ok(());
        }
        if self.id.is_ordered() {
            self.fraction = arguments.get(1).cloned().unwrap_or(Datum::Null);
            self.values.push(value.clone());
            return Ok(());
        }
        if self.id.is_of_pairs() {
            if let (Datum::Float(y), Some(Datum::Float(x))) = (value, arguments.get(1)) {
                self.count += 1;
                self.sums.add(*y, *x);
            }
            return Ok(());
        }
        self.count += 1;
        match self.id {
            AggregateId::Sum | AggregateId::Average => self.add_to_sum(value)?,
            AggregateId::Least => self.keep_if(value, |order| order.is_lt()),
            AggregateId::Greatest => self.keep_if(value, |order| order.is_gt()),
            AggregateId::BoolAnd => self.keep_if(value, |order| order.is_lt()),
            AggregateId::BoolOr => self.keep_if(value, |order| order.is_gt()),
            AggregateId::StringAggregate => self.append(value, arguments.get(1)),
            AggregateId::BitAnd => self.combine(value, |known, value| known & value),
            AggregateId::BitOr => self.combine(value, |known, value| known | value),
            AggregateId::BitXor => self.combine(value, |known, value| known ^ value),
            id if id.is_variance() => match value {
                Datum::Numeric(value) => self.sums.add_exact(value)?,
                Datum::Float(value) => self.sums.add_one(*value),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn combine(&mut self, value: &Datum, combined: fn(i64, i64) -> i64) {
        self.value = match (&self.value, value) {
            (Datum::Int(known), Datum::Int(value)) => Datum::Int(combined(*known, *value)),
            (_, value) => value.clone(),
        };
    }

    /// Appends an element of an array, or a key and its value.
    fn add_json(&mut self, value: &Datum, second: Option<&Datum>) -> Result<(), SqlError> {
        let is_first = self.count == 0;
        self.count += 1;
        let Some(second) = second else {
            self.json.push_str(match self.id {
                _ if is_first => "[",
                AggregateId::JsonLines if !value.is_null() => ", \n ",
                _ => ", ",
            });
            self.json.push_str(&functions::json_of(value, self.argument, self.zone));
            return functions::check_length(self.json.len());
        };
        if value.is_null() {
            let message = "field name must not be null";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        self.json.push_str(if is_first { "{ " } else { ", " });
        self.json.push_str(&functions::json_key(value, self.argument, 1, self.zone)?);
        self.json.push_str(" : ");
        self.json.push_str(&functions::json_of(second, self.second, self.zone));
        functions::check_length(self.json.len())
    }

    fn finish_json(mut self) -> Result<Datum, SqlError> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        self.json.push_str(if self.second == SqlType::UNKNOWN { "]" } else { " }" });
        if self.result == SqlType::JSONB {
            super::text::parse(&self.json, SqlType::JSONB, self.zone)
        } else {
            Ok(Datum::Text(self.json))
        }
    }

    /// Takes what another state has seen, as if these rows came after its own. For aggregates that [merge](Aggregate::merges). An error
    /// if a sum does not fit.
    pub fn merge(&mut self, later: &State) -> Result<(), SqlError> {
        self.count += later.count;
        if later.value.is_null() {
            return Ok(());
        }
        match self.id {
            AggregateId::Sum | AggregateId::Average => self.add_to_sum(&later.value)?,
            AggregateId::Least | AggregateId::BoolAnd => self.keep_if(&later.value, |order| order.is_lt()),
            AggregateId::Greatest | AggregateId::BoolOr => self.keep_if(&later.value, |order| order.is_gt()),
            _ => {}
        }
        Ok(())
    }

    fn keep_if(&mut self, value: &Datum, better: fn(std::cmp::Ordering) -> bool) {
        if self.value.is_null() || better(compare::compare(value, &self.value)) {
            self.value = value.clone();
        }
    }

    fn append(&mut self, value: &Datum, separator: Option<&Datum>) {
        match (&mut self.value, value) {
            (Datum::Text(sum), Datum::Text(value)) => {
                if let Some(Datum::Text(separator)) = separator {
                    sum.push_str(separator);
                }
                sum.push_str(value);
            }
            (Datum::Bytes(sum), Datum::Bytes(value)) => {
                if let Some(Datum::Bytes(separator)) = separator {
                    sum.extend_from_slice(separator);
                }
                sum.extend_from_slice(value);
            }
            (sum, value) => *sum = value.clone(),
        }
    }

    fn add_to_sum(&mut self, value: &Datum) -> Result<(), SqlError> {
        // Integers are summed without an end, and floats of an average with all digits of a double.
        let value = match value {
            Datum::Int(value) => Datum::Numeric(Numeric::from(*value)),
            value => value.clone(),
        };
        if let (Datum::Numeric(sum), Datum::Numeric(value)) = (&mut self.value, &value) {
            *sum = sum.add(value)?;
            return Ok(());
        }
        if self.value.is_null() {
            self.value = value;
            return Ok(());
        }
        let float = if self.id == AggregateId::Sum { self.result } else { SqlType::FLOAT8 };
        let ty = match value {
            Datum::Float(_) => float,
            Datum::Interval { .. } => SqlType::INTERVAL,
            _ => SqlType::NUMERIC,
        };
        let resolved = Resolved { left: ty, right: ty, result: ty };
        self.value = operators::binary(BinaryOperator::Add, &self.value, &value, &resolved, Zone::Utc)?;
        Ok(())
    }

    /// The value of all rows: 0 of no rows for counts, else `Null`. An error if it does not fit.
    pub fn finish(self) -> Result<Datum, SqlError> {
        match self.id {
            AggregateId::CountRows | AggregateId::Count => Ok(Datum::Int(self.count)),
            AggregateId::ArrayAggregate if self.values.is_empty() => Ok(Datum::Null),
            AggregateId::ArrayAggregate => Ok(Datum::Array(self.values)),
            AggregateId::Sum => match &self.value {
                Datum::Numeric(sum) if self.result == SqlType::INT8 => {
                    let sum = sum.to_i64().ok_or_else(|| super::cast::out_of_range(self.result))?;
                    Ok(Datum::Int(sum))
                }
                _ => Ok(self.value),
            },
            AggregateId::Average => average(&self.value, self.count),
            AggregateId::RegressionCount => Ok(Datum::Int(self.count)),
            id if id.is_json() => self.finish_json(),
            id if id.is_ordered() => ordered::finish(id, &self.values, self.argument, &self.fraction),
            id if id.is_of_pairs() || id.is_variance() => self.sums.finish(id, self.count),
            _ => Ok(self.value),
        }
    }

    /// The [work](crate::execute::WORK_MAX) of copying it and of [finishing](State::finish) it: JSON is parsed, values are sorted, large numbers
    /// divided.
    pub(crate) fn work(&self) -> u64 {
        let values: u64 = self.values.iter().map(|value| 4 + length(value) / 32).sum();
        let value = length(&self.value) / 32 + 64 * work_of_digits(&self.value);
        8 + values + value + 3 * self.json.len() as u64 + self.sums.work()
    }

    /// Bytes of the text that it has so far.
    pub(crate) fn text_bytes(&self) -> usize {
        self.json.len() + if let Datum::Text(text) = &self.value { text.len() } else { 0 }
    }

    /// The type of the first argument.
    pub fn argument(&self) -> SqlType {
        self.argument
    }
}
