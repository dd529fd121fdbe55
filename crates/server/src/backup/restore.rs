//! Making a data directory of what a store has.
//!
//! The directory gets an identity, and its logs get numbers, of its own: files of the old one cannot be mixed in, and backups
//! of the two do not meet. The identity is written last, so what an interrupted restore leaves is no data directory.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use ordain_consensus::ReplicaId;
use ordain_consensus::disk_log::{DiskLog, LogId, LogOptions, Opening, RECORD_HEADER_BYTES, RECORDS_AT};
use ordain_consensus::files::Files;
use ordain_db::checkpoint::CheckpointVerifier;
use ordain_db::disk::cut::{Cut, CutLog, EpochRange, Holding, Target, choose};
use ordain_db::disk::{checkpoint_name, stable_name};
use ordain_db::position::{NodeId, PartitionId};

use super::archive::{Archive, ArchiveError, fetch};
use super::directory::Identity;
use super::manifest::{CheckpointBackup, NodeBackup};
use super::source::log_start;
use super::store::Store;
use crate::files::{RealFiles, create_directory};

/// Bytes of records that are written to a log together, about.
const APPEND_BYTES: usize = 4 << 20;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The directory to make; it must be empty or not be there.
    pub directory: PathBuf,
    /// Which state.
    pub target: Target,
    /// The replica that the directory is for, if not that of the backup.
    pub replica: Option<ReplicaId>,
    /// Bytes of each segment of the new logs.
    pub segment_bytes: u64,
}

/// Bytes of a segment, as a server makes them.
pub const SEGMENT_BYTES: u64 = 64 << 20;

impl Restore {
    /// What was in a log must fit into it again, whatever limits it has for what is new.
    fn log_options(&self, log_id: LogId) -> LogOptions {
        let record_bytes_max =
            (32 << 20).min(self.segment_bytes.saturating_sub(RECORDS_AT + RECORD_HEADER_BYTES));
        let usual = LogOptions::new(log_id, Opening::CreateIfMissing);
        LogOptions { segment_bytes: self.segment_bytes, record_bytes_max, log_bytes_max: u64::MAX, ..usual }
    }
}

/// What was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The cut.
    pub cut: Cut,
    /// Rows of the checkpoints.
    pub rows: u64,
    /// Entries of the logs after them.
    pub entries: u64,
    /// When the last batch among these was closed, in microseconds since 1970; `None` if there is none.
    pub closed_at: Option<u64>,
}

/// Restores a directory. `beside` are those of the other partitions of the same replica, which must be restored to the same
/// epoch: then all of them can be.
///
/// # Errors
/// Says what to do. What was made so far is removed, but for directories above the one that is wanted.
pub fn restore(
    store: &Store,
    archive: &Archive,
    beside: &[Archive],
    wanted: &Restore,
) -> Result<Restored, String> {
    refuse_used(&wanted.directory)?;
    let text = &archive.newest().identity;
    let identity = Identity::parse(text)
        .map_err(|problem| format!("the identity in the backup {}: {problem}", archive.newest().id))?;
    let cut = choose_cut(store, archive, beside, wanted.target).map_err(|error| error.to_string())?;
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| format!("no randomness from the system: {error}"))?;
    let renewed = identity.renewed(u128::from_le_bytes(random), wanted.replica)?;
    let problem = |error: std::io::Error| format!("cannot make {}: {error}", wanted.directory.display());
    let is_new = !wanted.directory.exists();
    create_directory(&wanted.directory).map_err(problem)?;
    let made = fill(store, archive, wanted, cut, (&identity, &renewed));
    if made.is_err() {
        undo(wanted, &renewed, is_new);
    }
    made
}

