//! Which snapshots of the order are open, through which node each was opened, and how those end that nobody will close.
//!
//! A snapshot keeps old versions at every node, and there is room for so many. Its client closes it, by the connection that it was opened
//! by, and its end has a place in the order. But who was to say so may be gone: that process has ended, and with it the connection, or the
//! word is lost with a leader. So the order says by which [`Entry`] a snapshot came in, and:
//!
//! - A node asks for the end of what its clients have closed until the order has it.
//! - A node that begins another life ends what came in through it in earlier ones.
//! - The leader that orders a snapshot's end ends those of nodes of which it has heard nothing for [`SILENCE_MICROSECONDS`], as long as it
//!   leads: they may never come back.

use std::collections::{BTreeMap, BTreeSet};

use super::routes::FAILURE_MICROSECONDS;
use super::{Node, Outbox};
use crate::engine::Engine;
use crate::message::Message;
use crate::position::{Entry, Epoch, NodeId, PartitionId, Position};

/// After how long without a sign of a node the snapshots end that were opened through it, in microseconds: long enough to start a process
/// again, and to mend a network. A client that is still there is told that its snapshot is not open any more.
pub const SILENCE_MICROSECONDS: u64 = 30_000_000;

/// After how long a node asks again for the ends that it wants.
const AGAIN_MICROSECONDS: u64 = FAILURE_MICROSECONDS;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Held {
    me: Entry,
    /// Those that the order has opened and not closed, as far as it was executed here.
    open: BTreeMap<Position, Entry>,
    /// Those whose end this node asks for.
    ending: BTreeSet<Position>,
    /// When it asks again, in microseconds.
    ask_at: u64,
    /// Since when it leads, if it does: what it has heard before says little of nodes that had nothing to tell it.
    leads_since: u64,
}

impl Held {
    pub(super) fn new(me: Entry) -> Held {
        Held { me, open: BTreeMap::new(), ending: BTreeSet::new(), ask_at: 0, leads_since: 0 }
    }

    /// How clients come in that are connected to this node.
    pub(super) fn entry(&self) -> Entry {
        self.me
    }

    /// The order has opened a snapshot.
    pub(super) fn opened(&mut self, at: Position, entry: Entry) {
        self.open.insert(at, entry);
        if entry.node == self.me.node && entry.life != self.me.life {
            self.ending.insert(at);
        }
    }

    /// The order has come to the end of one.
    pub(super) fn ended(&mut self, at: Position) {
        self.open.remove(&at);
        self.ending.remove(&at);
    }

    /// This node asks for the end of a snapshot now, and again. A client may have heard of it before the order was executed here.
    fn want_end(&mut self, at: Position, executed: Epoch, now: u64) {
        if self.ending.is_empty() {
            self.ask_at = now + AGAIN_MICROSECONDS;
        }
        if self.open.contains_key(&at) || at.epoch > executed {
            self.ending.insert(at);
        }
    }

    /// Those that were ordered at `origin` and whose entry is a node of which the leader there has heard nothing for long. `heard_at` tells
    /// when it did last.
    fn lost(&self, origin: PartitionId, now: u64, heard_at: impl Fn(NodeId) -> u64) -> Vec<Position> {
        let is_silent = |node| {
            let silent_since = heard_at(node).max(self.leads_since);
            node != self.me.node && now.saturating_sub(silent_since) > SILENCE_MICROSECONDS
        };
        let lost = self.open.iter().filter(|(at, entry)| at.origin == origin && is_silent(entry.node));
        lost.map(|(at, _)| *at).collect()
    }

    /// From now on this node leads, and may order the ends that it wants.
    pub(super) fn lead(&mut self, now: u64) {
        (self.ask_at, self.leads_since) = (0, now);
    }

    fn is_due(&self, now: u64) -> bool {
        !self.ending.is_empty() && now >= self.ask_at
    }

    /// What is to be asked for now that it [is due](Held::is_due).
    fn ask(&mut self, now: u64, executed: Epoch) -> Vec<Position> {
        self.ask_at = now + AGAIN_MICROSECONDS;
        // Of what was executed and is not open, there is nothing to end.
        self.ending.retain(|at| self.open.contains_key(at) || at.epoch > executed);
        self.ending.iter().copied().collect()
    }

    /// Whether this node wants the end of nothing that is open.
    pub(super) fn is_settled(&self) -> bool {
        self.ending.iter().all(|at| !self.open.contains_key(at))
    }

    /// When this node next wants to ask, in microseconds.
    pub(super) fn deadline(&self) -> Option<u64> {
        (!self.ending.is_empty()).then_some(self.ask_at)
    }

    /// What a checkpoint at the end of an epoch keeps.
    pub(super) fn save(&self, through: Epoch) -> Vec<(Position, Entry)> {
        let before = self.open.iter().filter(|(at, _)| at.epoch <= through);
        before.map(|(at, entry)| (*at, *entry)).collect()
    }

    /// Takes over what a checkpoint has kept.
    pub(super) fn restore(&mut self, saved: Vec<(Position, Entry)>) {
        saved.into_iter().for_each(|(at, entry)| self.opened(at, entry));
    }
}

impl<E: Engine> Node<E> {
    /// A client reads a snapshot no longer.
    pub(super) fn close_snapshot(&mut self, at: Position, outbox: &mut Outbox) {
        if self.close_unordered(at) || at.origin.0 >= self.partitions {
            return;
        }
        let executed = self.executed();
        self.held.want_end(at, executed, self.now);
        self.ask_for_end(at, outbox);
    }

