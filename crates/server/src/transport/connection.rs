//! One TCP connection seen as a stream of frames, and the handshake on it: what links, listener and clients share.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::frame::{Decoder, Frame, FrameError, FrameKind};
use super::handshake::{Hello, HelloError, Refusal, RefusalCode};
use super::limits::*;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("{0}: check that the process runs and that the network reaches it")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error("the other side closed the connection")]
    Ended,
    #[error("the connection ended inside a frame")]
    EndedInsideFrame,
    #[error("the handshake was not complete after {} s", HANDSHAKE_TIME_MAX.as_secs())]
    HandshakeTimeout,
    #[error("a frame did not arrive whole within {} s: check the network", FRAME_ARRIVAL_TIME_MAX.as_secs())]
    FrameTimeout,
    #[error("nothing was heard for {} s: check the process and the network", SILENCE_TIME_MAX.as_secs())]
    Silent,
    #[error("nothing was acknowledged for {} s: the process is overloaded or stuck", SILENCE_TIME_MAX.as_secs())]
    Unacknowledged,
    #[error(
        "a frame of kind {kind:?} may not come at this point: run the same release of Ordain on both sides"
    )]
    Unexpected { kind: FrameKind },
    #[error("payload {found} came where {expected} was due: run the same release of Ordain on both sides")]
    OutOfOrder { expected: u64, found: u64 },
    #[error(
        "the other side expects payload {next}, but {first} is the oldest kept here and {last} the last that was sent: payloads are lost, restart the whole cluster"
    )]
    CannotResume { next: u64, first: u64, last: u64 },
    #[error(
        "the other side acknowledges payload {acknowledged}, but {last} was the last that was sent: run the same release of Ordain on both sides"
    )]
    AcknowledgedUnsent { acknowledged: u64, last: u64 },
    /// The other side refused this one.
    #[error("{0}")]
    Refused(Refusal),
    /// This side refused the other.
    #[error("{0}")]
    Rejected(Refusal),
    #[error("another connection of the same process took over")]
    Superseded,
    #[error("this side is closing")]
    Closing,
}

impl ConnectionError {
    /// What to tell a stranger whose handshake failed with this error, if it is worth telling.
    pub(crate) fn to_refusal(&self) -> Option<Refusal> {
        match self {
            ConnectionError::Rejected(refusal) => Some(refusal.clone()),
            ConnectionError::Frame(_) | ConnectionError::Hello(_) | ConnectionError::Unexpected { .. } => {
                Some(Refusal::new(RefusalCode::Malformed, self.to_string()))
            }
            ConnectionError::HandshakeTimeout => {
                Some(Refusal::new(RefusalCode::HandshakeTimeout, self.to_string()))
            }
            _ => None,
        }
    }
}

/// Reads frames from a socket.
pub(crate) struct FrameReader {
    stream: Arc<TcpStream>,
    decoder: Decoder,
    scratch: Vec<u8>,
    /// The socket's read timeout as last set: setting it costs a system call.
    timeout: Option<Duration>,
    /// Since when a frame has been arriving.
    inside_frame_since: Option<Instant>,
}

impl FrameReader {
    /// A reader with the limits that hold before the handshake.
    pub(crate) fn new(stream: Arc<TcpStream>) -> FrameReader {
        let scratch = vec![0; HANDSHAKE_READ_BYTES];
        FrameReader { stream, decoder: Decoder::new(), scratch, timeout: None, inside_frame_since: None }
    }

    /// Lifts the limits that hold before the handshake.
    pub(crate) fn handshake_done(&mut self) {
        self.decoder.handshake_done();
        self.scratch = vec![0; READ_BYTES];
    }

