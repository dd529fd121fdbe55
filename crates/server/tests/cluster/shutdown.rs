//! The end of a process: in good order, in a hurry, by failure.

use std::process::Command;

use rustix::process::Signal;

use super::support::*;

#[test]
fn sigterm_under_load_answers_every_request_and_ends_the_cluster() {
    let mut cluster = Cluster::start(2, 4, BANK);
    let load = Load::start(&cluster, 4);
    load.wait_for_commits(500);
    cluster.processes[0].signal(Signal::TERM);
    // The other cannot commit anything without it, and follows.
    for process in &mut cluster.processes {
        process.wait_for_success();
        let log = process.log();
        assert!(log.contains("shutting down") && log.contains("stopped"), "{log}");
        assert!(!log.contains("still under way"), "all was drained: {log}");
    }
    let tally = load.finish();
    assert!(tally.committed >= 500);
    assert!(tally.unavailable > 0, "requests after the signal are answered too");
}

#[test]
fn sigterm_to_all_processes_of_an_idle_cluster_ends_them() {
    Cluster::start(3, 3, BANK).stop();
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut cluster = Cluster::start(2, 2, BANK);
    let mut client = RawClient::connect(cluster.address(0));
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(1, 1, ordain_workload::Part::WHOLE).unwrap();
    // Without its peer the process cannot answer, so that it drains until its patience is over, or a second signal.
    cluster.processes[1].signal(Signal::STOP);
    let requests: Vec<_> =
        (0..10).map(|sequence| ordered(request_id(0, 1, sequence), 0, operation(generator.next()))).collect();
    client.send(0, &requests);
    // An answer to something else: the requests before it have been taken.
    let status = ordain::db::message::ClientRequest::Status { request: request_id(0, 2, 0), digest: false };
    client.ask(0, status);
    cluster.processes[0].signal(Signal::INT);
    cluster.processes[0].says("shutting down");
    cluster.processes[0].signal(Signal::INT);
    let status = cluster.processes[0].wait();
    assert_eq!(status.code(), Some(130), "{}", cluster.processes[0].log());
    cluster.processes[1].signal(Signal::CONT);
}

#[test]
fn what_cannot_be_drained_is_told_so() {
    let mut cluster = Cluster::start(2, 2, BANK);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(100);
    cluster.processes[1].signal(Signal::STOP);
    let mut client = RawClient::connect(cluster.address(0));
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(1, 1, ordain_workload::Part::WHOLE).unwrap();
    client.send(0, &[ordered(request_id(0, 1, 0), 0, operation(generator.next()))]);
    // An answer to something else: the request before it has been taken, and cannot be answered.
    client.ask(0, ordain::db::message::ClientRequest::Status { request: request_id(0, 2, 0), digest: false });
    cluster.processes[0].signal(Signal::TERM);
    cluster.processes[0].wait_for_success();
    assert!(cluster.processes[0].log().contains("still under way"), "{}", cluster.processes[0].log());
    cluster.processes[1].signal(Signal::CONT);
    assert!(load.finish().unavailable > 0);
}

#[test]
fn a_process_that_restarts_ends_the_others_with_the_reason() {
    let mut cluster = Cluster::start(2, 2, BANK);
    cluster.processes[1].signal(Signal::KILL);
    cluster.processes[1].wait();
    let mut restarted = Process::of_cluster(&cluster.on_disk, "node-1");
    let status = cluster.processes[0].wait();
    assert!(!status.success(), "it has lost what the other had told it");
    let log = cluster.processes[0].log();
    assert!(log.contains("restart the whole cluster"), "{log}");
    cluster.processes[0] = Process::of_cluster(&cluster.on_disk, "node-0");
    eventually("the restarted cluster is ready", || {
        restarted.child.try_wait().unwrap().is_none() && restarted.log().contains(" ready ")
    });
    cluster.processes[1] = restarted;
    let load = Load::start(&cluster, 1);
    load.wait_for_commits(10);
    load.finish();
    cluster.stop();
}

#[test]
fn a_signal_before_anything_is_served_ends_at_once() {
    // Enough rows to load for a while.
    let workload = "name = \"micro\"\nrecords = 4000000";
    let file = TemporaryFile::create(&cluster_file(1, 1, workload).to_text().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_ordain"));
    let mut process =
        Process::spawn(command.args(["start", "--cluster", file.0.to_str().unwrap(), "--process", "node-0"]));
    process.says("loading");
    process.signal(Signal::TERM);
    process.wait_for_success();
}
