//! Scenarios: clusters that are driven by hand through faults, compared event by event with golden files.
//!
//! A scenario first says what there is (`cluster`, then the rest in any order); the world begins at the first `call`, `run`,
//! `show`, `settle` or `heal`. Times are numbers with a unit (`us`, `ms`, `s`, `h`), machines are `m0`, clients `c0`, nodes
//! `p0`, rows `site/number`. Node `p0` is on machine `m0`, and client `c0` is at home at `p0`.
//!
//! | command | what it does |
//! |---|---|
//! | `cluster 3 replicas=1 engine=calvin workload=append seed=1 disk=true sync=1ms latency=100us cpu=10us checkpoints=20ms segment=1048576` | so many partitions, each node on a machine; a sync, a way over the network and a step take exactly so long; a crash loses all that is not synced |
//! | `clients 2 transactions=10 window=1 think=0us timeout=50ms` | who calls; the transactions are drawn from the workload |
//! | `network loss=5 duplication=5 reordering=5 delay=1ms` | percentages of packets; stray packets are late by up to the delay |
//! | `clock m1 ahead=1h drift=200` | a clock that is wrong, and too fast by so many millionths |
//! | `bug skip-empty-batch` | a mistake in the code under test |
//! | `fault crash m1 at=5ms for=20ms` | `crash`, `pause`, `full-disk`, `corrupt`, `misdirect`, `failed-sync`, `loss`, `wipe`, `hand-over` of a machine; `slow m1 times=8`; `power-cut m1 after=3` operations on files; `clock-jump m1 by=1s` and `clock-back m1 by=1s`; `cut m0 m1` and `clog m0 m1` of a way; `partition m0 c0` from all others; from now on without `at`, to the end without `for` |
//! | `call c0 append=0/0 read=1/0` | one call with the workload append; also `follow`, `insert-note`, `delete-note`, `write-note`, `write-setting`; with `early=true` it is acknowledged when it has its place, and then its client asks for the outcome |
//! | `turn c0 p0r2` | what the client sends next goes to this replica first |
//! | `hide acknowledges synced "steps$"` | prints no lines of the log with these words, or that end with a word with `$` |
//! | `run 10ms` | lets so much time pass and prints the log |
//! | `answers` | what the calls made by hand came to so far; a list is named by the calls that appended to it |
//! | `show p0` | what a node is at |
//! | `heal` | ends all faults; none begins any more |
//! | `settle` | heals, lets everything come to rest, and reads the last state |
//! | `check` | what the checkers say after `settle` |
//!
//! To write the expected output anew, set `UPDATE_GOLDENFILES=1`, and read the diff.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "scenario/commands.rs"]
mod commands;
#[path = "scenario/names.rs"]
mod names;
#[path = "scenario/stage.rs"]
mod stage;

use std::collections::BTreeSet;

use commands::Runner;

/// A test for each scenario, and one that no scenario is forgotten.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                goldenscript::run(&mut Runner::default(), concat!("tests/scenarios/", stringify!($name))).unwrap();
            }
        )*

        #[test]
        fn every_scenario_is_run() {
            let folder = std::fs::read_dir("tests/scenarios").unwrap();
            let mut found: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            found.sort();
            let mut run = vec![$(stringify!($name)),*];
            run.sort_unstable();
            assert_eq!(found, run);
        }
    };
}

scenarios!(
    clock_far_ahead,
    crash_before_the_answer,
    crash_with_an_unsynced_tail,
    another_replica_serves,
    checkpoints_of_the_past,
    damaged_log,
    cut_off_leader_is_asked,
    duplicate_and_late_requests,
    forgotten_vote,
    full_disk,
    leader_crash_before_commit,
    lone_node_recovers,
    one_way_cut,
    paused_node,
    reads_before_the_batch,
    replicas_cut_apart,
    reports_that_nobody_keeps,
    voter_without_its_log,
    wiped_replica,
    reply_before_durable,
);

/// A log tells of a run and does not change it; nobody pays for one that is not wanted.
#[test]
fn a_log_changes_nothing() {
    let plan = ordain_sim::swarm::draw(11, &ordain_sim::swarm::Fixed::default());
    let workload = plan.workload.build().unwrap();
    let digest = |log: bool| {
        let mut world = ordain_sim::world::World::new(&plan, &*workload).unwrap();
        world.log(log);
        world.run();
        assert_eq!(world.take_log().is_empty(), !log);
        assert!(world.take_log().is_empty(), "lines are taken once");
        world.digest()
    };
    assert_eq!(digest(true), digest(false));
}

/// The log of a seed has each step, each crash and each answer.
#[test]
fn a_log_tells_of_a_whole_run() {
    let plans = (0..100).map(|seed| ordain_sim::swarm::draw(seed, &ordain_sim::swarm::Fixed::default()));
    let mut runs = plans.map(|plan| (ordain_sim::run::run(&plan).unwrap().happened, plan));
    let (happened, plan) = runs.find(|(happened, _)| happened.crashes > 0).unwrap();
    let lines = ordain_sim::world::log::of_run(&plan).unwrap();
    let (mut steps, mut crashes, mut answered) = (0, 0, BTreeSet::new());
    for line in &lines {
        match line.split([' ', ':']).collect::<Vec<_>>().as_slice() {
            [_, _, "steps", ..] => steps += 1,
            [_, _, "crashes"] => crashes += 1,
            [_, client, "is", "answered", ..] if line.contains(": busy") => assert!(client.starts_with('c')),
            [_, client, "is", "answered", sequence, ..] => drop(answered.insert((*client, *sequence))),
            _ => {}
        }
    }
    assert!(crashes > 0 && steps > 0 && !answered.is_empty());
    assert_eq!(
        (steps, crashes, answered.len() as u64),
        (happened.steps, happened.crashes, happened.answered)
    );
}
