//! The `two-phase` engine: strict two-phase locking and two-phase commit, the classical system that the others are compared with
//! (Ren et al. §3.1, DET-29 to DET-41).
//!
//! There is no order in advance: whoever gets a lock first is first. The home of a client *coordinates* its transactions. One that
//! touches nothing elsewhere runs to its end at once, if it meets no lock. Any other asks for its locks:
//!
//! ```text
//! coordinator   begin ──Lock──► all Granted ──► (grown? again) ──Prepare──► all Vote ──► log it ──Decide──► Done by all: forgotten
//! participant           Locking ──► Holding: reads sent ──────────────► Prepared: log it ──► executed, locks released
//! ```
//!
//! - *When locks are requested* is not settled in the paper (DET-29). Here a procedure that declares its footprint asks for all of it
//!   when it begins, in the order of arrival at each partition. One that does not asks as it goes: it is run over what it has
//!   locked, which tells what it lacks; then it asks for that, and is run again. What was read stays locked, so it reads the same.
//! - *Every participant prepares*, also one that only reads: else its clock, see below, would not pass the position after a crash.
//! - *Every participant that writes executes the logic*, over all reads, like in `calvin`: they come with [`TwoPhaseMessage::Prepare`].
//!   So verdicts of the logic need no votes; a vote only says that the participant can commit after a crash.
//! - *Aborts*: a victim of a deadlock, or of a participant that was lost, is given up everywhere and begun again, with its age
//!   (DET-39). A coordinator that knows nothing of a transaction says that it was aborted (*presumed abort*), so nothing is logged
//!   of those.
//! - *Positions.* A transaction gets its position when it commits: a number above the clocks of all participants, which they all
//!   pass then. So the order of positions is an order of commits, and conflicting transactions are in it as they met: what has
//!   happened can be checked by running it serially in that order, as for the other engines. It is no order in real time.
//! - *Transactions that wait* are states in tables (DET-32 to DET-35): those that wait for locks in [`Locks`], those that hold all of
//!   theirs in a queue of what is ready, those that wait for messages in the table of active ones. What comes by message goes first,
//!   then what is ready, then what is new.
//!
//! *Without a commit protocol* ([`CommitProtocol::None`]) the coordinator decides when all locks are held. That is the paper's
//! bound (DET-41) and not a database: a crash leaves a transaction done at one partition and not at another.

pub mod coordinator;
pub mod deadlock;
pub mod locks;
pub mod message;
mod participant;
mod recovery;

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;

use bytes::Bytes;

use crate::error::{Error, Outcome};
use crate::execution::{Call, Context, Executor, Missing, Received};
use crate::failpoint::{Failpoints, NoFailpoints};
use crate::hash::{FastMap, key_hash};
use crate::message::{Reconnoitred, RequestId, Verdict};
use crate::position::{Epoch, PartitionId, PartitionSet, Position};
use crate::procedure::{Catalog, Declaration, Footprint};

use coordinator::Coordinated;
use deadlock::{Detector, cycle_through};
use locks::{Locks, Slot};
use message::{Ended, Reads, Statement, TransactionId, TwoPhaseMessage, TwoPhaseRecord};

/// How often the detector is told who waits, as long as anybody does, in microseconds.
pub const REPORT_MICROSECONDS: u64 = 5_000;

/// The longest mean pause before a victim is begun again, in microseconds: it doubles from attempt to attempt.
const BACK_OFF_MAX_MICROSECONDS: u64 = 16_000;

/// How transactions on several partitions commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitProtocol {
    /// Two-phase commit, with presumed abort.
    TwoPhase,
    /// None at all (DET-41).
    None,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TwoPhaseCounters {
    /// Cycles that were found in this partition's own part of the graph.
    pub local_deadlocks: u64,
    /// Victims that the detector named.
    pub distributed_deadlocks: u64,
    /// Victims that had gone on, or had been given up, when their coordinator heard of it.
    pub phantom_deadlocks: u64,
    /// Attempts that were given up and begun again.
    pub restarts: u64,
}

/// What a step wants done.
#[derive(Debug, Default)]
pub struct TwoPhaseEffects {
    /// Messages to other partitions, each with whether it waits until all records so far are durable.
    pub messages: Vec<(PartitionId, TwoPhaseMessage, bool)>,
    /// Records for the log, in order.
    pub records: Vec<TwoPhaseRecord>,
    /// Requests that have ended. Their answers wait until all records so far are durable.
    pub ended: Vec<Ended>,
    /// Requests that cannot be begun, and why.
    pub refused: Vec<(Statement, Error)>,
}

