//! What was executed and then lost with a leader, and how nodes find out (Calvin §3.1.1, CAL-35).
//!
//! A leader that replicates asynchronously hands its batches on at once. When it fails, the next leader may close the same epochs
//! with other batches. Nodes that have executed the lost ones, the failed leader's replica-mates above all, must go back. There
//! is no vote about it besides that of the replication group itself: what a majority of the group has is valid, the rest is
//! lost, and the group's log holds the whole batch, of which each mate knew only a part.
//!
//! - All that follows from the order is said with its [`Basis`]. It is used when the receiver has delivered the epoch itself, by
//!   the same terms, and ignored if they are others.
//! - Who subscribes says by which term it knows the last batch that it has delivered of the one whom it asks. That one answers
//!   [`Message::Superseded`] if its group has agreed on another batch: the subscriber starts again from its checkpoint. As long
//!   as its group has not agreed on anything there, it serves nobody who differs, and looks again at each heartbeat.
//! - A checkpoint is stable when all nodes of a replica have it with one lineage; a node writes one only of what its own group
//!   has agreed on. So nothing that may be lost is in a stable checkpoint.
//!
//! With synchronous replication nothing is handed on before it is agreed, and the terms never differ.

use std::collections::BTreeMap;

use super::{Node, Outbox};
use crate::engine::Engine;
use crate::error::Fatal;
use crate::message::Message;
use crate::position::{Epoch, NodeId};
use crate::sequencer::{Basis, Merger};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// What others have said of epochs that were not delivered here yet, in the order in which it came.
    held: BTreeMap<Epoch, Vec<(NodeId, Message)>>,
    /// Subscribers of whom it is not known yet whether they have delivered what this node's group agrees on.
    doubtful: Vec<Claim>,
    /// Nodes that have sent another batch than the one that was delivered here: what follows it is not taken, until they have
    /// heard by a claim what was delivered.
    contradicting: Vec<NodeId>,
    /// Nodes to which this one has turned, with the last epoch that it claimed to have delivered, on which they have not agreed yet:
    /// what was on its way from them may follow another history.
    unproven: Vec<(NodeId, Epoch)>,
}

/// By which term a subscriber knows this partition's batch of the last epoch that it has delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) subscriber: NodeId,
    pub(super) after: Epoch,
    pub(super) delivered: Epoch,
    pub(super) term: u64,
}

/// What this node's group says to a claim.
enum Judgement {
    Agreed,
    /// The term of what was agreed on instead.
    Superseded(u64),
    /// This node does not have the epoch yet.
    Behind,
    /// This node has another batch, on which its group has not agreed either.
    Open,
}

impl Branches {
    /// Keeps what was said of an epoch until it is delivered.
    pub(super) fn hold(&mut self, epoch: Epoch, from: NodeId, message: Message) {
        self.held.entry(epoch).or_default().push((from, message));
    }

    /// What was said of an epoch that is delivered now.
    pub(super) fn release(&mut self, delivered: Epoch) -> Vec<(NodeId, Message)> {
        self.held.remove(&delivered).unwrap_or_default()
    }

    /// Whether a batch, proposed in a term, and those that its sender says after it, belong to the history that was delivered
    /// here.
    pub(super) fn may_follow(&mut self, from: NodeId, epoch: Epoch, term: u64, merger: &Merger) -> bool {
        if self.contradicting.contains(&from) {
            return false;
        }
        if epoch > merger.delivered() {
            return !self.unproven.iter().any(|(node, _)| *node == from);
        }
        let known = merger.lineage().term(from.partition, epoch);
        let agrees = known.is_none_or(|known| known == term);
        if !agrees {
            self.contradicting.push(from);
        }
        agrees
    }

    /// This node gets a partition's batches from another node from now on, once that has agreed on what was delivered.
    pub(super) fn turn_to(&mut self, node: NodeId, delivered: Epoch) {
        self.unproven.retain(|(other, _)| *other != node);
        self.unproven.push((node, delivered));
    }

    /// A node agrees on what this one has claimed to have delivered.
    pub(super) fn trust(&mut self, node: NodeId, delivered: Epoch) {
        self.unproven.retain(|unproven| *unproven != (node, delivered));
    }

    /// A node hears a claim: what it says after it is taken.
    pub(super) fn ask_again(&mut self, node: NodeId, delivered: Epoch) {
        self.contradicting.retain(|other| *other != node);
        if let Some((_, claimed)) = self.unproven.iter_mut().find(|(other, _)| *other == node) {
            *claimed = delivered;
        }
    }

    /// Forgets what a subscriber claimed.
    pub(super) fn forget(&mut self, subscriber: NodeId) {
        self.doubtful.retain(|claim| claim.subscriber != subscriber);
    }
}

