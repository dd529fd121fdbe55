//! Which columns anybody looks at: scans of tables give no others, and queries within others compute no others, so that nothing is spent on
//! them, neither there nor on the way.

use std::collections::BTreeSet;

use super::walk;
use crate::plan::{Expression, Node, SetOperation, SubqueryKind};

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

/// Which of the columns that a node had are left, in order; all of them if that is not said.
type Left = Option<Vec<u16>>;

/// The number that a column has among those that are left.
fn number_in(left: &[u16], column: u16) -> u16 {
    left.partition_point(|known| *known < column) as u16
}

/// Has the scans of a query, all of whose columns are needed, give no columns but those that somebody looks at. What is above them has the
/// numbers that the columns have then.
pub(super) fn narrow(query: &mut Node) {
    narrow_node(query, Needed::All);
    // Each query within an expression is come to once, those within others after these.
    walk::walk_node(query, 0, &mut |expression, _| {
        if let Expression::Subquery { kind, query, .. } = expression {
            // The first column stays the first.
            let needed = match kind {
                SubqueryKind::Exists => BTreeSet::new(),
                SubqueryKind::Scalar | SubqueryKind::In { .. } | SubqueryKind::Array => BTreeSet::from([0]),
            };
            narrow_node(query, Needed::Some(needed));
        }
    });
}

/// Leaves out columns that are not needed, where that is to be had; none if all are needed.
fn narrow_node(node: &mut Node, needed: Needed) -> Left {
    let within = match node {
        Node::Scan { .. } => return narrow_scan(node, needed),
        Node::Project { .. } => return narrow_project(node, &needed),
        Node::Join { .. } => return narrow_join(node, needed),
        Node::Combine { operation: SetOperation::Union, all: true, .. } => return narrow_union(node, needed),
        Node::Filter { .. } | Node::Sort { .. } => needed.with(node.expressions()),
        Node::Limit { ties, .. } => needed.with(&*ties),
        Node::Kept { keys, .. } => needed.with(keys.iter().map(|(own, _)| own)),
        Node::Window { width, .. } => needed.part(0, *width).with(node.expressions()),
        Node::Aggregate { .. } => Needed::Some(BTreeSet::new()).with(node.expressions()),
        Node::Distinct { on, .. } if !on.is_empty() => needed.with(&*on),
        // What is equal is decided by all columns; several places have the rows of the others, and look at others of their columns.
        Node::Distinct { .. } | Node::Combine { .. } | Node::Recursive { .. } | Node::Once { .. } => {
            Needed::All
        }
        Node::Values(_) | Node::Series { .. } | Node::Unnest { .. } | Node::Working(_) => return None,
    };
    let mut left = None;
    for input in node.inputs_mut() {
        left = narrow_node(input, within.clone());
    }
    let mut left = left?;
    let number = |column| number_in(&left, column);
    walk::walk_own(node, 0, &mut |expression, depth| walk::renumber_one(expression, depth, &number));
    match node {
        Node::Aggregate { .. } => None,
        Node::Window { width, calls, .. } => {
            let behind = *width..*width + calls.len() as u16;
            *width = left.len() as u16;
            left.extend(behind);
            Some(left)
        }
        _ => Some(left),
    }
}

fn narrow_scan(node: &mut Node, wanted: Needed) -> Left {
    let Node::Scan { filter, needed, .. } = node else { return None };
    let Needed::Some(columns) = wanted.with(&*filter) else { return None };
    let left: Vec<u16> = columns.into_iter().collect();
    filter.iter_mut().for_each(|filter| walk::renumber(filter, &|column| number_in(&left, column)));
    *needed = Some(left.clone());
    Some(left)
}

fn narrow_project(node: &mut Node, needed: &Needed) -> Left {
    let Node::Project { input, expressions } = node else { return None };
    let count = expressions.len();
    // Others draw numbers. What would fail does not, as nobody asks for it.
    let goes = |expression: &Expression| !expression.is_volatile();
    let (kept, left): (Vec<Expression>, Vec<u16>) = std::mem::take(expressions)
        .into_iter()
        .zip(0..)
        .filter(|(expression, column)| needed.has(*column) || !goes(expression))
        .unzip();
    *expressions = kept;
    let within = Needed::Some(BTreeSet::new()).with(&*expressions);
    if let Some(inner) = narrow_node(input, within) {
        expressions.iter_mut().for_each(|kept| walk::renumber(kept, &|column| number_in(&inner, column)));
    }
    (left.len() < count).then_some(left)
}

fn narrow_join(node: &mut Node, needed: Needed) -> Left {
    let Node::Join { left, right, widths, equal, condition, dependent, .. } = node else { return None };
    let (width, width_of_right) = *widths;
    let needed = needed.with(&*condition);
    let mut lefts = needed.part(0, width).with(equal.iter().map(|(left, _)| left));
    if let (true, Needed::Some(columns)) = (*dependent, &mut lefts) {
        right.visit(1, &mut |expression, depth| match expression {
            Expression::Outer { depth: outwards, column } if *outwards == depth => {
                columns.insert(*column);
            }
            _ => {}
        });
    }
    let rights = needed.part(width, width_of_right).with(equal.iter().map(|(_, right)| right));
    let (lefts, rights) = match (narrow_node(left, lefts), narrow_node(right, rights)) {
        (None, None) => return None,
        (lefts, rights) => (
            lefts.unwrap_or_else(|| (0..width).collect()),
            rights.unwrap_or_else(|| (0..width_of_right).collect()),
        ),
    };
    let of_left = |column| number_in(&lefts, column);
    let of_right = |column| number_in(&rights, column);
    let of_both = |column| match column < width {
        true => of_left(column),
        false => lefts.len() as u16 + of_right(column - width),
    };
    for (left, right) in equal {
        walk::renumber(left, &of_left);
        walk::renumber(right, &of_right);
    }
    condition.iter_mut().for_each(|condition| walk::renumber(condition, &of_both));
    if *dependent {
        walk::walk_node(right, 1, &mut |expression, depth| walk::renumber_one(expression, depth, &of_left));
    }
    *widths = (lefts.len() as u16, rights.len() as u16);
    Some(lefts.into_iter().chain(rights.into_iter().map(|column| width + column)).collect())
}

/// Both queries give just the columns that are needed.
fn narrow_union(node: &mut Node, needed: Needed) -> Left {
    let wanted: Left = match &needed {
        Needed::All => None,
        Needed::Some(columns) => Some(columns.iter().copied().collect()),
    };
    for input in node.inputs_mut() {
        let left = narrow_node(input, needed.clone());
        let Some(wanted) = &wanted else { continue };
        let is_narrow = match (&left, &*input) {
            (Some(left), _) => left == wanted,
            (None, Node::Project { expressions, .. }) => expressions.len() == wanted.len(),
            _ => false,
        };
        if !is_narrow {
            let number = |column: &u16| left.as_ref().map_or(*column, |left| number_in(left, *column));
            let expressions = wanted.iter().map(|column| Expression::Column(number(column))).collect();
            let whole = std::mem::replace(input, Node::Values(Vec::new()));
            *input = Node::Project { input: Box::new(whole), expressions };
        }
    }
    wanted
}
