//! Clients at the door: those that ask for what is not there, that vanish, that come back, and that ask for too much.

use std::collections::BTreeMap;

use ordain::db::error::Error;
use ordain::db::limits::{ARGUMENTS_BYTES_MAX, SNAPSHOTS_MAX};
use ordain::db::message::{ClientRequest, Operation, Reply, RequestId};
use ordain::db::position::Position;
use ordain::db::procedure::ProcedureId;
use ordain::server::CONNECTION_REQUESTS_MAX;
use ordain::transport::ClientError;
use ordain::wire::WIRE_VERSION;
use ordain_workload::{Part, Totals};

use super::support::*;

fn status(id: RequestId) -> ClientRequest {
    ClientRequest::Status { request: id, digest: false }
}

fn refusal(reply: Reply) -> String {
    reply.outcome.unwrap_err().to_string()
}

#[test]
fn wrong_requests_are_answered_with_what_is_wrong() {
    let cluster = Cluster::start(2, 4, BANK);
    let mut client = RawClient::connect(cluster.address(0));
    let reply = client.ask(1, status(request_id(1, 5, 0)));
    assert!(refusal(reply).contains("p1 runs in process node-1"));
    let reply = client.ask(9, status(request_id(0, 5, 1)));
    assert!(refusal(reply).contains("there is no p9: this cluster has 4 partitions"));
    let reply = client.ask(0, status(request_id(4, 5, 2)));
    assert!(refusal(reply).contains("client home p4 is outside"));
    let long =
        Operation::Call { procedure: ProcedureId(0), arguments: vec![0; ARGUMENTS_BYTES_MAX + 1].into() };
    let reply = client.ask(0, ordered(request_id(0, 5, 3), 0, long));
    assert!(refusal(reply).contains("split the call"));
    let nonsense = Operation::Call { procedure: ProcedureId(77), arguments: vec![1, 2, 3].into() };
    let reply = client.ask(0, ordered(request_id(0, 5, 4), 0, nonsense));
    assert!(refusal(reply).contains("there is no procedure number 77"));
    let reply = client.ask(0, status(request_id(0, 5, 5)));
    assert!(reply.outcome.is_ok(), "the connection is as good as before");
    cluster.stop();
}

#[test]
fn a_malformed_payload_costs_its_sender_the_connection_and_nobody_else() {
    let cluster = Cluster::start(1, 1, BANK);
    let mut other = RawClient::connect(cluster.address(0));
    for payload in [&b""[..], &[WIRE_VERSION], &[WIRE_VERSION + 1, 16, 0, 0], &[WIRE_VERSION, 1], b"nonsense"]
    {
        let mut client = RawClient::connect(cluster.address(0));
        client.sender.send(&[payload.to_vec().into()]).unwrap();
        let error = client.receiver.receive().unwrap_err();
        assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");
    }
    cluster.processes[0].says("run the same release of Ordain on both sides");
    assert!(other.ask(0, status(request_id(0, 1, 0))).outcome.is_ok());
    cluster.stop();
}

#[test]
fn many_clients_share_a_connection() {
    let cluster = Cluster::start(1, 2, MICRO);
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(3, 3, Part::WHOLE).unwrap();
    let mut client = RawClient::connect(cluster.address(0));
    let requests: Vec<ClientRequest> = (0..3000)
        .map(|i| ordered(request_id(0, 100 + i % 300, i / 300), 0, operation(generator.next())))
        .collect();
    client.send(0, &requests);
    let mut committed = BTreeMap::new();
    while committed.len() < requests.len() {
        for reply in client.receive() {
            assert!(reply.outcome.is_ok(), "{reply:?}");
            assert_eq!(committed.insert(reply.request, ()), None, "one answer each");
        }
    }
    cluster.check(&totals(&cluster, 3000));
    cluster.stop();
}

fn totals(cluster: &Cluster, committed: u64) -> Totals {
    let name = cluster.workload.catalog().procedures.name(ProcedureId(0)).to_owned();
    let mut totals = Totals::new();
    totals.of_mut(&name).committed = committed;
    totals
}

