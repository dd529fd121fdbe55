//! Which nodes a node gets the messages of the other partitions from, and sends to what concerns them.
//!
//! As a rule that is the node of the own replica. A failure detector watches whether it is heard of, and whether it goes on;
//! when it is silent, or this node stands still for want of what others have and it has not, the node of another replica takes
//! its place until it is level again (CAL-104, CAL-106, CAL-109). So a node that is back and replays for long stops nobody.
//!
//! Nodes of the own *subgroup* of replicas say the same as the node of the own replica all the time, if there is one: then
//! execution does not wait for a node that is lost (CAL-107). That multiplies what partitions say to each other (CAL-108).

use crate::message::Reached;
use crate::position::{Epoch, NodeId, PartitionId, ReplicaId};

/// How often a node lets its peers hear of it, in microseconds.
pub const HEARTBEAT_MICROSECONDS: u64 = 50_000;

/// After how long without a sign a node is taken for failed, in microseconds; and after how long a node that stands still looks
/// for another one that has what it lacks.
pub const FAILURE_MICROSECONDS: u64 = 500_000;

impl Reached {
    /// Whether a node that is here has what one needs that stands still there: its next batch, or what follows from its next
    /// epoch.
    fn helps(&self, waiting: &Reached) -> bool {
        match waiting.executed < waiting.delivered {
            true => self.executed > waiting.executed,
            false => self.handed_on > waiting.delivered,
        }
    }

