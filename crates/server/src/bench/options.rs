//! What `ordain bench` can be told.

mod micro;
mod scaled_tpcc;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::error::Error;
use ordain_db::limits::PARTITIONS_MAX;
use ordain_db::sequencer::EpochPolicy;
use ordain_workload::{Mode, Part, Workload, bank, tpcc, ycsb};
use serde::{Deserialize, Serialize};

use super::drive::Answer;
use crate::process::ClusterOptions;
use crate::quantity::{EPOCH_MILLISECONDS, LOCK_WAIT_MILLISECONDS, number_within, seconds};
use crate::sql::workload::SqlWorkload;

pub use self::micro::{MicroAdds, MicroOptions};
pub use scaled_tpcc::ScaledTpccOptions;

/// Seconds that a benchmark may measure.
pub const SECONDS: RangeInclusive<f64> = 0.01..=86_400.0;

/// How to run a benchmark, whatever the workload.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// The engine: serial, calvin, calvin-vll, aloha, two-phase, or two-phase-without-commit-protocol, which is no database.
    #[arg(long, default_value = "calvin", global = true)]
    pub engine: EngineKind,
    /// Number of partitions, each with a thread of its own.
    #[arg(long, default_value_t = 1, global = true, value_parser = clap::value_parser!(u16).range(1..=PARTITIONS_MAX as i64))]
    pub partitions: u16,
    /// Number of processes to spread the partitions over; 1 runs everything in this process.
    #[arg(long, default_value_t = 1, global = true)]
    pub processes: u16,
    /// Seconds to measure, after a warm-up of a fifth of that (at most 2 seconds).
    #[arg(long, default_value_t = 5.0, global = true, value_parser = number_within(SECONDS, "seconds"))]
    pub seconds: f64,
    /// Run exactly this many transactions in one fixed order instead, so that the digest depends on the seed alone.
    #[arg(long, global = true, conflicts_with = "rate", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// Requests that are kept outstanding, over all partitions (closed loop). Default: 1024 per partition.
    #[arg(long, global = true, conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: Option<u32>,
    /// Requests per second to begin, however long they take (open loop); latency counts from the intended start.
    #[arg(long, global = true, value_parser = number_within(0.1..=1e8, "requests per second"))]
    pub rate: Option<f64>,
    /// When a call is answered: when it has its place in the order, or when it is computed. In the first case its client goes on,
    /// and asks for the outcome.
    #[arg(long, value_enum, default_value_t = Answer::Computed, global = true)]
    pub answer: Answer,
    /// Seed of the calls and the population.
    #[arg(long, default_value_t = 1, global = true)]
    pub seed: u64,
    /// The number of sites that the generator thinks of when it picks local and remote keys. Default: the partitions.
    #[arg(long, global = true)]
    pub sites: Option<u16>,
    /// Length of an epoch in milliseconds. Default: 10, with an epoch manager 25.
    #[arg(long, global = true, value_parser = number_within(EPOCH_MILLISECONDS, "milliseconds"))]
    pub epoch_milliseconds: Option<f64>,
    /// Who decides when epochs close: adaptive is each partition by its work; managed is an epoch manager that grants and revokes
    /// (Fan and Golab); managed-strictly is the same, where nothing starts between two periods.
    #[arg(long, default_value = "adaptive", global = true)]
    pub epochs: EpochPolicy,
    /// How long a transaction of the engine two-phase waits for locks of a partition before it begins again. Default: as long as
    /// no deadlock is found.
    #[arg(long, global = true, value_parser = number_within(LOCK_WAIT_MILLISECONDS, "milliseconds"))]
    pub lock_wait_milliseconds: Option<f64>,
    /// When a transaction of the engine two-phase asks for its locks: together is for all that it declares at once; in-order is one
    /// partition after the other; as-it-goes is for each row when it touches it first.
    #[arg(long, default_value_t, global = true)]
    pub locks: LockRequests,
    /// Begin transactions of the engine two-phase also while over half of those that hold or ask for locks at a partition wait.
    #[arg(long, global = true)]
    pub without_load_control: bool,
    /// Let nodes take on less where they lag behind the others: few calls wait in the order, and others are shed
    #[arg(long, global = true)]
    pub throttle: bool,
    /// Write the result as one JSON object to a file, or to the standard output with "-".
    #[arg(long, global = true)]
    pub json: Option<PathBuf>,
    /// Seconds for which the limit is measured; 0 leaves it out.
    #[arg(long, default_value_t = 1.0, global = true, value_parser = number_within(0.0..=3_600.0, "seconds"))]
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
            epoch: self.epoch(),
            epochs: self.epochs,
            lock_wait: self.lock_wait_milliseconds.map(|wait| seconds(wait / 1e3)),
            locks: self.locks,
            load_control: !self.without_load_control,
            throttle: self.throttle,
        }
    }

    /// The length of an epoch.
    pub fn epoch(&self) -> Duration {
        let usual = Duration::from_micros(self.epochs.default_microseconds());
        self.epoch_milliseconds.map_or(usual, |milliseconds| seconds(milliseconds / 1e3))
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
            answer: Answer::Computed,
            seed: 1,
            sites: None,
            epoch_milliseconds: None,
            epochs: EpochPolicy::default(),
            lock_wait_milliseconds: None,
            locks: LockRequests::default(),
            without_load_control: false,
            throttle: false,
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

    /// Checks that the workload can be run so.
    ///
    /// # Errors
    /// When one fixed order is asked for, and the workload makes calls in the background, at times of their own.
    pub(crate) fn check_calls(&self, workload: &dyn Workload) -> Result<(), String> {
        let background = workload.background(self.seed, 0, Part::WHOLE).map_err(|error| error.to_string())?;
        match (self.transactions, background) {
            (Some(_), Some(_)) => Err(
                "--transactions has one fixed order, and the updates of an index come at times of their own: leave --volatility \
                 or --transactions out"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Checks what clap cannot.
    ///
    /// # Errors
    /// Says which option to change.
    pub fn check(&self) -> Result<(), String> {
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
        if self.answer == Answer::Ordered && !self.engine.is_ordered() {
            let engine = self.engine.name();
            return Err(format!(
                "--answer ordered needs an order, and {engine} has none: choose another engine"
            ));
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
    /// TPC-C-derived: New Order and Payment (Calvin §6.1), or with `--mix full` all five transactions.
    Tpcc(TpccOptions),
    /// New Orders of one warehouse that is spread over all partitions, by district and by item (Fan and Golab §V-A1).
    ScaledTpcc(ScaledTpccOptions),
    /// Transfers between accounts; overdrafts abort.
    Bank(BankOptions),
    /// One of the six core mixes of YCSB; a transaction does its operation with one row or with several.
    Ycsb(YcsbOptions),
    /// Tables that clients make with SQL. None at first, and no calls to measure.
    Sql,
}

/// Settings of `tpcc`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TpccOptions {
    /// Warehouses. Default: one for each partition, at least 4.
    #[arg(long)]
    pub warehouses: Option<u32>,
    /// The transactions that are called. Default: New Orders, as many percent as --new-order says, and Payments.
    #[arg(long, value_enum, conflicts_with = "new_order_percent")]
    pub mix: Option<TpccMix>,
    /// How Order-Status and Stock-Level are called in the full mix. Default: in the order.
    #[arg(long, value_enum)]
    pub reads: Option<TpccReads>,
    /// How the keys of Deliveries are known in the full mix. Default: they depend on data.
    #[arg(long, value_enum)]
    pub deliveries: Option<TpccDeliveries>,
    /// Percentage of New Orders with items from a warehouse on another partition. Default: 10; in the full mix 1% of lines.
    #[arg(long = "remote", value_name = "PERCENT")]
    pub remote_percent: Option<f64>,
    /// Percentage of New Orders among the calls; the others are Payments. Default: 100.
    #[arg(long = "new-order", value_name = "PERCENT")]
    pub new_order_percent: Option<f64>,
    /// Percentage of Payments for a customer of a warehouse on another partition.
    #[arg(long = "payment-remote", value_name = "PERCENT", default_value_t = 15.0)]
    pub payment_remote_percent: f64,
    /// Percentage of Payments and Order-Statuses that name the customer by last name; the papers' Payments never do.
    // Written only where it is given: data that was made before it could be keeps its fingerprint.
    #[arg(long = "by-name", value_name = "PERCENT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_name_percent: Option<f64>,
    /// Whether New Orders and Payments declare functors, or are run as a whole by every engine. Default: on.
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functors: Option<TpccFunctors>,
    /// Items, and stock rows of each warehouse (100,000 by the specification).
    #[arg(long, default_value_t = 100_000)]
    pub items: u32,
    /// Customers, and first orders, of each district (3,000 by the specification).
    #[arg(long, default_value_t = 3_000)]
    pub customers: u32,
}

/// The most items, and the most customers of a district.
const TPCC_ROWS_MAX: u32 = 1_000_000;

/// Checks what both forms of TPC-C have, by the names that it has here.
fn check_rows(workload: &str, items: u32, customers: u32) -> Result<(), String> {
    for (option, value) in [("items", items), ("customers", customers)] {
        if !(1..=TPCC_ROWS_MAX).contains(&value) {
            return Err(format!("{workload}: {option} is {value}: give 1 to {TPCC_ROWS_MAX}"));
        }
    }
    Ok(())
}

/// The transactions of `tpcc` that are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TpccMix {
    /// New Orders alone (Calvin §6.1).
    NewOrder,
    /// As many New Orders as Payments (Ren et al. §3.4).
    #[value(name = "new-order+payment")]
    #[serde(rename = "new-order+payment")]
    NewOrderPayment,
    /// 45% New Orders, 43% Payments, and 4% each of Order-Status, Delivery and Stock-Level, as the specification has them.
    Full,
}

/// How transactions of `tpcc` that only read are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TpccReads {
    /// As transactions, with a place in the order.
    Ordered,
    /// Over a snapshot that is opened after the call began; calls that begin together share one.
    Snapshot,
}

/// Whether procedures of `tpcc` declare functors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TpccFunctors {
    /// The engine aloha computes what follows from a key's own row by itself.
    On,
    /// Every engine runs the procedures as they are.
    Off,
}

/// How the keys of Deliveries of `tpcc` are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TpccDeliveries {
    /// Found by reconnaissance: Deliveries of one warehouse make each other start over.
    Dependent,
    /// Declared as ranges of the warehouse: nothing starts over, and other transactions of the warehouse wait.
    Declared,
}

