//! All that a store has of a data directory: its backups together.
//!
//! Each backup has a checkpoint and the log after it, up to where the log was then; and the log between the backups, if none of
//! it was lost. So together they have every state from the oldest checkpoint on.

use std::collections::{BTreeMap, BTreeSet};

use ordain_db::disk::committed::LogEntry;
use ordain_db::disk::cut::{CutError, EpochRange, Holding};
use ordain_db::disk::piece::entries_of;
use ordain_db::position::{Epoch, NodeId, PartitionId};

use super::manifest::{self, Manifest, NodeBackup, PieceBackup};
use super::store::{Store, StoreError};

/// Why the state that is wanted cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The store failed, or an object is missing or damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no cut.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// What there is does not fit together.
    #[error("{0}")]
    Unfit(String),
}

/// See the [module](self).
#[derive(Clone, PartialEq, Debug)]
pub struct Archive {
    /// By name, ascending; never empty.
    manifests: Vec<Manifest>,
}

impl Archive {
    /// Reads all backups of a directory, or one.
    ///
    /// # Errors
    /// [`ArchiveError`]. A manifest that is damaged is an error, even if others are there: it might have been needed.
    pub fn read(store: &Store, directory: &str, backup: Option<&str>) -> Result<Archive, ArchiveError> {
        let ids = manifest::list(store, Some(directory))?.into_iter().map(|(_, id)| id);
        let ids: Vec<String> = ids.filter(|id| backup.is_none_or(|backup| backup == id)).collect();
        let manifests = ids.iter().map(|id| manifest::read(store, directory, id));
        let manifests = manifests.collect::<Result<Vec<Manifest>, StoreError>>()?;
        if manifests.is_empty() {
            let what = backup.map_or_else(|| "no backup".to_owned(), |backup| format!("no backup {backup}"));
            return Err(ArchiveError::Unfit(format!("{store} has {what} of the data directory {directory}")));
        }
        Ok(Archive { manifests })
    }

    /// Reads the backups of a directory whose manifests are whole, to see what is left of a damaged store; `None` if there are
    /// none. And what is wrong with the other manifests.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read_sound(
        store: &Store,
        directory: &str,
    ) -> Result<(Option<Archive>, Vec<StoreError>), StoreError> {
        let (mut manifests, mut damaged) = (Vec::new(), Vec::new());
        for (_, id) in manifest::list(store, Some(directory))? {
            match manifest::read(store, directory, &id) {
                Ok(manifest) => manifests.push(manifest),
                Err(error) => damaged.push(error),
            }
        }
        Ok(((!manifests.is_empty()).then_some(Archive { manifests }), damaged))
    }

    /// The backups, ascending.
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// The newest backup.
    pub fn newest(&self) -> &Manifest {
        self.manifests.last().expect("an archive is only made of backups")
    }

    /// The nodes of the directory.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.newest().nodes().map(|(node, _)| node).collect()
    }

    /// What there is of a node in any of the backups.
    fn of_node(&self, node: NodeId) -> impl Iterator<Item = (&Manifest, &NodeBackup)> {
        let name = node.to_string();
        self.manifests.iter().filter_map(move |manifest| Some((manifest, manifest.nodes.get(&name)?)))
    }

    /// What there is, for choosing a cut.
    pub fn holdings(&self) -> Vec<Holding> {
        let holding = |node: NodeId| {
            let (mut bases, mut batches) = (BTreeMap::new(), BTreeSet::new());
            for (manifest, backup) in self.of_node(node) {
                let closed_at: &mut Option<u64> = bases.entry(manifest.base).or_default();
                *closed_at =
                    closed_at.or(backup.checkpoint.as_ref().and_then(|checkpoint| checkpoint.closed_at));
                batches.extend(backup.pieces.iter().filter_map(|piece| piece.epochs));
            }
            Holding { partition: node.partition, bases, batches: batches.into_iter().collect() }
        };
        self.nodes().into_iter().map(holding).collect()
    }

    /// The backup of a node with this base.
    pub fn base(&self, node: NodeId, base: Epoch) -> Option<&NodeBackup> {
        let mut of_node = self.of_node(node);
        of_node.find(|(manifest, _)| manifest.base == base).map(|(_, backup)| backup)
    }

    /// The pieces that have the entries of a node from an index on, as far as they go without a gap.
    pub fn pieces(&self, node: NodeId, from: u64) -> Vec<&PieceBackup> {
        let all: Vec<&PieceBackup> = self.of_node(node).flat_map(|(_, backup)| &backup.pieces).collect();
        let (mut chosen, mut next) = (Vec::new(), from);
        while let Some(piece) = all
            .iter()
            .filter(|piece| piece.first <= next && next <= piece.last)
            .max_by_key(|piece| piece.last)
        {
            next = piece.last + 1;
            chosen.push(*piece);
        }
        chosen
    }

    /// The first epoch of a partition, among these, whose batch was closed after a time.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn closed_after(
        &self,
        store: &Store,
        partition: PartitionId,
        epochs: EpochRange,
        time: u64,
    ) -> Result<Option<Epoch>, ArchiveError> {
        let Some(node) = self.nodes().into_iter().find(|node| node.partition == partition) else {
            return Ok(None);
        };
        let mut late: Vec<(EpochRange, &NodeBackup, &PieceBackup)> = Vec::new();
        for (_, backup) in self.of_node(node) {
            for piece in &backup.pieces {
                let Some((range, (_, latest))) = piece.epochs.zip(piece.closed_at) else { continue };
                if latest > time && range.last >= epochs.first && range.first <= epochs.last {
                    late.push((range, backup, piece));
                }
            }
        }
        late.sort_by_key(|(range, _, _)| *range);
        let mut first: Option<Epoch> = None;
        for (range, backup, piece) in late {
            if first.is_some_and(|first| range.first >= first) {
                break;
            }
            for entry in fetch(store, backup, piece)? {
                let batch = entry.batch().map_err(|error| store.damaged(&piece.object.name(), error))?;
                let is_late = |batch: &ordain_db::disk::committed::BatchHeader| {
                    batch.closed_at > time && epochs.first <= batch.epoch && batch.epoch <= epochs.last
                };
                if let Some(batch) = batch.filter(is_late) {
                    first = Some(first.map_or(batch.epoch, |first| first.min(batch.epoch)));
                    break;
                }
            }
        }
        Ok(first)
    }
}

/// The entries of a piece, verified.
///
/// # Errors
/// [`ArchiveError::Store`] names the object.
pub fn fetch(store: &Store, backup: &NodeBackup, piece: &PieceBackup) -> Result<Vec<LogEntry>, ArchiveError> {
    let name = piece.object.name();
    let log_id = backup.log_id().map_err(|problem| store.damaged(&name, problem))?;
    let contents = store.fetch(&piece.object)?;
    let entries = entries_of(&contents, log_id).map_err(|error| store.damaged(&name, error))?;
    let found = entries.first().zip(entries.last()).map(|(first, last)| (first.index, last.index));
    if found != Some((piece.first, piece.last)) {
        let problem = format!("it has entries {found:?}, and {} to {} were written", piece.first, piece.last);
        return Err(store.damaged(&name, problem).into());
    }
    Ok(entries)
}
