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
//! - *When locks are requested* is not settled in the paper (DET-29), and so can be chosen ([`LockRequests`]). By default a procedure
//!   that declares its footprint asks for all of it when it begins, in the order of arrival at each partition. One that does not, and
//!   any if that is chosen, asks as it goes: it is run over what it has locked, which tells what it lacks; then it asks for that, and
//!   is run again. What was read stays locked, so it reads the same.
//! - *Every participant prepares*, also one that only reads: else its clock, see below, would not pass the position after a crash.
//! - *Every participant that writes executes the logic*, over all reads, like in `calvin`: they come with [`TwoPhaseMessage::Prepare`].
//!   So verdicts of the logic need no votes; a vote only says that the participant can commit after a crash.
//! - *Aborts*: a victim of a deadlock, or of a participant that was lost, is given up everywhere and begun again, with its age
//!   (DET-39). A coordinator that knows nothing of a transaction says that it was aborted (*presumed abort*), so nothing is logged
//!   of those.
//! - *Positions.* A transaction gets its position when it commits: a number above the clocks of all participants, which they all
//!   pass then. So the order of positions is an order of commits, and conflicting transactions are in it as they met: what has
//!   happened can be checked by running it serially in that order, as for the other engines. It is no order in real time.
//! - *Transactions that wait* are states in one table, not threads (DET-32), if they do not wait at the [door](admission). The paper's
//!   three structures are three [`Phase`]s: BlockedTxnMap is [`Phase::Blocked`], which is left when the last awaited lock is granted
//!   (DET-33); ReadyTxnQueue is [`Phase::Ready`], in the order of grants (DET-34); ActiveTxnMap is [`Phase::Active`] and
//!   [`Phase::Prepared`]. Of the active ones those that a message lets go on go first, then what is ready, then what is new
//!   (DET-35): see [`TwoPhase::run`].
//!
//! *Without a commit protocol* ([`CommitProtocol::None`]) the coordinator decides when all locks are held. That is the paper's
//! bound (DET-41) and not a database: a crash leaves a transaction done at one partition and not at another.

pub mod admission;
pub mod coordinator;
mod counters;
pub mod deadlock;
pub mod locks;
pub mod message;
mod participant;
mod placing;
mod recovery;
pub mod requests;
mod victims;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;

use bytes::Bytes;

use crate::error::{Error, Outcome};
use crate::execution::{Call, Context, Executor, Missing, Received, Waiting};
use crate::failpoint::{Failpoints, NoFailpoints};
use crate::hash::FastMap;
use crate::limits::Limits;
use crate::message::{Reconnoitred, RequestId, Verdict};
use crate::position::{Epoch, PartitionId, PartitionSet, Position};

use admission::Door;
use coordinator::Coordinated;
pub use counters::TwoPhaseCounters;
use deadlock::{Detector, Reports};
use locks::{Locks, Slot};
use message::{Ended, Reads, Statement, TransactionId, TwoPhaseMessage, TwoPhaseRecord};
use placing::{grown, place};
use requests::LockRequests;
use victims::REPORT_MICROSECONDS;

/// How transactions on several partitions commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitProtocol {
    /// Two-phase commit, with presumed abort.
    TwoPhase,
    /// None at all (DET-41).
    None,
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
    /// It has been granted the last one, and is in the queue of those to be taken onwards.
    Ready,
    /// It holds all that it asked for, and waits for messages, or for the processor after the last of them.
    Active,
    /// It can commit, and waits for the decision, or for the processor after that.
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
    /// What exploring it has computed.
    computed: Vec<u64>,
    /// Whether its coordinator was told that it is to be given up.
    is_victim: bool,
}

/// A transaction that is to be begun, with what it asks for first.
#[derive(Debug)]
pub struct Placed {
    statement: Statement,
    /// The call; its rows may be brought into the cache.
    pub call: Call,
    /// Whether its footprint may grow.
    grows: bool,
}

