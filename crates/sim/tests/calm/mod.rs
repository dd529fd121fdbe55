//! Clusters with everything that is drawn taken out of them: a quick, reliable network, disks of one speed, no limits that are
//! reached, no faults. Tests add what they are about.

use ordain_db::limits::Limits;
use ordain_db::node::CheckpointOptions;
use ordain_db::sequencer::{EpochOptions, EpochPolicy};
use ordain_sim::machine::disk::{DiskOptions, Loss};
use ordain_sim::network::NetworkOptions;
use ordain_sim::network::topology::Topology;
use ordain_sim::plan::{ClientPlan, Plan, Replication, WorkloadKind};
use ordain_sim::swarm::{Fixed, draw};
use ordain_sim::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};

/// A calm cluster of so many partitions and replicas, a machine for each node and no epoch manager; more than one replica agree synchronously. Four
/// clients make one call at a time and rest after each; no checkpoints are taken.
pub fn plan(seed: u64, partitions: u16, replicas: u16, workload: WorkloadKind, calls: u64) -> Plan {
    let fixed = Fixed {
        partitions: Some(partitions),
        replicas: Some(replicas),
        replication: (replicas > 1).then_some(Replication::Sync),
        transactions: Some(calls),
        workload: Some(workload),
        ..Fixed::default()
    };
    let drawn = draw(seed, &fixed);
    let sync: Nanoseconds = 100 * MICROSECOND;
    let clients = ClientPlan {
        count: 4,
        window: 1,
        snapshots: 0,
        think: 20 * MILLISECOND,
        timeout: SECOND,
        pause: MILLISECOND,
        wanders: false,
        ..drawn.clients.clone()
    };
    Plan {
        machines: partitions * replicas,
        limits: Limits::default(),
        network: NetworkOptions::reliable(Topology::lan()),
        disk: Some(DiskOptions {
            sync_min: sync,
            sync_max: sync,
            loss: Loss::Drawn,
            segment_bytes: 64 << 10,
            checkpoint_bytes_per_second: None,
        }),
        checkpoints: checkpoints(None),
        clocks: Vec::new(),
        clients,
        step_events: 1 << 20,
        inbox_requests: 1 << 20,
        faults: Vec::new(),
        epochs: EpochOptions { policy: EpochPolicy::Adaptive, ..drawn.epochs },
        ..drawn
    }
}

/// Checkpoints at an interval in microseconds, if any.
pub fn checkpoints(interval_microseconds: Option<u64>) -> CheckpointOptions {
    CheckpointOptions { interval_microseconds, log_bytes: u64::MAX, ..CheckpointOptions::default() }
}
