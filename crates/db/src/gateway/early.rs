//! Calls that are acknowledged before they are computed (Fan and Golab §IV-A, ALO-106 to ALO-108).
//!
//! The paper lets a client choose when it hears of its transaction: after the write-only phase, or after computation. Here the
//! write-only phase of a call ends when its epoch is *delivered* at its home: its batch is as durable and as replicated as its
//! group promises, and so are the batches of all other partitions that stand before it. From then on nothing but its own logic
//! can abort it, and whatever is sent after the acknowledgement stands behind it: early answers, too, agree with real time.
//!
//! A client sends [`Operation::CallEarly`]. The answer is the call's position. It asks what
//! became of the call by [`Operation::AskOutcome`], a request of its own, which waits
//! until the call is computed. What becomes of a call is kept in its [session](crate::sequencer::sessions), like that of any
//! call, at every replica, until the client acknowledges the call's number; it does not before it has the outcome.
//!
//! - A call whose keys reconnaissance finds is acknowledged when it is computed: before that it may start over, at another
//!   position (CAL-64).
//! - A call that ends before it is in the order, as one with arguments that cannot be right, has that error for an answer.
//! - That a call is *not* known here may mean that this node was cut off from its group and is the leader no more. So nobody is
//!   told so before an epoch has been agreed on that was open when the question came, which only the leader can bring about.
//! - Whether a call is early is not in the order, as it decides nothing there. The leader knows it of the requests that have come
//!   to it. Of those that were ordered before it led, it says nothing until their clients send them again.
//!
//! Everything here is of the leader alone, and is bounded by what [sessions](crate::limits::SESSION_WINDOW_MAX) admit.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use super::Gateway;
use crate::error::{Error, Outcome};
use crate::hash::{FastMap, FastSet};
use crate::message::{Operation, Request, RequestId};
use crate::position::{Epoch, NodeId, Position};
use crate::sequencer::Sequencer;
use crate::sequencer::sessions::Standing;

/// What the client of an early call knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Nothing,
    /// Its position.
    Position,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Early {
    /// Early calls that have come here and not ended.
    calls: FastMap<RequestId, Told>,
    /// Those of them that are in the order, and whose epoch is not delivered.
    undelivered: BTreeSet<(Position, RequestId)>,
    /// Requests for the outcome of a call, by the call, which has not ended.
    questions: FastMap<RequestId, Vec<RequestId>>,
    /// Requests for the outcome of calls that are not known here, each with the epoch that must be delivered first, and the call.
    /// Ascending by epoch.
    unknown: VecDeque<(Epoch, RequestId, RequestId)>,
    /// Requests that were ordered before this node led, have not ended, and have not come here.
    unheard: FastSet<RequestId>,
    /// The last epoch that was delivered here.
    delivered: Epoch,
}

impl Early {
    /// A request has come that was never answered: it is early or not.
    pub(super) fn hear(&mut self, request: &Request) {
        self.unheard.remove(&request.id);
        if matches!(request.operation, Operation::CallEarly { .. }) {
            self.calls.entry(request.id).or_insert(Told::Nothing);
        }
    }

    /// A request was not taken in.
    pub(super) fn forget(&mut self, id: RequestId) {
        self.calls.remove(&id);
    }

    /// A call that declares its keys is in the order.
    pub(super) fn ordered(&mut self, id: RequestId, at: Position) {
        if self.calls.get(&id) == Some(&Told::Nothing) {
            self.undelivered.insert((at, id));
        }
    }

    /// From now on this node leads; these requests were ordered before.
    pub(super) fn lead(&mut self, under_way: impl Iterator<Item = RequestId>) {
        self.unheard = under_way.collect();
    }

    /// From now on this node does not lead.
    pub(super) fn step_down(&mut self) {
        *self = Early { delivered: self.delivered, ..Early::default() };
    }
}

/// The answer to an early call at its position.
pub(super) fn acknowledgement(at: Position) -> Outcome {
    Ok(Bytes::from(postcard::to_allocvec(&at).expect("a position can be encoded")))
}

impl Gateway {
    /// Takes a request again that has come before and has not ended.
    pub(super) fn hear_again(&mut self, request: &Request) {
        let id = request.id;
        self.early.hear(request);
        let Some(told) = self.early.calls.get(&id).copied() else { return };
        // A reconnoitred attempt may miss.
        let Some(at) = self.sessions.ordered_at(id).filter(|_| !self.dependent.contains_key(&id)) else {
            return;
        };
        if at.epoch <= self.early.delivered || told == Told::Position {
            self.acknowledge(id, at);
        } else {
            self.early.ordered(id, at);
        }
    }

