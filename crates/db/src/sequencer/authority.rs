//! What a partition may start: the authorisations of the [epoch manager](super::epoch_manager) (Fan and Golab §II, §III-A and
//! §III-C).
//!
//! A transaction is *started* when it gets its place in the batch of the open epoch. With an epoch manager that is allowed
//! 1. while the partition holds the authorisation for the open epoch, and its clock is inside of the validity period (ALO-17);
//! 2. with [`EpochPolicy::Managed`], after the partition has given the authorisation for the epoch before back and until it has
//!    the next one, while its clock is later than the end of the last period, by the length of the next one at most (ALO-41 to
//!    ALO-46);
//! 3. when the epoch must be closed, and there was no moment at which one of the two held: the authorisation came late, or not
//!    at all. Who is further from the manager than an epoch is long would else never start anything.
//!
//! After the end of the period the partition closes the batch, which gives the authorisation back: it tells the manager what it
//! has closed. That every transaction of the epoch is complete before anybody sees its effects is not up to the manager: see
//! [`Merger`](super::Merger).
//!
//! # Clocks
//!
//! A timestamp of the paper is a [`Position`](crate::position::Position) here, so no clock decides the order (ALO-13, ALO-29).
//! Clocks only bound periods. They need not agree: whoever hears of a later time puts his clock forward to it ([`EpochClock`]), as
//! hybrid logical clocks do, so that they differ by no more than a message takes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::policy::EpochPolicy;
use crate::limits::EPOCH_SILENCE_MICROSECONDS;
use crate::position::{Epoch, NodeId, PartitionId};

/// A clock that never shows less than what its owner was told of others' clocks.
#[derive(Clone, Copy, Default, Debug)]
pub struct EpochClock {
    /// By how many microseconds it goes before the own one.
    ahead: u64,
}

impl EpochClock {
    /// What it shows at a time of the own clock, in microseconds.
    pub fn read(&self, now: u64) -> u64 {
        now.saturating_add(self.ahead)
    }

    /// Notes what another clock has shown.
    pub fn hear(&mut self, now: u64, shown: u64) {
        self.ahead = self.ahead.max(shown.saturating_sub(now));
    }

    /// When it shows a time, by the own clock.
    fn when(&self, shown: u64) -> u64 {
        shown.saturating_sub(self.ahead)
    }
}

/// The right to start transactions in an epoch during a validity period (ALO-16).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Authorisation {
    /// The epoch. There is one type of them only (ALO-23).
    pub epoch: Epoch,
    /// When the period begins, in microseconds.
    pub start: u64,
    /// When it ends: the last microsecond of it.
    pub finish: u64,
    /// How long the next period will be at least, in microseconds (ALO-45).
    pub next_length: u64,
}

impl Authorisation {
    /// Whether it is one that a manager can have meant: for an epoch, and a period that is not empty.
    fn is_sound(&self) -> bool {
        self.epoch > Epoch(0)
            && self.start < self.finish
            && self.finish.checked_add(self.next_length).is_some()
    }

    /// The last microsecond at which transactions may start without authorisation after the period (§III-C).
    pub fn bound(&self) -> u64 {
        self.finish.saturating_add(self.next_length)
    }
}

/// What an epoch manager tells a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EpochOrder {
    /// It is to report, and to close what others have closed: epochs through this one.
    Ask(Epoch),
    /// It may start transactions. All partitions have closed the epochs before.
    Grant(Authorisation),
    /// It may do so no more, and is to close the epoch.
    Revoke(Authorisation),
}

/// What a partition tells the epoch manager: it gives authorisations back with that, and asks for them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct EpochReport {
    /// It has closed epochs through this one.
    pub closed: Epoch,
    /// The authorisation that it has.
    pub held: Option<Authorisation>,
    /// The latest end of a period that it knows of, in microseconds.
    pub finish: u64,
    /// The latest time at which it may start something without authorisation, as far as it knows, in microseconds: the next period
    /// may not end before (ALO-45).
    pub bound: u64,
    /// Whether it has something to order.
    pub wants: bool,
}

/// What is said about epochs, with the time of the sender's [`EpochClock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EpochMessage {
    /// From the epoch manager to the leader of a partition.
    Order {
        /// The manager's node.
        manager: NodeId,
        /// The term in which it leads its replication group: who is told by a later one ignores it.
        term: u64,
        /// The time there.
        clock: u64,
        /// What it says.
        order: EpochOrder,
    },
    /// From the leader of a partition to the epoch manager.
    Report {
        /// The partition.
        partition: PartitionId,
        /// The time there.
        clock: u64,
        /// What it says.
        report: EpochReport,
    },
}

