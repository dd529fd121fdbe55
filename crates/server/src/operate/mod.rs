//! The commands of an operator of a running cluster: how it stands, checkpoints, and which replicas it has.

pub mod checkpoint;
pub mod replica;
pub mod status;
mod view;

use std::path::PathBuf;

use clap::Args;

use crate::cluster_file::ClusterFile;
use crate::data_directory::CLUSTER_FILE;

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
            (None, Some(directory)) => ClusterFile::read(&directory.join(CLUSTER_FILE)),
            (None, None) => Err("say which cluster: --cluster FILE or --data-dir DIR".to_owned()),
        }
    }
}

/// Writes a line for the operator.
fn say(line: &str) -> Result<(), String> {
    use std::io::Write;

    writeln!(std::io::stdout(), "{line}")
        .map_err(|error| format!("cannot write to the standard output: {error}"))
}
