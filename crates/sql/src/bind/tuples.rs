//! Rows that are compared with rows.

use sqlparser::ast::{self, Expr};

use super::Binder;
use super::expression::boolean;
use super::scope::Bound;
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::types::operators::BinaryOperator;

impl Binder<'_> {
    /// A comparison of two rows, which have as many values.
    pub(super) fn compare_tuples(
        &mut self,
        lefts: &[Expr],
        operator: &ast::BinaryOperator,
        rights: &[Expr],
    ) -> Result<Bound, SqlError> {
        if lefts.len() != rights.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
            ));
        }
        let mut pairs = Vec::with_capacity(lefts.len());
        for (left, right) in lefts.iter().zip(rights) {
            pairs.push(self.compared(BinaryOperator::Equal, left, right)?.expression);
        }
        match operator {
            ast::BinaryOperator::Eq => Ok(boolean(Expression::And(pairs))),
            ast::BinaryOperator::NotEq => Ok(boolean(Expression::Not(Box::new(Expression::And(pairs))))),
            other => {
                let (strict, last) = match other {
                    ast::BinaryOperator::Lt => (BinaryOperator::Less, BinaryOperator::Less),
                    ast::BinaryOperator::LtEq => (BinaryOperator::Less, BinaryOperator::LessOrEqual),
                    ast::BinaryOperator::Gt => (BinaryOperator::Greater, BinaryOperator::Greater),
                    ast::BinaryOperator::GtEq => (BinaryOperator::Greater, BinaryOperator::GreaterOrEqual),
                    other => return Err(SqlError::unsupported(format!("{other} between rows"))),
                };
                let mut any = Vec::new();
                for place in 0..lefts.len() {
                    let operator = if place + 1 == lefts.len() { last } else { strict };
                    let mut all = pairs[..place].to_vec();
                    all.push(self.compared(operator, &lefts[place], &rights[place])?.expression);
                    any.push(Expression::And(all));
                }
                Ok(boolean(Expression::Or(any)))
            }
        }
    }
}
