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