    /// Whether a node that is here has all that was needed by one that was there.
    fn is_level(&self, other: &Reached) -> bool {
        self.handed_on >= other.delivered && self.executed >= other.executed
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Routes {
    me: NodeId,
    replicas: u16,
    subgroup: Vec<ReplicaId>,
    routes: Vec<Route>,
    next_heartbeat: u64,
    /// How far this node had come at the last heartbeat and at the one before.
    own: [Reached; 2],
}

/// The way to a partition.
#[derive(Debug)]
struct Route {
    /// The replica whose node takes the place of the own replica's.
    substitute: Option<ReplicaId>,
    /// By replica: what its node has said last.
    signs: Vec<Sign>,
    /// Since when its node lacks what this one waits for and another one has, and how far this one had executed then.
    lacks: Option<(u64, Epoch)>,
    /// How far the own replica's node had executed when it was replaced since it lacked something: it is to come further first.
    stuck_at: Option<Epoch>,
}

/// What is known of a node.
#[derive(Clone, Copy, Default, Debug)]
struct Sign {
    /// When it was last heard of, in microseconds.
    heard_at: u64,
    /// How far it was then.
    reached: Reached,
    /// It has said that it keeps nothing of epochs through this one any more, which this node needs.
    unserved: Option<Epoch>,
}

impl Sign {
    /// Whether the node was not heard of for too long, or cannot serve.
    fn has_failed(&self, now: u64) -> bool {
        now.saturating_sub(self.heard_at) > FAILURE_MICROSECONDS || self.unserved.is_some()
    }
}

impl Routes {
    /// The routes of a node to all partitions: all through the own replica. The nodes of the other replicas of its subgroup say
    /// what that one says, as well.
    pub fn new(me: NodeId, partitions: u16, replicas: u16, mut subgroup: Vec<ReplicaId>) -> Routes {
        subgroup.retain(|replica| *replica != me.replica);
        let signs = vec![Sign::default(); usize::from(replicas)];
        let route = |_| Route { substitute: None, signs: signs.clone(), lacks: None, stuck_at: None };
        Routes {
            me,
            replicas,
            subgroup,
            routes: (0..partitions).map(route).collect(),
            next_heartbeat: 0,
            own: [Reached::default(); 2],
        }
    }

    /// The cluster has places for so many replicas now. Of the new ones nothing was heard yet.
    pub fn grow(&mut self, replicas: u16) {
        self.replicas = replicas;
        self.routes.iter_mut().for_each(|route| route.signs.resize(usize::from(replicas), Sign::default()));
    }

    /// The node to send to what concerns a partition.
    pub fn to(&self, partition: PartitionId) -> NodeId {
        let substitute = self.routes[partition.index()].substitute;
        NodeId { partition, replica: substitute.unwrap_or(self.me.replica) }
    }

    /// Whether the node says all the time what this one needs.
    pub fn is_source(&self, node: NodeId) -> bool {
        node.replica == self.me.replica
            || self.subgroup.contains(&node.replica)
            || self.to(node.partition) == node
    }

    /// Whether the batches of a node are taken: as a rule those of one node only, as batches of two are not to be mixed where
    /// one may say what was lost. In a subgroup nothing may be lost.
    pub fn takes_batches(&self, from: NodeId) -> bool {
        self.to(from.partition) == from || (!self.subgroup.is_empty() && self.is_source(from))
    }

    fn sign(&mut self, node: NodeId) -> Option<&mut Sign> {
        self.routes[node.partition.index()].signs.get_mut(node.replica.index())
    }

    /// Notes a sign of life.
    pub fn heard(&mut self, from: NodeId, now: u64) {
        if let Some(sign) = self.sign(from) {
            sign.heard_at = now;
        }
    }

    /// When a node was last heard of, in microseconds; 0 if it never was.
    pub fn heard_at(&self, node: NodeId) -> u64 {
        let signs = self.routes.get(node.partition.index()).map(|route| &route.signs);
        signs.and_then(|signs| signs.get(node.replica.index())).map_or(0, |sign| sign.heard_at)
    }

    /// Notes how far a node has come.
    pub fn reached(&mut self, from: NodeId, reached: Reached) {
        if let Some(sign) = self.sign(from) {
            sign.reached = reached;
        }
    }

    /// When the node next wants to be woken for its routes: `None` where there is a single replica.
    pub fn deadline(&self) -> Option<u64> {
        (self.replicas > 1).then_some(self.next_heartbeat)
    }

    /// Whether it is time to let the peers hear of this node.
    pub fn heartbeat_due(&mut self, now: u64) -> bool {
        let due = self.replicas > 1 && now >= self.next_heartbeat;
        if due {
            if now > self.next_heartbeat + FAILURE_MICROSECONDS {
                // Nobody could be heard of before this node was there, or while it stood still.
                let signs = self.routes.iter_mut().flat_map(|route| &mut route.signs);
                signs.for_each(|sign| sign.heard_at = now);
            }
            self.next_heartbeat = now + HEARTBEAT_MICROSECONDS;
        }
        due
    }

    /// At a heartbeat: finds substitutes for nodes that have failed, and for those that lack what this one waits for, and takes
    /// nodes of the own replica back that are level. Names what has changed. This node needs nothing more of epochs
    /// through `completed`.
    pub fn detect(&mut self, now: u64, own: Reached, completed: Epoch) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.replicas < 2 {
            return changes;
        }
        for partition in (0..self.routes.len() as u16).map(PartitionId) {
            if partition == self.me.partition {
                continue;
            }
            let signs = &mut self.routes[partition.index()].signs;
            let mut able = Vec::new();
            for (replica, sign) in signs.iter_mut().enumerate() {
                if sign.unserved.take_if(|through| *through <= completed).is_some() {
                    able.push(NodeId { partition, replica: ReplicaId(replica as u16) });
                }
            }
            able.retain(|node| self.is_source(*node));
            changes.extend(able.into_iter().map(|node| Change { from: node, to: node }));
            let from = self.to(partition);
            let lacks_for_long = self.lacks_for_long(from, now, &own);
            let next = match self.is_level_again(partition, now) {
                true => Some(self.me.replica),
                false => self.better_than(from, now, lacks_for_long.then_some(own)),
            };
            let Some(replica) = next else { continue };
            changes.push(self.turn(from, replica));
            if lacks_for_long && from.replica == self.me.replica {
                let route = &mut self.routes[partition.index()];
                route.stuck_at = Some(route.signs[from.replica.index()].reached.executed);
            }
        }
        self.own = [own, self.own[0]];
        changes
    }

    /// Whether the own replica's node of a partition, which has a substitute, has come as far as this one was a moment ago: what
    /// it said was a little old when it came.
    fn is_level_again(&self, partition: PartitionId, now: u64) -> bool {
        let route = &self.routes[partition.index()];
        let mate = &route.signs[self.me.replica.index()];
        route.substitute.is_some()
            && !mate.has_failed(now)
            && mate.reached.is_level(&self.own[1])
            && route.stuck_at.is_none_or(|stuck_at| mate.reached.executed > stuck_at)
    }

    /// Whether this node has stood still for long for want of what a node has not, and another one has.
    fn lacks_for_long(&mut self, from: NodeId, now: u64, own: &Reached) -> bool {
        let Route { signs, lacks, .. } = &mut self.routes[from.partition.index()];
        let others_help = signs.iter().any(|sign| !sign.has_failed(now) && sign.reached.helps(own));
        let is_lacking = others_help && !signs[from.replica.index()].reached.helps(own);
        let known = lacks.filter(|(_, executed)| *executed == own.executed);
        *lacks = is_lacking.then(|| known.unwrap_or((now, own.executed)));
        lacks.is_some_and(|(since, _)| now.saturating_sub(since) > FAILURE_MICROSECONDS)
    }

    /// The replica whose node is to take the place of one, if that has failed or this node waits in vain for what it lacks: the
    /// one that is furthest.
    fn better_than(&self, from: NodeId, now: u64, waiting: Option<Reached>) -> Option<ReplicaId> {
        let signs = &self.routes[from.partition.index()].signs;
        let present = &signs[from.replica.index()];
        let failed = present.has_failed(now);
        if !failed && waiting.is_none() {
            return None;
        }
        // Of equals, the one that follows in the ring: so the load of a replica that fails is not all on one.
        let ring = (1..self.replicas).map(|step| ReplicaId((from.replica.0 + step) % self.replicas));
        let able = ring.filter(|replica| {
            let sign = &signs[replica.index()];
            !sign.has_failed(now) && (failed || waiting.is_some_and(|waiting| sign.reached.helps(&waiting)))
        });
        able.rev().max_by_key(|replica| signs[replica.index()].reached.executed)
    }

    fn turn(&mut self, from: NodeId, replica: ReplicaId) -> Change {
        let partition = from.partition;
        let route = &mut self.routes[partition.index()];
        (route.substitute, route.stuck_at) = ((replica != self.me.replica).then_some(replica), None);
        Change { from, to: NodeId { partition, replica } }
    }

    /// Notes that a node has started again: it may be able to serve now, and has to come to where it was. If this node depends
    /// on it, another one takes its place at once that is known to be level.
    pub fn started_again(&mut self, node: NodeId, now: u64) -> Option<Change> {
        let sign = self.sign(node)?;
        (sign.unserved, sign.reached) = (None, Reached::default());
        if self.to(node.partition) != node || self.own[1] == Reached::default() {
            return None;
        }
        let signs = &self.routes[node.partition.index()].signs;
        let level = |replica: &ReplicaId| {
            let sign = &signs[replica.index()];
            !sign.has_failed(now) && sign.reached.is_level(&self.own[1])
        };
        let next = (0..self.replicas)
            .map(ReplicaId)
            .filter(level)
            .max_by_key(|replica| signs[replica.index()].reached.executed)?;
        Some(self.turn(node, next))
    }

    /// Notes that a node keeps nothing of epochs through one any more, which this node needs: it is not asked again before this
    /// node is there, or the other one has started again.
    pub fn unserved(&mut self, by: NodeId, through: Epoch) {
        if let Some(sign) = self.sign(by) {
            sign.unserved = Some(through);
        }
    }

    /// Whether no node of a partition serves this one: those that live have said that they cannot.
    pub fn nobody_serves(&self, partition: PartitionId, now: u64) -> bool {
        let signs = &self.routes[partition.index()].signs;
        signs.iter().any(|sign| sign.unserved.is_some()) && signs.iter().all(|sign| sign.has_failed(now))
    }
}

/// A route that has changed, or a node that can serve now and could not before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The node that it went to.
    pub from: NodeId,
    /// The node that it goes to: it is to be asked for what this one needs.
    pub to: NodeId,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: PartitionId = PartitionId(1);

