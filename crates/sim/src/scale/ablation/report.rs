//! What was measured of parts of `aloha`, as a table and drawn.

use std::fmt::Write as _;

use ordain_db::engine::EngineKind;
use ordain_db::sequencer::EpochPolicy;
use ordain_workload::tpcc::OrderNumbers;

use super::{Ablation, AblationPoint, AblationSetting, Details, Kept, LENGTHS, STALLS, Variant, managed};
use crate::scale::aloha::{AlohaRun, AlohaSetting, AlohaWorkload, Drive, Place, name_of, named, tell};
use crate::scale::figure::{Axis, Figure as Drawing, Panel, Scale, Series, Style};
use crate::time::MILLISECOND;

const HEADER: &str = "experiment,engine,workload,warehouses_or_districts_per_node,contention_index,nodes,epochs,epoch_ms,variant,\
                      outstanding,peak,offered_per_node_s,warm_up_ms,measured_ms,throughput_txn_s,latency_us_mean,latency_us_p50,latency_us_p99,busy_percent,\
                      half_load_us_mean,acknowledged_us_mean,restarts_s,helped_s,failed,longest_pause_ms\n";

/// The stall that is drawn over time.
const DRAWN_STALL: u64 = STALLS[3];

/// A line for each point, in their order, under a line with the names of the columns. What a column does not apply to is empty or 0.
pub fn csv(points: &[AblationPoint]) -> String {
    let mut out = HEADER.to_owned();
    for AblationPoint { setting, run, details } in points {
        let AblationSetting { ablation, base, variant } = setting;
        let (name, granularity, index) = named(base.workload);
        let (window, rate) = match base.drive {
            Drive::Window(window) => (window.to_string(), String::new()),
            Drive::Rate(rate) => (String::new(), rate.to_string()),
            // A climb has a point for each of its windows.
            Drive::Climb(_) => (String::new(), String::new()),
        };
        let peak = place_of(points, setting).map_or("", Place::name);
        let [warm_up, measured] = [run.span.warm_up, run.span.time].map(|time| time / MILLISECOND);
        let AlohaRun { throughput, latency_us_mean, latency_us_p50, latency_us_p99, busy_percent, .. } = run;
        let Details {
            half_load_us_mean,
            acknowledged_us_mean,
            restarts,
            helped,
            failed,
            longest_pause_ms,
            ..
        } = details;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{},{},{name},{granularity},{index},{},{},{},\"{}\",{window},{peak},{rate},{warm_up},{measured},{throughput:.1},\
             {latency_us_mean:.1},{latency_us_p50},{latency_us_p99},{busy_percent:.1},{half_load_us_mean:.1},{acknowledged_us_mean:.1},{restarts:.1},{helped:.1},{failed},\
             {longest_pause_ms}",
            ablation.name(),
            base.engine.name(),
            base.nodes,
            base.epochs.policy,
            base.epochs.microseconds as f64 / 1e3,
            variant.name(),
        );
    }
    out
}

/// Whether two runs are of one climb: they differ in how many calls are outstanding, and in nothing else.
fn are_beside(one: &AblationSetting, other: &AblationSetting) -> bool {
    let [first, second] =
        [one, other].map(|setting| AlohaSetting { drive: Drive::Window(0), ..setting.base });
    (one.ablation, one.variant, first) == (other.ablation, other.variant, second)
        && [one, other].iter().all(|setting| matches!(setting.base.drive, Drive::Window(_)))
}

/// Where a point stands among those of its climb, if it is the best of them.
fn place_of(points: &[AblationPoint], of: &AblationSetting) -> Option<Place> {
    let window = |setting: &AblationSetting| match setting.base.drive {
        Drive::Window(window) => Some(window),
        _ => None,
    };
    let beside = points.iter().filter(|point| are_beside(&point.setting, of));
    let runs = beside.filter_map(|point| Some((window(&point.setting)?, point.run.throughput)));
    let (best, place) = Place::of_best(runs)?;
    (window(of) == Some(best)).then_some(place)
}

