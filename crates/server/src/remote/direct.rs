//! A connection to one process, for tools: one question at a time, asked of this process and of no other.

use std::time::{Duration, Instant};

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, ClientRequest, RequestId};
use ordain_db::node::Status;
use ordain_db::position::PartitionId;

use crate::caller::random_number;
use crate::cluster_file::ProcessEntry;
use crate::transport::{ClientReceiver, ClientSender, client};
use crate::wire::{ClientPayload, ServerPayload, Standing};

/// How long a process may take to answer.
pub const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// See the [module](self).
pub struct Direct {
    sender: ClientSender,
    receiver: ClientReceiver,
    /// The client that it is; nobody else draws the number.
    number: u64,
    /// The number of the next question.
    next: u64,
}

impl Direct {
    /// Connects to a process of the cluster with this [fingerprint](crate::cluster_file::ClusterFile::fingerprint).
    ///
    /// # Errors
    /// When it cannot be reached, or refuses: says why.
    pub fn connect(entry: &ProcessEntry, fingerprint: u64) -> Result<Direct, String> {
        let (sender, receiver) =
            client::connect(&entry.address, fingerprint).map_err(|error| error.to_string())?;
        // The highest number is no client's.
        let number = random_number().map_err(|error| error.to_string())? >> 1;
        Ok(Direct { sender, receiver, number, next: 0 })
    }

    /// Asks how the process stands.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn standing(&mut self) -> Result<Standing, String> {
        let token = self.next();
        self.ask(&[ClientPayload::encode_standing(token)], |payload| match payload {
            ServerPayload::Standing { token: of, standing } if of == token => Some(standing),
            _ => None,
        })
    }

    /// Asks the process to go on with a cluster file that has more replicas; what it did, or why not.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn grow(&mut self, file: &str) -> Result<Result<String, String>, String> {
        let token = self.next();
        self.ask(&[ClientPayload::encode_grow(token, file)], |payload| match payload {
            ServerPayload::Grown { token: of, outcome } if of == token => Some(outcome),
            _ => None,
        })
    }

    /// Asks the process's node of a partition.
    ///
    /// # Errors
    /// When the process does not answer. What the node holds against the request is in the outcome.
    pub fn request(
        &mut self,
        to: PartitionId,
        make: impl FnOnce(RequestId) -> ClientRequest,
    ) -> Result<Outcome, String> {
        let client = ClientId { home: to, number: self.number };
        let id = RequestId { client, sequence: self.next() };
        let payloads =
            ClientPayload::encode_requests(to, &[make(id)]).map_err(|problem| problem.to_string())?;
        self.ask(&payloads, |payload| match payload {
            ServerPayload::Replies(replies) => {
                replies.into_iter().find(|reply| reply.request == id).map(|reply| reply.outcome)
            }
            _ => None,
        })
    }

    /// The status of the process's node of a partition.
    ///
    /// # Errors
    /// When it does not tell.
    pub fn status(&mut self, of: PartitionId, digest: bool) -> Result<Status, String> {
        let outcome = self.request(of, |request| ClientRequest::Status { request, digest })?;
        let body = outcome.map_err(|error| error.to_string())?;
        postcard::from_bytes(&body).map_err(|error| format!("the status of {of} cannot be read: {error}"))
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn ask<T>(
        &mut self,
        payloads: &[bytes::Bytes],
        mut answer: impl FnMut(ServerPayload) -> Option<T>,
    ) -> Result<T, String> {
        self.sender.send(payloads).map_err(|error| error.to_string())?;
        let deadline = Instant::now() + ANSWER_PATIENCE;
        loop {
            let patience = deadline.saturating_duration_since(Instant::now());
            let received = self.receiver.receive_within(patience).map_err(|error| error.to_string())?;
            let payload = received.ok_or_else(|| format!("no answer for {ANSWER_PATIENCE:?}"))?;
            let payload = ServerPayload::decode(&payload).map_err(|problem| problem.to_string())?;
            if let Some(answer) = answer(payload) {
                return Ok(answer);
            }
        }
    }
}

/// Whether an answer means that another node may take the request, or this one later.
pub fn says_elsewhere(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Busy(_))
}
