//! What is kept of a query that runs many times: that of each row around it, or of each step of a recursion. The parts that depend on
//! nothing around are read once, and found by the values that they are to equal.
//!
//! Where a key or an index tells all that is known of a row, it is looked up each time.

use ordain_db::data::Direction;

use super::join::seen_from_right;
use super::path::{all_of, conjuncts, place_of};
use super::{Binder, walk};
use crate::plan::{Expression, JoinKind, Node, Path, TableShape};
use crate::types::operators::BinaryOperator;

/// Has the parts of a query that runs many times kept. Its rows stay the same, in the same order.
pub(super) fn kept(binder: &Binder<'_>, node: Node) -> Node {
    match node {
        Node::Scan { table, path, direction, filter: Some(filter), .. } => {
            kept_scan(binder, (table, path, direction), filter, true)
        }
        Node::Filter { input, condition } if is_steady(&input) && !is_cheap(&input) => {
            let keys = keys_of(&condition);
            let input = Node::Kept { input, keys, tested: true, direct: None };
            Node::Filter { input: Box::new(input), condition }
        }
        Node::Filter { input, condition } => Node::Filter { input: part(binder, input), condition },
        Node::Project { input, expressions } => Node::Project { input: part(binder, input), expressions },
        Node::Aggregate { input, groups, sets, aggregates } => {
            Node::Aggregate { input: part(binder, input), groups, sets, aggregates }
        }
        Node::Window { input, width, partition, order, calls } => {
            Node::Window { input: part(binder, input), width, partition, order, calls }
        }
        Node::Sort { input, keys } => Node::Sort { input: part(binder, input), keys },
        Node::Distinct { input, on } => Node::Distinct { input: part(binder, input), on },
        Node::Limit { input, limit, offset, ties } => {
            Node::Limit { input: part(binder, input), limit, offset, ties }
        }
        Node::Combine { operation, all, left, right } => {
            let (left, right) = (part(binder, left), part(binder, right));
            Node::Combine { operation, all, left, right }
        }
        Node::Join { .. } => kept_join(binder, node),
        other => other,
    }
}

/// A part of a query that runs many times.
fn part(binder: &Binder<'_>, node: Box<Node>) -> Box<Node> {
    if !is_steady(&node) {
        return Box::new(kept(binder, *node));
    }
    if is_cheap(&node) {
        return node;
    }
    Box::new(match *node {
        Node::Scan { table, path, direction, filter, .. } if filter.as_ref().is_none_or(is_simple) => {
            let direct = Some(path.clone());
            let condition = filter.clone();
            let input = Box::new(Node::scan(table, path, direction, filter));
            let input = Node::Kept { input, keys: Vec::new(), tested: true, direct };
            match condition {
                Some(condition) => Node::Filter { input: Box::new(input), condition },
                None => input,
            }
        }
        other => Node::Kept { input: Box::new(other), keys: Vec::new(), tested: false, direct: None },
    })
}

/// A join: a right side that depends on nothing is kept, and found for each row of the left.
fn kept_join(binder: &Binder<'_>, node: Node) -> Node {
    let Node::Join { left, right, widths, kind, equal, condition, dependent } = node else { return node };
    let steady_left = is_steady(&left);
    let left = if kind == JoinKind::Full { left } else { part(binder, left) };
    if dependent || kind == JoinKind::Full || steady_left || !is_steady(&right) || is_cheap(&right) {
        let right = if kind == JoinKind::Full || (steady_left && is_steady(&right)) {
            right
        } else {
            Box::new(kept(binder, *right))
        };
        return Node::Join { left, right, widths, kind, equal, condition, dependent };
    }
    let keys = equal.into_iter().map(|(left, right)| (right, seen_from_right(left, 0..0))).collect();
    let right = Box::new(Node::Kept { input: right, keys, tested: false, direct: None });
    Node::Join { left, right, widths, kind, equal: Vec::new(), condition, dependent: true }
}

/// A scan whose rows depend on those around, unless a key or an index knows them by all that they are to equal and that is not asked for
/// `often`.
pub(super) fn kept_scan(
    binder: &Binder<'_>,
    (table, path, direction): (u16, Path, Direction),
    filter: Expression,
    often: bool,
) -> Node {
    let (shape, keys) = (binder.shape_of(table), keys_of(&filter));
    let known = known_columns(shape, &path);
    let is_known = |(own, _): &(Expression, Expression)| {
        place_of(shape, own).is_some_and(|column| known.contains(&column))
    };
    // A look-up of no more rows than are wanted is as good, unless there are very many of them.
    let input_path = match keys.iter().all(is_known) && !matches!(path, Path::Keys(_)) {
        true => path_of_all(shape, &path).filter(|_| often),
        false => steady_path(&path),
    };
    let Some(input_path) = input_path.filter(|_| !keys.is_empty()) else {
        return Node::scan(table, path, direction, Some(filter));
    };
    let mut conditions = Vec::new();
    conjuncts(filter.clone(), &mut conditions);
    conditions.retain(|condition| is_simple(condition) && !sees_around(condition));
    let input = Node::scan(table, input_path, direction, all_of(conditions));
    let input = Node::Kept { input: Box::new(input), keys, tested: true, direct: Some(path) };
    Node::Filter { input: Box::new(input), condition: filter }
}

