//! The participant's side of a transaction that another partition coordinates (DET-40).

use bytes::Bytes;

use super::locks::Slot;
use super::message::{Reads, Statement, TransactionId, TwoPhaseMessage, TwoPhaseRecord};
use super::placing::place;
use super::victims::DETECTOR;
use super::{Phase, Runnable, TwoPhase};
use crate::error::Fatal;
use crate::execution::{Context, Received, remote_reads};
use crate::failpoint::{Failpoint, Failpoints};
use crate::position::{PartitionId, Position};
use crate::procedure::Footprint;

/// What this partition holds of a read set.
pub(super) fn read<F: Failpoints>(footprint: &Footprint, context: &mut Context<'_>) -> Bytes {
    remote_reads::read_local::<F>(footprint, context.me, context.storage)
}

impl<F: Failpoints> TwoPhase<F> {
    /// Takes what another partition says.
    ///
    /// # Errors
    /// When a transaction cannot be placed here though it could at its coordinator: the nodes differ.
    pub fn receive(
        &mut self,
        from: PartitionId,
        message: TwoPhaseMessage,
        context: &mut Context<'_>,
    ) -> Result<(), Fatal> {
        match message {
            TwoPhaseMessage::Lock { id, statement, round } => {
                self.take_lock(id, statement, round, context)?;
            }
            TwoPhaseMessage::Granted { id, round, reads, clock } => {
                self.take_granted(from, id, round, reads, clock, context);
            }
            TwoPhaseMessage::Prepare { id, reads } => self.take_prepare(id, reads),
            TwoPhaseMessage::Vote { id, clock } => self.take_vote(from, id, clock),
            TwoPhaseMessage::Decide { id, position: Some(position), reads } => {
                self.runnable.push_back(Runnable::Commit { id, position, reads });
            }
            TwoPhaseMessage::Decide { id, position: None, .. } => {
                self.take_decision(id, None, None, context);
            }
            TwoPhaseMessage::Done { id } => self.take_done(from, id),
            TwoPhaseMessage::Victim { id } => self.take_victim(id, context),
            TwoPhaseMessage::Waits { edges } => self.take_waits(from, edges, context),
            TwoPhaseMessage::WaitsReceived => self.reports.received(),
        }
        Ok(())
    }

    /// Asks for the locks of a transaction, or for more of them.
    fn take_lock(
        &mut self,
        id: TransactionId,
        statement: Statement,
        round: u32,
        context: &mut Context<'_>,
    ) -> Result<(), Fatal> {
        let (call, _) = place(&statement, false, context)
            .map_err(|error| Fatal::Unexecutable { position: Position::LOADED, error })?;
        let slot = match self.by_id.get(&id).copied() {
            Some(slot) => {
                if let Some(local) = &mut self.table[slot.index()] {
                    (local.call, local.statement) = (call, statement);
                }
                slot
            }
            None => self.enter(id, statement, call, false),
        };
        if let Some(local) = &mut self.table[slot.index()] {
            local.round = round;
        }
        self.request(slot, context);
        Ok(())
    }

    /// Tells the coordinator that all locks are held, and what was read. That what was read is durable, the vote will say.
    pub(super) fn tell_granted(&mut self, slot: Slot, context: &mut Context<'_>) {
        let Some(local) = &self.table[slot.index()] else { return };
        let (id, round) = (local.id, local.round);
        let reads = read::<F>(&local.call.footprint, context);
        self.say(id.coordinator, TwoPhaseMessage::Granted { id, round, reads, clock: self.clock });
    }

    /// Promises to commit.
    fn take_prepare(&mut self, id: TransactionId, reads: Reads) {
        let Some(slot) = self.by_id.get(&id).copied() else { return };
        let Some(local) = &mut self.table[slot.index()] else { return };
        (local.phase, local.reads) = (Phase::Prepared, reads.clone());
        if self.durable {
            let statement = local.statement.clone();
            self.effects.records.push(TwoPhaseRecord::Prepared { id, statement, reads });
        }
        let vote = TwoPhaseMessage::Vote { id, clock: self.clock };
        if F::on(Failpoint::VoteBeforeLogged) {
            return self.say(id.coordinator, vote);
        }
        self.say_when_durable(id.coordinator, vote);
    }

    /// Ends a transaction as its coordinator has decided.
    pub(super) fn take_decision(
        &mut self,
        id: TransactionId,
        position: Option<Position>,
        reads: Option<Reads>,
        context: &mut Context<'_>,
    ) {
        let Some(slot) = self.by_id.get(&id).copied() else {
            // It has heard that before.
            if position.is_some() && self.durable {
                self.say_when_durable(id.coordinator, TwoPhaseMessage::Done { id });
            }
            return;
        };
        let was_prepared = self.finish(slot, position, reads, context);
        if self.durable && was_prepared {
            self.effects.records.push(TwoPhaseRecord::Decided { id, position });
            if position.is_some() {
                self.say_when_durable(id.coordinator, TwoPhaseMessage::Done { id });
            }
        }
    }

    /// Executes a transaction if it commits, and releases its locks; whether it had promised to commit.
    pub(super) fn finish(
        &mut self,
        slot: Slot,
        position: Option<Position>,
        reads: Option<Reads>,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(local) = &mut self.table[slot.index()] else { return false };
        if let Some(reads) = reads {
            local.reads = reads;
        }
        if let Some(position) = position {
            self.clock = self.clock.max(position.epoch.0);
            local.call.position = position;
            let writes = local.call.footprint.active(local.id.coordinator).contains(context.me);
            if writes {
                let received = Received::of_parts(&local.reads);
                self.executor.execute::<F>(&local.call, &received, context);
            }
        }
        let Some(local) = self.leave(slot) else { return false };
        context.effects.footprints.push(local.call.footprint);
        local.phase == Phase::Prepared
    }

    /// What was said to or by another partition may be lost: what it coordinates and this one has not promised is given up there
    /// too; of what was promised, it is asked.
    pub fn reset(&mut self, peer: PartitionId, context: &Context<'_>) {
        self.detector.forget(peer);
        if context.me == DETECTOR {
            self.search_soon();
        }
        if peer == DETECTOR {
            self.reports.begin_anew(self.now);
        }
        let mut of_peer: Vec<(TransactionId, Slot)> = self
            .by_id
            .iter()
            .filter(|(id, _)| id.coordinator == peer)
            .map(|(id, slot)| (*id, *slot))
            .collect();
        of_peer.sort_unstable();
        for (id, slot) in of_peer {
            let prepared =
                self.table[slot.index()].as_ref().is_some_and(|local| local.phase == Phase::Prepared);
            if prepared {
                let vote = TwoPhaseMessage::Vote { id, clock: self.clock };
                self.say_when_durable(peer, vote);
            } else {
                self.leave(slot);
            }
        }
        self.reset_participant(peer, context);
    }
}
