//! Defaults of columns as PostgreSQL writes them: constants with their types, names of sequences without the schema where they are found
//! without it. A default is kept as it was written, and bound from that; this is only what is shown. Of an expression that is none of
//! those that are known here only the names of types are written anew.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArguments, UnaryOperator, Value,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::super::Column;
use super::Names;
use crate::bind::names::{name_of, names_in};
use crate::bind::{interval_of_literal, type_named};
use crate::syntax::parse_expression;
use crate::types::{BaseType, SqlType, Zone, text};

/// The default of a column; `None` if it has none. One that is null is none.
pub(super) fn shown(column: &Column, names: Names<'_>) -> Option<String> {
    let default = column.default.as_ref().filter(|_| column.identity.is_none() && !column.dropped)?;
    let Ok(written) = parse_expression(default) else { return Some(default.clone()) };
    let inner = unnested(&written);
    if is_null(inner) {
        return null_of(column.data_type);
    }
    if let Expr::Cast { expr, data_type, .. } = inner
        && is_null(unnested(expr))
        && type_of_cast(data_type).is_some_and(|to| to == column.data_type && to.modifier < 0)
    {
        return None;
    }
    let exact = Writer { names }.expression(inner, Some(column.data_type));
    Some(exact.map_or_else(|| with_type_names(default), |shown| shown.text))
}

/// The expression of a generated column; `None` if it is none.
pub(super) fn generation(column: &Column) -> Option<String> {
    column.generated.as_deref().map(with_type_names)
}

/// Whether a column has one that is shown.
pub(super) fn has(column: &Column, names: Names<'_>) -> bool {
    let default = column.default.as_ref().filter(|_| column.identity.is_none() && !column.dropped);
    // Most are seen not to be null without being read.
    default.is_some_and(|text| !text.to_ascii_uppercase().contains("NULL") || shown(column, names).is_some())
}

/// A null is no default, unless the length of the column's type is applied to it.
fn null_of(data_type: SqlType) -> Option<String> {
    let applies = data_type.modifier >= 0 && data_type.base != BaseType::Interval;
    applies.then(|| format!("NULL::{}", name_without_length(data_type)))
}

/// A part of a default, with its type.
struct Shown {
    text: String,
    data_type: SqlType,
}

fn shown_as(text: impl Into<String>, data_type: SqlType) -> Option<Shown> {
    Some(Shown { text: text.into(), data_type })
}

struct Writer<'c> {
    names: Names<'c>,
}

