//! A node of a replica is lost: how long the other partitions of that replica stand still (Calvin section 8).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_db::node::routes::{FAILURE_MICROSECONDS, HEARTBEAT_MICROSECONDS};
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_sim::machine::cost::CostTable;
use ordain_sim::plan::{Fault, Plan, PlannedFault, WorkloadKind};
use ordain_sim::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;

const SEED: u64 = 11;
const REPLICAS: u16 = 3;

/// By when the groups have elected their leaders.
const ELECTED: Nanoseconds = 3 * SECOND;
/// When the fault begins, and when the run ends.
const FAULT: Nanoseconds = 4 * SECOND;
const END: Nanoseconds = 7 * SECOND;

/// Longer than a round trip and the syncs of both ends, with a batch to execute.
const FEW_ROUND_TRIPS: Nanoseconds = 10 * MILLISECOND;

fn plan() -> Plan {
    let mut plan = calm::plan(SEED, 2, REPLICAS, WorkloadKind::Bank, 1_000_000);
    plan.costs = CostTable::default();
    (plan.clients.count, plan.clients.window, plan.clients.think) = (6, 4, MILLISECOND);
    (plan.epochs.microseconds, plan.trace, plan.subgroup) = (1_000, false, false);
    plan
}

/// A replica in which nobody leads before the fault, so that its loss stops no group; and what happens to its node of partition 1.
fn hit(plan: &Plan) -> ReplicaId {
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(plan, &*workload).unwrap();
    world.run_until(FAULT);
    let leads = |replica: &ReplicaId| {
        (0..plan.partitions)
            .any(|partition| world.leads(NodeId { partition: PartitionId(partition), replica: *replica }))
    };
    (0..REPLICAS).map(ReplicaId).find(|replica| !leads(replica)).unwrap()
}

/// Lets something happen to the machine of partition 1 of a replica; the longest time in which its node of partition 0 got no
/// epoch.
fn longest_stop(mut plan: Plan, lasts: Nanoseconds, fault: impl Fn(u16) -> Fault) -> Nanoseconds {
    let replica = hit(&plan);
    let (node, mate) = (PartitionId(0), PartitionId(1));
    let machine = plan.machine(NodeId { partition: mate, replica });
    plan.faults.push(PlannedFault { at: FAULT, lasts, fault: fault(machine) });
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(&plan, &*workload).unwrap();
    world.run_until(ELECTED);
    let (mut last, mut at, mut longest) = (None, world.now(), 0);
    while world.run_one(END) {
        let delivered = world.delivered(NodeId { partition: node, replica });
        if delivered != last {
            longest = longest.max(world.now() - at);
            (last, at) = (delivered, world.now());
        }
    }
    assert_eq!(world.problems(), &[] as &[String]);
    longest.max(END - at)
}

/// How long it takes until a node is taken for failed.
fn detection() -> Nanoseconds {
    (FAILURE_MICROSECONDS + 2 * HEARTBEAT_MICROSECONDS) * MICROSECOND
}

#[test]
fn the_loss_of_a_node_stops_its_replica_until_it_is_noticed() {
    let stop = longest_stop(plan(), SECOND, Fault::Loss);
    let least = FAILURE_MICROSECONDS * MICROSECOND / 2;
    assert!(stop > least, "it is noticed by the clock: {stop} ns");
    assert!(stop < detection() + FEW_ROUND_TRIPS, "{stop} ns");
}

/// CAL-107: the replicas of a subgroup all say the same.
#[test]
fn in_a_subgroup_nobody_notices_the_loss_of_a_node() {
    let stop = longest_stop(Plan { subgroup: true, ..plan() }, SECOND, Fault::Loss);
    assert!(stop < FEW_ROUND_TRIPS, "{stop} ns");
}

/// A node that is back before it is missed, and then has much to execute again, stops nobody for long.
#[test]
fn a_node_that_is_back_soon_and_replays_for_long_is_replaced() {
    let mut plan = plan();
    // Execution takes so long that a replay of a second takes nearly a second.
    (plan.costs.executed_alone, plan.costs.executed_together) = (200_000_000, 200_000_000);
    let stop = longest_stop(plan, 100 * MILLISECOND, Fault::Crash);
    assert!(stop < detection() + FEW_ROUND_TRIPS, "{stop} ns");
}
