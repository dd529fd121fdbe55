//! Phase 5: the logic over all reads, and the local writes (Calvin §3.2).

use std::ops::ControlFlow;

use bytes::Bytes;

use super::captured::Captured;
use super::effects::{Applied, Place};
use super::remote_reads::{Received, RemoteRangeRow, RemoteRow, Selection, Unusable};
use super::write_buffer::{Target, WriteBuffer};
use super::{Call, Context, Missing};
use crate::data::row::FixedValue;
use crate::data::{DataError, Direction, Key, KeyRange, Owner, Table};
use crate::error::Error;
use crate::failpoint::{Failpoint, Failpoints};
use crate::message::Verdict;
use crate::position::{PartitionId, Position};
use crate::procedure::footprint::Access as Touch;
use crate::procedure::layers::{self, Layers};
use crate::procedure::transaction::{Access, Found};
use crate::procedure::{Catalog, Footprint, Stop, Transaction};
use crate::storage::{RecordId, Storage};

/// Runs procedures; holds the buffers that runs share.
#[derive(Debug, Default)]
pub struct Executor {
    pub(super) keys: Vec<KeyState>,
    remote_keys: Vec<Option<RemoteRow>>,
    remote_ranges: Vec<Vec<RemoteRangeRow>>,
    pub(super) writes: WriteBuffer,
    hashes: Vec<u64>,
    /// What an effect changes in a row, for the digests of what was written.
    pub(super) change: Vec<u8>,
    scratch: Vec<u8>,
    pub(super) output: Vec<u8>,
    /// The local keys that are written, where somebody wants to know and it is not the whole call that is run.
    pub(super) touched: Option<Vec<Bytes>>,
    /// What an exploring run lacks.
    pub(super) missing: Vec<Missing>,
    /// What was computed for the call by earlier runs over the same reads, and by this one.
    pub(super) computed: Vec<u64>,
}

/// What a run reads, but for the newest local rows.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    /// Rows of other partitions.
    pub(super) received: &'a Received,
    /// Local rows, if not the newest are meant.
    pub(super) captured: Option<&'a Captured>,
}

impl<'a> Reads<'a> {
    pub(super) fn of(received: &'a Received) -> Reads<'a> {
        Reads { received, captured: None }
    }
}

/// What is known of a key entry of the footprint during a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyState {
    pub(super) local: Option<RecordId>,
    pub(super) written: bool,
}

impl Executor {
    /// Runs a call whose reads are all at hand and applies its local writes if it commits.
    ///
    /// The verdict depends only on the call and on the rows of its footprint: it is alike at every active participant.
    pub fn execute<F: Failpoints>(
        &mut self,
        call: &Call,
        received: &Received,
        context: &mut Context<'_>,
    ) -> Verdict {
        self.execute_computed::<F>(call, received, Vec::new(), context)
    }

    /// The same for a call of which runs over the same reads have [computed](Transaction::compute) something.
    pub fn execute_computed<F: Failpoints>(
        &mut self,
        call: &Call,
        received: &Received,
        computed: Vec<u64>,
        context: &mut Context<'_>,
    ) -> Verdict {
        self.computed = computed;
        let executions = &mut context.effects.executions;
        *if received.is_empty() { &mut executions.alone } else { &mut executions.together } += 1;
        if context.effects.executed.is_some() {
            return self.execute_traced::<F>(call, received, context);
        }
        match self.prepare(call, received, context) {
            Ok(()) => self.run::<F>(call, received, context),
            Err(stop) => verdict_of(stop, call, context.catalog),
        }
    }

    /// Runs the logic over what was prepared, and applies its writes.
    pub(super) fn run<F: Failpoints>(
        &mut self,
        call: &Call,
        received: &Received,
        context: &mut Context<'_>,
    ) -> Verdict {
        match self.run_logic::<F>(call, Reads::of(received), context, false) {
            Err(stop) => verdict_of(stop, call, context.catalog),
            Ok(()) => {
                self.apply::<F>(call, false, context);
                self.committed()
            }
        }
    }

    /// The verdict on a run that came to its end.
    pub(super) fn committed(&self) -> Verdict {
        Verdict::Committed(if self.output.is_empty() {
            Bytes::new()
        } else {
            Bytes::copy_from_slice(&self.output)
        })
    }

