//! The links between processes: cut, damaged, and used by an impostor.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use ordain::db::message::{Message, Operation, Request};
use ordain::db::position::{Entry, Epoch, NodeId, PartitionId};
use ordain::db::procedure::ProcedureId;
use ordain::transport::{Link, Membership};
use ordain::wire::PeerPayload;

use super::proxy::Proxy;
use super::support::*;

#[test]
fn links_that_are_cut_again_and_again_lose_and_double_nothing() {
    let direct = cluster_file(2, 4, MICRO);
    let mut through_proxies = direct.clone();
    let proxies: Vec<Proxy> = through_proxies
        .processes
        .iter_mut()
        .zip(1..)
        .map(|(process, seed)| {
            let address: SocketAddr = process.address.parse().unwrap();
            let proxy = Proxy::start(address, seed, 60_000);
            process.listen = Some(std::mem::replace(&mut process.address, proxy.address()));
            proxy
        })
        .collect();
    let mut cluster = Cluster::spawn_ready(through_proxies);
    // Clients come the direct way: addresses are not part of what both sides must agree on.
    cluster.file = direct;
    let load = Load::start(&cluster, 2);
    eventually("links have been cut many times", || proxies.iter().map(Proxy::cuts).sum::<u64>() > 40);
    load.wait_for_commits(1000);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    proxies.iter().for_each(Proxy::be_kind);
    cluster.stop();
}

fn node(partition: u16) -> NodeId {
    NodeId::first(PartitionId(partition))
}

/// Starts a process whose peer is played by the test, says something to it as that peer, and waits for its end.
fn impostor_says(payload: Bytes, words: &str) {
    let file = cluster_file(2, 2, BANK);
    let on_disk = TemporaryFile::create(&file.to_text().unwrap());
    let mut process = Process::of_cluster(&on_disk, "node-0");
    let workload = file.workload().unwrap();
    let membership = Arc::new(Membership::new(1, [0, 1], file.peer_fingerprint(workload.catalog(), 0, 1), 1));
    let link = Link::start(membership, 0, file.processes[0].address.clone()).unwrap();
    link.send(payload).unwrap();
    let status = process.wait();
    assert_eq!(status.code(), Some(1), "{}", process.log());
    // Its last lines may be read after it has ended.
    process.says("process node-1 sent what cannot be used");
    process.says(words);
}

#[test]
fn a_payload_from_a_peer_that_cannot_be_used_stops_the_process() {
    impostor_says(Bytes::from_static(b"nonsense"), "run the same release");
    let batch =
        Message::Batch { epoch: Epoch(1), term: 0, load: Default::default(), transactions: Vec::new() };
    let from_here = PeerPayload::encode_messages(node(0), node(0), std::slice::from_ref(&batch));
    impostor_says(from_here.unwrap().remove(0), "messages of p0r0, which does not run there");
    let not_here = PeerPayload::encode_messages(node(1), node(1), &[batch]);
    impostor_says(not_here.unwrap().remove(0), "messages to p1r0, which does not run here");
}

#[test]
fn a_panic_in_any_thread_stops_the_process() {
    // An answer to a node that does not exist is a mistake that no input of a client can cause: the thread panics.
    let file = cluster_file(2, 2, BANK);
    let on_disk = TemporaryFile::create(&file.to_text().unwrap());
    let mut process = Process::of_cluster(&on_disk, "node-0");
    let workload = file.workload().unwrap();
    let membership = Arc::new(Membership::new(1, [0, 1], file.peer_fingerprint(workload.catalog(), 0, 1), 1));
    let link = Link::start(membership, 0, file.processes[0].address.clone()).unwrap();
    let operation = Operation::Call { procedure: ProcedureId(9999), arguments: Bytes::new() };
    let request = Request { id: request_id(0, 1, 0), acknowledged: 0, operation };
    let forward = Message::Forward { entry: Entry::of(node(200)), requests: vec![request] };
    let payload = PeerPayload::encode_messages(node(1), node(0), &[forward]);
    link.send(payload.unwrap().remove(0)).unwrap();
    let status = process.wait();
    assert_eq!(status.code(), Some(1), "{}", process.log());
    process.says("a thread panicked");
}