/// How many of the peaks have less on both sides, and which are at an end of what was tried.
pub fn peaks(points: &[AblationPoint]) -> String {
    let all = || points.iter().filter_map(|point| Some((point, place_of(points, &point.setting)?)));
    let told = |setting: &AblationSetting| {
        let epochs = setting.base.epochs;
        let variant = match setting.variant {
            Variant::Length => format!("epochs of {} ms", epochs.microseconds as f64 / 1e3),
            other => other.name(),
        };
        format!("{} {}, {variant}", setting.ablation.name(), setting.base.told())
    };
    let ends = all().filter(|(_, place)| *place != Place::Peak);
    tell(all().count(), ends.map(|(point, place)| (told(&point.setting), place)))
}

/// The drawings of some experiments, each with the name of its file; `notes` say what was run. Answers have too few points to be
/// drawn.
pub fn drawings(
    points: &[AblationPoint],
    ablations: &[Ablation],
    notes: &[String],
) -> Vec<(&'static str, Drawing)> {
    let drawing = |title: &str, panels| Drawing { title: title.to_owned(), panels, notes: notes.to_vec() };
    let draw = |ablation: &Ablation| {
        Some(match ablation {
            Ablation::Epochs => {
                ("x10-epochs.svg", drawing("Over the length of an epoch", of_lengths(points)))
            }
            Ablation::Straggler => {
                let title = "What the others start while one partition straggles";
                ("x11a-straggler.svg", drawing(title, of_straggler(points)))
            }
            Ablation::OrderNumbers => {
                let title = "How New Orders get their numbers";
                ("x11f-order-numbers.svg", drawing(title, of_orders(points)))
            }
            Ablation::Replicas => ("x11g-replicas.svg", drawing("Fault tolerance", of_replicas(points))),
            Ablation::Answers => return None,
        })
    };
    ablations.iter().filter_map(draw).collect()
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn of(points: &[AblationPoint], ablation: Ablation) -> impl Iterator<Item = &AblationPoint> {
    points.iter().filter(move |point| point.setting.ablation == ablation)
}

/// A line with what some points show, ascending in x.
fn line<'a>(
    name: String,
    style: Style,
    points: impl Iterator<Item = &'a AblationPoint>,
    show: impl Fn(&AblationPoint) -> (f64, f64),
) -> Series {
    let mut places: Vec<(f64, f64)> = points.map(show).collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    Series { name, style, points: places }
}

/// The engines and their workloads, in the order of the points.
fn systems<'a>(points: impl Iterator<Item = &'a AblationPoint>) -> Vec<(EngineKind, AlohaWorkload)> {
    let mut systems = Vec::new();
    for point in points {
        let system = (point.setting.base.engine, point.setting.base.workload);
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    systems
}

fn of_lengths(points: &[AblationPoint]) -> Vec<Panel> {
    let all = || of(points, Ablation::Epochs);
    let length = |point: &AblationPoint| point.setting.base.epochs.microseconds as f64 / 1e3;
    let series = |show: &dyn Fn(&AblationPoint) -> f64| {
        let each = systems(all()).into_iter().enumerate();
        let each = each.map(|(number, (engine, workload))| {
            let name = match workload {
                AlohaWorkload::Adds { declare, .. } => format!("additions, {}", name_of(engine, declare)),
                _ => format!("New Orders, {}", engine.name()),
            };
            let own = LENGTHS.into_iter().filter_map(|length| {
                best(all().filter(|point| {
                    let base = &point.setting.base;
                    (base.engine, base.workload, base.epochs) == (engine, workload, managed(length))
                }))
            });
            let style = Style { color: number, shape: number };
            line(name, style, own, |point| (length(point), show(point)))
        });
        each.collect()
    };
    let panel = |title: &str, y: Axis, series| Panel {
        title: title.to_owned(),
        x: axis("length of an epoch, ms", Scale::Linear),
        y,
        series,
    };
    vec![
        panel(
            "throughput",
            axis("transactions/s", Scale::Logarithmic),
            series(&|point| point.run.throughput),
        ),
        panel(
            "latency at half of it",
            axis("mean latency, ms", Scale::Linear),
            series(&|point| point.details.half_load_us_mean / 1e3),
        ),
    ]
}

/// Whether transactions start without authorisation.
fn policy_name(policy: EpochPolicy) -> &'static str {
    match policy {
        EpochPolicy::ManagedStrictly => "strictly: not without authorisation",
        _ => "with the paper's bound",
    }
}

