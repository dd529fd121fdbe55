//! From what the library says is ready to effects, and from what is durable back to the library.

use std::collections::BTreeMap;

use ::raft::eraftpb::{Entry, Message, MessageType};
use ::raft::{ProgressState, StateRole};
use bytes::Bytes;

use crate::log::{Committed, LogEffects, Persist, ReplicaId, SnapshotRequest};
use crate::record::{EntryKind, LogRecord};

use super::conversion::{encode_message, kind, log_start, recorded, replica_of};
use super::{RaftLog, hand_out_limit};

/// What waits for the disk.
pub(super) struct Unpersisted {
    /// The number that the driver reports.
    number: u64,
    /// The library's number of the same.
    ready_number: u64,
    /// The term that is durable then.
    term: u64,
    /// What may be sent then.
    messages: Vec<(ReplicaId, Bytes)>,
}

/// Records of one step, in the order in which they are written.
#[derive(Default)]
struct Records {
    records: Vec<Bytes>,
    must_sync: bool,
    index_max: Option<u64>,
}

impl RaftLog {
    /// Gives out the records with which a log begins or is continued.
    pub(super) fn give_records(&mut self, effects: &mut LogEffects) {
        if !self.unwritten.is_empty() {
            let records = std::mem::take(&mut self.unwritten);
            self.give(effects, Records { records, must_sync: true, index_max: None });
            let (number, term) = (self.number, self.node.raft.term);
            self.unpersisted.push_back(Unpersisted { number, ready_number: 0, term, messages: Vec::new() });
        }
    }

    /// Messages as bytes. Positions of checkpoints are not sent: see [`RaftLog::ask_for_snapshots`].
    fn encoded(&self, messages: Vec<Message>) -> Vec<(ReplicaId, Bytes)> {
        let is_sent = |message: &Message| message.get_msg_type() != MessageType::MsgSnapshot;
        let addressed = |message: &Message| {
            let to = replica_of(message.to)?;
            Some((to, encode_message(message, self.admissions.of(to, message))))
        };
        messages.iter().filter(|message| is_sent(message)).filter_map(addressed).collect()
    }

    fn give(&mut self, effects: &mut LogEffects, records: Records) {
        let Records { records, must_sync, index_max } = records;
        self.number += 1;
        effects.add_persist(Persist { number: self.number, records, must_sync, index_max });
    }

    /// Takes all that the library has ready, and moves it on.
    pub(super) fn take_ready(&mut self, effects: &mut LogEffects) {
        let mut ready = self.node.ready();
        let ready_number = ready.number();
        let records = self.take_records(&mut ready);
        let mut held = self.encoded(ready.take_persisted_messages());
        let at_once = self.encoded(ready.take_messages());
        let committed = ready.take_committed_entries();
        self.node.advance_append_async(ready);

        let term = self.node.raft.term;
        if self.durable_term == term {
            effects.messages.extend(at_once);
        } else {
            held.extend(at_once);
        }
        if !records.records.is_empty() {
            self.give(effects, records);
        }
        if self.number == self.persisted_number {
            self.node.on_persist_ready(ready_number);
            effects.messages.append(&mut held);
        } else {
            let number = self.number;
            self.unpersisted.push_back(Unpersisted { number, ready_number, term, messages: held });
        }
        self.apply(&committed);
        self.observe();
    }

    /// The records of a step. Their order matters: what is torn off a write is its end. Entries whose state is missing are
    /// harmless, as nobody has been told of them; a state whose entries are missing would be a loss.
    fn take_records(&mut self, ready: &mut ::raft::Ready) -> Records {
        let mut records = Records { must_sync: ready.must_sync(), ..Records::default() };
        if !ready.snapshot().is_empty() {
            let start = log_start(ready.snapshot().get_metadata());
            records.records.push(LogRecord::replaced(&start));
            self.history.clear();
            self.membership = start.membership.clone();
            self.node.mut_store().replace(start);
        }
        let entries = ready.take_entries();
        if let Some(last) = entries.last() {
            records.index_max = Some(last.index);
            records.records.extend(entries.iter().map(|entry| recorded(entry).encode()));
            self.note_overwritten(&entries);
            self.node.mut_store().append(entries);
        }
        if let Some(state) = ready.hs() {
            let vote = replica_of(state.vote);
            records.records.push(LogRecord::State { term: state.term, vote, commit: state.commit }.encode());
        }
        records
    }

