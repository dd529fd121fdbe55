//! What faults do to machines and to the network, and how everything is healed.

use super::process::Condition;
use super::{Happening, World};
use crate::network::Host;
use crate::plan::Fault;

impl World<'_> {
    pub(super) fn begin_fault(&mut self, index: usize) {
        if self.healed {
            return;
        }
        let planned = &self.plan.faults[index];
        let until = self.heap.now() + planned.lasts;
        match &planned.fault {
            Fault::Crash(machine) => {
                let machine = usize::from(*machine);
                if !self.machines[machine].up {
                    return;
                }
                self.crash(machine);
            }
            Fault::Pause(machine) => {
                // What is down cannot pause, nor be paused when it comes back.
                if !self.machines[usize::from(*machine)].up {
                    return;
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
            Fault::FullDisk(machine) => {
                for partition in self.partitions_of(usize::from(*machine)) {
                    if let Some(journal) = &mut self.processes[partition].journal {
                        journal.disk_mut().fill();
                    }
                }
            }
            Fault::Corrupt(machine) | Fault::Misdirect(machine) => {
                let machine = usize::from(*machine);
                let misdirect = matches!(planned.fault, Fault::Misdirect(_));
                for partition in self.partitions_of(machine) {
                    if let Some(journal) = &mut self.processes[partition].journal {
                        let disk = journal.disk_mut();
                        let hit = if misdirect { disk.misdirect() } else { disk.corrupt() };
                        self.damaged[machine] |= hit.is_some();
                    }
                }
                self.log_fault(index, true);
                return;
            }
        }
        self.active.push(index);
        self.log_fault(index, true);
        self.heap.plan(until, Happening::FaultEnds(index));
    }

    pub(super) fn end_fault(&mut self, index: usize) {
        let Some(place) = self.active.iter().position(|active| *active == index) else { return };
        self.active.remove(place);
        self.log_fault(index, false);
        match &self.plan.faults[index].fault {
            Fault::Crash(machine) => self.restart(usize::from(*machine)),
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
            Fault::Clog(..) | Fault::Corrupt(_) | Fault::Misdirect(_) => {}
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
        let hosts = self.plan.machines + self.plan.clients.count + 1;
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
        let Some(options) = &self.plan.disk else { return };
        for partition in self.partitions_of(machine) {
            let process = &mut self.processes[partition];
            if let Some(journal) = &mut process.journal {
                journal.disk_mut().grow(options.capacity);
            }
            if process.condition == Condition::Full {
                process.condition = Condition::Ready;
            }
            self.wake(partition);
        }
    }
}
