//! Links between processes: order, exactly once, limits, back-pressure.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use ordain::transport::frame::FrameKind;
use ordain::transport::limits::{FRAME_PAYLOAD_BYTES_MAX, LINK_QUEUE_BYTES_MAX, LINK_QUEUE_MESSAGES_MAX};
use ordain::transport::{Hello, Link, LinkStatus, RefusalCode, SendError};

use super::proxy::Proxy;
use super::support::*;

#[test]
fn payloads_of_all_sizes_go_both_ways_in_order() {
    const COUNT: u64 = 5_000;
    let (one, two) = (member(1), member(2));
    let (at_one, at_two) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
    let (listener_one, listener_two) = (listen(&one, &at_one), listen(&two, &at_two));
    let to_two = Link::start(one, 2, listener_two.address().to_string()).unwrap();
    let to_one = Link::start(two, 1, listener_one.address().to_string()).unwrap();
    let mut random = Random(3);
    let mut bytes = 0;
    for i in 0..COUNT {
        let message = message(i, &mut random, if i % 500 == 0 { 2 << 20 } else { 200 });
        bytes += message.len() as u64;
        to_two.send(message.clone()).unwrap();
        to_one.send(message).unwrap();
    }
    eventually("all is acknowledged", || {
        to_two.counters().acknowledged == COUNT && to_one.counters().acknowledged == COUNT
    });
    assert_eq!(to_two.status(), LinkStatus::Connected);
    let counters = to_two.counters();
    assert_eq!(
        (counters.messages, counters.bytes, counters.resent, counters.reconnects),
        (COUNT, bytes, 0, 0)
    );
    let counters = listener_two.peer_counters(1).unwrap();
    assert_eq!((counters.messages, counters.bytes, counters.reconnects), (COUNT, bytes, 0));
    at_one.assert_received(2, COUNT);
    at_two.assert_received(1, COUNT);
    for link in [to_one, to_two] {
        link.close(PATIENCE).unwrap();
    }
    for listener in [listener_one, listener_two] {
        listener.close(PATIENCE).unwrap();
    }
}

