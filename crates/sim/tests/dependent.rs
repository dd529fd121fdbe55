//! Dependent transactions while the index is updated and replicas fail: the updates are in the order, so that replicas and histories
//! agree (DET-57), and reconnaissance is work of one replica only.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod calm;

use ordain_db::engine::EngineKind;
use ordain_db::position::NodeId;
use ordain_sim::plan::{Fault, Plan, PlannedFault, WorkloadKind, WorkloadPlan};
use ordain_sim::run;
use ordain_sim::time::{MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;
use ordain_workload::micro;

const SEED: u64 = 5;

/// By when the groups have elected their leaders.
const ELECTED: Nanoseconds = 3 * SECOND;

/// Few entries that change all the time, with records of one site and of two; the updates are background calls.
fn plan(replicas: u16, transactions: u64) -> Plan {
    let mut plan = calm::plan(SEED, 2, replicas, WorkloadKind::Micro, transactions);
    plan.workload = WorkloadPlan::Micro(micro::Options {
        seed: SEED,
        sites: 2,
        records: 200,
        contention_index: 0.1,
        multi_partition_percent: 40.0,
        abort_percent: 5.0,
        index: micro::IndexOptions {
            dependent_percent: 60.0,
            entries_per_site: 4,
            position_percent: 30,
            volatility: 100.0,
        },
        ..micro::Options::default()
    });
    plan
}

/// Holds the run against all checkers: serial, strict, replicas equal, conditions of the workload.
fn assert_sound(plan: &Plan) {
    let report = run::run(plan).unwrap();
    assert!(report.violations.is_empty(), "{plan}\n{:#?}", report.violations);
}

#[test]
fn histories_are_sound_while_the_index_is_updated() {
    for engine in EngineKind::ORDERED.into_iter().chain([EngineKind::TwoPhase]) {
        let mut plan = plan(1, 300);
        (plan.engine, plan.trace) = (engine, true);
        assert_sound(&plan);
    }
}

#[test]
fn replicas_agree_while_the_index_is_updated_and_leaders_crash() {
    let mut plan = plan(3, 400);
    plan.trace = true;
    (plan.clients.think, plan.clients.timeout) = (2 * MILLISECOND, 300 * MILLISECOND);
    for machine in 0..2 {
        let at = ELECTED + SECOND / 5 * u64::from(machine + 1);
        plan.faults.push(PlannedFault { at, lasts: SECOND, fault: Fault::Crash(machine) });
    }
    assert_sound(&plan);
}

/// What the paper had not built (its footnote 6): the other replicas find no footprints, they only execute.
#[test]
fn reconnaissance_is_work_of_one_replica() {
    let plan = plan(3, 1_000_000);
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(&plan, &*workload).unwrap();
    world.run_until(ELECTED + SECOND);
    let (mut leading, mut following) = (0, 0);
    for node in (0..plan.nodes()).map(|number| plan.node(number)) {
        let runs = world.runs(node).unwrap();
        assert!(runs.alone > 0, "every replica executes: {runs:?}");
        *if world.leads(node) { &mut leading } else { &mut following } += runs.reconnaissance;
    }
    let misses: u64 = (0..plan.nodes())
        .map(|number| plan.node(number))
        .filter(|node: &NodeId| world.leads(*node))
        .map(|node| world.status(node).unwrap().counters.restarts)
        .sum();
    assert!(leading > 100 && following == 0, "{leading} runs by leaders, {following} by others");
    assert!(misses > 10, "some footprints are stale: {misses}");
}
