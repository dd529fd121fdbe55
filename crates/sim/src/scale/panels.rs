//! Points drawn in the way of the paper's figures.

use super::figure::{Axis, Figure, Panel, Scale, Series, Style};
use super::shapes::{Line, Slowdown, slowdowns};
use super::{Benchmark, Point};

/// The sizes that the paper shows in its Figure 6.
const SLOWDOWN_NODES: [u16; 2] = [4, 8];

/// Total throughput and throughput for each node over the number of nodes, as in Calvin's Figures 4 and 5: a line for each
/// pair of contention index (the colour) and share of multi-partition transactions (the marker) that was run on at least
/// three sizes. The total is on a logarithmic scale: there linear scaling is a straight line, and the slow ones can be seen
/// beside the fast. `notes` say what was run.
pub fn scaling(workload: Benchmark, points: &[Point], notes: &[String]) -> Figure {
    let lines = Line::over_sizes(points, workload);
    let panel = |title: &str, unit: &str, scale: Scale, rate: fn(&Point) -> f64| Panel {
        title: title.to_owned(),
        x: Axis { label: "nodes".to_owned(), scale: Scale::Logarithmic },
        y: Axis { label: unit.to_owned(), scale },
        series: lines
            .iter()
            .map(|line| Series {
                name: line.name(),
                style: style(line, &lines),
                points: line.points.iter().map(|point| (f64::from(point.nodes), rate(point))).collect(),
            })
            .collect(),
    };
    Figure {
        title: format!("{}: throughput over the number of nodes", workload.title()),
        panels: vec![
            panel("Total", "transactions/s", Scale::Logarithmic, |point| point.throughput),
            panel("Per node", "transactions/s and node", Scale::Linear, Point::per_node),
        ],
        notes: notes.to_vec(),
    }
}

/// The slowdown of the microbenchmark when all transactions span nodes, over the contention index, as in Calvin's Figure 6:
/// for 4 and for 8 nodes what was measured and what the paper's model of two-phase commit gives.
pub fn slowdown(points: &[Point], notes: &[String]) -> Figure {
    let slowdowns = slowdowns(points);
    let mut series = Vec::new();
    for (color, nodes) in SLOWDOWN_NODES.into_iter().enumerate() {
        let line = |name: &str, shape: usize, factor: fn(&Slowdown) -> f64| Series {
            name: format!("{nodes} nodes, {name}"),
            style: Style { color, shape },
            points: slowdowns
                .iter()
                .filter(|slowdown| slowdown.nodes == nodes)
                .map(|slowdown| (slowdown.contention_index, factor(slowdown)))
                .collect(),
        };
        series.push(line("simulated", 0, |slowdown| slowdown.factor));
        series.push(line("model of 2PC", 1, Slowdown::two_phase_commit));
    }
    Figure {
        title: "Slowdown by multi-partition transactions".to_owned(),
        panels: vec![Panel {
            title: "100 % over 0 % at the lowest contention".to_owned(),
            x: Axis { label: "contention index".to_owned(), scale: Scale::Logarithmic },
            y: Axis { label: "slowdown (factor)".to_owned(), scale: Scale::Logarithmic },
            series,
        }],
        notes: notes.to_vec(),
    }
}

/// Colours by contention index, markers by share, both in ascending order.
fn style(line: &Line<'_>, all: &[Line<'_>]) -> Style {
    let place = |of: fn(&Line<'_>) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.iter().position(|value| *value == of(line)).unwrap_or_default()
    };
    Style { color: place(|line| line.contention_index), shape: place(|line| line.multi_partition_percent) }
}

#[cfg(test)]
mod tests {
    use super::super::shapes::synthetic;
    use super::*;

    fn points() -> Vec<Point> {
        let mut points = Vec::new();
        for nodes in [1, 2, 4, 8, 16, 32, 64, 100] {
            for (index, steepness) in [(0.0001, 0.05), (0.001, 0.1), (0.01, 0.3)] {
                for percent in [0.0, 10.0, 100.0] {
                    let factor = 1.0
                        + percent / 20.0 * (1.0 - 1.0 / f64::from(nodes))
                        + percent / 10.0 * steepness * libm::log(f64::from(nodes));
                    points.push(synthetic(Benchmark::Micro, nodes, index, percent, 27_000.0 / factor));
                }
            }
        }
        points
    }

    #[test]
    fn every_pair_of_index_and_share_is_a_line_in_both_panels() {
        let figure = scaling(Benchmark::Micro, &points(), &["A note".to_owned()]);
        let [total, per_node] = figure.panels.as_slice() else { panic!("two panels") };
        assert_eq!((total.series.len(), per_node.series.len()), (9, 9));
        assert!(total.series.iter().all(|series| series.points.len() == 8));
        assert_eq!(per_node.series[0].points[0], (1.0, 27_000.0));
        let mut styles: Vec<_> =
            total.series.iter().map(|series| (series.style.color, series.style.shape)).collect();
        styles.sort_unstable();
        styles.dedup();
        assert_eq!(styles.len(), 9);
        let other = scaling(Benchmark::NewOrder, &points(), &[]);
        assert!(other.panels.iter().all(|panel| panel.series.is_empty()));
    }

    #[test]
    fn slowdowns_stand_beside_their_model() {
        let series = &slowdown(&points(), &[]).panels[0].series;
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        let expected =
            ["4 nodes, simulated", "4 nodes, model of 2PC", "8 nodes, simulated", "8 nodes, model of 2PC"];
        assert_eq!(names, expected);
        assert!(series.iter().all(|series| series.points.len() == 3));
        assert!((series[1].points[2].1 - 2.16).abs() < 1e-6, "{:?}", series[1].points);
    }

    #[test]
    fn points_at_one_size_are_no_line_over_sizes() {
        let mut points = points();
        points.push(synthetic(Benchmark::Micro, 4, 1.0, 100.0, 100.0));
        assert_eq!(scaling(Benchmark::Micro, &points, &[]).panels[0].series.len(), 9);
    }
}
