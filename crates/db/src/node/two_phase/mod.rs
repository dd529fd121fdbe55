//! The node of a cluster that runs [`two_phase`](crate::engine::two_phase): no sequencer and no order in advance.
//!
//! | step | what |
//! |---|---|
//! | requests | are admitted once by their client's [`Sessions`], as everywhere, and begun by the engine |
//! | messages | between coordinators and participants go straight to the engine |
//! | the log | has what the engine wants remembered; what must wait for it is held back here, behind the step's records |
//! | a start | replays the log, and logs that a new life has begun, before anything is begun |
//! | snapshots | have a position above the clocks of all partitions, and wait for those that promised to commit before |
//!
//! It takes no checkpoints and has one replica: it is here to be compared with.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ordain_consensus::{LogEffects, Persist, ProposeError, ReplicatedLog};

use super::any::AnyNode;
use super::group::group_status;
use super::outgoing::grouped;
use super::telling::{digest_of, page_of};
use super::{DiskWrite, Event, NodeConfiguration, Outbox, Resumed, Status, encode_body};
use crate::engine::two_phase::message::{
    Ended, SnapshotMessage, Statement, TransactionId, TwoPhaseMessage, TwoPhaseRecord,
};
use crate::engine::two_phase::{CommitProtocol, TwoPhase};
use crate::error::{Error, Fatal, Outcome};
use crate::execution::snapshot_reads::SnapshotReads;
use crate::execution::{Context, Effects, Executed, Executions};
use crate::failpoint::Failpoints;
use crate::gateway::Counters;
use crate::limits::{Limits, STEP_GARBAGE_MAX};
use crate::message::{ClientRequest, Message, Operation, Ordered, Reply, Request, RequestId, Work};
use crate::position::{Epoch, NodeId, PartitionId, PartitionSet, Position};
use crate::procedure::{Catalog, ProcedureId};
use crate::sequencer::Sessions;
use crate::sequencer::sessions::Admission;
use crate::storage::{Statistics, Storage};

/// Bytes of records that are proposed to the log together, about.
const PROPOSAL_BYTES: usize = 1 << 20;

/// How far a snapshot's position is above the clock: partitions go on committing until all know of it.
const SNAPSHOT_AHEAD: u64 = 1 << 20;

/// More than what a step commits.
const COMMITS_IN_A_STEP: u64 = 1 << 16;

/// What waits until records are in the log.
#[derive(Debug, Default)]
struct Held {
    messages: Vec<(PartitionId, TwoPhaseMessage)>,
    /// Snapshots that can be read here, for the partitions of their clients.
    ready: Vec<(PartitionId, RequestId)>,
    replies: Vec<(NodeId, Reply)>,
    closed: Vec<(Epoch, Vec<(u32, Ordered)>)>,
    executed: Vec<Executed>,
}

impl Held {
    fn append(&mut self, mut other: Held) {
        self.messages.append(&mut other.messages);
        self.ready.append(&mut other.ready);
        self.replies.append(&mut other.replies);
        self.closed.append(&mut other.closed);
        self.executed.append(&mut other.executed);
    }
}

/// The log, and what lies between it and the engine.
struct Log {
    replicated: Box<dyn ReplicatedLog>,
    effects: LogEffects,
    /// Payloads that the log has had no room for.
    proposals: VecDeque<Bytes>,
    /// For each payload of this life that is not in the log yet: what waits for it.
    held: VecDeque<Held>,
}

impl Log {
    /// Gives the log what it has room for.
    fn propose(&mut self) -> Result<(), Fatal> {
        while let Some(payload) = self.proposals.front() {
            match self.replicated.propose(payload.clone()) {
                Ok(()) => drop(self.proposals.pop_front()),
                Err(ProposeError::Full { .. } | ProposeError::NotLeader { .. }) => return Ok(()),
                Err(error) => return Err(Fatal::Log(error.to_string())),
            }
        }
        Ok(())
    }
}

/// A snapshot of which not all partitions know yet.
#[derive(Debug)]
struct Asking {
    acknowledged: u64,
    awaited: PartitionSet,
    at: Position,
}

/// A snapshot that cannot be read here yet.
#[derive(Debug)]
struct Opening {
    request: RequestId,
    at: Position,
    /// Transactions that may yet get a position before it.
    undecided: Vec<TransactionId>,
}

