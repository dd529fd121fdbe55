//! The memory that a region may have.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion_execution::runtime_env::RuntimeEnvBuilder;

use crate::exchange::BATCH_ROWS;

/// Counts what operators hold, up to a limit.
#[derive(Debug)]
pub(crate) struct Pool {
    used: AtomicUsize,
    most: usize,
}

impl Pool {
    pub(crate) fn new(most: usize) -> Arc<Pool> {
        Arc::new(Pool { used: AtomicUsize::new(0), most })
    }

    /// What streams run with: this, and no files.
    pub(crate) fn context(self: &Arc<Pool>) -> Result<Arc<TaskContext>> {
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let pool: Arc<dyn MemoryPool> = Arc::<Pool>::clone(self);
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(disk).build_arc()?;
        let mut config = SessionConfig::new().with_batch_size(BATCH_ROWS).with_target_partitions(1);
        // It is for files.
        config.options_mut().execution.sort_spill_reservation_bytes = 0;
        Ok(Arc::new(TaskContext::default().with_session_config(config).with_runtime(runtime)))
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {} bytes", self.reserved(), self.most)
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        "statement"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, _: &MemoryReservation, additional: usize) -> Result<()> {
        let added = |used: usize| used.checked_add(additional).filter(|used| *used <= self.most);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added) {
            Ok(_) => Ok(()),
            Err(used) => Err(DataFusionError::ResourcesExhausted(format!("{used} of {} bytes", self.most))),
        }
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.most)
    }
}
