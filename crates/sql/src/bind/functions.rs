//! Calls of functions.

use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, TimezoneInfo,
};

use super::expression::{constant, text_constant};
use super::names::{last_name, relation_named};
use super::questions::Question;
use super::scope::Bound;
use super::types::sql_type;
use super::{Binder, windows};
use crate::catalog::Definition;
use crate::error::{SqlError, SqlState};
use crate::execute::{Inputs, evaluate};
use crate::plan::{Expression, RandomKind};
use crate::types::cast::CastContext;
use crate::types::operators::{self, BinaryOperator};
use crate::types::{BaseType, Datum, SqlType, aggregate, functions};

/// The version of PostgreSQL whose protocol and dialect this is, as a number.
pub const VERSION_NUMBER: &str = "150000";

/// What `version()` says: drivers look for the number.
pub const VERSION: &str = concat!("PostgreSQL 15.0 (Ordain ", env!("CARGO_PKG_VERSION"), ")");

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &Function) -> Result<Bound, SqlError> {
        let name = last_name(&function.name)?;
        if let Some(over) = &function.over {
            return self.window_function(&name, function, over);
        }
        if windows::is_window_function(&name) {
            if !function.within_group.is_empty() {
                return Err(SqlError::unsupported(format!("the hypothetical-set aggregate {name}")));
            }
            return Err(windows::without_over(&name));
        }
        if name == "grouping" {
            return self.grouping_question(&arguments_of(function)?);
        }
        if aggregate::exists(&name) {
            return self.aggregate(&name, function);
        }
        if let ("array", FunctionArguments::Subquery(query)) = (name.as_str(), &function.args) {
            return self.array_of(query);
        }
        let written =
            if name == "make_interval" { make_interval(function)? } else { arguments_of(function)? };
        if name == "row" {
            return Err(SqlError::unsupported("a row as a value"));
        }
        self.function_named(&name, &written)
    }

    /// A function by its name, with its arguments as they are written.
    pub(super) fn function_named(&mut self, name: &str, written: &[Expr]) -> Result<Bound, SqlError> {
        if let Some(bound) = self.sequence_function(name, written)? {
            return Ok(bound);
        }
        let mut arguments = Vec::with_capacity(written.len());
        for argument in written {
            arguments.push(match self.whole_row(name, argument)? {
                Some(row) => row,
                None => self.expression(argument)?,
            });
        }
        self.call(name, arguments)
    }

    /// A function by its name.
    pub(super) fn call(&mut self, name: &str, arguments: Vec<Bound>) -> Result<Bound, SqlError> {
        if let Some(bound) = self.of_session(name) {
            return Ok(bound);
        }
        if let Some(bound) = self.catalog_function(name, &arguments)? {
            return Ok(bound);
        }
        if let Some(bound) = self.bound_of_vector(name, &arguments)? {
            return Ok(bound);
        }
        if let Some(bound) = self.session_function(name, &arguments)? {
            return Ok(bound);
        }
        match name {
            "coalesce" => {
                let (values, data_type) = self.unified(arguments, "COALESCE")?;
                return Ok(Bound { expression: Expression::Coalesce(values), data_type });
            }
            "nullif" => return self.null_if(arguments),
            "greatest" | "least" => {
                let (values, data_type) = self.unified(arguments, name)?;
                let types = vec![data_type; values.len()];
                let function = functions::resolve(name, &types)?;
                return Ok(Bound {
                    expression: Expression::Call { function: function.id, arguments: values },
                    data_type,
                });
            }
            "random" if arguments.is_empty() => {
                let expression = Expression::Random(RandomKind::Float);
                return Ok(Bound { expression, data_type: SqlType::FLOAT8 });
            }
            "gen_random_uuid" | "uuid_generate_v4" if arguments.is_empty() => {
                let expression = Expression::Random(RandomKind::Uuid);
                return Ok(Bound { expression, data_type: SqlType::UUID });
            }
            "current_timestamp" | "localtimestamp" | "current_time" | "localtime" if arguments.len() == 1 => {
                return self.with_digits(name, &arguments[0]);
            }
            "pg_typeof" => {
                let name = |argument: &Bound| match argument.data_type {
                    data_type if data_type.is_vector() || data_type.is_regproc() => data_type.name(),
                    data_type => data_type.plain().name(),
                };
                let name = arguments.first().map_or_else(String::new, name);
                return Ok(text_constant(&name));
            }
            _ => {}
        }
        let arguments = self.shown_padded(name, arguments)?;
        let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
        let function = functions::resolve(name, &types);
        let function = function.map_err(|error| self.misplaced_call(name).unwrap_or(error))?;
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, wanted) in arguments.into_iter().zip(&function.arguments) {
            values.push(self.argument(argument, *wanted)?);
            if function.typed {
                values.push(Expression::Constant(Datum::Int(i64::from(wanted.oid()))));
            }
        }
        if functions::is_strict(function.id) && super::nulls::decide(&values) {
            let expression = Expression::Constant(Datum::Null);
            return Ok(Bound { expression, data_type: function.result });
        }
        Ok(Bound {
            expression: Expression::Call { function: function.id, arguments: values },
            data_type: function.result,
        })
    }

    /// The arguments of a function, those of the type `char(n)` with their blanks where it is shown what they are: elsewhere
    /// PostgreSQL makes texts without them of such values.
    pub(super) fn shown_padded(&mut self, name: &str, arguments: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
        // What divides the others, and what they are put into, is a text to these.
        let texts = match name {
            "concat_ws" | "format" => 1,
            "concat" | "octet_length" => 0,
            // What makes JSON shows them; what takes it apart is told keys, which are texts.
            functions::ROW_TO_JSON => 0,
            _ if name.contains("to_json")
                || name.contains("json_build_")
                || name.contains("jsonb_build_") =>
            {
                0
            }
            "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg" => 0,
            _ => return Ok(arguments),
        };
        let mut shown = Vec::with_capacity(arguments.len());
        for (place, argument) in arguments.into_iter().enumerate() {
            shown.push(if place < texts { argument } else { self.padded(argument)? });
        }
        Ok(shown)
    }

    /// A value of the type `char(n)` as a text with its blanks, and an array of such as one of texts; any other as it is.
    pub(super) fn padded(&mut self, value: Bound) -> Result<Bound, SqlError> {
        let is_padded = value.data_type.base == BaseType::Char;
        let Some(length) = value.data_type.length().filter(|_| is_padded) else { return Ok(value) };
        let length = Expression::Constant(Datum::Int(i64::try_from(length).unwrap_or(i64::MAX)));
        let length = Bound { expression: length, data_type: SqlType::INT4 };
        let (text, pad) = match value.data_type.array {
            true => (SqlType::TEXT.array_of(), functions::PAD_EACH),
            false => (SqlType::TEXT, "rpad"),
        };
        let text = self.coerced(value, text, CastContext::Explicit)?;
        self.call(pad, vec![text, length])
    }

    /// The time with some digits after the second.
    fn with_digits(&mut self, name: &str, digits: &Bound) -> Result<Bound, SqlError> {
        let Expression::Constant(Datum::Int(digits @ 0..)) = digits.expression else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{name}: the digits are a number")));
        };
        // PostgreSQL takes more for six, with a warning.
        let digits = Some(digits.min(6).cast_unsigned());
        let data_type = match name {
            "current_timestamp" => DataType::Timestamp(digits, TimezoneInfo::Tz),
            "localtimestamp" => DataType::Timestamp(digits, TimezoneInfo::None),
            _ => DataType::Time(digits, TimezoneInfo::None),
        };
        let time = self.call(name, Vec::new())?;
        self.explicit(time, sql_type(&data_type)?)
    }

    fn null_if(&mut self, arguments: Vec<Bound>) -> Result<Bound, SqlError> {
        let Ok([value, other]) = <[Bound; 2]>::try_from(arguments) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "NULLIF takes two arguments"));
        };
        let compared = operators::resolve_binary(BinaryOperator::Equal, value.data_type, other.data_type)?;
        // It is what is compared that is given. Integers of different sizes are compared as they are, and so are days and moments.
        let is_of_time = |data_type: SqlType| {
            !data_type.array
                && matches!(data_type.base, BaseType::Date | BaseType::Timestamp | BaseType::TimestampTz)
        };
        let both = |is_it: &dyn Fn(SqlType) -> bool| is_it(value.data_type) && is_it(other.data_type);
        // A `real` is compared with any other number as it is, too.
        let is_real = value.data_type.is_same(SqlType::FLOAT4) && compared.left.is_float();
        let keeps_type = both(&SqlType::is_integer) || both(&is_of_time) || is_real;
        let data_type = if keeps_type { value.data_type } else { compared.left };
        // A length stays, which what is given as it is has too.
        let data_type = if value.data_type.is_same(data_type) { value.data_type } else { data_type };
        self.with_locals([value, other], |binder, [value, other]| {
            let is_equal = binder.operate(BinaryOperator::Equal, value.clone(), other)?.expression;
            let value = binder.implicit(value, data_type)?;
            let branches = vec![(is_equal, Expression::Constant(Datum::Null))];
            let otherwise = Some(Box::new(value.expression));
            Ok(Bound { expression: Expression::Case { branches, otherwise }, data_type: value.data_type })
        })
    }

    /// Functions of the session.
    fn of_session(&self, name: &str) -> Option<Bound> {
        let surroundings = self.surroundings;
        let named = |name: &str| Some(constant(Datum::Text(name.to_owned()), SqlType::NAME));
        match name {
            "version" => Some(text_constant(VERSION)),
            "current_user" | "current_role" | "session_user" | "user" => named(&surroundings.user),
            "current_database" | "current_catalog" => named(&surroundings.database),
            "current_schema" => {
                let first = self.schemas_of_path().next();
                Some(constant(first.map_or(Datum::Null, |name| Datum::Text(name.to_owned())), SqlType::NAME))
            }
            _ => None,
        }
    }

    /// Functions of sequences.
    fn sequence_function(&mut self, name: &str, written: &[Expr]) -> Result<Option<Bound>, SqlError> {
        let expression = match (name, written) {
            ("nextval", [sequence]) => {
                let number = self.sequence_argument(sequence)?;
                self.draws(number);
                Expression::NextValue(number)
            }
            ("currval", [sequence]) => {
                let number = self.sequence_argument(sequence)?;
                let shape = &self.sequences[usize::from(number)];
                let question = Question::CurrentValue { storage: shape.storage, name: shape.name.clone() };
                return self.asked(question, SqlType::INT8).map(Some);
            }
            ("setval", [sequence, value, called @ ..]) if called.len() <= 1 => {
                let sequence = self.sequence_argument(sequence)?;
                self.draws(sequence);
                let value = self.expression(value)?;
                let value = Box::new(self.argument(value, SqlType::INT8)?);
                let called = match called.first() {
                    Some(called) => self.condition(called, "setval")?,
                    None => Expression::Constant(Datum::Bool(true)),
                };
                Expression::SetValue { sequence, value, called: Box::new(called) }
            }
            _ => return Ok(None),
        };
        Ok(Some(Bound { expression, data_type: SqlType::INT8 }))
    }

    /// The sequence that a literal names; its number in the plan.
    pub(super) fn sequence_argument(&mut self, argument: &Expr) -> Result<u16, SqlError> {
        let inner = match argument {
            Expr::Cast { expr, .. } => expr,
            other => other,
        };
        let name = self.expression(inner)?.expression;
        let Some(Datum::Text(name)) = evaluate(&name, &Inputs::default()) else {
            return Err(SqlError::unsupported("a sequence whose name is computed"));
        };
        let (schema, last) = relation_named(&name)?;
        if schema.is_none()
            && let Some((schema, _)) = self.find(None, &last)
        {
            self.literal_meant(inner, &schema, &last);
        }
        self.sequence(schema.as_deref(), &last)
    }

    /// The sequence with a name; its number in the plan.
    pub(super) fn sequence(&mut self, schema: Option<&str>, name: &str) -> Result<u16, SqlError> {
        match self.find(schema, name) {
            Some((schema, Definition::Sequence(sequence))) => Ok(self.use_sequence(&schema, name, sequence)),
            Some(_) => {
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence")))
            }
            None => Err(super::undefined_table(schema, name)),
        }
    }
}

