//! Every engine, on every number of partitions and under every interleaving, does what one ordered map would do.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;
mod observed;

use std::collections::BTreeMap;

use ordain_db::cluster::Cluster;
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, ClientRequest, Operation, Request, RequestId, Verdict};
use ordain_db::position::{PartitionId, Position};
use ordain_db::storage::Storage;
use proptest::prelude::*;
use proptest::sample::Index;

use interpreted::model::Model;
use interpreted::operation::Program;
use interpreted::random::{any_program, cases, declared_program};
use interpreted::{Database, INTERPRET, arguments};
use observed::{Observer, Oracle};

/// All engines on all numbers of partitions that are tried.
fn configurations() -> impl Iterator<Item = (EngineKind, u16)> {
    let partitions = |engine: EngineKind| match engine {
        EngineKind::TwoPhase => &[1, 2, 4][..],
        EngineKind::TwoPhaseWithoutCommitProtocol => &[3],
        _ => &[1, 2, 4, 8],
    };
    EngineKind::ALL
        .into_iter()
        .flat_map(move |engine| partitions(engine).iter().map(move |count| (engine, *count)))
}

fn model(database: &Database) -> Model {
    Model { rows: database.initial().into_iter().collect() }
}

/// Declared calls that enter at one partition are ordered as they come: what the model answers is known beforehand. An engine
/// without an order in advance is given one at a time.
fn check_in_order(programs: &[Program], seed: u64) {
    let database = Database::new();
    let mut model = model(&database);
    let expected: Vec<Outcome> =
        programs.iter().map(|program| model.call(&database.catalog, &arguments(program))).collect();
    for (engine, partitions) in configurations() {
        let (mut cluster, _observer) = observed::cluster(&database, engine, partitions, seed);
        let client = ClientId { home: PartitionId(0), number: 1 };
        let calls: Vec<RequestId> = programs
            .iter()
            .map(|program| {
                if !engine.is_ordered() {
                    cluster.run_until_quiet();
                }
                cluster.call(PartitionId(0), client, INTERPRET, arguments(program))
            })
            .collect();
        cluster.run_until_quiet();
        for ((call, expected), program) in calls.iter().zip(&expected).zip(programs) {
            assert_eq!(cluster.reply(*call), expected, "{engine:?} on {partitions}: {program:?}");
        }
        assert_eq!(cluster.digest(), model.digest(), "{engine:?} on {partitions}");
    }
}

/// Something that a client does, and how many steps the cluster makes afterwards.
#[derive(Clone, Debug)]
enum Action {
    Call {
        client: u16,
        entry: u16,
        program: Program,
        steps: usize,
    },
    /// Sends a request again.
    Again {
        which: Index,
        entry: u16,
    },
    Snapshot {
        client: u16,
        steps: usize,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let call = (0..4_u16, 0..8_u16, any_program(), 0..6_usize)
        .prop_map(|(client, entry, program, steps)| Action::Call { client, entry, program, steps });
    let again = (any::<Index>(), 0..8_u16).prop_map(|(which, entry)| Action::Again { which, entry });
    let snapshot = (0..4_u16, 0..6_usize).prop_map(|(client, steps)| Action::Snapshot { client, steps });
    prop_oneof![30 => call, 2 => again, 1 => snapshot]
}

/// A request, as it was sent.
struct Sent {
    request: Request,
    /// The requests that were answered when it was sent for the first time.
    after: Vec<RequestId>,
    times: usize,
}

/// The clients of a cluster and what they have done.
struct Clients {
    cluster: Cluster,
    partitions: u16,
    next: [u64; 4],
    sent: Vec<Sent>,
}

impl Clients {
    fn client(&self, number: u16) -> ClientId {
        ClientId { home: PartitionId(number * 3 % self.partitions), number: u64::from(number) }
    }

    fn send(&mut self, entry: u16, request: Request) {
        self.cluster.send(PartitionId(entry % self.partitions), ClientRequest::Ordered(request));
    }

    fn submit(&mut self, number: u16, entry: u16, operation: Operation) {
        let client = self.client(number);
        let sequence = self.next[usize::from(number)];
        self.next[usize::from(number)] += 1;
        let request = Request { id: RequestId { client, sequence }, acknowledged: 0, operation };
        let answered = |sent: &&Sent| !self.cluster.replies(sent.request.id).is_empty();
        let after = self.sent.iter().filter(answered).map(|sent| sent.request.id).collect();
        self.sent.push(Sent { request: request.clone(), after, times: 1 });
        self.send(entry, request);
    }

