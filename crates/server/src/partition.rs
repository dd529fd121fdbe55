//! The thread of a partition: takes what is in the inbox, steps the node, sends what the node wants sent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ordain_db::error::Fatal;
use ordain_db::message::Message;
use ordain_db::node::{AnyNode, Event, GroupStatus, Outbox};
use ordain_db::position::{Epoch, NodeId};

use crate::disk_thread::DiskQueue;
use crate::inbox::{Inbox, Taken};
use crate::replay::Replay;
use crate::replies::Replies;

/// A node of another process.
pub trait PeerLink: Send + Sync {
    /// Sends messages. Those of one session arrive once each and in order, unless the next session begins before; those of a
    /// session that is over are dropped.
    ///
    /// # Errors
    /// When they cannot be kept until they arrive, although nothing may be lost: this node must stop.
    fn send(&self, session: u64, from: NodeId, to: NodeId, messages: Vec<Message>) -> Result<(), String>;
}

/// Where a node is.
#[derive(Clone)]
pub enum Destination {
    /// In this process.
    Here(Arc<Inbox>),
    /// In another.
    Elsewhere(Arc<dyn PeerLink>),
}

/// Makes the way to a node of another process.
pub type Elsewhere = Arc<dyn Fn(NodeId) -> Arc<dyn PeerLink> + Send + Sync>;

/// Where all nodes of a cluster are.
#[derive(Clone)]
pub struct Destinations {
    partitions: u16,
    /// By replica, and within a replica by partition.
    places: Vec<Destination>,
    elsewhere: Elsewhere,
}

impl Destinations {
    /// The place of each node of a cluster: in one of these inboxes, or elsewhere.
    pub fn new(
        partitions: u16,
        replicas: u16,
        here: &[(NodeId, Arc<Inbox>)],
        elsewhere: Elsewhere,
    ) -> Destinations {
        let place = |node: NodeId| match here.iter().find(|(own, _)| *own == node) {
            Some((_, inbox)) => Destination::Here(Arc::clone(inbox)),
            None => Destination::Elsewhere(elsewhere(node)),
        };
        let places = nodes(partitions, replicas).map(place).collect();
        Destinations { partitions, places, elsewhere }
    }

    /// Adds the places of further replicas, which are all in other processes.
    fn grow(&mut self, replicas: u16) {
        for node in nodes(self.partitions, replicas).skip(self.places.len()) {
            self.places.push(Destination::Elsewhere((self.elsewhere)(node)));
        }
    }

    fn index(&self, node: NodeId) -> usize {
        node.replica.index() * usize::from(self.partitions) + node.partition.index()
    }

    /// Where a node is; `None` outside of the cluster.
    pub fn get(&self, node: NodeId) -> Option<&Destination> {
        if node.partition.0 >= self.partitions { None } else { self.places.get(self.index(node)) }
    }

    /// The inboxes of the nodes that run in this process.
    pub fn here(&self) -> impl Iterator<Item = &Arc<Inbox>> {
        self.places.iter().filter_map(|place| match place {
            Destination::Here(inbox) => Some(inbox),
            Destination::Elsewhere(_) => None,
        })
    }
}

/// All nodes of a cluster, by replica, and within a replica by partition.
pub fn nodes(partitions: u16, replicas: u16) -> impl Iterator<Item = NodeId> {
    use ordain_db::position::{PartitionId, ReplicaId};

    let of_replica = move |replica| {
        (0..partitions).map(move |partition| NodeId { partition: PartitionId(partition), replica })
    };
    (0..replicas).map(ReplicaId).flat_map(of_replica)
}

/// What others may know of a partition's thread while it runs.
#[derive(Default)]
pub struct Gauges {
    /// CPU time of the thread in nanoseconds: exact when the thread sleeps, else as of a moment ago.
    pub cpu_nanoseconds: AtomicU64,
    /// Whether the node replays its log.
    pub replays: AtomicBool,
    group: Mutex<GroupGauge>,
    /// Notified when a group gauge is new.
    group_told: Condvar,
}

