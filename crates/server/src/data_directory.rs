//! The data directory of a process: who may use it, and where the files of each partition are.
//!
//! | path | what |
//! |---|---|
//! | `LOCK` | held by the process that uses the directory; has its number |
//! | `ORDAIN` | the identity: what the data belongs to, and how it was made |
//! | `cluster.toml` | the cluster file, of a database of its own or of a cluster that has grown |
//! | `p0/`, `p1/` … | the log and the checkpoints of a partition: [`ordain_db::disk`] |

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ordain_db::engine::EngineKind;
use ordain_db::position::{NodeId, PartitionId};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::cluster_file::ClusterFile;
use crate::files::{create_directory, sync_directory};

/// The version of the layout that this build makes and reads.
pub const DIRECTORY_FORMAT: u32 = 3;

const LOCK: &str = "LOCK";

/// For how long the lock is asked for: a process that was killed has its own for a moment yet, until its memory is given back.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// Between two times.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// The name of the file that makes a directory a data directory.
pub const IDENTITY: &str = "ORDAIN";
const IDENTITY_PART: &str = "ORDAIN.part";
/// The name of the cluster file that is kept in a data directory.
pub const CLUSTER_FILE: &str = "cluster.toml";

/// What the logs of a directory hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// The order of the transactions, for any engine that executes one.
    Order,
    /// What the nodes of the engine `two-phase` promised and decided.
    TwoPhase,
}

impl LogKind {
    /// What an engine keeps.
    pub fn of(engine: EngineKind) -> LogKind {
        if engine.is_ordered() { LogKind::Order } else { LogKind::TwoPhase }
    }

    /// The engines that can go on from it, for messages.
    pub fn engines(self) -> &'static str {
        match self {
            LogKind::Order => "an engine that executes an order",
            LogKind::TwoPhase => "the engine two-phase",
        }
    }
}

/// What is to be in a directory.
#[derive(Clone, Debug)]
pub struct Contents {
    /// What the engine keeps.
    pub log: LogKind,
    /// Stands for the tables, the procedures, the first rows and the number of partitions and replicas.
    pub fingerprint: u64,
    /// The nodes whose files are here.
    pub nodes: Vec<NodeId>,
    /// With what options the data was made, for starting again without saying them.
    pub options: Option<ClusterFile>,
}

impl Contents {
    /// All nodes of a database that has no replicas, for a program that knows its options.
    pub fn alone(engine: EngineKind, partitions: u16, fingerprint: u64) -> Contents {
        let nodes = crate::partition::nodes(partitions, 1).collect();
        Contents { log: LogKind::of(engine), fingerprint, nodes, options: None }
    }
}

/// The file `ORDAIN`, in TOML.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Identity {
    format: u32,
    release: String,
    log: LogKind,
    /// Random, in hexadecimal: the directory that this is, wherever it is copied to.
    id: String,
    /// In hexadecimal.
    fingerprint: String,
    nodes: Vec<String>,
    /// Whether every node has its log: from then on one that is missing is a loss.
    established: bool,
    /// Whether the nodes have joined groups that existed already, instead of founding them.
    #[serde(default)]
    joined: bool,
    /// Whether the replica was removed from the cluster.
    #[serde(default)]
    removed: bool,
    /// By the number of the process, the directories that were empty when this one founded its logs together with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    founders: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    options: Option<ClusterFile>,
}

/// The number of a node's log in the directory with this number.
pub fn log_id_of(directory: u128, node: NodeId) -> u128 {
    let text = format!("{directory:032x}/{node}");
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

/// The lock of a directory: held as long as the file is open, which has the number of the process.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Whoever reads it is to find no process that has ended. If it stays, nobody is misled but by the number.
        let _ = self.0.set_len(0);
    }
}

/// A directory that this process may use until the value is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    identity: Identity,
    id: u128,
    _lock: Lock,
}

impl DataDirectory {
    /// Whether a directory can be taken, as far as can be told without taking it. Nothing is made or changed.
    ///
    /// # Errors
    /// When another process uses it, or it has data of another database or release; says what to do.
    pub fn look(path: &Path, contents: &Contents) -> Result<(), String> {
        match OpenOptions::new().read(true).open(path.join(LOCK)) {
            Ok(file) => acquire(path, &file, FlockOperation::NonBlockingLockShared)?,
            // Whatever else keeps it from being opened is told by what comes next.
            Err(error) => tracing::debug!(%error, "no lock"),
        }
        match read_identity(path)? {
            Some(identity) => check_identity(path, &identity, contents).map(drop),
            None => refuse_strangers(path),
        }
    }

