//! Nodes that keep what they acknowledge: made again from a data directory when a process starts.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ordain_consensus::disk_log::{LogId, LogOptions, OpenError, Opening};
use ordain_consensus::raft::RaftOptions;
use ordain_consensus::{EntryKind, HandOut, LogRecord, RecoverError};
use ordain_db::disk::witness::{Witness, compare};
use ordain_db::disk::{Found, Ingredients, NodeDisk, RecoveryError, Replication, recover};
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::failpoint::NoFailpoints;
use ordain_db::node::{CheckpointMode, CheckpointOptions, NodeConfiguration};
use ordain_db::position::{Epoch, NodeId, PartitionId, ReplicaId};
use ordain_db::procedure::Catalog;
use ordain_db::storage::Storage;
use ordain_db::storage::memory::{self, MemoryStorage};
use serde::{Deserialize, Serialize};

use crate::caller::random_number;
use crate::data_directory::{Contents, DataDirectory};
use crate::files::RealFiles;
use crate::process::{ClusterOptions, LocalNode};
use crate::replay::Replay;
use crate::rescue::Rescue;

/// When a transaction counts as committed, if there are replicas (CAL-30).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicationMode {
    /// There is one replica.
    #[default]
    None,
    /// When it is durable at the leader. What is acknowledged is lost when the leader fails before another replica has it.
    Async,
    /// When it is durable at a majority of the replicas.
    Sync,
}

/// How a process keeps its data.
#[derive(Clone, PartialEq, Debug)]
pub struct DurableOptions {
    /// Where.
    pub directory: PathBuf,
    /// When a transaction counts as committed.
    pub replication: ReplicationMode,
    /// Groups of replicas whose nodes all tell each other what only those of one replica would have to (CAL-107).
    pub subgroups: Vec<Vec<u16>>,
    /// Whether transactions go on while a checkpoint is taken.
    pub checkpoint_mode: CheckpointMode,
    /// The time between two checkpoints while transactions go on.
    pub checkpoint_interval: Duration,
    /// The bytes of a partition's batches in the log between two checkpoints.
    pub checkpoint_log_bytes: u64,
    /// The bytes of rows that a node puts into a checkpoint in a second at most, while it has other work.
    pub checkpoint_bytes_per_second: u64,
    /// The most bytes that the log of a partition may have.
    pub log_bytes_max: u64,
    /// The most bytes that all files of a partition may have.
    pub disk_bytes_max: u64,
}

/// Bytes of a segment of the log, unless the whole log is small.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes of the longest record of the log: more than a batch can have, with what comes around it.
const RECORD_BYTES_MAX: u64 = 20 << 20;

/// The least that [`DurableOptions::log_bytes_max`] may be: three segments with room for the longest record.
pub const LOG_BYTES_MIN: u64 = 3 * (RECORD_BYTES_MAX + (4 << 20));

