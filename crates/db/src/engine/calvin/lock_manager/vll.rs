//! Very lightweight locking (VLL): *Ren, Thomson, Abadi: Lightweight Locking for Main Memory Database Systems. PVLDB 6(2),
//! 2013*, and its extended form, *VLL: a lock manager redesign for main memory database systems. VLDB Journal 24, 2015*,
//! whose sections are cited. DET-05.
//!
//! Nobody queues for a key. A key has two [`counters`](super::counters): how many transactions have requested it
//! exclusively, and how many shared. The transactions stand in one queue in the order of their requests (TxnQueue). One that
//! meets no conflicting request is *free*; any other is *blocked*, and nobody notes by whom. So a release can not hand
//! anything over. A blocked transaction is found to be free in three ways:
//!
//! 1. It is at the *front* of the queue: all before it have finished (VLL §2.1). Every release looks there. This alone lets
//!    everybody run at last, across partitions too: the first unfinished transaction of the order is at the front wherever it
//!    has not finished.
//! 2. It is *alone*: the counters of the keys for which it was blocked count nobody else that conflicts (VLL §2.1).
//! 3. *Selective contention analysis* (SCA, VLL §2.6): a walk along the queue from the front notes what each live transaction
//!    has requested, and so sees which of the blocked conflict with nobody before them any more.
//!
//! One that is kept back by ranges alone is told: they know who waits for whom.
//!
//! # When to analyse
//!
//! The paper analyses when the processor would be idle otherwise. For a state machine that is a step that brings nothing: a
//! node that has something to find out asks for one. A processor that is never idle analyses at the end of a step: once for
//! all releases of the step, however many, and not before one in [`LOOKS_PER_RELEASE_MAX`] of the live
//! transactions has finished since the last time, so that a release never pays for more than so many looks at others.
//! (That alone is not enough: where messages are on their way for long, most of the live transactions wait for them, and it takes long
//! until so many finish; throughput was down to 0.4 of that of `hash` in simulations.)
//!
//! Only those are looked at that were blocked for a key that was released meanwhile, since for no other anything has changed: first
//! whether they are alone, and only if one of them is not sure, by a walk. With little contention nearly all are alone. A
//! walk ends behind the last that is not sure, or, unless the processor is idle, after [`ANALYSED_TRANSACTIONS_MAX`]: those near the
//! front are the ones that have become free most likely, and the others come nearer.
//!
//! What is found is executed at once and, if it finishes, is not noted, so that one walk finds all that a walk after each
//! release would have found.
//!
//! # What differs from the paper
//!
//! - Counters are neither beside records nor one per record, but one per key that somebody holds. They are exact (per
//!   64-bit hash), and so is the analysis, which notes places of counters: the bit arrays of the paper have a fixed size, and
//!   may leave a transaction blocked that is free.
//! - The number of blocked transactions is not limited by itself. The paper stops to take transactions in, so that the
//!   walk stays short and new ones find less in their way. Here the walk has its limit, the node limits live transactions
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
use crate::limits::ANALYSED_TRANSACTIONS_MAX;
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

/// An analysis is due when so many times the releases since the last one are as many as the live transactions. The longest
/// that a transaction waits for it is then the time in which an eighth of those that are live finish.
const LOOKS_PER_RELEASE_MAX: usize = 8;

/// Requests that need no allocation. A footprint of the papers' transactions has ten keys.
const REQUESTS_INLINE: usize = 12;

/// What is known of the transaction in a slot.
#[derive(Debug, Default)]
struct Transaction {
    /// Its neighbours in the queue. Transactions leave it in any order.
    before: Option<Slot>,
    behind: Option<Slot>,
    blocked: bool,
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

/// Marks a key that was requested shared by a transaction that was passed (DS in the paper).
const SHARED: u8 = 1;
/// Marks a key that was requested exclusively by a transaction that was passed (DX in the paper).
const EXCLUSIVE: u8 = 2;
/// Marks a key for which somebody was blocked. No other needs to be noted.
const CONTENDED: u8 = 4;
/// Marks a key that was released since the last analysis while somebody else had requested it who may have waited for that.
const HANDED_ON: u8 = 8;

/// What an analysis is at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Stage {
    #[default]
    Rests,
    /// Asks who is alone, one after the other.
    Asks,
    /// Walks along the queue.
    Walks,
}

