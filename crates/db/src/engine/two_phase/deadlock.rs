//! Deadlocks: cycles of transactions that wait for each other (DET-37, DET-38).
//!
//! Each partition knows its part of the waits-for graph at any time. Whenever a transaction begins to wait, its own part is searched
//! for a cycle through it. Cycles over several partitions are found by a *detector*, the lowest partition: the others send it their
//! parts for as long as anybody waits, and it searches the union (Gray's and Stonebraker's central detection).
//!
//! The union is of different moments, so a cycle may be none: a *phantom*. Locks are held to the end, so a transaction that waits
//! goes on waiting until the other has ended, and an edge that is reported and out of date is one whose transaction has ended or was
//! given up. Phantoms do no harm but a restart, and are counted where they are noticed.
//!
//! *The victim is the youngest of the cycle*: the one that began last, counted from its first attempt. So the oldest transaction is
//! never a victim and comes to its end; then another one is the oldest.

use std::collections::{BTreeMap, BTreeSet};

use super::message::TransactionId;
use crate::position::PartitionId;

/// Who waits for whose end.
pub type Edge = (TransactionId, TransactionId);

/// Finds a cycle through a transaction, and names its members. `next` names for whose ends a transaction waits.
pub fn cycle_through<T: Copy + Ord>(start: T, next: impl Fn(T) -> Vec<T>) -> Option<Vec<T>> {
    // Each is visited once: what does not lead back to the start does not do so by another way either.
    let mut seen = BTreeSet::from([start]);
    let mut path: Vec<(T, Vec<T>)> = vec![(start, next(start))];
    while let Some((_, rest)) = path.last_mut() {
        match rest.pop() {
            None => {
                path.pop();
            }
            Some(other) if other == start => {
                return Some(path.into_iter().map(|(member, _)| member).collect());
            }
            Some(other) => {
                if seen.insert(other) {
                    path.push((other, next(other)));
                }
            }
        }
    }
    None
}

/// The waits-for graph of all partitions, as they have reported it.
#[derive(Debug, Default)]
pub struct Detector {
    reported: BTreeMap<PartitionId, Vec<Edge>>,
}

impl Detector {
    /// Takes a partition's part of the graph, in the place of what it reported before, and names the victims whose restarts break
    /// all cycles.
    pub fn report(&mut self, from: PartitionId, edges: Vec<Edge>) -> Vec<TransactionId> {
        if edges.is_empty() {
            self.reported.remove(&from);
        } else {
            self.reported.insert(from, edges);
        }
        let mut graph: BTreeMap<TransactionId, BTreeSet<TransactionId>> = BTreeMap::new();
        for (waiting, earlier) in self.reported.values().flatten() {
            graph.entry(*waiting).or_default().insert(*earlier);
        }
        let mut victims = Vec::new();
        while let Some(victim) = find_victim(&graph) {
            graph.remove(&victim);
            victims.push(victim);
        }
        // Until it is heard of again, nobody waits for it.
        for edges in self.reported.values_mut() {
            edges.retain(|(waiting, _)| !victims.contains(waiting));
        }
        victims
    }

    /// Forgets what a partition reported.
    pub fn forget(&mut self, partition: PartitionId) {
        self.reported.remove(&partition);
    }
}

/// The youngest transaction of a cycle, if there is one.
fn find_victim(graph: &BTreeMap<TransactionId, BTreeSet<TransactionId>>) -> Option<TransactionId> {
    let next = |id| graph.get(&id).into_iter().flatten().copied().collect();
    graph.keys().find_map(|start| cycle_through(*start, next)?.into_iter().max())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> TransactionId {
        TransactionId { started: number, coordinator: PartitionId(0), life: 1, attempt: 0 }
    }

    fn edges(pairs: &[(u64, u64)]) -> Vec<Edge> {
        pairs.iter().map(|(waiting, earlier)| (id(*waiting), id(*earlier))).collect()
    }

    #[test]
    fn a_cycle_is_found_from_any_of_its_members_and_only_from_them() {
        let next = |at: u64| match at {
            1 => vec![2, 9],
            2 => vec![3],
            3 => vec![1],
            4 => vec![1],
            _ => vec![],
        };
        for start in [1, 2, 3] {
            let mut members = cycle_through(start, next).expect("a cycle");
            members.sort_unstable();
            assert_eq!(members, [1, 2, 3]);
        }
        assert_eq!(cycle_through(4, next), None, "it waits for a cycle and is not in one");
        assert_eq!(cycle_through(9, next), None);
    }

    #[test]
    fn cycles_over_two_and_three_partitions_lose_their_youngest() {
        let mut detector = Detector::default();
        assert_eq!(detector.report(PartitionId(0), edges(&[(1, 2)])), []);
        assert_eq!(detector.report(PartitionId(1), edges(&[(2, 1)])), [id(2)]);
        assert_eq!(detector.report(PartitionId(1), Vec::new()), []);
        assert_eq!(detector.report(PartitionId(0), edges(&[(5, 3)])), []);
        assert_eq!(detector.report(PartitionId(1), edges(&[(3, 4)])), []);
        assert_eq!(detector.report(PartitionId(2), edges(&[(4, 5)])), [id(5)]);
    }

    #[test]
    fn two_cycles_lose_one_each_and_no_cycle_loses_none() {
        let mut detector = Detector::default();
        assert_eq!(detector.report(PartitionId(0), edges(&[(1, 2), (2, 3), (4, 3)])), []);
        let found = detector.report(PartitionId(1), edges(&[(2, 1), (3, 4)]));
        assert_eq!(found, [id(2), id(4)]);
        assert_eq!(detector.report(PartitionId(1), Vec::new()), []);
    }

    #[test]
    fn what_a_partition_reported_is_replaced() {
        let mut detector = Detector::default();
        assert_eq!(detector.report(PartitionId(0), edges(&[(1, 2)])), []);
        assert_eq!(detector.report(PartitionId(0), edges(&[(1, 3)])), []);
        assert_eq!(detector.report(PartitionId(1), edges(&[(2, 1)])), []);
        detector.forget(PartitionId(1));
        assert_eq!(detector.report(PartitionId(0), edges(&[(1, 2)])), []);
    }
}
