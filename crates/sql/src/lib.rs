//! SQL and the PostgreSQL protocol over an Ordain database.
//!
//! Pure, as the database is: no sockets, threads or clocks. Whoever drives a session hands it the bytes of a client and a way to the
//! database.

pub mod advisory;
pub mod bind;
pub mod catalog;
pub mod error;
pub mod execute;
mod explain;
pub mod keys;
pub mod plan;
pub mod procedure;
pub mod protocol;
pub mod routines;
pub mod session;
pub mod state;
pub mod syntax;
pub mod types;
