//! What was measured of the engines, as a table and drawn in the way of the paper's figures.

use std::fmt::Write as _;

use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;

use super::{
    ENGINES, EvaluationPoint, EvaluationSetting, HIGH, LOW, Length, Run, SHARE_OF_INDEXES, SHARES,
    SHARES_OF_PARTICIPANTS, SHARES_OF_SIZES, SYSTEMS,
};
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::time::MILLISECOND;

/// The names of the columns of a setting.
const SETTING_HEADER: &str =
    "engine,acid,length,nodes,contention_index,distributed_percent,participants,lock_requests";

/// The names of the columns of a run.
pub(super) const RUN_HEADER: &str = "outstanding,messages_per_step,throughput_txn_s,latency_us_p50,latency_us_p99,restarts_per_s,\
                                     distributed_deadlocks_per_s,useful_percent,locks_percent,deadlocks_percent,\
                                     commitment_percent,waiting_percent,measured_ms";

/// A line for each point, in their order, under a line with the names of the columns. Rates and shares have one decimal.
pub fn csv(points: &[EvaluationPoint]) -> String {
    let mut out = format!("{SETTING_HEADER},{RUN_HEADER}\n");
    for point in points {
        let EvaluationSetting { engine, length, nodes, contention_index, .. } = point.setting;
        let EvaluationSetting { distributed_percent, participants, lock_requests, .. } = point.setting;
        let (acid, engine, length) =
            (if engine.is_acid() { "yes" } else { "no" }, engine.name(), length.name());
        let run = run_columns(&point.run);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{engine},{acid},{length},{nodes},{contention_index},{distributed_percent},{participants},{lock_requests},{run}"
        );
    }
    out
}

/// The columns of a run, under [`RUN_HEADER`].
pub(super) fn run_columns(run: &Run) -> String {
    let Run { window, throughput, latency_us_p50, latency_us_p99, restarts, deadlocks, .. } = run;
    let messages = if run.step_events == usize::MAX { "all".to_owned() } else { run.step_events.to_string() };
    let parts = run.time.parts().map(|(_, percent)| format!("{percent:.2}")).join(",");
    let measured = run.measured / MILLISECOND;
    format!(
        "{window},{messages},{throughput:.1},{latency_us_p50},{latency_us_p99},{restarts:.1},{deadlocks:.1},{parts},{measured}"
    )
}

/// The figures, each with the name of its file. `nodes` are those of the clusters of Figures 1 and 3; `notes` say what was run.
pub fn figures(points: &[EvaluationPoint], nodes: u16, notes: &[String]) -> Vec<(&'static str, Figure)> {
    let figure = |title: &str, panels| Figure { title: title.to_owned(), panels, notes: notes.to_vec() };
    let lengths = |panel: fn(&[EvaluationPoint], u16, Length) -> Panel| {
        Length::ALL.map(|length| panel(points, nodes, length)).to_vec()
    };
    let indexes = |panel: fn(&[EvaluationPoint], u16, f64) -> Panel| {
        [LOW, HIGH].map(|index| panel(points, nodes, index)).to_vec()
    };
    vec![
        (
            "figure-1-ab-shares.svg",
            figure("Throughput over the share of distributed transactions", lengths(shares)),
        ),
        ("figure-1-cd-indexes.svg", figure("Throughput over the contention index", lengths(over_indexes))),
        (
            "figure-3-participants.svg",
            figure("Throughput over the share, by participants", indexes(participants)),
        ),
        ("figure-8-nodes.svg", figure("Throughput of a node over the number of nodes", indexes(sizes))),
    ]
}

pub(super) fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn throughput_axis() -> Axis {
    axis("transactions/s", Scale::Linear)
}

fn series(
    points: &[EvaluationPoint],
    (name, style): (String, Style),
    of: impl Fn(&EvaluationSetting) -> bool,
    place: impl Fn(&EvaluationPoint) -> (f64, f64),
) -> Series {
    let drawn = |point: &&EvaluationPoint| {
        point.setting.lock_requests == LockRequests::Together && of(&point.setting)
    };
    let mut points: Vec<(f64, f64)> = points.iter().filter(drawn).map(place).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    Series { name, style, points }
}

/// Figures 1 (a) and (b): a colour for each engine, a marker for each contention index.
fn shares(points: &[EvaluationPoint], nodes: u16, length: Length) -> Panel {
    let mut lines = Vec::new();
    for (color, engine) in ENGINES.into_iter().enumerate() {
        for (shape, index) in [LOW, HIGH].into_iter().enumerate() {
            let label = (format!("{}, index {index}", engine.label()), Style { color, shape });
            let of = |setting: &EvaluationSetting| {
                (setting.engine, setting.length, setting.nodes) == (engine, length, nodes)
                    && (setting.contention_index, setting.participants) == (index, 2)
                    && SHARES.contains(&setting.distributed_percent)
            };
            lines.push(series(points, label, of, |point| {
                (point.setting.distributed_percent, point.run.throughput)
            }));
        }
    }
    Panel {
        title: format!("{} transactions", length.name()),
        x: axis("distributed transactions, %", Scale::Linear),
        y: throughput_axis(),
        series: lines,
    }
}

