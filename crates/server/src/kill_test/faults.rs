//! Which faults there are, and which comes next.

use std::time::Duration;

use clap::ValueEnum;
use ordain_workload::random::Random;

use super::processes::{PARTITIONS, PROCESSES, REPLICAS, group_of, of_replica, partition_of};

/// What can happen to a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum FaultKind {
    /// SIGKILL to one process, which is started again.
    Kill,
    /// SIGKILL to one process, which is started again so late that it needs a checkpoint of another replica.
    Absence,
    /// SIGTERM to the leader of a partition, while all that goes between its replicas is late.
    HandOver,
    /// One replica loses its disks: it is removed, and added again with empty ones.
    Wipe,
    /// SIGSTOP to one process, then SIGCONT.
    Stop,
    /// All that goes from and to one process is kept back.
    Cut,
    /// The same in one direction only.
    CutOneWay,
    /// All that goes between two processes is kept back; they reach all others.
    CutPair,
    /// All that goes from and to one process is late.
    Slow,
    /// The disk of one process is full.
    FullDisk,
    /// No `fsync` of one process succeeds; it has to stop.
    FailingSync,
    /// SIGKILL to two of the three replicas of a partition: nothing can commit.
    KillMajority,
    /// SIGKILL to all processes.
    KillAll,
}

impl FaultKind {
    /// The name in tables and on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether every partition keeps a majority of its replicas.
    pub(super) fn leaves_a_majority(self) -> bool {
        !matches!(self, FaultKind::KillMajority | FaultKind::KillAll)
    }

    /// Whether it needs disks that can be made to fail.
    pub(super) fn is_of_disks(self) -> bool {
        matches!(self, FaultKind::FullDisk | FaultKind::FailingSync)
    }

    /// How often it comes, against the others.
    fn weight(self) -> u64 {
        match self {
            FaultKind::Kill => 8,
            FaultKind::Stop | FaultKind::Cut | FaultKind::HandOver => 4,
            // It can only begin while all is well.
            FaultKind::CutOneWay | FaultKind::FailingSync | FaultKind::Wipe => 3,
            FaultKind::CutPair | FaultKind::Slow | FaultKind::FullDisk | FaultKind::KillMajority => 2,
            FaultKind::KillAll | FaultKind::Absence => 1,
        }
    }

    /// The shortest and the longest time in milliseconds, in a round of so many.
    fn milliseconds(self, round: i64) -> (i64, i64) {
        match self {
            FaultKind::Kill => (10, 2_000),
            FaultKind::Absence => (round / 8, round / 3),
            FaultKind::HandOver => (10, 1_000),
            // As long as the operator takes.
            FaultKind::Wipe => (0, 0),
            FaultKind::Stop | FaultKind::Cut | FaultKind::CutOneWay | FaultKind::CutPair => (50, 3_000),
            FaultKind::Slow => (500, 2_000),
            FaultKind::FullDisk => (500, 4_000),
            // Until it has stopped; a process that has nothing to write meanwhile is let go.
            FaultKind::FailingSync => (10_000, 10_000),
            FaultKind::KillMajority | FaultKind::KillAll => (10, 1_000),
        }
    }
}

/// A fault as it was drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// The processes that it is about.
    pub(super) victims: Vec<usize>,
    /// What is kept back or late, by sender and receiver.
    pub(super) directions: Vec<(usize, usize)>,
    /// How late.
    pub(super) delay: Duration,
    /// How long it lasts, until it is mended or the process is started again.
    pub(super) lasts: Duration,
    /// Whether connections are reset when a cut heals.
    pub(super) resets: bool,
}

/// Draws faults.
pub(super) struct Draw {
    random: Random,
    kinds: Vec<FaultKind>,
    /// The longest time in which nothing new happens.
    pause_max: Duration,
    /// How long the round lasts, in milliseconds.
    round: i64,
}

impl Draw {
    /// Faults of these kinds, for the round of a number.
    pub(super) fn new(
        seed: u64,
        number: u64,
        kinds: Vec<FaultKind>,
        pause_max: Duration,
        lasts: Duration,
    ) -> Draw {
        let round = lasts.as_millis() as i64;
        Draw { random: Random::new(seed, "kill test", &[number]), kinds, pause_max, round }
    }

    /// How long nothing new happens.
    pub(super) fn pause(&mut self) -> Duration {
        Duration::from_millis(self.random.below(self.pause_max.as_millis() as u64))
    }

