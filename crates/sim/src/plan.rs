//! A plan: everything that decides a run. Equal plans give equal runs, event by event.
//!
//! A plan is data, so that [`swarm`](crate::swarm) can draw it, a scenario can write it by hand, and [`shrink`](crate::shrink)
//! can make it smaller.

use std::fmt;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::failpoint::Failpoint;
use ordain_db::limits::Limits;
use ordain_db::node::CheckpointOptions;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_db::sequencer::EpochOptions;
use ordain_workload::random::Chance;
use ordain_workload::{Mode, Workload, append, bank, micro, tpcc, ycsb};

use crate::machine::clock::Clock;
use crate::machine::cost::CostTable;
use crate::machine::disk::DiskOptions;
use crate::network::NetworkOptions;
use crate::network::link::LinkOptions;
use crate::sql;
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds};

/// Most messages that a link keeps for a peer that is out of reach.
const LINK_MESSAGES_MAX: usize = 20_000;

/// Messages that may be on the way of a link over a network that loses nothing.
const LINK_WINDOW_PLAIN: u64 = 4_096;

/// How the nodes of a partition agree on its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replication {
    /// They do not: there is one, and what is durable there is in the order.
    None,
    /// By consensus. What is executed is durable at a majority.
    Sync,
    /// By consensus. The leader executes what is durable at itself.
    Async,
}

impl Replication {
    /// The name on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Replication::None => "none",
            Replication::Sync => "sync",
            Replication::Async => "async",
        }
    }
}

impl std::str::FromStr for Replication {
    type Err = String;

    fn from_str(name: &str) -> Result<Replication, String> {
        let all = [Replication::None, Replication::Sync, Replication::Async];
        let unknown = || format!("there is no replication {name:?}: choose one of none, sync, async");
        all.into_iter().find(|mode| mode.name() == name).ok_or_else(unknown)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of everything that is drawn during the run.
    pub seed: u64,
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// Number of partitions.
    pub partitions: u16,
    /// Number of replicas, each with a node for every partition.
    pub replicas: u16,
    /// How the nodes of a partition agree on its log, if they have disks.
    pub replication: Replication,
    /// Whether all replicas are one subgroup: each node tells all replicas of the other partitions what they need (CAL-107).
    pub subgroup: bool,
    /// Number of machines. Each replica has as many of its own: partition `p` is on the one of them with number `p` modulo
    /// their number.
    pub machines: u16,
    /// Cores of each machine: so many of its nodes can step at a time.
    pub cores: u16,
    /// What is called.
    pub workload: WorkloadPlan,
    /// Who calls.
    pub clients: ClientPlan,
    /// The limits of the nodes' queues.
    pub limits: Limits,
    /// Who decides when epochs close, and how long they are.
    pub epochs: EpochOptions,
    /// Most events that a node takes in one step.
    pub step_events: usize,
    /// Most requests of clients that wait at a node; more are dropped, and their clients send them again. (The server
    /// answers that it is busy.)
    pub inbox_requests: usize,
    /// The network.
    pub network: NetworkOptions,
    /// The disks; `None` for nodes that keep no log, and so would lose everything in a crash.
    pub disk: Option<DiskOptions>,
    /// When checkpoints are taken, where there are disks.
    pub checkpoints: CheckpointOptions,
    /// By machine; those that are missing are right.
    pub clocks: Vec<Clock>,
    /// What steps cost.
    pub costs: CostTable,
    /// What goes wrong.
    pub faults: Vec<PlannedFault>,
    /// A mistake in the code under test.
    pub bug: Option<Bug>,
    /// When the faults end at the latest: everything is healed then, or earlier when all calls were answered.
    pub heal_at: Nanoseconds,
    /// The time from healing within which all calls must be answered and all nodes come to rest.
    pub settle_within: Nanoseconds,
    /// Whether what happens is recorded for checkers.
    pub trace: bool,
}

impl Plan {
    /// Whether the network and the machines are such that every message arrives once and in order.
    pub fn is_bare(&self) -> bool {
        self.disk.is_none() && self.faults.is_empty() && self.network.is_plain()
    }

