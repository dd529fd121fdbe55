//! Exactly once: a request has one effect and one answer, however often it is sent (CAL-29, CAL-60).
//!
//! For each request:
//!
//! - at most one place in the order decides it: a place where it did more than miss its footprint;
//! - all its answers that say what became of it are the same, and are what was decided there;
//! - an answer without such a place is one of a request that had no effect: refused as invalid before it was ordered, or given
//!   up after footprint misses (CAL-64);
//! - a request that was sent once and only refused, as busy or as acknowledged before, has no place in the order.
//!
//! With asynchronous replication only the first holds: what was answered may be lost, and the request take effect again.
//!
//! What needs no place in the order, a read or a snapshot, may be answered differently each time: see [`reads`](super::reads).
//!
//! In a run that did not finish, the place may not have been executed yet; and a copy of the request, made by the network,
//! may have been taken in after the first was refused, and its answer still be under way.
//!
//! Whether early answers, and what is told later, are those of the order is the matter of [`early_answers`](super::early_answers).

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{Operation, RequestId};

use super::Findings;
use super::evidence::{Attempt, Evidence, decides};
use super::wording;
use crate::history::Invocation;

/// Checks the property.
///
/// # Errors
/// With the first request that has several effects or answers, or an answer that is not its effect.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut findings = Findings::default();
    for (request, attempts) in evidence.ordered_requests() {
        // A snapshot without a place in the order has no effect.
        let is_placed = |attempt: &&Attempt<'_>| !attempt.position.is_beyond();
        let decided = attempts.iter().filter(|attempt| attempt.decided()).filter(is_placed);
        let decided: Vec<String> = decided.map(Attempt::describe).collect();
        findings.require(decided.len() <= 1, || {
            format!(
                "{} was carried out several times: it {}",
                wording::request(request),
                decided.join(" and ")
            )
        });
    }
    // Where the effect of an answer may be lost, the answer need not be that of the order.
    let answered = evidence.history.requests.iter().filter(|_| !evidence.history.may_lose);
    for (request, invocation) in answered {
        let problem = problem_of(*request, invocation, evidence);
        if let Some(problem) = problem {
            findings.note(|| format!("{} {problem}", wording::request(*request)));
        }
    }
    findings.finish()
}