    /// The next fault, if it may happen while something is wrong with those processes: without the processes that it is
    /// about, too, each partition keeps a majority, unless that is the point; then all must be well.
    pub(super) fn next(&mut self, ill: &[bool; PROCESSES]) -> Option<Fault> {
        let kind = self.kind()?;
        let victims = self.victims(kind);
        let directions = self.directions(kind, &victims);
        let (shortest, longest) = kind.milliseconds(self.round);
        let fault = Fault {
            kind,
            directions,
            delay: Duration::from_millis(self.random.between(5, 100) as u64),
            lasts: Duration::from_millis(self.random.between(shortest, longest) as u64),
            resets: self.random.below(2) == 0,
            victims,
        };
        let allowed = if kind.leaves_a_majority() {
            // At most one replica of a partition at a time.
            fault.victims.iter().all(|victim| !group_of(partition_of(*victim)).any(|process| ill[process]))
        } else {
            !ill.contains(&true)
        };
        allowed.then_some(fault)
    }

    fn kind(&mut self) -> Option<FaultKind> {
        let sum = self.kinds.iter().map(|kind| kind.weight()).sum();
        let mut drawn = self.random.below(sum);
        self.kinds.iter().copied().find(|kind| {
            let here = drawn < kind.weight();
            drawn = drawn.saturating_sub(kind.weight());
            here
        })
    }

    fn victims(&mut self, kind: FaultKind) -> Vec<usize> {
        match kind {
            FaultKind::KillAll => (0..PROCESSES).collect(),
            FaultKind::KillMajority => {
                let partition = self.random.below(PARTITIONS as u64) as usize;
                let mut group: Vec<usize> = group_of(partition).collect();
                let survivor = self.random.below(group.len() as u64) as usize;
                group.remove(survivor);
                group
            }
            FaultKind::Wipe => of_replica(self.random.below(REPLICAS as u64) as usize).collect(),
            _ => vec![self.random.below(PROCESSES as u64) as usize],
        }
    }

    fn directions(&mut self, kind: FaultKind, victims: &[usize]) -> Vec<(usize, usize)> {
        let Some(victim) = victims.first().copied() else { return Vec::new() };
        let others = (0..PROCESSES).filter(|other| *other != victim);
        match kind {
            FaultKind::Cut | FaultKind::Slow => {
                others.flat_map(|other| [(victim, other), (other, victim)]).collect()
            }
            // Whoever of them leads.
            FaultKind::HandOver => {
                let group = || group_of(partition_of(victim));
                let pairs = group().flat_map(|from| group().map(move |to| (from, to)));
                pairs.filter(|(from, to)| from != to).collect()
            }
            FaultKind::CutOneWay if self.random.below(2) == 0 => {
                others.map(|other| (victim, other)).collect()
            }
            FaultKind::CutOneWay => others.map(|other| (other, victim)).collect(),
            FaultKind::CutPair => {
                let others: Vec<usize> = others.collect();
                let other = others[self.random.below(others.len() as u64) as usize];
                vec![(victim, other), (other, victim)]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_secs(60);

    #[test]
    fn a_partition_keeps_its_majority_unless_that_is_the_point() {
        let mut draw = Draw::new(1, 1, FaultKind::value_variants().to_vec(), Duration::from_secs(1), ROUND);
        // The first replica of the first partition.
        let mut ill = [false; PROCESSES];
        ill[0] = true;
        let drawn: Vec<Fault> = (0..2_000).filter_map(|_| draw.next(&ill)).collect();
        assert!(drawn.iter().all(|fault| fault.kind.leaves_a_majority()));
        assert!(drawn.iter().flat_map(|fault| &fault.victims).all(|victim| partition_of(*victim) == 1));
        let drawn: Vec<Fault> = (0..2_000).filter_map(|_| draw.next(&[false; PROCESSES])).collect();
        assert_eq!(drawn.len(), 2_000);
        for kind in FaultKind::value_variants() {
            let count = drawn.iter().filter(|fault| fault.kind == *kind).count();
            assert!(count > 20, "{kind:?} came {count} times");
        }
        let wiped = drawn.iter().find(|fault| fault.kind == FaultKind::Wipe).unwrap();
        assert_eq!(wiped.victims.iter().map(|victim| partition_of(*victim)).collect::<Vec<_>>(), [0, 1]);
        let majority = drawn.iter().find(|fault| fault.kind == FaultKind::KillMajority).unwrap();
        assert_eq!(partition_of(majority.victims[0]), partition_of(majority.victims[1]));
    }

    #[test]
    fn a_seed_draws_the_same_faults() {
        let draw = |round| {
            let kinds = FaultKind::value_variants().to_vec();
            let mut draw = Draw::new(7, round, kinds, Duration::from_secs(1), ROUND);
            (0..100).filter_map(|_| draw.next(&[false; PROCESSES])).collect::<Vec<Fault>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
