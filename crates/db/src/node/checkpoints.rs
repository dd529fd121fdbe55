//! Checkpoints: the state at a position of the order, taken while later transactions run (Calvin §5).
//!
//! [`Work::Checkpoint`] in the order names the epoch at whose end every node takes one, so that all partitions and replicas
//! mean the same position without any other coordination (CAL-91, CAL-99). The point is virtual: transactions before and after
//! it run at the same time. The storage keeps two versions of what is written across it (CAL-92), and the scan begins when the
//! last transaction before it has finished (CAL-93). Then the node's driver gets the file chunk by chunk; a few are under way
//! at a time, and each step scans a little, so that transactions go on meanwhile (CAL-96).
//!
//! [`CheckpointMode::Freeze`] is the paper's simplest mode instead: the node executes nothing between the point and the end of
//! the file (CAL-87).

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::LogStart;
use serde::{Deserialize, Serialize};

use super::stability::Stability;
use super::{DiskWrite, Node, Outbox};
use crate::checkpoint::{CheckpointHeader, CheckpointIdentity, CheckpointWriter};
use crate::engine::Engine;
use crate::error::Error;
use crate::gateway::SavedGateway;
use crate::hash::Digest;
use crate::message::{Message, RequestId, Work};
use crate::position::{Epoch, NodeId, PartitionId, Position};
use crate::storage::RecordCursor;

/// Chunks that are under way to the disk at a time.
const CHUNKS_UNDER_WAY_MAX: usize = 4;

/// Bytes of records that one step scans for a checkpoint: some tens of microseconds.
const STEP_SCAN_BYTES: usize = 64 * 1024;

/// Bytes of records that one step scans when the node does nothing else.
const FREEZE_SCAN_BYTES: usize = 4 * 1024 * 1024;

/// How checkpoints are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointMode {
    /// While transactions go on: rows that are written across the point have two versions.
    #[default]
    Concurrent,
    /// The node executes nothing meanwhile.
    Freeze,
}

/// When and how checkpoints are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointOptions {
    /// How.
    pub mode: CheckpointMode,
    /// The time from one to the next in microseconds, if anything was ordered meanwhile; `None` for no limit.
    pub interval_microseconds: Option<u64>,
    /// Bytes of one partition's batches in the log from one to the next.
    pub log_bytes: u64,
}

impl Default for CheckpointOptions {
    /// While transactions go on, after a minute or 256 MiB.
    fn default() -> CheckpointOptions {
        CheckpointOptions {
            mode: CheckpointMode::Concurrent,
            interval_microseconds: Some(60_000_000),
            log_bytes: 256 << 20,
        }
    }
}

/// What a checkpoint keeps besides rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedNode {
    /// Requests and answers.
    pub gateway: SavedGateway,
    /// The digest of all writes through the epoch, as replicas compare it.
    pub written: u128,
    /// Where the log goes on after it.
    pub log: LogStart,
}

/// The name of the section of a checkpoint that holds a [`SavedNode`].
pub const NODE_SECTION: &str = "node";

/// Where a node goes on that is made again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resumed {
    /// The storage has the state at the end of this epoch.
    pub epoch: Epoch,
    /// The rest of the state.
    pub saved: SavedNode,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Checkpoints {
    options: CheckpointOptions,
    pub(super) stability: Stability,
    /// Ends of epochs at which the order wants a checkpoint, and whose snapshot is not open yet.
    due: VecDeque<Epoch>,
    /// Checkpoints whose snapshot is open, and that wait for the one that is being taken.
    opened: VecDeque<Epoch>,
    taking: Option<Taking>,
    /// Requests for a checkpoint, with their positions.
    asking: Vec<(RequestId, Position)>,
    /// Whether one was ordered by this node and is not stable.
    ordered: bool,
    /// Bytes of batches since the last one was ordered.
    pub(super) logged_bytes: u64,
    /// When the last one was ordered, or the node started.
    last_at: Option<u64>,
}

