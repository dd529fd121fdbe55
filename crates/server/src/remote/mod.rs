//! A client's way into a cluster over the network: one connection to each process.
//!
//! Where nothing is kept, a connection that is lost is not opened again: its requests end with [`Error::Unavailable`], since
//! nobody here can know whether they took effect. Who wants to know connects again and sends the same requests again, under the
//! same numbers; each takes effect once.
//!
//! Where a log is kept, that is done here: see [`retries`].

pub mod direct;
mod process;
pub mod retries;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ordain_db::error::Error;
use ordain_db::message::{ClientRequest, Reply};
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_db::procedure::Catalog;

use self::process::RemoteProcess;
use self::retries::{Due, Retries};
use crate::cluster_file::ClusterFile;
use crate::connection::Connection;
use crate::inbox::NotTaken;
use crate::port::Port;
use crate::replies::{Replies, ReplySink};
use crate::transport::{ClientReceiver, client};
use crate::wire::Usage;

/// How long a process may take to tell its usage.
const USAGE_PATIENCE: Duration = Duration::from_secs(10);

/// The first wait before a process is connected to again; it doubles up to [`RECONNECT_DELAY_MAX`].
const RECONNECT_DELAY_MIN: Duration = Duration::from_millis(20);

/// The longest wait before a process is connected to again.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(1);

/// How long the thread that sends again sleeps when nothing is due.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Connects to all processes of a cluster; where a log is kept, to those that are there.
///
/// # Errors
/// When the catalog is not that of the cluster file's workload, or a process that is needed cannot be reached: says which and
/// why.
pub fn connect(file: &ClusterFile, catalog: Catalog) -> Result<Connection, Error> {
    let cluster = RemoteCluster::connect(file, &catalog)?;
    Connection::new(Arc::new(cluster), catalog)
}

/// See the [module](self).
pub struct RemoteCluster {
    shared: Arc<Shared>,
}

/// What the threads of the connections share.
struct Shared {
    processes: Vec<RemoteProcess>,
    /// By partition: the processes that run it, by replica.
    runs: Vec<Vec<u16>>,
    replies: Arc<Replies>,
    /// Requests without an answer, where they are sent again.
    retries: Option<Retries>,
    /// Ends of snapshots for which a process had no room.
    unclosed: Mutex<Vec<Unclosed>>,
    fingerprint: u64,
    closed: AtomicBool,
}

/// Ends of snapshots, the partition that they are for, and the process that is to hear of them.
type Unclosed = (u16, PartitionId, Vec<ClientRequest>);

impl RemoteCluster {
    /// Connects to each process once.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the process and the reason.
    pub fn connect(file: &ClusterFile, catalog: &Catalog) -> Result<RemoteCluster, Error> {
        RemoteCluster::connect_near(file, catalog, None)
    }

    /// The same for a client that is best served by one replica, as long as that serves it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the process and the reason.
    pub fn connect_near(
        file: &ClusterFile,
        catalog: &Catalog,
        near: Option<ReplicaId>,
    ) -> Result<RemoteCluster, Error> {
        let runs = (0..file.partitions).map(PartitionId).map(|partition| {
            let nodes = (0..file.replicas()).map(|replica| NodeId { partition, replica: ReplicaId(replica) });
            nodes.filter_map(|node| file.process_of(node)).collect()
        });
        let keeps = file.is_durable();
        let shared = Arc::new(Shared {
            processes: file.processes.iter().map(RemoteProcess::new).collect(),
            runs: runs.collect(),
            replies: Arc::new(Replies::default()),
            retries: keeps.then(|| Retries::new(file.partitions, near.map(ReplicaId::index))),
            unclosed: Mutex::default(),
            fingerprint: file.fingerprint(catalog),
            closed: AtomicBool::new(false),
        });
        let cluster = RemoteCluster { shared: Arc::clone(&shared) };
        let mut reached = 0;
        let mut problem = None;
        for (number, process) in shared.processes.iter().enumerate() {
            let receiver = match shared.connect_to(process) {
                Ok(receiver) => Some(receiver),
                Err(error) if keeps => {
                    problem = Some(error);
                    None
                }
                Err(error) => return Err(error),
            };
            reached += usize::from(receiver.is_some());
            let serving = Arc::downgrade(&shared);
            spawn(format!("replies-{}", process.name), move || serve(&serving, number, receiver))?;
        }
        if let Some(problem) = problem.filter(|_| reached == 0) {
            return Err(problem);
        }
        if keeps {
            let retrying = Arc::downgrade(&shared);
            spawn("retries".to_owned(), move || retry(&retrying))?;
        }
        Ok(cluster)
    }

