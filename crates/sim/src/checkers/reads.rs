//! Reads without a place in the order are strictly serializable, too.
//!
//! A read that needs no place in the order ([`Operation::Read`](ordain_db::message::Operation::Read)) tells nobody which state it has seen. It is right if there is one of
//! which its answer is true: after everything that was answered before it was asked, and before everything that was asked after it
//! was answered, other reads among that. So for each read the states between those bounds are looked for of which its answer is true,
//! by running it on the [`oracle`](crate::oracle)'s; then each, in the order in which they were asked, takes the earliest of these that
//! is not before the state of a read that was answered before it was asked. If that leaves none, no choice does: an earlier state of
//! one read only leaves more to the others.
//!
//! Where there are several partitions such a read is a call like any other, and so it is on an engine without an order.

use ordain_db::error::{Error, Outcome};
use ordain_db::message::RequestId;
use ordain_db::position::Position;
use ordain_db::procedure::ProcedureId;

use super::Findings;
use super::evidence::Evidence;
use super::strict_serializability::place;
use super::wording;
use crate::oracle::Oracle;
use crate::time::Nanoseconds;

/// A read that was answered.
struct Read<'h> {
    request: RequestId,
    procedure: ProcedureId,
    arguments: &'h [u8],
    invoked_at: Nanoseconds,
    answered_at: Nanoseconds,
    outcome: &'h Outcome,
    /// How many positions of the order the state has at least, and at most.
    bounds: (usize, usize),
    /// The states of which the answer is true, ascending.
    states: Vec<usize>,
}

/// Checks the property.
///
/// # Errors
/// With the first read whose answer is that of no state which it may have seen.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut reads = reads(evidence);
    if reads.is_empty() {
        return Ok(());
    }
    find_bounds(evidence, &mut reads);
    find_states(evidence, &mut reads)?;
    let mut findings = Findings::default();
    reads.sort_by_key(|read| (read.invoked_at, read.answered_at));
    let mut chosen: Vec<(Nanoseconds, usize)> = Vec::new();
    for read in &reads {
        let before = chosen.iter().filter(|(answered_at, _)| *answered_at <= read.invoked_at);
        let least = before.map(|(_, state)| *state).max().unwrap_or_default();
        match read.states.iter().find(|state| **state >= least) {
            Some(state) => chosen.push((read.answered_at, *state)),
            None => findings.note(|| {
                let (request, outcome) = (wording::request(read.request), wording::outcome(read.outcome));
                let ((low, high), invoked_at) = (read.bounds, read.invoked_at);
                format!(
                    "{request}, a read that was sent at {invoked_at} ns, was answered with {outcome}: that is true of none of \
                     the states {} to {high} of the order",
                    low.max(least)
                )
            }),
        }
    }
    findings.finish()
}

fn reads<'h>(evidence: &Evidence<'h>) -> Vec<Read<'h>> {
    let mut reads = Vec::new();
    for (request, invocation) in &evidence.history.requests {
        if !evidence.may_be_unordered(invocation) {
            continue;
        }
        let (Some((procedure, arguments)), Some((answered_at, outcome))) =
            (invocation.operation.call(), invocation.decision())
        else {
            continue;
        };
        if matches!(outcome, Ok(_) | Err(Error::Aborted(_))) {
            reads.push(Read {
                request: *request,
                procedure,
                arguments,
                invoked_at: invocation.invoked_at,
                answered_at: *answered_at,
                outcome,
                bounds: (0, 0),
                states: Vec::new(),
            });
        }
    }
    reads
}

/// What must have been seen by each read, and what cannot have been.
fn find_bounds(evidence: &Evidence<'_>, reads: &mut [Read<'_>]) {
    let log: Vec<Position> = evidence.history.log.keys().copied().collect();
    let mut placed: Vec<(Position, Nanoseconds, Option<Nanoseconds>)> = Vec::new();
    for (request, invocation) in &evidence.history.requests {
        if let Some(position) = place(evidence, *request, invocation) {
            let answered_at = invocation.decision().map(|(at, _)| *at);
            placed.push((position, invocation.invoked_at, answered_at));
        }
    }
    for read in reads {
        let seen = placed.iter().filter(|(_, _, at)| at.is_some_and(|at| at <= read.invoked_at));
        let last = seen.map(|(position, ..)| *position).max();
        let unseen = placed.iter().filter(|(_, invoked_at, _)| *invoked_at >= read.answered_at);
        let first = unseen.map(|(position, ..)| *position).min();
        let count = |until: Position| log.partition_point(|position| *position < until);
        let least = last.map_or(0, |last| log.partition_point(|position| *position <= last));
        read.bounds = (least, first.map_or(log.len(), count));
    }
}

/// Runs each read on the states that it may have seen.
fn find_states(evidence: &Evidence<'_>, reads: &mut [Read<'_>]) -> Result<(), String> {
    let mut oracle = Oracle::new(evidence.workload)?;
    let mut try_all = |oracle: &mut Oracle<'_>, state: usize| {
        for read in reads.iter_mut().filter(|read| (read.bounds.0..=read.bounds.1).contains(&state)) {
            if oracle.read(read.procedure, read.arguments) == *read.outcome {
                read.states.push(state);
            }
        }
    };
    try_all(&mut oracle, 0);
    for (number, (position, ordered)) in evidence.history.log.iter().enumerate() {
        oracle.run(*position, ordered)?;
        try_all(&mut oracle, number + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ordain_db::engine::EngineKind;
    use ordain_db::failpoint::NoFailpoints;
    use ordain_db::message::Operation;

    use super::*;
    use crate::checkers::example::{self, bank, request};
    use crate::history::{History, Invocation};

    /// A transfer of nothing reads two accounts, and tells their balances.
    fn question() -> Bytes {
        example::transfer((0, 0), (1, 0), 0)
    }

    fn with_read(
        history: &mut History,
        sequence: u64,
        (invoked_at, answered_at): (u64, u64),
        outcome: Outcome,
    ) {
        let operation = Operation::Read { procedure: ProcedureId(0), arguments: question() };
        let replies = vec![(answered_at, outcome)];
        history
            .requests
            .insert(request(9, sequence), Invocation { operation, invoked_at, replies, attempts: 1 });
    }

    #[test]
    fn transfers_write_so_that_no_read_of_them_is_true() {
        let mut history = example::run::<NoFailpoints>(EngineKind::Serial, 1, 20);
        let evidence = |history: &History| check(&Evidence::new(history, &bank()).unwrap());
        assert_eq!(evidence(&history), Ok(()));
        with_read(&mut history, 0, (1, 2), Ok(Bytes::from_static(b"?")));
        let problem = evidence(&history).unwrap_err();
        assert!(problem.contains("that is true of none of the states"), "{problem}");
        // What ended otherwise tells nothing.
        let read = history.requests.get_mut(&request(9, 0)).unwrap();
        read.replies[0].1 = Err(Error::Busy(String::new()));
        assert_eq!(evidence(&history), Ok(()));
    }
}
