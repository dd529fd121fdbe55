//! One partition gives its authorisation back late (Fan and Golab §III-C; ALO-X11 a, ALO-41 to ALO-46).
//!
//! What the straggler sends to the host of the epoch manager waits for some time; the manager's host is told nothing by it, and so
//! cannot grant the next epoch. The straggler and the manager's partition are not counted: the former does not straggle as seen by
//! itself, and the latter lacks its batches. What is counted is *starting*, as in the paper: a transaction starts when it has its
//! place in an epoch.

use ordain_db::error::Error;
use ordain_db::position::{NodeId, PartitionId};

use super::{Details, settled};
use crate::plan::{Fault, Plan, PlannedFault};
use crate::scale::aloha::{AlohaRun, AlohaSetting, Span, Tables, plan, run_of};
use crate::time::{MILLISECOND, Nanoseconds};
use crate::world::World;

/// Time for the clients to come into their stride: whole periods, and half of one.
const BEFORE: Nanoseconds = 200 * MILLISECOND;

/// From when the straggler is held up.
pub(super) const TIME: Nanoseconds = 300 * MILLISECOND;

/// The time between two looks at what was started.
const LOOK: Nanoseconds = MILLISECOND;

/// The partition whose leader is the epoch manager.
const MANAGER: u16 = 0;

pub(super) fn measure(
    base: &AlohaSetting,
    stall_ms: u64,
    tables: &Tables,
) -> Result<(AlohaRun, Details), Error> {
    let straggler = base.nodes - 1;
    let base_plan = plan(base, tables)?;
    let clog =
        PlannedFault { at: BEFORE, lasts: stall_ms * MILLISECOND, fault: Fault::Clog(straggler, MANAGER) };
    let faults = if stall_ms > 0 { vec![clog] } else { Vec::new() };
    let plan = Plan { faults, heal_at: BEFORE + TIME, ..base_plan };
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    world.run_until(BEFORE);
    let others = || (0..base.nodes).filter(|node| ![MANAGER, straggler].contains(node));
    let started = |world: &World<'_>| -> u64 {
        others().map(|node| world.starts(NodeId::first(PartitionId(node)))).sum()
    };
    let (mut last, mut starts) = (started(&world), Vec::new());
    let measured = world.watch_in_pieces(TIME, LOOK, |world| {
        let now = started(world);
        starts.push(now - last);
        last = now;
    });
    settled(&world)?;
    let details = Details {
        longest_pause_ms: longest_pause(&starts) * LOOK as f64 / MILLISECOND as f64,
        starts,
        ..Details::default()
    };
    Ok((run_of(&measured, Span { warm_up: BEFORE, time: TIME }, base.nodes), details))
}

/// The most looks one after the other that saw nothing new.
fn longest_pause(starts: &[u64]) -> f64 {
    let pauses = starts.split(|started| *started > 0).map(<[u64]>::len);
    pauses.max().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_counted() {
        assert_eq!(longest_pause(&[]), 0.0);
        assert_eq!(longest_pause(&[1, 2]), 0.0);
        assert_eq!(longest_pause(&[0, 2, 0, 0, 0, 1, 0]), 3.0);
    }
}
