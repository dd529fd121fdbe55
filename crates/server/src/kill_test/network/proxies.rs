//! A proxy for each process and each that it connects to.
//!
//! A process has a cluster file of its own, in which the addresses of the others are those of its proxies. So every byte that
//! goes from one process to another passes here, and can be kept back: that is a cut, in one direction or both, with
//! connections that stay open and say nothing, as when packets are dropped. When it heals, what was kept back arrives, as TCP
//! would send it again, or the connections are reset.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ordain::caller::random_number;

/// How often to look whether a cut has healed.
const CUT_PAUSE: Duration = Duration::from_millis(2);

/// Bytes that are passed on at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Ports to choose from: below those that operating systems give to outgoing connections.
const PORTS: std::ops::Range<u64> = 10_240..32_000;

/// How often to look for a port that is free.
const PORT_TRIES: u32 = 1_000;

/// See the [module](self).
pub(in crate::kill_test) struct Proxies {
    shared: Arc<Shared>,
    /// Where the processes listen.
    listening: Vec<SocketAddr>,
    /// By the process that connects and then by the one that it connects to; its own place is not used.
    addresses: Vec<Vec<SocketAddr>>,
}

struct Shared {
    processes: usize,
    /// By sender and then by receiver.
    directions: Vec<Direction>,
    connections: Mutex<Vec<Weak<Connection>>>,
    stopped: AtomicBool,
}

/// What happens to what one process sends to another.
#[derive(Default)]
struct Direction {
    cut: AtomicBool,
    delay_microseconds: AtomicU64,
}

/// A connection and its continuation.
struct Connection {
    /// Who connected, and to whom.
    ends: (usize, usize),
    near: TcpStream,
    far: TcpStream,
    closed: AtomicBool,
}

impl Proxies {
    /// Proxies between so many processes, which get ports that nobody listens on at the moment.
    ///
    /// # Errors
    /// When the operating system gives no port or thread.
    pub(super) fn start(processes: usize) -> Result<Proxies, String> {
        Proxies::between(&free_addresses(processes)?)
    }

