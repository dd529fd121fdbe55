//! Whatever the operands are, an operator, cast, function or aggregate gives a value or an error, and never stops the machine. What indexes may
//! compute is the same in all zones, at any time.

use ordain_sql::bind::is_immutable;
use ordain_sql::execute::WORK_MAX;
use ordain_sql::plan::Expression;
use ordain_sql::types::aggregate::{self, State};
use ordain_sql::types::functions::{self, CallContext, Function, FunctionId};
use ordain_sql::types::network::Family;
use ordain_sql::types::operators::{self, BinaryOperator, UnaryOperator};
use ordain_sql::types::{Datum, Network, Numeric, SqlType, Zone, cast, text};
use proptest::prelude::*;

const TYPES: [SqlType; 19] = [
    SqlType::BOOL,
    SqlType::INT2,
    SqlType::INT4,
    SqlType::INT8,
    SqlType::FLOAT4,
    SqlType::FLOAT8,
    SqlType::NUMERIC,
    SqlType::TEXT,
    SqlType::BYTEA,
    SqlType::DATE,
    SqlType::TIME,
    SqlType::TIMESTAMP,
    SqlType::TIMESTAMPTZ,
    SqlType::INTERVAL,
    SqlType::OID,
    SqlType::JSON,
    SqlType::JSONB,
    SqlType::INET,
    SqlType::CIDR,
];

fn integer(least: i64, greatest: i64) -> BoxedStrategy<i64> {
    let near = (-3i64..40).prop_map(move |value| value.clamp(least, greatest));
    prop_oneof![near, least..=greatest, Just(least), Just(greatest)].boxed()
}

fn value(ty: SqlType) -> BoxedStrategy<Datum> {
    if ty.array {
        return prop::collection::vec(value(ty.element()), 0..3).prop_map(Datum::Array).boxed();
    }
    let words = [
        "century",
        "epoch",
        "julian",
        "week",
        "UTC",
        "base64",
        "hex",
        "HH24:MI FMMonth DDD IYYY",
        "HH24 TZ",
        "2020-07-02 03:04:05",
        "03:04",
        "%a_",
        "a+(b",
    ];
    match ty {
        SqlType::BOOL => any::<bool>().prop_map(Datum::Bool).boxed(),
        SqlType::INT2 => integer(-32_768, 32_767).prop_map(Datum::Int).boxed(),
        SqlType::INT4 => integer(i64::from(i32::MIN), i64::from(i32::MAX)).prop_map(Datum::Int).boxed(),
        SqlType::OID => integer(0, i64::from(u32::MAX)).prop_map(Datum::Int).boxed(),
        SqlType::INT8 => integer(i64::MIN, i64::MAX).prop_map(Datum::Int).boxed(),
        SqlType::FLOAT4 => any::<f32>().prop_map(|value| Datum::Float(f64::from(value))).boxed(),
        SqlType::FLOAT8 => prop_oneof![any::<f64>(), -10f64..10.0].prop_map(Datum::Float).boxed(),
        SqlType::NUMERIC => prop_oneof![
            (any::<i128>(), 0u16..50).prop_map(|(unscaled, scale)| Numeric::new(unscaled, scale)),
            (-200i128..200, 0u16..3).prop_map(|(unscaled, scale)| Numeric::new(unscaled, scale)),
            Just(Numeric::NAN)
        ]
        .prop_map(Datum::Numeric)
        .boxed(),
        SqlType::JSON | SqlType::JSONB => {
            let texts = [
                "{}",
                "[]",
                "1",
                "null",
                "\"a\"",
                "[1, [2], {\"a\": 3}]",
                "{\"a\": {\"b\": [null]}, \"c\": 1.50}",
            ];
            prop::sample::select(texts.to_vec()).prop_map(|text| Datum::Text(text.to_owned())).boxed()
        }
        SqlType::BYTEA => prop::collection::vec(any::<u8>(), 0..5).prop_map(Datum::Bytes).boxed(),
        SqlType::DATE => integer(-2_451_545, 2_145_031_948).prop_map(|days| Datum::Date(days as i32)).boxed(),
        SqlType::TIME => (0i64..=86_400_000_000).prop_map(Datum::Time).boxed(),
        SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ => {
            integer(-211_813_488_000_000_000, 9_223_371_331_199_999_999).prop_map(Datum::Timestamp).boxed()
        }
        SqlType::INTERVAL => {
            let small = (-30i32..30, -40i32..40, -10_000_000_000i64..10_000_000_000);
            prop_oneof![(any::<i32>(), any::<i32>(), any::<i64>()), small]
                .prop_map(|(months, days, microseconds)| Datum::Interval { months, days, microseconds })
                .boxed()
        }
        SqlType::INET | SqlType::CIDR => (any::<[u8; 16]>(), any::<bool>(), 0u8..=128)
            .prop_map(|(bytes, is_four, bits)| match is_four {
                true => Network::new(Family::V4, bits / 4, &bytes[..4]),
                false => Network::new(Family::V6, bits, &bytes),
            })
            .prop_map(|network| network.map_or(Datum::Null, Datum::Network))
            .boxed(),
        _ => prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,8}"]
            .prop_map(Datum::Text)
            .boxed(),
    }
}

