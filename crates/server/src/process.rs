//! A process of a cluster: the threads of its partitions and what connects them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ordain_consensus::log::REPLICAS_MAX;
use ordain_db::disk::NodeDisk;
use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::limits::{Limits, PARTITIONS_MAX};
use ordain_db::message::ClientRequest;
use ordain_db::node::{AnyNode, Event, GroupStatus, NodeConfiguration, node};
use ordain_db::position::{NodeId, PartitionId};
use ordain_db::procedure::Catalog;
use ordain_db::sequencer::{EpochOptions, EpochPolicy};
use ordain_db::storage::Storage;

use crate::data_directory::DataDirectory;
use crate::disk_thread::{DiskGauges, DiskThread};
use crate::files::RealFiles;
use crate::inbox::{Inbox, NotTaken};
use crate::partition::{Destinations, Elsewhere, Failure, Gauges, Partition, Start};
use crate::replay::Replay;
use crate::replies::Replies;

/// What all processes of a cluster agree on.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Number of partitions in the cluster.
    pub partitions: u16,
    /// Number of replicas, each with all partitions.
    pub replicas: u16,
    /// The engine.
    pub engine: EngineKind,
    /// The length of an epoch (CAL-20: 10 ms by default; ALO-25: 25 ms with an epoch manager).
    pub epoch: Duration,
    /// Who decides when epochs close.
    pub epochs: EpochPolicy,
    /// How long a transaction of the engine `two-phase` waits for locks of a partition before it begins again (DET-37); none: as
    /// long as no deadlock is found.
    pub lock_wait: Option<Duration>,
    /// When transactions of the engine `two-phase` ask for their locks.
    pub locks: LockRequests,
    /// Whether transactions of the engine `two-phase` wait at the door while many wait for locks.
    pub load_control: bool,
    /// Whether nodes take on less where they lag behind the others: see [`ordain_db::sequencer::throttle`].
    pub throttle: bool,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        let epochs = EpochPolicy::default();
        ClusterOptions {
            partitions: 1,
            replicas: 1,
            engine: EngineKind::Calvin,
            epoch: Duration::from_micros(epochs.default_microseconds()),
            epochs,
            lock_wait: None,
            locks: LockRequests::default(),
            load_control: true,
            throttle: false,
        }
    }
}

impl ClusterOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// Says which one to change.
    pub fn check(&self) -> Result<(), String> {
        if self.partitions == 0 || usize::from(self.partitions) > PARTITIONS_MAX {
            return Err(format!(
                "partitions: their number must be 1 to {PARTITIONS_MAX}, not {}",
                self.partitions
            ));
        }
        if self.replicas == 0 || usize::from(self.replicas) > REPLICAS_MAX {
            return Err(format!("replicas: their number must be 1 to {REPLICAS_MAX}, not {}", self.replicas));
        }
        if self.epoch.is_zero() || self.epoch > Duration::from_secs(10) {
            return Err(format!("an epoch must last from 1 microsecond to 10 seconds, not {:?}", self.epoch));
        }
        let name = self.engine.name();
        if self.replicas > 1 && !self.engine.is_ordered() {
            return Err(format!(
                "replicas: the engine {name} has one: choose calvin, or leave the others out"
            ));
        }
        if self.epochs.is_managed() && !self.engine.is_ordered() {
            return Err(format!(
                "epochs: the engine {name} has no epochs for a manager: choose aloha, or leave them out"
            ));
        }
        if self.lock_wait.is_some() && self.engine.is_ordered() {
            return Err(format!("lock_wait_milliseconds: {name} has no deadlocks: leave it out"));
        }
        if self.locks != LockRequests::default() && self.engine.is_ordered() {
            return Err(format!("locks: {name} asks for them in the order of transactions: leave it out"));
        }
        if !self.load_control && self.engine.is_ordered() {
            return Err(format!("load_control: {name} has none: leave it out"));
        }
        if self.lock_wait.is_some_and(|wait| wait < Duration::from_micros(1)) {
            return Err("lock_wait_milliseconds: it must be at least 0.001".to_owned());
        }
        Ok(())
    }

    /// How each node makes epochs.
    pub fn epochs(&self) -> EpochOptions {
        EpochOptions { policy: self.epochs, microseconds: self.epoch.as_micros() as u64 }
    }

    /// The limits of each node.
    pub fn limits(&self) -> Limits {
        let lock_wait_microseconds = self.lock_wait.map(|wait| wait.as_micros() as u64);
        let ClusterOptions { locks: lock_requests, load_control, throttle: throttles, .. } = *self;
        Limits { lock_wait_microseconds, lock_requests, load_control, throttles, ..Limits::default() }
    }
}

