//! Taking backups of a data directory, once or again and again, while a process uses it or while none does.
//!
//! # Why it is consistent
//!
//! Of every node the same checkpoint is taken, and the log from there on as far as it goes. The logs need not end at the same
//! epoch: a restore cuts them. An epoch is executed only when every partition has its batch durably, so whatever was
//! acknowledged before a backup began is in it.
//!
//! Whatever is named by a manifest was made durable at its source first. So the source never loses an entry that a backup has,
//! to put another one in its place.
//!
//! # What is sent
//!
//! Objects are named by their contents, and those that are there are not sent again. The log goes on where the newest backup
//! of the directory ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ordain_consensus::LogStart;
use ordain_consensus::disk_log::LogId;
use ordain_db::disk::committed::{BatchHeader, LogEntry};
use ordain_db::disk::cut::EpochRange;
use ordain_db::disk::piece::PieceWriter;
use ordain_db::position::{Epoch, NodeId};

use super::directory::Identity;
use super::manifest::{self, CheckpointBackup, MANIFEST_FORMAT, Manifest, NodeBackup, PieceBackup};
use super::source::NodeSource;
use super::store::{Object, SENT_TOGETHER_MAX, Sent, Store, sha256};
use super::time;
use crate::data_directory::LogKind;

/// Bytes of a piece of the log, about.
pub const PIECE_BYTES: usize = 8 << 20;

/// How often a set of checkpoints is looked for that all nodes have: the node's process may be removing one.
const ATTEMPTS_MAX: u32 = 20;

/// Entries of a log that were removed before they were copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The node.
    pub node: NodeId,
    /// Index of the first one that is missing.
    pub first: u64,
    /// Index of the last one that is missing.
    pub last: u64,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Round {
    /// The backup as it is now.
    pub manifest: Manifest,
    /// What was sent.
    pub sent: Sent,
    /// What can no longer be had. The backup itself is whole; there is no state to restore between the one before and this one.
    pub gaps: Vec<Gap>,
    /// Whether there was anything new.
    pub is_new: bool,
}

impl Round {
    /// The last epoch that all nodes have.
    pub fn through(&self) -> Epoch {
        let base = self.manifest.base;
        let last =
            self.manifest.nodes.values().map(|node| node.last_epoch().map_or(base, |last| last.max(base)));
        last.min().unwrap_or(base)
    }
}

/// Takes the backups of a data directory. See the [module](self).
pub struct Sender<'a> {
    directory: PathBuf,
    store: &'a Store,
    identity: Identity,
    newest: Option<Manifest>,
    /// Whether the objects of the newest backup are known to be in the store.
    is_known: bool,
}

