//! Everything that is said: between clients and nodes, and between the nodes of a cluster.
//!
//! | message | from | to | protocol |
//! |---|---|---|---|
//! | [`ClientRequest`] | client | any node | front door |
//! | [`Reply`] | node where the client entered | client | front door |
//! | [`Message::Forward`], [`Message::Replies`] | entry node ↔ the client's home | | front door |
//! | [`Message::Batch`] | sequencer | every other node | ordering (Calvin §3.1) |
//! | [`Message::Reads`] | participant with local reads | every other active participant | execution, phase 3 (Calvin §3.2) |
//! | [`Message::Reports`] | the one reporting participant | the origin | execution, end |
//! | [`Message::SnapshotReady`], [`Message::CloseSnapshot`] | node ↔ origin | | snapshots |
//! | [`Message::Fetch`], [`Message::Fetched`] | gateway ↔ owner | | reconnaissance (Calvin §3.2.1) |
//! | [`Message::Consensus`], [`Message::Digest`] | within a replication group | | replication (Calvin §3.1.1) |
//! | [`Message::Follow`] | sequencer, or a follower of one | every other sequencer, its leader | epochs in step (CAL-21) |
//! | [`Message::Epochs`] | the epoch manager ↔ every sequencer | | authorisations for epochs (Fan and Golab §II), if there is a manager |
//! | [`Message::Subscribe`], [`Message::Unsubscribe`], [`Message::Serving`], [`Message::Unserved`], [`Message::Superseded`] | receiver of a partition's messages ↔ sender | | failover and recovery (CAL-101, CAL-109) |
//! | [`Message::CheckpointWritten`] | every node of a replica | every other | checkpoints (Calvin §5) |
//! | [`Message::CheckpointTurnNeeded`] | leader of a group | leader of the first partition | checkpoints by one replica at a time |
//! | [`Message::CheckpointTurnEnded`] | within a replication group | | checkpoints by one replica at a time |
//! | [`Message::CheckpointPassed`] | every node | every node of the first partition | the same, when one of the two has started again |
//! | [`Message::StandIn`] | a leader that executes nothing | another replica of its group | the same; it answers with [`Message::Reports`] |
//! | [`Message::CheckpointWanted`], [`Message::CheckpointNeeded`], [`Message::CheckpointOffer`], [`Message::CheckpointFetch`], [`Message::CheckpointPiece`] | within a replication group | | a replica that is too far behind |
//! | [`Message::TwoPhase`], [`Message::TwoPhaseSnapshot`] | coordinator ↔ participant | | the engine `two-phase` alone (Ren et al. §3.1.2) |
//! | [`Message::Load`] | every node that throttles | every other node | | the same engine (DET-42) |
//! | [`Message::Alive`] | every node | every node of another partition | failure detection (CAL-106, CAL-109) |

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::data::{Direction, Key, KeyRange, Rows};
use crate::engine::two_phase::message::{SnapshotMessage, TwoPhaseMessage};
use crate::error::{Error, Outcome};
use crate::position::{Entry, Epoch, PartitionId, Position, ReplicaId};
use crate::procedure::{Footprint, ProcedureId};
use crate::sequencer::authority::EpochMessage;
use crate::sequencer::{Basis, Load};

/// Identity of a client session. All requests of a client are ordered by its home partition, wherever they enter: there it
/// is known whether a request was seen before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ClientId {
    /// The partition whose sequencer orders the client's requests.
    pub home: PartitionId,
    /// Unique among the clients of the cluster, over restarts of the client too. The highest number is no client's: see
    /// [`RequestId::own`].
    pub number: u64,
}

