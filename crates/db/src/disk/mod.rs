//! What a node keeps on its disk, in one directory: its log and its checkpoints, and how the node is made again from them.
//!
//! A driver gives every [`DiskWrite`] of a node to its [`NodeDisk`], in order, and hands the events that come of it back to the
//! node. The server does that in a thread of its own, over real files; the simulator over simulated ones, in virtual time.
//!
//! | file | what |
//! |---|---|
//! | `<number>.log` | segments of the log: [docs/log-format.md](../../../../docs/log-format.md) |
//! | `<epoch>.checkpoint` | a checkpoint at the end of the epoch: [docs/checkpoint-format.md](../../../../docs/checkpoint-format.md) |
//! | `<epoch>.stable` | empty: the node starts again from the checkpoint of this epoch, see [`stability`](crate::node::stability) |
//! | `checkpoint.part` | a checkpoint that is being written; of no use after a crash, and removed |
//!
//! Backups read the same files: [`committed`] finds the order in a log, [`piece`] is the form in which they keep it, and [`cut`]
//! says where the logs of all partitions can be cut together.

pub mod committed;
pub mod cut;
pub mod piece;
mod recovery;
pub mod witness;

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::disk_log::{AppendError, DiskLog, LogOptions, OpenError};
use ordain_consensus::files::{FileError, FileErrorKind, Files};
use ordain_consensus::{LogRecord, RecordError};

use crate::node::{DiskWrite, Event};
use crate::position::Epoch;

pub use recovery::{Ingredients, Recovery, RecoveryError, Replication, recover};

/// The name of a checkpoint that is being written.
const PART: &str = "checkpoint.part";

/// What the names of checkpoints end with.
const CHECKPOINT: &str = ".checkpoint";

/// What the names of the marks end with that say which checkpoint to go on from.
const STABLE: &str = ".stable";

/// The name of the mark that the node goes on from the checkpoint at the end of an epoch.
pub fn stable_name(epoch: Epoch) -> String {
    format!("{:020}{STABLE}", epoch.0)
}

/// The name of the checkpoint at the end of an epoch.
pub fn checkpoint_name(epoch: Epoch) -> String {
    format!("{:020}{CHECKPOINT}", epoch.0)
}

/// The epoch of a checkpoint, by the name of its file; `None` if it is another file.
pub fn checkpoint_epoch(name: &str) -> Option<Epoch> {
    epoch_of(name, CHECKPOINT)
}

fn epoch_of(name: &str, ending: &str) -> Option<Epoch> {
    let digits = name.strip_suffix(ending).filter(|digits| digits.len() == 20)?;
    digits.parse().ok().map(Epoch)
}

/// Why a disk could not do what a node wants.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// There is no room. Nothing was done; give it room, and give it the same again.
    #[error("{0}")]
    Full(String),
    /// The node must stop: what its disk holds is only known when it is opened again.
    #[error("{0}")]
    Failed(String),
}

impl From<FileError> for DiskError {
    fn from(error: FileError) -> DiskError {
        DiskError::Failed(error.to_string())
    }
}

/// See the [module](self).
pub struct NodeDisk<F> {
    log: DiskLog<F>,
    /// Writes of which the node has not been told, in order.
    waiting: VecDeque<Waiting>,
    /// Sequence numbers of records in the log, ascending, with the highest index of an entry among the records up to it and
    /// after the one before.
    indexes: VecDeque<(u64, u64)>,
    /// The checkpoint that is being written, and its bytes.
    part: Option<(Epoch, u64)>,
    /// Whether the checkpoint after which the log may be cut is marked as the one to start from.
    marked: bool,
    /// What has happened to checkpoints.
    events: Vec<Event>,
}

/// A write to the log.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    /// The sequence number of its last record.
    sequence: u64,
    must_sync: bool,
}

/// What was on a disk when it was opened.
#[derive(Debug, Default)]
pub struct Found {
    /// The log's records, as [`DiskWrite::Append`] gave them.
    pub records: Vec<Bytes>,
    /// Bytes that a crash left of records which were not durable; they were cut.
    pub cut_bytes: u64,
    /// The epochs of the checkpoints, ascending.
    pub checkpoints: Vec<Epoch>,
    /// The epoch of the checkpoint that is marked as the one from which the node goes on; 0 for the rows that it had at first.
    pub stable: Epoch,
    /// Whether there was no log, so that this is a new node.
    pub is_new: bool,
}

