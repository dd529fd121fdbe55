//! Very lightweight locking (VLL): *Ren, Thomson, Abadi: Lightweight Locking for Main Memory Database Systems. PVLDB 6(2),
//! 2013*, and its extended form, *VLL: a lock manager redesign for main memory database systems. VLDB Journal 24, 2015*,
//! whose sections are cited. DET-05.
//!
//! Nobody queues for a key. A key has [`counters`](super::counters): how many transactions have requested it
//! exclusively, and how many shared. The transactions stand in one queue in the order of their requests (TxnQueue). One that
//! meets no conflicting request is *free*; any other is *blocked*, and nobody notes by whom. So a release can not hand
//! anything over. A blocked transaction is found to be free in two ways:
//!
//! 1. It is at the *front* of the queue: all before it have finished (VLL §2.1). Every release looks there. This alone lets
//!    everybody run at last, across partitions too: the first unfinished transaction of the order is at the front wherever it
//!    has not finished.
//! 2. *Selective contention analysis* (SCA, VLL §2.6) finds that it conflicts with nobody before it any more.
//!
//! One that is kept back by ranges alone is told: they know who waits for whom.
//!
//! # The analysis
//!
//! The paper's walks along the queue from the front and notes what everybody has requested. Ours looks at those alone that are
//! blocked, and at nothing but what they are blocked for, which lies side by side in memory. For each key is counted, too, how many
//! of its requests are blocked for it. The others are before all blocked ones that they conflict with, since they met nobody, or were
//! found to conflict with nobody. So a blocked request conflicts with nobody before it if all that conflict with it are blocked,
//! and none of these is before it: the first is to be read off the counters, and the second is noted on the way.
//!
//! That finds those that are *alone*, too (VLL §2.1): the counters of their keys count nobody else.
//!
//! There is something to find out when a release leaves a blocked request with no conflicting ones but blocked ones, or when it
//! was the last that a blocked transaction waited for because of ranges. Then an analysis ends the step, one for all of its releases, once
//! these pay for it: each for [`LOOKS_PER_RELEASE_MAX`] requests, and for those of its own that are looked at in vain.
//!
//! What is found is executed at once and, if it finishes, opens its keys for those behind it: one analysis finds all that an
//! analysis after each release would have found.
//!
//! # What differs from the paper
//!
//! - The analysis does not look at free transactions, see above. The paper's does, and so is left to processors that would be idle
//!   otherwise; ours need not wait for that.
//! - Counters are neither beside records nor one per record, but one per key that somebody holds. They are exact (per
//!   64-bit hash), and so is the analysis: the bit arrays of the paper have a fixed size, and
//!   may leave a transaction blocked that is free. (But one that reads one key and writes another with the same hash may wait
//!   until it is at the front.)
//! - The number of blocked transactions is not limited by itself. The paper stops taking transactions in, so that the
//!   walk stays short and new ones find less in their way. Here releases pay for it, the node limits live transactions
//!   ([`TRANSACTIONS_LIVE_MAX`](crate::limits::TRANSACTIONS_LIVE_MAX)), and a transaction that waits at the door would make
//!   all behind it in the order wait that conflict with nobody.
//! - Ranges do not lock prefixes (VLLR, VLL §2.7), which takes an increment for every bit of a key; both lock managers share
//!   [`ranges`](super::ranges).
//! - Not built: counters colocated with records, threads and critical sections (one partition is one thread).

use smallvec::SmallVec;

use super::counters::{Counters, Place};
use super::ranges::RangeLocks;
use super::{LockManager, Mode, Slot, local_keys};
use crate::failpoint::{Failpoint, Failpoints};
use crate::position::PartitionId;
use crate::procedure::Footprint;

/// A requested key: the place of its counter, and the mode in the lowest bit.
#[derive(Clone, Copy, Debug)]
struct Request(u32);

impl Request {
    fn new(place: Place, mode: Mode) -> Request {
        Request(place << 1 | u32::from(mode == Mode::Exclusive))
    }

    fn place(self) -> Place {
        self.0 >> 1
    }

    fn mode(self) -> Mode {
        if self.0 & 1 == 0 { Mode::Shared } else { Mode::Exclusive }
    }
}

/// How many looks of an analysis a release pays for. Where so many are blocked, they take about as long as a short transaction: a look
/// takes up to 20 nanoseconds. With fewer looks, throughput falls where messages are on their way for long: most transactions wait for
/// them, few finish, and who is free meanwhile is found late.
pub const LOOKS_PER_RELEASE_MAX: usize = 512;

/// Requests that need no allocation. A footprint of the papers' transactions has ten keys.
const REQUESTS_INLINE: usize = 12;

/// What is known of the transaction in a slot.
#[derive(Debug, Default)]
struct Transaction {
    /// Its neighbours in the queue. Transactions leave it in any order.
    before: Option<Slot>,
    behind: Option<Slot>,
    /// How many earlier transactions it waits for because of ranges.
    range_waits: u32,
    /// So many of its requests, the first ones, met a conflicting one. The others will never meet any that is before them.
    excluded: u32,
    /// Its keys, so that neither its end nor an analysis must look for them again (VLL §2.6 does the same).
    requests: SmallVec<[Request; REQUESTS_INLINE]>,
}

