//! The coordinator's side of a transaction on several partitions (DET-40).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::locks::Slot;
use super::message::{Reads, TransactionId, TwoPhaseMessage, TwoPhaseRecord};
use super::requests::LockRequests;
use super::{CommitProtocol, Phase, Runnable, TwoPhase};
use crate::data::DataError;
use crate::error::Error;
use crate::execution::{Context, Explored, Received, remote_reads};
use crate::failpoint::{Failpoint, Failpoints};
use crate::limits::LOGGED_READS_BYTES_MAX;
use crate::position::{Epoch, PartitionId, PartitionSet, Position};

/// How far a coordinated transaction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// These participants have not granted all locks.
    Locking(PartitionSet),
    /// These have not voted.
    Preparing(PartitionSet),
    /// It is committed at the position; these do not say yet that they know.
    Committed(Position, PartitionSet),
}

/// A transaction that is coordinated here.
#[derive(Debug)]
pub(super) struct Coordinated {
    progress: Progress,
    /// The other participants.
    others: PartitionSet,
    /// Those that are asked for locks one after the other, and have not been; this partition may be one of them.
    unasked: PartitionSet,
    /// What this partition has read, where the others are told when it is decided.
    own: Reads,
    /// What the others have read.
    reads: BTreeMap<PartitionId, Bytes>,
    /// The highest clock that one of them has told.
    clock: u64,
}

impl Coordinated {
    fn new(progress: Progress, others: PartitionSet) -> Coordinated {
        Coordinated {
            progress,
            others,
            unasked: PartitionSet::EMPTY,
            own: Reads::new(),
            reads: BTreeMap::new(),
            clock: 0,
        }
    }

    /// A transaction of an earlier life that is committed, and of which these may not know.
    pub(super) fn committed(position: Position, others: PartitionSet) -> Coordinated {
        Coordinated::new(Progress::Committed(position, others), others)
    }

    /// Whether it may yet be given up for the sake of others.
    pub(super) fn waits_for_locks(&self) -> bool {
        matches!(self.progress, Progress::Locking(_))
    }