/// Figures 1 (c) and (d).
fn over_indexes(points: &[EvaluationPoint], nodes: u16, length: Length) -> Panel {
    let line = |(color, engine): (usize, EngineKind)| {
        let of = |setting: &EvaluationSetting| {
            (setting.engine, setting.length, setting.nodes) == (engine, length, nodes)
                && (setting.distributed_percent, setting.participants) == (SHARE_OF_INDEXES, 2)
        };
        let label = (engine.label().to_owned(), Style { color, shape: color });
        series(points, label, of, |point| (point.setting.contention_index, point.run.throughput))
    };
    Panel {
        title: format!("{} transactions, {SHARE_OF_INDEXES} % distributed", length.name()),
        x: axis("contention index", Scale::Logarithmic),
        y: throughput_axis(),
        series: ENGINES.into_iter().enumerate().map(line).collect(),
    }
}

/// Figure 3: a colour for each engine, a marker for each number of participants. The one point at 0 stands for all of them.
fn participants(points: &[EvaluationPoint], nodes: u16, index: f64) -> Panel {
    let mut lines = Vec::new();
    for (color, engine) in SYSTEMS.into_iter().enumerate() {
        for (shape, participants) in [2, 3, 4].into_iter().enumerate() {
            let label = (format!("{}, {participants} participants", engine.label()), Style { color, shape });
            let of = |setting: &EvaluationSetting| {
                (setting.engine, setting.length, setting.nodes) == (engine, Length::Long, nodes)
                    && setting.contention_index == index
                    && (setting.participants == participants || setting.distributed_percent == 0.0)
                    && SHARES_OF_PARTICIPANTS.contains(&setting.distributed_percent)
            };
            lines.push(series(points, label, of, |point| {
                (point.setting.distributed_percent, point.run.throughput)
            }));
        }
    }
    Panel {
        title: format!("long transactions, index {index}"),
        x: axis("distributed transactions, %", Scale::Linear),
        y: throughput_axis(),
        series: lines,
    }
}

/// Figure 8: a colour for each engine, a marker for each share.
fn sizes(points: &[EvaluationPoint], _nodes: u16, index: f64) -> Panel {
    let mut lines = Vec::new();
    for (color, engine) in SYSTEMS.into_iter().enumerate() {
        for (shape, share) in SHARES_OF_SIZES.into_iter().enumerate() {
            let label = (format!("{}, {share} % distributed", engine.label()), Style { color, shape });
            let of = |setting: &EvaluationSetting| {
                (setting.engine, setting.length, setting.participants) == (engine, Length::Long, 2)
                    && (setting.contention_index, setting.distributed_percent) == (index, share)
            };
            lines.push(series(points, label, of, |point| {
                let nodes = f64::from(point.setting.nodes);
                (nodes, point.run.throughput / nodes)
            }));
        }
    }
    Panel {
        title: format!("long transactions, index {index}"),
        x: axis("nodes", Scale::Logarithmic),
        y: axis("transactions/s and node", Scale::Linear),
        series: lines,
    }
}

#[cfg(test)]
mod tests {
    use super::super::statements::as_stated;
    use super::*;

    #[test]
    fn every_column_has_a_value_and_the_bound_is_labelled() {
        let points = as_stated();
        let text = csv(&points);
        assert_eq!(text.lines().count(), points.len() + 1);
        let columns = SETTING_HEADER.split(',').count() + RUN_HEADER.split(',').count();
        assert!(text.lines().all(|line| line.split(',').count() == columns));
        for line in text.lines().skip(1) {
            let bound = line.starts_with("two-phase-without-commit-protocol,");
            assert_eq!(bound, line.split(',').nth(1) == Some("no"), "{line}");
        }
        let figures = figures(&points, 4, &[]);
        assert!(figures[0].1.svg().contains("two-phase-without-commit-protocol (not ACID)"));
    }

    #[test]
    fn figures_have_a_point_for_each_run() {
        let figures = figures(&as_stated(), 4, &[]);
        let points = |figure: usize| -> Vec<Vec<usize>> {
            let panels = figures[figure].1.panels.iter();
            panels.map(|panel| panel.series.iter().map(|series| series.points.len()).collect()).collect()
        };
        assert_eq!(points(0), [[6; 8]; 2]);
        assert_eq!(points(1), [[5; 4]; 2]);
        assert_eq!(points(2), [[4; 6]; 2]);
        assert_eq!(points(3), [[7; 4]; 2]);
    }
}