/// See the [module](self).
pub struct TwoPhaseNode<F> {
    id: NodeId,
    me: PartitionId,
    partitions: u16,
    limits: Limits,
    catalog: Catalog,
    storage: Box<dyn Storage + Send>,
    sessions: Sessions,
    engine: TwoPhase<F>,
    effects: Effects,
    log: Option<Log>,
    /// Whether all that the log had before was replayed, and the new life is logged.
    started: bool,
    starting: bool,
    /// What other partitions said before all was replayed, in order: it would meet a state of the past.
    early: Vec<Event>,
    /// Requests for which there was no room.
    waiting: VecDeque<Statement>,
    asking: BTreeMap<RequestId, Asking>,
    /// Snapshots that are to be opened here, at the latest when the clock comes to them.
    announced: Vec<(RequestId, Position)>,
    opening: Vec<Opening>,
    /// Snapshots that can be read here.
    open: Vec<Position>,
    /// Snapshots of this partition's clients, with the partitions that are not ready.
    unready: BTreeMap<RequestId, (Position, PartitionSet, u64)>,
    /// What waits for the records of this step.
    held: Held,
    counters: Counters,
    messages: u64,
    message_bytes: u64,
    now: u64,
}

impl<F: Failpoints> TwoPhaseNode<F> {
    /// A node with the rows that are in `storage` and no history. Without a log it keeps nothing.
    pub fn new(
        protocol: CommitProtocol,
        configuration: &NodeConfiguration,
        catalog: Catalog,
        storage: Box<dyn Storage + Send>,
        log: Option<Box<dyn ReplicatedLog>>,
    ) -> TwoPhaseNode<F> {
        let NodeConfiguration { me: id, partitions, limits, .. } = *configuration;
        let mut effects = Effects::new(partitions);
        effects.executed = configuration.trace.then(Vec::new);
        let durable = log.is_some();
        let log = log.map(|replicated| Log {
            replicated,
            effects: LogEffects::default(),
            proposals: VecDeque::new(),
            held: VecDeque::new(),
        });
        TwoPhaseNode {
            id,
            me: id.partition,
            partitions,
            limits,
            catalog,
            storage,
            sessions: Sessions::new(limits),
            engine: TwoPhase::new(protocol, durable),
            effects,
            log,
            started: !durable,
            starting: false,
            early: Vec::new(),
            waiting: VecDeque::new(),
            asking: BTreeMap::new(),
            announced: Vec::new(),
            opening: Vec::new(),
            open: Vec::new(),
            unready: BTreeMap::new(),
            held: Held::default(),
            counters: Counters::default(),
            messages: 0,
            message_bytes: 0,
            now: 0,
        }
    }

    /// The engine, with the parts that it works with.
    fn engine(&mut self) -> (&mut TwoPhase<F>, Context<'_>) {
        let context = Context {
            me: self.me,
            partitions: self.partitions,
            catalog: &self.catalog,
            storage: &mut *self.storage,
            effects: &mut self.effects,
        };
        (&mut self.engine, context)
    }

    fn take_requests(&mut self, requests: Vec<ClientRequest>, outbox: &mut Outbox) {
        let mut forwards: Vec<(PartitionId, Request)> = Vec::new();
        for request in requests {
            match request {
                ClientRequest::Ordered(request) => {
                    let home = request.id.client.home;
                    if request.id.is_own() || home.0 >= self.partitions {
                        let problem =
                            format!("no client of this cluster is at home at {home} with this number");
                        let outcome = Err(Error::Invalid(problem));
                        outbox.replies.push(Reply { request: request.id, outcome });
                    } else if home == self.me {
                        self.submit(request, self.id, outbox);
                    } else {
                        forwards.push((home, request));
                    }
                }
                ClientRequest::Scan { request, at, range, rows } => {
                    let outcome = self
                        .check_open(at)
                        .map(|()| encode_body(&page_of(&mut *self.storage, &range, at, rows as usize)));
                    outbox.replies.push(Reply { request, outcome });
                }
                ClientRequest::Read { request, at, procedure, arguments } => {
                    let outcome = self.read_snapshot(at, procedure, &arguments);
                    outbox.replies.push(Reply { request, outcome });
                }
                ClientRequest::CloseSnapshot(at) => {
                    self.close_snapshot(at);
                    self.tell_others(&Message::CloseSnapshot(at), outbox);
                }
                ClientRequest::ChangeMembership { request, .. } => {
                    let problem = "the engine two-phase has one replica: choose another engine".to_owned();
                    outbox.replies.push(Reply { request, outcome: Err(Error::Invalid(problem)) });
                }
                ClientRequest::Status { request, digest } => {
                    let outcome = Ok(encode_body(&AnyNode::status(self, digest)));
                    outbox.replies.push(Reply { request, outcome });
                }
            }
        }
        for (home, requests) in grouped(forwards) {
            self.send(home, Message::Forward { entry: self.id, requests }, outbox);
        }
    }

