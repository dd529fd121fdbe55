//! Aggregates, and expressions over groups.

use std::collections::BTreeSet;

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, GroupByExpr, InTarget, NamedWindowDefinition, NamedWindowExpr,
    OrderByExpr, Select, SelectItem, WindowType,
};

use super::expression::unnested;
use super::functions::plain_argument;
use super::names::name_of;
use super::query::{not_in_list, ordinal, sort_key};
use super::scope::{Bound, Grouping};
use super::{Binder, json, numbering, windows};
use crate::error::{SqlError, SqlState};
use crate::plan::{AggregateCall, Expression, SortKey, is_same};
use crate::types::{SqlType, aggregate, functions};

impl Binder<'_> {
    /// Prepares the level for grouping, if the query groups.
    pub(super) fn group(&mut self, select: &Select, order: &[OrderByExpr]) -> Result<bool, SqlError> {
        let GroupByExpr::Expressions(written, modifiers) = &select.group_by else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("this form of GROUP BY"));
        }
        if !is_grouped(select, order) {
            return Ok(false);
        }
        let mut grouping = self.grouping(written, &select.projection)?;
        if grouping.sets.is_none() {
            self.add_dependent(&mut grouping);
        }
        self.level().grouping = Some(grouping);
        Ok(true)
    }

    /// What is grouped by the primary key of a table is grouped by all of its columns.
    fn add_dependent(&mut self, grouping: &mut Grouping) {
        let column_of = |group: &Bound| match group.expression {
            Expression::Column(column) => Some(column),
            _ => None,
        };
        let known: BTreeSet<u16> = grouping.groups.iter().filter_map(column_of).collect();
        for relation in &self.level().relations {
            let is_group = |place: &u16| known.contains(&(relation.offset + place));
            if relation.key.is_empty() || !relation.key.iter().all(is_group) {
                continue;
            }
            for (column, field) in (relation.offset..).zip(&relation.fields) {
                if !known.contains(&column) && !field.name.is_empty() {
                    let expression = Expression::Column(column);
                    grouping.groups.push(Bound { expression, data_type: field.data_type });
                }
            }
        }
    }

    /// What an item of `GROUP BY` means: a number or an alias stands for an item of the list, unless a column has that name.
    pub(super) fn meant(&mut self, written: &Expr, items: &[SelectItem]) -> Result<Expr, SqlError> {
        if let Some(place) = ordinal(written) {
            let found = usize::try_from(place - 1).ok();
            return match found.and_then(|place| items.get(place)) {
                Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                    Ok(expr.clone())
                }
                _ => Err(not_in_list("GROUP BY", place)),
            };
        }
        if let Expr::Identifier(name) = unnested(written)
            && self.level().find(None, &name_of(name))?.is_none()
        {
            for item in items {
                if let SelectItem::ExprWithAlias { expr, alias } = item
                    && name_of(alias) == name_of(name)
                {
                    return Ok(expr.clone());
                }
            }
        }
        Ok(written.clone())
    }

    /// The value of an expression by which the query is grouped.
    pub(super) fn grouped(&mut self, written: &Expr) -> Option<Bound> {
        let level = self.levels.last()?;
        let grouping = level.grouping.as_ref().filter(|_| !level.in_aggregate)?;
        let (_, place) = grouping.written.iter().find(|(group, _)| group == written)?;
        let data_type = grouping.groups[usize::from(*place)].data_type;
        Some(Bound { expression: Expression::Column(*place), data_type })
    }

    /// The number that a column of a query has: of its rows or, if it is grouped, of its groups.
    pub(super) fn over_groups(&self, place: usize, column: u16, name: &str) -> Result<u16, SqlError> {
        let level = &self.levels[place];
        let Some(grouping) = level.grouping.as_ref().filter(|_| !level.in_aggregate) else {
            return Ok(column);
        };
        let is_it = |group: &Bound| group.expression == Expression::Column(column);
        match grouping.groups.iter().position(is_it) {
            Some(group) => Ok(group as u16),
            None => {
                let relation = level.relations.iter().rfind(|relation| relation.offset <= column);
                let shown = match relation {
                    Some(relation) if !relation.name.is_empty() => format!("{}.{name}", relation.name),
                    _ => name.to_owned(),
                };
                Err(SqlError::new(
                    SqlState::GROUPING_ERROR,
                    format!(
                        "column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"
                    ),
                ))
            }
        }
    }

    pub(super) fn aggregate(&mut self, name: &str, function: &Function) -> Result<Bound, SqlError> {
        let Some(level) = self.levels.last() else {
            return Err(misplaced());
        };
        if level.in_aggregate {
            return Err(SqlError::new(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested"));
        }
        if level.grouping.is_none() {
            return Err(misplaced());
        }
        self.level().in_aggregate = true;
        let call = self.aggregate_call(name, function);
        self.level().in_aggregate = false;
        let call = call?;
        let data_type = call.aggregate.result;
        let shares = self.level().shares_calls || !call.is_volatile();
        let Some(grouping) = self.level().grouping.as_mut() else { return Err(misplaced()) };
        let groups = grouping.groups.len();
        let is_known = |known: &AggregateCall| shares && is_same(known, &call);
        let known = grouping.aggregates.iter().position(is_known);
        let place = known.unwrap_or_else(|| {
            grouping.aggregates.push(call);
            grouping.aggregates.len() - 1
        });
        numbering::check_count(place + 1, "a query", "aggregates")?;
        Ok(Bound { expression: Expression::Column((groups + place) as u16), data_type })
    }

    fn sort_key(&mut self, key: &OrderByExpr) -> Result<SortKey, SqlError> {
        let value = self.expression(&key.expr)?;
        sort_key(key, value)
    }

    /// Refuses `WITHIN GROUP` after an aggregate that is not of a sorted set: what is sorted are arguments after the others, which it does
    /// not take.
    fn refuse_within_group(
        &mut self,
        name: &str,
        function: &Function,
        arguments: &[SqlType],
    ) -> Result<(), SqlError> {
        if function.within_group.is_empty() {
            return Ok(());
        }
        let mut types = arguments.to_vec();
        for key in &function.within_group {
            types.push(self.expression(&key.expr)?.data_type);
        }
        Err(functions::undefined(name, &types))
    }

    /// The arguments of an aggregate, and whether one of them is a whole row.
    fn aggregate_arguments(
        &mut self,
        name: &str,
        list: &FunctionArgumentList,
    ) -> Result<(Vec<Bound>, bool), SqlError> {
        let (mut arguments, mut has_rows) = (Vec::new(), false);
        for argument in &list.args {
            if !matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard)) {
                let written = plain_argument(argument)?;
                arguments.push(match self.whole_row(name, &written)? {
                    Some(row) => {
                        has_rows = true;
                        row
                    }
                    None => self.expression(&written)?,
                });
            }
        }
        Ok((arguments, has_rows))
    }

    /// What the rows of an aggregate are sorted by; of distinct ones, it must be `among` its arguments.
    fn order_within(
        &mut self,
        list: &FunctionArgumentList,
        among: Option<&[Expression]>,
    ) -> Result<Vec<SortKey>, SqlError> {
        let mut order = Vec::new();
        for clause in &list.clauses {
            let FunctionArgumentClause::OrderBy(keys) = clause else {
                return Err(SqlError::unsupported(format!("{clause} in an aggregate")));
            };
            for key in keys {
                let value = self.expression(&key.expr)?;
                if among.is_some_and(|arguments| !arguments.contains(&value.expression)) {
                    let message =
                        "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                    return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
                }
                order.push(sort_key(key, value)?);
            }
        }
        Ok(order)
    }

    fn aggregate_call(&mut self, name: &str, function: &Function) -> Result<AggregateCall, SqlError> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}() does not exist"),
            ));
        };
        let (arguments, has_rows) = self.aggregate_arguments(name, list)?;
        let given: Vec<Expression> = arguments.iter().map(|argument| argument.expression.clone()).collect();
        let mut arguments = self.shown_padded(name, arguments)?;
        let mut order = Vec::new();
        if aggregate::is_ordered(name) {
            let [key] = function.within_group.as_slice() else {
                let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            };
            // The values come first, then what was in the parentheses.
            arguments.insert(0, self.expression(&key.expr)?);
            order.push(self.sort_key(key)?);
        }
        let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
        if !aggregate::is_ordered(name) {
            self.refuse_within_group(name, function, &types)?;
        }
        let mut aggregate = aggregate::resolve(name, &types)?;
        if has_rows && aggregate.id == aggregate::AggregateId::JsonArray {
            aggregate.id = aggregate::AggregateId::JsonLines;
        }
        let filter = match &function.filter {
            Some(filter) => Some(self.condition(filter, "FILTER")?),
            None => None,
        };
        if is_of_outer_query(arguments.iter().map(|argument| &argument.expression).chain(&filter)) {
            let what =
                format!("{name}() over columns of a query around it alone, which would be that query's,");
            return Err(SqlError::unsupported(what).with_hint(
                "Compute it in the query that has the columns, or name a column of its own query.",
            ));
        }
        let mut values = Vec::new();
        for (argument, wanted) in arguments.into_iter().zip(&aggregate.arguments) {
            values.push(self.implicit(argument, *wanted)?.expression);
        }
        let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        let among = distinct.then_some(given.as_slice());
        order.extend(self.order_within(list, among)?);
        if distinct && order.is_empty() && aggregate.keeps_arguments() {
            // As PostgreSQL finds equal ones by sorting them.
            for (value, data_type) in values.iter().zip(&aggregate.arguments) {
                let value = Bound { expression: value.clone(), data_type: *data_type };
                let expression = json::in_order(value)?.expression;
                order.push(SortKey { expression, descending: false, nulls_first: false });
            }
        }
        Ok(AggregateCall { aggregate, arguments: values, distinct, filter, order })
    }
}

