//! Any workload on one engine after the other, for advice which of them suits it (Ren, Thomson and Abadi).
//!
//! The cluster is that of all experiments: a machine with one core for each node, all in one hall, no disks, clients beside their
//! node that keep so many calls outstanding.
//!
//! Nothing is shed here (`throttle` is off): clients that wait for their answers let a slow node fall behind no further than they
//! have calls outstanding. What it does for clients that do not wait is measured by [`slow_node`](super::slow_node).
//!
//! Not charged is what the lock managers of `calvin` differ by: a fraction of a microsecond for each transaction that waits
//! (DET-X07). `serial` costs what `calvin` does, so that it differs by what waits for what. `aloha` does other work for each
//! transaction, and has costs of its own, measured in one session with those of `calvin`: see [`AdviceCosts`].

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::limits::Limits;
use ordain_db::position::{NodeId, PartitionId};
use ordain_workload::micro::RECORDS_PER_TRANSACTION;
use ordain_workload::{Part, Workload};

use super::cluster::{best, cluster};
use super::costs::{costs, costs_from};
use super::evaluation::{Length, costs_of};
use super::{Benchmark, aloha};
use crate::machine::cost::CostTable;
use crate::plan::{Fault, Plan, PlannedFault, WorkloadPlan};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

/// The engines among which to choose. The variant without a commit protocol is no database (DET-41).
pub const ENGINES: [EngineKind; 5] =
    [EngineKind::Calvin, EngineKind::CalvinVll, EngineKind::Serial, EngineKind::TwoPhase, EngineKind::Aloha];

/// The machine that becomes slow.
const SLOW: u16 = 0;

/// How many times as long it takes for everything then.
pub const FACTOR: u64 = 4;

/// From this on transactions are long, in picoseconds for each execution: a step takes only one new one then, as what it
/// says leaves when it is over.
const LONG_FROM: u64 = 50_000_000;

/// Units of busy work that a workload counts with each record: so many that work before a dependent read is charged to the hundredth.
pub const WORK_UNITS: u32 = 10;

/// What is to be simulated.
#[derive(Clone, Copy)]
pub struct AdviceSetting<'a> {
    /// The workload, whose calls come from as many homes as there are nodes. Busy work is only counted in its procedures.
    pub workload: &'a dyn Workload,
    /// Number of nodes, each with a partition.
    pub nodes: u16,
    /// The seed of the calls.
    pub seed: u64,
    /// What the parts of a step cost with this workload.
    pub costs: AdviceCosts,
}

/// What the parts of a step cost with a workload. What is held against each other was measured alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdviceCosts {
    /// On the engine `calvin`, and so on all engines with locks.
    pub locks: CostTable,
    /// On the engine `aloha`.
    pub aloha: CostTable,
}

impl AdviceCosts {
    /// Those that were measured for this version, of both engines in one session. The microbenchmark was measured on `aloha` where it
    /// only adds and says nothing about it: it reads and writes the same records then, without its constraint.
    ///
    /// # Errors
    /// When the files in the binary lack a table.
    pub fn measured(workload: Benchmark) -> Result<AdviceCosts, String> {
        match workload {
            Benchmark::Micro => {
                let adds = AdviceCosts::read(aloha::MEASURED, Benchmark::AddsWhole)?;
                // Nothing there is reconnoitred, which is the same work whatever the engine is.
                let trial = costs(Benchmark::Micro).trial;
                Ok(adds.map(|table| CostTable { trial, ..table }))
            }
            other => AdviceCosts::read(aloha::MEASURED, other),
        }
    }

    /// Those of a file that `ordain sim calibrate` wrote.
    ///
    /// # Errors
    /// When the text is no such file, or lacks a table.
    pub fn read(text: &str, workload: Benchmark) -> Result<AdviceCosts, String> {
        // An engine with locks does nothing about how additions are declared.
        let with_locks = if workload.adds().is_some() { Benchmark::AddsWhole } else { workload };
        let table = |engine, of: Benchmark| {
            costs_from(text, (engine, of)).map_err(|problem| {
                let mut workloads = format!("--workload {}", workload.name());
                if with_locks != workload {
                    workloads.push_str(&format!(" --workload {}", with_locks.name()));
                }
                format!("{problem}; both engines in one file: `--engine calvin --engine aloha {workloads}`")
            })
        };
        Ok(AdviceCosts {
            locks: table(EngineKind::Calvin, with_locks)?,
            aloha: table(EngineKind::Aloha, workload)?,
        })
    }

