//! Buffered writes of a running transaction: seen by its own reads, applied together at the end or dropped.

use std::collections::BTreeMap;
use std::ops::Bound;

use smallvec::SmallVec;

use super::effects::Effect;
use crate::data::row::FixedValue;
use crate::data::{Direction, Key, KeyRange, Schema};
use crate::error::Limit;
use crate::limits::WRITE_BYTES_MAX;
use crate::procedure::{Footprint, Stop};

/// Which key an operation writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A key entry of the footprint.
    Entry(usize),
    /// A key in a declared range; its bytes stand in the buffer.
    InRange { start: usize, length: usize, hash: u64 },
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Put {
        start: usize,
        length: usize,
    },
    /// Of some columns; the values stand in the buffer.
    Replace {
        first: usize,
        count: usize,
    },
    Delete,
}

/// The writes of one run, in program order. Reused from run to run.
#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    operations: Vec<(Target, Operation)>,
    bytes: Vec<u8>,
    values: Vec<FixedValue>,
    /// The state of a row with its writes applied, for the last read of a written key.
    overlay: Vec<u8>,
    /// Where there are many operations: those on each key that decide its row, by their numbers, of the first so many.
    by_key: BTreeMap<Key, SmallVec<[u32; 2]>>,
    /// How many these are.
    indexed: usize,
}

/// Operations up to which looking at all of them is as fast as an index.
const SEARCHED_OPERATIONS_MAX: usize = 32;

impl WriteBuffer {
    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.bytes.clear();
        self.values.clear();
        self.by_key.clear();
        self.indexed = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(crate) fn operations(&self) -> &[(Target, Operation)] {
        &self.operations
    }

    pub(crate) fn bytes(&self, start: usize, length: usize) -> &[u8] {
        &self.bytes[start..start + length]
    }

    pub(crate) fn target_in_range(&mut self, key: &[u8], hash: u64) -> Target {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        Target::InRange { start, length: key.len(), hash }
    }

    #[inline]
    pub(crate) fn put(&mut self, target: Target, row: &[u8]) -> Result<(), Stop> {
        let start = self.bytes.len();
        if start + row.len() > WRITE_BYTES_MAX {
            let problem = format!("a transaction may write at most {WRITE_BYTES_MAX} bytes: split it");
            return Err(Stop::Exceeds(Limit::Writes, problem));
        }
        self.bytes.extend_from_slice(row);
        self.operations.push((target, Operation::Put { start, length: row.len() }));
        Ok(())
    }

    #[inline]
    pub(crate) fn replace(&mut self, target: Target, values: &[FixedValue]) {
        let first = self.values.len();
        self.values.extend_from_slice(values);
        self.operations.push((target, Operation::Replace { first, count: values.len() }));
    }

    pub(crate) fn delete(&mut self, target: Target) {
        self.operations.push((target, Operation::Delete));
    }

    /// The values of a replacement; none for other operations.
    pub(crate) fn values(&self, operation: &Operation) -> &[FixedValue] {
        match operation {
            Operation::Replace { first, count } => &self.values[*first..first + count],
            Operation::Put { .. } | Operation::Delete => &[],
        }
    }

