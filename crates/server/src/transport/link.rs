//! An outgoing link: payloads to one peer process, in order, exactly once, over any number of TCP connections.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{fmt, io};

use bytes::Bytes;
use tracing::warn;

use super::counters::{LinkCounters, LinkCounts};
use super::error::{CloseError, SendError};
use super::limits::{CLOSE_GRACE_TIME, FRAME_PAYLOAD_BYTES_MAX};
use super::link_writer;
use super::membership::Membership;
use super::send_queue::SendQueue;
use super::sync::{SpawnError, ThreadGroup, lock};

/// A link has its writer, and while connected a reader of acknowledgements.
pub(crate) const LINK_THREADS_MAX: usize = 2;

/// The sending end of a link to one peer process. There is at most one per peer and process, for the whole life of the
/// process: the sequence of its payloads is what the peer remembers of it.
///
/// Dropping a link abandons what has not been sent, without waiting; see [`Link::close`].
pub struct Link {
    shared: Arc<Shared>,
    threads: ThreadGroup,
}

/// What a link is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkStatus {
    /// Payloads flow.
    Connected,
    /// It tries to connect; `send` goes on until the queue is full.
    Connecting {
        /// Why the last connection or attempt ended; empty before the first.
        reason: String,
    },
    /// It has given up for good: the peer lost what it had received.
    Failed {
        /// What happened and what to do.
        reason: String,
    },
    /// It has been closed.
    Closed,
}

impl fmt::Display for LinkStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkStatus::Connected => write!(f, "connected"),
            LinkStatus::Connecting { reason } if reason.is_empty() => write!(f, "connecting"),
            LinkStatus::Connecting { reason } => write!(f, "connecting: {reason}"),
            LinkStatus::Failed { reason } => write!(f, "failed: {reason}"),
            LinkStatus::Closed => write!(f, "closed"),
        }
    }
}

/// What the link's handle and its threads share.
pub(crate) struct Shared {
    pub(crate) membership: Arc<Membership>,
    pub(crate) process: u16,
    pub(crate) address: String,
    pub(crate) state: Mutex<State>,
    /// Notified when the writer has a reason to look at `state`.
    pub(crate) changed: Condvar,
    pub(crate) counts: LinkCounts,
}

pub(crate) struct State {
    pub(crate) queue: SendQueue,
    /// The number of the session to which the queue belongs; see [`Membership`].
    pub(crate) session: u64,
    /// The number of the session to which the current connection belongs.
    pub(crate) connection_session: u64,
    /// Whether what is sent is dropped, as the session has been given up or there was none yet.
    pub(crate) is_dropping: bool,
    pub(crate) phase: Phase,
    pub(crate) status: LinkStatus,
    /// The current connection.
    pub(crate) stream: Option<Arc<TcpStream>>,
    /// Whether the reader of acknowledgements has given the current connection up.
    pub(crate) broken: bool,
    /// Whether the writer waits for payloads: to wake it costs a system call, to see that it is awake does not.
    pub(crate) writer_waits: bool,
    /// When the peer last acknowledged something, or had nothing left to acknowledge.
    pub(crate) progress_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Takes payloads.
    Open,
    /// Takes none, sends what it has, then ends.
    Closing,
    /// Ends now.
    Stopped,
}

