//! Operators of JSON, of arrays and of networks, which are functions; rows as JSON.

use sqlparser::ast::{self, Expr};

use super::Binder;
use super::expression::text_constant;
use super::names::name_of;
use super::scope::{Bound, Qualifier, Starred, ambiguous_relation, column_at, is_value};
use crate::error::SqlError;
use crate::plan::Expression;
use crate::types::functions::{self, ORDER_OF_JSONB, ROW_TO_JSON};
use crate::types::{BaseType, Datum, SqlType};

impl Binder<'_> {
    /// An operator of JSON, arrays or networks by the function that it is; `None` for any other.
    pub(super) fn operator_function(
        &mut self,
        left: &Expr,
        operator: &ast::BinaryOperator,
        right: &Expr,
    ) -> Result<Option<Bound>, SqlError> {
        use ast::BinaryOperator as Written;
        let is_either = matches!(
            operator,
            Written::StringConcat | Written::Minus | Written::AtArrow | Written::ArrowAt | Written::PGOverlap
        ) || contains(operator).is_some();
        let is_json = matches!(
            operator,
            Written::Arrow
                | Written::LongArrow
                | Written::HashArrow
                | Written::HashLongArrow
                | Written::HashMinus
                | Written::Question
                | Written::QuestionAnd
                | Written::QuestionPipe
        );
        if !is_either && !is_json {
            return Ok(None);
        }
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        let name = match function_of(operator, left.data_type, right.data_type) {
            Some(name) => name,
            None if matches!(operator, Written::StringConcat | Written::Minus) => {
                let operator = super::expression::binary_operator(operator)?;
                return self.operate(operator, left, right).map(Some);
            }
            None => return Err(no_operator(operator, left.data_type, right.data_type)),
        };
        let arguments = match name {
            // A literal on the right is what the left has.
            "arraycontains" | "arraycontained" | "arrayoverlap" | "jsonb_contains" | "jsonb_contained"
            | "jsonb_concat" => {
                let known = if left.data_type.is_unknown() { right.data_type } else { left.data_type };
                vec![self.open_as(left, known)?, self.open_as(right, known)?]
            }
            _ => vec![left, right],
        };
        self.call(name, arguments).map(Some)
    }

    /// A value whose type is open made one of a type; any other as it is.
    fn open_as(&mut self, value: Bound, data_type: SqlType) -> Result<Bound, SqlError> {
        if value.data_type.is_unknown() { self.implicit(value, data_type) } else { Ok(value) }
    }

    /// What a name of a relation, or a row that is written down, is where a function of JSON takes it: an object of its columns.
    pub(super) fn whole_row(&mut self, function: &str, written: &Expr) -> Result<Option<Bound>, SqlError> {
        if !function.starts_with("json") && !matches!(function, "to_json" | "to_jsonb" | "row_to_json") {
            return Ok(None);
        }
        let mut arguments = Vec::new();
        match written {
            Expr::Identifier(name) => {
                let wanted = name_of(name);
                for outwards in 0..self.levels.len() {
                    let level = &self.levels[self.levels.len() - 1 - outwards];
                    if level.find(None, &wanted)?.is_some() {
                        return Ok(None);
                    }
                    if level.relations.iter().skip(level.seen_from).any(|known| known.name == wanted) {
                        return self.object_of(outwards, &wanted);
                    }
                }
                return Ok(None);
            }
            Expr::Tuple(values) => {
                for (number, value) in (1..).zip(values) {
                    arguments.push(text_constant(&format!("f{number}")));
                    arguments.push(self.expression(value)?);
                }
            }
            Expr::Function(row) if super::names::last_name(&row.name).is_ok_and(|name| name == "row") => {
                let values = super::functions::arguments_of(row)?;
                return self.whole_row(function, &Expr::Tuple(values));
            }
            _ => return Ok(None),
        }
        self.call(ROW_TO_JSON, arguments).map(Some)
    }

    /// An object of the columns of a relation of the query that is so many queries further out; `None` for that of a function which gives
    /// values: it stands for these.
    fn object_of(&mut self, outwards: usize, wanted: &str) -> Result<Option<Bound>, SqlError> {
        let number = self.levels.len() - 1 - outwards;
        let level = &self.levels[number];
        let seen = level.relations.iter().enumerate().skip(level.seen_from);
        let mut meant = seen.filter(|(_, relation)| relation.name == wanted);
        let Some((place, relation)) = meant.next() else { return Ok(None) };
        if meant.next().is_some() {
            return Err(ambiguous_relation(wanted));
        }
        if is_value(&relation.fields) {
            return Ok(None);
        }
        let is_padded = level.padded.contains(&place);
        let mut arguments = Vec::new();
        for starred in self.all_at(outwards, Some(Qualifier { schema: None, name: wanted }))? {
            let Starred { field, column, .. } = starred;
            let column = self.over_groups(number, column, &field.name)?;
            arguments.push(text_constant(&field.name));
            arguments.push(Bound { expression: column_at(outwards, column), data_type: field.data_type });
        }
        let object = self.call(ROW_TO_JSON, arguments.clone())?;
        Ok(Some(if is_padded { unless_padded(object, &arguments) } else { object }))
    }
}

