//! When a checkpoint is ordered, and by whom it is taken: by all replicas, or by one after the other.

use ordain_consensus::FollowerStatus;

use super::{CheckpointMode, Checkpoints};
use crate::engine::Engine;
use crate::gateway::CheckpointTurn;
use crate::message::{Message, Work};
use crate::node::{Node, Outbox};
use crate::position::{Epoch, NodeId, PartitionId, ReplicaId};

/// After how long another checkpoint is ordered although no replica has completed the last one, in microseconds.
pub(super) const ORDERED_MICROSECONDS: u64 = 600_000_000;

/// For how long a turn that the order has given to a replica is believed to go on, in microseconds, by those who did not order it:
/// they may have missed its end.
const NOTED_MICROSECONDS: u64 = 60_000_000;

/// The partition whose leader decides when it is time, and whose turn.
pub(super) const DECIDES_TURNS: PartitionId = PartitionId(0);

impl<E: Engine> Node<E> {
    /// Whether none that was ordered is on its way, or it must be given up: one that no replica can complete must not be the last
    /// one.
    pub(super) fn may_order_checkpoint(&self, now: u64) -> bool {
        let Checkpoints { ordered, ordered_for, last_at, .. } = self.checkpoints;
        // One that is under way here has not failed, however long it takes.
        let expired = last_at.is_some_and(|last| now >= last + ordered_for) && self.checkpoints.is_idle();
        !ordered || expired || self.has_turn_failed()
    }

    /// Orders one, of all replicas or of one.
    pub(super) fn order_checkpoint_by(&mut self, by: Option<ReplicaId>) {
        self.begin_turn(by);
        self.gateway.order_own(Work::Checkpoint(by), &mut self.sequencer);
    }

    /// Orders a checkpoint because a replica needs one, unless one that is able takes it already. Where replicas take turns, one leader
    /// decides on them, that of the first partition; others ask it to.
    pub(in crate::node) fn need_checkpoint(&mut self, able: Vec<ReplicaId>, outbox: &mut Outbox) {
        let takes_turns = self.checkpoints.options.mode == CheckpointMode::Freeze;
        if takes_turns && self.me != DECIDES_TURNS {
            let to = self.routes.to(DECIDES_TURNS);
            return self.send(to, Message::CheckpointTurnNeeded(able), outbox);
        }
        if !self.gateway.leads() {
            if let Some(leader) = self.leader() {
                self.send(leader, Message::CheckpointTurnNeeded(able), outbox);
            }
            return;
        }
        let is_lost = self.checkpoints.turn.is_some_and(|turn| !able.contains(&turn));
        if self.may_order_checkpoint(self.now) || is_lost {
            match self.next_turn_of(&able) {
                None if takes_turns => {}
                by => self.order_checkpoint_by(by),
            }
        }
    }

    /// One is ordered, by all replicas or by one.
    pub(in crate::node) fn begin_turn(&mut self, by: Option<ReplicaId>) {
        let Checkpoints { ordered, ordered_for, turn, turn_at, last_at, .. } = &mut self.checkpoints;
        (*ordered, *ordered_for, *last_at) = (true, ORDERED_MICROSECONDS, Some(self.now));
        (*turn, *turn_at) = (by, None);
    }

    /// The order has given a replica its turn at an epoch. Whoever leads next gives it to nobody else meanwhile.
    pub(in crate::node) fn note_turn(&mut self, by: ReplicaId, at: Epoch) {
        let Checkpoints { ordered, ordered_for, turn, turn_at, last_at, .. } = &mut self.checkpoints;
        if !*ordered {
            (*ordered, *ordered_for, *turn, *last_at) = (true, NOTED_MICROSECONDS, Some(by), Some(self.now));
        }
        if *turn == Some(by) {
            *turn_at = Some(at);
        }
        self.end_turn_that_passed();
    }

    /// Who takes the checkpoint that a client asks for.
    pub(in crate::node) fn turn_of_request(&self) -> CheckpointTurn {
        if self.checkpoints.options.mode != CheckpointMode::Freeze {
            return CheckpointTurn::All;
        }
        let is_free = self.me == DECIDES_TURNS && self.may_order_checkpoint(self.now);
        self.next_turn().filter(|_| is_free).map_or(CheckpointTurn::Nobodys, CheckpointTurn::Of)
    }

