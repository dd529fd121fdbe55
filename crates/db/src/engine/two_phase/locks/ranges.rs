//! Locks of ranges, which exclude phantoms.
//!
//! The queues of keys know nothing of order, so ranges are kept apart: a conflict with a range makes a transaction wait for the
//! *end of another transaction*. A range waits for all others that have asked for a key in it or for a range that overlaps it,
//! and a key for all that have asked for a range around it, unless both only read. So one that has read a range, and then writes
//! in it where somebody else waits to write, is in a deadlock with that one.
//!
//! Keys must be kept in order for that; so that is done only in tables in which a range was ever locked. The first range in a
//! table waits for all transactions that are live then, since their keys were not kept. While a log is replayed, they are kept in
//! all tables: what was held together before is held together again, whichever comes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use smallvec::SmallVec;

use super::{Mode, Slot};
use crate::data::{Key, KeyRange, TableId, key};
use crate::failpoint::{Failpoint, Failpoints};
use crate::position::PartitionId;
use crate::procedure::Footprint;

/// A request for a range.
#[derive(Debug)]
struct RangeRequest {
    slot: Slot,
    mode: Mode,
    range: KeyRange,
}

/// Whose ends a transaction waits for, and what it has asked for.
#[derive(Debug, Default)]
struct Waits {
    waits_for: SmallVec<[Slot; 4]>,
    waited_by: SmallVec<[Slot; 4]>,
    keys: SmallVec<[Key; 4]>,
    tables: SmallVec<[TableId; 2]>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct RangeLocks {
    /// Tables in which a range was ever locked, with the ranges that are asked for in each.
    ranges: BTreeMap<TableId, Vec<RangeRequest>>,
    /// Transactions that were live when the first range in a table was locked, and still are: their keys are not in `keys`.
    unkept: BTreeSet<(TableId, Slot)>,
    /// Those who have asked for keys of those tables, each once, with what it asks for.
    keys: BTreeMap<Key, SmallVec<[(Slot, Mode); 2]>>,
    slots: Vec<Waits>,
}

fn overlap(left: &KeyRange, right: &KeyRange) -> bool {
    left.start < right.end && right.start < left.end
}

/// The ranges of a footprint that this partition holds a part of.
fn local_ranges<F: Failpoints>(
    footprint: &Footprint,
    me: PartitionId,
) -> impl Iterator<Item = (TableId, &KeyRange, Mode)> {
    let ranges = footprint.ranges().iter();
    let local = ranges.filter(move |entry| entry.owner.includes(me) && !F::on(Failpoint::ForgetRangeLock));
    local.filter_map(|entry| Some((entry.range.start.table()?, &entry.range, Mode::of(entry.access.write))))
}

impl RangeLocks {
    fn table_of(&self, bytes: &[u8]) -> Option<TableId> {
        key::table_of(bytes).filter(|table| self.ranges.contains_key(table))
    }

    /// Keeps the keys that are asked for in these tables from now on.
    pub(super) fn keep_keys(&mut self, tables: impl Iterator<Item = TableId>) {
        for table in tables {
            self.ranges.entry(table).or_default();
        }
    }

    /// Keeps them no longer where no range is asked for.
    pub(super) fn keep_keys_beside_ranges(&mut self) {
        self.ranges.retain(|_, ranges| !ranges.is_empty());
    }

    /// Whether a footprint of somebody who has asked for nothing would have to wait for nobody.
    pub(super) fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        if self.ranges.is_empty() {
            return local_ranges::<F>(footprint, me).next().is_none();
        }
        let known = local_ranges::<F>(footprint, me).all(|(table, ..)| self.ranges.contains_key(&table));
        known && self.find_before::<F>(None, footprint, me, &[]).is_empty()
    }

