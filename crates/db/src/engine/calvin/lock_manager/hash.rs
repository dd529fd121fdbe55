//! The lock manager with a queue of requests for each key (DET-04): the default.
//!
//! The queues tell at each release who comes next, so that nothing ever waits for longer than it must. What that costs is
//! an entry of a hash map and a place in a queue for each key that is locked.

use super::keys::KeyLocks;
use super::ranges::RangeLocks;
use super::{LockManager, Mode, Slot, local_keys};
use crate::failpoint::Failpoints;
use crate::position::PartitionId;
use crate::procedure::Footprint;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct HashLockManager {
    keys: KeyLocks,
    ranges: RangeLocks,
    /// By slot: how many grants and earlier transactions the slot still waits for.
    waits: Vec<u32>,
    /// Number of slots with requests.
    live: usize,
}

impl HashLockManager {
    /// The queue of a key, in order: who, in which mode, and whether granted.
    pub fn queue(&self, hash: u64) -> Vec<(Slot, Mode, bool)> {
        self.keys.queue(hash)
    }
}

impl LockManager for HashLockManager {
    #[inline]
    fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        self.live == 0
            || (self.ranges.is_free::<F>(footprint, me)
                && local_keys::<F>(footprint, me)
                    .all(|entry| self.keys.is_free::<F>(entry.hash, Mode::of(entry.access))))
    }

    fn request<F: Failpoints>(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) -> bool {
        if self.waits.len() <= slot.index() {
            self.waits.resize(slot.index() + 1, 0);
        }
        let mut waits = self.ranges.request::<F>(slot, footprint, me);
        for entry in local_keys::<F>(footprint, me) {
            if !self.keys.request::<F>(entry.hash, slot, Mode::of(entry.access)) {
                waits += 1;
            }
        }
        self.live += 1;
        self.waits[slot.index()] = waits;
        waits == 0
    }

    fn release<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        granted: &mut Vec<Slot>,
    ) {
        debug_assert_eq!(self.waits[slot.index()], 0, "only a transaction with all its locks can finish");
        self.live -= 1;
        let waits = &mut self.waits;
        let mut grant = |slot: Slot| {
            waits[slot.index()] -= 1;
            if waits[slot.index()] == 0 {
                granted.push(slot);
            }
        };
        for entry in local_keys::<F>(footprint, me) {
            self.keys.release(entry.hash, slot, &mut grant);
        }
        self.ranges.release::<F>(slot, footprint, me, &mut grant);
    }

    fn live(&self) -> usize {
        self.live
    }
}
