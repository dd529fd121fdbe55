//! The sequencing layer (Calvin §3.1): from requests to one global order.
//!
//! Every partition has a [`Sequencer`]: it collects transactions into the batch of its open epoch, closes the epoch, and
//! gives every partition its part of the batch. Every partition has a [`Merger`]: it interleaves the parts that it
//! gets from all sequencers, whole batches in the order of their origins, into its view of the one global order. [`Sessions`]
//! make sure that each request enters the order once.
//!
//! # When an epoch closes
//!
//! The paper closes an epoch every 10 ms. Here an epoch closes (`Sequencer::close_due`)
//! 1. at once, when work waits and all earlier epochs have been delivered here, so that light load does not wait;
//! 2. when work waits and the epoch has lasted 10 ms, even if earlier ones are on their way (CAL-20, CAL-39);
//! 3. when a peer has closed this epoch or a later one, so that epochs advance in step (CAL-21), empty batches included
//!    (CAL-25). It says so at once, before its batch is logged;
//! 4. when calls are [shed](throttle), or somebody [waits](Sequencer::want) for an epoch to be agreed on, and it has lasted 10 ms, also
//!    without work: only epochs bring that to an end.
//!
//! Rules 1, 2 and 4 rest while execution has enough delivered work to be busy: then the epoch grows. They rest, too, while so many of
//! this node's calls wait for execution that no more [may be ordered](Sequencer::make_room); by rule 3 it closes epochs without any
//! then. While nobody has work there are no epochs, once no calls are shed any more. Under load, epochs grow by themselves: the next one
//! closes when the one before has been delivered.
//!
//! That is so with [`EpochPolicy::Adaptive`]. With the others an [`epoch_manager`] says when epochs begin and end, and an
//! [`authority`] what a partition may start in between. An epoch closes then at the end of its validity period, or by rule 3 where
//! the partition has no authorisation for it.

pub mod authority;
pub mod epoch_manager;
pub mod lineage;
pub mod merger;
pub mod policy;
pub mod sessions;
pub mod throttle;

use std::collections::VecDeque;

use crate::limits::Limits;
use crate::message::Ordered;
use crate::position::{Epoch, PartitionId, PartitionSet};
use crate::procedure::Footprint;
use authority::{EpochOrder, EpochReport, Refusal};

pub use authority::Authority;
pub use epoch_manager::EpochManager;
pub use lineage::{Basis, Lineage};
pub use merger::Merger;
pub use policy::{EpochOptions, EpochPolicy};
pub use sessions::Sessions;
pub use throttle::{Load, Throttle};

/// A transaction that waits for an epoch.
#[derive(Debug)]
pub struct Waiting {
    /// The transaction.
    pub ordered: Ordered,
    /// Its footprint, already placed; execution at this partition uses it again. `None` for work without one.
    pub footprint: Option<Box<Footprint>>,
    /// The partitions that take part.
    pub participants: PartitionSet,
}

/// A closed batch, cut into the parts of its recipients.
#[derive(Debug)]
pub struct ClosedBatch {
    /// The epoch.
    pub epoch: Epoch,
    /// For each partition its transactions, with their index in the full batch. The own part is empty here.
    pub parts: Vec<Vec<(u32, Ordered)>>,
    /// This partition's own part.
    pub own: Vec<(u32, Ordered, Option<Box<Footprint>>)>,
    /// What each transaction is, by index: for sessions, and for the log.
    pub whole: Vec<Ordered>,
    /// How many waiting transactions it was closed without because execution here has [no room](Sequencer::make_room) for more.
    pub held_back: u32,
}

impl ClosedBatch {
    /// An empty batch.
    pub fn new(epoch: Epoch, partitions: u16) -> ClosedBatch {
        let parts = vec![Vec::new(); usize::from(partitions)];
        ClosedBatch { epoch, parts, own: Vec::new(), whole: Vec::new(), held_back: 0 }
    }

    /// Adds a transaction: to the parts of its participants, of which `me` is this partition.
    pub fn add(&mut self, me: PartitionId, waiting: Waiting) {
        let Waiting { ordered, footprint, participants } = waiting;
        let index = self.whole.len() as u32;
        let mut others = participants;
        others.remove(me);
        for partition in others.iter() {
            self.parts[partition.index()].push((index, ordered.clone()));
        }
        if participants.contains(me) {
            self.own.push((index, ordered.clone(), footprint));
        }
        self.whole.push(ordered);
    }
}

