//! Where things stand: partitions, epochs and positions in the global order.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::PARTITIONS_MAX;

pub use ordain_consensus::ReplicaId;

/// Number of a partition, from 0 to the cluster's number of partitions less one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct PartitionId(pub u16);

impl PartitionId {
    /// The number as an index into arrays of partitions.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// A node of a cluster: one partition of one replica.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct NodeId {
    /// The partition.
    pub partition: PartitionId,
    /// The replica: one whole copy of the database.
    pub replica: ReplicaId,
}

impl NodeId {
    /// The node of a partition in the first replica, which is the only one where nothing is replicated.
    pub fn first(partition: PartitionId) -> NodeId {
        NodeId { partition, replica: ReplicaId(0) }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.partition, self.replica)
    }
}

/// The node through which a client speaks, in one of its lives: what the client has opened ends with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The node that the client is connected to.
    pub node: NodeId,
    /// Tells the node's lives apart; see [`NodeConfiguration::life`](crate::node::NodeConfiguration::life).
    pub life: u64,
}

impl Entry {
    /// Through a node whose lives nobody tells apart.
    pub fn of(node: NodeId) -> Entry {
        Entry { node, life: 0 }
    }
}

/// Number of an epoch: one batch of every sequencer (Calvin §3.1). The first epoch is 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Place of a transaction in the global order, and the version of everything that it writes.
///
/// Positions are totally ordered: first by epoch, then by the partition whose sequencer took the
/// transaction in, then by the place in that sequencer's batch. This is the fixed interleaving of whole
/// batches of Calvin §3.1 (CAL-26).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Position {
    /// The epoch.
    pub epoch: Epoch,
    /// The partition whose sequencer ordered the transaction.
    pub origin: PartitionId,
    /// The place in the origin's full batch of the epoch (not in a recipient's sub-batch).
    pub index: u32,
}

impl Position {
    /// Before every transaction: the version of loaded data.
    pub const LOADED: Position = Position { epoch: Epoch(0), origin: PartitionId(0), index: 0 };

    /// After every transaction of an epoch, and before those of the next: a boundary that is the same on all partitions.
    pub fn end_of(epoch: Epoch) -> Position {
        Position::beyond(epoch, 0)
    }

    /// One of the places after every transaction of an epoch, and before those of the next. What is seen from them is the same. The first
    /// is its [end](Position::end_of), where the rows of a checkpoint are.
    pub fn beyond(epoch: Epoch, index: u32) -> Position {
        Position { epoch, origin: PartitionId(u16::MAX), index }
    }

    /// Whether no transaction can have it: it is [beyond](Position::beyond) those of its epoch.
    pub fn is_beyond(self) -> bool {
        self.origin == PartitionId(u16::MAX)
    }

    /// What stands for it where the order is compared: the positions beyond one epoch are one place.
    pub fn place(self) -> Position {
        if self.is_beyond() { Position::end_of(self.epoch) } else { self }
    }

    /// After every transaction: reading here reads the newest version.
    pub const LATEST: Position =
        Position { epoch: Epoch(u64::MAX), origin: PartitionId(u16::MAX), index: u32::MAX };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.origin, self.index)
    }
}

/// A set of partitions, as a bit per partition.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionSet([u64; PARTITIONS_MAX / 64]);

impl PartitionSet {
    /// The empty set.
    pub const EMPTY: PartitionSet = PartitionSet([0; PARTITIONS_MAX / 64]);

    /// All partitions of a cluster of `partitions`.
    pub fn all(partitions: u16) -> PartitionSet {
        let mut set = PartitionSet::EMPTY;
        for partition in 0..partitions {
            set.insert(PartitionId(partition));
        }
        set
    }

    /// The set of one partition.
    pub fn one(partition: PartitionId) -> PartitionSet {
        let mut set = PartitionSet::EMPTY;
        set.insert(partition);
        set
    }

    /// Adds a partition.
    pub fn insert(&mut self, partition: PartitionId) {
        self.0[partition.index() / 64] |= 1 << (partition.index() % 64);
    }

    /// Removes a partition.
    pub fn remove(&mut self, partition: PartitionId) {
        self.0[partition.index() / 64] &= !(1 << (partition.index() % 64));
    }

    /// Whether the partition is in the set.
    pub fn contains(&self, partition: PartitionId) -> bool {
        self.0[partition.index() / 64] & (1 << (partition.index() % 64)) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; PARTITIONS_MAX / 64]
    }

    /// Number of partitions in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The lowest partition in the set.
    pub fn first(&self) -> Option<PartitionId> {
        self.iter().next()
    }

    /// Adds all partitions of the other set.
    pub fn union(&mut self, other: &PartitionSet) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    /// The partitions in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PartitionId> + use<> {
        let words = self.0;
        words.into_iter().enumerate().flat_map(|(word_index, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    PartitionId((word_index * 64 + bit) as u16)
                })
            })
        })
    }
}

impl fmt::Debug for PartitionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|partition| partition.0)).finish()
    }
}
