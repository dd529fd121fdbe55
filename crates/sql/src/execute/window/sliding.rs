//! An aggregate over frames that move on.

use std::ops::Range;

use crate::error::SqlError;
use crate::execute::Row;
use crate::execute::work::{work_of_comparing, work_of_copy};
use crate::types::aggregate::{Aggregate, State};
use crate::types::{Datum, Zone};

/// An aggregate over one frame after the other, neither end of which goes back.
///
/// While only the end moves, rows are added. When the start moves too, the rows of the frame are in two parts: for each row of the first
/// there is the state from it to that part's end, and one state for the second. Each row goes from the second to the first at most
/// once, so that all frames together take time linear in the rows. An aggregate whose states cannot be merged begins anew at each
/// start.
pub(super) struct Sliding<'c> {
    aggregate: &'c Aggregate,
    /// The arguments of each row; `None` for one that does not count.
    arguments: &'c [Option<Row>],
    /// The states from rows of the first part to its end, that of the first row last.
    first: Vec<State>,
    /// The state of the second part.
    second: State,
    /// Where the second part begins.
    middle: usize,
    frame: Range<usize>,
    /// The value of `frame`, once it is known.
    known: Option<Datum>,
    /// Whether the frame is another one, without rows.
    is_empty: bool,
    zone: Zone,
    /// The work since it was last asked for.
    work: u64,
}

impl<'c> Sliding<'c> {
    pub(super) fn new(aggregate: &'c Aggregate, arguments: &'c [Option<Row>], zone: Zone) -> Sliding<'c> {
        let second = State::new(aggregate, zone);
        let first = Vec::new();
        Sliding {
            aggregate,
            arguments,
            first,
            second,
            middle: 0,
            frame: 0..0,
            known: None,
            is_empty: true,
            zone,
            work: 0,
        }
    }

    /// Goes on to the next frame, whose value takes some [work](Sliding::added).
    pub(super) fn advance(&mut self, frame: Range<usize>) -> Result<(), SqlError> {
        if frame.is_empty() {
            (self.is_empty, self.work) = (true, self.work + 1);
            return Ok(());
        }
        self.is_empty = false;
        if self.frame == frame && self.known.is_some() {
            self.work += self.known.as_ref().map_or(0, work_of_copy);
            return Ok(());
        }
        self.known = None;
        self.begin_at(frame.start)?;
        for row in self.frame.end..frame.end {
            if let Some(arguments) = &self.arguments[row] {
                self.work += 1 + work_of_comparing(arguments);
                self.second.add(arguments)?;
            }
        }
        self.frame = frame;
        self.work += self.second.work() + self.first.last().map_or(0, State::work);
        Ok(())
    }

    /// The value of the frame.
    pub(super) fn value(&mut self) -> Result<Datum, SqlError> {
        if self.is_empty {
            return State::new(self.aggregate, self.zone).finish();
        }
        if let Some(known) = &self.known {
            return Ok(known.clone());
        }
        let value = match self.first.last() {
            None => self.second.clone().finish(),
            Some(first) => {
                let mut all = first.clone();
                all.merge(&self.second)?;
                all.finish()
            }
        }?;
        self.known = Some(value.clone());
        Ok(value)
    }

    /// The work since it was last asked for: of a frame that begins anew, in all its rows.
    pub(super) fn added(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    /// Forgets the rows before a start.
    fn begin_at(&mut self, start: usize) -> Result<(), SqlError> {
        if start == self.frame.start {
            return Ok(());
        }
        if start >= self.frame.end || !self.aggregate.merges() {
            self.first.clear();
            (self.second, self.middle) = (State::new(self.aggregate, self.zone), start);
            self.frame = start..start;
            return Ok(());
        }
        if start >= self.middle {
            self.first.clear();
            let mut later: Option<State> = None;
            for row in (start..self.frame.end).rev() {
                let mut state = State::new(self.aggregate, self.zone);
                if let Some(arguments) = &self.arguments[row] {
                    self.work += 4 + work_of_comparing(arguments);
                    state.add(arguments)?;
                }
                if let Some(later) = &later {
                    state.merge(later)?;
                }
                self.first.push(state.clone());
                later = Some(state);
            }
            (self.second, self.middle) = (State::new(self.aggregate, self.zone), self.frame.end);
        } else {
            self.first.truncate(self.middle - start);
        }
        self.frame.start = start;
        Ok(())
    }
}
