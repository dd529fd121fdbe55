//! Who may talk to whom: configurations, unknown processes, and processes that lost their memory.

use std::sync::Arc;

use bytes::Bytes;
use ordain::transport::frame::FrameKind;
use ordain::transport::{Hello, Link, LinkStatus, Membership, RefusalCode, Role, SendError};

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