    /// Those of the microbenchmark with what it does with each record scaled to another number of keys.
    #[must_use]
    pub fn of_keys(self, keys: f64) -> AdviceCosts {
        let share = keys / RECORDS_PER_TRANSACTION as f64;
        let scaled = |cost: u64| (cost as f64 * share).round() as u64;
        self.map(|table| CostTable {
            executed_alone: scaled(table.executed_alone),
            executed_together: scaled(table.executed_together),
            functor: Some(table.executed_alone / RECORDS_PER_TRANSACTION as u64),
            ..table
        })
    }

    /// The same with busy work of so many picoseconds with each record, which the workload counts as [`WORK_UNITS`].
    #[must_use]
    pub fn with_work(self, picoseconds: u64) -> AdviceCosts {
        self.map(|table| CostTable { unit: picoseconds / u64::from(WORK_UNITS), ..table })
    }

    fn map(self, change: impl Fn(CostTable) -> CostTable) -> AdviceCosts {
        AdviceCosts { locks: change(self.locks), aloha: change(self.aloha) }
    }
}

/// How long and how hard each engine is driven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdviceEffort {
    /// Virtual time before measuring.
    pub warm_up: Nanoseconds,
    /// Virtual time of measuring; four times as much for long transactions, of which there are fewer.
    pub time: Nanoseconds,
    /// Calls that the client of each node has outstanding: each is tried, and the best throughput counts (DET-62).
    pub windows: Vec<u64>,
    /// Likewise for long transactions.
    pub windows_long: Vec<u64>,
    /// Calls that it has outstanding where latency is measured: a light load.
    pub light_window: u64,
}

impl Default for AdviceEffort {
    fn default() -> AdviceEffort {
        AdviceEffort {
            warm_up: 100 * MILLISECOND,
            time: 100 * MILLISECOND,
            windows: vec![32, 128, 512],
            windows_long: vec![8, 32, 128],
            light_window: 4,
        }
    }
}

/// What a run of a cluster came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Observed {
    /// Transactions per second of virtual time over all nodes, each counted once however often it was begun (DET-39).
    pub throughput: f64,
    /// Median latency in microseconds of virtual time, reconnaissance included (DET-61).
    pub latency_us_p50: u64,
    /// 99th percentile of the latency, in microseconds of virtual time.
    pub latency_us_p99: u64,
    /// Share of the measured time in which a node's core was busy, over all nodes, in percent.
    pub busy_percent: f64,
    /// Attempts per second that were given up and begun again.
    pub restarts: f64,
    /// Deadlocks per second, of one partition or of several.
    pub deadlocks: f64,
    /// Runs per second that found out the keys of a dependent call.
    pub reconnaissance: f64,
}

/// One engine's figures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdvicePoint {
    /// The engine.
    pub engine: EngineKind,
    /// Calls that the client of each node had outstanding: of those that were tried, the number with the highest throughput.
    pub window: u64,
    /// At that load.
    pub full: Observed,
    /// At the light one.
    pub light: Observed,
    /// Throughput at full load while one node is [`FACTOR`] times as slow, in percent of that while none is.
    pub slow_percent: f64,
}

/// Simulates a workload on an engine.
///
/// # Errors
/// When the workload has calls that cannot be simulated, or none for a node.
pub fn simulate(
    setting: &AdviceSetting<'_>,
    engine: EngineKind,
    effort: &AdviceEffort,
) -> Result<AdvicePoint, Error> {
    let run = |window, slowness| observe(setting, engine, effort, Drive { window, slowness });
    let is_long = setting.is_long();
    let windows = if is_long { &effort.windows_long } else { &effort.windows };
    let tried = windows.iter().map(|window| Ok((*window, run(*window, 1)?)));
    let (window, full) = best(tried, |(_, observed)| observed.throughput)?;
    let light = run(effort.light_window, 1)?;
    let slow = run(window, FACTOR)?;
    let slow_percent = slow.throughput * 100.0 / full.throughput.max(1e-9);
    Ok(AdvicePoint { engine, window, full, light, slow_percent })
}

