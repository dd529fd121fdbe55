//! Range locks: a declared range excludes phantoms (CAL-50, the paper's future work).
//!
//! Key queues know nothing of order, so ranges are kept apart, and a conflict with a range makes one transaction wait for
//! *another transaction* rather than for a place in a queue: locks are released all at once, at the end, so that both come to
//! the same. A range waits for every earlier live transaction that locks a key in it or a range that overlaps it, and a key
//! waits for every earlier live range around it, unless both only read.
//!
//! Keys must be kept in order for this, which costs; so that is done only in tables in which ranges are used. From the
//! first range in a table on the table's keys are kept. The transactions that are live then have locked keys that are not:
//! that range, and every later one in the table, waits for all of them.
//!
//! Live ranges are found through *segments*: unions of ranges that overlap, which do not overlap each other. Nearly all
//! ranges in use are equal or disjoint, so that a segment holds the waiters of one hot prefix.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use smallvec::SmallVec;

use super::{Mode, Slot};
use crate::data::{Key, KeyRange, TableId};
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::FastSet;
use crate::position::PartitionId;
use crate::procedure::Footprint;
use crate::procedure::footprint::RangeEntry;

#[derive(Debug)]
struct Member {
    /// Ascends in the order of requests.
    ticket: u64,
    slot: Slot,
    range: KeyRange,
    mode: Mode,
}

#[derive(Debug)]
struct Segment {
    end: Key,
    /// In the order of requests.
    members: VecDeque<Member>,
}

