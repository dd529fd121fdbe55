//! `WITH`: queries that can be named, also by themselves.

use std::collections::BTreeSet;
use std::rc::Rc;

use sqlparser::ast::{CteAsMaterialized, LimitClause, Query, SetExpr, SetOperator, SetQuantifier};

use super::coerce::common_type;
use super::names::name_of;
use super::path::conjuncts;
use super::pushed::filtered;
use super::scope::Field;
use super::{Binder, kept, walk};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, JoinKind, Node, SetOperation};
use crate::types::SqlType;

/// A query of `WITH`.
#[derive(Clone)]
pub(super) struct NamedQuery {
    pub name: String,
    /// The names of its columns, as far as they are given.
    columns: Vec<String>,
    /// How many queries lie around its own: it sees their rows.
    depth: usize,
    source: Source,
    /// What [`Node::Once`] names it by.
    number: u16,
    materialized: Option<CteAsMaterialized>,
    /// Whether it was named.
    used: bool,
}

/// How a query of `WITH` was named where it is to run once.
#[derive(Clone, Copy, Default)]
pub(super) struct Mentions {
    /// How often; twice if it must run once.
    count: u32,
    /// Whether its rows come in an order that was asked for because of how a table is read.
    in_order: bool,
}

/// Where the rows of a query of `WITH` come from.
#[derive(Clone)]
enum Source {
    /// A query, and whether it may name itself.
    Query(Rc<Query>, bool),
    /// It is that query in its own text.
    Itself(Itself),
}

/// A query as it is seen in its own text.
#[derive(Clone)]
struct Itself {
    /// Why it cannot be named there, if it cannot.
    refusal: Option<&'static str>,
    number: u16,
    fields: Vec<Field>,
    /// How many expressions with queries within lie around its text.
    subqueries: usize,
    /// How often it was named.
    uses: usize,
}

/// Most places where the queries of `WITH` and of views of a statement are put, those within them included: each that names another twice
/// doubles them.
const EXPANSIONS_MAX: usize = 1000;

