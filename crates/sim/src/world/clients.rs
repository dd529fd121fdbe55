//! Simulated clients: each keeps some calls outstanding, and sends a request again until it is answered.

use std::collections::BTreeMap;

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, ClientRequest, Operation, Request, RequestId};
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_workload::random::{Chance, Random};
use ordain_workload::{Call, Generator, Part, Workload};

use crate::history::{Invocation, Observed, PageRead};
use crate::plan::{ClientPlan, Plan, WorkloadPlan};
use crate::sql::{FIRST_SCAN, SqlClient};
use crate::time::{Nanoseconds, SECOND};

/// How often a client doubles its patience with a request.
const PATIENCE_DOUBLINGS_MAX: u32 = 8;

/// The longest that it waits before it sends a request again, unless it was told to wait longer from the beginning.
const PATIENCE_MAX: Nanoseconds = 20 * SECOND;

/// Background calls that a client leaves unanswered before it makes no more.
const BACKGROUND_OUTSTANDING_MAX: u64 = 4_096;

/// A request on its way to a node.
pub(crate) type Sent = (NodeId, ClientRequest);

/// What a client wants of the world.
#[derive(Default)]
pub(crate) struct Wishes {
    /// Requests to send, with the node that they go to.
    pub(crate) sends: Vec<Sent>,
    /// When each of these requests is to be sent again if it is not answered.
    pub(crate) retries: Vec<(Nanoseconds, u64)>,
    /// When the client makes its next call.
    pub(crate) wake_at: Option<Nanoseconds>,
    /// How long the call took that was answered, and what it was; nothing of background calls.
    pub(crate) ended: Option<(Nanoseconds, Option<Operation>)>,
    /// How long the early call took until it was acknowledged, if it is now.
    pub(crate) acknowledged: Option<Nanoseconds>,
    /// Requests that were sent because of an answer.
    pub(crate) invoked: Vec<(RequestId, Invocation)>,
    /// The page of a snapshot that came for a session.
    pub(crate) page: Option<PageRead>,
    /// What the client learnt by a transaction of its session that is over.
    pub(crate) observed: Option<Observed>,
}

/// Where the calls of a client come from.
pub(super) enum Source {
    /// From a generator of the workload.
    Generator(Box<dyn Generator>),
    /// From a session of SQL.
    Session(Box<SqlClient>),
}

struct Outstanding {
    request: Request,
    invoked_at: Nanoseconds,
    attempts: u32,
    /// Whether it is an early call that was acknowledged: what became of it is being asked for.
    acknowledged: bool,
}

/// One client.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    /// The replica to which it turns first.
    pub(super) replica: ReplicaId,
    pub(super) source: Source,
    random: Random,
    outstanding: BTreeMap<u64, Outstanding>,
    /// Those of them that are early calls which were acknowledged, or ask what became of one: they let the client go on.
    asking: u64,
    /// See [`ClientPlan::early`]. Drawn apart from all else.
    early: Option<(Chance, Random)>,
    next_sequence: u64,
    /// Calls that it may still make.
    left: u64,
    /// Whether it makes the workload's background calls.
    pub(crate) is_background: bool,
    /// See [`ClientPlan::think`] and [`ClientPlan::window`].
    think: Nanoseconds,
    window: u64,
    /// Whether a wake-up is planned.
    waking: bool,
    pub(crate) answered: u64,
}

impl Client {
    /// The clients of a plan.
    pub(crate) fn all(plan: &Plan, workload: &dyn Workload) -> Result<Vec<Client>, Error> {
        let ClientPlan { count, transactions, .. } = plan.clients;
        let share = |client: u16| {
            let (count, client) = (u64::from(count), u64::from(client));
            transactions / count + u64::from(client < transactions % count)
        };
        let mut clients = Vec::new();
        for number in 0..count {
            let part = Part::of(PartitionId(number % plan.partitions), plan.partitions);
            let source = match &plan.workload {
                WorkloadPlan::Sql(options) => {
                    let (catalog, partitions) = (workload.catalog(), plan.partitions);
                    let client = SqlClient::new(options, catalog, partitions, plan.seed, u64::from(number))?;
                    Source::Session(Box::new(client))
                }
                _ => Source::Generator(workload.generator(plan.seed, u32::from(number), part)?),
            };
            clients.push(Client { left: share(number), ..Client::new(number, source, plan) });
        }
        for number in count..plan.callers() {
            let home = PartitionId((number - count) % plan.partitions);
            let part = Part::of(home, plan.partitions);
            let Some(background) = workload.background(plan.seed, u32::from(number), part)? else {
                return Err(Error::Invalid("the workload makes no background calls".to_owned()));
            };
            let client = Client::new(number, Source::Generator(background.generator), plan);
            clients.push(Client {
                id: ClientId { home, ..client.id },
                left: u64::MAX,
                is_background: true,
                early: None,
                // Pauses are even, up to twice their mean.
                think: (2.0 * SECOND as f64 / background.calls_per_second) as Nanoseconds,
                window: BACKGROUND_OUTSTANDING_MAX,
                ..client
            });
        }
        Ok(clients)
    }

