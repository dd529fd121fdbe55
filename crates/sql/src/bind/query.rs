//! Queries.

use sqlparser::ast::{
    self, Distinct, Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderBySort, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned, UnaryOperator, Value,
};

use super::expression::unnested;
use super::join::assemble;
use super::names::{name_of, qualified};
use super::numbering::{Numbering, check_count};
use super::path::conjuncts;
use super::pushed::filtered;
use super::scope::{Bound, Field, Level, Qualifier};
use super::windows::windowed;
use super::{Binder, json};
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, Expression, GroupingSets, Node, SortKey};
use crate::types::SqlType;

/// Columns of a result, as values over the rows that they are made from.
pub(super) type Outputs = Vec<(Field, Expression)>;

impl Binder<'_> {
    /// A query as a statement, which may also change rows after `WITH`.
    pub(super) fn query_statement(
        &mut self,
        query: &Query,
    ) -> Result<(Action, Option<Vec<Field>>), SqlError> {
        let statement = match query.body.as_ref() {
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => statement,
            _ => {
                if let Some(call) = self.call_in_query(query)? {
                    return Ok(call);
                }
                let (node, fields) = self.query(query)?;
                return Ok((Action::Query(node), Some(fields)));
            }
        };
        let known = self.name_queries(query)?;
        let bound = match statement {
            ast::Statement::Insert(insert) => self.insert(insert),
            ast::Statement::Update(update) => self.update(update),
            ast::Statement::Delete(delete) => self.delete(delete),
            other => Err(SqlError::unsupported(super::first_words(&other.to_string()))),
        };
        self.forget_queries(known)?;
        bound
    }

    /// Binds a query; its columns.
    pub(super) fn query(&mut self, query: &Query) -> Result<(Node, Vec<Field>), SqlError> {
        if query.for_clause.is_some() {
            return Err(SqlError::unsupported("this clause of a query"));
        }
        crate::syntax::check_locked(query)?;
        let known = self.name_queries(query)?;
        self.keeps_sort = with_ties(query);
        let bound = self.body_and_order(query);
        self.keeps_sort = false;
        self.forget_queries(known)?;
        let (node, fields) = bound?;
        Ok((self.limited(node, query)?, fields))
    }

    fn body_and_order(&mut self, query: &Query) -> Result<(Node, Vec<Field>), SqlError> {
        let order = order_keys(query.order_by.as_ref())?;
        match query.body.as_ref() {
            SetExpr::Select(select) => self.select(select, order),
            other => {
                let (node, fields) = self.set(other)?;
                let node = self.ordered_by_output(node, &fields, order)?;
                Ok((node, fields))
            }
        }
    }

    pub(super) fn set(&mut self, body: &SetExpr) -> Result<(Node, Vec<Field>), SqlError> {
        match body {
            SetExpr::Select(select) => self.select(select, &[]),
            SetExpr::Query(query) => self.deeper(|binder| binder.query(query)),
            SetExpr::Values(values) => {
                let rows: Vec<&[Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
                // Columns that are named in it are of queries around it.
                self.levels.push(Level::default());
                let bound = self.rows(&rows);
                self.levels.pop();
                bound
            }
            SetExpr::SetOperation { .. } => self.combination(body),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) => {
                let hint = "Send it by itself with RETURNING, in the same transaction.";
                Err(SqlError::unsupported("a query that changes rows within WITH").with_hint(hint))
            }
            other => Err(SqlError::unsupported(super::first_words(&other.to_string()))),
        }
    }

    /// Binds a part of something that decides what the types of literals are.
    pub(super) fn open<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        self.keeps_open = true;
        let bound = self.deeper(act);
        self.keeps_open = false;
        bound
    }

    /// The rows with their columns made of other types.
    pub(super) fn cast_columns(
        &mut self,
        mut node: Node,
        fields: &[Field],
        to: &[SqlType],
    ) -> Result<Node, SqlError> {
        if fields.iter().zip(to).all(|(field, to)| field.data_type.is_same(*to)) {
            return Ok(node);
        }
        // Literals and parameters in a list take the type by themselves.
        if let Node::Project { expressions, .. } = &mut node
            && expressions.len() == to.len()
        {
            for ((expression, field), to) in expressions.iter_mut().zip(fields).zip(to) {
                let value = Bound { expression: expression.clone(), data_type: field.data_type };
                *expression = self.implicit(value, *to)?.expression;
            }
            return Ok(node);
        }
        let mut expressions = Vec::with_capacity(to.len());
        for (place, (field, to)) in (0..).zip(fields.iter().zip(to)) {
            let column = Bound { expression: Expression::Column(place), data_type: field.data_type };
            expressions.push(self.implicit(column, *to)?.expression);
        }
        Ok(Node::Project { input: Box::new(node), expressions })
    }

    /// `VALUES`.
    pub(super) fn rows(&mut self, written: &[&[Expr]]) -> Result<(Node, Vec<Field>), SqlError> {
        same_length(written)?;
        let width = written.first().map_or(0, |row| row.len());
        check_count(width, "VALUES lists", "entries")?;
        let mut columns: Vec<Vec<Bound>> = vec![Vec::new(); width];
        for row in written {
            for (column, value) in columns.iter_mut().zip(*row) {
                column.push(self.expression(value)?);
            }
        }
        let mut rows = vec![Vec::with_capacity(width); written.len()];
        let mut fields = Vec::with_capacity(width);
        for (number, column) in (1..).zip(columns) {
            let (values, data_type) = self.unified(column, "VALUES")?;
            rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
            fields.push(Field { name: format!("column{number}"), data_type, origin: None, hidden: false });
        }
        Ok((Node::Values(rows), fields))
    }

    fn select(&mut self, select: &Select, order: &[OrderByExpr]) -> Result<(Node, Vec<Field>), SqlError> {
        if select.into.is_some() || select.qualify.is_some() {
            return Err(SqlError::unsupported("this clause of SELECT"));
        }
        let open = std::mem::take(&mut self.keeps_open);
        let keeps_sort = std::mem::take(&mut self.keeps_sort);
        self.levels.push(Level::default());
        let bound = self.select_within(select, order, open, keeps_sort);
        self.levels.pop();
        bound
    }

    fn select_within(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        open: bool,
        keeps_sort: bool,
    ) -> Result<(Node, Vec<Field>), SqlError> {
        let mut items = self.from(&select.from)?;
        let in_order = items.iter().any(|item| item.in_order);
        let spread = self.spread(select, order, &mut items)?;
        let projection = spread.as_deref().unwrap_or(&select.projection);
        let mut conditions = Vec::new();
        if let Some(condition) = &select.selection {
            self.level().clause = "WHERE";
            conjuncts(self.condition(condition, "WHERE")?, &mut conditions);
        }
        let node = assemble(self, items, &mut conditions);
        self.level().clause = "GROUP BY";
        self.group(select, order)?;
        self.level().clause = "";
        self.begin_windows(&select.named_window)?;
        let mut outputs = self.outputs(projection, open)?;
        self.level().shares_calls = true;
        let (keys, mut hidden) = self.sort_keys(order, &outputs)?;
        let mut on = match &select.distinct {
            Some(Distinct::On(written)) => self.distinct_on(written, &keys, &outputs, &hidden)?,
            _ => Vec::new(),
        };
        self.level().shares_calls = false;
        let windows = self.level().windows.take();
        self.level().clause = "HAVING";
        let having = match &select.having {
            Some(condition) => Some(self.condition(condition, "HAVING")?),
            None => None,
        };
        let (mut node, width, mut numbering) = self.grouped_rows(node, having, in_order);
        if let Some(windows) = windows {
            node = windowed(node, windows, width, &mut numbering);
        }
        let listed = outputs.iter_mut().map(|(_, output)| output);
        listed.chain(&mut hidden).chain(&mut on).for_each(|expression| numbering.settle(expression));
        self.project(node, outputs, (keys, keeps_sort), hidden, select.distinct.as_ref(), on)
    }

    fn distinct_on(
        &mut self,
        written: &[Expr],
        keys: &[SortKey],
        outputs: &Outputs,
        hidden: &[Expression],
    ) -> Result<Vec<Expression>, SqlError> {
        let mut on = Vec::new();
        for one in written {
            on.push(match self.output_named(one, outputs)? {
                Some(place) => outputs[place].1.clone(),
                None => self.expression(one)?.expression,
            });
        }
        first_sorted(&on, keys, outputs, hidden)?;
        Ok(on)
    }

    /// The rows of the groups of a query, if it has any; the number of their columns, and what provisional numbers of these become. `in_order`
    /// says that the order of what is grouped was asked for.
    fn grouped_rows(
        &mut self,
        node: Node,
        having: Option<Expression>,
        in_order: bool,
    ) -> (Node, u16, Numbering) {
        let mut numbering = Numbering::default();
        let Some(grouping) = self.level().grouping.take() else {
            return (node, self.level().width(), numbering);
        };
        let groups: Vec<Expression> = grouping.groups.into_iter().map(|group| group.expression).collect();
        let (aggregates, questions) = (grouping.aggregates, grouping.questions);
        numbering.questions = (groups.len() + aggregates.len()) as u16;
        let width = numbering.questions + questions.len() as u16;
        let sets = grouping.sets.map(|sets| GroupingSets { sets, questions });
        let mut node = Node::Aggregate { input: Box::new(node), groups, sets, aggregates };
        super::order::read_extremes(self, &mut node);
        if let Some(mut condition) = having {
            numbering.settle(&mut condition);
            let mut conditions = Vec::new();
            conjuncts(condition, &mut conditions);
            node = filtered(self, node, conditions, in_order);
        }
        (node, width, numbering)
    }

    /// The rows of a `SELECT` from those of its relations or groups: distinct, in order, with its columns.
    fn project(
        &mut self,
        node: Node,
        outputs: Outputs,
        (keys, keeps_sort): (Vec<SortKey>, bool),
        hidden: Vec<Expression>,
        distinct: Option<&Distinct>,
        on: Vec<Expression>,
    ) -> Result<(Node, Vec<Field>), SqlError> {
        let width = outputs.len() as u16;
        let (fields, mut expressions): (Vec<Field>, Vec<Expression>) = outputs.into_iter().unzip();
        let is_distinct = matches!(distinct, Some(Distinct::Distinct | Distinct::On(_)));
        if !is_distinct && let Some(keys) = super::order::sorted_first(&keys, &expressions, &hidden) {
            let input = Box::new(self.sorted(node, keys, keeps_sort));
            return Ok((Node::Project { input, expressions }, fields));
        }
        if matches!(distinct, Some(Distinct::Distinct)) && !hidden.is_empty() {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        let extra = hidden.len() + on.len();
        check_count(expressions.len() + extra, "target lists and what they are sorted by", "entries")?;
        let on: Vec<Expression> = {
            let first = expressions.len() + hidden.len();
            expressions.extend(hidden);
            let places = (first..first + on.len()).map(|place| Expression::Column(place as u16)).collect();
            expressions.extend(on);
            places
        };
        let mut node = Node::Project { input: Box::new(node), expressions };
        // The first of the rows that are equal `ON` something is the first in order.
        let sorts_first = !on.is_empty();
        if is_distinct && !sorts_first {
            node = Node::Distinct { input: Box::new(node), on: Vec::new() };
        }
        if !keys.is_empty() {
            node = self.sorted(node, keys, keeps_sort);
        }
        if is_distinct && sorts_first {
            node = Node::Distinct { input: Box::new(node), on };
        }
        if extra > 0 {
            let expressions = (0..width).map(Expression::Column).collect();
            node = Node::Project { input: Box::new(node), expressions };
        }
        Ok((node, fields))
    }

    fn sorted(&mut self, node: Node, keys: Vec<SortKey>, keeps_sort: bool) -> Node {
        if keeps_sort {
            return Node::Sort { input: Box::new(node), keys };
        }
        let node = super::order::sorted(self, node, keys);
        self.orders += usize::from(!matches!(node, Node::Sort { .. }));
        node
    }

    /// The columns of a list. If it is `open`, literals get no type yet.
    pub(super) fn outputs(&mut self, items: &[SelectItem], open: bool) -> Result<Outputs, SqlError> {
        let mut outputs = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = Self::column_name(expr);
                    outputs.push(self.output(expr, name, open)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    outputs.push(self.output(expr, name_of(alias), open)?)
                }
                SelectItem::Wildcard(star) => {
                    let columns = self.all_of(None)?;
                    self.all_meant(star.wildcard_token.0.span, &columns);
                    self.put_all(0, columns, &mut outputs)?;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), star) => {
                    let (schema, name_of_relation) = qualified(name)?;
                    let qualifier = Qualifier { schema: schema.as_deref(), name: &name_of_relation };
                    let outwards = self.outwards(qualifier);
                    let columns = self.all_at(outwards, Some(qualifier))?;
                    self.all_meant(name.span().union(&star.wildcard_token.0.span), &columns);
                    self.put_all(outwards, columns, &mut outputs)?;
                }
                other => return Err(SqlError::unsupported(format!("{other} in a list of columns"))),
            }
            check_count(outputs.len(), "target lists", "entries")?;
        }
        Ok(outputs)
    }

    fn output(&mut self, written: &Expr, name: String, open: bool) -> Result<(Field, Expression), SqlError> {
        let bound = self.expression(written)?;
        let bound = if bound.data_type == SqlType::UNKNOWN && !open {
            self.implicit(bound, SqlType::TEXT)?
        } else {
            bound
        };
        let origin = match bound.expression {
            Expression::Column(column) => self.origin(column),
            _ => None,
        };
        Ok((Field { name, data_type: bound.data_type, origin, hidden: false }, bound.expression))
    }

    pub(super) fn origin(&mut self, column: u16) -> Option<(u32, i16)> {
        let level = self.level();
        if level.grouping.is_some() {
            return None;
        }
        let relation = level.relations.iter().rfind(|relation| relation.offset <= column)?;
        relation.fields.get(usize::from(column - relation.offset))?.origin
    }

    /// The keys of `ORDER BY` over the columns of a list, and the values that must be added to these for it.
    fn sort_keys(
        &mut self,
        order: &[OrderByExpr],
        outputs: &Outputs,
    ) -> Result<(Vec<SortKey>, Vec<Expression>), SqlError> {
        let mut keys = Vec::with_capacity(order.len());
        let mut hidden = Vec::new();
        for one in order {
            self.go_on()?;
            let (place, data_type) = match self.output_named(&one.expr, outputs)? {
                Some(place) => (place, outputs[place].0.data_type),
                None => {
                    let bound = self.expression(&one.expr)?;
                    let known = outputs.iter().position(|(_, output)| *output == bound.expression);
                    let place = known.unwrap_or_else(|| {
                        hidden.push(bound.expression);
                        outputs.len() + hidden.len() - 1
                    });
                    (place, bound.data_type)
                }
            };
            keys.push(sort_key(one, Bound { expression: Expression::Column(place as u16), data_type })?);
        }
        Ok((keys, hidden))
    }

    /// The place of the column that an item of `ORDER BY` names by its number or alias.
    fn output_named(&self, written: &Expr, outputs: &Outputs) -> Result<Option<usize>, SqlError> {
        let written = unnested(written);
        if let Some(number) = ordinal(written) {
            let place = usize::try_from(number - 1).ok().filter(|place| *place < outputs.len());
            return place.map(Some).ok_or_else(|| not_in_list("ORDER BY", number));
        }
        if matches!(written, Expr::Value(value) if !matches!(value.value, Value::Placeholder(_))) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "non-integer constant in ORDER BY"));
        }
        let Expr::Identifier(name) = written else { return Ok(None) };
        let name = name_of(name);
        let mut found = outputs.iter().enumerate().filter(|(_, (field, _))| field.name == name);
        let Some((place, (_, first))) = found.next() else { return Ok(None) };
        if found.any(|(_, (_, other))| other != first) {
            let message = format!("ORDER BY \"{name}\" is ambiguous");
            return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
        }
        Ok(Some(place))
    }

    /// `ORDER BY` of a combination of queries: by its columns only.
    fn ordered_by_output(
        &mut self,
        node: Node,
        fields: &[Field],
        order: &[OrderByExpr],
    ) -> Result<Node, SqlError> {
        if order.is_empty() {
            return Ok(node);
        }
        let columns = (0..).map(Expression::Column);
        let outputs: Outputs = fields.iter().cloned().zip(columns).collect();
        let mut keys = Vec::with_capacity(order.len());
        for one in order {
            let Some(place) = self.output_named(&one.expr, &outputs)? else {
                let message = "ORDER BY of a combination of queries must name one of its columns";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            };
            let (expression, data_type) = (Expression::Column(place as u16), fields[place].data_type);
            keys.push(sort_key(one, Bound { expression, data_type })?);
        }
        Ok(Node::Sort { input: Box::new(node), keys })
    }

    fn limited(&mut self, node: Node, query: &Query) -> Result<Node, SqlError> {
        // Without a number it is one row.
        let fetched = query.fetch.as_ref().map(|fetch| {
            let one = || Expr::Value(Value::Number("1".to_owned(), false).into());
            fetch.quantity.clone().unwrap_or_else(one)
        });
        if query.fetch.as_ref().is_some_and(|fetch| fetch.percent) {
            return Err(SqlError::unsupported("FETCH of a percentage of the rows"));
        }
        let (limit, offset) = match (&query.limit_clause, fetched) {
            (None, None) => return Ok(node),
            (Some(LimitClause::LimitOffset { limit, offset, .. }), fetched) => {
                (limit.clone().or(fetched), offset.as_ref().map(|offset| offset.value.clone()))
            }
            (Some(LimitClause::OffsetCommaLimit { offset, limit }), _) => {
                (Some(limit.clone()), Some(offset.clone()))
            }
            (None, fetched) => (fetched, None),
        };
        let mut count = |written: Option<Expr>, of: &str| -> Result<Option<Expression>, SqlError> {
            let Some(written) = written else { return Ok(None) };
            let bound = self.expression(&written)?;
            let counted = self.counting(bound, of)?;
            if counted.reads_row() {
                let message = format!("argument of {of} must not contain variables");
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
            }
            Ok(Some(counted))
        };
        let (limit, offset) = (count(limit, "LIMIT")?, count(offset, "OFFSET")?);
        if with_ties(query) {
            return limited_with_ties(node, limit, offset);
        }
        let node = if limit.is_some() { super::order::sorted_by_index(self, node) } else { node };
        Ok(Node::Limit { input: Box::new(node), limit, offset, ties: Vec::new() })
    }
}

