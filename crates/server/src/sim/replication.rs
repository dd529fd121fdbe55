//! `ordain sim replication`: what replicas cost that are far apart.

use std::fmt::Write as _;
use std::path::PathBuf;

use ordain_sim::scale::Benchmark;
use ordain_sim::scale::replication::{csv, figure, judge, measure_replication, settings};
use ordain_sim::time::MILLISECOND;

use super::{costs_of, print};
use crate::output::Output;

/// What `ordain sim replication` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct ReplicationOptions {
    /// The folder for the figure, the table and the report
    #[arg(long)]
    pub output: PathBuf,
    /// Simulate clusters of so many partitions
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub partitions: u16,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Virtual milliseconds to measure in each run
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub milliseconds: u64,
    /// Calls per second and partition where the processors are not to be the limit
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    pub offered: u64,
    /// Calls that each partition's client keeps outstanding where those before are to be waited for, and not the distance
    #[arg(long, default_value_t = 32_768, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub outstanding: u64,
}

/// Simulates all settings and writes `points.csv`, `replication.svg` and `report.txt`.
///
/// # Errors
/// When the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &ReplicationOptions) -> Result<(), String> {
    let output = Output::create(&options.output)?;
    let costs = costs_of(options.costs.as_deref(), Benchmark::Micro)?;
    let all = settings(options.partitions, options.offered, options.outstanding);
    let mut points = Vec::new();
    for setting in &all {
        let point = measure_replication(setting, &costs, options.milliseconds * MILLISECOND);
        points.push(point.map_err(|error| format!("{setting:?}: {error}"))?);
        tracing::info!("{} of {} points", points.len(), all.len());
    }
    let notes = [format!(
        "Simulated: {} partitions, a core for each node, {} ms of virtual time; offered: {} calls/s for each partition; \
         saturated: {} calls outstanding for each.",
        options.partitions, options.milliseconds, options.offered, options.outstanding
    )];
    output.write("points.csv", &csv(&points))?;
    output.write("replication.svg", &figure(&points, &notes).svg())?;
    let mut report = String::new();
    for judgement in judge(&points) {
        let _ = writeln!(report, "{judgement}");
    }
    print(&report)?;
    output.write("report.txt", &report)
}
