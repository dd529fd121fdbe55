//! Which stay of a replica in its group an answer is of.
//!
//! A replica that has lost its disk leaves the group and is added again, empty. An acknowledgement that it gave before may still
//! be on its way; a leader that took it would believe the empty replica to have those entries. So a leader names, in what it sends
//! to a follower, the change of the membership by which that one was admitted, and a follower repeats it in its answers; answers
//! of an earlier stay are dropped.
//!
//! Only the leader and term to whom an answer is given can take it for news, as others ignore it. So what a leader has seen since
//! it leads is enough: who was a member before is of admission 0.

use std::collections::BTreeMap;

use ::raft::eraftpb::{Message, MessageType};

use crate::log::{Membership, ReplicaId};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Admissions {
    /// While this replica leads: the index of the last change of the membership by which each other one was admitted since then.
    given: BTreeMap<ReplicaId, u64>,
    /// While it follows: the term of the last leader that was heard, and the admission that it names.
    own: (u64, u64),
}

/// Whether a message is one that leaders send to followers, which these answer.
fn is_leaders(kind: MessageType) -> bool {
    matches!(kind, MessageType::MsgAppend | MessageType::MsgHeartbeat)
}

/// Whether a message answers one of a leader.
fn is_answer(kind: MessageType) -> bool {
    matches!(kind, MessageType::MsgAppendResponse | MessageType::MsgHeartbeatResponse)
}

impl Admissions {
    /// This replica begins to lead.
    pub(super) fn lead(&mut self) {
        self.given.clear();
    }

    /// The membership changes at an index of the log.
    pub(super) fn change(&mut self, index: u64, before: &Membership, after: &Membership) {
        let members = after.voters.iter().chain(&after.learners);
        self.given.extend(members.filter(|member| !before.contains(**member)).map(|member| (*member, index)));
    }

    /// What to send with a message.
    pub(super) fn of(&self, to: ReplicaId, message: &Message) -> u64 {
        match message.get_msg_type() {
            kind if is_leaders(kind) => self.given.get(&to).copied().unwrap_or_default(),
            kind if is_answer(kind) && self.own.0 == message.term => self.own.1,
            _ => 0,
        }
    }

    /// Takes what came with a message of a term that is not over. Whether the message is to be dropped: it is an answer of an
    /// earlier stay.
    pub(super) fn take(&mut self, from: ReplicaId, message: &Message, admission: u64, leads: bool) -> bool {
        match message.get_msg_type() {
            kind if is_leaders(kind) => {
                // What is heard late is of an earlier admission.
                self.own = self.own.max((message.term, admission));
                false
            }
            kind if is_answer(kind) && leads => {
                admission != self.given.get(&from).copied().unwrap_or_default()
            }
            _ => false,
        }
    }
}