impl TpccOptions {
    fn workload(&self, sites: u16, seed: u64) -> Result<tpcc::Options, String> {
        check_rows("tpcc", self.items, self.customers)?;
        let own = tpcc::Options::default();
        Ok(tpcc::Options {
            seed,
            sites,
            warehouses: self.warehouses.unwrap_or_else(|| u32::from(sites).max(4)),
            mix: self.mix()?,
            remote: self.remote(),
            payment_remote_percent: self.payment_remote_percent,
            by_name_percent: self.by_name_percent.unwrap_or(own.by_name_percent),
            functors: self.functors.map_or(own.functors, |functors| functors == TpccFunctors::On),
            items: self.items,
            customers_per_district: self.customers,
            orders_per_district: self.customers,
            ..own
        })
    }

    /// The shares of the transactions.
    fn mix(&self) -> Result<tpcc::Mix, String> {
        if (self.reads.is_some() || self.deliveries.is_some()) && self.mix != Some(TpccMix::Full) {
            return Err(
                "tpcc: reads and deliveries say how the full mix is called: give them with it".to_owned()
            );
        }
        match (self.mix, self.new_order_percent) {
            (Some(_), Some(_)) => {
                Err("tpcc: the mix says how many New Orders there are: leave new_order_percent out"
                    .to_owned())
            }
            (Some(TpccMix::NewOrder), None) => Ok(tpcc::Mix::NewOrderPayment(100.0)),
            (Some(TpccMix::NewOrderPayment), None) => Ok(tpcc::Mix::NewOrderPayment(50.0)),
            (Some(TpccMix::Full), None) => Ok(tpcc::Mix::Full {
                reads: match self.reads {
                    Some(TpccReads::Snapshot) => Mode::Snapshot,
                    Some(TpccReads::Ordered) | None => Mode::Ordered,
                },
                deliveries: match self.deliveries {
                    Some(TpccDeliveries::Declared) => tpcc::Deliveries::Declared,
                    Some(TpccDeliveries::Dependent) | None => tpcc::Deliveries::Dependent,
                },
            }),
            (None, percent) => {
                Ok(tpcc::Options::default().mix).map(|mix| percent.map_or(mix, tpcc::Mix::NewOrderPayment))
            }
        }
    }