impl Writer<'_> {
    /// An expression whose literals without a type are of the one that is wanted; `None` if it is none of those that are known here.
    fn expression(&self, written: &Expr, wanted: Option<SqlType>) -> Option<Shown> {
        match written {
            Expr::Nested(inner) => self.expression(inner, wanted),
            Expr::Value(value) => match &value.value {
                Value::Boolean(value) => shown_as(value.to_string(), SqlType::BOOL),
                Value::Number(digits, _) => number(digits),
                _ => self.constant(literal(written)?, wanted?, false),
            },
            // There are no columns that it could be.
            Expr::Identifier(word) if word.quote_style.is_none() => {
                let word = name_of(word);
                shown_as(word.to_ascii_uppercase(), type_of_word(&word)?)
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match unnested(expr) {
                Expr::Value(value) => match &value.value {
                    Value::Number(digits, _) => number(&format!("-{digits}")),
                    _ => None,
                },
                _ => None,
            },
            Expr::TypedString(typed) => {
                let to = type_of_cast(&typed.data_type)?;
                self.constant(literal(&Expr::Value(typed.value.clone()))?, to, true)
            }
            Expr::Interval(interval) => {
                let amount = literal(&interval.value)?;
                self.constant(amount, interval_of_literal(interval).ok()?, false)
            }
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
                self.cast(unnested(expr), data_type)
            }
            Expr::Array(array) => self.array(&array.elem, None),
            Expr::Function(function) => self.function(function),
            Expr::AtTimeZone { timestamp, time_zone } => {
                let time = self.expression(timestamp, None)?;
                let zone = self.text(time_zone)?;
                let data_type = in_zone(time.data_type)?;
                shown_as(format!("({} AT TIME ZONE {zone})", time.text), data_type)
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            _ => None,
        }
    }

    /// A literal of a type, whose length is applied by a cast if that is written.
    fn constant(&self, literal: &str, data_type: SqlType, is_cast: bool) -> Option<Shown> {
        // Words for the present are no constants, and blanks at the end of `char` are not kept.
        let is_word = matches!(
            literal.trim().to_ascii_lowercase().as_str(),
            "now" | "today" | "tomorrow" | "yesterday"
        );
        let is_padded = data_type.base == BaseType::Char && literal.ends_with(' ');
        if data_type.is_date_time() && is_word || is_padded || data_type.base == BaseType::Oid {
            return None;
        }
        let zone = self.names.surroundings.zone;
        let is_interval = data_type.base == BaseType::Interval && !data_type.array;
        let kept = if is_interval { data_type } else { data_type.plain() };
        let value = text::to_string(&text::parse(literal, kept, zone).ok()?, kept, zone);
        let quoted = format!("'{}'", value.replace('\'', "''"));
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let (bare, needs_type) = match data_type.base {
            _ if data_type.array => (quoted, true),
            BaseType::Bool => ((value == "t").to_string(), false),
            BaseType::Int4 if !value.starts_with('-') => (value, false),
            BaseType::Numeric
                if value.starts_with(|first: char| first.is_ascii_digit())
                    && !value.bytes().all(is_digit) =>
            {
                (value, false)
            }
            _ => (quoted, true),
        };
        let has_length = is_cast && data_type.modifier >= 0 && !is_interval;
        let text = match has_length {
            true => format!("{bare}::{}", data_type.name()),
            false if is_interval => format!("{bare}::{}", data_type.name()),
            false if needs_type => format!("{bare}::{}", name_without_length(data_type)),
            false => bare,
        };
        shown_as(text, data_type)
    }

    fn cast(&self, operand: &Expr, written: &DataType) -> Option<Shown> {
        if matches!(written, DataType::Regclass) {
            return self.relation(literal(operand)?);
        }
        let to = type_of_cast(written)?;
        if let Some(literal) = literal(operand) {
            return self.constant(literal, to, true);
        }
        if let Expr::Array(array) = operand {
            return (to.array && to.modifier < 0).then(|| self.array(&array.elem, Some(to.element())))?;
        }
        let operand = self.expression(operand, None)?;
        if to.modifier >= 0 {
            return None;
        }
        if operand.data_type.is_same(to) {
            return Some(operand);
        }
        shown_as(format!("({})::{}", operand.text, name_without_length(to)), to)
    }

    /// The elements of an array, which have to be of one type.
    fn array(&self, elements: &[Expr], wanted: Option<SqlType>) -> Option<Shown> {
        if elements.is_empty() {
            let array = wanted?.array_of();
            return shown_as(format!("ARRAY[]::{}", name_without_length(array)), array);
        }
        let of = |element| self.expression(element, Some(wanted.unwrap_or(SqlType::TEXT)));
        let shown: Vec<Shown> = elements.iter().map(of).collect::<Option<_>>()?;
        let first = shown.first()?.data_type;
        let is_fit = shown.iter().all(|one| one.data_type.is_same(first) && !one.data_type.array)
            && wanted.is_none_or(|wanted| wanted.is_same(first));
        let texts: Vec<String> = shown.into_iter().map(|one| one.text).collect();
        is_fit.then(|| shown_as(format!("ARRAY[{}]", texts.join(", ")), first.plain().array_of()))?
    }

    /// An operator whose operands are cast to nothing else.
    fn binary(&self, left: &Expr, operator: &BinaryOperator, right: &Expr) -> Option<Shown> {
        use BinaryOperator::{Minus, Multiply, Plus, StringConcat};
        if *operator == StringConcat {
            let (left, right) = (self.text(left)?, self.text(right)?);
            return shown_as(format!("({left} || {right})"), SqlType::TEXT);
        }
        let (left, right) = (self.expression(left, None)?, self.expression(right, None)?);
        let (a, b) = (left.data_type.plain(), right.data_type.plain());
        let is_number = a == b && a.is_numeric() && matches!(operator, Plus | Minus | Multiply);
        let is_time = matches!(a, SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ)
            && b == SqlType::INTERVAL
            && matches!(operator, Plus | Minus);
        (is_number || is_time).then(|| shown_as(format!("({} {operator} {})", left.text, right.text), a))?
    }

    /// What is a text.
    fn text(&self, written: &Expr) -> Option<String> {
        let shown = self.expression(written, Some(SqlType::TEXT))?;
        (shown.data_type == SqlType::TEXT).then_some(shown.text)
    }

    /// What `regclass` shows for a name.
    fn relation(&self, name: &str) -> Option<Shown> {
        let mut parts = names_in(name, '.')?;
        let last = parts.pop()?;
        let schema = match parts.pop() {
            Some(schema) => schema,
            None => self.names.schema_of(&last)?,
        };
        let shown = self.names.shown(&schema, &last).replace('\'', "''");
        shown_as(format!("'{shown}'::regclass"), SqlType::OID)
    }

    fn function(&self, function: &Function) -> Option<Shown> {
        let parts: Vec<String> =
            function.name.0.iter().map(|part| part.as_ident().map(name_of)).collect::<Option<_>>()?;
        let name = match parts.as_slice() {
            [name] => name.as_str(),
            [schema, name] if schema == "pg_catalog" => name.as_str(),
            _ => return None,
        };
        if function.over.is_some() || function.filter.is_some() || !function.within_group.is_empty() {
            return None;
        }
        if let FunctionArguments::None = function.args {
            return shown_as(name.to_ascii_uppercase(), type_of_word(name)?);
        }
        let arguments = crate::bind::arguments_of(function).ok()?;
        match (name, arguments.as_slice()) {
            ("nextval", [sequence]) => {
                let inner = match unnested(sequence) {
                    Expr::Cast { expr, data_type: DataType::Regclass, .. } => unnested(expr),
                    other => other,
                };
                let sequence = self.relation(literal(inner)?)?.text;
                shown_as(format!("nextval({sequence})"), SqlType::INT8)
            }
            ("current_timestamp" | "localtimestamp" | "current_time" | "localtime", [digits]) => {
                let Expr::Value(value) = digits else { return None };
                let Value::Number(digits, _) = &value.value else { return None };
                shown_as(format!("{}({digits})", name.to_ascii_uppercase()), type_of_word(name)?)
            }
            ("current_schema", []) => shown_as("\"current_schema\"()", SqlType::NAME),
            (_, []) => shown_as(format!("{name}()"), type_of_call(name)?),
            ("lower" | "upper" | "md5", [argument]) => {
                shown_as(format!("{name}({})", self.text(argument)?), SqlType::TEXT)
            }
            ("length", [argument]) => shown_as(format!("length({})", self.text(argument)?), SqlType::INT4),
            ("timezone", [zone, time]) => {
                let (zone, time) = (self.text(zone)?, self.expression(time, None)?);
                shown_as(format!("timezone({zone}, {})", time.text), in_zone(time.data_type)?)
            }
            ("date_trunc", [field, time]) => {
                let (field, time) = (self.text(field)?, self.expression(time, None)?);
                in_zone(time.data_type)?;
                shown_as(format!("date_trunc({field}, {})", time.text), time.data_type)
            }
            ("to_char", [time, pattern]) => {
                let (time, pattern) = (self.expression(time, None)?, self.text(pattern)?);
                in_zone(time.data_type)?;
                shown_as(format!("to_char({}, {pattern})", time.text), SqlType::TEXT)
            }
            _ => None,
        }
    }
}