/// What a transaction does at this partition now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It waits for locks.
    Blocked,
    /// It holds all that it asked for, and waits for messages.
    Active,
    /// It can commit, and waits for the decision.
    Prepared,
}

/// A transaction that holds or asks for locks here.
#[derive(Debug)]
struct Local {
    id: TransactionId,
    statement: Statement,
    call: Call,
    phase: Phase,
    /// How often its footprint has grown.
    round: u32,
    /// Whether it may lack something yet.
    grows: bool,
    /// What the others have read.
    reads: Reads,
    /// Whether its coordinator was told that it is to be given up.
    is_victim: bool,
}

/// A transaction that is to be begun again.
#[derive(Debug)]
struct Retry {
    id: TransactionId,
    statement: Statement,
}

/// See the [module](self).
#[derive(Debug)]
pub struct TwoPhase<F = NoFailpoints> {
    protocol: CommitProtocol,
    /// Whether a log is kept.
    durable: bool,
    /// How often this partition has started.
    life: u32,
    /// Above all positions that are known here.
    clock: u64,
    locks: Locks,
    table: Vec<Option<Local>>,
    free: Vec<Slot>,
    by_id: FastMap<TransactionId, Slot>,
    /// Transactions that hold all their locks and have not been taken onwards.
    ready: VecDeque<Slot>,
    coordinated: BTreeMap<TransactionId, Coordinated>,
    /// What is begun again, by time in microseconds.
    retries: BTreeMap<(u64, TransactionId), Retry>,
    detector: Detector,
    /// When the detector is told next, while anybody waits or it was told so last.
    next_report: Option<u64>,
    executor: Executor,
    granted: Vec<Slot>,
    now: u64,
    /// What the step wants done.
    pub effects: TwoPhaseEffects,
    /// What was counted.
    pub counters: TwoPhaseCounters,
    failpoints: PhantomData<F>,
}

impl<F: Failpoints> TwoPhase<F> {
    /// An engine with nothing to do. `durable`: whether a log is kept.
    pub fn new(protocol: CommitProtocol, durable: bool) -> TwoPhase<F> {
        TwoPhase {
            protocol,
            durable,
            life: 0,
            clock: 0,
            locks: Locks::default(),
            table: Vec::new(),
            free: Vec::new(),
            by_id: FastMap::default(),
            ready: VecDeque::new(),
            coordinated: BTreeMap::new(),
            retries: BTreeMap::new(),
            detector: Detector::default(),
            next_report: None,
            executor: Executor::default(),
            granted: Vec::new(),
            now: 0,
            effects: TwoPhaseEffects::default(),
            counters: TwoPhaseCounters::default(),
            failpoints: PhantomData,
        }
    }

    /// Begins a transaction of a client whose home is here.
    pub fn begin(&mut self, mut statement: Statement, context: &mut Context<'_>) {
        self.clock += 1;
        let id = TransactionId { started: self.clock, coordinator: context.me, life: self.life, attempt: 0 };
        statement.footprint = None;
        self.attempt(id, statement, context);
    }

    /// An attempt at a transaction.
    fn attempt(&mut self, id: TransactionId, statement: Statement, context: &mut Context<'_>) {
        let (call, grows) = match place(&statement, true, context) {
            Ok(placed) => placed,
            Err(error) => return self.effects.refused.push((statement, error)),
        };
        let alone = call.footprint.participants(context.me) == PartitionSet::one(context.me);
        if alone && !grows && self.locks.is_free::<F>(&call.footprint, context.me) {
            return self.commit_alone(statement, call, context);
        }
        let slot = self.enter(id, statement, call, grows);
        if !alone {
            self.coordinate(slot, context);
        }
        self.request(slot, context);
    }

    /// Puts a transaction into the table.
    fn enter(&mut self, id: TransactionId, statement: Statement, call: Call, grows: bool) -> Slot {
        let slot = self.free.pop().unwrap_or(Slot(self.table.len() as u32));
        if slot.index() == self.table.len() {
            self.table.push(None);
        }
        let (phase, round, reads, is_victim) = (Phase::Blocked, 0, Reads::new(), false);
        let local = Local { id, statement, call, phase, round, grows, reads, is_victim };
        self.table[slot.index()] = Some(local);
        self.by_id.insert(id, slot);
        slot
    }

