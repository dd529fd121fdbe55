//! The gateway: where a client's requests become transactions and verdicts become answers.
//!
//! It lives at the client's home partition. It admits each request once ([`Sessions`]), finds the footprint (declared, or by
//! [`reconnaissance`]), and hands the transaction to the sequencer. When execution reports that a reconnoitred footprint
//! missed, it starts over with the same request (CAL-64); that way the restart enters the order once, however many
//! participants noticed the miss (trap 7).
//!
//! Every replica of the home has the gateway's state, from the order and from execution. Only the one that leads takes
//! requests in and starts attempts: see [`Gateway::lead`] and [`Gateway::step_down`].

mod attempts;
pub mod early;
pub mod reconnaissance;
pub mod scouting;
pub mod widening;

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Outcome};
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::FastMap;
use crate::limits::Limits;
use crate::message::{Operation, Ordered, Reconnoitred, Report, Request, RequestId, Verdict, Want, Work};
use crate::position::{Entry, Epoch, NodeId, PartitionId, PartitionSet, Position, ReplicaId};
use crate::procedure::{Catalog, Declared, Footprint, ProcedureId};
use crate::sequencer::sessions::{Admission, SavedSession, Standing};
use crate::sequencer::{Sequencer, Sessions, Waiting};
use crate::storage::Storage;

use attempts::{Attempt, Dependent, back_off};
use early::Early;
use reconnaissance::Reconnaissance;
use scouting::Scouting;

/// What a checkpoint keeps of a gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedGateway {
    sessions: Vec<SavedSession>,
    /// Calls whose last attempt missed its footprint.
    dependent: Vec<(RequestId, Dependent)>,
    counters: Counters,
}

/// What the gateway wants done after a step.
#[derive(Debug, Default)]
pub struct GatewayEffects {
    /// Answers, with the node that the client is connected to.
    pub answers: Vec<(NodeId, RequestId, Outcome)>,
    /// Reads that reconnaissance wants of other partitions.
    pub fetches: Vec<(PartitionId, u64, Want)>,
}

/// Counts of what became of requests, at their home.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that their own logic aborted.
    pub aborted: u64,
    /// Requests that ended with another error after they were ordered.
    pub failed: u64,
    /// Deterministic restarts after a footprint miss.
    pub restarts: u64,
    /// Reconnaissance runs that were begun.
    pub reconnaissance: u64,
    /// Attempts that declared more than reconnaissance found, as those before them had missed.
    pub helped: u64,
    /// Requests refused as busy before they were ordered.
    pub refused: u64,
    /// Those of them that were shed, as a node lags behind the others.
    pub shed: u64,
}

/// Who takes a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckpointTurn {
    /// All replicas.
    All,
    /// One of them.
    Of(ReplicaId),
    /// The last one to whom it fell has not ended.
    Nobodys,
}

/// The gateway of one partition.
#[derive(Debug)]
pub struct Gateway {
    me: PartitionId,
    partitions: u16,
    limits: Limits,
    sessions: Sessions,
    /// Dependent calls that are being reconnoitred or executed.
    dependent: FastMap<RequestId, Dependent>,
    /// Reconnaissance runs that wait for reads, by ticket.
    scouts: FastMap<u64, (RequestId, Reconnaissance)>,
    next_ticket: u64,
    /// Dependent calls that wait before their next attempt, by the time at which they go on, in microseconds.
    resting: BTreeSet<(u64, RequestId)>,
    /// Calls that are acknowledged before they are computed.
    early: Early,
    /// Footprints whose buffers can be filled again.
    #[allow(clippy::vec_box, reason = "boxes move through queues as one word")]
    pub spare: Vec<Box<Footprint>>,
    /// Whether this node takes requests in.
    leads: bool,
    /// Who takes the next checkpoint that a client asks for here.
    pub checkpoint_turn: CheckpointTurn,
    /// Whether a client's checkpoint was taken to the order since this was last looked at.
    pub has_ordered_checkpoint: bool,
    /// Snapshots of this partition's clients that the order has opened and not closed.
    open_snapshots: BTreeSet<Position>,
    /// Those of them whose end is on its way to the order, and the number of snapshots whose beginning is.
    closing_snapshots: BTreeSet<Position>,
    opening_snapshots: usize,
    /// What to do next.
    pub effects: GatewayEffects,
    /// What became of requests.
    pub counters: Counters,
    /// What reconnaissance has cost.
    pub scouting: Scouting,
}

/// The parts of a node that the gateway works with.
pub struct GatewayContext<'a> {
    /// The time, in microseconds.
    pub now: u64,
    /// The tables and procedures.
    pub catalog: &'a Catalog,
    /// This partition's rows.
    pub storage: &'a mut dyn Storage,
    /// This partition's sequencer.
    pub sequencer: &'a mut Sequencer,
}