    fn node(partition: u16, replica: u16) -> NodeId {
        NodeId { partition: PartitionId(partition), replica: ReplicaId(replica) }
    }

    fn at(epoch: u64) -> Reached {
        Reached { handed_on: Epoch(epoch), delivered: Epoch(epoch), executed: Epoch(epoch) }
    }

    fn routes(me: NodeId, replicas: u16) -> Routes {
        Routes::new(me, 2, replicas, Vec::new())
    }

    /// A heartbeat at which nobody has anything to do.
    fn beat(routes: &mut Routes, now: u64) -> Vec<Change> {
        routes.detect(now, at(0), Epoch(0))
    }

    #[test]
    fn a_silent_node_is_replaced_by_a_live_one_and_comes_back() {
        let mut routes = routes(node(0, 0), 3);
        let (own, first, second) = (node(1, 0), node(1, 1), node(1, 2));
        routes.heard(second, FAILURE_MICROSECONDS);
        assert_eq!(beat(&mut routes, FAILURE_MICROSECONDS), []);
        let now = FAILURE_MICROSECONDS + 1;
        assert_eq!(beat(&mut routes, now), [Change { from: own, to: second }], "{first} is silent as well");
        assert_eq!((routes.to(OTHER), beat(&mut routes, now)), (second, vec![]));
        routes.heard(own, now);
        assert_eq!(beat(&mut routes, now), [Change { from: second, to: own }]);
        assert_eq!(routes.to(OTHER), own);
    }

