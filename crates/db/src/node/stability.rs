//! Which checkpoints a replica has, and which of them it no longer needs.
//!
//! A checkpoint is of one epoch's end on all partitions (CAL-99). It is of use to the replica when all its nodes have it: until
//! then a node that starts again must begin at the one before, as others may need what it said since. So the newest epoch of
//! which all have one is *stable*: older checkpoints, the log through there, and what was said through there can go (CAL-103).

use std::collections::{BTreeMap, VecDeque};

use crate::position::{Epoch, PartitionId};

/// See the [module](self).
#[derive(Debug)]
pub struct Stability {
    me: PartitionId,
    /// By partition: the ends of epochs of which the node of the own replica has a checkpoint on its disk, with the lineage of
    /// the epoch.
    written: Vec<BTreeMap<Epoch, u64>>,
    /// The newest that all have, of one lineage; until there is one, that from which the node has gone on.
    stable: (Epoch, u64),
    /// The index in the log of epochs after the stable one.
    indexes: VecDeque<(Epoch, u64)>,
}

/// Most checkpoints that a node keeps besides the one from which it would go on. They become more than two or so only while a node of the replica is
/// away. When it is back it takes the same ones; to be fast enough for that, it must lag by less than so many.
const WRITTEN_MAX: usize = 16;

impl Stability {
    /// Nothing but what was there at first.
    pub fn new(me: PartitionId, partitions: u16) -> Stability {
        let written = vec![BTreeMap::new(); usize::from(partitions)];
        Stability { me, written, stable: (Epoch(0), 0), indexes: VecDeque::new() }
    }

    /// Goes on from a checkpoint: a stable one, or one that was fetched from another replica.
    pub fn resume(&mut self, from: Epoch, lineage: u64) {
        self.stable = (from, lineage);
    }

    /// Notes which checkpoints are on the own disk after a start, with their lineages: peers may rely on what they were told of
    /// them.
    pub fn know(&mut self, on_disk: &[(Epoch, u64)]) {
        let newer = on_disk.iter().filter(|(epoch, _)| *epoch > self.stable.0);
        self.written[self.me.index()].extend(newer.copied());
    }

    /// Whether there is an own checkpoint of an epoch, of this history.
    pub fn has(&self, epoch: Epoch, lineage: u64) -> bool {
        self.own().any(|own| own == (epoch, lineage))
    }

    /// Notes where the log has an epoch.
    pub fn logged(&mut self, epoch: Epoch, index: u64) {
        self.indexes.push_back((epoch, index));
    }

    /// The place in the log of an epoch after the stable one, or of the stable one itself.
    pub fn index_of(&self, epoch: Epoch) -> Option<u64> {
        self.indexes.iter().find(|(logged, _)| *logged == epoch).map(|(_, index)| *index)
    }

    /// Notes that a node has a checkpoint on its disk. The newest stable epoch, if that is news: all nodes have it, of one
    /// lineage.
    pub fn written(&mut self, partition: PartitionId, epoch: Epoch, lineage: u64) -> Option<Epoch> {
        if epoch <= self.stable.0 {
            return None;
        }
        self.written[partition.index()].insert(epoch, lineage);
        let (own, others) = (&self.written[self.me.index()], &self.written);
        let is_common = |(epoch, lineage): &(&Epoch, &u64)| {
            others.iter().all(|written| written.get(epoch) == Some(lineage))
        };
        let (stable, lineage) = own.iter().rev().find(is_common)?;
        let stable = *stable;
        self.stable = (stable, *lineage);
        self.written.iter_mut().for_each(|written| written.retain(|epoch, _| *epoch > stable));
        while self.indexes.front().is_some_and(|(epoch, _)| *epoch < stable) {
            self.indexes.pop_front();
        }
        Some(stable)
    }

    /// Forgets what a node of the replica had in an earlier life.
    pub fn forget(&mut self, partition: PartitionId) {
        self.written[partition.index()].clear();
    }

