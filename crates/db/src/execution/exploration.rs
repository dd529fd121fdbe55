//! Runs that find out what a call touches, over what it has locked: for engines that lock as the logic goes.

use std::ops::ControlFlow;

use super::run::{Executor, Reads, Run};
use super::{Call, Context, Received};
use crate::data::{Direction, Key, KeyRange, Owner};
use crate::failpoint::Failpoints;
use crate::position::Position;
use crate::procedure::footprint::Access as Touch;
use crate::procedure::{Footprint, Stop};

/// What a run needs that is not in the footprint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// To touch a key.
    Key(Key, Touch),
    /// To touch a range.
    Range(KeyRange, Touch),
}

/// How far a procedure came over the footprint that it has.
#[derive(Debug)]
pub enum Explored {
    /// It came to its end or told that it lacks nothing, or fails whatever else it were given.
    Complete,
    /// It lacks something: at least this.
    Lacks(Vec<Missing>),
}

impl Executor {
    /// Runs a call over the footprint that it has so far, writes nothing, and tells what it lacks. `computed` is what was computed
    /// by earlier runs over the same reads; what this one computes is added.
    pub fn explore<F: Failpoints>(
        &mut self,
        call: &Call,
        received: &Received,
        computed: &mut Vec<u64>,
        context: &mut Context<'_>,
    ) -> Explored {
        context.effects.executions.explorations += 1;
        if self.prepare(call, received, context).is_err() {
            return Explored::Complete;
        }
        self.missing.clear();
        std::mem::swap(&mut self.computed, computed);
        // Whatever else ends the run will do so again when it is executed.
        let _ = self.run_logic::<F>(call, Reads::of(received), context, true);
        std::mem::swap(&mut self.computed, computed);
        match self.missing.is_empty() {
            true => Explored::Complete,
            false => Explored::Lacks(std::mem::take(&mut self.missing)),
        }
    }
}

impl Run<'_> {
    /// Notes that a range is missing: as much of it as has the rows that are wanted, where that is known here.
    pub(super) fn note_missing_range(&mut self, range: &KeyRange, direction: Direction, limit: usize) {
        if self.missing.is_none() {
            return;
        }
        let owner =
            self.catalog.schema.table_of(&range.start).map(|table| table.range_owner(range, self.partitions));
        let mut last = None;
        if owner.is_ok_and(|owner| owner == Owner::Partition(self.me) || owner == Owner::Replicated) {
            let mut left = limit.saturating_add(self.writes.operations().len());
            self.storage.scan(range, direction, Position::LATEST, &mut |key, _| {
                left -= 1;
                if left > 0 {
                    return ControlFlow::Continue(());
                }
                last = Some(range.seen(direction, key));
                ControlFlow::Break(())
            });
        }
        if let Some(missing) = &mut self.missing {
            missing.push(Missing::Range(last.unwrap_or_else(|| range.clone()), Touch::READ));
        }
    }

    /// Notes what is missing of what the run is about to touch. If it is missing nothing, and that is all, the run need not go on.
    pub(super) fn note_ahead(&mut self, ahead: &Footprint, all: bool) -> Result<(), Stop> {
        let Some(missing) = &mut self.missing else { return Ok(()) };
        for entry in ahead.keys() {
            let key = ahead.key(entry);
            let known = self.footprint.find(key).map(|known| self.footprint.keys()[known].access);
            let covered = known.is_some_and(|known| known.covers(entry.access))
                || self.footprint.find_range_of(key, entry.access).is_some();
            if !covered {
                missing.push(Missing::Key(Key::from_bytes(key), entry.access));
            }
        }
        for entry in ahead.ranges() {
            let mut known = self.footprint.ranges().iter();
            if !known.any(|known| known.access.covers(entry.access) && known.range.covers(&entry.range)) {
                missing.push(Missing::Range(entry.range.clone(), entry.access));
            }
        }
        match (missing.is_empty(), all) {
            (true, true) => Err(Stop::FootprintKnown),
            (true, false) => Ok(()),
            (false, _) => Err(Stop::OutsideFootprint("what was declared ahead".to_owned())),
        }
    }
}
