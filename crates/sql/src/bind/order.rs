//! Which rows come in order by themselves: those of a table in that of its key, those of an index in that of its columns and of what it
//! computes; read backward, in the opposite one.

use ordain_db::data::Direction;

use super::partial::{has_all, implies};
use super::path::place_of;
use super::pushed::through_list;
use super::{Binder, walk};
use crate::plan::{AggregateCall, Expression, JoinKind, Node, Path, SortKey, TableShape};
use crate::types::Datum;
use crate::types::aggregate::AggregateId;

/// A column of a scan by which rows are to be sorted.
#[derive(Clone, Copy)]
struct Wanted {
    column: u16,
    descending: bool,
    nulls_first: bool,
}

/// The scan that decides the order of a query's rows.
struct Leaf<'n> {
    scan: &'n mut Node,
    /// By what the query's rows are to be sorted, over its columns.
    wanted: Vec<Wanted>,
    /// Whether the query's rows are the same in whatever order its own come.
    is_free: bool,
    /// Whether rows that are null in the first column that is wanted do not count.
    skips_nulls: bool,
}

/// The order in which a path gives rows.
struct Order<'s> {
    shape: &'s TableShape,
    /// They ascend by these columns, with nulls last.
    columns: Vec<u16>,
    /// So many of these are the same for all.
    fixed: usize,
    /// Whether no row is null in the column after those.
    next_is_present: bool,
    /// Whether no two rows are equal in all columns.
    is_unique: bool,
}

/// The rows in order: they are sorted unless they come so.
pub(super) fn sorted(binder: &Binder<'_>, mut node: Node, keys: Vec<SortKey>) -> Node {
    if let Some(mut leaf) = leaf_of(binder, &mut node, &keys)
        && comes_in_order(binder, &mut leaf)
    {
        return node;
    }
    Node::Sort { input: Box::new(node), keys }
}

/// The keys of a query's order, which are columns of its list or `hidden` behind it, as values over the rows that the list is made from:
/// if these are to be sorted before it is made. What is not the same each time, as PostgreSQL has it, is made in the order of the rows; and
/// a query for each row is not asked for those that do not stay.
pub(super) fn sorted_first(
    keys: &[SortKey],
    list: &[Expression],
    hidden: &[Expression],
) -> Option<Vec<SortKey>> {
    if keys.is_empty() || !list.iter().any(is_made_last) {
        return None;
    }
    let all: Vec<Expression> = list.iter().chain(hidden).cloned().collect();
    let over =
        |key: &SortKey| Some(SortKey { expression: through_list(&key.expression, &all)?, ..key.clone() });
    keys.iter().map(over).collect()
}

fn is_made_last(value: &Expression) -> bool {
    let mut is_last = value.is_volatile();
    value.visit(0, &mut |part, _| is_last |= matches!(part, Expression::Subquery { correlated: true, .. }));
    is_last
}

/// The rows of which only the first are wanted: if they are all rows of a table sorted by the columns of an index, or those that equal
/// some values in its first columns sorted by the next, it is read instead.
pub(super) fn sorted_by_index(binder: &Binder<'_>, node: Node) -> Node {
    match node {
        Node::Project { input, expressions } if matches!(*input, Node::Sort { .. }) => {
            Node::Project { input: Box::new(sorted_by_index(binder, *input)), expressions }
        }
        Node::Sort { mut input, keys } => {
            let leaf = leaf_of(binder, &mut input, &keys);
            if leaf.is_some_and(|leaf| read_by_index(binder, leaf)) {
                return *input;
            }
            Node::Sort { input, keys }
        }
        other => other,
    }
}

/// Has the least or greatest value of a column read where it comes first; of several such values each, if these are all that is wanted.
pub(super) fn read_extremes(binder: &Binder<'_>, node: &mut Node) {
    let Node::Aggregate { input, groups, sets: None, aggregates } = node else { return };
    if !groups.is_empty() {
        return;
    }
    if let [call] = aggregates.as_slice() {
        read_extreme(binder, input, call);
        return;
    }
    // A filter might give something else each time.
    if !matches!(**input, Node::Scan { filter: None, .. }) {
        return;
    }
    let mut joined: Option<(Node, u16)> = None;
    for call in aggregates {
        let mut input = input.clone();
        if !read_extreme(binder, &mut input, call) {
            return;
        }
        let (groups, aggregates) = (Vec::new(), vec![call.clone()]);
        let alone = Node::Aggregate { input, groups, sets: None, aggregates };
        joined = Some(match joined {
            None => (alone, 1),
            Some((left, width)) => (each_with_each(left, alone, (width, 1)), width + 1),
        });
    }
    if let Some((joined, _)) = joined {
        *node = joined;
    }
}

