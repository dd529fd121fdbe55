//! Seeds of the swarm: the code as it is keeps every property under faults, a run is a function of its plan, and the swarm
//! is as wide as it is meant to be.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use ordain_db::engine::EngineKind;
use ordain_db::limits::Limits;
use ordain_db::sequencer::EpochPolicy;
use ordain_sim::history::History;
use ordain_sim::network::topology::Region;
use ordain_sim::network::{Host, InFlight};
use ordain_sim::plan::{Fault, Plan, WorkloadKind, WorkloadPlan};
use ordain_sim::run::{Report, observe, run};
use ordain_sim::swarm::{Fixed, draw};
use ordain_workload::{bank, micro, tpcc};

/// The sample: seeds below this.
const SEEDS: u64 = 200;
/// The sample is cut in so many parts, which run side by side.
const PARTS: u64 = 2;
/// Seeds whose plans are searched for some that damage disks.
const SEEDS_SEARCHED: u64 = 2_000;
/// How many of those are run.
const DAMAGED: usize = 16;

/// Seeds that are run with YCSB.
const YCSB_SEEDS: u64 = 60;

/// How often each thing was seen: in how many seeds, or in how many faults.
type Seen = BTreeMap<&'static str, u64>;

#[test]
fn even_seeds_keep_all_properties_and_repeat_themselves() {
    run_part(0);
}

#[test]
fn odd_seeds_keep_all_properties_and_repeat_themselves() {
    run_part(1);
}

/// Runs a part of the sample, and looks whether its runs came to every corner.
fn run_part(part: u64) {
    let mut seen = Seen::new();
    for seed in (part..SEEDS).step_by(PARTS as usize) {
        let plan = draw(seed, &Fixed::default());
        let (report, history) = run_twice(&plan);
        note_run(&plan, &report, &history, &mut seen);
    }
    let expected = [
        "a machine that crashed started again",
        "a node that its disk stopped",
        "a machine that crashed while it recovered",
        "replicas that a machine was lost of",
        "a machine that was wiped and votes again",
        "a leader that was asked to hand over",
        "a snapshot during the run",
        "a dependent transaction that was restarted",
        "a request refused as busy",
        "a lost packet",
        "a request that was sent again",
        "a call that was aborted",
        "a transaction on several partitions",
    ];
    require(&seen, &expected);
}

/// Runs a plan twice, which must give the same, and be right.
fn run_twice(plan: &Plan) -> (Report, History) {
    let workload = plan.workload.build().unwrap();
    let (report, history) = observe(plan, &*workload).unwrap();
    assert!(report.violations.is_empty(), "seed {}: {:#?}\n{plan}", plan.seed, report.violations);
    let (again, _) = observe(plan, &*workload).unwrap();
    let digests = |report: &Report| (report.trace, report.state, report.virtual_time, report.happened);
    assert_eq!(digests(&report), digests(&again), "seed {} repeats itself", plan.seed);
    (report, history.expect("no assertion failed, so that there is a history"))
}

/// Notes what happened in a run.
fn note_run(plan: &Plan, report: &Report, history: &History, seen: &mut Seen) {
    let mut note = |name, happened: bool| *seen.entry(name).or_default() += u64::from(happened);
    let counted =
        |count: fn(&ordain_db::node::Status) -> u64| history.statuses.iter().map(count).sum::<u64>();
    let restarted = report.happened.crashes > 0 && report.halted.is_none();
    note("a machine that crashed started again", restarted);
    note("a node that its disk stopped", report.happened.failures > 0);
    note("a machine that crashed while it recovered", report.happened.recoveries_cut > 0);
    let loses = plan.faults.iter().any(|planned| matches!(planned.fault, Fault::Loss(_)));
    note("replicas that a machine was lost of", loses && report.happened.crashes > 0);
    note("a machine that was wiped and votes again", report.happened.rejoined > 0);
    note("a leader that was asked to hand over", report.happened.hand_overs > 0);
    // The last one is taken after the end.
    note("a snapshot during the run", history.snapshots.len() > 1);
    note("a dependent transaction that was restarted", counted(|status| status.counters.restarts) > 0);
    note("a request refused as busy", counted(|status| status.counters.refused) > 0);
    note("a call that was aborted", counted(|status| status.counters.aborted) > 0);
    note("a lost packet", report.happened.packets_lost > 0);
    note("a request that was sent again", history.requests.values().any(|request| request.attempts > 1));
    note("a transaction on several partitions", history.executed.values().any(|runs| runs.len() > 1));
}

