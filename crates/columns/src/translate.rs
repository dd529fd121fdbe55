//! From plans of SQL to plans over columns.
//!
//! A query is translated from its leaves up. What has no translation, or none that is certain to give the same, is a leaf itself: SQL's own
//! executor runs it, and gives its rows. So all of a query is a leaf at worst, and then nothing is gained and nothing done.

use std::cell::RefCell;

use ordain_sql::execute::columns::{Leaf, Surroundings};
use ordain_sql::plan::{
    AggregateCall, Expression, JoinKind, Node, SortKey, WindowCall, WindowFunction, is_same,
};
use ordain_sql::types::SqlType;
use ordain_sql::types::aggregate::AggregateId;
use ordain_sql::types::operators::BinaryOperator;

use crate::expressions::{Scope, Typed, kind_of, to_numeric};
use crate::kind::Kind;

/// Most first rows in order that are found without sorting all: a heap of more is slower.
const FIRST_ROWS_MAX: usize = 8192;

/// A region that could run.
pub(crate) struct Translated<'p> {
    pub(crate) root: Tree,
    pub(crate) outputs: Vec<Output>,
    pub(crate) leaves: Vec<Leaf<'p>>,
    /// Of each leaf, the kinds of its columns.
    pub(crate) kinds: Vec<LeafKinds>,
}

/// The kinds of the columns of a leaf, with what is computed for it.
pub(crate) struct LeafKinds(pub(crate) Vec<Kind>);

/// A column of the query's rows.
pub(crate) enum Output {
    Column(usize, Kind),
    Average { sum: (usize, Kind), count: usize },
}

/// A query over columns.
pub(crate) struct Tree {
    pub(crate) operation: Operation,
    /// The kinds of its columns.
    pub(crate) kinds: Vec<Kind>,
    /// Where its node is in memory.
    pub(crate) node: usize,
}

/// What a query does.
pub(crate) enum Operation {
    Leaf(usize),
    Filter { input: Box<Tree>, condition: Typed },
    Project { input: Box<Tree>, expressions: Vec<Typed> },
    Join(Box<Join>),
    Aggregate { input: Box<Tree>, groups: Vec<Typed>, calls: Vec<Call> },
    Sort { input: Box<Tree>, keys: Vec<Key>, most: Option<usize> },
    Window { input: Box<Tree>, partition: Vec<Typed>, order: Vec<Key>, functions: Vec<Numbering> },
}

/// Rows of the left side with those of the right that have equal values.
pub(crate) struct Join {
    pub(crate) left: Tree,
    pub(crate) right: Tree,
    pub(crate) kind: JoinKind,
    /// Values of the left and of the right that are equal.
    pub(crate) equal: Vec<(Typed, Typed)>,
    /// What else holds, and the columns of the pair that it sees.
    pub(crate) condition: Option<(Typed, Vec<usize>)>,
    /// The leaf of the right for which it is decided by the rows of the left how it is read.
    pub(crate) waits: Option<usize>,
}

/// A value that rows are sorted by.
pub(crate) struct Key {
    pub(crate) value: Typed,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// An aggregate.
pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) argument: Option<Typed>,
    pub(crate) filter: Option<Typed>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Count { distinct: bool },
    Sum,
    Least,
    Greatest,
}

/// A function over the rows of a partition.
#[derive(Clone, Copy)]
pub(crate) enum Numbering {
    RowNumber,
    Rank,
    DenseRank,
}

/// The region of a query, if it is worth one: it gives no row before it has all.
pub(crate) fn translate<'p>(query: &'p Node, surroundings: Surroundings<'p>) -> Option<Translated<'p>> {
    let mut translation = Translation { surroundings, leaves: Vec::new(), kinds: Vec::new() };
    let (mut root, outputs) = match query {
        Node::Aggregate { .. } => translation.aggregate(query)?,
        Node::Sort { .. } | Node::Window { .. } => {
            let tree = translation.node(query)?;
            let output = |(place, kind): (usize, &Kind)| Output::Column(place, *kind);
            let outputs = tree.kinds.iter().enumerate().map(output).collect();
            (tree, outputs)
        }
        _ => return None,
    };
    if let Operation::Sort { most, .. } = &mut root.operation {
        *most = (surroundings.most <= FIRST_ROWS_MAX).then_some(surroundings.most);
    }
    Some(Translated { root, outputs, leaves: translation.leaves, kinds: translation.kinds })
}

