//! What was measured of `aloha` and `calvin`, as a table and drawn in the way of the paper's figures.

use std::fmt::Write as _;

use ordain_db::engine::EngineKind;
use ordain_db::sequencer::EpochOptions;
use ordain_workload::micro::Declare;

use super::climb::{Place, place_of};
use super::{
    AlohaPoint, AlohaRun, AlohaSetting, AlohaWorkload, Drive, ENGINES, FEW_AND_MANY, Figure, HIGH, LOW,
    MEDIUM, declares, managed, peak,
};
use crate::scale::bars::{Bar, Bars};
use crate::scale::figure::{Axis, Figure as Drawing, Panel, Scale, Series, Style};
use crate::time::MILLISECOND;
use crate::world::stages::Stage;

const HEADER: &str = "engine,workload,warehouses_or_districts_per_node,contention_index,nodes,participants,epochs,epoch_ms,outstanding,\
                      peak,offered_per_node_s,warm_up_ms,measured_ms,throughput_txn_s,latency_us_mean,latency_us_p50,latency_us_p99,\
                      busy_percent,staged_calls";

/// A line for each point, in their order, under a line with the names of the columns. What a column does not apply to is empty. `peak`
/// says which point of a climb is the best, and whether it is at an end of what was tried.
pub fn csv(points: &[AlohaPoint]) -> String {
    let mut out = HEADER.to_owned();
    for stage in Stage::ALL {
        // Writing to a string cannot fail.
        let _ = write!(out, ",{}_us", stage.name().replace(' ', "_"));
    }
    out.push('\n');
    for AlohaPoint { setting, run, participants } in points {
        let AlohaSetting { engine, workload, nodes, epochs, drive } = *setting;
        let length = epochs.microseconds as f64 / 1e3;
        let AlohaRun { throughput, latency_us_mean, latency_us_p50, latency_us_p99, busy_percent, .. } = run;
        let AlohaRun { stages, span, .. } = run;
        let engine = engine.name();
        let (name, granularity, index) = named(workload);
        let (window, rate) = match drive {
            Drive::Window(window) => (window.to_string(), String::new()),
            Drive::Rate(rate) => (String::new(), rate.to_string()),
            // A climb has a point for each of its windows.
            Drive::Climb(_) => (String::new(), String::new()),
        };
        let peak = place_of(points, setting).map_or("", Place::name);
        let [warm_up, measured] = [span.warm_up, span.time].map(|time| time / MILLISECOND);
        let _ = write!(
            out,
            "{engine},{name},{granularity},{index},{nodes},{participants:.2},{},{length},{window},{peak},{rate},{warm_up},{measured},\
             {throughput:.1},{latency_us_mean:.1},{latency_us_p50},{latency_us_p99},{busy_percent:.1},{}",
            epochs.policy, stages.calls
        );
        for stage in Stage::ALL {
            let _ = write!(out, ",{:.1}", stages.mean_us(stage));
        }
        out.push('\n');
    }
    out
}

/// A workload in tables: its name, the warehouses or districts of a node, and the contention index, if it has them.
pub(in crate::scale) fn named(workload: AlohaWorkload) -> (&'static str, String, String) {
    let (granularity, index) = match workload {
        AlohaWorkload::NewOrder { warehouses } | AlohaWorkload::Payment { warehouses } => {
            (warehouses.to_string(), String::new())
        }
        AlohaWorkload::Scaled { districts } => (districts.to_string(), String::new()),
        AlohaWorkload::Adds { index, .. } => (String::new(), index.to_string()),
    };
    let name = match workload {
        AlohaWorkload::Scaled { .. } => "scaled-new-order",
        _ => workload.benchmark().name(),
    };
    (name, granularity, index)
}

