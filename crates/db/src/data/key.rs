//! The order-preserving key encoding.
//!
//! A key is the number of its table (2 bytes, big endian) followed by its columns. Comparing two encoded keys as
//! bytes compares them as typed values, and no key of a table is a prefix of another of the same table:
//!
//! | type | bytes |
//! |---|---|
//! | bool | `00` or `01` |
//! | int32, int64 | big endian, sign bit flipped |
//! | float64 | big endian; negative: all bits flipped, else sign bit flipped (the order of `total_cmp`) |
//! | text, bytes | the bytes, each `00` written `00 FF`, ended by `00 00` |
//!
//! Key columns are never null.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use super::schema::TableId;
use super::value::{ColumnType, DataError, Value};
use crate::hash::key_hash;
use crate::limits::KEY_BYTES_MAX;

/// Longest key that needs no allocation, in bytes.
const INLINE_BYTES: usize = 38;

/// An encoded key with its table prefix. Short keys live without an allocation.
#[derive(Clone)]
pub struct Key {
    inline: [u8; INLINE_BYTES],
    /// Bytes in use of `inline`, if `spilled` is empty.
    length: u8,
    /// The whole key, once it is longer than `inline`.
    spilled: Vec<u8>,
}

impl Key {
    const EMPTY: Key = Key { inline: [0; INLINE_BYTES], length: 0, spilled: Vec::new() };

    /// Starts a key of a table.
    #[inline]
    pub(crate) fn of_table(table: TableId) -> Key {
        let mut key = Key::EMPTY;
        key.extend(&table.0.to_be_bytes());
        key
    }

    /// A key from bytes that were a key before.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Key {
        let mut key = Key::EMPTY;
        key.extend(bytes);
        key
    }

    /// The encoded bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        if self.spilled.is_empty() { &self.inline[..usize::from(self.length)] } else { &self.spilled }
    }

    #[inline]
    fn extend(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        let end = start + bytes.len();
        if end <= INLINE_BYTES && self.spilled.is_empty() {
            self.inline[start..end].copy_from_slice(bytes);
            self.length = end as u8;
        } else {
            self.spill(bytes);
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.spilled.is_empty() {
            self.spilled.extend_from_slice(&self.inline[..usize::from(self.length)]);
        }
        self.spilled.extend_from_slice(bytes);
    }

    /// The table, or `None` for bytes too short to be a key.
    pub fn table(&self) -> Option<TableId> {
        table_of(self.bytes())
    }

    /// The key's hash, see [`key_hash`].
    pub fn hash(&self) -> u64 {
        key_hash(self.bytes())
    }

    /// Appends a value. The caller has checked its type.
    #[inline]
    pub(crate) fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Null => unreachable!("key columns are checked to be non-null before they are encoded"),
            Value::Bool(value) => self.extend(&[u8::from(value)]),
            Value::Int32(value) => self.extend(&(value ^ i32::MIN).to_be_bytes()),
            Value::Int64(value) => self.extend(&(value ^ i64::MIN).to_be_bytes()),
            Value::Float64(value) => self.extend(&order_float(value).to_be_bytes()),
            Value::Text(value) => self.push_escaped(value.as_bytes()),
            Value::Bytes(value) => self.push_escaped(value),
        }
    }

    fn push_escaped(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == 0) {
            self.extend(part);
            if part.ends_with(&[0]) {
                self.extend(&[0xFF]);
            }
        }
        self.extend(&[0, 0]);
    }

    pub(crate) fn check_length(&self) -> Result<(), DataError> {
        let length = self.bytes().len();
        if length > KEY_BYTES_MAX { Err(DataError::KeyTooLong(length)) } else { Ok(()) }
    }

    /// As [`Key::check_length`] for the bound of a range, which may stand right after the longest key.
    pub(crate) fn check_bound_length(&self) -> Result<(), DataError> {
        let length = self.bytes().len();
        if length > KEY_BYTES_MAX + 1 { Err(DataError::KeyTooLong(length)) } else { Ok(()) }
    }

    /// Bytes that part all keys as these do, and are not too long for the bound of a range. No key is longer than the limit, so one that
    /// begins with the first bytes up to there is no longer either, and comes before whatever goes on behind them.
    pub(crate) fn into_bound(self) -> Key {
        if self.check_bound_length().is_ok() {
            self
        } else {
            Key::from_bytes(&self.bytes()[..=KEY_BYTES_MAX])
        }
    }

    /// The smallest byte string that is larger than every key which starts with this one.
    pub(crate) fn successor_of_prefix(&self) -> Key {
        let mut bytes = self.bytes().to_vec();
        while let Some(last) = bytes.pop() {
            if last < 0xFF {
                bytes.push(last + 1);
                break;
            }
        }
        debug_assert!(!bytes.is_empty(), "table numbers stay below u16::MAX");
        Key::from_bytes(&bytes)
    }

    /// The smallest key that is larger than this one.
    fn successor(bytes: &[u8]) -> Key {
        let mut key = Key::from_bytes(bytes);
        key.extend(&[0]);
        key
    }
}

