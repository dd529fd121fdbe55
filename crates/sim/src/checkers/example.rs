//! Histories for the tests of the checkers: made by hand, or by a small cluster.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ordain_db::data::{Direction, Key, KeyRange, Owner};
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::execution::trace::Version;
use ordain_db::execution::{Executed, Scope};
use ordain_db::failpoint::Failpoints;
use ordain_db::hash::key_hash;
use ordain_db::message::{
    ClientId, ClientRequest, Message, Operation, Ordered, Page, Request, RequestId, Verdict, Work,
};
use ordain_db::node::{AnyNode, Event, NodeConfiguration, Outbox, node_with};
use ordain_db::position::{Entry, Epoch, NodeId, PartitionId, Position};
use ordain_db::procedure::{ProcedureId, encode_arguments};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::bank::{AccountName, Arguments, Bank, Options};
use ordain_workload::random::Random;
use ordain_workload::{Part, SnapshotReader, Totals, Workload};

use crate::history::{Gauge, History, Invocation, SnapshotRead};

/// Two sites of ten accounts with 100 cents each; half of the transfers are between sites.
pub(crate) fn bank() -> Bank {
    let options = Options {
        sites: 2,
        accounts: 20,
        balance: 100,
        amount_max: 60,
        multi_partition_percent: 50.0,
        ..Options::default()
    };
    Bank::new(options).unwrap()
}

pub(crate) fn position(epoch: u64, origin: u16, index: u32) -> Position {
    Position { epoch: Epoch(epoch), origin: PartitionId(origin), index }
}

/// A request of a client that is at home at p0.
pub(crate) fn request(client: u64, sequence: u64) -> RequestId {
    RequestId { client: ClientId { home: PartitionId(0), number: client }, sequence }
}

/// An account with its balance.
pub(crate) fn version(site: u16, id: u32, balance: i64) -> Version {
    let bank = bank();
    let accounts = bank.catalog().schema.table_named("accounts").unwrap();
    let key = accounts.key((i32::from(site), i64::from(id))).unwrap();
    let row = accounts.row((balance,)).unwrap();
    (Bytes::copy_from_slice(key.bytes()), Some(Bytes::from(row)))
}

/// The encoded arguments of a transfer, which is procedure 0.
pub(crate) fn transfer(from: (u16, u32), to: (u16, u32), amount: i64) -> Bytes {
    let account = |(site, id)| AccountName { site, id };
    let arguments = Arguments { from: account(from), to: account(to), amount };
    Bytes::from(encode_arguments(&arguments).unwrap())
}

/// A history of one partition that is made by hand. What a transaction reads and writes is what the test says.
pub(crate) struct Example {
    pub(crate) history: History,
}

impl Example {
    pub(crate) fn new() -> Example {
        Example { history: empty(EngineKind::Serial, 1) }
    }

    fn place(&mut self, position: Position, ordered: Ordered, run: Option<Executed>) {
        self.history.log.insert(position, ordered);
        self.history.executed.extend(run.map(|run| (position, vec![(PartitionId(0), run)])));
    }

    /// Adds the transaction number n: the request c1@p0#n at e1.p0.n, which committed. Accounts of site 0 with balances.
    pub(crate) fn transaction(
        &mut self,
        reads: &[(u32, i64)],
        writes: &[(u32, i64)],
    ) -> (Position, Executed) {
        let number = self.history.requests.len() as u64;
        let (position, request) = (position(1, 0, number as u32), request(1, number));
        let (procedure, arguments) = (ProcedureId(0), transfer((0, 0), (0, 1), 1));
        let versions = |accounts: &[(u32, i64)]| -> Vec<Version> {
            accounts.iter().map(|(id, balance)| version(0, *id, *balance)).collect()
        };
        let verdict = Verdict::Committed(Bytes::new());
        let (scope, reads, writes) = (Scope::Whole, versions(reads), versions(writes));
        let run = Executed { position, request, verdict, scope, reads, writes };
        let work = Work::Call { procedure, arguments: arguments.clone(), reconnoitred: None };
        self.place(position, Ordered { request, acknowledged: 0, work }, Some(run.clone()));
        let invocation = Invocation {
            operation: Operation::Call { procedure, arguments },
            invoked_at: 10 * number,
            replies: vec![(10 * number + 5, Ok(Bytes::new()))],
            attempts: 1,
        };
        self.history.requests.insert(request, invocation);
        (position, run)
    }

