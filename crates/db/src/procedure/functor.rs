//! Functors: the new row of one key as a function of its own row (Fan and Golab, §IV-B).
//!
//! A procedure may [declare](super::Declaration::functor) for a key that it writes how the key's new row follows from the row before and
//! from the arguments alone. An engine that knows can write the key without waiting for whatever else the transaction reads. Any
//! other engine ignores it and runs the procedure as a whole; both must come to the same row.

use crate::data::row::FixedValue;
use crate::data::{ColumnType, DataError, Row, Table, Value};

/// How the new row of a key follows from the row before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Functor {
    /// One column is changed, the others stay (the paper's ADD, SUBTR, MAX and MIN, Table I).
    Arithmetic {
        /// The table-wide number of the column, an integer.
        column: usize,
        /// What happens to it.
        operation: Arithmetic,
    },
    /// What the procedure's [`functor`](super::Procedure::functor) does when it is called with this number (the paper's user-defined
    /// type).
    Own(u16),
}

/// What happens to a number. It fails for no row, for then the other keys of its transaction would have to know (ALO-74, ALO-103): where
/// there is no row, or null, nothing changes, and what exceeds the column's type wraps around.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// Adds.
    Add(i64),
    /// Subtracts.
    Subtract(i64),
    /// The larger one of the two.
    Maximum(i64),
    /// The smaller one of the two.
    Minimum(i64),
}

impl Arithmetic {
    fn of(self, number: i64) -> i64 {
        match self {
            Arithmetic::Add(by) => number.wrapping_add(by),
            Arithmetic::Subtract(by) => number.wrapping_sub(by),
            Arithmetic::Maximum(other) => number.max(other),
            Arithmetic::Minimum(other) => number.min(other),
        }
    }

    /// The new value of a column; `None` if it has none.
    ///
    /// # Errors
    /// When the column is no integer column of the row.
    pub(crate) fn apply(
        self,
        table: &Table,
        column: usize,
        row: &[u8],
    ) -> Result<Option<FixedValue>, DataError> {
        let new = match Row::new(table.layout(), row).value(column)? {
            Value::Null => return Ok(None),
            Value::Int64(number) => Value::Int64(self.of(number)),
            Value::Int32(number) => Value::Int32(self.of(i64::from(number)) as i32),
            _ => return Err(table.no_integer(column)),
        };
        table.layout().fixed_value(column, new)
    }
}

impl Table {
    /// Checks that a column is an integer of the table's rows.
    pub(crate) fn check_integer(&self, column: usize) -> Result<(), DataError> {
        match self.layout().column(column)?.column_type {
            ColumnType::Int32 | ColumnType::Int64 => Ok(()),
            _ => Err(self.no_integer(column)),
        }
    }

    fn no_integer(&self, column: usize) -> DataError {
        let name = self.name();
        DataError::Column(format!(
            "column {column} of table {name} is no integer: only integers have arithmetic functors"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SchemaBuilder;

    #[test]
    fn numbers_change_and_nothing_fails_but_a_wrong_column() {
        let table = Table::builder("t")
            .column("id", ColumnType::Int32)
            .column("long", ColumnType::Int64)
            .nullable("short", ColumnType::Int32)
            .column("name", ColumnType::Text);
        let table = SchemaBuilder::new().table(table.primary_key(&["id"])).unwrap();
        let row = table.row((40_i64, i32::MAX, "n")).unwrap();
        let changed = |column: usize, operation: Arithmetic| {
            let mut row = row.clone();
            let value = operation.apply(&table, column, &row).unwrap().unwrap();
            table.layout().replace(&mut row, &value);
            let read = table.read(&row);
            if column == 1 { read.int64(1).unwrap() } else { i64::from(read.int32(2).unwrap()) }
        };
        use Arithmetic::{Add, Maximum, Minimum, Subtract};
        let all = [Add(2), Subtract(2), Maximum(50), Maximum(7), Minimum(50), Minimum(7)];
        assert_eq!(all.map(|operation| changed(1, operation)), [42, 38, 50, 40, 40, 7]);
        assert_eq!(changed(2, Add(1)), i64::from(i32::MIN));
        let null = table.row((40_i64, None::<i32>, "n")).unwrap();
        assert_eq!(Add(1).apply(&table, 2, &null), Ok(None));
        assert_eq!([1, 2].map(|column| table.check_integer(column)), [Ok(()), Ok(())]);
        for column in [0, 3, 9] {
            assert!(Add(1).apply(&table, column, &row).is_err(), "{column}");
            assert!(table.check_integer(column).is_err(), "{column}");
        }
    }
}
