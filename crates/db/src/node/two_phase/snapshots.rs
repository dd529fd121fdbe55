//! Snapshots of all partitions at one position, where nobody gives positions in advance.
//!
//! The home of the client that wants one chooses a position above all that happens until everybody has heard of it, and announces it.
//! Who has heard of a snapshot opens it before it gives that or a later position to anything, at the latest when all have. It can be
//! read where all that had promised to commit before has ended. A partition whose clock is too far already refuses; then, and when a
//! partition starts again, the snapshot gets another position: no position is announced twice, so that each message says of which
//! it is.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::TwoPhaseNode;
use crate::engine::two_phase::message::{SnapshotMessage, TransactionId};
use crate::error::Error;
use crate::execution::snapshot_reads::SnapshotReads;
use crate::failpoint::Failpoints;
use crate::message::{Message, Ordered, RequestId, Work};
use crate::node::{OpenSnapshot, Outbox, encode_body};
use crate::position::{Epoch, NodeId, PartitionId, PartitionSet, Position};
use crate::procedure::ProcedureId;

/// How far a snapshot's position is above the clock: partitions go on committing until all know of it.
const SNAPSHOT_AHEAD: u64 = 1 << 20;

/// More than what a step begins and commits.
const COMMITS_IN_A_STEP: u64 = 1 << 16;

/// A snapshot of a client that is at home here.
#[derive(Debug)]
struct Wanted {
    request: RequestId,
    acknowledged: u64,
    /// Partitions that do not know of it.
    unknown: PartitionSet,
    /// Those where it cannot be read yet. One may open it for the sake of its clock before all know of it.
    unready: PartitionSet,
}

/// A snapshot that cannot be read here yet.
#[derive(Debug)]
struct Opening {
    at: Position,
    /// Transactions that may yet get a position before it.
    undecided: Vec<TransactionId>,
}

/// The snapshots of one partition. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// Of this partition's clients: those that cannot be read everywhere.
    wanted: BTreeMap<Position, Wanted>,
    /// What is to be opened here, at the latest when the clock comes to it.
    announced: Vec<Position>,
    opening: Vec<Opening>,
    /// What can be read here, each with the time since when.
    open: Vec<(Position, u64)>,
    /// The last number that was announced here.
    last: u64,
}

impl Snapshots {
    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.opening.is_empty()
    }

    /// Whether nothing has a position up to the clock that is to be opened yet.
    pub(super) fn are_ahead_of(&self, clock: u64) -> bool {
        self.announced.iter().all(|at| at.epoch.0 > clock)
    }

    /// Those that can be read here, as of a time.
    pub(super) fn open_at(&self, now: u64) -> Vec<OpenSnapshot> {
        let told = |(at, since): &(Position, u64)| OpenSnapshot {
            at: *at,
            age_microseconds: now.saturating_sub(*since),
        };
        self.open.iter().map(told).collect()
    }

    /// The snapshots that are on their way, a line each.
    pub(super) fn describe(&self, out: &mut String) {
        let names =
            |set: PartitionSet| set.iter().map(|partition| format!(" {partition}")).collect::<String>();
        for (at, Wanted { unknown, unready, .. }) in &self.wanted {
            let (unknown, unready) = (names(*unknown), names(*unready));
            out.push_str(&format!("snapshot {at} is unknown to{unknown}, not ready at{unready}\n"));
        }
        for Opening { at, undecided } in &self.opening {
            let ids: String = undecided.iter().map(|id| format!(" {id}")).collect();
            out.push_str(&format!("snapshot {at} waits for{ids}\n"));
        }
    }
}