    fn between(listening: &[SocketAddr]) -> Result<Proxies, String> {
        let processes = listening.len();
        let shared = Arc::new(Shared {
            processes,
            directions: (0..processes * processes).map(|_| Direction::default()).collect(),
            connections: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let mut network = Proxies { shared, listening: listening.to_vec(), addresses: Vec::new() };
        for from in 0..processes {
            let mut addresses = Vec::new();
            for (to, target) in listening.iter().enumerate() {
                let wrong = |error| format!("cannot make a proxy: {error}: close other programs");
                let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(wrong)?;
                addresses.push(listener.local_addr().map_err(wrong)?);
                if from != to {
                    let (shared, target) = (Arc::clone(&network.shared), *target);
                    spawn(move || accept(&shared, &listener, (from, to), target))?;
                }
            }
            network.addresses.push(addresses);
        }
        Ok(network)
    }

    /// Where a process listens.
    pub(super) fn listening(&self, process: usize) -> SocketAddr {
        self.listening[process]
    }

    /// Where a process reaches another.
    pub(super) fn address(&self, from: usize, to: usize) -> SocketAddr {
        self.addresses[from][to]
    }

    /// Keeps back what one process sends to another, or lets it through.
    pub(super) fn set_cut(&self, from: usize, to: usize, cut: bool) {
        self.shared.direction(from, to).cut.store(cut, Ordering::SeqCst);
    }

    /// Delays what one process sends to another.
    pub(super) fn set_delay(&self, from: usize, to: usize, delay: Duration) {
        let delay = delay.as_micros() as u64;
        self.shared.direction(from, to).delay_microseconds.store(delay, Ordering::SeqCst);
    }

    /// Resets all connections between two processes.
    pub(super) fn reset(&self, one: usize, other: usize) {
        for connection in self.shared.lock().iter().filter_map(Weak::upgrade) {
            if [(one, other), (other, one)].contains(&connection.ends) {
                connection.close();
            }
        }
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.lock().iter().filter_map(Weak::upgrade).for_each(|connection| connection.close());
        for (from, addresses) in self.addresses.iter().enumerate() {
            for (to, address) in addresses.iter().enumerate() {
                if from != to {
                    // It wakes the thread that listens; if it cannot, that thread ends with the program.
                    drop(TcpStream::connect(address));
                }
            }
        }
    }
}

impl Shared {
    fn direction(&self, from: usize, to: usize) -> &Direction {
        &self.directions[from * self.processes + to]
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while a direction is cut; `false` when it need not be waited for any more.
    fn wait_while_cut(&self, from: usize, to: usize, closed: &AtomicBool) -> bool {
        loop {
            if self.stopped.load(Ordering::SeqCst) || closed.load(Ordering::SeqCst) {
                return false;
            }
            if !self.direction(from, to).cut.load(Ordering::SeqCst) {
                return true;
            }
            std::thread::sleep(CUT_PAUSE);
        }
    }
}

impl Connection {
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for stream in [&self.near, &self.far] {
            // Closed by the other end already, perhaps.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Addresses that nobody listens on at the moment.
fn free_addresses(count: usize) -> Result<Vec<SocketAddr>, String> {
    let mut ports = BTreeSet::new();
    for _ in 0..PORT_TRIES {
        let random = random_number().map_err(|error| error.to_string())?;
        let port = (PORTS.start + random % (PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            ports.insert(port);
        }
        if ports.len() == count {
            return Ok(ports.into_iter().map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect());
        }
    }
    Err(format!("found no {count} free ports from {} to {}", PORTS.start, PORTS.end))
}

fn spawn(run: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let spawned = std::thread::Builder::new().name("proxy".to_owned()).spawn(run);
    spawned.map(|_| ()).map_err(|error| format!("cannot start a thread: {error}: close other programs"))
}

/// Takes the connections of one process to another.
fn accept(shared: &Arc<Shared>, listener: &TcpListener, ends: (usize, usize), target: SocketAddr) {
    while let Ok((near, _)) = listener.accept() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let serving = Arc::clone(shared);
        // Without a thread the connection is dropped, and tried again.
        let _ = spawn(move || serve(&serving, near, ends, target));
    }
}

/// Connects on, and passes bytes both ways.
fn serve(shared: &Arc<Shared>, near: TcpStream, ends: (usize, usize), target: SocketAddr) {
    let (from, to) = ends;
    let never = AtomicBool::new(false);
    // Neither the first packet nor its answer may get through.
    if !shared.wait_while_cut(from, to, &never) || !shared.wait_while_cut(to, from, &never) {
        return;
    }
    let Ok(far) = TcpStream::connect(target) else { return };
    for stream in [&near, &far] {
        // Only slower without it.
        let _ = stream.set_nodelay(true);
    }
    let connection = Arc::new(Connection { ends, near, far, closed: AtomicBool::new(false) });
    {
        let mut connections = shared.lock();
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&connection));
    }
    let (there, back) = (Arc::clone(&connection), Arc::clone(shared));
    let spawned = spawn(move || pass(&back, &there, (to, from), &there.far, &there.near));
    if spawned.is_ok() {
        pass(shared, &connection, (from, to), &connection.near, &connection.far);
    }
    connection.close();
}

/// Passes bytes one way.
fn pass(
    shared: &Shared,
    connection: &Connection,
    (from, to): (usize, usize),
    mut source: &TcpStream,
    mut target: &TcpStream,
) {
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        let count = source.read(&mut bytes).unwrap_or(0);
        let delay = shared.direction(from, to).delay_microseconds.load(Ordering::SeqCst);
        if delay > 0 {
            std::thread::sleep(Duration::from_micros(delay));
        }
        // The end of a connection has to be told by a packet, too.
        if !shared.wait_while_cut(from, to, &connection.closed) || count == 0 {
            break;
        }
        if target.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    connection.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes that listen, and a connection of the first to the second.
    fn connected() -> (Proxies, TcpStream, TcpStream) {
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = [0, 1].map(|process| listeners[process].local_addr().unwrap());
        let network = Proxies::between(&addresses).unwrap();
        let near = TcpStream::connect(network.address(0, 1)).unwrap();
        let (far, _) = listeners[1].accept().unwrap();
        (network, near, far)
    }

    fn arrives(from: &mut TcpStream, to: &mut TcpStream, within: Duration) -> bool {
        from.write_all(b"x").unwrap();
        to.set_read_timeout(Some(within)).unwrap();
        to.read(&mut [0]).is_ok_and(|count| count == 1)
    }

    #[test]
    fn a_cut_holds_one_direction_until_it_heals() {
        const SHORT: Duration = Duration::from_millis(50);
        const LONG: Duration = Duration::from_secs(60);
        let (network, mut near, mut far) = connected();
        assert!(arrives(&mut near, &mut far, LONG));
        network.set_cut(0, 1, true);
        assert!(!arrives(&mut near, &mut far, SHORT));
        assert!(arrives(&mut far, &mut near, LONG), "the other direction is open");
        network.set_cut(0, 1, false);
        far.set_read_timeout(Some(LONG)).unwrap();
        assert_eq!(far.read(&mut [0]).unwrap(), 1, "what was kept back arrives");
        network.reset(1, 0);
        assert_eq!(far.read(&mut [0]).unwrap_or(0), 0);
        assert_eq!(near.read(&mut [0]).unwrap_or(0), 0);
    }
}