/// A checkpoint that is being taken.
#[derive(Debug)]
struct Taking {
    epoch: Epoch,
    /// Whether all transactions before the point have finished.
    began: bool,
    /// Until all rows are in chunks.
    writer: Option<CheckpointWriter>,
    /// Where the scan goes on.
    cursor: RecordCursor,
    /// Chunks that the disk has not got yet.
    chunks: VecDeque<Vec<u8>>,
    under_way: usize,
    ended: bool,
}

impl Checkpoints {
    pub(super) fn new(me: PartitionId, partitions: u16, options: CheckpointOptions) -> Checkpoints {
        Checkpoints {
            options,
            stability: Stability::new(me, partitions),
            due: VecDeque::new(),
            opened: VecDeque::new(),
            taking: None,
            asking: Vec::new(),
            ordered: false,
            logged_bytes: 0,
            last_at: None,
        }
    }

    /// The end of an epoch at which a snapshot must be open before later writes.
    pub(super) fn next_point(&self) -> Option<Epoch> {
        self.due.front().copied()
    }

    /// How far what was written may be summed up: through the point of a checkpoint that needs the sum there.
    pub(super) fn sum_through(&self, executed: Epoch) -> Epoch {
        let unbegun = self.taking.as_ref().filter(|taking| !taking.began).map(|taking| taking.epoch);
        let points = [unbegun, self.opened.front().copied(), self.due.front().copied()];
        points.into_iter().flatten().fold(executed, Epoch::min)
    }

    /// Whether no checkpoint is wanted or being taken.
    pub(super) fn is_idle(&self) -> bool {
        self.taking.is_none() && self.opened.is_empty() && self.due.is_empty()
    }

    /// When the next one is to be ordered, for want of anything else that happens.
    pub(super) fn deadline(&self) -> Option<u64> {
        let interval =
            self.options.interval_microseconds.filter(|_| self.logged_bytes > 0 && !self.ordered)?;
        self.last_at.map(|last| last + interval)
    }

    /// Whether the node executes nothing now.
    pub(super) fn is_frozen(&self) -> bool {
        self.options.mode == CheckpointMode::Freeze && (self.taking.is_some() || !self.opened.is_empty())
    }

    /// Notes that the order wants a checkpoint at the end of an epoch.
    pub(super) fn want(&mut self, request: RequestId, position: Position) {
        // After a start, one that was taken before may be wanted again.
        let is_there = self.stability.own().any(|epoch| epoch == position.epoch);
        if self.due.back() != Some(&position.epoch) && !is_there {
            self.due.push_back(position.epoch);
        }
        if !request.is_own() {
            self.asking.push((request, position));
        }
    }

    /// A chunk is on the disk.
    pub(super) fn chunk_written(&mut self) {
        if let Some(taking) = &mut self.taking {
            taking.under_way = taking.under_way.saturating_sub(1);
        }
    }

    /// Whether a checkpoint can be carried on now.
    fn can_go_on(&self) -> bool {
        let goes_on =
            |taking: &Taking| taking.began && !taking.ended && taking.under_way < CHUNKS_UNDER_WAY_MAX;
        match &self.taking {
            Some(taking) => goes_on(taking),
            None => !self.opened.is_empty(),
        }
    }
}

impl<E: Engine> Node<E> {
    /// Orders checkpoints when it is time, opens their snapshots, and carries the one that is being taken on by a little.
    /// Whether there is more to do at once.
    pub(super) fn checkpoint(&mut self, now: u64, outbox: &mut Outbox) -> bool {
        if self.log.replicated.is_none() {
            return false;
        }
        self.order_checkpoint(now);
        self.open_point();
        if self.checkpoints.taking.is_none()
            && !self.transfers.is_receiving()
            && let Some(epoch) = self.checkpoints.opened.pop_front()
        {
            self.checkpoints.taking = Some(Taking {
                epoch,
                began: false,
                writer: None,
                cursor: RecordCursor::START,
                chunks: VecDeque::new(),
                under_way: 0,
                ended: false,
            });
        }
        self.begin_checkpoint(outbox);
        self.carry_on(outbox);
        self.checkpoints.can_go_on()
    }

