//! What was measured of dependent transactions, as tables and drawn in the way of the paper's figures.

use std::fmt::Write as _;

use ordain_workload::micro::CallKind;

use super::latency::{KINDS, LOADS, Latencies};
use ordain_db::limits::RESTARTS_BEFORE_DISTRIBUTED_HELP;

use super::{
    DISTRIBUTED, DependentPoint, DependentSetting, EARLY_HELP, ENGINES, VOLATILITIES, VOLATILITIES_OF_HELP,
    VOLATILITIES_OF_POSITIONS,
};
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::time::MICROSECOND;

/// The names of the columns.
const HEADER: &str = "engine,distributed_percent,dependent_percent,volatility,position_percent,help_after,outstanding,messages_per_step,\
                      throughput_txn_s,latency_us_p50,latency_us_p99,longest_us,busy_percent,reconnaissance_percent,\
                      updates_wanted_s,updates_s,misses_s,first_misses_percent,gap_us,misses_max,helped_s,victims_s,failed";

/// Percentiles of the latencies in the table and in the figure.
const PERCENTILES: [f64; 12] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0];

/// Steps of the drawn distributions.
const DRAWN: u32 = 200;

/// A line for each point, in their order, under a line with the names of the columns. Rates and shares have one decimal.
pub fn csv(points: &[DependentPoint]) -> String {
    let mut out = format!("{HEADER}\n");
    for point in points {
        let DependentSetting { engine, distributed_percent, dependent_percent, .. } = point.setting;
        let DependentSetting { volatility, position_percent, help_after, .. } = point.setting;
        let DependentPoint { window, throughput, latency_us_p50, latency_us_p99, longest_us, .. } = point;
        let DependentPoint { busy_percent, reconnaissance_percent, updates_wanted, updates, .. } = point;
        let DependentPoint { misses, first_misses_percent, gap_us, misses_max, .. } = point;
        let DependentPoint { helped, victims, failed, .. } = point;
        let engine = engine.name();
        let messages =
            if point.step_events == usize::MAX { "all".to_owned() } else { point.step_events.to_string() };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{engine},{distributed_percent},{dependent_percent},{volatility},{position_percent},{help_after},{window},{messages},\
             {throughput:.1},{latency_us_p50},{latency_us_p99},{longest_us},{busy_percent:.1},{reconnaissance_percent:.1},\
             {updates_wanted:.1},{updates:.1},{misses:.1},{first_misses_percent:.1},{gap_us:.0},{misses_max},{helped:.1},\
             {victims:.1},{failed}"
        );
    }
    out
}

