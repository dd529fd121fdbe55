//! Going through expressions that are to be changed, with those inside of subqueries; [`Expression::visit`] is for those that are read.

use crate::plan::{AggregateCall, Expression, FrameBound, Node, SubqueryKind, WindowCall};

/// Visits an expression and all within. The visitor gets how many rows lie between the expression's row and the one at the top: a
/// column of that is [`Expression::Column`] at depth 0, and [`Expression::Outer`] of the same depth below.
pub(super) fn walk(expression: &mut Expression, depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    visit(expression, depth);
    match expression {
        Expression::Constant(_)
        | Expression::Parameter(_)
        | Expression::Column(_)
        | Expression::Outer { .. }
        | Expression::Local(_)
        | Expression::NextValue(_)
        | Expression::Random(_)
        | Expression::Answer(_) => {}
        Expression::Binary { left, right, .. } => {
            walk(left, depth, visit);
            walk(right, depth, visit);
        }
        Expression::Unary { operand, .. }
        | Expression::Not(operand)
        | Expression::Cast { operand, .. }
        | Expression::Coerce { operand, .. }
        | Expression::IsNull { operand, .. }
        | Expression::IsBoolean { operand, .. } => walk(operand, depth, visit),
        Expression::And(list)
        | Expression::Or(list)
        | Expression::Coalesce(list)
        | Expression::Array(list)
        | Expression::Call { arguments: list, .. } => walk_all(list, depth, visit),
        Expression::Case { branches, otherwise } => {
            for (condition, result) in branches {
                walk(condition, depth, visit);
                walk(result, depth, visit);
            }
            if let Some(otherwise) = otherwise {
                walk(otherwise, depth, visit);
            }
        }
        Expression::InList { operand, list, .. } => {
            walk(operand, depth, visit);
            walk_all(list, depth, visit);
        }
        Expression::Quantified { left, array, .. } => {
            walk(left, depth, visit);
            walk(array, depth, visit);
        }
        Expression::Element { array, index } => {
            walk(array, depth, visit);
            walk(index, depth, visit);
        }
        Expression::SetValue { value, called, .. } => {
            walk(value, depth, visit);
            walk(called, depth, visit);
        }
        Expression::Signal { process, processes, .. } => {
            walk(process, depth, visit);
            walk(processes, depth, visit);
        }
        Expression::Let { values, body } => {
            walk_all(values, depth, visit);
            walk(body, depth, visit);
        }
        Expression::Subquery { kind, query, .. } => {
            if let SubqueryKind::In { operand, .. } = kind {
                walk(operand, depth, visit);
            }
            walk_node(query, depth + 1, visit);
        }
    }
}

fn walk_all(list: &mut [Expression], depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    list.iter_mut().for_each(|expression| walk(expression, depth, visit));
}

/// Visits all expressions of a query.
pub(super) fn walk_node(node: &mut Node, depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    let inner = u16::from(matches!(node, Node::Join { dependent: true, .. }));
    for (place, input) in node.inputs_mut().into_iter().enumerate() {
        // The right side of a join may see the row of the left.
        walk_node(input, if place == 1 { depth + inner } else { depth }, visit);
    }
    walk_own(node, depth, visit);
}

/// Visits the expressions of a node itself, not of its inputs.
pub(super) fn walk_own(node: &mut Node, depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    match node {
        Node::Values(rows) => rows.iter_mut().for_each(|row| walk_all(row, depth, visit)),
        Node::Scan { path, filter, .. } => {
            walk_path(path, depth, visit);
            filter.iter_mut().for_each(|filter| walk(filter, depth, visit));
        }
        Node::Series { bounds } => walk_all(bounds, depth, visit),
        Node::Unnest { lists, .. } => lists.iter_mut().for_each(|list| walk(&mut list.array, depth, visit)),
        Node::Filter { condition, .. } => walk(condition, depth, visit),
        Node::Project { expressions, .. } => walk_all(expressions, depth, visit),
        Node::Join { equal, condition, .. } => {
            walk_pairs(equal, depth, visit);
            condition.iter_mut().for_each(|condition| walk(condition, depth, visit));
        }
        Node::Kept { keys, direct, .. } => {
            walk_pairs(keys, depth, visit);
            direct.iter_mut().for_each(|path| walk_path(path, depth, visit));
        }
        Node::Window { partition, order, calls, .. } => {
            walk_all(partition, depth, visit);
            order.iter_mut().for_each(|key| walk(&mut key.expression, depth, visit));
            calls.iter_mut().for_each(|call| walk_window(call, depth, visit));
        }
        Node::Aggregate { groups, aggregates, .. } => {
            walk_all(groups, depth, visit);
            aggregates.iter_mut().for_each(|call| walk_aggregate(call, depth, visit));
        }
        Node::Sort { keys, .. } => keys.iter_mut().for_each(|key| walk(&mut key.expression, depth, visit)),
        Node::Distinct { on, .. } => walk_all(on, depth, visit),
        Node::Limit { limit, offset, ties, .. } => {
            limit.iter_mut().for_each(|limit| walk(limit, depth, visit));
            offset.iter_mut().for_each(|offset| walk(offset, depth, visit));
            walk_all(ties, depth, visit);
        }
        Node::Working(_) | Node::Once { .. } | Node::Recursive { .. } | Node::Combine { .. } => {}
    }
}

