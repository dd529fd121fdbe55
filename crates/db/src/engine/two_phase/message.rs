//! What coordinators and participants say to each other, and what they log.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::deadlock::Edge;
use crate::error::Outcome;
use crate::kept::decode_whole;
use crate::message::{Reconnoitred, RequestId};
use crate::position::{PartitionId, Position};
use crate::procedure::ProcedureId;

/// Identity of one attempt at a transaction. Ascends by age: that of the first attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TransactionId {
    /// The coordinator's clock when the transaction was begun first.
    pub started: u64,
    /// The partition that coordinates it: the home of its client.
    pub coordinator: PartitionId,
    /// How often the coordinator had started by then: what it says after a crash is of another life.
    pub life: u32,
    /// Attempts before this one, all of which were victims of deadlocks or of failures.
    pub attempt: u32,
}

impl std::fmt::Display for TransactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t{}{}", self.started, self.coordinator)?;
        if self.attempt == 0 { Ok(()) } else { write!(f, ".{}", self.attempt) }
    }
}

/// A call, as participants get and logs hold it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Statement {
    /// The request that it serves.
    pub request: RequestId,
    /// The client has the answers to all its lower sequence numbers.
    pub acknowledged: u64,
    /// The procedure.
    pub procedure: ProcedureId,
    /// Its encoded arguments.
    pub arguments: Bytes,
    /// The encoded footprint, as far as it has grown; `None` if the procedure declares it.
    pub footprint: Option<Bytes>,
}

/// The reads of each partition, in the form of [`remote_reads`](crate::execution::remote_reads).
pub type Reads = Vec<(PartitionId, Bytes)>;

/// What is said of a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TwoPhaseMessage {
    /// Coordinator to participant: lock what the footprint has there, and send what it reads there.
    Lock {
        /// The transaction.
        id: TransactionId,
        /// What it does.
        statement: Statement,
        /// How often the footprint has grown: it comes back in the answer.
        round: u32,
    },
    /// Participant to coordinator: all locks are held.
    Granted {
        /// The transaction.
        id: TransactionId,
        /// Which request for locks this answers.
        round: u32,
        /// What was read, after the locks were held.
        reads: Bytes,
        /// The participant's clock.
        clock: u64,
    },
    /// Coordinator to participant: be able to commit, whatever happens.
    Prepare {
        /// The transaction.
        id: TransactionId,
        /// What the others have read: with that, a participant that writes executes it alike.
        reads: Reads,
    },
    /// Participant to coordinator: it is prepared. Said again when it may be lost.
    Vote {
        /// The transaction.
        id: TransactionId,
        /// The participant's clock.
        clock: u64,
    },
    /// Coordinator to participant: how it ends.
    Decide {
        /// The transaction.
        id: TransactionId,
        /// Its position if it commits.
        position: Option<Position>,
        /// Without a commit protocol: what the others have read.
        reads: Option<Reads>,
    },
    /// Participant to coordinator: the decision is durable here.
    Done {
        /// The transaction.
        id: TransactionId,
    },
    /// Participant or detector to coordinator: the transaction is the victim of a deadlock.
    Victim {
        /// The transaction.
        id: TransactionId,
    },
    /// To the detector: who waits for whom at the sender.
    Waits {
        /// The edges.
        edges: Vec<Edge>,
    },
    /// From the detector: it has what the receiver said of who waits, and may be told more.
    WaitsReceived,
}

/// What is said to open a snapshot of all partitions at one position.
///
/// All partitions hear of the position before any opens the snapshot. So one that hears of a later position first, from a partition
/// that has opened it, opens it before it does anything at that position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SnapshotMessage {
    /// There will be a snapshot.
    Announce {
        /// Its position.
        at: Position,
    },
    /// The sender knows of it.
    Known {
        /// Its position.
        at: Position,
    },
    /// The sender's clock is beyond that position: choose another one.
    Late {
        /// The position.
        at: Position,
        /// The sender's clock.
        clock: u64,
    },
    /// All know of it: open it.
    Open {
        /// Its position.
        at: Position,
    },
    /// It can be read at the sender: all that may come before it has.
    Ready {
        /// Its position.
        at: Position,
    },
}

impl TwoPhaseMessage {
    /// The clock, or the clock of the position, that is told with it.
    pub fn clock(&self) -> u64 {
        match self {
            TwoPhaseMessage::Granted { clock, .. } | TwoPhaseMessage::Vote { clock, .. } => *clock,
            TwoPhaseMessage::Decide { position, .. } => position.map_or(0, |position| position.epoch.0),
            _ => 0,
        }
    }

    /// The bytes of payload in it, about.
    pub fn payload_bytes(&self) -> usize {
        let of = |reads: &Reads| reads.iter().map(|(_, reads)| reads.len()).sum::<usize>();
        match self {
            TwoPhaseMessage::Lock { statement, .. } => statement.payload_bytes(),
            TwoPhaseMessage::Granted { reads, .. } => reads.len(),
            TwoPhaseMessage::Prepare { reads, .. } => of(reads),
            TwoPhaseMessage::Decide { reads, .. } => reads.as_ref().map_or(0, of),
            TwoPhaseMessage::Waits { edges } => size_of::<Edge>() * edges.len(),
            TwoPhaseMessage::Vote { .. } | TwoPhaseMessage::Done { .. } | TwoPhaseMessage::Victim { .. } => {
                size_of::<TransactionId>()
            }
            TwoPhaseMessage::WaitsReceived => 0,
        }
    }
}

