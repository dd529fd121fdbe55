//! The log of a group of one: what is durable is committed.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::log::{
    Committed, HandOut, LogEffects, LogStart, LogStatus, MalformedMessage, Membership, MembershipError,
    PAYLOAD_BYTES_MAX, Persist, ProposeError, RecoverError, ReplicaId, ReplicatedLog, Role, SnapshotError,
};
use crate::record::{EntryKind, LogRecord, RecordedEntry, RecoveredLog};

/// What a [`SoloLog`] is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoloOptions {
    /// The only replica of the group.
    pub replica: ReplicaId,
    /// Most bytes of payloads that are proposed and not yet durable.
    pub in_flight_bytes_max: usize,
    /// Most bytes of a payload.
    pub payload_bytes_max: usize,
    /// Most bytes of payloads that one call of [`ReplicatedLog::advance`] hands out, beyond the first payload.
    pub hand_out_bytes_max: usize,
}

impl SoloOptions {
    /// The usual limits.
    pub fn new(replica: ReplicaId) -> SoloOptions {
        SoloOptions {
            replica,
            in_flight_bytes_max: 64 << 20,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            hand_out_bytes_max: 4 << 20,
        }
    }
}

/// A replicated log with one replica. It needs no time and no messages, is always the leader, and commits what is durable.
///
/// Each life has a term of its own, one above the term before, so that whatever is numbered by terms stays unique.
pub struct SoloLog {
    options: SoloOptions,
    start: LogStart,
    term: u64,
    /// All entries after the start.
    entries: VecDeque<RecordedEntry>,
    /// The last entry when this life began: the log is ready when all through it has been handed out.
    recovered: u64,
    /// Whether the term of this life is durable.
    is_term_durable: bool,
    /// Entries through this index are durable, and therefore committed.
    committed: u64,
    handed_out: u64,
    /// Records to give out.
    unwritten: Vec<Bytes>,
    unwritten_index_max: Option<u64>,
    /// The number of the last [`Persist`].
    number: u64,
    /// What was given out to be persisted: the number, and the last index then.
    unpersisted: VecDeque<(u64, u64)>,
    in_flight_bytes: usize,
}

impl SoloLog {
    /// The log of a new group.
    pub fn found(options: SoloOptions) -> SoloLog {
        let start = LogStart::founding(Membership::of_voters([options.replica]));
        let term = start.term + 1;
        let records = vec![LogRecord::replaced(&start)];
        SoloLog::new(options, start, term, Vec::new(), records)
    }

    /// The log made again from its records and the checkpoint from which the database goes on. Entries after the checkpoint
    /// are handed out.
    ///
    /// # Errors
    /// If there are no records, or they make no log of a group of this replica alone, or the checkpoint does not lie within.
    pub fn recover(
        options: SoloOptions,
        records: impl Iterator<Item = Bytes>,
        checkpoint: Option<&LogStart>,
    ) -> Result<SoloLog, RecoverError> {
        let log = RecoveredLog::read(records)?.ok_or(RecoverError::NoStart { records: 0 })?;
        let only = Membership::of_voters([options.replica]);
        if log.start.membership != only || log.entries.iter().any(|entry| entry.kind == EntryKind::Membership)
        {
            let reason = format!("it was written by a replicated log, not by {} alone", options.replica);
            return Err(RecoverError::WrongGroup(reason));
        }
        let term = log.newest_term() + 1;
        let last = log.last();
        let mut recovered = SoloLog::new(options, log.start, term, log.entries, Vec::new());
        // Whatever is found was durable, or is as good as: nobody has been told otherwise.
        recovered.committed = last;
        if let Some(checkpoint) = checkpoint {
            recovered.go_back(checkpoint).map_err(|_| RecoverError::Checkpoint {
                checkpoint: checkpoint.index,
                start: recovered.start.index,
                last,
            })?;
        }
        Ok(recovered)
    }

    fn new(
        options: SoloOptions,
        start: LogStart,
        term: u64,
        entries: Vec<RecordedEntry>,
        mut records: Vec<Bytes>,
    ) -> SoloLog {
        let index = start.index;
        let last = entries.last().map_or(index, |entry| entry.index);
        records.push(LogRecord::State { term, vote: Some(options.replica), commit: last }.encode());
        SoloLog {
            options,
            start,
            term,
            entries: entries.into(),
            recovered: last,
            is_term_durable: false,
            committed: index,
            handed_out: index,
            unwritten: records,
            unwritten_index_max: None,
            number: 0,
            unpersisted: VecDeque::new(),
            in_flight_bytes: 0,
        }
    }

    fn last(&self) -> u64 {
        self.entries.back().map_or(self.start.index, |entry| entry.index)
    }

    /// The entry at an index after the start and at most the last one.
    fn entry(&self, index: u64) -> &RecordedEntry {
        &self.entries[position(index, &self.start)]
    }

    fn term_at(&self, index: u64) -> u64 {
        if index == self.start.index { self.start.term } else { self.entry(index).term }
    }