    /// What each process tells about itself.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn usage(&self) -> Result<Vec<Usage>, String> {
        let processes = &self.shared.processes;
        let asked: Vec<_> = processes.iter().map(RemoteProcess::ask_usage).collect::<Result<_, _>>()?;
        let deadline = Instant::now() + USAGE_PATIENCE;
        let told = processes.iter().zip(asked).map(|(process, answer)| {
            let patience = deadline.saturating_duration_since(Instant::now());
            answer.recv_timeout(patience).map_err(|_| {
                let reason = process.lost().unwrap_or_else(|| format!("no answer for {USAGE_PATIENCE:?}"));
                format!("process {} did not tell its usage: {reason}", process.name)
            })
        });
        told.collect()
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let spawned = std::thread::Builder::new().name(name).spawn(run);
    spawned.map(|_| ()).map_err(|error| Error::Unavailable(format!("cannot start a thread: {error}")))
}

/// The thread of a process: takes what it says, and where a log is kept connects again when the connection is lost.
fn serve(shared: &Weak<Shared>, number: usize, mut receiver: Option<ClientReceiver>) {
    let mut delay = RECONNECT_DELAY_MIN;
    loop {
        let Some(strong) = shared.upgrade().filter(|shared| !shared.is_closed()) else { return };
        let connected = receiver.take().or_else(|| strong.connect_to(&strong.processes[number]).ok());
        drop(strong);
        match connected {
            Some(receiver) => {
                delay = RECONNECT_DELAY_MIN;
                receive(shared, number, receiver);
            }
            None => delay = (2 * delay).min(RECONNECT_DELAY_MAX),
        }
        match shared.upgrade() {
            Some(shared) if shared.retries.is_some() => {}
            _ => return,
        }
        std::thread::sleep(delay);
    }
}

/// Takes what a process says until the connection ends.
fn receive(shared: &Weak<Shared>, number: usize, mut receiver: ClientReceiver) {
    let reason = loop {
        let received = process::receive(&mut receiver);
        let Some(shared) = shared.upgrade() else { return };
        match received.and_then(|payload| shared.processes[number].take(&payload)) {
            Ok(Some(replies)) => shared.take_replies(replies),
            Ok(None) => {}
            Err(reason) => break reason,
        }
    };
    receiver.close();
    if let Some(shared) = shared.upgrade() {
        shared.lose(number, &reason);
    }
}

/// The thread that sends requests again.
fn retry(shared: &Weak<Shared>) {
    loop {
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_closed()) else { return };
        let Some(retries) = &shared.retries else { return };
        let Due { again, given_up } = retries.due(RETRY_PAUSE);
        for (to, request, elsewhere) in again {
            shared.send_somewhere(to, vec![request], elsewhere);
        }
        shared.replies.deliver(given_up);
        shared.close_left();
    }
}

impl Shared {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn connect_to(&self, process: &RemoteProcess) -> Result<ClientReceiver, Error> {
        let connected = client::connect(&process.address, self.fingerprint);
        let (sender, receiver) =
            connected.map_err(|error| Error::Unavailable(format!("process {}: {error}", process.name)))?;
        process.connected(sender);
        if self.is_closed() {
            process.close();
        }
        Ok(receiver)
    }

    /// Sends requests to a process that runs the partition, beginning so many places behind the one to ask first. Those that none takes
    /// wait to be sent again.
    fn send_somewhere(&self, to: PartitionId, mut requests: Vec<ClientRequest>, elsewhere: usize) {
        let (Some(runs), Some(retries)) = (self.runs.get(to.index()), &self.retries) else { return };
        let first = retries.preferred(to, runs.len()) + elsewhere;
        for step in 0..runs.len() {
            let place = (first + step) % runs.len();
            let process = runs[place];
            retries.sent(&mut requests, process, place);
            if requests.is_empty() {
                return;
            }
            match self.processes[usize::from(process)].request(to, requests) {
                Ok(()) => return,
                Err(NotTaken::Full(back) | NotTaken::Stopped(back)) => requests = back,
            }
        }
        retries.not_sent(&requests);
    }

