//! How nodes end and begin again: crashes, disks that fail, and recovery.

use ordain_db::error::Fatal;

use super::process::{Condition, recovered_node};
use super::{Happening, World, log};
use crate::machine::disk::OpenFailure;
use crate::plan::Bug;
use crate::time::{MILLISECOND, Nanoseconds};

/// After how long a process that ended by itself is started again.
const RESTART_AFTER: Nanoseconds = MILLISECOND;

impl World<'_> {
    /// A machine loses power; a fault of the plan keeps it down.
    pub(super) fn crash(&mut self, machine: usize, fault: Option<usize>) {
        self.happened.crashes += 1;
        self.log.note(self.heap.now(), || format!("m{machine} crashes"));
        let down = &mut self.machines[machine];
        (down.up, down.paused, down.stepping) = (false, false, 0);
        down.down_by = fault;
        down.queue.clear();
        down.deferred.clear();
        for node in self.nodes_of(machine) {
            self.processes[node].crash();
        }
    }

    /// The power goes in the middle of what a node does with its files.
    pub(super) fn lose_power(&mut self, node: usize) {
        let machine = self.machine_of(node);
        self.log.note(self.heap.now(), || format!("m{machine} loses power in the middle of a write"));
        let fault = self.active.iter().copied().find(|fault| self.cuts_power(*fault, machine));
        self.crash(machine, fault);
    }

    /// A node's disk has failed: it stops, and starts again when the fault is over; if what is on the disk is damaged, soon, to find out
    /// what it can go on from.
    pub(super) fn fail(&mut self, node: usize, reason: String) {
        let machine = self.machine_of(node);
        let name = &self.processes[node].name;
        self.log.note(self.heap.now(), || format!("{name} stops: {reason}"));
        self.stop_stepping(node);
        if self.machines[machine].damaged {
            self.processes[node].end(Condition::Restarting);
            let life = self.processes[node].life;
            self.heap.plan_after(RESTART_AFTER, Happening::StartsAgain { node, life });
        } else {
            self.happened.failures += 1;
            self.processes[node].end(Condition::Failed(reason));
        }
        self.dispatch(machine);
    }

    /// A node that is about to end gives its core back.
    pub(super) fn stop_stepping(&mut self, node: usize) {
        if self.processes[node].condition == Condition::Stepping {
            let machine = self.machine_of(node);
            self.machines[machine].stepping -= 1;
        }
    }

    /// A node cannot go on as it is. Some do from what their disk has.
    pub(super) fn end(&mut self, node: usize, fatal: &Fatal) {
        let process = &mut self.processes[node];
        self.log.note(self.heap.now(), || format!("{} stops: {fatal}", process.name));
        let went_back = matches!(fatal, Fatal::Overwritten { .. } | Fatal::Superseded { .. });
        self.happened.went_back += u64::from(went_back);
        if went_back && !self.plan.may_lose() {
            self.problems.push(format!("{} went back, though nothing may be lost: {fatal}", process.name));
        }
        if fatal.asks_for_restart() {
            process.end(Condition::Restarting);
            let life = process.life;
            return self.heap.plan_after(RESTART_AFTER, Happening::StartsAgain { node, life });
        }
        self.problems.push(format!("{} stopped: {fatal}", process.name));
        process.stop(fatal.to_string());
    }

    /// A node that ended to go on from what its disk has is made again.
    pub(super) fn start_again(&mut self, node: usize, life: u32) {
        let process = &self.processes[node];
        if process.life == life && process.condition == Condition::Restarting {
            self.start(node);
        }
    }

    /// A machine starts: its nodes are made again from their disks.
    pub(super) fn restart(&mut self, machine: usize) {
        let starting = &mut self.machines[machine];
        (starting.up, starting.down_by) = (true, None);
        starting.clock.set_back(std::mem::take(&mut starting.set_back));
        for node in self.nodes_of(machine) {
            if self.machines[machine].up && self.processes[node].condition == Condition::Down {
                self.start(node);
            }
        }
    }

    /// The nodes of a machine whose disk had failed start again.
    pub(super) fn start_failed(&mut self, machine: usize) {
        for node in self.nodes_of(machine) {
            if self.machines[machine].up && matches!(self.processes[node].condition, Condition::Failed(_)) {
                self.start(node);
            }
        }
    }

    /// A node is made again from its disk.
    pub(super) fn start(&mut self, number: usize) {
        let (plan, workload) = (self.plan, self.workload);
        let process = &mut self.processes[number];
        let Some(disk) = &mut process.disk else {
            return process.stop("it crashed and kept nothing".to_owned());
        };
        let mut opened = disk.open();
        if let (Err(OpenFailure::Damaged(damage)), Some(Bug::CutDamagedLog)) = (&opened, plan.bug) {
            disk.cut(damage);
            opened = disk.open();
        }
        let found = match opened {
            Ok(found) => found,
            Err(OpenFailure::Off) => return self.cut_recovery(number),
            Err(OpenFailure::Full) => return self.fail(number, "its disk is full".to_owned()),
            Err(OpenFailure::Damaged(damage)) => return self.refuse(number, damage.to_string()),
            Err(OpenFailure::Refused(reason)) => return self.refuse(number, reason),
        };
        let (records, cut) = (found.records.len(), found.cut_bytes);
        match recovered_node(plan, workload, process.me, disk, found, process.joins, process.life) {
            Ok((node, epoch)) => {
                process.begin(node, plan.nodes(), plan.link());
                self.log.note(self.heap.now(), || log::recovered(&process.name, epoch, records, cut));
                self.recorder.resume(number, epoch);
                self.arm(number);
                self.wake(number);
            }
            Err(_) if disk.is_off() => self.cut_recovery(number),
            Err(reason) => self.refuse(number, reason),
        }
    }

    /// The power goes while a node is made again.
    fn cut_recovery(&mut self, number: usize) {
        self.happened.recoveries_cut += 1;
        self.lose_power(number);
    }

    /// A node does not start from what its disk has.
    fn refuse(&mut self, number: usize, reason: String) {
        self.happened.failures += 1;
        let excused = self.machines[self.machine_of(number)].damaged;
        let spared = self.can_be_spared(number);
        let process = &mut self.processes[number];
        let refusal = format!("{} does not start: {reason}", process.name);
        self.log.note(self.heap.now(), || refusal.clone());
        if !excused {
            self.problems.push(format!("{refusal}, and its disk had no fault"));
        }
        process.end(match excused && spared {
            true => Condition::Lost(reason),
            false => Condition::Stopped(reason),
        });
    }

    /// Whether a majority of a partition's nodes is left without this one, and without those that are lost or may be, or that
    /// lost their data and do not vote again yet.
    pub(super) fn can_be_spared(&self, number: usize) -> bool {
        let partitions = usize::from(self.plan.partitions);
        let replicas = (number % partitions..self.processes.len()).step_by(partitions);
        let endangered = |node: &usize| {
            *node == number
                || self.processes[*node].is_lost()
                || self.machines[self.machine_of(*node)].damaged
                || self.operator.sees_to(self.processes[*node].me.replica)
        };
        2 * replicas.filter(endangered).count() < usize::from(self.plan.replicas)
    }

    /// Why the cluster will not go on, if a node stopped for good.
    pub(super) fn halted(&self) -> Option<String> {
        self.processes.iter().find_map(|process| match &process.condition {
            Condition::Stopped(reason) => Some(format!("{} stopped: {reason}", process.name)),
            _ => None,
        })
    }

    /// Whether the halt is one that faults of the plan excuse: a node does not start from a damaged disk.
    pub fn halt_is_excused(&self) -> bool {
        self.processes.iter().enumerate().any(|(node, process)| {
            matches!(process.condition, Condition::Stopped(_)) && self.machines[self.machine_of(node)].damaged
        })
    }
}