    fn go_back(&mut self, start: &LogStart) -> Result<(), SnapshotError> {
        let index = start.index;
        if index < self.start.index {
            return Err(SnapshotError::TooOld { index, start: self.start.index });
        }
        if index > self.committed {
            return Err(SnapshotError::Unreplicated { index, last: self.committed });
        }
        let expected = self.term_at(index);
        if expected != start.term {
            return Err(SnapshotError::Contradiction { index, found: start.term, expected });
        }
        self.handed_out = index;
        Ok(())
    }
}

/// Where an entry is among those after the start.
fn position(index: u64, start: &LogStart) -> usize {
    usize::try_from(index - start.index - 1).expect("an entry in memory has a place in memory")
}

impl ReplicatedLog for SoloLog {
    fn tick(&mut self, _now: u64) {}

    fn propose(&mut self, payload: Bytes) -> Result<(), ProposeError> {
        if !self.role().may_propose() {
            return Err(ProposeError::NotLeader { leader: None });
        }
        if payload.is_empty() {
            return Err(ProposeError::Empty);
        }
        if payload.len() > self.options.payload_bytes_max {
            let bytes_max = self.options.payload_bytes_max;
            return Err(ProposeError::TooLarge { bytes: payload.len(), bytes_max });
        }
        if self.in_flight_bytes + payload.len() > self.options.in_flight_bytes_max {
            return Err(ProposeError::Full { bytes: self.in_flight_bytes });
        }
        let index = self.last() + 1;
        self.in_flight_bytes += payload.len();
        let entry = RecordedEntry { index, term: self.term, kind: EntryKind::Payload, payload };
        self.unwritten.push(entry.encode());
        self.unwritten_index_max = Some(index);
        self.entries.push_back(entry);
        Ok(())
    }

    fn receive(&mut self, from: ReplicaId, _message: &[u8]) -> Result<(), MalformedMessage> {
        let reason = "this replica is alone in its group, and replicates nothing".to_owned();
        Err(MalformedMessage { from, reason })
    }

    fn persisted(&mut self, number: u64) {
        assert!(number <= self.number, "{number} was reported as persisted, and {} is the last", self.number);
        while self.unpersisted.front().is_some_and(|(first, _)| *first <= number) {
            let Some((_, last)) = self.unpersisted.pop_front() else { break };
            self.is_term_durable = true;
            for index in self.committed + 1..=last {
                self.in_flight_bytes -= self.entry(index).payload.len();
            }
            self.committed = self.committed.max(last);
        }
    }

    fn advance(&mut self, effects: &mut LogEffects) {
        if !self.unwritten.is_empty() {
            self.number += 1;
            self.unpersisted.push_back((self.number, self.last()));
            effects.add_persist(Persist {
                number: self.number,
                records: std::mem::take(&mut self.unwritten),
                must_sync: true,
                index_max: self.unwritten_index_max.take(),
            });
        }
        let mut bytes = 0;
        while self.handed_out < self.committed && bytes <= self.options.hand_out_bytes_max {
            self.handed_out += 1;
            let entry = self.entry(self.handed_out);
            bytes += entry.payload.len();
            if entry.kind == EntryKind::Payload {
                let committed =
                    Committed { index: entry.index, term: entry.term, payload: entry.payload.clone() };
                effects.committed.push(committed);
            }
        }
    }

    fn role(&self) -> Role {
        let ready = self.is_term_durable && self.handed_out >= self.recovered;
        Role::Leader { term: self.term, ready }
    }

    fn deadline(&self) -> Option<u64> {
        None
    }

    fn in_flight(&self) -> usize {
        usize::try_from(self.last() - self.committed).expect("entries in memory are counted in memory")
    }

    fn compact(&mut self, index: u64) {
        let index = index.min(self.committed).min(self.handed_out);
        if index > self.start.index {
            self.start.term = self.term_at(index);
            self.entries.drain(..=position(index, &self.start));
            self.start.index = index;
        }
    }

    fn restatement(&self) -> Vec<Bytes> {
        let state =
            LogRecord::State { term: self.term, vote: Some(self.options.replica), commit: self.committed };
        vec![LogRecord::compacted(&self.start), state.encode()]
    }

    fn start_at(&self, index: u64) -> Option<LogStart> {
        let is_within = self.start.index <= index && index <= self.committed.min(self.handed_out);
        is_within.then(|| LogStart {
            index,
            term: self.term_at(index),
            membership: self.start.membership.clone(),
        })
    }

    fn snapshot_installed(&mut self, start: LogStart) -> Result<(), SnapshotError> {
        self.go_back(&start)
    }

    fn transfer_leadership(&mut self, _to: ReplicaId) {}

    fn change_membership(
        &mut self,
        _voters: &[ReplicaId],
        _learners: &[ReplicaId],
    ) -> Result<(), MembershipError> {
        Err(MembershipError::Unreplicated)
    }

    fn hand_out(&self) -> HandOut {
        HandOut::AfterMajority
    }

    fn membership(&self) -> &Membership {
        &self.start.membership
    }

    fn status(&self) -> LogStatus {
        LogStatus {
            term: self.term,
            start: self.start.index,
            committed: self.committed,
            handed_out: self.handed_out,
            persisted: self.committed,
            last: self.last(),
            followers: Vec::new(),
        }
    }
}
