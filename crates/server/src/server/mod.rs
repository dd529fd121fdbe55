//! A process of a cluster on the network: its partitions, its links to the other processes, and the door for clients.
//!
//! # Shutting down
//!
//! Without replicas no transaction commits while a process is missing. So the processes of such a cluster end together. One
//! that is told to stop takes no new requests and tells the others, which do the same. Each tells the others again when none
//! of its own clients waits for an answer, and goes on to take part in the transactions of theirs until all have said so, or
//! [`DRAIN_PATIENCE`] is over. Whoever waits then is told that the outcome is not known.
//!
//! With replicas a process ends alone. Its nodes that lead ask others to lead first, so that clients notice nothing; then it ends
//! when none of its own clients waits for an answer, or [`DRAIN_PATIENCE_REPLICATED`] is over.
//!
//! # Losing a peer
//!
//! Where nothing is kept, a peer that has restarted has lost what it was told: the process ends with that reason. Where a log
//! is kept, a *session* begins with it: the nodes on both sides are told to say again what the others need
//! ([`Event::LinkReset`](ordain_db::node::Event::LinkReset)).
//!
//! # Starting again
//!
//! A node may have to be made again from its disk, for example from a checkpoint that another replica has sent it
//! ([`Fatal::asks_for_restart`](ordain_db::error::Fatal::asks_for_restart)). Then the whole server ends and is started again,
//! with a new incarnation, within the same process of the operating system: see [`End`].

mod client;
mod front;
mod growth;
mod health;
mod layout;
mod lobby;
mod peers;
mod sql;
mod standing;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ordain_db::node::GroupStatus;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_db::procedure::Catalog;

use self::client::Clients;
pub use self::client::{CONNECTION_BYTES_MAX, CONNECTION_CLIENTS_MAX, CONNECTION_REQUESTS_MAX};
use self::front::Front;
use self::growth::Growth;
use self::layout::Layout;
pub use self::lobby::Lobby;
use self::peers::Peers;
use self::standing::{Asker, Canvass, belongs, is_removed};
use crate::caller::random_number;
use crate::cluster_file::{ClusterFile, port_of};
use crate::data_directory::DataDirectory;
use crate::http::HttpServer;
use crate::partition::Elsewhere;
use crate::process::{Inboxes, LocalNode, Process, StopError};
use crate::replies::Replies;
use crate::transport::{LinkStatus, Listener, ListenerOptions, Membership};
use crate::wire::{PeerPayload, Standing};

/// How long a shutdown waits for the requests that are under way.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

/// The same with replicas. Of a request that is under way while others take the lead, nobody here may ever hear again: its client
/// asks another replica.
const DRAIN_PATIENCE_REPLICATED: Duration = Duration::from_secs(2);

/// How long it then waits for what is on its way to peers and clients.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How long sessions of SQL are given to end.
const SQL_PATIENCE: Duration = Duration::from_secs(2);

/// How long nodes that lead are given to let others lead.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(1);

/// How often they are asked to: who is asked may not be far enough, or away.
const HAND_OVER_INTERVAL: Duration = Duration::from_millis(100);

/// How long a process goes on after its nodes have let others lead: several heartbeats.
const HAND_OVER_GRACE: Duration = Duration::from_millis(300);

/// How long nodes are given to tell how their groups stand; of those that do not, nothing is known.
const LOOK_PATIENCE: Duration = Duration::from_millis(500);

/// How long a node of a replicated cluster knows of no leader before the process asks whether it was removed.
const LEADERLESS_TIME_MAX: Duration = Duration::from_secs(3);

/// How long it then asks before it looks whether its nodes know of one by now.
const CANVASS_TIME_MAX: Duration = Duration::from_secs(5);

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

/// How a server has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It was told to.
    Stopped,
    /// A node has to be made again from its disk, for this reason: the server is to be started again.
    StartAgain(String),
    /// The replica was removed from the cluster: the data is no longer needed.
    Removed,
}

/// What a server is made of.
pub struct Parts {
    /// The cluster.
    pub file: ClusterFile,
    /// The process's number in it.
    pub number: u16,
    /// The tables and procedures.
    pub catalog: Catalog,
    /// The nodes that run here.
    pub nodes: Vec<LocalNode>,
    /// The directory in which they are kept, if they are.
    pub directory: Option<DataDirectory>,
    /// Where to take connections.
    pub socket: TcpListener,
}

