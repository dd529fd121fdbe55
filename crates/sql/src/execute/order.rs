//! The order of rows.

use std::cmp::Ordering;

use super::query::Wanted;
use super::work::work_of_comparing;
use super::{Failure, Row, Run, size_of_row};
use crate::plan::{Node, SortKey};
use crate::types::Datum;
use crate::types::compare::compare;
use crate::types::key::{self, KeyBytes};

/// Rows that a sort keeps besides twice those that are wanted, before it forgets the rest.
const SORTED_SLACK: usize = 1024;

/// From how many rows on bytes are made of their keys, which are compared faster.
const ROWS_BY_BYTES: usize = 64;

/// What a key begins with where its value is null, before or behind all that others may begin with.
const NULL_FIRST: u8 = 0x00;
const NULL_LAST: u8 = 0xFF;

impl Run<'_, '_> {
    /// The first rows in order.
    pub(super) fn sort(&mut self, input: &Node, keys: &[SortKey], most: usize) -> Result<Vec<Row>, Failure> {
        let enough = most.saturating_mul(2).saturating_add(SORTED_SLACK);
        let mut keyed: Vec<(Row, Row)> = Vec::new();
        self.each(input, Wanted::ALL, &mut |run, row| {
            let key = run.sort_values(keys, row)?;
            run.hold(size_of_keyed(&key, row))?;
            keyed.push((key, std::mem::take(row)));
            if keyed.len() > enough {
                sort_keyed(keys, &mut keyed);
                let rest = keyed.split_off(most);
                run.let_go(rest.iter().map(|(key, row)| size_of_keyed(key, row)).sum());
            }
            Ok(true)
        })?;
        sort_keyed(keys, &mut keyed);
        Ok(keyed.into_iter().map(|(_, row)| row).collect())
    }

    /// The values that a row is sorted by.
    pub(super) fn sort_values(&mut self, keys: &[SortKey], row: &[Datum]) -> Result<Row, Failure> {
        let values: Row =
            keys.iter().map(|key| self.value(&key.expression, row)).collect::<Result<_, _>>()?;
        // Each is compared with some others.
        self.work(8 * work_of_comparing(&values))?;
        Ok(values)
    }
}

/// Bytes of memory of a row that is sorted by values, which are there as bytes besides.
pub(super) fn size_of_keyed(key: &[Datum], row: &[Datum]) -> usize {
    2 * size_of_row(key) + size_of_row(row)
}