/// A partition with its rows, about to be started.
pub struct Seed {
    /// The partition.
    pub partition: PartitionId,
    /// Its rows.
    pub storage: Box<dyn Storage + Send>,
}

/// A node that is about to run in this process.
pub struct LocalNode {
    /// Which one.
    pub id: NodeId,
    /// Its state machine.
    pub node: Box<dyn AnyNode>,
    /// What it keeps; `None` if it keeps nothing.
    pub disk: Option<NodeDisk<RealFiles>>,
    /// What it has to replay, if anything.
    pub replay: Option<Replay>,
}

impl LocalNode {
    /// A node that keeps nothing.
    pub fn volatile(options: &ClusterOptions, catalog: &Catalog, seed: Seed) -> LocalNode {
        let configuration = NodeConfiguration {
            epochs: options.epochs(),
            limits: options.limits(),
            ..NodeConfiguration::new(seed.partition, options.partitions)
        };
        let node = node(options.engine, &configuration, catalog.clone(), seed.storage, None);
        LocalNode { id: configuration.me, node, disk: None, replay: None }
    }
}

/// The inboxes of the nodes that run in a process.
pub type Inboxes = Vec<(NodeId, Arc<Inbox>)>;

/// The thread of a partition.
type Thread = JoinHandle<Result<(), Failure>>;

struct Local {
    id: NodeId,
    inbox: Arc<Inbox>,
    gauges: Arc<Gauges>,
    disk: Option<Arc<DiskGauges>>,
}

struct Threads {
    partitions: Vec<(NodeId, Thread)>,
    disks: Vec<(NodeId, DiskThread)>,
    /// Nobody else may use it as long as a thread may write.
    _directory: Option<DataDirectory>,
}

/// Why a partition's thread ended before it was told to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct StopError {
    /// What happened, for people.
    pub reason: String,
    /// Whether the nodes of the process, made again from their disks, can go on.
    pub asks_for_restart: bool,
}

/// The running partitions of a process.
pub struct Process {
    options: ClusterOptions,
    locals: Vec<Local>,
    /// `None` once stopped.
    threads: Mutex<Option<Threads>>,
    destinations: Destinations,
    replies: Arc<Replies>,
}

impl Process {
    /// Makes the inboxes of the nodes that run here, for links that must exist before the threads start.
    pub fn inboxes(nodes: impl IntoIterator<Item = NodeId>) -> Inboxes {
        nodes.into_iter().map(|node| (node, Arc::new(Inbox::default()))).collect()
    }

