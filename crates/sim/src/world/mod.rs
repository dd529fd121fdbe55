//! The world: machines with nodes, the network between them, and clients, moved by one event heap.
//!
//! Every step of a node is the server's own [`Node::step`](ordain_db::node::Node::step). A step takes effect in the node at
//! once; what it wants sent and written leaves it when the step's CPU time is over. What must wait for the disk, the node
//! itself holds back. Nothing here has a clock, a thread or a source of randomness but the plan's seed.

mod auditor;
mod by_hand;
mod clients;
mod faults;
mod lives;
pub mod log;
mod nodes;
mod operator;
mod process;
mod recorder;
mod report;
mod sessions;
pub mod stages;
mod stopwatch;

use std::collections::VecDeque;

use ordain_db::engine::two_phase::TwoPhaseCounters;
use ordain_db::error::Error;
use ordain_db::hash::key_hash;
use ordain_db::message::{ClientRequest, Message, Operation, Reply, RequestId};
use ordain_db::position::NodeId;
use ordain_workload::Workload;
use ordain_workload::random::Random;

use self::auditor::Auditor;
use self::clients::{Client, Sent, Wishes};
use self::log::Log;
use self::operator::Operator;
use self::process::Process;
use self::recorder::Recorder;
use self::stages::StageTimes;
use self::stopwatch::Stopwatch;
use crate::heap::Heap;
use crate::machine::account::Spent;
use crate::machine::clock::Clock;
use crate::network::link::{Frame, Packet};
use crate::network::{Host, Network, NetworkCounters};
use crate::plan::{ClientPlace, Plan};
use crate::time::{MILLISECOND, Nanoseconds};

/// How long the auditor waits for an answer, and rests between two snapshots.
const AUDITOR_PATIENCE: Nanoseconds = 300 * MILLISECOND;

/// What is planned.
#[derive(Debug)]
enum Happening {
    /// Something comes to a host. The generation tells whether the way was cut meanwhile.
    Arrival { from: Host, to: Host, generation: u32, parcel: Parcel },
    /// A node's step is over.
    Done { node: usize, life: u32, held: Box<process::Held> },
    /// A disk's sync is over.
    Synced { node: usize, life: u32 },
    /// A node that ended by itself is made again.
    StartsAgain { node: usize, life: u32 },
    /// A node wants to be stepped although nothing has come.
    Deadline { node: usize, life: u32 },
    /// A link's patience is over.
    LinkTimer { node: usize, life: u32 },
    /// A client makes its next call.
    ClientWakes(usize),
    /// A client's calls are made, and leave it.
    ClientSends { client: usize, sends: Vec<Sent> },
    /// A client has waited long enough for an answer.
    ClientRetries(usize, u64),
    /// The auditor looks whether it has to do something.
    AuditorWakes,
    /// The operator goes on, if it is still at this point.
    OperatorWakes(u64),
    /// A fault of the plan begins.
    FaultBegins(usize),
    /// A fault of the plan ends.
    FaultEnds(usize),
}

/// What travels over the network.
#[derive(Clone, Debug)]
enum Parcel {
    /// Between two nodes.
    Frame { from: NodeId, to: NodeId, frame: Frame<Message> },
    /// From a client to a node.
    Requests(NodeId, Vec<ClientRequest>),
    /// From a node to a client.
    Replies(Vec<Reply>),
}

impl Parcel {
    /// A number for the kind of parcel, and one for what is in it, for the digest of a run.
    fn content(&self) -> (u64, u64) {
        match self {
            Parcel::Frame { frame: Frame { from, packet, .. }, .. } => match packet {
                Packet::Data { number, message } => (1, number << 24 | message.payload_bytes() as u64),
                Packet::Acknowledge { next } => (2, *next),
                Packet::Hello => (15, *from),
            },
            Parcel::Requests(_, requests) => {
                (3, requests.first().and_then(ClientRequest::id).map_or(0, |id| id.sequence))
            }
            Parcel::Replies(replies) => (4, replies.first().map_or(0, |reply| reply.request.sequence)),
        }
    }
}

/// Who waits for a core.
enum Turn {
    /// A node steps.
    Node(usize),
    /// A client makes calls.
    Client(usize, Vec<Sent>),
}