    /// Makes the call of a transaction one that wants its position before it is computed.
    pub(crate) fn make_early(&mut self, number: u64) {
        let invocation = self.invocation(number);
        if let Operation::Call { procedure, arguments } = invocation.operation.clone() {
            invocation.operation = Operation::CallEarly { procedure, arguments };
        }
    }

    /// Adds a request that asked what became of an early call, by the next request of the client.
    pub(crate) fn ask(&mut self, of: u64, outcome: Outcome) {
        let request = request(1, self.history.requests.len() as u64);
        let operation = Operation::AskOutcome { of };
        let invocation =
            Invocation { operation, invoked_at: 500, replies: vec![(505, outcome)], attempts: 1 };
        self.history.requests.insert(request, invocation);
    }

    /// Adds a snapshot without rows, by the next request of the client.
    pub(crate) fn snapshot(&mut self, position: Position, invoked_at: u64) {
        let request = request(1, self.history.requests.len() as u64);
        self.place(
            position,
            Ordered {
                request,
                acknowledged: 0,
                work: Work::OpenSnapshot(Entry::of(NodeId::first(PartitionId(0)))),
            },
            None,
        );
        let answer = Bytes::from(postcard::to_allocvec(&position).unwrap());
        let operation = Operation::OpenSnapshot;
        let replies = vec![(invoked_at + 5, Ok(answer))];
        self.history.requests.insert(request, Invocation { operation, invoked_at, replies, attempts: 1 });
        self.history.snapshots.push(SnapshotRead { request, position, rows: BTreeMap::new() });
    }

    /// Gives the transaction another place, after all others.
    pub(crate) fn attempt_again(&mut self, number: u32, verdict: Verdict) {
        let again = position(1, 0, self.history.log.len() as u32);
        let first = position(1, 0, number);
        let run = Executed { position: again, verdict, ..self.history.executed[&first][0].1.clone() };
        let ordered = self.history.log[&first].clone();
        self.place(again, ordered, Some(run));
    }

    /// Changes how the transaction ended at its first place.
    pub(crate) fn set_verdict(&mut self, number: u32, verdict: Verdict) {
        self.history.executed.get_mut(&position(1, 0, number)).unwrap()[0].1.verdict = verdict;
    }

    fn invocation(&mut self, number: u64) -> &mut Invocation {
        self.history.requests.get_mut(&request(1, number)).unwrap()
    }

    pub(crate) fn times(&mut self, number: u64, invoked_at: u64, answered_at: u64) {
        self.invocation(number).invoked_at = invoked_at;
        self.reply_mut(number).0 = answered_at;
    }

    /// The first answer.
    pub(crate) fn reply_mut(&mut self, number: u64) -> &mut (u64, Outcome) {
        &mut self.invocation(number).replies[0]
    }

    /// Adds an answer.
    pub(crate) fn reply(&mut self, number: u64, outcome: Outcome) {
        self.invocation(number).replies.push((1_000, outcome));
    }
}

fn empty(engine: EngineKind, partitions: u16) -> History {
    History {
        engine,
        partitions,
        may_lose: false,
        requests: BTreeMap::new(),
        log: BTreeMap::new(),
        executed: BTreeMap::new(),
        snapshots: Vec::new(),
        pages: Vec::new(),
        sessions: None,
        rows: vec![BTreeMap::new(); usize::from(partitions)],
        statuses: Vec::new(),
        disagreements: Vec::new(),
        gauges: vec![Gauge { name: "events".to_owned(), highest: 3, limit: 5 }],
        conditions: Vec::new(),
        unfinished: None,
    }
}