/// What will be durable when the sync that begins now is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncMark(u64);

impl<F: Files> NodeDisk<F> {
    /// Opens what a node has on its disk, or begins it. A checkpoint that was being written is removed.
    ///
    /// # Errors
    /// [`OpenError`] says what to do. Nothing is lost by it.
    pub fn open(mut files: F, options: LogOptions) -> Result<(NodeDisk<F>, Found), OpenError> {
        let (mut checkpoints, mut stable) = (Vec::new(), Epoch(0));
        for file in files.list()? {
            if file.name == PART {
                files.remove(PART)?;
            }
            checkpoints.extend(checkpoint_epoch(&file.name));
            stable = epoch_of(&file.name, STABLE).unwrap_or_default().max(stable);
        }
        let (log, recovered) = DiskLog::open(files, options)?;
        let mut indexes = VecDeque::new();
        for (sequence, record) in &recovered.records {
            if let Some(index) = entry_index(record) {
                indexes.push_back((*sequence, index));
            }
        }
        let records = recovered.records.into_iter().map(|(_, record)| record).collect();
        let disk =
            NodeDisk { log, waiting: VecDeque::new(), indexes, part: None, marked: true, events: Vec::new() };
        let (cut_bytes, is_new) = (recovered.cut_bytes, recovered.is_new);
        Ok((disk, Found { records, cut_bytes, checkpoints, stable, is_new }))
    }