impl AdviceSetting<'_> {
    fn is_long(&self) -> bool {
        let CostTable { executed_alone, unit, .. } = self.costs.locks;
        executed_alone + RECORDS_PER_TRANSACTION as u64 * u64::from(WORK_UNITS) * unit >= LONG_FROM
    }
}

/// How one run differs from the others.
#[derive(Clone, Copy)]
struct Drive {
    window: u64,
    slowness: u64,
}

fn observe(
    setting: &AdviceSetting<'_>,
    engine: EngineKind,
    effort: &AdviceEffort,
    drive: Drive,
) -> Result<Observed, Error> {
    let time = if setting.is_long() { 4 * effort.time } else { effort.time };
    let plan = plan(setting, engine, drive, effort.warm_up + time)?;
    let mut world = World::new(&plan, setting.workload)?;
    world.run_until(effort.warm_up);
    let before = counts(&world, setting.nodes);
    let run = world.measure(0, time);
    if let [problem, ..] = world.problems() {
        return Err(Error::Invalid(problem.clone()));
    }
    let after = counts(&world, setting.nodes);
    let per_second = |count: u64| count as f64 * SECOND as f64 / time as f64;
    Ok(Observed {
        throughput: per_second(run.latencies.len() as u64),
        latency_us_p50: run.percentile_us(50),
        latency_us_p99: run.percentile_us(99),
        busy_percent: run.busy as f64 * 100.0 / (time as f64 * f64::from(setting.nodes)),
        restarts: per_second(after[0] - before[0]),
        deadlocks: per_second(after[1] - before[1]),
        reconnaissance: per_second(after[2] - before[2]),
    })
}

/// Restarts, deadlocks and reconnaissance runs of all nodes until now.
fn counts(world: &World<'_>, nodes: u16) -> [u64; 3] {
    let statuses = (0..nodes).filter_map(|partition| world.status(NodeId::first(PartitionId(partition))));
    statuses.fold([0; 3], |[restarts, deadlocks, reconnaissance], status| {
        let (counters, met) = (status.counters, status.deadlocks);
        [
            restarts + counters.restarts,
            deadlocks + met.local_deadlocks + met.distributed_deadlocks,
            reconnaissance + counters.reconnaissance,
        ]
    })
}

fn plan(
    setting: &AdviceSetting<'_>,
    engine: EngineKind,
    drive: Drive,
    ends_at: Nanoseconds,
) -> Result<Plan, Error> {
    let background = setting.workload.background(setting.seed, 0, Part::WHOLE)?;
    let workload =
        WorkloadPlan::Given { name: setting.workload.name(), has_background: background.is_some() };
    let usual = Limits::default();
    let step_transactions = if setting.is_long() { 1 } else { usual.step_transactions };
    let costs = match engine {
        // There are no locks to account for.
        EngineKind::Aloha => setting.costs.aloha,
        _ => costs_of(EngineKind::Calvin, Length::Short, &setting.costs.locks),
    };
    // Also where no node is slow: with faults in the plan, messages travel over links.
    let fault = Fault::Slow(SLOW, drive.slowness);
    Ok(Plan {
        seed: setting.seed,
        engine,
        limits: Limits { step_transactions, ..usual },
        faults: vec![PlannedFault { at: 0, lasts: ends_at, fault }],
        heal_at: ends_at,
        ..cluster(setting.nodes, workload, costs, drive.window)
    })
}

#[cfg(test)]
mod tests {
    use ordain_workload::micro;

    use super::*;

    fn workload(contention_index: f64, multi_partition_percent: f64) -> micro::Micro {
        let options = micro::Options {
            sites: 2,
            records: 20_000,
            contention_index,
            multi_partition_percent,
            ..micro::Options::default()
        };
        micro::Micro::new(options).unwrap()
    }

    fn micro_point(workload: &dyn Workload, engine: EngineKind) -> AdvicePoint {
        point(workload, AdviceCosts::measured(Benchmark::Micro).unwrap(), engine)
    }

