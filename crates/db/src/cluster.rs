//! A whole cluster of one replica in one thread, without logs, for tests: nodes, the messages between them, and a seeded choice of what happens next.
//!
//! Messages between two nodes keep their order, as links promise; everything else may interleave in any way, and does, by the
//! seed. Time passes only when nothing else can happen or when the seed says so.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::engine::EngineKind;
use crate::error::{Error, Outcome};
use crate::execution::Executions;
use crate::gateway::scouting::Scouting;
use crate::hash::{Digest, FastMap};
use crate::message::{ClientId, ClientRequest, Message, Operation, Page, Reply, Request, RequestId};
use crate::node::{AnyNode, Event, NodeConfiguration, Outbox, Status, node};
use crate::position::{NodeId, PartitionId, Position};
use crate::procedure::{Catalog, ProcedureId};
use crate::storage::Storage;

/// See the [module](self).
pub struct Cluster {
    nodes: Vec<Box<dyn AnyNode>>,
    /// Messages under way, by receiver and sender.
    links: Vec<Vec<VecDeque<Message>>>,
    requests: Vec<Vec<ClientRequest>>,
    replies: FastMap<RequestId, Vec<Outcome>>,
    /// Nodes that said that they have more to do.
    more: Vec<bool>,
    now: u64,
    random: u64,
    /// By client: the number of its next request, and that below which all are answered.
    sequences: FastMap<ClientId, u64>,
    answered: FastMap<ClientId, u64>,
}

impl Cluster {
    /// A cluster of the given nodes; `seed` decides the interleaving.
    pub fn new(nodes: Vec<Box<dyn AnyNode>>, seed: u64) -> Cluster {
        let count = nodes.len();
        let links = (0..count).map(|_| (0..count).map(|_| VecDeque::new()).collect()).collect();
        Cluster {
            nodes,
            links,
            requests: vec![Vec::new(); count],
            replies: FastMap::default(),
            more: vec![false; count],
            now: 0,
            random: seed,
            sequences: FastMap::default(),
            answered: FastMap::default(),
        }
    }

    /// A cluster of `partitions` with one engine; `load` fills each partition's storage.
    pub fn build(
        engine: EngineKind,
        partitions: u16,
        catalog: &Catalog,
        seed: u64,
        mut load: impl FnMut(PartitionId) -> Box<dyn Storage + Send>,
    ) -> Cluster {
        let nodes = (0..partitions).map(PartitionId).map(|me| {
            let configuration = NodeConfiguration::new(me, partitions);
            node(engine, &configuration, catalog.clone(), load(me), None)
        });
        Cluster::new(nodes.collect(), seed)
    }

