//! Entries of indexes: which a row has, and what stands in the way of it there.

use std::cell::Cell;

use ordain_db::data::Key;
use ordain_db::procedure::Stop;

use super::evaluate::{Environment, holds};
use super::rows::{index_of, pick};
use super::scalar::within;
use super::work::WORK_DECLARED_MAX;
use super::{Failure, Inputs, Run, encode_row, malformed};
use crate::catalog::locator;
use crate::error::{SqlError, SqlState};
use crate::keys::{ROW_COLUMN, Storages};
use crate::plan::{COMPUTED, ConflictTarget, IndexShape, IndexState, TableShape};
use crate::types::{Datum, Values, Zone};

/// The values by which a row is found in an index; `None` if it is not in it.
pub(super) fn indexed(
    environment: &mut impl Environment,
    shape: &TableShape,
    index: &IndexShape,
    row: &[Datum],
) -> Result<Option<Values>, Failure> {
    if let Some(predicate) = &index.predicate
        && !holds(&environment.value(predicate, row)?)
    {
        return Ok(None);
    }
    let mut values = Values::with_capacity(index.columns.len());
    for number in &index.columns {
        values.push(match shape.computed(*number) {
            Some(computed) => environment.value(&computed.expression, row)?,
            None => row.get(usize::from(*number)).cloned().ok_or_else(|| malformed("column"))?,
        });
    }
    Ok(Some(values))
}

/// The same for who only has the row; the outer `None` if it cannot be computed.
pub fn values_in_index(shape: &TableShape, index: &IndexShape, row: &[Datum]) -> Option<Option<Values>> {
    let (inputs, left) = (Inputs::default(), Cell::new(WORK_DECLARED_MAX));
    within(&inputs, &mut 0, &left, |scalar| indexed(scalar, shape, index, row))
}

/// Whether a changed row has the same entry in an index as before, but for what it says of the row: nothing else is looked at than that
/// all columns on which the entry depends are the same.
pub(super) fn has_same_entry(shape: &TableShape, index: &IndexShape, old: &[Datum], new: &[Datum]) -> bool {
    let is_computed = index.predicate.is_some() || index.columns.iter().any(|column| *column >= COMPUTED);
    shape.all_read(index, |column| {
        let (old, new) = (old.get(usize::from(column)), new.get(usize::from(column)));
        // What is computed of equal values may differ: their texts do, of `1.0` and `1.00`.
        old == new && (!is_computed || old.map(encoded) == new.map(encoded))
    })
}

fn encoded(value: &Datum) -> Vec<u8> {
    encode_row(std::slice::from_ref(value))
}

/// The keys that a row has in some of the unique indexes, as far as they can be told. Nothing is unique in a row that has null there.
pub(super) fn unique_entries(
    storages: &Storages,
    shape: &TableShape,
    row: &[Datum],
    inputs: &Inputs,
    is_wanted: impl Fn(&IndexShape) -> bool,
) -> Result<Vec<Key>, SqlError> {
    let left = Cell::new(WORK_DECLARED_MAX);
    let mut keys = Vec::new();
    for index in shape.indexes.iter().filter(|index| index.unique && is_wanted(index)) {
        let values = within(inputs, &mut 0, &left, |scalar| indexed(scalar, shape, index, row)).flatten();
        if let Some(values) = values.filter(|values| !values.contains(&Datum::Null)) {
            keys.extend(storages.unique(shape, Some(index), &values)?);
        }
    }
    Ok(keys)
}

impl Run<'_, '_> {
    /// The key and content of a row's entry in an index; `None` if it is not in it.
    pub(super) fn entry_of(
        &mut self,
        shape: &TableShape,
        index: &IndexShape,
        key: &Key,
        row: &[Datum],
    ) -> Result<Option<(Key, Vec<u8>)>, Failure> {
        let Some(values) = indexed(self, shape, index, row)? else { return Ok(None) };
        let entry = self.storages.entry(shape, index, &values, key)?;
        let content = if index.covering { encode_row(row) } else { locator(key).to_vec() };
        Ok(Some((entry, content)))
    }