    /// Starts the nodes. `elsewhere` has a link for each node of another process; `directory` has the nodes' files, if they
    /// keep any.
    ///
    /// # Errors
    /// When the options are wrong or a thread cannot be started.
    pub fn start(
        options: &ClusterOptions,
        nodes: Vec<LocalNode>,
        directory: Option<DataDirectory>,
        inboxes: &Inboxes,
        elsewhere: Elsewhere,
        replies: Arc<Replies>,
    ) -> Result<Process, String> {
        options.check()?;
        let here = |node: NodeId| inboxes.iter().find(|(other, _)| *other == node).map(|(_, inbox)| inbox);
        let destinations = Destinations::new(options.partitions, options.replicas, inboxes, elsewhere);
        check_nodes(&nodes, inboxes, &destinations)?;
        // Before any of them runs: whoever is told later would forget what a mate has asked for.
        nodes.iter().filter(|node| node.disk.is_some()).for_each(|node| meet_mates(node.id, inboxes));
        let started = Start::here();
        let mut threads = Threads { partitions: Vec::new(), disks: Vec::new(), _directory: directory };
        let mut locals = Vec::new();
        for LocalNode { id, node, disk, replay } in nodes {
            let inbox = Arc::clone(here(id).ok_or_else(|| format!("{id} has no inbox"))?);
            let gauges = Arc::new(Gauges::default());
            gauges.replays.store(replay.is_some(), Ordering::Relaxed);
            let (disk, disk_gauges) = match disk {
                None => (None, None),
                Some(disk) => {
                    let (queue, thread) = DiskThread::start(id, disk, Arc::clone(&inbox))?;
                    let gauges = Arc::clone(&thread.gauges);
                    threads.disks.push((id, thread));
                    (Some(queue), Some(gauges))
                }
            };
            let runner = Partition {
                me: id,
                node,
                inbox: Arc::clone(&inbox),
                destinations: destinations.clone(),
                replies: Arc::clone(&replies),
                disk,
                replay,
                gauges: Arc::clone(&gauges),
                started,
            };
            let thread = std::thread::Builder::new()
                .name(format!("ordain-{id}"))
                .spawn(move || run(runner))
                .map_err(|error| format!("cannot start the thread of {id}: {error}"))?;
            threads.partitions.push((id, thread));
            locals.push(Local { id, inbox, gauges, disk: disk_gauges });
        }
        let threads = Mutex::new(Some(threads));
        Ok(Process { options: options.clone(), locals, threads, destinations, replies })
    }

    /// The cluster's options.
    pub fn options(&self) -> &ClusterOptions {
        &self.options
    }

    /// Where replies go.
    pub fn replies(&self) -> &Arc<Replies> {
        &self.replies
    }

    /// Puts requests into the inbox of a partition of this process.
    ///
    /// # Errors
    /// Gives them back when they are not taken; for a partition of another process too.
    pub fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        match self.locals.iter().find(|local| local.id.partition == to) {
            Some(local) => local.inbox.request(requests),
            None => Err(NotTaken::Stopped(requests)),
        }
    }

    /// The nodes that run here.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.locals.iter().map(|local| local.id)
    }

    /// Where every node is.
    pub fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// How often the disks have made writes durable, and how many writes these were.
    pub fn syncs(&self) -> (u64, u64) {
        let sum = |count: fn(&DiskGauges) -> u64| {
            self.locals.iter().filter_map(|local| local.disk.as_deref()).map(count).sum()
        };
        (
            sum(|gauges| gauges.syncs.load(Ordering::Relaxed)),
            sum(|gauges| gauges.appends.load(Ordering::Relaxed)),
        )
    }

    /// CPU time of the partitions' threads; exact when they have nothing to do.
    pub fn cpu(&self) -> Duration {
        let nanoseconds =
            self.locals.iter().map(|local| local.gauges.cpu_nanoseconds.load(Ordering::Relaxed));
        Duration::from_nanos(nanoseconds.sum())
    }

    /// Whether a partition's thread has ended, which is only right after [`Process::stop`].
    pub fn has_failed(&self) -> bool {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().flat_map(|threads| &threads.partitions).any(|(_, thread)| thread.is_finished())
    }

    /// Whether a node here still replays its log.
    pub fn replays(&self) -> bool {
        self.locals.iter().any(|local| local.gauges.replays.load(Ordering::Acquire))
    }

    /// How the replication groups of the nodes here stand, as of a moment ago; `None` for those that have not run yet, and
    /// without a log.
    pub fn groups(&self) -> impl Iterator<Item = (NodeId, Option<GroupStatus>)> + '_ {
        self.locals.iter().map(|local| (local.id, local.gauges.group()))
    }

    /// How these groups stand now, or later, but not earlier; `None` also for those whose nodes do not tell within `patience`.
    pub fn groups_now(&self, patience: Duration) -> Vec<(NodeId, Option<GroupStatus>)> {
        let deadline = Instant::now() + patience;
        let asked: Vec<(&Local, u64)> = self.locals.iter().map(|local| (local, local.inbox.look())).collect();
        let told = asked.into_iter().map(|(local, look)| {
            let left = deadline.saturating_duration_since(Instant::now());
            (local.id, local.gauges.group_at(look, left))
        });
        told.collect()
    }

    /// Asks the nodes that lead to let others lead.
    pub fn hand_over_leadership(&self) {
        self.locals.iter().for_each(|local| local.inbox.tell(Event::HandOverLeadership));
    }

    /// Tells the nodes that the cluster has places for so many replicas.
    pub fn grow(&self, replicas: u16) {
        self.locals.iter().for_each(|local| local.inbox.grow(replicas));
    }

    /// Refuses new requests from now on.
    pub fn refuse_requests(&self) {
        self.locals.iter().for_each(|local| local.inbox.drain());
    }

    /// Refuses new requests and waits until nothing is under way here, for at most `patience`; whether that came true.
    pub fn drain(&self, patience: Duration) -> bool {
        self.refuse_requests();
        let deadline = Instant::now() + patience;
        let idle_since =
            || self.locals.iter().map(|local| local.inbox.idle_since()).collect::<Option<Vec<_>>>();
        while Instant::now() < deadline {
            // One partition may wake another after it was looked at: all are idle if a second look finds that none has
            // stirred since the first.
            let first = idle_since();
            if first.is_some() && first == idle_since() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Stops the threads and tells clients that nothing more will come. Stopping again does nothing.
    ///
    /// # Errors
    /// Why a thread had ended before.
    pub fn stop(&self) -> Result<(), StopError> {
        self.locals.iter().for_each(|local| local.inbox.stop());
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut threads) = threads else { return Ok(()) };
        let mut failures: Vec<String> = Vec::new();
        let mut asks_for_restart = true;
        for (id, thread) in threads.partitions.drain(..) {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => {
                    asks_for_restart &= failure.asks_for_restart();
                    failures.push(failure.to_string());
                }
                Err(_) => {
                    asks_for_restart = false;
                    failures.push(format!("the thread of {id} panicked"));
                }
            }
        }
        // The ends of their queues are gone: they write what is left, and end.
        for (id, thread) in threads.disks.drain(..) {
            if !thread.join() {
                asks_for_restart = false;
                failures.push(format!("the disk's thread of {id} panicked"));
            }
        }
        drop(threads);
        self.replies.end();
        if failures.is_empty() {
            return Ok(());
        }
        Err(StopError { reason: failures.join("; "), asks_for_restart })
    }
}

