//! The node of a cluster that runs [`two_phase`](crate::engine::two_phase): no sequencer and no order in advance.
//!
//! | step | what |
//! |---|---|
//! | requests | are admitted once by their client's [`Sessions`], as everywhere, and begun by the engine |
//! | messages | between coordinators and participants go straight to the engine |
//! | the log | has what the engine wants remembered; what must wait for it is held back here, behind the step's records |
//! | a start | replays the log, and logs that a new life has begun, before anything is begun |
//! | snapshots | have a position above the clocks of all partitions, and wait for those that promised to commit before |
//! | pace | a step executes no more than it should, as everywhere ([`Pace`]) |
//! | throttling | a node that lags sheds calls, if that is wanted ([`throttling`]) |
//!
//! It takes no checkpoints and has one replica: it is here to be compared with.

mod log;
mod snapshots;
mod throttling;

use std::collections::VecDeque;

use ordain_consensus::{LogEffects, ReplicatedLog};
use smallvec::SmallVec;

use super::any::AnyNode;
use super::details::{Details, details_of};
use super::execution::PREFETCH_CALLS;
use super::group::group_status;
use super::outgoing::grouped;
use super::pace::Pace;
use super::telling::{digest_of, page_of};
use super::{Event, NodeConfiguration, Outbox, Resumed, Status, encode_body};
use crate::data::Key;
use crate::engine::two_phase::message::{Ended, Statement};
use crate::engine::two_phase::{CommitProtocol, Placed, TwoPhase, TwoPhaseCounters};
use crate::error::{Error, Fatal, Outcome};
use crate::execution::{Context, Effects, Executions};
use crate::failpoint::Failpoints;
use crate::gateway::{Counters, not_leading};
use crate::hash::key_hash;
use crate::limits::{DETAILS_TRANSACTIONS_MAX, Limits, STEP_GARBAGE_MAX};
use crate::message::{ClientRequest, Message, Operation, Ordered, Reply, Request, RequestId, Work};
use crate::position::{Entry, Epoch, NodeId, PartitionId, Position};
use crate::procedure::Catalog;
use crate::sequencer::Sessions;
use crate::sequencer::sessions::Admission;
use crate::storage::{Statistics, Storage};

use log::{Held, Log};
use snapshots::Snapshots;
use throttling::Throttling;

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
    snapshots: Snapshots,
    throttling: Throttling,
    pace: Pace,
    /// What waits for the records of this step.
    held: Held,
    /// A buffer: the rows of calls that are about to begin.
    hashes: Vec<u64>,
    counters: Counters,
    messages: u64,
    message_bytes: u64,
    now: u64,
}

