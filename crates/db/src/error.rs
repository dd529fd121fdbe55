//! Errors, by what the caller must do.

use crate::data::DataError;
use crate::position::Position;

/// Why a call had no result. Each variant tells the caller what to do.
///
/// A request that ends with [`Error::Aborted`], [`Error::Invalid`] or [`Error::Exceeds`] was decided in the global order, or refused before
/// it entered; either way it had no effect. The same input gives the same error on every replica.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Error {
    /// The procedure's own logic decided to abort. Nothing was written. Part of the result, not of the system's mood.
    #[error("aborted: {0}")]
    Aborted(String),
    /// The input or the procedure is wrong: fix it; retrying gives the same answer.
    #[error("invalid: {0}")]
    Invalid(String),
    /// A limit is reached for now: wait and send the same request again.
    #[error("busy: {0}; wait and send the request again")]
    Busy(String),
    /// The keys that the transaction needs changed each time between reconnaissance and execution. Nothing was written: make a
    /// new request of it later.
    #[error("footprint changed under every restart that is allowed; make a new request of it later")]
    Contended,
    /// The request's number was acknowledged by its own client before: its result is gone. A mistake of the client.
    #[error("request {0} was acknowledged before, its result is no longer kept; use a new sequence number")]
    Acknowledged(u64),
    /// The database is shutting down or out of reach. Unless the message says otherwise the request may have taken effect or may
    /// yet: look before making a new one of it.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The call is wrong in that it needs more than one transaction may have: retrying gives the same answer, a smaller call, or one that
    /// declares ranges, may not.
    #[error("invalid: {1}")]
    Exceeds(Limit, String),
    /// What is to be read is the state at a position where no snapshot is open: it was closed, or has ended as the node through which it was
    /// opened began another life or was not heard of for long; or this node never had it, as it began at a later checkpoint.
    #[error("there is no snapshot open at {0}: open one")]
    NotOpen(Position),
}

/// What a call needs too much of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Limit {
    /// Keys and ranges of its footprint, or rounds and rows to find them.
    Footprint,
    /// Bytes that are read.
    Reads,
    /// Bytes that are written.
    Writes,
    /// Bytes of the result.
    Result,
}

impl Error {
    /// Bytes of its own text.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Error::Aborted(text)
            | Error::Invalid(text)
            | Error::Busy(text)
            | Error::Unavailable(text)
            | Error::Exceeds(_, text) => text.len(),
            Error::Contended | Error::Acknowledged(_) | Error::NotOpen(_) => 0,
        }
    }
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Error {
        match error.limit() {
            Some(limit) => Error::Exceeds(limit, error.to_string()),
            None => Error::Invalid(error.to_string()),
        }
    }
}

/// What ends a call: its encoded result, or why there is none.
pub type Outcome = Result<bytes::Bytes, Error>;

/// Why a node must stop: going on would make it differ from others.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fatal {
    /// A peer's read results do not fit the transaction.
    #[error(
        "malformed read results from {0}: that node runs another version or schema; install the same on all nodes"
    )]
    MalformedReads(crate::position::PartitionId),
    /// A node of the cluster runs another engine.
    #[error("{0} says what no node with this engine says: run one engine on all nodes")]
    OtherEngine(crate::position::NodeId),
    /// The log of the replication group cannot be used.
    #[error("the log cannot be used: {0}")]
    Log(String),
    /// A batch that this node had handed on before a majority had it was lost with its leadership (asynchronous replication).
    #[error(
        "entry {index} of the log was executed here and then overwritten by another leader's: this node must start again from \
         its checkpoint"
    )]
    Overwritten {
        /// The first entry that is another one now.
        index: u64,
    },
    /// A batch of another partition that this node had executed was lost with a leader there (asynchronous replication).
    #[error(
        "a batch of {epoch} or before was executed here and then lost with another partition's leader: this node must start \
         again from its checkpoint"
    )]
    Superseded {
        /// The epoch at which it was noticed.
        epoch: crate::position::Epoch,
    },
    /// The node has to go on from a later checkpoint, of another replica or its own, which is on its disk.
    #[error("this node must start again from the checkpoint at the end of {epoch}, which is on its disk")]
    Installed {
        /// The epoch.
        epoch: crate::position::Epoch,
    },
    /// This replica has written something else than the others.
    #[error(
        "what this replica has written through the end of {epoch} has digest {own}, and a majority of its group has {others}: \
         it has diverged. Do not use its data; find out why (other hardware, another build), then replace the replica"
    )]
    Diverged {
        /// The epoch.
        epoch: crate::position::Epoch,
        /// The digest of this replica.
        own: crate::hash::Digest,
        /// The digest of the others.
        others: crate::hash::Digest,
    },
    /// A node that has recovered needs read results of the past that are no longer kept here.
    #[error(
        "{subscriber} has recovered and needs what was sent to it after {after}, which is no longer kept here: this node \
         must start again too, and replay its own log from its checkpoint"
    )]
    Unserved {
        /// The node that has recovered.
        subscriber: crate::position::NodeId,
        /// The last epoch of which it needs nothing.
        after: crate::position::Epoch,
    },
    /// An ordered transaction cannot be placed here, though its origin could.
    #[error(
        "transaction at {position} cannot be executed here: {error}; install the same procedures and schema on all nodes"
    )]
    Unexecutable {
        /// The transaction.
        position: Position,
        /// What is wrong with it.
        error: Error,
    },
}

impl Fatal {
    /// Whether a node that is made again from its disk can go on. Its driver does that, and resets the node's links.
    pub fn asks_for_restart(&self) -> bool {
        match self {
            Fatal::Overwritten { .. }
            | Fatal::Superseded { .. }
            | Fatal::Installed { .. }
            | Fatal::Unserved { .. } => true,
            Fatal::MalformedReads(_)
            | Fatal::OtherEngine(_)
            | Fatal::Log(_)
            | Fatal::Diverged { .. }
            | Fatal::Unexecutable { .. } => false,
        }
    }
}