    pub(super) fn run_logic<F: Failpoints>(
        &mut self,
        call: &Call,
        reads: Reads<'_>,
        context: &mut Context<'_>,
        explores: bool,
    ) -> Result<(), Stop> {
        let catalog = context.catalog;
        let (result, units) = self.over::<F, _>(call, reads, context, explores, |run, scratch, output| {
            output.clear();
            let mut transaction = Transaction::new(&catalog.schema, run, scratch);
            let result = catalog.procedures.run(call.procedure, &call.arguments, &mut transaction, output);
            (result, run.units)
        });
        context.effects.executions.units += units;
        result
    }

    /// Does something with a run over what was prepared, a buffer for rows and one for the result.
    pub(super) fn over<F: Failpoints, R>(
        &mut self,
        call: &Call,
        reads: Reads<'_>,
        context: &mut Context<'_>,
        explores: bool,
        body: impl FnOnce(&mut Run<'_>, &mut Vec<u8>, &mut Vec<u8>) -> R,
    ) -> R {
        let mut run = Run {
            me: context.me,
            partitions: context.partitions,
            catalog: context.catalog,
            storage: &mut *context.storage,
            footprint: &call.footprint,
            received: reads.received,
            captured: reads.captured,
            keys: &mut self.keys,
            remote_keys: &self.remote_keys,
            remote_ranges: &self.remote_ranges,
            writes: &mut self.writes,
            next_key: 0,
            unchecked: F::on(Failpoint::SkipFootprintCheck) && call.reconnoitred,
            missing: explores.then_some(&mut self.missing),
            computed: &mut self.computed,
            next_computed: 0,
            units: 0,
        };
        body(&mut run, &mut self.scratch, &mut self.output)
    }

    /// Looks up all local rows in one pass, so that their cache misses overlap, and finds the remote ones.
    pub(super) fn prepare(
        &mut self,
        call: &Call,
        received: &Received,
        context: &Context<'_>,
    ) -> Result<(), Stop> {
        let footprint = &call.footprint;
        self.writes.clear();
        self.keys.clear();
        for entry in footprint.keys() {
            let local = entry.access.read && entry.owner.includes(context.me);
            let local = if local { context.storage.locate(footprint.key(entry), entry.hash) } else { None };
            self.keys.push(KeyState { local, written: false });
        }
        self.prepare_received(footprint, received, Selection::All)
    }

    /// Finds the rows of other partitions.
    pub(super) fn prepare_received(
        &mut self,
        footprint: &Footprint,
        received: &Received,
        selection: Selection,
    ) -> Result<(), Stop> {
        self.remote_keys.clear();
        self.remote_ranges.iter_mut().for_each(Vec::clear);
        self.remote_ranges.resize_with(footprint.ranges().len(), Vec::new);
        if received.is_empty() {
            return Ok(());
        }
        self.remote_keys.resize(footprint.keys().len(), None);
        let indexed = received.index(footprint, selection, &mut self.remote_keys, &mut self.remote_ranges);
        for rows in &mut self.remote_ranges {
            // Each partition has sent its own in order.
            rows.sort_unstable_by(|left, right| {
                received.bytes(left.part, &left.key).cmp(received.bytes(right.part, &right.key))
            });
        }
        indexed.map_err(|unusable| match unusable {
            Unusable::TooLarge => DataError::ReadsTooLarge.into(),
            Unusable::Malformed => Stop::Invalid("remote reads do not fit the footprint".to_owned()),
        })
    }

    /// Applies the writes to keys that this partition holds; the others are applied where they are local. Those that
    /// [functors](Footprint::functor) make are left out if it `leaves_functors`.
    pub(super) fn apply<F: Failpoints>(
        &mut self,
        call: &Call,
        leaves_functors: bool,
        context: &mut Context<'_>,
    ) {
        let footprint = &call.footprint;
        // Keys that only the run knew, mostly inserts: nothing of them is in the cache yet.
        self.hashes.clear();
        self.hashes.extend(self.writes.operations().iter().filter_map(|(target, _)| match target {
            Target::Entry(_) => None,
            Target::InRange { hash, .. } => Some(*hash),
        }));
        if !self.hashes.is_empty() {
            context.storage.prefetch(&self.hashes);
        }
        let schema = &context.catalog.schema;
        for (target, operation) in self.writes.operations() {
            let key = self.writes.key(*target, footprint);
            let (owner, hash) = match target {
                Target::Entry(index) => (footprint.keys()[*index].owner, footprint.keys()[*index].hash),
                Target::InRange { hash, .. } => {
                    (schema.owner(key, context.partitions).unwrap_or(Owner::Split), *hash)
                }
            };
            if !owner.includes(context.me) && !F::on(Failpoint::ApplyNonLocalWrite) {
                continue;
            }
            let known = match target {
                Target::Entry(index) => {
                    if leaves_functors && footprint.functor(&footprint.keys()[*index]).is_some() {
                        continue;
                    }
                    Some(&mut self.keys[*index].local)
                }
                Target::InRange { .. } => None,
            };
            let (effect, position) = (self.writes.effect(operation), call.position);
            let at = known.as_ref().and_then(|known| **known);
            let place = Place { key, hash, known: at, position };
            let applied = effect.apply(place, schema, context.storage, &mut self.change);
            assert!(
                applied != Applied::Missed
                    || F::on(Failpoint::ApplyNonLocalWrite)
                    || F::on(Failpoint::SkipFootprintCheck),
                "a replaced row was found to exist when it was replaced"
            );
            if let Some(known) = known {
                *known = if let Applied::At(record) = applied { Some(record) } else { None };
            }
        }
    }
}

pub(crate) fn verdict_of(stop: Stop, call: &Call, catalog: &Catalog) -> Verdict {
    let name = catalog.procedures.name(call.procedure);
    match stop {
        Stop::Abort(reason) => Verdict::Failed(Error::Aborted(reason)),
        Stop::Invalid(problem) => Verdict::Failed(Error::Invalid(format!("{name}: {problem}"))),
        Stop::Exceeds(limit, problem) => Verdict::Failed(Error::Exceeds(limit, format!("{name}: {problem}"))),
        Stop::OutsideFootprint(_) if call.reconnoitred => Verdict::FootprintMissed,
        Stop::OutsideFootprint(what) => Verdict::Failed(Error::Invalid(format!(
            "{name} accessed {what} outside of its declared footprint: declare it"
        ))),
        Stop::ReadPending | Stop::FootprintKnown => {
            Verdict::Failed(Error::Invalid(format!("{name} made up a stop that only reconnaissance has")))
        }
    }
}

/// One run of a procedure over the reads of its footprint.
pub(super) struct Run<'a> {
    pub(super) me: PartitionId,
    pub(super) partitions: u16,
    pub(super) catalog: &'a Catalog,
    pub(super) storage: &'a mut dyn Storage,
    pub(super) footprint: &'a Footprint,
    received: &'a Received,
    /// The local rows, if they are not the newest.
    captured: Option<&'a Captured>,
    keys: &'a mut [KeyState],
    remote_keys: &'a [Option<RemoteRow>],
    remote_ranges: &'a [Vec<RemoteRangeRow>],
    pub(super) writes: &'a mut WriteBuffer,
    /// The key entry that is expected next.
    pub(super) next_key: usize,
    /// Whether accesses outside of the footprint are let pass: see [`Failpoint::SkipFootprintCheck`].
    unchecked: bool,
    /// Where accesses outside of the footprint are noted by a run that [explores](Executor::explore).
    pub(super) missing: Option<&'a mut Vec<Missing>>,
    /// See [`Executor::computed`], and which of these comes next.
    computed: &'a mut Vec<u64>,
    next_computed: usize,
    /// What this run has computed, in units of its procedure's own.
    units: u64,
}

