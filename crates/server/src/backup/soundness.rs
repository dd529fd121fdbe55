//! Whether a node would start from what its directory has.
//!
//! Its parts may be sound, each by itself, and not fit together: the log goes on after a checkpoint that is not there, or the mark
//! is gone which says from which one to start. The rules are those of [`recover`](ordain_db::disk::recover()).

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::solo::{SoloLog, SoloOptions};
use ordain_consensus::{
    EntryKind, FOUNDING_INDEX, LogRecord, LogStart, Membership, RecoverError, ReplicatedLog,
};
use ordain_db::position::{Epoch, NodeId};

use super::source::NodeSource;

/// Why a node would not start; `None` if it would. `checkpoints` are those that can be read, with where the log goes on after
/// each.
pub(super) fn refusal(source: &mut NodeSource, checkpoints: &BTreeMap<Epoch, LogStart>) -> Option<String> {
    let marked = source.marked();
    let start = match marked {
        Epoch(0) => None,
        // A newer one is as good, if the one that is marked cannot be read.
        _ => match checkpoints.range(marked..).next() {
            Some((_, start)) => Some(start),
            None => {
                return Some(format!(
                    "the checkpoint at the end of {marked} is marked as the one to start from, and neither it nor a newer one \
                     can be used: put back the file"
                ));
            }
        },
    };
    let records = match source.records() {
        Ok(records) => records,
        Err(error) => return Some(error.to_string()),
    };
    match recovered(source.node(), records, start) {
        Ok(()) => None,
        Err(error) => Some(format!("the log of {}: {error}", source.node())),
    }
}

/// Makes the log again, to see whether that can be done.
fn recovered(node: NodeId, records: Vec<Bytes>, checkpoint: Option<&LogStart>) -> Result<(), RecoverError> {
    if records.is_empty() && checkpoint.is_none() {
        // It ended before it had promised anything.
        return Ok(());
    }
    if is_alone(node, &records) {
        let log = SoloLog::recover(SoloOptions::new(node.replica), records.into_iter(), checkpoint)?;
        let start = log.status().start;
        return match checkpoint {
            None if start > FOUNDING_INDEX => Err(RecoverError::NoCheckpoint { start }),
            _ => Ok(()),
        };
    }
    match RaftLog::recover(RaftOptions::new(node.replica, 0), records.into_iter(), checkpoint) {
        // One of another replica, which it has got last.
        Err(RecoverError::Checkpoint { checkpoint: index, last, .. }) if index > last => Ok(()),
        recovered => recovered.map(drop),
    }
}

/// Whether the log is that of a node that agrees with nobody: without a mark, nobody else has what comes before its begin.
fn is_alone(node: NodeId, records: &[Bytes]) -> bool {
    let only = Membership::of_voters([node.replica]);
    // What cannot be read is refused by either kind of log.
    records.iter().filter_map(|record| LogRecord::decode(record).ok()).all(|record| match record {
        LogRecord::Start { start, .. } => start.membership == only,
        LogRecord::Entry { kind, .. } => kind != EntryKind::Membership,
        LogRecord::State { .. } => true,
    })
}
