//! Digests of what was written, epoch by epoch.
//!
//! Replicas that execute the same order make the same writes, but not at the same time: transactions that do not conflict
//! finish in any order. So what is compared is a sum per epoch, to which each write adds a hash of all that it is. Keeping
//! it takes one hash of the new row per write, or of what was changed in it, and no look at any other row. [`Storage::digest`] is the other
//! digest: it is of the state, not of how it came about, and takes a look at all rows.
//!
//! [`Storage::digest`]: super::Storage::digest

use std::collections::VecDeque;

use crate::hash::Digest;
use crate::position::{Epoch, Position};

/// Most epochs whose digests wait to be taken. Of more, the two oldest become one, which counts as the later of both: nothing
/// is lost to a comparison of sums, and what nobody takes does not grow.
pub const EPOCHS_KEPT_MAX: usize = 4096;

/// What a write does to its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// The row now is this.
    Row(&'a [u8]),
    /// The row was changed in place, in the way that these bytes say.
    InPlace(&'a [u8]),
    /// The row is deleted.
    Deletion,
}

/// The digest of one write; `hash` is the [`key_hash`](crate::hash::key_hash) of its key.
#[inline]
pub fn write_digest(position: Position, hash: u64, change: Change<'_>) -> Digest {
    let (kind, bytes) = match change {
        Change::Row(row) => (0, row),
        Change::InPlace(change) => (1, change),
        Change::Deletion => (2, &[][..]),
    };
    // Origin, index and kind have bits of their own; the factor spreads the epochs.
    let place = u64::from(position.origin.0) << 48 | u64::from(position.index) << 16 | kind;
    let seed = place.wrapping_add(position.epoch.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)) ^ hash;
    Digest(xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed))
}

/// The sums of the epochs that have not been taken.
#[derive(Default, Debug)]
pub struct WriteDigests {
    /// In ascending order of epochs.
    sums: VecDeque<(Epoch, Digest)>,
    /// Place of the epoch that was last written to, which most writes are of. A guess: whoever uses it looks at the epoch.
    last: usize,
    /// The newest epoch that was taken: no write of it may come.
    taken: Epoch,
}

impl WriteDigests {
    /// Adds a write. Those at [`Position::LOADED`] are no writes of an epoch, and are left out.
    #[inline]
    pub fn add(&mut self, position: Position, hash: u64, change: Change<'_>) {
        let digest = write_digest(position, hash, change);
        match self.sums.get_mut(self.last) {
            Some((epoch, sum)) if *epoch == position.epoch => sum.merge(digest),
            _ => self.add_to_other(position.epoch, digest),
        }
    }

    #[cold]
    fn add_to_other(&mut self, epoch: Epoch, digest: Digest) {
        if epoch == Position::LOADED.epoch {
            return;
        }
        assert!(
            epoch > self.taken,
            "a write of {epoch} comes after the digests up to {} were taken",
            self.taken
        );
        self.last = self.sums.partition_point(|(other, _)| *other < epoch);
        match self.sums.get_mut(self.last) {
            Some((other, sum)) if *other == epoch => sum.merge(digest),
            _ => self.sums.insert(self.last, (epoch, digest)),
        }
        if self.sums.len() > EPOCHS_KEPT_MAX {
            let oldest = self.sums.pop_front();
            self.last = self.last.saturating_sub(1);
            if let (Some((_, oldest)), Some((_, next))) = (oldest, self.sums.front_mut()) {
                next.merge(oldest);
            }
        }
    }

    /// Moves the digests of all epochs up to `through` to `out`, in ascending order.
    pub fn take(&mut self, through: Epoch, out: &mut Vec<(Epoch, Digest)>) {
        let finished = self.sums.partition_point(|(epoch, _)| *epoch <= through);
        out.extend(self.sums.drain(..finished));
        self.last = self.last.saturating_sub(finished);
        self.taken = self.taken.max(through);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::key_hash;
    use crate::position::PartitionId;

    fn at(epoch: u64, index: u32) -> Position {
        Position { epoch: Epoch(epoch), origin: PartitionId(0), index }
    }

    /// The digests after some writes of a row, by epoch and index.
    fn after(writes: &[(u64, u32)]) -> Vec<(Epoch, Digest)> {
        let mut digests = WriteDigests::default();
        writes.iter().for_each(|(epoch, index)| digests.add(at(*epoch, *index), 3, Change::Row(b"row")));
        let mut out = Vec::new();
        digests.take(Epoch(u64::MAX), &mut out);
        out
    }

    #[test]
    fn everything_about_a_write_counts() {
        let position = Position { epoch: Epoch(7), origin: PartitionId(3), index: 5 };
        let origin = PartitionId(4);
        let [hash, other] = [key_hash(b"one key"), key_hash(b"other key")];
        let digests = [
            write_digest(position, hash, Change::Row(b"row")),
            write_digest(position, other, Change::Row(b"row")),
            write_digest(position, hash, Change::Row(b"rows")),
            write_digest(position, hash, Change::InPlace(b"row")),
            write_digest(position, hash, Change::Row(b"")),
            write_digest(position, hash, Change::Deletion),
            write_digest(Position { index: 6, ..position }, hash, Change::Row(b"row")),
            write_digest(Position { epoch: Epoch(8), ..position }, hash, Change::Row(b"row")),
            write_digest(Position { origin, ..position }, hash, Change::Row(b"row")),
        ];
        for (number, digest) in digests.iter().enumerate() {
            assert!(!digests[..number].contains(digest), "digest {number} is like an earlier one");
        }
    }

    #[test]
    fn sums_do_not_depend_on_the_order_of_writes() {
        let ascending = after(&[(1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]);
        assert_eq!(after(&[(3, 1), (1, 1), (2, 0), (1, 0), (3, 0)]), ascending);
        assert_eq!(ascending.iter().map(|(epoch, _)| epoch.0).collect::<Vec<_>>(), [1, 2, 3]);
        assert_ne!(after(&[(1, 0), (1, 1), (2, 0), (3, 0), (3, 0)]), ascending, "one write twice");
    }

    #[test]
    fn what_nobody_takes_is_limited_and_no_write_is_lost() {
        let writes: Vec<(u64, u32)> = (1..=EPOCHS_KEPT_MAX as u64 + 10).map(|epoch| (epoch, 0)).collect();
        let kept = after(&writes);
        assert_eq!((kept.len(), kept[0].0), (EPOCHS_KEPT_MAX, Epoch(11)));
        let mut oldest = Digest::default();
        (1..=11).for_each(|epoch| oldest.merge(write_digest(at(epoch, 0), 3, Change::Row(b"row"))));
        assert_eq!(kept[0].1, oldest, "the oldest is the sum of all that came before");
        assert_eq!(kept[1], (Epoch(12), write_digest(at(12, 0), 3, Change::Row(b"row"))));
    }

    #[test]
    #[should_panic(expected = "a write of e2 comes after the digests up to e2 were taken")]
    fn a_write_of_a_taken_epoch_is_refused() {
        let mut digests = WriteDigests::default();
        digests.take(Epoch(2), &mut Vec::new());
        digests.add(at(2, 0), 3, Change::Deletion);
    }
}