impl<E: Engine> Node<E> {
    /// What follows from the order of an epoch that was delivered here.
    pub(super) fn basis(&self, epoch: Epoch) -> Basis {
        Basis { epoch, lineage: self.merger.lineage().sum(epoch).unwrap_or_default() }
    }

    /// Gives a subscriber what it needs, unless it has delivered what this node's group does not agree on.
    pub(super) fn take_claim(&mut self, claim: Claim, outbox: &mut Outbox) -> Result<(), Fatal> {
        self.branches.forget(claim.subscriber);
        match self.judge(claim) {
            Judgement::Agreed => {}
            Judgement::Behind => self.branches.doubtful.push(claim),
            Judgement::Open => {
                self.streams.unsubscribe(claim.subscriber.partition, claim.subscriber.replica);
                self.branches.doubtful.push(claim);
                return Ok(());
            }
            Judgement::Superseded(term) => {
                self.streams.unsubscribe(claim.subscriber.partition, claim.subscriber.replica);
                let epoch = claim.delivered;
                self.send(claim.subscriber, Message::Superseded { epoch, term }, outbox);
                return Ok(());
            }
        }
        self.serve(claim.subscriber, claim.after, claim.delivered, outbox)
    }

    fn judge(&self, claim: Claim) -> Judgement {
        if claim.delivered > self.log.dispatched {
            return Judgement::Behind;
        }
        match self.merger.term(self.me, claim.delivered) {
            Some(term) if term != claim.term => {
                let index = self.checkpoints.stability.index_of(claim.delivered);
                let committed = self.log.replicated.as_ref().map(|log| log.status().committed);
                if index <= committed { Judgement::Superseded(term) } else { Judgement::Open }
            }
            // What is forgotten is in a stable checkpoint.
            _ => Judgement::Agreed,
        }
    }

    /// An epoch has come of which a subscriber claimed more than was known here: who differs is served no longer.
    pub(super) fn settle_claims(&mut self, epoch: Epoch) {
        for place in 0..self.branches.doubtful.len() {
            let claim = self.branches.doubtful[place];
            if claim.delivered == epoch && !matches!(self.judge(claim), Judgement::Agreed) {
                self.streams.unsubscribe(claim.subscriber.partition, claim.subscriber.replica);
            }
        }
    }

    /// Looks again at what was doubtful, and asks those who contradict what was heard before.
    pub(super) fn look_again(&mut self, outbox: &mut Outbox) -> Result<(), Fatal> {
        for claim in std::mem::take(&mut self.branches.doubtful) {
            let NodeId { partition, replica } = claim.subscriber;
            match self.judge(claim) {
                Judgement::Behind => self.branches.doubtful.push(claim),
                Judgement::Agreed if self.streams.serves(partition, replica) => {}
                _ => self.take_claim(claim, outbox)?,
            }
        }
        for node in self.branches.contradicting.clone() {
            self.subscribe(node, outbox);
        }
        Ok(())
    }

    /// The group of a partition has agreed on another batch than the one that was delivered here.
    pub(super) fn take_superseded(&self, from: NodeId, epoch: Epoch, term: u64) -> Result<(), Fatal> {
        let own =
            self.merger.lineage().term(from.partition, epoch).filter(|_| epoch <= self.merger.delivered());
        if own.is_some_and(|own| own != term) { Err(Fatal::Superseded { epoch }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::failpoint::NoFailpoints;
    use crate::position::{PartitionId, ReplicaId};

    /// What was on its way from a node when this one turned to it may follow another history than the one that was delivered.
    #[test]
    fn who_is_turned_to_agrees_first_on_what_was_delivered() {
        let mut merger = Merger::new(PartitionId(0), 2);
        for origin in [PartitionId(0), PartitionId(1)] {
            merger.receive(origin, Epoch(1), 1, Vec::new());
        }
        assert!(merger.deliver_next::<NoFailpoints>(&mut VecDeque::new()));
        let node = NodeId { partition: PartitionId(1), replica: ReplicaId(1) };
        let mut branches = Branches::default();
        assert!(branches.may_follow(node, Epoch(2), 1, &merger), "it always was the source");
        branches.turn_to(node, Epoch(1));
        branches.trust(node, Epoch(0));
        assert!(!branches.may_follow(node, Epoch(2), 2, &merger), "it has agreed on an earlier claim only");
        branches.trust(node, Epoch(1));
        assert!(branches.may_follow(node, Epoch(2), 2, &merger));
        assert!(!branches.may_follow(node, Epoch(1), 2, &merger), "it contradicts");
        assert!(!branches.may_follow(node, Epoch(2), 2, &merger));
        branches.ask_again(node, Epoch(1));
        assert!(branches.may_follow(node, Epoch(2), 2, &merger));
    }
}
