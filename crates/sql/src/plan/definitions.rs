//! What plans say of definitions.

use serde::{Deserialize, Serialize};

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