    /// Takes a request of a client that is at home here.
    fn submit(&mut self, request: Request, entry: NodeId, outbox: &mut Outbox) {
        let Request { id, acknowledged, operation } = request;
        if !self.started {
            return self.refuse(id, entry, Error::Busy(format!("{} replays its log", self.me)));
        }
        match self.sessions.admit::<F>(id, acknowledged, entry) {
            Admission::InFlight => {}
            Admission::Again(outcome) => self.held.replies.push((entry, Reply { request: id, outcome })),
            Admission::Refuse(error) => self.refuse(id, entry, error),
            Admission::Enter if self.waiting.len() >= self.limits.sequencer_waiting => {
                self.sessions.withdraw(id);
                self.refuse(id, entry, Error::Busy(format!("too many requests wait at {}", self.me)));
            }
            Admission::Enter => match operation {
                Operation::Call { procedure, arguments } => self.waiting.push_back(Statement {
                    request: id,
                    acknowledged,
                    procedure,
                    arguments,
                    footprint: None,
                }),
                Operation::OpenSnapshot => self.begin_snapshot(id, acknowledged, entry, outbox),
                Operation::Checkpoint => {
                    let problem =
                        "the engine two-phase takes no checkpoints: choose another engine".to_owned();
                    self.answer(id, None, Err(Error::Invalid(problem)));
                }
            },
        }
    }

    fn refuse(&mut self, request: RequestId, entry: NodeId, error: Error) {
        self.counters.refused += 1;
        self.held.replies.push((entry, Reply { request, outcome: Err(error) }));
    }

    /// Records the answer to a request, and gives it when it is durable.
    fn answer(&mut self, request: RequestId, at: Option<Position>, outcome: Outcome) {
        if let Some(entry) = self.sessions.answer(request, at, &outcome) {
            let reply = Reply { request, outcome };
            self.held.replies.extend(entry.map(|entry| (entry, reply)));
        }
    }

    fn take_message(&mut self, from: NodeId, message: Message, outbox: &mut Outbox) -> Result<(), Fatal> {
        match message {
            Message::TwoPhaseSnapshot(message) => self.take_snapshot_message(from.partition, message, outbox),
            Message::TwoPhase(message) => {
                self.open_announced(message.clock());
                let (engine, mut context) = self.engine();
                engine.receive(from.partition, message, &mut context)?;
            }
            Message::Forward { entry, requests } => {
                requests.into_iter().for_each(|request| self.submit(request, entry, outbox));
            }
            Message::Replies(replies) => outbox.replies.extend(replies),
            Message::CloseSnapshot(at) => self.close_snapshot(at),
            Message::Consensus(message) => {
                if let Some(log) = &mut self.log {
                    let taken = log.replicated.receive(from.replica, &message);
                    taken.map_err(|error| Fatal::Log(error.to_string()))?;
                }
            }
            _ => return Err(Fatal::OtherEngine(from)),
        }
        Ok(())
    }

    fn take_snapshot_message(&mut self, from: PartitionId, message: SnapshotMessage, outbox: &mut Outbox) {
        match message {
            SnapshotMessage::Announce { request, at } => {
                let clock = self.engine.clock();
                let answer = match at.epoch.0 > clock + COMMITS_IN_A_STEP {
                    true => SnapshotMessage::Known { request },
                    false => SnapshotMessage::Late { request, clock },
                };
                if matches!(answer, SnapshotMessage::Known { .. }) {
                    self.announced.push((request, at));
                }
                self.send(from, Message::TwoPhaseSnapshot(answer), outbox);
            }
            SnapshotMessage::Known { request } => self.take_known(from, request, outbox),
            SnapshotMessage::Late { request, clock } => {
                if let Some(asking) = self.asking.remove(&request) {
                    self.tell_others(&Message::CloseSnapshot(asking.at), outbox);
                    self.close_snapshot(asking.at);
                    self.engine.pass(clock);
                    self.announce(request, asking.acknowledged, outbox);
                }
            }
            SnapshotMessage::Open { request } => {
                let announced = self.announced.iter().find(|(other, _)| *other == request);
                if let Some((_, at)) = announced.copied() {
                    self.open_announced(at.epoch.0);
                }
            }
            SnapshotMessage::Ready { request } => self.snapshot_ready(from, request),
        }
    }

