//! Clients: replies, refusals, slow readers.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use ordain::transport::frame::FrameKind;
use ordain::transport::limits::{FRAME_PAYLOAD_BYTES_MAX, OTHER_THREADS_MAX};
use ordain::transport::{ClientError, Listener, ListenerOptions, RefusalCode, SendError, client};

use super::support::*;

#[test]
fn a_client_gets_its_replies_in_order_while_it_sends() {
    const BATCHES: u64 = 200;
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(1), &recorder);
    let (mut sender, mut receiver) = client::connect(&listener.address().to_string(), CLUSTER).unwrap();
    let sending = std::thread::spawn(move || {
        let mut random = Random(30);
        for batch in 0..BATCHES {
            let bytes_max = if batch % 50 == 0 { 1 << 20 } else { 200 };
            let messages: Vec<Bytes> =
                (0..10).map(|i| message(batch * 10 + i, &mut random, bytes_max)).collect();
            sender.send(&messages).unwrap();
        }
        sender
    });
    let mut random = Random(30);
    for i in 0..BATCHES * 10 {
        let bytes_max = if i / 10 % 50 == 0 { 1 << 20 } else { 200 };
        assert!(receiver.receive().unwrap() == message(i, &mut random, bytes_max));
    }
    assert_eq!(receiver.receive_within(Duration::from_millis(5)), Ok(None));
    let counters = listener.counters();
    assert_eq!((counters.clients, counters.client_messages, counters.reply_messages), (1, 2000, 2000));
    assert_eq!(counters.client_bytes, counters.reply_bytes);

    let mut sender = sending.join().unwrap();
    sender.close();
    assert!(matches!(receiver.receive(), Err(ClientError::Disconnected { .. })));
    assert!(matches!(sender.send(&[Bytes::new()]), Err(ClientError::Disconnected { .. })));
    eventually("the receiver knows", || recorder.gone.load(Ordering::SeqCst) == 1);
    assert_eq!(recorder.connected.load(Ordering::SeqCst), 1);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn errors_of_connecting_say_what_to_do() {
    let listener = listen(&member(1), &Arc::new(Recorder::default()));
    let address = listener.address().to_string();
    let error = client::connect(&address, CLUSTER + 1).err().unwrap();
    assert!(
        matches!(&error, ClientError::Refused { code: RefusalCode::ConfigurationDiffers, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("use the same cluster file"), "{error}");

    listener.close(PATIENCE).unwrap();
    let error = client::connect(&address, CLUSTER).err().unwrap();
    assert!(matches!(&error, ClientError::CannotConnect { .. }), "{error}");
    assert!(error.to_string().contains("check that the process runs"), "{error}");
}

#[test]
fn a_message_that_is_too_long_leaves_the_connection_as_it_was() {
    let listener = listen(&member(1), &Arc::new(Recorder::default()));
    let (mut sender, mut receiver) = client::connect(&listener.address().to_string(), 0).unwrap();
    let bytes = FRAME_PAYLOAD_BYTES_MAX + 1;
    let messages = [Bytes::from_static(b"short"), Bytes::from(vec![0; bytes])];
    assert_eq!(sender.send(&messages), Err(ClientError::TooLong { bytes }));
    sender.send(&messages[..1]).unwrap();
    assert_eq!(receiver.receive().unwrap(), messages[0]);
}

#[test]
fn more_clients_than_allowed_are_refused_until_one_leaves() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ListenerOptions { client_connections_max: 2 };
    let recorder = Arc::new(Recorder::default());
    let listener = Listener::start(socket, member(1), recorder.clone(), options).unwrap();
    let address = listener.address().to_string();
    let first = client::connect(&address, 0).unwrap();
    let _second = client::connect(&address, 0).unwrap();
    let error = client::connect(&address, 0).err().unwrap();
    assert!(matches!(&error, ClientError::Refused { code: RefusalCode::TooManyConnections, .. }), "{error}");
    assert_eq!(Raw::peer(&listener, 2, 21).receive_hello().receive_next, 1, "peers have room of their own");
    drop(first);
    eventually("there is room again", || client::connect(&address, 0).is_ok());
    listener.close(PATIENCE).unwrap();
}

#[test]
fn more_connections_than_threads_are_refused_at_once() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ListenerOptions { client_connections_max: 0 };
    let listener = Listener::start(socket, member(1), Arc::new(Recorder::default()), options).unwrap();
    // Each keeps a thread busy with its handshake, for a time: in case this thread is held up longer, more than once.
    let mut silent: Vec<Raw> = Vec::new();
    loop {
        silent.extend((0..OTHER_THREADS_MAX).map(|_| Raw::connect(&listener)));
        let count = silent.len() as u64;
        eventually("all are accepted", || listener.counters().connections == count);
        let mut late = Raw::connect(&listener);
        let refusal = late.receive_refusal();
        if refusal.code == RefusalCode::TooManyConnections {
            break;
        }
        assert_eq!(refusal.code, RefusalCode::HandshakeTimeout);
        assert!(silent.len() < 10 * OTHER_THREADS_MAX);
        silent.push(late);
    }
    drop(silent);
    eventually("peers get in again", || {
        let mut raw = Raw::peer(&listener, 2, 21);
        raw.receive().is_some_and(|frame| frame.kind == FrameKind::Hello)
    });
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(1), &recorder);
    let (mut slow_sender, mut slow_receiver) = client::connect(&listener.address().to_string(), 0).unwrap();
    let (mut sender, mut receiver) = client::connect(&listener.address().to_string(), 0).unwrap();
    slow_sender.send(&[Bytes::from_static(b"flood")]).unwrap();
    eventually("the flood has ended", || recorder.flood_ended.lock().unwrap().is_some());
    assert_eq!(*recorder.flood_ended.lock().unwrap(), Some(SendError::SlowClient));
    eventually("the slow client is gone", || recorder.gone.load(Ordering::SeqCst) == 1);
    assert_eq!(listener.counters().slow_clients, 1);
    let error = loop {
        if let Err(error) = slow_receiver.receive() {
            break error;
        }
    };
    assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");

    sender.send(&[Bytes::from_static(b"hello")]).unwrap();
    assert_eq!(&receiver.receive().unwrap()[..], b"hello", "other clients are not concerned");
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_client_can_be_disconnected_and_its_handle_outlives_it() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(1), &recorder);
    let (_sender, mut receiver) = client::connect(&listener.address().to_string(), 0).unwrap();
    eventually("it is connected", || recorder.last_client.lock().unwrap().is_some());
    let handle = recorder.last_client.lock().unwrap().clone().unwrap();
    handle.send(Bytes::from_static(b"unasked")).unwrap();
    assert_eq!(&receiver.receive().unwrap()[..], b"unasked");
    handle.disconnect();
    assert!(matches!(receiver.receive(), Err(ClientError::Disconnected { .. })));
    eventually("the receiver knows", || recorder.gone.load(Ordering::SeqCst) == 1);
    assert_eq!(handle.send(Bytes::new()), Err(SendError::Closed));
}
