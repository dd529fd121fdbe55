//! Transactions that are as large as may be, and larger: those are refused before anything depends on them, and all others go on.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::cluster::Cluster;
use ordain_db::data::{ColumnType, SchemaBuilder, Table};
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Limit, Outcome};
use ordain_db::limits::{LOGGED_READS_BYTES_MAX, READ_RESULTS_BYTES_MAX, ROW_BYTES_MAX};
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{
    Catalog, Procedure, ProcedureId, Procedures, Stop, Transaction, encode_arguments,
};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;

const PARTITIONS: u16 = 4;
const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 1 };
const CONTENT_BYTES: usize = ROW_BYTES_MAX - 1024;

/// Reads some rows of each partition, and deletes the first of each.
struct Sweep {
    table: Table,
}

impl Procedure for Sweep {
    type Arguments = i64;
    type Output = ();

    fn name(&self) -> &str {
        "sweep"
    }

    fn run(&self, rows: &i64, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        for site in 0..i32::from(PARTITIONS) {
            for id in 0..*rows {
                transaction.get(&self.table.key((site, id))?)?;
            }
            transaction.delete(&self.table.key((site, 0_i64))?)?;
        }
        Ok(())
    }
}

/// A cluster whose partitions have so many rows each.
fn cluster(engine: EngineKind, rows: i64) -> (Cluster, ProcedureId) {
    let mut schema = SchemaBuilder::new();
    let table = Table::builder("rows")
        .column("site", ColumnType::Int32)
        .column("id", ColumnType::Int64)
        .column("content", ColumnType::Bytes);
    let table = schema.table(table.primary_key(&["site", "id"]).partition_by_column("site")).unwrap();
    let mut procedures = Procedures::new();
    let sweep = procedures.register(Sweep { table: table.clone() }).unwrap();
    let catalog = Catalog { schema: schema.finish(), procedures };
    let cluster = Cluster::build(engine, PARTITIONS, &catalog, 3, |me| {
        let mut storage = MemoryStorage::new();
        for id in 0..rows {
            let key = table.key((i32::from(me.0), id)).unwrap();
            let row = table.row((vec![7; CONTENT_BYTES],)).unwrap();
            storage.put(&key, key.hash(), &row, Position::LOADED);
        }
        Box::new(storage) as Box<dyn Storage + Send>
    });
    (cluster, sweep)
}

fn call(cluster: &mut Cluster, procedure: ProcedureId, rows: i64) -> Outcome {
    let request = cluster.call(PartitionId(0), CLIENT, procedure, encode_arguments(&rows).unwrap());
    cluster.run_until_quiet();
    cluster.reply(request).clone()
}

/// Rows of a partition that take so many bytes, about.
fn rows_of(bytes: usize) -> i64 {
    (bytes / CONTENT_BYTES) as i64
}

/// The log of this engine gets the reads of all partitions in one record, so that what counts is their sum.
#[test]
fn reads_that_the_log_does_not_take_are_refused_and_their_locks_released() {
    let rows = rows_of(LOGGED_READS_BYTES_MAX);
    let (mut cluster, sweep) = cluster(EngineKind::TwoPhase, 2 * rows);
    for of_each in [rows / 3, 2 * rows, rows / 3] {
        let outcome = call(&mut cluster, sweep, of_each);
        let Err(Error::Exceeds(Limit::Reads, reason)) = &outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("which is what the log of two-phase takes"), "{reason}");
    }
    assert_eq!(call(&mut cluster, sweep, rows / 5).map(drop), Ok(()));
}

#[test]
fn engines_with_an_order_send_more() {
    let rows = rows_of(LOGGED_READS_BYTES_MAX);
    for engine in [EngineKind::Calvin, EngineKind::Aloha] {
        let (mut cluster, sweep) = cluster(engine, rows);
        assert_eq!(call(&mut cluster, sweep, rows).map(drop), Ok(()), "{engine:?}");
    }
    const { assert!(LOGGED_READS_BYTES_MAX < READ_RESULTS_BYTES_MAX) }
}