    /// The participants that have not answered.
    pub(super) fn awaits(&self) -> PartitionSet {
        match self.progress {
            Progress::Locking(awaited) | Progress::Preparing(awaited) | Progress::Committed(_, awaited) => {
                awaited
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        let what = match self.progress {
            Progress::Locking(_) => "locks",
            Progress::Preparing(_) => "prepares",
            Progress::Committed(..) => "is committed",
        };
        let names: Vec<String> = self.awaits().iter().map(|partition| partition.to_string()).collect();
        format!("{what} {}", names.join(" ")).trim_end().to_owned()
    }
}

impl<F: Failpoints> TwoPhase<F> {
    /// Asks all participants of a transaction for their locks: for the first time, or since its footprint has grown.
    pub(super) fn coordinate(&mut self, slot: Slot, context: &Context<'_>) {
        let Some(local) = &self.table[slot.index()] else { return };
        let (id, statement, round) = (local.id, local.statement.clone(), local.round);
        let mut others = local.call.footprint.participants(context.me);
        others.remove(context.me);
        let locking = || Progress::Locking(others);
        let coordinated = self.coordinated.entry(id).or_insert_with(|| Coordinated::new(locking(), others));
        (coordinated.progress, coordinated.others) = (locking(), others);
        // One that finds out what it needs as it goes holds locks already: no order helps it.
        if self.lock_requests == LockRequests::InOrder && !local.grows {
            coordinated.unasked = others;
            coordinated.unasked.insert(context.me);
            return self.ask_next(id, context);
        }
        for partition in others.iter() {
            self.say(partition, TwoPhaseMessage::Lock { id, statement: statement.clone(), round });
        }
        self.request(slot, context);
    }

    /// Asks the next participant, where they are asked one after the other. Those before it have granted their locks.
    pub(super) fn ask_next(&mut self, id: TransactionId, context: &Context<'_>) {
        let Some(coordinated) = self.coordinated.get_mut(&id) else { return };
        let Some(next) = coordinated.unasked.iter().next() else { return };
        coordinated.unasked.remove(next);
        let Some(slot) = self.by_id.get(&id).copied() else { return };
        let Some(local) = &self.table[slot.index()] else { return };
        if next == context.me {
            return self.request(slot, context);
        }
        let (statement, round) = (local.statement.clone(), local.round);
        self.say(next, TwoPhaseMessage::Lock { id, statement, round });
    }

    /// A participant holds its locks.
    pub(super) fn take_granted(
        &mut self,
        from: PartitionId,
        id: TransactionId,
        round: u32,
        reads: Bytes,
        clock: u64,
        context: &mut Context<'_>,
    ) {
        let slot = self.by_id.get(&id).copied();
        let known = slot.and_then(|slot| self.table[slot.index()].as_ref()).map(|local| local.round);
        let Some(coordinated) = self.coordinated.get_mut(&id).filter(|_| known == Some(round)) else {
            return;
        };
        let Progress::Locking(awaited) = &mut coordinated.progress else { return };
        awaited.remove(from);
        let all_granted = awaited.is_empty();
        coordinated.reads.insert(from, reads);
        coordinated.clock = coordinated.clock.max(clock);
        if are_too_large(coordinated.reads.values()) {
            return self.refuse(slot, DataError::LoggedReadsTooLarge.into());
        }
        if all_granted {
            self.runnable.push_back(Runnable::Advance(id));
        }
        self.ask_next(id, context);
    }

    /// Ends a transaction that cannot be done.
    pub(super) fn refuse(&mut self, slot: Option<Slot>, error: Error) {
        let Some(local) = slot.and_then(|slot| self.leave(slot)) else { return };
        if let Some(coordinated) = self.coordinated.remove(&local.id) {
            self.tell_aborted(local.id, &coordinated);
        }
        self.effects.refused.push((local.statement, error));
    }

    /// Takes a transaction onwards if all locks are held.
    pub(super) fn advance(&mut self, id: TransactionId, context: &mut Context<'_>) {
        let Some(coordinated) = self.coordinated.get(&id) else { return };
        let Some(slot) = self.by_id.get(&id).copied() else { return };
        let Some(local) = &mut self.table[slot.index()] else { return };
        let all_held =
            local.phase == Phase::Active && coordinated.progress == Progress::Locking(PartitionSet::EMPTY);
        if !all_held {
            return;
        }
        let reads: Reads = coordinated.reads.iter().map(|(from, reads)| (*from, reads.clone())).collect();
        if local.grows {
            let received = Received::of_parts(&reads);
            let explored = self.executor.explore::<F>(&local.call, &received, &mut local.computed, context);
            if let Explored::Lacks(missing) = explored {
                if self.grow(slot, &missing, context) {
                    self.coordinate(slot, context);
                }
                return;
            }
        }
        let others = coordinated.others;
        let own = self.own_reads(slot, context);
        if are_too_large(reads.iter().chain(&own).map(|(_, reads)| reads)) {
            return self.refuse(Some(slot), DataError::LoggedReadsTooLarge.into());
        }
        let voters = if self.protocol == CommitProtocol::None { PartitionSet::EMPTY } else { others };
        if let Some(coordinated) = self.coordinated.get_mut(&id) {
            coordinated.progress = Progress::Preparing(voters);
            if voters.is_empty() {
                coordinated.own = own;
                return self.runnable.push_back(Runnable::Decide(id));
            }
        }
        for partition in others.iter() {
            let reads = reads_for(partition, &reads, &own);
            self.say(partition, TwoPhaseMessage::Prepare { id, reads });
        }
    }

    /// What this partition has read for a transaction, for the others.
    fn own_reads(&self, slot: Slot, context: &mut Context<'_>) -> Reads {
        let Some(local) = &self.table[slot.index()] else { return Reads::new() };
        match local.call.footprint.readers().contains(context.me) {
            true => vec![(context.me, super::participant::read::<F>(&local.call.footprint, context))],
            false => Reads::new(),
        }
    }

    /// A participant can commit. One that says so of a transaction that is decided has not heard of it.
    pub(super) fn take_vote(&mut self, from: PartitionId, id: TransactionId, clock: u64) {
        let Some(coordinated) = self.coordinated.get_mut(&id) else {
            let (mut position, reads) = (None, None);
            if F::on(Failpoint::PresumeCommit) {
                self.clock = self.clock.max(clock) + 1;
                position = Some(Position { epoch: Epoch(self.clock), origin: id.coordinator, index: 0 });
            }
            return self.say(from, TwoPhaseMessage::Decide { id, position, reads });
        };
        match &mut coordinated.progress {
            Progress::Locking(_) => {}
            Progress::Preparing(awaited) => {
                let was_awaited = awaited.contains(from);
                awaited.remove(from);
                coordinated.clock = coordinated.clock.max(clock);
                if was_awaited && awaited.is_empty() {
                    self.runnable.push_back(Runnable::Decide(id));
                }
            }
            Progress::Committed(position, _) => {
                let decide = TwoPhaseMessage::Decide { id, position: Some(*position), reads: None };
                self.say_when_durable(from, decide);
            }
        }
    }

    /// Commits a transaction, unless it was given up since all could: it has a position now, above all that any participant has
    /// seen.
    pub(super) fn decide(&mut self, id: TransactionId, context: &mut Context<'_>) {
        let Some(coordinated) = self.coordinated.get_mut(&id) else { return };
        let Some(slot) = self.by_id.get(&id).copied() else { return };
        let own = std::mem::take(&mut coordinated.own);
        let reads: Reads = coordinated.reads.iter().map(|(from, reads)| (*from, reads.clone())).collect();
        let (others, told) = (coordinated.others, coordinated.clock);
        self.clock = self.clock.max(told) + 1;
        let position = Position { epoch: Epoch(self.clock), origin: context.me, index: 0 };
        // The others need what was read to execute it too, where they were not told before.
        let unprepared = self.protocol == CommitProtocol::None;
        let Some(local) = &mut self.table[slot.index()] else { return };
        local.call.position = position;
        let executes_here = local.call.footprint.active(context.me).contains(context.me);
        // It needs the output also where it has no part in the writes; then nobody is to be told that it was executed here.
        let told = if executes_here { None } else { context.effects.executed.take() };
        let (received, computed) = (Received::of_parts(&reads), std::mem::take(&mut local.computed));
        let verdict = self.executor.execute_computed::<F>(&local.call, &received, computed, context);
        if told.is_some() {
            context.effects.executed = told;
        }
        let Some(local) = self.leave(slot) else { return };
        self.end(&local.statement, position, verdict);
        context.effects.footprints.push(local.call.footprint);
        let awaited = if self.durable && !unprepared { others } else { PartitionSet::EMPTY };
        if self.durable {
            let (statement, participants) = (local.statement, awaited.iter().collect());
            let reads = reads.clone();
            self.effects.records.push(TwoPhaseRecord::Committed {
                id,
                position,
                statement,
                reads,
                participants,
            });
        }
        for partition in others.iter() {
            let reads = unprepared.then(|| reads_for(partition, &reads, &own));
            self.say_when_durable(partition, TwoPhaseMessage::Decide { id, position: Some(position), reads });
        }
        match (awaited.is_empty(), self.coordinated.get_mut(&id)) {
            (false, Some(coordinated)) => {
                coordinated.progress = Progress::Committed(position, awaited);
                self.committed += 1;
            }
            _ => drop(self.coordinated.remove(&id)),
        }
    }

    /// A participant knows durably that a transaction is committed.
    pub(super) fn take_done(&mut self, from: PartitionId, id: TransactionId) {
        let Some(coordinated) = self.coordinated.get_mut(&id) else { return };
        let Progress::Committed(_, awaited) = &mut coordinated.progress else { return };
        awaited.remove(from);
        if awaited.is_empty() {
            self.coordinated.remove(&id);
            self.committed -= 1;
            self.effects.records.push(TwoPhaseRecord::Forgotten { id });
        }
    }

    /// Tells the other participants that an attempt is given up.
    pub(super) fn tell_aborted(&mut self, id: TransactionId, coordinated: &Coordinated) {
        for partition in coordinated.others.iter() {
            self.say(partition, TwoPhaseMessage::Decide { id, position: None, reads: None });
        }
    }

    /// What was said to or by a participant may be lost. What is not decided is given up: that one may have lost its locks, and if
    /// it has promised to commit it asks. What is decided is said again.
    pub(super) fn reset_participant(&mut self, peer: PartitionId, context: &Context<'_>) {
        let concerned: Vec<TransactionId> = self
            .coordinated
            .iter()
            .filter(|(_, coordinated)| coordinated.others.contains(peer))
            .map(|(id, _)| *id)
            .collect();
        for id in concerned {
            match self.coordinated.get(&id).map(|coordinated| coordinated.progress) {
                Some(Progress::Committed(position, awaited)) if awaited.contains(peer) => {
                    let decide = TwoPhaseMessage::Decide { id, position: Some(position), reads: None };
                    self.say_when_durable(peer, decide);
                }
                Some(Progress::Committed(..)) | None => {}
                Some(Progress::Locking(_) | Progress::Preparing(_)) => self.give_up(id, context),
            }
        }
    }
}

/// Whether all that was read is more than the log takes, which gets it in one record.
fn are_too_large<'a>(reads: impl Iterator<Item = &'a Bytes> + Clone) -> bool {
    let bytes: usize = reads.clone().map(Bytes::len).sum();
    bytes > LOGGED_READS_BYTES_MAX || reads.into_iter().any(|part| remote_reads::is_too_large(part))
}

/// What one participant is to be told that the others have read.
fn reads_for(partition: PartitionId, reads: &Reads, own: &Reads) -> Reads {
    reads.iter().chain(own).filter(|(from, _)| *from != partition).cloned().collect()
}
