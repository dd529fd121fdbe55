//! Who does what for a transaction: the recipient sets of its functors (Fan and Golab, §IV-B, ALO-76).

use crate::data::Owner;
use crate::execution::Participation;
use crate::position::{PartitionId, PartitionSet};
use crate::procedure::Footprint;

/// What one partition does for a transaction. All partitions work it out from the footprint alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Roles {
    /// Whether the procedure runs here, over all reads: once for all keys that no functor of their own writes.
    pub(super) computes: bool,
    /// Whether there are keys here that functors write.
    pub(super) applies: bool,
    /// Whether this partition reports the verdict to the origin.
    pub(super) reports: bool,
    /// Who is pushed all rows that were read here: those that compute.
    pub(super) reads_to: PartitionSet,
    /// Who is pushed only what the guard reads: those that apply functors and compute nothing.
    pub(super) guards_to: PartitionSet,
    /// Whose rows the computation waits for.
    pub(super) reads_from: PartitionSet,
    /// Whose rows the guard waits for.
    pub(super) guards_from: PartitionSet,
}

impl Roles {
    /// Those of the partition `me`.
    pub(super) fn of(footprint: &Footprint, origin: PartitionId, me: PartitionId, partitions: u16) -> Roles {
        if !footprint.has_functors() {
            let participation = Participation::of(footprint, origin, me);
            return Roles {
                computes: participation.active,
                applies: false,
                reports: participation.reports,
                reads_to: participation.send_reads_to,
                guards_to: PartitionSet::EMPTY,
                reads_from: participation.await_reads_from,
                guards_from: PartitionSet::EMPTY,
            };
        }
        let Parts { mut computing, applying, mut guarding } = Parts::of(footprint, partitions);
        let reporter = match computing.is_empty() {
            true => footprint.reporter(origin),
            false => footprint.preferred(origin, &computing),
        };
        if computing.is_empty() && !footprint.only_functors() {
            computing = PartitionSet::one(reporter);
        }
        let without = |mut set: PartitionSet, other: PartitionSet| {
            other.iter().for_each(|partition| set.remove(partition));
            set
        };
        let own = PartitionSet::one(me);
        let reads = footprint.readers();
        let guards = guarding.contains(me);
        let computes = computing.contains(me);
        let when = |is: bool, set: PartitionSet| if is { set } else { PartitionSet::EMPTY };
        guarding.remove(me);
        Roles {
            computes,
            applies: applying.contains(me),
            reports: reporter == me,
            reads_to: when(reads.contains(me), without(computing, own)),
            guards_to: when(guards, without(without(applying, computing), own)),
            reads_from: when(computes, without(reads, own)),
            guards_from: when(computes || applying.contains(me), guarding),
        }
    }

    /// Whether the guard is asked here, if the call has functors.
    pub(super) fn asks_guard(&self) -> bool {
        self.computes || self.applies
    }

    /// Whether nothing comes from other partitions.
    pub(super) fn awaits_nothing(&self) -> bool {
        self.reads_from.is_empty() && self.guards_from.is_empty()
    }
}

/// Where the parts of a footprint are.
struct Parts {
    /// Where something is written that no functor writes.
    computing: PartitionSet,
    /// Where functors write.
    applying: PartitionSet,
    /// Where there is something that the guard reads, and that others do not hold.
    guarding: PartitionSet,
}

impl Parts {
    fn of(footprint: &Footprint, partitions: u16) -> Parts {
        let mut parts = Parts {
            computing: PartitionSet::EMPTY,
            applying: PartitionSet::EMPTY,
            guarding: PartitionSet::EMPTY,
        };
        let add = |set: &mut PartitionSet, owner: Owner| match owner {
            Owner::Partition(partition) => set.insert(partition),
            Owner::Replicated | Owner::Split => set.union(&PartitionSet::all(partitions)),
        };
        for entry in footprint.keys() {
            if entry.access.write {
                let is_functor = footprint.functor(entry).is_some();
                add(if is_functor { &mut parts.applying } else { &mut parts.computing }, entry.owner);
            }
            if entry.guards && entry.owner != Owner::Replicated {
                add(&mut parts.guarding, entry.owner);
            }
        }
        let written = footprint.ranges().iter().filter(|entry| entry.access.write);
        written.for_each(|entry| add(&mut parts.computing, entry.owner));
        parts
    }
}
