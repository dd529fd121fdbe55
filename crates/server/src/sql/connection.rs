//! A client's connection: its thread reads, lets the session work, and writes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ordain_sql::error::{SqlError, SqlState};
use ordain_sql::execute::terminated;
use ordain_sql::protocol::PROTOCOL_MINOR_NEWEST;
use ordain_sql::protocol::backend::{Encoder, Severity};
use ordain_sql::protocol::frontend::{Decoder, Frontend};
use ordain_sql::session::handshake::{Handshake, Known, NONCE_BYTES, Step, Terms, User};
use ordain_sql::session::{Flow, Options, Session};
use rustls::{ServerConnection, StreamOwned};

use super::activity::{Entered, Record};
use super::cancel::{SECRET_BYTES, SECRET_BYTES_OLD};
use super::catch_panic;
use super::database::now;
use super::listener::{Place, Shared};

/// Bytes of answers after which they are sent, although the client has said more already; and those that a client must take within
/// [`write_time`](super::ListenerOptions::write_time).
const OUT_BYTES: usize = 64 << 10;

/// How many times a write looks whether the client has taken something: the operating system does not tell of little room.
const LOOKS_PER_WRITE: u32 = 4;

/// What stays allocated for answers when there are none.
const OUT_BYTES_KEPT: usize = 256 << 10;

/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;

/// How long a connection that was ended is read from, so that the client gets the reason before the end.
const FAREWELL_TIME: Duration = Duration::from_millis(500);

/// How much is read then.
const FAREWELL_BYTES: usize = 1 << 20;

/// Why a connection ends.
enum End {
    /// It is broken, or the client has gone.
    Gone,
    /// The client is to be told this.
    Tell(SqlError),
}

impl From<SqlError> for End {
    fn from(error: SqlError) -> End {
        End::Tell(error)
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End::Gone
    }
}

/// A socket that several hold, with a time until when it must be read from, and one for what is written to be taken.
struct Socket {
    stream: Arc<TcpStream>,
    /// When a read must have ended; `None` for no limit.
    deadline: Option<Instant>,
    /// How long a write may take.
    write_time: Duration,
}

impl Socket {
    /// How long the operating system waits for room at a time, unless less is left.
    fn look_time(&self) -> Duration {
        self.write_time / LOOKS_PER_WRITE
    }

    /// Writes all of a chunk.
    ///
    /// # Errors
    /// When the socket fails, or has not taken it within [`write_time`](Self::write_time).
    fn write_chunk(&self, chunk: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + self.write_time;
        let (mut written, mut is_short) = (0, false);
        while written < chunk.len() {
            match (&*self.stream).write(&chunk[written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if is_for_now(error.kind()) => {}
                Err(error) => return Err(error),
            }
            if written < chunk.len() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ErrorKind::TimedOut.into());
                }
                if left < self.look_time() {
                    is_short = true;
                    self.stream.set_write_timeout(Some(left))?;
                }
            }
        }
        if is_short { self.stream.set_write_timeout(Some(self.look_time())) } else { Ok(()) }
    }
}

/// Whether a write that fails like this may be tried again.
fn is_for_now(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        (&*self.stream).read(buffer)
    }
}