impl<'a> Sender<'a> {
    /// Looks at the directory, and at the newest backup of it.
    ///
    /// # Errors
    /// When it is no data directory, or the store fails.
    pub fn open(directory: &Path, store: &'a Store) -> Result<Sender<'a>, String> {
        let identity = Identity::read(directory)?;
        if identity.log() != LogKind::Order {
            return Err(format!(
                "the data in {} is of {}, which has no backups: copy the directory while no process uses it",
                directory.display(),
                identity.log().engines()
            ));
        }
        let number = format!("{:032x}", identity.id());
        let listed = manifest::list(store, Some(&number)).map_err(|error| error.to_string())?;
        let newest = match listed.last() {
            None => None,
            Some((_, id)) => match manifest::read(store, &number, id) {
                Ok(newest) => Some(newest),
                Err(error) => return Err(format!("{error}. Or remove it: the next backup then begins anew")),
            },
        };
        Ok(Sender { directory: directory.to_owned(), store, identity, newest, is_known: false })
    }

    /// Takes a backup. With `extend`, what is new is added to the newest backup, as long as that has the newest checkpoint.
    ///
    /// # Errors
    /// Says what to do. There is no new backup then, and the one before is as it was.
    pub fn round(&mut self, now: u64, extend: bool) -> Result<Round, String> {
        let (base, mut sources) = self.sources()?;
        let (mut sent, mut gaps, mut nodes) = (Sent::default(), Vec::new(), BTreeMap::new());
        let known = self.newest.as_ref().and_then(|newest| newest.partitions);
        let mut partitions = self.identity.partitions().or(known);
        for source in &mut sources {
            let (store, is_known) = (self.store, self.is_known);
            let mut copy =
                NodeCopy { store, source, base, is_known, sent: &mut sent, partitions: &mut partitions };
            let before = self.newest.as_ref().and_then(|newest| {
                newest.nodes.get(&copy.source.node().to_string()).map(|node| (newest.base, node))
            });
            let log_id = self.identity.log_id(copy.source.node());
            let (node, gap) = copy.run(before, log_id)?;
            nodes.insert(copy.source.node().to_string(), node);
            gaps.extend(gap);
        }
        let extended = self.newest.as_ref().filter(|newest| extend && newest.base == base);
        if let Some(newest) = extended.filter(|newest| newest.nodes == nodes) {
            return Ok(Round { manifest: newest.clone(), sent, gaps, is_new: false });
        }
        for source in &sources {
            source.make_durable().map_err(|error| error.to_string())?;
        }
        let id = match extended {
            Some(newest) => newest.id.clone(),
            None => self.new_id(now)?,
        };
        let manifest = Manifest {
            format: MANIFEST_FORMAT,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            id,
            taken_at: now,
            directory: format!("{:032x}", self.identity.id()),
            identity: self.identity.to_text(),
            partitions,
            base,
            nodes,
        };
        manifest.write(self.store)?;
        (self.newest, self.is_known) = (Some(manifest.clone()), true);
        Ok(Round { manifest, sent, gaps, is_new: true })
    }

    /// A name after that of the newest backup.
    fn new_id(&self, now: u64) -> Result<String, String> {
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| format!("no randomness from the system: {error}"))?;
        let last = self.newest.as_ref().map(|newest| (newest.taken_at, newest.id.as_str()));
        let mut time = last.map_or(now, |(taken_at, _)| now.max(taken_at + 1));
        loop {
            let id = format!("{}-{:08x}", time::format_compact(time), u32::from_le_bytes(random));
            if last.is_none_or(|(_, last)| last < id.as_str()) {
                return Ok(id);
            }
            time += 1;
        }
    }

    /// Opens the files of all nodes, and chooses the newest checkpoint that all have.
    fn sources(&self) -> Result<(Epoch, Vec<NodeSource>), String> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let open = |node: &NodeId| NodeSource::open(&self.directory, &self.identity, *node);
            let sources: Result<Vec<NodeSource>, _> = self.identity.nodes().iter().map(open).collect();
            let sources = sources.map_err(|error| error.to_string())?;
            if let Some(base) = newest_base(&sources) {
                return Ok((base, sources));
            }
            if attempts >= ATTEMPTS_MAX {
                let has = |source: &NodeSource| format!("{} has {:?}", source.node(), source.checkpoints());
                let has: Vec<String> = sources.iter().map(has).collect();
                return Err(format!(
                    "there is no checkpoint that all nodes of {} have ({}): try again when the next one is complete",
                    self.directory.display(),
                    has.join(", ")
                ));
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// The newest epoch at whose end all nodes have a checkpoint; 0 when all logs go back to the first rows.
fn newest_base(sources: &[NodeSource]) -> Option<Epoch> {
    let (one, others) = sources.split_first()?;
    let all_have = |epoch: &&Epoch| others.iter().all(|other| other.checkpoints().contains(epoch));
    let newest = one.checkpoints().iter().rev().find(all_have).copied();
    newest.or_else(|| sources.iter().all(|source| source.founding().is_some()).then_some(Epoch(0)))
}

/// Copies what there is of a node.
struct NodeCopy<'a> {
    store: &'a Store,
    source: &'a mut NodeSource,
    base: Epoch,
    is_known: bool,
    sent: &'a mut Sent,
    partitions: &'a mut Option<u16>,
}

impl NodeCopy<'_> {
    /// `before` is the newest backup of the node, with its base.
    fn run(
        &mut self,
        before: Option<(Epoch, &NodeBackup)>,
        log_id: LogId,
    ) -> Result<(NodeBackup, Option<Gap>), String> {
        let same = before.filter(|(base, _)| *base == self.base).map(|(_, node)| node);
        let (start, mut checkpoint) = match same {
            Some(node) if self.is_there(node.checkpoint.as_ref())? => {
                (node.start.clone(), node.checkpoint.clone())
            }
            _ => self.copy_checkpoint()?,
        };
        let pieces = before.map_or(&[][..], |(_, node)| &node.pieces);
        let mut tail = self.tail(&start, pieces)?;
        let log = Log { id: log_id, base: self.base, tail: &tail };
        let (new, closed_at) = self.copy_log(&start, &log)?;
        if let Some(checkpoint) = checkpoint.as_mut().filter(|checkpoint| checkpoint.closed_at.is_none()) {
            checkpoint.closed_at = closed_at;
        }
        let is_same_base = same.is_some();
        let mut kept: Vec<PieceBackup> = Vec::new();
        for piece in pieces.iter().filter(|piece| is_same_base || piece.last > start.index) {
            self.require(&piece.object)?;
            kept.push(piece.clone());
        }
        kept.extend(new);
        let node = NodeBackup { log: format!("{:032x}", log_id.0), start, checkpoint, pieces: kept };
        Ok((node, tail.gap.take()))
    }

