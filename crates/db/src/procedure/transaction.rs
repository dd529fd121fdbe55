//! What a procedure sees of the database while it runs.

use bytes::Bytes;

use super::functor::Changed;
use super::overlay::{Overlay, Written};
use super::{Arithmetic, Declaration, Footprint, OwnRow, Stop};
use crate::data::row::FixedValue;
use crate::data::schema::ColumnSelector;
use crate::data::{DataError, Direction, Key, KeyRange, Row, Schema, Table, Value, Values};

/// A row found by a scan, with its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The encoded key; decode its columns with [`Table::key_values`].
    pub key: Key,
    /// The encoded row; read it with [`Table::read`].
    pub row: Bytes,
}

/// Where a running procedure's reads come from and its writes go to.
///
/// Implemented by execution (footprint checked, remote reads at hand), by reconnaissance (footprint recorded) and by the
/// plain store that benchmarks take their limit from. Each is deterministic: equal reads lead to equal calls.
pub trait Access {
    /// The row of a key, or `None` when there is none; own writes included.
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop>;

    /// Inserts or replaces a row.
    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop>;

    /// Replaces fixed-width columns of the row of `table` with the key; `false` when there is no such row.
    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop>;

    /// Deletes a row if there is one.
    fn delete(&mut self, key: &Key) -> Result<(), Stop>;

    /// The first rows of a range in the order of keys, or in descending order the last ones, at most `limit`; own writes included.
    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop>;

    /// Whether this run is to tell of accesses ahead, since each by itself would take a way to others: then the number of partitions.
    fn looks_ahead(&self) -> Option<u16> {
        None
    }

    /// Takes what the run will touch next or, if that is `all`, from here to its end. If something of it was `refused`, that is why, and
    /// `ahead` goes only as far; what was one entry too many is still in it.
    fn look_ahead(&mut self, ahead: &Footprint, refused: Option<DataError>, all: bool) -> Result<(), Stop> {
        let _ = (ahead, refused, all);
        Ok(())
    }

    /// Whether the run has gone on past a row that nobody has asked for yet.
    fn is_past_gaps(&self) -> bool {
        false
    }

    /// The result of the run's next computation, if an earlier run of the same transaction has made it.
    fn computed(&mut self) -> Option<u64> {
        None
    }

    /// Notes the result of a computation that was made now, and how long it was in units of the procedure's own.
    fn note_computed(&mut self, units: u64, result: u64) {
        let _ = (units, result);
    }
}

/// The handle through which a procedure reads and writes.
pub struct Transaction<'a> {
    schema: &'a Schema,
    access: &'a mut dyn Access,
    scratch: &'a mut Vec<u8>,
}

impl<'a> Transaction<'a> {
    /// Lets a procedure run over `access`. `scratch` is a buffer to encode rows in; its content is lost.
    pub fn new(schema: &'a Schema, access: &'a mut dyn Access, scratch: &'a mut Vec<u8>) -> Transaction<'a> {
        Transaction { schema, access, scratch }
    }

    /// Does something whose writes go into `written`, laid over what there is, and nowhere else.
    pub fn over<T>(&mut self, written: &mut Written, act: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let mut overlay = Overlay::new(self.access, written);
        act(&mut Transaction::new(self.schema, &mut overlay, self.scratch))
    }

    /// Reads the row of a key.
    #[inline]
    pub fn get(&mut self, key: &Key) -> Result<Option<Row<'_>>, Stop> {
        let layout = self.schema.table_of(key)?.layout();
        Ok(self.access.get(key)?.map(|bytes| Row::new(layout, bytes)))
    }

    /// Inserts or replaces the row of a key, given the values of all columns that are not part of the key.
    #[inline]
    pub fn put<V: Values>(&mut self, table: &Table, key: &Key, values: V) -> Result<(), Stop> {
        check_table(table, key)?;
        self.scratch.clear();
        table.layout().encode(values, self.scratch)?;
        self.access.put(key, self.scratch)
    }