impl Run<'_> {
    pub(super) fn outside(&self, key: &[u8], how: &str) -> Stop {
        let table = self.catalog.schema.table_of(key).map_or("(no table)", Table::name);
        Stop::OutsideFootprint(format!("key {:?} of table {table} ({how})", Key::from_bytes(key)))
    }

    #[inline]
    fn find(&mut self, key: &[u8]) -> Option<usize> {
        let index = self.footprint.find_hinted(key, self.next_key).ok()?;
        self.next_key = index + 1;
        Some(index)
    }

    /// The row of a key entry before the transaction's own writes.
    #[inline]
    pub(super) fn base(&self, index: usize) -> Option<&[u8]> {
        if let Some(record) = self.keys[index].local {
            return Some(self.storage.row(record));
        }
        if let Some(captured) = self.captured.filter(|captured| captured.knows(index)) {
            return captured.row(index);
        }
        self.remote_keys.get(index)?.as_ref().map(|row| self.received.bytes(row.part, &row.bytes))
    }

    /// The row of a key in a declared range before the transaction's own writes.
    fn base_in_range(&self, range: usize, key: &[u8]) -> Option<&[u8]> {
        let owner = self.footprint.ranges()[range].owner;
        if let Some(captured) = self.captured {
            if let Some(row) = captured.row_in_range(range, key) {
                return Some(row);
            }
        } else if owner.includes(self.me)
            && let Some(record) = self.storage.locate(key, crate::hash::key_hash(key))
        {
            return Some(self.storage.row(record));
        }
        let rows = &self.remote_ranges[range];
        let found = rows.get(self.remote_place(range, key))?;
        let is_it = self.received.bytes(found.part, &found.key) == key;
        is_it.then(|| self.received.bytes(found.part, &found.row))
    }

    /// How many rows of a range that others sent are before a key.
    fn remote_place(&self, range: usize, key: &[u8]) -> usize {
        self.remote_ranges[range].partition_point(|row| self.received.bytes(row.part, &row.key) < key)
    }

    /// Where a write of the key goes, if the footprint allows it.
    #[inline]
    fn write_target(&mut self, key: &Key, how: &str) -> Result<Target, Stop> {
        let hash = match self.footprint.find_hinted(key, self.next_key) {
            Ok(index) if self.footprint.keys()[index].access.write => {
                self.next_key = index + 1;
                self.keys[index].written = true;
                return Ok(Target::Entry(index));
            }
            Ok(index) => {
                // Only a range lets it be written; reads by its entry see the write all the same.
                self.keys[index].written = true;
                self.footprint.keys()[index].hash
            }
            Err(hash) => hash,
        };
        let covered = self.footprint.find_range_of(key, Touch::WRITE).is_some();
        if let Some(missing) = self.missing.as_mut().filter(|_| !covered) {
            missing.push(Missing::Key(key.clone(), Touch::WRITE));
        }
        if covered || self.unchecked || self.missing.is_some() {
            key.check_length()?;
            self.catalog.schema.table_of(key)?.check_key(key)?;
            return Ok(self.writes.target_in_range(key, hash));
        }
        Err(self.outside(key, how))
    }

    /// The row of a key that a range covers, or that was written in one.
    fn get_in_range(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        let range = self.footprint.find_range_of(key, Touch::READ);
        if !self.writes.is_empty() && self.writes.wrote(key, self.footprint) {
            let base = range.and_then(|range| self.base_in_range(range, key)).map(<[u8]>::to_vec);
            return self.writes.overlay(key, base.as_deref(), self.footprint, &self.catalog.schema);
        }
        match range {
            Some(range) => Ok(self.base_in_range(range, key)),
            None if self.unchecked => {
                let record = self.storage.locate(key, crate::hash::key_hash(key));
                Ok(record.map(|record| self.storage.row(record)))
            }
            None => {
                if let Some(missing) = &mut self.missing {
                    missing.push(Missing::Key(key.clone(), Touch::READ));
                }
                Err(self.outside(key, "read"))
            }
        }
    }

    /// The rows of a range before the transaction's own writes, in order, at most `limit`.
    pub(super) fn scan_base(
        &mut self,
        entry: usize,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Vec<Found> {
        let owner = self.footprint.ranges()[entry].owner;
        let mut found = Vec::new();
        if let Some(captured) = self.captured {
            let rows = direction.of_ascending(captured.range_within(entry, range)).take(limit);
            found.extend(
                rows.map(|(key, row)| Found { key: Key::from_bytes(key), row: Bytes::copy_from_slice(row) }),
            );
        } else if owner.includes(self.me) {
            self.storage.scan(range, direction, Position::LATEST, &mut |key, row| {
                if found.len() >= limit {
                    return ControlFlow::Break(());
                }
                found.push(Found { key: Key::from_bytes(key), row: Bytes::copy_from_slice(row) });
                ControlFlow::Continue(())
            });
        }
        let (start, end) = (self.remote_place(entry, &range.start), self.remote_place(entry, &range.end));
        let remote = self.remote_ranges[entry].get(start..end).unwrap_or_default();
        for row in direction.of_ascending(remote.iter()).take(limit) {
            let key = Key::from_bytes(self.received.bytes(row.part, &row.key));
            found.push(Found { key, row: Bytes::copy_from_slice(self.received.bytes(row.part, &row.row)) });
        }
        found.sort_unstable_by(|left, right| direction.compare(&left.key, &right.key));
        found.truncate(limit);
        found
    }
}

