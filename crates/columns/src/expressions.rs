//! Expressions over columns.

use std::cell::RefCell;
use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, IsNotNullExpr, IsNullExpr, Literal, NotExpr, case,
};
use ordain_sql::plan::Expression;
use ordain_sql::types::operators::BinaryOperator;
use ordain_sql::types::{Datum, SqlType};

use crate::kind::Kind;

/// Most values of a list after `IN` that are compared one by one.
const LIST_MAX: usize = 16;

/// An expression of DataFusion, and what its values are.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expression: Arc<dyn PhysicalExpr>,
    pub(crate) kind: Kind,
}

/// What an expression sees.
pub(crate) struct Scope<'s> {
    /// The kinds of the columns of the row, or of the row of the left side of a join.
    pub(crate) row: &'s [Kind],
    /// In a join, those of the right side. A pair is one row, the columns of the left before those of the right.
    pub(crate) right: &'s [Kind],
    /// Whether it is an expression of the right side itself, for which the row of the left is an outer one.
    pub(crate) is_inside: bool,
    /// In a join, the columns of the pair that are named, each once: only these are there.
    pub(crate) named: Option<RefCell<Vec<usize>>>,
    /// The values of the statement's parameters.
    pub(crate) parameters: &'s [Datum],
}

impl<'s> Scope<'s> {
    /// The same expression over columns, if there is one that always gives the same, or fails where it fails.
    pub(crate) fn translate(&self, expression: &Expression) -> Option<Typed> {
        match expression {
            Expression::Constant(value) => literal(value),
            Expression::Parameter(number) => literal(self.parameters.get(usize::from(*number))?),
            Expression::Column(column) => {
                let column = usize::from(*column);
                self.column(if self.is_inside { self.row.len() + column } else { column })
            }
            Expression::Outer { depth: 1, column } if self.is_inside => {
                let column = usize::from(*column);
                (column < self.row.len()).then(|| self.column(column))?
            }
            Expression::Binary { operator, resolved, left, right } => {
                let (left, right) = (self.translate(left)?, self.translate(right)?);
                match compares(*operator) {
                    Some(operator) => compare(operator, left, right),
                    None => arithmetic(*operator, resolved.result, left, right),
                }
            }
            Expression::And(parts) => self.chain(Operator::And, parts),
            Expression::Or(parts) => self.chain(Operator::Or, parts),
            Expression::Not(operand) => {
                let Typed { expression, kind: Kind::Bool } = self.translate(operand)? else { return None };
                Some(Typed { expression: Arc::new(NotExpr::new(expression)), kind: Kind::Bool })
            }
            Expression::IsNull { operand, negated } => {
                let operand = self.translate(operand)?.expression;
                let expression: Arc<dyn PhysicalExpr> = match negated {
                    true => Arc::new(IsNotNullExpr::new(operand)),
                    false => Arc::new(IsNullExpr::new(operand)),
                };
                Some(Typed { expression, kind: Kind::Bool })
            }
            Expression::InList { operand, list, .. } if list.len() <= LIST_MAX => {
                let operand = self.translate(operand)?;
                let equals = |value| compare(Operator::Eq, operand.clone(), self.translate(value)?);
                list.iter().map(equals).reduce(|all, next| logic(Operator::Or, all?, next?))?
            }
            Expression::Case { branches, otherwise } => self.case(branches, otherwise.as_deref()),
            Expression::Cast { operand, from, to } => self.cast(operand, *from, *to),
            _ => None,
        }
    }

    fn column(&self, column: usize) -> Option<Typed> {
        let kind = *self.row.iter().chain(self.right).nth(column)?;
        let place = match &self.named {
            None => column,
            Some(named) => {
                let mut named = named.borrow_mut();
                named.iter().position(|known| *known == column).unwrap_or_else(|| {
                    named.push(column);
                    named.len() - 1
                })
            }
        };
        Some(Typed { expression: Arc::new(Column::new(&place.to_string(), place)), kind })
    }

    fn chain(&self, operator: Operator, parts: &[Expression]) -> Option<Typed> {
        let parts = parts.iter().map(|part| self.translate(part));
        parts.reduce(|all, next| logic(operator, all?, next?))?
    }

