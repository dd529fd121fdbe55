//! A TCP proxy that breaks connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::support::Random;

/// Forwards connections, each until a random number of bytes has gone one way or the other; then it is cut. Some
/// connections have a byte damaged shortly before.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    stopped: AtomicBool,
    /// From now on connections are left alone.
    kind: AtomicBool,
    cuts: AtomicU64,
}

impl Proxy {
    /// A proxy before `to`. A connection passes at most `bytes_max` bytes each way.
    pub(crate) fn start(to: SocketAddr, seed: u64, bytes_max: usize) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            stopped: AtomicBool::new(false),
            kind: AtomicBool::new(false),
            cuts: AtomicU64::new(0),
        });
        let accepting = {
            let shared = shared.clone();
            std::thread::spawn(move || accept(&listener, to, &shared, Random(seed), bytes_max))
        };
        Proxy { address, shared, accepting: Some(accepting) }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Leaves new connections alone from now on.
    pub(crate) fn be_kind(&self) {
        self.shared.kind.store(true, Ordering::SeqCst);
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    to: SocketAddr,
    shared: &Arc<Shared>,
    mut random: Random,
    bytes_max: usize,
) {
    let mut pumps: Vec<JoinHandle<()>> = Vec::new();
    while let Ok((near, _)) = listener.accept() {
        if shared.stopped.load(Ordering::SeqCst) {
            break;
        }
        let Ok(far) = TcpStream::connect(to) else { continue };
        let (near, far) = (Arc::new(near), Arc::new(far));
        for (from, into) in [(near.clone(), far.clone()), (far, near)] {
            let plan = Plan::draw(&mut random, bytes_max, shared.kind.load(Ordering::SeqCst));
            let shared = shared.clone();
            pumps.push(std::thread::spawn(move || pump(&from, &into, &plan, &shared)));
        }
    }
    for pump in pumps {
        pump.join().unwrap();
    }
}

/// What will happen to the bytes that flow one way.
struct Plan {
    cut_at: usize,
    damage_at: Option<usize>,
}

impl Plan {
    fn draw(random: &mut Random, bytes_max: usize, kind: bool) -> Plan {
        if kind {
            return Plan { cut_at: usize::MAX, damage_at: None };
        }
        let cut_at = random.below(bytes_max);
        // Close to the cut: a damaged length field makes the reader wait for bytes, and the cut shall end that.
        let damage_at = (random.below(3) == 0).then(|| cut_at.saturating_sub(1 + random.below(500)));
        Plan { cut_at, damage_at }
    }
}

fn pump(mut from: &TcpStream, mut into: &TcpStream, plan: &Plan, shared: &Shared) {
    let mut bytes = [0; 4096];
    let mut passed = 0;
    loop {
        let count = match from.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(count) => count.min(plan.cut_at - passed),
        };
        if let Some(at) = plan.damage_at
            && (passed..passed + count).contains(&at)
        {
            bytes[at - passed] ^= 0x10;
        }
        if into.write_all(&bytes[..count]).is_err() {
            break;
        }
        passed += count;
        if passed == plan.cut_at {
            shared.cuts.fetch_add(1, Ordering::SeqCst);
            break;
        }
    }
    for stream in [from, into] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
