//! The simulator: whole clusters in virtual time, with faults and checkers.

pub mod heap;
pub mod history;
pub mod machine;
pub mod time;
