//! What parts of `aloha` are good for: the experiments that its paper tells of and does not draw (Fan and Golab: ALO-X10, ALO-X11, and
//! of ALO-X12 what there is here to compare).
//!
//! Cluster, network, workloads and costs are those of the [paper's figures](super::aloha). Each [`Ablation`] runs the same with one
//! part on and off, or one number varied:
//!
//! - [`Ablation::Epochs`]: the length of an epoch, for both engines (ALO-X10).
//! - [`Ablation::Straggler`]: what one partition says to the epoch manager is held up; with and without transactions that start
//!   without authorisation (ALO-X11 a).
//! - [`Ablation::Answers`]: calls that are acknowledged when they have their place, and when they are computed (ALO-X11 d).
//! - [`Ablation::OrderNumbers`]: how the keys that a New Order inserts are known, with ever fewer districts (ALO-X11 f). The optimistic
//!   form is also the nearest thing here to Hyder (ALO-X12).
//! - [`Ablation::Replicas`]: disks and replicas (ALO-X11 g).
//!
//! That functors are declared in three ways (ALO-X11 e) is in Figure 9.
//!
//! [`settings`] are the runs, [`measure_ablation`] makes one, [`csv`] and [`drawings`] show them, and [`judge`] holds what the paper
//! states, or what is expected, beside what was measured.

mod replicated;
mod report;
mod statements;
mod straggler;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::gateway::Counters;
use ordain_db::position::{NodeId, PartitionId};
use ordain_db::sequencer::{EpochOptions, EpochPolicy};
use ordain_workload::micro::Declare;
use ordain_workload::random::Chance;
use ordain_workload::tpcc::OrderNumbers;

use super::aloha::{
    ADAPTIVE, AlohaEffort, AlohaRun, AlohaSetting, AlohaWorkload, Drive, HIGH, LADDER, LOW, MANAGED, MEDIUM,
    Tables, climb, closed_loop, light_span, managed, plan, run_of,
};
use crate::plan::{ClientPlan, Plan, WorkloadPlan};
use crate::time::{MICROSECOND, SECOND};
use crate::world::World;

pub use report::{csv, drawings, peaks};
pub use statements::judge;

/// Lengths of an epoch, in milliseconds. 20 is that of the paper's `calvin`, 25 that of its `aloha`.
pub const LENGTHS: [u64; 6] = [5, 10, 15, 20, 25, 40];

/// How long the straggler is held up, in milliseconds; once not at all.
pub const STALLS: [u64; 5] = [0, 15, 30, 60, 120];

/// Calls outstanding at each node, of which the best counts ([`Drive::Climb`]): with the most of them there are enough for all lengths of
/// an epoch, and too many for what has conflicts. With a manager a client makes about one call in a period, so that few do little.
const WINDOWS_OF_EPOCHS: [u64; 5] = [16, 64, 256, 1_024, 4_096];

/// Periods before and while throughput is measured over the length of an epoch; at least.
const PERIODS_BEFORE: u64 = 4;
const PERIODS: u64 = 10;

/// Calls in a second and node: where a straggler is, and where answers are early. At light load for a New Order, half of what additions
/// as a whole do with much contention.
const RATE_OF_STRAGGLER: u64 = 10_000;
const RATES_OF_ANSWERS: [(AlohaWorkload, u64); 2] = [
    (AlohaWorkload::NewOrder { warehouses: 1 }, 2_000),
    (AlohaWorkload::Adds { declare: Declare::Whole, index: HIGH }, 4_000),
];

/// The same where calls wait for disks and replicas. Where they start over, there are as few as in the figures.
const WINDOWS_OF_REPLICAS: [u64; 5] = [16, 64, 256, 1_024, 4_096];

/// So many times as long as a run of the figures take those in which calls wait for long: for other attempts, disks and replicas.
const LONGER: u64 = 4;

