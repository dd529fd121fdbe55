//! The CPU model: what a step of a node costs, by what it did.
//!
//! The cost is linear in the parts of a step. What a table holds is measured: see [`calibration`](super::calibration).
//! Not modelled are the caches, which a long run of one kind of work warms, and transactions that only read for others:
//! the workloads that are measured have none, so that such a one costs no more than its delivery.

use ordain_db::execution::Executions;
use ordain_db::message::Message;
use ordain_db::node::{DiskWrite, Event, Outbox};
use ordain_workload::micro::RECORDS_PER_TRANSACTION;
use serde::{Deserialize, Serialize};

use super::account::Overhead;
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
    /// Transactions in the batches of peers that came in: their footprints are computed here once more.
    pub transactions_received: u64,
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
    /// Functors that were computed by themselves.
    pub functors: u64,
    /// Runs that looked for what a call touches: reconnaissance, or before the next locks.
    pub trials: u64,
    /// What all runs [computed](ordain_db::procedure::Transaction::compute), in units of the procedures' own.
    pub units: u64,
    /// Answers to clients.
    pub replies: u64,
    /// Bytes of checkpoints that were given to the disk.
    pub checkpoint_bytes: u64,
    /// Those of the messages, in and out, that are for locks, deadlocks and commitment.
    pub overhead: Overhead,
}

impl StepWork {
    /// What a step with these events has to take in.
    pub fn of_events(events: &[Event]) -> StepWork {
        let mut work = StepWork::default();
        for event in events {
            match event {
                Event::Requests(requests) => work.requests += requests.len() as u64,
                Event::Peer { message, .. } => {
                    work.messages_received += 1;
                    work.bytes_received += message.payload_bytes() as u64;
                    work.overhead.count(message);
                    if let Message::Batch { transactions, .. } = message {
                        work.transactions_received += transactions.len() as u64;
                    }
                }
                // What comes from the disk and of links is a word.
                _ => {}
            }
        }
        work
    }

    /// The same step when it is over: with what it sent, and what the node had executed before and after it.
    #[must_use]
    pub fn and_did(self, outbox: &Outbox, before: Executions, after: Executions) -> StepWork {
        let mut overhead = self.overhead;
        outbox.sends.iter().for_each(|(_, message)| overhead.count(message));
        let bytes = outbox.sends.iter().map(|(_, message)| message.payload_bytes() as u64);
        let chunks = outbox.disk.iter().map(|write| match write {
            DiskWrite::CheckpointChunk(chunk) => chunk.len() as u64,
            _ => 0,
        });
        StepWork {
            messages_sent: outbox.sends.len() as u64,
            bytes_sent: bytes.sum(),
            delivered: after.delivered - before.delivered,
            executed_alone: after.alone - before.alone,
            executed_together: after.together - before.together,
            functors: after.functors - before.functors,
            trials: after.explorations + after.reconnaissance - before.explorations - before.reconnaissance,
            units: after.units + after.reconnaissance_units - before.units - before.reconnaissance_units,
            replies: outbox.replies.len() as u64,
            checkpoint_bytes: chunks.sum(),
            overhead,
            ..self
        }
    }
}

/// What each part of a step costs, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// A step, whatever it does.
    pub step: u64,
    /// A request of a client: taking it from the inbox, its session, its footprint, its place in a batch.
    pub request: u64,
    /// A message, in or out.
    pub message: u64,
    /// A byte of a message, in or out.
    pub byte: u64,
    /// A transaction of another sequencer's batch.
    pub transaction_received: u64,
    /// A transaction that was delivered.
    pub delivered: u64,
    /// A transaction that ran alone.
    pub executed_alone: u64,
    /// A transaction that ran over the reads of several partitions.
    pub executed_together: u64,
    /// A functor that was computed by itself, with what its version costs. Where nobody measured it, a tenth of a transaction that ran
    /// alone: those that were measured do as much with each of their ten records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functor: Option<u64>,
    /// A run that looks for what a call touches.
    #[serde(default)]
    pub trial: u64,
    /// A unit of what runs compute. It is not measured: an experiment says how long it takes.
    #[serde(default)]
    pub unit: u64,
    /// An answer.
    pub reply: u64,
    /// A byte of a checkpoint: finding the row, copying it, digest and checksum.
    pub checkpoint_byte: u64,
    /// A call at the client's side, on a core of the client: making it, sending it, and taking the answer.
    pub call: u64,
    /// What of an execution's cost are its locks: for accounts of time, and nothing besides.
    #[serde(default)]
    pub locks: u64,
    /// An edge of the waits-for graph, in or out: finding it, taking it in, and searching it.
    #[serde(default)]
    pub edge: u64,
}

/// The busy work of a long transaction with each record, in picoseconds (DET-49: 15 µs).
pub const LONG_WORK: u64 = 15_000_000;

