//! What clients learnt by the statements of their sessions fits one order of their transactions that respects real time.
//!
//! This looks from outside: at rows that clients were shown and at the ends that they were told, and at nothing that nodes tell of
//! their work. So it would notice a session that shows the wrong rows, or certifies too little, with nodes that do everything as
//! they are asked.
//!
//! - No statement is told that the database contradicts itself (SQLSTATE class XX).
//! - Whoever counts all accounts sees all money.
//! - No number of a sequence is drawn twice, be it that the transaction fails.
//! - Numbers that are appended to lists make lists whose order is the same for everybody: what a transaction is shown of a list, but
//!   for what it has appended itself, is a beginning of what the list is at the end. What was committed is there, what failed or was
//!   undone is not.
//! - The transactions have no cycle of dependencies and real time, as in
//!   [`strict_serializability`](super::strict_serializability): who appends comes after whom it appended behind, after and before
//!   whom it was shown to, and after all whose end was known when it began. A transaction that failed takes part as the reader
//!   that it was.
//!
//! The lists at the end are known of a run that has finished.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use super::evidence::Evidence;
use super::graph::{Dependency, Edge, Graph};
use crate::history::{Conclusion, Fact, Observed, Sessions};

/// Checks the property.
///
/// # Errors
/// With the first observation that does not fit.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let Some(sessions) = &evidence.history.sessions else { return Ok(()) };
    let mut findings = Findings::default();
    check_each(sessions, &mut findings);
    if let Some(lists) = &sessions.lists {
        check_lists(sessions, lists, &mut findings);
        findings.finish()?;
        return check_order(sessions, lists);
    }
    findings.finish()
}

fn name(observed: &Observed) -> String {
    let Observed { client, began, told, .. } = observed;
    format!("the transaction that c{client} began at {began} ns, and was told {told},")
}

/// What can be said of a transaction by itself, and of numbers that are drawn once.
fn check_each(sessions: &Sessions, findings: &mut Findings) {
    let mut tickets = BTreeSet::new();
    for observed in &sessions.observed {
        for contradiction in &observed.contradictions {
            findings.note(|| format!("{} met {contradiction}", name(observed)));
        }
        for fact in &observed.facts {
            match fact {
                Fact::Total(total) => findings.require(*total == sessions.total, || {
                    format!("{} saw {total}, and there are {}", name(observed), sessions.total)
                }),
                Fact::Ticket(ticket) => findings.require(tickets.insert(*ticket), || {
                    format!("{} drew {ticket}, which was drawn before", name(observed))
                }),
                Fact::Appended { .. } | Fact::List { .. } => {}
            }
        }
    }
}

/// The numbers that a transaction has appended itself, whether they stay or not.
fn own(observed: &Observed) -> BTreeSet<u64> {
    let appended = observed.facts.iter().filter_map(|fact| match fact {
        Fact::Appended { number, .. } => Some(*number),
        _ => None,
    });
    appended.collect()
}

/// The lists that a transaction was shown, without what it has appended itself.
fn shown<'o>(observed: &'o Observed) -> impl Iterator<Item = (u32, Vec<u64>)> + use<'o> {
    let own = own(observed);
    observed.facts.iter().filter_map(move |fact| match fact {
        Fact::List { list, numbers } => {
            Some((*list, numbers.iter().copied().filter(|number| !own.contains(number)).collect()))
        }
        _ => None,
    })
}

fn check_lists(sessions: &Sessions, lists: &BTreeMap<u32, Vec<u64>>, findings: &mut Findings) {
    let last = |list: u32| lists.get(&list).map_or(&[][..], Vec::as_slice);
    for observed in &sessions.observed {
        for (list, numbers) in shown(observed) {
            findings.require(last(list).starts_with(&numbers), || {
                format!(
                    "{} was shown {numbers:?} in list {list}, which ends as {:?}",
                    name(observed),
                    last(list)
                )
            });
        }
        for fact in &observed.facts {
            let Fact::Appended { list, number, stays } = fact else { continue };
            let is_there = last(*list).contains(number);
            let right = match observed.conclusion {
                Conclusion::Unknown if *stays => continue,
                Conclusion::Committed if *stays => true,
                _ => false,
            };
            findings.require(is_there == right, || {
                let (found, conclusion) = (if is_there { "is" } else { "is not" }, observed.conclusion);
                format!("{} ended as {conclusion:?}, and its {number} {found} in list {list}", name(observed))
            });
        }
    }
}

fn check_order(sessions: &Sessions, lists: &BTreeMap<u32, Vec<u64>>) -> Result<(), String> {
    let mut graph = Graph::default();
    let mut writers = BTreeMap::new();
    for (transaction, observed) in sessions.observed.iter().enumerate() {
        writers.extend(own(observed).into_iter().map(|number| (number, transaction)));
    }
    let writer = |number: Option<&u64>| number.and_then(|number| writers.get(number).copied());
    let mut depend = |from: Option<usize>, to: Option<usize>, dependency| {
        if let (Some(from), Some(to)) = (from, to) {
            graph.add(Edge { from, to, dependency, key: &[] });
        }
    };
    for numbers in lists.values() {
        for pair in numbers.windows(2) {
            depend(writer(pair.first()), writer(pair.last()), Dependency::WriteWrite);
        }
    }
    for (transaction, observed) in sessions.observed.iter().enumerate() {
        for (list, numbers) in shown(observed) {
            let following = lists.get(&list).and_then(|last| last.get(numbers.len()));
            depend(writer(numbers.last()), Some(transaction), Dependency::WriteRead);
            depend(Some(transaction), writer(following), Dependency::ReadWrite);
        }
    }
    add_real_time(sessions, &mut graph);
    let Some(cycle) = graph.cycle() else { return Ok(()) };
    let name = |number: usize| sessions.observed.get(number).map_or("(a moment)".to_owned(), name);
    let edges: Vec<String> = cycle
        .edges
        .iter()
        .map(|edge| format!("{} -{}-> {}", name(edge.from), edge.dependency.name(), name(edge.to)))
        .collect();
    Err(format!("no order of the transactions agrees with real time: {}", edges.join("; ")))
}

