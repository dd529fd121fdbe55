//! Values made of other types.

use super::Binder;
use super::scope::Bound;
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::types::cast::{self, CastContext};
use crate::types::{BaseType, Datum, SqlType, text};

impl Binder<'_> {
    /// Makes a value one of another type, where that happens by itself.
    pub(super) fn implicit(&mut self, value: Bound, to: SqlType) -> Result<Bound, SqlError> {
        self.coerced(value, to, CastContext::Implicit)
    }

    /// Makes a value one of another type, as asked for.
    pub(super) fn explicit(&mut self, value: Bound, to: SqlType) -> Result<Bound, SqlError> {
        let value = self.of_fields(value, to)?;
        let cast = self.coerced(value, to, CastContext::Explicit)?;
        Ok(fitted(cast, to, true))
    }

    /// Makes a value one that a function takes: it was chosen for that.
    pub(super) fn argument(&mut self, value: Bound, to: SqlType) -> Result<Expression, SqlError> {
        Ok(self.coerced(value, to, CastContext::Explicit)?.expression)
    }

    /// Makes a value one that a column can take.
    pub(super) fn assigned_to(
        &mut self,
        value: Bound,
        to: SqlType,
        column: &str,
    ) -> Result<Expression, SqlError> {
        let from = value.data_type;
        let value = self.of_fields(value, to)?;
        let coerced = self.coerced(value, to, CastContext::Assignment).map_err(|error| {
            if error.state != SqlState::CANNOT_COERCE {
                return error;
            }
            let message = format!(
                "column \"{column}\" is of type {} but expression is of type {}",
                to.name(),
                from.name()
            );
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.")
        })?;
        Ok(fitted(coerced, to, false).expression)
    }

    /// Makes a value a number of rows, where `of` is the clause that says how many.
    pub(super) fn counting(&mut self, value: Bound, of: &str) -> Result<Expression, SqlError> {
        let from = value.data_type;
        let counted = self.coerced(value, SqlType::INT8, CastContext::Assignment).map_err(|error| {
            if error.state != SqlState::CANNOT_COERCE {
                return error;
            }
            let message = format!("argument of {of} must be type bigint, not type {}", from.name());
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        })?;
        Ok(counted.expression)
    }

    pub(super) fn coerced(
        &mut self,
        value: Bound,
        to: SqlType,
        context: CastContext,
    ) -> Result<Bound, SqlError> {
        let from = value.data_type;
        if from.is_same(to) {
            return Ok(Bound { data_type: to, ..value });
        }
        if from == SqlType::UNKNOWN {
            return self.known(value, to);
        }
        match cast::allowed(from, to) {
            Some(weakest) if weakest <= context && super::nulls::is_null(&value.expression) => {
                Ok(Bound { expression: value.expression, data_type: to })
            }
            Some(weakest) if weakest <= context => {
                let from = Box::new((value.expression, from));
                let (operand, from) = (Box::new(from.0), from.1);
                Ok(Bound { expression: Expression::Cast { operand, from, to: to.plain() }, data_type: to })
            }
            _ => {
                let message = format!("cannot cast type {} to {}", from.name(), to.name());
                Err(SqlError::new(SqlState::CANNOT_COERCE, message))
            }
        }
    }

    /// Gives a literal or parameter of no known type one.
    fn known(&mut self, value: Bound, to: SqlType) -> Result<Bound, SqlError> {
        let expression = match value.expression {
            Expression::Constant(Datum::Text(literal)) if let Some(present) = present(&literal, to) => {
                let written = crate::syntax::parse_expression(present)?;
                let value = self.expression(&written)?;
                return self.explicit(value, to);
            }
            Expression::Constant(Datum::Text(literal)) => {
                Expression::Constant(self.value_of_literal(&literal, to.plain())?)
            }
            Expression::Parameter(number) => {
                let slot = &mut self.parameters[usize::from(number)];
                match *slot {
                    None => *slot = Some(to.plain()),
                    // It was given another type where it stood before.
                    Some(known) if !known.is_same(to) => {
                        let operand = Box::new(Expression::Parameter(number));
                        let expression = Expression::Cast { operand, from: known, to: to.plain() };
                        return Ok(Bound { expression, data_type: to });
                    }
                    Some(_) => {}
                }
                Expression::Parameter(number)
            }
            Expression::Constant(Datum::Null) => Expression::Constant(Datum::Null),
            other => {
                let from = SqlType::TEXT;
                Expression::Cast { operand: Box::new(other), from, to: to.plain() }
            }
        };
        Ok(Bound { expression, data_type: to })
    }
}

