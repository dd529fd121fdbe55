//! The log of a group of any size, by the Raft algorithm (Ongaro and Ousterhout 2014), which the library `raft` has.
//!
//! The library is a state machine too, but its contract is wide. This module narrows it to [`ReplicatedLog`]:
//!
//! - *Durability.* Whatever depends on a disk is held back here until the driver reports it, in the order in which it was
//!   given. Only a leader whose term is durable sends at once: its followers write while it writes itself (Ongaro's thesis,
//!   §10.2.1).
//! - *Chance.* The library draws election timeouts from a generator that can not be seeded. Each is replaced, before it can
//!   take effect, by a draw from the seed, the replica, the term and the attempt. Nothing else is left to chance.
//! - *Hand-out.* It is counted here and read from the entries in memory, so that a replica can go back, and a leader can hand
//!   out early ([`HandOut::AfterLocalSync`]). The library only hears of applied changes of the membership.
//! - *Checkpoints.* The library sends positions of checkpoints in messages. These are not sent: the driver is asked to
//!   transfer a checkpoint, as long as it has not helped.
//! - *Membership.* A change takes effect when it is committed, and not, as in the paper, when it is appended. That is safe
//!   only if whoever has a change in its log knows that the change before is committed. A leader proposes no change before
//!   the last one is committed, and sends its commit index with it; [recovery](RaftLog::recover) must conclude it from the
//!   log, since a commit index may be lost in a crash.
//!
//! # What the library gets wrong, and is mended here
//!
//! - A stale rejection can take a leader back to entries that the follower is known to have, which by then may be compacted
//!   (its pull request 557, not in any release). Such rejections are dropped.
//! - Its batching of messages adds entries to an empty message without looking whether they follow it; the follower would
//!   take them for others, or panic. That is switched off, and proposals are batched before the library sees them.
//! - A leader that has been removed from the group goes on until it panics. Here it hands over and steps down.
//! - A rejection from a lower term is ignored, and with it the commit index that it carries. A candidate may need just that
//!   to learn of a change of the membership that it can not be elected without: the one who rejects has left the group, and
//!   will never stand for election itself. Here rejections count in any term; they can do no harm.
//! - A replica with entries on their way to its disk must not become the leader of a group of one, nor campaign between a
//!   checkpoint and its record. Here it does not stand for election while its disk is behind.
//! - A replica that is added again, empty, is believed to have what it acknowledged before it left, if that arrives late. Here
//!   answers name the stay that they are of ([`admission`]).
//! - A group of one whose leader sends before its own vote is durable could have two leaders in one term: one before a crash
//!   and one after. Learners would notice. Here nothing is sent in a term that is not durable.
//!
//! # What is left out
//!
//! Reads by the leader without a log entry, leases, witnesses. A voter whose disk was lost must not come back as itself: it
//! could vote twice. Remove the replica from the group, and add it again, or one with another number, as a learner.

mod admission;
mod conversion;
mod entries;
mod membership;
mod options;
mod ready;
mod recovery;

use std::collections::{BTreeMap, VecDeque};

use ::raft::eraftpb::{Entry, Message, MessageType, Snapshot};
use ::raft::{Error, ProgressState, RawNode, StateRole};
use bytes::Bytes;

use crate::log::{
    FollowerStatus, HandOut, LogEffects, LogStart, LogStatus, MalformedMessage, Membership, MembershipError,
    ProposeError, ReplicaId, ReplicatedLog, Role, SnapshotError,
};
use crate::record::LogRecord;

use admission::Admissions;
use conversion::{decode_message, id_of, replica_of, snapshot_metadata};
use entries::Entries;
use options::TICKS_PER_HEARTBEAT;
use ready::Unpersisted;

pub use options::RaftOptions;

/// A leader's first entry.
#[derive(Clone, Copy)]
struct Leading {
    term: u64,
    barrier: u64,
}

