//! Dependent transactions that tell what is left of them once their dependent reads are over (Ren et al. §3.6): reconnaissance works
//! as long as it takes to find the footprint and no longer (DET-25), and nobody computes anything twice to find it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::cluster::Cluster;
use ordain_db::data::{ColumnType, Key, SchemaBuilder, Table, Value};
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Limit, Outcome};
use ordain_db::execution::Executions;
use ordain_db::limits::FOOTPRINT_ENTRIES_MAX;
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{
    Catalog, Procedure, ProcedureId, Procedures, Stop, Transaction, decode_output, encode_arguments,
};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;

const PARTITIONS: u16 = 2;
const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 1 };

/// What a transaction computes in all.
const UNITS: u64 = 100;

/// A row: its partition, and its number there.
type Name = (u16, i64);

/// Adds 1 to rows: to those that it is given, and to as many as it is told from the one on that a pointer names.
struct Chase {
    table: Table,
}

/// The pointer, how many rows from the one on that it names, rows that are known before, and units to compute before it is read.
type Arguments = (Name, i64, Vec<Name>, u64);

impl Chase {
    fn key(&self, (site, id): Name) -> Key {
        self.table.key((i32::from(site), id)).unwrap()
    }

    fn value(&self, key: &Key, transaction: &mut Transaction<'_>) -> Result<i64, Stop> {
        transaction.get(key)?.map_or(Ok(0), |row| Ok(row.int64("value")?))
    }
}

impl Procedure for Chase {
    type Arguments = Arguments;
    type Output = u64;

