//! The clients of a process: what each connection waits for and has open.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ordain_db::error::Error;
use ordain_db::hash::FastMap;
use ordain_db::limits::ARGUMENTS_BYTES_MAX;
use ordain_db::message::{ClientRequest, Operation, Reply, RequestId};
use ordain_db::position::{NodeId, PartitionId, Position};

use crate::inbox::{Inbox, NotTaken};
use crate::process::Inboxes;
use crate::replies::{Replies, ReplySink};
use crate::transport::ClientHandle;
use crate::wire::ServerPayload;

/// Most requests of one connection that may wait for an answer; more are refused as busy.
pub const CONNECTION_REQUESTS_MAX: usize = 128 * 1024;

/// Most bytes of arguments that these requests may have.
pub const CONNECTION_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most clients that may share a connection.
pub const CONNECTION_CLIENTS_MAX: usize = 16 * 1024;

/// What all connections share.
pub(crate) struct Clients {
    /// Number of partitions in the cluster.
    partitions: u16,
    /// Of the nodes that run here.
    inboxes: Inboxes,
    replies: Arc<Replies>,
    /// The latest connection of each client number.
    owners: Mutex<FastMap<u64, Arc<ClientConnection>>>,
    /// Snapshots that could not be closed yet, with the partition that is to do it.
    unclosed: Mutex<Vec<(PartitionId, Position)>>,
    /// Requests that have been taken and not answered.
    under_way: AtomicUsize,
    draining: AtomicBool,
}

/// A connection with one or many clients; takes the replies to all of them.
pub(crate) struct ClientConnection {
    handle: ClientHandle,
    clients: Arc<Clients>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The client numbers that came over this connection.
    numbers: FastMap<u64, Standing>,
    /// Bytes of arguments by request without an answer.
    waiting: FastMap<RequestId, usize>,
    /// Sum of `waiting`.
    waiting_bytes: usize,
    /// Snapshots that are being opened, with the partition that was asked to. Kept after the connection has gone, so
    /// that they are closed as soon as they are open.
    opening: FastMap<RequestId, PartitionId>,
    /// Snapshots that are open.
    open: Vec<(PartitionId, Position)>,
    gone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Held,
    /// A newer connection speaks for the client.
    TakenOver,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements that could panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clients {
    pub(crate) fn new(partitions: u16, inboxes: Inboxes, replies: Arc<Replies>) -> Clients {
        Clients {
            partitions,
            inboxes,
            replies,
            owners: Mutex::default(),
            unclosed: Mutex::default(),
            under_way: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
        }
    }

    /// A new connection.
    pub(crate) fn connection(self: &Arc<Clients>, handle: ClientHandle) -> Arc<ClientConnection> {
        Arc::new(ClientConnection { handle, clients: Arc::clone(self), state: Mutex::default() })
    }

    /// The inbox of a partition, if it runs here.
    pub(crate) fn inbox(&self, partition: PartitionId) -> Option<&Arc<Inbox>> {
        self.inboxes.iter().find(|(node, _)| node.partition == partition).map(|(_, inbox)| inbox)
    }

    /// The inbox of a node, if it runs here.
    pub(crate) fn node_inbox(&self, node: NodeId) -> Option<&Arc<Inbox>> {
        self.inboxes.iter().find(|(other, _)| *other == node).map(|(_, inbox)| inbox)
    }

    /// Takes no more requests.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Requests that have been taken and not answered, of clients that are connected.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    /// Makes a connection the one that speaks for a client number, whoever did before.
    fn claim(&self, number: u64, connection: &Arc<ClientConnection>) {
        let mut owners = lock(&self.owners);
        let previous = owners.insert(number, Arc::clone(connection));
        let opening = previous.map(|previous| previous.lose(number)).unwrap_or_default();
        connection.hold(number, opening);
        self.replies.open(number, Arc::<ClientConnection>::clone(connection) as Arc<dyn ReplySink>);
    }

    /// Ends the delivery of replies to client numbers, but for those that another connection speaks for by now.
    fn release(&self, numbers: &[u64], connection: &ClientConnection) {
        let mut owners = lock(&self.owners);
        for number in numbers {
            if let Entry::Occupied(owner) = owners.entry(*number)
                && std::ptr::eq(&**owner.get(), connection)
            {
                owner.remove();
                self.replies.close(*number);
            }
        }
    }

    /// Closes a snapshot, at the latest when there is room for the request.
    pub(crate) fn close_snapshot(&self, to: PartitionId, at: Position) {
        let Some(inbox) = self.inbox(to) else { return };
        if let Err(NotTaken::Full(_)) = inbox.request(vec![ClientRequest::CloseSnapshot(at)]) {
            lock(&self.unclosed).push((to, at));
        }
    }

    /// Tries again what there was no room for.
    pub(crate) fn close_snapshots_left(&self) {
        let unclosed = std::mem::take(&mut *lock(&self.unclosed));
        unclosed.into_iter().for_each(|(to, at)| self.close_snapshot(to, at));
    }
}

/// What becomes of a request at the door.
enum Admission {
    Take,
    Refuse(Error),
    /// It has no effect and no answer.
    Ignore,
}

impl ClientConnection {
    /// Takes requests to a partition of this process: those in order go on, the others are answered.
    pub(crate) fn take(self: &Arc<Self>, to: PartitionId, inbox: &Inbox, mut requests: Vec<ClientRequest>) {
        self.claim_numbers(&requests);
        let mut refused = Vec::new();
        {
            let draining = self.clients.draining.load(Ordering::SeqCst);
            let mut state = lock(&self.state);
            let before = state.waiting.len();
            requests.retain(|request| match state.admit(to, request, self.clients.partitions, draining) {
                Admission::Take => true,
                Admission::Refuse(error) => {
                    refused.extend(answer(request, error));
                    false
                }
                Admission::Ignore => false,
            });
            self.clients.under_way.fetch_add(state.waiting.len() - before, Ordering::SeqCst);
        }
        if !requests.is_empty() {
            match inbox.request(requests) {
                Ok(()) => {}
                Err(NotTaken::Full(back)) => {
                    let error = Error::Busy(format!("the inbox of {to} is full"));
                    refused.extend(self.withdraw(to, &back, &error));
                }
                Err(NotTaken::Stopped(back)) => {
                    refused.extend(self.withdraw(
                        to,
                        &back,
                        &Error::Unavailable(format!("{to} has stopped and did not take the request")),
                    ));
                }
            }
        }
        self.send(&refused);
    }

