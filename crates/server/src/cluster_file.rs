//! The cluster file: what all processes of a cluster, and their clients, must agree on.
//!
//! `docs/cluster-file.md` explains each field. The [fingerprint](ClusterFile::fingerprint) of the file is compared whenever
//! two sides connect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use ordain_db::engine::EngineKind;
use ordain_db::position::PartitionId;
use ordain_db::procedure::Catalog;
use ordain_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::bench::options::WorkloadOptions;
use crate::process::ClusterOptions;

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
    /// Seed of the workload's rows.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The number of sites that the workload thinks of; the partitions if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<u16>,
    /// The tables, their rows and the procedures.
    pub workload: WorkloadOptions,
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

impl ClusterFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Names the file, the field, and what to do.
    pub fn read(path: &Path) -> Result<ClusterFile, String> {
        let wrong = |problem: String| format!("cluster file {}: {problem}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        ClusterFile::parse(&text).map_err(wrong)
    }

    /// Reads and checks the text of a file.
    ///
    /// # Errors
    /// Names the field and what to do.
    pub fn parse(text: &str) -> Result<ClusterFile, String> {
        let file: ClusterFile = toml::from_str(text).map_err(|error| error.to_string())?;
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
        if !self.epoch_milliseconds.is_finite() {
            return Err("epoch_milliseconds must be a number, for example 10".to_owned());
        }
        self.options().check().map_err(|problem| format!("partitions, epoch_milliseconds: {problem}"))?;
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
        self.check_partitions()
    }

    /// Every partition runs in exactly one process.
    fn check_partitions(&self) -> Result<(), String> {
        let mut owners: BTreeMap<u16, &str> = BTreeMap::new();
        for process in &self.processes {
            for partition in &process.partitions {
                if *partition >= self.partitions {
                    return Err(format!(
                        "partitions of process {}: there is no partition {partition}: they are 0 to {}; correct the list, or raise `partitions`",
                        process.name,
                        self.partitions - 1
                    ));
                }
                if let Some(other) = owners.insert(*partition, &process.name) {
                    return Err(format!(
                        "partitions: partition {partition} is listed by {other} and by {}: leave it to one",
                        process.name
                    ));
                }
            }
        }
        match (0..self.partitions).find(|partition| !owners.contains_key(partition)) {
            None => Ok(()),
            Some(partition) => Err(format!(
                "partitions: no process runs partition {partition}: add it to the `partitions` of one"
            )),
        }
    }

    /// What the partitions' threads need to know.
    pub fn options(&self) -> ClusterOptions {
        let epoch = Duration::from_secs_f64((self.epoch_milliseconds / 1e3).clamp(0.0, 1e6));
        ClusterOptions { partitions: self.partitions, engine: self.engine, epoch }
    }

    /// Makes the workload.
    ///
    /// # Errors
    /// When an option of it is out of range.
    pub fn workload(&self) -> Result<Box<dyn Workload>, String> {
        let workload = self.workload.workload(self.partitions, self.sites, self.seed);
        workload.map_err(|problem| format!("[workload]: {problem}"))
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

    /// For each partition the number of the process that runs it.
    pub fn process_of_partitions(&self) -> Vec<u16> {
        let mut owners = vec![0; usize::from(self.partitions)];
        for (number, process) in self.processes.iter().enumerate() {
            for partition in &process.partitions {
                owners[usize::from(*partition)] = number as u16;
            }
        }
        owners
    }

    /// Tells whether two sides mean the same cluster: a hash of the file's contents with defaults filled in, of the names of
    /// the tables and procedures in order, and of this release. Never 0.
    ///
    /// Addresses do not count: who looks from another network may have to use others. Comments and the order of fields do not
    /// either.
    pub fn fingerprint(&self, catalog: &Catalog) -> u64 {
        let mut canonical = self.clone();
        canonical.sites = Some(self.sites.unwrap_or(self.partitions));
        for process in &mut canonical.processes {
            process.address.clear();
            process.listen = None;
            process.partitions.sort_unstable();
        }
        let tables: Vec<&str> = catalog.schema.tables().iter().map(|table| table.name()).collect();
        let procedures: Vec<&str> = catalog.procedures.names().collect();
        let all = (env!("CARGO_PKG_VERSION"), &canonical, tables, procedures);
        let text = serde_json::to_string(&all).expect("a cluster file has a JSON form");
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

fn check_address(address: &str) -> Result<(), String> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
        None => Err(format!("{address:?} must be host:port")),
        Some(0) => Err(format!("{address:?} has port 0, which nobody can connect to: choose a port")),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(file.process_of_partitions(), [0, 1]);
        assert_eq!(file.number_of("b"), Ok(1));
        assert_eq!(file.processes[1].listen(), "127.0.0.1:7401");
        assert!(file.number_of("c").unwrap_err().contains("choose one of a, b"));
        assert_eq!(file.workload().unwrap().name(), "bank");
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
            ("partitions = 2", "partitions = 2\nepoch_milliseconds = 0", "an epoch must last"),
            ("partitions = 2", "partitions = 2\nsites = 0", "sites must be at least 1"),
            ("partitions = 2", "partitions = 2\nengine = \"magic\"", "unknown variant `magic`"),
            ("partitions = 2", "partitions = 2\nepoch = 10", "unknown field `epoch`"),
            ("partitions = 2\n", "", "missing field `partitions`"),
            ("[0]", "[]", "the list is empty"),
            ("[0]", "[0, 1]", "partition 1 is listed by a and by b"),
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
        ];
        for (from, to) in same {
            assert_eq!(fingerprint(SMALL), fingerprint(&SMALL.replace(from, to)), "{to}");
        }
        let other = [
            ("partitions = 2", "partitions = 2\nseed = 2"),
            ("partitions = 2", "partitions = 2\nengine = \"serial\""),
            ("partitions = 2", "partitions = 2\nepoch_milliseconds = 5"),
            ("\"b\"", "\"c\""),
            ("accounts = 100", "accounts = 101"),
            ("name = \"bank\"\naccounts = 100", "name = \"micro\""),
        ];
        for (from, to) in other {
            assert!(SMALL.contains(from), "{from}");
            assert_ne!(fingerprint(SMALL), fingerprint(&SMALL.replace(from, to)), "{to}");
        }
    }

    #[test]
    fn the_example_in_the_documentation_is_a_cluster_file() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster-file.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let file = ClusterFile::parse(example).unwrap();
        file.workload().unwrap();
    }
}
