//! Both methods for keys that depend on data, in one transaction (Fan and Golab, §IV-E; ALO-119): which counter it takes a number from is
//! found by reconnaissance, and it starts over where that no longer holds; which number that is, and with it the key that it inserts, it
//! knows when it runs, as the range in which the key lies is declared.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::cluster::Cluster;
use ordain_db::data::{ColumnType, DataError, Key, Row, SchemaBuilder, Table, Value};
use ordain_db::engine::EngineKind;
use ordain_db::message::{ClientId, RequestId};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{
    Catalog, Declaration, Declared, Procedure, ProcedureId, Procedures, Stop, Transaction, decode_output,
    encode_arguments,
};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;

const PARTITIONS: u16 = 2;
const DRAW: ProcedureId = ProcedureId(0);
const POINT: ProcedureId = ProcedureId(1);

/// Rows by site and place: `(0, 0)` names a counter's site; `(site, 0)` of the others has a counter; what is drawn is inserted beside it.
#[derive(Clone)]
struct Rows(Table);

/// Site of the pointer, and of the counters.
const POINTER: i32 = 0;
const COUNTERS: [i32; 2] = [2, 3];

impl Rows {
    fn key(&self, site: i32, place: i64) -> Key {
        self.0.key((site, place)).unwrap()
    }

    fn value(&self, key: &Key, transaction: &mut Transaction<'_>) -> Result<i64, Stop> {
        transaction.get(key)?.map_or(Ok(0), |row: Row<'_>| Ok(row.int64("value")?))
    }
}

/// Draws the next number of the counter that the pointer names, and inserts a row under it. Returns the counter's site and the number.
struct Draw(Rows);

impl Procedure for Draw {
    type Arguments = i64;
    type Output = (i64, i64);

    fn name(&self) -> &str {
        "draw"
    }

    fn run(&self, mark: &i64, transaction: &mut Transaction<'_>) -> Result<(i64, i64), Stop> {
        let Draw(rows) = self;
        let site = rows.value(&rows.key(POINTER, 0), transaction)?;
        let counter = rows.key(site as i32, 0);
        transaction.declare_rest(|footprint| {
            footprint.update(&counter)?;
            footprint.write_range(&rows.0.prefix((site as i32,))?)
        })?;
        let number = rows.value(&counter, transaction)? + 1;
        transaction.set(&rows.0, &counter, [("value", Value::Int64(number))])?;
        transaction.put(&rows.0, &rows.key(site as i32, number), (*mark,))?;
        Ok((site, number))
    }
}

/// Lets the pointer name another counter.
struct Point(Rows);

impl Procedure for Point {
    type Arguments = i64;
    type Output = ();

    fn name(&self) -> &str {
        "point"
    }

    fn declare(&self, _: &i64, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        footprint.write(&self.0.key(POINTER, 0))?;
        Ok(Declared::Complete)
    }

