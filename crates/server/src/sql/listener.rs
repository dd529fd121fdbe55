//! The listening end for clients of SQL: takes connections, each with a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use ordain_sql::error::{SqlError, SqlState};
use ordain_sql::protocol::backend::{Encoder, Severity};
use rustls::ServerConfig;

use super::activity::Activity;
use super::cancel::Cancellations;
use super::database::SqlDatabase;
use super::metrics::Metrics;
use super::{connection, lock};
use crate::transport::sync::{SpawnError, ThreadGroup};

/// Sessions at a time, if nothing else is said.
pub const CONNECTIONS_DEFAULT: usize = 200;

/// Connections beside the sessions: of those whose client is not known yet, who are to be told that there are too many, and who ask to
/// cancel something.
const SPARE_CONNECTIONS: usize = 64;

/// Threads for connections of which, if fewer are free, those of clients that have proved nothing are taken back.
const FREE_THREADS_MIN: usize = 16;

/// How long a client that has proved nothing is never cut for that.
const UNKNOWN_TIME_MIN: Duration = Duration::from_secs(1);

/// How long to wait for the thread of one that was cut to end.
const ROOM_TIME_MAX: Duration = Duration::from_millis(100);

/// The stack of a session's thread: what is parsed is a tree that may be as deep as a statement has operators in a row. The system gives memory
/// for what is used of it.
const STACK_BYTES: usize = 16 << 20;

/// How long the accepting thread rests when the operating system has no more connections or threads to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// How long to try to connect to the own port, to wake the accepting thread.
const WAKE_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a connection that has been cut is given to end.
const CLOSE_GRACE_TIME: Duration = Duration::from_millis(200);

/// What can be chosen about a [`Listener`].
#[derive(Clone)]
pub struct ListenerOptions {
    /// How many sessions there may be at a time.
    pub connections: usize,
    /// How long a client may take until it is known.
    pub startup_time: Duration,
    /// How long a session may say nothing; `None` for ever.
    pub idle_time: Option<Duration>,
    /// How long states of the past are kept, for reads `AS OF` a time; `None` for not at all.
    pub history: Option<Duration>,
    /// How long a client may take for a chunk of what is sent to it: of 64 KiB or less, and with TLS for a record, which has 16 KiB or less.
    /// It has taken what is in the buffers of the operating systems.
    pub write_time: Duration,
    /// The certificate and key; `None` without TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// Statements that take longer are logged; `None` if none are.
    pub slow: Option<Duration>,
    /// The password that the owner gets who has none.
    pub owner_password: Option<String>,
}

impl Default for ListenerOptions {
    fn default() -> ListenerOptions {
        ListenerOptions {
            connections: CONNECTIONS_DEFAULT,
            startup_time: Duration::from_secs(10),
            idle_time: None,
            history: None,
            write_time: Duration::from_secs(60),
            tls: None,
            slow: None,
            owner_password: None,
        }
    }
}

/// Accepts connections on one port. Until it is [opened](Door::open), clients are told that the database is starting.
///
/// Dropping a listener cuts all connections without waiting; see [`Listener::close`].
pub struct Listener {
    shared: Arc<Shared>,
    threads: ThreadGroup,
    address: SocketAddr,
}

/// What the listener's handle and its threads share.
pub(super) struct Shared {
    pub(super) options: ListenerOptions,
    pub(super) cancellations: Arc<Cancellations>,
    pub(super) activity: Arc<Activity>,
    pub(super) metrics: Arc<Metrics>,
    /// What the salts of users that do not exist follow from.
    pub(super) secret: Vec<u8>,
    database: OnceLock<SqlDatabase>,
    sessions: AtomicUsize,
    closing: AtomicBool,
    accepting: AtomicBool,
    /// All connections by their numbers, which rise.
    streams: Mutex<BTreeMap<u64, Accepted>>,
}

/// A connection.
struct Accepted {
    stream: Arc<TcpStream>,
    since: Instant,
    stage: Stage,
}

/// How far a connection has come.
#[derive(PartialEq)]
enum Stage {
    /// Its client has proved nothing.
    Unknown,
    /// Its client has a place.
    Known,
    /// It was cut, and its thread is about to end.
    Cut,
}

