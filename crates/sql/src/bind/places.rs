//! Where in a statement errors are.

use sqlparser::ast::{DataType, Expr};

use crate::error::{SqlError, SqlState};
use crate::syntax::{at, at_name};

/// An error with the place of the innermost name or literal that it is about.
pub(super) fn of_expression(error: SqlError, written: &Expr) -> SqlError {
    match written {
        // No part of the statement is why it ends.
        _ if matches!(error.state, SqlState::QUERY_CANCELED | SqlState::ADMIN_SHUTDOWN) => error,
        Expr::Identifier(name) => at(error, name.span),
        Expr::CompoundIdentifier(parts) if let Some(first) = parts.first() => at(error, first.span),
        Expr::Value(value) => at(error, value.span),
        Expr::Function(function) => at_name(error, &function.name),
        Expr::Cast { data_type: DataType::Custom(name, _), .. }
            if matches!(error.state, SqlState::UNDEFINED_OBJECT | SqlState::FEATURE_NOT_SUPPORTED) =>
        {
            at_name(error, name)
        }
        Expr::Cast { expr, .. } if let Expr::Value(value) = expr.as_ref() => at(error, value.span),
        _ => error,
    }
}
