//! The inbox of a partition: what others put in, and its thread takes out all at once.
//!
//! It has three lanes. Clients' requests are bounded by a count; when the lane is full they are given back, so that the client
//! learns of it. Peers' messages are bounded by the protocol itself (epochs in flight, transactions delivered); refusing one
//! would lose it, so the lane has a far limit whose breach stops the node with a message. What the disk says is never refused:
//! there is at most one answer to each write that the partition has asked for. Nor is what the process itself says, which is
//! little.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ordain_db::message::{ClientRequest, Message};
use ordain_db::node::Event;
use ordain_db::position::NodeId;

use crate::look::{LOOK, look_for};

/// Most client requests that wait in an inbox.
pub const INBOX_REQUESTS_MAX: usize = 64 * 1024;

/// Most bytes of arguments that wait in an inbox.
pub const INBOX_REQUEST_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most peer messages that wait in an inbox. The protocol stays far below.
pub const INBOX_MESSAGES_MAX: usize = 4 * 1024 * 1024;

/// What comes over the link from a peer.
enum FromPeer {
    Messages(NodeId, Vec<Message>),
    /// The link begins anew: what comes after this is of the session with this number.
    Reset(NodeId, u64),
}

#[derive(Default)]
struct State {
    requests: Vec<ClientRequest>,
    peers: Vec<FromPeer>,
    message_count: usize,
    /// Bytes of the requests' arguments.
    request_bytes: usize,
    disk: Vec<Event>,
    /// The number of replicas for which the cluster has places now, if that has grown.
    replicas: Option<u16>,
    /// How often somebody has asked how the node's group stands, and of how many of these the owner knows.
    looks: u64,
    looks_taken: u64,
    /// Whether the owner sleeps and must be woken.
    asleep: bool,
    /// Whether the owner had nothing under way when it went to sleep, and nothing has come since.
    idle: bool,
    /// Whether what the owner waited for the last time came so soon that it need not have slept.
    came_soon: bool,
    /// How often the owner has taken something out.
    takes: u64,
    stopped: bool,
    /// Why the owner must stop.
    failure: Option<String>,
}

impl State {
    fn is_empty(&self) -> bool {
        self.requests.is_empty()
            && self.peers.is_empty()
            && self.disk.is_empty()
            && self.replicas.is_none()
            && self.looks == self.looks_taken
    }

    /// What has come from peers, but nothing that is behind a reset and something before it: what a node says in answer to
    /// that something must not go over the new link.
    fn take_from_peers(&mut self) -> Vec<FromPeer> {
        let is_reset = |item: &FromPeer| matches!(item, FromPeer::Reset(..));
        let resets = self.peers.iter().take_while(|item| is_reset(item)).count();
        let next_reset = self.peers[resets..].iter().position(is_reset);
        let rest = next_reset.map_or(Vec::new(), |messages| self.peers.split_off(resets + messages));
        let count = |item: &FromPeer| match item {
            FromPeer::Messages(_, messages) => messages.len(),
            FromPeer::Reset(..) => 0,
        };
        self.message_count = rest.iter().map(count).sum();
        std::mem::replace(&mut self.peers, rest)
    }
}

/// What the owner takes out.
#[derive(Default)]
pub struct Taken {
    /// For the node.
    pub events: Vec<Event>,
    /// Links that have begun anew, with the number of the new session: what is sent from now on is of it. Their
    /// [`Event::LinkReset`]s come before all that the peers said.
    pub sessions: Vec<(NodeId, u64)>,
    /// The number of replicas for which the cluster has places from now on. Its [`Event::Replicas`] is the first event, so
    /// that all others may name nodes of them.
    pub replicas: Option<u16>,
    /// The number of the last [look](Inbox::look) that somebody wants to be taken at the node's group.
    pub look: u64,
}

/// See the [module](self).
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    filled: Condvar,
    /// Whether something may be there that was not when the owner looked last.
    is_filled: AtomicBool,
    /// Set while a shutdown waits for the work under way: no new requests are taken.
    draining: AtomicBool,
}