    fn act(&mut self, action: &Action) {
        let steps = match action {
            Action::Call { client, entry, program, steps } => {
                let operation =
                    Operation::Call { procedure: INTERPRET, arguments: arguments(program).into() };
                self.submit(*client, *entry, operation);
                *steps
            }
            Action::Again { which, entry } if !self.sent.is_empty() => {
                let index = which.index(self.sent.len());
                self.sent[index].times += 1;
                self.send(*entry, self.sent[index].request.clone());
                0
            }
            Action::Again { .. } => 0,
            Action::Snapshot { client, steps } => {
                self.submit(*client, *client, Operation::OpenSnapshot);
                *steps
            }
        };
        for _ in 0..steps {
            self.cluster.step();
        }
    }

    /// The answer to a request, of which there are as many alike as the request was sent, or less: one that came again while
    /// it was worked on is answered once.
    fn outcome(&self, sent: &Sent) -> Outcome {
        let replies = self.cluster.replies(sent.request.id);
        assert!(
            (1..=sent.times).contains(&replies.len()),
            "{:?} has {} answers",
            sent.request.id,
            replies.len()
        );
        assert!(replies.windows(2).all(|pair| pair[0] == pair[1]), "the same request has the same answer");
        replies[0].clone()
    }
}

/// Calls that enter anywhere: the order is observed and replayed on the serial oracle and on the model.
fn check_anywhere(actions: &[Action], engine: EngineKind, partitions: u16, seed: u64) {
    let database = Database::new();
    let (cluster, observer) = observed::cluster(&database, engine, partitions, seed);
    let mut clients = Clients { cluster, partitions, next: [0; 4], sent: Vec::new() };
    actions.iter().for_each(|action| clients.act(action));
    clients.cluster.run_until_quiet();
    let snapshots = snapshots(&clients);
    // Where nothing is prepared, a snapshot can be open when the decision comes on a transaction before it.
    let torn = engine == EngineKind::TwoPhaseWithoutCommitProtocol;
    let whole = if torn { Vec::new() } else { snapshots.values().copied().collect() };
    let replayed = replay(&database, &observer, whole, &mut clients);
    check_replies(&clients, &replayed, &snapshots);
    if engine.is_ordered() {
        // Else positions are none in real time; the simulator's checker looks at who has read whose writes.
        check_real_time(&clients, &replayed, &snapshots);
    }
    check_counters(&clients, &replayed, engine);
    check_garbage(&mut clients, snapshots.values());
}

/// Positions of the snapshots, by request.
fn snapshots(clients: &Clients) -> BTreeMap<RequestId, Position> {
    let opened = clients.sent.iter().filter(|sent| sent.request.operation == Operation::OpenSnapshot);
    let position = |sent: &Sent| postcard::from_bytes(&clients.outcome(sent).unwrap()).unwrap();
    opened.map(|sent| (sent.request.id, position(sent))).collect()
}

/// What the oracle says: for each request its attempts in order.
type Replayed = BTreeMap<RequestId, Vec<(Position, Verdict)>>;

/// Replays the order. The rows of the snapshots in `pending` are those of the replay at the same position.
fn replay(
    database: &Database,
    observer: &Observer,
    mut pending: Vec<Position>,
    clients: &mut Clients,
) -> Replayed {
    let mut replayed = Replayed::new();
    let mut oracle = Oracle::new(database);
    let mut model = model(database);
    pending.sort_unstable_by(|left, right| right.cmp(left));
    for (position, ordered) in observer.order() {
        while let Some(at) = pending.pop_if(|at| *at < position) {
            check_snapshot(database, clients, at, &model);
        }
        let (request, verdict) = oracle.run(position, &ordered);
        if verdict != Verdict::FootprintMissed {
            let expected = model.call(&database.catalog, &ordered.arguments);
            assert_eq!(outcome_of(&verdict), expected, "{position}");
        }
        replayed.entry(request).or_default().push((position, verdict));
    }
    while let Some(at) = pending.pop() {
        check_snapshot(database, clients, at, &model);
    }
    assert_eq!(oracle.storage.digest(Position::LATEST, &|_| true), model.digest());
    assert_eq!(clients.cluster.digest(), model.digest());
    replayed
}

/// A snapshot shows the rows as they were at its position.
fn check_snapshot(database: &Database, clients: &mut Clients, at: Position, model: &Model) {
    let tables = &database.tables;
    for table in [&tables.account, &tables.word, &tables.line, &tables.item] {
        let client = ClientId { home: PartitionId(0), number: 99 };
        let mut rows = clients.cluster.scan(client, at, &table.all()).unwrap();
        rows.sort_unstable();
        // Every partition shows its own copy of a replicated table.
        let copies = if table.name() == "item" { clients.partitions } else { 1 };
        let inside = model.rows.iter().filter(|(key, _)| table.all().contains(key));
        let expected: Vec<(&[u8], &[u8])> =
            inside.flat_map(|(key, row)| (0..copies).map(move |_| (key.bytes(), row.as_slice()))).collect();
        let rows: Vec<(&[u8], &[u8])> = rows.iter().map(|(key, row)| (&key[..], &row[..])).collect();
        assert_eq!(rows, expected, "{} at {at}", table.name());
    }
}

fn outcome_of(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Committed(result) => Ok(result.clone()),
        Verdict::Failed(error) => Err(error.clone()),
        Verdict::FootprintMissed => Err(Error::Contended),
    }
}

