//! The data model: typed tables with primary keys, order-preserving keys, rows read in place, and placement.
//!
//! - [`value`]: column types and borrowed values.
//! - [`key`]: the order-preserving key encoding and ranges of keys.
//! - [`row`]: the row encoding, in which a fixed-width column is read and replaced in place.
//! - [`rows`]: many rows with their keys, as they are sent.
//! - [`schema`]: tables and schemas.
//! - [`placement`]: which partition owns a key.

pub mod key;
pub mod placement;
pub mod row;
pub mod rows;
pub mod schema;
pub mod value;

pub use key::{Direction, Key, KeyRange};
pub use placement::{Owner, Partitioning};
pub use row::Row;
pub use rows::Rows;
pub use schema::{Schema, SchemaBuilder, Table, TableBuilder, TableId};
pub use value::{ColumnType, DataError, Value, Values};