/// The arguments of `make_interval`, which may be named.
fn make_interval(function: &Function) -> Result<Vec<Expr>, SqlError> {
    const NAMES: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    let FunctionArguments::List(list) = &function.args else { return Ok(Vec::new()) };
    let mut places: [Option<Expr>; 7] = Default::default();
    for (at, argument) in list.args.iter().enumerate() {
        let (place, expr) = match argument {
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                let name = super::names::name_of(name);
                (NAMES.iter().position(|known| *known == name), expr.clone())
            }
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(expr), ..
            } => {
                let name = super::names::name_of(name);
                (NAMES.iter().position(|known| *known == name), expr.clone())
            }
            other => (Some(at), plain_argument(other)?),
        };
        match place.and_then(|place| places.get_mut(place)) {
            Some(place) => *place = Some(expr),
            None => return Err(functions::undefined("make_interval", &[])),
        }
    }
    let last = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let zero = || Expr::value(sqlparser::ast::Value::Number("0".to_owned(), false));
    Ok(places.into_iter().take(last).map(|place| place.unwrap_or_else(zero)).collect())
}

/// The arguments of a call that has nothing but such.
pub(crate) fn arguments_of(function: &Function) -> Result<Vec<Expr>, SqlError> {
    match &function.args {
        FunctionArguments::None => Ok(Vec::new()),
        FunctionArguments::Subquery(_) => Err(SqlError::unsupported("a query as the argument of a function")),
        FunctionArguments::List(list) => list.args.iter().map(plain_argument).collect(),
    }
}

pub(super) fn plain_argument(argument: &FunctionArg) -> Result<Expr, SqlError> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression.clone()),
        other => Err(SqlError::unsupported(format!("the argument {other}"))),
    }
}
