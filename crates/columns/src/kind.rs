//! Which values are the same in columns as in rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Int64Builder,
    StringBuilder,
};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Field, Int64Type, Schema, SchemaRef};
use ordain_sql::types::{BaseType, Datum, Numeric, SqlType, row};

/// Digits of all numbers in columns: as many as fit.
const DIGITS: u8 = 38;

/// Most digits after the point of numbers in columns.
const SCALE_MAX: u16 = 30;

/// What the values of a column are.
///
/// Two values of a kind but the last are equal just if SQL says so, and are ordered alike; and equal ones have the same text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bool,
    /// Integers of all sizes.
    Int,
    /// Numbers that all have so many digits after the point.
    Numeric(u16),
    /// Texts, ordered by their bytes.
    Text,
    Bytes,
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since 2000.
    Timestamp,
    Uuid,
    /// Anything else, in the form of stored rows: it is only passed on, or found to be null.
    Other,
}

impl Kind {
    /// The kind of the values of a type.
    pub(crate) fn of(ty: SqlType) -> Kind {
        use BaseType::{
            Bool, Bytea, Char, Date, Int2, Int4, Int8, Name, Numeric, Oid, Text, Time, Timestamp,
            TimestampTz, Uuid, Varchar,
        };
        if ty.array {
            return Kind::Other;
        }
        match ty.base {
            Bool => Kind::Bool,
            Int2 | Int4 | Int8 | Oid => Kind::Int,
            Numeric => scale_of(ty).map_or(Kind::Other, Kind::Numeric),
            Text | Varchar | Char | Name => Kind::Text,
            Bytea => Kind::Bytes,
            Date => Kind::Date,
            Time => Kind::Time,
            Timestamp | TimestampTz => Kind::Timestamp,
            Uuid => Kind::Uuid,
            _ => Kind::Other,
        }
    }

    /// That of numbers with so many digits after the point, if there may be as many.
    pub(crate) fn numeric(scale: u16) -> Option<Kind> {
        (scale <= SCALE_MAX).then_some(Kind::Numeric(scale))
    }

    pub(crate) fn data_type(self) -> DataType {
        match self {
            Kind::Bool => DataType::Boolean,
            Kind::Int | Kind::Time | Kind::Timestamp => DataType::Int64,
            Kind::Numeric(scale) => DataType::Decimal128(DIGITS, scale as i8),
            Kind::Text => DataType::Utf8,
            Kind::Date => DataType::Date32,
            Kind::Bytes | Kind::Uuid | Kind::Other => DataType::Binary,
        }
    }

    /// Whether values can be compared.
    pub(crate) fn is_ordered(self) -> bool {
        self != Kind::Other
    }

    /// A value of a column.
    pub(crate) fn datum(self, column: &dyn Array, place: usize) -> Option<Datum> {
        if column.is_null(place) {
            return Some(Datum::Null);
        }
        let integer = || Some(column.as_primitive_opt::<Int64Type>()?.value(place));
        let bytes = || Some(column.as_binary_opt::<i32>()?.value(place));
        Some(match self {
            Kind::Bool => Datum::Bool(column.as_boolean_opt()?.value(place)),
            Kind::Int => Datum::Int(integer()?),
            Kind::Numeric(scale) => {
                let unscaled = column.as_primitive_opt::<Decimal128Type>()?.value(place);
                Datum::Numeric(Numeric::new(unscaled, scale))
            }
            Kind::Text => Datum::Text(column.as_string_opt::<i32>()?.value(place).to_owned()),
            Kind::Bytes => Datum::Bytes(bytes()?.to_vec()),
            Kind::Date => Datum::Date(column.as_primitive_opt::<Date32Type>()?.value(place)),
            Kind::Time => Datum::Time(integer()?),
            Kind::Timestamp => Datum::Timestamp(integer()?),
            Kind::Uuid => Datum::Uuid(u128::from_be_bytes(bytes()?.try_into().ok()?)),
            Kind::Other => {
                let mut values = Vec::with_capacity(1);
                row::decode(bytes()?, &mut values).ok()?;
                values.pop()?
            }
        })
    }
}

/// Digits after the point of the numbers of a type, if it says that.
fn scale_of(ty: SqlType) -> Option<u16> {
    let scale = u16::try_from((ty.modifier - 4) & 0x7FF).ok()?;
    (ty.modifier >= 4 && scale <= SCALE_MAX).then_some(scale)
}

/// Columns of these kinds, named by their numbers.
pub(crate) fn schema_of(kinds: &[Kind]) -> SchemaRef {
    let field = |(number, kind): (usize, &Kind)| Field::new(number.to_string(), kind.data_type(), true);
    Arc::new(Schema::new(kinds.iter().enumerate().map(field).collect::<Vec<Field>>()))
}

/// A column that grows.
pub(crate) enum Builder {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Numeric(Decimal128Builder, u16),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Time(Int64Builder),
    Timestamp(Int64Builder),
    Uuid(BinaryBuilder),
    Other(BinaryBuilder, Vec<u8>),
}

impl Builder {
    pub(crate) fn new(kind: Kind) -> Builder {
        match kind {
            Kind::Bool => Builder::Bool(BooleanBuilder::new()),
            Kind::Int => Builder::Int(Int64Builder::new()),
            Kind::Numeric(scale) => {
                Builder::Numeric(Decimal128Builder::new().with_data_type(kind.data_type()), scale)
            }
            Kind::Text => Builder::Text(StringBuilder::new()),
            Kind::Bytes => Builder::Bytes(BinaryBuilder::new()),
            Kind::Date => Builder::Date(Date32Builder::new()),
            Kind::Time => Builder::Time(Int64Builder::new()),
            Kind::Timestamp => Builder::Timestamp(Int64Builder::new()),
            Kind::Uuid => Builder::Uuid(BinaryBuilder::new()),
            Kind::Other => Builder::Other(BinaryBuilder::new(), Vec::new()),
        }
    }