#[derive(Debug, Default)]
struct Analysis {
    stage: Stage,
    /// How many of those that wait were asked, and how many of them wait on.
    asked: usize,
    kept: usize,
    /// How many of them are not sure, and are not passed yet.
    unsure: usize,
    /// Whether a key was handed on during the walk: there may be more that are not sure.
    more: bool,
    /// Who is looked at next in a walk.
    next: Option<Slot>,
    passed: usize,
    /// How many it passes at most.
    passed_max: usize,
    /// The keys that are marked [`SHARED`] or [`EXCLUSIVE`]; those that are marked [`HANDED_ON`].
    noted: Vec<Place>,
    handed_on: Vec<Place>,
}

/// What a blocked transaction can be told before anybody walks.
#[derive(PartialEq, Eq)]
enum Answer {
    /// Nothing that it waited for was released.
    Waits,
    /// It has all its locks.
    Alone,
    /// Others have requested its keys, before it or behind it.
    Unsure,
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
    /// How many have finished since the last analysis.
    released: usize,
    /// Those that were blocked for keys, in the order of their requests. An analysis drops those that are not any more.
    waiting: Vec<Slot>,
    analysis: Analysis,
}

impl VllLockManager {
    /// CX and CS of a key: how many have requested it exclusively, and how many shared.
    pub fn counters(&self, hash: u64) -> (u32, u32) {
        self.counters.of(hash)
    }

    /// The queue of transactions, and which of them are blocked.
    pub fn queue(&self) -> Vec<(Slot, bool)> {
        let behind = |slot: &Slot| self.transactions[slot.index()].behind;
        let queue = std::iter::successors(self.front, behind);
        queue.map(|slot| (slot, self.transactions[slot.index()].blocked)).collect()
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
        if self.analysis.next == Some(slot) {
            self.analysis.next = behind;
        }
    }

    fn unblock(&mut self, slot: Slot) -> Slot {
        let transaction = &mut self.transactions[slot.index()];
        debug_assert!(transaction.blocked, "a transaction is unblocked once");
        debug_assert_eq!(transaction.range_waits, 0, "all that it waited for have finished");
        transaction.blocked = false;
        slot
    }

    fn hand_on(counters: &mut Counters, analysis: &mut Analysis, place: Place) {
        counters.marks[place as usize] |= HANDED_ON;
        analysis.handed_on.push(place);
        analysis.more = true;
    }

    /// Whether a key that a transaction is blocked for was handed on.
    fn is_concerned(&self, transaction: &Transaction) -> bool {
        let handed_on = |request: &Request| self.counters.marks[request.place() as usize] & HANDED_ON != 0;
        transaction.range_waits == 0 && transaction.excluded().iter().any(handed_on)
    }

    fn ask(&self, transaction: &Transaction) -> Answer {
        if !self.is_concerned(transaction) {
            return Answer::Waits;
        }
        let is_alone = |request: &Request| self.counters.is_alone(request.place(), request.mode());
        if transaction.excluded().iter().all(is_alone) { Answer::Alone } else { Answer::Unsure }
    }

    /// Goes on asking those that wait; the first that is alone.
    fn ask_waiting(&mut self) -> Option<Slot> {
        while let Some(slot) = self.waiting.get(self.analysis.asked).copied() {
            self.analysis.asked += 1;
            let transaction = &self.transactions[slot.index()];
            if !transaction.blocked {
                continue;
            }
            match self.ask(transaction) {
                Answer::Alone => return Some(self.unblock(slot)),
                Answer::Unsure => self.analysis.unsure += 1,
                Answer::Waits => {}
            }
            self.waiting[self.analysis.kept] = slot;
            self.analysis.kept += 1;
        }
        None
    }

    /// Goes on along the queue; the first that conflicts with nobody who was passed.
    fn walk<F: Failpoints>(&mut self) -> Option<Slot> {
        while let Some(slot) = self.analysis.next
            && (self.analysis.unsure > 0 || self.analysis.more)
            && self.analysis.passed < self.analysis.passed_max
        {
            let transaction = &self.transactions[slot.index()];
            if transaction.blocked && self.is_concerned(transaction) {
                self.analysis.unsure = self.analysis.unsure.saturating_sub(1);
                if !transaction.excluded().iter().any(|request| self.is_noted(*request)) {
                    // The walk stays here. If the caller finishes it, the walk goes on behind it as if it had never been.
                    return Some(self.unblock(slot));
                }
            }
            self.pass::<F>(slot);
        }
        None
    }

    /// Whether a request conflicts with one of those who were passed.
    fn is_noted(&self, request: Request) -> bool {
        let mark = self.counters.marks[request.place() as usize];
        match request.mode() {
            Mode::Shared => mark & EXCLUSIVE != 0,
            Mode::Exclusive => mark & (EXCLUSIVE | SHARED) != 0,
        }
    }

