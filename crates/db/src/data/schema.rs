//! Tables and schemas.

use std::sync::Arc;

use super::key::{self, Key, KeyEncoder, KeyRange, KeyValue};
use super::placement::{Owner, Partitioning};
use super::row::{Row, RowLayout};
use super::value::{ColumnType, DataError, Values};
use crate::limits::{COLUMNS_MAX, TABLES_MAX};
use crate::position::PartitionId;

/// Number of a table in its schema; the prefix of its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId(pub u16);

/// Names a row column: by its number in the table, which costs nothing, or by its name.
pub trait ColumnSelector: Copy {
    /// The column's number.
    fn find(self, layout: &RowLayout) -> Result<usize, DataError>;
}

impl ColumnSelector for usize {
    #[inline]
    fn find(self, _layout: &RowLayout) -> Result<usize, DataError> {
        Ok(self)
    }
}

impl ColumnSelector for &str {
    fn find(self, layout: &RowLayout) -> Result<usize, DataError> {
        layout.column_by_name(self)
    }
}

#[derive(Debug)]
struct Column {
    name: String,
    column_type: ColumnType,
    nullable: bool,
}

#[derive(Debug)]
struct Definition {
    id: TableId,
    name: String,
    columns: Vec<Column>,
    /// Table-wide numbers of the key's columns, in key order.
    key: Vec<usize>,
    partitioning: Partitioning,
    /// For [`Partitioning::Column`]: where the integer stands in the key, and its type.
    deciding_integer: (usize, ColumnType),
    /// Bytes of every key, table prefix included, if all key columns have a fixed width.
    key_bytes: Option<usize>,
    layout: RowLayout,
}

/// A table of a schema: a handle that is cheap to clone.
#[derive(Clone, Debug)]
pub struct Table(Arc<Definition>);

impl Table {
    /// Starts the definition of a table.
    pub fn builder(name: impl Into<String>) -> TableBuilder {
        TableBuilder {
            name: name.into(),
            columns: Vec::new(),
            key: Vec::new(),
            partitioning: Placement::HashOfKey,
        }
    }

