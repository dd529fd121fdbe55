//! The simulator bites: each bug that can be switched on is found within a stated number of seeds, by a checker that is
//! meant to find it. The documentation has the same table (`docs/simulator/bugs.md`).
//!
//! The numbers are three times and more what was needed when they were written, since any change of the code draws the
//! interleavings anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells which seed found what")]

mod crashing;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use ordain_db::engine::EngineKind;
use ordain_db::failpoint::Failpoint;
use ordain_sim::plan::{Bug, Plan, WorkloadKind};
use ordain_sim::run::run;
use ordain_sim::shrink::{Reductions, shrink};
use ordain_sim::swarm::{Fixed, draw};

/// The property of a run in which an assertion failed.
const ASSERTIONS: &str = "assertions hold";

/// Most runs to shrink a plan.
const SHRINK_RUNS_MAX: u32 = 100;

/// What the simulator must be able to find.
struct Injected {
    bug: Bug,
    /// The bug is found within so many seeds, from 0.
    seeds: u64,
    /// What is fixed of the draw, where most clusters that are drawn cannot show the bug: partitions and replicas.
    fixed: (Option<u16>, Option<u16>),
    /// One of these properties is violated in the run that finds it.
    properties: &'static [&'static str],
}

/// Any cluster.
const ANY: (Option<u16>, Option<u16>) = (None, None);

/// Makes the table and a test for each of its lines, so that they run side by side.
macro_rules! injected {
    ($($name:ident: $bug:expr, $seeds:literal, $fixed:expr, $properties:expr;)*) => {
        const INJECTED: &[Injected] =
            &[$(Injected { bug: $bug, seeds: $seeds, fixed: $fixed, properties: &$properties }),*];

        $(
            #[test]
            fn $name() {
                assert_eq!($bug.name(), stringify!($name).replace('_', "-"));
                find_within_bounds($bug);
            }
        )*
    };
}

injected! {
    grant_out_of_order: Bug::Database(Failpoint::GrantOutOfOrder), 80, ANY, ["serializability", "equals oracle", "replicas agree"];
    skip_empty_batch: Bug::Database(Failpoint::SkipEmptyBatch), 10, ANY, ["liveness"];
    interleave_by_transaction: Bug::Database(Failpoint::InterleaveByTransaction), 40, ANY, ["assertions hold", "equals oracle", "liveness"];
    random_hash_order: Bug::Database(Failpoint::RandomHashOrder), 20, ANY, ["assertions hold", "equals oracle", "liveness"];
    drop_remote_row: Bug::Database(Failpoint::DropRemoteRow), 10, ANY, ["replicas agree", "equals oracle"];
    drop_remote_reads: Bug::Database(Failpoint::DropRemoteReads), 300, ANY, ["liveness"];
    apply_non_local_write: Bug::Database(Failpoint::ApplyNonLocalWrite), 10, ANY, ["replicas agree", "equals oracle"];
    forget_read_lock: Bug::Database(Failpoint::ForgetReadLock), 60, ANY, ["serializability", "equals oracle"];
    forget_range_lock: Bug::Database(Failpoint::ForgetRangeLock), 150, ANY, ["serializability", "equals oracle", "assertions hold"];
    lose_duplicate_check: Bug::Database(Failpoint::LoseDuplicateCheck), 10, ANY, ["exactly once"];
    skip_footprint_check: Bug::Database(Failpoint::SkipFootprintCheck), 50, ANY, ["equals oracle", "assertions hold"];
    open_snapshot_early: Bug::Database(Failpoint::OpenSnapshotEarly), 100, ANY, ["equals oracle"];
    skip_guard: Bug::Database(Failpoint::SkipGuard), 100, ANY, ["replicas agree", "equals oracle"];
    answer_before_ordered: Bug::Database(Failpoint::AnswerBeforeOrdered), 100, ANY, ["early answers", "strict serializability"];
    read_behind: Bug::Database(Failpoint::ReadBehind), 80, (Some(1), Some(3)), ["reads", "exactly once"];
    skip_certification: Bug::Database(Failpoint::SkipCertification), 60, ANY, ["equals oracle"];
    forget_building_index: Bug::Database(Failpoint::ForgetBuildingIndex), 200, ANY, ["equals oracle"];
    vote_before_logged: Bug::Database(Failpoint::VoteBeforeLogged), 150, (Some(3), None), ["replicas agree", "equals oracle"];
    forget_in_doubt: Bug::Database(Failpoint::ForgetInDoubt), 300, ANY, ["replicas agree", "equals oracle", "assertions hold"];
    answer_before_logged: Bug::Database(Failpoint::AnswerBeforeLogged), 300, ANY, ["durability"];
    presume_commit: Bug::Database(Failpoint::PresumeCommit), 300, ANY, ["replicas agree", "equals oracle"];
    forget_victim: Bug::Database(Failpoint::ForgetVictim), 60, ANY, ["liveness"];
    reply_before_durable: Bug::ReplyBeforeDurable, 100, (None, Some(1)), ["durability", "replicas agree"];
    skip_directory_sync: Bug::SkipDirectorySync, 20, ANY, ["nodes go on"];
    found_again: Bug::FoundAgain, 80, (None, Some(3)), ["nodes go on"];
    cut_damaged_log: Bug::CutDamagedLog, 300, (None, Some(1)), ["durability", "replicas agree"];
    stale_checkpoint: Bug::StaleCheckpoint, 100, ANY, ["nodes go on"];
}