impl<F: Failpoints> TwoPhaseNode<F> {
    /// What the node tells about itself, with what waits in it.
    pub fn details(&self) -> Details {
        let waiting = self.engine.waiting(DETAILS_TRANSACTIONS_MAX);
        let snapshots = self.snapshots.open_at(self.now);
        let status = AnyNode::status(self, false);
        details_of(status, &*self.storage, &self.catalog, self.me, &waiting, snapshots)
    }

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
            engine: TwoPhase::new(protocol, durable, &limits),
            effects,
            log,
            started: !durable,
            starting: false,
            early: Vec::new(),
            waiting: VecDeque::new(),
            snapshots: Snapshots::default(),
            throttling: Throttling::new(id.partition, partitions, limits.throttles),
            pace: Pace::new(limits.step_transactions),
            held: Held::default(),
            hashes: Vec::new(),
            counters: Counters::default(),
            messages: 0,
            message_bytes: 0,
            now: 0,
        }
    }

    /// What the engine has counted.
    pub fn deadlocks(&self) -> TwoPhaseCounters {
        self.engine.counters
    }

    /// A row as it is now, for scripts.
    pub fn peek(&self, key: &Key) -> Option<&[u8]> {
        let record = self.storage.locate(key, key_hash(key))?;
        Some(self.storage.row(record))
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
                ClientRequest::Scan { request, at, range, direction, rows } => {
                    let outcome = self.check_open(at).map(|()| {
                        encode_body(&page_of(&mut *self.storage, &range, direction, at, rows as usize))
                    });
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
                ClientRequest::Details { request } => {
                    let outcome = Ok(encode_body(&self.details()));
                    outbox.replies.push(Reply { request, outcome });
                }
            }
        }
        for (home, requests) in grouped(forwards) {
            self.send(home, Message::Forward { entry: self.entry(), requests }, outbox);
        }
    }

    /// How clients come in that are connected to this node. They are at home where they are connected, and what an earlier life has opened the
    /// others forget when the link is reset, so that lives need not be told apart.
    fn entry(&self) -> Entry {
        Entry::of(self.id)
    }

    /// Takes a request of a client that is at home here.
    fn submit(&mut self, request: Request, entry: NodeId, outbox: &mut Outbox) {
        let Request { id, acknowledged, operation } = request;
        if !self.started {
            // It replays its log. Clients send the request again by themselves, as to a node that does not lead yet.
            return self.refuse(id, entry, not_leading());
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
                Operation::Call { procedure, arguments } | Operation::Read { procedure, arguments } => {
                    if let Some(error) = self.refusal(id, procedure, &arguments) {
                        return self.shed(id, error);
                    }
                    let request = id;
                    let footprint = None;
                    self.waiting.push_back(Statement {
                        request,
                        acknowledged,
                        procedure,
                        arguments,
                        footprint,
                    });
                }
                Operation::OpenSnapshot => self.begin_snapshot(id, acknowledged, entry, outbox),
                Operation::Checkpoint => {
                    let problem =
                        "the engine two-phase takes no checkpoints: choose another engine".to_owned();
                    self.answer(id, None, Err(Error::Invalid(problem)));
                }
                Operation::CallEarly { .. } | Operation::AskOutcome { .. } => {
                    let problem = "the engine two-phase has no order in which a call could have a place before it is computed: \
                                   wait for its result, or choose another engine";
                    self.answer(id, None, Err(Error::Invalid(problem.to_owned())));
                }
            },
        }
    }

    /// Refuses a request that was taken in, for the sake of a partition that lags.
    fn shed(&mut self, request: RequestId, error: Error) {
        self.counters.shed += 1;
        if let Some(entry) = self.sessions.withdraw(request) {
            self.refuse(request, entry, error);
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
                // What is decided may be executed in a later step: until then the clock alone tells that a snapshot is late.
                if message.clock() > self.engine.clock() {
                    self.pass(message.clock());
                }
                let (engine, mut context) = self.engine();
                engine.receive(from.partition, message, &mut context)?;
            }
            Message::Forward { entry, requests } => {
                requests.into_iter().for_each(|request| self.submit(request, entry.node, outbox));
            }
            Message::Replies(replies) => outbox.replies.extend(replies),
            Message::Load { load, room } => self.throttling.heard(from.partition, load, room),
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

    fn tell_others(&mut self, message: &Message, outbox: &mut Outbox) {
        for partition in (0..self.partitions).map(PartitionId) {
            if partition != self.me {
                self.send(partition, message.clone(), outbox);
            }
        }
    }

    /// Notes requests that have ended.
    fn take_ended(&mut self) {
        for ended in std::mem::take(&mut self.engine.effects.ended) {
            let Ended { request, acknowledged, procedure, arguments, reconnoitred, position, outcome } =
                ended;
            self.throttling.end(request);
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
            self.throttling.end(statement.request);
            self.answer(statement.request, None, Err(error));
        }
    }

    fn send(&mut self, to: PartitionId, message: Message, outbox: &mut Outbox) {
        self.messages += 1;
        self.message_bytes += message.payload_bytes() as u64;
        outbox.sends.push((NodeId { partition: to, replica: self.id.replica }, message));
    }

    /// Takes onwards what is under way, then begins what waits, as far as there is room, until procedures have run so often since
    /// this node was made or so many were begun; whether there is more to do at once.
    fn execute(&mut self, executions: u64) -> bool {
        let (engine, mut context) = self.engine();
        engine.run(executions, &mut context);
        engine.begin_again(executions, &mut context);
        engine.run(executions, &mut context);
        let mut begins = self.pace.allowed();
        while self.started && !self.waiting.is_empty() {
            let left = executions.saturating_sub(self.effects.executions.runs()) as usize;
            let most = self.room().min(left).min(begins).min(PREFETCH_CALLS);
            if most == 0 {
                break;
            }
            begins -= most;
            let group = self.place_group(most);
            for placed in group {
                let (engine, mut context) = self.engine();
                engine.begin(placed, &mut context);
                engine.run(executions, &mut context);
            }
        }
        self.engine.runnable() > 0 || (!self.waiting.is_empty() && self.room() > 0)
    }

    /// Number of transactions that may be begun.
    fn room(&self) -> usize {
        self.limits.transactions_live.saturating_sub(self.engine.live())
    }

    /// How long it takes to execute the transactions and calls that wait for the processor, in microseconds. Where it has nothing to do
    /// and there is no room for more, calls wait for those under way, and these for other nodes.
    fn backlog(&self) -> u64 {
        self.pace.time_for(match self.engine.runnable() {
            0 if self.room() == 0 => 0,
            runnable => (runnable + self.waiting.len()) as u64,
        })
    }

    /// Takes the next calls, finds their footprints, and prefetches their rows.
    fn place_group(&mut self, most: usize) -> SmallVec<[Placed; PREFETCH_CALLS]> {
        let mut group = SmallVec::new();
        self.hashes.clear();
        for _ in 0..most {
            let Some(statement) = self.waiting.pop_front() else { break };
            let (engine, mut context) = self.engine();
            if let Some(placed) = engine.place(statement, &mut context) {
                let call = &placed.call;
                let (request, participants) = (call.request, call.footprint.participants(self.me));
                if let Err(error) = self.throttling.begin(request, participants) {
                    self.effects.footprints.push(placed.call.footprint);
                    self.shed(request, error);
                    continue;
                }
                call.local_hashes(self.me, &mut self.hashes);
                group.push(placed);
            }
            self.effects.executions.delivered += 1;
        }
        self.storage.prefetch(&self.hashes);
        group
    }
}

