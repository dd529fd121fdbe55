//! The inbox of a partition: what others put in, and its thread takes out all at once.
//!
//! It has two lanes. Clients' requests are bounded by a count; when the lane is full they are given back, so that the client
//! learns of it. Peers' messages are bounded by the protocol itself (epochs in flight, transactions delivered); refusing one
//! would lose it, so the lane has a far limit whose breach stops the node with a message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ordain_db::message::{ClientRequest, Message};
use ordain_db::node::Event;
use ordain_db::position::PartitionId;

/// Most client requests that wait in an inbox.
pub const INBOX_REQUESTS_MAX: usize = 64 * 1024;

/// Most bytes of arguments that wait in an inbox.
pub const INBOX_REQUEST_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most peer messages that wait in an inbox. The protocol stays far below.
pub const INBOX_MESSAGES_MAX: usize = 4 * 1024 * 1024;

#[derive(Default)]
struct State {
    requests: Vec<ClientRequest>,
    messages: Vec<(PartitionId, Vec<Message>)>,
    message_count: usize,
    /// Bytes of the requests' arguments.
    request_bytes: usize,
    /// Whether the owner sleeps and must be woken.
    asleep: bool,
    /// Whether the owner had nothing under way when it went to sleep, and nothing has come since.
    idle: bool,
    /// How often the owner has taken something out.
    takes: u64,
    stopped: bool,
}

/// See the [module](self).
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    filled: Condvar,
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
    pub fn messages(&self, from: PartitionId, messages: Vec<Message>) {
        let mut state = self.lock();
        state.message_count += messages.len();
        assert!(
            state.message_count <= INBOX_MESSAGES_MAX,
            "more than {INBOX_MESSAGES_MAX} messages of peers wait: a partition does not keep up; this node stops"
        );
        if !state.stopped {
            state.messages.push((from, messages));
            self.wake(state);
        }
    }

    /// Moves everything into `events`; sleeps for at most `patience` while there is nothing. `idle` tells whether the owner has
    /// nothing under way. `false` once stopped.
    pub fn take(&self, patience: Option<Duration>, idle: bool, events: &mut Vec<Event>) -> bool {
        let mut state = self.lock();
        state.idle = idle && state.requests.is_empty() && state.messages.is_empty();
        while state.requests.is_empty() && state.messages.is_empty() && !state.stopped {
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
        state.takes += 1;
        let requests = std::mem::take(&mut state.requests);
        let messages = std::mem::take(&mut state.messages);
        (state.message_count, state.request_bytes) = (0, 0);
        let stopped = state.stopped;
        drop(state);
        for (from, messages) in messages {
            events.extend(messages.into_iter().map(|message| Event::Peer { from, message }));
        }
        if !requests.is_empty() {
            events.push(Event::Requests(requests));
        }
        !stopped
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
}
