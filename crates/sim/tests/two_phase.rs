//! The engine `two-phase` under the faults of the swarm: crashes with transactions in doubt, lost messages, slow and paused nodes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod crashing;

use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::TwoPhaseCounters;
use ordain_db::failpoint::Failpoint;
use ordain_sim::network::latency::Latency;
use ordain_sim::network::topology::Topology;
use ordain_sim::network::{InFlight, NetworkOptions};
use ordain_sim::plan::{Bug, ClientPlan, Plan, WorkloadKind, WorkloadPlan};
use ordain_sim::run::run;
use ordain_sim::swarm::{Fixed, draw};
use ordain_sim::time::{MILLISECOND, SECOND};
use ordain_workload::append;

/// Seeds below this.
const SEEDS: u64 = 60;

/// The first seed that violates something, if any does.
fn first_violation(engine: EngineKind, bug: Option<Bug>) -> Option<u64> {
    (0..SEEDS).find(|seed| {
        let plan = Plan { bug, ..draw(*seed, &Fixed { engine: Some(engine), ..Fixed::default() }) };
        !run(&plan).unwrap().violations.is_empty()
    })
}

#[test]
fn mistakes_in_locking_are_found() {
    for bug in [Failpoint::ForgetReadLock, Failpoint::ForgetRangeLock].map(Bug::Database) {
        let found = first_violation(EngineKind::TwoPhase, Some(bug));
        assert!(found.is_some(), "{bug:?} is not found");
    }
}

/// The bound of the paper is no database (DET-41), and the checkers notice that.
#[test]
fn what_has_no_commit_protocol_loses_parts_of_transactions() {
    assert!(first_violation(EngineKind::TwoPhaseWithoutCommitProtocol, None).is_some());
}

#[test]
fn seeds_keep_all_properties_and_repeat_themselves() {
    let (mut crashes, mut counted) = (0, TwoPhaseCounters::default());
    for seed in 0..SEEDS {
        let plan = draw(seed, &Fixed { engine: Some(EngineKind::TwoPhase), ..Fixed::default() });
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        assert_eq!(run(&plan).unwrap().trace, report.trace, "seed {seed} has one course");
        crashes += report.happened.crashes;
        counted += report.happened.two_phase;
    }
    assert!(crashes > 50, "{crashes} crashes");
    // Else all would be well although nothing was tried.
    let TwoPhaseCounters { local_deadlocks, lock_timeouts, false_timeouts, .. } = counted;
    let TwoPhaseCounters { distributed_deadlocks, phantom_deadlocks, restarts, .. } = counted;
    let TwoPhaseCounters { held_at_the_door, in_doubt, .. } = counted;
    let all = [
        local_deadlocks,
        lock_timeouts,
        false_timeouts,
        distributed_deadlocks,
        phantom_deadlocks,
        restarts,
        held_at_the_door,
        in_doubt,
    ];
    assert!(all.iter().all(|count| *count > 0), "{counted:?}");
}

/// Most crashes that the swarm draws find nothing half logged. Here votes and decisions are lost in syncs, and what was said waited for
/// them.
#[test]
fn crashes_in_syncs_lose_nothing_that_was_said() {
    let (mut crashes, mut in_doubt) = (0, 0);
    for seed in 0..SEEDS {
        let fixed = Fixed { engine: Some(EngineKind::TwoPhase), partitions: Some(3), ..Fixed::default() };
        let plan = crashing::plan(seed, &fixed);
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        crashes += report.happened.crashes;
        in_doubt += report.happened.two_phase.in_doubt;
    }
    assert!(crashes > 300 && in_doubt > 10, "{crashes} crashes, {in_doubt} in doubt");
}

/// YCSB and this engine together are in few seeds of the swarm.
#[test]
fn ycsb_keeps_all_properties() {
    let mut answered = 0;
    for seed in 0..SEEDS / 3 {
        let (engine, workload) = (Some(EngineKind::TwoPhase), Some(WorkloadKind::Ycsb));
        let plan = draw(seed, &Fixed { engine, workload, ..Fixed::default() });
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        answered += report.happened.answered;
    }
    assert!(answered > 1_000, "{answered} calls were answered");
}

/// Ninety calls for a few lists over 50 ms and a megabyte per second: who waits for whom is a graph of several kilobytes. Told to the
/// detector again and again, it filled the way, and locks, votes and decisions waited behind it for minutes.
#[test]
fn reports_of_who_waits_leave_room_on_a_narrow_way() {
    let lists = append::Options {
        sites: 2,
        lists_per_site: 6,
        multi_site_percent: 50.0,
        dependent_percent: 0.0,
        range_percent: 0.0,
        replicated_percent: 0.0,
        abort_percent: 0.0,
        hot_list_percent: 0.0,
        ..append::Options::default()
    };
    let latency = Latency { minimum: 50 * MILLISECOND, spread: MILLISECOND, tail_one_in: 1_000, tail: 0 };
    let drawn =
        draw(0, &Fixed { partitions: Some(2), engine: Some(EngineKind::TwoPhase), ..Fixed::default() });
    let (count, window, transactions) = (12, 8, 460);
    let plan = Plan {
        machines: 2,
        workload: WorkloadPlan::Append(lists),
        clients: ClientPlan { count, window, transactions, think: 10 * MILLISECOND, ..drawn.clients },
        network: NetworkOptions {
            topology: Topology::uniform(latency),
            bandwidth: 1 << 20,
            loss: None,
            duplication: None,
            reordering: None,
            in_flight: InFlight::Delivered,
            ..drawn.network
        },
        disk: None,
        clocks: Vec::new(),
        faults: Vec::new(),
        heal_at: SECOND,
        settle_within: 240 * SECOND,
        ..drawn
    };
    let report = run(&plan).unwrap();
    assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
}
