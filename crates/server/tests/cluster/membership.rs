//! Replicas that are replaced, added and removed under load while something else goes wrong.

use std::process::{Command, Stdio};

use ordain::cluster_file::ClusterFile;
use ordain::db::message::ClientRequest;
use ordain::db::node::GroupStatus;
use ordain::db::position::{PartitionId, ReplicaId};
use ordain::remote::direct::Direct;
use rustix::process::Signal;

use super::operate::*;
use super::support::*;

/// Starts the processes of the last replica of a file, which the others do not know yet.
fn start_last_replica(cluster: &mut Cluster, on_disk: &TemporaryFile, larger: &ClusterFile) {
    for entry in &larger.processes[cluster.processes.len()..] {
        let process = Process::of_cluster(on_disk, &entry.name);
        process.says("this replica joins them");
        cluster.processes.push(process);
    }
}

/// What the leader of a partition says of its group, as far as these processes know.
fn group_of_leader(cluster: &Cluster, processes: &[usize], partition: u16) -> Option<GroupStatus> {
    let fingerprint = cluster.file.fingerprint(cluster.workload.catalog());
    let asked = processes.iter().filter_map(|process| {
        let mut direct = Direct::connect(&cluster.file.processes[*process], fingerprint).ok()?;
        direct.status(PartitionId(partition), false).ok()
    });
    let leading = asked.filter(|status| status.leads).filter_map(|status| status.group);
    leading.max_by_key(|group| group.term)
}

/// Ends the load and holds the state against it; the replicas of these processes must be level.
fn finish(cluster: Cluster, load: Load, level: &[Vec<usize>]) -> Cluster {
    load.wait_for_commits(200);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0, "no call was lost");
    cluster.check(&tally.totals);
    level.iter().for_each(|processes| digests_agree(&cluster, processes));
    cluster
}

#[test]
fn a_replica_is_replaced_while_clients_go_on() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, BANK);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(200);
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    start_last_replica(&mut cluster, &on_disk, &larger);
    let leader = leader_of(&cluster, 0).to_string();
    for _ in 0..2 {
        // The second time there is nothing left to do.
        let printed = succeed(&["replica", "replace", &leader, "--with", "3"], &on_disk);
        assert!(printed.contains("replica 3 is added"), "{printed}");
        assert!(printed.contains(&format!("replica {leader} is removed")), "{printed}");
    }
    let removed: usize = leader.parse().unwrap();
    cluster.processes[removed].wait_for_success();
    cluster.file = larger;
    let mut left: Vec<usize> = (0..4).filter(|process| *process != removed).collect();
    let mut cluster = finish(cluster, load, &[left.clone()]);
    // The new one counts: another one may go.
    left.retain(|process| *process != 3);
    let load = Load::start(&cluster, 2);
    cluster.processes[left[0]].signal(Signal::KILL);
    cluster.processes[left[0]].wait();
    load.wait_for_commits(200);
    assert_eq!(load.finish().unavailable, 0);
    for process in [left[1], 3] {
        cluster.processes[process].signal(Signal::TERM);
    }
    for process in [left[1], 3] {
        cluster.processes[process].wait_for_success();
    }
}

#[test]
fn replicas_of_several_processes_are_replaced() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 2, 2, BANK));
    let load = Load::start(&cluster, 4);
    load.wait_for_commits(200);
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    start_last_replica(&mut cluster, &on_disk, &larger);
    let printed = succeed(&["replica", "replace", "0", "--with", "3"], &on_disk);
    assert!(printed.contains("replica 3 is added") && printed.contains("replica 0 is removed"), "{printed}");
    for removed in [0, 1] {
        cluster.processes[removed].wait_for_success();
        cluster.processes[removed].says("removed from the cluster");
    }
    cluster.file = larger;
    // Of another replica, one process comes back and the other one goes on.
    cluster.processes[2].signal(Signal::KILL);
    cluster.processes[2].wait();
    load.wait_for_commits(200);
    cluster.restart(2);
    let mut cluster = finish(cluster, load, &[vec![2, 4, 6], vec![3, 5, 7]]);
    cluster.processes.drain(0..2);
    cluster.stop();
}