    /// Deletes the entry that a row has in an index, if it has one.
    pub(super) fn delete_entry(
        &mut self,
        shape: &TableShape,
        index: &IndexShape,
        key: &Key,
        row: &[Datum],
    ) -> Result<(), Failure> {
        match self.entry_of(shape, index, key, row) {
            Ok(Some((entry, content))) => {
                // While an index is being built, the entry may be that of another row which is not unique there.
                let is_own = index.state == IndexState::Ready || self.holds_content(&entry, &content)?;
                if is_own { Ok(self.transaction.delete(&entry)?) } else { Ok(()) }
            }
            Ok(None) => Ok(()),
            // It is from before the index, which will not be ready if it comes to such a row.
            Err(Failure::Sql(error))
                if index.state == IndexState::Building && error.state.is_data_exception() =>
            {
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Whether there is an entry with this key and content.
    fn holds_content(&mut self, entry: &Key, content: &[u8]) -> Result<bool, Failure> {
        let Some(row) = self.transaction.get(entry)? else { return Ok(false) };
        Ok(row.byte_string(ROW_COLUMN).map_err(Stop::from)? == content)
    }

    /// The key of the row that stands in the way of one in an index.
    pub(super) fn unique_conflict(
        &mut self,
        shape: &TableShape,
        index: &IndexShape,
        key: &Key,
        row: &[Datum],
    ) -> Result<Option<Key>, Failure> {
        let Some(entry) = self.unique_entry(shape, index, key, row)? else { return Ok(None) };
        if index.covering {
            // Its entries do not say which row they stand for: its own, if that is the same row.
            let there = self.transaction.get(&entry)?.is_some();
            return Ok(there.then_some(entry));
        }
        self.find(shape, &entry)
    }

    /// Where a row needs to be the only one in an index; `None` if it does not.
    pub(super) fn unique_entry(
        &mut self,
        shape: &TableShape,
        index: &IndexShape,
        key: &Key,
        row: &[Datum],
    ) -> Result<Option<Key>, Failure> {
        if !index.unique {
            return Ok(None);
        }
        let values = indexed(self, shape, index, row)?.filter(|values| !values.contains(&Datum::Null));
        Ok(values.map(|values| self.storages.entry(shape, index, &values, key)).transpose()?)
    }

    /// The error of a row whose key is there.
    pub(super) fn duplicate(
        &mut self,
        shape: &TableShape,
        target: ConflictTarget,
        row: &[Datum],
    ) -> Result<SqlError, Failure> {
        let (name, columns, values) = match target {
            ConflictTarget::Index(number) => {
                let index = index_of(shape, number)?;
                (&index.name, &index.columns, indexed(self, shape, index, row)?.unwrap_or_default())
            }
            ConflictTarget::Key | ConflictTarget::Any => (&shape.key_name, &shape.key, pick(row, &shape.key)),
        };
        let shown = key_shown(shape, columns, &values, self.inputs.zone);
        let message = format!("duplicate key value violates unique constraint \"{name}\"");
        Ok(SqlError::new(SqlState::UNIQUE_VIOLATION, message)
            .of_constraint(&shape.name, name)
            .with_detail(format!("Key {shown} already exists.")))
    }
}

/// Columns and their values, as errors show them.
pub(super) fn key_shown(shape: &TableShape, columns: &[u16], values: &[Datum], zone: Zone) -> String {
    let (mut names, mut shown) = (Vec::new(), Vec::new());
    for (place, (column, value)) in columns.iter().zip(values).enumerate() {
        let Some((name, data_type)) = shape.described(*column) else { continue };
        if place > 0 {
            shown.extend_from_slice(b", ");
        }
        names.push(name);
        crate::types::text::format(value, data_type, zone, &mut shown);
    }
    format!("({})=({})", names.join(", "), String::from_utf8_lossy(&shown))
}
