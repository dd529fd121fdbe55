//! Which rows come in order by themselves: those of a table in that of its key, those of an index in that of its columns.

use super::Binder;
use super::path::column_of;
use crate::plan::{Expression, IndexState, Node, Path, SortKey, TableShape};
use crate::types::Datum;
use crate::types::aggregate::AggregateId;

/// The rows in order: they are sorted unless they come so.
pub(super) fn sorted(binder: &Binder<'_>, mut node: Node, keys: Vec<SortKey>) -> Node {
    if let Some((scan, columns)) = ascending(&mut node, &keys)
        && let Node::Scan { table, path, .. } = scan
        && comes_in_order(binder.shape_of(*table), path, &columns)
    {
        return node;
    }
    Node::Sort { input: Box::new(node), keys }
}

/// The rows of which only the first are wanted: if they are all rows of a table sorted by the columns of an index, it is read instead.
pub(super) fn sorted_by_index(binder: &Binder<'_>, node: Node) -> Node {
    match node {
        Node::Project { input, expressions } if matches!(*input, Node::Sort { .. }) => {
            Node::Project { input: Box::new(sorted_by_index(binder, *input)), expressions }
        }
        Node::Sort { mut input, keys } => {
            let found = ascending(&mut input, &keys);
            if found.is_some_and(|(scan, columns)| read_by_index(binder, scan, &columns)) {
                return *input;
            }
            Node::Sort { input, keys }
        }
        other => other,
    }
}

/// Has the least value of a column read where it comes first.
pub(super) fn read_least(binder: &Binder<'_>, node: &mut Node) {
    let Node::Aggregate { input, groups, sets: None, aggregates } = node else { return };
    let [call] = aggregates.as_slice() else { return };
    if !groups.is_empty() || call.aggregate.id != AggregateId::Least || call.filter.is_some() {
        return;
    }
    let Some(column) = call.arguments.first().and_then(column_of) else { return };
    let Some((scan, columns)) = leaf(input, vec![column]) else { return };
    let Node::Scan { table, path, .. } = &*scan else { return };
    if comes_in_order(binder.shape_of(*table), path, &columns) || read_by_index(binder, scan, &columns) {
        // Nulls come last, so that the first is one only if all are.
        let limit = Some(Expression::Constant(Datum::Int(1)));
        let rows = std::mem::replace(&mut **input, Node::Values(Vec::new()));
        **input = Node::Limit { input: Box::new(rows), limit, offset: None, ties: Vec::new() };
    }
}

/// The scan that decides the order of a query's rows, and the columns of it that they are to be sorted by.
fn ascending<'n>(node: &'n mut Node, keys: &[SortKey]) -> Option<(&'n mut Node, Vec<u16>)> {
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        if key.descending || key.nulls_first {
            return None;
        }
        columns.push(column_of(&key.expression)?);
    }
    leaf(node, columns)
}

/// The scan that decides the order of a query's rows, and what some columns of these are there.
fn leaf(node: &mut Node, columns: Vec<u16>) -> Option<(&mut Node, Vec<u16>)> {
    match node {
        Node::Scan { .. } => Some((node, columns)),
        Node::Filter { input, .. } | Node::Distinct { input, .. } => leaf(input, columns),
        Node::Project { input, expressions } => {
            let below = columns.iter().map(|column| column_of(expressions.get(usize::from(*column))?));
            let below = below.collect::<Option<Vec<u16>>>()?;
            leaf(input, below)
        }
        // Each row of the left is followed by its matches, in its place.
        Node::Join { left, widths, kind, .. } if *kind != crate::plan::JoinKind::Full => {
            columns.iter().all(|column| *column < widths.0).then_some(())?;
            leaf(left, columns)
        }
        _ => None,
    }
}

/// Whether rows that are read by a path come sorted by some columns.
fn comes_in_order(shape: &TableShape, path: &Path, columns: &[u16]) -> bool {
    match path {
        Path::All | Path::Keys(_) | Path::Ranges { index: None, .. } => {
            is_order(&shape.key, 0, true, columns)
        }
        Path::Range { index: None, equal, .. } => is_order(&shape.key, equal.len(), true, columns),
        Path::Range { index: Some(index), equal, .. } => {
            let Some(index) = shape.indexes.get(usize::from(*index)) else { return false };
            is_order(&index.columns, equal.len(), false, columns)
        }
        Path::Ranges { index: Some(index), .. } => {
            let Some(index) = shape.indexes.get(usize::from(*index)) else { return false };
            is_order(&index.columns, 0, false, columns)
        }
    }
}

/// Whether rows that come sorted by `order`, of which the first `fixed` columns are the same for all, are sorted by `columns`. If
/// `is_unique`, no two of them are equal in `order`.
fn is_order(order: &[u16], fixed: usize, is_unique: bool, columns: &[u16]) -> bool {
    let (fixed, mut rest) = order.split_at(fixed.min(order.len()));
    for column in columns {
        if fixed.contains(column) {
            continue;
        }
        match rest.split_first() {
            Some((next, later)) if next == column => rest = later,
            Some(_) => return false,
            None => return is_unique && !order.is_empty(),
        }
    }
    !order.is_empty()
}

/// Has all rows of a table read by an index that has them sorted by some columns; whether there is one.
fn read_by_index(binder: &Binder<'_>, scan: &mut Node, columns: &[u16]) -> bool {
    let Node::Scan { table, path: path @ Path::All, filter: None } = scan else { return false };
    let shape = binder.shape_of(*table);
    let place = shape.indexes.iter().position(|index| {
        let is_read = index.state == IndexState::Ready && !index.covering;
        is_read && is_order(&index.columns, 0, false, columns)
    });
    let Some(place) = place else { return false };
    *path = Path::Range { index: Some(place as u16), equal: Vec::new(), lower: None, upper: None };
    true
}