/// Partitions of the cluster that may have replicas: with more it takes too many seeds until all leaders are in one replica.
const REPLICATED_NODES: u16 = 2;

/// An experiment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ablation {
    /// ALO-X10.
    Epochs,
    /// ALO-X11 a.
    Straggler,
    /// ALO-X11 d.
    Answers,
    /// ALO-X11 f.
    OrderNumbers,
    /// ALO-X11 g.
    Replicas,
}

impl Ablation {
    /// All of them.
    pub const ALL: [Ablation; 5] = [
        Ablation::Epochs,
        Ablation::Straggler,
        Ablation::Answers,
        Ablation::OrderNumbers,
        Ablation::Replicas,
    ];

    /// Its number among our requirements, as it is on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Ablation::Epochs => "x10",
            Ablation::Straggler => "x11a",
            Ablation::Answers => "x11d",
            Ablation::OrderNumbers => "x11f",
            Ablation::Replicas => "x11g",
        }
    }
}

impl std::str::FromStr for Ablation {
    type Err = String;

    fn from_str(name: &str) -> Result<Ablation, String> {
        let known = Ablation::ALL.into_iter().find(|ablation| ablation.name() == name);
        let names = || Ablation::ALL.map(Ablation::name).join(", ");
        known.ok_or_else(|| format!("there is no experiment {name:?}: give one of {}", names()))
    }
}

/// What keeps what is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Nothing, as in the paper's experiments: fault tolerance is off.
    Nowhere,
    /// The disk of the one node of each partition.
    OnDisk,
    /// The disks of a majority of three nodes of each partition.
    ByMajority,
    /// The disks of three nodes of each partition; the first is not waited for by the others.
    Asynchronously,
}

impl Kept {
    /// All of them.
    pub const ALL: [Kept; 4] = [Kept::Nowhere, Kept::OnDisk, Kept::ByMajority, Kept::Asynchronously];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kept::Nowhere => "off",
            Kept::OnDisk => "disk",
            Kept::ByMajority => "3 replicas",
            Kept::Asynchronously => "3 replicas, asynchronous",
        }
    }
}

/// What is varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Nothing but the length of the epoch. Latency is also measured at half of the throughput.
    Length,
    /// What one partition says to the epoch manager's host comes so many milliseconds late.
    Stalled(u64),
    /// Whether calls are acknowledged when they have their place.
    Early(bool),
    /// How the keys of New Orders are known.
    Numbers(OrderNumbers),
    /// What keeps what is ordered.
    Kept(Kept),
}

impl Variant {
    /// The name in tables.
    pub fn name(self) -> String {
        match self {
            Variant::Length => String::new(),
            Variant::Stalled(milliseconds) => format!("stalled {milliseconds} ms"),
            Variant::Early(true) => "early".to_owned(),
            Variant::Early(false) => "late".to_owned(),
            Variant::Numbers(OrderNumbers::Declared) => "key dependency".to_owned(),
            Variant::Numbers(OrderNumbers::Dependent) => "optimistic".to_owned(),
            Variant::Kept(kept) => kept.name().to_owned(),
        }
    }
}

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AblationSetting {
    /// What it is for.
    pub ablation: Ablation,
    /// The run as those of the figures are.
    pub base: AlohaSetting,
    /// What is varied.
    pub variant: Variant,
}

impl AblationSetting {
    /// How much there is to simulate, about.
    pub fn weight(&self) -> u64 {
        let replicas = if matches!(self.variant, Variant::Kept(_)) { 3 } else { 1 };
        self.base.epochs.microseconds * u64::from(self.base.nodes) * replicas
    }
}

