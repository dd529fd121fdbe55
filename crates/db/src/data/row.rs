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

/// Where the columns of a table's rows stand.
#[derive(Clone, Debug)]
pub struct RowLayout {
    table: String,
    /// By table-wide column number; `None` for columns of the key.
    columns: Vec<Option<LayoutColumn>>,
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
        RowLayout { table: table.to_owned(), columns: laid_out, fixed_bytes: offset, ends_offset }
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
        let column = self.columns[usize::from(value.column)].as_ref().expect("made by this layout");
        let width = column.column_type.fixed_width().expect("made by this layout");
        row[column.offset..][..width].copy_from_slice(&value.bytes[..width]);
        let bit = 1 << (column.ordinal % 8);
        if value.null {
            row[column.ordinal / 8] |= bit;
        } else {
            row[column.ordinal / 8] &= !bit;
        }
    }

    /// Checks that bytes which came from outside are a row of this layout.
    pub fn check(&self, row: &[u8]) -> Result<(), DataError> {
        let malformed = || DataError::Malformed("row");
        if row.len() < self.fixed_bytes || row.len() > ROW_BYTES_MAX {
            return Err(malformed());
        }
        let reader = Row { layout: self, bytes: row };
        let mut end_before = self.fixed_bytes;
        for column in self.row_columns().filter(|column| column.column_type.fixed_width().is_none()) {
            let end = reader.end_of(column);
            if end < end_before || end > row.len() {
                return Err(malformed());
            }
            if column.column_type == ColumnType::Text {
                std::str::from_utf8(&row[end_before..end]).map_err(|_| malformed())?;
            }
            end_before = end;
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
        let column = self.layout.column(column.find(self.layout)?)?;
        if self.bytes[column.ordinal / 8] & (1 << (column.ordinal % 8)) != 0 {
            return Ok(Value::Null);
        }
        Ok(match column.column_type {
            ColumnType::Bool => Value::Bool(self.bytes[column.offset] != 0),
            ColumnType::Int32 => Value::Int32(i32::from_le_bytes(self.fixed(column.offset))),
            ColumnType::Int64 => Value::Int64(i64::from_le_bytes(self.fixed(column.offset))),
            ColumnType::Float64 => {
                Value::Float64(f64::from_bits(u64::from_le_bytes(self.fixed(column.offset))))
            }
            ColumnType::Text => Value::Text(
                std::str::from_utf8(self.variable(column)).map_err(|_| DataError::Malformed("row"))?,
            ),
            ColumnType::Bytes => Value::Bytes(self.variable(column)),
        })
    }

    #[inline]
    fn fixed<const WIDTH: usize>(&self, offset: usize) -> [u8; WIDTH] {
        *self.bytes[offset..].first_chunk().expect("a row has its layout's fixed part")
    }

    fn end_of(&self, column: &LayoutColumn) -> usize {
        u32::from_le_bytes(self.fixed(column.offset)) as usize
    }

    fn variable(&self, column: &LayoutColumn) -> &'a [u8] {
        let start = if column.offset == self.layout.ends_offset {
            self.layout.fixed_bytes
        } else {
            u32::from_le_bytes(self.fixed(column.offset - 4)) as usize
        };
        &self.bytes[start..self.end_of(column)]
    }

    fn mismatch<T>(&self, column: impl ColumnSelector, wanted: ColumnType) -> Result<T, DataError> {
        let column = self.layout.column(column.find(self.layout)?)?;
        if column.column_type == wanted {
            return Err(DataError::Null(column.name.clone()));
        }
        Err(DataError::Type { column: column.name.clone(), expected: column.column_type, given: wanted })
    }

    /// Whether the column is null.
    pub fn is_null(&self, column: impl ColumnSelector) -> Result<bool, DataError> {
        Ok(self.value(column)? == Value::Null)
    }
}

macro_rules! typed_readers {
    ($($name:ident: $rust:ty = $variant:ident),* $(,)?) => {
        impl<'a> Row<'a> {
            $(
                /// The value of a column of this type; a null or another type is an error.
                #[inline]
                pub fn $name(&self, column: impl ColumnSelector + Copy) -> Result<$rust, DataError> {
                    match self.value(column)? {
                        Value::$variant(value) => Ok(value),
                        _ => self.mismatch(column, ColumnType::$variant),
                    }
                }
            )*
        }
    };
}

typed_readers! {
    bool: bool = Bool,
    int32: i32 = Int32,
    int64: i64 = Int64,
    float64: f64 = Float64,
    text: &'a str = Text,
    byte_string: &'a [u8] = Bytes,
}
