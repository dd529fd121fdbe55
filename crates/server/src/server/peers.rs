//! The links of a process to the others of its cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ordain_db::message::Message;
use ordain_db::position::NodeId;

use super::layout::Layout;
use crate::partition::PeerLink;
use crate::transport::{Link, LinkStatus, Membership, SendError};
use crate::wire::PeerPayload;

/// How long a partition that keeps nothing waits for room in the queue to a process that does not keep up or cannot be
/// reached. Messages must not be lost then, so the process gives up after that. (Where a log is kept, nobody waits.)
const QUEUE_PATIENCE: Duration = Duration::from_secs(30);

/// How long it waits before it looks again.
const QUEUE_PAUSE: Duration = Duration::from_millis(1);

/// See the [module](self).
pub struct Peers {
    layout: Arc<Layout>,
    membership: Arc<Membership>,
    /// By the number of the process. Empty once closed.
    links: RwLock<BTreeMap<u16, Link>>,
    /// Set when the process ends: what the queues do not take is dropped, as nothing will come of it.
    ending: AtomicBool,
    /// Whether a peer may restart, and what waits for it may be dropped.
    has_sessions: bool,
}

impl Peers {
    /// Starts a link to each other process.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn start(layout: Arc<Layout>, membership: Arc<Membership>) -> Result<Peers, String> {
        let has_sessions = membership.has_sessions();
        let links = RwLock::default();
        let peers = Peers { layout, membership, links, ending: AtomicBool::new(false), has_sessions };
        peers.connect_all()?;
        Ok(peers)
    }

    /// Starts the links that are missing: all at first, and those to new processes when the cluster has grown.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn connect_all(&self) -> Result<(), String> {
        let file = self.layout.file();
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        for process in self.membership.peers() {
            if links.contains_key(&process) || self.ending.load(Ordering::Relaxed) {
                continue;
            }
            let entry = &file.processes[usize::from(process)];
            let link = Link::start(Arc::clone(&self.membership), process, entry.address.clone());
            let link = link.map_err(|error| format!("cannot start the link to {}: {error}", entry.name))?;
            links.insert(process, link);
        }
        Ok(())
    }

    /// What each link is doing.
    pub fn statuses(&self) -> Vec<(u16, LinkStatus)> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        links.iter().map(|(process, link)| (*process, link.status())).collect()
    }

    /// Says something to all processes that take it.
    pub fn tell_all(&self, payload: &Bytes) {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        for (process, link) in links.iter() {
            if let Err(error) = link.send(payload.clone()) {
                tracing::debug!(process, %error, "a peer was not told");
            }
        }
    }

    /// The way to a node of another process.
    pub fn link_to(self: &Arc<Peers>, node: NodeId) -> Arc<dyn PeerLink> {
        // One that is in no process is sent nothing: there is no link with that number.
        let process = self.layout.file().process_of(node).unwrap_or(u16::MAX);
        Arc::new(ToProcess { peers: Arc::clone(self), process })
    }

    /// From now on nobody waits for room in a queue.
    pub fn begin_to_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Ends all links, waiting for what is on its way, but not much longer than `patience`.
    pub fn close(&self, patience: Duration) {
        self.begin_to_end();
        let deadline = Instant::now() + patience;
        let links = std::mem::take(&mut *self.links.write().unwrap_or_else(PoisonError::into_inner));
        for (process, link) in links {
            // The peer may end at the same time, and needs no more of what is on its way.
            if let Err(error) = link.close(deadline.saturating_duration_since(Instant::now())) {
                tracing::debug!(process, %error, "link closed");
            }
        }
    }

    fn send(&self, process: u16, payload: &Bytes) -> Result<(), SendError> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        links.get(&process).map_or(Err(SendError::Closed), |link| link.send(payload.clone()))
    }

    /// Sends in a session; never waits.
    fn send_in(&self, process: u16, session: u64, payload: &Bytes) -> Result<(), String> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        match links.get(&process).map(|link| link.send_in(session, payload.clone())) {
            Some(Err(error)) if !self.ending.load(Ordering::Relaxed) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Sends, waiting for room for a while.
    fn send_patiently(&self, process: u16, payload: &Bytes) -> Result<(), String> {
        let mut full_since: Option<Instant> = None;
        loop {
            match self.send(process, payload) {
                Ok(()) => return Ok(()),
                Err(_) if self.ending.load(Ordering::Relaxed) => return Ok(()),
                Err(full @ SendError::QueueFull { .. }) => {
                    if full_since.is_none() {
                        tracing::warn!(process, problem = %full, "a partition waits");
                    }
                    if full_since.get_or_insert_with(Instant::now).elapsed() > QUEUE_PATIENCE {
                        return Err(full.to_string());
                    }
                    std::thread::sleep(QUEUE_PAUSE);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

struct ToProcess {
    peers: Arc<Peers>,
    process: u16,
}

impl PeerLink for ToProcess {
    fn send(&self, session: u64, from: NodeId, to: NodeId, messages: Vec<Message>) -> Result<(), String> {
        let payloads =
            PeerPayload::encode_messages(from, to, &messages).map_err(|problem| problem.to_string())?;
        payloads.iter().try_for_each(|payload| match self.peers.has_sessions {
            true => self.peers.send_in(self.process, session, payload),
            false => self.peers.send_patiently(self.process, payload),
        })
    }
}
