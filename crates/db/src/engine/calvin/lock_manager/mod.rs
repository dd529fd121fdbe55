//! The deterministic lock manager (Calvin §3.2, CAL-40 to CAL-50).
//!
//! A transaction requests all its locks at once, in the order of the log, for the keys and ranges that this partition holds.
//! A lock is granted strictly in the order of requests: neighbouring readers share, nobody overtakes (CAL-43, CAL-44). A
//! transaction therefore waits only for earlier ones, and there is no deadlock to detect (CAL-47).
//!
//! [`keys`] has the queues of single keys; [`ranges`] makes ranges exclude phantoms, which the paper leaves as future work
//! (CAL-50).
//!
//! A partition's thread executes a transaction to its end in one step when nothing is missing. Its requests, grants and
//! releases would then be one indivisible step, which nobody could observe: [`LockManager::is_free`] tells when that holds,
//! and such a transaction leaves no trace here. Only transactions that wait, and those behind them, stand in queues.

pub mod keys;
pub mod ranges;

use crate::failpoint::{Failpoint, Failpoints};
use crate::position::PartitionId;
use crate::procedure::Footprint;
use crate::procedure::footprint::KeyEntry;

use keys::KeyLocks;
use ranges::RangeLocks;

/// Number of a live transaction in the engine's table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Together with other readers.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// The mode that an access needs.
    pub fn of(access: crate::procedure::footprint::Access) -> Mode {
        if access.write { Mode::Exclusive } else { Mode::Shared }
    }

    /// Whether two requests in these modes exclude each other.
    pub fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// The locks of one partition.
#[derive(Debug, Default)]
pub struct LockManager {
    keys: KeyLocks,
    ranges: RangeLocks,
    /// By slot: how many grants and earlier transactions the slot still waits for.
    waits: Vec<u32>,
    /// Number of slots with requests.
    live: usize,
}

/// The keys that this partition holds.
#[inline]
fn local_keys<F: Failpoints>(footprint: &Footprint, me: PartitionId) -> impl Iterator<Item = &KeyEntry> {
    let forgotten = if F::on(Failpoint::ForgetReadLock) {
        footprint.keys().iter().position(|entry| !entry.access.write)
    } else {
        None
    };
    let keys = footprint.keys().iter().enumerate();
    keys.filter(move |(index, entry)| entry.owner.includes(me) && Some(*index) != forgotten)
        .map(|(_, entry)| entry)
}

impl LockManager {
    /// No locks.
    pub fn new() -> LockManager {
        LockManager::default()
    }

    /// Whether every lock of the footprint would be granted at once, and nobody stands before it in any queue.
    #[inline]
    pub fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        self.live == 0
            || (self.ranges.is_free::<F>(footprint, me)
                && local_keys::<F>(footprint, me)
                    .all(|entry| self.keys.is_free::<F>(entry.hash, Mode::of(entry.access))))
    }

    /// Requests all locks of a footprint that this partition holds; whether all were granted at once.
    pub fn request<F: Failpoints>(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) -> bool {
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

    /// Releases all locks of a finished transaction; appends those that now have all of theirs.
    pub fn release<F: Failpoints>(
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

    /// Number of transactions that hold or wait for locks.
    pub fn live(&self) -> usize {
        self.live
    }

    /// The queue of a key, in order: who, in which mode, and whether granted.
    pub fn queue(&self, hash: u64) -> Vec<(Slot, Mode, bool)> {
        self.keys.queue(hash)
    }
}
