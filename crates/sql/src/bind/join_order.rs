//! The order of inner joins. Relations are joined as they are written, unless that multiplies rows that nothing connects, or reads a
//! whole table before one whose row is known: then each step takes the relation that the ones before tell the most about.

use super::join::{Item, seen_from_right};
use super::path::{choose, column_of, is_fixed};
use super::{Binder, walk};
use crate::plan::{Expression, JoinKind, Node, Path};
use crate::types::operators::BinaryOperator;

/// How much is known of a relation once others have been joined: the less, the better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its primary keys.
    Keys,
    /// The first columns of its key or of an index.
    Index,
    /// A value that equals one of the others.
    Equal,
    /// A condition together with others.
    Connected,
    /// The value of a column, from the statement itself.
    Selected,
    /// A condition on itself.
    Filtered,
    Nothing,
}

/// A condition, and the columns that it reads.
struct Reads<'e> {
    condition: &'e Expression,
    columns: Vec<u16>,
}

/// Puts relations that are joined by inner joins into a better order, and gives all conditions the numbers of their columns there. What
/// number each column has then; nothing if the order stays.
pub(super) fn reorder(
    binder: &Binder<'_>,
    items: &mut Vec<Item>,
    all: &mut Vec<Expression>,
) -> Option<Vec<u16>> {
    let count = items.iter().take_while(|item| item.kind == JoinKind::Inner && !item.lateral).count();
    if count < 2 || items[count..].iter().any(|item| item.lateral) {
        return None;
    }
    let order = better_order(binder, &items[..count], all)?;
    let later = items.split_off(count);
    let mut written: Vec<Option<Item>> = std::mem::take(items).into_iter().map(Some).collect();
    let width = later.iter().chain(written.iter().flatten()).map(|item| item.width).sum();
    let mut numbering: Vec<u16> = (0..width).collect();
    let mut offset = 0;
    for place in order {
        let Some(mut item) = written.get_mut(place).and_then(Option::take) else { continue };
        for column in 0..item.width {
            numbering[usize::from(item.offset + column)] = offset + column;
        }
        item.offset = offset;
        offset += item.width;
        all.append(&mut item.on);
        items.push(item);
    }
    items.extend(later);
    let number = |column: u16| numbering.get(usize::from(column)).copied().unwrap_or(column);
    for condition in items.iter_mut().flat_map(|item| &mut item.on).chain(all) {
        walk::renumber(condition, &number);
    }
    Some(numbering)
}

/// A better order than the written one.
fn better_order(binder: &Binder<'_>, items: &[Item], all: &[Expression]) -> Option<Vec<usize>> {
    let conditions = items.iter().flat_map(|item| &item.on).chain(all);
    let conditions: Vec<Reads<'_>> = conditions.map(reads).collect();
    let alone: Vec<Rank> = items.iter().map(|item| rank(binder, item, &[], &conditions)).collect();
    let best_alone = alone.iter().copied().min()?;
    let reads_all_first = best_alone <= Rank::Index && best_alone < alone[0];
    let multiplies = (1..items.len()).any(|place| {
        let before: Vec<&Item> = items[..place].iter().collect();
        rank(binder, &items[place], &before, &conditions) > Rank::Connected
    });
    if !reads_all_first && !multiplies {
        return None;
    }
    let (mut order, mut placed) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    while order.len() < items.len() {
        let rest = (0..items.len()).filter(|place| !order.contains(place));
        let next = rest.min_by_key(|place| rank(binder, &items[*place], &placed, &conditions))?;
        order.push(next);
        placed.push(&items[next]);
    }
    (!order.is_sorted()).then_some(order)
}

fn reads(condition: &Expression) -> Reads<'_> {
    let mut columns = Vec::new();
    walk::columns(condition, |column| columns.push(column));
    Reads { condition, columns }
}

/// What is known of a relation when those of `placed` have been joined.
fn rank(binder: &Binder<'_>, item: &Item, placed: &[&Item], conditions: &[Reads<'_>]) -> Rank {
    let is_of = |item: &Item, column: u16| column >= item.offset && column < item.offset + item.width;
    let known = |column: u16| is_of(item, column) || placed.iter().any(|other| is_of(other, column));
    let (mut best, mut is_connected) = (Rank::Nothing, placed.is_empty());
    let mut within = Vec::new();
    for Reads { condition, columns } in conditions {
        if !columns.iter().any(|column| is_of(item, *column)) || !columns.iter().all(|column| known(*column))
        {
            continue;
        }
        let is_own = columns.iter().all(|column| is_of(item, *column));
        is_connected |= !is_own;
        best = best.min(match (is_own, condition) {
            (false, Expression::Binary { operator: BinaryOperator::Equal, .. }) => Rank::Equal,
            (false, _) => Rank::Connected,
            (true, _) if names_value(condition) => Rank::Selected,
            (true, _) => Rank::Filtered,
        });
        within.push(seen_from_right((*condition).clone(), item.offset..item.offset + item.width));
    }
    if let Node::Scan { table, path: Path::All, filter: None, .. } = &item.node {
        match choose(binder.shape_of(*table), &within) {
            Path::Keys(_) => best = Rank::Keys,
            // Rows of a range that nothing connects would be paired with all of those before.
            Path::Range { equal, .. } if is_connected && !equal.is_empty() => best = best.min(Rank::Index),
            Path::Ranges { .. } if is_connected => best = best.min(Rank::Index),
            _ => {}
        }
    }
    best
}

/// Whether a condition names the values that a column may have.
fn names_value(condition: &Expression) -> bool {
    match condition {
        Expression::Binary { operator: BinaryOperator::Equal, left, right, .. } => {
            (column_of(left).is_some() && is_fixed(right)) || (column_of(right).is_some() && is_fixed(left))
        }
        Expression::InList { operand, list, .. } => column_of(operand).is_some() && list.iter().all(is_fixed),
        _ => false,
    }
}