/// Why requests were not taken; they come back.
#[derive(Debug)]
pub enum NotTaken {
    /// The lane is full: try again after some replies have come.
    Full(Vec<ClientRequest>),
    /// The partition is shutting down.
    Stopped(Vec<ClientRequest>),
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        state.idle = false;
        self.is_filled.store(true, Ordering::Release);
        if std::mem::take(&mut state.asleep) {
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Adds requests of clients.
    ///
    /// # Errors
    /// Gives all of them back when they do not fit or the partition stops.
    pub fn request(&self, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        let mut state = self.lock();
        if state.stopped || self.draining.load(Ordering::Relaxed) {
            return Err(NotTaken::Stopped(requests));
        }
        let bytes: usize = requests.iter().map(ClientRequest::payload_bytes).sum();
        if state.requests.len() + requests.len() > INBOX_REQUESTS_MAX
            || state.request_bytes + bytes > INBOX_REQUEST_BYTES_MAX
        {
            return Err(NotTaken::Full(requests));
        }
        state.request_bytes += bytes;
        if state.requests.is_empty() {
            state.requests = requests;
        } else {
            state.requests.extend(requests);
        }
        self.wake(state);
        Ok(())
    }

    /// Adds messages of a peer. After the partition has stopped they are dropped.
    ///
    /// # Panics
    /// When the far limit is passed: a message must not be lost, and memory not be filled.
    pub fn messages(&self, from: NodeId, messages: Vec<Message>) {
        let mut state = self.lock();
        state.message_count += messages.len();
        assert!(
            state.message_count <= INBOX_MESSAGES_MAX,
            "more than {INBOX_MESSAGES_MAX} messages of peers wait: a partition does not keep up; this node stops"
        );
        if !state.stopped {
            state.peers.push(FromPeer::Messages(from, messages));
            self.wake(state);
        }
    }

    /// Notes that the link with a peer begins anew. Numbers of sessions ascend.
    pub fn reset_link(&self, peer: NodeId, session: u64) {
        let mut state = self.lock();
        if !state.stopped {
            state.peers.push(FromPeer::Reset(peer, session));
            self.wake(state);
        }
    }

    /// Adds what the disk has done, leaving the buffer empty.
    pub fn disk_events(&self, events: &mut Vec<Event>) {
        let mut state = self.lock();
        state.disk.append(events);
        self.wake(state);
    }

    /// Adds something that this process says by itself.
    pub fn tell(&self, event: Event) {
        let mut state = self.lock();
        state.disk.push(event);
        self.wake(state);
    }

    /// The cluster has places for so many replicas now.
    pub fn grow(&self, replicas: u16) {
        let mut state = self.lock();
        state.replicas = Some(replicas);
        self.wake(state);
    }

    /// Asks the owner to tell how its group stands; the number of this wish. What is told with it, or a later one, is no older
    /// than this call.
    pub fn look(&self) -> u64 {
        let mut state = self.lock();
        state.looks += 1;
        let number = state.looks;
        self.wake(state);
        number
    }

    /// Moves what is there into `taken`; sleeps for at most `patience` while there is nothing. `idle` tells whether the owner
    /// has nothing under way. `false` once stopped.
    pub fn take(&self, patience: Option<Duration>, idle: bool, taken: &mut Taken) -> bool {
        let mut state = self.lock();
        state.idle = idle && state.is_empty();
        if state.is_empty() && !state.stopped && patience != Some(Duration::ZERO) {
            state = self.wait(state, patience);
        }
        state.takes += 1;
        let requests = std::mem::take(&mut state.requests);
        state.request_bytes = 0;
        let from_peers = state.take_from_peers();
        taken.replicas = state.replicas.take();
        state.looks_taken = state.looks;
        taken.look = state.looks;
        taken.events.extend(taken.replicas.map(Event::Replicas));
        taken.events.append(&mut state.disk);
        let stopped = state.stopped;
        drop(state);
        for item in from_peers {
            match item {
                FromPeer::Messages(from, messages) => {
                    taken.events.extend(messages.into_iter().map(|message| Event::Peer { from, message }));
                }
                FromPeer::Reset(peer, session) => {
                    taken.events.push(Event::LinkReset(peer));
                    taken.sessions.push((peer, session));
                }
            }
        }
        if !requests.is_empty() {
            taken.events.push(Event::Requests(requests));
        }
        !stopped
    }

    /// Waits until something is there, for about `patience`.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let begun = Instant::now();
        if state.came_soon && patience.is_none_or(|patience| patience > LOOK) {
            self.is_filled.store(false, Ordering::Relaxed);
            drop(state);
            look_for(|| self.is_filled.load(Ordering::Acquire));
            state = self.lock();
        }
        while state.is_empty() && !state.stopped {
            state.asleep = true;
            match patience {
                None => state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.filled.wait_timeout(state, patience);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                    break;
                }
            }
        }
        state.asleep = false;
        state.came_soon = begun.elapsed() < 2 * LOOK;
        state
    }

    /// If the owner has nothing under way, how often it has taken something out: unchanged while it stays so.
    pub fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        state.idle.then_some(state.takes)
    }

    /// Refuses new requests from now on; messages of peers are still taken.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Makes the owner's thread end.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        self.wake(state);
    }

    /// Makes the owner's thread end with an error: it cannot go on for this reason.
    pub fn fail(&self, reason: String) {
        self.lock().failure.get_or_insert(reason);
        self.stop();
    }

    /// Why the owner must stop, if it must.
    pub fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::message::Reached;
    use ordain_db::position::PartitionId;

    use super::*;

    const PEER: NodeId = NodeId { partition: PartitionId(1), replica: ordain_db::position::ReplicaId(0) };

    fn take(inbox: &Inbox) -> (Vec<&'static str>, Vec<u64>) {
        let mut taken = Taken::default();
        assert!(inbox.take(Some(Duration::ZERO), false, &mut taken));
        let name = |event: &Event| match event {
            Event::Requests(_) => "requests",
            Event::Peer { .. } => "message",
            Event::LinkReset(_) => "reset",
            Event::Replicas(_) => "replicas",
            _ => "disk",
        };
        let sessions = taken.sessions.iter().map(|(_, session)| *session).collect();
        (taken.events.iter().map(name).collect(), sessions)
    }

    #[test]
    fn nothing_is_taken_together_with_what_a_reset_separates_it_from() {
        let inbox = Inbox::default();
        inbox.reset_link(PEER, 1);
        inbox.messages(PEER, vec![Message::Alive(Reached::default()), Message::Alive(Reached::default())]);
        inbox.reset_link(PEER, 2);
        inbox.reset_link(PEER, 3);
        inbox.messages(PEER, vec![Message::Alive(Reached::default())]);
        inbox.disk_events(&mut vec![Event::Persisted(1)]);
        assert_eq!(take(&inbox), (vec!["disk", "reset", "message", "message"], vec![1]));
        assert_eq!(inbox.lock().message_count, 1);
        assert_eq!(take(&inbox), (vec!["reset", "reset", "message"], vec![2, 3]));
        assert_eq!(take(&inbox), (vec![], vec![]));
    }

    #[test]
    fn new_replicas_are_told_before_anything_of_them() {
        let inbox = Inbox::default();
        inbox.reset_link(PEER, 1);
        inbox.messages(PEER, vec![Message::Alive(Reached::default())]);
        inbox.grow(3);
        inbox.grow(4);
        let mut taken = Taken::default();
        assert!(inbox.take(Some(Duration::ZERO), false, &mut taken));
        assert_eq!(taken.replicas, Some(4));
        assert!(matches!(taken.events[0], Event::Replicas(4)));
        assert_eq!(taken.events.len(), 3);
        assert_eq!(take(&inbox), (vec![], vec![]));
    }

    #[test]
    fn who_wants_a_look_to_be_taken_wakes_the_owner_once() {
        let inbox = Inbox::default();
        let mut taken = Taken::default();
        assert_eq!((inbox.look(), inbox.look()), (1, 2));
        assert!(inbox.take(None, false, &mut taken), "it does not sleep");
        assert_eq!((taken.look, taken.events.len()), (2, 0));
        assert!(inbox.lock().is_empty());
        assert!(inbox.take(Some(Duration::ZERO), false, &mut taken));
        assert_eq!(taken.look, 2);
    }

    #[test]
    fn a_failure_ends_the_owner_and_the_first_reason_stays() {
        let inbox = Inbox::default();
        inbox.fail("the disk is gone".to_owned());
        inbox.fail("and more".to_owned());
        assert!(!inbox.take(None, false, &mut Taken::default()));
        assert_eq!(inbox.failure().as_deref(), Some("the disk is gone"));
    }
}
