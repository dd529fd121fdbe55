//! Forms of values: each reads what it wrote, keys have the order of the values, and no bytes make a reader stop.

use std::cmp::Ordering;

use ordain_sql::types::compare::{self, HashKey};
use ordain_sql::types::network::Family;
use ordain_sql::types::{Datum, Network, Numeric, SqlType, Zone, binary, key, row, text};
use proptest::prelude::*;

const PLAIN: [SqlType; 21] = [
    SqlType::BOOL,
    SqlType::INT2,
    SqlType::INT4,
    SqlType::INT8,
    SqlType::FLOAT4,
    SqlType::FLOAT8,
    SqlType::NUMERIC,
    SqlType::TEXT,
    SqlType::VARCHAR,
    SqlType::CHAR,
    SqlType::BYTEA,
    SqlType::DATE,
    SqlType::TIME,
    SqlType::TIMESTAMP,
    SqlType::TIMESTAMPTZ,
    SqlType::INTERVAL,
    SqlType::UUID,
    SqlType::INET,
    SqlType::CIDR,
    SqlType::OID,
    SqlType::NAME,
];

/// Numbers that are often near each other, at either side of zero and of powers of two.
fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        -300i64..300,
        any::<i64>(),
        (0u32..63, -2i64..3).prop_map(|(bits, near)| (1i64 << bits) + near)
    ]
}

fn numeric() -> impl Strategy<Value = Numeric> {
    prop_oneof![
        (integer(), 0u16..20).prop_map(|(unscaled, scale)| Numeric::new(i128::from(unscaled), scale)),
        (any::<i128>(), 0u16..60).prop_map(|(unscaled, scale)| Numeric::new(unscaled, scale)),
        "-?[0-9]{1,60}(\\.[0-9]{1,60})?(e-?[0-9]{1,2})?"
            .prop_filter_map("no number", |text| Numeric::parse(&text).ok()),
        (-20i128..20, 0u16..4).prop_map(|(unscaled, scale)| Numeric::new(unscaled, scale)),
        Just(Numeric::NAN),
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_map(|value| if value.is_nan() { f64::NAN } else { value }),
        (-5i32..5).prop_map(f64::from),
        (1u64 << 53..1 << 63).prop_map(|value| value as f64),
        Just(f64::NAN),
        Just(-0.0),
        Just(f64::NEG_INFINITY),
    ]
}

fn characters() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,4}", "[a\u{1}\u{ff}\\\\\"{}, é]{0,6}", "\\PC{0,10}", "NULL|null"]
}

fn interval() -> impl Strategy<Value = Datum> {
    let any_interval = (any::<i32>(), any::<i32>(), any::<i64>());
    prop_oneof![any_interval, (-3i32..3, -70i32..70, -200_000_000_000i64..200_000_000_000)]
        .prop_map(|(months, days, microseconds)| Datum::Interval { months, days, microseconds })
}

/// Addresses that often share their first bits.
fn network() -> impl Strategy<Value = Network> {
    let bytes = prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => Just(255), 2 => any::<u8>()], 16);
    (any::<bool>(), 0u8..=128, bytes).prop_filter_map("no address", |(is_four, bits, bytes)| match is_four {
        true => Network::new(Family::V4, bits / 4, &bytes[..4]),
        false => Network::new(Family::V6, bits, &bytes),
    })
}

