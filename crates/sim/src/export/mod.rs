//! Histories for outside checkers: what clients of the [`append`](ordain_workload::append) workload did and saw, in the formats
//! that such tools read.
//!
//! | module | format | checks |
//! |---|---|---|
//! | [`elle`] | list-append histories in EDN | strict serializability and everything below it |
//! | [`awdit`] | registers, one read or write a line | read committed, read atomic, causal consistency |
//! | [`operations`] | JSON, one operation a line, by key | linearizability of each list, as porcupine does |
//!
//! Only lists are told: what a call does besides, to notes, pointers and settings, is left out, and so are calls that do
//! nothing to lists. The texts are of equal bytes for equal histories.
//!
//! # Limits
//! - A call that followed a pointer and was not answered is told only if a later call saw its number: else nobody knows which
//!   list it was to append to.
//! - An answer counts as before every request that is sent at the same nanosecond: messages take time.

pub mod awdit;
pub mod elle;
pub mod operations;
mod transactions;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use ordain_db::error::Error;
use ordain_workload::append::Append;

use crate::history::History;

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// See [`elle`].
    Elle,
    /// See [`awdit`].
    Awdit,
    /// See [`operations`].
    Operations,
}

impl Format {
    /// The history in this format.
    ///
    /// # Errors
    /// When the history is not of this workload.
    pub fn export(self, history: &History, workload: &Append) -> Result<String, Error> {
        match self {
            Format::Elle => elle::export(history, workload),
            Format::Awdit => awdit::export(history, workload),
            Format::Operations => operations::export(history, workload),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        match name {
            "elle" => Ok(Format::Elle),
            "awdit" => Ok(Format::Awdit),
            "operations" => Ok(Format::Operations),
            other => Err(format!("there is no format {other:?}: choose one of elle, awdit, operations")),
        }
    }
}
