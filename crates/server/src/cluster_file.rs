//! The cluster file: what all processes of a cluster, and their clients, must agree on.
//!
//! `docs/cluster-file.md` explains each field. The [fingerprint](ClusterFile::fingerprint) of the file is compared whenever
//! two sides connect.

mod durability;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_db::procedure::Catalog;
use ordain_db::sequencer::EpochPolicy;
use ordain_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::bench::options::WorkloadOptions;
use crate::durable::{DurableOptions, ReplicationMode, check_engine};
use crate::process::ClusterOptions;
use crate::quantity::{EPOCH_MILLISECONDS, LOCK_WAIT_MILLISECONDS, seconds};
use crate::sql::workload::WithSql;
pub use durability::DurabilityEntry;

/// Longest name of a process in bytes.
pub const PROCESS_NAME_BYTES_MAX: usize = 64;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// Number of partitions in the cluster.
    pub partitions: u16,
    /// The engine that every partition runs.
    #[serde(default = "default_engine")]
    pub engine: EngineKind,
    /// The length of an epoch.
    #[serde(default = "default_epoch_milliseconds")]
    pub epoch_milliseconds: f64,
    /// Who decides when epochs close.
    #[serde(default, skip_serializing_if = "is_default")]
    pub epochs: EpochPolicy,
    /// How long a transaction of `two-phase` waits for locks before it begins again; none: as long as no deadlock is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait_milliseconds: Option<f64>,
    /// When transactions of the engine `two-phase` ask for their locks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub locks: LockRequests,
    /// Whether transactions of the engine `two-phase` wait at the door while many wait for locks.
    #[serde(default = "yes", skip_serializing_if = "bool::clone")]
    pub load_control: bool,
    /// Whether nodes take on less where they lag behind the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub throttle: bool,
    /// Seed of the workload's rows.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The number of sites that the workload thinks of; the partitions if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<u16>,
    /// Whether clients of SQL have tables of their own beside those of the workload, and can call its procedures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_sql: bool,
    /// The tables, their rows and the procedures.
    pub workload: WorkloadOptions,
    /// How the log of each partition is replicated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replication: ReplicationEntry,
    /// How much of the log is kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub durability: DurabilityEntry,
    /// The processes; their place in the list is their number.
    #[serde(rename = "process")]
    pub processes: Vec<ProcessEntry>,
}

/// A process of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessEntry {
    /// The name by which it is started and logged.
    pub name: String,
    /// Where others reach it, `host:port`.
    pub address: String,
    /// Where it listens, if that differs: behind a proxy, or on all interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// The partitions that it runs.
    pub partitions: Vec<u16>,
    /// The replica of them that it runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replica: u16,
    /// Where it keeps its data; in memory only if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_directory: Option<PathBuf>,
}

/// How the log of each partition is replicated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplicationEntry {
    /// When a transaction counts as committed.
    pub mode: ReplicationMode,
    /// Groups of replicas near each other whose nodes all tell each other what only those of one replica would have to, so that
    /// the loss of a node goes unnoticed. A replica that is in none cares for itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subgroups: Vec<Vec<u16>>,
}

impl ReplicationEntry {
    /// What is wrong with the subgroups of so many replicas.
    fn check_subgroups(&self, replicas: u16) -> Result<(), String> {
        if self.mode != ReplicationMode::Sync && !self.subgroups.is_empty() {
            return Err(
                "subgroups: they need the mode \"sync\": leave them out, or change the mode".to_owned()
            );
        }
        let mut seen = BTreeSet::new();
        for replica in self.subgroups.iter().flatten() {
            if *replica >= replicas {
                return Err(format!(
                    "subgroups: there is no replica {replica}: there are {replicas}, numbered from 0"
                ));
            }
            if !seen.insert(replica) {
                return Err(format!(
                    "subgroups: replica {replica} comes twice: it can be in one of them only"
                ));
            }
        }
        Ok(())
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_engine() -> EngineKind {
    ClusterOptions::default().engine
}

fn default_epoch_milliseconds() -> f64 {
    ClusterOptions::default().epoch.as_secs_f64() * 1e3
}

fn default_seed() -> u64 {
    1
}

fn yes() -> bool {
    true
}

impl ClusterFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Names the file, the field, and what to do.
    pub fn read(path: &Path) -> Result<ClusterFile, String> {
        let wrong = |problem: String| format!("cluster file {}: {problem}", path.display());
        let unread = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => wrong("there is no such file: check the path".to_owned()),
            _ => wrong(format!("cannot be read: {error}")),
        };
        let text = std::fs::read_to_string(path).map_err(unread)?;
        ClusterFile::parse(&text).map_err(wrong)
    }