    /// Sets some columns of an existing row. Fixed-width columns are replaced in place; `false` when there is no such row.
    #[inline]
    pub fn set<C: ColumnSelector, const COLUMNS: usize>(
        &mut self,
        table: &Table,
        key: &Key,
        values: [(C, Value<'_>); COLUMNS],
    ) -> Result<bool, Stop> {
        check_table(table, key)?;
        let mut fixed = [FixedValue { column: 0, bytes: [0; 8], null: false }; COLUMNS];
        for ((column, value), slot) in values.iter().zip(&mut fixed) {
            match table.layout().fixed_value(column.find(table.layout())?, *value)? {
                Some(value) => *slot = value,
                None => return self.set_any(table, key, &values),
            }
        }
        self.access.replace(table, key, &fixed)
    }

    /// Sets columns of which one has a variable width: the row is written anew.
    fn set_any<C: ColumnSelector>(
        &mut self,
        table: &Table,
        key: &Key,
        values: &[(C, Value<'_>)],
    ) -> Result<bool, Stop> {
        let layout = table.layout();
        let mut changes = Vec::with_capacity(values.len());
        for (column, value) in values {
            changes.push((column.find(layout)?, *value));
        }
        let Some(bytes) = self.access.get(key)? else { return Ok(false) };
        let row = Row::new(layout, bytes);
        let mut all = Vec::with_capacity(layout.column_count());
        for column in 0..layout.column_count() {
            if layout.column(column).is_err() {
                continue;
            }
            let new = changes.iter().rev().find(|(changed, _)| *changed == column);
            all.push(new.map_or_else(|| row.value(column), |(_, value)| Ok(*value))?);
        }
        self.scratch.clear();
        layout.encode(all.as_slice(), self.scratch)?;
        self.access.put(key, self.scratch)?;
        Ok(true)
    }

    /// Changes an integer column of an existing row, as [`Functor::Arithmetic`](super::Functor) does; `false` where nothing changes: there
    /// is no row, the column is null, or the result would not fit it.
    pub fn change<C: ColumnSelector>(
        &mut self,
        table: &Table,
        key: &Key,
        column: C,
        operation: Arithmetic,
    ) -> Result<bool, Stop> {
        check_table(table, key)?;
        let Some(row) = self.access.get(key)? else { return Ok(false) };
        match operation.apply(table, column.find(table.layout())?, row)? {
            Changed::To(value) => self.access.replace(table, key, &[value]),
            Changed::Nothing | Changed::Exceeded(_) => Ok(false),
        }
    }

    /// The row of a key by itself, as a [functor](super::Procedure::functor) sees it.
    #[inline]
    pub fn own_row<'r>(&'r mut self, key: &'r Key) -> Result<OwnRow<'r>, Stop> {
        let table = self.schema.table_of(key)?;
        let Transaction { schema, access, scratch } = self;
        Ok(OwnRow::new(Transaction { schema, access: &mut **access, scratch }, table, key))
    }

    /// Deletes the row of a key if there is one.
    pub fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.access.delete(key)
    }

    /// The first rows of a range in ascending order of keys, at most `limit`.
    ///
    /// For a reconnoitred transaction the range is recorded, and protected from phantoms, only as far as it was scanned.
    pub fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Found>, Stop> {
        self.access.scan(range, Direction::Ascending, limit)
    }

    /// The rows of a range that come first in a direction, at most `limit`, in its order: [`scan`](Transaction::scan) for either end.
    pub fn scan_directed(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Found>, Stop> {
        self.access.scan(range, direction, limit)
    }

    /// Declares what the run is about to touch. Nothing changes by that, but that whoever would ask others for one key after the other
    /// asks for all of it at once: reconnaissance for rows of other partitions, an engine that locks as the run goes for locks, who
    /// reads a snapshot from afar for rows. Accesses that do not happen after all do no harm.
    pub fn declare_next(
        &mut self,
        declare: impl FnOnce(&mut Declaration<'_>) -> Result<(), DataError>,
    ) -> Result<(), Stop> {
        self.declare(declare, false)
    }

    /// Declares all that the run may touch from here to its end, in a procedure whose keys depend on data: the dependent reads are
    /// over. Reconnaissance ends here, so that it works no more than is needed to find the footprint (Ren et al. §3.6, DET-25).
    ///
    /// What is touched later and was not declared makes each attempt of the transaction miss its footprint, and the call fail in the end.
    pub fn declare_rest(
        &mut self,
        declare: impl FnOnce(&mut Declaration<'_>) -> Result<(), DataError>,
    ) -> Result<(), Stop> {
        self.declare(declare, true)
    }

    /// Whether anybody listens to [`declare_next`](Transaction::declare_next).
    pub fn looks_ahead(&self) -> bool {
        self.access.looks_ahead().is_some()
    }

    fn declare(
        &mut self,
        declare: impl FnOnce(&mut Declaration<'_>) -> Result<(), DataError>,
        all: bool,
    ) -> Result<(), Stop> {
        let Some(partitions) = self.access.looks_ahead() else { return Ok(()) };
        let mut ahead = Footprint::default();
        let declared = declare(&mut Declaration::new(self.schema, partitions, &mut ahead));
        self.access.look_ahead(&ahead, declared.err(), all)
    }

    /// Whether the run was shown something else than what there is, since it [runs past gaps](super::Procedure::runs_past_gaps): what went
    /// wrong means nothing then, and it only matters what it would read next.
    pub fn is_past_gaps(&self) -> bool {
        self.access.is_past_gaps()
    }

    /// Computes a number from what was read so far and from the arguments: for computations that take long.
    ///
    /// Who runs the procedure several times over the same reads, to find out what it touches, makes the computation once. Like all
    /// of the logic it must be a function of what was read, and the same computations must come in the same order. `units` tell how
    /// long it is, for who counts work: the simulator takes time for them.
    pub fn compute(&mut self, units: u64, computation: impl FnOnce() -> u64) -> u64 {
        if let Some(result) = self.access.computed() {
            return result;
        }
        let result = computation();
        self.access.note_computed(units, result);
        result
    }
}

/// Whether a row of the table may be written under the key: a row of another layout would break whoever reads it there.
#[inline]
fn check_table(table: &Table, key: &Key) -> Result<(), Stop> {
    if key.table() == Some(table.id()) {
        return Ok(());
    }
    Err(Stop::Invalid(format!("{key:?} is no key of table {}: make it with that table", table.name())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::data::{ColumnType, SchemaBuilder};

    /// Rows in a map, and how often a row was replaced in place.
    #[derive(Default)]
    struct Rows {
        rows: BTreeMap<Key, Vec<u8>>,
        replaced: usize,
    }

    impl Access for Rows {
        fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
            Ok(self.rows.get(key).map(Vec::as_slice))
        }

        fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
            self.rows.insert(key.clone(), row.to_vec());
            Ok(())
        }

        fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
            let Some(row) = self.rows.get_mut(key) else { return Ok(false) };
            self.replaced += 1;
            values.iter().for_each(|value| table.layout().replace(row, value));
            Ok(true)
        }

        fn delete(&mut self, key: &Key) -> Result<(), Stop> {
            self.rows.remove(key);
            Ok(())
        }

        fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Found>, Stop> {
            let inside = self.rows.iter().filter(|(key, _)| range.contains(key));
            let inside = direction.of_ascending(inside).take(limit);
            Ok(inside.map(|(key, row)| Found { key: key.clone(), row: row.clone().into() }).collect())
        }
    }

    fn tables() -> (Table, Table, Schema) {
        let wide = Table::builder("wide")
            .column("count", ColumnType::Int64)
            .column("id", ColumnType::Int32)
            .nullable("rank", ColumnType::Int32)
            .nullable("name", ColumnType::Text)
            .column("note", ColumnType::Bytes);
        let narrow = Table::builder("narrow").column("id", ColumnType::Int32).column("on", ColumnType::Bool);
        let mut schema = SchemaBuilder::new();
        let wide = schema.table(wide.primary_key(&["id"])).unwrap();
        let narrow = schema.table(narrow.primary_key(&["id"])).unwrap();
        (wide, narrow, schema.finish())
    }

    /// Runs a closure in a transaction over rows: `wide` has 1, `narrow` has 1.
    fn within<T>(run: impl FnOnce(&mut Transaction<'_>, &Table, &Table) -> T) -> (T, Rows) {
        let (wide, narrow, schema) = tables();
        let mut rows = Rows::default();
        rows.rows.insert(wide.key((1,)).unwrap(), wide.row((5_i64, 6, "name", &b"note"[..])).unwrap());
        rows.rows.insert(narrow.key((1,)).unwrap(), narrow.row((true,)).unwrap());
        let mut scratch = Vec::new();
        let mut transaction = Transaction::new(&schema, &mut rows, &mut scratch);
        let result = run(&mut transaction, &wide, &narrow);
        (result, rows)
    }

    #[test]
    fn columns_are_set_in_place_or_anew() {
        let set = |values: [(&'static str, Value<'static>); 3]| {
            let ((found, bytes), rows) = within(|transaction, wide, _| {
                let key = wide.key((1,)).unwrap();
                let found = transaction.set(wide, &key, values).unwrap();
                (found, transaction.get(&key).unwrap().unwrap().bytes().to_vec())
            });
            assert!(found);
            (bytes, rows.replaced)
        };
        let (wide, ..) = tables();
        let fixed = [("count", Value::Int64(1)), ("rank", Value::Null), ("count", Value::Int64(2))];
        let expected = wide.row((2_i64, None::<i32>, "name", &b"note"[..])).unwrap();
        assert_eq!(set(fixed), (expected, 1), "the last of two values for a column counts");
        let variable = [("name", Value::Text("a")), ("rank", Value::Int32(9)), ("name", Value::Null)];
        let expected = wide.row((5_i64, 9, None::<&str>, &b"note"[..])).unwrap();
        assert_eq!(set(variable), (expected, 0));
    }

    #[test]
    fn a_missing_row_is_not_set() {
        let (results, rows) = within(|transaction, wide, _| {
            let key = wide.key((2,)).unwrap();
            let fixed = transaction.set(wide, &key, [("count", Value::Int64(1))]);
            let variable = transaction.set(wide, &key, [("name", Value::Text("a"))]);
            (fixed, variable)
        });
        assert_eq!(results, (Ok(false), Ok(false)));
        assert_eq!(rows.rows.len(), 2);
    }

    #[test]
    fn values_that_do_not_fit_stop_the_run() {
        let stop = |column: &'static str, value: Value<'static>| {
            let (result, _) = within(|transaction, wide, _| {
                transaction.set(wide, &wide.key((1,)).unwrap(), [(column, value)])
            });
            match result {
                Err(Stop::Invalid(problem)) => problem,
                other => panic!("{other:?}"),
            }
        };
        assert!(stop("id", Value::Int32(1)).contains("no row column"));
        assert!(stop("no", Value::Int32(1)).contains("no row column"));
        assert!(stop("count", Value::Int32(1)).contains("holds Int64, not Int32"));
        assert!(stop("count", Value::Null).contains("must have a value"));
        assert!(stop("note", Value::Null).contains("must have a value"));
    }

    /// Else the row of one table would be written under a key of another, and break whoever reads it there.
    #[test]
    fn a_key_of_another_table_stops_the_run() {
        let invalid = |result: Result<(), Stop>| {
            let Err(Stop::Invalid(problem)) = result else { panic!("{result:?}") };
            assert!(problem.contains("is no key of table"), "{problem}");
        };
        let (wide, narrow, _) = tables();
        let foreign = narrow.key((1,)).unwrap();
        let row = (1_i64, 1, "a", &b"b"[..]);
        invalid(within(|transaction, wide, _| transaction.put(wide, &foreign, row)).0);
        let count = [("count", Value::Int64(1))];
        invalid(within(|transaction, wide, _| transaction.set(wide, &foreign, count).map(|_| ())).0);
        let name = [("name", Value::Text("a"))];
        invalid(within(|transaction, wide, _| transaction.set(wide, &foreign, name).map(|_| ())).0);
        let stray = Key::from_bytes(&[0]);
        invalid(within(|transaction, wide, _| transaction.put(wide, &stray, row)).0);
        let own = wide.key((7,)).unwrap();
        within(|transaction, wide, _| transaction.put(wide, &own, row)).0.unwrap();
    }
}