impl Binder<'_> {
    /// Makes the queries of `WITH` known; how many were known before.
    pub(super) fn name_queries(&mut self, query: &Query) -> Result<usize, SqlError> {
        let known = self.named.len();
        if let Some(with) = &query.with {
            let mut names = BTreeSet::new();
            for one in &with.cte_tables {
                let name = name_of(&one.alias.name);
                if !names.insert(name.clone()) {
                    let message = format!("WITH query name \"{name}\" specified more than once");
                    return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message));
                }
                if self.mentions.len() > usize::from(u16::MAX) {
                    let message = "too many queries of WITH";
                    return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                        .with_hint("Split the statement."));
                }
                let columns = one.alias.columns.iter().map(|column| name_of(&column.name)).collect();
                let source = Source::Query(Rc::new((*one.query).clone()), with.recursive);
                let (depth, number, materialized) =
                    (self.levels.len(), self.mentions.len() as u16, one.materialized);
                self.mentions.push(Mentions::default());
                let used = false;
                self.named.push(NamedQuery { name, columns, depth, source, number, materialized, used });
            }
        }
        Ok(known)
    }

    /// Binds the queries of `WITH` that nothing has named: what is wrong with them is an error, and their parameters are the statement's.
    /// None of them runs, so nothing is kept of them. Forgets all that are known beyond the number of those `known` before.
    pub(super) fn forget_queries(&mut self, known: usize) -> Result<(), SqlError> {
        let keeps_open = std::mem::take(&mut self.keeps_open);
        let mut bound = Ok(());
        // The last first: it may name those before it.
        for place in (known..self.named.len()).rev() {
            if bound.is_err() || self.named[place].used {
                continue;
            }
            let (questions, sequences) = (self.questions.len(), self.sequences.len());
            let (drawn, mentions, expansions) = (self.drawn.clone(), self.mentions.clone(), self.expansions);
            bound = match self.with_query(place).map(|_| ()) {
                // One that runs would be too much in its places.
                Err(_) if self.expansions > EXPANSIONS_MAX => Ok(()),
                outcome => outcome,
            };
            self.questions.truncate(questions);
            self.sequences.truncate(sequences);
            (self.drawn, self.mentions, self.expansions) = (drawn, mentions, expansions);
        }
        self.named.truncate(known);
        self.keeps_open = keeps_open;
        bound
    }

    /// A query of `WITH`, or of a view, is about to be put where it is named.
    ///
    /// # Errors
    /// When the statement has too many of them.
    pub(super) fn count_expansion(&mut self) -> Result<(), SqlError> {
        self.expansions += 1;
        if self.expansions <= EXPANSIONS_MAX {
            return Ok(());
        }
        let message =
            format!("queries of WITH and of views come to more than {EXPANSIONS_MAX} in their places");
        Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .with_hint("Each is put wherever it is named. Name each once."))
    }

    /// The rows of a query of `WITH`, and its columns.
    pub(super) fn with_query(&mut self, place: usize) -> Result<(Node, Vec<Field>), SqlError> {
        if let Source::Itself(_) = self.named[place].source {
            return self.itself(place);
        }
        self.count_expansion()?;
        self.named[place].used = true;
        // It sees those before it.
        let later = self.named.split_off(place);
        let named = later[0].clone();
        let depth = named.depth.min(self.levels.len());
        let between = self.levels.split_off(depth);
        let orders = self.orders;
        let bound = self.deeper(|binder| match &named.source {
            Source::Query(query, true) => binder.recursive(&named, query),
            Source::Query(query, false) => binder.query(query),
            Source::Itself(_) => Ok((Node::Values(Vec::new()), Vec::new())),
        });
        // An error leaves what it was in.
        self.levels.truncate(depth);
        self.named.truncate(place);
        // The last of them is the query that names it, whose rows are no rows around.
        let further = between.len().saturating_sub(1) as u16;
        self.levels.extend(between);
        self.named.extend(later);
        let (mut node, fields) = bound?;
        walk::walk_node(&mut node, 0, &mut |expression, depth| {
            if let Expression::Outer { depth: outwards, .. } = expression
                && *outwards > depth
            {
                *outwards += further;
            }
        });
        let in_order = self.orders > orders;
        Ok((self.once(&named, node, in_order), renamed(&named, fields)?))
    }

    /// A query of `WITH` where it is named: it runs once, unless it depends on what is around, or may be put there as it is.
    fn once(&mut self, named: &NamedQuery, node: Node, in_order: bool) -> Node {
        let changes = node.is_volatile();
        let is_put = named.materialized == Some(CteAsMaterialized::NotMaterialized) && !changes;
        if is_put || kept::depends(&node) {
            return node;
        }
        let mentions = &mut self.mentions[usize::from(named.number)];
        let decided = changes || named.materialized == Some(CteAsMaterialized::Materialized);
        mentions.count += if decided { 2 } else { 1 };
        mentions.in_order = in_order;
        Node::Once { number: named.number, query: Box::new(node) }
    }

    /// Puts queries of `WITH` that are named once where they are named.
    pub(super) fn put_single(&self, node: &mut Node) {
        self.put_single_inputs(node);
        walk::walk_node(node, 0, &mut |expression, _| {
            if let Expression::Subquery { query, .. } = expression {
                self.put_single_inputs(query);
            }
        });
    }

    fn put_single_inputs(&self, node: &mut Node) {
        let nothing = || Node::Values(Vec::new());
        while let Some((query, _)) = self.single(node) {
            *node = std::mem::replace(query, nothing());
        }
        if let Node::Filter { input, condition } = node
            && let Some((query, in_order)) = self.single(input)
        {
            let query = std::mem::replace(query, nothing());
            let mut conditions = Vec::new();
            conjuncts(std::mem::replace(condition, Expression::Or(Vec::new())), &mut conditions);
            *node = filtered(self, query, conditions, in_order);
            return self.put_single_inputs(node);
        }
        node.inputs_mut().into_iter().for_each(|input| self.put_single_inputs(input));
    }

    /// A query of `WITH` that is named but once, if a node is such, and whether its rows come in an order.
    fn single<'n>(&self, node: &'n mut Node) -> Option<(&'n mut Node, bool)> {
        let Node::Once { number, query } = node else { return None };
        let mentions = self.mentions.get(usize::from(*number))?;
        (mentions.count == 1).then_some((query, mentions.in_order))
    }

    /// A query in its own text.
    fn itself(&mut self, place: usize) -> Result<(Node, Vec<Field>), SqlError> {
        let subqueries = self.subqueries;
        let NamedQuery { name, source: Source::Itself(itself), .. } = &mut self.named[place] else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a query does not name itself"));
        };
        itself.uses += 1;
        let refused = match itself.refusal {
            Some("") => Some(format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            )),
            Some(place) => Some(format!("recursive reference to query \"{name}\" must not appear {place}")),
            None if subqueries > itself.subqueries => {
                Some(format!("recursive reference to query \"{name}\" must not appear within a subquery"))
            }
            None if itself.uses > 1 => {
                Some(format!("recursive reference to query \"{name}\" must not appear more than once"))
            }
            None => None,
        };
        match refused {
            Some(message) => Err(SqlError::new(SqlState::INVALID_RECURSION, message)),
            None => Ok((Node::Working(itself.number), itself.fields.clone())),
        }
    }

    /// Binds a part of a query that is known as itself meanwhile; how often it was named.
    fn knowing_itself<T>(
        &mut self,
        named: &NamedQuery,
        refusal: Option<&'static str>,
        (number, fields): (u16, Vec<Field>),
        act: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, usize), SqlError> {
        let place = self.named.len();
        let itself = Itself { refusal, number, fields, subqueries: self.subqueries, uses: 0 };
        self.named.push(NamedQuery { source: Source::Itself(itself), ..named.clone() });
        let bound = act(self);
        let uses = match &self.named[place].source {
            Source::Itself(itself) => itself.uses,
            Source::Query(..) => 0,
        };
        self.named.truncate(place);
        Ok((bound?, uses))
    }

    /// A query that may name itself.
    fn recursive(&mut self, named: &NamedQuery, query: &Query) -> Result<(Node, Vec<Field>), SqlError> {
        let plain = |binder: &mut Self| {
            binder.knowing_itself(named, Some(""), (0, Vec::new()), |binder| binder.query(query))
        };
        let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } =
            query.body.as_ref()
        else {
            return plain(self).map(|(bound, _)| bound);
        };
        let number = self.recursions;
        self.recursions += 1;
        let refusal = Some("within its non-recursive term");
        let ((first, fields), _) = self.knowing_itself(named, refusal, (number, Vec::new()), |binder| {
            binder.name_queries(query)?;
            binder.deeper(|binder| binder.set(left))
        })?;
        let fields = renamed(named, fields)?;
        let ((step, others), uses) =
            self.knowing_itself(named, None, (number, fields.clone()), |binder| {
                let known = binder.name_queries(query)?;
                let step = binder.open(|binder| binder.set(right))?;
                binder.forget_queries(known)?;
                Ok(step)
            })?;
        if uses == 0 {
            return plain(self).map(|(bound, _)| bound);
        }
        refuse_clauses(query)?;
        has_working(&step, &named.name, number)?;
        let step = kept::kept(self, step);
        let step = Box::new(self.same_columns(named, step, &fields, &others)?);
        let all = *set_quantifier == SetQuantifier::All;
        Ok((Node::Recursive { number, first: Box::new(first), step, all }, fields))
    }

    /// The rows of a step with the columns of those that the recursion begins with.
    fn same_columns(
        &mut self,
        named: &NamedQuery,
        step: Node,
        fields: &[Field],
        others: &[Field],
    ) -> Result<Node, SqlError> {
        if fields.len() != others.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let types: Vec<SqlType> = fields.iter().map(|field| field.data_type).collect();
        for (place, (own, other)) in (1..).zip(types.iter().zip(others)) {
            let common = common_type(*own, other.data_type, "UNION")?;
            if !common.is_same(*own) {
                let message = format!(
                    "recursive query \"{}\" column {place} has type {} in non-recursive term but type {} overall",
                    named.name,
                    own.name(),
                    common.name()
                );
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                    .with_hint("Cast the output of the non-recursive term to the correct type."));
            }
        }
        self.cast_columns(step, others, &types)
    }
}

