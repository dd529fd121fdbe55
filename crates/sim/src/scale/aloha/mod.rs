//! `aloha` against `calvin`, as its paper compares them (Fan and Golab §V: ALO-X01 to ALO-X09, ALO-X11 e).
//!
//! The cluster, the network and the workload are the same for both engines, and so is all of the code but the engine. All transactions
//! are distributed. Each node has a machine with one core, where the paper's have eight. Clients stand beside their node and cost
//! nothing. Nodes have no disks and no replicas, as fault tolerance is off in the paper (§V-A2). 1 % of New Orders abort with both.
//!
//! - [`Figure`]: the paper's figures; [`settings()`] are the runs that they need, [`light_settings`] those at light load, which follow from
//!   what the others came to; [`measure_aloha`] runs one. [`Drive::Climb`] finds the most that is possible, [`peaks`] tells which
//!   of the most might not be it.
//! - [`Tables`]: what each engine's transactions cost, measured for each engine and procedure.
//! - [`csv`] and [`drawings`]: as a table, and drawn as the paper does. [`breakdown`] are the bars of Figure 10.
//! - [`judge`]: what the paper states beside what was measured.

mod climb;
mod participants;
mod report;
mod settings;
mod statements;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::limits::{EPOCH_MICROSECONDS_DEFAULT, MANAGED_EPOCH_MICROSECONDS_DEFAULT};
use ordain_db::sequencer::{EpochOptions, EpochPolicy};
use ordain_workload::micro::{self, Declare};
use ordain_workload::tpcc;

use super::cluster::cluster;
use super::costs::{Costed, costs_from};
use super::{Benchmark, evaluation};
use crate::machine::cost::CostTable;
use crate::plan::{ClientPlan, Plan, WorkloadPlan};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};
use crate::world::stages::StageTimes;
use crate::world::{Measured, World};

pub(super) use climb::{Place, at_rate, climb, closed_loop, light_span, tell};
pub use climb::{Span, peaks};
pub use report::{breakdown, csv, drawings};
pub(super) use report::{name_of, named};
pub(super) use settings::{declares, managed};
pub use settings::{light_settings, settings};
pub use statements::judge;

/// The engines that are compared.
pub const ENGINES: [EngineKind; 2] = [EngineKind::Aloha, EngineKind::Calvin];

/// Nodes of the paper's cluster, where their number does not vary (§V-A3).
pub const NODES: u16 = 8;

/// Sizes of clusters of Figure 8; the paper goes up to 20.
pub const SIZES: [u16; 5] = [2, 4, 8, 16, 20];

/// Warehouses of a node in Figures 6 and 8, and in Figure 7; or districts of the one warehouse that is spread over all.
pub const FEW_AND_MANY: [u32; 2] = [1, 10];
/// See [`FEW_AND_MANY`].
pub const GRANULARITIES: [u32; 4] = [1, 3, 5, 10];

/// Contention indexes of Figure 9: the paper's low, medium and high ones (§V-C), where its Calvin begins to fall, and one between.
pub const INDEXES: [f64; 5] = [LOW, MEDIUM, 0.0017, 0.01, HIGH];
/// See [`INDEXES`].
pub const LOW: f64 = 0.0001;
/// See [`INDEXES`].
pub const MEDIUM: f64 = 0.001;
/// See [`INDEXES`].
pub const HIGH: f64 = 0.1;

/// Lengths of an epoch of Figure 11, in milliseconds; the paper's axis is not in its text. 25 is its default, and 20 that of its Calvin.
pub const LENGTHS: [u64; 5] = [5, 10, 20, 25, 50];

/// Epochs where nothing else is said: those that the database makes by itself, which close by the work that there is.
pub const ADAPTIVE: EpochOptions =
    EpochOptions { policy: EpochPolicy::Adaptive, microseconds: EPOCH_MICROSECONDS_DEFAULT };

/// The paper's epochs, of its length (§V-A2): in Figure 10, and in Figure 11 among others.
pub const MANAGED: EpochOptions =
    EpochOptions { policy: EpochPolicy::Managed, microseconds: MANAGED_EPOCH_MICROSECONDS_DEFAULT };

