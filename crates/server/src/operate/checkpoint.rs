//! `ordain checkpoint`: takes a checkpoint now.

use clap::Args;

use super::{ClusterChoice, say};

/// What `ordain checkpoint` is told.
#[derive(Args, Clone, Debug)]
pub struct CheckpointOptions {
    #[command(flatten)]
    cluster: ClusterChoice,
}

/// Takes a checkpoint of a running cluster, and waits until a replica has it on its disks.
///
/// # Errors
/// When the cluster cannot be reached, or keeps nothing.
pub fn run(options: &CheckpointOptions) -> Result<(), String> {
    let file = options.cluster.read()?;
    let catalog = file.workload()?.catalog().clone();
    let connection = crate::connect(&file, catalog).map_err(|error| error.to_string())?;
    let epoch = connection.checkpoint().map_err(|error| error.to_string())?;
    say(&format!("checkpoint at the end of {epoch}"))
}