impl Default for Key {
    fn default() -> Key {
        Key::EMPTY
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

/// Builds a key: the first 16 bytes in a register, stored at once, since a processor waits when it loads together what was
/// stored in parts just before.
pub(crate) struct KeyEncoder {
    /// The first bytes, from the top.
    head: u128,
    /// Bytes in use of `head`, while `long` is empty.
    length: u32,
    /// The key, once it is longer than `head`.
    long: Option<Key>,
}

impl KeyEncoder {
    #[inline]
    pub(crate) fn new(table: TableId) -> KeyEncoder {
        KeyEncoder { head: u128::from(table.0) << 112, length: 2, long: None }
    }

    /// Appends a value. The caller has checked its type.
    #[inline]
    pub(crate) fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Int32(value) => self.push_integer(u64::from(value as u32 ^ 1 << 31), 4),
            Value::Int64(value) => self.push_integer(value as u64 ^ 1 << 63, 8),
            value => self.long().push(value),
        }
    }

    #[inline]
    fn push_integer(&mut self, value: u64, width: u32) {
        let end = self.length + width;
        if end <= 16 && self.long.is_none() {
            self.head |= u128::from(value) << (128 - 8 * end);
            self.length = end;
        } else {
            self.push_long(value, width);
        }
    }

    #[inline(never)]
    fn push_long(&mut self, value: u64, width: u32) {
        self.long().extend(&value.to_be_bytes()[8 - width as usize..]);
    }

    fn long(&mut self) -> &mut Key {
        let (head, length) = (self.head, self.length);
        self.long.get_or_insert_with(|| Key::of_head(head, length))
    }

    #[inline]
    pub(crate) fn finish(self) -> Key {
        match self.long {
            None => Key::of_head(self.head, self.length),
            Some(key) => key,
        }
    }
}

impl Key {
    #[inline]
    fn of_head(head: u128, length: u32) -> Key {
        let mut key = Key::EMPTY;
        key.inline[..16].copy_from_slice(&head.to_be_bytes());
        key.length = length as u8;
        key
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl std::borrow::Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.bytes())
    }
}

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        let key = Key::from_bytes(bytes);
        key.check_bound_length().map_err(serde::de::Error::custom)?;
        Ok(key)
    }
}

/// The table of an encoded key, or `None` for bytes too short to be a key.
#[inline]
pub fn table_of(key: &[u8]) -> Option<TableId> {
    key.first_chunk().map(|prefix| TableId(u16::from_be_bytes(*prefix)))
}

/// Which end of a range a scan begins at.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum Direction {
    /// At its start: keys ascend.
    #[default]
    Ascending,
    /// At its end: keys descend.
    Descending,
}

impl Direction {
    /// Which of two keys comes first.
    pub fn compare<K: Ord + ?Sized>(self, left: &K, right: &K) -> Ordering {
        match self {
            Direction::Ascending => left.cmp(right),
            Direction::Descending => right.cmp(left),
        }
    }

    /// What comes in ascending order, in this one.
    pub fn of_ascending<I: DoubleEndedIterator>(self, ascending: I) -> Directed<I> {
        Directed { ascending, direction: self }
    }
}

