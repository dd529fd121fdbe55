//! Whether the replicas of a partition have made the same writes.
//!
//! Replicas cannot differ as long as all is deterministic; a broken machine, or a build that is not the same, could make them.
//! So every replica sums up the digests of what it wrote, and at the end of each epoch tells the others of its group the sum.
//! One that differs from a majority stops and says so; it never heals itself silently.

use std::collections::BTreeMap;

use crate::hash::Digest;
use crate::position::{Epoch, ReplicaId};
use crate::sequencer::{Basis, Lineage};

/// Most epochs of which sums are kept for replicas that are behind. Each sum covers all epochs before, so that none is left out.
const COMPARISONS_MAX: usize = 4_096;

/// See the [module](self).
#[derive(Debug)]
pub struct Agreement {
    me: ReplicaId,
    /// The sum of what was written through this epoch.
    through: Epoch,
    sum: Digest,
    /// By epoch: the sums that are known, one for each replica.
    known: BTreeMap<Epoch, Vec<Told>>,
    /// Epochs of which something is known that was not compared.
    changed: Vec<Epoch>,
    /// See [`undecided`](Agreement::undecided).
    undecided: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    replica: ReplicaId,
    /// Sums of different histories are not compared.
    lineage: u64,
    sum: Digest,
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
    pub fn new(me: ReplicaId) -> Agreement {
        Agreement {
            me,
            through: Epoch(0),
            sum: Digest::default(),
            known: BTreeMap::new(),
            changed: Vec::new(),
            undecided: None,
        }
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

    /// Adds what was written in the epochs through one: `written` has those with writes, ascending. If there are other replicas
    /// to compare with, adds to `tell` what they are to be told.
    pub fn add(
        &mut self,
        written: &[(Epoch, Digest)],
        through: Epoch,
        compares: bool,
        lineage: &Lineage,
        tell: &mut Vec<(Basis, Digest)>,
    ) {
        let mut written = written.iter().peekable();
        for epoch in (self.through.0 + 1..=through.0).map(Epoch) {
            while let Some((_, digest)) = written.next_if(|(written, _)| *written <= epoch) {
                self.sum.merge(*digest);
            }
            if compares && let Some(lineage) = lineage.sum(epoch) {
                let basis = Basis { epoch, lineage };
                self.note(basis, self.me, self.sum);
                tell.push((basis, self.sum));
            }
        }
        self.through = self.through.max(through);
    }

    /// The first epoch at whose end all replicas have told what they wrote, and no majority agrees.
    pub fn undecided(&self) -> Option<Epoch> {
        self.undecided
    }

    /// Notes what another replica has told.
    pub fn note(&mut self, basis: Basis, replica: ReplicaId, sum: Digest) {
        let told = Told { replica, lineage: basis.lineage, sum };
        self.changed.push(basis.epoch);
        let known = self.known.entry(basis.epoch).or_default();
        match known.iter_mut().find(|other| other.replica == replica) {
            Some(known) => *known = told,
            None => known.push(told),
        }
        while self.known.len() > COMPARISONS_MAX {
            self.known.pop_first();
        }
    }

    /// Whether a majority of the voters agrees on something else than this replica, of the same history. What all agree on is
    /// forgotten; where they differ and no majority agrees, nobody can tell who is right, and [`undecided`](Agreement::undecided) tells.
    ///
    /// # Errors
    /// The first epoch at whose end it is so.
    pub fn check(&mut self, voters: &[ReplicaId]) -> Result<(), Divergence> {
        let majority = voters.len() / 2 + 1;
        for epoch in self.changed.drain(..) {
            let Some(known) = self.known.get(&epoch) else { continue };
            let Some(own) = known.iter().find(|told| told.replica == self.me) else { continue };
            let votes = |told: &&Told| told.lineage == own.lineage && voters.contains(&told.replica);
            for other in known.iter().filter(votes).filter(|other| other.sum != own.sum) {
                if known.iter().filter(votes).filter(|told| told.sum == other.sum).count() >= majority {
                    return Err(Divergence { epoch, own: own.sum, others: other.sum });
                }
            }
            let most = known
                .iter()
                .filter(votes)
                .map(|told| known.iter().filter(votes).filter(|other| other.sum == told.sum).count());
            let all_told = known.iter().filter(votes).count() == voters.len();
            if all_told && most.max().is_some_and(|most| most < majority) {
                self.undecided.get_or_insert(epoch);
            }
            let agrees = |voter| known.iter().any(|told| told.replica == voter && told.sum == own.sum);
            if voters.iter().all(|voter| agrees(*voter)) {
                self.known.remove(&epoch);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Epoch = Epoch(1);

    fn told(agreement: &mut Agreement, written: &[(u64, u128)], through: u64) -> Vec<(Epoch, Digest)> {
        let written: Vec<_> = written.iter().map(|(epoch, sum)| (Epoch(*epoch), Digest(*sum))).collect();
        let mut told = Vec::new();
        agreement.add(&written, Epoch(through), true, &Lineage::new(1), &mut told);
        told.into_iter().map(|(basis, sum)| (basis.epoch, sum)).collect()
    }

    fn replicas(number: u16) -> Vec<ReplicaId> {
        (0..number).map(ReplicaId).collect()
    }

    fn note(agreement: &mut Agreement, replica: u16, sum: u128) {
        let lineage = Lineage::new(1).sum(FIRST).unwrap();
        agreement.note(Basis { epoch: FIRST, lineage }, ReplicaId(replica), Digest(sum));
    }

    #[test]
    fn the_sum_is_told_at_each_epoch_however_they_come() {
        let mut at_once = Agreement::new(ReplicaId(0));
        let mut by_and_by = Agreement::new(ReplicaId(1));
        let sums = [(1, 0), (2, 1), (3, 1), (4, 5)].map(|(epoch, sum)| (Epoch(epoch), Digest(sum)));
        assert_eq!(told(&mut at_once, &[(2, 1), (4, 4)], 4), sums);
        assert_eq!(told(&mut by_and_by, &[(2, 1)], 2), sums[..2]);
        assert_eq!(told(&mut by_and_by, &[(4, 4)], 4), sums[2..]);
        assert_eq!(told(&mut by_and_by, &[], 4), []);
        assert_eq!(at_once.sum(), by_and_by.sum());
    }

    #[test]
    fn a_minority_stops_and_a_majority_goes_on() {
        for (second, third, wrong) in [(5, 5, true), (5, 9, false), (1, 9, false), (1, 1, false)] {
            let mut agreement = Agreement::new(ReplicaId(0));
            note(&mut agreement, 1, second);
            note(&mut agreement, 2, third);
            assert_eq!(agreement.check(&replicas(3)), Ok(()), "the own sum is not known");
            told(&mut agreement, &[(1, 1)], 1);
            let divergence = Divergence { epoch: FIRST, own: Digest(1), others: Digest(5) };
            assert_eq!(agreement.check(&replicas(3)), if wrong { Err(divergence) } else { Ok(()) });
        }
    }

    #[test]
    fn a_difference_without_a_majority_is_told() {
        let mut two = Agreement::new(ReplicaId(0));
        told(&mut two, &[(1, 1)], 1);
        note(&mut two, 1, 5);
        assert_eq!((two.check(&replicas(2)), two.undecided()), (Ok(()), Some(FIRST)));
        for (third, undecided) in [(9, Some(FIRST)), (1, None)] {
            let mut three = Agreement::new(ReplicaId(0));
            told(&mut three, &[(1, 1)], 1);
            note(&mut three, 1, 5);
            assert_eq!((three.check(&replicas(3)), three.undecided()), (Ok(()), None), "one may yet agree");
            note(&mut three, 2, third);
            assert_eq!((three.check(&replicas(3)), three.undecided()), (Ok(()), undecided));
        }
    }

    #[test]
    fn what_all_agree_on_is_forgotten() {
        let mut agreement = Agreement::new(ReplicaId(0));
        told(&mut agreement, &[(1, 1)], 1);
        note(&mut agreement, 1, 1);
        assert_eq!(agreement.known.len(), 1);
        agreement.check(&replicas(2)).unwrap();
        assert!(agreement.known.is_empty());
    }

    #[test]
    fn other_histories_and_those_without_a_vote_are_not_compared() {
        let mut agreement = Agreement::new(ReplicaId(0));
        told(&mut agreement, &[(1, 1)], 1);
        note(&mut agreement, 1, 5);
        agreement.note(Basis { epoch: FIRST, lineage: 7 }, ReplicaId(2), Digest(5));
        note(&mut agreement, 3, 5);
        assert_eq!(agreement.check(&replicas(3)), Ok(()));
        note(&mut agreement, 2, 5);
        assert!(agreement.check(&replicas(3)).is_err());
    }

    #[test]
    fn what_is_kept_for_those_behind_is_limited() {
        let mut agreement = Agreement::new(ReplicaId(0));
        told(&mut agreement, &[], 3 * COMPARISONS_MAX as u64);
        assert_eq!(agreement.known.len(), COMPARISONS_MAX);
    }
}
