//! Nodes shed calls for the sake of one that lags (DET-42, DET-43), as those of ordered engines do: see
//! [`throttle`](crate::sequencer::throttle).
//!
//! There are no epochs, so a round ends every [`ROUND_MICROSECONDS`] as long as calls wait here or are shed. At its end a node tells
//! the others how it keeps up, if that has changed.
//!
//! A call is shed when it comes, before it locks anything; one whose footprint is found as it runs is not, since it may need others.
//!
//! A share that is adjusted step by step comes too late for a node that gets slow while many calls need it: all that clients have
//! outstanding waits for that node then, with locks, and the others have nothing to do. So a node for whose sake calls are shed tells
//! also how much *room* it has for each of the others: how many calls it executes in the time for which those of clients may wait, see
//! [`Throttle::ahead`], divided among them. No other has more calls under way for which it needs that node, and each
//! refuses those beyond when their turn has come.

use super::TwoPhaseNode;
use crate::error::Error;
use crate::failpoint::Failpoints;
use crate::hash::FastMap;
use crate::limits::EPOCH_MICROSECONDS_DEFAULT;
use crate::message::{Message, RequestId};
use crate::node::Outbox;
use crate::position::{PartitionId, PartitionSet};
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
    told: (Load, u64),
    windows: Windows,
}

/// How much of the room of other partitions is taken by calls that were begun here.
#[derive(Debug)]
struct Windows {
    me: PartitionId,
    /// By partition: its room, and how many need it.
    by_partition: Vec<(u64, u64)>,
    /// Whom else the calls under way need.
    under_way: FastMap<RequestId, PartitionSet>,
}

/// Room of partitions that do not lag, as far as is known.
const UNLIMITED: u64 = u64::MAX;

impl Windows {
    fn new(me: PartitionId, partitions: u16) -> Windows {
        let by_partition = vec![(UNLIMITED, 0); usize::from(partitions)];
        Windows { me, by_partition, under_way: FastMap::default() }
    }

    fn heard(&mut self, from: PartitionId, room: u64) {
        if let Some((known, _)) = self.by_partition.get_mut(from.index()) {
            *known = room;
        }
    }

    /// Takes room for a call with these participants, unless one of them has none: that one.
    fn begin(&mut self, request: RequestId, mut participants: PartitionSet) -> Result<(), PartitionId> {
        participants.remove(self.me);
        let is_full = |partition: &PartitionId| {
            self.by_partition.get(partition.index()).is_some_and(|(room, taken)| taken >= room)
        };
        if let Some(full) = participants.iter().find(is_full) {
            return Err(full);
        }
        if !participants.is_empty() && self.under_way.insert(request, participants).is_none() {
            self.count(participants, |taken| taken + 1);
        }
        Ok(())
    }

    /// A call has ended, if it took any room.
    fn end(&mut self, request: RequestId) {
        if let Some(participants) = self.under_way.remove(&request) {
            self.count(participants, |taken| taken - 1);
        }
    }

    fn count(&mut self, participants: PartitionSet, change: fn(u64) -> u64) {
        for partition in participants.iter() {
            if let Some((_, taken)) = self.by_partition.get_mut(partition.index()) {
                *taken = change(*taken);
            }
        }
    }
}

impl Throttling {
    pub(super) fn new(me: PartitionId, partitions: u16, is_on: bool) -> Throttling {
        let throttle = Throttle::new(me, partitions, is_on);
        let told = (Load::default(), UNLIMITED);
        Throttling { throttle, round: 0, ends_at: None, told, windows: Windows::new(me, partitions) }
    }

    /// When a round ends, in microseconds.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.ends_at
    }

    /// Notes how another partition keeps up. Where it is off nothing is shed for others either: there are no rounds.
    pub(super) fn heard(&mut self, from: PartitionId, load: Load, room: u64) {
        if self.throttle.is_on() {
            self.throttle.heard(from, load);
            self.windows.heard(from, room);
        }
    }

    /// A call with these participants is about to begin; why it must not.
    pub(super) fn begin(&mut self, request: RequestId, participants: PartitionSet) -> Result<(), Error> {
        if !self.throttle.is_on() {
            return Ok(());
        }
        self.windows.begin(request, participants).map_err(|full| {
            Error::Busy(format!(
                "{full} lags behind the other partitions, and has as many calls of this one under way as it executes in a short time"
            ))
        })
    }

    /// A call has ended.
    pub(super) fn end(&mut self, request: RequestId) {
        self.windows.end(request);
    }

    /// How many calls each of the others may have under way here, if this partition lags and executes so many in the time for which calls
    /// may wait.
    fn room(&self, fits: u64) -> u64 {
        let others = self.windows.by_partition.len() as u64 - 1;
        if self.throttle.load().level > 0 { (fits / others.max(1)).max(1) } else { UNLIMITED }
    }

    /// Ends a round if it is over, with this backlog, where so many calls are executed in the time for which they may wait; what the
    /// others are to be told.
    fn end_round(&mut self, now: u64, backlog: u64, fits: u64) -> Option<(Load, u64)> {
        if !self.throttle.is_on() {
            return None;
        }
        let is_over = self.ends_at.is_some_and(|at| at <= now);
        if is_over {
            self.round += 1;
            self.throttle.adjust(backlog);
        }
        let (load, room) = (self.throttle.load(), self.room(fits));
        let changed = is_over && std::mem::replace(&mut self.told, (load, room)) != (load, room);
        let goes_on = backlog > 0 || load.backlog > 0 || self.throttle.is_shedding();
        if is_over || self.ends_at.is_none() {
            self.ends_at = goes_on.then_some(now + ROUND_MICROSECONDS);
        }
        changed.then_some(self.told)
    }
}

