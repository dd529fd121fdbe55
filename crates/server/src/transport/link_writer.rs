//! The threads of a link: one connects and writes, one reads acknowledgements.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tracing::{debug, info, warn};

use super::batch::FrameBatch;
use super::connection::{self, ConnectionError, FrameReader};
use super::frame::FrameKind;
use super::handshake::{Refusal, RefusalCode};
use super::limits::{HEARTBEAT_INTERVAL, RECONNECT_DELAY_MAX, RECONNECT_DELAY_MIN, SILENCE_TIME_MAX};
use super::link::{LINK_THREADS_MAX, LinkStatus, Phase, Shared};
use super::sync::{SpawnError, ThreadGroup, lock, wait, wait_timeout};

/// The writer thread: keeps a connection up until the link is closed or fails.
pub(crate) fn run(shared: &Arc<Shared>, threads: &ThreadGroup) {
    let mut delay = RECONNECT_DELAY_MIN;
    while shared.wants_connection() {
        // A peer that we have met cannot be met anew: see `is_final`.
        let had_met = shared.membership.hello_to(shared.process).known_incarnation != 0;
        let error = match connect(shared) {
            Ok(reader) => {
                delay = RECONNECT_DELAY_MIN;
                converse(shared, threads, reader)
            }
            Err(error) => error,
        };
        let mut state = lock(&shared.state);
        state.stream = None;
        if state.phase == Phase::Stopped || (state.phase == Phase::Closing && state.queue.messages() == 0) {
            break;
        }
        if shared.membership.has_sessions() {
            if matches!(error, ConnectionError::CannotResume { .. }) {
                shared.give_up_session(&mut state);
            }
        } else if is_final(&error, had_met) {
            warn!(process = shared.process, address = shared.address, %error, "link failed");
            state.status = LinkStatus::Failed { reason: error.to_string() };
            return;
        }
        drop(state);
        shared.report(&error);
        shared.pause(delay);
        delay = (delay * 2).min(RECONNECT_DELAY_MAX);
    }
    lock(&shared.state).status = LinkStatus::Closed;
}

/// Whether connecting again is of no use, as payloads are lost. A refusal by a peer that this process has never met is
/// not final: the peer remembers this process's predecessor and is about to be restarted too.
fn is_final(error: &ConnectionError, had_met: bool) -> bool {
    let restarted = |refusal: &Refusal| refusal.code == RefusalCode::ProcessRestarted;
    match error {
        ConnectionError::Refused(refusal) => had_met && restarted(refusal),
        ConnectionError::Rejected(refusal) => restarted(refusal),
        ConnectionError::CannotResume { .. } => true,
        _ => false,
    }
}

/// Opens a connection and finds out where to go on.
fn connect(shared: &Shared) -> Result<FrameReader, ConnectionError> {
    let stream = connection::connect(&shared.address)?;
    {
        let mut state = lock(&shared.state);
        if state.phase == Phase::Stopped {
            return Err(ConnectionError::Closing);
        }
        // From here on `stop` can end what this thread does with the socket.
        state.stream = Some(Arc::clone(&stream));
    }
    let hello = shared.membership.hello_to(shared.process);
    let (reader, answer) = connection::greet(stream, &hello)?;
    let meeting =
        shared.membership.check_answer(shared.process, &answer).map_err(ConnectionError::Rejected)?;
    let mut state = lock(&shared.state);
    if meeting.session > state.session {
        state.begin(meeting.session);
    }
    if meeting.session < state.session {
        return Err(ConnectionError::Superseded);
    }
    state.connection_session = meeting.session;
    let freed = state.queue.resume(answer.receive_next)?;
    shared.counts.acknowledged.add(freed as u64);
    shared.counts.connections.add(1);
    state.broken = false;
    state.progress_at = Instant::now();
    state.status = LinkStatus::Connected;
    drop(state);
    info!(process = shared.process, address = shared.address, next = answer.receive_next, "link connected");
    Ok(reader)
}

/// Writes payloads and reads acknowledgements until the connection breaks or the link ends.
fn converse(shared: &Arc<Shared>, threads: &ThreadGroup, mut reader: FrameReader) -> ConnectionError {
    let stream = Arc::clone(reader.stream());
    let reading = Arc::clone(shared);
    let name = format!("link-ack-{}", shared.process);
    let spawned = threads.spawn(name, LINK_THREADS_MAX, move || {
        let error = read_acknowledgements(&reading, &mut reader);
        lock(&reading.state).broken = true;
        // Wakes the writer, whether it waits for payloads or for the socket.
        let _ = reader.stream().shutdown(Shutdown::Both);
        reading.changed.notify_all();
        error
    });
    let handle = match spawned {
        Ok(handle) => handle,
        Err(SpawnError::System(error)) => return error.into(),
        Err(SpawnError::Full { .. }) => unreachable!("the previous reader has been joined"),
    };
    let written = write_payloads(shared, &stream);
    let _ = stream.shutdown(Shutdown::Both);
    // Joined and not only waited for: the thread must have left the group before the next one is started.
    let read = handle.join().expect("the reader of acknowledgements does not panic");
    // Both sides of a broken connection notice; the reader knows more, for example a refusal.
    match (read, written) {
        (ConnectionError::Ended, Err(error)) => error.into(),
        (error, _) => error,
    }
}

