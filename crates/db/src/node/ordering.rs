//! From waiting transactions to epochs that execution gets: closed by the leader, logged by the group, handed on by every
//! replica (Calvin §3.1; CAL-22, CAL-28, CAL-36, CAL-39).

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::{Committed, LogEffects, Membership, Persist, ProposeError, ReplicatedLog, Role};
use serde::{Deserialize, Serialize};

use super::{DiskWrite, Node, Outbox};
use crate::engine::Engine;
use crate::error::Fatal;
use crate::execution::place;
use crate::failpoint::{Failpoint, Failpoints};
use crate::kept::decode_whole;
use crate::message::{Delivered, Message, Ordered, Work};
use crate::position::{Epoch, NodeId, PartitionId, PartitionSet, Position, ReplicaId};
use crate::sequencer::{ClosedBatch, Load, Progress, Waiting};

/// What the log holds of an epoch: the requests and nothing of what they do (CAL-28, CAL-31, CAL-85).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoggedBatch {
    /// The epoch.
    pub epoch: Epoch,
    /// When the leader closed it, in microseconds of its driver's time: for restoring the state of a time.
    pub closed_at: u64,
    /// The last epoch that had been delivered to the leader: a witness that all partitions have it, see
    /// [`witness`](crate::disk::witness).
    pub delivered: Epoch,
    /// The level of what is shed for the sake of the leader, in thousandths: see [`throttle`](crate::sequencer::throttle).
    pub shed: u16,
    /// How many calls waited because execution at the leader had no room for more of them: see [`ClosedBatch::held_back`].
    pub held_back: u32,
    /// The partition's whole batch; the place in it is the index of the position.
    pub transactions: Vec<Ordered>,
}

/// The log of the node's replication group, and what lies between it and execution.
pub(super) struct Log {
    /// `None` where nothing is kept: an epoch is handed on when it closes.
    pub(super) replicated: Option<Box<dyn ReplicatedLog>>,
    pub(super) effects: LogEffects,
    /// The term in which this node leads, if it does.
    pub(super) term: Option<u64>,
    /// Epochs that this node has closed in this term, and that the log does not have yet.
    pub(super) closed: VecDeque<ClosedBatch>,
    /// The last of them, if the log has had no room for it yet.
    pub(super) proposal: Option<Bytes>,
    /// What the log has, and execution has no room for yet.
    pub(super) committed: VecDeque<Committed>,
    /// The last epoch that was handed on to execution.
    pub(super) dispatched: Epoch,
    /// What the leader was last asked to follow.
    pub(super) followed: Option<(ReplicaId, Epoch)>,
}

impl Log {
    pub(super) fn new(replicated: Option<Box<dyn ReplicatedLog>>) -> Log {
        Log {
            replicated,
            effects: LogEffects::default(),
            term: None,
            closed: VecDeque::new(),
            proposal: None,
            committed: VecDeque::new(),
            dispatched: Epoch(0),
            followed: None,
        }
    }
}

impl<E: Engine> Node<E> {
    /// Closes epochs that are due, hands on those that the log has, and delivers those that are complete; whether any was
    /// closed.
    pub(super) fn order(&mut self, now: u64, outbox: &mut Outbox) -> Result<bool, Fatal> {
        let mut closed_any = false;
        if let Some(log) = &mut self.log.replicated {
            log.tick(now);
        }
        self.make_room();
        self.sequencer.start(now);
        loop {
            self.propose()?;
            let handed_out = self.advance_log(outbox)?;
            self.dispatch_committed(outbox)?;
            self.deliver()?;
            if handed_out && self.log.committed.is_empty() {
                // The log hands out a limited number of bytes at a time.
                continue;
            }
            if !self.may_close(now) {
                break;
            }
            closed_any = true;
            let follows = self.sequencer.peers_closed() >= self.sequencer.open();
            let closed = self.sequencer.close(now);
            self.sequencer.start(now);
            self.sequencer.throttle.adjust(self.backlog());
            if self.log.replicated.is_some() && !follows {
                self.announce(closed.epoch, outbox);
            }
            match &mut self.log.replicated {
                None => self.dispatch(closed, 0, outbox),
                Some(_) => {
                    let batch = LoggedBatch {
                        epoch: closed.epoch,
                        closed_at: now,
                        delivered: self.merger.delivered(),
                        shed: self.sequencer.throttle.load().level,
                        held_back: closed.held_back,
                        transactions: closed.whole.clone(),
                    };
                    self.log.proposal = Some(super::encode_body(&batch));
                    self.log.closed.push_back(closed);
                }
            }
        }
        self.manage_epochs(outbox);
        self.ask_to_follow(outbox);
        Ok(closed_any)
    }

