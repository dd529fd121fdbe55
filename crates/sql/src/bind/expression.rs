//! Expressions.

use sqlparser::ast::{self, CastKind, DataType, Expr, Ident, UnaryOperator as WrittenUnary, Value};

use super::coerce::common_type;
use super::names::{known_collation, last_name, name_of};
use super::object_names::{functions_named, is_named};
use super::scope::{Bound, Qualifier, column_at, is_value};
use super::types::sql_type;
use super::{Binder, json, nulls, places, precedence};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, SubqueryKind};
use crate::types::cast::CastContext;
use crate::types::operators::{self, BinaryOperator, UnaryOperator};
use crate::types::{Datum, SqlType, Zone, text};

/// What PostgreSQL tells of each row besides its columns, which can have no such name.
pub(super) const SYSTEM_COLUMNS: [&str; 6] = ["cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"];

impl Binder<'_> {
    /// Binds an expression; that of a grouped query is over the grouped rows.
    pub(super) fn expression(&mut self, written: &Expr) -> Result<Bound, SqlError> {
        if let Some(grouped) = self.grouped(written) {
            return Ok(grouped);
        }
        self.deeper(|binder| binder.ungrouped(written)).map_err(|error| places::of_expression(error, written))
    }

    fn ungrouped(&mut self, written: &Expr) -> Result<Bound, SqlError> {
        match written {
            Expr::Nested(inner) => self.expression(inner),
            Expr::Identifier(name) => self.column(None, None, name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [relation, column] => self.column(None, Some(relation), column),
                [.., schema, relation, column] => self.column(Some(schema), Some(relation), column),
                _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "an empty name")),
            },
            Expr::Value(value) => self.literal(&value.value),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::Cast { kind, expr, data_type, .. } => self.cast(kind, expr, data_type),
            Expr::TypedString(typed) => {
                let literal = self.literal(&typed.value.value)?;
                self.explicit(literal, sql_type(&typed.data_type)?)
            }
            Expr::IsNull(operand) => self.is_null(operand, false),
            Expr::IsNotNull(operand) => self.is_null(operand, true),
            Expr::IsTrue(operand) => self.is_boolean(operand, true, false),
            Expr::IsNotTrue(operand) => self.is_boolean(operand, true, true),
            Expr::IsFalse(operand) => self.is_boolean(operand, false, false),
            Expr::IsNotFalse(operand) => self.is_boolean(operand, false, true),
            Expr::IsUnknown(operand) => self.is_null(operand, false),
            Expr::IsNotUnknown(operand) => self.is_null(operand, true),
            Expr::IsDistinctFrom(left, right) => self.compared(BinaryOperator::IsDistinctFrom, left, right),
            Expr::IsNotDistinctFrom(left, right) => {
                self.compared(BinaryOperator::IsNotDistinctFrom, left, right)
            }
            Expr::Between { expr, negated, low, high } => self.between(expr, *negated, low, high),
            Expr::In { expr, target, negated, .. } => self.is_in(expr, target, *negated),
            Expr::Like { negated, expr, pattern, escape_char: None, any: false } => self.compared(
                if *negated { BinaryOperator::NotLike } else { BinaryOperator::Like },
                expr,
                pattern,
            ),
            Expr::ILike { negated, expr, pattern, escape_char: None, any: false } => self.compared(
                if *negated { BinaryOperator::NotILike } else { BinaryOperator::ILike },
                expr,
                pattern,
            ),
            other => self.composed(other),
        }
    }

    /// Expressions that are less usual.
    fn composed(&mut self, written: &Expr) -> Result<Bound, SqlError> {
        match written {
            Expr::Function(function) => self.function(function),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Exists { subquery, negated } => {
                let (query, _) = self.subquery(subquery)?;
                let exists = self.of_query(SubqueryKind::Exists, query);
                Ok(boolean(if *negated { Expression::Not(Box::new(exists)) } else { exists }))
            }
            Expr::Subquery(query) => {
                let (query, data_type) = self.value_query(query)?;
                Ok(Bound { expression: self.of_query(SubqueryKind::Scalar, query), data_type })
            }
            Expr::AnyOp { left, compare_op, right, .. } => self.quantified(left, compare_op, right, false),
            Expr::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, true),
            Expr::Array(array) => self.array(&array.elem),
            Expr::CompoundFieldAccess { root, access_chain } => self.element(root, access_chain),
            Expr::Collate { expr, collation } => {
                known_collation(collation)?;
                self.expression(expr)
            }
            other => match self.spelled_function(other)? {
                Some(bound) => Ok(bound),
                None => Err(SqlError::unsupported(format!("the expression {other}"))),
            },
        }
    }

    fn column(
        &mut self,
        schema: Option<&Ident>,
        relation: Option<&Ident>,
        column: &Ident,
    ) -> Result<Bound, SqlError> {
        let (name, written, first) = (name_of(column), column, schema.or(relation));
        let (schema, relation) = (schema.map(name_of), relation.map(name_of));
        let qualifier = relation.as_deref().map(|name| Qualifier { schema: schema.as_deref(), name });
        for outwards in 0..self.levels.len() {
            let place = self.levels.len() - 1 - outwards;
            let level = &self.levels[place];
            if let Some((column, data_type)) = level.find(qualifier, &name)? {
                if place == 0 {
                    self.column_meant(written, column);
                    self.rows_meant(first, written);
                }
                let column = self.over_groups(place, column, &name)?;
                return Ok(Bound { expression: column_at(outwards, column), data_type });
            }
        }
        if relation.is_none()
            && let Some(bound) = self.value_of_relation(&name)?
        {
            return Ok(bound);
        }
        if relation.is_none()
            && let Some(bound) = self.keyword(&name, column.quote_style.is_some())?
        {
            return Ok(bound);
        }
        if let Some(qualifier) = qualifier
            && !self.levels.iter().any(|level| level.sees(qualifier))
        {
            return Err(self.unseen_relation(qualifier.name));
        }
        if SYSTEM_COLUMNS.contains(&name.as_str()) {
            return Err(SqlError::unsupported(format!("the system column {name}")));
        }
        let shown = relation.map_or_else(|| format!("\"{name}\""), |relation| format!("{relation}.{name}"));
        Err(SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column {shown} does not exist")))
    }

    /// The error of a relation that is not seen where it is named.
    fn unseen_relation(&self, name: &str) -> SqlError {
        if !self.levels.iter().any(|level| level.has(name)) {
            let message = format!("missing FROM-clause entry for table \"{name}\"");
            return SqlError::new(SqlState::UNDEFINED_TABLE, message);
        }
        let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
        SqlError::new(SqlState::UNDEFINED_TABLE, message).with_hint(format!(
            "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
        ))
    }

    /// The name of a relation of a function whose only column is called `value` stands for that.
    fn value_of_relation(&mut self, name: &str) -> Result<Option<Bound>, SqlError> {
        let mut relations = self.levels.iter().flat_map(|level| level.relations.iter().skip(level.seen_from));
        if !relations.any(|relation| relation.name == name && is_value(&relation.fields)) {
            return Ok(None);
        }
        self.column(None, Some(&Ident::with_quote('"', name)), &Ident::with_quote('"', "value")).map(Some)
    }

    /// Functions that are called without parentheses, and may come as names.
    fn keyword(&mut self, name: &str, quoted: bool) -> Result<Option<Bound>, SqlError> {
        let known = matches!(
            name,
            "current_user"
                | "current_role"
                | "session_user"
                | "user"
                | "current_catalog"
                | "current_schema"
                | "current_date"
                | "current_timestamp"
                | "localtimestamp"
                | "current_time"
        );
        if quoted || !known { Ok(None) } else { self.call(name, Vec::new()).map(Some) }
    }

    fn literal(&mut self, value: &Value) -> Result<Bound, SqlError> {
        match value {
            Value::Number(digits, _) => number(digits),
            Value::SingleQuotedString(value)
            | Value::EscapedStringLiteral(value)
            | Value::UnicodeStringLiteral(value)
            | Value::NationalStringLiteral(value) => Ok(unknown(value)),
            Value::DollarQuotedString(value) => Ok(unknown(&value.value)),
            Value::Boolean(value) => Ok(constant(Datum::Bool(*value), SqlType::BOOL)),
            Value::Null => Ok(constant(Datum::Null, SqlType::UNKNOWN)),
            Value::Placeholder(name) => self.parameter(name),
            other => Err(SqlError::unsupported(format!("the literal {other}"))),
        }
    }

    fn parameter(&mut self, name: &str) -> Result<Bound, SqlError> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<u16>().ok());
        let Some(place) = number.and_then(|number| number.checked_sub(1)) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter {name}"),
            ));
        };
        let count = usize::from(place) + 1;
        if self.parameters.len() < count {
            self.parameters.resize(count, None);
        }
        let data_type = self.parameters[usize::from(place)].unwrap_or(SqlType::UNKNOWN);
        Ok(Bound { expression: Expression::Parameter(place), data_type })
    }

    fn binary(
        &mut self,
        left: &Expr,
        operator: &ast::BinaryOperator,
        right: &Expr,
    ) -> Result<Bound, SqlError> {
        if let Some(compared) = self.compare_rows(left, operator, right)? {
            return Ok(compared);
        }
        match operator {
            ast::BinaryOperator::And | ast::BinaryOperator::Or => {
                let is_and = *operator == ast::BinaryOperator::And;
                // One level, however many there are.
                let (mut written, mut rest) = (vec![right], left);
                while let Expr::BinaryOp { left, op, right } = rest
                    && op == operator
                {
                    written.push(right);
                    rest = left;
                }
                written.push(rest);
                let mut operands = Vec::with_capacity(written.len());
                for written in written.into_iter().rev() {
                    let bound = self.condition(written, if is_and { "AND" } else { "OR" })?;
                    match bound {
                        Expression::And(more) if is_and => operands.extend(more),
                        Expression::Or(more) if !is_and => operands.extend(more),
                        other => operands.push(other),
                    }
                }
                Ok(boolean(if is_and { Expression::And(operands) } else { Expression::Or(operands) }))
            }
            ast::BinaryOperator::Plus | ast::BinaryOperator::Minus
                if let Some(prefixed) = precedence::spread_prefix(left, operator, right) =>
            {
                self.expression(&prefixed)
            }
            other => match self.operator_function(left, other, right)? {
                Some(bound) => Ok(bound),
                None => self.compared(binary_operator(other)?, left, right),
            },
        }
    }

    /// A condition: an expression that must be boolean.
    pub(super) fn condition(&mut self, written: &Expr, of: &str) -> Result<Expression, SqlError> {
        let bound = self.expression(written)?;
        if !matches!(bound.data_type, SqlType::BOOL | SqlType::UNKNOWN) {
            let message =
                format!("argument of {of} must be type boolean, not type {}", bound.data_type.name());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        Ok(self.implicit(bound, SqlType::BOOL)?.expression)
    }

    /// An operator between two expressions.
    pub(super) fn compared(
        &mut self,
        operator: BinaryOperator,
        left: &Expr,
        right: &Expr,
    ) -> Result<Bound, SqlError> {
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        self.operate(operator, left, right)
    }

    /// An operator between two values.
    pub(super) fn operate(
        &mut self,
        operator: BinaryOperator,
        left: Bound,
        right: Bound,
    ) -> Result<Bound, SqlError> {
        let (left, right) =
            if operator.is_comparison() { functions_named(left, right)? } else { (left, right) };
        let left = if operator.is_match() { self.padded(left)? } else { left };
        let resolved = operators::resolve_binary(operator, left.data_type, right.data_type)?;
        if operator.is_comparison()
            && [resolved.left, resolved.right].iter().all(|side| side.is_same(SqlType::JSONB))
        {
            let left = self.coerced(left, SqlType::JSONB, CastContext::Explicit)?;
            let right = self.coerced(right, SqlType::JSONB, CastContext::Explicit)?;
            return self.operate(operator, json::in_order(left)?, json::in_order(right)?);
        }
        // What is not cast by itself elsewhere is where the operator takes it: anything to a text, for `||`.
        let left = Box::new(self.coerced(left, resolved.left, CastContext::Explicit)?.expression);
        let right = Box::new(self.coerced(right, resolved.right, CastContext::Explicit)?.expression);
        let data_type = resolved.result;
        if nulls::decides(operator, data_type, &left, &right) {
            return Ok(constant(Datum::Null, data_type));
        }
        Ok(Bound { expression: Expression::Binary { operator, resolved, left, right }, data_type })
    }

    fn unary(&mut self, operator: WrittenUnary, operand: &Expr) -> Result<Bound, SqlError> {
        let operator = match operator {
            WrittenUnary::Not => {
                return Ok(boolean(Expression::Not(Box::new(self.condition(operand, "NOT")?))));
            }
            WrittenUnary::Minus | WrittenUnary::Plus
                if let Some(tighter) = precedence::bound_tightly(operator, operand) =>
            {
                return self.expression(&tighter);
            }
            WrittenUnary::PGAbs => return self.prefix_function("abs", operand),
            WrittenUnary::PGSquareRoot => return self.root("sqrt", operand),
            WrittenUnary::PGCubeRoot => return self.root("cbrt", operand),
            WrittenUnary::Minus => {
                // The least integer has no positive counterpart.
                if let Expr::Value(value) = operand
                    && let Value::Number(digits, _) = &value.value
                {
                    return number(&format!("-{digits}"));
                }
                UnaryOperator::Negate
            }
            WrittenUnary::Plus => UnaryOperator::Plus,
            WrittenUnary::BitwiseNot => UnaryOperator::BitNot,
            other => return Err(SqlError::unsupported(format!("the operator {other}"))),
        };
        let operand = self.expression(operand)?;
        let resolved = operators::resolve_unary(operator, operand.data_type)?;
        let data_type = resolved.result;
        let operand = Box::new(self.implicit(operand, resolved.operand)?.expression);
        if nulls::is_null(&operand) {
            return Ok(constant(Datum::Null, data_type));
        }
        Ok(Bound { expression: Expression::Unary { operator, resolved, operand }, data_type })
    }

    /// The operators `|/` and `||/`, which take no `numeric` as it is, as the functions do.
    fn root(&mut self, function: &str, operand: &Expr) -> Result<Bound, SqlError> {
        let operand = self.expression(operand)?;
        let is_number = operand.data_type.is_numeric() && !operand.data_type.array;
        let operand = if is_number { self.implicit(operand, SqlType::FLOAT8)? } else { operand };
        self.call(function, vec![operand])
    }

    fn cast(&mut self, kind: &CastKind, operand: &Expr, to: &DataType) -> Result<Bound, SqlError> {
        if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
            return Err(SqlError::unsupported("this form of a cast"));
        }
        if is_named(to, "regclass") {
            return self.object_number(operand);
        }
        if is_named(to, "regproc") {
            return self.function_name(operand);
        }
        if is_named(to, "regnamespace") {
            return self.schema_number(operand);
        }
        if is_named(to, "regtype") {
            return self.named_type(operand);
        }
        let to = sql_type(to)?;
        if to.is_text()
            && let Some(kind) = kind_of_object(unnested(operand))
        {
            let number = self.expression(operand)?;
            let name = match kind {
                _ if number.data_type.is_text() => number,
                "regclass" => self.relation_name(number)?,
                "regtype" => self.type_name(number)?,
                _ => self.schema_name(number)?,
            };
            return self.explicit(name, to);
        }
        let operand = self.expression(operand)?;
        // What is no text is read from one with the blanks, and an array is shown with those of its elements.
        let is_kept = if operand.data_type.array { to.array } else { to.is_text() };
        let operand = if is_kept { operand } else { self.padded(operand)? };
        self.explicit(operand, to)
    }

    fn is_null(&mut self, operand: &Expr, negated: bool) -> Result<Bound, SqlError> {
        let operand = Box::new(self.expression(operand)?.expression);
        Ok(boolean(Expression::IsNull { operand, negated }))
    }

    fn is_boolean(&mut self, operand: &Expr, value: bool, negated: bool) -> Result<Bound, SqlError> {
        let operand = Box::new(self.condition(operand, "IS")?);
        Ok(boolean(Expression::IsBoolean { operand, value, negated }))
    }

    fn array(&mut self, elements: &[Expr]) -> Result<Bound, SqlError> {
        let mut bound = Vec::with_capacity(elements.len());
        let mut common = SqlType::UNKNOWN;
        for element in elements {
            let element = self.expression(element)?;
            common = common_type(common, element.data_type, "ARRAY")?;
            bound.push(element);
        }
        let common = if common == SqlType::UNKNOWN { SqlType::TEXT } else { common };
        let mut values = Vec::with_capacity(bound.len());
        for element in bound {
            values.push(self.implicit(element, common)?.expression);
        }
        if common.array {
            return Err(SqlError::unsupported("an array of several dimensions"));
        }
        Ok(Bound { expression: Expression::Array(values), data_type: common.array_of() })
    }

    /// Values made of one type.
    pub(super) fn unified(
        &mut self,
        values: Vec<Bound>,
        of: &str,
    ) -> Result<(Vec<Expression>, SqlType), SqlError> {
        let mut common = SqlType::UNKNOWN;
        for value in &values {
            common = common_type(common, value.data_type, of)?;
        }
        let common = if common == SqlType::UNKNOWN { SqlType::TEXT } else { common };
        let values = values.into_iter().map(|value| Ok(self.implicit(value, common)?.expression));
        Ok((values.collect::<Result<_, SqlError>>()?, common))
    }
}