/// Calls outstanding at each node in Figures 6 to 9, from light load to more than is good: they are tried one after the other, and
/// then half and twice as many as at the best of them ([`Drive::Climb`]).
pub const LADDER: [u64; 6] = [1, 4, 16, 64, 256, 1_024];

/// Light load, as a share of the most that is possible (§V-C1).
pub const LIGHT: f64 = 0.05;

/// Calls that a client leaves unanswered before it makes no more, at light load: far more than a node that keeps up has.
const OUTSTANDING_MAX: u64 = 4_000;

/// Records that each node has beyond the contended ones, as in the [`evaluation`]; the paper has a million.
const COLD_RECORDS: u64 = evaluation::COLD_RECORDS;

/// Rows of the scaled-down TPC-C. Two orders of one warehouse share a stock row no more often than a district. Where one warehouse is
/// spread over all nodes, so many items are on each.
const ITEMS: u32 = 1_000;
const CUSTOMERS_PER_DISTRICT: u32 = 30;
const ORDERS_PER_DISTRICT: u32 = 3;

/// The tables that are used when no others are given. A test holds that they can be read.
pub(super) const MEASURED: &str = include_str!("costs.toml");

/// A figure of the paper, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Figure {
    /// 6: throughput and latency.
    Latency,
    /// 7: warehouses or districts of a node.
    Granularity,
    /// 8: nodes.
    ScaleOut,
    /// 9: the contention index.
    Contention,
    /// 10: stages of a call.
    Breakdown,
    /// 11: the length of an epoch.
    Epochs,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 6] = [
        Figure::Latency,
        Figure::Granularity,
        Figure::ScaleOut,
        Figure::Contention,
        Figure::Breakdown,
        Figure::Epochs,
    ];

    /// Its number in the paper.
    pub fn number(self) -> u8 {
        6 + self as u8
    }
}

impl std::str::FromStr for Figure {
    type Err = String;

    fn from_str(number: &str) -> Result<Figure, String> {
        let known = Figure::ALL.into_iter().find(|figure| figure.number().to_string() == number);
        known.ok_or_else(|| format!("the paper has no figure {number:?} of an experiment: give 6 to 11"))
    }
}

/// What is called. All transactions touch several nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AlohaWorkload {
    /// New Orders that take stock from another node's warehouse.
    NewOrder {
        /// Of each node.
        warehouses: u32,
    },
    /// Payments of a customer, by number, of another node's warehouse.
    Payment {
        /// Of each node.
        warehouses: u32,
    },
    /// New Orders of one warehouse that is spread over all nodes, by district and by item.
    Scaled {
        /// Of each node.
        districts: u16,
    },
    /// Additions to ten records of two nodes.
    Adds {
        /// How they are declared; `calvin` runs them as a whole.
        declare: Declare,
        /// One over the contended records of each node.
        index: f64,
    },
}

impl AlohaWorkload {
    /// Additions as an engine is given them: `calvin` knows no functors.
    fn adds(engine: EngineKind, declare: Declare, index: f64) -> AlohaWorkload {
        let declare = if engine == EngineKind::Aloha { declare } else { Declare::Whole };
        AlohaWorkload::Adds { declare, index }
    }

    /// What its costs were measured with.
    fn benchmark(self) -> Benchmark {
        match self {
            // The same procedure, with other participants.
            AlohaWorkload::NewOrder { .. } | AlohaWorkload::Scaled { .. } => Benchmark::NewOrder,
            AlohaWorkload::Payment { .. } => Benchmark::Payment,
            AlohaWorkload::Adds { declare: Declare::Arithmetic, .. } => Benchmark::AddsArithmetic,
            AlohaWorkload::Adds { declare: Declare::Own, .. } => Benchmark::AddsOwn,
            AlohaWorkload::Adds { declare: Declare::Whole, .. } => Benchmark::AddsWhole,
        }
    }

