//! Replicas: one is killed and the others go on; it comes back and catches up.

use ordain::cluster_file::ClusterFile;
use ordain::db::message::{ClientRequest, Operation};
use ordain::db::node::{Details, Status};
use ordain_workload::Totals;
use rustix::process::Signal;

use super::support::*;

/// What the nodes of a process say.
fn statuses(cluster: &Cluster, process: usize) -> Vec<Status> {
    let mut client = RawClient::connect(cluster.address(process));
    let partitions = cluster.file.processes[process].partitions.clone();
    let ask = |partition: u16| {
        let request = request_id(partition, unique() >> 1, 0);
        let reply = client.ask(partition, ClientRequest::Status { request, digest: true });
        postcard::from_bytes(&reply.outcome.unwrap()).unwrap()
    };
    partitions.into_iter().map(ask).collect()
}

/// Waits until the nodes of all processes have the same state; `cluster` has one process for each replica.
fn digests_agree(cluster: &mut Cluster) {
    assert!(cluster.wait_until_ready(), "one that was started again has its port");
    eventually("the digests of all replicas agree", || {
        let digests: Vec<Vec<Option<u128>>> = (0..cluster.processes.len())
            .map(|process| statuses(cluster, process).iter().map(|status| status.digest).collect())
            .collect();
        digests.iter().all(|digest| *digest == digests[0])
    });
}

#[test]
fn clients_go_on_when_a_replica_is_killed_and_it_catches_up() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 1, 2, MICRO));
    let load = Load::start(&cluster, 2);
    for victim in [0, 1] {
        load.wait_for_commits(300);
        cluster.processes[victim].signal(Signal::KILL);
        cluster.processes[victim].wait();
        load.wait_for_commits(300);
        cluster.restart(victim);
    }
    load.wait_for_commits(300);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0, "no call was lost");
    cluster.check(&tally.totals);
    digests_agree(&mut cluster);
    cluster.stop();
}

/// How many snapshots the nodes of a process have open.
fn open_snapshots(cluster: &Cluster, process: usize) -> usize {
    let mut client = RawClient::connect(cluster.address(process));
    let mut ask = |partition: &u16| {
        let request = request_id(*partition, unique() >> 1, 0);
        let reply = client.ask(*partition, ClientRequest::Details { request });
        postcard::from_bytes::<Details>(&reply.outcome.unwrap()).unwrap().snapshots.len()
    };
    cluster.file.processes[process].partitions.iter().map(&mut ask).sum()
}

#[test]
fn snapshots_end_with_the_process_through_which_they_were_opened() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 1, 2, BANK));
    let open = |process: usize| {
        let mut client = RawClient::connect(cluster.address(process));
        for _ in 0..20 {
            let snapshot = ordered(request_id(0, unique() >> 1, 0), 0, Operation::OpenSnapshot);
            // At first nobody leads.
            eventually("a snapshot is open", || client.ask(0, snapshot.clone()).outcome.is_ok());
        }
        client
    };
    let others = open(0);
    // Each partition has each of them open. Whether the client of a process that is killed is there does not matter.
    let clients = [open(1), open(2)];
    eventually("all are open", || (0..3).all(|process| open_snapshots(&cluster, process) == 120));
    for victim in [1, 2] {
        cluster.processes[victim].signal(Signal::KILL);
        cluster.processes[victim].wait();
        cluster.restart(victim);
        assert!(cluster.wait_until_ready(), "one that was started again has its port");
    }
    eventually("those of the others are left", || {
        (0..3).all(|process| open_snapshots(&cluster, process) == 40)
    });
    drop((others, clients));
    eventually("none is left", || (0..3).all(|process| open_snapshots(&cluster, process) == 0));
    cluster.check(&Totals::new());
    cluster.stop();
}

