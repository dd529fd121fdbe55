//! Reads and snapshots that need no place in the order: where a node alone orders and holds everything, its rows are the newest state.
//!
//! What is executed here has been agreed on and is durable, and nobody is told of anything before that: so whoever reads here now sees
//! all that anybody was told before. Where other partitions or voters may know more, the same requests take a place in the order.

use super::{Node, encode_body};
use crate::engine::Engine;
use crate::error::{Error, Outcome};
use crate::execution::snapshot_reads::SnapshotReads;
use crate::failpoint::{Failpoint, Failpoints as _};
use crate::hash::key_hash;
use crate::message::{Operation, Request, RequestId};
use crate::position::Position;

/// Snapshots that were opened without a place in the order, by the requests that wanted them, in the order of opening. They end with the
/// node: no checkpoint has them.
pub(super) type Unordered = Vec<(RequestId, Position)>;

impl<E: Engine> Node<E> {
    /// Whether the rows here are the newest state of the whole database, of which nothing that anybody was told is missing.
    fn holds_newest(&self) -> bool {
        let behind = E::Failpoints::on(Failpoint::ReadBehind);
        let is_alone = self.partitions == 1 && (behind || self.replicas == 1 && self.gateway.leads());
        let ordered_alone = behind
            || self.log.replicated.as_deref().is_none_or(|log| {
                let membership = log.membership();
                membership.voters == [self.id.replica] && membership.outgoing.is_empty()
            });
        let executed = self.ready.is_empty()
            && self.engine.live() == 0
            && self.log.committed.is_empty()
            && self.log.dispatched == self.merger.delivered();
        is_alone && ordered_alone && executed
    }

    /// The answer to a request that can be answered without a place in the order; `None` if it needs one, or has it already.
    pub(super) fn answer_at_once(&mut self, request: &Request) -> Option<Outcome> {
        if !matches!(request.operation, Operation::Read { .. } | Operation::OpenSnapshot)
            || !self.holds_newest()
            || self.gateway.knows(request.id)
        {
            return None;
        }
        match &request.operation {
            Operation::Read { procedure, arguments } => {
                let Node { me, partitions, .. } = *self;
                let (schema, at) = (&self.catalog.schema, Position::LATEST);
                let reads = SnapshotReads { me, partitions, schema, storage: &mut *self.storage, at };
                Some(reads.run(&self.catalog, *procedure, arguments))
            }
            _ => Some(self.open_unordered(request.id).map(|at| encode_body(&at))),
        }
    }

    /// The answer of a node that does not ask whether others know more: a mistake that the simulator switches on.
    pub(super) fn answer_behind(&mut self, request: &Request) -> Option<Outcome> {
        let is_wrong =
            E::Failpoints::on(Failpoint::ReadBehind) && matches!(request.operation, Operation::Read { .. });
        if is_wrong { self.answer_at_once(request) } else { None }
    }

    fn open_unordered(&mut self, request: RequestId) -> Result<Position, Error> {
        // A client that has not got the answer asks again.
        if let Some((_, at)) = self.unordered.iter().find(|(opened, _)| *opened == request) {
            return Ok(*at);
        }
        self.gateway.check_snapshots(self.unordered.len())?;
        let at = self.unordered_position(request);
        self.storage.open_snapshot(at);
        self.open.push((at, self.now));
        self.unordered.push((request, at));
        Ok(at)
    }

    /// A place for a snapshot that has none in the order, which no other one here has: whoever closes a snapshot, be it several times,
    /// closes no other one. It follows from the request, so that neither does a request from an earlier life of the node.
    fn unordered_position(&self, request: RequestId) -> Position {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&request.client.number.to_le_bytes());
        bytes[8..].copy_from_slice(&request.sequence.to_le_bytes());
        // Behind the end of the epoch, so that it sees a checkpoint that was loaded there.
        let mut index = (key_hash(&bytes) as u32 >> 1) + 1;
        loop {
            let at = Position::beyond(self.merger.delivered(), index);
            if !self.unordered.iter().any(|(_, taken)| *taken == at) {
                return at;
            }
            index += 1;
        }
    }

    /// Ends a snapshot, if it was opened without a place in the order.
    pub(super) fn close_unordered(&mut self, at: Position) -> bool {
        let Some(place) = self.unordered.iter().position(|(_, opened)| *opened == at) else { return false };
        self.unordered.remove(place);
        self.end_snapshot(at);
        true
    }
}
