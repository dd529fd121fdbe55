//! The operator's commands on running clusters: status, checkpoints, replicas that are lost, added and removed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output};

use ordain::cluster_file::ClusterFile;
use ordain::db::engine::EngineKind;
use ordain::db::node::{CheckpointMode, Status};
use ordain::remote::direct::Direct;
use rustix::process::Signal;
use serde_json::Value;

use super::support::*;

/// Runs a command to its end.
pub(crate) fn ordain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ordain")).args(arguments).output().unwrap()
}

/// Runs a command that must succeed; what it printed.
pub(crate) fn succeed(arguments: &[&str], file: &TemporaryFile) -> String {
    let output = ordain(&[arguments, &["--cluster", file.0.to_str().unwrap()]].concat());
    let (printed, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {}\n{printed}\n{log}", output.status);
    printed.into_owned()
}

/// Runs a command that must fail; its log.
pub(crate) fn fail(arguments: &[&str], file: &TemporaryFile) -> String {
    let output = ordain(&[arguments, &["--cluster", file.0.to_str().unwrap()]].concat());
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `ordain inspect` prints of the data of a process that does not run.
pub(crate) fn inspect(cluster: &Cluster, process: usize) -> String {
    let directory = cluster.file.processes[process].data_directory.as_ref().unwrap();
    let output = ordain(&["inspect", directory.to_str().unwrap()]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A cluster of replicas that each are one process with both partitions.
pub(crate) fn replicated(folder: &TemporaryFolder, replicas: u16, workload: &str) -> Cluster {
    Cluster::spawn_ready(durable_file(folder, replicas, 1, 2, workload))
}

/// What the nodes of a process say, with digests. It may be about to start again: then it is asked once more.
pub(crate) fn statuses(cluster: &Cluster, process: usize) -> Vec<Status> {
    let entry = &cluster.file.processes[process];
    let fingerprint = cluster.file.fingerprint(cluster.workload.catalog());
    let mut told = Vec::new();
    eventually("the nodes of a process tell their status", || {
        let Ok(mut direct) = Direct::connect(entry, fingerprint) else { return false };
        let asked = entry.partitions().into_iter().map(|partition| direct.status(partition, true));
        told = asked.filter_map(Result::ok).collect();
        told.len() == entry.partitions.len()
    });
    told
}

/// Waits until the nodes of these processes have the same state.
pub(crate) fn digests_agree(cluster: &Cluster, processes: &[usize]) {
    eventually("the digests of all replicas agree", || {
        let digests: Vec<Vec<Option<u128>>> = processes
            .iter()
            .map(|process| statuses(cluster, *process).iter().map(|status| status.digest).collect())
            .collect();
        digests.iter().all(|digest| *digest == digests[0])
    });
}

/// The process that leads a partition.
pub(crate) fn leader_of(cluster: &Cluster, partition: usize) -> usize {
    let mut leader = None;
    eventually("somebody leads", || {
        leader = (0..cluster.processes.len()).find(|process| statuses(cluster, *process)[partition].leads);
        leader.is_some()
    });
    leader.unwrap()
}

pub(crate) fn wipe(folder: &TemporaryFolder, process: &str) {
    std::fs::remove_dir_all(folder.0.join(process)).unwrap();
}

#[test]
fn a_replica_that_is_too_far_behind_starts_again_by_itself() {
    let folder = TemporaryFolder::create();
    let mut file = durable_file(&folder, 3, 1, 2, MICRO);
    file.durability.checkpoint_seconds = 1;
    let mut cluster = Cluster::spawn_ready(file);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(100);
    let last = statuses(&cluster, 2)[0].group.as_ref().unwrap().last;
    cluster.processes[2].signal(Signal::KILL);
    cluster.processes[2].wait();
    eventually("the logs of the others begin later", || {
        (0..2).all(|process| {
            let logs = statuses(&cluster, process).into_iter().map(|status| status.group.unwrap().start);
            logs.min() > Some(last + 100)
        })
    });
    cluster.restart(2);
    cluster.processes[2].says("starting again from the disk");
    load.wait_for_commits(200);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    digests_agree(&cluster, &[0, 1, 2]);
    assert!(cluster.processes[2].child.try_wait().unwrap().is_none(), "the process has gone on");
    cluster.stop();
}

#[test]
fn a_leader_that_is_told_to_stop_hands_over_first() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, BANK);
    let load = Load::start(&cluster, 2);
    for _ in 0..3 {
        load.wait_for_commits(100);
        let leader = leader_of(&cluster, 0);
        cluster.processes[leader].signal(Signal::TERM);
        let gap = load.longest_gap_until(|| cluster.processes[leader].child.try_wait().unwrap().is_some());
        println!("longest time without a commit: {gap:?}");
        cluster.processes[leader].wait_for_success();
        let log = cluster.processes[leader].log();
        assert!(log.contains("handed over leadership"), "{log}");
        assert!(!log.contains("nobody took the leadership over"), "{log}");
        load.wait_for_commits(100);
        cluster.restart(leader);
        assert!(cluster.wait_until_ready(), "it has its port again");
    }
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    digests_agree(&cluster, &[0, 1, 2]);
    cluster.stop();
}

#[test]
fn the_status_tells_of_each_node_and_of_those_that_cannot_be_asked() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, BANK);
    leader_of(&cluster, 0);
    leader_of(&cluster, 1);
    let text = succeed(&["status"], &cluster.on_disk);
    assert_eq!(text.lines().count(), 1 + 6, "{text}");
    assert_eq!((text.matches("leader").count(), text.matches("follower").count()), (2, 4), "{text}");
    cluster.processes[1].signal(Signal::KILL);
    cluster.processes[1].wait();
    let output = ordain(&["status", "--json", "--cluster", cluster.on_disk.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "not all could be asked");
    let nodes: Value = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = nodes.as_array().unwrap();
    let unreachable: Vec<&Value> = nodes.iter().filter(|node| node["reachable"] == false).collect();
    assert_eq!((nodes.len(), unreachable.len()), (6, 2));
    assert!(unreachable.iter().all(|node| node["replica"] == 1 && node["problem"].is_string()));
    let told = nodes.iter().find(|node| node["reachable"] == true).unwrap();
    assert_eq!(told["status"]["group"]["voters"].as_array().unwrap().len(), 3);
    assert!(!text.contains("deadlocks") && told["status"].get("deadlocks").is_none(), "an order has none");
    cluster.restart(1);
    assert!(cluster.wait_until_ready());
    cluster.stop();
}

/// What a process says over HTTP, if it does.
fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn deadlocks_are_told_of_where_the_engine_has_them() {
    let mut file = cluster_file(1, 2, BANK);
    file.engine = EngineKind::TwoPhase;
    let on_disk = TemporaryFile::create(&file.to_text().unwrap());
    let (path, http) = (on_disk.0.to_str().unwrap(), free_port());
    let listen = format!("127.0.0.1:{http}");
    let mut process =
        Process::start(&["start", "--cluster", path, "--process", "node-0", "--http-listen", &listen]);
    eventually("the process is ready", || {
        get(http, "/ready").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    let metrics = get(http, "/metrics").unwrap();
    for name in [
        "local_deadlocks_total",
        "distributed_deadlocks_total",
        "phantom_deadlocks_total",
        "lock_timeouts_total",
        "false_lock_timeouts_total",
        "held_at_the_door_total",
        "deadlock_restarts_total",
    ] {
        let line = format!("ordain_{name}{{partition=\"1\"}} 0");
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    let text = succeed(&["status"], &on_disk);
    let line = "deadlocks: 0 local, 0 distributed, 0 phantom; 0 timeouts";
    assert_eq!(text.matches(line).count(), 2, "{text}");
    let nodes: Value = serde_json::from_str(&succeed(&["status", "--json"], &on_disk)).unwrap();
    let told = &nodes[1]["status"]["deadlocks"];
    assert_eq!((&told["phantom_deadlocks"], &told["false_timeout_percent"]), (&0.into(), &Value::Null));
    process.signal(Signal::TERM);
    process.wait_for_success();
}

#[test]
fn a_process_whose_partition_has_no_majority_is_not_ready() {
    let folder = TemporaryFolder::create();
    let on_disk = TemporaryFile::create(&durable_file(&folder, 3, 1, 2, BANK).to_text().unwrap());
    let (path, http) = (on_disk.0.to_str().unwrap(), free_port());
    let listen = format!("127.0.0.1:{http}");
    let watched =
        Process::start(&["start", "--cluster", path, "--process", "node-0-0", "--http-listen", &listen]);
    let mut others = ["node-0-1", "node-0-2"].map(|process| Process::of_cluster(&on_disk, process));
    let says = |status: &str| get(http, "/ready").is_ok_and(|answer| answer.starts_with(status));
    eventually("the process is ready", || says("HTTP/1.1 200"));
    for other in &mut others {
        other.signal(Signal::KILL);
        other.wait();
    }
    eventually("it is not", || says("HTTP/1.1 503"));
    assert!(get(http, "/ready").unwrap().contains("the partitions do not answer"));
    assert!(get(http, "/health").unwrap().starts_with("HTTP/1.1 200"));
    let _second = Process::of_cluster(&on_disk, "node-0-1");
    eventually("it is again", || says("HTTP/1.1 200"));
    drop(watched);
}

#[test]
fn a_new_cluster_begins_when_all_its_processes_are_there() {
    let folder = TemporaryFolder::create();
    let file = durable_file(&folder, 3, 1, 2, BANK);
    let on_disk = TemporaryFile::create(&file.to_text().unwrap());
    let start = |process: &str| Process::of_cluster(&on_disk, process);
    let (first, second) = (start("node-0-0"), start("node-0-1"));
    first.says("waiting for node-0-2");
    second.says("waiting for node-0-2");
    // One that ends before it knows more begins again where it was.
    drop(second);
    let second = start("node-0-1");
    second.says("waiting for node-0-2");
    assert!(!first.log().contains(" ready "), "{}", first.log());
    let third = start("node-0-2");
    for process in [&first, &second, &third] {
        process.says("a new cluster begins");
        process.says(" ready ");
    }
}

#[test]
fn a_replica_that_has_lost_its_data_is_removed_and_added_again() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, MICRO);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(200);
    cluster.processes[1].signal(Signal::KILL);
    cluster.processes[1].wait();
    wipe(&folder, "node-0-1");
    cluster.restart(1);
    assert_eq!(cluster.processes[1].wait().code(), Some(1));
    cluster.processes[1].says("replica 1 has lost its data");
    cluster.processes[1].says("ordain replica remove 1");
    load.wait_for_commits(200);
    for _ in 0..2 {
        // The second time there is nothing left to do.
        assert!(succeed(&["replica", "remove", "1"], &cluster.on_disk).contains("replica 1 is removed"));
    }
    cluster.restart(1);
    cluster.processes[1].says("this replica joins them");
    load.wait_for_commits(200);
    for _ in 0..2 {
        assert!(succeed(&["replica", "add", "1"], &cluster.on_disk).contains("replica 1 is added"));
    }
    // It counts: another one may go.
    cluster.processes[2].signal(Signal::KILL);
    cluster.processes[2].wait();
    load.wait_for_commits(200);
    cluster.restart(2);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    assert!(cluster.wait_until_ready());
    digests_agree(&cluster, &[0, 1, 2]);
    cluster.stop();
}

/// The file of the cluster with one replica more, whose processes are as those of the first.
pub(crate) fn with_another_replica(folder: &TemporaryFolder, file: &ClusterFile) -> ClusterFile {
    let mut larger = file.clone();
    let replica = file.replicas();
    for (group, first) in file.processes.iter().filter(|entry| entry.replica == 0).enumerate() {
        let mut entry = first.clone();
        (entry.name, entry.replica) = (format!("node-{group}-{replica}"), replica);
        entry.address = format!("127.0.0.1:{}", free_port());
        entry.data_directory = Some(folder.0.join(&entry.name));
        larger.processes.push(entry);
    }
    larger
}

#[test]
fn a_replica_is_added_and_another_removed_while_clients_go_on() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, BANK);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(200);
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    cluster.processes.push(Process::of_cluster(&on_disk, "node-0-3"));
    cluster.processes[3].says("this replica joins them");
    assert!(succeed(&["replica", "add", "3"], &on_disk).contains("replica 3 is added"));
    load.wait_for_commits(200);
    // The first one leads, or has led.
    assert!(succeed(&["replica", "remove", "0"], &on_disk).contains("replica 0 is removed"));
    load.wait_for_commits(200);
    cluster.processes[0].wait_for_success();
    cluster.processes[0].says("removed from the cluster");
    // It does not start again with that data.
    let mut removed = Process::of_cluster(&on_disk, "node-0-0");
    assert_eq!(removed.wait().code(), Some(1));
    removed.says("replica 0 was removed from the cluster");
    // One that is started with the older file knows of the new replica all the same.
    cluster.processes[1].signal(Signal::KILL);
    cluster.processes[1].wait();
    load.wait_for_commits(200);
    cluster.restart(1);
    cluster.processes[1].says("the cluster has grown since the cluster file was written");
    cluster.processes[1].says(" ready ");
    load.wait_for_commits(200);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0, "no call was lost");
    cluster.file = larger;
    cluster.check(&tally.totals);
    digests_agree(&cluster, &[1, 2, 3]);
    cluster.processes.remove(0);
    cluster.stop();
}