    /// The replicas of the group that live and have its log, as far as its leader knows. Ascending.
    pub(in crate::node) fn live_members(&self) -> Vec<ReplicaId> {
        let Some(log) = &self.log.replicated else { return vec![self.id.replica] };
        // One that waits for another's checkpoint takes none.
        let able = |follower: &FollowerStatus| {
            follower.is_active && follower.matched > 0 && !follower.needs_snapshot
        };
        let followers = log.status().followers.into_iter().filter(able);
        let mut members: Vec<ReplicaId> = followers.map(|follower| follower.replica).collect();
        members.push(self.id.replica);
        members.sort_unstable();
        members
    }

    /// Where replicas take turns, the one that follows the last.
    pub(super) fn next_turn(&self) -> Option<ReplicaId> {
        self.next_turn_of(&self.live_members())
    }

    /// The same, of some replicas.
    fn next_turn_of(&self, able: &[ReplicaId]) -> Option<ReplicaId> {
        if self.checkpoints.options.mode != CheckpointMode::Freeze {
            return None;
        }
        let mut members = self.live_members();
        members.retain(|replica| able.contains(replica));
        let next = members.iter().find(|replica| self.checkpoints.turn.is_none_or(|last| **replica > last));
        next.or(members.first()).copied()
    }

    /// Whether the replica whose turn it is cannot take it.
    fn has_turn_failed(&self) -> bool {
        self.checkpoints.turn.is_some_and(|turn| !self.live_members().contains(&turn))
    }

    /// Tells the group that this replica has ended what was ordered: the next one may be, and another's turn may come.
    pub(in crate::node) fn end_turn(&mut self, outbox: &mut Outbox) {
        let (me, stable) = (self.id.replica, self.checkpoints.stability.stable());
        for replica in (0..self.replicas).map(ReplicaId).filter(|replica| *replica != me) {
            self.send(NodeId { partition: self.me, replica }, Message::CheckpointTurnEnded(stable), outbox);
        }
    }

    /// One node has failed to take its part: whoever decides on turns hears of it, as the others of the replica do not know.
    pub(super) fn fail_turn(&mut self, outbox: &mut Outbox) {
        if self.checkpoints.options.mode != CheckpointMode::Freeze || self.me == DECIDES_TURNS {
            return;
        }
        let stable = self.checkpoints.stability.stable();
        for replica in (0..self.replicas).map(ReplicaId) {
            let to = NodeId { partition: DECIDES_TURNS, replica };
            self.send(to, Message::CheckpointTurnEnded(stable), outbox);
        }
    }

    /// Tells a node that may decide on turns which of this replica's are over. If one of the two has started again, it may not know:
    /// a node that goes on from the checkpoint of its turn says no more that it has completed it.
    pub(in crate::node) fn tell_passed(&mut self, peer: NodeId, outbox: &mut Outbox) {
        let stable = self.checkpoints.stability.stable();
        let takes_turns = self.checkpoints.options.mode == CheckpointMode::Freeze;
        if takes_turns && peer.partition == DECIDES_TURNS && stable > Epoch(0) {
            self.send(peer, Message::CheckpointPassed(stable), outbox);
        }
    }

    /// The turns of a replica through an epoch are over.
    pub(in crate::node) fn turns_passed(&mut self, of: ReplicaId, through: Epoch) {
        let passed = self.checkpoints.passed.entry(of).or_insert(through);
        *passed = through.max(*passed);
        self.end_turn_that_passed();
    }

    /// Forgets a turn that is known to be over.
    fn end_turn_that_passed(&mut self) {
        let Checkpoints { ordered, turn, turn_at, passed, .. } = &mut self.checkpoints;
        let through = turn.and_then(|turn| passed.get(&turn).copied());
        if turn_at.is_some_and(|at| through >= Some(at)) {
            *ordered = false;
        }
    }

    /// The turn of a replica is over.
    pub(in crate::node) fn turn_ended(&mut self, of: ReplicaId, stable: Epoch) {
        self.checkpoints.completed_by_any = self.checkpoints.completed_by_any.max(stable);
        self.stand_in.ended(of);
        self.turns_passed(of, stable);
        if self.checkpoints.turn.is_none_or(|turn| turn == of) {
            self.checkpoints.ordered = false;
        }
    }
}
