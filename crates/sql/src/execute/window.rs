//! Window functions: for each row a value of the rows around it.

mod frame;
mod sliding;

use frame::Partition;
use sliding::Sliding;

use super::order::{compare_keys, size_of_keyed, sort_keyed};
use super::query::Wanted;
use super::work::work_of_copies;
use super::{Failure, Row, Run, malformed, size_beyond, size_of_row};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node, SortKey, WindowCall, WindowFunction};
use crate::types::Datum;
use crate::types::aggregate::Aggregate;

impl Run<'_, '_> {
    /// The rows of a query, sorted by their partitions and within these, each with the values of the calls behind it.
    pub(super) fn window(
        &mut self,
        input: &Node,
        partition: &[Expression],
        order: &[SortKey],
        calls: &[WindowCall],
    ) -> Result<Vec<Row>, Failure> {
        let ascending = |expression: &Expression| SortKey {
            expression: expression.clone(),
            descending: false,
            nulls_first: false,
        };
        let keys: Vec<SortKey> = partition.iter().map(ascending).chain(order.iter().cloned()).collect();
        let mut keyed: Vec<(Row, Row)> = Vec::new();
        self.each(input, Wanted::ALL, &mut |run, row| {
            let key = run.sort_values(&keys, row)?;
            run.hold(size_of_keyed(&key, row) + calls.len() * size_of::<Datum>())?;
            keyed.push((key, std::mem::take(row)));
            Ok(true)
        })?;
        sort_keyed(&keys, &mut keyed);
        let by = &keys[..partition.len()];
        let mut ends = Vec::new();
        for rows in keyed.chunk_by(|left, right| compare_keys(by, &left.0, &right.0).is_eq()) {
            ends.push(ends.last().copied().unwrap_or(0) + rows.len());
        }
        let mut start = 0;
        for end in ends {
            let rows = &mut keyed[start..end];
            let mut columns = Vec::with_capacity(calls.len());
            let partition = Partition::new(rows, &keys);
            for call in calls {
                columns.push(self.window_call(call, order, &partition)?);
            }
            for column in columns {
                rows.iter_mut().zip(column).for_each(|((_, row), value)| row.push(value));
            }
            start = end;
        }
        Ok(keyed.into_iter().map(|(_, row)| row).collect())
    }

    /// The value of a call for each row of a partition.
    fn window_call(
        &mut self,
        call: &WindowCall,
        order: &[SortKey],
        partition: &Partition<'_>,
    ) -> Result<Vec<Datum>, Failure> {
        let count = partition.len();
        let number = |place: usize| Datum::Int(place as i64);
        let each = |value: &dyn Fn(usize) -> Datum| Ok((0..count).map(value).collect());
        match &call.function {
            WindowFunction::RowNumber => each(&|row| number(row + 1)),
            WindowFunction::Rank => each(&|row| number(partition.peers(row).start + 1)),
            WindowFunction::DenseRank => each(&|row| number(partition.group_of(row) + 1)),
            WindowFunction::PercentRank => each(&|row| {
                let before = partition.peers(row).start as f64;
                Datum::Float(if count > 1 { before / (count - 1) as f64 } else { 0.0 })
            }),
            WindowFunction::CumulativeDistribution => {
                each(&|row| Datum::Float(partition.peers(row).end as f64 / count as f64))
            }
            WindowFunction::Tile => self.tiles(call, partition),
            WindowFunction::Lag => self.neighbours(call, partition, -1),
            WindowFunction::Lead => self.neighbours(call, partition, 1),
            WindowFunction::FirstValue | WindowFunction::LastValue | WindowFunction::NthValue => {
                self.values_of_frame(call, order, partition)
            }
            WindowFunction::Aggregate(aggregate) => self.slide(aggregate, call, order, partition),
        }
    }

