//! What replication costs: throughput and latency of a simulated cluster without replicas, and with replicas that are so far
//! apart, asynchronous and synchronous (Calvin §3.1.1, CAL-X03: agreement over 1, 100 and 170 ms costs latency and, with enough
//! calls outstanding, no throughput).
//!
//! Each node has a machine, each replica a hall of its own, and every client stands beside the first replica. Of the seeds, the
//! first one is taken with which all groups elect their leaders there: from elsewhere, each call takes a round trip more.
//!
//! - [`settings`] and [`measure_replication`]: the runs.
//! - [`csv`] and [`figure`]: as a table and as a chart.
//! - [`judge`]: what the paper states, and the model of the latency, beside what was measured.

mod report;

use ordain_db::error::Error;
use ordain_db::limits::Limits;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_workload::micro;

use super::cluster::cluster;
use crate::machine::cost::CostTable;
use crate::machine::disk::DiskOptions;
use crate::network::NetworkOptions;
use crate::network::latency::Latency;
use crate::network::topology::Topology;
use crate::plan::{ClientPlace, ClientPlan, Plan, Replication, WorkloadPlan};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

pub use report::{csv, figure, judge};

/// Round trips between replicas that the paper names, in milliseconds.
pub const PINGS_MS: [u64; 3] = [1, 100, 170];

/// Seeds that are tried for one with which leaders are near.
pub(super) const SEEDS_MAX: u64 = 200;

/// The time in which the groups elect their leaders, before clients begin.
pub(super) const ELECTIONS: Nanoseconds = 3 * SECOND;

/// The time in which clients come into their stride, besides [`ROUND_TRIPS`].
const WARM_UP: Nanoseconds = SECOND;

/// So many round trips between replicas belong to the warm-up: what is asked in the first is answered in the second.
const ROUND_TRIPS: u64 = 6;

/// The shortest time of a sync of a disk.
pub(super) const SYNC_MIN: Nanoseconds = 100 * MICROSECOND;

/// The longest time of a sync of a disk.
pub(super) const SYNC_MAX: Nanoseconds = 200 * MICROSECOND;

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicationSetting {
    /// How the replicas agree.
    pub mode: Replication,
    /// Number of replicas; 1 for [`Replication::None`].
    pub replicas: u16,
    /// Number of partitions.
    pub partitions: u16,
    /// The round trip between two replicas in milliseconds.
    pub ping_ms: u64,
    /// What clients do.
    pub load: Load,
}

/// What clients ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Each partition's client makes about so many calls per second, at random times, however many are outstanding.
    Offered(u64),
    /// Each partition's client has always so many calls outstanding.
    Outstanding(u64),
}

impl Load {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Load::Offered(_) => "offered",
            Load::Outstanding(_) => "saturated",
        }
    }
}

/// Every mode at every distance, under a load that no processor notices, and with so many calls outstanding that the next ones
/// wait for those before and not for the distance. Without replication there is no distance; that is measured once.
pub fn settings(partitions: u16, offered: u64, outstanding: u64) -> Vec<ReplicationSetting> {
    let mut all = Vec::new();
    for load in [Load::Offered(offered), Load::Outstanding(outstanding)] {
        all.push(ReplicationSetting { mode: Replication::None, replicas: 1, partitions, ping_ms: 0, load });
        for mode in [Replication::Async, Replication::Sync] {
            let far = |ping_ms| ReplicationSetting { mode, replicas: 3, partitions, ping_ms, load };
            all.extend(PINGS_MS.map(far));
        }
    }
    all
}

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicationPoint {
    /// What was measured.
    pub setting: ReplicationSetting,
    /// Transactions per second of virtual time, each counted once however many replicas run it.
    pub throughput: f64,
    /// Median latency in microseconds of virtual time.
    pub latency_us_p50: u64,
    /// 99th percentile of the latency, in microseconds of virtual time.
    pub latency_us_p99: u64,
    /// Share of the measured time in which a node's core was busy, over all nodes, in percent.
    pub busy_percent: f64,
}

/// Runs one setting for so long, after the groups have elected leaders.
///
/// # Errors
/// When the options contradict each other.
pub fn measure_replication(
    setting: &ReplicationSetting,
    costs: &CostTable,
    time: Nanoseconds,
) -> Result<ReplicationPoint, Error> {
    for seed in 1..=SEEDS_MAX {
        let plan = Plan { seed, ..plan(setting, costs)? };
        let workload = plan.workload.build()?;
        let mut world = World::new(&plan, &*workload)?;
        world.run_until(ELECTIONS);
        if leaders_are_near(&world, setting) {
            return measure_from_now(setting, &mut world, time);
        }
    }
    Err(Error::Invalid(format!("no seed has all leaders in the first replica: {setting:?}")))
}

fn measure_from_now(
    setting: &ReplicationSetting,
    world: &mut World<'_>,
    time: Nanoseconds,
) -> Result<ReplicationPoint, Error> {
    let warm_up = WARM_UP + ROUND_TRIPS * setting.ping_ms * MILLISECOND;
    let measured = world.measure(warm_up, time);
    if !leaders_are_near(world, setting) {
        return Err(Error::Invalid(format!("the leaders moved while it was measured: {setting:?}")));
    }
    let nodes = f64::from(setting.replicas) * f64::from(setting.partitions);
    Ok(ReplicationPoint {
        setting: *setting,
        throughput: measured.latencies.len() as f64 * SECOND as f64 / time as f64,
        latency_us_p50: measured.percentile_us(50),
        latency_us_p99: measured.percentile_us(99),
        busy_percent: measured.busy as f64 * 100.0 / (time as f64 * nodes),
    })
}

