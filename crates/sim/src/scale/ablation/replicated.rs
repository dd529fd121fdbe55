//! Fault tolerance on and off (ALO-X11 g): without disks, with a disk for each node, and with three replicas.
//!
//! Replicas stand in one hall, a machine with one core for each node, so that each replica has the cores that the cluster without
//! replicas has. Clients stand beside the first one, and of the seeds the first one is taken with which all groups elect their
//! leaders there.

use ordain_db::error::Error;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};

use super::{Kept, LONGER, settled};
use crate::machine::disk::DiskOptions;
use crate::plan::{ClientPlan, Plan, Replication};
use crate::scale::aloha::{AlohaEffort, AlohaRun, AlohaSetting, Tables, closed_loop, plan};
use crate::scale::replication::{ELECTIONS, SEEDS_MAX, SYNC_MAX, SYNC_MIN};
use crate::world::World;

pub(super) fn measure(
    base: &AlohaSetting,
    kept: Kept,
    tables: &Tables,
    effort: &AlohaEffort,
) -> Result<AlohaRun, Error> {
    let plan = planned(base, kept, tables)?;
    let workload = plan.workload.build()?;
    for seed in 1..=SEEDS_MAX {
        let plan = Plan { seed, ..plan.clone() };
        let mut world = World::new(&plan, &*workload)?;
        world.run_until(plan.clients.starts_at);
        if !leads(&world, &plan) {
            continue;
        }
        let times = (LONGER * effort.warm_up, LONGER * effort.time);
        let run = closed_loop(&mut world, base, times, |_| ());
        settled(&world)?;
        if !leads(&world, &plan) {
            return Err(Error::Invalid("the leaders moved while it was measured".to_owned()));
        }
        // Each replica has a core.
        return Ok(AlohaRun { busy_percent: run.busy_percent / f64::from(plan.replicas), ..run });
    }
    Err(Error::Invalid("no seed has all leaders in the first replica".to_owned()))
}

fn leads(world: &World<'_>, plan: &Plan) -> bool {
    let leader = |partition| NodeId { partition, replica: ReplicaId(0) };
    plan.replicas == 1 || (0..plan.partitions).map(PartitionId).all(|of| world.leads(leader(of)))
}

fn planned(base: &AlohaSetting, kept: Kept, tables: &Tables) -> Result<Plan, Error> {
    let alone = plan(base, tables)?;
    let disk = DiskOptions {
        sync_min: SYNC_MIN,
        sync_max: SYNC_MAX,
        segment_bytes: 64 << 20,
        ..DiskOptions::default()
    };
    let (replicas, replication) = match kept {
        Kept::Nowhere => return Ok(alone),
        Kept::OnDisk => (1, Replication::None),
        Kept::ByMajority => (3, Replication::Sync),
        Kept::Asynchronously => (3, Replication::Async),
    };
    Ok(Plan {
        replicas,
        replication,
        machines: alone.machines * replicas,
        disk: Some(disk),
        clients: ClientPlan { starts_at: ELECTIONS, ..alone.clients.clone() },
        ..alone
    })
}
