//! The clients: each keeps one call under way, by the library's own connection, and notes what it was told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ordain::cluster_file::ClusterFile;
use ordain::db::error::{Error, Outcome};
use ordain::db::position::PartitionId;
use ordain::{Connection, RemoteCluster};
use ordain_workload::{Call, Generator, Mode, Part, Workload};

use super::ledger::{Ended, Ledger};

/// Clients that share their connections to the processes.
const SHARING: u32 = 8;

/// How long a call may be without an answer: the library gives up before.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// How long a client waits after it was refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// What a client saw.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) ledger: Ledger,
    /// When calls committed, in milliseconds since the start, with the home partition; ascending.
    pub(super) commits: Vec<(u32, u16)>,
    /// The longest time from a call to its answer.
    pub(super) slowest: Duration,
    /// The first answer of each kind that says that something was refused or is not known.
    pub(super) troubles: Vec<String>,
    /// What must not happen.
    pub(super) violations: Vec<String>,
}

/// See the [module](self).
pub(super) struct Clients {
    threads: Vec<JoinHandle<Seen>>,
    shared: Arc<Shared>,
}

struct Shared {
    stop: AtomicBool,
    /// Commits by client, so that it can be seen whether all go on.
    commits: Vec<AtomicU64>,
    started: Instant,
    /// When the next call may begin, over all clients.
    next: Mutex<Instant>,
    interval: Duration,
}

impl Clients {
    /// Starts clients that begin at most `rate` calls per second.
    ///
    /// # Errors
    /// When no process can be reached.
    pub(super) fn start(
        file: &ClusterFile,
        workload: &Arc<dyn Workload>,
        seed: u64,
        count: u32,
        rate: f64,
        started: Instant,
    ) -> Result<Clients, String> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            commits: (0..count).map(|_| AtomicU64::new(0)).collect(),
            started,
            next: Mutex::new(Instant::now()),
            interval: Duration::from_secs_f64(1.0 / rate),
        });
        let mut clients = Clients { threads: Vec::new(), shared };
        let mut cluster: Option<Arc<RemoteCluster>> = None;
        for number in 0..count {
            let remote = match &cluster {
                Some(remote) if number % SHARING != 0 => Arc::clone(remote),
                _ => {
                    let remote = RemoteCluster::connect(file, workload.catalog());
                    Arc::clone(cluster.insert(Arc::new(remote.map_err(|error| error.to_string())?)))
                }
            };
            let connection = Connection::new(remote, workload.catalog().clone());
            let home = PartitionId((number % u32::from(file.partitions)) as u16);
            // 0 is the number of rows that were loaded.
            let generator = workload.generator(seed, number + 1, Part::of(home, file.partitions));
            let mut client = Client {
                number,
                home,
                partitions: file.partitions,
                connection: connection.map_err(|error| error.to_string())?,
                generator: generator.map_err(|error| error.to_string())?,
                workload: Arc::clone(workload),
                shared: Arc::clone(&clients.shared),
                seen: Seen::default(),
            };
            let spawned = std::thread::Builder::new().name(format!("client-{number}")).spawn(move || {
                client.run();
                client.seen
            });
            clients.threads.push(spawned.map_err(|error| format!("cannot start a thread: {error}"))?);
        }
        Ok(clients)
    }

    /// How many calls of each client have committed.
    pub(super) fn commits(&self) -> Vec<u64> {
        self.shared.commits.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Makes no new calls, waits for the last answers, and tells what was seen.
    pub(super) fn finish(mut self) -> Seen {
        self.shared.stop.store(true, Ordering::SeqCst);
        let mut all = Seen::default();
        for thread in std::mem::take(&mut self.threads) {
            match thread.join() {
                Ok(seen) => all.add(seen),
                Err(_) => all.violations.push("a client panicked: see above".to_owned()),
            }
        }
        all.commits.sort_unstable();
        all
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // Threads that still wait end with their last answer, or with the program.
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.ledger.add(other.ledger);
        self.commits.extend(other.commits);
        self.slowest = self.slowest.max(other.slowest);
        self.violations.extend(other.violations);
        other.troubles.into_iter().for_each(|trouble| self.trouble(trouble));
    }

    fn trouble(&mut self, trouble: String) {
        if !self.troubles.contains(&trouble) && self.troubles.len() < 20 {
            self.troubles.push(trouble);
        }
    }
}

struct Client {
    number: u32,
    home: PartitionId,
    partitions: u16,
    connection: Connection,
    generator: Box<dyn Generator>,
    workload: Arc<dyn Workload>,
    shared: Arc<Shared>,
    seen: Seen,
}

impl Client {
    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            self.shared.wait_for_turn();
            if !self.call() {
                return;
            }
        }
    }

    /// Makes a call and waits for its answer; `false` if it is of no use to go on.
    fn call(&mut self) -> bool {
        let call = self.generator.next();
        let catalog = self.workload.catalog();
        let procedure = catalog.procedures.name(call.procedure);
        let begun = Instant::now();
        let outcome = match call.mode {
            Mode::Snapshot => self.read(&call),
            Mode::Ordered => match self.connection.submit(call.procedure, call.arguments.clone()) {
                Ok(pending) => pending.wait_for(ANSWER_PATIENCE),
                Err(error) => Some(Err(error)),
            },
        };
        let Some(outcome) = outcome else {
            let problem = "the library promises to give up before";
            let (number, home) = (self.number, self.home);
            self.seen
                .violations
                .push(format!("client {number} at {home} got no answer for {ANSWER_PATIENCE:?}: {problem}"));
            self.seen.ledger.note(procedure, &call, &Err(Error::Unavailable(String::new())));
            return false;
        };
        self.seen.slowest = self.seen.slowest.max(begun.elapsed());
        self.seen.ledger.note(procedure, &call, &outcome);
        match Ended::of(&outcome) {
            Ended::Committed => {
                let at = self.shared.started.elapsed().as_millis() as u32;
                self.seen.commits.push((at, self.home.0));
                self.shared.commits[self.number as usize].fetch_add(1, Ordering::Relaxed);
            }
            Ended::Aborted => {}
            Ended::Refused | Ended::Unknown => {
                if let Err(error) = outcome {
                    self.refused(&error);
                }
                std::thread::sleep(REFUSED_PAUSE);
            }
        }
        true
    }

    /// Makes a call over a snapshot of its own. A snapshot does not outlive a node that starts again: then the call is refused.
    fn read(&self, call: &Call) -> Option<Outcome> {
        let snapshot = match self.connection.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return Some(Err(error)),
        };
        let home = call.home_partition(self.partitions);
        let outcome =
            snapshot.submit(home, call.procedure, call.arguments.clone()).wait_for(ANSWER_PATIENCE)?;
        Some(outcome.map_err(|error| match error {
            Error::NotOpen(_) => Error::Busy(format!("the snapshot was lost: {error}")),
            error => error,
        }))
    }

    fn refused(&mut self, error: &Error) {
        self.seen.trouble(error.to_string());
        if let Error::Invalid(_) | Error::Exceeds(..) | Error::Acknowledged(_) = error {
            self.seen.violations.push(format!("client {} made a call that is right: {error}", self.number));
        }
    }
}

impl Shared {
    /// Waits until this client may begin a call.
    fn wait_for_turn(&self) {
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            // Calls that could not begin while nothing went on are not made up for.
            let at = (*next).max(Instant::now());
            *next = at + self.interval;
            at
        };
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
    }
}