/// The way in: from elsewhere than where the listener is.
#[derive(Clone)]
pub struct Door(Arc<Shared>);

/// The place of a session among those that there may be.
pub(super) struct Place(Arc<Shared>);

impl Listener {
    /// Starts to accept connections on `socket`.
    ///
    /// # Errors
    /// If the socket has no address, or the operating system gives no thread or no randomness.
    pub fn start(socket: TcpListener, options: ListenerOptions) -> io::Result<Listener> {
        let address = socket.local_addr()?;
        let mut secret = vec![0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            options,
            cancellations: Arc::default(),
            activity: Arc::default(),
            metrics: Arc::default(),
            secret,
            database: OnceLock::new(),
            sessions: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            accepting: AtomicBool::new(true),
            streams: Mutex::default(),
        });
        let threads = ThreadGroup::with_stacks(STACK_BYTES);
        let listener = Listener { shared: Arc::clone(&shared), threads: threads.clone(), address };
        let accepting = threads.clone();
        match threads.spawn("sql-accept".to_owned(), 1, move || accept(&socket, &shared, &accepting)) {
            Ok(_) => Ok(listener),
            Err(SpawnError::System(error)) => Err(error),
            Err(full @ SpawnError::Full { .. }) => Err(io::Error::other(full)),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The way to open it later.
    pub fn door(&self) -> Door {
        Door(Arc::clone(&self.shared))
    }

    /// Lets clients in; see [`Door::open`].
    pub fn open(&self, database: SqlDatabase) {
        self.door().open(database);
    }

    /// The sessions.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.shared.activity
    }

    /// What has been done so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Ends all sessions: statements under way are interrupted, and clients are told that the server ends. Waits for that, but not much
    /// longer than `patience`; how many connections are left, because their statements wait for the database.
    pub fn close(&self, patience: Duration) -> usize {
        self.shut(Shutdown::Read);
        let mut left = self.threads.wait_until_empty(Instant::now() + patience);
        if left > 0 {
            self.shut(Shutdown::Both);
            left = self.threads.wait_until_empty(Instant::now() + CLOSE_GRACE_TIME);
        }
        left
    }

    /// Makes all threads see that the listener is closing.
    fn shut(&self, how: Shutdown) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.cancellations.terminate_all();
        for accepted in lock(&self.shared.streams).values() {
            // It may be closed already; then its thread is awake.
            let _ = accepted.stream.shutdown(how);
        }
        if self.shared.accepting.load(Ordering::SeqCst) {
            self.wake_accepting_thread();
        }
    }

    /// Connects to itself: std has no other way to end an `accept`.
    fn wake_accepting_thread(&self) {
        let mut wake = self.address;
        match wake.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => wake.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => wake.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let _ = TcpStream::connect_timeout(&wake, WAKE_TIME_MAX);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shut(Shutdown::Both);
    }
}

impl Door {
    /// Lets clients in from now on, to this database. Opening again does nothing.
    pub fn open(&self, database: SqlDatabase) {
        // Whoever came first stays.
        if self.0.database.set(database.clone()).is_ok()
            && let Some(retention) = self.0.options.history
            && let Err(error) = database.keep_history(retention)
        {
            tracing::error!(%error, "nothing is kept for AS OF");
        }
    }

    /// The password that the owner gets who has none.
    pub fn owner_password(&self) -> Option<&str> {
        self.0.options.owner_password.as_deref()
    }

    /// Whether clients are let in.
    pub fn is_open(&self) -> bool {
        self.0.database.get().is_some()
    }

    /// Whether the listener ends: nobody will come.
    pub fn is_closing(&self) -> bool {
        self.0.is_closing()
    }
}

impl Shared {
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// The database, once there is one.
    pub(super) fn database(&self) -> Result<&SqlDatabase, SqlError> {
        if self.is_closing() {
            return Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is shutting down"));
        }
        let starting = || SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is starting up");
        self.database.get().ok_or_else(starting)
    }

    /// A place for one more session, that of the client of this connection.
    pub(super) fn place(self: &Arc<Self>, number: u64) -> Result<Place, SqlError> {
        let max = self.options.connections;
        let more = |sessions: usize| (sessions < max).then_some(sessions + 1);
        if self.sessions.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_err() {
            return Err(too_many(max));
        }
        if let Some(accepted) = lock(&self.streams).get_mut(&number) {
            accepted.stage = Stage::Known;
        }
        Ok(Place(Arc::clone(self)))
    }