    /// Tells the other partitions that an epoch is closed, so that they close it too while its batch goes through the log here:
    /// else they would begin only when it has, and an epoch would take two agreements, one after the other. A number says nothing
    /// of the order; if it is lost the batch tells the same.
    fn announce(&mut self, epoch: Epoch, outbox: &mut Outbox) {
        for partition in self.others().iter() {
            self.send(self.routes.to(partition), Message::Follow(epoch), outbox);
        }
    }

    /// Gives the log the epoch that was closed last, if it has not taken it yet.
    fn propose(&mut self) -> Result<(), Fatal> {
        let (Some(log), Some(proposal)) = (&mut self.log.replicated, &self.log.proposal) else {
            return Ok(());
        };
        match log.propose(proposal.clone()) {
            Ok(()) => self.log.proposal = None,
            // It is given again when some of what is on its way is committed.
            Err(ProposeError::Full { .. }) => {}
            Err(ProposeError::NotLeader { .. }) => self.step_down(),
            Err(error @ (ProposeError::TooLarge { .. } | ProposeError::Empty)) => {
                return Err(Fatal::Log(error.to_string()));
            }
        }
        Ok(())
    }

    /// Whether an epoch is due, and this node closes epochs.
    pub(super) fn may_close(&self, now: u64) -> bool {
        self.gateway.leads() && self.log.proposal.is_none() && self.sequencer.close_due(now, self.progress())
    }

    /// Whether there is something that the log has and execution has room for.
    pub(super) fn may_dispatch(&self) -> bool {
        !self.log.committed.is_empty() && !self.is_full() && !self.would_be_forgotten()
    }

    /// Whether what is said now could be forgotten before a node that has not subscribed yet asks for it. Where there is no other replica,
    /// nobody else could say it again: all nodes that start together replay their logs, and some come to their peers later than others.
    fn would_be_forgotten(&self) -> bool {
        let is_awaited =
            |partition: PartitionId| partition != self.me && !self.streams.serves(partition, self.id.replica);
        self.replicas == 1
            && self.streams.is_half_full()
            && (0..self.partitions).map(PartitionId).any(is_awaited)
    }

    /// The node that leads this partition's replication group, as far as that is known.
    pub(super) fn leader(&self) -> Option<NodeId> {
        match self.log.replicated.as_ref()?.role() {
            Role::Follower { leader: Some(replica) } => Some(NodeId { partition: self.me, replica }),
            _ => None,
        }
    }

    /// Lets the log move on, and follows its changes of leadership; whether it has handed something out.
    fn advance_log(&mut self, outbox: &mut Outbox) -> Result<bool, Fatal> {
        let Some(log) = &mut self.log.replicated else { return Ok(false) };
        let effects = &mut self.log.effects;
        log.advance(effects);
        let role = log.role();
        check_places(log.membership(), self.replicas)?;
        if let Some(index) = effects.overwritten {
            return Err(Fatal::Overwritten { index });
        }
        let handed_out = !effects.committed.is_empty();
        self.log.committed.extend(effects.committed.drain(..));
        if let Some(persist) = effects.persist.take() {
            let Persist { number, records, must_sync, index_max } = persist;
            outbox.disk.push(DiskWrite::Append { number, records, index_max, must_sync });
        }
        let behind = std::mem::take(&mut effects.send_snapshot);
        let messages = std::mem::take(&mut effects.messages);
        for (replica, message) in messages {
            let to = NodeId { partition: self.me, replica };
            self.send(to, Message::Consensus(message), outbox);
        }
        for follower in behind {
            self.serve_follower(follower, outbox);
        }
        let term = match role {
            Role::Leader { term, ready: true } => Some(term),
            _ => None,
        };
        if self.log.term.is_some() && self.log.term != term {
            self.step_down();
        }
        self.follow_leader(outbox);
        Ok(handed_out)
    }

    /// Tells clients whose requests were sent to a leader that is none any more.
    fn follow_leader(&mut self, outbox: &mut Outbox) {
        let leader = self.leader();
        if leader != self.forwards.leader
            && let Some(former) = std::mem::replace(&mut self.forwards.leader, leader)
        {
            self.give_back(former, outbox);
        }
    }