    /// Requests what a transaction's footprint has here. If it has to wait, deadlocks are looked for.
    fn request(&mut self, slot: Slot, context: &Context<'_>) {
        let Some(local) = &mut self.table[slot.index()] else { return };
        local.phase = Phase::Blocked;
        if self.locks.request::<F>(slot, &local.call.footprint, context.me) {
            self.ready.push_back(slot);
        } else {
            self.break_cycle(slot, context);
            self.next_report.get_or_insert(self.now + REPORT_MICROSECONDS);
        }
    }

    /// Takes onwards what is ready, and what becomes ready by that.
    pub fn run_ready(&mut self, context: &mut Context<'_>) {
        while let Some(slot) = self.ready.pop_front() {
            let Some(local) = &mut self.table[slot.index()] else { continue };
            // The place may have been given to another one meanwhile.
            if local.phase != Phase::Blocked || !self.locks.waits_for(slot).is_empty() {
                continue;
            }
            local.phase = Phase::Active;
            let id = local.id;
            if id.coordinator != context.me {
                self.tell_granted(slot, context);
            } else if self.coordinated.contains_key(&id) {
                self.advance(id, context);
            } else {
                self.run_alone(slot, context);
            }
        }
    }

    /// A transaction of this partition alone has all that it asked for.
    fn run_alone(&mut self, slot: Slot, context: &mut Context<'_>) {
        let Some(local) = &mut self.table[slot.index()] else { return };
        let missing = match local.grows {
            true => self.executor.explore::<F>(&local.call, &Received::default(), context),
            false => crate::execution::Explored::Complete,
        };
        match missing {
            crate::execution::Explored::Complete => {
                let Some(local) = self.leave(slot) else { return };
                self.commit_alone(local.statement, local.call, context);
            }
            crate::execution::Explored::Lacks(missing) => {
                if self.grow(slot, &missing, context)
                    && let Some(local) = &self.table[slot.index()]
                {
                    if local.call.footprint.participants(context.me) != PartitionSet::one(context.me) {
                        self.coordinate(slot, context);
                    }
                    self.request(slot, context);
                }
            }
        }
    }

    /// Adds to a transaction's footprint; whether that was possible. If not, the transaction has failed.
    fn grow(&mut self, slot: Slot, missing: &[Missing], context: &mut Context<'_>) -> bool {
        let Some(local) = &mut self.table[slot.index()] else { return false };
        match grown(&local.call.footprint, missing, context.catalog, context.partitions) {
            Ok(footprint) => {
                local.statement.footprint = Some(Bytes::from(footprint.encode()));
                *local.call.footprint = footprint;
                local.round += 1;
                true
            }
            Err(error) => {
                let id = local.id;
                if let Some(coordinated) = self.coordinated.remove(&id) {
                    self.tell_aborted(id, &coordinated);
                }
                let left = self.leave(slot);
                self.effects.refused.extend(left.map(|local| (local.statement, error)));
                false
            }
        }
    }

    /// Commits a transaction that nobody else has a part in. Its locks are released already, or it never needed any: nobody sees
    /// it half done.
    fn commit_alone(&mut self, statement: Statement, mut call: Call, context: &mut Context<'_>) {
        self.clock += 1;
        let position = Position { epoch: Epoch(self.clock), origin: context.me, index: 0 };
        call.position = position;
        let verdict = self.executor.execute::<F>(&call, &Received::default(), context);
        context.effects.footprints.push(call.footprint);
        self.end(&statement, position, verdict);
        if self.durable {
            self.effects.records.push(TwoPhaseRecord::Local { position, statement });
        }
    }

    /// Notes the end of a request.
    fn end(&mut self, statement: &Statement, position: Position, verdict: Verdict) {
        let outcome = outcome_of(verdict);
        let (request, acknowledged) = (statement.request, statement.acknowledged);
        let footprint = statement.footprint.clone();
        let ended = Ended {
            request,
            acknowledged,
            procedure: statement.procedure,
            arguments: statement.arguments.clone(),
            reconnoitred: footprint.map(|footprint| Reconnoitred { footprint, restarts: 0 }),
            position,
            outcome,
        };
        self.effects.ended.push(ended);
    }

    /// Takes a transaction out of the table and releases its locks.
    fn leave(&mut self, slot: Slot) -> Option<Local> {
        let local = self.table[slot.index()].take()?;
        self.by_id.remove(&local.id);
        self.locks.release(slot, &mut self.granted);
        self.free.push(slot);
        self.ready.extend(self.granted.drain(..));
        Some(local)
    }

