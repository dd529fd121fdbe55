//! Load control: while most transactions wait for locks, others wait at the door.
//!
//! Two-phase locking thrashes if everybody may ask for locks: what is added then only waits, and makes others wait and be given up
//! in deadlocks. The rule here is in the spirit of the "half-and-half" of Carey, Krishnamurthi and Livny (PODS 1990): while over half
//! of those that hold or ask for locks at a partition wait, a transaction that is coordinated there and would wait too stays at the
//! door. What declares its footprint and finds free all that it needs here passes: it makes nobody wait.
//!
//! Those at the door are let in by age, so a victim of a deadlock goes before those that began after it. Nobody stays there for
//! good, whatever keeps the partition crowded, others' transactions on one row or locks that a crash has left: every
//! [`LOOK_MICROSECONDS`] the oldest comes in, and of the [`LOOKED_AT_MAX`] whose turn it is those that would not wait any more.
//!
//! Parts of transactions that others coordinate are not held up: they may hold locks elsewhere.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::message::TransactionId;
use super::{Placed, TwoPhase};
use crate::execution::Context;
use crate::failpoint::Failpoints;
use crate::position::PartitionSet;

/// How often the door is looked at though most of those inside wait, in microseconds.
const LOOK_MICROSECONDS: u64 = 20_000;

/// How many of those at the door are asked in a look whether they would wait: so few that it takes a small part of the time, however
/// many wait there.
const LOOKED_AT_MAX: usize = 500;

/// Who waits to ask for locks, by age. See the [module](self).
#[derive(Debug)]
pub(super) struct Door<T = Placed> {
    waiting: BTreeMap<TransactionId, T>,
    /// When it is looked at, if somebody waits.
    next_look: Option<u64>,
    /// The last one that was looked at.
    looked_at: Option<TransactionId>,
}

impl<T> Default for Door<T> {
    fn default() -> Door<T> {
        Door { waiting: BTreeMap::new(), next_look: None, looked_at: None }
    }
}

impl<T> Door<T> {
    /// Those that wait, by age.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&TransactionId, &T)> {
        self.waiting.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// When it is looked at, in microseconds.
    pub(super) fn next_look(&self) -> Option<u64> {
        self.next_look
    }

    fn keep(&mut self, id: TransactionId, waiting: T, now: u64) {
        self.next_look.get_or_insert(now + LOOK_MICROSECONDS);
        self.waiting.insert(id, waiting);
    }

    fn take_oldest(&mut self) -> Option<(TransactionId, T)> {
        let oldest = self.waiting.pop_first();
        self.rest_if_empty();
        oldest
    }

    fn take(&mut self, id: TransactionId) -> Option<T> {
        let taken = self.waiting.remove(&id);
        self.rest_if_empty();
        taken
    }

    fn rest_if_empty(&mut self) {
        if self.waiting.is_empty() {
            self.next_look = None;
        }
    }

    /// Those whose turn it is to be looked at: by age from the last one on, and then from the oldest again.
    fn take_turns(&mut self) -> Vec<TransactionId> {
        let (behind, before) = match self.looked_at {
            None => ((Unbounded, Unbounded), None),
            Some(last) => ((Excluded(last), Unbounded), Some((Unbounded, Included(last)))),
        };
        let again = before.into_iter().flat_map(|before| self.waiting.range(before));
        let turns = self.waiting.range(behind).chain(again).map(|(id, _)| *id);
        let turns: Vec<TransactionId> = turns.take(LOOKED_AT_MAX).collect();
        self.looked_at = turns.last().copied();
        turns
    }
}

impl<F: Failpoints> TwoPhase<F> {
    /// Whether most of those that hold or ask for locks here wait.
    pub(super) fn is_crowded(&self) -> bool {
        self.load_control && 2 * self.locks.waiting() > self.locks.live()
    }

    /// How many may come in from the door.
    pub(super) fn at_the_open_door(&self) -> usize {
        if self.is_crowded() { 0 } else { self.door.len() }
    }