#[test]
fn a_client_that_comes_back_gets_the_answers_that_it_missed() {
    let cluster = Cluster::start(2, 2, MICRO);
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(3, 3, Part::WHOLE).unwrap();
    let requests: Vec<ClientRequest> = (0..500)
        .map(|sequence| ordered(request_id(0, 42, sequence), 0, operation(generator.next())))
        .collect();
    let mut old = RawClient::connect(cluster.address(0));
    old.send(0, &requests[..300]);
    let first = old.receive();
    // Not closed: the server must not wait until it learns of that.
    let mut new = RawClient::connect(cluster.address(0));
    new.send(0, &requests);
    let mut answers: BTreeMap<RequestId, Reply> = BTreeMap::new();
    while answers.len() < requests.len() {
        for reply in new.receive() {
            assert!(reply.outcome.is_ok(), "{reply:?}");
            answers.insert(reply.request, reply);
        }
    }
    assert!(first.iter().all(|reply| answers[&reply.request] == *reply), "the same answers again");
    old.send(0, &[status(request_id(0, 42, 500))]);
    let refused = loop {
        if let Some(reply) = old.receive().into_iter().find(|reply| reply.request.sequence == 500) {
            break reply;
        }
    };
    assert!(refusal(refused).contains("used by a newer connection"));
    cluster.check(&totals(&cluster, 500));
    cluster.stop();
}

