//! A node of a replica is lost: how long the other partitions of that replica stand still (Calvin section 8), and how long clients
//! are without answers when it led its group.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_consensus::raft::RaftOptions;
use ordain_db::node::routes::{FAILURE_MICROSECONDS, HEARTBEAT_MICROSECONDS};
use ordain_db::position::{Epoch, NodeId, PartitionId, ReplicaId};
use ordain_sim::history::History;
use ordain_sim::machine::cost::CostTable;
use ordain_sim::plan::{ClientPlan, Fault, Plan, PlannedFault, WorkloadKind};
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
    let mut stop = Stop::new(&world, NodeId { partition: node, replica });
    while world.run_one(END) {
        stop.look(&world);
    }
    assert_eq!(world.problems(), &[] as &[String]);
    stop.longest.max(END - stop.at)
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

/// Seeds of the runs in which a leader is lost: each draws other election timeouts.
const LEADER_SEEDS: [u64; 4] = [11, 12, 13, 14];

/// Clients that go on calling whatever is unanswered, so that somebody always asks a node that is there, and whose calls are recorded.
fn plan_with_callers(seed: u64) -> Plan {
    let plan = Plan { seed, trace: true, subgroup: false, ..plan() };
    let clients = ClientPlan {
        count: 12,
        window: 10_000,
        think: 20 * MILLISECOND,
        timeout: 100 * MILLISECOND,
        starts_at: ELECTED,
        ..plan.clients.clone()
    };
    Plan { clients, ..plan }
}

/// The longest time a replica waits without a leader until it stands for election, a tick of its clock for each rounding
/// included: then one vote, and the first batch of the new leader.
fn election() -> Nanoseconds {
    let options = RaftOptions::new(ReplicaId(0), 0);
    (options.election_timeout_us_max + options.heartbeat_us) * MICROSECOND + FEW_ROUND_TRIPS
}

/// The longest time in which no client of a partition got an answer, between a moment and the end.
fn longest_silence(history: &History, home: PartitionId, from: Nanoseconds) -> Nanoseconds {
    let of_home = history.requests.iter().filter(|(id, _)| id.client.home == home);
    let ends = of_home.filter_map(|(_, invocation)| Some(invocation.end()?.0));
    let mut times: Vec<Nanoseconds> = ends.filter(|at| *at > from).chain([from, END]).collect();
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
}

/// The leader of a partition's group is lost for good. Nothing is ordered there until the next one is elected, and no partition
/// executes without that part of the order: clients of all of them wait for so long, and no longer. The other node of
/// the replica that has lost one goes on too.
fn lose_leader(seed: u64, partition: PartitionId) {
    let plan = plan_with_callers(seed);
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(&plan, &*workload).unwrap();
    world.run_until(FAULT);
    let replicas = || (0..REPLICAS).map(ReplicaId);
    let replica = replicas().find(|replica| world.leads(NodeId { partition, replica: *replica })).unwrap();
    let fault = Fault::Loss(plan.machine(NodeId { partition, replica }));
    let plan = Plan { faults: vec![PlannedFault { at: FAULT, lasts: 0, fault }], ..plan };
    let mut world = World::new(&plan, &*workload).unwrap();
    let others: Vec<NodeId> = (0..plan.nodes())
        .map(|number| plan.node(number))
        .filter(|node| *node != NodeId { partition, replica })
        .collect();
    world.run_until(FAULT - 1);
    let mut stops: Vec<Stop> = others.iter().map(|node| Stop::new(&world, *node)).collect();
    while world.run_one(END) {
        stops.iter_mut().for_each(|stop| stop.look(&world));
    }
    assert_eq!(world.problems(), &[] as &[String]);
    for stop in &stops {
        let longest = stop.longest.max(END - stop.at);
        assert!(longest < election(), "seed {seed}: {} got no epoch for {longest} ns", stop.node);
    }
    let now = world.now();
    let history = world.history(Some("it goes on".to_owned()));
    for home in (0..plan.partitions).map(PartitionId) {
        let silence = longest_silence(&history, home, FAULT - FEW_ROUND_TRIPS);
        assert!(silence < election(), "seed {seed}: clients of {home}: {silence} ns");
        let least = RaftOptions::new(replica, 0).election_timeout_us_min * MICROSECOND / 2;
        assert!(home != partition || silence > least, "the leader is missed: {silence} ns at {now}");
    }
}

/// How long a node got no epoch.
struct Stop {
    node: NodeId,
    last: Option<Epoch>,
    at: Nanoseconds,
    longest: Nanoseconds,
}

impl Stop {
    fn new(world: &World<'_>, node: NodeId) -> Stop {
        Stop { node, last: world.delivered(node), at: world.now(), longest: 0 }
    }

    fn look(&mut self, world: &World<'_>) {
        let delivered = world.delivered(self.node);
        if delivered != self.last {
            self.longest = self.longest.max(world.now() - self.at);
            (self.last, self.at) = (delivered, world.now());
        }
    }
}

#[test]
fn the_loss_of_a_leader_costs_clients_one_election() {
    for seed in LEADER_SEEDS {
        lose_leader(seed, PartitionId(0));
        lose_leader(seed, PartitionId(1));
    }
}
