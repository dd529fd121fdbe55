//! A cluster with faults, in one thread: a seed decides what happens next.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ordain_db::data::Direction;
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::execution::Trace;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientId, ClientRequest, Message, Page, RequestId};
use ordain_db::node::{CheckpointOptions, Event, NodeConfiguration, Outbox, node};
use ordain_db::position::{NodeId, PartitionId, Position, ReplicaId};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::clients::Clients;
use crate::history::History;
use crate::interpreted::Database;
use crate::interpreted::operation::Program;
use crate::interpreted::random::any_program;
use crate::links::Links;
use crate::machine::{LogKind, LogOptions, Machine};
use crate::seeded::Seeded;

/// In microseconds: faults begin within this time.
const FAULTS_WITHIN: u64 = 2_000_000;

/// In microseconds: when everything has worked for this long and somebody still waits, the cluster is stuck.
const STUCK_AFTER: u64 = 30_000_000;

/// What happens in a world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) engine: EngineKind,
    pub(crate) partitions: u16,
    pub(crate) replicas: u16,
    pub(crate) log: LogKind,
    pub(crate) calls: usize,
    pub(crate) crashes: usize,
    pub(crate) cuts: usize,
    pub(crate) pauses: usize,
    /// A node is cut off from its group, and not from its replica.
    pub(crate) isolations: usize,
    /// Whether the limits of queues are so low that they are met all the time.
    pub(crate) narrow: bool,
    /// Whether each node hears the other partitions from all replicas.
    pub(crate) subgroup: bool,
    /// Whether nodes keep so little of what they have said that others come too late for it.
    pub(crate) forgetful: bool,
}

impl Plan {
    /// A lone node without faults.
    pub(crate) fn quiet(seed: u64) -> Plan {
        Plan {
            seed,
            engine: EngineKind::Calvin,
            partitions: 1,
            replicas: 1,
            log: LogKind::Solo,
            calls: 40,
            crashes: 0,
            cuts: 0,
            pauses: 0,
            isolations: 0,
            narrow: false,
            subgroup: false,
            forgetful: false,
        }
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        let usual = if self.forgetful { Limits { stream_bytes: 2_000, ..usual } } else { usual };
        let narrow = Limits {
            batch_calls: 2,
            sequencer_waiting: 4,
            epochs_in_flight: 2,
            transactions_live: 3,
            step_transactions: 2,
            reconnaissance: 2,
            ..usual
        };
        if self.narrow { narrow } else { usual }
    }

    fn log_options(&self, partition: PartitionId) -> LogOptions {
        let hand_out_bytes_max = if self.narrow { 0 } else { 1 << 20 };
        LogOptions { seed: self.seed ^ u64::from(partition.0), hand_out_bytes_max }
    }
}

/// What happens at a certain time.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Crash(NodeId),
    Start(NodeId),
    Cut(NodeId, NodeId),
    Connect(NodeId, NodeId),
    Isolate(NodeId),
    Pause(NodeId),
}

/// See the [module](self).
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) database: Database,
    pub(crate) machines: BTreeMap<NodeId, Machine>,
    pub(crate) history: History,
    pub(crate) clients: Clients,
    /// Snapshots that clients have closed, or tried to.
    pub(crate) closed: BTreeSet<Position>,
    links: Links,
    /// What is going to happen, by time and number.
    agenda: BTreeMap<(u64, u64), Happening>,
    now: u64,
    step: u64,
    random: Seeded,
}

