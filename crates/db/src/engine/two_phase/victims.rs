//! What a partition does about deadlocks: it searches its own part of the waits-for graph, or limits waits, tells the detector its
//! part, and gives up the victims that are coordinated here, which begin again (DET-37 to DET-39).

use bytes::Bytes;

use super::deadlock::{Edge, cycle_through};
use super::locks::Slot;
use super::message::{Statement, TransactionId, TwoPhaseMessage};
use super::{Local, Phase, Retry, TwoPhase};
use crate::data::{Key, KeyRange};
use crate::execution::Context;
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::key_hash;
use crate::position::PartitionId;
use crate::procedure::footprint::{Access, KeyEntry, RangeEntry};
use crate::procedure::{Declaration, Footprint};

/// How long a partition collects who waits before it tells the detector, in microseconds; longer if many do.
pub const REPORT_MICROSECONDS: u64 = 5_000;

/// The longest mean pause before a victim is begun again, in microseconds: it doubles from attempt to attempt.
const BACK_OFF_MAX_MICROSECONDS: u64 = 16_000;

/// The partition that searches for deadlocks over several partitions.
pub const DETECTOR: PartitionId = PartitionId(0);

/// How long one pauses after so many edges were gathered or searched, in microseconds: so neither takes more than a small part of
/// a partition's time, however many wait.
fn pause_after(edges: usize) -> u64 {
    REPORT_MICROSECONDS.max(10 * edges as u64)
}

/// So many looks at ranges take as long as an edge that is told.
const LOOKS_FOR_AN_EDGE: usize = 100;

/// After so many attempts a transaction that finds out what it needs forgets what it has found: it may be out of date. And again after
/// twice as many, and so on: one that finds a single row in each attempt still comes to its end.
const ATTEMPTS_UNTIL_FORGOTTEN: u32 = 8;

/// Whether an attempt finds out anew what it needs.
fn is_forgotten(attempt: u32) -> bool {
    attempt >= ATTEMPTS_UNTIL_FORGOTTEN && attempt.is_power_of_two()
}

/// What the next attempt of a victim asks for at once, encoded: all that this one asked for, and a range in which it writes as a whole.
/// So it does not read again what another one reads too, and then wait for that one to write: the deadlock that it was given up for.
fn again(footprint: &Footprint, attempt: u32, context: &Context<'_>) -> Option<Bytes> {
    if is_forgotten(attempt) {
        return None;
    }
    let mut next = Footprint::default();
    let mut declaration = Declaration::new(&context.catalog.schema, context.partitions, &mut next);
    let within = |range: &KeyRange, entry: &KeyEntry| range.contains(footprint.key(entry));
    for RangeEntry { range, access, .. } in footprint.ranges() {
        let mut inner = footprint.keys().iter().filter(|entry| within(range, entry));
        let write = access.write || inner.any(|entry| entry.access.write);
        declaration.touch_range(range, Access { write, ..*access }).ok()?;
    }
    for entry in footprint.keys() {
        if !footprint.ranges().iter().any(|RangeEntry { range, .. }| within(range, entry)) {
            declaration.touch(&Key::from_bytes(footprint.key(entry)), entry.access).ok()?;
        }
    }
    Some(Bytes::from(next.encode()))
}

impl<F: Failpoints> TwoPhase<F> {
    /// Looks for deadlocks that a transaction closes by waiting, and breaks them.
    pub(super) fn break_cycle(&mut self, slot: Slot, context: &Context<'_>) {
        while let Some(members) = cycle_through(slot, |slot| self.locks.waits_for(slot).into_vec()) {
            let of = |slot: &Slot| {
                self.table[slot.index()].as_ref().map(|local| (local.id, local.is_victim, *slot))
            };
            let members: Vec<_> = members.iter().filter_map(of).collect();
            // One that is to be given up already breaks the cycle as soon as its coordinator says so.
            if members.iter().any(|(_, is_victim, _)| *is_victim) {
                return;
            }
            let Some((_, _, victim)) = members.into_iter().max() else { return };
            self.counters.local_deadlocks += 1;
            self.give_up_here(victim, context);
        }
    }

    /// Gives up a transaction that waits for locks here, or tells its coordinator to.
    fn give_up_here(&mut self, slot: Slot, context: &Context<'_>) {
        let Some(local) = &mut self.table[slot.index()] else { return };
        let id = local.id;
        if id.coordinator == context.me {
            self.give_up(id, context);
        } else if !local.is_victim {
            local.is_victim = true;
            self.say(id.coordinator, TwoPhaseMessage::Victim { id });
        }
    }

