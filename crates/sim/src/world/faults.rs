//! What faults do to machines and to the network, and how everything is healed.

use ordain_db::node::Event;
use ordain_db::position::ReplicaId;

use super::process::Condition;
use super::{Happening, Machine, World};
use crate::machine::disk::Disk;
use crate::network::Host;
use crate::plan::{Bug, Fault};
use crate::time::Nanoseconds;

impl Machine {
    /// It has other disks now.
    pub(super) fn forget_damage(&mut self) {
        (self.damaged, self.loses_write) = (false, false);
    }
}

impl World<'_> {
    pub(super) fn begin_fault(&mut self, index: usize) {
        if self.healed {
            return;
        }
        let planned = &self.plan.faults[index];
        let until = self.heap.now() + planned.lasts;
        if !self.inflict(&planned.fault, index, until) {
            return;
        }
        if !matches!(planned.fault, Fault::Crash(_)) {
            self.log_fault(index, true);
        }
        match &planned.fault {
            Fault::Corrupt(_)
            | Fault::Misdirect(_)
            | Fault::DamagedCheckpoint(_)
            | Fault::LostWrite(_)
            | Fault::HandOver(_)
            | Fault::ClockJump(..)
            | Fault::ClockBack(..) => {}
            Fault::Loss(machine) => self.lose(usize::from(*machine)),
            _ => {
                self.active.push(index);
                self.heap.plan(until, Happening::FaultEnds(index));
            }
        }
    }

    /// Whether the fault happens.
    fn inflict(&mut self, fault: &Fault, index: usize, until: Nanoseconds) -> bool {
        match fault {
            Fault::Crash(machine) => {
                let machine = usize::from(*machine);
                if !self.machines[machine].up {
                    return false;
                }
                self.crash(machine, Some(index));
            }
            Fault::Pause(machine) => {
                // What is down cannot pause, nor be paused when it comes back.
                if !self.machines[usize::from(*machine)].up {
                    return false;
                }
                self.machines[usize::from(*machine)].paused = true;
            }
            Fault::Slow(machine, factor) => self.machines[usize::from(*machine)].slowness = *factor,
            Fault::Cut(from, to) => self.network.cut(Host(*from), Host(*to)),
            Fault::Partition(side) => {
                let (left, right) = self.sides(side);
                self.network.partition(&left, &right);
            }
            Fault::Clog(from, to) => self.network.clog(Host(*from), Host(*to), until),
            Fault::FullDisk(_) | Fault::PowerCut(..) | Fault::FailedSync(_) => self.spoil(fault),
            Fault::Corrupt(machine) | Fault::Misdirect(machine) => {
                let misdirect = matches!(fault, Fault::Misdirect(_));
                // Two parts of a log at once, one of which tells of the other, are more than a log notices.
                let lost = self.machines[usize::from(*machine)].loses_write;
                return !lost && self.damage(usize::from(*machine), |disk| disk.damage(misdirect));
            }
            Fault::DamagedCheckpoint(machine) => {
                let sound = !self.machines[usize::from(*machine)].damaged;
                return sound && self.damage(usize::from(*machine), Disk::damage_checkpoint);
            }
            Fault::LostWrite(machine) => {
                let machine = usize::from(*machine);
                let sound = !self.machines[machine].damaged;
                let loses = sound && self.damage(machine, Disk::lose_write);
                self.machines[machine].loses_write |= loses;
                return loses;
            }
            Fault::Loss(machine) => {
                return self.may_be_lost(usize::from(*machine));
            }
            Fault::Wipe(machine) => return self.wipe(usize::from(*machine), index),
            Fault::HandOver(machine) => return self.hand_over(usize::from(*machine)),
            Fault::ClockJump(machine, microseconds) => {
                let machine = usize::from(*machine);
                self.machines[machine].clock.offset_microseconds += microseconds;
                self.nodes_of(machine).into_iter().for_each(|node| self.plan_deadline(node));
            }
            Fault::ClockBack(machine, microseconds) => {
                self.machines[usize::from(*machine)].set_back += microseconds;
            }
        }
        true
    }

    /// What faults do to the disks of a machine.
    fn spoil(&mut self, fault: &Fault) {
        let (Fault::FullDisk(machine) | Fault::PowerCut(machine, _) | Fault::FailedSync(machine)) = fault
        else {
            return;
        };
        for node in self.nodes_of(usize::from(*machine)) {
            let Some(disk) = &mut self.processes[node].disk else { continue };
            match fault {
                Fault::FullDisk(_) => disk.fill(),
                Fault::PowerCut(_, operations) => disk.power_off_after(*operations),
                _ => disk.fail_next_sync(),
            }
        }
    }

    /// Damages the disks of a machine whose nodes can be spared, or of one that has no replicas; whether it did.
    fn damage(&mut self, machine: usize, mut damage: impl FnMut(&mut Disk) -> bool) -> bool {
        let nodes = self.nodes_of(machine);
        let spared = self.operator.is_done() && nodes.iter().all(|node| self.can_be_spared(*node));
        if self.plan.replicas > 1 && !spared {
            return false;
        }
        let mut hit = false;
        for node in nodes {
            hit |= self.processes[node].disk.as_mut().is_some_and(&mut damage);
        }
        self.machines[machine].damaged |= hit;
        hit
    }

    /// Whether the others can do without the nodes of a machine for good.
    fn may_be_lost(&self, machine: usize) -> bool {
        let nodes = self.nodes_of(machine);
        self.operator.is_done()
            && nodes.iter().all(|node| !self.processes[*node].is_lost() && self.can_be_spared(*node))
    }

    /// A machine crashes and gets empty disks, and the operator hears of it; whether it may.
    fn wipe(&mut self, machine: usize, index: usize) -> bool {
        let replica = ReplicaId(machine as u16 / self.plan.machines_each());
        if !self.may_be_replaced(replica) {
            return false;
        }
        self.crash(machine, Some(index));
        self.machines[machine].forget_damage();
        self.happened.wipes += 1;
        self.nodes_of(machine).into_iter().for_each(|node| self.processes[node].wipe());
        match self.plan.bug {
            Some(Bug::FoundAgain) => self.found_again(machine),
            _ => self.call_operator(replica),
        }
        true
    }

    /// Whether the others can do without a replica until it is back: one of them at least has lost no node for good, and will
    /// not. (It takes checkpoints, one of which the replica begins with.)
    fn may_be_replaced(&self, replica: ReplicaId) -> bool {
        let stopped = |node: usize| {
            matches!(self.processes[node].condition, Condition::Lost(_) | Condition::Stopped(_))
        };
        let nodes_of = |replica: u16| {
            let partitions = usize::from(self.plan.partitions);
            (0..partitions).map(move |partition| usize::from(replica) * partitions + partition)
        };
        let is_whole = |other: u16| {
            nodes_of(other).all(|node| !stopped(node) && !self.machines[self.machine_of(node)].damaged)
        };
        nodes_of(replica.0).all(|node| !stopped(node) && self.can_be_spared(node))
            && (0..self.plan.replicas).any(|other| other != replica.0 && is_whole(other))
    }

    /// A mistake: nobody sees to the nodes that have lost their data, and they start again as if nothing had been.
    fn found_again(&mut self, machine: usize) {
        for node in self.nodes_of(machine) {
            self.processes[node].condition = Condition::Down;
        }
    }

    /// The nodes of a machine are told that they are about to stop; whether one of them leads.
    fn hand_over(&mut self, machine: usize) -> bool {
        let mut leads = false;
        for node in self.nodes_of(machine) {
            let process = &mut self.processes[node];
            let Some(running) = &process.node else { continue };
            leads |= running.status(false).leads;
            process.inbox.push_back(Event::HandOverLeadership);
            self.wake(node);
        }
        self.happened.hand_overs += u64::from(leads);
        leads
    }

    /// A machine is gone for good.
    fn lose(&mut self, machine: usize) {
        self.crash(machine, None);
        for node in self.nodes_of(machine) {
            self.processes[node].end(Condition::Lost("its machine is lost".to_owned()));
        }
    }

    /// Whether a fault takes the power of a machine away.
    pub(super) fn cuts_power(&self, fault: usize, machine: usize) -> bool {
        matches!(self.plan.faults[fault].fault, Fault::PowerCut(cut, _) if usize::from(cut) == machine)
    }

    pub(super) fn end_fault(&mut self, index: usize) {
        let Some(place) = self.active.iter().position(|active| *active == index) else { return };
        self.active.remove(place);
        self.log_fault(index, false);
        match &self.plan.faults[index].fault {
            Fault::Crash(machine) | Fault::Wipe(machine) => {
                // Another fault may have taken it down again meanwhile.
                if self.machines[usize::from(*machine)].down_by == Some(index) {
                    self.restart(usize::from(*machine));
                }
            }
            Fault::PowerCut(machine, _) => self.end_power_cut(usize::from(*machine), index),
            Fault::Pause(machine) => self.resume(usize::from(*machine)),
            Fault::Slow(machine, _) => self.machines[usize::from(*machine)].slowness = 1,
            Fault::Cut(from, to) => self.network.heal(Host(*from), Host(*to)),
            Fault::Partition(side) => {
                let (left, right) = self.sides(side);
                for (from, to) in left.iter().flat_map(|from| right.iter().map(move |to| (*from, *to))) {
                    self.network.heal(from, to);
                    self.network.heal(to, from);
                }
            }
            Fault::FullDisk(machine) => self.give_space(usize::from(*machine)),
            Fault::FailedSync(machine) => {
                for node in self.nodes_of(usize::from(*machine)) {
                    if let Some(disk) = &mut self.processes[node].disk {
                        disk.mend();
                    }
                }
                self.start_failed(usize::from(*machine));
            }
            Fault::Clog(..)
            | Fault::Corrupt(_)
            | Fault::Misdirect(_)
            | Fault::DamagedCheckpoint(_)
            | Fault::LostWrite(_)
            | Fault::Loss(_)
            | Fault::HandOver(_)
            | Fault::ClockJump(..)
            | Fault::ClockBack(..) => {}
        }
    }

    /// The power is there again; it goes now for a moment, if it has not gone before.
    fn end_power_cut(&mut self, machine: usize, index: usize) {
        for node in self.nodes_of(machine) {
            if let Some(disk) = &mut self.processes[node].disk {
                disk.keep_power();
            }
        }
        if self.machines[machine].up {
            self.crash(machine, Some(index));
        }
        if self.machines[machine].down_by == Some(index) {
            self.restart(machine);
        }
    }

    /// Ends all faults: the second phase begins.
    pub fn heal(&mut self) {
        self.healed = true;
        self.happened.healed_at = self.heap.now();
        self.log.note(self.heap.now(), || "all faults end".to_owned());
        for index in self.active.clone() {
            self.end_fault(index);
        }
        self.network.heal_all();
        self.network.lossless();
    }

    /// The hosts of one side of a partition, and all others.
    fn sides(&self, side: &[u16]) -> (Vec<Host>, Vec<Host>) {
        let hosts = self.plan.machines + self.plan.callers() + 1;
        (0..hosts).map(Host).partition(|host| side.contains(&host.0))
    }

    fn resume(&mut self, machine: usize) {
        if !self.machines[machine].up {
            return;
        }
        self.machines[machine].paused = false;
        let deferred = std::mem::take(&mut self.machines[machine].deferred);
        deferred.into_iter().for_each(|happening| self.happen(happening));
        self.dispatch(machine);
    }

    fn give_space(&mut self, machine: usize) {
        for node in self.nodes_of(machine) {
            if let Some(disk) = &mut self.processes[node].disk {
                disk.empty();
            }
            if self.processes[node].node.is_some() && self.write(node) {
                self.wake(node);
            }
        }
        self.start_failed(machine);
    }
}
