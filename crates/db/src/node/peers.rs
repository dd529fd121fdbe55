//! What nodes of other partitions and of other replicas say, and whether they can be heard.

use super::agreement::Divergence;
use super::{Node, Outbox};
use crate::engine::Engine;
use crate::error::Fatal;
use crate::gateway::{not_leading, reconnaissance};
use crate::hash::Digest;
use crate::message::{Message, Reply};
use crate::position::{Epoch, NodeId, PartitionId, PartitionSet, Position, ReplicaId};

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
            Message::Batch { epoch, transactions } => {
                self.sequencer.follow(epoch);
                if from.replica == self.id.replica && epoch == self.merger.delivered().next() {
                    self.restore_route(from.partition, outbox);
                }
                let part = transactions.into_iter().map(|(index, ordered)| (index, ordered, None)).collect();
                self.merger.receive(from.partition, epoch, part);
            }
            Message::Reads(reads) => {
                let (engine, mut context) = self.engine();
                engine.receive(from.partition, &reads, &mut context)?;
            }
            Message::Reports(reports) => reports.into_iter().for_each(|report| self.report(report)),
            Message::SnapshotReady { request, at } => self.snapshot_ready(request, at, from.partition),
            Message::CloseSnapshot(at) => self.close_snapshot(at, outbox),
            Message::Forward { entry, requests } if self.gateway.leads() => {
                requests.into_iter().for_each(|request| self.submit(request, entry));
            }
            Message::Forward { entry, requests } if from.partition != self.me => {
                self.forward(self.me, entry, requests, outbox);
            }
            // The leader has changed meanwhile. Sending on could go in circles.
            Message::Forward { entry, requests } => {
                for request in requests {
                    self.reply(entry, Reply { request: request.id, outcome: Err(not_leading()) }, outbox);
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
            Message::Consensus(message) => {
                if let Some(log) = &mut self.log.replicated {
                    log.receive(from.replica, &message).map_err(|error| Fatal::Log(error.to_string()))?;
                }
            }
            Message::Follow(epoch) => self.sequencer.follow(epoch),
            Message::Subscribe { after } => self.serve(from, after, outbox)?,
            Message::Unsubscribe => self.streams.unsubscribe(from.partition, from.replica),
            Message::Unserved { stable } => self.take_unserved(from, stable, outbox),
            Message::Alive => {}
            Message::CheckpointWritten(epoch) => self.note_checkpoint(now, from.partition, epoch, outbox),
            Message::CheckpointOffer(epoch) => self.take_offer(now, from, epoch, outbox),
            Message::CheckpointFetch { epoch, offset } => {
                self.serve_checkpoint(now, from, epoch, offset, outbox);
            }
            Message::CheckpointPiece { epoch, offset, bytes, last } => {
                self.take_piece(now, epoch, offset, bytes, last, outbox);
            }
            Message::Digest { epoch, digest } => self.agreement.note(epoch, from.replica, Digest(digest)),
        }
        Ok(())
    }

    fn subscribe(&mut self, to: NodeId, outbox: &mut Outbox) {
        let after = self.completed();
        self.send(to, Message::Subscribe { after }, outbox);
    }

    /// Gives a node what it needs, from now on.
    fn serve(&mut self, subscriber: NodeId, after: Epoch, outbox: &mut Outbox) -> Result<(), Fatal> {
        match self.streams.subscribe(subscriber.partition, subscriber.replica, after) {
            Ok(messages) => messages.into_iter().for_each(|message| self.send(subscriber, message, outbox)),
            Err(_) => {
                let stable = self.checkpoints.stability.stable();
                if self.replicas == 1 && after >= stable {
                    return Err(Fatal::Unserved { subscriber, after });
                }
                self.send(subscriber, Message::Unserved { stable }, outbox);
            }
        }
        Ok(())
    }

    /// A node does not keep what this one needs. If that is because this one began at an old checkpoint, and its whole replica
    /// has a newer one, it begins at that one.
    fn take_unserved(&mut self, from: NodeId, stable: Epoch, outbox: &mut Outbox) {
        self.routes.unserved(from);
        let has = self.checkpoints.stability.own().any(|epoch| epoch == stable);
        if from.replica == self.id.replica && has && self.completed() < stable {
            self.restart_from(stable, outbox);
        }
    }

    /// A peer has started again, or this node has lost the way to it: both say again what the other needs.
    pub(super) fn reset_link(&mut self, peer: NodeId, outbox: &mut Outbox) {
        if self.log.replicated.is_none() || peer.partition == self.me {
            return;
        }
        self.streams.unsubscribe(peer.partition, peer.replica);
        self.routes.may_serve(peer);
        if peer.replica == self.id.replica {
            self.tell_checkpoints(peer, outbox);
        }
        if peer.replica == self.id.replica || self.routes.to(peer.partition) == peer {
            self.subscribe(peer, outbox);
        }
        let (gateway, mut context) = self.gateway();
        gateway.ask_again(&mut context);
    }

    /// The own replica's node of a partition is as far as this one again: its substitute is no longer needed.
    fn restore_route(&mut self, partition: PartitionId, outbox: &mut Outbox) {
        if let Some(substitute) = self.routes.restore(partition) {
            self.send(substitute, Message::Unsubscribe, outbox);
        }
    }

    /// Lets the peers hear of this node, and finds substitutes for those that are not heard of.
    pub(super) fn watch(&mut self, now: u64, outbox: &mut Outbox) {
        if !self.routes.heartbeat_due(now) {
            return;
        }
        self.watch_transfers(now, outbox);
        self.end_transfers(now, outbox);
        // The leader may have lost what it was told.
        self.log.followed = None;
        let others = self.others();
        for replica in (0..self.replicas).map(ReplicaId) {
            for partition in others.iter() {
                self.send(NodeId { partition, replica }, Message::Alive, outbox);
            }
        }
        for change in self.routes.detect(now) {
            self.subscribe(change.to, outbox);
            let (gateway, mut context) = self.gateway();
            gateway.ask_again(&mut context);
        }
    }

    /// All partitions but the own one.
    pub(super) fn others(&self) -> PartitionSet {
        let mut others = PartitionSet::all(self.partitions);
        others.remove(self.me);
        others
    }

    /// Sums up what was written, and compares it with the other replicas of the group.
    pub(super) fn agree(&mut self, outbox: &mut Outbox) -> Result<(), Fatal> {
        if self.log.replicated.is_none() {
            return Ok(());
        }
        let executed = self.executed();
        let through = self.checkpoints.sum_through(executed);
        self.written.clear();
        self.storage.take_epoch_digests(through, &mut self.written);
        let mut tell = Vec::new();
        self.agreement.add(&self.written, through, |epoch, sum| tell.push((epoch, sum)));
        for (epoch, Digest(digest)) in tell {
            for replica in (0..self.replicas).map(ReplicaId).filter(|replica| *replica != self.id.replica) {
                outbox
                    .sends
                    .push((NodeId { partition: self.me, replica }, Message::Digest { epoch, digest }));
            }
        }
        self.agreement.check().map_err(|Divergence { epoch, own, others }| Fatal::Diverged {
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
    pub(super) fn executed(&mut self) -> Epoch {
        let before = |position: Position| Epoch(position.epoch.0 - 1);
        let live = self.engine.oldest_live().map(before);
        let ready = self.ready.front().map(|delivered| before(delivered.position));
        [live, ready].into_iter().flatten().fold(self.merger.delivered(), Epoch::min)
    }
}
