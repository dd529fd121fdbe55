//! How a replicated log begins: in a new group, in a group that it joins, and again from its records.

use std::collections::{BTreeMap, VecDeque};

use ::raft::RawNode;
use ::raft::eraftpb::HardState;
use bytes::Bytes;

use crate::log::{LogStart, Membership, RecoverError};
use crate::record::{EntryKind, LogRecord, RecoveredLog};

use super::admission::Admissions;
use super::conversion::{entry, id_of};
use super::entries::Entries;
use super::membership::validate;
use super::{RaftLog, RaftOptions};

impl RaftLog {
    /// The log of a replica of a new group. All its replicas must be given the same membership.
    ///
    /// To be used again, with the same membership, by a replica that has crashed before any of its records was durable.
    ///
    /// # Errors
    /// If the options contradict each other, or the membership is joint, or does not name this replica.
    pub fn found(options: RaftOptions, membership: Membership) -> Result<RaftLog, RecoverError> {
        options.validate()?;
        let wrong = |reason: String| Err(RecoverError::WrongGroup(reason));
        if let Err(error) = validate(&membership.voters, &membership.learners) {
            return wrong(error.to_string());
        }
        if membership.is_joint() || !membership.contains(options.replica) {
            return wrong(format!("a new group's membership is not joint and names {}", options.replica));
        }
        let start = LogStart::founding(membership);
        RaftLog::begin(options, RecoveredLog::empty(start), true)
    }

    /// The log of a replica made again from its records, and from the position of the checkpoint from which the database goes
    /// on, if there is one. Without either it is the log of a replica that is about to join a group: it takes no part until it
    /// is given a checkpoint.
    ///
    /// A checkpoint beyond the log's end, or in contradiction to it, was installed right before a crash: then it becomes the
    /// log's start. Entries after the checkpoint are handed out as far as they are known to be committed.
    ///
    /// # Errors
    /// If the options contradict each other, the records are not those of a log, or the checkpoint ends before the log begins.
    pub fn recover(
        options: RaftOptions,
        records: impl Iterator<Item = Bytes>,
        checkpoint: Option<&LogStart>,
    ) -> Result<RaftLog, RecoverError> {
        options.validate()?;
        let found = RecoveredLog::read(records)?;
        let is_new = found.is_none();
        let mut log = found.unwrap_or_else(|| RecoveredLog::empty(LogStart::default()));
        let Some(checkpoint) = checkpoint else {
            return RaftLog::begin(options, log, is_new);
        };
        let (start, last) = (log.start.index, log.last());
        if checkpoint.index < start {
            return Err(RecoverError::Checkpoint { checkpoint: checkpoint.index, start, last });
        }
        let is_continued = log.term_at(checkpoint.index) == Some(checkpoint.term);
        if !is_continued {
            if checkpoint.index <= log.commit {
                let reason = "the checkpoint contradicts what the log says is committed";
                return Err(RecoverError::WrongGroup(reason.to_owned()));
            }
            log.start = checkpoint.clone();
            log.entries.clear();
            // The vote is for the term of the state, and stays valid with it.
            if log.term < checkpoint.term {
                (log.term, log.vote) = (checkpoint.term, None);
            }
        }
        log.commit = log.commit.max(checkpoint.index);
        let mut log = RaftLog::begin(options, log, is_new || !is_continued)?;
        log.handed_out = checkpoint.index;
        Ok(log)
    }

    /// Begins with a log; `is_new` says that the disk does not know it yet.
    fn begin(options: RaftOptions, log: RecoveredLog, is_new: bool) -> Result<RaftLog, RecoverError> {
        let term = log.newest_term();
        // A vote counts in the term of its state only.
        let vote = if term == log.term { log.vote } else { None };
        let commit = log.commit.max(known_committed(&log));
        let state = HardState { term, vote: vote.map_or(0, id_of), commit, ..HardState::default() };
        let mut unwritten = Vec::new();
        if is_new {
            unwritten.push(LogRecord::replaced(&log.start));
            unwritten.push(LogRecord::State { term, vote, commit }.encode());
        }
        let start = log.start.clone();
        let entries: VecDeque<_> = log.entries.into_iter().map(entry).collect();
        let logger = ::slog::Logger::root(::slog::Discard, ::slog::o!());
        let store = Entries::new(log.start, entries, state);
        let node = RawNode::new(&options.config(start.index), store, &logger)
            .map_err(|error| RecoverError::WrongGroup(error.to_string()))?;
        let mut log = RaftLog {
            options,
            node,
            time: None,
            ticks: 0,
            attempts: 0,
            membership: start.membership,
            history: VecDeque::new(),
            durable_term: if is_new { 0 } else { term },
            unwritten,
            number: 0,
            persisted_number: 0,
            unpersisted: VecDeque::new(),
            released: Vec::new(),
            handed_out: start.index,
            overwritten: None,
            is_suspended: false,
            leading: None,
            proposed: Vec::new(),
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            asked: BTreeMap::new(),
            heard: BTreeMap::new(),
            admissions: Admissions::default(),
        };
        log.observe();
        Ok(log)
    }
}

/// The last change of the membership but one: a leader proposes none before the one before is committed. Whoever has a change
/// in its log must act by the one before it, even if its own commit index was lost in a crash; if not, a majority of members
/// of the past could elect a second leader.
fn known_committed(log: &RecoveredLog) -> u64 {
    let mut changes = log.entries.iter().rev().filter(|entry| entry.kind == EntryKind::Membership);
    changes.nth(1).map_or(0, |entry| entry.index)
}