    /// The table's number.
    pub fn id(&self) -> TableId {
        self.0.id
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How the table is spread over partitions.
    pub fn partitioning(&self) -> &Partitioning {
        &self.0.partitioning
    }

    /// Where the columns of the table's rows stand.
    pub fn layout(&self) -> &RowLayout {
        &self.0.layout
    }

    /// The number of a column, for readers on a hot path.
    pub fn column(&self, name: &str) -> Result<usize, DataError> {
        self.0
            .columns
            .iter()
            .position(|column| column.name == name)
            .ok_or_else(|| DataError::Column(format!("table {} has no column {name:?}", self.0.name)))
    }

    /// Encodes a full key from the values of all key columns.
    #[inline]
    pub fn key<V: Values>(&self, values: V) -> Result<Key, DataError> {
        let (key, given) = self.encode_key_columns(values)?;
        if given != self.0.key.len() {
            return Err(DataError::Count {
                table: format!("{} (key)", self.0.name),
                expected: self.0.key.len(),
                given,
            });
        }
        Ok(key)
    }

    /// The range of all keys whose leading columns have the given values; no values give the whole table, and values that are too long
    /// for a key the empty range.
    pub fn prefix<V: Values>(&self, values: V) -> Result<KeyRange, DataError> {
        let (prefix, _) = self.encode_leading(values)?;
        if prefix.check_length().is_err() {
            let bound = prefix.into_bound();
            return Ok(KeyRange { start: bound.clone(), end: bound });
        }
        Ok(KeyRange::of_prefix(prefix))
    }

    /// The range of all keys of the table.
    pub fn all(&self) -> KeyRange {
        KeyRange::of_prefix(Key::of_table(self.0.id))
    }

    /// The keys from one prefix of key columns (inclusive) to another (exclusive). What is too long for a key is a bound all the same.
    pub fn range<V: Values, W: Values>(&self, from: V, to: W) -> Result<KeyRange, DataError> {
        let (start, end) = (self.encode_leading(from)?.0, self.encode_leading(to)?.0);
        Ok(KeyRange { start: start.into_bound(), end: end.into_bound() })
    }

    #[inline]
    fn encode_key_columns<V: Values>(&self, values: V) -> Result<(Key, usize), DataError> {
        let (key, given) = self.encode_leading(values)?;
        key.check_length()?;
        Ok((key, given))
    }

    /// Encodes values of leading key columns, which may be too long for a key, and tells how many there are.
    #[inline]
    fn encode_leading<V: Values>(&self, values: V) -> Result<(Key, usize), DataError> {
        let mut key = KeyEncoder::new(self.0.id);
        let mut columns = self.0.key.iter();
        let mut given = 0;
        values.visit(|value| {
            given += 1;
            let Some(number) = columns.next() else { return Ok(()) };
            let column = &self.0.columns[*number];
            match value.column_type() {
                Some(given) if given == column.column_type => key.push(value),
                Some(given) => {
                    return Err(DataError::Type {
                        column: column.name.clone(),
                        expected: column.column_type,
                        given,
                    });
                }
                None => return Err(DataError::Null(column.name.clone())),
            }
            Ok(())
        })?;
        if given > self.0.key.len() {
            return Err(DataError::Count {
                table: format!("{} (key)", self.0.name),
                expected: self.0.key.len(),
                given,
            });
        }
        Ok((key.finish(), given))
    }

    /// Checks that bytes are a full key of this table: that they have all key columns and nothing else. Text is not checked to
    /// be UTF-8; [`Table::key_values`] does that.
    #[inline]
    pub fn check_key(&self, key: &[u8]) -> Result<(), DataError> {
        let whole = match self.0.key_bytes {
            Some(bytes) => key.len() == bytes,
            None => self.has_key_columns(key),
        };
        if whole { Ok(()) } else { Err(DataError::Malformed("key")) }
    }

    fn has_key_columns(&self, key: &[u8]) -> bool {
        let mut rest = key.get(2..).unwrap_or_default();
        for column in self.key_columns() {
            let Some(width) = key::encoded_width(rest, column) else { return false };
            rest = &rest[width..];
        }
        rest.is_empty()
    }

    /// The beginnings of a key of this table, or of a bound of a range: the table alone, then with each column that is whole.
    pub(crate) fn prefixes_of(&self, key: &[u8]) -> Vec<Key> {
        let mut at = 2.min(key.len());
        let mut prefixes = vec![Key::from_bytes(&key[..at])];
        for column in self.key_columns() {
            let Some(width) = key::encoded_width(&key[at..], column) else { break };
            at += width;
            prefixes.push(Key::from_bytes(&key[..at]));
        }
        prefixes
    }

    /// Decodes the columns of a key of this table.
    pub fn key_values(&self, key: &[u8]) -> Result<Vec<KeyValue>, DataError> {
        let mut rest = key.strip_prefix(&self.0.id.0.to_be_bytes()).ok_or(DataError::Malformed("key"))?;
        let mut values = Vec::with_capacity(self.0.key.len());
        for column in self.key_columns() {
            let (value, width) = key::decode_column(rest, column)?;
            values.push(value);
            rest = &rest[width..];
        }
        if rest.is_empty() { Ok(values) } else { Err(DataError::Malformed("key")) }
    }

    /// Encodes a row from the values of all columns that are not part of the key, in order of definition.
    pub fn row<V: Values>(&self, values: V) -> Result<Vec<u8>, DataError> {
        let mut row = Vec::with_capacity(self.0.layout.fixed_bytes());
        self.0.layout.encode(values, &mut row)?;
        Ok(row)
    }

    /// Reads bytes as a row of this table. Bytes from outside must have passed [`RowLayout::check`].
    pub fn read<'a>(&'a self, row: &'a [u8]) -> Row<'a> {
        Row::new(&self.0.layout, row)
    }

    /// Types of the key's columns, in key order.
    pub(crate) fn key_columns(&self) -> impl Iterator<Item = ColumnType> {
        self.0.key.iter().map(|number| self.0.columns[*number].column_type)
    }

    pub(crate) fn deciding_integer(&self) -> (usize, ColumnType) {
        self.0.deciding_integer
    }
}

#[derive(Debug)]
enum Placement {
    HashOfKey,
    HashOfPrefix(usize),
    Range(Vec<Vec<u8>>),
    Column(String),
    Replicated,
}

/// Collects the definition of a table; [`SchemaBuilder::table`] finishes it.
#[derive(Debug)]
pub struct TableBuilder {
    name: String,
    columns: Vec<Column>,
    key: Vec<String>,
    partitioning: Placement,
}

impl TableBuilder {
    /// Adds a column that always has a value.
    #[must_use]
    pub fn column(mut self, name: &str, column_type: ColumnType) -> Self {
        self.columns.push(Column { name: name.to_owned(), column_type, nullable: false });
        self
    }

    /// Adds a column that may be null.
    #[must_use]
    pub fn nullable(mut self, name: &str, column_type: ColumnType) -> Self {
        self.columns.push(Column { name: name.to_owned(), column_type, nullable: true });
        self
    }

