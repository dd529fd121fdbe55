//! `ordain experiment`: what durability costs, measured in one run each.
//!
//! | experiment | what is measured | paper |
//! |---|---|---|
//! | `recovery` | how much faster a log is replayed than it was made | Calvin §5, CAL-100, CAL-X15 |
//! | `checkpoint` | throughput over time while a checkpoint is taken | Calvin §5 and Figure 3, CAL-96, CAL-X07 |

mod checkpoint;
mod recovery;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ordain_workload::{Part, Workload};

use super::durable::{Directory, fingerprint};
use super::options::{RunOptions, WorkloadOptions};
use crate::data_directory::Contents;
use crate::durable::DurableOptions;
use crate::output::Output;

/// The longest that may be asked for, and longer than any experiment lasts.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// More than any experiment logs.
const LOG_BYTES_MAX: u64 = 1 << 40;

/// What `ordain experiment` can be told.
#[derive(Args, Clone, Debug)]
pub struct ExperimentOptions {
    /// What to measure.
    pub experiment: Experiment,
    /// The folder for tables and plots, which is made if it is not there.
    #[arg(long)]
    pub output: PathBuf,
    #[command(flatten)]
    run: RunOptions,
    #[command(subcommand)]
    workload: WorkloadOptions,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Experiment {
    /// How much faster a log is replayed than it was made.
    Recovery,
    /// Throughput over time while a checkpoint is taken.
    Checkpoint,
}

/// Runs an experiment; whether what it states held.
///
/// # Errors
/// When an option is wrong, or the database cannot be run.
pub fn run(options: &ExperimentOptions) -> Result<bool, String> {
    let ExperimentOptions { experiment, output, run, workload } = options;
    run.check()?;
    if run.processes > 1 || run.transactions.is_some() {
        return Err(
            "an experiment runs in this process and for a time: leave out --processes and --transactions"
                .to_owned(),
        );
    }
    let workload = workload.calibrated()?.workload(run.partitions, run.sites, run.seed)?;
    let background = workload.background(run.seed, 0, Part::WHOLE).map_err(|error| error.to_string())?;
    if background.is_some() {
        return Err("an experiment counts all transactions, and updates of an index would be among them: leave out --volatility".to_owned());
    }
    let output = Output::create(output)?;
    match experiment {
        Experiment::Recovery => recovery::run(run, &*workload, &output),
        Experiment::Checkpoint => checkpoint::run(run, &*workload, &output),
    }
}

/// A directory whose data takes no checkpoint by itself.
struct Place {
    directory: Directory,
    contents: Contents,
}

impl Place {
    fn new(run: &RunOptions) -> Result<Place, String> {
        let contents = Contents::alone(run.engine, run.partitions, fingerprint()?);
        Ok(Place { directory: Directory::chosen(run)?, contents })
    }

    fn options(&self) -> DurableOptions {
        DurableOptions {
            checkpoint_interval: NEVER,
            checkpoint_log_bytes: LOG_BYTES_MAX / 2,
            log_bytes_max: LOG_BYTES_MAX,
            ..DurableOptions::new(self.directory.path())
        }
    }
}

/// The first rows of a partition.
fn rows(
    workload: &dyn Workload,
    partitions: u16,
) -> impl Fn(
    ordain_db::position::PartitionId,
    &mut dyn ordain_db::storage::Storage,
) -> Result<(), ordain_db::error::Error> {
    move |partition, storage| crate::load::fill(workload, partition, partitions, storage)
}
