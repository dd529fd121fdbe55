//! Under whose leadership the batches of each epoch were agreed on.
//!
//! With asynchronous replication a batch may be executed, and then lost with its leader: the group's next leader closes the same
//! epoch with another batch (Calvin §3.1.1, CAL-35). A batch is therefore named by its epoch and the term of the leadership in
//! which it was proposed. Logs with an entry of the same term at the same place agree in all that is before it, so two nodes
//! that have delivered an epoch by the same terms have delivered the same history.

use std::collections::VecDeque;

use crate::hash::key_hash;
use crate::position::{Epoch, PartitionId};

/// What follows from the order as far as an epoch, and by which terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Basis {
    /// The epoch.
    pub epoch: Epoch,
    /// Sums up the terms of all its batches.
    pub lineage: u64,
}

/// The terms of delivered epochs.
#[derive(Debug)]
pub struct Lineage {
    /// Epochs from one on have these terms, until the next run begins.
    runs: VecDeque<Run>,
}

#[derive(Debug)]
struct Run {
    from: Epoch,
    /// By origin.
    terms: Vec<u64>,
    sum: u64,
}

impl Run {
    fn new(from: Epoch, terms: Vec<u64>) -> Run {
        Run { from, sum: Lineage::sum_of(&terms), terms }
    }
}

impl Lineage {
    /// Nothing was delivered yet.
    pub fn new(partitions: u16) -> Lineage {
        Lineage { runs: VecDeque::from([Run::new(Epoch(0), vec![0; usize::from(partitions)])]) }
    }

    /// Goes on after an epoch with these terms.
    pub fn resume(&mut self, after: Epoch, terms: Vec<u64>) {
        self.runs = VecDeque::from([Run::new(after, terms)]);
    }

    /// Notes the terms of the next epoch.
    pub fn note(&mut self, epoch: Epoch, terms: impl Iterator<Item = u64> + Clone) {
        if !self.runs.back().is_some_and(|run| run.terms.iter().copied().eq(terms.clone())) {
            self.runs.push_back(Run::new(epoch, terms.collect()));
        }
    }

    fn run(&self, epoch: Epoch) -> Option<&Run> {
        self.runs.iter().rev().find(|run| run.from <= epoch)
    }

    /// The terms of a delivered epoch, by origin; `None` if they are forgotten.
    pub fn terms(&self, epoch: Epoch) -> Option<&[u64]> {
        self.run(epoch).map(|run| &*run.terms)
    }

    /// The term of one origin's batch of a delivered epoch.
    pub fn term(&self, origin: PartitionId, epoch: Epoch) -> Option<u64> {
        self.run(epoch).map(|run| run.terms[origin.index()])
    }

    /// Sums up the terms of one epoch, by origin.
    pub fn sum_of(terms: &[u64]) -> u64 {
        let bytes: Vec<u8> = terms.iter().flat_map(|term| term.to_le_bytes()).collect();
        key_hash(&bytes)
    }

    /// Sums up the terms of a delivered epoch.
    pub fn sum(&self, epoch: Epoch) -> Option<u64> {
        self.run(epoch).map(|run| run.sum)
    }

    /// Forgets the terms of epochs before one.
    pub fn forget(&mut self, before: Epoch) {
        while self.runs.get(1).is_some_and(|next| next.from <= before) {
            self.runs.pop_front();
        }
        if let Some(first) = self.runs.front_mut() {
            first.from = first.from.max(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_those_of_the_last_change() {
        let mut lineage = Lineage::new(2);
        for (epoch, terms) in [(1, [1, 1]), (2, [1, 1]), (3, [2, 1]), (4, [2, 1]), (5, [2, 4])] {
            lineage.note(Epoch(epoch), terms.into_iter());
        }
        let first = PartitionId(0);
        assert_eq!((lineage.term(first, Epoch(2)), lineage.term(first, Epoch(4))), (Some(1), Some(2)));
        assert_eq!(lineage.sum(Epoch(1)), lineage.sum(Epoch(2)));
        assert_ne!(lineage.sum(Epoch(4)), lineage.sum(Epoch(5)));
        lineage.forget(Epoch(4));
        assert_eq!((lineage.sum(Epoch(3)), lineage.term(first, Epoch(4))), (None, Some(2)));
        lineage.forget(Epoch(9));
        assert_eq!((lineage.terms(Epoch(8)), lineage.terms(Epoch(9))), (None, Some(&[2, 4][..])));
    }

    #[test]
    fn what_is_resumed_is_what_was() {
        let mut lineage = Lineage::new(2);
        lineage.note(Epoch(1), [3, 5].into_iter());
        let mut other = Lineage::new(2);
        other.resume(Epoch(7), vec![3, 5]);
        assert_eq!(other.sum(Epoch(7)), lineage.sum(Epoch(7)));
        assert_eq!(other.sum(Epoch(6)), None);
    }
}
