//! What the partitions of one directory know of each other: whether one of them has lost the end of its log.
//!
//! A partition without replicas says what it has ordered once that is durable. So an epoch that was delivered anywhere is durable
//! on all partitions, and every batch in a log says how far its partition had delivered when it was closed. A log that ends
//! before what another partition's log says of it was replaced by an older copy, or its end was damaged and looks as a crash
//! would have left it ([docs/log-format.md](../../../../docs/log-format.md)). Nobody but the others can notice that.

use bytes::Bytes;

use super::Found;
use super::committed::LogEntry;
use crate::position::{Epoch, PartitionId};

/// How far the log and the checkpoints of a partition come, and how far they say that all partitions have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The partition.
    pub partition: PartitionId,
    /// The last epoch that it has.
    pub last: Epoch,
    /// The last epoch that it knows to be durable on all partitions.
    pub delivered: Epoch,
}

/// A partition has lost what another one knows it had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the log of {} ends at {}, and that of {} says that it had {}: what was acknowledged since is lost from it (an older copy of \
     its files, or damage to the end of the log): put its newer files back",
    lost.partition, lost.last, by.partition, by.delivered
)]
pub struct LostEnd {
    /// The partition that has lost something.
    pub lost: Witness,
    /// The one that says so.
    pub by: Witness,
}

impl Witness {
    /// What was found of a partition that has no replicas.
    pub fn of(partition: PartitionId, found: &Found) -> Witness {
        // A checkpoint is of the end of an epoch that was executed, and so delivered.
        let checkpoint = found.checkpoints.last().copied().unwrap_or_default();
        let batch = |record: &Bytes| LogEntry::of(record).ok()??.batch().ok()?;
        let newest = found.records.iter().rev().find_map(batch);
        let (last, delivered) = newest.map(|batch| (batch.epoch, batch.delivered)).unwrap_or_default();
        Witness { partition, last: last.max(checkpoint), delivered: delivered.max(checkpoint) }
    }
}

/// Compares all partitions of a database that has no replicas.
///
/// # Errors
/// If one of them has lost the end of its log.
pub fn compare(witnesses: &[Witness]) -> Result<(), LostEnd> {
    let Some(by) = witnesses.iter().max_by_key(|witness| witness.delivered) else { return Ok(()) };
    match witnesses.iter().find(|witness| witness.last < by.delivered) {
        Some(lost) => Err(LostEnd { lost: *lost, by: *by }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ordain_consensus::EntryKind;

    use super::*;
    use crate::node::ordering::LoggedBatch;

    fn batch(epoch: u64, delivered: u64) -> Bytes {
        let (epoch, delivered) = (Epoch(epoch), Epoch(delivered));
        let batch =
            LoggedBatch { epoch, closed_at: 0, delivered, shed: 0, held_back: 0, transactions: Vec::new() };
        let payload = Bytes::from(postcard::to_allocvec(&batch).unwrap());
        LogEntry { index: epoch.0, term: 1, kind: EntryKind::Payload, payload }.encode()
    }

    fn witness(partition: u16, records: Vec<Bytes>, checkpoints: &[u64]) -> Witness {
        let checkpoints = checkpoints.iter().copied().map(Epoch).collect();
        Witness::of(PartitionId(partition), &Found { records, checkpoints, ..Found::default() })
    }

    #[test]
    fn a_log_may_end_where_nobody_had_delivered_more() {
        let ahead = witness(0, vec![batch(6, 3), batch(7, 4)], &[2]);
        assert_eq!((ahead.last, ahead.delivered), (Epoch(7), Epoch(4)));
        assert_eq!(compare(&[ahead, witness(1, vec![batch(4, 4)], &[])]), Ok(()));
        let lost = witness(1, vec![batch(3, 3)], &[]);
        assert_eq!(compare(&[ahead, lost]), Err(LostEnd { lost, by: ahead }));
    }

    #[test]
    fn a_checkpoint_tells_as_a_log_does() {
        let checkpointed = witness(0, Vec::new(), &[5, 9]);
        assert_eq!(compare(&[checkpointed, witness(1, vec![batch(9, 2)], &[])]), Ok(()));
        assert_eq!(compare(&[checkpointed, witness(1, vec![batch(2, 1)], &[9])]), Ok(()));
        let lost = witness(1, Vec::new(), &[8]);
        assert_eq!(compare(&[checkpointed, lost]), Err(LostEnd { lost, by: checkpointed }));
        assert_eq!(compare(&[witness(0, Vec::new(), &[]), witness(1, Vec::new(), &[])]), Ok(()));
    }
}
