//! Deadlocks: cycles of transactions that wait for each other (DET-37, DET-38).
//!
//! Each partition knows its part of the waits-for graph at any time. Whenever a transaction that holds locks begins to wait for more,
//! its own part is searched for a cycle through it; by option, a transaction that waits for too long is given up instead. Cycles
//! over several partitions are found by a *detector*, the lowest partition: the others send it their parts for as long as anybody
//! waits, and it searches the union (Gray's and Stonebraker's central detection).
//!
//! A part is sent when it has changed, and when the detector has said that it has the one before ([`Reports`]). So at most one is on
//! its way, and a slow network has room for the locks and decisions that end waits: reports that are sent by the clock alone fill it.
//!
//! The union is of different moments, so a cycle may be none: a *phantom*. Locks are held to the end, so a transaction that waits
//! goes on waiting until the other has ended; who is in a cycle does not end. So only where one was given up meanwhile, for
//! another cycle or since a partition was lost, is an edge of a cycle out of date. Phantoms do no harm but a restart. They are
//! counted where they are noticed: when the victim itself is the one that had been given up, or had gone on.
//!
//! *The victim is the youngest of the cycle*: the one that began last, counted from its first attempt. So the oldest transaction is
//! never a victim and comes to its end; then another one is the oldest.

use std::collections::{BTreeMap, BTreeSet};

use super::message::TransactionId;
use crate::position::PartitionId;

/// Who waits for whose end.
pub type Edge = (TransactionId, TransactionId);

/// When a partition tells the detector its part of the graph.
#[derive(Debug, Default)]
pub struct Reports {
    /// When it looks whether there is something to tell, in microseconds.
    next: Option<u64>,
    /// What it told last.
    told: Vec<Edge>,
    /// Whether that is on its way.
    under_way: bool,
}

impl Reports {
    /// When there may be something to tell, in microseconds. Nothing is told while a report is under way.
    pub fn due(&self) -> Option<u64> {
        self.next.filter(|_| !self.under_way)
    }

    /// Somebody begins to wait: that is told by this time.
    pub fn by(&mut self, at: u64) {
        self.next.get_or_insert(at);
    }

    /// Who waits for whom now, and when to look again if anybody does; whether that is to be told.
    pub fn changed(&mut self, edges: &[Edge], again: u64) -> bool {
        self.next = (!edges.is_empty()).then_some(again);
        if edges == self.told {
            return false;
        }
        self.told = edges.to_vec();
        true
    }

    /// What was told is on its way.
    pub fn sent(&mut self) {
        self.under_way = true;
    }

    /// The detector has what was told.
    pub fn received(&mut self) {
        self.under_way = false;
    }

    /// The detector knows nothing of what was told.
    pub fn begin_anew(&mut self, now: u64) {
        *self = Reports { next: Some(now), ..Reports::default() };
    }
}

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
    /// Victims that are reported to wait, until their restarts are known everywhere: they wait for nobody.
    named: BTreeSet<TransactionId>,
}

impl Detector {
    /// Takes a partition's part of the graph, in the place of what it reported before.
    pub fn report(&mut self, from: PartitionId, edges: Vec<Edge>) {
        if edges.is_empty() {
            self.reported.remove(&from);
        } else {
            self.reported.insert(from, edges);
        }
    }

    /// The number of edges that are reported.
    pub fn edges(&self) -> usize {
        self.reported.values().map(Vec::len).sum()
    }

    /// Names the victims whose restarts break all cycles.
    pub fn search(&mut self) -> Vec<TransactionId> {
        if !self.named.is_empty() {
            let waiting: BTreeSet<TransactionId> =
                self.reported.values().flatten().map(|(waiting, _)| *waiting).collect();
            self.named.retain(|victim| waiting.contains(victim));
        }
        // One part alone has cycles too, where it does not search itself.
        let edges = self.reported.values().flatten().filter(|(waiting, _)| !self.named.contains(waiting));
        let victims = Graph::new(edges.copied()).victims();
        self.named.extend(&victims);
        victims
    }

    /// Forgets what a partition reported. What it was told may be lost, so that victims are named again.
    pub fn forget(&mut self, partition: PartitionId) {
        self.reported.remove(&partition);
        self.named.clear();
    }
}

/// A graph from which is taken who waits for nobody, again and again: what is left are cycles, and what waits for them. That takes
/// as long as there are edges, once for the graph and once more for each victim's cycle.
struct Graph {
    ids: Vec<TransactionId>,
    /// By place in `ids`: for whom it waits, who waits for it, and for how many of those that are left it waits.
    waits_for: Vec<Vec<usize>>,
    waited_by: Vec<Vec<usize>>,
    left: Vec<usize>,
    taken: Vec<bool>,
}