fn value(ty: SqlType) -> BoxedStrategy<Datum> {
    if ty.array {
        let element = prop_oneof![3 => value(ty.element()), 1 => Just(Datum::Null)];
        return prop::collection::vec(element, 0..4).prop_map(Datum::Array).boxed();
    }
    match ty {
        SqlType::BOOL => any::<bool>().prop_map(Datum::Bool).boxed(),
        SqlType::INT2 => any::<i16>().prop_map(|value| Datum::Int(i64::from(value))).boxed(),
        SqlType::INT4 => integer().prop_map(|value| Datum::Int(i64::from(value as i32))).boxed(),
        SqlType::OID => integer().prop_map(|value| Datum::Int(i64::from(value as u32))).boxed(),
        SqlType::INT8 => integer().prop_map(Datum::Int).boxed(),
        SqlType::FLOAT4 => float().prop_map(|value| Datum::Float(f64::from(value as f32))).boxed(),
        SqlType::FLOAT8 => float().prop_map(Datum::Float).boxed(),
        SqlType::NUMERIC => numeric().prop_map(Datum::Numeric).boxed(),
        SqlType::CHAR => characters().prop_map(|text| Datum::Text(text.trim_end().to_owned())).boxed(),
        SqlType::BYTEA => prop_oneof![
            prop::collection::vec(any::<u8>(), 0..6),
            prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..6)
        ]
        .prop_map(Datum::Bytes)
        .boxed(),
        SqlType::DATE => (-2_451_545i32..=2_145_031_948).prop_map(Datum::Date).boxed(),
        SqlType::TIME => (0i64..=86_400_000_000).prop_map(Datum::Time).boxed(),
        SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ => {
            (-211_813_488_000_000_000i64..=9_223_371_331_199_999_999).prop_map(Datum::Timestamp).boxed()
        }
        SqlType::INTERVAL => interval().boxed(),
        SqlType::UUID => any::<u128>().prop_map(Datum::Uuid).boxed(),
        SqlType::INET => network().prop_map(Datum::Network).boxed(),
        SqlType::CIDR => network().prop_map(|network| Datum::Network(network.network())).boxed(),
        _ => characters().prop_map(Datum::Text).boxed(),
    }
}

fn any_type() -> impl Strategy<Value = SqlType> {
    (prop::sample::select(PLAIN.to_vec()), prop::bool::weighted(0.2))
        .prop_map(|(ty, array)| if array { ty.array_of() } else { ty })
}

fn typed() -> impl Strategy<Value = (SqlType, Datum)> {
    any_type().prop_flat_map(|ty| (Just(ty), value(ty)))
}

fn pair() -> impl Strategy<Value = (SqlType, Datum, Datum)> {
    any_type().prop_flat_map(|ty| {
        let one = prop_oneof![9 => value(ty), 1 => Just(Datum::Null)];
        let other = prop_oneof![9 => value(ty), 1 => Just(Datum::Null)];
        (Just(ty), one, other)
    })
}

/// Also the scale of a `numeric`, the sign of a zero and how an interval is split.
fn identical(left: &Datum, right: &Datum) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