    fn tell_others(&mut self, message: &Message, outbox: &mut Outbox) {
        for partition in (0..self.partitions).map(PartitionId) {
            if partition != self.me {
                self.send(partition, message.clone(), outbox);
            }
        }
    }

    /// Begins to open a snapshot for a client that is at home here.
    fn begin_snapshot(&mut self, request: RequestId, acknowledged: u64, entry: NodeId, outbox: &mut Outbox) {
        if self.open.len() + self.opening.len() + self.asking.len() >= self.limits.snapshots {
            self.sessions.withdraw(request);
            let busy = format!("{} snapshots are open at {}: close some", self.limits.snapshots, self.me);
            return self.refuse(request, entry, Error::Busy(busy));
        }
        self.announce(request, acknowledged, outbox);
    }

    /// A snapshot gets a position above all that happens until everybody has heard of it.
    fn announce(&mut self, request: RequestId, acknowledged: u64, outbox: &mut Outbox) {
        let clock = self.engine.clock() + SNAPSHOT_AHEAD;
        // No other snapshot of this partition has the same.
        let last =
            self.announced.iter().map(|(_, at)| at).filter(|at| at.origin == self.me).map(|at| at.epoch.0);
        let clock = last.max().map_or(clock, |last| clock.max(last + 1));
        let at = Position { epoch: Epoch(clock), origin: self.me, index: 0 };
        let mut awaited = PartitionSet::all(self.partitions);
        awaited.remove(self.me);
        self.announced.push((request, at));
        self.asking.insert(request, Asking { acknowledged, awaited, at });
        self.tell_others(&Message::TwoPhaseSnapshot(SnapshotMessage::Announce { request, at }), outbox);
        self.take_known(self.me, request, outbox);
    }

    /// A partition knows of a snapshot. When all do, it is opened.
    fn take_known(&mut self, from: PartitionId, request: RequestId, outbox: &mut Outbox) {
        let Some(asking) = self.asking.get_mut(&request) else { return };
        asking.awaited.remove(from);
        if !asking.awaited.is_empty() {
            return;
        }
        let Some(Asking { acknowledged, at, .. }) = self.asking.remove(&request) else { return };
        self.unready.insert(request, (at, PartitionSet::all(self.partitions), acknowledged));
        self.tell_others(&Message::TwoPhaseSnapshot(SnapshotMessage::Open { request }), outbox);
        self.open_announced(at.epoch.0);
    }

    /// Opens the snapshots that are announced up to a clock which is about to be passed: later commits have later positions.
    fn open_announced(&mut self, clock: u64) {
        self.announced.sort_unstable_by_key(|(_, at)| *at);
        while let Some((request, at)) = self.announced.first().copied().filter(|(_, at)| at.epoch.0 <= clock)
        {
            self.announced.remove(0);
            self.engine.open_snapshot(at, None);
            self.storage.open_snapshot(at);
            self.opening.push(Opening { request, at, undecided: self.engine.undecided() });
        }
    }

    /// Tells of snapshots that can be read here: all that had promised to commit before has done so.
    fn open_snapshots(&mut self) {
        let engine = &self.engine;
        let mut ready = Vec::new();
        self.opening.retain_mut(|opening| {
            opening.undecided.retain(|id| engine.is_live(*id));
            if opening.undecided.is_empty() {
                ready.push((opening.request, opening.at));
            }
            !opening.undecided.is_empty()
        });
        for (request, at) in ready {
            self.open.push(at);
            if at.origin == self.me {
                self.snapshot_ready(self.me, request);
            } else {
                self.held.ready.push((at.origin, request));
            }
        }
    }

    fn snapshot_ready(&mut self, from: PartitionId, request: RequestId) {
        let Some((at, awaited, acknowledged)) = self.unready.get_mut(&request) else { return };
        let (at, acknowledged) = (*at, *acknowledged);
        awaited.remove(from);
        if awaited.is_empty() {
            self.unready.remove(&request);
            self.engine.open_snapshot(at, Some((request, acknowledged)));
            self.note_snapshot(at, request, acknowledged);
        }
    }

