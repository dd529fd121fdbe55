//! What columns are called that are given no name.

use sqlparser::ast::{self, Expr};

use super::Binder;
use super::names::{last_name, name_of};
use super::object_names::is_named;
use super::types::sql_type;
use crate::catalog::{KeyPart, Table};
use crate::types::{BaseType, SqlType};

/// Types of PostgreSQL's for objects whose columns are called as they are.
const OBJECT_TYPES: [&str; 5] = ["regclass", "regproc", "regtype", "regnamespace", "regrole"];

impl Binder<'_> {
    /// The name of the function that an expression calls, if it is one: its column's name.
    pub(super) fn column_name(written: &Expr) -> String {
        match written {
            Expr::Identifier(name) => name_of(name),
            Expr::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, name_of),
            Expr::Function(function) => last_name(&function.name).unwrap_or_default(),
            Expr::Cast { expr, .. } if has_strong_name(expr) => Self::column_name(expr),
            Expr::Cast { data_type, .. } => {
                match OBJECT_TYPES.into_iter().find(|name| is_named(data_type, name)) {
                    Some(name) => name.to_owned(),
                    None => sql_type(data_type).map_or_else(|_| "?column?".to_owned(), type_column_name),
                }
            }
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
            Expr::Case { else_result: Some(otherwise), .. } if has_strong_name(otherwise) => {
                Self::column_name(otherwise)
            }
            Expr::Case { .. } => "case".to_owned(),
            Expr::Exists { .. } => "exists".to_owned(),
            Expr::Array(_) => "array".to_owned(),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => Self::column_name(inner),
            Expr::AtTimeZone { .. } => "timezone".to_owned(),
            Expr::Extract { .. } => "extract".to_owned(),
            Expr::Substring { shorthand: true, .. } => "substr".to_owned(),
            Expr::Substring { .. } => "substring".to_owned(),
            Expr::Overlay { .. } => "overlay".to_owned(),
            Expr::Position { .. } => "position".to_owned(),
            Expr::Trim { trim_where: Some(ast::TrimWhereField::Leading), .. } => "ltrim".to_owned(),
            Expr::Trim { trim_where: Some(ast::TrimWhereField::Trailing), .. } => "rtrim".to_owned(),
            Expr::Trim { .. } => "btrim".to_owned(),
            Expr::Ceil { .. } => "ceil".to_owned(),
            Expr::Floor { .. } => "floor".to_owned(),
            Expr::TypedString(typed) => {
                sql_type(&typed.data_type).map_or_else(|_| "?column?".to_owned(), type_column_name)
            }
            Expr::Interval(_) => "interval".to_owned(),
            _ => "?column?".to_owned(),
        }
    }
}

/// Whether an expression gives its column a name of its own, which is neither that of a type nor what any expression of its kind has.
fn has_strong_name(written: &Expr) -> bool {
    match written {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            has_strong_name(inner)
        }
        Expr::Case { else_result, .. } => else_result.as_deref().is_some_and(has_strong_name),
        Expr::TypedString(_) | Expr::Interval(_) => false,
        other => Binder::column_name(other) != "?column?",
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
        _ => return data_type.plain().element().name(),
    };
    name.to_owned()
}

/// The names of an index's columns: those of columns of the table, and of what is computed as a query would name it; no two are the same.
pub(crate) fn part_names(table: &Table, parts: &[KeyPart], included: &[u16]) -> Vec<String> {
    let column = |number: u16| table.columns.get(usize::from(number)).map_or("", |column| &column.name);
    let mut names: Vec<String> = Vec::with_capacity(parts.len() + included.len());
    let of_parts = parts.iter().map(|part| match part {
        KeyPart::Column(number) => column(*number).to_owned(),
        KeyPart::Expression(text) => {
            let written = crate::syntax::parse_expression(text).ok();
            let name = written.map(|written| Binder::column_name(&written));
            name.filter(|name| name != "?column?").unwrap_or_else(|| "expr".to_owned())
        }
    });
    for name in of_parts.chain(included.iter().map(|number| column(*number).to_owned())) {
        let numbered = (1..).map(|number| format!("{name}{number}"));
        let mut free = std::iter::once(name.clone()).chain(numbered).filter(|name| !names.contains(name));
        names.extend(free.next());
    }
    names
}
