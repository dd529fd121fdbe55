//! A client's way into a cluster over the network: one connection to each process.
//!
//! A connection that is lost is not opened again: its requests end with [`Error::Unavailable`], since nobody here can know
//! whether they took effect. Who wants to know connects again and sends the same requests again, under the same numbers; each
//! takes effect once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use ordain_db::error::Error;
use ordain_db::hash::FastSet;
use ordain_db::message::{ClientRequest, Reply, RequestId};
use ordain_db::position::PartitionId;
use ordain_db::procedure::Catalog;

use crate::cluster_file::ClusterFile;
use crate::connection::Connection;
use crate::inbox::NotTaken;
use crate::port::Port;
use crate::replies::{Replies, ReplySink};
use crate::transport::{ClientError, ClientReceiver, ClientSender, client};
use crate::wire::{ClientPayload, ServerPayload, Usage};

/// Most requests that wait in this process to be written to one connection.
const QUEUE_REQUESTS_MAX: usize = 64 * 1024;

/// How long a process may take to tell its usage.
const USAGE_PATIENCE: Duration = Duration::from_secs(10);

/// Connects to all processes of a cluster.
///
/// # Errors
/// When the catalog is not that of the cluster file's workload, or a process cannot be reached: says which and why.
pub fn connect(file: &ClusterFile, catalog: Catalog) -> Result<Connection, Error> {
    let cluster = RemoteCluster::connect(file, &catalog)?;
    Connection::new(Arc::new(cluster), catalog)
}

/// See the [module](self).
pub struct RemoteCluster {
    processes: Vec<Arc<RemoteProcess>>,
    /// The process of each partition.
    process_of: Vec<u16>,
    replies: Arc<Replies>,
}

/// The connection to one process.
struct RemoteProcess {
    name: String,
    state: Mutex<State>,
    /// Held by whoever writes. Those who find it taken leave their requests in the queue: they go out together.
    sender: Mutex<ClientSender>,
    replies: Arc<Replies>,
    next_token: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Requests that have not been written, with their partition.
    queue: Vec<(PartitionId, Vec<ClientRequest>)>,
    queued: usize,
    /// Requests without an answer.
    waiting: FastSet<RequestId>,
    /// Who waits to be told the usage.
    usage: BTreeMap<u64, SyncSender<Usage>>,
    /// Why the connection is gone.
    lost: Option<String>,
}

impl RemoteCluster {
    /// Connects to each process once.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the process and the reason.
    pub fn connect(file: &ClusterFile, catalog: &Catalog) -> Result<RemoteCluster, Error> {
        let fingerprint = file.fingerprint(catalog);
        let replies = Arc::new(Replies::default());
        let mut cluster = RemoteCluster {
            processes: Vec::new(),
            process_of: file.process_of_partitions(),
            replies: Arc::clone(&replies),
        };
        for entry in &file.processes {
            let unavailable =
                |problem: String| Error::Unavailable(format!("process {}: {problem}", entry.name));
            let (sender, receiver) = client::connect(&entry.address, fingerprint)
                .map_err(|error| unavailable(error.to_string()))?;
            let process = Arc::new(RemoteProcess {
                name: entry.name.clone(),
                state: Mutex::default(),
                sender: Mutex::new(sender),
                replies: Arc::clone(&replies),
                next_token: AtomicU64::new(0),
            });
            cluster.processes.push(Arc::clone(&process));
            std::thread::Builder::new()
                .name(format!("replies-{}", entry.name))
                .spawn(move || process.receive(receiver))
                .map_err(|error| unavailable(format!("cannot start a thread: {error}")))?;
        }
        Ok(cluster)
    }

    /// What each process tells about itself.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn usage(&self) -> Result<Vec<Usage>, String> {
        let asked: Vec<_> =
            self.processes.iter().map(|process| process.ask_usage()).collect::<Result<_, _>>()?;
        let deadline = Instant::now() + USAGE_PATIENCE;
        let told = self.processes.iter().zip(asked).map(|(process, answer)| {
            let patience = deadline.saturating_duration_since(Instant::now());
            answer.recv_timeout(patience).map_err(|_| {
                let lost = process.lock().lost.clone();
                let reason = lost.unwrap_or_else(|| format!("no answer for {USAGE_PATIENCE:?}"));
                format!("process {} did not tell its usage: {reason}", process.name)
            })
        });
        told.collect()
    }
}

impl Port for RemoteCluster {
    fn partitions(&self) -> u16 {
        self.process_of.len() as u16
    }

    fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        match self.process_of.get(to.index()) {
            Some(process) => self.processes[usize::from(*process)].request(to, requests),
            None => Err(NotTaken::Stopped(requests)),
        }
    }

    fn open(&self, number: u64, sink: Arc<dyn ReplySink>) {
        self.replies.open(number, sink);
    }

    fn close(&self, number: u64) {
        self.replies.close(number);
    }

    fn cpu(&self) -> Result<Duration, String> {
        let nanoseconds = self.usage()?.iter().map(|usage| usage.partitions_cpu_nanoseconds).sum();
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for RemoteCluster {
    fn drop(&mut self) {
        for process in &self.processes {
            // Its thread ends when the connection does. It is not waited for: it may be the one that drops this.
            process.lose("this side has closed it");
            process.sender.lock().unwrap_or_else(PoisonError::into_inner).close();
        }
    }
}

impl RemoteProcess {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        {
            let mut state = self.lock();
            if state.lost.is_some() {
                return Err(NotTaken::Stopped(requests));
            }
            if state.queued + requests.len() > QUEUE_REQUESTS_MAX {
                return Err(NotTaken::Full(requests));
            }
            state.waiting.extend(requests.iter().filter_map(ClientRequest::id));
            state.queued += requests.len();
            state.queue.push((to, requests));
        }
        self.write_queue();
        Ok(())
    }

    /// Writes what is queued, unless another thread is about to.
    fn write_queue(&self) {
        loop {
            let mut sender = match self.sender.try_lock() {
                Ok(sender) => sender,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // Whoever writes looks at the queue once more after letting go.
                Err(TryLockError::WouldBlock) => return,
            };
            loop {
                let queue = {
                    let mut state = self.lock();
                    state.queued = 0;
                    std::mem::take(&mut state.queue)
                };
                if queue.is_empty() {
                    break;
                }
                self.write(&mut sender, queue);
            }
            drop(sender);
            if self.lock().queue.is_empty() {
                return;
            }
        }
    }

    fn write(&self, sender: &mut ClientSender, queue: Vec<(PartitionId, Vec<ClientRequest>)>) {
        let mut payloads = Vec::new();
        for (to, requests) in joined(queue) {
            match ClientPayload::encode_requests(to, &requests) {
                Ok(encoded) => payloads.extend(encoded),
                Err(problem) => self.answer(requests, &Error::Invalid(problem.to_string())),
            }
        }
        if let Err(error) = sender.send(&payloads) {
            // The receiving half may know better why, and is about to say so; it does not hurt to be told twice.
            self.lose(&error.to_string());
        }
    }

    /// The thread that takes what the process says, until the connection ends.
    fn receive(&self, mut receiver: ClientReceiver) {
        let reason = loop {
            match receiver.receive() {
                Ok(payload) => match ServerPayload::decode(&payload) {
                    Ok(ServerPayload::Replies(replies)) => self.take_replies(replies),
                    Ok(ServerPayload::Usage { token, usage }) => {
                        if let Some(asked) = self.lock().usage.remove(&token) {
                            // Who asked may have given up.
                            let _ = asked.try_send(usage);
                        }
                    }
                    Err(problem) => break problem.to_string(),
                },
                Err(ClientError::Refused { reason, .. } | ClientError::Disconnected { reason, .. }) => {
                    break reason;
                }
                Err(error) => break error.to_string(),
            }
        };
        receiver.close();
        self.lose(&reason);
    }

    fn take_replies(&self, replies: Vec<Reply>) {
        {
            let mut state = self.lock();
            for reply in &replies {
                state.waiting.remove(&reply.request);
            }
        }
        self.replies.deliver(replies);
    }

    /// The connection is gone: whoever waits for an answer is told.
    fn lose(&self, reason: &str) {
        let waiting = {
            let mut state = self.lock();
            state.lost.get_or_insert_with(|| reason.to_owned());
            state.usage.clear();
            state.queue.clear();
            state.queued = 0;
            std::mem::take(&mut state.waiting)
        };
        let problem = format!(
            "the connection to process {} is lost ({reason}), and whether the request took effect is not known: connect again and send the same request, under the same number, to learn it",
            self.name
        );
        let replies = waiting
            .into_iter()
            .map(|request| Reply { request, outcome: Err(Error::Unavailable(problem.clone())) });
        self.replies.deliver(replies.collect());
    }

    fn answer(&self, requests: Vec<ClientRequest>, error: &Error) {
        let answered = requests.iter().filter_map(ClientRequest::id);
        self.take_replies(answered.map(|request| Reply { request, outcome: Err(error.clone()) }).collect());
    }

    fn ask_usage(&self) -> Result<mpsc::Receiver<Usage>, String> {
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let (asked, answer) = mpsc::sync_channel(1);
        {
            let mut state = self.lock();
            if let Some(reason) = &state.lost {
                return Err(format!("the connection to process {} is lost: {reason}", self.name));
            }
            state.usage.insert(token, asked);
        }
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send(&[ClientPayload::encode_usage(token)]).map_err(|error| error.to_string())?;
        drop(sender);
        // What others have left in the queue meanwhile.
        self.write_queue();
        Ok(answer)
    }
}

/// Puts requests for one partition together, where their order among those for others does not matter.
fn joined(queue: Vec<(PartitionId, Vec<ClientRequest>)>) -> Vec<(PartitionId, Vec<ClientRequest>)> {
    let mut groups: Vec<(PartitionId, Vec<ClientRequest>)> = Vec::new();
    for (to, requests) in queue {
        match groups.iter_mut().find(|(other, _)| *other == to) {
            Some((_, group)) => group.extend(requests),
            None => groups.push((to, requests)),
        }
    }
    groups
}
