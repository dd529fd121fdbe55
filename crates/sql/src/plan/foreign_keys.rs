//! Foreign keys as plans know them.

use serde::{Deserialize, Serialize};

use super::Expression;

/// What becomes of rows that refer to one that goes away, or whose key changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ReferentialAction {
    /// There must be none at the end of the statement.
    NoAction,
    /// There must be none at once, even if another row takes the key.
    Restrict,
    /// They go too, or get the new key.
    Cascade,
    /// They refer to nothing from then on.
    SetNull,
    /// They get the defaults of the columns.
    SetDefault,
}

/// How the rows that refer to a key are found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Search {
    /// Among all rows of the table.
    All,
    /// In a range of an index, or of the primary key.
    Range {
        /// The index by its number in the shape; the primary key if there is none.
        index: Option<u16>,
        /// Its leading columns, as places among those of the foreign key.
        places: Vec<u16>,
    },
}

/// A foreign key as plans know it. A plan has those that its statement must look at, and those that these lead to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ForeignKeyShape {
    /// For errors.
    pub name: String,
    /// The table that refers, by its number in the statement.
    pub table: u16,
    /// The columns that refer.
    pub columns: Vec<u16>,
    /// The table that is referred to, by its number in the statement.
    pub referenced: u16,
    /// The columns that are referred to, in the order of `columns`.
    pub referenced_columns: Vec<u16>,
    /// The unique index of these, by its number in the shape; the primary key if there is none.
    pub target: Option<u16>,
    /// How rows that refer to a key are found.
    pub search: Search,
    /// What happens to them when it is deleted.
    pub on_delete: ReferentialAction,
    /// What happens to them when it is changed.
    pub on_update: ReferentialAction,
    /// Whether it is checked at the end of the transaction, and not at that of the statement.
    pub deferred: bool,
    /// The defaults of the columns, if an action needs them.
    pub defaults: Vec<Expression>,
}