#[test]
fn changes_that_cannot_be_are_refused() {
    let folder = TemporaryFolder::create();
    let cluster = replicated(&folder, 3, BANK);
    leader_of(&cluster, 0);
    leader_of(&cluster, 1);
    let log = fail(&["replica", "add", "3"], &cluster.on_disk);
    assert!(log.contains("the cluster file has no replica 3"), "{log}");
    let log = fail(&["replica", "replace", "1", "--with", "1"], &cluster.on_disk);
    assert!(log.contains("name another one"), "{log}");
    let mut other = with_another_replica(&folder, &cluster.file);
    other.processes[0].name = "renamed".to_owned();
    let other = TemporaryFile::create(&other.to_text().unwrap());
    let log = fail(&["replica", "add", "3"], &other);
    assert!(log.contains("keep all processes, in their order"), "{log}");
    cluster.processes[1].signal(Signal::STOP);
    let mut log = String::new();
    while !log.contains("only 1 of the 2 other voters can be reached") {
        log = fail(&["replica", "remove", "2", "--limit-seconds", "0"], &cluster.on_disk);
        println!("{log}");
    }
    cluster.processes[1].signal(Signal::CONT);
    eventually("somebody leads", || {
        let text = succeed(&["status"], &cluster.on_disk);
        text.matches("leader").count() == 2
    });
    cluster.stop();
}

