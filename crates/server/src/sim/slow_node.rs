//! `ordain sim slow-node`: what one slow node does to the others, and what throttling does about it.

use std::path::PathBuf;

use ordain_sim::machine::cost::LONG_WORK;
use ordain_sim::scale::Benchmark;
use ordain_sim::scale::slow_node::{
    FACTOR, NODES, SlowNodeSetting, csv, figure, judge, measure_slow_node, table,
};

use super::{costs_of, print};
use crate::output::Output;

/// What `ordain sim slow-node` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct SlowNodeOptions {
    /// The folder for the figure, the table and the report
    #[arg(long)]
    pub output: PathBuf,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Percentages of transactions that touch two partitions
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5, 20], value_parser = clap::value_parser!(u8).range(0..=100))]
    pub multi_partition: Vec<u8>,
    /// Calls that each node's client makes in a second; a node can do about 6,000 of them
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub offered: u64,
}

/// Simulates all settings and writes `samples.csv`, `slow-node.svg` and `report.txt`.
///
/// # Errors
/// When the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &SlowNodeOptions) -> Result<(), String> {
    let output = Output::create(&options.output)?;
    let costs = costs_of(options.costs.as_deref(), Benchmark::Micro)?;
    let costs = costs.with_work(10 * LONG_WORK);
    let mut courses = Vec::new();
    for throttles in [false, true] {
        for percent in &options.multi_partition {
            let multi_partition_percent = f64::from(*percent);
            let setting = SlowNodeSetting { multi_partition_percent, throttles, offered: options.offered };
            let course = measure_slow_node(&setting, &costs);
            courses.push(course.map_err(|error| format!("{setting:?}: {error}"))?);
        }
    }
    output.write("samples.csv", &csv(&courses))?;
    let notes = format!(
        "Simulated: {NODES} nodes with a core each, long transactions, {} calls/s offered to each; one node becomes {FACTOR} times \
         as slow.",
        options.offered
    );
    output.write("slow-node.svg", &figure(&courses, &[notes]).svg())?;
    let judgements: Vec<String> = judge(&courses).iter().map(ToString::to_string).collect();
    let report = format!("{}\n{}\n", table(&courses), judgements.join("\n"));
    print(&report)?;
    output.write("report.txt", &report)
}