/// Damage shows only when the machine that it hit starts again later, and few seeds have both. Those run here.
#[test]
fn damaged_disks_are_noticed() {
    let plans = (0..SEEDS_SEARCHED).map(|seed| draw(seed, &Fixed::default())).filter(damages_and_restarts);
    let mut seen = Seen::new();
    for plan in plans.take(DAMAGED) {
        let (report, _) = run_twice(&plan);
        let halted = u64::from(report.halted.is_some());
        *seen.entry("a node that refused to start from a damaged disk").or_default() += halted;
        *seen.entry("a run that a damaged disk did not end").or_default() += 1 - halted;
    }
    assert_eq!(seen.values().sum::<u64>(), DAMAGED as u64, "the swarm damages disks: {seen:?}");
    let expected =
        ["a node that refused to start from a damaged disk", "a run that a damaged disk did not end"];
    require(&seen, &expected);
}

/// Whether a machine crashes after its disk was damaged.
fn damages_and_restarts(plan: &Plan) -> bool {
    plan.faults.iter().enumerate().any(|(index, planned)| match planned.fault {
        Fault::Corrupt(machine) | Fault::Misdirect(machine) => {
            plan.faults[index..].iter().any(|later| later.fault == Fault::Crash(machine))
        }
        _ => false,
    })
}

/// What the sample draws, without running it: every kind of everything, in more than one seed.
#[test]
fn the_sample_is_wide() {
    let mut seen = Seen::new();
    (0..SEEDS).for_each(|seed| note_plan(&draw(seed, &Fixed::default()), &mut seen));
    let expected = [
        "a crash",
        "a crash between two writes",
        "a failed sync",
        "a machine that is lost",
        "a machine that is wiped",
        "a machine that hands over",
        "a clock that jumps",
        "a clock that is set back",
        "a pause",
        "a slow machine",
        "a cut",
        "a partition",
        "a clog",
        "a full disk",
        "a corrupted sector",
        "a misdirected sector",
        "a damaged checkpoint",
        "a lost write",
        "no fault",
        "engine serial",
        "engine calvin",
        "engine calvin-vll",
        "engine aloha",
        "engine two-phase",
        "an epoch manager",
        "an epoch manager and nothing without authorisation",
        "workload append",
        "workload bank",
        "transfers with functors",
        "transfers with functors alone",
        "workload sql",
        "workload micro",
        "additions with functors alone",
        "additions as a whole",
        "workload ycsb",
        "workload tpcc",
        "workload tpcc with all transactions",
        "workload scaled tpcc",
        "dependent calls",
        "ranges",
        "replicated tables",
        "a wide-area network",
        "a network that loses",
        "a network that duplicates",
        "a network that reorders",
        "a narrow network",
        "packets in flight are lost",
        "no disks",
        "two replicas",
        "three replicas",
        "five replicas",
        "checkpoints",
        "one partition",
        "eight partitions",
        "several partitions on a machine",
        "several cores",
        "wrong clocks",
        "clients that wander",
        "clients with windows",
        "snapshots",
        "one event in a step",
        "a tiny inbox",
        "tiny batches",
        "batches of few bytes",
        "a tiny sequencer",
        "a sequencer of few bytes",
        "few epochs in flight",
        "few live transactions",
        "tiny steps",
        "few reconnaissances",
    ];
    require(&seen, &expected);
    let unknown: Vec<_> = seen.keys().filter(|name| !expected.contains(name)).collect();
    assert!(unknown.is_empty(), "what is noted is also required: {unknown:?}");
}

