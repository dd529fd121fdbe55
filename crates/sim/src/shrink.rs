//! Makes a failing plan smaller while it violates the same property: fewer faults, fewer calls, fewer nodes, less of
//! everything.
//!
//! The result is a list of [`Reductions`] of the plan that the seed draws. They have a text, so that a command line can name
//! the small plan as well as the large one.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use ordain_db::limits::Limits;
use ordain_db::sequencer::EpochPolicy;

use crate::network::NetworkOptions;
use crate::network::topology::Topology;
use crate::plan::Plan;
use crate::run::run;

/// How a plan is made smaller.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reductions {
    /// Make so many calls.
    pub transactions: Option<u64>,
    /// Keep these faults, by their numbers in the plan.
    pub faults: Option<Vec<usize>>,
    /// Keep so many partitions.
    pub partitions: Option<u16>,
    /// Keep so many replicas.
    pub replicas: Option<u16>,
    /// Keep so many clients.
    pub clients: Option<u16>,
    /// Leave these peculiarities out.
    pub without: BTreeSet<Peculiarity>,
}

/// Something about a plan that makes a run richer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peculiarity {
    /// Snapshots during the run.
    Snapshots,
    /// Several calls of a client outstanding at a time.
    Windows,
    /// Clients that pause.
    Pauses,
    /// Requests that enter at other nodes than their home.
    Wandering,
    /// Wrong clocks.
    Clocks,
    /// Limits other than the usual ones, of queues and steps.
    Limits,
    /// A network that loses, repeats, delays and reorders.
    Network,
    /// Several nodes on a machine, or several cores.
    Machines,
    /// A disk that takes time.
    Disk,
    /// Checkpoints.
    Checkpoints,
    /// An epoch manager.
    Manager,
    /// Calls that are acknowledged before they are computed.
    Early,
}

impl Peculiarity {
    /// All of them.
    pub const ALL: [Peculiarity; 12] = [
        Peculiarity::Snapshots,
        Peculiarity::Windows,
        Peculiarity::Pauses,
        Peculiarity::Wandering,
        Peculiarity::Clocks,
        Peculiarity::Limits,
        Peculiarity::Network,
        Peculiarity::Machines,
        Peculiarity::Disk,
        Peculiarity::Checkpoints,
        Peculiarity::Manager,
        Peculiarity::Early,
    ];

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn leave_out(self, plan: &mut Plan) {
        match self {
            Peculiarity::Snapshots => plan.clients.snapshots = 0,
            Peculiarity::Windows => plan.clients.window = 1,
            Peculiarity::Pauses => plan.clients.think = 0,
            Peculiarity::Wandering => plan.clients.wanders = false,
            Peculiarity::Early => plan.clients.early = None,
            Peculiarity::Clocks => plan.clocks.clear(),
            Peculiarity::Limits => {
                (plan.step_events, plan.inbox_requests) = (1 << 20, 1 << 20);
                plan.limits = Limits::default();
            }
            Peculiarity::Network => plan.network = NetworkOptions::reliable(Topology::lan()),
            Peculiarity::Machines => (plan.machines, plan.cores) = (plan.partitions * plan.replicas, 1),
            // Without a disk no machine comes back, which would be another failure.
            Peculiarity::Disk
                if plan.replicas > 1 || plan.faults.iter().any(|planned| planned.fault.needs_disk()) => {}
            Peculiarity::Disk => plan.disk = None,
            Peculiarity::Checkpoints => {
                plan.checkpoints.interval_microseconds = None;
                plan.checkpoints.log_bytes = u64::MAX;
            }
            Peculiarity::Manager => plan.epochs.policy = EpochPolicy::Adaptive,
        }
    }
}

impl Reductions {
    /// The plan, made smaller.
    pub fn apply(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        if let Some(kept) = &self.faults {
            plan.faults = kept.iter().filter_map(|index| plan.faults.get(*index).cloned()).collect();
        }
        if let Some(transactions) = self.transactions {
            plan.clients.transactions = plan.clients.transactions.min(transactions);
        }
        if let Some(clients) = self.clients {
            plan.keep_hosts(plan.replicas, plan.machines_each(), plan.clients.count.min(clients));
        }
        if let Some(partitions) = self.partitions {
            plan.partitions = plan.partitions.min(partitions);
            plan.keep_hosts(plan.replicas, plan.machines_each().min(partitions), plan.clients.count);
        }
        if let Some(replicas) = self.replicas {
            plan.keep_hosts(plan.replicas.min(replicas), plan.machines_each(), plan.clients.count);
        }
        self.without.iter().for_each(|peculiarity| peculiarity.leave_out(&mut plan));
        plan
    }
}

