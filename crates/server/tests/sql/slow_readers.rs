//! Clients that take what is sent to them slowly, or not at all.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ordain::sql::ListenerOptions;
use ordain::sql::tls::server_config;

use super::{STARTUP, Served, count, encrypted, pem, read_until, soon};

/// Rows that are more than lies between the server and a client, and the bytes of their messages.
const MANY_ROWS: &[u8] = b"SELECT repeat('x', 10000) FROM generate_series(1, 4000)\0";

/// See [`MANY_ROWS`].
const MANY_ROW_BYTES: usize = 4000 * (7 + 4 + 10_000);

/// A server that cuts off whoever does not take what it sends for half a second.
fn impatient() -> Served {
    let tls = Some(server_config(&pem("certificate.pem"), &pem("key.pem")).unwrap());
    Served::start_with(ListenerOptions {
        write_time: Duration::from_millis(500),
        tls,
        ..ListenerOptions::default()
    })
}

/// Logs in and asks for [`MANY_ROWS`].
fn ask_for_many(stream: &mut (impl Read + Write)) {
    stream.write_all(STARTUP).unwrap();
    read_until(stream, b'Z');
    stream.write_all(b"Q").unwrap();
    stream.write_all(&u32::try_from(MANY_ROWS.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(MANY_ROWS).unwrap();
    stream.flush().unwrap();
}

/// Whether the stream is whole messages of rows, cut off somewhere, with nothing else behind them.
fn is_cut_off(mut read: &[u8]) -> bool {
    while let [kind, a, b, c, d, rest @ ..] = read {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        match kind {
            b'T' | b'D' => {}
            _ => return false,
        }
        read = rest.get(length - 4..).unwrap_or_default();
    }
    true
}

#[test]
fn a_client_that_takes_nothing_or_drips_is_cut_off() {
    let served = impatient();
    let mut watcher = served.connect();
    let mut nothing = TcpStream::connect(served.address()).unwrap();
    ask_for_many(&mut nothing);
    let (plain, dripping) = (served.address(), served.address());
    let dripping = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(dripping).unwrap();
        drip(&mut stream)
    });
    let encrypted = std::thread::spawn(move || drip(&mut encrypted(plain)));
    for (name, (read, took)) in [("plain", dripping.join().unwrap()), ("TLS", encrypted.join().unwrap())] {
        assert!(read.len() < MANY_ROW_BYTES, "{name}: all was taken in {took:?}");
        assert!(is_cut_off(&read), "{name}: something follows what was cut off");
    }
    // None of them is left.
    soon(|| (count(&mut watcher, "pg_stat_activity") == 1).then_some(()));
    let mut read = Vec::new();
    // What was on its way comes yet, or the connection is reset.
    let _ = nothing.read_to_end(&mut read);
    assert!(read.len() < MANY_ROW_BYTES && is_cut_off(&read), "{} bytes", read.len());
}

/// Asks for rows and takes some bytes at a time, far fewer than would do, until the server has had enough; then all that is there.
fn drip(stream: &mut (impl Read + Write)) -> (Vec<u8>, Duration) {
    ask_for_many(stream);
    let (begun, mut read, mut some) = (Instant::now(), Vec::new(), [0; 512]);
    while begun.elapsed() < Duration::from_secs(3) {
        match stream.read(&mut some) {
            Ok(0) | Err(_) => break,
            Ok(more) => read.extend_from_slice(&some[..more]),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = stream.read_to_end(&mut read);
    (read, begun.elapsed())
}

/// Takes what comes for [`MANY_ROWS`], slowly but steadily, in longer than the server waits; how many bytes rows are.
fn take_steadily(stream: &mut (impl Read + Write)) -> usize {
    ask_for_many(stream);
    let (mut read, mut some) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let more = stream.read(&mut some).unwrap();
        read.extend_from_slice(&some[..more]);
        if more == 0 || read.ends_with(b"Z\0\0\0\x05I") {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let (mut left, mut bytes) = (&read[..], 0);
    while let [kind, a, b, c, d, rest @ ..] = left {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        assert!(matches!(kind, b'T' | b'D' | b'C' | b'Z'), "a message {kind}");
        bytes += if *kind == b'D' { 1 + length } else { 0 };
        left = &rest[length - 4..];
    }
    bytes
}

#[test]
fn a_client_that_is_slow_but_steady_gets_everything() {
    let served = impatient();
    assert_eq!(take_steadily(&mut TcpStream::connect(served.address()).unwrap()), MANY_ROW_BYTES);
    assert_eq!(take_steadily(&mut encrypted(served.address())), MANY_ROW_BYTES);
}