impl Gateway {
    /// A gateway without clients.
    pub fn new(me: PartitionId, partitions: u16, limits: Limits) -> Gateway {
        Gateway {
            me,
            partitions,
            limits,
            sessions: Sessions::new(limits),
            dependent: FastMap::default(),
            scouts: FastMap::default(),
            next_ticket: 0,
            resting: BTreeSet::new(),
            early: Early::default(),
            spare: Vec::new(),
            leads: false,
            checkpoint_turn: CheckpointTurn::All,
            has_ordered_checkpoint: false,
            open_snapshots: BTreeSet::new(),
            closing_snapshots: BTreeSet::new(),
            opening_snapshots: 0,
            effects: GatewayEffects::default(),
            counters: Counters::default(),
            scouting: Scouting::default(),
        }
    }

    /// Whether this node takes requests in.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// From now on this node takes requests in: it has seen all of the log. It goes on with the calls whose last attempt
    /// missed.
    pub fn lead(&mut self, context: &mut GatewayContext<'_>) {
        self.leads = true;
        self.early.lead(self.sessions.ordered_requests());
        let mut missed: Vec<RequestId> = self.dependent.keys().copied().collect();
        missed.retain(|id| self.sessions.has_missed(*id));
        missed.sort_unstable();
        missed.into_iter().for_each(|id| self.reconnoitre(id, context));
    }

    /// From now on this node takes no requests in. Those that are not in the order yet are given back to their clients, who
    /// send them to the new leader.
    pub fn step_down(&mut self) {
        self.leads = false;
        self.scouts.clear();
        self.resting.clear();
        self.early.step_down();
        self.opening_snapshots = 0;
        self.closing_snapshots.clear();
        self.dependent.retain(|_, dependent| dependent.attempt.is_some());
        for (id, entry) in self.sessions.withdraw_all() {
            self.refuse(id, entry, not_leading());
        }
    }

    /// Takes a request of a client that is at home here, and whose entry that is. Only while it leads.
    pub fn submit<F: Failpoints>(
        &mut self,
        request: Request,
        entry: Entry,
        context: &mut GatewayContext<'_>,
    ) {
        let id = request.id;
        match self.sessions.admit::<F>(id, request.acknowledged, entry.node) {
            Admission::InFlight => self.hear_again(&request),
            Admission::Again(outcome) => {
                let outcome = self.again(&request, outcome);
                self.effects.answers.push((entry.node, id, outcome));
            }
            Admission::Refuse(error) => self.refuse(id, entry.node, error),
            Admission::Enter => self.enter::<F>(request, entry, context),
        }
    }

    /// Takes a request that is new.
    fn enter<F: Failpoints>(&mut self, request: Request, entry: Entry, context: &mut GatewayContext<'_>) {
        let id = request.id;
        if let Operation::AskOutcome { of } = request.operation {
            return self.ask_outcome(id, of, context.sequencer);
        }
        if context.sequencer.is_full() {
            self.sessions.withdraw(id);
            return self.refuse(id, entry.node, Error::Busy(format!("the sequencer of {} is full", self.me)));
        }
        self.early.hear(&request);
        match request.operation {
            Operation::Call { procedure, arguments }
            | Operation::CallEarly { procedure, arguments }
            | Operation::Read { procedure, arguments } => {
                self.call(id, request.acknowledged, procedure, arguments, context);
                if F::on(Failpoint::AnswerBeforeOrdered) {
                    self.acknowledge_unordered(id, context.sequencer);
                }
            }
            Operation::OpenSnapshot => self.open_snapshot(&request, entry, context.sequencer),
            Operation::Checkpoint => self.take_checkpoint(&request, entry.node, context.sequencer),
            Operation::AskOutcome { .. } => unreachable!("it is taken above"),
        }
    }

    /// Orders a checkpoint, if it is anybody's turn.
    fn take_checkpoint(&mut self, request: &Request, entry: NodeId, sequencer: &mut Sequencer) {
        let by = match self.checkpoint_turn {
            CheckpointTurn::All => None,
            CheckpointTurn::Of(replica) => Some(replica),
            CheckpointTurn::Nobodys => {
                self.sessions.withdraw(request.id);
                let busy = "a replica takes a checkpoint at this moment, and no other one may".to_owned();
                return self.refuse(request.id, entry, Error::Busy(busy));
            }
        };
        self.has_ordered_checkpoint = true;
        sequencer.add(Waiting {
            ordered: Ordered {
                request: request.id,
                acknowledged: request.acknowledged,
                work: Work::Checkpoint(by),
            },
            footprint: None,
            participants: PartitionSet::all(self.partitions),
        });
    }