    /// Whether what was executed and answered may be lost with a leader.
    pub fn may_lose(&self) -> bool {
        self.replication == Replication::Async && self.replicas > 1
    }

    /// The links between nodes: their patience covers the network and a busy receiver.
    pub(crate) fn link(&self) -> LinkOptions {
        let options = LinkOptions::for_round_trip(self.network.topology.round_trip_max() + 2 * MILLISECOND);
        // Without logs nobody could say again what is dropped.
        let kept_max = if self.disk.is_some() { LINK_MESSAGES_MAX } else { usize::MAX };
        // Where nothing is lost nothing is sent again, so that a small window would only slow distant hosts down.
        let window = if self.network.is_plain() { LINK_WINDOW_PLAIN } else { options.window };
        LinkOptions { kept_max, window, ..options }
    }

    /// What is wrong with the plan.
    ///
    /// # Errors
    /// With what to do about it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |problem: &str| Err(Error::Invalid(problem.to_owned()));
        if self.replicas == 0 || self.machines == 0 || !self.machines.is_multiple_of(self.replicas) {
            return wrong(
                "each replica needs as many machines as every other: give a multiple of the replicas",
            );
        }
        if self.subgroup && self.may_lose() {
            return wrong(
                "replicas that replicate asynchronously cannot be a subgroup: choose one of the two",
            );
        }
        if self.replicas > 1 && (self.disk.is_none() || self.replication == Replication::None) {
            return wrong("several replicas need disks, and a way to agree: give both, or one replica");
        }
        Ok(())
    }

    /// Number of hosts that call: the clients, and those that make the workload's background calls, one at home at each partition.
    pub fn callers(&self) -> u16 {
        self.clients.count + if self.workload.has_background() { self.partitions } else { 0 }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        usize::from(self.partitions) * usize::from(self.replicas)
    }

    /// The node with a number: those of the first replica come first.
    pub fn node(&self, number: usize) -> NodeId {
        let partitions = usize::from(self.partitions);
        NodeId {
            partition: PartitionId((number % partitions) as u16),
            replica: ReplicaId((number / partitions) as u16),
        }
    }

    /// The number of a node.
    pub fn number(&self, node: NodeId) -> usize {
        node.replica.index() * usize::from(self.partitions) + node.partition.index()
    }

    /// How people call a node: `p0` where there is one replica, else `p0r0`.
    pub fn name(&self, node: NodeId) -> String {
        if self.replicas == 1 { node.partition.to_string() } else { node.to_string() }
    }

    /// Machines of each replica.
    pub fn machines_each(&self) -> u16 {
        (self.machines / self.replicas.max(1)).max(1)
    }

    /// The machine of a node.
    pub fn machine(&self, node: NodeId) -> u16 {
        let each = self.machines_each();
        node.replica.0 * each + node.partition.0 % each
    }

    /// Keeps the first replicas, the first machines of each, and the first clients, and the faults that name no others.
    pub(crate) fn keep_hosts(&mut self, replicas: u16, machines_each: u16, clients: u16) {
        let (before, each_before) = (self.machines, self.machines_each());
        self.replicas = replicas;
        self.machines = replicas * machines_each;
        self.clients.count = clients;
        let machines = self.machines;
        let rename = |host: u16| match host {
            host if host < before => {
                let (replica, place) = (host / each_before, host % each_before);
                (replica < replicas && place < machines_each).then_some(replica * machines_each + place)
            }
            // Clients come after the machines.
            host => Some(host - before + machines).filter(|host| *host < machines + clients),
        };
        self.faults.retain_mut(|planned| planned.fault.rename_hosts(&rename));
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, engine, partitions, replicas, machines, cores, clients, .. } = self;
        let (engine, replication) = (engine.label(), self.replication.name());
        let subgroup = if self.subgroup { ", one subgroup" } else { "" };
        writeln!(
            f,
            "seed {seed}: {engine}, {partitions} partitions and {replicas} replicas ({replication}{subgroup}) on {machines} \
             machines with {cores} cores"
        )?;
        if let Some(bug) = self.bug {
            writeln!(f, "with a mistake in the code: {}", bug.name())?;
        }
        writeln!(f, "{:?}", self.workload)?;
        writeln!(f, "{clients:?}")?;
        if self.limits != Limits::default() {
            writeln!(f, "{:?}", self.limits)?;
        }
        let (events, requests) = (self.step_events, self.inbox_requests);
        let EpochOptions { policy, microseconds } = self.epochs;
        writeln!(
            f,
            "{policy} epochs of {microseconds} us, {events} events in a step, {requests} requests in an inbox"
        )?;
        writeln!(f, "{:?}", self.network)?;
        match &self.disk {
            Some(disk) => writeln!(f, "{disk:?}, {:?}", self.checkpoints)?,
            None => writeln!(f, "no disks")?,
        }
        if !self.clocks.is_empty() {
            writeln!(f, "{:?}", self.clocks)?;
        }
        for (index, PlannedFault { at, lasts, fault }) in self.faults.iter().enumerate() {
            let (at, lasts) = (at / MICROSECOND, lasts / MICROSECOND);
            writeln!(f, "fault {index} at {at} us for {lasts} us: {fault:?}")?;
        }
        write!(f, "healed after {} ms at the latest", self.heal_at / MILLISECOND)
    }
}

