//! The client's side of a connection: no threads of its own, two halves that block.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::batch::FrameBatch;
use super::connection::{self, ConnectionError, FrameReader};
use super::frame::FrameKind;
use super::handshake::{Hello, RefusalCode, Role};
use super::limits::*;

/// Why a client's connection cannot be made or used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// There is no connection yet, and nothing was sent.
    #[error("cannot connect to {address}: {reason}")]
    CannotConnect {
        /// The address given.
        address: String,
        /// What happened and what to do.
        reason: String,
    },
    /// The server does not want this connection, now or any more.
    #[error("{address} refused: {reason}")]
    Refused {
        /// The address given.
        address: String,
        /// For programs.
        code: RefusalCode,
        /// What happened and what to do.
        reason: String,
    },
    /// The connection is gone.
    #[error(
        "the connection to {address} is lost ({reason}): connect again; a request without a reply may have been executed or not"
    )]
    Disconnected {
        /// The address given.
        address: String,
        /// What happened.
        reason: String,
    },
    /// Nothing was sent; the connection is as it was.
    #[error("a message of {bytes} bytes is longer than the {FRAME_PAYLOAD_BYTES_MAX} allowed: split it")]
    TooLong {
        /// The length of the first message that is too long.
        bytes: usize,
    },
}

/// Connects to a process at `address` (`host:port`); the halves may be used by two threads. `cluster` is the fingerprint of
/// the cluster's configuration, which the server compares with its own, or 0 to connect to whatever cluster is there.
/// Takes a few seconds at most.
///
/// The connection lives until a half is told to `close`, or both are dropped. Neither has a thread.
///
/// # Errors
/// [`ClientError::CannotConnect`] or [`ClientError::Refused`].
pub fn connect(address: &str, cluster: u64) -> Result<(ClientSender, ClientReceiver), ClientError> {
    let hello = Hello { role: Role::Client, cluster, incarnation: 0, known_incarnation: 0, receive_next: 1 };
    let connected = connection::connect(address).and_then(|stream| connection::greet(stream, &hello));
    let (reader, _) = connected.map_err(|error| match client_error(address, error) {
        ClientError::Disconnected { address, reason } => ClientError::CannotConnect { address, reason },
        error => error,
    })?;
    let stream = Arc::clone(reader.stream());
    let sender =
        ClientSender { address: address.into(), stream, next: 1, batch: FrameBatch::default(), failed: None };
    let receiver = ClientReceiver {
        address: address.into(),
        reader,
        next: 1,
        received: Vec::new().into_iter(),
        heard_at: Instant::now(),
        failed: None,
    };
    Ok((sender, receiver))
}

fn client_error(address: &str, error: ConnectionError) -> ClientError {
    match error {
        ConnectionError::Refused(refusal) => {
            ClientError::Refused { address: address.into(), code: refusal.code, reason: refusal.reason }
        }
        error => ClientError::Disconnected { address: address.into(), reason: error.to_string() },
    }
}

/// The half that sends.
pub struct ClientSender {
    address: String,
    stream: Arc<TcpStream>,
    /// The sequence of the next message.
    next: u64,
    batch: FrameBatch,
    failed: Option<ClientError>,
}

impl ClientSender {
    /// Sends messages in one go, in order. Waits while the server holds this client up (back-pressure); returning does
    /// not mean that the server has them, only a reply does.
    ///
    /// A client that sends and never receives is disconnected once too many replies wait for it.
    ///
    /// # Errors
    /// [`ClientError::TooLong`], or [`ClientError::Disconnected`], which every later call repeats. The receiving half
    /// may know better why.
    pub fn send(&mut self, messages: &[Bytes]) -> Result<(), ClientError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if let Some(long) = messages.iter().find(|message| message.len() > FRAME_PAYLOAD_BYTES_MAX) {
            return Err(ClientError::TooLong { bytes: long.len() });
        }
        for message in messages {
            self.batch.push(FrameKind::Data, self.next, message.clone());
            self.next += 1;
        }
        self.batch.write_to(&*self.stream).map_err(|error| {
            let error =
                ClientError::Disconnected { address: self.address.clone(), reason: error.to_string() };
            self.failed = Some(error.clone());
            error
        })
    }

    /// Ends the connection, also for the other half.
    pub fn close(&self) {
        // It may have ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The half that receives.
pub struct ClientReceiver {
    address: String,
    reader: FrameReader,
    /// The sequence of the next message.
    next: u64,
    received: std::vec::IntoIter<Bytes>,
    heard_at: Instant,
    failed: Option<ClientError>,
}

impl ClientReceiver {
    /// Waits for the next message.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`], also if nothing at all was heard from the server for [`SILENCE_TIME_MAX`], or
    /// [`ClientError::Refused`] if the server said why. Every later call repeats it.
    pub fn receive(&mut self) -> Result<Bytes, ClientError> {
        loop {
            if let Some(message) = self.next_message(None)? {
                return Ok(message);
            }
        }
    }

    /// Waits for the next message for about `timeout`; `None` if none came.
    ///
    /// # Errors
    /// As [`ClientReceiver::receive`].
    pub fn receive_within(&mut self, timeout: Duration) -> Result<Option<Bytes>, ClientError> {
        self.next_message(Some(Instant::now() + timeout))
    }

    fn next_message(&mut self, deadline: Option<Instant>) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(message) = self.received.next() {
                return Ok(Some(message));
            }
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            let mut messages = Vec::new();
            let taken = self.reader.take_payloads(&mut self.next, &mut messages);
            let none = messages.is_empty();
            // Messages before an error are still handed out.
            self.received = messages.into_iter();
            let waited = taken.and_then(|()| if none { self.wait(deadline) } else { Ok(true) });
            match waited {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => self.failed = Some(client_error(&self.address, error)),
            }
        }
    }

    /// Waits for bytes until the deadline, or for a while if there is none.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<bool, ConnectionError> {
        // Without a deadline always the same timeout: to change the socket's costs a system call.
        let timeout = deadline
            .map_or(HEARTBEAT_INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
        let arrived = self.reader.fill(timeout)?;
        if arrived {
            self.heard_at = Instant::now();
        } else if self.heard_at.elapsed() > SILENCE_TIME_MAX {
            return Err(ConnectionError::Silent);
        }
        Ok(arrived)
    }

    /// Ends the connection, also for the other half.
    pub fn close(&self) {
        // It may have ended already.
        let _ = self.reader.stream().shutdown(Shutdown::Both);
    }
}
