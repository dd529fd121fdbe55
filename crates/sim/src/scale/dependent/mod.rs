//! Transactions that must read to know what they touch, on engines that have to know it in advance and on one that need not: over
//! the share of such transactions, how often the index changes, and where in the logic it is read (Ren, Thomson and Abadi, §3.6,
//! Figure 6: DET-X13 to DET-X15; DET-54 to DET-59), and how long calls take (§3.7, Figure 7: DET-X16, DET-61).
//!
//! The microbenchmark with long transactions at low contention. Cluster, network and costs are those of the
//! [evaluation](super::evaluation): a machine with one core for each node, no disks. An entry of a secondary index names the ten
//! records of a dependent transaction. A client for each partition updates the entries there, with ordinary transactions in the
//! order: *each* entry so many times a second (DET-55).
//!
//! - [`settings`] and [`measure_dependent`]: the runs that tell throughput.
//! - [`latency`]: the runs that tell latencies.
//! - [`csv`] and [`figure`], [`latencies_csv`] and [`latency_figure`]: as tables, and drawn as the paper does.
//! - [`judge`]: what the paper states beside what was measured.
//!
//! *Not like the paper*: it gave the updates a core of their own, and took it from transactions of both systems (DET-56). Here
//! they take their part of the one core of their node. So throughput is compared with that of the same cluster with the same
//! updates and no dependent transactions.

pub mod figure_6;
pub mod figure_7;
pub mod latency;
mod report;
mod statements;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::execution::Executions;
use ordain_db::gateway::scouting::Scouting;
use ordain_db::limits::{Limits, RESTARTS_BEFORE_DISTRIBUTED_HELP, RESTARTS_BEFORE_HELP};
use ordain_db::position::{NodeId, PartitionId};
use ordain_workload::micro;

use self::figure_6::Cell;
use super::cluster::{best, cluster};
use super::evaluation::{LOW, Length, costs_of};
use crate::machine::cost::{CostTable, LONG_WORK};
use crate::plan::{Plan, WorkloadPlan};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};
use crate::world::{Measured, World};

pub use report::{csv, figure, latencies_csv, latency_figure, table};
pub use statements::judge;

/// The engines that are compared.
pub const ENGINES: [EngineKind; 2] = [EngineKind::Calvin, EngineKind::TwoPhase];

/// Number of nodes.
pub const NODES: u16 = 4;

/// Entries of the index at each node. Each transaction reads one of them; the paper's text does not tell its number.
pub const ENTRIES: u32 = 100;

/// Shares of dependent transactions of Figures 6 (a) and (b), in percent.
pub const SHARES: [f64; 4] = [0.0, 20.0, 50.0, 100.0];

/// How often each entry is updated in a second, in these figures.
pub const VOLATILITIES: [f64; 4] = [0.0, 1.0, 10.0, 100.0];

/// Shares of distributed transactions of Figures 6 (a) and (b), in percent.
pub const DISTRIBUTED: [f64; 2] = [0.0, 100.0];

/// Shares of the work that come before the index is read, in Figure 6 (c), in percent.
pub const POSITIONS: [u8; 6] = [0, 20, 40, 60, 80, 100];

/// Volatilities of Figure 6 (c); the paper's text names none.
pub const VOLATILITIES_OF_POSITIONS: [f64; 3] = [0.0, 10.0, 100.0];

/// Misses after which calls of several nodes are helped, where that is not the usual number, to tell what help costs: see
/// [`widening`](ordain_db::gateway::widening).
pub const EARLY_HELP: u32 = 4;
const OTHER_HELP: [u32; 3] = [2, 8, 16];

/// Volatilities at which [`EARLY_HELP`] is tried, with all transactions distributed.
pub const VOLATILITIES_OF_HELP: [f64; 2] = [10.0, 100.0];

/// Records of each site beyond the contended ones: see [the evaluation](super::evaluation).
const COLD_RECORDS: u64 = 50_000;

/// Units of work with each record: so many that a hundredth of a transaction's work is a whole number of them.
const UNITS: u32 = 10;

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DependentSetting {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// Percentage of transactions that touch two nodes.
    pub distributed_percent: f64,
    /// Percentage of transactions that find their records through the index.
    pub dependent_percent: f64,
    /// Updates of each entry of the index in a second.
    pub volatility: f64,
    /// Percentage of a dependent transaction's work that comes before it reads the index.
    pub position_percent: u8,
    /// Misses after which a call of several nodes is helped.
    pub help_after: u32,
}