    /// Names the columns of the primary key, in order. They must not be nullable.
    #[must_use]
    pub fn primary_key(mut self, columns: &[&str]) -> Self {
        self.key = columns.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Spreads rows by a hash of the first `columns` columns of the key. The default hashes the whole key.
    #[must_use]
    pub fn partition_by_hash(mut self, columns: usize) -> Self {
        self.partitioning = Placement::HashOfPrefix(columns);
        self
    }

    /// Spreads rows by the value of an integer column of the key, modulo the number of partitions.
    #[must_use]
    pub fn partition_by_column(mut self, column: &str) -> Self {
        self.partitioning = Placement::Column(column.to_owned());
        self
    }

    /// Spreads rows by ranges of the key's first column, an integer: `boundaries` has the first value of each range but
    /// the first, ascending.
    #[must_use]
    pub fn partition_by_range(mut self, boundaries: &[i64]) -> Self {
        self.partitioning =
            Placement::Range(boundaries.iter().map(|boundary| boundary.to_be_bytes().to_vec()).collect());
        self
    }

    /// Keeps a full copy on every partition.
    #[must_use]
    pub fn replicated(mut self) -> Self {
        self.partitioning = Placement::Replicated;
        self
    }

    fn finish(self, id: TableId) -> Result<Table, DataError> {
        let problem = |problem: String| DataError::Table { table: self.name.clone(), problem };
        if self.columns.is_empty() || self.columns.len() > COLUMNS_MAX {
            return Err(problem(format!("give it 1 to {COLUMNS_MAX} columns")));
        }
        let mut key: Vec<usize> = Vec::with_capacity(self.key.len());
        for name in &self.key {
            let number = self.columns.iter().position(|column| column.name == *name);
            let number = number.ok_or_else(|| problem(format!("key column {name:?} is not defined")))?;
            if self.columns[number].nullable || key.contains(&number) {
                return Err(problem(format!("key column {name:?} must be non-null and named once")));
            }
            key.push(number);
        }
        if key.is_empty() {
            return Err(problem("name at least one primary key column".to_owned()));
        }
        for (number, column) in self.columns.iter().enumerate() {
            if self.columns[..number].iter().any(|other| other.name == column.name) {
                return Err(problem(format!("column {:?} is defined twice", column.name)));
            }
        }
        let key_types: Vec<ColumnType> = key.iter().map(|number| self.columns[*number].column_type).collect();
        let (partitioning, deciding_integer) = self.placement(&key, &key_types).map_err(problem)?;
        let key_bytes = key_types.iter().map(|column| column.fixed_width()).sum::<Option<usize>>();
        let key_bytes = key_bytes.map(|columns| 2 + columns);
        let layout = RowLayout::new(
            &self.name,
            self.columns
                .iter()
                .enumerate()
                .map(|(number, column)| {
                    (!key.contains(&number))
                        .then(|| (column.name.clone(), column.column_type, column.nullable))
                })
                .collect(),
        );
        let Self { name, columns, .. } = self;
        Ok(Table(Arc::new(Definition {
            id,
            name,
            columns,
            key,
            partitioning,
            deciding_integer,
            key_bytes,
            layout,
        })))
    }

    fn placement(
        &self,
        key: &[usize],
        key_types: &[ColumnType],
    ) -> Result<(Partitioning, (usize, ColumnType)), String> {
        let unused = (0, ColumnType::Int64);
        match &self.partitioning {
            Placement::HashOfKey => Ok((Partitioning::Hash { columns: key.len() }, unused)),
            Placement::HashOfPrefix(columns) if (1..=key.len()).contains(columns) => {
                Ok((Partitioning::Hash { columns: *columns }, unused))
            }
            Placement::HashOfPrefix(columns) => {
                Err(format!("cannot hash {columns} columns of a key of {}", key.len()))
            }
            Placement::Replicated => Ok((Partitioning::Replicated, unused)),
            Placement::Range(boundaries) => {
                Ok((Partitioning::Range { boundaries: encode_boundaries(boundaries, key_types[0])? }, unused))
            }
            Placement::Column(name) => {
                let place = key.iter().position(|number| self.columns[*number].name == *name);
                let place = place.ok_or_else(|| format!("partition column {name:?} must be in the key"))?;
                let column = key_types[place];
                if !matches!(column, ColumnType::Int32 | ColumnType::Int64) {
                    return Err(format!("partition column {name:?} must be an integer"));
                }
                let offset: Option<usize> =
                    key_types[..place].iter().map(|before| before.fixed_width()).sum();
                let offset = offset.ok_or_else(|| {
                    format!("key columns before partition column {name:?} must have a fixed width")
                })?;
                Ok((Partitioning::Column { key_column: place }, (offset, column)))
            }
        }
    }
}

fn encode_boundaries(boundaries: &[Vec<u8>], first: ColumnType) -> Result<Vec<Vec<u8>>, String> {
    let mut encoded = Vec::with_capacity(boundaries.len());
    for boundary in boundaries {
        let value = i64::from_be_bytes(boundary.as_slice().try_into().expect("made from an i64"));
        encoded.push(match first {
            ColumnType::Int64 => (value ^ i64::MIN).to_be_bytes().to_vec(),
            ColumnType::Int32 => {
                let value = i32::try_from(value).map_err(|_| format!("boundary {value} exceeds int32"))?;
                (value ^ i32::MIN).to_be_bytes().to_vec()
            }
            _ => return Err("the first key column must be an integer to partition by range".to_owned()),
        });
    }
    if encoded.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err("range boundaries must ascend".to_owned());
    }
    Ok(encoded)
}

/// Collects the tables of a schema.
#[derive(Debug, Default)]
pub struct SchemaBuilder {
    tables: Vec<Table>,
}

impl SchemaBuilder {
    /// An empty schema.
    pub fn new() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// The tables of a schema, to which others can be added.
    pub fn after(schema: &Schema) -> SchemaBuilder {
        SchemaBuilder { tables: schema.tables().to_vec() }
    }