    fn case(&self, branches: &[(Expression, Expression)], otherwise: Option<&Expression>) -> Option<Typed> {
        let (mut when_then, mut kind) = (Vec::new(), None);
        let mut same =
            |result: Typed| (*kind.get_or_insert(result.kind) == result.kind).then_some(result.expression);
        for (condition, result) in branches {
            let Typed { expression, kind: Kind::Bool } = self.translate(condition)? else { return None };
            when_then.push((expression, same(self.translate(result)?)?));
        }
        let otherwise = match otherwise {
            Some(result) => Some(same(self.translate(result)?)?),
            None => None,
        };
        Some(Typed { expression: case(None, when_then, otherwise).ok()?, kind: kind? })
    }

    /// Casts after which values are what they were.
    fn cast(&self, operand: &Expression, from: SqlType, to: SqlType) -> Option<Typed> {
        let operand = self.translate(operand)?;
        let is_wider = |from: SqlType, to: SqlType| {
            const SIZES: [SqlType; 3] = [SqlType::INT2, SqlType::INT4, SqlType::INT8];
            let size = |ty: SqlType| SIZES.iter().position(|size| *size == ty.plain());
            matches!((size(from), size(to)), (Some(from), Some(to)) if from <= to)
        };
        let is_text = |ty: SqlType| matches!(ty.plain(), SqlType::TEXT | SqlType::VARCHAR);
        if is_wider(from, to) || is_text(from) && to == SqlType::TEXT {
            return Some(operand);
        }
        (is_wider(from, SqlType::INT8) && to == SqlType::NUMERIC).then(|| to_numeric(operand))?
    }
}

/// Integers as numbers without digits after the point.
pub(crate) fn to_numeric(integer: Typed) -> Option<Typed> {
    let kind = Kind::numeric(0)?;
    let cast = CastExpr::new(integer.expression, kind.data_type(), None);
    (integer.kind == Kind::Int).then(|| Typed { expression: Arc::new(cast), kind })
}

fn compares(operator: BinaryOperator) -> Option<Operator> {
    Some(match operator {
        BinaryOperator::Equal => Operator::Eq,
        BinaryOperator::NotEqual => Operator::NotEq,
        BinaryOperator::Less => Operator::Lt,
        BinaryOperator::LessOrEqual => Operator::LtEq,
        BinaryOperator::Greater => Operator::Gt,
        BinaryOperator::GreaterOrEqual => Operator::GtEq,
        _ => return None,
    })
}

fn binary(operator: Operator, left: Typed, right: Typed, kind: Kind) -> Typed {
    let expression = BinaryExpr::new(left.expression, operator, right.expression).with_fail_on_overflow(true);
    Typed { expression: Arc::new(expression), kind }
}

fn compare(operator: Operator, left: Typed, right: Typed) -> Option<Typed> {
    let (left, right) = same_scale(left, right)?;
    (left.kind == right.kind && left.kind.is_ordered()).then(|| binary(operator, left, right, Kind::Bool))
}

fn logic(operator: Operator, left: Typed, right: Typed) -> Option<Typed> {
    (left.kind == Kind::Bool && right.kind == Kind::Bool).then(|| binary(operator, left, right, Kind::Bool))
}

/// Whether both hold.
pub(crate) fn both(one: Typed, other: Typed) -> Option<Typed> {
    logic(Operator::And, one, other)
}

/// A constant that has fewer digits after the point than the other number gets as many.
fn same_scale(left: Typed, right: Typed) -> Option<(Typed, Typed)> {
    let (Kind::Numeric(one), Kind::Numeric(other)) = (left.kind, right.kind) else {
        return Some((left, right));
    };
    Some(match one.cmp(&other) {
        std::cmp::Ordering::Equal => (left, right),
        std::cmp::Ordering::Less => (with_scale(&left, one, other)?, right),
        std::cmp::Ordering::Greater => (left, with_scale(&right, other, one)?),
    })
}

fn with_scale(constant: &Typed, from: u16, to: u16) -> Option<Typed> {
    let literal = constant.expression.downcast_ref::<Literal>()?;
    let ScalarValue::Decimal128(Some(unscaled), ..) = literal.value() else { return None };
    number(unscaled.checked_mul(10_i128.checked_pow(u32::from(to - from))?)?, to)
}

