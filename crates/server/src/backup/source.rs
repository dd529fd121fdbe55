//! A node's checkpoints and log, as they are at a moment, while the node goes on.

use std::path::Path;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use ordain_consensus::LogStart;
use ordain_consensus::disk_log::{DiskLog, LogOptions, OpenError, Opening};
use ordain_consensus::files::{FileError, Files};
use ordain_consensus::log::FOUNDING_INDEX;
use ordain_db::checkpoint::{CheckpointError, CheckpointVerifier, VerifiedCheckpoint};
use ordain_db::disk::committed::{Committed, CommittedError, LogEntry, LogSurvey};
use ordain_db::disk::{checkpoint_name, stable_name};
use ordain_db::kept::decode_whole;
use ordain_db::node::{NODE_SECTION, SavedNode};
use ordain_db::position::{Epoch, NodeId};

use super::directory::Identity;
use super::files::FrozenFiles;

/// Bytes of a checkpoint that are read, and stored, together.
pub const PART_BYTES: u64 = 16 << 20;

/// How often a log is read that makes no sense: its node may be writing to it at that very moment.
const ATTEMPTS_MAX: u32 = 5;

/// The time between two attempts.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a node's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file cannot be read.
    #[error(transparent)]
    Files(#[from] FileError),
    /// The log is damaged.
    #[error("the log of {node}: {error}")]
    Log {
        /// The node.
        node: NodeId,
        /// What is wrong with it.
        error: OpenError,
    },
    /// What is in the log makes no order.
    #[error("the log of {node}: {error}: put back a copy of the directory")]
    Order {
        /// The node.
        node: NodeId,
        /// What is wrong with it.
        error: CommittedError,
    },
    /// A checkpoint is damaged.
    #[error("the checkpoint of {node} at the end of {epoch}: {problem}")]
    Checkpoint {
        /// The node.
        node: NodeId,
        /// Its epoch.
        epoch: Epoch,
        /// What is wrong with it.
        problem: String,
    },
    /// Whoever gets the contents has had enough.
    #[error("{0}")]
    Refused(String),
}

/// See the [module](self).
#[derive(Debug)]
pub struct NodeSource {
    node: NodeId,
    files: FrozenFiles,
    options: LogOptions,
    committed: Committed,
    checkpoints: Vec<Epoch>,
    /// The newest epoch whose checkpoint is marked as the one to start from; 0 if none is.
    marked: Epoch,
    log_bytes: u64,
}

impl NodeSource {
    /// Opens the files of a node of a data directory, and finds out what counts in its log.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn open(directory: &Path, identity: &Identity, node: NodeId) -> Result<NodeSource, SourceError> {
        let mut files = FrozenFiles::open(&identity.files_of(directory, node))?;
        let options = LogOptions::new(identity.log_id(node), Opening::MustExist);
        let committed = survey(node, &mut files, &options)?;
        let entries = files.list()?;
        let checkpoints =
            entries.iter().filter_map(|file| ordain_db::disk::checkpoint_epoch(&file.name)).collect();
        let marked = entries.iter().filter_map(|file| marked_epoch(&file.name)).max().unwrap_or_default();
        let log_bytes =
            entries.iter().filter(|file| file.name.ends_with(".log")).map(|file| file.length).sum();
        Ok(NodeSource { node, files, options, committed, checkpoints, marked, log_bytes })
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The epochs of its checkpoints, ascending.
    pub fn checkpoints(&self) -> &[Epoch] {
        &self.checkpoints
    }

    /// The epoch of the checkpoint that is marked as the one to start from; 0 for the first rows.
    pub fn marked(&self) -> Epoch {
        self.marked
    }

    /// All records of the log, as a node gets them when it starts.
    ///
    /// # Errors
    /// [`SourceError::Log`].
    pub fn records(&mut self) -> Result<Vec<Bytes>, SourceError> {
        let mut records = Vec::new();
        let mut take = |_, record| records.push(record);
        DiskLog::open_with(&mut self.files, self.options.clone(), &mut take)
            .map_err(|error| SourceError::Log { node: self.node, error })?;
        Ok(records)
    }

    /// The part of the log on which its group agreed.
    pub fn committed(&self) -> &Committed {
        &self.committed
    }

    /// Bytes of the log's segments.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Where the log begins, if it goes back to the first rows.
    pub fn founding(&self) -> Option<&LogStart> {
        let start = &self.committed.start;
        (start.index == FOUNDING_INDEX).then_some(start)
    }

    /// Makes durable all that was read of the log.
    ///
    /// # Errors
    /// When the disk cannot keep it.
    pub fn make_durable(&self) -> Result<(), FileError> {
        self.files.make_durable(".log")
    }

