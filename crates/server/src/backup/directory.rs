//! The identity of a data directory, as a backup needs it: read without taking the directory, and written for a new one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ordain_consensus::ReplicaId;
use ordain_consensus::disk_log::LogId;
use ordain_db::position::{NodeId, PartitionId};
use toml::{Table, Value};

use crate::data_directory::{DIRECTORY_FORMAT, IDENTITY, LogKind, log_id_of};
use crate::files::sync_directory;

/// The file `ORDAIN` of a data directory. What a backup does not know of it is kept as it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Identity {
    table: Table,
    id: u128,
    nodes: Vec<NodeId>,
    log: LogKind,
}

impl Identity {
    /// Reads that of a directory.
    ///
    /// # Errors
    /// When there is none, or none of this format.
    pub fn read(directory: &Path) -> Result<Identity, String> {
        let path = directory.join(IDENTITY);
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "{} is no data directory, it has no file {IDENTITY}: name another one",
                    directory.display()
                )
            }
            _ => format!("cannot read {}: {error}", path.display()),
        })?;
        Identity::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Identity, String> {
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| format!("it is damaged: {}", error.message()))?;
        let format = table.get("format").and_then(Value::as_integer);
        if format != Some(i64::from(DIRECTORY_FORMAT)) {
            let found = format.map_or_else(|| "no".to_owned(), |format| format.to_string());
            return Err(format!(
                "it has format {found}, and this release knows {DIRECTORY_FORMAT}: use the release that wrote it"
            ));
        }
        let id = table.get("id").and_then(Value::as_str).and_then(|id| u128::from_str_radix(id, 16).ok());
        let nodes = table.get("nodes").and_then(Value::as_array).and_then(|nodes| {
            nodes.iter().map(|node| node.as_str().and_then(parse_node)).collect::<Option<Vec<NodeId>>>()
        });
        let id = id.ok_or("it is damaged: it has no `id`")?;
        let nodes = nodes.filter(|nodes| !nodes.is_empty()).ok_or("it is damaged: it has no `nodes`")?;
        let log = table.get("log").and_then(|log| log.clone().try_into().ok());
        let log = log.ok_or("it is damaged: it has no `log`")?;
        Ok(Identity { table, id, nodes, log })
    }

    /// The random number of the directory.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// The nodes whose files are there.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// What tells the database from others, in hexadecimal.
    pub fn fingerprint(&self) -> &str {
        self.table.get("fingerprint").and_then(Value::as_str).unwrap_or_default()
    }

    /// What the logs hold.
    pub fn log(&self) -> LogKind {
        self.log
    }

    /// The number of partitions of the whole database, if the options are there.
    pub fn partitions(&self) -> Option<u16> {
        let options = self.table.get("options")?.as_table()?;
        u16::try_from(options.get("partitions")?.as_integer()?).ok()
    }

    /// Whether it is known that no other replica has the data: that of a database of its own.
    pub fn is_alone(&self) -> bool {
        let mode = self.table.get("options").map(|options| {
            options.get("replication").and_then(|replication| replication.get("mode")).and_then(Value::as_str)
        });
        matches!(mode, Some(None | Some("none")))
    }

    /// The log of a node.
    pub fn log_id(&self, node: NodeId) -> LogId {
        LogId(log_id_of(self.id, node))
    }

    /// The directory of a node's files.
    pub fn files_of(&self, directory: &Path, node: NodeId) -> PathBuf {
        directory.join(node.partition.to_string())
    }

    /// The identity of another directory with the same data: of another replica, if one is given.
    ///
    /// # Errors
    /// When a replica is given, and the nodes are of several.
    pub fn renewed(&self, id: u128, replica: Option<ReplicaId>) -> Result<Identity, String> {
        let mut renewed = self.clone();
        renewed.id = id;
        if let Some(replica) = replica {
            if self.nodes.iter().any(|node| node.replica != self.nodes[0].replica) {
                return Err("the data directory has nodes of several replicas: do not choose one".to_owned());
            }
            renewed.nodes.iter_mut().for_each(|node| node.replica = replica);
        }
        let nodes = renewed.nodes.iter().map(|node| Value::from(node.to_string())).collect();
        renewed.table.insert("id".to_owned(), Value::from(format!("{id:032x}")));
        renewed.table.insert("nodes".to_owned(), Value::Array(nodes));
        renewed.table.insert("established".to_owned(), Value::from(true));
        // What became of the old directory's replica is not so of this one.
        for past in ["removed", "founders"] {
            renewed.table.remove(past);
        }
        Ok(renewed)
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        self.table.to_string()
    }

    /// Removes the file, as far as it is there.
    pub fn remove(&self, directory: &Path) {
        for path in files(directory) {
            let _ = fs::remove_file(path);
        }
    }

    /// Writes the file, durably and as the last one: a directory without it is none.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write(&self, directory: &Path) -> Result<(), String> {
        let [part, path] = files(directory);
        let write = || {
            fs::write(&part, self.to_text())?;
            fs::File::open(&part)?.sync_all()?;
            fs::rename(&part, &path)?;
            sync_directory(directory)
        };
        write().map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// The file while it is written, and when it is.
fn files(directory: &Path) -> [PathBuf; 2] {
    [directory.join(format!("{IDENTITY}.part")), directory.join(IDENTITY)]
}

/// Reads the name of a node, such as `p0r1`.
pub fn parse_node(name: &str) -> Option<NodeId> {
    let (partition, replica) = name.strip_prefix('p')?.split_once('r')?;
    let node =
        NodeId { partition: PartitionId(partition.parse().ok()?), replica: ReplicaId(replica.parse().ok()?) };
    (node.to_string() == name).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "format = 3\nrelease = \"0.1.0\"\nlog = \"order\"\nid = \"0a\"\nfingerprint = \"2b\"\nnodes = [\"p0r0\", \"p1r0\"]\n\
        established = true\n[options]\npartitions = 2\nseed = 7\n";

    #[test]
    fn what_is_not_known_is_kept() {
        let identity = Identity::parse(TEXT).unwrap();
        assert_eq!((identity.id(), identity.fingerprint(), identity.partitions()), (10, "2b", Some(2)));
        let renewed = identity.renewed(77, Some(ReplicaId(2))).unwrap();
        let again = Identity::parse(&renewed.to_text()).unwrap();
        assert_eq!(again, renewed);
        assert_eq!((again.id(), again.nodes()[1].to_string().as_str()), (77, "p1r2"));
        assert_eq!(again.table["options"]["seed"], Value::from(7));
        assert_ne!(again.log_id(again.nodes()[0]), identity.log_id(identity.nodes()[0]));
    }

    #[test]
    fn damage_is_told() {
        let wrong = |from: &str, to: &str| Identity::parse(&TEXT.replace(from, to)).unwrap_err();
        assert!(wrong("format = 3", "format = 9").contains("it has format 9"));
        assert!(wrong("id = \"0a\"", "id = \"x\"").contains("no `id`"));
        assert!(wrong("order", "chaos").contains("no `log`"));
        assert!(wrong("p1r0", "p01r0").contains("no `nodes`"));
        assert!(wrong("format", "[").contains("damaged"));
    }
}
