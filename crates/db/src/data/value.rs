//! Column types, borrowed values, and the errors of the data model.

use crate::error::Limit;
use crate::limits::{
    COLUMNS_MAX, FOOTPRINT_BYTES_MAX, FOOTPRINT_ENTRIES_MAX, KEY_BYTES_MAX, LOGGED_READS_BYTES_MAX,
    READ_RESULTS_BYTES_MAX, RECONNAISSANCE_ROUNDS_MAX, ROW_BYTES_MAX, TABLES_MAX,
};

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// True or false; 1 byte.
    Bool,
    /// Signed integer; 4 bytes.
    Int32,
    /// Signed integer; 8 bytes. Money is kept in it, in the smallest unit.
    Int64,
    /// IEEE 754 double; 8 bytes. Ordered by `total_cmp`.
    Float64,
    /// UTF-8 text of any length up to the row limit.
    Text,
    /// Bytes of any length up to the row limit.
    Bytes,
}

impl ColumnType {
    /// Bytes that a value of this type takes in a row, if that is fixed.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            ColumnType::Bool => Some(1),
            ColumnType::Int32 => Some(4),
            ColumnType::Int64 | ColumnType::Float64 => Some(8),
            ColumnType::Text | ColumnType::Bytes => None,
        }
    }
}

/// A value of a column, borrowed from wherever it lives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// See [`ColumnType::Bool`].
    Bool(bool),
    /// See [`ColumnType::Int32`].
    Int32(i32),
    /// See [`ColumnType::Int64`].
    Int64(i64),
    /// See [`ColumnType::Float64`].
    Float64(f64),
    /// See [`ColumnType::Text`].
    Text(&'a str),
    /// See [`ColumnType::Bytes`].
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// The type of the value, or `None` for null, which has every type.
    pub fn column_type(&self) -> Option<ColumnType> {
        match self {
            Value::Null => None,
            Value::Bool(_) => Some(ColumnType::Bool),
            Value::Int32(_) => Some(ColumnType::Int32),
            Value::Int64(_) => Some(ColumnType::Int64),
            Value::Float64(_) => Some(ColumnType::Float64),
            Value::Text(_) => Some(ColumnType::Text),
            Value::Bytes(_) => Some(ColumnType::Bytes),
        }
    }
}

/// What can be borrowed as a [`Value`].
pub trait AsValue {
    /// The value.
    fn as_value(&self) -> Value<'_>;
}

macro_rules! as_value {
    ($($rust:ty => |$this:ident| $value:expr),* $(,)?) => {
        $(impl AsValue for $rust {
            #[inline]
            fn as_value(&self) -> Value<'_> {
                let $this = self;
                $value
            }
        })*
    };
}

as_value! {
    bool => |this| Value::Bool(*this),
    i32 => |this| Value::Int32(*this),
    i64 => |this| Value::Int64(*this),
    f64 => |this| Value::Float64(*this),
    &str => |this| Value::Text(this),
    String => |this| Value::Text(this),
    &[u8] => |this| Value::Bytes(this),
    Vec<u8> => |this| Value::Bytes(this),
    Value<'_> => |this| *this,
}

impl<T: AsValue> AsValue for Option<T> {
    #[inline]
    fn as_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, AsValue::as_value)
    }
}