impl<F: Failpoints> AnyNode for TwoPhaseNode<F> {
    fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Fatal> {
        self.now = now;
        self.pace.begin(now);
        let executed = self.effects.executions.runs();
        self.pass(self.engine.clock());
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
                    self.reset_load(peer.partition, outbox);
                    let (engine, context) = self.engine();
                    engine.reset(peer.partition, &context);
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
        let more = self.execute(executed + self.pace.allowed() as u64);
        self.throttle(outbox);
        if let Some(log) = &mut self.log {
            log.replicated.tick(now);
        }
        self.flush(outbox);
        self.advance_log(outbox)?;
        self.flush(outbox);
        self.advance_log(outbox)?;
        let garbage_left = self.storage.collect_garbage(STEP_GARBAGE_MAX) >= STEP_GARBAGE_MAX;
        // A deadline in the past wakes nobody: what this step's messages made due is done at once.
        let due = self.engine.deadline().is_some_and(|at| at <= now);
        let more = more || due || garbage_left || (self.started && !self.early.is_empty());
        debug_assert!(self.snapshots.are_ahead_of(self.engine.clock()));
        self.pace.end(now, self.effects.executions.runs() - executed, more);
        Ok(more)
    }

    fn resume(&mut self, _: Resumed) {
        unreachable!("the engine two-phase writes no checkpoints, so there is none to go on from");
    }

    fn know_checkpoints(&mut self, _: &[(Epoch, u64)]) {}

    fn deadline(&self) -> Option<u64> {
        let log = self.log.as_ref().and_then(|log| log.replicated.deadline());
        let all = [self.engine.deadline(), self.throttling.deadline(), log];
        all.into_iter().flatten().filter(|at| *at > self.now).min()
    }

    fn is_idle(&self) -> bool {
        let logged = self.log.as_ref().is_none_or(|log| log.held.is_empty());
        self.started
            && logged
            && self.waiting.is_empty()
            && self.engine.live() == 0
            && self.snapshots.is_idle()
    }

    fn status(&self, digest: bool) -> Status {
        let Statistics { rows, garbage, .. } = self.storage.statistics();
        let log = self.log.as_ref().map(|log| &*log.replicated);
        Status {
            counters: Counters { restarts: self.engine.counters.restarts, ..self.counters },
            delivered: Epoch(self.engine.clock()),
            waiting: self.waiting.len() as u64,
            live: self.engine.live() as u64,
            messages: self.messages,
            message_bytes: self.message_bytes,
            rows: rows as u64,
            garbage: garbage as u64,
            leads: self.started,
            stable: Epoch(0),
            stable_anywhere: Epoch(0),
            checkpoint_problem: None,
            deadlocks: self.engine.counters,
            frozen: false,
            functors_stopped: 0,
            functor_problem: None,
            undecided: None,
            group: log.map(|log| group_status(log, self.id.replica)),
            digest: digest.then(|| digest_of(&*self.storage, &self.catalog.schema, self.me).0),
        }
    }

    fn executions(&self) -> Executions {
        self.effects.executions
    }

    fn executed(&mut self) -> Option<Epoch> {
        None
    }

    fn describe(&self) -> String {
        let mut out = String::new();
        self.engine.describe(&mut out);
        self.snapshots.describe(&mut out);
        out
    }
}