/// How a node's replication group stands.
#[derive(Default)]
struct GroupGauge {
    /// `None` before the node has run, and without a log.
    group: Option<GroupStatus>,
    /// The number of the last [look](Inbox::look) that this is not older than.
    look: u64,
}

impl Gauges {
    /// How the node's replication group stands, as of a moment ago; `None` before it has run, and without a log.
    pub fn group(&self) -> Option<GroupStatus> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner).group.clone()
    }

    /// The same, but no older than this [look](Inbox::look); `None` if the thread does not tell it in time, too.
    pub fn group_at(&self, look: u64, patience: Duration) -> Option<GroupStatus> {
        let gauge = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |gauge: &mut GroupGauge| gauge.look < look;
        let waited = self.group_told.wait_timeout_while(gauge, patience, is_old);
        let (gauge, result) = waited.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() { None } else { gauge.group.clone() }
    }

    fn tell_group(&self, group: Option<GroupStatus>, look: u64) {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = GroupGauge { group, look };
        self.group_told.notify_all();
    }
}

/// How often a thread tells how its replication group stands, in microseconds.
const GROUP_SAMPLE_MICROSECONDS: u64 = 10_000;

/// How often a busy thread tells its CPU time, in microseconds.
const CPU_SAMPLE_MICROSECONDS: u64 = 1000;

/// When a process started: its time goes on from the clock of the system, and never back, whatever that clock does.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    at: Instant,
    unix_microseconds: u64,
}

impl Start {
    /// Now.
    pub fn here() -> Start {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Start { at: Instant::now(), unix_microseconds: unix.as_micros() as u64 }
    }

    /// Microseconds since 1970, as the log notes them for restoring the state of a time.
    pub fn now(&self) -> u64 {
        self.unix_microseconds + self.at.elapsed().as_micros() as u64
    }
}

/// Everything that the thread of a partition works with.
pub struct Partition {
    /// The node.
    pub me: NodeId,
    /// Its state machine.
    pub node: Box<dyn AnyNode>,
    /// What comes in.
    pub inbox: Arc<Inbox>,
    /// Where every node is.
    pub destinations: Destinations,
    /// Where replies go.
    pub replies: Arc<Replies>,
    /// Where writes go; `None` for a node that keeps nothing.
    pub disk: Option<DiskQueue>,
    /// How far it has come, while it replays its log.
    pub replay: Option<Replay>,
    /// What others may know.
    pub gauges: Arc<Gauges>,
    /// The start of time, the same for all partitions of a process.
    pub started: Start,
}

/// Why a partition's thread ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The node cannot go on without differing from others.
    #[error("{0}: {1}")]
    Node(NodeId, Fatal),
    /// Messages to a peer can no longer be kept.
    #[error("{0}: {1}")]
    Link(NodeId, String),
    /// The disk cannot keep what the node must not lose.
    #[error("{0}: {1}")]
    Disk(NodeId, String),
}

impl Failure {
    /// Whether a node that is made again from its disk can go on.
    pub fn asks_for_restart(&self) -> bool {
        matches!(self, Failure::Node(_, fatal) if fatal.asks_for_restart())
    }
}

/// What the thread has gathered for each destination.
struct Sends {
    /// By destination.
    messages: Vec<Vec<Message>>,
    /// By destination: the session of what is sent now.
    sessions: Vec<u64>,
}

