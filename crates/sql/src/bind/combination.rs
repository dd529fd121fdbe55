//! `UNION`, `INTERSECT` and `EXCEPT`, any number of them in a row.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

use super::Binder;
use super::coerce::common_type;
use super::scope::Field;
use crate::error::{SqlError, SqlState};
use crate::plan::{Node, SetOperation};
use crate::types::SqlType;

/// Queries that one operation combines, from left to right.
struct Combined {
    operation: SetOperation,
    all: bool,
    nodes: Vec<Node>,
}

impl Combined {
    /// Whether a further query can be one of them: how they are grouped makes no difference then.
    fn takes(&self, operation: SetOperation, all: bool) -> bool {
        let is_same = self.operation == operation && self.all == all;
        self.nodes.len() == 1 || (operation == SetOperation::Union && is_same)
    }

    /// Their rows. The tree is as flat as it can be, whatever their number.
    fn finish(self) -> Node {
        let Combined { operation, all, mut nodes } = self;
        let right = nodes.split_off(nodes.len().div_ceil(2));
        if right.is_empty() {
            return balanced(nodes);
        }
        let (left, right) = (Box::new(balanced(nodes)), Box::new(balanced(right)));
        Node::Combine { operation, all, left, right }
    }
}

/// All rows of some queries.
fn balanced(mut nodes: Vec<Node>) -> Node {
    let right = nodes.split_off(nodes.len().div_ceil(2));
    if right.is_empty() {
        return nodes.pop().unwrap_or(Node::Values(Vec::new()));
    }
    let (left, right) = (Box::new(balanced(nodes)), Box::new(balanced(right)));
    Node::Combine { operation: SetOperation::Union, all: true, left, right }
}

impl Binder<'_> {
    /// Queries that are combined.
    pub(super) fn combination(&mut self, body: &SetExpr) -> Result<(Node, Vec<Field>), SqlError> {
        let (mut further, mut rest) = (Vec::new(), body);
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = rest {
            let operation = match op {
                SetOperator::Union => SetOperation::Union,
                SetOperator::Intersect => SetOperation::Intersect,
                SetOperator::Except | SetOperator::Minus => SetOperation::Except,
            };
            let all = match set_quantifier {
                SetQuantifier::All => true,
                SetQuantifier::Distinct | SetQuantifier::None => false,
                other => return Err(SqlError::unsupported(format!("{op} {other}"))),
            };
            further.push((operation, all, right));
            rest = left;
        }
        let (first, mut fields) = self.open(|binder| binder.set(rest))?;
        let mut combined = Combined { operation: SetOperation::Union, all: true, nodes: vec![first] };
        for (operation, all, written) in further.into_iter().rev() {
            let (node, others) = self.open(|binder| binder.set(written))?;
            let common = common_fields(operation, &fields, &others)?;
            let types: Vec<SqlType> = common.iter().map(|field| field.data_type).collect();
            for known in &mut combined.nodes {
                let node = std::mem::replace(known, Node::Values(Vec::new()));
                *known = self.cast_columns(node, &fields, &types)?;
            }
            let node = self.cast_columns(node, &others, &types)?;
            if !combined.takes(operation, all) {
                combined = Combined { operation, all, nodes: vec![combined.finish()] };
            }
            (combined.operation, combined.all) = (operation, all);
            combined.nodes.push(node);
            fields = common;
        }
        Ok((combined.finish(), fields))
    }
}

/// The columns that the columns of two queries become.
fn common_fields(operation: SetOperation, left: &[Field], right: &[Field]) -> Result<Vec<Field>, SqlError> {
    if left.len() != right.len() {
        let name = match operation {
            SetOperation::Union => "UNION",
            SetOperation::Intersect => "INTERSECT",
            SetOperation::Except => "EXCEPT",
        };
        let message = format!("each {name} query must have the same number of columns");
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let mut fields = left.to_vec();
    for (field, other) in fields.iter_mut().zip(right) {
        let common = common_type(field.data_type, other.data_type, "UNION")?;
        field.data_type = if common == SqlType::UNKNOWN { SqlType::TEXT } else { common };
        field.origin = None;
    }
    Ok(fields)
}