/// A transfer from site 0 to site 1 that committed, in a history of two partitions.
pub(crate) fn position_between_partitions(history: &History) -> Position {
    let bank = bank();
    let is_wanted = |run: &Executed| {
        let owner = run.reads.first().and_then(|(key, _)| bank.catalog().schema.owner(key, 2).ok());
        matches!(run.verdict, Verdict::Committed(_)) && owner == Some(Owner::Partition(PartitionId(0)))
    };
    let found = history.executed.iter().find(|(_, runs)| runs.len() == 2 && is_wanted(&runs[0].1));
    *found.expect("half of the transfers are between sites").0
}

/// What four clients see who make `transfers`, and some of them twice, on a cluster of nodes that make the mistakes `F`.
/// Three snapshots are opened in between and one at the end.
pub(crate) fn run<F: Failpoints>(engine: EngineKind, partitions: u16, transfers: u64) -> History {
    let mut run = Run::new::<F>(engine, partitions);
    let mut calls = bank().generator(1, 0, Part::WHOLE).unwrap();
    for number in 0..transfers {
        let call = calls.next();
        let operation = Operation::Call { procedure: call.procedure, arguments: call.arguments };
        let again = number % 7 == 3;
        run.submit(number % 4, operation, again);
        if number % (transfers / 3) == transfers / 6 {
            let request = run.submit(number % 4, Operation::OpenSnapshot, false);
            run.until(|run| run.answer(request).is_some());
            run.read_snapshot(request);
        }
        if run.random.below(3) == 0 {
            run.round();
        }
    }
    run.until_quiet();
    let last = run.submit(0, Operation::OpenSnapshot, false);
    run.until_quiet();
    run.history.rows = run.read_snapshot(last);
    run.finish()
}

/// A cluster in one thread with its clients.
struct Run {
    nodes: Vec<Box<dyn AnyNode>>,
    /// Messages under way, by receiver and sender.
    links: Vec<Vec<VecDeque<Message>>>,
    requests: Vec<Vec<ClientRequest>>,
    /// Answers to scans.
    pages: BTreeMap<RequestId, Outcome>,
    history: History,
    random: Random,
    microseconds: u64,
    sequence: u64,
    busy: bool,
}

/// Rounds after which a cluster counts as stuck.
const ROUNDS_MAX: u64 = 20_000;

impl Run {
    fn new<F: Failpoints>(engine: EngineKind, partitions: u16) -> Run {
        let bank = bank();
        let nodes = (0..partitions).map(PartitionId).map(|me| {
            let configuration = NodeConfiguration { trace: true, ..NodeConfiguration::new(me, partitions) };
            let mut storage = Box::new(MemoryStorage::new());
            let mut put = |key: &Key, row: &[u8]| {
                storage.put(key, key_hash(key), row, Position::LOADED);
            };
            bank.load(Part::of(me, partitions), &mut put).unwrap();
            node_with::<F>(engine, &configuration, bank.catalog().clone(), storage, None)
        });
        let count = usize::from(partitions);
        Run {
            nodes: nodes.collect(),
            links: (0..count).map(|_| (0..count).map(|_| VecDeque::new()).collect()).collect(),
            requests: vec![Vec::new(); count],
            pages: BTreeMap::new(),
            history: empty(engine, partitions),
            random: Random::new(7, "example", &[]),
            microseconds: 0,
            sequence: 0,
            busy: false,
        }
    }

    fn client(&self, number: u64) -> ClientId {
        ClientId { home: PartitionId(number as u16 % self.history.partitions), number }
    }

    /// Sends a request through a node that need not be its home.
    fn submit(&mut self, client: u64, operation: Operation, again: bool) -> RequestId {
        let id = RequestId { client: self.client(client), sequence: self.sequence };
        self.sequence += 1;
        let attempts = 1 + u32::from(again);
        for _ in 0..attempts {
            let entry = self.random.below(self.nodes.len() as u64) as usize;
            let request = Request { id, acknowledged: 0, operation: operation.clone() };
            self.requests[entry].push(ClientRequest::Ordered(request));
        }
        let invoked_at = self.microseconds * 1_000;
        self.history.requests.insert(id, Invocation { operation, invoked_at, replies: Vec::new(), attempts });
        id
    }

    fn answer(&self, request: RequestId) -> Option<&Outcome> {
        self.history.requests[&request].end().map(|(_, outcome)| outcome)
    }

