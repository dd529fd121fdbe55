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
    /// The columns, by number; those from [`COMPUTED`] on are computed.
    pub columns: Vec<u16>,
    /// The condition of the rows that are in it, over the row; all are if there is none.
    pub predicate: Option<Expression>,
    /// Whether no two rows that are in it may have the same values, none of them null.
    pub unique: bool,
    /// Whether its entries hold whole rows: it is to become the table.
    pub covering: bool,
    /// How far it is.
    pub state: IndexState,
}

/// The number of the first of the values that indexes compute from a row: above those of all columns.
pub const COMPUTED: u16 = 1 << 15;

/// A value that indexes compute from a row, and that has a number like a column: see [`COMPUTED`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComputedShape {
    /// For errors.
    pub text: String,
    /// The type.
    pub data_type: SqlType,
    /// The value, over the row. It depends on nothing else.
    pub expression: Expression,
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
    /// What the indexes compute.
    pub computed: Vec<ComputedShape>,
    /// The checks.
    pub checks: Vec<CheckShape>,
    /// The values of generated columns, which follow from those of others.
    pub generated: Vec<GeneratedShape>,
    /// Whether its rows are read with their keys, in one more column.
    pub gives_key: bool,
}

impl TableShape {
    /// The value that has the number of a column, if it is one that indexes compute.
    pub fn computed(&self, number: u16) -> Option<&ComputedShape> {
        self.computed.get(usize::from(number.checked_sub(COMPUTED)?))
    }

    /// The name of a column or the text of a computed value, and its type.
    pub fn described(&self, number: u16) -> Option<(&str, SqlType)> {
        match self.computed(number) {
            Some(computed) => Some((&computed.text, computed.data_type)),
            None => self.columns.get(usize::from(number)).map(|column| (&*column.name, column.data_type)),
        }
    }

    /// Whether something holds for all columns that the entries of an index depend on.
    pub fn all_read(&self, index: &IndexShape, mut holds: impl FnMut(u16) -> bool) -> bool {
        let mut all = true;
        let mut expressions = index.predicate.iter().collect::<Vec<&Expression>>();
        for number in &index.columns {
            match self.computed(*number) {
                Some(computed) => expressions.push(&computed.expression),
                None => all &= holds(*number),
            }
        }
        for expression in expressions {
            expression.visit(0, &mut |part, _| {
                if let Expression::Column(column) = part {
                    all &= holds(*column);
                }
            });
        }
        all
    }
}
