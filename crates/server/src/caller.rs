//! One client of a cluster: numbers its requests, sends them, and hands each reply to whoever waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};
use std::time::Duration;

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, ClientRequest, Operation, Reply, Request, RequestId};
use ordain_db::position::PartitionId;

use crate::inbox::NotTaken;
use crate::look::look_for;
use crate::port::Port;
use crate::replies::ReplySink;

/// A reply to come: block for it with [`Pending::wait`], or await it in any executor.
#[must_use = "the request is under way; wait for its outcome"]
pub struct Pending(oneshot::Receiver<Outcome>);

impl Pending {
    /// Blocks until the reply is there.
    ///
    /// # Errors
    /// The request's own error, or that the database has stopped.
    pub fn wait(self) -> Outcome {
        self.0.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// The same for a request that is answered from memory: looks for the reply for a moment before it sleeps.
    ///
    /// # Errors
    /// As for [`Pending::wait`].
    pub(crate) fn wait_soon(self) -> Outcome {
        let mut outcome = None;
        look_for(|| {
            outcome = match self.0.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(oneshot::TryRecvError::Empty) => None,
                Err(oneshot::TryRecvError::Disconnected) => Some(Err(gone())),
            };
            outcome.is_some()
        });
        outcome.unwrap_or_else(|| self.wait())
    }

    /// Blocks for at most `patience`; the reply may be waited for again after `None`.
    pub fn wait_for(&self, patience: Duration) -> Option<Outcome> {
        match self.0.recv_timeout(patience) {
            Ok(outcome) => Some(outcome),
            Err(oneshot::RecvTimeoutError::Timeout) => None,
            Err(oneshot::RecvTimeoutError::Disconnected) => Some(Err(gone())),
        }
    }
}

impl IntoFuture for Pending {
    type Output = Outcome;
    type IntoFuture = PendingFuture;

    fn into_future(self) -> PendingFuture {
        PendingFuture(self.0.into_future())
    }
}

/// See [`Pending`].
pub struct PendingFuture(oneshot::AsyncReceiver<Outcome>);

impl Future for PendingFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.0).poll(context).map(|received| received.unwrap_or_else(|_| Err(gone())))
    }
}

fn gone() -> Error {
    Error::Unavailable("the connection to the database has ended".to_owned())
}

/// Requests of one session whose replies have not come.
#[derive(Default)]
struct Session {
    /// The number of the next request.
    next: u64,
    pending: BTreeMap<u64, oneshot::Sender<Outcome>>,
    /// Requests that may be asked for again, whether their replies have come or not.
    kept: BTreeSet<u64>,
}

impl Session {
    /// The number below which nothing is asked for any more.
    fn acknowledged(&self) -> u64 {
        let pending = self.pending.keys().next();
        pending.into_iter().chain(self.kept.first()).copied().min().unwrap_or(self.next)
    }
}

/// The sessions of one client, one for each home partition.
#[derive(Default)]
struct Sessions(Vec<Mutex<Session>>);