impl Binder<'_> {
    /// Reads a literal as an interval of the fields of a type: they say what a number without a unit counts. What becomes such a value in
    /// another way than as a literal that is cast, or that a column takes, is only cut.
    fn of_fields(&mut self, value: Bound, to: SqlType) -> Result<Bound, SqlError> {
        match value.expression {
            Expression::Constant(Datum::Text(literal))
                if value.data_type == SqlType::UNKNOWN && to.base == BaseType::Interval && !to.array =>
            {
                let expression = Expression::Constant(self.value_of_literal(&literal, to)?);
                Ok(Bound { expression, data_type: to })
            }
            expression => Ok(Bound { expression, ..value }),
        }
    }

    /// The value of a literal, in which a moment without a zone is in that of the session.
    fn value_of_literal(&mut self, literal: &str, to: SqlType) -> Result<Datum, SqlError> {
        let value = text::parse(literal, to, self.surroundings.zone)?;
        if to.base == BaseType::TimestampTz && !self.moments.iter().any(|(known, _)| known == literal) {
            self.moments.push((literal.to_owned(), to));
        }
        Ok(value)
    }
}

/// What a word for the present stands for, if a literal of a type that has them is one: the time of the transaction, whenever it runs.
fn present(literal: &str, to: SqlType) -> Option<&'static str> {
    let is_moment = [SqlType::DATE, SqlType::TIMESTAMP, SqlType::TIMESTAMPTZ].contains(&to.plain());
    let word = literal.trim().to_ascii_lowercase();
    let stands_for = match word.as_str() {
        "now" => "now()",
        "today" => "current_date",
        "tomorrow" => "current_date + 1",
        "yesterday" => "current_date - 1",
        _ => return None,
    };
    is_moment.then_some(stands_for)
}

/// The value with the length of its type applied.
fn fitted(value: Bound, to: SqlType, explicit: bool) -> Bound {
    if to.modifier < 0 {
        return Bound { data_type: to, ..value };
    }
    let expression = match value.expression {
        Expression::Constant(datum) => match cast::coerce_length(datum.clone(), to, explicit) {
            Ok(fitted) => Expression::Constant(fitted),
            Err(_) => Expression::Coerce { operand: Box::new(Expression::Constant(datum)), to, explicit },
        },
        other => Expression::Coerce { operand: Box::new(other), to, explicit },
    };
    Bound { expression, data_type: to }
}

/// The type that values of two types can share.
pub(super) fn common_type(left: SqlType, right: SqlType, of: &str) -> Result<SqlType, SqlError> {
    if left.is_same(right) {
        return Ok(if left.modifier == right.modifier { left } else { left.plain() });
    }
    if left == SqlType::UNKNOWN {
        return Ok(right);
    }
    if right == SqlType::UNKNOWN {
        return Ok(left);
    }
    let free = |from, to| cast::allowed(from, to) == Some(CastContext::Implicit);
    if left.category() == right.category() {
        // The first stays, unless it cannot be what the other can.
        if !left.is_preferred() && free(left, right) && !free(right, left) {
            return Ok(right.plain());
        }
        if free(right, left) {
            return Ok(left.plain());
        }
    }
    let message = format!("{of} types {} and {} cannot be matched", left.name(), right.name());
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
}
