//! A simulated process: one node with its inbox, its journal, and its links to the other nodes.

use std::collections::VecDeque;

use ordain_db::error::Error;
use ordain_db::execution::Executions;
use ordain_db::failpoint::{Failpoint, Failpoints, NoFailpoints};
use ordain_db::hash::key_hash;
use ordain_db::message::{ClientRequest, Message, Reply};
use ordain_db::node::{AnyNode, Event, NodeConfiguration, Outbox, node_with};
use ordain_db::position::{PartitionId, Position};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::{Part, Workload};

use crate::machine::cost::StepWork;
use crate::machine::disk::SyncTicket;
use crate::machine::journal::Journal;
use crate::network::link::Link;
use crate::plan::{Bug, Plan};
use crate::time::Nanoseconds;

/// What a step produced, until it may leave the machine.
#[derive(Debug)]
pub(crate) struct Held {
    /// The journal must be durable up to here.
    pub(crate) offset: u64,
    /// A hash of all that the step sends and answers.
    pub(crate) content: u64,
    pub(crate) sends: Vec<(PartitionId, Message)>,
    pub(crate) replies: Vec<Reply>,
    /// By peer: how many of its messages the step has seen.
    pub(crate) received: Vec<u64>,
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
    /// It will not go on.
    Stopped(String),
}

/// See the [module](self).
pub(crate) struct Process {
    pub(crate) me: PartitionId,
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
    pub(crate) held: VecDeque<Held>,
    /// By peer; the own place is not used.
    pub(crate) links: Vec<Link<Message>>,
    /// By peer: how many of its messages the node has taken.
    pub(crate) received: Vec<u64>,
    pub(crate) journal: Option<Journal>,
    /// By journaled step: the hash of what it sent and answered, over all lives.
    pub(crate) contents: Vec<u64>,
    /// What was durable at the last crash.
    pub(crate) durable: u64,
    /// The sync that is under way.
    pub(crate) sync: Option<SyncTicket>,
    /// When the node or a link is next to be woken, if that is planned.
    pub(crate) wake_at: Option<Nanoseconds>,
    pub(crate) timer_at: Option<Nanoseconds>,
    /// The latest time that its node was given; a clock that shows less is waited for.
    pub(crate) last_now: u64,
    pub(crate) executions: Executions,
}

impl Process {
    /// Whether the node has something to do now.
    pub(crate) fn has_work(&self) -> bool {
        self.more || !self.inbox.is_empty()
    }

    /// The machine has lost power: all is gone but what the disk holds.
    pub(crate) fn crash(&mut self) {
        self.life += 1;
        self.node = None;
        if !matches!(self.condition, Condition::Stopped(_)) {
            self.condition = Condition::Down;
        }
        self.inbox.clear();
        self.held.clear();
        self.links.clear();
        self.received.fill(0);
        (self.queued, self.more, self.requests_waiting) = (false, false, 0);
        (self.sync, self.wake_at, self.timer_at) = (None, None, None);
        (self.last_now, self.executions) = (0, Executions::default());
        if let Some(journal) = &mut self.journal {
            self.durable = journal.disk().durable();
            journal.disk_mut().crash();
        }
    }

    /// The node does not go on.
    pub(crate) fn stop(&mut self, reason: String) {
        self.node = None;
        self.condition = Condition::Stopped(reason);
    }

    /// Whether nothing is under way here.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_idle())
            && self.condition == Condition::Ready
            && !self.has_work()
            && self.held.is_empty()
            && self.sync.is_none()
    }

    /// What the process is at, for people.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("\n{}: {:?}, {} events wait", self.me, self.condition, self.inbox.len());
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

    /// Puts events back that could not be journaled.
    pub(crate) fn return_events(&mut self, events: Vec<Event>) {
        for event in events.into_iter().rev() {
            if let Event::Requests(requests) = &event {
                self.requests_waiting += requests.len();
            }
            self.inbox.push_front(event);
        }
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
    ) -> Result<StepWork, String> {
        let Some(node) = &mut self.node else { return Ok(StepWork::default()) };
        for event in &events {
            if let Event::Peer { from, .. } = event {
                self.received[from.index()] += 1;
            }
        }
        let work = StepWork::of_events(&events);
        self.last_now = now;
        self.more = node.step(now, &mut events, outbox).map_err(|fatal| fatal.to_string())?;
        let before = std::mem::replace(&mut self.executions, node.executions());
        Ok(work.and_did(outbox, before, self.executions))
    }
}

/// A hash of all that a step sends and answers.
pub(crate) fn content_of(outbox: &Outbox) -> u64 {
    let encoded = postcard::to_allocvec(&(&outbox.sends, &outbox.replies));
    encoded.map_or(0, |bytes| key_hash(&bytes))
}

/// Makes a node with the rows that its partition has at first.
pub(crate) fn make_node(
    plan: &Plan,
    workload: &dyn Workload,
    me: PartitionId,
    trace: bool,
) -> Result<Box<dyn AnyNode>, Error> {
    let mut storage = MemoryStorage::new();
    workload.load(Part::of(me, plan.partitions), &mut |key, row| {
        storage.put(key, key.hash(), row, Position::LOADED);
    })?;
    let configuration = NodeConfiguration {
        epoch_microseconds: plan.epoch_microseconds,
        limits: plan.limits,
        trace,
        ..NodeConfiguration::new(me, plan.partitions)
    };
    let point = match plan.bug {
        Some(Bug::Database(point)) => Some(point),
        _ => None,
    };
    Ok(with_failpoint(point, plan, &configuration, workload, Box::new(storage)))
}

/// One failpoint, by its number in [`Failpoint::ALL`], is on.
struct Only<const POINT: usize>;

impl<const POINT: usize> Failpoints for Only<POINT> {
    #[inline(always)]
    fn on(point: Failpoint) -> bool {
        point as usize == POINT
    }
}

fn with_failpoint(
    point: Option<Failpoint>,
    plan: &Plan,
    configuration: &NodeConfiguration,
    workload: &dyn Workload,
    storage: Box<dyn Storage + Send>,
) -> Box<dyn AnyNode> {
    let catalog = workload.catalog().clone();
    let make = match point.map(|point| point as usize) {
        None => node_with::<NoFailpoints>,
        Some(0) => node_with::<Only<0>>,
        Some(1) => node_with::<Only<1>>,
        Some(2) => node_with::<Only<2>>,
        Some(3) => node_with::<Only<3>>,
        Some(4) => node_with::<Only<4>>,
        Some(5) => node_with::<Only<5>>,
        Some(6) => node_with::<Only<6>>,
        Some(7) => node_with::<Only<7>>,
        Some(8) => node_with::<Only<8>>,
        Some(9) => node_with::<Only<9>>,
        Some(10) => node_with::<Only<10>>,
        Some(11) => node_with::<Only<11>>,
        Some(other) => unreachable!("there is no failpoint number {other}"),
    };
    make(plan.engine, configuration, catalog, storage)
}

const _: () = assert!(Failpoint::ALL.len() == 12, "each failpoint has its instance");