/// Identity of a request: one takes effect once, however often it is sent (CAL-29).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RequestId {
    /// The client.
    pub client: ClientId,
    /// The client's own number for the request, ascending; gaps are allowed.
    pub sequence: u64,
}

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ClientRequest {
    /// Takes part in the global order and takes effect once.
    Ordered(Request),
    /// One page of a range on this node's partition as of an open snapshot. Replied to with an encoded [`Page`].
    Scan {
        /// Who asks, and the number that comes back in the reply.
        request: RequestId,
        /// The snapshot's position.
        at: Position,
        /// The keys.
        range: KeyRange,
        /// From which end on.
        direction: Direction,
        /// Most rows wanted.
        rows: u32,
    },
    /// Ends a snapshot on all nodes. Has no reply.
    CloseSnapshot(Position),
    /// Asks for an encoded [`crate::node::Status`] of this node.
    Status {
        /// Who asks, and the number that comes back in the reply.
        request: RequestId,
        /// Whether to compute the state digest, which visits every row.
        digest: bool,
    },
    /// Asks the leader of this partition's replication group to propose who belongs to it from now on, by joint consensus. The
    /// answer, which is empty, says that it is proposed, or is so already; [`crate::node::GroupStatus`] tells when it is so.
    ChangeMembership {
        /// Who asks, and the number that comes back in the reply.
        request: RequestId,
        /// Whose majority decides. Ascending.
        voters: Vec<ReplicaId>,
        /// Who gets the log and does not vote. Ascending.
        learners: Vec<ReplicaId>,
    },
    /// Runs a procedure that only reads over this node's rows as of an open snapshot. Replied to with its encoded result. It
    /// fails if the procedure writes, or reads a row that another partition holds.
    Read {
        /// Who asks, and the number that comes back in the reply.
        request: RequestId,
        /// The snapshot's position.
        at: Position,
        /// The procedure.
        procedure: ProcedureId,
        /// Its encoded arguments.
        arguments: Bytes,
    },
    /// Asks for the encoded [`crate::node::Details`] of this node.
    Details {
        /// Who asks, and the number that comes back in the reply.
        request: RequestId,
    },
}

impl RequestId {
    /// The identity of what a partition orders by itself. It belongs to no session and is not answered.
    pub fn own(home: PartitionId) -> RequestId {
        RequestId { client: ClientId { home, number: u64::MAX }, sequence: 0 }
    }

    /// Whether a partition ordered this by itself.
    pub fn is_own(&self) -> bool {
        self.client.number == u64::MAX
    }
}

impl ClientRequest {
    /// The identity that comes back in the reply; `None` for what has no reply.
    pub fn id(&self) -> Option<RequestId> {
        match self {
            ClientRequest::Ordered(request) => Some(request.id),
            ClientRequest::Scan { request, .. }
            | ClientRequest::Read { request, .. }
            | ClientRequest::Status { request, .. }
            | ClientRequest::Details { request }
            | ClientRequest::ChangeMembership { request, .. } => Some(*request),
            ClientRequest::CloseSnapshot(_) => None,
        }
    }
}

/// A request that takes part in the global order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The request's identity.
    pub id: RequestId,
    /// All of this client's sequence numbers below have been answered; their results need not be kept.
    pub acknowledged: u64,
    /// What to do.
    pub operation: Operation,
}

/// What an ordered request does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Operation {
    /// Runs a procedure.
    Call {
        /// The procedure.
        procedure: ProcedureId,
        /// Its encoded arguments.
        arguments: Bytes,
    },
    /// Opens a snapshot of the whole cluster. The result is its encoded [`Position`]: the request's own, or the end of the last epoch
    /// where the node that gets it holds all there is and gives it none.
    OpenSnapshot,
    /// Orders a checkpoint of the whole cluster. The result is the encoded [`Epoch`] at whose end it is taken; when a replica has
    /// it on all its disks, [`Status::stable`](crate::node::Status::stable) is that epoch or a later one.
    Checkpoint,
    /// Runs a procedure, and is answered before that: with its encoded [`Position`], from which nothing can move it any more, or
    /// with an error if it has none. See [`early`](crate::gateway::early).
    CallEarly {
        /// The procedure.
        procedure: ProcedureId,
        /// Its encoded arguments.
        arguments: Bytes,
    },
    /// Asks what became of an early call of the same session, which its client has not acknowledged. The answer is that of the call
    /// in the ordinary way, when there is one. It has no place in the order itself.
    AskOutcome {
        /// The call's number, lower than the own one.
        of: u64,
    },
    /// Runs a procedure that only reads on the newest state. Where the node that gets it holds all there is, it is answered at once and
    /// has no place in the order; anywhere else it is a call.
    Read {
        /// The procedure.
        procedure: ProcedureId,
        /// Its encoded arguments.
        arguments: Bytes,
    },
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The request.
    pub request: RequestId,
    /// What came of it.
    pub outcome: Outcome,
}

/// A page of rows of one partition.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Page {
    /// Encoded keys and rows in the order of keys that was asked for.
    pub rows: Rows,
    /// Whether the range has more rows on this partition.
    pub more: bool,
}

/// A transaction as the order holds it: all that its execution depends on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ordered {
    /// The request that it serves.
    pub request: RequestId,
    /// The client has the answers to all its lower sequence numbers.
    pub acknowledged: u64,
    /// What to do.
    pub work: Work,
}

