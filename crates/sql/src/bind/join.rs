//! Joins: which relation is read how for each row of those before it, and which conditions go where.

use std::collections::BTreeSet;
use std::ops::Range;

use sqlparser::ast::ObjectName;

use super::implied::implied;
use super::join_order::reorder;
use super::kept::{kept, kept_scan};
use super::names::last_name;
use super::path::{all_of, choose};
use super::pushed::{SourceTable, filtered};
use super::{Binder, walk};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, JoinKind, Node, Path};
use crate::types::operators::BinaryOperator;

/// A relation that is joined to those before it.
pub(super) struct Item {
    pub(super) node: Node,
    /// The number of its first column.
    pub(super) offset: u16,
    pub(super) width: u16,
    pub(super) kind: JoinKind,
    /// Conditions of the join, over the columns so far.
    pub(super) on: Vec<Expression>,
    /// Whether it sees the row of those before it.
    pub(super) lateral: bool,
    /// Whether rows of it come in an order that was asked for because of how their tables are read.
    pub(super) in_order: bool,
}

impl Item {
    /// A relation that is joined to nothing yet.
    pub(super) fn first(node: Node, width: u16) -> Item {
        let (kind, on) = (JoinKind::Inner, Vec::new());
        Item { node, offset: 0, width, kind, on, lateral: false, in_order: false }
    }

    /// Its rows that fulfil conditions over its own columns.
    fn filtered(self, binder: &Binder<'_>, conditions: Vec<Expression>) -> Node {
        filtered(binder, self.node, conditions, self.in_order)
    }
}

/// Joins relations. Conditions on the whole are used where they are known to hold, and taken out of `all`.
pub(super) fn assemble(binder: &Binder<'_>, mut items: Vec<Item>, all: &mut Vec<Expression>) -> Node {
    // What an inner join is made by holds for all rows that there are in the end.
    for item in items.iter_mut().filter(|item| item.kind == JoinKind::Inner) {
        all.append(&mut item.on);
    }
    all.extend(implied(all));
    let numbering = reorder(binder, &mut items, all);
    let node = from_left(binder, items, all);
    let Some(numbering) = numbering else { return node };
    let expressions = numbering.into_iter().map(Expression::Column).collect();
    Node::Project { input: Box::new(node), expressions }
}

/// Joins relations from left to right.
fn from_left(binder: &Binder<'_>, items: Vec<Item>, all: &mut Vec<Expression>) -> Node {
    let everywhere = all.clone();
    let mut items = items.into_iter();
    let Some(first) = items.next() else {
        return filtered(binder, Node::Values(vec![Vec::new()]), std::mem::take(all), false);
    };
    let mut width = first.width;
    let mut node = place(binder, first, all);
    for item in items {
        let (before, end) = (width, item.offset + item.width);
        let mut conditions = item.on.clone();
        if item.kind == JoinKind::Inner {
            conditions.extend(take_known(all, end));
        } else {
            conditions.extend(implied_within(&everywhere, &item));
        }
        node = attach(binder, node, before, item, conditions);
        width = end;
    }
    match all_of(std::mem::take(all)) {
        Some(condition) => Node::Filter { input: Box::new(node), condition },
        None => node,
    }
}

/// What follows for the rows of a relation that is joined to others if it has any for them: rows of the others for which that does not hold
/// are not wanted in the end.
fn implied_within(everywhere: &[Expression], item: &Item) -> Vec<Expression> {
    let mut conditions = everywhere.to_vec();
    conditions.extend(item.on.iter().cloned());
    let mut follows = implied(&conditions);
    follows.retain(|condition| {
        let mut within = true;
        walk::columns(condition, |column| {
            within &= (item.offset..item.offset + item.width).contains(&column);
        });
        within
    });
    follows
}

/// Takes out the conditions that need no column from `end` on.
fn take_known(all: &mut Vec<Expression>, end: u16) -> Vec<Expression> {
    let (known, later) = std::mem::take(all).into_iter().partition(|condition| {
        let mut known = true;
        walk::columns(condition, |column| known &= column < end);
        known
    });
    *all = later;
    known
}

