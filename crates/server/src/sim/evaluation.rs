//! `ordain sim evaluation`: deterministic and classical execution against each other, for real where this machine suffices, and
//! simulated beyond.

mod locking;
mod real;
mod statements;

use std::fmt::Write as _;
use std::path::PathBuf;

use ordain_sim::network::latency::Latency;
use ordain_sim::scale::Benchmark;
use ordain_sim::scale::evaluation::breakdown::{bars, measure_longer};
use ordain_sim::scale::evaluation::{
    EvaluationEffort, EvaluationPoint, csv, figures, judge, measure_evaluation, settings, tpcc,
};
use ordain_sim::scale::shapes::Judgement;
use ordain_sim::time::{MICROSECOND, MILLISECOND};

use super::real::RealOptions;
use super::{costs_of, print};
use crate::output::Output;

/// What `ordain sim evaluation` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct EvaluationOptions {
    /// The folder for the figures, the table and the report
    #[arg(long)]
    pub output: PathBuf,
    /// Simulate clusters of so many nodes, where their number does not vary
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(4..=48))]
    pub nodes: u16,
    /// Simulate clusters of up to so many nodes, where their number varies
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u16).range(2..=48))]
    pub nodes_max: u16,
    /// Simulate clusters of so many nodes with TPC-C
    #[arg(long, default_value_t = tpcc::NODES, value_parser = clap::value_parser!(u16).range(2..=16))]
    pub tpcc_nodes: u16,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// How many microseconds a message is on its way at least, as over a long distance [default: 100 to 300, as in a hall]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub one_way_microseconds: Option<u64>,
    /// Virtual milliseconds to measure in each run with long transactions; those with short ones take a quarter
    #[arg(long, default_value_t = EvaluationEffort::default().time / MILLISECOND, value_parser = clap::value_parser!(u64).range(4..=60_000))]
    pub milliseconds: u64,
    /// What is run for real
    #[command(flatten)]
    pub real: RealOptions,
    /// Simulate nothing, and leave what was simulated before as it is
    #[arg(long)]
    pub real_only: bool,
    /// Measure what locks cost with each lock manager, which takes three seconds, and nothing else
    #[arg(long, conflicts_with = "real_only")]
    pub locks_only: bool,
}

/// Runs for real and writes `locking.csv`, `real.json`, `real.csv`, `real.txt` and figures; then simulates all settings and writes
/// `points.csv`, `tpcc.csv`, the figures and `report.txt`.
///
/// # Errors
/// When a real run fails, the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &EvaluationOptions) -> Result<(), String> {
    options.real.check(options.real_only)?;
    let output = Output::create(&options.output)?;
    if options.locks_only {
        return print(&format!("{}\n", measure_locks(&output)?));
    }
    // Real runs come first, while nothing else keeps the machine busy.
    if options.real.rounds > 0 {
        run_for_real(&options.real, &output)?;
    }
    if options.real_only { Ok(()) } else { simulate(options, &output) }
}

fn run_for_real(options: &RealOptions, output: &Output) -> Result<(), String> {
    let of_locks = measure_locks(output)?;
    let measured = real::measure(options)?;
    let points = real::Points::new(real::Setting::all(), &measured);
    for (name, figure) in real::figures(&points, options) {
        output.write(name, &figure.svg())?;
    }
    let mut judgements = statements::judge(&points);
    judgements.push(of_locks);
    let note = options.note(&real::load());
    super::real::write(output, &measured, &note, (real::COLUMNS, &real::columns()), &judgements)
}

/// Measures what locks cost and writes `locking.csv` and a figure.
fn measure_locks(output: &Output) -> Result<Judgement, String> {
    let locks = locking::measure()?;
    output.write("locking.csv", &locking::csv(&locks))?;
    output.write("figure-locking.svg", &locking::bars(&locks).svg())?;
    Ok(locking::judge(&locks))
}

fn simulate(options: &EvaluationOptions, output: &Output) -> Result<(), String> {
    let costs = costs_of(options.costs.as_deref(), Benchmark::Micro)?;
    let usual = EvaluationEffort::default();
    let distant = |one_way| Latency::distant(one_way * MICROSECOND);
    let latency = options.one_way_microseconds.map_or(usual.latency, distant);
    let effort = EvaluationEffort { time: options.milliseconds * MILLISECOND, latency, ..usual };
    let all = settings(options.nodes, options.nodes_max);
    let mut points: Vec<EvaluationPoint> = Vec::new();
    for setting in &all {
        let point = measure_evaluation(setting, &costs, &effort);
        points.push(point.map_err(|error| format!("{setting:?}: {error}"))?);
        tracing::info!("{} of {} points", points.len(), all.len());
    }
    measure_longer(&mut points, options.nodes, &costs, &effort).map_err(|error| error.to_string())?;
    tracing::info!("the pairs with and without distributed deadlocks are measured");
    let tpcc_points = run_tpcc(options, &effort)?;
    output.write("points.csv", &csv(&points))?;
    for (name, figure) in figures(&points, options.nodes, &[notes(options, &effort)]) {
        output.write(name, &figure.svg())?;
    }
    output.write("figure-2-time.svg", &bars(&points, options.nodes, &[notes(options, &effort)]).svg())?;
    output.write("tpcc.csv", &tpcc::csv(&tpcc_points))?;
    let of_tpcc = format!("{} nodes with {} warehouses each.", options.tpcc_nodes, tpcc::WAREHOUSES);
    let figure_4 = tpcc::figure(&tpcc_points, &[of_tpcc, notes(options, &effort)]);
    output.write("figure-4-tpcc.svg", &figure_4.svg())?;
    let mut report = String::new();
    for judgement in judge(&points, options.nodes).into_iter().chain(tpcc::judge(&tpcc_points)) {
        // Writing to a string cannot fail.
        let _ = writeln!(report, "{judgement}");
    }
    print(&report)?;
    output.write("report.txt", &report)
}

fn run_tpcc(options: &EvaluationOptions, effort: &EvaluationEffort) -> Result<Vec<tpcc::TpccPoint>, String> {
    let costs = costs_of(options.costs.as_deref(), Benchmark::NewOrder)?;
    let all = tpcc::settings(options.tpcc_nodes);
    let mut points = Vec::new();
    for setting in &all {
        let point = tpcc::measure_tpcc(setting, &costs, effort);
        points.push(point.map_err(|error| format!("{setting:?}: {error}"))?);
        tracing::info!("{} of {} points of TPC-C", points.len(), all.len());
    }
    Ok(points)
}

fn notes(options: &EvaluationOptions, effort: &EvaluationEffort) -> String {
    let windows = |windows: &[u64]| windows.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "Simulated: {} nodes where their number does not vary, a core for each, no disks, messages that take {} to {} us one way; the best of {} calls outstanding at each \
         node with short transactions, of {} with long ones; {} ms of virtual time, a quarter with short ones, and 50 times as \
         long where runs with and without distributed deadlocks are compared. \
         two-phase-without-commit-protocol is a bound and no database: it is not ACID.",
        options.nodes,
        effort.latency.minimum / MICROSECOND,
        (effort.latency.minimum + effort.latency.spread) / MICROSECOND,
        windows(&effort.windows_short),
        windows(&effort.windows_long),
        options.milliseconds
    )
}
