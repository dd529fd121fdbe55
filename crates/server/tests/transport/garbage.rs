//! Strangers, liars and sleepers at the port.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ordain::transport::frame::FrameKind;
use ordain::transport::limits::{FRAME_PAYLOAD_BYTES_MAX, HANDSHAKE_TIME_MAX};
use ordain::transport::{Link, Listener, RefusalCode};

use super::frames::{mutated_frame, random_frame};
use super::support::*;

#[test]
fn garbage_at_the_port_harms_nobody() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let link = Link::start(member(1), 2, listener.address().to_string()).unwrap();
    let mut random = Random(40);
    let mut sent = 0;
    for _ in 0..200 {
        let random_frames: Vec<_> = (0..50).map(|_| random_frame(&mut random)).collect();
        throw(&listener, &random_frames);
        let mutated_frames: Vec<_> = (0..50).map(|_| mutated_frame(&mut random)).collect();
        throw(&listener, &mutated_frames);
        for _ in 0..20 {
            link.send(message(sent, &mut random, 100)).unwrap();
            sent += 1;
        }
    }
    link_is_undisturbed(&listener, link, sent);
    recorder.assert_received(1, sent);
    eventually("all strangers are refused", || listener.counters().refused >= 200);
    listener.close(PATIENCE).unwrap();
}

/// Writes some of the frames on connections of their own, some after one another behind a good handshake. The listener may
/// hang up at any time.
fn throw(listener: &Listener, frames: &[Vec<u8>]) {
    let (bare, greeted) = frames.split_first().unwrap();
    let mut stream = TcpStream::connect(listener.address()).unwrap();
    let _ = stream.write_all(bare);
    let _ = stream.shutdown(Shutdown::Write);
    let mut client = Raw::client(listener);
    let _ = client.stream.write_all(&greeted.concat());
}

fn link_is_undisturbed(listener: &Listener, link: Link, sent: u64) {
    eventually("all is acknowledged", || link.counters().acknowledged == sent);
    let counters = link.counters();
    assert_eq!((counters.resent, counters.reconnects), (0, 0));
    assert_eq!(listener.peer_counters(1).unwrap().reconnects, 0);
    link.close(PATIENCE).unwrap();
}

#[test]
fn strangers_are_told_what_is_wrong() {
    let listener = listen(&member(1), &Arc::new(Recorder::default()));
    let hello = Bytes::from_static(b"not a hello");
    let mut other_version = encoded(FrameKind::Hello, 0, hello.clone());
    other_version[4] = 9;
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "does not speak Ordain's protocol"),
        (other_version, "version 9 of the protocol, this side version 1"),
        (encoded(FrameKind::Hello, 0, hello), "hello is malformed"),
        (encoded(FrameKind::Data, 1, Bytes::new()), "kind Data may not come at this point"),
        (encoded(FrameKind::Hello, 0, Bytes::from(vec![0; 70_000])), "announces 70000 bytes"),
    ];
    let count = cases.len() as u64;
    for (bytes, reason) in cases {
        let mut raw = Raw::connect(&listener);
        // It may hang up before the last byte.
        let _ = raw.stream.write_all(&bytes);
        let refusal = raw.receive_refusal();
        assert_eq!(refusal.code, RefusalCode::Malformed);
        assert!(refusal.reason.contains(reason), "{refusal}");
    }
    eventually("all are counted", || listener.counters().refused == count);
}

#[test]
fn who_does_not_complete_the_handshake_in_time_is_refused() {
    let listener = listen(&member(1), &Arc::new(Recorder::default()));
    let started = Instant::now();
    let mut silent = Raw::connect(&listener);
    let mut slow = Raw::connect(&listener);
    let dripping = {
        let mut stream = slow.stream.try_clone().unwrap();
        std::thread::spawn(move || {
            // The first bytes of a good frame, so that nothing is wrong with them but their pace.
            for byte in &encoded(FrameKind::Hello, 0, Bytes::from(vec![0; 1000])) {
                if stream.write_all(&[*byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        })
    };
    for raw in [&mut silent, &mut slow] {
        let frame = raw.receive().unwrap();
        assert_eq!(frame.kind, FrameKind::Refusal);
    }
    assert!(started.elapsed() >= HANDSHAKE_TIME_MAX);
    let _ = slow.stream.shutdown(Shutdown::Both);
    dripping.join().unwrap();
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_lying_length_holds_up_nobody_else() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let mut liar = Raw::client(&listener);
    liar.receive_hello();
    let mut header = encoded(FrameKind::Data, 1, Bytes::new());
    header[8..12].copy_from_slice(&(FRAME_PAYLOAD_BYTES_MAX as u32).to_le_bytes());
    liar.stream.write_all(&header).unwrap();
    let link = Link::start(member(1), 2, listener.address().to_string()).unwrap();
    let mut random = Random(41);
    for i in 0..100 {
        link.send(message(i, &mut random, 100)).unwrap();
    }
    link_is_undisturbed(&listener, link, 100);
    listener.close(PATIENCE).unwrap();
    while let Some(frame) = liar.receive() {
        assert!(matches!(frame.kind, FrameKind::Heartbeat | FrameKind::Refusal));
    }
}
