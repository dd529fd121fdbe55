//! Dependent transactions and latencies for real, on two partitions of this machine.
//!
//! The updates of the index take their part of the same two cores (DET-56), so that throughput is compared with that of the same
//! engine with the same updates and no dependent transactions. Latencies are those of each kind of calls by itself, at a rate that is
//! far below what the machine can do, and not of a mixture.

use ordain_sim::scale::bars::Bars;
use ordain_sim::scale::dependent::figure_6::Cell;
use ordain_sim::scale::dependent::latency::{self, KINDS};
use ordain_sim::scale::dependent::{DISTRIBUTED, ENGINES, VOLATILITIES};
use ordain_sim::scale::evaluation::LOW;
use ordain_sim::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use ordain_workload::micro::CallKind;

use super::super::real::{self, Case, Line, Real, RealOptions, median};

/// What is compared; ratios are to the first.
const ENTRIES: &str = "calvin,two-phase";

/// Shares of dependent transactions, in percent.
pub(super) const SHARES: [f64; 3] = [0.0, 50.0, 100.0];

/// Shares of the work that come before the index is read, in percent, where all are dependent and local, and nothing is updated.
pub(super) const POSITIONS: [u8; 3] = [0, 50, 100];

/// Calls outstanding over both partitions.
const OUTSTANDING: u32 = 128;

/// Calls per second, over both partitions, for latencies. Two cores do at most 13,333 long transactions of one partition, and half as many
/// of two.
pub(super) const OFFERED: u32 = 1_500;

/// Records of each partition beyond the contended ones, as in the simulation.
const COLD_RECORDS: u64 = 50_000;

/// What is run on both engines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Setting {
    /// As many calls as can be done.
    Throughput(Cell),
    /// Calls of one kind at light load.
    Latency(CallKind),
}

impl Setting {
    /// All, each once.
    pub(super) fn all() -> Vec<Setting> {
        let mut all = Vec::new();
        for distributed_percent in DISTRIBUTED {
            for volatility in VOLATILITIES {
                all.extend(SHARES.map(|dependent_percent| {
                    let position_percent = 0;
                    Setting::Throughput(Cell {
                        distributed_percent,
                        dependent_percent,
                        volatility,
                        position_percent,
                    })
                }));
            }
        }
        let later = POSITIONS.into_iter().filter(|position| *position > 0);
        all.extend(later.map(Setting::at_position));
        all.extend(KINDS.map(Setting::Latency));
        all
    }

    /// All local and dependent, with the read at a place, and nothing updated.
    fn at_position(position_percent: u8) -> Setting {
        Setting::Throughput(Cell::at_position(VOLATILITIES[0], position_percent))
    }

    fn case(&self) -> Case {
        let records = 2 * ((1.0 / LOW).round() as u64 + COLD_RECORDS);
        let workload = format!("micro --records {records} --contention-index {LOW} --work 15");
        match *self {
            Setting::Throughput(Cell {
                distributed_percent,
                dependent_percent,
                volatility,
                position_percent,
            }) => Case {
                name: format!(
                    "{distributed_percent} % distributed, {dependent_percent} % dependent at {position_percent} % of the work, \
                         volatility {volatility}"
                ),
                workload: format!(
                    "{workload} --clients {OUTSTANDING} --multi-partition {distributed_percent} --dependent {dependent_percent} \
                         --dependent-at {position_percent} --volatility {volatility}"
                ),
            },
            Setting::Latency(kind) => {
                let (distributed, dependent) = shares_of(kind);
                let volatility = latency::VOLATILITY;
                Case {
                    name: format!("latency, {}", kind.name()),
                    workload: format!(
                        "{workload} --rate {OFFERED} --multi-partition {distributed} --dependent {dependent} --volatility {volatility}"
                    ),
                }
            }
        }
    }

    /// Its columns in the table.
    fn columns(&self) -> String {
        match self {
            Setting::Throughput(Cell {
                distributed_percent,
                dependent_percent,
                volatility,
                position_percent,
            }) => {
                format!(
                    "throughput,,{distributed_percent},{dependent_percent},{volatility},{position_percent}"
                )
            }
            Setting::Latency(kind) => {
                let (distributed, dependent) = shares_of(*kind);
                format!("latency,{OFFERED},{distributed},{dependent},{},0", latency::VOLATILITY)
            }
        }
    }
}

/// Runs all of them, in the order of [`Setting::all`].
///
/// # Errors
/// When a run fails or leaves data that is not consistent.
pub(super) fn measure(options: &RealOptions) -> Result<Vec<Real>, String> {
    let cases: Vec<Case> = Setting::all().iter().map(Setting::case).collect();
    real::measure(ENTRIES, &cases, options)
}

