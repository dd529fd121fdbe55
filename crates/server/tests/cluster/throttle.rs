//! Throttling where a process is slow in earnest: it is stopped three quarters of the time.

use std::time::Duration;

use ordain::db::engine::EngineKind;
use rustix::process::Signal;

use super::operate::{inspect, statuses};
use super::support::*;

/// So many accounts that transfers rarely wait for each other.
const BANK: &str = "name = \"bank\"\naccounts = 20000\nmulti_partition_percent = 50";

/// Clients, and the calls that each has outstanding: what others ask the slow process for is far more than it does in 50 ms, which
/// is what counts as a lag.
const CLIENTS: u32 = 3;
const WINDOW: usize = 4_000;

/// Refused calls after which throttling is at work.
const SHED: u64 = 100;

/// Lets a process run a quarter of the time, for a while.
fn slow_down(process: &Process) {
    for _ in 0..25 {
        process.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(6));
        process.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The calls that a process's node has shed.
fn shed(cluster: &Cluster, process: usize) -> u64 {
    statuses(cluster, process)[0].counters.shed
}

#[test]
fn a_slow_process_takes_on_less_and_loses_nothing() {
    a_slow_process_takes_on_less(EngineKind::Calvin);
}

#[test]
fn a_slow_process_takes_on_less_with_two_phase_commit() {
    a_slow_process_takes_on_less(EngineKind::TwoPhase);
}

fn a_slow_process_takes_on_less(engine: EngineKind) {
    let folder = TemporaryFolder::create();
    let mut file = durable_file(&folder, 1, 2, 2, BANK);
    (file.engine, file.throttle) = (engine, true);
    let mut cluster = Cluster::spawn_ready(file);
    let load = Load::start_within(WINDOW, &cluster, CLIENTS);
    load.wait_for_commits(1_000);
    eventually("the slow process sheds calls, and when that is not enough the other one spares it", || {
        slow_down(&cluster.processes[1]);
        (0..2).all(|process| shed(&cluster, process) > SHED)
    });
    let mut tally = load.finish();
    let counted = shed(&cluster, 0) + shed(&cluster, 1);
    println!("{engine:?}: {} committed, {} refused, {counted} shed", tally.committed, tally.shed);
    assert!(tally.shed <= counted, "{} calls were refused, and {counted} shed", tally.shed);
    let connection = cluster.connect();
    eventually("nothing is shed any more", || {
        let calls = run_calls(&connection, &*cluster.workload, CLIENTS + 1, |calls| calls.committed < 100);
        let has_shed = calls.shed > 0;
        tally.add(calls);
        !has_shed
    });
    cluster.check(&tally.totals);
    cluster.check_transfers(&tally);
    // The log, which has the levels of throttling, leads to the same state.
    let before = digest(&connection);
    cluster.kill(&[0, 1]);
    if engine.is_ordered() {
        let printed = inspect(&cluster, 1);
        assert!(printed.contains("  throttled: "), "{printed}");
    }
    (0..2).for_each(|process| cluster.restart(process));
    assert!(cluster.wait_until_ready(), "it has its port again");
    assert_eq!(digest(&cluster.connect()), before);
    cluster.stop();
}
