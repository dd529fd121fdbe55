//! What a checkpoint costs while it is taken: throughput, and how far replicas fall behind, over time (Calvin §5, Figure 3:
//! CAL-X07; CAL-87, CAL-88).
//!
//! One cluster with three replicas, 1 ms apart, that replicate synchronously; open clients beside the first replica; a machine
//! for each node. One checkpoint is ordered after a second, in one of three [ways](Way). Of the seeds, the first one is taken
//! with which the leaders are where the way wants them.
//!
//! - [`capacity`] and [`measure_checkpoint`]: the runs.
//! - [`csv`] and [`figure`]: as a table and as a chart.
//! - [`judge`]: what the paper states beside what was measured.

mod report;

use ordain_db::error::Error;
use ordain_db::node::{CheckpointMode, CheckpointOptions};
use ordain_db::position::{Epoch, NodeId, PartitionId, ReplicaId};
use ordain_workload::micro;

use super::replication::{ELECTIONS, Load, ReplicationSetting, SEEDS_MAX, measure_replication, plan};
use crate::machine::cost::CostTable;
use crate::machine::disk::DiskOptions;
use crate::plan::{Plan, Replication, WorkloadPlan};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

pub use report::{csv, figure, judge};

/// Number of replicas.
pub const REPLICAS: u16 = 3;

/// The replica whose turn is the first where they take turns; it is that with the lowest number.
pub const FIRST_TURN: ReplicaId = ReplicaId(0);

/// The round trip between two replicas in milliseconds.
const PING_MS: u64 = 1;

/// The time between two samples.
pub const SAMPLE: Nanoseconds = 50 * MILLISECOND;

/// How often it is looked whether the checkpoint has begun or ended.
const LOOK: Nanoseconds = MILLISECOND;

/// The time in which clients come into their stride.
const WARM_UP: Nanoseconds = 500 * MILLISECOND;

/// The time from the first sample to the order of the checkpoint.
pub const BEFORE: Nanoseconds = SECOND;

/// The longest time that can be measured: then the next checkpoint is due.
pub const TIME_MAX: Nanoseconds = ELECTIONS + WARM_UP + BEFORE;

/// Calls that a client leaves unanswered before it makes no more.
const OUTSTANDING_MAX: u64 = 60_000;

/// Calls that each partition's client keeps outstanding to find out what the cluster can do: the best counts.
const CAPACITY_WINDOWS: [u64; 2] = [1_024, 4_096];

/// How the checkpoint is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// By all replicas, which go on meanwhile.
    Concurrent,
    /// By one replica that stands still meanwhile, and leads no group.
    Freeze,
    /// By one replica that stands still meanwhile, and leads all groups.
    FreezeLeader,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::Concurrent, Way::Freeze, Way::FreezeLeader];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Way::Concurrent => "concurrent",
            Way::Freeze => "freeze",
            Way::FreezeLeader => "freeze-leader",
        }
    }

    fn mode(self) -> CheckpointMode {
        match self {
            Way::Concurrent => CheckpointMode::Concurrent,
            Way::Freeze | Way::FreezeLeader => CheckpointMode::Freeze,
        }
    }
}

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointSetting {
    /// Number of partitions.
    pub partitions: u16,
    /// How the checkpoint is taken.
    pub way: Way,
    /// The share of what the cluster can do that clients ask for, in percent; see [`offered`](CheckpointSetting::offered).
    pub load_percent: u64,
    /// Calls that each partition's client makes per second, however many are outstanding.
    pub offered: u64,
    /// Rows of each partition.
    pub rows: u64,
    /// How quickly a disk writes checkpoints.
    pub bytes_per_second: u64,
}

/// What was seen at one time, of the time since the last sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When, since measuring began.
    pub at: Nanoseconds,
    /// Calls that were answered.
    pub answered: u64,
    /// By replica: transactions that it ran, each counted at every partition that it touches.
    pub executed: Vec<u64>,
    /// By replica: how many epochs it is behind the replica that has executed most, at the partition where these are most.
    pub lag: Vec<u64>,
}

/// The course of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Course {
    /// What was measured.
    pub setting: CheckpointSetting,
    /// Every [`SAMPLE`].
    pub samples: Vec<Sample>,
    /// When the checkpoint began, since measuring began: when it was ordered or, where a replica stands still, when all its
    /// nodes did.
    pub begins_at: Option<Nanoseconds>,
    /// When it was on all disks that it is for or, where a replica stands still, when all its nodes were last seen to, since
    /// measuring began.
    pub ends_at: Option<Nanoseconds>,
}

