//! What the order brings: calls for the engine, snapshots that open and close, ends.

use super::{Node, encode_body};
use crate::engine::Engine;
use crate::error::{Error, Fatal};
use crate::execution::Call;
use crate::failpoint::{Failpoint, Failpoints};
use crate::message::{Delivered, RequestId, Work};
use crate::position::{PartitionId, PartitionSet, Position};

/// Transactions whose rows are prefetched together.
pub(super) const PREFETCH_CALLS: usize = 8;

impl<E: Engine> Node<E> {
    /// Gives delivered transactions to the engine, as many as a step may execute, in groups whose rows are prefetched together.
    pub(super) fn execute(&mut self) -> Result<(), Fatal> {
        let mut left = self.pace.allowed();
        while !self.ready.is_empty() && !self.checkpoints.is_frozen() {
            let room = self.limits.transactions_live.saturating_sub(self.engine.live());
            let most = room.min(left).min(PREFETCH_CALLS);
            if most == 0 {
                break;
            }
            self.place_group(most)?;
            let mut group = std::mem::take(&mut self.group);
            // What is no call takes no time that matters.
            left -= group.len();
            for call in group.drain(..) {
                let (engine, mut context) = self.engine();
                engine.deliver(call, &mut context);
            }
            self.group = group;
        }
        Ok(())
    }

    /// Takes the next calls, finds their footprints, and prefetches their rows. What is no call is done when it is first.
    fn place_group(&mut self, most: usize) -> Result<(), Fatal> {
        self.hashes.clear();
        while self.group.len() < most {
            let Some(delivered) = self.ready.front() else { break };
            if self.checkpoints.next_point().is_some_and(|epoch| delivered.position.epoch > epoch) {
                // What is ahead of the point is delivered first.
                if self.group.is_empty() {
                    self.open_next_point();
                }
                break;
            }
            if !matches!(delivered.ordered.work, Work::Call { .. }) {
                // What is ahead of it is delivered first: a snapshot must be open before later writes, and only then.
                if self.group.is_empty() {
                    self.do_own_work();
                }
                break;
            }
            let Some(delivered) = self.next_ready() else { break };
            let call = Call::of(delivered, &mut self.gateway.spare, &self.catalog, self.partitions)?;
            let Some(call) = call else { continue };
            self.effects.executions.delivered += 1;
            call.local_hashes(self.me, &mut self.hashes);
            self.group.push(call);
        }
        self.storage.prefetch(&self.hashes);
        Ok(())
    }

    /// Takes what is next in the order.
    fn next_ready(&mut self) -> Option<Delivered> {
        let delivered = self.ready.pop_front()?;
        self.own_ready -= usize::from(delivered.position.origin == self.me);
        Some(delivered)
    }

    /// Does what is next in the order and is no call.
    fn do_own_work(&mut self) {
        let Some(Delivered { position, ordered, .. }) = self.next_ready() else { return };
        match ordered.work {
            Work::Call { .. } => unreachable!("calls go to the engine"),
            Work::OpenSnapshot(entry) => {
                self.held.opened(position, entry);
                self.storage.open_snapshot(position);
                self.opening.push_back((position, ordered.request));
            }
            Work::CloseSnapshot(at) => {
                self.held.ended(at);
                self.end_snapshot(at);
            }
            Work::GiveUp(error) => self.gateway.answer(ordered.request, Some(position), Err(error)),
            Work::Checkpoint(by) => {
                self.note_ordered();
                let keeps = self.log.replicated.is_some();
                if keeps && by.is_none_or(|replica| replica == self.id.replica) {
                    self.checkpoints.want(position.epoch);
                }
                if let Some(replica) = by.filter(|_| keeps) {
                    self.note_turn(replica, position.epoch);
                    if replica != self.id.replica {
                        self.stand_in.expect(replica, self.now);
                    }
                }
                let nothing =
                    || Error::Invalid("the database keeps nothing, so it takes no checkpoint".to_owned());
                let answer = keeps.then(|| encode_body(&position.epoch)).ok_or_else(nothing);
                self.gateway.answer(ordered.request, Some(position), answer);
            }
        }
    }

    /// Reports snapshots for which all earlier transactions have finished here.
    pub(super) fn open_snapshots(&mut self) {
        while let Some((at, request)) = self.opening.front().copied() {
            let early = E::Failpoints::on(Failpoint::OpenSnapshotEarly);
            if self.engine.oldest_live().is_some_and(|oldest| oldest < at) && !early {
                return;
            }
            self.opening.pop_front();
            self.open.push((at, self.now));
            self.tell_ready(request, at);
        }
    }

    /// Tells the origin of a snapshot that it can be read here.
    fn tell_ready(&mut self, request: RequestId, at: Position) {
        if at.origin == self.me {
            self.snapshot_ready(request, at, self.me);
        } else {
            self.effects.snapshots.push((request, at));
        }
    }

    pub(super) fn snapshot_ready(&mut self, request: RequestId, at: Position, from: PartitionId) {
        // A peer may say so again.
        if !self.gateway.awaits(request, at) {
            return;
        }
        let all = PartitionSet::all(self.partitions);
        let missing = self.unready.entry(request).or_insert(all);
        missing.remove(from);
        if missing.is_empty() {
            self.unready.remove(&request);
            self.gateway.answer(request, Some(at), Ok(encode_body(&at)));
        }
    }

    /// The order has come to the end of a snapshot.
    pub(super) fn end_snapshot(&mut self, at: Position) {
        // It may come before anybody could read the snapshot: when the log is replayed.
        if let Some(place) = self.opening.iter().position(|(opening, _)| *opening == at)
            && let Some((_, request)) = self.opening.remove(place)
        {
            self.storage.close_snapshot(at);
            self.tell_ready(request, at);
        } else if let Some(place) = self.open.iter().position(|(open, _)| *open == at) {
            self.open.remove(place);
            self.storage.close_snapshot(at);
        }
    }
}
