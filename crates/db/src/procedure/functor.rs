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

/// What happens to a number. It aborts for no row, for then the other keys of its transaction would have to know (ALO-74, ALO-103): where
/// there is no row, or null, nothing changes. Nothing changes either where the result exceeds the column's type, on any engine; who
/// applies functors by themselves [counts](crate::node::Status::functors_stopped) it (trap T-09). A procedure that must not let it happen
/// has a guard.
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

/// What arithmetic makes of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changed {
    To(FixedValue),
    /// The column is null.
    Nothing,
    /// The result does not fit the column: what there was before.
    Exceeded(i64),
}

impl Arithmetic {
    fn of(self, number: i64) -> Option<i64> {
        match self {
            Arithmetic::Add(by) => number.checked_add(by),
            Arithmetic::Subtract(by) => number.checked_sub(by),
            Arithmetic::Maximum(other) => Some(number.max(other)),
            Arithmetic::Minimum(other) => Some(number.min(other)),
        }
    }

    /// What becomes of a column.
    ///
    /// # Errors
    /// When the column is no integer column of the row.
    pub(crate) fn apply(self, table: &Table, column: usize, row: &[u8]) -> Result<Changed, DataError> {
        let (before, new) = match Row::new(table.layout(), row).value(column)? {
            Value::Null => return Ok(Changed::Nothing),
            Value::Int64(number) => (number, self.of(number).map(Value::Int64)),
            Value::Int32(number) => {
                let number = i64::from(number);
                let new = self.of(number).and_then(|new| i32::try_from(new).ok());
                (number, new.map(Value::Int32))
            }
            _ => return Err(table.no_integer(column)),
        };
        let Some(new) = new else { return Ok(Changed::Exceeded(before)) };
        Ok(table.layout().fixed_value(column, new)?.map_or(Changed::Nothing, Changed::To))
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
    fn numbers_change_unless_they_exceed_their_column() {
        let table = Table::builder("t")
            .column("id", ColumnType::Int32)
            .column("long", ColumnType::Int64)
            .nullable("short", ColumnType::Int32)
            .column("name", ColumnType::Text);
        let table = SchemaBuilder::new().table(table.primary_key(&["id"])).unwrap();
        let row = table.row((40_i64, i32::MAX, "n")).unwrap();
        let changed = |column: usize, operation: Arithmetic| {
            let mut row = row.clone();
            let Changed::To(value) = operation.apply(&table, column, &row).unwrap() else { return None };
            table.layout().replace(&mut row, &value);
            let read = table.read(&row);
            Some(if column == 1 { read.int64(1).unwrap() } else { i64::from(read.int32(2).unwrap()) })
        };
        use Arithmetic::{Add, Maximum, Minimum, Subtract};
        let all = [Add(2), Subtract(2), Maximum(50), Maximum(7), Minimum(50), Minimum(7)];
        assert_eq!(all.map(|operation| changed(1, operation)), [42, 38, 50, 40, 40, 7].map(Some));
        assert_eq!([changed(2, Add(1)), changed(2, Maximum(1 << 31)), changed(1, Add(i64::MAX))], [None; 3]);
        assert_eq!(changed(2, Subtract(1)), Some(i64::from(i32::MAX) - 1));
        assert_eq!(Add(1).apply(&table, 2, &row), Ok(Changed::Exceeded(i64::from(i32::MAX))));
        let null = table.row((40_i64, None::<i32>, "n")).unwrap();
        assert_eq!(Add(1).apply(&table, 2, &null), Ok(Changed::Nothing));
        assert_eq!([1, 2].map(|column| table.check_integer(column)), [Ok(()), Ok(())]);
        for column in [0, 3, 9] {
            assert!(Add(1).apply(&table, column, &row).is_err(), "{column}");
            assert!(table.check_integer(column).is_err(), "{column}");
        }
    }
}
