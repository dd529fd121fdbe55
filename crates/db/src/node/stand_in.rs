//! Another replica's verdicts for the clients of a leader that stands still (CAL-87).
//!
//! A replica that takes a checkpoint by freezing executes nothing, and has to catch up afterwards. If it leads its group, the
//! clients would wait: the leader is the one that knows where they are. So it asks another replica of the group to stand in, which
//! executes the same order, and tells it the verdicts on what was ordered here. They follow from the order, so that it does not
//! matter who tells them, and what is lost on the way comes late, but comes: the leader executes the same in the end, and then it
//! is no news.

use std::collections::VecDeque;

use super::routes::HEARTBEAT_MICROSECONDS;
use super::{Node, Outbox};
use crate::engine::Engine;
use crate::message::{Message, Report};
use crate::position::{Epoch, NodeId, ReplicaId};

/// For how long a request to stand in holds, and for how long its answer, in microseconds.
const HOLDS_MICROSECONDS: u64 = 4 * HEARTBEAT_MICROSECONDS;

/// Payload of the verdicts that are kept for a replica that has not asked for them yet, in bytes. If there are more, the oldest
/// are dropped: their clients wait.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct StandIn {
    /// The replica that stands still, as the order says, and what it may ask for.
    frozen: Option<Frozen>,
    /// Whom this node has asked.
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Frozen {
    replica: ReplicaId,
    kept: VecDeque<Report>,
    kept_bytes: usize,
    /// Until when it is told what comes, in microseconds; zero if it has not asked.
    until: u64,
}

#[derive(Debug)]
struct Asked {
    /// How many replicas have not answered.
    failed: usize,
    at: u64,
    heard_at: Option<u64>,
}

impl StandIn {
    /// The order says that a replica stands still from here on. It asks, if it leads.
    pub(super) fn expect(&mut self, replica: ReplicaId, now: u64) {
        // Who has asked leads: nobody else will ask as long as it does.
        let is_taken = |frozen: &Frozen| frozen.replica == replica || frozen.until > now;
        if !self.frozen.as_ref().is_some_and(is_taken) {
            self.frozen = Some(Frozen { replica, kept: VecDeque::new(), kept_bytes: 0, until: 0 });
        }
    }

    /// A replica goes on. One that has asked is told of what comes until it asks no more.
    pub(super) fn ended(&mut self, replica: ReplicaId) {
        self.frozen = self.frozen.take().filter(|frozen| frozen.replica != replica || frozen.until > 0);
    }

    /// Another replica asks.
    fn begin(&mut self, replica: ReplicaId, now: u64) {
        self.frozen = self.frozen.take().filter(|frozen| frozen.replica == replica);
        self.expect(replica, now);
        if let Some(frozen) = &mut self.frozen {
            frozen.until = now + HOLDS_MICROSECONDS;
        }
    }

    /// A verdict that clients of this partition are to hear.
    pub(super) fn keep(&mut self, report: &Report) {
        let Some(frozen) = &mut self.frozen else { return };
        frozen.kept_bytes += report.payload_bytes();
        frozen.kept.push_back(report.clone());
        while frozen.kept_bytes > KEPT_BYTES_MAX
            && let Some(dropped) = frozen.kept.pop_front()
        {
            frozen.kept_bytes -= dropped.payload_bytes();
        }
    }

    /// What is to be told now, and to whom.
    fn take(&mut self, now: u64) -> Option<(ReplicaId, Vec<Report>)> {
        let frozen = self.frozen.as_mut()?;
        if frozen.until == 0 {
            return None;
        }
        if now >= frozen.until {
            self.frozen = None;
            return None;
        }
        frozen.kept_bytes = 0;
        Some((frozen.replica, frozen.kept.drain(..).collect()))
    }

    /// The replica that stands in has told something.
    pub(super) fn heard(&mut self, now: u64) {
        if let Some(asked) = &mut self.asked {
            asked.heard_at = Some(now);
        }
    }

    /// Whether another replica executes for this node's clients.
    pub(super) fn is_on(&self, now: u64) -> bool {
        let heard_at = self.asked.as_ref().and_then(|asked| asked.heard_at);
        heard_at.is_some_and(|heard_at| now < heard_at + HOLDS_MICROSECONDS)
    }

    /// Whom to ask now, of those who may be asked.
    fn ask(&mut self, now: u64, able: &[ReplicaId]) -> Option<ReplicaId> {
        let asked = match &mut self.asked {
            None => self.asked.insert(Asked { failed: 0, at: now, heard_at: None }),
            Some(asked) if now < asked.at + HEARTBEAT_MICROSECONDS => return None,
            Some(asked) => {
                asked.failed += usize::from(asked.heard_at.is_none_or(|heard_at| heard_at < asked.at));
                asked.at = now;
                asked
            }
        };
        let place = asked.failed.checked_rem(able.len())?;
        able.get(place).copied()
    }
}

impl<E: Engine> Node<E> {
    /// Asks another replica to stand in while this one stands still or catches up, if this one leads.
    pub(super) fn ask_to_stand_in(&mut self, now: u64, outbox: &mut Outbox) {
        let catches_up = self.stand_in.asked.is_some() && self.is_busy();
        if !self.gateway.leads() || !(self.checkpoints.is_writing_frozen() || catches_up) {
            self.stand_in.asked = None;
            return;
        }
        let mut able = self.live_members();
        able.retain(|replica| *replica != self.id.replica);
        if let Some(replica) = self.stand_in.ask(now, &able) {
            self.send(NodeId { partition: self.me, replica }, Message::StandIn, outbox);
        }
    }

    /// Another replica asks for verdicts. It hears at once, even if there are none: so it knows that this one executes. One that
    /// stands still itself says nothing, so that another one is asked.
    pub(super) fn begin_to_stand_in(&mut self, replica: ReplicaId, outbox: &mut Outbox) {
        if self.checkpoints.is_frozen() {
            return;
        }
        self.stand_in.begin(replica, self.now);
        if !self.tell_verdicts(outbox) {
            let nothing = Message::Reports { basis: self.basis(Epoch(0)), reports: Vec::new() };
            self.send(NodeId { partition: self.me, replica }, nothing, outbox);
        }
    }

    /// Tells the replica that this one stands in for what clients are to hear; whether there was anything.
    pub(super) fn tell_verdicts(&mut self, outbox: &mut Outbox) -> bool {
        let Some((replica, reports)) = self.stand_in.take(self.now) else { return false };
        let Some(through) = reports.iter().map(|report| report.position.epoch).max() else { return false };
        let message = Message::Reports { basis: self.basis(through), reports };
        self.send(NodeId { partition: self.me, replica }, message, outbox);
        true
    }

    /// Whether execution has enough delivered work for a step.
    pub(super) fn is_busy(&self) -> bool {
        self.ready.len() >= self.limits.step_transactions
    }
}