impl DependentSetting {
    /// With the usual number of misses before help.
    pub fn new(engine: EngineKind, cell: Cell) -> DependentSetting {
        let Cell { distributed_percent, dependent_percent, volatility, position_percent } = cell;
        let help_after = RESTARTS_BEFORE_DISTRIBUTED_HELP;
        DependentSetting {
            engine,
            distributed_percent,
            dependent_percent,
            volatility,
            position_percent,
            help_after,
        }
    }
}

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct DependentPoint {
    /// What was measured.
    pub setting: DependentSetting,
    /// Calls that the client of each node had outstanding: of those that were tried, the number with the highest throughput.
    pub window: u64,
    /// Most messages that a node took in one step, likewise; `usize::MAX` for all that had come.
    pub step_events: usize,
    /// Transactions per second of virtual time over all nodes, each counted once however often it was begun; without updates of the
    /// index.
    pub throughput: f64,
    /// Median latency in microseconds of virtual time.
    pub latency_us_p50: u64,
    /// 99th percentile of the latency, in microseconds of virtual time.
    pub latency_us_p99: u64,
    /// The longest time that a call took, or that one without an answer had waited at the end, in microseconds of virtual time.
    pub longest_us: u64,
    /// Share of the measured time in which a node's core was busy, over all nodes, in percent.
    pub busy_percent: f64,
    /// Share of the busy time that reconnaissance took, in percent (DET-26).
    pub reconnaissance_percent: f64,
    /// Updates of the index per second that were asked for.
    pub updates_wanted: f64,
    /// Updates of the index per second that were answered.
    pub updates: f64,
    /// Attempts per second that were begun again since they missed their footprint.
    pub misses: f64,
    /// The share of first attempts that missed, in percent.
    pub first_misses_percent: f64,
    /// The mean time from the end of reconnaissance to the verdict on the attempt, in microseconds.
    pub gap_us: f64,
    /// The most attempts of one call that missed, since the beginning of the run.
    pub misses_max: u32,
    /// Attempts per second that declared more than was found, as those before them had missed.
    pub helped: f64,
    /// Attempts per second that were begun again for the sake of others, in deadlocks.
    pub victims: f64,
    /// Calls that were given up, since the beginning of the run.
    pub failed: u64,
}

/// How long and how hard each point is driven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DependentEffort {
    /// Virtual time before measuring.
    pub warm_up: Nanoseconds,
    /// Virtual time of measuring.
    pub time: Nanoseconds,
    /// Calls that the client of each node has outstanding: each is tried, and the best counts (DET-62).
    pub windows: Vec<u64>,
    /// Most messages that a node takes in one step: likewise (DET-36).
    pub messages: Vec<usize>,
}

impl Default for DependentEffort {
    fn default() -> DependentEffort {
        DependentEffort {
            warm_up: 200 * MILLISECOND,
            time: SECOND,
            windows: vec![8, 32, 128],
            messages: vec![1, usize::MAX],
        }
    }
}

/// All runs that tell throughput, each once.
pub fn settings() -> Vec<DependentSetting> {
    let mut all: Vec<DependentSetting> = Vec::new();
    for engine in ENGINES {
        for distributed_percent in DISTRIBUTED {
            for volatility in VOLATILITIES {
                all.extend(SHARES.map(|dependent_percent| {
                    let position_percent = 0;
                    let cell = Cell { distributed_percent, dependent_percent, volatility, position_percent };
                    DependentSetting::new(engine, cell)
                }));
            }
        }
        for volatility in VOLATILITIES_OF_POSITIONS {
            let later = POSITIONS.into_iter().filter(|position| *position > 0);
            all.extend(
                later.map(|position| DependentSetting::new(engine, Cell::at_position(volatility, position))),
            );
        }
    }
    let helped = |volatility, dependent_percent, help_after| DependentSetting {
        engine: EngineKind::Calvin,
        distributed_percent: 100.0,
        dependent_percent,
        volatility,
        position_percent: 0,
        help_after,
    };
    for volatility in VOLATILITIES_OF_HELP {
        let shares = SHARES.into_iter().filter(|share| *share > 0.0);
        all.extend(shares.map(|share| helped(volatility, share, EARLY_HELP)));
    }
    all.extend(OTHER_HELP.map(|help_after| helped(100.0, 100.0, help_after)));
    all
}

/// What the parts of a step cost: those of the [evaluation](costs_of), but that the work of long transactions
/// takes its time wherever it is done, in trial runs too.
pub fn costs_of_dependent(measured: &CostTable) -> CostTable {
    CostTable { unit: LONG_WORK / u64::from(UNITS), ..costs_of(EngineKind::Calvin, Length::Short, measured) }
}

