//! Buffered writes of a running transaction: seen by its own reads, applied together at the end or dropped.

use super::effects::Effect;
use crate::data::row::FixedValue;
use crate::data::{KeyRange, Schema};
use crate::hash::{FastSet, key_hash};
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
    /// The hashes of the keys of the first so many operations, where there are many.
    hashes: FastSet<u64>,
    hashed: usize,
}

/// Operations up to which looking at all of them is as fast as hashes.
const SEARCHED_OPERATIONS_MAX: usize = 32;

impl WriteBuffer {
    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.bytes.clear();
        self.values.clear();
        self.hashes.clear();
        self.hashed = 0;
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
            return Err(Stop::Invalid(format!(
                "a transaction may write at most {WRITE_BYTES_MAX} bytes: split it"
            )));
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

    /// Whether a key in a range was written.
    pub(crate) fn wrote(&mut self, key: &[u8], footprint: &Footprint) -> bool {
        if self.operations.len() > SEARCHED_OPERATIONS_MAX {
            let hash = |(target, _): &(Target, Operation)| match target {
                Target::Entry(index) => footprint.keys()[*index].hash,
                Target::InRange { hash, .. } => *hash,
            };
            self.hashes.extend(self.operations[self.hashed..].iter().map(hash));
            self.hashed = self.operations.len();
            if !self.hashes.contains(&key_hash(key)) {
                return false;
            }
        }
        self.operations.iter().any(|(target, _)| self.key(*target, footprint) == key)
    }

    /// The row of a key with the transaction's own writes applied to `base`.
    pub(crate) fn overlay(
        &mut self,
        key: &[u8],
        base: Option<&[u8]>,
        footprint: &Footprint,
        schema: &Schema,
    ) -> Result<Option<&[u8]>, Stop> {
        let mut overlay = std::mem::take(&mut self.overlay);
        overlay.clear();
        let mut exists = base.is_some();
        overlay.extend_from_slice(base.unwrap_or_default());
        for (target, operation) in &self.operations {
            if self.key(*target, footprint) != key {
                continue;
            }
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

    /// The distinct keys in a range that were written.
    pub(crate) fn keys_in(&self, range: &KeyRange, footprint: &Footprint) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = self
            .operations
            .iter()
            .map(|(target, _)| self.key(*target, footprint))
            .filter(|key| range.contains(key))
            .map(<[u8]>::to_vec)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}
