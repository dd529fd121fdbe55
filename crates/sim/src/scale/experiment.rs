//! Runs the points of the scaling experiments: clusters without faults, at full load, in virtual time.

use ordain_db::error::Error;
use ordain_workload::{micro, tpcc};

use super::cluster::{best, cluster};
use super::{Benchmark, Point};
use crate::machine::cost::CostTable;
use crate::network::NetworkOptions;
use crate::network::topology::Topology;
use crate::plan::{ClientPlace, ClientPlan, Plan, WorkloadPlan};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};
use crate::world::World;

/// Sizes of clusters: 1 to 100 nodes, as in the paper's figures.
pub const NODES: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 100];

/// Contention indexes of the scaling curves.
pub const CONTENTION_INDEXES: [f64; 3] = [0.0001, 0.001, 0.01];

/// Percentages of multi-partition transactions of the scaling curves.
pub const MULTI_PARTITION_PERCENTS: [f64; 3] = [0.0, 10.0, 100.0];

/// Sizes and indexes of the slowdown under contention (Calvin §6.3, CAL-X11).
const SLOWDOWN_NODES: [u16; 2] = [4, 8];
const SLOWDOWN_INDEXES: [f64; 5] = [0.0001, 0.001, 0.01, 0.1, 1.0];

/// Records of a node, hot and cold, beyond those of the contended set.
const COLD_RECORDS: u64 = 20_000;

/// Items of the scaled-down TPC-C, and customers and old orders of a district. With so many items two orders of one
/// warehouse share a stock row no more often than a district, so that districts decide the contention, as they do in full size.
const ITEMS: u32 = 1_000;
const CUSTOMERS_PER_DISTRICT: u32 = 3;

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// The workload.
    pub workload: Benchmark,
    /// Number of nodes.
    pub nodes: u16,
    /// See [`Point::contention_index`].
    pub contention_index: f64,
    /// See [`Point::multi_partition_percent`].
    pub multi_partition_percent: f64,
}

/// How long and how hard each point is driven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Virtual time before measuring.
    pub warm_up: Nanoseconds,
    /// Virtual time of measuring.
    pub time: Nanoseconds,
    /// Calls that the client of each node has outstanding: each is tried, and the best counts. Few leave nodes idle while
    /// epochs are on their way; many make large batches, whose nodes wait longer for each other.
    pub windows: Vec<u64>,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { warm_up: 50 * MILLISECOND, time: 50 * MILLISECOND, windows: vec![256, 512, 1_024] }
    }
}

/// What the nodes run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hardware {
    /// Each node has a machine with a core for itself; machines are in one hall, and clients cost nothing.
    MachineEach,
    /// All nodes share one machine with so many cores with their clients, in one process.
    Shared {
        /// The cores.
        cores: u16,
    },
}

/// The largest clusters that run New Order at the lowest index: its thousand warehouses for each node take 350 MB.
const MANY_WAREHOUSES_NODES_MAX: u16 = 8;

/// All runs of the experiments on clusters of up to `nodes_max` nodes.
pub fn settings(nodes_max: u16) -> Vec<Setting> {
    let mut settings = Vec::new();
    for workload in Benchmark::SCALING {
        for contention_index in CONTENTION_INDEXES {
            for multi_partition_percent in MULTI_PARTITION_PERCENTS {
                let most = match (workload, contention_index < 0.001) {
                    (Benchmark::NewOrder, true) => nodes_max.min(MANY_WAREHOUSES_NODES_MAX),
                    _ => nodes_max,
                };
                let sizes = NODES.into_iter().filter(|nodes| *nodes <= most);
                settings.extend(sizes.map(|nodes| Setting {
                    workload,
                    nodes,
                    contention_index,
                    multi_partition_percent,
                }));
            }
        }
    }
    let workload = Benchmark::Micro;
    for nodes in SLOWDOWN_NODES.into_iter().filter(|nodes| *nodes <= nodes_max) {
        let further = SLOWDOWN_INDEXES.into_iter().filter(|index| !CONTENTION_INDEXES.contains(index));
        settings.extend(further.map(|contention_index| Setting {
            workload,
            nodes,
            contention_index,
            multi_partition_percent: 100.0,
        }));
    }
    settings
}

/// Runs one point: the most that the cluster does with any of the windows.
///
/// # Errors
/// When the workload refuses the setting, or there is no window.
pub fn measure(
    setting: &Setting,
    costs: &CostTable,
    hardware: Hardware,
    effort: &Effort,
) -> Result<Point, Error> {
    let points =
        effort.windows.iter().map(|window| measure_window(setting, costs, hardware, effort, *window));
    best(points, |point| point.throughput)
}

fn measure_window(
    setting: &Setting,
    costs: &CostTable,
    hardware: Hardware,
    effort: &Effort,
    window: u64,
) -> Result<Point, Error> {
    let plan = plan(setting, costs, hardware, window);
    let workload = plan.workload.build()?;
    let mut world = World::new(&plan, &*workload)?;
    let measured = world.measure(effort.warm_up, effort.time);
    let seconds = effort.time as f64 / SECOND as f64;
    Ok(Point {
        workload: setting.workload,
        nodes: setting.nodes,
        contention_index: setting.contention_index,
        multi_partition_percent: setting.multi_partition_percent,
        throughput: measured.latencies.len() as f64 / seconds,
        latency_us_p50: measured.percentile_us(50),
        latency_us_p99: measured.percentile_us(99),
        busy_percent: measured.busy as f64 * 100.0 / (effort.time as f64 * f64::from(setting.nodes)),
    })
}

