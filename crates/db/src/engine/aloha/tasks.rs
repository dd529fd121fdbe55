//! What is left to do in a step, as a list: nothing here calls itself (ALO-88).
//!
//! The order of tasks is part of what makes readers right. All reads that wait for a version are resolved before anything later of
//! its key goes to the storage, and before any transaction goes on that might write the key next: so whoever finds no version here that
//! concerns it finds the one that it is to see in the storage.

use bytes::Bytes;

use super::roles::Roles;
use super::versions::{Final, Found, OwnedEffect};
use super::{Aloha, Guard, Live, Read, Waiter};
use crate::data::{Direction, Owner};
use crate::engine::live_table::Slot;
use crate::execution::captured::Captured;
use crate::execution::effects::Place;
use crate::execution::functors::{half_applied, scope_of};
use crate::execution::remote_reads::{self, Selection};
use crate::execution::run::verdict_of;
use crate::execution::trace::{Scope, Version};
use crate::execution::write_buffer::Target;
use crate::execution::{Call, Context, Executed, Received};
use crate::failpoint::{Failpoint, Failpoints};
use crate::message::Verdict;
use crate::position::Position;
use crate::procedure::Footprint;
use crate::procedure::footprint::{Access, KeyEntry};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// Reads that may be possible now.
    resolve: Vec<Waiter>,
    /// Hashes of keys whose first versions may go to the storage.
    fold: Vec<u64>,
    /// Reads that are possible when what is on its way to the storage is there.
    after_folds: Vec<Waiter>,
    /// Transactions that may go on.
    advance: Vec<Slot>,
}

impl Tasks {
    pub(super) fn resolve(&mut self, waiter: Waiter) {
        self.resolve.push(waiter);
    }

    /// Reads of one transaction often become possible one after the other: it goes on once after them.
    pub(super) fn advance(&mut self, slot: Slot) {
        if self.advance.last() != Some(&slot) {
            self.advance.push(slot);
        }
    }
}

impl<F: Failpoints> Aloha<F> {
    /// Does tasks until there are none.
    pub(super) fn work(&mut self, context: &mut Context<'_>) {
        loop {
            if let Some(waiter) = self.tasks.resolve.pop() {
                self.resolve(waiter, context);
            } else if let Some(hash) = self.tasks.fold.pop() {
                self.fold(hash, context);
            } else if let Some(waiter) = self.tasks.after_folds.pop() {
                self.tasks.resolve.push(waiter);
            } else if let Some(slot) = self.tasks.advance.pop() {
                self.advance(slot, context);
            } else {
                return;
            }
        }
    }

    /// Reads what a transaction is to see, or leaves its name where it will be known.
    fn resolve(&mut self, waiter: Waiter, context: &mut Context<'_>) {
        let Some(live) = self.table.get_mut(waiter.slot) else { return };
        let (footprint, before) = (&live.call.footprint, live.call.position);
        match waiter.read {
            Read::Key(place) => {
                let entry = &footprint.keys()[place as usize];
                let key = footprint.key(entry);
                let forgotten = F::on(Failpoint::ForgetReadLock) && is_first_read(footprint, place);
                let (row, after) = match self.versions.newest(key, entry.hash, before) {
                    Found::Pending(waiters) if !forgotten => return waiters.push(waiter),
                    Found::Row(row, at) => (row, Some(at)),
                    Found::Stored | Found::Pending(_) => {
                        let record = context.storage.locate(key, entry.hash);
                        (record.map(|record| context.storage.row(record)), None)
                    }
                };
                if !self.ranges.is_empty()
                    && !forgotten
                    && let Some(waiters) = self.ranges.writer_of_key(key, after, before)
                {
                    return waiters.push(waiter);
                }
                live.captured.key(place as usize, row);
                live.guards -= u32::from(entry.guards);
            }
            Read::Range(place) => {
                let range = &footprint.ranges()[place as usize].range;
                if let Some(waiters) = self.ranges.writer_of_range(range, before) {
                    return waiters.push(waiter);
                }
                match self.versions.first_of(range, before) {
                    Some((_, Some(waiters))) => return waiters.push(waiter),
                    Some((at, None)) => {
                        // It is held by who has yet to read before it, or else on its way to the storage.
                        let holder = self.ranges.reader_of_range(range, at);
                        return holder.unwrap_or(&mut self.tasks.after_folds).push(waiter);
                    }
                    None => {}
                }
                let captured = &mut live.captured;
                context.storage.scan(range, Direction::Ascending, Position::LATEST, &mut |key, row| {
                    captured.range_row(place as usize, key, row);
                    std::ops::ControlFlow::Continue(())
                });
                let mut released = Vec::new();
                self.ranges.leave(range, before, Access::READ, &mut self.tasks.resolve, &mut released);
                self.tasks.fold.append(&mut released);
            }
        }
        live.missing -= 1;
        self.tasks.advance(waiter.slot);
    }

