//! The receiving end of a link: remembers, over all connections of the link, which payload comes next.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use bytes::Bytes;
use tracing::warn;

use super::connection::{ConnectionError, FrameReader, write_frame};
use super::counters::PeerCounts;
use super::frame::FrameKind;
use super::handshake::{Refusal, RefusalCode};
use super::limits::*;
use super::membership::Membership;
use super::receiver::Receiver;
use super::sync::{lock, wait_timeout};

/// What this process remembers of the link from one peer.
pub(crate) struct Incoming {
    process: u16,
    state: Mutex<State>,
    /// Notified when a delivery has ended.
    changed: Condvar,
    pub(crate) counts: PeerCounts,
}

struct State {
    /// The number of the session; see [`Membership`].
    session: u64,
    /// The sequence of the next payload of the session to deliver. All before it have been delivered.
    receive_next: u64,
    /// Counts the connections; only the latest may deliver.
    generation: u64,
    /// The latest connection.
    stream: Option<Arc<TcpStream>>,
    delivery: Delivery,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    None,
    /// A thread is inside the receiver.
    Running,
    /// The receiver panicked: nobody knows what it took.
    Panicked,
}

/// The right of one connection to deliver, until another takes over.
pub(crate) struct Attachment {
    generation: u64,
    session: u64,
    /// The sequence of the first payload that the peer is to send.
    pub(crate) receive_next: u64,
}

impl Incoming {
    pub(crate) fn new(process: u16) -> Incoming {
        let state =
            State { session: 0, receive_next: 1, generation: 0, stream: None, delivery: Delivery::None };
        Incoming { process, state: Mutex::new(state), changed: Condvar::new(), counts: PeerCounts::default() }
    }

    /// Makes `stream` the connection of the link. The previous one, which the peer has given up, is cut; if it is inside
    /// the receiver, this waits: what is being delivered must not be asked for again. With a new session the count begins
    /// anew.
    pub(crate) fn attach(
        &self,
        stream: &Arc<TcpStream>,
        session: u64,
    ) -> Result<Attachment, ConnectionError> {
        let deadline = Instant::now() + TAKE_OVER_TIME_MAX;
        let mut state = lock(&self.state);
        if session < state.session {
            return Err(ConnectionError::Superseded);
        }
        state.generation += 1;
        let generation = state.generation;
        if let Some(previous) = state.stream.replace(Arc::clone(stream)) {
            let _ = previous.shutdown(Shutdown::Both);
        }
        loop {
            if state.generation != generation {
                return Err(ConnectionError::Superseded);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            let refusal = match state.delivery {
                Delivery::None => break,
                Delivery::Running if !remaining.is_zero() => {
                    state = wait_timeout(&self.changed, state, remaining);
                    continue;
                }
                Delivery::Running => {
                    Refusal::new(RefusalCode::Busy, "the process still works on earlier messages: try again")
                }
                Delivery::Panicked => {
                    let reason =
                        "the process failed while it took a message: see its log, restart the whole cluster";
                    Refusal::new(RefusalCode::Failed, reason)
                }
            };
            state.stream = None;
            return Err(ConnectionError::Rejected(refusal));
        }
        if session != state.session {
            (state.session, state.receive_next) = (session, 1);
        }
        self.counts.connections.add(1);
        Ok(Attachment { generation, session, receive_next: state.receive_next })
    }

    /// Reads, delivers and acknowledges until the connection ends or `closing` says so.
    pub(crate) fn converse(
        &self,
        attachment: &Attachment,
        reader: &mut FrameReader,
        membership: &Membership,
        receiver: &dyn Receiver,
        closing: impl Fn() -> bool,
    ) -> ConnectionError {
        let mut acknowledger = Acknowledger::new(attachment.receive_next);
        let mut next = attachment.receive_next;
        let mut payloads = Vec::with_capacity(DELIVERY_MESSAGES_MAX);
        let mut step = || -> Result<(), ConnectionError> {
            let taken = reader.take_payloads(&mut next, &mut payloads);
            let full = payloads.len() == DELIVERY_MESSAGES_MAX;
            if !payloads.is_empty() {
                acknowledger.delivered_to = self.deliver(attachment, membership, receiver, &mut payloads)?;
            }
            taken?;
            if closing() {
                return Err(ConnectionError::Closing);
            }
            acknowledger.acknowledge_if_due(reader.stream())?;
            // A full delivery may have left payloads in the buffer.
            if full { Ok(()) } else { acknowledger.wait(reader) }
        };
        let error = loop {
            if let Err(error) = step() {
                break error;
            }
        };
        // Saves the peer from keeping, or sending again, what has been delivered. It may be gone; then nothing is lost.
        let _ = acknowledger.acknowledge(reader.stream());
        error
    }

    /// Hands payloads to the receiver, unless another connection has taken over; returns the next sequence.
    fn deliver(
        &self,
        attachment: &Attachment,
        membership: &Membership,
        receiver: &dyn Receiver,
        payloads: &mut Vec<Bytes>,
    ) -> Result<u64, ConnectionError> {
        {
            let mut state = lock(&self.state);
            if state.generation != attachment.generation {
                return Err(ConnectionError::Superseded);
            }
            assert!(state.delivery == Delivery::None, "only the latest connection delivers");
            state.delivery = Delivery::Running;
        }
        let count = payloads.len() as u64;
        let bytes: usize = payloads.iter().map(Bytes::len).sum();
        let guard = PanicGuard(self);
        let delivered = membership.deliver(self.process, attachment.session, || {
            receiver.peer_messages(self.process, payloads.drain(..));
        });
        std::mem::forget(guard);

        let mut state = lock(&self.state);
        state.delivery = Delivery::None;
        self.changed.notify_all();
        delivered?;
        self.counts.messages.add(count);
        self.counts.bytes.add(bytes as u64);
        state.receive_next += count;
        Ok(state.receive_next)
    }

    /// The connection has ended: frees its socket, if no other has taken over.
    pub(crate) fn detach(&self, attachment: &Attachment) {
        let mut state = lock(&self.state);
        if state.generation == attachment.generation {
            state.stream = None;
        }
    }
}

/// Dropped only if the receiver panics.
struct PanicGuard<'a>(&'a Incoming);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        warn!(process = self.0.process, "the receiver panicked: no more messages are taken from this peer");
        let mut state = lock(&self.0.state);
        state.delivery = Delivery::Panicked;
        state.stream = None;
        drop(state);
        self.0.changed.notify_all();
    }
}

