//! An outside checker over exported histories: stateright's tester of linearizability reads what [`export::elle`] wrote.
//!
//! The whole database is one object and each call one operation on it, so a history of calls is strictly serializable if and
//! only if it is a linearizable history of that object. The object is [`Lists`], written here from Elle's description of
//! list-append, without the code of the workload's procedure. Every history is first written and then read again: what is
//! checked is the export.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod edn;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use edn::{Kind, Line, Step, parse};
use ordain_db::cluster::Cluster;
use ordain_db::data::Key;
use ordain_db::engine::EngineKind;
use ordain_db::failpoint::{Failpoint, Failpoints, NoFailpoints};
use ordain_db::message::{ClientId, Operation as Ordered, RequestId};
use ordain_db::node::{NodeConfiguration, node_with};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::encode_arguments;
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_sim::export;
use ordain_sim::history::{History, Invocation};
use ordain_sim::plan::{Fault, WorkloadKind, WorkloadPlan};
use ordain_sim::run::observe;
use ordain_sim::swarm::{Fixed, draw};
use ordain_workload::append::{Append, Arguments, Operation, Options, RowName};
use ordain_workload::random::Random;
use ordain_workload::{Generator, Part, Workload};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

const CLIENTS: u16 = 4;
/// Calls of all clients together.
const CALLS: usize = 80;
/// Histories for each engine and number of partitions.
const SEEDS: u64 = 15;
/// Seeds of the simulator.
const SIMULATED_SEEDS: u64 = 60;
/// The search for an order is given up after this many states, with a panic.
const STATES_MAX: usize = 200_000;

const SITES: u16 = 4;
const LISTS_PER_SITE: u32 = 2;

/// One transaction, with its number in the history.
#[derive(Clone, Debug)]
struct Transaction {
    number: u32,
    steps: Vec<Step>,
}

/// A state of the search: the transactions that were done, a bit for each, and the lists after them.
type State = (u128, BTreeMap<u64, Vec<u64>>);

/// All lists, as one sequential object.
#[derive(Clone, Default)]
struct Lists {
    state: State,
    /// Every state that the search came to. What can follow depends on the state alone, so none is entered twice: without
    /// this, the tester takes exponential time to find that there is no order.
    entered: Rc<RefCell<BTreeSet<State>>>,
    /// The longest that was read of each list. A list only grows, so what differs from it is a dead end, found at once.
    longest: Rc<BTreeMap<u64, Vec<u64>>>,
}

impl Lists {
    fn new(history: &[Line]) -> Lists {
        let mut longest: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (_, _, key, numbers) in reads(history) {
            let known = longest.entry(key).or_default();
            if numbers.len() > known.len() {
                *known = numbers;
            }
        }
        Lists { longest: Rc::new(longest), ..Lists::default() }
    }

    /// Whether the lists can still become, or were, what was read of them.
    fn can_be(&self) -> bool {
        self.state.1.iter().all(|(key, numbers)| {
            let longest = self.longest.get(key).map_or(&[][..], Vec::as_slice);
            let known = numbers.len().min(longest.len());
            numbers[..known] == longest[..known]
        })
    }
}

impl SequentialSpec for Lists {
    type Op = Transaction;
    /// What each read saw.
    type Ret = Vec<Vec<u64>>;

    fn invoke(&mut self, transaction: &Transaction) -> Vec<Vec<u64>> {
        let (done, lists) = &mut self.state;
        *done |= 1 << transaction.number;
        let mut reads = Vec::new();
        for step in &transaction.steps {
            match step {
                Step::Append(key, number) => lists.entry(*key).or_default().push(*number),
                Step::Read(key, _) => reads.push(lists.get(key).cloned().unwrap_or_default()),
            }
        }
        reads
    }

    fn is_valid_step(&mut self, transaction: &Transaction, reads: &Vec<Vec<u64>>) -> bool {
        if self.invoke(transaction) != *reads || !self.can_be() {
            return false;
        }
        let mut entered = self.entered.borrow_mut();
        assert!(entered.len() < STATES_MAX, "the history is too large for this search: make it smaller");
        entered.insert(self.state.clone())
    }
}