/// Makes the files of all nodes, and then the identity.
fn fill(
    store: &Store,
    archive: &Archive,
    wanted: &Restore,
    cut: Cut,
    (identity, renewed): (&Identity, &Identity),
) -> Result<Restored, String> {
    let mut restored = Restored { cut, rows: 0, entries: 0, closed_at: None };
    for (from, to) in identity.nodes().iter().zip(renewed.nodes()) {
        let directory = renewed.files_of(&wanted.directory, *to);
        let node = NodeRestore {
            store,
            archive,
            node: *from,
            cut,
            directory: &directory,
            options: wanted.log_options(renewed.log_id(*to)),
        };
        node.run(&mut restored)?;
    }
    renewed.write(&wanted.directory)?;
    Ok(restored)
}

/// Removes what a restore that failed has made, the identity first: what cannot be removed is no data directory then.
fn undo(wanted: &Restore, renewed: &Identity, is_new: bool) {
    renewed.remove(&wanted.directory);
    for node in renewed.nodes() {
        let _ = std::fs::remove_dir_all(renewed.files_of(&wanted.directory, *node));
    }
    if is_new {
        let _ = std::fs::remove_dir(&wanted.directory);
    }
}

/// A directory that is to be made must not have anything in it.
fn refuse_used(directory: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(wrong)?,
    };
    match entries.next().transpose().map_err(wrong)? {
        None => Ok(()),
        Some(entry) => Err(format!(
            "{} is not empty (it has {}): restore to a new directory; what an interrupted restore left can be removed",
            directory.display(),
            entry.file_name().to_string_lossy()
        )),
    }
}

/// Chooses where to cut, so that all partitions of the database can be cut there.
///
/// # Errors
/// [`ArchiveError`], also when a partition is in none of the archives.
pub fn choose_cut(
    store: &Store,
    archive: &Archive,
    beside: &[Archive],
    target: Target,
) -> Result<Cut, ArchiveError> {
    let archives = || std::iter::once(archive).chain(beside);
    let holdings: Vec<Holding> = archives().flat_map(Archive::holdings).collect();
    check_partitions(archive, beside, &holdings)?;
    let owner = |partition: PartitionId| {
        archives().find(|archive| archive.nodes().iter().any(|node| node.partition == partition))
    };
    let mut closed_after = |partition: PartitionId, epochs: EpochRange, time: u64| match owner(partition) {
        Some(archive) => archive.closed_after(store, partition, epochs, time),
        None => Ok(None),
    };
    choose(&holdings, target, &mut closed_after)
}

/// Every partition must be there once: what one has without the others is no state of the database.
fn check_partitions(archive: &Archive, beside: &[Archive], holdings: &[Holding]) -> Result<(), ArchiveError> {
    let fingerprint = |archive: &Archive| {
        Identity::parse(&archive.newest().identity).map(|found| found.fingerprint().to_owned())
    };
    let own = fingerprint(archive).map_err(ArchiveError::Unfit)?;
    for other in beside {
        if fingerprint(other).map_err(ArchiveError::Unfit)? != own {
            let (own, other) = (&archive.newest().directory, &other.newest().directory);
            return Err(ArchiveError::Unfit(format!("{own} and {other} are not of the same database")));
        }
    }
    let mut found: Vec<PartitionId> = holdings.iter().map(|holding| holding.partition).collect();
    found.sort_unstable();
    if let Some(twice) = found.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ArchiveError::Unfit(format!(
            "{} is in two of the directories: name one of them",
            twice[0]
        )));
    }
    let known =
        std::iter::once(archive).chain(beside).filter_map(|archive| archive.newest().partitions).max();
    let partitions = known.unwrap_or(found.len() as u16);
    let missing: Vec<String> =
        (0..partitions).map(PartitionId).filter(|id| !found.contains(id)).map(|id| id.to_string()).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(ArchiveError::Unfit(format!(
            "the database has {partitions} partitions, and {} are in other data directories: name these with --beside, so \
             that all can be restored to the same epoch",
            missing.join(", ")
        ))),
    }
}

/// Makes the files of a node.
struct NodeRestore<'a> {
    store: &'a Store,
    archive: &'a Archive,
    node: NodeId,
    cut: Cut,
    directory: &'a Path,
    options: LogOptions,
}