    fn tiles(&mut self, call: &WindowCall, partition: &Partition<'_>) -> Result<Vec<Datum>, Failure> {
        let tiles = match self.window_argument(call, 0, partition.row(0))? {
            Datum::Int(tiles) => tiles,
            _ => return Ok(vec![Datum::Null; partition.len()]),
        };
        if tiles <= 0 {
            let message = "argument of ntile must be greater than zero";
            return Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_NTILE, message).into());
        }
        let (size, larger) = (partition.len() as i64 / tiles, partition.len() as i64 % tiles);
        // The first tiles have a row more.
        let in_larger = larger * (size + 1);
        let tile = |row: i64| {
            if row < in_larger { row / (size + 1) } else { larger + (row - in_larger) / size.max(1) }
        };
        Ok((0..partition.len() as i64).map(|row| Datum::Int(tile(row) + 1)).collect())
    }

    /// `lag` and `lead`: `direction` is -1 and 1.
    fn neighbours(
        &mut self,
        call: &WindowCall,
        partition: &Partition<'_>,
        direction: i64,
    ) -> Result<Vec<Datum>, Failure> {
        let (values, held) = self.window_arguments(call, partition)?;
        let mut found = Vec::with_capacity(partition.len());
        for place in 0..partition.len() {
            let offset = match call.arguments.len() {
                1 => Datum::Int(1),
                _ => self.window_argument(call, 1, partition.row(place))?,
            };
            let Datum::Int(offset) = offset else {
                found.push(Datum::Null);
                continue;
            };
            let other = (place as i64).saturating_add(offset.saturating_mul(direction));
            let value = match usize::try_from(other).ok().and_then(|other| values.get(other)) {
                Some(value) => {
                    self.work(work_of_copies([value]))?;
                    value.clone()
                }
                None if call.arguments.len() > 2 => self.window_argument(call, 2, partition.row(place))?,
                None => Datum::Null,
            };
            self.hold(size_beyond(&value))?;
            found.push(value);
        }
        self.let_go(held);
        Ok(found)
    }

    fn values_of_frame(
        &mut self,
        call: &WindowCall,
        order: &[SortKey],
        partition: &Partition<'_>,
    ) -> Result<Vec<Datum>, Failure> {
        let (values, held) = self.window_arguments(call, partition)?;
        let frames = self.frames(&call.frame, order, partition)?;
        let mut found = Vec::with_capacity(partition.len());
        for (place, frame) in frames.into_iter().enumerate() {
            let wanted = match call.function {
                WindowFunction::FirstValue => Some(frame.start),
                WindowFunction::LastValue => frame.end.checked_sub(1),
                _ => match self.window_argument(call, 1, partition.row(place))? {
                    Datum::Int(number) if number > 0 => Some(frame.start.saturating_add(number as usize - 1)),
                    Datum::Int(_) => {
                        let message = "argument of nth_value must be greater than zero";
                        return Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE, message).into());
                    }
                    _ => None,
                },
            };
            let wanted = wanted.filter(|wanted| frame.contains(wanted));
            let value = wanted.map_or(Datum::Null, |wanted| values[wanted].clone());
            self.work(work_of_copies([&value]))?;
            self.hold(size_beyond(&value))?;
            found.push(value);
        }
        self.let_go(held);
        Ok(found)
    }

    fn slide(
        &mut self,
        aggregate: &Aggregate,
        call: &WindowCall,
        order: &[SortKey],
        partition: &Partition<'_>,
    ) -> Result<Vec<Datum>, Failure> {
        let mut counted = Vec::with_capacity(partition.len());
        for place in 0..partition.len() {
            let row = partition.row(place);
            let counts = self.passes(call.filter.as_ref(), row)?;
            let values = if counts { Some(self.values(&call.arguments, row)?) } else { None };
            self.hold(values.as_deref().map_or(0, size_of_row))?;
            counted.push(values);
        }
        let mut sliding = Sliding::new(aggregate, &counted, self.inputs.zone);
        let mut found = Vec::with_capacity(partition.len());
        for frame in self.frames(&call.frame, order, partition)? {
            sliding.advance(frame)?;
            self.work(sliding.added())?;
            let value = sliding.value()?;
            self.hold(size_beyond(&value))?;
            found.push(value);
        }
        self.let_go(counted.iter().flatten().map(|values| size_of_row(values)).sum());
        Ok(found)
    }

    /// The first argument of a call for each row, and how many bytes are held for them.
    fn window_arguments(
        &mut self,
        call: &WindowCall,
        partition: &Partition<'_>,
    ) -> Result<(Vec<Datum>, usize), Failure> {
        let (mut values, mut held) = (Vec::with_capacity(partition.len()), 0);
        for place in 0..partition.len() {
            let value = self.window_argument(call, 0, partition.row(place))?;
            let size = size_of::<Datum>() + size_beyond(&value);
            self.hold(size)?;
            held += size;
            values.push(value);
        }
        Ok((values, held))
    }

    fn window_argument(&mut self, call: &WindowCall, number: usize, row: &[Datum]) -> Result<Datum, Failure> {
        self.value(call.arguments.get(number).ok_or_else(|| malformed("argument"))?, row)
    }
}
