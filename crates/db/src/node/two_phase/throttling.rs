//! A node that lags sheds calls of its own (DET-42), as the nodes of ordered engines do: see [`throttle`](crate::sequencer::throttle).
//!
//! There are no epochs, so a round ends every [`ROUND_MICROSECONDS`] as long as calls wait here or are shed. At its end a node tells
//! the others how many wait, if that has changed.
//!
//! A call is shed when it comes, before it locks anything; one whose footprint is found as it runs is not, since it may need others.

use super::TwoPhaseNode;
use crate::failpoint::Failpoints;
use crate::limits::EPOCH_MICROSECONDS_DEFAULT;
use crate::message::{Message, RequestId};
use crate::node::Outbox;
use crate::position::{PartitionId, PartitionSet};
use crate::procedure::{Declared, ProcedureId};
use crate::sequencer::Throttle;

/// The length of a round, in microseconds: the longest epoch of the engines that have some.
const ROUND_MICROSECONDS: u64 = EPOCH_MICROSECONDS_DEFAULT;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Throttling {
    throttle: Throttle,
    is_on: bool,
    /// The number of the round.
    round: u64,
    /// When it ends, in microseconds; `None` while nothing waits.
    ends_at: Option<u64>,
    /// How many calls waited when the others were told last.
    told: u64,
}

impl Throttling {
    pub(super) fn new(me: PartitionId, partitions: u16, is_on: bool) -> Throttling {
        let is_on = is_on && partitions > 1;
        let throttle = Throttle::new(me, partitions, is_on);
        Throttling { throttle, is_on, round: 0, ends_at: None, told: 0 }
    }

    /// When a round ends, in microseconds.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.ends_at
    }

    /// Notes how many calls wait at another partition.
    pub(super) fn heard(&mut self, from: PartitionId, waiting: u64) {
        self.throttle.heard(from, waiting);
    }

    /// Ends a round if it is over, when so many calls wait here; whether the others are to be told.
    fn end_round(&mut self, now: u64, waiting: u64) -> bool {
        if !self.is_on {
            return false;
        }
        let is_over = self.ends_at.is_some_and(|at| at <= now);
        if is_over {
            self.round += 1;
            self.throttle.adjust(waiting);
        }
        let changed = is_over && std::mem::replace(&mut self.told, waiting) != waiting;
        let goes_on = waiting > 0 || self.told > 0 || self.throttle.share() > 0;
        if is_over || self.ends_at.is_none() {
            self.ends_at = goes_on.then_some(now + ROUND_MICROSECONDS);
        }
        changed
    }
}

impl<F: Failpoints> TwoPhaseNode<F> {
    /// Ends a round if it is over.
    pub(super) fn throttle(&mut self, outbox: &mut Outbox) {
        let waiting = self.waiting.len() as u64;
        if self.throttling.end_round(self.now, waiting) {
            self.tell_others(&Message::Backlog(waiting), outbox);
        }
    }

    /// Whether a call of a client is refused since this node lags: one that it would execute alone.
    pub(super) fn sheds(&mut self, request: RequestId, procedure: ProcedureId, arguments: &[u8]) -> bool {
        let Throttling { throttle, round, .. } = &self.throttling;
        if !throttle.sheds(request, *round) {
            return false;
        }
        let mut footprint = self.effects.footprints.pop().unwrap_or_default();
        let (schema, procedures) = (&self.catalog.schema, &self.catalog.procedures);
        let declared = procedures.declare(procedure, arguments, schema, self.partitions, &mut footprint);
        let alone = footprint.participants(self.me) == PartitionSet::one(self.me);
        self.effects.footprints.push(footprint);
        matches!(declared, Ok(Declared::Complete)) && alone
    }

    /// What a client hears whose call is shed.
    pub(super) fn refusal(&self) -> crate::error::Error {
        self.throttling.throttle.refusal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds go on as long as something waits or is shed, and the others hear of what has changed.
    #[test]
    fn rounds_end_with_the_backlog() {
        let mut lags = Throttling::new(PartitionId(1), 3, true);
        assert!(!lags.end_round(0, 0));
        assert_eq!(lags.deadline(), None, "nothing waits");
        assert!(!lags.end_round(5, 10_000));
        assert_eq!(lags.deadline(), Some(5 + ROUND_MICROSECONDS));
        assert!(!lags.end_round(6, 10_000), "the round is not over");
        let end = 5 + ROUND_MICROSECONDS;
        assert!(lags.end_round(end, 10_000) && lags.throttle.share() > 0);
        assert!(!lags.end_round(end + ROUND_MICROSECONDS, 10_000), "they know that");
        let risen = lags.throttle.share();
        let mut now = end + ROUND_MICROSECONDS;
        let mut told = 0;
        while let Some(at) = lags.deadline() {
            now = at;
            told += u32::from(lags.end_round(now, 0));
        }
        assert_eq!((told, lags.throttle.share()), (1, 0), "from {risen}");
        assert!(now > end + 2 * ROUND_MICROSECONDS);
    }

    #[test]
    fn nothing_is_told_or_shed_when_it_is_off_or_there_is_nobody_else() {
        for mut off in [Throttling::new(PartitionId(0), 3, false), Throttling::new(PartitionId(0), 1, true)] {
            assert!((0..99).all(|round| !off.end_round(round * ROUND_MICROSECONDS, 10_000)));
            assert_eq!((off.deadline(), off.throttle.share()), (None, 0));
        }
    }
}