impl Segment {
    /// Tells which members a later request has to wait for: those that it conflicts with, from the last back to one that is
    /// exclusive and covers the request. That one waits for all before it that the request could conflict with.
    fn find_before(
        &self,
        mode: Mode,
        overlaps: impl Fn(&KeyRange) -> bool,
        covered_by: impl Fn(&KeyRange) -> bool,
        before: &mut Vec<Slot>,
    ) {
        for member in self.members.iter().rev() {
            if member.mode.conflicts(mode) && overlaps(&member.range) {
                before.push(member.slot);
                if member.mode == Mode::Exclusive && covered_by(&member.range) {
                    return;
                }
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RangeLocks {
    /// Tables in which a range has been locked.
    ranged: FastSet<TableId>,
    /// Transactions that were live when the first range in a table was locked, and still are: their keys are not in `keys`.
    unkept: Vec<(TableId, Slot)>,
    /// Live locks of keys of those tables.
    keys: BTreeMap<Key, SmallVec<[(Slot, Mode); 2]>>,
    /// Live ranges, by the start of their segment.
    segments: BTreeMap<Key, Segment>,
    next_ticket: u64,
    /// By slot: whether it is live, and the slots that wait for its end, one for each reason.
    live: Vec<bool>,
    dependents: Vec<Vec<Slot>>,
}

/// The ranges of a footprint that this partition holds a part of.
fn local_ranges<F: Failpoints>(footprint: &Footprint, me: PartitionId) -> impl Iterator<Item = &RangeEntry> {
    let forgotten = F::on(Failpoint::ForgetRangeLock);
    footprint.ranges().iter().filter(move |entry| entry.owner.includes(me) && !forgotten)
}

fn overlap(left: &KeyRange, right: &KeyRange) -> bool {
    left.start < right.end && right.start < left.end
}

impl RangeLocks {
    /// Whether no live range or key stands before the footprint.
    #[inline]
    pub(super) fn is_free<F: Failpoints>(&self, footprint: &Footprint, me: PartitionId) -> bool {
        if self.ranged.is_empty() {
            return local_ranges::<F>(footprint, me).next().is_none();
        }
        let ranges_free = local_ranges::<F>(footprint, me).all(|entry| {
            let mode = Mode::of(entry.access);
            let table = entry.range.start.table();
            self.is_ranged(&entry.range.start)
                && self.unkept.iter().all(|(unkept, _)| Some(*unkept) != table)
                && !self.keys_in(&entry.range).any(|(_, held)| held.conflicts(mode))
                && !self.segments_over(&entry.range).any(|segment| {
                    segment
                        .members
                        .iter()
                        .rev()
                        .any(|member| member.mode.conflicts(mode) && overlap(&member.range, &entry.range))
                })
        });
        ranges_free
            && (self.segments.is_empty()
                || footprint.keys().iter().filter(|entry| entry.owner.includes(me)).all(|entry| {
                    let mode = Mode::of(entry.access);
                    let key = footprint.key(entry);
                    !self.segment_at(key).is_some_and(|(_, segment)| {
                        segment
                            .members
                            .iter()
                            .rev()
                            .any(|member| member.mode.conflicts(mode) && member.range.contains(key))
                    })
                }))
    }

    /// Enters the footprint's ranges, and its keys in ranged tables; returns how many ends the slot has to wait for.
    pub(super) fn request<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
    ) -> u32 {
        if self.live.len() <= slot.index() {
            self.live.resize(slot.index() + 1, false);
            self.dependents.resize_with(slot.index() + 1, Vec::new);
        }
        let mut before: Vec<Slot> = Vec::new();
        for entry in local_ranges::<F>(footprint, me) {
            let mode = Mode::of(entry.access);
            let Some(table) = entry.range.start.table() else { continue };
            if self.ranged.insert(table) {
                let live = self.live.iter().enumerate().filter(|(_, live)| **live);
                self.unkept.extend(live.map(|(index, _)| (table, Slot(index as u32))));
            }
            let unkept = self.unkept.iter().filter(|(unkept, _)| *unkept == table);
            before.extend(unkept.map(|(_, slot)| *slot));
            before.extend(
                self.keys_in(&entry.range).filter(|(_, held)| held.conflicts(mode)).map(|(slot, _)| slot),
            );
            for segment in self.segments_over(&entry.range) {
                let overlaps = |range: &KeyRange| overlap(range, &entry.range);
                segment.find_before(mode, overlaps, |range| range.covers(&entry.range), &mut before);
            }
        }
        if !self.ranged.is_empty() {
            self.request_keys(slot, footprint, me, &mut before);
        }
        for entry in local_ranges::<F>(footprint, me) {
            self.insert(slot, &entry.range, Mode::of(entry.access));
        }
        before.sort_unstable();
        before.dedup();
        for earlier in &before {
            debug_assert_ne!(*earlier, slot, "a transaction is entered after its conflicts are found");
            self.dependents[earlier.index()].push(slot);
        }
        self.live[slot.index()] = true;
        before.len() as u32
    }

    fn request_keys(&mut self, slot: Slot, footprint: &Footprint, me: PartitionId, before: &mut Vec<Slot>) {
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            let (key, mode) = (footprint.key(entry), Mode::of(entry.access));
            if !self.is_ranged(key) {
                continue;
            }
            if let Some((_, segment)) = self.segment_at(key) {
                segment.find_before(mode, |range| range.contains(key), |range| range.contains(key), before);
            }
            self.keys.entry(Key::from_bytes(key)).or_default().push((slot, mode));
        }
    }

    /// Takes a finished transaction out and tells those that waited for its end.
    pub(super) fn release<F: Failpoints>(
        &mut self,
        slot: Slot,
        footprint: &Footprint,
        me: PartitionId,
        grant: &mut impl FnMut(Slot),
    ) {
        self.live[slot.index()] = false;
        self.unkept.retain(|(_, unkept)| *unkept != slot);
        for dependent in self.dependents[slot.index()].drain(..) {
            grant(dependent);
        }
        for entry in local_ranges::<F>(footprint, me) {
            self.remove(slot, &entry.range);
        }
        if self.keys.is_empty() {
            return;
        }
        for entry in footprint.keys().iter().filter(|entry| entry.owner.includes(me)) {
            let key = footprint.key(entry);
            if self.is_ranged(key)
                && let Some(holders) = self.keys.get_mut(key)
            {
                holders.retain(|(holder, _)| *holder != slot);
                if holders.is_empty() {
                    self.keys.remove(key);
                }
            }
        }
    }

    fn is_ranged(&self, key: &[u8]) -> bool {
        crate::data::key::table_of(key).is_some_and(|table| self.ranged.contains(&table))
    }

    fn keys_in(&self, range: &KeyRange) -> impl Iterator<Item = (Slot, Mode)> {
        let bounds = (Bound::Included(range.start.bytes()), Bound::Excluded(range.end.bytes()));
        self.keys.range::<[u8], _>(bounds).flat_map(|(_, holders)| holders.iter().copied())
    }

    /// The start of the last segment that begins at or before the key, if it reaches beyond the key.
    fn segment_at(&self, key: &[u8]) -> Option<(&Key, &Segment)> {
        let bounds = (Bound::Unbounded, Bound::Included(key));
        self.segments.range::<[u8], _>(bounds).next_back().filter(|(_, segment)| segment.end.bytes() > key)
    }

    fn segments_over(&self, range: &KeyRange) -> impl Iterator<Item = &Segment> {
        let bounds = (Bound::Excluded(range.start.bytes()), Bound::Excluded(range.end.bytes()));
        let within = self.segments.range::<[u8], _>(bounds).map(|(_, segment)| segment);
        let first = self.segment_at(&range.start).map(|(_, segment)| segment);
        first.into_iter().chain(within)
    }

    /// Adds a range; the segments that it touches become one.
    fn insert(&mut self, slot: Slot, range: &KeyRange, mode: Mode) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let member = Member { ticket, slot, range: range.clone(), mode };
        let up_to_start = (Bound::Unbounded, Bound::Included(range.start.bytes()));
        if let Some((_, segment)) = self.segments.range_mut::<[u8], _>(up_to_start).next_back()
            && segment.end >= range.end
        {
            segment.members.push_back(member);
            return;
        }
        let mut touched: SmallVec<[Key; 4]> = SmallVec::new();
        touched.extend(self.segment_at(&range.start).map(|(start, _)| start.clone()));
        let bounds = (Bound::Excluded(range.start.bytes()), Bound::Excluded(range.end.bytes()));
        touched.extend(self.segments.range::<[u8], _>(bounds).map(|(start, _)| start.clone()));
        let (mut start, mut end) = (range.start.clone(), range.end.clone());
        let mut members = vec![member];
        for key in touched {
            let Some(segment) = self.segments.remove(&key) else { continue };
            start = start.min(key);
            end = end.max(segment.end);
            members.extend(segment.members);
        }
        members.sort_unstable_by_key(|member| member.ticket);
        self.segments.insert(start, Segment { end, members: members.into() });
    }

    fn remove(&mut self, slot: Slot, range: &KeyRange) {
        let Some((start, _)) = self.segment_at(&range.start) else { return };
        let start = start.clone();
        if let Some(segment) = self.segments.get_mut(&start) {
            let own = |member: &Member| member.slot == slot && member.range == *range;
            if let Some(place) = segment.members.iter().position(own) {
                segment.members.remove(place);
            }
            if segment.members.is_empty() {
                self.segments.remove(&start);
            }
        }
    }
}
