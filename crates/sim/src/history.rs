//! What a run leaves behind for the checkers: what clients saw, and what the nodes tell of themselves.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::data::{Direction, KeyRange};
use ordain_db::engine::EngineKind;
use ordain_db::error::Outcome;
use ordain_db::execution::Executed;
use ordain_db::message::{Operation, Ordered, Page, RequestId};
use ordain_db::node::Status;
use ordain_db::position::{PartitionId, Position};
use ordain_workload::CheckLine;

use crate::time::Nanoseconds;

/// Everything that is known of a run.
///
/// What the nodes of a partition tell is that of all its replicas, in all their lives, each thing once: where they differ, it
/// is among the disagreements. What clients or other nodes saw, and what no node has in its log any more, is missing in the
/// order.
pub struct History {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// Number of partitions.
    pub partitions: u16,
    /// Whether what was executed and answered may be lost with a leader (asynchronous replication, CAL-35). Then everything here
    /// is what the nodes have told in their last lives, or what a stable checkpoint has; of the snapshots, only the last is here.
    pub may_lose: bool,
    /// Ordered requests of clients, by identity.
    pub requests: BTreeMap<RequestId, Invocation>,
    /// The order: the batches of all sequencers.
    pub log: BTreeMap<Position, Ordered>,
    /// Runs of transactions, by position: one for each active participant.
    pub executed: BTreeMap<Position, Vec<(PartitionId, Executed)>>,
    /// Snapshots that clients read.
    pub snapshots: Vec<SnapshotRead>,
    /// Pages of snapshots that sessions of clients read. Empty where what was seen may be lost.
    pub pages: Vec<PageRead>,
    /// What clients with sessions of SQL learnt; `None` where there are none.
    pub sessions: Option<Sessions>,
    /// The rows of each partition at the end.
    pub rows: Vec<BTreeMap<Bytes, Bytes>>,
    /// What one node of each partition says of itself at the end, with its digest.
    pub statuses: Vec<Status>,
    /// What replicas of a partition, or different lives of one, told differently of the same place.
    pub disagreements: Vec<String>,
    /// Highest values of gauges, with their limits.
    pub gauges: Vec<Gauge>,
    /// The workload's conditions over the last snapshot. Empty when there was none.
    pub conditions: Vec<CheckLine>,
    /// Whether everything that was asked was answered, and all nodes came to rest. Where they did not, a reason.
    pub unfinished: Option<String>,
}

/// A request as its client knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invocation {
    /// What was asked.
    pub operation: Operation,
    /// When it was sent first.
    pub invoked_at: Nanoseconds,
    /// Each answer that came, with its time; several when answers were given again or duplicated.
    pub replies: Vec<(Nanoseconds, Outcome)>,
    /// How often it was sent.
    pub attempts: u32,
}

impl Invocation {
    /// Whether the client was told the position of its call, and nothing of what becomes of it.
    pub(crate) fn is_acknowledged_early(&self) -> bool {
        matches!(self.operation, Operation::CallEarly { .. }) && matches!(self.end(), Some((_, Ok(_))))
    }

    /// The position of a snapshot that has no place in the order.
    pub(crate) fn unordered_snapshot(&self) -> Option<Position> {
        let (Operation::OpenSnapshot, Some((_, Ok(at)))) = (&self.operation, self.end()) else { return None };
        postcard::from_bytes(at).ok().filter(|at: &Position| at.is_beyond())
    }

    /// The first answer that ended the request: [`Busy`](ordain_db::error::Error::Busy) asks to send it again.
    pub fn end(&self) -> Option<&(Nanoseconds, Outcome)> {
        self.replies.iter().find(|(_, outcome)| !matches!(outcome, Err(ordain_db::error::Error::Busy(_))))
    }
}

/// What clients were told became of early calls that were acknowledged, by the call: the end of the request that asked for it.
pub(crate) fn outcomes_of_early_calls(
    requests: &BTreeMap<RequestId, Invocation>,
) -> BTreeMap<RequestId, &(Nanoseconds, Outcome)> {
    let asked = requests.iter().filter_map(|(id, invocation)| match invocation.operation {
        Operation::AskOutcome { of } => Some((RequestId { sequence: of, ..*id }, invocation.end()?)),
        _ => None,
    });
    asked.collect()
}

/// A snapshot that a client opened and read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotRead {
    /// The request that opened it, also found in [`History::requests`].
    pub request: RequestId,
    /// Its place in the order: the snapshot has all writes of lower positions.
    pub position: Position,
    /// All rows of all partitions. Rows of replicated tables once, from partition 0.
    pub rows: BTreeMap<Bytes, Bytes>,
}

/// A page of a snapshot that a session of a client was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRead {
    /// The place of the snapshot in the order.
    pub at: Position,
    /// The partition that was asked.
    pub partition: PartitionId,
    /// The keys.
    pub range: KeyRange,
    /// From which of their ends.
    pub direction: Direction,
    /// Most rows that were wanted.
    pub rows: u32,
    /// What came.
    pub page: Page,
}

/// What clients learnt by the statements that their sessions ran, and the state in which everything ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Sessions {
    /// Each transaction of each client.
    pub observed: Vec<Observed>,
    /// The lists at the end; `None` if nobody knows that.
    pub lists: Option<BTreeMap<u32, Vec<u64>>>,
    /// What everybody must see of all accounts together.
    pub total: String,
}

/// What became of a transaction of a session, as its client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conclusion {
    /// It took place.
    Committed,
    /// It had no effect.
    Failed,
    /// Either may be.
    Unknown,
}

/// Something that a client learnt, or did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fact {
    /// It appended a number to a list.
    Appended {
        /// The list.
        list: u32,
        /// The number, which nobody else appends.
        number: u64,
        /// Whether that stays if the transaction commits.
        stays: bool,
    },
    /// It was shown a list.
    List {
        /// The list.
        list: u32,
        /// Its numbers, what the transaction has appended itself among them.
        numbers: Vec<u64>,
    },
    /// It was shown all accounts together.
    Total(String),
    /// It drew a number of a sequence.
    Ticket(i64),
}

/// One transaction of a session, as its client knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    /// The client.
    pub client: u64,
    /// When it was begun.
    pub began: Nanoseconds,
    /// When the client was told its end.
    pub ended: Nanoseconds,
    /// What became of it.
    pub conclusion: Conclusion,
    /// In the order in which the client learnt it.
    pub facts: Vec<Fact>,
    /// Errors by which the database contradicts itself.
    pub contradictions: Vec<String>,
    /// All that the client was told, for people.
    pub told: String,
}

/// The highest value that a queue had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gauge {
    /// Which queue of which machine.
    pub name: String,
    /// The highest length that was seen.
    pub highest: u64,
    /// The highest length that is allowed.
    pub limit: u64,
}
