//! What `ordain kill-test` can be told.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ordain::bench::options::{
    BankOptions, MicroOptions, ScaledTpccOptions, TpccMix, TpccOptions, TpccReads, WorkloadOptions,
};
use ordain::db::engine::EngineKind;
use ordain::db::sequencer::EpochPolicy;
use ordain::quantity::number_within;

use super::faults::FaultKind;
use super::network::Links;

/// Seconds that a test, a round or a gap may last.
const SECONDS: RangeInclusive<f64> = 0.1..=86_400.0;

/// Run a cluster of real processes on this machine, break it in every way that is allowed, and check that nothing that was
/// acknowledged is lost.
///
/// The cluster has 3 replicas of 2 partitions, with one process for each node. docs/kill-test.md explains the faults and the checks. The last line is a summary; the exit code is
/// 3 if something acknowledged was lost or a condition does not hold, and 1 if the test could not be run.
#[derive(Args, Clone, Debug)]
pub(crate) struct KillTestOptions {
    /// Seconds with faults, over all rounds.
    #[arg(long, default_value_t = 60.0, value_parser = number_within(SECONDS, "seconds"))]
    pub(crate) seconds: f64,
    /// Seconds with faults after which everything is checked, and a new cluster begins.
    #[arg(long, default_value_t = 60.0, value_parser = number_within(SECONDS, "seconds"))]
    pub(crate) round_seconds: f64,
    /// Seed of the faults and of the calls. Their timing is that of the machine, so that a seed does not repeat a run exactly.
    /// Default: a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// What the clients call. For the forms of TPC-C, every call that writes is looked for in the final state; for the
    /// others, the sums must fit.
    #[arg(long, value_enum, default_value_t = Load::Tpcc)]
    pub(crate) workload: Load,
    /// The engine of all nodes, one that executes an order: serial, calvin, calvin-vll or aloha.
    #[arg(long, default_value = "calvin", value_parser = ordered_engine)]
    pub(crate) engine: EngineKind,
    /// Who decides when epochs close: adaptive, managed or managed-strictly.
    #[arg(long, default_value = "adaptive")]
    pub(crate) epochs: EpochPolicy,
    /// The faults to choose from, separated by commas. Default: all.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FAULT")]
    pub(crate) faults: Vec<FaultKind>,
    /// What is between the processes, and can be cut.
    #[arg(long, value_enum, default_value_t = Links::Proxies)]
    pub(crate) links: Links,
    /// The longest time between the beginnings of two faults, in seconds.
    #[arg(long, default_value_t = 1.5, value_parser = number_within(0.01..=3_600.0, "seconds"))]
    pub(crate) pause: f64,
    /// Clients, each with one call under way; half of them at home in each partition.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(2..=512))]
    pub(crate) clients: u32,
    /// Calls per second that all clients together begin at most. It bounds how fast the data grows.
    #[arg(long, default_value_t = 800.0, value_parser = number_within(1.0..=1e6, "calls per second"))]
    pub(crate) rate: f64,
    /// Fail if calls stop for longer than this many seconds while every partition has a majority. Default: no limit but that
    /// calls must go on within a minute.
    #[arg(long, value_name = "SECONDS", value_parser = number_within(SECONDS, "seconds"))]
    pub(crate) gap_max: Option<f64>,
    /// Where the cluster's data and logs are: a directory that is empty or not there, and is left behind. Default: a temporary
    /// one, which is left behind after a failure only.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Where to write the throughput over time and around the kills, and the list of faults (CSV and SVG).
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// A workload with few rows, so that processes start fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Load {
    /// TPC-C-derived: New Orders and Payments.
    Tpcc,
    /// TPC-C-derived: all five transactions, those that only read over snapshots.
    TpccFull,
    /// New Orders of one warehouse that is spread over the partitions.
    ScaledTpcc,
    /// Transfers between accounts.
    Bank,
    /// Ten read-modify-writes.
    Micro,
}

impl Load {
    /// The workload's options.
    pub(crate) fn options(self) -> WorkloadOptions {
        match self {
            Load::Tpcc => {
                WorkloadOptions::Tpcc(TpccOptions { new_order_percent: Some(40.0), ..small_tpcc() })
            }
            Load::TpccFull => WorkloadOptions::Tpcc(TpccOptions {
                mix: Some(TpccMix::Full),
                reads: Some(TpccReads::Snapshot),
                ..small_tpcc()
            }),
            Load::ScaledTpcc => WorkloadOptions::ScaledTpcc(ScaledTpccOptions {
                districts_per_partition: 2,
                items: 200,
                customers: 30,
            }),
            Load::Bank => WorkloadOptions::Bank(BankOptions {
                accounts: 1_000,
                multi_partition_percent: 30.0,
                ..BankOptions::default()
            }),
            Load::Micro => WorkloadOptions::Micro(MicroOptions {
                records: 4_000,
                contention_index: 0.01,
                multi_partition_percent: 30.0,
                ..MicroOptions::default()
            }),
        }
    }
}

fn small_tpcc() -> TpccOptions {
    TpccOptions {
        warehouses: Some(4),
        mix: None,
        reads: None,
        deliveries: None,
        new_order_percent: None,
        remote_percent: Some(20.0),
        payment_remote_percent: 20.0,
        by_name_percent: None,
        functors: None,
        items: 200,
        customers: 30,
    }
}

/// Reads the name of an engine that can have replicas.
fn ordered_engine(name: &str) -> Result<EngineKind, String> {
    let engine: EngineKind = name.parse()?;
    match engine.is_ordered() {
        true => Ok(engine),
        false => Err(format!("{name} has no replicas: choose serial, calvin, calvin-vll or aloha")),
    }
}

impl KillTestOptions {
    /// The longest time between the beginnings of two faults.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_secs_f64(self.pause)
    }

    /// The time with faults of each round.
    pub(crate) fn rounds(&self) -> Vec<Duration> {
        let count = (self.seconds / self.round_seconds).ceil().max(1.0);
        vec![Duration::from_secs_f64(self.seconds / count); count as usize]
    }

    /// The faults to choose from.
    pub(crate) fn faults(&self) -> Vec<FaultKind> {
        if self.faults.is_empty() { FaultKind::value_variants().to_vec() } else { self.faults.clone() }
    }
}
