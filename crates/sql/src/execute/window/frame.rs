//! Partitions and frames.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::{SqlError, SqlState};
use crate::execute::order::compare_keys;
use crate::execute::work::work_of_comparing;
use crate::execute::{Failure, Row, Run};
use crate::plan::{Distance, Frame, FrameBound, FrameUnit, SortKey};
use crate::types::compare::{compare, interval_span};
use crate::types::operators::{self, BinaryOperator};
use crate::types::{Datum, Zone};

/// Rows that a window function sees, in order.
pub(super) struct Partition<'r> {
    /// What they are sorted by, and the rows.
    rows: &'r [(Row, Row)],
    /// The first row of each group of peers, and the number of rows.
    starts: Vec<usize>,
    /// The group of each row.
    groups: Vec<usize>,
}

impl<'r> Partition<'r> {
    /// Rows that are sorted by `keys`.
    pub(super) fn new(rows: &'r [(Row, Row)], keys: &[SortKey]) -> Partition<'r> {
        let (mut starts, mut groups) = (vec![0], Vec::with_capacity(rows.len()));
        for (group, peers) in
            rows.chunk_by(|left, right| compare_keys(keys, &left.0, &right.0).is_eq()).enumerate()
        {
            groups.extend(std::iter::repeat_n(group, peers.len()));
            starts.push(groups.len());
        }
        Partition { rows, starts, groups }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn row(&self, place: usize) -> &[Datum] {
        &self.rows[place].1
    }

    pub(super) fn group_of(&self, row: usize) -> usize {
        self.groups[row]
    }

    /// The rows that are equal in order to one.
    pub(super) fn peers(&self, row: usize) -> Range<usize> {
        let group = self.groups[row];
        self.starts[group]..self.starts[group + 1]
    }

    /// The first row of a group; the number of rows if there is no such group.
    fn start_of(&self, group: usize) -> usize {
        self.starts.get(group).copied().unwrap_or(self.rows.len())
    }
}

/// The ends of a frame.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Start,
    End,
}

/// An end of a frame whose offset is known.
enum Edge {
    /// The end of the partition on that side.
    Unbounded,
    Current,
    Before(Datum),
    After(Datum),
}

impl Run<'_, '_> {
    /// The frame of each row. Neither end goes back from one row to the next. An empty one may end before it starts.
    pub(super) fn frames(
        &mut self,
        frame: &Frame,
        order: &[SortKey],
        partition: &Partition<'_>,
    ) -> Result<Vec<Range<usize>>, Failure> {
        let start = self.edge(&frame.start, frame.unit, "starting")?;
        let end = self.edge(&frame.end, frame.unit, "ending")?;
        let mut ranged = Vec::new();
        if let Some(distance) = &frame.distance {
            for place in 0..partition.len() {
                ranged.push(self.value(&distance.value, partition.row(place))?);
            }
        }
        // Each is compared with an end, which an offset is added to.
        let offset = [&start, &end].map(|edge| match edge {
            Edge::Before(offset) | Edge::After(offset) => work_of_comparing([offset]),
            _ => 0,
        });
        self.work(ranged.iter().map(|value| 4 * (offset[0] + offset[1] + work_of_comparing([value]))).sum())?;
        let zone = self.inputs.zone;
        let ends = |edge: &Edge, side: Side| match (&frame.distance, order.first(), edge) {
            (Some(distance), Some(key), Edge::Before(offset) | Edge::After(offset)) => {
                let is_before = matches!(edge, Edge::Before(_));
                Measure { values: &ranged, distance, key, offset, is_before, side, zone }.all()
            }
            _ => (0..partition.len()).map(|row| counted(partition, frame.unit, edge, side, row)).collect(),
        };
        let (starts, ends): (Vec<usize>, Vec<usize>) = (ends(&start, Side::Start), ends(&end, Side::End));
        Ok(starts.into_iter().zip(ends).map(|(start, end)| start..end).collect())
    }

