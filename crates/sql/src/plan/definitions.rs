//! What plans say of definitions.

use serde::{Deserialize, Serialize};

/// What a plan does to a sequence, besides expressions in it that draw from it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reservation {
    /// Draws its next numbers, one at least and at most so many. They are known by the seed of the statement until the sequence changes
    /// again.
    Draw(u32),
    /// Has the sequence go on after a number that was drawn so, if nothing happened to it since.
    GiveBack {
        /// The number.
        last: i64,
        /// The seed.
        seed: u128,
    },
}

/// A change of a definition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DefinitionChange {
    /// The schema.
    pub schema: String,
    /// The name.
    pub name: String,
    /// The encoded definition; `None` removes it.
    pub definition: Option<Vec<u8>>,
}

/// A definition that a statement relies on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reliance {
    /// The schema.
    pub schema: String,
    /// The name.
    pub name: String,
    /// The digest of its definition; `None` if there must be none.
    pub version: Option<u64>,
}
