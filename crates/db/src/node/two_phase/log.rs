//! What must be in the log before it is said: records as payloads, and what waits for them.

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::{LogEffects, PAYLOAD_BYTES_MAX, Persist, ProposeError, ReplicatedLog};

use super::TwoPhaseNode;
use crate::engine::two_phase::message::{SnapshotMessage, TwoPhaseMessage, TwoPhaseRecord};
use crate::error::Fatal;
use crate::execution::Executed;
use crate::failpoint::{Failpoint, Failpoints};
use crate::limits::{ARGUMENTS_BYTES_MAX, FOOTPRINT_BYTES_MAX, LOGGED_READS_BYTES_MAX};
use crate::message::{Message, Ordered, Reply};
use crate::node::outgoing::grouped;
use crate::node::{DiskWrite, Outbox, encode_body};
use crate::position::{Epoch, NodeId, PartitionId, Position};

/// Bytes of records that are proposed to the log together, about.
const PROPOSAL_BYTES: usize = 1 << 20;

/// What else a payload may have beside arguments, footprints and reads.
const OTHER_BYTES: usize = 1 << 20;

const _: () = assert!(
    PROPOSAL_BYTES + ARGUMENTS_BYTES_MAX + FOOTPRINT_BYTES_MAX + LOGGED_READS_BYTES_MAX + OTHER_BYTES
        <= PAYLOAD_BYTES_MAX,
    "the log takes every record"
);

/// What waits until records are in the log.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) messages: Vec<(PartitionId, TwoPhaseMessage)>,
    /// Snapshots that can be read here, of other partitions' clients.
    pub(super) ready: Vec<Position>,
    pub(super) replies: Vec<(NodeId, Reply)>,
    pub(super) closed: Vec<(Epoch, Vec<(u32, Ordered)>)>,
    pub(super) executed: Vec<Executed>,
}

impl Held {
    fn append(&mut self, mut other: Held) {
        self.messages.append(&mut other.messages);
        self.ready.append(&mut other.ready);
        self.replies.append(&mut other.replies);
        self.closed.append(&mut other.closed);
        self.executed.append(&mut other.executed);
    }
}

/// The log, and what lies between it and the engine.
pub(super) struct Log {
    pub(super) replicated: Box<dyn ReplicatedLog>,
    pub(super) effects: LogEffects,
    /// Payloads that the log has had no room for.
    pub(super) proposals: VecDeque<Bytes>,
    /// For each payload of this life that is not in the log yet: what waits for it.
    pub(super) held: VecDeque<Held>,
}

impl Log {
    /// Gives the log what it has room for.
    fn propose(&mut self) -> Result<(), Fatal> {
        while let Some(payload) = self.proposals.front() {
            match self.replicated.propose(payload.clone()) {
                Ok(()) => drop(self.proposals.pop_front()),
                Err(ProposeError::Full { .. } | ProposeError::NotLeader { .. }) => return Ok(()),
                Err(error) => return Err(Fatal::Log(error.to_string())),
            }
        }
        Ok(())
    }
}

impl<F: Failpoints> TwoPhaseNode<F> {
    /// Lets the log move on: what it had before is replayed, and what waited for records goes out.
    pub(super) fn advance_log(&mut self, outbox: &mut Outbox) -> Result<(), Fatal> {
        loop {
            let Some(log) = &mut self.log else { return Ok(()) };
            log.propose()?;
            log.replicated.advance(&mut log.effects);
            if let Some(Persist { number, records, must_sync, index_max }) = log.effects.persist.take() {
                outbox.disk.push(DiskWrite::Append { number, records, index_max, must_sync });
            }
            let (committed, role) = (std::mem::take(&mut log.effects.committed), log.replicated.role());
            let is_rest = committed.is_empty();
            for entry in committed {
                self.take_committed(&entry.payload, outbox)?;
            }
            if role.may_propose() && !self.started && !self.starting {
                self.starting = true;
                self.engine.start();
            }
            if is_rest {
                return Ok(());
            }
        }
    }