    /// Takes an attempt in, unless it has to wait at the door.
    pub(super) fn take_in(&mut self, id: TransactionId, placed: Placed, context: &mut Context<'_>) {
        let waits_its_turn = self.is_crowded() || self.door.len() > 0;
        if waits_its_turn && !self.passes(&placed, context) {
            self.counters.held_at_the_door += 1;
            self.door.keep(id, placed, self.now);
            return;
        }
        self.let_in(id, placed, context);
    }

    /// Whether a transaction is known to get all that it needs here at once.
    fn passes(&self, placed: &Placed, context: &Context<'_>) -> bool {
        !placed.grows && self.locks.is_free::<F>(&placed.call.footprint, context.me)
    }

    /// Lets in who is not to stay at the door longer, if it is time to look.
    pub(super) fn look_at_the_door(&mut self, context: &mut Context<'_>) {
        if self.door.next_look.is_none_or(|at| at > self.now) {
            return;
        }
        self.door.next_look = Some(self.now + LOOK_MICROSECONDS);
        if let Some((id, placed)) = self.door.take_oldest() {
            self.let_in(id, placed, context);
        }
        for id in self.door.take_turns() {
            let passes = self.door.waiting.get(&id).is_some_and(|placed| self.passes(placed, context));
            if passes && let Some(placed) = self.door.take(id) {
                self.let_in(id, placed, context);
            }
        }
    }

    /// Asks for the first locks of a transaction.
    fn let_in(&mut self, id: TransactionId, placed: Placed, context: &mut Context<'_>) {
        let Placed { statement, call, grows } = placed;
        let alone = call.footprint.participants(context.me) == PartitionSet::one(context.me);
        let slot = self.enter(id, statement, call, grows);
        match alone {
            true => self.request(slot, context),
            false => self.coordinate(slot, context),
        }
    }

    /// Lets the oldest one at the door in; whether one may come in.
    pub(super) fn admit(&mut self, context: &mut Context<'_>) -> bool {
        if self.is_crowded() {
            return false;
        }
        let Some((id, placed)) = self.door.take_oldest() else { return false };
        self.let_in(id, placed, context);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::PartitionId;

    fn id(started: u64) -> TransactionId {
        TransactionId { started, coordinator: PartitionId(0), life: 0, attempt: 0 }
    }

    #[test]
    fn a_look_is_bounded_and_everybody_has_a_turn() {
        let waiting = 2 * LOOKED_AT_MAX as u64 + 7;
        let mut door = Door::default();
        (0..waiting).for_each(|started| door.keep(id(started), (), 0));
        let rounds: Vec<Vec<TransactionId>> = (0..3).map(|_| door.take_turns()).collect();
        assert!(rounds.iter().all(|round| round.len() == LOOKED_AT_MAX));
        let twice = (0..waiting).chain(0..waiting).map(id);
        assert_eq!(rounds.concat(), twice.take(3 * LOOKED_AT_MAX).collect::<Vec<_>>(), "by age, and again");
    }

    #[test]
    fn where_few_wait_each_look_is_at_all_of_them() {
        let mut door = Door::default();
        (0..3).for_each(|started| door.keep(id(started), (), 0));
        assert_eq!(door.take_turns(), [id(0), id(1), id(2)]);
        assert_eq!(door.take_turns(), [id(0), id(1), id(2)]);
    }

    #[test]
    fn who_comes_and_goes_between_looks_takes_nobodys_turn() {
        let mut door = Door::default();
        (10..10 + LOOKED_AT_MAX as u64 + 2).for_each(|started| door.keep(id(started), (), 0));
        let first = door.take_turns();
        door.take(first[LOOKED_AT_MAX - 1]);
        door.keep(id(1), (), 0);
        let next = LOOKED_AT_MAX as u64 + 10;
        assert_eq!(door.take_turns()[..4], [id(next), id(next + 1), id(1), id(10)]);
    }

    #[test]
    fn nobody_looks_where_nobody_waits() {
        let mut door = Door::default();
        door.keep(id(1), (), 5);
        door.keep(id(2), (), 9);
        assert_eq!(door.next_look(), Some(5 + LOOK_MICROSECONDS));
        door.take_oldest();
        assert_eq!(door.next_look(), Some(5 + LOOK_MICROSECONDS));
        door.take(id(2));
        assert_eq!(door.next_look(), None);
    }
}