/// Whether there is an order of the transactions that explains what all of them saw, and in which each is before those that
/// were called after its answer.
fn strictly_serializable(history: &[Line]) -> bool {
    // An aborted call is no operation: nobody may have seen anything of it.
    let mut aborted = vec![false; history.len()];
    let mut open = BTreeMap::new();
    for (index, line) in history.iter().enumerate() {
        if line.kind == Kind::Invoke {
            assert_eq!(open.insert(line.process, index), None, "a process does one call after the other");
        } else {
            aborted[open.remove(&line.process).unwrap()] = line.kind == Kind::Fail;
        }
    }
    assert!(open.is_empty(), "each call ends, if only with :info");
    let mut tester = LinearizabilityTester::new(Lists::new(history));
    let mut number = 0;
    for (line, aborted) in history.iter().zip(aborted) {
        match line.kind {
            Kind::Invoke if !aborted => {
                assert!(number < u128::BITS, "more transactions than bits: make the history smaller");
                tester.on_invoke(line.process, Transaction { number, steps: line.value.clone() }).unwrap();
                number += 1;
            }
            Kind::Ok => {
                let reads = line.value.iter().filter_map(|step| match step {
                    Step::Read(_, numbers) => Some(numbers.clone().unwrap()),
                    Step::Append(..) => None,
                });
                tester.on_return(line.process, reads.collect()).unwrap();
            }
            // What was not answered stays under way: the tester may put it anywhere after its call, or nowhere.
            Kind::Invoke | Kind::Fail | Kind::Info => {}
        }
    }
    tester.is_consistent()
}

fn append() -> Append {
    let options = Options {
        sites: SITES,
        lists_per_site: LISTS_PER_SITE,
        pointers_per_site: 2,
        notes_per_site: 4,
        operations_max: 4,
        multi_site_percent: 50.0,
        dependent_percent: 20.0,
        abort_percent: 20.0,
        hot_list_percent: 50.0,
        ..Options::default()
    };
    Append::new(options).unwrap()
}

/// A client and what it has under way.
struct Client {
    id: ClientId,
    generator: Box<dyn Generator>,
    open: Option<RequestId>,
}

/// A run of some clients, each with one call under way. Time is the number of steps that the cluster has made.
struct Run<'a> {
    append: &'a Append,
    cluster: Cluster,
    random: Random,
    now: u64,
    requests: BTreeMap<RequestId, Invocation>,
}

impl Run<'_> {
    fn new<F: Failpoints>(append: &Append, engine: EngineKind, partitions: u16, seed: u64) -> Run<'_> {
        let nodes = (0..partitions).map(PartitionId).map(|me| {
            let mut storage = MemoryStorage::new();
            let mut put = |key: &Key, row: &[u8]| {
                storage.put(key, key.hash(), row, Position::LOADED);
            };
            append.load(Part::of(me, partitions), &mut put).unwrap();
            let configuration = NodeConfiguration::new(me, partitions);
            node_with::<F>(engine, &configuration, append.catalog().clone(), Box::new(storage), None)
        });
        let cluster = Cluster::new(nodes.collect(), seed);
        let random = Random::new(seed, "outside checker", &[u64::from(partitions)]);
        Run { append, cluster, random, now: 0, requests: BTreeMap::new() }
    }

    fn call(&mut self, client: ClientId, arguments: bytes::Bytes) -> RequestId {
        let procedure = self.append.procedure();
        let request = self.cluster.call(client.home, client, procedure, arguments.clone());
        let operation = Ordered::Call { procedure, arguments };
        let invocation = Invocation { operation, invoked_at: self.now, replies: Vec::new(), attempts: 1 };
        self.requests.insert(request, invocation);
        request
    }

    /// Takes the answer to a request if it has come. A few are lost on their way.
    fn take_answer(&mut self, request: RequestId) -> bool {
        let Some(outcome) = self.cluster.replies(request).first() else { return false };
        if self.random.below(25) != 0 {
            let answer = (self.now, outcome.clone());
            self.requests.get_mut(&request).unwrap().replies.push(answer);
        }
        true
    }

    fn serve(&mut self, clients: &mut [Client]) {
        let mut left = CALLS;
        loop {
            let mut idle = true;
            for client in &mut *clients {
                if client.open.is_some_and(|request| self.take_answer(request)) {
                    client.open = None;
                }
                if client.open.is_none() && left > 0 {
                    left -= 1;
                    let arguments = client.generator.next().arguments;
                    client.open = Some(self.call(client.id, arguments));
                }
                idle &= client.open.is_none();
            }
            if idle {
                return;
            }
            assert!(self.cluster.step(), "the cluster is stuck:\n{}", self.cluster.describe());
            self.now += 1;
        }
    }

    /// Reads all lists, so that the last appends are seen too.
    fn read_all(&mut self) {
        let lists = (0..SITES).flat_map(|site| (0..LISTS_PER_SITE).map(move |id| RowName { site, id }));
        let operations = lists.map(Operation::ReadList).collect();
        let arguments = Arguments { number: u64::from(CLIENTS) << 27, operations, abort: None };
        let client = ClientId { home: PartitionId(0), number: u64::from(CLIENTS) };
        let request = self.call(client, encode_arguments(&arguments).unwrap().into());
        self.cluster.run_until_quiet();
        let answer = (self.now + 1, self.cluster.reply(request).clone());
        self.requests.get_mut(&request).unwrap().replies.push(answer);
    }
}

