//! The deterministic lock manager (Calvin §3.2, CAL-40 to CAL-50), in two kinds.
//!
//! A transaction requests all its locks at once, in the order of the log, for the keys and ranges that this partition holds.
//! A lock is granted strictly in the order of requests: neighbouring readers share, nobody overtakes (CAL-43, CAL-44). A
//! transaction therefore waits only for earlier ones, and there is no deadlock to detect (CAL-47).
//!
//! | lock manager | keeps for a key | finds who may go on |
//! |---|---|---|
//! | [`hash`] | a queue of requests (DET-04) | at each release, in the queues of the released keys |
//! | [`vll`] | counters (DET-05) | at the front of one queue of transactions, and by an analysis once per step |
//!
//! Both let the same transactions hold locks together, and both order those that conflict as the log does; they may differ
//! in *when* they find out that one can go on, and never in what it then does. [`ranges`] makes ranges exclude phantoms
//! under either, which the paper leaves as future work (CAL-50).
//!
//! A partition's thread executes a transaction to its end in one step when nothing is missing. Its requests, grants and
//! releases would then be one indivisible step, which nobody could observe: [`LockManager::is_free`] tells when that holds,
//! and such a transaction leaves no trace here. Only transactions that wait, and those behind them, are entered.

pub mod counters;
pub mod hash;
pub mod keys;
pub mod ranges;
pub mod vll;

pub use crate::engine::live_table::Slot;
use crate::failpoint::{Failpoint, Failpoints};
use crate::position::PartitionId;
use crate::procedure::Footprint;
use crate::procedure::footprint::KeyEntry;

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
///
/// A slot requests once, is granted once (by the answer to its request, by a release or by an analysis), and releases once,
/// after its grant. Requests come in the order of the log (CAL-42).
pub trait LockManager: std::fmt::Debug + Default + Send + 'static {
    /// Whether every lock of the footprint would be granted at once, and nobody stands before it.
    fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool;

    /// Requests all locks of a footprint that this partition holds; whether all were granted at once.
    fn request<F: Failpoints>(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) -> bool;

    /// Releases all locks of a finished transaction; appends those of which is then known that they have all of theirs.
    fn release<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        granted: &mut Vec<Slot>,
    );

    /// Finds a transaction that has all its locks although no release has told so, if releases do not tell of all. The caller takes
    /// it as far as it goes and asks again, until there is none; nothing is requested, and nobody else finishes, in
    /// between. It may put that off until some more have finished.
    fn analyse<F: Failpoints>(&mut self) -> Option<Slot> {
        None
    }

    /// Number of transactions that hold or wait for locks.
    fn live(&self) -> usize;
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