/// The part of a path that depends on nothing around: the same order, and more rows. None if there is no such path.
fn steady_path(path: &Path) -> Option<Path> {
    let steady = |value: &&Expression| is_simple(value) && !sees_around(value);
    match path {
        Path::All => Some(Path::All),
        Path::Range { index, equal, lower, upper, not_null } => {
            let known: Vec<Expression> = equal.iter().take_while(steady).cloned().collect();
            let is_whole = known.len() == equal.len();
            let bound = |bound: &Option<(Expression, bool)>| {
                bound.clone().filter(|(value, _)| is_whole && steady(&value))
            };
            let (lower, upper) = (bound(lower), bound(upper));
            // Rows without a value in the column that follows are left out, which with fewer columns would be another one.
            let not_null = *not_null && is_whole;
            if index.is_none() && known.is_empty() && lower.is_none() && upper.is_none() {
                return Some(Path::All);
            }
            Some(Path::Range { index: *index, equal: known, lower, upper, not_null })
        }
        Path::Ranges { prefixes, array, .. } => {
            prefixes.iter().flatten().chain(array).all(|value| steady(&value)).then(|| path.clone())
        }
        Path::Keys(keys) => (keys.len() == 1).then_some(Path::All),
    }
}

/// The columns whose values a path tells.
fn known_columns<'s>(shape: &'s TableShape, path: &Path) -> &'s [u16] {
    let (index, count) = match path {
        Path::All | Path::Keys(_) => return &[],
        Path::Range { index, equal, .. } => (index, equal.len()),
        Path::Ranges { index, prefixes, array } => {
            (index, prefixes.first().map_or(0, Vec::len) + usize::from(array.is_some()))
        }
    };
    let columns = columns_of(shape, *index);
    &columns[..count.min(columns.len())]
}

/// How a table is read as a whole such that the rows that a path looks up by equal values come in the same order. None if it is not to be.
fn path_of_all(shape: &TableShape, path: &Path) -> Option<Path> {
    match path {
        // Rows that are equal in all columns of an index are in the order of the key there.
        Path::Range { index, equal, .. } => {
            (index.is_none() || equal.len() == columns_of(shape, *index).len()).then_some(Path::All)
        }
        _ => None,
    }
}

fn columns_of(shape: &TableShape, index: Option<u16>) -> &[u16] {
    match index {
        None => &shape.key,
        Some(index) => shape.indexes.get(usize::from(index)).map_or(&[], |index| &index.columns),
    }
}

/// The values of a query's rows that must equal values around it, if rows that do not have them need not be tested.
fn keys_of(condition: &Expression) -> Vec<(Expression, Expression)> {
    if condition.is_volatile() {
        return Vec::new();
    }
    let (mut conditions, mut keys) = (Vec::new(), Vec::new());
    conjuncts(condition.clone(), &mut conditions);
    let is_own = |value: &Expression| is_simple(value) && value.reads_row() && !sees_around(value);
    let is_around = |value: &Expression| is_simple(value) && !value.reads_row() && sees_around(value);
    for condition in conditions {
        let Expression::Binary { operator: BinaryOperator::Equal, left, right, .. } = condition else {
            continue;
        };
        if is_own(&left) && is_around(&right) {
            keys.push((*left, *right));
        } else if is_own(&right) && is_around(&left) {
            keys.push((*right, *left));
        }
    }
    keys
}

/// Whether a query gives the same rows whenever it runs in a statement.
pub(super) fn is_steady(node: &Node) -> bool {
    !depends(node) && !node.is_volatile()
}

/// Whether the rows of a query depend on what is around it.
pub(super) fn depends(node: &Node) -> bool {
    walk::is_correlated(node) || is_within_recursion(node, &mut Vec::new())
}

/// Whether a query reads the rows of a recursion around it.
fn is_within_recursion(node: &Node, within: &mut Vec<u16>) -> bool {
    match node {
        Node::Working(number) => !within.contains(number),
        Node::Recursive { number, first, step, .. } => {
            within.push(*number);
            let reads = is_within_recursion(first, within) || is_within_recursion(step, within);
            within.pop();
            reads
        }
        other => other.inputs().into_iter().any(|input| is_within_recursion(input, within)),
    }
}

/// Whether a query is as fast each time as its kept rows would be.
fn is_cheap(node: &Node) -> bool {
    match node {
        Node::Values(_)
        | Node::Series { .. }
        | Node::Unnest { .. }
        | Node::Working(_)
        | Node::Kept { .. }
        | Node::Scan { path: Path::Keys(_), .. } => true,
        Node::Filter { input, .. } | Node::Project { input, .. } | Node::Limit { input, .. } => {
            is_cheap(input)
        }
        _ => false,
    }
}

/// Whether an expression has no query within, and is the same each time.
pub(super) fn is_simple(expression: &Expression) -> bool {
    let mut simple = true;
    expression.visit(0, &mut |expression, _| {
        simple &= !matches!(expression, Expression::Subquery { .. }) && !expression.is_volatile_itself();
    });
    simple
}

/// Whether an expression depends on a row around its own.
pub(super) fn sees_around(expression: &Expression) -> bool {
    let mut sees = false;
    expression.visit(0, &mut |expression, depth| {
        sees |= matches!(expression, Expression::Outer { depth: outwards, .. } if *outwards > depth);
    });
    sees
}