    /// Forgets the oldest ones of those that are too many, but for one that is in use; of the own ones, names those that are on
    /// the disk.
    pub fn trim(&mut self, used: Option<Epoch>) -> Vec<Epoch> {
        let mut dropped = Vec::new();
        for (partition, written) in self.written.iter_mut().enumerate() {
            while written.len() > WRITTEN_MAX {
                let Some(oldest) = written.keys().copied().find(|epoch| Some(*epoch) != used) else { break };
                written.remove(&oldest);
                dropped.extend(Some(oldest).filter(|_| partition == self.me.index()));
            }
        }
        dropped
    }

    /// The newest stable epoch, or that from which the node has gone on; 0 is what was there at first.
    pub fn stable(&self) -> Epoch {
        self.stable.0
    }

    /// The same with its lineage.
    pub fn stable_history(&self) -> (Epoch, u64) {
        self.stable
    }

    /// The own checkpoints after the stable one, and that one, ascending: for a peer that has forgotten what it was told.
    pub fn own(&self) -> impl Iterator<Item = (Epoch, u64)> + '_ {
        let newer = self.written[self.me.index()].iter().map(|(epoch, lineage)| (*epoch, *lineage));
        std::iter::once(self.stable).chain(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: PartitionId = PartitionId(0);
    const OTHER: PartitionId = PartitionId(1);

    #[test]
    fn a_checkpoint_is_stable_when_all_partitions_have_it() {
        let mut stability = Stability::new(ME, 2);
        for epoch in 1..=9 {
            stability.logged(Epoch(epoch), 10 * epoch);
        }
        assert_eq!(stability.written(ME, Epoch(3), 1), None);
        assert_eq!(stability.written(OTHER, Epoch(6), 1), None, "another one");
        assert_eq!(stability.index_of(Epoch(3)), Some(30));
        assert_eq!(stability.written(OTHER, Epoch(3), 1), Some(Epoch(3)));
        assert_eq!(stability.own().collect::<Vec<_>>(), [(Epoch(3), 1)]);
        assert_eq!((stability.index_of(Epoch(2)), stability.index_of(Epoch(3))), (None, Some(30)));
        assert_eq!(stability.written(ME, Epoch(6), 1), Some(Epoch(6)));
        assert_eq!(stability.written(OTHER, Epoch(6), 1), None, "said again");
    }

    #[test]
    fn a_single_partition_needs_no_other() {
        let mut stability = Stability::new(ME, 1);
        assert_eq!(stability.written(ME, Epoch(4), 1), Some(Epoch(4)));
    }

    #[test]
    fn while_a_mate_is_away_the_newest_ones_are_kept() {
        let mut stability = Stability::new(ME, 2);
        let last = WRITTEN_MAX as u64 + 2;
        for epoch in 1..=last {
            assert_eq!(stability.written(ME, Epoch(epoch), 1), None);
        }
        assert_eq!(stability.trim(Some(Epoch(1))), [Epoch(2), Epoch(3)], "one is in use");
        assert_eq!(stability.trim(None), []);
        let mut stable = Epoch(0);
        for epoch in 1..=last {
            stable = stability.written(OTHER, Epoch(epoch), 1).unwrap_or(stable);
            assert_eq!(stability.trim(None), []);
        }
        assert_eq!(stable, Epoch(last));
    }

    #[test]
    fn a_node_that_starts_again_remembers_its_newer_ones() {
        let mut stability = Stability::new(ME, 2);
        stability.resume(Epoch(3), 1);
        stability.know(&[(Epoch(3), 1), (Epoch(6), 1)]);
        assert_eq!(stability.own().collect::<Vec<_>>(), [(Epoch(3), 1), (Epoch(6), 1)]);
        assert!(stability.has(Epoch(6), 1) && !stability.has(Epoch(6), 2) && !stability.has(Epoch(7), 1));
        assert_eq!(stability.written(OTHER, Epoch(6), 2), None, "of what was lost");
        assert_eq!(stability.written(OTHER, Epoch(6), 1), Some(Epoch(6)));
    }

    #[test]
    fn checkpoints_of_different_histories_are_different_ones() {
        let mut stability = Stability::new(ME, 2);
        assert_eq!(stability.written(ME, Epoch(4), 1), None);
        assert_eq!(stability.written(OTHER, Epoch(4), 2), None);
        assert_eq!(stability.written(OTHER, Epoch(4), 1), Some(Epoch(4)));
    }
}
