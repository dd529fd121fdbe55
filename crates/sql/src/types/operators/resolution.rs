//! Which types an operator is used with: PostgreSQL's rules, told by kind of operator instead of by a catalog of operators.

use super::{BinaryOperator, Resolved, ResolvedUnary, UnaryOperator, network};
use crate::error::{SqlError, SqlState};
use crate::types::cast::{self, CastContext};
use crate::types::{BaseType, SqlType};
use BaseType::*;

/// The types that both operands must be cast to, and that of the result. Modifiers of the operands do not matter. Errors: 42883 if
/// there is no such operator, 42725 if there are several that would do.
pub fn resolve_binary(operator: BinaryOperator, left: SqlType, right: SqlType) -> Result<Resolved, SqlError> {
    use BinaryOperator::*;
    let (a, b) = (left.plain(), right.plain());
    if let Some(resolved) = network::resolve(operator, a, b) {
        return Ok(resolved);
    }
    let found = match operator {
        Add | Subtract | Multiply | Divide | Modulo | Power => {
            let open = |a: SqlType, b: SqlType| {
                b.is_unknown() && (a.is_unknown() || operator == Add && a == SqlType::DATE)
            };
            let times = operator == Add && a == SqlType::TIME && b == SqlType::TIME;
            if open(a, b) || open(b, a) || times {
                return Err(ambiguous(operator, a, b));
            }
            arithmetic(operator, a, b)
        }
        Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual | IsDistinctFrom
        | IsNotDistinctFrom => comparison(a, b),
        And | Or => {
            return logic(operator, a, b);
        }
        Concat => concatenation(a, b),
        Like
        | NotLike
        | ILike
        | NotILike
        | RegexMatch
        | RegexNotMatch
        | RegexMatchInsensitive
        | RegexNotMatchInsensitive => {
            let is_text = |ty: SqlType| ty.is_text() || ty.is_unknown();
            (is_text(a) && is_text(b)).then_some(both(SqlType::TEXT, SqlType::BOOL))
        }
        BitAnd | BitOr | BitXor => {
            let (a, b) = settle(a, b);
            (a.is_integer() && b.is_integer()).then(|| wider(a, b)).map(|ty| both(ty, ty))
        }
        ShiftLeft | ShiftRight => shift(a, b),
    };
    found.ok_or_else(|| undefined(operator, a, b))
}

/// The types of an operator before a value. Error 42883 if there is no such operator.
pub fn resolve_unary(operator: UnaryOperator, operand: SqlType) -> Result<ResolvedUnary, SqlError> {
    let ty = operand.plain();
    let number = ty.is_numeric() && ty.base != Oid;
    let found = match operator {
        UnaryOperator::Negate if ty == SqlType::INTERVAL => Some(ty),
        UnaryOperator::Negate | UnaryOperator::Plus if number => Some(ty),
        UnaryOperator::Negate | UnaryOperator::Plus | UnaryOperator::BitNot if ty.is_unknown() => {
            return Err(not_unique(format!("{} unknown", operator.symbol())));
        }
        UnaryOperator::Not if ty == SqlType::BOOL || ty.is_unknown() => Some(SqlType::BOOL),
        UnaryOperator::Not => {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of NOT must be type boolean, not type {}", ty.name()),
            ));
        }
        UnaryOperator::BitNot if ty.is_integer() => Some(ty),
        UnaryOperator::BitNot if matches!(ty, SqlType::INET | SqlType::CIDR) => Some(SqlType::INET),
        _ => None,
    };
    let ty = found.ok_or_else(|| {
        let name = ty.name();
        no_operator(format!("operator does not exist: {} {name}", operator.symbol()))
    })?;
    Ok(ResolvedUnary { operand: ty, result: ty })
}

/// The type that values of several types are all cast to: of the branches of `CASE`, of `COALESCE`, `UNION`, `VALUES` and arrays.
/// Texts if none is known. Error 42804 if there is none; `what` names the construct.
pub fn common_type(types: &[SqlType], what: &str) -> Result<SqlType, SqlError> {
    let mut known = types.iter().copied().filter(|ty| !ty.is_unknown());
    let Some(first) = known.next() else { return Ok(SqlType::TEXT) };
    if known.clone().all(|ty| ty == first) {
        return Ok(first);
    }
    let mut chosen = first.plain();
    for ty in known.map(SqlType::plain) {
        if ty.is_same(chosen) {
            continue;
        }
        let implicit = |from, to| cast::allowed(from, to) == Some(CastContext::Implicit);
        if ty.category() != chosen.category() {
            return Err(mismatch(what, chosen, ty));
        }
        if !chosen.is_preferred() && implicit(chosen, ty) && !implicit(ty, chosen) {
            chosen = ty;
        } else if !implicit(ty, chosen) {
            return Err(mismatch(what, chosen, ty));
        }
    }
    Ok(chosen)
}

