//! `ordain sim`: what the simulator needs of the real world.
//!
//! - [`calibrate`]: measures what the parts of a node's step cost on this machine.
//! - [`checkpoint`]: what a checkpoint costs while it is taken, over time.
//! - [`dependent`]: transactions that must read to know what they touch, and latencies.
//! - [`evaluation`]: deterministic and classical execution against each other.
//! - [`options`]: the command line.
//! - [`replication`]: what replicas cost that are far apart.
//! - [`scale`]: the paper's experiments on up to 100 nodes.
//! - [`seeds`]: runs seeds over the cores.
//! - [`slow_node`]: what one slow node does to the others, and what throttling does about it.
//! - [`steps`]: steps real nodes in one thread and times each step.

pub mod calibrate;
pub mod checkpoint;
pub mod dependent;
pub mod evaluation;
pub mod options;
pub mod replication;
pub mod scale;
pub mod seeds;
pub mod slow_node;
pub mod steps;

use std::io::Write as _;
use std::path::Path;

use ordain_sim::machine::cost::CostTable;
use ordain_sim::scale::{Benchmark, costs, costs_from};
use ordain_workload::{Workload, micro, tpcc};

/// A workload of the scaling experiments in its real size.
fn benchmark_workload(
    benchmark: Benchmark,
    partitions: u16,
    multi_partition_percent: f64,
    records: u64,
    warehouses: u32,
) -> Result<Box<dyn Workload>, String> {
    let wrong = |error: ordain_db::error::Error| error.to_string();
    Ok(match benchmark {
        Benchmark::Micro => Box::new(
            micro::Micro::new(micro::Options {
                sites: partitions,
                records,
                multi_partition_percent,
                ..micro::Options::default()
            })
            .map_err(wrong)?,
        ),
        Benchmark::NewOrder => Box::new(
            tpcc::Tpcc::new(tpcc::Options {
                sites: partitions,
                warehouses,
                remote: tpcc::Remote::Orders(multi_partition_percent),
                ..tpcc::Options::default()
            })
            .map_err(wrong)?,
        ),
    })
}

/// The costs of a file that `ordain sim calibrate` wrote; those in the binary, if none is named.
pub(crate) fn costs_of(file: Option<&Path>, benchmark: Benchmark) -> Result<CostTable, String> {
    let Some(path) = file else { return Ok(costs(benchmark)) };
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    costs_from(&text, benchmark)
}

pub(crate) fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}