/// Whether an aggregate of these arguments, its filter among them, is one of a query around its own: there are columns in them, and none is of
/// its own.
fn is_of_outer_query<'e>(arguments: impl Iterator<Item = &'e Expression>) -> bool {
    let (mut has_own, mut has_outer) = (false, false);
    for argument in arguments {
        argument.visit(0, &mut |part, depth| match part {
            Expression::Column(_) if depth == 0 => has_own = true,
            Expression::Outer { depth: far, .. } if depth > 0 && *far == depth => has_own = true,
            Expression::Outer { depth: far, .. } if *far > depth => has_outer = true,
            _ => {}
        });
    }
    has_outer && !has_own
}

/// Whether a query groups.
pub(super) fn is_grouped(select: &Select, order: &[OrderByExpr]) -> bool {
    let item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
        _ => false,
    };
    let is_by = !matches!(&select.group_by, GroupByExpr::Expressions(written, _) if written.is_empty());
    let window = |definition: &NamedWindowDefinition| match &definition.1 {
        NamedWindowExpr::WindowSpec(spec) => windows::expressions_of(spec).any(has_aggregate),
        NamedWindowExpr::NamedWindow(_) => false,
    };
    is_by
        || select.having.is_some()
        || select.projection.iter().any(item)
        || order.iter().any(|key| has_aggregate(&key.expr))
        || select.named_window.iter().any(window)
}