    /// Gives the storage the first versions of a key, as far as they are final and nobody earlier has to look or to write before.
    fn fold(&mut self, hash: u64, context: &mut Context<'_>) {
        let schema = &context.catalog.schema;
        let Aloha { versions, ranges, change, .. } = self;
        let accept = |key: &[u8], position| !ranges.hold(key, hash, position);
        versions.fold(hash, accept, |key, position, version| {
            for effect in &version.effects {
                let place = Place { key, hash, known: None, position };
                effect.effect().apply(place, schema, context.storage, change);
            }
        });
    }

    /// Makes a version final. Who waits for it is asked to look, and it goes to the storage when it can.
    fn finish(&mut self, key: &[u8], hash: u64, position: Position, version: Final) {
        self.versions.finish(key, hash, position, version, &mut self.tasks.resolve);
        self.tasks.fold.push(hash);
    }

    /// A version changes nothing, or the storage has it already.
    fn settle(&mut self, key: &[u8], hash: u64, position: Position) {
        if self.versions.settle(key, hash, position, &mut self.tasks.resolve) {
            self.tasks.fold.push(hash);
        }
    }

    /// Takes a transaction as far as it can go.
    fn advance(&mut self, slot: Slot, context: &mut Context<'_>) {
        let Some(mut live) = self.table.take(slot) else { return };
        self.push(&mut live, context);
        self.ask_guard(&mut live, context);
        self.apply_functors(&mut live, context);
        self.compute(&mut live, context);
        let is_over = live.computed || !(live.roles.computes || live.roles.reports);
        if live.pushed && live.functors.is_empty() && is_over {
            self.tell_functors(&mut live, context);
            self.leave(slot, live, context);
        } else {
            self.table.set(slot, live);
        }
    }

    /// Pushes what was captured to who needs it, as soon as it is whole (ALO-77).
    fn push(&mut self, live: &mut Live, context: &mut Context<'_>) {
        let Live { call, roles, captured, .. } = live;
        let captured = Some(&*captured);
        if live.guards == 0 && !live.guards_pushed {
            live.guards_pushed = true;
            let _ = remote_reads::push::<F>(call, Selection::Guards, captured, roles.guards_to, context);
        }
        if live.missing == 0 && !live.pushed {
            live.pushed = true;
            let served = remote_reads::push::<F>(call, Selection::All, captured, roles.reads_to, context);
            if roles.computes {
                self.inbox.note(context.me, call.position, served);
            }
        }
    }

    /// Which rows other partitions have sent.
    fn selection(roles: &Roles) -> Selection {
        if roles.computes { Selection::All } else { Selection::Guards }
    }

    /// Asks the guard as soon as its rows are here.
    fn ask_guard(&mut self, live: &mut Live, context: &mut Context<'_>) {
        let Live { call, roles, captured, guards, guard, .. } = live;
        if *guard != Guard::Open || *guards > 0 || !self.inbox.is_complete(call.position, roles.guards_from) {
            return;
        }
        let none = Received::default();
        let received = self.inbox.peek(call.position).unwrap_or(&none);
        if F::on(Failpoint::SkipGuard) && !roles.computes {
            *guard = Guard::Passed;
            return;
        }
        let said = self.executor.prepare_captured(call, received, Self::selection(roles)).and_then(|()| {
            let decoded = context.catalog.procedures.decode(call.procedure, &call.arguments)?;
            self.executor.guard_captured(call, &decoded, received, captured, context)
        });
        *guard = match said {
            Ok(()) => Guard::Passed,
            Err(stop) => Guard::Stopped(stop),
        };
    }