impl Write for Socket {
    /// Writes a chunk as a whole. One that is not taken ends the connection: what has been sent of it cannot be sent again, and rustls goes
    /// on after an error.
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let chunk = &buffer[..buffer.len().min(OUT_BYTES)];
        let written = self.write_chunk(chunk);
        if written.is_err() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        written.map(|()| chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket, encrypted or not.
enum Channel {
    Plain(Socket),
    Encrypted(Box<StreamOwned<ServerConnection, Socket>>),
}

impl Channel {
    fn socket(&mut self) -> &mut Socket {
        match self {
            Channel::Plain(socket) => socket,
            Channel::Encrypted(stream) => &mut stream.sock,
        }
    }

    /// Limits reads from now on.
    fn set_deadline(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let socket = self.socket();
        let had = std::mem::replace(&mut socket.deadline, deadline).is_some();
        if had && deadline.is_none() { socket.stream.set_read_timeout(None) } else { Ok(()) }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Channel::Plain(socket) => socket.read(buffer),
                Channel::Encrypted(stream) => stream.read(buffer),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What is left out is the farewell of TLS; the protocol within has one of its own.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
        }
    }

    /// Sends what there is to send; nothing of it is left then.
    ///
    /// # Errors
    /// When it cannot be sent: then a part may have been, and the connection has ended, so that whatever is sent later fails too.
    fn send(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let sent = match self {
            Channel::Plain(socket) => socket.write_all(out),
            Channel::Encrypted(stream) => stream.write_all(out).and_then(|()| stream.flush()),
        };
        if sent.is_err() {
            let _ = self.socket().stream.shutdown(Shutdown::Both);
        }
        out.clear();
        out.shrink_to(OUT_BYTES_KEPT);
        sent
    }

    /// Ends the connection such that the client gets what was sent: a socket that is closed with bytes unread takes back what is on its way.
    fn farewell(&mut self) {
        if let Channel::Encrypted(stream) = self {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let socket = self.socket();
        socket.deadline = Some(Instant::now() + FAREWELL_TIME);
        if socket.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let mut buffer = [0; 4096];
        let mut read = 0;
        while read < FAREWELL_BYTES {
            match socket.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(more) => read += more,
            }
        }
    }
}

/// Serves a connection to its end.
pub(super) fn serve(shared: &Arc<Shared>, (stream, number): (Arc<TcpStream>, u64), peer: SocketAddr) {
    let write_time = shared.options.write_time;
    let mut channel = Channel::Plain(Socket { stream, deadline: None, write_time });
    let mut out = Vec::new();
    let run = || {
        prepare(shared, &mut channel)?;
        let (client, place) = Client::meet(shared, &mut channel, &mut out, (peer, number))?;
        let _place = place;
        client.run(&mut channel, &mut out)
    };
    let ended: Result<(), End> = catch_panic(run).unwrap_or_else(|| {
        out.clear();
        let problem = "the session has met a mistake of the server, and ends";
        Err(End::Tell(SqlError::new(SqlState::INTERNAL_ERROR, problem)))
    });
    match ended {
        Ok(()) => {}
        Err(End::Gone) => return,
        Err(End::Tell(error)) => {
            tracing::debug!(%peer, %error, "a session of SQL was ended");
            shared.metrics.failed(error.state);
            Encoder::new(&mut out).error(&error, Severity::Fatal);
        }
    }
    if channel.send(&mut out).is_ok() {
        channel.farewell();
    }
}

/// Sets what sockets can be told.
fn prepare(shared: &Shared, channel: &mut Channel) -> io::Result<()> {
    let look_time = channel.socket().look_time();
    let stream = &channel.socket().stream;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(look_time))?;
    // A client whose machine is gone says nothing any more.
    rustix::net::sockopt::set_socket_keepalive(&**stream, true)?;
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_keepidle(&**stream, Duration::from_secs(60))?;
    let deadline = Instant::now() + shared.options.startup_time;
    channel.set_deadline(Some(deadline))
}

/// A client that is known, and its session.
struct Client<'s> {
    shared: &'s Arc<Shared>,
    decoder: Decoder,
    session: Session,
    /// What others see of it.
    entered: Entered,
    /// As long as this is there, the session can be cancelled.
    _registration: super::cancel::Registration,
}

