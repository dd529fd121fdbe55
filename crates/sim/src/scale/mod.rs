//! Scaling experiments: what is measured for clusters of many sizes, how it is written and drawn, and what the paper says
//! that it should look like.
//!
//! - [`ablation`]: what parts of `aloha` are good for.
//! - [`advice`]: any workload on one engine after the other, for `ordain advise`.
//! - [`aloha`]: `aloha` against `calvin`, as its paper compares them.
//! - [`bars`]: stacked bars in SVG.
//! - [`checkpoint`]: what a checkpoint costs while it is taken, and how far a frozen replica falls behind.
//! - [`cluster`]: what the clusters of all of them have in common.
//! - [`costs`](mod@costs): what the parts of a step cost, as measured, so that simulated throughput means something.
//! - [`Point`]: one run.
//! - [`csv`]: points as a table.
//! - [`dependent`]: transactions that must read to know what they touch, and latencies.
//! - [`evaluation`]: engines against each other, over contention, distribution and length of transactions.
//! - [`experiment`]: runs the points.
//! - [`figure`]: line charts in SVG; [`panels`] draws points in the way of the paper's figures.
//! - [`replication`]: what replicas cost that are far apart.
//! - [`slow_node`]: what one slow node does to the others, and throttling about it.
//! - [`shapes`]: the paper's statements, held against the points.

pub mod ablation;
pub mod advice;
pub mod aloha;
pub mod bars;
pub mod checkpoint;
mod cluster;
pub mod costs;
pub mod csv;
pub mod dependent;
pub mod evaluation;
pub mod experiment;
pub mod figure;
pub mod panels;
pub mod replication;
pub mod shapes;
pub mod slow_node;

pub use costs::{Costed, costs, costs_file, costs_from};

use ordain_workload::micro::Declare;

/// A workload of the experiments, whose transactions all cost alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Benchmark {
    /// The microbenchmark (Calvin §6.2).
    Micro,
    /// TPC-C, New Orders only (Calvin §6.1).
    NewOrder,
    /// TPC-C, Payments only, customers by number (Fan and Golab §V-A1).
    Payment,
    /// The microbenchmark that only adds, declared as arithmetic (Fan and Golab §V-A1; ALO-X11 e).
    AddsArithmetic,
    /// The same, declared as functors of the procedure's own.
    AddsOwn,
    /// The same, not declared.
    AddsWhole,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Benchmark; 6] = [
        Benchmark::Micro,
        Benchmark::NewOrder,
        Benchmark::Payment,
        Benchmark::AddsArithmetic,
        Benchmark::AddsOwn,
        Benchmark::AddsWhole,
    ];

    /// Those of the scaling experiments, of the paper on Calvin.
    pub const SCALING: [Benchmark; 2] = [Benchmark::Micro, Benchmark::NewOrder];

    /// The name in files and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Micro => "micro",
            Benchmark::NewOrder => "new-order",
            Benchmark::Payment => "payment",
            Benchmark::AddsArithmetic => "adds-arithmetic",
            Benchmark::AddsOwn => "adds-own",
            Benchmark::AddsWhole => "adds-whole",
        }
    }

    /// How the additions of the microbenchmark are declared; `None` for other workloads.
    pub fn adds(self) -> Option<Declare> {
        match self {
            Benchmark::Micro | Benchmark::NewOrder | Benchmark::Payment => None,
            Benchmark::AddsArithmetic => Some(Declare::Arithmetic),
            Benchmark::AddsOwn => Some(Declare::Own),
            Benchmark::AddsWhole => Some(Declare::Whole),
        }
    }

    /// The name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Benchmark::Micro => "Microbenchmark",
            Benchmark::NewOrder => "TPC-C New Order",
            Benchmark::Payment => "TPC-C Payment",
            Benchmark::AddsArithmetic => "Microbenchmark, additions as arithmetic",
            Benchmark::AddsOwn => "Microbenchmark, additions as functors of their own",
            Benchmark::AddsWhole => "Microbenchmark, additions as a whole",
        }
    }
}

impl std::str::FromStr for Benchmark {
    type Err = String;

    fn from_str(name: &str) -> Result<Benchmark, String> {
        Benchmark::ALL.into_iter().find(|workload| workload.name() == name).ok_or_else(|| {
            let names = Benchmark::ALL.map(Benchmark::name);
            format!("there is no experiment {name:?}: choose one of {}", names.join(", "))
        })
    }
}

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The workload.
    pub workload: Benchmark,
    /// Number of nodes.
    pub nodes: u16,
    /// Share of a node's contended records that one transaction updates (CAL-117). For [`Benchmark::NewOrder`] one over the
    /// districts of a node: 0.01 with 10 warehouses.
    pub contention_index: f64,
    /// Percentage of transactions that span nodes.
    pub multi_partition_percent: f64,
    /// Transactions per second of virtual time over all nodes, each counted once (CAL-114).
    pub throughput: f64,
    /// Median latency in microseconds of virtual time.
    pub latency_us_p50: u64,
    /// 99th percentile of the latency, in microseconds of virtual time.
    pub latency_us_p99: u64,
    /// Share of the measured time in which a node's core was busy, over all nodes, in percent.
    pub busy_percent: f64,
}

impl Point {
    /// Transactions per second and node.
    pub fn per_node(&self) -> f64 {
        self.throughput / f64::from(self.nodes.max(1))
    }
}
