//! Any workload on one engine after the other, for advice which of them suits it (Ren, Thomson and Abadi).
//!
//! The cluster is that of all experiments: a machine with one core for each node, all in one hall, no disks, clients beside their
//! node that keep so many calls outstanding.
//!
//! Clients that wait for their answers let a slow node fall behind no further than they have calls outstanding: so shedding calls
//! there (`throttle`) changes nothing here. What it does for clients that do not wait is measured by [`slow_node`](super::slow_node).
//!
//! Not charged is what the lock managers of `calvin` differ by: a fraction of a microsecond for each transaction that waits
//! (DET-X07). `serial` costs what `calvin` does, so that it differs by what waits for what.

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::limits::Limits;
use ordain_db::position::{NodeId, PartitionId};
use ordain_workload::Workload;

use super::cluster::{best, cluster};
use super::evaluation::{Length, costs_of};
use crate::machine::cost::CostTable;
use crate::plan::{Fault, Plan, PlannedFault, WorkloadPlan};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

/// The engines among which to choose. The variant without a commit protocol is no database (DET-41).
pub const ENGINES: [EngineKind; 4] =
    [EngineKind::Calvin, EngineKind::CalvinVll, EngineKind::Serial, EngineKind::TwoPhase];

/// The machine that becomes slow.
const SLOW: u16 = 0;

/// How many times as long it takes for everything then.
pub const FACTOR: u64 = 4;

/// From this on transactions are long, in picoseconds for each execution: a step takes only one new one then, as what it
/// says leaves when it is over.
const LONG_FROM: u64 = 50_000_000;

/// What is to be simulated.
#[derive(Clone, Copy)]
pub struct AdviceSetting<'a> {
    /// The workload, whose calls come from as many homes as there are nodes. Busy work belongs into `costs`, not into its procedures.
    pub workload: &'a dyn Workload,
    /// Number of nodes, each with a partition.
    pub nodes: u16,
    /// The seed of the calls.
    pub seed: u64,
    /// What the parts of a step cost with this workload on the engine `calvin`.
    pub costs: CostTable,
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
        self.costs.executed_alone >= LONG_FROM
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
    let plan = plan(setting, engine, drive, effort.warm_up + time);
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

fn plan(setting: &AdviceSetting<'_>, engine: EngineKind, drive: Drive, ends_at: Nanoseconds) -> Plan {
    let workload = WorkloadPlan::Given(setting.workload.name());
    let usual = Limits::default();
    let step_transactions = if setting.is_long() { 1 } else { usual.step_transactions };
    // Also where no node is slow: with faults in the plan, messages travel over links.
    let fault = Fault::Slow(SLOW, drive.slowness);
    Plan {
        seed: setting.seed,
        engine,
        limits: Limits { step_transactions, ..usual },
        faults: vec![PlannedFault { at: 0, lasts: ends_at, fault }],
        heal_at: ends_at,
        ..cluster(setting.nodes, workload, costs_of(engine, Length::Short, &setting.costs), drive.window)
    }
}

#[cfg(test)]
mod tests {
    use ordain_workload::micro;

    use super::*;
    use crate::scale::{Benchmark, costs};

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

    fn point(workload: &dyn Workload, engine: EngineKind) -> AdvicePoint {
        let setting = AdviceSetting { workload, nodes: 2, seed: 1, costs: costs(Benchmark::Micro) };
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
            let once = point(&workload, engine);
            assert_eq!(once, point(&workload, engine));
            assert!(once.full.throughput > once.light.throughput, "{once:?}");
            assert!(once.light.latency_us_p50 < once.full.latency_us_p50, "{once:?}");
        }
    }

    #[test]
    fn who_waits_for_one_after_the_other_falls_behind_and_who_waits_in_any_order_meets_deadlocks() {
        let workload = workload(0.02, 50.0);
        let [calvin, serial, two_phase] = [EngineKind::Calvin, EngineKind::Serial, EngineKind::TwoPhase]
            .map(|engine| point(&workload, engine));
        assert!(calvin.full.throughput > 1.5 * serial.full.throughput, "{calvin:?} {serial:?}");
        assert_eq!((calvin.full.deadlocks, calvin.full.restarts), (0.0, 0.0));
        assert!(two_phase.full.deadlocks > 0.0 && two_phase.full.restarts > 0.0, "{two_phase:?}");
    }

    #[test]
    fn one_slow_node_of_two_costs_more_where_transactions_span_both() {
        let kept = |percent| point(&workload(0.0002, percent), EngineKind::Calvin).slow_percent;
        let (apart, together) = (kept(0.0), kept(100.0));
        assert!((25.0..95.0).contains(&apart), "{apart}");
        assert!(together < apart, "{together} {apart}");
    }
}
