//! What joins come to before they are made: what follows from equal columns, and which relation comes first.
//!
//! There are no statistics. A relation that is found by values which are known, or by those of relations before it, goes before one that
//! must be read as a whole; what is as good stays in the order in which it was written.

use super::join::{Item, seen_from_right};
use super::path::{choose, column_of, is_fixed};
use super::{Binder, walk};
use crate::plan::{Expression, JoinKind, Node, Path, TableShape};
use crate::types::operators::BinaryOperator;

/// How well the rows of a relation are found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    /// Each row is looked at.
    All,
    /// Each row is looked at once, and found by its hash.
    Hashed,
    /// A range, or several.
    Ranges,
    /// Keys.
    Keys,
}

/// The conditions that follow from others, with which all rows comply: of two columns that are equal, one has the value that the other
/// has.
pub(super) fn implied(conditions: &[Expression]) -> Vec<Expression> {
    let pairs: Vec<(u16, u16)> = conditions.iter().filter_map(equal_columns).collect();
    let mut known: Vec<(u16, Expression)> = conditions.iter().filter_map(value_of_column).collect();
    let given = known.len();
    let mut next = 0;
    while let Some((column, condition)) = known.get(next).cloned() {
        next += 1;
        for (one, other) in &pairs {
            let equal = match column {
                _ if column == *one => *other,
                _ if column == *other => *one,
                _ => continue,
            };
            if !known.iter().any(|(known, _)| *known == equal) {
                let moved = |number| if number == column { equal } else { number };
                known.push((equal, walk::renumbered(condition.clone(), moved)));
            }
        }
    }
    known.drain(given..).map(|(_, condition)| condition).collect()
}

/// The two columns that a condition says to be equal, if they have the same type.
fn equal_columns(condition: &Expression) -> Option<(u16, u16)> {
    let Expression::Binary { operator: BinaryOperator::Equal, resolved, left, right } = condition else {
        return None;
    };
    match (&**left, &**right) {
        (Expression::Column(left), Expression::Column(right)) if resolved.left == resolved.right => {
            Some((*left, *right))
        }
        _ => None,
    }
}

/// The column that a condition says the value of, and the condition.
fn value_of_column(condition: &Expression) -> Option<(u16, Expression)> {
    let Expression::Binary { operator: BinaryOperator::Equal, left, right, .. } = condition else {
        return None;
    };
    let column = if is_fixed(right) {
        column_of(left)?
    } else if is_fixed(left) {
        column_of(right)?
    } else {
        return None;
    };
    Some((column, condition.clone()))
}

/// The order in which relations are best joined, by their places; `None` if that is the order in which they are.
pub(super) fn better_order(
    binder: &Binder<'_>,
    items: &[Item],
    conditions: &[Expression],
) -> Option<Vec<usize>> {
    let movable =
        |item: &Item| item.kind == JoinKind::Inner && !(item.lateral && walk::is_correlated(&item.node));
    if items.len() < 2 || !items.iter().all(movable) {
        return None;
    }
    let alone: Vec<Access> = items.iter().map(|item| access(binder, item, &[], conditions)).collect();
    // Of those that are as good, the first.
    let first = (0..items.len()).rev().max_by_key(|place| alone[*place])?;
    if alone[first] < Access::Ranges {
        return None;
    }
    let mut order = vec![first];
    while order.len() < items.len() {
        let before: Vec<&Item> = order.iter().map(|place| &items[*place]).collect();
        let rest = (0..items.len()).rev().filter(|place| !order.contains(place));
        let next = rest.max_by_key(|place| access(binder, &items[*place], &before, conditions))?;
        order.push(next);
    }
    (!order.is_sorted()).then_some(order)
}

/// How the rows of a relation are found once those before it are there.
fn access(binder: &Binder<'_>, item: &Item, before: &[&Item], conditions: &[Expression]) -> Access {
    let is_own = |column: u16| (item.offset..item.offset + item.width).contains(&column);
    let is_before =
        |column: u16| before.iter().any(|known| (known.offset..known.offset + known.width).contains(&column));
    let (mut within, mut joins) = (Vec::new(), false);
    for condition in conditions {
        let (mut own, mut outside, mut known) = (false, false, true);
        walk::columns(condition, |column| {
            own |= is_own(column);
            outside |= !is_own(column);
            known &= is_own(column) || is_before(column);
        });
        if own && known {
            joins |=
                outside && matches!(condition, Expression::Binary { operator: BinaryOperator::Equal, .. });
            within.push(seen_alone(condition.clone(), item));
        }
    }
    let found = match &item.node {
        Node::Scan { table, path: Path::All, filter: None } => found_by(binder.shape_of(*table), &within),
        _ => Access::All,
    };
    match found {
        found if joins => found.max(Access::Hashed),
        // Each of its rows would be paired with each of those before.
        Access::Ranges if !before.is_empty() => Access::All,
        found => found,
    }
}

fn found_by(shape: &TableShape, conditions: &[Expression]) -> Access {
    match choose(shape, conditions) {
        Path::Keys(_) => Access::Keys,
        Path::Ranges { .. } => Access::Ranges,
        Path::Range { equal, .. } if !equal.is_empty() => Access::Ranges,
        Path::Range { .. } | Path::All => Access::All,
    }
}

/// A condition as a relation sees it whose columns begin in the middle: all others are those of rows around.
fn seen_alone(condition: Expression, item: &Item) -> Expression {
    let end = item.offset + item.width;
    // As if those behind were before.
    let moved = |column: u16| match column {
        _ if column < item.offset => column,
        _ if column < end => u16::MAX - item.width + (column - item.offset),
        _ => column - item.width,
    };
    seen_from_right(walk::renumbered(condition, moved), u16::MAX - item.width)
}

/// Puts relations into another order, and the columns of conditions with them; where each column was before, by where it is now.
pub(super) fn reorder(
    items: Vec<Item>,
    order: &[usize],
    conditions: &mut [Expression],
) -> (Vec<Item>, Vec<u16>) {
    let width = items.iter().map(|item| usize::from(item.width)).sum();
    let mut now_at = vec![0; width];
    let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let (mut moved, mut offset) = (Vec::with_capacity(items.len()), 0);
    for mut item in order.iter().filter_map(|place| items[*place].take()) {
        for column in 0..item.width {
            now_at[usize::from(item.offset + column)] = offset + column;
        }
        item.offset = offset;
        offset += item.width;
        moved.push(item);
    }
    let number = |column: u16| now_at.get(usize::from(column)).copied().unwrap_or(column);
    for condition in conditions {
        walk::renumber(condition, &number);
    }
    (moved, now_at)
}