    /// A snapshot can be read, or could be in an earlier life: its request is answered.
    fn note_snapshot(&mut self, at: Position, request: RequestId, acknowledged: u64) {
        self.sessions.ordered(request, acknowledged, at);
        if self.effects.executed.is_some() {
            let ordered = Ordered { request, acknowledged, work: Work::OpenSnapshot };
            self.held.closed.push((at.epoch, vec![(0, ordered)]));
        }
        self.answer(request, Some(at), Ok(encode_body(&at)));
    }

    fn close_snapshot(&mut self, at: Position) {
        let (opening, open) = (self.opening.len(), self.open.len());
        self.announced.retain(|(_, announced)| *announced != at);
        self.opening.retain(|opening| opening.at != at);
        self.open.retain(|open| *open != at);
        if (opening, open) != (self.opening.len(), self.open.len()) {
            self.storage.close_snapshot(at);
        }
    }

    fn check_open(&self, at: Position) -> Result<(), Error> {
        match self.open.contains(&at) {
            true => Ok(()),
            false => Err(Error::Invalid(format!("there is no snapshot open at {at}: open one"))),
        }
    }

    fn read_snapshot(
        &mut self,
        at: Position,
        procedure: ProcedureId,
        arguments: &[u8],
    ) -> Result<Bytes, Error> {
        self.check_open(at)?;
        let (me, partitions, schema) = (self.me, self.partitions, &self.catalog.schema);
        let reads = SnapshotReads { me, partitions, schema, storage: &mut *self.storage, at };
        reads.run(&self.catalog, procedure, arguments)
    }

    /// A partition may have forgotten the snapshots that are being opened: they get other positions. And this one forgets those of
    /// that partition.
    fn reset_snapshots(&mut self, peer: PartitionId, outbox: &mut Outbox) {
        let of_peer: Vec<Position> =
            self.announced.iter().map(|(_, at)| *at).filter(|at| at.origin == peer).collect();
        of_peer.into_iter().for_each(|at| self.close_snapshot(at));
        let asking = std::mem::take(&mut self.asking).into_iter();
        let asking = asking.map(|(request, Asking { at, acknowledged, .. })| (request, at, acknowledged));
        let unready = std::mem::take(&mut self.unready).into_iter();
        let unready = unready.map(|(request, (at, _, acknowledged))| (request, at, acknowledged));
        let again: Vec<(RequestId, Position, u64)> = asking.chain(unready).collect();
        for (request, at, acknowledged) in again {
            self.close_snapshot(at);
            self.tell_others(&Message::CloseSnapshot(at), outbox);
            self.announce(request, acknowledged, outbox);
        }
    }

    /// Lets the log move on: what it had before is replayed, and what waited for records goes out.
    fn advance_log(&mut self, outbox: &mut Outbox) -> Result<(), Fatal> {
        loop {
            let Some(log) = &mut self.log else { return Ok(()) };
            log.propose()?;
            log.replicated.advance(&mut log.effects);
            if let Some(Persist { number, records, must_sync, index_max }) = log.effects.persist.take() {
                outbox.disk.push(DiskWrite::Append { number, records, index_max, must_sync });
            }
            let (committed, role) = (std::mem::take(&mut log.effects.committed), log.replicated.role());
            let is_rest = committed.is_empty();
            for entry in committed {
                self.take_committed(&entry.payload, outbox)?;
            }
            if role.may_propose() && !self.started && !self.starting {
                self.starting = true;
                self.engine.start();
            }
            if is_rest {
                return Ok(());
            }
        }
    }

    /// Records are in the log: those of an earlier life are replayed, and what waited for those of this one goes out.
    fn take_committed(&mut self, payload: &[u8], outbox: &mut Outbox) -> Result<(), Fatal> {
        if !self.started && !self.starting {
            return self.replay(payload, outbox);
        }
        // The first thing that is logged in a life is that it has begun.
        (self.started, self.starting) = (true, false);
        let held = self.log.as_mut().and_then(|log| log.held.pop_front());
        self.release(held.unwrap_or_default(), outbox);
        Ok(())
    }