/// Calls per second and partition that the cluster answers when clients always have many outstanding, and no checkpoint is taken.
///
/// # Errors
/// When the options contradict each other.
pub fn capacity(partitions: u16, costs: &CostTable, time: Nanoseconds) -> Result<u64, Error> {
    let mut best = 0;
    for window in CAPACITY_WINDOWS {
        let point = measure_replication(&cluster(partitions, Load::Outstanding(window)), costs, time)?;
        best = best.max(point.throughput as u64 / u64::from(partitions));
    }
    Ok(best)
}

/// Runs one setting for so long, at most [`TIME_MAX`], after the groups have elected leaders.
///
/// # Errors
/// When the options contradict each other.
pub fn measure_checkpoint(
    setting: &CheckpointSetting,
    costs: &CostTable,
    time: Nanoseconds,
) -> Result<Course, Error> {
    if time > TIME_MAX {
        let most = TIME_MAX / MILLISECOND;
        return Err(Error::Invalid(format!("measure at most {most} ms: then another checkpoint is due")));
    }
    let mut plan = plan(&cluster(setting.partitions, Load::Offered(setting.offered)), costs)?;
    plan.seed = seed(setting, &plan)?;
    prepare(setting, &mut plan);
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    world.run_until(ELECTIONS + WARM_UP);
    let course = watch(setting, &mut world, time);
    if !leaders_are_placed(&world, setting) {
        return Err(Error::Invalid(format!("the leaders moved while it was measured: {setting:?}")));
    }
    match world.problems() {
        [] => Ok(course),
        [problem, ..] => Err(Error::Invalid(problem.clone())),
    }
}

fn cluster(partitions: u16, load: Load) -> ReplicationSetting {
    ReplicationSetting { mode: Replication::Sync, replicas: REPLICAS, partitions, ping_ms: PING_MS, load }
}

fn prepare(setting: &CheckpointSetting, plan: &mut Plan) {
    if let WorkloadPlan::Micro(micro::Options { records, .. }) = &mut plan.workload {
        *records = u64::from(setting.partitions) * setting.rows;
    }
    plan.clients.window = OUTSTANDING_MAX;
    plan.limits.session_window = plan.limits.session_window.max(4 * OUTSTANDING_MAX);
    plan.checkpoints = CheckpointOptions {
        mode: setting.way.mode(),
        interval_microseconds: Some((ELECTIONS + WARM_UP + BEFORE) / MICROSECOND),
        log_bytes: u64::MAX,
        ..CheckpointOptions::default()
    };
    plan.disk = plan
        .disk
        .map(|disk| DiskOptions { checkpoint_bytes_per_second: Some(setting.bytes_per_second), ..disk });
}

/// The first seed with which the leaders are where they should be. Elections are over before there are clients, and do not depend
/// on the rows: few are enough to find out.
fn seed(setting: &CheckpointSetting, plan: &Plan) -> Result<u64, Error> {
    for seed in 1..=SEEDS_MAX {
        let plan = Plan { seed, ..plan.clone() };
        let workload = plan.workload.build()?;
        let mut world = World::new(&plan, &*workload)?;
        world.run_until(ELECTIONS);
        if leaders_are_placed(&world, setting) {
            return Ok(seed);
        }
    }
    Err(Error::Invalid(format!("no seed has all leaders where they should be: {setting:?}")))
}

fn leaders_are_placed(world: &World<'_>, setting: &CheckpointSetting) -> bool {
    let lead = |replica| {
        let node = |partition| NodeId { partition: PartitionId(partition), replica };
        (0..setting.partitions).all(|partition| world.leads(node(partition)))
    };
    match setting.way {
        Way::FreezeLeader => lead(FIRST_TURN),
        Way::Concurrent | Way::Freeze => {
            (0..REPLICAS).map(ReplicaId).any(|replica| replica != FIRST_TURN && lead(replica))
        }
    }
}

/// Takes samples for so long.
fn watch(setting: &CheckpointSetting, world: &mut World<'_>, time: Nanoseconds) -> Course {
    let start = world.now();
    let mut course = Course { setting: *setting, samples: Vec::new(), begins_at: None, ends_at: None };
    let (mut answered, mut executed) = (world.happened().answered, executions(setting, world));
    let mut at = 0;
    while at < time {
        at += LOOK;
        world.run_until(start + at);
        note_checkpoint(world, at, &mut course);
        if at.is_multiple_of(SAMPLE) {
            let (answered_now, executed_now) = (world.happened().answered, executions(setting, world));
            course.samples.push(Sample {
                at,
                answered: answered_now - answered,
                executed: executed_now.iter().zip(&executed).map(|(now, before)| now - before).collect(),
                lag: lags(setting, world),
            });
            (answered, executed) = (answered_now, executed_now);
        }
    }
    course
}

