//! What nodes of other partitions and of other replicas say, and whether they can be heard.

use ordain_consensus::Membership;

use super::agreement::Divergence;
use super::branches::Claim;
use super::routes::Change;
use super::{Node, Outbox};
use crate::engine::Engine;
use crate::error::Fatal;
use crate::gateway::{not_leading, reconnaissance};
use crate::hash::Digest;
use crate::message::{Message, Reached, Reply, Report};
use crate::position::{Epoch, NodeId, PartitionSet, Position, ReplicaId};
use crate::sequencer::Basis;

impl<E: Engine> Node<E> {
    pub(super) fn take_message(
        &mut self,
        now: u64,
        from: NodeId,
        message: Message,
        outbox: &mut Outbox,
    ) -> Result<(), Fatal> {
        self.routes.heard(from, now);
        match message {
            Message::Batch { epoch, term, load, transactions } => {
                self.sequencer.follow(epoch);
                self.sequencer.throttle.heard(from.partition, load);
                if !self.branches.may_follow(from, epoch, term, &self.merger) {
                    return Ok(());
                }
                if self.routes.takes_batches(from) {
                    let part = transactions.into_iter().map(|(index, ordered)| (index, ordered, None));
                    self.merger.receive(from.partition, epoch, term, part.collect());
                }
            }
            Message::Epochs(message) => self.take_epochs(from, message, outbox),
            Message::StandIn => self.begin_to_stand_in(from.replica, outbox),
            message @ (Message::Reads { .. } | Message::Reports { .. } | Message::SnapshotReady { .. }) => {
                self.take_result(from, message)?;
            }
            Message::CloseSnapshot(at)
                if at.origin == self.me && (self.gateway.leads() || from.partition != self.me) =>
            {
                self.ask_for_end(at, outbox);
            }
            // The leader has changed meanwhile. Who wants the end asks again.
            Message::CloseSnapshot(_) => {}
            Message::Forward { entry, requests } if self.gateway.leads() => {
                requests.into_iter().for_each(|request| self.submit(request, entry));
            }
            Message::Forward { entry, requests } if from.partition != self.me => {
                self.forward(self.me, entry, requests, outbox);
            }
            // The leader has changed meanwhile. Sending on could go in circles.
            Message::Forward { entry, requests } => {
                for request in requests {
                    self.reply(
                        entry.node,
                        Reply { request: request.id, outcome: Err(not_leading()) },
                        outbox,
                    );
                }
            }
            Message::Replies(replies) => outbox.replies.extend(replies),
            Message::Fetch { ticket, want } => {
                let rows = reconnaissance::serve(&want, &mut *self.storage);
                self.send(from, Message::Fetched { ticket, want, rows }, outbox);
            }
            Message::Fetched { ticket, want, rows } => {
                let (gateway, mut context) = self.gateway();
                gateway.fetched(from.partition, ticket, want, rows, &mut context);
            }
            other => return self.take_group_message(now, from, other, outbox),
        }
        Ok(())
    }

    /// Takes what follows from the order, when this node has come to its epoch. What follows from another history is ignored:
    /// one of the two has executed what was lost.
    pub(super) fn take_result(&mut self, from: NodeId, message: Message) -> Result<(), Fatal> {
        let basis = match &message {
            Message::Reads { basis, .. } | Message::Reports { basis, .. } => *basis,
            Message::SnapshotReady { at, lineage, .. } => Basis { epoch: at.epoch, lineage: *lineage },
            other => unreachable!("{other:?} does not follow from the order"),
        };
        if from.partition == self.me {
            self.stand_in.heard(self.now);
        }
        if basis.epoch > self.merger.delivered() {
            self.branches.hold(basis.epoch, from, message);
            return Ok(());
        }
        if self.merger.lineage().sum(basis.epoch).is_some_and(|own| own != basis.lineage) {
            return Ok(());
        }
        match message {
            Message::Reads { reads, .. } => {
                let (engine, mut context) = self.engine();
                engine.receive(from.partition, &reads, &mut context)?;
            }
            Message::Reports { reports, .. } => {
                // Reconnaissance would run over the rows of a node that stands still, and miss again: such a call waits for this
                // node's own execution.
                let stands_in = from.partition == self.me;
                let counts = |report: &Report| !(stands_in && report.has_missed());
                reports.into_iter().filter(counts).for_each(|report| self.report(report));
            }
            Message::SnapshotReady { request, at, .. } => self.snapshot_ready(request, at, from.partition),
            _ => {}
        }
        Ok(())
    }

