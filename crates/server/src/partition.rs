//! The thread of a partition: takes what is in the inbox, steps the node, sends what the node wants sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ordain_db::error::Fatal;
use ordain_db::message::Message;
use ordain_db::node::{AnyNode, Event, Outbox};
use ordain_db::position::PartitionId;

use crate::inbox::Inbox;
use crate::replies::Replies;

/// A partition of another process.
pub trait PeerLink: Send + Sync {
    /// Sends messages; they arrive once each and in order.
    ///
    /// # Errors
    /// When they cannot be kept until they arrive: this node must stop.
    fn send(&self, from: PartitionId, to: PartitionId, messages: Vec<Message>) -> Result<(), String>;
}

/// Where a partition is.
#[derive(Clone)]
pub enum Destination {
    /// In this process.
    Here(Arc<Inbox>),
    /// In another.
    Elsewhere(Arc<dyn PeerLink>),
}

/// What others may know of a partition's thread while it runs.
#[derive(Default)]
pub struct Gauges {
    /// CPU time of the thread in nanoseconds: exact when the thread sleeps, else as of a moment ago.
    pub cpu_nanoseconds: AtomicU64,
}

/// How often a busy thread tells its CPU time, in microseconds.
const CPU_SAMPLE_MICROSECONDS: u64 = 1000;

/// Everything that the thread of a partition works with.
pub struct Partition {
    /// The partition.
    pub me: PartitionId,
    /// Its state machine.
    pub node: Box<dyn AnyNode>,
    /// What comes in.
    pub inbox: Arc<Inbox>,
    /// Where every partition is.
    pub destinations: Vec<Destination>,
    /// Where replies go.
    pub replies: Arc<Replies>,
    /// What others may know.
    pub gauges: Arc<Gauges>,
    /// The start of time, the same for all partitions of a process.
    pub started: Instant,
}

/// Why a partition's thread ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The node cannot go on without differing from others.
    #[error("{0}: {1}")]
    Node(PartitionId, Fatal),
    /// Messages to a peer can no longer be kept.
    #[error("{0}: {1}")]
    Link(PartitionId, String),
}

impl Partition {
    /// Runs until the inbox is stopped.
    ///
    /// # Errors
    /// When the node must stop.
    pub fn run(mut self) -> Result<(), Failure> {
        let mut events: Vec<Event> = Vec::new();
        let mut outbox = Outbox::default();
        let mut sends: Vec<Vec<Message>> = self.destinations.iter().map(|_| Vec::new()).collect();
        let mut more = false;
        let mut now = self.now();
        let mut told_at = now;
        loop {
            let patience = if more { Some(Duration::ZERO) } else { self.prepare_to_sleep(now) };
            let idle = !more && self.node.is_idle();
            if !self.inbox.take(patience, idle, &mut events) {
                return Ok(());
            }
            now = self.now();
            more = self
                .node
                .step(now, &mut events, &mut outbox)
                .map_err(|fatal| Failure::Node(self.me, fatal))?;
            self.send(&mut outbox, &mut sends)?;
            if now >= told_at + CPU_SAMPLE_MICROSECONDS {
                self.tell_cpu_time();
                told_at = now;
            }
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// How long the thread may sleep; tells what others may know before. A deadline that had passed when the node was last
    /// stepped, at `stepped`, waits for an event and not for time.
    fn prepare_to_sleep(&self, stepped: u64) -> Option<Duration> {
        self.tell_cpu_time();
        let deadline = self.node.deadline().filter(|deadline| *deadline > stepped)?;
        Some(Duration::from_micros(deadline.saturating_sub(self.now()).max(1)))
    }

    fn tell_cpu_time(&self) {
        self.gauges.cpu_nanoseconds.store(crate::cpu::thread_cpu_nanoseconds(), Ordering::Relaxed);
    }

    fn send(&self, outbox: &mut Outbox, sends: &mut [Vec<Message>]) -> Result<(), Failure> {
        for (to, message) in outbox.sends.drain(..) {
            sends[to.index()].push(message);
        }
        for (to, messages) in sends.iter_mut().enumerate().filter(|(_, messages)| !messages.is_empty()) {
            let messages = std::mem::take(messages);
            match &self.destinations[to] {
                Destination::Here(inbox) => inbox.messages(self.me, messages),
                Destination::Elsewhere(link) => link
                    .send(self.me, PartitionId(to as u16), messages)
                    .map_err(|problem| Failure::Link(self.me, problem))?,
            }
        }
        if !outbox.replies.is_empty() {
            self.replies.deliver(std::mem::take(&mut outbox.replies));
        }
        Ok(())
    }
}