impl Link {
    /// Starts a link to `process`, which listens on `address` (`host:port`, resolved anew for each connection). The peer
    /// need not be up: the link connects, again and again, until it is closed.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    ///
    /// # Panics
    /// If `process` is not a peer in `membership`.
    pub fn start(membership: Arc<Membership>, process: u16, address: impl Into<String>) -> io::Result<Link> {
        assert!(membership.is_peer(process), "a link leads to another process of the cluster");
        let state = State {
            queue: SendQueue::new(),
            session: 0,
            connection_session: 0,
            is_dropping: membership.has_sessions(),
            phase: Phase::Open,
            status: LinkStatus::Connecting { reason: String::new() },
            stream: None,
            broken: false,
            writer_waits: false,
            progress_at: Instant::now(),
        };
        let shared = Arc::new(Shared {
            membership,
            process,
            address: address.into(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            counts: LinkCounts::default(),
        });
        let link = Link { shared: Arc::clone(&shared), threads: ThreadGroup::default() };
        let threads = link.threads.clone();
        let spawned = link
            .threads
            .spawn(format!("link-{process}"), LINK_THREADS_MAX, move || link_writer::run(&shared, &threads));
        match spawned {
            Ok(_) => Ok(link),
            Err(SpawnError::System(error)) => Err(error),
            Err(full @ SpawnError::Full { .. }) => Err(io::Error::other(full)),
        }
    }

    /// Queues a payload. It reaches the peer after all sent before it, once, unless the peer loses its memory or this
    /// process ends. Never waits for the network. Two threads that send at once agree on some order.
    ///
    /// # Errors
    /// - [`SendError::QueueFull`]: the peer does not keep up or is unreachable; send again later.
    /// - [`SendError::TooLong`]: above [`FRAME_PAYLOAD_BYTES_MAX`].
    /// - [`SendError::LinkFailed`]: the peer lost its memory; the cluster must be restarted.
    /// - [`SendError::Closed`]: [`Link::stop`] was called.
    pub fn send(&self, payload: Bytes) -> Result<(), SendError> {
        let bytes = payload.len();
        if bytes > FRAME_PAYLOAD_BYTES_MAX {
            return Err(SendError::TooLong { bytes });
        }
        let process = self.shared.process;
        let mut state = lock(&self.shared.state);
        if let LinkStatus::Failed { reason } = &state.status {
            return Err(SendError::LinkFailed { process, reason: reason.clone() });
        }
        if state.phase != Phase::Open {
            return Err(SendError::Closed);
        }
        if state.queue.push(payload).is_err() {
            let (messages, bytes) = (state.queue.messages(), state.queue.bytes());
            return Err(SendError::QueueFull { process, messages, bytes });
        }
        // Counted under the lock, so that no snapshot shows more acknowledged than sent.
        self.shared.counts.messages.add(1);
        self.shared.counts.bytes.add(bytes as u64);
        let wake = std::mem::take(&mut state.writer_waits);
        drop(state);
        if wake {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Queues a payload of a session, for a link to a process that may restart. It reaches the peer after all of the session
    /// that was sent before it, once, as long as the session lasts. Never waits for the network.
    ///
    /// What is of an earlier session is dropped. A payload for which the queue has no room ends the session: all of it is
    /// dropped, and a new session begins when the peer can be reached.
    ///
    /// # Errors
    /// - [`SendError::TooLong`]: above [`FRAME_PAYLOAD_BYTES_MAX`].
    /// - [`SendError::Closed`]: [`Link::stop`] was called.
    pub fn send_in(&self, session: u64, payload: Bytes) -> Result<(), SendError> {
        let bytes = payload.len();
        if bytes > FRAME_PAYLOAD_BYTES_MAX {
            return Err(SendError::TooLong { bytes });
        }
        let mut state = lock(&self.shared.state);
        if state.phase != Phase::Open {
            return Err(SendError::Closed);
        }
        if session > state.session {
            state.begin(session);
        }
        if session < state.session || state.is_dropping {
            self.shared.counts.dropped.add(1);
            return Ok(());
        }
        if state.queue.push(payload).is_err() {
            let (messages, bytes) = (state.queue.messages(), state.queue.bytes());
            warn!(
                process = self.shared.process,
                messages,
                bytes,
                "the peer does not keep up or cannot be reached: what waits for it is dropped, and told anew when it is back"
            );
            self.shared.counts.dropped.add(messages as u64 + 1);
            self.shared.give_up_session(&mut state);
            drop(state);
            self.shared.changed.notify_all();
            return Ok(());
        }
        self.shared.counts.messages.add(1);
        self.shared.counts.bytes.add(bytes as u64);
        let wake = std::mem::take(&mut state.writer_waits);
        drop(state);
        if wake {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// What the link has done so far.
    pub fn counters(&self) -> LinkCounters {
        self.shared.counts.snapshot()
    }

    /// What the link is doing.
    pub fn status(&self) -> LinkStatus {
        lock(&self.shared.state).status.clone()
    }

    /// The peer.
    pub fn process(&self) -> u16 {
        self.shared.process
    }

    /// Ends the link at once, without waiting; `send` fails from now on. What the peer has not received is lost.
    pub fn stop(&self) {
        let mut state = lock(&self.shared.state);
        state.phase = Phase::Stopped;
        if let Some(stream) = &state.stream {
            // Wakes both threads from the socket. It may be closed already; then they are awake.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits until the peer has acknowledged everything, but not much longer than `timeout`, then ends the link and its
    /// threads.
    ///
    /// # Errors
    /// [`CloseError`] if the peer did not acknowledge everything in time.
    pub fn close(self, timeout: Duration) -> Result<(), CloseError> {
        {
            let mut state = lock(&self.shared.state);
            if state.phase == Phase::Open {
                state.phase = Phase::Closing;
            }
        }
        self.shared.changed.notify_all();
        let mut threads = self.threads.wait_until_empty(Instant::now() + timeout);
        if threads > 0 {
            self.stop();
            threads = self.threads.wait_until_empty(Instant::now() + CLOSE_GRACE_TIME);
        }
        let undelivered_messages = lock(&self.shared.state).queue.messages();
        if undelivered_messages == 0 && threads == 0 {
            return Ok(());
        }
        Err(CloseError { undelivered_messages, threads })
    }
}

impl State {
    /// A session begins: what is queued is of the one before.
    pub(crate) fn begin(&mut self, session: u64) {
        self.queue = SendQueue::new();
        self.session = session;
        self.is_dropping = false;
    }
}

impl Shared {
    /// Gives up what is queued, and the connection. The next one begins a session.
    pub(crate) fn give_up_session(&self, state: &mut State) {
        state.queue = SendQueue::new();
        state.is_dropping = true;
        self.membership.give_up_session(self.process);
        if let Some(stream) = &state.stream {
            // It may be closed already; then its threads are awake.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop();
    }
}
