//! Requests that were sent on towards their leader, for as long as they may be lost with it.
//!
//! A leader that fails answers nobody, and the client is connected elsewhere: it would learn of the failure only by waiting. So
//! the node that has sent a request on tells the client when the one to which it was sent is no longer the leader, or no longer
//! heard of. The client sends the request again, with its identity. Who has been answered already ignores it (CAL-106).

use std::collections::VecDeque;

use crate::message::RequestId;
use crate::position::NodeId;

/// For how many heartbeats requests are remembered: longer than an election takes.
const HEARTBEATS: usize = 40;

/// Most requests that are remembered; the client of one that is forgotten waits.
const REQUESTS_MAX: usize = 65_536;

/// A request that was sent on.
#[derive(Clone, Copy, Debug)]
struct Forwarded {
    to: NodeId,
    entry: NodeId,
    request: RequestId,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Forwards {
    /// By heartbeat, the oldest first.
    sent: VecDeque<Vec<Forwarded>>,
    number: usize,
    /// To whom requests of the own partition were last sent.
    pub(super) leader: Option<NodeId>,
}

impl Forwards {
    /// Notes that a request of a client at `entry` is sent on.
    pub(super) fn note(&mut self, to: NodeId, entry: NodeId, request: RequestId) {
        if self.sent.is_empty() {
            self.sent.push_back(Vec::new());
        }
        if let Some(newest) = self.sent.back_mut().filter(|_| self.number < REQUESTS_MAX) {
            newest.push(Forwarded { to, entry, request });
            self.number += 1;
        }
    }

    /// A heartbeat has passed.
    pub(super) fn age(&mut self) {
        self.sent.push_back(Vec::new());
        while self.sent.len() > HEARTBEATS {
            self.number -= self.sent.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    /// What was sent to a node that does not answer any more, and where the clients are.
    pub(super) fn lost_with(&mut self, node: NodeId) -> Vec<(NodeId, RequestId)> {
        let mut lost = Vec::new();
        for sent in &mut self.sent {
            sent.retain(|forwarded| {
                let keep = forwarded.to != node;
                if !keep {
                    lost.push((forwarded.entry, forwarded.request));
                }
                keep
            });
        }
        self.number -= lost.len();
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ClientId;
    use crate::position::{PartitionId, ReplicaId};

    fn node(replica: u16) -> NodeId {
        NodeId { partition: PartitionId(0), replica: ReplicaId(replica) }
    }

    fn request(sequence: u64) -> RequestId {
        RequestId { client: ClientId { home: PartitionId(0), number: 1 }, sequence }
    }

    #[test]
    fn what_was_sent_to_the_one_that_failed_is_told_once() {
        let mut forwards = Forwards::default();
        forwards.note(node(1), node(0), request(1));
        forwards.age();
        forwards.note(node(2), node(0), request(2));
        forwards.note(node(1), node(2), request(3));
        assert_eq!(forwards.lost_with(node(1)), [(node(0), request(1)), (node(2), request(3))]);
        assert_eq!((forwards.lost_with(node(1)), forwards.number), (vec![], 1));
    }

    #[test]
    fn what_is_remembered_is_limited_in_time_and_number() {
        let mut forwards = Forwards::default();
        forwards.note(node(1), node(0), request(1));
        (0..HEARTBEATS).for_each(|_| forwards.age());
        assert_eq!((forwards.number, forwards.lost_with(node(1))), (0, vec![]));
        (0..=REQUESTS_MAX as u64).for_each(|sequence| forwards.note(node(1), node(0), request(sequence)));
        assert_eq!(forwards.lost_with(node(1)).len(), REQUESTS_MAX);
    }
}