/// A replicated log by the Raft algorithm. See the [module](self).
pub struct RaftLog {
    options: RaftOptions,
    node: RawNode<Entries>,
    /// The time through which ticks have been counted; none before the first.
    time: Option<u64>,
    /// Ticks counted.
    ticks: u64,
    /// How often this replica has stood for election in this life.
    attempts: u64,
    /// The membership by what is committed here.
    membership: Membership,
    /// Its changes after the start of the log: the index of each, and what it led to.
    history: VecDeque<(u64, Membership)>,
    /// Records that have not been given out yet.
    unwritten: Vec<Bytes>,
    /// The number of the last [`Persist`](crate::Persist).
    number: u64,
    /// The last number that was reported as durable.
    persisted_number: u64,
    /// What waits for the disk, oldest first.
    unpersisted: VecDeque<Unpersisted>,
    /// The term that is durable.
    durable_term: u64,
    /// Messages that waited for the disk and no longer do.
    released: Vec<(ReplicaId, Bytes)>,
    handed_out: u64,
    /// Overwritten entries that were handed out, not yet told.
    overwritten: Option<u64>,
    /// Whether the database must go back before anything is handed out.
    is_suspended: bool,
    /// Set while this replica leads.
    leading: Option<Leading>,
    /// Proposals that the library has not seen yet.
    proposed: Vec<Bytes>,
    /// Indexes and sizes of the payloads that this leader has proposed and that are not committed.
    in_flight: VecDeque<(u64, usize)>,
    in_flight_bytes: usize,
    /// Followers for which a checkpoint has been asked: the index it must cover, and the tick when it was asked for.
    asked: BTreeMap<ReplicaId, (u64, u64)>,
    /// The tick at which each replica was last heard of. The library's own mark is for the check of its quorum alone, at which it
    /// is taken back for all.
    heard: BTreeMap<ReplicaId, u64>,
    admissions: Admissions,
}

impl RaftLog {
    /// To be called after anything that may have moved the library on.
    fn observe(&mut self) {
        let raft = &mut self.node.raft;
        // The library may have drawn a timeout just now. It looks at it at the next tick at the earliest.
        raft.set_randomized_election_timeout(self.options.election_ticks(raft.term, self.attempts));
        if raft.state != StateRole::Leader {
            self.leading = None;
            self.forget_proposals();
        } else if self.leading.is_none_or(|leading| leading.term != raft.term) {
            // Nothing can have been appended since the barrier: proposals wait for it, and so do changes of the membership.
            self.leading = Some(Leading { term: raft.term, barrier: raft.raft_log.last_index() });
            self.admissions.lead();
            self.forget_proposals();
        }
        let committed = self.node.raft.raft_log.committed;
        while let Some((_, bytes)) = self.in_flight.pop_front_if(|(index, _)| *index <= committed) {
            self.in_flight_bytes -= bytes;
        }
    }

    /// What was proposed and is not committed is the next leader's business.
    fn forget_proposals(&mut self) {
        self.proposed.clear();
        self.in_flight.clear();
        self.in_flight_bytes = 0;
    }

    /// Lets the library append what was proposed, in portions that fit into a message.
    fn append_proposals(&mut self) {
        let mut portion = Vec::new();
        let mut bytes = 0;
        let mut proposed = std::mem::take(&mut self.proposed).into_iter().peekable();
        while let Some(payload) = proposed.next() {
            bytes += payload.len() as u64;
            portion.push(payload);
            let next = proposed.peek().map_or(0, |payload| payload.len() as u64);
            if proposed.peek().is_none() || bytes + next > self.options.message_bytes_max {
                self.append_portion(std::mem::take(&mut portion));
                bytes = 0;
            }
        }
    }

    fn append_portion(&mut self, portion: Vec<Bytes>) {
        let sizes: Vec<usize> = portion.iter().map(Bytes::len).collect();
        let first = self.node.raft.raft_log.last_index() + 1;
        self.step_proposal(portion.into_iter().map(|data| Entry { data, ..Entry::default() }).collect());
        self.in_flight.extend((first..).zip(sizes));
        self.observe();
    }

    /// Whether entries or a checkpoint's record are on their way to the disk.
    fn is_disk_behind(&self) -> bool {
        let log = &self.node.raft.raft_log;
        log.persisted < log.last_index()
    }

    fn one_tick(&mut self) {
        self.ticks += 1;
        let is_follower = self.node.raft.state != StateRole::Leader;
        if is_follower && self.is_disk_behind() {
            return;
        }
        self.node.tick();
        if is_follower && self.node.raft.election_elapsed == 0 {
            self.attempts += 1;
        }
        self.observe();
    }

    /// Index of the last entry that is both committed and durable here, and known to the library as applied.
    fn settled(&self) -> u64 {
        let log = &self.node.raft.raft_log;
        log.committed.min(log.persisted).min(log.applied)
    }

    fn leader(&self) -> Option<ReplicaId> {
        replica_of(self.node.raft.leader_id)
    }

    /// Whether a replica was heard of within the shortest election timeout.
    fn is_heard_of(&self, replica: ReplicaId) -> bool {
        let patience = self.options.election_ticks_min() as u64;
        self.heard.get(&replica).is_some_and(|heard| self.ticks - heard <= patience)
    }

