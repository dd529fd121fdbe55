//! Rows that are compared with rows.

use sqlparser::ast::{self, Expr, Query};

use super::Binder;
use super::expression::{boolean, unnested};
use super::functions::arguments_of;
use super::names::last_name;
use super::scope::Bound;
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node, SubqueryKind};
use crate::types::SqlType;
use crate::types::operators::BinaryOperator;

/// The values of a row that is written down: `(1, 2)` or `ROW(1, 2)`.
pub(super) fn row_of(written: &Expr) -> Option<Vec<Expr>> {
    match unnested(written) {
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Function(function) if function.over.is_none() && last_name(&function.name).ok()? == "row" => {
            arguments_of(function).ok()
        }
        _ => None,
    }
}

impl Binder<'_> {
    /// An operator between a row and another, or the only row of a query; `None` where no row is on the left, or a value on the right.
    pub(super) fn compare_rows(
        &mut self,
        left: &Expr,
        operator: &ast::BinaryOperator,
        right: &Expr,
    ) -> Result<Option<Bound>, SqlError> {
        let Some(lefts) = row_of(left) else { return Ok(None) };
        if let Some(rights) = row_of(right) {
            return self.compare_tuples(&lefts, operator, &rights).map(Some);
        }
        let Expr::Subquery(query) = unnested(right) else { return Ok(None) };
        let rights = self.values_of_row(query)?;
        if rights.len() != lefts.len() {
            let which = if rights.len() < lefts.len() { "few" } else { "many" };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery has too {which} columns")));
        }
        let lefts = self.all_values(&lefts)?;
        self.compare_values(lefts, operator, rights).map(Some)
    }

    /// The values of the only row of a query, for each of which it is asked.
    fn values_of_row(&mut self, query: &Query) -> Result<Vec<Bound>, SqlError> {
        let (node, types) = self.subquery(query)?;
        let mut changes = false;
        node.visit(0, &mut |expression, _| {
            use Expression::{NextValue, Random, SetValue};
            changes |= matches!(expression, NextValue(_) | SetValue { .. } | Random(_));
        });
        if changes && types.len() > 1 {
            let what = "a row that is compared with that of a query in which a value differs each time";
            return Err(SqlError::unsupported(what));
        }
        self.count_copies(types.len(), &node)?;
        let value = |(column, data_type): (u16, SqlType)| {
            let expressions = vec![Expression::Column(column)];
            let column = Node::Project { input: Box::new(node.clone()), expressions };
            Bound { expression: self.of_query(SubqueryKind::Scalar, column), data_type }
        };
        Ok((0..).zip(types).map(value).collect())
    }

    pub(super) fn all_values(&mut self, written: &[Expr]) -> Result<Vec<Bound>, SqlError> {
        written.iter().map(|value| self.expression(value)).collect()
    }

    /// A comparison of two rows, which have as many values.
    pub(super) fn compare_tuples(
        &mut self,
        lefts: &[Expr],
        operator: &ast::BinaryOperator,
        rights: &[Expr],
    ) -> Result<Bound, SqlError> {
        if lefts.is_empty() {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length"));
        }
        same_length(lefts.len(), rights.len())?;
        let (lefts, rights) = (self.all_values(lefts)?, self.all_values(rights)?);
        self.compare_values(lefts, operator, rights)
    }

    /// The same with one whose values are known.
    pub(super) fn compare_with_row(
        &mut self,
        lefts: &[Bound],
        operator: &ast::BinaryOperator,
        rights: &[Expr],
    ) -> Result<Bound, SqlError> {
        same_length(lefts.len(), rights.len())?;
        let rights = self.all_values(rights)?;
        self.compare_named(lefts, operator, &rights)
    }

    fn compare_values(
        &mut self,
        lefts: Vec<Bound>,
        operator: &ast::BinaryOperator,
        rights: Vec<Bound>,
    ) -> Result<Bound, SqlError> {
        if matches!(operator, ast::BinaryOperator::Eq | ast::BinaryOperator::NotEq) {
            return self.compare_named(&lefts, operator, &rights);
        }
        let count = lefts.len();
        self.with_all_local([lefts, rights].concat(), |binder, values| {
            binder.compare_named(&values[..count], operator, &values[count..])
        })
    }

    fn compare_named(
        &mut self,
        lefts: &[Bound],
        operator: &ast::BinaryOperator,
        rights: &[Bound],
    ) -> Result<Bound, SqlError> {
        let mut pairs = Vec::with_capacity(lefts.len());
        for (left, right) in lefts.iter().zip(rights) {
            pairs.push(self.operate(BinaryOperator::Equal, left.clone(), right.clone())?.expression);
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
                    let (left, right) = (lefts[place].clone(), rights[place].clone());
                    all.push(self.operate(operator, left, right)?.expression);
                    any.push(Expression::And(all));
                }
                Ok(boolean(Expression::Or(any)))
            }
        }
    }
}

fn same_length(left: usize, right: usize) -> Result<(), SqlError> {
    if left == right {
        return Ok(());
    }
    Err(SqlError::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions"))
}