    /// Gives up who has waited for locks for too long.
    pub(super) fn end_lock_waits(&mut self, context: &Context<'_>) {
        while let Some((_, id, round)) = self.lock_waits.first().copied().filter(|(at, ..)| *at <= self.now) {
            self.lock_waits.pop_first();
            let Some(slot) = self.by_id.get(&id).copied() else { continue };
            let waits = |local: &Local| (local.phase, local.round) == (Phase::Blocked, round);
            if self.table[slot.index()].as_ref().is_some_and(waits) {
                let in_cycle = cycle_through(slot, |slot| self.locks.waits_for(slot).into_vec()).is_some();
                self.counters.lock_timeouts += 1;
                self.counters.false_timeouts += u64::from(!in_cycle);
                self.give_up_here(slot, context);
            }
        }
    }

    /// Gives up an attempt of a transaction that is coordinated here; it is begun again after a pause.
    pub(super) fn give_up(&mut self, id: TransactionId, context: &Context<'_>) {
        if let Some(coordinated) = self.coordinated.remove(&id) {
            self.tell_aborted(id, &coordinated);
        }
        let Some(local) = self.by_id.get(&id).copied().and_then(|slot| self.leave(slot)) else { return };
        self.counters.restarts += 1;
        let next = TransactionId { attempt: id.attempt + 1, ..id };
        let mean = (250_u64 << next.attempt.min(8)).min(BACK_OFF_MAX_MICROSECONDS);
        let draw = key_hash(&[next.started.to_le_bytes(), u64::from(next.attempt).to_le_bytes()].concat());
        let at = self.now + mean / 2 + draw % mean;
        let footprint = local.grows.then(|| again(&local.call.footprint, next.attempt, context)).flatten();
        let retry = Retry { id: next, statement: Statement { footprint, ..local.statement } };
        self.retries.insert((at, next), retry);
    }

    /// Tells the detector who waits for whom here, if that has changed.
    pub(super) fn report_waits(&mut self, context: &mut Context<'_>) {
        let blocked = self.table.iter().enumerate().filter_map(|(index, local)| {
            local.as_ref().filter(|local| local.phase == Phase::Blocked).map(|_| Slot(index as u32))
        });
        let id_of = |slot: Slot| self.table[slot.index()].as_ref().map(|local| local.id);
        let mut edges = Vec::new();
        let work = self.locks.find_waits(blocked, |waiting, earlier, place| {
            let ids = id_of(waiting).zip(id_of(earlier));
            edges.extend(ids.map(|(waiting, earlier)| Edge { waiting, earlier, place }));
        });
        let pause = pause_after(edges.len()).max(pause_after(work / LOOKS_FOR_AN_EDGE));
        let changed = self.reports.changed(&edges, self.now + pause);
        if !changed {
            return;
        }
        if context.me == DETECTOR {
            self.take_waits(context.me, edges, context);
        } else {
            self.reports.sent();
            self.say(DETECTOR, TwoPhaseMessage::Waits { edges });
        }
    }

    /// A partition tells who waits for whom there: the graph will be searched.
    pub(super) fn take_waits(&mut self, from: PartitionId, edges: Vec<Edge>, context: &Context<'_>) {
        self.detector.report(from, edges);
        self.search_soon();
        if from != context.me {
            self.say(from, TwoPhaseMessage::WaitsReceived);
        }
    }

    /// Lets the graph be searched: it has changed, or victims that were named may have to be named again.
    pub(super) fn search_soon(&mut self) {
        self.next_search.get_or_insert(self.now + pause_after(self.detector.edges()) / 2);
    }

    /// Searches the graph of all partitions for deadlocks.
    pub(super) fn detect(&mut self, context: &Context<'_>) {
        self.next_search = None;
        for victim in self.detector.search() {
            self.counters.distributed_deadlocks += 1;
            if victim.coordinator == context.me {
                self.take_victim(victim, context);
            } else if !F::on(Failpoint::ForgetVictim) {
                self.say(victim.coordinator, TwoPhaseMessage::Victim { id: victim });
            }
        }
    }

    pub(super) fn take_victim(&mut self, id: TransactionId, context: &Context<'_>) {
        let slot = self.by_id.get(&id);
        let is_blocked = slot
            .and_then(|slot| self.table[slot.index()].as_ref())
            .is_some_and(|local| local.phase == Phase::Blocked);
        let (is_locking, waits) = match self.coordinated.get(&id) {
            Some(coordinated) => {
                (coordinated.waits_for_locks(), is_blocked || !coordinated.awaits().is_empty())
            }
            None => (slot.is_some(), is_blocked),
        };
        // One that holds all its locks by now is in no deadlock, and begins again in vain.
        self.counters.phantom_deadlocks += u64::from(!is_locking || !waits);
        if is_locking {
            self.give_up(id, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_forgotten;

    #[test]
    fn there_is_ever_more_time_to_find_out_what_is_needed() {
        assert_eq!((0..100).filter(|attempt| is_forgotten(*attempt)).collect::<Vec<_>>(), [8, 16, 32, 64]);
    }
}
