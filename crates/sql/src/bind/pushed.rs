//! Conditions on the rows of a query within another, such as of a view: they are asked where its rows come from, so that a key or an index
//! finds these.
//!
//! A condition stays above if it is about what a query gives, or what is not the same each time: asked further down, that would be computed
//! twice. It stays, too, if it depends on a row around: by that, rows that are [kept](super::kept) are found. But where the rows are those of a
//! table, a key or an index finds them.

use ordain_db::data::Direction;

use super::kept::{is_simple, sees_around};
use super::path::{all_of, choose, conjuncts, keeps_encoding};
use super::{Binder, walk};
use crate::plan::{Expression, JoinKind, Node, Path, SetOperation};
use crate::types::SqlType;

/// Most parts of the values that a condition is about, where it is to be asked of what these are computed from.
const PARTS_MAX: usize = 100;

/// The first of the numbers that columns have only while they are put in the place of others.
const OF_INPUT: u16 = 0x8000;

/// The rows of a query that fulfil conditions over them. `keeps_order` says that they come in an order which depends on how their tables are
/// read, and stays.
pub(super) fn filtered(
    binder: &Binder<'_>,
    node: Node,
    conditions: Vec<Expression>,
    keeps_order: bool,
) -> Node {
    Push { binder, keeps_order }.filtered(node, conditions)
}

/// How conditions go down.
struct Push<'b, 'c> {
    binder: &'b Binder<'c>,
    /// Whether tables are to be read in the order in which they are.
    keeps_order: bool,
}

impl Push<'_, '_> {
    fn filtered(&self, node: Node, conditions: Vec<Expression>) -> Node {
        if conditions.is_empty() {
            return node;
        }
        if let Node::Scan { table, path: Path::All, direction, filter: None, .. } = node {
            return self.scan(table, (Path::All, direction), conditions);
        }
        let goes = |condition: &Expression| {
            is_simple(condition) && (!sees_around(condition) || is_list_of_table(&node))
        };
        let (under, above) = split(conditions, |condition| goes(condition).then(|| condition.clone()));
        let (node, mut all) = if under.is_empty() { (node, under) } else { self.pushed(node, under) };
        all.extend(above);
        match all_of(all) {
            Some(condition) => Node::Filter { input: Box::new(node), condition },
            None => node,
        }
    }

    fn scan(&self, table: u16, (known, direction): (Path, Direction), conditions: Vec<Expression>) -> Node {
        let path = choose(self.binder.shape_of(table), &conditions);
        // Rows that are found by the key are in its order.
        let path = if self.keeps_order && !(is_by_key(&known) && is_by_key(&path)) { known } else { path };
        Node::scan(table, path, direction, all_of(conditions))
    }

    /// Asks conditions on the rows of a query further down; those that must stay above.
    fn pushed(&self, node: Node, conditions: Vec<Expression>) -> (Node, Vec<Expression>) {
        let below = |input: Box<Node>, conditions| Box::new(self.filtered(*input, conditions));
        match node {
            // Those that are known come first: they may be what the others need.
            Node::Scan { table, path, direction, filter: Some(filter), .. } if !sees_around(&filter) => {
                let mut all = Vec::new();
                conjuncts(filter, &mut all);
                all.extend(conditions);
                (self.scan(table, (path, direction), all), Vec::new())
            }
            Node::Filter { input, condition } => {
                let mut all = Vec::new();
                conjuncts(condition, &mut all);
                all.extend(conditions);
                (self.filtered(*input, all), Vec::new())
            }
            Node::Project { input, expressions } => {
                let (under, above) = split(conditions, |condition| through_list(condition, &expressions));
                (Node::Project { input: below(input, under), expressions }, above)
            }
            // All rows of a group are wanted, or none: of equal ones with other texts, such as `1.0` and `1.00`, any may stand for it.
            Node::Aggregate { input, groups, sets: None, aggregates } if !groups.is_empty() => {
                let (under, above) = split(conditions, |condition| through_list(condition, &groups));
                let input = below(input, under);
                (Node::Aggregate { input, groups, sets: None, aggregates }, above)
            }
            Node::Window { input, width, partition, order, calls } => {
                let is_of_partition = |column| partition.contains(&Expression::Column(column));
                let (under, above) = split(conditions, |condition| all_columns(condition, is_of_partition));
                (Node::Window { input: below(input, under), width, partition, order, calls }, above)
            }
            Node::Sort { input, keys } => (Node::Sort { input: below(input, conditions), keys }, Vec::new()),
            Node::Distinct { input, on } if on.is_empty() => {
                (Node::Distinct { input: below(input, conditions), on }, Vec::new())
            }
            Node::Combine { operation, all, left, right } => {
                // Of what is equal to a row that is taken away, some may not fulfil what the row does: `1.0` and `1.00` have other texts.
                let right = match operation {
                    SetOperation::Except => right,
                    SetOperation::Union | SetOperation::Intersect => below(right, conditions.clone()),
                };
                let left = below(left, conditions);
                (Node::Combine { operation, all, left, right }, Vec::new())
            }
            Node::Join { .. } => self.pushed_to_sides(node, conditions),
            other => (other, conditions),
        }
    }

    /// The same for a join: of an outer one, rows of the side that may be missing are wanted as they are.
    fn pushed_to_sides(&self, node: Node, conditions: Vec<Expression>) -> (Node, Vec<Expression>) {
        let Node::Join { left, right, widths, kind, equal, condition, dependent } = node else {
            return (node, conditions);
        };
        let of_left = |column| column < widths.0;
        let (lefts, others) = match kind {
            JoinKind::Inner | JoinKind::Left => {
                split(conditions, |condition| all_columns(condition, of_left))
            }
            JoinKind::Full => (Vec::new(), conditions),
        };
        let (rights, above) = match kind {
            JoinKind::Inner => split(others, |condition| all_columns(condition, |column| !of_left(column))),
            JoinKind::Left | JoinKind::Full => (Vec::new(), others),
        };
        let rights =
            rights.into_iter().map(|condition| walk::renumbered(condition, |column| column - widths.0));
        let left = Box::new(self.filtered(*left, lefts));
        let right = Box::new(self.filtered(*right, rights.collect()));
        (Node::Join { left, right, widths, kind, equal, condition, dependent }, above)
    }
}

