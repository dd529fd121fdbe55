//! Functions and operators that SQL spells in ways of its own: `SUBSTRING(a FROM b)`, `a LIKE b ESCAPE c` and their like.

use sqlparser::ast::{self, Expr};

use super::Binder;
use super::expression::{constant, text_constant};
use super::scope::Bound;
use super::types::interval_of_literal;
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::types::operators::BinaryOperator;
use crate::types::{Datum, SqlType};

impl Binder<'_> {
    /// Such a function or operator; `None` for any other expression.
    pub(super) fn spelled_function(&mut self, written: &Expr) -> Result<Option<Bound>, SqlError> {
        let (name, arguments) = match written {
            Expr::Interval(interval) => return self.interval(interval).map(Some),
            Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } => {
                return self.pattern(written);
            }
            Expr::Extract { field, expr, .. } => {
                let field = text_constant(field.to_string().to_lowercase().trim_matches('\''));
                ("extract", vec![field, self.expression(expr)?])
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let given = [expr, overlay_what, overlay_from].into_iter().chain(overlay_for);
                ("overlay", self.all(given.map(AsRef::as_ref))?)
            }
            Expr::Position { expr, r#in } => ("strpos", self.all([&**r#in, &**expr])?),
            Expr::Substring { expr, substring_from, substring_for, shorthand, .. } => {
                let (from, length) = (substring_from.as_deref(), substring_for.as_deref());
                return self.substring(expr, from, length, *shorthand).map(Some);
            }
            Expr::Trim { trim_where, trim_what, expr, .. } => {
                let name = match trim_where {
                    None | Some(ast::TrimWhereField::Both) => "btrim",
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                };
                (name, self.all(std::iter::once(&**expr).chain(trim_what.as_deref()))?)
            }
            Expr::Ceil { expr, .. } => ("ceil", self.all([&**expr])?),
            Expr::Floor { expr, .. } => ("floor", self.all([&**expr])?),
            Expr::AtTimeZone { timestamp, time_zone } => {
                ("timezone", self.all([&**time_zone, &**timestamp])?)
            }
            _ => return Ok(None),
        };
        self.call(name, arguments).map(Some)
    }

    fn all<'e>(&mut self, written: impl IntoIterator<Item = &'e Expr>) -> Result<Vec<Bound>, SqlError> {
        written.into_iter().map(|one| self.expression(one)).collect()
    }

    /// A part of a text by its place, or by a regular expression, which `substr` does not take.
    fn substring(
        &mut self,
        value: &Expr,
        from: Option<&Expr>,
        length: Option<&Expr>,
        is_substr: bool,
    ) -> Result<Bound, SqlError> {
        let mut arguments = self.all([value])?;
        match from {
            Some(from) => arguments.push(self.expression(from)?),
            None => arguments.push(constant(Datum::Int(1), SqlType::INT4)),
        }
        arguments.extend(self.all(length)?);
        let is_text = |bound: &Bound| bound.data_type.is_text() || bound.data_type == SqlType::UNKNOWN;
        let takes_pattern = length.is_none() && arguments.iter().all(is_text);
        self.call(if takes_pattern && !is_substr { "substring" } else { "substr" }, arguments)
    }

    /// A text and a pattern, with an escape where it needs one.
    fn pattern(&mut self, written: &Expr) -> Result<Option<Bound>, SqlError> {
        use BinaryOperator::*;
        let (name, operator, value, pattern, escape) = match written {
            Expr::Like { negated, expr, pattern, escape_char, any: false } => {
                ("like_escape", if *negated { NotLike } else { Like }, expr, pattern, escape_char)
            }
            Expr::ILike { negated, expr, pattern, escape_char, any: false } => {
                ("like_escape", if *negated { NotILike } else { ILike }, expr, pattern, escape_char)
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                let operator = if *negated { RegexNotMatch } else { RegexMatch };
                ("similar_to_escape", operator, expr, pattern, escape_char)
            }
            _ => return Ok(None),
        };
        let value = self.expression(value)?;
        let arguments = self.all(std::iter::once(&**pattern).chain(escape.as_deref()))?;
        let pattern = self.call(name, arguments)?;
        self.operate(operator, value, pattern).map(Some)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Bound, SqlError> {
        let value = self.expression(&interval.value)?;
        let data_type = interval_of_literal(interval)?;
        match &value.expression {
            Expression::Constant(Datum::Text(_)) => self.explicit(value, data_type),
            _ if interval.leading_field.is_none() => self.explicit(value, data_type),
            _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "the amount of an interval is written as a text")
                .with_hint("Multiply: 5 * INTERVAL '1' DAY, or use make_interval.")),
        }
    }
}