fn mismatch(what: &str, chosen: SqlType, ty: SqlType) -> SqlError {
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("{what} types {} and {} cannot be matched", chosen.name(), ty.name()),
    )
}

fn no_operator(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

fn undefined(operator: BinaryOperator, left: SqlType, right: SqlType) -> SqlError {
    let (left, right) = (left.name(), right.name());
    no_operator(format!("operator does not exist: {left} {} {right}", operator.symbol()))
}

fn ambiguous(operator: BinaryOperator, left: SqlType, right: SqlType) -> SqlError {
    let (left, right) = (left.name(), right.name());
    not_unique(format!("{left} {} {right}", operator.symbol()))
}

fn not_unique(call: String) -> SqlError {
    SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {call}"))
        .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

fn both(ty: SqlType, result: SqlType) -> Resolved {
    Resolved { left: ty, right: ty, result }
}

/// A literal takes the type of the other side.
fn settle(left: SqlType, right: SqlType) -> (SqlType, SqlType) {
    match (left.is_unknown(), right.is_unknown()) {
        (true, false) => (right, right),
        (false, true) => (left, left),
        _ => (left, right),
    }
}

/// The type of arithmetic on two types of numbers.
fn wider(left: SqlType, right: SqlType) -> SqlType {
    if left == right {
        return left;
    }
    if left.is_float() || right.is_float() {
        // There is no arithmetic of real and another type: what is left is the preferred type.
        return SqlType::FLOAT8;
    }
    let rank = |ty: SqlType| match ty.base {
        Int2 => 0,
        Int4 => 1,
        Int8 => 2,
        _ => 3,
    };
    if rank(left) < rank(right) { right } else { left }
}

fn arithmetic(operator: BinaryOperator, left: SqlType, right: SqlType) -> Option<Resolved> {
    use BinaryOperator::*;
    if let Some(resolved) = date_time(operator, left, right) {
        return Some(resolved);
    }
    let (left, right) = settle(left, right);
    let number = |ty: SqlType| ty.is_numeric() && ty.base != Oid;
    if !number(left) || !number(right) {
        return None;
    }
    let ty = wider(left, right);
    match operator {
        Modulo if ty.is_float() => None,
        Power if ty != SqlType::NUMERIC => Some(both(SqlType::FLOAT8, SqlType::FLOAT8)),
        _ => Some(both(ty, ty)),
    }
}

fn date_time(operator: BinaryOperator, left: SqlType, right: SqlType) -> Option<Resolved> {
    use BinaryOperator::*;
    if left.array || right.array {
        return None;
    }
    let resolved = |left: BaseType, right: BaseType, result: BaseType| {
        Some(Resolved { left: SqlType::of(left), right: SqlType::of(right), result: SqlType::of(result) })
    };
    let is_count = |base: BaseType| matches!(base, Int2 | Int4);
    match (operator, left.base, right.base) {
        (Add | Subtract, Date, right) if is_count(right) => resolved(Date, Int4, Date),
        (Add, left, Date) if is_count(left) => resolved(Int4, Date, Date),
        (Subtract, Date, Date | Unknown) | (Subtract, Unknown, Date) => resolved(Date, Date, Int4),
        (Add | Subtract, Date, Interval) => resolved(Timestamp, Interval, Timestamp),
        (Add, Interval, Date) => resolved(Interval, Timestamp, Timestamp),
        (Subtract, Date, Time) => resolved(Timestamp, Interval, Timestamp),
        (Add, Date, Time) => resolved(Date, Time, Timestamp),
        (Add, Time, Date) => resolved(Time, Date, Timestamp),
        (Add | Subtract, ty @ (Timestamp | TimestampTz | Time), Interval) => resolved(ty, Interval, ty),
        (Add, ty @ (Timestamp | TimestampTz | Time), Unknown) => resolved(ty, Interval, ty),
        (Add, Interval, ty @ (Timestamp | TimestampTz | Time)) => resolved(Interval, ty, ty),
        (Add, Unknown, ty @ (Timestamp | TimestampTz | Time)) => resolved(Interval, ty, ty),
        (Add | Subtract, ty @ (Timestamp | TimestampTz), Time) => resolved(ty, Interval, ty),
        (Add, Time, ty @ (Timestamp | TimestampTz)) => resolved(Interval, ty, ty),
        (Subtract, TimestampTz, Date | Timestamp | TimestampTz | Unknown)
        | (Subtract, Date | Timestamp | Unknown, TimestampTz) => resolved(TimestampTz, TimestampTz, Interval),
        (Subtract, Timestamp, Date | Timestamp | Unknown) | (Subtract, Date | Unknown, Timestamp) => {
            resolved(Timestamp, Timestamp, Interval)
        }
        (Subtract, Time, Time | Unknown) | (Subtract, Unknown, Time) => resolved(Time, Time, Interval),
        (Add | Subtract, Interval, Interval | Unknown) | (Add | Subtract, Unknown, Interval) => {
            resolved(Interval, Interval, Interval)
        }
        (Subtract, Interval, Time) => resolved(Interval, Interval, Interval),
        (Multiply | Divide, Interval, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric | Unknown) => {
            resolved(Interval, Float8, Interval)
        }
        (Multiply, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric | Unknown, Interval) => {
            resolved(Float8, Interval, Interval)
        }
        _ => None,
    }
}

/// The one type that both can be compared as.
fn comparison(left: SqlType, right: SqlType) -> Option<Resolved> {
    let (left, right) = settle(left, right);
    if left.is_unknown() {
        return Some(both(SqlType::TEXT, SqlType::BOOL));
    }
    if left.array || right.array {
        let varying = |ty: SqlType| if ty.base == Varchar { SqlType::TEXT.array_of() } else { ty };
        let (left, right) = (varying(left), varying(right));
        return (left == right && left.is_comparable()).then_some(both(left, SqlType::BOOL));
    }
    let ty = match (left.base, right.base) {
        (Json, _) | (_, Json) => return None,
        (Varchar, Varchar) => SqlType::TEXT,
        (Inet | Cidr, Inet | Cidr) => SqlType::INET,
        (a, b) if a == b => left,
        (Oid, Int2 | Int4 | Int8) | (Int2 | Int4 | Int8, Oid) => SqlType::OID,
        (Oid, _) | (_, Oid) => return None,
        _ if left.is_numeric() && right.is_numeric() => wider(left, right),
        (Char, Varchar) | (Varchar, Char) => SqlType::CHAR,
        _ if left.is_text() && right.is_text() => SqlType::TEXT,
        (Date | Timestamp, Date | Timestamp) => SqlType::TIMESTAMP,
        (Date | Timestamp | TimestampTz, Date | Timestamp | TimestampTz) => SqlType::TIMESTAMPTZ,
        (Time, Interval) | (Interval, Time) => SqlType::INTERVAL,
        _ => return None,
    };
    Some(both(ty, SqlType::BOOL))
}

fn logic(operator: BinaryOperator, left: SqlType, right: SqlType) -> Result<Resolved, SqlError> {
    for ty in [left, right] {
        if ty != SqlType::BOOL && !ty.is_unknown() {
            let (name, symbol) = (ty.name(), operator.symbol());
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {symbol} must be type boolean, not type {name}"),
            ));
        }
    }
    Ok(both(SqlType::BOOL, SqlType::BOOL))
}