impl fmt::Display for Authorisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {} us", self.epoch, self.start, self.finish)
    }
}

impl fmt::Display for EpochOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EpochOrder::Ask(through) => write!(f, "asks to close epochs through {through}, and to report"),
            EpochOrder::Grant(authorisation) => write!(f, "grants {authorisation}"),
            EpochOrder::Revoke(authorisation) => write!(f, "revokes {}", authorisation.epoch),
        }
    }
}

impl fmt::Display for EpochReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has closed epochs through {}", self.closed)?;
        if let Some(held) = self.held {
            write!(f, ", holds {}", held.epoch)?;
        }
        f.write_str(if self.wants { ", wants the next" } else { "" })
    }
}

impl fmt::Display for EpochMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EpochMessage::Order { order, .. } => order.fmt(f),
            EpochMessage::Report { report, .. } => report.fmt(f),
        }
    }
}

/// Why an order changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// It comes from a manager in whose place there is another one.
    #[error("of a former manager")]
    Former,
    /// The period is empty, or of no epoch.
    #[error("malformed")]
    Malformed,
    /// The authorisation, or one for a later epoch, is there already (ALO-18).
    #[error("known")]
    Known,
    /// The epoch is closed already.
    #[error("overtaken")]
    Overtaken,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Authority {
    policy: EpochPolicy,
    clock: EpochClock,
    /// The manager, once it has said something and as long as it answers, and its term.
    manager: Option<NodeId>,
    term: u64,
    /// At most one (ALO-18).
    held: Option<Authorisation>,
    /// That for the epoch before the open one, if it is known.
    before: Option<Authorisation>,
    /// Whether there was a moment in the open epoch at which transactions could start.
    had_chance: bool,
    finish: u64,
    bound: u64,
    /// What was reported last, and when by the own clock.
    said: Option<(u64, EpochReport)>,
    /// Whether the manager lacks the report.
    asked: bool,
}

impl Authority {
    /// Nothing is authorised.
    pub fn new(policy: EpochPolicy) -> Authority {
        Authority {
            policy,
            clock: EpochClock::default(),
            manager: None,
            term: 0,
            held: None,
            before: None,
            had_chance: false,
            finish: 0,
            bound: 0,
            said: None,
            asked: false,
        }
    }

    /// Gives up what is held: another node orders for the partition, or this one begins to. What it knows of times stays true.
    pub fn forget(&mut self) {
        let Authority { policy, clock, manager, term, finish, bound, .. } = *self;
        *self = Authority { clock, manager, term, finish, bound, ..Authority::new(policy) };
    }

    /// What the clock shows.
    pub fn clock(&self, now: u64) -> u64 {
        self.clock.read(now)
    }

    /// When the clock shows a time, by the own clock.
    pub fn when(&self, shown: u64) -> u64 {
        self.clock.when(shown)
    }

    /// Notes what another clock has shown.
    pub fn hear_clock(&mut self, now: u64, shown: u64) {
        self.clock.hear(now, shown);
    }

    /// The manager, if it is known.
    pub fn manager(&self) -> Option<NodeId> {
        self.manager
    }

    /// What is held.
    pub fn held(&self) -> Option<Authorisation> {
        self.held
    }

    /// Takes note of who is the manager.
    ///
    /// # Errors
    /// When it is none any more.
    pub fn obey(&mut self, manager: NodeId, term: u64) -> Result<(), Refusal> {
        if term < self.term {
            return Err(Refusal::Former);
        }
        (self.manager, self.term) = (Some(manager), term);
        Ok(())
    }

    /// The manager lacks a report.
    pub fn ask(&mut self) {
        self.asked = true;
    }

    /// The manager does not know what it was told; if that was just now, it will.
    pub fn ask_again(&mut self, now: u64) {
        self.asked |=
            self.said.is_none_or(|(at, _)| now >= at.saturating_add(EPOCH_SILENCE_MICROSECONDS / 2));
    }

