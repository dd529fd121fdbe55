//! A simulated process: one node with its inbox, its disk, and its links to the other nodes.

use std::cell::Cell;
use std::collections::VecDeque;

use ordain_consensus::LogRecord;
use ordain_consensus::files::Mistakes;
use ordain_consensus::log::{FOUNDING_TERM, HandOut};
use ordain_consensus::raft::RaftOptions;
use ordain_db::disk::{self as database, Found, Ingredients, NodeDisk, Recovery, RecoveryError, recover};
use ordain_db::engine::two_phase::TwoPhaseCounters;
use ordain_db::error::{Error, Fatal};
use ordain_db::execution::Executions;
use ordain_db::failpoint::{Failpoint, Failpoints, NoFailpoints};
use ordain_db::hash::key_hash;
use ordain_db::message::{ClientRequest, Message, Reply};
use ordain_db::node::{AnyNode, DiskWrite, Event, NodeConfiguration, Outbox, node_with};
use ordain_db::position::{Epoch, NodeId, Position, ReplicaId};
use ordain_db::procedure::Catalog;
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::{Part, Workload};

use crate::machine::cost::StepWork;
use crate::machine::disk::{Disk, SharedFiles, Syncing};
use crate::network::link::{Link, LinkOptions};
use crate::plan::{Bug, Plan, Replication, WorkloadPlan};
use crate::sql::catalog as sql_catalog;
use crate::time::Nanoseconds;

thread_local! {
    /// The mistake of the process that is at work in this thread.
    static MISTAKE: Cell<Option<Failpoint>> = const { Cell::new(None) };
}

/// The failpoint that the plan has on. It is no type, so that the database is not compiled once more for each of them.
struct Planned;

impl Failpoints for Planned {
    fn on(point: Failpoint) -> bool {
        MISTAKE.get() == Some(point)
    }
}

/// The mistake in the database that the plan has on.
fn mistake(plan: &Plan) -> Option<Failpoint> {
    match plan.bug {
        Some(Bug::Database(point)) => Some(point),
        _ => None,
    }
}

/// A function that makes what has failpoints, with the one that the plan has on.
macro_rules! with_failpoint {
    ($plan:expr, $make:ident) => {{
        let mistake = mistake($plan);
        MISTAKE.set(mistake);
        if mistake.is_some() { $make::<Planned> } else { $make::<NoFailpoints> }
    }};
}

/// [`recover`] over the simulated files.
fn recover_on<P: Failpoints>(
    ingredients: Ingredients<'_>,
    disk: &mut NodeDisk<SharedFiles>,
    found: Found,
) -> Result<(Box<dyn AnyNode>, Recovery), RecoveryError> {
    recover::<_, P>(ingredients, disk, found)
}

/// What a step produced, until its time is over.
#[derive(Debug)]
pub(crate) struct Held {
    /// A hash of all that the step sends and answers.
    pub(crate) content: u64,
    pub(crate) sends: Vec<(NodeId, Message)>,
    pub(crate) replies: Vec<Reply>,
    pub(crate) disk: Vec<DiskWrite>,
}

/// What may be done with a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// It has nothing to do, or has not been given a core yet.
    Ready,
    /// It is stepping.
    Stepping,
    /// Its disk is full.
    Full,
    /// Its machine is down.
    Down,
    /// Its disk is empty, and its replica still counts in its group: it must not run before it was removed there.
    Wiped,
    /// Its disk has failed; it starts again when that is mended.
    Failed(String),
    /// It ended to go on from what its disk has, and starts again soon.
    Restarting,
    /// It is gone for good, and the others must do without it.
    Lost(String),
    /// It will not go on, which must not be.
    Stopped(String),
}