fn record<F: Failpoints>(append: &Append, engine: EngineKind, partitions: u16, seed: u64) -> History {
    let mut run = Run::new::<F>(append, engine, partitions, seed);
    let client = |number: u16| Client {
        id: ClientId { home: PartitionId(number % partitions), number: u64::from(number) },
        generator: append.generator(seed, u32::from(number), Part::WHOLE).unwrap(),
        open: None,
    };
    run.serve(&mut (0..CLIENTS).map(client).collect::<Vec<Client>>());
    run.read_all();
    History {
        pages: Vec::new(),
        sessions: Default::default(),
        engine,
        partitions,
        may_lose: false,
        requests: run.requests,
        log: BTreeMap::new(),
        executed: BTreeMap::new(),
        snapshots: Vec::new(),
        rows: Vec::new(),
        statuses: Vec::new(),
        disagreements: Vec::new(),
        gauges: Vec::new(),
        conditions: Vec::new(),
        unfinished: None,
    }
}

/// The exported histories of all engines and numbers of partitions, read again.
fn histories(seeds: u64) -> impl Iterator<Item = (String, Vec<Line>)> {
    let append = append();
    let clusters = EngineKind::ORDERED.into_iter().flat_map(move |engine| {
        (1..=4).flat_map(move |partitions| (0..seeds).map(move |seed| (engine, partitions, seed)))
    });
    clusters.map(move |(engine, partitions, seed)| {
        let history = record::<NoFailpoints>(&append, engine, partitions, seed);
        let name = format!("{engine:?} on {partitions} partitions, seed {seed}");
        (name, parse(&export::elle::export(&history, &append).unwrap()))
    })
}

#[test]
fn histories_of_clusters_are_strictly_serializable() {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut overlapping = 0;
    for (name, history) in histories(SEEDS) {
        assert!(strictly_serializable(&history), "{name}");
        history.iter().for_each(|line| *counts.entry(line.kind).or_default() += 1);
        let both_invoke = |pair: &&[Line]| pair[0].kind == Kind::Invoke && pair[1].kind == Kind::Invoke;
        overlapping += history.windows(2).filter(both_invoke).count();
    }
    // What is checked is worth it: all kinds of ends, and calls that overlap.
    assert!(
        counts[&Kind::Ok] > 2_000 && counts[&Kind::Fail] > 100 && counts[&Kind::Info] > 100,
        "{counts:?}"
    );
    assert!(overlapping > 1_000, "{overlapping}");
}