impl std::fmt::Display for TwoPhaseMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TwoPhaseMessage::Lock { id, round, .. } => write!(f, "asks for the locks of {id}, round {round}"),
            TwoPhaseMessage::Granted { id, round, .. } => write!(f, "has the locks of {id}, round {round}"),
            TwoPhaseMessage::Prepare { id, .. } => write!(f, "asks to prepare {id}"),
            TwoPhaseMessage::Vote { id, .. } => write!(f, "is prepared for {id}"),
            TwoPhaseMessage::Decide { id, position: Some(position), .. } => {
                write!(f, "commits {id} at {position}")
            }
            TwoPhaseMessage::Decide { id, position: None, .. } => write!(f, "gives up {id}"),
            TwoPhaseMessage::Done { id } => write!(f, "knows that {id} is committed"),
            TwoPhaseMessage::Victim { id } => write!(f, "names the victim {id}"),
            TwoPhaseMessage::Waits { edges } if edges.is_empty() => write!(f, "says that nobody waits"),
            TwoPhaseMessage::Waits { edges } => {
                let edges: Vec<String> =
                    edges.iter().map(|edge| format!("{} for {}", edge.waiting, edge.earlier)).collect();
                write!(f, "says who waits: {}", edges.join(", "))
            }
            TwoPhaseMessage::WaitsReceived => write!(f, "has heard who waits"),
        }
    }
}

impl std::fmt::Display for SnapshotMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnapshotMessage::Announce { at } => write!(f, "announces the snapshot {at}"),
            SnapshotMessage::Known { at } => write!(f, "knows of the snapshot {at}"),
            SnapshotMessage::Late { at, clock } => {
                write!(f, "is too late for the snapshot {at}: its clock is {clock}")
            }
            SnapshotMessage::Open { at } => write!(f, "opens the snapshot {at}"),
            SnapshotMessage::Ready { at } => write!(f, "has all that the snapshot {at} sees"),
        }
    }
}

impl Statement {
    fn payload_bytes(&self) -> usize {
        self.arguments.len() + self.footprint.as_ref().map_or(0, Bytes::len)
    }
}

impl TwoPhaseRecord {
    /// The records of a payload of the log.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(payload: &[u8]) -> Result<Vec<TwoPhaseRecord>, String> {
        decode_whole(payload).map_err(|error| format!("it holds no records: {error}"))
    }

    /// The bytes of payload in it, about.
    pub fn payload_bytes(&self) -> usize {
        let of = |reads: &Reads| reads.iter().map(|(_, reads)| reads.len()).sum::<usize>();
        match self {
            TwoPhaseRecord::Local { statement, .. } => statement.payload_bytes(),
            TwoPhaseRecord::Prepared { statement, reads, .. }
            | TwoPhaseRecord::Committed { statement, reads, .. } => statement.payload_bytes() + of(reads),
            TwoPhaseRecord::Started
            | TwoPhaseRecord::Snapshot { .. }
            | TwoPhaseRecord::Decided { .. }
            | TwoPhaseRecord::Forgotten { .. } => 0,
        }
    }
}

/// What a partition logs. What a record says happens when it is in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TwoPhaseRecord {
    /// The partition has started.
    Started,
    /// A transaction of this partition alone is committed, or aborted by its own logic.
    Local {
        /// Its position.
        position: Position,
        /// What it does.
        statement: Statement,
    },
    /// A participant can commit.
    Prepared {
        /// The transaction.
        id: TransactionId,
        /// What it does.
        statement: Statement,
        /// What the others have read.
        reads: Reads,
    },
    /// A participant has heard how a prepared transaction ends.
    Decided {
        /// The transaction.
        id: TransactionId,
        /// Its position if it commits.
        position: Option<Position>,
    },
    /// A coordinator has decided that a transaction commits. That one does not is not logged: what is not found was aborted.
    Committed {
        /// The transaction.
        id: TransactionId,
        /// Its position.
        position: Position,
        /// What it does.
        statement: Statement,
        /// What was read elsewhere.
        reads: Reads,
        /// Who is to be told, and has not said that it knows. Ascending.
        participants: Vec<PartitionId>,
    },
    /// A snapshot was opened: no later position is below it.
    Snapshot {
        /// Its position.
        at: Position,
        /// The request that opened it, and below which number its client has all answers, where that client is at home here.
        request: Option<(RequestId, u64)>,
    },
    /// All participants know of the decision.
    Forgotten {
        /// The transaction.
        id: TransactionId,
    },
}

/// A request that has come to its end at its coordinator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The request.
    pub request: RequestId,
    /// The client has the answers to all its lower sequence numbers.
    pub acknowledged: u64,
    /// The procedure.
    pub procedure: ProcedureId,
    /// Its encoded arguments.
    pub arguments: Bytes,
    /// The footprint that it was locked by, if the procedure does not declare it.
    pub reconnoitred: Option<Reconnoitred>,
    /// The position of its transaction.
    pub position: Position,
    /// The answer.
    pub outcome: Outcome,
}