/// The first relation, with the conditions on it.
fn place(binder: &Binder<'_>, mut item: Item, all: &mut Vec<Expression>) -> Node {
    let mut conditions = std::mem::take(&mut item.on);
    conditions.extend(take_known(all, item.width));
    if item.lateral && walk::is_correlated(&item.node) {
        // It was bound to see a row before it: one without columns.
        item.node = Node::Join {
            left: Box::new(Node::Values(vec![Vec::new()])),
            right: Box::new(kept(binder, item.node)),
            widths: (0, item.width),
            kind: JoinKind::Inner,
            equal: Vec::new(),
            condition: None,
            dependent: true,
        };
    }
    item.filtered(binder, conditions)
}

/// Joins a relation to those before it.
fn attach(binder: &Binder<'_>, left: Node, before: u16, item: Item, conditions: Vec<Expression>) -> Node {
    let widths = (before, item.width);
    let left = Box::new(left);
    if item.lateral && walk::is_correlated(&item.node) {
        let (right, kind) = (Box::new(kept(binder, item.node)), item.kind);
        let condition = all_of(conditions);
        return Node::Join { left, right, widths, kind, equal: Vec::new(), condition, dependent: true };
    }
    let own = item.offset..item.offset + item.width;
    let within: Vec<Expression> =
        conditions.iter().map(|condition| seen_from_right(condition.clone(), own.clone())).collect();
    if let Some(mut source) =
        SourceTable::of(&item.node, within).filter(|source| source.is_table() || !item.in_order)
    {
        let within = std::mem::take(&mut source.conditions);
        let path = choose(binder.shape_of(source.table), &within);
        let alone: Vec<Expression> =
            within.iter().filter(|condition| !sees_left(condition)).cloned().collect();
        let is_better = match &path {
            Path::All => false,
            Path::Keys(_) | Path::Ranges { .. } => true,
            Path::Range { equal, .. } => !equal.is_empty(),
        };
        let depends = path_sees_left(&path);
        if is_better && depends && !matches!(choose(binder.shape_of(source.table), &alone), Path::Keys(_)) {
            let (table, direction) = (source.table, source.direction);
            let rows = match all_of(within) {
                Some(filter) => kept_scan(binder, (table, path, direction), filter, !left.is_short()),
                None => Node::scan(table, path, direction, None),
            };
            let right = Box::new(source.relation(rows));
            let kind = item.kind;
            return Node::Join {
                left,
                right,
                widths,
                kind,
                equal: Vec::new(),
                condition: None,
                dependent: true,
            };
        }
    }
    let mut shared = conditions;
    let own = take_own(&mut shared, item.offset);
    let equal = take_pairs(&mut shared, item.offset);
    let (kind, condition) = (item.kind, all_of(shared));
    let right = Box::new(item.filtered(binder, own));
    Node::Join { left, right, widths, kind, equal, condition, dependent: false }
}

/// Takes out the conditions on the right side alone, as ones on its rows.
fn take_own(conditions: &mut Vec<Expression>, offset: u16) -> Vec<Expression> {
    let is_own = |condition: &mut Expression| {
        let (mut own, mut any) = (true, false);
        walk::columns(condition, |column| {
            own &= column >= offset;
            any = true;
        });
        own && any
    };
    let own = conditions.extract_if(.., is_own);
    own.map(|condition| walk::renumbered(condition, |column| column - offset)).collect()
}

