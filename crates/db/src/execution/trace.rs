//! What a node can be asked to tell about its work, for checkers: see [`NodeConfiguration::trace`](crate::node::NodeConfiguration).

use bytes::Bytes;

use crate::message::{Ordered, RequestId, Verdict};
use crate::position::{Epoch, Position};

/// A key and its row; `None` where there is none.
pub type Version = (Bytes, Option<Bytes>);

/// What one step did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Trace {
    /// Batches that this node's sequencer closed, whole: each transaction with its index.
    pub closed: Vec<(Epoch, Vec<(u32, Ordered)>)>,
    /// Transactions that ran here.
    pub executed: Vec<Executed>,
}

/// One run of a transaction at an active participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executed {
    /// Its place in the order.
    pub position: Position,
    /// The request that it serves.
    pub request: RequestId,
    /// How it ended.
    pub verdict: Verdict,
    /// How much of the call that was.
    pub scope: Scope,
    /// The keys of its read set with the rows that the logic was given, remote ones included; then the rows found in its
    /// ranges. Empty when the reads could not be used.
    pub reads: Vec<Version>,
    /// The local keys that it wrote, with their new rows.
    pub writes: Vec<Version>,
}

/// How much of a call a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All of the logic, over all reads.
    Whole,
    /// The functors of local keys. Others know what a commit returns; of the reads only those of local keys are told.
    Functors,
    /// The same where nothing else is run anywhere, and a commit returns nothing.
    OnlyFunctors,
}

impl Scope {
    /// Whether all reads of the call are told.
    pub fn has_all_reads(self) -> bool {
        self == Scope::Whole
    }

    /// Whether what a commit returns is told.
    pub fn has_result(self) -> bool {
        self != Scope::Functors
    }
}
