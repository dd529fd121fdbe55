//! Rows of tables, as runs read and write them.

use ordain_db::data::{Direction, Key, KeyRange};
use ordain_db::procedure::transaction::Found;

use super::work::work_of_copies;
use super::{Failure, Few, Row, Run, malformed};
use crate::error::{SqlError, SqlState};
use crate::keys::{Bounds, ROW_COLUMN, Storages};
use crate::plan::{Expression, IndexShape, Path, TableShape};
use crate::types::{Datum, Values, row};

/// Rows that a scan reads at first, and twice as many each time that it goes on.
pub(super) const SCAN_ROWS: usize = 512;

/// Rows that a scan reads at a time, at most: that many are kept in memory.
const SCAN_ROWS_MAX: usize = 4096;

/// A table of which rows are read, and which of their columns.
#[derive(Clone, Copy)]
pub(super) struct Reading<'t> {
    pub shape: &'t TableShape,
    /// In order; all of them if it is not said.
    pub needed: Option<&'t [u16]>,
}

impl<'t> Reading<'t> {
    /// Whole rows.
    pub(super) fn whole(shape: &'t TableShape) -> Reading<'t> {
        Reading { shape, needed: None }
    }

    /// Whether the key comes behind the columns.
    fn gives_key(self) -> bool {
        let behind = self.shape.columns.len();
        let is_needed = |needed: &[u16]| needed.last().is_some_and(|last| usize::from(*last) == behind);
        self.shape.gives_key && self.needed.is_none_or(is_needed)
    }
}

/// A row with its key. A scan uses the same one for each row that it visits.
pub(super) struct Stored {
    pub key: Key,
    pub values: Row,
}

impl Stored {
    /// None so far.
    fn new() -> Stored {
        Stored { key: Key::from_bytes(&[]), values: Row::new() }
    }

    /// Takes it from a scan.
    pub(super) fn take(&mut self) -> Stored {
        Stored { key: self.key.clone(), values: std::mem::take(&mut self.values) }
    }

    /// Gives it a key, whose values are there.
    fn set_key(&mut self, table: Reading<'_>, key: Key) {
        if table.gives_key() {
            self.values.push(Datum::Bytes(key.bytes().to_vec()));
        }
        self.key = key;
    }
}

/// What a range holds.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// Rows.
    Rows,
    /// Entries of an index.
    Entries,
}

impl Run<'_, '_> {
    /// The row of a key.
    pub(super) fn read(&mut self, table: Reading<'_>, key: &Key) -> Result<Option<Row>, Failure> {
        let mut values = Row::new();
        Ok(self.read_into(table, key, &mut values)?.then_some(values))
    }

    /// Reads the row of a key in place of another one; whether there is one.
    fn read_into(&mut self, table: Reading<'_>, key: &Key, values: &mut Row) -> Result<bool, Failure> {
        let Some(found) = self.transaction.get(key)? else { return Ok(false) };
        let bytes = found.byte_string(ROW_COLUMN).map_err(ordain_db::procedure::Stop::from)?;
        decode(table, bytes, values)?;
        self.go_on()?;
        self.work(work_of_copies(&*values))?;
        Ok(true)
    }

    /// Visits the rows of a table by a path, in a direction, until the visitor says that it has enough. It may take each row. About so
    /// many are likely to be read.
    pub(super) fn scan(
        &mut self,
        table: Reading<'_>,
        (path, direction): (&Path, Direction),
        likely: usize,
        visit: &mut dyn FnMut(&mut Self, &mut Stored) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let shape = table.shape;
        match path {
            Path::All => {
                let range = self.storages.all(shape.replicated, shape.storage)?;
                self.scan_range(table, Place::Rows, (&range, direction), likely, visit)
            }
            Path::Keys(keys) => self.scan_keys(table, keys, direction, visit),
            Path::Range { index, equal, lower, upper, not_null } => {
                let Some(bounds) = self.bounds(equal, lower.as_ref(), upper.as_ref())? else { return Ok(()) };
                let bounds = bounds.borrowed(*not_null);
                let storages = self.storages;
                let Some(index) = index else {
                    let range = storages.range(shape.replicated, shape.storage, shape.placing, &bounds)?;
                    return self.scan_range(table, Place::Rows, (&range, direction), likely, visit);
                };
                let index = index_of(shape, *index)?;
                let range = storages.range(shape.replicated, index.storage, 1, &bounds)?;
                self.scan_range(table, Place::Entries, (&range, direction), likely, visit)
            }
            Path::Ranges { index, prefixes, array } => {
                self.scan_ranges(table, (*index, direction), (prefixes, array.as_ref()), likely, visit)
            }
        }
    }