#[test]
fn twenty_thousand_messages_survive_connections_cut_and_damaged_at_random() {
    const COUNT: u64 = 20_000;
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let proxy = Proxy::start(listener.address(), 4, 120_000);
    let link = Link::start(member(1), 2, proxy.address()).unwrap();
    let mut random = Random(5);
    for i in 0..COUNT {
        link.send(message(i, &mut random, 300)).unwrap();
    }
    eventually("all has arrived", || recorder.count(1) as u64 >= COUNT);
    proxy.be_kind();
    link.close(PATIENCE).unwrap();
    recorder.assert_received(1, COUNT);
    assert!(proxy.cuts() >= 10, "only {} connections were cut", proxy.cuts());
    assert!(listener.peer_counters(1).unwrap().reconnects >= 10);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    // Bound but never accepting: the link connects and waits for a hello that does not come.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let link = Link::start(member(1), 2, address.clone()).unwrap();
    let count = LINK_QUEUE_MESSAGES_MAX as u64;
    let mut random = Random(6);
    for i in 0..count {
        link.send(message(i, &mut random, 10)).unwrap();
    }
    let error = link.send(Bytes::new()).unwrap_err();
    assert!(matches!(error, SendError::QueueFull { process: 2, messages: LINK_QUEUE_MESSAGES_MAX, .. }));
    assert_eq!(link.counters().messages, count, "a refused message is not counted");

    drop(socket);
    let recorder = Arc::new(Recorder::default());
    let listener = listen_at(&address, &member(2), &recorder);
    eventually("the queue has drained", || link.counters().acknowledged == count);
    link.send(message(count, &mut random, 10)).unwrap();
    link.close(PATIENCE).unwrap();
    recorder.assert_received(1, count + 1);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn the_queue_is_bounded_in_bytes_and_a_message_in_length() {
    let link = Link::start(member(1), 2, "127.0.0.1:1").unwrap();
    let long = Bytes::from(vec![0; FRAME_PAYLOAD_BYTES_MAX + 1]);
    assert_eq!(link.send(long.clone()), Err(SendError::TooLong { bytes: long.len() }));
    let longest = long.slice(1..);
    for _ in 0..LINK_QUEUE_BYTES_MAX / FRAME_PAYLOAD_BYTES_MAX {
        link.send(longest.clone()).unwrap();
    }
    let bytes = LINK_QUEUE_BYTES_MAX;
    let messages = bytes / FRAME_PAYLOAD_BYTES_MAX;
    let full = SendError::QueueFull { process: 2, messages, bytes };
    assert_eq!(link.send(Bytes::from_static(b"x")), Err(full));
    eventually(
        "the link says why",
        || matches!(link.status(), LinkStatus::Connecting { reason } if !reason.is_empty()),
    );
}

#[test]
fn the_longest_message_arrives() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let link = Link::start(member(1), 2, listener.address().to_string()).unwrap();
    let longest = Bytes::from(vec![5; FRAME_PAYLOAD_BYTES_MAX]);
    link.send(longest.clone()).unwrap();
    link.close(PATIENCE).unwrap();
    assert!(recorder.received(1) == [longest]);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_blocked_receiver_holds_up_its_own_link_only() {
    let (slow, quick) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
    let (listener_two, listener_three) = (listen(&member(2), &slow), listen(&member(3), &quick));
    let one = member(1);
    let to_slow = Link::start(one.clone(), 2, listener_two.address().to_string()).unwrap();
    let to_quick = Link::start(one, 3, listener_three.address().to_string()).unwrap();
    slow.block(true);
    let mut sent = 0;
    let mut random = Random(7);
    // Larger than what sockets buffer, so that the queue does fill.
    while to_slow.send(message(sent, &mut random, 20_000)).is_ok() {
        sent += 1;
    }
    for i in 0..1000 {
        to_quick.send(message(i, &mut random, 100)).unwrap();
    }
    to_quick.close(PATIENCE).unwrap();
    quick.assert_received(1, 1000);
    assert!(slow.count(1) < sent as usize);
    slow.block(false);
    to_slow.close(PATIENCE).unwrap();
    slow.assert_received(1, sent);
}

#[test]
fn a_new_connection_takes_over_after_the_old_one_has_delivered() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    recorder.block(true);
    let mut old = Raw::peer(&listener, 1, 11);
    assert_eq!(old.receive_hello().receive_next, 1);
    let mut random = Random(8);
    old.send(FrameKind::Data, 1, message(0, &mut random, 5));
    eventually("the message is being delivered", || recorder.count(1) == 1);

    let mut new = Raw::peer(&listener, 1, 11);
    assert_eq!(old.receive(), None, "the old connection is cut");
    recorder.block(false);
    let mut answer = new.receive().unwrap();
    if answer.kind == FrameKind::Refusal {
        // This thread was held up so long that the listener sent it away.
        new = Raw::peer(&listener, 1, 11);
        answer = new.receive().unwrap();
    }
    let hello = Hello::decode(&answer.payload).unwrap();
    assert_eq!(hello.receive_next, 2, "what was under way is not asked for again");
    new.send(FrameKind::Data, 2, message(1, &mut random, 5));
    assert_eq!(new.receive().unwrap().sequence, 3, "acknowledged");
    recorder.assert_received(1, 2);
}

#[test]
fn a_receiver_that_stays_blocked_makes_a_new_connection_try_again() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    recorder.block(true);
    let mut old = Raw::peer(&listener, 1, 11);
    old.receive_hello();
    old.send(FrameKind::Data, 1, message(0, &mut Random(9), 5));
    eventually("the message is being delivered", || recorder.count(1) == 1);
    assert_eq!(Raw::peer(&listener, 1, 11).receive_refusal().code, RefusalCode::Busy);
    recorder.block(false);
    assert_eq!(Raw::peer(&listener, 1, 11).receive_hello().receive_next, 2);
}

#[test]
fn a_receiver_that_panicked_takes_nothing_more_from_that_peer() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    recorder.panics.store(true, Ordering::SeqCst);
    let mut raw = Raw::peer(&listener, 1, 11);
    raw.receive_hello();
    raw.send(FrameKind::Data, 1, message(0, &mut Random(10), 5));
    assert_eq!(raw.receive(), None);
    assert_eq!(Raw::peer(&listener, 1, 11).receive_refusal().code, RefusalCode::Failed);
    assert_eq!(Raw::peer(&listener, 3, 31).receive_hello().receive_next, 1, "others are not concerned");
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_payload_out_of_order_ends_the_connection() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let mut random = Random(11);
    let wrong: [fn(u64) -> u64; 3] = [|next| next, |next| next + 2, |_| 0];
    for wrong in wrong {
        let mut raw = Raw::peer(&listener, 1, 11);
        let next = raw.receive_hello().receive_next;
        raw.send(FrameKind::Data, next, message(next - 1, &mut random, 5));
        raw.send(FrameKind::Data, wrong(next), Bytes::new());
        while raw.receive().is_some_and(|frame| frame.kind == FrameKind::Ack) {}
    }
    recorder.assert_received(1, 3);
}
