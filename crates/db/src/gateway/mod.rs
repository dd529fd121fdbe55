//! The gateway: where a client's requests become transactions and verdicts become answers.
//!
//! It lives at the client's home partition. It admits each request once ([`Sessions`]), finds the footprint (declared, or by
//! [`reconnaissance`]), and hands the transaction to the sequencer. When execution reports that a reconnoitred footprint
//! missed, it starts over with the same request (CAL-64); that way the restart enters the order once, however many
//! participants noticed the miss (trap 7).

pub mod reconnaissance;

use bytes::Bytes;

use crate::data::Key;
use crate::error::{Error, Outcome};
use crate::failpoint::Failpoints;
use crate::hash::FastMap;
use crate::limits::Limits;
use crate::message::{Operation, Ordered, Report, Request, RequestId, Verdict, Want, Work};
use crate::position::{PartitionId, PartitionSet};
use crate::procedure::{Catalog, Declared, Footprint, ProcedureId};
use crate::sequencer::sessions::Admission;
use crate::sequencer::{Sequencer, Sessions, Waiting};
use crate::storage::Storage;

use reconnaissance::{Found, Reconnaissance, Scouted};

/// A call whose keys depend on data.
#[derive(Clone, Debug)]
struct Dependent {
    procedure: ProcedureId,
    arguments: Bytes,
    restarts: u32,
}

/// What the gateway wants done after a step.
#[derive(Debug, Default)]
pub struct GatewayEffects {
    /// Answers, with the node that the client is connected to.
    pub answers: Vec<(PartitionId, RequestId, Outcome)>,
    /// Reads that reconnaissance wants of other partitions.
    pub fetches: Vec<(PartitionId, u64, Want)>,
}

/// Counts of what became of requests, at their home.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
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
    /// Requests refused as busy before they were ordered.
    pub refused: u64,
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
    /// Footprints whose buffers can be filled again.
    #[allow(clippy::vec_box, reason = "boxes move through queues as one word")]
    pub spare: Vec<Box<Footprint>>,
    /// Snapshots that were opened through this gateway and not closed.
    open_snapshots: usize,
    /// What to do next.
    pub effects: GatewayEffects,
    /// What became of requests.
    pub counters: Counters,
}

