//! Durability: what a client was told of stays.
//!
//! For each request that was answered with a result or with an abort: the log has it, at a place where it was executed and
//! ended as its client was told (CAL-28: the log of inputs is the only log; CAL-36: no acknowledged request is lost). That
//! its writes are in the last state, unless they were overwritten, follows: the last state is that of the log, see
//! [`equals_oracle`](super::equals_oracle).
//!
//! In a run that did not finish, nodes may not have executed again what they have in their logs: then the log must have
//! the request, but its execution may be missing.
//!
//! A read that needs no place in the order changes nothing, so that nothing of it must be kept. What early answers tell is the matter of [`early_answers`](super::early_answers).

use ordain_db::error::Error;
use ordain_db::message::Operation;

use super::Findings;
use super::evidence::Evidence;
use super::wording;

/// Checks the property.
///
/// # Errors
/// With the first request that was answered and is lost, or ended otherwise.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut findings = Findings::default();
    for (request, invocation) in &evidence.history.requests {
        let Some((at, outcome)) = invocation.decision() else { continue };
        let is_early = invocation.is_acknowledged_early()
            || matches!(invocation.operation, Operation::AskOutcome { .. });
        if is_early
            || evidence.may_be_unordered(invocation)
            || !matches!(outcome, Ok(_) | Err(Error::Aborted(_)))
        {
            continue;
        }
        let logged = || evidence.attempts(*request).iter().filter(|attempt| attempt.in_log);
        let kept = logged().any(|attempt| {
            attempt.gives(outcome)
                || (!evidence.finished() && attempt.verdict.is_none() && !attempt.decided())
        });
        findings.require(kept, || {
            let ends: Vec<String> = logged().map(|attempt| attempt.describe()).collect();
            let ends = if ends.is_empty() { "is not in the log".to_owned() } else { ends.join(" and ") };
            let (request, outcome) = (wording::request(*request), wording::outcome(outcome));
            format!("the client of {request} was told at {at} ns: {outcome}; but it {ends}")
        });
    }
    findings.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ordain_db::message::Verdict;

    use super::*;
    use crate::checkers::example::{Example, bank, position};

    fn found(example: &Example) -> Result<(), String> {
        check(&Evidence::new(&example.history, &bank()).unwrap())
    }

    fn one() -> Example {
        let mut example = Example::new();
        example.transaction(&[], &[(0, 1)]);
        example
    }

    #[test]
    fn what_was_told_is_in_the_log() {
        let mut example = one();
        assert_eq!(found(&example), Ok(()));
        example.history.log.clear();
        assert_eq!(
            found(&example),
            Err("the client of c1@p0#0 was told at 5 ns: result 0x; but it is not in the log".to_owned())
        );
        // Nobody was told of it.
        example.reply_mut(0).1 = Err(Error::Busy(String::new()));
        assert_eq!(found(&example), Ok(()));
    }

    #[test]
    fn the_answer_is_how_it_ended() {
        let mut example = one();
        example.reply_mut(0).1 = Ok(Bytes::from_static(&[1]));
        let problem = found(&example).unwrap_err();
        assert!(problem.ends_with("result 0x01; but it committed with result 0x at e1.p0.0"), "{problem}");
        example.reply_mut(0).1 = Err(Error::Aborted("poor".to_owned()));
        assert!(found(&example).is_err());
        example.set_verdict(0, Verdict::Failed(Error::Aborted("poor".to_owned())));
        assert_eq!(found(&example), Ok(()));
        // Missed at first, aborted at last.
        example.set_verdict(0, Verdict::FootprintMissed);
        assert!(found(&example).is_err());
        example.attempt_again(0, Verdict::Failed(Error::Aborted("poor".to_owned())));
        assert_eq!(found(&example), Ok(()));
    }

    #[test]
    fn what_was_told_was_executed_when_the_run_has_finished() {
        let mut example = one();
        example.history.executed.clear();
        assert!(found(&example).unwrap_err().ends_with("but it was not executed at e1.p0.0"));
        example.history.unfinished = Some("stopped".to_owned());
        assert_eq!(found(&example), Ok(()));
        example.history.log.clear();
        assert!(found(&example).is_err());
    }

    #[test]
    fn snapshots_are_told_their_place() {
        let mut example = one();
        example.snapshot(position(2, 0, 0), 50);
        assert_eq!(found(&example), Ok(()));
        example.reply_mut(1).1 = Ok(Bytes::from(postcard::to_allocvec(&position(2, 0, 1)).unwrap()));
        assert!(found(&example).unwrap_err().ends_with("but it opened its snapshot at e2.p0.0"));
    }
}