/// A simulated machine.
struct Machine {
    up: bool,
    paused: bool,
    /// A step takes so many times as long.
    slowness: u64,
    stepping: u16,
    /// Who waits for a core, in order.
    queue: VecDeque<Turn>,
    /// The fault that keeps it down.
    down_by: Option<usize>,
    /// Its disk was damaged on purpose: its nodes may refuse to start.
    damaged: bool,
    /// Some write to its disk was lost, or will be.
    loses_write: bool,
    /// What happened while it was paused.
    deferred: Vec<Happening>,
    clock: Clock,
    /// By how much its clock was set back since it started last, in microseconds.
    set_back: u64,
}

/// What [`World::measure`] measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The latencies of all calls that were answered, ascending; those of background calls are not among them.
    pub latencies: Vec<Nanoseconds>,
    /// How long early calls took until they were acknowledged, ascending.
    pub acknowledgements: Vec<Nanoseconds>,
    /// The same calls with their latencies, if they were wanted, in the order of the answers.
    pub calls: Vec<(Operation, Nanoseconds)>,
    /// Background calls that were answered.
    pub background: u64,
    /// The time that all nodes together spent on cores.
    pub busy: Nanoseconds,
    /// The same by what it was for (DET-60).
    pub spent: Spent,
    /// Where the time of calls went that were made and answered meanwhile, if it was wanted.
    pub stages: StageTimes,
}

/// Counts of what happened in a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Happened {
    /// Events of the heap.
    pub events: u64,
    /// Steps of nodes.
    pub steps: u64,
    /// Crashes.
    pub crashes: u64,
    /// Of these, those in the middle of a recovery.
    pub recoveries_cut: u64,
    /// Nodes that stopped since their disk failed, or that refused it.
    pub failures: u64,
    /// Nodes that had executed what was lost with a leader, and started again.
    pub went_back: u64,
    /// Machines that were wiped.
    pub wipes: u64,
    /// Replicas that had lost data and vote again.
    pub rejoined: u64,
    /// Leaders that were asked to hand over.
    pub hand_overs: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// When faults ended.
    pub healed_at: Nanoseconds,
    /// Packets sent and lost.
    pub packets: u64,
    /// See [`packets`](Happened::packets).
    pub packets_lost: u64,
    /// What the engine `two-phase` counted at all nodes in all their lives.
    pub two_phase: TwoPhaseCounters,
}

/// See the [module](self).
pub struct World<'a> {
    plan: &'a Plan,
    workload: &'a dyn Workload,
    heap: Heap<Happening>,
    network: Network,
    machines: Vec<Machine>,
    processes: Vec<Process>,
    clients: Vec<Client>,
    auditor: Auditor,
    operator: Operator,
    snapshots_left: u32,
    recorder: Recorder,
    random: Random,
    digest: u64,
    happened: Happened,
    /// Faults that have begun and not ended.
    active: Vec<usize>,
    /// Whether faults are over.
    healed: bool,
    /// Whether nodes need no links to hear each other exactly once and in order.
    bare: bool,
    /// What was noticed during the run that no history shows.
    problems: Vec<String>,
    log: Log,
    stopwatch: Option<Stopwatch>,
}