/// Mistakes that only statements of SQL show.
const OF_SQL: [Bug; 3] = [
    Bug::Database(Failpoint::ReadBehind),
    Bug::Database(Failpoint::SkipCertification),
    Bug::Database(Failpoint::ForgetBuildingIndex),
];

/// Mistakes in what only this engine has: two-phase commit, and a detector of deadlocks.
const OF_TWO_PHASE: [Bug; 5] = [
    Bug::Database(Failpoint::VoteBeforeLogged),
    Bug::Database(Failpoint::ForgetInDoubt),
    Bug::Database(Failpoint::AnswerBeforeLogged),
    Bug::Database(Failpoint::PresumeCommit),
    Bug::Database(Failpoint::ForgetVictim),
];

/// What shows only in a crash within one sync, while the other nodes go on: so machines crash often.
const OF_SYNCS: [Bug; 1] = [Bug::Database(Failpoint::VoteBeforeLogged)];

/// What takes more luck than seeds have, and a scenario that shows it.
const BY_HAND: [(Bug, &str); 1] = [(Bug::ForgetVote, include_str!("scenarios/forgotten_vote"))];

/// A run that violated something.
struct Found {
    plan: Plan,
    properties: BTreeSet<&'static str>,
}

/// Runs seeds with a bug, from 0, until one of them violates a property; `None` when the seeds come to an end.
fn find(injected: &Injected) -> Option<Found> {
    (0..injected.seeds).find_map(|seed| {
        let (partitions, replicas) = injected.fixed;
        let workload = OF_SQL.contains(&injected.bug).then_some(WorkloadKind::Sql);
        let engine = OF_TWO_PHASE.contains(&injected.bug).then_some(EngineKind::TwoPhase);
        let fixed = Fixed { partitions, replicas, engine, workload, ..Fixed::default() };
        let plan =
            if OF_SYNCS.contains(&injected.bug) { crashing::plan(seed, &fixed) } else { draw(seed, &fixed) };
        let plan = Plan { bug: Some(injected.bug), ..plan };
        let properties = violated(&plan);
        (!properties.is_empty()).then_some(Found { plan, properties })
    })
}

/// The properties that a run violates.
fn violated(plan: &Plan) -> BTreeSet<&'static str> {
    let report = quietly(|| run(plan)).unwrap();
    let properties: BTreeSet<&str> = report.violations.iter().map(|violation| violation.property).collect();
    if properties.contains(ASSERTIONS) {
        let place = PANICKED_AT.take();
        let in_database = place.replace('\\', "/").contains("crates/db/src/");
        assert!(in_database, "seed {}: the simulator itself panicked, at {place}", plan.seed);
    }
    properties
}

fn find_within_bounds(bug: Bug) {
    let injected = INJECTED.iter().find(|injected| injected.bug == bug).unwrap();
    let (name, seeds) = (bug.name(), injected.seeds);
    let found = find(injected).unwrap_or_else(|| panic!("{name} is not found within {seeds} seeds"));
    let Found { plan, properties } = found;
    println!("{name}: seed {}, {properties:?}", plan.seed);
    assert!(
        injected.properties.iter().any(|expected| properties.contains(expected)),
        "{name} is found by {properties:?} with seed {}, and not by one of {:?}: is it still the same bug?\n{plan}",
        plan.seed,
        injected.properties
    );
    let without = violated(&Plan { bug: None, ..plan });
    assert!(without.is_empty(), "without {name} the seed that finds it violates {without:?}");
}

#[test]
fn every_bug_is_in_the_table() {
    let by_hand = |bug: &Bug| BY_HAND.iter().any(|(other, _)| other == bug);
    let all: Vec<String> = Bug::all().filter(|bug| !by_hand(bug)).map(Bug::name).collect();
    let table: Vec<String> = INJECTED.iter().map(|injected| injected.bug.name()).collect();
    assert_eq!(all, table);
    for (bug, scenario) in BY_HAND {
        let (name, found) = (bug.name(), scenario.contains("violated: replicas agree"));
        assert!(scenario.contains(&format!("bug {name}")) && found, "{name} has a scenario that finds it");
    }
}