/// What was counted in some runs, and is nothing in all others.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Details {
    /// Mean latency at half of the throughput, in microseconds.
    pub half_load_us_mean: f64,
    /// Mean time until calls were acknowledged, in microseconds.
    pub acknowledged_us_mean: f64,
    /// Attempts in a second that started over, as their footprint had changed.
    pub restarts: f64,
    /// Attempts in a second that declared more than was found, as those before them had missed.
    pub helped: f64,
    /// Calls that were given up, since the beginning.
    pub failed: u64,
    /// What the others started since the straggler was held up, by millisecond.
    pub starts: Vec<u64>,
    /// The longest time in which they started nothing, in milliseconds.
    pub longest_pause_ms: f64,
}

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct AblationPoint {
    /// What was measured.
    pub setting: AblationSetting,
    /// What came of it.
    pub run: AlohaRun,
    /// What else.
    pub details: Details,
}

/// All runs of some experiments, on clusters of `nodes` where there are no replicas.
pub fn settings(ablations: &[Ablation], nodes: u16) -> Vec<AblationSetting> {
    let mut all = Vec::new();
    for ablation in ablations {
        let mut add = |base: AlohaSetting, variant: Variant| {
            all.push(AblationSetting { ablation: *ablation, base, variant });
        };
        let aloha = |workload, epochs, drive| AlohaSetting {
            engine: EngineKind::Aloha,
            workload,
            nodes,
            epochs,
            drive,
        };
        match ablation {
            Ablation::Epochs => {
                for (engine, workload) in workloads_of_epochs() {
                    for length in LENGTHS {
                        let base = aloha(workload, managed(length), Drive::Climb(&WINDOWS_OF_EPOCHS));
                        add(AlohaSetting { engine, ..base }, Variant::Length);
                    }
                }
            }
            Ablation::Straggler => {
                let workload = AlohaWorkload::Adds { declare: Declare::Arithmetic, index: MEDIUM };
                for policy in [EpochPolicy::Managed, EpochPolicy::ManagedStrictly] {
                    let drive = Drive::Rate(RATE_OF_STRAGGLER);
                    let base = aloha(workload, EpochOptions { policy, ..MANAGED }, drive);
                    STALLS.into_iter().for_each(|stall| add(base, Variant::Stalled(stall)));
                }
            }
            Ablation::Answers => {
                for (workload, rate) in RATES_OF_ANSWERS {
                    for epochs in [ADAPTIVE, MANAGED] {
                        let base = aloha(workload, epochs, Drive::Rate(rate));
                        [false, true].into_iter().for_each(|early| add(base, Variant::Early(early)));
                    }
                }
            }
            Ablation::OrderNumbers => {
                for workload in workloads_of_orders() {
                    for numbers in [OrderNumbers::Declared, OrderNumbers::Dependent] {
                        let base = aloha(workload, ADAPTIVE, Drive::Climb(&LADDER));
                        add(base, Variant::Numbers(numbers));
                    }
                }
            }
            Ablation::Replicas => {
                for workload in workloads_of_replicas() {
                    let base = aloha(workload, ADAPTIVE, Drive::Climb(&WINDOWS_OF_REPLICAS));
                    let base = AlohaSetting { nodes: REPLICATED_NODES, ..base };
                    Kept::ALL.into_iter().for_each(|kept| add(base, Variant::Kept(kept)));
                }
            }
        }
    }
    all
}

/// What is run over the length of an epoch, on each engine.
fn workloads_of_epochs() -> [(EngineKind, AlohaWorkload); 4] {
    let orders = AlohaWorkload::NewOrder { warehouses: 10 };
    let adds = |declare| AlohaWorkload::Adds { declare, index: MEDIUM };
    [
        (EngineKind::Aloha, orders),
        (EngineKind::Calvin, orders),
        (EngineKind::Aloha, adds(Declare::Own)),
        (EngineKind::Calvin, adds(Declare::Whole)),
    ]
}

/// New Orders with ever fewer districts of a node: from 100 to one.
fn workloads_of_orders() -> [AlohaWorkload; 5] {
    let [many, some, few] = [10, 3, 1].map(|warehouses| AlohaWorkload::NewOrder { warehouses });
    [many, some, few, AlohaWorkload::Scaled { districts: 10 }, AlohaWorkload::Scaled { districts: 1 }]
}

