//! The log by the Raft algorithm, in a simulated group: seeded faults, and invariants that hold at every step.

mod chaos;
mod checker;
mod early;
mod group;
mod injected;
mod leadership;
mod machine;
mod membership;
mod plan;
mod random;
mod records;
mod stale;
