//! Runs workloads on the plain store, with every access held against the declared footprint.

use ordain_db::data::row::FixedValue;
use ordain_db::data::{Direction, Key, KeyRange, Schema, Table};
use ordain_db::hash::Digest;
use ordain_db::position::PartitionId;
use ordain_db::procedure::footprint::{self, Footprint};
use ordain_db::procedure::transaction::{Access, Found};
use ordain_db::procedure::{Catalog, Declared, Stop, Transaction};
use ordain_workload::limit::PlainStore;
use ordain_workload::{Call, CheckLine, Part, Totals, Workload};

/// Refuses every access that the footprint does not declare.
struct Checked<'a> {
    store: &'a mut PlainStore,
    footprint: &'a Footprint,
}

impl Checked<'_> {
    fn key(&self, key: &Key, access: footprint::Access) -> Result<(), Stop> {
        let declared = match self.footprint.find(key) {
            Some(entry) => self.footprint.keys()[entry].access.covers(access),
            None => false,
        };
        if declared || self.footprint.find_range_of(key, access).is_some() {
            return Ok(());
        }
        Err(Stop::OutsideFootprint(format!("{key:?} {access:?}")))
    }
}

impl Access for Checked<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        self.key(key, footprint::Access::READ)?;
        self.store.get(key)
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.key(key, footprint::Access::WRITE)?;
        self.store.put(key, row)
    }

    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        self.key(key, footprint::Access::UPDATE)?;
        self.store.replace(table, key, values)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.key(key, footprint::Access::WRITE)?;
        self.store.delete(key)
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        let declared = |entry: &footprint::RangeEntry| entry.access.read && entry.range.covers(range);
        if !self.footprint.ranges().iter().any(declared) {
            return Err(Stop::OutsideFootprint(format!("{range:?}")));
        }
        Access::scan(self.store, range, direction, limit)
    }
}

/// The footprint that a call declares on a cluster, or `None` when it needs reconnaissance.
pub(crate) fn declare(catalog: &Catalog, call: &Call, partitions: u16) -> Option<Footprint> {
    let mut footprint = Footprint::default();
    let Catalog { schema, procedures } = catalog;
    let declared = procedures.declare(call.procedure, &call.arguments, schema, partitions, &mut footprint);
    (declared.unwrap() == Declared::Complete).then_some(footprint)
}

/// Runs calls on a freshly loaded store and returns it with what clients saw. Calls with a complete declaration run with
/// every access checked against it. `end` sees each call with its result.
pub(crate) fn run(
    workload: &dyn Workload,
    calls: usize,
    seed: u64,
    mut end: impl FnMut(&Call, &Result<Vec<u8>, Stop>),
) -> (PlainStore, Totals) {
    let mut store = PlainStore::load(workload).unwrap();
    let catalog = workload.catalog();
    let mut totals = Totals::new();
    let mut generators: Vec<_> =
        (0..3).map(|client| workload.generator(seed, client, Part::WHOLE).unwrap()).collect();
    for index in 0..calls {
        let call = generators[index % 3].next();
        let result = match declare(catalog, &call, 4) {
            Some(footprint) => run_checked(&catalog.schema, &mut store, &footprint, catalog, &call),
            None => store.run(catalog, &call).map(<[u8]>::to_vec),
        };
        let outcomes = totals.of_mut(catalog.procedures.name(call.procedure));
        match &result {
            Ok(_) => outcomes.committed += 1,
            Err(Stop::Abort(_)) => outcomes.aborted += 1,
            Err(stop) => panic!("call {index}: {stop:?}"),
        }
        end(&call, &result);
    }
    (store, totals)
}

fn run_checked(
    schema: &Schema,
    store: &mut PlainStore,
    footprint: &Footprint,
    catalog: &Catalog,
    call: &Call,
) -> Result<Vec<u8>, Stop> {
    let (mut scratch, mut output) = (Vec::new(), Vec::new());
    let mut checked = Checked { store, footprint };
    let mut transaction = Transaction::new(schema, &mut checked, &mut scratch);
    catalog.procedures.run(call.procedure, &call.arguments, &mut transaction, &mut output)?;
    Ok(output)
}

/// Fails with the first condition that is violated.
pub(crate) fn assert_holds(lines: &[CheckLine]) {
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line.holds, "{}: {}", line.condition, line.detail);
    }
}

/// The conditions that are violated.
pub(crate) fn violated(lines: &[CheckLine]) -> Vec<&str> {
    lines.iter().filter(|line| !line.holds).map(|line| line.condition.as_str()).collect()
}

/// The union of what 1, 2, 4 and 8 partitions load is one set of rows, each partition loads what it owns and as many
/// rows as it says.
pub(crate) fn assert_load_is_the_same_everywhere(workload: &dyn Workload) {
    let schema = &workload.catalog().schema;
    let mut expected = None;
    for partitions in [1, 2, 4, 8] {
        let (mut owned, mut replicated) = (Digest::default(), Vec::new());
        for partition in (0..partitions).map(PartitionId) {
            let (mut rows, mut copies) = (0, Digest::default());
            let part = Part::of(partition, partitions);
            let load = workload.load(part, &mut |key, row| {
                let table = schema.table_of(key).unwrap();
                table.layout().check(row).unwrap();
                let owner = table.owner(key, partitions);
                assert!(owner.includes(partition));
                rows += 1;
                match owner {
                    ordain_db::data::Owner::Partition(_) => owned.add(key, row),
                    _ => copies.add(key, row),
                }
            });
            load.unwrap();
            assert_eq!(rows, workload.rows_expected(part));
            replicated.push(copies);
        }
        assert!(replicated.iter().all(|copies| *copies == replicated[0]));
        owned.merge(replicated[0]);
        assert_eq!(*expected.get_or_insert(owned), owned, "{partitions} partitions");
    }
}

/// Equal seeds and clients give equal calls, others different ones; a part's homes lie in it.
pub(crate) fn assert_generator_is_deterministic(workload: &dyn Workload) {
    let calls = |seed, client, part| -> Vec<Call> {
        let mut generator = workload.generator(seed, client, part).unwrap();
        (0..50).map(|_| generator.next()).collect()
    };
    assert_eq!(calls(5, 0, Part::WHOLE), calls(5, 0, Part::WHOLE));
    assert_ne!(calls(5, 0, Part::WHOLE), calls(5, 1, Part::WHOLE));
    assert_ne!(calls(5, 0, Part::WHOLE), calls(6, 0, Part::WHOLE));
    let second = calls(5, 0, Part::of(PartitionId(1), 2));
    assert!(second.iter().all(|call| call.home_partition(2) == PartitionId(1)));
}