#[test]
fn a_client_that_vanishes_with_requests_outstanding_harms_nobody() {
    let cluster = Cluster::start(2, 4, BANK);
    let workload = cluster.file.workload().unwrap();
    let load = Load::start(&cluster, 2);
    for client in 10..20 {
        let connection = cluster.connect();
        let mut generator = workload.generator(client, client as u32, Part::WHOLE).unwrap();
        let pending: Vec<_> = (0..1000)
            .map(|_| {
                let call = generator.next();
                connection.submit(call.procedure, call.arguments).unwrap()
            })
            .collect();
        drop(connection);
        for pending in pending {
            let outcome = pending.wait_for(PATIENCE).expect("every request is answered");
            match outcome {
                Ok(_) | Err(Error::Aborted(_) | Error::Unavailable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    load.wait_for_commits(100);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    cluster.stop();
}

#[test]
fn snapshots_of_a_client_that_vanishes_are_closed() {
    let cluster = Cluster::start(2, 2, BANK);
    let mut next = 0;
    let mut open = |client: &mut RawClient| {
        let requests: Vec<ClientRequest> = (0..SNAPSHOTS_MAX as u64 + 10)
            .map(|sequence| ordered(request_id(0, 1000 + next, sequence), 0, Operation::OpenSnapshot))
            .collect();
        next += 1;
        client.send(0, &requests);
        requests.len()
    };
    // One that has seen its snapshots open, and one that goes before they are.
    let mut client = RawClient::connect(cluster.address(0));
    let (mut left, mut opened, mut busy) = (open(&mut client), 0, 0);
    while left > 0 {
        for reply in client.receive() {
            left -= 1;
            match reply.outcome {
                Ok(_) => opened += 1,
                Err(Error::Busy(_)) => busy += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!((opened, busy), (SNAPSHOTS_MAX, 10));
    assert!(matches!(cluster.connect().snapshot(), Err(Error::Busy(_))));
    drop(client);
    eventually("there is room for a snapshot", || cluster.connect().snapshot().is_ok());
    let mut hasty = RawClient::connect(cluster.address(0));
    open(&mut hasty);
    drop(hasty);
    // Room for all of them: none of the others is open any more.
    eventually("all are closed", || {
        let mut client = RawClient::connect(cluster.address(0));
        let mut left = open(&mut client) - 10;
        while left > 0 {
            for reply in client.receive() {
                if reply.request.sequence < SNAPSHOTS_MAX as u64 {
                    left -= 1;
                    if reply.outcome.is_err() {
                        return false;
                    }
                }
            }
        }
        true
    });
    // The last client's snapshots are closed some time after it has gone, too, and the check needs one.
    eventually("there is room for a snapshot", || cluster.connect().snapshot().is_ok());
    cluster.check(&Totals::new());
    cluster.stop();
}

#[test]
fn only_who_has_opened_a_snapshot_closes_it() {
    let cluster = Cluster::start(2, 2, BANK);
    let connection = cluster.connect();
    let snapshot = connection.snapshot().unwrap();
    let mut other = RawClient::connect(cluster.address(0));
    other.send(0, &[ClientRequest::CloseSnapshot(snapshot.position())]);
    other.send(0, &[ClientRequest::CloseSnapshot(Position::LATEST)]);
    assert!(other.ask(0, status(request_id(0, 9, 0))).outcome.is_ok());
    let table = &connection.schema().tables()[0];
    let mut rows = 0;
    let count = |_: &[u8], _: &[u8]| {
        rows += 1;
        Ok(())
    };
    snapshot.scan(&table.all(), count).unwrap();
    assert_eq!(rows, 400);
    drop(snapshot);
    cluster.stop();
}

#[test]
fn a_flood_is_pushed_back_and_nothing_is_lost_or_done_twice() {
    const CLIENTS: u64 = 12;
    const EACH: u64 = 15_000;
    let cluster = Cluster::start(1, 1, "name = \"micro\"\nrecords = 4000\ncontention_index = 0.01");
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(3, 3, Part::WHOLE).unwrap();
    let mut waiting: BTreeMap<RequestId, ClientRequest> = (0..CLIENTS * EACH)
        .map(|i| request_id(0, 1 + i % CLIENTS, i / CLIENTS))
        .map(|id| (id, ordered(id, 0, operation(generator.next()))))
        .collect();
    const {
        assert!(
            CLIENTS * EACH > CONNECTION_REQUESTS_MAX as u64,
            "more than a connection may have outstanding"
        )
    };
    let mut client = RawClient::connect(cluster.address(0));
    let mut batch: Vec<ClientRequest> = waiting.values().cloned().collect();
    // Of all clients in turn, so that each has many outstanding at once.
    batch.sort_by_key(|request| request.id().map(|id| id.sequence));
    let mut busy = 0;
    while !waiting.is_empty() {
        client.send(0, &std::mem::take(&mut batch));
        let mut expected = 1;
        while expected > 0 {
            for reply in client.receive() {
                match &reply.outcome {
                    Ok(_) => assert!(waiting.remove(&reply.request).is_some(), "one answer each"),
                    Err(Error::Busy(_)) => {
                        busy += 1;
                        batch.push(waiting[&reply.request].clone());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            expected = waiting.len() - batch.len();
        }
    }
    assert!(busy > 0, "more was asked than the process takes");
    cluster.check(&totals(&cluster, CLIENTS * EACH));
    cluster.stop();
}

#[test]
fn a_lost_process_ends_pending_requests_with_what_to_do() {
    let cluster = Cluster::start(2, 2, BANK);
    let connection = cluster.connect();
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(3, 3, Part::WHOLE).unwrap();
    cluster.processes[1].signal(rustix::process::Signal::STOP);
    let mut pending = Vec::new();
    for _ in 0..100 {
        let call = generator.next();
        pending.push(connection.submit(call.procedure, call.arguments).unwrap());
    }
    cluster.processes[1].signal(rustix::process::Signal::KILL);
    cluster.processes[0].signal(rustix::process::Signal::KILL);
    for pending in pending {
        if let Err(error) = pending.wait_for(PATIENCE).expect("every request is answered") {
            assert!(matches!(error, Error::Unavailable(_) | Error::Aborted(_)), "{error}");
            if let Error::Unavailable(reason) = &error {
                assert!(reason.contains("whether the request took effect is not known"), "{reason}");
                assert!(reason.contains("send the same request"), "{reason}");
            }
        }
    }
    let late = connection.submit(ProcedureId(0), generator.next().arguments).unwrap();
    assert!(matches!(late.wait(), Err(Error::Unavailable(_))));
}
