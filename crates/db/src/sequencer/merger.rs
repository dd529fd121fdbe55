//! Interleaves all sequencers' batches into one order (Calvin §3.1, CAL-26, CAL-27).

use std::collections::VecDeque;

use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::key_hash;
use crate::message::{Delivered, Ordered};
use crate::position::{Epoch, PartitionId, Position};
use crate::procedure::Footprint;
use crate::sequencer::Lineage;

/// The part of one sequencer's batch that concerns this partition.
type Part = Vec<(u32, Ordered, Option<Box<Footprint>>)>;

#[derive(Debug)]
struct Slot {
    /// By origin, with the term in which the batch was proposed; `None` until the part has come. Silence is not "empty"
    /// (trap 2).
    parts: Vec<Option<(u64, Part)>>,
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
    lineage: Lineage,
}

impl Merger {
    /// The merger of the node `me` that waits for the first epoch of a cluster of `partitions`.
    pub fn new(me: PartitionId, partitions: u16) -> Merger {
        Merger {
            me,
            partitions,
            delivered: Epoch(0),
            epochs: VecDeque::new(),
            lineage: Lineage::new(partitions),
        }
    }

    /// The last epoch that was delivered.
    pub fn delivered(&self) -> Epoch {
        self.delivered
    }

    /// Goes on after an epoch, agreed on in these terms, whose transactions a checkpoint holds.
    pub fn resume(&mut self, after: Epoch, terms: Vec<u64>) {
        debug_assert!(self.epochs.is_empty(), "only a new merger resumes");
        self.delivered = after;
        self.lineage.resume(after, terms);
    }

    /// Takes in the part of a batch that was proposed in a term. What was delivered or has come before is ignored: a sender
    /// that has recovered says again what it said, and says the same, since it reads it from the log.
    ///
    /// If the term is another one, so is the batch: then what was not delivered gives way to what comes later, together with what
    /// came after it.
    pub fn receive(&mut self, origin: PartitionId, epoch: Epoch, term: u64, part: Part) {
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
        match place.replace((term, part)) {
            None => slot.missing -= 1,
            Some((known, _)) if known == term => {}
            Some(_) => {
                for later in self.epochs.iter_mut().skip(ahead + 1) {
                    later.missing += usize::from(later.parts[origin.index()].take().is_some());
                }
            }
        }
    }

    /// The terms of delivered epochs.
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// The term of an origin's batch, if it has come and is not forgotten.
    pub fn term(&self, origin: PartitionId, epoch: Epoch) -> Option<u64> {
        if epoch <= self.delivered {
            return self.lineage.term(origin, epoch);
        }
        let slot = self.epochs.get((epoch.0 - self.delivered.0 - 1) as usize)?;
        slot.parts[origin.index()].as_ref().map(|(term, _)| *term)
    }

    /// Forgets the terms of epochs before one.
    pub fn forget_terms(&mut self, before: Epoch) {
        self.lineage.forget(before);
    }

    /// Whether all parts of the next epoch have come.
    pub fn has_next(&self) -> bool {
        self.epochs.front().is_some_and(|slot| slot.missing == 0)
    }

    /// Appends the transactions of the next epoch to `ready` if all its parts have come; whether it did.
    ///
    /// Whole batches follow each other in the order of their origins. Taking one transaction of each in turn would give
    /// partitions different orders, since each sees only its own transactions (trap 1).
    pub fn deliver_next<F: Failpoints>(&mut self, ready: &mut VecDeque<Delivered>) -> bool {
        let Some(slot) = self.epochs.pop_front_if(|slot| slot.missing == 0) else { return false };
        let epoch = self.delivered.next();
        self.delivered = epoch;
        self.lineage.note(epoch, slot.parts.iter().flatten().map(|(term, _)| *term));
        let first = ready.len();
        for (origin, (_, part)) in slot.parts.into_iter().flatten().enumerate() {
            let origin = PartitionId(origin as u16);
            for (index, ordered, footprint) in part {
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
