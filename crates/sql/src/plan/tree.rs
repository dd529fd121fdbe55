//! What can be said of a plan's nodes without running them.

use ordain_db::data::Direction;
use serde::Serialize;

use super::{Action, AggregateCall, Expression, FrameBound, Node, Path, SortKey, SubqueryKind, WindowCall};

impl Node {
    /// Whole rows of a table.
    pub fn scan(table: u16, path: Path, direction: Direction, filter: Option<Expression>) -> Node {
        Node::Scan { table, path, direction, filter, needed: None }
    }

    /// The queries whose rows it takes, in order; not those within expressions.
    pub fn inputs(&self) -> Vec<&Node> {
        match self {
            Node::Values(_)
            | Node::Scan { .. }
            | Node::Series { .. }
            | Node::Unnest { .. }
            | Node::Working(_) => Vec::new(),
            Node::Recursive { first, step, .. } => vec![first, step],
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Window { input, .. }
            | Node::Kept { input, .. }
            | Node::Sort { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. } => vec![input],
            Node::Once { query, .. } => vec![query],
            Node::Join { left, right, .. } | Node::Combine { left, right, .. } => vec![left, right],
        }
    }

    /// The same, to be changed.
    pub fn inputs_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Node::Values(_)
            | Node::Scan { .. }
            | Node::Series { .. }
            | Node::Unnest { .. }
            | Node::Working(_) => Vec::new(),
            Node::Recursive { first, step, .. } => vec![first, step],
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Window { input, .. }
            | Node::Kept { input, .. }
            | Node::Sort { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. } => vec![input],
            Node::Once { query, .. } => vec![query],
            Node::Join { left, right, .. } | Node::Combine { left, right, .. } => vec![left, right],
        }
    }

    /// Its own expressions, but those that only tell a scan where rows are: its condition says the same.
    pub(crate) fn expressions(&self) -> Vec<&Expression> {
        match self {
            Node::Values(rows) => rows.iter().flatten().collect(),
            Node::Scan { filter, .. } => filter.iter().collect(),
            Node::Series { bounds } => bounds.iter().collect(),
            Node::Unnest { lists, .. } => lists.iter().map(|list| &list.array).collect(),
            Node::Filter { condition, .. } => vec![condition],
            Node::Project { expressions, .. } => expressions.iter().collect(),
            Node::Join { equal, condition, .. } => {
                equal.iter().flat_map(|(left, right)| [left, right]).chain(condition).collect()
            }
            Node::Aggregate { groups, aggregates, .. } => {
                groups.iter().chain(aggregates.iter().flat_map(AggregateCall::expressions)).collect()
            }
            Node::Window { partition, order, calls, .. } => {
                let calls = calls.iter().flat_map(WindowCall::expressions);
                partition.iter().chain(sorted_by(order)).chain(calls).collect()
            }
            Node::Kept { keys, .. } => keys.iter().flat_map(|(own, around)| [own, around]).collect(),
            Node::Sort { keys, .. } => sorted_by(keys).collect(),
            Node::Distinct { on, .. } => on.iter().collect(),
            Node::Limit { limit, offset, ties, .. } => limit.iter().chain(offset).chain(ties).collect(),
            Node::Working(_) | Node::Recursive { .. } | Node::Once { .. } | Node::Combine { .. } => {
                Vec::new()
            }
        }
    }

    /// Visits all expressions of a query. The visitor gets how many rows lie between an expression's row and the one at the top, which is
    /// `depth` for the query's own.
    pub fn visit<'e>(&'e self, depth: u16, visit: &mut dyn FnMut(&'e Expression, u16)) {
        let inner = u16::from(matches!(self, Node::Join { dependent: true, .. }));
        for (place, input) in self.inputs().into_iter().enumerate() {
            // The right side of a join may see the row of the left.
            input.visit(if place == 1 { depth + inner } else { depth }, visit);
        }
        let path = match self {
            Node::Scan { path, .. } | Node::Kept { direct: Some(path), .. } => path.expressions(),
            _ => Vec::new(),
        };
        path.into_iter().chain(self.expressions()).for_each(|expression| expression.visit(depth, visit));
    }

    /// Whether it has values that are others each time, or does something.
    pub fn is_volatile(&self) -> bool {
        let mut is_volatile = false;
        self.visit(0, &mut |part, _| is_volatile |= part.is_volatile_itself());
        is_volatile
    }

    /// The queries within its own expressions, and whether each depends on the row.
    pub fn subqueries(&self) -> Vec<(&Node, bool)> {
        let mut found = Vec::new();
        self.expressions().into_iter().for_each(|expression| expression.find_subqueries(&mut found));
        found
    }

    fn add_indexes(&self, indexes: &mut Vec<(u16, Option<u16>)>) {
        if let Node::Scan { table, path: Path::Range { index, .. } | Path::Ranges { index, .. }, .. } = self {
            indexes.push((*table, *index));
        }
        let queries = self.subqueries().into_iter().map(|(query, _)| query);
        self.inputs().into_iter().chain(queries).for_each(|query| query.add_indexes(indexes));
    }

    /// Its upper part, whose rows may come in another order each time, for nobody has asked for one that these do not tell: a sort by values
    /// of the rows themselves, or groups, of which each row is passed on by itself. A scan may be as it is since it comes in the order that
    /// was asked for. `None` as well if anything in it numbers rows, which come in one order or another.
    pub fn part_in_any_order(&self) -> Option<&Node> {
        let part = if matches!(self, Node::Sort { .. }) { Some(self) } else { self.groups() };
        part.filter(|part| !part.has_window())
    }

    fn groups(&self) -> Option<&Node> {
        match self {
            Node::Aggregate { .. } => Some(self),
            Node::Filter { input, .. } | Node::Project { input, .. } => input.groups(),
            _ => None,
        }
    }

    fn has_window(&self) -> bool {
        matches!(self, Node::Window { .. }) || self.inputs().into_iter().any(Node::has_window)
    }

    /// Whether it gives each row as soon as it has read it, and nothing else before.
    pub fn gives_at_once(&self) -> bool {
        match self {
            Node::Scan { .. } | Node::Values(_) | Node::Series { .. } => self.subqueries().is_empty(),
            Node::Filter { input, .. } | Node::Project { input, .. } => {
                self.subqueries().is_empty() && input.gives_at_once()
            }
            _ => false,
        }
    }

    /// Whether it may read many rows besides those that it looks up.
    pub fn may_read_many(&self) -> bool {
        match self {
            Node::Scan { path, .. } => !matches!(path, Path::Keys(_)),
            Node::Kept { .. } => false,
            Node::Series { .. } | Node::Unnest { .. } => true,
            other => other.inputs().into_iter().any(Node::may_read_many),
        }
    }

    /// Whether the query reads a few rows by their keys, so that it is no dearer as an ordered transaction than over a snapshot.
    pub fn is_short(&self) -> bool {
        match self {
            Node::Scan { path: Path::Keys(keys), .. } => keys.len() <= SHORT_KEYS_MAX,
            Node::Project { input, .. }
            | Node::Filter { input, .. }
            | Node::Limit { input, .. }
            | Node::Sort { input, .. } => input.is_short(),
            _ => false,
        }
    }
}

