//! The connection to one process of a cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use bytes::Bytes;
use ordain_db::error::Error;
use ordain_db::hash::FastSet;
use ordain_db::message::{ClientRequest, Reply, RequestId};
use ordain_db::position::PartitionId;

use crate::cluster_file::ProcessEntry;
use crate::inbox::NotTaken;
use crate::transport::{ClientError, ClientReceiver, ClientSender};
use crate::wire::{ClientPayload, ServerPayload, Usage};

/// Most requests that wait in this process to be written to one connection.
pub(super) const QUEUE_REQUESTS_MAX: usize = 64 * 1024;

/// See the [module](self).
pub(super) struct RemoteProcess {
    pub(super) name: String,
    pub(super) address: String,
    state: Mutex<State>,
    /// Held by whoever writes. Those who find it taken leave their requests in the queue: they go out together. `None` while
    /// there is no connection.
    sender: Mutex<Option<ClientSender>>,
    next_token: AtomicU64,
}

struct State {
    /// Requests that have not been written, with their partition.
    queue: Vec<(PartitionId, Vec<ClientRequest>)>,
    queued: usize,
    /// Requests without an answer.
    waiting: FastSet<RequestId>,
    /// Who waits to be told the usage.
    usage: BTreeMap<u64, SyncSender<Usage>>,
    /// Why there is no connection.
    lost: Option<String>,
}

/// The next payload, or why there is none.
pub(super) fn receive(receiver: &mut ClientReceiver) -> Result<Bytes, String> {
    receiver.receive().map_err(|error| match error {
        ClientError::Refused { reason, .. } | ClientError::Disconnected { reason, .. } => reason,
        error => error.to_string(),
    })
}

impl RemoteProcess {
    pub(super) fn new(entry: &ProcessEntry) -> RemoteProcess {
        let state = State {
            queue: Vec::new(),
            queued: 0,
            waiting: FastSet::default(),
            usage: BTreeMap::new(),
            lost: Some("there is no connection yet".to_owned()),
        };
        RemoteProcess {
            name: entry.name.clone(),
            address: entry.address.clone(),
            state: Mutex::new(state),
            sender: Mutex::new(None),
            next_token: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> MutexGuard<'_, Option<ClientSender>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a connection.
    pub(super) fn connected(&self, sender: ClientSender) {
        *self.sender() = Some(sender);
        self.lock().lost = None;
    }

    /// Why there is no connection, if there is none.
    pub(super) fn lost(&self) -> Option<String> {
        self.lock().lost.clone()
    }

    pub(super) fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        {
            let mut state = self.lock();
            if state.lost.is_some() {
                return Err(NotTaken::Stopped(requests));
            }
            if state.queued + requests.len() > QUEUE_REQUESTS_MAX {
                return Err(NotTaken::Full(requests));
            }
            state.waiting.extend(requests.iter().filter_map(ClientRequest::id));
            state.queued += requests.len();
            state.queue.push((to, requests));
        }
        self.write_queue();
        Ok(())
    }

    /// Writes what is queued, unless another thread is about to.
    fn write_queue(&self) {
        loop {
            let mut sender = match self.sender.try_lock() {
                Ok(sender) => sender,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // Whoever writes looks at the queue once more after letting go.
                Err(TryLockError::WouldBlock) => return,
            };
            // Without a connection there is no queue either, but for a moment.
            let Some(connection) = sender.as_mut() else { return };
            loop {
                let queue = {
                    let mut state = self.lock();
                    state.queued = 0;
                    std::mem::take(&mut state.queue)
                };
                if queue.is_empty() {
                    break;
                }
                write(connection, queue);
            }
            drop(sender);
            if self.lock().queue.is_empty() {
                return;
            }
        }
    }

    /// Takes a payload from the process; the replies in it.
    pub(super) fn take(&self, payload: &[u8]) -> Result<Option<Vec<Reply>>, String> {
        match ServerPayload::decode(payload).map_err(|problem| problem.to_string())? {
            ServerPayload::Replies(replies) => {
                let mut state = self.lock();
                for reply in &replies {
                    state.waiting.remove(&reply.request);
                }
                Ok(Some(replies))
            }
            ServerPayload::Usage { token, usage } => {
                if let Some(asked) = self.lock().usage.remove(&token) {
                    // Who asked may have given up.
                    let _ = asked.try_send(usage);
                }
                Ok(None)
            }
            // Only tools ask for these, over connections of their own.
            ServerPayload::Standing { .. } | ServerPayload::Grown { .. } => Ok(None),
        }
    }

    /// The connection is gone; names the requests that have no answer.
    pub(super) fn lose(&self, reason: &str) -> FastSet<RequestId> {
        let mut state = self.lock();
        state.lost.get_or_insert_with(|| reason.to_owned());
        state.usage.clear();
        state.queue.clear();
        state.queued = 0;
        std::mem::take(&mut state.waiting)
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        if let Some(sender) = &*self.sender() {
            sender.close();
        }
    }

    pub(super) fn ask_usage(&self) -> Result<mpsc::Receiver<Usage>, String> {
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let (asked, answer) = mpsc::sync_channel(1);
        let lost = |reason: &str| format!("the connection to process {} is lost: {reason}", self.name);
        {
            let mut state = self.lock();
            if let Some(reason) = &state.lost {
                return Err(lost(reason));
            }
            state.usage.insert(token, asked);
        }
        let mut sender = self.sender();
        let connection = sender.as_mut().ok_or_else(|| lost("there is none"))?;
        connection.send(&[ClientPayload::encode_usage(token)]).map_err(|error| error.to_string())?;
        drop(sender);
        // What others have left in the queue meanwhile.
        self.write_queue();
        Ok(answer)
    }
}

/// Writes requests. An error ends the connection: the thread that receives notices, and may know better why.
fn write(connection: &mut ClientSender, queue: Vec<(PartitionId, Vec<ClientRequest>)>) {
    let mut payloads = Vec::new();
    for (to, requests) in joined(queue) {
        match ClientPayload::encode_requests(to, &requests) {
            Ok(encoded) => payloads.extend(encoded),
            // The limit of arguments is far below that of a frame: nothing can be too long.
            Err(problem) => {
                tracing::error!(%problem, error = %Error::Invalid(problem.to_string()), "requests were not sent")
            }
        }
    }
    if connection.send(&payloads).is_err() {
        connection.close();
    }
}

/// Puts requests for one partition together, where their order among those for others does not matter.
fn joined(queue: Vec<(PartitionId, Vec<ClientRequest>)>) -> Vec<(PartitionId, Vec<ClientRequest>)> {
    let mut groups: Vec<(PartitionId, Vec<ClientRequest>)> = Vec::new();
    for (to, requests) in queue {
        match groups.iter_mut().find(|(other, _)| *other == to) {
            Some((_, group)) => group.extend(requests),
            None => groups.push((to, requests)),
        }
    }
    groups
}
