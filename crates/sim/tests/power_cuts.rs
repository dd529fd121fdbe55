//! The power goes after each operation on files in turn, and while a node recovers from that: whatever is half done on the disk,
//! the node goes on from it, and nothing that was acknowledged is lost.
//!
//! Seeds draw such places; here none is left out, in a run that is short and has checkpoints.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_sim::plan::{Fault, Plan, PlannedFault, Replication, WorkloadKind};
use ordain_sim::run::run;
use ordain_sim::time::{MICROSECOND, MILLISECOND};

/// The seed of what is not fixed here.
const SEED: u64 = 7;

/// More operations on files than the run of a node has.
const OPERATIONS_MAX: u64 = 400;

/// More of them than a recovery has.
const RECOVERY_MAX: u64 = 12;

/// A short run with a checkpoint now and then.
fn plan(partitions: u16, replication: Replication) -> Plan {
    let replicas = if replication == Replication::None { 1 } else { 3 };
    let mut plan = calm::plan(SEED, partitions, replicas, WorkloadKind::Append, 12);
    plan.replication = replication;
    plan.checkpoints = calm::checkpoints(Some(4_000));
    (plan.clients.count, plan.clients.think, plan.clients.timeout) = (2, 10 * MILLISECOND, 50 * MILLISECOND);
    plan.heal_at = 400 * MILLISECOND;
    plan
}

/// Runs a plan with more faults; how many crashes there were, and how many of them in a recovery.
fn run_with(plan: &Plan, faults: Vec<PlannedFault>) -> (u64, u64) {
    let plan = Plan { faults, ..plan.clone() };
    let report = run(&plan).unwrap();
    assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
    assert_eq!(report.halted, None, "no disk is damaged");
    (report.happened.crashes, report.happened.recoveries_cut)
}

/// Takes the power of the first machine after each number of operations, until the run is over before that.
fn cut_everywhere(plan: &Plan, step: usize) {
    let (at, lasts) = (0, 200 * MILLISECOND);
    let mut cut = 0;
    for operations in (0..OPERATIONS_MAX).step_by(step) {
        let fault = Fault::PowerCut(0, operations);
        let (crashes, _) = run_with(plan, vec![PlannedFault { at, lasts, fault }]);
        cut += crashes;
    }
    assert!(cut > 0, "the power goes");
}

#[test]
fn the_power_of_a_lone_node_goes_anywhere() {
    cut_everywhere(&plan(1, Replication::None), 1);
}

#[test]
fn the_power_of_a_node_with_a_peer_goes_anywhere() {
    cut_everywhere(&plan(2, Replication::None), 1);
}

#[test]
fn the_power_of_a_replica_goes_anywhere() {
    cut_everywhere(&plan(2, Replication::Sync), 3);
}

/// A machine crashes at many times, and its power goes again after each number of operations of the recovery.
#[test]
fn the_power_goes_while_a_node_recovers() {
    let plan = plan(2, Replication::None);
    let mut cut = 0;
    for crash in 1..12 {
        let at = crash * 10 * MILLISECOND + crash * 137 * MICROSECOND;
        for operations in 0..RECOVERY_MAX {
            let crash = PlannedFault { at, lasts: 5 * MILLISECOND, fault: Fault::Crash(0) };
            let fault = Fault::PowerCut(0, operations);
            let again = PlannedFault { at: at + MILLISECOND, lasts: 10 * MILLISECOND, fault };
            let (_, recoveries) = run_with(&plan, vec![crash, again]);
            cut += recoveries;
        }
    }
    assert!(cut > 10, "{cut} recoveries lost their power");
}
