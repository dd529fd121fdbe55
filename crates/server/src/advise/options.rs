//! What `ordain advise` can be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ordain_db::limits::PARTITIONS_MAX;
use ordain_sim::scale::advice::AdviceEffort;
use ordain_sim::time::MILLISECOND;

use super::Settings;
use crate::bench::options::{SECONDS, WorkloadOptions};
use crate::quantity::number_within;

/// How to find out which engine suits a workload.
#[derive(Args, Clone, Debug)]
pub struct AdviseOptions {
    /// Partitions of the real runs, each with a thread of its own, all in this process.
    #[arg(long, default_value_t = 2, global = true, value_parser = clap::value_parser!(u16).range(1..=PARTITIONS_MAX as i64))]
    pub partitions: u16,
    /// Nodes of the simulated cluster, each with a partition on a machine of its own: as many as are wanted. With 1 the real
    /// runs decide, with more the simulated ones.
    #[arg(long, default_value_t = 4, global = true, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub nodes: u16,
    /// Seconds of each real run, after a warm-up of a fifth of that (at most 2 seconds).
    #[arg(long, default_value_t = 2.0, global = true, value_parser = number_within(SECONDS, "seconds"))]
    pub seconds: f64,
    /// How often each engine is run for real, in turn.
    #[arg(long, default_value_t = 3, global = true, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub rounds: u16,
    /// Requests that are kept outstanding in the real runs, over all partitions. Default: 1024 per partition.
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: Option<u32>,
    /// Seed of the calls, the population and the simulation.
    #[arg(long, default_value_t = 1, global = true)]
    pub seed: u64,
    /// Virtual milliseconds of each simulated run; long transactions have four times as much.
    #[arg(long, default_value_t = AdviceEffort::default().time / MILLISECOND, global = true, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub milliseconds: u64,
    /// A file of costs that `ordain sim calibrate` wrote, for the simulation [default: the one in the binary]
    #[arg(long, global = true)]
    pub costs: Option<PathBuf>,
    /// What matters more.
    #[arg(long, value_enum, default_value_t = Preference::Throughput, global = true)]
    pub prefer: Preference,
    /// Take the calls from the log of this data directory, in the order in which they were made, instead of making them. The
    /// workload need only be named if the directory does not say it.
    #[arg(long, value_name = "DIR", global = true, conflicts_with_all = ["partitions", "nodes"])]
    pub sample: Option<PathBuf>,
    /// The folder for the tables (`simulated.csv`, `real.csv`) and the report (`report.txt`).
    #[arg(long, global = true)]
    pub output: Option<PathBuf>,
    /// What is called.
    #[command(subcommand)]
    pub workload: Option<WorkloadOptions>,
}

/// What matters more to whoever asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Preference {
    /// Transactions per second at full load.
    Throughput,
    /// The 99th percentile of latency at a light load, of engines with at least half of the best throughput.
    Latency,
}

impl AdviseOptions {
    /// How to run.
    pub fn settings(&self) -> Settings {
        let effort = AdviceEffort { time: self.milliseconds * MILLISECOND, ..AdviceEffort::default() };
        Settings {
            rounds: self.rounds,
            seconds: self.seconds,
            clients: self.clients,
            seed: self.seed,
            effort,
            preference: self.prefer,
        }
    }
}
