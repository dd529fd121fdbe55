//! Kinds of faults that came later, each drawn apart from all else.

use ordain_workload::random::Random;

use super::{machine, one_in, when};
use crate::plan::{Fault, Plan, PlannedFault};
use crate::time::MILLISECOND;

/// Machines that lose their data, and leaders that let others lead, half of them since their machine is about to stop. Drawn
/// apart from all else, so that a seed has the same other faults with and without them.
pub(super) fn wipes_and_hand_overs(plan: &Plan) -> Vec<PlannedFault> {
    let mut random = Random::new(plan.seed, "wipes and hand-overs", &[]);
    let random = &mut random;
    let mut faults = Vec::new();
    if one_in(random, 3) && plan.replicas > 2 {
        for _ in 0..1 + random.below(3) {
            let (at, lasts) = when(random, plan);
            faults.push(PlannedFault { at, lasts, fault: Fault::Wipe(machine(random, plan)) });
        }
    }
    if one_in(random, 4) && plan.replicas > 1 {
        for _ in 0..1 + random.below(8) {
            let ((at, lasts), machine) = (when(random, plan), machine(random, plan));
            faults.push(PlannedFault { at, lasts: 0, fault: Fault::HandOver(machine) });
            if one_in(random, 2) {
                let at = at + random.below(100 * MILLISECOND);
                faults.push(PlannedFault { at, lasts, fault: Fault::Crash(machine) });
            }
        }
    }
    faults
}

/// Checkpoints that are damaged and writes that are lost, with the crashes that show them. Drawn apart from all else, too.
pub(super) fn damaged_checkpoints_and_lost_writes(plan: &Plan) -> Vec<PlannedFault> {
    let mut random = Random::new(plan.seed, "damaged checkpoints and lost writes", &[]);
    let random = &mut random;
    let mut faults = Vec::new();
    let takes_checkpoints = plan.checkpoints.interval_microseconds.is_some() && plan.engine.is_ordered();
    if one_in(random, 16) && plan.disk.is_some() && takes_checkpoints {
        for _ in 0..1 + random.below(3) {
            let ((at, lasts), machine) = (when(random, plan), machine(random, plan));
            faults.push(PlannedFault { at, lasts, fault: Fault::DamagedCheckpoint(machine) });
            // Or the damage is found later, perhaps by another replica that fetches the checkpoint.
            if one_in(random, 2) {
                faults.push(PlannedFault { at, lasts, fault: Fault::Crash(machine) });
            }
        }
    }
    if one_in(random, 16) && plan.disk.is_some() {
        for _ in 0..1 + random.below(3) {
            let ((at, lasts), machine) = (when(random, plan), machine(random, plan));
            faults.push(PlannedFault { at, lasts, fault: Fault::LostWrite(machine) });
            let at = at + random.below(100 * MILLISECOND);
            faults.push(PlannedFault { at, lasts, fault: Fault::Crash(machine) });
        }
    }
    faults
}
