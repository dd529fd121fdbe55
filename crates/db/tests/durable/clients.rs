//! Clients that ask until they are answered.

use std::collections::BTreeMap;

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, Operation, Reply, Request, RequestId};
use ordain_db::position::{PartitionId, Position};

use crate::interpreted::operation::Program;
use crate::interpreted::{INTERPRET, arguments};
use crate::seeded::Seeded;

/// After how long without an answer a request is sent again, in microseconds: least and most.
const PATIENCE: (u64, u64) = (100_000, 500_000);

/// How long a client waits when it is told that the cluster is busy.
const BUSY: (u64, u64) = (1_000, 30_000);

/// A request, and what became of it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// When it was sent for the first time: times are counted by the world's steps.
    pub(crate) asked_at: u64,
    /// When its answer came, and the answer.
    pub(crate) answered: Option<(u64, Outcome)>,
    /// When it is sent again, in microseconds.
    again_at: u64,
}

struct Client {
    id: ClientId,
    operations: Vec<Operation>,
    next: u64,
    acknowledged: u64,
    /// Most requests without an answer.
    pipelined: usize,
    waiting: Vec<RequestId>,
    /// Not before this time it asks something new.
    rests_until: u64,
}

/// All clients of a world.
pub(crate) struct Clients {
    clients: Vec<Client>,
    pub(crate) asked: BTreeMap<RequestId, Asked>,
    /// Whether an answer may be lost with what it answered, and another one come later.
    pub(crate) may_change: bool,
}

impl Clients {
    /// Gives the programs to clients that are at home at all partitions.
    pub(crate) fn new(programs: Vec<Program>, partitions: u16, random: &mut Seeded) -> Clients {
        let operations = programs.iter().map(|program| match random.once_in(12) {
            true => Operation::OpenSnapshot,
            false => Operation::Call { procedure: INTERPRET, arguments: arguments(program).into() },
        });
        let operations: Vec<Operation> = operations.collect();
        let count = 1 + random.below(4) as u64;
        let client = |number: u64| Client {
            id: ClientId { home: PartitionId((number % u64::from(partitions)) as u16), number },
            operations: Vec::new(),
            next: 0,
            acknowledged: 0,
            pipelined: 1 + (number as usize) % 3,
            waiting: Vec::new(),
            rests_until: 0,
        };
        let mut clients: Vec<Client> = (0..count).map(client).collect();
        for (place, operation) in operations.into_iter().enumerate() {
            clients[place % count as usize].operations.push(operation);
        }
        Clients { clients, asked: BTreeMap::new(), may_change: false }
    }

    /// Whether all requests are answered, and there are no more.
    pub(crate) fn are_done(&self) -> bool {
        self.clients.iter().all(|client| client.waiting.is_empty() && client.operations.is_empty())
    }

    /// When a client next does something by itself.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let again = self.clients.iter().flat_map(|client| &client.waiting);
        let again = again.map(|id| self.asked[id].again_at);
        let new = self.clients.iter().filter(|client| client.may_ask()).map(|client| client.rests_until);
        again.chain(new).min()
    }

    /// What is sent at the time `now`.
    pub(crate) fn send(&mut self, now: u64, step: u64, random: &mut Seeded) -> Vec<Request> {
        let mut sent = Vec::new();
        for client in &mut self.clients {
            for id in &client.waiting {
                let asked = self.asked.get_mut(id).expect("it was asked");
                if asked.again_at <= now {
                    asked.again_at = now + random.between(PATIENCE.0, PATIENCE.1);
                    sent.push(asked.request.clone());
                }
            }
            if !client.may_ask() || client.rests_until > now {
                continue;
            }
            let Some(operation) = client.operations.pop() else { continue };
            let id = RequestId { client: client.id, sequence: client.next };
            client.next += 1;
            client.waiting.push(id);
            client.rests_until = now + random.between(0, 40_000);
            let request = Request { id, acknowledged: client.acknowledged, operation };
            sent.push(request.clone());
            let again_at = now + random.between(PATIENCE.0, PATIENCE.1);
            self.asked.insert(id, Asked { request, asked_at: step, answered: None, again_at });
        }
        sent
    }

    /// The snapshots that were opened, in the order in which that was asked for.
    pub(crate) fn snapshots(&self) -> Vec<Position> {
        let opened = self.asked.values().filter(|asked| asked.request.operation == Operation::OpenSnapshot);
        let answers = opened.filter_map(|asked| Some(asked.answered.as_ref()?.1.clone()));
        answers.map(|answer| postcard::from_bytes(&answer.unwrap()).unwrap()).collect()
    }

    /// Takes an answer. The same request has the same answer, however often it comes.
    pub(crate) fn hear(&mut self, reply: Reply, now: u64, step: u64, random: &mut Seeded) {
        let Reply { request: id, outcome } = reply;
        let asked = self.asked.get_mut(&id).expect("nobody is answered who has not asked");
        if matches!(outcome, Err(Error::Busy(_))) {
            asked.again_at = asked.again_at.min(now + random.between(BUSY.0, BUSY.1));
            return;
        }
        let client = self.clients.iter_mut().find(|client| client.id == id.client).expect("it has asked");
        if let Some((_, known)) = &asked.answered {
            // A copy of the request may come so late that the client has acknowledged the answer.
            let forgotten =
                outcome == Err(Error::Acknowledged(id.sequence)) && id.sequence < client.acknowledged;
            assert!(
                forgotten || self.may_change || outcome == *known,
                "{id:?} was answered {known:?} and then {outcome:?}"
            );
            return;
        }
        asked.answered = Some((step, outcome));
        client.waiting.retain(|waiting| *waiting != id);
        client.acknowledged = client.waiting.iter().map(|id| id.sequence).min().unwrap_or(client.next);
    }
}

impl Client {
    fn may_ask(&self) -> bool {
        self.waiting.len() < self.pipelined && !self.operations.is_empty()
    }
}
