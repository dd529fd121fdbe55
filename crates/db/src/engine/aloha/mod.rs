//! The `aloha` engine: functors over versions, instead of locks (Fan and Golab, "Scalable Transaction Processing Using Functors").
//!
//! A delivered transaction enters a pending version of each key that it writes here, and every reader finds the version before its own
//! position: so nobody excludes anybody, and who conflicts waits at most for the rows that it reads. All transactions of an epoch are
//! in the order before the first of them is delivered: that is the paper's barrier between the phase that installs functors and the one
//! that computes them (ALO-09, ALO-19, ALO-84), and the position is the timestamp (ALO-34).
//!
//! ```text
//! deliver ──► versions installed, reads captured one by one ──► pushed to who computes
//!                  │                                                 │
//!                  └── guard passed: each functor of a captured key  └── all reads here: the procedure runs once, for all other keys
//! ```
//!
//! The files: [`versions`] are what the storage does not have yet, [`keys`] which of them are in a range, [`ranges`] what may still come in
//! one, [`roles`] who does what.
//! A transaction for which everything is here, and that nobody is ahead of, does none of this: it runs at once on the storage.
//!
//! The paper's recursion is a list of tasks here (ALO-88): who finds a version pending leaves its name at the version.

mod keys;
mod ranges;
mod roles;
mod tasks;
mod versions;

use std::marker::PhantomData;

use bytes::Bytes;

use self::ranges::Ranges;
use self::roles::Roles;
use self::versions::Versions;
use super::Engine;
use super::live_table::{LiveTable, Slot};
use crate::error::Fatal;
use crate::execution::captured::Captured;
use crate::execution::remote_reads::{self, Selection};
use crate::execution::trace::Version;
use crate::execution::{Call, Context, Executor, Inbox, Received, Waiting};
use crate::failpoint::{Failpoint, Failpoints, NoFailpoints};
use crate::position::{PartitionId, Position};
use crate::procedure::Stop;

/// Buffers of finished transactions that are kept for others.
const SPARE_MAX: usize = 256;

/// Bytes that such a buffer may have.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// A read that waits for something to become known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiter {
    slot: Slot,
    read: Read,
}

/// An entry of a footprint, as something that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    Key(u32),
    Range(u32),
}

/// What the guard said.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Guard {
    /// Nothing yet.
    Open,
    /// That it may commit; or nobody asks here.
    Passed,
    Stopped(Stop),
}

/// A transaction that has not done here what it is to do.
#[derive(Debug)]
struct Live {
    call: Call,
    roles: Roles,
    captured: Captured,
    /// Reads of this partition that are not captured yet.
    missing: u32,
    /// Those of them that the guard makes.
    guards: u32,
    guard: Guard,
    /// Key entries whose functors are not computed yet.
    functors: Vec<u32>,
    /// Whether the guard's reads were pushed, and whether all were, if anybody needs them.
    guards_pushed: bool,
    pushed: bool,
    /// Whether the computation is over, and the report made, if they are made here.
    computed: bool,
    /// What functors wrote, if it is to be told.
    written: Vec<Version>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Aloha<F = NoFailpoints> {
    versions: Versions,
    ranges: Ranges,
    table: LiveTable<Live>,
    /// The last transaction that was delivered.
    delivered: Position,
    inbox: Inbox,
    executor: Executor,
    tasks: tasks::Tasks,
    /// Transactions for which read results have just come.
    touched: Vec<Position>,
    /// Room for what effects change.
    change: Vec<u8>,
    spare: Vec<Captured>,
    failpoints: PhantomData<F>,
}

impl Aloha {
    /// An engine with nothing to do.
    pub fn new() -> Aloha {
        Aloha::default()
    }
}

impl<F> Default for Aloha<F> {
    fn default() -> Aloha<F> {
        Aloha {
            versions: Versions::default(),
            ranges: Ranges::default(),
            table: LiveTable::default(),
            delivered: Position::LOADED,
            inbox: Inbox::default(),
            executor: Executor::default(),
            tasks: tasks::Tasks::default(),
            touched: Vec::new(),
            change: Vec::new(),
            spare: Vec::new(),
            failpoints: PhantomData,
        }
    }
}

impl<F: Failpoints> Aloha<F> {
    /// Whether no earlier transaction may still write what a call reads or writes here, nor has yet to read what it writes.
    fn is_free(&mut self, call: &Call, me: PartitionId) -> bool {
        if self.versions.is_empty() && self.ranges.is_empty() {
            return true;
        }
        let footprint = &call.footprint;
        let mut keys = footprint.keys().iter().filter(|entry| entry.owner.includes(me));
        let free = keys.all(|entry| {
            let key = footprint.key(entry);
            self.versions.stored(key, entry.hash) && (self.ranges.is_empty() || !self.ranges.touch_key(key))
        });
        free && footprint.ranges().iter().filter(|entry| entry.owner.includes(me)).all(|entry| {
            let range = &entry.range;
            !self.ranges.touch(range) && self.versions.first_of(range, Position::LATEST).is_none()
        })
    }

