//! What a log says is done again, in the same order.

use super::Phase;
use super::TwoPhase;
use super::coordinator::Coordinated;
use super::locks::Slot;
use super::message::TwoPhaseRecord;
use super::placing::place;
use crate::data::Table;
use crate::error::Fatal;
use crate::execution::{Context, Received};
use crate::failpoint::{Failpoint, Failpoints};
use crate::position::{PartitionSet, Position};

impl<F: Failpoints> TwoPhase<F> {
    /// Does what a record of an earlier life says. Who had promised to commit and has not heard the decision holds its locks again
    /// (*in doubt*), until its coordinator is asked.
    ///
    /// # Errors
    /// When a transaction cannot be placed that could before: the node was started with other tables or procedures.
    pub fn replay(&mut self, record: TwoPhaseRecord, context: &mut Context<'_>) -> Result<(), Fatal> {
        match record {
            TwoPhaseRecord::Started => self.life += 1,
            TwoPhaseRecord::Local { position, statement } => {
                let (mut call, _) = place(&statement, false, context).map_err(unplaced(position))?;
                call.position = position;
                self.clock = self.clock.max(position.epoch.0);
                let verdict = self.executor.execute::<F>(&call, &Received::default(), context);
                self.end(&statement, position, verdict);
            }
            TwoPhaseRecord::Prepared { id, statement, reads } => {
                let (call, _) = place(&statement, false, context).map_err(unplaced(Position::LOADED))?;
                if self.locks.live() == 0 {
                    self.locks.begin_replay(context.catalog.schema.tables().iter().map(Table::id));
                }
                let slot = self.enter(id, statement, call, false);
                if let Some(local) = &mut self.table[slot.index()] {
                    (local.phase, local.reads) = (Phase::Prepared, reads);
                    let held = self.locks.request::<F>(slot, &local.call.footprint, context.me);
                    assert!(
                        held,
                        "{id} was prepared: it held all its locks, and nobody held others against it"
                    );
                }
            }
            TwoPhaseRecord::Decided { id, position } => {
                if let Some(slot) = self.by_id.get(&id).copied() {
                    self.finish(slot, position, None, context);
                }
            }
            TwoPhaseRecord::Committed { id, position, statement, reads, participants } => {
                let (mut call, _) = place(&statement, false, context).map_err(unplaced(position))?;
                call.position = position;
                self.clock = self.clock.max(position.epoch.0);
                let executes_here = call.footprint.active(context.me).contains(context.me);
                let told = if executes_here { None } else { context.effects.executed.take() };
                let verdict = self.executor.execute::<F>(&call, &Received::of_parts(&reads), context);
                if told.is_some() {
                    context.effects.executed = told;
                }
                self.end(&statement, position, verdict);
                if !participants.is_empty() {
                    let mut others = PartitionSet::EMPTY;
                    participants.into_iter().for_each(|partition| others.insert(partition));
                    self.coordinated.insert(id, Coordinated::committed(position, others));
                    self.committed += 1;
                }
            }
            TwoPhaseRecord::Snapshot { at, .. } => self.clock = self.clock.max(at.epoch.0),
            TwoPhaseRecord::Forgotten { id } => {
                self.committed -= usize::from(self.coordinated.remove(&id).is_some());
            }
        }
        Ok(())
    }

    /// All that the log had before was replayed: a new life begins, and its number is logged before anything is begun in it.
    pub fn start(&mut self) {
        self.life += 1;
        self.counters.in_doubt = self.table.iter().flatten().count() as u64;
        self.locks.end_replay();
        if F::on(Failpoint::ForgetInDoubt) {
            (0..self.table.len()).for_each(|index| drop(self.leave(Slot(index as u32))));
        }
        if self.durable {
            self.effects.records.push(TwoPhaseRecord::Started);
        }
    }
}

fn unplaced(position: Position) -> impl Fn(crate::error::Error) -> Fatal {
    move |error| Fatal::Unexecutable { position, error }
}