/// A transaction at its position, ready for execution.
#[derive(Debug)]
pub struct Delivered {
    /// Its place in the global order.
    pub position: Position,
    /// The transaction.
    pub ordered: Ordered,
    /// Its footprint, when it was ordered here and is known already.
    pub footprint: Option<Box<Footprint>>,
}

/// How far a node has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Reached {
    /// It has handed its partition's batches on through this epoch.
    pub handed_on: Epoch,
    /// It has got the batches of all partitions through this epoch.
    pub delivered: Epoch,
    /// It has executed all transactions through this epoch.
    pub executed: Epoch,
}

/// What reconnaissance found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reconnoitred {
    /// The encoded footprint.
    pub footprint: Bytes,
    /// Earlier attempts at the same request, all of which missed their footprint.
    pub restarts: u32,
}

/// What a position of the order does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Runs a procedure.
    Call {
        /// The procedure.
        procedure: ProcedureId,
        /// Its encoded arguments.
        arguments: Bytes,
        /// What reconnaissance found; `None` when the procedure declares its footprint.
        reconnoitred: Option<Reconnoitred>,
    },
    /// Opens a snapshot for a client with this entry.
    OpenSnapshot(Entry),
    /// Ends a call whose keys cannot be found with this error.
    GiveUp(Error),
    /// Ends the snapshot at the position. In the order, so that replicas and replays keep the same versions.
    CloseSnapshot(Position),
    /// Every partition takes a checkpoint of the state at the end of this position's epoch (CAL-91, CAL-99): at all replicas, or
    /// at one (CAL-87).
    Checkpoint(Option<ReplicaId>),
}

/// What became of an ordered transaction, from the one participant that reports it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The transaction's place in the order: a request may have several attempts, and a report may come again.
    pub position: Position,
    /// The request.
    pub request: RequestId,
    /// The verdict, alike at every active participant.
    pub verdict: Verdict,
}

/// What execution decided.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Writes were applied; the encoded result.
    Committed(Bytes),
    /// Nothing was written.
    Failed(Error),
    /// The reconnoitred footprint did not hold; nothing was written; the gateway starts over (CAL-64).
    FootprintMissed,
}

/// What reconnaissance wants to know of another partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Want {
    /// The row of a key.
    Key(Key),
    /// The first rows of a range.
    Range {
        /// The keys.
        range: KeyRange,
        /// From which end on.
        direction: Direction,
        /// Most rows wanted.
        limit: u64,
    },
}