/// Notes whether the checkpoint has begun or ended.
fn note_checkpoint(world: &World<'_>, at: Nanoseconds, course: &mut Course) {
    let mut nodes = (0..REPLICAS).flat_map(|replica| nodes_of(&course.setting, ReplicaId(replica)));
    let (has_begun, goes_on) = match course.setting.way {
        Way::Concurrent => {
            (at >= BEFORE, nodes.any(|node| world.stable(node).is_none_or(|stable| stable == Epoch(0))))
        }
        Way::Freeze | Way::FreezeLeader => {
            // Some of its nodes come to the point a little earlier than others, and go on a little earlier.
            let frozen = nodes_of(&course.setting, FIRST_TURN).all(|node| world.is_frozen(node));
            (frozen, frozen)
        }
    };
    if course.begins_at.is_none() && has_begun {
        course.begins_at = Some(at);
    }
    if course.begins_at.is_some() && course.ends_at.is_none() && !goes_on {
        // A replica has stood still until it was last looked at.
        course.ends_at = Some(if course.setting.way == Way::Concurrent { at } else { at - LOOK });
    }
}

fn nodes_of(setting: &CheckpointSetting, replica: ReplicaId) -> impl Iterator<Item = NodeId> + use<> {
    (0..setting.partitions).map(move |partition| NodeId { partition: PartitionId(partition), replica })
}

/// By replica, how many transactions its nodes have run.
fn executions(setting: &CheckpointSetting, world: &World<'_>) -> Vec<u64> {
    let of = |replica| nodes_of(setting, ReplicaId(replica)).map(|node| world.executions(node)).sum();
    (0..REPLICAS).map(of).collect()
}

/// See [`Sample::lag`].
fn lags(setting: &CheckpointSetting, world: &mut World<'_>) -> Vec<u64> {
    let mut lags = vec![0; usize::from(REPLICAS)];
    for partition in (0..setting.partitions).map(PartitionId) {
        let mut executed = |replica| {
            let node = NodeId { partition, replica: ReplicaId(replica) };
            world.executed(node).map_or(0, |epoch| epoch.0)
        };
        let executed: Vec<u64> = (0..REPLICAS).map(&mut executed).collect();
        let furthest = executed.iter().copied().max().unwrap_or(0);
        for (lag, executed) in lags.iter_mut().zip(executed) {
            *lag = (*lag).max(furthest - executed);
        }
    }
    lags
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small: 2,000 rows, and processors that do 2,000 transactions a second.
    fn course(way: Way, bytes_per_second: u64) -> Course {
        let executed = 400_000_000;
        let costs =
            CostTable { executed_alone: executed, executed_together: executed, ..CostTable::default() };
        let (offered, rows) = (200, 2_000);
        let setting =
            CheckpointSetting { partitions: 2, way, load_percent: 0, offered, rows, bytes_per_second };
        measure_checkpoint(&setting, &costs, 3 * SECOND).unwrap()
    }

    /// A disk that takes half a second for the rows.
    const SLOW: u64 = 500_000;

    /// One that takes 27 ms: the log waits for it, and so do all replicas when all take the checkpoint.
    const QUICK: u64 = 10_000_000;

    #[test]
    fn a_frozen_replica_falls_behind_and_catches_up() {
        let course = course(Way::Freeze, SLOW);
        let (begins, ends) = (course.begins_at.unwrap(), course.ends_at.unwrap());
        assert!((BEFORE..BEFORE + 50 * MILLISECOND).contains(&begins), "{begins}");
        assert!(ends > begins + 400 * MILLISECOND, "the disk takes its time: {begins} to {ends}");
        let within = |sample: &&Sample| sample.at > begins + SAMPLE && sample.at <= ends;
        let frozen: Vec<&Sample> = course.samples.iter().filter(within).collect();
        assert!(frozen.iter().all(|sample| sample.executed[0] == 0 && sample.executed[1] > 0), "{frozen:?}");
        assert!(frozen.iter().all(|sample| sample.answered > 0), "others answer: {frozen:?}");
        assert!(frozen.last().unwrap().lag[0] > 50, "{frozen:?}");
        assert!(course.samples.last().unwrap().lag[0] < 5, "{:?}", course.samples.last());
        assert_eq!(course, self::course(Way::Freeze, SLOW), "a setting has one course");
    }

    #[test]
    fn a_concurrent_checkpoint_lets_all_go_on() {
        let course = course(Way::Concurrent, QUICK);
        let (begins, ends) = (course.begins_at.unwrap(), course.ends_at.unwrap());
        assert!(begins == BEFORE && ends > begins + 20 * MILLISECOND, "{begins} to {ends}");
        let answers = course.samples.iter().all(|sample| sample.answered > 0);
        let executes = course.samples.iter().all(|sample| sample.executed.iter().all(|count| *count > 0));
        assert!(answers && executes, "{course:?}");
    }
}
