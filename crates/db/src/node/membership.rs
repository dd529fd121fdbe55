//! The steps by which replicas come and go: what to propose to a group next, by what its leader tells.
//!
//! A new replica first gets the log and does not vote (a *learner*); it votes when it has caught up. One that leaves first votes
//! no longer, and then leaves. Each step finds out what is so already: so whoever was interrupted begins again, and goes on where
//! it was.

use super::group::GroupStatus;
use crate::position::ReplicaId;

/// A learner that lacks at most this many entries of the log may vote: it gets them in a moment.
pub const LAG_MAX: u64 = 64;

/// Who is to belong to a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    /// Replicas whose majority decides. Ascending.
    pub voters: Vec<ReplicaId>,
    /// Replicas that get the log and do not vote. Ascending.
    pub learners: Vec<ReplicaId>,
}

/// How far a learner is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The leader does not know it yet.
    Unknown,
    /// It is not heard of.
    Silent,
    /// It gets a checkpoint.
    GetsCheckpoint,
    /// It has the entries of the log through an index, and too few of them.
    Lags(u64),
    /// It has caught up.
    CaughtUp,
}

fn with(replicas: &[ReplicaId], replica: ReplicaId) -> Vec<ReplicaId> {
    let mut all: Vec<ReplicaId> = replicas.iter().copied().chain([replica]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn without(replicas: &[ReplicaId], replica: ReplicaId) -> Vec<ReplicaId> {
    replicas.iter().copied().filter(|other| *other != replica).collect()
}

impl GroupStatus {
    fn has(&self, replica: ReplicaId) -> bool {
        self.voters.contains(&replica) || self.learners.contains(&replica)
    }

    /// The voters, but for one.
    pub fn voters_without(&self, replica: ReplicaId) -> Vec<ReplicaId> {
        without(&self.voters, replica)
    }

    /// The voters, with one in the place of another.
    pub fn voters_with(&self, new: ReplicaId, old: ReplicaId) -> Vec<ReplicaId> {
        with(&without(&self.voters, old), new)
    }

    /// What to propose for a replica to get the log; `None` where it does.
    pub fn to_learn(&self, replica: ReplicaId) -> Option<Members> {
        let members = Members { voters: self.voters.clone(), learners: with(&self.learners, replica) };
        (!self.has(replica)).then_some(members)
    }

    /// How far a replica is that gets the log.
    pub fn progress(&self, replica: ReplicaId) -> Progress {
        if self.voters.contains(&replica) {
            return Progress::CaughtUp;
        }
        match self.followers.iter().find(|follower| follower.replica == replica) {
            None => Progress::Unknown,
            Some(follower) if !follower.is_active => Progress::Silent,
            Some(follower) if follower.needs_checkpoint => Progress::GetsCheckpoint,
            // In a short log it lacks little although it has nothing.
            Some(follower) if follower.matched == 0 || follower.matched + LAG_MAX < self.committed => {
                Progress::Lags(follower.matched)
            }
            Some(_) => Progress::CaughtUp,
        }
    }

    /// What to propose for a replica to vote; `None` where it does.
    pub fn to_vote(&self, replica: ReplicaId) -> Option<Members> {
        let (voters, learners) = (with(&self.voters, replica), without(&self.learners, replica));
        (!self.voters.contains(&replica)).then_some(Members { voters, learners })
    }

    /// What to propose for a replica to vote in the place of another one, which may be dead; `None` where it does.
    pub fn to_swap(&self, old: ReplicaId, new: ReplicaId) -> Option<Members> {
        let voters = self.voters_with(new, old);
        let learners = without(&self.learners, new);
        match self.voters.contains(&old) {
            true => Some(Members { voters, learners: with(&learners, old) }),
            false => (!self.voters.contains(&new)).then_some(Members { voters, learners }),
        }
    }

    /// What to propose for a replica to vote no longer, and still to get the log; `None` where it does not vote.
    pub fn to_unvote(&self, replica: ReplicaId) -> Option<Members> {
        let (voters, learners) = (without(&self.voters, replica), with(&self.learners, replica));
        self.voters.contains(&replica).then_some(Members { voters, learners })
    }

    /// What to propose for a replica to leave; `None` where it has left.
    pub fn to_leave(&self, replica: ReplicaId) -> Option<Members> {
        let (voters, learners) = (without(&self.voters, replica), without(&self.learners, replica));
        self.has(replica).then_some(Members { voters, learners })
    }
}

/// Groups for tests, here and of those who change memberships.
pub mod examples {
    use super::super::group::{FollowerGroupStatus, GroupStatus};
    use crate::position::ReplicaId;

    /// Replicas by their numbers.
    pub fn replicas(numbers: &[u16]) -> Vec<ReplicaId> {
        numbers.iter().copied().map(ReplicaId).collect()
    }

    /// A follower that is there, and has the log through an index.
    pub fn follower(replica: u16, matched: u64) -> FollowerGroupStatus {
        FollowerGroupStatus { replica: ReplicaId(replica), matched, needs_checkpoint: false, is_active: true }
    }

    /// A group that replica 0 leads, with 1000 entries in its log.
    pub fn group(voters: &[u16], learners: &[u16], followers: &[FollowerGroupStatus]) -> GroupStatus {
        GroupStatus {
            replica: ReplicaId(0),
            leader: Some(ReplicaId(0)),
            term: 3,
            start: 1,
            committed: 1000,
            last: 1000,
            voters: replicas(voters),
            outgoing: Vec::new(),
            learners: replicas(learners),
            followers: followers.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::FollowerGroupStatus;
    use super::examples::{follower, group, replicas};
    use super::*;

    fn members(voters: &[u16], learners: &[u16]) -> Option<Members> {
        Some(Members { voters: replicas(voters), learners: replicas(learners) })
    }

    #[test]
    fn a_replica_learns_catches_up_and_votes() {
        let new = ReplicaId(3);
        assert_eq!(group(&[0, 1, 2], &[], &[]).to_learn(new), members(&[0, 1, 2], &[3]));
        let progress = |followers: &[FollowerGroupStatus]| group(&[0, 1, 2], &[3], followers).progress(new);
        assert_eq!(progress(&[]), Progress::Unknown);
        let silent = FollowerGroupStatus { is_active: false, ..follower(3, 0) };
        assert_eq!(progress(&[silent]), Progress::Silent);
        let behind = FollowerGroupStatus { needs_checkpoint: true, ..follower(3, 0) };
        assert_eq!(progress(&[behind]), Progress::GetsCheckpoint);
        assert_eq!(progress(&[follower(3, 1000 - LAG_MAX - 1)]), Progress::Lags(1000 - LAG_MAX - 1));
        assert_eq!(progress(&[follower(3, 1000 - LAG_MAX)]), Progress::CaughtUp);
        let short = GroupStatus { committed: 5, last: 5, ..group(&[0, 1, 2], &[3], &[follower(3, 0)]) };
        assert_eq!(short.progress(new), Progress::Lags(0), "it has nothing");
        let learns = group(&[0, 1, 2], &[3], &[]);
        assert_eq!((learns.to_learn(new), learns.to_vote(new)), (None, members(&[0, 1, 2, 3], &[])));
        let votes = group(&[0, 1, 2, 3], &[], &[]);
        assert_eq!((votes.to_learn(new), votes.to_vote(new)), (None, None));
        assert_eq!(votes.progress(new), Progress::CaughtUp);
    }

    #[test]
    fn a_replica_stops_to_vote_before_it_leaves() {
        let old = ReplicaId(0);
        assert_eq!(group(&[0, 1, 2], &[], &[]).to_unvote(old), members(&[1, 2], &[0]));
        let learns = group(&[1, 2], &[0], &[]);
        assert_eq!((learns.to_unvote(old), learns.to_leave(old)), (None, members(&[1, 2], &[])));
        assert_eq!(group(&[1, 2], &[], &[]).to_leave(old), None);
    }

    #[test]
    fn a_replica_votes_in_the_place_of_another_one() {
        let (old, new) = (ReplicaId(0), ReplicaId(3));
        let swapped = members(&[1, 2, 3], &[0]);
        assert_eq!(group(&[0, 1, 2], &[3], &[]).to_swap(old, new), swapped);
        assert_eq!(group(&[0, 1, 2, 3], &[], &[]).to_swap(old, new), swapped, "it was added before");
        assert_eq!(group(&[1, 2, 3], &[0], &[]).to_swap(old, new), None);
        let gone = members(&[1, 2, 3], &[]);
        assert_eq!(group(&[1, 2], &[3], &[]).to_swap(old, new), gone, "the old one has left already");
        assert_eq!(group(&[0], &[3], &[]).to_swap(old, new), members(&[3], &[0]));
    }
}
