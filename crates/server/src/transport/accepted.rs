//! What happens on one accepted connection: the handshake, then the life of a peer or of a client.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use tracing::{debug, info, warn};

use super::client_handle::ClientHandle;
use super::connection::{ConnectionError, FrameReader, refuse, write_frame};
use super::frame::FrameKind;
use super::handshake::{Hello, Refusal, RefusalCode, Role};
use super::limits::*;
use super::listener::Shared;
use super::membership::Meeting;
use super::sync::{SpawnError, ThreadGroup};

/// Serves a connection until it ends.
pub(crate) fn serve(
    shared: &Shared,
    threads: &ThreadGroup,
    number: u64,
    stream: Arc<TcpStream>,
    address: SocketAddr,
) {
    let mut reader = FrameReader::new(Arc::clone(&stream));
    let result = receive_hello(shared, &mut reader).and_then(|(hello, meeting)| match hello.role {
        Role::Peer { process } => serve_peer(shared, &mut reader, (&hello, meeting), process, address),
        Role::Client => serve_client(shared, threads, &mut reader, (&hello, meeting), number, address),
    });
    if let Err(error) = result {
        shared.counts.refused.add(1);
        if shared.is_closing() || matches!(error, ConnectionError::Ended) {
            // A probe that only looks whether the port is open, or one of those that closing cuts.
            debug!(%address, %error, "connection ended before its handshake");
        } else {
            warn!(%address, %error, "connection refused");
        }
        if let Some(refusal) = error.to_refusal() {
            refuse(&stream, &refusal);
        }
    }
}

/// Tells the other side that there is no thread for it. Runs on the accepting thread, so it does not wait for the reason to
/// be read; a few hundred bytes always fit the buffer of a fresh socket.
pub(crate) fn refuse_at_once(stream: &TcpStream, reason: &str) {
    let reason = format!("too many connections ({reason}): close some, or connect to another process");
    let refusal = Refusal::new(RefusalCode::TooManyConnections, reason);
    let _ = write_frame(stream, FrameKind::Refusal, 0, refusal.encode());
}

fn receive_hello(shared: &Shared, reader: &mut FrameReader) -> Result<(Hello, Meeting), ConnectionError> {
    let deadline = Instant::now() + HANDSHAKE_TIME_MAX;
    let stream = reader.stream();
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(HANDSHAKE_TIME_MAX))?;
    let frame = reader.handshake_frame(deadline)?;
    if frame.kind != FrameKind::Hello {
        return Err(ConnectionError::Unexpected { kind: frame.kind });
    }
    let hello = Hello::decode(&frame.payload)?;
    let meeting = shared.membership.admit(&hello).map_err(ConnectionError::Rejected)?;
    Ok((hello, meeting))
}

/// Sends this side's hello, which completes the handshake.
fn answer(
    shared: &Shared,
    reader: &mut FrameReader,
    (hello, meeting): (&Hello, Meeting),
    receive_next: u64,
) -> Result<(), ConnectionError> {
    let answer = shared.membership.answer(hello, meeting, receive_next);
    write_frame(reader.stream(), FrameKind::Hello, 0, answer.encode())?;
    reader.handshake_done();
    Ok(())
}

/// An error means that the handshake was not completed.
fn serve_peer(
    shared: &Shared,
    reader: &mut FrameReader,
    greeted: (&Hello, Meeting),
    process: u16,
    address: SocketAddr,
) -> Result<(), ConnectionError> {
    let incoming = shared.incoming(process).expect("only peers are admitted as peers");
    let attachment = incoming.attach(reader.stream(), greeted.1.session)?;
    let answered = answer(shared, reader, greeted, attachment.receive_next);
    if answered.is_ok() {
        info!(process, %address, next = attachment.receive_next, "peer connected");
        let (membership, receiver) = (&*shared.membership, &*shared.receiver);
        let error = incoming.converse(&attachment, reader, membership, receiver, || shared.is_closing());
        match error {
            ConnectionError::Ended | ConnectionError::Superseded | ConnectionError::Closing => {
                info!(process, %address, %error, "peer disconnected");
            }
            error => warn!(process, %address, %error, "peer disconnected"),
        }
    }
    incoming.detach(&attachment);
    answered
}