impl<F: Failpoints> TwoPhaseNode<F> {
    pub(super) fn take_snapshot_message(
        &mut self,
        from: PartitionId,
        message: SnapshotMessage,
        outbox: &mut Outbox,
    ) {
        match message {
            SnapshotMessage::Announce { at } => {
                let clock = self.engine.clock();
                let answer = match at.epoch.0 > clock + COMMITS_IN_A_STEP {
                    true => SnapshotMessage::Known { at },
                    false => SnapshotMessage::Late { at, clock },
                };
                if matches!(answer, SnapshotMessage::Known { .. }) {
                    self.snapshots.announced.push(at);
                }
                self.send(from, Message::TwoPhaseSnapshot(answer), outbox);
            }
            SnapshotMessage::Known { at } => self.take_known(from, at, outbox),
            SnapshotMessage::Late { at, clock } => {
                if let Some(Wanted { request, acknowledged, .. }) = self.snapshots.wanted.remove(&at) {
                    self.tell_others(&Message::CloseSnapshot(at), outbox);
                    self.close_snapshot(at);
                    self.pass(clock);
                    self.announce(request, acknowledged, outbox);
                }
            }
            SnapshotMessage::Open { at } => {
                if self.snapshots.announced.contains(&at) {
                    self.pass(at.epoch.0);
                }
            }
            SnapshotMessage::Ready { at } => self.snapshot_ready(from, at),
        }
    }

    /// Begins to open a snapshot for a client that is at home here.
    pub(super) fn begin_snapshot(
        &mut self,
        request: RequestId,
        acknowledged: u64,
        entry: NodeId,
        outbox: &mut Outbox,
    ) {
        if self.snapshots.open.len() + self.snapshots.opening.len() + self.snapshots.wanted.len()
            >= self.limits.snapshots
        {
            self.sessions.withdraw(request);
            let busy = format!("{} snapshots are open at {}: close some", self.limits.snapshots, self.me);
            return self.refuse(request, entry, Error::Busy(busy));
        }
        self.announce(request, acknowledged, outbox);
    }

    /// A snapshot gets a position above all that happens until everybody has heard of it.
    fn announce(&mut self, request: RequestId, acknowledged: u64, outbox: &mut Outbox) {
        let number = (self.engine.clock() + SNAPSHOT_AHEAD).max(self.snapshots.last + 1);
        self.snapshots.last = number;
        let at = Position { epoch: Epoch(number), origin: self.me, index: 0 };
        let (unknown, unready) = (PartitionSet::all(self.partitions), PartitionSet::all(self.partitions));
        self.snapshots.announced.push(at);
        self.snapshots.wanted.insert(at, Wanted { request, acknowledged, unknown, unready });
        self.tell_others(&Message::TwoPhaseSnapshot(SnapshotMessage::Announce { at }), outbox);
        self.take_known(self.me, at, outbox);
    }

    /// A partition knows of a snapshot. When all do, it is opened.
    fn take_known(&mut self, from: PartitionId, at: Position, outbox: &mut Outbox) {
        let Some(wanted) = self.snapshots.wanted.get_mut(&at) else { return };
        wanted.unknown.remove(from);
        if wanted.unknown.is_empty() {
            self.tell_others(&Message::TwoPhaseSnapshot(SnapshotMessage::Open { at }), outbox);
            self.pass(at.epoch.0);
            self.answer_snapshot(at);
        }
    }

    /// Moves the clock on to one that was heard of, if it is behind, and opens what is announced up to where this step's commits can
    /// come: they are to come after it. Nothing else moves the clock but what the engine begins and commits itself, and that is less
    /// than [`COMMITS_IN_A_STEP`].
    pub(super) fn pass(&mut self, clock: u64) {
        self.engine.raise_clock(clock);
        self.snapshots.announced.sort_unstable();
        while let Some(at) = self.snapshots.announced.first().copied()
            && at.epoch.0 <= self.engine.clock() + COMMITS_IN_A_STEP
        {
            self.snapshots.announced.remove(0);
            self.engine.open_snapshot(at, None);
            self.storage.open_snapshot(at);
            self.snapshots.opening.push(Opening { at, undecided: self.engine.undecided() });
        }
    }