    fn round(&mut self) {
        self.busy = false;
        for number in 0..self.nodes.len() {
            let mut events = vec![Event::Requests(std::mem::take(&mut self.requests[number]))];
            for from in 0..self.nodes.len() {
                let waiting = &mut self.links[number][from];
                let taken = self.random.below(waiting.len() as u64 + 1) as usize;
                let from = NodeId::first(PartitionId(from as u16));
                events.extend(waiting.drain(..taken).map(|message| Event::Peer { from, message }));
            }
            self.microseconds += 20;
            let mut outbox = Outbox::default();
            let more = self.nodes[number].step(self.microseconds, &mut events, &mut outbox);
            self.busy |= more.expect("the nodes are of one build") || !self.nodes[number].is_idle();
            self.take(PartitionId(number as u16), outbox);
        }
        self.busy |= self.links.iter().flatten().any(|link| !link.is_empty());
    }

    fn take(&mut self, node: PartitionId, outbox: Outbox) {
        for (to, message) in outbox.sends {
            self.links[to.partition.index()][node.index()].push_back(message);
        }
        for reply in outbox.replies {
            match self.history.requests.get_mut(&reply.request) {
                Some(invocation) => invocation.replies.push((self.microseconds * 1_000, reply.outcome)),
                None => {
                    self.pages.insert(reply.request, reply.outcome);
                }
            }
        }
        for (epoch, transactions) in outbox.trace.closed {
            for (index, ordered) in transactions {
                self.history.log.insert(Position { epoch, origin: node, index }, ordered);
            }
        }
        for run in outbox.trace.executed {
            let runs = self.history.executed.entry(run.position).or_default();
            runs.push((node, run));
            runs.sort_by_key(|(partition, _)| *partition);
        }
    }

    fn until(&mut self, mut is_done: impl FnMut(&Run) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if is_done(self) {
                return;
            }
            self.round();
        }
        self.history.unfinished = Some("the cluster is stuck".to_owned());
    }

    fn until_quiet(&mut self) {
        self.busy = true;
        self.until(|run| !run.busy);
    }

    /// Reads a snapshot; returns the rows of each partition.
    fn read_snapshot(&mut self, request: RequestId) -> Vec<BTreeMap<Bytes, Bytes>> {
        let Some(Ok(answer)) = self.answer(request) else { return Vec::new() };
        let at: Position = postcard::from_bytes(answer).unwrap();
        let range = KeyRange { start: Key::from_bytes(&[]), end: Key::from_bytes(&[0xFF, 0xFF]) };
        let mut rows = Vec::new();
        for partition in 0..self.nodes.len() {
            // Clients that scan have numbers of their own.
            let scan = RequestId { client: self.client(100), sequence: self.sequence };
            self.sequence += 1;
            self.requests[partition].push(ClientRequest::Scan {
                request: scan,
                at,
                range: range.clone(),
                direction: Direction::Ascending,
                rows: 1_000,
            });
            self.until(|run| run.pages.contains_key(&scan));
            let page: Outcome = self.pages.remove(&scan).unwrap_or(Err(Error::Contended));
            let page: Page = postcard::from_bytes(&page.unwrap()).unwrap();
            assert!(!page.more);
            rows.push(page.rows.owned().collect::<BTreeMap<Bytes, Bytes>>());
        }
        let union = rows.iter().flatten().map(|(key, row)| (key.clone(), row.clone())).collect();
        self.history.snapshots.push(SnapshotRead { request, position: at, rows: union });
        rows
    }

    fn finish(mut self) -> History {
        self.history.statuses = self.nodes.iter().map(|node| node.status(true)).collect();
        if let Some(last) = self.history.snapshots.last() {
            let conditions = bank().check(&mut Reader(&last.rows), &Totals::new());
            self.history.conditions = conditions.unwrap();
        }
        self.history
    }
}

/// Reads the rows of a snapshot.
struct Reader<'a>(&'a BTreeMap<Bytes, Bytes>);

impl SnapshotReader for Reader<'_> {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.0.iter().filter(|(key, _)| range.contains(key)).for_each(|(key, row)| visit(key, row));
        Ok(())
    }
}
