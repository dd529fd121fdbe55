//! What `ordain bench` can be told.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ordain_db::engine::EngineKind;
use ordain_workload::{Workload, bank, micro, tpcc};
use serde::{Deserialize, Serialize};

use crate::process::ClusterOptions;

/// How to run a benchmark, whatever the workload.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// The engine: serial or calvin.
    #[arg(long, default_value = "calvin", global = true)]
    pub engine: EngineKind,
    /// Number of partitions, each with a thread of its own.
    #[arg(long, default_value_t = 1, global = true)]
    pub partitions: u16,
    /// Number of processes to spread the partitions over; 1 runs everything in this process.
    #[arg(long, default_value_t = 1, global = true)]
    pub processes: u16,
    /// Seconds to measure, after a warm-up of a fifth of that (at most 2 seconds).
    #[arg(long, default_value_t = 5.0, global = true)]
    pub seconds: f64,
    /// Run exactly this many transactions in one fixed order instead, so that the digest depends on the seed alone.
    #[arg(long, global = true, conflicts_with = "rate")]
    pub transactions: Option<u64>,
    /// Requests that are kept outstanding, over all partitions (closed loop). Default: 1024 per partition.
    #[arg(long, global = true, conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: Option<u32>,
    /// Requests per second to begin, however long they take (open loop); latency counts from the intended start.
    #[arg(long, global = true)]
    pub rate: Option<f64>,
    /// Seed of the calls and the population.
    #[arg(long, default_value_t = 1, global = true)]
    pub seed: u64,
    /// The number of sites that the generator thinks of when it picks local and remote keys. Default: the partitions.
    #[arg(long, global = true)]
    pub sites: Option<u16>,
    /// Length of an epoch in milliseconds.
    #[arg(long, default_value_t = 10.0, global = true)]
    pub epoch_milliseconds: f64,
    /// Write the result as one JSON object to a file, or to the standard output with "-".
    #[arg(long, global = true)]
    pub json: Option<PathBuf>,
    /// Seconds for which the limit is measured; 0 leaves it out.
    #[arg(long, default_value_t = 1.0, global = true)]
    pub limit_seconds: f64,
    /// Keep the data on disk: a call is answered when it is durable. In a temporary directory, unless --data-dir says where.
    #[arg(long, global = true)]
    pub durable: bool,
    /// Where to keep the data: a directory that is empty or not there. It is left behind.
    #[arg(long, value_name = "DIR", global = true, requires = "durable")]
    pub data_dir: Option<PathBuf>,
}

impl RunOptions {
    /// The cluster to run.
    pub fn cluster(&self) -> ClusterOptions {
        ClusterOptions {
            partitions: self.partitions,
            replicas: 1,
            engine: self.engine,
            epoch: Duration::from_secs_f64((self.epoch_milliseconds / 1e3).clamp(0.0, 1e6)),
        }
    }

    /// A closed loop against one process, on the `calvin` engine.
    pub(crate) fn closed_loop(partitions: u16, seconds: f64) -> RunOptions {
        RunOptions {
            engine: EngineKind::Calvin,
            partitions,
            processes: 1,
            seconds,
            transactions: None,
            clients: None,
            rate: None,
            seed: 1,
            sites: None,
            epoch_milliseconds: 10.0,
            json: None,
            limit_seconds: 0.0,
            durable: false,
            data_dir: None,
        }
    }

    /// Requests to keep outstanding over all partitions.
    pub fn outstanding(&self) -> u32 {
        self.clients.unwrap_or(1024 * u32::from(self.partitions)).max(1)
    }

    /// Checks what clap cannot.
    ///
    /// # Errors
    /// Says which option to change.
    pub fn check(&self) -> Result<(), String> {
        if !(0.001..=10_000.0).contains(&self.epoch_milliseconds) {
            return Err("--epoch-milliseconds must be between 0.001 and 10000".to_owned());
        }
        self.cluster().check()?;
        if self.processes == 0 || self.processes > self.partitions {
            return Err(format!(
                "--processes must be 1 to the number of partitions ({}), not {}",
                self.partitions, self.processes
            ));
        }
        if self.durable && self.processes > 1 {
            return Err("--durable measures one process: leave --processes out".to_owned());
        }
        if !(0.01..=86_400.0).contains(&self.seconds) {
            return Err("--seconds must be between 0.01 and 86400".to_owned());
        }
        if self.rate.is_some_and(|rate| !(0.1..=1e8).contains(&rate)) {
            return Err("--rate must be between 0.1 and 100000000 requests per second".to_owned());
        }
        if !(0.0..=3600.0).contains(&self.limit_seconds) {
            return Err("--limit-seconds must be between 0 and 3600".to_owned());
        }
        Ok(())
    }
}

/// A workload and its settings: on the command line, and in a cluster file.
#[derive(Subcommand, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadOptions {
    /// Ten read-modify-writes, one of a contended record at each participant (Calvin §6.2).
    Micro(MicroOptions),
    /// TPC-C-derived: New Order and Payment (Calvin §6.1).
    Tpcc(TpccOptions),
    /// Transfers between accounts; overdrafts abort.
    Bank(BankOptions),
}