/// Whether rows are made of those of a table one by one, so that what a condition is about around it finds them as those of the table.
fn is_list_of_table(node: &Node) -> bool {
    match node {
        Node::Scan { filter, .. } => filter.as_ref().is_none_or(|filter| !sees_around(filter)),
        Node::Project { input, .. } => is_list_of_table(input),
        _ => false,
    }
}

/// Whether rows come in the order of the key.
fn is_by_key(path: &Path) -> bool {
    match path {
        Path::All | Path::Keys(_) => true,
        Path::Range { index, .. } | Path::Ranges { index, .. } => index.is_none(),
    }
}

/// The conditions that go down, in the form that they have there, and the others. Those behind one that stays may need what it says, unless they
/// cannot fail.
fn split(
    conditions: Vec<Expression>,
    form: impl Fn(&Expression) -> Option<Expression>,
) -> (Vec<Expression>, Vec<Expression>) {
    let (mut under, mut above) = (Vec::new(), Vec::new());
    for condition in conditions {
        let form = form(&condition).filter(|form| above.is_empty() || cannot_fail(form));
        match form {
            Some(form) => under.push(form),
            None => above.push(condition),
        }
    }
    (under, above)
}

/// Whether a condition has a value, or is null, for whatever row.
fn cannot_fail(condition: &Expression) -> bool {
    let mut cannot = true;
    condition.visit(0, &mut |part, _| {
        cannot &= match part {
            Expression::Column(_)
            | Expression::Constant(_)
            | Expression::Parameter(_)
            | Expression::And(_)
            | Expression::Or(_)
            | Expression::Not(_)
            | Expression::IsNull { .. }
            | Expression::IsBoolean { .. }
            | Expression::InList { .. } => true,
            Expression::Binary { operator, .. } => operator.is_comparison(),
            Expression::Cast { from, to, .. } => {
                keeps_encoding(*from, *to) && (!to.is_integer() || to.is_same(SqlType::INT8))
            }
            _ => false,
        };
    });
    cannot
}

/// A condition as it is, if all of its columns are such.
fn all_columns(condition: &Expression, is_such: impl Fn(u16) -> bool) -> Option<Expression> {
    let mut are_such = true;
    walk::columns(condition, |column| are_such &= is_such(column));
    are_such.then(|| condition.clone())
}

/// A value over rows that are made by a list of values, as one over the rows that these are made from. None if it has a query within, if its
/// parts are queries or not the same each time, or if there would be very many of them.
pub(super) fn through_list(value: &Expression, list: &[Expression]) -> Option<Expression> {
    let (mut can, mut parts) = (is_simple(value), 0);
    walk::columns(value, |column| {
        let Some(made) = list.get(usize::from(column)) else {
            can = false;
            return;
        };
        made.visit(0, &mut |part, _| {
            parts += 1;
            can &= !matches!(part, Expression::Column(OF_INPUT..));
        });
        can &= is_simple(made) && !sees_around(made);
    });
    if !can || parts > PARTS_MAX {
        return None;
    }
    let mut value = value.clone();
    walk::walk(&mut value, 0, &mut |part, _| {
        if let Expression::Column(column @ ..OF_INPUT) = part {
            *part = walk::renumbered(list[usize::from(*column)].clone(), |column| column + OF_INPUT);
        }
    });
    Some(walk::renumbered(value, |column| column - OF_INPUT))
}

/// The table whose rows a relation is made of, one by one.
pub(super) struct SourceTable<'n> {
    pub table: u16,
    pub direction: Direction,
    /// Conditions on the table's rows: its own, and those that were asked of the relation.
    pub conditions: Vec<Expression>,
    /// The lists of values that make them the relation's, in order.
    lists: Vec<&'n [Expression]>,
}

impl<'n> SourceTable<'n> {
    /// The source of a relation of which conditions are asked. None if it has no such source, or one of which they cannot be asked.
    pub(super) fn of(node: &'n Node, conditions: Vec<Expression>) -> Option<SourceTable<'n>> {
        match node {
            Node::Scan { table, direction, filter, .. } if !walk::is_correlated(node) => {
                let mut all = Vec::new();
                filter.iter().for_each(|filter| conjuncts(filter.clone(), &mut all));
                all.extend(conditions);
                let (table, direction) = (*table, *direction);
                Some(SourceTable { table, direction, conditions: all, lists: Vec::new() })
            }
            // What asks a query, or is not the same each time, is computed once for each of its rows.
            Node::Project { input, expressions }
                if expressions.iter().all(|value| is_simple(value) && !sees_around(value)) =>
            {
                let below = conditions.iter().map(|condition| through_list(condition, expressions));
                let mut source = SourceTable::of(input, below.collect::<Option<_>>()?)?;
                source.lists.push(expressions);
                Some(source)
            }
            _ => None,
        }
    }

    /// Whether its rows are those of the table.
    pub(super) fn is_table(&self) -> bool {
        self.lists.is_empty()
    }

    /// The relation, whose table's rows are read so.
    pub(super) fn relation(&self, rows: Node) -> Node {
        self.lists
            .iter()
            .fold(rows, |rows, list| Node::Project { input: Box::new(rows), expressions: list.to_vec() })
    }
}
