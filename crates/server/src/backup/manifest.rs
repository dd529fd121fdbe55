//! What a backup consists of: a list of objects and what they are. It is written last, so what has none is no backup.
//!
//! A manifest is a JSON object with two fields: `manifest`, and `sha256` of its text.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_consensus::LogStart;
use ordain_consensus::disk_log::LogId;
use ordain_db::disk::cut::EpochRange;
use ordain_db::position::{Epoch, NodeId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::directory::parse_node;
use super::store::{Object, Store, StoreError, sha256};

/// The version of the form that is written and read.
pub const MANIFEST_FORMAT: u32 = 1;

/// The folder of the manifests; each data directory has one in it.
pub(super) const BACKUPS: &str = "backups";

const SUFFIX: &str = ".json";

/// A backup of a data directory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_FORMAT`].
    pub format: u32,
    /// The release that wrote it.
    pub release: String,
    /// The name: sorts by time.
    pub id: String,
    /// When it was last added to, in microseconds since 1970.
    pub taken_at: u64,
    /// The random number of the data directory, in hexadecimal.
    pub directory: String,
    /// The text of the directory's file `ORDAIN`.
    pub identity: String,
    /// Number of partitions of the whole database, as far as it is known.
    pub partitions: Option<u16>,
    /// The end of the epoch of its checkpoints; 0 if there are none, as the log goes back to the first rows.
    pub base: Epoch,
    /// By name.
    pub nodes: BTreeMap<String, NodeBackup>,
}

/// What there is of a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeBackup {
    /// The node's log, in hexadecimal.
    pub log: String,
    /// Where its log goes on after the base.
    pub start: LogStart,
    /// The checkpoint, if the base is one.
    pub checkpoint: Option<CheckpointBackup>,
    /// Pieces of the log, ascending; the first ones may lie before the base.
    pub pieces: Vec<PieceBackup>,
}

/// A checkpoint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointBackup {
    /// Rows in it.
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// When its epoch was closed, in microseconds since 1970, if the log still told.
    pub closed_at: Option<u64>,
    /// The file, in parts.
    pub parts: Vec<Object>,
}

/// A part of a log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieceBackup {
    /// The entries.
    pub object: Object,
    /// Index of the first one.
    pub first: u64,
    /// Index of the last one.
    pub last: u64,
    /// The epochs of the batches among them, if there is one.
    pub epochs: Option<EpochRange>,
    /// The earliest and the latest time at which one of these epochs was closed, in microseconds since 1970.
    pub closed_at: Option<(u64, u64)>,
    /// SHA-256 of the record of the last entry: what comes next must follow this one.
    pub last_sha256: String,
}

/// The outer form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed<'a> {
    sha256: String,
    #[serde(borrow)]
    manifest: &'a RawValue,
}

/// What is read first, whatever the format.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

impl Manifest {
    /// The name of its object.
    pub fn name(&self) -> String {
        name_of(&self.directory, &self.id)
    }

    /// The text.
    ///
    /// # Errors
    /// When it has no JSON form.
    pub fn encode(&self) -> Result<Bytes, String> {
        let wrong = |error: serde_json::Error| format!("cannot write the manifest {}: {error}", self.id);
        let text = serde_json::to_string_pretty(self).map_err(wrong)?;
        let sha256 = sha256(text.as_bytes());
        let manifest = RawValue::from_string(text).map_err(wrong)?;
        let sealed = serde_json::to_string(&Sealed { sha256, manifest: &manifest }).map_err(wrong)?;
        Ok(Bytes::from(sealed))
    }

    /// Reads the text.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn decode(text: &[u8]) -> Result<Manifest, String> {
        let wrong = |error: serde_json::Error| format!("it is no manifest: {error}");
        let sealed: Sealed<'_> = serde_json::from_slice(text).map_err(wrong)?;
        let inner = sealed.manifest.get();
        if sha256(inner.as_bytes()) != sealed.sha256 {
            return Err("its checksum is wrong".to_owned());
        }
        let AnyFormat { format } = serde_json::from_str(inner).map_err(wrong)?;
        if format != MANIFEST_FORMAT {
            return Err(format!(
                "it has format {format}, and this release reads {MANIFEST_FORMAT}: use the release that wrote it"
            ));
        }
        serde_json::from_str(inner).map_err(wrong)
    }

    /// Writes it to a store, in place of an earlier state of it.
    ///
    /// # Errors
    /// When the store failed.
    pub fn write(&self, store: &Store) -> Result<(), String> {
        store.put(&self.name(), self.encode()?).map_err(|error| error.to_string())
    }

    /// The nodes, by their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &NodeBackup)> {
        self.nodes.iter().filter_map(|(name, backup)| Some((parse_node(name)?, backup)))
    }

    /// All objects that it names.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.nodes.values().flat_map(|node| {
            let parts = node.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts);
            parts.chain(node.pieces.iter().map(|piece| &piece.object))
        })
    }
}