/// The type of a local time from a moment, and of a moment from a local time.
fn in_zone(data_type: SqlType) -> Option<SqlType> {
    match data_type.plain() {
        SqlType::TIMESTAMPTZ => Some(SqlType::TIMESTAMP),
        SqlType::TIMESTAMP => Some(SqlType::TIMESTAMPTZ),
        _ => None,
    }
}

/// The type of a word that stands for a call.
fn type_of_word(word: &str) -> Option<SqlType> {
    Some(match word {
        "current_timestamp" => SqlType::TIMESTAMPTZ,
        "localtimestamp" => SqlType::TIMESTAMP,
        "current_date" => SqlType::DATE,
        "current_time" | "localtime" => SqlType::TIME,
        "current_user" | "current_role" | "session_user" | "user" | "current_catalog" | "current_schema" => {
            SqlType::NAME
        }
        _ => return None,
    })
}

/// The type of what functions without arguments give.
fn type_of_call(name: &str) -> Option<SqlType> {
    Some(match name {
        "now" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp" => SqlType::TIMESTAMPTZ,
        "gen_random_uuid" | "uuid_generate_v4" => SqlType::UUID,
        "random" => SqlType::FLOAT8,
        "version" => SqlType::TEXT,
        "current_database" => SqlType::NAME,
        _ => return None,
    })
}