impl Sessions {
    fn lock(&self, home: PartitionId) -> MutexGuard<'_, Session> {
        self.0[home.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplySink for Sessions {
    fn deliver(&self, replies: Vec<Reply>) {
        for Reply { request, outcome } in replies {
            if request.client.home.index() >= self.0.len() {
                continue;
            }
            let waiting = self.lock(request.client.home).pending.remove(&request.sequence);
            if let Some(waiting) = waiting {
                // Whoever waited may have given up; then nobody needs the reply.
                let _ = waiting.send(outcome);
            }
        }
    }

    fn end(&self) {
        self.give_up();
    }
}

impl Sessions {
    /// Whoever still waits gets an error, since its sender is dropped.
    fn give_up(&self) {
        for home in 0..self.0.len() {
            self.lock(PartitionId(home as u16)).pending.clear();
        }
    }
}

/// A request that is not acknowledged until this is dropped, although its reply has come.
pub(crate) struct Kept {
    sessions: Arc<Sessions>,
    request: RequestId,
}

impl Kept {
    /// The request.
    pub(crate) fn request(&self) -> RequestId {
        self.request
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.sessions.lock(self.request.client.home).kept.remove(&self.request.sequence);
    }
}

/// See the [module](self).
pub struct Caller {
    port: Arc<dyn Port>,
    number: u64,
    sessions: Arc<Sessions>,
    /// Requests without a reply that a full inbox did not take; sent again with the next request.
    postponed: Mutex<Vec<(PartitionId, ClientRequest)>>,
}

impl Caller {
    /// A new client of the cluster behind `port`.
    ///
    /// # Errors
    /// When the operating system gives no randomness to draw a client number from.
    pub fn new(port: Arc<dyn Port>) -> Result<Caller, Error> {
        let number = random_number()?;
        let sessions = (0..port.partitions()).map(|_| Mutex::new(Session::default()));
        let sessions = Arc::new(Sessions(sessions.collect()));
        let sink: Arc<dyn ReplySink> = Arc::<Sessions>::clone(&sessions);
        port.open(number, sink);
        Ok(Caller { port, number, sessions, postponed: Mutex::default() })
    }

    /// Number of partitions in the cluster.
    pub fn partitions(&self) -> u16 {
        self.port.partitions()
    }

    /// Sends an ordered request to the partition `home`, whose sequencer orders it.
    pub fn order(&self, home: PartitionId, operation: Operation) -> Pending {
        self.send(home, |id, acknowledged| ClientRequest::Ordered(Request { id, acknowledged, operation }))
    }

    /// Sends an ordered request which may be asked for later, as long as the second of what is returned is kept.
    pub(crate) fn order_and_keep(&self, home: PartitionId, operation: Operation) -> (Pending, Kept) {
        let make = |id, acknowledged| ClientRequest::Ordered(Request { id, acknowledged, operation });
        let (pending, request) = self.begin(home, true, make);
        (pending, Kept { sessions: Arc::clone(&self.sessions), request })
    }

    /// Sends any request with a reply to a partition.
    pub fn send(&self, to: PartitionId, make: impl FnOnce(RequestId, u64) -> ClientRequest) -> Pending {
        self.begin(to, false, make).0
    }

    /// Sends requests with a reply each to a partition, all together: it takes them at once.
    pub fn send_all<F>(&self, to: PartitionId, makes: impl IntoIterator<Item = F>) -> Vec<Pending>
    where
        F: FnOnce(RequestId, u64) -> ClientRequest,
    {
        let numbered = |make: F| {
            let (pending, id, acknowledged) = self.number(to, false);
            (pending, id, make(id, acknowledged))
        };
        let begun = makes.into_iter().map(numbered);
        let (mut pendings, mut ids, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        for (pending, id, request) in begun {
            pendings.push(pending);
            ids.push(id);
            requests.push(request);
        }
        self.request(to, &ids, requests);
        pendings
    }

    fn begin(
        &self,
        to: PartitionId,
        keep: bool,
        make: impl FnOnce(RequestId, u64) -> ClientRequest,
    ) -> (Pending, RequestId) {
        let (pending, id, acknowledged) = self.number(to, keep);
        self.request(to, &[id], vec![make(id, acknowledged)]);
        (pending, id)
    }

    /// Gives a request its number; with it comes the number below which nothing is asked for any more.
    fn number(&self, to: PartitionId, keep: bool) -> (Pending, RequestId, u64) {
        let (sender, receiver) = oneshot::channel();
        let mut session = self.sessions.lock(to);
        let sequence = session.next;
        let acknowledged = session.acknowledged();
        session.next += 1;
        session.pending.insert(sequence, sender);
        if keep {
            session.kept.insert(sequence);
        }
        let id = RequestId { client: ClientId { home: to, number: self.number }, sequence };
        (Pending(receiver), id, acknowledged)
    }

    /// Sends requests with these numbers; whoever waits for them gets an error if they are not taken.
    fn request(&self, to: PartitionId, ids: &[RequestId], requests: Vec<ClientRequest>) {
        self.tell_postponed();
        if let Err(not_taken) = self.port.request(to, requests) {
            let error = match not_taken {
                NotTaken::Full(_) => Error::Busy(format!("the inbox of {to} is full")),
                NotTaken::Stopped(_) => Error::Unavailable(format!("{to} has stopped")),
            };
            let reply = |id: &RequestId| Reply { request: *id, outcome: Err(error.clone()) };
            self.sessions.deliver(ids.iter().map(reply).collect());
        }
    }

    /// Sends a request without a reply to a partition.
    pub fn tell(&self, to: PartitionId, request: ClientRequest) {
        self.postponed.lock().unwrap_or_else(PoisonError::into_inner).push((to, request));
        self.tell_postponed();
    }

    fn tell_postponed(&self) {
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        for (to, request) in std::mem::take(&mut *postponed) {
            // A stopped partition has nothing to be told.
            if let Err(NotTaken::Full(back)) = self.port.request(to, vec![request]) {
                postponed.extend(back.into_iter().map(|request| (to, request)));
            }
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.port.close(self.number);
    }
}

/// A number that no other process draws.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn random_number() -> Result<u64, Error> {
    getrandom::u64().map_err(|error| Error::Unavailable(format!("no randomness from the system: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_acknowledged() {
        let mut session = Session { next: 7, ..Session::default() };
        assert_eq!(session.acknowledged(), 7);
        session.pending.insert(5, oneshot::channel().0);
        session.kept.extend([4, 6]);
        assert_eq!(session.acknowledged(), 4);
        session.kept.remove(&4);
        assert_eq!(session.acknowledged(), 5);
        session.pending.clear();
        assert_eq!(session.acknowledged(), 6);
    }
}