struct Translation<'p> {
    surroundings: Surroundings<'p>,
    leaves: Vec<Leaf<'p>>,
    kinds: Vec<LeafKinds>,
}

impl<'p> Translation<'p> {
    fn scope<'s>(&self, row: &'s [Kind]) -> Scope<'s>
    where
        'p: 's,
    {
        let parameters = self.surroundings.parameters;
        Scope { row, right: &[], is_inside: false, named: None, parameters }
    }

    /// The query over columns; a leaf, if there is no other.
    fn input(&mut self, query: &'p Node) -> Option<Tree> {
        let before = self.leaves.len();
        if let Some(tree) = self.node(query) {
            return Some(tree);
        }
        self.leaves.truncate(before);
        self.kinds.truncate(before);
        self.leaf(query)
    }

    /// The query over columns, unless it can only be a leaf.
    fn node(&mut self, query: &'p Node) -> Option<Tree> {
        Some(Tree { node: std::ptr::from_ref(query).addr(), ..self.node_of(query)? })
    }

    fn node_of(&mut self, query: &'p Node) -> Option<Tree> {
        match query {
            Node::Filter { input, condition } => {
                let input = self.node(input)?;
                let condition = self.scope(&input.kinds).translate(condition)?;
                let kinds = input.kinds.clone();
                (condition.kind == Kind::Bool).then_some(())?;
                Some(Tree {
                    operation: Operation::Filter { input: Box::new(input), condition },
                    kinds,
                    node: 0,
                })
            }
            Node::Project { input, expressions } => {
                let input = self.node(input)?;
                let scope = self.scope(&input.kinds);
                let expressions: Vec<Typed> = expressions
                    .iter()
                    .map(|expression| scope.translate(expression))
                    .collect::<Option<_>>()?;
                let kinds = expressions.iter().map(|typed| typed.kind).collect();
                Some(Tree {
                    operation: Operation::Project { input: Box::new(input), expressions },
                    kinds,
                    node: 0,
                })
            }
            Node::Join { .. } => self.join(query),
            Node::Aggregate { .. } => {
                let (tree, outputs) = self.aggregate(query)?;
                outputs.iter().all(|output| matches!(output, Output::Column(..))).then_some(tree)
            }
            Node::Sort { input, keys } => {
                let input = self.input(input)?;
                let (kinds, keys) = (input.kinds.clone(), self.keys(keys, &input.kinds)?);
                Some(Tree {
                    operation: Operation::Sort { input: Box::new(input), keys, most: None },
                    kinds,
                    node: 0,
                })
            }
            Node::Window { input, partition, order, calls, .. } => {
                self.window(input, partition, order, calls)
            }
            Node::Distinct { input, on } if on.is_empty() => {
                let input = self.input(input)?;
                let scope = self.scope(&input.kinds);
                let column = |column: usize| scope.translate(&Expression::Column(column as u16));
                let groups: Vec<Typed> = (0..input.kinds.len()).map(column).collect::<Option<_>>()?;
                let kinds = input.kinds.clone();
                kinds.iter().all(|kind| kind.is_ordered()).then_some(())?;
                let (input, calls) = (Box::new(input), Vec::new());
                Some(Tree { operation: Operation::Aggregate { input, groups, calls }, kinds, node: 0 })
            }
            _ => None,
        }
    }

    fn leaf(&mut self, query: &'p Node) -> Option<Tree> {
        let kinds = self.kinds_of(query)?;
        self.leaf_of(Leaf { query, computed: Vec::new(), kept: None }, kinds)
    }

    fn leaf_of(&mut self, leaf: Leaf<'p>, kinds: Vec<Kind>) -> Option<Tree> {
        self.leaves.push(leaf);
        self.kinds.push(LeafKinds(kinds.clone()));
        Some(Tree { operation: Operation::Leaf(self.leaves.len() - 1), kinds, node: 0 })
    }

    /// The kinds of the rows of a query that SQL's own executor runs.
    fn kinds_of(&self, query: &Node) -> Option<Vec<Kind>> {
        Some(match query {
            Node::Scan { table, needed, .. } => {
                let shape = self.surroundings.tables.get(usize::from(*table))?;
                let all = 0..shape.columns.len() as u16;
                let numbers = needed.clone().unwrap_or_else(|| all.collect());
                let kind = |number: &u16| Some(Kind::of(shape.columns.get(usize::from(*number))?.data_type));
                (!shape.gives_key).then_some(())?;
                numbers.iter().map(kind).collect::<Option<_>>()?
            }
            Node::Filter { input, .. }
            | Node::Sort { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. }
            | Node::Kept { input, .. } => self.kinds_of(input)?,
            Node::Project { input, expressions } => {
                let row = self.kinds_of(input)?;
                expressions
                    .iter()
                    .map(|expression| kind_of(expression, &row).unwrap_or(Kind::Other))
                    .collect()
            }
            Node::Aggregate { input, groups, sets, aggregates } => {
                let row = self.kinds_of(input)?;
                let groups = groups.iter().map(|group| kind_of(group, &row).unwrap_or(Kind::Other));
                let calls = aggregates.iter().map(|call| Kind::of(call.aggregate.result));
                let questions = sets.iter().flat_map(|sets| &sets.questions).map(|_| Kind::Int);
                groups.chain(calls).chain(questions).collect()
            }
            Node::Once { query, .. } => self.kinds_of(query)?,
            Node::Join { left, right, .. } => {
                let mut kinds = self.kinds_of(left)?;
                kinds.append(&mut self.kinds_of(right)?);
                kinds
            }
            _ => return None,
        })
    }

    fn keys(&self, keys: &[SortKey], row: &[Kind]) -> Option<Vec<Key>> {
        let scope = self.scope(row);
        let key = |key: &SortKey| {
            let value = scope.translate(&key.expression)?;
            let SortKey { descending, nulls_first, .. } = *key;
            value.kind.is_ordered().then_some(Key { value, descending, nulls_first })
        };
        keys.iter().map(key).collect()
    }

    fn window(
        &mut self,
        input: &'p Node,
        partition: &[Expression],
        order: &[SortKey],
        calls: &[WindowCall],
    ) -> Option<Tree> {
        let input = self.input(input)?;
        let scope = self.scope(&input.kinds);
        let function = |call: &WindowCall| match call.function {
            WindowFunction::RowNumber => Some(Numbering::RowNumber),
            WindowFunction::Rank => Some(Numbering::Rank),
            WindowFunction::DenseRank => Some(Numbering::DenseRank),
            _ => None,
        };
        let functions: Vec<Numbering> = calls.iter().map(function).collect::<Option<_>>()?;
        let value = |expression| scope.translate(expression).filter(|value| value.kind.is_ordered());
        let partition: Vec<Typed> = partition.iter().map(value).collect::<Option<_>>()?;
        let order = self.keys(order, &input.kinds)?;
        (!partition.is_empty() || !order.is_empty()).then_some(())?;
        let mut kinds = input.kinds.clone();
        kinds.extend(functions.iter().map(|_| Kind::Int));
        let input = Box::new(input);
        Some(Tree { operation: Operation::Window { input, partition, order, functions }, kinds, node: 0 })
    }

    /// Groups, and what their columns become.
    fn aggregate(&mut self, query: &'p Node) -> Option<(Tree, Vec<Output>)> {
        let Node::Aggregate { input, groups, sets: None, aggregates } = query else { return None };
        let mut input = self.input(input)?;
        let mut values = Vec::with_capacity(groups.len());
        for group in groups {
            values.push(self.of_input(&mut input, group).filter(|value| value.kind.is_ordered())?);
        }
        let mut kinds: Vec<Kind> = values.iter().map(|value| value.kind).collect();
        let mut outputs: Vec<Output> =
            kinds.iter().enumerate().map(|(place, kind)| Output::Column(place, *kind)).collect();
        let mut calls = Vec::new();
        for AggregateCall { aggregate, arguments, distinct, filter, order } in aggregates {
            order.is_empty().then_some(())?;
            let argument = match arguments.as_slice() {
                [] => None,
                // Where the filter leaves a row out, its argument is not computed.
                [argument] if filter.is_some() => Some(self.scope(&input.kinds).translate(argument)?),
                [argument] => Some(self.of_input(&mut input, argument)?),
                _ => return None,
            };
            let filter = match filter {
                Some(filter) => {
                    Some(self.of_input(&mut input, filter).filter(|filter| filter.kind == Kind::Bool)?)
                }
                None => None,
            };
            let mut add = |function, argument: Option<Typed>, kind| {
                calls.push(Call { function, argument, filter: filter.clone() });
                kinds.push(kind);
                kinds.len() - 1
            };
            outputs.push(match (aggregate.id, argument, *distinct) {
                (AggregateId::CountRows, None, false) => {
                    Output::Column(add(Function::Count { distinct: false }, None, Kind::Int), Kind::Int)
                }
                (AggregateId::Count, Some(argument), distinct) => {
                    (!distinct || argument.kind.is_ordered()).then_some(())?;
                    Output::Column(add(Function::Count { distinct }, Some(argument), Kind::Int), Kind::Int)
                }
                (AggregateId::Sum, Some(argument), false) => {
                    let argument = summand(argument, aggregate.result)?;
                    let kind = argument.kind;
                    Output::Column(add(Function::Sum, Some(argument), kind), kind)
                }
                (AggregateId::Average, Some(argument), false) => {
                    let argument = summand(argument, aggregate.result)?;
                    let kind = argument.kind;
                    let sum = (add(Function::Sum, Some(argument.clone()), kind), kind);
                    let count = add(Function::Count { distinct: false }, Some(argument), Kind::Int);
                    Output::Average { sum, count }
                }
                (AggregateId::Least | AggregateId::Greatest, Some(argument), _) => {
                    let kind = argument.kind;
                    is_of_extremes(kind).then_some(())?;
                    let least = aggregate.id == AggregateId::Least;
                    let function = if least { Function::Least } else { Function::Greatest };
                    Output::Column(add(function, Some(argument), kind), kind)
                }
                _ => return None,
            });
        }
        (!kinds.is_empty()).then_some(())?;
        let operation = Operation::Aggregate { input: Box::new(input), groups: values, calls };
        Some((Tree { operation, kinds, node: std::ptr::from_ref(query).addr() }, outputs))
    }

    /// A value of the rows of a query; of a leaf, one that SQL's own executor computes if there is no other.
    fn of_input(&mut self, input: &mut Tree, expression: &'p Expression) -> Option<Typed> {
        if let Some(typed) = self.scope(&input.kinds).translate(expression) {
            return Some(typed);
        }
        let Operation::Leaf(leaf) = input.operation else { return None };
        let kind = kind_of(expression, &input.kinds)?;
        input.kinds.push(kind);
        self.leaves[leaf].computed.push(expression);
        self.kinds[leaf].0.push(kind);
        self.scope(&input.kinds).translate(&Expression::Column(input.kinds.len() as u16 - 1))
    }

    fn join(&mut self, query: &'p Node) -> Option<Tree> {
        let Node::Join { left, right, kind, equal, condition, dependent, .. } = query else { return None };
        let left_query = &**left;
        let left = self.input(left)?;
        if *dependent {
            return self.join_looking_up((left_query, left), right, *kind, condition.as_ref());
        }
        let right = self.input(right)?;
        let equal = {
            let (one, other) = (self.scope(&left.kinds), self.scope(&right.kinds));
            let pair = |(left, right): &(Expression, Expression)| {
                same(one.translate(left)?, other.translate(right)?)
            };
            equal.iter().map(pair).collect::<Option<Vec<(Typed, Typed)>>>()?
        };
        let conditions = condition.iter().map(|condition| (condition, false)).collect::<Vec<_>>();
        self.joined((left, right), *kind, equal, &conditions, None)
    }

    /// A join that looks the rows of the right up, as long as they are not kept.
    fn join_looking_up(
        &mut self,
        (left_query, left): (&'p Node, Tree),
        right: &'p Node,
        kind: JoinKind,
        condition: Option<&'p Expression>,
    ) -> Option<Tree> {
        let (kept, inside) = match right {
            Node::Filter { input, condition } => (&**input, Some(condition)),
            other => (other, None),
        };
        let Node::Kept { input, keys, direct, .. } = kept else { return None };
        let right = match (direct, &**input) {
            (None, input) => self.input(input)?,
            (Some(_), scan @ Node::Scan { .. }) => {
                let kinds = self.kinds_of(scan)?;
                self.leaf_of(Leaf { query: scan, computed: Vec::new(), kept: Some(left_query) }, kinds)?
            }
            _ => return None,
        };
        let waits = match right.operation {
            Operation::Leaf(leaf) if direct.is_some() => Some(leaf),
            _ => None,
        };
        let equal = {
            let own = self.scope(&right.kinds);
            let around = Scope { right: &right.kinds, is_inside: true, ..self.scope(&left.kinds) };
            let pair = |(inside, outside): &(Expression, Expression)| {
                let is_of_left = !mentions_column(outside);
                is_of_left.then(|| same(around.translate(outside)?, own.translate(inside)?))?
            };
            keys.iter().map(pair).collect::<Option<Vec<(Typed, Typed)>>>()?
        };
        let known = |part: &Expression| is_a_key(part, keys) || is_filtered(part, input);
        let parts = inside.map_or(&[][..], Expression::conjuncts).iter().filter(|part| !known(part));
        let conditions: Vec<(&Expression, bool)> =
            parts.map(|part| (part, true)).chain(condition.map(|condition| (condition, false))).collect();
        self.joined((left, right), kind, equal, &conditions, waits)
    }

    /// A join with conditions, each with whether it is one of the right side itself.
    fn joined(
        &mut self,
        (left, right): (Tree, Tree),
        kind: JoinKind,
        equal: Vec<(Typed, Typed)>,
        conditions: &[(&Expression, bool)],
        waits: Option<usize>,
    ) -> Option<Tree> {
        (!equal.is_empty()).then_some(())?;
        let mut scope =
            Scope { right: &right.kinds, named: Some(RefCell::new(Vec::new())), ..self.scope(&left.kinds) };
        let mut all: Option<Typed> = None;
        for (condition, is_inside) in conditions {
            scope.is_inside = *is_inside;
            let next = scope.translate(condition).filter(|next| next.kind == Kind::Bool)?;
            all = Some(match all {
                Some(all) => crate::expressions::both(all, next)?,
                None => next,
            });
        }
        let named = scope.named.take().map(RefCell::into_inner).unwrap_or_default();
        let condition = all.map(|all| (all, named));
        let kinds = left.kinds.iter().chain(&right.kinds).copied().collect();
        let join = Join { left, right, kind, equal, condition, waits };
        Some(Tree { operation: Operation::Join(Box::new(join)), kinds, node: 0 })
    }
}