impl DurableOptions {
    /// Data in a directory, not replicated, with the usual limits.
    pub fn new(directory: impl Into<PathBuf>) -> DurableOptions {
        let checkpoints = CheckpointOptions::default();
        DurableOptions {
            directory: directory.into(),
            replication: ReplicationMode::None,
            subgroups: Vec::new(),
            checkpoint_mode: checkpoints.mode,
            checkpoint_interval: Duration::from_micros(
                checkpoints.interval_microseconds.unwrap_or(60_000_000),
            ),
            checkpoint_log_bytes: checkpoints.log_bytes,
            checkpoint_bytes_per_second: checkpoints.bytes_per_second,
            log_bytes_max: 16 << 30,
            disk_bytes_max: u64::MAX,
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// Says which one to change.
    pub fn check(&self) -> Result<(), String> {
        if self.log_bytes_max < LOG_BYTES_MIN {
            return Err(format!(
                "the log of a partition must be allowed {LOG_BYTES_MIN} bytes, not {}",
                self.log_bytes_max
            ));
        }
        if self.checkpoint_log_bytes == 0 || self.checkpoint_log_bytes > self.log_bytes_max / 2 {
            return Err(format!(
                "the bytes of log between checkpoints must be 1 to half of what the log may have ({}), not {}",
                self.log_bytes_max / 2,
                self.checkpoint_log_bytes
            ));
        }
        if self.checkpoint_bytes_per_second == 0 {
            return Err("a checkpoint must get on: give it at least a MiB per second".to_owned());
        }
        let seconds = 1..=86_400;
        if !seconds.contains(&self.checkpoint_interval.as_secs()) {
            return Err(format!(
                "checkpoints must be 1 second to 1 day apart, not {:?}",
                self.checkpoint_interval
            ));
        }
        Ok(())
    }

    fn log_options(&self, id: u128, opening: Opening) -> LogOptions {
        LogOptions {
            segment_bytes: SEGMENT_BYTES.min(self.log_bytes_max / 3),
            record_bytes_max: RECORD_BYTES_MAX,
            log_bytes_max: self.log_bytes_max,
            ..LogOptions::new(LogId(id), opening)
        }
    }
}

/// Fills a partition's storage with the rows that it has before the first transaction.
pub type FirstRows<'a> = dyn Fn(PartitionId, &mut dyn Storage) -> Result<(), Error> + Sync + 'a;

/// Takes a data directory and makes the nodes that it holds: a database of its own, whose data is nowhere else.
///
/// # Errors
/// Says which file or option is wrong and what to do.
pub fn open(
    options: &DurableOptions,
    cluster: &ClusterOptions,
    contents: &Contents,
    catalog: &Catalog,
    rows: &FirstRows<'_>,
) -> Result<(DataDirectory, Vec<LocalNode>), String> {
    // Before anything is made.
    options.check()?;
    cluster.check()?;
    check_engine(cluster)?;
    let mut directory = DataDirectory::open(&options.directory, contents)?;
    let nodes = open_nodes(&mut directory, options, cluster, contents, catalog, rows)?;
    Ok((directory, nodes))
}

/// Checks that the engine can go on from what it keeps.
///
/// # Errors
/// If it cannot.
pub fn check_engine(cluster: &ClusterOptions) -> Result<(), String> {
    match cluster.engine {
        EngineKind::TwoPhaseWithoutCommitProtocol => Err(format!(
            "the engine {} leaves transactions half done when it stops: leave data directories out, or choose calvin",
            cluster.engine.name()
        )),
        EngineKind::Serial
        | EngineKind::Calvin
        | EngineKind::CalvinVll
        | EngineKind::Aloha
        | EngineKind::TwoPhase => Ok(()),
    }
}

/// Makes the nodes that a data directory holds. They replay what is in their logs when they are stepped.
///
/// # Errors
/// Says which file or option is wrong and what to do.
pub fn open_nodes(
    directory: &mut DataDirectory,
    options: &DurableOptions,
    cluster: &ClusterOptions,
    contents: &Contents,
    catalog: &Catalog,
    rows: &FirstRows<'_>,
) -> Result<Vec<LocalNode>, String> {
    options.check()?;
    cluster.check()?;
    check_engine(cluster)?;
    let life = random_number().map_err(|error| error.to_string())?;
    let opener = Opener { options, cluster, fingerprint: contents.fingerprint, catalog, rows, life };
    let opened: Vec<Result<(LocalNode, Witness), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = contents
            .nodes
            .iter()
            .map(|node| {
                let (opener, directory) = (&opener, &*directory);
                scope.spawn(move || opener.open(directory, *node))
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|node| node.unwrap_or_else(|_| Err("a thread panicked in recovery".to_owned()))).collect()
    });
    let opened = opened.into_iter().collect::<Result<Vec<(LocalNode, Witness)>, String>>()?;
    let (nodes, witnesses): (Vec<LocalNode>, Vec<Witness>) = opened.into_iter().unzip();
    // Replicas have each other to notice what is lost, and one may lawfully be behind.
    if options.replication == ReplicationMode::None && cluster.engine.is_ordered() {
        let directory = options.directory.display();
        compare(&witnesses)
            .map_err(|lost| format!("{directory}: {}", with_rescue(&lost, true, Rescue::Backup)))?;
    }
    directory.establish()?;
    Ok(nodes)
}

struct Opener<'a> {
    options: &'a DurableOptions,
    cluster: &'a ClusterOptions,
    fingerprint: u64,
    catalog: &'a Catalog,
    rows: &'a FirstRows<'a>,
    /// See [`NodeConfiguration::life`].
    life: u64,
}

