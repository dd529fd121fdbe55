//! What a procedure sees of the database while it runs.

use super::Stop;
use crate::data::row::FixedValue;
use crate::data::schema::ColumnSelector;
use crate::data::{Key, KeyRange, Row, Schema, Table, Value, Values};

/// A row found by a scan, with its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The encoded key; decode its columns with [`Table::key_values`].
    pub key: Key,
    /// The encoded row; read it with [`Table::read`].
    pub row: Vec<u8>,
}

/// Where a running procedure's reads come from and its writes go to.
///
/// Implemented by execution (footprint checked, remote reads at hand), by reconnaissance (footprint recorded) and by the
/// plain store that benchmarks take their limit from. Each is deterministic: equal reads lead to equal calls.
pub trait Access {
    /// The row of a key, or `None` when there is none; own writes included.
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop>;

    /// Inserts or replaces a row.
    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop>;

    /// Replaces fixed-width columns of the row of `table` with the key; `false` when there is no such row.
    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop>;

    /// Deletes a row if there is one.
    fn delete(&mut self, key: &Key) -> Result<(), Stop>;

    /// The first rows of a range in ascending order of keys, at most `limit`; own writes included.
    fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Found>, Stop>;
}

/// The handle through which a procedure reads and writes.
pub struct Transaction<'a> {
    schema: &'a Schema,
    access: &'a mut dyn Access,
    scratch: &'a mut Vec<u8>,
}

impl<'a> Transaction<'a> {
    /// Lets a procedure run over `access`. `scratch` is a buffer to encode rows in; its content is lost.
    pub fn new(schema: &'a Schema, access: &'a mut dyn Access, scratch: &'a mut Vec<u8>) -> Transaction<'a> {
        Transaction { schema, access, scratch }
    }

    /// Reads the row of a key.
    #[inline]
    pub fn get(&mut self, key: &Key) -> Result<Option<Row<'_>>, Stop> {
        let layout = self.schema.table_of(key)?.layout();
        Ok(self.access.get(key)?.map(|bytes| Row::new(layout, bytes)))
    }

    /// Inserts or replaces the row of a key, given the values of all columns that are not part of the key.
    #[inline]
    pub fn put<V: Values>(&mut self, table: &Table, key: &Key, values: V) -> Result<(), Stop> {
        self.scratch.clear();
        table.layout().encode(values, self.scratch)?;
        self.access.put(key, self.scratch)
    }

    /// Sets some columns of an existing row. Fixed-width columns are replaced in place; `false` when there is no such row.
    #[inline]
    pub fn set<C: ColumnSelector, const COLUMNS: usize>(
        &mut self,
        table: &Table,
        key: &Key,
        values: [(C, Value<'_>); COLUMNS],
    ) -> Result<bool, Stop> {
        let mut fixed = [FixedValue { column: 0, bytes: [0; 8], null: false }; COLUMNS];
        for ((column, value), slot) in values.iter().zip(&mut fixed) {
            match table.layout().fixed_value(column.find(table.layout())?, *value)? {
                Some(value) => *slot = value,
                None => return self.set_any(table, key, &values),
            }
        }
        self.access.replace(table, key, &fixed)
    }

    /// Sets columns of which one has a variable width: the row is written anew.
    fn set_any<C: ColumnSelector>(
        &mut self,
        table: &Table,
        key: &Key,
        values: &[(C, Value<'_>)],
    ) -> Result<bool, Stop> {
        let layout = table.layout();
        let mut changes = Vec::with_capacity(values.len());
        for (column, value) in values {
            changes.push((column.find(layout)?, *value));
        }
        let Some(bytes) = self.access.get(key)? else { return Ok(false) };
        let row = Row::new(layout, bytes);
        let mut all = Vec::with_capacity(layout.column_count());
        for column in 0..layout.column_count() {
            if layout.column(column).is_err() {
                continue;
            }
            let new = changes.iter().rev().find(|(changed, _)| *changed == column);
            all.push(new.map_or_else(|| row.value(column), |(_, value)| Ok(*value))?);
        }
        self.scratch.clear();
        layout.encode(all.as_slice(), self.scratch)?;
        self.access.put(key, self.scratch)?;
        Ok(true)
    }

    /// Deletes the row of a key if there is one.
    pub fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.access.delete(key)
    }

    /// The first rows of a range in ascending order of keys, at most `limit`.
    ///
    /// For a reconnoitred transaction the range is recorded, and protected from phantoms, only as far as it was scanned.
    pub fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Found>, Stop> {
        self.access.scan(range, limit)
    }
}
