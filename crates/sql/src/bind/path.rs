//! Which way to the rows: conditions become keys and ranges.

use super::walk;
use crate::plan::{Expression, IndexState, Path, TableShape};
use crate::types::SqlType;
use crate::types::operators::BinaryOperator;

/// A condition on one column that can tell where rows are.
struct Sight<'e> {
    column: u16,
    operator: BinaryOperator,
    value: &'e Expression,
}

/// Chooses how to read a table whose rows must fulfil all `conditions`, over its own columns. The values of keys and bounds must not
/// depend on the row itself.
pub(super) fn choose(shape: &TableShape, conditions: &[Expression]) -> Path {
    let mut sights = Vec::new();
    conditions.iter().for_each(|condition| see(condition, &mut sights));
    if !shape.key.is_empty() {
        if let Some(keys) = keys(shape, conditions, &sights) {
            return Path::Keys(keys);
        }
        if let Some(path) = range(None, &shape.key, &sights) {
            return path;
        }
    }
    let mut best: Option<(usize, Path)> = None;
    for (number, index) in (0..).zip(&shape.indexes) {
        if index.state != IndexState::Ready || index.covering {
            continue;
        }
        if let Some(path) = range(Some(number), &index.columns, &sights) {
            let Path::Range { equal, .. } = &path else { continue };
            // A unique index whose columns are all known gives one row.
            let worth =
                2 * equal.len() + usize::from(index.unique && equal.len() == index.columns.len()) * 100;
            if best.as_ref().is_none_or(|(known, _)| worth > *known) {
                best = Some((worth, path));
            }
        }
    }
    best.map_or(Path::All, |(_, path)| path)
}

/// Takes apart what must hold.
pub(super) fn conjuncts(condition: Expression, into: &mut Vec<Expression>) {
    match condition {
        Expression::And(all) => all.into_iter().for_each(|one| conjuncts(one, into)),
        other => into.push(other),
    }
}

/// The opposite of [`conjuncts`].
pub(super) fn all_of(mut conditions: Vec<Expression>) -> Option<Expression> {
    if conditions.len() > 1 { Some(Expression::And(conditions)) } else { conditions.pop() }
}

fn see<'e>(condition: &'e Expression, sights: &mut Vec<Sight<'e>>) {
    let Expression::Binary { operator, left, right, .. } = condition else { return };
    if let Some(column) = column_of(left)
        && is_fixed(right)
    {
        sights.push(Sight { column, operator: *operator, value: right });
    } else if let Some(column) = column_of(right)
        && is_fixed(left)
        && let Some(operator) = mirrored(*operator)
    {
        sights.push(Sight { column, operator, value: left });
    }
}

/// Whether a value is the same for all rows of the table, and the same each time it is asked for.
pub(in crate::bind) fn is_fixed(value: &Expression) -> bool {
    let mut fixed = !walk::reads_row(value);
    walk::walk(&mut value.clone(), 0, &mut |expression, _| {
        fixed &= !matches!(
            expression,
            Expression::NextValue(_) | Expression::SetValue { .. } | Expression::Random(_)
        );
    });
    fixed
}

/// The column that an expression is, but for casts that keep order and encoding.
pub(super) fn column_of(expression: &Expression) -> Option<u16> {
    match expression {
        Expression::Column(column) => Some(*column),
        Expression::Cast { operand, from, to } if keeps_encoding(*from, *to) => column_of(operand),
        _ => None,
    }
}

fn keeps_encoding(from: SqlType, to: SqlType) -> bool {
    let plain_text =
        |data_type: SqlType| data_type.is_text() && data_type.base != crate::types::BaseType::Char;
    !from.array
        && !to.array
        && ((from.is_integer() && to.is_integer()) || (plain_text(from) && plain_text(to)))
}

fn mirrored(operator: BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Equal => BinaryOperator::Equal,
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessOrEqual => BinaryOperator::GreaterOrEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterOrEqual => BinaryOperator::LessOrEqual,
        _ => return None,
    })
}

fn equal_to(column: u16, sights: &[Sight<'_>]) -> Option<Expression> {
    let sight =
        sights.iter().find(|sight| sight.column == column && sight.operator == BinaryOperator::Equal)?;
    Some(sight.value.clone())
}

/// The keys, if all columns of the key are known; one of them may be one of several values.
fn keys(shape: &TableShape, conditions: &[Expression], sights: &[Sight<'_>]) -> Option<Vec<Vec<Expression>>> {
    let mut keys = vec![Vec::with_capacity(shape.key.len())];
    let mut is_listed = false;
    for column in &shape.key {
        if let Some(value) = equal_to(*column, sights) {
            keys.iter_mut().for_each(|key| key.push(value.clone()));
            continue;
        }
        let list = conditions.iter().find_map(|condition| match condition {
            Expression::InList { operand, list, .. }
                if column_of(operand) == Some(*column) && list.iter().all(is_fixed) =>
            {
                Some(list)
            }
            _ => None,
        });
        let list = list.filter(|_| !is_listed)?;
        is_listed = true;
        let with = |key: &Vec<Expression>, value: &Expression| {
            let mut key = key.clone();
            key.push(value.clone());
            key
        };
        keys = list.iter().flat_map(|value| keys.iter().map(move |key| with(key, value))).collect();
    }
    Some(keys)
}

/// A range of the key or of an index, if anything is known of its first column.
fn range(index: Option<u16>, columns: &[u16], sights: &[Sight<'_>]) -> Option<Path> {
    let mut equal = Vec::new();
    for column in columns {
        let Some(value) = equal_to(*column, sights) else { break };
        equal.push(value);
    }
    let next = columns.get(equal.len());
    let bound = |strict: BinaryOperator, weak: BinaryOperator| {
        let sight = sights.iter().find(|sight| {
            Some(&sight.column) == next && (sight.operator == strict || sight.operator == weak)
        })?;
        Some((sight.value.clone(), sight.operator == weak))
    };
    let lower = bound(BinaryOperator::Greater, BinaryOperator::GreaterOrEqual);
    let upper = bound(BinaryOperator::Less, BinaryOperator::LessOrEqual);
    let known = !equal.is_empty() || lower.is_some() || upper.is_some();
    known.then_some(Path::Range { index, equal, lower, upper })
}
