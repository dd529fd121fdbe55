//! Strict serializability: the order agrees with real time.
//!
//! With `A → B` for "A was answered before B was sent first": `A → B` implies `position(A) < position(B)`. Together with
//! serializability in the order of positions this is strict serializability (C. Papadimitriou, *The Serializability of
//! Concurrent Database Updates*, J. ACM 26(4), 1979), which is linearizability with the whole database as one object (M.
//! Herlihy and J. Wing, *Linearizability: A Correctness Condition for Concurrent Objects*, ACM TOPLAS 12(3), 1990).
//!
//! A request's position is that of its last attempt: earlier ones missed their footprint and had no effect (CAL-64).
//! Snapshots take part as reads of everything. An answer counts if it says what became of the request, and if the request
//! was placed in the order at all. What was answered and what was sent at the same nanosecond count in that order: a message
//! takes time, so that whatever is answered now was placed in the order before.
//!
//! Reads that need no place in the order are the matter of [`reads`](super::reads).
//!
//! An engine without an order in advance ([`EngineKind::is_ordered`](ordain_db::engine::EngineKind::is_ordered)) gives positions
//! that agree with what transactions read and wrote, and not with real time. There, the dependencies and real time together must
//! have no cycle: then an order exists that agrees with both.

use std::collections::BTreeMap;

use ordain_db::message::RequestId;
use ordain_db::position::Position;

use super::Findings;
use super::evidence::{Attempt, Evidence};
use super::graph::{Dependency, Edge};
use super::{serializability, wording};
use crate::history::Invocation;
use crate::time::Nanoseconds;

/// A request with its place in the order.
struct Placed {
    request: RequestId,
    position: Position,
    invoked_at: Nanoseconds,
    answered_at: Option<Nanoseconds>,
}

/// Checks the property.
///
/// # Errors
/// With two requests of which the earlier one stands behind the later one in the order.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    if !evidence.history.engine.is_ordered() {
        return check_dependencies(evidence);
    }
    let mut placed: Vec<Placed> = Vec::new();
    for (request, invocation) in &evidence.history.requests {
        let Some(position) = place(evidence, *request, invocation) else { continue };
        let answered_at = invocation.decision().map(|(at, _)| *at);
        placed.push(Placed { request: *request, position, invoked_at: invocation.invoked_at, answered_at });
    }
    let mut answered: Vec<(Nanoseconds, &Placed)> =
        placed.iter().filter_map(|request| Some((request.answered_at?, request))).collect();
    answered.sort_unstable_by_key(|(at, request)| (*at, request.position));
    let mut sent: Vec<&Placed> = placed.iter().collect();
    sent.sort_unstable_by_key(|request| (request.invoked_at, request.position));

    let mut findings = Findings::default();
    let mut answered = answered.into_iter().peekable();
    // Of all that were answered so far, the one that stands last in the order.
    let mut last: Option<(Nanoseconds, &Placed)> = None;
    for later in sent {
        while let Some((at, request)) = answered.next_if(|(at, _)| *at <= later.invoked_at) {
            if last.is_none_or(|(_, last)| request.position > last.position) {
                last = Some((at, request));
            }
        }
        // A request that was answered when it was sent is its own matter. Only snapshots without a place in the order share one.
        let Some((at, earlier)) = last.filter(|(_, earlier)| earlier.request != later.request) else {
            continue;
        };
        findings.require(earlier.position <= later.position, || {
            format!(
                "{} was answered at {at} ns, before {} was sent at {} ns, but stands at {}, behind {}",
                wording::request(earlier.request),
                wording::request(later.request),
                later.invoked_at,
                earlier.position,
                later.position,
            )
        });
    }
    findings.finish()
}

