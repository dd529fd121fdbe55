//! Deterministic and classical execution against each other, over contention, distribution, and length of transactions (Ren,
//! Thomson and Abadi, §3.3, §3.4 and §3.8: DET-X02 to DET-X10, DET-X17).
//!
//! The cluster, the network and the workload are the same for all engines, and so is all of the code but the engine and its
//! node (DET-01). Each node has a machine with one core. Clients stand beside their node and cost nothing. Nodes have no disks:
//! neither the log of the one nor the forced records of the other's commit protocol take time.
//!
//! - [`settings`] and [`measure_evaluation`]: the runs. What each costs is in [`costs_of`].
//! - [`csv`] and [`figures`]: as a table, and drawn as the paper does.
//! - [`judge`]: what the paper states beside what was measured.
//! - [`breakdown`]: what nodes spend their time on (Figure 2, DET-X06), also on locks (DET-X07).
//! - [`tpcc`]: the runs of TPC-C (Figure 4, DET-X10).
//!
//! One thread does everything at a node here, so that no thread for locks can become a bottleneck: VLL saves what its locks cost less,
//! and no more. Slow nodes, dependent transactions and latencies (Figures 5 to 7) are experiments of their
//! own: [`slow_node`](super::slow_node), [`dependent`](super::dependent).

pub mod breakdown;
pub mod figure_1;
mod report;
mod statements;
pub mod tpcc;

use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::error::Error;
use ordain_db::limits::Limits;
use ordain_db::position::{NodeId, PartitionId};
use ordain_workload::micro;

use self::breakdown::Breakdown;
use super::cluster::{best, cluster};
use crate::machine::cost::{CostTable, LONG_WORK};
use crate::network::NetworkOptions;
use crate::network::latency::Latency;
use crate::network::topology::Topology;
use crate::plan::{Plan, WorkloadPlan};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

pub use report::{csv, figures};
pub use statements::judge;

/// The paper's four systems; the last one is the bound without a commit protocol, which is no database (DET-41).
pub const ENGINES: [EngineKind; 4] = [
    EngineKind::Calvin,
    EngineKind::CalvinVll,
    EngineKind::TwoPhase,
    EngineKind::TwoPhaseWithoutCommitProtocol,
];

/// The two that it compares from Figure 2 on.
pub const SYSTEMS: [EngineKind; 2] = [EngineKind::Calvin, EngineKind::TwoPhase];

/// The paper's low and high contention (DET-47).
pub const LOW: f64 = 0.0001;
/// See [`LOW`].
pub const HIGH: f64 = 0.01;

/// Shares of distributed transactions of Figures 1 (a) and (b), in percent.
pub const SHARES: [f64; 6] = [0.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// The share at which the contention index varies (Figures 1 (c) and (d)); the paper's text does not name it.
pub const SHARE_OF_INDEXES: f64 = 20.0;

/// The index with which as many transactions meet at a contended record as on the paper's machines at [`HIGH`]: a node has one
/// core here, and had five for transactions there, and so ran five times as many over as many contended records.
pub const HIGH_FOR_ONE_CORE: f64 = 0.05;

/// Contention indexes of Figures 1 (c) and (d); the paper's text does not name them.
pub const INDEXES: [f64; 5] = [LOW, 0.001, HIGH, HIGH_FOR_ONE_CORE, 0.1];

/// Shares of Figure 3, in percent. At 0 there are no distributed transactions whose participants could be counted.
pub const SHARES_OF_PARTICIPANTS: [f64; 4] = [0.0, 10.0, 20.0, 50.0];

/// Sizes of clusters of Figure 8, as far as the paper goes.
pub const SIZES: [u16; 7] = [1, 2, 4, 8, 16, 32, 48];

/// Shares of Figure 8, in percent.
pub const SHARES_OF_SIZES: [f64; 2] = [20.0, 100.0];

/// Records that each site has beyond the contended ones, so that all runs are loaded in a few minutes. The paper has a million
/// (DET-46). At the lowest index two transactions meet at one of these more often than at a contended one, at high ones hardly.
pub(super) const COLD_RECORDS: u64 = 50_000;

/// What the locks of a transaction of ten keys cost with the lock managers `hash` and `vll`, in picoseconds: without contention, with
/// 256 transactions under way (docs/engines/calvin.md). The cost table has them in the cost of an execution. They are what is charged;
/// what DET-X07 says of them is judged where they are measured again, in the real runs of `ordain sim evaluation`.
pub const LOCKS_HASH: u64 = 293_000;
/// See [`LOCKS_HASH`].
pub const LOCKS_VLL: u64 = 164_000;

/// What an edge of the waits-for graph costs the detector, in picoseconds. Measured of a graph of 200 edges, half of which wait for the
/// other half: reported, and searched for cycles; the quickest of 50 rounds on two shared virtual cores.
const EDGE: u64 = 135_000;

/// How much a transaction computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// One read and one update of each record (DET-48).
    Short,
    /// 15 us besides for each record (DET-49).
    Long,
}

