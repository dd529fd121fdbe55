//! The replicated log: agreement on one sequence of opaque payloads within a replication group (Calvin §3.1.1).
//!
//! A replication group holds all replicas of one partition. Its sequencers agree on one sequence of batches; this crate is
//! that agreement and knows nothing of what a batch holds. Two implementations stand behind one trait, [`ReplicatedLog`]:
//!
//! - [`SoloLog`](solo::SoloLog): a group of one, where an entry is committed when it is durable;
//! - [`RaftLog`](raft::RaftLog): a group of any size, by the Raft algorithm.
//!
//! Both write the same records, so that a group of one can grow.
//!
//! Everything here is a step function: time and messages come in, effects go out, nothing blocks. The driver writes, sends
//! and hands out what [`LogEffects`] tells it. What must not be sent before something is durable is held back inside the log,
//! not by the driver.

pub mod disk_log;
pub mod files;
pub mod log;
pub mod raft;
pub mod record;
pub mod solo;

pub use log::{
    Committed, FOUNDING_INDEX, FollowerStatus, HandOut, LogEffects, LogStart, LogStatus, MalformedMessage,
    Membership, MembershipError, PAYLOAD_BYTES_MAX, Persist, ProposeError, RecoverError, ReplicaId,
    ReplicatedLog, Role, SnapshotError, SnapshotRequest,
};
pub use record::{EntryKind, LogRecord, RecordError};
