//! The power goes after each operation on files in turn, while a node recovers from that, and after each step of a node: whatever
//! is half done, on the disk and between the nodes, the node goes on from it, and nothing that was acknowledged is lost.
//!
//! Seeds draw such places; here none is left out, in runs that are short and have checkpoints.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_sim::plan::{Fault, Plan, PlannedFault, Replication, WorkloadKind};
use ordain_sim::run::{Report, conclude, run};
use ordain_sim::time::{MICROSECOND, MILLISECOND, Nanoseconds};
use ordain_sim::world::World;

/// Seeds of what is not fixed here.
const SEEDS: [u64; 3] = [7, 8, 9];

/// More operations on files than the run of a node has.
const OPERATIONS_MAX: u64 = 400;

/// More of them than a recovery has.
const RECOVERY_MAX: u64 = 12;

/// Later than any run ends.
const NEVER: Nanoseconds = 1 << 60;

/// A short run with a checkpoint now and then.
fn plan(seed: u64, partitions: u16, replicas: u16) -> Plan {
    let mut plan = calm::plan(seed, partitions, replicas, WorkloadKind::Append, 12);
    plan.replication = if replicas == 1 { Replication::None } else { Replication::Sync };
    plan.checkpoints = calm::checkpoints(Some(4_000));
    (plan.clients.count, plan.clients.think, plan.clients.timeout) = (2, 10 * MILLISECOND, 50 * MILLISECOND);
    // Several replicas elect their leaders first.
    plan.heal_at = if replicas == 1 { 400 * MILLISECOND } else { 1_500 * MILLISECOND };
    plan
}

/// Fails if a run violated something, or ended early.
fn check(plan: &Plan, report: &Report) {
    assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
    assert_eq!(report.halted, None, "no disk is damaged");
}

/// Runs a plan with more faults.
fn run_with(plan: &Plan, faults: Vec<PlannedFault>) -> Report {
    let plan = Plan { faults, ..plan.clone() };
    let report = run(&plan).unwrap();
    check(&plan, &report);
    report
}

/// Takes the power of a machine after each number of operations, until the fault ends before that.
fn cut_everywhere(plan: &Plan, machine: u16) {
    let with_cut = |operations| {
        let fault = Fault::PowerCut(machine, operations);
        run_with(plan, vec![PlannedFault { at: 0, lasts: plan.heal_at, fault }])
    };
    let whole = with_cut(NEVER);
    // From then on the power goes at the end of the fault, at the same time in all runs.
    let cuts =
        (0..OPERATIONS_MAX).take_while(|operations| with_cut(*operations).trace != whole.trace).count();
    assert!(cuts > 20 && cuts < OPERATIONS_MAX as usize, "{cuts} operations, and not all were cut");
}

#[test]
fn the_power_of_a_lone_node_goes_anywhere() {
    SEEDS.iter().for_each(|seed| cut_everywhere(&plan(*seed, 1, 1), 0));
}

#[test]
fn the_power_of_a_node_with_a_peer_goes_anywhere() {
    SEEDS.iter().for_each(|seed| cut_everywhere(&plan(*seed, 2, 1), 0));
}

/// Each replica in a run of its own: one that leads in one run follows in another.
#[test]
fn the_power_of_a_replica_goes_anywhere() {
    for (seed, machine) in SEEDS.into_iter().zip(0..) {
        cut_everywhere(&plan(seed, 1, 3), machine);
    }
}

#[test]
fn the_power_of_a_replica_with_a_peer_goes_anywhere() {
    cut_everywhere(&plan(SEEDS[0], 2, 3), 0);
}

/// Runs a plan until a node has stepped so many times, and lets a machine crash right then; `None` if there are not so many
/// steps before faults end.
fn crash_after_step(plan: &Plan, machine: u16, steps: u64) -> Option<Report> {
    let crash = PlannedFault { at: NEVER, lasts: 5 * MILLISECOND, fault: Fault::Crash(machine) };
    let plan = Plan { faults: vec![crash], ..plan.clone() };
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(&plan, &*workload).unwrap();
    while world.happened().steps < steps {
        if !world.run_one(plan.heal_at) {
            return None;
        }
    }
    world.strike(0);
    let report = conclude(&mut world, &plan, &*workload).unwrap().0;
    check(&plan, &report);
    assert_eq!(report.happened.crashes, 1);
    Some(report)
}

/// A machine crashes after every step of any node.
fn crash_everywhere(plan: &Plan, machine: u16) {
    let crashes = (1..).take_while(|steps| crash_after_step(plan, machine, *steps).is_some()).count();
    assert!(crashes > 10, "seed {}: {crashes} crashes of m{machine}", plan.seed);
}

/// A world that is over soon.
fn small_plan(seed: u64, partitions: u16, replicas: u16) -> Plan {
    let mut plan = plan(seed, partitions, replicas);
    (plan.clients.transactions, plan.clients.think) = (4, MILLISECOND);
    plan
}

#[test]
fn a_node_crashes_after_any_step() {
    SEEDS.iter().for_each(|seed| crash_everywhere(&small_plan(*seed, 1, 1), 0));
}

#[test]
fn one_of_two_nodes_crashes_after_any_step() {
    for machine in 0..2 {
        SEEDS.iter().for_each(|seed| crash_everywhere(&small_plan(*seed, 2, 1), machine));
    }
}

#[test]
fn a_replica_crashes_after_any_step() {
    for (seed, machine) in SEEDS.into_iter().zip(0..) {
        crash_everywhere(&small_plan(seed, 1, 3), machine);
    }
}

/// A machine crashes at many times, and its power goes again after each number of operations of the recovery.
#[test]
fn the_power_goes_while_a_node_recovers() {
    let plan = plan(SEEDS[0], 2, 1);
    let mut cut = 0;
    for crash in 1..12 {
        let at = crash * 10 * MILLISECOND + crash * 137 * MICROSECOND;
        for operations in 0..RECOVERY_MAX {
            let crash = PlannedFault { at, lasts: 5 * MILLISECOND, fault: Fault::Crash(0) };
            let fault = Fault::PowerCut(0, operations);
            let again = PlannedFault { at: at + MILLISECOND, lasts: 10 * MILLISECOND, fault };
            cut += run_with(&plan, vec![crash, again]).happened.recoveries_cut;
        }
    }
    assert!(cut > 10, "{cut} recoveries lost their power");
}
