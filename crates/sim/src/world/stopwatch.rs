//! What is measured of a world from some time on.

use ordain_db::message::{Operation, Reply};

use super::stages::Stages;
use crate::machine::account::Spent;
use crate::time::Nanoseconds;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Stopwatch {
    /// Of calls that were answered.
    pub(super) latencies: Vec<Nanoseconds>,
    /// Of early calls, until they were acknowledged.
    pub(super) acknowledgements: Vec<Nanoseconds>,
    /// The answered calls with their latencies, if they are wanted.
    pub(super) calls: Option<Vec<(Operation, Nanoseconds)>>,
    /// Their stages, if they are wanted.
    pub(super) stages: Option<Stages>,
    /// Background calls that were answered.
    pub(super) background: u64,
    /// Time that nodes spent on cores.
    pub(super) spent: Spent,
    pub(super) ends_at: Nanoseconds,
}

impl Stopwatch {
    /// A client has its answer, so long after its call; without an operation where the call was made in the background.
    pub(super) fn note(
        &mut self,
        now: Nanoseconds,
        reply: &Reply,
        latency: Nanoseconds,
        operation: Option<Operation>,
    ) {
        if let Some(stages) = &mut self.stages {
            stages.answered(now, reply, latency);
        }
        let Some(operation) = operation else {
            self.background += 1;
            return;
        };
        self.latencies.push(latency);
        if let Some(calls) = &mut self.calls {
            calls.push((operation, latency));
        }
    }
}