    /// Reads and checks the text of a file.
    ///
    /// # Errors
    /// Names the field and what to do.
    pub fn parse(text: &str) -> Result<ClusterFile, String> {
        /// What is in the file itself, and no default.
        #[derive(Deserialize)]
        struct Written {
            epoch_milliseconds: Option<f64>,
        }
        let mut file: ClusterFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        if written.epoch_milliseconds.is_none() {
            file.epoch_milliseconds = file.epochs.default_microseconds() as f64 / 1e3;
        }
        file.check()?;
        Ok(file)
    }

    /// The text of a file that says the same.
    ///
    /// # Errors
    /// When a value has no TOML form.
    pub fn to_text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| format!("the cluster file cannot be written as TOML: {error}"))
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// Names the field and what to do.
    pub fn check(&self) -> Result<(), String> {
        if !EPOCH_MILLISECONDS.contains(&self.epoch_milliseconds) {
            let (min, max) = (EPOCH_MILLISECONDS.start(), EPOCH_MILLISECONDS.end());
            return Err(format!(
                "epoch_milliseconds must be a number from {min} to {max}, for example 10, not {}",
                self.epoch_milliseconds
            ));
        }
        if self.lock_wait_milliseconds.is_some_and(|wait| !LOCK_WAIT_MILLISECONDS.contains(&wait)) {
            let (min, max) = (LOCK_WAIT_MILLISECONDS.start(), LOCK_WAIT_MILLISECONDS.end());
            return Err(format!(
                "lock_wait_milliseconds must be a number from {min} to {max}, for example 100"
            ));
        }
        self.options().check()?;
        if self.processes.iter().any(|process| process.data_directory.is_some()) {
            check_engine(&self.options()).map_err(|problem| format!("engine: {problem}"))?;
        }
        if self.sites == Some(0) {
            return Err("sites must be at least 1: leave it out to have one for each partition".to_owned());
        }
        if self.processes.is_empty() {
            return Err("there is no process: add a [[process]] with name, address and partitions".to_owned());
        }
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeMap::new());
        for process in &self.processes {
            process.check()?;
            if !names.insert(&process.name) {
                return Err(format!(
                    "name: two processes are named {:?}: give each a name of its own",
                    process.name
                ));
            }
            if let Some(other) = addresses.insert(&process.address, &process.name) {
                let (name, address) = (&process.name, &process.address);
                return Err(format!(
                    "address: {other} and {name} are both at {address}: give each an address of its own"
                ));
            }
        }
        self.check_nodes()?;
        self.check_durability()
    }

    /// Every partition of every replica runs in exactly one process.
    fn check_nodes(&self) -> Result<(), String> {
        let mut owners: BTreeMap<(u16, u16), &str> = BTreeMap::new();
        for process in &self.processes {
            for partition in &process.partitions {
                if *partition >= self.partitions {
                    return Err(format!(
                        "partitions of process {}: there is no partition {partition}: they are 0 to {}; correct the list, or raise `partitions`",
                        process.name,
                        self.partitions - 1
                    ));
                }
                if let Some(other) = owners.insert((process.replica, *partition), &process.name) {
                    return Err(format!(
                        "partitions: partition {partition} is listed by {other} and by {}, both of replica {}: leave it to one, or give one of them another `replica`",
                        process.name, process.replica
                    ));
                }
            }
        }
        let nodes = (0..self.replicas())
            .flat_map(|replica| (0..self.partitions).map(move |partition| (replica, partition)));
        match { nodes }.find(|node| !owners.contains_key(node)) {
            None => Ok(()),
            Some((replica, partition)) if self.replicas() > 1 => Err(format!(
                "partitions: no process of replica {replica} runs partition {partition}: add it to the `partitions` of one; replicas are numbered from 0 and each has all partitions"
            )),
            Some((_, partition)) => Err(format!(
                "partitions: no process runs partition {partition}: add it to the `partitions` of one"
            )),
        }
    }

    /// What is replicated is kept, and what is kept is kept everywhere.
    fn check_durability(&self) -> Result<(), String> {
        let replicas = self.replicas();
        if self.replication.mode == ReplicationMode::None && replicas > 1 {
            return Err(format!(
                "replication: mode is \"none\" and there are {replicas} replicas: choose \"sync\", or leave `replica` out everywhere"
            ));
        }
        if self.replication.mode != ReplicationMode::None && !self.engine.is_ordered() {
            return Err(format!(
                "engine: {} has one replica and no agreement: set the mode of replication to \"none\", or choose calvin",
                self.engine.name()
            ));
        }
        self.replication.check_subgroups(replicas)?;
        let without = self.processes.iter().find(|process| process.data_directory.is_none());
        let with = self.processes.iter().find(|process| process.data_directory.is_some());
        if let Some(without) = without {
            if self.replication.mode != ReplicationMode::None {
                return Err(format!(
                    "data_directory of process {}: it is missing, and a replicated log is kept on disk: name a directory, or set the mode of replication to \"none\"",
                    without.name
                ));
            }
            if let Some(with) = with {
                return Err(format!(
                    "data_directory: process {} has one and {} has none: name one for each process, or for none",
                    with.name, without.name
                ));
            }
        }
        self.durable_options(Path::new("")).check().map_err(|problem| format!("durability: {problem}"))
    }

    /// Number of replicas.
    pub fn replicas(&self) -> u16 {
        self.processes.iter().map(|process| process.replica).max().map_or(1, |last| last.saturating_add(1))
    }

    /// Whether the cluster keeps what it acknowledges.
    pub fn is_durable(&self) -> bool {
        self.processes.iter().any(|process| process.data_directory.is_some())
    }

    /// How a process keeps its data in a directory.
    pub fn durable_options(&self, directory: &Path) -> DurableOptions {
        DurableOptions {
            replication: self.replication.mode,
            subgroups: self.replication.subgroups.clone(),
            ..self.durability.options(directory)
        }
    }

    /// A cluster of one process that keeps its data.
    pub fn single(
        name: &str,
        address: &str,
        directory: &Path,
        options: &ClusterOptions,
        workload: &WorkloadOptions,
    ) -> ClusterFile {
        ClusterFile {
            partitions: options.partitions,
            engine: options.engine,
            epoch_milliseconds: options.epoch.as_secs_f64() * 1e3,
            epochs: options.epochs,
            lock_wait_milliseconds: options.lock_wait.map(|wait| wait.as_secs_f64() * 1e3),
            locks: options.locks,
            load_control: options.load_control,
            throttle: options.throttle,
            seed: default_seed(),
            sites: None,
            with_sql: false,
            workload: workload.clone(),
            replication: ReplicationEntry::default(),
            durability: DurabilityEntry::default(),
            processes: vec![ProcessEntry {
                name: name.to_owned(),
                address: address.to_owned(),
                listen: None,
                partitions: (0..options.partitions).collect(),
                replica: 0,
                data_directory: Some(directory.to_owned()),
            }],
        }
    }

    /// What the partitions' threads need to know.
    pub fn options(&self) -> ClusterOptions {
        ClusterOptions {
            partitions: self.partitions,
            replicas: self.replicas(),
            engine: self.engine,
            epoch: seconds(self.epoch_milliseconds / 1e3),
            epochs: self.epochs,
            lock_wait: self.lock_wait_milliseconds.map(|wait| seconds(wait / 1e3)),
            locks: self.locks,
            load_control: self.load_control,
            throttle: self.throttle,
        }
    }

    /// Makes the workload.
    ///
    /// # Errors
    /// When an option of it is out of range.
    pub fn workload(&self) -> Result<Box<dyn Workload>, String> {
        let workload = self.workload.workload(self.partitions, self.sites, self.seed);
        let workload = workload.map_err(|problem| format!("[workload]: {problem}"))?;
        if !self.with_sql || self.workload == WorkloadOptions::Sql {
            return Ok(workload);
        }
        Ok(Box::new(WithSql::new(workload).map_err(|problem| format!("with_sql: {problem}"))?))
    }

    /// The number of a process.
    ///
    /// # Errors
    /// When there is none of that name; says which there are.
    pub fn number_of(&self, name: &str) -> Result<u16, String> {
        let place = self.processes.iter().position(|process| process.name == name);
        place.map(|place| place as u16).ok_or_else(|| {
            let names: Vec<&str> = self.processes.iter().map(|process| process.name.as_str()).collect();
            format!(
                "the cluster file has no process named {name:?}: choose one of {}, or add it",
                names.join(", ")
            )
        })
    }

    /// For each node the number of the process that runs it: by replica, and within a replica by partition.
    pub fn process_of_nodes(&self) -> Vec<u16> {
        let partitions = usize::from(self.partitions);
        let mut owners = vec![0; usize::from(self.replicas()) * partitions];
        for (number, process) in self.processes.iter().enumerate() {
            for partition in &process.partitions {
                owners[usize::from(process.replica) * partitions + usize::from(*partition)] = number as u16;
            }
        }
        owners
    }

    /// The number of the process that runs a node, if there is such a node.
    pub fn process_of(&self, node: NodeId) -> Option<u16> {
        let runs = |process: &ProcessEntry| {
            process.replica == node.replica.0 && process.partitions.contains(&node.partition.0)
        };
        self.processes.iter().position(runs).map(|number| number as u16)
    }

    /// Tells whether two sides mean the same cluster: a hash of the file's contents with defaults filled in, of the names of
    /// the tables and procedures in order, and of this release. Never 0.
    ///
    /// The processes do not count, as their list may grow: see [`ClusterFile::peer_fingerprint`]. Nor do subgroups, the limits of
    /// the log, comments and the order of fields.
    pub fn fingerprint(&self, catalog: &Catalog) -> u64 {
        let mut canonical = self.clone();
        canonical.sites = Some(self.sites.unwrap_or(self.partitions));
        canonical.processes.clear();
        canonical.durability = DurabilityEntry::default();
        canonical.replication.subgroups.clear();
        let tables: Vec<&str> = catalog.schema.tables().iter().map(|table| table.name()).collect();
        let procedures: Vec<&str> = catalog.procedures.names().collect();
        let all = (env!("CARGO_PKG_VERSION"), &canonical, self.is_durable(), tables, procedures);
        let text = serde_json::to_string(&all).expect("a cluster file has a JSON form");
        xxhash_rust::xxh3::xxh3_64(text.as_bytes()).max(1)
    }

    /// Tells whether two processes mean the same cluster and the same two processes: their names, and what they run, count
    /// besides the [`ClusterFile::fingerprint`]; so files agree of which one has more processes than the other. The same in
    /// both directions, and never 0.
    ///
    /// Addresses and directories do not count: who looks from another network may have to use others.
    pub fn peer_fingerprint(&self, catalog: &Catalog, one: u16, other: u16) -> u64 {
        let described = [one.min(other), one.max(other)].map(|number| {
            let process = self.processes.get(usize::from(number));
            (number, process.map(|process| (&process.name, process.replica, process.partitions())))
        });
        let text = format!("{:016x} {described:?}", self.fingerprint(catalog));
        xxhash_rust::xxh3::xxh3_64(text.as_bytes()).max(1)
    }

    /// This file with the processes that another one has in addition, which must all be of additional replicas. The addresses
    /// and directories of the processes that both have stay those of this file.
    ///
    /// # Errors
    /// When the other file does not only add replicas to this one; says what differs.
    pub fn grown_to(&self, larger: &ClusterFile, catalog: &Catalog) -> Result<ClusterFile, String> {
        if larger.fingerprint(catalog) != self.fingerprint(catalog) {
            return Err(
                "it differs in more than its processes: take the file that the cluster was started with, and add processes"
                    .to_owned(),
            );
        }
        for (number, own) in self.processes.iter().enumerate() {
            let other = larger.processes.get(number);
            let same = |other: &ProcessEntry| {
                (&own.name, own.replica, own.partitions()) == (&other.name, other.replica, other.partitions())
            };
            if !other.is_some_and(same) {
                return Err(format!(
                    "process {number}, {}, is not as it was: keep all processes, in their order, and add new ones behind them",
                    own.name
                ));
            }
        }
        let mut grown = self.clone();
        for added in larger.processes.iter().skip(self.processes.len()) {
            if added.replica < self.replicas() {
                return Err(format!(
                    "process {} is of replica {}, which has all its partitions already: add processes of replica {}",
                    added.name,
                    added.replica,
                    self.replicas()
                ));
            }
            grown.processes.push(added.clone());
        }
        grown.check()?;
        Ok(grown)
    }

    /// Stands for what the data on disk depends on: tables, procedures and first rows, partitions and whether they are
    /// replicated. The same for every release that reads the same formats, which have versions of their own. Never 0.
    pub fn data_fingerprint(&self, catalog: &Catalog) -> u64 {
        let tables: Vec<&str> = catalog.schema.tables().iter().map(|table| table.name()).collect();
        let procedures: Vec<&str> = catalog.procedures.names().collect();
        let sites = self.sites.unwrap_or(self.partitions);
        let made_of =
            (self.partitions, self.replication.mode, self.seed, sites, &self.workload, tables, procedures);
        let text = serde_json::to_string(&made_of).expect("the options of a workload have a JSON form");
        xxhash_rust::xxh3::xxh3_64(text.as_bytes()).max(1)
    }
}

