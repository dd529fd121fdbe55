//! Load control: while most transactions wait for locks, others wait at the door.
//!
//! Two-phase locking thrashes if everybody may ask for locks: what is added then only waits, and makes others wait and be given up
//! in deadlocks. The rule here is in the spirit of the "half-and-half" of Carey, Krishnamurthi and Livny (PODS 1990): while over half
//! of those that hold or ask for locks at a partition wait, a transaction that is coordinated there and would wait too stays at the
//! door. What declares its footprint and finds free all that it needs here passes: it makes nobody wait.
//!
//! Those at the door are let in by age, so a victim of a deadlock goes before those that began after it. Nobody stays there for
//! good, whatever keeps the partition crowded, others' transactions on one row or locks that a crash has left: every
//! [`LOOK_MICROSECONDS`] the oldest comes in, and whoever would not wait any more.
//!
//! Parts of transactions that others coordinate are not held up: they may hold locks elsewhere.

use super::message::TransactionId;
use super::{Placed, TwoPhase};
use crate::execution::Context;
use crate::failpoint::Failpoints;
use crate::position::PartitionSet;

/// How often the door is looked at though most of those inside wait, in microseconds: so rarely that a thousand who wait there take a
/// small part of the time.
pub const LOOK_MICROSECONDS: u64 = 20_000;

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
        let waits_its_turn = self.is_crowded() || !self.door.is_empty();
        if waits_its_turn && !self.passes(&placed, context) {
            self.counters.held_at_the_door += 1;
            self.next_look.get_or_insert(self.now + LOOK_MICROSECONDS);
            self.door.insert(id, placed);
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
        if self.next_look.is_none_or(|at| at > self.now) {
            return;
        }
        let mut oldest = true;
        for (id, placed) in std::mem::take(&mut self.door) {
            if std::mem::take(&mut oldest) || self.passes(&placed, context) {
                self.let_in(id, placed, context);
            } else {
                self.door.insert(id, placed);
            }
        }
        self.next_look = (!self.door.is_empty()).then_some(self.now + LOOK_MICROSECONDS);
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
        let Some((id, placed)) = self.door.pop_first() else { return false };
        if self.door.is_empty() {
            self.next_look = None;
        }
        self.let_in(id, placed, context);
        true
    }
}
