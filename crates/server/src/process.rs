//! A process of a cluster: the threads of its partitions and what connects them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ordain_db::engine::EngineKind;
use ordain_db::limits::PARTITIONS_MAX;
use ordain_db::message::ClientRequest;
use ordain_db::node::{NodeConfiguration, node};
use ordain_db::position::PartitionId;
use ordain_db::procedure::Catalog;
use ordain_db::storage::Storage;

use crate::inbox::{Inbox, NotTaken};
use crate::partition::{Destination, Failure, Gauges, Partition, PeerLink};
use crate::replies::Replies;

/// What all processes of a cluster agree on.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Number of partitions in the cluster.
    pub partitions: u16,
    /// The engine.
    pub engine: EngineKind,
    /// The length of an epoch (CAL-20: 10 ms by default).
    pub epoch: Duration,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        let epoch = Duration::from_micros(ordain_db::limits::EPOCH_MICROSECONDS_DEFAULT);
        ClusterOptions { partitions: 1, engine: EngineKind::Calvin, epoch }
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
                "the number of partitions must be 1 to {PARTITIONS_MAX}, not {}",
                self.partitions
            ));
        }
        if self.epoch.is_zero() || self.epoch > Duration::from_secs(10) {
            return Err(format!("an epoch must last from 1 microsecond to 10 seconds, not {:?}", self.epoch));
        }
        Ok(())
    }
}

/// A partition with its rows, about to be started.
pub struct Seed {
    /// The partition.
    pub partition: PartitionId,
    /// Its rows.
    pub storage: Box<dyn Storage + Send>,
}

/// The thread of a partition.
type Thread = JoinHandle<Result<(), Failure>>;

struct Local {
    partition: PartitionId,
    inbox: Arc<Inbox>,
    gauges: Arc<Gauges>,
}

/// The running partitions of a process.
pub struct Process {
    options: ClusterOptions,
    locals: Vec<Local>,
    /// Empty once stopped.
    threads: Mutex<Vec<(PartitionId, Thread)>>,
    destinations: Vec<Destination>,
    replies: Arc<Replies>,
}

impl Process {
    /// Makes the inboxes of the partitions that run here, for links that must exist before the threads start.
    pub fn inboxes(partitions: &[PartitionId]) -> Vec<(PartitionId, Arc<Inbox>)> {
        partitions.iter().map(|partition| (*partition, Arc::new(Inbox::default()))).collect()
    }

    /// Starts the partitions. `elsewhere` has a link for each partition of another process.
    ///
    /// # Errors
    /// When the options are wrong or a thread cannot be started.
    pub fn start(
        options: &ClusterOptions,
        catalog: &Catalog,
        seeds: Vec<Seed>,
        inboxes: &[(PartitionId, Arc<Inbox>)],
        elsewhere: &dyn Fn(PartitionId) -> Arc<dyn PeerLink>,
        replies: Arc<Replies>,
    ) -> Result<Process, String> {
        options.check()?;
        let here = |partition: PartitionId| inboxes.iter().find(|(other, _)| *other == partition);
        let destinations: Vec<Destination> = (0..options.partitions)
            .map(PartitionId)
            .map(|partition| match here(partition) {
                Some((_, inbox)) => Destination::Here(Arc::clone(inbox)),
                None => Destination::Elsewhere(elsewhere(partition)),
            })
            .collect();
        for seed in &seeds {
            if here(seed.partition).is_none() || seed.partition.0 >= options.partitions {
                return Err(format!("{} is not a partition of this process", seed.partition));
            }
        }
        if seeds.len() != inboxes.len() {
            return Err(format!(
                "{} partitions have rows and {} are to run here",
                seeds.len(),
                inboxes.len()
            ));
        }
        let started = Instant::now();
        let (mut locals, mut threads) = (Vec::new(), Vec::new());
        for Seed { partition, storage } in seeds {
            let configuration = NodeConfiguration {
                epoch_microseconds: options.epoch.as_micros() as u64,
                ..NodeConfiguration::new(partition, options.partitions)
            };
            let (_, inbox) = here(partition).ok_or_else(|| format!("{partition} has no inbox"))?;
            let gauges = Arc::new(Gauges::default());
            let runner = Partition {
                me: partition,
                node: node(options.engine, &configuration, catalog.clone(), storage),
                inbox: Arc::clone(inbox),
                destinations: destinations.clone(),
                replies: Arc::clone(&replies),
                gauges: Arc::clone(&gauges),
                started,
            };
            let thread = std::thread::Builder::new()
                .name(format!("ordain-{partition}"))
                .spawn(move || run(runner))
                .map_err(|error| format!("cannot start the thread of {partition}: {error}"))?;
            threads.push((partition, thread));
            locals.push(Local { partition, inbox: Arc::clone(inbox), gauges });
        }
        Ok(Process { options: options.clone(), locals, threads: Mutex::new(threads), destinations, replies })
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
        match self.destinations.get(to.index()) {
            Some(Destination::Here(inbox)) => inbox.request(requests),
            _ => Err(NotTaken::Stopped(requests)),
        }
    }

    /// The partitions that run here.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> + '_ {
        self.locals.iter().map(|local| local.partition)
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
        threads.iter().any(|(_, thread)| thread.is_finished())
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
    pub fn stop(&self) -> Result<(), String> {
        self.locals.iter().for_each(|local| local.inbox.stop());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = Vec::new();
        for (partition, thread) in threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => failures.push(failure.to_string()),
                Err(_) => failures.push(format!("the thread of {partition} panicked")),
            }
        }
        self.replies.end();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
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

/// Runs a partition to its end.
fn run(partition: Partition) -> Result<(), Failure> {
    let here = partition.destinations.iter().filter_map(|destination| match destination {
        Destination::Here(inbox) => Some(Arc::clone(inbox)),
        Destination::Elsewhere(_) => None,
    });
    let replies = Arc::clone(&partition.replies);
    let mut together = EndTogether { inboxes: here.collect(), replies, as_told: false };
    let result = partition.run();
    match &result {
        Ok(()) => together.as_told = true,
        Err(failure) => tracing::error!(%failure, "a partition has stopped"),
    }
    result
}