    /// Gives what waits to be logged back to the clients: another node leads.
    fn step_down(&mut self) {
        self.log.term = None;
        self.checkpoints.withdraw();
        self.log.proposal = None;
        self.log.closed.clear();
        self.sequencer.withdraw();
        self.gateway.step_down();
    }

    /// Begins to lead once all that the log had before is handed on: no request can come into it twice (CAL-29).
    fn lead(&mut self) {
        let role = self.log.replicated.as_ref().map(|log| log.role());
        if let Some(Role::Leader { term, ready: true }) = role
            && self.log.term.is_none()
            && self.log.committed.is_empty()
            && self.has_all_that_was_proposed()
        {
            self.log.term = Some(term);
            self.sequencer.resume(self.log.dispatched);
            let (gateway, mut context) = self.gateway();
            gateway.lead(&mut context);
            self.held.lead(self.now);
        }
    }

    /// Whether nothing that this node has proposed is on its way: it may lead again in a term in which it was to hand over.
    fn has_all_that_was_proposed(&self) -> bool {
        let Some(log) = &self.log.replicated else { return true };
        let status = log.status();
        log.in_flight() == 0 && status.handed_out >= status.committed
    }

    /// Hands on what the log has, as far as execution has room.
    fn dispatch_committed(&mut self, outbox: &mut Outbox) -> Result<(), Fatal> {
        while self.may_dispatch() {
            let Some(committed) = self.log.committed.pop_front() else { break };
            let batch = self.batch_of(&committed)?;
            self.checkpoints.stability.logged(batch.epoch, committed.index);
            let counts = calls_for_checkpoint(&batch.whole);
            self.checkpoints.logged_bytes += if counts { committed.payload.len() as u64 } else { 0 };
            self.dispatch(batch, committed.term, outbox);
            self.deliver()?;
        }
        self.lead();
        Ok(())
    }

    /// The batch that a log entry holds.
    fn batch_of(&mut self, committed: &Committed) -> Result<ClosedBatch, Fatal> {
        // While a node leads, the log has its epochs one after the other.
        if let Some(closed) = self.log.closed.pop_front() {
            return Ok(closed);
        }
        let malformed =
            |problem: String| Fatal::Log(format!("entry {} of the log: {problem}", committed.index));
        let logged: LoggedBatch = decode_whole(&committed.payload).map_err(malformed)?;
        if logged.epoch != self.log.dispatched.next() {
            return Err(malformed(format!("{} follows {}", logged.epoch, self.log.dispatched)));
        }
        self.sequencer.throttle.follow(logged.shed);
        if calls_for_checkpoint(&logged.transactions) {
            self.note_logged(logged.closed_at);
        }
        let mut batch = ClosedBatch::new(logged.epoch, self.partitions);
        for (index, ordered) in logged.transactions.into_iter().enumerate() {
            let position = Position { epoch: batch.epoch, origin: self.me, index: index as u32 };
            let waiting = self.place(position, ordered)?;
            batch.add(self.me, waiting);
        }
        Ok(batch)
    }

    /// Finds out again who takes part in a transaction of the log.
    fn place(&mut self, position: Position, ordered: Ordered) -> Result<Waiting, Fatal> {
        let participants = match &ordered.work {
            Work::Call { procedure, arguments, reconnoitred } => {
                let mut footprint = self.gateway.spare.pop().unwrap_or_default();
                let found = reconnoitred.as_ref();
                place(*procedure, arguments, found, &self.catalog, self.partitions, &mut footprint)
                    .map_err(|error| Fatal::Unexecutable { position, error })?;
                let participants = footprint.participants(self.me);
                return Ok(Waiting { ordered, footprint: Some(footprint), participants });
            }
            Work::GiveUp(_) => PartitionSet::one(self.me),
            Work::OpenSnapshot(_) | Work::CloseSnapshot(_) | Work::Checkpoint(_) => {
                PartitionSet::all(self.partitions)
            }
        };
        Ok(Waiting { ordered, footprint: None, participants })
    }

    /// What decides whether an epoch may close.
    fn progress(&self) -> Progress {
        Progress {
            delivered: self.merger.delivered(),
            // What this node has not executed may be executed all the same.
            busy: self.is_busy() && !self.stand_in.is_on(self.now),
            full: self.is_full(),
        }
    }

    /// Whether so much waits for execution that no more can be delivered.
    fn is_full(&self) -> bool {
        self.ready.len() >= self.limits.sequencer_waiting
    }