fn walk_pairs(
    pairs: &mut [(Expression, Expression)],
    depth: u16,
    visit: &mut dyn FnMut(&mut Expression, u16),
) {
    for (left, right) in pairs {
        walk(left, depth, visit);
        walk(right, depth, visit);
    }
}

fn walk_aggregate(call: &mut AggregateCall, depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    walk_all(&mut call.arguments, depth, visit);
    call.filter.iter_mut().for_each(|filter| walk(filter, depth, visit));
    call.order.iter_mut().for_each(|key| walk(&mut key.expression, depth, visit));
}

/// Visits all expressions of a call of a window function.
pub(super) fn walk_window(call: &mut WindowCall, depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    walk_all(&mut call.arguments, depth, visit);
    call.filter.iter_mut().for_each(|filter| walk(filter, depth, visit));
    call.frame.distance.iter_mut().for_each(|distance| walk(&mut distance.value, depth, visit));
    for bound in [&mut call.frame.start, &mut call.frame.end] {
        if let FrameBound::Preceding(offset) | FrameBound::Following(offset) = bound {
            walk(offset, depth, visit);
        }
    }
}

fn walk_path(path: &mut crate::plan::Path, depth: u16, visit: &mut dyn FnMut(&mut Expression, u16)) {
    match path {
        crate::plan::Path::All => {}
        crate::plan::Path::Keys(keys) => keys.iter_mut().for_each(|key| walk_all(key, depth, visit)),
        crate::plan::Path::Range { equal, lower, upper, .. } => {
            walk_all(equal, depth, visit);
            for (bound, _) in lower.iter_mut().chain(upper) {
                walk(bound, depth, visit);
            }
        }
        crate::plan::Path::Ranges { prefixes, array, .. } => {
            prefixes.iter_mut().for_each(|prefix| walk_all(prefix, depth, visit));
            array.iter_mut().for_each(|array| walk(array, depth, visit));
        }
    }
}

/// Calls `visit` with each column of the expression's own row.
pub(super) fn columns(expression: &Expression, mut visit: impl FnMut(u16)) {
    expression.visit(0, &mut |expression, depth| match expression {
        Expression::Column(column) if depth == 0 => visit(*column),
        Expression::Outer { depth: outwards, column } if *outwards == depth && depth > 0 => visit(*column),
        _ => {}
    });
}

/// The expression over a row in which columns have other numbers.
pub(super) fn renumbered(mut expression: Expression, number: impl Fn(u16) -> u16) -> Expression {
    renumber(&mut expression, &number);
    expression
}

/// Gives the columns of an expression other numbers.
pub(super) fn renumber(expression: &mut Expression, number: &dyn Fn(u16) -> u16) {
    walk(expression, 0, &mut |expression, depth| renumber_one(expression, depth, number));
}

/// The same, for one expression as it is visited.
pub(super) fn renumber_one(expression: &mut Expression, depth: u16, number: &dyn Fn(u16) -> u16) {
    match expression {
        Expression::Column(column) if depth == 0 => *column = number(*column),
        Expression::Outer { depth: outwards, column } if *outwards == depth && depth > 0 => {
            *column = number(*column);
        }
        _ => {}
    }
}

/// Whether a query reads rows outside of itself.
pub(super) fn is_correlated(query: &Node) -> bool {
    let mut correlated = false;
    query.visit(0, &mut |expression, depth| {
        if let Expression::Outer { depth: outwards, .. } = expression {
            correlated |= *outwards > depth;
        }
    });
    correlated
}