    /// Does again what a payload of an earlier life says.
    fn replay(&mut self, payload: &[u8], outbox: &mut Outbox) -> Result<(), Fatal> {
        let records: Vec<TwoPhaseRecord> =
            postcard::from_bytes(payload).map_err(|error| Fatal::Log(error.to_string()))?;
        for record in records {
            if let TwoPhaseRecord::Snapshot { at, request: Some((request, acknowledged)) } = &record {
                self.note_snapshot(*at, *request, *acknowledged);
            }
            let (engine, mut context) = self.engine();
            engine.replay(record, &mut context)?;
        }
        self.take_ended();
        let mut held = std::mem::take(&mut self.held);
        // It was answered in an earlier life, or its client asks again.
        held.replies.clear();
        held.executed.extend(self.effects.executed.as_mut().map(std::mem::take).unwrap_or_default());
        self.release(held, outbox);
        Ok(())
    }

    /// Notes requests that have ended.
    fn take_ended(&mut self) {
        for ended in std::mem::take(&mut self.engine.effects.ended) {
            let Ended { request, acknowledged, procedure, arguments, reconnoitred, position, outcome } =
                ended;
            match &outcome {
                Ok(_) => self.counters.committed += 1,
                Err(Error::Aborted(_)) => self.counters.aborted += 1,
                Err(_) => self.counters.failed += 1,
            }
            self.sessions.ordered(request, acknowledged, position);
            if self.effects.executed.is_some() {
                let work = Work::Call { procedure, arguments, reconnoitred };
                self.held.closed.push((position.epoch, vec![(0, Ordered { request, acknowledged, work })]));
            }
            self.answer(request, Some(position), outcome);
        }
        for (statement, error) in std::mem::take(&mut self.engine.effects.refused) {
            self.counters.failed += 1;
            self.answer(statement.request, None, Err(error));
        }
    }

    /// Turns what the engine wants into proposals to the log, and into what waits for them.
    fn flush(&mut self, outbox: &mut Outbox) {
        self.take_ended();
        self.open_snapshots();
        for (to, message, waits) in std::mem::take(&mut self.engine.effects.messages) {
            match waits {
                true => self.held.messages.push((to, message)),
                false => self.send(to, Message::TwoPhase(message), outbox),
            }
        }
        if let Some(executed) = &mut self.effects.executed {
            self.held.executed.append(executed);
        }
        let records = std::mem::take(&mut self.engine.effects.records);
        let held = std::mem::take(&mut self.held);
        let Some(log) = &mut self.log else {
            return self.release(held, outbox);
        };
        let payloads = payloads_of(&records);
        if payloads.is_empty() {
            match log.held.back_mut() {
                Some(last) => last.append(held),
                None => self.release(held, outbox),
            }
            return;
        }
        log.held.extend((1..payloads.len()).map(|_| Held::default()));
        log.held.push_back(held);
        log.proposals.append(&mut payloads.into());
    }

    /// What has waited long enough goes out.
    fn release(&mut self, held: Held, outbox: &mut Outbox) {
        let Held { messages, ready, replies, mut closed, mut executed } = held;
        for (to, message) in messages {
            self.send(to, Message::TwoPhase(message), outbox);
        }
        for (to, request) in ready {
            self.send(to, Message::TwoPhaseSnapshot(SnapshotMessage::Ready { request }), outbox);
        }
        outbox.trace.closed.append(&mut closed);
        outbox.trace.executed.append(&mut executed);
        let (own, remote): (Vec<_>, Vec<_>) = replies.into_iter().partition(|(entry, _)| *entry == self.id);
        outbox.replies.extend(own.into_iter().map(|(_, reply)| reply));
        for (entry, replies) in grouped(remote) {
            self.send(entry.partition, Message::Replies(replies), outbox);
        }
    }

    fn send(&mut self, to: PartitionId, message: Message, outbox: &mut Outbox) {
        self.messages += 1;
        self.message_bytes += message.payload_bytes() as u64;
        outbox.sends.push((NodeId { partition: to, replica: self.id.replica }, message));
    }

    /// Begins what waits, as far as there is room; whether there is more to do at once.
    fn begin(&mut self) -> bool {
        let mut left = self.limits.step_transactions;
        while self.started && left > 0 && self.engine.live() < self.limits.transactions_live {
            let Some(statement) = self.waiting.pop_front() else { break };
            left -= 1;
            self.effects.executions.delivered += 1;
            let (engine, mut context) = self.engine();
            engine.begin(statement, &mut context);
            engine.run_ready(&mut context);
        }
        !self.waiting.is_empty() && left == 0
    }
}

