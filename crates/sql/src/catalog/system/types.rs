//! Tables of types, and of the functions and operator classes that go with them: `pg_type`, `pg_proc`, `pg_opclass`.

use super::{BTREE, OWNER, PG_CATALOG, System, number, text, truth};
use crate::types::functions::{Numbered, function_number, numbered};
use crate::types::{BaseType, Datum, OTHERS, Other, SqlType};

/// All types by their names in `pg_type`.
pub(crate) const TYPES: &[(&str, SqlType)] = &[
    ("bool", SqlType::BOOL),
    ("bytea", SqlType::BYTEA),
    ("name", SqlType::NAME),
    ("int8", SqlType::INT8),
    ("int2", SqlType::INT2),
    ("int4", SqlType::INT4),
    ("text", SqlType::TEXT),
    ("oid", SqlType::OID),
    ("json", SqlType::JSON),
    ("float4", SqlType::FLOAT4),
    ("float8", SqlType::FLOAT8),
    ("bpchar", SqlType::of(BaseType::Char)),
    ("varchar", SqlType::VARCHAR),
    ("date", SqlType::DATE),
    ("time", SqlType::TIME),
    ("timestamp", SqlType::TIMESTAMP),
    ("timestamptz", SqlType::TIMESTAMPTZ),
    ("interval", SqlType::INTERVAL),
    ("numeric", SqlType::NUMERIC),
    ("uuid", SqlType::UUID),
    ("inet", SqlType::INET),
    ("cidr", SqlType::CIDR),
    ("jsonb", SqlType::JSONB),
    ("unknown", SqlType::UNKNOWN),
];

/// The numbers of all types that `pg_type` has.
pub(crate) fn type_numbers() -> Vec<u32> {
    let (rows, _) = pg_type();
    let numbers = rows.iter().filter_map(|row| match row.first() {
        Some(Datum::Int(number)) => u32::try_from(*number).ok(),
        _ => None,
    });
    numbers.collect()
}

/// What a row of `pg_type` says besides names of functions.
struct Listed {
    oid: u32,
    name: String,
    size: i16,
    kind: &'static str,
    category: String,
    preferred: bool,
    element: u32,
    array: u32,
    /// Input, output, receive, send, modifier input and output, analyze.
    functions: [String; 7],
}

impl Listed {
    fn row(self) -> Vec<Datum> {
        let mut row = vec![
            number(self.oid),
            text(self.name),
            number(PG_CATALOG),
            number(OWNER),
            number(self.size),
            truth(matches!(self.size, 1 | 2 | 4 | 8)),
            text(self.kind),
            text(self.category),
            truth(self.preferred),
            truth(true),
            text(","),
            number(0),
            number(self.element),
            number(self.array),
            number(0),
            number(-1),
            number(0),
            truth(false),
            number(0),
        ];
        row.extend(self.functions.map(|name| number(function_number(&name).unwrap_or_default())));
        row
    }
}

pub(super) fn pg_type() -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("typname", SqlType::NAME),
        ("typnamespace", SqlType::OID),
        ("typowner", SqlType::OID),
        ("typlen", SqlType::INT2),
        ("typbyval", SqlType::BOOL),
        ("typtype", SqlType::TEXT),
        ("typcategory", SqlType::TEXT),
        ("typispreferred", SqlType::BOOL),
        ("typisdefined", SqlType::BOOL),
        ("typdelim", SqlType::TEXT),
        ("typrelid", SqlType::OID),
        ("typelem", SqlType::OID),
        ("typarray", SqlType::OID),
        ("typbasetype", SqlType::OID),
        ("typtypmod", SqlType::INT4),
        ("typndims", SqlType::INT4),
        ("typnotnull", SqlType::BOOL),
        ("typcollation", SqlType::OID),
        ("typinput", SqlType::REGPROC),
        ("typoutput", SqlType::REGPROC),
        ("typreceive", SqlType::REGPROC),
        ("typsend", SqlType::REGPROC),
        ("typmodin", SqlType::REGPROC),
        ("typmodout", SqlType::REGPROC),
        ("typanalyze", SqlType::REGPROC),
    ];
    let mut rows = Vec::new();
    for (name, data_type) in TYPES {
        let array = if data_type.is_unknown() { 0 } else { data_type.array_of().oid() };
        rows.push(plain(name, *data_type, array).row());
        if array != 0 {
            rows.push(array_of(name, data_type.oid(), array, modifier_functions(name)).row());
        }
    }
    for other in OTHERS {
        rows.push(listed(other).row());
        if other.array != 0 {
            rows.push(array_of(other.name, other.oid, other.array, no_modifier()).row());
        }
    }
    (rows, columns)
}