/// The order of two rows by some of their sort keys' values.
pub(super) fn compare_keys(keys: &[SortKey], left: &[Datum], right: &[Datum]) -> Ordering {
    for ((key, left), right) in keys.iter().zip(left).zip(right) {
        let order = match (left, right) {
            (Datum::Null, Datum::Null) => Ordering::Equal,
            (Datum::Null, _) if key.nulls_first => Ordering::Less,
            (Datum::Null, _) => Ordering::Greater,
            (_, Datum::Null) if key.nulls_first => Ordering::Greater,
            (_, Datum::Null) => Ordering::Less,
            (left, right) if key.descending => compare(right, left),
            (left, right) => compare(left, right),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Sorts rows by values that were made of them before; those that are equal keep their order.
pub(super) fn sort_keyed(keys: &[SortKey], keyed: &mut [(Row, Row)]) {
    if keyed.len() < ROWS_BY_BYTES {
        return keyed.sort_by(|(left, _), (right, _)| compare_keys(keys, left, right));
    }
    let mut order = Order::default();
    keyed.iter().for_each(|(values, _)| order.push(keys, values));
    let sorted: Vec<(Row, Row)> = order.sorted().map(|place| std::mem::take(&mut keyed[place])).collect();
    keyed.iter_mut().zip(sorted).for_each(|(place, row)| *place = row);
}

/// Keys of rows as bytes that have their order.
#[derive(Default)]
struct Order {
    bytes: Vec<u8>,
    keys: Vec<Key>,
    buffer: KeyBytes,
}

/// A key among the bytes of an [`Order`].
struct Key {
    /// What it begins with. No key begins with all of another one, so that it does not matter what follows a shorter one.
    first: u64,
    start: usize,
    end: usize,
    /// The number of its row.
    place: usize,
}

impl Order {
    fn push(&mut self, keys: &[SortKey], values: &[Datum]) {
        let start = self.bytes.len();
        for (key, value) in keys.iter().zip(values) {
            if value.is_null() {
                self.bytes.push(if key.nulls_first { NULL_FIRST } else { NULL_LAST });
                continue;
            }
            self.buffer.clear();
            key::encode(value, &mut self.buffer);
            if key.descending {
                self.buffer.iter_mut().for_each(|byte| *byte = !*byte);
            }
            self.bytes.extend_from_slice(&self.buffer);
        }
        let mut first = [0; 8];
        let length = (self.bytes.len() - start).min(first.len());
        first[..length].copy_from_slice(&self.bytes[start..start + length]);
        let (first, place) = (u64::from_be_bytes(first), self.keys.len());
        self.keys.push(Key { first, start, end: self.bytes.len(), place });
    }

    /// The numbers of the rows in order.
    fn sorted(self) -> impl Iterator<Item = usize> {
        let Order { bytes, mut keys, .. } = self;
        keys.sort_unstable_by(|left, right| {
            let rest = || bytes[left.start..left.end].cmp(&bytes[right.start..right.end]);
            left.first.cmp(&right.first).then_with(rest).then(left.place.cmp(&right.place))
        });
        keys.into_iter().map(|key| key.place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Expression;
    use crate::types::Numeric;

    /// Values of one of some types.
    fn column() -> impl Strategy<Value = Vec<Datum>> {
        let of = |value: BoxedStrategy<Datum>| {
            let or_null = prop_oneof![6 => value, 1 => Just(Datum::Null)];
            proptest::collection::vec(or_null, 2 * ROWS_BY_BYTES)
        };
        let numeric = (-2_000_000..2_000_000_i64, 0..5_u16).prop_map(|(number, scale)| {
            Datum::Numeric(Numeric::parse(&format!("{number}e-{scale}")).unwrap())
        });
        let interval = (-2..2_i32, -40..40_i32, any::<i32>())
            .prop_map(|(months, days, rest)| Datum::Interval { months, days, microseconds: i64::from(rest) });
        let float = prop_oneof![Just(-0.0), Just(0.0), Just(f64::NAN), any::<f64>(), -2.0..2.0];
        let array =
            proptest::collection::vec(prop_oneof![Just(Datum::Null), (-1..2_i64).prop_map(Datum::Int)], 0..3);
        prop_oneof![
            of(any::<i64>().prop_map(Datum::Int).boxed()),
            of((-3..3_i64).prop_map(Datum::Int).boxed()),
            of(float.prop_map(Datum::Float).boxed()),
            of(numeric.boxed()),
            of(interval.boxed()),
            of("[a-c]{0,9}|a{7,10}".prop_map(Datum::Text).boxed()),
            of(proptest::collection::vec(0..3_u8, 0..4).prop_map(Datum::Bytes).boxed()),
            of(any::<i32>().prop_map(Datum::Date).boxed()),
            of(any::<u128>().prop_map(Datum::Uuid).boxed()),
            of(any::<bool>().prop_map(Datum::Bool).boxed()),
            of(array.prop_map(Datum::Array).boxed()),
        ]
    }

    proptest! {
        #[test]
        fn bytes_have_the_order_of_the_values(
            columns in proptest::collection::vec((column(), any::<bool>(), any::<bool>()), 1..4),
        ) {
            let key = |(_, descending, nulls_first): &(Vec<Datum>, bool, bool)| SortKey {
                expression: Expression::Constant(Datum::Null),
                descending: *descending,
                nulls_first: *nulls_first,
            };
            let keys: Vec<SortKey> = columns.iter().map(key).collect();
            let row = |place: usize| columns.iter().map(|(values, ..)| values[place].clone()).collect();
            let number = |place: usize| vec![Datum::Int(place as i64)];
            let rows: Vec<(Row, Row)> =
                (0..2 * ROWS_BY_BYTES).map(|place| (row(place), number(place))).collect();
            let (mut by_bytes, mut by_values) = (rows.clone(), rows);
            sort_keyed(&keys, &mut by_bytes);
            by_values.sort_by(|(left, _), (right, _)| compare_keys(&keys, left, right));
            prop_assert_eq!(by_bytes, by_values);
        }
    }
}