    /// Takes a directory: makes it if it is not there or empty. One that is refused is left as it is.
    ///
    /// # Errors
    /// When another process uses it, or it has data of another database or release; says what to do.
    pub fn open(path: &Path, contents: &Contents) -> Result<DataDirectory, String> {
        DataDirectory::look(path, contents)?;
        create_directory(path)
            .map_err(|error| format!("cannot make the data directory {}: {error}", path.display()))?;
        let lock = lock(path)?;
        let directory = match read_identity(path)? {
            Some(identity) => {
                let id = check_identity(path, &identity, contents)?;
                DataDirectory { path: path.to_owned(), identity, id, _lock: lock }
            }
            None => {
                refuse_strangers(path)?;
                let mut random = [0; 16];
                getrandom::fill(&mut random)
                    .map_err(|error| format!("no randomness from the system: {error}"))?;
                let id = u128::from_le_bytes(random);
                let identity = Identity {
                    format: DIRECTORY_FORMAT,
                    release: env!("CARGO_PKG_VERSION").to_owned(),
                    log: contents.log,
                    id: format!("{id:032x}"),
                    fingerprint: format!("{:016x}", contents.fingerprint),
                    nodes: names(&contents.nodes),
                    established: false,
                    joined: false,
                    removed: false,
                    founders: BTreeMap::new(),
                    options: contents.options.clone(),
                };
                let directory = DataDirectory { path: path.to_owned(), identity, id, _lock: lock };
                directory.write_identity()?;
                directory
            }
        };
        Ok(directory)
    }

    /// The options with which the data in a directory was made; `None` if there is no data.
    ///
    /// # Errors
    /// When the identity cannot be read, or was made without options.
    pub fn options_of(path: &Path) -> Result<Option<ClusterFile>, String> {
        let Some(identity) = read_identity(path)? else { return Ok(None) };
        let options = identity.options.ok_or_else(|| {
            format!(
                "the data in {} belongs to an embedded database or to a process of a cluster: open it with that program, or name the cluster file",
                path.display()
            )
        });
        options.map(Some)
    }

    /// The directory of a partition's files.
    pub fn partition(&self, partition: PartitionId) -> PathBuf {
        self.path.join(partition.to_string())
    }

    /// The number of the directory: random.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// By the number of the process, the directories with which this one has founded its logs; empty if it has not.
    pub fn founders(&self) -> BTreeMap<u16, u128> {
        let read = |(process, id): (&String, &String)| {
            Some((process.parse().ok()?, u128::from_str_radix(id, 16).ok()?))
        };
        self.identity.founders.iter().filter_map(read).collect()
    }

    /// Whether the nodes have joined groups that existed already.
    pub fn has_joined(&self) -> bool {
        self.identity.joined
    }

    /// Notes, before the nodes have logs, that these are founded, together with those in other directories.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn found_with(&mut self, founders: &BTreeMap<u16, u128>) -> Result<(), String> {
        let write = |(process, id): (&u16, &u128)| (process.to_string(), format!("{id:032x}"));
        self.identity.founders = founders.iter().map(write).collect();
        self.write_identity()
    }

    /// Notes, before the nodes have logs, that they join groups that exist already.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn join(&mut self) -> Result<(), String> {
        self.identity.joined = true;
        self.write_identity()
    }

    /// Notes that the replica was removed from the cluster: the data is of no use any more.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn note_removal(&mut self) -> Result<(), String> {
        self.identity.removed = true;
        self.write_identity()
    }

    /// The number of a node's log: random, and of this directory alone.
    pub fn log_id(&self, node: NodeId) -> u128 {
        log_id_of(self.id, node)
    }

    /// Whether every node has its log.
    pub fn is_established(&self) -> bool {
        self.identity.established
    }

    /// Every node has its log, durably.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub fn establish(&mut self) -> Result<(), String> {
        if !self.identity.established {
            self.identity.established = true;
            self.write_identity()?;
        }
        Ok(())
    }

    /// Writes the identity: a crash leaves the old one or the new one.
    fn write_identity(&self) -> Result<(), String> {
        let text = toml::to_string(&self.identity)
            .map_err(|error| format!("the options cannot be written as TOML: {error}"))?;
        replace_file(&self.path, IDENTITY, &text)
    }
}

