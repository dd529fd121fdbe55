//! How long a unit of work takes in each function, operator and cast, with long and with adverse arguments: what decides how long a statement
//! may go on counts work and not time, so a unit must be worth about as much everywhere.
//!
//! `cargo bench --package ordain-sql --bench work`, or with a part of a name `-- json` for all that was measured of those.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark reads a clock and prints"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use ordain_sql::types::functions::{self, CallContext, Function, FunctionId};
use ordain_sql::types::operators::{self, BinaryOperator};
use ordain_sql::types::{Datum, SqlType, Zone, cast, text};

/// Work that is tried: more is refused or would take long here.
const WORK_MAX: u64 = 500_000;

/// What took less says nothing, in nanoseconds.
const SHORT: f64 = 100_000.0;

/// What takes longer is told at once, in nanoseconds.
const LONG: f64 = 1e9;

/// Most combinations of arguments of a function.
const COMBINATIONS_MAX: usize = 100;

/// What the worst case of a name was.
struct Worst {
    nanoseconds_per_unit: f64,
    milliseconds: f64,
    work: u64,
    result: u64,
    with: String,
}

#[derive(Default)]
struct Report(BTreeMap<String, Worst>);

impl Report {
    /// Measures a call that counts so much work before it is made, and so much more after it.
    fn measure(
        &mut self,
        name: &str,
        arguments: &[&Datum],
        before: u64,
        call: impl FnOnce() -> (Option<Datum>, u64),
    ) {
        if before > WORK_MAX {
            return;
        }
        let begun = Instant::now();
        let (result, after) = call();
        let nanoseconds = begun.elapsed().as_nanos() as f64;
        if nanoseconds > LONG {
            let told = arguments.iter().map(|argument| brief(argument)).collect::<Vec<_>>().join(", ");
            eprintln!("{:.1} s for {before} units: {name}({told})", nanoseconds / 1e9);
        }
        let result = result.as_ref().map_or(0, functions::length);
        // What is made is copied.
        let work = 1 + before + after + result / 32;
        let worst = Worst {
            nanoseconds_per_unit: nanoseconds / work as f64,
            milliseconds: nanoseconds / 1e6,
            work,
            result,
            with: arguments.iter().map(|argument| brief(argument)).collect::<Vec<_>>().join(", "),
        };
        let is_worse =
            |other: &Worst| nanoseconds > SHORT && worst.nanoseconds_per_unit > other.nanoseconds_per_unit;
        if self.0.get(name).map_or(nanoseconds > SHORT, is_worse) {
            self.0.insert(name.to_owned(), worst);
        }
    }

    fn print(self, part: &str) {
        let mut all: Vec<_> = self.0.into_iter().filter(|(name, _)| name.contains(part)).collect();
        all.sort_by(|(_, one), (_, other)| other.nanoseconds_per_unit.total_cmp(&one.nanoseconds_per_unit));
        println!("ns/unit      ms       units    result  what");
        for (name, Worst { nanoseconds_per_unit, milliseconds, work, result, with }) in all {
            println!("{nanoseconds_per_unit:7.1} {milliseconds:7.1} {work:11} {result:9}  {name}({with})");
        }
    }
}

fn brief(value: &Datum) -> String {
    let written = match value {
        Datum::Array(values) => {
            format!("{} of {}", values.len(), values.first().map_or_else(String::new, brief))
        }
        Datum::Text(text) if text.len() > 24 => {
            format!("'{}…' {}", text.chars().take(12).collect::<String>(), text.len())
        }
        Datum::Bytes(bytes) if bytes.len() > 24 => format!("bytes {}", bytes.len()),
        other => format!("{other:?}"),
    };
    written.chars().take(60).collect()
}

