//! Ranges that live transactions may still write, or have yet to read.
//!
//! A key in a range that an earlier transaction may write is *dependent* (Fan and Golab, §IV-E): whether it will have a version is known
//! only when that transaction has been computed, which is therefore its determinate functor. Who reads the key or the range waits for
//! it (ALO-114, ALO-118); and nothing later goes to the storage there before it, nor before a reader that has yet to look.

use std::collections::{BTreeMap, BTreeSet};

use super::Waiter;
use crate::data::{Key, KeyRange};
use crate::hash::FastMap;
use crate::position::Position;
use crate::procedure::footprint::Access;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// By table, then by start and end.
    tables: FastMap<u16, Groups>,
}

type Groups = BTreeMap<(Key, Key), Group>;

/// Live transactions with the same range.
#[derive(Debug, Default)]
struct Group {
    members: BTreeMap<Position, Member>,
    /// Final versions in the range that wait for earlier members, by the hashes of their keys.
    held: BTreeSet<(Position, u64)>,
}

/// What a live transaction is about to do with a range.
#[derive(Debug, Default)]
struct Member {
    /// How many of its reads of the range are not captured yet.
    reads: u32,
    /// Whether it may still write.
    writes: bool,
    waiters: Vec<Waiter>,
}

/// The number of a key's table.
pub(super) fn table_of(key: &[u8]) -> u16 {
    key.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

fn contains((start, end): &(Key, Key), key: &[u8]) -> bool {
    start.bytes() <= key && key < end.bytes()
}

fn overlap((start, end): &(Key, Key), range: &KeyRange) -> bool {
    *start < range.end && range.start < *end
}

impl Ranges {
    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether any of them overlaps a range.
    pub(super) fn touch(&self, range: &KeyRange) -> bool {
        let groups = self.tables.get(&table_of(range.start.bytes())).into_iter().flatten();
        groups.into_iter().any(|(place, _)| overlap(place, range))
    }

    /// Whether any of them contains a key.
    pub(super) fn touch_key(&self, key: &[u8]) -> bool {
        let groups = self.tables.get(&table_of(key)).into_iter().flatten();
        groups.into_iter().any(|(place, _)| contains(place, key))
    }

    /// Enters what a transaction is about to do with a range.
    pub(super) fn enter(&mut self, range: &KeyRange, position: Position, access: Access) {
        let groups = self.tables.entry(table_of(range.start.bytes())).or_default();
        let group = groups.entry((range.start.clone(), range.end.clone())).or_default();
        let member = group.members.entry(position).or_default();
        member.reads += u32::from(access.read);
        member.writes |= access.write;
    }

    /// Who may still write a key after one position and before another: the list of those that wait for it.
    pub(super) fn writer_of_key(
        &mut self,
        key: &[u8],
        after: Option<Position>,
        before: Position,
    ) -> Option<&mut Vec<Waiter>> {
        let groups = self.tables.get_mut(&table_of(key))?.iter_mut();
        let groups = groups.filter(|(place, _)| contains(place, key));
        first_member(groups.map(|(_, group)| group), before, |position, member| {
            member.writes && after.is_none_or(|after| position > after)
        })
    }

    /// Who may still write into a range before a position, likewise.
    pub(super) fn writer_of_range(&mut self, range: &KeyRange, before: Position) -> Option<&mut Vec<Waiter>> {
        let groups = self.tables.get_mut(&table_of(range.start.bytes()))?.iter_mut();
        let groups = groups.filter(|(place, _)| overlap(place, range));
        first_member(groups.map(|(_, group)| group), before, |_, member| member.writes)
    }

    /// Who has yet to read something of a range before a position, likewise.
    pub(super) fn reader_of_range(&mut self, range: &KeyRange, before: Position) -> Option<&mut Vec<Waiter>> {
        let groups = self.tables.get_mut(&table_of(range.start.bytes()))?.iter_mut();
        let groups = groups.filter(|(place, _)| overlap(place, range));
        first_member(groups.map(|(_, group)| group), before, |_, member| member.reads > 0)
    }

    /// Whether a version must not go to the storage yet. Then it is held, and comes out of [`leave`](Ranges::leave) when it may be
    /// tried again.
    pub(super) fn hold(&mut self, key: &[u8], hash: u64, position: Position) -> bool {
        let Some(groups) = self.tables.get_mut(&table_of(key)) else { return false };
        let mut groups = groups.iter_mut().filter(|(place, _)| contains(place, key)).map(|(_, group)| group);
        let holds = |group: &&mut Group| group.members.keys().next().is_some_and(|first| *first < position);
        let Some(group) = groups.find(holds) else { return false };
        group.held.insert((position, hash));
        true
    }

    /// Whether a version would be held.
    pub(super) fn would_hold(&self, key: &[u8], position: Position) -> bool {
        let groups = self.tables.get(&table_of(key)).into_iter().flatten();
        let mut groups = groups.into_iter().filter(|(place, _)| contains(place, key));
        groups.any(|(_, group)| group.members.keys().next().is_some_and(|first| *first < position))
    }

    /// A transaction has done with a range what `access` says. Appends who waited for that, and the hashes of keys whose versions need not
    /// be held any longer.
    pub(super) fn leave(
        &mut self,
        range: &KeyRange,
        position: Position,
        access: Access,
        waiters: &mut Vec<Waiter>,
        released: &mut Vec<u64>,
    ) {
        let table = table_of(range.start.bytes());
        let Some(groups) = self.tables.get_mut(&table) else { return };
        let place = (range.start.clone(), range.end.clone());
        let Some(group) = groups.get_mut(&place) else { return };
        let Some(member) = group.members.get_mut(&position) else { return };
        member.reads -= u32::from(access.read);
        member.writes &= !access.write;
        waiters.append(&mut member.waiters);
        if member.reads > 0 || member.writes {
            return;
        }
        group.members.remove(&position);
        match group.members.keys().next() {
            None => {
                released.extend(std::mem::take(&mut group.held).into_iter().map(|(_, hash)| hash));
                groups.remove(&place);
                if groups.is_empty() {
                    self.tables.remove(&table);
                }
            }
            Some(first) => {
                while let Some((position, _)) = group.held.first()
                    && position <= first
                    && let Some((_, hash)) = group.held.pop_first()
                {
                    released.push(hash);
                }
            }
        }
    }
}

/// The first member of some groups before a position that is meant.
fn first_member<'a>(
    groups: impl Iterator<Item = &'a mut Group>,
    before: Position,
    is_meant: impl Fn(Position, &Member) -> bool,
) -> Option<&'a mut Vec<Waiter>> {
    let firsts = groups.filter_map(|group| {
        group.members.range_mut(..before).find(|(position, member)| is_meant(**position, member))
    });
    firsts.min_by_key(|(position, _)| **position).map(|(_, member)| &mut member.waiters)
}