#[test]
fn a_checkpoint_is_taken_when_it_is_asked_for() {
    for mode in [CheckpointMode::Concurrent, CheckpointMode::Freeze] {
        let folder = TemporaryFolder::create();
        let mut file = durable_file(&folder, 3, 1, 2, BANK);
        file.durability.checkpoint_mode = mode;
        file.durability.checkpoint_seconds = 3600;
        let cluster = Cluster::spawn_ready(file);
        let load = Load::start(&cluster, 1);
        load.wait_for_commits(100);
        // Once for each replica: they may take turns.
        for _ in 0..3 {
            let printed = succeed(&["checkpoint", "--limit-seconds", "60"], &cluster.on_disk);
            assert!(printed.contains("checkpoint at the end of e"), "{printed}");
            let epoch: u64 = printed.trim().rsplit('e').next().unwrap().parse().unwrap();
            let stable =
                |process: usize| statuses(&cluster, process).iter().all(|status| status.stable.0 >= epoch);
            assert!((0..3).any(stable), "a replica has it");
        }
        load.finish();
        cluster.stop();
    }
}

#[test]
fn a_checkpoint_is_not_waited_for_without_end() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, BANK);
    assert!(succeed(&["checkpoint"], &cluster.on_disk).contains("checkpoint at the end of e"));
    for process in [0, 1] {
        cluster.processes[process].signal(Signal::KILL);
        cluster.processes[process].wait();
    }
    let log = fail(&["checkpoint", "--limit-seconds", "1"], &cluster.on_disk);
    assert!(log.contains("the database has not answered in the time that was given"), "{log}");
    cluster.restart(0);
    cluster.restart(1);
    assert!(succeed(&["checkpoint"], &cluster.on_disk).contains("checkpoint at the end of e"));
    assert!(cluster.wait_until_ready());
    cluster.stop();
}