impl Length {
    /// Both.
    pub const ALL: [Length; 2] = [Length::Short, Length::Long];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Length::Short => "short",
            Length::Long => "long",
        }
    }
}

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EvaluationSetting {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// How much a transaction computes.
    pub length: Length,
    /// Number of nodes.
    pub nodes: u16,
    /// One over the contended records of each node.
    pub contention_index: f64,
    /// Percentage of transactions that touch more than one node.
    pub distributed_percent: f64,
    /// Nodes that such a one touches (DET-50).
    pub participants: u16,
    /// When it asks for its locks; `two-phase` alone. In ascending order of nodes no deadlock spans them (DET-X06, trap 23).
    pub lock_requests: LockRequests,
}

impl EvaluationSetting {
    /// With two participants, which are asked for all locks at once.
    pub fn new(
        engine: EngineKind,
        length: Length,
        nodes: u16,
        contention_index: f64,
        distributed_percent: f64,
    ) -> EvaluationSetting {
        let (participants, lock_requests) = (2, LockRequests::Together);
        EvaluationSetting {
            engine,
            length,
            nodes,
            contention_index,
            distributed_percent,
            participants,
            lock_requests,
        }
    }
}

/// The result of one setting.
#[derive(Clone, PartialEq, Debug)]
pub struct EvaluationPoint {
    /// What was measured.
    pub setting: EvaluationSetting,
    /// What came of it.
    pub run: Run,
}

/// What came of the best run of a setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Calls that the client of each node had outstanding: of those that were tried, the number with the highest throughput.
    pub window: u64,
    /// Most messages that a node took in one step, likewise; `usize::MAX` for all that had come.
    pub step_events: usize,
    /// Transactions per second of virtual time over all nodes, each counted once however often it was begun (DET-39).
    pub throughput: f64,
    /// Median latency in microseconds of virtual time.
    pub latency_us_p50: u64,
    /// 99th percentile of the latency, in microseconds of virtual time.
    pub latency_us_p99: u64,
    /// What the cores of all nodes spent the measured time on.
    pub time: Breakdown,
    /// Attempts per second that were given up and begun again.
    pub restarts: f64,
    /// Victims per second that the detector of distributed deadlocks named.
    pub deadlocks: f64,
    /// The virtual time that was measured.
    pub measured: Nanoseconds,
}

impl Run {
    /// Victims that the detector of distributed deadlocks named in the time that was measured.
    pub fn victims(&self) -> f64 {
        (self.deadlocks * self.measured as f64 / SECOND as f64).round()
    }

    /// Transactions in that time.
    pub fn transactions(&self) -> f64 {
        (self.throughput * self.measured as f64 / SECOND as f64).round()
    }
}

/// How long and how hard each point is driven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvaluationEffort {
    /// Virtual time before measuring.
    pub warm_up: Nanoseconds,
    /// Virtual time of measuring long transactions; short ones, of which there are far more in the same time, have a quarter.
    pub time: Nanoseconds,
    /// Calls that the client of each node has outstanding, if transactions are short: each is tried, and the best counts
    /// (DET-62). Few leave nodes idle while messages are on their way; many meet each other at the contended records.
    pub windows_short: Vec<u64>,
    /// Likewise for long transactions.
    pub windows_long: Vec<u64>,
    /// Most messages that a node takes in one step, if transactions are long: each is tried, and the best counts, as the paper took
    /// the better process model for each point (DET-36). What a step says leaves when it is over: after few messages others
    /// wait less for it, after many all of them go before the next new transaction (DET-35).
    pub messages_long: Vec<usize>,
    /// How long a message is on its way.
    pub latency: Latency,
}