/// Values of a type: short ones and long ones, in forms that much is done with.
fn values(ty: SqlType) -> Vec<Datum> {
    if ty.array {
        let element = ty.element();
        let of = |count: usize, value: &Datum| Datum::Array(vec![value.clone(); count]);
        let mut arrays: Vec<Datum> = short(element).iter().map(|value| of(4_000, value)).collect();
        arrays.extend(short(element).iter().take(2).map(|value| of(1, value)));
        arrays.extend(
            values(element).iter().filter(|value| functions::length(value) > 64).map(|value| of(2, value)),
        );
        return arrays;
    }
    let mut all = short(ty);
    match ty {
        SqlType::TEXT => {
            let units = [
                "a",
                "é",
                "1",
                " ",
                "%",
                "_",
                "ab,",
                "\u{212a}\u{130}",
                "\\",
                "Y",
                "\"a\" ",
                "MM-",
                "9",
                "L",
                "aB ",
                "%s",
                "(",
                "ff",
                "&#",
            ];
            all.extend(units.map(|unit| Datum::Text(unit.repeat(60_000 / unit.len()))));
        }
        SqlType::BYTEA => all.push(Datum::Bytes(vec![7; 60_000])),
        SqlType::JSON | SqlType::JSONB => {
            let list = |part: &str| format!("[{}]", vec![part; 60_000 / part.len()].join(","));
            let fields: Vec<String> = (0..5_000).map(|number| format!("\"f{number}\": {number}")).collect();
            all.push(Datum::Text(list("1")));
            all.push(Datum::Text(list("{\"a\": [1, null]}")));
            all.push(Datum::Text(list("\"\\u00e9\\n\"")));
            all.push(Datum::Text(format!("{{{}}}", fields.join(", "))));
            all.push(Datum::Text(format!("\"{}\"", "\\u0041".repeat(10_000))));
            all.push(Datum::Text("9".repeat(60_000)));
        }
        SqlType::NUMERIC => {
            for digits in [400, 4_000, 40_000] {
                all.push(number(&"7".repeat(digits)));
                all.push(number(&format!("0.{}", "3".repeat(digits.min(16_000)))));
            }
        }
        _ => {}
    }
    all
}

fn number(digits: &str) -> Datum {
    text::parse(digits, SqlType::NUMERIC, Zone::Utc).unwrap()
}

fn short(ty: SqlType) -> Vec<Datum> {
    let texts = |all: &[&str]| all.iter().map(|text| Datum::Text((*text).to_owned())).collect();
    match ty {
        SqlType::BOOL => vec![Datum::Bool(true)],
        SqlType::INT2 => vec![Datum::Int(1), Datum::Int(30_000)],
        SqlType::OID => vec![Datum::Int(25)],
        SqlType::INT4 => vec![Datum::Int(1), Datum::Int(-3), Datum::Int(50_000)],
        SqlType::INT8 => vec![Datum::Int(3), Datum::Int(20_000), Datum::Int(i64::MAX)],
        SqlType::FLOAT4 | SqlType::FLOAT8 => vec![Datum::Float(0.3), Datum::Float(1e300)],
        SqlType::NUMERIC => vec![number("3"), number("2.5"), number("1000.25")],
        SqlType::BYTEA => vec![Datum::Bytes(b"ab".to_vec())],
        SqlType::DATE => vec![Datum::Date(9_000)],
        SqlType::TIME => vec![Datum::Time(1_000_000)],
        SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ => vec![Datum::Timestamp(700_000_000_000_001)],
        SqlType::INTERVAL => vec![Datum::Interval { months: 14, days: 3, microseconds: 7 }],
        SqlType::INET | SqlType::CIDR => {
            ["10.1.0.0/16", "2001:db8::/32"].map(|text| text::parse(text, ty, Zone::Utc).unwrap()).to_vec()
        }
        SqlType::JSON | SqlType::JSONB => texts(&["1", "{\"a\": [1, 2]}", "[\"a\", 2]"]),
        _ => texts(&[
            "a", "", "a|b", "(a|b)*c", "x*", "\\w+\\s", "[^ab]{3}", "g", "UTC", "hex", "base64", "day",
            "sha256", "NFC", "1", ",", "YYYY", "{a,b}", "%1$s",
        ]),
    }
}

const TYPES: [SqlType; 18] = [
    SqlType::TEXT,
    SqlType::BYTEA,
    SqlType::INT4,
    SqlType::INT8,
    SqlType::NUMERIC,
    SqlType::FLOAT8,
    SqlType::JSON,
    SqlType::JSONB,
    SqlType::BOOL,
    SqlType::DATE,
    SqlType::TIME,
    SqlType::TIMESTAMP,
    SqlType::TIMESTAMPTZ,
    SqlType::INTERVAL,
    SqlType::INET,
    SqlType::TEXT.array_of(),
    SqlType::INT4.array_of(),
    SqlType::NUMERIC.array_of(),
];