#[test]
fn the_documentation_has_the_table() {
    let rows: Vec<Vec<&str>> = include_str!("../../../docs/simulator/bugs.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| row.split('|').map(|cell| cell.trim().trim_end_matches('`')).collect())
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let table: Vec<String> = INJECTED.iter().map(|injected| injected.bug.name()).collect();
    assert_eq!(names, table, "docs/simulator/bugs.md has a row for each bug, in their order");
    for (row, injected) in rows.iter().zip(INJECTED) {
        let (name, seeds) = (row[0], injected.seeds);
        assert_eq!(row[2], seeds.to_string(), "docs/simulator/bugs.md: the seeds allowed for {name}");
        for property in injected.properties {
            assert!(row[4].contains(property), "docs/simulator/bugs.md: {name} is found by {property}");
        }
    }
}

/// Mistakes of a lock manager are found under either: the table's seeds draw both, and need not find each under both.
#[test]
fn mistakes_in_locking_are_found_with_vll_too() {
    let points = [Failpoint::GrantOutOfOrder, Failpoint::ForgetReadLock, Failpoint::ForgetRangeLock];
    find_under(EngineKind::CalvinVll, &points);
}

/// What a lock forgets is there a version, or a range, that nobody waits for.
#[test]
fn mistakes_in_waiting_are_found_with_aloha_too() {
    find_under(EngineKind::Aloha, &[Failpoint::ForgetReadLock, Failpoint::ForgetRangeLock]);
}

fn find_under(engine: EngineKind, points: &[Failpoint]) {
    const SEEDS: u64 = 150;
    for point in points {
        let point = *point;
        let injected = INJECTED.iter().find(|injected| injected.bug == Bug::Database(point)).unwrap();
        let found = (0..SEEDS).find_map(|seed| {
            let fixed = Fixed { engine: Some(engine), ..Fixed::default() };
            let plan = Plan { bug: Some(injected.bug), ..draw(seed, &fixed) };
            let properties = violated(&plan);
            (!properties.is_empty()).then_some((seed, properties))
        });
        let (seed, properties) =
            found.unwrap_or_else(|| panic!("{point:?} is not found within {SEEDS} seeds"));
        println!("{point:?}: seed {seed}, {properties:?}");
        assert!(injected.properties.iter().any(|expected| properties.contains(expected)), "{properties:?}");
    }
}

/// A bug is of no use to anybody who cannot read the run that shows it: what is left of a failing plan is small.
#[test]
fn failing_plans_shrink() {
    let bugs = [Failpoint::ForgetReadLock, Failpoint::DropRemoteRow, Failpoint::LoseDuplicateCheck];
    for (point, property) in bugs.into_iter().zip(["equals oracle", "replicas agree", "exactly once"]) {
        let injected = INJECTED.iter().find(|injected| injected.bug == Bug::Database(point)).unwrap();
        let Found { plan, properties } = find(injected).unwrap();
        assert!(properties.contains(property), "{point:?}: {properties:?}");
        let shrunk = quietly(|| shrink(&plan, property, SHRINK_RUNS_MAX));
        assert!(shrunk.runs <= SHRINK_RUNS_MAX);
        let still = violated(&shrunk.plan);
        assert!(
            still.contains(property),
            "{point:?}: {still:?} after {}\n{}",
            shrunk.reductions,
            shrunk.plan
        );
        let size = |plan: &Plan| {
            let clients = u64::from(plan.clients.count);
            [plan.clients.transactions, clients, u64::from(plan.partitions), plan.faults.len() as u64]
        };
        let (before, after) = (size(&plan), size(&shrunk.plan));
        println!("{point:?}: seed {}: {before:?} became {after:?}: {}", plan.seed, shrunk.reductions);
        assert!(before.iter().zip(&after).all(|(before, after)| after <= before), "{before:?} {after:?}");
        assert!(after[0] < before[0], "{point:?}: fewer calls do, too: {before:?} {after:?}");
        // What the command line prints is enough to make the small plan again.
        let parsed: Reductions = shrunk.reductions.to_string().parse().unwrap();
        assert_eq!(parsed, shrunk.reductions);
        assert_eq!(format!("{:?}", parsed.apply(&plan)), format!("{:?}", shrunk.plan));
    }
}

/// A property that the plan does not violate leaves nothing to shrink.
#[test]
fn what_does_not_fail_is_not_shrunk() {
    let mut plan = draw(1, &Fixed::default());
    plan.bug = Some(Bug::Database(Failpoint::DropRemoteRow));
    let shrunk = quietly(|| shrink(&plan, "bounded", 5));
    assert_eq!((shrunk.reductions, shrunk.runs), (Reductions::default(), 5));
    assert_eq!(format!("{:?}", shrunk.plan), format!("{plan:?}"));
}

thread_local! {
    /// Whether panics of this thread are those of code with a mistake.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// Where the last of them was.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does something whose panics are expected: they are noted in [`PANICKED_AT`] and not printed. Those of other threads are.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            if QUIET.get() {
                let place = panic.location().map(ToString::to_string).unwrap_or_default();
                PANICKED_AT.set(place);
            } else {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    result.unwrap_or_else(|panic| {
        eprintln!("a panic that nobody expected, at {}", PANICKED_AT.take());
        std::panic::resume_unwind(panic)
    })
}