/// Whom a client asks first changes when that one does not answer.
#[test]
fn a_snapshot_is_closed_where_it_was_opened() {
    let folder = TemporaryFolder::create();
    let cluster = Cluster::spawn_ready(durable_file(&folder, 3, 1, 1, BANK));
    let connection = cluster.connect();
    let snapshots: Vec<_> = (0..20).map(|_| connection.snapshot().unwrap()).collect();
    for process in &cluster.processes {
        process.signal(Signal::STOP);
        drop(connection.snapshot().unwrap());
        process.signal(Signal::CONT);
    }
    drop(snapshots);
    eventually("none is left", || (0..3).all(|process| open_snapshots(&cluster, process) == 0));
    cluster.stop();
}

#[test]
fn a_replica_ends_in_good_order_and_the_others_go_on() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 1, 2, BANK));
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(100);
    cluster.processes[2].signal(Signal::TERM);
    cluster.processes[2].wait_for_success();
    load.wait_for_commits(300);
    cluster.restart(2);
    load.wait_for_commits(100);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    digests_agree(&mut cluster);
    cluster.stop();
}

/// Asynchronous replication: what is acknowledged may be lost with a leader (CAL-34, CAL-35), but nothing is half lost.
#[test]
fn replicas_that_do_not_wait_agree_when_leaders_are_killed() {
    let folder = TemporaryFolder::create();
    let mut file = durable_file(&folder, 3, 2, 2, BANK);
    file.replication.mode = ordain::durable::ReplicationMode::Async;
    let mut cluster = Cluster::spawn_ready(file);
    let load = Load::start(&cluster, 4);
    for victim in [0, 3, 1] {
        load.wait_for_commits(300);
        cluster.processes[victim].signal(Signal::KILL);
        cluster.processes[victim].wait();
        load.wait_for_commits(300);
        cluster.restart(victim);
    }
    load.wait_for_commits(300);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0, "every call was answered");
    // Money is conserved, whatever was lost.
    cluster.check(&tally.totals);
    for partition in 0..2 {
        let group: Vec<usize> = (0..6).filter(|process| process % 2 == partition).collect();
        eventually("the digests of all replicas agree", || {
            let digest = |process: &usize| statuses(&cluster, *process)[0].digest;
            group.iter().all(|process| digest(process) == digest(&group[0]))
        });
    }
    cluster.stop();
}

#[test]
fn the_cluster_of_the_examples_starts_and_takes_the_process_in_its_comment() {
    let folder = TemporaryFolder::create();
    let text = include_str!("../../../../examples/cluster.toml");
    // The last entry is there for the reader to add.
    let grown = text.replace("\n#[[process]]", "\n[[process]]").replace("\n#", "\n");
    let grown = grown.split_once("partitions = 2").map(|(_, rest)| format!("partitions = 2{rest}")).unwrap();
    let comment = "For `ordain replica add 3`, remove the comment signs";
    let grown: Vec<&str> = grown.lines().filter(|line| !line.contains(comment)).collect();
    let mut grown = ClusterFile::parse(&grown.join("\n")).unwrap();
    let mut file = ClusterFile::parse(text).unwrap();
    assert_eq!((file.processes.len(), file.replicas()), (3, 3));
    assert_eq!((grown.processes.len(), grown.replicas()), (4, 4));
    for (number, process) in grown.processes.iter_mut().enumerate() {
        process.address = format!("127.0.0.1:{}", free_port());
        process.data_directory = Some(folder.0.join(process.data_directory.as_ref().unwrap()));
        if let Some(own) = file.processes.get_mut(number) {
            *own = process.clone();
        }
    }
    let catalog = file.workload().unwrap().catalog().clone();
    assert_eq!(file.grown_to(&grown, &catalog), Ok(grown));
    let cluster = Cluster::spawn_ready(file);
    let load = Load::start(&cluster, 1);
    load.wait_for_commits(10);
    let tally = load.finish();
    cluster.check(&tally.totals);
    cluster.stop();
}
