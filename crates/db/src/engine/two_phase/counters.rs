//! What the engine counts.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct TwoPhaseCounters {
    /// Cycles that were found in this partition's own part of the graph.
    pub local_deadlocks: u64,
    /// Transactions that waited too long for locks here, where that is limited.
    pub lock_timeouts: u64,
    /// Those of them that were in no cycle of this partition's own part of the graph (DET-37).
    pub false_timeouts: u64,
    /// Victims that the detector named.
    pub distributed_deadlocks: u64,
    /// Victims that had gone on, or had been given up, when their coordinator heard of it.
    pub phantom_deadlocks: u64,
    /// Attempts that were given up and begun again.
    pub restarts: u64,
    /// Attempts that had to wait at the door: see [`admission`](super::admission).
    pub held_at_the_door: u64,
    /// Transactions that had promised to commit and had not heard the decision when this partition started with its log.
    pub in_doubt: u64,
}

impl AddAssign for TwoPhaseCounters {
    fn add_assign(&mut self, other: TwoPhaseCounters) {
        self.local_deadlocks += other.local_deadlocks;
        self.lock_timeouts += other.lock_timeouts;
        self.false_timeouts += other.false_timeouts;
        self.distributed_deadlocks += other.distributed_deadlocks;
        self.phantom_deadlocks += other.phantom_deadlocks;
        self.restarts += other.restarts;
        self.held_at_the_door += other.held_at_the_door;
        self.in_doubt += other.in_doubt;
    }
}