fn each_with_each(left: Node, right: Node, widths: (u16, u16)) -> Node {
    Node::Join {
        left: Box::new(left),
        right: Box::new(right),
        widths,
        kind: JoinKind::Inner,
        equal: Vec::new(),
        condition: None,
        dependent: false,
    }
}

/// Has an aggregate see only the first row, if it is the least or greatest value of a column by which rows can be read; whether it is.
fn read_extreme(binder: &Binder<'_>, input: &mut Node, call: &AggregateCall) -> bool {
    let descending = match call.aggregate.id {
        AggregateId::Least => false,
        AggregateId::Greatest => true,
        _ => return false,
    };
    if call.filter.is_some() {
        return false;
    }
    let Some(argument) = call.arguments.first() else { return false };
    // Nulls do not count. Where they come last, the first row is without a value only if all are.
    let key = SortKey { expression: argument.clone(), descending, nulls_first: false };
    let Some(mut leaf) = leaf_of(binder, input, &[key]) else { return false };
    leaf.skips_nulls = descending;
    if !comes_in_order(binder, &mut leaf) && !read_by_index(binder, leaf) {
        return false;
    }
    let limit = Some(Expression::Constant(Datum::Int(1)));
    let rows = std::mem::replace(input, Node::Values(Vec::new()));
    *input = Node::Limit { input: Box::new(rows), limit, offset: None, ties: Vec::new() };
    true
}

/// The scan that decides the order of a query's rows, which are to be sorted by keys that are columns or computed by its indexes.
fn leaf_of<'n>(binder: &Binder<'_>, node: &'n mut Node, keys: &[SortKey]) -> Option<Leaf<'n>> {
    let values = keys.iter().map(|key| key.expression.clone()).collect();
    let mut is_free = true;
    let (scan, columns) = leaf(binder, node, values, &mut is_free)?;
    let wanted = columns.into_iter().zip(keys).map(|(column, key)| Wanted {
        column,
        descending: key.descending,
        nulls_first: key.nulls_first,
    });
    Some(Leaf { scan, wanted: wanted.collect(), is_free, skips_nulls: false })
}

/// The scan that decides the order of a query's rows, and what values over these are there.
fn leaf<'n>(
    binder: &Binder<'_>,
    node: &'n mut Node,
    mut values: Vec<Expression>,
    is_free: &mut bool,
) -> Option<(&'n mut Node, Vec<u16>)> {
    match node {
        Node::Scan { table, .. } => {
            let shape = binder.shape_of(*table);
            let places = values.iter().map(|value| place_of(shape, value)).collect::<Option<_>>()?;
            Some((node, places))
        }
        Node::Filter { input, .. } => leaf(binder, input, values, is_free),
        // Of rows that are equal in some columns only, the first stays.
        Node::Distinct { input, on } => {
            *is_free &= on.is_empty();
            leaf(binder, input, values, is_free)
        }
        Node::Project { input, expressions } => {
            for value in &mut values {
                *value = through_list(value, expressions)?;
            }
            leaf(binder, input, values, is_free)
        }
        // Each row of the left is followed by its matches, in its place.
        Node::Join { left, widths, kind, .. } if *kind != JoinKind::Full => {
            let mut is_left = true;
            for value in &values {
                walk::columns(value, |column| is_left &= column < widths.0);
            }
            is_left.then_some(())?;
            leaf(binder, left, values, is_free)
        }
        _ => None,
    }
}

/// Whether rows come sorted as they are wanted, if need be after their scan was turned round.
fn comes_in_order(binder: &Binder<'_>, leaf: &mut Leaf<'_>) -> bool {
    let Node::Scan { table, path, direction, .. } = &mut *leaf.scan else { return false };
    let Some(mut order) = Order::of(binder.shape_of(*table), path) else { return false };
    let next = order.columns.get(order.fixed);
    if let Path::Range { not_null, .. } = path
        && leaf.skips_nulls
        && leaf.wanted.first().is_some_and(|first| next == Some(&first.column))
    {
        (*not_null, order.next_is_present) = (true, true);
    }
    match order.direction(&leaf.wanted) {
        Some(found) if found == *direction || leaf.is_free => {
            *direction = found;
            true
        }
        _ => false,
    }
}

