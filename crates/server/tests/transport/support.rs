//! What the tests share.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::vec::Drain;

use bytes::Bytes;
use ordain::transport::frame::{Decoder, Frame, FrameKind};
use ordain::transport::{
    ClientHandle, Hello, Listener, ListenerOptions, Membership, Receiver, Refusal, Role, SendError,
};

/// Long enough for anything that does happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const CLUSTER: u64 = 0xc1;

/// A small seeded generator: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A process of a cluster of processes 1 to 4, in its first incarnation.
pub(crate) fn member(process: u16) -> Arc<Membership> {
    incarnation(process, u64::from(process) * 10 + 1)
}

pub(crate) fn incarnation(process: u16, incarnation: u64) -> Arc<Membership> {
    Arc::new(Membership::new(process, 1..=4, CLUSTER, incarnation))
}

pub(crate) fn listen(membership: &Arc<Membership>, receiver: &Arc<Recorder>) -> Listener {
    listen_at("127.0.0.1:0", membership, receiver)
}

pub(crate) fn listen_at(address: &str, membership: &Arc<Membership>, receiver: &Arc<Recorder>) -> Listener {
    let socket = TcpListener::bind(address).unwrap();
    Listener::start(socket, membership.clone(), receiver.clone(), ListenerOptions::default()).unwrap()
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The `i`th message of a test: its number, and some more bytes to vary the length.
pub(crate) fn message(i: u64, random: &mut Random, bytes_max: usize) -> Bytes {
    let more = random.below(bytes_max + 1);
    let mut bytes = i.to_le_bytes().to_vec();
    bytes.resize(8 + more, i as u8);
    bytes.into()
}

/// Records what arrives, sends clients their messages back, and can be told to block.
#[derive(Default)]
pub(crate) struct Recorder {
    from_peers: Mutex<BTreeMap<u16, Vec<Bytes>>>,
    /// While set, `peer_messages` does not return.
    blocked: Mutex<bool>,
    unblocked: Condvar,
    pub(crate) panics: AtomicBool,
    pub(crate) connected: AtomicU64,
    pub(crate) gone: AtomicU64,
    /// Why a client that asked for a flood got no more.
    pub(crate) flood_ended: Mutex<Option<SendError>>,
    /// The client that came last.
    pub(crate) last_client: Mutex<Option<ClientHandle>>,
}

impl Recorder {
    pub(crate) fn count(&self, process: u16) -> usize {
        self.from_peers.lock().unwrap().get(&process).map_or(0, Vec::len)
    }

    pub(crate) fn received(&self, process: u16) -> Vec<Bytes> {
        self.from_peers.lock().unwrap().get(&process).cloned().unwrap_or_default()
    }

    /// Asserts that exactly the messages `0..count` have come, in order.
    pub(crate) fn assert_received(&self, process: u16, count: u64) {
        let numbers: Vec<u64> = self.received(process).iter().map(|bytes| number(bytes)).collect();
        let first_wrong = numbers.iter().enumerate().find(|(i, number)| *i as u64 != **number);
        assert_eq!(first_wrong, None, "messages lost, doubled or out of order");
        assert_eq!(numbers.len() as u64, count);
    }

    pub(crate) fn block(&self, blocked: bool) {
        *self.blocked.lock().unwrap() = blocked;
        self.unblocked.notify_all();
    }
}

fn number(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    assert!(bytes[8..].iter().all(|byte| *byte == number as u8), "message {number} is damaged");
    number
}

impl Receiver for Recorder {
    fn peer_messages(&self, from: u16, payloads: Drain<'_, Bytes>) {
        assert!(!self.panics.load(Ordering::SeqCst), "told to panic");
        self.from_peers.lock().unwrap().entry(from).or_default().extend(payloads);
        let mut blocked = self.blocked.lock().unwrap();
        while *blocked {
            blocked = self.unblocked.wait(blocked).unwrap();
        }
    }

    fn client_connected(&self, client: &ClientHandle) {
        self.connected.fetch_add(1, Ordering::SeqCst);
        *self.last_client.lock().unwrap() = Some(client.clone());
    }

    fn client_messages(&self, client: &ClientHandle, payloads: Drain<'_, Bytes>) {
        for payload in payloads {
            if &payload[..] != b"flood" {
                let _ = client.send(payload);
                continue;
            }
            let reply = Bytes::from(vec![7; 1 << 20]);
            let error = loop {
                if let Err(error) = client.send(reply.clone()) {
                    break error;
                }
            };
            *self.flood_ended.lock().unwrap() = Some(error);
        }
    }

    fn client_gone(&self, client: &ClientHandle) {
        assert_eq!(client.send(Bytes::new()), Err(SendError::Closed));
        self.gone.fetch_add(1, Ordering::SeqCst);
    }
}

/// A connection of which the test writes every byte.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    decoder: Decoder,
}

impl Raw {
    pub(crate) fn connect(listener: &Listener) -> Raw {
        let stream = TcpStream::connect(listener.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Raw { stream, decoder: Decoder::new() }
    }

    /// Connects as a peer would, in a given incarnation.
    pub(crate) fn peer(listener: &Listener, process: u16, incarnation: u64) -> Raw {
        let mut raw = Raw::connect(listener);
        let role = Role::Peer { process };
        let hello = Hello { role, cluster: CLUSTER, incarnation, known_incarnation: 0, receive_next: 0 };
        raw.send(FrameKind::Hello, 0, hello.encode());
        raw
    }

    pub(crate) fn client(listener: &Listener) -> Raw {
        let mut raw = Raw::connect(listener);
        let hello =
            Hello { role: Role::Client, cluster: 0, incarnation: 0, known_incarnation: 0, receive_next: 1 };
        raw.send(FrameKind::Hello, 0, hello.encode());
        raw
    }

    pub(crate) fn send(&mut self, kind: FrameKind, sequence: u64, payload: Bytes) {
        self.stream.write_all(&encoded(kind, sequence, payload)).unwrap();
    }

    /// The next frame; `None` if the connection ends first.
    pub(crate) fn receive(&mut self) -> Option<Frame> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn receive_hello(&mut self) -> Hello {
        let frame = self.receive().unwrap();
        assert_eq!(frame.kind, FrameKind::Hello, "{:?}", Refusal::decode(&frame.payload));
        Hello::decode(&frame.payload).unwrap()
    }

    /// Expects a refusal and then the end.
    pub(crate) fn receive_refusal(&mut self) -> Refusal {
        let frame = self.receive().unwrap();
        assert_eq!(frame.kind, FrameKind::Refusal);
        assert_eq!(self.receive(), None);
        Refusal::decode(&frame.payload)
    }
}

pub(crate) fn encoded(kind: FrameKind, sequence: u64, payload: Bytes) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame { kind, sequence, payload }.encode_into(&mut bytes);
    bytes
}