/// See the [module](self).
pub(crate) struct Process {
    pub(crate) me: NodeId,
    /// How people call it.
    pub(crate) name: String,
    pub(crate) node: Option<Box<dyn AnyNode>>,
    pub(crate) condition: Condition,
    /// Counts restarts; what was planned for another life is void.
    pub(crate) life: u32,
    /// Whether it stands in its machine's queue for a core.
    pub(crate) queued: bool,
    pub(crate) inbox: VecDeque<Event>,
    /// Requests of clients in the inbox.
    pub(crate) requests_waiting: usize,
    /// Whether the node said that it has more to do.
    pub(crate) more: bool,
    /// By the number of the node; the own place is not used.
    pub(crate) links: Vec<Link<Message>>,
    pub(crate) disk: Option<Disk>,
    /// Whether its disk was empty in a group that existed already: it joined that group, or is about to.
    pub(crate) joins: bool,
    /// What the disk has had no room for.
    pub(crate) unwritten: VecDeque<DiskWrite>,
    /// Whether there is no room for it.
    pub(crate) waits: bool,
    /// The sync that is under way.
    pub(crate) sync: Option<Syncing>,
    /// When the node or a link is next to be woken, if that is planned.
    pub(crate) wake_at: Option<Nanoseconds>,
    pub(crate) timer_at: Option<Nanoseconds>,
    /// The latest time that its node was given; a clock that shows less is waited for.
    pub(crate) last_now: u64,
    pub(crate) executions: Executions,
    mistake: Option<Failpoint>,
    /// What the engine `two-phase` counted in earlier lives.
    earlier: TwoPhaseCounters,
}

impl Process {
    /// A process at the beginning of the world.
    pub(crate) fn new(plan: &Plan, workload: &dyn Workload, me: NodeId) -> Result<Process, Error> {
        let peers = plan.nodes();
        let name = plan.name(me);
        let numbers = [u64::from(me.partition.0), u64::from(me.replica.0)];
        let mut disk = plan.disk.map(|options| Disk::new(options, plan.seed, &numbers));
        if plan.bug == Some(Bug::SkipDirectorySync)
            && let Some(disk) = &mut disk
        {
            disk.set_mistakes(Mistakes { ignore_sync_directory: true, ..Mistakes::default() });
        }
        if plan.bug == Some(Bug::StaleCheckpoint)
            && let Some(disk) = &mut disk
        {
            disk.mark_late();
        }
        let node = match &mut disk {
            None => volatile_node(plan, workload, me)?,
            Some(disk) => {
                let problem = |problem| Error::Invalid(format!("an empty disk cannot be used: {problem:?}"));
                let found = disk.open().map_err(problem)?;
                recovered_node(plan, workload, me, disk, found, false, 0).map_err(Error::Invalid)?.0
            }
        };
        let mut process = Process {
            me,
            name,
            node: Some(node),
            condition: Condition::Ready,
            life: 0,
            queued: false,
            inbox: VecDeque::new(),
            requests_waiting: 0,
            more: false,
            links: (0..peers).map(|_| Link::begun(plan.link())).collect(),
            disk,
            joins: false,
            unwritten: VecDeque::new(),
            waits: false,
            sync: None,
            wake_at: None,
            timer_at: None,
            last_now: 0,
            executions: Executions::default(),
            mistake: mistake(plan),
            earlier: TwoPhaseCounters::default(),
        };
        if process.disk.is_some() {
            // The first connections are made.
            let others = (0..peers).map(|number| plan.node(number)).filter(|peer| *peer != me);
            process.inbox.extend(others.map(Event::LinkReset));
        }
        Ok(process)
    }

    /// Whether the node has something to do now.
    pub(crate) fn has_work(&self) -> bool {
        self.more || !self.inbox.is_empty()
    }