/// A type that values have.
fn plain(name: &'static str, data_type: SqlType, array: u32) -> Listed {
    let has_underscore = matches!(
        name,
        "json"
            | "jsonb"
            | "date"
            | "time"
            | "timestamp"
            | "timestamptz"
            | "interval"
            | "numeric"
            | "uuid"
            | "inet"
            | "cidr"
    );
    // A name is made of letters.
    let element = if data_type.is_same(SqlType::NAME) { 18 } else { 0 };
    Listed {
        oid: data_type.oid(),
        name: name.to_owned(),
        size: data_type.size(),
        kind: if data_type.is_unknown() { "p" } else { "b" },
        category: data_type.category().to_string(),
        preferred: data_type.is_preferred(),
        element,
        array,
        functions: functions(name, has_underscore, modifier_functions(name)),
    }
}

fn listed(other: &'static Other) -> Listed {
    Listed {
        oid: other.oid,
        name: other.name.to_owned(),
        size: other.size,
        kind: other.kind,
        category: other.category.to_owned(),
        preferred: false,
        element: other.element,
        array: other.array,
        functions: functions(other.name, other.kind == "p", no_modifier()),
    }
}

/// The type of arrays of another one.
fn array_of(name: &str, element: u32, oid: u32, [modifier_input, modifier_output]: [String; 2]) -> Listed {
    let [input, output, receive, send] = ["in", "out", "recv", "send"].map(|way| format!("array_{way}"));
    // An array of what stands for others does so, too.
    let (kind, category) = if name == "record" { ("p", "P") } else { ("b", "A") };
    Listed {
        oid,
        name: format!("_{name}"),
        size: -1,
        kind,
        category: category.to_owned(),
        preferred: false,
        element,
        array: 0,
        functions: [
            input,
            output,
            receive,
            send,
            modifier_input,
            modifier_output,
            "array_typanalyze".to_owned(),
        ],
    }
}

/// Names as PostgreSQL's functions of a type have them.
fn functions(
    name: &str,
    has_underscore: bool,
    [modifier_input, modifier_output]: [String; 2],
) -> [String; 7] {
    let between = if has_underscore { "_" } else { "" };
    let [input, output, receive, send] =
        ["in", "out", "recv", "send"].map(|way| format!("{name}{between}{way}"));
    [input, output, receive, send, modifier_input, modifier_output, "-".to_owned()]
}

fn modifier_functions(name: &str) -> [String; 2] {
    let has_modifier =
        matches!(name, "bpchar" | "varchar" | "time" | "timestamp" | "timestamptz" | "interval" | "numeric");
    if has_modifier { ["in", "out"].map(|way| format!("{name}typmod{way}")) } else { no_modifier() }
}

fn no_modifier() -> [String; 2] {
    ["-", "-"].map(str::to_owned)
}

/// The number of the language of PostgreSQL's own functions.
const INTERNAL_LANGUAGE: u32 = 12;

/// The functions that have numbers.
pub(super) fn pg_proc() -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("proname", SqlType::NAME),
        ("pronamespace", SqlType::OID),
        ("proowner", SqlType::OID),
        ("prolang", SqlType::OID),
        ("procost", SqlType::FLOAT4),
        ("prorows", SqlType::FLOAT4),
        ("provariadic", SqlType::OID),
        ("prokind", SqlType::TEXT),
        ("prosecdef", SqlType::BOOL),
        ("proleakproof", SqlType::BOOL),
        ("proisstrict", SqlType::BOOL),
        ("proretset", SqlType::BOOL),
        ("provolatile", SqlType::TEXT),
        ("proparallel", SqlType::TEXT),
        ("pronargs", SqlType::INT2),
        ("pronargdefaults", SqlType::INT2),
        ("prorettype", SqlType::OID),
        ("proargtypes", SqlType::OID.vector_of()),
        ("proallargtypes", SqlType::OID.array_of()),
        ("proargmodes", SqlType::TEXT.array_of()),
        ("proargnames", SqlType::TEXT.array_of()),
        ("prosrc", SqlType::TEXT),
        ("probin", SqlType::TEXT),
        ("proconfig", SqlType::TEXT.array_of()),
        ("proacl", SqlType::TEXT.array_of()),
    ];
    (numbered().map(procedure).collect(), columns)
}