/// Settings of `micro`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MicroOptions {
    /// Records, over all sites.
    #[arg(long, default_value_t = 1_000_000)]
    pub records: u64,
    /// Share of a site's contended records that one transaction updates: 1 is serial, 0.0001 is low contention.
    #[arg(long, default_value_t = 0.0001)]
    pub contention_index: f64,
    /// Percentage of transactions that span sites.
    #[arg(long = "multi-partition", value_name = "PERCENT", default_value_t = 0.0)]
    pub multi_partition_percent: f64,
    /// Sites that such a transaction spans.
    #[arg(long, default_value_t = 2)]
    pub participants: u16,
    /// Percentage of transactions whose constraint fails.
    #[arg(long, default_value_t = 0.0)]
    pub abort_percent: f64,
}

/// Settings of `tpcc`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TpccOptions {
    /// Warehouses. Default: one for each partition, at least 4.
    #[arg(long)]
    pub warehouses: Option<u32>,
    /// Percentage of New Orders with items from a warehouse on another partition.
    #[arg(long = "remote", value_name = "PERCENT", default_value_t = 10.0)]
    pub remote_percent: f64,
    /// Percentage of New Orders among the calls; the others are Payments.
    #[arg(long = "new-order", value_name = "PERCENT", default_value_t = 100.0)]
    pub new_order_percent: f64,
    /// Percentage of Payments for a customer of a warehouse on another partition.
    #[arg(long = "payment-remote", value_name = "PERCENT", default_value_t = 15.0)]
    pub payment_remote_percent: f64,
    /// Items, and stock rows of each warehouse (100,000 by the specification).
    #[arg(long, default_value_t = 100_000)]
    pub items: u32,
    /// Customers, and first orders, of each district (3,000 by the specification).
    #[arg(long, default_value_t = 3_000)]
    pub customers: u32,
}

/// Settings of `bank`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BankOptions {
    /// Accounts, over all sites.
    #[arg(long, default_value_t = 100_000)]
    pub accounts: u64,
    /// Percentage of transfers between sites.
    #[arg(long = "multi-partition", value_name = "PERCENT", default_value_t = 10.0)]
    pub multi_partition_percent: f64,
    /// The balance of each account at first.
    #[arg(long, default_value_t = 100_000)]
    pub balance: i64,
}

impl Default for MicroOptions {
    fn default() -> MicroOptions {
        let own = micro::Options::default();
        MicroOptions {
            records: own.records,
            contention_index: own.contention_index,
            multi_partition_percent: 0.0,
            participants: own.participants,
            abort_percent: own.abort_percent,
        }
    }
}

impl Default for TpccOptions {
    fn default() -> TpccOptions {
        let own = tpcc::Options::default();
        TpccOptions {
            warehouses: None,
            remote_percent: own.remote_percent,
            new_order_percent: own.new_order_percent,
            payment_remote_percent: own.payment_remote_percent,
            items: own.items,
            customers: own.customers_per_district,
        }
    }
}

impl Default for BankOptions {
    fn default() -> BankOptions {
        let own = bank::Options::default();
        BankOptions {
            accounts: own.accounts,
            multi_partition_percent: own.multi_partition_percent,
            balance: own.balance,
        }
    }
}

impl WorkloadOptions {
    /// Makes the workload for a cluster; the same options make the same rows in every process.
    ///
    /// # Errors
    /// When an option is out of range.
    pub fn workload(
        &self,
        partitions: u16,
        sites: Option<u16>,
        seed: u64,
    ) -> Result<Box<dyn Workload>, String> {
        let sites = sites.unwrap_or(partitions);
        let wrong = |error: ordain_db::error::Error| error.to_string();
        Ok(match self {
            WorkloadOptions::Micro(options) => Box::new(
                micro::Micro::new(micro::Options {
                    seed,
                    sites,
                    records: options.records,
                    contention_index: options.contention_index,
                    multi_partition_percent: options.multi_partition_percent,
                    participants: options.participants,
                    abort_percent: options.abort_percent,
                    ..micro::Options::default()
                })
                .map_err(wrong)?,
            ),
            WorkloadOptions::Tpcc(options) => Box::new(
                tpcc::Tpcc::new(tpcc::Options {
                    seed,
                    sites,
                    warehouses: options.warehouses.unwrap_or_else(|| u32::from(sites).max(4)),
                    remote_percent: options.remote_percent,
                    new_order_percent: options.new_order_percent,
                    payment_remote_percent: options.payment_remote_percent,
                    items: options.items,
                    customers_per_district: options.customers,
                    orders_per_district: options.customers,
                    ..tpcc::Options::default()
                })
                .map_err(wrong)?,
            ),
            WorkloadOptions::Bank(options) => Box::new(
                bank::Bank::new(bank::Options {
                    sites,
                    accounts: options.accounts,
                    balance: options.balance,
                    multi_partition_percent: options.multi_partition_percent,
                    ..bank::Options::default()
                })
                .map_err(wrong)?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(subcommand)]
        workload: WorkloadOptions,
    }

    #[test]
    fn the_command_line_and_the_cluster_file_have_the_same_defaults() {
        for name in ["micro", "tpcc", "bank"] {
            let from_command_line = CommandLine::parse_from(["ordain", name]).workload;
            let from_file: WorkloadOptions = toml::from_str(&format!("name = {name:?}")).unwrap();
            assert_eq!(from_command_line, from_file);
        }
    }
}
