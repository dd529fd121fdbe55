//! Calls that are acknowledged before they are computed (Fan and Golab §IV-A): under faults all properties hold, and the
//! acknowledgement comes earlier than a result would.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a test tells what it saw")]

mod calm;

use ordain_db::engine::EngineKind;
use ordain_db::failpoint::Failpoint;
use ordain_db::message::Operation;
use ordain_sim::history::{History, Invocation};
use ordain_sim::plan::{Bug, Plan, Replication, WorkloadKind};
use ordain_sim::run::{observe, run};
use ordain_sim::swarm::{Fixed, draw};
use ordain_sim::time::{MILLISECOND, Nanoseconds};
use ordain_workload::random::Chance;

const SEEDS: u64 = 16;

fn always() -> Option<Chance> {
    Some(Chance::of_percent(100.0, "early answers").unwrap())
}

/// Runs a plan in which nothing may go wrong. No history where a run ended at a damaged disk.
fn history_of(plan: &Plan) -> Option<History> {
    let workload = plan.workload.build().unwrap();
    let (report, history) = observe(plan, &*workload).unwrap();
    assert!(report.violations.is_empty(), "{plan}\n{:#?}", report.violations);
    history.filter(|_| report.halted.is_none())
}

fn has_result(invocation: &Invocation) -> bool {
    invocation.replies.iter().any(|(_, outcome)| outcome.is_ok())
}

/// Early calls that were acknowledged, and questions for outcomes that were answered.
fn counted(history: &History) -> (usize, usize) {
    let of = |wanted: fn(&Operation) -> bool| {
        history.requests.values().filter(move |invocation| wanted(&invocation.operation))
    };
    let acknowledged =
        of(|asked| matches!(asked, Operation::CallEarly { .. })).filter(|call| has_result(call));
    let told =
        of(|asked| matches!(asked, Operation::AskOutcome { .. })).filter(|asked| asked.end().is_some());
    (acknowledged.count(), told.count())
}

#[test]
fn early_answers_hold_under_faults() {
    let (mut acknowledged, mut faults) = (0, 0);
    for seed in 0..SEEDS {
        let engine = [EngineKind::Aloha, EngineKind::Calvin][(seed % 2) as usize];
        let replicas = [1, 3][(seed / 2 % 2) as usize];
        let fixed = Fixed {
            engine: Some(engine),
            replicas: Some(replicas),
            replication: Some(Replication::Sync),
            transactions: Some(120),
            ..Fixed::default()
        };
        let mut plan = draw(seed, &fixed);
        plan.clients.early = always();
        let Some(history) = history_of(&plan) else { continue };
        let (early, told) = counted(&history);
        assert_eq!(early, told, "seed {seed}: every client that was acknowledged hears of the outcome");
        acknowledged += early;
        faults += plan.faults.len();
    }
    println!("{acknowledged} acknowledged, {faults} faults");
    assert!(acknowledged > 50 * SEEDS as usize && faults > 0, "{acknowledged} {faults}");
}

/// The mean time until the first answer that is a result, of the calls of a history.
fn mean(history: &History) -> Nanoseconds {
    let calls = history.requests.values().filter(|invocation| invocation.operation.call().is_some());
    let took: Vec<Nanoseconds> = calls.filter_map(|call| Some(call.end()?.0 - call.invoked_at)).collect();
    took.iter().sum::<Nanoseconds>() / took.len() as u64
}

/// ALO-X11 (d).
#[test]
fn an_acknowledgement_comes_before_a_result_would() {
    let mut plan = calm::plan(5, 3, 1, WorkloadKind::Bank, 200);
    plan.engine = EngineKind::Aloha;
    plan.clients.think = 20 * MILLISECOND;
    plan.clients.early = None;
    let computed = mean(&history_of(&plan).unwrap());
    plan.clients.early = always();
    let acknowledged = mean(&history_of(&plan).unwrap());
    println!("acknowledged after {acknowledged} ns, computed after {computed} ns");
    assert!(acknowledged < computed, "{acknowledged} {computed}");
}

/// That a call was acknowledged too early shows in real time first. That its position was a guess shows where it was wrong.
#[test]
fn positions_that_were_guessed_are_found() {
    const GUESSED: u64 = 60;
    let found = (0..GUESSED).find(|seed| {
        let mut plan = draw(*seed, &Fixed { transactions: Some(120), ..Fixed::default() });
        plan.clients.early = always().filter(|_| plan.engine.is_ordered());
        plan.bug = Some(Bug::Database(Failpoint::AnswerBeforeOrdered));
        let report = run(&plan).unwrap();
        report.violations.iter().any(|violation| violation.property == "early answers")
    });
    let seed = found.unwrap_or_else(|| panic!("no guess is found within {GUESSED} seeds"));
    println!("seed {seed}");
}