#[test]
fn a_replica_is_added_while_a_mate_of_its_source_is_gone() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 2, 2, BANK));
    let load = Load::start(&cluster, 4);
    load.wait_for_commits(200);
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    start_last_replica(&mut cluster, &on_disk, &larger);
    let adding = Command::new(env!("CARGO_BIN_EXE_ordain"))
        .args(["replica", "add", "3", "--cluster", on_disk.0.to_str().unwrap()])
        .stdout(Stdio::null())
        .spawn();
    let mut adding = adding.unwrap();
    // The leader of the first partition is the source: the other process of its replica is killed when the new one learns.
    let mut source = None;
    eventually("the new replica learns", || {
        let group = group_of_leader(&cluster, &[0, 2, 4], 0);
        let learns = group.filter(|group| group.learners.contains(&ReplicaId(3)));
        source = learns.map(|group| usize::from(group.replica.0));
        source.is_some()
    });
    let mate = 2 * source.unwrap() + 1;
    cluster.processes[mate].signal(Signal::KILL);
    cluster.processes[mate].wait();
    assert!(adding.wait().unwrap().success(), "it needs no more than a majority");
    load.wait_for_commits(200);
    // It is started with the file of before, and knows better.
    cluster.restart(mate);
    cluster.processes[mate].says(" ready ");
    cluster.file = larger;
    let cluster = finish(cluster, load, &[vec![0, 2, 4, 6], vec![1, 3, 5, 7]]);
    cluster.stop();
}

#[test]
fn a_dead_replica_is_replaced_although_another_one_stops_in_between() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, MICRO);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(200);
    cluster.processes[2].signal(Signal::KILL);
    cluster.processes[2].wait();
    wipe(&folder, "node-0-2");
    load.wait_for_commits(100);
    // A change is proposed, and the only follower that is left stops: nobody can agree to it.
    let leader = leader_of_two(&cluster);
    let follower = 1 - leader;
    cluster.processes[follower].signal(Signal::STOP);
    let fingerprint = cluster.file.fingerprint(cluster.workload.catalog());
    let mut direct = Direct::connect(&cluster.file.processes[leader], fingerprint).unwrap();
    let change = |request| ClientRequest::ChangeMembership {
        request,
        voters: vec![ReplicaId(0), ReplicaId(1)],
        learners: vec![ReplicaId(2)],
    };
    // It may have stopped to lead by now.
    let proposed = direct.request(PartitionId(0), change).unwrap();
    println!("{proposed:?}");
    let log = fail(&["replica", "remove", "2", "--limit-seconds", "1"], &cluster.on_disk);
    let says_who = log.contains("can be reached: start them first") || log.contains("cannot be reached");
    assert!(says_who, "{log}");
    cluster.processes[follower].signal(Signal::CONT);
    // Whatever is under way is finished first.
    eventually("the dead replica is removed", || {
        ordain(&["replica", "remove", "2", "--cluster", cluster.on_disk.0.to_str().unwrap()]).status.success()
    });
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    start_last_replica(&mut cluster, &on_disk, &larger);
    assert!(succeed(&["replica", "add", "3"], &on_disk).contains("replica 3 is added"));
    cluster.file = larger;
    let mut cluster = finish(cluster, load, &[vec![0, 1, 3]]);
    cluster.processes.remove(2);
    cluster.stop();
}

/// Which of the first two processes leads the first partition.
fn leader_of_two(cluster: &Cluster) -> usize {
    let mut leader = None;
    eventually("somebody leads", || {
        leader = group_of_leader(cluster, &[0, 1], 0).map(|group| usize::from(group.replica.0));
        leader.is_some()
    });
    leader.unwrap()
}

#[test]
fn a_dead_replica_is_replaced_and_knows_when_it_comes_back() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, MICRO);
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(200);
    cluster.processes[1].signal(Signal::KILL);
    cluster.processes[1].wait();
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    start_last_replica(&mut cluster, &on_disk, &larger);
    let printed = succeed(&["replica", "replace", "1", "--with", "3"], &on_disk);
    assert!(printed.contains("node-0-1: not told"), "{printed}");
    cluster.file = larger;
    // With its data, and a file of before its successor.
    cluster.restart(1);
    cluster.processes[1].wait_for_success();
    cluster.processes[1].says("removed from the cluster");
    let mut cluster = finish(cluster, load, &[vec![0, 2, 3]]);
    cluster.processes.remove(1);
    cluster.stop();
}