/// See the [module](self).
pub struct Server {
    name: String,
    layout: Arc<Layout>,
    number: u16,
    process: Arc<Process>,
    peers: Arc<Peers>,
    clients: Arc<Clients>,
    front: Arc<Front>,
    listener: Listener,
    /// For clients of SQL.
    sql: Option<crate::sql::Listener>,
    /// For those who watch the process.
    http: Option<HttpServer>,
    notices: (Sender<Notice>, Receiver<Notice>),
}

impl Server {
    /// Starts a process of a cluster.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(parts: Parts) -> Result<Server, String> {
        let Parts { file, number, catalog, nodes, directory, socket } = parts;
        let entry = &file.processes[usize::from(number)];
        let layout = Arc::new(Layout::new(&file, number, &catalog));
        let inboxes = Process::inboxes(entry.nodes());
        let membership = Arc::new(membership(&layout, &inboxes)?);
        let peers = Arc::new(Peers::start(Arc::clone(&layout), Arc::clone(&membership))?);
        let replies = Arc::new(Replies::default());
        let standing = directory.as_ref().map(standing_of).unwrap_or_default();
        let to_peers = Arc::clone(&peers);
        let elsewhere: Elsewhere = Arc::new(move |node| to_peers.link_to(node));
        let process =
            Process::start(&file.options(), nodes, directory, &inboxes, elsewhere, Arc::clone(&replies))?;
        let process = Arc::new(process);
        let clients = Arc::new(Clients::new(file.partitions, inboxes, replies));
        let notices = mpsc::channel();
        let growth = Growth {
            layout: Arc::clone(&layout),
            membership: Arc::clone(&membership),
            peers: Arc::clone(&peers),
            process: Arc::clone(&process),
            directory: entry.data_directory.clone(),
            growing: Mutex::default(),
        };
        let front = Front::new(
            Arc::clone(&layout),
            growth,
            standing,
            Arc::clone(&process),
            Arc::clone(&clients),
            notices.0.clone(),
        );
        let front = Arc::new(front);
        let receiver = Arc::<Front>::clone(&front);
        let listener = Listener::start(socket, membership, receiver, ListenerOptions::default())
            .map_err(|error| format!("cannot start to listen: {error}"))?;
        let name = entry.name.clone();
        Ok(Server {
            name,
            layout,
            number,
            process,
            peers,
            clients,
            front,
            listener,
            sql: None,
            http: None,
            notices,
        })
    }

    /// Serves clients of SQL, too.
    #[must_use]
    pub fn with_sql(mut self, listener: Option<crate::sql::Listener>) -> Server {
        self.sql = listener;
        self
    }

    /// Tells over HTTP how it stands, too. To be called after [`Server::with_sql`].
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn with_http(mut self, socket: Option<&TcpListener>) -> Result<Server, String> {
        if let Some(socket) = socket {
            self.http =
                Some(health::start(socket, &self.process, &self.front, self.sql.as_ref(), &self.layout)?);
        }
        Ok(self)
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
    pub fn serve(self) -> Result<End, String> {
        let mut ready = false;
        let mut watch = RemovalWatch::default();
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
            if !ready && !self.process.replays() && self.reaches_enough() {
                ready = true;
                self.front.set_ready();
                tracing::info!(process = self.name, address = %self.address(), "ready");
                if let Err(problem) = self.open_sql() {
                    return self.fail(problem);
                }
            }
            if self.layout.is_replicated() {
                match watch.is_removed(&self.layout, &self.process) {
                    Ok(false) => {}
                    Ok(true) => return self.leave(),
                    Err(problem) => return self.fail(problem),
                }
            }
        }
    }

    /// Whether transactions can commit as far as this process sees: it reaches a majority of the replicas of each partition,
    /// which without replicas means all.
    fn reaches_enough(&self) -> bool {
        let file = self.layout.file();
        let statuses = self.peers.statuses();
        let reached =
            |process: u16| process == self.number || statuses.contains(&(process, LinkStatus::Connected));
        // Who votes, as far as a node here knows; one that has just joined does not yet.
        let groups: Vec<(NodeId, Vec<ReplicaId>)> = (self.process.groups())
            .filter_map(|(node, group)| Some((node, group?.voters)))
            .filter(|(_, voters)| !voters.is_empty())
            .collect();
        let all: Vec<ReplicaId> = (0..file.replicas()).map(ReplicaId).collect();
        (0..file.partitions).map(PartitionId).all(|partition| {
            let known = groups.iter().find(|(node, _)| node.partition == partition).or(groups.first());
            let voters = known.map_or(&all, |(_, voters)| voters);
            let nodes = voters.iter().map(|replica| NodeId { partition, replica: *replica });
            let there = nodes.filter(|node| file.process_of(*node).is_some_and(&reached)).count();
            there > voters.len() / 2
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
    fn shut_down(self, reason: &str) -> Result<End, String> {
        self.end_sql(SQL_PATIENCE);
        self.hand_over(reason);
        tracing::info!(process = self.name, reason, "shutting down: no new requests are taken");
        self.clients.drain();
        self.process.refuse_requests();
        self.peers.tell_all(&PeerPayload::encode_leaving());
        let patience = if self.layout.is_replicated() { DRAIN_PATIENCE_REPLICATED } else { DRAIN_PATIENCE };
        let deadline = Instant::now() + patience;
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
                // What would start again has been told to stop.
                return self.fail(problem).map(|_| End::Stopped);
            }
        }
        let left = self.clients.under_way();
        let name = self.name.clone();
        match self.end(CLOSE_PATIENCE) {
            Err(error) if !error.asks_for_restart => return Err(error.reason),
            _ => {}
        }
        if left > 0 {
            tracing::warn!(process = name, left, "stopped; requests were still under way after {patience:?}");
        } else {
            tracing::info!(process = name, "stopped");
        }
        Ok(End::Stopped)
    }

    /// With replicas, lets others lead where a node of this process does, and waits for that for a while.
    fn hand_over(&self, reason: &str) {
        let leads = || {
            let mut groups = self.process.groups_now(LOOK_PATIENCE).into_iter();
            groups.any(|(node, group)| group.is_some_and(|group| group.leader == Some(node.replica)))
        };
        if !self.layout.is_replicated() || !leads() {
            return;
        }
        tracing::info!(process = self.name, reason, "handing over leadership");
        let started = Instant::now();
        let mut asked: Option<Instant> = None;
        while leads() && self.problem().is_none() {
            if asked.is_none_or(|at| at.elapsed() > HAND_OVER_INTERVAL) {
                self.process.hand_over_leadership();
                asked = Some(Instant::now());
            }
            if started.elapsed() > HAND_OVER_PATIENCE || !self.reaches_enough() {
                tracing::warn!(process = self.name, "nobody took the leadership over; the others will elect");
                return;
            }
            std::thread::sleep(SHORT_TICK);
        }
        tracing::info!(process = self.name, after = ?started.elapsed(), "handed over leadership");
        // The others have sent requests to the leader that it was: it passes them on until they know the new one.
        std::thread::sleep(HAND_OVER_GRACE);
    }

    /// Ends since the replica was removed.
    fn leave(self) -> Result<End, String> {
        tracing::info!(process = self.name, "this replica was removed from the cluster: its process ends");
        self.end_sql(SQL_PATIENCE);
        self.clients.drain();
        match self.end(CLOSE_PATIENCE) {
            Err(error) if !error.asks_for_restart => Err(error.reason),
            _ => Ok(End::Removed),
        }
    }

    /// Whether no peer's client waits for anything; that of one that is out of reach waits in vain. With replicas they need
    /// not wait for this process.
    fn peers_have_finished(&self) -> bool {
        if self.layout.is_replicated() {
            return true;
        }
        let statuses = self.peers.statuses();
        let connected = statuses.iter().filter(|(_, status)| *status == LinkStatus::Connected);
        connected.map(|(peer, _)| *peer).all(|peer| self.front.has_finished(peer))
    }

    /// Ends at once. Clients that wait are told so.
    fn fail(self, reason: String) -> Result<End, String> {
        let is_of_a_node = self.process.has_failed();
        let name = self.name.clone();
        match self.end(CLOSE_PATIENCE) {
            Err(error) if error.asks_for_restart && is_of_a_node => Ok(End::StartAgain(error.reason)),
            ended => {
                let reason = match ended {
                    Ok(()) => reason,
                    Err(error) => format!("{reason}: {error}"),
                };
                tracing::error!(process = name, reason, "stopped");
                Err(reason)
            }
        }
    }

    fn open_sql(&self) -> Result<(), String> {
        let Some(listener) = &self.sql else { return Ok(()) };
        sql::open(listener, &self.layout.file(), &self.process, &self.layout.catalog)
    }

    /// Ends the sessions of SQL; their statements under way have so long to come to an end.
    fn end_sql(&self, patience: Duration) {
        let left = self.sql.as_ref().map_or(0, |listener| listener.close(patience));
        if left > 0 {
            tracing::warn!(
                process = self.name,
                left,
                "sessions of SQL wait for the database and were cut off"
            );
        }
    }

    /// Stops the partitions, then the links, then the listener.
    fn end(self, patience: Duration) -> Result<(), StopError> {
        self.peers.begin_to_end();
        let stopped = self.process.stop();
        // Whoever waited for the partitions knows by now that they have stopped.
        self.end_sql(patience);
        self.peers.close(patience);
        if let Err(error) = self.listener.close(patience) {
            tracing::warn!(%error, "listener closed");
        }
        stopped
    }
}

