//! Checkpoints that stop execution are taken by one replica at a time, so that clients are served by the others (Calvin section 5,
//! CAL-87).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use std::collections::BTreeMap;

use ordain_db::node::{CheckpointMode, CheckpointOptions};
use ordain_db::position::{Epoch, NodeId, PartitionId, ReplicaId};
use ordain_sim::plan::{Fault, Plan, PlannedFault, WorkloadKind, WorkloadPlan};
use ordain_sim::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;
use ordain_workload::micro;

const SEED: u64 = 11;
const REPLICAS: u16 = 3;

/// By when the groups have elected their leaders.
const ELECTED: Nanoseconds = 3 * SECOND;
/// When the run ends.
const END: Nanoseconds = 6 * SECOND;

/// How long it is from one turn to the next, in microseconds.
const INTERVAL: u64 = 50_000;
/// How long a machine is away that crashes: shorter than it takes others to notice.
const SHORT: Nanoseconds = 20 * MILLISECOND;

/// Longer than a round trip between replicas and the syncs of both ends, with a batch to execute.
const FEW_ROUND_TRIPS: Nanoseconds = 10 * MILLISECOND;

/// What makes checkpoints take long, and how long that is at least.
const RECORDS: u64 = 200_000;
const CHECKPOINT_BYTES_PER_SECOND: u64 = 100_000_000;
const LONG: Nanoseconds = 100 * MILLISECOND;

fn plan(workload: WorkloadKind, checkpoints: Option<u64>) -> Plan {
    let mut plan = calm::plan(SEED, 2, REPLICAS, workload, 100_000);
    plan.checkpoints = CheckpointOptions { mode: CheckpointMode::Freeze, ..calm::checkpoints(checkpoints) };
    (plan.clients.count, plan.clients.window, plan.clients.think) = (6, 4, MILLISECOND);
    plan.trace = false;
    plan
}

/// What was seen of a run.
struct Seen {
    /// How often each replica began to be frozen.
    turns: BTreeMap<u16, u64>,
    answered: u64,
    /// The longest time in which no call was answered.
    gap: Nanoseconds,
    /// The longest time for which a replica was frozen.
    frozen: Nanoseconds,
}

fn watch(plan: &Plan) -> Seen {
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(plan, &*workload).unwrap();
    world.run_until(ELECTED);
    let before = world.happened().answered;
    let mut seen = Seen { turns: BTreeMap::new(), answered: 0, gap: 0, frozen: 0 };
    let (mut was_frozen, mut frozen_at, mut answered_at) = (Vec::new(), 0, world.now());
    while world.run_one(END) {
        let nodes = (0..plan.nodes()).map(|number| plan.node(number));
        let mut frozen: Vec<ReplicaId> =
            nodes.filter(|node| world.is_frozen(*node)).map(|node| node.replica).collect();
        frozen.sort_unstable();
        frozen.dedup();
        assert!(frozen.len() <= 1, "{frozen:?} are frozen at {} us", world.now() / MICROSECOND);
        if frozen != was_frozen {
            frozen.iter().for_each(|replica| *seen.turns.entry(replica.0).or_default() += 1);
            if !was_frozen.is_empty() {
                seen.frozen = seen.frozen.max(world.now() - frozen_at);
            }
            (was_frozen, frozen_at) = (frozen, world.now());
        }
        let answered = world.happened().answered - before;
        if answered > seen.answered {
            seen.gap = seen.gap.max(world.now() - answered_at);
            (seen.answered, answered_at) = (answered, world.now());
        }
    }
    seen.gap = seen.gap.max(END - answered_at);
    assert_eq!(world.problems(), &[] as &[String]);
    seen
}