    /// Notices when another leader's entries take the place of those that were handed out early.
    fn note_overwritten(&mut self, entries: &[Entry]) {
        let store = self.node.store();
        let is_overwritten = |entry: &&Entry| {
            entry.index <= self.handed_out
                && store.term_at(entry.index).is_some_and(|term| term != entry.term)
        };
        if let Some(entry) = entries.iter().find(is_overwritten) {
            let index = entry.index;
            self.overwritten = Some(self.overwritten.map_or(index, |before| before.min(index)));
            self.handed_out = index - 1;
            self.is_suspended = true;
        }
    }

    /// Tells the library that everything through a number is durable, and releases what waited for that.
    pub(super) fn note_persisted(&mut self, number: u64) {
        assert!(number <= self.number, "{number} was reported as persisted, and {} is the last", self.number);
        self.persisted_number = self.persisted_number.max(number);
        let mut last_ready = 0;
        while let Some(durable) = self.unpersisted.pop_front_if(|waiting| waiting.number <= number) {
            last_ready = durable.ready_number;
            self.durable_term = self.durable_term.max(durable.term);
            self.released.extend(durable.messages);
        }
        self.node.on_persist_ready(last_ready);
        let log = &self.node.raft.raft_log;
        let start = self.node.store().start().index;
        if log.applied < start && log.persisted >= start {
            self.node.advance_apply_to(start);
        }
        self.observe();
    }

    /// Applies committed changes of the membership; that is all that the library wants to have applied.
    fn apply(&mut self, committed: &[Entry]) {
        let Some(last) = committed.last() else { return };
        for entry in committed.iter().filter(|entry| kind(entry) == EntryKind::Membership) {
            self.apply_membership(entry);
        }
        self.node.advance_apply_to(last.index);
        self.step_down_if_removed();
    }

    /// Hands out entries, up to the limit of bytes.
    pub(super) fn hand_out(&mut self, effects: &mut LogEffects) {
        let log = &self.node.raft.raft_log;
        let limit = hand_out_limit(self.options.hand_out, self.leading, log.committed, log.persisted);
        let mut bytes = 0;
        while !self.is_suspended && self.handed_out < limit && bytes <= self.options.hand_out_bytes_max {
            let entry =
                self.node.store().get(self.handed_out + 1).expect("the log has what is not handed out");
            self.handed_out += 1;
            bytes += entry.data.len();
            if kind(entry) == EntryKind::Payload {
                let payload = entry.data.clone();
                effects.committed.push(Committed { index: entry.index, term: entry.term, payload });
            }
        }
    }

    /// Names the followers that need a checkpoint: at once, and again after an election timeout in which it has not helped.
    pub(super) fn ask_for_snapshots(&mut self, effects: &mut LogEffects) {
        let repeat = self.options.election_ticks_min() as u64;
        let raft = &mut self.node.raft;
        let mut needed = BTreeMap::new();
        if raft.state == StateRole::Leader {
            let own = raft.id;
            for (id, progress) in raft.mut_prs().iter_mut() {
                if *id == own || progress.state != ProgressState::Snapshot {
                } else if progress.committed_index >= progress.pending_snapshot {
                    // It has one, and its answer was lost.
                    progress.become_probe();
                } else if let Some(replica) = replica_of(*id) {
                    needed.insert(replica, progress.pending_snapshot);
                }
            }
        }
        for (replica, index) in &mut needed {
            *index = (*index).max(self.member_since(*replica));
        }
        self.asked.retain(|replica, (index, _)| needed.get(replica) == Some(index));
        for (to, index_min) in needed {
            let asked = self.asked.get(&to);
            if asked.is_none_or(|(_, tick)| self.ticks - tick >= repeat) {
                self.asked.insert(to, (index_min, self.ticks));
                effects.send_snapshot.push(SnapshotRequest { to, index_min });
            }
        }
    }
}
