//! Backups of replicated clusters, restored into new ones.

use std::path::Path;
use std::process::Command;

use chrono::{SecondsFormat, Utc};
use ordain::db::node::Status;

use super::operate::{digests_agree, leader_of, replicated, statuses, succeed, with_another_replica};
use super::support::*;

/// Runs a command on directories that must succeed; what it printed.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ordain")).args(arguments).output().unwrap();
    let (printed, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {}\n{printed}\n{log}", output.status);
    println!("{printed}{log}");
    printed.into_owned()
}

/// The number of a data directory.
fn number_of(directory: &Path) -> String {
    let identity = std::fs::read_to_string(directory.join("ORDAIN")).unwrap();
    let table: toml::Table = identity.parse().unwrap();
    table["id"].as_str().unwrap().to_owned()
}

/// The path of a process's data.
fn data_of(cluster: &Cluster, process: usize) -> String {
    cluster.file.processes[process].data_directory.as_ref().unwrap().to_str().unwrap().to_owned()
}

/// The state of a moment, which is told by a time.
struct Moment {
    time: String,
    statuses: Vec<Status>,
}

/// Lets calls commit, and notes the moment after them; `level` are processes that then have the same state.
fn work(cluster: &Cluster, level: &[usize]) -> Moment {
    let load = Load::start(cluster, 2);
    load.wait_for_commits(300);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    digests_agree(cluster, level);
    let statuses = level.iter().take(1).flat_map(|process| statuses(cluster, *process)).collect();
    // Batches bear whole microseconds, of this machine's clock.
    std::thread::sleep(std::time::Duration::from_millis(2));
    let time = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    std::thread::sleep(std::time::Duration::from_millis(2));
    Moment { time, statuses }
}

fn digests(statuses: &[Status]) -> Vec<Option<u128>> {
    statuses.iter().map(|status| status.digest).collect()
}

#[test]
fn a_replicated_cluster_is_restored_to_a_time() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, MICRO);
    work(&cluster, &[0, 1, 2]);
    succeed(&["checkpoint"], &cluster.on_disk);
    let wanted = work(&cluster, &[0, 1, 2]);
    work(&cluster, &[0, 1, 2]);
    // A follower is as good as the leader, and is not disturbed.
    let follower = (leader_of(&cluster, 0) + 1) % 3;
    let place = folder.0.join("archive");
    let place = place.to_str().unwrap();
    run(&["backup", "--data-dir", &data_of(&cluster, follower), "--to", place]);
    assert!(cluster.wait_until_ready());
    cluster.stop();

    let restored = TemporaryFolder::create();
    let file = durable_file(&restored, 3, 1, 2, MICRO);
    for (replica, entry) in file.processes.iter().enumerate() {
        let directory = entry.data_directory.as_ref().unwrap().to_str().unwrap();
        let replica = replica.to_string();
        run(&[
            "restore",
            "--from",
            place,
            "--data-dir",
            directory,
            "--replica",
            &replica,
            "--to-time",
            &wanted.time,
        ]);
    }
    let mut cluster = Cluster::spawn_ready(file);
    digests_agree(&cluster, &[0, 1, 2]);
    assert_eq!(digests(&statuses(&cluster, 0)), digests(&wanted.statuses), "it is the state of that time");
    // It goes on, and one replica may go.
    let load = Load::start(&cluster, 2);
    load.wait_for_commits(100);
    cluster.processes[0].signal(rustix::process::Signal::KILL);
    cluster.processes[0].wait();
    load.wait_for_commits(200);
    cluster.restart(0);
    assert_eq!(load.finish().unavailable, 0);
    assert!(cluster.wait_until_ready());
    digests_agree(&cluster, &[0, 1, 2]);
    cluster.stop();
}

