//! Interleaves all sequencers' batches into one order (Calvin §3.1, CAL-26, CAL-27).

use std::collections::VecDeque;

use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::key_hash;
use crate::message::{Delivered, Ordered};
use crate::position::{Epoch, PartitionId, Position};
use crate::procedure::Footprint;

/// The part of one sequencer's batch that concerns this partition.
type Part = Vec<(u32, Ordered, Option<Box<Footprint>>)>;

#[derive(Debug)]
struct Slot {
    /// By origin; `None` until the part has come. Silence is not "empty" (trap 2).
    parts: Vec<Option<Part>>,
    missing: usize,
}

/// One partition's view of the global order.
#[derive(Debug)]
pub struct Merger {
    me: PartitionId,
    partitions: u16,
    /// The last epoch that was delivered: `epochs[0]` is `delivered` + 1.
    delivered: Epoch,
    epochs: VecDeque<Slot>,
}

impl Merger {
    /// The merger of the node `me` that waits for the first epoch of a cluster of `partitions`.
    pub fn new(me: PartitionId, partitions: u16) -> Merger {
        Merger { me, partitions, delivered: Epoch(0), epochs: VecDeque::new() }
    }

    /// The last epoch that was delivered.
    pub fn delivered(&self) -> Epoch {
        self.delivered
    }

    /// Goes on after an epoch whose transactions a checkpoint holds.
    pub fn resume(&mut self, after: Epoch) {
        debug_assert!(self.epochs.is_empty(), "only a new merger resumes");
        self.delivered = after;
    }

    /// Takes in the part of a batch. What was delivered or has come before is ignored: a sender that has recovered says again
    /// what it said, and says the same, since it reads it from the log.
    pub fn receive(&mut self, origin: PartitionId, epoch: Epoch, part: Part) {
        if epoch <= self.delivered {
            return;
        }
        debug_assert!(part.windows(2).all(|pair| pair[0].0 < pair[1].0), "indexes of a batch ascend");
        let ahead = (epoch.0 - self.delivered.0 - 1) as usize;
        while self.epochs.len() <= ahead {
            let parts = (0..self.partitions).map(|_| None).collect();
            self.epochs.push_back(Slot { parts, missing: usize::from(self.partitions) });
        }
        let slot = &mut self.epochs[ahead];
        let place = &mut slot.parts[origin.index()];
        if place.is_none() {
            *place = Some(part);
            slot.missing -= 1;
        }
    }

    /// Appends the transactions of the next epoch to `ready` if all its parts have come; whether it did.
    ///
    /// Whole batches follow each other in the order of their origins. Taking one transaction of each in turn would give
    /// partitions different orders, since each sees only its own transactions (trap 1).
    pub fn deliver_next<F: Failpoints>(&mut self, ready: &mut VecDeque<Delivered>) -> bool {
        if self.epochs.front().is_none_or(|slot| slot.missing > 0) {
            return false;
        }
        let Some(slot) = self.epochs.pop_front() else { return false };
        let epoch = self.delivered.next();
        self.delivered = epoch;
        let first = ready.len();
        for (origin, part) in slot.parts.into_iter().enumerate() {
            let origin = PartitionId(origin as u16);
            for (index, ordered, footprint) in part.into_iter().flatten() {
                let position = Position { epoch, origin, index };
                ready.push_back(Delivered { position, ordered, footprint });
            }
        }
        if F::on(Failpoint::InterleaveByTransaction) {
            let mut seen = vec![0_u32; usize::from(self.partitions)];
            self.reorder(first, ready, |position| {
                seen[position.origin.index()] += 1;
                u64::from(seen[position.origin.index()])
            });
        }
        if F::on(Failpoint::RandomHashOrder) {
            let me = self.me.0;
            self.reorder(first, ready, |position| key_hash(&[me as u8, position.origin.0 as u8]));
        }
        true
    }

    /// Makes another order of what was delivered last: by a number for each transaction.
    fn reorder(&self, first: usize, ready: &mut VecDeque<Delivered>, mut by: impl FnMut(Position) -> u64) {
        let mut delivered: Vec<(u64, Delivered)> =
            ready.drain(first..).map(|delivered| (by(delivered.position), delivered)).collect();
        delivered.sort_by_key(|(number, _)| *number);
        ready.extend(delivered.into_iter().map(|(_, delivered)| delivered));
    }

    /// Number of epochs after the last delivered one of which something has come.
    pub fn ahead(&self) -> usize {
        self.epochs.len()
    }

    /// The partitions whose batch of the next epoch has not come, for messages about a stall.
    pub fn awaited(&self) -> Vec<PartitionId> {
        let Some(slot) = self.epochs.front() else { return Vec::new() };
        let absent = slot.parts.iter().enumerate().filter(|(_, part)| part.is_none());
        absent.map(|(origin, _)| PartitionId(origin as u16)).collect()
    }
}
