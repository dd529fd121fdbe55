//! Queues of single keys: shared and exclusive, first in first out, nobody overtakes.

use smallvec::SmallVec;

use super::{Mode, Slot};
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::{FastMap, keep_sparse};

#[derive(Clone, Copy, Debug)]
struct Request {
    slot: Slot,
    mode: Mode,
    granted: bool,
}

/// The requests for one key in the order of the log: a granted prefix, then those that wait.
type Queue = SmallVec<[Request; 2]>;

/// The lock table: a queue per key that somebody holds.
///
/// Keys are told apart by their 64-bit hash. Two keys with one hash share a queue: that costs concurrency, once in
/// billions of pairs, and never correctness, since a lock may always cover more than it must, as long as every replica
/// agrees.
#[derive(Debug, Default)]
pub(super) struct KeyLocks {
    queues: FastMap<u64, Queue>,
}

/// Whether a reader does not see a request, since it has to wait itself.
#[inline]
fn overlooks<F: Failpoints>(request: &Request) -> bool {
    F::on(Failpoint::GrantOutOfOrder) && !request.granted
}

impl KeyLocks {
    /// Whether a request would be granted at once.
    #[inline]
    pub(super) fn is_free<F: Failpoints>(&self, hash: u64, mode: Mode) -> bool {
        match self.queues.get(&hash) {
            None => true,
            Some(queue) => {
                mode == Mode::Shared
                    && queue.iter().all(|request| request.mode == Mode::Shared || overlooks::<F>(request))
            }
        }
    }

    /// Appends a request; whether it was granted at once. The positions of a queue ascend, since transactions request in the
    /// order of the log (CAL-42).
    pub(super) fn request<F: Failpoints>(&mut self, hash: u64, slot: Slot, mode: Mode) -> bool {
        keep_sparse(&mut self.queues);
        let queue = self.queues.entry(hash).or_default();
        if let Some(own) = queue.iter_mut().find(|request| request.slot == slot) {
            // Two keys of one transaction with one hash: the stronger mode covers both. The request is the queue's last.
            if mode == Mode::Exclusive && own.mode == Mode::Shared {
                own.mode = Mode::Exclusive;
                if own.granted && queue.len() > 1 {
                    let last = queue.len() - 1;
                    queue[last].granted = false;
                    return false;
                }
            }
            return true;
        }
        let granted = queue.iter().all(|request| {
            !request.mode.conflicts(mode) || (mode == Mode::Shared && overlooks::<F>(request))
        });
        queue.push(Request { slot, mode, granted });
        granted
    }

    /// Takes a transaction out of a queue and grants what has become first.
    pub(super) fn release(&mut self, hash: u64, slot: Slot, grant: &mut impl FnMut(Slot)) {
        let Some(queue) = self.queues.get_mut(&hash) else { return };
        let Some(place) = queue.iter().position(|request| request.slot == slot) else { return };
        queue.remove(place);
        if queue.is_empty() {
            self.queues.remove(&hash);
            return;
        }
        for index in 0..queue.len() {
            let mode = queue[index].mode;
            if index > 0 && (mode == Mode::Exclusive || queue[0].mode == Mode::Exclusive) {
                return;
            }
            if !queue[index].granted {
                queue[index].granted = true;
                grant(queue[index].slot);
            }
        }
    }

    pub(super) fn queue(&self, hash: u64) -> Vec<(Slot, Mode, bool)> {
        let queue = self.queues.get(&hash).into_iter().flatten();
        queue.map(|request| (request.slot, request.mode, request.granted)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failpoint::NoFailpoints;

    /// Two keys of one transaction with one hash are one request in the stronger mode, and one grant.
    #[test]
    fn two_keys_with_one_hash_are_one_request() {
        let (first, second, mut locks, mut granted) = (Slot(1), Slot(2), KeyLocks::default(), Vec::new());
        assert!(locks.request::<NoFailpoints>(7, first, Mode::Shared));
        assert!(locks.request::<NoFailpoints>(7, second, Mode::Shared));
        assert!(
            !locks.request::<NoFailpoints>(7, second, Mode::Exclusive),
            "the exclusive request waits for the reader before it"
        );
        locks.release(7, first, &mut |slot| granted.push(slot));
        assert_eq!(granted, [second]);
        assert!(locks.request::<NoFailpoints>(7, second, Mode::Shared), "what is held covers it");
        locks.release(7, second, &mut |slot| granted.push(slot));
        locks.release(7, second, &mut |slot| granted.push(slot));
        assert_eq!(granted, [second]);
        assert!(locks.is_free::<NoFailpoints>(7, Mode::Exclusive));
    }
}