    /// Ends snapshots. That is heard only by the process that has opened each for this client, and whom the client asks first may have changed
    /// since; one whose connection is gone has ended them.
    fn close_snapshots(&self, to: PartitionId, closing: &[ClientRequest]) {
        for process in self.runs.get(to.index()).into_iter().flatten() {
            self.close_at(*process, to, closing.to_vec());
        }
    }

    fn close_at(&self, process: u16, to: PartitionId, closing: Vec<ClientRequest>) {
        if let Err(NotTaken::Full(back)) = self.processes[usize::from(process)].request(to, closing) {
            self.lock_unclosed().push((process, to, back));
        }
    }

    /// Tries again what there was no room for.
    fn close_left(&self) {
        let unclosed = std::mem::take(&mut *self.lock_unclosed());
        unclosed.into_iter().for_each(|(process, to, closing)| self.close_at(process, to, closing));
    }

    fn lock_unclosed(&self) -> MutexGuard<'_, Vec<Unclosed>> {
        // It is whole between any two statements that could panic.
        self.unclosed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_replies(&self, replies: Vec<Reply>) {
        let replies = match &self.retries {
            Some(retries) => retries.take_replies(replies),
            None => replies,
        };
        self.replies.deliver(replies);
    }

    /// A connection is gone: its requests are sent elsewhere, or whoever waits for an answer is told.
    fn lose(&self, number: usize, reason: &str) {
        let process = &self.processes[number];
        let waiting = process.lose(reason);
        if let Some(retries) = &self.retries {
            if !self.is_closed() {
                tracing::info!(process = process.name, reason, "connection lost");
            }
            return retries.lost(number as u16);
        }
        let problem = format!(
            "the connection to process {} is lost ({reason}), and whether the request took effect is not known: connect again and send the same request, under the same number, to learn it",
            process.name
        );
        let replies = waiting
            .into_iter()
            .map(|request| Reply { request, outcome: Err(Error::Unavailable(problem.clone())) });
        self.replies.deliver(replies.collect());
    }
}

impl Port for RemoteCluster {
    fn partitions(&self) -> u16 {
        self.shared.runs.len() as u16
    }

    fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        let Some([first, ..]) = self.shared.runs.get(to.index()).map(Vec::as_slice) else {
            return Err(NotTaken::Stopped(requests));
        };
        match &self.shared.retries {
            None => self.shared.processes[usize::from(*first)].request(to, requests),
            Some(retries) => {
                let is_end = |request: &ClientRequest| matches!(request, ClientRequest::CloseSnapshot(_));
                let (closing, requests): (Vec<_>, Vec<_>) = requests.into_iter().partition(is_end);
                if !closing.is_empty() {
                    self.shared.close_snapshots(to, &closing);
                }
                if !retries.begin(to, &requests) {
                    return Err(NotTaken::Full(requests));
                }
                self.shared.send_somewhere(to, requests, 0);
                Ok(())
            }
        }
    }

    fn open(&self, number: u64, sink: Arc<dyn ReplySink>) {
        self.shared.replies.open(number, sink);
    }

    fn close(&self, number: u64) {
        self.shared.replies.close(number);
    }

    fn cpu(&self) -> Result<Duration, String> {
        let nanoseconds = self.usage()?.iter().map(|usage| usage.partitions_cpu_nanoseconds).sum();
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for RemoteCluster {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        for process in &self.shared.processes {
            // Its thread ends when the connection does. It is not waited for: it may be the one that drops this.
            let waiting = process.lose("this side has closed it");
            let problem =
                "this side has closed the connection, and whether the request took effect is not known";
            let reply = |request| Reply { request, outcome: Err(Error::Unavailable(problem.to_owned())) };
            self.shared.replies.deliver(waiting.into_iter().map(reply).collect());
            process.close();
        }
    }
}