impl<F: Failpoints> TwoPhaseNode<F> {
    /// Ends a round if it is over.
    pub(super) fn throttle(&mut self, outbox: &mut Outbox) {
        let ahead = self.throttling.throttle.ahead().unwrap_or_default();
        let (backlog, fits) = (self.backlog(), self.pace.fits(ahead) as u64);
        if let Some((load, room)) = self.throttling.end_round(self.now, backlog, fits) {
            self.tell_others(&Message::Load { load, room }, outbox);
        }
    }

    /// What was said by or to another partition may be lost: that it sheds nothing any more, too.
    pub(super) fn reset_load(&mut self, peer: PartitionId, outbox: &mut Outbox) {
        self.throttling.heard(peer, Load::default(), UNLIMITED);
        if self.throttling.throttle.is_on() {
            let (load, room) = self.throttling.told;
            self.send(peer, Message::Load { load, room }, outbox);
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
    use crate::message::ClientId;

    const OTHER: PartitionId = PartitionId(2);

    /// Ends rounds in which nothing waits until there are no more; when the last one did, and how often the others were told.
    fn rest(throttling: &mut Throttling) -> (u64, u32) {
        let (mut now, mut told) = (0, 0);
        while let Some(at) = throttling.deadline() {
            now = at;
            told += u32::from(throttling.end_round(now, 0, 9).is_some());
        }
        (now, told)
    }

    /// Rounds go on as long as something waits or is shed, and the others hear of what has changed.
    #[test]
    fn rounds_end_with_the_backlog() {
        let mut lags = Throttling::new(PartitionId(1), 3, true);
        assert_eq!(lags.end_round(0, 0, 9), None);
        assert_eq!(lags.deadline(), None, "nothing waits");
        assert_eq!(lags.end_round(5, 100_000, 9), None);
        assert_eq!(lags.deadline(), Some(5 + ROUND_MICROSECONDS));
        assert_eq!(lags.end_round(6, 100_000, 9), None, "the round is not over");
        let end = 5 + ROUND_MICROSECONDS;
        let (first, room) = lags.end_round(end, 100_000, 9).unwrap();
        assert!(
            first.backlog == 100_000 && first.level > 0 && room == 4,
            "{first:?}, {room} for each of two"
        );
        let (second, room) = lags.end_round(end + ROUND_MICROSECONDS, 100_000, 1).unwrap();
        assert!(second.level > first.level && room == 1, "{second:?}, {room}");
        let (at, told) = rest(&mut lags);
        assert!(told > 1 && at > end + 2 * ROUND_MICROSECONDS, "{told} times, until {at}");
        assert_eq!(lags.told, (Load::default(), UNLIMITED), "who does not lag has room");
    }

    /// Else the last calls that another partition does not want could be refused for ever.
    #[test]
    fn rounds_go_on_while_calls_are_shed_for_others() {
        let mut waits = Throttling::new(PartitionId(1), 3, true);
        waits.heard(OTHER, Load { backlog: 9_000, level: 1_200 }, UNLIMITED);
        assert_eq!(waits.end_round(7, 0, 9), None);
        for round in 1..100 {
            assert_eq!(waits.deadline(), Some(7 + round * ROUND_MICROSECONDS));
            assert_eq!(
                waits.end_round(7 + round * ROUND_MICROSECONDS, 0, 9),
                None,
                "nothing has changed here"
            );
            assert_eq!(waits.round, round);
        }
        waits.heard(OTHER, Load::default(), UNLIMITED);
        rest(&mut waits);
    }

    #[test]
    fn nothing_is_told_or_shed_when_it_is_off_or_there_is_nobody_else() {
        for mut off in [Throttling::new(PartitionId(0), 3, false), Throttling::new(PartitionId(0), 1, true)] {
            off.heard(PartitionId(2), Load { backlog: 9_000, level: 1_200 }, 1);
            assert!((0..99).all(|round| off.end_round(round * ROUND_MICROSECONDS, 100_000, 9).is_none()));
            assert_eq!((off.deadline(), off.throttle.is_shedding()), (None, false));
            let both = PartitionSet::all(2);
            assert!((0..9).all(|sequence| off.begin(request(sequence), both).is_ok()));
        }
    }

    fn request(sequence: u64) -> RequestId {
        RequestId { client: ClientId { home: PartitionId(1), number: 7 }, sequence }
    }

    #[test]
    fn no_more_calls_need_a_partition_than_it_has_room_for() {
        let mut windows = Windows::new(PartitionId(1), 3);
        let (alone, all) = (PartitionSet::one(PartitionId(1)), PartitionSet::all(3));
        let mut with_other = alone;
        with_other.insert(OTHER);
        assert!((0..9).all(|sequence| windows.begin(request(sequence), with_other).is_ok()), "it told none");
        windows.heard(OTHER, 7);
        assert_eq!(windows.begin(request(9), all), Err(OTHER), "those under way count");
        assert_eq!(windows.begin(request(9), alone), Ok(()));
        (0..3).for_each(|sequence| windows.end(request(sequence)));
        windows.end(request(0));
        windows.end(request(9));
        assert_eq!(windows.begin(request(10), all), Ok(()));
        assert_eq!(windows.begin(request(11), with_other), Err(OTHER));
        windows.heard(OTHER, UNLIMITED);
        assert_eq!(windows.begin(request(11), with_other), Ok(()), "it does not lag any more");
        (3..12).for_each(|sequence| windows.end(request(sequence)));
        assert!(windows.by_partition.iter().all(|(_, taken)| *taken == 0) && windows.under_way.is_empty());
    }
}