/// Messages between the nodes of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The part of the sender's batch that concerns the receiver; sent for every epoch, also when empty (CAL-24, CAL-25).
    Batch {
        /// The epoch.
        epoch: Epoch,
        /// The term in which the batch was proposed to the sender's replication group.
        term: u64,
        /// How the sender kept up when it handed the batch on.
        load: Load,
        /// Transactions with their index in the sender's full batch, ascending.
        transactions: Vec<(u32, Ordered)>,
    },
    /// Read results of many transactions, see [`crate::execution::remote_reads`].
    Reads {
        /// The history that they follow from.
        basis: Basis,
        /// The encoded results.
        reads: Bytes,
    },
    /// Verdicts for the receiver's clients.
    Reports {
        /// The history that they follow from.
        basis: Basis,
        /// The verdicts.
        reports: Vec<Report>,
    },
    /// The sender serves reads of the snapshot at the position.
    SnapshotReady {
        /// The request that opens it.
        request: RequestId,
        /// The snapshot's position.
        at: Position,
        /// Sums up the terms of the batches of its epoch: see [`Basis`].
        lineage: u64,
    },
    /// The snapshot is no longer read: its origin orders its end.
    CloseSnapshot(Position),
    /// Requests whose client is at home at the receiver's partition.
    Forward {
        /// The node that the client is connected to: answers go there.
        entry: Entry,
        /// The requests.
        requests: Vec<Request>,
    },
    /// Answers to forwarded requests.
    Replies(Vec<Reply>),
    /// Asks for recent rows, without isolation.
    Fetch {
        /// The asker's number for the reconnaissance run.
        ticket: u64,
        /// What is wanted.
        want: Want,
    },
    /// Answers [`Message::Fetch`].
    Fetched {
        /// The asker's number for the reconnaissance run.
        ticket: u64,
        /// What was wanted.
        want: Want,
        /// The rows found with their keys; for a key none or one.
        rows: Vec<(Key, Bytes)>,
    },
    /// What the engine [`two_phase`](crate::engine::two_phase) says.
    TwoPhase(TwoPhaseMessage),
    /// What nodes of that engine say to open a snapshot.
    TwoPhaseSnapshot(SnapshotMessage),
    /// A message of the replication group's consensus; see [`ordain_consensus`].
    Consensus(Bytes),
    /// The sender has closed the epoch, or its replica waits for it: the receiver closes it too, or asks its leader to.
    Follow(Epoch),
    /// From now on the receiver serves the sender: it sends all that concerns epochs after this one, again or for the first
    /// time, and then what is new.
    Subscribe {
        /// The last epoch of which the sender needs nothing more.
        after: Epoch,
        /// The last epoch that was delivered to the sender.
        delivered: Epoch,
        /// The term of the receiver's batch of that epoch, as the sender knows it.
        term: u64,
    },
    /// Answers [`Message::Subscribe`]: what the receiver needs comes now. The sender agrees on what the receiver has delivered, or
    /// does not have it yet.
    Serving {
        /// The last epoch that was delivered to the receiver, as it said.
        delivered: Epoch,
    },
    /// The receiver has executed a batch of the sender's partition that was lost with a leader (CAL-35): the batch of the
    /// epoch on which the group has agreed is another one.
    Superseded {
        /// The epoch.
        epoch: Epoch,
        /// The term of the batch on which the group has agreed.
        term: u64,
    },
    /// Ends what [`Message::Subscribe`] began.
    Unsubscribe,
    /// Answers [`Message::Subscribe`] when what it asks for is no longer kept.
    Unserved {
        /// The newest epoch at whose end all nodes of the sender's replica have a checkpoint, with its lineage.
        stable: (Epoch, u64),
        /// It keeps all that it said of epochs after this one.
        through: Epoch,
    },
    /// The sender is there, and so far.
    Alive(Reached),
    /// The sender has a checkpoint at the end of the epoch on its disk.
    CheckpointWritten {
        /// The epoch.
        epoch: Epoch,
        /// Sums up the terms of the batches of the epoch.
        lineage: u64,
    },
    /// A follower needs a checkpoint that reaches this index of the log, and the sender, who leads the group, has none: the
    /// receiver offers its own.
    CheckpointWanted {
        /// The follower.
        by: ReplicaId,
        /// The index.
        index_min: u64,
    },
    /// The sender's replica has completed a checkpoint, or has failed to: the next one may be ordered. With the end of the epoch of
    /// its newest complete one.
    CheckpointTurnEnded(Epoch),
    /// A replica of a group needs a newer checkpoint than there is: one of these takes its turn, if none of them does already. They
    /// are the replicas that are whole, as far as the leader of that group knows. Ascending.
    CheckpointTurnNeeded(Vec<ReplicaId>),
    /// The sender leads its group, and executes nothing for now, or less than it should: the receiver tells it the verdicts that
    /// the sender's clients wait for, for a while.
    StandIn,
    /// The sender has a checkpoint at the end of the epoch, which the receiver may fetch.
    CheckpointOffer(Epoch),
    /// The sender has executed epochs through this one, and nobody keeps what it needs to go on: it needs a later checkpoint.
    CheckpointNeeded(Epoch),
    /// Asks for a piece of the receiver's checkpoint at the end of the epoch.
    CheckpointFetch {
        /// The epoch.
        epoch: Epoch,
        /// The place of the piece in bytes.
        offset: u64,
    },
    /// A piece of a checkpoint.
    CheckpointPiece {
        /// The epoch.
        epoch: Epoch,
        /// The place of the piece in bytes.
        offset: u64,
        /// The piece.
        bytes: Bytes,
        /// Whether nothing follows.
        last: bool,
    },
    /// The digest of all that the sender has written through the end of the epoch.
    Digest {
        /// The epoch, and by which terms its batches were proposed.
        basis: Basis,
        /// The digest.
        digest: u128,
    },
    /// How the sender keeps up, where no batches say so.
    Load {
        /// The same as a batch would say.
        load: Load,
        /// How many calls the receiver may have under way for which it needs the sender, if that lags; else the highest number.
        room: u64,
    },
    /// An authorisation for an epoch, or what gives one back: see [`authority`](crate::sequencer::authority).
    Epochs(EpochMessage),
    /// One of the two has started again, and what the other was told of turns may be lost: no checkpoint through this epoch is still
    /// to be taken by the sender, so the turns of its replica through there are over.
    CheckpointPassed(Epoch),
}

