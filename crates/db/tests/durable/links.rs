//! The way of messages between nodes: in order and once each while a connection lasts, and lost with it.

use std::collections::{BTreeMap, VecDeque};

use ordain_db::message::Message;
use ordain_db::node::Event;
use ordain_db::position::NodeId;

use crate::seeded::Seeded;

/// What is on its way in one direction.
#[derive(Debug)]
enum Item {
    /// The connection with this number begins.
    Reset(u64),
    Message(Message),
}

/// One direction between two nodes.
#[derive(Default, Debug)]
struct Direction {
    queue: VecDeque<Item>,
    /// The connection that the sender knows of: what it sends goes there.
    known: Option<u64>,
}

/// All directions, by sender and receiver.
#[derive(Default, Debug)]
pub(crate) struct Links {
    directions: BTreeMap<(NodeId, NodeId), Direction>,
    /// By pair, the lower node first: the connection, while there is one.
    connections: BTreeMap<(NodeId, NodeId), u64>,
    last: u64,
}

fn pair(one: NodeId, other: NodeId) -> (NodeId, NodeId) {
    (one.min(other), one.max(other))
}

impl Links {
    pub(crate) fn is_connected(&self, one: NodeId, other: NodeId) -> bool {
        self.connections.contains_key(&pair(one, other))
    }

    /// Makes a connection: both ends hear of it before anything that the other one sends through it.
    pub(crate) fn connect(&mut self, one: NodeId, other: NodeId) {
        if self.is_connected(one, other) {
            return;
        }
        self.last += 1;
        self.connections.insert(pair(one, other), self.last);
        for way in [(one, other), (other, one)] {
            self.directions.entry(way).or_default().queue.push_back(Item::Reset(self.last));
        }
    }

    /// Ends a connection: of what was on its way, some of the first still arrives.
    pub(crate) fn disconnect(&mut self, one: NodeId, other: NodeId, random: &mut Seeded) {
        self.connections.remove(&pair(one, other));
        for way in [(one, other), (other, one)] {
            let direction = self.directions.entry(way).or_default();
            direction.known = None;
            let arrives = random.below(direction.queue.len() + 1);
            direction.queue.truncate(arrives);
        }
    }

    /// Nobody is there any more to take what is on its way to a node.
    pub(crate) fn clear(&mut self, to: NodeId) {
        let ways = self.directions.iter_mut().filter(|((_, receiver), _)| *receiver == to);
        ways.for_each(|(_, direction)| direction.queue.clear());
    }

    pub(crate) fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let connection = self.connections.get(&pair(from, to));
        let direction = self.directions.entry((from, to)).or_default();
        if direction.known.is_some() && direction.known.as_ref() == connection {
            direction.queue.push_back(Item::Message(message));
        }
    }

    /// Whether anything is on its way to a node.
    pub(crate) fn any_to(&self, to: NodeId) -> bool {
        self.directions
            .iter()
            .any(|((_, receiver), direction)| *receiver == to && !direction.queue.is_empty())
    }

    /// Takes some of what is on its way to a node.
    pub(crate) fn take(&mut self, to: NodeId, random: &mut Seeded, events: &mut Vec<Event>) {
        let mut heard = Vec::new();
        for ((from, receiver), direction) in &mut self.directions {
            if *receiver != to {
                continue;
            }
            let taken = random.below(direction.queue.len() + 1);
            for item in direction.queue.drain(..taken) {
                events.push(match item {
                    Item::Message(message) => Event::Peer { from: *from, message },
                    Item::Reset(connection) => {
                        heard.push((*from, connection));
                        Event::LinkReset(*from)
                    }
                });
            }
        }
        for (peer, connection) in heard {
            self.directions.entry((to, peer)).or_default().known = Some(connection);
        }
    }
}