    /// A client with a number that may make no calls yet.
    fn new(number: u16, source: Source, plan: &Plan) -> Client {
        let home = PartitionId(number % plan.partitions);
        Client {
            id: ClientId { home, number: u64::from(number) },
            replica: ReplicaId(number / plan.partitions % plan.replicas),
            source,
            random: Random::new(plan.seed, "client", &[u64::from(number)]),
            outstanding: BTreeMap::new(),
            asking: 0,
            early: plan.clients.early.map(|chance| {
                (chance, Random::new(plan.seed, "early answers of a client", &[u64::from(number)]))
            }),
            next_sequence: 0,
            left: 0,
            is_background: false,
            think: plan.clients.think,
            window: plan.clients.window,
            waking: false,
            answered: 0,
        }
    }

    /// See [`ClientPlan::think`].
    pub(crate) fn think(&self) -> Nanoseconds {
        self.think
    }

    /// From now on it makes no calls but those that it has made.
    pub(crate) fn make_no_more(&mut self) {
        self.left = 0;
    }

    /// The node that it is nearest to.
    pub(crate) fn node(&self) -> NodeId {
        NodeId { partition: self.id.home, replica: self.replica }
    }

    /// From now on it turns to this replica first.
    pub(crate) fn turn_to(&mut self, replica: ReplicaId) {
        self.replica = replica;
    }