    /// Hands out the entries from an index on, in order.
    ///
    /// # Errors
    /// [`SourceError`]; among them what `visit` says.
    pub fn entries(
        &mut self,
        from: u64,
        visit: &mut dyn FnMut(LogEntry) -> Result<(), String>,
    ) -> Result<(), SourceError> {
        let (node, committed) = (self.node, &self.committed);
        let (mut next, mut attempts) = (from.max(committed.first()), 0);
        while next <= committed.last() {
            attempts += 1;
            let mut failed = None;
            let mut pick = |sequence, record: Bytes| {
                if failed.is_some() {
                    return;
                }
                match committed.pick(next, sequence, &record) {
                    Ok(None) => {}
                    Ok(Some(entry)) => {
                        next = entry.index + 1;
                        failed = visit(entry).err().map(SourceError::Refused);
                    }
                    Err(error) => failed = Some(SourceError::Order { node, error }),
                }
            };
            let opened = DiskLog::open_with(&mut self.files, self.options.clone(), &mut pick);
            if let Some(error) = failed {
                return Err(error);
            }
            match opened {
                Err(error) if next <= committed.last() && attempts >= ATTEMPTS_MAX => {
                    return Err(SourceError::Log { node, error });
                }
                // What comes after the entries that count may be half written.
                Err(_) => thread::sleep(ATTEMPT_PAUSE),
                Ok(_) if next <= committed.last() => {
                    let error = CommittedError::Lost { committed: committed.last(), last: next - 1 };
                    return Err(SourceError::Order { node, error });
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Reads a checkpoint part by part, and verifies it.
    ///
    /// # Errors
    /// [`SourceError`]; among them what `take` says.
    pub fn checkpoint(
        &self,
        epoch: Epoch,
        take: &mut dyn FnMut(Bytes) -> Result<(), String>,
    ) -> Result<(VerifiedCheckpoint, LogStart), SourceError> {
        let (node, name) = (self.node, checkpoint_name(epoch));
        let wrong = |problem: String| SourceError::Checkpoint { node, epoch, problem };
        let damaged = |error: CheckpointError| wrong(error.to_string());
        let (mut verifier, mut offset) = (CheckpointVerifier::default(), 0);
        loop {
            let part = Bytes::from(self.files.read(&name, offset, PART_BYTES)?);
            if part.is_empty() {
                break;
            }
            offset += part.len() as u64;
            verifier.push(&part).map_err(damaged)?;
            take(part).map_err(SourceError::Refused)?;
        }
        let verified = verifier.finish().map_err(damaged)?;
        let start = log_start(&verified, node, epoch).map_err(wrong)?;
        Ok((verified, start))
    }
}

/// The epoch that a file marks as the one to start from, if it is such a mark.
fn marked_epoch(name: &str) -> Option<Epoch> {
    let epoch = Epoch(name.split('.').next()?.parse().ok()?);
    (stable_name(epoch) == name).then_some(epoch)
}

/// Where the log of a node goes on after a checkpoint, which must be that of the node and the epoch.
///
/// # Errors
/// Says what is wrong with it.
pub fn log_start(checkpoint: &VerifiedCheckpoint, node: NodeId, epoch: Epoch) -> Result<LogStart, String> {
    let header = checkpoint.header;
    if header.epoch != epoch || header.identity.partition != node.partition {
        let found = format!("{} at the end of {}", header.identity.partition, header.epoch);
        return Err(format!("it is that of {found}: it was renamed"));
    }
    let section = checkpoint.sections.get(NODE_SECTION).ok_or("the state of the node is missing")?;
    let saved: SavedNode =
        decode_whole(section).map_err(|error| format!("the state of the node: {error}"))?;
    Ok(saved.log)
}

/// Finds out what counts in a log.
fn survey(node: NodeId, files: &mut FrozenFiles, options: &LogOptions) -> Result<Committed, SourceError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (mut survey, mut failed) = (LogSurvey::default(), None);
        let mut take = |sequence, record: Bytes| {
            if failed.is_none() {
                failed = survey.take(sequence, &record).err();
            }
        };
        let opened = DiskLog::open_with(&mut *files, options.clone(), &mut take).map(drop);
        let surveyed = match (opened, failed) {
            (Err(error), _) => Err(SourceError::Log { node, error }),
            (Ok(()), Some(error)) => Err(SourceError::Order { node, error }),
            (Ok(()), None) => survey.finish().map_err(|error| SourceError::Order { node, error }),
        };
        if surveyed.is_ok() || attempts >= ATTEMPTS_MAX {
            return surveyed;
        }
        thread::sleep(ATTEMPT_PAUSE);
    }
}
