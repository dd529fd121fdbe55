//! Values, operators, casts, functions and aggregates against what PostgreSQL 15 gives for them.
//!
//! Each line of the table is a kind, its operands as types and literals, and the text of the result and its type, or `!`, the
//! code and the message of the error. Tabs, ends of lines and blanks at the end of a field are written as `\t`, `\n` and
//! `\s`, an empty field as `\e`. The zone is UTC, the locale `C.UTF-8`.

use std::fmt::Write as _;

use ordain_sql::error::SqlError;
use ordain_sql::types::aggregate::{self, State};
use ordain_sql::types::cast;
use ordain_sql::types::functions::{self, CallContext};
use ordain_sql::types::operators::{self, BinaryOperator, UnaryOperator};
use ordain_sql::types::{Datum, SqlType, Zone, text};

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
    for line in TABLE.lines() {
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

const TABLE: &str = r####"value	bool	t	t
value	bool	true	t
value	bool	TRUE	t
value	bool	 yes\s	t
value	bool	on	t
value	bool	1	t
value	bool	f	f
value	bool	no	f
value	bool	off	f
value	bool	of	f
value	bool	o	!22P02 invalid input syntax for type boolean: "o"
value	bool	0	f
value	bool	n	f
value	bool	tru	t
value	bool	maybe	!22P02 invalid input syntax for type boolean: "maybe"
value	bool	\e	!22P02 invalid input syntax for type boolean: ""
value	bool	2	!22P02 invalid input syntax for type boolean: "2"
value	int2	0	0
value	int2	-32768	-32768
value	int2	32767	32767
value	int2	32768	!22003 value "32768" is out of range for type smallint
value	int2	 12\s	12
value	int2	+5	5
value	int2	--5	!22P02 invalid input syntax for type smallint: "--5"
value	int2	1.5	!22P02 invalid input syntax for type smallint: "1.5"
value	int2	abc	!22P02 invalid input syntax for type smallint: "abc"
value	int4	2147483647	2147483647
value	int4	2147483648	!22003 value "2147483648" is out of range for type integer
value	int4	-2147483648	-2147483648
value	int4	\e	!22P02 invalid input syntax for type integer: ""
value	int4	1e3	!22P02 invalid input syntax for type integer: "1e3"
value	int4	0x10	!22P02 invalid input syntax for type integer: "0x10"
value	int4	 7	7
value	int8	9223372036854775807	9223372036854775807
value	int8	9223372036854775808	!22003 value "9223372036854775808" is out of range for type bigint
value	int8	-9223372036854775808	-9223372036854775808
value	int8	12a	!22P02 invalid input syntax for type bigint: "12a"
value	oid	0	0
value	oid	4294967295	4294967295
value	oid	4294967296	!22003 value "4294967296" is out of range for type oid
value	oid	-1	4294967295
value	float8	1	1
value	float8	1.5	1.5
value	float8	-0	-0
value	float8	1e15	1e+15
value	float8	1e14	100000000000000
value	float8	123456789012345	123456789012345
value	float8	1234567890123456	1.234567890123456e+15
value	float8	999999999999999	999999999999999
value	float8	1e-4	0.0001
value	float8	1e-5	1e-05
value	float8	0.00012345	0.00012345
value	float8	1e23	9.999999999999999e+22
value	float8	9007199254740993	9.007199254740992e+15
value	float8	5e-324	5e-324
value	float8	1e-400	!22003 "1e-400" is out of range for type double precision
value	float8	1e400	!22003 "1e400" is out of range for type double precision
value	float8	1.7976931348623157e308	1.7976931348623157e+308
value	float8	NaN	NaN
value	float8	nan	NaN
value	float8	Infinity	Infinity
value	float8	-inf	-Infinity
value	float8	+infinity	Infinity
value	float8	.5	0.5
value	float8	5.	5
value	float8	1e	!22P02 invalid input syntax for type double precision: "1e"
value	float8	abc	!22P02 invalid input syntax for type double precision: "abc"
value	float8	8.41e21	8.409999999999999e+21
value	float8	9.5367431640625e-07	9.5367431640625e-07
value	float8	2.2250738585072014e-308	2.2250738585072014e-308
value	float8	0.1	0.1
value	float8	100	100
value	float8	123.456e2	12345.6
value	float8	4.35	4.35
value	float8	1e22	1e+22
value	float8	1e21	1e+21
value	float8	3.141592653589793	3.141592653589793
value	float8	-1.5e-10	-1.5e-10
value	float4	1.1	1.1
value	float4	123456	123456
value	float4	1234567	1.234567e+06
value	float4	1e5	100000
value	float4	1e6	1e+06
value	float4	16777216	1.6777216e+07
value	float4	33554432	3.3554432e+07
value	float4	0.1	0.1
value	float4	3.4028235e38	3.4028235e+38
value	float4	3.5e38	!22003 "3.5e38" is out of range for type real
value	float4	1e-45	1e-45
value	float4	1e-46	!22003 "1e-46" is out of range for type real
value	float4	1e-5	1e-05
value	float4	0.0001	0.0001
value	float4	NaN	NaN
value	float4	-Infinity	-Infinity
value	float4	1.17549435e-38	1.1754944e-38
value	float4	8388608.5	8.388608e+06
value	float4	999999	999999
value	float4	9.99999e5	999999
value	float4	2.5e-3	0.0025
value	numeric	1	1
value	numeric	1.0	1.0
value	numeric	1.00	1.00
value	numeric	-1.50	-1.50
value	numeric	0	0
value	numeric	0.000	0.000
value	numeric	-0.0	0.0
value	numeric	1e5	100000
value	numeric	1.5e3	1500
value	numeric	1.5e-3	0.0015
value	numeric	1E+2	100
value	numeric	00012.3400	12.3400
value	numeric	.5	0.5
value	numeric	5.	5
value	numeric	NaN	NaN
value	numeric	nan	NaN
value	numeric	1e	!22P02 invalid input syntax for type numeric: "1e"
value	numeric	e5	!22P02 invalid input syntax for type numeric: "e5"
value	numeric	\e	!22P02 invalid input syntax for type numeric: ""
value	numeric	1.2.3	!22P02 invalid input syntax for type numeric: "1.2.3"
value	numeric	12345678901234567890123456789012345678901234567890.123456789	12345678901234567890123456789012345678901234567890.123456789
value	numeric	1e-20	0.00000000000000000001
value	numeric	-.5	-0.5
value	numeric	+3	3
value	numeric	1e131072	!22003 value overflows numeric format
value	numeric	 7.5\s	7.5
value	numeric	0e5	0
value	numeric	0.0e5	0
value	numeric(5,2)	123.456	123.46
value	numeric(5,2)	999.994	999.99
value	numeric(5,2)	999.995	!22003 numeric field overflow
value	numeric(5,2)	-0.005	-0.01
value	numeric(5,2)	NaN	NaN
value	numeric(5,2)	1e3	!22003 numeric field overflow
value	numeric(3,0)	99.5	100
value	numeric(3,0)	999.5	!22003 numeric field overflow
value	numeric(2,2)	0.994	0.99
value	numeric(2,2)	0.995	!22003 numeric field overflow
value	numeric(2,2)	1	!22003 numeric field overflow
value	numeric(3,-2)	12345	12300
value	numeric(3,-2)	99949	99900
value	numeric(3,-2)	99950	!22003 numeric field overflow
value	text	abc	abc
value	text	 x\s	 x\s
value	text	\e	\e
value	text	é	é
value	varchar(3)	abc	abc
value	varchar(3)	abcd	abc
value	varchar(3)	ab  \s	ab\s
value	varchar(3)	éèà!	éèà
value	char(5)	abc	abc \s
value	char(5)	abcdefg	abcde
value	char(5)	\e	    \s
value	char(5)	ab  \s	ab  \s
value	name	abc	abc
value	name	xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx	xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
value	bytea	\\x	\\x
value	bytea	\\xDEADbeef	\\xdeadbeef
value	bytea	\\xabc	!22023 invalid hexadecimal data: odd number of digits
value	bytea	\\xzz	!22023 invalid hexadecimal digit: "z"
value	bytea	abc	\\x616263
value	bytea	a\\\\b	\\x615c62
value	bytea	\\000\\377x	\\x00ff78
value	bytea	\\9	!22P02 invalid input syntax for type bytea
value	bytea	\\x de ad	\\xdead
value	date	2020-02-29	2020-02-29
value	date	2019-02-29	!22008 date/time field value out of range: "2019-02-29"
value	date	1999-01-08	1999-01-08
value	date	January 8, 1999	1999-01-08
value	date	1/8/1999	1999-01-08
value	date	1/18/1999	1999-01-18
value	date	01/02/03	2003-01-02
value	date	1999-Jan-08	1999-01-08
value	date	Jan-08-1999	1999-01-08
value	date	08-Jan-1999	1999-01-08
value	date	19990108	1999-01-08
value	date	99-01-08	!22008 date/time field value out of range: "99-01-08"
value	date	0044-03-15 BC	0044-03-15 BC
value	date	March 15, 44 BC	0044-03-15 BC
value	date	epoch	1970-01-01
value	date	4714-11-24 BC	4714-11-24 BC
value	date	4714-11-23 BC	!22008 date out of range: "4714-11-23 BC"
value	date	5874897-12-31	5874897-12-31
value	date	5874898-01-01	!22008 date out of range: "5874898-01-01"
value	date	2020-13-01	!22008 date/time field value out of range: "2020-13-01"
value	date	2020-00-10	!22008 date/time field value out of range: "2020-00-10"
value	date	0000-01-01	!22008 date/time field value out of range: "0000-01-01"
value	date	2020-1-2	2020-01-02
value	date	abc	!22007 invalid input syntax for type date: "abc"
value	date	\e	!22007 invalid input syntax for type date: ""
value	date	2020-06-15 12:34:56	2020-06-15
value	date	1999.008	1999-01-08
value	date	1999-008	1999-01-08
value	date	8 jan 1999	1999-01-08
value	date	2020/03/04	2020-03-04
value	date	13/13/2020	!22008 date/time field value out of range: "13/13/2020"
value	date	12-31-1999	1999-12-31
value	time	04:05:06.789	04:05:06.789
value	time	04:05:06	04:05:06
value	time	04:05	04:05:00
value	time	04:05 AM	04:05:00
value	time	04:05 PM	16:05:00
value	time	12:00 AM	00:00:00
value	time	12:30 pm	12:30:00
value	time	13:00 PM	!22008 date/time field value out of range: "13:00 PM"
value	time	24:00:00	24:00:00
value	time	24:00:01	!22008 date/time field value out of range: "24:00:01"
value	time	25:00	!22008 date/time field value out of range: "25:00"
value	time	23:59:60	24:00:00
value	time	04:05:06.7894567	04:05:06.789457
value	time	04:05:06.7894565	04:05:06.789456
value	time	23:59:59.9999999	24:00:00
value	time	2020-01-01 10:20	10:20:00
value	time	04:05:06-08:00	04:05:06
value	time	04:05:06 PST	04:05:06
value	time	x	!22007 invalid input syntax for type time: "x"
value	time	04:60	!22008 date/time field value out of range: "04:60"
value	time	allballs	00:00:00
value	time(2)	04:05:06.789	04:05:06.79
value	time(2)	04:05:06.785	04:05:06.79
value	time(2)	23:59:59.999	24:00:00
value	timestamp	2020-01-01	2020-01-01 00:00:00
value	timestamp	2020-01-01 10:20:30	2020-01-01 10:20:30
value	timestamp	2020-01-01T10:20:30	2020-01-01 10:20:30
value	timestamp	2020-01-01 10:20:30.123456	2020-01-01 10:20:30.123456
value	timestamp	2020-01-01 10:20:30.5	2020-01-01 10:20:30.5
value	timestamp	2020-01-01 10:20:30+02	2020-01-01 10:20:30
value	timestamp	Jan 5 2020 3:04 pm	2020-01-05 15:04:00
value	timestamp	20200105T030405	2020-01-05 03:04:05
value	timestamp	20200105 030405	2020-01-05 03:04:05
value	timestamp	2020-01-01 24:00:00	2020-01-02 00:00:00
value	timestamp	epoch	1970-01-01 00:00:00
value	timestamp	294276-12-31 23:59:59.999999	294276-12-31 23:59:59.999999
value	timestamp	294277-01-01	!22008 timestamp out of range: "294277-01-01"
value	timestamp	4714-11-24 00:00:00 BC	4714-11-24 00:00:00 BC
value	timestamp	4714-11-23 BC	!22008 timestamp out of range: "4714-11-23 BC"
value	timestamp	0001-01-01 BC	0001-01-01 00:00:00 BC
value	timestamp	2020-01-01 25:00	!22008 date/time field value out of range: "2020-01-01 25:00"
value	timestamp	garbage	!22007 invalid input syntax for type timestamp: "garbage"
value	timestamp	2020-01-01 10:20:30 foo	!22007 invalid input syntax for type timestamp: "2020-01-01 10:20:30 foo"
value	timestamp	1969-12-31 23:59:59.999	1969-12-31 23:59:59.999
value	timestamp	12:30	!22007 invalid input syntax for type timestamp: "12:30"
value	timestamp	Mon Jan 06 10:20:30 2020	2020-01-06 10:20:30
value	timestamp	2020-01-01 00:00:00.0000005	2020-01-01 00:00:00
value	timestamp	2020-01-01 00:00:00.0000015	2020-01-01 00:00:00.000002
value	timestamp(0)	2020-01-01 10:20:30.5	2020-01-01 10:20:31
value	timestamp(0)	2020-01-01 23:59:59.7	2020-01-02 00:00:00
value	timestamp(3)	2020-01-01 10:20:30.12345	2020-01-01 10:20:30.123
value	timestamp(3)	1999-12-31 23:59:59.9995	1999-12-31 23:59:59.999
value	timestamp(3)	1999-12-31 23:59:59.9994	1999-12-31 23:59:59.999
value	timestamptz	2020-01-01 10:20:30	2020-01-01 10:20:30+00
value	timestamptz	2020-01-01 10:20:30+02	2020-01-01 08:20:30+00
value	timestamptz	2020-01-01 10:20:30-08:30	2020-01-01 18:50:30+00
value	timestamptz	2020-01-01 10:20:30Z	2020-01-01 10:20:30+00
value	timestamptz	2020-01-01T10:20:30.25z	2020-01-01 10:20:30.25+00
value	timestamptz	2020-01-01 10:20:30 UTC	2020-01-01 10:20:30+00
value	timestamptz	2020-01-01 10:20:30 PST	2020-01-01 18:20:30+00
value	timestamptz	2020-01-01 10:20:30+0530	2020-01-01 04:50:30+00
value	timestamptz	2020-01-01	2020-01-01 00:00:00+00
value	timestamptz	0044-03-15 12:00 BC	0044-03-15 12:00:00+00 BC
value	timestamptz	2020-01-01 10:20:30 +02	2020-01-01 08:20:30+00
value	timestamptz	2020-01-01 10:20:30 GMT	2020-01-01 10:20:30+00
value	timestamptz	2020-01-01 10:20:30+02:30:15	2020-01-01 07:50:15+00
value	timestamptz	2020-06-01 10:20 EDT	2020-06-01 14:20:00+00
value	timestamptz	2020-01-01 10:20:30+20	!22009 time zone displacement out of range: "2020-01-01 10:20:30+20"
value	timestamptz	Wed Dec 17 07:37:16 1997 UTC	1997-12-17 07:37:16+00
value	interval	1 day	1 day
value	interval	1 year 2 months 3 days 04:05:06	1 year 2 mons 3 days 04:05:06
value	interval	1-2	1 year 2 mons
value	interval	1 12:00	1 day 12:00:00
value	interval	1 12:30:15	1 day 12:30:15
value	interval	P1Y2M3DT4H5M6S	1 year 2 mons 3 days 04:05:06
value	interval	PT36H	36:00:00
value	interval	P1W	7 days
value	interval	1.5 months	1 mon 15 days
value	interval	1.5 years	1 year 6 mons
value	interval	-1.5 days	-1 days -12:00:00
value	interval	1.1 weeks	7 days 16:48:00
value	interval	100	00:01:40
value	interval	1:30	01:30:00
value	interval	1:02.5	00:01:02.5
value	interval	-1:30	-01:30:00
value	interval	1 day -1:30	1 day -01:30:00
value	interval	2 days ago	-2 days
value	interval	@ 1 minute	00:01:00
value	interval	1.234567891 s	00:00:01.234568
value	interval	3 weeks	21 days
value	interval	1 decade	10 years
value	interval	1 century 2 millennia	2100 years
value	interval	1h30m	01:30:00
value	interval	1 mon -1 day	1 mon -1 days
value	interval	-1 year 1 day	-1 years +1 day
value	interval	1 year -1 mon	11 mons
value	interval	00:00	00:00:00
value	interval	0	00:00:00
value	interval	1 month -1 day +02:03	1 mon -1 days +02:03:00
value	interval	-1 mon 1 day -00:00:01	-1 mons +1 day -00:00:01
value	interval	5 ms	00:00:00.005
value	interval	5 us	00:00:00.000005
value	interval	1.5 hours	01:30:00
value	interval	0.1 day	02:24:00
value	interval	1 day 1 day	!22007 invalid input syntax for type interval: "1 day 1 day"
value	interval	1 fortnight	!22007 invalid input syntax for type interval: "1 fortnight"
value	interval	\e	!22007 invalid input syntax for type interval: ""
value	interval	x	!22007 invalid input syntax for type interval: "x"
value	interval	1 year 1	1 year 00:00:01
value	interval	1 2	!22007 invalid input syntax for type interval: "1 2"
value	interval	99999999999 years	!22015 interval field value out of range: "99999999999 years"
value	interval	178956970 years	178956970 years
value	interval	-1-2	-1 years -2 mons
value	interval	1.75 minutes	00:01:45
value	interval	0.5 month	15 days
value	interval	1.25 years	1 year 3 mons
value	interval	P1.5D	1 day 12:00:00
value	interval	123:45:67	!22015 interval field value out of range: "123:45:67"
value	interval	123:45:06	123:45:06
value	interval	1 d 2 h 3 m 4 s	1 day 02:03:04
value	interval	.5 seconds	00:00:00.5
value	interval	-00:00:00.5	-00:00:00.5
value	interval	1 month 25:00:00	1 mon 25:00:00
value	interval	3 days 24:00:00	3 days 24:00:00
value	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
value	uuid	{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
value	uuid	a0eebc999c0b4ef8bb6d6bb9bd380a11	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
value	uuid	a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
value	uuid	a0eebc99	!22P02 invalid input syntax for type uuid: "a0eebc99"
value	uuid	a0e-ebc999c0b4ef8bb6d6bb9bd380a11	!22P02 invalid input syntax for type uuid: "a0e-ebc999c0b4ef8bb6d6bb9bd380a11"
value	uuid	\e	!22P02 invalid input syntax for type uuid: ""
value	uuid	{a0eebc999c0b4ef8bb6d6bb9bd380a11	!22P02 invalid input syntax for type uuid: "{a0eebc999c0b4ef8bb6d6bb9bd380a11"
value	json	{"a": 1}	{"a": 1}
value	json	 [1,2 ]\s	 [1,2 ]\s
value	json	nul	!22P02 invalid input syntax for type json
value	json	{"a":}	!22P02 invalid input syntax for type json
value	json	"x	!22P02 invalid input syntax for type json
value	json	1.0	1.0
value	json	{"b":1,"a":2}	{"b":1,"a":2}
value	jsonb	{"b":1, "a":2,"aa":[1,2.50,true,null],"b":3}	{"a": 2, "b": 3, "aa": [1, 2.50, true, null]}
value	jsonb	[]	[]
value	jsonb	{}	{}
value	jsonb	"\\u0041\\n\\u00e9"	"A\\né"
value	jsonb	1e2	100
value	jsonb	1.50	1.50
value	jsonb	-0	0
value	jsonb	[1,]	!22P02 invalid input syntax for type json
value	jsonb	"\\ud83d\\ude00"	"😀"
value	jsonb	{"a":{"b":[{}]}}	{"a": {"b": [{}]}}
value	jsonb	01	!22P02 invalid input syntax for type json
value	jsonb	"\\u0001\\t"	"\\u0001\\t"
value	jsonb	  true\s	true
value	jsonb	\e	!22P02 invalid input syntax for type json
value	int4[]	{1,2,3}	{1,2,3}
value	int4[]	{}	{}
value	int4[]	{1,NULL,3}	{1,NULL,3}
value	int4[]	{ 1 , 2 }	{1,2}
value	int4[]	{1,a}	!22P02 invalid input syntax for type integer: "a"
value	int4[]	1	!22P02 malformed array literal: "1"
value	int4[]	{1,2	!22P02 malformed array literal: "{1,2"
value	int4[]	{1,,2}	!22P02 malformed array literal: "{1,,2}"
value	int4[]	{1}x	!22P02 malformed array literal: "{1}x"
value	int4[]	{null}	{NULL}
value	text[]	{a,"b c",NULL,"null",nUll}	{a,"b c",NULL,"null",NULL}
value	text[]	{"a\\"b","c\\\\d",""}	{"a\\"b","c\\\\d",""}
value	text[]	{a b , c}	{"a b",c}
value	text[]	{"x}y","x,y"}	{"x}y","x,y"}
value	text[]	{\\n,a\\ }	{n,"a "}
value	text[]	{"a"b}	!22P02 malformed array literal: "{"a"b}"
value	text[]	{"a","b"}	{a,b}
value	text[]	{é," lead"}	{é," lead"}
value	numeric(4,1)[]	{1.25,3}	{1.3,3.0}
value	varchar(2)[]	{abc,d}	{ab,d}
value	bool[]	{t,false,NULL}	{t,f,NULL}
value	timestamptz[]	{"2020-01-01 10:00+02",2021-01-01}	{"2020-01-01 08:00:00+00","2021-01-01 00:00:00+00"}
value	bytea[]	{"\\\\xdead"}	{"\\\\xdead"}
value	interval[]	{1 day,"02:00"}	{"1 day",02:00:00}
value	float8[]	{1,1e20,NaN}	{1,1e+20,NaN}
value	char(3)[]	{a,bcd}	{"a  ",bcd}
value	date[]	{2020-01-01}	{2020-01-01}
value	uuid[]	{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}	{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}
value	jsonb[]	{"{\\"a\\":1}"}	{"{\\"a\\": 1}"}
binary	int4	7	+	int4	2	9	integer
binary	int4	-7	+	int4	2	-5	integer
binary	int4	7	+	int4	-2	5	integer
binary	int4	0	+	int4	5	5	integer
binary	int4	5	+	int4	0	5	integer
binary	int4	2147483647	+	int4	2	!22003 integer out of range	-
binary	int4	-2147483648	+	int4	-1	!22003 integer out of range	-
binary	int2	7	+	int2	2	9	smallint
binary	int2	32767	+	int2	1	!22003 smallint out of range	-
binary	int2	-32768	+	int2	-1	!22003 smallint out of range	-
binary	int8	9223372036854775807	+	int8	2	!22003 bigint out of range	-
binary	int8	-9223372036854775808	+	int8	-1	!22003 bigint out of range	-
binary	int2	7	+	int8	2	9	bigint
binary	int4	7	+	int2	2	9	integer
binary	int4	7	+	numeric	2.50	9.50	numeric
binary	int4	7	+	float8	2.5	9.5	double precision
binary	float4	1.1	+	float4	2.2	3.3000002	real
binary	float4	3e38	+	float4	10	3e+38	real
binary	float4	1.1	+	float8	2.2	3.300000023841858	double precision
binary	float4	1.1	+	int4	2	3.100000023841858	double precision
binary	numeric	1.5	+	float4	2.5	4	double precision
binary	float8	0.1	+	float8	0.2	0.30000000000000004	double precision
binary	float8	1e308	+	float8	10	1e+308	double precision
binary	float8	1e-308	+	float8	1e-308	2e-308	double precision
binary	float8	1	+	float8	0	1	double precision
binary	float8	0	+	float8	0	0	double precision
binary	float8	NaN	+	float8	0	NaN	double precision
binary	float8	Infinity	+	float8	Infinity	Infinity	double precision
binary	float8	1e300	+	float8	1e-300	1e+300	double precision
binary	float8	1e-300	+	float8	1e300	1e+300	double precision
binary	numeric	1.50	+	numeric	2	3.50	numeric
binary	numeric	-1.50	+	numeric	0.7	-0.80	numeric
binary	numeric	10	+	numeric	3	13	numeric
binary	numeric	1	+	numeric	3	4	numeric
binary	numeric	2	+	numeric	3	5	numeric
binary	numeric	1e10	+	numeric	3	10000000003	numeric
binary	numeric	1e-10	+	numeric	3	3.0000000001	numeric
binary	numeric	12345.678	+	numeric	0.00089	12345.67889	numeric
binary	numeric	0	+	numeric	3	3	numeric
binary	numeric	1	+	numeric	0	1	numeric
binary	numeric	NaN	+	numeric	1	NaN	numeric
binary	numeric	NaN	+	numeric	0	NaN	numeric
binary	numeric	1	+	numeric	NaN	NaN	numeric
binary	numeric	123456789012345678901234567890.5	+	numeric	987654321.123	123456789012345678902222222211.623	numeric
binary	numeric	100000000	+	numeric	0.0001	100000000.0001	numeric
binary	numeric	99999999999999999999999999999999999999	+	numeric	99999999999999999999999999999999999999	199999999999999999999999999999999999998	numeric
binary	numeric	1	+	numeric	7000	7001	numeric
binary	numeric	5.0	+	numeric	-2.000	3.000	numeric
binary	numeric	0.1	+	numeric	1e20	100000000000000000000.1	numeric
binary	numeric	9999	+	numeric	10000	19999	numeric
binary	numeric	1e-30	+	numeric	1e-5	0.000010000000000000000000000001	numeric
binary	unknown	7	+	int4	2	9	integer
binary	numeric	7	+	unknown	2	9	numeric
binary	unknown	7	+	unknown	2	!42725 operator is not unique: unknown + unknown	-
binary	text	7	+	int4	2	!42883 operator does not exist: text + integer	-
binary	int4	7	+	bool	t	!42883 operator does not exist: integer + boolean	-
binary	oid	1	+	int4	1	!42883 operator does not exist: oid + integer	-
binary	int4	7	-	int4	2	5	integer
binary	int4	-7	-	int4	2	-9	integer
binary	int4	7	-	int4	-2	9	integer
binary	int4	0	-	int4	5	-5	integer
binary	int4	5	-	int4	0	5	integer
binary	int4	2147483647	-	int4	2	2147483645	integer
binary	int4	-2147483648	-	int4	-1	-2147483647	integer
binary	int2	7	-	int2	2	5	smallint
binary	int2	32767	-	int2	1	32766	smallint
binary	int2	-32768	-	int2	-1	-32767	smallint
binary	int8	9223372036854775807	-	int8	2	9223372036854775805	bigint
binary	int8	-9223372036854775808	-	int8	-1	-9223372036854775807	bigint
binary	int2	7	-	int8	2	5	bigint
binary	int4	7	-	int2	2	5	integer
binary	int4	7	-	numeric	2.50	4.50	numeric
binary	int4	7	-	float8	2.5	4.5	double precision
binary	float4	1.1	-	float4	2.2	-1.1	real
binary	float4	3e38	-	float4	10	3e+38	real
binary	float4	1.1	-	float8	2.2	-1.0999999761581423	double precision
binary	float4	1.1	-	int4	2	-0.8999999761581421	double precision
binary	numeric	1.5	-	float4	2.5	-1	double precision
binary	float8	0.1	-	float8	0.2	-0.1	double precision
binary	float8	1e308	-	float8	10	1e+308	double precision
binary	float8	1e-308	-	float8	1e-308	0	double precision
binary	float8	1	-	float8	0	1	double precision
binary	float8	0	-	float8	0	0	double precision
binary	float8	NaN	-	float8	0	NaN	double precision
binary	float8	Infinity	-	float8	Infinity	NaN	double precision
binary	float8	1e300	-	float8	1e-300	1e+300	double precision
binary	float8	1e-300	-	float8	1e300	-1e+300	double precision
binary	numeric	1.50	-	numeric	2	-0.50	numeric
binary	numeric	-1.50	-	numeric	0.7	-2.20	numeric
binary	numeric	10	-	numeric	3	7	numeric
binary	numeric	1	-	numeric	3	-2	numeric
binary	numeric	2	-	numeric	3	-1	numeric
binary	numeric	1e10	-	numeric	3	9999999997	numeric
binary	numeric	1e-10	-	numeric	3	-2.9999999999	numeric
binary	numeric	12345.678	-	numeric	0.00089	12345.67711	numeric
binary	numeric	0	-	numeric	3	-3	numeric
binary	numeric	1	-	numeric	0	1	numeric
binary	numeric	NaN	-	numeric	1	NaN	numeric
binary	numeric	NaN	-	numeric	0	NaN	numeric
binary	numeric	1	-	numeric	NaN	NaN	numeric
binary	numeric	123456789012345678901234567890.5	-	numeric	987654321.123	123456789012345678900246913569.377	numeric
binary	numeric	100000000	-	numeric	0.0001	99999999.9999	numeric
binary	numeric	99999999999999999999999999999999999999	-	numeric	99999999999999999999999999999999999999	0	numeric
binary	numeric	1	-	numeric	7000	-6999	numeric
binary	numeric	5.0	-	numeric	-2.000	7.000	numeric
binary	numeric	0.1	-	numeric	1e20	-99999999999999999999.9	numeric
binary	numeric	9999	-	numeric	10000	-1	numeric
binary	numeric	1e-30	-	numeric	1e-5	-0.000009999999999999999999999999	numeric
binary	unknown	7	-	int4	2	5	integer
binary	numeric	7	-	unknown	2	5	numeric
binary	unknown	7	-	unknown	2	!42725 operator is not unique: unknown - unknown	-
binary	text	7	-	int4	2	!42883 operator does not exist: text - integer	-
binary	int4	7	-	bool	t	!42883 operator does not exist: integer - boolean	-
binary	oid	1	-	int4	1	!42883 operator does not exist: oid - integer	-
binary	int4	7	*	int4	2	14	integer
binary	int4	-7	*	int4	2	-14	integer
binary	int4	7	*	int4	-2	-14	integer
binary	int4	0	*	int4	5	0	integer
binary	int4	5	*	int4	0	0	integer
binary	int4	2147483647	*	int4	2	!22003 integer out of range	-
binary	int4	-2147483648	*	int4	-1	!22003 integer out of range	-
binary	int2	7	*	int2	2	14	smallint
binary	int2	32767	*	int2	1	32767	smallint
binary	int2	-32768	*	int2	-1	!22003 smallint out of range	-
binary	int8	9223372036854775807	*	int8	2	!22003 bigint out of range	-
binary	int8	-9223372036854775808	*	int8	-1	!22003 bigint out of range	-
binary	int2	7	*	int8	2	14	bigint
binary	int4	7	*	int2	2	14	integer
binary	int4	7	*	numeric	2.50	17.50	numeric
binary	int4	7	*	float8	2.5	17.5	double precision
binary	float4	1.1	*	float4	2.2	2.42	real
binary	float4	3e38	*	float4	10	!22003 value out of range: overflow	-
binary	float4	1.1	*	float8	2.2	2.4200000524520875	double precision
binary	float4	1.1	*	int4	2	2.200000047683716	double precision
binary	numeric	1.5	*	float4	2.5	3.75	double precision
binary	float8	0.1	*	float8	0.2	0.020000000000000004	double precision
binary	float8	1e308	*	float8	10	!22003 value out of range: overflow	-
binary	float8	1e-308	*	float8	1e-308	!22003 value out of range: underflow	-
binary	float8	1	*	float8	0	0	double precision
binary	float8	0	*	float8	0	0	double precision
binary	float8	NaN	*	float8	0	NaN	double precision
binary	float8	Infinity	*	float8	Infinity	Infinity	double precision
binary	float8	1e300	*	float8	1e-300	1	double precision
binary	float8	1e-300	*	float8	1e300	1	double precision
binary	numeric	1.50	*	numeric	2	3.00	numeric
binary	numeric	-1.50	*	numeric	0.7	-1.050	numeric
binary	numeric	10	*	numeric	3	30	numeric
binary	numeric	1	*	numeric	3	3	numeric
binary	numeric	2	*	numeric	3	6	numeric
binary	numeric	1e10	*	numeric	3	30000000000	numeric
binary	numeric	1e-10	*	numeric	3	0.0000000003	numeric
binary	numeric	12345.678	*	numeric	0.00089	10.98765342	numeric
binary	numeric	0	*	numeric	3	0	numeric
binary	numeric	1	*	numeric	0	0	numeric
binary	numeric	NaN	*	numeric	1	NaN	numeric
binary	numeric	NaN	*	numeric	0	NaN	numeric
binary	numeric	1	*	numeric	NaN	NaN	numeric
binary	numeric	123456789012345678901234567890.5	*	numeric	987654321.123	121932631140013717161001371716472031701.0315	numeric
binary	numeric	100000000	*	numeric	0.0001	10000.0000	numeric
binary	numeric	99999999999999999999999999999999999999	*	numeric	99999999999999999999999999999999999999	9999999999999999999999999999999999999800000000000000000000000000000000000001	numeric
binary	numeric	1	*	numeric	7000	7000	numeric
binary	numeric	5.0	*	numeric	-2.000	-10.0000	numeric
binary	numeric	0.1	*	numeric	1e20	10000000000000000000.0	numeric
binary	numeric	9999	*	numeric	10000	99990000	numeric
binary	numeric	1e-30	*	numeric	1e-5	0.00000000000000000000000000000000001	numeric
binary	unknown	7	*	int4	2	14	integer
binary	numeric	7	*	unknown	2	14	numeric
binary	unknown	7	*	unknown	2	!42725 operator is not unique: unknown * unknown	-
binary	text	7	*	int4	2	!42883 operator does not exist: text * integer	-
binary	int4	7	*	bool	t	!42883 operator does not exist: integer * boolean	-
binary	oid	1	*	int4	1	!42883 operator does not exist: oid * integer	-
binary	int4	7	/	int4	2	3	integer
binary	int4	-7	/	int4	2	-3	integer
binary	int4	7	/	int4	-2	-3	integer
binary	int4	0	/	int4	5	0	integer
binary	int4	5	/	int4	0	!22012 division by zero	-
binary	int4	2147483647	/	int4	2	1073741823	integer
binary	int4	-2147483648	/	int4	-1	!22003 integer out of range	-
binary	int2	7	/	int2	2	3	smallint
binary	int2	32767	/	int2	1	32767	smallint
binary	int2	-32768	/	int2	-1	!22003 smallint out of range	-
binary	int8	9223372036854775807	/	int8	2	4611686018427387903	bigint
binary	int8	-9223372036854775808	/	int8	-1	!22003 bigint out of range	-
binary	int2	7	/	int8	2	3	bigint
binary	int4	7	/	int2	2	3	integer
binary	int4	7	/	numeric	2.50	2.8000000000000000	numeric
binary	int4	7	/	float8	2.5	2.8	double precision
binary	float4	1.1	/	float4	2.2	0.5	real
binary	float4	3e38	/	float4	10	3e+37	real
binary	float4	1.1	/	float8	2.2	0.5000000108372081	double precision
binary	float4	1.1	/	int4	2	0.550000011920929	double precision
binary	numeric	1.5	/	float4	2.5	0.6	double precision
binary	float8	0.1	/	float8	0.2	0.5	double precision
binary	float8	1e308	/	float8	10	1e+307	double precision
binary	float8	1e-308	/	float8	1e-308	1	double precision
binary	float8	1	/	float8	0	!22012 division by zero	-
binary	float8	0	/	float8	0	!22012 division by zero	-
binary	float8	NaN	/	float8	0	NaN	double precision
binary	float8	Infinity	/	float8	Infinity	NaN	double precision
binary	float8	1e300	/	float8	1e-300	!22003 value out of range: overflow	-
binary	float8	1e-300	/	float8	1e300	!22003 value out of range: underflow	-
binary	numeric	1.50	/	numeric	2	0.75000000000000000000	numeric
binary	numeric	-1.50	/	numeric	0.7	-2.1428571428571429	numeric
binary	numeric	10	/	numeric	3	3.3333333333333333	numeric
binary	numeric	1	/	numeric	3	0.33333333333333333333	numeric
binary	numeric	2	/	numeric	3	0.66666666666666666667	numeric
binary	numeric	1e10	/	numeric	3	3333333333.33333333	numeric
binary	numeric	1e-10	/	numeric	3	0.0000000000333333333333333333	numeric
binary	numeric	12345.678	/	numeric	0.00089	13871548.314606741573	numeric
binary	numeric	0	/	numeric	3	0.00000000000000000000	numeric
binary	numeric	1	/	numeric	0	!22012 division by zero	-
binary	numeric	NaN	/	numeric	1	NaN	numeric
binary	numeric	NaN	/	numeric	0	NaN	numeric
binary	numeric	1	/	numeric	NaN	NaN	numeric
binary	numeric	123456789012345678901234567890.5	/	numeric	987654321.123	124999998857870312544.015	numeric
binary	numeric	100000000	/	numeric	0.0001	1000000000000.00000000	numeric
binary	numeric	99999999999999999999999999999999999999	/	numeric	99999999999999999999999999999999999999	1.00000000000000000000	numeric
binary	numeric	1	/	numeric	7000	0.00014285714285714286	numeric
binary	numeric	5.0	/	numeric	-2.000	-2.5000000000000000	numeric
binary	numeric	0.1	/	numeric	1e20	0.0000000000000000000010000000000000000000	numeric
binary	numeric	9999	/	numeric	10000	0.99990000000000000000	numeric
binary	numeric	1e-30	/	numeric	1e-5	0.00000000000000000000000010000000000000000000	numeric
binary	unknown	7	/	int4	2	3	integer
binary	numeric	7	/	unknown	2	3.5000000000000000	numeric
binary	unknown	7	/	unknown	2	!42725 operator is not unique: unknown / unknown	-
binary	text	7	/	int4	2	!42883 operator does not exist: text / integer	-
binary	int4	7	/	bool	t	!42883 operator does not exist: integer / boolean	-
binary	oid	1	/	int4	1	!42883 operator does not exist: oid / integer	-
binary	int4	7	%	int4	2	1	integer
binary	int4	-7	%	int4	2	-1	integer
binary	int4	7	%	int4	-2	1	integer
binary	int4	0	%	int4	5	0	integer
binary	int4	5	%	int4	0	!22012 division by zero	-
binary	int4	2147483647	%	int4	2	1	integer
binary	int4	-2147483648	%	int4	-1	0	integer
binary	int2	7	%	int2	2	1	smallint
binary	int2	32767	%	int2	1	0	smallint
binary	int2	-32768	%	int2	-1	0	smallint
binary	int8	9223372036854775807	%	int8	2	1	bigint
binary	int8	-9223372036854775808	%	int8	-1	0	bigint
binary	int2	7	%	int8	2	1	bigint
binary	int4	7	%	int2	2	1	integer
binary	int4	7	%	numeric	2.50	2.00	numeric
binary	int4	7	%	float8	2.5	!42883 operator does not exist: integer % double precision	-
binary	float4	1.1	%	float4	2.2	!42883 operator does not exist: real % real	-
binary	float4	3e38	%	float4	10	!42883 operator does not exist: real % real	-
binary	float4	1.1	%	float8	2.2	!42883 operator does not exist: real % double precision	-
binary	float4	1.1	%	int4	2	!42883 operator does not exist: real % integer	-
binary	numeric	1.5	%	float4	2.5	!42883 operator does not exist: numeric % real	-
binary	float8	0.1	%	float8	0.2	!42883 operator does not exist: double precision % double precision	-
binary	float8	1e308	%	float8	10	!42883 operator does not exist: double precision % double precision	-
binary	float8	1e-308	%	float8	1e-308	!42883 operator does not exist: double precision % double precision	-
binary	float8	1	%	float8	0	!42883 operator does not exist: double precision % double precision	-
binary	float8	0	%	float8	0	!42883 operator does not exist: double precision % double precision	-
binary	float8	NaN	%	float8	0	!42883 operator does not exist: double precision % double precision	-
binary	float8	Infinity	%	float8	Infinity	!42883 operator does not exist: double precision % double precision	-
binary	float8	1e300	%	float8	1e-300	!42883 operator does not exist: double precision % double precision	-
binary	float8	1e-300	%	float8	1e300	!42883 operator does not exist: double precision % double precision	-
binary	numeric	1.50	%	numeric	2	1.50	numeric
binary	numeric	-1.50	%	numeric	0.7	-0.10	numeric
binary	numeric	10	%	numeric	3	1	numeric
binary	numeric	1	%	numeric	3	1	numeric
binary	numeric	2	%	numeric	3	2	numeric
binary	numeric	1e10	%	numeric	3	1	numeric
binary	numeric	1e-10	%	numeric	3	0.0000000001	numeric
binary	numeric	12345.678	%	numeric	0.00089	0.00028	numeric
binary	numeric	0	%	numeric	3	0	numeric
binary	numeric	1	%	numeric	0	!22012 division by zero	-
binary	numeric	NaN	%	numeric	1	NaN	numeric
binary	numeric	NaN	%	numeric	0	NaN	numeric
binary	numeric	1	%	numeric	NaN	NaN	numeric
binary	numeric	123456789012345678901234567890.5	%	numeric	987654321.123	14416823.588	numeric
binary	numeric	100000000	%	numeric	0.0001	0.0000	numeric
binary	numeric	99999999999999999999999999999999999999	%	numeric	99999999999999999999999999999999999999	0	numeric
binary	numeric	1	%	numeric	7000	1	numeric
binary	numeric	5.0	%	numeric	-2.000	1.000	numeric
binary	numeric	0.1	%	numeric	1e20	0.1	numeric
binary	numeric	9999	%	numeric	10000	9999	numeric
binary	numeric	1e-30	%	numeric	1e-5	0.000000000000000000000000000001	numeric
binary	unknown	7	%	int4	2	1	integer
binary	numeric	7	%	unknown	2	1	numeric
binary	unknown	7	%	unknown	2	!42725 operator is not unique: unknown % unknown	-
binary	text	7	%	int4	2	!42883 operator does not exist: text % integer	-
binary	int4	7	%	bool	t	!42883 operator does not exist: integer % boolean	-
binary	oid	1	%	int4	1	!42883 operator does not exist: oid % integer	-
binary	float8	2	^	float8	10	1024	double precision
binary	float8	2	^	float8	0.5	1.4142135623730951	double precision
binary	float8	0	^	float8	-1	!2201F zero raised to a negative power is undefined	-
binary	float8	-8	^	float8	0.5	!2201F a negative number raised to a non-integer power yields a complex result	-
binary	float8	-2	^	float8	3	-8	double precision
binary	float8	10	^	float8	308	1e+308	double precision
binary	float8	10	^	float8	309	!22003 value out of range: overflow	-
binary	float8	2.5	^	float8	-3.5	0.040477154050155256	double precision
binary	float8	NaN	^	float8	0	1	double precision
binary	float8	1.1	^	float8	100	13780.61233982238	double precision
binary	int4	2	^	int4	10	1024	double precision
binary	int4	-2	^	int4	3	-8	double precision
binary	int4	2	^	int4	-1	0.5	double precision
binary	numeric	2	^	int4	10	1024.0000000000000000	numeric
binary	numeric	1.5	^	int4	3	3.3750000000000000	numeric
binary	numeric	2	^	int4	-2	0.2500000000000000	numeric
binary	numeric	10	^	int4	20	100000000000000000000.0000000000000000	numeric
binary	numeric	0	^	int4	0	1.0000000000000000	numeric
binary	numeric	1.1	^	int4	100	13780.6123398222701841	numeric
binary	numeric	3	^	int4	-7	0.0004572473708276	numeric
binary	numeric	0.5	^	int4	50	0.0000000000000009	numeric
binary	numeric	12.34	^	int4	5	286138.1721051424000000	numeric
binary	numeric	1.0001	^	int4	10000	2.7181459268252249	numeric
binary	numeric	0	^	int4	-1	!2201F zero raised to a negative power is undefined	-
binary	numeric	7	^	int4	1	7.0000000000000000	numeric
binary	numeric	123.456	^	int4	2	15241.3839360000000000	numeric
binary	numeric	2.0	^	int4	0	1.0000000000000000	numeric
binary	numeric	99999	^	int4	99	999010484943188636608805980402802915400434536979655386654009490813859457598616206837179821412302692420911878238392114694353872205705469979997758000847544074497398071603034467574810862492956315403164145181317850364010376300213453752437982265518464568325790559557401725276413045564927258325699353130042548208064924009216093547546101231747525975999315735437260590254281341103015581933843191009768771215462495272328209801935290153265929807401919949633636861142033871459231063562556848951490009899999.0000000000000000	numeric
binary	numeric	2	^	numeric	0.5	1.4142135623730950	numeric
binary	numeric	10	^	numeric	0.3	1.9952623149688796	numeric
binary	numeric	2.5	^	numeric	3.5	24.705294220065464	numeric
binary	numeric	0.5	^	numeric	0.5	0.7071067811865475	numeric
binary	numeric	1e10	^	numeric	0.25	316.22776601683793	numeric
binary	numeric	3	^	numeric	1.0	3.0000000000000000	numeric
binary	numeric	-2	^	numeric	0.5	!2201F a negative number raised to a non-integer power yields a complex result	-
binary	numeric	2	^	numeric	100.5	1792728671193156477399422023278.7	numeric
binary	numeric	0	^	numeric	0.5	0.0000000000000000	numeric
binary	numeric	123.4567	^	numeric	-2.5	0.000005904910776456267	numeric
binary	numeric	9	^	numeric	0.50000	3.0000000000000000	numeric
binary	numeric	1e-5	^	numeric	0.7	0.0003162277660168379	numeric
binary	numeric	NaN	^	numeric	0	1	numeric
binary	numeric	1	^	numeric	NaN	1	numeric
binary	float4	2	^	float4	3	8	double precision
binary	int4	2	^	unknown	3	8	double precision
binary	int4	2	^	numeric	0.5	1.4142135623730950	numeric
binary	int4	1	=	int8	2	f	boolean
binary	numeric	1.0	=	int4	1	t	boolean
binary	float8	1.5	=	numeric	1.5	t	boolean
binary	text	a	=	varchar(5)	b	f	boolean
binary	char(5)	a	=	char(3)	a \s	t	boolean
binary	char(5)	a	=	text	a	t	boolean
binary	char(5)	a	=	unknown	a	t	boolean
binary	date	2020-01-01	=	timestamp	2020-01-01 00:00	t	boolean
binary	date	2020-01-01	=	timestamptz	2020-01-01 00:00	t	boolean
binary	interval	1 mon	=	interval	30 days	t	boolean
binary	interval	1 day	=	interval	23:59	f	boolean
binary	float8	NaN	=	float8	Infinity	f	boolean
binary	float8	NaN	=	float8	NaN	t	boolean
binary	float8	-0	=	float8	0	t	boolean
binary	numeric	NaN	=	numeric	1e100	f	boolean
binary	numeric	NaN	=	numeric	NaN	t	boolean
binary	bool	f	=	bool	t	f	boolean
binary	text	a	=	text	B	f	boolean
binary	text	\e	=	text	a	f	boolean
binary	text	é	=	text	z	f	boolean
binary	int4[]	{1,2}	=	int4[]	{1,3}	f	boolean
binary	int4[]	{1}	=	int4[]	{1,NULL}	f	boolean
binary	int4[]	{}	=	int4[]	{1}	f	boolean
binary	bytea	\\x00	=	bytea	\\x0000	f	boolean
binary	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	=	unknown	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12	f	boolean
binary	int4	1	<>	int8	2	t	boolean
binary	numeric	1.0	<>	int4	1	f	boolean
binary	float8	1.5	<>	numeric	1.5	f	boolean
binary	text	a	<>	varchar(5)	b	t	boolean
binary	char(5)	a	<>	char(3)	a \s	f	boolean
binary	char(5)	a	<>	text	a	f	boolean
binary	char(5)	a	<>	unknown	a	f	boolean
binary	date	2020-01-01	<>	timestamp	2020-01-01 00:00	f	boolean
binary	date	2020-01-01	<>	timestamptz	2020-01-01 00:00	f	boolean
binary	interval	1 mon	<>	interval	30 days	f	boolean
binary	interval	1 day	<>	interval	23:59	t	boolean
binary	float8	NaN	<>	float8	Infinity	t	boolean
binary	float8	NaN	<>	float8	NaN	f	boolean
binary	float8	-0	<>	float8	0	f	boolean
binary	numeric	NaN	<>	numeric	1e100	t	boolean
binary	numeric	NaN	<>	numeric	NaN	f	boolean
binary	bool	f	<>	bool	t	t	boolean
binary	text	a	<>	text	B	t	boolean
binary	text	\e	<>	text	a	t	boolean
binary	text	é	<>	text	z	t	boolean
binary	int4[]	{1,2}	<>	int4[]	{1,3}	t	boolean
binary	int4[]	{1}	<>	int4[]	{1,NULL}	t	boolean
binary	int4[]	{}	<>	int4[]	{1}	t	boolean
binary	bytea	\\x00	<>	bytea	\\x0000	t	boolean
binary	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	<>	unknown	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12	t	boolean
binary	int4	1	<	int8	2	t	boolean
binary	numeric	1.0	<	int4	1	f	boolean
binary	float8	1.5	<	numeric	1.5	f	boolean
binary	text	a	<	varchar(5)	b	t	boolean
binary	char(5)	a	<	char(3)	a \s	f	boolean
binary	char(5)	a	<	text	a	f	boolean
binary	char(5)	a	<	unknown	a	f	boolean
binary	date	2020-01-01	<	timestamp	2020-01-01 00:00	f	boolean
binary	date	2020-01-01	<	timestamptz	2020-01-01 00:00	f	boolean
binary	interval	1 mon	<	interval	30 days	f	boolean
binary	interval	1 day	<	interval	23:59	f	boolean
binary	float8	NaN	<	float8	Infinity	f	boolean
binary	float8	NaN	<	float8	NaN	f	boolean
binary	float8	-0	<	float8	0	f	boolean
binary	numeric	NaN	<	numeric	1e100	f	boolean
binary	numeric	NaN	<	numeric	NaN	f	boolean
binary	bool	f	<	bool	t	t	boolean
binary	text	a	<	text	B	f	boolean
binary	text	\e	<	text	a	t	boolean
binary	text	é	<	text	z	f	boolean
binary	int4[]	{1,2}	<	int4[]	{1,3}	t	boolean
binary	int4[]	{1}	<	int4[]	{1,NULL}	t	boolean
binary	int4[]	{}	<	int4[]	{1}	t	boolean
binary	bytea	\\x00	<	bytea	\\x0000	t	boolean
binary	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	<	unknown	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12	t	boolean
binary	int4	1	<=	int8	2	t	boolean
binary	numeric	1.0	<=	int4	1	t	boolean
binary	float8	1.5	<=	numeric	1.5	t	boolean
binary	text	a	<=	varchar(5)	b	t	boolean
binary	char(5)	a	<=	char(3)	a \s	t	boolean
binary	char(5)	a	<=	text	a	t	boolean
binary	char(5)	a	<=	unknown	a	t	boolean
binary	date	2020-01-01	<=	timestamp	2020-01-01 00:00	t	boolean
binary	date	2020-01-01	<=	timestamptz	2020-01-01 00:00	t	boolean
binary	interval	1 mon	<=	interval	30 days	t	boolean
binary	interval	1 day	<=	interval	23:59	f	boolean
binary	float8	NaN	<=	float8	Infinity	f	boolean
binary	float8	NaN	<=	float8	NaN	t	boolean
binary	float8	-0	<=	float8	0	t	boolean
binary	numeric	NaN	<=	numeric	1e100	f	boolean
binary	numeric	NaN	<=	numeric	NaN	t	boolean
binary	bool	f	<=	bool	t	t	boolean
binary	text	a	<=	text	B	f	boolean
binary	text	\e	<=	text	a	t	boolean
binary	text	é	<=	text	z	f	boolean
binary	int4[]	{1,2}	<=	int4[]	{1,3}	t	boolean
binary	int4[]	{1}	<=	int4[]	{1,NULL}	t	boolean
binary	int4[]	{}	<=	int4[]	{1}	t	boolean
binary	bytea	\\x00	<=	bytea	\\x0000	t	boolean
binary	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	<=	unknown	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12	t	boolean
binary	int4	1	>	int8	2	f	boolean
binary	numeric	1.0	>	int4	1	f	boolean
binary	float8	1.5	>	numeric	1.5	f	boolean
binary	text	a	>	varchar(5)	b	f	boolean
binary	char(5)	a	>	char(3)	a \s	f	boolean
binary	char(5)	a	>	text	a	f	boolean
binary	char(5)	a	>	unknown	a	f	boolean
binary	date	2020-01-01	>	timestamp	2020-01-01 00:00	f	boolean
binary	date	2020-01-01	>	timestamptz	2020-01-01 00:00	f	boolean
binary	interval	1 mon	>	interval	30 days	f	boolean
binary	interval	1 day	>	interval	23:59	t	boolean
binary	float8	NaN	>	float8	Infinity	t	boolean
binary	float8	NaN	>	float8	NaN	f	boolean
binary	float8	-0	>	float8	0	f	boolean
binary	numeric	NaN	>	numeric	1e100	t	boolean
binary	numeric	NaN	>	numeric	NaN	f	boolean
binary	bool	f	>	bool	t	f	boolean
binary	text	a	>	text	B	t	boolean
binary	text	\e	>	text	a	f	boolean
binary	text	é	>	text	z	t	boolean
binary	int4[]	{1,2}	>	int4[]	{1,3}	f	boolean
binary	int4[]	{1}	>	int4[]	{1,NULL}	f	boolean
binary	int4[]	{}	>	int4[]	{1}	f	boolean
binary	bytea	\\x00	>	bytea	\\x0000	f	boolean
binary	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	>	unknown	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12	f	boolean
binary	int4	1	>=	int8	2	f	boolean
binary	numeric	1.0	>=	int4	1	t	boolean
binary	float8	1.5	>=	numeric	1.5	t	boolean
binary	text	a	>=	varchar(5)	b	f	boolean
binary	char(5)	a	>=	char(3)	a \s	t	boolean
binary	char(5)	a	>=	text	a	t	boolean
binary	char(5)	a	>=	unknown	a	t	boolean
binary	date	2020-01-01	>=	timestamp	2020-01-01 00:00	t	boolean
binary	date	2020-01-01	>=	timestamptz	2020-01-01 00:00	t	boolean
binary	interval	1 mon	>=	interval	30 days	t	boolean
binary	interval	1 day	>=	interval	23:59	t	boolean
binary	float8	NaN	>=	float8	Infinity	t	boolean
binary	float8	NaN	>=	float8	NaN	t	boolean
binary	float8	-0	>=	float8	0	t	boolean
binary	numeric	NaN	>=	numeric	1e100	t	boolean
binary	numeric	NaN	>=	numeric	NaN	t	boolean
binary	bool	f	>=	bool	t	f	boolean
binary	text	a	>=	text	B	t	boolean
binary	text	\e	>=	text	a	f	boolean
binary	text	é	>=	text	z	t	boolean
binary	int4[]	{1,2}	>=	int4[]	{1,3}	f	boolean
binary	int4[]	{1}	>=	int4[]	{1,NULL}	f	boolean
binary	int4[]	{}	>=	int4[]	{1}	f	boolean
binary	bytea	\\x00	>=	bytea	\\x0000	f	boolean
binary	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	>=	unknown	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12	f	boolean
binary	json	1	=	json	1	!42883 operator does not exist: json = json	-
binary	int4	1	=	text	1	!42883 operator does not exist: integer = text	-
binary	bool	t	=	int4	1	!42883 operator does not exist: boolean = integer	-
binary	oid	1	=	int4	1	t	boolean
binary	oid	1	=	int8	1	t	boolean
binary	unknown	a	=	unknown	a	t	boolean
binary	name	a	=	text	a	t	boolean
binary	varchar(3)	a	=	varchar(4)	a	t	boolean
binary	text[]	{a}	=	unknown	{a}	t	boolean
binary	int4[]	{1}	=	int8[]	{1}	!42883 operator does not exist: integer[] = bigint[]	-
binary	jsonb	{"a":1}	=	jsonb	{"a": 1}	t	boolean
binary	time	01:00	=	interval	01:00	t	boolean
binary	date	2020-01-01	=	int4	1	!42883 operator does not exist: date = integer	-
binary	int4	1	=	numeric(5,2)	1	t	boolean
binary	text	a	||	text	b	ab	text
binary	text	a	||	int4	1	a1	text
binary	int4	1	||	unknown	b	1b	text
binary	int4	1	||	int4	2	!42883 operator does not exist: integer || integer	-
binary	unknown	1	||	unknown	2	12	text
binary	bytea	\\x01	||	bytea	\\x02	\\x0102	bytea
binary	bytea	\\x01	||	unknown	\\x02	\\x0102	bytea
binary	char(5)	ab	||	text	c	abc	text
binary	text	a	||	bool	t	atrue	text
binary	int4[]	{1}	||	int4[]	{2}	{1,2}	integer[]
binary	int4[]	{1}	||	int4	2	{1,2}	integer[]
binary	int4	1	||	int4[]	{2}	{1,2}	integer[]
binary	text[]	{a}	||	unknown	{b}	{a,b}	text[]
binary	text	a	||	float8	1.50	a1.5	text
binary	varchar(3)	a	||	varchar(3)	b	ab	text
binary	text	a	||	date	2020-01-01	a2020-01-01	text
binary	text	a	||	timestamptz	2020-01-01	a2020-01-01 00:00:00+00	text
binary	text	a	||	numeric	1.50	a1.50	text
binary	text	abc	like	text	abc	t	boolean
binary	text	abc	like	text	a%	t	boolean
binary	text	abc	like	text	_b_	t	boolean
binary	text	abc	like	text	c	f	boolean
binary	text	abc	like	text	%c	t	boolean
binary	text	abc	like	text	%b%	t	boolean
binary	text	a%c	like	text	a\\%c	t	boolean
binary	text	abc	like	text	a\\%c	f	boolean
binary	text	abc	like	text	abc\\	f	boolean
binary	text	\e	like	text	%	t	boolean
binary	text	\e	like	text	\e	t	boolean
binary	text	\e	like	text	_	f	boolean
binary	text	aXbXc	like	text	a%X%c	t	boolean
binary	text	ab	like	text	a%%b	t	boolean
binary	text	éa	like	text	_a	t	boolean
binary	text	ABC	like	text	abc	f	boolean
binary	text	a\nb	like	text	a%b	t	boolean
binary	text	mississippi	like	text	m%iss%ip%i	t	boolean
binary	text	a_c	like	text	a__	t	boolean
binary	text	abcabc	like	text	%abc	t	boolean
binary	text	x	like	text	\\x	t	boolean
binary	text	abc	not like	text	abc	f	boolean
binary	text	abc	not like	text	a%	f	boolean
binary	text	abc	not like	text	_b_	f	boolean
binary	text	abc	not like	text	c	t	boolean
binary	text	abc	not like	text	%c	f	boolean
binary	text	abc	not like	text	%b%	f	boolean
binary	text	a%c	not like	text	a\\%c	f	boolean
binary	text	abc	not like	text	a\\%c	t	boolean
binary	text	abc	not like	text	abc\\	t	boolean
binary	text	\e	not like	text	%	f	boolean
binary	text	\e	not like	text	\e	f	boolean
binary	text	\e	not like	text	_	t	boolean
binary	text	aXbXc	not like	text	a%X%c	f	boolean
binary	text	ab	not like	text	a%%b	f	boolean
binary	text	éa	not like	text	_a	f	boolean
binary	text	ABC	not like	text	abc	t	boolean
binary	text	a\nb	not like	text	a%b	f	boolean
binary	text	mississippi	not like	text	m%iss%ip%i	f	boolean
binary	text	a_c	not like	text	a__	f	boolean
binary	text	abcabc	not like	text	%abc	f	boolean
binary	text	x	not like	text	\\x	f	boolean
binary	text	abc	ilike	text	abc	t	boolean
binary	text	abc	ilike	text	a%	t	boolean
binary	text	abc	ilike	text	_b_	t	boolean
binary	text	abc	ilike	text	c	f	boolean
binary	text	abc	ilike	text	%c	t	boolean
binary	text	abc	ilike	text	%b%	t	boolean
binary	text	a%c	ilike	text	a\\%c	t	boolean
binary	text	abc	ilike	text	a\\%c	f	boolean
binary	text	abc	ilike	text	abc\\	f	boolean
binary	text	\e	ilike	text	%	t	boolean
binary	text	\e	ilike	text	\e	t	boolean
binary	text	\e	ilike	text	_	f	boolean
binary	text	aXbXc	ilike	text	a%X%c	t	boolean
binary	text	ab	ilike	text	a%%b	t	boolean
binary	text	éa	ilike	text	_a	t	boolean
binary	text	ABC	ilike	text	abc	t	boolean
binary	text	a\nb	ilike	text	a%b	t	boolean
binary	text	mississippi	ilike	text	m%iss%ip%i	t	boolean
binary	text	a_c	ilike	text	a__	t	boolean
binary	text	abcabc	ilike	text	%abc	t	boolean
binary	text	x	ilike	text	\\x	t	boolean
binary	text	abc	not ilike	text	abc	f	boolean
binary	text	abc	not ilike	text	a%	f	boolean
binary	text	abc	not ilike	text	_b_	f	boolean
binary	text	abc	not ilike	text	c	t	boolean
binary	text	abc	not ilike	text	%c	f	boolean
binary	text	abc	not ilike	text	%b%	f	boolean
binary	text	a%c	not ilike	text	a\\%c	f	boolean
binary	text	abc	not ilike	text	a\\%c	t	boolean
binary	text	abc	not ilike	text	abc\\	t	boolean
binary	text	\e	not ilike	text	%	f	boolean
binary	text	\e	not ilike	text	\e	f	boolean
binary	text	\e	not ilike	text	_	t	boolean
binary	text	aXbXc	not ilike	text	a%X%c	f	boolean
binary	text	ab	not ilike	text	a%%b	f	boolean
binary	text	éa	not ilike	text	_a	f	boolean
binary	text	ABC	not ilike	text	abc	f	boolean
binary	text	a\nb	not ilike	text	a%b	f	boolean
binary	text	mississippi	not ilike	text	m%iss%ip%i	f	boolean
binary	text	a_c	not ilike	text	a__	f	boolean
binary	text	abcabc	not ilike	text	%abc	f	boolean
binary	text	x	not ilike	text	\\x	f	boolean
binary	text	abc	~	text	^a.c$	t	boolean
binary	text	abc	~	text	b	t	boolean
binary	text	ABC	~	text	abc	f	boolean
binary	text	abc	~	text	^(b|c)	f	boolean
binary	text	abc	~	text	[[:alpha:]]+	t	boolean
binary	text	a1	~	text	\\d	t	boolean
binary	text	a\nb	~	text	a.b	t	boolean
binary	text	\e	~	text	^$	t	boolean
binary	text	foo	~	text	fo{2}	t	boolean
binary	text	a.b	~	text	a\\.b	t	boolean
binary	text	abc	!~	text	^a.c$	f	boolean
binary	text	abc	!~	text	b	f	boolean
binary	text	ABC	!~	text	abc	t	boolean
binary	text	abc	!~	text	^(b|c)	t	boolean
binary	text	abc	!~	text	[[:alpha:]]+	f	boolean
binary	text	a1	!~	text	\\d	f	boolean
binary	text	a\nb	!~	text	a.b	f	boolean
binary	text	\e	!~	text	^$	f	boolean
binary	text	foo	!~	text	fo{2}	f	boolean
binary	text	a.b	!~	text	a\\.b	f	boolean
binary	text	abc	~*	text	^a.c$	t	boolean
binary	text	abc	~*	text	b	t	boolean
binary	text	ABC	~*	text	abc	t	boolean
binary	text	abc	~*	text	^(b|c)	f	boolean
binary	text	abc	~*	text	[[:alpha:]]+	t	boolean
binary	text	a1	~*	text	\\d	t	boolean
binary	text	a\nb	~*	text	a.b	t	boolean
binary	text	\e	~*	text	^$	t	boolean
binary	text	foo	~*	text	fo{2}	t	boolean
binary	text	a.b	~*	text	a\\.b	t	boolean
binary	text	abc	!~*	text	^a.c$	f	boolean
binary	text	abc	!~*	text	b	f	boolean
binary	text	ABC	!~*	text	abc	f	boolean
binary	text	abc	!~*	text	^(b|c)	t	boolean
binary	text	abc	!~*	text	[[:alpha:]]+	f	boolean
binary	text	a1	!~*	text	\\d	f	boolean
binary	text	a\nb	!~*	text	a.b	f	boolean
binary	text	\e	!~*	text	^$	f	boolean
binary	text	foo	!~*	text	fo{2}	f	boolean
binary	text	a.b	!~*	text	a\\.b	f	boolean
binary	varchar(5)	abc	like	unknown	a%	t	boolean
binary	int4	1	like	unknown	1	!42883 operator does not exist: integer ~~ unknown	-
binary	int4	12	&	int4	5	4	integer
binary	int4	-1	&	int4	3	3	integer
binary	int4	1	&	int4	31	1	integer
binary	int4	1	&	int4	33	1	integer
binary	int4	-8	&	int4	1	0	integer
binary	int8	1	&	int4	40	0	bigint
binary	int2	255	&	int2	3	3	smallint
binary	int2	1	&	int2	15	1	smallint
binary	int4	1	&	float8	1	!42883 operator does not exist: integer & double precision	-
binary	int8	12	&	int8	5	4	bigint
binary	int4	12	|	int4	5	13	integer
binary	int4	-1	|	int4	3	-1	integer
binary	int4	1	|	int4	31	31	integer
binary	int4	1	|	int4	33	33	integer
binary	int4	-8	|	int4	1	-7	integer
binary	int8	1	|	int4	40	41	bigint
binary	int2	255	|	int2	3	255	smallint
binary	int2	1	|	int2	15	15	smallint
binary	int4	1	|	float8	1	!42883 operator does not exist: integer | double precision	-
binary	int8	12	|	int8	5	13	bigint
binary	int4	12	#	int4	5	9	integer
binary	int4	-1	#	int4	3	-4	integer
binary	int4	1	#	int4	31	30	integer
binary	int4	1	#	int4	33	32	integer
binary	int4	-8	#	int4	1	-7	integer
binary	int8	1	#	int4	40	41	bigint
binary	int2	255	#	int2	3	252	smallint
binary	int2	1	#	int2	15	14	smallint
binary	int4	1	#	float8	1	!42883 operator does not exist: integer # double precision	-
binary	int8	12	#	int8	5	9	bigint
binary	int4	12	<<	int4	5	384	integer
binary	int4	-1	<<	int4	3	-8	integer
binary	int4	1	<<	int4	31	-2147483648	integer
binary	int4	1	<<	int4	33	2	integer
binary	int4	-8	<<	int4	1	-16	integer
binary	int8	1	<<	int4	40	1099511627776	bigint
binary	int2	255	<<	int2	3	2040	smallint
binary	int2	1	<<	int2	15	-32768	smallint
binary	int4	1	<<	float8	1	!42883 operator does not exist: integer << double precision	-
binary	int8	12	<<	int8	5	!42883 operator does not exist: bigint << bigint	-
binary	int4	12	>>	int4	5	0	integer
binary	int4	-1	>>	int4	3	-1	integer
binary	int4	1	>>	int4	31	0	integer
binary	int4	1	>>	int4	33	0	integer
binary	int4	-8	>>	int4	1	-4	integer
binary	int8	1	>>	int4	40	0	bigint
binary	int2	255	>>	int2	3	31	smallint
binary	int2	1	>>	int2	15	0	smallint
binary	int4	1	>>	float8	1	!42883 operator does not exist: integer >> double precision	-
binary	int8	12	>>	int8	5	!42883 operator does not exist: bigint >> bigint	-
binary	date	2020-02-28	+	int4	2	2020-03-01	date
binary	date	2020-01-01	+	int4	2147483647	!22008 date out of range	-
binary	date	2020-01-31	+	interval	1 month	2020-02-29 00:00:00	timestamp without time zone
binary	date	2020-01-01	+	interval	1 day 02:00	2020-01-02 02:00:00	timestamp without time zone
binary	date	2020-01-01	+	int8	1	!42883 operator does not exist: date + bigint	-
binary	date	2020-03-01	+	date	2020-02-01	!42883 operator does not exist: date + date	-
binary	date	2020-01-01	+	time	10:00	2020-01-01 10:00:00	timestamp without time zone
binary	date	2020-01-01	+	unknown	2019-12-31	!42725 operator is not unique: date + unknown	-
binary	timestamp	2020-01-31 10:00	+	interval	1 month	2020-02-29 10:00:00	timestamp without time zone
binary	timestamp	2020-03-31 10:00	+	interval	1 mon 1 day 01:00	2020-05-01 11:00:00	timestamp without time zone
binary	timestamp	2020-02-29 10:00	+	interval	1 year	2021-02-28 10:00:00	timestamp without time zone
binary	timestamp	294276-12-31	+	interval	1 day	!22008 timestamp out of range	-
binary	timestamp	2020-01-01	+	interval	-1 mon	2019-12-01 00:00:00	timestamp without time zone
binary	timestamp	2020-01-01	+	interval	100000 years	102020-01-01 00:00:00	timestamp without time zone
binary	timestamptz	2020-01-31 10:00+02	+	interval	1 month	2020-02-29 08:00:00+00	timestamp with time zone
binary	timestamp	2020-03-01 10:00	+	timestamp	2020-02-01 12:30	!42883 operator does not exist: timestamp without time zone + timestamp without time zone	-
binary	timestamp	2020-02-01	+	timestamp	2020-03-01 10:00	!42883 operator does not exist: timestamp without time zone + timestamp without time zone	-
binary	timestamptz	2020-03-01 10:00	+	timestamptz	2020-02-01 12:30	!42883 operator does not exist: timestamp with time zone + timestamp with time zone	-
binary	timestamp	2020-03-01 10:00	+	timestamptz	2020-02-01 12:30	!42883 operator does not exist: timestamp without time zone + timestamp with time zone	-
binary	timestamp	2020-03-01 10:00	+	date	2020-02-01	!42883 operator does not exist: timestamp without time zone + date	-
binary	date	2020-03-01	+	timestamp	2020-02-01 10:00	!42883 operator does not exist: date + timestamp without time zone	-
binary	timestamp	2020-03-01	+	unknown	2020-02-01	!22007 invalid input syntax for type interval: "2020-02-01"	-
binary	timestamp	2020-03-01	+	int4	1	!42883 operator does not exist: timestamp without time zone + integer	-
binary	time	10:00	+	interval	15:00	01:00:00	time without time zone
binary	time	10:00	+	interval	-1 day 11:00	21:00:00	time without time zone
binary	time	10:00	+	time	11:30	!42725 operator is not unique: time without time zone + time without time zone	-
binary	interval	1 mon 2 days	+	interval	1 day 03:00	1 mon 3 days 03:00:00	interval
binary	interval	178956970 years	+	interval	1 year	!22008 interval out of range	-
binary	interval	1 day	+	unknown	02:00	1 day 02:00:00	interval
binary	interval	1 day	+	time	02:00	02:00:00	time without time zone
binary	time	10:00	+	timestamp	2020-01-01	2020-01-01 10:00:00	timestamp without time zone
binary	timestamp	2020-01-01	+	time	10:00	2020-01-01 10:00:00	timestamp without time zone
binary	date	2020-02-28	-	int4	2	2020-02-26	date
binary	date	2020-01-01	-	int4	2147483647	!22008 date out of range	-
binary	date	2020-01-31	-	interval	1 month	2019-12-31 00:00:00	timestamp without time zone
binary	date	2020-01-01	-	interval	1 day 02:00	2019-12-30 22:00:00	timestamp without time zone
binary	date	2020-01-01	-	int8	1	!42883 operator does not exist: date - bigint	-
binary	date	2020-03-01	-	date	2020-02-01	29	integer
binary	date	2020-01-01	-	time	10:00	2019-12-31 14:00:00	timestamp without time zone
binary	date	2020-01-01	-	unknown	2019-12-31	1	integer
binary	timestamp	2020-01-31 10:00	-	interval	1 month	2019-12-31 10:00:00	timestamp without time zone
binary	timestamp	2020-03-31 10:00	-	interval	1 mon 1 day 01:00	2020-02-28 09:00:00	timestamp without time zone
binary	timestamp	2020-02-29 10:00	-	interval	1 year	2019-02-28 10:00:00	timestamp without time zone
binary	timestamp	294276-12-31	-	interval	1 day	294276-12-30 00:00:00	timestamp without time zone
binary	timestamp	2020-01-01	-	interval	-1 mon	2020-02-01 00:00:00	timestamp without time zone
binary	timestamp	2020-01-01	-	interval	100000 years	!22008 timestamp out of range	-
binary	timestamptz	2020-01-31 10:00+02	-	interval	1 month	2019-12-31 08:00:00+00	timestamp with time zone
binary	timestamp	2020-03-01 10:00	-	timestamp	2020-02-01 12:30	28 days 21:30:00	interval
binary	timestamp	2020-02-01	-	timestamp	2020-03-01 10:00	-29 days -10:00:00	interval
binary	timestamptz	2020-03-01 10:00	-	timestamptz	2020-02-01 12:30	28 days 21:30:00	interval
binary	timestamp	2020-03-01 10:00	-	timestamptz	2020-02-01 12:30	28 days 21:30:00	interval
binary	timestamp	2020-03-01 10:00	-	date	2020-02-01	29 days 10:00:00	interval
binary	date	2020-03-01	-	timestamp	2020-02-01 10:00	28 days 14:00:00	interval
binary	timestamp	2020-03-01	-	unknown	2020-02-01	29 days	interval
binary	timestamp	2020-03-01	-	int4	1	!42883 operator does not exist: timestamp without time zone - integer	-
binary	time	10:00	-	interval	15:00	19:00:00	time without time zone
binary	time	10:00	-	interval	-1 day 11:00	23:00:00	time without time zone
binary	time	10:00	-	time	11:30	-01:30:00	interval
binary	interval	1 mon 2 days	-	interval	1 day 03:00	1 mon 1 day -03:00:00	interval
binary	interval	178956970 years	-	interval	1 year	178956969 years	interval
binary	interval	1 day	-	unknown	02:00	1 day -02:00:00	interval
binary	interval	1 day	-	time	02:00	1 day -02:00:00	interval
binary	time	10:00	-	timestamp	2020-01-01	!42883 operator does not exist: time without time zone - timestamp without time zone	-
binary	timestamp	2020-01-01	-	time	10:00	2019-12-31 14:00:00	timestamp without time zone
binary	interval	1 day	+	date	2020-01-01	2020-01-02 00:00:00	timestamp without time zone
binary	interval	1 day	+	timestamp	2020-01-01	2020-01-02 00:00:00	timestamp without time zone
binary	interval	1 day	+	timestamptz	2020-01-01	2020-01-02 00:00:00+00	timestamp with time zone
binary	int4	1	+	date	2020-01-01	2020-01-02	date
binary	time	10:00	+	date	2020-01-01	2020-01-01 10:00:00	timestamp without time zone
binary	interval	10:00	+	time	20:00	06:00:00	time without time zone
binary	timestamptz	2020-01-01	+	unknown	1 day	2020-01-02 00:00:00+00	timestamp with time zone
binary	unknown	1 day	+	timestamp	2020-01-01	2020-01-02 00:00:00	timestamp without time zone
binary	interval	1 day	*	int4	3	3 days	interval
binary	interval	1 mon 1 day	*	int4	2	2 mons 2 days	interval
binary	interval	1 year	*	int4	5	5 years	interval
binary	interval	1 day	*	int4	0	00:00:00	interval
binary	interval	1 mon	*	float8	1.5	1 mon 15 days	interval
binary	interval	1 day 02:00	*	float8	0.7	18:12:00	interval
binary	interval	1 mon 15 days 12:00	*	float8	2.5	2 mons 52 days 42:00:00	interval
binary	interval	-1 mon 3 days	*	float8	1.7	-1 mons -16 days +02:24:00	interval
binary	interval	1 year 2 mons 3 days 04:05:06.789	*	float8	3.3	3 years 10 mons 15 days 35:04:52.4037	interval
binary	interval	1 day	*	float8	1e20	!22008 interval out of range	-
binary	interval	00:00:01	*	float8	3	00:00:03	interval
binary	interval	10 days	*	numeric	0.3	3 days	interval
binary	float8	1.5	*	interval	1 mon	1 mon 15 days	interval
binary	interval	1 day	/	int4	3	08:00:00	interval
binary	interval	1 mon 1 day	/	int4	2	15 days 12:00:00	interval
binary	interval	1 year	/	int4	5	2 mons 12 days	interval
binary	interval	1 day	/	int4	0	!22012 division by zero	-
binary	interval	1 mon	/	float8	1.5	20 days	interval
binary	interval	1 day 02:00	/	float8	0.7	1 day 13:08:34.285715	interval
binary	interval	1 mon 15 days 12:00	/	float8	2.5	18 days 04:48:00	interval
binary	interval	-1 mon 3 days	/	float8	1.7	-16 days +02:49:24.690635	interval
binary	interval	1 year 2 mons 3 days 04:05:06.789	/	float8	3.3	4 mons 8 days 05:36:05.670072	interval
binary	interval	1 day	/	float8	1e20	00:00:00	interval
binary	interval	00:00:01	/	float8	3	00:00:00.333333	interval
binary	interval	10 days	/	numeric	0.3	33 days 08:00:00	interval
binary	float8	1.5	/	interval	1 mon	!42883 operator does not exist: double precision / interval	-
unary	-	int4	5	-5	integer
unary	-	int4	-2147483648	!22003 integer out of range	-
unary	-	numeric	1.50	-1.50	numeric
unary	-	numeric	0	0	numeric
unary	-	numeric	NaN	NaN	numeric
unary	-	float8	0	-0	double precision
unary	-	float8	1.5	-1.5	double precision
unary	-	float8	NaN	NaN	double precision
unary	-	interval	1 mon -1 day	-1 mons +1 day	interval
unary	-	text	1	!42883 operator does not exist: - text	-
unary	+	int4	5	5	integer
unary	not	bool	t	f	boolean
unary	not	bool	f	t	boolean
unary	~	int4	5	-6	integer
unary	~	int8	5	-6	bigint
unary	~	float8	1	!42883 operator does not exist: ~ double precision	-
unary	-	date	2020-01-01	!42883 operator does not exist: - date	-
unary	-	unknown	5	!42725 operator is not unique: - unknown	-
unary	-	int2	-32768	!22003 smallint out of range	-
cast	float8	2.5	int2	2
cast	float8	3.5	int2	4
cast	float8	-2.5	int2	-2
cast	float8	0.5	int2	0
cast	float8	-0.5	int2	0
cast	float8	1e10	int2	!22003 smallint out of range
cast	float8	NaN	int2	!22003 smallint out of range
cast	float8	Infinity	int2	!22003 smallint out of range
cast	float8	9.3e18	int2	!22003 smallint out of range
cast	float8	2147483647.5	int2	!22003 smallint out of range
cast	float8	32767.4	int2	32767
cast	float8	32767.5	int2	!22003 smallint out of range
cast	numeric	2.5	int2	3
cast	numeric	3.5	int2	4
cast	numeric	-2.5	int2	-3
cast	numeric	0.5	int2	1
cast	numeric	-0.5	int2	-1
cast	numeric	1e10	int2	!22003 smallint out of range
cast	numeric	NaN	int2	!0A000 cannot convert NaN to smallint
cast	numeric	32767.5	int2	!22003 smallint out of range
cast	numeric	9223372036854775807.4	int2	!22003 smallint out of range
cast	numeric	9223372036854775807.5	int2	!22003 smallint out of range
cast	float4	2.5	int2	2
cast	float4	1e10	int2	!22003 smallint out of range
cast	text	12	int2	12
cast	text	 12\s	int2	12
cast	text	x	int2	!22P02 invalid input syntax for type smallint: "x"
cast	int8	100000	int2	!22003 smallint out of range
cast	int8	3000000000	int2	!22003 smallint out of range
cast	bool	t	int2	!42846 cannot cast type boolean to smallint
cast	jsonb	12.5	int2	13
cast	jsonb	"a"	int2	!22023 cannot cast jsonb string to type smallint
cast	jsonb	true	int2	!22023 cannot cast jsonb boolean to type smallint
cast	jsonb	null	int2	!22023 cannot cast jsonb null to type smallint
cast	float8	2.5	int4	2
cast	float8	3.5	int4	4
cast	float8	-2.5	int4	-2
cast	float8	0.5	int4	0
cast	float8	-0.5	int4	0
cast	float8	1e10	int4	!22003 integer out of range
cast	float8	NaN	int4	!22003 integer out of range
cast	float8	Infinity	int4	!22003 integer out of range
cast	float8	9.3e18	int4	!22003 integer out of range
cast	float8	2147483647.5	int4	!22003 integer out of range
cast	float8	32767.4	int4	32767
cast	float8	32767.5	int4	32768
cast	numeric	2.5	int4	3
cast	numeric	3.5	int4	4
cast	numeric	-2.5	int4	-3
cast	numeric	0.5	int4	1
cast	numeric	-0.5	int4	-1
cast	numeric	1e10	int4	!22003 integer out of range
cast	numeric	NaN	int4	!0A000 cannot convert NaN to integer
cast	numeric	32767.5	int4	32768
cast	numeric	9223372036854775807.4	int4	!22003 integer out of range
cast	numeric	9223372036854775807.5	int4	!22003 integer out of range
cast	float4	2.5	int4	2
cast	float4	1e10	int4	!22003 integer out of range
cast	text	12	int4	12
cast	text	 12\s	int4	12
cast	text	x	int4	!22P02 invalid input syntax for type integer: "x"
cast	int8	100000	int4	100000
cast	int8	3000000000	int4	!22003 integer out of range
cast	bool	t	int4	1
cast	jsonb	12.5	int4	13
cast	jsonb	"a"	int4	!22023 cannot cast jsonb string to type integer
cast	jsonb	true	int4	!22023 cannot cast jsonb boolean to type integer
cast	jsonb	null	int4	!22023 cannot cast jsonb null to type integer
cast	float8	2.5	int8	2
cast	float8	3.5	int8	4
cast	float8	-2.5	int8	-2
cast	float8	0.5	int8	0
cast	float8	-0.5	int8	0
cast	float8	1e10	int8	10000000000
cast	float8	NaN	int8	!22003 bigint out of range
cast	float8	Infinity	int8	!22003 bigint out of range
cast	float8	9.3e18	int8	!22003 bigint out of range
cast	float8	2147483647.5	int8	2147483648
cast	float8	32767.4	int8	32767
cast	float8	32767.5	int8	32768
cast	numeric	2.5	int8	3
cast	numeric	3.5	int8	4
cast	numeric	-2.5	int8	-3
cast	numeric	0.5	int8	1
cast	numeric	-0.5	int8	-1
cast	numeric	1e10	int8	10000000000
cast	numeric	NaN	int8	!0A000 cannot convert NaN to bigint
cast	numeric	32767.5	int8	32768
cast	numeric	9223372036854775807.4	int8	9223372036854775807
cast	numeric	9223372036854775807.5	int8	!22003 bigint out of range
cast	float4	2.5	int8	2
cast	float4	1e10	int8	10000000000
cast	text	12	int8	12
cast	text	 12\s	int8	12
cast	text	x	int8	!22P02 invalid input syntax for type bigint: "x"
cast	int8	100000	int8	100000
cast	int8	3000000000	int8	3000000000
cast	bool	t	int8	!42846 cannot cast type boolean to bigint
cast	jsonb	12.5	int8	13
cast	jsonb	"a"	int8	!22023 cannot cast jsonb string to type bigint
cast	jsonb	true	int8	!22023 cannot cast jsonb boolean to type bigint
cast	jsonb	null	int8	!22023 cannot cast jsonb null to type bigint
cast	int8	16777217	float4	1.6777216e+07
cast	int8	9007199254740993	float8	9.007199254740992e+15
cast	float8	1e39	float4	!22003 value out of range: overflow
cast	float8	1e-50	float4	!22003 value out of range: underflow
cast	float8	0.1	float4	0.1
cast	float8	NaN	float4	NaN
cast	float4	0.1	float8	0.10000000149011612
cast	float4	1.1	float8	1.100000023841858
cast	float8	0.1	numeric	0.1
cast	float8	1e20	numeric	100000000000000000000
cast	float8	123456789.123456789	numeric	123456789.123457
cast	float8	1e-20	numeric	0.00000000000000000001
cast	float8	NaN	numeric	NaN
cast	float8	0.30000000000000004	numeric	0.3
cast	float4	0.1	numeric	0.1
cast	float4	1234567	numeric	1234570
cast	float4	1.1	numeric	1.1
cast	numeric	0.1	float8	0.1
cast	numeric	1e400	float8	!22003 "10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" is out of range for type double precision
cast	numeric	1e-400	float8	!22003 "0.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001" is out of range for type double precision
cast	numeric	NaN	float8	NaN
cast	numeric	1e39	float4	!22003 "1000000000000000000000000000000000000000" is out of range for type real
cast	numeric	0.1	float4	0.1
cast	int4	12	numeric(3,1)	12.0
cast	int4	123	numeric(3,1)	!22003 numeric field overflow
cast	numeric	1.005	numeric(4,2)	1.01
cast	numeric	99.995	numeric(4,2)	!22003 numeric field overflow
cast	numeric	99.994	numeric(4,2)	99.99
cast	int4	0	bool	f
cast	int4	5	bool	t
cast	bool	t	int4	1
cast	bool	f	int4	0
cast	bool	t	text	true
cast	bool	f	text	false
cast	bool	t	varchar(2)	tr
cast	int4	5	text	5
cast	int4	123	varchar(2)	12
cast	text	abc	varchar(2)	ab
cast	text	abc	char(2)	ab
cast	text	a	char(2)	a\s
cast	char(5)	a	text	a
cast	char(5)	a \s	varchar(5)	a
cast	varchar(5)	a	char(3)	a \s
cast	varchar(5)	abcde	char(3)	abc
cast	text	abc	name	abc
cast	text	yes	bool	t
cast	text	x	bool	!22P02 invalid input syntax for type boolean: "x"
cast	text	2020-01-01	date	2020-01-01
cast	text	x	date	!22007 invalid input syntax for type date: "x"
cast	text	1.25	numeric(4,1)	1.3
cast	text	\\xdead	bytea	\\xdead
cast	text	abc	bytea	\\x616263
cast	bytea	\\xdead	text	\\xdead
cast	text	{1,2}	int4[]	{1,2}
cast	int4[]	{1,2}	text	{1,2}
cast	int4[]	{1,NULL}	text[]	{1,NULL}
cast	text[]	{1,2}	int4[]	{1,2}
cast	text[]	{a}	int4[]	!22P02 invalid input syntax for type integer: "a"
cast	float8[]	{1.5,2.5}	int4[]	{2,2}
cast	int4	1	date	!42846 cannot cast type integer to date
cast	date	2020-01-01	int4	!42846 cannot cast type date to integer
cast	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	text	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
cast	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	int4	!42846 cannot cast type uuid to integer
cast	date	2020-01-01	timestamp	2020-01-01 00:00:00
cast	date	5874897-12-31	timestamp	!22008 date out of range for timestamp
cast	date	2020-01-01	timestamptz	2020-01-01 00:00:00+00
cast	timestamp	2020-01-01 23:00	date	2020-01-01
cast	timestamp	1999-12-31 23:00	date	1999-12-31
cast	timestamp	0001-01-01 01:00 BC	date	0001-01-01 BC
cast	timestamp	2020-01-01 23:00	time	23:00:00
cast	timestamp	1999-12-31 23:00	time	23:00:00
cast	timestamptz	2020-01-01 23:00-05	date	2020-01-02
cast	timestamptz	2020-01-01 23:00-05	timestamp	2020-01-02 04:00:00
cast	timestamp	2020-01-01 23:00	timestamptz	2020-01-01 23:00:00+00
cast	timestamp	2020-01-01 23:00:00.5	timestamp(0)	2020-01-01 23:00:01
cast	time	10:00	interval	10:00:00
cast	interval	1 day 10:00	time	10:00:00
cast	interval	-1:00	time	23:00:00
cast	timestamp	2020-01-01	text	2020-01-01 00:00:00
cast	timestamptz	2020-01-01	text	2020-01-01 00:00:00+00
cast	interval	1 day	text	1 day
cast	date	2020-01-01	time	!42846 cannot cast type date to time without time zone
cast	int4	5	oid	5
cast	int4	-1	oid	4294967295
cast	oid	5	int4	5
cast	oid	4294967295	int4	-1
cast	int8	4294967296	oid	!22003 OID out of range
cast	int8	5	oid	5
cast	oid	5	int8	5
cast	json	{"b":1,"a":2}	jsonb	{"a": 2, "b": 1}
cast	jsonb	{"b":1,"a":2}	json	{"a": 2, "b": 1}
cast	jsonb	{"b":1,"a":2}	text	{"a": 2, "b": 1}
cast	jsonb	true	bool	t
cast	jsonb	1	bool	!22023 cannot cast jsonb numeric to type boolean
cast	jsonb	1.5	numeric	1.5
cast	text	{"a":1}	jsonb	{"a": 1}
cast	float8	1e20	text	1e+20
cast	numeric	1.50	text	1.50
cast	float4	0.1	text	0.1
cast	name	abc	text	abc
cast	int4	1	interval	!42846 cannot cast type integer to interval
cast	float8	1	bool	!42846 cannot cast type double precision to boolean
cast	int8	1	bool	!42846 cannot cast type bigint to boolean
cast	numeric	1	oid	!42846 cannot cast type numeric to oid
call	lower	text	Hello wORLD foo-bar_baz 1a	hello world foo-bar_baz 1a	text
call	lower	text	\e	\e	text
call	lower	text	it's	it's	text
call	lower	text	ÀÉî x	àéî x	text
call	upper	text	Hello wORLD foo-bar_baz 1a	HELLO WORLD FOO-BAR_BAZ 1A	text
call	upper	text	\e	\e	text
call	upper	text	it's	IT'S	text
call	upper	text	ÀÉî x	ÀÉÎ X	text
call	initcap	text	Hello wORLD foo-bar_baz 1a	Hello World Foo-Bar_Baz 1a	text
call	initcap	text	\e	\e	text
call	initcap	text	it's	It'S	text
call	initcap	text	ÀÉî x	Àéî X	text
call	length	text	Hello wORLD foo-bar_baz 1a	26	integer
call	length	text	\e	0	integer
call	length	text	ÉcoLe	5	integer
call	length	text	  x y \s	7	integer
call	length	text	it's a\\b	8	integer
call	length	text	select	6	integer
call	length	text	abc	3	integer
call	length	text	a"b	3	integer
call	length	text	x1_2	4	integer
call	char_length	text	Hello wORLD foo-bar_baz 1a	26	integer
call	char_length	text	\e	0	integer
call	char_length	text	ÉcoLe	5	integer
call	char_length	text	  x y \s	7	integer
call	char_length	text	it's a\\b	8	integer
call	char_length	text	select	6	integer
call	char_length	text	abc	3	integer
call	char_length	text	a"b	3	integer
call	char_length	text	x1_2	4	integer
call	octet_length	text	Hello wORLD foo-bar_baz 1a	26	integer
call	octet_length	text	\e	0	integer
call	octet_length	text	ÉcoLe	6	integer
call	octet_length	text	  x y \s	7	integer
call	octet_length	text	it's a\\b	8	integer
call	octet_length	text	select	6	integer
call	octet_length	text	abc	3	integer
call	octet_length	text	a"b	3	integer
call	octet_length	text	x1_2	4	integer
call	reverse	text	Hello wORLD foo-bar_baz 1a	a1 zab_rab-oof DLROw olleH	text
call	reverse	text	\e	\e	text
call	reverse	text	ÉcoLe	eLocÉ	text
call	reverse	text	  x y \s	  y x \s	text
call	reverse	text	it's a\\b	b\\a s'ti	text
call	reverse	text	select	tceles	text
call	reverse	text	abc	cba	text
call	reverse	text	a"b	b"a	text
call	reverse	text	x1_2	2_1x	text
call	ascii	text	Hello wORLD foo-bar_baz 1a	72	integer
call	ascii	text	\e	0	integer
call	ascii	text	ÉcoLe	201	integer
call	ascii	text	  x y \s	32	integer
call	ascii	text	it's a\\b	105	integer
call	ascii	text	select	115	integer
call	ascii	text	abc	97	integer
call	ascii	text	a"b	97	integer
call	ascii	text	x1_2	120	integer
call	md5	text	Hello wORLD foo-bar_baz 1a	a76c036ab3cd72fd1be24c8708331e37	text
call	md5	text	\e	d41d8cd98f00b204e9800998ecf8427e	text
call	md5	text	ÉcoLe	f41e74ed19dfa8e21b5b81c90d35c363	text
call	md5	text	  x y \s	7dbfe28fe07b9c108caf29688c35c233	text
call	md5	text	it's a\\b	6862a41057c0f6076d8bd2be34eca9d8	text
call	md5	text	select	99938282f04071859941e18f16efcf42	text
call	md5	text	abc	900150983cd24fb0d6963f7d28e17f72	text
call	md5	text	a"b	c8f88ec84680a7ec056720570290dd34	text
call	md5	text	x1_2	1d2ad6ca2fb25e0562550ed949a1a9a1	text
call	quote_ident	text	Hello wORLD foo-bar_baz 1a	"Hello wORLD foo-bar_baz 1a"	text
call	quote_ident	text	\e	""	text
call	quote_ident	text	ÉcoLe	"ÉcoLe"	text
call	quote_ident	text	  x y \s	"  x y  "	text
call	quote_ident	text	it's a\\b	"it's a\\b"	text
call	quote_ident	text	select	"select"	text
call	quote_ident	text	abc	abc	text
call	quote_ident	text	a"b	"a""b"	text
call	quote_ident	text	x1_2	x1_2	text
call	quote_literal	text	Hello wORLD foo-bar_baz 1a	'Hello wORLD foo-bar_baz 1a'	text
call	quote_literal	text	\e	''	text
call	quote_literal	text	ÉcoLe	'ÉcoLe'	text
call	quote_literal	text	  x y \s	'  x y  '	text
call	quote_literal	text	it's a\\b	E'it''s a\\\\b'	text
call	quote_literal	text	select	'select'	text
call	quote_literal	text	abc	'abc'	text
call	quote_literal	text	a"b	'a"b'	text
call	quote_literal	text	x1_2	'x1_2'	text
call	btrim	text	Hello wORLD foo-bar_baz 1a	Hello wORLD foo-bar_baz 1a	text
call	btrim	text	\e	\e	text
call	btrim	text	ÉcoLe	ÉcoLe	text
call	btrim	text	  x y \s	x y	text
call	btrim	text	it's a\\b	it's a\\b	text
call	btrim	text	select	select	text
call	btrim	text	abc	abc	text
call	btrim	text	a"b	a"b	text
call	btrim	text	x1_2	x1_2	text
call	ltrim	text	Hello wORLD foo-bar_baz 1a	Hello wORLD foo-bar_baz 1a	text
call	ltrim	text	\e	\e	text
call	ltrim	text	ÉcoLe	ÉcoLe	text
call	ltrim	text	  x y \s	x y \s	text
call	ltrim	text	it's a\\b	it's a\\b	text
call	ltrim	text	select	select	text
call	ltrim	text	abc	abc	text
call	ltrim	text	a"b	a"b	text
call	ltrim	text	x1_2	x1_2	text
call	rtrim	text	Hello wORLD foo-bar_baz 1a	Hello wORLD foo-bar_baz 1a	text
call	rtrim	text	\e	\e	text
call	rtrim	text	ÉcoLe	ÉcoLe	text
call	rtrim	text	  x y \s	  x y	text
call	rtrim	text	it's a\\b	it's a\\b	text
call	rtrim	text	select	select	text
call	rtrim	text	abc	abc	text
call	rtrim	text	a"b	a"b	text
call	rtrim	text	x1_2	x1_2	text
call	substr	text	hello	int4	2	ello	text
call	substr	text	hello	int4	0	hello	text
call	substr	text	hello	int4	-3	hello	text
call	substr	text	hello	int4	9	\e	text
call	substr	text	hello	int4	2	int4	3	ell	text
call	substr	text	hello	int4	0	int4	3	he	text
call	substr	text	hello	int4	-1	int4	3	h	text
call	substr	text	hello	int4	2	int4	0	\e	text
call	substr	text	hello	int4	2	int4	-1	!22011 negative substring length not allowed	-
call	substr	text	héllo	int4	2	int4	2	él	text
call	substr	text	hello	int4	2	int4	2147483647	ello	text
call	substr	bytea	\\x010203	int4	2	int4	1	\\x02	bytea
call	substring	text	hello	int4	2	ello	text
call	substring	text	hello	int4	0	hello	text
call	substring	text	hello	int4	-3	hello	text
call	substring	text	hello	int4	9	\e	text
call	substring	text	hello	int4	2	int4	3	ell	text
call	substring	text	hello	int4	0	int4	3	he	text
call	substring	text	hello	int4	-1	int4	3	h	text
call	substring	text	hello	int4	2	int4	0	\e	text
call	substring	text	hello	int4	2	int4	-1	!22011 negative substring length not allowed	-
call	substring	text	héllo	int4	2	int4	2	él	text
call	substring	text	hello	int4	2	int4	2147483647	ello	text
call	substring	bytea	\\x010203	int4	2	int4	1	\\x02	bytea
call	strpos	text	hello	text	l	3	integer
call	strpos	text	hello	text	z	0	integer
call	strpos	text	hello	text	\e	1	integer
call	strpos	text	héllo	text	l	3	integer
call	btrim	text	xyxhixyx	text	xy	hi	text
call	btrim	text	abc	text	\e	abc	text
call	btrim	text	aaa	text	a	\e	text
call	ltrim	text	xyxhixyx	text	xy	hixyx	text
call	ltrim	text	abc	text	\e	abc	text
call	ltrim	text	aaa	text	a	\e	text
call	rtrim	text	xyxhixyx	text	xy	xyxhi	text
call	rtrim	text	abc	text	\e	abc	text
call	rtrim	text	aaa	text	a	\e	text
call	lpad	text	hi	int4	5	   hi	text
call	lpad	text	hello	int4	3	hel	text
call	lpad	text	hi	int4	-1	\e	text
call	lpad	text	hi	int4	7	text	xy	xyxyxhi	text
call	lpad	text	hi	int4	5	text	\e	hi	text
call	lpad	text	hello	int4	2	text	x	he	text
call	lpad	text	é	int4	4	text	ab	abaé	text
call	rpad	text	hi	int4	5	hi  \s	text
call	rpad	text	hello	int4	3	hel	text
call	rpad	text	hi	int4	-1	\e	text
call	rpad	text	hi	int4	7	text	xy	hixyxyx	text
call	rpad	text	hi	int4	5	text	\e	hi	text
call	rpad	text	hello	int4	2	text	x	he	text
call	rpad	text	é	int4	4	text	ab	éaba	text
call	left	text	hello	int4	2	he	text
call	left	text	hello	int4	0	\e	text
call	left	text	hello	int4	-2	hel	text
call	left	text	hello	int4	9	hello	text
call	left	text	hello	int4	-9	\e	text
call	left	text	héllo	int4	2	hé	text
call	right	text	hello	int4	2	lo	text
call	right	text	hello	int4	0	\e	text
call	right	text	hello	int4	-2	llo	text
call	right	text	hello	int4	9	hello	text
call	right	text	hello	int4	-9	\e	text
call	right	text	héllo	int4	2	lo	text
call	replace	text	abcabc	text	b	text	XX	aXXcaXXc	text
call	replace	text	abc	text	\e	text	x	abc	text
call	replace	text	aaa	text	a	text	\e	\e	text
call	translate	text	12345	text	143	text	ax	a2x5	text
call	translate	text	abc	text	\e	text	x	abc	text
call	repeat	text	ab	int4	3	ababab	text
call	repeat	text	ab	int4	0	\e	text
call	repeat	text	ab	int4	-1	\e	text
call	split_part	text	a,b,c	text	,	int4	2	b	text
call	split_part	text	a,b,c	text	,	int4	4	\e	text
call	split_part	text	a,b,c	text	,	int4	-1	c	text
call	split_part	text	a,b,c	text	,	int4	0	!22023 field position must not be zero	-
call	split_part	text	abc	text	\e	int4	1	abc	text
call	split_part	text	abc	text	\e	int4	2	\e	text
call	split_part	text	\e	text	,	int4	1	\e	text
call	starts_with	text	abc	text	ab	t	boolean
call	starts_with	text	abc	text	b	f	boolean
call	chr	int4	65	A	text
call	chr	int4	233	é	text
call	chr	int4	128512	😀	text
call	chr	int4	0	!54000 null character not permitted	-
call	chr	int4	-1	!22023 character number must be positive	-
call	chr	int4	1114112	!54000 requested character too large for encoding: 1114112	-
call	chr	int4	55296	!54000 requested character not valid for encoding: 55296	-
call	to_hex	int4	255	ff	text
call	to_hex	int4	-1	ffffffff	text
call	to_hex	int8	255	ff	text
call	to_hex	int8	-1	ffffffffffffffff	text
call	encode	bytea	\\x0001ff5c41	text	hex	0001ff5c41	text
call	encode	bytea	\\x0001ff5c41	text	base64	AAH/XEE=	text
call	encode	bytea	\\x0001ff5c41	text	escape	\\000\u\\377\\\\A	text
call	encode	bytea	\\x01	text	base64	AQ==	text
call	encode	bytea	\\x0102	text	BASE64	AQI=	text
call	encode	bytea	\\x01	text	foo	!22023 unrecognized encoding: "foo"	-
call	encode	bytea	\\xabababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab	text	base64	q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6ur\nq6ur	text
call	decode	text	00ff	text	hex	\\x00ff	bytea
call	decode	text	AAH/XEE=	text	base64	\\x0001ff5c41	bytea
call	decode	text	AQ==	text	base64	\\x01	bytea
call	decode	text	AQI=	text	base64	\\x0102	bytea
call	decode	text	A Q\nI =	text	base64	\\x0102	bytea
call	decode	text	AQ	text	base64	!22023 invalid base64 end sequence	-
call	decode	text	A*==	text	base64	!22023 invalid symbol "*" found while decoding base64 sequence	-
call	decode	text	a\\\\b\\001	text	escape	\\x615c6201	bytea
call	decode	text	0	text	hex	!22023 invalid hexadecimal data: odd number of digits	-
call	decode	text	0g	text	hex	!22023 invalid hexadecimal digit: "g"	-
call	md5	bytea	\\x00ff	d07d34efac6328007ad67c7e0a985e00	text
call	length	bytea	\\x00ff	2	integer
call	octet_length	bytea	\\x00ff	2	integer
call	length	int4	1	!42883 function length(integer) does not exist	-
call	nosuch	int4	1	text	a	!42883 function nosuch(integer, text) does not exist	-
call	lower	varchar(3)	ABC	abc	text
call	length	unknown	abc	3	integer
call	concat	text	a	int4	1	float8	1.5	a11.5	text
call	concat_ws	text	,	text	a	int4	1	a,1	text
call	concat_ws	unknown	,	unknown	a	a	text
call	abs	numeric	2.5	2.5	numeric
call	abs	numeric	-2.5	2.5	numeric
call	abs	numeric	0	0	numeric
call	abs	numeric	1.50	1.50	numeric
call	abs	numeric	-0.4	0.4	numeric
call	abs	numeric	NaN	NaN	numeric
call	abs	numeric	12345678901234567890.5	12345678901234567890.5	numeric
call	abs	numeric	0.0002	0.0002	numeric
call	abs	numeric	99999	99999	numeric
call	abs	numeric	1e20	100000000000000000000	numeric
call	abs	numeric	100000000	100000000	numeric
call	abs	float8	2.5	2.5	double precision
call	abs	float8	-2.5	2.5	double precision
call	abs	float8	3.5	3.5	double precision
call	abs	float8	0	0	double precision
call	abs	float8	-0	0	double precision
call	abs	float8	NaN	NaN	double precision
call	abs	float8	Infinity	Infinity	double precision
call	abs	float8	1e300	1e+300	double precision
call	abs	float8	0.49999999999999994	0.49999999999999994	double precision
call	abs	int4	7	7	integer
call	abs	int4	-2147483648	!22003 integer out of range	-
call	abs	int4	-3	3	integer
call	abs	int8	-7	7	bigint
call	abs	float4	-1.1	1.1	real
call	abs	unknown	2.5	2.5	double precision
call	sign	numeric	2.5	1	numeric
call	sign	numeric	-2.5	-1	numeric
call	sign	numeric	0	0	numeric
call	sign	numeric	1.50	1	numeric
call	sign	numeric	-0.4	-1	numeric
call	sign	numeric	NaN	NaN	numeric
call	sign	numeric	12345678901234567890.5	1	numeric
call	sign	numeric	0.0002	1	numeric
call	sign	numeric	99999	1	numeric
call	sign	numeric	1e20	1	numeric
call	sign	numeric	100000000	1	numeric
call	sign	float8	2.5	1	double precision
call	sign	float8	-2.5	-1	double precision
call	sign	float8	3.5	1	double precision
call	sign	float8	0	0	double precision
call	sign	float8	-0	0	double precision
call	sign	float8	NaN	0	double precision
call	sign	float8	Infinity	1	double precision
call	sign	float8	1e300	1	double precision
call	sign	float8	0.49999999999999994	1	double precision
call	sign	int4	7	1	double precision
call	sign	int4	-2147483648	-1	double precision
call	sign	int4	-3	-1	double precision
call	sign	int8	-7	-1	double precision
call	sign	float4	-1.1	-1	double precision
call	sign	unknown	2.5	1	double precision
call	ceil	numeric	2.5	3	numeric
call	ceil	numeric	-2.5	-2	numeric
call	ceil	numeric	0	0	numeric
call	ceil	numeric	1.50	2	numeric
call	ceil	numeric	-0.4	0	numeric
call	ceil	numeric	NaN	NaN	numeric
call	ceil	numeric	12345678901234567890.5	12345678901234567891	numeric
call	ceil	numeric	0.0002	1	numeric
call	ceil	numeric	99999	99999	numeric
call	ceil	numeric	1e20	100000000000000000000	numeric
call	ceil	numeric	100000000	100000000	numeric
call	ceil	float8	2.5	3	double precision
call	ceil	float8	-2.5	-2	double precision
call	ceil	float8	3.5	4	double precision
call	ceil	float8	0	0	double precision
call	ceil	float8	-0	-0	double precision
call	ceil	float8	NaN	NaN	double precision
call	ceil	float8	Infinity	Infinity	double precision
call	ceil	float8	1e300	1e+300	double precision
call	ceil	float8	0.49999999999999994	1	double precision
call	ceil	int4	7	7	double precision
call	ceil	int4	-2147483648	-2147483648	double precision
call	ceil	int4	-3	-3	double precision
call	ceil	int8	-7	-7	double precision
call	ceil	float4	-1.1	-1	double precision
call	ceil	unknown	2.5	3	double precision
call	floor	numeric	2.5	2	numeric
call	floor	numeric	-2.5	-3	numeric
call	floor	numeric	0	0	numeric
call	floor	numeric	1.50	1	numeric
call	floor	numeric	-0.4	-1	numeric
call	floor	numeric	NaN	NaN	numeric
call	floor	numeric	12345678901234567890.5	12345678901234567890	numeric
call	floor	numeric	0.0002	0	numeric
call	floor	numeric	99999	99999	numeric
call	floor	numeric	1e20	100000000000000000000	numeric
call	floor	numeric	100000000	100000000	numeric
call	floor	float8	2.5	2	double precision
call	floor	float8	-2.5	-3	double precision
call	floor	float8	3.5	3	double precision
call	floor	float8	0	0	double precision
call	floor	float8	-0	-0	double precision
call	floor	float8	NaN	NaN	double precision
call	floor	float8	Infinity	Infinity	double precision
call	floor	float8	1e300	1e+300	double precision
call	floor	float8	0.49999999999999994	0	double precision
call	floor	int4	7	7	double precision
call	floor	int4	-2147483648	-2147483648	double precision
call	floor	int4	-3	-3	double precision
call	floor	int8	-7	-7	double precision
call	floor	float4	-1.1	-2	double precision
call	floor	unknown	2.5	2	double precision
call	round	numeric	2.5	3	numeric
call	round	numeric	-2.5	-3	numeric
call	round	numeric	0	0	numeric
call	round	numeric	1.50	2	numeric
call	round	numeric	-0.4	0	numeric
call	round	numeric	NaN	NaN	numeric
call	round	numeric	12345678901234567890.5	12345678901234567891	numeric
call	round	numeric	0.0002	0	numeric
call	round	numeric	99999	99999	numeric
call	round	numeric	1e20	100000000000000000000	numeric
call	round	numeric	100000000	100000000	numeric
call	round	float8	2.5	2	double precision
call	round	float8	-2.5	-2	double precision
call	round	float8	3.5	4	double precision
call	round	float8	0	0	double precision
call	round	float8	-0	-0	double precision
call	round	float8	NaN	NaN	double precision
call	round	float8	Infinity	Infinity	double precision
call	round	float8	1e300	1e+300	double precision
call	round	float8	0.49999999999999994	0	double precision
call	round	int4	7	7	double precision
call	round	int4	-2147483648	-2147483648	double precision
call	round	int4	-3	-3	double precision
call	round	int8	-7	-7	double precision
call	round	float4	-1.1	-1	double precision
call	round	unknown	2.5	2	double precision
call	trunc	numeric	2.5	2	numeric
call	trunc	numeric	-2.5	-2	numeric
call	trunc	numeric	0	0	numeric
call	trunc	numeric	1.50	1	numeric
call	trunc	numeric	-0.4	0	numeric
call	trunc	numeric	NaN	NaN	numeric
call	trunc	numeric	12345678901234567890.5	12345678901234567890	numeric
call	trunc	numeric	0.0002	0	numeric
call	trunc	numeric	99999	99999	numeric
call	trunc	numeric	1e20	100000000000000000000	numeric
call	trunc	numeric	100000000	100000000	numeric
call	trunc	float8	2.5	2	double precision
call	trunc	float8	-2.5	-2	double precision
call	trunc	float8	3.5	3	double precision
call	trunc	float8	0	0	double precision
call	trunc	float8	-0	-0	double precision
call	trunc	float8	NaN	NaN	double precision
call	trunc	float8	Infinity	Infinity	double precision
call	trunc	float8	1e300	1e+300	double precision
call	trunc	float8	0.49999999999999994	0	double precision
call	trunc	int4	7	7	double precision
call	trunc	int4	-2147483648	-2147483648	double precision
call	trunc	int4	-3	-3	double precision
call	trunc	int8	-7	-7	double precision
call	trunc	float4	-1.1	-1	double precision
call	sqrt	numeric	2.5	1.581138830084190	numeric
call	sqrt	numeric	-2.5	!2201F cannot take square root of a negative number	-
call	sqrt	numeric	0	0.000000000000000	numeric
call	sqrt	numeric	1.50	1.224744871391589	numeric
call	sqrt	numeric	-0.4	!2201F cannot take square root of a negative number	-
call	sqrt	numeric	NaN	NaN	numeric
call	sqrt	numeric	12345678901234567890.5	3513641828.8201443	numeric
call	sqrt	numeric	0.0002	0.01414213562373095	numeric
call	sqrt	numeric	99999	316.2261848740550	numeric
call	sqrt	numeric	1e20	10000000000.00000	numeric
call	sqrt	numeric	100000000	10000.00000000000	numeric
call	sqrt	float8	2.5	1.5811388300841898	double precision
call	sqrt	float8	-2.5	!2201F cannot take square root of a negative number	-
call	sqrt	float8	3.5	1.8708286933869707	double precision
call	sqrt	float8	0	0	double precision
call	sqrt	float8	-0	-0	double precision
call	sqrt	float8	NaN	NaN	double precision
call	sqrt	float8	Infinity	Infinity	double precision
call	sqrt	float8	1e300	1e+150	double precision
call	sqrt	float8	0.49999999999999994	0.7071067811865475	double precision
call	sqrt	int4	7	2.6457513110645907	double precision
call	sqrt	int4	-2147483648	!2201F cannot take square root of a negative number	-
call	sqrt	int4	-3	!2201F cannot take square root of a negative number	-
call	sqrt	int8	-7	!2201F cannot take square root of a negative number	-
call	sqrt	float4	-1.1	!2201F cannot take square root of a negative number	-
call	sqrt	unknown	2.5	1.5811388300841898	double precision
call	abs	int2	-5	5	smallint
call	abs	int2	-32768	!22003 smallint out of range	-
call	round	numeric	2.345	int4	2	2.35	numeric
call	round	numeric	2.355	int4	2	2.36	numeric
call	round	numeric	-2.345	int4	2	-2.35	numeric
call	round	numeric	1234.5	int4	-2	1200	numeric
call	round	numeric	1250	int4	-2	1300	numeric
call	round	numeric	1.5	int4	5	1.50000	numeric
call	round	numeric	0.5	int4	0	1	numeric
call	round	numeric	99.99	int4	1	100.0	numeric
call	trunc	numeric	2.349	int4	2	2.34	numeric
call	trunc	numeric	-2.349	int4	2	-2.34	numeric
call	trunc	numeric	1299	int4	-2	1200	numeric
call	trunc	numeric	1.5	int4	4	1.5000	numeric
call	round	float8	2.345	int4	2	!42883 function round(double precision, integer) does not exist	-
call	round	int4	1250	int4	-2	1300	numeric
call	mod	int4	7	int4	3	1	integer
call	mod	int4	-7	int4	3	-1	integer
call	mod	int4	7	int4	0	!22012 division by zero	-
call	mod	int2	7	int4	3	1	integer
call	mod	numeric	7.5	numeric	2	1.5	numeric
call	mod	numeric	-7.5	numeric	2	-1.5	numeric
call	mod	numeric	1	numeric	0	!22012 division by zero	-
call	mod	int4	7	numeric	2.5	2.0	numeric
call	mod	int8	-9223372036854775808	int8	-1	0	bigint
call	div	numeric	7.5	numeric	2	3	numeric
call	div	numeric	-7.5	numeric	2	-3	numeric
call	div	numeric	1	numeric	0	!22012 division by zero	-
call	div	int4	7	int4	2	3	numeric
call	power	int4	2	int4	10	1024	double precision
call	power	numeric	2	numeric	0.5	1.4142135623730950	numeric
call	power	numeric	2	numeric	3	8.0000000000000000	numeric
call	power	numeric	2.5	int4	3	15.6250000000000000	numeric
call	power	float8	2	float8	0.5	1.4142135623730951	double precision
call	pow	int4	2	numeric	3	8.0000000000000000	numeric
call	exp	float8	0	1	double precision
call	exp	float8	-1	0.36787944117144233	double precision
call	exp	float8	710	!22003 value out of range: overflow	-
call	ln	float8	2	0.6931471805599453	double precision
call	ln	float8	0	!2201E cannot take logarithm of zero	-
call	ln	float8	-1	!2201E cannot take logarithm of a negative number	-
call	log	float8	1000	3	double precision
call	log	float8	2	0.3010299956639812	double precision
call	greatest	int4	1	int4	3	int8	2	3	bigint
call	least	numeric	1.5	int4	1	1	numeric
call	greatest	unknown	a	text	b	b	text
call	greatest	int4	1	text	a	!42804 GREATEST types integer and text cannot be matched	-
call	least	date	2020-01-01	timestamp	2019-01-01	2019-01-01 00:00:00	timestamp without time zone
call	greatest	unknown	a	unknown	b	b	text
call	greatest	int4	1	float4	2.5	2.5	real
call	greatest	int4	1	unknown	5	5	integer
call	date_trunc	text	microseconds	timestamp	2020-05-17 13:14:15.678901	2020-05-17 13:14:15.678901	timestamp without time zone
call	date_trunc	text	microseconds	timestamp	1999-12-31 23:59:59.999999	1999-12-31 23:59:59.999999	timestamp without time zone
call	date_trunc	text	microseconds	timestamp	0044-03-15 12:00:00 BC	0044-03-15 12:00:00 BC	timestamp without time zone
call	date_trunc	text	microseconds	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	microseconds	timestamp	2021-01-03 05:06:07	2021-01-03 05:06:07	timestamp without time zone
call	date_trunc	text	microseconds	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons 6 days 07:08:09.123456	interval
call	date_trunc	text	milliseconds	timestamp	2020-05-17 13:14:15.678901	2020-05-17 13:14:15.678	timestamp without time zone
call	date_trunc	text	milliseconds	timestamp	1999-12-31 23:59:59.999999	1999-12-31 23:59:59.999	timestamp without time zone
call	date_trunc	text	milliseconds	timestamp	0044-03-15 12:00:00 BC	0044-03-15 12:00:00 BC	timestamp without time zone
call	date_trunc	text	milliseconds	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	milliseconds	timestamp	2021-01-03 05:06:07	2021-01-03 05:06:07	timestamp without time zone
call	date_trunc	text	milliseconds	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons 6 days 07:08:09.123	interval
call	date_trunc	text	second	timestamp	2020-05-17 13:14:15.678901	2020-05-17 13:14:15	timestamp without time zone
call	date_trunc	text	second	timestamp	1999-12-31 23:59:59.999999	1999-12-31 23:59:59	timestamp without time zone
call	date_trunc	text	second	timestamp	0044-03-15 12:00:00 BC	0044-03-15 12:00:00 BC	timestamp without time zone
call	date_trunc	text	second	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	second	timestamp	2021-01-03 05:06:07	2021-01-03 05:06:07	timestamp without time zone
call	date_trunc	text	second	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons 6 days 07:08:09	interval
call	date_trunc	text	minute	timestamp	2020-05-17 13:14:15.678901	2020-05-17 13:14:00	timestamp without time zone
call	date_trunc	text	minute	timestamp	1999-12-31 23:59:59.999999	1999-12-31 23:59:00	timestamp without time zone
call	date_trunc	text	minute	timestamp	0044-03-15 12:00:00 BC	0044-03-15 12:00:00 BC	timestamp without time zone
call	date_trunc	text	minute	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	minute	timestamp	2021-01-03 05:06:07	2021-01-03 05:06:00	timestamp without time zone
call	date_trunc	text	minute	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons 6 days 07:08:00	interval
call	date_trunc	text	hour	timestamp	2020-05-17 13:14:15.678901	2020-05-17 13:00:00	timestamp without time zone
call	date_trunc	text	hour	timestamp	1999-12-31 23:59:59.999999	1999-12-31 23:00:00	timestamp without time zone
call	date_trunc	text	hour	timestamp	0044-03-15 12:00:00 BC	0044-03-15 12:00:00 BC	timestamp without time zone
call	date_trunc	text	hour	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	hour	timestamp	2021-01-03 05:06:07	2021-01-03 05:00:00	timestamp without time zone
call	date_trunc	text	hour	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons 6 days 07:00:00	interval
call	date_trunc	text	day	timestamp	2020-05-17 13:14:15.678901	2020-05-17 00:00:00	timestamp without time zone
call	date_trunc	text	day	timestamp	1999-12-31 23:59:59.999999	1999-12-31 00:00:00	timestamp without time zone
call	date_trunc	text	day	timestamp	0044-03-15 12:00:00 BC	0044-03-15 00:00:00 BC	timestamp without time zone
call	date_trunc	text	day	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	day	timestamp	2021-01-03 05:06:07	2021-01-03 00:00:00	timestamp without time zone
call	date_trunc	text	day	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons 6 days	interval
call	date_trunc	text	week	timestamp	2020-05-17 13:14:15.678901	2020-05-11 00:00:00	timestamp without time zone
call	date_trunc	text	week	timestamp	1999-12-31 23:59:59.999999	1999-12-27 00:00:00	timestamp without time zone
call	date_trunc	text	week	timestamp	0044-03-15 12:00:00 BC	0044-03-11 00:00:00 BC	timestamp without time zone
call	date_trunc	text	week	timestamp	2000-01-01 00:00:00	1999-12-27 00:00:00	timestamp without time zone
call	date_trunc	text	week	timestamp	2021-01-03 05:06:07	2020-12-28 00:00:00	timestamp without time zone
call	date_trunc	text	month	timestamp	2020-05-17 13:14:15.678901	2020-05-01 00:00:00	timestamp without time zone
call	date_trunc	text	month	timestamp	1999-12-31 23:59:59.999999	1999-12-01 00:00:00	timestamp without time zone
call	date_trunc	text	month	timestamp	0044-03-15 12:00:00 BC	0044-03-01 00:00:00 BC	timestamp without time zone
call	date_trunc	text	month	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	month	timestamp	2021-01-03 05:06:07	2021-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	month	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 5 mons	interval
call	date_trunc	text	quarter	timestamp	2020-05-17 13:14:15.678901	2020-04-01 00:00:00	timestamp without time zone
call	date_trunc	text	quarter	timestamp	1999-12-31 23:59:59.999999	1999-10-01 00:00:00	timestamp without time zone
call	date_trunc	text	quarter	timestamp	0044-03-15 12:00:00 BC	0044-01-01 00:00:00 BC	timestamp without time zone
call	date_trunc	text	quarter	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	quarter	timestamp	2021-01-03 05:06:07	2021-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	quarter	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years 3 mons	interval
call	date_trunc	text	year	timestamp	2020-05-17 13:14:15.678901	2020-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	year	timestamp	1999-12-31 23:59:59.999999	1999-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	year	timestamp	0044-03-15 12:00:00 BC	0044-01-01 00:00:00 BC	timestamp without time zone
call	date_trunc	text	year	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	year	timestamp	2021-01-03 05:06:07	2021-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	year	interval	1234 years 5 mons 6 days 07:08:09.123456	1234 years	interval
call	date_trunc	text	decade	timestamp	2020-05-17 13:14:15.678901	2020-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	decade	timestamp	1999-12-31 23:59:59.999999	1990-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	decade	timestamp	0044-03-15 12:00:00 BC	0051-01-01 00:00:00 BC	timestamp without time zone
call	date_trunc	text	decade	timestamp	2000-01-01 00:00:00	2000-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	decade	timestamp	2021-01-03 05:06:07	2020-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	decade	interval	1234 years 5 mons 6 days 07:08:09.123456	1230 years	interval
call	date_trunc	text	century	timestamp	2020-05-17 13:14:15.678901	2001-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	century	timestamp	1999-12-31 23:59:59.999999	1901-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	century	timestamp	0044-03-15 12:00:00 BC	0100-01-01 00:00:00 BC	timestamp without time zone
call	date_trunc	text	century	timestamp	2000-01-01 00:00:00	1901-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	century	timestamp	2021-01-03 05:06:07	2001-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	century	interval	1234 years 5 mons 6 days 07:08:09.123456	1200 years	interval
call	date_trunc	text	millennium	timestamp	2020-05-17 13:14:15.678901	2001-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	millennium	timestamp	1999-12-31 23:59:59.999999	1001-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	millennium	timestamp	0044-03-15 12:00:00 BC	1000-01-01 00:00:00 BC	timestamp without time zone
call	date_trunc	text	millennium	timestamp	2000-01-01 00:00:00	1001-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	millennium	timestamp	2021-01-03 05:06:07	2001-01-01 00:00:00	timestamp without time zone
call	date_trunc	text	millennium	interval	1234 years 5 mons 6 days 07:08:09.123456	1000 years	interval
call	date_trunc	text	day	timestamptz	2020-05-17 23:00-05	2020-05-18 00:00:00+00	timestamp with time zone
call	date_trunc	text	month	date	2020-05-17	2020-05-01 00:00:00+00	timestamp with time zone
call	date_trunc	text	foo	timestamp	2020-01-01	!22023 unit "foo" not recognized for type timestamp without time zone	-
call	date_trunc	text	dow	timestamp	2020-01-01	!22023 unit "dow" not recognized for type timestamp without time zone	-
call	date_trunc	unknown	month	date	2020-05-17	2020-05-01 00:00:00+00	timestamp with time zone
call	extract	text	microseconds	timestamp	2020-05-17 13:14:15.678901	15678901	numeric
call	extract	text	microseconds	timestamp	1999-12-31 23:59:59.999999	59999999	numeric
call	extract	text	microseconds	timestamp	0044-03-15 12:00:00 BC	0	numeric
call	extract	text	microseconds	timestamp	2000-01-01 00:00:00	0	numeric
call	extract	text	microseconds	timestamp	2021-01-03 05:06:07	7000000	numeric
call	date_part	text	microseconds	timestamp	2020-05-17 13:14:15.678901	15678901	double precision
call	extract	text	microseconds	date	2020-05-17	!0A000 unit "microseconds" not supported for type date	-
call	extract	text	microseconds	date	0044-03-15 BC	!0A000 unit "microseconds" not supported for type date	-
call	extract	text	microseconds	time	13:14:15.678901	15678901	numeric
call	extract	text	microseconds	interval	1234 years 5 mons 6 days 107:08:09.123456	9123456	numeric
call	extract	text	microseconds	interval	-1 year -5 mons 6 days -00:00:01.5	-1500000	numeric
call	extract	text	milliseconds	timestamp	2020-05-17 13:14:15.678901	15678.901	numeric
call	extract	text	milliseconds	timestamp	1999-12-31 23:59:59.999999	59999.999	numeric
call	extract	text	milliseconds	timestamp	0044-03-15 12:00:00 BC	0.000	numeric
call	extract	text	milliseconds	timestamp	2000-01-01 00:00:00	0.000	numeric
call	extract	text	milliseconds	timestamp	2021-01-03 05:06:07	7000.000	numeric
call	date_part	text	milliseconds	timestamp	2020-05-17 13:14:15.678901	15678.901	double precision
call	extract	text	milliseconds	date	2020-05-17	!0A000 unit "milliseconds" not supported for type date	-
call	extract	text	milliseconds	date	0044-03-15 BC	!0A000 unit "milliseconds" not supported for type date	-
call	extract	text	milliseconds	time	13:14:15.678901	15678.901	numeric
call	extract	text	milliseconds	interval	1234 years 5 mons 6 days 107:08:09.123456	9123.456	numeric
call	extract	text	milliseconds	interval	-1 year -5 mons 6 days -00:00:01.5	-1500.000	numeric
call	extract	text	second	timestamp	2020-05-17 13:14:15.678901	15.678901	numeric
call	extract	text	second	timestamp	1999-12-31 23:59:59.999999	59.999999	numeric
call	extract	text	second	timestamp	0044-03-15 12:00:00 BC	0.000000	numeric
call	extract	text	second	timestamp	2000-01-01 00:00:00	0.000000	numeric
call	extract	text	second	timestamp	2021-01-03 05:06:07	7.000000	numeric
call	date_part	text	second	timestamp	2020-05-17 13:14:15.678901	15.678901	double precision
call	extract	text	second	date	2020-05-17	!0A000 unit "second" not supported for type date	-
call	extract	text	second	date	0044-03-15 BC	!0A000 unit "second" not supported for type date	-
call	extract	text	second	time	13:14:15.678901	15.678901	numeric
call	extract	text	second	interval	1234 years 5 mons 6 days 107:08:09.123456	9.123456	numeric
call	extract	text	second	interval	-1 year -5 mons 6 days -00:00:01.5	-1.500000	numeric
call	extract	text	minute	timestamp	2020-05-17 13:14:15.678901	14	numeric
call	extract	text	minute	timestamp	1999-12-31 23:59:59.999999	59	numeric
call	extract	text	minute	timestamp	0044-03-15 12:00:00 BC	0	numeric
call	extract	text	minute	timestamp	2000-01-01 00:00:00	0	numeric
call	extract	text	minute	timestamp	2021-01-03 05:06:07	6	numeric
call	date_part	text	minute	timestamp	2020-05-17 13:14:15.678901	14	double precision
call	extract	text	minute	date	2020-05-17	!0A000 unit "minute" not supported for type date	-
call	extract	text	minute	date	0044-03-15 BC	!0A000 unit "minute" not supported for type date	-
call	extract	text	minute	time	13:14:15.678901	14	numeric
call	extract	text	minute	interval	1234 years 5 mons 6 days 107:08:09.123456	8	numeric
call	extract	text	minute	interval	-1 year -5 mons 6 days -00:00:01.5	0	numeric
call	extract	text	hour	timestamp	2020-05-17 13:14:15.678901	13	numeric
call	extract	text	hour	timestamp	1999-12-31 23:59:59.999999	23	numeric
call	extract	text	hour	timestamp	0044-03-15 12:00:00 BC	12	numeric
call	extract	text	hour	timestamp	2000-01-01 00:00:00	0	numeric
call	extract	text	hour	timestamp	2021-01-03 05:06:07	5	numeric
call	date_part	text	hour	timestamp	2020-05-17 13:14:15.678901	13	double precision
call	extract	text	hour	date	2020-05-17	!0A000 unit "hour" not supported for type date	-
call	extract	text	hour	date	0044-03-15 BC	!0A000 unit "hour" not supported for type date	-
call	extract	text	hour	time	13:14:15.678901	13	numeric
call	extract	text	hour	interval	1234 years 5 mons 6 days 107:08:09.123456	107	numeric
call	extract	text	hour	interval	-1 year -5 mons 6 days -00:00:01.5	0	numeric
call	extract	text	day	timestamp	2020-05-17 13:14:15.678901	17	numeric
call	extract	text	day	timestamp	1999-12-31 23:59:59.999999	31	numeric
call	extract	text	day	timestamp	0044-03-15 12:00:00 BC	15	numeric
call	extract	text	day	timestamp	2000-01-01 00:00:00	1	numeric
call	extract	text	day	timestamp	2021-01-03 05:06:07	3	numeric
call	date_part	text	day	timestamp	2020-05-17 13:14:15.678901	17	double precision
call	extract	text	day	date	2020-05-17	17	numeric
call	extract	text	day	date	0044-03-15 BC	15	numeric
call	extract	text	day	time	13:14:15.678901	!0A000 unit "day" not supported for type time without time zone	-
call	extract	text	day	interval	1234 years 5 mons 6 days 107:08:09.123456	6	numeric
call	extract	text	day	interval	-1 year -5 mons 6 days -00:00:01.5	6	numeric
call	extract	text	week	timestamp	2020-05-17 13:14:15.678901	20	numeric
call	extract	text	week	timestamp	1999-12-31 23:59:59.999999	52	numeric
call	extract	text	week	timestamp	0044-03-15 12:00:00 BC	11	numeric
call	extract	text	week	timestamp	2000-01-01 00:00:00	52	numeric
call	extract	text	week	timestamp	2021-01-03 05:06:07	53	numeric
call	date_part	text	week	timestamp	2020-05-17 13:14:15.678901	20	double precision
call	extract	text	week	date	2020-05-17	20	numeric
call	extract	text	week	date	0044-03-15 BC	11	numeric
call	extract	text	week	time	13:14:15.678901	!0A000 unit "week" not supported for type time without time zone	-
call	extract	text	week	interval	1234 years 5 mons 6 days 107:08:09.123456	!0A000 unit "week" not supported for type interval	-
call	extract	text	week	interval	-1 year -5 mons 6 days -00:00:01.5	!0A000 unit "week" not supported for type interval	-
call	extract	text	month	timestamp	2020-05-17 13:14:15.678901	5	numeric
call	extract	text	month	timestamp	1999-12-31 23:59:59.999999	12	numeric
call	extract	text	month	timestamp	0044-03-15 12:00:00 BC	3	numeric
call	extract	text	month	timestamp	2000-01-01 00:00:00	1	numeric
call	extract	text	month	timestamp	2021-01-03 05:06:07	1	numeric
call	date_part	text	month	timestamp	2020-05-17 13:14:15.678901	5	double precision
call	extract	text	month	date	2020-05-17	5	numeric
call	extract	text	month	date	0044-03-15 BC	3	numeric
call	extract	text	month	time	13:14:15.678901	!0A000 unit "month" not supported for type time without time zone	-
call	extract	text	month	interval	1234 years 5 mons 6 days 107:08:09.123456	5	numeric
call	extract	text	month	interval	-1 year -5 mons 6 days -00:00:01.5	-5	numeric
call	extract	text	quarter	timestamp	2020-05-17 13:14:15.678901	2	numeric
call	extract	text	quarter	timestamp	1999-12-31 23:59:59.999999	4	numeric
call	extract	text	quarter	timestamp	0044-03-15 12:00:00 BC	1	numeric
call	extract	text	quarter	timestamp	2000-01-01 00:00:00	1	numeric
call	extract	text	quarter	timestamp	2021-01-03 05:06:07	1	numeric
call	date_part	text	quarter	timestamp	2020-05-17 13:14:15.678901	2	double precision
call	extract	text	quarter	date	2020-05-17	2	numeric
call	extract	text	quarter	date	0044-03-15 BC	1	numeric
call	extract	text	quarter	time	13:14:15.678901	!0A000 unit "quarter" not supported for type time without time zone	-
call	extract	text	quarter	interval	1234 years 5 mons 6 days 107:08:09.123456	2	numeric
call	extract	text	quarter	interval	-1 year -5 mons 6 days -00:00:01.5	0	numeric
call	extract	text	year	timestamp	2020-05-17 13:14:15.678901	2020	numeric
call	extract	text	year	timestamp	1999-12-31 23:59:59.999999	1999	numeric
call	extract	text	year	timestamp	0044-03-15 12:00:00 BC	-44	numeric
call	extract	text	year	timestamp	2000-01-01 00:00:00	2000	numeric
call	extract	text	year	timestamp	2021-01-03 05:06:07	2021	numeric
call	date_part	text	year	timestamp	2020-05-17 13:14:15.678901	2020	double precision
call	extract	text	year	date	2020-05-17	2020	numeric
call	extract	text	year	date	0044-03-15 BC	-44	numeric
call	extract	text	year	time	13:14:15.678901	!0A000 unit "year" not supported for type time without time zone	-
call	extract	text	year	interval	1234 years 5 mons 6 days 107:08:09.123456	1234	numeric
call	extract	text	year	interval	-1 year -5 mons 6 days -00:00:01.5	-1	numeric
call	extract	text	decade	timestamp	2020-05-17 13:14:15.678901	202	numeric
call	extract	text	decade	timestamp	1999-12-31 23:59:59.999999	199	numeric
call	extract	text	decade	timestamp	0044-03-15 12:00:00 BC	-5	numeric
call	extract	text	decade	timestamp	2000-01-01 00:00:00	200	numeric
call	extract	text	decade	timestamp	2021-01-03 05:06:07	202	numeric
call	date_part	text	decade	timestamp	2020-05-17 13:14:15.678901	202	double precision
call	extract	text	decade	date	2020-05-17	202	numeric
call	extract	text	decade	date	0044-03-15 BC	-5	numeric
call	extract	text	decade	time	13:14:15.678901	!0A000 unit "decade" not supported for type time without time zone	-
call	extract	text	decade	interval	1234 years 5 mons 6 days 107:08:09.123456	123	numeric
call	extract	text	decade	interval	-1 year -5 mons 6 days -00:00:01.5	0	numeric
call	extract	text	century	timestamp	2020-05-17 13:14:15.678901	21	numeric
call	extract	text	century	timestamp	1999-12-31 23:59:59.999999	20	numeric
call	extract	text	century	timestamp	0044-03-15 12:00:00 BC	-1	numeric
call	extract	text	century	timestamp	2000-01-01 00:00:00	20	numeric
call	extract	text	century	timestamp	2021-01-03 05:06:07	21	numeric
call	date_part	text	century	timestamp	2020-05-17 13:14:15.678901	21	double precision
call	extract	text	century	date	2020-05-17	21	numeric
call	extract	text	century	date	0044-03-15 BC	-1	numeric
call	extract	text	century	time	13:14:15.678901	!0A000 unit "century" not supported for type time without time zone	-
call	extract	text	century	interval	1234 years 5 mons 6 days 107:08:09.123456	12	numeric
call	extract	text	century	interval	-1 year -5 mons 6 days -00:00:01.5	0	numeric
call	extract	text	millennium	timestamp	2020-05-17 13:14:15.678901	3	numeric
call	extract	text	millennium	timestamp	1999-12-31 23:59:59.999999	2	numeric
call	extract	text	millennium	timestamp	0044-03-15 12:00:00 BC	-1	numeric
call	extract	text	millennium	timestamp	2000-01-01 00:00:00	2	numeric
call	extract	text	millennium	timestamp	2021-01-03 05:06:07	3	numeric
call	date_part	text	millennium	timestamp	2020-05-17 13:14:15.678901	3	double precision
call	extract	text	millennium	date	2020-05-17	3	numeric
call	extract	text	millennium	date	0044-03-15 BC	-1	numeric
call	extract	text	millennium	time	13:14:15.678901	!0A000 unit "millennium" not supported for type time without time zone	-
call	extract	text	millennium	interval	1234 years 5 mons 6 days 107:08:09.123456	1	numeric
call	extract	text	millennium	interval	-1 year -5 mons 6 days -00:00:01.5	0	numeric
call	extract	text	dow	timestamp	2020-05-17 13:14:15.678901	0	numeric
call	extract	text	dow	timestamp	1999-12-31 23:59:59.999999	5	numeric
call	extract	text	dow	timestamp	0044-03-15 12:00:00 BC	5	numeric
call	extract	text	dow	timestamp	2000-01-01 00:00:00	6	numeric
call	extract	text	dow	timestamp	2021-01-03 05:06:07	0	numeric
call	date_part	text	dow	timestamp	2020-05-17 13:14:15.678901	0	double precision
call	extract	text	dow	date	2020-05-17	0	numeric
call	extract	text	dow	date	0044-03-15 BC	5	numeric
call	extract	text	dow	time	13:14:15.678901	!0A000 unit "dow" not supported for type time without time zone	-
call	extract	text	dow	interval	1234 years 5 mons 6 days 107:08:09.123456	!0A000 unit "dow" not supported for type interval	-
call	extract	text	dow	interval	-1 year -5 mons 6 days -00:00:01.5	!0A000 unit "dow" not supported for type interval	-
call	extract	text	isodow	timestamp	2020-05-17 13:14:15.678901	7	numeric
call	extract	text	isodow	timestamp	1999-12-31 23:59:59.999999	5	numeric
call	extract	text	isodow	timestamp	0044-03-15 12:00:00 BC	5	numeric
call	extract	text	isodow	timestamp	2000-01-01 00:00:00	6	numeric
call	extract	text	isodow	timestamp	2021-01-03 05:06:07	7	numeric
call	date_part	text	isodow	timestamp	2020-05-17 13:14:15.678901	7	double precision
call	extract	text	isodow	date	2020-05-17	7	numeric
call	extract	text	isodow	date	0044-03-15 BC	5	numeric
call	extract	text	isodow	time	13:14:15.678901	!0A000 unit "isodow" not supported for type time without time zone	-
call	extract	text	isodow	interval	1234 years 5 mons 6 days 107:08:09.123456	!0A000 unit "isodow" not supported for type interval	-
call	extract	text	isodow	interval	-1 year -5 mons 6 days -00:00:01.5	!0A000 unit "isodow" not supported for type interval	-
call	extract	text	doy	timestamp	2020-05-17 13:14:15.678901	138	numeric
call	extract	text	doy	timestamp	1999-12-31 23:59:59.999999	365	numeric
call	extract	text	doy	timestamp	0044-03-15 12:00:00 BC	74	numeric
call	extract	text	doy	timestamp	2000-01-01 00:00:00	1	numeric
call	extract	text	doy	timestamp	2021-01-03 05:06:07	3	numeric
call	date_part	text	doy	timestamp	2020-05-17 13:14:15.678901	138	double precision
call	extract	text	doy	date	2020-05-17	138	numeric
call	extract	text	doy	date	0044-03-15 BC	74	numeric
call	extract	text	doy	time	13:14:15.678901	!0A000 unit "doy" not supported for type time without time zone	-
call	extract	text	doy	interval	1234 years 5 mons 6 days 107:08:09.123456	!0A000 unit "doy" not supported for type interval	-
call	extract	text	doy	interval	-1 year -5 mons 6 days -00:00:01.5	!0A000 unit "doy" not supported for type interval	-
call	extract	text	isoyear	timestamp	2020-05-17 13:14:15.678901	2020	numeric
call	extract	text	isoyear	timestamp	1999-12-31 23:59:59.999999	1999	numeric
call	extract	text	isoyear	timestamp	0044-03-15 12:00:00 BC	-44	numeric
call	extract	text	isoyear	timestamp	2000-01-01 00:00:00	1999	numeric
call	extract	text	isoyear	timestamp	2021-01-03 05:06:07	2020	numeric
call	date_part	text	isoyear	timestamp	2020-05-17 13:14:15.678901	2020	double precision
call	extract	text	isoyear	date	2020-05-17	2020	numeric
call	extract	text	isoyear	date	0044-03-15 BC	-44	numeric
call	extract	text	isoyear	time	13:14:15.678901	!0A000 unit "isoyear" not supported for type time without time zone	-
call	extract	text	isoyear	interval	1234 years 5 mons 6 days 107:08:09.123456	!0A000 unit "isoyear" not supported for type interval	-
call	extract	text	isoyear	interval	-1 year -5 mons 6 days -00:00:01.5	!0A000 unit "isoyear" not supported for type interval	-
call	extract	text	epoch	timestamp	2020-05-17 13:14:15.678901	1589721255.678901	numeric
call	extract	text	epoch	timestamp	1999-12-31 23:59:59.999999	946684799.999999	numeric
call	extract	text	epoch	timestamp	0044-03-15 12:00:00 BC	-63517780800.000000	numeric
call	extract	text	epoch	timestamp	2000-01-01 00:00:00	946684800.000000	numeric
call	extract	text	epoch	timestamp	2021-01-03 05:06:07	1609650367.000000	numeric
call	date_part	text	epoch	timestamp	2020-05-17 13:14:15.678901	1589721255.678901	double precision
call	extract	text	epoch	date	2020-05-17	1589673600	numeric
call	extract	text	epoch	date	0044-03-15 BC	-63517824000	numeric
call	extract	text	epoch	time	13:14:15.678901	47655.678901	numeric
call	extract	text	epoch	interval	1234 years 5 mons 6 days 107:08:09.123456	38955942489.123456	numeric
call	extract	text	epoch	interval	-1 year -5 mons 6 days -00:00:01.5	-43999201.500000	numeric
call	extract	text	julian	date	2020-05-17	2458987	numeric
call	extract	text	epoch	timestamptz	2020-05-17 23:00-05	1589774400.000000	numeric
call	extract	text	timezone	timestamptz	2020-01-01	0	numeric
call	extract	text	foo	timestamptz	2020-01-01	!22023 unit "foo" not recognized for type timestamp with time zone	-
call	date_part	text	epoch	interval	1 day	86400	double precision
call	date_part	text	year	date	2020-05-17	2020	double precision
call	extract	text	julian	timestamp	2020-05-17 12:00	2458987.50000000000000000000	numeric
call	age	timestamp	2001-04-10	timestamp	1957-06-13	43 years 9 mons 27 days	interval
call	age	timestamp	1957-06-13	timestamp	2001-04-10	-43 years -9 mons -27 days	interval
call	age	timestamp	2020-03-01	timestamp	2020-02-29 12:00	12:00:00	interval
call	age	timestamp	2020-03-31	timestamp	2020-02-29	1 mon 2 days	interval
call	age	timestamp	2020-02-29	timestamp	2020-03-31	-1 mons -2 days	interval
call	age	timestamp	2020-01-01 10:00	timestamp	2020-01-01 11:00	-01:00:00	interval
call	age	timestamp	2021-03-01	timestamp	2020-01-31	1 year 1 mon 1 day	interval
call	age	timestamp	2020-05-30 01:00	timestamp	2020-01-31 02:00	3 mons 29 days 23:00:00	interval
call	age	timestamp	2020-01-31 02:00	timestamp	2020-05-30 01:00	-3 mons -29 days -23:00:00	interval
call	age	timestamptz	2001-04-10	timestamptz	1957-06-13	43 years 9 mons 27 days	interval
call	age	date	2001-04-10	date	1957-06-13	43 years 9 mons 27 days	interval
call	make_date	int4	2020	int4	2	int4	29	2020-02-29	date
call	make_date	int4	2019	int4	2	int4	29	!22008 date field value out of range: 2019-02-29	-
call	make_date	int4	-44	int4	3	int4	15	0044-03-15 BC	date
call	make_date	int4	0	int4	1	int4	1	!22008 date field value out of range: 0-01-01	-
call	to_timestamp	float8	0	1970-01-01 00:00:00+00	timestamp with time zone
call	to_timestamp	float8	1284352323.5	2010-09-13 04:32:03.5+00	timestamp with time zone
call	to_timestamp	float8	-1	1969-12-31 23:59:59+00	timestamp with time zone
call	to_timestamp	float8	1e20	!22008 timestamp out of range: "1e+20"	-
call	timezone	text	UTC	timestamp	2020-01-01 10:00	2020-01-01 10:00:00+00	timestamp with time zone
call	timezone	text	UTC	timestamptz	2020-01-01 10:00+02	2020-01-01 08:00:00	timestamp without time zone
call	timezone	text	nosuch	timestamptz	2020-01-01	!22023 time zone "nosuch" not recognized	-
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	YYYY-MM-DD HH24:MI:SS	2020-05-17 13:14:15	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	YYYY-MM-DD HH24:MI:SS	1999-12-31 23:59:59	text
call	to_char	timestamp	2000-01-01 00:00:00	text	YYYY-MM-DD HH24:MI:SS	2000-01-01 00:00:00	text
call	to_char	timestamp	2021-01-03 05:06:07	text	YYYY-MM-DD HH24:MI:SS	2021-01-03 05:06:07	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	DD Mon YYYY	17 May 2020	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	DD Mon YYYY	31 Dec 1999	text
call	to_char	timestamp	2000-01-01 00:00:00	text	DD Mon YYYY	01 Jan 2000	text
call	to_char	timestamp	2021-01-03 05:06:07	text	DD Mon YYYY	03 Jan 2021	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	FMMonth DD, YYYY	May 17, 2020	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	FMMonth DD, YYYY	December 31, 1999	text
call	to_char	timestamp	2000-01-01 00:00:00	text	FMMonth DD, YYYY	January 01, 2000	text
call	to_char	timestamp	2021-01-03 05:06:07	text	FMMonth DD, YYYY	January 03, 2021	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	Day, DD Month YYYY	Sunday   , 17 May       2020	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	Day, DD Month YYYY	Friday   , 31 December  1999	text
call	to_char	timestamp	2000-01-01 00:00:00	text	Day, DD Month YYYY	Saturday , 01 January   2000	text
call	to_char	timestamp	2021-01-03 05:06:07	text	Day, DD Month YYYY	Sunday   , 03 January   2021	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	HH12:MI AM	01:14 PM	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	HH12:MI AM	11:59 PM	text
call	to_char	timestamp	2000-01-01 00:00:00	text	HH12:MI AM	12:00 AM	text
call	to_char	timestamp	2021-01-03 05:06:07	text	HH12:MI AM	05:06 AM	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	HH:MI:SS.MS pm	01:14:15.678 pm	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	HH:MI:SS.MS pm	11:59:59.999 pm	text
call	to_char	timestamp	2000-01-01 00:00:00	text	HH:MI:SS.MS pm	12:00:00.000 am	text
call	to_char	timestamp	2021-01-03 05:06:07	text	HH:MI:SS.MS pm	05:06:07.000 am	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	US	678901	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	US	999999	text
call	to_char	timestamp	2000-01-01 00:00:00	text	US	000000	text
call	to_char	timestamp	2021-01-03 05:06:07	text	US	000000	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	Dy DY dy	Sun SUN sun	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	Dy DY dy	Fri FRI fri	text
call	to_char	timestamp	2000-01-01 00:00:00	text	Dy DY dy	Sat SAT sat	text
call	to_char	timestamp	2021-01-03 05:06:07	text	Dy DY dy	Sun SUN sun	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	FMDD/FMMM/YY	17/5/20	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	FMDD/FMMM/YY	31/12/99	text
call	to_char	timestamp	2000-01-01 00:00:00	text	FMDD/FMMM/YY	1/1/00	text
call	to_char	timestamp	2021-01-03 05:06:07	text	FMDD/FMMM/YY	3/1/21	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	Q IYYY-IW ID D DDD	2 2020-20 7 1 138	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	Q IYYY-IW ID D DDD	4 1999-52 5 6 365	text
call	to_char	timestamp	2000-01-01 00:00:00	text	Q IYYY-IW ID D DDD	1 1999-52 6 7 001	text
call	to_char	timestamp	2021-01-03 05:06:07	text	Q IYYY-IW ID D DDD	1 2020-53 7 1 003	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	"Year:" YYYY	Year: 2020	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	"Year:" YYYY	Year: 1999	text
call	to_char	timestamp	2000-01-01 00:00:00	text	"Year:" YYYY	Year: 2000	text
call	to_char	timestamp	2021-01-03 05:06:07	text	"Year:" YYYY	Year: 2021	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	MONTH|MON|mon	MAY      |MAY|may	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	MONTH|MON|mon	DECEMBER |DEC|dec	text
call	to_char	timestamp	2000-01-01 00:00:00	text	MONTH|MON|mon	JANUARY  |JAN|jan	text
call	to_char	timestamp	2021-01-03 05:06:07	text	MONTH|MON|mon	JANUARY  |JAN|jan	text
call	to_char	timestamp	2020-05-17 13:14:15.678901	text	FMDay	Sunday	text
call	to_char	timestamp	1999-12-31 23:59:59.999999	text	FMDay	Friday	text
call	to_char	timestamp	2000-01-01 00:00:00	text	FMDay	Saturday	text
call	to_char	timestamp	2021-01-03 05:06:07	text	FMDay	Sunday	text
call	array_length	int4[]	{1,2,3}	int4	1	3	integer
call	array_length	int4[]	{1,2}	int4	2	NULL	integer
call	array_length	int4[]	{}	int4	1	NULL	integer
call	cardinality	text[]	{a,b}	2	integer
call	cardinality	text[]	{}	0	integer
call	array_position	text[]	{a,b,c}	text	b	2	integer
call	array_position	text[]	{a}	text	z	NULL	integer
call	array_position	int4[]	{1,2,3}	int4	3	3	integer
call	array_position	text[]	{a,b,c}	unknown	b	2	integer
call	array_append	int4[]	{1}	int4	2	{1,2}	integer[]
call	array_cat	int4[]	{1}	int4[]	{2,3}	{1,2,3}	integer[]
call	array_remove	int4[]	{1,2,1}	int4	1	{2}	integer[]
call	array_upper	int4[]	{1,2,3}	int4	1	3	integer
call	cardinality	int4	1	!42883 function cardinality(integer) does not exist	-
call	format_type	oid	23	int4	-1	integer	text
call	format_type	oid	1043	int4	14	character varying(10)	text
call	format_type	oid	1700	int4	786438	numeric(12,2)	text
call	format_type	oid	1042	int4	-1	bpchar	text
call	format_type	oid	1042	int4	9	character(5)	text
call	format_type	oid	1015	int4	14	character varying(10)[]	text
call	format_type	oid	99999999	int4	-1	???	text
call	format_type	oid	0	int4	-1	-	text
call	format_type	oid	1184	int4	3	timestamp(3) with time zone	text
call	format_type	oid	1114	int4	-1	timestamp without time zone	text
call	position	text	hello	text	l	3	integer
aggregate	count	int2	1	2	NULL	2	bigint
aggregate	count	int4	1	2	2147483647	3	bigint
aggregate	count	int4	0	bigint
aggregate	count	int4	NULL	0	bigint
aggregate	count	int8	9223372036854775807	1	2	bigint
aggregate	count	float8	0.1	0.2	0.3	3	bigint
aggregate	count	float4	1.1	2.2	2	bigint
aggregate	count	numeric	1.50	2	3.333	3	bigint
aggregate	count	interval	1 day	1 mon 02:00	2	bigint
aggregate	count	numeric	NaN	1	2	bigint
aggregate	count	text	b	a	C	3	bigint
aggregate	count	date	2020-01-01	2019-01-01	2	bigint
aggregate	count	numeric	1	1	2	3	bigint
aggregate	count	bool	t	f	2	bigint
aggregate	count	varchar(3)	b	a	2	bigint
aggregate	count	timestamptz	2020-01-01	2021-01-01	2	bigint
aggregate	count	time	10:00	11:00	2	bigint
aggregate	count	int4[]	{1,2}	{1,1}	2	bigint
aggregate	count	char(3)	b	a	2	bigint
aggregate	count	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	1	bigint
aggregate	sum	int2	1	2	NULL	3	bigint
aggregate	sum	int4	1	2	2147483647	2147483650	bigint
aggregate	sum	int4	NULL	bigint
aggregate	sum	int4	NULL	NULL	bigint
aggregate	sum	int8	9223372036854775807	1	9223372036854775808	numeric
aggregate	sum	float8	0.1	0.2	0.3	0.6000000000000001	double precision
aggregate	sum	float4	1.1	2.2	3.3000002	real
aggregate	sum	numeric	1.50	2	3.333	6.833	numeric
aggregate	sum	interval	1 day	1 mon 02:00	1 mon 1 day 02:00:00	interval
aggregate	sum	numeric	NaN	1	NaN	numeric
aggregate	sum	text	b	a	C	!42883 function sum(text) does not exist	-
aggregate	sum	date	2020-01-01	2019-01-01	!42883 function sum(date) does not exist	-
aggregate	sum	numeric	1	1	2	4	numeric
aggregate	sum	bool	t	f	!42883 function sum(boolean) does not exist	-
aggregate	sum	varchar(3)	b	a	!42883 function sum(character varying) does not exist	-
aggregate	sum	timestamptz	2020-01-01	2021-01-01	!42883 function sum(timestamp with time zone) does not exist	-
aggregate	sum	time	10:00	11:00	21:00:00	interval
aggregate	sum	int4[]	{1,2}	{1,1}	!42883 function sum(integer[]) does not exist	-
aggregate	sum	char(3)	b	a	!42883 function sum(character) does not exist	-
aggregate	sum	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	!42883 function sum(uuid) does not exist	-
aggregate	avg	int2	1	2	NULL	1.5000000000000000	numeric
aggregate	avg	int4	1	2	2147483647	715827883.33333333	numeric
aggregate	avg	int4	NULL	numeric
aggregate	avg	int4	NULL	NULL	numeric
aggregate	avg	int8	9223372036854775807	1	4611686018427387904	numeric
aggregate	avg	float8	0.1	0.2	0.3	0.20000000000000004	double precision
aggregate	avg	float4	1.1	2.2	1.6500000357627869	double precision
aggregate	avg	numeric	1.50	2	3.333	2.2776666666666667	numeric
aggregate	avg	interval	1 day	1 mon 02:00	15 days 13:00:00	interval
aggregate	avg	numeric	NaN	1	NaN	numeric
aggregate	avg	text	b	a	C	!42883 function avg(text) does not exist	-
aggregate	avg	date	2020-01-01	2019-01-01	!42883 function avg(date) does not exist	-
aggregate	avg	numeric	1	1	2	1.3333333333333333	numeric
aggregate	avg	bool	t	f	!42883 function avg(boolean) does not exist	-
aggregate	avg	varchar(3)	b	a	!42883 function avg(character varying) does not exist	-
aggregate	avg	timestamptz	2020-01-01	2021-01-01	!42883 function avg(timestamp with time zone) does not exist	-
aggregate	avg	time	10:00	11:00	10:30:00	interval
aggregate	avg	int4[]	{1,2}	{1,1}	!42883 function avg(integer[]) does not exist	-
aggregate	avg	char(3)	b	a	!42883 function avg(character) does not exist	-
aggregate	avg	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	!42883 function avg(uuid) does not exist	-
aggregate	min	int2	1	2	NULL	1	smallint
aggregate	min	int4	1	2	2147483647	1	integer
aggregate	min	int4	NULL	integer
aggregate	min	int4	NULL	NULL	integer
aggregate	min	int8	9223372036854775807	1	1	bigint
aggregate	min	float8	0.1	0.2	0.3	0.1	double precision
aggregate	min	float4	1.1	2.2	1.1	real
aggregate	min	numeric	1.50	2	3.333	1.50	numeric
aggregate	min	interval	1 day	1 mon 02:00	1 day	interval
aggregate	min	numeric	NaN	1	1	numeric
aggregate	min	text	b	a	C	C	text
aggregate	min	date	2020-01-01	2019-01-01	2019-01-01	date
aggregate	min	numeric	1	1	2	1	numeric
aggregate	min	bool	t	f	!42883 function min(boolean) does not exist	-
aggregate	min	varchar(3)	b	a	a	text
aggregate	min	timestamptz	2020-01-01	2021-01-01	2020-01-01 00:00:00+00	timestamp with time zone
aggregate	min	time	10:00	11:00	10:00:00	time without time zone
aggregate	min	int4[]	{1,2}	{1,1}	{1,1}	integer[]
aggregate	min	char(3)	b	a	a \s	character
aggregate	min	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	!42883 function min(uuid) does not exist	-
aggregate	max	int2	1	2	NULL	2	smallint
aggregate	max	int4	1	2	2147483647	2147483647	integer
aggregate	max	int4	NULL	integer
aggregate	max	int4	NULL	NULL	integer
aggregate	max	int8	9223372036854775807	1	9223372036854775807	bigint
aggregate	max	float8	0.1	0.2	0.3	0.3	double precision
aggregate	max	float4	1.1	2.2	2.2	real
aggregate	max	numeric	1.50	2	3.333	3.333	numeric
aggregate	max	interval	1 day	1 mon 02:00	1 mon 02:00:00	interval
aggregate	max	numeric	NaN	1	NaN	numeric
aggregate	max	text	b	a	C	b	text
aggregate	max	date	2020-01-01	2019-01-01	2020-01-01	date
aggregate	max	numeric	1	1	2	2	numeric
aggregate	max	bool	t	f	!42883 function max(boolean) does not exist	-
aggregate	max	varchar(3)	b	a	b	text
aggregate	max	timestamptz	2020-01-01	2021-01-01	2021-01-01 00:00:00+00	timestamp with time zone
aggregate	max	time	10:00	11:00	11:00:00	time without time zone
aggregate	max	int4[]	{1,2}	{1,1}	{1,2}	integer[]
aggregate	max	char(3)	b	a	b \s	character
aggregate	max	uuid	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	!42883 function max(uuid) does not exist	-
aggregate	bool_and	bool	t	f	f	boolean
aggregate	bool_and	bool	t	NULL	t	boolean
aggregate	bool_and	bool	NULL	boolean
aggregate	bool_and	int4	1	!42883 function bool_and(integer) does not exist	-
aggregate	bool_or	bool	t	f	t	boolean
aggregate	bool_or	bool	t	NULL	t	boolean
aggregate	bool_or	bool	NULL	boolean
aggregate	bool_or	int4	1	!42883 function bool_or(integer) does not exist	-
aggregate	every	bool	t	f	f	boolean
aggregate	every	bool	t	NULL	t	boolean
aggregate	every	bool	NULL	boolean
aggregate	every	int4	1	!42883 function every(integer) does not exist	-
aggregate	array_agg	int4	1	NULL	2	{1,NULL,2}	integer[]
aggregate	array_agg	text	NULL	text[]
aggregate	array_agg	varchar(3)	a	{a}	character varying[]"####;
