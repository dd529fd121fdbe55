//! Checkpoints: the state at a position of the order, taken while later transactions run (Calvin §5).
//!
//! [`Work::Checkpoint`](crate::message::Work::Checkpoint) in the order names the epoch at whose end every node takes one, so that
//! all partitions and replicas mean the same position without any other coordination (CAL-91, CAL-99). The point is virtual:
//! transactions before and after it run at the same time. The storage keeps two versions of what is written across it (CAL-92),
//! and the scan begins when the last transaction before it has finished (CAL-93). Then the node's driver gets the file chunk by
//! chunk, one at a time, and each step scans a little, so that transactions go on meanwhile (CAL-96).
//!
//! [`CheckpointMode::Freeze`] is the paper's simplest mode instead: a replica executes nothing between the point and the end of
//! its files, while the others go on; one replica takes its turn after the other (CAL-87).

mod turns;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ordain_consensus::LogStart;
use serde::{Deserialize, Serialize};

use self::turns::{DECIDES_TURNS, ORDERED_MICROSECONDS};
use super::stability::Stability;
use super::{DiskWrite, Node, Outbox};
use crate::checkpoint::{CheckpointHeader, CheckpointIdentity, CheckpointWriter};
use crate::engine::Engine;
use crate::gateway::SavedGateway;
use crate::hash::Digest;
use crate::message::Message;
use crate::position::{Entry, Epoch, NodeId, PartitionId, Position, ReplicaId};
use crate::sequencer::Lineage;
use crate::storage::RecordCursor;

/// Chunks that are made and not yet on the disk.
const CHUNKS_MAX: usize = 4;

/// Chunks that are under way to the disk at a time: the log's records wait for them.
const CHUNKS_UNDER_WAY_MAX: usize = 1;

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
    /// One replica at a time, which executes nothing meanwhile.
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
    /// Bytes of records that a node scans in a second at most while it has other work, so that neither that nor the log waits for the
    /// disk; at least 1.
    pub bytes_per_second: u64,
}

impl Default for CheckpointOptions {
    /// While transactions go on, after a minute or 256 MiB, at 16 MiB a second.
    fn default() -> CheckpointOptions {
        CheckpointOptions {
            mode: CheckpointMode::Concurrent,
            interval_microseconds: Some(60_000_000),
            log_bytes: 256 << 20,
            bytes_per_second: 16 << 20,
        }
    }
}

/// What a checkpoint keeps besides rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedNode {
    /// Requests and answers.
    pub gateway: SavedGateway,
    /// The snapshots that the order had opened and not closed, and through which node each was.
    pub snapshots: Vec<(Position, Entry)>,
    /// The digest of all writes through the epoch, as replicas compare it.
    pub written: u128,
    /// The terms in which the epoch's batches were proposed, by origin; see [`Lineage`].
    pub terms: Vec<u64>,
    /// Where the log goes on after it.
    pub log: LogStart,
}

impl SavedNode {
    /// Sums up the history that the checkpoint is of.
    pub fn lineage(&self) -> u64 {
        Lineage::sum_of(&self.terms)
    }
}

/// The name of the section of a checkpoint that holds a [`SavedNode`]; it comes before the rows.
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
    /// Why the last one was not written, until the next one begins.
    problem: Option<(Epoch, String)>,
    /// Whether one was ordered by this node, or is somebody's turn as the order says, and is not stable.
    ordered: bool,
    /// For how long that is believed, in microseconds.
    ordered_for: u64,
    /// The newest one that any replica has completed, as far as this node was told.
    pub(super) completed_by_any: Epoch,
    /// Whose turn it was last, where replicas take turns.
    turn: Option<ReplicaId>,
    /// The epoch of that turn, once the order has told it.
    turn_at: Option<Epoch>,
    /// By replica: through which epoch its turns are over, as far as this node was told.
    passed: BTreeMap<ReplicaId, Epoch>,
    /// Bytes of batches since the last one was ordered.
    pub(super) logged_bytes: u64,
    /// When the last one was ordered, or else when the node started, or what it replays was logged.
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
    /// Until when nothing more is scanned while the node has other work, in microseconds.
    paced_until: u64,
    /// Chunks that the disk has not got yet.
    chunks: VecDeque<Vec<u8>>,
    under_way: usize,
    ended: bool,
}

