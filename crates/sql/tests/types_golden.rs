//! Values, operators, casts, functions and aggregates against what PostgreSQL 15 gives for them.
//!
//! Each line of the tables in `types/` is a kind, its operands as types and literals, and the text of the result and its type, or `!`, the
//! code and the message of the error. Fields are divided by tabs. Tabs, ends of lines and blanks at the end of a field are written as `\t`, `\n` and
//! `\s`, an empty field as `\e`. The zone is UTC, the locale `C.UTF-8`.

use std::fmt::Write as _;

use ordain_sql::error::SqlError;
use ordain_sql::types::aggregate::{self, State};
use ordain_sql::types::cast;
use ordain_sql::types::functions::{self, CallContext};
use ordain_sql::types::operators::{self, BinaryOperator, UnaryOperator};
use ordain_sql::types::{Datum, SqlType, Zone, text};

/// A table for each kind.
const TABLES: [&str; 7] = [
    include_str!("types/aggregate"),
    include_str!("types/binary"),
    include_str!("types/call"),
    include_str!("types/cast"),
    include_str!("types/network"),
    include_str!("types/unary"),
    include_str!("types/value"),
];

type Outcome = Result<(Datum, SqlType), SqlError>;

fn base(name: &str) -> SqlType {
    match name {
        "bool" | "boolean" => SqlType::BOOL,
        "int2" | "smallint" => SqlType::INT2,
        "int4" | "integer" => SqlType::INT4,
        "int8" | "bigint" => SqlType::INT8,
        "float4" | "real" => SqlType::FLOAT4,
        "float8" | "double precision" => SqlType::FLOAT8,
        "numeric" => SqlType::NUMERIC,
        "text" => SqlType::TEXT,
        "varchar" | "character varying" => SqlType::VARCHAR,
        "char" | "character" => SqlType::CHAR,
        "name" => SqlType::NAME,
        "bytea" => SqlType::BYTEA,
        "date" => SqlType::DATE,
        "time" | "time without time zone" => SqlType::TIME,
        "timestamp" | "timestamp without time zone" => SqlType::TIMESTAMP,
        "timestamptz" | "timestamp with time zone" => SqlType::TIMESTAMPTZ,
        "interval" => SqlType::INTERVAL,
        "uuid" => SqlType::UUID,
        "inet" => SqlType::INET,
        "cidr" => SqlType::CIDR,
        "json" => SqlType::JSON,
        "jsonb" => SqlType::JSONB,
        "oid" => SqlType::OID,
        "unknown" => SqlType::UNKNOWN,
        _ => panic!("no type {name}"),
    }
}

fn sql_type(name: &str) -> SqlType {
    let (plain, array) = name.strip_suffix("[]").map_or((name, false), |plain| (plain, true));
    let (base_name, modifier) = match plain.split_once('(') {
        Some((base_name, rest)) => (base_name, rest.trim_end_matches(')')),
        None => (plain, ""),
    };
    let mut numbers = modifier.split(',').filter_map(|part| part.parse::<i32>().ok());
    let first = numbers.next();
    let ty = match (base_name, first) {
        ("varchar", Some(length)) => SqlType::varchar(length),
        ("char", length) => SqlType::char(length.unwrap_or(1)),
        ("numeric", Some(precision)) => {
            SqlType::numeric(precision as u16, numbers.next().unwrap_or(0) as i16)
        }
        (_, Some(modifier)) => SqlType { modifier, ..base(base_name) },
        (_, None) => base(base_name),
    };
    if array { ty.array_of() } else { ty }
}

fn value(name: &str, literal: &str) -> Outcome {
    let ty = sql_type(name);
    Ok((text::parse(literal, ty, Zone::Utc)?, ty))
}

fn binary_operator(symbol: &str) -> BinaryOperator {
    use BinaryOperator::*;
    match symbol {
        "like" => Like,
        "not like" => NotLike,
        "ilike" => ILike,
        "not ilike" => NotILike,
        _ => {
            let all = [
                Add,
                Subtract,
                Multiply,
                Divide,
                Modulo,
                Power,
                Equal,
                NotEqual,
                Less,
                LessOrEqual,
                Greater,
                GreaterOrEqual,
                Concat,
                RegexMatch,
                RegexNotMatch,
                RegexMatchInsensitive,
                RegexNotMatchInsensitive,
                BitAnd,
                BitOr,
                BitXor,
                ShiftLeft,
                ShiftRight,
            ];
            all.into_iter().find(|operator| operator.symbol() == symbol).expect("an operator of the table")
        }
    }
}

