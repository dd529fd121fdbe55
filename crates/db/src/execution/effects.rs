//! What a transaction does to one row, and how the storage gets it.

use crate::data::Schema;
use crate::data::row::FixedValue;
use crate::position::Position;
use crate::storage::{RecordId, Storage};

/// The row that an effect is for, and the version that it makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    /// Where the newest version is, if that is known.
    pub(crate) known: Option<RecordId>,
    pub(crate) position: Position,
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect<'a> {
    /// It is this row.
    Put(&'a [u8]),
    /// Some of its columns have these values; there is such a row.
    Replace(&'a [FixedValue]),
    /// There is none.
    Delete,
}

impl Effect<'_> {
    /// Does it to the newest version of a row. `change` is a buffer whose content is lost.
    ///
    /// Digests of what was written count a replacement by its values and not by the row: so the same effects must be applied on each replica.
    #[inline]
    pub(crate) fn apply(
        self,
        place: Place<'_>,
        schema: &Schema,
        storage: &mut dyn Storage,
        change: &mut Vec<u8>,
    ) -> Applied {
        let Place { key, hash, known, position } = place;
        match self {
            Effect::Put(row) => Applied::At(storage.put(key, hash, row, position)),
            Effect::Delete => {
                storage.delete(key, hash, position);
                Applied::Gone
            }
            Effect::Replace(values) => {
                let Some(record) = known.or_else(|| storage.locate(key, hash)) else {
                    return Applied::Missed;
                };
                let Ok(table) = schema.table_of(key) else { return Applied::Missed };
                change.clear();
                for value in values {
                    change.extend_from_slice(&value.column.to_le_bytes());
                    change.push(u8::from(value.null));
                    change.extend_from_slice(&value.bytes);
                }
                let row = storage.modify_by(record, hash, change, position);
                values.iter().for_each(|value| table.layout().replace(row, value));
                Applied::At(record)
            }
        }
    }
}

/// What came of an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Applied {
    /// The row is there.
    At(RecordId),
    /// The row is gone.
    Gone,
    /// There was no row to change.
    Missed,
}