    /// Takes what keeps replicas together: agreement, failover, recovery and checkpoints.
    fn take_group_message(
        &mut self,
        now: u64,
        from: NodeId,
        message: Message,
        outbox: &mut Outbox,
    ) -> Result<(), Fatal> {
        match message {
            Message::Consensus(message) => {
                if let Some(log) = &mut self.log.replicated {
                    log.receive(from.replica, &message).map_err(|error| Fatal::Log(error.to_string()))?;
                }
            }
            Message::Follow(epoch) => self.sequencer.follow(epoch),
            Message::Subscribe { after, delivered, term } => {
                self.take_claim(Claim { subscriber: from, after, delivered, term }, outbox)?;
            }
            Message::Unsubscribe => {
                self.streams.unsubscribe(from.partition, from.replica);
                self.branches.forget(from);
            }
            Message::Serving { delivered } => self.branches.trust(from, delivered),
            Message::Superseded { epoch, term } => self.take_superseded(from, epoch, term)?,
            Message::Unserved { stable, through } => self.take_unserved(from, stable, through, outbox)?,
            Message::Alive(reached) => self.routes.reached(from, reached),
            Message::CheckpointWritten { epoch, lineage } => {
                self.note_checkpoint(now, from.partition, epoch, lineage, outbox);
            }
            Message::CheckpointTurnEnded(stable) => self.turn_ended(from.replica, stable),
            Message::CheckpointPassed(through) => self.turns_passed(from.replica, through),
            // Sending it on twice could go in circles.
            Message::CheckpointTurnNeeded(able) if self.gateway.leads() || from.partition != self.me => {
                self.need_checkpoint(able, outbox);
            }
            Message::CheckpointTurnNeeded(_) => {}
            Message::CheckpointWanted { by, index_min } => {
                self.offer_from(by, index_min, outbox);
            }
            Message::CheckpointNeeded(after) => self.help_on(from, after, outbox),
            Message::CheckpointOffer(epoch) => self.take_offer(now, from, epoch, outbox),
            Message::CheckpointFetch { epoch, offset } => {
                self.serve_checkpoint(now, from, epoch, offset, outbox);
            }
            Message::CheckpointPiece { epoch, offset, bytes, last } => {
                self.take_piece(now, from, (epoch, offset), bytes, last, outbox);
            }
            Message::Digest { basis, digest } => self.agreement.note(basis, from.replica, Digest(digest)),
            Message::TwoPhase(_) | Message::TwoPhaseSnapshot(_) | Message::Load { .. } => {
                return Err(Fatal::OtherEngine(from));
            }
            Message::Batch { .. }
            | Message::Epochs(_)
            | Message::StandIn
            | Message::Reads { .. }
            | Message::Reports { .. }
            | Message::SnapshotReady { .. }
            | Message::CloseSnapshot(_)
            | Message::Forward { .. }
            | Message::Replies(_)
            | Message::Fetch { .. }
            | Message::Fetched { .. } => unreachable!("take_message takes it"),
        }
        Ok(())
    }

    pub(super) fn subscribe(&mut self, to: NodeId, outbox: &mut Outbox) {
        let (after, delivered) = (self.completed(), self.merger.delivered());
        self.branches.ask_again(to, delivered);
        let term = self.merger.lineage().term(to.partition, delivered).unwrap_or_default();
        self.send(to, Message::Subscribe { after, delivered, term }, outbox);
    }

    /// Tells clients whose requests were sent to a node that does not answer any more: they send them again.
    pub(super) fn give_back(&mut self, node: NodeId, outbox: &mut Outbox) {
        for (entry, request) in self.forwards.lost_with(node) {
            self.reply(entry, Reply { request, outcome: Err(not_leading()) }, outbox);
        }
    }

    /// Gives a node what it needs, from now on. It has delivered epochs through `delivered`, and nothing that is lost.
    pub(super) fn serve(
        &mut self,
        subscriber: NodeId,
        after: Epoch,
        delivered: Epoch,
        outbox: &mut Outbox,
    ) -> Result<(), Fatal> {
        if self.is_joining() {
            // What it says will begin with the checkpoint that it is about to get, in another life.
            let unserved = Message::Unserved { stable: (Epoch(0), 0), through: Epoch(u64::MAX) };
            self.send(subscriber, unserved, outbox);
            return Ok(());
        }
        match self.streams.subscribe(subscriber.partition, subscriber.replica, after) {
            Ok(messages) => {
                self.send(subscriber, Message::Serving { delivered }, outbox);
                messages.into_iter().for_each(|message| self.send(subscriber, message, outbox));
            }
            Err(through) => {
                let stable = self.checkpoints.stability.stable_history();
                if self.replicas == 1 && after >= stable.0 {
                    return Err(Fatal::Unserved { subscriber, after });
                }
                self.send(subscriber, Message::Unserved { stable, through }, outbox);
            }
        }
        Ok(())
    }

    /// A node does not keep what this one needs. If that is because this one began at an old checkpoint, and its whole replica
    /// has a newer one, it begins at that one: at the newest of which it knows that by now.
    ///
    /// # Errors
    /// When it should have that one and has not, and there is no other replica to get it from.
    fn take_unserved(
        &mut self,
        from: NodeId,
        (stable, lineage): (Epoch, u64),
        through: Epoch,
        outbox: &mut Outbox,
    ) -> Result<(), Fatal> {
        self.routes.unserved(from, through);
        let stability = &self.checkpoints.stability;
        let has = stability.has(stable, lineage);
        let newest = stability.stable().max(if has { stable } else { Epoch(0) });
        let completed = self.completed();
        if from.replica == self.id.replica && newest >= stable && completed < newest {
            self.restart_from(newest, outbox);
        } else if self.replicas == 1 && completed < stable {
            return Err(Fatal::Log(format!(
                "{from} keeps nothing of {completed} to {stable} any more, and the checkpoint at the end of {stable} that this \
                 node had cannot be read: restore the cluster from a backup"
            )));
        }
        Ok(())
    }