    #[test]
    fn who_is_back_is_taken_again_when_it_is_level() {
        let mut routes = routes(node(0, 0), 2);
        let (own, other) = (node(1, 0), node(1, 1));
        let now = FAILURE_MICROSECONDS + 1;
        routes.heard(other, now);
        routes.reached(other, at(7));
        assert_eq!(routes.detect(now, at(7), Epoch(7)), [Change { from: own, to: other }]);
        assert_eq!(routes.detect(now, at(8), Epoch(8)), []);
        routes.heard(own, now);
        routes.reached(own, Reached { executed: Epoch(6), ..at(8) });
        assert_eq!(routes.detect(now, at(9), Epoch(9)), [], "it has executed less than this node long ago");
        routes.reached(own, at(8));
        assert_eq!(routes.detect(now, at(9), Epoch(9)), [Change { from: other, to: own }]);
    }

    #[test]
    fn who_lacks_what_is_waited_for_is_replaced_by_the_furthest() {
        let mut routes = routes(node(0, 0), 3);
        let (own, first, second) = (node(1, 0), node(1, 1), node(1, 2));
        let all = [(own, at(4)), (first, at(6)), (second, at(9))];
        let mut beat = |now: u64, reached: Reached| {
            all.iter().for_each(|(node, _)| routes.heard(*node, now));
            all.iter().for_each(|(node, reached)| routes.reached(*node, *reached));
            routes.detect(now, reached, Epoch(0))
        };
        assert_eq!(beat(0, at(5)), []);
        assert_eq!(beat(FAILURE_MICROSECONDS, at(5)), [], "it has not waited for long");
        let late = FAILURE_MICROSECONDS + 1;
        assert_eq!(beat(late, at(5)), [Change { from: own, to: second }]);
        // What it waits for now, nobody has.
        assert_eq!(beat(late + 1, at(9)), []);
        assert_eq!(beat(3 * late, at(9)), []);
    }

    #[test]
    fn who_waits_for_reads_stands_still_although_batches_come() {
        let mut routes = routes(node(0, 0), 2);
        let (own, other) = (node(1, 0), node(1, 1));
        let mut changes = Vec::new();
        for beat in 0..=FAILURE_MICROSECONDS / HEARTBEAT_MICROSECONDS + 1 {
            let now = beat * HEARTBEAT_MICROSECONDS;
            let executed = |epoch| Reached { executed: Epoch(epoch), ..at(9 + beat) };
            for (node, reached) in [(own, executed(2)), (other, executed(8))] {
                routes.heard(node, now);
                routes.reached(node, reached);
            }
            changes.extend(routes.detect(now, executed(5), Epoch(5)));
        }
        assert_eq!(changes, [Change { from: own, to: other }]);
    }

    #[test]
    fn who_is_stuck_is_taken_again_when_it_has_come_further() {
        let mut routes = routes(node(0, 0), 2);
        let (own, other) = (node(1, 0), node(1, 1));
        let mut beat = |now: u64, of_own: u64, mine: u64| {
            for (node, epoch) in [(own, of_own), (other, 9)] {
                routes.heard(node, now);
                routes.reached(node, at(epoch));
            }
            routes.detect(now, at(mine), Epoch(0))
        };
        let late = FAILURE_MICROSECONDS + 1;
        assert_eq!((beat(0, 5, 5), beat(late, 5, 5).len()), (vec![], 1));
        // This node goes on with the other one's help; the own replica's does not.
        assert_eq!((beat(late + 1, 5, 9), beat(late + 2, 5, 9)), (vec![], vec![]));
        assert_eq!(beat(late + 3, 9, 9), [Change { from: other, to: own }]);
    }