/// The clients and what they do.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// Number of clients; client `c` is at home at partition `c` modulo the partitions.
    pub count: u16,
    /// Calls that one client has outstanding at a time.
    pub window: u64,
    /// Calls of all clients together; each client makes its share.
    pub transactions: u64,
    /// When they begin.
    pub starts_at: Nanoseconds,
    /// Longest pause of a client between the answer to a call and the next call.
    pub think: Nanoseconds,
    /// How long a client waits for an answer before it sends a request again; 0 for ever.
    pub timeout: Nanoseconds,
    /// How long a client waits before it sends a request again that was refused, where it waits for answers for ever.
    pub pause: Nanoseconds,
    /// Whether a client sends each request to any node, or to its home only.
    pub wanders: bool,
    /// Snapshots that are read during the run, besides the one at its end.
    pub snapshots: u32,
    /// Where they are.
    pub place: ClientPlace,
    /// How often a client wants its call acknowledged before it is computed, and asks for the outcome then. Needs an engine with
    /// an order.
    pub early: Option<Chance>,
}

/// Where clients are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientPlace {
    /// On hosts of their own, over the network.
    Network,
    /// In their home's process, on no core: calls and answers take no time.
    Beside,
    /// In their home's process, on its machine's cores: see [`CostTable::call`].
    OnCores,
}

/// A workload and its options.
#[derive(Clone, Debug)]
pub enum WorkloadPlan {
    /// See [`append`].
    Append(append::Options),
    /// See [`bank`].
    Bank(bank::Options),
    /// See [`micro`].
    Micro(micro::Options),
    /// See [`tpcc`].
    Tpcc(tpcc::Options),
    /// See [`sql`].
    Sql(sql::Options),
    /// See [`ycsb`].
    Ycsb(ycsb::Options),
    /// One that is given to the world beside the plan. Such a plan alone is not enough to run it again.
    Given {
        /// Its name.
        name: &'static str,
        /// Whether it makes [background](ordain_workload::Background) calls.
        has_background: bool,
    },
}

impl WorkloadPlan {
    /// Whether the workload makes [background](ordain_workload::Background) calls.
    fn has_background(&self) -> bool {
        match self {
            WorkloadPlan::Micro(options) => options.index.volatility > 0.0,
            WorkloadPlan::Given { has_background, .. } => *has_background,
            _ => false,
        }
    }

