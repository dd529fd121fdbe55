//! Values that an expression names more than once: they are computed once, and are in the plan once, as they may be made of others in the same
//! way, each of which would double it.

use sqlparser::ast::Expr;

use super::Binder;
use super::expression::unnested;
use super::scope::Bound;
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node};

/// Most expressions that are put into a plan more often than they are written.
const COPIES_MAX: usize = 1 << 18;

impl Binder<'_> {
    /// Counts a query that is put into the plan so many times, and is not a value that could be local.
    ///
    /// # Errors
    /// When there are too many copies: each query of several may have others within that are copied.
    pub(super) fn count_copies(&mut self, copies: usize, query: &Node) -> Result<(), SqlError> {
        let mut size = 0;
        query.visit(0, &mut |_, _| size += 1);
        self.copies += copies * size;
        if self.copies <= COPIES_MAX {
            return Ok(());
        }
        let message = "rows are compared with queries whose rows are compared with queries, too many times";
        Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint("Use EXISTS, or a join."))
    }

    /// An expression that may name each of some values any number of times. All [locals](Expression::Local) that it names are to be among these:
    /// it has some of its own.
    pub(super) fn with_locals<const COUNT: usize>(
        &mut self,
        values: [Bound; COUNT],
        body: impl FnOnce(&mut Self, [Bound; COUNT]) -> Result<Bound, SqlError>,
    ) -> Result<Bound, SqlError> {
        let mut locals = Locals::default();
        let values = match values.iter().all(|value| is_small(&value.expression)) {
            true => values,
            false => values.map(|value| locals.name(value)),
        };
        Ok(locals.around(body(self, values)?))
    }

    /// The same for any number of values.
    pub(super) fn with_all_local(
        &mut self,
        values: Vec<Bound>,
        body: impl FnOnce(&mut Self, &[Bound]) -> Result<Bound, SqlError>,
    ) -> Result<Bound, SqlError> {
        let mut locals = Locals::default();
        let values = match values.iter().all(|value| is_small(&value.expression)) {
            true => values,
            false => values.into_iter().map(|value| locals.name(value)).collect(),
        };
        Ok(locals.around(body(self, &values)?))
    }
}

/// The values of a [`Expression::Let`] that is being made.
#[derive(Default)]
struct Locals(Vec<Expression>);

impl Locals {
    /// A value as the expression is to name it.
    fn name(&mut self, value: Bound) -> Bound {
        if is_leaf(&value.expression) {
            return value;
        }
        self.0.push(value.expression);
        Bound { expression: Expression::Local((self.0.len() - 1) as u16), data_type: value.data_type }
    }

    /// The expression with these values around it.
    fn around(self, body: Bound) -> Bound {
        if self.0.is_empty() {
            return body;
        }
        let expression = Expression::Let { values: self.0, body: Box::new(body.expression) };
        Bound { expression, data_type: body.data_type }
    }
}

/// Whether an expression can as well be there several times, if no others become local.
fn is_small(expression: &Expression) -> bool {
    is_leaf(expression) || matches!(expression, Expression::Local(_))
}

/// Whether an expression can as well be there several times, whatever is local.
fn is_leaf(expression: &Expression) -> bool {
    use Expression::{Column, Constant, Outer, Parameter};
    matches!(expression, Constant(_) | Parameter(_) | Column(_) | Outer { .. })
}

/// Whether what is written is a name or a value, which each comparison may give a type of its own.
pub(super) fn is_plain_operand(written: &Expr) -> bool {
    matches!(unnested(written), Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
}