    /// Does at once what a call is to do here, over the newest rows.
    fn run_at_once(&mut self, call: Call, roles: Roles, context: &mut Context<'_>) {
        let served = remote_reads::push::<F>(&call, Selection::All, None, roles.reads_to, context);
        let _ = remote_reads::push::<F>(&call, Selection::Guards, None, roles.guards_to, context);
        let received = Received::of_own(context.me, served);
        let verdict = if call.footprint.has_functors() && roles.asks_guard() {
            Some(self.executor.execute_with_functors::<F>(&call, roles.computes, &received, context))
        } else {
            roles.computes.then(|| self.executor.execute::<F>(&call, &received, context))
        };
        if roles.reports
            && let Some(verdict) = verdict
        {
            context.effects.report(call.position, call.request, verdict);
        }
        context.effects.footprints.push(call.footprint);
    }

    /// Enters a transaction into the table, and its versions and ranges among those that may come.
    fn enter(&mut self, call: Call, roles: Roles, context: &mut Context<'_>) {
        let slot = self.table.enter(call.position);
        let mut live = Live {
            captured: self.spare.pop().unwrap_or_default(),
            missing: 0,
            guards: 0,
            guard: Guard::Open,
            functors: Vec::new(),
            guards_pushed: false,
            pushed: false,
            computed: false,
            written: Vec::new(),
            call,
            roles,
        };
        self.install(slot, &mut live, context);
        self.table.set(slot, live);
        self.tasks.advance(slot);
        self.work(context);
    }

    fn install(&mut self, slot: Slot, live: &mut Live, context: &Context<'_>) {
        let Live { call, roles, .. } = live;
        let (footprint, position) = (&call.footprint, call.position);
        live.captured.reset(footprint.keys().len(), footprint.ranges().len());
        let mut guards = 0;
        for (place, entry) in footprint.keys().iter().enumerate() {
            if !entry.owner.includes(context.me) {
                continue;
            }
            if entry.access.write {
                self.versions.install(footprint.key(entry), entry.hash, position);
                if footprint.functor(entry).is_some() {
                    live.functors.push(place as u32);
                }
            }
            if entry.access.read {
                live.missing += 1;
                guards += u32::from(entry.guards);
                self.tasks.resolve(Waiter { slot, read: Read::Key(place as u32) });
            }
        }
        for (place, entry) in footprint.ranges().iter().enumerate() {
            if !entry.owner.includes(context.me) {
                continue;
            }
            if !F::on(Failpoint::ForgetRangeLock) {
                self.ranges.enter(&entry.range, position, entry.access);
            }
            if entry.access.read {
                live.missing += 1;
                self.tasks.resolve(Waiter { slot, read: Read::Range(place as u32) });
            }
        }
        live.guards = guards;
        let asks = footprint.has_functors() && roles.asks_guard();
        live.guard = if asks { Guard::Open } else { Guard::Passed };
    }

    /// A transaction has done here what it was to do.
    fn leave(&mut self, slot: Slot, live: Live, context: &mut Context<'_>) {
        let position = live.call.position;
        self.inbox.forget(position);
        self.table.leave(slot, position);
        context.effects.footprints.push(live.call.footprint);
        if self.spare.len() < SPARE_MAX && live.captured.bytes() <= SPARE_BYTES_MAX {
            self.spare.push(live.captured);
        }
    }
}

impl<F: Failpoints> Engine for Aloha<F> {
    type Failpoints = F;

    fn resume(&mut self, at: Position) {
        self.delivered = at;
    }

    fn deliver(&mut self, call: Call, context: &mut Context<'_>) {
        self.delivered = call.position;
        let roles = Roles::of(&call.footprint, call.position.origin, context.me, context.partitions);
        if roles.awaits_nothing() && self.is_free(&call, context.me) {
            self.run_at_once(call, roles, context);
        } else {
            self.enter(call, roles, context);
        }
    }

    fn receive(&mut self, from: PartitionId, reads: &Bytes, context: &mut Context<'_>) -> Result<(), Fatal> {
        let mut touched = std::mem::take(&mut self.touched);
        self.inbox.receive(from, reads, &mut touched)?;
        for position in touched.drain(..) {
            if let Some(slot) = self.table.find(position) {
                self.tasks.advance(slot);
                self.work(context);
            } else if position <= self.delivered {
                self.inbox.forget(position);
            }
        }
        self.touched = touched;
        Ok(())
    }

    fn live(&self) -> usize {
        self.table.len()
    }

    fn oldest_live(&mut self) -> Option<Position> {
        self.table.oldest()
    }

    fn waiting(&self, most: usize) -> Vec<Waiting<'_>> {
        let told = self.table.iter().take(most).map(|live| {
            let Live { call, roles, missing, guard, functors, .. } = live;
            let mut phase = Vec::new();
            if *missing > 0 {
                phase.push(format!("reads {missing}"));
            }
            if !functors.is_empty() {
                let guarded = if *guard == Guard::Open { " guarded" } else { "" };
                phase.push(format!("functors {}{guarded}", functors.len()));
            }
            let mut awaits = roles.reads_from;
            awaits.union(&roles.guards_from);
            self.inbox.received_from(call.position).iter().for_each(|partition| awaits.remove(partition));
            Waiting { name: call.position.to_string(), call, phase: phase.join(" "), awaits }
        });
        told.collect()
    }

    fn describe(&self, out: &mut String) {
        for waiting in self.waiting(usize::MAX) {
            out.push_str(&waiting.line());
            out.push('\n');
        }
        self.versions.describe(out);
    }
}