impl NodeBackup {
    /// The node's log.
    ///
    /// # Errors
    /// When the manifest has no number there.
    pub fn log_id(&self) -> Result<LogId, String> {
        let number = u128::from_str_radix(&self.log, 16);
        number.map(LogId).map_err(|error| format!("{:?} is no number of a log: {error}", self.log))
    }

    /// The last epoch of which there is a batch.
    pub fn last_epoch(&self) -> Option<Epoch> {
        self.pieces.iter().rev().find_map(|piece| piece.epochs).map(|epochs| epochs.last)
    }
}

/// The name of the object of a manifest.
pub fn name_of(directory: &str, id: &str) -> String {
    format!("{BACKUPS}/{directory}/{id}{SUFFIX}")
}

/// The backups that are in a store: the numbers of their directories, and their names; ascending.
///
/// # Errors
/// [`StoreError::Failed`].
pub fn list(store: &Store, directory: Option<&str>) -> Result<Vec<(String, String)>, StoreError> {
    let pair = |name: String| {
        let (directory, id) = name.strip_suffix(SUFFIX)?.split_once('/')?;
        Some((directory.to_owned(), id.to_owned()))
    };
    match directory {
        None => Ok(store.list(BACKUPS)?.into_iter().filter_map(pair).collect()),
        Some(directory) => {
            let names = store.list(&format!("{BACKUPS}/{directory}"))?;
            let ids = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
            Ok(ids.map(|id| (directory.to_owned(), id.to_owned())).collect())
        }
    }
}

/// Reads a manifest of a store.
///
/// # Errors
/// [`StoreError`] names the object.
pub fn read(store: &Store, directory: &str, id: &str) -> Result<Manifest, StoreError> {
    let name = name_of(directory, id);
    let text = store.get(&name)?;
    let manifest = Manifest::decode(&text).map_err(|problem| store.damaged(&name, problem))?;
    if manifest.name() != name {
        return Err(
            store.damaged(&name, format!("it is {} by its contents: it was renamed", manifest.name()))
        );
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let object = Object::of(b"piece");
        let epochs = Some(EpochRange { first: Epoch(1), last: Epoch(2) });
        let piece = PieceBackup {
            object,
            first: 2,
            last: 3,
            epochs,
            closed_at: Some((5, 6)),
            last_sha256: sha256(b"last"),
        };
        let start = LogStart::default();
        let node = NodeBackup { log: "0f".to_owned(), start, checkpoint: None, pieces: vec![piece] };
        Manifest {
            format: MANIFEST_FORMAT,
            release: "0.1.0".to_owned(),
            id: "20260301T123000250000Z-12".to_owned(),
            taken_at: 7,
            directory: "0a".to_owned(),
            identity: "format = 1\n".to_owned(),
            partitions: Some(1),
            base: Epoch(0),
            nodes: BTreeMap::from([("p0r0".to_owned(), node)]),
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        let manifest = manifest();
        let text = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&text), Ok(manifest.clone()));
        assert_eq!(manifest.objects().count(), 1);
        let (node, backup) = manifest.nodes().next().unwrap();
        assert_eq!((node.to_string().as_str(), backup.log_id()), ("p0r0", Ok(LogId(15))));
        assert_eq!(backup.last_epoch(), Some(Epoch(2)));
    }

    #[test]
    fn every_change_is_noticed() {
        let text = manifest().encode().unwrap();
        for at in 0..text.len() {
            for change in [1, 0x20] {
                let mut damaged = text.to_vec();
                damaged[at] ^= change;
                assert!(Manifest::decode(&damaged).is_err(), "byte {at}");
            }
            assert!(Manifest::decode(&text[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn another_format_is_refused() {
        let mut other = manifest();
        other.format = 2;
        assert!(Manifest::decode(&other.encode().unwrap()).unwrap_err().contains("it has format 2"));
    }
}