    /// Looks for a deadlock that a transaction closes by waiting, and breaks it.
    fn break_cycle(&mut self, slot: Slot, context: &Context<'_>) {
        while let Some(members) = cycle_through(slot, |slot| self.locks.waits_for(slot).to_vec()) {
            let id_of = |slot: &Slot| self.table[slot.index()].as_ref().map(|local| (local.id, *slot));
            // One that is to be given up already breaks the cycle as soon as its coordinator says so.
            let known = members.iter().filter_map(|slot| self.table[slot.index()].as_ref());
            if known.clone().any(|local| local.is_victim) {
                return;
            }
            let Some((victim, at)) = members.iter().filter_map(id_of).max() else { return };
            self.counters.local_deadlocks += 1;
            if victim.coordinator == context.me {
                self.give_up(victim);
            } else if let Some(local) = &mut self.table[at.index()] {
                local.is_victim = true;
                self.say(victim.coordinator, TwoPhaseMessage::Victim { id: victim });
                return;
            }
        }
    }

    /// Gives up an attempt of a transaction that is coordinated here; it is begun again after a pause.
    fn give_up(&mut self, id: TransactionId) {
        if let Some(coordinated) = self.coordinated.remove(&id) {
            self.tell_aborted(id, &coordinated);
        }
        let Some(local) = self.by_id.get(&id).copied().and_then(|slot| self.leave(slot)) else { return };
        self.counters.restarts += 1;
        let next = TransactionId { attempt: id.attempt + 1, ..id };
        let mean = (250_u64 << next.attempt.min(8)).min(BACK_OFF_MAX_MICROSECONDS);
        let draw = key_hash(&[next.started.to_le_bytes(), u64::from(next.attempt).to_le_bytes()].concat());
        let at = self.now + mean / 2 + draw % mean;
        let retry = Retry { id: next, statement: Statement { footprint: None, ..local.statement } };
        self.retries.insert((at, next), retry);
    }

    /// Does what is due: transactions that are begun again, and what the detector is to be told.
    pub fn tick(&mut self, now: u64, context: &mut Context<'_>) {
        self.now = now;
        while let Some(due) = self.retries.first_entry().filter(|entry| entry.key().0 <= now) {
            let Retry { id, statement } = due.remove();
            self.attempt(id, statement, context);
        }
        if self.next_report.is_some_and(|at| at <= now) {
            self.report_waits(context);
        }
    }

    /// Tells the detector who waits for whom here.
    fn report_waits(&mut self, context: &mut Context<'_>) {
        let blocked = self.table.iter().enumerate().filter_map(|(index, local)| {
            let local = local.as_ref().filter(|local| local.phase == Phase::Blocked)?;
            Some((Slot(index as u32), local.id))
        });
        let id_of = |slot: &Slot| self.table[slot.index()].as_ref().map(|local| local.id);
        let mut edges = Vec::new();
        for (slot, id) in blocked {
            edges.extend(self.locks.waits_for(slot).iter().filter_map(id_of).map(|earlier| (id, earlier)));
        }
        self.next_report = (!edges.is_empty()).then_some(self.now + REPORT_MICROSECONDS);
        if context.partitions == 1 {
            self.next_report = None;
        } else if context.me == DETECTOR {
            self.detect(context.me, edges, context);
        } else {
            self.say(DETECTOR, TwoPhaseMessage::Waits { edges });
        }
    }

    /// Searches the graph of all partitions for deadlocks.
    fn detect(&mut self, from: PartitionId, edges: Vec<deadlock::Edge>, context: &mut Context<'_>) {
        for victim in self.detector.report(from, edges) {
            self.counters.distributed_deadlocks += 1;
            if victim.coordinator == context.me {
                self.take_victim(victim);
            } else {
                self.say(victim.coordinator, TwoPhaseMessage::Victim { id: victim });
            }
        }
    }

    fn take_victim(&mut self, id: TransactionId) {
        let waits = match self.coordinated.get(&id) {
            Some(coordinated) => coordinated.waits_for_locks(),
            None => self.by_id.contains_key(&id),
        };
        if waits { self.give_up(id) } else { self.counters.phantom_deadlocks += 1 }
    }

    fn say(&mut self, to: PartitionId, message: TwoPhaseMessage) {
        self.effects.messages.push((to, message, false));
    }

    fn say_when_durable(&mut self, to: PartitionId, message: TwoPhaseMessage) {
        self.effects.messages.push((to, message, true));
    }

    /// When the engine is to be woken, in microseconds.
    pub fn deadline(&self) -> Option<u64> {
        let retry = self.retries.keys().next().map(|(at, _)| *at);
        [retry, self.next_report].into_iter().flatten().min()
    }