    /// The answer to a request that has ended and has come again.
    pub(super) fn again(&self, request: &Request, outcome: Outcome) -> Outcome {
        let is_early = matches!(request.operation, Operation::CallEarly { .. });
        match self.sessions.standing(request.id) {
            Standing::Ended(Some(at), _) if is_early => acknowledgement(at),
            _ => outcome,
        }
    }

    /// All epochs through this one are delivered: early calls in them are acknowledged.
    pub fn delivered(&mut self, through: Epoch) {
        self.early.delivered = through;
        while let Some((at, id)) = self.early.undelivered.first().copied()
            && at.epoch <= through
        {
            self.early.undelivered.pop_first();
            if self.early.calls.get(&id) == Some(&Told::Nothing) && self.sessions.ordered_at(id) == Some(at) {
                self.acknowledge(id, at);
            }
        }
        while let Some((epoch, id, call)) = self.early.unknown.front().copied()
            && epoch <= through
        {
            self.early.unknown.pop_front();
            if !self.answer_question(id, call) {
                let unknown = format!(
                    "request {} is not known here: it never came, was lost with a leader that replicates asynchronously, or is of a \
                     session that was forgotten; look before making a new one of it",
                    call.sequence
                );
                self.end_question(id, Err(Error::Invalid(unknown)));
            }
        }
    }

    /// Tells the client of an early call where it is in the order.
    fn acknowledge(&mut self, id: RequestId, at: Position) {
        self.early.calls.insert(id, Told::Position);
        let entry = self.sessions.entry(id.client);
        self.say(id, entry, acknowledgement(at));
    }

    /// A request has ended: tells its client, which is connected to `entry`, and whoever asked what became of it.
    pub(super) fn end(
        &mut self,
        id: RequestId,
        at: Option<Position>,
        entry: Option<NodeId>,
        outcome: Outcome,
    ) {
        let questions = self.early.questions.remove(&id).unwrap_or_default();
        let is_unheard = self.early.unheard.remove(&id);
        match (self.early.calls.remove(&id), at) {
            (Some(Told::Position), _) => {}
            (None, _) if is_unheard => {}
            (Some(Told::Nothing), Some(at)) => self.say(id, entry, acknowledgement(at)),
            (Some(Told::Nothing) | None, _) if questions.is_empty() => return self.say(id, entry, outcome),
            (Some(Told::Nothing) | None, _) => self.say(id, entry, outcome.clone()),
        }
        questions.into_iter().for_each(|question| self.end_question(question, outcome.clone()));
    }

    /// Tells the client of an early call the position that it may get: a
    /// [mistake](crate::failpoint::Failpoint::AnswerBeforeOrdered).
    pub(super) fn acknowledge_unordered(&mut self, id: RequestId, sequencer: &Sequencer) {
        if self.early.calls.get(&id) == Some(&Told::Nothing) && !self.dependent.contains_key(&id) {
            let index = sequencer.waiting().saturating_sub(1) as u32;
            self.acknowledge(id, Position { epoch: sequencer.open(), origin: self.me, index });
        }
    }

    /// Takes the question what became of the call with the number `of`. It is not in the order, and only its answer is its end.
    pub(super) fn ask_outcome(&mut self, id: RequestId, of: u64, sequencer: &mut Sequencer) {
        if of >= id.sequence {
            let problem = format!("request {} can ask only for the outcome of one before it", id.sequence);
            return self.end_question(id, Err(Error::Invalid(problem)));
        }
        let call = RequestId { sequence: of, ..id };
        if !self.answer_question(id, call) {
            self.early.unknown.push_back((sequencer.want(), id, call));
        }
    }

    /// Answers a question, or lets it wait until the call is computed; `false` if the call is not known here.
    fn answer_question(&mut self, id: RequestId, call: RequestId) -> bool {
        let answer = match self.sessions.standing(call) {
            Standing::UnderWay => {
                self.early.questions.entry(call).or_default().push(id);
                return true;
            }
            Standing::Ended(_, outcome) => outcome.clone(),
            Standing::Acknowledged => Err(Error::Acknowledged(call.sequence)),
            Standing::Unseen => return false,
        };
        self.end_question(id, answer);
        true
    }

    /// Answers a question. It may be asked again: what is kept is the call's.
    fn end_question(&mut self, id: RequestId, answer: Outcome) {
        let entry = self.sessions.withdraw(id);
        self.say(id, entry, answer);
    }
}