impl ProcessEntry {
    /// Where the process listens.
    pub fn listen(&self) -> &str {
        self.listen.as_deref().unwrap_or(&self.address)
    }

    /// The partitions that it runs.
    pub fn partitions(&self) -> Vec<PartitionId> {
        let mut partitions: Vec<PartitionId> = self.partitions.iter().copied().map(PartitionId).collect();
        partitions.sort_unstable();
        partitions
    }

    /// The nodes that it runs.
    pub fn nodes(&self) -> Vec<NodeId> {
        let replica = ReplicaId(self.replica);
        self.partitions().into_iter().map(|partition| NodeId { partition, replica }).collect()
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name.is_empty() || name.len() > PROCESS_NAME_BYTES_MAX || !name.chars().all(plain) {
            return Err(format!(
                "name of a process: {name:?} must be 1 to {PROCESS_NAME_BYTES_MAX} letters, digits and any of - _ ."
            ));
        }
        check_address(&self.address)
            .map_err(|problem| format!("address of process {name}: {problem}, for example 10.0.0.1:7400"))?;
        check_address(self.listen())
            .map_err(|problem| format!("listen of process {name}: {problem}, for example 0.0.0.0:7400"))?;
        if self.partitions.is_empty() {
            return Err(format!(
                "partitions of process {name}: the list is empty: give it partitions, or remove the process"
            ));
        }
        Ok(())
    }
}

