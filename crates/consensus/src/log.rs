//! What a replicated log is: the trait, what goes in, and the effects that come out.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::record::RecordError;

/// Index after which the log of every new group begins. Whoever joins later has a log that begins at 0, is behind that start,
/// and therefore gets a checkpoint: a replica can not take part with a membership that it has only been told by hand.
pub const FOUNDING_INDEX: u64 = 1;

/// Term at which the log of every new group begins.
pub const FOUNDING_TERM: u64 = 1;

/// Most replicas that a membership may name.
pub const REPLICAS_MAX: usize = 31;

/// Longest payload that a log takes with the usual options, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Number of a replica within its replication group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ReplicaId(pub u16);

impl ReplicaId {
    /// The number as an index into arrays of replicas.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// What a replica may do in its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It leads: it may propose once it is ready.
    Leader {
        /// The term in which it leads; no other replica leads in the same one.
        term: u64,
        /// Whether everything that was agreed on before this term has been handed out here.
        ready: bool,
    },
    /// It does not lead.
    Follower {
        /// Who leads, as far as is known here.
        leader: Option<ReplicaId>,
    },
}

impl Role {
    /// Whether the replica leads and may propose.
    pub fn may_propose(self) -> bool {
        matches!(self, Role::Leader { ready: true, .. })
    }
}

/// Who belongs to a replication group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Membership {
    /// Replicas whose majority decides. Ascending.
    pub voters: Vec<ReplicaId>,
    /// While a change is under way, the voters before it, whose majority is needed too (joint consensus); else empty.
    /// Ascending.
    pub outgoing: Vec<ReplicaId>,
    /// Replicas that get the log and do not vote. Ascending.
    pub learners: Vec<ReplicaId>,
    /// Outgoing voters that become learners when the change is done. Ascending.
    pub learners_next: Vec<ReplicaId>,
}

impl Membership {
    /// A group of these voters, with no change under way.
    pub fn of_voters(voters: impl IntoIterator<Item = ReplicaId>) -> Membership {
        let mut voters: Vec<ReplicaId> = voters.into_iter().collect();
        voters.sort_unstable();
        voters.dedup();
        Membership { voters, ..Membership::default() }
    }

    /// Whether a change is under way: decisions need a majority of both the old and the new voters.
    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether the replica's vote counts.
    pub fn is_voter(&self, replica: ReplicaId) -> bool {
        self.voters.contains(&replica) || self.outgoing.contains(&replica)
    }

    /// Whether the replica belongs to the group.
    pub fn contains(&self, replica: ReplicaId) -> bool {
        self.is_voter(replica) || self.learners.contains(&replica)
    }
}

/// Where a log begins: the position of the checkpoint that stands for everything before.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LogStart {
    /// Index of the last entry that the checkpoint covers.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The membership as of that entry.
    pub membership: Membership,
}

impl LogStart {
    /// The start of a new group's log.
    pub fn founding(membership: Membership) -> LogStart {
        LogStart { index: FOUNDING_INDEX, term: FOUNDING_TERM, membership }
    }
}

/// When a leader hands out the entries that it proposed (Calvin §3.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HandOut {
    /// When a majority has them durably: what is handed out is never lost. Synchronous replication.
    #[default]
    AfterMajority,
    /// When they are durable at the leader. Asynchronous replication: what is handed out may be lost with its leader, which
    /// is then told by [`LogEffects::overwritten`].
    AfterLocalSync,
}

/// A sequence of payloads on which the replicas of a group agree.
///
/// The driver calls any of the methods that bring something in, then [`advance`](ReplicatedLog::advance), and does what the
/// effects say. Indexes number the entries of the log from 1; entries of the log itself (barriers, changes of membership)
/// have indexes too, so those of payloads ascend with gaps.
pub trait ReplicatedLog: Send {
    /// Tells the time in microseconds since an arbitrary start. It never goes back; elections and heartbeats depend on it.
    fn tick(&mut self, now: u64);

    /// Appends a payload to the log. Only a leader that is ready may. Accepted is not committed: the entry may still be lost
    /// with its leadership, and whoever proposed it looks for it among what is handed out.
    ///
    /// # Errors
    /// The payload was not taken if this replica may not propose, too much is in flight, or the payload is empty or too large.
    fn propose(&mut self, payload: Bytes) -> Result<(), ProposeError>;