/// Fails if a list of `VALUES` is longer or shorter than the first.
pub(super) fn same_length(written: &[&[Expr]]) -> Result<(), SqlError> {
    if written.windows(2).all(|pair| pair[0].len() == pair[1].len()) {
        return Ok(());
    }
    Err(SqlError::new(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length"))
}

fn with_ties(query: &Query) -> bool {
    query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties)
}

/// Some of the rows of a sorted query, and those that are sorted like the last of them.
fn limited_with_ties(
    node: Node,
    limit: Option<Expression>,
    offset: Option<Expression>,
) -> Result<Node, SqlError> {
    let keys = match &node {
        Node::Distinct { input, .. } => sort_keys_of(input),
        other => sort_keys_of(other),
    };
    match (keys, node) {
        (Some(ties), node) => Ok(Node::Limit { input: Box::new(node), limit, offset, ties }),
        // What it is sorted by is not among its columns.
        (None, Node::Project { input, expressions }) => {
            let input = Box::new(limited_with_ties(*input, limit, offset)?);
            Ok(Node::Project { input, expressions })
        }
        (None, _) => {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn sort_keys_of(node: &Node) -> Option<Vec<Expression>> {
    let Node::Sort { keys, .. } = node else { return None };
    Some(keys.iter().map(|key| key.expression.clone()).collect())
}

/// The rows that `DISTINCT ON` keeps are the first of those that `ORDER BY` must bring together.
fn first_sorted(
    on: &[Expression],
    keys: &[SortKey],
    outputs: &Outputs,
    hidden: &[Expression],
) -> Result<(), SqlError> {
    let sorted = |key: &SortKey| match json::out_of_order(&key.expression) {
        Expression::Column(place) => {
            let place = usize::from(*place);
            outputs.get(place).map(|(_, output)| output).or_else(|| hidden.get(place - outputs.len()))
        }
        _ => None,
    };
    let leading = keys.iter().take(on.len());
    if leading.map(sorted).all(|key| key.is_some_and(|key| on.contains(key))) {
        return Ok(());
    }
    let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
    Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message))
}

fn order_keys(order: Option<&OrderBy>) -> Result<&[OrderByExpr], SqlError> {
    match order.map(|order| &order.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(keys)) => Ok(keys),
        Some(OrderByKind::All(_)) => Err(SqlError::unsupported("ORDER BY ALL")),
    }
}

/// A key of `ORDER BY`.
pub(super) fn sort_key(written: &OrderByExpr, value: Bound) -> Result<SortKey, SqlError> {
    let descending = match &written.options.sort {
        Some(OrderBySort::Using(operator)) => match operator.to_string().as_str() {
            "<" => false,
            ">" => true,
            other => {
                let message = format!("operator {other} is not a valid ordering operator");
                let hint = "Ordering operators must be \"<\" or \">\" members of btree operator families.";
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_hint(hint));
            }
        },
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Asc) | None => false,
    };
    let nulls_first = written.options.nulls_first.unwrap_or(descending);
    Ok(SortKey { expression: json::in_order(value)?.expression, descending, nulls_first })
}

/// The number that stands for an item of a list.
pub(super) fn ordinal(written: &Expr) -> Option<i64> {
    match written {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<i32>().ok().map(i64::from),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => ordinal(expr).map(|number| -number),
        // Parentheses leave it the number that it is.
        Expr::Nested(inner) => ordinal(inner),
        _ => None,
    }
}

pub(super) fn not_in_list(clause: &str, number: i64) -> SqlError {
    let message = format!("{clause} position {number} is not in select list");
    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}
