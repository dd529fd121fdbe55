//! Clusters of the swarm whose machines crash again and again, many times in the middle of a sync: what is said before it is durable
//! is lost there.

use ordain_sim::machine::disk::{DiskOptions, Loss};
use ordain_sim::plan::{Fault, Plan, PlannedFault};
use ordain_sim::swarm::{Fixed, draw};
use ordain_sim::time::MILLISECOND;

/// Crashes of each run, beside those that are drawn.
const CRASHES: u64 = 12;

/// What the swarm draws, with slow disks and crashes of all machines in turn.
pub fn plan(seed: u64, fixed: &Fixed) -> Plan {
    let drawn = draw(seed, fixed);
    let disk = drawn.disk.unwrap_or(DiskOptions { loss: Loss::All, ..DiskOptions::default() });
    let disk = DiskOptions { sync_min: MILLISECOND, sync_max: 8 * MILLISECOND, ..disk };
    let crash = |number: u64| PlannedFault {
        at: drawn.heal_at * (number + 1) / (CRASHES + 2),
        lasts: 5 * MILLISECOND,
        fault: Fault::Crash(((number + seed) % u64::from(drawn.machines)) as u16),
    };
    let mut faults = drawn.faults.clone();
    faults.extend((0..CRASHES).map(crash));
    faults.sort_by_key(|fault| fault.at);
    Plan { faults, disk: Some(disk), ..drawn }
}
