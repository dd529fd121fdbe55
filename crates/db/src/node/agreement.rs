//! Whether the replicas of a partition have made the same writes.
//!
//! Replicas cannot differ as long as all is deterministic; a broken machine, or a build that is not the same, could make them.
//! So every replica sums up the digests of what it wrote, and at certain epochs tells the others of its group the sum. One that
//! differs from a majority stops and says so; it never heals itself silently.

use std::collections::BTreeMap;

use crate::hash::Digest;
use crate::position::{Epoch, ReplicaId};

/// The sum is told at the end of each epoch that this divides. As it covers all epochs before, none is left out.
pub const EPOCHS_PER_COMPARISON: u64 = 16;

/// Most comparisons that are kept for replicas that are behind.
const COMPARISONS_MAX: usize = 1024;

/// See the [module](self).
#[derive(Debug)]
pub struct Agreement {
    me: ReplicaId,
    replicas: u16,
    /// The sum of what was written through this epoch.
    through: Epoch,
    sum: Digest,
    /// By epoch: the sums that are known, one for each replica.
    known: BTreeMap<Epoch, Vec<(ReplicaId, Digest)>>,
}

/// Replicas that do not agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The epoch at whose end it was noticed.
    pub epoch: Epoch,
    /// The sum of this replica.
    pub own: Digest,
    /// The sum on which the others agree.
    pub others: Digest,
}

impl Agreement {
    /// Nothing was written yet.
    pub fn new(me: ReplicaId, replicas: u16) -> Agreement {
        Agreement { me, replicas, through: Epoch(0), sum: Digest::default(), known: BTreeMap::new() }
    }

    /// Goes on from a checkpoint.
    pub fn resume(&mut self, through: Epoch, sum: Digest) {
        (self.through, self.sum) = (through, sum);
    }

    /// The sum of what was written.
    pub fn sum(&self) -> Digest {
        self.sum
    }

    /// The sum through an epoch, if it is the last one.
    pub fn sum_at(&self, epoch: Epoch) -> Option<Digest> {
        (self.through == epoch).then_some(self.sum)
    }

    /// Adds what was written in the epochs through one: `written` has those with writes, ascending. Calls `tell` with what the
    /// other replicas are to be told.
    pub fn add(&mut self, written: &[(Epoch, Digest)], through: Epoch, mut tell: impl FnMut(Epoch, Digest)) {
        let mut written = written.iter().peekable();
        for epoch in (self.through.0 + 1..=through.0).map(Epoch) {
            while let Some((_, digest)) = written.next_if(|(written, _)| *written <= epoch) {
                self.sum.merge(*digest);
            }
            if self.replicas > 1 && epoch.0 % EPOCHS_PER_COMPARISON == 0 {
                self.note(epoch, self.me, self.sum);
                tell(epoch, self.sum);
            }
        }
        self.through = self.through.max(through);
    }

    /// Notes what another replica has told.
    pub fn note(&mut self, epoch: Epoch, replica: ReplicaId, sum: Digest) {
        let sums = self.known.entry(epoch).or_default();
        match sums.iter_mut().find(|(other, _)| *other == replica) {
            Some((_, known)) => *known = sum,
            None => sums.push((replica, sum)),
        }
        while self.known.len() > COMPARISONS_MAX {
            self.known.pop_first();
        }
    }

    /// Whether a majority agrees on something else than this replica. What all agree on is forgotten.
    ///
    /// # Errors
    /// The first epoch at whose end it is so.
    pub fn check(&mut self) -> Result<(), Divergence> {
        let majority = usize::from(self.replicas) / 2 + 1;
        for (epoch, sums) in &self.known {
            let Some((_, own)) = sums.iter().find(|(replica, _)| *replica == self.me) else { continue };
            for (_, other) in sums.iter().filter(|(_, other)| other != own) {
                if sums.iter().filter(|(_, sum)| sum == other).count() >= majority {
                    return Err(Divergence { epoch: *epoch, own: *own, others: *other });
                }
            }
        }
        let all = usize::from(self.replicas);
        self.known.retain(|_, sums| sums.len() < all || sums.iter().any(|(_, sum)| *sum != sums[0].1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Epoch = Epoch(EPOCHS_PER_COMPARISON);

    fn told(agreement: &mut Agreement, written: &[(u64, u128)], through: u64) -> Vec<(Epoch, Digest)> {
        let written: Vec<_> = written.iter().map(|(epoch, sum)| (Epoch(*epoch), Digest(*sum))).collect();
        let mut told = Vec::new();
        agreement.add(&written, Epoch(through), |epoch, sum| told.push((epoch, sum)));
        told
    }

    #[test]
    fn the_sum_is_told_at_the_same_epochs_however_they_come() {
        let mut at_once = Agreement::new(ReplicaId(0), 3);
        let mut by_and_by = Agreement::new(ReplicaId(1), 3);
        let expected = vec![(Epoch(16), Digest(5)), (Epoch(32), Digest(12))];
        assert_eq!(told(&mut at_once, &[(3, 1), (16, 4), (17, 7), (33, 9)], 40), expected);
        assert_eq!(told(&mut by_and_by, &[(3, 1)], 9), vec![]);
        assert_eq!(told(&mut by_and_by, &[(16, 4), (17, 7)], 32), expected);
        assert_eq!(told(&mut by_and_by, &[(33, 9)], 40), vec![]);
        assert_eq!(at_once.sum(), by_and_by.sum());
    }

    #[test]
    fn a_minority_stops_and_a_majority_goes_on() {
        for (second, third, wrong) in [(5, 5, true), (5, 9, false), (1, 9, false), (1, 1, false)] {
            let mut agreement = Agreement::new(ReplicaId(0), 3);
            agreement.note(FIRST, ReplicaId(1), Digest(second));
            agreement.note(FIRST, ReplicaId(2), Digest(third));
            assert_eq!(agreement.check(), Ok(()), "the own sum is not known");
            told(&mut agreement, &[(1, 1)], 16);
            let divergence = Divergence { epoch: FIRST, own: Digest(1), others: Digest(5) };
            assert_eq!(agreement.check(), if wrong { Err(divergence) } else { Ok(()) });
        }
    }

    #[test]
    fn what_all_agree_on_is_forgotten() {
        let mut agreement = Agreement::new(ReplicaId(0), 2);
        told(&mut agreement, &[(1, 1)], 16);
        agreement.note(FIRST, ReplicaId(1), Digest(1));
        assert_eq!(agreement.known.len(), 1);
        agreement.check().unwrap();
        assert!(agreement.known.is_empty());
    }

    #[test]
    fn what_is_kept_for_those_behind_is_limited() {
        let mut agreement = Agreement::new(ReplicaId(0), 3);
        told(&mut agreement, &[], 3 * EPOCHS_PER_COMPARISON * COMPARISONS_MAX as u64);
        assert_eq!(agreement.known.len(), COMPARISONS_MAX);
    }
}