/// The type of the names that an expression gives, of those that are numbers here.
fn kind_of_object(written: &Expr) -> Option<&'static str> {
    let known = ["regclass", "regnamespace", "regtype"];
    match written {
        Expr::Cast { data_type, .. } => known.into_iter().find(|kind| is_named(data_type, kind)),
        Expr::Function(function) => {
            let name = last_name(&function.name).ok()?;
            known.into_iter().find(|kind| name.strip_prefix("to_") == Some(kind))
        }
        _ => None,
    }
}

pub(super) fn unnested(written: &Expr) -> &Expr {
    match written {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}

pub(super) fn constant(value: Datum, data_type: SqlType) -> Bound {
    Bound { expression: Expression::Constant(value), data_type }
}

pub(super) fn boolean(expression: Expression) -> Bound {
    Bound { expression, data_type: SqlType::BOOL }
}

fn unknown(text: &str) -> Bound {
    constant(Datum::Text(text.to_owned()), SqlType::UNKNOWN)
}

pub(super) fn text_constant(text: &str) -> Bound {
    constant(Datum::Text(text.to_owned()), SqlType::TEXT)
}

/// A number as written: the smallest of `integer`, `bigint` and `numeric` that it fits.
fn number(digits: &str) -> Result<Bound, SqlError> {
    let digits = digits.replace('_', "");
    if let Ok(value) = digits.parse::<i32>() {
        return Ok(constant(Datum::Int(i64::from(value)), SqlType::INT4));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(constant(Datum::Int(value), SqlType::INT8));
    }
    Ok(constant(text::parse(&digits, SqlType::NUMERIC, Zone::Utc)?, SqlType::NUMERIC))
}

pub(super) fn binary_operator(operator: &ast::BinaryOperator) -> Result<BinaryOperator, SqlError> {
    use ast::BinaryOperator as Written;
    Ok(match operator {
        Written::Plus => BinaryOperator::Add,
        Written::Minus => BinaryOperator::Subtract,
        Written::Multiply => BinaryOperator::Multiply,
        Written::Divide => BinaryOperator::Divide,
        Written::Modulo => BinaryOperator::Modulo,
        Written::PGExp => BinaryOperator::Power,
        Written::Eq => BinaryOperator::Equal,
        Written::NotEq => BinaryOperator::NotEqual,
        Written::Lt => BinaryOperator::Less,
        Written::LtEq => BinaryOperator::LessOrEqual,
        Written::Gt => BinaryOperator::Greater,
        Written::GtEq => BinaryOperator::GreaterOrEqual,
        Written::StringConcat => BinaryOperator::Concat,
        Written::PGLikeMatch => BinaryOperator::Like,
        Written::PGNotLikeMatch => BinaryOperator::NotLike,
        Written::PGILikeMatch => BinaryOperator::ILike,
        Written::PGNotILikeMatch => BinaryOperator::NotILike,
        Written::PGRegexMatch => BinaryOperator::RegexMatch,
        Written::PGRegexNotMatch => BinaryOperator::RegexNotMatch,
        Written::PGRegexIMatch => BinaryOperator::RegexMatchInsensitive,
        Written::PGRegexNotIMatch => BinaryOperator::RegexNotMatchInsensitive,
        Written::BitwiseAnd => BinaryOperator::BitAnd,
        Written::BitwiseOr => BinaryOperator::BitOr,
        Written::PGBitwiseXor => BinaryOperator::BitXor,
        Written::PGBitwiseShiftLeft => BinaryOperator::ShiftLeft,
        Written::PGBitwiseShiftRight => BinaryOperator::ShiftRight,
        Written::PGCustomBinaryOperator(parts) if parts.first().is_some_and(|part| part == "pg_catalog") => {
            return catalog_operator(parts.last().map_or("", String::as_str));
        }
        other => return Err(SqlError::unsupported(format!("the operator {other}"))),
    })
}

/// `OPERATOR(pg_catalog.x)`, as `psql` writes.
fn catalog_operator(name: &str) -> Result<BinaryOperator, SqlError> {
    use BinaryOperator::*;
    Ok(match name {
        "=" => Equal,
        "<>" | "!=" => NotEqual,
        "<" => Less,
        "<=" => LessOrEqual,
        ">" => Greater,
        ">=" => GreaterOrEqual,
        "+" => Add,
        "-" => Subtract,
        "*" => Multiply,
        "/" => Divide,
        "%" => Modulo,
        "^" => Power,
        "||" => Concat,
        "~~" => Like,
        "!~~" => NotLike,
        "~~*" => ILike,
        "!~~*" => NotILike,
        "~" => RegexMatch,
        "!~" => RegexNotMatch,
        "~*" => RegexMatchInsensitive,
        "!~*" => RegexNotMatchInsensitive,
        "&" => BitAnd,
        "|" => BitOr,
        "#" => BitXor,
        "<<" => ShiftLeft,
        ">>" => ShiftRight,
        other => return Err(SqlError::unsupported(format!("OPERATOR({other})"))),
    })
}
