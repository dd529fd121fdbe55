//! Disks go bad below a node: the checkpoint from which it would go on, the mark that names it, and writes that were synced and are
//! not there. A node notices, and uses nothing that is wrong; the others go on without it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calm;

use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_sim::plan::{Fault, Plan, PlannedFault, Replication, WorkloadKind};
use ordain_sim::run::run;
use ordain_sim::time::{MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;

const PARTITIONS: u16 = 2;

/// Runs of each kind, with other seeds.
const SEEDS: std::ops::Range<u64> = 0..12;

/// What became of runs.
#[derive(Default, Debug)]
struct Ended {
    /// A node refused its disk, and the others went on.
    without_it: u64,
    /// A node refused its disk, which ended the cluster.
    halted: u64,
    /// No node refused its disk.
    well: u64,
}

/// A cluster with checkpoints, under a load that lasts longer than the faults.
fn plan(seed: u64, replicas: u16) -> Plan {
    let mut plan = calm::plan(seed, PARTITIONS, replicas, WorkloadKind::Append, 1_000);
    plan.replication = if replicas == 1 { Replication::None } else { Replication::Sync };
    plan.checkpoints = calm::checkpoints(Some(60_000));
    (plan.clients.think, plan.clients.timeout) = (20 * MILLISECOND, 50 * MILLISECOND);
    plan.heal_at = 3_000 * MILLISECOND;
    plan
}

/// Lets a disk go bad, and its machine crash a moment later, in many runs. All properties hold in each of them.
fn damage(replicas: u16, delay: Nanoseconds, fault: impl Fn(u16) -> Fault) -> Ended {
    let mut ended = Ended::default();
    for seed in SEEDS {
        let plan = plan(seed, replicas);
        let machine = (seed % u64::from(plan.machines)) as u16;
        let at = 1_500 * MILLISECOND + seed * 7 * MILLISECOND;
        let faults = [(at, fault(machine)), (at + delay, Fault::Crash(machine))];
        let faults = faults.map(|(at, fault)| PlannedFault { at, lasts: 20 * MILLISECOND, fault }).to_vec();
        let plan = Plan { faults, ..plan };
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        assert_eq!(report.happened.crashes, 1);
        match (report.happened.failures, report.halted) {
            (0, None) => ended.well += 1,
            (1, None) => ended.without_it += 1,
            (1, Some(_)) => ended.halted += 1,
            other => panic!("{other:?}\n{plan}"),
        }
    }
    ended
}

#[test]
fn a_replica_with_a_damaged_checkpoint_ends_and_the_others_go_on() {
    let ended = damage(3, 0, Fault::DamagedCheckpoint);
    assert!(ended.without_it >= 6 && ended.halted == 0, "{ended:?}");
}

#[test]
fn a_lone_node_refuses_a_damaged_checkpoint() {
    let ended = damage(1, 0, Fault::DamagedCheckpoint);
    assert!(ended.halted >= 6 && ended.without_it == 0, "{ended:?}");
}

#[test]
fn a_replica_that_has_lost_a_write_ends_and_the_others_go_on() {
    let ended = damage(3, 60 * MILLISECOND, Fault::LostWrite);
    assert!(ended.without_it > 0 && ended.halted == 0, "{ended:?}");
}

#[test]
fn a_lone_node_refuses_a_log_that_lacks_a_write() {
    let ended = damage(1, 60 * MILLISECOND, Fault::LostWrite);
    assert!(ended.halted > 0 && ended.without_it == 0, "{ended:?}");
}

/// A replica that has been away for long gets a checkpoint of one whose disk went bad meanwhile: it notices, keeps its own, and gets
/// another one's.
#[test]
fn a_damaged_checkpoint_does_not_spread() {
    let mut noticed = 0;
    for seed in 0..8 {
        let mut plan = calm::plan(seed, 1, 3, WorkloadKind::Append, 2_500);
        plan.checkpoints = calm::checkpoints(Some(200_000));
        (plan.clients.think, plan.clients.timeout) = (20 * MILLISECOND, 50 * MILLISECOND);
        plan.heal_at = 60 * SECOND;
        let bad = leader_at(&plan, 1_200 * MILLISECOND);
        plan.faults = vec![
            PlannedFault {
                at: 1_200 * MILLISECOND,
                lasts: 2_000 * MILLISECOND,
                fault: Fault::Crash((bad + 1) % 3),
            },
            PlannedFault { at: 3_199 * MILLISECOND, lasts: 0, fault: Fault::DamagedCheckpoint(bad) },
        ];
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        // Only the one whose own disk is bad may end.
        assert!(report.halted.is_none() && report.happened.failures <= 1, "{:?}\n{plan}", report.happened);
        noticed += 1 - report.happened.failures;
    }
    assert!(noticed > 3, "{noticed}");
}

/// The replica that leads at a time, while nothing goes wrong.
fn leader_at(plan: &Plan, at: Nanoseconds) -> u16 {
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(plan, &*workload).unwrap();
    world.run_until(at);
    let leads =
        |replica: &u16| world.leads(NodeId { partition: PartitionId(0), replica: ReplicaId(*replica) });
    (0..3).find(leads).unwrap()
}

/// The same fault hits no second replica: a majority is left.
#[test]
fn no_second_disk_goes_bad() {
    let at = 1_500 * MILLISECOND;
    for fault in [Fault::DamagedCheckpoint, Fault::LostWrite] {
        let on = |machine: u16, later: u64| {
            let at = at + later * MILLISECOND;
            let crash =
                PlannedFault { at: at + MILLISECOND, lasts: MILLISECOND, fault: Fault::Crash(machine) };
            [PlannedFault { at, lasts: 0, fault: fault(machine) }, crash]
        };
        let faults = [on(0, 0), on(PARTITIONS, 100), on(2 * PARTITIONS, 200)].concat();
        let plan = Plan { faults, ..plan(3, 3) };
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        assert_eq!(report.halted, None);
        assert!(report.happened.failures <= 1, "{:?}", report.happened);
    }
}
