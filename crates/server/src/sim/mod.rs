//! `ordain sim`: what the simulator needs of the real world.
//!
//! - [`aloha`]: the experiments of the paper on functors.
//! - [`calibrate`]: measures what the parts of a node's step cost on this machine.
//! - [`checkpoint`]: what a checkpoint costs while it is taken, over time.
//! - [`dependent`]: transactions that must read to know what they touch, and latencies.
//! - [`evaluation`]: deterministic and classical execution against each other.
//! - [`options`]: the command line.
//! - [`over_cores`](mod@over_cores): runs independent simulations over the cores.
//! - [`real`]: real runs beside the simulated ones, on this machine.
//! - [`replication`]: what replicas cost that are far apart.
//! - [`scale`]: the paper's experiments on up to 100 nodes.
//! - [`seeds`]: runs seeds over the cores.
//! - [`slow_node`]: what one slow node does to the others, and what throttling does about it.
//! - [`steps`]: steps real nodes in one thread and times each step.
//! - [`study`]: the experiments of [`evaluation`], [`dependent`] and [`slow_node`] after one another.

pub mod aloha;
pub mod calibrate;
pub mod checkpoint;
pub mod dependent;
pub mod evaluation;
pub mod options;
pub mod over_cores;
pub mod real;
pub mod replication;
pub mod scale;
pub mod seeds;
pub mod slow_node;
pub mod steps;
pub mod study;

use std::io::Write as _;
use std::path::Path;

use ordain_db::engine::EngineKind;
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
        Benchmark::Micro | Benchmark::AddsArithmetic | Benchmark::AddsOwn | Benchmark::AddsWhole => {
            let options = micro::Options {
                sites: partitions,
                records,
                multi_partition_percent,
                adds: benchmark.adds(),
                ..micro::Options::default()
            };
            Box::new(micro::Micro::new(options).map_err(wrong)?)
        }
        Benchmark::NewOrder | Benchmark::Payment => {
            let new_orders = if benchmark == Benchmark::NewOrder { 100.0 } else { 0.0 };
            let options = tpcc::Options {
                sites: partitions,
                warehouses,
                mix: tpcc::Mix::NewOrderPayment(new_orders),
                remote: tpcc::Remote::Orders(multi_partition_percent),
                payment_remote_percent: multi_partition_percent,
                by_name_percent: 0.0,
                ..tpcc::Options::default()
            };
            Box::new(tpcc::Tpcc::new(options).map_err(wrong)?)
        }
    })
}

/// The costs of `calvin` in a file that `ordain sim calibrate` wrote; those in the binary, if none is named.
pub(crate) fn costs_of(file: Option<&Path>, benchmark: Benchmark) -> Result<CostTable, String> {
    let Some(path) = file else { return Ok(costs(benchmark)) };
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    costs_from(&text, (EngineKind::Calvin, benchmark))
}

pub(crate) fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}