    /// Which New Orders take something from another partition.
    fn remote(&self) -> tpcc::Remote {
        match (self.remote_percent, self.mix) {
            (Some(percent), _) => tpcc::Remote::Orders(percent),
            // As the specification has it (clause 2.4.1.5).
            (None, Some(TpccMix::Full)) => tpcc::Remote::Lines(1.0),
            (None, _) => tpcc::Options::default().remote,
        }
    }
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
    /// How transfers are declared. Default: as a whole.
    // Written only where it is given: data that was made before it could be keeps its fingerprint.
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<BankTransfers>,
}

/// How transfers of `bank` are declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BankTransfers {
    /// Every engine runs the procedure.
    Whole,
    /// With functors and a guard, which reads the account that pays. The procedure is run for its result.
    Functors,
    /// With these alone: the procedure `move`, which returns nothing.
    OnlyFunctors,
}

impl From<BankTransfers> for bank::Declare {
    fn from(transfers: BankTransfers) -> bank::Declare {
        match transfers {
            BankTransfers::Whole => bank::Declare::Whole,
            BankTransfers::Functors => bank::Declare::Functors,
            BankTransfers::OnlyFunctors => bank::Declare::OnlyFunctors,
        }
    }
}

/// Settings of `ycsb`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct YcsbOptions {
    /// The core workload: a to f.
    #[arg(long, default_value = "a")]
    pub mix: ycsb::Mix,
    /// Rows at first, over all sites.
    #[arg(long, default_value_t = 100_000)]
    pub records: u64,
    /// Unevenness of Zipf's distribution: 0 is uniform.
    #[arg(long, default_value_t = 0.99)]
    pub theta: f64,
    /// Rows of each transaction, 1 to 64; a scan begins at each.
    #[arg(long, default_value_t = 1)]
    pub keys: usize,
    /// Percentage of transactions with rows of two sites; needs more keys than one.
    #[arg(long = "multi-partition", value_name = "PERCENT", default_value_t = 0.0)]
    pub multi_partition_percent: f64,
    /// Length of each of a row's ten fields.
    #[arg(long, default_value_t = 100)]
    pub field_bytes: usize,
    /// The most rows that a scan asks for.
    #[arg(long, default_value_t = 100)]
    pub scan_length_max: u32,
}

