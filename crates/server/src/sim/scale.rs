//! `ordain sim scale`: the paper's scaling experiments on simulated clusters of up to 100 nodes.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ordain_sim::scale::experiment::{Effort, Hardware, Setting, measure, settings};
use ordain_sim::scale::shapes::judge;
use ordain_sim::scale::{Benchmark, csv, panels};
use ordain_sim::time::MILLISECOND;

use super::over_cores::over_cores;
use super::{benchmark_workload, costs_of, print};
use crate::bench::{self, options::RunOptions};
use crate::output::Output;
use crate::quantity::number_within;

/// Real runs of each cluster, of which the best counts.
const REAL_RUNS: usize = 3;

/// Records of the real microbenchmark, and warehouses of the real TPC-C, over all partitions: what costs are measured with.
const RECORDS: u64 = 1_000_000;
const WAREHOUSES: u32 = 10;

/// What `ordain sim scale` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct ScaleOptions {
    /// The folder for the figures, the table and the report
    #[arg(long)]
    pub output: PathBuf,
    /// Simulate clusters of up to so many nodes
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub nodes: u16,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Virtual milliseconds to measure at each point
    #[arg(long, default_value_t = Effort::default().time / MILLISECOND, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub milliseconds: u64,
    /// Calls that the client of each node keeps outstanding; of several the best counts
    #[arg(long, value_delimiter = ',', default_values_t = Effort::default().windows, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    pub windows: Vec<u64>,
    /// Run so many clusters at a time [default: the cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Seconds of each real run that is put beside a simulated one; 0 for none
    #[arg(long, default_value_t = 2.0, value_parser = number_within(0.0..=3_600.0, "seconds"))]
    pub real_seconds: f64,
}

/// Simulates all points and writes `points.csv`, the figures and `report.txt`.
///
/// # Errors
/// When the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &ScaleOptions) -> Result<(), String> {
    let output = Output::create(&options.output)?;
    let table = |workload| costs_of(options.costs.as_deref(), workload);
    let tables = [table(Benchmark::Micro)?, table(Benchmark::NewOrder)?];
    let table = |workload: Benchmark| &tables[usize::from(workload == Benchmark::NewOrder)];
    let effort = Effort {
        time: options.milliseconds * MILLISECOND,
        windows: options.windows.clone(),
        ..Effort::default()
    };
    let comparison = compare(options, &table, &effort)?;
    let all = settings(options.nodes);
    let points = over_cores(
        &all,
        options.jobs,
        |setting| u64::from(setting.nodes),
        |setting: &Setting| {
            let point = measure(setting, table(setting.workload), Hardware::MachineEach, &effort);
            point.map_err(|error| format!("{setting:?}: {error}"))
        },
    )?;
    output.write("points.csv", &csv::csv(&points))?;
    let windows: Vec<String> = effort.windows.iter().map(u64::to_string).collect();
    let notes = [format!(
        "Simulated: a core for each node, the best of {} calls outstanding at each, {} ms of virtual time.",
        windows.join(", "),
        options.milliseconds
    )];
    output.write("figure-4-new-order.svg", &panels::scaling(Benchmark::NewOrder, &points, &notes).svg())?;
    output.write("figure-5-micro.svg", &panels::scaling(Benchmark::Micro, &points, &notes).svg())?;
    output.write("figure-6-slowdown.svg", &panels::slowdown(&points, &notes).svg())?;
    let mut report = comparison;
    for judgement in judge(&points) {
        let _ = write!(report, "\n{judgement}");
    }
    print(&report)?;
    output.write("report.txt", &report)
}

/// Simulated and real throughput side by side, for clusters that this machine can run.
fn compare<'a>(
    options: &ScaleOptions,
    table: &impl Fn(Benchmark) -> &'a ordain_sim::machine::cost::CostTable,
    effort: &Effort,
) -> Result<String, String> {
    if options.real_seconds <= 0.0 {
        return Ok(String::new());
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u16;
    // As many calls outstanding as the real run has.
    let as_bench = Effort { windows: vec![1_024], ..effort.clone() };
    let mut text = format!(
        "Transactions per second of one process on this machine ({cores} cores), in virtual and in real time:\n{:<18}{:>11}{:>17}{:>12}{:>12}{:>9}\n",
        "workload", "partitions", "multi-partition", "simulated", "real", "error"
    );
    for workload in Benchmark::SCALING {
        for (nodes, percent) in [(1, 0.0), (2, 0.0), (2, 10.0), (2, 100.0)] {
            let contention_index = if workload == Benchmark::Micro { 0.0001 } else { 0.01 };
            let setting = Setting { workload, nodes, contention_index, multi_partition_percent: percent };
            let simulated = measure(&setting, table(workload), Hardware::Shared { cores }, &as_bench)
                .map_err(|error| error.to_string())?
                .throughput;
            let real = real_throughput(&setting, options.real_seconds)?;
            let error = (simulated / real - 1.0) * 100.0;
            let _ = writeln!(
                text,
                "{:<18}{nodes:>11}{percent:>16}%{simulated:>12.0}{real:>12.0}{error:>8.1}%",
                workload.name()
            );
        }
    }
    Ok(text)
}

/// The best of some real runs: what else the machine does only takes away.
fn real_throughput(setting: &Setting, seconds: f64) -> Result<f64, String> {
    let Setting { workload, nodes, multi_partition_percent, .. } = *setting;
    let workload = benchmark_workload(workload, nodes, multi_partition_percent, RECORDS, WAREHOUSES)?;
    let mut best: f64 = 0.0;
    for _ in 0..REAL_RUNS {
        let report = bench::measure(&RunOptions::closed_loop(nodes, seconds), &*workload)?;
        best = best.max(report.throughput_txn_s);
    }
    Ok(best)
}