fn nullable(ty: SqlType) -> BoxedStrategy<Datum> {
    prop_oneof![12 => value(ty), 1 => Just(Datum::Null)].boxed()
}

fn values(types: &[SqlType]) -> BoxedStrategy<Vec<Datum>> {
    types.iter().map(|ty| nullable(*ty)).collect::<Vec<_>>().boxed()
}

/// Each function of the table, as some arguments choose it.
fn all_functions() -> Vec<Function> {
    let names = (0..).map(|id| functions::name(FunctionId(id))).take_while(|name| !name.is_empty());
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    let with_arrays = TYPES.into_iter().chain([SqlType::INT4.array_of(), SqlType::TEXT.array_of()]);
    let mut shapes: Vec<Vec<SqlType>> = vec![Vec::new()];
    shapes.extend(with_arrays.clone().map(|ty| vec![ty]));
    shapes.extend(with_arrays.clone().flat_map(|one| with_arrays.clone().map(move |other| vec![one, other])));
    for first in [SqlType::TEXT, SqlType::BYTEA, SqlType::INT4] {
        for second in [SqlType::TEXT, SqlType::INT4] {
            shapes.extend([SqlType::TEXT, SqlType::INT4].map(|third| vec![first, second, third]));
        }
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

fn binary_operators() -> Vec<BinaryOperator> {
    use BinaryOperator::*;
    vec![
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
        And,
        Or,
        Concat,
        Like,
        NotLike,
        ILike,
        NotILike,
        RegexMatch,
        RegexNotMatch,
        RegexMatchInsensitive,
        RegexNotMatchInsensitive,
        IsDistinctFrom,
        IsNotDistinctFrom,
        BitAnd,
        BitOr,
        BitXor,
        ShiftLeft,
        ShiftRight,
    ]
}

fn operation() -> impl Strategy<Value = (BinaryOperator, operators::Resolved, Datum, Datum)> {
    let types = prop::sample::select(TYPES.to_vec());
    let shape = (prop::sample::select(binary_operators()), types.clone(), types);
    shape
        .prop_filter_map("no such operator", |(operator, left, right)| {
            operators::resolve_binary(operator, left, right).ok().map(|resolved| (operator, resolved))
        })
        .prop_flat_map(|(operator, resolved)| {
            (Just(operator), Just(resolved), nullable(resolved.left), nullable(resolved.right))
        })
}

/// Far from UTC.
fn elsewhere() -> Zone {
    Zone::fixed(-9 * 3_600 - 1_800).expect("it is within a day of UTC")
}

/// Errors that only mistakes of Ordain have.
fn is_mistake<T>(outcome: &Result<T, ordain_sql::error::SqlError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.state.as_str().starts_with("XX"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn operators((operator, resolved, left, right) in operation()) {
        let outcome = operators::binary(operator, &left, &right, &resolved, Zone::Utc);
        prop_assert!(!is_mistake(&outcome), "{outcome:?}");
        if let Ok(result) = &outcome {
            let _ = text::to_string(result, resolved.result, Zone::Utc);
        }
        let [left_constant, right_constant] = [&left, &right].map(|value| Box::new(Expression::Constant(value.clone())));
        if is_immutable(&Expression::Binary { operator, resolved, left: left_constant, right: right_constant }) {
            prop_assert_eq!(operators::binary(operator, &left, &right, &resolved, elsewhere()), outcome);
        }
    }

    #[test]
    fn operators_before_a_value(
        (ty, operand) in prop::sample::select(TYPES.to_vec()).prop_flat_map(|ty| (Just(ty), nullable(ty)))
    ) {
        for operator in [UnaryOperator::Negate, UnaryOperator::Plus, UnaryOperator::Not, UnaryOperator::BitNot] {
            if let Ok(resolved) = operators::resolve_unary(operator, ty) {
                let outcome = operators::unary(operator, &operand, &resolved);
                prop_assert!(!is_mistake(&outcome), "{outcome:?}");
            }
        }
    }

    #[test]
    fn casts(
        (from, operand) in prop::sample::select(TYPES.to_vec()).prop_flat_map(|ty| (Just(ty), nullable(ty))),
        to in prop::sample::select(TYPES.to_vec()),
    ) {
        let outcome = cast::cast(operand.clone(), from, to, Zone::Utc);
        prop_assert!(!is_mistake(&outcome), "{outcome:?}");
        let constant = Box::new(Expression::Constant(operand.clone()));
        if is_immutable(&Expression::Cast { operand: constant, from, to }) {
            prop_assert_eq!(&cast::cast(operand, from, to, elsewhere()), &outcome);
        }
        if cast::allowed(from, to).is_none() && !from.is_same(to) {
            prop_assert!(outcome.is_err() || outcome == Ok(Datum::Null));
        }
    }

    #[test]
    fn aggregates(
        name in prop::sample::select(vec![
            "count", "sum", "avg", "min", "max", "bool_and", "array_agg", "bit_xor", "stddev", "var_pop", "json_agg",
            "jsonb_agg", "mode",
        ]),
        (ty, rows) in prop::sample::select(TYPES.to_vec())
            .prop_flat_map(|ty| (Just(ty), prop::collection::vec(nullable(ty), 0..4))),
    ) {
        if let Ok(aggregate) = aggregate::resolve(name, &[ty]) {
            let mut state = State::new(&aggregate, Zone::Utc);
            let added: Result<Vec<()>, _> = rows
                .into_iter()
                .map(|row| cast::cast(row, ty, aggregate.arguments[0], Zone::Utc).and_then(|row| state.add(&[row])))
                .collect();
            let outcome = added.and_then(|_| state.finish());
            prop_assert!(!is_mistake(&outcome), "{outcome:?}");
        }
    }
}

#[test]
fn all_functions_take_what_they_say() {
    let all = all_functions();
    assert!(all.len() > 100, "{} functions only", all.len());
    let config = ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() };
    for function in all {
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let name = functions::name(function.id);
        let outcome = runner.run(&values(&function.arguments), |arguments| {
            let arguments = match function.typed {
                true => functions::typed_arguments(arguments, &function.arguments),
                false => arguments,
            };
            // No run does more at once, in the order: some powers of numbers have a hundred thousand digits.
            if functions::work_of_call(function.id, &arguments) > WORK_MAX {
                return Ok(());
            }
            let outcome = functions::call(function.id, &arguments, &CallContext { now: 7, zone: Zone::Utc });
            prop_assert!(!is_mistake(&outcome), "{name}: {outcome:?}");
            if is_immutable(&Expression::Call { function: function.id, arguments: Vec::new() }) {
                let later = CallContext { now: 800_000_000_000_000, zone: elsewhere() };
                prop_assert_eq!(functions::call(function.id, &arguments, &later), outcome);
            }
            Ok(())
        });
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
}