impl<'a> World<'a> {
    /// A world at time 0, with everything planned that the plan says.
    ///
    /// # Errors
    /// When the workload refuses its options, or the plan contradicts itself.
    pub fn new(plan: &'a Plan, workload: &'a dyn Workload) -> Result<World<'a>, Error> {
        plan.check()?;
        let hosts = plan.machines + plan.callers() + 1;
        let processes: Result<Vec<Process>, Error> =
            (0..plan.nodes()).map(|number| Process::new(plan, workload, plan.node(number))).collect();
        let machines = (0..plan.machines).map(|machine| Machine {
            up: true,
            paused: false,
            slowness: 1,
            stepping: 0,
            queue: VecDeque::new(),
            down_by: None,
            damaged: false,
            loses_write: false,
            deferred: Vec::new(),
            clock: plan.clocks.get(usize::from(machine)).copied().unwrap_or_default(),
            set_back: 0,
        });
        let random = Random::new(plan.seed, "network", &[]);
        let mut world = World {
            plan,
            workload,
            heap: Heap::new(),
            network: Network::new(usize::from(hosts), plan.network.clone(), random)?,
            machines: machines.collect(),
            processes: processes?,
            clients: Client::all(plan, workload)?,
            auditor: Auditor::new(&workload.catalog().schema, plan.partitions, plan.replicas),
            operator: Operator::new(plan),
            snapshots_left: plan.clients.snapshots,
            recorder: Recorder::new(plan),
            random: Random::new(plan.seed, "world", &[]),
            digest: 0,
            happened: Happened::default(),
            active: Vec::new(),
            healed: false,
            bare: plan.is_bare(),
            problems: Vec::new(),
            log: Log::default(),
            stopwatch: None,
        };
        world.plan_beginning();
        Ok(world)
    }

    fn plan_beginning(&mut self) {
        if self.plan.disk.is_some() {
            // Nodes with logs have something to do although nobody asks.
            for node in 0..self.processes.len() {
                self.heap.plan(0, Happening::Deadline { node, life: 0 });
            }
        }
        for client in 0..self.clients.len() {
            let think = self.clients[client].think();
            let at = self.plan.clients.starts_at + self.random.below(think + 1);
            self.heap.plan(at, Happening::ClientWakes(client));
        }
        for (index, planned) in self.plan.faults.iter().enumerate() {
            self.heap.plan(planned.at, Happening::FaultBegins(index));
        }
        self.heap.plan(AUDITOR_PATIENCE, Happening::AuditorWakes);
    }

    /// The virtual time.
    pub fn now(&self) -> Nanoseconds {
        self.heap.now()
    }

    /// What happened so far.
    pub fn happened(&self) -> Happened {
        let NetworkCounters { sent: packets, lost: packets_lost, .. } = self.network.counters();
        let answered = self.clients.iter().map(|client| client.answered).sum();
        let mut two_phase = TwoPhaseCounters::default();
        self.processes.iter().for_each(|process| two_phase += process.two_phase());
        Happened { packets, packets_lost, answered, two_phase, ..self.happened }
    }

    /// A digest of every event so far: equal plans have equal digests at equal times.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Lets everything happen that is planned until a time.
    pub fn run_until(&mut self, until: Nanoseconds) {
        while let Some(happening) = self.heap.next_until(until) {
            self.happen(happening);
        }
    }

    /// Lets the next event happen, if there is one until a time.
    pub fn run_one(&mut self, until: Nanoseconds) -> bool {
        let next = self.heap.next_until(until);
        next.map(|happening| self.happen(happening)).is_some()
    }

    /// Lets things happen until `done` or a time; whether it was `done`.
    fn run_while(&mut self, until: Nanoseconds, done: impl Fn(&World<'_>) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            // Looking is not free; the end need not be noticed at once.
            for _ in 0..64 {
                // The clock stays at the last event when there is no other: waiting longer would change nothing.
                if self.heap.next_at().is_none_or(|at| at > until) {
                    return done(self);
                }
                let Some(happening) = self.heap.next_until(until) else { return done(self) };
                self.happen(happening);
            }
        }
    }

    /// Both phases of a run: safety under faults, then healing and liveness; then a last snapshot.
    ///
    /// Returns why the run did not end well, if it did not.
    ///
    /// # Panics
    /// When an assertion in the code under test fails.
    pub fn run(&mut self) -> Option<String> {
        self.run_while(self.plan.heal_at, |world| world.clients_are_done());
        self.settle()
    }

    fn clients_are_done(&self) -> bool {
        self.clients.iter().all(Client::is_done) && self.snapshots_left == 0 && self.auditor.is_resting()
    }

    fn is_at_rest(&self) -> bool {
        self.clients_are_done()
            && self.operator.is_done()
            && self.processes.iter().all(|process| process.is_lost() || process.is_at_rest())
            && self.replicas_are_level()
    }

    /// Whether all nodes of each partition have come equally far.
    fn replicas_are_level(&self) -> bool {
        // Where what was executed may be lost, those who have executed it come equally far before they notice.
        let may_lose = self.plan.may_lose();
        let come = |process: &Process| {
            let status = process.node.as_ref()?.status(may_lose);
            Some((status.delivered, status.digest))
        };
        let partitions = usize::from(self.plan.partitions);
        self.plan.replicas == 1
            || (0..partitions).all(|first| {
                let mut nodes = self.processes[first..].iter().step_by(partitions).filter_map(come);
                let level = nodes.next();
                nodes.all(|other| Some(other) == level)
            })
    }

    /// The nodes that are there.
    fn alive(&self) -> Vec<NodeId> {
        self.processes.iter().filter(|process| process.node.is_some()).map(|process| process.me).collect()
    }

    /// What everybody waits for, for people.
    fn stuck(&self) -> String {
        let mut text = format!("not at rest {} ms after healing", self.plan.settle_within / MILLISECOND);
        let unanswered: Vec<RequestId> = self.clients.iter().flat_map(Client::unanswered).collect();
        if let Some(first) = unanswered.first() {
            text.push_str(&format!(
                "; {} requests are unanswered, the first is request {} of client {}",
                unanswered.len(),
                first.sequence,
                first.client.number
            ));
        }
        if !self.auditor.is_resting() {
            text.push_str("; a snapshot is being read");
        }
        text.push_str(&self.operator.describe());
        for process in &self.processes {
            text.push_str(&process.describe());
        }
        text
    }

    fn happen(&mut self, happening: Happening) {
        if let Some(machine) = self.addressee(&happening)
            && self.machines[machine].paused
        {
            self.machines[machine].deferred.push(happening);
            return;
        }
        self.happened.events += 1;
        self.note(&happening);
        match happening {
            Happening::Arrival { from, to, generation, parcel } => {
                if self.network.arrives(from, to, generation) {
                    self.arrive(to, parcel);
                }
            }
            Happening::Done { node, life, held } => self.done(node, life, *held),
            Happening::Synced { node, life } => self.synced(node, life),
            Happening::Deadline { node, life } => self.deadline(node, life),
            Happening::StartsAgain { node, life } => self.start_again(node, life),
            Happening::LinkTimer { node, life } => self.link_timer(node, life),
            Happening::ClientWakes(client) => {
                self.end_background(client);
                let mut invoked = Vec::new();
                let mut wishes = self.clients[client].wake(self.heap.now(), self.plan, &mut invoked);
                if self.plan.trace {
                    self.recorder.requests.extend(invoked);
                    self.recorder.observed.extend(wishes.observed.take());
                }
                self.grant(client, wishes);
            }
            Happening::ClientSends { client, sends } => self.calls_made(client, sends),
            Happening::ClientRetries(client, sequence) => {
                let wishes = self.clients[client].retry(self.heap.now(), sequence, self.plan);
                self.grant(client, wishes);
            }
            Happening::AuditorWakes => self.audit(),
            Happening::OperatorWakes(turn) => self.operate(turn),
            Happening::FaultBegins(index) => self.begin_fault(index),
            Happening::FaultEnds(index) => self.end_fault(index),
        }
    }

    /// Lets a client that makes background calls make no more if all others have made theirs.
    fn end_background(&mut self, client: usize) {
        let mut others = self.clients.iter().filter(|client| !client.is_background);
        if self.clients[client].is_background && others.all(Client::is_done) {
            self.clients[client].make_no_more();
        }
    }

    /// The machine that notices an event.
    fn addressee(&self, happening: &Happening) -> Option<usize> {
        match happening {
            Happening::Arrival { to, .. } => Some(to.index()).filter(|host| *host < self.machines.len()),
            Happening::Done { node, .. }
            | Happening::Synced { node, .. }
            | Happening::Deadline { node, .. }
            | Happening::StartsAgain { node, .. }
            | Happening::LinkTimer { node, .. } => Some(self.machine_of(*node)),
            _ => None,
        }
    }

    /// Adds an event to the digest.
    fn note(&mut self, happening: &Happening) {
        let (kind, first, second): (u64, u64, u64) = match happening {
            Happening::Arrival { from, to, parcel, .. } => {
                let (kind, content) = parcel.content();
                (kind, u64::from(to.0) << 16 | u64::from(from.0), content)
            }
            Happening::Done { node, held, .. } => (5, *node as u64, held.content),
            Happening::Synced { node, life } => (6, *node as u64, u64::from(*life)),
            Happening::Deadline { node, life } => (7, *node as u64, u64::from(*life)),
            Happening::LinkTimer { node, life } => (8, *node as u64, u64::from(*life)),
            Happening::StartsAgain { node, life } => (16, *node as u64, u64::from(*life)),
            Happening::ClientWakes(client) => (9, *client as u64, 0),
            Happening::ClientSends { client, sends } => (14, *client as u64, sends.len() as u64),
            Happening::ClientRetries(client, sequence) => (10, *client as u64, *sequence),
            Happening::AuditorWakes => (11, 0, 0),
            Happening::OperatorWakes(turn) => (17, *turn, 0),
            Happening::FaultBegins(index) => (12, *index as u64, 0),
            Happening::FaultEnds(index) => (13, *index as u64, 0),
        };
        let mut bytes = [0; 40];
        for (slot, word) in bytes.chunks_exact_mut(8).zip([self.digest, self.heap.now(), kind, first, second])
        {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        self.digest = key_hash(&bytes);
    }

    fn arrive(&mut self, host: Host, parcel: Parcel) {
        match parcel {
            Parcel::Frame { from, to, frame } => self.frame(from, to, frame),
            Parcel::Requests(to, requests) => self.requests(to, requests),
            Parcel::Replies(replies) => self.replies(host, replies),
        }
    }

    fn replies(&mut self, host: Host, replies: Vec<Reply>) {
        let now = self.heap.now();
        let client = usize::from(host.0) - self.machines.len();
        let mut all = Wishes::default();
        for reply in replies {
            if self.plan.trace {
                self.recorder.replied(now, &reply);
            }
            self.log_answered(&reply);
            if client == self.clients.len() {
                if Operator::is_operator(reply.request.client) {
                    self.operated(&reply);
                } else {
                    self.audited(&reply);
                }
                continue;
            }
            let wishes = self.clients[client].reply(now, reply.request.sequence, &reply.outcome, self.plan);
            if self.plan.trace {
                self.recorder.requests.extend(wishes.invoked);
                self.recorder.pages.extend(wishes.page);
                self.recorder.observed.extend(wishes.observed);
            }
            all.sends.extend(wishes.sends);
            all.retries.extend(wishes.retries);
            if let Some(watch) = &mut self.stopwatch {
                watch.acknowledgements.extend(wishes.acknowledged);
                if let Some((latency, operation)) = wishes.ended {
                    watch.note(now, &reply, latency, operation);
                }
            }
            all.wake_at = all.wake_at.or(wishes.wake_at);
        }
        if client < self.clients.len() {
            self.grant(client, all);
        }
    }

    /// Does what a client wants.
    fn grant(&mut self, client: usize, wishes: Wishes) {
        match self.plan.clients.place {
            ClientPlace::OnCores if !wishes.sends.is_empty() => self.make_calls(client, wishes.sends),
            _ => self.send_all(client, wishes.sends),
        }
        for (at, sequence) in wishes.retries {
            self.heap.plan(at, Happening::ClientRetries(client, sequence));
        }
        if let Some(at) = wishes.wake_at {
            self.heap.plan(at, Happening::ClientWakes(client));
        }
    }

    /// Sends requests, those to one node together.
    fn send_all(&mut self, client: usize, sends: Vec<Sent>) {
        let mut batches: Vec<(NodeId, Vec<ClientRequest>)> = Vec::new();
        for (to, request) in sends {
            if let Some(id) = request.id().filter(|_| self.plan.trace) {
                self.recorder.sent(id);
            }
            match batches.iter_mut().find(|(other, _)| *other == to) {
                Some((_, batch)) => batch.push(request),
                None => batches.push((to, vec![request])),
            }
        }
        for (to, requests) in batches {
            self.send_requests(client, to, requests);
        }
    }

    fn send_requests(&mut self, client: usize, to: NodeId, requests: Vec<ClientRequest>) {
        let bytes = requests.iter().map(ClientRequest::payload_bytes).sum();
        let host = Host((self.machines.len() + client) as u16);
        self.ship(host, self.host_of(to), bytes, Parcel::Requests(to, requests));
    }

    /// Gives a parcel to the network.
    fn ship(&mut self, from: Host, to: Host, bytes: usize, parcel: Parcel) {
        let beside = self.plan.clients.place != ClientPlace::Network;
        if beside && !matches!(parcel, Parcel::Frame { .. }) {
            let now = self.heap.now();
            return self.heap.plan(now, Happening::Arrival { from, to, generation: 0, parcel });
        }
        let arrivals = self.network.send(self.heap.now(), from, to, bytes as u64);
        let generation = arrivals.generation();
        self.log_sent(from, &parcel, arrivals.times().len());
        let Some((last, others)) = arrivals.times().split_last() else { return };
        for at in others {
            let parcel = parcel.clone();
            self.heap.plan(*at, Happening::Arrival { from, to, generation, parcel });
        }
        self.heap.plan(*last, Happening::Arrival { from, to, generation, parcel });
    }
}