impl EvaluationEffort {
    fn network(&self) -> NetworkOptions {
        NetworkOptions::reliable(Topology::uniform(self.latency))
    }

    /// The numbers of outstanding calls, and of messages in a step, that are tried with transactions of this length.
    fn tries(&self, length: Length) -> impl Iterator<Item = (u64, usize)> {
        let (windows, messages) = match length {
            Length::Short => (&self.windows_short, &[usize::MAX][..]),
            Length::Long => (&self.windows_long, &self.messages_long[..]),
        };
        windows.iter().flat_map(|window| messages.iter().map(|step_events| (*window, *step_events)))
    }
}

impl Default for EvaluationEffort {
    fn default() -> EvaluationEffort {
        EvaluationEffort {
            warm_up: 100 * MILLISECOND,
            time: 200 * MILLISECOND,
            windows_short: vec![32, 128, 512, 2_048],
            windows_long: vec![8, 32, 128, 512],
            messages_long: vec![1, usize::MAX],
            latency: Latency::LAN,
        }
    }
}

/// All runs of the microbenchmark: Figures 1 to 3 on clusters of `nodes`, Figure 8 on those of up to `nodes_max`; each once, although
/// several figures may show it.
pub fn settings(nodes: u16, nodes_max: u16) -> Vec<EvaluationSetting> {
    let mut all: Vec<EvaluationSetting> = Vec::new();
    let mut add = |setting: EvaluationSetting| {
        if !all.contains(&setting) {
            all.push(setting);
        }
    };
    for engine in ENGINES {
        for length in Length::ALL {
            let base = EvaluationSetting::new(engine, length, nodes, LOW, SHARE_OF_INDEXES);
            for contention_index in [LOW, HIGH] {
                for distributed_percent in SHARES {
                    add(EvaluationSetting { contention_index, distributed_percent, ..base });
                }
            }
            INDEXES
                .into_iter()
                .for_each(|contention_index| add(EvaluationSetting { contention_index, ..base }));
        }
    }
    // The paper compares two systems from here on.
    for engine in SYSTEMS {
        for contention_index in [LOW, HIGH] {
            let long = |nodes, share, participants| EvaluationSetting {
                participants,
                ..EvaluationSetting::new(engine, Length::Long, nodes, contention_index, share)
            };
            for distributed_percent in SHARES_OF_PARTICIPANTS.into_iter().filter(|share| *share > 0.0) {
                [2, 3, 4]
                    .into_iter()
                    .for_each(|participants| add(long(nodes, distributed_percent, participants)));
            }
            for nodes in SIZES.into_iter().filter(|size| *size <= nodes_max) {
                SHARES_OF_SIZES
                    .into_iter()
                    .for_each(|distributed_percent| add(long(nodes, distributed_percent, 2)));
            }
        }
    }
    breakdown::settings(nodes).into_iter().for_each(add);
    all
}

/// What the parts of a step cost with this engine and length, from the measured costs of `calvin` with short transactions.
///
/// - *The logic* costs what it costs at each execution. With all these engines every participant that writes executes all of
///   the logic, with all ten records: so a long transaction of three participants takes 450 us in all.
/// - *Locks and bookkeeping of `two-phase`* cost what those of `calvin` do: a transaction of one partition took 2.23 us of CPU with
///   the one and 2.33 us with the other (`ordain bench compare --entries calvin,two-phase --rounds 7 --seconds 1 micro --partitions
///   1`). What an attempt that is given up has cost, besides its messages, is not charged.
/// - *Locks of VLL* cost less by what the bench of both lock managers measured.
pub fn costs_of(engine: EngineKind, length: Length, measured: &CostTable) -> CostTable {
    let locks = if engine == EngineKind::CalvinVll { LOCKS_VLL } else { LOCKS_HASH };
    let saved = LOCKS_HASH - locks;
    let computed = match length {
        Length::Short => 0,
        Length::Long => micro::RECORDS_PER_TRANSACTION as u64 * LONG_WORK,
    };
    let costs = measured.with_work(computed);
    CostTable {
        executed_alone: costs.executed_alone.saturating_sub(saved),
        executed_together: costs.executed_together.saturating_sub(saved),
        locks,
        edge: EDGE,
        ..costs
    }
}

