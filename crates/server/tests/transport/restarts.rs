//! Who may talk to whom: configurations, unknown processes, and processes that lost their memory.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ordain::transport::frame::FrameKind;
use ordain::transport::limits::LINK_QUEUE_MESSAGES_MAX;
use ordain::transport::{Hello, Link, LinkStatus, Membership, OnSession, RefusalCode, Role, SendError};

use super::support::*;

fn connecting_because(link: &Link, text: &str) {
    eventually(text, || match link.status() {
        LinkStatus::Connecting { reason } => reason.contains(text),
        _ => false,
    });
}

#[test]
fn a_sender_that_restarted_is_refused_and_its_link_keeps_trying() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let mut random = Random(20);
    let link = Link::start(incarnation(1, 11), 2, listener.address().to_string()).unwrap();
    link.send(message(0, &mut random, 5)).unwrap();
    link.close(PATIENCE).unwrap();

    let refusal = Raw::peer(&listener, 1, 12).receive_refusal();
    assert_eq!(refusal.code, RefusalCode::ProcessRestarted);
    assert!(refusal.reason.contains("process 1 restarted and lost its memory"), "{refusal}");

    let restarted = Link::start(incarnation(1, 12), 2, listener.address().to_string()).unwrap();
    restarted.send(Bytes::new()).unwrap();
    connecting_because(&restarted, "process 1 restarted and lost its memory");

    // The other process is restarted too: now they find together.
    let address = listener.address().to_string();
    listener.close(PATIENCE).unwrap();
    let after = Arc::new(Recorder::default());
    let listener = listen_at(&address, &incarnation(2, 22), &after);
    restarted.close(PATIENCE).unwrap();
    assert_eq!(after.count(1), 1);
    recorder.assert_received(1, 1);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_link_to_a_process_that_restarted_fails_for_good() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&incarnation(2, 21), &recorder);
    let address = listener.address().to_string();
    let link = Link::start(member(1), 2, address.clone()).unwrap();
    link.send(message(0, &mut Random(21), 5)).unwrap();
    eventually("it has arrived", || link.counters().acknowledged == 1);
    listener.close(PATIENCE).unwrap();

    let listener = listen_at(&address, &incarnation(2, 22), &Arc::new(Recorder::default()));
    eventually("the link has failed", || matches!(link.status(), LinkStatus::Failed { .. }));
    let error = link.send(Bytes::new()).unwrap_err();
    assert!(matches!(&error, SendError::LinkFailed { process: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("process 2 restarted and lost its memory"), "{error}");
    assert!(error.to_string().contains("restart the whole cluster"), "{error}");
    listener.close(PATIENCE).unwrap();
}

/// A process that may restart, and the sessions with its peers that have begun.
fn resilient(process: u16, incarnation: u64) -> (Arc<Membership>, Arc<Mutex<Vec<u64>>>) {
    let begun = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&begun);
    let on_session: OnSession = Box::new(move |_, session| note.lock().unwrap().push(session));
    (Arc::new(Membership::with_sessions(process, 1..=4, CLUSTER, incarnation, on_session)), begun)
}

fn numbers(from: u64, to: u64) -> Vec<Bytes> {
    (from..to).map(|number| Bytes::from(number.to_le_bytes().to_vec())).collect()
}