fn of_straggler(points: &[AblationPoint]) -> Vec<Panel> {
    let mut over_time = Vec::new();
    let mut over_stalls = Vec::new();
    for (number, policy) in [EpochPolicy::Managed, EpochPolicy::ManagedStrictly].into_iter().enumerate() {
        let style = Style { color: number, shape: number };
        let own = || {
            let own = of(points, Ablation::Straggler);
            own.filter(move |point| point.setting.base.epochs.policy == policy)
        };
        if let Some(point) = own().find(|point| point.setting.variant == Variant::Stalled(DRAWN_STALL)) {
            let mut sum = 0;
            let grown = point.details.starts.iter().enumerate().map(|(at, started)| {
                sum += started;
                ((at + 1) as f64, sum as f64)
            });
            let points = grown.take_while(|(at, _)| *at <= 150.0).collect();
            over_time.push(Series { name: policy_name(policy).to_owned(), style, points });
        }
        over_stalls.push(line(policy_name(policy).to_owned(), style, own(), |point| {
            let Variant::Stalled(stall) = point.setting.variant else { return (0.0, 0.0) };
            (stall as f64, point.details.longest_pause_ms)
        }));
    }
    vec![
        Panel {
            title: format!("held up for {DRAWN_STALL} ms from 0 on"),
            x: axis("ms", Scale::Linear),
            y: axis("transactions started by the others", Scale::Linear),
            series: over_time,
        },
        Panel {
            title: "longest time without a start".to_owned(),
            x: axis("ms for which the straggler is held up", Scale::Linear),
            y: axis("ms", Scale::Linear),
            series: over_stalls,
        },
    ]
}

/// Districts of a node: those that orders contend for.
pub(super) fn districts(workload: AlohaWorkload) -> u32 {
    match workload {
        AlohaWorkload::NewOrder { warehouses } | AlohaWorkload::Payment { warehouses } => 10 * warehouses,
        AlohaWorkload::Scaled { districts } => u32::from(districts),
        AlohaWorkload::Adds { .. } => 0,
    }
}

/// The one of some points with the highest throughput.
pub(super) fn best<'a>(points: impl Iterator<Item = &'a AblationPoint>) -> Option<&'a AblationPoint> {
    points.max_by(|one, other| one.run.throughput.total_cmp(&other.run.throughput))
}

/// Attempts for each answered call.
pub(super) fn attempts(point: &AblationPoint) -> f64 {
    1.0 + point.details.restarts / point.run.throughput.max(1.0)
}

fn of_orders(points: &[AblationPoint]) -> Vec<Panel> {
    let (mut rates, mut starts) = (Vec::new(), Vec::new());
    for (color, numbers) in [OrderNumbers::Declared, OrderNumbers::Dependent].into_iter().enumerate() {
        for (shape, (layout, scaled)) in [("warehouses", false), ("scaled", true)].into_iter().enumerate() {
            let own = || of(points, Ablation::OrderNumbers);
            let own = || own().filter(move |point| point.setting.variant == Variant::Numbers(numbers));
            let is_scaled =
                |workload: &AlohaWorkload| matches!(workload, AlohaWorkload::Scaled { .. }) == scaled;
            let workloads: Vec<_> = systems(own()).into_iter().map(|(_, workload)| workload).collect();
            let peaks: Vec<&AblationPoint> = workloads
                .into_iter()
                .filter(is_scaled)
                .filter_map(|workload| best(own().filter(|point| point.setting.base.workload == workload)))
                .collect();
            let name = || format!("{}, {layout}", Variant::Numbers(numbers).name());
            let style = Style { color, shape };
            let x = |point: &AblationPoint| f64::from(districts(point.setting.base.workload));
            let peaks = || peaks.iter().copied();
            rates.push(line(name(), style, peaks(), |point| (x(point), point.run.throughput)));
            starts.push(line(name(), style, peaks(), |point| (x(point), attempts(point))));
        }
    }
    let panel = |title: &str, y: &str, scale, series| Panel {
        title: title.to_owned(),
        x: axis("districts of a node", Scale::Logarithmic),
        y: axis(y, scale),
        series,
    };
    vec![
        panel("throughput", "transactions/s", Scale::Logarithmic, rates),
        panel("attempts of a call", "attempts", Scale::Linear, starts),
    ]
}

