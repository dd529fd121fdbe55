//! The server's side of a client connection: the queue of replies and the thread that writes them.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use tracing::{debug, warn};

use super::batch::FrameBatch;
use super::counters::ListenerCounts;
use super::error::SendError;
use super::frame::FrameKind;
use super::handshake::{Refusal, RefusalCode};
use super::limits::*;
use super::sync::{lock, wait_timeout};

/// A connected client, to send replies to. Cheap to clone; a clone kept after the client is gone costs a few hundred bytes.
#[derive(Clone)]
pub struct ClientHandle {
    shared: Arc<Shared>,
}

struct Shared {
    id: u64,
    address: SocketAddr,
    counts: Arc<ListenerCounts>,
    state: Mutex<State>,
    /// Notified when the writer has a reason to look at `state`.
    changed: Condvar,
}

struct State {
    /// Replies that the writer has not taken.
    queue: VecDeque<Bytes>,
    /// Sum of their lengths.
    bytes: usize,
    phase: Phase,
    /// Present until the phase is `Closed`, so that a handle kept for long keeps no socket.
    stream: Option<Arc<TcpStream>>,
    /// Whether the writer waits for replies: to wake it costs a system call.
    writer_waits: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The server closes: what is queued is still written.
    Draining,
    Closed,
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {} at {}", self.shared.id, self.shared.address)
    }
}

impl ClientHandle {
    pub(crate) fn new(
        id: u64,
        address: SocketAddr,
        stream: Arc<TcpStream>,
        counts: Arc<ListenerCounts>,
    ) -> ClientHandle {
        let state = State {
            queue: VecDeque::new(),
            bytes: 0,
            phase: Phase::Open,
            stream: Some(stream),
            writer_waits: false,
        };
        let shared = Shared { id, address, counts, state: Mutex::new(state), changed: Condvar::new() };
        ClientHandle { shared: Arc::new(shared) }
    }

    /// Identifies the connection: unique within the listener, and never used again.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Where the client connects from.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Queues a reply. Replies are sent in the order of the calls. Never waits for the network.
    ///
    /// # Errors
    /// - [`SendError::SlowClient`]: the queue is full, as the client does not read; it is disconnected by this call.
    /// - [`SendError::TooLong`]: above [`FRAME_PAYLOAD_BYTES_MAX`]; nothing is sent, the client stays connected.
    /// - [`SendError::Closed`]: the client is gone, or the listener closes.
    pub fn send(&self, payload: Bytes) -> Result<(), SendError> {
        let bytes = payload.len();
        if bytes > FRAME_PAYLOAD_BYTES_MAX {
            return Err(SendError::TooLong { bytes });
        }
        let mut state = lock(&self.shared.state);
        if state.phase != Phase::Open {
            return Err(SendError::Closed);
        }
        if state.queue.len() >= CLIENT_QUEUE_MESSAGES_MAX || state.bytes + bytes > CLIENT_QUEUE_BYTES_MAX {
            let (messages, bytes) = (state.queue.len(), state.bytes);
            drop(state);
            warn!(client = %self.shared.address, messages, bytes, "client does not read its replies: disconnected");
            self.shared.counts.slow_clients.add(1);
            self.disconnect();
            return Err(SendError::SlowClient);
        }
        state.bytes += bytes;
        state.queue.push_back(payload);
        let wake = std::mem::take(&mut state.writer_waits);
        drop(state);
        self.shared.counts.reply_messages.add(1);
        self.shared.counts.reply_bytes.add(bytes as u64);
        if wake {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Ends the connection at once; replies still queued are dropped. `client_gone` follows.
    pub fn disconnect(&self) {
        let mut state = lock(&self.shared.state);
        state.phase = Phase::Closed;
        state.bytes = 0;
        let queue = std::mem::take(&mut state.queue);
        if let Some(stream) = state.stream.take() {
            // Wakes reader and writer from the socket. It may be closed already; then they are awake.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        drop(queue);
    }

    /// No more replies are taken; the writer ends once it has written those queued.
    pub(crate) fn drain(&self) {
        let mut state = lock(&self.shared.state);
        if state.phase == Phase::Open {
            state.phase = Phase::Draining;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// The writer thread: writes replies, all that are queued in one go, until the connection ends.
    pub(crate) fn write_replies(&self, stream: &TcpStream) {
        let mut replies = Vec::new();
        let mut batch = FrameBatch::default();
        let mut sequence = 1;
        loop {
            match self.wait_for_replies(&mut replies) {
                Due::Replies => {
                    for reply in replies.drain(..) {
                        batch.push(FrameKind::Data, sequence, reply);
                        sequence += 1;
                    }
                }
                Due::Heartbeat => batch.push(FrameKind::Heartbeat, 0, Bytes::new()),
                Due::Farewell => {
                    let reason = "the server is shutting down: connect again later, or to another process";
                    batch.push(FrameKind::Refusal, 0, Refusal::new(RefusalCode::Closing, reason).encode());
                    let _ = batch.write_to(stream);
                    break;
                }
                Due::Nothing => break,
            }
            if let Err(error) = batch.write_to(stream) {
                debug!(client = %self.shared.address, %error, "client connection lost");
                break;
            }
        }
        self.disconnect();
    }

    fn wait_for_replies(&self, replies: &mut Vec<Bytes>) -> Due {
        let mut state = lock(&self.shared.state);
        if state.queue.is_empty() && state.phase == Phase::Open {
            state.writer_waits = true;
            // An early or spurious end of the wait means an early heartbeat, which does no harm.
            state = wait_timeout(&self.shared.changed, state, HEARTBEAT_INTERVAL);
            state.writer_waits = false;
        }
        match state.phase {
            Phase::Closed => return Due::Nothing,
            Phase::Draining if state.queue.is_empty() => return Due::Farewell,
            Phase::Open if state.queue.is_empty() => return Due::Heartbeat,
            Phase::Open | Phase::Draining => {}
        }
        let mut bytes = 0;
        while let Some(reply) = state.queue.front()
            && replies.len() < WRITE_BATCH_FRAMES_MAX
            && (replies.is_empty() || bytes + reply.len() <= WRITE_BATCH_BYTES_MAX)
        {
            bytes += reply.len();
            replies.extend(state.queue.pop_front());
        }
        state.bytes -= bytes;
        Due::Replies
    }
}

/// What the writer of replies is to do next.
enum Due {
    Replies,
    Heartbeat,
    Farewell,
    Nothing,
}