/// Runs one setting with every window and every number of messages in a step, and takes the best.
///
/// # Errors
/// When the workload refuses the setting, or there is no window.
pub fn measure_dependent(
    setting: &DependentSetting,
    measured: &CostTable,
    effort: &DependentEffort,
) -> Result<DependentPoint, Error> {
    let tried = effort.windows.iter().flat_map(|window| effort.messages.iter().map(|most| (*window, *most)));
    best(tried.map(|tried| measure_window(setting, measured, effort, tried)), |point| point.throughput)
}

/// What nodes have counted.
#[derive(Clone, Copy, Default)]
struct Counted {
    restarts: u64,
    helped: u64,
    failed: u64,
    executions: Executions,
    scouting: Scouting,
}

impl Counted {
    /// Until now, over all nodes.
    fn of(world: &World<'_>) -> Counted {
        let mut sum = Counted::default();
        for node in (0..NODES).map(|partition| NodeId::first(PartitionId(partition))) {
            if let Some(status) = world.status(node) {
                sum.restarts += status.counters.restarts;
                sum.helped += status.counters.helped;
                sum.failed += status.counters.failed;
            }
            let (runs, own) =
                (world.runs(node).unwrap_or_default(), world.scouting(node).unwrap_or_default());
            sum.executions.reconnaissance += runs.reconnaissance;
            sum.executions.reconnaissance_units += runs.reconnaissance_units;
            sum.scouting.attempts += own.attempts;
            sum.scouting.gap_microseconds += own.gap_microseconds;
            sum.scouting.first_attempts += own.first_attempts;
            sum.scouting.first_misses += own.first_misses;
            sum.scouting.misses_max = sum.scouting.misses_max.max(own.misses_max);
        }
        sum
    }
}

fn measure_window(
    setting: &DependentSetting,
    measured: &CostTable,
    effort: &DependentEffort,
    (window, step_events): (u64, usize),
) -> Result<DependentPoint, Error> {
    let plan = Plan { step_events, ..plan(setting, measured, window) };
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    world.run_until(effort.warm_up);
    let before = Counted::of(&world);
    let run = world.measure(0, effort.time);
    let counted = Counted::of(&world);
    if let [problem, ..] = world.problems() {
        return Err(Error::Invalid(problem.clone()));
    }
    let longest = run.percentile_us(100).max(world.longest_wait() / MICROSECOND);
    Ok(DependentPoint { longest_us: longest, ..point(setting, &plan, effort.time, &run, [before, counted]) })
}

fn point(
    setting: &DependentSetting,
    plan: &Plan,
    time: Nanoseconds,
    run: &Measured,
    [before, after]: [Counted; 2],
) -> DependentPoint {
    let per_second = |count: u64| count as f64 * SECOND as f64 / time as f64;
    let ratio = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
    let trials = after.executions.reconnaissance - before.executions.reconnaissance;
    let units = after.executions.reconnaissance_units - before.executions.reconnaissance_units;
    let scouted = (trials * plan.costs.trial + units * plan.costs.unit) / 1_000;
    let restarts = per_second(after.restarts - before.restarts);
    let is_ordered = setting.engine.is_ordered();
    let of = |count: fn(&Scouting) -> u64| count(&after.scouting) - count(&before.scouting);
    DependentPoint {
        setting: *setting,
        window: plan.clients.window,
        step_events: plan.step_events,
        throughput: per_second(run.latencies.len() as u64),
        latency_us_p50: run.percentile_us(50),
        latency_us_p99: run.percentile_us(99),
        longest_us: run.percentile_us(100),
        busy_percent: run.busy as f64 * 100.0 / (time as f64 * f64::from(NODES)),
        reconnaissance_percent: 100.0 * ratio(scouted, run.busy),
        updates_wanted: setting.volatility * f64::from(ENTRIES) * f64::from(NODES),
        updates: per_second(run.background),
        misses: if is_ordered { restarts } else { 0.0 },
        first_misses_percent: 100.0 * ratio(of(|own| own.first_misses), of(|own| own.first_attempts)),
        gap_us: ratio(of(|own| own.gap_microseconds), of(|own| own.attempts)),
        misses_max: after.scouting.misses_max,
        helped: per_second(after.helped - before.helped),
        victims: if is_ordered { 0.0 } else { restarts },
        failed: after.failed,
    }
}

