//! Client sessions: each request takes effect once, and its answer can be given again (CAL-29).
//!
//! A session lives at its client's home partition only, wherever requests enter, so that there is one place that knows
//! which of them were seen. A client numbers its requests and says below which number it has all answers.
//!
//! Every replica of the home keeps the sessions, and all learn of requests and answers from the log and from execution.
//! Only what the leader has taken in and not yet logged is known to it alone, and forgotten when it leads no more: the next
//! leader takes nothing in before it has seen all of the log, so no request enters the log twice, whoever leads.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Outcome};
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::FastMap;
use crate::limits::Limits;
use crate::message::{ClientId, RequestId};
use crate::position::{Epoch, NodeId, Position};

/// How many windows of the client's are kept here at most. A replica that lags in execution holds requests whose answers the
/// client has from another replica: it does not know the answers, and still keeps the requests.
const WINDOWS_KEPT: u64 = 4;

/// What is known of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Known {
    Unseen,
    /// Taken in here and not in the order.
    Admitted,
    /// In the order, at this position.
    Ordered(Position),
    /// The attempt at this position missed its footprint, and no later one is in the order.
    Missed(Position),
    /// Answered; by what happened at the position, or before the request entered the order.
    Answered(Option<Position>, Outcome),
}

#[derive(Debug)]
struct Session {
    /// The sequence number of `window[0]`; all below are acknowledged, by what the order says.
    first: u64,
    window: VecDeque<Known>,
    /// The client has said to this node that all below are acknowledged. What is in the window goes when the order says so:
    /// the order may yet bring requests that are below.
    claimed: u64,
    /// Whether the order has brought a request of the session.
    is_ordered: bool,
    /// The node where the client was last seen, if that is known here: answers go there.
    entry: Option<NodeId>,
    in_flight: u32,
    /// Value of [`Sessions::clock`] when the session was last used.
    used_at: u64,
}

/// What to do with a request that has come.
#[derive(Debug)]
pub enum Admission {
    /// New: it goes on to the order.
    Enter,
    /// Being worked on; the answer will come.
    InFlight,
    /// Answered before: the same answer again.
    Again(Outcome),
    /// Not taken in.
    Refuse(Error),
}

/// How far a request has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing<'a> {
    /// Its client has acknowledged it; what became of it is not kept.
    Acknowledged,
    /// It is not known.
    Unseen,
    /// It was taken in, or is in the order.
    UnderWay,
    /// It was answered; by what happened at the position, or before it entered the order.
    Ended(Option<Position>, &'a Outcome),
}

/// The sessions of the clients that are at home at one partition.
#[derive(Debug)]
pub struct Sessions {
    limits: Limits,
    sessions: FastMap<ClientId, Session>,
    /// Requests that were taken in or ordered, and not answered.
    in_flight: usize,
    /// By epoch, ascending: how many requests of it have neither been answered nor missed their footprint.
    ordered: VecDeque<(Epoch, usize)>,
    /// Counts admissions; orders sessions by their last use.
    clock: u64,
}