impl<'s> Client<'s> {
    /// Finds out who the client is, and begins its session.
    fn meet(
        shared: &'s Arc<Shared>,
        channel: &mut Channel,
        out: &mut Vec<u8>,
        (peer, number): (SocketAddr, u64),
    ) -> Result<(Client<'s>, Place), End> {
        let (known, decoder) = handshake(shared, channel, out, peer)?;
        // Not before: whoever proves nothing takes nobody's place.
        let place = shared.place(number)?;
        let database = shared.database()?;
        let unavailable = |error: ordain_db::error::Error| {
            End::Tell(SqlError::new(SqlState::CANNOT_CONNECT_NOW, error.to_string()))
        };
        let mut secret =
            vec![0; if known.minor < PROTOCOL_MINOR_NEWEST { SECRET_BYTES_OLD } else { SECRET_BYTES }];
        random(&mut secret)?;
        let Known { user, database: name, parameters, .. } = known;
        let stream = Arc::clone(&channel.socket().stream);
        let record = Arc::new(Record::new(&user, &name, peer, stream, now()));
        let mut own = database.session().map_err(unavailable)?;
        own.watch(shared, &record);
        let mut session = Session::new(
            Arc::new(own),
            database.schema().clone(),
            database.storages().clone(),
            Options { user, database: name, parameters },
        )?;
        let registration = shared.cancellations.register(secret.clone(), session.interrupt());
        session.welcome(registration.process, &secret, out);
        record.end(session.standing(), now());
        let process = registration.process;
        let entered = shared.activity.enter(process, Arc::clone(&record));
        tracing::info!(%peer, process, user = record.user(), "a session of SQL begins");
        channel.set_deadline(None)?;
        Ok((Client { shared, decoder, session, entered, _registration: registration }, place))
    }

    /// Serves the session until the client goes or is told to.
    fn run(mut self, channel: &mut Channel, out: &mut Vec<u8>) -> Result<(), End> {
        let ended = self.converse(channel, out);
        let process = self.entered.process();
        match &ended {
            Ok(()) => tracing::info!(process, "a session of SQL ends"),
            Err(End::Gone) => tracing::info!(process, "a session of SQL ends: the client is gone"),
            Err(End::Tell(error)) => tracing::info!(process, %error, "a session of SQL was ended"),
        }
        if ended.is_err() {
            // What the client has begun is taken back as if it had taken its leave; nobody is told.
            self.session.handle(Frontend::Terminate, &mut Vec::new());
        }
        ended
    }

    fn converse(&mut self, channel: &mut Channel, out: &mut Vec<u8>) -> Result<(), End> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            // Between two messages: one that runs is interrupted, and comes to its end.
            if self.shared.is_closing() || self.entered.record().is_ended() {
                return Err(terminated().into());
            }
            if let Some(message) = self.decoder.next()? {
                let (begun, mut counted) = (Instant::now(), out.len());
                let record = self.entered.record();
                record.begin(self.session.statement_of(&message), now());
                let metrics = &self.shared.metrics;
                let mut is_gone = false;
                let mut send = |sent: &mut Vec<u8>| {
                    metrics.told(&sent[std::mem::take(&mut counted)..]);
                    let outcome = record.sending(|| channel.send(sent));
                    is_gone |= outcome.is_err();
                    outcome.map_err(|error| gone(&error))
                };
                let flow = self.session.handle_sending(message, out, &mut send);
                let took = begun.elapsed();
                metrics.answered(&out[counted..], took);
                record.end(self.session.standing(), now());
                if self.shared.options.slow.is_some_and(|slow| took >= slow) {
                    let milliseconds = took.as_millis() as u64;
                    let (process, statement) = (self.entered.process(), record.statement());
                    tracing::warn!(process, milliseconds, statement, "a slow statement of SQL");
                }
                if matches!(flow, Flow::End) {
                    return Ok(());
                }
                if is_gone {
                    return Err(End::Gone);
                }
                if out.len() > OUT_BYTES {
                    record.sending(|| channel.send(out))?;
                }
                continue;
            }
            self.entered.record().sending(|| channel.send(out))?;
            match self.read(channel, &mut buffer)? {
                // When the server ends, or another session ends this one, its own side of the socket is closed for reading.
                0 if self.shared.is_closing() || self.entered.record().is_ended() => {}
                0 => return Err(End::Gone),
                read => self.decoder.feed(&buffer[..read]),
            }
        }
    }

    /// Waits for the client to say something, for as long as it may say nothing.
    fn read(&self, channel: &mut Channel, buffer: &mut [u8]) -> Result<usize, End> {
        let asked = self.session.idle_limit().map(|(time, error)| (Duration::from_micros(time), error));
        let given = self.shared.options.idle_time.map(|time| (time, idle()));
        let limit = asked.into_iter().chain(given).min_by_key(|(time, _)| *time);
        channel.set_deadline(limit.as_ref().map(|(time, _)| Instant::now() + *time))?;
        channel.read(buffer).map_err(|error| match (error.kind(), limit) {
            (ErrorKind::TimedOut | ErrorKind::WouldBlock, Some((_, error))) => error.into(),
            _ => End::Gone,
        })
    }
}

