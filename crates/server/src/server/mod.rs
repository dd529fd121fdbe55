//! A process of a cluster on the network: its partitions, its links to the other processes, and the door for clients.
//!
//! # Shutting down
//!
//! Partitions are not replicated: no transaction commits while a process is missing. So the processes of a cluster end
//! together. One that is told to stop takes no new requests and tells the others, which do the same. Each tells the others
//! again when none of its own clients waits for an answer, and goes on to take part in the transactions of theirs until all
//! have said so, or [`DRAIN_PATIENCE`] is over. Whoever waits then is told that the outcome is not known.

mod client;
mod front;
mod peers;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use ordain_db::procedure::Catalog;

use self::client::Clients;
pub use self::client::{CONNECTION_BYTES_MAX, CONNECTION_CLIENTS_MAX, CONNECTION_REQUESTS_MAX};
use self::front::Front;
use self::peers::Peers;
use crate::caller::random_number;
use crate::cluster_file::ClusterFile;
use crate::process::{Process, Seed};
use crate::replies::Replies;
use crate::transport::{LinkStatus, Listener, ListenerOptions, Membership};
use crate::wire::PeerPayload;

/// How long a shutdown waits for the requests that are under way.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

/// How long it then waits for what is on its way to peers and clients.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How often the process looks after itself.
const TICK: Duration = Duration::from_millis(50);

/// How often it looks whether it is ready, or may end.
const SHORT_TICK: Duration = Duration::from_millis(2);

/// What makes a server end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// It has been told to, for this reason.
    Stop(String),
    /// It cannot go on, for this reason.
    Failed(String),
}

/// See the [module](self).
pub struct Server {
    name: String,
    process: Arc<Process>,
    peers: Arc<Peers>,
    clients: Arc<Clients>,
    front: Arc<Front>,
    listener: Listener,
    notices: (Sender<Notice>, Receiver<Notice>),
}

impl Server {
    /// Starts process `number` of the cluster with the rows of its partitions.
    ///
    /// # Errors
    /// When its address cannot be listened on, or the operating system gives no thread.
    pub fn start(
        file: &ClusterFile,
        number: u16,
        catalog: &Catalog,
        seeds: Vec<Seed>,
    ) -> Result<Server, String> {
        let entry = &file.processes[usize::from(number)];
        let incarnation = random_number().map_err(|error| error.to_string())?;
        let numbers = 0..file.processes.len() as u16;
        let membership = Arc::new(Membership::new(number, numbers, file.fingerprint(catalog), incarnation));
        let socket = listen(entry.listen())?;
        let peers = Arc::new(Peers::start(file, &membership)?);
        let inboxes = Process::inboxes(&entry.partitions());
        let replies = Arc::new(Replies::default());
        let process_of = file.process_of_partitions();
        let process = Process::start(
            &file.options(),
            catalog,
            seeds,
            &inboxes,
            &|partition| peers.link_to(process_of[partition.index()]),
            Arc::clone(&replies),
        )?;
        let process = Arc::new(process);
        let clients = Arc::new(Clients::new(file.partitions, inboxes, replies));
        let notices = mpsc::channel();
        let front = Front::new(file, Arc::clone(&process), Arc::clone(&clients), notices.0.clone());
        let front = Arc::new(front);
        let receiver = Arc::<Front>::clone(&front);
        let listener = Listener::start(socket, membership, receiver, ListenerOptions::default())
            .map_err(|error| format!("cannot start to listen: {error}"))?;
        Ok(Server { name: entry.name.clone(), process, peers, clients, front, listener, notices })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Takes notices, from signal handlers and the like.
    pub fn notices(&self) -> Sender<Notice> {
        self.notices.0.clone()
    }

    /// Serves until it is told to stop or cannot go on.
    ///
    /// # Errors
    /// Why it could not go on.
    pub fn serve(self) -> Result<(), String> {
        let mut ready = false;
        loop {
            match self.notices.1.recv_timeout(if ready { TICK } else { SHORT_TICK }) {
                Ok(Notice::Stop(reason)) => return self.shut_down(&reason),
                Ok(Notice::Failed(reason)) => return self.fail(reason),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Some(problem) = self.problem() {
                return self.fail(problem);
            }
            self.clients.close_snapshots_left();
            if !ready && self.peers.statuses().iter().all(|(_, status)| *status == LinkStatus::Connected) {
                ready = true;
                self.front.set_ready();
                tracing::info!(process = self.name, address = %self.address(), "ready");
            }
        }
    }

    /// What keeps the process from going on.
    fn problem(&self) -> Option<String> {
        if self.process.has_failed() {
            return Some("a partition has stopped".to_owned());
        }
        self.peers.statuses().into_iter().find_map(|(_, status)| match status {
            LinkStatus::Failed { reason } => Some(reason),
            _ => None,
        })
    }

    /// Ends in good order.
    fn shut_down(self, reason: &str) -> Result<(), String> {
        tracing::info!(process = self.name, reason, "shutting down: no new requests are taken");
        self.clients.drain();
        self.process.refuse_requests();
        self.peers.tell_all(&PeerPayload::encode_leaving());
        let deadline = Instant::now() + DRAIN_PATIENCE;
        let mut told = false;
        while Instant::now() < deadline {
            if !told && self.clients.under_way() == 0 {
                told = true;
                self.peers.tell_all(&PeerPayload::encode_finished());
            }
            if told && self.peers_have_finished() {
                break;
            }
            if let Ok(Notice::Failed(reason)) = self.notices.1.recv_timeout(SHORT_TICK) {
                return self.fail(reason);
            }
            if let Some(problem) = self.problem() {
                return self.fail(problem);
            }
        }
        let left = self.clients.under_way();
        let name = self.name.clone();
        self.end(CLOSE_PATIENCE)?;
        if left > 0 {
            tracing::warn!(
                process = name,
                left,
                "stopped; requests were still under way after {DRAIN_PATIENCE:?}"
            );
        } else {
            tracing::info!(process = name, "stopped");
        }
        Ok(())
    }

    /// Whether no peer's client waits for anything; that of one that is out of reach waits in vain.
    fn peers_have_finished(&self) -> bool {
        let statuses = self.peers.statuses();
        let connected = statuses.iter().filter(|(_, status)| *status == LinkStatus::Connected);
        connected.map(|(peer, _)| *peer).all(|peer| self.front.has_finished(peer))
    }

    /// Ends at once. Clients that wait are told so.
    fn fail(self, reason: String) -> Result<(), String> {
        tracing::error!(process = self.name, reason, "stopping");
        match self.end(CLOSE_PATIENCE) {
            Ok(()) => Err(reason),
            Err(failures) => Err(format!("{reason}: {failures}")),
        }
    }

    /// Stops the partitions, then the links, then the listener.
    fn end(self, patience: Duration) -> Result<(), String> {
        self.peers.begin_to_end();
        let stopped = self.process.stop();
        self.peers.close(patience);
        if let Err(error) = self.listener.close(patience) {
            tracing::warn!(%error, "listener closed");
        }
        stopped
    }
}

/// Listens on an address.
///
/// # Errors
/// Says what to do.
pub fn listen(address: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        format!("cannot listen on {address}: {error}: free the port, or change `address` or `listen` in the cluster file")
    })
}