    fn plan(self, nodes: u16) -> WorkloadPlan {
        let tpcc = |new_orders: f64, warehouses: u32| {
            WorkloadPlan::Tpcc(tpcc::Options {
                sites: nodes,
                warehouses: warehouses * u32::from(nodes),
                items: ITEMS,
                customers_per_district: CUSTOMERS_PER_DISTRICT,
                orders_per_district: ORDERS_PER_DISTRICT,
                mix: tpcc::Mix::NewOrderPayment(new_orders),
                remote: tpcc::Remote::Orders(100.0),
                payment_remote_percent: 100.0,
                by_name_percent: 0.0,
                ..tpcc::Options::default()
            })
        };
        match self {
            AlohaWorkload::NewOrder { warehouses } => tpcc(100.0, warehouses),
            AlohaWorkload::Payment { warehouses } => tpcc(0.0, warehouses),
            AlohaWorkload::Scaled { districts } => WorkloadPlan::Tpcc(tpcc::Options {
                sites: nodes,
                layout: tpcc::Layout::DistrictsAndItems,
                warehouses: 1,
                items: ITEMS * u32::from(nodes),
                districts_per_warehouse: districts * nodes,
                customers_per_district: CUSTOMERS_PER_DISTRICT,
                orders_per_district: ORDERS_PER_DISTRICT,
                ..tpcc::Options::default()
            }),
            AlohaWorkload::Adds { declare, index } => WorkloadPlan::Micro(micro::Options {
                sites: nodes,
                records: u64::from(nodes) * ((1.0 / index).round() as u64 + COLD_RECORDS),
                contention_index: index,
                multi_partition_percent: 100.0,
                adds: Some(declare),
                ..micro::Options::default()
            }),
        }
    }
}

/// How hard a cluster is driven.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Drive {
    /// As hard as gives the most: these numbers of calls outstanding at each node are tried, ascending, until two in a row do clearly less
    /// than the best, and then half and twice as many as at the best. Each is a [`Window`](Drive::Window) of its own.
    Climb(&'static [u64]),
    /// So many calls are outstanding at each node.
    Window(u64),
    /// So many calls come to each node in a second, at random times.
    Rate(u64),
}

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AlohaSetting {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// What is called.
    pub workload: AlohaWorkload,
    /// Number of nodes.
    pub nodes: u16,
    /// How epochs are made.
    pub epochs: EpochOptions,
    /// How hard.
    pub drive: Drive,
}

/// The result of one setting.
#[derive(Clone, PartialEq, Debug)]
pub struct AlohaPoint {
    /// What was measured.
    pub setting: AlohaSetting,
    /// What came of it.
    pub run: AlohaRun,
    /// Nodes that take part in a transaction, in the mean (ALO-X02).
    pub participants: f64,
}

/// What came of a run. Times are virtual.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct AlohaRun {
    /// Transactions per second over all nodes, each counted once (trap T-25).
    pub throughput: f64,
    /// Mean latency in microseconds, from the client's call to its answer.
    pub latency_us_mean: f64,
    /// Median latency in microseconds.
    pub latency_us_p50: u64,
    /// 99th percentile of the latency, in microseconds.
    pub latency_us_p99: u64,
    /// Share of the measured time in which the nodes' cores were busy, in percent.
    pub busy_percent: f64,
    /// Where the time of calls went, at a [`Rate`](Drive::Rate).
    pub stages: StageTimes,
    /// How long it was measured, and after how long.
    pub span: Span,
}

/// How long each point is measured, in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlohaEffort {
    /// Before measuring; at least, for twice the mean latency goes by in any case.
    pub warm_up: Nanoseconds,
    /// Measuring; at least, for the mean latency is measured in any case.
    pub time: Nanoseconds,
    /// Measuring at light load, where there are few calls.
    pub light_time: Nanoseconds,
}

impl Default for AlohaEffort {
    fn default() -> AlohaEffort {
        AlohaEffort { warm_up: 40 * MILLISECOND, time: 40 * MILLISECOND, light_time: 300 * MILLISECOND }
    }
}

/// Measured costs by engine and workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables(Vec<(Costed, CostTable)>);

impl Tables {
    /// What the experiments need.
    fn needed() -> impl Iterator<Item = Costed> {
        let aloha = [
            Benchmark::NewOrder,
            Benchmark::Payment,
            Benchmark::AddsArithmetic,
            Benchmark::AddsOwn,
            Benchmark::AddsWhole,
        ];
        let calvin = [Benchmark::NewOrder, Benchmark::Payment, Benchmark::AddsWhole];
        let aloha = aloha.map(|workload| (EngineKind::Aloha, workload));
        aloha.into_iter().chain(calvin.map(|workload| (EngineKind::Calvin, workload)))
    }