    /// Whether all parts of a checkpoint are in the store.
    fn is_there(&self, checkpoint: Option<&CheckpointBackup>) -> Result<bool, String> {
        for part in checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts) {
            if !self.is_known && !self.store.has(part).map_err(|error| error.to_string())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A piece that is no longer in the log cannot be sent again.
    fn require(&self, object: &Object) -> Result<(), String> {
        match self.is_known || self.store.has(object).map_err(|error| error.to_string())? {
            true => Ok(()),
            false => Err(format!(
                "`{}` of {}, of an earlier backup, is missing or cut: put it back, or back up to another place",
                object.name(),
                self.store
            )),
        }
    }

    fn copy_checkpoint(&mut self) -> Result<(LogStart, Option<CheckpointBackup>), String> {
        if self.base == Epoch(0) {
            let start = self.source.founding().cloned();
            return Ok((start.ok_or("the log no longer goes back to the first rows: try again")?, None));
        }
        let (mut together, mut parts) = (Vec::new(), Vec::new());
        let (store, sent) = (self.store, &mut *self.sent);
        let mut send = |together: &mut Vec<Bytes>| -> Result<(), String> {
            let objects = store.send(std::mem::take(together), sent).map_err(|error| error.to_string())?;
            parts.extend(objects);
            Ok(())
        };
        let mut take = |part: Bytes| -> Result<(), String> {
            together.push(part);
            if together.len() >= SENT_TOGETHER_MAX { send(&mut together) } else { Ok(()) }
        };
        let (verified, start) =
            self.source.checkpoint(self.base, &mut take).map_err(|error| error.to_string())?;
        send(&mut together)?;
        *self.partitions = Some(verified.header.identity.partitions);
        let summary = verified.summary;
        let checkpoint =
            CheckpointBackup { rows: summary.rows, bytes: summary.bytes, closed_at: None, parts };
        Ok((start, Some(checkpoint)))
    }

    /// Where the log goes on after what the store has.
    fn tail(&self, start: &LogStart, pieces: &[PieceBackup]) -> Result<Tail, String> {
        let (node, committed) = (self.source.node(), self.source.committed());
        let (first, last) = (committed.first(), committed.last());
        if first > start.index + 1 {
            return Err(format!(
                "the log of {node} begins with entry {first}, after the checkpoint, which ends at {}: segments are missing",
                start.index
            ));
        }
        let Some(end) = pieces.last() else {
            return Ok(Tail { next: start.index + 1, follows: None, gap: None });
        };
        if last < end.last {
            return Err(format!(
                "the log of {node} ends with entry {last}, and an earlier backup has {}: the directory was put back from a \
                 copy; back it up to another place",
                end.last
            ));
        }
        let next = end.last + 1;
        if first > next {
            let gap = Some(Gap { node, first: next, last: first - 1 });
            return Ok(Tail { next: first, follows: None, gap });
        }
        let follows = (first < next).then(|| (end.last, end.last_sha256.clone()));
        Ok(Tail { next, follows, gap: None })
    }

    /// Sends the entries that the store does not have; also tells when the epoch of the base was closed, if the log does.
    fn copy_log(
        &mut self,
        start: &LogStart,
        log: &Log<'_>,
    ) -> Result<(Vec<PieceBackup>, Option<u64>), String> {
        let node = self.source.node();
        let from = [Some(log.tail.next), Some(start.index), log.tail.follows.as_ref().map(|(last, _)| *last)];
        let from = from.into_iter().flatten().min().unwrap_or(log.tail.next);
        let mut pieces = Pieces {
            store: self.store,
            sent: &mut *self.sent,
            log: log.id,
            making: None,
            made: Vec::new(),
            done: Vec::new(),
        };
        let mut closed_at = None;
        let mut visit = |entry: LogEntry| {
            let batch = entry.batch().map_err(|error| error.to_string())?;
            if let Some(batch) = batch.filter(|batch| batch.epoch == log.base) {
                closed_at = Some(batch.closed_at);
            }
            match &log.tail.follows {
                Some((last, expected)) if entry.index == *last && sha256(&entry.encode()) != *expected => {
                    Err(format!(
                        "entry {last} of the log of {node} is not that of an earlier backup: two copies of one directory are \
                         in use; back this one up to another place"
                    ))
                }
                _ if entry.index < log.tail.next => Ok(()),
                _ => pieces.add(&entry, batch),
            }
        };
        self.source.entries(from, &mut visit).map_err(|error| error.to_string())?;
        Ok((pieces.finish()?, closed_at))
    }
}

/// A node's log.
struct Log<'a> {
    id: LogId,
    base: Epoch,
    tail: &'a Tail,
}