    /// What an operation does to its row.
    #[inline]
    pub(crate) fn effect(&self, operation: &Operation) -> Effect<'_> {
        match operation {
            Operation::Put { start, length } => Effect::Put(self.bytes(*start, *length)),
            Operation::Replace { .. } => Effect::Replace(self.values(operation)),
            Operation::Delete => Effect::Delete,
        }
    }

    /// The key of a target.
    pub(crate) fn key<'a>(&'a self, target: Target, footprint: &'a Footprint) -> &'a [u8] {
        match target {
            Target::Entry(index) => footprint.key(&footprint.keys()[index]),
            Target::InRange { start, length, .. } => self.bytes(start, length),
        }
    }

    /// Brings the index up to date; whether there is one.
    fn index(&mut self, footprint: &Footprint) -> bool {
        if self.operations.len() <= SEARCHED_OPERATIONS_MAX {
            return false;
        }
        for number in self.indexed..self.operations.len() {
            let (target, operation) = self.operations[number];
            let on_key = self.by_key.entry(Key::from_bytes(self.key(target, footprint))).or_default();
            if !matches!(operation, Operation::Replace { .. }) {
                // What was before it is gone.
                on_key.clear();
            }
            on_key.push(number as u32);
        }
        self.indexed = self.operations.len();
        true
    }

    /// Whether a key in a range was written.
    pub(crate) fn wrote(&mut self, key: &[u8], footprint: &Footprint) -> bool {
        if self.index(footprint) {
            return self.by_key.contains_key(key);
        }
        self.operations.iter().any(|(target, _)| self.key(*target, footprint) == key)
    }

    /// The numbers of the operations on a key that decide its row, in program order.
    fn on_key(&mut self, key: &[u8], footprint: &Footprint) -> SmallVec<[u32; 2]> {
        if self.index(footprint) {
            return self.by_key.get(key).cloned().unwrap_or_default();
        }
        let numbered = (0..).zip(&self.operations);
        numbered
            .filter(|(_, (target, _))| self.key(*target, footprint) == key)
            .map(|(number, _)| number)
            .collect()
    }

    /// The row of a key with the transaction's own writes applied to `base`.
    pub(crate) fn overlay(
        &mut self,
        key: &[u8],
        base: Option<&[u8]>,
        footprint: &Footprint,
        schema: &Schema,
    ) -> Result<Option<&[u8]>, Stop> {
        let operations = self.on_key(key, footprint);
        let mut overlay = std::mem::take(&mut self.overlay);
        overlay.clear();
        let mut exists = base.is_some();
        overlay.extend_from_slice(base.unwrap_or_default());
        for number in operations {
            let operation = &self.operations[number as usize].1;
            match operation {
                Operation::Put { start, length } => {
                    overlay.clear();
                    overlay.extend_from_slice(self.bytes(*start, *length));
                    exists = true;
                }
                Operation::Replace { .. } => {
                    let layout = schema.table_of(key)?.layout();
                    self.values(operation).iter().for_each(|value| layout.replace(&mut overlay, value));
                }
                Operation::Delete => exists = false,
            }
        }
        self.overlay = overlay;
        Ok(exists.then_some(self.overlay.as_slice()))
    }

    /// The first so many of the distinct keys in a range that were written.
    pub(crate) fn keys_in(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        most: usize,
        footprint: &Footprint,
    ) -> Vec<Key> {
        if range.start >= range.end {
            return Vec::new();
        }
        if self.index(footprint) {
            let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
            let keys = direction.of_ascending(self.by_key.range::<[u8], _>(bounds));
            return keys.take(most).map(|(key, _)| key.clone()).collect();
        }
        let keys = self.operations.iter().map(|(target, _)| self.key(*target, footprint));
        let mut keys: Vec<Key> = keys.filter(|key| range.contains(key)).map(Key::from_bytes).collect();
        keys.sort_unstable_by(|left, right| direction.compare(left, right));
        keys.dedup();
        keys.truncate(most);
        keys
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::SchemaBuilder;
    use crate::hash::key_hash;

    proptest! {
        /// With few operations and with so many that they have an index, whenever that is asked for.
        #[test]
        fn it_is_as_a_map_of_keys(
            operations in proptest::collection::vec((0..20_u8, proptest::option::of(0..9_u8), any::<bool>()), 0..100),
            start in 0..20_u8,
            end in 0..20_u8,
            most in 0..20_usize,
        ) {
            let (schema, footprint) = (SchemaBuilder::new().finish(), Footprint::default());
            let (mut buffer, mut written) = (WriteBuffer::default(), BTreeMap::new());
            let range = KeyRange { start: Key::from_bytes(&[start]), end: Key::from_bytes(&[end]) };
            for _ in 0..2 {
                for (key, put, asks) in &operations {
                    let bytes = [*key];
                    let target = buffer.target_in_range(&bytes, key_hash(&bytes));
                    match put {
                        Some(row) => buffer.put(target, &[*row]).unwrap(),
                        None => buffer.delete(target),
                    }
                    written.insert(*key, *put);
                    if *asks {
                        prop_assert!(buffer.wrote(&bytes, &footprint));
                    }
                }
                for key in 0..20 {
                    prop_assert_eq!(buffer.wrote(&[key], &footprint), written.contains_key(&key));
                    let row = buffer.overlay(&[key], Some(&[77]), &footprint, &schema).unwrap();
                    let expected = written.get(&key).copied().unwrap_or(Some(77));
                    prop_assert_eq!(row, expected.as_ref().map(std::slice::from_ref));
                }
                let inside = written.keys().filter(|key| (start..end).contains(key));
                let inside: Vec<Key> = inside.map(|key| Key::from_bytes(&[*key])).collect();
                for direction in [Direction::Ascending, Direction::Descending] {
                    let first: Vec<Key> = direction.of_ascending(inside.iter().cloned()).take(most).collect();
                    prop_assert_eq!(buffer.keys_in(&range, direction, most, &footprint), first);
                }
                buffer.clear();
                written.clear();
            }
        }
    }
}
