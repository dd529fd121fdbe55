//! What a node tells about itself and its rows.

use std::ops::ControlFlow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{GroupStatus, Node};
use crate::data::{Direction, Key, KeyRange, Partitioning, Schema};
use crate::engine::Engine;
use crate::engine::two_phase::TwoPhaseCounters;
use crate::error::Error;
use crate::execution::Executions;
use crate::execution::snapshot_reads::SnapshotReads;
use crate::gateway::Counters;
use crate::gateway::scouting::Scouting;
use crate::hash::{Digest, key_hash};
use crate::limits::{SCAN_PAGE_BYTES_MAX, SCAN_PAGE_ROWS_MAX};
use crate::message::Page;
use crate::position::{Epoch, PartitionId, Position};
use crate::procedure::ProcedureId;
use crate::storage::{Statistics, Storage};

/// What a node tells about itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// What became of requests whose home is here.
    pub counters: Counters,
    /// The last epoch that was delivered here.
    pub delivered: Epoch,
    /// Transactions that wait for an epoch.
    pub waiting: u64,
    /// Delivered transactions that have not finished.
    pub live: u64,
    /// Messages sent to other partitions.
    pub messages: u64,
    /// Their payload in bytes.
    pub message_bytes: u64,
    /// Rows held.
    pub rows: u64,
    /// Versions and deleted rows that are kept for snapshots or not yet freed.
    pub garbage: u64,
    /// Whether this node leads its replication group: it takes requests in.
    pub leads: bool,
    /// The newest epoch at whose end all nodes of this replica have a checkpoint; 0 if there is none.
    pub stable: Epoch,
    /// The same of any replica, as far as this one was told.
    pub stable_anywhere: Epoch,
    /// The epoch of the last checkpoint, if it was not written, and why; until the next one begins.
    pub checkpoint_problem: Option<(Epoch, String)>,
    /// Whether the node executes nothing now, for a checkpoint.
    pub frozen: bool,
    /// The deadlocks that the engine [`two_phase`](crate::engine::two_phase) has met; the others have none.
    pub deadlocks: TwoPhaseCounters,
    /// Functors that stopped since the node was started, and left their keys alone although their calls committed: each is a mistake in a
    /// procedure, or a number at its end. What was replayed from the log counts again.
    pub functors_stopped: u64,
    /// The last of them: its procedure, key, table and position, and why.
    pub functor_problem: Option<String>,
    /// The first epoch at whose end the replicas of the partition had written different things, and no majority agreed, so that none of them
    /// has stopped: an operator has to decide whom to trust.
    pub undecided: Option<Epoch>,
    /// Its replication group; `None` if the node keeps no log.
    pub group: Option<GroupStatus>,
    /// Digest of this partition's rows, if asked for; see [`Node::digest`].
    pub digest: Option<u128>,
}

/// A page of a range as of a snapshot that is open.
pub(super) fn page_of(
    storage: &mut dyn Storage,
    range: &KeyRange,
    direction: Direction,
    at: Position,
    rows: usize,
) -> Page {
    let mut page = Page::default();
    let rows_max = rows.clamp(1, SCAN_PAGE_ROWS_MAX);
    storage.scan(range, direction, at, &mut |key, row| {
        if page.rows.len() >= rows_max || page.rows.bytes() >= SCAN_PAGE_BYTES_MAX {
            page.more = true;
            return ControlFlow::Break(());
        }
        page.rows.push(key, row);
        ControlFlow::Continue(())
    });
    page
}

/// Digest of the newest state of a partition, see [`Node::digest`].
pub(super) fn digest_of(storage: &dyn Storage, schema: &Schema, me: PartitionId) -> Digest {
    let counted = |key: &[u8]| {
        let replicated =
            schema.table_of(key).is_ok_and(|table| *table.partitioning() == Partitioning::Replicated);
        !replicated || me == PartitionId(0)
    };
    storage.digest(Position::LATEST, &counted)
}

impl<E: Engine> Node<E> {
    /// Whether a snapshot can be read here.
    fn check_open(&mut self, at: Position) -> Result<(), Error> {
        if self.open.iter().any(|(open, _)| *open == at) {
            return Ok(());
        }
        let comes = at.epoch > self.executed() || self.opening.iter().any(|(opening, _)| *opening == at);
        if comes && at < Position::LATEST {
            return Err(Error::Busy(format!("this node has not come to {at} yet")));
        }
        Err(Error::NotOpen(at))
    }

    /// Runs a procedure that only reads as of an open snapshot.
    pub(super) fn read_snapshot(
        &mut self,
        at: Position,
        procedure: ProcedureId,
        arguments: &[u8],
    ) -> Result<Bytes, Error> {
        self.check_open(at)?;
        let Node { me, partitions, .. } = *self;
        let reads =
            SnapshotReads { me, partitions, schema: &self.catalog.schema, storage: &mut *self.storage, at };
        reads.run(&self.catalog, procedure, arguments)
    }

    /// A page of a range as of an open snapshot.
    pub(super) fn scan_page(
        &mut self,
        at: Position,
        range: &KeyRange,
        direction: Direction,
        rows: usize,
    ) -> Result<Page, Error> {
        self.check_open(at)?;
        Ok(page_of(&mut *self.storage, range, direction, at, rows))
    }

    /// What the node tells about itself.
    pub fn status(&self, digest: bool) -> Status {
        let Statistics { rows, garbage, .. } = self.storage.statistics();
        Status {
            counters: self.gateway.counters,
            delivered: self.merger.delivered(),
            waiting: self.sequencer.waiting() as u64,
            live: (self.engine.live() + self.ready.len()) as u64,
            messages: self.messages,
            message_bytes: self.message_bytes,
            rows: rows as u64,
            garbage: garbage as u64,
            leads: self.gateway.leads(),
            stable: self.checkpoints.stability.stable(),
            stable_anywhere: self.checkpoints.completed_by_any.max(self.checkpoints.stability.stable()),
            checkpoint_problem: self.checkpoints.problem().cloned(),
            deadlocks: TwoPhaseCounters::default(),
            frozen: self.checkpoints.is_frozen(),
            functors_stopped: self.effects.executions.functors_stopped,
            functor_problem: self.effects.functor_problem.clone(),
            undecided: self.agreement.undecided(),
            group: self.group_status(),
            digest: digest.then(|| self.digest().0),
        }
    }

    /// What was executed so far, and what was run to find out what to lock.
    pub fn executions(&self) -> Executions {
        let Scouting { runs, units, .. } = self.gateway.scouting;
        Executions { reconnaissance: runs, reconnaissance_units: units, ..self.effects.executions }
    }

    /// What reconnaissance has cost here, and what came of it.
    pub fn scouting(&self) -> Scouting {
        self.gateway.scouting
    }

    /// Digest of the newest state. The digests of all partitions add up to the same sum for any number of partitions: rows that
    /// every partition holds are counted at partition 0 only.
    pub fn digest(&self) -> Digest {
        digest_of(&*self.storage, &self.catalog.schema, self.me)
    }

    /// The newest row of a key, without regard to transactions: for tests and tools.
    pub fn peek(&self, key: &Key) -> Option<&[u8]> {
        let record = self.storage.locate(key, key_hash(key))?;
        Some(self.storage.row(record))
    }

    /// Live transactions, a line each, for scripts and people.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        self.engine.describe(&mut out);
        let awaited = self.merger.awaited();
        if !awaited.is_empty() {
            let names: Vec<String> = awaited.iter().map(PartitionId::to_string).collect();
            out.push_str(&format!("{} waits for {}\n", self.merger.delivered().next(), names.join(" ")));
        }
        out
    }
}
