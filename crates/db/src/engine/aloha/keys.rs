//! Which keys have versions that the storage does not have, in the order of keys where somebody asks by ranges.
//!
//! To keep keys in order costs, so that it is done only in tables in which ranges are read: from the first such read on.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::ranges::table_of;
use crate::data::KeyRange;
use crate::hash::FastMap;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Keys {
    tables: FastMap<u16, KeysOfTable>,
}

#[derive(Debug, Default)]
struct KeysOfTable {
    count: usize,
    /// The keys with their hashes, once a range of the table has been read.
    ordered: Option<BTreeMap<Vec<u8>, u64>>,
}

impl Keys {
    /// A key has versions.
    #[inline]
    pub(super) fn enter(&mut self, key: &[u8], hash: u64) {
        let table = self.tables.entry(table_of(key)).or_default();
        table.count += 1;
        if let Some(ordered) = &mut table.ordered {
            ordered.insert(key.to_vec(), hash);
        }
    }

    /// It has none any more.
    #[inline]
    pub(super) fn leave(&mut self, key: &[u8]) {
        let Some(table) = self.tables.get_mut(&table_of(key)) else { return };
        table.count -= 1;
        if let Some(ordered) = &mut table.ordered {
            ordered.remove(key);
        }
    }

    /// The keys in a range, in order, each with its hash. `all` gives the keys of all tables: it is asked if the range is the first of its
    /// table that is read, and there are keys.
    pub(super) fn within<'a, 'k, I: Iterator<Item = (&'k [u8], u64)>>(
        &'a mut self,
        range: &KeyRange,
        all: impl FnOnce() -> I,
    ) -> impl Iterator<Item = (&'a [u8], u64)> {
        let number = table_of(range.start.bytes());
        let table = self.tables.entry(number).or_default();
        let count = table.count;
        let ordered = table.ordered.get_or_insert_with(|| {
            let keys = (count > 0).then(all).into_iter().flatten();
            keys.filter(|(key, _)| table_of(key) == number).map(|(key, hash)| (key.to_vec(), hash)).collect()
        });
        let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
        ordered.range::<[u8], _>(bounds).map(|(key, hash)| (key.as_slice(), *hash))
    }
}
