//! Types and values.

pub mod aggregate;
pub mod binary;
mod calendar;
pub mod cast;
pub mod compare;
pub mod functions;
pub(crate) mod interval_fields;
pub(crate) mod json;
pub mod key;
pub mod network;
pub mod numeric;
pub mod operators;
pub(crate) mod others;
pub mod row;
mod sql_type;
pub mod text;
mod zone;

pub use network::Network;
pub use numeric::Numeric;
pub(crate) use others::{OTHERS, Other};
pub(crate) use zone::Unfit;
pub use zone::Zone;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A type without its modifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum BaseType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `character`, padded with blanks
    Char,
    /// `name`, as the catalog has it
    Name,
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `time without time zone`
    Time,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    TimestampTz,
    /// `interval`
    Interval,
    /// `uuid`
    Uuid,
    /// `inet`
    Inet,
    /// `cidr`
    Cidr,
    /// `json`, kept as text
    Json,
    /// `jsonb`, kept as text
    Jsonb,
    /// `oid`
    Oid,
    /// A literal in quotes, or a parameter, whose type is not known yet
    Unknown,
}

/// A type of a column, parameter or expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SqlType {
    /// The type, or that of the elements.
    pub base: BaseType,
    /// PostgreSQL's `atttypmod`: -1 for none; lengths of `varchar` and `char` plus 4; for `numeric` `(precision << 16 | scale) + 4`.
    pub modifier: i32,
    /// An array of it, of one dimension.
    pub array: bool,
}

/// A few values, such as those of a key or of a statement's parameters: they need no allocation.
pub type Values = SmallVec<[Datum; 4]>;

/// A value. Which of the types it has is known from where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Datum {
    /// No value.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`, `integer`, `bigint`, `oid`
    Int(i64),
    /// `real` (rounded to it), `double precision`
    Float(f64),
    /// `numeric`
    Numeric(Numeric),
    /// All types that are kept as text
    Text(String),
    /// `bytea`
    Bytes(Vec<u8>),
    /// `date`: days since 2000-01-01
    Date(i32),
    /// `time`: microseconds since midnight
    Time(i64),
    /// `timestamp`, `timestamptz`: microseconds since 2000-01-01, that of `timestamptz` in UTC
    Timestamp(i64),
    /// `interval`
    Interval {
        /// Months.
        months: i32,
        /// Days.
        days: i32,
        /// Microseconds.
        microseconds: i64,
    },
    /// `uuid`
    Uuid(u128),
    /// `inet`, `cidr`
    Network(Network),
    /// An array of one dimension
    Array(Vec<Datum>),
}

impl Datum {
    /// Whether it is no value.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
}

/// As PostgreSQL has it, what is no number is equal to itself: rows and expressions with it are found again.
impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Bool(one), Datum::Bool(other)) => one == other,
            (Datum::Int(one), Datum::Int(other))
            | (Datum::Time(one), Datum::Time(other))
            | (Datum::Timestamp(one), Datum::Timestamp(other)) => one == other,
            (Datum::Float(one), Datum::Float(other)) => one == other || (one.is_nan() && other.is_nan()),
            (Datum::Numeric(one), Datum::Numeric(other)) => one == other,
            (Datum::Text(one), Datum::Text(other)) => one == other,
            (Datum::Bytes(one), Datum::Bytes(other)) => one == other,
            (Datum::Date(one), Datum::Date(other)) => one == other,
            (
                Datum::Interval { months, days, microseconds },
                Datum::Interval { months: other_months, days: other_days, microseconds: other_microseconds },
            ) => (months, days, microseconds) == (other_months, other_days, other_microseconds),
            (Datum::Uuid(one), Datum::Uuid(other)) => one == other,
            (Datum::Network(one), Datum::Network(other)) => one == other,
            (Datum::Array(one), Datum::Array(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Datum {}