fn plan(setting: &Setting, costs: &CostTable, hardware: Hardware, window: u64) -> Plan {
    let Setting { nodes, .. } = *setting;
    let (machines, cores, topology, place) = match hardware {
        Hardware::MachineEach => (nodes, 1, Topology::lan(), ClientPlace::Beside),
        Hardware::Shared { cores } => (1, cores, Topology::local(), ClientPlace::OnCores),
    };
    let base = cluster(nodes, workload(setting), *costs, window);
    Plan {
        machines,
        cores,
        clients: ClientPlan { place, ..base.clients },
        network: NetworkOptions::reliable(topology),
        ..base
    }
}

fn workload(setting: &Setting) -> WorkloadPlan {
    let Setting { workload, nodes, contention_index, multi_partition_percent } = *setting;
    let contended = (1.0 / contention_index).round() as u64;
    match workload {
        Benchmark::Micro | Benchmark::AddsArithmetic | Benchmark::AddsOwn | Benchmark::AddsWhole => {
            WorkloadPlan::Micro(micro::Options {
                sites: nodes,
                records: u64::from(nodes) * (contended + COLD_RECORDS),
                contention_index,
                multi_partition_percent,
                adds: workload.adds(),
                ..micro::Options::default()
            })
        }
        Benchmark::NewOrder | Benchmark::Payment => {
            let defaults = tpcc::Options::default();
            let districts = u64::from(defaults.districts_per_warehouse);
            let warehouses = contended.div_ceil(districts) * u64::from(nodes);
            WorkloadPlan::Tpcc(tpcc::Options {
                sites: nodes,
                warehouses: warehouses as u32,
                items: ITEMS,
                customers_per_district: CUSTOMERS_PER_DISTRICT,
                orders_per_district: CUSTOMERS_PER_DISTRICT,
                mix: tpcc::Mix::NewOrderPayment(if workload == Benchmark::NewOrder { 100.0 } else { 0.0 }),
                remote: tpcc::Remote::Orders(multi_partition_percent),
                payment_remote_percent: multi_partition_percent,
                by_name_percent: 0.0,
                ..defaults
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cost::LONG_WORK;

    fn point(workload: Benchmark, nodes: u16, multi_partition_percent: f64, hardware: Hardware) -> Point {
        let contention_index = if workload == Benchmark::Micro { 0.001 } else { 0.01 };
        let setting = Setting { workload, nodes, contention_index, multi_partition_percent };
        let costs = CostTable {
            request: 1_000_000,
            executed_alone: 4_000_000,
            executed_together: 6_000_000,
            call: 5_000_000,
            ..CostTable::default()
        };
        let effort = Effort { warm_up: 5 * MILLISECOND, time: 20 * MILLISECOND, windows: vec![250, 1_000] };
        measure(&setting, &costs, hardware, &effort).unwrap()
    }

    #[test]
    fn a_busy_node_does_what_its_costs_allow() {
        for workload in Benchmark::SCALING {
            let one = point(workload, 1, 0.0, Hardware::MachineEach);
            // 5 us for each call.
            assert!((190_000.0..=210_000.0).contains(&one.throughput), "{one:?}");
            assert!((95.0..=101.0).contains(&one.busy_percent), "{one:?}");
            let two = point(workload, 2, 0.0, Hardware::MachineEach);
            assert!((1.8..=2.05).contains(&(two.throughput / one.throughput)), "{two:?}");
        }
        let apart = point(Benchmark::Micro, 2, 100.0, Hardware::MachineEach);
        // 1 us at one node and 6 us at both.
        assert!((120_000.0..=160_000.0).contains(&apart.throughput), "{apart:?}");
        assert!(apart.latency_us_p50 > 100 && apart.latency_us_p99 >= apart.latency_us_p50, "{apart:?}");
    }

    /// A "higher reading means that the work is missing": 15 us with each of ten records allow 6,667 transactions per second.
    #[test]
    fn long_transactions_are_as_long_as_their_work() {
        let setting = |nodes, percent| Setting {
            workload: Benchmark::Micro,
            nodes,
            contention_index: 0.0001,
            multi_partition_percent: percent,
        };
        let costs = CostTable { request: 1_000_000, executed_alone: 4_000_000, ..CostTable::default() };
        let costs = costs.with_work(10 * LONG_WORK);
        let effort = Effort { warm_up: 50 * MILLISECOND, time: 200 * MILLISECOND, windows: vec![20] };
        let throughput = |nodes, percent| {
            measure(&setting(nodes, percent), &costs, Hardware::MachineEach, &effort).unwrap().throughput
        };
        // 155 us for each.
        assert!((6_300.0..6_600.0).contains(&throughput(1, 0.0)), "{}", throughput(1, 0.0));
        // Both nodes do all of the work, so that two do no more than one, and less by what they wait for each other.
        let apart = throughput(2, 100.0);
        assert!((4_000.0..6_667.0).contains(&apart), "{apart}");
    }

    #[test]
    fn clients_on_the_machine_take_their_share() {
        let alone = point(Benchmark::Micro, 1, 0.0, Hardware::Shared { cores: 2 });
        // The client has the other core, and is as slow as the node.
        assert!((170_000.0..=205_000.0).contains(&alone.throughput), "{alone:?}");
        let two = point(Benchmark::Micro, 2, 0.0, Hardware::Shared { cores: 2 });
        // Two cores for 10 us of each call.
        assert!((170_000.0..=205_000.0).contains(&two.throughput), "{two:?}");
    }
}