    /// Does a write. The log's part of it is durable after the next sync.
    ///
    /// # Errors
    /// [`DiskError`] tells whether the node can go on.
    pub fn write(&mut self, write: DiskWrite) -> Result<(), DiskError> {
        match write {
            DiskWrite::Append { number, records, index_max, must_sync } => {
                let sequence = self.append(&records)?;
                self.waiting.push_back(Waiting { number, sequence, must_sync });
                self.indexes.extend(index_max.map(|index| (sequence, index)));
            }
            DiskWrite::TruncateLog { through, restatement } => self.truncate(through, &restatement)?,
            DiskWrite::BeginCheckpoint(epoch) => {
                let files = self.log.files_mut();
                if self.part.take().is_some() {
                    files.remove(PART)?;
                }
                match files.create(PART, 0) {
                    Ok(()) => self.part = Some((epoch, 0)),
                    Err(error) if error.kind == FileErrorKind::Full => {
                        self.events.push(Event::CheckpointFailed(error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            DiskWrite::CheckpointChunk(bytes) => self.write_chunk(&bytes)?,
            DiskWrite::EndCheckpoint => {
                if let Some((epoch, _)) = self.part.take() {
                    let files = self.log.files_mut();
                    files.rename(PART, &checkpoint_name(epoch))?;
                    files.sync_directory()?;
                    self.events.push(Event::CheckpointWritten(epoch));
                }
            }
            DiskWrite::ReadCheckpoint { epoch, offset, bytes, to } => {
                let files = self.log.files_mut();
                let bytes = Bytes::from(files.read(&checkpoint_name(epoch), offset, bytes)?);
                self.events.push(Event::CheckpointRead { epoch, offset, bytes, to });
            }
            DiskWrite::DropCheckpoint(epoch) => match self.log.files_mut().remove(&checkpoint_name(epoch)) {
                // It went together with older ones.
                Err(error) if error.kind == FileErrorKind::NotFound => {}
                removed => removed?,
            },
            DiskWrite::RemoveCheckpoints { before } => self.remove_checkpoints(before)?,
        }
        Ok(())
    }

    fn append(&mut self, records: &[Bytes]) -> Result<u64, DiskError> {
        self.log.append(records).map_err(|error| match error {
            AppendError::Full(_) | AppendError::LimitReached { .. } => DiskError::Full(error.to_string()),
            AppendError::TooLong { .. } | AppendError::Failed(_) => DiskError::Failed(error.to_string()),
        })
    }

    fn truncate(&mut self, through: u64, restatement: &[Bytes]) -> Result<(), DiskError> {
        if !self.marked {
            // The node would start before the log begins.
            return Ok(());
        }
        self.append(restatement)?;
        self.log.sync()?;
        let mut below = self.log.first_sequence();
        while let Some((sequence, _)) = self.indexes.front().filter(|(_, index)| *index <= through) {
            below = sequence + 1;
            self.indexes.pop_front();
        }
        self.log.truncate_below(below)?;
        Ok(())
    }

    /// Appends to the checkpoint that is being written; gives it up when there is no room for it.
    fn write_chunk(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let Some((_, end)) = &mut self.part else { return Ok(()) };
        let files = self.log.files_mut();
        match files.write(PART, *end, bytes) {
            Ok(()) => {
                // By and by: one sync of the whole would make the log wait for long.
                files.sync(PART)?;
                *end += bytes.len() as u64;
                self.events.push(Event::CheckpointChunkWritten);
            }
            Err(error) if error.kind == FileErrorKind::Full => {
                files.remove(PART)?;
                self.part = None;
                self.events.push(Event::CheckpointFailed(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Marks the checkpoint to start from, and then removes those before it. Without room for the first mark nothing is removed,
    /// and the log is not cut, until there is.
    fn remove_checkpoints(&mut self, before: Epoch) -> Result<(), DiskError> {
        let files = self.log.files_mut();
        let found = files.list()?;
        let mark = stable_name(before);
        if !found.iter().any(|file| file.name == mark) {
            let earlier =
                found.iter().filter(|file| epoch_of(&file.name, STABLE).is_some_and(|epoch| epoch < before));
            let marked = match earlier.max_by_key(|file| epoch_of(&file.name, STABLE)) {
                // This needs no room.
                Some(earlier) => files.rename(&earlier.name, &mark),
                None => files.create(&mark, 0),
            };
            self.marked = match marked {
                Ok(()) => true,
                Err(error) if error.kind == FileErrorKind::Full => false,
                Err(error) => return Err(error.into()),
            };
            if !self.marked {
                return Ok(());
            }
            files.sync_directory()?;
        }
        for file in files.list()? {
            let epoch = checkpoint_epoch(&file.name).or_else(|| epoch_of(&file.name, STABLE));
            if epoch.is_some_and(|epoch| epoch < before) {
                files.remove(&file.name)?;
            }
        }
        files.sync_directory()?;
        Ok(())
    }

    /// Makes durable all that was written, by one `fdatasync` of the log if anything needs it, and tells what the node is to
    /// know. Whether it did.
    ///
    /// # Errors
    /// The node must stop.
    pub fn sync(&mut self, events: &mut Vec<Event>) -> Result<bool, DiskError> {
        let needed = self.needs_sync();
        if needed {
            self.log.sync()?;
        }
        self.tell(events);
        Ok(needed)
    }

    /// Whether something was written to the log that must become durable.
    pub fn needs_sync(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.must_sync && waiting.sequence > self.log.durable())
    }

    /// Whether there is something that the node is to be told, now or after a sync.
    pub fn has_unsynced(&self) -> bool {
        !self.waiting.is_empty() || !self.events.is_empty()
    }

    /// For drivers that sync the files themselves: what is covered by a sync that begins now.
    pub fn begin_sync(&self) -> SyncMark {
        SyncMark(self.log.appended())
    }

    /// The driver's sync is complete.
    pub fn complete_sync(&mut self, mark: SyncMark, events: &mut Vec<Event>) {
        self.log.mark_durable(mark.0);
        self.tell(events);
    }

    fn tell(&mut self, events: &mut Vec<Event>) {
        let durable = self.log.durable();
        let mut persisted = None;
        let is_done = |waiting: &&Waiting| !waiting.must_sync || waiting.sequence <= durable;
        while let Some(Waiting { number, .. }) = self.waiting.front().filter(is_done) {
            persisted = Some(*number);
            self.waiting.pop_front();
        }
        events.extend(persisted.map(Event::Persisted));
        events.append(&mut self.events);
    }

    /// The log: for its sizes, and for drivers that sync or damage files themselves.
    pub fn log(&self) -> &DiskLog<F> {
        &self.log
    }

    /// The files.
    pub fn files_mut(&mut self) -> &mut F {
        self.log.files_mut()
    }

    /// The files, without the rest: for a node that has stopped.
    pub fn into_files(self) -> F {
        self.log.into_files()
    }
}

/// The index of the entry that a record holds.
fn entry_index(record: &Bytes) -> Option<u64> {
    let decoded: Result<LogRecord, RecordError> = LogRecord::decode(record);
    match decoded {
        Ok(LogRecord::Entry { index, .. }) => Some(index),
        // What cannot be read is for the log's own recovery to refuse.
        Ok(_) | Err(_) => None,
    }
}