impl<'s> Order<'s> {
    fn of(shape: &'s TableShape, path: &Path) -> Option<Order<'s>> {
        let (index, fixed, next_is_present) = match path {
            Path::All | Path::Keys(_) => (None, 0, false),
            Path::Ranges { index, .. } => (*index, 0, false),
            Path::Range { index, equal, lower, upper, not_null } => {
                (*index, equal.len(), *not_null || lower.is_some() || upper.is_some())
            }
        };
        let mut columns = match index {
            None => Vec::new(),
            Some(index) => shape.indexes.get(usize::from(index))?.columns.clone(),
        };
        // The entries of an index that are equal in its columns are in the order of the rows' keys.
        columns.extend_from_slice(&shape.key);
        let fixed = fixed.min(columns.len());
        (!columns.is_empty()).then_some(())?;
        Some(Order { shape, columns, fixed, next_is_present, is_unique: !shape.key.is_empty() })
    }

    /// The direction in which the rows come as they are wanted, if there is one.
    fn direction(&self, wanted: &[Wanted]) -> Option<Direction> {
        let (mut known, mut direction) = (self.fixed, None);
        for Wanted { column, descending, nulls_first } in wanted {
            if self.columns[..known].contains(column) {
                continue;
            }
            let Some(next) = self.columns.get(known) else {
                self.is_unique.then_some(())?;
                break;
            };
            let own = if *descending { Direction::Descending } else { Direction::Ascending };
            let is_present = self.is_present(*next) || (known == self.fixed && self.next_is_present);
            let fits = next == column
                && direction.is_none_or(|direction| direction == own)
                && (is_present || nulls_first == descending);
            fits.then_some(())?;
            direction = Some(own);
            known += 1;
        }
        Some(direction.unwrap_or_default())
    }

    /// Whether no row is null in a column.
    fn is_present(&self, column: u16) -> bool {
        let shape = self.shape.columns.get(usize::from(column));
        self.shape.key.contains(&column) || shape.is_some_and(|column| column.not_null)
    }
}

/// Has rows read by an index that gives them in the order in which they are wanted; whether there is one.
fn read_by_index(binder: &Binder<'_>, leaf: Leaf<'_>) -> bool {
    let Node::Scan { table, path, direction, filter, .. } = leaf.scan else { return false };
    if !leaf.is_free {
        return false;
    }
    let shape = binder.shape_of(*table);
    // What a filter leaves out must not be looked up row by row, unless it is by now.
    let known: Vec<(u16, Expression)> = match path {
        Path::All => Vec::new(),
        Path::Range { index: Some(index), equal, lower: None, upper: None, .. } => {
            let columns = shape.indexes.get(usize::from(*index)).map(|index| index.columns.as_slice());
            columns.unwrap_or_default().iter().copied().zip(equal.iter().cloned()).collect()
        }
        _ => return false,
    };
    let filter = filter.as_ref();
    let conditions: Vec<&Expression> = filter.into_iter().collect();
    let reads_all = matches!(path, Path::All);
    for (number, index) in (0..).zip(&shape.indexes) {
        let filters_none = match (filter, &index.predicate) {
            (None, _) => true,
            (Some(filter), Some(predicate)) => implies(&[predicate], filter),
            (Some(_), None) => false,
        };
        if !has_all(index, &conditions) || (reads_all && !filters_none) {
            continue;
        }
        let value_of = |column: &u16| known.iter().find(|(known, _)| known == column);
        let leading = index.columns.iter().take(known.len()).map(value_of);
        let Some(leading) = leading.collect::<Option<Vec<_>>>() else { continue };
        if leading.len() < known.len() {
            continue;
        }
        let equal: Vec<Expression> = leading.into_iter().map(|(_, value)| value.clone()).collect();
        let next = index.columns.get(equal.len());
        let is_first = leaf.wanted.first().is_some_and(|first| next == Some(&first.column));
        let not_null = leaf.skips_nulls && is_first;
        let by_index = Path::Range { index: Some(number), equal, lower: None, upper: None, not_null };
        let found = Order::of(shape, &by_index).and_then(|order| order.direction(&leaf.wanted));
        if let Some(found) = found {
            (*path, *direction) = (by_index, found);
            return true;
        }
    }
    false
}
