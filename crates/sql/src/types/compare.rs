//! The order of values, as PostgreSQL's B-trees have it.

use std::cmp::Ordering;

use super::{Datum, calendar};

/// The length of an interval in microseconds, months being 30 days: what intervals are compared by.
pub(crate) fn interval_span(months: i32, days: i32, microseconds: i64) -> i128 {
    let days = i128::from(months) * 30 + i128::from(days);
    days * i128::from(calendar::DAY) + i128::from(microseconds)
}

/// Floats with "not a number" equal to itself and above all, and both zeros equal.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The order of two values of the same type. `Null` is above all and equal to itself; texts are compared bytewise.
///
/// Values of different types have an order too, that of the variants, so that the function is total.
pub fn compare(left: &Datum, right: &Datum) -> Ordering {
    match (left, right) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
        (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
        (Datum::Time(a), Datum::Time(b)) | (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
        (
            Datum::Interval { months, days, microseconds },
            Datum::Interval { months: m, days: d, microseconds: u },
        ) => interval_span(*months, *days, *microseconds).cmp(&interval_span(*m, *d, *u)),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::Network(a), Datum::Network(b)) => a.cmp(b),
        (Datum::Array(a), Datum::Array(b)) => {
            let difference = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            difference.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Whether two values of the same type are equal. `Null` is equal to itself, as for `DISTINCT` and `GROUP BY`.
pub fn equal(left: &Datum, right: &Datum) -> bool {
    compare(left, right).is_eq()
}

fn rank(datum: &Datum) -> u8 {
    match datum {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Float(_) => 2,
        Datum::Numeric(_) => 3,
        Datum::Text(_) => 4,
        Datum::Bytes(_) => 5,
        Datum::Date(_) => 6,
        Datum::Time(_) => 7,
        Datum::Timestamp(_) => 8,
        Datum::Interval { .. } => 9,
        Datum::Uuid(_) => 10,
        Datum::Network(_) => 11,
        Datum::Array(_) => 12,
        Datum::Null => 13,
    }
}

/// The bits of a float with one zero and one "not a number".
pub(crate) fn canonical_bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}

/// Bytes of a value such that equal values give equal bytes, and different ones of the same type different bytes, also when
/// several are written one after the other. For tables by hash: it has no order and is not decoded.
pub fn hash_bytes(datum: &Datum, out: &mut Vec<u8>) {
    out.push(rank(datum));
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) | Datum::Time(value) | Datum::Timestamp(value) => {
            out.extend_from_slice(&value.to_le_bytes());
        }
        Datum::Float(value) => out.extend_from_slice(&canonical_bits(*value).to_le_bytes()),
        Datum::Numeric(value) => value.hash_bytes(out),
        Datum::Text(value) => hash_long(value.as_bytes(), out),
        Datum::Bytes(value) => hash_long(value, out),
        Datum::Date(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Interval { months, days, microseconds } => {
            out.extend_from_slice(&interval_span(*months, *days, *microseconds).to_le_bytes());
        }
        Datum::Uuid(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Network(value) => {
            // The count of bytes follows from the first one.
            out.push(value.bytes().len() as u8);
            out.push(value.bits());
            out.extend_from_slice(value.bytes());
        }
        Datum::Array(values) => {
            out.extend_from_slice(&(values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| hash_bytes(value, out));
        }
    }
}

fn hash_long(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Values as the key of a table by hash or of a tree: equal as [`equal`] has it. Its order is no order of the values.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct HashKey(Box<[u8]>);

impl HashKey {
    /// The key of some values, one after the other.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a Datum>) -> HashKey {
        let mut bytes = Vec::new();
        values.into_iter().for_each(|value| hash_bytes(value, &mut bytes));
        HashKey(bytes.into())
    }

    /// The bytes of [`hash_bytes`].
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