impl AggregateCall {
    /// Whether it is another value each time.
    pub(crate) fn is_volatile(&self) -> bool {
        self.expressions().any(Expression::is_volatile)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.arguments.iter().chain(&self.filter).chain(sorted_by(&self.order))
    }
}

impl WindowCall {
    /// Whether it is another value each time.
    pub(crate) fn is_volatile(&self) -> bool {
        self.expressions().any(Expression::is_volatile)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let bounds = [&self.frame.start, &self.frame.end].into_iter().filter_map(|bound| match bound {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            _ => None,
        });
        let distance = self.frame.distance.iter().map(|distance| &distance.value);
        self.arguments.iter().chain(&self.filter).chain(distance).chain(bounds)
    }
}

impl Path {
    fn expressions(&self) -> Vec<&Expression> {
        match self {
            Path::All => Vec::new(),
            Path::Keys(keys) => keys.iter().flatten().collect(),
            Path::Range { equal, lower, upper, .. } => {
                equal.iter().chain(lower.iter().chain(upper).map(|(bound, _)| bound)).collect()
            }
            Path::Ranges { prefixes, array, .. } => prefixes.iter().flatten().chain(array).collect(),
        }
    }
}

/// Whether two parts of plans give the same in all that can be told: those that are equal may have other texts, as `1.0` and `1.00` have.
pub fn is_same<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    let bytes = |part: &T| postcard::to_extend(part, Vec::new()).ok();
    one == other && bytes(one) == bytes(other)
}

fn sorted_by(keys: &[SortKey]) -> impl Iterator<Item = &Expression> {
    keys.iter().map(|key| &key.expression)
}

