//! The epoch manager (Fan and Golab §II, §III-A): grants all partitions the authorisation for an epoch, revokes it at the end of
//! the validity period, and goes on to the next epoch when all have given it back (ALO-15, ALO-19).
//!
//! It is the leader of the replication group of the first partition, so that a new one is found by agreement when it fails
//! (ALO-28). A new one knows nothing: it asks all partitions, and goes on above the highest epoch that they know of. Nothing
//! depends on it but the pace: no epoch is delivered before the batches of all partitions are agreed on and there (see
//! [`Merger`](super::Merger)), and who hears that another partition has closed an epoch closes it too. So a grant that is lost
//! delays its partition, and two managers who do not know of each other would do no harm.
//!
//! It rests while no partition wants an epoch: an idle cluster has none. What is lost is said again after a while.

use super::authority::{Authorisation, EpochOrder, EpochReport};
use crate::limits::EPOCH_SILENCE_MICROSECONDS;
use crate::position::{Epoch, PartitionId};

/// See the [module](self). Its times are those of an [`EpochClock`](super::authority::EpochClock), in microseconds.
#[derive(Debug)]
pub struct EpochManager {
    term: u64,
    /// The length of a period in microseconds.
    length: u64,
    /// By partition, what was reported last in this term.
    reports: Vec<Option<EpochReport>>,
    /// The latest end of a period, and the latest time to which something may have started without authorisation.
    finish: u64,
    bound: u64,
    phase: Phase,
    /// When something was said last.
    said_at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nobody wants an epoch.
    Resting,
    /// An epoch is wanted; partitions are asked how far they are.
    Gathering,
    /// An epoch is under way.
    Granted { authorisation: Authorisation, is_revoked: bool },
}

impl EpochManager {
    /// A manager for a term, who knows nothing of `partitions` yet, with periods of `length` microseconds.
    pub fn new(term: u64, partitions: u16, length: u64) -> EpochManager {
        let reports = vec![None; usize::from(partitions)];
        EpochManager {
            term,
            length: length.max(1),
            reports,
            finish: 0,
            bound: 0,
            phase: Phase::Resting,
            said_at: 0,
        }
    }

    /// The term in which it leads.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The epoch that is under way.
    pub fn granted(&self) -> Option<Authorisation> {
        match self.phase {
            Phase::Granted { authorisation, .. } => Some(authorisation),
            _ => None,
        }
    }

    /// Takes a report. What a partition has closed stays closed: a new leader of it that lacks an epoch will follow the others.
    pub fn take(&mut self, partition: PartitionId, report: EpochReport) {
        let Some(known) = self.reports.get_mut(partition.index()) else { return };
        let closed = known.map_or(Epoch(0), |known| known.closed).max(report.closed);
        *known = Some(EpochReport { closed, ..report });
        (self.finish, self.bound) = (self.finish.max(report.finish), self.bound.max(report.bound));
    }

    /// Does what is due at the time `now`, and says to whom to say what.
    pub fn advance(&mut self, now: u64, out: &mut Vec<(PartitionId, EpochOrder)>) {
        if let Phase::Granted { authorisation, is_revoked } = self.phase {
            if self.behind(authorisation.epoch).next().is_some() {
                return self.see_to(now, authorisation, is_revoked, out);
            }
            self.phase = Phase::Resting;
        }
        if !self.reports.iter().flatten().any(|report| report.wants) {
            self.phase = Phase::Resting;
            return;
        }
        let (epoch, held) = self.next();
        let through = Epoch(epoch.0 - 1);
        if self.behind(through).next().is_none() {
            let authorisation = held.unwrap_or_else(|| self.period(epoch, now));
            self.finish = self.finish.max(authorisation.finish);
            self.bound = self.bound.max(authorisation.bound());
            self.phase = Phase::Granted { authorisation, is_revoked: false };
            self.say(now, epoch, EpochOrder::Grant(authorisation), out);
        } else if self.phase == Phase::Resting || self.is_silent(now) {
            self.phase = Phase::Gathering;
            self.say(now, through, EpochOrder::Ask(through), out);
        }
    }

    /// An epoch is under way: revokes it at its end, and says again what may be lost.
    fn see_to(
        &mut self,
        now: u64,
        authorisation: Authorisation,
        is_revoked: bool,
        out: &mut Vec<(PartitionId, EpochOrder)>,
    ) {
        let is_over = now > authorisation.finish;
        if is_over && !is_revoked || self.is_silent(now) {
            let order = match is_over {
                true => EpochOrder::Revoke(authorisation),
                false => EpochOrder::Grant(authorisation),
            };
            self.phase = Phase::Granted { authorisation, is_revoked: is_over };
            self.say(now, authorisation.epoch, order, out);
        }
    }

    /// Says something to those who have not closed an epoch.
    fn say(&mut self, now: u64, epoch: Epoch, order: EpochOrder, out: &mut Vec<(PartitionId, EpochOrder)>) {
        self.said_at = now;
        out.extend(self.behind(epoch).map(|partition| (partition, order)));
    }

    fn is_silent(&self, now: u64) -> bool {
        now >= self.said_at.saturating_add(EPOCH_SILENCE_MICROSECONDS)
    }

    /// The partitions that have not reported that they have closed an epoch.
    fn behind(&self, epoch: Epoch) -> impl Iterator<Item = PartitionId> + '_ {
        let is_behind = move |report: &Option<EpochReport>| report.is_none_or(|report| report.closed < epoch);
        let all = self.reports.iter().enumerate();
        all.filter(move |(_, report)| is_behind(report)).map(|(partition, _)| PartitionId(partition as u16))
    }

    /// The next epoch. If a former manager has granted it, what it granted.
    fn next(&self) -> (Epoch, Option<Authorisation>) {
        let known = || self.reports.iter().flatten();
        let closed = known().map(|report| report.closed).max().unwrap_or(Epoch(0));
        let held = known().filter_map(|report| report.held).max_by_key(|held| held.epoch);
        match held.filter(|held| held.epoch > closed) {
            Some(held) => (held.epoch, Some(held)),
            None => (closed.next(), None),
        }
    }

    /// A period for an epoch: later than all before (ALO-22), and not shorter than was announced (ALO-45).
    fn period(&self, epoch: Epoch, now: u64) -> Authorisation {
        let start = now.max(self.finish.saturating_add(1));
        let finish = start.saturating_add(self.length).max(self.bound);
        Authorisation { epoch, start, finish, next_length: self.length }
    }

    /// When something is to be done by time alone.
    pub fn deadline(&self) -> Option<u64> {
        let again = self.said_at.saturating_add(EPOCH_SILENCE_MICROSECONDS);
        match self.phase {
            Phase::Resting => None,
            Phase::Granted { authorisation, is_revoked: false } => {
                Some(again.min(authorisation.finish.saturating_add(1)))
            }
            Phase::Gathering | Phase::Granted { .. } => Some(again),
        }
    }
}
