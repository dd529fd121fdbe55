//! Early answers: a call that was acknowledged before it was computed stands where its client was told (Fan and Golab §IV-A,
//! ALO-106, ALO-107).
//!
//! - Each acknowledgement of an early call names a position at which the log has that very request.
//! - What its client is told later became of it is what was decided there: the verdict of that position, which is the oracle's by
//!   [`equals_oracle`](super::equals_oracle), or that the call was given up there.
//!
//! That all acknowledgements of a call are alike, and all answers to the question for its outcome, is
//! [`exactly_once`](super::exactly_once); that whatever is sent after an acknowledgement stands behind the call is
//! [`strict_serializability`](super::strict_serializability), which takes it for any answer.
//!
//! In a run that did not finish, what stands at the position may not have been executed yet. With asynchronous replication this
//! does not hold: what was acknowledged may be lost.

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{Operation, RequestId, Verdict};
use ordain_db::position::Position;

use super::Findings;
use super::evidence::{Attempt, Evidence, decides};
use super::wording;

/// Checks the property.
///
/// # Errors
/// With the first early call that does not stand where its client was told, or did not end as it was told.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut findings = Findings::default();
    for (request, invocation) in &evidence.history.requests {
        let answers = invocation.replies.iter().filter(|(_, outcome)| decides(outcome));
        match invocation.operation {
            Operation::CallEarly { .. } => {
                for (at, answer) in answers.filter_map(|(at, outcome)| Some((at, outcome.as_ref().ok()?))) {
                    findings.require(logged_at(*request, answer, evidence).is_some(), || {
                        let told =
                            position_of(answer).map_or("no position".to_owned(), |told| told.to_string());
                        let places = evidence.attempts(*request).iter().filter(|attempt| attempt.in_log);
                        let places: Vec<String> =
                            places.map(|attempt| attempt.position.to_string()).collect();
                        let places =
                            if places.is_empty() { "it nowhere".to_owned() } else { places.join(" and ") };
                        let request = wording::request(*request);
                        format!(
                            "the client of {request} was told at {at} ns: {told}; but the log has {places}"
                        )
                    });
                }
            }
            Operation::AskOutcome { of } => {
                let call = RequestId { sequence: of, ..*request };
                for (at, outcome) in answers {
                    if let Some(problem) = problem_of(call, outcome, evidence) {
                        let (call, outcome) = (wording::request(call), wording::outcome(outcome));
                        findings.note(|| {
                            format!("the client of {call} was told at {at} ns: {outcome}; {problem}")
                        });
                    }
                }
            }
            Operation::Call { .. }
            | Operation::Read { .. }
            | Operation::OpenSnapshot
            | Operation::Checkpoint => {}
        }
    }
    findings.finish()
}

fn position_of(answer: &[u8]) -> Option<Position> {
    postcard::from_bytes(answer).ok()
}

/// The place of a request in the log that an acknowledgement names.
fn logged_at<'e>(request: RequestId, answer: &[u8], evidence: &'e Evidence<'_>) -> Option<&'e Attempt<'e>> {
    let told = position_of(answer)?;
    evidence.attempts(request).iter().find(|attempt| attempt.in_log && attempt.position == told)
}

/// What is wrong with what a client was told became of its early call.
fn problem_of(call: RequestId, outcome: &Outcome, evidence: &Evidence<'_>) -> Option<String> {
    let acknowledgement = evidence.history.requests.get(&call).and_then(|invocation| invocation.end());
    let Some((_, Ok(answer))) = acknowledgement else {
        return Some("but it was never told where its call stands".to_owned());
    };
    // That it stands elsewhere is told already.
    let attempt = logged_at(call, answer, evidence)?;
    let unfinished = !evidence.finished() && attempt.verdict.is_none();
    let gave_up = attempt.verdict == Some(&Verdict::FootprintMissed) && *outcome == Err(Error::Contended);
    let holds = attempt.gives(outcome) || unfinished || gave_up;
    (!holds).then(|| format!("but it {}", attempt.describe()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::checkers::example::{Example, bank, position, request};

    fn found(example: &Example) -> Result<(), String> {
        check(&Evidence::new(&example.history, &bank()).unwrap())
    }

    fn encoded(at: Position) -> Bytes {
        Bytes::from(postcard::to_allocvec(&at).unwrap())
    }

    /// A call that was acknowledged, and then asked for.
    fn one() -> Example {
        let mut example = Example::new();
        let (at, _) = example.transaction(&[], &[(0, 1)]);
        example.make_early(0);
        example.reply_mut(0).1 = Ok(encoded(at));
        example.ask(0, Ok(Bytes::new()));
        example
    }

    fn aborted() -> Error {
        Error::Aborted("poor".to_owned())
    }

    #[test]
    fn an_early_call_stands_where_its_client_was_told() {
        let mut example = one();
        assert_eq!(found(&example), Ok(()));
        example.reply_mut(0).1 = Ok(encoded(position(1, 0, 7)));
        let problem = found(&example).unwrap_err();
        assert_eq!(problem, "the client of c1@p0#0 was told at 5 ns: e1.p0.7; but the log has e1.p0.0");
        example.reply_mut(0).1 = Ok(Bytes::from_static(&[9]));
        assert!(found(&example).unwrap_err().contains("was told at 5 ns: no position"));
        let mut example = one();
        example.history.log.clear();
        assert!(found(&example).unwrap_err().contains("but the log has it nowhere"));
        example.history.unfinished = Some("stopped".to_owned());
        assert!(found(&example).is_err(), "what was told is kept, however far the run came");
    }

    #[test]
    fn it_ends_as_its_client_is_told_later() {
        let mut example = one();
        example.reply_mut(1).1 = Err(aborted());
        let problem = found(&example).unwrap_err();
        assert!(problem.ends_with("aborted: poor; but it committed with result 0x at e1.p0.0"), "{problem}");
        example.set_verdict(0, Verdict::Failed(aborted()));
        assert_eq!(found(&example), Ok(()));
        // Of another position nothing was told.
        example.attempt_again(0, Verdict::Committed(Bytes::new()));
        example.reply_mut(1).1 = Ok(Bytes::new());
        assert!(found(&example).is_err());
    }

    #[test]
    fn a_call_may_be_given_up_where_it_stands() {
        let mut example = one();
        example.reply_mut(1).1 = Err(Error::Contended);
        assert!(found(&example).is_err());
        example.set_verdict(0, Verdict::FootprintMissed);
        assert_eq!(found(&example), Ok(()));
    }

    #[test]
    fn nobody_is_told_of_what_was_not_acknowledged() {
        let mut example = one();
        example.history.requests.get_mut(&request(1, 0)).unwrap().replies.clear();
        assert!(found(&example).unwrap_err().ends_with("but it was never told where its call stands"));
    }

    #[test]
    fn what_is_not_executed_yet_says_nothing() {
        let mut example = one();
        example.history.executed.clear();
        assert!(found(&example).is_err());
        example.history.unfinished = Some("stopped".to_owned());
        assert_eq!(found(&example), Ok(()));
    }
}
