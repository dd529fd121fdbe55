//! Nodes and the messages between them, moved by hand.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;

use ordain_db::data::Key;
use ordain_db::engine::aloha::Aloha;
use ordain_db::engine::calvin::{Calvin, CalvinVll};
use ordain_db::engine::serial::Serial;
use ordain_db::engine::two_phase::{CommitProtocol, TwoPhaseCounters};
use ordain_db::engine::{Engine, EngineKind};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientRequest, Message, Reply};
use ordain_db::node::{AnyNode, Event, Node, NodeConfiguration, Outbox, TwoPhaseNode};
use ordain_db::position::{NodeId, PartitionId};
use ordain_db::sequencer::{EpochOptions, EpochPolicy};

use crate::interpreted::Database;

/// A node that lets scripts see its rows.
pub(crate) trait OpenNode: AnyNode {
    fn row(&self, key: &Key) -> Option<Vec<u8>>;

    /// What the engine `two-phase` has counted.
    fn deadlocks(&self) -> Option<TwoPhaseCounters> {
        None
    }
}

impl OpenNode for TwoPhaseNode<NoFailpoints> {
    fn row(&self, key: &Key) -> Option<Vec<u8>> {
        self.peek(key).map(<[u8]>::to_vec)
    }

    fn deadlocks(&self) -> Option<TwoPhaseCounters> {
        Some(TwoPhaseNode::deadlocks(self))
    }
}

impl<E: Engine + Send> OpenNode for Node<E> {
    fn row(&self, key: &Key) -> Option<Vec<u8>> {
        self.peek(key).map(<[u8]>::to_vec)
    }
}

/// A cluster that does only what it is told.
pub(crate) struct Network {
    pub(crate) nodes: Vec<Box<dyn OpenNode>>,
    /// By node: its database, which counts the runs of the logic there.
    pub(crate) databases: Vec<Database>,
    /// Messages under way, by sender and receiver.
    pub(crate) links: BTreeMap<(PartitionId, PartitionId), VecDeque<Message>>,
    /// Messages that have arrived, by sender and receiver.
    delivered: BTreeMap<(PartitionId, PartitionId), Vec<Message>>,
    pub(crate) now: u64,
}

/// Whether a message on a link, from one partition to another, may be delivered.
pub(crate) type Allowed<'a> = dyn Fn((PartitionId, PartitionId), &Message) -> bool + 'a;

/// What a node did.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) sent: Vec<(PartitionId, PartitionId, Message)>,
    pub(crate) replies: Vec<(PartitionId, Reply)>,
}

impl Network {
    pub(crate) fn new(
        engine: EngineKind,
        partitions: u16,
        rows: &[(Key, Vec<u8>)],
        limits: Limits,
        epochs: EpochPolicy,
    ) -> Network {
        let databases: Vec<Database> = (0..partitions).map(|_| Database::new()).collect();
        let nodes =
            (0..partitions).map(PartitionId).zip(&databases).map(|(me, database)| -> Box<dyn OpenNode> {
                let epochs = EpochOptions::of(epochs);
                let configuration =
                    NodeConfiguration { limits, epochs, ..NodeConfiguration::new(me, partitions) };
                let storage = Box::new(database.load(rows, me, partitions));
                let catalog = database.catalog.clone();
                match engine {
                    EngineKind::Serial => {
                        Box::new(Node::new(&configuration, catalog, Serial::new(), storage, None))
                    }
                    EngineKind::Calvin => {
                        Box::new(Node::new(&configuration, catalog, Calvin::new(), storage, None))
                    }
                    EngineKind::CalvinVll => {
                        Box::new(Node::new(&configuration, catalog, <CalvinVll>::default(), storage, None))
                    }
                    EngineKind::Aloha => {
                        Box::new(Node::new(&configuration, catalog, Aloha::new(), storage, None))
                    }
                    EngineKind::TwoPhase | EngineKind::TwoPhaseWithoutCommitProtocol => {
                        let protocol = match engine {
                            EngineKind::TwoPhase => CommitProtocol::TwoPhase,
                            _ => CommitProtocol::None,
                        };
                        Box::new(TwoPhaseNode::new(protocol, &configuration, catalog, storage, None))
                    }
                }
            });
        Network {
            nodes: nodes.collect(),
            databases,
            links: BTreeMap::new(),
            delivered: BTreeMap::new(),
            now: 0,
        }
    }