    pub(crate) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    /// The next whole frame among what has been read.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, ConnectionError> {
        let frame = self.decoder.next_frame()?;
        if frame.is_some() {
            self.inside_frame_since = None;
        }
        Ok(frame)
    }

    /// Waits up to `timeout` for bytes and reads them; `false` if none came. To be called when
    /// [`next_frame`](Self::next_frame) has nothing left.
    pub(crate) fn fill(&mut self, timeout: Duration) -> Result<bool, ConnectionError> {
        let inside_frame = self.decoder.is_inside_frame();
        if inside_frame {
            let since = *self.inside_frame_since.get_or_insert_with(Instant::now);
            if since.elapsed() > FRAME_ARRIVAL_TIME_MAX {
                return Err(ConnectionError::FrameTimeout);
            }
        }
        // 0 would mean "for ever" to the socket.
        let timeout = timeout.max(Duration::from_millis(1));
        if self.timeout != Some(timeout) {
            self.stream.set_read_timeout(Some(timeout))?;
            self.timeout = Some(timeout);
        }
        loop {
            match (&*self.stream).read(&mut self.scratch) {
                Ok(0) if inside_frame => return Err(ConnectionError::EndedInsideFrame),
                Ok(0) => return Err(ConnectionError::Ended),
                Ok(count) => {
                    self.decoder.push(&self.scratch[..count]);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for the first frame of the handshake.
    pub(crate) fn handshake_frame(&mut self, deadline: Instant) -> Result<Frame, ConnectionError> {
        loop {
            if let Some(frame) = self.next_frame()? {
                return Ok(frame);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(ConnectionError::HandshakeTimeout);
            }
            self.fill(remaining)?;
        }
    }

    /// Takes the payloads that have been read, at most [`DELIVERY_MESSAGES_MAX`], checking that they are those from
    /// `*next` on; moves `*next` behind them. Payloads before an error are taken too.
    pub(crate) fn take_payloads(
        &mut self,
        next: &mut u64,
        payloads: &mut Vec<Bytes>,
    ) -> Result<(), ConnectionError> {
        while payloads.len() < DELIVERY_MESSAGES_MAX {
            let Some(frame) = self.next_frame()? else { return Ok(()) };
            match frame.kind {
                FrameKind::Data if frame.sequence == *next => {
                    *next += 1;
                    payloads.push(frame.payload);
                }
                FrameKind::Data => {
                    return Err(ConnectionError::OutOfOrder { expected: *next, found: frame.sequence });
                }
                FrameKind::Heartbeat => {}
                FrameKind::Refusal => return Err(ConnectionError::Refused(Refusal::decode(&frame.payload))),
                kind @ (FrameKind::Hello | FrameKind::Ack) => {
                    return Err(ConnectionError::Unexpected { kind });
                }
            }
        }
        Ok(())
    }
}

/// Writes one short frame.
pub(crate) fn write_frame(
    mut stream: &TcpStream,
    kind: FrameKind,
    sequence: u64,
    payload: Bytes,
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(128);
    Frame { kind, sequence, payload }.encode_into(&mut bytes);
    stream.write_all(&bytes)
}

/// Opens a connection to `address` (`host:port`).
pub(crate) fn connect(address: &str) -> Result<Arc<TcpStream>, ConnectionError> {
    let mut failure = io::Error::new(ErrorKind::NotFound, format!("{address} names no host"));
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, CONNECT_TIME_MAX) {
            Ok(stream) => {
                // Frames are written in batches already; Nagle's algorithm would hold a batch back for an acknowledgement.
                stream.set_nodelay(true)?;
                return Ok(Arc::new(stream));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure.into())
}

/// Sends `hello` on a new connection and waits for the answer.
pub(crate) fn greet(stream: Arc<TcpStream>, hello: &Hello) -> Result<(FrameReader, Hello), ConnectionError> {
    let deadline = Instant::now() + HANDSHAKE_TIME_MAX;
    write_frame(&stream, FrameKind::Hello, 0, hello.encode())?;
    let mut reader = FrameReader::new(stream);
    let frame = reader.handshake_frame(deadline)?;
    match frame.kind {
        FrameKind::Hello => {
            let answer = Hello::decode(&frame.payload)?;
            reader.handshake_done();
            Ok((reader, answer))
        }
        FrameKind::Refusal => Err(ConnectionError::Refused(Refusal::decode(&frame.payload))),
        kind => Err(ConnectionError::Unexpected { kind }),
    }
}

/// Tells the other side why and closes, giving it a moment to read it. Errors do not matter any more.
pub(crate) fn refuse(mut stream: &TcpStream, refusal: &Refusal) {
    if write_frame(stream, FrameKind::Refusal, 0, refusal.encode()).is_ok() {
        let _ = stream.shutdown(Shutdown::Write);
        let deadline = Instant::now() + REFUSAL_LINGER_TIME;
        let mut unread = [0; HANDSHAKE_READ_BYTES];
        let _ = stream.set_read_timeout(Some(REFUSAL_LINGER_TIME));
        while Instant::now() < deadline && stream.read(&mut unread).is_ok_and(|count| count > 0) {}
    }
    let _ = stream.shutdown(Shutdown::Both);
}