fn problem_of(request: RequestId, invocation: &Invocation, evidence: &Evidence<'_>) -> Option<String> {
    let attempts = evidence.attempts(request);
    let Some((_, answer)) = invocation.decision() else {
        let refused = |outcome: &Outcome| matches!(outcome, Err(Error::Busy(_) | Error::Acknowledged(_)));
        let only_refused = evidence.finished()
            && !invocation.replies.is_empty()
            && invocation.attempts <= 1
            && invocation.replies.iter().all(|(_, outcome)| refused(outcome));
        let attempt = attempts.first().filter(|_| only_refused)?;
        return Some(format!("was refused and not sent again, but {}", attempt.describe()));
    };
    // It may see more each time that it is asked: its client takes the first answer.
    if evidence.may_be_unordered(invocation) {
        return None;
    }
    let answers = invocation.replies.iter().map(|(_, outcome)| outcome).filter(|outcome| decides(outcome));
    if let Some(other) = answers.into_iter().find(|outcome| *outcome != answer) {
        let (answer, other) = (wording::outcome(answer), wording::outcome(other));
        return Some(format!("was answered in two ways: {answer}; and: {other}"));
    }
    if invocation.is_acknowledged_early() || matches!(invocation.operation, Operation::AskOutcome { .. }) {
        return None;
    }
    let mut decided = attempts.iter().filter(|attempt| attempt.decided());
    let described = match (decided.next(), decided.next()) {
        // Several effects are told above.
        (Some(_), Some(_)) => return None,
        (Some(attempt), None) if attempt.gives(answer) => return None,
        (Some(attempt), None) => attempt.describe(),
        (None, _) if !evidence.finished() => return None,
        (None, _) => match (answer, attempts.last()) {
            (Err(Error::Invalid(_) | Error::Exceeds(..)), _) | (Err(Error::Contended), Some(_)) => {
                return None;
            }
            (_, Some(attempt)) => attempt.describe(),
            (_, None) => "has no place in the order".to_owned(),
        },
    };
    Some(format!("was answered: {}; but it {described}", wording::outcome(answer)))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ordain_db::message::Verdict;

    use super::*;
    use crate::checkers::example::{Example, bank, request};

    fn found(example: &Example) -> Result<(), String> {
        check(&Evidence::new(&example.history, &bank()).unwrap())
    }

    fn one() -> Example {
        let mut example = Example::new();
        example.transaction(&[], &[(0, 1)]);
        example
    }

    fn aborted() -> Error {
        Error::Aborted("poor".to_owned())
    }

    #[test]
    fn a_request_is_carried_out_once() {
        let mut example = one();
        assert_eq!(found(&example), Ok(()));
        example.attempt_again(0, Verdict::FootprintMissed);
        assert_eq!(found(&example), Ok(()));
        example.attempt_again(0, Verdict::Committed(Bytes::new()));
        assert_eq!(
            found(&example),
            Err("c1@p0#0 was carried out several times: it committed with result 0x at e1.p0.0 \
                 and committed with result 0x at e1.p0.2"
                .to_owned())
        );
    }

    #[test]
    fn answers_are_alike() {
        let mut example = one();
        example.reply(0, Ok(Bytes::new()));
        example.reply(0, Err(Error::Acknowledged(1)));
        example.reply(0, Err(Error::Busy(String::new())));
        example.reply(0, Err(Error::Unavailable(String::new())));
        assert_eq!(found(&example), Ok(()));
        example.reply(0, Err(aborted()));
        let problem = found(&example).unwrap_err();
        assert_eq!(problem, "c1@p0#0 was answered in two ways: result 0x; and: aborted: poor");
    }

    #[test]
    fn the_answer_is_the_verdict() {
        let mut example = one();
        example.set_verdict(0, Verdict::Failed(aborted()));
        let problem = found(&example).unwrap_err();
        assert_eq!(problem, "c1@p0#0 was answered: result 0x; but it failed, aborted: poor at e1.p0.0");
        example.reply_mut(0).1 = Err(aborted());
        assert_eq!(found(&example), Ok(()));
        // It has an effect, though its client was told that it is invalid.
        example.reply_mut(0).1 = Err(Error::Invalid(String::new()));
        assert!(found(&example).is_err());
    }

    #[test]
    fn answers_without_effect_are_told_apart() {
        let mut example = one();
        example.set_verdict(0, Verdict::FootprintMissed);
        assert!(found(&example).unwrap_err().ends_with("but it missed its footprint at e1.p0.0"));
        for error in [Error::Contended, Error::Invalid(String::new())] {
            example.reply_mut(0).1 = Err(error);
            assert_eq!(found(&example), Ok(()));
        }
        example.history.executed.clear();
        example.history.log.clear();
        assert_eq!(found(&example), Ok(()));
        for outcome in [Ok(Bytes::new()), Err(aborted()), Err(Error::Contended)] {
            example.reply_mut(0).1 = outcome;
            assert!(found(&example).unwrap_err().ends_with("but it has no place in the order"));
        }
        example.history.unfinished = Some("stopped".to_owned());
        assert_eq!(found(&example), Ok(()));
    }

    #[test]
    fn what_was_refused_has_no_effect_unless_it_is_sent_again() {
        for error in [Error::Busy(String::new()), Error::Acknowledged(0)] {
            let mut example = one();
            example.reply_mut(0).1 = Err(error);
            assert_eq!(
                found(&example),
                Err("c1@p0#0 was refused and not sent again, but committed with result 0x at e1.p0.0"
                    .to_owned())
            );
            example.history.unfinished = Some("stopped".to_owned());
            assert_eq!(found(&example), Ok(()));
            example.history.unfinished = None;
            example.history.requests.get_mut(&request(1, 0)).unwrap().attempts = 2;
            assert_eq!(found(&example), Ok(()));
        }
        // It was never heard of again: anything may have happened.
        let mut example = one();
        example.history.requests.get_mut(&request(1, 0)).unwrap().replies.clear();
        assert_eq!(found(&example), Ok(()));
    }
}