fn encoded(datum: &Datum) -> Vec<u8> {
    let mut bytes = key::KeyBytes::new();
    key::encode(datum, &mut bytes);
    bytes.into_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn text_reads_what_it_wrote((ty, datum) in typed()) {
        let written = text::to_string(&datum, ty, Zone::Utc);
        // The time of an interval may have more hours than are read again.
        if let Ok(read) = text::parse(&written, ty, Zone::Utc) {
            prop_assert!(identical(&read, &datum), "{written} became {read:?}");
        } else {
            prop_assert!(ty.base == SqlType::INTERVAL.base, "{written} is not read as {}", ty.name());
        }
    }

    #[test]
    fn binary_reads_what_it_wrote((ty, datum) in typed()) {
        let mut bytes = Vec::new();
        binary::encode(&datum, ty, &mut bytes);
        let read = binary::decode(&bytes, ty).unwrap();
        prop_assert!(identical(&read, &datum), "{read:?}");
    }

    #[test]
    fn rows_read_what_they_wrote(columns in prop::collection::vec(typed(), 0..6), more in 0usize..3) {
        let columns: Vec<Datum> = columns.into_iter().map(|(_, datum)| datum).collect();
        let mut bytes = Vec::new();
        row::encode(&columns, &mut bytes);
        let mut read = Vec::new();
        row::decode(&bytes, &mut read).unwrap();
        prop_assert_eq!(format!("{read:?}"), format!("{columns:?}"));
        for (at, column) in columns.iter().enumerate() {
            let one = row::decode_column(&bytes, at).unwrap().unwrap();
            prop_assert!(identical(&one, column));
        }
        prop_assert_eq!(row::decode_column(&bytes, columns.len() + more).unwrap(), None);
    }

    #[test]
    fn keys_have_the_order_of_values((ty, left, right) in pair()) {
        let (a, b) = (encoded(&left), encoded(&right));
        prop_assert_eq!(a.cmp(&b), compare::compare(&left, &right), "{} and {}", text::to_string(&left, ty, Zone::Utc), text::to_string(&right, ty, Zone::Utc));
        // No key of one value is the beginning of another.
        prop_assert!(a == b || !b.starts_with(&a));
    }

    #[test]
    fn keys_read_what_they_wrote((ty, datum) in typed(), behind in any::<Vec<u8>>()) {
        let mut bytes = encoded(&datum);
        bytes.extend_from_slice(&behind);
        let mut rest = bytes.as_slice();
        let read = key::decode(&mut rest, ty).unwrap();
        prop_assert!(compare::equal(&read, &datum), "{read:?}");
        prop_assert_eq!(rest, behind.as_slice());
    }

    #[test]
    fn equal_values_have_equal_hashes((_, left, right) in pair()) {
        let same = HashKey::of([&left]) == HashKey::of([&right]);
        prop_assert_eq!(same, compare::equal(&left, &right));
    }

    #[test]
    fn the_order_is_total((_, a, b) in pair()) {
        prop_assert_eq!(compare::compare(&a, &b), compare::compare(&b, &a).reverse());
        prop_assert_eq!(compare::compare(&a, &a), Ordering::Equal);
    }

    #[test]
    fn any_bytes_are_read_or_refused(ty in any_type(), bytes in any::<Vec<u8>>()) {
        let _ = binary::decode(&bytes, ty);
        let _ = row::decode(&bytes, &mut Vec::new());
        let _ = row::decode_column(&bytes, 2);
        let _ = key::decode(&mut bytes.as_slice(), ty);
        let _ = Numeric::from_bytes(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(ty in any_type(), input in "[-+0-9a-zA-Z:.,/{}\" ]{0,20}|\\PC{0,12}") {
        if let Ok(datum) = text::parse(&input, ty, Zone::Utc) {
            let written = text::to_string(&datum, ty, Zone::Utc);
            prop_assert!(ty.base == SqlType::INTERVAL.base || text::parse(&written, ty, Zone::Utc).is_ok(), "{written}");
        }
        let _ = text::parse(&input, SqlType::JSONB, Zone::Utc);
    }

    #[test]
    fn numbers_survive_serde(number in numeric()) {
        let bytes = postcard::to_allocvec(&number).unwrap();
        let read: Numeric = postcard::from_bytes(&bytes).unwrap();
        prop_assert_eq!(read.to_string(), number.to_string());
    }

    #[test]
    fn small_numbers_calculate_as_integers(a in -10_000i64..10_000, b in -10_000i64..10_000, scale in 0u16..5) {
        let number = |value: i64| Numeric::new(i128::from(value), scale);
        prop_assert_eq!(number(a).add(&number(b)).unwrap(), number(a + b));
        prop_assert_eq!(number(a).subtract(&number(b)).unwrap(), number(a - b));
        prop_assert_eq!(number(a).multiply(&Numeric::from(b)).unwrap(), number(a * b));
        prop_assert_eq!(number(a).cmp(&number(b)), a.cmp(&b));
    }
}

#[test]
fn equal_numbers_of_different_scales_are_one_key() {
    let (one, other) = (Numeric::new(10, 1), Numeric::new(100, 2));
    assert_eq!(one, other);
    assert_eq!(encoded(&Datum::Numeric(one.clone())), encoded(&Datum::Numeric(other.clone())));
    assert_ne!(one.to_string(), other.to_string());
}

#[test]
fn columns_one_after_the_other_are_a_key() {
    let columns = [Datum::Int(7), Datum::Text("a\0b".to_owned()), Datum::Null];
    let mut bytes = key::KeyBytes::new();
    columns.iter().for_each(|column| key::encode(column, &mut bytes));
    let mut rest = bytes.as_slice();
    for (column, ty) in columns.iter().zip([SqlType::INT4, SqlType::TEXT, SqlType::UUID]) {
        assert_eq!(key::decode(&mut rest, ty).unwrap(), *column);
    }
    assert!(rest.is_empty());
    assert!(bytes.starts_with(&encoded(&columns[0])));
}

#[test]
fn values_are_small() {
    assert_eq!(size_of::<Datum>(), 32);
    let mut bytes = Vec::new();
    row::encode(&[Datum::Int(5), Datum::Null, Datum::Bool(true)], &mut bytes);
    assert_eq!(bytes.len(), 3);
    assert_eq!(Numeric::new(1999, 2).to_bytes().len(), 3);
}