    /// Whether another snapshot may be opened here, where so many are open that have no place in the order.
    ///
    /// # Errors
    /// When there are too many.
    pub fn check_snapshots(&self, unordered: usize) -> Result<(), Error> {
        if self.open_snapshots.len() + self.opening_snapshots + unordered >= self.limits.snapshots {
            let most = self.limits.snapshots;
            return Err(Error::Busy(format!("{most} snapshots are open through {}: close some", self.me)));
        }
        Ok(())
    }

    /// Whether a request has come here before, and was taken in.
    pub fn knows(&self, id: RequestId) -> bool {
        self.sessions.standing(id) != Standing::Unseen
    }

    /// Orders a snapshot: every partition opens it at the same position.
    fn open_snapshot(&mut self, request: &Request, entry: Entry, sequencer: &mut Sequencer) {
        if let Err(busy) = self.check_snapshots(0) {
            self.sessions.withdraw(request.id);
            return self.refuse(request.id, entry.node, busy);
        }
        self.opening_snapshots += 1;
        sequencer.add(Waiting {
            ordered: Ordered {
                request: request.id,
                acknowledged: request.acknowledged,
                work: Work::OpenSnapshot(entry),
            },
            footprint: None,
            participants: PartitionSet::all(self.partitions),
        });
    }

    /// Orders the end of a snapshot, once.
    pub fn close_snapshot(&mut self, at: Position, sequencer: &mut Sequencer) {
        if self.open_snapshots.contains(&at) && self.closing_snapshots.insert(at) {
            self.order_own(Work::CloseSnapshot(at), sequencer);
        }
    }

    /// Orders what this node decides by itself.
    pub fn order_own(&mut self, work: Work, sequencer: &mut Sequencer) {
        sequencer.add(Waiting {
            ordered: Ordered { request: RequestId::own(self.me), acknowledged: 0, work },
            footprint: None,
            participants: PartitionSet::all(self.partitions),
        });
    }

    /// Notes that a transaction of this partition's batches is in the order: from here on it will be answered.
    pub fn ordered(&mut self, position: Position, ordered: &Ordered) {
        let id = ordered.request;
        if !id.is_own() {
            self.sessions.ordered(id, ordered.acknowledged, position);
        }
        match &ordered.work {
            Work::CloseSnapshot(at) if at.origin == self.me => {
                self.open_snapshots.remove(at);
                self.closing_snapshots.remove(at);
            }
            Work::OpenSnapshot(_) => {
                self.open_snapshots.insert(position);
                self.opening_snapshots = self.opening_snapshots.saturating_sub(1);
            }
            Work::Call { procedure, arguments, reconnoitred: Some(Reconnoitred { footprint, restarts }) }
                if self.sessions.is_ordered(id, position) =>
            {
                let dependent = Dependent {
                    procedure: *procedure,
                    arguments: arguments.clone(),
                    restarts: *restarts,
                    attempt: Some(Attempt { position, footprint: footprint.clone() }),
                    scouted_at: self.dependent.get(&id).and_then(|dependent| dependent.scouted_at),
                };
                self.dependent.insert(id, dependent);
            }
            Work::Call { reconnoitred: None, .. } => self.early.ordered(id, position),
            _ => {}
        }
    }

    fn refuse(&mut self, id: RequestId, entry: NodeId, error: Error) {
        self.counters.refused += 1;
        self.early.forget(id);
        self.effects.answers.push((entry, id, Err(error)));
    }

    fn call(
        &mut self,
        id: RequestId,
        acknowledged: u64,
        procedure: ProcedureId,
        arguments: Bytes,
        context: &mut GatewayContext<'_>,
    ) {
        let mut footprint = self.spare.pop().unwrap_or_default();
        let catalog = context.catalog;
        match catalog.procedures.declare(
            procedure,
            &arguments,
            &catalog.schema,
            self.partitions,
            &mut footprint,
        ) {
            Err(error) => self.answer(id, None, Err(error)),
            Ok(Declared::Complete) => {
                if let Some(error) = self.refusal(id, &footprint, context.sequencer) {
                    self.spare.push(footprint);
                    if let Some(entry) = self.sessions.withdraw(id) {
                        self.counters.shed += 1;
                        self.refuse(id, entry, error);
                    }
                    return;
                }
                let work = Work::Call { procedure, arguments, reconnoitred: None };
                let ordered = Ordered { request: id, acknowledged, work };
                self.order(ordered, footprint, context.sequencer);
            }
            Ok(Declared::Unknown) => {
                self.spare.push(footprint);
                if self.dependent.len() >= self.limits.reconnaissance {
                    if let Some(entry) = self.sessions.withdraw(id) {
                        let most = self.limits.reconnaissance;
                        let busy = format!("{most} dependent transactions are under way at {}", self.me);
                        self.refuse(id, entry, Error::Busy(busy));
                    }
                    return;
                }
                let dependent =
                    Dependent { procedure, arguments, restarts: 0, attempt: None, scouted_at: None };
                self.dependent.insert(id, dependent);
                self.reconnoitre(id, context);
            }
        }
    }