/// An active transaction that a message has made runnable: a procedure is to be run for it, or it goes on at once.
#[derive(Debug)]
enum Runnable {
    /// All participants of one that is coordinated here hold its locks.
    Advance(TransactionId),
    /// All participants of one that is coordinated here can commit.
    Decide(TransactionId),
    /// Its coordinator has decided that it commits.
    Commit {
        /// The transaction.
        id: TransactionId,
        /// Its position.
        position: Position,
        /// What the others have read, where it was not told before.
        reads: Option<Reads>,
    },
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
    /// How long a transaction may wait for locks here, in microseconds (DET-37). Without, its own part of the graph is searched.
    lock_wait_max: Option<u64>,
    lock_requests: LockRequests,
    load_control: bool,
    /// How often this partition has started.
    life: u32,
    /// Above all positions that are known here.
    clock: u64,
    locks: Locks,
    table: Vec<Option<Local>>,
    free: Vec<Slot>,
    by_id: FastMap<TransactionId, Slot>,
    /// Active transactions that can go on, in the order of messages.
    runnable: VecDeque<Runnable>,
    /// Transactions that hold all their locks and have not been taken onwards.
    ready: VecDeque<Slot>,
    coordinated: BTreeMap<TransactionId, Coordinated>,
    /// Number of those that are committed, and that not all participants know of.
    committed: usize,
    /// Who waits for locks no longer than to a time in microseconds, in the order of times: with the round of its request.
    lock_waits: BTreeSet<(u64, TransactionId, u32)>,
    /// What waits at the door: see [`admission`].
    door: Door,
    /// What is begun again, by time in microseconds.
    retries: BTreeMap<(u64, TransactionId), Retry>,
    detector: Detector,
    /// When the detector is told next.
    reports: Reports,
    /// When the detector searches next, if anything was reported since.
    next_search: Option<u64>,
    executor: Executor,
    granted: Vec<Slot>,
    now: u64,
    /// What the step wants done.
    pub effects: TwoPhaseEffects,
    /// What was counted.
    pub counters: TwoPhaseCounters,
    failpoints: PhantomData<F>,
}

/// How often the limit of waits for locks doubles at most, and up to what, in microseconds: longer than the rounds of a transaction over
/// long distances, and so short that those that wait for each other all the same come to an end.
const LOCK_WAIT_DOUBLINGS_MAX: u32 = 10;
const LOCK_WAIT_DOUBLED_MAX: u64 = 4_000_000;

/// How long an attempt may wait for locks, in microseconds, where the first may wait for `first`. Longer with each: one that is shorter
/// than messages take would let nobody come to an end.
fn lock_wait(first: u64, attempt: u32) -> u64 {
    (first << attempt.min(LOCK_WAIT_DOUBLINGS_MAX)).min(first.max(LOCK_WAIT_DOUBLED_MAX))
}

impl<F: Failpoints> TwoPhase<F> {
    /// An engine with nothing to do. `durable`: whether a log is kept. Of the limits it heeds those of how locks are waited for: where
    /// that is not limited, each partition searches its own part of the waits-for graph (DET-37).
    pub fn new(protocol: CommitProtocol, durable: bool, limits: &Limits) -> TwoPhase<F> {
        TwoPhase {
            protocol,
            durable,
            lock_wait_max: limits.lock_wait_microseconds,
            lock_requests: limits.lock_requests,
            load_control: limits.load_control,
            life: 0,
            clock: 0,
            locks: Locks::default(),
            table: Vec::new(),
            free: Vec::new(),
            by_id: FastMap::default(),
            runnable: VecDeque::new(),
            ready: VecDeque::new(),
            coordinated: BTreeMap::new(),
            committed: 0,
            lock_waits: BTreeSet::new(),
            door: Door::default(),
            retries: BTreeMap::new(),
            detector: Detector::default(),
            reports: Reports::default(),
            next_search: None,
            executor: Executor::default(),
            granted: Vec::new(),
            now: 0,
            effects: TwoPhaseEffects::default(),
            counters: TwoPhaseCounters::default(),
            failpoints: PhantomData,
        }
    }

    /// Finds the footprint of a transaction that is to be begun; none if that fails, and it is refused.
    pub fn place(&mut self, statement: Statement, context: &mut Context<'_>) -> Option<Placed> {
        match place(&statement, true, context) {
            Ok((mut call, declares_nothing)) => {
                let asks_as_it_goes = self.lock_requests == LockRequests::AsItGoes;
                if asks_as_it_goes && statement.footprint.is_none() {
                    call.footprint.clear();
                    call.reconnoitred = true;
                }
                Some(Placed { statement, call, grows: declares_nothing || asks_as_it_goes })
            }
            Err(error) => {
                self.effects.refused.push((statement, error));
                None
            }
        }
    }

    /// Begins a transaction of a client whose home is here.
    pub fn begin(&mut self, placed: Placed, context: &mut Context<'_>) {
        self.clock += 1;
        let id = TransactionId { started: self.clock, coordinator: context.me, life: self.life, attempt: 0 };
        self.attempt(id, placed, context);
    }