#[test]
fn a_link_goes_on_with_a_process_that_restarted_in_a_new_session() {
    let (one, at_one) = resilient(1, 11);
    let first = Arc::new(Recorder::default());
    let listener = listen(&resilient(2, 21).0, &first);
    let address = listener.address().to_string();
    let link = Link::start(one, 2, address.clone()).unwrap();
    eventually("they have met", || *at_one.lock().unwrap() == [1]);
    for payload in numbers(0, 100) {
        link.send_in(1, payload).unwrap();
    }
    eventually("all has arrived", || first.count(1) == 100);
    listener.close(PATIENCE).unwrap();
    // Nobody is there; what is sent now is lost with the session.
    for payload in numbers(100, 200) {
        link.send_in(1, payload).unwrap();
    }
    let (two, at_two) = resilient(2, 22);
    let second = Arc::new(Recorder::default());
    let listener = listen_at(&address, &two, &second);
    eventually("they have met again", || *at_one.lock().unwrap() == [1, 2] && *at_two.lock().unwrap() == [1]);
    link.send_in(1, Bytes::from_static(b"said before the new session was known")).unwrap();
    for payload in numbers(0, 100) {
        link.send_in(2, payload).unwrap();
    }
    eventually("all of the new session has arrived", || second.count(1) == 100);
    second.assert_received(1, 100);
    link.close(PATIENCE).unwrap();
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_full_queue_ends_the_session_and_nobody_waits() {
    let (one, at_one) = resilient(1, 11);
    let (two, at_two) = resilient(2, 21);
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&two, &recorder);
    let address = listener.address().to_string();
    let link = Link::start(one, 2, address.clone()).unwrap();
    eventually("they have met", || *at_one.lock().unwrap() == [1]);
    listener.close(PATIENCE).unwrap();
    let count = LINK_QUEUE_MESSAGES_MAX as u64 + 10;
    for payload in numbers(0, count) {
        link.send_in(1, payload).unwrap();
    }
    assert!(link.counters().dropped >= count - 10, "{:?}", link.counters());
    // The same process is back: it is told of a new session too.
    let listener = listen_at(&address, &two, &recorder);
    eventually("a new session", || *at_one.lock().unwrap() == [1, 2] && *at_two.lock().unwrap() == [1, 2]);
    let before = recorder.count(1);
    for payload in numbers(0, 10) {
        link.send_in(2, payload).unwrap();
    }
    eventually("it has arrived", || recorder.count(1) == before + 10);
    assert_eq!(recorder.received(1)[before..], numbers(0, 10));
    link.close(PATIENCE).unwrap();
    listener.close(PATIENCE).unwrap();
}

#[test]
fn a_process_with_another_configuration_is_refused() {
    let listener = listen(&member(2), &Arc::new(Recorder::default()));
    let other = Arc::new(Membership::new(1, 1..=4, CLUSTER + 1, 11));
    let link = Link::start(other, 2, listener.address().to_string()).unwrap();
    connecting_because(&link, "configuration differs");
    link.send(Bytes::new()).unwrap();
    assert!(listener.counters().refused >= 1);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn an_unknown_process_is_refused() {
    let listener = listen(&member(2), &Arc::new(Recorder::default()));
    for stranger in [5, 2] {
        let refusal = Raw::peer(&listener, stranger, 1).receive_refusal();
        assert_eq!(refusal.code, RefusalCode::UnknownProcess);
        assert!(refusal.reason.contains(&format!("unknown process {stranger}")), "{refusal}");
    }
}

#[test]
fn a_link_that_reaches_another_process_than_it_should_says_so() {
    let listener = listen(&member(3), &Arc::new(Recorder::default()));
    let link = Link::start(member(1), 2, listener.address().to_string()).unwrap();
    connecting_because(&link, "the address of process 2 is answered by Peer { process: 3 }");
}

#[test]
fn a_peer_that_remembers_another_incarnation_of_the_listener_is_told() {
    let listener = listen(&incarnation(2, 22), &Arc::new(Recorder::default()));
    let mut raw = Raw::connect(&listener);
    let role = Role::Peer { process: 1 };
    let hello = Hello { role, cluster: CLUSTER, incarnation: 11, known_incarnation: 21, receive_next: 0 };
    raw.send(FrameKind::Hello, 0, hello.encode());
    let refusal = raw.receive_refusal();
    assert_eq!(refusal.code, RefusalCode::ProcessRestarted);
    assert!(refusal.reason.contains("process 2 restarted"), "{refusal}");
}
