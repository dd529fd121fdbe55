//! Parts of values: elements and slices of arrays, fields of `jsonb`.

use sqlparser::ast::{AccessExpr, Expr, Ident, Subscript};

use super::Binder;
use super::expression::constant;
use super::names::name_of;
use super::scope::Bound;
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::types::cast::CastContext;
use crate::types::operators::BinaryOperator;
use crate::types::{Datum, SqlType};

impl Binder<'_> {
    pub(super) fn element(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<Bound, SqlError> {
        // The column before the first bracket may be written with its table.
        let dotted = |access: &AccessExpr| match access {
            AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
            _ => None,
        };
        let mut chain = chain;
        let mut value = match root {
            Expr::Identifier(first) if chain.first().and_then(dotted).is_some() => {
                let names: Vec<Ident> =
                    std::iter::once(first.clone()).chain(chain.iter().map_while(dotted)).collect();
                chain = &chain[names.len() - 1..];
                self.expression(&Expr::CompoundIdentifier(names))?
            }
            _ => self.expression(root)?,
        };
        let is_slice = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }));
        if value.data_type.array && chain.len() > 1 && chain.iter().any(is_slice) {
            // A part by several dimensions, of which an array has one.
            let bounds = [1, 0].map(|bound| constant(Datum::Int(bound), SqlType::INT4));
            return self.call("array_slice", std::iter::once(value).chain(bounds).collect());
        }
        for access in chain {
            value = self.accessed(value, access)?;
        }
        Ok(value)
    }

    /// A part of an array or of a `jsonb`.
    fn accessed(&mut self, array: Bound, access: &AccessExpr) -> Result<Bound, SqlError> {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) if array.data_type.array => {
                let index = self.expression(index)?;
                let index = self.implicit(index, SqlType::INT4)?;
                let index = Box::new(self.place_in(array.data_type, index)?.expression);
                let data_type = array.data_type.element();
                let array = Box::new(array.expression);
                Ok(Bound { expression: Expression::Element { array, index }, data_type })
            }
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None })
                if array.data_type.array =>
            {
                let data_type = array.data_type;
                let mut arguments = vec![array];
                for (bound, otherwise) in [(lower_bound, 1), (upper_bound, i64::from(i32::MAX))] {
                    arguments.push(match bound {
                        Some(bound) => {
                            let bound = self.expression(bound)?;
                            self.place_in(data_type, bound)?
                        }
                        None => constant(Datum::Int(otherwise), SqlType::INT4),
                    });
                }
                self.call("array_slice", arguments)
            }
            AccessExpr::Subscript(Subscript::Index { index }) if array.data_type == SqlType::JSONB => {
                let index = self.expression(index)?;
                let step = self.coerced(index, SqlType::TEXT, CastContext::Explicit)?.expression;
                let path =
                    Bound { expression: Expression::Array(vec![step]), data_type: SqlType::TEXT.array_of() };
                self.call("jsonb_at_path", vec![array, path])
            }
            // The fields of what `_pg_expandarray` gives.
            AccessExpr::Dot(Expr::Identifier(field)) if array.data_type == SqlType::INT4.array_of() => {
                let place = match name_of(field).as_str() {
                    "x" => 1,
                    "n" => 2,
                    other => return Err(no_field(other, array.data_type)),
                };
                let index = Box::new(constant(Datum::Int(place), SqlType::INT4).expression);
                let array = Box::new(array.expression);
                Ok(Bound { expression: Expression::Element { array, index }, data_type: SqlType::INT4 })
            }
            AccessExpr::Dot(Expr::Identifier(field)) => Err(no_field(&name_of(field), array.data_type)),
            _ => Err(SqlError::unsupported("this access to a part of a value")),
        }
    }

    /// A subscript as a place from 1 on: those of vectors begin at 0.
    fn place_in(&mut self, array: SqlType, subscript: Bound) -> Result<Bound, SqlError> {
        if !array.is_vector() {
            return Ok(subscript);
        }
        let subscript = self.implicit(subscript, SqlType::INT4)?;
        self.operate(BinaryOperator::Add, subscript, constant(Datum::Int(1), SqlType::INT4))
    }

    /// What `array_lower` and `array_upper` give for a vector; `None` for anything else.
    pub(super) fn bound_of_vector(
        &mut self,
        name: &str,
        arguments: &[Bound],
    ) -> Result<Option<Bound>, SqlError> {
        let [vector, dimension] = arguments else { return Ok(None) };
        if !vector.data_type.is_vector() || !matches!(name, "array_lower" | "array_upper") {
            return Ok(None);
        }
        let array = Bound { data_type: vector.data_type.plain(), ..vector.clone() };
        let place = self.call(name, vec![array, dimension.clone()])?;
        self.operate(BinaryOperator::Subtract, place, constant(Datum::Int(1), SqlType::INT4)).map(Some)
    }
}

fn no_field(field: &str, data_type: SqlType) -> SqlError {
    let message = format!(
        "column notation .{field} applied to type {}, which is not a composite type",
        data_type.name()
    );
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}
