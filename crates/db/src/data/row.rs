//! The row encoding: the columns of a table that are not part of its key.
//!
//! ```text
//! ┌──────────────┬───────────────────────┬──────────────────────────────┬─────────────┐
//! │ null bits    │ fixed-width columns   │ end of each variable column  │ variable    │
//! │ 1 per column │ at fixed offsets, LE  │ u32 LE, from the row's start │ column data │
//! └──────────────┴───────────────────────┴──────────────────────────────┴─────────────┘
//! ```
//!
//! A fixed-width column stands at the same offset in every row of its table, also when it is null: it is read and
//! replaced in place. A variable column is found from two offsets. A reader decodes only what it asks for.

use super::schema::ColumnSelector;
use super::value::{ColumnType, DataError, Value, Values};
use crate::limits::ROW_BYTES_MAX;

/// One column of a row.
#[derive(Clone, Debug)]
pub(crate) struct LayoutColumn {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    pub(crate) nullable: bool,
    /// The column's place among the columns of the row; also the number of its null bit.
    pub(crate) ordinal: usize,
    /// Where the value (fixed width) or its end offset (variable width) stands.
    pub(crate) offset: usize,
}

/// Where a column stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// `None` for columns of the key.
    column_type: Option<ColumnType>,
    null_mask: u8,
    null_byte: u16,
    offset: u16,
}

/// Where the columns of a table's rows stand.
#[derive(Clone, Debug)]
pub struct RowLayout {
    table: String,
    /// By table-wide column number; `None` for columns of the key.
    columns: Vec<Option<LayoutColumn>>,
    /// What readers need of a column, by table-wide number, in few cache lines.
    places: Vec<Place>,
    /// Bytes before the variable data.
    fixed_bytes: usize,
    /// Where the end offsets of the variable columns begin.
    ends_offset: usize,
}

/// A fixed-width column's new value, as the bytes that stand in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedValue {
    /// The table-wide column number.
    pub column: u16,
    /// Little-endian bytes, the unused ones zero.
    pub bytes: [u8; 8],
    /// Whether the column becomes null; then `bytes` are zero.
    pub null: bool,
}

impl RowLayout {
    /// Lays out the row of a table. `columns` has name, type and nullability of each column, `None` for key columns.
    pub(crate) fn new(table: &str, columns: Vec<Option<(String, ColumnType, bool)>>) -> RowLayout {
        let in_row = columns.iter().flatten().count();
        let mut offset = in_row.div_ceil(8);
        let mut ordinal = 0;
        let mut laid_out: Vec<Option<LayoutColumn>> = Vec::with_capacity(columns.len());
        for column in columns {
            laid_out.push(column.map(|(name, column_type, nullable)| {
                let own = offset;
                offset += column_type.fixed_width().unwrap_or(0);
                ordinal += 1;
                LayoutColumn { name, column_type, nullable, ordinal: ordinal - 1, offset: own }
            }));
        }
        let ends_offset = offset;
        for column in laid_out.iter_mut().flatten() {
            if column.column_type.fixed_width().is_none() {
                column.offset = offset;
                offset += 4;
            }
        }
        let places = laid_out.iter().map(|column| match column {
            None => Place { column_type: None, null_mask: 0, null_byte: 0, offset: 0 },
            Some(column) => Place {
                column_type: Some(column.column_type),
                null_mask: 1 << (column.ordinal % 8),
                null_byte: (column.ordinal / 8) as u16,
                offset: column.offset as u16,
            },
        });
        let places = places.collect();
        RowLayout { table: table.to_owned(), columns: laid_out, places, fixed_bytes: offset, ends_offset }
    }

    /// Bytes that every row has before the data of its variable columns.
    pub fn fixed_bytes(&self) -> usize {
        self.fixed_bytes
    }