/// Ends everything in this process when one of its partitions ends before it was told to, by an error or a panic: the others
/// could only wait for it, and so could clients.
struct EndTogether {
    inboxes: Vec<Arc<Inbox>>,
    replies: Arc<Replies>,
    as_told: bool,
}

impl Drop for EndTogether {
    fn drop(&mut self) {
        if !self.as_told {
            self.inboxes.iter().for_each(|inbox| inbox.stop());
            self.replies.end();
        }
    }
}

/// Whether the nodes are those of the inboxes.
fn check_nodes(nodes: &[LocalNode], inboxes: &Inboxes, destinations: &Destinations) -> Result<(), String> {
    for LocalNode { id, .. } in nodes {
        if destinations.get(*id).is_none() || !inboxes.iter().any(|(other, _)| other == id) {
            return Err(format!("{id} is not a node of this process"));
        }
    }
    if nodes.len() != inboxes.len() {
        return Err(format!("{} nodes are made and {} are to run here", nodes.len(), inboxes.len()));
    }
    Ok(())
}

/// Lets the other nodes of the process know of one that recovers: nothing that it said before has arrived.
fn meet_mates(me: NodeId, inboxes: &Inboxes) {
    for (_, inbox) in inboxes.iter().filter(|(mate, _)| *mate != me) {
        inbox.reset_link(me, 0);
    }
}

/// Runs a partition to its end.
fn run(partition: Partition) -> Result<(), Failure> {
    let here = partition.destinations.here().map(Arc::clone).collect();
    let replies = Arc::clone(&partition.replies);
    let mut together = EndTogether { inboxes: here, replies, as_told: false };
    let result = partition.run();
    match &result {
        Ok(()) => together.as_told = true,
        Err(failure) if failure.asks_for_restart() => {
            tracing::warn!(%failure, "a partition has stopped, to start again");
        }
        Err(failure) => tracing::error!(%failure, "a partition has stopped"),
    }
    result
}
