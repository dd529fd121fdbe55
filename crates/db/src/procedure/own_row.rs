//! What a functor sees: the row of its own key, and nothing else.

use super::{Arithmetic, Stop, Transaction};
use crate::data::schema::ColumnSelector;
use crate::data::{Key, Row, Table, Value, Values};

/// The row of one key, through which a [functor](super::Procedure::functor) reads it and writes it. There is no way to another key, so
/// that what a functor does depends on the key's own row and on the arguments alone (Fan and Golab, §IV-B).
///
/// A run gets one from [`Transaction::own_row`] to do to a key what the functor does.
pub struct OwnRow<'a> {
    transaction: Transaction<'a>,
    table: &'a Table,
    key: &'a Key,
}

impl<'a> OwnRow<'a> {
    pub(super) fn new(transaction: Transaction<'a>, table: &'a Table, key: &'a Key) -> OwnRow<'a> {
        OwnRow { transaction, table, key }
    }

    /// The key.
    pub fn key(&self) -> &Key {
        self.key
    }

    /// Its table.
    pub fn table(&self) -> &Table {
        self.table
    }

    /// The row, if there is one; what was written through this handle included.
    #[inline]
    pub fn get(&mut self) -> Result<Option<Row<'_>>, Stop> {
        self.transaction.get(self.key)
    }

    /// Inserts or replaces the row, given the values of all columns that are not part of the key.
    #[inline]
    pub fn put<V: Values>(&mut self, values: V) -> Result<(), Stop> {
        self.transaction.put(self.table, self.key, values)
    }

    /// Sets some columns of the row; `false` when there is none. See [`Transaction::set`].
    #[inline]
    pub fn set<C: ColumnSelector, const COLUMNS: usize>(
        &mut self,
        values: [(C, Value<'_>); COLUMNS],
    ) -> Result<bool, Stop> {
        self.transaction.set(self.table, self.key, values)
    }

    /// Changes an integer column of the row; `false` where nothing changes. See [`Transaction::change`].
    #[inline]
    pub fn change<C: ColumnSelector>(&mut self, column: C, operation: Arithmetic) -> Result<bool, Stop> {
        self.transaction.change(self.table, self.key, column, operation)
    }

    /// Deletes the row if there is one.
    pub fn delete(&mut self) -> Result<(), Stop> {
        self.transaction.delete(self.key)
    }
}