    /// The next number of a fixed sequence (SplitMix64).
    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % below.max(1) as u64) as usize
    }

    /// Gives a node a call of a client; the client's requests are numbered from 0.
    pub fn call(
        &mut self,
        entry: PartitionId,
        client: ClientId,
        procedure: ProcedureId,
        arguments: impl Into<Bytes>,
    ) -> RequestId {
        self.submit(entry, client, Operation::Call { procedure, arguments: arguments.into() })
    }

    /// Gives a node an ordered request of a client.
    pub fn submit(&mut self, entry: PartitionId, client: ClientId, operation: Operation) -> RequestId {
        let sequence = self.sequences.entry(client).or_insert(0);
        let id = RequestId { client, sequence: *sequence };
        *sequence += 1;
        let acknowledged = self.acknowledged(client);
        self.send(entry, ClientRequest::Ordered(Request { id, acknowledged, operation }));
        id
    }

    /// The number below which the client has all answers.
    fn acknowledged(&mut self, client: ClientId) -> u64 {
        let mut below = self.answered.get(&client).copied().unwrap_or(0);
        while self.replies.contains_key(&RequestId { client, sequence: below }) {
            below += 1;
        }
        self.answered.insert(client, below);
        below
    }

    /// Gives a node any request.
    pub fn send(&mut self, entry: PartitionId, request: ClientRequest) {
        self.requests[entry.index()].push(request);
    }

    /// Lets something happen, by the seed; whether anything could.
    pub fn step(&mut self) -> bool {
        let count = self.nodes.len();
        let first = self.draw(count);
        for offset in 0..count {
            let node = (first + offset) % count;
            if self.step_node(node) {
                return true;
            }
        }
        let deadline = self.nodes.iter().filter_map(|node| node.deadline()).min();
        let Some(deadline) = deadline.filter(|_| self.nodes.iter().any(|node| !node.is_idle())) else {
            return false;
        };
        let time_passes = deadline > self.now;
        self.now = self.now.max(deadline);
        let acted = (0..count).filter(|node| self.run(*node, &mut Vec::new())).count();
        // Who still waits for a time that has come is stuck. What is done at a time need not be seen but by that.
        let still = self.nodes.iter().filter_map(|node| node.deadline()).min();
        time_passes || acted > 0 || still != Some(deadline)
    }

    /// Gives a node some of what is under way to it; whether there was anything.
    fn step_node(&mut self, node: usize) -> bool {
        let mut events = Vec::new();
        if !self.requests[node].is_empty() && self.draw(2) == 0 {
            let taken = 1 + self.draw(self.requests[node].len());
            events.push(Event::Requests(self.requests[node].drain(..taken).collect()));
        }
        for from in 0..self.nodes.len() {
            let waiting = self.links[node][from].len();
            let taken = self.draw(waiting + 1);
            events.extend(
                self.links[node][from]
                    .drain(..taken)
                    .map(|message| Event::Peer { from: NodeId::first(PartitionId(from as u16)), message }),
            );
        }
        let pending = self.more[node] || !self.requests[node].is_empty();
        if events.is_empty() && !pending && self.links[node].iter().all(VecDeque::is_empty) {
            return false;
        }
        self.now += self.draw(100) as u64;
        self.run(node, &mut events);
        true
    }

    /// Steps a node; whether it did anything or wants to go on.
    fn run(&mut self, node: usize, events: &mut Vec<Event>) -> bool {
        let mut outbox = Outbox::default();
        let stepped = self.nodes[node].step(self.now, events, &mut outbox);
        self.more[node] = stepped.expect("nodes of one build agree");
        let acted = self.more[node] || !outbox.sends.is_empty() || !outbox.replies.is_empty();
        for (to, message) in outbox.sends {
            self.links[to.partition.index()][node].push_back(message);
        }
        for Reply { request, outcome } in outbox.replies {
            self.replies.entry(request).or_default().push(outcome);
        }
        acted
    }

    /// Runs until nothing can happen any more.
    ///
    /// # Panics
    /// When that leaves a node with unfinished work: the cluster is stuck.
    pub fn run_until_quiet(&mut self) {
        while self.step() {}
        for (index, node) in self.nodes.iter().enumerate() {
            assert!(node.is_idle(), "p{index} is stuck:\n{}", node.describe());
        }
    }

    /// All answers to a request so far. One is right; several mean that it was sent several times.
    pub fn replies(&self, request: RequestId) -> &[Outcome] {
        self.replies.get(&request).map_or(&[], Vec::as_slice)
    }

    /// The one answer to a request.
    ///
    /// # Panics
    /// When there is none or more than one.
    pub fn reply(&self, request: RequestId) -> &Outcome {
        match self.replies(request) {
            [outcome] => outcome,
            other => panic!("{request:?} has {} answers", other.len()),
        }
    }

    /// The state digest of the whole cluster.
    pub fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        for node in &self.nodes {
            digest.merge(Digest(node.status(true).digest.unwrap_or_default()));
        }
        digest
    }

    /// The nodes' status.
    pub fn statuses(&self) -> Vec<Status> {
        self.nodes.iter().map(|node| node.status(false)).collect()
    }

    /// What the nodes have run.
    pub fn executions(&self) -> Vec<Executions> {
        self.nodes.iter().map(|node| node.executions()).collect()
    }

    /// What reconnaissance has cost the nodes.
    pub fn scouting(&self) -> Vec<Scouting> {
        self.nodes.iter().map(|node| node.scouting()).collect()
    }

    /// Each node's live transactions, for scripts.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for (index, node) in self.nodes.iter().enumerate() {
            node.describe().lines().for_each(|line| out.push_str(&format!("p{index}: {line}\n")));
        }
        out
    }

    /// Opens a snapshot, runs until it can be read, and returns its position.
    pub fn open_snapshot(&mut self, client: ClientId) -> Result<Position, Error> {
        let request = self.submit(client.home, client, Operation::OpenSnapshot);
        while self.replies(request).is_empty() && self.step() {}
        let position = self.reply(request).clone()?;
        postcard::from_bytes(&position).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// Runs a procedure that only reads at a partition as of a snapshot.
    pub fn read(
        &mut self,
        client: ClientId,
        (partition, at): (PartitionId, Position),
        procedure: ProcedureId,
        arguments: Bytes,
    ) -> Outcome {
        let sequence = self.sequences.entry(client).or_insert(0);
        let request = RequestId { client, sequence: *sequence };
        *sequence += 1;
        self.send(partition, ClientRequest::Read { request, at, procedure, arguments });
        while self.replies(request).is_empty() && self.step() {}
        self.reply(request).clone()
    }

    /// All rows of a range as of a snapshot, partition by partition.
    pub fn scan(
        &mut self,
        client: ClientId,
        at: Position,
        range: &crate::data::KeyRange,
    ) -> Result<Vec<(Bytes, Bytes)>, Error> {
        self.scan_directed(client, at, range, crate::data::Direction::Ascending)
    }

    /// The same, those of each partition in the order of a direction.
    pub fn scan_directed(
        &mut self,
        client: ClientId,
        at: Position,
        range: &crate::data::KeyRange,
        direction: crate::data::Direction,
    ) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let mut rows = Vec::new();
        for partition in (0..self.nodes.len()).map(|index| PartitionId(index as u16)) {
            let mut rest = range.clone();
            loop {
                let sequence = self.sequences.entry(client).or_insert(0);
                let request = RequestId { client, sequence: *sequence };
                *sequence += 1;
                let scan = ClientRequest::Scan { request, at, range: rest.clone(), direction, rows: 1000 };
                self.send(partition, scan);
                while self.replies(request).is_empty() && self.step() {}
                let bytes = self.reply(request).clone()?;
                let page: Page =
                    postcard::from_bytes(&bytes).map_err(|error| Error::Invalid(error.to_string()))?;
                rows.extend(page.rows.owned());
                match page.rows.last() {
                    Some((last, _)) if page.more => rest = rest.unseen(direction, last),
                    _ => break,
                }
            }
        }
        Ok(rows)
    }
}
