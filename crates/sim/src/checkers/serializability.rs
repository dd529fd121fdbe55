//! Serializability: the direct serialization graph of the committed transactions has no cycle.
//!
//! With `T ≪ U` for "T's version of a key comes before U's", and nothing between:
//!
//! - `T -ww-> U`: T and U wrote versions of a key in a row, `T ≪ U`;
//! - `T -wr-> U`: U read the version that T wrote;
//! - `T -rw-> U`: T read the version before the one that U wrote.
//!
//! The history is (conflict-)serializable if and only if the graph has no cycle (Adya's PL-3, see [`graph`](super::graph) for
//! the source and the phenomena; CAL-01). The order of versions is that of the positions, see [`evidence`](super::evidence),
//! so the graph is exact.
//!
//! What other checkers find: reads of rows that only aborted transactions wrote, or that were no transaction's last write
//! of the key (G1a, G1b), belong to [`nothing_invented`](super::nothing_invented). The trace of a range has the rows that
//! were found and not the ones that were missing, so that a phantom is no edge here; it is a difference to the serial run
//! and found by [`equals_oracle`](super::equals_oracle). So is what is serializable, but in another order than that of the
//! log. Writes alone cannot make a cycle here (G0), since versions stand in the order of positions; the oracle notices
//! writes that were applied in another one.

use super::evidence::Evidence;
use super::graph::{Cycle, Dependency, Edge, Graph};
use super::wording;

/// Checks the property.
///
/// # Errors
/// With the phenomenon and a cycle: its transactions and, for each edge, the kind and the key.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    graph(evidence).cycle().map_or(Ok(()), |cycle| Err(describe(&cycle, evidence)))
}

/// What must come before what, by what was read and written.
pub(crate) fn graph<'a>(evidence: &Evidence<'a>) -> Graph<'a> {
    let mut graph = Graph::default();
    for key in evidence.written_keys() {
        let writers = evidence.versions(key).writers();
        let dependency = Dependency::WriteWrite;
        for (from, to) in writers.clone().zip(writers.skip(1)) {
            graph.add(Edge { from, to, dependency, key });
        }
    }
    for (reader, transaction) in evidence.committed.iter().enumerate() {
        for (key, row) in transaction.reads.iter().copied() {
            let versions = evidence.versions(key);
            let Some(version) = versions.seen(row.as_deref(), reader) else { continue };
            if let Some(writer) = versions.writer(version) {
                graph.add(Edge { from: writer, to: reader, dependency: Dependency::WriteRead, key });
            }
            if let Some(writer) = versions.writer(version + 1) {
                graph.add(Edge { from: reader, to: writer, dependency: Dependency::ReadWrite, key });
            }
        }
    }
    graph
}

/// The cycle in one line, as in `e1.p0.0 (c1@p0#0) -rw (accounts (0, 1))-> e1.p0.1 (c1@p0#1) -wr (..)-> e1.p0.0`.
fn describe(cycle: &Cycle<'_>, evidence: &Evidence<'_>) -> String {
    let mut text = format!("{}: ", cycle.phenomenon);
    for edge in &cycle.edges {
        let from = &evidence.committed[edge.from];
        let key = wording::key(evidence.schema(), edge.key);
        let (request, dependency) = (wording::request(from.request), edge.dependency.name());
        text.push_str(&format!("{} ({request}) -{dependency} ({key})-> ", from.position));
    }
    let first = cycle.edges.first().map(|edge| evidence.committed[edge.from].position);
    text.push_str(&first.map(|position| position.to_string()).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::example::{Example, bank};

    /// A history of transactions at ascending positions of p0: what each read and wrote, as account and balance.
    type Accounts = &'static [(u32, i64)];

    fn found(transactions: &[(Accounts, Accounts)]) -> Result<(), String> {
        let mut example = Example::new();
        for (reads, writes) in transactions {
            example.transaction(reads, writes);
        }
        let bank = bank();
        check(&Evidence::new(&example.history, &bank).unwrap())
    }

    #[test]
    fn reads_of_the_last_version_are_serializable() {
        assert_eq!(found(&[(&[(0, 100)], &[(0, 90)]), (&[(0, 90), (1, 100)], &[(0, 80), (1, 110)])]), Ok(()));
        // An old version, but nothing that stands against it: the order is the oracle's matter.
        assert_eq!(found(&[(&[], &[(0, 90)]), (&[(0, 100)], &[(1, 1)])]), Ok(()));
    }

    #[test]
    fn equal_rows_are_no_cycle() {
        // The account has 100 at first and after the second transfer: the third reads the later one.
        let history: &[(Accounts, Accounts)] = &[
            (&[(0, 100)], &[(0, 90), (1, 5)]),
            (&[(0, 90)], &[(0, 100)]),
            (&[(0, 100), (1, 5)], &[(0, 50)]),
        ];
        assert_eq!(found(history), Ok(()));
    }

    #[test]
    fn lost_updates_are_found() {
        let problem = found(&[(&[(0, 100)], &[(0, 90)]), (&[(0, 100)], &[(0, 80)])]).unwrap_err();
        assert_eq!(
            problem,
            "G-single, a cycle with one anti-dependency: \
             e1.p0.1 (c1@p0#1) -rw (accounts (0, 0))-> e1.p0.0 (c1@p0#0) -ww (accounts (0, 0))-> e1.p0.1"
        );
    }

    #[test]
    fn write_skew_is_found() {
        // Each reads what the other writes.
        let problem = found(&[(&[(1, 100)], &[(0, 20)]), (&[(0, 100)], &[(1, 10)])]).unwrap_err();
        assert!(problem.starts_with("G2, a cycle with several anti-dependencies: e1.p0."), "{problem}");
        assert_eq!((problem.matches("-rw").count(), problem.matches("->").count()), (2, 2), "{problem}");
        // Readers see two writers in opposite orders.
        let skew: &[(Accounts, Accounts)] = &[
            (&[], &[(0, 1)]),
            (&[], &[(1, 2)]),
            (&[(0, 1), (1, 100)], &[(2, 3)]),
            (&[(0, 100), (1, 2)], &[(3, 4)]),
        ];
        let problem = found(skew).unwrap_err();
        assert!(problem.starts_with("G2, "), "{problem}");
        assert_eq!((problem.matches("-rw").count(), problem.matches("-wr").count()), (2, 2), "{problem}");
    }

    #[test]
    fn circular_information_flow_is_found() {
        let problem = found(&[(&[(1, 7)], &[(0, 90)]), (&[(0, 90)], &[(1, 7)])]).unwrap_err();
        assert!(problem.starts_with("G1c, circular information flow: e1.p0."), "{problem}");
        assert_eq!(problem.matches("-wr").count(), 2, "{problem}");
    }

    #[test]
    fn participants_that_read_different_rows_are_both_believed() {
        let mut example = Example::new();
        example.transaction(&[(0, 100)], &[(0, 90)]);
        let (position, mut run) = example.transaction(&[(0, 90)], &[(0, 80)]);
        run.reads = vec![super::super::example::version(0, 0, 100)];
        example.history.executed.get_mut(&position).unwrap().push((ordain_db::position::PartitionId(1), run));
        let bank = bank();
        let problem = check(&Evidence::new(&example.history, &bank).unwrap()).unwrap_err();
        assert!(problem.starts_with("G-single"), "{problem}");
    }
}
