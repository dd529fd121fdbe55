//! `ordain sim slow-node`: what one slow node does to the others, and what throttling does about it.

use std::path::PathBuf;

use ordain_sim::scale::Benchmark;
use ordain_sim::scale::slow_node::{NODES, csv, figures, judge, measure_slow_node, settings, table};

use super::{costs_of, print};
use crate::output::Output;

/// What `ordain sim slow-node` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct SlowNodeOptions {
    /// The folder for the figures, the table and the report
    #[arg(long)]
    pub output: PathBuf,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Percentages of transactions that touch two partitions, with commas between
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5, 20, 50, 100], value_parser = clap::value_parser!(u8).range(0..=100))]
    pub multi_partition: Vec<u8>,
    /// How many times as slow the node becomes, in runs of their own beside those with 4 times; with commas between
    #[arg(long, value_delimiter = ',', default_values_t = [2, 8], value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub slower: Vec<u64>,
    /// Calls that each node's client makes in a second, with commas between; a node can do about 6,000 of them, so more is all that it
    /// can do
    #[arg(long, value_delimiter = ',', default_values_t = [4_000, 7_000], value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub offered: Vec<u64>,
}

/// Simulates all settings and writes `samples.csv`, the figures and `report.txt`.
///
/// # Errors
/// When the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &SlowNodeOptions) -> Result<(), String> {
    let output = Output::create(&options.output)?;
    let costs = costs_of(options.costs.as_deref(), Benchmark::Micro)?;
    let percents: Vec<f64> = options.multi_partition.iter().map(|percent| f64::from(*percent)).collect();
    let mut courses = Vec::new();
    for setting in settings(&percents, &options.slower, &options.offered) {
        let course = measure_slow_node(&setting, &costs);
        courses.push(course.map_err(|error| format!("{setting:?}: {error}"))?);
        tracing::info!("{} courses", courses.len());
    }
    output.write("samples.csv", &csv(&courses))?;
    let notes = format!("Simulated: {NODES} nodes with a core each, long transactions.");
    for (name, figure) in figures(&courses, &[notes]) {
        output.write(name, &figure.svg())?;
    }
    let judgements: Vec<String> = judge(&courses).iter().map(ToString::to_string).collect();
    let report = format!("{}\n{}\n", table(&courses), judgements.join("\n"));
    print(&report)?;
    output.write("report.txt", &report)
}
