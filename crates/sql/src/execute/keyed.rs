//! Values as bytes that are equal if the values are, and sets and maps of them.

use ordain_db::hash::{Seed, SeededMap, SeededSet};

use super::work::work_of_comparing;
use super::{Failure, Run};
use crate::error::SqlError;
use crate::plan::Expression;
use crate::types::Datum;
use crate::types::compare::hash_bytes;

/// Bytes that a key in a map takes besides its own.
pub(super) const HELD_PER_KEY: usize = 64;

/// What there is for each key. No order of its own decides anything.
pub(super) type KeyMap<V> = SeededMap<Vec<u8>, V>;

/// Keys, in no order.
pub(super) type KeySet = SeededSet<Vec<u8>>;

/// Bytes that are equal if values are, nulls included.
pub(super) fn hashed(values: &[Datum]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(10 * values.len());
    values.iter().for_each(|value| hash_bytes(value, &mut bytes));
    bytes
}

impl Run<'_, '_> {
    /// The same as [`hashed`], which is work, in place of other bytes.
    pub(super) fn hash(&mut self, values: &[Datum], key: &mut Vec<u8>) -> Result<(), SqlError> {
        self.work(work_of_comparing(values))?;
        key.clear();
        values.iter().for_each(|value| hash_bytes(value, key));
        Ok(())
    }

    /// The bytes of values over a row, in place of others. Whether none of them is null.
    pub(super) fn hash_key<'e>(
        &mut self,
        values: impl Iterator<Item = &'e Expression>,
        row: &[Datum],
        key: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        let mut is_known = true;
        key.clear();
        for value in values {
            let value = self.operand(value, row)?;
            self.work(work_of_comparing([&*value]))?;
            is_known &= !value.is_null();
            hash_bytes(&value, key);
        }
        Ok(is_known)
    }

    /// What the places of keys in maps follow from: clients do not know it before.
    pub(super) fn hash_seed(&self) -> Seed {
        self.inputs.hash_seed()
    }
}

/// Keys that have come.
pub(super) struct Seen {
    keys: KeySet,
    /// Bytes that are held for them.
    pub(super) bytes: usize,
    /// For the key of a row.
    key: Vec<u8>,
}

impl Seen {
    /// None so far.
    pub(super) fn new(run: &Run<'_, '_>) -> Seen {
        Seen { keys: KeySet::with_hasher(run.hash_seed()), bytes: 0, key: Vec::new() }
    }

    /// Whether a row is new.
    pub(super) fn is_new(&mut self, run: &mut Run<'_, '_>, row: &[Datum]) -> Result<bool, SqlError> {
        let mut key = std::mem::take(&mut self.key);
        run.hash(row, &mut key)?;
        let is_new = self.insert(run, &key);
        self.key = key;
        is_new
    }

    /// Whether a key is new.
    pub(super) fn insert(&mut self, run: &mut Run<'_, '_>, key: &[u8]) -> Result<bool, SqlError> {
        run.work(4 + key.len() as u64 / 16)?;
        if self.keys.contains(key) {
            return Ok(false);
        }
        let bytes = key.len() + HELD_PER_KEY;
        run.hold(bytes)?;
        self.bytes += bytes;
        self.keys.insert(key.to_vec());
        Ok(true)
    }
}

/// Adds one to what there is for a key; whether it is the first.
pub(super) fn count(counts: &mut KeyMap<usize>, key: &[u8]) -> bool {
    match counts.get_mut(key) {
        Some(count) => {
            *count += 1;
            false
        }
        None => {
            counts.insert(key.to_vec(), 1);
            true
        }
    }
}