/// A session in a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedSession {
    client: ClientId,
    first: u64,
    /// What is known, by sequence number, but for what is unseen.
    known: Vec<(u64, Known)>,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(limits: Limits) -> Sessions {
        Sessions { limits, sessions: FastMap::default(), in_flight: 0, ordered: VecDeque::new(), clock: 0 }
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Decides on a request that came in at `entry`. `acknowledged`: the client has the answers to all lower numbers.
    pub fn admit<F: Failpoints>(&mut self, id: RequestId, acknowledged: u64, entry: NodeId) -> Admission {
        if !self.sessions.contains_key(&id.client)
            && let Err(error) = self.make_room()
        {
            return Admission::Refuse(error);
        }
        let window = self.limits.session_window;
        let session = self.session(id.client, acknowledged);
        session.entry = Some(entry);
        session.claim(acknowledged);
        let admission = session.admit::<F>(id.sequence, acknowledged, window);
        self.in_flight += usize::from(matches!(admission, Admission::Enter));
        admission
    }

    /// The session of a client; a new one if there is none.
    fn session(&mut self, client: ClientId, acknowledged: u64) -> &mut Session {
        self.clock += 1;
        let new = || Session {
            first: acknowledged,
            window: VecDeque::new(),
            claimed: acknowledged,
            is_ordered: false,
            entry: None,
            in_flight: 0,
            used_at: 0,
        };
        let session = self.sessions.entry(client).or_insert_with(new);
        session.used_at = self.clock;
        session
    }

    /// Notes that a request is in the order, at a position.
    pub fn ordered(&mut self, id: RequestId, acknowledged: u64, position: Position) {
        if !self.sessions.contains_key(&id.client) {
            // The order does not ask for room. If all sessions have requests under way, there is one more than usual.
            let _ = self.make_room();
        }
        let session = self.session(id.client, acknowledged);
        session.is_ordered = true;
        session.acknowledge(acknowledged);
        let Some(known) = session.place(id.sequence) else { return };
        let before = std::mem::replace(known, Known::Ordered(position));
        match before {
            Known::Answered(..) => {
                *known = before;
                return;
            }
            Known::Unseen => {
                session.in_flight += 1;
                self.in_flight += 1;
            }
            // An attempt that is followed by another one has come to its end, although its report may yet come.
            Known::Ordered(earlier) => self.ended(earlier),
            Known::Admitted | Known::Missed(_) => {}
        }
        match self.ordered.back_mut() {
            Some((epoch, count)) if *epoch == position.epoch => *count += 1,
            _ => self.ordered.push_back((position.epoch, 1)),
        }
    }

    /// Notes that a request in the order has come to an end there.
    fn ended(&mut self, at: Position) {
        if let Some((_, count)) = self.ordered.iter_mut().find(|(epoch, _)| *epoch == at.epoch) {
            *count -= 1;
        }
        while self.ordered.front().is_some_and(|(_, count)| *count == 0) {
            self.ordered.pop_front();
        }
    }

    /// The first epoch of which a request has neither been answered nor missed its footprint.
    pub fn oldest_ordered(&self) -> Option<Epoch> {
        self.ordered.front().map(|(epoch, _)| *epoch)
    }

    /// Number of requests that were taken in or ordered, and not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Records the answer to a request: of the transaction at a position, or of one that did not enter the order. `None` if it
    /// is no news; else the node where the client was last seen, as far as that is known.
    pub fn answer(
        &mut self,
        id: RequestId,
        at: Option<Position>,
        outcome: &Outcome,
    ) -> Option<Option<NodeId>> {
        let session = self.sessions.get_mut(&id.client)?;
        let known = session.at(id.sequence)?;
        let expected = match (&*known, at) {
            (Known::Ordered(ordered), Some(at)) => *ordered == at,
            (Known::Missed(missed), Some(at)) => *missed == at,
            (Known::Admitted | Known::Missed(_), None) => true,
            _ => false,
        };
        if !expected {
            return None;
        }
        let was_ordered = matches!(known, Known::Ordered(_));
        *known = Known::Answered(at, outcome.clone());
        session.in_flight -= 1;
        self.in_flight -= 1;
        let entry = session.entry;
        if let Some(at) = at.filter(|_| was_ordered) {
            self.ended(at);
        }
        Some(entry)
    }

    /// Notes that the attempt at a position missed its footprint; whether that is news.
    pub fn missed(&mut self, id: RequestId, at: Position) -> bool {
        let known = self.sessions.get_mut(&id.client).and_then(|session| session.at(id.sequence));
        match known {
            Some(known) if *known == Known::Ordered(at) => {
                *known = Known::Missed(at);
                self.ended(at);
                true
            }
            _ => false,
        }
    }

    /// Whether the last attempt at a request missed its footprint, and no later one is in the order.
    pub fn has_missed(&self, id: RequestId) -> bool {
        let known = self.sessions.get(&id.client).and_then(|session| session.peek(id.sequence));
        matches!(known, Some(Known::Missed(_)))
    }

    /// Whether a request is in the order at a position, and has not come to an end there.
    pub fn is_ordered(&self, id: RequestId, at: Position) -> bool {
        let known = self.sessions.get(&id.client).and_then(|session| session.peek(id.sequence));
        matches!(known, Some(Known::Ordered(ordered)) if *ordered == at)
    }

    /// Where a request is in the order, if it has not come to an end there.
    pub fn ordered_at(&self, id: RequestId) -> Option<Position> {
        match self.sessions.get(&id.client)?.peek(id.sequence)? {
            Known::Ordered(at) => Some(*at),
            _ => None,
        }
    }

    /// How far a request has come.
    pub fn standing(&self, id: RequestId) -> Standing<'_> {
        let Some(session) = self.sessions.get(&id.client) else { return Standing::Unseen };
        if id.sequence < session.first {
            return Standing::Acknowledged;
        }
        match session.peek(id.sequence) {
            None | Some(Known::Unseen) => Standing::Unseen,
            Some(Known::Admitted | Known::Ordered(_) | Known::Missed(_)) => Standing::UnderWay,
            Some(Known::Answered(at, outcome)) => Standing::Ended(*at, outcome),
        }
    }

    /// The requests that are in the order and have not ended. In no order that means anything.
    pub fn ordered_requests(&self) -> impl Iterator<Item = RequestId> {
        self.sessions.iter().flat_map(|(client, session)| {
            let places = session.window.iter().enumerate();
            let ordered = places.filter(|(_, known)| matches!(known, Known::Ordered(_) | Known::Missed(_)));
            ordered.map(|(place, _)| RequestId { client: *client, sequence: session.first + place as u64 })
        })
    }

    /// The node where a client was last seen, if that is known here.
    pub fn entry(&self, client: ClientId) -> Option<NodeId> {
        self.sessions.get(&client)?.entry
    }

    /// Forgets a request that was taken in but could not be taken on, so that it can be sent again; returns where its client
    /// was last seen.
    pub fn withdraw(&mut self, id: RequestId) -> Option<NodeId> {
        let session = self.sessions.get_mut(&id.client)?;
        let known = session.at(id.sequence)?;
        if matches!(known, Known::Admitted) {
            *known = Known::Unseen;
            session.in_flight -= 1;
            self.in_flight -= 1;
        }
        session.entry
    }

    /// Forgets all requests that were taken in and are not in the order: another node leads now. Names them with the nodes
    /// where their clients were last seen, in order.
    pub fn withdraw_all(&mut self) -> Vec<(RequestId, NodeId)> {
        let mut withdrawn = Vec::new();
        for (client, session) in &mut self.sessions {
            for (place, known) in session.window.iter_mut().enumerate() {
                if matches!(known, Known::Admitted) {
                    *known = Known::Unseen;
                    session.in_flight -= 1;
                    self.in_flight -= 1;
                    let id = RequestId { client: *client, sequence: session.first + place as u64 };
                    withdrawn.extend(session.entry.map(|entry| (id, entry)));
                }
            }
        }
        // Where the window of such a session begins was only this client's word to this node.
        self.sessions.retain(|_, session| session.is_ordered);
        withdrawn.sort_unstable_by_key(|(id, _)| *id);
        withdrawn
    }

    /// What a checkpoint at the end of an epoch keeps: what the order had decided by then. The longest idle come first.
    pub fn save(&self, through: Epoch) -> Vec<SavedSession> {
        let mut sessions: Vec<(&ClientId, &Session)> = self.sessions.iter().collect();
        sessions.sort_unstable_by_key(|(_, session)| session.used_at);
        let saved = sessions.into_iter().map(|(client, session)| {
            let keeps = |known: &Known| match known {
                Known::Unseen | Known::Admitted | Known::Answered(None, _) => false,
                Known::Ordered(at) | Known::Missed(at) | Known::Answered(Some(at), _) => at.epoch <= through,
            };
            let known = session.window.iter().enumerate().filter(|(_, known)| keeps(known));
            let known = known.map(|(place, known)| (session.first + place as u64, known.clone()));
            SavedSession { client: *client, first: session.first, known: known.collect() }
        });
        saved.collect()
    }

    /// Takes over the sessions of a checkpoint.
    pub fn restore(&mut self, saved: Vec<SavedSession>) {
        for SavedSession { client, first, known } in saved {
            for (sequence, known) in known {
                debug_assert!(
                    !matches!(known, Known::Ordered(_)),
                    "a checkpoint has all answers of its epochs"
                );
                let waits = matches!(known, Known::Missed(_));
                let session = self.session(client, first);
                if let Some(place) = session.place(sequence) {
                    *place = known;
                    session.in_flight += u32::from(waits);
                    self.in_flight += usize::from(waits);
                }
            }
            self.session(client, first).is_ordered = true;
        }
    }

    /// Drops the session that was idle for longest when the limit is reached.
    fn make_room(&mut self) -> Result<(), Error> {
        if self.sessions.len() < self.limits.sessions {
            return Ok(());
        }
        let idle = self.sessions.iter().filter(|(_, session)| session.in_flight == 0);
        // `used_at` is unique, so that the choice does not depend on the order of iteration.
        match idle.min_by_key(|(_, session)| session.used_at).map(|(client, _)| *client) {
            Some(client) => {
                self.sessions.remove(&client);
                Ok(())
            }
            None => Err(Error::Busy(format!("{} clients have requests under way", self.limits.sessions))),
        }
    }
}