/// A line for each kind of calls of each run: percentiles of its latencies in microseconds.
pub fn latencies_csv(runs: &[Latencies]) -> String {
    let mut out = "engine,offered_txn_s_and_node,kind,calls".to_owned();
    for percent in PERCENTILES {
        // Writing to a string cannot fail.
        let _ = write!(out, ",us_p{percent}");
    }
    out.push('\n');
    for run in runs {
        for kind in KINDS {
            let calls = run.of.get(&kind).map_or(0, Vec::len);
            let (engine, offered) = (run.setting.engine.name(), run.setting.offered);
            let _ = write!(out, "{engine},{offered},{},{calls}", kind.name());
            for percent in PERCENTILES {
                let latency = run.percentile(kind, percent).map_or(0, |latency| latency / MICROSECOND);
                let _ = write!(out, ",{latency}");
            }
            out.push('\n');
        }
    }
    out
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn series(
    points: &[DependentPoint],
    (name, style): (String, Style),
    of: impl Fn(&DependentSetting) -> bool,
    place: impl Fn(&DependentPoint) -> (f64, f64),
) -> Series {
    let mut points: Vec<(f64, f64)> = points.iter().filter(|point| of(&point.setting)).map(place).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    Series { name, style, points }
}

/// The lines of all engines, a colour for each volatility and a marker for each engine, in the order of the volatilities.
fn lines(
    points: &[DependentPoint],
    volatilities: &[f64],
    of: impl Fn(&DependentSetting) -> bool,
    place: impl Fn(&DependentPoint) -> (f64, f64),
) -> Vec<Series> {
    let mut lines = Vec::new();
    for (shape, engine) in ENGINES.into_iter().enumerate() {
        for volatility in volatilities {
            let color = VOLATILITIES.iter().position(|known| known == volatility).unwrap_or(0);
            let label = (format!("{}, volatility {volatility}", engine.name()), Style { color, shape });
            let of = |setting: &DependentSetting| {
                (setting.engine, setting.volatility, setting.help_after)
                    == (engine, *volatility, RESTARTS_BEFORE_DISTRIBUTED_HELP)
                    && of(setting)
            };
            lines.push(series(points, label, of, &place));
        }
    }
    lines
}

/// Figure 6: throughput over the share of dependent transactions, and over the place of the dependent read. `notes` say what was
/// run.
pub fn figure(points: &[DependentPoint], notes: &[String]) -> Figure {
    let mut panels: Vec<Panel> = DISTRIBUTED
        .iter()
        .map(|distributed| Panel {
            title: format!("{distributed} % distributed"),
            x: axis("dependent transactions, %", Scale::Linear),
            y: axis("transactions/s", Scale::Linear),
            series: lines(
                points,
                &VOLATILITIES,
                |setting| setting.distributed_percent == *distributed && setting.position_percent == 0,
                |point| (point.setting.dependent_percent, point.throughput),
            ),
        })
        .collect();
    if let Some(panel) = panels.last_mut() {
        panel.series.extend(early_help(points));
    }
    panels.push(Panel {
        title: "all dependent, none distributed".to_owned(),
        x: axis("work before the dependent read, %", Scale::Linear),
        y: axis("transactions/s", Scale::Linear),
        series: lines(
            points,
            &VOLATILITIES_OF_POSITIONS,
            |setting| setting.distributed_percent == 0.0 && setting.dependent_percent == 100.0,
            |point| (f64::from(point.setting.position_percent), point.throughput),
        ),
    });
    Figure { title: "Throughput of dependent transactions".to_owned(), panels, notes: notes.to_vec() }
}

/// The lines of calls that are helped earlier; without dependent transactions nobody is helped.
fn early_help(points: &[DependentPoint]) -> impl Iterator<Item = Series> {
    VOLATILITIES_OF_HELP.into_iter().map(|volatility| {
        let color = VOLATILITIES.iter().position(|known| *known == volatility).unwrap_or(0);
        let label =
            (format!("calvin, volatility {volatility}, help after {EARLY_HELP}"), Style { color, shape: 2 });
        let of = |setting: &DependentSetting| {
            let helped = setting.help_after == EARLY_HELP || setting.dependent_percent == 0.0;
            setting.engine == ENGINES[0]
                && setting.volatility == volatility
                && helped
                && setting.distributed_percent == 100.0
        };
        series(points, label, of, |point| (point.setting.dependent_percent, point.throughput))
    })
}

/// Figure 7: the distributions of the latencies, a colour for each kind of calls and a dash for each engine.
pub fn latency_figure(runs: &[Latencies], notes: &[String]) -> Figure {
    let line = |run: &Latencies, color: usize, kind: CallKind| {
        let shape = ENGINES.iter().position(|engine| *engine == run.setting.engine).unwrap_or(0);
        let place = |step: u32| {
            let percent = f64::from(step) * 100.0 / f64::from(DRAWN);
            let latency = run.percentile(kind, percent)?;
            Some((latency as f64 / MICROSECOND as f64, percent))
        };
        Series {
            name: format!("{}, {}", run.setting.engine.name(), kind.name()),
            style: Style { color, shape },
            points: (0..=DRAWN).filter_map(place).collect(),
        }
    };
    let panel = |offered: u64| Panel {
        title: format!("{offered} calls/s at each node"),
        x: axis("us", Scale::Logarithmic),
        y: axis("calls answered within, %", Scale::Linear),
        series: runs
            .iter()
            .filter(|run| run.setting.offered == offered)
            .flat_map(|run| KINDS.into_iter().enumerate().map(move |(color, kind)| line(run, color, kind)))
            .collect(),
    };
    Figure {
        title: "Latency from a client's call to its answer".to_owned(),
        panels: LOADS.into_iter().map(panel).collect(),
        notes: notes.to_vec(),
    }
}

/// A line for each point with dependent transactions.
pub fn table(points: &[DependentPoint]) -> String {
    let mut out = format!(
        "{:<10}{:>8}{:>8}{:>8}{:>8}{:>6}{:>12}{:>9}{:>9}{:>11}{:>9}{:>8}{:>10}{:>8}{:>7}\n",
        "engine",
        "dist. %",
        "dep. %",
        "updates",
        "place %",
        "help",
        "txn/s",
        "busy %",
        "trial %",
        "misses/s",
        "1st %",
        "gap us",
        "helped/s",
        "missed",
        "failed"
    );
    for point in points.iter().filter(|point| point.setting.dependent_percent > 0.0) {
        let DependentSetting { engine, distributed_percent, dependent_percent, .. } = point.setting;
        let DependentSetting { volatility, position_percent, help_after, .. } = point.setting;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<10}{distributed_percent:>8}{dependent_percent:>8}{volatility:>8}{position_percent:>8}{help_after:>6}{:>12.0}{:>9.1}{:>9.1}{:>11.0}\
             {:>9.1}{:>8.0}{:>10.0}{:>8}{:>7}",
            engine.name(),
            point.throughput,
            point.busy_percent,
            point.reconnaissance_percent,
            point.misses,
            point.first_misses_percent,
            point.gap_us,
            point.helped,
            point.misses_max,
            point.failed
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::statements::{latencies_as_stated, points_as_stated};
    use super::*;

    #[test]
    fn every_column_has_a_value() {
        let points = points_as_stated();
        let text = csv(&points);
        assert_eq!(text.lines().count(), points.len() + 1);
        assert!(text.lines().all(|line| line.split(',').count() == HEADER.split(',').count()));
        let runs = latencies_as_stated();
        let text = latencies_csv(&runs);
        assert_eq!(text.lines().count(), runs.len() * KINDS.len() + 1);
        assert!(text.lines().all(|line| line.split(',').count() == 4 + PERCENTILES.len()));
    }

    #[test]
    fn figures_have_a_point_for_each_run() {
        let figure = figure(&points_as_stated(), &[]);
        let counts =
            |panel: &Panel| -> Vec<usize> { panel.series.iter().map(|series| series.points.len()).collect() };
        let panels: Vec<Vec<usize>> = figure.panels.iter().map(counts).collect();
        assert_eq!(panels, [vec![4; 8], vec![4; 10], vec![6; 6]]);
        let latencies = latency_figure(&latencies_as_stated(), &[]);
        assert!(latencies.panels.iter().all(|panel| panel.series.len() == ENGINES.len() * KINDS.len()));
        assert!(latencies.svg().contains("calvin, dependent distributed"));
        assert_eq!(table(&points_as_stated()).lines().count(), 1 + 2 * (2 * 4 * 3 + 3 * 5) + 9);
    }
}
