//! Which columns of tables anybody looks at: scans give no others, so that nothing is spent on them.

use std::collections::BTreeSet;

use super::walk;
use crate::plan::{Expression, Node, SetOperation, SubqueryKind};
use crate::types::Datum;

/// Columns of a row that are looked at.
#[derive(Clone)]
enum Needed {
    All,
    Some(BTreeSet<u16>),
}

impl Needed {
    fn has(&self, column: u16) -> bool {
        match self {
            Needed::All => true,
            Needed::Some(columns) => columns.contains(&column),
        }
    }

    /// With those that expressions over the row look at.
    fn with<'e>(mut self, expressions: impl IntoIterator<Item = &'e Expression>) -> Needed {
        if let Needed::Some(columns) = &mut self {
            for expression in expressions {
                walk::columns(expression, |column| {
                    columns.insert(column);
                });
            }
        }
        self
    }

    /// Those of a part of the row, by their numbers in it.
    fn part(&self, first: u16, width: u16) -> Needed {
        match self {
            Needed::All => Needed::All,
            Needed::Some(columns) => {
                let part = columns.range(first..first.saturating_add(width));
                Needed::Some(part.map(|column| column - first).collect())
            }
        }
    }
}

/// Tells the scans of a query, all of whose columns are needed, what is looked at.
pub(super) fn mark(query: &mut Node) {
    mark_node(query, Needed::All);
    // Each query within an expression is come to once, those within others after these.
    walk::walk_node(query, 0, &mut |expression, _| {
        if let Expression::Subquery { kind, query, .. } = expression {
            let needed = match kind {
                SubqueryKind::Exists => BTreeSet::new(),
                SubqueryKind::Scalar | SubqueryKind::In { .. } | SubqueryKind::Array => BTreeSet::from([0]),
            };
            mark_node(query, Needed::Some(needed));
        }
    });
}

fn mark_node(node: &mut Node, needed: Needed) {
    // What it looks at itself, besides.
    let within = match node {
        Node::Filter { .. } | Node::Scan { .. } | Node::Window { .. } | Node::Sort { .. } => {
            needed.with(node.expressions())
        }
        Node::Limit { ties, .. } => needed.with(&*ties),
        Node::Kept { keys, .. } => needed.with(keys.iter().map(|(own, _)| own)),
        Node::Aggregate { .. } => Needed::Some(BTreeSet::new()).with(node.expressions()),
        Node::Project { expressions, .. } => {
            for (expression, column) in expressions.iter_mut().zip(0..) {
                if !needed.has(column) && matches!(expression, Expression::Column(_)) {
                    *expression = Expression::Constant(Datum::Null);
                }
            }
            Needed::Some(BTreeSet::new()).with(&*expressions)
        }
        // What is equal is decided by all columns.
        Node::Distinct { on, .. } if on.is_empty() => Needed::All,
        Node::Distinct { on, .. } => needed.with(&*on),
        Node::Combine { operation: SetOperation::Union, all: true, .. } => needed,
        // Several places have the rows of one of these, and look at others of their columns.
        Node::Combine { .. } | Node::Recursive { .. } | Node::Once { .. } => Needed::All,
        Node::Join { condition, .. } => needed.with(&*condition),
        Node::Values(_) | Node::Series { .. } | Node::Unnest { .. } | Node::Working(_) => return,
    };
    match node {
        Node::Scan { needed, .. } => {
            *needed = match within {
                Needed::All => None,
                Needed::Some(columns) => Some(columns.into_iter().collect()),
            };
        }
        Node::Join { left, right, widths, equal, dependent, .. } => {
            let mut lefts = within.part(0, widths.0).with(equal.iter().map(|(left, _)| left));
            if let (true, Needed::Some(columns)) = (*dependent, &mut lefts) {
                right.visit(1, &mut |expression, depth| match expression {
                    Expression::Outer { depth: outwards, column } if *outwards == depth => {
                        columns.insert(*column);
                    }
                    _ => {}
                });
            }
            mark_node(left, lefts);
            let rights = within.part(widths.0, widths.1).with(equal.iter().map(|(_, right)| right));
            mark_node(right, rights);
        }
        node => {
            for input in node.inputs_mut() {
                mark_node(input, within.clone());
            }
        }
    }
}