    /// How long it takes to execute the delivered transactions that wait for nothing but this node's processor, and clients for them,
    /// in microseconds: see [`throttle`](crate::sequencer::throttle). Where there is no room for more they wait for those under way,
    /// and these for other nodes.
    fn backlog(&self) -> u64 {
        let is_room = self.engine.live() < self.limits.transactions_live;
        let waits = is_room && !self.stand_in.is_on(self.now);
        self.pace.time_for(if waits { self.ready.len() as u64 } else { 0 })
    }

    /// Tells the sequencer how many more of this node's calls may wait for execution here. One always may, however long it takes.
    pub(super) fn make_room(&mut self) {
        // While another replica stands in, what this one has not executed keeps nobody waiting.
        let ahead = self.sequencer.throttle.ahead().filter(|_| !self.stand_in.is_on(self.now));
        let most = ahead.map(|microseconds| self.pace.fits(microseconds).max(1));
        self.sequencer.make_room(most.map_or(usize::MAX, |most| most.saturating_sub(self.own_ready)));
    }

    /// Whether an epoch can be delivered, and execution has room for it.
    pub(super) fn may_deliver(&self) -> bool {
        self.merger.has_next() && !self.is_full()
    }

    /// Delivers the epochs of which all parts have come, as far as execution has room.
    fn deliver(&mut self) -> Result<(), Fatal> {
        while !self.is_full() {
            let before = self.ready.len();
            if !self.merger.deliver_next::<E::Failpoints>(&mut self.ready) {
                break;
            }
            let is_own = |delivered: &&Delivered| delivered.position.origin == self.me;
            self.own_ready += self.ready.range(before..).filter(is_own).count();
            for (from, message) in self.branches.release(self.merger.delivered()) {
                self.take_result(from, message)?;
            }
        }
        self.gateway.delivered(self.merger.delivered());
        Ok(())
    }

    /// Hands an epoch of this partition on: to the own merger and to the other partitions.
    fn dispatch(&mut self, closed: ClosedBatch, term: u64, outbox: &mut Outbox) {
        let ClosedBatch { epoch, parts, own, whole, held_back: _ } = closed;
        for (index, ordered) in whole.iter().enumerate() {
            let position = Position { epoch, origin: self.me, index: index as u32 };
            self.gateway.ordered(position, ordered);
        }
        if self.effects.executed.is_some() {
            let indexed = whole.into_iter().enumerate().map(|(index, ordered)| (index as u32, ordered));
            outbox.trace.closed.push((epoch, indexed.collect()));
        }
        self.log.dispatched = epoch;
        self.merger.receive(self.me, epoch, term, own);
        self.settle_claims(epoch);
        for (partition, transactions) in parts.into_iter().enumerate() {
            let partition = PartitionId(partition as u16);
            let skipped = E::Failpoints::on(Failpoint::SkipEmptyBatch) && transactions.is_empty();
            if partition != self.me && !skipped {
                let load = Load { backlog: self.backlog(), ..self.sequencer.throttle.load() };
                self.say(partition, epoch, Message::Batch { epoch, term, load, transactions }, outbox);
            }
        }
    }

    /// Tells the leader of an epoch that the other partitions have closed and this one has not.
    fn ask_to_follow(&mut self, outbox: &mut Outbox) {
        let epoch = self.sequencer.peers_closed();
        if self.gateway.leads() || epoch <= self.log.dispatched {
            return;
        }
        let Some(leader) = self.leader() else { return };
        if self.log.followed != Some((leader.replica, epoch)) {
            self.log.followed = Some((leader.replica, epoch));
            self.send(leader, Message::Follow(epoch), outbox);
        }
    }
}

/// Whether a batch is a reason for another checkpoint: what the database orders for itself is none. An empty one is part of an epoch in which
/// other partitions may have something.
fn calls_for_checkpoint(batch: &[Ordered]) -> bool {
    batch.is_empty() || batch.iter().any(|ordered| !ordered.request.is_own())
}

/// Whether the cluster that this node knows has places for all members of its group.
fn check_places(membership: &Membership, replicas: u16) -> Result<(), Fatal> {
    let Membership { voters, outgoing, learners, .. } = membership;
    let highest = [voters.last(), outgoing.last(), learners.last()].into_iter().flatten().max();
    match highest {
        Some(unknown) if unknown.0 >= replicas => Err(Fatal::Log(format!(
            "the replication group has {unknown}, and the cluster file of this process has {replicas} replicas only: start it \
             with the present cluster file"
        ))),
        _ => Ok(()),
    }
}