/// Runs one setting with every window and every number of messages in a step, and takes the best.
///
/// # Errors
/// When the workload refuses the setting, or there is no window.
pub fn measure_evaluation(
    setting: &EvaluationSetting,
    measured: &CostTable,
    effort: &EvaluationEffort,
) -> Result<EvaluationPoint, Error> {
    let tried = effort.tries(setting.length);
    let run = |(window, step_events)| {
        run_plan(&Plan { step_events, ..plan(setting, measured, window, effort) }, effort, setting.length)
    };
    let run = best(tried.map(run), |run| run.throughput)?;
    Ok(EvaluationPoint { setting: *setting, run })
}

/// Runs a plan for as long as transactions of this length are measured.
fn run_plan(plan: &Plan, effort: &EvaluationEffort, length: Length) -> Result<Run, Error> {
    let time = match length {
        Length::Short => effort.time / 4,
        Length::Long => effort.time,
    };
    let workload = plan.workload.build()?;
    let mut world = World::new(plan, &*workload)?;
    world.run_until(effort.warm_up);
    let (restarts_before, deadlocks_before) = given_up(&world, plan.partitions);
    let run = world.measure(0, time);
    let (restarts, deadlocks) = given_up(&world, plan.partitions);
    let per_second = |count: u64| count as f64 * SECOND as f64 / time as f64;
    Ok(Run {
        window: plan.clients.window,
        step_events: plan.step_events,
        throughput: per_second(run.latencies.len() as u64),
        latency_us_p50: run.percentile_us(50),
        latency_us_p99: run.percentile_us(99),
        time: Breakdown::of(&run.spent, time * u64::from(plan.partitions)),
        restarts: per_second(restarts - restarts_before),
        deadlocks: per_second(deadlocks - deadlocks_before),
        measured: time,
    })
}

/// Attempts that were begun again, and victims of distributed deadlocks, over all nodes until now.
fn given_up(world: &World<'_>, nodes: u16) -> (u64, u64) {
    let statuses = (0..nodes).filter_map(|partition| world.status(NodeId::first(PartitionId(partition))));
    statuses.fold((0, 0), |(restarts, deadlocks), status| {
        (restarts + status.counters.restarts, deadlocks + status.deadlocks.distributed_deadlocks)
    })
}

fn plan(setting: &EvaluationSetting, measured: &CostTable, window: u64, effort: &EvaluationEffort) -> Plan {
    let EvaluationSetting { engine, length, nodes, contention_index, .. } = *setting;
    let contended = (1.0 / contention_index).round() as u64;
    let limits = Limits { lock_requests: setting.lock_requests, ..limits_of(length) };
    let workload = WorkloadPlan::Micro(micro::Options {
        sites: nodes,
        records: u64::from(nodes) * (contended + COLD_RECORDS),
        contention_index,
        multi_partition_percent: setting.distributed_percent,
        participants: setting.participants,
        ..micro::Options::default()
    });
    let costs = costs_of(engine, length, measured);
    Plan { engine, limits, network: effort.network(), ..cluster(nodes, workload, costs, window) }
}

