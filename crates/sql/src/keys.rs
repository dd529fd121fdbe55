//! Where rows, index entries and definitions are: the tables of the database that SQL lives in.
//!
//! A table of SQL is not a table of the database's schema, which is fixed when a database is opened. All of them share two: one that is
//! spread over the partitions, and one of which each partition has a copy. The key of a row is the number of its *storage*, then the
//! values that decide where it is placed, then the others:
//!
//! ```text
//!   storage: int32 | placing columns of the key: bytes | rest of the key: bytes      ->      row: bytes
//! ```
//!
//! The middle part is hashed together with the number. Both parts are encoded so that their order is that of the values
//! ([`types::key`](crate::types::key)), so a range of leading columns is a range of keys.

use ordain_db::data::{ColumnType, DataError, Key, KeyRange, Schema, SchemaBuilder, Table};

use crate::error::{SqlError, SqlState};
use crate::plan::{IndexShape, TableShape};
use crate::types::key::{self, KeyBytes};
use crate::types::{Datum, Values};

/// The tables of the database that SQL lives in.
#[derive(Clone, Debug)]
pub struct Storages {
    /// Definitions by schema and name, on every partition.
    pub definitions: Table,
    /// Rows that are spread.
    pub spread: Table,
    /// Rows that every partition has.
    pub copied: Table,
}

/// The column of rows and entries that holds them.
pub const ROW_COLUMN: usize = 3;

/// The column of a definition.
pub const DEFINITION_COLUMN: usize = 2;

const NAMES: [&str; 3] = ["sql_definitions", "sql_rows", "sql_copies"];

impl Storages {
    /// Adds the tables to a schema.
    ///
    /// # Errors
    /// When the schema has tables with these names.
    pub fn register(schema: &mut SchemaBuilder) -> Result<Storages, DataError> {
        let rows = |name: &str| {
            Table::builder(name)
                .column("storage", ColumnType::Int32)
                .column("placing", ColumnType::Bytes)
                .column("rest", ColumnType::Bytes)
                .column("row", ColumnType::Bytes)
                .primary_key(&["storage", "placing", "rest"])
        };
        let definitions = Table::builder(NAMES[0])
            .column("schema", ColumnType::Text)
            .column("name", ColumnType::Text)
            .column("definition", ColumnType::Bytes)
            .primary_key(&["schema", "name"])
            .replicated();
        Ok(Storages {
            definitions: schema.table(definitions)?,
            spread: schema.table(rows(NAMES[1]).partition_by_hash(2))?,
            copied: schema.table(rows(NAMES[2]).replicated())?,
        })
    }

    /// Finds the tables in a schema that they were added to.
    pub fn find(schema: &Schema) -> Option<Storages> {
        let find = |name: &str| schema.tables().iter().find(|table| table.name() == name).cloned();
        Some(Storages { definitions: find(NAMES[0])?, spread: find(NAMES[1])?, copied: find(NAMES[2])? })
    }

    /// The table of the database that a storage is in.
    pub fn table(&self, replicated: bool) -> &Table {
        if replicated { &self.copied } else { &self.spread }
    }

    /// The key of a definition.
    ///
    /// # Errors
    /// When the names are too long.
    pub fn definition(&self, schema: &str, name: &str) -> Result<Key, SqlError> {
        self.definitions.key((schema, name)).map_err(too_long)
    }

    /// The key of a row or entry with these bytes.
    fn key(&self, replicated: bool, storage: u32, parts: &Parts) -> Result<Key, SqlError> {
        self.encoded(replicated, storage, parts).map_err(too_long)
    }

    fn encoded(&self, replicated: bool, storage: u32, parts: &Parts) -> Result<Key, DataError> {
        let values = (storage.cast_signed(), parts.placing.as_slice(), parts.rest.as_slice());
        self.table(replicated).key(values)
    }

