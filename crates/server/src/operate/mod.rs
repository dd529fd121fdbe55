//! The commands of an operator of a running cluster: how it stands, checkpoints, and which replicas it has.

pub mod checkpoint;
pub mod replica;
pub mod status;
mod view;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::cluster_file::ClusterFile;
use crate::data_directory::{CLUSTER_FILE, IDENTITY};

/// Which cluster is meant.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct ClusterChoice {
    /// The cluster file.
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// The data directory of a database of its own.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl ClusterChoice {
    /// Reads the cluster file.
    ///
    /// # Errors
    /// When it cannot be read: names it and says what is wrong.
    fn read(&self) -> Result<ClusterFile, String> {
        match (&self.cluster, &self.data_dir) {
            (Some(file), _) => ClusterFile::read(file),
            (None, Some(directory)) => match directory.join(CLUSTER_FILE) {
                file if file.is_file() => ClusterFile::read(&file),
                _ => Err(without_cluster_file(directory)),
            },
            (None, None) => Err("say which cluster: --cluster FILE or --data-dir DIR".to_owned()),
        }
    }
}

/// Why a directory does not lead to a cluster, and what to name instead.
fn without_cluster_file(directory: &Path) -> String {
    let name = directory.display();
    if !directory.exists() {
        return format!("there is no directory {name}: name the one with which `ordain start` was started");
    }
    if !directory.join(IDENTITY).is_file() {
        return format!(
            "{name} is no data directory, it has no file {IDENTITY}: name the one with which `ordain start` was started"
        );
    }
    format!(
        "{name} has no {CLUSTER_FILE}: if it is of a process of a cluster, name the cluster file with --cluster; if it is new, \
         wait until `ordain start` says that it is ready; an embedded database cannot be reached from outside"
    )
}

/// The seconds for which a command may be told to wait; with 0 it looks once.
fn limit() -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(..=86_400)
}

/// Writes a line for the operator.
fn say(line: &str) -> Result<(), String> {
    use std::io::Write;

    writeln!(std::io::stdout(), "{line}")
        .map_err(|error| format!("cannot write to the standard output: {error}"))
}