impl fmt::Display for Reductions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.transactions.map(|count| format!("transactions={count}")));
        parts.extend(self.faults.as_ref().map(|kept| {
            let kept: Vec<String> = kept.iter().map(usize::to_string).collect();
            format!("faults={}", kept.join("+"))
        }));
        parts.extend(self.partitions.map(|count| format!("partitions={count}")));
        parts.extend(self.replicas.map(|count| format!("replicas={count}")));
        parts.extend(self.clients.map(|count| format!("clients={count}")));
        parts.extend(self.without.iter().map(|peculiarity| format!("no-{}", peculiarity.name())));
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Reductions {
    type Err = String;

    fn from_str(text: &str) -> Result<Reductions, String> {
        let mut reductions = Reductions::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let wrong = || format!("{part:?} is no reduction: give what a failing seed printed");
            match part.split_once('=') {
                Some(("transactions", count)) => {
                    reductions.transactions = Some(count.parse().map_err(|_| wrong())?);
                }
                Some(("partitions", count)) => {
                    reductions.partitions =
                        Some(count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?);
                }
                Some(("replicas", count)) => {
                    reductions.replicas =
                        Some(count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?);
                }
                Some(("clients", count)) => {
                    reductions.clients =
                        Some(count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?);
                }
                Some(("faults", kept)) => {
                    let kept = kept.split('+').filter(|number| !number.is_empty()).map(str::parse);
                    reductions.faults = Some(kept.collect::<Result<_, _>>().map_err(|_| wrong())?);
                }
                _ => {
                    let mut all = Peculiarity::ALL.into_iter();
                    let named = all.find(|peculiarity| part == format!("no-{}", peculiarity.name()));
                    reductions.without.insert(named.ok_or_else(wrong)?);
                }
            }
        }
        Ok(reductions)
    }
}

/// A failing plan that was made smaller.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// How it was made smaller.
    pub reductions: Reductions,
    /// The smallest plan that was found.
    pub plan: Plan,
    /// How many plans were tried.
    pub runs: u32,
}

/// Shrinks a plan that violates a property, with at most `runs_max` runs.
pub fn shrink(plan: &Plan, property: &str, runs_max: u32) -> Shrunk {
    let mut search = Search { original: plan, property, best: Reductions::default(), runs: 0, runs_max };
    // What one simplification leaves may let another one succeed that failed before.
    loop {
        let before = search.best.clone();
        search.fewer_faults();
        search.fewer_calls();
        search.fewer_hosts();
        for peculiarity in Peculiarity::ALL {
            search.attempt(|reductions| {
                reductions.without.insert(peculiarity);
            });
        }
        if search.best == before || search.is_over() {
            let plan = search.best.apply(plan);
            return Shrunk { reductions: search.best, plan, runs: search.runs };
        }
    }
}

