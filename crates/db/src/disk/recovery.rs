//! A node made again from its disk: the checkpoint, and the log after it (Calvin §5, CAL-100).

use bytes::Bytes;
use ordain_consensus::disk_log::DiskLog;
use ordain_consensus::files::Files;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::solo::{SoloLog, SoloOptions};
use ordain_consensus::{
    FOUNDING_INDEX, HandOut, LogStart, Membership, RecoverError, ReplicaId, ReplicatedLog,
};

use super::{Found, NodeDisk, checkpoint_name};
use crate::checkpoint::{Checkpoint, CheckpointIdentity, CheckpointReader};
use crate::engine::EngineKind;
use crate::error::Error;
use crate::failpoint::Failpoints;
use crate::kept::decode_whole;
use crate::node::{AnyNode, NODE_SECTION, NodeConfiguration, Resumed, SavedNode, node_with};
use crate::position::Epoch;
use crate::procedure::Catalog;
use crate::storage::Storage;

/// Bytes that are read from a checkpoint at a time.
const READ_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes that are read at a time for the sake of a section that comes before the rows.
const SECTION_READ_BYTES: u64 = 64 * 1024;

/// Rows in memory, to be moved between threads.
type Rows = Box<dyn Storage + Send>;

/// A checkpoint with all its rows.
type Loaded = Checkpoint<dyn Storage + Send>;

/// How the log of a partition is replicated (CAL-30).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replication {
    /// Not at all: what is durable on this node's disk is in the order.
    None,
    /// By agreement of the replicas; the options say whether the leader waits for a majority.
    Group(RaftOptions),
}

impl Replication {
    /// Whether a leader hands out what a majority may not have.
    fn hands_out_early(&self) -> bool {
        matches!(self, Replication::Group(RaftOptions { hand_out: HandOut::AfterLocalSync, .. }))
    }
}

/// What a node went on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// The end of the epoch of the checkpoint; 0 if there was none.
    pub checkpoint: Epoch,
    /// Rows in it.
    pub rows: u64,
    /// Records of the log that were found.
    pub records: u64,
    /// Bytes that a crash had left of records which were not durable.
    pub cut_bytes: u64,
}

/// Why a node cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// No checkpoint can be used.
    #[error("no checkpoint of this node can be used: {}", problems.join("; "))]
    Checkpoints {
        /// What is wrong with each.
        problems: Vec<String>,
    },
    /// The log cannot be used.
    #[error("the log of this node cannot be used: {0}")]
    Log(#[from] RecoverError),
    /// The first rows cannot be made.
    #[error("the rows that the partition has at first cannot be made: {0}")]
    Rows(Error),
}

/// What a node is made of, besides what is on its disk.
pub struct Ingredients<'a> {
    /// The engine.
    pub engine: EngineKind,
    /// How the node fits into its cluster.
    pub configuration: &'a NodeConfiguration,
    /// What to do with an empty disk in a replicated cluster: join a group that exists, or found it together with the others.
    /// Whoever has lost its data must not found: it could vote twice.
    pub join: bool,
    /// The tables and procedures.
    pub catalog: Catalog,
    /// How its log is replicated.
    pub replication: Replication,
    /// An empty storage.
    pub storage: &'a dyn Fn() -> Rows,
    /// The rows that the partition has before the first transaction, for a node without a checkpoint.
    pub load: &'a mut dyn FnMut(&mut dyn Storage) -> Result<(), Error>,
}

