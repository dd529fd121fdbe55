//! Texts that name objects: `'t'::regclass` and its like.

use sqlparser::ast::{DataType, Expr};

use super::Binder;
use super::catalog_functions::type_number;
use super::expression::constant;
use super::names::{last_name, names_in, relation_named};
use super::scope::Bound;
use crate::catalog::{Definition, system};
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::types::{Datum, SqlType, aggregate, functions};

impl Binder<'_> {
    /// `'name'::regproc`: the number of a function. A text may be the number, too.
    pub(super) fn function_name(&mut self, operand: &Expr) -> Result<Bound, SqlError> {
        let bound = self.expression(operand)?;
        if let Expression::Constant(Datum::Text(name)) = &bound.expression {
            return Ok(constant(Datum::Int(function_number(name)?), SqlType::REGPROC));
        }
        let number = self.explicit(bound, SqlType::OID)?;
        Ok(Bound { data_type: SqlType::REGPROC, ..number })
    }

    /// `'name'::regclass`: the number of an object. A text may be the number, too.
    pub(super) fn object_number(&mut self, operand: &Expr) -> Result<Bound, SqlError> {
        let bound = self.expression(operand)?;
        match &bound.expression {
            Expression::Constant(Datum::Text(name)) => {
                let number = name.parse().or_else(|_| self.find_object(name, Some(operand)))?;
                Ok(constant(Datum::Int(i64::from(number)), SqlType::OID))
            }
            Expression::Parameter(_) if bound.data_type == SqlType::UNKNOWN => {
                let text = self.implicit(bound, SqlType::TEXT)?;
                self.relation_number(text, false)
            }
            _ if bound.data_type.is_integer() || bound.data_type == SqlType::OID => self.relation_name(bound),
            _ if bound.data_type.is_text() => self.relation_number(bound, false),
            _ => self.explicit(bound, SqlType::OID),
        }
    }

    /// `'name'::regnamespace`: the number of a schema. A text may be the number, too.
    pub(super) fn schema_number(&mut self, operand: &Expr) -> Result<Bound, SqlError> {
        let bound = self.expression(operand)?;
        match &bound.expression {
            Expression::Constant(Datum::Text(name)) if name.parse::<u32>().is_err() => {
                let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
                let name = match names_in(name, '.').as_deref() {
                    Some([name]) => name.clone(),
                    _ => return Err(invalid()),
                };
                let known = system::schema_names(self.catalog);
                let found = known.into_iter().find(|(_, schema)| *schema == name).map(|(number, _)| number);
                let number = found.ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
                })?;
                Ok(constant(Datum::Int(i64::from(number)), SqlType::OID))
            }
            _ if bound.data_type.is_integer() || bound.data_type == SqlType::OID => self.schema_name(bound),
            _ => self.explicit(bound, SqlType::OID),
        }
    }

    /// The number of a type that a text names which is computed; it may be the number, too.
    fn type_named(&mut self, name: Bound) -> Result<Bound, SqlError> {
        let name = self.implicit(name, SqlType::TEXT)?;
        self.with_locals([name], |binder, [name]| {
            let found = binder.computed_type_number(name.clone())?.expression;
            // What is no number either is an error.
            let number = binder.explicit(name, SqlType::OID)?.expression;
            Ok(Bound { expression: Expression::Coalesce(vec![found, number]), data_type: SqlType::OID })
        })
    }

    /// `'name'::regtype`: the number of a type. A text may be the number, too.
    pub(super) fn named_type(&mut self, operand: &Expr) -> Result<Bound, SqlError> {
        let bound = self.expression(operand)?;
        match &bound.expression {
            Expression::Constant(Datum::Text(name)) if name.parse::<u32>().is_err() => {
                match type_number(name) {
                    Datum::Null => Err(super::types::undefined(name)),
                    number => Ok(constant(number, SqlType::OID)),
                }
            }
            Expression::Parameter(_) if bound.data_type == SqlType::UNKNOWN => self.type_named(bound),
            _ if bound.data_type.is_text() => self.type_named(bound),
            _ => self.explicit(bound, SqlType::OID),
        }
    }

    /// The object that a text names, for `::regclass`. The text may be a literal of the statement.
    pub(super) fn find_object(&mut self, text: &str, literal: Option<&Expr>) -> Result<u32, SqlError> {
        let (schema, name) = relation_named(text)?;
        let (schema, last) = (schema.as_deref(), name.as_str());
        let is_system = schema.is_none_or(|schema| schema == "pg_catalog");
        let found = self.find(schema, last);
        if let (Some(literal), None, Some((schema, _))) = (literal, schema, &found) {
            self.literal_meant(literal, schema, last);
        }
        match found {
            Some((schema, Definition::Index(table))) => {
                let indexes = system::index_numbers(self.catalog.get(&schema, table));
                let found = indexes.into_iter().find(|(name, _)| name == last);
                found.map(|(_, object)| object).ok_or_else(|| super::undefined_table(Some(&schema), last))
            }
            Some((_, definition)) => Ok(definition.object().unwrap_or_default()),
            None if is_system && let Some(object) = system::table_object(last) => Ok(object),
            None => Err(super::undefined_table(schema, last)),
        }
    }
}

/// Makes a literal that is compared with a `regproc` one.
pub(super) fn functions_named(left: Bound, right: Bound) -> Result<(Bound, Bound), SqlError> {
    let named = |literal: &Bound, other: &Bound| match &literal.expression {
        Expression::Constant(Datum::Text(name)) if literal.data_type.is_unknown() => {
            let number = other.data_type.is_regproc().then(|| function_number(name)).transpose()?;
            Ok(number.map(|number| constant(Datum::Int(number), SqlType::REGPROC)))
        }
        _ => Ok(None),
    };
    let (first, second) = (named(&left, &right)?, named(&right, &left)?);
    Ok((first.unwrap_or(left), second.unwrap_or(right)))
}

/// The number of the function that a text names, or which the text is.
fn function_number(text: &str) -> Result<i64, SqlError> {
    if text == "-" {
        return Ok(0);
    }
    if let Ok(number) = text.parse::<u32>() {
        return Ok(number.into());
    }
    let (schema, name) = relation_named(text)?;
    let is_known = schema.is_none_or(|schema| schema == "pg_catalog");
    match functions::function_number(&name).filter(|_| is_known) {
        Some(number) => Ok(number.into()),
        None if is_known && (functions::exists(&name) || aggregate::exists(&name)) => {
            let message = format!("more than one function named \"{text}\"");
            Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message))
        }
        None => {
            let message = format!("function \"{text}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

/// Whether a type is one of those that PostgreSQL has for names of objects.
pub(super) fn is_named(data_type: &DataType, name: &str) -> bool {
    match data_type {
        DataType::Regclass => name == "regclass",
        DataType::Custom(written, _) => last_name(written).is_ok_and(|written| written == name),
        _ => false,
    }
}
