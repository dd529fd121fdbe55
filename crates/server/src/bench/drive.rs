//! The load generator: one thread that keeps requests outstanding (closed loop) or begins them at a set rate (open loop).

mod background;
mod early;
mod reads;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ordain_db::error::{Error, Outcome};
use ordain_db::limits::SESSION_WINDOW_MAX;
use ordain_db::message::{ClientId, ClientRequest, Operation, Reply, Request, RequestId};
use ordain_db::position::PartitionId;
use ordain_db::procedure::{Catalog, Declared, Footprint, ProcedureId};
use ordain_workload::{Call, Generator, Mode, Part, Totals, Workload};

pub use self::background::BackgroundMeasured;
use self::background::Sources;
pub use self::early::Answer;
use self::early::EarlyCall;
use self::reads::Reads;
use crate::caller::random_number;
use crate::inbox::NotTaken;
use crate::port::Port;
use crate::replies::ReplySink;

/// Most requests that are sent to a partition at once.
const BATCH_REQUESTS_MAX: usize = 256;

/// How long the generator waits for a reply before it looks at the clock again.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long it waits when a partition takes no more.
const PUSHED_BACK: Duration = Duration::from_micros(200);

/// A run without any reply for this long has failed.
const STUCK: Duration = Duration::from_secs(30);

/// What the load is.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Requests kept outstanding over all homes.
    Closed(u32),
    /// Requests per second.
    Open(f64),
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// A warm-up, and then the time that is measured.
    Time(Duration, Duration),
    /// This many transactions in one fixed order, all measured.
    Transactions(u64),
}

/// What was measured.
pub struct Measured {
    /// Wall time of the measured part.
    pub elapsed: Duration,
    /// Transactions that committed in it.
    pub committed: u64,
    /// Transactions that their logic aborted in it.
    pub aborted: u64,
    /// Requests that gave up in it, since their footprint changed under every restart.
    pub contended: u64,
    /// Requests that ended with another error in it.
    pub failed: u64,
    /// The first such error.
    pub first_failure: Option<Error>,
    /// Latency in microseconds of requests that were answered in it.
    pub latency: Histogram<u64>,
    /// The time in microseconds until the outcome was known of those that were answered before that.
    pub computed: Histogram<u64>,
    /// The same for each procedure that was called.
    pub procedures: BTreeMap<ProcedureId, OfProcedure>,
    /// CPU time of the partitions in it.
    pub cpu: Duration,
    /// CPU time of this generator in it.
    pub load_cpu: Duration,
    /// How all calls ended, the warm-up included: for the checker.
    pub totals: Totals,
    /// Requests of an open loop that were due in it and had not begun when it ended.
    pub not_begun: u64,
    /// Times that a partition took no more requests, and requests that were refused as busy.
    pub pushed_back: u64,
    /// What was called in the background, if the workload does so.
    pub background: Option<BackgroundMeasured>,
}

/// What was measured of the calls of one procedure.
pub struct OfProcedure {
    /// Calls that committed.
    pub committed: u64,
    /// Calls that their logic aborted.
    pub aborted: u64,
    /// Calls that gave up, since their footprint changed under every restart.
    pub contended: u64,
    /// Latency in microseconds.
    pub latency: Histogram<u64>,
}

impl OfProcedure {
    fn new() -> Result<OfProcedure, String> {
        Ok(OfProcedure { committed: 0, aborted: 0, contended: 0, latency: new_histogram()? })
    }
}

fn new_histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, 3_600_000_000, 3).map_err(|error| error.to_string())
}

#[derive(Default)]
struct Arrived {
    replies: Mutex<(Vec<Reply>, bool)>,
    more: Condvar,
}

impl ReplySink for Arrived {
    fn deliver(&self, replies: Vec<Reply>) {
        let mut arrived = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        if arrived.0.is_empty() {
            arrived.0 = replies;
            drop(arrived);
            self.more.notify_one();
        } else {
            arrived.0.extend(replies);
        }
    }

    fn end(&self) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.more.notify_one();
    }
}

