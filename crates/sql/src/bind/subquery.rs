//! Queries within expressions, and what a value is looked for in.

use sqlparser::ast::{self, Expr, InTarget, Query};

use super::coerce::common_type;
use super::expression::{binary_operator, boolean, unnested};
use super::kept::kept;
use super::locals::is_plain_operand;
use super::scope::{Bound, Level};
use super::tuples::row_of;
use super::{Binder, walk};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node, SubqueryKind};
use crate::types::cast::CastContext;
use crate::types::operators::{self, BinaryOperator};
use crate::types::{Datum, SqlType};

impl Binder<'_> {
    pub(super) fn is_in(
        &mut self,
        operand: &Expr,
        target: &InTarget,
        negated: bool,
    ) -> Result<Bound, SqlError> {
        let found = match target {
            InTarget::List(list) => match row_of(operand) {
                Some(operands) => self.row_in_list(&operands, list)?,
                None => self.in_list(operand, list)?,
            },
            InTarget::Subquery(query) => {
                if let Some(operands) = row_of(operand) {
                    return self.row_among_rows(&operands, query, negated);
                }
                let operand = self.expression(operand)?;
                let (query, data_type) = self.value_query(query)?;
                let resolved =
                    operators::resolve_binary(BinaryOperator::Equal, operand.data_type, data_type)?;
                let operand = Box::new(self.implicit(operand, resolved.left)?.expression);
                let query = self.cast_rows(query, data_type, resolved.right)?;
                self.of_query(SubqueryKind::In { operand, resolved }, query)
            }
            other => return Err(SqlError::unsupported(format!("IN {other}"))),
        };
        Ok(boolean(if negated { Expression::Not(Box::new(found)) } else { found }))
    }

    /// Whether a row is among others that are written down.
    fn row_in_list(&mut self, operands: &[Expr], list: &[Expr]) -> Result<Expression, SqlError> {
        let rows = list.iter().map(|other| {
            row_of(other).ok_or_else(|| SqlError::new(SqlState::DATATYPE_MISMATCH, "IN: a row and a value"))
        });
        let rows: Vec<Vec<Expr>> = rows.collect::<Result<_, _>>()?;
        let equal = ast::BinaryOperator::Eq;
        if operands.iter().all(is_plain_operand) {
            let is_it = |row: &Vec<Expr>| Ok(self.compare_tuples(operands, &equal, row)?.expression);
            return Ok(Expression::Or(rows.iter().map(is_it).collect::<Result<_, SqlError>>()?));
        }
        let operands = self.all_values(operands)?;
        let any = self.with_all_local(operands, |binder, operands| {
            let is_it = |row: &Vec<Expr>| Ok(binder.compare_with_row(operands, &equal, row)?.expression);
            Ok(boolean(Expression::Or(rows.iter().map(is_it).collect::<Result<_, SqlError>>()?)))
        })?;
        Ok(any.expression)
    }

    fn row_among_rows(&mut self, operands: &[Expr], query: &Query, negated: bool) -> Result<Bound, SqlError> {
        let found = self.row_in_query(operands, query)?;
        Ok(boolean(if negated { Expression::Not(Box::new(found)) } else { found }))
    }

    /// Whether a row is among those of a query: unknown if it is not, but for one of which that cannot be said.
    fn row_in_query(&mut self, operands: &[Expr], query: &Query) -> Result<Expression, SqlError> {
        let (node, types) = self.subquery(query)?;
        if types.len() != operands.len() {
            let which = if types.len() < operands.len() { "few" } else { "many" };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery has too {which} columns")));
        }
        // Seen from the query's rows, what the operands name is around.
        self.levels.push(Level::default());
        let equal = self.equal_columns(operands, &types);
        self.levels.pop();
        let equal = Expression::And(equal?);
        let is_unknown = Expression::IsNull { operand: Box::new(equal.clone()), negated: false };
        self.count_copies(2, &Node::Filter { input: Box::new(node.clone()), condition: equal.clone() })?;
        let exists = |condition| {
            let rows = Node::Filter { input: Box::new(node.clone()), condition };
            self.of_query(SubqueryKind::Exists, rows)
        };
        let constant = |value| Expression::Constant(value);
        Ok(Expression::Case {
            branches: vec![
                (exists(equal), constant(Datum::Bool(true))),
                (exists(is_unknown), constant(Datum::Null)),
            ],
            otherwise: Some(Box::new(constant(Datum::Bool(false)))),
        })
    }

    fn equal_columns(&mut self, operands: &[Expr], types: &[SqlType]) -> Result<Vec<Expression>, SqlError> {
        let mut equal = Vec::with_capacity(operands.len());
        for ((operand, data_type), column) in operands.iter().zip(types).zip(0..) {
            let operand = self.expression(operand)?;
            let column = Bound { expression: Expression::Column(column), data_type: *data_type };
            equal.push(self.operate(BinaryOperator::Equal, column, operand)?.expression);
        }
        Ok(equal)
    }

    /// Whether a value is among those of a list. Values that need nothing of the row are looked for together, as one type, if there are
    /// several; any other is compared by itself, as `=` compares it.
    fn in_list(&mut self, operand: &Expr, list: &[Expr]) -> Result<Expression, SqlError> {
        let operand = self.expression(operand)?;
        let mut bound = Vec::with_capacity(list.len());
        for other in list {
            bound.push(self.expression(other)?);
        }
        let found = self.with_locals([operand], |binder, [operand]| {
            Ok(boolean(binder.is_among_bound(operand, bound)?))
        })?;
        Ok(found.expression)
    }

    fn is_among_bound(&mut self, operand: Bound, mut bound: Vec<Bound>) -> Result<Expression, SqlError> {
        let is_of_row = |value: &Bound| value.expression.reads_row();
        let together: Vec<Bound> = bound.iter().filter(|value| !is_of_row(value)).cloned().collect();
        let mut any = Vec::new();
        if together.len() > 1
            && let Some(common) = common_of(&operand, &together)
        {
            bound.retain(is_of_row);
            any.push(self.among(operand.clone(), together, common)?);
        }
        for other in bound {
            any.push(self.operate(BinaryOperator::Equal, operand.clone(), other)?.expression);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Expression::Or(any) })
    }

    /// Whether a value is among others that are made one type.
    fn among(&mut self, operand: Bound, others: Vec<Bound>, common: SqlType) -> Result<Expression, SqlError> {
        let resolved = operators::resolve_binary(BinaryOperator::Equal, operand.data_type, common)?;
        let operand = self.coerced(operand, resolved.left, CastContext::Explicit)?;
        let mut list = Vec::with_capacity(others.len());
        for other in others {
            // A number may lose digits as one of the common type. A literal text is at once what it is compared as.
            let other = if common.is_text() { other } else { self.implicit(other, common)? };
            list.push(self.coerced(other, resolved.right, CastContext::Explicit)?.expression);
        }
        Ok(Expression::InList { operand: Box::new(operand.expression), list, resolved })
    }

    pub(super) fn quantified(
        &mut self,
        left: &Expr,
        operator: &ast::BinaryOperator,
        right: &Expr,
        all: bool,
    ) -> Result<Bound, SqlError> {
        if let (Some(operands), Expr::Subquery(query)) = (row_of(left), unnested(right)) {
            let negated = match operator {
                ast::BinaryOperator::Eq if !all => false,
                ast::BinaryOperator::NotEq if all => true,
                other => {
                    return Err(SqlError::unsupported(format!(
                        "{other} ANY or ALL between rows but = ANY and <> ALL"
                    )));
                }
            };
            return self.row_among_rows(&operands, query, negated);
        }
        let operator = binary_operator(operator)?;
        let left = self.expression(left)?;
        let left = if operator.is_match() { self.padded(left)? } else { left };
        if let Expr::Subquery(query) = unnested(right) {
            let (query, data_type) = self.value_query(query)?;
            let resolved = operators::resolve_binary(operator, left.data_type, data_type)?;
            let left = Box::new(self.implicit(left, resolved.left)?.expression);
            let query = self.cast_rows(query, data_type, resolved.right)?;
            let array = Box::new(self.of_query(SubqueryKind::Array, query));
            return Ok(boolean(Expression::Quantified { operator, resolved, left, array, all }));
        }
        let mut array = self.expression(right)?;
        if array.data_type == SqlType::UNKNOWN {
            array = self.implicit(array, left.data_type.array_of())?;
        }
        if !array.data_type.array {
            let message = "op ANY/ALL (array) requires array on right side";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let resolved = operators::resolve_binary(operator, left.data_type, array.data_type.element())?;
        let left = Box::new(self.implicit(left, resolved.left)?.expression);
        let array = Box::new(self.implicit(array, resolved.right.array_of())?.expression);
        Ok(boolean(Expression::Quantified { operator, resolved, left, array, all }))
    }

    /// `ARRAY(SELECT ...)`.
    pub(super) fn array_of(&mut self, query: &Query) -> Result<Bound, SqlError> {
        let (query, data_type) = self.value_query(query)?;
        if data_type.array {
            return Err(SqlError::unsupported("an array of several dimensions"));
        }
        Ok(Bound { expression: self.of_query(SubqueryKind::Array, query), data_type: data_type.array_of() })
    }

    /// A query within an expression, and the types of its columns.
    pub(super) fn subquery(&mut self, query: &Query) -> Result<(Node, Vec<SqlType>), SqlError> {
        self.subqueries += 1;
        let bound = self.deeper(|binder| binder.query(query));
        self.subqueries -= 1;
        let (node, fields) = bound?;
        Ok((node, fields.into_iter().map(|field| field.data_type).collect()))
    }

    /// A query within that gives one value a row, and the type of that.
    pub(super) fn value_query(&mut self, query: &Query) -> Result<(Node, SqlType), SqlError> {
        let (node, types) = self.subquery(query)?;
        match types.as_slice() {
            [data_type] => Ok((node, *data_type)),
            _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "subquery must return only one column")),
        }
    }

    fn cast_rows(&mut self, query: Node, from: SqlType, to: SqlType) -> Result<Node, SqlError> {
        if from.is_same(to) {
            return Ok(query);
        }
        let column = Bound { expression: Expression::Column(0), data_type: from };
        let cast = self.implicit(column, to)?.expression;
        Ok(Node::Project { input: Box::new(query), expressions: vec![cast] })
    }

    pub(super) fn of_query(&self, kind: SubqueryKind, query: Node) -> Expression {
        let query = match kind {
            // One row is enough.
            SubqueryKind::Exists => {
                let limit = Some(Expression::Constant(Datum::Int(1)));
                Node::Limit { input: Box::new(query), limit, offset: None, ties: Vec::new() }
            }
            _ => query,
        };
        let correlated = walk::is_correlated(&query);
        let query = if correlated { kept(self, query) } else { query };
        Expression::Subquery { kind, query: Box::new(query), correlated }
    }
}

/// The type that a value and others can share.
fn common_of(operand: &Bound, others: &[Bound]) -> Option<SqlType> {
    let mut types = others.iter().map(|other| other.data_type);
    let common = types.try_fold(operand.data_type, |common, other| common_type(common, other, "IN").ok())?;
    Some(if common == SqlType::UNKNOWN { SqlType::TEXT } else { common })
}