/// The exported histories of seeds of the simulator, under faults, read again.
#[test]
fn histories_of_simulated_clusters_are_strictly_serializable() {
    let fixed = Fixed { transactions: Some(60), workload: Some(WorkloadKind::Append), ..Fixed::default() };
    let (mut crashes, mut repeated) = (0, 0);
    for seed in 0..SIMULATED_SEEDS {
        let mut plan = draw(seed, &fixed);
        // The tester's search grows with what is under way at a time.
        plan.clients.count = plan.clients.count.min(4);
        plan.clients.window = plan.clients.window.min(2);
        plan.faults.retain(|planned| matches!(planned.fault, Fault::Crash(_) | Fault::Pause(_)));
        let WorkloadPlan::Append(options) = &plan.workload else { panic!("the workload is fixed") };
        let append = Append::new(options.clone()).unwrap();
        let (report, history) = observe(&plan, &append).unwrap();
        let history = history.expect("no assertion fails");
        assert!(strictly_serializable(&parse(&export::elle::export(&history, &append).unwrap())), "{seed}");
        crashes += report.happened.crashes;
        repeated += history.requests.values().filter(|invocation| invocation.attempts > 1).count();
    }
    assert!(crashes > 20 && repeated > 100, "{crashes} crashes, {repeated} requests were sent again");
}

/// A mistake put into a history; `false` where it does not fit in.
type Corruption = fn(&mut [Line]) -> bool;

#[test]
fn corrupted_histories_are_refused() {
    let corruptions: [(&str, Corruption); 5] = [
        ("swapped reads", swap_reads),
        ("stale read", make_stale),
        ("two orders", swap_numbers),
        ("aborted read", see_aborted),
        ("lost append", lose_append),
    ];
    let mut refused = BTreeMap::new();
    for (name, history) in histories(2) {
        for (corruption, apply) in corruptions {
            let mut corrupted = history.clone();
            if apply(&mut corrupted) {
                assert!(!strictly_serializable(&corrupted), "{corruption} in {name}");
                *refused.entry(corruption).or_insert(0) += 1;
            }
        }
    }
    assert!(corruptions.iter().all(|(corruption, _)| refused.get(corruption) > Some(&10)), "{refused:?}");
}

/// The places of all reads of committed calls: line, step, key and numbers.
fn reads(history: &[Line]) -> Vec<(usize, usize, u64, Vec<u64>)> {
    let committed = history.iter().enumerate().filter(|(_, line)| line.kind == Kind::Ok);
    let reads = committed.flat_map(|(index, line)| {
        line.value.iter().enumerate().filter_map(move |(place, step)| match step {
            Step::Read(key, Some(numbers)) => Some((index, place, *key, numbers.clone())),
            _ => None,
        })
    });
    reads.collect()
}

/// Keys and numbers of the appends of calls that ended so.
fn appends(history: &[Line], kind: Kind) -> Vec<(u64, u64)> {
    let steps = history.iter().filter(|line| line.kind == kind).flat_map(|line| &line.value);
    let appends = steps.filter_map(|step| match step {
        Step::Append(key, number) => Some((*key, *number)),
        Step::Read(..) => None,
    });
    appends.collect()
}

/// The line where a call was sent that ends at a line.
fn invoked(history: &[Line], end: usize) -> usize {
    history[..end].iter().rposition(|line| line.process == history[end].process).unwrap()
}

/// Swaps what two calls read that were one after the other.
fn swap_reads(history: &mut [Line]) -> bool {
    let reads = reads(history);
    for (first, place, key, numbers) in &reads {
        for (second, other_place, other_key, other) in &reads {
            if key == other_key && numbers != other && invoked(history, *second) > *first {
                history[*first].value[*place] = Step::Read(*key, Some(other.clone()));
                history[*second].value[*other_place] = Step::Read(*key, Some(numbers.clone()));
                return true;
            }
        }
    }
    false
}

/// Lets a call miss what was appended by one that ended before it was sent.
fn make_stale(history: &mut [Line]) -> bool {
    for (index, place, key, numbers) in reads(history).into_iter().rev() {
        let known = appends(&history[..invoked(history, index)], Kind::Ok);
        if let Some(missed) = numbers.iter().rposition(|number| known.contains(&(key, *number))) {
            history[index].value[place] = Step::Read(key, Some(numbers[..missed].to_vec()));
            return true;
        }
    }
    false
}

/// Lets two calls see two numbers in two orders.
fn swap_numbers(history: &mut [Line]) -> bool {
    let reads = reads(history);
    for (index, place, key, numbers) in &reads {
        let again = reads.iter().any(|(other_index, _, other_key, other)| {
            other_index != index && other_key == key && other.starts_with(numbers)
        });
        if again && numbers.len() > 1 {
            let mut swapped = numbers.clone();
            swapped.swap(numbers.len() - 2, numbers.len() - 1);
            history[*index].value[*place] = Step::Read(*key, Some(swapped));
            return true;
        }
    }
    false
}