/// Each function of the table, as some arguments choose it.
fn all_functions() -> Vec<Function> {
    let names = (0..).map(|id| functions::name(FunctionId(id))).take_while(|name| !name.is_empty());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let mut shapes: Vec<Vec<SqlType>> = TYPES.iter().map(|ty| vec![*ty]).collect();
    shapes.extend(TYPES.iter().flat_map(|one| TYPES.iter().map(|other| vec![*one, *other])));
    let pairs: Vec<Vec<SqlType>> = shapes.iter().filter(|shape| shape.len() == 2).cloned().collect();
    for pair in pairs {
        let third = [SqlType::TEXT, SqlType::INT4, SqlType::BOOL, SqlType::JSONB, pair[0], pair[1]];
        shapes.extend(third.map(|third| vec![pair[0], pair[1], third]));
    }
    let mut found: Vec<Function> = Vec::new();
    for name in names {
        for shape in &shapes {
            match functions::resolve(name, shape) {
                Ok(function) if !found.contains(&function) => found.push(function),
                _ => {}
            }
        }
    }
    found
}

/// Combinations of values of these types, all of them or evenly chosen ones.
fn combinations(types: &[SqlType]) -> Vec<Vec<Datum>> {
    let choices: Vec<Vec<Datum>> = types.iter().map(|ty| values(*ty)).collect();
    let count: usize = choices.iter().map(Vec::len).product();
    let step = count.div_ceil(COMBINATIONS_MAX).max(1);
    let choose = |number: usize| {
        let mut rest = number;
        let choose = |values: &Vec<Datum>| {
            let value = values[rest % values.len()].clone();
            rest /= values.len();
            value
        };
        choices.iter().map(choose).collect()
    };
    // Steps that share no factor with the numbers of values meet all of each.
    (0..count).step_by(step | 1).map(choose).collect()
}

fn measure_functions(report: &mut Report, part: &str) {
    let context = CallContext { now: 7, zone: Zone::Utc };
    for function in all_functions() {
        let name = functions::name(function.id);
        if !name.contains(part) {
            continue;
        }
        for arguments in combinations(&function.arguments) {
            let arguments = match function.typed {
                true => functions::typed_arguments(arguments, &function.arguments),
                false => arguments,
            };
            let told: Vec<&Datum> = arguments.iter().collect();
            operators::begin_run();
            let before = functions::work_of_call(function.id, &arguments);
            report.measure(name, &told, before, || {
                let result = functions::call(function.id, &arguments, &context).ok();
                (result, operators::take_work_of_compiling())
            });
        }
    }
}

fn measure_operators(report: &mut Report) {
    use BinaryOperator::*;
    let all = [
        Add,
        Subtract,
        Multiply,
        Divide,
        Modulo,
        Power,
        Equal,
        Less,
        Concat,
        Like,
        ILike,
        RegexMatch,
        RegexMatchInsensitive,
    ];
    for (operator, left, right) in all.into_iter().flat_map(|operator| {
        TYPES.into_iter().flat_map(move |left| TYPES.map(|right| (operator, left, right)))
    }) {
        let Ok(resolved) = operators::resolve_binary(operator, left, right) else { continue };
        if (resolved.left, resolved.right) != (left, right) {
            continue;
        }
        for pair in combinations(&[left, right]) {
            operators::begin_run();
            let before = functions::work_of_operator(operator, &pair[0], &pair[1]);
            let name = format!("{operator:?} of {} and {}", left.name(), right.name());
            report.measure(&name, &[&pair[0], &pair[1]], before, || {
                let result = operators::binary(operator, &pair[0], &pair[1], &resolved, Zone::Utc).ok();
                (result, operators::take_work_of_compiling())
            });
        }
    }
}

fn measure_casts(report: &mut Report) {
    for (from, to) in TYPES.into_iter().flat_map(|from| TYPES.map(|to| (from, to))) {
        if cast::allowed(from, to).is_none() {
            continue;
        }
        let mut given = values(from);
        if from == SqlType::TEXT {
            given.extend(values(to).iter().map(|value| Datum::Text(text::to_string(value, to, Zone::Utc))));
        }
        for value in given {
            let before = functions::work_of_cast(&value, to);
            let name = format!("cast {} as {}", from.name(), to.name());
            report.measure(&name, &[&value], before, || {
                (cast::cast(value.clone(), from, to, Zone::Utc).ok(), 0)
            });
        }
    }
}

fn main() {
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut report = Report::default();
    measure_functions(&mut report, &part);
    if part.is_empty() {
        measure_operators(&mut report);
        measure_casts(&mut report);
    }
    report.print(&part);
}