    /// Adds a table and returns its handle.
    pub fn table(&mut self, table: TableBuilder) -> Result<Table, DataError> {
        if self.tables.len() >= TABLES_MAX {
            return Err(DataError::TooManyTables);
        }
        if self.tables.iter().any(|other| other.name() == table.name) {
            let problem = "the name is taken".to_owned();
            return Err(DataError::Table { table: table.name, problem });
        }
        let table = table.finish(TableId(self.tables.len() as u16))?;
        self.tables.push(table.clone());
        Ok(table)
    }

    /// The finished schema.
    pub fn finish(self) -> Schema {
        Schema(self.tables.into())
    }
}

/// The tables of a database: a handle that is cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema(Arc<[Table]>);

impl Schema {
    /// All tables, by number.
    pub fn tables(&self) -> &[Table] {
        &self.0
    }

    /// The table with a number.
    #[inline]
    pub fn table(&self, id: TableId) -> Result<&Table, DataError> {
        self.0.get(usize::from(id.0)).ok_or(DataError::Malformed("key"))
    }

    /// The table with a name.
    pub fn table_named(&self, name: &str) -> Option<&Table> {
        self.0.iter().find(|table| table.name() == name)
    }

    /// The table that a key belongs to.
    #[inline]
    pub fn table_of(&self, key: &[u8]) -> Result<&Table, DataError> {
        self.table(key::table_of(key).ok_or(DataError::Malformed("key"))?)
    }

    /// The owner of an encoded key in a cluster of `partitions`.
    #[inline]
    pub fn owner(&self, key: &[u8], partitions: u16) -> Result<Owner, DataError> {
        Ok(self.table_of(key)?.owner(key, partitions))
    }