impl Arrived {
    fn take(&self, patience: Duration, replies: &mut Vec<Reply>) -> Result<(), String> {
        let mut arrived = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        if arrived.0.is_empty() && !arrived.1 && !patience.is_zero() {
            let waited = self.more.wait_timeout(arrived, patience);
            arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut arrived.0, replies);
        if arrived.1 { Err("the cluster has stopped; see its log".to_owned()) } else { Ok(()) }
    }
}

/// What an ordered request does.
#[derive(Clone, Copy)]
enum Asked {
    Call(ProcedureId),
    /// It is answered when it is ordered; whether it was.
    CallEarly(ProcedureId, bool),
    /// What became of the early call with this number.
    Outcome(u64),
    OpenSnapshot,
}

/// An ordered request under way.
struct UnderWay {
    asked: Asked,
    /// When it began, or was meant to begin, in nanoseconds since the start.
    began: u64,
    done: bool,
}

/// The requests to one home partition.
struct Home {
    client: ClientId,
    generator: Box<dyn Generator>,
    /// From the oldest without an answer on.
    window: VecDeque<UnderWay>,
    /// The sequence number of `window[0]`.
    first: u64,
    /// Calls without an answer, those of snapshots included.
    outstanding: u32,
    /// Calls that are answered early, whose outcome is not known.
    uncomputed: u32,
    /// Those of them whose outcome was not asked for, be they answered or not.
    unasked: usize,
    /// The numbers of those that are answered, and to be asked for now.
    questions: Vec<u64>,
}

/// See the [module](self).
pub struct Driver<'a> {
    port: &'a dyn Port,
    catalog: &'a Catalog,
    homes: Vec<Home>,
    arrived: Arc<Arrived>,
    number: u64,
    answer: Answer,
    reads: Reads,
    background: Sources,
    started: Instant,
    /// When an answer last came, or nothing was under way, in nanoseconds since the start.
    answered_at: u64,
    measuring: bool,
    measured: Measured,
}