/// An error means that the handshake was not completed.
fn serve_client(
    shared: &Shared,
    threads: &ThreadGroup,
    reader: &mut FrameReader,
    greeted: (&Hello, Meeting),
    number: u64,
    address: SocketAddr,
) -> Result<(), ConnectionError> {
    let _seat = Seat::take(&shared.clients_connected, shared.options.client_connections_max)?;
    answer(shared, reader, greeted, 1)?;
    // From here on a client that does not read is noticed by its full queue.
    reader.stream().set_write_timeout(None)?;

    let client = ClientHandle::new(number, address, Arc::clone(reader.stream()), Arc::clone(&shared.counts));
    let writer = {
        let (client, stream) = (client.clone(), Arc::clone(reader.stream()));
        // The seats bound the number of these threads.
        threads.spawn(format!("reply-{}", shared.membership.process()), usize::MAX, move || {
            client.write_replies(&stream);
        })
    };
    let writer = match writer {
        Ok(writer) => writer,
        Err(SpawnError::System(error)) => return Err(error.into()),
        Err(SpawnError::Full { .. }) => unreachable!("there is no limit to reach"),
    };
    shared.counts.clients.add(1);
    // Ends the writer also if the receiver panics.
    let disconnect = Disconnect(&client);
    shared.receiver.client_connected(&client);
    let error = receive_messages(shared, reader, &client);
    match &error {
        ConnectionError::Ended | ConnectionError::Closing => debug!(%address, %error, "client disconnected"),
        _ => warn!(%address, %error, "client disconnected"),
    }
    if shared.is_closing() {
        client.drain();
    } else {
        client.disconnect();
    }
    writer.join().expect("the writer of replies does not panic");
    drop(disconnect);
    discard_unread(reader.stream());
    shared.receiver.client_gone(&client);
    Ok(())
}

fn receive_messages(shared: &Shared, reader: &mut FrameReader, client: &ClientHandle) -> ConnectionError {
    let mut next = 1;
    let mut payloads = Vec::with_capacity(DELIVERY_MESSAGES_MAX);
    let mut step = || -> Result<(), ConnectionError> {
        let taken = reader.take_payloads(&mut next, &mut payloads);
        let full = payloads.len() == DELIVERY_MESSAGES_MAX;
        if !payloads.is_empty() {
            shared.counts.client_messages.add(payloads.len() as u64);
            shared.counts.client_bytes.add(payloads.iter().map(Bytes::len).sum::<usize>() as u64);
            shared.receiver.client_messages(client, payloads.drain(..));
        }
        taken?;
        if shared.is_closing() {
            return Err(ConnectionError::Closing);
        }
        // A full delivery may have left payloads in the buffer.
        if !full {
            reader.fill(HEARTBEAT_INTERVAL)?;
        }
        Ok(())
    };
    loop {
        if let Err(error) = step() {
            return error;
        }
    }
}

/// Reads what the client sent last, after the socket has been shut: closing it with bytes unread would reset the connection,
/// and replies still on their way would be lost.
fn discard_unread(mut stream: &TcpStream) {
    let mut unread = vec![0; READ_BYTES];
    // Bounded, as a client may go on sending for ever.
    for _ in 0..64 {
        if !stream.read(&mut unread).is_ok_and(|count| count > 0) {
            break;
        }
    }
}

/// One of the limited number of clients.
struct Seat<'a>(&'a AtomicUsize);

impl Seat<'_> {
    fn take(taken: &AtomicUsize, seats: usize) -> Result<Seat<'_>, ConnectionError> {
        let take = |count: usize| (count < seats).then_some(count + 1);
        if taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return Ok(Seat(taken));
        }
        let reason =
            format!("too many client connections ({seats}): close some, or connect to another process");
        Err(ConnectionError::Rejected(Refusal::new(RefusalCode::TooManyConnections, reason)))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Disconnects the client when dropped.
struct Disconnect<'a>(&'a ClientHandle);

impl Drop for Disconnect<'_> {
    fn drop(&mut self) {
        self.0.disconnect();
    }
}