/// The port of an address; `None` if that is not a host and a port.
pub fn port_of(address: &str) -> Option<u16> {
    let (_, port) = address.rsplit_once(':').filter(|(host, _)| !host.is_empty())?;
    port.parse().ok()
}

fn check_address(address: &str) -> Result<(), String> {
    match port_of(address) {
        None => Err(format!("{address:?} must be host:port")),
        Some(0) => Err(format!("{address:?} has port 0, which nobody can connect to: choose a port")),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ordain_db::sequencer::EpochOptions;

    use super::*;

    const SMALL: &str = r#"
partitions = 2
[workload]
name = "bank"
accounts = 100
[[process]]
name = "a"
address = "127.0.0.1:7400"
partitions = [0]
[[process]]
name = "b"
address = "127.0.0.1:7401"
partitions = [1]
"#;

    /// The error after replacing a part of the small file.
    fn refused(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        ClusterFile::parse(&SMALL.replace(from, to)).unwrap_err()
    }

    fn fingerprint(text: &str) -> u64 {
        let file = ClusterFile::parse(text).unwrap();
        file.fingerprint(file.workload().unwrap().catalog())
    }

    #[test]
    fn a_small_file_gets_the_defaults() {
        let file = ClusterFile::parse(SMALL).unwrap();
        assert_eq!((file.engine, file.seed, file.sites), (EngineKind::Calvin, 1, None));
        assert_eq!(file.options().epoch, Duration::from_millis(10));
        assert_eq!(file.process_of_nodes(), [0, 1]);
        assert_eq!(file.number_of("b"), Ok(1));
        assert_eq!(file.processes[1].listen(), "127.0.0.1:7401");
        assert!(file.number_of("c").unwrap_err().contains("choose one of a, b"));
        assert_eq!(file.workload().unwrap().name(), "bank");
    }

    #[test]
    fn epochs_with_a_manager_are_longer() {
        let epochs = |lines: &str| {
            let text = SMALL.replace("partitions = 2", &format!("partitions = 2\n{lines}"));
            ClusterFile::parse(&text).unwrap().options().epochs()
        };
        assert_eq!(epochs(""), EpochOptions { policy: EpochPolicy::Adaptive, microseconds: 10_000 });
        let managed = EpochOptions { policy: EpochPolicy::Managed, microseconds: 25_000 };
        assert_eq!(epochs("epochs = \"managed\""), managed);
        let strict = EpochOptions { policy: EpochPolicy::ManagedStrictly, microseconds: 10_000 };
        assert_eq!(epochs("epochs = \"managed-strictly\"\nepoch_milliseconds = 10"), strict);
    }

    #[test]
    fn a_written_file_reads_the_same() {
        let mut file = ClusterFile::parse(SMALL).unwrap();
        (file.sites, file.processes[0].listen) = (Some(4), Some("0.0.0.0:1".to_owned()));
        assert_eq!(ClusterFile::parse(&file.to_text().unwrap()), Ok(file.clone()));
        file.seed = u64::MAX;
        assert_eq!(ClusterFile::parse(&file.to_text().unwrap()), Ok(file));
    }

    #[test]
    fn mistakes_are_named_with_what_to_do() {
        let cases = [
            ("partitions = 2", "partitions = 3", "no process runs partition 2: add it"),
            ("partitions = 2", "partitions = 1", "there is no partition 1"),
            ("partitions = 2", "partitions = 0", "must be 1 to 256"),
            (
                "partitions = 2",
                "partitions = 2\nepoch_milliseconds = nan",
                "epoch_milliseconds must be a number",
            ),
            ("partitions = 2", "partitions = 2\nepoch_milliseconds = 0", "a number from 0.001 to 10000"),
            ("partitions = 2", "partitions = 2\nsites = 0", "sites must be at least 1"),
            ("partitions = 2", "partitions = 2\nengine = \"magic\"", "unknown variant `magic`"),
            ("partitions = 2", "partitions = 2\nengine = \"two-phase-without\"", "unknown variant"),
            (
                "partitions = 2",
                "partitions = 2\nlock_wait_milliseconds = 5",
                "lock_wait_milliseconds: calvin has no deadlocks",
            ),
            (
                "partitions = 2",
                "partitions = 2\nlocks = \"as-it-goes\"",
                "locks: calvin asks for them in the order of transactions: leave it out",
            ),
            ("partitions = 2", "partitions = 2\nload_control = false", "load_control: calvin has none"),
            (
                "partitions = 2",
                "partitions = 2\nengine = \"two-phase\"\nlock_wait_milliseconds = 0",
                "a number from 0.001 to",
            ),
            ("partitions = 2", "partitions = 2\nepoch = 10", "unknown field `epoch`"),
            (
                "partitions = 2",
                "partitions = 2\nepochs = \"strict\"",
                "expected one of `adaptive`, `managed`, `managed-strictly`",
            ),
            (
                "partitions = 2",
                "partitions = 2\nengine = \"two-phase\"\nepochs = \"managed\"",
                "has no epochs for a manager",
            ),
            ("partitions = 2\n", "", "missing field `partitions`"),
            ("[0]", "[]", "the list is empty"),
            ("[0]", "[0, 1]", "partition 1 is listed by a and by b"),
            ("[1]", "[1]\nreplica = 1", "no process of replica 0 runs partition 1"),
            ("[0]", "[0]\ndata_directory = \"/a\"", "process a has one and b has none"),
            (
                "[[process]]\nname = \"a\"",
                "[replication]\nmode = \"sync\"\n[[process]]\nname = \"a\"",
                "data_directory of process a: it is missing",
            ),
            (
                "[[process]]\nname = \"a\"",
                "[durability]\nlog_mib = 1\n[[process]]\nname = \"a\"",
                "the log of a partition must be allowed",
            ),
            (
                "[[process]]\nname = \"a\"",
                "[durability]\ncheckpoint_seconds = 0\n[[process]]\nname = \"a\"",
                "checkpoints must be",
            ),
            ("\"b\"", "\"a\"", "two processes are named \"a\""),
            ("\"b\"", "\"two words\"", "letters, digits"),
            (":7401", ":7400", "a and b are both at 127.0.0.1:7400"),
            ("127.0.0.1:7401", "localhost", "must be host:port"),
            (":7401", ":0", "choose a port"),
            ("name = \"b\"", "name = \"b\"\nport = 1", "unknown field `port`"),
            ("\"bank\"", "\"casino\"", "unknown variant `casino`"),
            ("accounts = 100", "acounts = 100", "unknown field `acounts`"),
        ];
        for (from, to, expected) in cases {
            let error = refused(from, to);
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn the_fingerprint_depends_on_what_matters_alone() {
        let same = [
            ("partitions = 2", "# a comment\npartitions = 2\nsites = 2\nseed = 1"),
            (":7401\"", ":7402\"\nlisten = \"0.0.0.0:7401\""),
            ("[[process]]\nname = \"a\"", "[durability]\nlog_mib = 1000\n[[process]]\nname = \"a\""),
            ("\"b\"", "\"c\""),
        ];
        for (from, to) in same {
            assert_eq!(fingerprint(SMALL), fingerprint(&SMALL.replace(from, to)), "{to}");
        }
        let other = [
            ("partitions = 2", "partitions = 2\nseed = 2"),
            ("partitions = 2", "partitions = 2\nengine = \"serial\""),
            ("partitions = 2", "partitions = 2\nepoch_milliseconds = 5"),
            ("partitions = 2", "partitions = 2\nepoch_milliseconds = 10\nepochs = \"managed\""),
            ("accounts = 100", "accounts = 101"),
            ("name = \"bank\"\naccounts = 100", "name = \"micro\""),
        ];
        for (from, to) in other {
            assert!(SMALL.contains(from), "{from}");
            assert_ne!(fingerprint(SMALL), fingerprint(&SMALL.replace(from, to)), "{to}");
        }
    }

    #[test]
    fn an_engine_that_cannot_go_on_gets_no_directories() {
        let text =
            SMALL.replace("partitions = 2", "partitions = 2\nengine = \"two-phase-without-commit-protocol\"");
        assert!(ClusterFile::parse(&text).is_ok());
        let durable = text.replace("partitions = [0", "data_directory = \"/d\"\npartitions = [0");
        let refused = ClusterFile::parse(&durable).unwrap_err().to_string();
        assert!(refused.contains("leaves transactions half done"), "{refused}");
    }

    /// A file with a replica in each process.
    fn replicated(replicas: u16) -> ClusterFile {
        let mut text =
            "partitions = 2\n[workload]\nname = \"bank\"\n[replication]\nmode = \"sync\"\n".to_owned();
        for replica in 0..replicas {
            text += &format!(
                "[[process]]\nname = \"r{replica}\"\naddress = \"h:{}\"\npartitions = [0, 1]\nreplica = {replica}\ndata_directory = \"/d\"\n",
                replica + 1
            );
        }
        ClusterFile::parse(&text).unwrap()
    }

    #[test]
    fn subgroups_are_of_replicas_that_exist_and_agree_before_they_execute() {
        let mut file = replicated(3);
        for (subgroups, problem) in [
            (vec![vec![0, 1], vec![2]], None),
            (vec![vec![0, 3]], Some("subgroups: there is no replica 3: there are 3, numbered from 0")),
            (
                vec![vec![0, 1], vec![1, 2]],
                Some("subgroups: replica 1 comes twice: it can be in one of them only"),
            ),
        ] {
            file.replication.subgroups = subgroups;
            assert_eq!(file.check().err().as_deref(), problem);
        }
        file.replication.subgroups = vec![vec![0, 1]];
        assert_eq!(ClusterFile::parse(&file.to_text().unwrap()).unwrap(), file);
        let catalog = file.workload().unwrap().catalog().clone();
        assert_eq!(file.fingerprint(&catalog), replicated(3).fingerprint(&catalog), "processes may differ");
        file.replication.mode = ReplicationMode::Async;
        assert!(file.check().unwrap_err().contains("need the mode \"sync\""));
    }

    #[test]
    fn processes_agree_as_long_as_each_knows_the_other() {
        let (small, large) = (replicated(2), replicated(3));
        let catalog = small.workload().unwrap().catalog().clone();
        assert_eq!(small.fingerprint(&catalog), large.fingerprint(&catalog));
        assert_eq!(small.data_fingerprint(&catalog), large.data_fingerprint(&catalog));
        let between = |file: &ClusterFile, one, other| file.peer_fingerprint(&catalog, one, other);
        assert_eq!(between(&small, 0, 1), between(&large, 1, 0));
        assert_ne!(between(&large, 0, 1), between(&large, 0, 2));
        let mut moved = large.clone();
        moved.processes[1].address = "elsewhere:1".to_owned();
        assert_eq!(between(&moved, 0, 1), between(&large, 0, 1));
        moved.processes[1].name = "other".to_owned();
        assert_ne!(between(&moved, 0, 1), between(&large, 0, 1));
    }

    #[test]
    fn a_file_grows_by_replicas_and_nothing_else() {
        let (mut small, large) = (replicated(2), replicated(3));
        let catalog = small.workload().unwrap().catalog().clone();
        small.processes[0].address = "own:1".to_owned();
        let grown = small.grown_to(&large, &catalog).unwrap();
        assert_eq!((grown.replicas(), &*grown.processes[0].address), (3, "own:1"));
        assert_eq!(grown.grown_to(&large, &catalog), Ok(grown.clone()), "again");
        assert!(large.grown_to(&small, &catalog).unwrap_err().contains("keep all processes"));
        let mut other = large.clone();
        other.processes.swap(0, 1);
        assert!(small.grown_to(&other, &catalog).unwrap_err().contains("keep all processes"));
        other = large.clone();
        other.seed += 1;
        assert!(small.grown_to(&other, &catalog).unwrap_err().contains("more than its processes"));
    }

    #[test]
    fn the_example_in_the_documentation_is_a_cluster_file() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster-file.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let file = ClusterFile::parse(example).unwrap();
        file.workload().unwrap();
        // The cluster of Calvin's Figure 1.
        let (_, rest) = rest.split_once("Figure 1").unwrap();
        let (_, rest) = rest.split_once("\n\n").unwrap();
        let (figure, _) = rest.split_once("\n\n").unwrap();
        let mut figure = ClusterFile::parse(figure).unwrap();
        assert_eq!((figure.partitions, figure.replicas()), (2, 2));
        assert_eq!(figure.process_of_nodes(), [0, 1, 2, 3]);
        figure.replication.mode = ReplicationMode::None;
        assert!(figure.check().unwrap_err().contains("there are 2 replicas"));
    }
}