impl Access for Run<'_> {
    #[inline]
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        let Some(index) = self.find(key) else { return self.get_in_range(key) };
        // A key that is only written by itself may still be read as part of a range.
        if !self.footprint.keys()[index].access.read {
            return self.get_in_range(key);
        }
        if self.keys[index].written {
            let base = self.base(index).map(<[u8]>::to_vec);
            return self.writes.overlay(key, base.as_deref(), self.footprint, &self.catalog.schema);
        }
        Ok(self.base(index))
    }

    #[inline]
    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        let target = self.write_target(key, "put")?;
        self.writes.put(target, row)
    }

    #[inline]
    fn replace(&mut self, _table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        let exists = match self.find(key) {
            Some(index) if self.footprint.keys()[index].access.read && !self.keys[index].written => {
                self.next_key = index;
                self.base(index).is_some()
            }
            _ => self.get(key)?.is_some(),
        };
        let target = self.write_target(key, "set")?;
        if exists {
            self.writes.replace(target, values);
        }
        Ok(exists)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        let target = self.write_target(key, "delete")?;
        self.writes.delete(target);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        // The entry that reaches furthest. A reconnoitred one ends at the last row that was seen, so it may end before the
        // range that the procedure asks for.
        let (from, how, how_beyond) = match direction {
            Direction::Ascending => (&range.start, "scan from", "scan beyond"),
            Direction::Descending => (&range.end, "scan down from", "scan down beyond"),
        };
        let Some(entry) = self.footprint.find_range_from(range, direction) else {
            self.note_missing_range(range, direction, limit);
            return Err(self.outside(from, how));
        };
        let declared = &self.footprint.ranges()[entry].range;
        let (covered, visible) = match direction {
            Direction::Ascending => (
                declared.end >= range.end,
                KeyRange { start: range.start.clone(), end: range.end.clone().min(declared.end.clone()) },
            ),
            Direction::Descending => (
                declared.start <= range.start,
                KeyRange { start: range.start.clone().max(declared.start.clone()), end: range.end.clone() },
            ),
        };
        let found = layers::scan(&mut InRange { run: self, entry }, &visible, direction, limit)?;
        if !covered && found.len() < limit {
            self.note_missing_range(range, direction, limit);
            let beyond = if direction == Direction::Ascending { &visible.end } else { &visible.start };
            return Err(self.outside(beyond, how_beyond));
        }
        Ok(found)
    }

    fn looks_ahead(&self) -> Option<u16> {
        self.missing.is_some().then_some(self.partitions)
    }

    fn look_ahead(&mut self, ahead: &Footprint, refused: Option<DataError>, all: bool) -> Result<(), Stop> {
        self.note_ahead(ahead, all && refused.is_none())
    }

    fn computed(&mut self) -> Option<u64> {
        let known = self.computed.get(self.next_computed).copied();
        self.next_computed += usize::from(known.is_some());
        known
    }

    fn note_computed(&mut self, units: u64, result: u64) {
        self.units += units;
        // Only a run that explores is followed by others.
        if self.missing.is_some() {
            self.computed.push(result);
            self.next_computed += 1;
        }
    }
}

/// A run whose writes lie over what a range of the footprint holds.
struct InRange<'r, 'a> {
    run: &'r mut Run<'a>,
    entry: usize,
}

impl Layers for InRange<'_, '_> {
    fn below(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        Ok(self.run.scan_base(self.entry, range, direction, limit))
    }

    fn written(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Key> {
        self.run.writes.keys_in(range, direction, limit, self.run.footprint)
    }

    fn row(&mut self, key: &Key, below: Option<&[u8]>) -> Result<Option<Vec<u8>>, Stop> {
        let run = &mut *self.run;
        let own = run.writes.overlay(key, below, run.footprint, &run.catalog.schema)?;
        Ok(own.map(<[u8]>::to_vec))
    }
}
