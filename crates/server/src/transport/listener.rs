//! The listening end: takes connections from peers and clients, and lives until it is closed.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tracing::warn;

use super::accepted;
use super::counters::{ListenerCounters, ListenerCounts, PeerCounters};
use super::error::CloseError;
use super::incoming::Incoming;
use super::limits::*;
use super::membership::Membership;
use super::receiver::Receiver;
use super::sync::{SpawnError, ThreadGroup, lock};

/// How long the accepting thread rests when the operating system has no more connections or threads to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// What can be chosen about a [`Listener`].
#[derive(Clone, Copy, Debug)]
pub struct ListenerOptions {
    /// How many clients are served at a time; more are refused with a reason. Each costs two threads.
    pub client_connections_max: usize,
}

impl Default for ListenerOptions {
    fn default() -> Self {
        ListenerOptions { client_connections_max: CLIENT_CONNECTIONS_MAX }
    }
}

/// Accepts connections on one port and hands what arrives to a [`Receiver`].
///
/// Threads: one accepts; each connection has one that reads, and each client one more that writes replies.
///
/// Dropping a listener cuts all connections without waiting; see [`Listener::close`].
pub struct Listener {
    shared: Arc<Shared>,
    threads: ThreadGroup,
    address: SocketAddr,
}

/// What the listener's handle and its threads share.
pub(crate) struct Shared {
    pub(crate) membership: Arc<Membership>,
    pub(crate) receiver: Arc<dyn Receiver>,
    pub(crate) options: ListenerOptions,
    pub(crate) counts: Arc<ListenerCounts>,
    pub(crate) clients_connected: AtomicUsize,
    incoming: RwLock<BTreeMap<u16, Arc<Incoming>>>,
    closing: AtomicBool,
    /// Whether the accepting thread runs.
    accepting: AtomicBool,
    /// The sockets of all connections, by their number.
    streams: Mutex<BTreeMap<u64, Arc<TcpStream>>>,
}

impl Listener {
    /// Starts to accept connections on `socket`.
    ///
    /// # Errors
    /// If the socket has no address, or the operating system gives no thread.
    pub fn start(
        socket: TcpListener,
        membership: Arc<Membership>,
        receiver: Arc<dyn Receiver>,
        options: ListenerOptions,
    ) -> io::Result<Listener> {
        let address = socket.local_addr()?;
        let name = format!("accept-{}", membership.process());
        let shared = Arc::new(Shared {
            membership,
            receiver,
            options,
            counts: Arc::default(),
            clients_connected: AtomicUsize::new(0),
            incoming: RwLock::default(),
            closing: AtomicBool::new(false),
            accepting: AtomicBool::new(true),
            streams: Mutex::default(),
        });
        let listener = Listener { shared: Arc::clone(&shared), threads: ThreadGroup::default(), address };
        let threads = listener.threads.clone();
        match listener.threads.spawn(name, 1, move || accept(&socket, &shared, &threads)) {
            Ok(_) => Ok(listener),
            Err(SpawnError::System(error)) => Err(error),
            Err(full @ SpawnError::Full { .. }) => Err(io::Error::other(full)),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the listener has done so far.
    pub fn counters(&self) -> ListenerCounters {
        self.shared.counts.snapshot()
    }

    /// What has come from a peer so far; `None` if `process` is not one.
    pub fn peer_counters(&self, process: u16) -> Option<PeerCounters> {
        Some(self.shared.incoming(process)?.counts.snapshot())
    }

    /// Takes no more connections and no more payloads, acknowledges what has been delivered, and waits until the replies
    /// queued for clients have been written, but not much longer than `timeout`. Then ends all connections and threads.
    ///
    /// Replies sent from now on are refused: who wants to finish what clients have asked for does so before.
    ///
    /// # Errors
    /// [`CloseError`] if threads are left: the receiver has not returned.
    pub fn close(self, timeout: Duration) -> Result<(), CloseError> {
        self.shut(Shutdown::Read);
        let mut threads = self.threads.wait_until_empty(Instant::now() + timeout);
        if threads > 0 {
            self.shut(Shutdown::Both);
            threads = self.threads.wait_until_empty(Instant::now() + CLOSE_GRACE_TIME);
        }
        if threads == 0 { Ok(()) } else { Err(CloseError { undelivered_messages: 0, threads }) }
    }

    /// Makes all threads see that the listener is closing.
    fn shut(&self, how: Shutdown) {
        self.shared.closing.store(true, Ordering::SeqCst);
        for stream in lock(&self.shared.streams).values() {
            // It may be closed already; then its threads are awake.
            let _ = stream.shutdown(how);
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
        let _ = TcpStream::connect_timeout(&wake, CONNECT_TIME_MAX);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shut(Shutdown::Both);
    }
}

impl Shared {
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// What is remembered of the link from `process`, if that is a peer.
    pub(crate) fn incoming(&self, process: u16) -> Option<Arc<Incoming>> {
        if let Some(incoming) = self.incoming.read().unwrap_or_else(PoisonError::into_inner).get(&process) {
            return Some(Arc::clone(incoming));
        }
        if !self.membership.is_peer(process) {
            return None;
        }
        let mut all = self.incoming.write().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(all.entry(process).or_insert_with(|| Arc::new(Incoming::new(process)))))
    }
}

/// Keeps a connection in the list of those to be cut when the listener closes, and cuts it when its thread ends, by
/// return or by panic: others may hold the socket longer.
struct Registration {
    shared: Arc<Shared>,
    number: u64,
    stream: Arc<TcpStream>,
}

impl Registration {
    fn new(shared: &Arc<Shared>, number: u64, stream: &Arc<TcpStream>) -> Registration {
        lock(&shared.streams).insert(number, Arc::clone(stream));
        // Looked at after the insertion: either this sees the flag, or who has set it sees the stream.
        if shared.is_closing() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        Registration { shared: Arc::clone(shared), number, stream: Arc::clone(stream) }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.shared.streams).remove(&self.number);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The accepting thread.
fn accept(socket: &TcpListener, shared: &Arc<Shared>, threads: &ThreadGroup) {
    // Two per client, some for other connections, and this one.
    let threads_max = 2 * shared.options.client_connections_max + OTHER_THREADS_MAX + 1;
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
                warn!(%error, "a connection could not be accepted");
                std::thread::sleep(EXHAUSTED_PAUSE);
                continue;
            }
        };
        number += 1;
        shared.counts.connections.add(1);
        let stream = Arc::new(stream);
        let connection = {
            let (shared, stream, threads) = (Arc::clone(shared), Arc::clone(&stream), threads.clone());
            move || {
                let _registration = Registration::new(&shared, number, &stream);
                accepted::serve(&shared, &threads, number, stream, address);
            }
        };
        let name = format!("serve-{}", shared.membership.process());
        if let Err(error) = threads.spawn(name, threads_max, connection) {
            warn!(%address, %error, "connection refused");
            shared.counts.refused.add(1);
            accepted::refuse_at_once(&stream, &error.to_string());
            if matches!(error, SpawnError::System(_)) {
                std::thread::sleep(EXHAUSTED_PAUSE);
            }
        }
    }
}
