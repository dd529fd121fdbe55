//! All five transactions of TPC-C on every engine, on one partition and on four, under faults: its conditions hold in the end.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use ordain_db::engine::EngineKind;
use ordain_db::message::Operation;
use ordain_db::procedure::ProcedureId;
use ordain_sim::history::Invocation;
use ordain_sim::plan::{Plan, WorkloadKind, WorkloadPlan};
use ordain_sim::run::observe;
use ordain_sim::swarm::{Fixed, draw};
use ordain_workload::Mode;
use ordain_workload::tpcc::{Deliveries, Layout, Mix};

const ENGINES: [EngineKind; 5] =
    [EngineKind::Serial, EngineKind::Calvin, EngineKind::CalvinVll, EngineKind::Aloha, EngineKind::TwoPhase];

/// Seeds of each engine and number of partitions.
const SEEDS: u64 = 4;

/// New Order, Payment, Order-Status, Delivery and Stock-Level.
const TRANSACTIONS: usize = 5;

/// TPC-C's consistency conditions (clause 3.3.2).
const CONDITIONS: usize = 12;

fn plan(seed: u64, engine: EngineKind, partitions: u16) -> Plan {
    let workload = Some(WorkloadKind::Tpcc);
    let fixed = Fixed { engine: Some(engine), partitions: Some(partitions), workload, ..Fixed::default() };
    let mut plan = draw(seed, &fixed);
    let WorkloadPlan::Tpcc(options) = &mut plan.workload else { panic!("{plan}") };
    if options.layout == Layout::DistrictsAndItems {
        // The scaled form has New Orders alone.
        options.layout = Layout::Warehouses;
        options.warehouses = u32::from(options.sites);
        options.districts_per_warehouse /= options.sites;
    }
    // Both ways, whatever the seed.
    let deliveries = if seed.is_multiple_of(2) { Deliveries::Dependent } else { Deliveries::Declared };
    options.mix = Mix::Full { reads: Mode::Ordered, deliveries };
    plan
}

fn procedure_that_committed(invocation: &Invocation) -> Option<ProcedureId> {
    let Operation::Call { procedure, .. } = &invocation.operation else { return None };
    matches!(invocation.end(), Some((_, Ok(_)))).then_some(*procedure)
}

#[test]
fn the_conditions_hold_on_every_engine_under_faults() {
    for engine in ENGINES {
        for partitions in [1, 4] {
            let (mut crashes, mut checked) = (0, 0);
            let mut committed = BTreeSet::new();
            for seed in 0..SEEDS {
                let plan = plan(seed, engine, partitions);
                let workload = plan.workload.build().unwrap();
                let (report, history) = observe(&plan, &*workload).unwrap();
                assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
                crashes += report.happened.crashes;
                let history = history.unwrap();
                committed.extend(history.requests.values().filter_map(procedure_that_committed));
                // A node may lawfully refuse a disk that a fault has damaged, which ends the run.
                if report.halted.is_none() {
                    let conditions = history.conditions;
                    let numbered = conditions.iter().filter(|line| line.condition.starts_with("3.3.2."));
                    assert_eq!(numbered.count(), CONDITIONS, "{conditions:#?}");
                    checked += 1;
                }
            }
            assert!(
                crashes > 0 && 2 * checked >= SEEDS,
                "{engine:?}, {partitions}: {crashes} crashes, {checked} checked"
            );
            assert_eq!(committed.len(), TRANSACTIONS, "{engine:?}, {partitions}: {committed:?}");
        }
    }
}