/// Decides when to acknowledge: after [`ACK_MESSAGES_MAX`] payloads or [`ACK_DELAY`], and as a heartbeat when idle.
struct Acknowledger {
    /// The next payload expected; what is before it has been delivered.
    delivered_to: u64,
    /// What the peer was told last.
    acknowledged_to: u64,
    acknowledged_at: Instant,
    /// Whether the last wait for bytes was in vain. The short timeout is kept while traffic flows, as to change the
    /// socket's timeout costs a system call.
    idle: bool,
}

impl Acknowledger {
    fn new(receive_next: u64) -> Acknowledger {
        Acknowledger {
            delivered_to: receive_next,
            acknowledged_to: receive_next,
            acknowledged_at: Instant::now(),
            idle: true,
        }
    }

    fn acknowledge_if_due(&mut self, stream: &TcpStream) -> Result<(), ConnectionError> {
        let waiting = self.delivered_to - self.acknowledged_to;
        if waiting >= ACK_MESSAGES_MAX as u64 || (waiting > 0 && self.acknowledged_at.elapsed() >= ACK_DELAY)
        {
            self.acknowledge(stream)?;
        }
        Ok(())
    }

    fn acknowledge(&mut self, stream: &TcpStream) -> Result<(), ConnectionError> {
        write_frame(stream, FrameKind::Ack, self.delivered_to, Bytes::new())?;
        self.acknowledged_to = self.delivered_to;
        self.acknowledged_at = Instant::now();
        Ok(())
    }

    /// Waits for bytes, but no longer than until the next acknowledgement or heartbeat is due, which it sends.
    fn wait(&mut self, reader: &mut FrameReader) -> Result<(), ConnectionError> {
        let waiting = self.delivered_to > self.acknowledged_to;
        self.idle &= !waiting;
        let arrived = reader.fill(if self.idle { HEARTBEAT_INTERVAL } else { ACK_DELAY })?;
        if !arrived && (waiting || self.idle) {
            self.acknowledge(reader.stream())?;
        }
        self.idle = self.idle || (!arrived && !waiting);
        Ok(())
    }
}