#[test]
fn replicas_of_several_processes_are_restored_to_the_same_epoch() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 2, 2, BANK));
    let tally = work_of_all(&cluster);
    let place = folder.0.join("archive");
    let place = place.to_str().unwrap();
    // Both processes of the second replica.
    let sources = [2, 3].map(|process| {
        let directory = data_of(&cluster, process);
        run(&["backup", "--data-dir", &directory, "--to", place]);
        number_of(Path::new(&directory))
    });
    assert!(cluster.wait_until_ready());
    cluster.stop();

    let restored = TemporaryFolder::create();
    let file = durable_file(&restored, 3, 2, 2, BANK);
    let mut epoch: Option<String> = None;
    for (process, entry) in file.processes.iter().enumerate() {
        let directory = entry.data_directory.as_ref().unwrap().to_str().unwrap();
        let (source, beside) = (&sources[process % 2], &sources[1 - process % 2]);
        let replica = entry.replica.to_string();
        let mut arguments = vec!["restore", "--from", place, "--data-dir", directory, "--replica", &replica];
        arguments.extend(["--source", source.as_str(), "--beside", beside.as_str()]);
        if let Some(epoch) = &epoch {
            arguments.extend(["--to-epoch", epoch.as_str()]);
        }
        let printed = run(&arguments);
        let through = printed.split(|letter: char| !letter.is_ascii_alphanumeric()).find_map(|word| {
            word.strip_prefix('e')
                .filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        });
        epoch = epoch.or(through.map(str::to_owned));
    }
    let cluster = Cluster::spawn_ready(file);
    cluster.check(&tally.totals);
    for group in [[0, 2, 4], [1, 3, 5]] {
        digests_agree(&cluster, &group);
    }
    cluster.stop();
}

#[test]
fn a_cluster_whose_replica_was_replaced_is_restored_with_the_members_that_it_had() {
    let folder = TemporaryFolder::create();
    let mut cluster = replicated(&folder, 3, MICRO);
    let larger = with_another_replica(&folder, &cluster.file);
    let on_disk = TemporaryFile::create(&larger.to_text().unwrap());
    cluster.processes.push(Process::of_cluster(&on_disk, "node-0-3"));
    succeed(&["replica", "replace", "1", "--with", "3"], &on_disk);
    cluster.processes[1].wait_for_success();
    (cluster.file, cluster.on_disk) = (larger, on_disk);
    let before = work(&cluster, &[0, 2, 3]);
    let place = folder.0.join("archive");
    let place = place.to_str().unwrap();
    run(&["backup", "--data-dir", &data_of(&cluster, 3), "--to", place]);
    cluster.processes.remove(1);
    cluster.stop();

    let restored = TemporaryFolder::create();
    let file = durable_file(&restored, 4, 1, 2, MICRO);
    for replica in [0, 2, 3] {
        let directory = file.processes[replica].data_directory.as_ref().unwrap().to_str().unwrap();
        run(&["restore", "--from", place, "--data-dir", directory, "--replica", &replica.to_string()]);
    }
    let mut cluster = Cluster::spawn(file);
    // The one that was no member finds others that are, and waits for an operator.
    cluster.processes[1].says("this replica joins them");
    digests_agree(&cluster, &[0, 2, 3]);
    assert_eq!(digests(&statuses(&cluster, 0)), digests(&before.statuses));
    assert!(succeed(&["replica", "add", "1"], &cluster.on_disk).contains("replica 1 is added"));
    assert_eq!(run_some(&cluster), 0);
    digests_agree(&cluster, &[0, 1, 2, 3]);
    assert!(cluster.wait_until_ready());
    cluster.stop();
}

/// Lets calls commit; how many were not answered.
fn run_some(cluster: &Cluster) -> u64 {
    let load = Load::start(cluster, 2);
    load.wait_for_commits(100);
    load.finish().unavailable
}

/// Lets calls commit until all replicas, of two processes each, are level.
fn work_of_all(cluster: &Cluster) -> Tally {
    let load = Load::start(cluster, 2);
    load.wait_for_commits(300);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    for group in [[0, 2, 4], [1, 3, 5]] {
        digests_agree(cluster, &group);
    }
    tally
}