fn arithmetic(operator: BinaryOperator, result: SqlType, left: Typed, right: Typed) -> Option<Typed> {
    let kind = match (left.kind, right.kind, operator) {
        // Smaller integers have limits of their own.
        (Kind::Int, Kind::Int, _) if result.plain() == SqlType::INT8 => Kind::Int,
        (Kind::Numeric(one), Kind::Numeric(other), BinaryOperator::Multiply) => Kind::numeric(one + other)?,
        (Kind::Numeric(one), Kind::Numeric(other), _) => Kind::numeric(one.max(other))?,
        _ => return None,
    };
    let operator = match operator {
        BinaryOperator::Add => Operator::Plus,
        BinaryOperator::Subtract => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        _ => return None,
    };
    Some(binary(operator, left, right, kind))
}

fn literal(value: &Datum) -> Option<Typed> {
    let (value, kind) = match value {
        Datum::Bool(value) => (ScalarValue::Boolean(Some(*value)), Kind::Bool),
        Datum::Int(value) => (ScalarValue::Int64(Some(*value)), Kind::Int),
        Datum::Text(value) => (ScalarValue::Utf8(Some(value.clone())), Kind::Text),
        Datum::Bytes(value) => (ScalarValue::Binary(Some(value.clone())), Kind::Bytes),
        Datum::Date(value) => (ScalarValue::Date32(Some(*value)), Kind::Date),
        Datum::Time(value) => (ScalarValue::Int64(Some(*value)), Kind::Time),
        Datum::Timestamp(value) => (ScalarValue::Int64(Some(*value)), Kind::Timestamp),
        Datum::Uuid(value) => (ScalarValue::Binary(Some(value.to_be_bytes().to_vec())), Kind::Uuid),
        Datum::Numeric(value) => {
            let (unscaled, scale) = value.short()?;
            return number(unscaled, scale);
        }
        _ => return None,
    };
    Some(Typed { expression: Arc::new(Literal::new(value)), kind })
}

fn number(unscaled: i128, scale: u16) -> Option<Typed> {
    let kind = Kind::numeric(scale)?;
    let arrow::datatypes::DataType::Decimal128(digits, places) = kind.data_type() else { return None };
    let value = ScalarValue::Decimal128(Some(unscaled), digits, places);
    Some(Typed { expression: Arc::new(Literal::new(value)), kind })
}

/// What the values of an expression that SQL's own executor computes are, as far as that can be said before.
pub(crate) fn kind_of(expression: &Expression, row: &[Kind]) -> Option<Kind> {
    match expression {
        Expression::Column(column) => row.get(usize::from(*column)).copied(),
        Expression::Constant(value) => literal(value).map(|typed| typed.kind),
        Expression::Binary { operator, resolved, left, right } => {
            if compares(*operator).is_some() {
                return Some(Kind::Bool);
            }
            let kind = Kind::of(resolved.result);
            if resolved.result.plain() != SqlType::NUMERIC {
                return Some(kind);
            }
            let (Kind::Numeric(left), Kind::Numeric(right)) = (kind_of(left, row)?, kind_of(right, row)?)
            else {
                return None;
            };
            match operator {
                BinaryOperator::Add | BinaryOperator::Subtract => Kind::numeric(left.max(right)),
                BinaryOperator::Multiply => Kind::numeric(left + right),
                _ => None,
            }
        }
        Expression::Cast { from, to, .. } => match to.plain() {
            SqlType::NUMERIC
                if *from == SqlType::INT8 || *from == SqlType::INT4 || *from == SqlType::INT2 =>
            {
                Kind::numeric(0)
            }
            SqlType::NUMERIC => None,
            _ => Some(Kind::of(*to)),
        },
        Expression::Coerce { to, .. } => Some(Kind::of(*to)),
        Expression::And(_)
        | Expression::Or(_)
        | Expression::Not(_)
        | Expression::IsNull { .. }
        | Expression::IsBoolean { .. }
        | Expression::InList { .. } => Some(Kind::Bool),
        Expression::Case { branches, otherwise } => {
            let mut results = branches.iter().map(|(_, result)| result).chain(otherwise.as_deref());
            let first = kind_of(results.next()?, row)?;
            results.all(|result| kind_of(result, row) == Some(first)).then_some(first)
        }
        _ => None,
    }
}
