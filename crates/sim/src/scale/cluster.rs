//! What the clusters of all experiments have in common.

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::limits::Limits;
use ordain_db::node::CheckpointOptions;
use ordain_db::sequencer::EpochOptions;

use crate::machine::cost::CostTable;
use crate::network::NetworkOptions;
use crate::network::topology::Topology;
use crate::plan::{ClientPlace, ClientPlan, Plan, Replication, WorkloadPlan};
use crate::time::MILLISECOND;

/// Nodes in one hall, each on a machine with one core, and one client beside each, which stands for many and always has so many calls
/// outstanding. Nothing fails, and nothing is kept on disks.
pub(super) fn cluster(nodes: u16, workload: WorkloadPlan, costs: CostTable, window: u64) -> Plan {
    Plan {
        seed: 1,
        engine: EngineKind::Calvin,
        partitions: nodes,
        replicas: 1,
        replication: Replication::None,
        subgroup: false,
        machines: nodes,
        cores: 1,
        workload,
        clients: ClientPlan {
            count: nodes,
            window,
            transactions: u64::MAX,
            starts_at: 0,
            think: 0,
            timeout: 0,
            pause: MILLISECOND,
            wanders: false,
            snapshots: 0,
            place: ClientPlace::Beside,
            early: None,
        },
        limits: Limits::default(),
        epochs: EpochOptions::default(),
        step_events: usize::MAX,
        inbox_requests: usize::MAX,
        network: NetworkOptions::reliable(Topology::lan()),
        disk: None,
        checkpoints: CheckpointOptions::default(),
        clocks: Vec::new(),
        costs,
        faults: Vec::new(),
        bug: None,
        heal_at: 0,
        settle_within: 0,
        trace: false,
    }
}

/// The point with the highest throughput.
///
/// # Errors
/// When one cannot be measured, or there is none.
pub(super) fn best<P>(
    points: impl Iterator<Item = Result<P, Error>>,
    throughput: impl Fn(&P) -> f64,
) -> Result<P, Error> {
    let mut best: Option<P> = None;
    for point in points {
        let point = point?;
        if best.as_ref().is_none_or(|best| throughput(best) < throughput(&point)) {
            best = Some(point);
        }
    }
    best.ok_or_else(|| Error::Invalid("there is no window to try: give at least one".to_owned()))
}