impl CostTable {
    /// The costs of the same transactions with busy work besides: picoseconds for each execution, wherever it runs, as every
    /// active participant runs all of the logic (trap 24). What is simulated has then no work in it, which would cost real time.
    #[must_use]
    pub fn with_work(self, picoseconds: u64) -> CostTable {
        CostTable {
            executed_alone: self.executed_alone + picoseconds,
            executed_together: self.executed_together + picoseconds,
            ..self
        }
    }

    /// The time that so many calls take at their client.
    pub fn calls(&self, calls: u64) -> Nanoseconds {
        calls * self.call / 1_000
    }

    /// The time that a step takes.
    pub fn step(&self, work: &StepWork) -> Nanoseconds {
        let messages = work.messages_received + work.messages_sent;
        let bytes = work.bytes_received + work.bytes_sent;
        let picoseconds = self.step
            + work.requests * self.request
            + messages * self.message
            + bytes * self.byte
            + work.transactions_received * self.transaction_received
            + work.delivered * self.delivered
            + work.executed_alone * self.executed_alone
            + work.executed_together * self.executed_together
            + self.functor.map_or_else(
                || work.functors * self.executed_alone / RECORDS_PER_TRANSACTION as u64,
                |functor| work.functors * functor,
            )
            + work.trials * self.trial
            + work.units * self.unit
            + work.replies * self.reply
            + work.checkpoint_bytes * self.checkpoint_byte
            + work.overhead.edges * self.edge;
        picoseconds / 1_000
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::message::{ClientRequest, Ordered, Reply, RequestId, Work};
    use ordain_db::position::{Entry, Epoch, NodeId, PartitionId, Position};
    use ordain_db::sequencer::Load;

    use super::*;

    fn request_id() -> RequestId {
        RequestId { client: ordain_db::message::ClientId { home: PartitionId(0), number: 1 }, sequence: 0 }
    }

    #[test]
    fn a_step_is_counted() {
        let ordered = Ordered {
            request: request_id(),
            acknowledged: 0,
            work: Work::OpenSnapshot(Entry::of(NodeId::first(PartitionId(0)))),
        };
        let batch = Message::Batch {
            epoch: Epoch(1),
            term: 0,
            load: Load::default(),
            transactions: vec![(0, ordered.clone()), (1, ordered)],
        };
        let position = Position { epoch: Epoch(1), origin: PartitionId(0), index: 0 };
        let (bytes, peer) = (batch.payload_bytes() as u64, NodeId::first(PartitionId(1)));
        let requests = vec![ClientRequest::CloseSnapshot(position); 3];
        let events = [Event::Requests(requests), Event::Peer { from: peer, message: batch.clone() }];
        let reply = Reply { request: request_id(), outcome: Ok(bytes::Bytes::new()) };
        let chunks = [100, 17].map(|length| DiskWrite::CheckpointChunk(vec![0; length].into()));
        let disk = [vec![DiskWrite::BeginCheckpoint(Epoch(1))], chunks.to_vec()].concat();
        let outbox = Outbox { sends: vec![(peer, batch)], replies: vec![reply], disk, ..Outbox::default() };
        let before = Executions { delivered: 5, alone: 4, together: 1, units: 7, ..Executions::default() };
        let after = Executions {
            delivered: 9,
            alone: 6,
            together: 2,
            functors: 4,
            functors_stopped: 1,
            explorations: 1,
            units: 9,
            reconnaissance: 2,
            reconnaissance_units: 5,
        };
        let expected = StepWork {
            requests: 3,
            messages_received: 1,
            bytes_received: bytes,
            transactions_received: 2,
            messages_sent: 1,
            bytes_sent: bytes,
            delivered: 4,
            executed_alone: 2,
            executed_together: 1,
            functors: 4,
            trials: 3,
            units: 7,
            replies: 1,
            checkpoint_bytes: 117,
            overhead: Overhead::default(),
        };
        assert_eq!(StepWork::of_events(&events).and_did(&outbox, before, after), expected);
    }

    #[test]
    fn a_step_costs_the_sum_of_its_parts() {
        let table = CostTable { step: 1_500, request: 2_000, byte: 10, call: 99_000, ..CostTable::default() };
        let work = StepWork { requests: 3, bytes_received: 100, bytes_sent: 50, ..StepWork::default() };
        // (1500 + 3 x 2000 + 150 x 10) ps; the client's part is no part of a step.
        assert_eq!(table.step(&work), 9);
        let (table, work) =
            (CostTable { checkpoint_byte: 500, ..table }, StepWork { checkpoint_bytes: 8, ..work });
        assert_eq!(table.step(&work), 13);
        let (table, work) =
            (CostTable { trial: 3_000, unit: 500, ..table }, StepWork { trials: 2, units: 4, ..work });
        assert_eq!(table.step(&work), 21);
        let (table, work) = (CostTable { executed_alone: 7_000, ..table }, StepWork { functors: 30, ..work });
        assert_eq!(table.step(&work), 42, "a tenth of a run where nobody measured it");
        assert_eq!(CostTable { functor: Some(100), ..table }.step(&work), 24);
    }
}