    /// An attempt at a transaction.
    fn attempt(&mut self, id: TransactionId, placed: Placed, context: &mut Context<'_>) {
        let footprint = &placed.call.footprint;
        let alone = footprint.participants(context.me) == PartitionSet::one(context.me);
        if alone && !placed.grows && self.locks.is_free::<F>(footprint, context.me) {
            return self.commit_alone(placed.statement, placed.call, Vec::new(), context);
        }
        self.take_in(id, placed, context);
    }

    /// Puts a transaction into the table.
    fn enter(&mut self, id: TransactionId, statement: Statement, call: Call, grows: bool) -> Slot {
        let slot = self.free.pop().unwrap_or(Slot(self.table.len() as u32));
        if slot.index() == self.table.len() {
            self.table.push(None);
        }
        let (phase, round, is_victim) = (Phase::Blocked, 0, false);
        let (reads, computed) = (Reads::new(), Vec::new());
        let local = Local { id, statement, call, phase, round, grows, reads, computed, is_victim };
        self.table[slot.index()] = Some(local);
        self.by_id.insert(id, slot);
        slot
    }

    /// Requests what a transaction's footprint has here. If it has to wait, deadlocks are looked for.
    fn request(&mut self, slot: Slot, context: &Context<'_>) {
        let Some(local) = &mut self.table[slot.index()] else { return };
        let (id, round) = (local.id, local.round);
        if self.locks.request::<F>(slot, &local.call.footprint, context.me) {
            local.phase = Phase::Ready;
            self.ready.push_back(slot);
            return;
        }
        local.phase = Phase::Blocked;
        // One partition alone has no cycles but its own.
        if context.partitions > 1 {
            self.reports.by(self.now + REPORT_MICROSECONDS);
        }
        match self.lock_wait_max {
            Some(most) => {
                self.lock_waits.insert((self.now + lock_wait(most, id.attempt), id, round));
            }
            // Nobody waits for one that has asked for nothing before, so that it closes no cycle.
            None if round > 0 => self.break_cycle(slot, context),
            None => {}
        }
    }

    /// Takes onwards active transactions that can be executed, then what is ready, then what waits at the door, and what each makes
    /// so, until procedures have run so often here since this node was made. What is new comes after them (DET-35).
    pub fn run(&mut self, executions: u64, context: &mut Context<'_>) {
        while context.effects.executions.runs() < executions {
            match self.runnable.pop_front() {
                Some(Runnable::Advance(id)) => self.advance(id, context),
                Some(Runnable::Decide(id)) => self.decide(id, context),
                Some(Runnable::Commit { id, position, reads }) => {
                    self.take_decision(id, Some(position), reads, context);
                }
                None => match self.ready.pop_front() {
                    Some(slot) => self.run_ready(slot, context),
                    None if self.admit(context) => {}
                    None => return,
                },
            }
        }
    }

    /// Number of transactions under way that wait for nothing but the processor.
    pub fn runnable(&self) -> usize {
        self.runnable.len() + self.ready.len() + self.at_the_open_door()
    }

    /// Takes one onwards that has been granted the last of its locks.
    fn run_ready(&mut self, slot: Slot, context: &mut Context<'_>) {
        // The place may have been given to another one meanwhile.
        let local = self.table[slot.index()].as_mut().filter(|local| local.phase == Phase::Ready);
        let Some(local) = local else { return };
        local.phase = Phase::Active;
        let id = local.id;
        if id.coordinator != context.me {
            self.tell_granted(slot, context);
        } else if self.coordinated.contains_key(&id) {
            self.ask_next(id, context);
            self.advance(id, context);
        } else {
            self.run_alone(slot, context);
        }
    }