fn workloads_of_replicas() -> [AlohaWorkload; 2] {
    [
        AlohaWorkload::NewOrder { warehouses: 10 },
        AlohaWorkload::Adds { declare: Declare::Arithmetic, index: LOW },
    ]
}

/// Runs one setting; there are several points where it is a [`Drive::Climb`].
///
/// # Errors
/// When the workload refuses the setting, it has no costs, or something is noticed that must not be.
pub fn measure_ablation(
    setting: &AblationSetting,
    tables: &Tables,
    effort: &AlohaEffort,
) -> Result<Vec<AblationPoint>, Error> {
    let run = |base: AlohaSetting| {
        let (run, details) = match setting.variant {
            Variant::Length => (over_length(&base, tables)?, Details::default()),
            Variant::Stalled(milliseconds) => straggler::measure(&base, milliseconds, tables)?,
            Variant::Early(early) => answered(&base, early, tables, effort)?,
            Variant::Numbers(numbers) => numbered(&base, numbers, tables, effort)?,
            Variant::Kept(kept) => (replicated::measure(&base, kept, tables, effort)?, Details::default()),
        };
        Ok::<_, Error>(AblationPoint { setting: AblationSetting { base, ..*setting }, run, details })
    };
    let Drive::Climb(ladder) = setting.base.drive else { return Ok(vec![run(setting.base)?]) };
    let mut points = climb(
        ladder,
        |point: &AblationPoint| point.run.throughput,
        |window| run(AlohaSetting { drive: Drive::Window(window), ..setting.base }),
    )?;
    if setting.variant == Variant::Length {
        let best = points
            .iter_mut()
            .reduce(|best, point| if point.run.throughput > best.run.throughput { point } else { best });
        if let Some(best) = best {
            best.details.half_load_us_mean = at_half_load(&best.setting.base, best.run.throughput, tables)?;
        }
    }
    Ok(points)
}

/// As many as there can be with so many calls outstanding, over whole periods.
fn over_length(base: &AlohaSetting, tables: &Tables) -> Result<AlohaRun, Error> {
    let period = base.epochs.microseconds * MICROSECOND;
    let plan = plan(base, tables)?;
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    let run = closed_loop(&mut world, base, (PERIODS_BEFORE * period, PERIODS * period), |_| ());
    settled(&world)?;
    Ok(run)
}

/// The mean latency with half of a throughput, in microseconds.
fn at_half_load(base: &AlohaSetting, throughput: f64, tables: &Tables) -> Result<f64, Error> {
    let period = base.epochs.microseconds * MICROSECOND;
    let half = (throughput / 2.0 / f64::from(base.nodes)).round() as u64;
    let setting = AlohaSetting { drive: Drive::Rate(half.max(1)), ..*base };
    // What one step says leaves at once only at light load.
    let plan = Plan { step_events: usize::MAX, ..plan(&setting, tables)? };
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    let measured = world.measure(PERIODS_BEFORE * period, PERIODS * period);
    settled(&world)?;
    Ok(measured.mean_us())
}

/// With calls that are acknowledged early, or when they are computed.
fn answered(
    base: &AlohaSetting,
    early: bool,
    tables: &Tables,
    effort: &AlohaEffort,
) -> Result<(AlohaRun, Details), Error> {
    let plan = plan(base, tables)?;
    let always = Chance::of_percent(100.0, "early answers")?;
    let clients = ClientPlan { early: early.then_some(always), ..plan.clients.clone() };
    let plan = Plan { clients, ..plan };
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    let span = light_span(base, effort);
    let measured = world.measure(span.warm_up, span.time);
    settled(&world)?;
    let sum: u64 = measured.acknowledgements.iter().sum();
    let mean = sum as f64 / MICROSECOND as f64 / measured.acknowledgements.len().max(1) as f64;
    let details = Details { acknowledged_us_mean: mean, ..Details::default() };
    Ok((run_of(&measured, span, base.nodes), details))
}