    /// Answers all requests with an error, without taking them.
    pub(crate) fn refuse(&self, requests: &[ClientRequest], error: &Error) {
        let replies: Vec<Reply> =
            requests.iter().filter_map(|request| answer(request, error.clone())).collect();
        self.send(&replies);
    }

    /// Speaks for the clients of the requests from now on.
    fn claim_numbers(self: &Arc<Self>, requests: &[ClientRequest]) {
        let mut unknown: Vec<u64> = Vec::new();
        {
            let state = lock(&self.state);
            let mut last = None;
            for number in requests.iter().filter_map(ClientRequest::id).map(|id| id.client.number) {
                let room = state.numbers.len() + unknown.len() < CONNECTION_CLIENTS_MAX;
                if last.replace(number) != Some(number) && room && !state.numbers.contains_key(&number) {
                    unknown.push(number);
                }
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        unknown.into_iter().for_each(|number| self.clients.claim(number, self));
    }

    fn hold(&self, number: u64, opening: Vec<(RequestId, PartitionId)>) {
        let mut state = lock(&self.state);
        state.numbers.insert(number, Standing::Held);
        state.opening.extend(opening);
    }

    /// Another connection speaks for the client from now on. Returns the snapshots that are being opened for it.
    fn lose(&self, number: u64) -> Vec<(RequestId, PartitionId)> {
        tracing::info!(client = %self.handle.address(), number, "a newer connection took over");
        let mut state = lock(&self.state);
        state.numbers.insert(number, Standing::TakenOver);
        let own = |id: &RequestId| id.client.number == number;
        let lost: Vec<usize> = state.waiting.extract_if(|id, _| own(id)).map(|(_, bytes)| bytes).collect();
        state.waiting_bytes -= lost.iter().sum::<usize>();
        self.clients.under_way.fetch_sub(lost.len(), Ordering::SeqCst);
        state.opening.extract_if(|id, _| own(id)).collect()
    }

    /// Takes back requests for which there was no room, and returns the answers.
    fn withdraw(&self, to: PartitionId, requests: &[ClientRequest], error: &Error) -> Vec<Reply> {
        let mut state = lock(&self.state);
        let before = state.waiting.len();
        let mut closing = Vec::new();
        for request in requests {
            match (request.id(), request) {
                (Some(id), _) => {
                    state.answered(&id);
                    state.opening.remove(&id);
                }
                (None, ClientRequest::CloseSnapshot(at)) => closing.push(*at),
                (None, _) => {}
            }
        }
        self.clients.under_way.fetch_sub(before - state.waiting.len(), Ordering::SeqCst);
        drop(state);
        closing.into_iter().for_each(|at| self.clients.close_snapshot(to, at));
        requests.iter().filter_map(|request| answer(request, error.clone())).collect()
    }

    /// The connection has ended: nobody waits for anything any more.
    pub(crate) fn gone(&self) {
        let mut state = lock(&self.state);
        state.gone = true;
        self.clients.under_way.fetch_sub(state.waiting.len(), Ordering::SeqCst);
        state.waiting.clear();
        let open = std::mem::take(&mut state.open);
        let State { numbers, opening, .. } = &mut *state;
        let needed = |number: &u64| opening.keys().any(|id| id.client.number == *number);
        let numbers: Vec<u64> =
            numbers.extract_if(|number, _| !needed(number)).map(|(number, _)| number).collect();
        drop(state);
        self.clients.release(&numbers, self);
        open.into_iter().for_each(|(to, at)| self.clients.close_snapshot(to, at));
    }

    /// Sends answers. A client that has gone, or is cut off for not reading, needs none.
    fn send(&self, replies: &[Reply]) {
        for payload in ServerPayload::encode_replies(replies) {
            if self.handle.send(payload).is_err() {
                return;
            }
        }
    }
}

impl State {
    fn admit(
        &mut self,
        to: PartitionId,
        request: &ClientRequest,
        partitions: u16,
        draining: bool,
    ) -> Admission {
        let Some(id) = request.id() else { return self.admit_without_answer(to, request) };
        let bytes = request.payload_bytes();
        if let Some(error) = self.problem(&id, bytes, partitions, draining) {
            return Admission::Refuse(error);
        }
        if let ClientRequest::Ordered(request) = request
            && request.operation == Operation::OpenSnapshot
        {
            self.opening.insert(id, to);
        }
        if self.waiting.insert(id, bytes).is_none() {
            self.waiting_bytes += bytes;
        }
        Admission::Take
    }

    /// Why a request cannot be taken.
    fn problem(&self, id: &RequestId, bytes: usize, partitions: u16, draining: bool) -> Option<Error> {
        let home = id.client.home;
        if home.0 >= partitions {
            let problem = format!("client home {home} is outside of this cluster of {partitions} partitions");
            return Some(Error::Invalid(problem));
        }
        let number = id.client.number;
        match self.numbers.get(&number) {
            Some(Standing::Held) => {}
            Some(Standing::TakenOver) => {
                let problem = format!("client number {number} is used by a newer connection: draw another");
                return Some(Error::Invalid(problem));
            }
            None => {
                let problem = format!("{CONNECTION_CLIENTS_MAX} clients share this connection: open another");
                return Some(Error::Busy(problem));
            }
        }
        if draining {
            return Some(Error::Unavailable(
                "the process is shutting down and did not take the request".to_owned(),
            ));
        }
        if bytes > ARGUMENTS_BYTES_MAX {
            return Some(Error::Invalid(format!(
                "arguments of {bytes} bytes exceed the limit of {ARGUMENTS_BYTES_MAX}: split the call"
            )));
        }
        if self.waiting.len() >= CONNECTION_REQUESTS_MAX || self.waiting_bytes + bytes > CONNECTION_BYTES_MAX
        {
            return Some(Error::Busy(format!(
                "{} requests of this connection, {} bytes, have no answer yet",
                self.waiting.len(),
                self.waiting_bytes
            )));
        }
        None
    }

    /// Only who has opened a snapshot closes it.
    fn admit_without_answer(&mut self, to: PartitionId, request: &ClientRequest) -> Admission {
        let ClientRequest::CloseSnapshot(at) = request else { return Admission::Ignore };
        match self.open.iter().position(|open| *open == (to, *at)) {
            Some(place) => {
                self.open.swap_remove(place);
                Admission::Take
            }
            None => Admission::Ignore,
        }
    }

    fn answered(&mut self, id: &RequestId) {
        if let Some(bytes) = self.waiting.remove(id) {
            self.waiting_bytes -= bytes;
        }
    }
}

impl ReplySink for ClientConnection {
    fn deliver(&self, replies: Vec<Reply>) {
        let mut state = lock(&self.state);
        let before = state.waiting.len();
        let mut opened: Vec<(PartitionId, Position)> = Vec::new();
        let mut resolved: Vec<u64> = Vec::new();
        for reply in &replies {
            state.answered(&reply.request);
            if !state.opening.is_empty()
                && let Some(to) = state.opening.remove(&reply.request)
            {
                resolved.push(reply.request.client.number);
                let at = reply.outcome.as_ref().map(|body| postcard::from_bytes::<Position>(body));
                opened.extend(at.into_iter().flatten().map(|at| (to, at)));
            }
        }
        self.clients.under_way.fetch_sub(before - state.waiting.len(), Ordering::SeqCst);
        if !state.gone {
            state.open.append(&mut opened);
            drop(state);
            return self.send(&replies);
        }
        resolved.retain(|number| !state.opening.keys().any(|id| id.client.number == *number));
        drop(state);
        opened.into_iter().for_each(|(to, at)| self.clients.close_snapshot(to, at));
        self.clients.release(&resolved, self);
    }

    fn end(&self) {
        let mut state = lock(&self.state);
        let waiting = std::mem::take(&mut state.waiting);
        state.waiting_bytes = 0;
        self.clients.under_way.fetch_sub(waiting.len(), Ordering::SeqCst);
        drop(state);
        let problem = "the process has stopped, and whether the request took effect is not known";
        let replies: Vec<Reply> = waiting
            .into_keys()
            .map(|request| Reply { request, outcome: Err(Error::Unavailable(problem.to_owned())) })
            .collect();
        self.send(&replies);
    }
}

fn answer(request: &ClientRequest, error: Error) -> Option<Reply> {
    request.id().map(|request| Reply { request, outcome: Err(error) })
}