impl Session {
    fn peek(&self, sequence: u64) -> Option<&Known> {
        let index = sequence.checked_sub(self.first)?;
        self.window.get(usize::try_from(index).ok()?)
    }

    fn at(&mut self, sequence: u64) -> Option<&mut Known> {
        let index = sequence.checked_sub(self.first)?;
        self.window.get_mut(usize::try_from(index).ok()?)
    }

    /// What is known of a request that is in the order, which does not ask for the window; `None` if it was acknowledged.
    fn place(&mut self, sequence: u64) -> Option<&mut Known> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        while self.window.len() <= index {
            self.window.push_back(Known::Unseen);
        }
        self.window.get_mut(index)
    }

    /// Takes the client's word, but for what is still being worked on: a client cannot have the answer to that.
    fn claim(&mut self, below: u64) {
        while self.claimed < below {
            match self.peek(self.claimed) {
                Some(Known::Admitted | Known::Ordered(_) | Known::Missed(_)) => return,
                Some(Known::Unseen | Known::Answered(..)) => self.claimed += 1,
                None if self.claimed < self.first => self.claimed = self.first.min(below),
                None => self.claimed = below,
            }
        }
    }

    fn acknowledge(&mut self, below: u64) {
        while self.first < below {
            match self.window.front() {
                // A client cannot have the answer to a request that is still being worked on.
                Some(Known::Admitted | Known::Ordered(_) | Known::Missed(_)) => return,
                Some(Known::Unseen | Known::Answered(..)) => {
                    self.window.pop_front();
                    self.first += 1;
                }
                None => self.first = below,
            }
        }
    }

    /// Forgets what the client has answers to by its own word. Nothing is under way, so at most the order brings again what ended
    /// before.
    fn forget_claimed(&mut self) {
        let claimed = self.claimed.saturating_sub(self.first);
        let forgotten = self.window.len().min(usize::try_from(claimed).unwrap_or(usize::MAX));
        self.window.drain(..forgotten);
        self.first = self.first.max(self.claimed);
    }

    fn admit<F: Failpoints>(&mut self, sequence: u64, acknowledged: u64, window: u64) -> Admission {
        let first = self.first.max(self.claimed);
        if sequence < first {
            return Admission::Refuse(Error::Acknowledged(sequence));
        }
        let oldest = first.max(acknowledged);
        if sequence.saturating_sub(oldest) >= window {
            return Admission::Refuse(Error::Busy(format!(
                "request {sequence} is more than {window} ahead of {oldest}, the oldest without acknowledgement"
            )));
        }
        let most = window.saturating_mul(WINDOWS_KEPT);
        if sequence - self.first >= most && self.in_flight == 0 {
            self.forget_claimed();
        }
        if sequence - self.first >= most {
            return Admission::Refuse(Error::Busy(format!(
                "request {sequence} is too far ahead of {first}, which this replica has not executed yet"
            )));
        }
        let Some(known) = self.place(sequence) else {
            unreachable!("the request is not below the first of the window")
        };
        match known {
            Known::Unseen => {
                *known = Known::Admitted;
                self.in_flight += 1;
                Admission::Enter
            }
            _ if F::on(Failpoint::LoseDuplicateCheck) => Admission::Enter,
            Known::Admitted | Known::Ordered(_) | Known::Missed(_) => Admission::InFlight,
            Known::Answered(_, outcome) => Admission::Again(outcome.clone()),
        }
    }
}
