//! Statements of SQL under faults: sessions of clients keep what they promise.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a test tells which seeds failed")]

use std::collections::BTreeMap;

use ordain_db::engine::EngineKind;
use ordain_db::message::Operation;
use ordain_sim::history::{Conclusion, Fact, History};
use ordain_sim::plan::{Plan, WorkloadKind};
use ordain_sim::run::observe;
use ordain_sim::swarm::{Fixed, draw};

/// Seeds of which every client has sessions.
const SEEDS: u64 = 60;

/// How often each thing was seen.
type Seen = BTreeMap<&'static str, u64>;

fn plan(seed: u64, fixed: Fixed) -> Plan {
    draw(seed, &Fixed { workload: Some(WorkloadKind::Sql), ..fixed })
}

/// Runs a plan, which must be right.
fn run(plan: &Plan) -> History {
    let workload = plan.workload.build().unwrap();
    let (report, history) = observe(plan, &*workload).unwrap();
    assert!(report.violations.is_empty(), "seed {}: {:#?}\n{plan}", plan.seed, report.violations);
    history.unwrap()
}

fn note(history: &History, seen: &mut Seen) {
    let mut note = |name, count: usize| *seen.entry(name).or_default() += count as u64;
    let observed = &history.sessions.as_ref().unwrap().observed;
    let of = |conclusion| observed.iter().filter(|one| one.conclusion == conclusion).count();
    note("transactions that committed", of(Conclusion::Committed));
    note("transactions that failed", of(Conclusion::Failed));
    let told = |text: &str| observed.iter().filter(|one| one.told.contains(text)).count();
    note("certifications that failed", told("\"40001\""));
    note("unique violations", told("\"23505\""));
    note("rows that refer to nothing", told("\"23503\""));
    note("indexes", told("CREATE INDEX"));
    note("tables that changed", told("ALTER TABLE"));
    note("tables that were emptied", told("TRUNCATE TABLE"));
    let facts = |wanted: fn(&Fact) -> bool| {
        observed.iter().flat_map(|one| &one.facts).filter(|fact| wanted(fact)).count()
    };
    note("numbers that were drawn", facts(|fact| matches!(fact, Fact::Ticket(_))));
    note("lists that were read", facts(|fact| matches!(fact, Fact::List { .. })));
    note("sums that were read", facts(|fact| matches!(fact, Fact::Total(_))));
    note("pages of snapshots", history.pages.len());
    let asked = |wanted: fn(&Operation) -> bool| {
        history.requests.values().filter(|one| wanted(&one.operation)).count()
    };
    note("reads without an order", asked(|operation| matches!(operation, Operation::Read { .. })));
}

/// What must have been seen.
const EXPECTED: [&str; 12] = [
    "transactions that committed",
    "transactions that failed",
    "certifications that failed",
    "unique violations",
    "rows that refer to nothing",
    "indexes",
    "tables that changed",
    "tables that were emptied",
    "numbers that were drawn",
    "lists that were read",
    "pages of snapshots",
    "reads without an order",
];

fn run_seeds(seeds: impl Iterator<Item = u64>, fixed: Fixed) {
    let mut seen = Seen::new();
    seeds.for_each(|seed| note(&run(&plan(seed, fixed)), &mut seen));
    println!("{seen:#?}");
    for expected in EXPECTED {
        assert!(seen[expected] > 0, "no seed shows {expected}: {seen:#?}");
    }
}

#[test]
fn even_seeds_keep_all_properties() {
    run_seeds((0..SEEDS).step_by(2), Fixed::default());
}

#[test]
fn odd_seeds_keep_all_properties() {
    run_seeds((1..SEEDS).step_by(2), Fixed::default());
}

#[test]
fn reads_of_one_partition_keep_all_properties() {
    let fixed = Fixed { partitions: Some(1), replicas: Some(1), ..Fixed::default() };
    run_seeds(1_000..1_020, fixed);
}

#[test]
fn the_engine_without_an_order_keeps_all_properties() {
    let fixed = Fixed { engine: Some(EngineKind::TwoPhase), ..Fixed::default() };
    run_seeds(2_000..2_010, fixed);
}

/// A seed has one course, whatever a session asks when it is run again.
#[test]
fn runs_repeat_themselves() {
    for seed in 0..6 {
        let plan = plan(seed, Fixed::default());
        let workload = plan.workload.build().unwrap();
        let digests = || {
            let (report, _) = observe(&plan, &*workload).unwrap();
            (report.trace, report.state, report.virtual_time, report.happened)
        };
        assert_eq!(digests(), digests(), "seed {seed}");
    }
}