/// Percentages of distributed and of dependent calls, where all are of a kind.
fn shares_of(kind: CallKind) -> (u8, u8) {
    match kind {
        CallKind::Local | CallKind::IndexUpdate => (0, 0),
        CallKind::Distributed => (100, 0),
        CallKind::Dependent => (0, 100),
        CallKind::DependentDistributed => (100, 100),
    }
}

/// The columns of the table that tell settings, and their values.
pub(super) const COLUMNS: &str =
    "of,offered_txn_s,distributed_percent,dependent_percent,volatility,position_percent";

/// See [`COLUMNS`].
pub(super) fn columns() -> Vec<String> {
    Setting::all().iter().map(Setting::columns).collect()
}

/// What was measured of both engines.
pub(super) type Points = real::Points<Setting>;

/// A line for each engine, the marker, and volatility, the colour.
fn lines(points: &Points, volatilities: &[f64], place: impl Fn(&Cell) -> Option<f64>) -> Vec<Series> {
    let mut lines = Vec::new();
    for (shape, engine) in ENGINES.into_iter().enumerate() {
        for (color, volatility) in volatilities.iter().enumerate() {
            let label = (format!("{}, volatility {volatility}", engine.name()), Style { color, shape });
            lines.push(points.series(engine, label, |setting| match setting {
                Setting::Throughput(cell) if cell.volatility == *volatility => place(cell),
                _ => None,
            }));
        }
    }
    lines
}

/// What the calls are, for notes.
pub(super) fn load() -> String {
    format!(
        "long transactions at low contention, {OUTSTANDING} calls outstanding, {OFFERED} calls/s of one kind for latencies"
    )
}

/// Figure 6.
pub(super) fn figure(points: &Points, options: &RealOptions) -> Figure {
    let panel = |title: String, label: &str, series| {
        let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
        Panel { title, x: axis(label), y: axis("transactions/s"), series }
    };
    let over_shares = |distributed: f64| {
        let lines = lines(points, &VOLATILITIES, |cell| {
            let is_meant = (cell.distributed_percent, cell.position_percent) == (distributed, 0);
            is_meant.then_some(cell.dependent_percent)
        });
        panel(format!("{distributed} % distributed"), "dependent transactions, %", lines)
    };
    let over_positions = lines(points, &VOLATILITIES[..1], |cell| {
        let is_meant = *cell == Cell::at_position(cell.volatility, cell.position_percent);
        is_meant.then_some(f64::from(cell.position_percent))
    });
    let mut panels = DISTRIBUTED.map(over_shares).to_vec();
    panels.push(panel(
        "all dependent, none distributed".to_owned(),
        "work before the dependent read, %",
        over_positions,
    ));
    Figure {
        title: "Throughput of dependent transactions for real".to_owned(),
        panels,
        notes: vec![options.note(&load())],
    }
}

/// Figure 7: the median of each kind of calls, of the slower engine, with the 99th percentile beside it.
pub(super) fn latencies(measured: &[Real], options: &RealOptions) -> Bars {
    let first = Setting::all().iter().position(|setting| matches!(setting, Setting::Latency(_)));
    let value = |line: &Line| {
        let (half, most) = (median(&line.p50_us), median(&line.p99_us));
        (half, format!("{:.2} ms, 99 % in {:.2}", half / 1e3, most / 1e3))
    };
    let load = format!("long transactions at low contention, {OFFERED} calls/s of one kind");
    let title = "Median latency for real, of the slower of the two engines";
    real::bars(
        &measured[first.unwrap_or(measured.len()).min(measured.len())..],
        title,
        value,
        options.note(&load),
    )
}

#[cfg(test)]
mod tests {
    use super::super::statements::as_stated;
    use super::*;

    #[test]
    fn every_case_is_a_comparison_of_both_engines() {
        let settings = Setting::all();
        assert_eq!(settings.len(), 2 * 4 * 3 + 2 + 4);
        let cases: Vec<Case> = settings.iter().map(Setting::case).collect();
        real::assert_cases(ENTRIES, &cases);
        assert_eq!(ENGINES.map(|engine| engine.name()).to_vec(), ENTRIES.split(',').collect::<Vec<_>>());
        let columns = |setting: &Setting| setting.columns().split(',').count();
        assert!(settings.iter().all(|setting| columns(setting) == 6));
    }

    #[test]
    fn the_figure_has_a_point_for_each_run() {
        let figure = figure(&as_stated(), &RealOptions { rounds: 3, seconds: 1.0 });
        let counts =
            |panel: &Panel| -> Vec<usize> { panel.series.iter().map(|series| series.points.len()).collect() };
        assert_eq!(
            figure.panels.iter().map(counts).collect::<Vec<_>>(),
            [vec![3; 8], vec![3; 8], vec![3; 2]]
        );
    }
}