impl<'a> Driver<'a> {
    /// A driver with a generator for each home partition, or with a single one for all if the order is to be fixed.
    ///
    /// # Errors
    /// When the workload has no calls for a partition.
    pub fn new(
        port: &'a dyn Port,
        workload: &'a dyn Workload,
        seed: u64,
        one_order: bool,
        answer: Answer,
    ) -> Result<Driver<'a>, String> {
        let number = random_number().map_err(|error| error.to_string())?;
        let partitions = port.partitions();
        let mut homes = Vec::new();
        for home in (0..if one_order { 1 } else { partitions }).map(PartitionId) {
            let part = if one_order { Part::WHOLE } else { Part::of(home, partitions) };
            let generator = workload
                .generator(seed.wrapping_add(u64::from(home.0)), u32::from(home.0), part)
                .map_err(|error| error.to_string())?;
            let client = ClientId { home, number };
            homes.push(Home {
                client,
                generator,
                window: VecDeque::new(),
                first: 0,
                outstanding: 0,
                uncomputed: 0,
                unasked: 0,
                questions: Vec::new(),
            });
        }
        let arrived = Arc::new(Arrived::default());
        let background = Sources::new(workload, seed, partitions)?;
        for number in [number, background.number] {
            port.open(number, Arc::<Arrived>::clone(&arrived) as Arc<dyn ReplySink>);
        }
        let measured = Measured {
            elapsed: Duration::ZERO,
            committed: 0,
            aborted: 0,
            contended: 0,
            failed: 0,
            first_failure: None,
            latency: new_histogram()?,
            computed: new_histogram()?,
            procedures: procedures_of(workload.catalog())?,
            cpu: Duration::ZERO,
            load_cpu: Duration::ZERO,
            totals: Totals::new(),
            not_begun: 0,
            pushed_back: 0,
            background: background.measured(),
        };
        let catalog = workload.catalog();
        let started = Instant::now();
        Ok(Driver {
            port,
            catalog,
            homes,
            arrived,
            number,
            answer,
            reads: Reads::default(),
            background,
            started,
            answered_at: 0,
            measuring: false,
            measured,
        })
    }

    /// Drives the load to its end and waits for the last answer.
    ///
    /// # Errors
    /// When the cluster stops or answers nothing any more.
    pub fn run(mut self, load: Load, length: Length) -> Result<Measured, String> {
        self.started = Instant::now();
        match (length, load) {
            (Length::Transactions(count), _) => self.run_in_order(count, load)?,
            (Length::Time(warm_up, time), Load::Closed(clients)) => {
                self.run_closed(clients, warm_up)?;
                let begun = self.begin_measuring()?;
                self.run_closed(clients, time)?;
                self.end_measuring(begun)?;
            }
            (Length::Time(warm_up, time), Load::Open(rate)) => {
                self.run_open(rate, warm_up)?;
                let begun = self.begin_measuring()?;
                self.run_open(rate, time)?;
                self.end_measuring(begun)?;
            }
        }
        self.wait_for_all()?;
        self.port.close(self.number);
        self.port.close(self.background.number);
        Ok(self.measured)
    }

    fn begin_measuring(&mut self) -> Result<(Instant, Duration, u64), String> {
        self.measuring = true;
        Ok((Instant::now(), self.port.cpu()?, crate::cpu::thread_cpu_nanoseconds()))
    }

    fn end_measuring(&mut self, begun: (Instant, Duration, u64)) -> Result<(), String> {
        self.measuring = false;
        let (start, cpu, load_cpu) = begun;
        self.measured.elapsed = start.elapsed();
        self.measured.cpu = self.port.cpu()?.saturating_sub(cpu);
        let load_cpu = crate::cpu::thread_cpu_nanoseconds() - load_cpu;
        self.measured.load_cpu = Duration::from_nanos(load_cpu);
        Ok(())
    }

    fn run_closed(&mut self, clients: u32, time: Duration) -> Result<(), String> {
        let end = Instant::now() + time;
        let homes = self.homes.len() as u32;
        let share_of = |home: usize| clients / homes + u32::from((home as u32) < clients % homes);
        while Instant::now() < end {
            self.send_background()?;
            let began = self.now();
            for home in 0..self.homes.len() {
                while self.homes[home].outstanding < share_of(home) {
                    let wanted = (share_of(home) - self.homes[home].outstanding) as usize;
                    if !self.send(home, wanted, |_| began)? {
                        break;
                    }
                }
            }
            self.take_replies(self.until_background(PATIENCE))?;
        }
        Ok(())
    }

    fn run_open(&mut self, rate: f64, time: Duration) -> Result<(), String> {
        let interval = 1e9 / rate;
        let from = self.now();
        let due_at = |request: u64| from + (request as f64 * interval) as u64;
        let end = from + time.as_nanos() as u64;
        let mut next = 0_u64;
        while self.now() < end {
            self.send_background()?;
            let now = self.now();
            while due_at(next) <= now {
                let home = (next % self.homes.len() as u64) as usize;
                if !self.send(home, 1, |_| due_at(next))? {
                    break;
                }
                next += 1;
            }
            let wait = Duration::from_nanos(due_at(next).saturating_sub(self.now()));
            self.take_replies(self.until_background(wait.min(PATIENCE)))?;
        }
        if self.measuring {
            self.measured.not_begun = ((time.as_nanos() as f64 / interval) as u64).saturating_sub(next);
        }
        Ok(())
    }

    /// Sends calls one after the other through one sequencer. Around a dependent one nothing else is under way: its
    /// reconnaissance takes time that depends on the cluster, and would change the order.
    fn run_in_order(&mut self, count: u64, load: Load) -> Result<(), String> {
        let begun = self.begin_measuring()?;
        let outstanding = match load {
            Load::Closed(clients) => clients,
            Load::Open(_) => 1024,
        };
        for _ in 0..count {
            let call = self.homes[0].generator.next();
            let dependent = call.mode == Mode::Ordered && self.depends_on_data(&call);
            while self.homes[0].outstanding >= if dependent { 1 } else { outstanding } || self.room(0) == 0 {
                self.take_replies(PATIENCE)?;
            }
            let began = self.now();
            if let Some(request) = self.begin(0, call, began) {
                self.push(0, vec![request])?;
            }
            self.open_snapshot()?;
            while dependent && self.homes[0].waits() {
                self.take_replies(PATIENCE)?;
            }
        }
        self.wait_for_all()?;
        self.end_measuring(begun)
    }

    /// Whether a call's keys are found by reconnaissance.
    fn depends_on_data(&self, call: &Call) -> bool {
        let mut footprint = Footprint::default();
        let Catalog { schema, procedures } = self.catalog;
        let partitions = self.port.partitions();
        let declared =
            procedures.declare(call.procedure, &call.arguments, schema, partitions, &mut footprint);
        declared != Ok(Declared::Complete)
    }

    fn wait_for_all(&mut self) -> Result<(), String> {
        while self.waits() {
            self.take_replies(PATIENCE)?;
        }
        Ok(())
    }

    /// Whether something is under way.
    fn waits(&self) -> bool {
        self.background.wait() || self.homes.iter().any(Home::waits)
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// How many more ordered calls a home's session takes. One place is kept for the opening of a snapshot, and one for the question
    /// after each call that is answered early.
    fn room(&self, home: usize) -> usize {
        let Home { window, unasked, .. } = &self.homes[home];
        let free = (SESSION_WINDOW_MAX as usize - 1).saturating_sub(window.len() + unasked);
        match self.answer {
            Answer::Ordered => free / 2,
            Answer::Computed => free,
        }
    }

    /// Sends new requests to a home; `false` when no more can be sent now.
    fn send(&mut self, home: usize, wanted: usize, began: impl Fn(usize) -> u64) -> Result<bool, String> {
        let count = wanted.min(BATCH_REQUESTS_MAX).min(self.room(home));
        if count == 0 {
            return Ok(false);
        }
        let mut requests = Vec::with_capacity(count);
        for index in 0..count {
            let call = self.homes[home].generator.next();
            requests.extend(self.begin(home, call, began(index)));
        }
        if !requests.is_empty() {
            self.push(home, requests)?;
        }
        self.open_snapshot()?;
        Ok(true)
    }

    /// Begins a call: the request to send, or nothing for one that waits for a snapshot.
    fn begin(&mut self, home: usize, call: Call, began: u64) -> Option<ClientRequest> {
        self.homes[home].outstanding += 1;
        match call.mode {
            Mode::Ordered => {
                let (operation, asked) = self.operation(home, call);
                Some(self.ordered(home, operation, asked, began))
            }
            Mode::Snapshot => {
                self.reads.wait(home, call, began);
                None
            }
        }
    }

    fn ordered(&mut self, home: usize, operation: Operation, asked: Asked, began: u64) -> ClientRequest {
        let home = &mut self.homes[home];
        let sequence = home.first + home.window.len() as u64;
        home.window.push_back(UnderWay { asked, began, done: false });
        let id = RequestId { client: home.client, sequence };
        ClientRequest::Ordered(Request { id, acknowledged: home.first, operation })
    }

    fn push(&mut self, home: usize, requests: Vec<ClientRequest>) -> Result<(), String> {
        self.push_to(self.homes[home].client.home, requests)
    }

    fn push_to(&mut self, to: PartitionId, mut requests: Vec<ClientRequest>) -> Result<(), String> {
        loop {
            match self.port.request(to, requests) {
                Ok(()) => return Ok(()),
                Err(NotTaken::Stopped(_)) => return Err(format!("{to} has stopped; see its log")),
                Err(NotTaken::Full(back)) => {
                    requests = back;
                    self.measured.pushed_back += 1;
                    self.take_replies(PUSHED_BACK)?;
                }
            }
        }
    }

    /// Takes the answers that have come.
    ///
    /// # Errors
    /// When the cluster has stopped, or has not answered for long although something is under way.
    fn take_replies(&mut self, patience: Duration) -> Result<(), String> {
        let mut replies = Vec::new();
        let taken = self.arrived.take(patience, &mut replies);
        let now = self.now();
        let count = replies.len();
        for Reply { request, outcome } in replies {
            self.take_reply(request, outcome, now);
        }
        self.send_reads()?;
        self.ask_outcomes()?;
        for home in &mut self.homes {
            while home.window.front().is_some_and(|under_way| under_way.done) {
                home.window.pop_front();
                home.first += 1;
            }
        }
        taken?;
        if count > 0 || !self.waits() {
            self.answered_at = now;
        } else if now > self.answered_at + STUCK.as_nanos() as u64 {
            return Err(format!("no answer for {STUCK:?}: the cluster is stuck, or has too many --clients"));
        }
        Ok(())
    }

    fn take_reply(&mut self, request: RequestId, outcome: Outcome, now: u64) {
        if let Some(read) = self.reads.take(request) {
            return self.end(read.home, read.call.procedure, read.began, outcome, now);
        }
        if request.client.number == self.background.number {
            return self.background_ended(request, outcome);
        }
        let found = self.homes.iter_mut().enumerate().find(|(_, home)| home.client == request.client);
        let Some((place, home)) = found else { return };
        let index = request.sequence.checked_sub(home.first).map(|index| index as usize);
        let Some(under_way) = index.and_then(|index| home.window.get_mut(index)) else { return };
        if std::mem::replace(&mut under_way.done, true) {
            return;
        }
        match (under_way.asked, under_way.began) {
            (Asked::Call(procedure), began) => self.end(place, procedure, began, outcome, now),
            (Asked::CallEarly(procedure, is_answered), began) => {
                let call = EarlyCall { home: place, sequence: request.sequence, procedure, began };
                self.answered_early(&call, is_answered, outcome, now);
            }
            (Asked::Outcome(of), _) => self.computed(place, of, outcome, now),
            (Asked::OpenSnapshot, _) => self.opened(outcome, now),
        }
    }

    /// Counts a call that has ended with its answer.
    fn end(&mut self, home: usize, procedure: ProcedureId, began: u64, outcome: Outcome, now: u64) {
        self.answered(home, procedure, began, now);
        self.count(procedure, outcome);
    }

    /// Notes the answer to a call.
    fn answered(&mut self, home: usize, procedure: ProcedureId, began: u64, now: u64) {
        self.homes[home].outstanding -= 1;
        let of_procedure = self.measured.procedures.get_mut(&procedure).filter(|_| self.measuring);
        if let Some(of_procedure) = of_procedure {
            let latency = now.saturating_sub(began) / 1000;
            self.measured.latency.saturating_record(latency);
            of_procedure.latency.saturating_record(latency);
        }
    }

    /// Counts what became of a call.
    fn count(&mut self, procedure: ProcedureId, outcome: Outcome) {
        let of_procedure = self.measured.procedures.get_mut(&procedure).filter(|_| self.measuring);
        let mut unmeasured = (0, 0, 0);
        let (committed, aborted, contended) = match of_procedure {
            Some(of_procedure) => {
                (&mut of_procedure.committed, &mut of_procedure.aborted, &mut of_procedure.contended)
            }
            None => (&mut unmeasured.0, &mut unmeasured.1, &mut unmeasured.2),
        };
        let totals = self.measured.totals.of_mut(self.catalog.procedures.name(procedure));
        let measured = u64::from(self.measuring);
        match outcome {
            Ok(_) => {
                totals.committed += 1;
                self.measured.committed += measured;
                *committed += 1;
            }
            Err(Error::Aborted(_)) => {
                totals.aborted += 1;
                self.measured.aborted += measured;
                *aborted += 1;
            }
            // Refused before it was ordered: the loop makes another instead.
            Err(Error::Busy(_)) => self.measured.pushed_back += 1,
            // It had no effect: the loop makes another, and the report tells.
            Err(Error::Contended) => {
                self.measured.contended += measured;
                *contended += 1;
            }
            Err(error) => {
                self.measured.failed += 1;
                self.measured.first_failure.get_or_insert(error);
            }
        }
    }
}

fn procedures_of(catalog: &Catalog) -> Result<BTreeMap<ProcedureId, OfProcedure>, String> {
    let names = catalog.procedures.names().enumerate();
    names.map(|(number, _)| Ok((ProcedureId(number as u16), OfProcedure::new()?))).collect()
}