    /// The same for who only looks: nothing is there under values that are too long together.
    fn sought(&self, replicated: bool, storage: u32, parts: &Parts) -> Result<Option<Key>, SqlError> {
        match self.encoded(replicated, storage, parts) {
            Ok(key) => Ok(Some(key)),
            Err(DataError::KeyTooLong(_)) => Ok(None),
            Err(error) => Err(too_long(error)),
        }
    }

    /// The key of a row, from the values of the key's columns.
    ///
    /// # Errors
    /// When they are too long together.
    pub fn row(&self, shape: &TableShape, values: &[Datum]) -> Result<Key, SqlError> {
        self.key(shape.replicated, shape.storage, &Parts::of(values, shape.placing))
    }

    /// The key of the row that is there if one with these values is; `None` if there can be none, since they are too long together.
    ///
    /// # Errors
    /// None that can happen.
    pub fn sought_row(&self, shape: &TableShape, values: &[Datum]) -> Result<Option<Key>, SqlError> {
        self.sought(shape.replicated, shape.storage, &Parts::of(values, shape.placing))
    }

    /// The key of a row without a primary key: of a number that no other row has.
    ///
    /// # Errors
    /// None that can happen.
    pub fn hidden(&self, shape: &TableShape, seed: u128, number: u64) -> Result<Key, SqlError> {
        let mut placing = KeyBytes::from_slice(&seed.to_be_bytes());
        placing.extend_from_slice(&number.to_be_bytes());
        self.key(shape.replicated, shape.storage, &Parts { placing, rest: KeyBytes::new() })
    }

    /// The key of the state of a sequence.
    ///
    /// # Errors
    /// None that can happen.
    pub fn sequence(&self, storage: u32) -> Result<Key, SqlError> {
        self.key(false, storage, &Parts { placing: KeyBytes::new(), rest: KeyBytes::new() })
    }

    /// The key of an index entry. That of a unique index is told by the values alone, unless one is null; any other also by the row's
    /// own key.
    ///
    /// # Errors
    /// When all are too long together.
    pub fn entry(
        &self,
        shape: &TableShape,
        index: &IndexShape,
        values: &[Datum],
        row: &Key,
    ) -> Result<Key, SqlError> {
        let mut parts = Parts::of(values, 1);
        if !index.unique || values.contains(&Datum::Null) {
            parts.rest.extend_from_slice(&row.bytes()[ROW_PREFIX..]);
        }
        self.key(shape.replicated, index.storage, &parts)
    }

    /// The key of the row of a primary key, or of the entry of a unique index, that is there if a row with these values is; `None` if
    /// there can be none, since they are too long together. None of them is null.
    ///
    /// # Errors
    /// None that can happen.
    pub fn unique(
        &self,
        shape: &TableShape,
        index: Option<&IndexShape>,
        values: &[Datum],
    ) -> Result<Option<Key>, SqlError> {
        match index {
            None => self.sought_row(shape, values),
            Some(index) => self.sought(shape.replicated, index.storage, &Parts::of(values, 1)),
        }
    }

    /// The range of all rows of a storage.
    pub fn all(&self, replicated: bool, storage: u32) -> Result<KeyRange, SqlError> {
        self.table(replicated).prefix((storage.cast_signed(),)).map_err(too_long)
    }

    /// The range of rows whose leading key columns have some values, and the next one lies between bounds: empty where no key is long
    /// enough for them.
    ///
    /// # Errors
    /// None that can happen.
    pub fn range(
        &self,
        replicated: bool,
        storage: u32,
        placing: u8,
        bounds: &Bounds<'_>,
    ) -> Result<KeyRange, SqlError> {
        let table = self.table(replicated);
        let number = storage.cast_signed();
        let placing = usize::from(placing);
        let equal = bounds.equal;
        if equal.len() < placing {
            let (low, high) = bounds.bytes(equal);
            let start = table.range((number, low.as_slice()), (number,)).map_err(too_long)?.start;
            let end = match high {
                Some(high) => table.range((number,), (number, high.as_slice())).map_err(too_long)?.end,
                None => self.all(replicated, storage)?.end,
            };
            return Ok(KeyRange { start, end });
        }
        let placed = encoded(&equal[..placing]);
        let (low, high) = bounds.bytes(&equal[placing..]);
        let from = (number, placed.as_slice(), low.as_slice());
        let start = table.range(from, (number,)).map_err(too_long)?.start;
        let end = match high {
            Some(high) => {
                table.range((number,), (number, placed.as_slice(), high.as_slice())).map_err(too_long)?.end
            }
            None => table.prefix((number, placed.as_slice())).map_err(too_long)?.end,
        };
        Ok(KeyRange { start, end })
    }