    /// Whether a message must be dropped, or the reason why it can not be from a log of this group.
    fn screen(&self, message: &Message) -> Result<bool, String> {
        let raft = &self.node.raft;
        match message.get_msg_type() {
            // It belongs to no group before it has a checkpoint of one. It may be a voter whose disk was lost.
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
                Ok(self.node.store().start().index == 0)
            }
            MessageType::MsgTimeoutNow => Ok(self.is_disk_behind()),
            // A leader tells a follower no more than what that follower has acknowledged.
            MessageType::MsgHeartbeat if message.commit > raft.raft_log.last_index() => Err(format!(
                "entries through {} were acknowledged by this replica, whose log ends at {}: if its disk was lost, remove \
                 it from the group and add it again, empty",
                message.commit,
                raft.raft_log.last_index()
            )),
            MessageType::MsgAppendResponse
                if message.term == raft.term && raft.state == StateRole::Leader =>
            {
                if message.index > raft.raft_log.last_index() {
                    return Err(format!("it acknowledges entry {}, which does not exist", message.index));
                }
                let matched = raft.prs().get(message.from).map_or(0, |progress| progress.matched);
                Ok(message.reject && message.index.min(message.reject_hint) < matched)
            }
            _ => Ok(false),
        }
    }

    /// Makes a checkpoint beyond what is committed here the start of the library's log.
    fn restore(&mut self, start: &LogStart) {
        let raft = &self.node.raft;
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgSnapshot);
        message.to = raft.id;
        message.term = raft.term.max(start.term);
        // The library acknowledges to whoever sent it.
        message.from = if message.term == raft.term { raft.leader_id } else { 0 };
        let mut snapshot = Snapshot::default();
        snapshot.set_metadata(snapshot_metadata(start));
        message.set_snapshot(snapshot);
        self.node.raft.step(message).expect("a follower takes a checkpoint");
        self.observe();
        let committed = self.node.raft.raft_log.committed;
        assert_eq!(committed, start.index, "the checkpoint is the last that is known to be committed");
    }
}

impl ReplicatedLog for RaftLog {
    fn tick(&mut self, now: u64) {
        let tick_us = self.options.tick_us();
        let Some(time) = self.time else {
            self.time = Some(now);
            return;
        };
        let due = now.saturating_sub(time) / tick_us;
        // A longer time without a call is a pause of this process, in which messages may have piled up. It must not stand for
        // election before it has read them.
        let counted = due.min(2 * TICKS_PER_HEARTBEAT as u64);
        self.time = Some(time + due * tick_us);
        for _ in 0..counted {
            self.one_tick();
        }
    }

    fn propose(&mut self, payload: Bytes) -> Result<(), ProposeError> {
        if !self.role().may_propose() {
            let is_leader = self.node.raft.state == StateRole::Leader;
            return Err(ProposeError::NotLeader { leader: self.leader().filter(|_| !is_leader) });
        }
        let bytes = payload.len();
        if bytes == 0 {
            return Err(ProposeError::Empty);
        }
        if bytes > self.options.payload_bytes_max {
            return Err(ProposeError::TooLarge { bytes, bytes_max: self.options.payload_bytes_max });
        }
        if self.in_flight_bytes + bytes > self.options.in_flight_bytes_max {
            return Err(ProposeError::Full { bytes: self.in_flight_bytes });
        }
        self.proposed.push(payload);
        self.in_flight_bytes += bytes;
        Ok(())
    }

    fn receive(&mut self, from: ReplicaId, message: &[u8]) -> Result<(), MalformedMessage> {
        let malformed = |reason| MalformedMessage { from, reason };
        let (mut message, admission) =
            decode_message(from, self.options.replica, message).map_err(malformed)?;
        let leads = self.leading.is_some_and(|leading| leading.term == message.term);
        if self.admissions.take(from, &message, admission, leads) {
            return Ok(());
        }
        self.heard.insert(from, self.ticks);
        if self.screen(&message).map_err(malformed)? {
            return Ok(());
        }
        if message.get_msg_type() == MessageType::MsgRequestPreVoteResponse && message.reject {
            message.term = message.term.max(self.node.raft.term);
        }
        let result = match self.node.step(message) {
            // An answer from a replica that has left the group.
            Ok(()) | Err(Error::StepPeerNotFound) => Ok(()),
            Err(error) => Err(malformed(error.to_string())),
        };
        self.observe();
        result
    }

    fn persisted(&mut self, number: u64) {
        self.note_persisted(number);
    }

    fn advance(&mut self, effects: &mut LogEffects) {
        effects.messages.append(&mut self.released);
        self.append_proposals();
        self.give_records(effects);
        while self.node.has_ready() {
            self.take_ready(effects);
        }
        self.ask_for_snapshots(effects);
        if let Some(index) = self.overwritten.take() {
            effects.overwritten = Some(effects.overwritten.map_or(index, |before| before.min(index)));
        }
        self.hand_out(effects);
    }

    fn role(&self) -> Role {
        match self.leading {
            None => Role::Follower { leader: self.leader() },
            // The leader of a group of one has elected itself; a crash would make it forget, and lead in the same term again.
            Some(Leading { term, .. }) if term != self.durable_term => Role::Follower { leader: None },
            Some(Leading { term, barrier }) => {
                let is_handing_over = self.node.raft.lead_transferee.is_some();
                let ready = self.handed_out >= barrier && !is_handing_over && !self.is_suspended;
                Role::Leader { term, ready }
            }
        }
    }