/// An object of a relation's names and columns, or null for the row of nulls that an outer join has made. A row that has nothing but nulls
/// itself is taken for one.
fn unless_padded(object: Bound, named: &[Bound]) -> Bound {
    let columns = named.iter().skip(1).step_by(2).map(|column| column.expression.clone());
    let is_null = |column| Expression::IsNull { operand: Box::new(column), negated: false };
    let is_padding = Expression::And(columns.map(is_null).collect());
    let branches = vec![(is_padding, Expression::Constant(Datum::Null))];
    let expression = Expression::Case { branches, otherwise: Some(Box::new(object.expression)) };
    Bound { expression, data_type: object.data_type }
}

/// The function that an operator is between two types.
fn function_of(operator: &ast::BinaryOperator, left: SqlType, right: SqlType) -> Option<&'static str> {
    use ast::BinaryOperator as Written;
    let base = |ty: SqlType| if ty.array { None } else { Some(ty.base) };
    let is_jsonb = |ty: SqlType| base(ty) == Some(BaseType::Jsonb);
    let is_network = |ty: SqlType| matches!(base(ty), Some(BaseType::Inet | BaseType::Cidr));
    let by_number = right.is_integer();
    let of = |json: &'static str, jsonb: &'static str| match base(left)? {
        BaseType::Json => Some(json),
        BaseType::Jsonb => Some(jsonb),
        _ => None,
    };
    let arrays = left.array && (right.array || right.is_unknown()) || right.array && left.is_unknown();
    let jsonbs =
        is_jsonb(left) && (is_jsonb(right) || right.is_unknown()) || is_jsonb(right) && left.is_unknown();
    match operator {
        Written::Arrow if by_number => of("json_array_element", "jsonb_array_element"),
        Written::Arrow => of("json_object_field", "jsonb_object_field"),
        Written::LongArrow if by_number => of("json_array_element_text", "jsonb_array_element_text"),
        Written::LongArrow => of("json_object_field_text", "jsonb_object_field_text"),
        Written::HashArrow => of("json_at_path", "jsonb_at_path"),
        Written::HashLongArrow => of("json_at_path_text", "jsonb_at_path_text"),
        Written::HashMinus if is_jsonb(left) => Some("jsonb_delete_path"),
        Written::Question if is_jsonb(left) => Some("jsonb_exists"),
        Written::QuestionPipe if is_jsonb(left) => Some("jsonb_exists_any"),
        Written::QuestionAnd if is_jsonb(left) => Some("jsonb_exists_all"),
        Written::StringConcat if jsonbs => Some("jsonb_concat"),
        Written::Minus if is_jsonb(left) => Some("jsonb_delete"),
        Written::AtArrow if jsonbs => Some("jsonb_contains"),
        Written::ArrowAt if jsonbs => Some("jsonb_contained"),
        Written::AtArrow if arrays => Some("arraycontains"),
        Written::ArrowAt if arrays => Some("arraycontained"),
        Written::PGOverlap if arrays => Some("arrayoverlap"),
        Written::PGOverlap if is_network(left) || is_network(right) => Some("network_overlap"),
        other => contains(other).filter(|_| is_network(left) || is_network(right)),
    }
}

/// The function of networks that an operator is.
fn contains(operator: &ast::BinaryOperator) -> Option<&'static str> {
    let ast::BinaryOperator::Custom(symbol) = operator else { return None };
    match symbol.as_str() {
        "<<=" => Some("network_subeq"),
        ">>=" => Some("network_supeq"),
        _ => None,
    }
}

fn no_operator(operator: &ast::BinaryOperator, left: SqlType, right: SqlType) -> SqlError {
    let mut error = functions::undefined("", &[]);
    error.message = format!("operator does not exist: {} {operator} {}", left.name(), right.name());
    error.hint = Some(
        "No operator matches the given name and argument types. You might need to add explicit type casts."
            .to_owned(),
    );
    error
}

/// A value as it is compared: that of `jsonb` by its own order.
pub(super) fn in_order(value: Bound) -> Result<Bound, SqlError> {
    if !value.data_type.is_same(SqlType::JSONB) {
        return Ok(value);
    }
    let function = functions::resolve(ORDER_OF_JSONB, &[SqlType::JSONB])?;
    let expression = Expression::Call { function: function.id, arguments: vec![value.expression] };
    Ok(Bound { expression, data_type: function.result })
}

/// The value of which something is what [`in_order`] made.
pub(super) fn out_of_order(compared: &Expression) -> &Expression {
    match compared {
        Expression::Call { function, arguments } if functions::name(*function) == ORDER_OF_JSONB => {
            arguments.first().unwrap_or(compared)
        }
        other => other,
    }
}