    /// The leader of the first partition decides when it is time.
    fn order_checkpoint(&mut self, now: u64) {
        let Checkpoints { options, ordered, logged_bytes, last_at, .. } = &mut self.checkpoints;
        let last = *last_at.get_or_insert(now);
        if self.me != PartitionId(0) || !self.gateway.leads() || *ordered {
            return;
        }
        let old = options.interval_microseconds.is_some_and(|interval| now >= last + interval);
        if *logged_bytes >= options.log_bytes || (old && *logged_bytes > 0) {
            (*ordered, *logged_bytes, *last_at) = (true, 0, Some(now));
            self.gateway.order_own(Work::Checkpoint, &mut self.sequencer);
        }
    }

    /// Opens the snapshot of a point that all transactions before it have been delivered for, if it is not open yet.
    fn open_point(&mut self) {
        while let Some(epoch) = self.checkpoints.next_point() {
            let later = self.ready.front().is_some_and(|delivered| delivered.position.epoch > epoch);
            let all_delivered = self.ready.is_empty() && self.merger.delivered() >= epoch;
            if !later && !all_delivered {
                return;
            }
            self.open_next_point();
        }
    }

    /// Opens the snapshot of the next point: the next transaction of the order is behind it.
    pub(super) fn open_next_point(&mut self) {
        if let Some(epoch) = self.checkpoints.due.pop_front() {
            self.storage.open_snapshot(Position::end_of(epoch));
            self.checkpoints.opened.push_back(epoch);
        }
    }

    /// Begins the file when all transactions before the point have finished (CAL-93).
    fn begin_checkpoint(&mut self, outbox: &mut Outbox) {
        let completed = self.completed();
        let Some(taking) = &mut self.checkpoints.taking else { return };
        if taking.began || completed < taking.epoch {
            return;
        }
        let epoch = taking.epoch;
        let Some(written) = self.agreement.sum_at(epoch) else { return };
        let start = self.checkpoints.stability.index_of(epoch);
        let start = start.and_then(|index| self.log.replicated.as_ref().and_then(|log| log.start_at(index)));
        // An epoch that was executed is in the log, which is not cut before the checkpoint is there.
        let Some(start) = start else { return };
        let identity =
            CheckpointIdentity { cluster: self.cluster, partition: self.me, partitions: self.partitions };
        let header = CheckpointHeader { identity, epoch, log_index: start.index };
        let saved = SavedNode { gateway: self.gateway.save(epoch), written: written.0, log: start };
        let mut writer = CheckpointWriter::new(header);
        if let Err(problem) = writer.section(NODE_SECTION, &super::encode_body(&saved)) {
            return self.checkpoint_failed(&problem.to_string());
        }
        (taking.began, taking.writer) = (true, Some(writer));
        outbox.disk.push(DiskWrite::BeginCheckpoint(epoch));
    }

    /// Scans a little, and gives the disk what it has room for.
    fn carry_on(&mut self, outbox: &mut Outbox) {
        let Some(taking) = &mut self.checkpoints.taking else { return };
        let room = taking.chunks.len() + taking.under_way < CHUNKS_UNDER_WAY_MAX;
        if let Some(mut writer) = taking.writer.take_if(|_| room) {
            let frozen = self.checkpoints.options.mode == CheckpointMode::Freeze;
            let budget = if frozen { FREEZE_SCAN_BYTES } else { STEP_SCAN_BYTES };
            let at = Position::end_of(taking.epoch);
            let cursor = writer.write_rows(&mut *self.storage, taking.cursor, budget);
            while let Some(chunk) = writer.take_chunk() {
                taking.chunks.push_back(chunk);
            }
            match cursor {
                Some(cursor) => (taking.cursor, taking.writer) = (cursor, Some(writer)),
                None => {
                    self.storage.close_snapshot(at);
                    taking.chunks.extend(writer.finish().chunks);
                }
            }
        }
        while taking.under_way < CHUNKS_UNDER_WAY_MAX
            && let Some(chunk) = taking.chunks.pop_front()
        {
            taking.under_way += 1;
            outbox.disk.push(DiskWrite::CheckpointChunk(Bytes::from(chunk)));
        }
        if taking.began && taking.writer.is_none() && taking.chunks.is_empty() && !taking.ended {
            taking.ended = true;
            outbox.disk.push(DiskWrite::EndCheckpoint);
        }
    }

