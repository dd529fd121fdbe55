//! The direct serialization graph, and its cycles.
//!
//! Source: A. Adya, *Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions*, MIT
//! 1999 (the graph and the phenomena G0 to G2 in chapter 3, G-single in chapter 4); also Adya, Liskov and O'Neil,
//! *Generalized Isolation Level Definitions*, ICDE 2000, §4 and §5.
//!
//! An edge says that one transaction must come before another: because of two versions in a row (ww), a version and who
//! read it (wr), or a version that was read and the next one (rw, an *anti-dependency*). What kind of edges a cycle has
//! tells what went wrong:
//!
//! | phenomenon | edges of the cycle |
//! |---|---|
//! | G0, write cycle | ww |
//! | G1c, circular information flow | ww and wr |
//! | G-single, read skew or lost update | ww, wr and one rw |
//! | G2, anti-dependency cycle, as in write skew | ww, wr and more than one rw |

use std::collections::VecDeque;

/// Most edges that are tried as the beginning of a cycle, to find a short one in bounded time.
const CYCLES_TRIED_MAX: usize = 1_000;

/// Why one transaction must come before another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Dependency {
    /// Wrote the version before the other's.
    WriteWrite,
    /// Wrote what the other read.
    WriteRead,
    /// Read the version before the other's.
    ReadWrite,
    /// Was answered before the other was sent.
    RealTime,
}

impl Dependency {
    /// Adya's name of the edge.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dependency::WriteWrite => "ww",
            Dependency::WriteRead => "wr",
            Dependency::ReadWrite => "rw",
            Dependency::RealTime => "rt",
        }
    }
}

/// A dependency between two transactions, given by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Edge<'a> {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) dependency: Dependency,
    /// The key over which they depend.
    pub(crate) key: &'a [u8],
}

/// A phenomenon, with a cycle that shows it: each edge begins where the one before ends, the first where the last ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cycle<'a> {
    pub(crate) phenomenon: &'static str,
    pub(crate) edges: Vec<Edge<'a>>,
}

/// Transactions, numbered from 0, and the dependencies between them.
#[derive(Debug, Default)]
pub(crate) struct Graph<'a> {
    edges: Vec<Edge<'a>>,
    nodes: usize,
}

impl<'a> Graph<'a> {
    /// Adds a dependency; of a transaction on itself there is none.
    pub(crate) fn add(&mut self, edge: Edge<'a>) {
        if edge.from != edge.to {
            self.nodes = self.nodes.max(edge.from.max(edge.to) + 1);
            self.edges.push(edge);
        }
    }

    /// The worst phenomenon that the graph has, with the shortest cycle that is found easily; `None` when the graph has no
    /// cycle.
    pub(crate) fn cycle(&self) -> Option<Cycle<'a>> {
        // As long as all edges lead on in the order, nothing needs to be searched.
        if self.edges.iter().all(|edge| edge.from < edge.to) {
            return None;
        }
        let all = Subgraph::of(self, |_| true);
        if !all.has_cycle() {
            return None;
        }
        let writes = Subgraph::of(self, |dependency| dependency == Dependency::WriteWrite);
        let flow = Subgraph::of(self, |dependency| dependency != Dependency::ReadWrite);
        let anti = |edge: &Edge<'_>| edge.dependency == Dependency::ReadWrite;
        let found = |phenomenon, edges: Option<Vec<Edge<'a>>>| edges.map(|edges| Cycle { phenomenon, edges });
        found("G0, a write cycle", writes.shortest_cycle(&writes.components(), |_| true))
            .or_else(|| {
                found("G1c, circular information flow", flow.shortest_cycle(&flow.components(), |_| true))
            })
            .or_else(|| {
                // One anti-dependency, closed by edges of the other kinds.
                let cycle = flow.shortest_cycle(&all.components(), anti);
                found("G-single, a cycle with one anti-dependency", cycle)
            })
            .or_else(|| {
                let cycle = all.shortest_cycle(&all.components(), anti);
                found("G2, a cycle with several anti-dependencies", cycle)
            })
    }
}

/// A graph with some kinds of its edges.
struct Subgraph<'g, 'a> {
    graph: &'g Graph<'a>,
    /// By node: the edges that begin there, as places in the graph's list.
    outgoing: Vec<Vec<usize>>,
}

