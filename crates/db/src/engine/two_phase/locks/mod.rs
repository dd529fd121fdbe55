//! Two-phase locks: requested in any order and at any time, held to the end of the transaction (DET-29, DET-30).
//!
//! Each key has a queue, first in first out ([`queue`]); readers share. Ranges are kept apart ([`ranges`]). A transaction has what it
//! asked for when it waits in no queue and for nobody because of a range. Who waits for whom is read off the queues when it is
//! asked for, by the detection of deadlocks ([`deadlock`](super::deadlock)): granting needs only a counter.
//!
//! The lock managers of the engine `calvin` do less, and therefore other things: there, all requests of a transaction come at once
//! and in the order of the log, nobody asks for more, and nobody gives up.

mod queue;
mod ranges;

use smallvec::SmallVec;

use super::deadlock::Place;
use crate::data::TableId;
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::{FastMap, keep_sparse};
use crate::position::PartitionId;
use crate::procedure::Footprint;
use crate::procedure::footprint::KeyEntry;

pub use queue::Mode;
use queue::{Queue, State};
use ranges::RangeLocks;

/// Number of a transaction that holds or asks for locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a transaction.
#[derive(Debug, Default)]
struct Requests {
    live: bool,
    /// The queues that it is in, by hash of the key, with its ticket there.
    keys: SmallVec<[(u64, u64); 8]>,
    /// In so many of them it waits.
    awaited: u32,
}

/// The locks of one partition. See the [module](self).
#[derive(Debug, Default)]
pub struct Locks {
    keys: FastMap<u64, Queue>,
    ranges: RangeLocks,
    requests: Vec<Requests>,
    live: usize,
    /// Number of those that wait.
    waiting: usize,
    next_ticket: u64,
}

/// The keys of a footprint that are locked here.
fn local_keys<F: Failpoints>(
    footprint: &Footprint,
    me: PartitionId,
) -> impl Iterator<Item = (&KeyEntry, Mode)> {
    let local = footprint.keys().iter().filter(move |entry| entry.owner.includes(me));
    let locked = local.filter(|entry| entry.access.write || !F::on(Failpoint::ForgetReadLock));
    locked.map(|entry| (entry, Mode::of(entry.access.write)))
}