    /// Those of a file that `ordain sim calibrate` wrote.
    ///
    /// # Errors
    /// When the text is no such file, or a table is missing.
    pub fn read(text: &str) -> Result<Tables, String> {
        let read = |of: Costed| Ok((of, costs_from(text, of)?));
        Ok(Tables(Tables::needed().map(read).collect::<Result<_, String>>()?))
    }

    /// Those that were measured for this version.
    ///
    /// # Panics
    /// Never: a test reads the file.
    pub fn measured() -> Tables {
        Tables::read(MEASURED).expect("the file beside this one has all tables")
    }

    pub(super) fn of(&self, engine: EngineKind, workload: AlohaWorkload) -> Result<CostTable, Error> {
        let of = (engine, workload.benchmark());
        let table = self.0.iter().find(|(other, _)| *other == of).map(|(_, table)| *table);
        table
            .ok_or_else(|| Error::Invalid(format!("there are no costs of {workload:?} on {}", engine.name())))
    }
}

/// Runs one setting; there are several points where it is a [`Drive::Climb`].
///
/// # Errors
/// When the workload refuses the setting, or it has no costs.
pub fn measure_aloha(
    setting: &AlohaSetting,
    tables: &Tables,
    effort: &AlohaEffort,
) -> Result<Vec<AlohaPoint>, Error> {
    let workload = setting.workload.plan(setting.nodes).build()?;
    let participants = participants::mean(&*workload, setting.nodes)?;
    let run = |setting: AlohaSetting| {
        let plan = plan(&setting, tables)?;
        let mut world = World::new(&plan, &*workload)?;
        let run = match setting.drive {
            Drive::Rate(_) => at_rate(&mut world, &setting, effort),
            _ => closed_loop(&mut world, &setting, (effort.warm_up, effort.time), |_| ()),
        };
        Ok::<_, Error>(AlohaPoint { setting, run, participants })
    };
    match setting.drive {
        Drive::Climb(ladder) => climb(
            ladder,
            |point: &AlohaPoint| point.run.throughput,
            |window| run(AlohaSetting { drive: Drive::Window(window), ..*setting }),
        ),
        _ => Ok(vec![run(*setting)?]),
    }
}

/// What came of so much time on so many nodes.
pub(super) fn run_of(run: &Measured, span: Span, nodes: u16) -> AlohaRun {
    let seconds = span.time as f64 / SECOND as f64;
    AlohaRun {
        throughput: run.latencies.len() as f64 / seconds,
        latency_us_mean: run.mean_us(),
        latency_us_p50: run.percentile_us(50),
        latency_us_p99: run.percentile_us(99),
        busy_percent: run.busy as f64 * 100.0 / (span.time as f64 * f64::from(nodes)),
        stages: run.stages,
        span,
    }
}

/// The highest throughput among the windows that were tried.
fn peak(points: &[AlohaPoint], engine: EngineKind, workload: AlohaWorkload, nodes: u16) -> Option<f64> {
    let of = |point: &&AlohaPoint| {
        let at = &point.setting;
        (at.engine, at.workload, at.nodes) == (engine, workload, nodes)
            && matches!(at.drive, Drive::Window(_))
    };
    let rates = points.iter().filter(of).map(|point| point.run.throughput);
    rates.max_by(f64::total_cmp).filter(|throughput| *throughput > 0.0)
}

