//! Calls that are answered when they are ordered: their client goes on, and asks what became of them (ALO-106, ALO-X11 d).

use clap::ValueEnum;
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientRequest, Operation};
use ordain_db::procedure::ProcedureId;
use ordain_workload::Call;

use super::{Asked, Driver, Home};

/// When a call is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Answer {
    /// When it has its place in the order.
    Ordered,
    /// When it is computed.
    Computed,
}

impl Answer {
    /// The name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Ordered => "ordered",
            Answer::Computed => "computed",
        }
    }
}

/// A call that wants its answer when it is ordered.
pub(super) struct EarlyCall {
    pub(super) home: usize,
    pub(super) sequence: u64,
    pub(super) procedure: ProcedureId,
    /// When it began, in nanoseconds since the start.
    pub(super) began: u64,
}

impl Home {
    /// Whether something is under way.
    pub(super) fn waits(&self) -> bool {
        self.outstanding > 0 || self.uncomputed > 0
    }
}

impl Driver<'_> {
    /// What an ordered call asks for.
    pub(super) fn operation(&mut self, home: usize, call: Call) -> (Operation, Asked) {
        let Call { procedure, arguments, .. } = call;
        match self.answer {
            Answer::Computed => (Operation::Call { procedure, arguments }, Asked::Call(procedure)),
            Answer::Ordered => {
                self.homes[home].unasked += 1;
                (Operation::CallEarly { procedure, arguments }, Asked::CallEarly(procedure, false))
            }
        }
    }

    /// Takes the answer to a call that wants it early. One that is acknowledged is not done: its number is asked for.
    pub(super) fn answered_early(&mut self, call: &EarlyCall, is_answered: bool, outcome: Outcome, now: u64) {
        let EarlyCall { home: place, sequence, procedure, began } = *call;
        let home = &mut self.homes[place];
        match outcome {
            Ok(_) => {
                let under_way = &mut home.window[(sequence - home.first) as usize];
                under_way.asked = Asked::CallEarly(procedure, true);
                under_way.done = false;
                if !is_answered {
                    home.uncomputed += 1;
                    home.questions.push(sequence);
                    self.answered(place, procedure, began, now);
                }
            }
            Err(error) => {
                home.unasked -= 1;
                self.end(place, procedure, began, Err(error), now);
            }
        }
    }

    /// Asks what became of the calls that were answered.
    pub(super) fn ask_outcomes(&mut self) -> Result<(), String> {
        for home in 0..self.homes.len() {
            let questions = std::mem::take(&mut self.homes[home].questions);
            if questions.is_empty() {
                continue;
            }
            self.homes[home].unasked -= questions.len();
            let now = self.now();
            let ask = |of| self.ordered(home, Operation::AskOutcome { of }, Asked::Outcome(of), now);
            let requests: Vec<ClientRequest> = questions.into_iter().map(ask).collect();
            self.push(home, requests)?;
        }
        Ok(())
    }

    /// Takes what became of a call that was answered early.
    pub(super) fn computed(&mut self, place: usize, of: u64, outcome: Outcome, now: u64) {
        let home = &mut self.homes[place];
        if matches!(outcome, Err(Error::Busy(_))) {
            // The question was not taken in; the call is.
            self.measured.pushed_back += 1;
            home.unasked += 1;
            home.questions.push(of);
            return;
        }
        let call = &mut home.window[(of - home.first) as usize];
        let Asked::CallEarly(procedure, _) = call.asked else { return };
        call.done = true;
        home.uncomputed -= 1;
        let took = now.saturating_sub(call.began) / 1000;
        if self.measuring {
            self.measured.computed.saturating_record(took);
        }
        self.count(procedure, outcome);
    }
}
