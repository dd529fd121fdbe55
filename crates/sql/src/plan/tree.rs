//! What can be said of a plan's nodes without running them.

use super::{Action, Node, Path};

impl Node {
    /// The queries whose rows it takes, in order; not those within expressions.
    pub fn inputs(&self) -> Vec<&Node> {
        match self {
            Node::Values(_)
            | Node::Scan { .. }
            | Node::Series { .. }
            | Node::Unnest { .. }
            | Node::Working(_) => Vec::new(),
            Node::Recursive { first, step, .. } => vec![first, step],
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Window { input, .. }
            | Node::Sort { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. } => vec![input],
            Node::Join { left, right, .. } | Node::Combine { left, right, .. } => vec![left, right],
        }
    }

    /// Whether the query reads a few rows by their keys, so that it is no dearer as an ordered transaction than over a snapshot.
    pub fn is_short(&self) -> bool {
        match self {
            Node::Scan { path: Path::Keys(keys), .. } => keys.len() <= SHORT_KEYS_MAX,
            Node::Project { input, .. }
            | Node::Filter { input, .. }
            | Node::Limit { input, .. }
            | Node::Sort { input, .. } => input.is_short(),
            _ => false,
        }
    }
}

/// See [`Node::is_short`].
const SHORT_KEYS_MAX: usize = 16;

impl Action {
    /// The query whose rows it gives or writes, if it is of that kind.
    pub fn source(&self) -> Option<&Node> {
        match self {
            Action::Query(source)
            | Action::Insert { source, .. }
            | Action::Update { source, .. }
            | Action::Delete { source, .. } => Some(source),
            _ => None,
        }
    }
}
