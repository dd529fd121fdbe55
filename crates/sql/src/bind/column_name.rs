//! What columns are called that are given no name.

use sqlparser::ast::{self, Expr, Value};

use super::Binder;
use super::names::{last_name, name_of};
use super::object_names::is_named;
use super::types::sql_type;
use crate::types::{BaseType, SqlType};

impl Binder<'_> {
    /// The name of the function that an expression calls, if it is one: its column's name.
    pub(super) fn column_name(written: &Expr) -> String {
        match written {
            Expr::Identifier(name) => name_of(name),
            Expr::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, name_of),
            Expr::Function(function) => last_name(&function.name).unwrap_or_default(),
            Expr::Cast { expr, data_type, .. } => match Self::column_name(expr) {
                name if name == "?column?" || has_weak_name(expr) => {
                    let of_objects = ["regclass", "regproc"].into_iter().find(|one| is_named(data_type, one));
                    if let Some(name) = of_objects {
                        return name.to_owned();
                    }
                    sql_type(data_type).map_or_else(|_| "?column?".to_owned(), type_column_name)
                }
                name => name,
            },
            Expr::Subquery(query) => match query.body.as_ref() {
                ast::SetExpr::Select(select) => match select.projection.first() {
                    Some(ast::SelectItem::UnnamedExpr(expr)) => Self::column_name(expr),
                    Some(ast::SelectItem::ExprWithAlias { alias, .. }) => name_of(alias),
                    _ => "?column?".to_owned(),
                },
                _ => "?column?".to_owned(),
            },
            Expr::CompoundFieldAccess { root, access_chain } => {
                let last = access_chain.iter().rev().find_map(|access| match access {
                    ast::AccessExpr::Dot(Expr::Identifier(name)) => Some(name_of(name)),
                    _ => None,
                });
                last.unwrap_or_else(|| Self::column_name(root))
            }
            Expr::Case { .. } => "case".to_owned(),
            Expr::Exists { .. } => "exists".to_owned(),
            Expr::Array(_) => "array".to_owned(),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => Self::column_name(inner),
            Expr::AtTimeZone { .. } => "timezone".to_owned(),
            Expr::Extract { .. } => "extract".to_owned(),
            Expr::Substring { .. } => "substring".to_owned(),
            Expr::Overlay { .. } => "overlay".to_owned(),
            Expr::Position { .. } => "position".to_owned(),
            Expr::Trim { .. } => "btrim".to_owned(),
            Expr::Ceil { .. } => "ceil".to_owned(),
            Expr::Floor { .. } => "floor".to_owned(),
            Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => "bool".to_owned(),
            Expr::TypedString(typed) => {
                sql_type(&typed.data_type).map_or_else(|_| "?column?".to_owned(), type_column_name)
            }
            Expr::Interval(_) => "interval".to_owned(),
            _ => "?column?".to_owned(),
        }
    }
}

/// Whether the name of a column yields to that of a type that it is cast to.
fn has_weak_name(written: &Expr) -> bool {
    match written {
        Expr::Nested(inner) => has_weak_name(inner),
        Expr::Cast { expr, .. } => has_weak_name(expr) || Binder::column_name(expr) == "?column?",
        Expr::Case { .. } | Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) => true,
        _ => false,
    }
}

/// A type by the name that PostgreSQL gives columns of it.
fn type_column_name(data_type: SqlType) -> String {
    let name = match data_type.base {
        BaseType::Bool => "bool",
        BaseType::Int2 => "int2",
        BaseType::Int4 => "int4",
        BaseType::Int8 => "int8",
        BaseType::Float4 => "float4",
        BaseType::Float8 => "float8",
        BaseType::Varchar => "varchar",
        BaseType::Char => "bpchar",
        BaseType::Timestamp => "timestamp",
        BaseType::TimestampTz => "timestamptz",
        BaseType::Time => "time",
        _ => return data_type.plain().name(),
    };
    name.to_owned()
}
