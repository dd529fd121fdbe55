//! What nodes have told of their work over all their lives, compared as it is told; or, where what was done may be lost, what
//! they have told in their last lives, compared in the end.

use std::collections::{BTreeMap, BTreeSet};

use ordain_db::error::Fatal;
use ordain_db::execution::Trace;
use ordain_db::message::{Ordered, Verdict, Work};
use ordain_db::position::{Epoch, NodeId, PartitionId, Position};

/// What one life of a node has told.
#[derive(Default)]
struct Life {
    /// The last epoch that it has handed on.
    closed: Epoch,
    log: BTreeMap<Epoch, Vec<Ordered>>,
    /// What ran here; `None` where what it returned is not known here.
    executed: BTreeMap<Position, Option<Verdict>>,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct History {
    /// Whether nodes may go back, and do otherwise than before.
    may_go_back: bool,
    /// How often they did.
    pub(crate) went_back: u64,
    /// Whether nodes forget what others still need.
    forgets: bool,
    lives: BTreeMap<NodeId, Life>,
    /// The log of each partition.
    logs: BTreeMap<PartitionId, BTreeMap<Epoch, Vec<Ordered>>>,
    verdicts: BTreeMap<Position, Verdict>,
}

impl History {
    pub(crate) fn new(may_go_back: bool, forgets: bool) -> History {
        History { may_go_back, forgets, ..History::default() }
    }

    /// A node has found out that it has executed what was lost, or that it must say again what it keeps no longer, and ends.
    pub(crate) fn goes_back(&mut self, node: NodeId, why: &Fatal) {
        let is_expected = match why {
            Fatal::Overwritten { .. } | Fatal::Superseded { .. } => self.may_go_back,
            Fatal::Unserved { .. } => self.forgets,
            _ => false,
        };
        assert!(is_expected, "{node} stops: {why}");
        self.went_back += 1;
    }

    /// Compares what nodes have told in their last lives.
    pub(crate) fn settle(&mut self) {
        if !self.may_go_back {
            return;
        }
        (self.logs, self.verdicts) = Default::default();
        for (node, life) in std::mem::take(&mut self.lives) {
            for (epoch, transactions) in &life.log {
                self.compare_batch(node, *epoch, transactions);
            }
            for (position, verdict) in &life.executed {
                verdict.iter().for_each(|verdict| self.compare_verdict(node, *position, verdict));
            }
            self.lives.insert(node, life);
        }
    }

    fn compare_batch(&mut self, node: NodeId, epoch: Epoch, transactions: &[Ordered]) {
        let log = self.logs.entry(node.partition).or_default();
        let known = log.entry(epoch).or_insert_with(|| transactions.to_vec());
        assert_eq!(*known, transactions, "{node} has another {epoch} than a replica or an earlier life");
    }

    fn compare_verdict(&mut self, node: NodeId, position: Position, verdict: &Verdict) {
        let known = self.verdicts.entry(position).or_insert_with(|| verdict.clone());
        assert_eq!(known, verdict, "{node} has another verdict at {position}");
    }

    /// A node begins to live, again.
    pub(crate) fn begin(&mut self, node: NodeId) {
        self.lives.insert(node, Life::default());
    }

    /// Notes what a step has done: it must be what every other replica and every earlier life has done.
    pub(crate) fn note(&mut self, node: NodeId, trace: Trace) {
        for (epoch, transactions) in trace.closed {
            let life = self.lives.get_mut(&node).expect("it lives");
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
            if self.may_go_back {
                life.log.insert(epoch, transactions);
            } else {
                self.compare_batch(node, epoch, &transactions);
            }
        }
        for executed in trace.executed {
            let position = executed.position;
            let life = self.lives.get_mut(&node).expect("it lives");
            // Who only applies functors does not know what a commit returns.
            let verdict = match executed.verdict {
                Verdict::Committed(_) if !executed.scope.has_result() => None,
                verdict => Some(verdict),
            };
            let earlier = life.executed.insert(position, verdict.clone());
            assert_eq!(earlier, None, "{node} has run {position} twice in one life");
            if let Some(verdict) = verdict.filter(|_| !self.may_go_back) {
                self.compare_verdict(node, position, &verdict);
            }
        }
    }

    /// The last epoch that the life of a node has handed on.
    pub(crate) fn closed(&self, node: NodeId) -> Epoch {
        self.lives[&node].closed
    }

    /// The snapshots that the order has opened through a node and not closed.
    pub(crate) fn open_through(&self, node: NodeId) -> BTreeSet<Position> {
        let mut open = BTreeSet::new();
        for (position, ordered) in self.order() {
            match ordered.work {
                Work::OpenSnapshot(entry) if entry.node == node => open.insert(position),
                Work::CloseSnapshot(at) => open.remove(&at),
                _ => false,
            };
        }
        open
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
