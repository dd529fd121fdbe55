//! Nodes shed calls for the sake of one that lags (DET-42, DET-43), as those of ordered engines do: see
//! [`throttle`](crate::sequencer::throttle).
//!
//! There are no epochs, so a round ends every [`ROUND_MICROSECONDS`] as long as calls wait here or are shed. At its end a node tells
//! the others how it keeps up, if that has changed.
//!
//! A call is shed when it comes, before it locks anything; one whose footprint is found as it runs is not, since it may need others.

use super::TwoPhaseNode;
use crate::error::Error;
use crate::failpoint::Failpoints;
use crate::limits::EPOCH_MICROSECONDS_DEFAULT;
use crate::message::{Message, RequestId};
use crate::node::Outbox;
use crate::position::PartitionId;
use crate::procedure::{Declared, ProcedureId};
use crate::sequencer::{Load, Throttle};

/// The length of a round, in microseconds: the longest epoch of the engines that have some.
const ROUND_MICROSECONDS: u64 = EPOCH_MICROSECONDS_DEFAULT;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Throttling {
    throttle: Throttle,
    /// The number of the round.
    round: u64,
    /// When it ends, in microseconds; `None` while nothing waits.
    ends_at: Option<u64>,
    /// What the others were told last.
    told: Load,
}

impl Throttling {
    pub(super) fn new(me: PartitionId, partitions: u16, is_on: bool) -> Throttling {
        let throttle = Throttle::new(me, partitions, is_on);
        Throttling { throttle, round: 0, ends_at: None, told: Load::default() }
    }

    /// When a round ends, in microseconds.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.ends_at
    }

    /// Notes how another partition keeps up. Where it is off nothing is shed for others either: there are no rounds.
    pub(super) fn heard(&mut self, from: PartitionId, load: Load) {
        if self.throttle.is_on() {
            self.throttle.heard(from, load);
        }
    }

    /// Ends a round if it is over, with this backlog; what the others are to be told.
    fn end_round(&mut self, now: u64, backlog: u64) -> Option<Load> {
        if !self.throttle.is_on() {
            return None;
        }
        let is_over = self.ends_at.is_some_and(|at| at <= now);
        if is_over {
            self.round += 1;
            self.throttle.adjust(backlog);
        }
        let load = self.throttle.load();
        let changed = is_over && std::mem::replace(&mut self.told, load) != load;
        let goes_on = backlog > 0 || load.backlog > 0 || self.throttle.is_shedding();
        if is_over || self.ends_at.is_none() {
            self.ends_at = goes_on.then_some(now + ROUND_MICROSECONDS);
        }
        changed.then_some(load)
    }
}

impl<F: Failpoints> TwoPhaseNode<F> {
    /// Ends a round if it is over.
    pub(super) fn throttle(&mut self, outbox: &mut Outbox) {
        let backlog = self.backlog();
        if let Some(load) = self.throttling.end_round(self.now, backlog) {
            self.tell_others(&Message::Load(load), outbox);
        }
    }

    /// What was said by or to another partition may be lost: that it sheds nothing any more, too.
    pub(super) fn reset_load(&mut self, peer: PartitionId, outbox: &mut Outbox) {
        self.throttling.heard(peer, Load::default());
        if self.throttling.throttle.is_on() {
            self.send(peer, Message::Load(self.throttling.told), outbox);
        }
    }

    /// Why a call of a client is refused, if one of its participants lags.
    pub(super) fn refusal(
        &mut self,
        request: RequestId,
        procedure: ProcedureId,
        arguments: &[u8],
    ) -> Option<Error> {
        if !self.throttling.throttle.is_shedding() {
            return None;
        }
        let mut footprint = self.effects.footprints.pop().unwrap_or_default();
        let (schema, procedures) = (&self.catalog.schema, &self.catalog.procedures);
        let declared = procedures.declare(procedure, arguments, schema, self.partitions, &mut footprint);
        let participants = footprint.participants(self.me);
        self.effects.footprints.push(footprint);
        match declared {
            Ok(Declared::Complete) => {
                let Throttling { throttle, round, .. } = &self.throttling;
                throttle.refusal(request, participants, *round)
            }
            Ok(Declared::Unknown) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: PartitionId = PartitionId(2);

    /// Ends rounds in which nothing waits until there are no more; when the last one did, and how often the others were told.
    fn rest(throttling: &mut Throttling) -> (u64, u32) {
        let (mut now, mut told) = (0, 0);
        while let Some(at) = throttling.deadline() {
            now = at;
            told += u32::from(throttling.end_round(now, 0).is_some());
        }
        (now, told)
    }

    /// Rounds go on as long as something waits or is shed, and the others hear of what has changed.
    #[test]
    fn rounds_end_with_the_backlog() {
        let mut lags = Throttling::new(PartitionId(1), 3, true);
        assert_eq!(lags.end_round(0, 0), None);
        assert_eq!(lags.deadline(), None, "nothing waits");
        assert_eq!(lags.end_round(5, 100_000), None);
        assert_eq!(lags.deadline(), Some(5 + ROUND_MICROSECONDS));
        assert_eq!(lags.end_round(6, 100_000), None, "the round is not over");
        let end = 5 + ROUND_MICROSECONDS;
        let first = lags.end_round(end, 100_000).unwrap();
        assert!(first.backlog == 100_000 && first.level > 0, "{first:?}");
        let second = lags.end_round(end + ROUND_MICROSECONDS, 100_000).unwrap();
        assert!(second.level > first.level, "{second:?}");
        let (at, told) = rest(&mut lags);
        assert!(told > 1 && at > end + 2 * ROUND_MICROSECONDS, "{told} times, until {at}");
        assert_eq!(lags.told, Load::default());
    }

    /// Else the last calls that another partition does not want could be refused for ever.
    #[test]
    fn rounds_go_on_while_calls_are_shed_for_others() {
        let mut waits = Throttling::new(PartitionId(1), 3, true);
        waits.heard(OTHER, Load { backlog: 9_000, level: 1_200 });
        assert_eq!(waits.end_round(7, 0), None);
        for round in 1..100 {
            assert_eq!(waits.deadline(), Some(7 + round * ROUND_MICROSECONDS));
            assert_eq!(waits.end_round(7 + round * ROUND_MICROSECONDS, 0), None, "nothing has changed here");
            assert_eq!(waits.round, round);
        }
        waits.heard(OTHER, Load::default());
        rest(&mut waits);
    }

    #[test]
    fn nothing_is_told_or_shed_when_it_is_off_or_there_is_nobody_else() {
        for mut off in [Throttling::new(PartitionId(0), 3, false), Throttling::new(PartitionId(0), 1, true)] {
            off.heard(PartitionId(0), Load { backlog: 9_000, level: 1_200 });
            assert!((0..99).all(|round| off.end_round(round * ROUND_MICROSECONDS, 100_000).is_none()));
            assert_eq!((off.deadline(), off.throttle.is_shedding()), (None, false));
        }
    }
}