    /// Whether it is gone for good and the others must do without it.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.condition, Condition::Lost(_))
    }

    /// The process ends: all is gone but what the disk holds.
    pub(crate) fn end(&mut self, condition: Condition) {
        self.life += 1;
        self.earlier = self.two_phase();
        self.node = None;
        if !matches!(self.condition, Condition::Stopped(_) | Condition::Lost(_) | Condition::Wiped) {
            self.condition = condition;
        }
        self.inbox.clear();
        self.links.clear();
        self.unwritten.clear();
        (self.queued, self.more, self.waits, self.requests_waiting) = (false, false, false, 0);
        (self.sync, self.wake_at, self.timer_at) = (None, None, None);
        (self.last_now, self.executions) = (0, Executions::default());
        if let Some(disk) = &mut self.disk {
            disk.close();
        }
    }

    /// What the engine `two-phase` has counted in all lives.
    pub(crate) fn two_phase(&self) -> TwoPhaseCounters {
        let mut all = self.earlier;
        if let Some(node) = &self.node {
            all += node.status(false).deadlocks;
        }
        all
    }

    /// The machine has lost power.
    pub(crate) fn crash(&mut self) {
        if let Some(disk) = &mut self.disk {
            disk.crash();
        }
        self.end(Condition::Down);
    }

    /// The process ends, and its disk is empty.
    pub(crate) fn wipe(&mut self) {
        self.end(Condition::Wiped);
        if let Some(disk) = &mut self.disk {
            disk.wipe();
        }
    }

    /// A new life begins with this node.
    pub(crate) fn begin(&mut self, node: Box<dyn AnyNode>, peers: usize, options: LinkOptions) {
        let incarnation = u64::from(self.life) << 32;
        self.links = (0..peers).map(|_| Link::beginning(options, incarnation)).collect();
        self.node = Some(node);
        self.condition = Condition::Ready;
        self.more = true;
    }

    /// The node does not go on, which must not be.
    pub(crate) fn stop(&mut self, reason: String) {
        self.end(Condition::Stopped(reason));
    }

    /// Whether nothing is under way here. Signs of life come and go all the time.
    pub(crate) fn is_at_rest(&self) -> bool {
        let chatter = |event: &Event| {
            matches!(event, Event::Peer { message: Message::Alive(_) | Message::Consensus(_), .. })
        };
        self.node.as_ref().is_some_and(|node| node.is_idle())
            && matches!(self.condition, Condition::Ready | Condition::Stepping)
            && self.inbox.iter().all(chatter)
            && self.unwritten.is_empty()
            && self.sync.is_none()
    }

    /// What the process is at, for people.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("\n{}: {:?}, {} events wait", self.name, self.condition, self.inbox.len());
        if let Some(node) = &self.node {
            let described = node.describe();
            let lines: Vec<&str> = described.lines().collect();
            lines.iter().take(5).for_each(|line| text.push_str(&format!("\n  {line}")));
            if lines.len() > 5 {
                text.push_str(&format!("\n  and {} more", lines.len() - 5));
            }
        }
        text
    }

    /// Takes events for the next step.
    pub(crate) fn take_events(&mut self, most: usize) -> Vec<Event> {
        let count = most.min(self.inbox.len());
        let events: Vec<Event> = self.inbox.drain(..count).collect();
        for event in &events {
            if let Event::Requests(requests) = event {
                self.requests_waiting -= requests.len();
            }
        }
        events
    }

    /// Takes requests of clients, if there is room for them.
    pub(crate) fn take_requests(&mut self, requests: Vec<ClientRequest>, most: usize) {
        if self.requests_waiting + requests.len() > most {
            return;
        }
        self.requests_waiting += requests.len();
        self.inbox.push_back(Event::Requests(requests));
    }

    /// Steps the node, and counts what it did.
    pub(crate) fn step(
        &mut self,
        now: u64,
        mut events: Vec<Event>,
        outbox: &mut Outbox,
    ) -> Result<StepWork, Fatal> {
        let Some(node) = &mut self.node else { return Ok(StepWork::default()) };
        let work = StepWork::of_events(&events);
        self.last_now = now;
        MISTAKE.set(self.mistake);
        self.more = node.step(now, &mut events, outbox)?;
        let before = std::mem::replace(&mut self.executions, node.executions());
        Ok(work.and_did(outbox, before, self.executions))
    }
}