impl Taking {
    /// Whether there are more rows, and room for chunks of them.
    fn has_room(&self) -> bool {
        self.writer.is_some() && self.chunks.len() + self.under_way < CHUNKS_MAX
    }

    /// Whether there is a chunk that the disk may have now.
    fn has_chunk(&self) -> bool {
        !self.chunks.is_empty() && self.under_way < CHUNKS_UNDER_WAY_MAX
    }
}

impl Checkpoints {
    pub(super) fn new(me: PartitionId, partitions: u16, options: CheckpointOptions) -> Checkpoints {
        Checkpoints {
            options,
            stability: Stability::new(me, partitions),
            due: VecDeque::new(),
            opened: VecDeque::new(),
            taking: None,
            problem: None,
            ordered: false,
            ordered_for: ORDERED_MICROSECONDS,
            completed_by_any: Epoch(0),
            turn: None,
            turn_at: None,
            passed: BTreeMap::new(),
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

    /// When the one that is being taken is to be carried on.
    pub(super) fn paced_until(&self) -> Option<u64> {
        let goes_on = |taking: &&Taking| taking.has_room();
        self.taking.as_ref().filter(goes_on).map(|taking| taking.paced_until)
    }

    /// Whether nothing is scanned now for the sake of other work.
    fn is_paced(&self, now: u64) -> bool {
        self.paced_until().is_some_and(|until| now < until)
    }

    /// Whether the node executes nothing now.
    pub(super) fn is_frozen(&self) -> bool {
        self.options.mode == CheckpointMode::Freeze && (self.taking.is_some() || !self.opened.is_empty())
    }

    /// Whether the node executes nothing now, and all before the point has its end in the checkpoint.
    pub(super) fn is_writing_frozen(&self) -> bool {
        self.is_frozen() && self.taking.as_ref().is_some_and(|taking| taking.began)
    }

    /// Notes that the order wants a checkpoint of this replica at the end of an epoch.
    pub(super) fn want(&mut self, epoch: Epoch) {
        if self.due.back() != Some(&epoch) && epoch > self.stability.stable() {
            self.due.push_back(epoch);
        }
    }

    /// Notes why one was not written, taken or fetched.
    pub(super) fn note_problem(&mut self, epoch: Epoch, problem: String) {
        self.problem = Some((epoch, problem));
    }

    /// Why the last one was not written, until the next one begins.
    pub(super) fn problem(&self) -> Option<&(Epoch, String)> {
        self.problem.as_ref()
    }

    /// Forgets the points through a stable epoch that were not begun: a node that goes on from an old checkpoint comes to them
    /// again although it has newer ones. Names those whose snapshot is open.
    fn drop_points(&mut self, stable: Epoch) -> Vec<Epoch> {
        self.due.retain(|epoch| *epoch > stable);
        let unbegun = self.taking.take_if(|taking| !taking.began && taking.epoch <= stable);
        let mut open: Vec<Epoch> = unbegun.into_iter().map(|taking| taking.epoch).collect();
        open.extend(self.opened.iter().copied().filter(|epoch| *epoch <= stable));
        self.opened.retain(|epoch| *epoch > stable);
        open
    }

    /// What was ordered may be lost with the leadership.
    pub(super) fn withdraw(&mut self) {
        self.ordered = false;
    }

    /// A chunk is on the disk.
    pub(super) fn chunk_written(&mut self) {
        if let Some(taking) = &mut self.taking {
            taking.under_way = taking.under_way.saturating_sub(1);
        }
    }

    /// Whether a checkpoint can be carried on now. None begins while another replica's is received.
    fn can_go_on(&self, receiving: bool) -> bool {
        match &self.taking {
            Some(taking) => taking.began && !taking.ended && (taking.has_room() || taking.has_chunk()),
            None => !self.opened.is_empty() && !receiving,
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
        self.order_checkpoint(now, outbox);
        self.open_point();
        if self.checkpoints.taking.is_none()
            && !self.transfers.is_receiving()
            && let Some(epoch) = self.checkpoints.opened.pop_front()
        {
            self.checkpoints.problem = None;
            self.checkpoints.taking = Some(Taking {
                epoch,
                began: false,
                writer: None,
                cursor: RecordCursor::START,
                paced_until: 0,
                chunks: VecDeque::new(),
                under_way: 0,
                ended: false,
            });
        }
        self.begin_checkpoint(outbox);
        let hurries = self.checkpoints.is_frozen() || self.has_nothing_else();
        self.carry_on(now, hurries, outbox);
        self.checkpoints.can_go_on(self.transfers.is_receiving())
            && (hurries || !self.checkpoints.is_paced(now))
    }

    /// The leader of the first partition decides when it is time; that of another one has its own log to look at.
    fn order_checkpoint(&mut self, now: u64, outbox: &mut Outbox) {
        let last = *self.checkpoints.last_at.get_or_insert(now);
        if !self.gateway.leads() || !self.may_order_checkpoint(now) || self.transfers.is_sending(now) {
            return;
        }
        let Checkpoints { options, logged_bytes, .. } = &self.checkpoints;
        let old = options.interval_microseconds.is_some_and(|interval| now >= last + interval);
        let is_long = *logged_bytes >= options.log_bytes;
        if self.me == DECIDES_TURNS && (is_long || (old && *logged_bytes > 0)) {
            self.checkpoints.logged_bytes = 0;
            self.order_checkpoint_by(self.next_turn());
        } else if is_long {
            // As much again has to come until it asks again.
            self.checkpoints.logged_bytes = 0;
            self.need_checkpoint(self.live_members(), outbox);
        }
    }

    /// The log has a batch that was closed at a time, in another life or elsewhere. What follows a checkpoint is as old as its first batch: so a
    /// log does not grow with the lives of a node that are too short for a checkpoint each.
    pub(super) fn note_logged(&mut self, closed_at: u64) {
        let last = self.checkpoints.last_at.unwrap_or(self.now);
        self.checkpoints.last_at = Some(last.min(closed_at));
    }

    /// The order has come to a checkpoint: the next one is due as long after it as ever.
    pub(super) fn note_ordered(&mut self) {
        self.checkpoints.logged_bytes = 0;
        self.checkpoints.last_at = Some(self.now);
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
        let Some(epoch) = self.checkpoints.due.pop_front() else { return };
        // After a start, one that was taken before may be wanted again.
        if !self.checkpoints.stability.has(epoch, self.basis(epoch).lineage) {
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
        let terms = self.merger.lineage().terms(epoch).unwrap_or_default().to_vec();
        let saved = SavedNode {
            gateway: self.gateway.save(epoch),
            snapshots: self.held.save(epoch),
            written: written.0,
            terms,
            log: start,
        };
        let mut writer = CheckpointWriter::new(header);
        if let Err(problem) = writer.section(NODE_SECTION, &super::encode_body(&saved)) {
            return self.checkpoint_failed(&problem.to_string(), outbox);
        }
        (taking.began, taking.writer) = (true, Some(writer));
        outbox.disk.push(DiskWrite::BeginCheckpoint(epoch));
    }

    /// Scans a little, and gives the disk what it has room for.
    fn carry_on(&mut self, now: u64, hurries: bool, outbox: &mut Outbox) {
        let paced = !hurries && self.checkpoints.is_paced(now);
        let Some(taking) = &mut self.checkpoints.taking else { return };
        let room = taking.has_room() && !paced;
        if let Some(mut writer) = taking.writer.take_if(|_| room) {
            let frozen = self.checkpoints.options.mode == CheckpointMode::Freeze;
            let budget = if frozen { FREEZE_SCAN_BYTES } else { STEP_SCAN_BYTES };
            let at = Position::end_of(taking.epoch);
            let cursor = writer.write_rows(&mut *self.storage, taking.cursor, budget);
            let pause = budget as u64 * 1_000_000 / self.checkpoints.options.bytes_per_second.max(1);
            taking.paced_until = now.max(taking.paced_until) + pause;
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
        while taking.has_chunk()
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
        let lineage = self.basis(epoch).lineage;
        for partition in self.others().iter() {
            let to = NodeId { partition, replica: self.id.replica };
            self.send(to, Message::CheckpointWritten { epoch, lineage }, outbox);
        }
        self.note_checkpoint(now, self.me, epoch, lineage, outbox);
    }

    /// A checkpoint could not be written. The next one may.
    pub(super) fn checkpoint_failed(&mut self, reason: &str, outbox: &mut Outbox) {
        let Some(taking) = self.checkpoints.taking.take() else { return };
        if taking.writer.is_some() || !taking.began {
            self.close_point(taking.epoch);
        }
        self.checkpoints.ordered = false;
        self.checkpoints.note_problem(taking.epoch, reason.to_owned());
        self.end_turn(outbox);
        self.fail_turn(outbox);
    }

    /// A node of the own replica has a checkpoint: what is older than the newest one that all have can go (CAL-103).
    pub(super) fn note_checkpoint(
        &mut self,
        now: u64,
        partition: PartitionId,
        epoch: Epoch,
        lineage: u64,
        outbox: &mut Outbox,
    ) {
        let stable = self.checkpoints.stability.written(partition, epoch, lineage);
        let dropped = self.checkpoints.stability.trim(self.transfers.sent(now));
        outbox.disk.extend(dropped.into_iter().map(DiskWrite::DropCheckpoint));
        let Some(stable) = stable else { return };
        if self.checkpoints.turn.is_none_or(|turn| turn == self.id.replica) {
            self.checkpoints.ordered = false;
        }
        match self.transfers.is_sending(now) {
            true => self.transfers.postponed = Some(stable),
            false => self.stabilise(stable, outbox),
        }
        self.offer_wanted(outbox);
    }

    /// Lets go what is older than a stable checkpoint.
    pub(super) fn stabilise(&mut self, stable: Epoch, outbox: &mut Outbox) {
        self.streams.forget(stable);
        // A node that has started again may be behind what its whole replica has on its disks.
        self.merger.forget_terms(stable.min(self.merger.delivered()));
        self.transfers.postponed = None;
        self.checkpoints.drop_points(stable).into_iter().for_each(|epoch| self.close_point(epoch));
        // First: a log that is cut is of no use without the mark of the checkpoint after which it begins.
        outbox.disk.push(DiskWrite::RemoveCheckpoints { before: stable });
        let index = self.checkpoints.stability.index_of(stable);
        if let (Some(index), Some(log)) = (index, &mut self.log.replicated) {
            log.compact(index);
            let restatement = log.restatement();
            outbox.disk.push(DiskWrite::TruncateLog { through: index, restatement });
        }
        self.end_turn(outbox);
    }

    /// Tells a node of the own replica again which checkpoints there are: it may have forgotten.
    pub(super) fn tell_checkpoints(&mut self, peer: NodeId, outbox: &mut Outbox) {
        let own: Vec<(Epoch, u64)> = self.checkpoints.stability.own().collect();
        for (epoch, lineage) in own {
            self.send(peer, Message::CheckpointWritten { epoch, lineage }, outbox);
        }
    }

    /// Takes over the state of a checkpoint, whose rows the storage has already. Only before the first step.
    pub fn resume(&mut self, resumed: Resumed) {
        let Resumed { epoch, saved } = resumed;
        let lineage = saved.lineage();
        self.merger.resume(epoch, saved.terms);
        self.sequencer.resume(epoch);
        self.engine.resume(Position::end_of(epoch));
        self.streams.resume(epoch);
        self.log.dispatched = epoch;
        self.gateway.restore(saved.gateway, saved.snapshots.iter().map(|(at, _)| *at));
        self.held.restore(saved.snapshots);
        self.agreement.resume(epoch, Digest(saved.written));
        self.checkpoints.stability.resume(epoch, lineage);
        self.checkpoints.stability.logged(epoch, saved.log.index);
    }

    /// Tells which checkpoints are on the disk, with their [lineages](SavedNode::lineage). Only before the first step.
    pub fn know_checkpoints(&mut self, on_disk: &[(Epoch, u64)]) {
        self.checkpoints.stability.know(on_disk);
    }
}