fn concatenation(left: SqlType, right: SqlType) -> Option<Resolved> {
    if left.array || right.array {
        let array = if left.array { left } else { right };
        let side = |ty: SqlType| {
            let fits = ty.is_unknown() || ty.element().is_same(array.element()) || {
                cast::allowed(ty.element(), array.element()) == Some(CastContext::Implicit)
            };
            let target = if ty.array || ty.is_unknown() { array } else { array.element() };
            fits.then_some(target)
        };
        return Some(Resolved { left: side(left)?, right: side(right)?, result: array });
    }
    let is_bytes = |ty: SqlType| ty == SqlType::BYTEA || ty.is_unknown();
    if is_bytes(left) && is_bytes(right) && !(left.is_unknown() && right.is_unknown()) {
        return Some(both(SqlType::BYTEA, SqlType::BYTEA));
    }
    let is_text = |ty: SqlType| ty.is_text() || ty.is_unknown();
    (is_text(left) || is_text(right)).then_some(both(SqlType::TEXT, SqlType::TEXT))
}

fn shift(left: SqlType, right: SqlType) -> Option<Resolved> {
    let left = if left.is_unknown() { SqlType::INT4 } else { left };
    let count = right.is_unknown() || (right.is_integer() && right.base != Int8);
    (left.is_integer() && count).then_some(Resolved { left, right: SqlType::INT4, result: left })
}