/// Makes the node that a disk holds. It replays what the log has after the checkpoint as its driver steps it.
///
/// It goes on from the checkpoint that is marked for that, or from the first rows if none is: of newer ones it does not know whether the
/// other nodes of the replica have them too, and they may need what it said before (see
/// [`stability`](crate::node::stability)). If the marked one is damaged, a newer one is better than none, unless it may hold
/// what was lost with a leader.
///
/// # Errors
/// [`RecoveryError`] says what to do.
pub fn recover<F: Files, P: Failpoints>(
    ingredients: Ingredients<'_>,
    disk: &mut NodeDisk<F>,
    found: Found,
) -> Result<(Box<dyn AnyNode>, Recovery), RecoveryError> {
    let Ingredients { engine, configuration, join, catalog, replication, storage, load } = ingredients;
    let mut recovery = Recovery {
        checkpoint: Epoch(0),
        rows: 0,
        records: found.records.len() as u64,
        cut_bytes: found.cut_bytes,
    };
    let on_disk = newer_than_stable(&found, configuration, storage, &disk.log);
    let hands_out_early = replication.hands_out_early();
    let (rows, resumed) = match oldest_usable(&found, hands_out_early, configuration, storage, &disk.log)? {
        Some((checkpoint, resumed)) => {
            (recovery.checkpoint, recovery.rows) = (resumed.epoch, checkpoint.summary.rows);
            (checkpoint.storage, Some(resumed))
        }
        None => {
            let mut rows = storage();
            load(&mut *rows).map_err(RecoveryError::Rows)?;
            (rows, None)
        }
    };
    let start = resumed.as_ref().map(|resumed| &resumed.saved.log);
    let log = make_log(replication, configuration, join, found, start)?;
    let mut node = node_with::<P>(engine, configuration, catalog, rows, Some(log));
    if let Some(resumed) = resumed {
        node.resume(resumed);
    }
    node.know_checkpoints(&on_disk);
    Ok((node, recovery))
}

/// The log that was found, or a new one.
fn make_log(
    replication: Replication,
    configuration: &NodeConfiguration,
    join: bool,
    found: Found,
    checkpoint: Option<&LogStart>,
) -> Result<Box<dyn ReplicatedLog>, RecoverError> {
    // A node that stopped before it wrote anything has promised nothing.
    let is_new = found.is_new || (found.records.is_empty() && checkpoint.is_none());
    let log: Box<dyn ReplicatedLog> = match replication {
        Replication::None => {
            let options = SoloOptions::new(configuration.me.replica);
            match is_new {
                true => Box::new(SoloLog::found(options)),
                false => Box::new(SoloLog::recover(options, found.records.into_iter(), checkpoint)?),
            }
        }
        Replication::Group(options) => {
            let voters = Membership::of_voters((0..configuration.replicas).map(ReplicaId));
            match is_new {
                true if !join => Box::new(RaftLog::found(options, voters)?),
                _ => Box::new(recover_group(options, found.records, checkpoint)?),
            }
        }
    };
    // A log is cut only after a checkpoint is marked, and the first rows are not what it goes on from.
    let start = log.status().start;
    if checkpoint.is_none() && start > FOUNDING_INDEX {
        return Err(RecoverError::NoCheckpoint { start });
    }
    Ok(log)
}

/// The log of a replica. Its checkpoint may come from another replica, and end after the log's own entries.
fn recover_group(
    options: RaftOptions,
    records: Vec<Bytes>,
    checkpoint: Option<&LogStart>,
) -> Result<RaftLog, RecoverError> {
    match RaftLog::recover(options.clone(), records.iter().cloned(), checkpoint) {
        Err(RecoverError::Checkpoint { checkpoint: index, last, .. }) if index > last => {
            let mut log = RaftLog::recover(options, records.into_iter(), None)?;
            let start = checkpoint.cloned().unwrap_or_default();
            log.snapshot_installed(start).map_err(|error| RecoverError::WrongGroup(error.to_string()))?;
            Ok(log)
        }
        recovered => recovered,
    }
}

