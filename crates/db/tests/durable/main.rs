//! Nodes with logs, under crashes: nothing that was answered is lost, nothing happens twice, and all replicas agree with the
//! serial engine on the order that the logs have.
//!
//! A [`world::World`] is a cluster of partitions and replicas in one thread, whose interleaving and faults follow from a seed.
//! Nodes crash and come back with what was durable, links break and lose what was on its way, nodes pause. Clients send a
//! request again, with the same identity, until it is answered. In the end [`check`] compares everything with everything.
//!
//! `ORDAIN_SEEDS=1000` runs so many seeds of each kind, `ORDAIN_SEED=17` just that one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "which seeds are run is chosen from outside")]
#![allow(clippy::print_stderr, reason = "the plan of a seed that fails is printed")]

#[allow(dead_code, reason = "every test crate uses its own part")]
#[path = "../interpreted/mod.rs"]
mod interpreted;
#[allow(dead_code, reason = "every test crate uses its own part")]
#[path = "../observed/mod.rs"]
mod observed;

mod check;
mod clients;
mod history;
mod links;
mod machine;
mod seeded;
mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ordain_db::engine::EngineKind;
use ordain_db::node::SILENCE_MICROSECONDS;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};

use machine::LogKind;
use world::{Plan, World};

/// Runs worlds by seed, and names all seeds that failed. Gives how many of them had nodes that went back.
fn try_seeds(seeds: u64, plan: impl Fn(u64) -> Plan) -> u64 {
    let given = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let seeds = match given("ORDAIN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("ORDAIN_SEEDS").unwrap_or(seeds),
    };
    let mut went_back = 0;
    let failed = |seed: &u64| {
        let plan = plan(*seed);
        let run = catch_unwind(AssertUnwindSafe(|| {
            let world = World::new(plan.clone()).run();
            went_back += u64::from(world.history.went_back > 0);
            check::all(world);
        }));
        run.inspect_err(|_| eprintln!("failed: {plan:?}")).is_err()
    };
    let failures: Vec<u64> = seeds.clone().filter(failed).collect();
    assert!(failures.is_empty(), "{} of {seeds:?} failed: {failures:?}", failures.len());
    went_back
}

/// The engines take turns.
fn engine_of(seed: u64) -> EngineKind {
    EngineKind::ORDERED[seed as usize % EngineKind::ORDERED.len()]
}

#[test]
fn one_replica_without_faults() {
    try_seeds(20, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 3) as u16,
        ..Plan::quiet(seed)
    });
}

#[test]
fn a_lone_node_crashes() {
    try_seeds(60, |seed| Plan { engine: engine_of(seed), crashes: 4, ..Plan::quiet(seed) });
}

fn of_one_replica(seed: u64) -> Plan {
    Plan {
        engine: engine_of(seed),
        partitions: 2 + (seed / 3 % 3) as u16,
        crashes: 4,
        cuts: 2,
        pauses: 2,
        ..Plan::quiet(seed)
    }
}

#[test]
fn nodes_of_one_replica_crash() {
    try_seeds(100, of_one_replica);
}

/// What a node has said and forgotten, it says again when it replays its log, and not before those who need it are there.
#[test]
fn nodes_that_forget_what_they_said_crash() {
    let went_back = try_seeds(60, |seed| Plan { forgetful: true, ..of_one_replica(seed) });
    assert!(went_back > 0, "nobody asked for what was forgotten");
}

#[test]
fn nodes_with_narrow_queues_crash() {
    try_seeds(60, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 3) as u16,
        crashes: 4,
        cuts: 2,
        narrow: true,
        ..Plan::quiet(seed)
    });
}

#[test]
fn replicas_with_narrow_queues_crash() {
    try_seeds(40, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 3) as u16,
        replicas: 3,
        log: LogKind::Raft,
        crashes: 3,
        cuts: 3,
        pauses: 2,
        narrow: true,
        ..Plan::quiet(seed)
    });
}

#[test]
fn replicas_of_a_subgroup_crash() {
    try_seeds(60, |seed| Plan {
        engine: engine_of(seed),
        partitions: 2 + (seed / 3 % 2) as u16,
        replicas: 3,
        log: LogKind::Raft,
        crashes: 4,
        cuts: 3,
        pauses: 2,
        subgroup: true,
        ..Plan::quiet(seed)
    });
}

#[test]
fn groups_of_one_crash() {
    try_seeds(40, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 2) as u16,
        log: LogKind::Raft,
        crashes: 3,
        cuts: 2,
        ..Plan::quiet(seed)
    });
}

#[test]
fn replicas_without_faults() {
    try_seeds(20, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 2) as u16,
        replicas: 3,
        log: LogKind::Raft,
        ..Plan::quiet(seed)
    });
}

#[test]
fn replicas_crash() {
    try_seeds(100, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 3) as u16,
        replicas: 2 + (seed / 9 % 2) as u16,
        log: LogKind::Raft,
        crashes: 4,
        cuts: 4,
        pauses: 3,
        ..Plan::quiet(seed)
    });
}

/// Who was lost closes nothing: the others keep no old versions for it.
#[test]
fn snapshots_end_when_nobody_hears_of_the_node_through_which_they_were_opened() {
    let mut ended = 0;
    for seed in 0..12 {
        let partitions = 1 + (seed % 2) as u16;
        let plan = Plan {
            engine: engine_of(seed),
            partitions,
            replicas: 3,
            log: LogKind::Raft,
            ..Plan::quiet(seed)
        };
        let mut world = World::new(plan).run();
        let [lost, other] =
            [1, 2].map(|replica| NodeId { partition: PartitionId(0), replica: ReplicaId(replica) });
        let open = |world: &World| [lost, other].map(|node| world.history.open_through(node));
        let [left, kept] = open(&world);
        world.lose(lost);
        world.pass(SILENCE_MICROSECONDS / 2);
        assert_eq!(open(&world)[0], left, "it may start again soon");
        world.pass(SILENCE_MICROSECONDS);
        assert_eq!(open(&world), [BTreeSet::new(), kept]);
        ended += left.len();
    }
    assert!(ended > 0, "no snapshot was opened through the node that was lost");
}

/// CAL-35: replicas and partitions go back to what the groups have agreed on.
#[test]
fn asynchronous_replicas_crash() {
    let went_back = try_seeds(150, |seed| Plan {
        engine: engine_of(seed),
        partitions: 1 + (seed / 3 % 3) as u16,
        replicas: 3,
        log: LogKind::Asynchronous,
        crashes: 3,
        cuts: 3,
        pauses: 2,
        isolations: 4,
        calls: 150,
        ..Plan::quiet(seed)
    });
    let all = std::env::var("ORDAIN_SEED").is_err();
    assert!(!all || went_back > 10, "of {went_back} worlds only something was lost");
}