    /// Makes the workload.
    ///
    /// # Errors
    /// When an option is wrong.
    pub fn build(&self) -> Result<Box<dyn Workload>, Error> {
        Ok(match self {
            WorkloadPlan::Append(options) => Box::new(append::Append::new(options.clone())?),
            WorkloadPlan::Bank(options) => Box::new(bank::Bank::new(options.clone())?),
            WorkloadPlan::Micro(options) => Box::new(micro::Micro::new(options.clone())?),
            WorkloadPlan::Tpcc(tpcc::Options {
                mix: tpcc::Mix::Full { reads: Mode::Snapshot, .. }, ..
            }) => {
                let problem =
                    "simulated clients do not read snapshots: let them call everything in the order";
                return Err(Error::Invalid(problem.to_owned()));
            }
            WorkloadPlan::Tpcc(options) => Box::new(tpcc::Tpcc::new(options.clone())?),
            WorkloadPlan::Sql(options) => Box::new(sql::Sql::new(options.clone())?),
            WorkloadPlan::Ycsb(options) => Box::new(ycsb::Ycsb::new(options.clone())?),
            WorkloadPlan::Given { name, .. } => {
                let problem = format!("the plan has no options of the workload {name}: give the workload");
                return Err(Error::Invalid(problem));
            }
        })
    }
}

/// Which workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WorkloadKind {
    /// See [`append`].
    Append,
    /// See [`bank`].
    Bank,
    /// See [`micro`].
    Micro,
    /// See [`tpcc`].
    Tpcc,
    /// See [`sql`].
    Sql,
    /// See [`ycsb`].
    Ycsb,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [WorkloadKind; 6] = [
        WorkloadKind::Append,
        WorkloadKind::Bank,
        WorkloadKind::Micro,
        WorkloadKind::Tpcc,
        WorkloadKind::Sql,
        WorkloadKind::Ycsb,
    ];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::Append => "append",
            WorkloadKind::Bank => "bank",
            WorkloadKind::Micro => "micro",
            WorkloadKind::Tpcc => "tpcc",
            WorkloadKind::Sql => "sql",
            WorkloadKind::Ycsb => "ycsb",
        }
    }
}

impl std::str::FromStr for WorkloadKind {
    type Err = String;

    fn from_str(name: &str) -> Result<WorkloadKind, String> {
        WorkloadKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = WorkloadKind::ALL.map(WorkloadKind::name);
            format!("there is no workload {name:?}: choose one of {}", names.join(", "))
        })
    }
}

/// A fault, when it begins, and how long it lasts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedFault {
    /// When it begins.
    pub at: Nanoseconds,
    /// How long it lasts; meaningless for damage to a disk.
    pub lasts: Nanoseconds,
    /// What happens.
    pub fault: Fault,
}

/// Something that goes wrong. Machines and clients are hosts: machines first, then clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A machine stops between two events and loses all that its disk does not hold durably. At the end it starts again.
    Crash(u16),
    /// A machine does nothing, and then goes on as if nothing had been.
    Pause(u16),
    /// A machine's steps take so many times as long.
    Slow(u16, u64),
    /// Nothing comes from one host to another; the other way is open.
    Cut(u16, u16),
    /// Nothing passes between these hosts and all others.
    Partition(Vec<u16>),
    /// What is sent from one host to another waits until the end.
    Clog(u16, u16),
    /// A machine's disk takes no more.
    FullDisk(u16),
    /// Bits of a durable sector of a machine's disk change.
    Corrupt(u16),
    /// A durable sector of a machine's disk is overwritten with another one.
    Misdirect(u16),
    /// The checkpoints that a machine's nodes would go on from are damaged or, where there is no group, the marks that name them.
    DamagedCheckpoint(u16),
    /// A sync of a machine's disk reports a success and has not written one sector, which a later crash shows.
    LostWrite(u16),
    /// A machine crashes in the middle of an operation on its files, after so many more of them, or while it recovers; at the
    /// end at the latest, when it starts again.
    PowerCut(u16, u64),
    /// A machine's disk reports that a sync failed. Its nodes stop, and start again at the end.
    FailedSync(u16),
    /// A machine burns: it crashes and never comes back. Not if that would leave less than a majority of a partition's
    /// replicas.
    Loss(u16),
    /// A machine crashes and gets empty disks. At the end it starts again; its nodes do when the operator has removed their replica
    /// from the groups, and then join these anew. Not if less than a majority of the replicas would be left, or no other
    /// one that is whole.
    Wipe(u16),
    /// The nodes of a machine are told that they are about to stop: those that lead are to let others lead.
    HandOver(u16),
    /// A machine's clock goes ahead by so many microseconds at once.
    ClockJump(u16, u64),
    /// A machine's clock is set back by so many microseconds. Processes that run do not notice, as their clocks are monotonic;
    /// when the machine starts again, they do.
    ClockBack(u16, u64),
}