struct Search<'a> {
    original: &'a Plan,
    property: &'a str,
    best: Reductions,
    runs: u32,
    runs_max: u32,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.runs >= self.runs_max
    }

    /// Reduces further if the plan still violates the property; whether it does.
    fn attempt(&mut self, reduce: impl FnOnce(&mut Reductions)) -> bool {
        let mut reductions = self.best.clone();
        reduce(&mut reductions);
        if reductions == self.best || self.is_over() {
            return false;
        }
        self.runs += 1;
        // A simplification may have gone too far for the workload: that is no failure of the code under test.
        let violates = run(&reductions.apply(self.original)).is_ok_and(|report| {
            report.violations.iter().any(|violation| violation.property == self.property)
        });
        if violates {
            self.best = reductions;
        }
        violates
    }

    /// Leaves out parts of the faults, halves first and then ever smaller ones.
    fn fewer_faults(&mut self) {
        let all: Vec<usize> = (0..self.original.faults.len()).collect();
        let mut kept = self.best.faults.clone().unwrap_or(all);
        let mut part = kept.len();
        while part > 0 {
            let mut start = 0;
            while start < kept.len() {
                let mut fewer = kept.clone();
                fewer.drain(start..(start + part).min(kept.len()));
                if self.attempt(|reductions| reductions.faults = Some(fewer.clone())) {
                    kept = fewer;
                } else {
                    start += part;
                }
            }
            part /= 2;
        }
    }

    /// Searches for fewer calls, by ever smaller steps.
    fn fewer_calls(&mut self) {
        let mut calls = self.best.transactions.unwrap_or(self.original.clients.transactions);
        let mut step = calls / 2;
        while step > 0 {
            if calls > step && self.attempt(|reductions| reductions.transactions = Some(calls - step)) {
                calls -= step;
                step = step.min(calls / 2);
            } else {
                step /= 2;
            }
        }
    }

    /// Takes the fewest replicas, partitions and clients that will do.
    fn fewer_hosts(&mut self) {
        let replicas = self.best.replicas.unwrap_or(self.original.replicas);
        let _ = (1..replicas).any(|count| self.attempt(|reductions| reductions.replicas = Some(count)));
        let partitions = self.best.partitions.unwrap_or(self.original.partitions);
        let _ = (1..partitions).any(|count| self.attempt(|reductions| reductions.partitions = Some(count)));
        let clients = self.best.clients.unwrap_or(self.original.clients.count);
        let _ = (1..clients).any(|count| self.attempt(|reductions| reductions.clients = Some(count)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Fault, PlannedFault};
    use crate::swarm::{Fixed, draw};

    #[test]
    fn reductions_have_a_text() {
        let text =
            "transactions=3,faults=1+4,partitions=2,replicas=3,clients=1,no-snapshots,no-disk,no-manager";
        let reductions: Reductions = text.parse().unwrap();
        assert_eq!(reductions.to_string(), text);
        assert_eq!((reductions.transactions, reductions.faults), (Some(3), Some(vec![1, 4])));
        let none: Reductions = "faults=".parse().unwrap();
        assert_eq!(none.faults, Some(Vec::new()));
        for wrong in ["transactions", "partitions=0", "faults=x", "no-thing"] {
            assert!(wrong.parse::<Reductions>().unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn faults_move_with_their_hosts() {
        let mut plan = draw(1, &Fixed { partitions: Some(4), replicas: Some(1), ..Fixed::default() });
        (plan.machines, plan.clients.count) = (4, 2);
        let faults = [Fault::Crash(1), Fault::Crash(3), Fault::Cut(0, 5), Fault::Partition(vec![0, 2, 4])];
        plan.faults = faults.map(|fault| PlannedFault { at: 0, lasts: 1, fault }).to_vec();
        let reductions: Reductions = "partitions=2".parse().unwrap();
        let smaller = reductions.apply(&plan);
        let left: Vec<Fault> = smaller.faults.into_iter().map(|planned| planned.fault).collect();
        assert_eq!(left, [Fault::Crash(1), Fault::Cut(0, 3), Fault::Partition(vec![0, 2])]);
        assert_eq!((smaller.partitions, smaller.machines), (2, 2));
        // Each replica keeps its first machines.
        (plan.replicas, plan.machines) = (2, 4);
        let faults = [Fault::Crash(1), Fault::Crash(2), Fault::Crash(3), Fault::Cut(0, 5)];
        plan.faults = faults.map(|fault| PlannedFault { at: 0, lasts: 1, fault }).to_vec();
        let fewer = |text: &str| {
            let reductions: Reductions = text.parse().unwrap();
            let smaller = reductions.apply(&plan);
            let left: Vec<Fault> = smaller.faults.into_iter().map(|planned| planned.fault).collect();
            (left, smaller.machines)
        };
        assert_eq!(fewer("partitions=1"), (vec![Fault::Crash(1), Fault::Cut(0, 3)], 2));
        assert_eq!(fewer("replicas=1"), (vec![Fault::Crash(1), Fault::Cut(0, 3)], 2));
    }
}