/// A sequence of values: a tuple of up to twelve, or a slice of [`Value`]s of any length.
pub trait Values {
    /// Visits the values in order; the first error ends the visit.
    fn visit<F>(&self, visit: F) -> Result<(), DataError>
    where
        F: FnMut(Value<'_>) -> Result<(), DataError>;
}

impl Values for [Value<'_>] {
    fn visit<F>(&self, mut visit: F) -> Result<(), DataError>
    where
        F: FnMut(Value<'_>) -> Result<(), DataError>,
    {
        self.iter().try_for_each(|value| visit(*value))
    }
}

impl<V: Values + ?Sized> Values for &V {
    fn visit<F>(&self, visit: F) -> Result<(), DataError>
    where
        F: FnMut(Value<'_>) -> Result<(), DataError>,
    {
        (**self).visit(visit)
    }
}

macro_rules! values_for_tuples {
    ($($name:ident . $index:tt),*) => {
        impl<$($name: AsValue),*> Values for ($($name,)*) {
            #[inline]
            fn visit<Visit>(&self, mut visit: Visit) -> Result<(), DataError>
            where
                Visit: FnMut(Value<'_>) -> Result<(), DataError>,
            {
                $(visit(self.$index.as_value())?;)*
                Ok(())
            }
        }
    };
}

values_for_tuples!(A.0);
values_for_tuples!(A.0, B.1);
values_for_tuples!(A.0, B.1, C.2);
values_for_tuples!(A.0, B.1, C.2, D.3);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5, G.6);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9, K.10);
values_for_tuples!(A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9, K.10, L.11);

/// A mistake in a schema, a key, a row or the use of a column. All are deterministic: the same input gives the
/// same error everywhere.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DataError {
    /// A table has too few, too many or badly named columns.
    #[error("table {table}: {problem}")]
    Table {
        /// The table's name.
        table: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// More tables than [`TABLES_MAX`].
    #[error("a schema holds at most {TABLES_MAX} tables: drop or merge some")]
    TooManyTables,
    /// A value of another type than its column's.
    #[error("column {column} holds {expected:?}, not {given:?}")]
    Type {
        /// The column's name.
        column: String,
        /// The column's type.
        expected: ColumnType,
        /// The type of the value.
        given: ColumnType,
    },
    /// A null in a column that must have a value.
    #[error("column {0} must have a value; it is part of the key or was not declared nullable")]
    Null(String),
    /// Another number of values than the table's columns.
    #[error("table {table} takes {expected} values here, not {given}")]
    Count {
        /// The table's name.
        table: String,
        /// Number of values wanted.
        expected: usize,
        /// Number of values given.
        given: usize,
    },
    /// A column that the table does not have, or that is not where it was looked for.
    #[error("{0}")]
    Column(String),
    /// A key over [`KEY_BYTES_MAX`].
    #[error("key of {0} bytes exceeds the limit of {KEY_BYTES_MAX}: shorten its text or bytes columns")]
    KeyTooLong(usize),
    /// A row over [`ROW_BYTES_MAX`].
    #[error("row of {0} bytes exceeds the limit of {ROW_BYTES_MAX}: split it over several rows")]
    RowTooLong(usize),
    /// A footprint over [`FOOTPRINT_ENTRIES_MAX`] or [`FOOTPRINT_BYTES_MAX`].
    #[error(
        "a footprint holds at most {FOOTPRINT_ENTRIES_MAX} keys and ranges, of {FOOTPRINT_BYTES_MAX} bytes together: declare \
         ranges instead of keys"
    )]
    FootprintTooLarge,
    /// A footprint whose reconnaissance takes more than [`RECONNAISSANCE_ROUNDS_MAX`], or touches more than
    /// [`RECONNAISSANCE_ACCESSES_MAX`](crate::limits::RECONNAISSANCE_ACCESSES_MAX) before its last one.
    #[error(
        "reconnaissance needs too many rounds of remote reads: more than {RECONNAISSANCE_ROUNDS_MAX}, or for too many rows"
    )]
    ReconnaissanceTooLong,
    /// Reads of one partition over [`READ_RESULTS_BYTES_MAX`].
    #[error("one partition's reads exceed {READ_RESULTS_BYTES_MAX} bytes: read less in one transaction")]
    ReadsTooLarge,
    /// Reads of all partitions over [`LOGGED_READS_BYTES_MAX`], with the engine `two-phase`.
    #[error(
        "the reads of all partitions exceed {LOGGED_READS_BYTES_MAX} bytes, which is what the log of two-phase takes: read less in one transaction"
    )]
    LoggedReadsTooLarge,
    /// Bytes that are no key or no row of this table.
    #[error("malformed {0}: the bytes do not come from this schema")]
    Malformed(&'static str),
}

impl DataError {
    /// The limit of a transaction that is exceeded, if it is one.
    pub(crate) fn limit(&self) -> Option<Limit> {
        match self {
            DataError::FootprintTooLarge | DataError::ReconnaissanceTooLong => Some(Limit::Footprint),
            DataError::ReadsTooLarge | DataError::LoggedReadsTooLarge => Some(Limit::Reads),
            _ => None,
        }
    }
}

const _: () = assert!(COLUMNS_MAX <= u16::MAX as usize);
