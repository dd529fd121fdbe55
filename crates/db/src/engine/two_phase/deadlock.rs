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
//! Of those that wait in the queue of one key only the last is named, which waits for the ones before it. So where a victim leaves a queue,
//! those behind it come to wait for those before it ([`Edge::place`]). Without that a search would find one cycle of the many that
//! transactions which meet at two hot keys are in, and the next one only after that victim has begun again everywhere.
//!
//! The union is of different moments, so a cycle may be none: a *phantom*. Locks are held to the end, so a transaction that waits
//! goes on waiting until the other has ended; who is in a cycle does not end. So only where one was given up meanwhile, for
//! another cycle or since a partition was lost, is an edge of a cycle out of date. Phantoms do no harm but a restart. They are
//! counted where they are noticed: when the victim itself is the one that had been given up, or had gone on.
//!
//! *The victim is the youngest of the cycle*: the one that began last, counted from its first attempt. So the oldest transaction is
//! never a victim and comes to its end; then another one is the oldest.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::locks::Mode;
use super::message::TransactionId;
use crate::position::PartitionId;

/// That a transaction waits for the end of another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// The one that waits.
    pub waiting: TransactionId,
    /// The one that it waits for.
    pub earlier: TransactionId,
    /// Where it does.
    pub place: Place,
}

/// Where a transaction waits for another one. When that one leaves, it comes to wait for those that the other one waits for at the same
/// place, if it conflicts with them there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Place {
    /// In the queue of a key.
    Queue {
        /// The hash of the key.
        key: u64,
        /// How the one that waits wants it.
        wanted: Mode,
        /// How the earlier one has it or wants it.
        earlier: Mode,
    },
    /// Among the ranges of a partition. Which of them conflict is not told, so that there are too many edges rather than too few.
    Ranges,
}

impl Place {
    /// Where one that waits at this place comes to wait for those that are waited for at the other one by the one that it waits for.
    fn inherits(self, other: Place) -> Option<Place> {
        match (self, other) {
            (Place::Ranges, Place::Ranges) => Some(Place::Ranges),
            (Place::Queue { key, wanted, .. }, Place::Queue { key: of, earlier, .. }) => {
                (key == of && wanted.conflicts(earlier)).then_some(Place::Queue { key, wanted, earlier })
            }
            _ => None,
        }
    }
}

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

    /// Names the victims whose restarts break all cycles, or many of them where there are very many.
    pub fn search(&mut self) -> Vec<TransactionId> {
        if !self.named.is_empty() {
            let waiting: BTreeSet<TransactionId> =
                self.reported.values().flatten().map(|edge| edge.waiting).collect();
            self.named.retain(|victim| waiting.contains(victim));
        }
        // One part alone has cycles too, where it does not search itself.
        let edges = self.reported.iter().flat_map(|(from, edges)| edges.iter().map(|edge| (*from, edge)));
        let victims = Graph::new(edges).victims(&self.named);
        self.named.extend(&victims);
        victims
    }

    /// Forgets what a partition reported. What it was told may be lost, so that victims are named again.
    pub fn forget(&mut self, partition: PartitionId) {
        self.reported.remove(&partition);
        self.named.clear();
    }
}

/// A place of a partition.
type At = (PartitionId, Place);

/// A graph from which is taken who waits for nobody, again and again: what is left are cycles, and what waits for them. That takes
/// as long as there are edges, once for the graph and once more for each victim's cycle.
struct Graph {
    ids: Vec<TransactionId>,
    /// By place in `ids`: for whom it waits and who waits for it, with where; and for how many of those that are left it waits.
    waits_for: Vec<Vec<(usize, At)>>,
    waited_by: Vec<Vec<(usize, At)>>,
    left: Vec<usize>,
    taken: Vec<bool>,
    edges: usize,
    /// How many steps a search may yet take.
    patience: usize,
}

/// Steps that a search may take for each edge: several times what many short cycles take.
const STEPS_FOR_EACH_EDGE: usize = 32;