    /// Computes the functors of the keys that are captured, if the guard has let them.
    fn apply_functors(&mut self, live: &mut Live, context: &mut Context<'_>) {
        if live.guard == Guard::Open || live.functors.is_empty() {
            return;
        }
        let Live { call, captured, guard, functors, written, .. } = live;
        let (catalog, position) = (context.catalog, call.position);
        let decoded = match guard {
            Guard::Passed => catalog.procedures.decode(call.procedure, &call.arguments).ok(),
            _ => None,
        };
        let mut left = Vec::new();
        let mut is_prepared = false;
        for place in functors.drain(..) {
            let at = place as usize;
            if !captured.knows(at) {
                left.push(place);
                continue;
            }
            let entry = &call.footprint.keys()[at];
            let key = call.footprint.key(entry);
            let Some(decoded) = &decoded else {
                self.settle(key, entry.hash, position);
                continue;
            };
            if !is_prepared {
                // It reads its own key only, which is here.
                let _ = self.executor.prepare_captured(call, &Received::default(), Selection::Guards);
                is_prepared = true;
            }
            self.executor.functor_captured(call, at, decoded, captured, context);
            let is_direct = self.is_direct(key, entry.hash, position);
            let mut version = Final::default();
            for (_, effect) in self.executor.effects() {
                if is_direct {
                    let schema = &catalog.schema;
                    let to = Place { key, hash: entry.hash, known: None, position };
                    effect.apply(to, schema, context.storage, &mut self.change);
                } else {
                    version.effects.push(OwnedEffect::of(effect));
                }
            }
            let changed = self.executor.effects().next().is_some();
            if changed && (!is_direct || context.effects.executed.is_some()) {
                let row = self.executor.row_after(key, captured.row(at), call, &catalog.schema);
                if context.effects.executed.is_some() {
                    written.push((Bytes::copy_from_slice(key), row.clone()));
                }
                version.row = row;
            }
            match is_direct {
                true => self.settle(key, entry.hash, position),
                false => self.finish(key, entry.hash, position, version),
            }
        }
        *functors = left;
    }

    /// Whether a version may go to the storage at once.
    fn is_direct(&self, key: &[u8], hash: u64, position: Position) -> bool {
        self.versions.is_first(key, hash, position)
            && (self.ranges.is_empty() || !self.ranges.would_hold(key, position))
    }

    /// Runs the procedure over all reads, if that is done here and they are complete, and reports.
    fn compute(&mut self, live: &mut Live, context: &mut Context<'_>) {
        let Live { call, roles, missing, guard, .. } = live;
        if live.computed || *missing > 0 || *guard == Guard::Open {
            return;
        }
        let verdict = if roles.computes {
            if !self.inbox.is_complete(call.position, roles.reads_from) {
                return;
            }
            self.run(live, context)
        } else if roles.reports {
            if !live.functors.is_empty() {
                return;
            }
            match guard {
                Guard::Stopped(stop) => verdict_of(stop.clone(), call, context.catalog),
                _ => Verdict::Committed(Bytes::new()),
            }
        } else {
            return;
        };
        live.computed = true;
        if live.roles.reports {
            context.effects.report(live.call.position, live.call.request, verdict);
        }
    }

    fn run(&mut self, live: &mut Live, context: &mut Context<'_>) -> Verdict {
        let received = self.inbox.take(live.call.position);
        let Live { call, captured, guard, .. } = live;
        let prepared = self.executor.prepare_captured(call, &received, Selection::All);
        let traced = context.effects.executed.is_some();
        let reads = match traced && prepared.is_ok() {
            true => self.executor.reads_captured(call, &received, captured, |_| true, context),
            false => Vec::new(),
        };
        let ran = prepared.and_then(|()| match guard {
            Guard::Stopped(stop) => Err(stop.clone()),
            _ => self.executor.run_captured::<F>(call, &received, captured, context),
        });
        let mut written = std::mem::take(&mut live.written);
        let verdict = match ran {
            Ok(verdict) => {
                self.write(&live.call, &live.captured, &mut written, context);
                verdict
            }
            Err(stop) => match &live.guard {
                Guard::Passed if live.call.footprint.has_functors() => {
                    half_applied(stop, &live.call, context.catalog)
                }
                _ => verdict_of(stop, &live.call, context.catalog),
            },
        };
        self.finish_written(&live.call, context);
        if traced {
            written.sort_unstable();
            let (position, request) = (live.call.position, live.call.request);
            let executed = Executed {
                position,
                request,
                verdict: verdict.clone(),
                scope: Scope::Whole,
                reads,
                writes: written,
            };
            context.effects.executed.get_or_insert_default().push(executed);
        }
        verdict
    }