impl<'g, 'a> Subgraph<'g, 'a> {
    fn of(graph: &'g Graph<'a>, includes: impl Fn(Dependency) -> bool) -> Subgraph<'g, 'a> {
        let mut outgoing = vec![Vec::new(); graph.nodes];
        for (place, edge) in graph.edges.iter().enumerate() {
            if includes(edge.dependency) {
                outgoing[edge.from].push(place);
            }
        }
        Subgraph { graph, outgoing }
    }

    fn target(&self, place: usize) -> usize {
        self.graph.edges[place].to
    }

    fn has_cycle(&self) -> bool {
        let components = self.components();
        let within = |edge: &Edge<'_>| components[edge.from] == components[edge.to];
        self.outgoing.iter().flatten().any(|place| within(&self.graph.edges[*place]))
    }

    /// By node: the number of its strongly connected component (R. Tarjan, *Depth-First Search and Linear Graph Algorithms*,
    /// 1972), without recursion, since a path may be as long as the history.
    fn components(&self) -> Vec<usize> {
        const UNSEEN: usize = usize::MAX;
        let nodes = self.outgoing.len();
        let mut component = vec![UNSEEN; nodes];
        let mut order = vec![UNSEEN; nodes];
        let mut lowest = vec![UNSEEN; nodes];
        let (mut seen, mut components) = (0, 0);
        let mut open = Vec::new();
        // Nodes on the path, with the number of their edges that were followed.
        let mut path: Vec<(usize, usize)> = Vec::new();
        for root in 0..nodes {
            if order[root] != UNSEEN {
                continue;
            }
            path.push((root, 0));
            while let Some((node, followed)) = path.last_mut() {
                let node = *node;
                if *followed == 0 && order[node] == UNSEEN {
                    (order[node], lowest[node]) = (seen, seen);
                    seen += 1;
                    open.push(node);
                }
                if let Some(place) = self.outgoing[node].get(*followed) {
                    *followed += 1;
                    let next = self.target(*place);
                    if order[next] == UNSEEN {
                        path.push((next, 0));
                    } else if component[next] == UNSEEN {
                        lowest[node] = lowest[node].min(order[next]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    lowest[*parent] = lowest[*parent].min(lowest[node]);
                }
                if lowest[node] == order[node] {
                    while let Some(member) = open.pop() {
                        component[member] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }

    /// The shortest cycle of an edge of the whole graph that `begins` allows, and a path of this subgraph. Looks only within
    /// `components`, and tries a bounded number of edges.
    fn shortest_cycle(
        &self,
        components: &[usize],
        begins: impl Fn(&Edge<'a>) -> bool,
    ) -> Option<Vec<Edge<'a>>> {
        let within = |edge: &&Edge<'a>| components[edge.from] == components[edge.to];
        let beginnings = self.graph.edges.iter().filter(within).filter(|edge| begins(edge));
        let mut shortest: Option<Vec<Edge<'a>>> = None;
        for edge in beginnings.take(CYCLES_TRIED_MAX) {
            let length_max = shortest.as_ref().map_or(usize::MAX, |edges| edges.len() - 2);
            if let Some(path) = self.path(edge.to, edge.from, components, length_max) {
                shortest = Some(std::iter::once(*edge).chain(path).collect());
            }
            // No cycle is shorter than two edges.
            if shortest.as_ref().is_some_and(|edges| edges.len() <= 2) {
                break;
            }
        }
        shortest
    }

    /// The shortest path from one node to another of its component, of at most `length_max` edges.
    fn path(&self, from: usize, to: usize, components: &[usize], length_max: usize) -> Option<Vec<Edge<'a>>> {
        // By node: the edge by which it was reached.
        let mut reached: Vec<Option<usize>> = vec![None; self.outgoing.len()];
        let mut next = VecDeque::from([(from, 0)]);
        'search: while let Some((node, length)) = next.pop_front() {
            if length >= length_max {
                return None;
            }
            for place in &self.outgoing[node] {
                let target = self.target(*place);
                if target == from || reached[target].is_some() || components[target] != components[from] {
                    continue;
                }
                reached[target] = Some(*place);
                if target == to {
                    break 'search;
                }
                next.push_back((target, length + 1));
            }
        }
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let edge = self.graph.edges[reached[node]?];
            path.push(edge);
            node = edge.from;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use ordain_workload::random::Random;

    use super::*;

    fn graph(edges: &[(usize, Dependency, usize)]) -> Graph<'static> {
        let mut graph = Graph::default();
        edges.iter().for_each(|(from, dependency, to)| {
            graph.add(Edge { from: *from, to: *to, dependency: *dependency, key: b"k" });
        });
        graph
    }

    /// The phenomenon's short name and the nodes at which the edges begin.
    fn found(edges: &[(usize, Dependency, usize)]) -> Option<(String, Vec<usize>)> {
        let Cycle { phenomenon, edges } = graph(edges).cycle()?;
        for (edge, next) in edges.iter().zip(edges.iter().cycle().skip(1)) {
            assert_eq!(edge.to, next.from, "{edges:?}");
        }
        let name = phenomenon.split(',').next().unwrap().to_owned();
        Some((name, edges.iter().map(|edge| edge.from).collect()))
    }

    use Dependency::{ReadWrite as Rw, WriteRead as Wr, WriteWrite as Ww};

    #[test]
    fn phenomena_are_told_by_their_edges() {
        let name = |edges: &[_]| found(edges).map(|(name, _)| name);
        assert_eq!(name(&[(0, Ww, 1), (1, Ww, 0)]), Some("G0".to_owned()));
        assert_eq!(name(&[(0, Ww, 1), (1, Wr, 0)]), Some("G1c".to_owned()));
        assert_eq!(name(&[(0, Ww, 1), (1, Wr, 2), (2, Rw, 0)]), Some("G-single".to_owned()));
        assert_eq!(name(&[(0, Rw, 1), (1, Rw, 0)]), Some("G2".to_owned()));
        // The worst one is told, wherever it stands.
        assert_eq!(name(&[(4, Rw, 5), (5, Rw, 4), (1, Wr, 2), (2, Ww, 1)]), Some("G1c".to_owned()));
    }

    #[test]
    fn graphs_without_cycles_pass() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(0, Ww, 0)]), None);
        assert_eq!(found(&[(0, Ww, 1), (0, Rw, 2), (1, Wr, 2)]), None);
        // Against the order of numbers, but in one direction.
        assert_eq!(found(&[(2, Rw, 1), (1, Ww, 0), (2, Wr, 0)]), None);
    }