impl Graph {
    fn new<'a>(told: impl Iterator<Item = (PartitionId, &'a Edge)> + Clone) -> Graph {
        let mut ids: Vec<TransactionId> =
            told.clone().flat_map(|(_, edge)| [edge.waiting, edge.earlier]).collect();
        ids.sort_unstable();
        ids.dedup();
        let nobody = || vec![Vec::new(); ids.len()];
        let (mut waits_for, mut waited_by, mut edges) = (nobody(), nobody(), 0);
        for (from, Edge { waiting, earlier, place }) in told {
            if let (Ok(waiting), Ok(earlier)) = (ids.binary_search(waiting), ids.binary_search(earlier)) {
                waits_for[waiting].push((earlier, (from, *place)));
                waited_by[earlier].push((waiting, (from, *place)));
                edges += 1;
            }
        }
        let left = waits_for.iter().map(Vec::len).collect();
        let taken = vec![false; ids.len()];
        Graph { ids, waits_for, waited_by, left, taken, edges, patience: 0 }
    }

    /// Takes one out that has come to its end or will, and all that wait for nobody then.
    fn take(&mut self, place: usize) {
        self.taken[place] = true;
        let mut gone = vec![place];
        while let Some(place) = gone.pop() {
            for (waiting, _) in std::mem::take(&mut self.waited_by[place]) {
                if self.taken[waiting] {
                    continue;
                }
                self.left[waiting] -= 1;
                if self.left[waiting] == 0 {
                    self.taken[waiting] = true;
                    gone.push(waiting);
                }
            }
        }
    }

    /// Takes out one that is given up: who waits for it waits for others then.
    fn give_up(&mut self, place: usize) {
        self.taken[place] = true;
        let waits = std::mem::take(&mut self.waits_for[place]);
        for (waiting, at) in std::mem::take(&mut self.waited_by[place]) {
            if self.taken[waiting] {
                continue;
            }
            self.patience = self.patience.saturating_sub(waits.len());
            let own = &mut self.waits_for[waiting];
            own.retain(|edge| *edge != (place, at));
            for (earlier, other) in waits.iter().copied().filter(|(earlier, _)| *earlier != waiting) {
                let inherited = at.1.inherits(other.1).filter(|_| at.0 == other.0 && !self.taken[earlier]);
                if let Some(at) = inherited.map(|place| (at.0, place))
                    && !own.contains(&(earlier, at))
                {
                    own.push((earlier, at));
                    self.waited_by[earlier].push((waiting, at));
                }
            }
            self.left[waiting] = own.iter().filter(|(earlier, _)| !self.taken[*earlier]).count();
            if self.left[waiting] == 0 {
                self.take(waiting);
            }
        }
    }

    /// The youngest of each cycle, until there is none. Some have been given up already.
    fn victims(mut self, named: &BTreeSet<TransactionId>) -> Vec<TransactionId> {
        for place in 0..self.ids.len() {
            if self.left[place] == 0 && !self.taken[place] {
                self.take(place);
            }
        }
        for id in named {
            if let Some(place) = self.ids.binary_search(id).ok().filter(|place| !self.taken[*place]) {
                self.give_up(place);
            }
        }
        self.patience = STEPS_FOR_EACH_EDGE * self.edges;
        let mut victims = Vec::new();
        // A way along the edges, and where on it each is. From each that is left an edge leads to another one.
        let (mut way, mut places) = (Vec::new(), vec![None; self.ids.len()]);
        for start in 0..self.ids.len() {
            way.push(start);
            places[start] = Some(0);
            while let Some(last) = way.last().copied() {
                if self.patience == 0 {
                    return victims;
                }
                self.patience -= 1;
                match self.next(last) {
                    None => {
                        way.pop();
                        places[last] = None;
                    }
                    Some(next) => match places[next] {
                        None => {
                            places[next] = Some(way.len());
                            way.push(next);
                        }
                        Some(first) => {
                            let Some(victim) = way[first..].iter().copied().max() else { break };
                            victims.push(self.ids[victim]);
                            self.give_up(victim);
                            // It goes on from before the victim.
                            let end = places[victim].unwrap_or(first);
                            way.drain(end..).for_each(|gone| places[gone] = None);
                        }
                    },
                }
            }
        }
        victims
    }

    /// One that is left and for which one that is left waits.
    fn next(&mut self, place: usize) -> Option<usize> {
        if self.taken[place] {
            return None;
        }
        let Graph { waits_for, taken, .. } = self;
        let waits = &mut waits_for[place];
        while waits.pop_if(|(earlier, _)| taken[*earlier]).is_some() {}
        waits.last().map(|(earlier, _)| *earlier)
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
        let edge = |(waiting, earlier): &(u64, u64)| in_queue(*waiting, *earlier, waiting * 100 + earlier);
        pairs.iter().map(edge).collect()
    }

    fn in_queue(waiting: u64, earlier: u64, key: u64) -> Edge {
        let place = Place::Queue { key, wanted: Mode::Exclusive, earlier: Mode::Exclusive };
        Edge { waiting: id(waiting), earlier: id(earlier), place }
    }

    /// What is told of a queue: each waits for the one before it.
    fn queue(key: u64, members: &[u64]) -> Vec<Edge> {
        members.windows(2).map(|pair| in_queue(pair[1], pair[0], key)).collect()
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
    fn those_behind_a_victim_wait_for_those_before_it() {
        let mut detector = Detector::default();
        // Two keys, at each of which all wait in another order: who is left waits in the same order at both.
        detector.report(PartitionId(0), queue(7, &[1, 2, 3, 4]));
        detector.report(PartitionId(1), queue(8, &[4, 3, 2, 1]));
        assert_eq!(detector.search(), [id(4), id(3), id(2)]);
        assert_eq!(detector.search(), [], "they are named already");
        // One of them has begun again, and its place in one queue is another's, as yet.
        detector.report(PartitionId(0), queue(7, &[1, 2, 3, 5]));
        detector.report(PartitionId(1), queue(8, &[5, 3, 2, 1]));
        assert_eq!(
            detector.search(),
            [id(5)],
            "it waits for the first, through victims that are yet to begin again"
        );
    }

    #[test]
    fn readers_do_not_come_to_wait_for_readers() {
        let shared = |waiting, earlier, wanted, of| Edge {
            waiting: id(waiting),
            earlier: id(earlier),
            place: Place::Queue { key: 7, wanted, earlier: of },
        };
        let mut detector = Detector::default();
        // A reader behind a writer behind a reader: without the writer, nobody waits.
        detector.report(
            PartitionId(0),
            vec![shared(9, 1, Mode::Exclusive, Mode::Shared), shared(3, 9, Mode::Shared, Mode::Exclusive)],
        );
        detector.report(PartitionId(1), edges(&[(1, 9), (1, 3)]));
        assert_eq!(detector.search(), [id(9)]);
    }

    #[test]
    fn all_cycles_of_a_thousand_at_two_keys_are_found_at_once() {
        let orders = [7, 11].map(|factor: u64| {
            let mut order: Vec<u64> = (1..=1009).collect();
            order.sort_by_key(|number| number * factor * factor % 1013);
            order
        });
        let mut detector = Detector::default();
        for (partition, (key, order)) in (0..).zip([7, 8].iter().zip(&orders)) {
            detector.report(PartitionId(partition), queue(*key, order));
        }
        let mut victims = BTreeSet::new();
        for _ in 0..4 {
            victims.extend(detector.search());
        }
        assert_eq!(detector.search(), []);
        let left = orders.map(|order| {
            order.into_iter().filter(|number| !victims.contains(&id(*number))).collect::<Vec<_>>()
        });
        assert_eq!(left[0], left[1], "those that are left wait in one order");
        assert!(left[0].contains(&1), "the oldest is never a victim");
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