/// New Orders whose keys are known in one way or another.
fn numbered(
    base: &AlohaSetting,
    numbers: OrderNumbers,
    tables: &Tables,
    effort: &AlohaEffort,
) -> Result<(AlohaRun, Details), Error> {
    let mut plan = plan(base, tables)?;
    if let WorkloadPlan::Tpcc(options) = &mut plan.workload {
        options.order_numbers = numbers;
    }
    // Nobody measured a trial run of a New Order. It ends when it has the order's number, before it takes stock: it is given half
    // of the cost of a run.
    plan.costs.trial = plan.costs.executed_alone / 2;
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    let mut before = Counters::default();
    let times = (LONGER * effort.warm_up, LONGER * effort.time);
    let run = closed_loop(&mut world, base, times, |world| before = counted(world, base.nodes));
    settled(&world)?;
    let after = counted(&world, base.nodes);
    let per_second = |count: u64| count as f64 * SECOND as f64 / run.span.time as f64;
    let details = Details {
        restarts: per_second(after.restarts - before.restarts),
        helped: per_second(after.helped - before.helped),
        failed: after.failed,
        ..Details::default()
    };
    Ok((run, details))
}

/// What the nodes have counted so far.
fn counted(world: &World<'_>, nodes: u16) -> Counters {
    let mut sum = Counters::default();
    for node in (0..nodes).map(|partition| NodeId::first(PartitionId(partition))) {
        let own = world.status(node).map(|status| status.counters).unwrap_or_default();
        sum.restarts += own.restarts;
        sum.helped += own.helped;
        sum.failed += own.failed;
    }
    sum
}

