//! Orders, aggregates, window functions and grouping sets, as plans have them.

use serde::{Deserialize, Serialize};

use super::Expression;
use crate::types::aggregate::Aggregate;
use crate::types::operators::Resolved;

/// What rows are sorted by.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SortKey {
    /// The value.
    pub expression: Expression,
    /// Largest first.
    pub descending: bool,
    /// Nulls before all others.
    pub nulls_first: bool,
}

/// An aggregate over the rows of a group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AggregateCall {
    /// Which.
    pub aggregate: Aggregate,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// Which rows count.
    pub filter: Option<Expression>,
    /// In which order.
    pub order: Vec<SortKey>,
}

/// A function over the rows around a row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum WindowFunction {
    /// `row_number`: the number of the row in its partition, from 1 on.
    RowNumber,
    /// `rank`: the number of the first of its peers.
    Rank,
    /// `dense_rank`: the number of its group of peers.
    DenseRank,
    /// `percent_rank`: the part of the other rows that come before its peers.
    PercentRank,
    /// `cume_dist`: the part of the rows that come before or are its peers.
    CumulativeDistribution,
    /// `ntile`: which of so many parts of about the same size it is in.
    Tile,
    /// `lag`: a value of the row so many before.
    Lag,
    /// `lead`: a value of the row so many after.
    Lead,
    /// `first_value`: a value of the first row of the frame.
    FirstValue,
    /// `last_value`: a value of the last row of the frame.
    LastValue,
    /// `nth_value`: a value of a row of the frame by its number.
    NthValue,
    /// An aggregate over the frame.
    Aggregate(Aggregate),
}

/// What the offsets of a frame count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// Differences of the value that rows are sorted by.
    Range,
    /// Groups of peers.
    Groups,
}

/// An end of a frame.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FrameBound {
    /// The first row of the partition.
    UnboundedPreceding,
    /// So much before the row.
    Preceding(Expression),
    /// The row, or its peers.
    CurrentRow,
    /// So much after the row.
    Following(Expression),
    /// The last row of the partition.
    UnboundedFollowing,
}

/// How values of a row's neighbours are measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Distance {
    /// The value that rows are sorted by, of the type in which bounds are computed.
    pub value: Expression,
    /// The types of the value plus an offset.
    pub add: Resolved,
    /// The types of the value minus an offset.
    pub subtract: Resolved,
}

/// The rows that a function over a window sees of its partition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// What offsets count.
    pub unit: FrameUnit,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// How offsets of [`FrameUnit::Range`] are counted, if there are any.
    pub distance: Option<Distance>,
}

/// A call of a window function.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowCall {
    /// Which.
    pub function: WindowFunction,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Which rows count, for an aggregate.
    pub filter: Option<Expression>,
    /// The rows that it sees.
    pub frame: Frame,
}

/// Several ways to group the same rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupingSets {
    /// By which of the groups, by their numbers; the others are null.
    pub sets: Vec<Vec<u16>>,
    /// For each `GROUPING()` the groups that it asks for, the highest bit first.
    pub questions: Vec<Vec<u16>>,
}

/// How the result of a procedure is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallForm {
    /// As a row with a column for each part, after `CALL`.
    Statement,
    /// The same, as the rows of a query.
    Relation,
    /// As one column, whatever its parts.
    Value,
}