    /// Takes an authorisation, while the epoch `open` is open.
    ///
    /// # Errors
    /// When it is of no use. One for the epoch before, which came late, tells at least when that ended.
    pub fn take(&mut self, authorisation: Authorisation, open: Epoch) -> Result<(), Refusal> {
        if !authorisation.is_sound() {
            return Err(Refusal::Malformed);
        }
        self.finish = self.finish.max(authorisation.finish);
        self.bound = self.bound.max(authorisation.bound());
        if authorisation.epoch < open {
            if authorisation.epoch.next() == open && self.held.is_none() && self.before.is_none() {
                self.before = Some(authorisation);
            }
            return Err(Refusal::Overtaken);
        }
        if self.held.is_some_and(|held| held.epoch >= authorisation.epoch) {
            return Err(Refusal::Known);
        }
        self.held = Some(authorisation);
        Ok(())
    }

    /// Whether transactions may start in the epoch `open` now.
    pub fn allows(&self, open: Epoch, now: u64) -> bool {
        let clock = self.clock.read(now);
        match (self.held, self.before) {
            (Some(held), _) => held.epoch == open && (held.start..=held.finish).contains(&clock),
            // Below the first bound the epoch before may be read; above the second one the next one may end (ALO-42, ALO-43).
            (None, Some(before)) if self.policy == EpochPolicy::Managed => {
                clock > before.finish && clock <= before.bound()
            }
            _ => false,
        }
    }

    /// Whether what waits may start in the epoch `open` now; the caller starts it.
    pub fn start(&mut self, open: Epoch, now: u64) -> bool {
        let allows = self.allows(open, now);
        self.had_chance |= allows;
        allows
    }

    /// Whether nothing could start in the open epoch so far.
    pub fn had_no_chance(&self) -> bool {
        !self.had_chance
    }

    /// Whether the partition holds the authorisation for the epoch `open` and its period is over.
    pub fn has_ended(&self, open: Epoch, now: u64) -> bool {
        self.held.is_some_and(|held| held.epoch == open && self.clock.read(now) > held.finish)
    }

    /// Whether the partition holds the authorisation for the epoch `open` and may still use it: it need not follow who was
    /// faster.
    pub fn goes_on(&self, open: Epoch, now: u64) -> bool {
        self.held.is_some_and(|held| held.epoch == open && self.clock.read(now) <= held.finish)
    }

    /// The open epoch is closed.
    pub fn closed(&mut self, epoch: Epoch) {
        self.before = self.held.take_if(|held| held.epoch == epoch);
        self.had_chance = false;
    }

    /// Whether there is something to report now, where epochs through `closed` are closed and there is something to order or not:
    /// the manager has asked, or gets an authorisation back, or is to grant one.
    pub fn has_to_report(&self, now: u64, closed: Epoch, wants: bool) -> bool {
        let EpochReport { closed: last, wants: wanted, .. } =
            self.said.map(|(_, said)| said).unwrap_or_default();
        let waits = wants && self.held.is_none();
        self.asked || closed > last || waits && (!wanted || self.is_unheard(now))
    }

    /// Whether the last report is so old that it may be lost.
    fn is_unheard(&self, now: u64) -> bool {
        self.said.is_some_and(|(at, _)| now >= at.saturating_add(EPOCH_SILENCE_MICROSECONDS))
    }

    /// What to report now, if anything; see [`Authority::has_to_report`].
    pub fn report(&mut self, now: u64, closed: Epoch, wants: bool) -> Option<EpochReport> {
        if !self.has_to_report(now, closed, wants) {
            return None;
        }
        if self.is_unheard(now) {
            // It may have another place by now.
            self.manager = None;
        }
        let report = EpochReport { closed, held: self.held, finish: self.finish, bound: self.bound, wants };
        (self.said, self.asked) = (Some((now, report)), false);
        Some(report)
    }

    /// When something can be done by time alone, by the own clock, in the epoch `open` and where there is something to order or
    /// not.
    pub fn deadline(&self, now: u64, open: Epoch, wants: bool) -> Option<u64> {
        let clock = self.clock.read(now);
        let shown = match (self.held, self.before) {
            (Some(held), _) if held.epoch != open => None,
            (Some(held), _) if clock < held.start => Some(held.start),
            (Some(held), _) => Some(held.finish.saturating_add(1)),
            (None, Some(before)) if clock <= before.finish && wants => Some(before.finish.saturating_add(1)),
            _ => None,
        };
        let waits = wants && self.held.is_none();
        let again = self.said.filter(|_| waits).map(|(at, _)| at.saturating_add(EPOCH_SILENCE_MICROSECONDS));
        [shown.map(|shown| self.clock.when(shown)), again].into_iter().flatten().min()
    }
}
