//! Tables and their indexes, as plans know them.

use serde::{Deserialize, Serialize};

use super::Expression;
use crate::types::{Datum, SqlType};

/// A column as plans know it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ColumnShape {
    /// For errors.
    pub name: String,
    /// The type.
    pub data_type: SqlType,
    /// Whether it must have a value.
    pub not_null: bool,
    /// The value in rows that were written before there was the column.
    pub missing: Datum,
}

/// How far an index is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum IndexState {
    /// Statements keep it up, but rows from before it may not be in it: it is not read.
    Building,
    /// It has all rows.
    Ready,
}

/// An index as plans know it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IndexShape {
    /// For errors.
    pub name: String,
    /// Where its entries are.
    pub storage: u32,
    /// The columns, by number.
    pub columns: Vec<u16>,
    /// Whether no two rows may have the same values, none of them null.
    pub unique: bool,
    /// Whether its entries hold whole rows: it is to become the table.
    pub covering: bool,
    /// How far it is.
    pub state: IndexState,
}

/// A condition that every row of a table fulfils.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CheckShape {
    /// For errors.
    pub name: String,
    /// The condition, over the row.
    pub condition: Expression,
}

/// The value that a generated column always has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GeneratedShape {
    /// The column, by number.
    pub column: u16,
    /// Its value, over the row.
    pub value: Expression,
}

/// A table as plans know it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TableShape {
    /// For errors.
    pub name: String,
    /// Where its rows are.
    pub storage: u32,
    /// Whether every partition has all rows.
    pub replicated: bool,
    /// How many of the key's columns decide where a row is; see [`keys`](crate::keys).
    pub placing: u8,
    /// All columns; those that were dropped too, so that numbers stay.
    pub columns: Vec<ColumnShape>,
    /// The columns of the primary key. Without one, rows have a hidden key.
    pub key: Vec<u16>,
    /// The name of the primary key, for errors.
    pub key_name: String,
    /// The indexes.
    pub indexes: Vec<IndexShape>,
    /// The checks.
    pub checks: Vec<CheckShape>,
    /// The values of generated columns, which follow from those of others.
    pub generated: Vec<GeneratedShape>,
    /// Whether its rows are read with their keys, in one more column.
    pub gives_key: bool,
}