fn note_plan(plan: &Plan, seen: &mut Seen) {
    let mut note = |name, drawn: bool| *seen.entry(name).or_default() += u64::from(drawn);
    note("no fault", plan.faults.is_empty());
    plan.faults.iter().for_each(|planned| note(name_of(&planned.fault), true));
    note(
        match plan.engine {
            EngineKind::Serial => "engine serial",
            EngineKind::Calvin => "engine calvin",
            EngineKind::CalvinVll => "engine calvin-vll",
            EngineKind::Aloha => "engine aloha",
            EngineKind::TwoPhase | EngineKind::TwoPhaseWithoutCommitProtocol => "engine two-phase",
        },
        true,
    );
    note("an epoch manager", plan.epochs.policy == EpochPolicy::Managed);
    let strict = plan.epochs.policy == EpochPolicy::ManagedStrictly;
    note("an epoch manager and nothing without authorisation", strict);
    note("no disks", plan.disk.is_none());
    note("two replicas", plan.replicas == 2);
    note("three replicas", plan.replicas == 3);
    note("five replicas", plan.replicas == 5);
    let checkpoints = plan.checkpoints.interval_microseconds.is_some();
    note("checkpoints", plan.disk.is_some() && checkpoints);
    note("one partition", plan.partitions == 1);
    note("eight partitions", plan.partitions == 8);
    note("several partitions on a machine", plan.machines_each() < plan.partitions);
    note("several cores", plan.cores > 1);
    note("wrong clocks", !plan.clocks.is_empty());
    note("clients that wander", plan.clients.wanders);
    note("clients with windows", plan.clients.window > 1);
    note("snapshots", plan.clients.snapshots > 0);
    note_workload(&plan.workload, &mut note);
    note_network(plan, &mut note);
    note_limits(plan, &mut note);
}

fn name_of(fault: &Fault) -> &'static str {
    match fault {
        Fault::Crash(_) => "a crash",
        Fault::Pause(_) => "a pause",
        Fault::Slow(..) => "a slow machine",
        Fault::Cut(..) => "a cut",
        Fault::Partition(_) => "a partition",
        Fault::Clog(..) => "a clog",
        Fault::FullDisk(_) => "a full disk",
        Fault::Corrupt(_) => "a corrupted sector",
        Fault::Misdirect(_) => "a misdirected sector",
        Fault::DamagedCheckpoint(_) => "a damaged checkpoint",
        Fault::LostWrite(_) => "a lost write",
        Fault::PowerCut(..) => "a crash between two writes",
        Fault::FailedSync(_) => "a failed sync",
        Fault::Loss(_) => "a machine that is lost",
        Fault::Wipe(_) => "a machine that is wiped",
        Fault::HandOver(_) => "a machine that hands over",
        Fault::ClockJump(..) => "a clock that jumps",
        Fault::ClockBack(..) => "a clock that is set back",
    }
}