impl Message {
    /// Bytes of payload, for statistics: keys, rows, arguments and results, without headers.
    pub fn payload_bytes(&self) -> usize {
        const HEADER: usize = 16;
        HEADER
            + match self {
                Message::Batch { transactions, .. } => {
                    transactions.iter().map(|(_, ordered)| HEADER + ordered.payload_bytes()).sum()
                }
                Message::Reads { reads, .. } => reads.len(),
                Message::Reports { reports, .. } => reports.iter().map(Report::payload_bytes).sum(),
                Message::Forward { requests, .. } => {
                    requests.iter().map(|request| request.payload_bytes()).sum()
                }
                Message::Replies(replies) => replies.iter().map(Reply::payload_bytes).sum(),
                Message::SnapshotReady { .. } | Message::CloseSnapshot(_) => HEADER,
                Message::Fetch { .. } | Message::Subscribe { .. } | Message::Unsubscribe => HEADER,
                Message::Follow(_) | Message::Unserved { .. } | Message::Superseded { .. } => HEADER,
                Message::Alive(_) | Message::CheckpointWritten { .. } | Message::Digest { .. } => HEADER,
                Message::CheckpointTurnEnded(_) | Message::CheckpointPassed(_) | Message::StandIn => HEADER,
                Message::CheckpointTurnNeeded(able) => 2 * able.len(),
                Message::CheckpointNeeded(_) | Message::CheckpointOffer(_) => HEADER,
                Message::CheckpointWanted { .. } | Message::Serving { .. } => HEADER,
                Message::CheckpointFetch { .. } => HEADER,
                Message::TwoPhase(message) => message.payload_bytes(),
                Message::TwoPhaseSnapshot(_) | Message::Load { .. } | Message::Epochs(_) => HEADER,
                Message::CheckpointPiece { bytes, .. } | Message::Consensus(bytes) => bytes.len(),
                Message::Fetched { rows, .. } => {
                    rows.iter().map(|(key, row)| key.bytes().len() + row.len()).sum()
                }
            }
    }
}

impl ClientRequest {
    /// Bytes of arguments, which the limits of queues count.
    pub fn payload_bytes(&self) -> usize {
        match self {
            ClientRequest::Ordered(request) => request.payload_bytes(),
            ClientRequest::Read { arguments, .. } => arguments.len(),
            ClientRequest::ChangeMembership { voters, learners, .. } => 2 * (voters.len() + learners.len()),
            ClientRequest::Scan { .. }
            | ClientRequest::CloseSnapshot(_)
            | ClientRequest::Status { .. }
            | ClientRequest::Details { .. } => 0,
        }
    }
}

impl Ordered {
    /// Bytes of arguments and footprint, which the limits of a batch count.
    pub fn payload_bytes(&self) -> usize {
        match &self.work {
            Work::Call { arguments, reconnoitred, .. } => {
                arguments.len() + reconnoitred.as_ref().map_or(0, |found| found.footprint.len())
            }
            Work::OpenSnapshot(_) | Work::GiveUp(_) | Work::CloseSnapshot(_) | Work::Checkpoint(_) => 0,
        }
    }
}

impl Operation {
    /// The procedure that it calls, with its encoded arguments, if it does; however it is answered.
    pub fn call(&self) -> Option<(ProcedureId, &Bytes)> {
        match self {
            Operation::Call { procedure, arguments }
            | Operation::CallEarly { procedure, arguments }
            | Operation::Read { procedure, arguments } => Some((*procedure, arguments)),
            Operation::OpenSnapshot | Operation::Checkpoint | Operation::AskOutcome { .. } => None,
        }
    }
}

impl Request {
    fn payload_bytes(&self) -> usize {
        self.operation.call().map_or(0, |(_, arguments)| arguments.len())
    }
}

impl Report {
    /// Whether the transaction missed its footprint.
    pub(crate) fn has_missed(&self) -> bool {
        matches!(self.verdict, Verdict::FootprintMissed)
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        24 + match &self.verdict {
            Verdict::Committed(result) => result.len(),
            Verdict::Failed(error) => error.text_bytes(),
            Verdict::FootprintMissed => 0,
        }
    }
}

impl Reply {
    /// Bytes of the result.
    pub fn payload_bytes(&self) -> usize {
        self.outcome.as_ref().map_or(24, |result| 24 + result.len())
    }
}
