//! Guards and functors: runs that see only a part of a call's footprint (Fan and Golab, §IV-B, §IV-C).

use bytes::Bytes;

use super::captured::Captured;
use super::effects::{Applied, Effect, Place};
use super::remote_reads::{Received, Selection};
use super::run::{Executor, KeyState, Reads, Run, verdict_of};
use super::trace::{Scope, Version};
use super::write_buffer::Target;
use super::{Call, Context, Executed};
use crate::data::row::FixedValue;
use crate::data::{Direction, Key, KeyRange, Schema, Table};
use crate::failpoint::{Failpoint, Failpoints, NoFailpoints};
use crate::hash::key_hash;
use crate::message::Verdict;
use crate::procedure::functor::Changed;
use crate::procedure::registry::Decoded;
use crate::procedure::transaction::{Access, Found};
use crate::procedure::{Catalog, Functor, Stop, Transaction};

/// A run that may only read, and only the keys that were declared as guards.
struct Guarding<'r, 'a>(&'r mut Run<'a>);

impl Guarding<'_, '_> {
    fn refused(&self, key: &[u8]) -> Stop {
        let table = self.0.catalog.schema.table_of(key).map_or("(no table)", Table::name);
        let key = Key::from_bytes(key);
        let rule = "a guard reads only keys that were declared for it, and writes none";
        Stop::Invalid(format!("key {key:?} of table {table}: {rule}"))
    }
}

impl Access for Guarding<'_, '_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        let footprint = self.0.footprint;
        match footprint.find(key.bytes()) {
            Some(entry) if footprint.keys()[entry].guards => self.0.get(key),
            _ => Err(self.refused(key)),
        }
    }

    fn put(&mut self, key: &Key, _: &[u8]) -> Result<(), Stop> {
        Err(self.refused(key))
    }

    fn replace(&mut self, _: &Table, key: &Key, _: &[FixedValue]) -> Result<bool, Stop> {
        Err(self.refused(key))
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        Err(self.refused(key))
    }

    fn scan(&mut self, range: &KeyRange, _: Direction, _: usize) -> Result<Vec<Found>, Stop> {
        Err(self.refused(range.start.bytes()))
    }
}

impl Executor {
    /// Runs a call with functors whose rows are all here, and in their newest versions: the functors, and all of it if it `computes`.
    pub(crate) fn execute_with_functors<F: Failpoints>(
        &mut self,
        call: &Call,
        computes: bool,
        received: &Received,
        context: &mut Context<'_>,
    ) -> Verdict {
        let reads = Reads::of(received);
        let prepared = self.prepare(call, received, context);
        if context.effects.executed.is_none() {
            return match prepared {
                Ok(()) => self.run_with_functors::<F>(call, computes, reads, context),
                Err(stop) => verdict_of(stop, call, context.catalog),
            };
        }
        let me = context.me;
        let selects = |place: usize| computes || call.footprint.keys()[place].owner.includes(me);
        let rows = if prepared.is_ok() { self.reads(call, reads, selects, context) } else { Vec::new() };
        self.touched = Some(Vec::new());
        let verdict = match prepared {
            Ok(()) => self.run_with_functors::<F>(call, computes, reads, context),
            Err(stop) => verdict_of(stop, call, context.catalog),
        };
        let mut keys = self.touched.take().unwrap_or_default();
        keys.sort_unstable();
        keys.dedup();
        let writes = keys.into_iter().map(|key| {
            let record = context.storage.locate(&key, key_hash(&key));
            let row = record.map(|record| Bytes::copy_from_slice(context.storage.row(record)));
            (key, row)
        });
        let writes = writes.collect();
        let (position, request) = (call.position, call.request);
        let executed = Executed {
            position,
            request,
            verdict: verdict.clone(),
            scope: scope_of(call, computes),
            reads: rows,
            writes,
        };
        context.effects.executed.get_or_insert_default().push(executed);
        verdict
    }

    fn run_with_functors<F: Failpoints>(
        &mut self,
        call: &Call,
        computes: bool,
        reads: Reads<'_>,
        context: &mut Context<'_>,
    ) -> Verdict {
        let catalog = context.catalog;
        self.output.clear();
        let passed = catalog.procedures.decode(call.procedure, &call.arguments).and_then(|decoded| {
            if computes || !F::on(Failpoint::SkipGuard) {
                self.guard(call, &decoded, reads, context)?;
            }
            Ok(decoded)
        });
        let decoded = match passed {
            Ok(decoded) => decoded,
            Err(stop) => return verdict_of(stop, call, catalog),
        };
        let mut ran = Ok(());
        if computes {
            context.effects.executions.alone += 1;
            ran = self.run_logic::<F>(call, reads, context, false);
            if ran.is_ok() {
                self.note_touched(call, context);
                self.apply::<F>(call, true, context);
            }
        }
        self.apply_functors(call, &decoded, reads, context);
        match ran {
            Ok(()) => self.committed(),
            Err(stop) => half_applied(stop, call, catalog),
        }
    }

