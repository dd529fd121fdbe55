//! Machines: what a node runs on.

pub mod account;
pub mod calibration;
pub mod clock;
pub mod cost;
pub mod disk;