/// A number as written; one below zero is a literal.
fn number(digits: &str) -> Option<Shown> {
    let integer = digits.parse::<i64>().ok();
    let data_type = match integer {
        // Of the least, the digits are read before the sign.
        Some(value) if i32::try_from(value).is_ok() && value != i64::from(i32::MIN) => SqlType::INT4,
        Some(value) if value != i64::from(i32::MIN) && value != i64::MIN => SqlType::INT8,
        Some(_) => return None,
        None => SqlType::NUMERIC,
    };
    let value = text::to_string(&text::parse(digits, data_type, Zone::Utc).ok()?, data_type, Zone::Utc);
    let is_plain = match data_type {
        SqlType::INT4 => !value.starts_with('-'),
        SqlType::NUMERIC => !value.starts_with('-') && value.contains('.'),
        _ => false,
    };
    shown_as(if is_plain { value } else { format!("'{value}'::{}", data_type.name()) }, data_type)
}

/// The name of a type whose length is not told.
fn name_without_length(data_type: SqlType) -> String {
    match (data_type.base, data_type.array) {
        (BaseType::Char, false) => "bpchar".to_owned(),
        (BaseType::Char, true) => "bpchar[]".to_owned(),
        _ => data_type.plain().name(),
    }
}

/// The type of a cast; `None` for those that stand for numbers of objects.
fn type_of_cast(written: &DataType) -> Option<SqlType> {
    type_named(written).ok().filter(|known| known.base != BaseType::Oid)
}

fn unnested(written: &Expr) -> &Expr {
    if let Expr::Nested(inner) = written { unnested(inner) } else { written }
}

fn is_null(written: &Expr) -> bool {
    matches!(written, Expr::Value(value) if matches!(value.value, Value::Null))
}

/// The text of a literal.
fn literal(written: &Expr) -> Option<&str> {
    match written {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

/// A text in which the types of casts have the names that `format_type` gives them.
fn with_type_names(default: &str) -> String {
    let dialect = PostgreSqlDialect {};
    let Ok(tokens) = Tokenizer::new(&dialect, default).with_unescape(false).tokenize() else {
        return default.to_owned();
    };
    let mut written = String::with_capacity(default.len());
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        written.push_str(&token.to_string());
        place += 1;
        if *token != Token::DoubleColon {
            continue;
        }
        // As much as is a type.
        let lengths = (1..=LONGEST_TYPE_TOKENS.min(tokens.len() - place)).rev();
        let mut named = lengths.filter_map(|length| {
            let text: String = tokens[place..place + length].iter().map(Token::to_string).collect();
            Some((length, type_name(&text)?, text))
        });
        if let Some((length, name, text)) = named.next() {
            written.push_str(&name);
            // Blanks that came after the type.
            written.push_str(&text[text.trim_end().len()..]);
            place += length;
        }
    }
    written
}

/// What `format_type` calls the type that a text names, if that is all that it does.
fn type_name(text: &str) -> Option<String> {
    let Ok(Expr::Cast { data_type, .. }) = parse_expression(&format!("NULL::{text}")) else { return None };
    // What comes after an expression is not read.
    let letters = |text: String| text.to_lowercase().replace(char::is_whitespace, "");
    let is_all = letters(data_type.to_string()) == letters(text.to_owned());
    if is_all { Some(type_named(&data_type).ok()?.name()) } else { None }
}

/// Most tokens of the name of a type, blanks among them, as of `timestamp(3) without time zone[]`.
const LONGEST_TYPE_TOKENS: usize = 12;