    /// Visits the rows of several ranges, each of which has some values of its leading columns.
    fn scan_ranges(
        &mut self,
        table: Reading<'_>,
        (index, direction): (Option<u16>, Direction),
        (prefixes, array): (&[Vec<Expression>], Option<&Expression>),
        likely: usize,
        visit: &mut dyn FnMut(&mut Self, &mut Stored) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let shape = table.shape;
        let mut values = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            values.push(self.outside(prefix)?);
        }
        let array = array.map(|array| self.value(array, &[])).transpose()?;
        let values = spread(values, array);
        if index.is_none()
            && let Some(keys) = whole_keys(self.storages, shape, &values)?
        {
            return self.scan_sorted(table, keys, direction, visit);
        }
        let (storage, placing, place) = match index {
            None => (shape.storage, shape.placing, Place::Rows),
            Some(index) => (index_of(shape, index)?.storage, 1, Place::Entries),
        };
        let mut wants = true;
        let ranges = self.storages.ranges(shape.replicated, storage, placing, &values)?;
        for range in direction.of_ascending(ranges.iter()) {
            self.scan_range(table, place, (range, direction), likely, &mut |run, stored| {
                wants = visit(run, stored)?;
                Ok(wants)
            })?;
            if !wants {
                break;
            }
        }
        Ok(())
    }

    fn scan_keys(
        &mut self,
        table: Reading<'_>,
        keys: &[Vec<Expression>],
        direction: Direction,
        visit: &mut dyn FnMut(&mut Self, &mut Stored) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut sorted = Few::with_capacity(keys.len());
        for key in keys {
            let values = self.outside(key)?;
            // Nothing equals null.
            if !values.contains(&Datum::Null) {
                sorted.extend(self.storages.sought_row(table.shape, &values)?);
            }
        }
        sorted.sort_unstable();
        sorted.dedup();
        self.scan_sorted(table, sorted, direction, visit)
    }

    /// Visits the rows of keys that ascend.
    fn scan_sorted(
        &mut self,
        table: Reading<'_>,
        mut keys: Few<Key>,
        direction: Direction,
        visit: &mut dyn FnMut(&mut Self, &mut Stored) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        if matches!(direction, Direction::Descending) {
            keys.reverse();
        }
        let mut stored = Stored::new();
        for keys in keys.chunks(SCAN_ROWS) {
            if keys.len() > 1 {
                self.read_soon(|_| Ok(keys.to_vec()))?;
            }
            for key in keys {
                if self.read_into(table, key, &mut stored.values)? {
                    stored.set_key(table, key.clone());
                    if !visit(self, &mut stored)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Visits the rows of a range, or those that its entries stand for.
    pub(super) fn scan_range(
        &mut self,
        table: Reading<'_>,
        place: Place,
        (range, direction): (&KeyRange, Direction),
        likely: usize,
        visit: &mut dyn FnMut(&mut Self, &mut Stored) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        // It may be where no key can be, and so on no partition.
        if range.is_empty() {
            return Ok(());
        }
        let (mut rest, mut stored) = (range.clone(), Stored::new());
        let mut size = likely.clamp(1, SCAN_ROWS);
        loop {
            let page = self.transaction.scan_directed(&rest, direction, size)?;
            let is_last = page.len() < size;
            // What the filter leaves out is read over: more at a time, the more there is. A run that looks for its footprint begins anew
            // for each time.
            size = (2 * size).min(SCAN_ROWS_MAX);
            if let Some(last) = page.last() {
                rest = rest.unseen(direction, last.key.bytes());
            }
            if matches!(place, Place::Entries) {
                self.read_soon(|storages| {
                    let key = |entry: &Found| {
                        let content = row_bytes(storages, table.shape.replicated, &entry.row)?;
                        Ok(row_key(table.shape, content, &entry.key))
                    };
                    page.iter().map(key).collect()
                })?;
            }
            for found in page {
                let is_there = match place {
                    Place::Rows => self.found(table, found, &mut stored)?,
                    Place::Entries => self.entered(table, &found, &mut stored)?,
                };
                if is_there && !visit(self, &mut stored)? {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Says which keys are read next: whoever only looks for the footprint asks other partitions for all of them at once. Nothing is
    /// worked out for anybody else. What cannot be a key fails when it is read.
    pub(super) fn read_soon(
        &mut self,
        keys: impl FnOnce(&Storages) -> Result<Vec<Key>, Failure>,
    ) -> Result<(), Failure> {
        let storages = self.storages;
        let declared = self.transaction.declare_next(|declaration| {
            let keys = keys(storages).unwrap_or_default();
            keys.iter().try_for_each(|key| declaration.read(key))
        });
        Ok(declared?)
    }

    /// A row that a scan has found: there is one.
    fn found(&mut self, table: Reading<'_>, found: Found, stored: &mut Stored) -> Result<bool, Failure> {
        let bytes = row_bytes(self.storages, table.shape.replicated, &found.row)?;
        decode(table, bytes, &mut stored.values)?;
        self.go_on()?;
        self.work(work_of_copies(&stored.values))?;
        stored.set_key(table, found.key);
        Ok(true)
    }

    /// The row that an entry stands for, if it is there. It is, unless it is not known yet.
    fn entered(&mut self, table: Reading<'_>, entry: &Found, stored: &mut Stored) -> Result<bool, Failure> {
        let shape = table.shape;
        let key = row_key(shape, row_bytes(self.storages, shape.replicated, &entry.row)?, &entry.key);
        if !self.read_into(table, &key, &mut stored.values)? {
            return if self.transaction.is_past_gaps() { Ok(false) } else { Err(dangling(shape).into()) };
        }
        stored.set_key(table, key);
        Ok(true)
    }

    /// Values of expressions that see no row of their own, only those around.
    fn outside(&mut self, expressions: &[Expression]) -> Result<Values, Failure> {
        expressions.iter().map(|expression| self.value(expression, &[])).collect()
    }

    /// The values of bounds, or `None` if no row can be between them because one is null.
    fn bounds(
        &mut self,
        equal: &[Expression],
        lower: Option<&(Expression, bool)>,
        upper: Option<&(Expression, bool)>,
    ) -> Result<Option<BoundValues>, Failure> {
        let equal = self.outside(equal)?;
        let mut bound = |bound: Option<&(Expression, bool)>| -> Result<Option<(Datum, bool)>, Failure> {
            let Some((expression, included)) = bound else { return Ok(None) };
            Ok(Some((self.value(expression, &[])?, *included)))
        };
        let (lower, upper) = (bound(lower)?, bound(upper)?);
        let null = |bound: &Option<(Datum, bool)>| matches!(bound, Some((Datum::Null, _)));
        let empty = equal.contains(&Datum::Null) || null(&lower) || null(&upper);
        Ok((!empty).then_some(BoundValues { equal, lower, upper }))
    }

    /// The key of the row that an entry of a unique index stands for, if there is one.
    pub(super) fn find(&mut self, shape: &TableShape, entry: &Key) -> Result<Option<Key>, Failure> {
        let Some(found) = self.transaction.get(entry)? else { return Ok(None) };
        let bytes = found.byte_string(ROW_COLUMN).map_err(ordain_db::procedure::Stop::from)?;
        Ok(Some(row_key(shape, bytes, entry)))
    }

    /// Writes a row or entry.
    pub(super) fn write(&mut self, shape: &TableShape, key: &Key, row: &[u8]) -> Result<(), Failure> {
        let table = self.storages.table(shape.replicated);
        Ok(self.transaction.put(table, key, (row,))?)
    }

    /// The key under which a new row goes.
    pub(super) fn key_of(&mut self, shape: &TableShape, values: &[Datum]) -> Result<Key, SqlError> {
        if shape.key.is_empty() {
            self.hidden += 1;
            return self.storages.hidden(shape, self.inputs.seed, self.hidden);
        }
        self.storages.row(shape, &pick(values, &shape.key))
    }
}

struct BoundValues {
    equal: Values,
    lower: Option<(Datum, bool)>,
    upper: Option<(Datum, bool)>,
}

impl BoundValues {
    fn borrowed(&self, not_null: bool) -> Bounds<'_> {
        fn bound(bound: &Option<(Datum, bool)>) -> Option<(&Datum, bool)> {
            bound.as_ref().map(|(value, included)| (value, *included))
        }
        Bounds { equal: &self.equal, lower: bound(&self.lower), upper: bound(&self.upper), not_null }
    }
}

/// The leading values of ranges: each of the prefixes, with each element of the array if there is one.
pub(super) fn spread(prefixes: Vec<Values>, array: Option<Datum>) -> Vec<Values> {
    let with = |prefix: &Values, element: &Datum| prefix.iter().chain([element]).cloned().collect();
    let spread: Vec<Values> = match array {
        None => prefixes,
        Some(Datum::Array(elements)) => prefixes
            .iter()
            .flat_map(|prefix| elements.iter().map(move |element| with(prefix, element)))
            .collect(),
        // Nothing is an element of null.
        Some(_) => Vec::new(),
    };
    // Nothing equals null.
    spread.into_iter().filter(|values| !values.contains(&Datum::Null)).collect()
}

/// The keys of the rows that have these leading values, each once and in order, if they are all values of the key.
pub(super) fn whole_keys(
    storages: &Storages,
    shape: &TableShape,
    leading: &[Values],
) -> Result<Option<Few<Key>>, SqlError> {
    if shape.key.is_empty() || leading.iter().any(|values| values.len() != shape.key.len()) {
        return Ok(None);
    }
    let mut keys = Few::with_capacity(leading.len());
    for values in leading {
        keys.extend(storages.sought_row(shape, values)?);
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(Some(keys))
}

/// The values of some columns.
pub(super) fn pick(values: &[Datum], columns: &[u16]) -> Values {
    columns.iter().map(|column| values.get(usize::from(*column)).cloned().unwrap_or(Datum::Null)).collect()
}

/// Whether two rows have the same values in some columns.
pub(super) fn agree(one: &[Datum], other: &[Datum], columns: &[u16]) -> bool {
    columns.iter().all(|column| one.get(usize::from(*column)) == other.get(usize::from(*column)))
}

/// An index of a table by its number.
pub(super) fn index_of(shape: &TableShape, number: u16) -> Result<&IndexShape, SqlError> {
    shape.indexes.get(usize::from(number)).ok_or_else(|| malformed("index"))
}

/// A row's values in place of others: those of all columns of the table, or of those that are needed.
pub(super) fn decode(table: Reading<'_>, bytes: &[u8], values: &mut Row) -> Result<(), SqlError> {
    let columns = &table.shape.columns;
    values.clear();
    match table.needed {
        None => {
            // A scan may add the key.
            values.reserve(columns.len() + 1);
            row::decode(bytes, values)?;
            values.extend(columns.iter().skip(values.len()).map(|column| column.missing.clone()));
        }
        Some(needed) => {
            values.reserve(needed.len());
            row::decode_some(bytes, needed, values)?;
            let missing =
                needed.iter().skip(values.len()).filter_map(|number| columns.get(usize::from(*number)));
            values.extend(missing.map(|column| column.missing.clone()));
        }
    }
    Ok(())
}

fn row_bytes<'r>(storages: &'r Storages, replicated: bool, row: &'r [u8]) -> Result<&'r [u8], Failure> {
    let row = storages.table(replicated).read(row);
    Ok(row.byte_string(ROW_COLUMN).map_err(ordain_db::procedure::Stop::from)?)
}

/// The key of the row that an entry stands for.
fn row_key(shape: &TableShape, content: &[u8], entry: &Key) -> Key {
    let mut bytes = entry.bytes()[..2].to_vec();
    // As the database encodes an `int32`.
    bytes.extend_from_slice(&(shape.storage ^ 1 << 31).to_be_bytes());
    bytes.extend_from_slice(content);
    Key::from_bytes(&bytes)
}

fn dangling(shape: &TableShape) -> SqlError {
    let message = format!("an index of table \"{}\" has an entry without a row", shape.name);
    SqlError::new(SqlState::INTERNAL_ERROR, message)
}
