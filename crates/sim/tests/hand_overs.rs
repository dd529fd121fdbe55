//! A node that is told that it is about to stop lets another lead before it does: nobody waits for an election.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_sim::plan::{Fault, Plan, PlannedFault, WorkloadKind};
use ordain_sim::run::run;
use ordain_sim::time::{MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;

const SEED: u64 = 3;
const REPLICAS: u16 = 3;

/// By when the groups have elected their leaders.
const ELECTED: Nanoseconds = 2 * SECOND;
/// Longer than a few round trips and syncs, and much shorter than the time until followers give a leader up.
const HANDED_OVER: Nanoseconds = 20 * MILLISECOND;

fn plan() -> Plan {
    let mut plan = calm::plan(SEED, 2, REPLICAS, WorkloadKind::Bank, 600);
    plan.clients.timeout = 100 * MILLISECOND;
    plan.heal_at = 20 * SECOND;
    plan
}

/// The replica that leads a partition's group now.
fn leader(world: &World<'_>, partition: u16) -> Option<u16> {
    let node = |replica| NodeId { partition: PartitionId(partition), replica: ReplicaId(replica) };
    (0..REPLICAS).find(|replica| world.leads(node(*replica)))
}

#[test]
fn another_leads_before_the_machine_stops() {
    let mut plan = plan();
    let workload = plan.workload.build().unwrap();
    let quiet = plan.clone();
    let mut world = World::new(&quiet, &*workload).unwrap();
    world.run_until(ELECTED);
    let before = leader(&world, 0).expect("a leader is elected");
    let machine = plan.machine(NodeId { partition: PartitionId(0), replica: ReplicaId(before) });
    plan.faults = vec![
        PlannedFault { at: ELECTED, lasts: 0, fault: Fault::HandOver(machine) },
        PlannedFault { at: ELECTED + HANDED_OVER, lasts: SECOND, fault: Fault::Crash(machine) },
    ];
    let mut world = World::new(&plan, &*workload).unwrap();
    world.run_until(ELECTED + HANDED_OVER);
    let after = leader(&world, 0).expect("another one leads");
    assert_ne!(before, after);
    let answered = world.happened().answered;
    world.run_until(ELECTED + 5 * HANDED_OVER);
    assert_eq!(leader(&world, 0), Some(after));
    // The machine is down, and clients are served as soon as the other partition has noticed it.
    world.run_until(ELECTED + SECOND);
    assert_eq!(leader(&world, 0), Some(after));
    assert!(world.happened().answered > answered, "{:?}", world.happened());
    let report = run(&plan).unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert_eq!((report.happened.hand_overs, report.happened.crashes), (1, 1));
}
