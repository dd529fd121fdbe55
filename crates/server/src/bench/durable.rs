//! A benchmark whose data is kept on disk.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ordain_db::position::PartitionId;
use ordain_db::storage::Storage;
use ordain_workload::Workload;

use super::options::RunOptions;
use super::{Finished, drive};
use crate::caller::random_number;
use crate::data_directory::Contents;
use crate::database::Database;
use crate::durable::DurableOptions;
use crate::load::fill;

/// How many single writes are measured.
const FSYNCS: usize = 101;

/// Bytes of each.
const FSYNC_BYTES: usize = 4096;

/// What a run made the disk do.
pub(super) struct DiskUse {
    /// How often writes were made durable.
    pub(super) fsyncs: u64,
    /// Transactions that committed meanwhile.
    pub(super) commits: u64,
    /// Median time of one such write alone.
    pub(super) one_fsync: Duration,
}

impl DiskUse {
    /// Transactions that committed for each time that writes were made durable.
    pub(super) fn commits_per_fsync(&self) -> f64 {
        self.commits as f64 / (self.fsyncs as f64).max(1.0)
    }
}

/// Runs a workload in this process, with its data on disk.
///
/// # Errors
/// When the directory cannot be used or the run fails.
pub(super) fn run(options: &RunOptions, workload: &dyn Workload) -> Result<Finished, String> {
    let directory = Directory::chosen(options)?;
    let cluster = options.cluster();
    let rows = |partition: PartitionId, storage: &mut dyn Storage| {
        fill(workload, partition, options.partitions, storage)
    };
    let contents = Contents::alone(options.engine, options.partitions, fingerprint()?);
    let durable = DurableOptions::new(&directory.path);
    let database = Database::durable(&durable, &cluster, &contents, workload.catalog().clone(), &rows)
        .map_err(|error| error.to_string())?;
    let one_fsync = measure_fsync(&directory.path)?;
    let (before, _) = database.process().syncs();
    let mut finished = drive(options, workload, &**database.process(), &database)?;
    let (after, _) = database.process().syncs();
    let commits = finished.statuses.iter().map(|status| status.counters.committed).sum();
    finished.disk = Some(DiskUse { fsyncs: after - before, commits, one_fsync });
    database.close().map_err(|error| error.to_string())?;
    Ok(finished)
}

/// The median time of a small write that is made durable, over a file that has its space already, as the log does.
fn measure_fsync(directory: &Path) -> Result<Duration, String> {
    let path = directory.join("fsync-measured");
    let measure = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(&vec![0; FSYNCS * FSYNC_BYTES])?;
        file.sync_all()?;
        std::io::Seek::rewind(&mut file)?;
        let mut times = Vec::with_capacity(FSYNCS);
        for _ in 0..FSYNCS {
            let begun = Instant::now();
            file.write_all(&[1; FSYNC_BYTES])?;
            file.sync_data()?;
            times.push(begun.elapsed());
        }
        std::fs::remove_file(&path)?;
        times.sort_unstable();
        Ok(times[FSYNCS / 2])
    };
    measure().map_err(|error: std::io::Error| format!("cannot measure {}: {error}", path.display()))
}

/// What tells the data of one run from that of another.
pub(super) fn fingerprint() -> Result<u64, String> {
    random_number().map_err(|error| error.to_string())
}

/// Where the data is.
pub(super) struct Directory {
    path: PathBuf,
    /// Whether it goes with this value.
    is_temporary: bool,
}

impl Directory {
    /// The one that the options name, or a temporary one.
    pub(super) fn chosen(options: &RunOptions) -> Result<Directory, String> {
        match &options.data_dir {
            Some(path) => {
                refuse_used(path)?;
                Ok(Directory { path: path.clone(), is_temporary: false })
            }
            None => Directory::temporary(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn temporary() -> Result<Directory, String> {
        let number = random_number().map_err(|error| error.to_string())?;
        let path = std::env::temp_dir().join(format!("ordain-bench-{number:016x}"));
        Ok(Directory { path, is_temporary: true })
    }
}

/// A run begins with new data, and leaves it behind.
fn refuse_used(path: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("--data-dir {}: {error}", path.display());
    let mut entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(wrong)?,
    };
    match entries.next().transpose().map_err(wrong)? {
        None => Ok(()),
        Some(entry) => Err(format!(
            "--data-dir {} is not empty (it has {}): a benchmark begins with new data; name a directory that is empty or not \
             there, or leave the option out to use a temporary one",
            path.display(),
            entry.file_name().to_string_lossy()
        )),
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_temporary {
            // It may not have been made.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