    /// Records are in the log: those of an earlier life are replayed, and what waited for those of this one goes out.
    fn take_committed(&mut self, payload: &[u8], outbox: &mut Outbox) -> Result<(), Fatal> {
        if !self.started && !self.starting {
            return self.replay(payload, outbox);
        }
        // The first thing that is logged in a life is that it has begun.
        (self.started, self.starting) = (true, false);
        let held = self.log.as_mut().and_then(|log| log.held.pop_front());
        self.release(held.unwrap_or_default(), outbox);
        Ok(())
    }

    /// Does again what a payload of an earlier life says.
    fn replay(&mut self, payload: &[u8], outbox: &mut Outbox) -> Result<(), Fatal> {
        for record in TwoPhaseRecord::decode(payload).map_err(Fatal::Log)? {
            if let TwoPhaseRecord::Snapshot { at, request: Some((request, acknowledged)) } = &record {
                self.note_snapshot(*at, *request, *acknowledged);
            }
            let (engine, mut context) = self.engine();
            engine.replay(record, &mut context)?;
        }
        self.take_ended();
        let mut held = std::mem::take(&mut self.held);
        // It was answered in an earlier life, or its client asks again.
        held.replies.clear();
        held.executed.extend(self.effects.executed.as_mut().map(std::mem::take).unwrap_or_default());
        self.release(held, outbox);
        Ok(())
    }

    /// Turns what the engine wants into proposals to the log, and into what waits for them.
    pub(super) fn flush(&mut self, outbox: &mut Outbox) {
        self.take_ended();
        self.open_snapshots();
        for (to, message, waits) in std::mem::take(&mut self.engine.effects.messages) {
            match waits {
                true => self.held.messages.push((to, message)),
                false => self.send(to, Message::TwoPhase(message), outbox),
            }
        }
        if let Some(executed) = &mut self.effects.executed {
            self.held.executed.append(executed);
        }
        if F::on(Failpoint::AnswerBeforeLogged) {
            let replies = std::mem::take(&mut self.held.replies);
            self.release(Held { replies, ..Held::default() }, outbox);
        }
        let records = std::mem::take(&mut self.engine.effects.records);
        let held = std::mem::take(&mut self.held);
        let Some(log) = &mut self.log else {
            return self.release(held, outbox);
        };
        let payloads = payloads_of(&records);
        if payloads.is_empty() {
            match log.held.back_mut() {
                Some(last) => last.append(held),
                None => self.release(held, outbox),
            }
            return;
        }
        log.held.extend((1..payloads.len()).map(|_| Held::default()));
        log.held.push_back(held);
        log.proposals.append(&mut payloads.into());
    }

    /// What has waited long enough goes out.
    fn release(&mut self, held: Held, outbox: &mut Outbox) {
        let Held { messages, ready, replies, mut closed, mut executed } = held;
        for (to, message) in messages {
            self.send(to, Message::TwoPhase(message), outbox);
        }
        for at in ready {
            self.send(at.origin, Message::TwoPhaseSnapshot(SnapshotMessage::Ready { at }), outbox);
        }
        outbox.trace.closed.append(&mut closed);
        outbox.trace.executed.append(&mut executed);
        let (own, remote): (Vec<_>, Vec<_>) = replies.into_iter().partition(|(entry, _)| *entry == self.id);
        outbox.replies.extend(own.into_iter().map(|(_, reply)| reply));
        for (entry, replies) in grouped(remote) {
            self.send(entry.partition, Message::Replies(replies), outbox);
        }
    }
}

/// Records as payloads, each of about [`PROPOSAL_BYTES`] at most.
fn payloads_of(records: &[TwoPhaseRecord]) -> Vec<Bytes> {
    let mut payloads = Vec::new();
    let mut first = 0;
    let mut bytes = 0;
    for (index, record) in records.iter().enumerate() {
        bytes += record.payload_bytes();
        if bytes >= PROPOSAL_BYTES || index + 1 == records.len() {
            payloads.push(encode_body(&records[first..=index].to_vec()));
            (first, bytes) = (index + 1, 0);
        }
    }
    payloads
}