/// The checkpoint that is marked as the one to go on from or, if that is damaged, the next that can be used, and where the node goes on with it. `None` if the
/// node starts from its first rows.
fn oldest_usable<F: Files>(
    found: &Found,
    stable_only: bool,
    configuration: &NodeConfiguration,
    storage: &dyn Fn() -> Rows,
    log: &DiskLog<F>,
) -> Result<Option<(Loaded, Resumed)>, RecoveryError> {
    if found.stable == Epoch(0) {
        return Ok(None);
    }
    let mut problems = Vec::new();
    let usable = |epoch: &&Epoch| **epoch == found.stable || (**epoch > found.stable && !stable_only);
    for epoch in found.checkpoints.iter().filter(usable) {
        match read(*epoch, configuration, storage(), log.files()) {
            Ok((checkpoint, saved)) => {
                return Ok(Some((checkpoint, Resumed { epoch: *epoch, saved })));
            }
            Err(problem) => problems.push(format!("{}: {problem}", checkpoint_name(*epoch))),
        }
    }
    if !found.checkpoints.contains(&found.stable) {
        problems.push(format!("{} is missing", checkpoint_name(found.stable)));
    }
    Err(RecoveryError::Checkpoints { problems })
}

/// The checkpoints after the one that is marked, with their lineages. One that cannot be read is none, and is taken again.
fn newer_than_stable<F: Files>(
    found: &Found,
    configuration: &NodeConfiguration,
    storage: &dyn Fn() -> Rows,
    log: &DiskLog<F>,
) -> Vec<(Epoch, u64)> {
    let newer = found.checkpoints.iter().filter(|epoch| **epoch > found.stable);
    let saved = |epoch: &Epoch| read_saved(*epoch, configuration, storage(), log.files());
    newer.filter_map(|epoch| Some((*epoch, saved(epoch).ok()?.lineage()))).collect()
}

/// Reads what a checkpoint keeps besides rows, and as little of them as can be.
fn read_saved<F: Files>(
    epoch: Epoch,
    configuration: &NodeConfiguration,
    storage: Rows,
    files: &F,
) -> Result<SavedNode, String> {
    let mut reader = CheckpointReader::new(storage, identity(configuration));
    let (name, mut offset) = (checkpoint_name(epoch), 0);
    while reader.section(NODE_SECTION).is_none() {
        let bytes = files.read(&name, offset, SECTION_READ_BYTES).map_err(|error| error.to_string())?;
        if bytes.is_empty() {
            break;
        }
        offset += bytes.len() as u64;
        reader.push(&bytes).map_err(|error| error.to_string())?;
    }
    saved_node(reader.section(NODE_SECTION))
}

fn identity(configuration: &NodeConfiguration) -> CheckpointIdentity {
    let NodeConfiguration { cluster, partitions, me, .. } = *configuration;
    CheckpointIdentity { cluster, partition: me.partition, partitions }
}

fn saved_node(section: Option<&[u8]>) -> Result<SavedNode, String> {
    let section = section.ok_or("the state of the node is missing")?;
    decode_whole(section).map_err(|error| format!("the state of the node: {error}"))
}

/// Reads a checkpoint.
fn read<F: Files>(
    epoch: Epoch,
    configuration: &NodeConfiguration,
    storage: Rows,
    files: &F,
) -> Result<(Loaded, SavedNode), String> {
    let mut reader = CheckpointReader::new(storage, identity(configuration));
    let (name, mut offset) = (checkpoint_name(epoch), 0);
    loop {
        let bytes = files.read(&name, offset, READ_BYTES).map_err(|error| error.to_string())?;
        if bytes.is_empty() {
            break;
        }
        offset += bytes.len() as u64;
        reader.push(&bytes).map_err(|error| error.to_string())?;
    }
    let checkpoint = reader.finish().map_err(|error| error.to_string())?;
    if checkpoint.header.epoch != epoch {
        return Err(format!("it is of {}: it was renamed", checkpoint.header.epoch));
    }
    let saved = saved_node(checkpoint.sections.get(NODE_SECTION).map(Vec::as_slice))?;
    Ok((checkpoint, saved))
}
