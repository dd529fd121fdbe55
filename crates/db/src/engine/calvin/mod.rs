//! The `calvin` engine: deterministic locking and execution in five phases (Calvin §3.2).
//!
//! Transactions come in the order of the log. One that needs nothing from elsewhere and meets no lock runs to its end at
//! once. Any other becomes a live transaction in a table, requests all its locks, and goes through the [`Phase`]s:
//!
//! ```text
//! deliver ──► Locking ──all locks──► local reads served ──► Collecting ──all reads──► executed, locks released
//!                                          └── passive participant: locks released, done
//! ```
//!
//! A waiting transaction occupies no thread: others run meanwhile (CAL-59), and may finish out of order (CAL-48), with the
//! same result as in order, since those that conflict never pass each other.
//!
//! Left out: the worker pool of the paper. A partition is one thread here, and a process runs one partition per core.

pub mod lock_manager;

use std::marker::PhantomData;

use bytes::Bytes;

use self::lock_manager::hash::HashLockManager;
use self::lock_manager::vll::VllLockManager;
use self::lock_manager::{LockManager, Slot};
use super::Engine;
use super::live_table::LiveTable;
use crate::error::Fatal;
use crate::execution::remote_reads;
use crate::execution::{Call, Context, Executor, Inbox, Participation, Received, Waiting};
use crate::failpoint::{Failpoints, NoFailpoints};
use crate::position::{PartitionId, Position};

/// What a live transaction waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// For earlier transactions to release locks.
    Locking,
    /// For remote reads; all locks are held and the local reads were sent.
    Collecting,
}

#[derive(Debug)]
struct Live {
    call: Call,
    participation: Participation,
    phase: Phase,
    /// Whether its locks were not granted at once.
    waited: bool,
}

/// See the [module](self). Generic over the lock manager.
#[derive(Debug)]
pub struct Calvin<F = NoFailpoints, L = HashLockManager> {
    locks: L,
    table: LiveTable<Live>,
    /// The last transaction that was delivered.
    delivered: Position,
    inbox: Inbox,
    executor: Executor,
    /// Transactions that have just got all their locks.
    granted: Vec<Slot>,
    /// Transactions for which read results have just come.
    touched: Vec<Position>,
    /// Hashes of keys to prefetch.
    hashes: Vec<u64>,
    failpoints: PhantomData<F>,
}

/// `calvin` with [very lightweight locking](lock_manager::vll).
pub type CalvinVll<F = NoFailpoints> = Calvin<F, VllLockManager>;

impl Calvin {
    /// An engine with nothing to do.
    pub fn new() -> Calvin {
        Calvin::default()
    }
}

impl<F, L: LockManager> Default for Calvin<F, L> {
    fn default() -> Calvin<F, L> {
        Calvin {
            locks: L::default(),
            table: LiveTable::default(),
            delivered: Position::LOADED,
            inbox: Inbox::default(),
            executor: Executor::default(),
            granted: Vec::new(),
            touched: Vec::new(),
            hashes: Vec::new(),
            failpoints: PhantomData,
        }
    }
}

impl<F: Failpoints, L: LockManager> Calvin<F, L> {
    /// Enters a transaction into the table and requests its locks.
    fn enter(&mut self, call: Call, participation: Participation, context: &mut Context<'_>) {
        let slot = self.table.enter(call.position);
        let all_granted = self.locks.request::<F>(slot, &call.footprint, context.me);
        self.table.set(slot, Live { call, participation, phase: Phase::Locking, waited: !all_granted });
        if all_granted {
            self.granted.push(slot);
            self.continue_granted(context);
        }
    }

    /// Takes transactions with all their locks onwards, and those that get theirs by that, until nothing moves.
    fn continue_granted(&mut self, context: &mut Context<'_>) {
        while let Some(slot) = self.granted.pop() {
            let Some(live) = self.table.get_mut(slot) else { continue };
            debug_assert_eq!(live.phase, Phase::Locking, "locks are granted once");
            if live.waited {
                // What was prefetched at delivery has left the cache meanwhile.
                live.call.prefetch(&mut self.hashes, context);
            }
            let served = remote_reads::serve::<F>(&live.call, live.participation, context);
            if live.participation.active {
                self.inbox.note(context.me, live.call.position, served);
            }
            live.phase = Phase::Collecting;
            self.finish_if_complete(slot, context);
        }
    }

