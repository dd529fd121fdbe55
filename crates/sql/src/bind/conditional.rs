//! `CASE` and `BETWEEN`.

use sqlparser::ast::{self, Expr};

use super::Binder;
use super::expression::boolean;
use super::locals::is_plain_operand;
use super::scope::Bound;
use crate::error::SqlError;
use crate::plan::Expression;
use crate::types::operators::BinaryOperator;

impl Binder<'_> {
    /// `BETWEEN`: its operand is computed once.
    pub(super) fn between(
        &mut self,
        operand: &Expr,
        negated: bool,
        low: &Expr,
        high: &Expr,
    ) -> Result<Bound, SqlError> {
        let (at_least, at_most) = (BinaryOperator::GreaterOrEqual, BinaryOperator::LessOrEqual);
        let both = if is_plain_operand(operand) {
            let low = self.compared(at_least, operand, low)?.expression;
            let high = self.compared(at_most, operand, high)?.expression;
            boolean(Expression::And(vec![low, high]))
        } else {
            let operand = self.expression(operand)?;
            self.with_locals([operand], |binder, [operand]| {
                let (low, high) = (binder.expression(low)?, binder.expression(high)?);
                let low = binder.operate(at_least, operand.clone(), low)?.expression;
                let high = binder.operate(at_most, operand, high)?.expression;
                Ok(boolean(Expression::And(vec![low, high])))
            })?
        };
        Ok(if negated { boolean(Expression::Not(Box::new(both.expression))) } else { both })
    }

    /// `CASE`: what it compares with others is computed once.
    pub(super) fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Result<Bound, SqlError> {
        match operand.filter(|operand| !is_plain_operand(operand)) {
            None => self.case_of(conditions, otherwise, |binder, when| match operand {
                Some(operand) => Ok(binder.compared(BinaryOperator::Equal, operand, when)?.expression),
                None => binder.condition(when, "CASE/WHEN"),
            }),
            Some(operand) => {
                let operand = self.expression(operand)?;
                self.with_locals([operand], |binder, [operand]| {
                    binder.case_of(conditions, otherwise, |binder, when| {
                        let when = binder.expression(when)?;
                        Ok(binder.operate(BinaryOperator::Equal, operand.clone(), when)?.expression)
                    })
                })
            }
        }
    }

    fn case_of(
        &mut self,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Expr>,
        mut holds: impl FnMut(&mut Self, &Expr) -> Result<Expression, SqlError>,
    ) -> Result<Bound, SqlError> {
        let mut whens = Vec::new();
        let mut results = Vec::new();
        for branch in conditions {
            whens.push(holds(self, &branch.condition)?);
            results.push(self.expression(&branch.result)?);
        }
        // What is given otherwise has the first say in the type.
        if let Some(otherwise) = otherwise {
            results.insert(0, self.expression(otherwise)?);
        }
        let (results, data_type) = self.unified(results, "CASE")?;
        let mut results = results.into_iter();
        let otherwise = otherwise.and_then(|_| results.next()).map(Box::new);
        let branches = whens.into_iter().zip(results).collect();
        Ok(Bound { expression: Expression::Case { branches, otherwise }, data_type })
    }
}