/// Programs that follow from a seed.
fn programs(count: usize, seed: u64) -> Vec<Program> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let source = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), source);
    let strategy = any_program();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let mut random = Seeded::new(plan.seed);
        let partitions = (0..plan.partitions).map(PartitionId);
        let ids: Vec<NodeId> = partitions
            .flat_map(|partition| {
                (0..plan.replicas).map(move |replica| NodeId { partition, replica: ReplicaId(replica) })
            })
            .collect();
        let mut clients = Clients::new(programs(plan.calls, plan.seed), plan.partitions, &mut random);
        clients.may_change = plan.log == LogKind::Asynchronous;
        let mut world = World {
            database: Database::new(),
            machines: ids.iter().map(|id| (*id, Machine::new(*id))).collect(),
            history: History::new(plan.log == LogKind::Asynchronous, plan.forgetful),
            clients,
            closed: BTreeSet::new(),
            links: Links::default(),
            agenda: BTreeMap::new(),
            now: 1,
            step: 0,
            random,
            plan,
        };
        ids.iter().for_each(|id| world.start(*id));
        world.plan_faults(&ids);
        world
    }

    fn plan_faults(&mut self, ids: &[NodeId]) {
        let Plan { crashes, cuts, pauses, isolations, .. } = self.plan;
        for _ in 0..crashes {
            let node = self.random.one_of(ids);
            self.fault(Happening::Crash(node));
        }
        for _ in 0..pauses {
            let node = self.random.one_of(ids);
            self.fault(Happening::Pause(node));
        }
        for _ in 0..isolations {
            let node = self.random.one_of(ids);
            self.fault(Happening::Isolate(node));
        }
        for _ in 0..cuts {
            let (one, other) = (self.random.one_of(ids), self.random.one_of(ids));
            if one != other {
                self.fault(Happening::Cut(one, other));
            }
        }
    }

    fn fault(&mut self, happening: Happening) {
        let at = self.random.between(1_000, FAULTS_WITHIN);
        self.later(at, happening);
    }

    fn later(&mut self, at: u64, happening: Happening) {
        let number = self.random.word();
        self.agenda.insert((at, number), happening);
    }

    fn machine(&mut self, id: NodeId) -> &mut Machine {
        self.machines.get_mut(&id).expect("all nodes have machines")
    }

    /// Makes a node of what its disk has, and lets the others find it by and by.
    fn start(&mut self, id: NodeId) {
        let Plan { engine, partitions, replicas, log, .. } = self.plan;
        self.machine(id).life += 1;
        let configuration = NodeConfiguration {
            me: id,
            replicas,
            life: self.machines[&id].life,
            subgroup: if self.plan.subgroup { (0..replicas).map(ReplicaId).collect() } else { Vec::new() },
            trace: true,
            limits: self.plan.limits(),
            // The disk of a machine here has records and no files.
            checkpoints: CheckpointOptions { interval_microseconds: None, ..CheckpointOptions::default() },
            ..NodeConfiguration::new(id.partition, partitions)
        };
        let options = self.plan.log_options(id.partition);
        let log = self.machines[&id].disk.log(log, id.replica, replicas, options);
        let storage = self.database.load(&self.database.initial(), id.partition, partitions);
        let node = node(engine, &configuration, self.database.catalog.clone(), Box::new(storage), Some(log));
        self.history.begin(id);
        self.machine(id).start(node);
        let peers: Vec<NodeId> = self.machines.keys().copied().filter(|peer| *peer != id).collect();
        for peer in peers {
            let at = self.now + self.random.between(0, 20_000);
            self.later(at, Happening::Connect(id, peer));
        }
    }

    fn crash(&mut self, id: NodeId) {
        if self.machines[&id].node.is_none() {
            return;
        }
        self.lose(id);
        // Often the node is back at once, sometimes the others notice that it is away.
        let longest = if self.random.once_in(3) { 3_000_000 } else { 50_000 };
        let at = self.now + self.random.between(0, longest);
        self.later(at, Happening::Start(id));
    }

    /// A node ends, and nobody starts it again.
    pub(crate) fn lose(&mut self, id: NodeId) {
        let machine = self.machines.get_mut(&id).expect("all nodes have machines");
        machine.crash(&mut self.random);
        for peer in self.machines.keys().copied().filter(|peer| *peer != id) {
            self.links.disconnect(id, peer, &mut self.random);
        }
        self.links.clear(id);
    }

    /// Lets time pass, in microseconds.
    pub(crate) fn pass(&mut self, microseconds: u64) {
        let until = self.now + microseconds;
        while self.now < until {
            if !self.act() {
                self.now = self.next_time();
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        let is_up = |id: NodeId, world: &World| world.machines[&id].node.is_some();
        match happening {
            Happening::Crash(id) => self.crash(id),
            Happening::Start(id) => self.start(id),
            Happening::Cut(one, other) => {
                self.links.disconnect(one, other, &mut self.random);
                let longest = if self.random.once_in(3) { 2_000_000 } else { 50_000 };
                let at = self.now + self.random.between(0, longest);
                self.later(at, Happening::Connect(one, other));
            }
            Happening::Isolate(id) => {
                let at = self.now + self.random.between(500_000, 2_000_000);
                let group: Vec<NodeId> =
                    self.machines.keys().copied().filter(|other| other.partition == id.partition).collect();
                for other in group.into_iter().filter(|other| *other != id) {
                    self.links.disconnect(id, other, &mut self.random);
                    self.later(at, Happening::Connect(id, other));
                }
            }
            // A node that is down connects when it starts.
            Happening::Connect(one, other) if is_up(one, self) && is_up(other, self) => {
                self.links.connect(one, other);
            }
            Happening::Connect(..) => {}
            Happening::Pause(id) => {
                let until = self.now + self.random.between(1_000, 1_500_000);
                self.machine(id).paused_until = until;
            }
        }
    }

    /// Runs until all is answered and at rest.
    ///
    /// # Panics
    /// When that does not come to be.
    pub(crate) fn run(mut self) -> World {
        let mut whole_since = 0;
        loop {
            let acted = self.act();
            if !self.agenda.is_empty() {
                whole_since = self.now;
            }
            if (!acted || self.step.is_multiple_of(16)) && self.is_at_rest() {
                return self;
            }
            if !acted {
                self.now = self.next_time();
            }
            assert!(self.now < whole_since + STUCK_AFTER, "the cluster is stuck:\n{}", self.describe());
        }
    }

    fn is_at_rest(&self) -> bool {
        let nodes = || self.machines.values().filter_map(|machine| machine.node.as_ref());
        let delivered = || nodes().map(|node| node.status(false).delivered);
        self.clients.are_done()
            && self.agenda.is_empty()
            && nodes().all(|node| node.is_idle())
            // One that has just begun again has yet to look at its log.
            && !self.machines.values().any(|machine| machine.is_due(self.now))
            && delivered().min() == delivered().max()
    }

    fn describe(&self) -> String {
        let mut out = format!("at {} us, step {}\n", self.now, self.step);
        for (id, machine) in &self.machines {
            let Some(node) = &machine.node else { continue };
            let status = node.status(false);
            out.push_str(&format!("{id}: idle {}, {status:?}\n{}", node.is_idle(), node.describe()));
        }
        for asked in self.clients.asked.values().filter(|asked| asked.answered.is_none()) {
            out.push_str(&format!("{:?} waits for its answer\n", asked.request.id));
        }
        out
    }

    /// Lets something happen; whether anything could without time passing.
    fn act(&mut self) -> bool {
        self.step += 1;
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let happening = entry.remove();
            self.happen(happening);
        }
        self.ask();
        self.close_some_snapshot();
        let ids: Vec<NodeId> = self.machines.keys().copied().collect();
        let first = self.random.below(ids.len());
        for offset in 0..ids.len() {
            let id = ids[(first + offset) % ids.len()];
            let machine = &self.machines[&id];
            let is_up = machine.node.is_some() && machine.paused_until <= self.now;
            if is_up && (machine.is_due(self.now) || self.links.any_to(id)) {
                self.run_node(id);
                self.now += self.random.between(0, 60);
                return true;
            }
        }
        false
    }

    /// The next time at which something happens by itself.
    fn next_time(&self) -> u64 {
        let machines = self.machines.values().filter(|machine| machine.node.is_some());
        let machines = machines.flat_map(|machine| {
            let resumes = machine.paused_until;
            let deadline = machine.deadline().map(|deadline| deadline.max(resumes));
            [deadline, Some(resumes)].into_iter().flatten()
        });
        let agenda = self.agenda.keys().map(|(at, _)| *at);
        let times = machines.chain(agenda).chain(self.clients.deadline());
        times.filter(|at| *at > self.now).min().unwrap_or(self.now + 1_000)
    }

    /// Clients send what is due to any node. Some of it meets a node that is down.
    fn ask(&mut self) {
        let requests = self.clients.send(self.now, self.step, &mut self.random);
        let ids: Vec<NodeId> = self.machines.keys().copied().collect();
        for request in requests {
            let entry = self.random.one_of(&ids);
            let machine = self.machine(entry);
            if machine.node.is_some() {
                machine.requests.push(ClientRequest::Ordered(request));
            }
        }
    }

    /// Now and then a client that has opened a snapshot has no more use for it. It does not learn whether that was heard.
    fn close_some_snapshot(&mut self) {
        if self.clients.are_done() || !self.random.once_in(500) {
            return;
        }
        let snapshots = self.clients.snapshots();
        if !snapshots.is_empty() {
            let at = self.random.one_of(&snapshots);
            self.closed.insert(at);
            self.close_snapshot(at);
        }
    }

    fn close_snapshot(&mut self, at: Position) {
        let ids: Vec<NodeId> = self.machines.keys().copied().collect();
        let entry = self.random.one_of(&ids);
        let machine = self.machine(entry);
        if machine.node.is_some() {
            machine.requests.push(ClientRequest::CloseSnapshot(at));
        }
    }

    /// Closes all snapshots, and comes to rest again.
    ///
    /// # Panics
    /// When some node can still read one.
    pub(crate) fn close_snapshots(mut self) -> World {
        let ids: Vec<NodeId> = self.machines.keys().copied().collect();
        let mut open = self.clients.snapshots();
        open.retain(|at| ids.iter().any(|id| self.rows_at(*id, *at).is_ok()));
        open.iter().for_each(|at| self.close_snapshot(*at));
        for _ in 0..300 {
            if !self.act() {
                self.now = self.next_time();
            }
        }
        self = self.run();
        open.retain(|at| ids.iter().any(|id| self.rows_at(*id, *at).is_ok()));
        assert!(open.is_empty(), "{open:?} cannot be closed:\n{}", self.describe());
        self
    }

    /// All rows of a node as of a snapshot. Each partition has copies of the replicated ones.
    pub(crate) fn rows_at(&mut self, id: NodeId, at: Position) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let tables = self.database.tables.clone();
        let mut rows = Vec::new();
        for table in [&tables.account, &tables.word, &tables.line, &tables.item] {
            let request = RequestId { client: ClientId { home: PartitionId(0), number: 99 }, sequence: 0 };
            let (range, direction) = (table.all(), Direction::Ascending);
            let scan = ClientRequest::Scan { request, at, range, direction, rows: 10_000 };
            let (mut events, mut outbox) = (vec![Event::Requests(vec![scan])], Outbox::default());
            let now = self.now;
            let node = self.machine(id).node.as_mut().expect("it is up");
            node.step(now, &mut events, &mut outbox).unwrap();
            let reply = outbox.replies.pop().expect("a page is given at once");
            let page: Page = postcard::from_bytes(&reply.outcome?).unwrap();
            assert!(!page.more);
            rows.extend(page.rows.owned());
        }
        Ok(rows)
    }

    fn run_node(&mut self, id: NodeId) {
        let (mut events, mut outbox) = (Vec::new(), Outbox::default());
        let machine = self.machines.get_mut(&id).expect("all nodes have machines");
        machine.take(self.now, &mut self.random, &mut events);
        self.links.take(id, &mut self.random, &mut events);
        machine.stepped_at = self.now;
        let Some(node) = &mut machine.node else { return };
        let stops = |fatal| -> bool { panic!("{id} stops: {fatal}") };
        machine.more = match node.step(self.now, &mut events, &mut outbox) {
            Ok(more) => more,
            Err(fatal) => {
                self.history.goes_back(id, &fatal);
                return self.crash(id);
            }
        };
        if !machine.more && self.random.once_in(4) {
            // Who waits for a driver that believes there is nothing to do waits for ever.
            let mut after = Outbox::default();
            let more = node.step(self.now, &mut events, &mut after).unwrap_or_else(stops);
            // A leader is asked once more at each heartbeat, for it may not have heard.
            after.sends.retain(|(_, message)| !matches!(message, Message::Follow(_)));
            let quiet = (after.sends.is_empty(), after.replies.is_empty(), after.disk.is_empty());
            assert_eq!(
                (quiet, more),
                ((true, true, true), false),
                "{id} had more to do than it said: {after:?}"
            );
            assert_eq!(after.trace, Trace::default(), "{id} had more to do than it said");
        }
        machine.write(outbox.disk, self.now, &mut self.random);
        self.history.note(id, outbox.trace);
        for (to, message) in outbox.sends {
            self.links.send(id, to, message);
        }
        let lossy = self.plan.crashes + self.plan.cuts > 0;
        for reply in outbox.replies {
            // The client's connection may fail as well.
            if !(lossy && self.now < FAULTS_WITHIN && self.random.once_in(30)) {
                self.clients.hear(reply, self.now, self.step, &mut self.random);
            }
        }
    }
}