    /// Number of columns in the table, key columns included.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    pub(crate) fn column(&self, column: usize) -> Result<&LayoutColumn, DataError> {
        match self.columns.get(column) {
            Some(Some(column)) => Ok(column),
            Some(None) => Err(DataError::Column(format!(
                "column {column} of table {} is part of the key: take it from the key",
                self.table
            ))),
            None => Err(DataError::Column(format!(
                "table {} has {} columns, there is no column {column}",
                self.table,
                self.columns.len()
            ))),
        }
    }

    pub(crate) fn column_by_name(&self, name: &str) -> Result<usize, DataError> {
        self.columns
            .iter()
            .position(|column| column.as_ref().is_some_and(|column| column.name == name))
            .ok_or_else(|| DataError::Column(format!("table {} has no row column {name:?}", self.table)))
    }

    fn row_columns(&self) -> impl Iterator<Item = &LayoutColumn> {
        self.columns.iter().flatten()
    }

    /// Appends a row to `out`, with the values of all columns that are not part of the key, in order. On error `out` is
    /// left as it was.
    pub fn encode<V: Values>(&self, values: V, out: &mut Vec<u8>) -> Result<(), DataError> {
        let start = out.len();
        let result = self.encode_at(start, values, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    #[inline]
    fn encode_at<V: Values>(&self, start: usize, values: V, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.resize(start + self.fixed_bytes, 0);
        let mut columns = self.row_columns();
        let mut given = 0;
        values.visit(|value| {
            given += 1;
            let Some(column) = columns.next() else { return Ok(()) };
            check_type(column, &value)?;
            match value {
                Value::Null => out[start + column.ordinal / 8] |= 1 << (column.ordinal % 8),
                Value::Text(text) => out.extend_from_slice(text.as_bytes()),
                Value::Bytes(bytes) => out.extend_from_slice(bytes),
                fixed => {
                    let (bytes, width) = fixed_bytes_of(&fixed);
                    out[start + column.offset..][..width].copy_from_slice(&bytes[..width]);
                }
            }
            if column.column_type.fixed_width().is_none() {
                let end = (out.len() - start) as u32;
                out[start + column.offset..][..4].copy_from_slice(&end.to_le_bytes());
            }
            Ok(())
        })?;
        let expected = self.row_columns().count();
        if given != expected {
            return Err(DataError::Count { table: self.table.clone(), expected, given });
        }
        if out.len() - start > ROW_BYTES_MAX {
            return Err(DataError::RowTooLong(out.len() - start));
        }
        Ok(())
    }

    /// The bytes that replace a fixed-width column, or `None` when the column has a variable width.
    pub(crate) fn fixed_value(
        &self,
        column_number: usize,
        value: Value<'_>,
    ) -> Result<Option<FixedValue>, DataError> {
        let column = self.column(column_number)?;
        check_type(column, &value)?;
        if column.column_type.fixed_width().is_none() {
            return Ok(None);
        }
        let null = value == Value::Null;
        let (bytes, _) = fixed_bytes_of(&value);
        Ok(Some(FixedValue { column: column_number as u16, bytes, null }))
    }

    /// Replaces a fixed-width column in place.
    ///
    /// # Panics
    /// When the value was not made by this layout or the row is shorter than the layout's fixed part.
    #[inline]
    pub fn replace(&self, row: &mut [u8], value: &FixedValue) {
        let place = self.places[usize::from(value.column)];
        let width = place.column_type.and_then(ColumnType::fixed_width).expect("made by this layout");
        row[usize::from(place.offset)..][..width].copy_from_slice(&value.bytes[..width]);
        let byte = &mut row[usize::from(place.null_byte)];
        *byte = if value.null { *byte | place.null_mask } else { *byte & !place.null_mask };
    }

    /// Checks that bytes which came from outside are a row of this layout, in the one form that a row has: digests compare
    /// bytes.
    pub fn check(&self, row: &[u8]) -> Result<(), DataError> {
        let malformed = || DataError::Malformed("row");
        if row.len() < self.fixed_bytes || row.len() > ROW_BYTES_MAX {
            return Err(malformed());
        }
        let reader = Row { layout: self, bytes: row };
        let mut end_before = self.fixed_bytes;
        for column in self.row_columns() {
            let bytes = match column.column_type.fixed_width() {
                Some(width) => &row[column.offset..][..width],
                None => {
                    let end = reader.end_of(column);
                    let bytes = row.get(end_before..end).ok_or_else(malformed)?;
                    end_before = end;
                    bytes
                }
            };
            let well_formed = if row[column.ordinal / 8] & 1 << (column.ordinal % 8) != 0 {
                let is_blank = match column.column_type.fixed_width() {
                    Some(_) => bytes.iter().all(|byte| *byte == 0),
                    None => bytes.is_empty(),
                };
                column.nullable && is_blank
            } else {
                match column.column_type {
                    ColumnType::Bool => bytes[0] <= 1,
                    ColumnType::Text => std::str::from_utf8(bytes).is_ok(),
                    _ => true,
                }
            };
            if !well_formed {
                return Err(malformed());
            }
        }
        let columns = self.row_columns().count();
        if !columns.is_multiple_of(8) && row[columns / 8] >> (columns % 8) != 0 {
            return Err(malformed());
        }
        if end_before == row.len() { Ok(()) } else { Err(malformed()) }
    }
}

#[inline]
fn check_type(column: &LayoutColumn, value: &Value<'_>) -> Result<(), DataError> {
    match value.column_type() {
        None if column.nullable => Ok(()),
        None => Err(DataError::Null(column.name.clone())),
        Some(given) if given == column.column_type => Ok(()),
        Some(given) => {
            Err(DataError::Type { column: column.name.clone(), expected: column.column_type, given })
        }
    }
}

#[inline]
fn fixed_bytes_of(value: &Value<'_>) -> ([u8; 8], usize) {
    let mut bytes = [0; 8];
    let width = match value {
        Value::Bool(value) => {
            bytes[0] = u8::from(*value);
            1
        }
        Value::Int32(value) => {
            bytes[..4].copy_from_slice(&value.to_le_bytes());
            4
        }
        Value::Int64(value) => {
            bytes = value.to_le_bytes();
            8
        }
        Value::Float64(value) => {
            bytes = value.to_bits().to_le_bytes();
            8
        }
        Value::Null | Value::Text(_) | Value::Bytes(_) => 0,
    };
    (bytes, width)
}

/// A row, read in place.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// Reads `bytes` as a row of `layout`. Bytes from outside must have passed [`RowLayout::check`].
    pub fn new(layout: &'a RowLayout, bytes: &'a [u8]) -> Row<'a> {
        Row { layout, bytes }
    }

    /// The encoded bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The layout that the row is read with.
    pub fn layout(&self) -> &'a RowLayout {
        self.layout
    }

    /// The value of a column, by number or name.
    #[inline]
    pub fn value(&self, column: impl ColumnSelector) -> Result<Value<'a>, DataError> {
        let number = column.find(self.layout)?;
        let Some(Place { column_type: Some(column_type), .. }) = self.layout.places.get(number) else {
            return self.layout.column(number).map(|_| Value::Null);
        };
        let value = match column_type {
            ColumnType::Bool => self.bool(number).map(Value::Bool),
            ColumnType::Int32 => self.int32(number).map(Value::Int32),
            ColumnType::Int64 => self.int64(number).map(Value::Int64),
            ColumnType::Float64 => self.float64(number).map(Value::Float64),
            ColumnType::Text => self.text(number).map(Value::Text),
            ColumnType::Bytes => self.byte_string(number).map(Value::Bytes),
        };
        value.or_else(|error| if self.has_null(number) { Ok(Value::Null) } else { Err(error) })
    }

    fn has_null(&self, number: usize) -> bool {
        let place = self.layout.places[number];
        self.bytes[usize::from(place.null_byte)] & place.null_mask != 0
    }

    /// Where a column of the wanted type stands, if it is not null.
    #[inline]
    fn place(&self, column: impl ColumnSelector, wanted: ColumnType) -> Result<usize, DataError> {
        let number = column.find(self.layout)?;
        match self.layout.places.get(number) {
            Some(place)
                if place.column_type == Some(wanted)
                    && self.bytes[usize::from(place.null_byte)] & place.null_mask == 0 =>
            {
                Ok(usize::from(place.offset))
            }
            _ => Err(self.mismatch(number, wanted)),
        }
    }

    /// The bytes of a text column, without the check that they are UTF-8: for comparing and searching.
    pub fn text_bytes(&self, column: impl ColumnSelector) -> Result<&'a [u8], DataError> {
        Ok(self.variable(self.place(column, ColumnType::Text)?))
    }

    #[inline]
    fn fixed<const WIDTH: usize>(&self, offset: usize) -> [u8; WIDTH] {
        *self.bytes[offset..].first_chunk().expect("a row has its layout's fixed part")
    }

    fn end_of(&self, column: &LayoutColumn) -> usize {
        u32::from_le_bytes(self.fixed(column.offset)) as usize
    }

    /// The bytes of a variable column whose end stands at `offset`.
    #[inline]
    fn variable(&self, offset: usize) -> &'a [u8] {
        let start = if offset == self.layout.ends_offset {
            self.layout.fixed_bytes
        } else {
            u32::from_le_bytes(self.fixed(offset - 4)) as usize
        };
        &self.bytes[start..u32::from_le_bytes(self.fixed(offset)) as usize]
    }

    /// Why a column has no value of the wanted type.
    #[cold]
    fn mismatch(&self, number: usize, wanted: ColumnType) -> DataError {
        match self.layout.column(number) {
            Err(error) => error,
            Ok(column) if column.column_type == wanted => DataError::Null(column.name.clone()),
            Ok(column) => {
                DataError::Type { column: column.name.clone(), expected: column.column_type, given: wanted }
            }
        }
    }

    /// Whether the column is null.
    pub fn is_null(&self, column: impl ColumnSelector) -> Result<bool, DataError> {
        Ok(self.value(column)? == Value::Null)
    }
}