    fn point(workload: &dyn Workload, costs: AdviceCosts, engine: EngineKind) -> AdvicePoint {
        let setting = AdviceSetting { workload, nodes: 2, seed: 1, costs };
        let effort = AdviceEffort {
            warm_up: 10 * MILLISECOND,
            time: 20 * MILLISECOND,
            windows: vec![64],
            ..AdviceEffort::default()
        };
        simulate(&setting, engine, &effort).unwrap()
    }

    #[test]
    fn a_simulation_has_one_course() {
        let workload = workload(0.01, 20.0);
        for engine in ENGINES {
            let once = micro_point(&workload, engine);
            assert_eq!(once, micro_point(&workload, engine));
            assert!(once.full.throughput > once.light.throughput, "{once:?}");
            assert!(once.light.latency_us_p50 < once.full.latency_us_p50, "{once:?}");
        }
    }

    #[test]
    fn who_waits_for_one_after_the_other_falls_behind_and_who_waits_in_any_order_meets_deadlocks() {
        let (workload, hot) = (workload(0.02, 50.0), workload(0.2, 100.0));
        let [calvin, serial] =
            [EngineKind::Calvin, EngineKind::Serial].map(|engine| micro_point(&workload, engine));
        assert!(calvin.full.throughput > 1.5 * serial.full.throughput, "{calvin:?} {serial:?}");
        assert_eq!((calvin.full.deadlocks, calvin.full.restarts), (0.0, 0.0));
        let two_phase = micro_point(&hot, EngineKind::TwoPhase);
        assert!(two_phase.full.deadlocks > 0.0 && two_phase.full.restarts > 0.0, "{two_phase:?}");
    }

    #[test]
    fn who_only_adds_with_functors_does_not_mind_contention() {
        let at = |engine, contention_index| {
            let options = micro::Options {
                sites: 2,
                records: 20_000,
                contention_index,
                multi_partition_percent: 100.0,
                adds: Some(micro::Declare::Arithmetic),
                ..micro::Options::default()
            };
            let costs = AdviceCosts::measured(Benchmark::AddsArithmetic).unwrap();
            point(&micro::Micro::new(options).unwrap(), costs, engine).full.throughput
        };
        let [aloha, calvin] = [EngineKind::Aloha, EngineKind::Calvin].map(|engine| at(engine, 0.1));
        assert!(aloha > 2.0 * calvin, "{aloha} {calvin}");
        assert!(aloha > 0.85 * at(EngineKind::Aloha, 0.001), "{aloha}");
    }

    #[test]
    fn costs_of_both_engines_were_measured_alike() {
        let costs = |workload| AdviceCosts::measured(workload).unwrap();
        let [micro, whole] = [Benchmark::Micro, Benchmark::AddsWhole].map(costs);
        assert_eq!(micro.map(|table| CostTable { trial: 0, ..table }), whole);
        assert!(micro.locks.trial > 0 && micro.aloha.trial == micro.locks.trial);
        // An engine with locks runs additions as a whole, however they are declared.
        assert_eq!(costs(Benchmark::AddsArithmetic).locks, whole.locks);
        assert!(costs(Benchmark::NewOrder).aloha.functor > Some(0));
        let half = micro.of_keys(5.0);
        assert_eq!(half.aloha.executed_together, (micro.aloha.executed_together as f64 / 2.0).round() as u64);
        assert_eq!(half.aloha.functor, Some(micro.aloha.executed_alone / 10));
        assert_eq!(micro.with_work(70).aloha, CostTable { unit: 7, ..micro.aloha });
        let problem = AdviceCosts::read("", Benchmark::AddsOwn).unwrap_err();
        let advice = "--engine calvin --engine aloha --workload adds-own --workload adds-whole";
        assert!(problem.contains("[calvin.adds-whole]") && problem.contains(advice), "{problem}");
    }

    #[test]
    fn one_slow_node_of_two_costs_more_where_transactions_span_both() {
        let kept = |percent| micro_point(&workload(0.0002, percent), EngineKind::Calvin).slow_percent;
        let (apart, together) = (kept(0.0), kept(100.0));
        assert!((25.0..95.0).contains(&apart), "{apart}");
        assert!(together < apart, "{together} {apart}");
    }
}