    /// The end of a snapshot is ordered where its beginning was.
    pub(super) fn ask_for_end(&mut self, at: Position, outbox: &mut Outbox) {
        if at.origin == self.me && self.gateway.leads() {
            return self.gateway.close_snapshot(at, &mut self.sequencer);
        }
        let to: Option<NodeId> =
            if at.origin == self.me { self.leader() } else { Some(self.routes.to(at.origin)) };
        if let Some(to) = to {
            self.send(to, Message::CloseSnapshot(at), outbox);
        }
    }

    /// Asks again for the ends that the order does not have.
    pub(super) fn ask_for_ends(&mut self, outbox: &mut Outbox) {
        if self.held.is_due(self.now) {
            let executed = self.executed();
            for at in self.held.ask(self.now, executed) {
                self.ask_for_end(at, outbox);
            }
        }
    }

    /// At a heartbeat: the leader orders the ends of snapshots whose entry is silent.
    pub(super) fn end_lost_snapshots(&mut self) {
        if self.gateway.leads() {
            let lost = self.held.lost(self.me, self.now, |node| self.routes.heard_at(node));
            lost.into_iter().for_each(|at| self.gateway.close_snapshot(at, &mut self.sequencer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::ReplicaId;

    const EXECUTED: Epoch = Epoch(9);

    /// What a node asks for at a time.
    fn asked(held: &mut Held, now: u64, executed: Epoch) -> Vec<Position> {
        if held.is_due(now) { held.ask(now, executed) } else { Vec::new() }
    }

    fn entry(replica: u16, life: u64) -> Entry {
        let partition = PartitionId(0);
        Entry { node: NodeId { partition, replica: ReplicaId(replica) }, life }
    }

    fn at(epoch: u64) -> Position {
        Position { epoch: Epoch(epoch), origin: PartitionId(0), index: 3 }
    }

    #[test]
    fn an_end_is_asked_for_until_it_is_in_the_order() {
        let mut held = Held::new(entry(1, 7));
        held.opened(at(2), entry(1, 7));
        assert_eq!((asked(&mut held, 5, EXECUTED), held.deadline()), (vec![], None), "its client reads it");
        held.want_end(at(2), EXECUTED, 5);
        assert_eq!((asked(&mut held, 6, EXECUTED), held.deadline()), (vec![], Some(5 + AGAIN_MICROSECONDS)));
        assert_eq!(asked(&mut held, 5 + AGAIN_MICROSECONDS, EXECUTED), [at(2)]);
        assert_eq!(asked(&mut held, 6 + AGAIN_MICROSECONDS, EXECUTED), []);
        held.lead(0);
        assert_eq!(asked(&mut held, 7 + AGAIN_MICROSECONDS, EXECUTED), [at(2)]);
        held.ended(at(2));
        assert_eq!((asked(&mut held, u64::MAX, EXECUTED), held.deadline()), (vec![], None));
    }

    #[test]
    fn the_end_of_what_is_not_open_is_not_asked_for_for_ever() {
        let mut held = Held::new(entry(1, 7));
        held.want_end(at(2), EXECUTED, 0);
        assert_eq!(held.deadline(), None, "it was closed, or never open");
        held.want_end(at(11), EXECUTED, 0);
        assert_eq!(
            asked(&mut held, AGAIN_MICROSECONDS, EXECUTED),
            [at(11)],
            "its client was faster than the order"
        );
        assert_eq!(asked(&mut held, 2 * AGAIN_MICROSECONDS, Epoch(11)), []);
        assert_eq!(held.deadline(), None);
    }

    #[test]
    fn a_node_ends_what_came_in_through_it_in_another_life() {
        let mut held = Held::new(entry(1, 8));
        held.opened(at(2), entry(1, 7));
        held.opened(at(3), entry(0, 7));
        held.restore(vec![(at(1), entry(1, 6)), (at(4), entry(1, 8))]);
        assert_eq!(asked(&mut held, 0, EXECUTED), [at(1), at(2)]);
        let saved = vec![(at(1), entry(1, 6)), (at(2), entry(1, 7)), (at(3), entry(0, 7))];
        assert_eq!(held.save(Epoch(3)), saved);
    }

    #[test]
    fn who_leads_ends_what_came_in_through_those_who_are_silent() {
        let mut held = Held::new(entry(0, 7));
        for (place, replica) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
            held.opened(at(place), entry(replica, 7));
        }
        held.opened(Position { origin: PartitionId(1), ..at(2) }, entry(1, 7));
        let heard_at = |node: NodeId| if node.replica == ReplicaId(2) { 6 } else { 5 };
        let lost = |held: &Held, now| held.lost(PartitionId(0), now, heard_at);
        assert_eq!(lost(&held, 5 + SILENCE_MICROSECONDS), []);
        assert_eq!(lost(&held, 6 + SILENCE_MICROSECONDS), [at(2), at(4)]);
        held.lead(9);
        assert_eq!(
            lost(&held, 9 + SILENCE_MICROSECONDS),
            [],
            "before it led nobody told it that they were there"
        );
        assert_eq!(lost(&held, 10 + SILENCE_MICROSECONDS), [at(2), at(3), at(4)]);
        assert_eq!(asked(&mut held, u64::MAX, EXECUTED), [], "it is no wish of its own");
    }
}