/// The parts of a node that the gateway works with.
pub struct GatewayContext<'a> {
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
            spare: Vec::new(),
            open_snapshots: 0,
            effects: GatewayEffects::default(),
            counters: Counters::default(),
        }
    }

    /// Takes a request of a client that is at home here, and that is connected to the node `entry`.
    pub fn submit<F: Failpoints>(
        &mut self,
        request: Request,
        entry: PartitionId,
        context: &mut GatewayContext<'_>,
    ) {
        let id = request.id;
        match self.sessions.admit::<F>(id, request.acknowledged, entry) {
            Admission::InFlight => {}
            Admission::Again(outcome) => self.effects.answers.push((entry, id, outcome)),
            Admission::Refuse(error) => self.refuse(id, entry, error),
            Admission::Enter if context.sequencer.is_full() => {
                self.sessions.withdraw(id);
                self.refuse(id, entry, Error::Busy(format!("the sequencer of {} is full", self.me)));
            }
            Admission::Enter => match request.operation {
                Operation::Call { procedure, arguments } => self.call(id, procedure, arguments, context),
                Operation::OpenSnapshot => self.open_snapshot(id, entry, context.sequencer),
            },
        }
    }

    /// Orders a snapshot: every partition opens it at the same position.
    fn open_snapshot(&mut self, id: RequestId, entry: PartitionId, sequencer: &mut Sequencer) {
        if self.open_snapshots >= self.limits.snapshots {
            self.sessions.withdraw(id);
            let busy =
                format!("{} snapshots are open through {}: close some", self.limits.snapshots, self.me);
            return self.refuse(id, entry, Error::Busy(busy));
        }
        self.open_snapshots += 1;
        sequencer.add(Waiting {
            ordered: Ordered { request: id, work: Work::OpenSnapshot },
            footprint: None,
            participants: PartitionSet::all(self.partitions),
        });
    }

    /// Notes that a snapshot that was opened through this gateway is closed.
    pub fn snapshot_closed(&mut self) {
        self.open_snapshots = self.open_snapshots.saturating_sub(1);
    }

    fn refuse(&mut self, id: RequestId, entry: PartitionId, error: Error) {
        self.counters.refused += 1;
        self.effects.answers.push((entry, id, Err(error)));
    }

    fn call(
        &mut self,
        id: RequestId,
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
            Err(error) => self.answer(id, Err(error)),
            Ok(Declared::Complete) => {
                let work = Work::Call { procedure, arguments, reconnoitred: None };
                self.order(id, work, footprint, context.sequencer);
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
                self.dependent.insert(id, Dependent { procedure, arguments, restarts: 0 });
                self.reconnoitre(id, context);
            }
        }
    }

    fn order(&mut self, id: RequestId, work: Work, footprint: Box<Footprint>, sequencer: &mut Sequencer) {
        let participants = footprint.participants(self.me);
        let ordered = Ordered { request: id, work };
        sequencer.add(Waiting { ordered, footprint: Some(footprint), participants });
    }

    /// Begins a reconnaissance run for a dependent call.
    fn reconnoitre(&mut self, id: RequestId, context: &mut GatewayContext<'_>) {
        self.counters.reconnaissance += 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.scouts.insert(ticket, (id, Reconnaissance::new(self.me, self.partitions)));
        self.scout(ticket, context);
    }

    /// Takes the answer to a read that reconnaissance wanted.
    pub fn fetched(
        &mut self,
        from: PartitionId,
        ticket: u64,
        want: Want,
        rows: Vec<(Key, Bytes)>,
        context: &mut GatewayContext<'_>,
    ) {
        let Some((_, scout)) = self.scouts.get_mut(&ticket) else { return };
        if scout.found(Found { from, want, rows }) {
            self.scout(ticket, context);
        }
    }

    /// Runs a reconnaissance as far as it gets.
    fn scout(&mut self, ticket: u64, context: &mut GatewayContext<'_>) {
        let Some((id, mut scout)) = self.scouts.remove(&ticket) else { return };
        let Some(Dependent { procedure, arguments, .. }) = self.dependent.get(&id).cloned() else { return };
        match scout.run(procedure, &arguments, context.catalog, context.storage) {
            Scouted::Wants(wants) => {
                self.scouts.insert(ticket, (id, scout));
                let fetches = wants.into_iter().map(|(partition, want)| (partition, ticket, want));
                self.effects.fetches.extend(fetches);
            }
            Scouted::Failed(error) => {
                self.dependent.remove(&id);
                self.answer(id, Err(error));
            }
            Scouted::Footprint(recorded) => {
                let mut footprint = self.spare.pop().unwrap_or_default();
                match footprint.decode(&recorded, &context.catalog.schema, self.partitions) {
                    Ok(()) => {
                        let reconnoitred = Some(Bytes::from(recorded));
                        let work = Work::Call { procedure, arguments, reconnoitred };
                        self.order(id, work, footprint, context.sequencer);
                    }
                    Err(error) => {
                        self.dependent.remove(&id);
                        self.answer(id, Err(error));
                    }
                }
            }
        }
    }

    /// Takes the verdict on a transaction that was ordered here.
    pub fn report(&mut self, report: Report, context: &mut GatewayContext<'_>) {
        let Report { request, verdict } = report;
        let outcome = match verdict {
            Verdict::Committed(result) => {
                self.counters.committed += 1;
                Ok(result)
            }
            Verdict::Failed(error) => {
                match error {
                    Error::Aborted(_) => self.counters.aborted += 1,
                    _ => self.counters.failed += 1,
                }
                Err(error)
            }
            Verdict::FootprintMissed => {
                self.counters.restarts += 1;
                match self.dependent.get_mut(&request) {
                    Some(dependent) if dependent.restarts < self.limits.restarts => {
                        dependent.restarts += 1;
                        return self.reconnoitre(request, context);
                    }
                    _ => {
                        self.counters.failed += 1;
                        Err(Error::Contended)
                    }
                }
            }
        };
        if !self.dependent.is_empty() {
            self.dependent.remove(&request);
        }
        self.answer(request, outcome);
    }

    /// Answers a request that has ended.
    pub fn answer(&mut self, id: RequestId, outcome: Outcome) {
        if let Some(entry) = self.sessions.answer(id, &outcome) {
            self.effects.answers.push((entry, id, outcome));
        }
    }

    /// Number of requests that were taken in and not answered.
    pub fn in_flight(&self) -> usize {
        self.sessions.in_flight()
    }
}