/// The cluster file that is kept in a data directory, if there is one.
///
/// # Errors
/// When it cannot be read.
pub fn kept_cluster_file(directory: &Path) -> Result<Option<ClusterFile>, String> {
    let path = directory.join(CLUSTER_FILE);
    match std::fs::exists(&path) {
        Ok(true) => ClusterFile::read(&path).map(Some),
        Ok(false) => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// Keeps a cluster file in a data directory, durably; where it is.
///
/// # Errors
/// When it cannot be written.
pub fn keep_cluster_file(directory: &Path, file: &ClusterFile) -> Result<PathBuf, String> {
    replace_file(directory, CLUSTER_FILE, &file.to_text()?)?;
    Ok(directory.join(CLUSTER_FILE))
}

/// Writes a file of a directory: a crash leaves the old one or the new one.
fn replace_file(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    let (path, part) = (directory.join(name), directory.join(format!("{name}.part")));
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&part, &path)?;
        sync_directory(directory)
    };
    write().map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn names(nodes: &[NodeId]) -> Vec<String> {
    nodes.iter().map(NodeId::to_string).collect()
}

/// Keeps other processes out: takes the lock.
fn lock(directory: &Path) -> Result<Lock, String> {
    let path = directory.join(LOCK);
    let wrong = |error| format!("cannot lock {}: {error}", path.display());
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = file.map_err(wrong)?;
    acquire(directory, &file, FlockOperation::NonBlockingLockExclusive)?;
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(wrong)?;
    Ok(Lock(file))
}

/// Takes the lock of a directory in one way or the other, as long as the file is open.
fn acquire(directory: &Path, mut file: &File, operation: FlockOperation) -> Result<(), String> {
    let begun = Instant::now();
    let mut outcome = flock(file, operation);
    while outcome == Err(rustix::io::Errno::WOULDBLOCK) && begun.elapsed() < LOCK_PATIENCE {
        std::thread::sleep(LOCK_PAUSE);
        outcome = flock(file, operation);
    }
    match outcome {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            // Only for the message: it may be read before it is written.
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            let holder = if holder.is_empty() { String::new() } else { format!(" {holder}") };
            Err(format!(
                "the data directory {} is used by process{holder}: stop that process, or choose another directory",
                directory.display()
            ))
        }
        Err(error) => {
            let path = directory.join(LOCK);
            Err(format!("cannot lock {}: {}", path.display(), std::io::Error::from(error)))
        }
    }
}

fn read_identity(directory: &Path) -> Result<Option<Identity>, String> {
    /// What every format begins with.
    #[derive(Deserialize)]
    struct Any {
        format: u32,
    }
    let path = directory.join(IDENTITY);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(format!(
                "{} cannot be a data directory, it is a file or below one: choose another directory",
                directory.display()
            ));
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let damaged = |error: toml::de::Error| {
        format!("{} is damaged ({}): put back a copy of the whole directory", path.display(), error.message())
    };
    let any: Any = toml::from_str(&text).map_err(damaged)?;
    if any.format != DIRECTORY_FORMAT {
        return Err(format!(
            "the data directory {} has format {}, and this release reads {DIRECTORY_FORMAT}: start it with the release that wrote it",
            directory.display(),
            any.format
        ));
    }
    toml::from_str(&text).map(Some).map_err(damaged)
}

/// Whether the data is what is wanted; the number of the directory.
fn check_identity(path: &Path, identity: &Identity, contents: &Contents) -> Result<u128, String> {
    let directory = path.display();
    if identity.log != contents.log {
        return Err(format!(
            "the data in {directory} was made by {}, and not by {}: start with the engine with which it was made, or choose another directory",
            identity.log.engines(),
            contents.log.engines()
        ));
    }
    if identity.fingerprint != format!("{:016x}", contents.fingerprint) {
        return Err(format!(
            "the data in {directory} was made with other tables, procedures, first rows, partitions or replicas: start with the options with which it was made, or choose another directory"
        ));
    }
    let nodes = names(&contents.nodes);
    if identity.nodes != nodes {
        return Err(format!(
            "the data in {directory} is of {}, not of {}: give each process its own directory",
            identity.nodes.join(", "),
            nodes.join(", ")
        ));
    }
    if identity.removed {
        let replica = contents.nodes.first().map_or(0, |node| node.replica.0);
        return Err(format!(
            "replica {replica} was removed from the cluster, and the data in {directory} is no longer used: remove the directory; to use the replica again, add it with `ordain replica add {replica}`"
        ));
    }
    u128::from_str_radix(&identity.id, 16).map_err(|error| {
        format!("{} is damaged ({error}): put back a copy of it", path.join(IDENTITY).display())
    })
}

/// A new data directory must be empty: whatever else is in it belongs to somebody.
fn refuse_strangers(directory: &Path) -> Result<(), String> {
    let wrong = |error| format!("cannot read {}: {error}", directory.display());
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(wrong)?,
    };
    for entry in entries {
        let name = entry.map_err(wrong)?.file_name();
        if name != LOCK && name != IDENTITY_PART {
            return Err(format!(
                "{} is not a data directory (it has no {IDENTITY}) and not empty (it has {}): choose another directory, or put back its {IDENTITY}",
                directory.display(),
                name.to_string_lossy()
            ));
        }
    }
    Ok(())
}