    /// The ranges of rows whose leading key columns have one of several values, each once and in order.
    ///
    /// # Errors
    /// None that can happen.
    pub fn ranges(
        &self,
        replicated: bool,
        storage: u32,
        placing: u8,
        prefixes: &[Values],
    ) -> Result<Vec<KeyRange>, SqlError> {
        let of = |equal: &Values| self.range(replicated, storage, placing, &Bounds::of_prefix(equal));
        let mut ranges = prefixes.iter().map(of).collect::<Result<Vec<KeyRange>, SqlError>>()?;
        ranges.sort_unstable();
        ranges.dedup();
        Ok(ranges)
    }
}

/// Bytes of a key before the parts of a row: the number of the database's table, and of the storage.
const ROW_PREFIX: usize = 2 + 4;

/// The parts of a key.
struct Parts {
    placing: KeyBytes,
    rest: KeyBytes,
}

impl Parts {
    fn of(values: &[Datum], placing: u8) -> Parts {
        let (first, rest) = values.split_at(usize::from(placing).min(values.len()));
        Parts { placing: encoded(first), rest: encoded(rest) }
    }
}

fn encoded(values: &[Datum]) -> KeyBytes {
    let mut bytes = KeyBytes::new();
    values.iter().for_each(|value| key::encode(value, &mut bytes));
    bytes
}

/// Which keys a range has.
pub struct Bounds<'a> {
    /// Values of the leading columns.
    pub equal: &'a [Datum],
    /// The least value of the next column, and whether it is included.
    pub lower: Option<(&'a Datum, bool)>,
    /// The greatest one, and whether it is included.
    pub upper: Option<(&'a Datum, bool)>,
    /// Whether the next column has a value, where no bound says so.
    pub not_null: bool,
}

impl<'a> Bounds<'a> {
    /// All keys with some values of the leading columns.
    pub fn of_prefix(equal: &'a [Datum]) -> Bounds<'a> {
        Bounds { equal, lower: None, upper: None, not_null: false }
    }
}

impl Bounds<'_> {
    /// The first bytes and those after the last, if there are any after it, behind the values of `equal` columns.
    fn bytes(&self, equal: &[Datum]) -> (KeyBytes, Option<KeyBytes>) {
        let prefix = encoded(equal);
        let bound = |value: &Datum, past: bool| {
            let mut bytes = prefix.clone();
            key::encode(value, &mut bytes);
            if past { successor(bytes) } else { Some(bytes) }
        };
        let low = match self.lower {
            Some((value, included)) => bound(value, !included).unwrap_or_else(|| prefix.clone()),
            None => prefix.clone(),
        };
        let high = match self.upper {
            Some((value, included)) => bound(value, included),
            // A comparison is never true of a null, which comes last.
            None if self.lower.is_some() || self.not_null => bound(&Datum::Null, false),
            None => successor(prefix.clone()),
        };
        (low, high)
    }
}

/// The first bytes that are greater than all with this beginning.
fn successor(mut bytes: KeyBytes) -> Option<KeyBytes> {
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

#[expect(clippy::needless_pass_by_value, reason = "it stands for the error")]
fn too_long(error: DataError) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("key: {error}"))
        .with_hint("Use shorter values in primary keys and indexed columns.")
}
