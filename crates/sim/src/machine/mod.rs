//! Machines: what a node runs on.

pub mod cost;
