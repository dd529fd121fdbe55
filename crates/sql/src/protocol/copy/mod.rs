//! The data of `COPY`: rows to and from text, CSV and PostgreSQL's binary form.
//!
//! Rows are read from pieces that begin and end anywhere, byte for byte as PostgreSQL reads them; where its versions differ, in
//! what `\.` means, this follows version 18 for text (alone on its line, or an error) and 17 for CSV (the end if it is alone on its
//! line, data otherwise). Left out: encodings other than UTF-8, `FORCE_QUOTE`, `FORCE_NULL` and `FORCE_NOT_NULL`, OIDs in the
//! binary form.

mod binary;
mod csv;
mod lines;
mod options;
mod rows;
#[cfg(test)]
mod tests;
mod text;

pub use options::{CopyFormat, CopyOptions, Header};
pub use rows::{Row, RowDecoder, RowEncoder};

/// How long a row may be as it is sent, in bytes.
pub const ROW_BYTES_MAX: usize = 16 << 20;
/// How many columns a row may have, as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1664;