    /// A transaction of this partition alone has all that it asked for.
    fn run_alone(&mut self, slot: Slot, context: &mut Context<'_>) {
        let Some(local) = &mut self.table[slot.index()] else { return };
        let missing = match local.grows {
            true => {
                let Local { call, computed, .. } = local;
                self.executor.explore::<F>(call, &Received::default(), computed, context)
            }
            false => crate::execution::Explored::Complete,
        };
        match missing {
            crate::execution::Explored::Complete => {
                let Some(local) = self.leave(slot) else { return };
                self.commit_alone(local.statement, local.call, local.computed, context);
            }
            crate::execution::Explored::Lacks(missing) => {
                if self.grow(slot, &missing, context)
                    && let Some(local) = &self.table[slot.index()]
                {
                    match local.call.footprint.participants(context.me) == PartitionSet::one(context.me) {
                        true => self.request(slot, context),
                        false => self.coordinate(slot, context),
                    }
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
                self.refuse(Some(slot), error);
                false
            }
        }
    }

    /// Commits a transaction that nobody else has a part in. Its locks are released already, or it never needed any: nobody sees
    /// it half done.
    fn commit_alone(
        &mut self,
        statement: Statement,
        mut call: Call,
        computed: Vec<u64>,
        context: &mut Context<'_>,
    ) {
        self.clock += 1;
        let position = Position { epoch: Epoch(self.clock), origin: context.me, index: 0 };
        call.position = position;
        let received = Received::default();
        let verdict = self.executor.execute_computed::<F>(&call, &received, computed, context);
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
        for slot in self.granted.drain(..) {
            if let Some(local) = &mut self.table[slot.index()] {
                local.phase = Phase::Ready;
                self.ready.push_back(slot);
            }
        }
        Some(local)
    }

    /// Does what is due of locks that are waited for, and tells the detector what it is to be told.
    pub fn tick(&mut self, now: u64, context: &mut Context<'_>) {
        self.now = now;
        self.end_lock_waits(context);
        self.look_at_the_door(context);
        if self.reports.due().is_some_and(|at| at <= now) {
            self.report_waits(context);
        }
        if self.next_search.is_some_and(|at| at <= now) {
            self.detect(context);
        }
    }

    /// Begins the transactions again whose pauses are over, until procedures have run so often here since this node was made.
    pub fn begin_again(&mut self, executions: u64, context: &mut Context<'_>) {
        while context.effects.executions.runs() < executions
            && let Some(due) = self.retries.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let Retry { id, statement } = due.remove();
            if let Some(placed) = self.place(statement, context) {
                self.attempt(id, placed, context);
            }
        }
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
        let lock_wait = self.lock_waits.first().map(|(at, ..)| *at);
        [retry, lock_wait, self.reports.due(), self.next_search, self.door.next_look()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Moves the clock on to what was heard of, if it is behind.
    pub fn raise_clock(&mut self, clock: u64) {
        self.clock = self.clock.max(clock);
    }

    /// Moves the clock on to a snapshot, also for later lives.
    pub fn open_snapshot(&mut self, at: Position, request: Option<(RequestId, u64)>) {
        self.raise_clock(at.epoch.0);
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
        self.by_id.len() + self.committed + self.door.len() + self.retries.len()
    }

    /// The transactions that hold or ask for locks here, the oldest first, then those at the door, at most so many.
    pub(crate) fn waiting(&self, most: usize) -> Vec<Waiting<'_>> {
        let mut ids: Vec<(&TransactionId, &Slot)> = self.by_id.iter().collect();
        ids.sort_unstable();
        let oldest = ids.into_iter().filter_map(|(_, slot)| self.table[slot.index()].as_ref()).take(most);
        let told = oldest.map(|local| Waiting {
            name: local.id.to_string(),
            call: &local.call,
            phase: format!("{:?}", local.phase),
            awaits: self.coordinated.get(&local.id).map_or(PartitionSet::EMPTY, Coordinated::awaits),
        });
        let at_the_door = self.door.iter().map(|(id, placed)| Waiting {
            name: id.to_string(),
            call: &placed.call,
            phase: "AtTheDoor".to_owned(),
            awaits: PartitionSet::EMPTY,
        });
        told.chain(at_the_door).take(most).collect()
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
        lines.extend(self.door.iter().map(|(id, _)| (*id, format!("{id} AtTheDoor"))));
        lines.extend(self.retries.keys().map(|(_, id)| (*id, format!("{id} Paused"))));
        lines.sort();
        lines.into_iter().for_each(|(_, line)| out.push_str(&format!("{line}\n")));
    }
}

fn outcome_of(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Committed(output) => Ok(output),
        Verdict::Failed(error) => Err(error),
        Verdict::FootprintMissed => Err(Error::Invalid(
            "an access outside of what was locked: the procedure is not deterministic".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::lock_wait;

    #[test]
    fn waits_for_locks_double_but_for_those_that_are_long_already() {
        assert_eq!(
            [0, 1, 3, 9].map(|attempt| lock_wait(500_000, attempt)),
            [500_000, 1_000_000, 4_000_000, 4_000_000]
        );
        assert_eq!([0, 1].map(|attempt| lock_wait(5_000_000, attempt)), [5_000_000; 2]);
        assert_eq!(lock_wait(1, 99), 1_024, "not without end");
    }
}