    /// Takes a message that another replica's log gave to its driver. Messages may be lost, doubled and reordered.
    ///
    /// # Errors
    /// The message is not one of this log's; it was ignored.
    ///
    /// # Panics
    /// If the message proves that replicas have committed different entries: this replica must not go on.
    fn receive(&mut self, from: ReplicaId, message: &[u8]) -> Result<(), MalformedMessage>;

    /// What was asked to be persisted, through this number, is durable.
    ///
    /// # Panics
    /// If the number has not been given out: the driver would claim durability of what it has never seen.
    fn persisted(&mut self, number: u64);

    /// Moves on, and adds what is to be done to the effects. Called after any of the others; may be called again until it
    /// gives nothing. What one call adds is limited, except for records and messages, which the limits of proposals bound.
    fn advance(&mut self, effects: &mut LogEffects);

    /// What this replica may do. A leader is ready when the first entry of its term, a barrier, is committed, and everything
    /// before it has been handed out.
    fn role(&self) -> Role;

    /// When [`tick`](ReplicatedLog::tick) is wanted at the latest, in its time; none if this log does not depend on time.
    fn deadline(&self) -> Option<u64>;

    /// Number of payloads proposed here that are not yet committed.
    fn in_flight(&self) -> usize;

    /// Says that a checkpoint covers the entries through this index: they need not be kept in memory, nor be sent to
    /// followers; one that needs them is named in [`LogEffects::send_snapshot`]. An index beyond what is committed and handed
    /// out counts as the last one that is. Entries that no checkpoint covers are all kept in memory: how many there can be is
    /// for the driver to limit, by the distance of its checkpoints.
    ///
    /// On disk, the records go by segments: see [`restatement`](ReplicatedLog::restatement).
    fn compact(&mut self, index: u64);

    /// Records that must be durable, after all that [`advance`](ReplicatedLog::advance) has given, before old segments of the
    /// log on disk are removed. They say anew what has no later record: the log's start and its term, vote and commit index.
    ///
    /// Entries are not stated anew. A driver notes for each segment the highest [`Persist::index_max`] within it, and removes
    /// segments from the oldest on as long as that is at most the index of [`LogStatus::start`]. Whatever is after the start
    /// is then in a segment that remains.
    fn restatement(&self) -> Vec<Bytes>;

    /// Position, term and membership that a checkpoint through this index must carry; none unless the log begins at or before
    /// the index, and it is committed and handed out.
    fn start_at(&self, index: u64) -> Option<LogStart>;

    /// This replica's state has been replaced by the checkpoint with this position: hand-out goes on after it. The checkpoint
    /// is durable already; the log's own records of it come with the next [`advance`](ReplicatedLog::advance).
    ///
    /// It may lie before what has been handed out, as long as the log still has what comes after: the entries are then handed
    /// out anew. That is how a replica goes back when entries that it had been handed were overwritten.
    ///
    /// # Errors
    /// The log can not go on from there, and nothing has changed.
    fn snapshot_installed(&mut self, start: LogStart) -> Result<(), SnapshotError>;

    /// Asks the other replica to lead, if this one leads and the other one votes. Proposals are refused until it does, or an
    /// election timeout has passed in vain.
    fn transfer_leadership(&mut self, to: ReplicaId);

    /// Changes who belongs to the group, by joint consensus. Whoever is named in neither list leaves. It is the caller who
    /// takes care that a new replica first is a learner, and becomes a voter when it has caught up
    /// ([`LogStatus::followers`]).
    ///
    /// # Errors
    /// Nothing has been proposed if this replica may not propose, the lists are no membership, or a change is under way.
    fn change_membership(
        &mut self,
        voters: &[ReplicaId],
        learners: &[ReplicaId],
    ) -> Result<(), MembershipError>;

    /// When its leader hands out.
    fn hand_out(&self) -> HandOut;

    /// Who belongs to the group, by what is committed here.
    fn membership(&self) -> &Membership;

    /// Where things stand.
    fn status(&self) -> LogStatus;
}