fn of_replicas(points: &[AblationPoint]) -> Vec<Panel> {
    let panel = |(_, workload): (EngineKind, AlohaWorkload)| {
        let series = Kept::ALL.into_iter().enumerate().map(|(number, kept)| {
            let own = of(points, Ablation::Replicas);
            let own = own.filter(|point| {
                point.setting.base.workload == workload && point.setting.variant == Variant::Kept(kept)
            });
            let style = Style { color: number, shape: number };
            line(kept.name().to_owned(), style, own, |point| {
                (point.run.throughput, point.run.latency_us_mean / 1e3)
            })
        });
        Panel {
            title: title_of(workload).to_owned(),
            x: axis("transactions/s", Scale::Logarithmic),
            y: axis("mean latency, ms", Scale::Logarithmic),
            series: series.collect(),
        }
    };
    systems(of(points, Ablation::Replicas)).into_iter().map(panel).collect()
}

/// For people.
pub(super) fn title_of(workload: AlohaWorkload) -> &'static str {
    match workload {
        AlohaWorkload::NewOrder { .. } => "New Orders",
        AlohaWorkload::Payment { .. } => "Payments",
        AlohaWorkload::Scaled { .. } => "New Orders, scaled",
        AlohaWorkload::Adds { .. } => "additions",
    }
}

#[cfg(test)]
mod tests {
    use super::super::statements::as_expected;
    use super::*;

    #[test]
    fn every_column_has_a_value() {
        let points = as_expected();
        let text = csv(&points);
        assert_eq!(text.lines().count(), points.len() + 1);
        let columns = |line: &str| {
            // The name of a variant may have a comma.
            let mut quoted = line.split('"');
            let outside = quoted.by_ref().step_by(2).collect::<Vec<_>>().join("");
            outside.split(',').count()
        };
        let wanted = columns(HEADER);
        assert!(text.lines().all(|line| columns(line) == wanted), "{text}");
        assert!(
            text.contains("\nx11a,aloha,adds-arithmetic,,0.001,8,managed-strictly,25,\"stalled 60 ms\",")
        );
    }

    #[test]
    fn every_experiment_is_drawn_or_told() {
        let points = as_expected();
        let drawn = drawings(&points, &Ablation::ALL, &["A note".to_owned()]);
        let counts: Vec<(&str, Vec<usize>)> = drawn
            .iter()
            .map(|(name, drawing)| (*name, drawing.panels.iter().map(|panel| panel.series.len()).collect()))
            .collect();
        let expected = [
            ("x10-epochs.svg", vec![4, 4]),
            ("x11a-straggler.svg", vec![2, 2]),
            ("x11f-order-numbers.svg", vec![4, 4]),
            ("x11g-replicas.svg", vec![4, 4]),
        ];
        assert_eq!(counts, expected);
        for (name, drawing) in drawn {
            let empty =
                drawing.panels.iter().flat_map(|panel| &panel.series).find(|series| series.points.is_empty());
            assert!(empty.is_none(), "{name}: {empty:?}");
            assert!(drawing.svg().contains("A note"));
        }
        assert_eq!(drawings(&points, &[Ablation::Answers], &[]), []);
    }
}
