//! Operators: which there are for which types, and what they give.

mod arithmetic;
mod date_time;
mod matching;
mod network;
mod resolution;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{Datum, SqlType, Zone, compare};
use crate::error::SqlError;
pub(crate) use arithmetic::power as float_power;
pub use matching::like;
pub(crate) use matching::{RegexOptions, compile as compile_regex};
pub use matching::{begin_run, take_work_of_compiling};
pub(crate) use matching::{lower as lower_character, upper as upper_character};
pub use resolution::{common_type, resolve_binary, resolve_unary};

/// An operator between two values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `^`
    Power,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `AND`
    And,
    /// `OR`
    Or,
    /// `||`
    Concat,
    /// `LIKE`
    Like,
    /// `NOT LIKE`
    NotLike,
    /// `ILIKE`
    ILike,
    /// `NOT ILIKE`
    NotILike,
    /// `~`
    RegexMatch,
    /// `!~`
    RegexNotMatch,
    /// `~*`
    RegexMatchInsensitive,
    /// `!~*`
    RegexNotMatchInsensitive,
    /// `IS DISTINCT FROM`
    IsDistinctFrom,
    /// `IS NOT DISTINCT FROM`
    IsNotDistinctFrom,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `#`
    BitXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// An operator before one value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum UnaryOperator {
    /// `-`
    Negate,
    /// `+`
    Plus,
    /// `NOT`
    Not,
    /// `~`
    BitNot,
}

/// The types that an operator is used with: operands must be cast to theirs before it is evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Resolved {
    /// Of the left operand.
    pub left: SqlType,
    /// Of the right operand.
    pub right: SqlType,
    /// Of what it gives.
    pub result: SqlType,
}

/// The types that an operator before a value is used with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ResolvedUnary {
    /// Of the operand, which must be cast to it.
    pub operand: SqlType,
    /// Of what it gives.
    pub result: SqlType,
}

impl BinaryOperator {
    /// Whether its right operand is a regular expression.
    pub fn is_regular(self) -> bool {
        use BinaryOperator::*;
        matches!(self, RegexMatch | RegexNotMatch | RegexMatchInsensitive | RegexNotMatchInsensitive)
    }

    /// As PostgreSQL names it in messages.
    pub fn symbol(self) -> &'static str {
        use BinaryOperator::*;
        match self {
            Add => "+",
            Subtract => "-",
            Multiply => "*",
            Divide => "/",
            Modulo => "%",
            Power => "^",
            Equal | IsDistinctFrom | IsNotDistinctFrom => "=",
            NotEqual => "<>",
            Less => "<",
            LessOrEqual => "<=",
            Greater => ">",
            GreaterOrEqual => ">=",
            And => "AND",
            Or => "OR",
            Concat => "||",
            Like => "~~",
            NotLike => "!~~",
            ILike => "~~*",
            NotILike => "!~~*",
            RegexMatch => "~",
            RegexNotMatch => "!~",
            RegexMatchInsensitive => "~*",
            RegexNotMatchInsensitive => "!~*",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "#",
            ShiftLeft => "<<",
            ShiftRight => ">>",
        }
    }

    /// Whether it compares two values of one type.
    pub fn is_comparison(self) -> bool {
        use BinaryOperator::*;
        matches!(
            self,
            Equal
                | NotEqual
                | Less
                | LessOrEqual
                | Greater
                | GreaterOrEqual
                | IsDistinctFrom
                | IsNotDistinctFrom
        )
    }

    /// Whether it asks whether a text is as a pattern says.
    pub fn is_match(self) -> bool {
        use BinaryOperator::*;
        matches!(
            self,
            Like | NotLike
                | ILike
                | NotILike
                | RegexMatch
                | RegexNotMatch
                | RegexMatchInsensitive
                | RegexNotMatchInsensitive
        )
    }
}

impl UnaryOperator {
    /// As PostgreSQL names it in messages.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOperator::Negate => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::Not => "NOT",
            UnaryOperator::BitNot => "~",
        }
    }
}