    /// Does what the run did to local keys, but for those of functors: at once where that is possible, else as versions.
    fn write(
        &mut self,
        call: &Call,
        captured: &Captured,
        written: &mut Vec<Version>,
        context: &mut Context<'_>,
    ) {
        let (position, schema) = (call.position, &context.catalog.schema);
        let mut late: Vec<(Target, u64, Vec<OwnedEffect>)> = Vec::new();
        let mut traced: Vec<Target> = Vec::new();
        for (target, effect) in self.executor.effects() {
            let key = self.executor.target_key(target, call);
            let Some(hash) = hash_if_local::<F>(target, key, call, context) else { continue };
            if context.effects.executed.is_some() {
                traced.push(target);
            }
            if self.is_direct(key, hash, position) {
                let place = Place { key, hash, known: None, position };
                effect.apply(place, schema, context.storage, &mut self.change);
                continue;
            }
            let known = late.iter_mut().find(|(other, ..)| self.executor.target_key(*other, call) == key);
            match known {
                Some((.., effects)) => effects.push(OwnedEffect::of(effect)),
                None => late.push((target, hash, vec![OwnedEffect::of(effect)])),
            }
        }
        for target in traced {
            let (key, row) = self.row_after(target, call, captured, context);
            if !written.iter().any(|(other, _)| *other == key) {
                written.push((key, row));
            }
        }
        for (target, hash, effects) in late {
            let (key, row) = self.row_after(target, call, captured, context);
            let version = Final { effects, row };
            match target {
                Target::Entry(_) => self.finish(&key, hash, position, version),
                Target::InRange { .. } => {
                    self.versions.insert(&key, hash, position, version);
                    self.tasks.fold.push(hash);
                }
            }
        }
    }

    /// What the last run wrote: the key, and its row then.
    fn row_after(
        &mut self,
        target: Target,
        call: &Call,
        captured: &Captured,
        context: &Context<'_>,
    ) -> Version {
        let key = Bytes::copy_from_slice(self.executor.target_key(target, call));
        let before = captured.row_of(target, &key, &call.footprint);
        let row = self.executor.row_after(&key, before, call, &context.catalog.schema);
        (key, row)
    }

    /// What the run could have written and did not, or has written already, is pending no longer.
    fn finish_written(&mut self, call: &Call, context: &Context<'_>) {
        let (footprint, position) = (&call.footprint, call.position);
        for entry in footprint.keys().iter().filter(|entry| entry.access.write) {
            if entry.owner.includes(context.me) && footprint.functor(entry).is_none() {
                self.settle(footprint.key(entry), entry.hash, position);
            }
        }
        let mut released = Vec::new();
        for entry in footprint.ranges().iter().filter(|entry| entry.access.write) {
            if entry.owner.includes(context.me) {
                let waiters = &mut self.tasks.resolve;
                self.ranges.leave(&entry.range, position, Access::WRITE, waiters, &mut released);
            }
        }
        self.tasks.fold.append(&mut released);
    }

    /// Tells what functors did where nothing else was computed.
    fn tell_functors(&mut self, live: &mut Live, context: &mut Context<'_>) {
        if context.effects.executed.is_none() || live.roles.computes || !live.roles.applies {
            return;
        }
        let Live { call, captured, guard, written, .. } = live;
        let verdict = match guard {
            Guard::Stopped(stop) => verdict_of(stop.clone(), call, context.catalog),
            _ => Verdict::Committed(Bytes::new()),
        };
        let none = Received::default();
        let _ = self.executor.prepare_captured(call, &none, Selection::Guards);
        let reads =
            self.executor.reads_captured(call, &none, captured, |place| captured.knows(place), context);
        let mut writes = std::mem::take(written);
        writes.sort_unstable();
        let (position, request, scope) = (call.position, call.request, scope_of(call, false));
        let executed = Executed { position, request, verdict, scope, reads, writes };
        context.effects.executed.get_or_insert_default().push(executed);
    }
}

/// Whether a key entry is the first that is read and not written.
fn is_first_read(footprint: &Footprint, place: u32) -> bool {
    let is_read = |entry: &KeyEntry| entry.access.read && !entry.access.write;
    footprint.keys().iter().position(is_read) == Some(place as usize)
}

/// The hash of a key that a run wrote, if it is to be written here, and no functor writes it.
fn hash_if_local<F: Failpoints>(
    target: Target,
    key: &[u8],
    call: &Call,
    context: &Context<'_>,
) -> Option<u64> {
    let (owner, hash) = match target {
        Target::Entry(place) => {
            let entry = &call.footprint.keys()[place];
            if call.footprint.functor(entry).is_some() {
                return None;
            }
            (entry.owner, entry.hash)
        }
        Target::InRange { hash, .. } => {
            let owner = context.catalog.schema.owner(key, context.partitions);
            (owner.unwrap_or(Owner::Split), hash)
        }
    };
    (owner.includes(context.me) || F::on(Failpoint::ApplyNonLocalWrite)).then_some(hash)
}
