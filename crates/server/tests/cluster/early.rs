//! Calls that are acknowledged before they are computed: through the library, embedded and over the network, and when the process
//! is killed that has acknowledged them.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use ordain::db::data::{ColumnType::Int64, DataError, Table};
use ordain::db::engine::EngineKind;
use ordain::db::error::Error;
use ordain::db::message::{Operation, Reply};
use ordain::db::position::Position;
use ordain::db::procedure::{Declaration, Declared, Procedure, ProcedureId, Stop, Transaction};
use ordain::{Connection, Database, Early, Handle};
use ordain_workload::Totals;
use ordain_workload::bank::{AccountName, Arguments, Balances, TRANSFER, Transfer};
use rustix::process::Signal;

use super::support::*;

/// Adds to a counter and returns it; aborts when that would take it below zero.
struct Add {
    counters: Table,
    /// Whether it says which counter it needs.
    declares: bool,
}

impl Procedure for Add {
    type Arguments = (i64, i64);
    type Output = i64;

    fn name(&self) -> &str {
        if self.declares { "add" } else { "find and add" }
    }

    fn declare(&self, (counter, _): &(i64, i64), d: &mut Declaration<'_>) -> Result<Declared, DataError> {
        match self.declares {
            true => d.update(&self.counters.key((*counter,))?).map(|()| Declared::Complete),
            false => Ok(Declared::Unknown),
        }
    }

    fn run(&self, (counter, amount): &(i64, i64), tx: &mut Transaction<'_>) -> Result<i64, Stop> {
        let key = self.counters.key((*counter,))?;
        let sum = tx.get(&key)?.map_or(Ok(0), |row| row.int64("count"))? + amount;
        if sum < 0 {
            return Err(Stop::abort("below zero"));
        }
        tx.put(&self.counters, &key, (sum,))?;
        Ok(sum)
    }
}

fn embedded(engine: EngineKind) -> (Database, Handle<Add>, Handle<Add>) {
    let mut builder = Database::builder().partitions(2).engine(engine);
    let counters = Table::builder("counters").column("id", Int64).column("count", Int64).primary_key(&["id"]);
    let counters = builder.table(counters).unwrap();
    let add = builder.procedure(Add { counters: counters.clone(), declares: true }).unwrap();
    let find = builder.procedure(Add { counters, declares: false }).unwrap();
    (builder.open().unwrap(), add, find)
}

/// Wakes the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn an_early_call_has_a_position_and_an_outcome() {
    for engine in EngineKind::ORDERED {
        let (database, add, find) = embedded(engine);
        let first = database.call_early(add, &(1, 5)).unwrap();
        // Whatever is called after the acknowledgement stands behind it.
        assert_eq!(database.call(add, &(1, 2)), Ok(7));
        let poor = block_on(database.call_early_async(add, &(1, -8))).unwrap();
        let found = database.call_early(find, &(1, 1)).unwrap();
        assert!(first.position() < poor.position() && poor.position() < found.position());
        // Outcomes are told in any order, and as often as one asks.
        for _ in 0..2 {
            assert_eq!(found.outcome(), Ok(8));
            assert_eq!(block_on(first.outcome_async()), Ok(5));
            assert_eq!(poor.outcome(), Err(Error::Aborted("below zero".to_owned())));
        }
        database.close().unwrap();
    }
}

#[test]
fn outcomes_are_kept_until_their_calls_are_dropped() {
    let (database, add, _) = embedded(EngineKind::Calvin);
    let first = database.call_early(add, &(3, 1)).unwrap();
    for round in 0..200 {
        assert_eq!(database.call(add, &(3, 1)), Ok(round + 2));
        drop(database.call_early(add, &(4, 1)).unwrap());
    }
    assert_eq!(first.outcome(), Ok(1));
    database.close().unwrap();
}

#[test]
fn engines_without_an_order_refuse() {
    let (database, add, _) = embedded(EngineKind::TwoPhase);
    let Err(Error::Invalid(problem)) = database.call_early(add, &(1, 5)) else { panic!("it is refused") };
    assert!(problem.contains("has no order"), "{problem}");
    assert_eq!(database.call(add, &(1, 5)), Ok(5), "the refused call had no effect");
    database.close().unwrap();
}

const SITES: u16 = 4;

/// A transfer of one cent from one site to the next.
fn pay(connection: &Connection, number: u32) -> Early<Transfer> {
    let transfer = connection.handle::<Transfer>(TRANSFER).unwrap();
    let (from, to) = (number as u16 % SITES, (number as u16 + 1) % SITES);
    let (from, to) = (AccountName { site: from, id: number % 50 }, AccountName { site: to, id: 60 });
    connection.call_early(transfer, &Arguments { from, to, amount: 1 }).unwrap()
}

fn committed(number: u64) -> Totals {
    let mut totals = Totals::new();
    totals.of_mut(TRANSFER).committed = number;
    totals
}

#[test]
fn early_calls_go_over_the_network() {
    let cluster = Cluster::start(2, 4, BANK);
    let connection = cluster.connect();
    let calls: Vec<Early<Transfer>> = (0..100).map(|number| pay(&connection, number)).collect();
    let outcomes: Vec<Balances> = calls.iter().map(|call| call.outcome().unwrap()).collect();
    assert!(outcomes.iter().all(|after| after.from < 100_000));
    // What is wrong with a call is told at once, and there is nothing to ask for.
    let nonsense = Operation::CallEarly { procedure: ProcedureId(77), arguments: vec![1].into() };
    let mut client = RawClient::connect(cluster.address(0));
    let Reply { outcome, .. } = client.ask(0, ordered(request_id(0, 5, 0), 0, nonsense));
    assert!(outcome.unwrap_err().to_string().contains("there is no procedure number 77"));
    let Reply { outcome, .. } =
        client.ask(0, ordered(request_id(0, 5, 1), 0, Operation::AskOutcome { of: 0 }));
    assert!(outcome.unwrap_err().to_string().contains("there is no procedure number 77"));
    cluster.check(&committed(100));
    cluster.stop();
}

/// Whoever leads next knows the calls from the log: what becomes of them, and that they are not to be carried out again.
#[test]
fn acknowledged_calls_outlive_whoever_acknowledged_them() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 3, 1, 2, BANK));
    let connection = cluster.connect();
    let mut calls = Vec::new();
    for victim in 0..3 {
        calls.extend((0..20).map(|number| pay(&connection, 20 * victim + number)));
        let victim = victim as usize;
        cluster.processes[victim].signal(Signal::KILL);
        cluster.processes[victim].wait();
        let before: Vec<Result<Balances, Error>> = calls.iter().map(Early::outcome).collect();
        assert!(before.iter().all(Result::is_ok), "{before:?}");
        cluster.restart(victim);
        assert!(cluster.wait_until_ready(), "one that was started again has its port");
        let after: Vec<Result<Balances, Error>> = calls.iter().map(Early::outcome).collect();
        assert_eq!(before, after);
    }
    let mut positions: Vec<Position> = calls.iter().map(Early::position).collect();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions.len(), 60, "each call stands at a place of its own");
    cluster.check(&committed(60));
    cluster.stop();
}