/// One partition's sequencer.
#[derive(Debug)]
pub struct Sequencer {
    me: PartitionId,
    partitions: u16,
    epoch_microseconds: u64,
    limits: Limits,
    /// Transactions for the next batches, in order of arrival.
    waiting: VecDeque<Waiting>,
    /// Bytes of their arguments and footprints.
    waiting_bytes: usize,
    /// The first so many of them are started: they have their places in the batch of the open epoch. With their bytes.
    started: usize,
    started_bytes: usize,
    /// How many more calls that this partition has a part in may get their places.
    room: usize,
    /// How many have got their places since this node runs.
    starts: u64,
    /// The epoch that is open: `open` − 1 have been closed.
    open: Epoch,
    /// When the open epoch began, in microseconds.
    opened_at: u64,
    /// The highest epoch that a peer is known to have closed.
    peers_closed: Epoch,
    /// The highest epoch that somebody waits for.
    wanted: Epoch,
    /// Which calls are refused before they are ordered.
    pub throttle: Throttle,
    /// What may be started, if there is an epoch manager.
    authority: Option<Authority>,
}

/// What decides, besides the clock, whether an epoch may close.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The last epoch whose batches have all arrived here.
    pub delivered: Epoch,
    /// Whether execution still has enough delivered work to be busy: then the epoch may grow.
    pub busy: bool,
    /// Whether so much delivered work waits here that no more can be taken, not even a peer's.
    pub full: bool,
}

impl Sequencer {
    /// A sequencer of a cluster of `partitions`, with its first epoch open.
    pub fn new(me: PartitionId, partitions: u16, epochs: EpochOptions, limits: Limits) -> Sequencer {
        Sequencer {
            me,
            partitions,
            epoch_microseconds: epochs.microseconds,
            limits,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            started: 0,
            started_bytes: 0,
            room: usize::MAX,
            starts: 0,
            open: Epoch(1),
            opened_at: 0,
            peers_closed: Epoch(0),
            wanted: Epoch(0),
            throttle: Throttle::new(me, partitions, limits.throttles),
            authority: epochs.policy.is_managed().then(|| Authority::new(epochs.policy)),
        }
    }

