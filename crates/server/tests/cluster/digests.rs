//! The oracle: whatever the engine and the number of partitions and processes, the same calls in the same order lead to the
//! same state.

use std::process::Command;

use serde_json::Value;

/// Runs a benchmark to its end; its report.
fn bench(arguments: &str) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ordain")).arg("bench").args(arguments.split(' ')).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {}\n{log}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}\n{log}"))
}

/// The engines that execute many transactions at a time, each in so many processes.
const CLUSTERS: [(&str, u16); 4] = [("calvin", 2), ("calvin", 3), ("calvin-vll", 3), ("aloha", 3)];

/// Runs the same transactions serially in one process and on clusters of processes.
fn check_digest(workload: &str, transactions: u64) {
    let run = format!("--transactions {transactions} --seed 7 --sites 4 --limit-seconds 0 --json -");
    let serial = bench(&format!("{workload} --engine serial --partitions 1 {run}"));
    for (engine, processes) in CLUSTERS {
        let cluster =
            bench(&format!("{workload} --engine {engine} --partitions 4 --processes {processes} {run}"));
        let on = format!("{workload} on {engine} in {processes} processes");
        for field in ["digest", "committed", "aborted"] {
            assert_eq!(serial[field], cluster[field], "{field} of {on}");
        }
        assert_eq!(cluster["consistent"], true, "{on}");
        assert_eq!(cluster["failed"], 0, "{on}");
        let ended = cluster["committed"].as_u64().unwrap() + cluster["aborted"].as_u64().unwrap();
        assert_eq!(ended, transactions, "{on}");
        assert!(cluster["messages"].as_u64().unwrap() > 0, "the partitions did talk: {on}");
    }
}

#[test]
fn bank_in_processes_reaches_the_state_of_serial() {
    check_digest("bank --accounts 400 --multi-partition 50", 5000);
}

#[test]
fn micro_in_processes_reaches_the_state_of_serial() {
    check_digest("micro --records 4000 --contention-index 0.01 --multi-partition 50 --abort-percent 5", 5000);
}

#[test]
fn tpcc_in_processes_reaches_the_state_of_serial() {
    let options = "--warehouses 4 --items 200 --customers 30 --new-order 60 --remote 30 --payment-remote 30";
    check_digest(&format!("tpcc {options}"), 600);
}

#[test]
fn a_timed_run_in_processes_is_consistent() {
    let report = bench(
        "micro --records 4000 --contention-index 0.01 --multi-partition 20 --partitions 4 --processes 2 --clients 200 --seconds 0.5 --limit-seconds 0 --json -",
    );
    assert_eq!(report["consistent"], true);
    assert!(report["committed"].as_u64().unwrap() > 0);
    assert!(report["cpu_s"].as_f64().unwrap() > 0.0, "the children tell their CPU time");
}

#[test]
fn a_durable_run_reaches_the_same_state_and_counts_its_fsyncs() {
    let run = "bank --accounts 400 --transactions 2000 --seed 7 --sites 4 --limit-seconds 0 --json -";
    let serial = bench(&format!("{run} --engine serial"));
    let durable = bench(&format!("{run} --partitions 2 --durable"));
    assert_eq!((&serial["digest"], &serial["fsyncs"]), (&durable["digest"], &Value::Null));
    assert!(durable["fsyncs"].as_u64().unwrap() > 0);
    let commits = durable["commits_per_fsync"].as_f64().unwrap();
    assert!(commits > 1.0, "a group commits together: {commits}");
    assert!(durable["fsync_us"].as_f64().unwrap() > 0.0);
}

#[test]
fn all_of_tpcc_in_processes_reaches_the_state_of_serial() {
    let options = "--warehouses 4 --items 200 --customers 30 --remote 30 --payment-remote 30";
    check_digest(&format!("tpcc --mix full --reads snapshot {options}"), 600);
}