    /// Finishes a transaction that holds its locks if nothing is missing (phases 4 and 5).
    fn finish_if_complete(&mut self, slot: Slot, context: &mut Context<'_>) {
        let complete = self.table.get(slot).is_some_and(|live| {
            live.phase == Phase::Collecting
                && self.inbox.is_complete(live.call.position, live.participation.await_reads_from)
        });
        if !complete {
            return;
        }
        let Some(Live { call, participation, .. }) = self.table.take(slot) else { return };
        if participation.active {
            let received = self.inbox.take(call.position);
            self.execute(&call, participation, &received, context);
        }
        self.locks.release::<F>(slot, &call.footprint, context.me, &mut self.granted);
        self.table.leave(slot, call.position);
        context.effects.footprints.push(call.footprint);
    }

    /// Gets the rows of transactions that wait for reads into the cache, together.
    fn prefetch_collecting(&mut self, positions: &[Position], context: &Context<'_>) {
        self.hashes.clear();
        let slots = positions.iter().filter_map(|position| self.table.find(*position));
        for live in slots.filter_map(|slot| self.table.get(slot)) {
            if live.phase == Phase::Collecting {
                live.call.local_hashes(context.me, &mut self.hashes);
            }
        }
        context.storage.prefetch(&self.hashes);
    }

    fn execute(
        &mut self,
        call: &Call,
        participation: Participation,
        received: &Received,
        context: &mut Context<'_>,
    ) {
        let verdict = self.executor.execute::<F>(call, received, context);
        if participation.reports {
            context.effects.report(call.position, call.request, verdict);
        }
    }
}

impl<F: Failpoints, L: LockManager> Engine for Calvin<F, L> {
    type Failpoints = F;

    fn resume(&mut self, at: Position) {
        self.delivered = at;
    }

    fn deliver(&mut self, call: Call, context: &mut Context<'_>) {
        self.delivered = call.position;
        let participation = Participation::of(&call.footprint, call.position.origin, context.me);
        if participation.await_reads_from.is_empty() && self.locks.is_free::<F>(&call.footprint, context.me) {
            let served = remote_reads::serve::<F>(&call, participation, context);
            if participation.active {
                let received = Received::of_own(context.me, served);
                self.execute(&call, participation, &received, context);
            }
            context.effects.footprints.push(call.footprint);
        } else {
            self.enter(call, participation, context);
        }
    }

    fn receive(&mut self, from: PartitionId, reads: &Bytes, context: &mut Context<'_>) -> Result<(), Fatal> {
        let mut touched = std::mem::take(&mut self.touched);
        self.inbox.receive(from, reads, &mut touched)?;
        self.prefetch_collecting(&touched, context);
        for position in touched.drain(..) {
            if let Some(slot) = self.table.find(position) {
                self.finish_if_complete(slot, context);
                self.continue_granted(context);
            } else if position <= self.delivered {
                self.inbox.forget(position);
            }
        }
        self.touched = touched;
        Ok(())
    }

    fn settle(&mut self, context: &mut Context<'_>) {
        while let Some(slot) = self.locks.analyse::<F>() {
            self.granted.push(slot);
            self.continue_granted(context);
        }
    }

    fn live(&self) -> usize {
        self.table.len()
    }

    fn oldest_live(&mut self) -> Option<Position> {
        self.table.oldest()
    }

    fn waiting(&self, most: usize) -> Vec<Waiting<'_>> {
        let waiting = |live: &'_ Live| {
            let mut awaits = live.participation.await_reads_from;
            self.inbox
                .received_from(live.call.position)
                .iter()
                .for_each(|partition| awaits.remove(partition));
            (format!("{:?}", live.phase), awaits)
        };
        let told = self.table.iter().take(most).map(|live| {
            let (phase, awaits) = waiting(live);
            Waiting { name: live.call.position.to_string(), call: &live.call, phase, awaits }
        });
        told.collect()
    }
}