impl Default for YcsbOptions {
    fn default() -> YcsbOptions {
        let own = ycsb::Options::default();
        YcsbOptions {
            mix: own.mix,
            records: own.records,
            theta: own.theta,
            keys: own.keys,
            multi_partition_percent: own.multi_partition_percent,
            field_bytes: own.field_bytes,
            scan_length_max: own.scan_length_max,
        }
    }
}

impl Default for TpccOptions {
    fn default() -> TpccOptions {
        let own = tpcc::Options::default();
        TpccOptions {
            warehouses: None,
            mix: None,
            reads: None,
            deliveries: None,
            remote_percent: None,
            new_order_percent: None,
            payment_remote_percent: own.payment_remote_percent,
            by_name_percent: None,
            functors: None,
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
            transfers: None,
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
        let made: Result<Box<dyn Workload>, Error> = match self {
            WorkloadOptions::Micro(options) => {
                options.check(sites)?;
                boxed(ordain_workload::micro::Micro::new(options.workload(sites, seed)))
            }
            WorkloadOptions::Tpcc(options) => boxed(tpcc::Tpcc::new(options.workload(sites, seed)?)),
            WorkloadOptions::ScaledTpcc(options) => boxed(tpcc::Tpcc::new(options.workload(sites, seed)?)),
            WorkloadOptions::Bank(options) => boxed(bank::Bank::new(bank::Options {
                sites,
                accounts: options.accounts,
                balance: options.balance,
                multi_partition_percent: options.multi_partition_percent,
                transfers: options.transfers.map_or_else(bank::Declare::default, bank::Declare::from),
                ..bank::Options::default()
            })),
            WorkloadOptions::Ycsb(options) => boxed(ycsb::Ycsb::new(ycsb::Options {
                seed,
                sites,
                records: options.records,
                mix: options.mix,
                theta: options.theta,
                keys: options.keys,
                multi_partition_percent: options.multi_partition_percent,
                field_bytes: options.field_bytes,
                scan_length_max: options.scan_length_max,
            })),
            WorkloadOptions::Sql => boxed(SqlWorkload::new()),
        };
        made.map_err(|error| error.to_string())
    }
}

fn boxed<W: Workload + 'static>(workload: Result<W, Error>) -> Result<Box<dyn Workload>, Error> {
    Ok(Box::new(workload?))
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
        for name in ["micro", "tpcc", "scaled-tpcc", "bank", "ycsb", "sql"] {
            let from_command_line = CommandLine::parse_from(["ordain", name]).workload;
            let from_file: WorkloadOptions = toml::from_str(&format!("name = {name:?}")).unwrap();
            assert_eq!(from_command_line, from_file);
        }
    }

    /// What a data directory is compared with must not change with a release.
    #[test]
    fn functors_are_of_the_command_line_and_of_the_file() {
        let given = [
            ("bank --transfers only-functors", "name = \"bank\"\ntransfers = \"only-functors\""),
            ("bank --transfers functors", "name = \"bank\"\ntransfers = \"functors\""),
            ("tpcc --functors off", "name = \"tpcc\"\nfunctors = \"off\""),
        ];
        for (arguments, lines) in given {
            let words = ["ordain"].into_iter().chain(arguments.split_whitespace());
            let from_command_line = CommandLine::parse_from(words).workload;
            assert_eq!(toml::from_str(lines), Ok(from_command_line.clone()));
            assert!(from_command_line.workload(2, None, 1).is_ok(), "{arguments}");
            assert!(serde_json::to_string(&from_command_line).unwrap().contains("functors"));
        }
        let WorkloadOptions::Tpcc(off) = toml::from_str("name = \"tpcc\"\nfunctors = \"off\"").unwrap()
        else {
            panic!("it is tpcc")
        };
        assert!(!off.workload(1, 1).unwrap().functors);
        assert!(TpccOptions::default().workload(1, 1).unwrap().functors);
        for name in ["bank", "tpcc"] {
            let usual = CommandLine::parse_from(["ordain", name]).workload;
            let text = serde_json::to_string(&usual).unwrap();
            assert!(!text.contains("functors") && !text.contains("transfers"), "{text}");
        }
    }

    #[test]
    fn districts_over_all_partitions_are_bounded() {
        let scaled = |districts_per_partition, partitions| {
            let options = ScaledTpccOptions { districts_per_partition, items: 10, customers: 1 };
            WorkloadOptions::ScaledTpcc(options).workload(partitions, None, 1).map(|_| ())
        };
        assert_eq!(scaled(10, 4), Ok(()));
        let refused =
            |found: Result<(), String>| found.is_err_and(|problem| problem.contains("give 1 to 32767"));
        assert!(refused(scaled(32_768, 2)) && refused(scaled(0, 2)));
    }

    fn tpcc(arguments: &str, lines: &str) -> Result<tpcc::Mix, String> {
        let from_file: WorkloadOptions = toml::from_str(&format!("name = \"tpcc\"\n{lines}")).unwrap();
        let arguments = ["ordain", "tpcc"].into_iter().chain(arguments.split_whitespace());
        if let Ok(from_command_line) = CommandLine::try_parse_from(arguments) {
            assert_eq!(from_command_line.workload, from_file);
        }
        let WorkloadOptions::Tpcc(options) = from_file else { panic!("it is tpcc") };
        options.mix()
    }

    #[test]
    fn mixes_have_names() {
        let two = tpcc::Mix::NewOrderPayment;
        assert_eq!(tpcc("", ""), Ok(two(100.0)));
        assert_eq!(tpcc("--new-order 60", "new_order_percent = 60.0"), Ok(two(60.0)));
        assert_eq!(tpcc("--mix new-order", "mix = \"new-order\""), Ok(two(100.0)));
        assert_eq!(tpcc("--mix new-order+payment", "mix = \"new-order+payment\""), Ok(two(50.0)));
        assert_eq!(tpcc("--mix full", "mix = \"full\""), Ok(tpcc::Mix::FULL));
        let lines = "mix = \"full\"\nreads = \"snapshot\"\ndeliveries = \"declared\"";
        let mix = tpcc::Mix::Full { reads: Mode::Snapshot, deliveries: tpcc::Deliveries::Declared };
        assert_eq!(tpcc("--mix full --reads snapshot --deliveries declared", lines), Ok(mix));
        let both = tpcc("--mix full --new-order 60", "mix = \"full\"\nnew_order_percent = 60.0");
        assert!(both.unwrap_err().contains("leave new_order_percent out"));
        assert!(tpcc("--reads ordered", "reads = \"ordered\"").unwrap_err().contains("the full mix"));
    }
}