    fn deadline(&self) -> Option<u64> {
        let Some(time) = self.time else { return Some(0) };
        let raft = &self.node.raft;
        let left = if raft.state == StateRole::Leader {
            raft.heartbeat_timeout().saturating_sub(raft.heartbeat_elapsed())
        } else {
            raft.randomized_election_timeout().saturating_sub(raft.election_elapsed)
        };
        Some(time + left.clamp(1, TICKS_PER_HEARTBEAT) as u64 * self.options.tick_us())
    }

    fn in_flight(&self) -> usize {
        self.proposed.len() + self.in_flight.len()
    }

    fn compact(&mut self, index: u64) {
        let Some(start) = self.start_at(index.min(self.settled()).min(self.handed_out)) else { return };
        if start.index > self.node.store().start().index {
            self.history.retain(|(changed, _)| *changed > start.index);
            self.node.mut_store().compact(start);
        }
    }

    fn restatement(&self) -> Vec<Bytes> {
        let raft = &self.node.raft;
        // What is committed and not yet given out must not be stated: other entries may still stand in its place.
        let commit = raft.raft_log.committed.min(raft.raft_log.persisted);
        let state = LogRecord::State { term: raft.term, vote: replica_of(raft.vote), commit };
        vec![LogRecord::compacted(self.node.store().start()), state.encode()]
    }

    fn start_at(&self, index: u64) -> Option<LogStart> {
        if index > self.settled().min(self.handed_out) {
            return None;
        }
        let start = self.node.store().start();
        if index == start.index {
            return Some(start.clone());
        }
        let term = self.node.store().term_at(index)?;
        let change = self.history.iter().rev().find(|(changed, _)| *changed <= index);
        let membership = change.map_or(&start.membership, |(_, membership)| membership).clone();
        Some(LogStart { index, term, membership })
    }

    fn snapshot_installed(&mut self, start: LogStart) -> Result<(), SnapshotError> {
        let index = start.index;
        let first = self.node.store().start().index;
        if index < first {
            return Err(SnapshotError::TooOld { index, start: first });
        }
        if index > self.node.raft.raft_log.committed {
            if self.leading.is_some() {
                return Err(SnapshotError::Leading);
            }
            if !start.membership.contains(self.options.replica) {
                return Err(SnapshotError::NotMember { index });
            }
            self.restore(&start);
        } else {
            let expected = self.node.raft.raft_log.term(index).unwrap_or(0);
            if expected != start.term {
                return Err(SnapshotError::Contradiction { index, found: start.term, expected });
            }
        }
        self.handed_out = index;
        self.is_suspended = false;
        self.overwritten = None;
        Ok(())
    }

    fn transfer_leadership(&mut self, to: ReplicaId) {
        // Afterwards the library takes no more.
        self.append_proposals();
        if self.leading.is_some() && to != self.options.replica && self.membership.voters.contains(&to) {
            self.node.transfer_leader(id_of(to));
            self.observe();
        }
    }

    fn change_membership(
        &mut self,
        voters: &[ReplicaId],
        learners: &[ReplicaId],
    ) -> Result<(), MembershipError> {
        self.propose_membership(voters, learners)
    }

    fn hand_out(&self) -> HandOut {
        self.options.hand_out
    }

    fn membership(&self) -> &Membership {
        &self.membership
    }

    fn status(&self) -> LogStatus {
        let raft = &self.node.raft;
        let mut followers = Vec::new();
        if self.leading.is_some() {
            let others = raft.prs().iter().filter(|(id, _)| **id != raft.id);
            followers.extend(others.filter_map(|(id, progress)| {
                let replica = replica_of(*id)?;
                Some(FollowerStatus {
                    replica,
                    matched: progress.matched,
                    needs_snapshot: progress.state == ProgressState::Snapshot,
                    is_active: self.is_heard_of(replica),
                })
            }));
            followers.sort_unstable_by_key(|follower| follower.replica);
        }
        LogStatus {
            term: raft.term,
            start: self.node.store().start().index,
            committed: raft.raft_log.committed,
            handed_out: self.handed_out,
            persisted: raft.raft_log.persisted,
            last: raft.raft_log.last_index(),
            followers,
        }
    }
}

/// Through which index a leader or follower may hand out.
fn hand_out_limit(hand_out: HandOut, leading: Option<Leading>, committed: u64, persisted: u64) -> u64 {
    match (hand_out, leading) {
        // All that is behind a committed barrier is of the leader's own term.
        (HandOut::AfterLocalSync, Some(leading)) if committed >= leading.barrier => persisted,
        _ => committed.min(persisted),
    }
}
