//! A process of a cluster on the network: its partitions, its links to the other processes, and the door for clients.
//!
//! # Shutting down
//!
//! Without replicas no transaction commits while a process is missing. So the processes of such a cluster end together. One
//! that is told to stop takes no new requests and tells the others, which do the same. Each tells the others again when none
//! of its own clients waits for an answer, and goes on to take part in the transactions of theirs until all have said so, or
//! [`DRAIN_PATIENCE`] is over. Whoever waits then is told that the outcome is not known.
//!
//! With replicas a process ends alone, when none of its own clients waits for an answer.
//!
//! # Losing a peer
//!
//! Where nothing is kept, a peer that has restarted has lost what it was told: the process ends with that reason. Where a log
//! is kept, a *session* begins with it: the nodes on both sides are told to say again what the others need
//! ([`Event::LinkReset`](ordain_db::node::Event::LinkReset)).

mod client;
mod front;
mod peers;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_db::procedure::Catalog;

use self::client::Clients;
pub use self::client::{CONNECTION_BYTES_MAX, CONNECTION_CLIENTS_MAX, CONNECTION_REQUESTS_MAX};
use self::front::Front;
use self::peers::Peers;
use crate::caller::random_number;
use crate::cluster_file::{ClusterFile, ProcessEntry};
use crate::data_directory::DataDirectory;
use crate::process::{Inboxes, LocalNode, Process};
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
    file: ClusterFile,
    number: u16,
    process: Arc<Process>,
    peers: Arc<Peers>,
    clients: Arc<Clients>,
    front: Arc<Front>,
    listener: Listener,
    notices: (Sender<Notice>, Receiver<Notice>),
}

impl Server {
    /// Starts process `number` of the cluster with its nodes, and the directory in which they are kept.
    ///
    /// # Errors
    /// When its address cannot be listened on, or the operating system gives no thread.
    pub fn start(
        file: &ClusterFile,
        number: u16,
        catalog: &Catalog,
        nodes: Vec<LocalNode>,
        directory: Option<DataDirectory>,
    ) -> Result<Server, String> {
        let entry = &file.processes[usize::from(number)];
        let inboxes = Process::inboxes(entry.nodes());
        let membership = Arc::new(membership(file, number, catalog, &inboxes)?);
        let socket = listen(entry.listen())?;
        let peers = Arc::new(Peers::start(file, &membership)?);
        let replies = Arc::new(Replies::default());
        let elsewhere = |node: NodeId| peers.link_to(file.process_of(node).unwrap_or(u16::MAX));
        let process =
            Process::start(&file.options(), nodes, directory, &inboxes, &elsewhere, Arc::clone(&replies))?;
        let process = Arc::new(process);
        let clients = Arc::new(Clients::new(file.partitions, inboxes, replies));
        let notices = mpsc::channel();
        let front = Front::new(file, Arc::clone(&process), Arc::clone(&clients), notices.0.clone());
        let front = Arc::new(front);
        let receiver = Arc::<Front>::clone(&front);
        let listener = Listener::start(socket, membership, receiver, ListenerOptions::default())
            .map_err(|error| format!("cannot start to listen: {error}"))?;
        let (name, file) = (entry.name.clone(), file.clone());
        Ok(Server { name, file, number, process, peers, clients, front, listener, notices })
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
            if !ready && self.reaches_enough() {
                ready = true;
                self.front.set_ready();
                tracing::info!(process = self.name, address = %self.address(), "ready");
            }
        }
    }

    /// Whether transactions can commit as far as this process sees: it reaches a majority of the replicas of each partition,
    /// which without replicas means all.
    fn reaches_enough(&self) -> bool {
        let statuses = self.peers.statuses();
        let reached =
            |process: u16| process == self.number || statuses.contains(&(process, LinkStatus::Connected));
        let replicas = self.file.replicas();
        (0..self.file.partitions).map(PartitionId).all(|partition| {
            let nodes = (0..replicas).map(|replica| NodeId { partition, replica: ReplicaId(replica) });
            let there = nodes.filter(|node| self.file.process_of(*node).is_some_and(&reached)).count();
            there > usize::from(replicas) / 2
        })
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

    /// Whether no peer's client waits for anything; that of one that is out of reach waits in vain. With replicas they need
    /// not wait for this process.
    fn peers_have_finished(&self) -> bool {
        if self.file.replicas() > 1 {
            return true;
        }
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

/// What the transport knows of this process and its peers. Where a log is kept, peers may restart: the nodes here are told of
/// it.
fn membership(
    file: &ClusterFile,
    number: u16,
    catalog: &Catalog,
    inboxes: &Inboxes,
) -> Result<Membership, String> {
    let incarnation = random_number().map_err(|error| error.to_string())?;
    let numbers = 0..file.processes.len() as u16;
    let fingerprint = file.fingerprint(catalog);
    if !file.is_durable() {
        return Ok(Membership::new(number, numbers, fingerprint, incarnation));
    }
    let nodes: Vec<Vec<NodeId>> = file.processes.iter().map(ProcessEntry::nodes).collect();
    let inboxes = inboxes.clone();
    let on_session = move |peer: u16, session: u64| {
        tracing::info!(peer, session, "a session begins");
        for (_, inbox) in &inboxes {
            nodes[usize::from(peer)].iter().for_each(|node| inbox.reset_link(*node, session));
        }
    };
    Ok(Membership::with_sessions(number, numbers, fingerprint, incarnation, Box::new(on_session)))
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