impl Fault {
    /// Whether the fault is one of machines with disks.
    pub(crate) fn needs_disk(&self) -> bool {
        matches!(
            self,
            Fault::Crash(_)
                | Fault::FullDisk(_)
                | Fault::Corrupt(_)
                | Fault::Misdirect(_)
                | Fault::DamagedCheckpoint(_)
                | Fault::LostWrite(_)
                | Fault::PowerCut(..)
                | Fault::FailedSync(_)
                | Fault::Loss(_)
                | Fault::Wipe(_)
        )
    }

    /// Gives hosts other numbers; `false` when a host of the fault has none any more.
    pub(crate) fn rename_hosts(&mut self, name: &impl Fn(u16) -> Option<u16>) -> bool {
        let rename = |host: &mut u16| name(*host).map(|renamed| *host = renamed).is_some();
        match self {
            Fault::Crash(machine)
            | Fault::Pause(machine)
            | Fault::Slow(machine, _)
            | Fault::FullDisk(machine)
            | Fault::Corrupt(machine)
            | Fault::Misdirect(machine)
            | Fault::DamagedCheckpoint(machine)
            | Fault::LostWrite(machine)
            | Fault::PowerCut(machine, _)
            | Fault::FailedSync(machine)
            | Fault::Loss(machine)
            | Fault::Wipe(machine)
            | Fault::HandOver(machine)
            | Fault::ClockJump(machine, _)
            | Fault::ClockBack(machine, _) => rename(machine),
            Fault::Cut(from, to) | Fault::Clog(from, to) => rename(from) && rename(to),
            Fault::Partition(side) => {
                side.retain_mut(rename);
                !side.is_empty()
            }
        }
    }
}

/// A mistake in the code under test, or in the machine that runs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// The database makes a mistake.
    Database(Failpoint),
    /// The machine reports what was written as durable before the sync is complete, so that clients are told too early.
    ReplyBeforeDurable,
    /// The files' names are never made durable.
    SkipDirectorySync,
    /// A replica that starts again has forgotten for whom it has voted, and in which terms.
    ForgetVote,
    /// A replica that has lost its data starts again as if nothing had been: as the voter that it was, with an empty log.
    FoundAgain,
    /// A node that finds its log damaged in the middle takes that for the end of what was written.
    CutDamagedLog,
    /// The mark of the checkpoint to start from is always that of the one before: a node that starts again replays its log from
    /// a state that is older than what the log begins with.
    StaleCheckpoint,
}

impl Bug {
    /// The mistakes of the machine.
    const OF_MACHINE: [Bug; 6] = [
        Bug::ReplyBeforeDurable,
        Bug::SkipDirectorySync,
        Bug::ForgetVote,
        Bug::FoundAgain,
        Bug::CutDamagedLog,
        Bug::StaleCheckpoint,
    ];

    /// All bugs.
    pub fn all() -> impl Iterator<Item = Bug> {
        Failpoint::ALL.into_iter().map(Bug::Database).chain(Bug::OF_MACHINE)
    }

    /// The name on command lines and in tables.
    pub fn name(self) -> String {
        let name = match self {
            Bug::Database(point) => format!("{point:?}"),
            _ => format!("{self:?}"),
        };
        let mut kebab = String::new();
        for (index, character) in name.chars().enumerate() {
            if character.is_ascii_uppercase() && index > 0 {
                kebab.push('-');
            }
            kebab.push(character.to_ascii_lowercase());
        }
        kebab
    }
}

impl std::str::FromStr for Bug {
    type Err = String;

    fn from_str(name: &str) -> Result<Bug, String> {
        Bug::all().find(|bug| bug.name() == name).ok_or_else(|| {
            let names: Vec<String> = Bug::all().map(Bug::name).collect();
            format!("there is no bug {name:?}: choose one of {}", names.join(", "))
        })
    }
}
