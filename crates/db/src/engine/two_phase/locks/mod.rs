//! Two-phase locks: requested in any order and at any time, held to the end of the transaction (DET-29, DET-30).
//!
//! A request waits until every other transaction has ended that conflicts with it and came before it; readers share. That is a
//! queue for each key, first in first out. It is kept as what it amounts to: for each transaction, for whose ends it waits. So the
//! graph of waiting transactions is always there for the detection of deadlocks ([`deadlock`](super::deadlock)). Of those that
//! wait for each other anyway only the last is named; if that one gives up, who waited for it waits for whom it waited for.
//!
//! The queues of [`calvin`](../../calvin/index.html) do less, and therefore other things: there, all requests of a transaction
//! come at once and in the order of the log, nobody asks for more, and nobody gives up.
//!
//! A transaction that asks for more than it holds of a key does not queue behind those that wait for it: it only waits for others
//! that share the key, or that will as soon as they have what else they wait for.
//!
//! Ranges exclude phantoms. Keys are kept in order only in tables in which a range was ever locked. A range in a table that had
//! none before waits for all transactions that are live then.

use std::collections::BTreeMap;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::data::{Key, KeyRange, TableId, key};
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::FastMap;
use crate::position::PartitionId;
use crate::procedure::Footprint;
use crate::procedure::footprint::Access;

/// Number of a transaction that holds or asks for locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request for a key.
#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: Slot,
    exclusive: bool,
    /// Whether it is held; else its transaction waits.
    held: bool,
}

impl Entry {
    /// Whether a request of a transaction has to wait for this one, which is of another.
    fn excludes(&self, slot: Slot, exclusive: bool) -> bool {
        self.slot != slot && (self.exclusive || exclusive)
    }
}

type Queue = SmallVec<[Entry; 2]>;

/// A request for a range.
#[derive(Clone, Debug)]
struct RangeRequest {
    entry: Entry,
    range: KeyRange,
}

/// A table in which ranges are locked.
#[derive(Debug, Default)]
struct Ranged {
    ranges: Vec<RangeRequest>,
    /// The keys that somebody holds or asks for.
    keys: BTreeMap<Key, Queue>,
    /// Transactions that were live when the first range was locked: their keys are not in `keys`.
    unkept: Vec<Slot>,
}

/// What is known of a transaction.
#[derive(Debug, Default)]
struct Requests {
    live: bool,
    keys: SmallVec<[u64; 8]>,
    tables: SmallVec<[TableId; 2]>,
    /// Transactions whose ends it waits for, and those that wait for its end.
    waits_for: SmallVec<[Slot; 4]>,
    waited_by: SmallVec<[Slot; 4]>,
}

/// The locks of one partition. See the [module](self).
#[derive(Debug, Default)]
pub struct Locks {
    keys: FastMap<u64, Queue>,
    ranged: FastMap<TableId, Ranged>,
    requests: Vec<Requests>,
    live: usize,
}

fn overlap(left: &KeyRange, right: &KeyRange) -> bool {
    left.start < right.end && right.start < left.end
}

