//! The transactions that have been delivered to an engine and are not over there, and which of them is the first.

use std::collections::VecDeque;

use crate::hash::FastMap;
use crate::position::Position;

/// Number of a live transaction in its engine's table. It is another one's when that is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Live transactions, each with what its engine notes of it: a `T`, which the engine may take out meanwhile.
#[derive(Debug)]
pub(super) struct LiveTable<T> {
    /// `None` where a slot is free, or what it had is taken out.
    slots: Vec<Option<T>>,
    free: Vec<Slot>,
    by_position: FastMap<Position, Slot>,
    /// Positions in order. The first is live; those after it may be over.
    order: VecDeque<Position>,
}

impl<T> Default for LiveTable<T> {
    fn default() -> LiveTable<T> {
        LiveTable {
            slots: Vec::new(),
            free: Vec::new(),
            by_position: FastMap::default(),
            order: VecDeque::new(),
        }
    }
}

impl<T> LiveTable<T> {
    /// A transaction begins, after all that have begun before. Its slot has nothing yet.
    pub(super) fn enter(&mut self, position: Position) -> Slot {
        let slot = self.free.pop().unwrap_or(Slot(self.slots.len() as u32));
        if slot.index() == self.slots.len() {
            self.slots.push(None);
        }
        self.by_position.insert(position, slot);
        self.order.push_back(position);
        slot
    }

    /// A transaction is over.
    pub(super) fn leave(&mut self, slot: Slot, position: Position) {
        self.slots[slot.index()] = None;
        self.by_position.remove(&position);
        self.free.push(slot);
        if self.order.front() == Some(&position) {
            while self.order.front().is_some_and(|position| !self.by_position.contains_key(position)) {
                self.order.pop_front();
            }
        }
    }

    pub(super) fn set(&mut self, slot: Slot, live: T) {
        self.slots[slot.index()] = Some(live);
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        self.slots[slot.index()].as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.slots[slot.index()].as_mut()
    }

    pub(super) fn take(&mut self, slot: Slot) -> Option<T> {
        self.slots[slot.index()].take()
    }

    /// The slot of the transaction at a position, if that is live.
    pub(super) fn find(&self, position: Position) -> Option<Slot> {
        self.by_position.get(&position).copied()
    }

    /// How many are live.
    pub(super) fn len(&self) -> usize {
        self.by_position.len()
    }

    /// The position of the first that is live.
    pub(super) fn oldest(&self) -> Option<Position> {
        self.order.front().copied()
    }

    /// What is noted of all, in the order of their positions.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.order.iter().filter_map(|position| self.slots[self.find(*position)?.index()].as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Epoch, PartitionId};

    #[test]
    fn the_oldest_is_known_in_whatever_order_they_end() {
        let at = |index| Position { epoch: Epoch(1), origin: PartitionId(0), index };
        let mut table = LiveTable::default();
        let slots = [1, 2, 3].map(|index| {
            let slot = table.enter(at(index));
            table.set(slot, index);
            slot
        });
        table.leave(slots[1], at(2));
        assert_eq!((table.len(), table.oldest(), table.find(at(2))), (2, Some(at(1)), None));
        // Its slot is used again, and what was there is gone.
        assert_eq!((table.enter(at(4)), table.get(slots[1])), (slots[1], None));
        assert_eq!(table.take(slots[0]), Some(1));
        table.leave(slots[0], at(1));
        assert_eq!((table.oldest(), table.iter().copied().collect::<Vec<_>>()), (Some(at(3)), vec![3]));
        table.leave(slots[2], at(3));
        table.leave(slots[1], at(4));
        assert_eq!((table.len(), table.oldest()), (0, None));
    }
}
