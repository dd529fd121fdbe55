//! What nodes have told of their work over all their lives, compared as it is told.

use std::collections::{BTreeMap, BTreeSet};

use ordain_db::execution::Trace;
use ordain_db::message::{Ordered, Verdict};
use ordain_db::position::{Epoch, NodeId, PartitionId, Position};

/// What one life of a node has told.
#[derive(Default)]
struct Life {
    /// The last epoch that it has handed on.
    closed: Epoch,
    executed: BTreeSet<Position>,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct History {
    lives: BTreeMap<NodeId, Life>,
    /// The log of each partition.
    logs: BTreeMap<PartitionId, BTreeMap<Epoch, Vec<Ordered>>>,
    verdicts: BTreeMap<Position, Verdict>,
}

impl History {
    /// A node begins to live, again.
    pub(crate) fn begin(&mut self, node: NodeId) {
        self.lives.insert(node, Life::default());
    }

    /// Notes what a step has done: it must be what every other replica and every earlier life has done.
    pub(crate) fn note(&mut self, node: NodeId, trace: Trace) {
        let life = self.lives.get_mut(&node).expect("it lives");
        for (epoch, transactions) in trace.closed {
            assert_eq!(epoch, life.closed.next(), "{node} leaves out epochs, or repeats them");
            life.closed = epoch;
            let transactions: Vec<Ordered> = transactions
                .into_iter()
                .enumerate()
                .map(|(place, (index, ordered))| {
                    assert_eq!(index as usize, place, "indexes of a whole batch have no gaps");
                    ordered
                })
                .collect();
            let log = self.logs.entry(node.partition).or_default();
            let known = log.entry(epoch).or_insert_with(|| transactions.clone());
            assert_eq!(*known, transactions, "{node} has another {epoch} than a replica or an earlier life");
        }
        for executed in trace.executed {
            let position = executed.position;
            assert!(life.executed.insert(position), "{node} has run {position} twice in one life");
            let known = self.verdicts.entry(position).or_insert_with(|| executed.verdict.clone());
            assert_eq!(*known, executed.verdict, "{node} has another verdict at {position}");
        }
    }

    /// The last epoch that the life of a node has handed on.
    pub(crate) fn closed(&self, node: NodeId) -> Epoch {
        self.lives[&node].closed
    }

    /// All that was ordered, in the global order.
    pub(crate) fn order(&self) -> BTreeMap<Position, Ordered> {
        let batches =
            self.logs.iter().flat_map(|(origin, log)| log.iter().map(move |batch| (*origin, batch)));
        let ordered = batches.flat_map(|(origin, (epoch, transactions))| {
            transactions
                .iter()
                .zip(0..)
                .map(move |(ordered, index)| (Position { epoch: *epoch, origin, index }, ordered.clone()))
        });
        ordered.collect()
    }

    pub(crate) fn verdicts(&self) -> &BTreeMap<Position, Verdict> {
        &self.verdicts
    }
}