impl Locks {
    /// Whether a transaction would get all that a footprint asks for here at once.
    pub fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        if self.live == 0 {
            return true;
        }
        // Nobody has this number.
        let mut before = SmallVec::new();
        self.find_before::<F>(Slot(u32::MAX), footprint, me, &mut before);
        before.is_empty()
    }

    /// The transactions whose ends a request for a footprint would wait for.
    fn find_before<F: Failpoints>(
        &self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        before: &mut SmallVec<[Slot; 4]>,
    ) {
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            if F::on(Failpoint::ForgetReadLock) && !entry.access.write {
                continue;
            }
            let exclusive = entry.access.write;
            if let Some(queue) = self.keys.get(&entry.hash) {
                let holds = queue.iter().any(|other| other.slot == slot && other.held);
                for other in queue.iter().rev().filter(|other| other.excludes(slot, exclusive)) {
                    if holds && !other.held && self.is_behind(other.slot, slot) {
                        continue;
                    }
                    before.push(other.slot);
                    // That one waits for all before it.
                    if other.exclusive && !holds {
                        break;
                    }
                }
            }
            let bytes = footprint.key(entry);
            if let Some(ranged) = self.table_of(bytes) {
                let around = ranged.ranges.iter().filter(|request| request.range.contains(bytes));
                let excluding = around.filter(|request| request.entry.excludes(slot, exclusive));
                before.extend(excluding.map(|request| request.entry.slot));
            }
        }
        for (table, range, access) in local_ranges::<F>(footprint, me) {
            let exclusive = access.write;
            let Some(ranged) = self.ranged.get(&table) else {
                let live = self.requests.iter().enumerate().filter(|(_, requests)| requests.live);
                before.extend(live.map(|(index, _)| Slot(index as u32)).filter(|other| *other != slot));
                continue;
            };
            before.extend(ranged.unkept.iter().copied().filter(|other| *other != slot));
            let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
            let within = ranged.keys.range::<[u8], _>(bounds).flat_map(|(_, queue)| queue);
            let over = ranged.ranges.iter().filter(|request| overlap(&request.range, range));
            let excluding = within.chain(over.map(|request| &request.entry));
            let excluding = excluding.filter(|other| other.excludes(slot, exclusive));
            before.extend(excluding.map(|other| other.slot));
        }
        before.sort_unstable();
        before.dedup();
    }

    /// Whether a transaction waits for another's end, directly or not.
    fn is_behind(&self, slot: Slot, other: Slot) -> bool {
        let mut seen: SmallVec<[Slot; 16]> = SmallVec::from_slice(&[slot]);
        let mut next = 0;
        while let Some(at) = seen.get(next).copied() {
            next += 1;
            for earlier in &self.requests[at.index()].waits_for {
                if *earlier == other {
                    return true;
                }
                if !seen.contains(earlier) {
                    seen.push(*earlier);
                }
            }
        }
        false
    }

    fn table_of(&self, bytes: &[u8]) -> Option<&Ranged> {
        if self.ranged.is_empty() {
            return None;
        }
        self.ranged.get(&key::table_of(bytes)?)
    }

    /// Requests what a footprint asks for here; what the transaction has requested before is in it too. Whether it has all of it
    /// now. One that waits requests nothing more.
    pub fn request<F: Failpoints>(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId) -> bool {
        if self.requests.len() <= slot.index() {
            self.requests.resize_with(slot.index() + 1, Requests::default);
        }
        let mut before = SmallVec::new();
        self.find_before::<F>(slot, footprint, me, &mut before);
        let held = before.is_empty();
        let requests = &mut self.requests[slot.index()];
        self.live += usize::from(!requests.live);
        requests.live = true;
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            let queue = self.keys.entry(entry.hash).or_default();
            if enter(queue, slot, entry.access.write, held) {
                self.requests[slot.index()].keys.push(entry.hash);
            }
        }
        self.enter_tables::<F>(slot, footprint, me, held);
        for earlier in &before {
            self.requests[earlier.index()].waited_by.push(slot);
        }
        self.requests[slot.index()].waits_for = before;
        held
    }

    /// Enters the ranges, and the keys of tables that have ranges.
    fn enter_tables<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        held: bool,
    ) {
        for (table, range, access) in local_ranges::<F>(footprint, me) {
            let live = self.requests.iter().enumerate().filter(|(_, requests)| requests.live);
            let others = live.map(|(index, _)| Slot(index as u32)).filter(|other| *other != slot);
            let ranged = self
                .ranged
                .entry(table)
                .or_insert_with(|| Ranged { unkept: others.collect(), ..Ranged::default() });
            let entry = Entry { slot, exclusive: access.write, held };
            let known =
                ranged.ranges.iter_mut().find(|known| known.entry.slot == slot && known.range == *range);
            match known {
                Some(known) => known.entry.exclusive |= entry.exclusive,
                None => ranged.ranges.push(RangeRequest { entry, range: range.clone() }),
            }
            note_table(&mut self.requests[slot.index()], table);
        }
        if self.ranged.is_empty() {
            return;
        }
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            let bytes = footprint.key(entry);
            let Some(table) = key::table_of(bytes) else { continue };
            if let Some(ranged) = self.ranged.get_mut(&table) {
                enter(ranged.keys.entry(Key::from_bytes(bytes)).or_default(), slot, entry.access.write, held);
                note_table(&mut self.requests[slot.index()], table);
            }
        }
    }

    /// Takes a transaction out that has ended or given up; appends those that have all that they asked for now.
    pub fn release(&mut self, slot: Slot, granted: &mut Vec<Slot>) {
        let Requests { live, keys, tables, waits_for, waited_by } =
            std::mem::take(&mut self.requests[slot.index()]);
        self.live -= usize::from(live);
        for hash in keys {
            if let Some(queue) = self.keys.get_mut(&hash) {
                queue.retain(|entry| entry.slot != slot);
                if queue.is_empty() {
                    self.keys.remove(&hash);
                }
            }
        }
        for table in tables {
            if let Some(ranged) = self.ranged.get_mut(&table) {
                ranged.ranges.retain(|request| request.entry.slot != slot);
                ranged.keys.retain(|_, queue| {
                    queue.retain(|entry| entry.slot != slot);
                    !queue.is_empty()
                });
            }
        }
        self.ranged.values_mut().for_each(|ranged| ranged.unkept.retain(|unkept| *unkept != slot));
        for earlier in &waits_for {
            self.requests[earlier.index()].waited_by.retain(|waiting| *waiting != slot);
        }
        for waiting in waited_by {
            for earlier in waits_for.iter().copied().filter(|earlier| *earlier != waiting) {
                if !self.requests[waiting.index()].waits_for.contains(&earlier) {
                    self.requests[waiting.index()].waits_for.push(earlier);
                    self.requests[earlier.index()].waited_by.push(waiting);
                }
            }
            let requests = &mut self.requests[waiting.index()];
            requests.waits_for.retain(|earlier| *earlier != slot);
            if requests.waits_for.is_empty() {
                self.hold(waiting);
                granted.push(waiting);
            }
        }
    }

    /// A transaction has all that it asked for.
    fn hold(&mut self, slot: Slot) {
        let Locks { keys, ranged, requests, .. } = self;
        let own = |entry: &&mut Entry| entry.slot == slot;
        for hash in &requests[slot.index()].keys {
            keys.get_mut(hash).into_iter().flatten().filter(own).for_each(|entry| entry.held = true);
        }
        for table in &requests[slot.index()].tables {
            let Some(ranged) = ranged.get_mut(table) else { continue };
            let ranges = ranged.ranges.iter_mut().map(|request| &mut request.entry);
            let entries = ranges.chain(ranged.keys.values_mut().flatten());
            entries.filter(own).for_each(|entry| entry.held = true);
        }
    }

    /// For whose ends a transaction waits.
    pub fn waits_for(&self, slot: Slot) -> &[Slot] {
        self.requests.get(slot.index()).map_or(&[], |requests| &requests.waits_for)
    }

    /// Number of transactions that hold or ask for locks.
    pub fn live(&self) -> usize {
        self.live
    }
}

/// Enters a request into a queue; whether the transaction had none there.
fn enter(queue: &mut Queue, slot: Slot, exclusive: bool, held: bool) -> bool {
    match queue.iter_mut().find(|entry| entry.slot == slot) {
        Some(own) => {
            own.exclusive |= exclusive;
            false
        }
        None => {
            queue.push(Entry { slot, exclusive, held });
            true
        }
    }
}

fn note_table(requests: &mut Requests, table: TableId) {
    if !requests.tables.contains(&table) {
        requests.tables.push(table);
    }
}

fn local_ranges<F: Failpoints>(
    footprint: &Footprint,
    me: PartitionId,
) -> impl Iterator<Item = (TableId, &KeyRange, Access)> {
    let ranges = footprint.ranges().iter();
    let local = ranges.filter(move |entry| entry.owner.includes(me) && !F::on(Failpoint::ForgetRangeLock));
    local.filter_map(|entry| Some((entry.range.start.table()?, &entry.range, entry.access)))
}