/// What the operator gives for two values that have the types of `resolved`. Logic is of three values; other operators give
/// `Null` if an operand is `Null`. Errors as PostgreSQL has them: overflow, division by zero, a pattern that is none.
/// Days and months are counted in `zone` where they are added to a `timestamptz`.
pub fn binary(
    operator: BinaryOperator,
    left: &Datum,
    right: &Datum,
    resolved: &Resolved,
    zone: Zone,
) -> Result<Datum, SqlError> {
    use BinaryOperator::*;
    match operator {
        And => return Ok(and(left, right)),
        Or => return Ok(or(left, right)),
        IsDistinctFrom => return Ok(Datum::Bool(!compare::equal(left, right))),
        IsNotDistinctFrom => return Ok(Datum::Bool(compare::equal(left, right))),
        // An array takes a null for an element.
        Concat if resolved.result.array => return Ok(concat_arrays(left, right, resolved)),
        _ => {}
    }
    if left.is_null() || right.is_null() {
        return Ok(Datum::Null);
    }
    match operator {
        Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual => {
            Ok(Datum::Bool(holds(operator, compare::compare(left, right))))
        }
        Concat => Ok(concat(left, right)),
        Like
        | NotLike
        | ILike
        | NotILike
        | RegexMatch
        | RegexNotMatch
        | RegexMatchInsensitive
        | RegexNotMatchInsensitive => matching::evaluate(operator, left, right),
        _ if date_time::applies(left) || date_time::applies(right) => {
            date_time::evaluate(operator, left, right, resolved, zone)
        }
        _ => match network::evaluate(operator, left, right) {
            Some(outcome) => outcome,
            None => arithmetic::evaluate(operator, left, right, resolved.result),
        },
    }
}

/// What the operator gives for a value that has the type of `resolved`.
pub fn unary(operator: UnaryOperator, operand: &Datum, resolved: &ResolvedUnary) -> Result<Datum, SqlError> {
    match (operator, operand) {
        (UnaryOperator::BitNot, Datum::Network(network)) => Ok(Datum::Network(network.complement())),
        _ => arithmetic::unary(operator, operand, resolved.result),
    }
}

/// An interval divided by a count above zero.
pub(crate) fn divide_interval(interval: &Datum, count: f64) -> Result<Datum, SqlError> {
    date_time::scale(interval, |part| part / count)
}

/// Whether one value compares with another as an operator says, if it is one that compares and they are of those that are compared at once.
#[inline]
pub(crate) fn compare_short(operator: BinaryOperator, left: &Datum, right: &Datum) -> Option<bool> {
    use BinaryOperator::*;
    let order = match (left, right) {
        (Datum::Int(left), Datum::Int(right))
        | (Datum::Timestamp(left), Datum::Timestamp(right))
        | (Datum::Time(left), Datum::Time(right)) => left.cmp(right),
        (Datum::Date(left), Datum::Date(right)) => left.cmp(right),
        (Datum::Bool(left), Datum::Bool(right)) => left.cmp(right),
        _ => return None,
    };
    matches!(operator, Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual)
        .then(|| holds(operator, order))
}

fn holds(operator: BinaryOperator, order: Ordering) -> bool {
    match operator {
        BinaryOperator::Equal => order.is_eq(),
        BinaryOperator::NotEqual => order.is_ne(),
        BinaryOperator::Less => order.is_lt(),
        BinaryOperator::LessOrEqual => order.is_le(),
        BinaryOperator::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

fn and(left: &Datum, right: &Datum) -> Datum {
    match (left, right) {
        (Datum::Bool(false), _) | (_, Datum::Bool(false)) => Datum::Bool(false),
        (Datum::Bool(true), Datum::Bool(true)) => Datum::Bool(true),
        _ => Datum::Null,
    }
}

fn or(left: &Datum, right: &Datum) -> Datum {
    match (left, right) {
        (Datum::Bool(true), _) | (_, Datum::Bool(true)) => Datum::Bool(true),
        (Datum::Bool(false), Datum::Bool(false)) => Datum::Bool(false),
        _ => Datum::Null,
    }
}

fn concat(left: &Datum, right: &Datum) -> Datum {
    match (left, right) {
        (Datum::Text(left), Datum::Text(right)) => Datum::Text(format!("{left}{right}")),
        (Datum::Bytes(left), Datum::Bytes(right)) => Datum::Bytes([left.as_slice(), right].concat()),
        // Operands that do not have their types are a mistake of the caller; nothing is lost by it.
        _ => Datum::Null,
    }
}

fn concat_arrays(left: &Datum, right: &Datum, resolved: &Resolved) -> Datum {
    let part = |datum: &Datum, ty: SqlType| match datum {
        Datum::Array(values) => Some(values.clone()),
        Datum::Null if ty.array => None,
        element => Some(vec![element.clone()]),
    };
    match (part(left, resolved.left), part(right, resolved.right)) {
        (Some(mut values), Some(more)) => {
            values.extend(more);
            Datum::Array(values)
        }
        (Some(values), None) | (None, Some(values)) => Datum::Array(values),
        (None, None) => Datum::Null,
    }
}