    /// Notes the local keys that the last run wrote, if somebody wants to know.
    fn note_touched(&mut self, call: &Call, context: &Context<'_>) {
        let Some(touched) = &mut self.touched else { return };
        let schema = &context.catalog.schema;
        for (target, _) in self.writes.operations() {
            let key = self.writes.key(*target, &call.footprint);
            let is_functor = matches!(target, Target::Entry(place)
                if call.footprint.functor(&call.footprint.keys()[*place]).is_some());
            if !is_functor
                && schema.owner(key, context.partitions).is_ok_and(|owner| owner.includes(context.me))
            {
                touched.push(Bytes::copy_from_slice(key));
            }
        }
    }

    /// Applies the functors of the local keys to the newest rows.
    fn apply_functors(
        &mut self,
        call: &Call,
        decoded: &Decoded<'_>,
        reads: Reads<'_>,
        context: &mut Context<'_>,
    ) {
        let schema = &context.catalog.schema;
        for (place, entry) in call.footprint.keys().iter().enumerate() {
            let Some(functor) = call.footprint.functor(entry).filter(|_| entry.owner.includes(context.me))
            else {
                continue;
            };
            self.writes.clear();
            self.keys[place].written = false;
            let key = call.footprint.key(entry);
            if self.functor(call, place, functor, decoded, reads, context).is_err() {
                continue;
            }
            if let Some(touched) = self.touched.as_mut().filter(|_| !self.writes.is_empty()) {
                touched.push(Bytes::copy_from_slice(key));
            }
            for (_, operation) in self.writes.operations() {
                let known = &mut self.keys[place].local;
                let effect = self.writes.effect(operation);
                let (hash, position) = (entry.hash, call.position);
                let place = Place { key, hash, known: *known, position };
                let applied = effect.apply(place, schema, context.storage, &mut self.change);
                *known = if let Applied::At(record) = applied { Some(record) } else { None };
            }
        }
    }

    /// Gets ready to run over captured rows and those that others have sent.
    pub(crate) fn prepare_captured(
        &mut self,
        call: &Call,
        received: &Received,
        selection: Selection,
    ) -> Result<(), Stop> {
        self.writes.clear();
        self.keys.clear();
        self.keys.resize(call.footprint.keys().len(), KeyState { local: None, written: false });
        self.prepare_received(&call.footprint, received, selection)
    }

    /// Runs the guard over captured rows, after [`prepare_captured`](Executor::prepare_captured).
    pub(crate) fn guard_captured(
        &mut self,
        call: &Call,
        decoded: &Decoded<'_>,
        received: &Received,
        captured: &Captured,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        self.guard(call, decoded, Reads { received, captured: Some(captured) }, context)
    }

    /// Computes the functor of a key over captured rows, after [`prepare_captured`](Executor::prepare_captured): what it does is
    /// in [`effects`](Executor::effects), which is nothing if it stops.
    pub(crate) fn functor_captured(
        &mut self,
        call: &Call,
        place: usize,
        decoded: &Decoded<'_>,
        captured: &Captured,
        context: &mut Context<'_>,
    ) {
        self.writes.clear();
        self.keys[place].written = false;
        let Some(functor) = call.footprint.functor(&call.footprint.keys()[place]) else { return };
        let reads = Reads { received: &Received::default(), captured: Some(captured) };
        if self.functor(call, place, functor, decoded, reads, context).is_err() {
            self.writes.clear();
        }
    }

    /// Runs the logic over captured rows, after [`prepare_captured`](Executor::prepare_captured); what it does is in
    /// [`effects`](Executor::effects).
    pub(crate) fn run_captured<F: Failpoints>(
        &mut self,
        call: &Call,
        received: &Received,
        captured: &Captured,
        context: &mut Context<'_>,
    ) -> Result<Verdict, Stop> {
        let executions = &mut context.effects.executions;
        *if received.is_empty() { &mut executions.alone } else { &mut executions.together } += 1;
        self.run_logic::<F>(call, Reads { received, captured: Some(captured) }, context, false)?;
        Ok(self.committed())
    }