    /// Why a call is refused, if one of its participants lags.
    fn refusal(&self, id: RequestId, footprint: &Footprint, sequencer: &Sequencer) -> Option<Error> {
        let throttle = &sequencer.throttle;
        let refusal = || throttle.refusal(id, footprint.participants(self.me), sequencer.open().0);
        throttle.is_shedding().then(refusal)?
    }

    fn order(&mut self, ordered: Ordered, footprint: Box<Footprint>, sequencer: &mut Sequencer) {
        let participants = footprint.participants(self.me);
        sequencer.add(Waiting { ordered, footprint: Some(footprint), participants });
    }

    /// Takes the verdict on a transaction that was ordered here. One that is known already is ignored.
    pub fn report(&mut self, report: Report, context: &mut GatewayContext<'_>) {
        self.judge(&report, context.now);
        let Report { position, request, verdict } = report;
        let outcome = match verdict {
            Verdict::Committed(result) => Ok(result),
            Verdict::Failed(error) => Err(error),
            Verdict::FootprintMissed => {
                if !self.sessions.missed(request, position) {
                    return;
                }
                self.counters.restarts += 1;
                match self.dependent.get(&request) {
                    Some(dependent) if dependent.restarts < self.limits.restarts => {
                        let misses = dependent.restarts + 1;
                        if self.leads {
                            self.resting.insert((context.now + back_off(misses), request));
                            self.go_on(context);
                        }
                        return;
                    }
                    _ => Err(Error::Contended),
                }
            }
        };
        let counter = match &outcome {
            Ok(_) => &mut self.counters.committed,
            Err(Error::Aborted(_)) => &mut self.counters.aborted,
            Err(_) => &mut self.counters.failed,
        };
        if let Some(entry) = self.sessions.answer(request, Some(position), &outcome) {
            *counter += 1;
            self.dependent.remove(&request);
            self.end(request, Some(position), entry, outcome);
        }
    }

    /// Answers a request that has ended at a position, or without having entered the order.
    pub fn answer(&mut self, id: RequestId, at: Option<Position>, outcome: Outcome) {
        if let Some(entry) = self.sessions.answer(id, at, &outcome) {
            self.dependent.remove(&id);
            self.end(id, at, entry, outcome);
        }
    }

    /// The leader tells the client; it knows where the client is.
    fn say(&mut self, id: RequestId, entry: Option<NodeId>, outcome: Outcome) {
        if let Some(entry) = entry.filter(|_| self.leads) {
            self.effects.answers.push((entry, id, outcome));
        }
    }

    /// Whether a request is in the order at a position, and not answered.
    pub fn awaits(&self, id: RequestId, at: Position) -> bool {
        self.sessions.is_ordered(id, at)
    }

    /// The first epoch of which a request of this partition has not come to its end.
    pub fn oldest_ordered(&self) -> Option<Epoch> {
        self.sessions.oldest_ordered()
    }

    /// What a checkpoint at the end of an epoch keeps. All transactions of the epoch have come to their end.
    pub fn save(&self, through: Epoch) -> SavedGateway {
        let missed = |(id, dependent): (&RequestId, &Dependent)| {
            let attempt = dependent.attempt.as_ref()?;
            let counts = attempt.position.epoch <= through && self.sessions.has_missed(*id);
            counts.then(|| (*id, dependent.clone()))
        };
        let mut dependent: Vec<(RequestId, Dependent)> = self.dependent.iter().filter_map(missed).collect();
        dependent.sort_unstable_by_key(|(id, _)| *id);
        SavedGateway { sessions: self.sessions.save(through), dependent, counters: self.counters }
    }

    /// Takes over what a checkpoint has kept, and the snapshots that were open then.
    pub fn restore(&mut self, saved: SavedGateway, open: impl Iterator<Item = Position>) {
        self.sessions.restore(saved.sessions);
        self.dependent.extend(saved.dependent);
        self.open_snapshots.extend(open.filter(|at| at.origin == self.me));
        self.counters = saved.counters;
    }

    /// Number of requests that were taken in and not answered.
    pub fn in_flight(&self) -> usize {
        self.sessions.in_flight()
    }
}

/// Tells a client that this node no longer takes its request in.
pub fn not_leading() -> Error {
    Error::Busy("another node leads the replication group now".to_owned())
}