/// The name of additions that are declared in this way.
pub(in crate::scale) fn name_of(engine: EngineKind, declare: Declare) -> String {
    let how = match (engine, declare) {
        (EngineKind::Calvin, _) => return engine.name().to_owned(),
        (_, Declare::Arithmetic) => "arithmetic",
        (_, Declare::Own) => "functors of its own",
        (_, Declare::Whole) => "as a whole",
    };
    format!("{}, {how}", engine.name())
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn throughput() -> Axis {
    axis("transactions/s", Scale::Logarithmic)
}

/// The drawings of some figures but [`Figure::Breakdown`], each with the name of its file. `nodes` are those of the clusters whose size
/// does not vary; `notes` say what was run.
pub fn drawings(
    points: &[AlohaPoint],
    figures: &[Figure],
    nodes: u16,
    notes: &[String],
) -> Vec<(&'static str, Drawing)> {
    let drawing = |title: &str, panels| Drawing { title: title.to_owned(), panels, notes: notes.to_vec() };
    let draw = |figure: &Figure| {
        Some(match figure {
            Figure::Latency => {
                let title = "Latency over throughput, New Orders";
                ("figure-6-latency.svg", drawing(title, vec![latency(points, nodes)]))
            }
            Figure::Granularity => {
                let new_orders = |warehouses| AlohaWorkload::NewOrder { warehouses };
                let scaled = |districts| AlohaWorkload::Scaled { districts: districts as u16 };
                let payments = |warehouses| AlohaWorkload::Payment { warehouses };
                let panels = vec![
                    granularity(points, nodes, "New Orders", new_orders),
                    granularity(points, nodes, "New Orders, scaled", scaled),
                    granularity(points, nodes, "Payments", payments),
                ];
                (
                    "figure-7-granularity.svg",
                    drawing("Throughput over the warehouses or districts of a node", panels),
                )
            }
            Figure::ScaleOut => {
                let panels = vec![scale_out(points)];
                ("figure-8-nodes.svg", drawing("Throughput over the number of nodes, New Orders", panels))
            }
            Figure::Contention => {
                let panels = vec![contention(points, nodes)];
                (
                    "figure-9-contention.svg",
                    drawing("Throughput over the contention index, additions", panels),
                )
            }
            Figure::Epochs => {
                let title = "Mean latency over the length of an epoch, at light load";
                ("figure-11-epochs.svg", drawing(title, vec![epochs(points, nodes)]))
            }
            Figure::Breakdown => return None,
        })
    };
    figures.iter().filter_map(draw).collect()
}

/// Points, ascending in x.
fn sorted(places: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut places: Vec<(f64, f64)> = places.collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    places
}

/// The New Orders of Figures 6 and 8, with the paper's names: W for warehouses of a node, D for districts.
pub(super) fn lines() -> Vec<(String, AlohaWorkload)> {
    let [new_orders, scaled]: [fn(u32) -> (String, AlohaWorkload); 2] = [
        |warehouses| (format!("{warehouses}W"), AlohaWorkload::NewOrder { warehouses }),
        |districts| (format!("{districts}D"), AlohaWorkload::Scaled { districts: districts as u16 }),
    ];
    FEW_AND_MANY.into_iter().map(new_orders).chain(FEW_AND_MANY.into_iter().map(scaled)).collect()
}

/// Figure 6: a colour for each engine, a marker for each number of warehouses. A point is a number of outstanding calls, and lines go
/// from few to many, so that they bend back where more calls bring less.
fn latency(points: &[AlohaPoint], nodes: u16) -> Panel {
    let mut series = Vec::new();
    for (color, engine) in ENGINES.into_iter().enumerate() {
        for (shape, (letters, workload)) in lines().into_iter().enumerate() {
            let of = |point: &&AlohaPoint| {
                let at = &point.setting;
                (at.engine, at.workload, at.nodes) == (engine, workload, nodes)
            };
            let run = |point: &AlohaPoint| match point.setting.drive {
                Drive::Window(window) => {
                    Some((window, (point.run.throughput, point.run.latency_us_mean / 1e3)))
                }
                _ => None,
            };
            let mut over_windows: Vec<(u64, (f64, f64))> = points.iter().filter(of).filter_map(run).collect();
            over_windows.sort_by_key(|(window, _)| *window);
            series.push(Series {
                name: format!("{}, {letters}", engine.name()),
                style: Style { color, shape },
                points: over_windows.into_iter().map(|(_, place)| place).collect(),
            });
        }
    }
    Panel {
        title: format!("{nodes} nodes, all distributed"),
        x: throughput(),
        y: axis("mean latency, ms", Scale::Logarithmic),
        series,
    }
}

/// The highest throughput of each engine over some numbers, for each of which there is a setting.
fn peaks(
    points: &[AlohaPoint],
    name: impl Fn(EngineKind) -> String,
    shape: usize,
    settings: &dyn Fn(EngineKind) -> Vec<(f64, AlohaWorkload, u16)>,
) -> Vec<Series> {
    let line = |(color, engine): (usize, EngineKind)| {
        let places = settings(engine).into_iter().filter_map(|(x, workload, nodes)| {
            peak(points, engine, workload, nodes).map(|throughput| (x, throughput))
        });
        Series { name: name(engine), style: Style { color, shape }, points: sorted(places) }
    };
    ENGINES.into_iter().enumerate().map(line).collect()
}

/// A panel of Figure 7.
fn granularity(
    points: &[AlohaPoint],
    nodes: u16,
    title: &str,
    workload: impl Fn(u32) -> AlohaWorkload,
) -> Panel {
    let settings = |_| {
        let each = super::GRANULARITIES.iter();
        each.map(|warehouses| (f64::from(*warehouses), workload(*warehouses), nodes)).collect()
    };
    Panel {
        title: title.to_owned(),
        x: axis("warehouses or districts of a node", Scale::Linear),
        y: throughput(),
        series: peaks(points, |engine| engine.name().to_owned(), 0, &settings),
    }
}

/// Figure 8: a colour for each engine, a marker for each number of warehouses.
fn scale_out(points: &[AlohaPoint]) -> Panel {
    let mut series = Vec::new();
    for (shape, (letters, workload)) in lines().into_iter().enumerate() {
        let settings = |_| super::SIZES.iter().map(|nodes| (f64::from(*nodes), workload, *nodes)).collect();
        let name = |engine: EngineKind| format!("{}, {letters}", engine.name());
        series.extend(peaks(points, name, shape, &settings));
    }
    Panel {
        title: "all distributed".to_owned(),
        x: axis("nodes", Scale::Logarithmic),
        y: throughput(),
        series,
    }
}

/// Figure 9: a line for each way in which additions are declared.
fn contention(points: &[AlohaPoint], nodes: u16) -> Panel {
    let mut series: Vec<Series> = Vec::new();
    for engine in ENGINES {
        for declare in declares(engine) {
            let places = super::INDEXES.into_iter().filter_map(|index| {
                let workload = AlohaWorkload::Adds { declare: *declare, index };
                peak(points, engine, workload, nodes).map(|throughput| (index, throughput))
            });
            let number = series.len();
            series.push(Series {
                name: name_of(engine, *declare),
                style: Style { color: number, shape: number },
                points: sorted(places),
            });
        }
    }
    Panel {
        title: format!("{nodes} nodes, additions to ten records of two nodes"),
        x: axis("contention index", Scale::Logarithmic),
        y: throughput(),
        series,
    }
}

/// The run at light load, of additions as the engine is given them first.
pub(super) fn light(
    points: &[AlohaPoint],
    engine: EngineKind,
    workload: AlohaWorkload,
    nodes: u16,
    epochs: EpochOptions,
) -> Option<&AlohaRun> {
    let of = |point: &&AlohaPoint| {
        let at = &point.setting;
        (at.engine, at.workload, at.nodes, at.epochs) == (engine, workload, nodes, epochs)
            && matches!(at.drive, Drive::Rate(_))
    };
    points.iter().find(of).map(|point| &point.run)
}

/// Mean latency in milliseconds over the length of an epoch, of an engine.
pub(super) fn over_epochs(points: &[AlohaPoint], engine: EngineKind, nodes: u16) -> Vec<(f64, f64)> {
    let workload = AlohaWorkload::adds(engine, Declare::Arithmetic, MEDIUM);
    let at = |length: u64| {
        let run = light(points, engine, workload, nodes, managed(length))?;
        Some((length as f64, run.latency_us_mean / 1e3))
    };
    sorted(super::LENGTHS.into_iter().filter_map(at))
}

/// Figure 11.
fn epochs(points: &[AlohaPoint], nodes: u16) -> Panel {
    let line = |(color, engine): (usize, EngineKind)| Series {
        name: engine.name().to_owned(),
        style: Style { color, shape: color },
        points: over_epochs(points, engine, nodes),
    };
    Panel {
        title: format!("{nodes} nodes, additions, index {MEDIUM}"),
        x: axis("length of an epoch, ms", Scale::Linear),
        y: axis("mean latency, ms", Scale::Linear),
        series: ENGINES.into_iter().enumerate().map(line).collect(),
    }
}

/// Figure 10: the stages of calls, in percent of their latency.
pub fn breakdown(points: &[AlohaPoint], nodes: u16, notes: &[String]) -> Bars {
    let mut bars = Vec::new();
    for engine in ENGINES {
        for declare in declares(engine) {
            for index in [LOW, HIGH] {
                let workload = AlohaWorkload::Adds { declare: *declare, index };
                let Some(run) = light(points, engine, workload, nodes, super::MANAGED) else { continue };
                let name = name_of(engine, *declare);
                bars.push(Bar {
                    name: format!("{name}, index {index}: {:.2} ms", run.latency_us_mean / 1e3),
                    parts: Stage::ALL.iter().map(|stage| run.stages.percent(*stage)).collect(),
                });
            }
        }
    }
    Bars {
        title: "Where the latency of a call goes, at light load".to_owned(),
        parts: Stage::ALL.iter().map(|stage| stage.name().to_owned()).collect(),
        bars,
        notes: notes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::statements::as_stated;
    use super::*;

    #[test]
    fn every_column_has_a_value() {
        let points = as_stated();
        let text = csv(&points);
        assert_eq!(text.lines().count(), points.len() + 1);
        let columns = HEADER.split(',').count() + Stage::ALL.len();
        assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
        assert!(text.contains("\naloha,new-order,1,,8,2.00,adaptive,10,1,,,"), "{text}");
        assert!(text.contains("\naloha,new-order,1,,8,2.00,adaptive,10,64,peak,,"), "{text}");
    }

    #[test]
    fn figures_have_a_point_for_each_run() {
        let points = as_stated();
        let drawn = drawings(&points, &Figure::ALL, 8, &[]);
        let counts = |figure: usize| -> Vec<Vec<usize>> {
            let panels = drawn[figure].1.panels.iter();
            panels.map(|panel| panel.series.iter().map(|series| series.points.len()).collect()).collect()
        };
        assert_eq!(counts(0), [[6; 8]]);
        assert_eq!(counts(1), [[4; 2]; 3]);
        assert_eq!(counts(2), [[5; 8]]);
        assert_eq!(counts(3), [[5; 4]]);
        assert_eq!(counts(4), [[5; 2]]);
        assert!(
            drawn.iter().all(|(name, drawing)| name.ends_with(".svg") && drawing.svg().contains("aloha"))
        );
        assert_eq!(breakdown(&points, 8, &[]).bars.len(), 4 * 2);
    }

    #[test]
    fn only_what_is_wanted_is_drawn() {
        let points = as_stated();
        let names: Vec<&str> = drawings(&points, &[Figure::Contention, Figure::Breakdown], 8, &[])
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["figure-9-contention.svg"]);
    }
}