    /// A peer has started again, or this node has lost the way to it: both say again what the other needs.
    pub(super) fn reset_link(&mut self, peer: NodeId, outbox: &mut Outbox) {
        if self.log.replicated.is_none() {
            return;
        }
        self.tell_passed(peer, outbox);
        if peer.partition == self.me {
            return;
        }
        self.streams.unsubscribe(peer.partition, peer.replica);
        self.branches.forget(peer);
        if peer.replica == self.id.replica {
            // It says anew what it has, and may have lost some.
            self.checkpoints.stability.forget(peer.partition);
            self.tell_checkpoints(peer, outbox);
        }
        if self.routes.is_source(peer) {
            self.subscribe(peer, outbox);
        }
        if let Some(change) = self.routes.started_again(peer, self.now) {
            self.follow_route(change, outbox);
        }
        let (gateway, mut context) = self.gateway();
        gateway.ask_again(&mut context);
    }

    /// Gets what a partition says from another node from now on.
    fn follow_route(&mut self, change: Change, outbox: &mut Outbox) {
        if change.to != change.from {
            self.branches.turn_to(change.to, self.merger.delivered());
        }
        self.subscribe(change.to, outbox);
        if !self.routes.is_source(change.from) {
            self.send(change.from, Message::Unsubscribe, outbox);
        }
        if change.to != change.from && change.to.replica != self.id.replica {
            self.give_back(change.from, outbox);
        }
    }

    /// Lets the peers hear of this node, and finds substitutes for those that are not heard of.
    pub(super) fn watch(&mut self, now: u64, outbox: &mut Outbox) -> Result<(), Fatal> {
        if !self.routes.heartbeat_due(now) {
            return Ok(());
        }
        self.look_again(outbox)?;
        self.forwards.age();
        self.end_lost_snapshots();
        self.watch_transfers(now, outbox);
        self.end_transfers(now, outbox);
        // The leader may have lost what it was told.
        self.log.followed = None;
        let others = self.others();
        let reached = Reached {
            handed_on: self.log.dispatched,
            delivered: self.merger.delivered(),
            executed: self.executed(),
        };
        for replica in (0..self.replicas).map(ReplicaId) {
            for partition in others.iter() {
                self.send(NodeId { partition, replica }, Message::Alive(reached), outbox);
            }
        }
        let completed = self.completed();
        let changes = self.routes.detect(now, reached, completed);
        for change in &changes {
            self.follow_route(*change, outbox);
        }
        if !changes.is_empty() {
            let (gateway, mut context) = self.gateway();
            gateway.ask_again(&mut context);
        }
        Ok(())
    }

    /// All partitions but the own one.
    pub(super) fn others(&self) -> PartitionSet {
        let mut others = PartitionSet::all(self.partitions);
        others.remove(self.me);
        others
    }

    /// Sums up what was written, and compares it with the other replicas of the group.
    pub(super) fn agree(&mut self, outbox: &mut Outbox) -> Result<(), Fatal> {
        let Some(log) = &self.log.replicated else { return Ok(()) };
        let Membership { voters, learners, .. } = log.membership().clone();
        let executed = self.executed();
        let through = self.checkpoints.sum_through(executed);
        self.written.clear();
        self.storage.take_epoch_digests(through, &mut self.written);
        let mut tell = Vec::new();
        let lineage = self.merger.lineage();
        let compares = voters.len() + learners.len() > 1;
        self.agreement.add(&self.written, through, compares, lineage, &mut tell);
        for (basis, Digest(digest)) in tell {
            for replica in voters.iter().chain(&learners).filter(|replica| **replica != self.id.replica) {
                let to = NodeId { partition: self.me, replica: *replica };
                outbox.sends.push((to, Message::Digest { basis, digest }));
            }
        }
        self.agreement.check(&voters).map_err(|Divergence { epoch, own, others }| Fatal::Diverged {
            epoch,
            own,
            others,
        })
    }

    /// The last epoch of which nothing is missing here: all its transactions have run, and all requests of this partition in
    /// it have their verdicts.
    pub(super) fn completed(&mut self) -> Epoch {
        let before = |epoch: Epoch| Epoch(epoch.0 - 1);
        let ordered = self.gateway.oldest_ordered().map(before);
        let opening = self.opening.front().map(|(at, _)| before(at.epoch));
        [ordered, opening].into_iter().flatten().fold(self.executed(), Epoch::min)
    }

    /// The last epoch of which all transactions have run here.
    pub fn executed(&mut self) -> Epoch {
        let before = |position: Position| Epoch(position.epoch.0 - 1);
        let live = self.engine.oldest_live().map(before);
        let ready = self.ready.front().map(|delivered| before(delivered.position));
        [live, ready].into_iter().flatten().fold(self.merger.delivered(), Epoch::min)
    }
}