/// Every request took effect once: its last attempt is its answer, and all before missed their footprint.
fn check_replies(clients: &Clients, replayed: &Replayed, snapshots: &BTreeMap<RequestId, Position>) {
    for sent in &clients.sent {
        if snapshots.contains_key(&sent.request.id) {
            continue;
        }
        let attempts = replayed.get(&sent.request.id).expect("what is answered was ordered");
        let (last, earlier) = attempts.split_last().unwrap();
        assert!(earlier.iter().all(|(_, verdict)| *verdict == Verdict::FootprintMissed), "{attempts:?}");
        assert_eq!(clients.outcome(sent), outcome_of(&last.1));
    }
}

/// Strict serializability: what is sent after an answer has come is ordered after what was answered.
fn check_real_time(clients: &Clients, replayed: &Replayed, snapshots: &BTreeMap<RequestId, Position>) {
    let first = |id: RequestId| snapshots.get(&id).copied().unwrap_or_else(|| replayed[&id][0].0);
    let last = |id: RequestId| snapshots.get(&id).copied().unwrap_or_else(|| replayed[&id].last().unwrap().0);
    for sent in &clients.sent {
        for earlier in &sent.after {
            // Snapshots of one state share its place where they take none in the order; nothing else does.
            let (before, after) = (last(*earlier).place(), first(sent.request.id).place());
            assert!(before <= after, "{:?} overtook {earlier:?}", sent.request.id);
        }
    }
}

fn check_counters(clients: &Clients, replayed: &Replayed, engine: EngineKind) {
    let count = |wanted: fn(&Verdict) -> bool| {
        let attempts = replayed.values().flatten();
        attempts.filter(|(_, verdict)| wanted(verdict)).count() as u64
    };
    let statuses = clients.cluster.statuses();
    let total = |counter: fn(&ordain_db::node::Status) -> u64| statuses.iter().map(counter).sum::<u64>();
    assert_eq!(
        total(|status| status.counters.committed),
        count(|verdict| matches!(verdict, Verdict::Committed(_)))
    );
    let missed = count(|verdict| *verdict == Verdict::FootprintMissed);
    if engine.is_ordered() {
        assert_eq!(total(|status| status.counters.restarts), missed);
    } else {
        assert_eq!(missed, 0, "victims of deadlocks begin again before they have a position");
    }
    let aborted = count(|verdict| matches!(verdict, Verdict::Failed(Error::Aborted(_))));
    assert_eq!(total(|status| status.counters.aborted), aborted);
    assert_eq!(total(|status| status.live + status.waiting), 0);
}

/// What was kept for snapshots is freed when they are closed.
fn check_garbage<'a>(clients: &mut Clients, snapshots: impl Iterator<Item = &'a Position>) {
    for at in snapshots {
        clients.cluster.send(PartitionId(0), ClientRequest::CloseSnapshot(*at));
    }
    clients.cluster.run_until_quiet();
    for partition in (0..clients.partitions).map(PartitionId) {
        for sequence in 0..20 {
            let request = RequestId { client: ClientId { home: partition, number: 98 }, sequence };
            clients.cluster.send(partition, ClientRequest::Status { request, digest: false });
            clients.cluster.run_until_quiet();
        }
    }
    for status in clients.cluster.statuses() {
        assert_eq!(status.garbage, 0);
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn declared_calls_in_order(
        programs in proptest::collection::vec(declared_program(), 1..200),
        seed: u64,
    ) {
        check_in_order(&programs, seed);
    }

    #[test]
    fn any_calls_anywhere(
        actions in proptest::collection::vec(action(), 1..200),
        seed: u64,
    ) {
        for (engine, partitions) in configurations() {
            check_anywhere(&actions, engine, partitions, seed);
        }
    }
}
