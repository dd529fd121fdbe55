//! Changes of the membership, by joint consensus.

use std::cmp::Reverse;

use ::raft::StateRole;
use ::raft::eraftpb::{Entry, EntryType, Message, MessageType};
use protobuf::Message as _;

use crate::log::{MembershipError, REPLICAS_MAX, ReplicaId, ReplicatedLog};

use super::RaftLog;
use super::conversion::{change, change_of, id_of, membership, replica_of};

impl RaftLog {
    /// Lets the library append entries to the leader's log. The caller has seen to it that this replica may propose.
    pub(super) fn step_proposal(&mut self, entries: Vec<Entry>) {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = id_of(self.options.replica);
        message.set_entries(entries.into());
        self.node.raft.step(message).expect("a leader that does not hand over takes proposals");
    }

    pub(super) fn propose_membership(
        &mut self,
        voters: &[ReplicaId],
        learners: &[ReplicaId],
    ) -> Result<(), MembershipError> {
        if !self.role().may_propose() {
            let is_leader = self.node.raft.state == StateRole::Leader;
            return Err(MembershipError::NotLeader { leader: self.leader().filter(|_| !is_leader) });
        }
        validate(voters, learners)?;
        if self.membership.is_joint() || self.node.raft.has_pending_conf() {
            return Err(MembershipError::UnderWay);
        }
        let change = change(&self.membership, voters, learners);
        if change.get_changes().is_empty() {
            return Err(MembershipError::Invalid("it is what it was"));
        }
        let mut entry = Entry::default();
        entry.set_entry_type(EntryType::EntryConfChangeV2);
        entry.data = change.write_to_bytes().expect("a change of few members can be encoded").into();
        self.append_proposals();
        self.step_proposal(vec![entry]);
        self.observe();
        Ok(())
    }

    /// Lets a committed change take effect.
    pub(super) fn apply_membership(&mut self, entry: &Entry) {
        let change = change_of(entry).expect("a change was validated before it entered the log");
        let state = self.node.apply_conf_change(&change);
        let state = state.expect("a change of the membership was proposed to a membership that can take it");
        let after = membership(&state);
        self.admissions.change(entry.index, &self.membership, &after);
        self.membership = after;
        self.history.push_back((entry.index, self.membership.clone()));
    }

    /// The index of the change since which a replica belongs to the group, as far as the log tells; else 0. A checkpoint from
    /// before would tell it that it does not.
    pub(super) fn member_since(&self, replica: ReplicaId) -> u64 {
        let mut since = 0;
        let mut was_member = self.node.store().start().membership.contains(replica);
        for (index, membership) in &self.history {
            let is_member = membership.contains(replica);
            if is_member && !was_member {
                since = *index;
            }
            was_member = is_member;
        }
        since
    }

    /// A leader that no longer votes hands over to the voter that is furthest, and leads no longer. What it has said before
    /// tells the others that the change is committed.
    pub(super) fn step_down_if_removed(&mut self) {
        let own = self.options.replica;
        if self.node.raft.state != StateRole::Leader || self.membership.is_voter(own) {
            return;
        }
        let raft = &mut self.node.raft;
        let followers = raft.prs().iter().filter(|(id, _)| {
            replica_of(**id).is_some_and(|replica| self.membership.voters.contains(&replica))
        });
        let furthest =
            followers.max_by_key(|(id, progress)| (progress.matched, Reverse(**id))).map(|(id, _)| *id);
        if let Some(id) = furthest {
            raft.send_timeout_now(id);
        }
        raft.become_follower(raft.term, 0);
    }
}

/// Whether the lists make a membership.
pub(super) fn validate(voters: &[ReplicaId], learners: &[ReplicaId]) -> Result<(), MembershipError> {
    if voters.is_empty() {
        return Err(MembershipError::Invalid("a group needs a voter"));
    }
    let mut all: Vec<_> = voters.iter().chain(learners).collect();
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(MembershipError::Invalid("a replica is named twice"));
    }
    if all.len() > REPLICAS_MAX {
        return Err(MembershipError::Invalid("a group has at most 31 replicas"));
    }
    if all.iter().any(|replica| replica.0 == u16::MAX) {
        return Err(MembershipError::Invalid("65535 is no replica's number"));
    }
    Ok(())
}