/// The part of a log that the store does not have.
struct Tail {
    /// Its first entry.
    next: u64,
    /// The index and the SHA-256 of the entry before, if it is there to be compared.
    follows: Option<(u64, String)>,
    gap: Option<Gap>,
}

/// Makes pieces of entries, and sends them.
struct Pieces<'a> {
    store: &'a Store,
    sent: &'a mut Sent,
    log: LogId,
    making: Option<(PieceWriter, PieceBackup)>,
    /// Pieces that were not sent yet.
    made: Vec<(Bytes, PieceBackup)>,
    done: Vec<PieceBackup>,
}

impl Pieces<'_> {
    fn add(&mut self, entry: &LogEntry, batch: Option<BatchHeader>) -> Result<(), String> {
        let (writer, piece) = self.making.get_or_insert_with(|| {
            let object = Object { sha256: String::new(), bytes: 0 };
            let (first, last) = (entry.index, entry.index);
            let piece = PieceBackup {
                object,
                first,
                last,
                epochs: None,
                closed_at: None,
                last_sha256: String::new(),
            };
            (PieceWriter::new(self.log), piece)
        });
        writer.add(entry);
        piece.last = entry.index;
        piece.last_sha256 = sha256(&entry.encode());
        if let Some(BatchHeader { epoch, closed_at, .. }) = batch {
            let first = piece.epochs.map_or(epoch, |epochs| epochs.first);
            piece.epochs = Some(EpochRange { first, last: epoch });
            let (earliest, latest) = piece.closed_at.unwrap_or((closed_at, closed_at));
            piece.closed_at = Some((earliest.min(closed_at), latest.max(closed_at)));
        }
        if writer.bytes() >= PIECE_BYTES {
            self.end_piece()?;
        }
        Ok(())
    }

    fn end_piece(&mut self) -> Result<(), String> {
        let Some((writer, piece)) = self.making.take() else { return Ok(()) };
        self.made.push((writer.finish(), piece));
        if self.made.len() >= SENT_TOGETHER_MAX { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), String> {
        let (contents, pieces): (Vec<Bytes>, Vec<PieceBackup>) =
            std::mem::take(&mut self.made).into_iter().unzip();
        let objects = self.store.send(contents, self.sent).map_err(|error| error.to_string())?;
        self.done
            .extend(pieces.into_iter().zip(objects).map(|(piece, object)| PieceBackup { object, ..piece }));
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<PieceBackup>, String> {
        self.end_piece()?;
        self.send()?;
        Ok(self.done)
    }
}
