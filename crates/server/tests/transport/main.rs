//! The transport over real sockets: order and exactly-once over broken connections, refusals, garbage, limits, closing.
//!
//! Deadlines here are for liveness only, and generous: they pass on a machine that is busy with something else.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clients;
mod closing;
mod frames;
mod garbage;
mod links;
mod proxy;
mod restarts;
mod support;