/// See [`Direction::of_ascending`].
#[derive(Clone, Debug)]
pub struct Directed<I> {
    ascending: I,
    direction: Direction,
}

impl<I: DoubleEndedIterator> Iterator for Directed<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        match self.direction {
            Direction::Ascending => self.ascending.next(),
            Direction::Descending => self.ascending.next_back(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ascending.size_hint()
    }
}

/// A half-open range of encoded keys, `start <= key < end`.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize,
)]
pub struct KeyRange {
    /// The first key that may be in the range.
    pub start: Key,
    /// The first key after the range.
    pub end: Key,
}

impl KeyRange {
    /// All keys that start with `prefix`.
    pub(crate) fn of_prefix(prefix: Key) -> KeyRange {
        let end = prefix.successor_of_prefix();
        KeyRange { start: prefix, end }
    }

    /// Whether the key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.bytes() <= key && key < self.end.bytes()
    }

    /// Whether the other range lies in this one.
    pub fn covers(&self, other: &KeyRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// The part of this range up to and including `last`.
    #[must_use]
    pub fn up_to(&self, last: &[u8]) -> KeyRange {
        KeyRange { start: self.start.clone(), end: Key::successor(last) }
    }

    /// The range of one key.
    pub fn one(key: &[u8]) -> KeyRange {
        KeyRange { start: Key::from_bytes(key), end: Key::successor(key) }
    }

    /// The part of this range after `last`.
    #[must_use]
    pub fn after(&self, last: &[u8]) -> KeyRange {
        KeyRange { start: Key::successor(last), end: self.end.clone() }
    }

    /// The part of this range that a scan has seen when it has come to `last`, and that included.
    #[must_use]
    pub fn seen(&self, direction: Direction, last: &[u8]) -> KeyRange {
        match direction {
            Direction::Ascending => self.up_to(last),
            Direction::Descending => KeyRange { start: Key::from_bytes(last), end: self.end.clone() },
        }
    }

    /// The part of this range that a scan has not seen when it has come to `last`.
    #[must_use]
    pub fn unseen(&self, direction: Direction, last: &[u8]) -> KeyRange {
        match direction {
            Direction::Ascending => self.after(last),
            Direction::Descending => KeyRange { start: self.start.clone(), end: Key::from_bytes(last) },
        }
    }
}

fn order_float(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn unorder_float(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

/// Number of bytes that the next column of the given type takes at the start of `bytes`, or `None` when the
/// bytes end before the column does.
pub(crate) fn encoded_width(bytes: &[u8], column: ColumnType) -> Option<usize> {
    if let Some(width) = column.fixed_width() {
        return (bytes.len() >= width).then_some(width);
    }
    let mut at = 0;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (0, Some(0)) => return Some(at + 2),
            (0, Some(0xFF)) => at += 2,
            (0, _) => return None,
            _ => at += 1,
        }
    }
}

/// A decoded key column. Text and bytes are owned, since escapes are taken out.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyValue {
    /// See [`ColumnType::Bool`].
    Bool(bool),
    /// See [`ColumnType::Int32`].
    Int32(i32),
    /// See [`ColumnType::Int64`].
    Int64(i64),
    /// See [`ColumnType::Float64`].
    Float64(f64),
    /// See [`ColumnType::Text`].
    Text(String),
    /// See [`ColumnType::Bytes`].
    Bytes(Vec<u8>),
}

impl KeyValue {
    /// The integer, of either width.
    pub fn integer(&self) -> Option<i64> {
        match self {
            KeyValue::Int32(value) => Some(i64::from(*value)),
            KeyValue::Int64(value) => Some(*value),
            _ => None,
        }
    }
}