    /// Those that have asked for what conflicts with a footprint, ascending. `live` are all others.
    fn find_before<F: Failpoints>(
        &self,
        slot: Option<Slot>,
        footprint: &Footprint,
        me: PartitionId,
        live: &[Slot],
    ) -> SmallVec<[Slot; 4]> {
        let mut before = SmallVec::new();
        for (table, range, mode) in local_ranges::<F>(footprint, me) {
            let Some(ranges) = self.ranges.get(&table) else {
                before.extend(live.iter().copied());
                continue;
            };
            let unkept = self.unkept.range((table, Slot(0))..=(table, Slot(u32::MAX)));
            before.extend(unkept.map(|(_, other)| *other));
            let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
            let within = self.keys.range::<[u8], _>(bounds).flat_map(|(_, requests)| requests);
            before.extend(within.filter(|(_, other)| other.conflicts(mode)).map(|(other, _)| *other));
            let over = ranges.iter().filter(|request| overlap(&request.range, range));
            before.extend(over.filter(|request| request.mode.conflicts(mode)).map(|request| request.slot));
        }
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            let (bytes, mode) = (footprint.key(entry), Mode::of(entry.access.write));
            let Some(ranges) = self.table_of(bytes).and_then(|table| self.ranges.get(&table)) else {
                continue;
            };
            let around = ranges.iter().filter(|request| request.range.contains(bytes));
            before.extend(around.filter(|request| request.mode.conflicts(mode)).map(|request| request.slot));
        }
        before.retain(|other| Some(*other) != slot);
        before.sort_unstable();
        before.dedup();
        before
    }

    /// Enters what a footprint asks for, and what it asked for before; whether it has to wait for somebody. `live` are all others
    /// that have asked for anything.
    pub(super) fn request<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        live: impl FnOnce() -> Vec<Slot>,
    ) -> bool {
        let mut new = local_ranges::<F>(footprint, me).filter(|(table, ..)| !self.ranges.contains_key(table));
        let live = if new.next().is_some() { live() } else { Vec::new() };
        if self.ranges.is_empty() && live.is_empty() && local_ranges::<F>(footprint, me).next().is_none() {
            return false;
        }
        if self.slots.len() <= slot.index() {
            self.slots.resize_with(slot.index() + 1, Waits::default);
        }
        let before = self.find_before::<F>(Some(slot), footprint, me, &live);
        for (table, range, mode) in local_ranges::<F>(footprint, me) {
            if !self.ranges.contains_key(&table) {
                self.unkept.extend(live.iter().map(|other| (table, *other)));
            }
            let ranges = self.ranges.entry(table).or_default();
            match ranges.iter_mut().find(|known| known.slot == slot && known.range == *range) {
                Some(known) => known.mode = known.mode.max(mode),
                None => ranges.push(RangeRequest { slot, mode, range: range.clone() }),
            }
            let tables = &mut self.slots[slot.index()].tables;
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        self.enter_keys(slot, footprint, me);
        for earlier in &before {
            if self.slots.len() <= earlier.index() {
                self.slots.resize_with(earlier.index() + 1, Waits::default);
            }
            self.slots[earlier.index()].waited_by.push(slot);
        }
        let waits = !before.is_empty();
        self.slots[slot.index()].waits_for = before;
        waits
    }

    /// Enters the keys of tables that have ranges.
    fn enter_keys(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) {
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            let (bytes, mode) = (footprint.key(entry), Mode::of(entry.access.write));
            if self.table_of(bytes).is_none() {
                continue;
            }
            let requests = self.keys.entry(Key::from_bytes(bytes)).or_default();
            match requests.iter_mut().find(|(other, _)| *other == slot) {
                Some((_, known)) => *known = (*known).max(mode),
                None => {
                    requests.push((slot, mode));
                    self.slots[slot.index()].keys.push(Key::from_bytes(bytes));
                }
            }
        }
    }

    /// Takes a transaction out, and tells `grant` who does not wait for ends any more.
    pub(super) fn release(&mut self, slot: Slot, mut grant: impl FnMut(Slot)) {
        if !self.unkept.is_empty() {
            self.unkept.retain(|(_, unkept)| *unkept != slot);
        }
        let Some(waits) = self.slots.get_mut(slot.index()) else { return };
        let Waits { waits_for, waited_by, keys, tables } = std::mem::take(waits);
        for key in keys {
            if let Some(requests) = self.keys.get_mut(&key) {
                requests.retain(|(other, _)| *other != slot);
                if requests.is_empty() {
                    self.keys.remove(&key);
                }
            }
        }
        for table in tables {
            self.ranges.entry(table).or_default().retain(|request| request.slot != slot);
        }
        for earlier in waits_for {
            self.slots[earlier.index()].waited_by.retain(|waiting| *waiting != slot);
        }
        for waiting in waited_by {
            let waits_for = &mut self.slots[waiting.index()].waits_for;
            waits_for.retain(|earlier| *earlier != slot);
            if waits_for.is_empty() {
                grant(waiting);
            }
        }
    }

    /// For whose ends a transaction waits because of ranges, without those for which one of the others waits because of ranges, too; how much
    /// work that was. `covered` has, by slot, the transaction for which it was last left out.
    pub(super) fn find_before_all(
        &self,
        slot: Slot,
        covered: &mut [Option<Slot>],
        mut found: impl FnMut(Slot),
    ) -> usize {
        let mut waits = SmallVec::<[Slot; 4]>::from_slice(self.waits_for(slot));
        // The last to come waits for the most, and leaves the fewest to be told.
        waits.sort_by_key(|earlier| Reverse(self.waits_for(*earlier).len()));
        let mut work = waits.len();
        for earlier in waits {
            if covered.get(earlier.index()) == Some(&Some(slot)) {
                continue;
            }
            found(earlier);
            for other in self.waits_for(earlier) {
                work += 1;
                covered[other.index()] = Some(slot);
            }
        }
        work
    }

    /// For whose ends a transaction waits because of ranges.
    pub(super) fn waits_for(&self, slot: Slot) -> &[Slot] {
        self.slots.get(slot.index()).map_or(&[], |waits| &waits.waits_for)
    }
}