pub(super) fn plan(setting: &AlohaSetting, tables: &Tables) -> Result<Plan, Error> {
    let AlohaSetting { engine, workload, nodes, epochs, drive } = *setting;
    let costs = tables.of(engine, workload)?;
    Ok(match drive {
        Drive::Climb(_) => return Err(Error::Invalid("a ladder is climbed window by window".to_owned())),
        Drive::Window(window) => {
            Plan { engine, epochs, ..cluster(nodes, workload.plan(nodes), costs, window) }
        }
        Drive::Rate(rate) => {
            let base = cluster(nodes, workload.plan(nodes), costs, OUTSTANDING_MAX);
            // Pauses are even, up to twice their mean. Each message is a step of its own: what it says leaves at once.
            let clients = ClientPlan { think: 2 * SECOND / rate.max(1), ..base.clients.clone() };
            Plan { engine, epochs, clients, step_events: 1, ..base }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::stages::Stage;

    const EFFORT: AlohaEffort =
        AlohaEffort { warm_up: 10 * MILLISECOND, time: 20 * MILLISECOND, light_time: 50 * MILLISECOND };

    fn run(engine: EngineKind, workload: AlohaWorkload, drive: Drive) -> AlohaRun {
        let setting = AlohaSetting { engine, workload, nodes: 2, epochs: ADAPTIVE, drive };
        measure_aloha(&setting, &Tables::measured(), &EFFORT).unwrap()[0].run
    }

    #[test]
    fn figures_are_named_by_their_numbers() {
        let numbers: Vec<String> = Figure::ALL.iter().map(|figure| figure.number().to_string()).collect();
        assert_eq!(numbers, ["6", "7", "8", "9", "10", "11"]);
        for (number, figure) in numbers.iter().zip(Figure::ALL) {
            assert_eq!(number.parse(), Ok(figure));
        }
        assert!("5".parse::<Figure>().unwrap_err().contains("6 to 11"));
    }

    #[test]
    fn every_workload_runs_on_both_engines() {
        for engine in ENGINES {
            for workload in [
                AlohaWorkload::NewOrder { warehouses: 1 },
                AlohaWorkload::Payment { warehouses: 2 },
                AlohaWorkload::Scaled { districts: 1 },
                AlohaWorkload::adds(engine, Declare::Arithmetic, 0.01),
                AlohaWorkload::adds(engine, Declare::Own, 0.01),
                AlohaWorkload::adds(engine, Declare::Whole, 0.01),
            ] {
                let run = run(engine, workload, Drive::Window(32));
                assert!(
                    run.throughput > 1_000.0 && run.busy_percent > 1.0,
                    "{engine:?} {workload:?} {run:?}"
                );
                assert!(run.latency_us_mean > 100.0, "{run:?}");
                assert_eq!(run.stages, StageTimes::default());
            }
        }
    }

    /// Additions by functors read nothing from elsewhere, so that contention leaves them alone (trap T-23).
    #[test]
    fn functors_do_not_mind_contention() {
        let at = |engine, index| {
            run(engine, AlohaWorkload::adds(engine, Declare::Arithmetic, index), Drive::Window(128))
                .throughput
        };
        assert!(at(EngineKind::Aloha, 0.1) > 0.85 * at(EngineKind::Aloha, 0.001));
        assert!(at(EngineKind::Calvin, 0.1) < 0.85 * at(EngineKind::Calvin, 0.001));
    }

    #[test]
    fn the_stages_of_calls_add_up_to_their_latency() {
        for (engine, declare) in [
            (EngineKind::Aloha, Declare::Arithmetic),
            (EngineKind::Aloha, Declare::Whole),
            (EngineKind::Calvin, Declare::Whole),
        ] {
            let run = run(engine, AlohaWorkload::Adds { declare, index: 0.01 }, Drive::Rate(2_000));
            assert!((3_000.0..5_000.0).contains(&run.throughput), "{run:?}");
            let StageTimes { calls, .. } = run.stages;
            // Those on their way when the measurement began are not among them.
            assert!((calls as f64) > 0.9 * run.throughput * 0.05, "{run:?}");
            assert!((run.stages.total_us() / run.latency_us_mean - 1.0).abs() < 0.1, "{run:?}");
            let remote = run.stages.mean_us(Stage::RemoteReads);
            // Only who runs the procedure as a whole needs what others read.
            assert_eq!(remote > 50.0, declare == Declare::Whole, "{run:?}");
            assert!(run.stages.mean_us(Stage::Batches) > 50.0 && run.stages.mean_us(Stage::Processing) > 0.0);
        }
    }

    #[test]
    fn missing_tables_are_told() {
        let problem = Tables::read("").unwrap_err();
        assert!(problem.contains("--engine aloha"), "{problem}");
    }
}