    /// The partitions to ask for the rows of a range, in a cluster of `partitions`; of rows that all have, one.
    pub fn holders(
        &self,
        range: &KeyRange,
        partitions: u16,
    ) -> Result<impl Iterator<Item = PartitionId> + use<>, DataError> {
        let holders = match self.table_of(range.start.bytes())?.range_owner(range, partitions) {
            Owner::Partition(partition) => partition.0..partition.0 + 1,
            Owner::Replicated => 0..1,
            Owner::Split => 0..partitions,
        };
        Ok(holders.map(PartitionId))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Value;

    fn builder() -> TableBuilder {
        Table::builder("t").column("id", ColumnType::Int32).nullable("name", ColumnType::Text)
    }

    fn problem(builder: TableBuilder) -> String {
        SchemaBuilder::new().table(builder).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_in_a_definition_are_named() {
        let keyed = || builder().column("big", ColumnType::Int64).primary_key(&["id"]);
        let by_text = Table::builder("t").column("id", ColumnType::Text).primary_key(&["id"]);
        let after_text = Table::builder("t")
            .column("text", ColumnType::Text)
            .column("id", ColumnType::Int32)
            .primary_key(&["text", "id"]);
        for (builder, expected) in [
            (Table::builder("t"), "give it 1 to 256 columns"),
            (builder(), "name at least one primary key column"),
            (builder().primary_key(&["no"]), "key column \"no\" is not defined"),
            (builder().primary_key(&["name"]), "key column \"name\" must be non-null and named once"),
            (builder().primary_key(&["id", "id"]), "key column \"id\" must be non-null and named once"),
            (keyed().column("id", ColumnType::Bool), "column \"id\" is defined twice"),
            (keyed().partition_by_hash(0), "cannot hash 0 columns of a key of 1"),
            (keyed().partition_by_hash(2), "cannot hash 2 columns of a key of 1"),
            (keyed().partition_by_column("big"), "partition column \"big\" must be in the key"),
            (keyed().partition_by_column("no"), "partition column \"no\" must be in the key"),
            (by_text.partition_by_column("id"), "partition column \"id\" must be an integer"),
            (after_text.partition_by_column("id"), "before partition column \"id\" must have a fixed width"),
            (keyed().partition_by_range(&[1, 1]), "range boundaries must ascend"),
            (keyed().partition_by_range(&[2, 1]), "range boundaries must ascend"),
            (keyed().partition_by_range(&[1 << 40]), "boundary 1099511627776 exceeds int32"),
            (
                keyed().primary_key(&["id"]).replicated().primary_key(&[]),
                "name at least one primary key column",
            ),
        ] {
            let problem = problem(builder);
            assert!(problem.starts_with("table t: ") && problem.contains(expected), "{problem}");
        }
        let by_text = Table::builder("t").column("id", ColumnType::Text).primary_key(&["id"]);
        let by_text = problem(by_text.partition_by_range(&[1]));
        assert!(by_text.contains("must be an integer to partition by range"), "{by_text}");
    }

    #[test]
    fn limits_give_clear_errors() {
        let with_columns = |count: usize| {
            let names: Vec<String> = (0..count).map(|index| format!("c{index}")).collect();
            let builder = Table::builder("t").primary_key(&["c0"]);
            names.iter().fold(builder, |builder, name| builder.column(name, ColumnType::Bool))
        };
        assert!(SchemaBuilder::new().table(with_columns(COLUMNS_MAX)).is_ok());
        assert!(problem(with_columns(COLUMNS_MAX + 1)).contains("give it 1 to 256 columns"));
        let mut schema = SchemaBuilder::new();
        for number in 0..TABLES_MAX {
            let table = Table::builder(format!("t{number}")).column("id", ColumnType::Bool);
            assert_eq!(usize::from(schema.table(table.primary_key(&["id"])).unwrap().id().0), number);
        }
        let error = schema.table(builder().primary_key(&["id"])).unwrap_err();
        assert_eq!(error, DataError::TooManyTables);
        let last = &schema.finish().tables()[TABLES_MAX - 1].all();
        assert!(!last.is_empty());
    }

    #[test]
    fn tables_are_found_by_name_number_and_key() {
        let mut schema = SchemaBuilder::new();
        let first = schema.table(builder().primary_key(&["id"])).unwrap();
        let taken = schema.table(builder().primary_key(&["id"])).unwrap_err();
        assert_eq!(taken.to_string(), "table t: the name is taken");
        let second = Table::builder("u").column("id", ColumnType::Int32).primary_key(&["id"]);
        let second = schema.table(second).unwrap();
        let schema = schema.finish();
        for table in [&first, &second] {
            let key = table.key((7,)).unwrap();
            assert_eq!(schema.table_of(&key).unwrap().name(), table.name());
            assert_eq!(schema.table(table.id()).unwrap().name(), table.name());
            assert_eq!(schema.table_named(table.name()).unwrap().id(), table.id());
        }
        assert!(first.key_values(&second.key((7,)).unwrap()).is_err(), "a key of another table");
        assert!(!first.all().contains(&second.key((i32::MIN,)).unwrap()));
        for stray in [&[][..], &[0], &[0, 2], &[0xFF, 0xFF, 1]] {
            assert!(schema.table_of(stray).is_err() && schema.owner(stray, 4).is_err());
        }
        assert!(schema.table_named("v").is_none() && first.column("no").is_err());
    }

    #[test]
    fn columns_keep_their_numbers_when_the_key_is_in_their_midst() {
        let table = Table::builder("t")
            .column("a", ColumnType::Int32)
            .column("key", ColumnType::Int32)
            .column("b", ColumnType::Int64);
        let table = SchemaBuilder::new().table(table.primary_key(&["key"])).unwrap();
        let bytes = table.row((1, 2_i64)).unwrap();
        let row = table.read(&bytes);
        assert_eq!((table.column("a").unwrap(), table.column("b").unwrap()), (0, 2));
        assert_eq!((row.value(0).unwrap(), row.value(2).unwrap()), (Value::Int32(1), Value::Int64(2)));
        assert_eq!(row.int64("b").unwrap(), 2);
    }
}