    #[test]
    fn who_was_idle_does_not_stand_still() {
        let mut routes = routes(node(0, 0), 2);
        let (own, other) = (node(1, 0), node(1, 1));
        let mut beat = |now: u64, of_other: Reached| {
            for (node, reached) in [(own, at(5)), (other, of_other)] {
                routes.heard(node, now);
                routes.reached(node, reached);
            }
            routes.detect(now, at(5), Epoch(5))
        };
        assert_eq!(beat(0, at(5)), []);
        let later = 10 * FAILURE_MICROSECONDS;
        assert_eq!((beat(later, at(6)), beat(later + FAILURE_MICROSECONDS, at(6))), (vec![], vec![]));
        assert_eq!(beat(later + FAILURE_MICROSECONDS + 1, at(6)).len(), 1);
    }

    #[test]
    fn what_is_waited_for_is_the_next_batch_or_what_follows_from_it() {
        let waiting = at(5);
        let logs = Reached { handed_on: Epoch(6), executed: Epoch(2), delivered: Epoch(2) };
        assert!(logs.helps(&waiting), "it has the batch");
        let executing = Reached { executed: Epoch(4), ..waiting };
        assert!(!logs.helps(&executing), "it has not executed so far");
        assert!(at(5).helps(&executing));
    }

    #[test]
    fn who_starts_again_is_replaced_at_once_by_a_level_one() {
        let mut routes = routes(node(0, 0), 3);
        let (own, first, second) = (node(1, 0), node(1, 1), node(1, 2));
        for (node, epoch) in [(own, 7), (first, 3), (second, 7)] {
            routes.heard(node, 1);
            routes.reached(node, at(epoch));
        }
        assert_eq!(routes.started_again(own, 1), None, "this node has just started as well");
        assert_eq!((routes.detect(1, at(7), Epoch(7)), routes.detect(1, at(7), Epoch(7))), (vec![], vec![]));
        assert_eq!(routes.started_again(first, 1), None, "nothing depends on it");
        assert_eq!(routes.started_again(own, 1), Some(Change { from: own, to: second }));
    }

    #[test]
    fn a_node_that_cannot_serve_is_passed_over_until_it_can() {
        let mut routes = routes(node(0, 1), 2);
        let (own, other) = (node(1, 1), node(1, 0));
        routes.heard(other, 5);
        routes.heard(own, 5);
        routes.unserved(own, Epoch(3));
        assert_eq!(beat(&mut routes, 6), [Change { from: own, to: other }]);
        routes.unserved(other, Epoch(2));
        assert_eq!(beat(&mut routes, 6), []);
        assert!(routes.nobody_serves(OTHER, 6));
        let again = [Change { from: other, to: other }];
        assert_eq!(routes.detect(6, at(2), Epoch(2)), again, "what the other one lacks is no longer needed");
        assert!(!routes.nobody_serves(OTHER, 6));
        routes.reached(own, at(3));
        let back = [Change { from: own, to: own }, Change { from: other, to: own }];
        assert_eq!(routes.detect(6, at(3), Epoch(3)), back);
    }

    #[test]
    fn those_that_are_silent_do_not_serve_either() {
        let mut routes = routes(node(0, 0), 3);
        let now = FAILURE_MICROSECONDS + 1;
        assert!(!routes.nobody_serves(OTHER, now), "nobody has said anything");
        routes.heard(node(1, 1), now);
        routes.unserved(node(1, 1), Epoch(1));
        assert!(routes.nobody_serves(OTHER, now));
        routes.started_again(node(1, 1), now);
        assert!(!routes.nobody_serves(OTHER, now));
    }

    #[test]
    fn in_a_subgroup_all_say_what_is_needed() {
        let mut routes = Routes::new(node(0, 0), 2, 3, vec![ReplicaId(0), ReplicaId(2)]);
        let takes = |routes: &Routes| [0, 1, 2].map(|replica| routes.takes_batches(node(1, replica)));
        assert_eq!(takes(&routes), [true, false, true]);
        routes.heard(node(1, 1), FAILURE_MICROSECONDS + 1);
        assert_eq!(beat(&mut routes, FAILURE_MICROSECONDS + 1).len(), 1);
        assert_eq!(takes(&routes), [true, true, true]);
    }

    #[test]
    fn a_single_replica_watches_nobody() {
        let mut routes = routes(node(0, 0), 1);
        assert_eq!(
            (routes.deadline(), routes.heartbeat_due(9), beat(&mut routes, u64::MAX)),
            (None, false, vec![])
        );
    }
}