impl Transaction {
    fn excluded(&self) -> &[Request] {
        &self.requests[..self.excluded as usize]
    }
}

/// Marks a key that is requested shared by a blocked transaction that an analysis has passed (DS in the paper).
const SHARED: u8 = 1;
/// Marks a key that is requested exclusively by one (DX in the paper).
const EXCLUSIVE: u8 = 2;

/// What tells a blocked transaction from others that have had its slot.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Ticket(u32);

impl Ticket {
    /// That of whoever is not blocked.
    const NONE: Ticket = Ticket(0);
}

/// A request of a transaction that was blocked for it.
#[derive(Clone, Copy, Debug)]
struct Excluded {
    slot: Slot,
    ticket: Ticket,
    request: Request,
}

/// What an analysis is at.
#[derive(Debug, Default)]
struct Analysis {
    /// Whether it has begun and not ended.
    runs: bool,
    /// How many of the requests in `waiting` were looked at, and how many of them wait on.
    looked_at: usize,
    kept: usize,
    /// The keys that are marked.
    noted: Vec<Place>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct VllLockManager {
    counters: Counters,
    ranges: RangeLocks,
    /// By slot.
    transactions: Vec<Transaction>,
    /// The ends of the queue of transactions.
    front: Option<Slot>,
    back: Option<Slot>,
    live: usize,
    /// By slot: the tickets of those that are blocked. Apart from the transactions, so that an analysis finds them in the nearest cache.
    blocked: Vec<Ticket>,
    last_ticket: Ticket,
    /// What somebody was blocked for, in the order of requests. An analysis drops what is of nobody who still is.
    waiting: Vec<Excluded>,
    /// Whether, since the last analysis, a release has left somebody who may be free, and how many looks releases pay for.
    may_find: bool,
    paid: usize,
    analysis: Analysis,
}

impl VllLockManager {
    /// CX and CS of a key: how many have requested it exclusively, and how many shared.
    pub fn counters(&self, hash: u64) -> (u32, u32) {
        self.counters.of(hash)
    }

    /// How many requests are remembered for which somebody is blocked, or was until lately.
    pub fn remembered(&self) -> usize {
        self.waiting.len()
    }

    /// The queue of transactions, and which of them are blocked.
    pub fn queue(&self) -> Vec<(Slot, bool)> {
        let behind = |slot: &Slot| self.transactions[slot.index()].behind;
        let queue = std::iter::successors(self.front, behind);
        queue.map(|slot| (slot, self.is_blocked(slot))).collect()
    }

    fn is_blocked(&self, slot: Slot) -> bool {
        self.blocked[slot.index()] != Ticket::NONE
    }

    fn enqueue(&mut self, slot: Slot) {
        let before = self.back.replace(slot);
        match before {
            Some(before) => self.transactions[before.index()].behind = Some(slot),
            None => self.front = Some(slot),
        }
        let transaction = &mut self.transactions[slot.index()];
        (transaction.before, transaction.behind) = (before, None);
    }

    fn dequeue(&mut self, slot: Slot) {
        let transaction = &mut self.transactions[slot.index()];
        let (before, behind) = (transaction.before.take(), transaction.behind.take());
        match before {
            Some(before) => self.transactions[before.index()].behind = behind,
            None => self.front = behind,
        }
        match behind {
            Some(behind) => self.transactions[behind.index()].before = before,
            None => self.back = before,
        }
    }

    fn unblock(&mut self, slot: Slot) -> Slot {
        let transaction = &self.transactions[slot.index()];
        debug_assert!(self.is_blocked(slot), "a transaction is unblocked once");
        debug_assert_eq!(transaction.range_waits, 0, "all that it waited for have finished");
        self.blocked[slot.index()] = Ticket::NONE;
        for request in transaction.excluded() {
            self.counters.unblock(request.place(), request.mode());
        }
        slot
    }

    /// Whether a transaction that is blocked for this conflicts with nobody before it any more.
    fn is_its_turn(&self, excluded: &[Excluded]) -> bool {
        let is_its_turn = |Excluded { request, .. }: &Excluded| {
            let mark = self.counters.marks[request.place() as usize];
            let is_noted = match request.mode() {
                Mode::Shared => mark & EXCLUSIVE != 0,
                Mode::Exclusive => mark != 0,
            };
            !is_noted && self.counters.is_open(request.place(), request.mode())
        };
        excluded.iter().all(is_its_turn)
    }

    /// Notes what a transaction is blocked for.
    fn pass<F: Failpoints>(&mut self, excluded: std::ops::Range<usize>) {
        for index in excluded {
            let request = self.waiting[index].request;
            let mark = &mut self.counters.marks[request.place() as usize];
            if *mark == 0 {
                self.analysis.noted.push(request.place());
            }
            let exclusive = request.mode() == Mode::Exclusive && !F::on(Failpoint::GrantOutOfOrder);
            *mark |= if exclusive { EXCLUSIVE } else { SHARED };
            if self.analysis.kept < index {
                self.waiting[self.analysis.kept] = self.waiting[index];
            }
            self.analysis.kept += 1;
        }
    }