    /// Moves the clock on to what was heard of.
    pub fn pass(&mut self, clock: u64) {
        self.clock = self.clock.max(clock);
    }

    /// Moves the clock on to a snapshot, also for later lives.
    pub fn open_snapshot(&mut self, at: Position, request: Option<(RequestId, u64)>) {
        self.pass(at.epoch.0);
        if self.durable {
            self.effects.records.push(TwoPhaseRecord::Snapshot { at, request });
        }
    }

    /// The clock: at least the number of every position that is known here.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Transactions that may yet get a position that is not above this partition's clock: those that have promised to commit.
    pub fn undecided(&self) -> Vec<TransactionId> {
        let promised = |local: &&Local| match self.protocol {
            CommitProtocol::TwoPhase => local.phase == Phase::Prepared,
            CommitProtocol::None => local.phase == Phase::Active,
        };
        self.table.iter().flatten().filter(promised).map(|local| local.id).collect()
    }

    /// Whether a transaction holds or asks for locks here.
    pub fn is_live(&self, id: TransactionId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Number of transactions that are under way here.
    pub fn live(&self) -> usize {
        let elsewhere = self.coordinated.keys().filter(|id| !self.by_id.contains_key(id)).count();
        self.by_id.len() + elsewhere + self.retries.len()
    }

    /// The transactions under way, a line each, for scripts and people.
    pub fn describe(&self, out: &mut String) {
        let mut lines: Vec<(TransactionId, String)> = Vec::new();
        for (index, local) in self.table.iter().enumerate() {
            let Some(local) = local else { continue };
            let mut line = format!("{} {:?}", local.id, local.phase);
            for earlier in self.locks.waits_for(Slot(index as u32)) {
                let earlier = self.table[earlier.index()].as_ref().map(|local| local.id.to_string());
                line.push_str(&format!(" {}", earlier.unwrap_or_default()));
            }
            lines.push((local.id, line));
        }
        let coordinated = self.coordinated.iter();
        lines.extend(coordinated.map(|(id, coordinated)| (*id, format!("{id} {}", coordinated.describe()))));
        lines.extend(self.retries.keys().map(|(_, id)| (*id, format!("{id} Paused"))));
        lines.sort();
        lines.into_iter().for_each(|(_, line)| out.push_str(&format!("{line}\n")));
    }
}

/// The partition that searches for deadlocks over several partitions.
pub const DETECTOR: PartitionId = PartitionId(0);

fn outcome_of(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Committed(output) => Ok(output),
        Verdict::Failed(error) => Err(error),
        Verdict::FootprintMissed => Err(Error::Invalid(
            "an access outside of what was locked: the procedure is not deterministic".to_owned(),
        )),
    }
}

/// A call of a statement, and whether its footprint may grow. At its coordinator a procedure that declares nothing begins with
/// nothing; elsewhere it has what it was sent with.
fn place(statement: &Statement, begins: bool, context: &mut Context<'_>) -> Result<(Call, bool), Error> {
    let Catalog { schema, procedures } = context.catalog;
    let mut footprint = context.effects.footprints.pop().unwrap_or_default();
    let grows = match &statement.footprint {
        Some(encoded) => {
            footprint.decode(encoded, schema, context.partitions)?;
            begins
        }
        None => {
            let (procedure, arguments) = (statement.procedure, &statement.arguments);
            let declared =
                procedures.declare(procedure, arguments, schema, context.partitions, &mut footprint)?;
            let grows = declared == crate::procedure::Declared::Unknown;
            if grows {
                footprint.clear();
            }
            grows
        }
    };
    let Statement { request, procedure, arguments, .. } = statement.clone();
    let reconnoitred = grows || statement.footprint.is_some();
    let call = Call { position: Position::LOADED, request, procedure, arguments, footprint, reconnoitred };
    Ok((call, grows))
}

/// A footprint with what it lacked.
fn grown(
    footprint: &Footprint,
    missing: &[Missing],
    catalog: &Catalog,
    partitions: u16,
) -> Result<Footprint, Error> {
    let mut grown = Footprint::default();
    let mut declaration = Declaration::new(&catalog.schema, partitions, &mut grown);
    for entry in footprint.keys() {
        declaration.touch(&crate::data::Key::from_bytes(footprint.key(entry)), entry.access)?;
    }
    for entry in footprint.ranges() {
        declaration.touch_range(&entry.range, entry.access)?;
    }
    for missing in missing {
        match missing {
            Missing::Key(key, access) => declaration.touch(key, *access)?,
            Missing::Range(range) => declaration.read_range(range)?,
        }
    }
    Ok(grown)
}