/// Goes through the beginning of a connection.
fn handshake(
    shared: &Arc<Shared>,
    channel: &mut Channel,
    out: &mut Vec<u8>,
    peer: SocketAddr,
) -> Result<(Known, Decoder), End> {
    let mut nonce = vec![0; NONCE_BYTES];
    random(&mut nonce)?;
    let mut handshake = Handshake::new(Terms {
        peer_is_loopback: peer.ip().to_canonical().is_loopback(),
        tls: shared.options.tls.is_some(),
        nonce,
        secret: shared.secret.clone(),
    });
    let mut buffer = [0; 4096];
    loop {
        let step = handshake.step(&mut |name| look_up(shared, name), out);
        channel.send(out)?;
        match step {
            Step::Read => {
                let read = channel.read(&mut buffer)?;
                if read == 0 {
                    return Err(End::Gone);
                }
                handshake.feed(&buffer[..read]);
            }
            Step::Upgrade => encrypt(shared, channel)?,
            Step::Cancel { process, secret } => {
                shared.cancellations.cancel(process, &secret);
                return Err(End::Gone);
            }
            Step::Known(known) => return Ok((known, handshake.into_decoder())),
            Step::Close(reason) => {
                if let Some(error) = reason {
                    tracing::info!(%peer, %error, "a client of SQL was refused");
                    shared.metrics.failed(error.state);
                    channel.farewell();
                }
                return Err(End::Gone);
            }
        }
    }
}

/// Looks a user up.
fn look_up(shared: &Shared, name: &str) -> Result<Option<User>, SqlError> {
    let database = shared.database()?;
    let unavailable = |error: ordain_db::error::Error| {
        SqlError::new(SqlState::CANNOT_CONNECT_NOW, "users cannot be looked up now")
            .with_detail(error.to_string())
    };
    database.user(name).map_err(unavailable)
}

/// Goes on with TLS.
fn encrypt(shared: &Shared, channel: &mut Channel) -> Result<(), End> {
    let (Some(config), Channel::Plain(socket)) = (&shared.options.tls, &*channel) else {
        return Err(End::Gone);
    };
    let connection = ServerConnection::new(Arc::clone(config)).map_err(|_| End::Gone)?;
    let stream = Arc::clone(&socket.stream);
    let socket = Socket { stream, deadline: socket.deadline, write_time: socket.write_time };
    *channel = Channel::Encrypted(Box::new(StreamOwned::new(connection, socket)));
    Ok(())
}

fn random(bytes: &mut [u8]) -> Result<(), SqlError> {
    let none = |error: getrandom::Error| {
        SqlError::new(SqlState::CANNOT_CONNECT_NOW, format!("no randomness from the system: {error}"))
    };
    getrandom::fill(bytes).map_err(none)
}

/// With what a statement ends whose rows nobody takes.
fn gone(error: &io::Error) -> SqlError {
    SqlError::new(SqlState::CONNECTION_FAILURE, "rows could not be sent").with_detail(error.to_string())
}

fn idle() -> SqlError {
    let problem = "terminating connection due to idle-session timeout";
    SqlError::new(SqlState::IDLE_SESSION_TIMEOUT, problem)
}