/// Finds out whether the replica was removed: a node that was may never hear of it, only no longer hear of a leader. Then the
/// other processes are asked.
#[derive(Default)]
struct RemovalWatch {
    /// Since when a node knows of no leader, or that it is no member.
    since: Option<Instant>,
    canvass: Option<(Canvass, Instant)>,
}

impl RemovalWatch {
    fn is_removed(&mut self, layout: &Layout, process: &Process) -> Result<bool, String> {
        let is_alone = |(node, group): (NodeId, Option<GroupStatus>)| {
            // One that knows of no members has just joined, and waits to be added.
            group.is_some_and(|group| {
                !group.voters.is_empty() && (group.leader.is_none() || !belongs(&group, node.replica))
            })
        };
        if !process.groups().any(is_alone) {
            *self = RemovalWatch::default();
            return Ok(false);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < LEADERLESS_TIME_MAX {
            return Ok(false);
        }
        let file = layout.file();
        if self.canvass.as_ref().is_none_or(|(_, begun)| begun.elapsed() > CANVASS_TIME_MAX) {
            // Begun anew now and then: what was said once may not be so any more.
            let canvass = Canvass::start(&file, layout.number, file.fingerprint(&layout.catalog))?;
            self.canvass = Some((canvass, Instant::now()));
        }
        let asker = Asker { process: layout.number, directory: 0, nodes: layout.nodes(layout.number) };
        let canvass = self.canvass.as_ref();
        Ok(canvass.is_some_and(|(canvass, _)| is_removed(&asker, &canvass.standings()) == Some(true)))
    }
}

/// How the process stands by its directory.
fn standing_of(directory: &DataDirectory) -> Standing {
    Standing {
        directory: directory.id(),
        established: directory.is_established(),
        founders: directory.founders().into_iter().collect(),
        groups: Vec::new(),
    }
}

/// What the transport knows of this process and its peers. Where a log is kept, peers may restart: the nodes here are told of
/// it.
fn membership(layout: &Arc<Layout>, inboxes: &Inboxes) -> Result<Membership, String> {
    let incarnation = random_number().map_err(|error| error.to_string())?;
    let (file, number) = (layout.file(), layout.number);
    let fingerprint = file.fingerprint(&layout.catalog);
    let membership = if file.is_durable() {
        let (layout, inboxes) = (Arc::clone(layout), inboxes.clone());
        let on_session = move |peer: u16, session: u64| {
            tracing::info!(peer, session, "a session begins");
            let nodes = layout.nodes(peer);
            for (_, inbox) in &inboxes {
                nodes.iter().for_each(|node| inbox.reset_link(*node, session));
            }
        };
        Membership::with_sessions(number, [], fingerprint, incarnation, Box::new(on_session))
    } else {
        Membership::new(number, [], fingerprint, incarnation)
    };
    for peer in 0..file.processes.len() as u16 {
        membership.add_peer(peer, layout.peer_fingerprint(peer));
    }
    Ok(membership)
}

/// What to do where something is no address.
const ADDRESS_ADVICE: &str = "give a host and a port, such as 127.0.0.1:7400";

/// Reads an address: a parser for a value on the command line.
///
/// # Errors
/// Says what one is.
pub fn address(text: &str) -> Result<String, String> {
    let is_address = port_of(text).is_some();
    is_address.then(|| text.to_owned()).ok_or_else(|| ADDRESS_ADVICE.to_owned())
}

/// Listens on an address that comes from this option.
///
/// # Errors
/// Says what to do.
pub fn listen(address: &str, option: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => "free the port, or choose another",
            // The operating system was not asked.
            _ if error.raw_os_error().is_none() => ADDRESS_ADVICE,
            _ => "choose another",
        };
        format!("cannot listen on {address}: {error}: {advice}: {option}")
    })
}