    /// Whether all its calls were made and answered.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.outstanding.is_empty() && !self.is_in_session()
    }

    /// Whether a transaction of its session is under way.
    fn is_in_session(&self) -> bool {
        matches!(&self.source, Source::Session(session) if !session.is_resting())
    }

    /// Its requests that were not answered.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.outstanding.values().map(|outstanding| outstanding.request.id)
    }

    /// When it made the first of its calls that were not answered; `None` if there is none, or calls are made in the background.
    pub(crate) fn oldest_call(&self) -> Option<Nanoseconds> {
        let calls = self.outstanding.values().filter(|_| !self.is_background);
        calls.map(|outstanding| outstanding.invoked_at).min()
    }

    /// Makes a call, or as many as the window has room for when the client never pauses.
    pub(crate) fn wake(
        &mut self,
        now: Nanoseconds,
        plan: &Plan,
        invoked: &mut Vec<(RequestId, Invocation)>,
    ) -> Wishes {
        self.waking = false;
        let mut wishes = Wishes::default();
        while self.has_room() {
            let Call { procedure, arguments, .. } = match &mut self.source {
                Source::Generator(generator) => generator.next(),
                Source::Session(session) => {
                    self.left -= 1;
                    session.begin(now);
                    self.go_on_in_session(now, plan, &mut wishes);
                    break;
                }
            };
            let early = self.early.as_mut().is_some_and(|(chance, random)| random.happens(*chance));
            let operation = match early {
                true => Operation::CallEarly { procedure, arguments },
                false => Operation::Call { procedure, arguments },
            };
            self.left -= 1;
            let sequence = self.invoke(now, operation, invoked);
            self.send(now, sequence, plan, &mut wishes);
            if self.think > 0 {
                break;
            }
        }
        self.plan_wake(now, &mut wishes);
        invoked.append(&mut wishes.invoked);
        wishes
    }

    /// Makes one call more, which comes from somewhere else than the workload.
    pub(crate) fn call(
        &mut self,
        now: Nanoseconds,
        plan: &Plan,
        operation: Operation,
        invoked: &mut Vec<(RequestId, Invocation)>,
    ) -> (RequestId, Wishes) {
        let mut wishes = Wishes::default();
        let sequence = self.invoke(now, operation, invoked);
        self.send(now, sequence, plan, &mut wishes);
        (RequestId { client: self.id, sequence }, wishes)
    }

    /// Gives a call its number, from which on it is outstanding.
    pub(super) fn invoke(
        &mut self,
        now: Nanoseconds,
        operation: Operation,
        invoked: &mut Vec<(RequestId, Invocation)>,
    ) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let id = RequestId { client: self.id, sequence };
        let invocation =
            Invocation { operation: operation.clone(), invoked_at: now, replies: Vec::new(), attempts: 0 };
        invoked.push((id, invocation));
        let request = Request { id, acknowledged: 0, operation };
        self.outstanding
            .insert(sequence, Outstanding { request, invoked_at: now, attempts: 0, acknowledged: false });
        sequence
    }

    /// Whether it may make a call.
    fn has_room(&self) -> bool {
        let window = self.outstanding.len() as u64 - self.asking < self.window;
        self.left > 0 && window && !self.is_in_session()
    }

    pub(super) fn plan_wake(&mut self, now: Nanoseconds, wishes: &mut Wishes) {
        if self.has_room() && !self.waking {
            self.waking = true;
            wishes.wake_at = Some(now + self.random.below(self.think + 1));
        }
    }

    /// Sends a request that waits for its answer, the first time or again.
    pub(super) fn send(&mut self, now: Nanoseconds, sequence: u64, plan: &Plan, wishes: &mut Wishes) {
        let acknowledged = self.outstanding.keys().next().copied().unwrap_or(self.next_sequence);
        let partition = match plan.clients.wanders {
            true => PartitionId(self.random.below(u64::from(plan.partitions)) as u16),
            false => self.id.home,
        };
        let Some(outstanding) = self.outstanding.get_mut(&sequence).filter(|call| !call.acknowledged) else {
            return;
        };
        // Its own replica may be gone.
        if plan.replicas > 1 && outstanding.attempts > 0 {
            self.replica = ReplicaId(self.random.below(u64::from(plan.replicas)) as u16);
        }
        outstanding.attempts += 1;
        let entry = NodeId { partition, replica: self.replica };
        outstanding.request.acknowledged = acknowledged;
        wishes.sends.push((entry, ClientRequest::Ordered(outstanding.request.clone())));
        if plan.clients.timeout > 0 {
            // Ever more patient: clients that all send again in a fixed time bury a slow node under what it did already.
            let doublings = (outstanding.attempts - 1).min(PATIENCE_DOUBLINGS_MAX);
            let longest = PATIENCE_MAX.max(plan.clients.timeout);
            let patience = (plan.clients.timeout << doublings).min(longest);
            let patience = patience + self.random.below(patience / 2 + 1);
            wishes.retries.push((now + patience, sequence));
        }
    }

    /// Sends a request again whose time is over, unless it was answered.
    pub(crate) fn retry(&mut self, now: Nanoseconds, sequence: u64, plan: &Plan) -> Wishes {
        let mut wishes = Wishes::default();
        match sequence {
            FIRST_SCAN.. => self.send_scan(now, sequence, plan, &mut wishes),
            _ => self.send(now, sequence, plan, &mut wishes),
        }
        wishes
    }

    /// Takes an answer. One that says busy leaves the request to its next attempt.
    pub(crate) fn reply(
        &mut self,
        now: Nanoseconds,
        sequence: u64,
        outcome: &Outcome,
        plan: &Plan,
    ) -> Wishes {
        let mut wishes = Wishes::default();
        if sequence >= FIRST_SCAN {
            self.page(now, sequence, outcome, plan, &mut wishes);
            return wishes;
        }
        if matches!(outcome, Err(Error::Busy(_))) {
            if plan.clients.timeout == 0 && self.outstanding.contains_key(&sequence) {
                wishes.retries.push((now + plan.clients.pause, sequence));
            }
            return wishes;
        }
        if let Some(outstanding) = self.outstanding.get_mut(&sequence)
            && matches!(outstanding.request.operation, Operation::CallEarly { .. })
            && outcome.is_ok()
        {
            if !std::mem::replace(&mut outstanding.acknowledged, true) {
                wishes.acknowledged = Some(now - outstanding.invoked_at);
                self.ask(now, sequence, plan, &mut wishes);
            }
            return wishes;
        }
        if let Some(ended) = self.remove(sequence) {
            self.answered += 1;
            let operation = (!self.is_background).then_some(ended.request.operation);
            wishes.ended = Some((now - ended.invoked_at, operation));
            if let Source::Session(session) = &mut self.source {
                session.answer(outcome.clone());
                self.go_on_in_session(now, plan, &mut wishes);
            }
            self.plan_wake(now, &mut wishes);
        }
        wishes
    }

    /// Asks what became of an early call that is acknowledged, and goes on meanwhile.
    fn ask(&mut self, now: Nanoseconds, of: u64, plan: &Plan, wishes: &mut Wishes) {
        let question = self.invoke(now, Operation::AskOutcome { of }, &mut wishes.invoked);
        self.asking += 2;
        self.send(now, question, plan, wishes);
        self.plan_wake(now, wishes);
    }

    /// Takes what has ended out of what is outstanding: a request, or with the answer to a question the call that it is about.
    fn remove(&mut self, sequence: u64) -> Option<Outstanding> {
        let ended = self.outstanding.remove(&sequence)?;
        let Operation::AskOutcome { of } = ended.request.operation else { return Some(ended) };
        self.asking -= 2;
        self.outstanding.remove(&of)
    }
}
