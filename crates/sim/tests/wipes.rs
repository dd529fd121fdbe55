//! A machine that loses its data comes back: the operator removes its replica from the groups, and its nodes join these anew,
//! empty, get what the others have, and vote again. Nothing that was acknowledged is lost, and nobody waits for long.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_db::node::CheckpointMode;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_sim::checkers;
use ordain_sim::plan::{Fault, Plan, PlannedFault, WorkloadKind};
use ordain_sim::run::{Report, run};
use ordain_sim::time::{MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;

/// The seed of what is not fixed here.
const SEED: u64 = 5;
const PARTITIONS: u16 = 2;
const REPLICAS: u16 = 3;

/// By when the groups have elected their leaders.
const ELECTED: Nanoseconds = SECOND;
/// By when a machine that was wiped then votes again.
const BACK: Nanoseconds = 2 * SECOND;

/// Calls that take until a machine that was wiped votes again, and longer.
const CALLS: u64 = 700;

/// A cluster with a load that lasts longer than a machine takes to come back, and that takes checkpoints.
fn plan(calls: u64) -> Plan {
    let mut plan = calm::plan(SEED, PARTITIONS, REPLICAS, WorkloadKind::Append, calls);
    plan.checkpoints = calm::checkpoints(Some(200_000));
    (plan.clients.snapshots, plan.clients.think, plan.clients.timeout) =
        (2, 40 * MILLISECOND, 100 * MILLISECOND);
    plan.heal_at = 60 * SECOND;
    plan
}

fn wipe(at: Nanoseconds, machine: u16) -> PlannedFault {
    PlannedFault { at, lasts: 50 * MILLISECOND, fault: Fault::Wipe(machine) }
}

fn run_with(calls: u64, faults: Vec<PlannedFault>) -> Report {
    run_plan(Plan { faults, ..plan(calls) })
}

fn run_plan(plan: Plan) -> Report {
    let report = run(&plan).unwrap();
    assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
    report
}

/// The machine of the node that leads a partition's group once leaders are elected, and that of one that does not.
fn leader_and_follower(plan: &Plan, partition: u16) -> (u16, u16) {
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(plan, &*workload).unwrap();
    world.run_until(ELECTED);
    let node = |replica| NodeId { partition: PartitionId(partition), replica: ReplicaId(replica) };
    let (leading, following): (Vec<u16>, Vec<u16>) =
        (0..REPLICAS).partition(|replica| world.leads(node(*replica)));
    assert_eq!(leading.len(), 1, "one of the replicas leads");
    (plan.machine(node(leading[0])), plan.machine(node(following[0])))
}

/// Wipes a machine while clients work, and looks whether it comes back meanwhile.
fn comes_back(machine: u16) {
    let plan = Plan { faults: vec![wipe(ELECTED, machine)], ..plan(CALLS) };
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(&plan, &*workload).unwrap();
    world.run_until(ELECTED - 1);
    let before = world.happened();
    assert_eq!((before.wipes, before.rejoined), (0, 0));
    world.run_until(ELECTED + BACK);
    let after = world.happened();
    assert_eq!((after.wipes, after.rejoined), (1, 1), "the machine votes again");
    assert!(after.answered > before.answered + 50, "clients work: {after:?}");
    assert!(after.answered < plan.clients.transactions, "clients have not ended: {after:?}");
    let unfinished = world.run();
    assert_eq!((world.problems(), &unfinished), (&[] as &[String], &None));
    let violations = checkers::check(&world.history(unfinished), &*workload);
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn a_wiped_follower_comes_back_under_load() {
    comes_back(leader_and_follower(&plan(CALLS), 0).1);
}

#[test]
fn a_wiped_leader_comes_back_under_load() {
    comes_back(leader_and_follower(&plan(CALLS), 0).0);
    comes_back(leader_and_follower(&plan(CALLS), 1).0);
}

/// Each machine in turn loses its data, so that in the end nobody has a disk that it had at first.
#[test]
fn all_machines_are_wiped_one_after_the_other() {
    let faults = (0..PARTITIONS * REPLICAS).map(|machine| wipe(ELECTED + BACK * u64::from(machine), machine));
    let happened = run_with(5 * CALLS, faults.collect()).happened;
    assert_eq!((happened.wipes, happened.rejoined), (6, 6), "{happened:?}");
}

/// Where replicas take checkpoints in turns, one that joins has no turn: it waits for another one's.
#[test]
fn machines_come_back_where_replicas_take_turns() {
    let faults = (0..PARTITIONS * REPLICAS).map(|machine| wipe(ELECTED + BACK * u64::from(machine), machine));
    let mut plan = Plan { faults: faults.collect(), ..plan(5 * CALLS) };
    plan.checkpoints.mode = CheckpointMode::Freeze;
    let happened = run_plan(plan).happened;
    assert!(happened.wipes >= 3 && happened.rejoined > 1, "{happened:?}");
}

/// The others would lack a majority.
#[test]
fn no_second_replica_is_wiped_before_the_first_votes_again() {
    let (first, second) = (0, PARTITIONS);
    let later = |machine| [MILLISECOND, 30 * MILLISECOND].map(|later| wipe(ELECTED + later, machine));
    let run = |more: &[PlannedFault]| run_with(CALLS, [&[wipe(ELECTED, first)], more].concat()).happened;
    for machine in [second, second + 1] {
        let happened = run(&later(machine));
        assert_eq!((happened.wipes, happened.rejoined), (1, 1), "m{machine}: {happened:?}");
    }
    // Another machine of the same replica can be spared; and another replica, once the first is there.
    let happened = run(&[wipe(ELECTED + MILLISECOND, first + 1), wipe(ELECTED + BACK, second)]);
    assert_eq!((happened.wipes, happened.rejoined), (3, 2), "{happened:?}");
    // Nor does a machine burn, or its disk go bad, that the others need.
    for fault in [Fault::Loss(second), Fault::Corrupt(second), Fault::Misdirect(second)] {
        let happened = run(&[PlannedFault { at: ELECTED + MILLISECOND, lasts: 0, fault }]);
        assert_eq!((happened.wipes, happened.rejoined, happened.crashes), (1, 1, 1), "{happened:?}");
    }
}

/// Two of five may be gone at a time, and no third one.
#[test]
fn two_of_five_replicas_are_wiped_at_once() {
    let mut plan = plan(CALLS);
    (plan.replicas, plan.machines) = (5, 5 * PARTITIONS);
    let wipes = [0, PARTITIONS + 1, 2 * PARTITIONS].map(|machine| wipe(ELECTED, machine));
    plan.faults = wipes.to_vec();
    let report = run(&plan).unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert_eq!((report.happened.wipes, report.happened.rejoined), (2, 2), "{:?}", report.happened);
}

/// A machine that crashes while it comes back comes back all the same: at every stage, and when it is wiped again.
#[test]
fn a_wiped_machine_crashes_while_it_comes_back() {
    let mut rejoined = 0;
    for delay in (0..1_000).step_by(45) {
        let at = ELECTED + delay * MILLISECOND;
        let crash = PlannedFault { at, lasts: 20 * MILLISECOND, fault: Fault::Crash(0) };
        let again = wipe(at + 30 * MILLISECOND, 0);
        let happened = run_with(CALLS, vec![wipe(ELECTED, 0), crash, again]).happened;
        assert!(happened.rejoined >= 1, "{happened:?}");
        rejoined += happened.rejoined;
    }
    assert!(rejoined > 23, "some are wiped when they vote again: {rejoined}");
}
