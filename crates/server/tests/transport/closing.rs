//! The end of links and listeners: what is drained, what is reported, and that no thread stays behind.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use ordain::transport::{ClientError, CloseError, Link, RefusalCode, SendError, client};

use super::support::*;

const SHORT: Duration = Duration::from_millis(100);

#[test]
fn closing_a_link_drains_it_even_if_the_peer_comes_late() {
    const COUNT: u64 = 10_000;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    drop(socket);
    let link = Link::start(member(1), 2, address.clone()).unwrap();
    let mut random = Random(50);
    for i in 0..COUNT {
        link.send(message(i, &mut random, 100)).unwrap();
    }
    let closing = std::thread::spawn(move || link.close(PATIENCE));
    let recorder = Arc::new(Recorder::default());
    let listener = listen_at(&address, &member(2), &recorder);
    closing.join().unwrap().unwrap();
    recorder.assert_received(1, COUNT);
    listener.close(PATIENCE).unwrap();
}

#[test]
fn closing_a_link_to_nobody_reports_what_is_left() {
    // One that refuses connections, and one that accepts them and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in ["127.0.0.1:1".to_string(), silent.local_addr().unwrap().to_string()] {
        let link = Link::start(member(1), 2, address).unwrap();
        for _ in 0..7 {
            link.send(Bytes::new()).unwrap();
        }
        assert_eq!(link.close(SHORT), Err(CloseError { undelivered_messages: 7, threads: 0 }));
    }
    let idle = Link::start(member(1), 2, "127.0.0.1:1").unwrap();
    assert_eq!(idle.close(PATIENCE), Ok(()), "nothing to drain: no need of a peer");
}

#[test]
fn a_stopped_link_takes_nothing() {
    let link = Link::start(member(1), 2, "127.0.0.1:1").unwrap();
    link.stop();
    assert_eq!(link.send(Bytes::new()), Err(SendError::Closed));
    assert_eq!(link.close(PATIENCE), Ok(()));
}

#[test]
fn closing_a_listener_writes_the_replies_that_are_queued_and_says_goodbye() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(1), &recorder);
    let (_sender, mut receiver) = client::connect(&listener.address().to_string(), 0).unwrap();
    eventually("it is connected", || recorder.last_client.lock().unwrap().is_some());
    let handle = recorder.last_client.lock().unwrap().take().unwrap();
    let replies: Vec<Bytes> = (0..40).map(|i| Bytes::from(vec![i; 1 << 20])).collect();
    for reply in &replies {
        handle.send(reply.clone()).unwrap();
    }
    let closing = std::thread::spawn(move || listener.close(PATIENCE));
    for reply in &replies {
        assert!(receiver.receive().unwrap() == reply);
    }
    let error = receiver.receive().unwrap_err();
    assert!(matches!(&error, ClientError::Refused { code: RefusalCode::Closing, .. }), "{error}");
    closing.join().unwrap().unwrap();
    assert_eq!(recorder.gone.load(Ordering::SeqCst), 1);
}

#[test]
fn closing_a_listener_does_not_wait_for_a_client_that_does_not_read() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(1), &recorder);
    let _idle = client::connect(&listener.address().to_string(), 0).unwrap();
    eventually("it is connected", || recorder.last_client.lock().unwrap().is_some());
    let handle = recorder.last_client.lock().unwrap().take().unwrap();
    for _ in 0..60 {
        handle.send(Bytes::from(vec![0; 1 << 20])).unwrap();
    }
    assert_eq!(listener.close(SHORT), Ok(()));
    assert_eq!(recorder.gone.load(Ordering::SeqCst), 1);
}

#[test]
fn closing_a_listener_reports_a_receiver_that_does_not_return() {
    let recorder = Arc::new(Recorder::default());
    let listener = listen(&member(2), &recorder);
    let link = Link::start(member(1), 2, listener.address().to_string()).unwrap();
    recorder.block(true);
    link.send(message(0, &mut Random(51), 5)).unwrap();
    eventually("it is being delivered", || recorder.count(1) == 1);
    assert_eq!(listener.close(SHORT), Err(CloseError { undelivered_messages: 0, threads: 1 }));
    recorder.block(false);
}

/// Threads are told apart from those of other tests by the process numbers in their names.
#[cfg(target_os = "linux")]
fn threads_of(processes: [u16; 2]) -> Vec<String> {
    let suffixes = processes.map(|process| format!("-{process}"));
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end while it is looked at.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| suffixes.iter().any(|suffix| name.trim_end().ends_with(suffix))).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn no_thread_stays_behind_whether_closed_or_dropped() {
    use ordain::transport::Membership;

    for (closed, processes) in [(true, [901, 902]), (false, [903, 904])] {
        let [one, two] = processes;
        let membership = |process| Arc::new(Membership::new(process, [one, two], CLUSTER, 1));
        let recorder = Arc::new(Recorder::default());
        let listener = listen(&membership(two), &recorder);
        let link = Link::start(membership(one), two, listener.address().to_string()).unwrap();
        let unreachable = Link::start(membership(two), one, "127.0.0.1:1").unwrap();
        let (mut sender, mut receiver) = client::connect(&listener.address().to_string(), 0).unwrap();
        let silent = Raw::connect(&listener);
        sender.send(&[Bytes::from_static(b"x")]).unwrap();
        receiver.receive().unwrap();
        link.send(Bytes::new()).unwrap();
        eventually("it has arrived", || link.counters().acknowledged == 1);
        // Accepting, two serving, replying, writing twice, reading acknowledgements, and the silent one's if it still may.
        eventually("all threads run", || threads_of(processes).len() >= 7);
        if closed {
            link.close(PATIENCE).unwrap();
            unreachable.close(PATIENCE).unwrap();
            listener.close(PATIENCE).unwrap();
        } else {
            drop((link, unreachable, listener));
        }
        eventually("all threads have ended", || threads_of(processes).is_empty());
        drop((sender, receiver, silent));
    }
}