/// The columns of a query of `WITH` under the names that it is given.
fn renamed(named: &NamedQuery, mut fields: Vec<Field>) -> Result<Vec<Field>, SqlError> {
    if named.columns.len() > fields.len() {
        let message = format!(
            "WITH query \"{}\" has {} columns available but {} columns specified",
            named.name,
            fields.len(),
            named.columns.len()
        );
        return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
    }
    for (field, column) in fields.iter_mut().zip(&named.columns) {
        field.name.clone_from(column);
    }
    Ok(fields)
}

/// Clauses that a recursive query cannot have.
fn refuse_clauses(query: &Query) -> Result<(), SqlError> {
    let clause = match (&query.order_by, &query.limit_clause, &query.fetch) {
        (Some(_), ..) => "ORDER BY",
        (_, Some(LimitClause::LimitOffset { limit: None, .. }), None) => "OFFSET",
        (_, Some(_), _) | (_, _, Some(_)) => "LIMIT",
        _ => return Ok(()),
    };
    let message = format!("{clause} in a recursive query is not implemented");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// Whether a query reads the rows of the step before. An error if it does so where these would come and go.
fn has_working(node: &Node, name: &str, number: u16) -> Result<bool, SqlError> {
    let has = |node: &Node| has_working(node, name, number);
    let refused = |message: String| Err(SqlError::new(SqlState::INVALID_RECURSION, message));
    let within = |place: &str| {
        refused(format!("recursive reference to query \"{name}\" must not appear within {place}"))
    };
    match node {
        Node::Working(known) => Ok(*known == number),
        Node::Values(_) | Node::Scan { .. } | Node::Series { .. } | Node::Unnest { .. } => Ok(false),
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Kept { input, .. }
        | Node::Once { query: input, .. }
        | Node::Limit { input, .. } => has(input),
        Node::Aggregate { input, .. } | Node::Window { input, .. } if has(input)? => {
            let kind = if matches!(node, Node::Window { .. }) { "window" } else { "aggregate" };
            refused(format!("{kind} functions are not allowed in a recursive query's recursive term"))
        }
        Node::Aggregate { .. } | Node::Window { .. } => Ok(false),
        Node::Join { left, right, kind, .. } => match (kind, has(left)?, has(right)?) {
            (JoinKind::Left, _, true) | (JoinKind::Full, true, _) | (JoinKind::Full, _, true) => {
                within("an outer join")
            }
            (_, left, right) => Ok(left || right),
        },
        Node::Combine { operation, all, left, right } => match (operation, has(left)?, has(right)?) {
            (SetOperation::Except, left, right) if right || (left && *all) => within("EXCEPT"),
            (SetOperation::Intersect, left, right) if *all && (left || right) => within("INTERSECT"),
            (_, left, right) => Ok(left || right),
        },
        Node::Recursive { first, step, .. } => Ok(has(first)? || has(step)?),
    }
}