/// A hash of all that a step sends and answers.
pub(crate) fn content_of(outbox: &Outbox) -> u64 {
    let encoded = postcard::to_allocvec(&(&outbox.sends, &outbox.replies));
    encoded.map_or(0, |bytes| key_hash(&bytes))
}

fn configuration(plan: &Plan, me: NodeId, life: u32) -> NodeConfiguration {
    NodeConfiguration {
        me,
        replicas: plan.replicas,
        subgroup: if plan.subgroup { (0..plan.replicas).map(ReplicaId).collect() } else { Vec::new() },
        cluster: plan.seed,
        epochs: plan.epochs,
        checkpoints: plan.checkpoints,
        life: life.into(),
        limits: plan.limits,
        trace: plan.trace,
        ..NodeConfiguration::new(me.partition, plan.partitions)
    }
}

/// The tables and procedures of a node, with the mistake in them that the plan has on.
fn catalog(plan: &Plan, workload: &dyn Workload) -> Result<Catalog, Error> {
    match plan.workload {
        WorkloadPlan::Sql(_) => with_failpoint!(plan, sql_catalog)(),
        _ => Ok(workload.catalog().clone()),
    }
}

fn load(plan: &Plan, workload: &dyn Workload, me: NodeId, storage: &mut dyn Storage) -> Result<(), Error> {
    workload.load(Part::of(me.partition, plan.partitions), &mut |key, row| {
        storage.put(key, key.hash(), row, Position::LOADED);
    })
}

/// Makes a node that keeps nothing, with the rows that its partition has at first.
fn volatile_node(plan: &Plan, workload: &dyn Workload, me: NodeId) -> Result<Box<dyn AnyNode>, Error> {
    let mut storage: Box<dyn Storage + Send> = Box::new(MemoryStorage::new());
    load(plan, workload, me, &mut *storage)?;
    let make = with_failpoint!(plan, node_with);
    Ok(make(plan.engine, &configuration(plan, me, 0), catalog(plan, workload)?, storage, None))
}

/// Makes a node from what its disk has; and the epoch of the checkpoint from which it goes on. `joins`: whether a group that
/// exists already is joined where the disk is empty.
pub(crate) fn recovered_node(
    plan: &Plan,
    workload: &dyn Workload,
    me: NodeId,
    disk: &mut Disk,
    mut found: Found,
    joins: bool,
    life: u32,
) -> Result<(Box<dyn AnyNode>, Epoch), String> {
    if plan.bug == Some(Bug::ForgetVote) {
        forget_votes(&mut found);
    }
    let replication = match plan.replication {
        Replication::None => database::Replication::None,
        mode => {
            let mut options = RaftOptions::new(me.replica, plan.seed ^ u64::from(me.partition.0) << 48);
            if mode == Replication::Async {
                options.hand_out = HandOut::AfterLocalSync;
            }
            database::Replication::Group(options)
        }
    };
    let ingredients = Ingredients {
        join: joins,
        engine: plan.engine,
        configuration: &configuration(plan, me, life),
        catalog: catalog(plan, workload).map_err(|error| error.to_string())?,
        replication,
        storage: &|| Box::new(MemoryStorage::new()),
        load: &mut |storage| load(plan, workload, me, storage),
    };
    let node = disk.node().ok_or("the disk is not open")?;
    let make = with_failpoint!(plan, recover_on);
    let (node, recovery) = make(ingredients, node, found).map_err(|error| error.to_string())?;
    Ok((node, recovery.checkpoint))
}

/// Lets a replica forget for whom it has voted, and in which terms.
fn forget_votes(found: &mut Found) {
    for record in &mut found.records {
        if let Ok(LogRecord::State { commit, .. }) = LogRecord::decode(record) {
            *record = LogRecord::State { term: FOUNDING_TERM, vote: None, commit }.encode();
        }
    }
}