fn procedure(function: Numbered) -> Vec<Datum> {
    let arguments: Vec<Datum> = function.arguments().map(number).collect();
    vec![
        number(function.number),
        text(function.name),
        number(PG_CATALOG),
        number(OWNER),
        number(INTERNAL_LANGUAGE),
        Datum::Float(1.0),
        Datum::Float(f64::from(function.rows)),
        number(0),
        text("f"),
        truth(false),
        truth(false),
        truth(function.is_strict()),
        truth(function.rows > 0),
        text(function.volatility()),
        text(function.parallel()),
        number(arguments.len() as i64),
        number(function.defaults),
        number(function.result),
        Datum::Array(arguments),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        text(function.source()),
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]
}

/// The operator classes of B-trees: number, name, family, and the number of the type.
const OPERATOR_CLASSES: &[(u32, &str, u32, u32)] = &[
    (1978, "int4_ops", 1976, 23),
    (1979, "int2_ops", 1976, 21),
    (1981, "oid_ops", 1989, 26),
    (3122, "date_ops", 434, 1082),
    (3123, "float8_ops", 1970, 701),
    (3124, "int8_ops", 1976, 20),
    (3125, "numeric_ops", 1988, 1700),
    (3126, "text_ops", 1994, 25),
    (3127, "timestamptz_ops", 434, 1184),
    (3128, "timestamp_ops", 434, 1114),
    (10000, "array_ops", 397, 2277),
    (10003, "bool_ops", 424, 16),
    (10004, "bpchar_ops", 426, 1042),
    (10006, "bytea_ops", 428, 17),
    (10015, "inet_ops", 1974, 869),
    (10012, "float4_ops", 1970, 700),
    (10022, "interval_ops", 1982, 1186),
    (10028, "name_ops", 1994, 19),
    (10038, "time_ops", 1996, 1083),
    (10065, "uuid_ops", 2968, 2950),
    (10088, "jsonb_ops", 4033, 3802),
];

/// The number of the operator class that an index on a column of a type has.
pub(super) fn operator_class(data_type: SqlType) -> u32 {
    let name = match data_type.base {
        _ if data_type.array => "array_ops",
        BaseType::Varchar => "text_ops",
        BaseType::Cidr => "inet_ops",
        _ => {
            let number = data_type.oid();
            let found = OPERATOR_CLASSES.iter().find(|(.., input)| *input == number);
            return found.map_or(0, |(class, ..)| *class);
        }
    };
    OPERATOR_CLASSES.iter().find(|(_, known, ..)| *known == name).map_or(0, |(class, ..)| *class)
}

/// The numbers of the operator classes.
pub(crate) fn operator_class_numbers() -> Vec<u32> {
    OPERATOR_CLASSES.iter().map(|(class, ..)| *class).collect()
}

pub(super) fn pg_opclass() -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("opcmethod", SqlType::OID),
        ("opcname", SqlType::NAME),
        ("opcnamespace", SqlType::OID),
        ("opcowner", SqlType::OID),
        ("opcfamily", SqlType::OID),
        ("opcintype", SqlType::OID),
        ("opcdefault", SqlType::BOOL),
        ("opckeytype", SqlType::OID),
    ];
    let row = |(class, name, family, input): &(u32, &str, u32, u32)| {
        // A name is kept as a text in an index.
        let kept = if *name == "name_ops" { 2275 } else { 0 };
        vec![
            number(*class),
            number(BTREE),
            text(*name),
            number(PG_CATALOG),
            number(OWNER),
            number(*family),
            number(*input),
            truth(true),
            number(kept),
        ]
    };
    (OPERATOR_CLASSES.iter().map(row).collect(), columns)
}