fn leaders_are_near(world: &World<'_>, setting: &ReplicationSetting) -> bool {
    let leader = |partition| NodeId { partition, replica: ReplicaId(0) };
    setting.replicas == 1 || (0..setting.partitions).map(PartitionId).all(|of| world.leads(leader(of)))
}

pub(super) fn plan(setting: &ReplicationSetting, costs: &CostTable) -> Result<Plan, Error> {
    let ReplicationSetting { mode, replicas, partitions, load, .. } = *setting;
    let mut limits = Limits::default();
    let (window, think) = match load {
        // Pauses are even, up to twice their mean.
        Load::Offered(per_second) => (limits.session_window, 2 * SECOND / per_second.max(1)),
        Load::Outstanding(window) => (window, 0),
    };
    // One client stands for many, and so may have more outstanding than one, answered in whatever order.
    limits.session_window = limits.session_window.max(4 * window);
    let workload = WorkloadPlan::Micro(micro::Options {
        sites: partitions,
        records: u64::from(partitions) * 10_000,
        contention_index: 0.001,
        multi_partition_percent: 10.0,
        ..micro::Options::default()
    });
    let base = cluster(partitions, workload, *costs, window);
    Ok(Plan {
        replicas,
        replication: mode,
        machines: partitions * replicas,
        // Nothing is lost, and what is refused during the elections is asked again at once.
        clients: ClientPlan { starts_at: ELECTIONS, think, place: ClientPlace::Network, ..base.clients },
        limits,
        network: NetworkOptions::reliable(topology(setting)?),
        disk: Some(DiskOptions {
            sync_min: SYNC_MIN,
            sync_max: SYNC_MAX,
            segment_bytes: 64 << 20,
            ..DiskOptions::default()
        }),
        ..base
    })
}

/// A hall for each replica; clients and the auditor stand in the first one.
fn topology(setting: &ReplicationSetting) -> Result<Topology, Error> {
    let ReplicationSetting { replicas, partitions, ping_ms, .. } = *setting;
    let halls = (0..replicas).flat_map(|replica| (0..partitions).map(move |_| replica as u8));
    let places = halls.chain((0..=partitions).map(|_| 0)).collect();
    let far = Latency::fixed(ping_ms * MILLISECOND / 2);
    let way = |from: u16, to: u16| if from == to { Latency::LAN } else { far };
    let table = (0..replicas).map(|from| (0..replicas).map(|to| way(from, to)).collect()).collect();
    Topology::table(places, table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::shapes::Verdict;

    fn measured(setting: &ReplicationSetting) -> ReplicationPoint {
        let costs = CostTable { executed_alone: 20_000_000, ..CostTable::default() };
        measure_replication(setting, &costs, SECOND).unwrap()
    }

    fn point(mode: Replication, ping_ms: u64) -> ReplicationPoint {
        let replicas = if mode == Replication::None { 1 } else { 3 };
        let load = Load::Outstanding(20);
        measured(&ReplicationSetting { mode, replicas, partitions: 2, ping_ms, load })
    }

    #[test]
    fn agreement_costs_round_trips() {
        let alone = point(Replication::None, 1);
        let near = point(Replication::Sync, 1);
        let far = point(Replication::Sync, 100);
        assert!(alone.latency_us_p50 < near.latency_us_p50, "{alone:?} {near:?}");
        // A majority is one round trip away from the leader.
        assert!((100_000..200_000).contains(&far.latency_us_p50), "{far:?}");
        assert!(far.throughput > 0.0 && near.throughput > far.throughput, "{near:?} {far:?}");
    }

    /// A partition without work closes an epoch while its peer's group agrees on it, and not a round trip later.
    #[test]
    fn groups_agree_at_the_same_time() {
        let (mode, load) = (Replication::Sync, Load::Offered(20));
        let setting = ReplicationSetting { mode, replicas: 3, partitions: 2, ping_ms: 100, load };
        let costs = CostTable { executed_alone: 20_000_000, ..CostTable::default() };
        let point = measure_replication(&setting, &costs, 4 * SECOND).unwrap();
        assert!(point.latency_us_p99 < 150_000, "{point:?}");
    }

    /// CAL-10, CAL-X03: where the processors are not the limit, all modes have the same throughput within 10 percent at every
    /// distance, and the latency that the model says.
    #[test]
    fn distance_costs_latency_and_no_throughput() {
        let offered = |setting: &ReplicationSetting| matches!(setting.load, Load::Offered(_));
        let points: Vec<ReplicationPoint> =
            settings(2, 2_000, 1).iter().filter(|setting| offered(setting)).map(measured).collect();
        assert!(points.iter().all(|point| point.busy_percent < 10.0), "{points:#?}");
        let judgements = judge(&points);
        let held = judgements.iter().filter(|judgement| judgement.verdict == Verdict::Holds).count();
        // One of throughput, one for each latency.
        assert_eq!(held, 1 + points.len(), "{judgements:#?}");
    }
}