/// What the driver of a log is to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogEffects {
    /// Messages to other replicas. They may be sent at once, and may be lost, doubled and reordered.
    pub messages: Vec<(ReplicaId, Bytes)>,
    /// Records to append to the log on disk, in this order and after those given before.
    pub persist: Option<Persist>,
    /// Entries to execute: each once, indexes ascending.
    pub committed: Vec<Committed>,
    /// Followers that need a checkpoint, since the log no longer begins early enough for them. The driver transfers one,
    /// whatever way it likes, and the follower tells its log by [`ReplicatedLog::snapshot_installed`], unless
    /// [`LogStatus::committed`] has come as far there in the meantime. Said again as long as it has not helped; a driver that
    /// is already transferring ignores it.
    pub send_snapshot: Vec<SnapshotRequest>,
    /// First index of entries that had been handed out and have been overwritten by another leader's; only with
    /// [`HandOut::AfterLocalSync`]. The database must go back to before that index: see
    /// [`ReplicatedLog::snapshot_installed`]. Until it has, nothing more is handed out.
    pub overwritten: Option<u64>,
}

impl LogEffects {
    /// Adds records to those that are to be persisted: they become one unit with the newer number.
    pub(crate) fn add_persist(&mut self, newer: Persist) {
        match &mut self.persist {
            None => self.persist = Some(newer),
            Some(persist) => {
                persist.number = newer.number;
                persist.records.extend(newer.records);
                persist.must_sync |= newer.must_sync;
                persist.index_max = persist.index_max.max(newer.index_max);
            }
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.persist.is_none()
            && self.committed.is_empty()
            && self.send_snapshot.is_empty()
            && self.overwritten.is_none()
    }
}

/// Records to make durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Persist {
    /// To be given back by [`ReplicatedLog::persisted`]; numbers ascend by one.
    pub number: u64,
    /// Encoded [`LogRecord`](crate::LogRecord)s.
    pub records: Vec<Bytes>,
    /// Whether anything depends on these records being on the disk. If not, they may be reported as persisted once they are
    /// written, without waiting for the disk; in the order of numbers all the same.
    pub must_sync: bool,
    /// The highest index among the entries in the records; none if there is no entry.
    pub index_max: Option<u64>,
}

/// An entry on which the group agrees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// Its index in the log.
    pub index: u64,
    /// The term in which it was proposed.
    pub term: u64,
    /// What was proposed.
    pub payload: Bytes,
}

/// A follower that needs a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotRequest {
    /// Who needs it.
    pub to: ReplicaId,
    /// The least index that it must cover.
    pub index_min: u64,
}

/// Where a log stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogStatus {
    /// The term.
    pub term: u64,
    /// The log begins after this index.
    pub start: u64,
    /// Entries through this index are committed, as far as is known here.
    pub committed: u64,
    /// Entries through this index have been handed out, or needed no handing out.
    pub handed_out: u64,
    /// Entries through this index are durable here.
    pub persisted: u64,
    /// Index of the last entry.
    pub last: u64,
    /// If this replica leads, the others.
    pub followers: Vec<FollowerStatus>,
}

/// Where another replica stands, as its leader knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FollowerStatus {
    /// The replica.
    pub replica: ReplicaId,
    /// Entries through this index are durable there.
    pub matched: u64,
    /// Whether it waits for a checkpoint.
    pub needs_snapshot: bool,
    /// Whether it has been heard of within the last election timeout.
    pub is_active: bool,
}

/// Why a payload was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProposeError {
    /// This replica does not lead, or is not ready to.
    #[error("this replica does not lead its group now: send the request to the leader{}", leader.map(|leader| format!(", {leader}")).unwrap_or_default())]
    NotLeader {
        /// Who does, as far as is known here.
        leader: Option<ReplicaId>,
    },
    /// The limit of what may be in flight is reached.
    #[error(
        "{bytes} bytes wait for the group's agreement, which is the limit: try again when some are committed"
    )]
    Full {
        /// Bytes in flight.
        bytes: usize,
    },
    /// The payload is larger than any may be.
    #[error("a payload of {bytes} bytes is over the limit of {bytes_max}: split it")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// Empty payloads are barriers of the log itself.
    #[error("an empty payload can not be proposed: it would not be handed out")]
    Empty,
}