impl NodeRestore<'_> {
    fn run(&self, restored: &mut Restored) -> Result<(), String> {
        let backup = self.archive.base(self.node, self.cut.base);
        let backup = backup
            .ok_or_else(|| format!("{} has no checkpoint at the end of {}", self.node, self.cut.base))?;
        let mut files = RealFiles::open(self.directory).map_err(|error| error.to_string())?;
        if let Some(checkpoint) = &backup.checkpoint {
            self.write_checkpoint(&mut files, checkpoint, backup)?;
            restored.rows += checkpoint.rows;
        }
        self.write_log(&mut files, backup, restored)?;
        files.sync_directory().map_err(|error| error.to_string())
    }

    fn write_checkpoint(
        &self,
        files: &mut RealFiles,
        checkpoint: &CheckpointBackup,
        backup: &NodeBackup,
    ) -> Result<(), String> {
        let epoch = self.cut.base;
        let damaged = |problem: String| {
            format!(
                "the checkpoint of {} at the end of {epoch} in {}: {problem}; use another backup",
                self.node, self.store
            )
        };
        let name = checkpoint_name(epoch);
        files.create(&name, 0).map_err(|error| error.to_string())?;
        let (mut verifier, mut offset) = (CheckpointVerifier::default(), 0);
        for part in &checkpoint.parts {
            let contents = self.store.fetch(part).map_err(|error| error.to_string())?;
            verifier.push(&contents).map_err(|error| damaged(error.to_string()))?;
            files.write(&name, offset, &contents).map_err(|error| error.to_string())?;
            offset += contents.len() as u64;
        }
        let verified = verifier.finish().map_err(|error| damaged(error.to_string()))?;
        let start = log_start(&verified, self.node, epoch).map_err(damaged)?;
        if start != backup.start {
            return Err(damaged("its log goes on at another place than the manifest says".to_owned()));
        }
        files.sync(&name).map_err(|error| error.to_string())?;
        files.create(&stable_name(epoch), 0).map_err(|error| error.to_string())
    }

    /// Writes a new log with the entries through the cut.
    fn write_log(
        &self,
        files: &mut RealFiles,
        backup: &NodeBackup,
        restored: &mut Restored,
    ) -> Result<(), String> {
        let (log, _) = DiskLog::open(files, self.options.clone()).map_err(|error| error.to_string())?;
        let (mut cut_log, first) = CutLog::begin(backup.start.clone(), self.cut);
        let mut writer = LogWriter { log, waiting: vec![first], bytes: 0 };
        for piece in self.archive.pieces(self.node, backup.start.index + 1) {
            if cut_log.is_complete() {
                break;
            }
            for entry in fetch(self.store, backup, piece).map_err(|error| error.to_string())? {
                let taken = cut_log.take(&entry);
                let taken =
                    taken.map_err(|error| format!("`{}` of {}: {error}", piece.object.name(), self.store))?;
                if let Some(record) = taken {
                    restored.entries += 1;
                    let batch = entry.batch().map_err(|error| error.to_string())?;
                    restored.closed_at = restored.closed_at.max(batch.map(|batch| batch.closed_at));
                    writer.add(record)?;
                }
            }
        }
        if !cut_log.is_complete() {
            let (last, through) = (cut_log.delivered(), self.cut.through);
            return Err(format!(
                "the log of {} in {} ends at {last}, before {through}",
                self.node, self.store
            ));
        }
        writer.add(cut_log.end())?;
        writer.write()?;
        writer.log.sync().map(drop).map_err(|error| error.to_string())
    }
}

/// Appends records, many at a time.
struct LogWriter<F> {
    log: DiskLog<F>,
    waiting: Vec<Bytes>,
    bytes: usize,
}

impl<F: Files> LogWriter<F> {
    fn add(&mut self, record: Bytes) -> Result<(), String> {
        self.bytes += record.len();
        self.waiting.push(record);
        if self.bytes >= APPEND_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), String> {
        self.bytes = 0;
        self.log.append(&std::mem::take(&mut self.waiting)).map(drop).map_err(|error| error.to_string())
    }
}
