//! Client sessions: each request takes effect once, and its answer can be given again (CAL-29).
//!
//! A session lives at its client's home partition only, wherever requests enter, so that there is one place that knows
//! which of them were seen. A client numbers its requests and says below which number it has all answers.

use std::collections::VecDeque;

use crate::error::{Error, Outcome};
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::FastMap;
use crate::limits::Limits;
use crate::message::{ClientId, RequestId};
use crate::position::PartitionId;

/// What is known of a request.
#[derive(Clone, Debug)]
enum Known {
    Unseen,
    InFlight,
    Answered(Outcome),
}

#[derive(Debug)]
struct Session {
    /// The sequence number of `window[0]`; all below are acknowledged.
    first: u64,
    window: VecDeque<Known>,
    /// Where the client was last seen: answers go there.
    entry: PartitionId,
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

/// The sessions of the clients that are at home at one partition.
#[derive(Debug)]
pub struct Sessions {
    limits: Limits,
    sessions: FastMap<ClientId, Session>,
    /// Requests that were admitted and not answered.
    in_flight: usize,
    /// Counts admissions; orders sessions by their last use.
    clock: u64,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(limits: Limits) -> Sessions {
        Sessions { limits, sessions: FastMap::default(), in_flight: 0, clock: 0 }
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
    pub fn admit<F: Failpoints>(
        &mut self,
        id: RequestId,
        acknowledged: u64,
        entry: PartitionId,
    ) -> Admission {
        self.clock += 1;
        if !self.sessions.contains_key(&id.client) {
            if let Err(error) = self.make_room() {
                return Admission::Refuse(error);
            }
            let session =
                Session { first: acknowledged, window: VecDeque::new(), entry, in_flight: 0, used_at: 0 };
            self.sessions.insert(id.client, session);
        }
        let Some(session) = self.sessions.get_mut(&id.client) else {
            unreachable!("the session was there or was inserted")
        };
        session.entry = entry;
        session.used_at = self.clock;
        session.acknowledge(acknowledged);
        let admission = session.admit::<F>(id.sequence, self.limits.session_window);
        self.in_flight += usize::from(matches!(admission, Admission::Enter));
        admission
    }

    /// Number of requests that were admitted and not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Records the answer to a request in flight; returns where to send it, or `None` if nobody waits for it any more.
    pub fn answer(&mut self, id: RequestId, outcome: &Outcome) -> Option<PartitionId> {
        let session = self.sessions.get_mut(&id.client)?;
        let known = session.at(id.sequence)?;
        if !matches!(known, Known::InFlight) {
            return None;
        }
        *known = Known::Answered(outcome.clone());
        session.in_flight -= 1;
        self.in_flight -= 1;
        Some(session.entry)
    }

    /// Forgets a request that was admitted but could not be taken on, so that it can be sent again; returns where its client
    /// was last seen.
    pub fn withdraw(&mut self, id: RequestId) -> Option<PartitionId> {
        let session = self.sessions.get_mut(&id.client)?;
        let known = session.at(id.sequence)?;
        if matches!(known, Known::InFlight) {
            *known = Known::Unseen;
            session.in_flight -= 1;
            self.in_flight -= 1;
        }
        Some(session.entry)
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
    fn at(&mut self, sequence: u64) -> Option<&mut Known> {
        let index = sequence.checked_sub(self.first)?;
        self.window.get_mut(usize::try_from(index).ok()?)
    }

    fn acknowledge(&mut self, below: u64) {
        while self.first < below {
            match self.window.front() {
                // A client cannot have the answer to a request that is still being worked on.
                Some(Known::InFlight) => return,
                Some(_) => {
                    self.window.pop_front();
                    self.first += 1;
                }
                None => self.first = below,
            }
        }
    }

    fn admit<F: Failpoints>(&mut self, sequence: u64, window: u64) -> Admission {
        if sequence < self.first {
            return Admission::Refuse(Error::Acknowledged(sequence));
        }
        let index = sequence - self.first;
        if index >= window {
            return Admission::Refuse(Error::Busy(format!(
                "request {sequence} is more than {window} ahead of {}, the oldest without acknowledgement",
                self.first
            )));
        }
        let index = index as usize;
        while self.window.len() <= index {
            self.window.push_back(Known::Unseen);
        }
        match &self.window[index] {
            Known::InFlight | Known::Answered(_) if F::on(Failpoint::LoseDuplicateCheck) => Admission::Enter,
            Known::Unseen => {
                self.window[index] = Known::InFlight;
                self.in_flight += 1;
                Admission::Enter
            }
            Known::InFlight => Admission::InFlight,
            Known::Answered(outcome) => Admission::Again(outcome.clone()),
        }
    }
}