impl Graph {
    fn new(edges: impl Iterator<Item = Edge>) -> Graph {
        let mut edges: Vec<Edge> = edges.collect();
        edges.sort_unstable();
        edges.dedup();
        let mut ids: Vec<TransactionId> =
            edges.iter().flat_map(|(waiting, earlier)| [*waiting, *earlier]).collect();
        ids.sort_unstable();
        ids.dedup();
        let nobody = || vec![Vec::new(); ids.len()];
        let (mut waits_for, mut waited_by) = (nobody(), nobody());
        for (waiting, earlier) in &edges {
            if let (Ok(waiting), Ok(earlier)) = (ids.binary_search(waiting), ids.binary_search(earlier)) {
                waits_for[waiting].push(earlier);
                waited_by[earlier].push(waiting);
            }
        }
        let left = waits_for.iter().map(Vec::len).collect();
        Graph { taken: vec![false; ids.len()], ids, waits_for, waited_by, left }
    }

    /// Takes one out, and all that wait for nobody then.
    fn take(&mut self, place: usize) {
        self.taken[place] = true;
        let mut gone = vec![place];
        while let Some(place) = gone.pop() {
            for waiting in self.waited_by[place].iter().copied() {
                self.left[waiting] -= 1;
                if self.left[waiting] == 0 && !self.taken[waiting] {
                    self.taken[waiting] = true;
                    gone.push(waiting);
                }
            }
        }
    }

    /// The youngest of each cycle, until there is none.
    fn victims(mut self) -> Vec<TransactionId> {
        for place in 0..self.ids.len() {
            if self.left[place] == 0 && !self.taken[place] {
                self.take(place);
            }
        }
        let mut victims = Vec::new();
        for start in 0..self.ids.len() {
            while !self.taken[start] {
                let Some(victim) = self.cycle_from(start).into_iter().max() else { break };
                victims.push(self.ids[victim]);
                self.take(victim);
            }
        }
        victims
    }

    /// The cycle to which one leads that is left: from each that is left an edge leads to another one.
    fn cycle_from(&self, start: usize) -> Vec<usize> {
        let mut path = vec![start];
        let mut seen = BTreeMap::from([(start, 0)]);
        while let Some(next) =
            path.last().and_then(|last| self.waits_for[*last].iter().copied().find(|next| !self.taken[*next]))
        {
            if let Some(first) = seen.get(&next) {
                return path.split_off(*first);
            }
            seen.insert(next, path.len());
            path.push(next);
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches after each report.
    trait Searched {
        fn victims(&mut self, from: PartitionId, edges: Vec<Edge>) -> Vec<TransactionId>;
    }

    impl Searched for Detector {
        fn victims(&mut self, from: PartitionId, edges: Vec<Edge>) -> Vec<TransactionId> {
            self.report(from, edges);
            self.search()
        }
    }

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
        assert_eq!(detector.victims(PartitionId(0), edges(&[(1, 2)])), []);
        assert_eq!(detector.victims(PartitionId(1), edges(&[(2, 1)])), [id(2)]);
        assert_eq!(detector.victims(PartitionId(1), Vec::new()), []);
        assert_eq!(detector.victims(PartitionId(0), edges(&[(5, 3)])), []);
        assert_eq!(detector.victims(PartitionId(1), edges(&[(3, 4)])), []);
        assert_eq!(detector.victims(PartitionId(2), edges(&[(4, 5)])), [id(5)]);
    }

    #[test]
    fn two_cycles_lose_one_each_and_no_cycle_loses_none() {
        let mut detector = Detector::default();
        assert_eq!(detector.victims(PartitionId(0), edges(&[(1, 2), (2, 3), (4, 3)])), []);
        let found = detector.victims(PartitionId(1), edges(&[(2, 1), (3, 4)]));
        assert_eq!(found, [id(2), id(4)]);
        assert_eq!(detector.victims(PartitionId(1), Vec::new()), []);
    }

    #[test]
    fn a_report_is_told_when_it_has_changed_and_the_last_one_has_come() {
        let mut reports = Reports::default();
        assert_eq!(reports.due(), None);
        reports.by(5);
        reports.by(9);
        assert_eq!(reports.due(), Some(5));
        let (one, two) = (edges(&[(1, 2)]), edges(&[(1, 2), (3, 2)]));
        assert!(reports.changed(&one, 10));
        reports.sent();
        reports.by(6);
        assert_eq!(reports.due(), None, "it is on its way");
        reports.received();
        assert_eq!(reports.due(), Some(10), "not before");
        assert!(!reports.changed(&one, 15), "that was told");
        assert_eq!(reports.due(), Some(15));
        assert!(reports.changed(&two, 20));
        reports.sent();
        reports.begin_anew(17);
        assert_eq!(reports.due(), Some(17), "it may be lost");
        assert!(reports.changed(&two, 20), "and is told again");
        reports.sent();
        reports.received();
        assert!(reports.changed(&[], 35), "that nobody waits is told once");
        reports.sent();
        reports.received();
        assert_eq!(reports.due(), None);
        assert!(!reports.changed(&[], 40));
    }

    #[test]
    fn what_a_partition_reported_is_replaced() {
        let mut detector = Detector::default();
        assert_eq!(detector.victims(PartitionId(0), edges(&[(1, 2)])), []);
        assert_eq!(detector.victims(PartitionId(0), edges(&[(1, 3)])), []);
        assert_eq!(detector.victims(PartitionId(1), edges(&[(2, 1)])), []);
        detector.forget(PartitionId(1));
        assert_eq!(detector.victims(PartitionId(0), edges(&[(1, 2)])), []);
    }
}