    /// Whether no more transactions can wait.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.limits.sequencer_waiting
            || self.waiting_bytes >= self.limits.sequencer_waiting_bytes
    }

    /// Number of transactions that wait for an epoch.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The open epoch.
    pub fn open(&self) -> Epoch {
        self.open
    }

    /// Adds a transaction to the next batch with room. The caller has checked [`Sequencer::is_full`].
    pub fn add(&mut self, waiting: Waiting) {
        debug_assert!(!waiting.participants.is_empty(), "a transaction has a participant");
        self.waiting_bytes += waiting.ordered.payload_bytes();
        self.waiting.push_back(waiting);
    }

    /// Lets only so many of the calls that this partition has a part in be ordered, until it is told again.
    pub fn make_room(&mut self, room: usize) {
        let is_own = |waiting: &&Waiting| waiting.participants.contains(self.me);
        let started = self.waiting.range(..self.started).filter(is_own).count();
        self.room = room.saturating_sub(started);
    }

    /// Notes that a peer has closed an epoch.
    pub fn follow(&mut self, closed: Epoch) {
        self.peers_closed = self.peers_closed.max(closed);
    }

    /// Whether the open epoch is to be closed at the time `now` (microseconds).
    pub fn close_due(&self, now: u64, progress: Progress) -> bool {
        if progress.full {
            return false;
        }
        let in_flight = self.open.0 - 1 - progress.delivered.0;
        if let Some(authority) = &self.authority {
            let follows = match self.peers_closed == self.open {
                true => !authority.goes_on(self.open, now),
                false => self.peers_closed > self.open,
            };
            return follows
                || authority.has_ended(self.open, now) && in_flight < self.limits.epochs_in_flight;
        }
        if self.peers_closed >= self.open {
            return true;
        }
        if !self.has_reason() || progress.busy || self.room == 0 || in_flight >= self.limits.epochs_in_flight
        {
            return false;
        }
        (in_flight == 0 && !self.waiting.is_empty()) || now >= self.opened_at + self.epoch_microseconds
    }

    /// Whether there is something to close an epoch for: transactions, calls that are shed until some more epochs have closed, or
    /// somebody who waits for it.
    fn has_reason(&self) -> bool {
        !self.waiting.is_empty() || self.throttle.is_shedding() || self.wanted >= self.open
    }

    /// Sees to it that the open epoch is closed although nothing may wait for it: when it is delivered, this node was the leader
    /// at this moment. Returns its number.
    pub fn want(&mut self) -> Epoch {
        self.wanted = self.open;
        self.open
    }

    /// When [`Sequencer::close_due`] can next become true by time alone, in microseconds; with an epoch manager, or when something is
    /// to be started or said.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        if let Some(authority) = &self.authority {
            return authority.deadline(now, self.open, self.has_reason());
        }
        self.has_reason().then_some(self.opened_at + self.epoch_microseconds)
    }

    /// Goes on after an epoch that was ordered before, by another leader or in an earlier life.
    pub fn resume(&mut self, after: Epoch) {
        self.open = after.next();
        self.wanted = Epoch(0);
        if let Some(authority) = &mut self.authority {
            authority.forget();
        }
    }

    /// Forgets the transactions that wait: this node does not order them any more.
    pub fn withdraw(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.wanted = Epoch(0);
        (self.started, self.started_bytes) = (0, 0);
        if let Some(authority) = &mut self.authority {
            authority.forget();
        }
    }

    /// The highest epoch that a peer is known to have closed.
    pub fn peers_closed(&self) -> Epoch {
        self.peers_closed
    }

    /// The length of an epoch in microseconds.
    pub fn epoch_microseconds(&self) -> u64 {
        self.epoch_microseconds
    }

    /// What may be started, if there is an epoch manager.
    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// The same, to be told what others say.
    pub fn authority_mut(&mut self) -> Option<&mut Authority> {
        self.authority.as_mut()
    }

    /// Takes what the epoch manager says, whoever that is.
    ///
    /// # Errors
    /// When it changes nothing.
    pub fn take_order(&mut self, now: u64, order: EpochOrder) -> Result<(), Refusal> {
        let Some(authority) = &mut self.authority else { return Ok(()) };
        let (closed, authorisation) = match order {
            EpochOrder::Ask(through) => (through, None),
            EpochOrder::Grant(authorisation) => {
                (Epoch(authorisation.epoch.0.saturating_sub(1)), Some(authorisation))
            }
            EpochOrder::Revoke(authorisation) => (authorisation.epoch, Some(authorisation)),
        };
        let taken = authorisation.map_or(Ok(()), |authorisation| authority.take(authorisation, self.open));
        if taken == Err(Refusal::Malformed) {
            return taken;
        }
        if authorisation.is_none() {
            authority.ask();
        } else if taken == Err(Refusal::Overtaken) {
            authority.ask_again(now);
        }
        self.follow(closed);
        taken
    }

    /// What the epoch manager is to be told now, if anything.
    pub fn report(&mut self, now: u64) -> Option<EpochReport> {
        let (closed, wants) = (Epoch(self.open.0 - 1), self.has_reason());
        self.authority.as_mut()?.report(now, closed, wants)
    }

    /// Starts what waits, as far as that is authorised now and the batch has room; without an epoch manager nothing is started
    /// before its epoch closes.
    pub fn start(&mut self, now: u64) {
        if self.authority.as_mut().is_some_and(|authority| authority.start(self.open, now)) {
            self.start_waiting();
        }
    }

    /// How many of those that wait have their places in the open epoch.
    pub fn started(&self) -> usize {
        self.started
    }

    /// How many have got their places in an epoch since this node runs, with those whose leadership was lost before it closed.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Whether the epoch manager is to be told something now, or something that waits may start now.
    pub fn is_pressing(&self, now: u64) -> bool {
        let Some(authority) = &self.authority else { return false };
        authority.has_to_report(now, Epoch(self.open.0 - 1), self.has_reason())
            || self.may_start_more() && authority.allows(self.open, now)
    }

    /// Whether something waits that is not started, and the batch of the open epoch has room for it.
    fn may_start_more(&self) -> bool {
        self.started < self.waiting.len() && self.has_batch_room() && !self.is_held_back()
    }

    /// Whether the batch of the open epoch has room for more, by its own limits.
    fn has_batch_room(&self) -> bool {
        self.started < self.limits.batch_calls && self.started_bytes <= self.limits.batch_bytes
    }

    /// Whether execution here has no room for the next one that waits.
    fn is_held_back(&self) -> bool {
        let next = self.waiting.get(self.started);
        self.room == 0 && next.is_some_and(|next| next.participants.contains(self.me))
    }

    fn start_waiting(&mut self) {
        while self.may_start_more() {
            let next = &self.waiting[self.started];
            self.started_bytes += next.ordered.payload_bytes();
            self.room -= usize::from(next.participants.contains(self.me));
            self.started += 1;
            self.starts += 1;
        }
    }

    /// Closes the open epoch and opens the next.
    pub fn close(&mut self, now: u64) -> ClosedBatch {
        let epoch = self.open;
        if self.authority.as_ref().is_none_or(Authority::had_no_chance) {
            self.start_waiting();
        }
        if let Some(authority) = &mut self.authority {
            authority.closed(epoch);
        }
        self.open = epoch.next();
        self.opened_at = now;
        let mut batch = ClosedBatch::new(epoch, self.partitions);
        if self.has_batch_room() && self.is_held_back() {
            batch.held_back = u32::try_from(self.waiting.len() - self.started).unwrap_or(u32::MAX);
        }
        for waiting in self.waiting.drain(..self.started) {
            self.waiting_bytes -= waiting.ordered.payload_bytes();
            batch.add(self.me, waiting);
        }
        (self.started, self.started_bytes) = (0, 0);
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is refused in a round is refused again in the same one: if nothing else came, no round would end, and nobody be served.
    #[test]
    fn epochs_close_until_no_calls_are_shed() {
        const EPOCH: u64 = 10_000;
        let epochs = EpochOptions { policy: EpochPolicy::Adaptive, microseconds: EPOCH };
        let limits = Limits { throttles: true, ..Limits::default() };
        let mut sequencer = Sequencer::new(PartitionId(0), 2, epochs, limits);
        let progress = |open: Epoch| Progress { delivered: Epoch(open.0 - 1), busy: false, full: false };
        assert!(!sequencer.close_due(EPOCH, progress(sequencer.open())), "nobody has work");
        sequencer.throttle.follow(950);
        let mut now = 0;
        while let Some(deadline) = sequencer.deadline(now) {
            assert!(!sequencer.close_due(deadline - 1, progress(sequencer.open())), "epochs are not shorter");
            now = deadline;
            assert!(sequencer.close_due(now, progress(sequencer.open())));
            assert!(sequencer.close(now).whole.is_empty());
            sequencer.throttle.adjust(0);
        }
        assert!(!sequencer.throttle.is_shedding());
        assert!(now <= 100 * EPOCH, "{now}");
        assert!(!sequencer.close_due(now + EPOCH, progress(sequencer.open())), "nobody has work");
    }

    /// Found by the simulator: a checkpoint is ordered at the end of a step, after all else. Who only waited for a time then, and had
    /// none, slept for ever.
    #[test]
    fn who_has_something_to_say_or_to_start_does_not_sleep() {
        use crate::message::RequestId;

        let epochs = EpochOptions::of(EpochPolicy::Managed);
        let mut sequencer = Sequencer::new(PartitionId(0), 1, epochs, Limits::default());
        assert!(!sequencer.is_pressing(100));
        let ordered = Ordered {
            request: RequestId::own(PartitionId(0)),
            acknowledged: 0,
            work: crate::message::Work::Checkpoint(None),
        };
        let participants = PartitionSet::one(PartitionId(0));
        sequencer.add(Waiting { ordered, footprint: None, participants });
        assert!(sequencer.is_pressing(100), "it wants an epoch");
        assert!(sequencer.report(100).is_some_and(|report| report.wants));
        assert!(!sequencer.is_pressing(100), "it has said so");
        let authorisation =
            authority::Authorisation { epoch: Epoch(1), start: 100, finish: 200, next_length: 100 };
        assert_eq!(sequencer.take_order(100, EpochOrder::Grant(authorisation)), Ok(()));
        assert!(sequencer.is_pressing(100), "it may start something");
        sequencer.start(100);
        assert!(!sequencer.is_pressing(100) && sequencer.deadline(100) == Some(201));
    }
}