    /// A checkpoint of this node is on its disk: its replica hears of it.
    pub(super) fn checkpoint_written(&mut self, now: u64, epoch: Epoch, outbox: &mut Outbox) {
        if self.install(epoch, outbox) {
            return;
        }
        self.checkpoints.taking = None;
        for partition in self.others().iter() {
            let to = NodeId { partition, replica: self.id.replica };
            self.send(to, Message::CheckpointWritten(epoch), outbox);
        }
        self.note_checkpoint(now, self.me, epoch, outbox);
    }

    /// A checkpoint could not be written. The next one may.
    pub(super) fn checkpoint_failed(&mut self, reason: &str) {
        let Some(taking) = self.checkpoints.taking.take() else { return };
        if taking.writer.is_some() || !taking.began {
            self.close_point(taking.epoch);
        }
        self.checkpoints.ordered = false;
        for (request, position) in std::mem::take(&mut self.checkpoints.asking) {
            let problem = format!("the checkpoint was not written: {reason}");
            self.gateway.answer(request, Some(position), Err(Error::Unavailable(problem)));
        }
    }

    /// A node of the own replica has a checkpoint: what is older than the newest one that all have can go (CAL-103).
    pub(super) fn note_checkpoint(
        &mut self,
        now: u64,
        partition: PartitionId,
        epoch: Epoch,
        outbox: &mut Outbox,
    ) {
        let Some(stable) = self.checkpoints.stability.written(partition, epoch) else { return };
        self.checkpoints.ordered = false;
        match self.transfers.is_sending(now) {
            true => self.transfers.postponed = Some(stable),
            false => self.stabilise(stable, outbox),
        }
    }

    /// Lets go what is older than a stable checkpoint.
    pub(super) fn stabilise(&mut self, stable: Epoch, outbox: &mut Outbox) {
        self.streams.forget(stable);
        let index = self.checkpoints.stability.index_of(stable);
        if let (Some(index), Some(log)) = (index, &mut self.log.replicated) {
            log.compact(index);
            let restatement = log.restatement();
            outbox.disk.push(DiskWrite::TruncateLog { through: index, restatement });
        }
        outbox.disk.push(DiskWrite::RemoveCheckpoints { before: stable });
        let asking = std::mem::take(&mut self.checkpoints.asking);
        for (request, position) in asking {
            match position.epoch <= stable {
                true => self.gateway.answer(request, Some(position), Ok(super::encode_body(&stable))),
                false => self.checkpoints.asking.push((request, position)),
            }
        }
    }

    /// Tells a node of the own replica again which checkpoints there are: it may have forgotten.
    pub(super) fn tell_checkpoints(&mut self, peer: NodeId, outbox: &mut Outbox) {
        let own: Vec<Epoch> = self.checkpoints.stability.own().collect();
        for epoch in own {
            self.send(peer, Message::CheckpointWritten(epoch), outbox);
        }
    }

    /// Takes over the state of a checkpoint, whose rows the storage has already. Only before the first step.
    pub fn resume(&mut self, resumed: Resumed) {
        let Resumed { epoch, saved } = resumed;
        self.merger.resume(epoch);
        self.sequencer.resume(epoch);
        self.engine.resume(Position::end_of(epoch));
        self.streams.resume(epoch);
        self.log.dispatched = epoch;
        self.gateway.restore(saved.gateway);
        self.agreement.resume(epoch, Digest(saved.written));
        self.checkpoints.stability.resume(epoch);
        self.checkpoints.stability.logged(epoch, saved.log.index);
    }

    /// Tells which checkpoints are on the disk. Only before the first step.
    pub fn know_checkpoints(&mut self, on_disk: &[Epoch]) {
        self.checkpoints.stability.know(on_disk);
    }
}
