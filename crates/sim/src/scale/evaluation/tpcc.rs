//! TPC-C on all engines, over the share of transactions that touch a remote warehouse (Ren et al. §3.4, Figure 4: DET-X10, DET-52).
//!
//! Half of the transactions are New Orders and half are Payments, customers by number. Each partition has 20 warehouses. A New Order
//! updates one of the 200 districts of its partition, a Payment one of the 20 warehouses too, so that contended rows do not become
//! more as transactions span partitions: the other warehouse's part of a New Order is stock, that of a Payment a customer.
//!
//! Scaled down: a thousand items and thirty customers for each district, as in the scaling experiments; two orders share a stock
//! row no more often than a district.

use std::fmt::Write as _;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_workload::tpcc;

use super::figure_1::grows;
use super::report::{RUN_HEADER, axis, run_columns};
use super::{EvaluationEffort, Length, Run, SHARES, limits_of, run_plan};
use crate::machine::cost::{CostTable, LONG_WORK};
use crate::plan::{Plan, WorkloadPlan};
use crate::scale::cluster::{best, cluster};
use crate::scale::figure::{Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{CHANCE, Judgement, judgement, percent};

/// Nodes of the paper's cluster.
pub const NODES: u16 = 8;

/// Warehouses of each partition (DET-52).
pub const WAREHOUSES: u32 = 20;

/// Rows of the scaled-down population.
const ITEMS: u32 = 1_000;
const CUSTOMERS_PER_DISTRICT: u32 = 30;
const ORDERS_PER_DISTRICT: u32 = 3;

/// CPU of a transaction of one partition with `two-phase` over that with `calvin`: 8.40 us to 7.53 us, measured for real with `ordain
/// bench compare --entries calvin,two-phase --rounds 7 --seconds 1 tpcc --partitions 1 --warehouses 20 --items 1000 --customers 30
/// --new-order 50`.
const TWO_PHASE_COST: (u64, u64) = (840, 753);

/// The computation of a long transaction: as much as in the microbenchmark. The paper's TPC-C computes more than that for each lock.
const WORK: u64 = 10 * LONG_WORK;

/// What the engine that is behind still does at a lead of 5 to 4.
const FIVE_TO_FOUR: f64 = 0.8;

const FIGURE_4: (&str, &str) = ("DET-X10", "Ren et al. §3.4, Figure 4");

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TpccSetting {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// Whether transactions cost what was measured of New Orders, or compute as much as long ones besides.
    pub length: Length,
    /// Number of nodes.
    pub nodes: u16,
    /// Percentage of New Orders, and of Payments, that touch a warehouse of another node.
    pub remote_percent: f64,
}

/// The engines that are compared: those of whose locks it is known what they cost with TPC-C.
const ENGINES: [EngineKind; 3] =
    [EngineKind::Calvin, EngineKind::TwoPhase, EngineKind::TwoPhaseWithoutCommitProtocol];

/// The result of one setting.
#[derive(Clone, PartialEq, Debug)]
pub struct TpccPoint {
    /// What was measured.
    pub setting: TpccSetting,
    /// What came of it.
    pub run: Run,
}

/// All runs.
pub fn settings(nodes: u16) -> Vec<TpccSetting> {
    let mut all = Vec::new();
    for engine in ENGINES {
        for length in Length::ALL {
            let of = |remote_percent| TpccSetting { engine, length, nodes, remote_percent };
            all.extend(SHARES.map(of));
        }
    }
    all
}

/// What the parts of a step cost, from the measured costs of New Orders with `calvin`. Payments cost the same here. Locks are not
/// told apart.
fn costs_of(engine: EngineKind, length: Length, measured: &CostTable) -> CostTable {
    let alone = measured.request + measured.delivered + measured.executed_alone + measured.reply;
    let (two_phase, calvin) = TWO_PHASE_COST;
    let locks = if engine.is_ordered() { 0 } else { alone * two_phase / calvin - alone };
    let work = if length == Length::Long { WORK } else { 0 };
    measured.with_work(locks + work)
}

/// Runs one setting with every number of outstanding calls and of messages in a step, and takes the best. `measured` are the costs of New Orders.
///
/// # Errors
/// When the workload refuses the setting, or there is no number to try.
pub fn measure_tpcc(
    setting: &TpccSetting,
    measured: &CostTable,
    effort: &EvaluationEffort,
) -> Result<TpccPoint, Error> {
    let runs = effort.tries(setting.length).map(|(window, step_events)| {
        let network = effort.network();
        let plan = Plan { step_events, network, ..plan(setting, measured, window) };
        run_plan(&plan, effort, setting.length)
    });
    Ok(TpccPoint { setting: *setting, run: best(runs, |run| run.throughput)? })
}

fn plan(setting: &TpccSetting, measured: &CostTable, window: u64) -> Plan {
    let TpccSetting { engine, length, nodes, remote_percent } = *setting;
    let workload = WorkloadPlan::Tpcc(tpcc::Options {
        sites: nodes,
        warehouses: WAREHOUSES * u32::from(nodes),
        items: ITEMS,
        customers_per_district: CUSTOMERS_PER_DISTRICT,
        orders_per_district: ORDERS_PER_DISTRICT,
        mix: tpcc::Mix::NewOrderPayment(50.0),
        remote: tpcc::Remote::Orders(remote_percent),
        payment_remote_percent: remote_percent,
        by_name_percent: 0.0,
        ..tpcc::Options::default()
    });
    let base = cluster(nodes, workload, costs_of(engine, length, measured), window);
    Plan { engine, limits: limits_of(length), ..base }
}

/// A line for each point, in their order, under a line with the names of the columns.
pub fn csv(points: &[TpccPoint]) -> String {
    let mut out = format!("engine,acid,length,nodes,warehouses_per_node,remote_percent,{RUN_HEADER}\n");
    for TpccPoint { setting, run } in points {
        let TpccSetting { engine, length, nodes, remote_percent } = *setting;
        let acid = if engine.is_acid() { "yes" } else { "no" };
        let (engine, length, run) = (engine.name(), length.name(), run_columns(run));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{engine},{acid},{length},{nodes},{WAREHOUSES},{remote_percent},{run}");
    }
    out
}

/// Figure 4: a panel for each length, a line for each engine.
pub fn figure(points: &[TpccPoint], notes: &[String]) -> Figure {
    let panel = |length: Length| Panel {
        title: match length {
            Length::Short => "at measured costs".to_owned(),
            Length::Long => "with 150 us of computation".to_owned(),
        },
        x: axis("New Orders and Payments with a remote warehouse, %", Scale::Linear),
        y: axis("transactions/s", Scale::Linear),
        series: ENGINES
            .into_iter()
            .enumerate()
            .map(|(color, engine)| Series {
                name: engine.label().to_owned(),
                style: Style { color, shape: color },
                points: line(points, engine, length),
            })
            .collect(),
    };
    Figure {
        title: "TPC-C over the share of remote transactions".to_owned(),
        panels: Length::ALL.map(panel).to_vec(),
        notes: notes.to_vec(),
    }
}

/// Throughput over the percentage, ascending.
fn line(points: &[TpccPoint], engine: EngineKind, length: Length) -> Vec<(f64, f64)> {
    let of = |point: &&TpccPoint| (point.setting.engine, point.setting.length) == (engine, length);
    let place = |point: &TpccPoint| (point.setting.remote_percent, point.run.throughput);
    let mut line: Vec<(f64, f64)> = points.iter().filter(of).map(place).collect();
    line.sort_by(|one, other| one.0.total_cmp(&other.0));
    line
}

/// What the paper states of TPC-C, beside what was measured.
pub fn judge(points: &[TpccPoint]) -> Vec<Judgement> {
    Length::ALL.into_iter().flat_map(|length| judge_length(points, length)).collect()
}

fn judge_length(points: &[TpccPoint], length: Length) -> Vec<Judgement> {
    let calvin = line(points, EngineKind::Calvin, length);
    let two_phase = line(points, EngineKind::TwoPhase, length);
    let leads: Vec<(f64, f64)> = calvin
        .iter()
        .filter_map(|(percent, calvin)| {
            let (_, two_phase) = two_phase.iter().find(|(other, _)| other == percent)?;
            (*two_phase > 0.0).then(|| (*percent, calvin / two_phase))
        })
        .collect();
    let kept = |line: &[(f64, f64)]| Some(line.last()?.1 / line.first()?.1).filter(|kept| kept.is_finite());
    judge_figure_4(length, &leads, kept(&calvin).zip(kept(&two_phase)))
}

/// What the paper states of TPC-C with transactions of a length, beside what was simulated or measured for real: `calvin` over
/// `two-phase` at each percentage of remote transactions, ascending, and what `calvin` and `two-phase` keep of 0 at 100 %.
pub fn judge_figure_4(length: Length, leads: &[(f64, f64)], kept: Option<(f64, f64)>) -> Vec<Judgement> {
    let ends = leads.first().copied().zip(leads.last().copied());
    let ends = ends.filter(|(first, last)| (first.0, last.0) == (0.0, 100.0));
    let grow = grows(&leads.iter().map(|(_, lead)| *lead).collect::<Vec<f64>>());
    let each = leads.iter().map(|(percent, lead)| format!("{lead:.2} times at {percent} %"));
    let each = format!("calvin over two-phase: {}", each.collect::<Vec<_>>().join(", "));
    let say = |statement: &str, found| judgement(FIGURE_4, format!("{}: {statement}", length.name()), found);
    vec![
        say(
            "without remote transactions two-phase is ahead, by 5 to 4 at most",
            ends.map(|((_, lead), _)| {
                let measured = format!("calvin does {lead:.2} times what two-phase does");
                (measured, (FIVE_TO_FOUR..1.0 - CHANCE).contains(&lead))
            }),
        ),
        say(
            "calvin is ahead when all are remote",
            ends.map(|(_, (_, lead))| (each.clone(), lead > 1.0 + CHANCE)),
        ),
        say("the lead of calvin grows with the share", ends.map(|_| (each.clone(), grow))),
        say(
            "throughput falls with the share, for both",
            kept.map(|(one, other)| {
                let (calvin, two_phase) = (percent(one), percent(other));
                let measured = format!("left at 100 %: {calvin} with calvin, {two_phase} with two-phase");
                (measured, one < 1.0 - CHANCE && other < 1.0 - CHANCE)
            }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::breakdown::Breakdown;
    use super::*;
    use crate::scale::shapes::Verdict;
    use crate::scale::{Benchmark, costs};
    use crate::time::MILLISECOND;

    fn points(throughput: impl Fn(&TpccSetting) -> f64) -> Vec<TpccPoint> {
        let run = |setting: &TpccSetting| Run {
            window: 32,
            step_events: 1,
            throughput: throughput(setting),
            latency_us_p50: 1,
            latency_us_p99: 2,
            time: Breakdown::default(),
            restarts: 0.0,
            deadlocks: 0.0,
            measured: 50 * MILLISECOND,
        };
        settings(NODES).into_iter().map(|setting| TpccPoint { run: run(&setting), setting }).collect()
    }

    fn verdicts(points: &[TpccPoint]) -> Vec<Verdict> {
        judge(points).iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn lines_are_judged_and_drawn() {
        use Verdict::{Differs, Holds, NotMeasured};
        let stated = points(|setting| match setting.engine {
            EngineKind::Calvin => 80.0 - 0.2 * setting.remote_percent,
            _ => 100.0 - 0.6 * setting.remote_percent,
        });
        assert_eq!(verdicts(&stated), [Holds; 8]);
        let other = points(|setting| match setting.engine {
            EngineKind::Calvin => 101.0,
            _ => 100.0,
        });
        assert_eq!(verdicts(&other), [Differs; 8]);
        let too_far = points(|setting| match setting.engine {
            EngineKind::Calvin => 78.0 - 0.2 * setting.remote_percent,
            _ => 100.0 - 0.6 * setting.remote_percent,
        });
        assert_eq!(verdicts(&too_far), [Differs, Holds, Holds, Holds].repeat(2), "more than 5 to 4");
        let falls_back = points(|setting| match setting.engine {
            EngineKind::Calvin if setting.remote_percent == 50.0 => 130.0,
            EngineKind::Calvin => 80.0 - 0.2 * setting.remote_percent,
            _ => 100.0 - 0.6 * setting.remote_percent,
        });
        assert_eq!(verdicts(&falls_back), [Holds, Holds, Differs, Holds].repeat(2), "not all along");
        assert_eq!(verdicts(&[]), [NotMeasured; 8]);
        let text = csv(&stated);
        let columns = text.lines().next().map(|line| line.split(',').count());
        assert!(text.lines().all(|line| Some(line.split(',').count()) == columns));
        assert_eq!(text.lines().count(), 1 + 3 * 2 * SHARES.len());
        let figure = figure(&stated, &[]);
        assert!(figure.panels.iter().all(|panel| panel.series.iter().all(|line| line.points.len() == 6)));
        assert!(figure.svg().contains("(not ACID)"));
    }

    /// Two nodes run both kinds of transactions with every engine, near or far.
    #[test]
    fn all_engines_run_it() {
        let effort = EvaluationEffort {
            warm_up: 10 * MILLISECOND,
            time: 100 * MILLISECOND,
            windows_long: vec![16],
            ..EvaluationEffort::default()
        };
        for engine in ENGINES {
            let run = |remote_percent| {
                let setting = TpccSetting { engine, length: Length::Long, nodes: 2, remote_percent };
                measure_tpcc(&setting, &costs(Benchmark::NewOrder), &effort).unwrap().run
            };
            let (near, far) = (run(0.0), run(100.0));
            // 170 us at least for each, and twice if two nodes execute it.
            assert!((5_000.0..11_800.0).contains(&near.throughput), "{near:?}");
            assert!((1_000.0..near.throughput).contains(&far.throughput), "{far:?}");
        }
    }
}