fn note_workload(workload: &WorkloadPlan, note: &mut impl FnMut(&'static str, bool)) {
    match workload {
        WorkloadPlan::Append(options) => {
            note("workload append", true);
            note("dependent calls", options.dependent_percent > 0.0);
            note("ranges", options.range_percent > 0.0);
            note("replicated tables", options.replicated_percent > 0.0);
        }
        WorkloadPlan::Bank(options) => {
            note("workload bank", true);
            note("transfers with functors", options.transfers == bank::Declare::Functors);
            note("transfers with functors alone", options.transfers == bank::Declare::OnlyFunctors);
        }
        WorkloadPlan::Micro(options) => {
            note("workload micro", true);
            let alone = [Some(micro::Declare::Arithmetic), Some(micro::Declare::Own)];
            note("additions with functors alone", alone.contains(&options.adds));
            note("additions as a whole", options.adds == Some(micro::Declare::Whole));
        }
        WorkloadPlan::Tpcc(options) => match (options.layout, options.mix) {
            (tpcc::Layout::DistrictsAndItems, _) => note("workload scaled tpcc", true),
            (_, tpcc::Mix::NewOrderPayment(_)) => note("workload tpcc", true),
            (_, tpcc::Mix::Full { .. }) => note("workload tpcc with all transactions", true),
        },
        WorkloadPlan::Sql(_) => note("workload sql", true),
        WorkloadPlan::Ycsb(_) => note("workload ycsb", true),
        WorkloadPlan::Given { name, .. } => panic!("the swarm cannot draw {name}"),
    }
}

fn note_network(plan: &Plan, note: &mut impl FnMut(&'static str, bool)) {
    let network = &plan.network;
    // No other topology has hosts as far apart as the nearest two regions are.
    let far = Region::UsEast.latency(Region::Europe).minimum;
    let latency = |to: u16| network.topology.latency(Host(0), Host(to)).minimum;
    note("a wide-area network", (1..plan.machines + plan.clients.count).any(|to| latency(to) >= far));
    note("a network that loses", network.loss.is_some());
    note("a network that duplicates", network.duplication.is_some());
    note("a network that reorders", network.reordering.is_some());
    note("a narrow network", network.bandwidth > 0);
    note("packets in flight are lost", network.in_flight == InFlight::Lost);
}

fn note_limits(plan: &Plan, note: &mut impl FnMut(&'static str, bool)) {
    let (limits, usual) = (plan.limits, Limits::default());
    note("one event in a step", plan.step_events == 1);
    note("a tiny inbox", plan.inbox_requests <= 2);
    note("tiny batches", limits.batch_calls < usual.batch_calls);
    note("batches of few bytes", limits.batch_bytes < usual.batch_bytes);
    note("a tiny sequencer", limits.sequencer_waiting < usual.sequencer_waiting);
    note("a sequencer of few bytes", limits.sequencer_waiting_bytes < usual.sequencer_waiting_bytes);
    note("few epochs in flight", limits.epochs_in_flight < usual.epochs_in_flight);
    note("few live transactions", limits.transactions_live < usual.transactions_live);
    note("tiny steps", limits.step_transactions < usual.step_transactions);
    note("few reconnaissances", limits.reconnaissance < usual.reconnaissance);
}

/// Each thing was seen in more than one seed: a thing that was seen once is soon not seen at all.
fn require(seen: &Seen, expected: &[&'static str]) {
    let missing: Vec<_> =
        expected.iter().filter(|name| seen.get(*name).is_none_or(|seeds| *seeds < 2)).collect();
    assert!(missing.is_empty(), "the swarm has become narrow: {missing:?} are missing, of {seen:#?}");
}

/// YCSB is in few seeds of the sample.
#[test]
fn ycsb_keeps_all_properties_and_repeats_itself() {
    let mut seen = Seen::new();
    for seed in 0..YCSB_SEEDS {
        let plan = draw(seed, &Fixed { workload: Some(WorkloadKind::Ycsb), ..Fixed::default() });
        let WorkloadPlan::Ycsb(options) = &plan.workload else { panic!("the workload is fixed") };
        let (report, history) = run_twice(&plan);
        note_run(&plan, &report, &history, &mut seen);
        let mut note = |name, noted: bool| *seen.entry(name).or_default() += u64::from(noted);
        note(options.mix.name(), true);
        note("one row", options.keys == 1);
        note("rows of two sites", options.multi_partition_percent > 0.0 && options.sites > 1);
        note("even calls", options.theta == 0.0);
    }
    let expected = [
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "one row",
        "rows of two sites",
        "even calls",
        "a transaction on several partitions",
        "a machine that crashed started again",
    ];
    require(&seen, &expected);
}

/// Seeds that have found a mistake, with the replicas, the mode, the engine and the workload that they found it with.
#[test]
fn seeds_that_failed_once_go_well() {
    let any = Fixed::default;
    let five = || Fixed { replicas: Some(5), ..any() };
    let drawn = [69, 294, 312, 1416, 3006, 4041, 7211, 8762, 9862].map(|seed| (seed, any()));
    let managed = Fixed { epochs: Some(EpochPolicy::Managed), ..any() };
    let aloha = Fixed { engine: Some(EngineKind::Aloha), ..any() };
    let five = [(21117, five()), (21222, Fixed { workload: Some(WorkloadKind::Tpcc), ..five() })];
    let two_phase = || Fixed { engine: Some(EngineKind::TwoPhase), ..any() };
    let two_phase = [826, 1159, 2029].map(|seed| (seed, two_phase()));
    let vll = Fixed { engine: Some(EngineKind::CalvinVll), ..any() };
    let bank = Fixed { workload: Some(WorkloadKind::Bank), ..any() };
    let others = [(24, managed), (964, aloha), (6577, vll), (8431, bank)];
    for (seed, fixed) in drawn.into_iter().chain(five).chain(two_phase).chain(others) {
        let plan = draw(seed, &fixed);
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
    }
}
