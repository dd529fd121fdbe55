//! Reads and snapshots that take no place in the order where one node holds all there is, and do where others may know more.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::cluster::Cluster;
use ordain_db::data::{ColumnType, DataError, SchemaBuilder, Table};
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, ClientRequest, Operation, RequestId};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{
    Catalog, Declaration, Declared, Procedure, ProcedureId, Procedures, Stop, Transaction, decode_output,
    encode_arguments,
};
use ordain_db::storage::memory::MemoryStorage;

const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 5 };
const COUNT: ProcedureId = ProcedureId(0);
const LOOK: ProcedureId = ProcedureId(1);

/// Counts up a row, or with `false` looks at it.
struct Counter(Table, bool);

impl Procedure for Counter {
    type Arguments = i32;
    type Output = i64;

    fn name(&self) -> &str {
        if self.1 { "count" } else { "look" }
    }

    fn declare(&self, id: &i32, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        footprint.update(&self.0.key((*id,))?)?;
        Ok(Declared::Complete)
    }

    fn run(&self, id: &i32, transaction: &mut Transaction<'_>) -> Result<i64, Stop> {
        let key = self.0.key((*id,))?;
        let count = match transaction.get(&key)? {
            Some(row) => row.int64("count")?,
            None => 0,
        };
        if self.1 {
            transaction.put(&self.0, &key, (count + 1,))?;
        }
        Ok(count + i64::from(self.1))
    }
}

fn cluster(engine: EngineKind, partitions: u16) -> (Cluster, Table) {
    let mut schema = SchemaBuilder::new();
    let table = Table::builder("t").column("id", ColumnType::Int32).column("count", ColumnType::Int64);
    let table = schema.table(table.primary_key(&["id"])).unwrap();
    let mut procedures = Procedures::new();
    procedures.register(Counter(table.clone(), true)).unwrap();
    procedures.register(Counter(table.clone(), false)).unwrap();
    let catalog = Catalog { schema: schema.finish(), procedures };
    (Cluster::build(engine, partitions, &catalog, 3, |_| Box::new(MemoryStorage::new())), table)
}

fn ask(cluster: &mut Cluster, operation: Operation) -> Outcome {
    let request = cluster.submit(PartitionId(0), CLIENT, operation);
    cluster.run_until_quiet();
    cluster.reply(request).clone()
}

fn count(cluster: &mut Cluster) -> i64 {
    let arguments = encode_arguments(&7).unwrap().into();
    decode_output(&ask(cluster, Operation::Call { procedure: COUNT, arguments }).unwrap()).unwrap()
}

fn read(cluster: &mut Cluster, procedure: ProcedureId) -> Result<i64, Error> {
    let arguments = encode_arguments(&7).unwrap().into();
    ask(cluster, Operation::Read { procedure, arguments }).map(|found| decode_output(&found).unwrap())
}

fn delivered(cluster: &Cluster) -> u64 {
    cluster.statuses().iter().map(|status| status.delivered.0).max().unwrap()
}

#[test]
fn a_read_of_the_newest_state_takes_no_place_in_the_order() {
    for engine in EngineKind::ORDERED {
        let (mut cluster, _) = cluster(engine, 1);
        assert_eq!(read(&mut cluster, LOOK), Ok(0));
        assert_eq!((count(&mut cluster), count(&mut cluster)), (1, 2));
        let before = delivered(&cluster);
        assert_eq!(read(&mut cluster, LOOK), Ok(2), "{}", engine.name());
        assert_eq!(delivered(&cluster), before, "{}: it has a place in the order", engine.name());
        let Err(Error::Invalid(problem)) = read(&mut cluster, COUNT) else { panic!("a read has written") };
        assert!(problem.contains("cannot be written"), "{problem}");
        assert_eq!(read(&mut cluster, LOOK), Ok(2));
    }
}

#[test]
fn elsewhere_a_read_is_a_call() {
    for (engine, partitions) in [(EngineKind::Calvin, 2), (EngineKind::Aloha, 3), (EngineKind::TwoPhase, 1)] {
        let (mut cluster, _) = cluster(engine, partitions);
        assert_eq!(count(&mut cluster), 1);
        let before = delivered(&cluster);
        assert_eq!(read(&mut cluster, LOOK), Ok(1), "{}", engine.name());
        assert!(delivered(&cluster) > before || !engine.is_ordered(), "{}", engine.name());
    }
}

#[test]
fn a_snapshot_of_the_newest_state_stays_as_it_is_until_it_is_closed() {
    let (mut cluster, table) = cluster(EngineKind::Calvin, 1);
    count(&mut cluster);
    let before = delivered(&cluster);
    let at = cluster.open_snapshot(CLIENT).unwrap();
    let again = cluster.open_snapshot(CLIENT).unwrap();
    assert!(at.epoch == again.epoch && at != again, "two snapshots of one state: {at}, {again}");
    assert_eq!(delivered(&cluster), before);
    for _ in 0..3 {
        count(&mut cluster);
    }
    let seen = |cluster: &mut Cluster| {
        let rows = cluster.scan(CLIENT, at, &table.all())?;
        Ok::<i64, Error>(rows.iter().map(|(_, row)| table.read(row).int64("count").unwrap()).sum())
    };
    for _ in 0..2 {
        // A network may repeat what it carries.
        cluster.send(PartitionId(0), ClientRequest::CloseSnapshot(again));
        cluster.run_until_quiet();
        assert_eq!(seen(&mut cluster), Ok(1), "the other holder reads on");
    }
    cluster.send(PartitionId(0), ClientRequest::CloseSnapshot(at));
    cluster.run_until_quiet();
    assert_eq!(seen(&mut cluster), Err(Error::NotOpen(at)));
    assert_eq!(count(&mut cluster), 5);
    assert_eq!(cluster.statuses()[0].garbage, 0, "no old version is kept");
}

#[test]
fn a_snapshot_that_is_asked_for_twice_is_one() {
    let (mut cluster, _) = cluster(EngineKind::Calvin, 1);
    let other = ClientId { number: 6, ..CLIENT };
    let request = RequestId { client: other, sequence: 0 };
    let operation = Operation::OpenSnapshot;
    let ask = ordain_db::message::Request { id: request, acknowledged: 0, operation };
    for _ in 0..2 {
        cluster.send(PartitionId(0), ClientRequest::Ordered(ask.clone()));
        cluster.run_until_quiet();
        count(&mut cluster);
    }
    let answers = cluster.replies(request);
    assert_eq!((answers.len(), &answers[0]), (2, &answers[1]));
    let at: Position = postcard::from_bytes(answers[0].as_ref().unwrap()).unwrap();
    cluster.send(PartitionId(0), ClientRequest::CloseSnapshot(at));
    cluster.run_until_quiet();
    count(&mut cluster);
    assert_eq!(cluster.statuses()[0].garbage, 0, "it was closed once and is closed");
}
