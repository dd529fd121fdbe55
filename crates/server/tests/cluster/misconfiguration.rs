//! Wrong cluster files and wrong command lines: each is refused with what to do.

use ordain::db::error::Error;
use ordain::{RemoteCluster, connect};

use super::support::*;

#[test]
fn a_client_with_another_cluster_file_is_refused_with_the_reason() {
    let cluster = Cluster::start(1, 1, BANK);
    let mut other = cluster.file.clone();
    other.seed = 99;
    let error = RemoteCluster::connect(&other, cluster.workload.catalog()).err().unwrap();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("process node-0") && text.contains("use the same cluster file"), "{text}");
    let micro = cluster_file(1, 1, MICRO).workload().unwrap();
    let error = connect(&cluster.file, micro.catalog().clone()).err().unwrap();
    assert!(error.to_string().contains("configuration differs"), "other tables: {error}");
    assert!(connect(&cluster.file, cluster.workload.catalog().clone()).is_ok());
    cluster.stop();
}

#[test]
fn a_process_with_another_cluster_file_is_refused_with_the_reason() {
    let file = cluster_file(2, 2, BANK);
    let mut other = file.clone();
    other.engine = ordain::db::engine::EngineKind::Serial;
    let (one, two) =
        (TemporaryFile::create(&file.to_text().unwrap()), TemporaryFile::create(&other.to_text().unwrap()));
    let (first, second) = (Process::of_cluster(&one, "node-0"), Process::of_cluster(&two, "node-1"));
    for process in [&first, &second] {
        process.says("use the same cluster file everywhere");
        assert!(!process.log().contains(" ready "), "{}", process.log());
    }
}

/// Runs a process that must not start.
fn refused(file: &str, process: &str, words: &str) {
    let mut process = Process::start(&["start", "--cluster", file, "--process", process]);
    let status = process.wait();
    assert_eq!(status.code(), Some(1), "{}", process.log());
    process.says(words);
}

#[test]
fn a_process_that_cannot_start_says_why() {
    let file = cluster_file(1, 1, BANK);
    let text = file.to_text().unwrap();
    let good = TemporaryFile::create(&text);
    refused(good.0.to_str().unwrap(), "nobody", "choose one of node-0");
    refused("there-is-no-such-file.toml", "node-0", "there-is-no-such-file.toml");
    let bad = TemporaryFile::create(&text.replace("partitions = 1", "partitions = 2"));
    refused(bad.0.to_str().unwrap(), "node-0", "no process runs partition 1");
    let bad = TemporaryFile::create(&text.replace("accounts = 400", "accounts = 1"));
    refused(bad.0.to_str().unwrap(), "node-0", "[workload]");
    let taken = std::net::TcpListener::bind(&file.processes[0].address);
    if taken.is_ok() {
        refused(good.0.to_str().unwrap(), "node-0", "free the port");
    }
}

#[test]
fn a_cluster_that_is_not_there_is_named() {
    let file = cluster_file(1, 1, BANK);
    let error = connect(&file, file.workload().unwrap().catalog().clone()).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("node-0") && text.contains("check that the process runs"), "{text}");
}