/// What is summed up for a sum of that type.
fn summand(argument: Typed, result: SqlType) -> Option<Typed> {
    match (argument.kind, result.plain()) {
        (Kind::Int, SqlType::INT8) | (Kind::Numeric(_), SqlType::NUMERIC) => Some(argument),
        (Kind::Int, SqlType::NUMERIC) => to_numeric(argument),
        _ => None,
    }
}

fn is_of_extremes(kind: Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Numeric(_) | Kind::Text | Kind::Date | Kind::Time | Kind::Timestamp)
}

fn same(left: Typed, right: Typed) -> Option<(Typed, Typed)> {
    (left.kind == right.kind && left.kind.is_ordered()).then_some((left, right))
}

fn mentions_column(expression: &Expression) -> bool {
    let mut mentions = false;
    expression.visit(0, &mut |part, _| mentions |= matches!(part, Expression::Column(_)));
    mentions
}

/// Whether a condition says of rows that are found by keys what the keys say.
fn is_a_key(part: &Expression, keys: &[(Expression, Expression)]) -> bool {
    let Expression::Binary { operator: BinaryOperator::Equal, left, right, .. } = part else { return false };
    let says = |own: &Expression, around: &Expression| {
        keys.iter().any(|(inside, outside)| is_same(inside, own) && is_same(outside, around))
    };
    says(left, right) || says(right, left)
}

/// Whether a scan gives only rows of which a condition holds, since it is one of its own.
fn is_filtered(part: &Expression, query: &Node) -> bool {
    match query {
        Node::Scan { filter: Some(filter), .. } => {
            filter.conjuncts().iter().any(|known| is_same(known, part))
        }
        _ => false,
    }
}