/// What a node may do in a step. Without load control, of which the paper says nothing: how many calls are outstanding is varied
/// instead, and the best is taken.
fn limits_of(length: Length) -> Limits {
    let usual = Limits { load_control: false, ..Limits::default() };
    match length {
        Length::Short => usual,
        // What a step says leaves when it is over: many long transactions in one would keep all others waiting.
        Length::Long => Limits { step_transactions: 1, ..usual },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Benchmark, costs};

    fn point(engine: EngineKind, contention_index: f64, distributed_percent: f64) -> Run {
        run(&EvaluationSetting::new(engine, Length::Long, 2, contention_index, distributed_percent), 32)
    }

    fn run(setting: &EvaluationSetting, window: u64) -> Run {
        let effort = EvaluationEffort {
            warm_up: 20 * MILLISECOND,
            time: 100 * MILLISECOND,
            windows_short: Vec::new(),
            windows_long: vec![window],
            messages_long: vec![1],
            ..EvaluationEffort::default()
        };
        measure_evaluation(setting, &costs(Benchmark::Micro), &effort).unwrap().run
    }

    /// A "higher reading means that the work is missing": 150 us allow 6,667 transactions per second and node.
    #[test]
    fn long_transactions_have_their_work_in_every_engine() {
        for engine in ENGINES {
            let local = point(engine, LOW, 0.0);
            assert!((12_000.0..13_333.0).contains(&local.throughput), "{local:?}");
            assert!(local.time.busy() > 95.0 && local.deadlocks == 0.0 && local.restarts == 0.0, "{local:?}");
            // Both nodes do all of the work of each.
            let distributed = point(engine, LOW, 100.0);
            assert!((1_000.0..6_667.0).contains(&distributed.throughput), "{distributed:?}");
        }
    }

    #[test]
    fn deadlocks_are_those_of_the_classical_engine() {
        assert_eq!(point(EngineKind::Calvin, 0.5, 100.0).deadlocks, 0.0);
        let two_phase = point(EngineKind::TwoPhase, 0.5, 100.0);
        assert!(two_phase.deadlocks > 0.0 && two_phase.restarts > 0.0, "{two_phase:?}");
        let setting = EvaluationSetting::new(EngineKind::TwoPhase, Length::Long, 2, 0.5, 100.0);
        let in_order = run(&EvaluationSetting { lock_requests: LockRequests::InOrder, ..setting }, 32);
        assert!(in_order.deadlocks == 0.0 && in_order.restarts == 0.0, "{in_order:?}");
        assert!(in_order.throughput > 100.0, "{in_order:?}");
        let as_it_goes = run(&EvaluationSetting { lock_requests: LockRequests::AsItGoes, ..setting }, 8);
        assert!(as_it_goes.restarts > 0.0 && as_it_goes.throughput > 100.0, "{as_it_goes:?}");
    }

    #[test]
    fn what_nodes_spend_adds_up() {
        let calvin = point(EngineKind::Calvin, HIGH, 50.0);
        // With more calls at once deadlocks are all there is for the first hundred milliseconds.
        let two_phase = run(&EvaluationSetting::new(EngineKind::TwoPhase, Length::Long, 2, 0.5, 100.0), 8);
        for time in [calvin.time, two_phase.time] {
            let sum: f64 = time.parts().iter().map(|(_, percent)| percent).sum();
            assert!((sum - 100.0).abs() < 1e-6 && time.useful > 0.0 && time.locks > 0.0, "{time:?}");
        }
        assert_eq!((calvin.time.deadlocks, calvin.time.commitment), (0.0, 0.0));
        assert!(two_phase.time.deadlocks > 0.0 && two_phase.time.commitment > 0.0, "{two_phase:?}");
        assert!(two_phase.time.waiting > calvin.time.waiting, "{two_phase:?}");
    }

    #[test]
    fn long_transactions_compute_for_each_record() {
        let table = costs(Benchmark::Micro);
        let [short, long] = Length::ALL.map(|length| costs_of(EngineKind::Calvin, length, &table));
        assert_eq!(long.executed_alone - short.executed_alone, 150_000_000);
        assert_eq!(short.executed_alone, table.executed_alone);
        let vll = costs_of(EngineKind::CalvinVll, Length::Short, &table);
        assert_eq!(short.executed_alone - vll.executed_alone, LOCKS_HASH - LOCKS_VLL);
    }

    #[test]
    fn no_setting_is_run_twice() {
        let all = settings(4, 48);
        // 24 and 6 for each engine; 6 more of Figure 3 and 12 of Figure 8 for each of two engines and two indexes, without
        // those of Figures 1 at 0 to 100 % with two participants.
        let four = 4 * (24 + 6);
        // Locks asked for in order, and as transactions go: two lengths at two indexes.
        assert_eq!(all.len(), four + 2 * 2 * (6 + 12) + 2 * 2 * 2);
        assert!(all.iter().all(|setting| setting.nodes >= 1 && setting.nodes <= 48));
    }
}