    fn name(&self) -> &str {
        "chase"
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<u64, Stop> {
        let (pointer, count, known, units_before) = arguments;
        let pointer = self.key(*pointer);
        let mut keys: Vec<Key> = known.iter().map(|name| self.key(*name)).collect();
        transaction.declare_next(|declaration| {
            keys.iter().try_for_each(|key| declaration.update(key))?;
            declaration.read(&pointer)
        })?;
        let mut sum = 0;
        for key in &keys {
            sum += self.value(key, transaction)?;
        }
        let seen = sum as u64;
        let before = transaction.compute(*units_before, || 7 + seen);
        let first = self.value(&pointer, transaction)?;
        keys.extend((first..first + count).map(|id| self.key((pointer_site(first), id))));
        transaction.declare_rest(|declaration| keys.iter().try_for_each(|key| declaration.update(key)))?;
        let after = transaction.compute(UNITS - units_before, || 11);
        for key in keys {
            let value = self.value(&key, transaction)?;
            match transaction.set(&self.table, &key, [("value", Value::Int64(value + 1))])? {
                true => {}
                false => transaction.put(&self.table, &key, (1_i64,))?,
            }
        }
        Ok(before * 1_000 + after)
    }
}

/// Rows with odd numbers from 100 on are on the other partition.
fn pointer_site(first: i64) -> u16 {
    (first % 2) as u16
}

fn catalog() -> (Catalog, Table, ProcedureId) {
    let mut schema = SchemaBuilder::new();
    let table = Table::builder("rows")
        .column("site", ColumnType::Int32)
        .column("id", ColumnType::Int64)
        .column("value", ColumnType::Int64);
    let table = schema.table(table.primary_key(&["site", "id"]).partition_by_column("site")).unwrap();
    let mut procedures = Procedures::new();
    let chase = procedures.register(Chase { table: table.clone() }).unwrap();
    (Catalog { schema: schema.finish(), procedures }, table, chase)
}

/// Calls once on a cluster whose pointers `(0, 1)` and `(1, 1)` name the row `(0, 100)`, and `(0, 2)` names `(1, 101)`; the answer, and
/// what each partition has run.
fn call(engine: EngineKind, arguments: &Arguments) -> (Outcome, Vec<Executions>) {
    let (catalog, table, chase) = catalog();
    let mut cluster = Cluster::build(engine, PARTITIONS, &catalog, 3, |me| {
        let mut storage = MemoryStorage::new();
        for (site, id, value) in [(0, 1, 100), (1, 1, 100), (0, 2, 101)] {
            if me.0 == site {
                let key = table.key((i32::from(site), i64::from(id))).unwrap();
                storage.put(&key, key.hash(), &table.row((i64::from(value),)).unwrap(), Position::LOADED);
            }
        }
        Box::new(storage) as Box<dyn Storage + Send>
    });
    let arguments = encode_arguments(arguments).unwrap();
    let request = cluster.call(PartitionId(0), CLIENT, chase, arguments);
    cluster.run_until_quiet();
    (cluster.reply(request).clone(), cluster.executions())
}

fn output(outcome: Outcome) -> u64 {
    decode_output(&outcome.unwrap()).unwrap()
}

/// On a partition of its own a call costs what reconnaissance computes until the pointer is read, and all of it once.
#[test]
fn reconnaissance_works_as_long_as_the_dependent_read_is_deep() {
    for engine in EngineKind::ORDERED {
        for units_before in [0, 30, 100] {
            let (outcome, executions) = call(engine, &((0, 1), 3, Vec::new(), units_before));
            assert_eq!(output(outcome), 7_011);
            let Executions { reconnaissance, reconnaissance_units, units, .. } = executions[0];
            assert_eq!((reconnaissance, reconnaissance_units, units), (1, units_before, UNITS), "{engine:?}");
            assert_eq!(executions[1], Executions::default(), "the other partition has no part in it");
        }
    }
}

/// Rows of other partitions are fetched together, and then the run goes on where it was as far as it computes.
#[test]
fn reconnaissance_fetches_together_and_computes_once() {
    let known = vec![(1, 50), (1, 51), (0, 52), (1, 53)];
    let (outcome, executions) = call(EngineKind::Calvin, &((1, 1), 3, known, 60));
    assert_eq!(output(outcome), 7_011);
    // The first run asks for three rows and the pointer, the second has them.
    assert_eq!((executions[0].reconnaissance, executions[0].reconnaissance_units), (2, 60));
    assert_eq!((executions[0].units, executions[1].units), (UNITS, UNITS), "both run all of the logic");
    assert_eq!(executions[1].reconnaissance, 0, "only the home looks for the footprint");
}

/// The engine that locks as the logic goes keeps what it has computed: it works no more than if it had known all before (DET-58).
#[test]
fn two_phase_computes_once_wherever_the_dependent_read_is() {
    for units_before in [0, 30, 100] {
        let (outcome, executions) = call(EngineKind::TwoPhase, &((0, 1), 3, vec![(0, 50)], units_before));
        assert_eq!(output(outcome), 7_011);
        let Executions { explorations, units, .. } = executions[0];
        // Nothing is locked; the pointer and the known row are; all is.
        assert_eq!((explorations, units), (3, UNITS), "before the read: {units_before}");
        let (outcome, executions) = call(EngineKind::TwoPhase, &((0, 2), 3, vec![(1, 50)], units_before));
        assert_eq!(output(outcome), 7_011);
        let of_all: Vec<u64> = executions.iter().map(|executions| executions.units).collect();
        assert_eq!(of_all, [UNITS, UNITS], "its coordinator and its other participant");
    }
}

#[test]
fn a_rest_that_is_too_large_is_refused_and_not_tried() {
    let count = FOOTPRINT_ENTRIES_MAX as i64 + 1;
    let (outcome, executions) = call(EngineKind::Calvin, &((0, 1), count, Vec::new(), 0));
    assert!(matches!(&outcome, Err(Error::Exceeds(Limit::Footprint, _))), "{outcome:?}");
    assert_eq!((executions[0].reconnaissance, executions[0].alone), (1, 0));
    let (outcome, _) = call(EngineKind::TwoPhase, &((0, 1), count, Vec::new(), 0));
    assert!(matches!(&outcome, Err(Error::Exceeds(Limit::Footprint, _))), "{outcome:?}");
}