/// Looks for a cycle of dependencies and real time. The moments at which something was answered are a chain: who is answered comes
/// before that moment and all later ones, and these come before whoever is sent after them.
fn check_dependencies(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut graph = serializability::graph(evidence);
    let number: BTreeMap<Position, usize> = evidence
        .committed
        .iter()
        .enumerate()
        .map(|(number, transaction)| (transaction.position, number))
        .collect();
    let (mut answered, mut sent) = (Vec::new(), Vec::new());
    for (request, invocation) in &evidence.history.requests {
        let position = effective(evidence.attempts(*request));
        let Some(number) = position.and_then(|position| number.get(&position)) else { continue };
        sent.push((invocation.invoked_at, *number));
        answered.extend(invocation.decision().map(|(at, _)| (*at, *number)));
    }
    answered.sort_unstable();
    let first_moment = evidence.committed.len();
    let mut add = |from, to| graph.add(Edge { from, to, dependency: Dependency::RealTime, key: &[] });
    for (place, (_, transaction)) in answered.iter().enumerate() {
        add(*transaction, first_moment + place);
        if place > 0 {
            add(first_moment + place - 1, first_moment + place);
        }
    }
    for (at, transaction) in sent {
        let before = answered.partition_point(|(answered_at, _)| *answered_at <= at);
        if before > 0 {
            add(first_moment + before - 1, transaction);
        }
    }
    let Some(cycle) = graph.cycle() else { return Ok(()) };
    let name = |number: usize| match evidence.committed.get(number) {
        Some(transaction) => transaction.position.to_string(),
        None => answered.get(number - first_moment).map_or(String::new(), |(at, _)| format!("{at} ns")),
    };
    let edges: Vec<String> = cycle
        .edges
        .iter()
        .map(|edge| format!("{} -{}-> {}", name(edge.from), edge.dependency.name(), name(edge.to)))
        .collect();
    Err(format!("no order agrees with real time: {}", edges.join(", ")))
}

/// The place in the order that a request has, or that the snapshot has which it opened. Of reads that need none nobody knows what they have
/// seen, though the order may have them, too: they may have been answered before they came once more.
pub(super) fn place(
    evidence: &Evidence<'_>,
    request: RequestId,
    invocation: &Invocation,
) -> Option<Position> {
    match invocation.unordered_snapshot() {
        None if evidence.may_be_unordered(invocation) => None,
        None => effective(evidence.attempts(request)),
        snapshot => snapshot.map(Position::place),
    }
}

/// The place of the attempt that decided, or of the last one.
fn effective(attempts: &[Attempt<'_>]) -> Option<Position> {
    let decided = attempts.iter().rev().find(|attempt| attempt.decided());
    decided.or(attempts.last()).map(|attempt| attempt.position)
}

#[cfg(test)]
mod tests {
    use ordain_db::error::Error;
    use ordain_db::message::Verdict;

    use super::*;
    use crate::checkers::example::{Example, bank, position};

    fn found(example: &Example) -> Result<(), String> {
        check(&Evidence::new(&example.history, &bank()).unwrap())
    }

    /// Two transactions in this order, the first sent at 10 and answered at 20, the second sent and answered at `times`.
    fn two(times: (u64, u64)) -> Example {
        let mut example = Example::new();
        example.transaction(&[], &[(0, 1)]);
        example.transaction(&[], &[(1, 1)]);
        example.times(0, 10, 20);
        example.times(1, times.0, times.1);
        example
    }

    #[test]
    fn what_overlaps_may_stand_in_any_order() {
        for times in [(20, 30), (30, 40), (5, 30), (5, 10 + 1), (12, 15)] {
            assert_eq!(found(&two(times)), Ok(()), "{times:?}");
        }
    }

    #[test]
    fn what_was_answered_stands_before_what_is_sent_then() {
        let problem = found(&two((2, 4))).unwrap_err();
        assert_eq!(
            problem,
            "c1@p0#1 was answered at 4 ns, before c1@p0#0 was sent at 10 ns, but stands at e1.p0.1, behind e1.p0.0"
        );
        // In the same nanosecond.
        assert!(found(&two((2, 10))).is_err());
        let mut snapshot = two((2, 11));
        assert_eq!(found(&snapshot), Ok(()));
        // A snapshot that stands before what was answered when it was opened.
        snapshot.snapshot(position(0, 0, 1), 50);
        let problem = found(&snapshot).unwrap_err();
        assert!(problem.contains("before c1@p0#2 was sent at 50 ns"), "{problem}");
    }

    #[test]
    fn the_attempt_that_decided_counts() {
        let mut example = two((2, 4));
        example.set_verdict(1, Verdict::FootprintMissed);
        assert!(found(&example).is_err());
        // The first request has another place further behind, but the one that decided counts.
        example.attempt_again(0, Verdict::FootprintMissed);
        assert!(found(&example).is_err());
        example.set_verdict(0, Verdict::FootprintMissed);
        assert_eq!(found(&example), Ok(()));
    }

    #[test]
    fn answers_that_leave_it_open_do_not_count() {
        for error in [Error::Busy(String::new()), Error::Unavailable(String::new()), Error::Acknowledged(1)] {
            let mut example = two((2, 4));
            example.reply_mut(1).1 = Err(error);
            assert_eq!(found(&example), Ok(()));
        }
    }
}
