//! Procedures that only read, over the rows of an open snapshot.
//!
//! Such a run takes no position, no lock and no message to others: the snapshot has its position, and shows the whole effect of
//! every transaction before it and nothing of those after it. So it can run whenever the node has come to the snapshot. It sees
//! the rows of its own partition and those of replicated tables; a procedure that needs others is called as a transaction.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::data::row::FixedValue;
use crate::data::{Direction, Key, KeyRange, Owner, Schema, Table};
use crate::error::Error;
use crate::hash::key_hash;
use crate::position::{PartitionId, Position};
use crate::procedure::transaction::{Access, Found};
use crate::procedure::{Catalog, ProcedureId, Stop, Transaction};
use crate::storage::Storage;

/// One partition's rows as of a snapshot.
pub struct SnapshotReads<'a> {
    /// The partition.
    pub me: PartitionId,
    /// How many there are.
    pub partitions: u16,
    /// The tables.
    pub schema: &'a Schema,
    /// The rows.
    pub storage: &'a mut dyn Storage,
    /// The snapshot; it is open.
    pub at: Position,
}

impl SnapshotReads<'_> {
    /// Runs a procedure; its encoded result.
    pub fn run(
        mut self,
        catalog: &Catalog,
        procedure: ProcedureId,
        arguments: &[u8],
    ) -> Result<Bytes, Error> {
        let (mut scratch, mut output) = (Vec::new(), Vec::new());
        let mut transaction = Transaction::new(&catalog.schema, &mut self, &mut scratch);
        match catalog.procedures.run(procedure, arguments, &mut transaction, &mut output) {
            Ok(()) => Ok(output.into()),
            Err(Stop::Abort(reason)) => Err(Error::Aborted(reason)),
            Err(Stop::Invalid(problem) | Stop::OutsideFootprint(problem)) => {
                Err(Error::Invalid(format!("{}: {problem}", catalog.procedures.name(procedure))))
            }
            Err(Stop::Exceeds(limit, problem)) => {
                let name = catalog.procedures.name(procedure);
                Err(Error::Exceeds(limit, format!("{name}: {problem}")))
            }
            Err(Stop::ReadPending | Stop::FootprintKnown) => {
                let name = catalog.procedures.name(procedure);
                Err(Error::Invalid(format!("{name} made up a stop that only reconnaissance has")))
            }
        }
    }

    fn check_held(&self, owner: Owner, table: &Table) -> Result<(), Stop> {
        let alone = matches!(owner, Owner::Split) && self.partitions == 1;
        if alone || (owner != Owner::Split && owner.includes(self.me)) {
            return Ok(());
        }
        Err(Stop::Invalid(format!(
            "rows of table {} that another partition than {} holds cannot be read in a snapshot: call it as a transaction",
            table.name(),
            self.me
        )))
    }
}

fn writes() -> Stop {
    Stop::Invalid("a snapshot cannot be written: call it as a transaction".to_owned())
}

impl Access for SnapshotReads<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        let table = self.schema.table_of(key)?;
        self.check_held(table.owner(key, self.partitions), table)?;
        Ok(self.storage.get(key, key_hash(key), self.at))
    }

    fn put(&mut self, _: &Key, _: &[u8]) -> Result<(), Stop> {
        Err(writes())
    }

    fn replace(&mut self, _: &Table, _: &Key, _: &[FixedValue]) -> Result<bool, Stop> {
        Err(writes())
    }

    fn delete(&mut self, _: &Key) -> Result<(), Stop> {
        Err(writes())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let table = self.schema.table_of(&range.start)?;
        self.check_held(table.range_owner(range, self.partitions), table)?;
        let mut found = Vec::new();
        self.storage.scan(range, direction, self.at, &mut |key, row| {
            found.push(Found { key: Key::from_bytes(key), row: Bytes::copy_from_slice(row) });
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ColumnType, SchemaBuilder};
    use crate::procedure::{Procedure, Procedures, decode_output, encode_arguments};
    use crate::storage::memory::MemoryStorage;

    /// Adds up a site's numbers; with `true` it first tries to change one.
    struct Sum(Table);

    impl Procedure for Sum {
        type Arguments = (i32, bool);
        type Output = i32;

        fn name(&self) -> &str {
            "sum"
        }

        fn run(&self, (site, writes): &(i32, bool), transaction: &mut Transaction<'_>) -> Result<i32, Stop> {
            let first = self.0.key((*site, 1))?;
            if *writes {
                transaction.put(&self.0, &first, (7,))?;
            }
            let Some(row) = transaction.get(&first)? else { return Err(Stop::abort("no first row")) };
            let mut sum = 100 * row.int32("value")?;
            for found in transaction.scan(&self.0.prefix((*site,))?, 2)? {
                sum += self.0.read(&found.row).int32("value")?;
            }
            Ok(sum)
        }
    }

    fn catalog() -> (Catalog, Table) {
        let mut schema = SchemaBuilder::new();
        let columns = ["site", "id", "value"];
        let table =
            columns.iter().fold(Table::builder("t"), |table, name| table.column(name, ColumnType::Int32));
        let table = schema.table(table.primary_key(&["site", "id"]).partition_by_column("site")).unwrap();
        let mut procedures = Procedures::new();
        procedures.register(Sum(table.clone())).unwrap();
        (Catalog { schema: schema.finish(), procedures }, table)
    }

    /// Site 2 has the values 1, 2 and 3, and after the snapshot 10 in place of each.
    fn run(arguments: (i32, bool), partitions: u16) -> Result<i32, Error> {
        let (catalog, table) = catalog();
        let mut storage = MemoryStorage::new();
        let at = |index| Position { epoch: crate::position::Epoch(1), origin: PartitionId(0), index };
        let write = |storage: &mut MemoryStorage, id: i32, value: i32, position| {
            let key = table.key((2, id)).unwrap();
            storage.put(&key, key.hash(), &table.row((value,)).unwrap(), position);
        };
        (1..=3).for_each(|id| write(&mut storage, id, id, at(1)));
        storage.open_snapshot(at(2));
        (1..=3).for_each(|id| write(&mut storage, id, 10, at(3)));
        let me = PartitionId(0);
        let reads =
            SnapshotReads { me, partitions, schema: &catalog.schema, storage: &mut storage, at: at(2) };
        let result = reads.run(&catalog, ProcedureId(0), &encode_arguments(&arguments).unwrap());
        result.map(|output| decode_output(&output).unwrap())
    }

    #[test]
    fn a_read_sees_the_snapshot() {
        assert_eq!(run((2, false), 2), Ok(103), "the first row, and the first two of the range");
        assert_eq!(run((4, false), 2), Err(Error::Aborted("no first row".to_owned())));
    }

    #[test]
    fn a_read_neither_writes_nor_sees_other_partitions() {
        let Err(Error::Invalid(problem)) = run((2, true), 2) else { panic!("it wrote") };
        assert!(problem.contains("sum: a snapshot cannot be written"), "{problem}");
        let Err(Error::Invalid(problem)) = run((3, false), 2) else { panic!("it read site 3") };
        assert!(problem.contains("another partition than p0 holds"), "{problem}");
        assert_eq!(run((3, false), 1), Err(Error::Aborted("no first row".to_owned())));
    }
}
