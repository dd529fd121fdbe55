//! Clusters of real processes: the built binary on loopback, and clients that behave well or not.
//!
//! Deadlines here are for liveness only, and generous: they pass on a machine that is busy with something else.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and print what tells why")]

mod clients;
mod digests;
mod durable;
mod early;
mod garbage;
mod in_doubt;
mod interruption;
mod membership;
mod misconfiguration;
mod operate;
mod peers;
#[path = "../transport/proxy.rs"]
mod proxy;
mod replicas;
mod restore;
mod shutdown;
mod support;
mod throttle;
mod wire;