fn misplaced() -> SqlError {
    SqlError::new(SqlState::GROUPING_ERROR, "aggregate functions are not allowed here")
}

/// Whether an expression has an aggregate of its own query.
pub(super) fn has_aggregate(written: &Expr) -> bool {
    let any = |list: &[Expr]| list.iter().any(has_aggregate);
    match written {
        Expr::Function(function) => {
            let over = match &function.over {
                Some(WindowType::WindowSpec(spec)) => windows::expressions_of(spec).any(has_aggregate),
                _ => false,
            };
            over || is_aggregate(function)
                || function.filter.as_deref().is_some_and(has_aggregate)
                || super::functions::arguments_of(function).is_ok_and(|arguments| any(&arguments))
        }
        Expr::BinaryOp { left, right, .. }
        | Expr::AnyOp { left, right, .. }
        | Expr::AllOp { left, right, .. }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right) => has_aggregate(left) || has_aggregate(right),
        Expr::Nested(inner)
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::Cast { expr: inner, .. }
        | Expr::Collate { expr: inner, .. }
        | Expr::Extract { expr: inner, .. }
        | Expr::Ceil { expr: inner, .. }
        | Expr::Floor { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::CompoundFieldAccess { root: inner, .. } => has_aggregate(inner),
        Expr::In { expr, target: InTarget::List(list), .. } => has_aggregate(expr) || any(list),
        Expr::In { expr, .. } => has_aggregate(expr),
        Expr::Between { expr, low, high, .. } => {
            has_aggregate(expr) || has_aggregate(low) || has_aggregate(high)
        }
        Expr::Like { expr, pattern, .. }
        | Expr::ILike { expr, pattern, .. }
        | Expr::SimilarTo { expr, pattern, .. } => has_aggregate(expr) || has_aggregate(pattern),
        Expr::AtTimeZone { timestamp, .. } => has_aggregate(timestamp),
        Expr::Case { operand, conditions, else_result, .. } => {
            operand.iter().chain(else_result).any(|inner| has_aggregate(inner))
                || conditions.iter().any(|when| has_aggregate(&when.condition) || has_aggregate(&when.result))
        }
        Expr::Array(array) => any(&array.elem),
        Expr::Tuple(list) => any(list),
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            has_aggregate(expr)
                || substring_from.iter().chain(substring_for).any(|inner| has_aggregate(inner))
        }
        Expr::Trim { expr, .. } => has_aggregate(expr),
        Expr::Position { expr, r#in } => has_aggregate(expr) || has_aggregate(r#in),
        _ => false,
    }
}

fn is_aggregate(function: &Function) -> bool {
    function.over.is_none()
        && super::names::last_name(&function.name).is_ok_and(|name| aggregate::exists(&name))
}