    fn step(&mut self, at: PartitionId, events: Vec<Event>) -> Result<Done, Box<dyn Error>> {
        let node = self.nodes.get_mut(at.index()).ok_or("there is no such node")?;
        let (mut events, mut done) = (events, Done::default());
        let mut more = true;
        while more {
            let mut outbox = Outbox::default();
            more = node.step(self.now, &mut events, &mut outbox)?;
            done.replies.extend(outbox.replies.into_iter().map(|reply| (at, reply)));
            for (NodeId { partition: to, .. }, message) in outbox.sends {
                done.sent.push((at, to, message.clone()));
                self.links.entry((at, to)).or_default().push_back(message);
            }
        }
        Ok(done)
    }

    /// Lets a node go on with what it has.
    pub(crate) fn wake(&mut self, at: PartitionId) -> Result<Done, Box<dyn Error>> {
        self.step(at, Vec::new())
    }

    pub(crate) fn request(
        &mut self,
        at: PartitionId,
        requests: Vec<ClientRequest>,
    ) -> Result<Done, Box<dyn Error>> {
        self.step(at, vec![Event::Requests(requests)])
    }

    /// Delivers the oldest messages of a link, each in a step of its own.
    pub(crate) fn deliver(
        &mut self,
        from: PartitionId,
        to: PartitionId,
        count: usize,
    ) -> Result<Done, Box<dyn Error>> {
        let mut all = Done::default();
        for event in self.take(from, to, count)? {
            all.append(self.step(to, vec![event])?);
        }
        Ok(all)
    }

    /// Delivers the oldest messages of a link in one step.
    pub(crate) fn deliver_together(
        &mut self,
        from: PartitionId,
        to: PartitionId,
        count: usize,
    ) -> Result<Done, Box<dyn Error>> {
        let events = self.take(from, to, count)?;
        self.step(to, events)
    }

    /// Takes the oldest messages off a link.
    fn take(
        &mut self,
        from: PartitionId,
        to: PartitionId,
        count: usize,
    ) -> Result<Vec<Event>, Box<dyn Error>> {
        let mut events = Vec::new();
        for _ in 0..count {
            let link = self.links.get_mut(&(from, to)).ok_or("there is no message")?;
            let message = link.pop_front().ok_or("there is no message")?;
            self.delivered.entry((from, to)).or_default().push(message.clone());
            events.push(Event::Peer { from: NodeId::first(from), message });
        }
        Ok(events)
    }

    /// Delivers the newest messages that a link has delivered once more: a sender that has recovered says again what it said.
    pub(crate) fn redeliver(
        &mut self,
        from: PartitionId,
        to: PartitionId,
        count: usize,
    ) -> Result<Done, Box<dyn Error>> {
        let delivered = self.delivered.get(&(from, to)).ok_or("nothing was delivered")?;
        let first = delivered.len().checked_sub(count).ok_or("so many were not delivered")?;
        let mut all = Done::default();
        let again: Vec<Message> = delivered[first..].to_vec();
        for message in again {
            all.append(self.step(to, vec![Event::Peer { from: NodeId::first(from), message }])?);
        }
        Ok(all)
    }

    /// Two nodes lose what is under way between them, and hear of it.
    pub(crate) fn reset(&mut self, one: PartitionId, other: PartitionId) -> Result<Done, Box<dyn Error>> {
        let mut all = Done::default();
        for (from, to) in [(one, other), (other, one)] {
            self.links.remove(&(from, to));
        }
        for (from, to) in [(one, other), (other, one)] {
            all.append(self.step(to, vec![Event::LinkReset(NodeId::first(from))])?);
        }
        Ok(all)
    }

    /// A link whose oldest message may be delivered.
    fn busy_link(&self, allowed: &Allowed<'_>) -> Option<(PartitionId, PartitionId)> {
        let mut busy = self.links.iter();
        let busy = busy.find(|(link, queue)| queue.front().is_some_and(|message| allowed(**link, message)));
        busy.map(|(link, _)| *link)
    }

    /// Delivers message after message until only such are left that are not allowed, and nobody waits for the clock.
    pub(crate) fn run(&mut self, allowed: &Allowed<'_>) -> Result<Done, Box<dyn Error>> {
        let mut all = Done::default();
        loop {
            if let Some((from, to)) = self.busy_link(allowed) {
                all.append(self.deliver(from, to, 1)?);
                continue;
            }
            let due = self.nodes.iter().filter_map(|node| node.deadline()).min();
            let Some(due) = due.filter(|due| *due > self.now) else { return Ok(all) };
            self.now = due;
            for node in 0..self.nodes.len() as u16 {
                all.append(self.wake(PartitionId(node))?);
            }
        }
    }
}

impl Done {
    pub(crate) fn append(&mut self, mut other: Done) {
        self.sent.append(&mut other.sent);
        self.replies.append(&mut other.replies);
    }
}