impl Locks {
    /// Whether a transaction that holds nothing would get all that a footprint asks for here at once.
    pub fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        if self.live == 0 {
            return true;
        }
        let free = |hash: &u64, mode| self.keys.get(hash).is_none_or(|queue| queue.is_free(mode));
        local_keys::<F>(footprint, me).all(|(entry, mode)| free(&entry.hash, mode))
            && self.ranges.is_free::<F>(footprint, me)
    }

    /// Requests what a footprint asks for here; what the transaction has requested before is in it too. Whether it has all of it
    /// now. One that waits requests nothing more.
    pub fn request<F: Failpoints>(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) -> bool {
        if self.requests.len() <= slot.index() {
            self.requests.resize_with(slot.index() + 1, Requests::default);
        }
        let requests = &mut self.requests[slot.index()];
        let is_new = !requests.live;
        self.live += usize::from(is_new);
        requests.live = true;
        for (entry, mode) in local_keys::<F>(footprint, me) {
            keep_sparse(&mut self.keys);
            let queue = self.keys.entry(entry.hash).or_default();
            // A new one may have entered too: two of its keys may have one hash.
            let known = requests.keys.iter().find(|(hash, _)| *hash == entry.hash);
            let waits = match known {
                Some((_, ticket)) => queue.raise(*ticket, mode),
                None => {
                    let ticket = self.next_ticket;
                    self.next_ticket += 1;
                    requests.keys.push((entry.hash, ticket));
                    !queue.enter(slot, mode, ticket)
                }
            };
            requests.awaited += u32::from(waits);
        }
        let all = &self.requests;
        let waits = self.ranges.request::<F>(slot, footprint, me, || {
            let slots = (0..all.len() as u32).map(Slot);
            slots.filter(|other| *other != slot && all[other.index()].live).collect()
        });
        let waits = waits || self.requests[slot.index()].awaited > 0;
        self.waiting += usize::from(waits);
        !waits
    }

    /// Begins to enter what was held together before, in any order: nobody waits, if the tables are all that ranges are in.
    pub fn begin_replay(&mut self, tables: impl Iterator<Item = TableId>) {
        self.ranges.keep_keys(tables);
    }

    /// Ends what [`Locks::begin_replay`] began.
    pub fn end_replay(&mut self) {
        self.ranges.keep_keys_beside_ranges();
    }

    /// Takes a transaction out that has ended or given up; appends those that have all that they asked for now.
    pub fn release(&mut self, slot: Slot, granted: &mut Vec<Slot>) {
        let (waited, before) = (self.waits(slot), granted.len());
        let Requests { live, keys: own, .. } = std::mem::take(&mut self.requests[slot.index()]);
        self.live -= usize::from(live);
        let Locks { keys, ranges, requests, .. } = self;
        for (hash, ticket) in own {
            let Some(queue) = keys.get_mut(&hash) else { continue };
            queue.leave(ticket, |other| {
                let awaited = &mut requests[other.index()].awaited;
                *awaited -= 1;
                // Ranges are released below.
                if *awaited == 0 && ranges.waits_for(other).is_empty() {
                    granted.push(other);
                }
            });
            if queue.is_empty() {
                keys.remove(&hash);
            }
        }
        ranges.release(slot, |other| {
            if requests[other.index()].awaited == 0 {
                granted.push(other);
            }
        });
        self.waiting -= usize::from(waited) + granted.len() - before;
    }

    /// Whether a transaction waits for somebody.
    pub fn waits(&self, slot: Slot) -> bool {
        self.requests.get(slot.index()).is_some_and(|requests| requests.awaited > 0)
            || !self.ranges.waits_for(slot).is_empty()
    }

    /// For whose ends a transaction waits. Who is waited for by one of them anyway may be left out.
    pub fn waits_for(&self, slot: Slot) -> SmallVec<[Slot; 4]> {
        let mut before = SmallVec::from_slice(self.ranges.waits_for(slot));
        self.find_in_queues(slot, |other, _| before.push(other));
        before.sort_unstable();
        before.dedup();
        before
    }

    /// For whose ends a transaction waits in queues of keys, and where.
    fn find_in_queues(&self, slot: Slot, mut found: impl FnMut(Slot, Place)) {
        let Some(requests) = self.requests.get(slot.index()).filter(|requests| requests.awaited > 0) else {
            return;
        };
        for (key, ticket) in &requests.keys {
            let Some(queue) = self.keys.get(key) else { continue };
            queue.find_before(*ticket, |other, wanted, earlier| {
                found(other, Place::Queue { key: *key, wanted, earlier });
            });
        }
    }

    /// The same as [`waits_for`](Locks::waits_for) with where, of many transactions; how much work that was.
    pub fn find_waits(
        &self,
        waiting: impl Iterator<Item = Slot>,
        mut found: impl FnMut(Slot, Slot, Place),
    ) -> usize {
        let mut work = 0;
        let mut covered = vec![None; self.requests.len()];
        for slot in waiting {
            self.find_in_queues(slot, |earlier, place| {
                work += 1;
                found(slot, earlier, place);
            });
            work += self
                .ranges
                .find_before_all(slot, &mut covered, |earlier| found(slot, earlier, Place::Ranges));
        }
        work
    }

    /// Those that hold or ask for a key, in their order, with whether each has what it asks for: for scripts.
    pub fn queue(&self, hash: u64) -> Vec<(Slot, Mode, bool)> {
        let entries = self.keys.get(&hash).map_or(&[][..], Queue::entries);
        entries.iter().map(|entry| (entry.slot, entry.mode, entry.state == State::Held)).collect()
    }

    /// Number of transactions that hold or ask for locks.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Number of those that wait for somebody.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}