    fn edge(&mut self, bound: &FrameBound, unit: FrameUnit, side: &str) -> Result<Edge, Failure> {
        let (offset, is_before) = match bound {
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => return Ok(Edge::Unbounded),
            FrameBound::CurrentRow => return Ok(Edge::Current),
            FrameBound::Preceding(offset) => (offset, true),
            FrameBound::Following(offset) => (offset, false),
        };
        let offset = self.value(offset, &[])?;
        if offset.is_null() {
            let message = format!("frame {side} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        if is_negative(&offset) {
            let message = match unit {
                FrameUnit::Range => "invalid preceding or following size in window function".to_owned(),
                _ => format!("frame {side} offset must not be negative"),
            };
            return Err(SqlError::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message).into());
        }
        Ok(if is_before { Edge::Before(offset) } else { Edge::After(offset) })
    }
}

fn is_negative(offset: &Datum) -> bool {
    match offset {
        Datum::Int(offset) => *offset < 0,
        Datum::Float(offset) => *offset < 0.0 || offset.is_nan(),
        Datum::Numeric(offset) => offset.is_negative() || offset.is_nan(),
        Datum::Interval { months, days, microseconds } => interval_span(*months, *days, *microseconds) < 0,
        _ => false,
    }
}

/// An end of a row's frame where offsets count rows or groups.
fn counted(partition: &Partition<'_>, unit: FrameUnit, edge: &Edge, side: Side, row: usize) -> usize {
    // The end is the place after the last row.
    let past = usize::from(side == Side::End);
    let many = |offset: &Datum| match offset {
        Datum::Int(offset) => usize::try_from(*offset).unwrap_or(usize::MAX),
        _ => 0,
    };
    let place = if unit == FrameUnit::Rows { row } else { partition.group_of(row) };
    let place = match edge {
        Edge::Unbounded if side == Side::Start => return 0,
        Edge::Unbounded => return partition.len(),
        Edge::Current => place + past,
        Edge::Before(offset) => (place + past).saturating_sub(many(offset)),
        Edge::After(offset) => (place + past).saturating_add(many(offset)),
    };
    if unit == FrameUnit::Rows { place.min(partition.len()) } else { partition.start_of(place) }
}

/// An end of frames where offsets are differences of values.
struct Measure<'m> {
    /// The values of all rows, in order.
    values: &'m [Datum],
    distance: &'m Distance,
    key: &'m SortKey,
    offset: &'m Datum,
    is_before: bool,
    side: Side,
    zone: Zone,
}

impl Measure<'_> {
    /// The end for each row.
    fn all(&self) -> Vec<usize> {
        let mut place = 0;
        let mut ends = Vec::with_capacity(self.values.len());
        for value in self.values {
            let bound = self.bound(value);
            while self.values.get(place).is_some_and(|other| self.lies_before(other, value, bound.as_ref())) {
                place += 1;
            }
            ends.push(place);
        }
        ends
    }

    /// The value at the end; `None` if it is beyond all values of its type.
    fn bound(&self, value: &Datum) -> Option<Datum> {
        if value.is_null() {
            return None;
        }
        let (operator, resolved) = if self.is_before == self.key.descending {
            (BinaryOperator::Add, &self.distance.add)
        } else {
            (BinaryOperator::Subtract, &self.distance.subtract)
        };
        operators::binary(operator, value, self.offset, resolved, self.zone).ok()
    }

    /// Whether another row lies before the end of the frame of a row with a value. Nulls are near to nulls alone.
    fn lies_before(&self, other: &Datum, value: &Datum, bound: Option<&Datum>) -> bool {
        match (other == &Datum::Null, value == &Datum::Null) {
            (is_null, true) if self.key.nulls_first => self.side == Side::End && is_null,
            (is_null, true) => self.side == Side::End || !is_null,
            (true, false) => self.key.nulls_first,
            (false, false) => {
                let Some(bound) = bound else { return !self.is_before };
                let order = compare(other, bound);
                match if self.key.descending { order.reverse() } else { order } {
                    Ordering::Less => true,
                    Ordering::Equal => self.side == Side::End,
                    Ordering::Greater => false,
                }
            }
        }
    }
}
