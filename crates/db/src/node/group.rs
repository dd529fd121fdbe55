//! Who belongs to the node's replication group, who leads it, and how far each member is: for operators.

use ordain_consensus::{LogStatus, Membership, MembershipError, ReplicatedLog, Role};
use serde::{Deserialize, Serialize};

use super::Node;
use crate::engine::Engine;
use crate::error::{Error, Outcome};
use crate::position::ReplicaId;

/// What a node tells about its replication group. Only the leader knows how far the others are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupStatus {
    /// The replica of the node that tells this.
    pub replica: ReplicaId,
    /// Who leads, as far as the node knows.
    pub leader: Option<ReplicaId>,
    /// The term of leadership that the node has heard of.
    pub term: u64,
    /// The node's log begins after this index.
    pub start: u64,
    /// Entries through this index are agreed on, as far as the node knows.
    pub committed: u64,
    /// Index of the last entry of its log.
    pub last: u64,
    /// Replicas whose majority decides. Ascending.
    pub voters: Vec<ReplicaId>,
    /// While a change of the membership is under way, the voters before it; else empty.
    pub outgoing: Vec<ReplicaId>,
    /// Replicas that get the log and do not vote. Ascending.
    pub learners: Vec<ReplicaId>,
    /// If the node leads, where the others are. Ascending.
    pub followers: Vec<FollowerGroupStatus>,
}

/// Where another replica stands, as its leader knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FollowerGroupStatus {
    /// The replica.
    pub replica: ReplicaId,
    /// Entries through this index are durable there.
    pub matched: u64,
    /// Whether it is so far behind that it gets a checkpoint.
    pub needs_checkpoint: bool,
    /// Whether it has been heard of within the last election timeout.
    pub is_active: bool,
}

/// What a replica tells about its group.
pub(super) fn group_status(log: &dyn ReplicatedLog, replica: ReplicaId) -> GroupStatus {
    let LogStatus { term, start, committed, last, followers, .. } = log.status();
    let Membership { voters, outgoing, learners, .. } = log.membership().clone();
    let leader = match log.role() {
        Role::Leader { .. } => Some(replica),
        Role::Follower { leader } => leader,
    };
    let follower = |follower: ordain_consensus::FollowerStatus| FollowerGroupStatus {
        replica: follower.replica,
        matched: follower.matched,
        needs_checkpoint: follower.needs_snapshot,
        is_active: follower.is_active,
    };
    let followers = followers.into_iter().map(follower).collect();
    GroupStatus { replica, leader, term, start, committed, last, voters, outgoing, learners, followers }
}

impl<E: Engine> Node<E> {
    /// What the node tells about its group; `None` without a log.
    pub(super) fn group_status(&self) -> Option<GroupStatus> {
        self.log.replicated.as_deref().map(|log| group_status(log, self.id.replica))
    }

    /// Proposes that from now on these replicas belong to the group, if that is not so already. That it is so, the
    /// [`GroupStatus`] tells in time.
    ///
    /// # Errors
    /// When this node does not lead, or the change cannot be made now or at all.
    pub(super) fn change_membership(&mut self, voters: &[ReplicaId], learners: &[ReplicaId]) -> Outcome {
        let Some(log) = &mut self.log.replicated else {
            return Err(Error::Invalid("this node keeps no log, so it has no replicas".to_owned()));
        };
        if let Some(unknown) = voters.iter().chain(learners).find(|replica| replica.0 >= self.replicas) {
            let known = self.replicas;
            let problem = format!("the cluster has {known} replicas, numbered from 0: there is no {unknown}");
            return Err(Error::Invalid(problem));
        }
        let membership = log.membership();
        let same = membership.voters == voters && membership.learners == learners && !membership.is_joint();
        if same && log.role().may_propose() {
            return Ok(Default::default());
        }
        match log.change_membership(voters, learners) {
            Ok(()) => Ok(Default::default()),
            Err(error @ MembershipError::Invalid(_)) => Err(Error::Invalid(error.to_string())),
            Err(error) => Err(Error::Unavailable(error.to_string())),
        }
    }

    /// Lets the follower lead that is furthest, since this node is about to stop.
    pub(super) fn hand_over_leadership(&mut self) {
        let Some(log) = &mut self.log.replicated else { return };
        let LogStatus { followers, .. } = log.status();
        let membership = log.membership();
        let voters = followers.into_iter().filter(|follower| membership.voters.contains(&follower.replica));
        let successor = voters.filter(|follower| follower.is_active).max_by_key(|follower| follower.matched);
        if let Some(successor) = successor {
            log.transfer_leadership(successor.replica);
        }
    }

    /// The cluster has places for so many replicas from now on. It never has fewer.
    pub(super) fn grow(&mut self, replicas: u16) {
        self.replicas = self.replicas.max(replicas);
        self.routes.grow(self.replicas);
    }
}