    /// Adds a value, if it is of the kind; how many bytes it takes.
    pub(crate) fn push(&mut self, value: &Datum) -> Option<usize> {
        match (self, value) {
            (Builder::Bool(column), Datum::Bool(value)) => column.append_value(*value),
            (Builder::Int(column), Datum::Int(value))
            | (Builder::Time(column), Datum::Time(value))
            | (Builder::Timestamp(column), Datum::Timestamp(value)) => column.append_value(*value),
            (Builder::Date(column), Datum::Date(value)) => column.append_value(*value),
            (Builder::Numeric(column, scale), Datum::Numeric(value)) => {
                let (unscaled, own) = value.short()?;
                (own == *scale).then(|| column.append_value(unscaled))?;
            }
            (Builder::Text(column), Datum::Text(value)) => {
                column.append_value(value);
                return Some(value.len() + 4);
            }
            (Builder::Bytes(column), Datum::Bytes(value)) => {
                column.append_value(value);
                return Some(value.len() + 4);
            }
            (Builder::Uuid(column), Datum::Uuid(value)) => column.append_value(value.to_be_bytes()),
            (Builder::Other(column, _), Datum::Null) => column.append_null(),
            (Builder::Other(column, bytes), value) => {
                bytes.clear();
                row::encode(std::slice::from_ref(value), bytes);
                column.append_value(&bytes);
                return Some(bytes.len() + 4);
            }
            (builder, Datum::Null) => builder.push_null(),
            _ => return None,
        }
        Some(16)
    }

    fn push_null(&mut self) {
        match self {
            Builder::Bool(column) => column.append_null(),
            Builder::Int(column) | Builder::Time(column) | Builder::Timestamp(column) => column.append_null(),
            Builder::Numeric(column, _) => column.append_null(),
            Builder::Text(column) => column.append_null(),
            Builder::Bytes(column) | Builder::Uuid(column) | Builder::Other(column, _) => {
                column.append_null()
            }
            Builder::Date(column) => column.append_null(),
        }
    }

    /// What has come, which it has no longer.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Bool(column) => Arc::new(column.finish()),
            Builder::Int(column) | Builder::Time(column) | Builder::Timestamp(column) => {
                Arc::new(column.finish())
            }
            Builder::Numeric(column, _) => Arc::new(column.finish()),
            Builder::Text(column) => Arc::new(column.finish()),
            Builder::Bytes(column) | Builder::Uuid(column) | Builder::Other(column, _) => {
                Arc::new(column.finish())
            }
            Builder::Date(column) => Arc::new(column.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        let number = |unscaled| Datum::Numeric(Numeric::new(unscaled, 2));
        let interval = Datum::Interval { months: 1, days: -2, microseconds: 3 };
        let columns = [
            (Kind::Bool, vec![Datum::Bool(true), Datum::Null, Datum::Bool(false)]),
            (Kind::Int, vec![Datum::Int(i64::MIN), Datum::Null, Datum::Int(i64::MAX)]),
            (Kind::Numeric(2), vec![number(-150), Datum::Null, number(0)]),
            (Kind::Text, vec![Datum::Text(String::new()), Datum::Null, Datum::Text("é".into())]),
            (Kind::Bytes, vec![Datum::Bytes(vec![0, 255]), Datum::Null]),
            (Kind::Date, vec![Datum::Date(-1), Datum::Null]),
            (Kind::Time, vec![Datum::Time(1), Datum::Null]),
            (Kind::Timestamp, vec![Datum::Timestamp(-1), Datum::Null]),
            (Kind::Uuid, vec![Datum::Uuid(1 << 100), Datum::Null]),
            (Kind::Other, vec![interval, Datum::Null, Datum::Float(-0.0), Datum::Array(vec![Datum::Null])]),
        ];
        for (kind, values) in columns {
            let mut builder = Builder::new(kind);
            values.iter().for_each(|value| assert!(builder.push(value).is_some(), "{kind:?}: {value:?}"));
            let column = builder.finish();
            assert_eq!(*column.data_type(), kind.data_type());
            let back: Vec<Datum> =
                (0..values.len()).map(|place| kind.datum(&column, place).unwrap()).collect();
            assert_eq!(back, values, "{kind:?}");
        }
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        let refused = [
            (Kind::Int, Datum::Text("1".into())),
            (Kind::Numeric(2), Datum::Numeric(Numeric::new(1, 3))),
            (Kind::Numeric(2), Datum::Numeric(Numeric::NAN)),
            (Kind::Date, Datum::Timestamp(0)),
        ];
        for (kind, value) in refused {
            assert_eq!(Builder::new(kind).push(&value), None, "{kind:?}: {value:?}");
        }
    }

    #[test]
    fn numbers_have_the_scale_of_their_type() {
        assert_eq!(Kind::of(SqlType::numeric(10, 2)), Kind::Numeric(2));
        assert_eq!(Kind::of(SqlType::numeric(10, 0)), Kind::Numeric(0));
        assert_eq!(Kind::of(SqlType::numeric(10, -2)), Kind::Other);
        assert_eq!(Kind::of(SqlType::NUMERIC), Kind::Other);
    }
}
