//! Operators of addresses of hosts and networks.

use super::{BinaryOperator, Resolved, arithmetic::unexpected};
use crate::error::SqlError;
use crate::types::network::Network;
use crate::types::{BaseType, Datum, SqlType};

/// Whether a type is `inet` or `cidr`.
fn is_network(ty: SqlType) -> bool {
    !ty.array && matches!(ty.base, BaseType::Inet | BaseType::Cidr)
}

/// The types of an operator of which one side is an address; `None` if there is no such operator. A literal is what the other side lets it be.
pub(super) fn resolve(operator: BinaryOperator, left: SqlType, right: SqlType) -> Option<Resolved> {
    use BinaryOperator::*;
    let resolved = |left, right, result| Some(Resolved { left, right, result });
    let is_number = |ty: SqlType| ty.is_integer();
    let both = [left, right].into_iter().all(|ty| is_network(ty) || ty.is_unknown());
    if !is_network(left) && !is_network(right) {
        return None;
    }
    match operator {
        Add if is_network(left) && (is_number(right) || right.is_unknown()) => {
            resolved(SqlType::INET, SqlType::INT8, SqlType::INET)
        }
        Add if is_network(right) && (is_number(left) || left.is_unknown()) => {
            resolved(SqlType::INT8, SqlType::INET, SqlType::INET)
        }
        Subtract if is_number(right) => resolved(SqlType::INET, SqlType::INT8, SqlType::INET),
        Subtract if both => resolved(SqlType::INET, SqlType::INET, SqlType::INT8),
        BitAnd | BitOr if both => resolved(SqlType::INET, SqlType::INET, SqlType::INET),
        ShiftLeft | ShiftRight if both => resolved(SqlType::INET, SqlType::INET, SqlType::BOOL),
        _ => None,
    }
}

/// What the operator gives, if one of the values is an address.
pub(super) fn evaluate(
    operator: BinaryOperator,
    left: &Datum,
    right: &Datum,
) -> Option<Result<Datum, SqlError>> {
    Some(match (left, right) {
        (Datum::Network(left), Datum::Network(right)) => between(operator, left, right),
        (Datum::Network(network), Datum::Int(distance)) | (Datum::Int(distance), Datum::Network(network)) => {
            let distance = i128::from(*distance);
            let distance = if operator == BinaryOperator::Subtract { -distance } else { distance };
            network.plus(distance).map(Datum::Network)
        }
        (Datum::Network(_), _) | (_, Datum::Network(_)) => Err(unexpected(operator.symbol())),
        _ => return None,
    })
}

fn between(operator: BinaryOperator, left: &Network, right: &Network) -> Result<Datum, SqlError> {
    use BinaryOperator::*;
    match operator {
        Subtract => left.minus(right).map(Datum::Int),
        BitAnd => left.combined(right, "AND", |left, right| left & right).map(Datum::Network),
        BitOr => left.combined(right, "OR", |left, right| left | right).map(Datum::Network),
        ShiftLeft => Ok(Datum::Bool(left.is_strictly_within(right))),
        ShiftRight => Ok(Datum::Bool(right.is_strictly_within(left))),
        _ => Err(unexpected(operator.symbol())),
    }
}