/// Records as payloads, each of about [`PROPOSAL_BYTES`] at most.
fn payloads_of(records: &[TwoPhaseRecord]) -> Vec<Bytes> {
    let mut payloads = Vec::new();
    let mut first = 0;
    let mut bytes = 0;
    for (index, record) in records.iter().enumerate() {
        bytes += record.payload_bytes();
        if bytes >= PROPOSAL_BYTES || index + 1 == records.len() {
            payloads.push(encode_body(&records[first..=index].to_vec()));
            (first, bytes) = (index + 1, 0);
        }
    }
    payloads
}

impl<F: Failpoints> AnyNode for TwoPhaseNode<F> {
    fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Fatal> {
        self.now = now;
        self.open_announced(self.engine.clock() + COMMITS_IN_A_STEP);
        let (engine, mut context) = self.engine();
        engine.tick(now, &mut context);
        let mut early = Vec::new();
        if self.started {
            early = std::mem::take(&mut self.early);
        }
        for event in early.into_iter().chain(events.drain(..)) {
            match event {
                event @ (Event::Peer { .. } | Event::LinkReset(_)) if !self.started => self.early.push(event),
                Event::Requests(requests) => self.take_requests(requests, outbox),
                Event::Peer { from, message } => self.take_message(from, message, outbox)?,
                Event::LinkReset(peer) => {
                    self.reset_snapshots(peer.partition, outbox);
                    let (engine, mut context) = self.engine();
                    engine.reset(peer.partition, &mut context);
                }
                Event::Persisted(number) => {
                    if let Some(log) = &mut self.log {
                        log.replicated.persisted(number);
                    }
                }
                // There is one replica, and there are no checkpoints.
                Event::HandOverLeadership
                | Event::Replicas(_)
                | Event::CheckpointChunkWritten
                | Event::CheckpointWritten(_)
                | Event::CheckpointRead { .. }
                | Event::CheckpointFailed(_) => {}
            }
        }
        let (engine, mut context) = self.engine();
        engine.run_ready(&mut context);
        let more = self.begin();
        if let Some(log) = &mut self.log {
            log.replicated.tick(now);
        }
        self.flush(outbox);
        self.advance_log(outbox)?;
        self.flush(outbox);
        self.advance_log(outbox)?;
        let garbage_left = self.storage.collect_garbage(STEP_GARBAGE_MAX) >= STEP_GARBAGE_MAX;
        let proposes = self
            .log
            .as_ref()
            .is_some_and(|log| !log.proposals.is_empty() && log.replicated.role().may_propose());
        Ok(more || garbage_left || proposes || (self.started && !self.early.is_empty()))
    }

    fn resume(&mut self, _: Resumed) {
        unreachable!("the engine two-phase writes no checkpoints, so there is none to go on from");
    }

    fn know_checkpoints(&mut self, _: &[(Epoch, u64)]) {}

    fn deadline(&self) -> Option<u64> {
        let log = self.log.as_ref().and_then(|log| log.replicated.deadline());
        [self.engine.deadline(), log].into_iter().flatten().min()
    }

    fn is_idle(&self) -> bool {
        let logged = self.log.as_ref().is_none_or(|log| log.held.is_empty());
        self.started
            && logged
            && self.waiting.is_empty()
            && self.engine.live() == 0
            && self.asking.is_empty()
            && self.opening.is_empty()
            && self.unready.is_empty()
    }

    fn status(&self, digest: bool) -> Status {
        let Statistics { rows, garbage, .. } = self.storage.statistics();
        let log = self.log.as_ref().map(|log| &*log.replicated);
        Status {
            counters: self.counters,
            delivered: Epoch(self.engine.clock()),
            waiting: self.waiting.len() as u64,
            live: self.engine.live() as u64,
            messages: self.messages,
            message_bytes: self.message_bytes,
            rows: rows as u64,
            garbage: garbage as u64,
            leads: self.started,
            stable: Epoch(0),
            checkpoint_problem: None,
            frozen: false,
            group: log.map(|log| group_status(log, self.id.replica)),
            digest: digest.then(|| digest_of(&*self.storage, &self.catalog.schema, self.me).0),
        }
    }

    fn executions(&self) -> Executions {
        self.effects.executions
    }

    fn describe(&self) -> String {
        let mut out = String::new();
        self.engine.describe(&mut out);
        out
    }
}