    fn run(&self, site: &i64, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        transaction.put(&self.0.0, &self.0.key(POINTER, 0), (*site,))
    }
}

/// Makes calls, all at once; the answers of the draws, how often a call started over, and the marks under each counter's numbers.
fn run(engine: EngineKind, seed: u64, calls: &[(ProcedureId, i64)]) -> (Vec<(i64, i64)>, u64, [Vec<i64>; 2]) {
    let mut schema = SchemaBuilder::new();
    let table = Table::builder("rows")
        .column("site", ColumnType::Int32)
        .column("place", ColumnType::Int64)
        .column("value", ColumnType::Int64);
    let table = schema.table(table.primary_key(&["site", "place"]).partition_by_column("site")).unwrap();
    let rows = Rows(table.clone());
    let mut procedures = Procedures::new();
    assert_eq!(procedures.register(Draw(rows.clone())).unwrap(), DRAW);
    assert_eq!(procedures.register(Point(rows.clone())).unwrap(), POINT);
    let catalog = Catalog { schema: schema.finish(), procedures };
    let mut cluster = Cluster::build(engine, PARTITIONS, &catalog, seed, |me| {
        let mut storage = MemoryStorage::new();
        for (site, value) in [(POINTER, i64::from(COUNTERS[0])), (COUNTERS[0], 0), (COUNTERS[1], 0)] {
            let key = rows.key(site, 0);
            if catalog.schema.owner(&key, PARTITIONS).unwrap().includes(me) {
                storage.put(&key, key.hash(), &table.row((value,)).unwrap(), Position::LOADED);
            }
        }
        Box::new(storage) as Box<dyn Storage + Send>
    });
    let client = ClientId { home: PartitionId(0), number: 1 };
    let sent: Vec<(ProcedureId, RequestId)> = calls
        .iter()
        .map(|(procedure, argument)| {
            let arguments = encode_arguments(argument).unwrap();
            (*procedure, cluster.call(PartitionId(0), client, *procedure, arguments))
        })
        .collect();
    cluster.run_until_quiet();
    let draws = sent.iter().filter(|(procedure, _)| *procedure == DRAW);
    let drawn =
        draws.map(|(_, request)| decode_output(&cluster.reply(*request).clone().unwrap()).unwrap()).collect();
    let restarts = cluster.statuses().iter().map(|status| status.counters.restarts).sum();
    let at = cluster.open_snapshot(client).unwrap();
    let marks = COUNTERS.map(|site| {
        let found = cluster.scan(client, at, &table.prefix((site,)).unwrap()).unwrap();
        found.iter().skip(1).map(|(_, row)| table.read(row).int64("value").unwrap()).collect()
    });
    (drawn, restarts, marks)
}

/// Ten calls draw ten numbers of one counter and insert rows under them, and none starts over.
#[test]
fn numbers_that_are_drawn_make_nobody_start_over() {
    let calls: Vec<_> = (0..10).map(|mark| (DRAW, mark)).collect();
    for engine in EngineKind::ORDERED {
        for seed in 0..20 {
            let (mut drawn, restarts, [mut marks, none]) = run(engine, seed, &calls);
            drawn.sort_unstable();
            let expected: Vec<_> = (1..=10).map(|number| (i64::from(COUNTERS[0]), number)).collect();
            assert_eq!((drawn, restarts), (expected, 0), "{engine:?}, seed {seed}");
            marks.sort_unstable();
            assert_eq!((marks, none), ((0..10).collect(), vec![]), "{engine:?}, seed {seed}");
        }
    }
}

/// Where the pointer changes meanwhile, some find themselves with another counter than they have looked for, and start over; numbers are
/// drawn without gaps all the same.
#[test]
fn a_pointer_that_changes_makes_those_start_over_who_have_read_it() {
    let draws = |marks: std::ops::Range<i64>| marks.map(|mark| (DRAW, mark));
    let point = [(POINT, i64::from(COUNTERS[1]))];
    let calls: Vec<_> = draws(0..5).chain(point).chain(draws(5..10)).collect();
    for engine in EngineKind::ORDERED {
        let mut started_over = 0;
        for seed in 0..20 {
            let (drawn, restarts, marks) = run(engine, seed, &calls);
            started_over += restarts;
            for (site, marks) in COUNTERS.iter().zip(&marks) {
                let mut numbers: Vec<i64> = drawn
                    .iter()
                    .filter(|(of, _)| *of == i64::from(*site))
                    .map(|(_, number)| *number)
                    .collect();
                numbers.sort_unstable();
                let dense: Vec<i64> = (1..=marks.len() as i64).collect();
                assert_eq!(numbers, dense, "{engine:?}, seed {seed}, counter {site}");
            }
            let mut all = marks.concat();
            all.sort_unstable();
            assert_eq!(all, (0..10).collect::<Vec<_>>(), "{engine:?}, seed {seed}");
        }
        assert!(started_over > 0, "{engine:?}: nobody had read the pointer before it changed");
    }
}