impl Opener<'_> {
    /// The replicas of which one tells the others all that it tells its own nodes.
    fn subgroup(&self, me: ReplicaId) -> Vec<ReplicaId> {
        let own = self.options.subgroups.iter().find(|group| group.contains(&me.0));
        own.into_iter().flatten().map(|replica| ReplicaId(*replica)).collect()
    }

    fn open(&self, directory: &DataDirectory, me: NodeId) -> Result<(LocalNode, Witness), String> {
        let path = directory.partition(me.partition);
        let wrong = |problem: String| format!("{me} in {}: {problem}", path.display());
        let rescue = match self.options.replication {
            _ if !self.cluster.engine.is_ordered() => Rescue::Nobody,
            ReplicationMode::None => Rescue::Backup,
            _ => Rescue::Replicas(me.replica),
        };
        let (mut disk, found) = self.open_disk(directory, me, &path, rescue).map_err(&wrong)?;
        let configuration = NodeConfiguration {
            me,
            replicas: self.cluster.replicas,
            subgroup: self.subgroup(me.replica),
            cluster: self.fingerprint,
            epochs: self.cluster.epochs(),
            life: self.life,
            limits: self.cluster.limits(),
            checkpoints: CheckpointOptions {
                interval_microseconds: Some(self.options.checkpoint_interval.as_micros() as u64),
                log_bytes: self.options.checkpoint_log_bytes,
                mode: self.options.checkpoint_mode,
                bytes_per_second: self.options.checkpoint_bytes_per_second,
            },
            ..NodeConfiguration::new(me.partition, self.cluster.partitions)
        };
        let witness = Witness::of(me.partition, &found);
        let is_ordered = self.cluster.engine.is_ordered();
        let last = is_ordered.then(|| last_epoch(&found, self.options.replication)).flatten();
        // Digests are there to be compared with those of other replicas.
        let write_digests = self.options.replication != ReplicationMode::None;
        let storage_options = memory::Options { write_digests };
        let is_new = found.is_new;
        let ingredients = Ingredients {
            engine: self.cluster.engine,
            configuration: &configuration,
            catalog: self.catalog.clone(),
            replication: self.replication(me),
            join: directory.has_joined(),
            storage: &|| Box::new(MemoryStorage::with_options(storage_options)),
            load: &mut |storage| (self.rows)(me.partition, storage),
        };
        let (node, recovery) = recover::<_, NoFailpoints>(ingredients, &mut disk, found)
            .map_err(|error| wrong(with_rescue(&error, is_lost_to_recovery(&error), rescue)))?;
        if is_new {
            let joins = directory.has_joined();
            tracing::info!(node = %me, directory = %path.display(), joins, "new log");
        } else {
            let (checkpoint, cut_bytes) = (recovery.checkpoint, recovery.cut_bytes);
            let records = recovery.records;
            tracing::info!(node = %me, directory = %path.display(), %checkpoint, records, cut_bytes, "recovering");
        }
        let replays = if is_ordered { last.is_some_and(|last| last > recovery.checkpoint) } else { !is_new };
        let replay = replays.then(|| Replay::new(me, recovery.checkpoint, last));
        Ok((LocalNode { id: me, node, disk: Some(disk), replay }, witness))
    }

    fn open_disk(
        &self,
        directory: &DataDirectory,
        me: NodeId,
        path: &Path,
        rescue: Rescue,
    ) -> Result<(NodeDisk<RealFiles>, Found), String> {
        let files = RealFiles::with_bytes_max(path, self.options.disk_bytes_max);
        let files = files.map_err(|error| error.to_string())?;
        let opening = if directory.is_established() { Opening::MustExist } else { Opening::CreateIfMissing };
        let log_options = self.options.log_options(directory.log_id(me), opening);
        let (disk, mut found) = NodeDisk::open(files, log_options)
            .map_err(|error| with_rescue(&error, is_lost_to_opening(&error), rescue))?;
        // A log without records has promised nothing: the process ended before it wrote the first.
        found.is_new |= found.records.is_empty() && found.checkpoints.is_empty();
        Ok((disk, found))
    }

    fn replication(&self, me: NodeId) -> Replication {
        let hand_out = match self.options.replication {
            ReplicationMode::None => return Replication::None,
            ReplicationMode::Async => HandOut::AfterLocalSync,
            ReplicationMode::Sync => HandOut::AfterMajority,
        };
        // The same at all replicas of a partition; the partitions differ, so that they do not all elect at the same time.
        let seed = self.fingerprint ^ u64::from(me.partition.0);
        Replication::Group(RaftOptions { hand_out, ..RaftOptions::new(me.replica, seed) })
    }
}

/// What is wrong, and what to do if it cannot be put right.
fn with_rescue(error: &impl Display, is_lost: bool, rescue: Rescue) -> String {
    if is_lost { format!("{error}. If that cannot be done, {rescue}") } else { error.to_string() }
}

/// Whether something is missing or damaged, and not just in the way.
fn is_lost_to_opening(error: &OpenError) -> bool {
    match error {
        OpenError::Missing
        | OpenError::MissingSegment { .. }
        | OpenError::ForeignSegment { .. }
        | OpenError::Damaged(_) => true,
        OpenError::Options(_)
        | OpenError::Files(_)
        | OpenError::Misnamed { .. }
        | OpenError::OtherVersion { .. } => false,
    }
}

/// The same of a node that is made again.
fn is_lost_to_recovery(error: &RecoveryError) -> bool {
    match error {
        RecoveryError::Log(RecoverError::Options(_)) | RecoveryError::Rows(_) => false,
        RecoveryError::Checkpoints { .. } | RecoveryError::Log(_) => true,
    }
}

/// The last epoch that a log has for certain, for telling how far a replay has come: what it holds begins with its epoch. In a
/// group that is the last one which is recorded as agreed on: later ones may be replaced, and never be replayed.
fn last_epoch(found: &Found, replication: ReplicationMode) -> Option<Epoch> {
    let mut commit = (replication == ReplicationMode::None).then_some(u64::MAX);
    for record in found.records.iter().rev() {
        match (LogRecord::decode(record), commit) {
            (Ok(LogRecord::State { commit: last, .. }), None) => commit = Some(last),
            (Ok(LogRecord::Entry { kind: EntryKind::Payload, payload, index, .. }), Some(commit))
                if index <= commit =>
            {
                return postcard::take_from_bytes::<Epoch>(&payload).ok().map(|(epoch, _)| epoch);
            }
            _ => {}
        }
    }
    None
}