/// Writes what is queued, all that is there in one go, until the connection breaks or the link ends.
fn write_payloads(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    let mut payloads: Vec<Bytes> = Vec::new();
    let mut batch = FrameBatch::default();
    while let Some(first) = shared.wait_for_payloads(&mut payloads) {
        // Encoded without the lock: checksums take time that senders should not wait for.
        for (sequence, payload) in (first..).zip(payloads.drain(..)) {
            batch.push(FrameKind::Data, sequence, payload);
        }
        batch.write_to(stream)?;
    }
    Ok(())
}

fn read_acknowledgements(shared: &Shared, reader: &mut FrameReader) -> ConnectionError {
    let mut heard_at = Instant::now();
    let mut read = || -> Result<(), ConnectionError> {
        while let Some(frame) = reader.next_frame()? {
            match frame.kind {
                FrameKind::Ack => shared.acknowledge(frame.sequence)?,
                FrameKind::Heartbeat => {}
                FrameKind::Refusal => return Err(ConnectionError::Refused(Refusal::decode(&frame.payload))),
                kind @ (FrameKind::Hello | FrameKind::Data) => {
                    return Err(ConnectionError::Unexpected { kind });
                }
            }
        }
        if reader.fill(HEARTBEAT_INTERVAL)? {
            heard_at = Instant::now();
        }
        if heard_at.elapsed() > SILENCE_TIME_MAX {
            return Err(ConnectionError::Silent);
        }
        shared.check_progress()
    };
    loop {
        if let Err(error) = read() {
            return error;
        }
    }
}

impl Shared {
    fn wants_connection(&self) -> bool {
        let state = lock(&self.state);
        match state.phase {
            Phase::Open => true,
            Phase::Closing => state.queue.messages() > 0,
            Phase::Stopped => false,
        }
    }

    /// Waits for something to write and puts it into `batch`; returns the sequence of the first, or `None` if the
    /// connection or the link has ended.
    fn wait_for_payloads(&self, batch: &mut Vec<Bytes>) -> Option<u64> {
        let mut state = lock(&self.state);
        loop {
            let drained = state.phase == Phase::Closing && state.queue.messages() == 0;
            let superseded = state.connection_session != state.session || state.is_dropping;
            if state.broken || state.phase == Phase::Stopped || drained || superseded {
                return None;
            }
            if state.queue.has_unwritten() {
                break;
            }
            state.writer_waits = true;
            state = wait(&self.changed, state);
        }
        state.writer_waits = false;
        if !state.queue.has_unacknowledged() {
            state.progress_at = Instant::now();
        }
        let (first, again) = state.queue.take_batch(batch);
        self.counts.resent.add(again);
        Some(first)
    }

    fn acknowledge(&self, next: u64) -> Result<(), ConnectionError> {
        let mut state = lock(&self.state);
        if state.connection_session != state.session || state.is_dropping {
            return Err(ConnectionError::Superseded);
        }
        let freed = state.queue.acknowledge(next)?;
        if freed > 0 {
            state.progress_at = Instant::now();
            self.counts.acknowledged.add(freed as u64);
        }
        if state.phase == Phase::Closing && state.queue.messages() == 0 {
            self.changed.notify_all();
        }
        Ok(())
    }

    fn check_progress(&self) -> Result<(), ConnectionError> {
        let state = lock(&self.state);
        if state.queue.has_unacknowledged() && state.progress_at.elapsed() > SILENCE_TIME_MAX {
            return Err(ConnectionError::Unacknowledged);
        }
        Ok(())
    }

    /// Notes and logs why there is no connection: loudly what is new, quietly what was said before.
    fn report(&self, error: &ConnectionError) {
        let reason = error.to_string();
        let mut state = lock(&self.state);
        let known = matches!(&state.status, LinkStatus::Connecting { reason: known } if *known == reason);
        state.status = LinkStatus::Connecting { reason };
        drop(state);
        if known {
            debug!(process = self.process, address = self.address, %error, "link not connected");
        } else {
            warn!(process = self.process, address = self.address, %error, "link not connected, trying again");
        }
    }

    /// Waits before the next attempt to connect, unless the link ends.
    fn pause(&self, delay: Duration) {
        let deadline = Instant::now() + delay;
        let mut state = lock(&self.state);
        while state.phase != Phase::Stopped {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break;
            }
            state = wait_timeout(&self.changed, state, remaining);
        }
    }
}