    /// Goes on along those that are blocked; the first that conflicts with nobody before it.
    fn look<F: Failpoints>(&mut self) -> Option<Slot> {
        while let Some(Excluded { slot, ticket, .. }) = self.waiting.get(self.analysis.looked_at).copied() {
            let begin = self.analysis.looked_at;
            // What a transaction is blocked for is side by side.
            let others = self.waiting[begin..].iter();
            let end = begin + others.take_while(|excluded| excluded.ticket == ticket).count();
            self.analysis.looked_at = end;
            if self.blocked[slot.index()] != ticket {
                continue;
            }
            if self.is_its_turn(&self.waiting[begin..end]) && self.transactions[slot.index()].range_waits == 0
            {
                return Some(self.unblock(slot));
            }
            self.pass::<F>(begin..end);
        }
        None
    }

    /// What releases have opened meanwhile was for those behind the ones that were found, who were looked at after that.
    fn end_analysis(&mut self) {
        self.waiting.truncate(self.analysis.kept);
        for place in self.analysis.noted.drain(..) {
            self.counters.marks[place as usize] = 0;
        }
        self.analysis.runs = false;
        self.may_find = false;
    }
}

impl LockManager for VllLockManager {
    #[inline]
    fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        self.live == 0
            || (self.ranges.is_free::<F>(footprint, me)
                && !local_keys::<F>(footprint, me)
                    .any(|entry| self.counters.excludes(entry.hash, Mode::of(entry.access))))
    }

    fn request<F: Failpoints>(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) -> bool {
        debug_assert!(!self.analysis.runs, "an analysis comes to its end first");
        if self.transactions.len() <= slot.index() {
            self.transactions.resize_with(slot.index() + 1, Transaction::default);
            self.blocked.resize(slot.index() + 1, Ticket::NONE);
        }
        let VllLockManager { counters, transactions, .. } = self;
        let transaction = &mut transactions[slot.index()];
        debug_assert!(transaction.requests.is_empty(), "a slot requests once");
        transaction.range_waits = self.ranges.request::<F>(slot, footprint, me);
        transaction.excluded = 0;
        for entry in local_keys::<F>(footprint, me) {
            let mode = Mode::of(entry.access);
            let (place, excluded) = counters.place(entry.hash, mode);
            transaction.requests.push(Request::new(place, mode));
            if excluded {
                let last = transaction.requests.len() - 1;
                transaction.requests.swap(transaction.excluded as usize, last);
                transaction.excluded += 1;
            }
        }
        // Only then does it count itself: two of its keys may have one hash.
        for request in &transaction.requests {
            counters.add(request.place(), request.mode());
        }
        let free = transaction.excluded == 0 && transaction.range_waits == 0;
        if !free {
            self.last_ticket = Ticket(self.last_ticket.0.wrapping_add(1).max(1));
            let ticket = self.last_ticket;
            self.blocked[slot.index()] = ticket;
            for request in transaction.excluded().iter().copied() {
                counters.block(request.place(), request.mode());
                self.waiting.push(Excluded { slot, ticket, request });
            }
            self.may_find |= F::on(Failpoint::GrantOutOfOrder);
        }
        self.live += 1;
        self.enqueue(slot);
        free
    }

    fn release<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        granted: &mut Vec<Slot>,
    ) {
        let VllLockManager { counters, transactions, blocked, may_find, paid, .. } = self;
        let transaction = &mut transactions[slot.index()];
        *paid += LOOKS_PER_RELEASE_MAX + transaction.excluded().len();
        debug_assert!(
            blocked[slot.index()] == Ticket::NONE,
            "only a transaction with all its locks can finish"
        );
        for request in transaction.requests.drain(..) {
            *may_find |= counters.remove(request.place(), request.mode());
        }
        self.ranges.release::<F>(slot, footprint, me, &mut |slot| {
            let waiting = &mut transactions[slot.index()];
            waiting.range_waits -= 1;
            if waiting.range_waits == 0 && waiting.excluded == 0 {
                blocked[slot.index()] = Ticket::NONE;
                granted.push(slot);
            } else if waiting.range_waits == 0 {
                // It may have been its turn at its keys before.
                *may_find = true;
            }
        });
        self.live -= 1;
        self.dequeue(slot);
        if let Some(front) = self.front
            && self.is_blocked(front)
        {
            granted.push(self.unblock(front));
        }
    }

    fn analyse<F: Failpoints>(&mut self) -> Option<Slot> {
        if !self.analysis.runs {
            if !self.may_find || self.paid < self.waiting.len() {
                return None;
            }
            self.paid = 0;
            let noted = std::mem::take(&mut self.analysis.noted);
            self.analysis = Analysis { runs: true, noted, ..Analysis::default() };
        }
        let found = self.look::<F>();
        if found.is_none() {
            self.end_analysis();
        }
        found
    }

    fn live(&self) -> usize {
        self.live
    }
}