macro_rules! typed_readers {
    ($($name:ident: $rust:ty = $variant:ident, |$row:ident, $offset:ident| $read:expr;)*) => {
        impl<'a> Row<'a> {
            $(
                /// The value of a column of this type; a null or another type is an error.
                #[inline]
                pub fn $name(&self, column: impl ColumnSelector) -> Result<$rust, DataError> {
                    let $row = self;
                    let $offset = self.place(column, ColumnType::$variant)?;
                    $read
                }
            )*
        }
    };
}

typed_readers! {
    bool: bool = Bool, |row, offset| Ok(row.bytes[offset] != 0);
    int32: i32 = Int32, |row, offset| Ok(i32::from_le_bytes(row.fixed(offset)));
    int64: i64 = Int64, |row, offset| Ok(i64::from_le_bytes(row.fixed(offset)));
    float64: f64 = Float64, |row, offset| Ok(f64::from_bits(u64::from_le_bytes(row.fixed(offset))));
    text: &'a str = Text,
        |row, offset| std::str::from_utf8(row.variable(offset)).map_err(|_| DataError::Malformed("row"));
    byte_string: &'a [u8] = Bytes, |row, offset| Ok(row.variable(offset));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::{SchemaBuilder, Table};

    /// A value that owns its text.
    #[derive(Clone, Debug)]
    enum Owned {
        Null,
        Bool(bool),
        Int32(i32),
        Int64(i64),
        Float64(f64),
        Text(String),
        Bytes(Vec<u8>),
    }

    impl Owned {
        fn borrow(&self) -> Value<'_> {
            match self {
                Owned::Null => Value::Null,
                Owned::Bool(value) => Value::Bool(*value),
                Owned::Int32(value) => Value::Int32(*value),
                Owned::Int64(value) => Value::Int64(*value),
                Owned::Float64(value) => Value::Float64(*value),
                Owned::Text(value) => Value::Text(value),
                Owned::Bytes(value) => Value::Bytes(value),
            }
        }
    }

    const TYPES: [ColumnType; 6] = [
        ColumnType::Bool,
        ColumnType::Int32,
        ColumnType::Int64,
        ColumnType::Float64,
        ColumnType::Text,
        ColumnType::Bytes,
    ];

    /// A column in the key, or in the row and then nullable or not, with two values that it can have.
    type Defined = (Option<bool>, ColumnType, Owned, Owned);

    fn value_of(column_type: ColumnType) -> BoxedStrategy<Owned> {
        match column_type {
            ColumnType::Bool => any::<bool>().prop_map(Owned::Bool).boxed(),
            ColumnType::Int32 => any::<i32>().prop_map(Owned::Int32).boxed(),
            ColumnType::Int64 => any::<i64>().prop_map(Owned::Int64).boxed(),
            ColumnType::Float64 => (-1e9..1e9_f64).prop_map(Owned::Float64).boxed(),
            ColumnType::Text => ".{0,9}".prop_map(Owned::Text).boxed(),
            ColumnType::Bytes => proptest::collection::vec(any::<u8>(), 0..9).prop_map(Owned::Bytes).boxed(),
        }
    }

    fn defined() -> impl Strategy<Value = Defined> {
        (proptest::sample::select(&TYPES[..]), 0..6_u8).prop_flat_map(|(column_type, kind)| {
            let place =
                [None, Some(false), Some(false), Some(true), Some(true), Some(true)][usize::from(kind)];
            let value = || match place {
                Some(true) => prop_oneof![Just(Owned::Null), value_of(column_type)].boxed(),
                _ => value_of(column_type),
            };
            (Just(place), Just(column_type), value(), value())
        })
    }

    /// A table with the columns after the first, which is its key. Columns of the key may stand between those of the row.
    fn table(columns: &[Defined]) -> Table {
        let names: Vec<String> = (0..columns.len()).map(|index| format!("c{index}")).collect();
        let mut builder = Table::builder("t").column("id", ColumnType::Int32);
        let mut key = vec!["id"];
        for ((place, column_type, ..), name) in columns.iter().zip(&names) {
            builder = match place {
                Some(true) => builder.nullable(name, *column_type),
                _ => builder.column(name, *column_type),
            };
            if place.is_none() {
                key.push(name);
            }
        }
        SchemaBuilder::new().table(builder.primary_key(&key)).unwrap()
    }

    /// The row's columns: number in the table, and both values.
    fn in_row(columns: &[Defined]) -> impl Iterator<Item = (usize, &Owned, &Owned)> {
        let numbered = columns.iter().enumerate().filter(|(_, (place, ..))| place.is_some());
        numbered.map(|(index, (_, _, first, second))| (index + 1, first, second))
    }

    fn typed(row: &Row<'_>, number: usize, value: &Value<'_>) -> Result<(), DataError> {
        match value {
            Value::Null => assert!(row.is_null(number)?),
            Value::Bool(value) => assert_eq!(row.bool(number)?, *value),
            Value::Int32(value) => assert_eq!(row.int32(number)?, *value),
            Value::Int64(value) => assert_eq!(row.int64(number)?, *value),
            Value::Float64(value) => assert_eq!(row.float64(number)?.to_bits(), value.to_bits()),
            Value::Text(value) => {
                assert_eq!(row.text(number)?, *value);
                assert_eq!(row.text_bytes(number)?, value.as_bytes());
            }
            Value::Bytes(value) => assert_eq!(row.byte_string(number)?, *value),
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn readers_find_what_was_encoded(columns in proptest::collection::vec(defined(), 0..20)) {
            let table = table(&columns);
            let values: Vec<Value<'_>> = in_row(&columns).map(|(_, first, _)| first.borrow()).collect();
            let bytes = table.row(values.as_slice()).unwrap();
            table.layout().check(&bytes).unwrap();
            let row = table.read(&bytes);
            for (number, first, _) in in_row(&columns) {
                prop_assert_eq!(row.value(number).unwrap(), first.borrow());
                prop_assert_eq!(row.value(format!("c{}", number - 1).as_str()).unwrap(), first.borrow());
                typed(&row, number, &first.borrow()).unwrap();
            }
        }

        /// To replace a fixed-width column in place is the same as to encode the row with the new value.
        #[test]
        fn replacing_is_encoding_anew(columns in proptest::collection::vec(defined(), 1..20), which: u32) {
            let table = table(&columns);
            let layout = table.layout();
            let chosen = |number: usize| which >> (number % 32) & 1 == 1;
            let values: Vec<Value<'_>> = in_row(&columns).map(|(_, first, _)| first.borrow()).collect();
            let mut bytes = table.row(values.as_slice()).unwrap();
            let mut expected = values.clone();
            for (place, (number, _, second)) in in_row(&columns).enumerate() {
                match layout.fixed_value(number, second.borrow()).unwrap() {
                    Some(value) if chosen(number) => {
                        layout.replace(&mut bytes, &value);
                        expected[place] = second.borrow();
                    }
                    Some(_) => {}
                    None => prop_assert!(columns[number - 1].1.fixed_width().is_none()),
                }
            }
            prop_assert_eq!(bytes, table.row(expected.as_slice()).unwrap());
        }

        /// What passes the check can be read, and it is what encoding its values gives: rows have one form.
        #[test]
        fn malformed_bytes_are_found(
            columns in proptest::collection::vec(defined(), 0..9),
            flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..3),
            length in -3..3_isize,
        ) {
            let table = table(&columns);
            let values: Vec<Value<'_>> = in_row(&columns).map(|(_, first, _)| first.borrow()).collect();
            let mut bytes = table.row(values.as_slice()).unwrap();
            bytes.resize(bytes.len().saturating_add_signed(length), 0);
            for (index, byte) in flips.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
                let index = index.index(bytes.len());
                bytes[index] = *byte;
            }
            if table.layout().check(&bytes).is_ok() {
                let row = table.read(&bytes);
                let found: Result<Vec<Value<'_>>, DataError> =
                    in_row(&columns).map(|(number, ..)| row.value(number)).collect();
                let again = table.row(found.unwrap().as_slice()).unwrap();
                prop_assert_eq!(again, bytes);
            }
        }
    }

    fn small() -> Table {
        let builder = Table::builder("small")
            .column("id", ColumnType::Int64)
            .column("count", ColumnType::Int32)
            .nullable("rank", ColumnType::Bool)
            .nullable("name", ColumnType::Text);
        SchemaBuilder::new().table(builder.primary_key(&["id"])).unwrap()
    }

    #[test]
    fn rows_have_one_form() {
        let table = small();
        let check = |bytes: &[u8]| table.layout().check(bytes);
        let bytes = table.row((7, true, "ab")).unwrap();
        check(&bytes).unwrap();
        let changed = |at: usize, byte: u8| {
            let mut changed = bytes.clone();
            changed[at] = byte;
            changed
        };
        assert_eq!(bytes, [0, 7, 0, 0, 0, 1, 12, 0, 0, 0, b'a', b'b']);
        for (at, byte, problem) in [
            (0, 0b1000, "a null bit of no column"),
            (0, 0b0001, "a null where there must be a value"),
            (0, 0b0010, "a null with a value"),
            (0, 0b0100, "a null text with bytes"),
            (5, 2, "neither true nor false"),
            (6, 13, "an end beyond the row"),
            (6, 11, "bytes after the last column"),
            (6, 3, "an end before the start"),
            (10, 0xFF, "no UTF-8"),
        ] {
            assert_eq!(check(&changed(at, byte)), Err(DataError::Malformed("row")), "{problem}");
        }
        assert!(check(&bytes[..9]).is_err() && check(&[]).is_err());
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let table = small();
        let error = |result: Result<Vec<u8>, DataError>| result.unwrap_err().to_string();
        assert!(error(table.row((7, true))).contains("takes 3 values here, not 2"));
        assert!(error(table.row((7, true, "a", 1))).contains("takes 3 values here, not 4"));
        assert!(error(table.row((7_i64, true, "a"))).contains("column count holds Int32, not Int64"));
        assert!(error(table.row((None::<i32>, true, "a"))).contains("column count must have a value"));
        let long = "x".repeat(ROW_BYTES_MAX);
        assert!(error(table.row((7, true, long.as_str()))).contains("split it over several rows"));
        let longest = "x".repeat(ROW_BYTES_MAX - 10);
        let bytes = table.row((7, true, longest.as_str())).unwrap();
        assert_eq!(bytes.len(), ROW_BYTES_MAX);
        table.layout().check(&bytes).unwrap();
    }

    #[test]
    fn a_failed_encoding_leaves_the_buffer_as_it_was() {
        let mut out = vec![1, 2, 3];
        small().layout().encode((7, "not a bool", "a"), &mut out).unwrap_err();
        assert_eq!(out, [1, 2, 3]);
        small().layout().encode((7, true, "a"), &mut out).unwrap();
        assert_eq!(out[3..], small().row((7, true, "a")).unwrap());
    }

    #[test]
    fn readers_say_what_is_wrong() {
        let table = small();
        let bytes = table.row((7, None::<bool>, None::<&str>)).unwrap();
        let row = table.read(&bytes);
        assert_eq!(row.value("rank").unwrap(), Value::Null);
        assert_eq!(row.bool("rank").unwrap_err(), DataError::Null("rank".to_owned()));
        assert_eq!(row.text("name").unwrap_err(), DataError::Null("name".to_owned()));
        assert!(matches!(row.int64("count"), Err(DataError::Type { given: ColumnType::Int64, .. })));
        // The type is wrong before the value is missing.
        assert!(matches!(row.int64("rank"), Err(DataError::Type { given: ColumnType::Int64, .. })));
        assert!(row.value("id").unwrap_err().to_string().contains("no row column"));
        assert!(row.value(0).unwrap_err().to_string().contains("is part of the key"));
        assert!(row.value(4).unwrap_err().to_string().contains("there is no column 4"));
        assert!(row.is_null(9).is_err());
    }
}