/// Takes out the conditions that a value of the left equals one of the right, as pairs.
fn take_pairs(conditions: &mut Vec<Expression>, offset: u16) -> Vec<(Expression, Expression)> {
    let side = |expression: &Expression| {
        let (mut left, mut right) = (false, false);
        walk::columns(expression, |column| if column < offset { left = true } else { right = true });
        (left, right)
    };
    let mut pairs = Vec::new();
    conditions.retain(|condition| {
        let Expression::Binary { operator: BinaryOperator::Equal, left, right, .. } = condition else {
            return true;
        };
        let (one, other) = match (side(left), side(right)) {
            ((true, false), (false, true)) => (left, right),
            ((false, true), (true, false)) => (right, left),
            _ => return true,
        };
        pairs.push(((**one).clone(), walk::renumbered((**other).clone(), |column| column - offset)));
        false
    });
    pairs
}

/// A condition on a joined row, as the side whose columns are `own` sees it for each row of the other.
pub(super) fn seen_from_right(mut condition: Expression, own: Range<u16>) -> Expression {
    walk::walk(&mut condition, 0, &mut |expression, depth| match expression {
        Expression::Column(column) if depth == 0 && !own.contains(column) => {
            *expression = Expression::Outer { depth: 1, column: *column };
        }
        Expression::Column(column) if depth == 0 => *column -= own.start,
        Expression::Outer { depth: outwards, column } if depth > 0 && *outwards == depth => {
            if own.contains(column) { *column -= own.start } else { *outwards += 1 }
        }
        Expression::Outer { depth: outwards, .. } if *outwards > depth => *outwards += 1,
        _ => {}
    });
    condition
}

/// Whether a condition as the right side sees it depends on the row of the left.
fn sees_left(condition: &Expression) -> bool {
    let mut sees = false;
    condition.visit(0, &mut |expression, depth| {
        sees |= matches!(expression, Expression::Outer { depth: outwards, .. } if *outwards == depth + 1);
    });
    sees
}

fn path_sees_left(path: &Path) -> bool {
    match path {
        Path::All => false,
        Path::Keys(keys) => keys.iter().flatten().any(sees_left),
        Path::Ranges { prefixes, array, .. } => prefixes.iter().flatten().chain(array).any(sees_left),
        Path::Range { equal, lower, upper, .. } => {
            let mut bounds = lower.iter().chain(upper).map(|(bound, _)| bound);
            equal.iter().any(sees_left) || bounds.any(sees_left)
        }
    }
}

pub(super) fn full_join(left: Item, item: Item) -> Node {
    let mut conditions = item.on;
    let equal = take_pairs(&mut conditions, item.offset);
    Node::Join {
        left: Box::new(left.node),
        right: Box::new(item.node),
        widths: (left.width, item.width),
        kind: JoinKind::Full,
        equal,
        condition: all_of(conditions),
        dependent: false,
    }
}

/// A join that keeps all rows of the right: one that keeps all of the left, with sides and columns changed over.
pub(super) fn right_join(binder: &Binder<'_>, left: Item, item: Item) -> Node {
    let (before, width) = (left.width, item.width);
    let swapped = |column: u16| if column < before { column + width } else { column - before };
    let conditions = item.on.into_iter().map(|condition| walk::renumbered(condition, swapped));
    let mut conditions: Vec<Expression> = conditions.collect();
    let own = take_own(&mut conditions, width);
    let equal = take_pairs(&mut conditions, width);
    let join = Node::Join {
        left: Box::new(item.node),
        right: Box::new(left.filtered(binder, own)),
        widths: (width, before),
        kind: JoinKind::Left,
        equal,
        condition: all_of(conditions),
        dependent: false,
    };
    let expressions = (0..before + width).map(|column| Expression::Column(swapped(column))).collect();
    Node::Project { input: Box::new(join), expressions }
}

/// The names in `USING`.
pub(super) fn used_names(columns: &[ObjectName]) -> Result<Vec<String>, SqlError> {
    let names: Vec<String> = columns.iter().map(last_name).collect::<Result<_, _>>()?;
    let mut known = BTreeSet::new();
    match names.iter().find(|name| !known.insert(name.as_str())) {
        Some(twice) => {
            let message = format!("column name \"{twice}\" appears more than once in USING clause");
            Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
        }
        None => Ok(names),
    }
}
