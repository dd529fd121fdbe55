//! How tightly operators bind, where the parser has it otherwise than PostgreSQL: a sign binds tighter than `^`, and any other operator
//! before its operand less tightly than `+` and `-`.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

use super::Binder;
use super::scope::Bound;
use crate::error::SqlError;

impl Binder<'_> {
    /// A function that is written as an operator before its argument.
    pub(super) fn prefix_function(&mut self, name: &str, operand: &Expr) -> Result<Bound, SqlError> {
        let operand = self.expression(operand)?;
        self.call(name, vec![operand])
    }
}

/// The expression with a sign before the first operand of the powers that the parser has put it before.
pub(super) fn bound_tightly(sign: UnaryOperator, operand: &Expr) -> Option<Expr> {
    if let Expr::UnaryOp { op: inner @ (UnaryOperator::Plus | UnaryOperator::Minus), expr } = operand {
        return bound_tightly(sign, &bound_tightly(*inner, expr)?);
    }
    let Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } = operand else { return None };
    let first = bound_tightly(sign, left).unwrap_or_else(|| Expr::UnaryOp { op: sign, expr: left.clone() });
    Some(Expr::BinaryOp { left: Box::new(first), op: BinaryOperator::PGExp, right: right.clone() })
}

/// The sum or difference as what the operator before its first operand stands before, if there is one.
pub(super) fn spread_prefix(left: &Expr, operator: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let mut first = left;
    let mut further = vec![(operator, right)];
    while let Expr::BinaryOp { left, op, right } = first
        && matches!(op, BinaryOperator::Plus | BinaryOperator::Minus)
    {
        further.push((op, right));
        first = left;
    }
    let Expr::UnaryOp { op: prefix, expr } = first else { return None };
    if !is_other_prefix(*prefix) {
        return None;
    }
    let sum = further.into_iter().rev().fold((**expr).clone(), |left, (op, right)| Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right.clone()),
    });
    Some(Expr::UnaryOp { op: *prefix, expr: Box::new(sum) })
}

fn is_other_prefix(operator: UnaryOperator) -> bool {
    use UnaryOperator::{BitwiseNot, PGAbs, PGCubeRoot, PGSquareRoot};
    matches!(operator, BitwiseNot | PGAbs | PGSquareRoot | PGCubeRoot)
}