    /// What the logic is given of the reads that are selected.
    pub(crate) fn reads_captured(
        &mut self,
        call: &Call,
        received: &Received,
        captured: &Captured,
        selects: impl Fn(usize) -> bool,
        context: &mut Context<'_>,
    ) -> Vec<Version> {
        self.reads(call, Reads { received, captured: Some(captured) }, selects, context)
    }

    /// The row of a key after what the last run did to it.
    pub(crate) fn row_after(
        &mut self,
        key: &[u8],
        before: Option<&[u8]>,
        call: &Call,
        schema: &Schema,
    ) -> Option<Bytes> {
        let row = self.writes.overlay(key, before, &call.footprint, schema);
        row.ok().flatten().map(Bytes::copy_from_slice)
    }

    /// What the last run does: each effect with its target, in order.
    pub(crate) fn effects(&self) -> impl Iterator<Item = (Target, Effect<'_>)> {
        self.writes.operations().iter().map(|(target, operation)| (*target, self.writes.effect(operation)))
    }

    /// The key of a target of the last run.
    pub(crate) fn target_key<'a>(&'a self, target: Target, call: &'a Call) -> &'a [u8] {
        self.writes.key(target, &call.footprint)
    }

    fn guard(
        &mut self,
        call: &Call,
        decoded: &Decoded<'_>,
        reads: Reads<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let schema = &context.catalog.schema;
        self.over::<NoFailpoints, _>(call, reads, context, false, |run, scratch, _| {
            decoded.guard(&mut Transaction::new(schema, &mut Guarding(run), scratch))
        })
    }

    /// Computes the functor of a key. One that stops leaves its key alone: whether the call commits was for the guard to say, and the
    /// functors of other keys cannot hear of it any more (traps T-09, T-19). It is counted, and the node's status tells of it.
    ///
    /// # Errors
    /// When it stops. Its writes are to be forgotten.
    fn functor(
        &mut self,
        call: &Call,
        place: usize,
        functor: Functor,
        decoded: &Decoded<'_>,
        reads: Reads<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Stopped> {
        let schema = &context.catalog.schema;
        let key = call.footprint.key(&call.footprint.keys()[place]);
        let computed =
            self.over::<NoFailpoints, _>(call, reads, context, false, |run, scratch, _| match functor {
                Functor::Own(number) => {
                    let key = Key::from_bytes(key);
                    run.next_key = place;
                    decoded.functor(number, &mut Transaction::new(schema, run, scratch).own_row(&key)?)
                }
                Functor::Arithmetic { column, operation } => {
                    let Some(row) = run.base(place) else { return Ok(()) };
                    match operation.apply(schema.table_of(key)?, column, row)? {
                        Changed::To(value) => run.writes.replace(Target::Entry(place), &[value]),
                        Changed::Nothing => {}
                        Changed::Exceeded(before) => {
                            return Err(Stop::Invalid(format!(
                                "{operation:?} of {before} exceeds its column"
                            )));
                        }
                    }
                    Ok(())
                }
            });
        context.effects.executions.functors += 1;
        computed.map_err(|stop| {
            let table = schema.table_of(key).map_or("(no table)", Table::name);
            let (name, position) = (context.catalog.procedures.name(call.procedure), call.position);
            let (key, why) = (Key::from_bytes(key), stop.into_reason());
            context.effects.executions.functors_stopped += 1;
            context.effects.functor_problem =
                Some(format!("functor of {name} for key {key:?} of table {table} at {position}: {why}"));
            Stopped
        })
    }
}

/// A functor stopped, and it has been noted.
struct Stopped;

/// How much of a call with functors is run where it is computed, or not.
pub(crate) fn scope_of(call: &Call, computes: bool) -> Scope {
    match computes {
        true => Scope::Whole,
        false if call.footprint.only_functors() => Scope::OnlyFunctors,
        false => Scope::Functors,
    }
}

/// The verdict on a run that stopped although its guard had let it pass: its functors have done their work, here and elsewhere.
pub(crate) fn half_applied(stop: Stop, call: &Call, catalog: &Catalog) -> Verdict {
    let (Stop::Abort(why) | Stop::Invalid(why) | Stop::Exceeds(_, why) | Stop::OutsideFootprint(why)) = stop
    else {
        return verdict_of(stop, call, catalog);
    };
    let why = format!("its guard let it pass, so its functors took effect, but then it stopped: {why}");
    verdict_of(Stop::Invalid(why), call, catalog)
}
