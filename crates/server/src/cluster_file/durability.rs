//! The part `[durability]` of a cluster file.

use std::path::Path;
use std::time::Duration;

use ordain_db::node::CheckpointMode;
use serde::{Deserialize, Serialize};

use crate::durable::DurableOptions;

/// How much of the log is kept, for processes with a data directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DurabilityEntry {
    /// Whether transactions go on while a checkpoint is taken, or the replicas take turns to stand still.
    pub checkpoint_mode: CheckpointMode,
    /// The time between two checkpoints while transactions go on.
    pub checkpoint_seconds: u64,
    /// The mebibytes of a partition's batches in the log between two checkpoints.
    pub checkpoint_log_mib: u64,
    /// The mebibytes of rows that a node puts into a checkpoint in a second at most, while it has other work.
    pub checkpoint_mib_per_second: u64,
    /// The most mebibytes that the log of a partition may have.
    pub log_mib: u64,
    /// The most mebibytes that all files of a partition may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_mib: Option<u64>,
}

impl Default for DurabilityEntry {
    fn default() -> DurabilityEntry {
        let usual = DurableOptions::new("");
        DurabilityEntry {
            checkpoint_mode: usual.checkpoint_mode,
            checkpoint_seconds: usual.checkpoint_interval.as_secs(),
            checkpoint_log_mib: usual.checkpoint_log_bytes >> 20,
            checkpoint_mib_per_second: usual.checkpoint_bytes_per_second >> 20,
            log_mib: usual.log_bytes_max >> 20,
            disk_mib: None,
        }
    }
}

impl DurabilityEntry {
    /// How a process keeps its data in a directory, without replicas.
    pub(super) fn options(&self, directory: &Path) -> DurableOptions {
        let DurabilityEntry {
            checkpoint_mode,
            checkpoint_seconds,
            checkpoint_log_mib,
            checkpoint_mib_per_second,
            log_mib,
            disk_mib,
        } = *self;
        let bytes = |mib: u64| mib.saturating_mul(1 << 20);
        DurableOptions {
            checkpoint_mode,
            checkpoint_interval: Duration::from_secs(checkpoint_seconds),
            checkpoint_log_bytes: bytes(checkpoint_log_mib),
            checkpoint_bytes_per_second: bytes(checkpoint_mib_per_second),
            log_bytes_max: bytes(log_mib),
            disk_bytes_max: disk_mib.map_or(u64::MAX, bytes),
            ..DurableOptions::new(directory)
        }
    }
}