/// Lets the last call see what an aborted one would have appended.
fn see_aborted(history: &mut [Line]) -> bool {
    let Some((key, number)) = appends(history, Kind::Fail).pop() else { return false };
    let last = reads(history).into_iter().rfind(|(_, _, read, _)| *read == key);
    let Some((index, place, _, mut numbers)) = last else { return false };
    numbers.push(number);
    history[index].value[place] = Step::Read(key, Some(numbers));
    true
}

/// Takes the number of a committed append out of every read.
fn lose_append(history: &mut [Line]) -> bool {
    let Some((_, lost)) = appends(history, Kind::Ok).first().copied() else { return false };
    for step in history.iter_mut().flat_map(|line| &mut line.value) {
        if let Step::Read(_, Some(numbers)) = step {
            numbers.retain(|number| *number != lost);
        }
    }
    true
}

/// A database that does not lock the first key that a call only reads.
struct ForgetReadLock;

impl Failpoints for ForgetReadLock {
    fn on(point: Failpoint) -> bool {
        point == Failpoint::ForgetReadLock
    }
}

#[test]
fn a_database_that_locks_wrongly_is_noticed() {
    let append = append();
    let refused = |record: fn(&Append, EngineKind, u16, u64) -> History| {
        let exported = |seed| export::elle::export(&record(&append, EngineKind::Calvin, 4, seed), &append);
        (0..40).filter(|seed| !strictly_serializable(&parse(&exported(*seed).unwrap()))).count()
    };
    assert_eq!(refused(record::<NoFailpoints>), 0);
    assert!(refused(record::<ForgetReadLock>) > 0);
}

/// Checks a history that is written as process, kind and value of each line.
fn check(events: &[&str]) -> bool {
    let mut text = String::new();
    for (index, event) in events.iter().enumerate() {
        let (start, value) = event.split_once(' ').unwrap();
        let (process, kind) = start.split_once(':').unwrap();
        text.push_str(&format!(
            "{{:type :{kind}, :f :txn, :value [{value}], :process {process}, :time {index}, :index {index}}}\n"
        ));
    }
    strictly_serializable(&parse(&text))
}

/// The textbook's anomalies, by hand, each beside the history that is right.
#[test]
fn known_anomalies_are_refused() {
    let write_skew = |last| {
        let both = ["0:invoke [:r 1 nil] [:append 2 10]", "1:invoke [:r 2 nil] [:append 1 20]"];
        check(&[both[0], both[1], "0:ok [:r 1 []] [:append 2 10]", last])
    };
    assert!(write_skew("1:ok [:r 2 [10]] [:append 1 20]"));
    assert!(!write_skew("1:ok [:r 2 []] [:append 1 20]"));
    let lost_update = |last| {
        let both = ["0:invoke [:r 1 nil] [:append 1 10]", "1:invoke [:r 1 nil] [:append 1 20]"];
        check(&[both[0], both[1], "0:ok [:r 1 []] [:append 1 10]", last])
    };
    assert!(lost_update("1:ok [:r 1 [10]] [:append 1 20]"));
    assert!(!lost_update("1:ok [:r 1 []] [:append 1 20]"));
    // Serializable, but in another order than that of real time.
    let late = |last| check(&["0:invoke [:append 1 10]", "0:ok [:append 1 10]", "1:invoke [:r 1 nil]", last]);
    assert!(late("1:ok [:r 1 [10]]"));
    assert!(!late("1:ok [:r 1 []]"));
    // What was not answered may have happened or not, and it stays so.
    let unanswered = |first, second| {
        let read = "1:invoke [:r 1 nil]";
        check(&["0:invoke [:append 1 10]", read, first, read, second, "0:info [:append 1 10]"])
    };
    assert!(unanswered("1:ok [:r 1 []]", "1:ok [:r 1 [10]]"));
    assert!(unanswered("1:ok [:r 1 []]", "1:ok [:r 1 []]"));
    assert!(!unanswered("1:ok [:r 1 [10]]", "1:ok [:r 1 []]"));
}