    /// Most threads: of connections, and the accepting one.
    fn threads_max(&self) -> usize {
        self.options.connections + SPARE_CONNECTIONS + 1
    }

    /// If nearly all threads are taken, cuts the oldest connections whose clients have proved nothing for a while; whether any was cut.
    fn make_room(&self) -> bool {
        let mut streams = lock(&self.streams);
        let leaving = streams.values().filter(|accepted| accepted.stage == Stage::Cut).count();
        let taken = streams.len() + 1 - leaving;
        let missing = (taken + FREE_THREADS_MIN).saturating_sub(self.threads_max());
        let is_over = |accepted: &&mut Accepted| {
            accepted.stage == Stage::Unknown && accepted.since.elapsed() >= UNKNOWN_TIME_MIN
        };
        let mut is_any = false;
        for accepted in streams.values_mut().filter(is_over).take(missing) {
            tracing::debug!("a client of SQL that has proved nothing was cut: others need its thread");
            let _ = accepted.stream.shutdown(Shutdown::Both);
            accepted.stage = Stage::Cut;
            is_any = true;
        }
        is_any
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

fn too_many(max: usize) -> SqlError {
    SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already").with_hint(format!(
        "The server takes {max}. Close connections, put a pool in between, or raise --sql-connections."
    ))
}

/// Keeps a connection in the list of those to be cut when the listener closes, and cuts it when its thread ends.
struct Listed {
    shared: Arc<Shared>,
    number: u64,
    stream: Arc<TcpStream>,
}

impl Listed {
    fn new(shared: &Arc<Shared>, number: u64, stream: &Arc<TcpStream>) -> Listed {
        let (stream_listed, since) = (Arc::clone(stream), Instant::now());
        let accepted = Accepted { stream: stream_listed, since, stage: Stage::Unknown };
        lock(&shared.streams).insert(number, accepted);
        // Looked at after the insertion: either this sees the flag, or who has set it sees the stream.
        if shared.is_closing() {
            let _ = stream.shutdown(Shutdown::Read);
        }
        shared.metrics.connected();
        Listed { shared: Arc::clone(shared), number, stream: Arc::clone(stream) }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.shared.metrics.disconnected();
        lock(&self.shared.streams).remove(&self.number);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The accepting thread.
fn accept(socket: &TcpListener, shared: &Arc<Shared>, threads: &ThreadGroup) {
    let threads_max = shared.threads_max();
    let mut number = 0;
    loop {
        let accepted = socket.accept();
        if shared.is_closing() {
            shared.accepting.store(false, Ordering::SeqCst);
            return;
        }
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Either a connection that broke before it was accepted, or no descriptors left. The latter lasts.
                tracing::warn!(%error, "a connection could not be accepted");
                std::thread::sleep(EXHAUSTED_PAUSE);
                continue;
            }
        };
        number += 1;
        if shared.make_room() {
            threads.wait_until_fewer(threads_max, Instant::now() + ROOM_TIME_MAX);
        }
        let stream = Arc::new(stream);
        let serve = {
            let (shared, stream) = (Arc::clone(shared), Arc::clone(&stream));
            move || {
                let _listed = Listed::new(&shared, number, &stream);
                connection::serve(&shared, (stream, number), address);
            }
        };
        if let Err(error) = threads.spawn(format!("sql-{number}"), threads_max, serve) {
            tracing::warn!(%address, %error, "a client of SQL was refused");
            shared.metrics.refused();
            refuse(&stream, shared.options.connections);
            if matches!(error, SpawnError::System(_)) {
                std::thread::sleep(EXHAUSTED_PAUSE);
            }
        }
    }
}

/// Tells a client without a thread why it is refused, if that can be done at once.
fn refuse(stream: &TcpStream, max: usize) {
    let mut out = Vec::new();
    Encoder::new(&mut out).error(&too_many(max), Severity::Fatal);
    if stream.set_nonblocking(true).is_ok() {
        let _ = io::Write::write(&mut &*stream, &out);
    }
}