/// The microbenchmark of a setting.
fn workload(setting: &DependentSetting) -> micro::Options {
    let contended = (1.0 / LOW).round() as u64;
    micro::Options {
        sites: NODES,
        records: u64::from(NODES) * (contended + COLD_RECORDS),
        contention_index: LOW,
        multi_partition_percent: setting.distributed_percent,
        work_rounds: UNITS,
        work_is_counted_only: true,
        index: micro::IndexOptions {
            dependent_percent: setting.dependent_percent,
            entries_per_site: ENTRIES,
            position_percent: setting.position_percent,
            volatility: setting.volatility,
        },
        ..micro::Options::default()
    }
}

fn plan(setting: &DependentSetting, measured: &CostTable, window: u64) -> Plan {
    let costs = costs_of_dependent(measured);
    Plan {
        engine: setting.engine,
        // What a step says leaves when it is over: many long transactions in one would keep all others waiting.
        limits: Limits {
            step_transactions: 1,
            restarts_before_help: setting.help_after.min(RESTARTS_BEFORE_HELP),
            restarts_before_distributed_help: setting.help_after,
            ..Limits::default()
        },
        ..cluster(NODES, WorkloadPlan::Micro(workload(setting)), costs, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Benchmark, costs};

    const BASE: DependentSetting = DependentSetting {
        engine: EngineKind::Calvin,
        distributed_percent: 0.0,
        dependent_percent: 100.0,
        volatility: 0.0,
        position_percent: 0,
        help_after: RESTARTS_BEFORE_DISTRIBUTED_HELP,
    };

    fn point(setting: DependentSetting) -> DependentPoint {
        let effort = DependentEffort {
            warm_up: 50 * MILLISECOND,
            time: 200 * MILLISECOND,
            windows: vec![32],
            messages: vec![1],
        };
        measure_dependent(&setting, &costs(Benchmark::Micro), &effort).unwrap()
    }

    /// DET-X15 in small: what is run in advance costs as much as when it counts, and a classical engine runs nothing in advance.
    #[test]
    fn throughput_is_halved_when_all_of_the_work_comes_before_the_read() {
        let at = |engine, position_percent| {
            let point = point(DependentSetting { engine, position_percent, ..BASE });
            assert!(point.busy_percent > 95.0 && point.failed == 0, "{point:?}");
            point
        };
        let [none, half, all] = [0, 50, 100].map(|position| at(EngineKind::Calvin, position));
        for (later, expected) in [(&half, 1.0 / 1.5), (&all, 0.5)] {
            let kept = later.throughput / none.throughput;
            assert!((kept - expected).abs() < 0.05, "{kept} for {expected}");
        }
        assert!(none.reconnaissance_percent < 5.0, "{none:?}");
        assert!((45.0..50.0).contains(&all.reconnaissance_percent), "{all:?}");
        let [none, all] = [0, 100].map(|position| at(EngineKind::TwoPhase, position));
        assert!((all.throughput / none.throughput - 1.0).abs() < 0.05, "{all:?}");
        assert_eq!((all.misses, all.reconnaissance_percent), (0.0, 0.0));
    }

    /// DET-X13 in small: the more volatile the index, the more attempts miss, as many as its updates explain; and every call comes to
    /// an end all the same. The updates are as many as were asked for (DET-55).
    #[test]
    fn misses_follow_from_the_volatility_and_starve_nobody() {
        let misses = [1.0, 10.0, 100.0].map(|volatility| {
            let point = point(DependentSetting { volatility, dependent_percent: 20.0, ..BASE });
            assert!((point.updates / point.updates_wanted - 1.0).abs() < 0.15, "{point:?}");
            assert!(point.failed == 0 && point.throughput > 10_000.0, "{point:?}");
            let derived = 1.0 - libm::exp(-volatility * point.gap_us / 1e6);
            let missed = point.first_misses_percent / 100.0;
            assert!((missed - derived).abs() < 0.02 + derived / 4.0, "{derived}: {point:?}");
            missed
        });
        assert!(misses.is_sorted() && misses[2] > 0.1, "{misses:?}");
        let classical = point(DependentSetting { engine: EngineKind::TwoPhase, volatility: 100.0, ..BASE });
        assert_eq!((classical.misses, classical.misses_max, classical.failed), (0.0, 0, 0));
    }

    #[test]
    fn no_setting_is_run_twice() {
        let all = settings();
        assert_eq!(all.len(), 2 * (2 * 4 * 4 + 3 * 5) + 2 * 3 + 3);
        assert!(all.iter().enumerate().all(|(place, setting)| !all[..place].contains(setting)));
    }
}
