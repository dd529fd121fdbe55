//! What the engine `two-phase` met because its transactions lock as they go, for reports (DET-37).

use std::fmt;

use ordain_db::engine::two_phase::TwoPhaseCounters;
use serde::Serialize;

/// Deadlocks and waits that were too long, over some nodes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Deadlocks {
    /// Cycles within one partition.
    pub local_deadlocks: u64,
    /// Victims that the detector named in cycles over several partitions.
    pub distributed_deadlocks: u64,
    /// Victims that were in no deadlock any more when they heard of it.
    pub phantom_deadlocks: u64,
    /// Transactions that waited too long for locks, where that is limited.
    pub lock_timeouts: u64,
    /// Those of them that were in no cycle within their partition.
    pub false_timeouts: u64,
    /// Attempts that had to wait at the door, by load control.
    pub held_at_the_door: u64,
    /// Transactions that had promised to commit and had not heard the decision when the nodes started with their logs.
    pub in_doubt: u64,
    /// Those timeouts that were false, in percent of all that waited too long: the rate of false positives. None if nobody did.
    pub false_timeout_percent: Option<f64>,
}

impl Deadlocks {
    /// The sums of what nodes count.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a TwoPhaseCounters>) -> Deadlocks {
        let of_node = |node: &TwoPhaseCounters| Deadlocks {
            local_deadlocks: node.local_deadlocks,
            distributed_deadlocks: node.distributed_deadlocks,
            phantom_deadlocks: node.phantom_deadlocks,
            lock_timeouts: node.lock_timeouts,
            false_timeouts: node.false_timeouts,
            held_at_the_door: node.held_at_the_door,
            in_doubt: node.in_doubt,
            false_timeout_percent: None,
        };
        Deadlocks::sum(&nodes.into_iter().map(of_node).collect::<Vec<_>>())
    }

    /// The sums of several.
    pub fn sum(all: &[Deadlocks]) -> Deadlocks {
        let sum = |count: fn(&Deadlocks) -> u64| all.iter().map(count).sum::<u64>();
        let lock_timeouts = sum(|of| of.lock_timeouts);
        let false_timeouts = sum(|of| of.false_timeouts);
        let percent = false_timeouts as f64 * 100.0 / lock_timeouts as f64;
        Deadlocks {
            local_deadlocks: sum(|of| of.local_deadlocks),
            distributed_deadlocks: sum(|of| of.distributed_deadlocks),
            phantom_deadlocks: sum(|of| of.phantom_deadlocks),
            lock_timeouts,
            false_timeouts,
            held_at_the_door: sum(|of| of.held_at_the_door),
            in_doubt: sum(|of| of.in_doubt),
            false_timeout_percent: (lock_timeouts > 0).then_some(percent),
        }
    }

    /// Deadlocks of one partition or of several.
    pub fn all(&self) -> u64 {
        self.local_deadlocks + self.distributed_deadlocks
    }
}

impl fmt::Display for Deadlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Deadlocks { local_deadlocks, distributed_deadlocks, phantom_deadlocks, .. } = self;
        write!(
            f,
            "{local_deadlocks} local, {distributed_deadlocks} distributed, {phantom_deadlocks} phantom; {} timeouts",
            self.lock_timeouts
        )?;
        if let Some(percent) = self.false_timeout_percent {
            write!(f, ", {} of them in no cycle ({percent:.1}%)", self.false_timeouts)?;
        }
        match self.held_at_the_door {
            0 => Ok(()),
            held => write!(f, "; {held} held at the door"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_count_is_summed_and_told() {
        assert_eq!(Deadlocks::of([]).to_string(), "0 local, 0 distributed, 0 phantom; 0 timeouts");
        let node = TwoPhaseCounters {
            local_deadlocks: 1,
            lock_timeouts: 4,
            false_timeouts: 3,
            distributed_deadlocks: 2,
            phantom_deadlocks: 5,
            held_at_the_door: 7,
            in_doubt: 0,
            restarts: 9,
        };
        let both = Deadlocks::of([&node, &node]);
        let expected = "2 local, 4 distributed, 10 phantom; 8 timeouts, 6 of them in no cycle (75.0%); 14 held at the door";
        assert_eq!((both.to_string().as_str(), both.all()), (expected, 6));
    }
}
