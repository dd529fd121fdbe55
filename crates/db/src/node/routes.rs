//! Which nodes a node gets the messages of the other partitions from, and sends to what concerns them.
//!
//! As a rule that is the node of the own replica. A failure detector watches whether it is heard of; when it is not, a node of
//! another replica takes its place until it is back (CAL-104, CAL-106, CAL-109).

use crate::position::{NodeId, PartitionId, ReplicaId};

/// How often a node lets its peers hear of it, in microseconds.
pub const HEARTBEAT_MICROSECONDS: u64 = 50_000;

/// After how long without a sign a node is taken for failed, in microseconds.
pub const FAILURE_MICROSECONDS: u64 = 500_000;

/// See the [module](self).
#[derive(Debug)]
pub struct Routes {
    me: NodeId,
    replicas: u16,
    routes: Vec<Route>,
    next_heartbeat: u64,
}

/// The way to a partition.
#[derive(Debug)]
struct Route {
    /// The replica whose node takes the place of the own replica's.
    substitute: Option<ReplicaId>,
    /// By replica: when its node was last heard of, in microseconds.
    heard_at: Vec<u64>,
    /// Replicas whose nodes said that they cannot serve.
    unserved: Vec<ReplicaId>,
}

impl Routes {
    /// The routes of a node to all partitions: all through the own replica.
    pub fn new(me: NodeId, partitions: u16, replicas: u16) -> Routes {
        let route =
            |_| Route { substitute: None, heard_at: vec![0; usize::from(replicas)], unserved: Vec::new() };
        Routes { me, replicas, routes: (0..partitions).map(route).collect(), next_heartbeat: 0 }
    }

    /// The cluster has places for so many replicas now. Of the new ones nothing was heard yet.
    pub fn grow(&mut self, replicas: u16) {
        self.replicas = replicas;
        self.routes.iter_mut().for_each(|route| route.heard_at.resize(usize::from(replicas), 0));
    }

    /// The node to send to what concerns a partition.
    pub fn to(&self, partition: PartitionId) -> NodeId {
        let substitute = self.routes[partition.index()].substitute;
        NodeId { partition, replica: substitute.unwrap_or(self.me.replica) }
    }

    /// Notes a sign of life.
    pub fn heard(&mut self, from: NodeId, now: u64) {
        let route = &mut self.routes[from.partition.index()];
        if let Some(heard_at) = route.heard_at.get_mut(usize::from(from.replica.0)) {
            *heard_at = now;
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
            if self.next_heartbeat == 0 {
                // Nobody could be heard of before this node was there.
                self.routes.iter_mut().for_each(|route| route.heard_at.fill(now));
            }
            self.next_heartbeat = now + HEARTBEAT_MICROSECONDS;
        }
        due
    }

    /// Finds substitutes for nodes that were not heard of for too long, if there are live ones; names those that changed.
    pub fn detect(&mut self, now: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.replicas < 2 {
            return changes;
        }
        for place in 0..self.routes.len() {
            let partition = PartitionId(place as u16);
            if partition == self.me.partition {
                continue;
            }
            let from = self.to(partition);
            let route = &mut self.routes[place];
            if !route.has_failed(from.replica, now) {
                continue;
            }
            let others = (1..self.replicas).map(|step| ReplicaId((from.replica.0 + step) % self.replicas));
            if let Some(next) = others.into_iter().find(|replica| !route.has_failed(*replica, now)) {
                route.substitute = (next != self.me.replica).then_some(next);
                changes.push(Change { from, to: NodeId { partition, replica: next } });
            }
        }
        changes
    }

    /// Notes that a node cannot serve this one; it is not asked again until it says something new.
    pub fn unserved(&mut self, by: NodeId) {
        let route = &mut self.routes[by.partition.index()];
        if !route.unserved.contains(&by.replica) {
            route.unserved.push(by.replica);
        }
    }

    /// Notes that a node has started again: it may be able to serve now.
    pub fn may_serve(&mut self, node: NodeId) {
        self.routes[node.partition.index()].unserved.retain(|replica| *replica != node.replica);
    }

    /// Whether no node of a partition serves this one: those that live have said that they cannot.
    pub fn nobody_serves(&self, partition: PartitionId, now: u64) -> bool {
        let route = &self.routes[partition.index()];
        let mut replicas = (0..self.replicas).map(ReplicaId);
        !route.unserved.is_empty() && replicas.all(|replica| route.has_failed(replica, now))
    }

    /// Goes back to the node of the own replica, which is as far as this one; names its substitute.
    pub fn restore(&mut self, partition: PartitionId) -> Option<NodeId> {
        let route = &mut self.routes[partition.index()];
        route.unserved.clear();
        route.substitute.take().map(|replica| NodeId { partition, replica })
    }
}

impl Route {
    /// Whether a replica's node was not heard of for too long, or cannot serve.
    fn has_failed(&self, replica: ReplicaId, now: u64) -> bool {
        now.saturating_sub(self.heard_at[replica.index()]) > FAILURE_MICROSECONDS
            || self.unserved.contains(&replica)
    }
}

/// A route that has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The node that was not heard of.
    pub from: NodeId,
    /// The node that takes its place.
    pub to: NodeId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(partition: u16, replica: u16) -> NodeId {
        NodeId { partition: PartitionId(partition), replica: ReplicaId(replica) }
    }

    #[test]
    fn a_silent_node_is_replaced_by_a_live_one_and_comes_back() {
        let mut routes = Routes::new(node(0, 0), 2, 3);
        let (own, first, second) = (node(1, 0), node(1, 1), node(1, 2));
        routes.heard(second, FAILURE_MICROSECONDS);
        assert_eq!(routes.detect(FAILURE_MICROSECONDS), []);
        let now = FAILURE_MICROSECONDS + 1;
        assert_eq!(routes.detect(now), [Change { from: own, to: second }], "{first} is silent as well");
        assert_eq!((routes.to(PartitionId(1)), routes.detect(now)), (second, vec![]));
        assert_eq!(routes.restore(PartitionId(1)), Some(second));
        assert_eq!(routes.to(PartitionId(1)), own);
    }

    #[test]
    fn a_node_that_cannot_serve_is_passed_over() {
        let mut routes = Routes::new(node(0, 1), 2, 2);
        routes.heard(node(1, 0), 5);
        routes.heard(node(1, 1), 5);
        routes.unserved(node(1, 1));
        assert_eq!(routes.detect(6), [Change { from: node(1, 1), to: node(1, 0) }]);
        routes.unserved(node(1, 0));
        assert_eq!(routes.detect(6), []);
        assert!(routes.nobody_serves(PartitionId(1), 6));
    }

    #[test]
    fn those_that_are_silent_do_not_serve_either() {
        let mut routes = Routes::new(node(0, 0), 2, 3);
        let now = FAILURE_MICROSECONDS + 1;
        assert!(!routes.nobody_serves(PartitionId(1), now), "nobody has said anything");
        routes.heard(node(1, 1), now);
        routes.unserved(node(1, 1));
        assert!(routes.nobody_serves(PartitionId(1), now));
        routes.may_serve(node(1, 1));
        assert!(!routes.nobody_serves(PartitionId(1), now));
    }

    #[test]
    fn a_single_replica_watches_nobody() {
        let mut routes = Routes::new(node(0, 0), 2, 1);
        assert_eq!(
            (routes.deadline(), routes.heartbeat_due(9), routes.detect(u64::MAX)),
            (None, false, vec![])
        );
    }
}