    /// Notes what a transaction has requested, as far as somebody was blocked for it.
    fn pass<F: Failpoints>(&mut self, slot: Slot) {
        let transaction = &self.transactions[slot.index()];
        let overlooked = F::on(Failpoint::GrantOutOfOrder) && transaction.blocked;
        for request in &transaction.requests {
            let mark = &mut self.counters.marks[request.place() as usize];
            if *mark & CONTENDED != 0 {
                if *mark & (EXCLUSIVE | SHARED) == 0 {
                    self.analysis.noted.push(request.place());
                }
                let exclusive = request.mode() == Mode::Exclusive && !overlooked;
                *mark |= if exclusive { EXCLUSIVE } else { SHARED };
            }
        }
        self.analysis.passed += 1;
        self.analysis.next = transaction.behind;
    }

    fn end_analysis(&mut self) {
        let Analysis { stage, next, noted, handed_on, .. } = &mut self.analysis;
        (*stage, *next) = (Stage::Rests, None);
        for place in noted.drain(..) {
            self.counters.marks[place as usize] &= !(EXCLUSIVE | SHARED);
        }
        for place in handed_on.drain(..) {
            self.counters.marks[place as usize] &= !HANDED_ON;
        }
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
        debug_assert!(self.analysis.stage == Stage::Rests, "an analysis comes to its end first");
        if self.transactions.len() <= slot.index() {
            self.transactions.resize_with(slot.index() + 1, Transaction::default);
        }
        let VllLockManager { counters, analysis, transactions, .. } = self;
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
                counters.marks[place as usize] |= CONTENDED;
                if F::on(Failpoint::GrantOutOfOrder) {
                    VllLockManager::hand_on(counters, analysis, place);
                }
            }
        }
        // Only then does it count itself: two of its keys may have one hash.
        for request in &transaction.requests {
            counters.add(request.place(), request.mode());
        }
        if transaction.excluded > 0 {
            self.waiting.push(slot);
        }
        let free = transaction.excluded == 0 && transaction.range_waits == 0;
        transaction.blocked = !free;
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
        let VllLockManager { counters, analysis, transactions, .. } = self;
        let transaction = &mut transactions[slot.index()];
        debug_assert!(!transaction.blocked, "only a transaction with all its locks can finish");
        for request in transaction.requests.drain(..) {
            if counters.remove(request.place(), request.mode()) {
                VllLockManager::hand_on(counters, analysis, request.place());
            }
        }
        self.ranges.release::<F>(slot, footprint, me, &mut |slot| {
            let waiting = &mut transactions[slot.index()];
            waiting.range_waits -= 1;
            if waiting.range_waits == 0 && waiting.excluded == 0 {
                waiting.blocked = false;
                granted.push(slot);
            } else if waiting.range_waits == 0 {
                // Its keys may have been handed on before, when it was not looked at.
                for request in waiting.excluded() {
                    VllLockManager::hand_on(counters, analysis, request.place());
                }
            }
        });
        self.live -= 1;
        self.released += 1;
        self.dequeue(slot);
        if let Some(front) = self.front
            && self.transactions[front.index()].blocked
        {
            granted.push(self.unblock(front));
        }
    }

    fn may_find(&self) -> bool {
        !self.analysis.handed_on.is_empty()
    }

    fn analyse<F: Failpoints>(&mut self, idle: bool) -> Option<Slot> {
        if self.analysis.stage == Stage::Rests {
            let due = idle || self.released * LOOKS_PER_RELEASE_MAX >= self.live;
            if self.analysis.handed_on.is_empty() || !due {
                return None;
            }
            self.released = 0;
            self.analysis = Analysis {
                stage: Stage::Asks,
                passed_max: if idle { self.live } else { ANALYSED_TRANSACTIONS_MAX },
                noted: std::mem::take(&mut self.analysis.noted),
                handed_on: std::mem::take(&mut self.analysis.handed_on),
                ..Analysis::default()
            };
        }
        if self.analysis.stage == Stage::Asks {
            let alone = self.ask_waiting();
            if alone.is_some() {
                return alone;
            }
            self.waiting.truncate(self.analysis.kept);
            // Whatever was handed on till now was by those of whom nobody who was asked is behind.
            self.analysis.more = false;
            self.analysis.stage = Stage::Walks;
            self.analysis.next = self.front;
        }
        let found = self.walk::<F>();
        if found.is_none() {
            self.end_analysis();
        }
        found
    }

    fn live(&self) -> usize {
        self.live
    }
}
