//! The CPU model: what a step of a node costs, by what it did.

use serde::{Deserialize, Serialize};

use crate::time::Nanoseconds;

/// What one step of a node did, as far as it costs time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StepWork {
    /// Requests of clients that came in.
    pub requests: u64,
    /// Messages of peers that came in, and their payload in bytes.
    pub messages_received: u64,
    /// See [`messages_received`](StepWork::messages_received).
    pub bytes_received: u64,
    /// Messages to peers that went out, and their payload in bytes.
    pub messages_sent: u64,
    /// See [`messages_sent`](StepWork::messages_sent).
    pub bytes_sent: u64,
    /// Transactions that the order delivered.
    pub delivered: u64,
    /// Transactions that ran and needed no other partition's reads.
    pub executed_alone: u64,
    /// Transactions that ran over the reads of several partitions.
    pub executed_together: u64,
    /// Answers to clients.
    pub replies: u64,
}

/// What each part of a step costs, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CostTable {
    /// A step, whatever it does.
    pub step: u64,
    /// See the fields of [`StepWork`].
    pub request: u64,
    /// A message, in or out.
    pub message: u64,
    /// A byte of a message, in or out.
    pub byte: u64,
    /// A transaction that was delivered.
    pub delivered: u64,
    /// A transaction that ran alone.
    pub executed_alone: u64,
    /// A transaction that ran over the reads of several partitions.
    pub executed_together: u64,
    /// An answer.
    pub reply: u64,
    /// A call at the client's side, on a core of the client: making it, sending it, and taking the answer.
    pub call: u64,
}

impl CostTable {
    /// The time that a step takes.
    pub fn step(&self, work: &StepWork) -> Nanoseconds {
        let messages = work.messages_received + work.messages_sent;
        let bytes = work.bytes_received + work.bytes_sent;
        let picoseconds = self.step
            + work.requests * self.request
            + messages * self.message
            + bytes * self.byte
            + work.delivered * self.delivered
            + work.executed_alone * self.executed_alone
            + work.executed_together * self.executed_together
            + work.replies * self.reply;
        picoseconds / 1_000
    }
}