impl Expression {
    /// The expressions that it is made of; not those of queries within.
    fn parts(&self) -> Vec<&Expression> {
        match self {
            Expression::Constant(_)
            | Expression::Parameter(_)
            | Expression::Column(_)
            | Expression::Outer { .. }
            | Expression::Local(_)
            | Expression::NextValue(_)
            | Expression::Random(_)
            | Expression::Answer(_) => Vec::new(),
            Expression::Let { values, body } => values.iter().chain([&**body]).collect(),
            Expression::Unary { operand, .. }
            | Expression::Not(operand)
            | Expression::Cast { operand, .. }
            | Expression::Coerce { operand, .. }
            | Expression::IsNull { operand, .. }
            | Expression::IsBoolean { operand, .. } => vec![operand],
            Expression::And(list)
            | Expression::Or(list)
            | Expression::Coalesce(list)
            | Expression::Array(list)
            | Expression::Call { arguments: list, .. } => list.iter().collect(),
            Expression::Case { branches, otherwise } => {
                let branches = branches.iter().flat_map(|(condition, result)| [condition, result]);
                branches.chain(otherwise.as_deref()).collect()
            }
            Expression::InList { operand, list, .. } => {
                std::iter::once(operand.as_ref()).chain(list).collect()
            }
            Expression::Binary { left, right, .. }
            | Expression::Quantified { left, array: right, .. }
            | Expression::Element { array: left, index: right }
            | Expression::SetValue { value: left, called: right, .. }
            | Expression::Signal { process: left, processes: right, .. } => vec![left, right],
            Expression::Subquery { kind: SubqueryKind::In { operand, .. }, .. } => vec![operand],
            Expression::Subquery { .. } => Vec::new(),
        }
    }

    /// Visits it and all within; see [`Node::visit`].
    pub fn visit<'e>(&'e self, depth: u16, visit: &mut dyn FnMut(&'e Expression, u16)) {
        visit(self, depth);
        self.parts().into_iter().for_each(|part| part.visit(depth, visit));
        if let Expression::Subquery { query, .. } = self {
            query.visit(depth + 1, visit);
        }
    }

    /// The conditions that it demands together.
    pub fn conjuncts(&self) -> &[Expression] {
        match self {
            Expression::And(all) => all,
            one => std::slice::from_ref(one),
        }
    }

    /// Whether it reads its own row.
    pub fn reads_row(&self) -> bool {
        let mut reads = false;
        self.visit(0, &mut |part, depth| {
            reads |= match part {
                Expression::Column(_) => depth == 0,
                Expression::Outer { depth: outwards, .. } => depth > 0 && *outwards == depth,
                _ => false,
            };
        });
        reads
    }

    /// Whether it has a value of its own each time, or does something: neither is to be left out, put off or done once for many.
    pub fn is_volatile(&self) -> bool {
        let mut is_volatile = false;
        self.visit(0, &mut |part, _| is_volatile |= part.is_volatile_itself());
        is_volatile
    }

    /// The same, but for what is within.
    pub fn is_volatile_itself(&self) -> bool {
        matches!(
            self,
            Expression::NextValue(_)
                | Expression::SetValue { .. }
                | Expression::Random(_)
                | Expression::Signal { .. }
        )
    }

    fn find_subqueries<'e>(&'e self, found: &mut Vec<(&'e Node, bool)>) {
        if let Expression::Subquery { query, correlated, .. } = self {
            found.push((query, *correlated));
        }
        self.parts().into_iter().for_each(|part| part.find_subqueries(found));
    }
}

/// See [`Node::is_short`].
const SHORT_KEYS_MAX: usize = 16;

impl Action {
    /// The query whose rows it gives or writes, if it is of that kind.
    pub fn source(&self) -> Option<&Node> {
        match self {
            Action::Query(source)
            | Action::Insert { source, .. }
            | Action::Update { source, .. }
            | Action::Delete { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The indexes that it reads, each by the numbers of its table and its own, where it reads them.
    pub fn indexes(&self) -> Vec<(u16, Option<u16>)> {
        let mut indexes = Vec::new();
        self.source().into_iter().for_each(|source| source.add_indexes(&mut indexes));
        indexes
    }

    /// The same, to be changed.
    pub fn source_mut(&mut self) -> Option<&mut Node> {
        match self {
            Action::Query(source)
            | Action::Insert { source, .. }
            | Action::Update { source, .. }
            | Action::Delete { source, .. } => Some(source),
            _ => None,
        }
    }
}