#[test]
fn one_replica_at_a_time_is_frozen_and_clients_do_not_notice() {
    let quiet = watch(&plan(WorkloadKind::Bank, None));
    let frozen = watch(&plan(WorkloadKind::Bank, Some(50_000)));
    assert!(quiet.turns.is_empty(), "{:?}", quiet.turns);
    let several_each =
        (0..REPLICAS).all(|replica| frozen.turns.get(&replica).is_some_and(|turns| *turns > 2));
    assert!(several_each, "each replica takes checkpoints: {:?}", frozen.turns);
    let allowed = quiet.gap + FEW_ROUND_TRIPS;
    assert!(frozen.gap <= allowed, "no answer for {} us, allowed are {allowed}", frozen.gap / MICROSECOND);
    let (few, usual) = (frozen.answered, quiet.answered);
    assert!(few * 10 >= usual * 9, "{few} calls were answered, without checkpoints {usual}");
}

/// The leaders are frozen too when it is their turn. For as long as the disk needs, which is long here, and until they have caught
/// up, other replicas execute for their clients.
#[test]
fn clients_of_a_frozen_leader_are_answered_by_another_replica() {
    let slow = |interval: Option<u64>| {
        let mut plan = plan(WorkloadKind::Micro, interval);
        if let WorkloadPlan::Micro(micro::Options { records, .. }) = &mut plan.workload {
            *records = RECORDS;
        }
        if let Some(disk) = &mut plan.disk {
            disk.checkpoint_bytes_per_second = Some(CHECKPOINT_BYTES_PER_SECOND);
        }
        plan
    };
    let quiet = watch(&slow(None));
    let frozen = watch(&slow(Some(300_000)));
    assert!((0..REPLICAS).all(|replica| frozen.turns.contains_key(&replica)), "{:?}", frozen.turns);
    assert!(frozen.frozen >= LONG, "no replica was frozen for more than {} us", frozen.frozen / MICROSECOND);
    let allowed = quiet.gap + FEW_ROUND_TRIPS;
    assert!(frozen.gap <= allowed, "no answer for {} us, allowed are {allowed}", frozen.gap / MICROSECOND);
    let (few, usual) = (frozen.answered, quiet.answered);
    assert!(few * 10 >= usual * 9, "{few} calls were answered, without checkpoints {usual}");
}

/// A replica completes its checkpoint, and its node crashes before the leader who decides on turns has heard of that. It says so
/// when it is back, and the others get their turns.
#[test]
fn a_turn_whose_end_is_lost_is_over_all_the_same() {
    let mut plan = plan(WorkloadKind::Bank, Some(INTERVAL));
    let workload = plan.workload.build().unwrap();
    let node = |replica| NodeId { partition: PartitionId(0), replica: ReplicaId(replica) };
    let stable = |world: &World<'_>| -> Vec<Option<Epoch>> {
        (0..REPLICAS).map(|replica| world.stable(node(replica))).collect()
    };
    let quiet = plan.clone();
    let mut world = World::new(&quiet, &*workload).unwrap();
    world.run_until(ELECTED);
    let leader = (0..REPLICAS).find(|replica| world.leads(node(*replica))).unwrap();
    let (ended, at) = loop {
        let before = stable(&world);
        assert!(world.run_one(END));
        let after = stable(&world);
        if let Some(ended) =
            (0..REPLICAS).find(|of| *of != leader && before[usize::from(*of)] != after[usize::from(*of)])
        {
            break (ended, world.now());
        }
    };
    let machine = |replica| plan.machine(node(replica));
    let lost = Fault::Cut(machine(ended), machine(leader));
    plan.faults = vec![
        PlannedFault { at: at - MILLISECOND, lasts: SHORT, fault: lost },
        PlannedFault { at: at + MILLISECOND, lasts: SHORT, fault: Fault::Crash(machine(ended)) },
    ];
    let mut world = World::new(&plan, &*workload).unwrap();
    world.run_until(at + SECOND);
    assert!(world.leads(node(leader)), "nobody has missed the one that was away");
    let before = stable(&world);
    world.run_until(END);
    let after = stable(&world);
    assert!(before.iter().zip(&after).all(|(before, after)| before < after), "{before:?} to {after:?}");
    assert_eq!(world.problems(), &[] as &[String]);
}