/// Decodes the first column of `bytes`; returns the value and its width.
pub(crate) fn decode_column(bytes: &[u8], column: ColumnType) -> Result<(KeyValue, usize), DataError> {
    let malformed = DataError::Malformed("key");
    let width = encoded_width(bytes, column).ok_or(malformed.clone())?;
    let part = &bytes[..width];
    let value = match column {
        ColumnType::Bool => KeyValue::Bool(part[0] != 0),
        ColumnType::Int32 => {
            KeyValue::Int32(i32::from_be_bytes(part.try_into().map_err(|_| malformed)?) ^ i32::MIN)
        }
        ColumnType::Int64 => {
            KeyValue::Int64(i64::from_be_bytes(part.try_into().map_err(|_| malformed)?) ^ i64::MIN)
        }
        ColumnType::Float64 => {
            KeyValue::Float64(unorder_float(u64::from_be_bytes(part.try_into().map_err(|_| malformed)?)))
        }
        ColumnType::Text => KeyValue::Text(String::from_utf8(unescape(part)).map_err(|_| malformed)?),
        ColumnType::Bytes => KeyValue::Bytes(unescape(part)),
    };
    Ok((value, width))
}

/// Takes out the escapes and the end mark of an encoded text or bytes column.
fn unescape(encoded: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(encoded.len());
    let mut rest = &encoded[..encoded.len() - 2];
    while let Some((byte, tail)) = rest.split_first() {
        plain.push(*byte);
        rest = if *byte == 0 { &tail[1..] } else { tail };
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::{SchemaBuilder, Table};

    /// A table with a key of all types, twice, so that every type comes before and after another.
    fn table() -> Table {
        let types = [
            ColumnType::Bool,
            ColumnType::Text,
            ColumnType::Int32,
            ColumnType::Bytes,
            ColumnType::Float64,
            ColumnType::Int64,
            ColumnType::Text,
        ];
        let names: Vec<String> = (0..types.len()).map(|index| format!("c{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut builder = Table::builder("t");
        for (name, column_type) in names.iter().zip(types) {
            builder = builder.column(name, column_type);
        }
        let mut schema = SchemaBuilder::new();
        schema.table(Table::builder("first").column("c", ColumnType::Bool).primary_key(&["c"])).unwrap();
        schema.table(builder.primary_key(&names)).unwrap()
    }

    type Columns = (bool, String, i32, Vec<u8>, f64, i64, String);

    /// Bytes and characters around the escapes, and lengths around what a key holds without an allocation.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0), Just(1), Just(0xFE), Just(0xFF), any::<u8>()];
        prop_oneof![4 => proptest::collection::vec(byte, 0..4), 1 => proptest::collection::vec(any::<u8>(), 0..60)]
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![4 => "[\\x00\\x01a\\u{7ff}]{0,3}", 1 => "[\\x00a]{30,45}", 1 => any::<String>()]
    }

    fn float() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            Just(0.0),
            Just(-0.0),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(f64::MIN_POSITIVE),
        ]
    }

    fn columns() -> impl Strategy<Value = Columns> {
        let int32 = prop_oneof![-2..2_i32, Just(i32::MIN), Just(i32::MAX), any::<i32>()];
        let int64 = prop_oneof![-2..2_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()];
        (any::<bool>(), text(), int32, bytes(), float(), int64, text())
    }

    fn values(columns: &Columns) -> [Value<'_>; 7] {
        let (bool, first, int32, bytes, float, int64, last) = columns;
        [
            Value::Bool(*bool),
            Value::Text(first),
            Value::Int32(*int32),
            Value::Bytes(bytes),
            Value::Float64(*float),
            Value::Int64(*int64),
            Value::Text(last),
        ]
    }

    /// The order of the first columns of two keys, by type.
    fn typed_order(left: &Columns, right: &Columns, columns: usize) -> Ordering {
        let by_column = [
            left.0.cmp(&right.0),
            left.1.as_bytes().cmp(right.1.as_bytes()),
            left.2.cmp(&right.2),
            left.3.cmp(&right.3),
            left.4.total_cmp(&right.4),
            left.5.cmp(&right.5),
            left.6.as_bytes().cmp(right.6.as_bytes()),
        ];
        by_column.into_iter().take(columns).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The second key is the first with some columns changed, so that long prefixes are equal.
    fn pair() -> impl Strategy<Value = (Columns, Columns)> {
        (columns(), columns(), any::<u8>()).prop_map(|(left, other, changed)| {
            let mut right = left.clone();
            let change = |column: u8| changed & 1 << column != 0;
            if change(0) {
                right.0 = other.0
            }
            if change(1) {
                right.1 = other.1
            }
            if change(2) {
                right.2 = other.2
            }
            if change(3) {
                right.3 = other.3
            }
            if change(4) {
                right.4 = other.4
            }
            if change(5) {
                right.5 = other.5
            }
            if change(6) {
                right.6 = other.6
            }
            (left, right)
        })
    }

    proptest! {
        #[test]
        fn bytes_are_ordered_as_values_are((left, right) in pair()) {
            let table = table();
            let encode = |columns| table.key(&values(columns)[..]).unwrap();
            let (left_key, right_key) = (encode(&left), encode(&right));
            prop_assert_eq!(left_key.cmp(&right_key), typed_order(&left, &right, 7));
            prop_assert_eq!(left_key == right_key, left_key.bytes() == right_key.bytes());
            let is_prefix = left_key.starts_with(&right_key) || right_key.starts_with(&left_key);
            prop_assert_eq!(is_prefix, left_key == right_key, "no key is a prefix of another");
        }

        #[test]
        fn decoding_inverts_encoding(columns in columns()) {
            let table = table();
            let key = table.key(&values(&columns)[..]).unwrap();
            let (bool, first, int32, bytes, float, int64, last) = columns;
            let expected = vec![
                KeyValue::Bool(bool),
                KeyValue::Text(first),
                KeyValue::Int32(int32),
                KeyValue::Bytes(bytes),
                KeyValue::Float64(float),
                KeyValue::Int64(int64),
                KeyValue::Text(last),
            ];
            let decoded = table.key_values(&key).unwrap();
            // By their text, since NaN is not equal to itself.
            prop_assert_eq!(format!("{decoded:?}"), format!("{expected:?}"));
            prop_assert_eq!(Key::from_bytes(&key), key.clone());
            let wire = postcard::to_allocvec(&key).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Key>(&wire).unwrap(), key);
        }

        #[test]
        fn decoding_survives_any_bytes(bytes in bytes(), cut in 0..80_usize, columns in columns()) {
            let table = table();
            let key = table.key(&values(&columns)[..]).unwrap();
            table.check_key(&key).unwrap();
            for malformed in [&key[..cut.min(key.len())], &[&key[..], &bytes[..]].concat(), &bytes] {
                if malformed != key.bytes() {
                    prop_assert!(table.key_values(malformed).is_err());
                    prop_assert!(table.check_key(malformed).is_err());
                }
            }
        }

        #[test]
        fn a_prefix_covers_the_keys_that_start_with_it((left, right) in pair(), prefix in 0..8_usize) {
            let table = table();
            let range = table.prefix(&values(&left)[..prefix]).unwrap();
            let key = table.key(&values(&right)[..]).unwrap();
            prop_assert_eq!(range.contains(&key), typed_order(&left, &right, prefix).is_eq());
            prop_assert!(range.contains(&table.key(&values(&left)[..]).unwrap()));
            prop_assert!(table.all().covers(&range) && !range.is_empty());
        }

        #[test]
        fn a_range_goes_from_one_prefix_to_another(
            (from, to) in pair(),
            columns in columns(),
            prefix in 1..8_usize,
        ) {
            let table = table();
            let range = table.range(&values(&from)[..prefix], &values(&to)[..prefix]).unwrap();
            let inside = |columns| {
                typed_order(&from, columns, prefix).is_le() && typed_order(columns, &to, prefix).is_lt()
            };
            for candidate in [&from, &to, &columns] {
                let key = table.key(&values(candidate)[..]).unwrap();
                prop_assert_eq!(range.contains(&key), inside(candidate));
            }
            prop_assert_eq!(range.is_empty(), typed_order(&from, &to, prefix).is_ge());
        }

        #[test]
        fn ranges_are_cut_at_a_key((left, right) in pair()) {
            let table = table();
            let encode = |columns| table.key(&values(columns)[..]).unwrap();
            let (left, right, all) = (encode(&left), encode(&right), table.all());
            prop_assert_eq!(all.up_to(&left).contains(&right), right <= left);
            prop_assert_eq!(all.after(&left).contains(&right), right > left);
            prop_assert_eq!(KeyRange::one(&left).contains(&right), right == left);
            prop_assert!(all.covers(&all.up_to(&left)) && all.covers(&all.after(&left)));
        }
    }

    #[test]
    fn keys_longer_than_the_limit_are_refused() {
        let mut schema = SchemaBuilder::new();
        let table = Table::builder("t").column("c", ColumnType::Bytes).primary_key(&["c"]);
        let table = schema.table(table).unwrap();
        let longest = vec![7; KEY_BYTES_MAX - 4];
        let key = table.key((longest.as_slice(),)).unwrap();
        assert_eq!(key.len(), KEY_BYTES_MAX);
        let longer = vec![7; KEY_BYTES_MAX - 3];
        let error = table.key((longer.as_slice(),)).unwrap_err();
        assert_eq!(error, DataError::KeyTooLong(KEY_BYTES_MAX + 1));
        assert!(error.to_string().contains("shorten"), "{error}");
        // Escapes count.
        assert!(table.key((vec![0; KEY_BYTES_MAX / 2],)).is_err());
        let wire = postcard::to_allocvec(&Key::from_bytes(&[7; KEY_BYTES_MAX + 2])).unwrap();
        assert!(postcard::from_bytes::<Key>(&wire).is_err());
    }

    #[test]
    fn bounds_that_are_too_long_part_the_same_keys() {
        let mut schema = SchemaBuilder::new();
        let table = Table::builder("t").column("c", ColumnType::Bytes).primary_key(&["c"]);
        let table = schema.table(table).unwrap();
        let longest = KEY_BYTES_MAX - 4;
        let value = |length: usize, last: u8| [vec![7; length - 1], vec![last]].concat();
        let stored: Vec<Vec<u8>> = [1, 2, longest - 2, longest - 1, longest]
            .into_iter()
            .flat_map(|length| [0, 1, 6, 7, 8, 255].map(|last| value(length, last)))
            .filter(|value| table.key((value.as_slice(),)).is_ok())
            .collect();
        for length in longest - 2..longest + 6 {
            for last in [0, 1, 6, 7, 8, 255] {
                let bound = value(length, last);
                let none: &[Value<'_>] = &[];
                let below = table.range(none, (bound.as_slice(),)).unwrap();
                let above = KeyRange { start: below.end.clone(), end: table.all().end };
                assert!(below.end.len() <= KEY_BYTES_MAX + 1);
                for value in &stored {
                    let key = table.key((value.as_slice(),)).unwrap();
                    assert_eq!(below.contains(&key), *value < bound, "{length} {last} {value:?}");
                    assert_eq!(above.contains(&key), *value >= bound);
                    assert_eq!(table.prefix((bound.as_slice(),)).unwrap().contains(&key), *value == bound);
                }
            }
        }
        assert!(table.prefix((value(longest + 1, 7).as_slice(),)).unwrap().is_empty());
    }

    #[test]
    fn ranges_cut_at_the_longest_key_travel() {
        let mut schema = SchemaBuilder::new();
        let table = Table::builder("t").column("c", ColumnType::Bytes).primary_key(&["c"]);
        let table = schema.table(table).unwrap();
        let key = table.key((vec![7; KEY_BYTES_MAX - 4],)).unwrap();
        for range in [table.all().up_to(&key), table.all().after(&key), KeyRange::one(&key)] {
            let wire = postcard::to_allocvec(&range).unwrap();
            assert_eq!(postcard::from_bytes::<KeyRange>(&wire).unwrap(), range);
        }
    }

    #[test]
    fn keys_take_all_columns_and_no_nulls() {
        let table = table();
        assert!(matches!(table.key((true,)), Err(DataError::Count { expected: 7, given: 1, .. })));
        assert!(matches!(table.prefix((1_i32,)), Err(DataError::Type { given: ColumnType::Int32, .. })));
        assert!(matches!(table.prefix((None::<bool>,)), Err(DataError::Null(column)) if column == "c0"));
        let many = [Value::Bool(true); 8];
        assert!(table.prefix(&many[..1]).is_ok() && table.prefix(&many[..]).is_err());
    }
}