fn binary(left: Outcome, symbol: &str, right: Outcome) -> Outcome {
    let ((left, left_type), (right, right_type)) = (left?, right?);
    let operator = binary_operator(symbol);
    let resolved = operators::resolve_binary(operator, left_type, right_type)?;
    let left = cast::cast(left, left_type, resolved.left, Zone::Utc)?;
    let right = cast::cast(right, right_type, resolved.right, Zone::Utc)?;
    Ok((operators::binary(operator, &left, &right, &resolved, Zone::Utc)?, resolved.result))
}

fn unary(symbol: &str, operand: Outcome) -> Outcome {
    let (operand, ty) = operand?;
    let operator = match symbol {
        "-" => UnaryOperator::Negate,
        "+" => UnaryOperator::Plus,
        "~" => UnaryOperator::BitNot,
        _ => UnaryOperator::Not,
    };
    let resolved = operators::resolve_unary(operator, ty)?;
    let operand = cast::cast(operand, ty, resolved.operand, Zone::Utc)?;
    Ok((operators::unary(operator, &operand, &resolved)?, resolved.result))
}

fn cast_to(operand: Outcome, target: &str) -> Outcome {
    let (operand, from) = operand?;
    let target = sql_type(target);
    if cast::allowed(from, target).is_none() {
        return Err(cast::cannot_cast(from, target));
    }
    Ok((cast::cast(operand, from, target, Zone::Utc)?, target))
}

fn call(name: &str, operands: &[&str]) -> Outcome {
    let values: Vec<(Datum, SqlType)> =
        operands.chunks(2).map(|pair| value(pair[0], pair[1])).collect::<Result<_, _>>()?;
    let types: Vec<SqlType> = values.iter().map(|(_, ty)| *ty).collect();
    let function = functions::resolve(name, &types)?;
    let arguments = values.into_iter().zip(&function.arguments);
    let arguments: Vec<Datum> = arguments
        .map(|((value, from), to)| cast::cast(value, from, *to, Zone::Utc))
        .collect::<Result<_, _>>()?;
    let arguments =
        if function.typed { functions::typed_arguments(arguments, &function.arguments) } else { arguments };
    Ok((functions::call(function.id, &arguments, &CallContext::default())?, function.result))
}

fn aggregate(name: &str, argument: &str, rows: &[&str]) -> Outcome {
    let from = sql_type(argument);
    let aggregate = aggregate::resolve(name, &[from])?;
    let mut state = State::new(&aggregate, Zone::Utc);
    for row in rows {
        let row = if *row == "NULL" { Datum::Null } else { text::parse(row, from, Zone::Utc)? };
        state.add(&[cast::cast(row, from, aggregate.arguments[0], Zone::Utc)?])?;
    }
    Ok((state.finish()?, aggregate.result))
}

/// Text and name of the type, or the error, as the table has it.
fn shown(outcome: Outcome) -> (String, String) {
    match outcome {
        Ok((Datum::Null, ty)) => ("NULL".to_owned(), ty.plain().name()),
        Ok((datum, ty)) => (text::to_string(&datum, ty, Zone::Utc), ty.plain().name()),
        Err(error) => (format!("!{} {}", error.state.as_str(), error.message), "-".to_owned()),
    }
}

fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('s') => ' ',
                Some('u') => '\u{1}',
                Some('e') => continue,
                other => other.unwrap_or('\\'),
            },
            _ => character,
        });
    }
    text
}

#[test]
fn all_is_as_postgresql_has_it() {
    let mut report = String::new();
    let mut count = 0;
    for line in TABLES.into_iter().flat_map(str::lines) {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let (outcome, expected) = match fields.as_slice() {
            ["value", name, literal, expected] => (value(name, literal), (*expected, None)),
            ["cast", from, literal, to, expected] => (cast_to(value(from, literal), to), (*expected, None)),
            ["binary", left, a, operator, right, b, expected, ty] => {
                (binary(value(left, a), operator, value(right, b)), (*expected, Some(*ty)))
            }
            ["unary", operator, ty, a, expected, result] => {
                (unary(operator, value(ty, a)), (*expected, Some(*result)))
            }
            ["call", name, operands @ .., expected, ty] => (call(name, operands), (*expected, Some(*ty))),
            ["aggregate", name, argument, rows @ .., expected, ty] => {
                (aggregate(name, argument, rows), (*expected, Some(*ty)))
            }
            _ => panic!("no such line: {line}"),
        };
        let (text, ty) = shown(outcome);
        count += 1;
        if text != expected.0 || expected.1.is_some_and(|expected| expected != ty) {
            writeln!(report, "{line}\n    gave {text} {ty}").unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
    assert!(count > 1000, "{count} lines only");
}
