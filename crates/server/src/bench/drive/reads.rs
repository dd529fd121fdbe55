//! Calls that read snapshots.
//!
//! A snapshot costs every partition two places in the order, so calls that begin together share one: those that begin while one
//! is being opened wait for the next. So each call sees all that was answered before it began.

use std::collections::BTreeMap;

use ordain_db::error::{Error, Outcome};
use ordain_db::limits::SESSION_WINDOW_MAX;
use ordain_db::message::{ClientRequest, Operation, RequestId};
use ordain_db::position::Position;
use ordain_workload::Call;

use super::{Asked, Driver};

/// Numbers of reads are apart from those of ordered requests, which a session counts without gaps.
const FIRST_READ: u64 = 1 << 40;

/// The home whose session opens the snapshots.
const OPENER: usize = 0;

/// A call.
pub(super) struct Read {
    pub(super) home: usize,
    pub(super) call: Call,
    pub(super) began: u64,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Reads {
    /// Calls that have no snapshot yet.
    waiting: Vec<Read>,
    /// Those whose snapshot is being opened; empty if none is.
    opening: Vec<Read>,
    /// Those whose snapshot is open, and that were not sent.
    opened: Option<(Position, Vec<Read>)>,
    /// Those that were sent, with their snapshots.
    sent: BTreeMap<RequestId, (Position, Read)>,
    /// How many calls read each snapshot that is open.
    readers: BTreeMap<Position, usize>,
    /// Snapshots that nobody reads any more.
    closed: Vec<Position>,
    made: u64,
}

impl Reads {
    /// Lets a call wait for a snapshot.
    pub(super) fn wait(&mut self, home: usize, call: Call, began: u64) {
        self.waiting.push(Read { home, call, began });
    }

    /// The call that a reply belongs to, if it is one of these.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Read> {
        let (at, read) = self.sent.remove(&request)?;
        if let Some(readers) = self.readers.get_mut(&at) {
            *readers -= 1;
            if *readers == 0 {
                self.readers.remove(&at);
                self.closed.push(at);
            }
        }
        Some(read)
    }
}

impl Driver<'_> {
    /// Opens a snapshot for the calls that wait for one, unless one is being opened.
    pub(super) fn open_snapshot(&mut self) -> Result<(), String> {
        let full = self.homes[OPENER].window.len() >= SESSION_WINDOW_MAX as usize;
        if self.reads.waiting.is_empty() || !self.reads.opening.is_empty() || full {
            return Ok(());
        }
        self.reads.opening = std::mem::take(&mut self.reads.waiting);
        let now = self.now();
        let request = self.ordered(OPENER, Operation::OpenSnapshot, Asked::OpenSnapshot, now);
        self.push(OPENER, vec![request])
    }

    /// Takes the answer to the opening of a snapshot.
    pub(super) fn opened(&mut self, outcome: Outcome, now: u64) {
        let reads = std::mem::take(&mut self.reads.opening);
        let position = outcome.and_then(|position| {
            postcard::from_bytes(&position)
                .map_err(|error| Error::Unavailable(format!("malformed reply: {error}")))
        });
        match position {
            Ok(at) => self.reads.opened = Some((at, reads)),
            // Refused before it was ordered: another one is opened.
            Err(Error::Busy(_)) => self.reads.waiting.extend(reads),
            Err(error) => {
                for read in reads {
                    self.end(read.home, read.call.procedure, read.began, Err(error.clone()), now);
                }
            }
        }
    }

    /// Sends the calls whose snapshot is open, closes those that nobody reads, and opens the next.
    pub(super) fn send_reads(&mut self) -> Result<(), String> {
        if let Some((at, reads)) = self.reads.opened.take() {
            self.reads.readers.insert(at, reads.len());
            let partitions = self.port.partitions();
            let mut requests: BTreeMap<_, Vec<ClientRequest>> = BTreeMap::new();
            for read in reads {
                let sequence = FIRST_READ + self.reads.made;
                self.reads.made += 1;
                let request = RequestId { client: self.homes[read.home].client, sequence };
                let (procedure, arguments) = (read.call.procedure, read.call.arguments.clone());
                let to = read.call.home_partition(partitions);
                let asked = ClientRequest::Read { request, at, procedure, arguments };
                requests.entry(to).or_default().push(asked);
                self.reads.sent.insert(request, (at, read));
            }
            for (to, requests) in requests {
                self.push_to(to, requests)?;
            }
        }
        let closed = std::mem::take(&mut self.reads.closed);
        if !closed.is_empty() {
            self.push(OPENER, closed.into_iter().map(ClientRequest::CloseSnapshot).collect())?;
        }
        self.open_snapshot()
    }
}