    /// Tells of snapshots that can be read here: all that had promised to commit before has done so.
    pub(super) fn open_snapshots(&mut self) {
        let engine = &self.engine;
        let mut ready = Vec::new();
        self.snapshots.opening.retain_mut(|opening| {
            opening.undecided.retain(|id| engine.is_live(*id));
            if opening.undecided.is_empty() {
                ready.push(opening.at);
            }
            !opening.undecided.is_empty()
        });
        for at in ready {
            self.snapshots.open.push((at, self.now));
            if at.origin == self.me {
                self.snapshot_ready(self.me, at);
            } else {
                self.held.ready.push(at);
            }
        }
    }

    fn snapshot_ready(&mut self, from: PartitionId, at: Position) {
        if let Some(wanted) = self.snapshots.wanted.get_mut(&at) {
            wanted.unready.remove(from);
            self.answer_snapshot(at);
        }
    }

    /// Answers the request for a snapshot if it can be read everywhere, and all know of it.
    fn answer_snapshot(&mut self, at: Position) {
        let readable = |wanted: &Wanted| wanted.unknown.is_empty() && wanted.unready.is_empty();
        if self.snapshots.wanted.get(&at).is_some_and(readable)
            && let Some(Wanted { request, acknowledged, .. }) = self.snapshots.wanted.remove(&at)
        {
            self.engine.open_snapshot(at, Some((request, acknowledged)));
            self.note_snapshot(at, request, acknowledged);
        }
    }

    /// A snapshot can be read, or could be in an earlier life: its request is answered.
    pub(super) fn note_snapshot(&mut self, at: Position, request: RequestId, acknowledged: u64) {
        self.sessions.ordered(request, acknowledged, at);
        if self.effects.executed.is_some() {
            let ordered = Ordered { request, acknowledged, work: Work::OpenSnapshot(self.entry()) };
            self.held.closed.push((at.epoch, vec![(0, ordered)]));
        }
        self.answer(request, Some(at), Ok(encode_body(&at)));
    }

    pub(super) fn close_snapshot(&mut self, at: Position) {
        let Snapshots { announced, opening, open, .. } = &mut self.snapshots;
        let before = (opening.len(), open.len());
        announced.retain(|announced| *announced != at);
        opening.retain(|opening| opening.at != at);
        open.retain(|(open, _)| *open != at);
        if before != (opening.len(), open.len()) {
            self.storage.close_snapshot(at);
        }
    }

    pub(super) fn check_open(&self, at: Position) -> Result<(), Error> {
        match self.snapshots.open.iter().any(|(open, _)| *open == at) {
            true => Ok(()),
            false => Err(Error::NotOpen(at)),
        }
    }

    pub(super) fn read_snapshot(
        &mut self,
        at: Position,
        procedure: ProcedureId,
        arguments: &[u8],
    ) -> Result<Bytes, Error> {
        self.check_open(at)?;
        let (me, partitions, schema) = (self.me, self.partitions, &self.catalog.schema);
        let reads = SnapshotReads { me, partitions, schema, storage: &mut *self.storage, at };
        reads.run(&self.catalog, procedure, arguments)
    }

    /// A partition may have forgotten the snapshots that are being opened: they get other positions. And this one forgets those of
    /// that partition.
    pub(super) fn reset_snapshots(&mut self, peer: PartitionId, outbox: &mut Outbox) {
        let Snapshots { announced, opening, open, .. } = &self.snapshots;
        let known = announced.iter().chain(opening.iter().map(|opening| &opening.at));
        let known = known.chain(open.iter().map(|(at, _)| at)).copied();
        let of_peer: Vec<Position> = known.filter(|at| at.origin == peer).collect();
        of_peer.into_iter().for_each(|at| self.close_snapshot(at));
        for (at, Wanted { request, acknowledged, .. }) in std::mem::take(&mut self.snapshots.wanted) {
            self.close_snapshot(at);
            self.tell_others(&Message::CloseSnapshot(at), outbox);
            self.announce(request, acknowledged, outbox);
        }
    }
}