/// The moments at which a client was told an end are a chain, as in [`strict_serializability`](super::strict_serializability).
fn add_real_time(sessions: &Sessions, graph: &mut Graph<'_>) {
    let first_moment = sessions.observed.len();
    let ended = sessions.observed.iter().enumerate();
    let ended = ended.filter(|(_, observed)| observed.conclusion != Conclusion::Unknown);
    let mut ended: Vec<_> = ended.map(|(transaction, observed)| (observed.ended, transaction)).collect();
    ended.sort_unstable();
    let mut add = |from, to| graph.add(Edge { from, to, dependency: Dependency::RealTime, key: &[] });
    for (place, (_, transaction)) in ended.iter().enumerate() {
        add(*transaction, first_moment + place);
        if place > 0 {
            add(first_moment + place - 1, first_moment + place);
        }
    }
    for (transaction, observed) in sessions.observed.iter().enumerate() {
        let before = ended.partition_point(|(at, _)| *at <= observed.began);
        if before > 0 {
            add(first_moment + before - 1, transaction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(list: u32, number: u64) -> Fact {
        Fact::Appended { list, number, stays: true }
    }

    fn list(list: u32, numbers: &[u64]) -> Fact {
        Fact::List { list, numbers: numbers.to_vec() }
    }

    fn observed(times: (u64, u64), conclusion: Conclusion, facts: &[Fact]) -> Observed {
        Observed {
            client: times.0,
            began: times.0,
            ended: times.1,
            conclusion,
            facts: facts.to_vec(),
            contradictions: Vec::new(),
            told: String::new(),
        }
    }

    fn found(observed: Vec<Observed>, lists: &[(u32, &[u64])]) -> Result<(), String> {
        let lists = lists.iter().map(|(list, numbers)| (*list, numbers.to_vec())).collect();
        let sessions = Sessions { observed, lists: Some(lists), total: "all".to_owned() };
        let history = crate::history::History {
            sessions: Some(sessions),
            ..crate::checkers::example::Example::new().history
        };
        check(&Evidence::new(&history, &crate::checkers::example::bank()).unwrap())
    }

    #[test]
    fn what_fits_is_right() {
        use Conclusion::{Committed, Failed, Unknown};
        let right = vec![
            observed((1, 5), Committed, &[appended(0, 1), list(0, &[1])]),
            observed((2, 6), Committed, &[list(0, &[1]), appended(0, 2), list(0, &[1, 2])]),
            observed((7, 9), Failed, &[list(0, &[1, 2]), appended(0, 3), list(0, &[1, 2, 3])]),
            observed((3, 9), Unknown, &[appended(0, 4)]),
            observed((3, 9), Unknown, &[appended(0, 5)]),
            observed((7, 9), Committed, &[Fact::Total("all".to_owned()), Fact::Ticket(1)]),
        ];
        assert_eq!(found(right, &[(0, &[1, 2, 4])]), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        use Conclusion::{Committed, Failed};
        let wrong = |facts: &[Fact], conclusion, lists: &[(u32, &[u64])], expected: &str| {
            let problem = found(vec![observed((1, 2), conclusion, facts)], lists).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        wrong(&[Fact::Total("less".to_owned())], Committed, &[], "saw less, and there are all");
        wrong(&[Fact::Ticket(1), Fact::Ticket(1)], Failed, &[], "drew 1, which was drawn before");
        wrong(
            &[list(0, &[2, 1])],
            Failed,
            &[(0, &[1, 2])],
            "was shown [2, 1] in list 0, which ends as [1, 2]",
        );
        wrong(&[appended(0, 7)], Committed, &[(0, &[])], "its 7 is not in list 0");
        wrong(&[appended(0, 7)], Failed, &[(0, &[7])], "its 7 is in list 0");
        let undone = Fact::Appended { list: 0, number: 7, stays: false };
        wrong(&[undone], Committed, &[(0, &[7])], "its 7 is in list 0");
        let mut contradiction = observed((1, 2), Failed, &[]);
        contradiction.contradictions.push("XX000: an entry without a row".to_owned());
        assert!(found(vec![contradiction], &[]).unwrap_err().contains("met XX000"));
    }

    #[test]
    fn reads_are_not_older_than_what_was_told_before() {
        let stale = |began| {
            vec![
                observed((1, 5), Conclusion::Committed, &[appended(0, 1)]),
                observed((began, 9), Conclusion::Committed, &[list(0, &[])]),
            ]
        };
        assert_eq!(found(stale(4), &[(0, &[1])]), Ok(()));
        let problem = found(stale(5), &[(0, &[1])]).unwrap_err();
        assert!(problem.starts_with("no order of the transactions agrees with real time"), "{problem}");
    }

    #[test]
    fn write_skew_is_a_cycle() {
        let skewed = vec![
            observed((1, 5), Conclusion::Committed, &[list(0, &[]), appended(1, 1)]),
            observed((1, 5), Conclusion::Committed, &[list(1, &[]), appended(0, 2)]),
        ];
        let problem = found(skewed, &[(0, &[2]), (1, &[1])]).unwrap_err();
        assert!(problem.contains("-rw->"), "{problem}");
    }
}