/// A message that no log of this version has sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message from {from} is not one of the replicated log and was ignored: {reason}")]
pub struct MalformedMessage {
    /// Who sent it.
    pub from: ReplicaId,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a change of the membership was not proposed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MembershipError {
    /// This replica does not lead, or is not ready to.
    #[error("this replica does not lead its group now: ask the leader{}", leader.map(|leader| format!(", {leader}")).unwrap_or_default())]
    NotLeader {
        /// Who does, as far as is known here.
        leader: Option<ReplicaId>,
    },
    /// One change at a time.
    #[error("a change of the membership is under way: try again when it is done")]
    UnderWay,
    /// The lists make no membership.
    #[error("no membership: {0}")]
    Invalid(&'static str),
    /// The log can not do this.
    #[error(
        "a log without replication has one member for ever: restart the replica with a replicated log first"
    )]
    Unreplicated,
}

/// Why a checkpoint can not become the start of a log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The log no longer has what comes after it.
    #[error(
        "the checkpoint ends at index {index}, before the log begins at {start}: take a newer checkpoint"
    )]
    TooOld {
        /// Last index of the checkpoint.
        index: u64,
        /// The log's start.
        start: u64,
    },
    /// A leader has the newest state there is.
    #[error("a leader's state is not replaced by a checkpoint: transfer the leadership first")]
    Leading,
    /// The checkpoint is of a group to which this replica does not belong.
    #[error(
        "the membership of the checkpoint at index {index} does not name this replica: add it to the group first"
    )]
    NotMember {
        /// Last index of the checkpoint.
        index: u64,
    },
    /// It contradicts what the group agreed on.
    #[error(
        "the checkpoint at index {index} has term {found}, the committed log has {expected}: it is of another group"
    )]
    Contradiction {
        /// Last index of the checkpoint.
        index: u64,
        /// Its term.
        found: u64,
        /// The term of the entry in the log.
        expected: u64,
    },
    /// There is nobody to get it from.
    #[error(
        "a log without replication takes no checkpoints from others beyond its end, {last}: this one ends at {index}"
    )]
    Unreplicated {
        /// Last index of the checkpoint.
        index: u64,
        /// Last index of the log.
        last: u64,
    },
}

/// Why a log can not be made again from its records.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecoverError {
    /// A record can not be read.
    #[error("record {ordinal} of the log can not be read: {error}")]
    Record {
        /// Number of the record, from 0.
        ordinal: u64,
        /// What is wrong with it.
        error: RecordError,
    },
    /// Entries are missing between two records.
    #[error("the log has entry {found} where {expected} should be: put back the missing segments")]
    Gap {
        /// The index that should have come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// The log does not say where it begins.
    #[error("the log has {records} records and no start: put back its oldest segment")]
    NoStart {
        /// Number of records read.
        records: u64,
    },
    /// The checkpoint ends before the log begins, or after it ends.
    #[error(
        "the checkpoint ends at index {checkpoint}, the log has {start} to {last}: put back the files that are \
         missing in this directory"
    )]
    Checkpoint {
        /// Last index that the checkpoint covers.
        checkpoint: u64,
        /// The log begins after this index.
        start: u64,
        /// Last index of the log.
        last: u64,
    },
    /// The log was cut after a checkpoint, and none is given.
    #[error(
        "the log begins after entry {start}, and no checkpoint is marked as the one to start from: put back the files that \
         are missing in this directory: a checkpoint, and its mark of the same number whose name ends in .stable"
    )]
    NoCheckpoint {
        /// The log begins after this index.
        start: u64,
    },
    /// What was committed is no longer there.
    #[error(
        "entries through {committed} were committed and the log ends at {last}: put back its newest \
         segments"
    )]
    Lost {
        /// The commit index that was recorded.
        committed: u64,
        /// Last index of the log.
        last: u64,
    },
    /// The records are of a group that this log can not be part of.
    #[error("the log is of another group: {0}")]
    WrongGroup(String),
    /// The options contradict each other.
    #[error("the options of the replicated log are not valid: {0}")]
    Options(String),
}
