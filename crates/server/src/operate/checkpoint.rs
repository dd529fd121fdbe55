//! `ordain checkpoint`: takes a checkpoint now.

use std::time::Duration;

use clap::Args;

use super::{ClusterChoice, limit, say};

/// What `ordain checkpoint` is told.
#[derive(Args, Clone, Debug)]
pub struct CheckpointOptions {
    #[command(flatten)]
    cluster: ClusterChoice,
    /// How long to wait for it, in seconds. It may come later.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = limit())]
    limit_seconds: u64,
}

/// Takes a checkpoint of a running cluster, and waits until a replica has it on its disks.
///
/// # Errors
/// When the cluster cannot be reached, keeps nothing, or has no checkpoint in time.
pub fn run(options: &CheckpointOptions) -> Result<(), String> {
    let file = options.cluster.read()?;
    let catalog = file.workload()?.catalog().clone();
    let connection = crate::connect(&file, catalog).map_err(|error| error.to_string())?;
    let epoch = connection
        .checkpoint(Duration::from_secs(options.limit_seconds))
        .map_err(|error| error.to_string())?;
    say(&format!("checkpoint at the end of {epoch}"))
}
