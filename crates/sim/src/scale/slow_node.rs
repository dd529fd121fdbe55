//! What one slow node does to the others, over time, and what throttling does about it (Ren et al. §3.5, Figure 5: DET-X11,
//! DET-X12, DET-42, DET-44).
//!
//! One cluster, a machine for each node, open clients beside each node that ask for a share of what a node can do. After some
//! time the processor of one node becomes slower by a factor.
//!
//! - [`measure_slow_node`]: a run.
//! - [`csv`] and [`figures`]: as a table and as charts.
//! - [`judge`]: what the paper states beside what was measured.

mod report;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::gateway::Counters;
use ordain_db::limits::Limits;
use ordain_db::position::{NodeId, PartitionId};
use ordain_workload::micro;

use super::cluster::cluster;
use super::evaluation::{Length, costs_of};
use crate::machine::cost::CostTable;
use crate::plan::{ClientPlan, Fault, Plan, PlannedFault, WorkloadPlan};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

pub use report::{SHARE_OF_FIGURE_5B, csv, figures, judge, table};

/// Number of partitions and nodes (DET-53: eight).
pub const NODES: u16 = 8;

/// The node that becomes slow.
pub const SLOW: PartitionId = PartitionId(0);

/// How many times as long it takes for everything then, where that does not vary.
pub const FACTOR: u64 = 4;

/// The engines that are compared.
pub const ENGINES: [EngineKind; 2] = [EngineKind::Calvin, EngineKind::TwoPhase];

/// Records of a node, 10,000 of them contended. The paper has a million (DET-46). With few, transactions that wait for the slow node
/// hold so many of them that all others meet them.
const RECORDS: u64 = 100_000;

/// The time between two samples.
pub const SAMPLE: Nanoseconds = 100 * MILLISECOND;

/// The time in which clients come into their stride, and are not measured.
const WARM_UP: Nanoseconds = 250 * MILLISECOND;

/// The time from the first sample until the node becomes slow.
pub const BEFORE: Nanoseconds = 500 * MILLISECOND;

/// The time that is measured: until those whose calls wait for the slow node wait for nothing else.
pub const TIME: Nanoseconds = 10 * SECOND;

/// Calls that a client leaves unanswered before it makes no more: far more than a node that keeps up has.
const OUTSTANDING_MAX: u64 = 4_000;

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowNodeSetting {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// How many times as long the slow node takes for everything: the paper's background threads.
    pub factor: u64,
    /// The percentage of transactions that touch another partition too.
    pub multi_partition_percent: f64,
    /// Whether nodes that lag take on less.
    pub throttles: bool,
    /// Calls that each node's client makes per second, however many are outstanding.
    pub offered: u64,
}

/// What was seen at one time, of the time since the last sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When, since measuring began.
    pub at: Nanoseconds,
    /// By node: transactions of its clients that committed.
    pub committed: Vec<u64>,
    /// By node: calls of its clients that were shed.
    pub shed: Vec<u64>,
}

/// The course of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// What was measured.
    pub setting: SlowNodeSetting,
    /// Every [`SAMPLE`].
    pub samples: Vec<Sample>,
}

/// All runs: at each load, both engines with and without throttling at each percentage of multi-partition transactions, and without
/// at `factors` other than [`FACTOR`], with the paper's 5 %. Each once, however often it is asked for.
pub fn settings(percents: &[f64], factors: &[u64], loads: &[u64]) -> Vec<SlowNodeSetting> {
    let mut all: Vec<SlowNodeSetting> = Vec::new();
    let mut add = |setting: SlowNodeSetting| {
        if !all.contains(&setting) {
            all.push(setting);
        }
    };
    for (offered, engine) in loads.iter().flat_map(|load| ENGINES.map(|engine| (*load, engine))) {
        for throttles in [false, true] {
            for multi_partition_percent in percents.iter().copied() {
                add(SlowNodeSetting { engine, factor: FACTOR, multi_partition_percent, throttles, offered });
            }
        }
        for factor in factors.iter().copied().filter(|factor| *factor != FACTOR) {
            let multi_partition_percent = SHARE_OF_FIGURE_5B;
            add(SlowNodeSetting { engine, factor, multi_partition_percent, throttles: false, offered });
        }
    }
    all
}

/// Runs one setting, with long transactions. The costs are those that were measured of short ones.
///
/// # Errors
/// When the options contradict each other.
pub fn measure_slow_node(setting: &SlowNodeSetting, measured: &CostTable) -> Result<Course, Error> {
    let plan = plan(setting, &costs_of(setting.engine, Length::Long, measured));
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    world.run_until(WARM_UP);
    let mut course = Course { setting: *setting, samples: Vec::new() };
    let (mut before, mut at) = (counts(&world), 0);
    while at < TIME {
        at += SAMPLE;
        world.run_until(WARM_UP + at);
        let now = counts(&world);
        let [committed, shed] = [0, 1]
            .map(|count| now[count].iter().zip(&before[count]).map(|(now, before)| now - before).collect());
        course.samples.push(Sample { at, committed, shed });
        before = now;
    }
    match world.problems() {
        [] => Ok(course),
        [problem, ..] => Err(Error::Invalid(problem.clone())),
    }
}

/// By node: the calls of its clients that it has committed, and those that were shed.
fn counts(world: &World<'_>) -> [Vec<u64>; 2] {
    let of_nodes = |count: fn(&Counters) -> u64| {
        let of_node = |node| world.status(NodeId::first(PartitionId(node)));
        (0..NODES).map(|node| of_node(node).map_or(0, |status| count(&status.counters))).collect()
    };
    [of_nodes(|counters| counters.committed), of_nodes(|counters| counters.shed)]
}

fn plan(setting: &SlowNodeSetting, costs: &CostTable) -> Plan {
    // A node's client stands for many, whose calls do not wait until one that was refused again and again is done.
    let session_window = OUTSTANDING_MAX + setting.offered * (WARM_UP + TIME).div_ceil(SECOND);
    let limits = Limits { throttles: setting.throttles, session_window, ..Limits::default() };
    let workload = WorkloadPlan::Micro(micro::Options {
        sites: NODES,
        records: u64::from(NODES) * RECORDS,
        contention_index: 0.0001,
        multi_partition_percent: setting.multi_partition_percent,
        ..micro::Options::default()
    });
    let base = cluster(NODES, workload, *costs, OUTSTANDING_MAX);
    // Pauses are even, up to twice their mean. Whoever was refused comes again, and not at once.
    let (think, pause) = (2 * SECOND / setting.offered.max(1), SECOND / 2);
    Plan {
        clients: ClientPlan { think, pause, ..base.clients },
        limits,
        engine: setting.engine,
        faults: vec![PlannedFault {
            at: WARM_UP + BEFORE,
            lasts: TIME,
            fault: Fault::Slow(SLOW.0, setting.factor),
        }],
        heal_at: WARM_UP + BEFORE + TIME,
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_twice_is_run_once() {
        let once = settings(&[5.0, 20.0], &[2, 8], &[4_000]);
        assert_eq!(
            once.len(),
            2 * (2 * 2 + 2),
            "both engines, with and without throttling, and two factors without"
        );
        assert_eq!(settings(&[5.0, 5.0, 20.0], &[2, 8, 2, FACTOR], &[4_000, 4_000]), once);
    }
}