    #[test]
    fn short_cycles_are_preferred() {
        let edges = [(0, Ww, 1), (1, Ww, 2), (2, Wr, 3), (3, Wr, 0), (2, Wr, 1)];
        assert_eq!(found(&edges), Some(("G1c".to_owned(), vec![1, 2])));
        let edges = [(0, Rw, 1), (1, Ww, 2), (2, Ww, 0), (5, Rw, 6), (6, Wr, 5)];
        assert_eq!(found(&edges), Some(("G-single".to_owned(), vec![5, 6])));
    }

    #[test]
    fn long_paths_need_no_recursion() {
        let mut edges: Vec<_> = (0..200_000).map(|node| (node, Ww, node + 1)).collect();
        edges.push((200_000, Rw, 0));
        assert_eq!(found(&edges).unwrap().1.len(), 200_001);
    }

    /// Components against the definition: nodes that reach each other.
    #[test]
    fn components_are_the_nodes_that_reach_each_other() {
        for seed in 0..50 {
            let mut random = Random::new(seed, "graph", &[]);
            let nodes = 1 + random.below(12) as usize;
            let count = random.below(30);
            let mut draw = || random.below(nodes as u64) as usize;
            let edges: Vec<_> = (0..count).map(|_| (draw(), Rw, draw())).collect();
            let mut graph = graph(&edges);
            graph.nodes = nodes;
            let mut reaches = vec![vec![false; nodes]; nodes];
            (0..nodes).for_each(|node| reaches[node][node] = true);
            for _ in 0..nodes {
                for (from, _, to) in &edges {
                    let beyond = reaches[*to].clone();
                    reaches[*from].iter_mut().zip(beyond).for_each(|(reached, beyond)| *reached |= beyond);
                }
            }
            let components = Subgraph::of(&graph, |_| true).components();
            for left in 0..nodes {
                for right in 0..nodes {
                    let together = reaches[left][right] && reaches[right][left];
                    assert_eq!(components[left] == components[right], together, "{edges:?}");
                }
            }
        }
    }
}
