//! `ordain sim dependent`: transactions that must read to know what they touch, and latencies, for real where this machine suffices,
//! and simulated beyond.

mod real;
mod statements;

use std::fmt::Write as _;
use std::path::PathBuf;

use ordain_sim::scale::Benchmark;
use ordain_sim::scale::dependent::latency::{SHARE, VOLATILITY, latency_settings, measure_latency};
use ordain_sim::scale::dependent::{
    DependentEffort, ENTRIES, NODES, csv, figure, judge, latencies_csv, latency_figure, measure_dependent,
    settings, table,
};
use ordain_sim::time::MILLISECOND;

use super::real::RealOptions;
use super::{costs_of, print};
use crate::output::Output;

/// How many times as long latencies are measured as throughput: their tails need many calls.
const LATENCY_TIMES: u64 = 4;

/// What `ordain sim dependent` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct DependentOptions {
    /// The folder for the figures, the tables and the report
    #[arg(long)]
    pub output: PathBuf,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Virtual milliseconds to measure in each run; latencies are measured four times as long
    #[arg(long, default_value_t = DependentEffort::default().time / MILLISECOND, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub milliseconds: u64,
    /// What is run for real
    #[command(flatten)]
    pub real: RealOptions,
    /// Simulate nothing, and leave what was simulated before as it is
    #[arg(long)]
    pub real_only: bool,
}

/// Runs for real and writes `real.json`, `real.csv`, `real.txt` and figures; then simulates all settings and writes `points.csv`,
/// `latencies.csv`, the figures and `report.txt`.
///
/// # Errors
/// When a real run fails, the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &DependentOptions) -> Result<(), String> {
    options.real.check(options.real_only)?;
    let output = Output::create(&options.output)?;
    // Real runs come first, while nothing else keeps the machine busy.
    if options.real.rounds > 0 {
        run_for_real(&options.real, &output)?;
    }
    if options.real_only { Ok(()) } else { simulate(options, &output) }
}

fn run_for_real(options: &RealOptions, output: &Output) -> Result<(), String> {
    let measured = real::measure(options)?;
    let points = real::Points::new(real::Setting::all(), &measured);
    output.write("real-figure-6-dependent.svg", &real::figure(&points, options).svg())?;
    output.write("real-figure-7-latency.svg", &real::latencies(&measured, options).svg())?;
    let (note, judgements) = (options.note(&real::load()), statements::judge(&points));
    super::real::write(output, &measured, &note, (real::COLUMNS, &real::columns()), &judgements)
}

fn simulate(options: &DependentOptions, output: &Output) -> Result<(), String> {
    let costs = costs_of(options.costs.as_deref(), Benchmark::Micro)?;
    let effort = DependentEffort { time: options.milliseconds * MILLISECOND, ..DependentEffort::default() };
    let (all, mut points) = (settings(), Vec::new());
    for setting in &all {
        let point = measure_dependent(setting, &costs, &effort);
        points.push(point.map_err(|error| format!("{setting:?}: {error}"))?);
        tracing::info!("{} of {} points", points.len(), all.len());
    }
    let mut latencies = Vec::new();
    for setting in latency_settings() {
        let run = measure_latency(&setting, &costs, effort.warm_up, LATENCY_TIMES * effort.time);
        latencies.push(run.map_err(|error| format!("{setting:?}: {error}"))?);
    }
    output.write("points.csv", &csv(&points))?;
    output.write("latencies.csv", &latencies_csv(&latencies))?;
    output.write("figure-6-dependent.svg", &figure(&points, &[notes(&effort)]).svg())?;
    let calls = format!(
        "Simulated: {NODES} nodes with a core each, long transactions, of which {SHARE} % touch two nodes and {SHARE} % are \
         dependent; each of {ENTRIES} index entries of a node is updated {VOLATILITY} times a second; {} ms of virtual time.",
        LATENCY_TIMES * options.milliseconds
    );
    output.write("figure-7-latency.svg", &latency_figure(&latencies, &[calls]).svg())?;
    let mut report = format!("{}\n", table(&points));
    for judgement in judge(&points, &latencies) {
        // Writing to a string cannot fail.
        let _ = writeln!(report, "{judgement}");
    }
    print(&report)?;
    output.write("report.txt", &report)
}

fn notes(effort: &DependentEffort) -> String {
    let windows: Vec<String> = effort.windows.iter().map(u64::to_string).collect();
    format!(
        "Simulated: {NODES} nodes with a core each, no disks, long transactions at low contention; {ENTRIES} index entries at each \
         node, each updated as often in a second as its volatility says, on the same cores; the best of {} calls outstanding at \
         each node; {} ms of virtual time.",
        windows.join(", "),
        effort.time / MILLISECOND
    )
}
