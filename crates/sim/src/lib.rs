//! The simulator: whole clusters in virtual time, with faults and checkers.

pub mod checkers;
pub mod export;
pub mod heap;
pub mod history;
pub mod machine;
pub mod network;
pub mod oracle;
pub mod plan;
pub mod run;
pub mod scale;
pub mod shrink;
pub mod sql;
pub mod swarm;
pub mod time;
pub mod world;