impl Partition {
    /// Runs until the inbox is stopped.
    ///
    /// # Errors
    /// When the node must stop.
    pub fn run(mut self) -> Result<(), Failure> {
        let mut taken = Taken::default();
        let mut outbox = Outbox::default();
        let places = self.destinations.places.len();
        let mut sends =
            Sends { messages: (0..places).map(|_| Vec::new()).collect(), sessions: vec![0; places] };
        // A log is replayed at once: nobody may ask for anything before that is done.
        let mut more = self.replay.is_some();
        let mut now = self.now();
        let mut told_at = now;
        let (mut told_group_at, mut looked) = (0, 0);
        let mut told_undecided = false;
        loop {
            let patience = if more { Some(Duration::ZERO) } else { self.prepare_to_sleep(now) };
            let idle = !more && self.node.is_idle();
            if !self.inbox.take(patience, idle, &mut taken) {
                return match self.inbox.failure() {
                    Some(problem) => Err(Failure::Disk(self.me, problem)),
                    None => Ok(()),
                };
            }
            if let Some(replicas) = taken.replicas.take() {
                self.destinations.grow(replicas);
                let places = self.destinations.places.len();
                sends.messages.resize_with(places, Vec::new);
                sends.sessions.resize(places, 0);
            }
            for (peer, session) in taken.sessions.drain(..) {
                sends.sessions[self.destinations.index(peer)] = session;
            }
            now = self.now();
            more = self.step(now, &mut taken.events, &mut outbox)?;
            self.send(&mut outbox, &mut sends)?;
            self.tell_replay(more);
            if now >= told_at + CPU_SAMPLE_MICROSECONDS {
                self.tell_cpu_time();
                told_at = now;
            }
            let is_due = self.disk.is_some() && now >= told_group_at + GROUP_SAMPLE_MICROSECONDS;
            if is_due || taken.look > looked {
                let status = self.node.status(false);
                if let Some(epoch) = status.undecided.filter(|_| !told_undecided) {
                    told_undecided = true;
                    self.tell_undecided(epoch);
                }
                self.gauges.tell_group(status.group, taken.look);
                (told_group_at, looked) = (now, taken.look);
            }
        }
    }

    fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Failure> {
        self.node.step(now, events, outbox).map_err(|fatal| Failure::Node(self.me, fatal))
    }

    /// Tells how far the replay of the log has come: now and then, and when it is done.
    fn tell_replay(&mut self, more: bool) {
        if let Some(replay) = &mut self.replay
            && (!more || replay.is_due())
            && replay.tell(self.node.executed(), self.node.status(false).leads)
        {
            self.replay = None;
            self.gauges.replays.store(false, Ordering::Release);
        }
    }

    fn tell_undecided(&self, epoch: Epoch) {
        let node = self.me;
        tracing::error!(
            %node,
            %epoch,
            "the replicas have written different things and no majority agrees: find out which one is wrong, remove it by \
             `ordain replica remove`, and add it again"
        );
    }

    fn now(&self) -> u64 {
        self.started.now()
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

    fn send(&self, outbox: &mut Outbox, sends: &mut Sends) -> Result<(), Failure> {
        if let Some(disk) = &self.disk {
            // First, so that the disk works while the rest is sent. Nothing of the rest waits for it.
            disk.write(outbox.disk.drain(..));
        }
        for (to, message) in outbox.sends.drain(..) {
            sends.messages[self.destinations.index(to)].push(message);
        }
        let filled = sends.messages.iter_mut().enumerate().filter(|(_, messages)| !messages.is_empty());
        for (to, messages) in filled {
            let messages = std::mem::take(messages);
            match &self.destinations.places[to] {
                Destination::Here(inbox) => inbox.messages(self.me, messages),
                Destination::Elsewhere(link) => link
                    .send(sends.sessions[to], self.me, self.node_at(to), messages)
                    .map_err(|problem| Failure::Link(self.me, problem))?,
            }
        }
        if !outbox.replies.is_empty() {
            self.replies.deliver(std::mem::take(&mut outbox.replies));
        }
        Ok(())
    }

    fn node_at(&self, place: usize) -> NodeId {
        use ordain_db::position::{PartitionId, ReplicaId};

        let partitions = usize::from(self.destinations.partitions);
        NodeId {
            partition: PartitionId((place % partitions) as u16),
            replica: ReplicaId((place / partitions) as u16),
        }
    }
}
