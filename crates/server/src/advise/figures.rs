//! What was measured, as the rule needs it.

use ordain_db::engine::EngineKind;
use ordain_sim::scale::advice::AdvicePoint;
use ordain_workload::Profile;

use crate::bench::Report;
use crate::bench::rounds::Spread;

/// All figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The workload's name.
    pub workload: String,
    /// Nodes of the simulated cluster.
    pub nodes: u16,
    /// Partitions of the real runs, in one process.
    pub partitions: u16,
    /// What the workload is like on the simulated cluster; if that has one node only, on the partitions of the real runs.
    pub profile: Profile,
    /// By engine.
    pub engines: Vec<EngineFigures>,
}

/// What was measured of one engine.
#[derive(Clone, PartialEq, Debug)]
pub struct EngineFigures {
    /// On the simulated cluster, the engine's name included.
    pub simulated: AdvicePoint,
    /// For real.
    pub real: RealFigures,
}

/// The real runs of one engine. But for throughput, medians over the rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct RealFigures {
    /// Committed and aborted transactions per second: the least of the rounds.
    pub throughput_least: f64,
    /// The median of the rounds.
    pub throughput: f64,
    /// The most of the rounds.
    pub throughput_most: f64,
    /// CPU time of the partitions for each transaction, in microseconds.
    pub cpu_us: f64,
    /// Median latency in microseconds, at full load.
    pub latency_us_p50: f64,
    /// 99th percentile of the latency, in microseconds, at full load.
    pub latency_us_p99: f64,
    /// Attempts begun again, for each thousand calls.
    pub restarts: f64,
    /// Deadlocks of one partition or of several, for each thousand calls.
    pub deadlocks: f64,
    /// Calls that the logic aborted, in percent.
    pub aborted_percent: f64,
    /// Reconnaissance runs whose footprint no longer held at execution, in percent; 0 where there were none.
    pub missed_percent: f64,
}

impl EngineFigures {
    /// The engine.
    pub fn engine(&self) -> EngineKind {
        self.simulated.engine
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.engine().name()
    }
}

impl RealFigures {
    /// Of the rounds' reports.
    pub(crate) fn of(reports: &[Report]) -> RealFigures {
        let spread = |value: fn(&Report) -> f64| Spread::of(reports.iter().map(value));
        let Spread { least, median, most } = spread(|report| report.throughput_txn_s);
        RealFigures {
            throughput_least: least,
            throughput: median,
            throughput_most: most,
            cpu_us: spread(|report| report.cpu_per_txn_us).median,
            latency_us_p50: spread(|report| report.latency_p50_us as f64).median,
            latency_us_p99: spread(|report| report.latency_p99_us as f64).median,
            restarts: spread(|report| per_thousand(report, report.restarts)).median,
            deadlocks: spread(|report| {
                per_thousand(report, report.deadlocks.map_or(0, |deadlocks| deadlocks.all()))
            })
            .median,
            aborted_percent: spread(|report| {
                report.aborted as f64 * 100.0 / ((report.committed + report.aborted) as f64).max(1.0)
            })
            .median,
            missed_percent: spread(missed_percent).median,
        }
    }
}

/// Both are counted over the whole run.
fn per_thousand(report: &Report, count: u64) -> f64 {
    count as f64 * 1e3 / report.ended.max(1) as f64
}

fn missed_percent(report: &Report) -> f64 {
    match report.reconnaissance {
        0 => 0.0,
        // The engine `two-phase` begins again because of deadlocks, too, and has no reconnaissance.
        runs => report.restarts as f64 * 100.0 / runs as f64,
    }
}