/// That nothing was noticed that must not be.
fn settled(world: &World<'_>) -> Result<(), Error> {
    match world.problems() {
        [] => Ok(()),
        [problem, ..] => Err(Error::Invalid(problem.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    const EFFORT: AlohaEffort =
        AlohaEffort { warm_up: 10 * MILLISECOND, time: 20 * MILLISECOND, light_time: 60 * MILLISECOND };

    fn measured(
        ablation: Ablation,
        nodes: u16,
        chosen: impl Fn(&AblationSetting) -> bool,
    ) -> Vec<AblationPoint> {
        let all = settings(&[ablation], nodes).into_iter().flat_map(|setting| {
            let tries = setting.base.tries().into_iter();
            tries.map(move |base| AblationSetting { base, ..setting })
        });
        let tables = Tables::measured();
        all.filter(chosen).flat_map(|setting| measure_ablation(&setting, &tables, &EFFORT).unwrap()).collect()
    }

    #[test]
    fn experiments_are_named_by_their_numbers() {
        for ablation in Ablation::ALL {
            assert_eq!(ablation.name().parse(), Ok(ablation));
        }
        assert!("x11b".parse::<Ablation>().unwrap_err().contains("x11a, x11d"));
        let all = settings(&Ablation::ALL, 8);
        let count = |ablation| all.iter().filter(|setting| setting.ablation == ablation).count();
        assert_eq!(Ablation::ALL.map(count), [4 * 6, 2 * 5, 2 * 2 * 2, 5 * 2, 2 * 4]);
    }

    #[test]
    fn longer_epochs_take_longer() {
        let chosen = |setting: &AblationSetting| {
            matches!(setting.base.workload, AlohaWorkload::NewOrder { .. })
                && setting.base.engine == EngineKind::Aloha
                && [5_000, 25_000].contains(&setting.base.epochs.microseconds)
                && setting.base.drive == Drive::Window(1_024)
        };
        let points = measured(Ablation::Epochs, 2, chosen);
        let [short, long] = points.as_slice() else { panic!("{points:?}") };
        assert!(short.run.throughput > 10_000.0 && long.run.throughput > 10_000.0, "{points:?}");
        let tables = Tables::measured();
        let late = [short, long]
            .map(|point| at_half_load(&point.setting.base, point.run.throughput, &tables).unwrap() / 1e3);
        assert!((2.5..9.0).contains(&late[0]) && late[1] > 12.5, "{late:?}");
    }

    /// All windows of a climb are measured, and latency at half load at the best of them alone.
    #[test]
    fn a_climb_finds_its_best() {
        let of = |setting: &AblationSetting| {
            setting.base.engine == EngineKind::Calvin && setting.base.epochs.microseconds == 5_000
        };
        let setting = settings(&[Ablation::Epochs], 2).into_iter().find(of).unwrap();
        let base = AlohaSetting { drive: Drive::Climb(&[16, 64]), ..setting.base };
        let points =
            measure_ablation(&AblationSetting { base, ..setting }, &Tables::measured(), &EFFORT).unwrap();
        let windows: Vec<Drive> = points.iter().map(|point| point.setting.base.drive).collect();
        assert!(windows.len() >= 3 && windows[0] == Drive::Window(16), "{windows:?}");
        let best = report::best(points.iter()).unwrap();
        assert!(points.iter().all(|point| (point.details.half_load_us_mean > 0.0) == (point == best)));
    }

    /// Who holds to the bound of the paper goes on starting for up to a period more.
    #[test]
    fn the_others_start_for_a_while_although_one_straggles() {
        let stalled = |setting: &AblationSetting| setting.variant == Variant::Stalled(60);
        let points = measured(Ablation::Straggler, 4, stalled);
        let [bounded, strict] = points.as_slice() else { panic!("{points:?}") };
        let pauses = [bounded, strict].map(|point| point.details.longest_pause_ms);
        assert!((35.0..=61.0).contains(&pauses[1]), "{pauses:?}");
        assert!((20.0..=26.0).contains(&(pauses[1] - pauses[0])), "{pauses:?}");
    }

    #[test]
    fn early_answers_come_before_late_ones() {
        let adaptive = |setting: &AblationSetting| setting.base.epochs == ADAPTIVE;
        for pair in measured(Ablation::Answers, 2, adaptive).chunks(2) {
            let [late, early] = pair else { panic!("{pair:?}") };
            assert_eq!(late.details.acknowledged_us_mean, 0.0);
            let acknowledged = early.details.acknowledged_us_mean;
            assert!(acknowledged > 100.0 && acknowledged < early.run.latency_us_mean, "{pair:?}");
        }
    }

    #[test]
    fn only_the_optimistic_form_starts_over() {
        let few = |setting: &AblationSetting| {
            setting.base.workload == AlohaWorkload::Scaled { districts: 1 }
                && setting.base.drive == Drive::Window(16)
        };
        let points = measured(Ablation::OrderNumbers, 2, few);
        let [functors, optimistic] = points.as_slice() else { panic!("{points:?}") };
        assert_eq!((functors.details.restarts, functors.details.failed), (0.0, 0));
        assert!(optimistic.details.restarts > 0.0 && optimistic.run.throughput > 0.0, "{optimistic:?}");
        assert!(functors.run.throughput > optimistic.run.throughput, "{points:?}");
    }

    #[test]
    fn keeping_what_is_ordered_takes_time() {
        let chosen = |setting: &AblationSetting| {
            matches!(setting.base.workload, AlohaWorkload::Adds { .. })
                && setting.base.drive == Drive::Window(64)
                && setting.variant != Variant::Kept(Kept::Asynchronously)
        };
        let points = measured(Ablation::Replicas, 2, chosen);
        let late: Vec<f64> = points.iter().map(|point| point.run.latency_us_mean).collect();
        assert!(late.len() == 3 && late.is_sorted() && late[0] > 100.0, "{late:?}");
    }
}
