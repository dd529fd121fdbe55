//! The engines against each other for real: the points of Figures 1 and 4 that tell most, on two partitions of this machine.
//!
//! *Maximum*: calls outstanding are a fixed number for each length, see [`OUTSTANDING`], and not the best of several (DET-62): that would
//! take as many times as long.

use ordain_db::engine::EngineKind;
use ordain_sim::scale::evaluation::figure_1::Cell;
use ordain_sim::scale::evaluation::{ENGINES, HIGH, LOW, Length, SHARE_OF_INDEXES};
use ordain_sim::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};

use super::super::real::{self, Case, Real, RealOptions};

/// What is compared; ratios are to the first. Without load control, as in the simulation: the paper says nothing of it.
const ENTRIES: &str = "calvin,calvin-vll,two-phase --without-load-control,two-phase-without-commit-protocol --without-load-control";

/// Shares of distributed transactions of Figures 1 (a) and (b), in percent.
pub(super) const SHARES: [f64; 3] = [0.0, SHARE_OF_INDEXES, 100.0];

/// Contention indexes of Figures 1 (c) and (d).
pub(super) const INDEXES: [f64; 4] = [LOW, 0.001, HIGH, 0.1];

/// Shares of New Orders and Payments with a remote warehouse, in percent.
pub(super) const REMOTE_SHARES: [f64; 3] = [0.0, 10.0, 100.0];

/// Calls outstanding over both partitions, with short transactions and with long ones.
const OUTSTANDING: [u32; 2] = [512, 128];

/// Records of each partition beyond the contended ones, and rows of TPC-C, as in the simulation.
const COLD_RECORDS: u64 = 50_000;
const TPCC: &str = "tpcc --warehouses 40 --items 1000 --customers 30 --mix new-order+payment --by-name 0";

/// What is run on all engines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Setting {
    /// The microbenchmark.
    Micro(Cell),
    /// New Orders and Payments.
    Tpcc { remote_percent: f64 },
}

impl Setting {
    /// All, each once, although both figures may show it.
    pub(super) fn all() -> Vec<Setting> {
        let mut all = Vec::new();
        for length in Length::ALL {
            let micro = |index, share| Setting::Micro(Cell::new(length, index, share));
            for contention_index in [LOW, HIGH] {
                all.extend(SHARES.map(|share| micro(contention_index, share)));
            }
            let others = INDEXES.into_iter().filter(|index| ![LOW, HIGH].contains(index));
            all.extend(others.map(|index| micro(index, SHARE_OF_INDEXES)));
        }
        all.extend(REMOTE_SHARES.map(|remote_percent| Setting::Tpcc { remote_percent }));
        all
    }

    fn case(&self) -> Case {
        match *self {
            Setting::Micro(Cell { length, contention_index, distributed_percent }) => {
                let records = 2 * ((1.0 / contention_index).round() as u64 + COLD_RECORDS);
                let [short, long] = OUTSTANDING;
                let work = match length {
                    Length::Short => format!("--clients {short}"),
                    Length::Long => format!("--clients {long} --work 15"),
                };
                Case {
                    name: format!(
                        "{}, index {contention_index}, {distributed_percent} % distributed",
                        length.name()
                    ),
                    workload: format!(
                        "micro --records {records} --contention-index {contention_index} --multi-partition {distributed_percent} {work}"
                    ),
                }
            }
            Setting::Tpcc { remote_percent } => {
                let outstanding = OUTSTANDING[0];
                Case {
                    name: format!("TPC-C, {remote_percent} % remote"),
                    workload: format!(
                        "{TPCC} --remote {remote_percent} --payment-remote {remote_percent} --clients {outstanding}"
                    ),
                }
            }
        }
    }

    /// Its columns in the table.
    fn columns(&self) -> String {
        match self {
            Setting::Micro(Cell { length, contention_index, distributed_percent }) => {
                format!("micro,{},{contention_index},{distributed_percent}", length.name())
            }
            Setting::Tpcc { remote_percent } => format!("tpcc,,,{remote_percent}"),
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

/// The columns of the table that tell settings, and their values.
pub(super) const COLUMNS: &str = "workload,length,contention_index,distributed_percent";

/// See [`COLUMNS`].
pub(super) fn columns() -> Vec<String> {
    Setting::all().iter().map(Setting::columns).collect()
}

/// What was measured of all engines.
pub(super) type Points = real::Points<Setting>;

/// What the calls are, for notes.
pub(super) fn load() -> String {
    let [short, long] = OUTSTANDING;
    format!("{short} calls outstanding, {long} with long transactions")
}

/// The figures, each with the name of its file.
pub(super) fn figures(points: &Points, options: &RealOptions) -> Vec<(&'static str, Figure)> {
    let figure = |title: &str, panels| Figure {
        title: title.to_owned(),
        panels,
        notes: vec![
            options.note(&load()),
            "two-phase-without-commit-protocol is a bound and no database: it is not ACID.".to_owned(),
        ],
    };
    vec![
        (
            "real-figure-1-ab-shares.svg",
            figure(
                "Throughput for real over the share of distributed transactions",
                Length::ALL.map(|length| shares(points, length)).to_vec(),
            ),
        ),
        (
            "real-figure-1-cd-indexes.svg",
            figure(
                "Throughput for real over the contention index",
                Length::ALL.map(|length| indexes(points, length)).to_vec(),
            ),
        ),
        (
            "real-figure-4-tpcc.svg",
            figure("TPC-C for real over the share of remote transactions", vec![tpcc(points)]),
        ),
    ]
}

fn panel(title: String, (label, scale): (&str, Scale), series: Vec<Series>) -> Panel {
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    Panel { title, x: axis(label, scale), y: axis("transactions/s", Scale::Linear), series }
}

/// A colour for each engine, a marker for each contention index.
fn shares(points: &Points, of: Length) -> Panel {
    let mut lines = Vec::new();
    for (color, engine) in ENGINES.into_iter().enumerate() {
        for (shape, index) in [LOW, HIGH].into_iter().enumerate() {
            let label = (format!("{}, index {index}", engine.label()), Style { color, shape });
            lines.push(points.series(engine, label, |setting| match setting {
                Setting::Micro(Cell { length, contention_index, distributed_percent }) => {
                    ((*length, *contention_index) == (of, index)).then_some(*distributed_percent)
                }
                Setting::Tpcc { .. } => None,
            }));
        }
    }
    panel(format!("{} transactions", of.name()), ("distributed transactions, %", Scale::Linear), lines)
}

fn indexes(points: &Points, of: Length) -> Panel {
    let line = |(color, engine): (usize, EngineKind)| {
        points.series(engine, (engine.label().to_owned(), Style { color, shape: color }), |setting| {
            match setting {
                Setting::Micro(Cell { length, contention_index, distributed_percent }) => {
                    ((*length, *distributed_percent) == (of, SHARE_OF_INDEXES)).then_some(*contention_index)
                }
                Setting::Tpcc { .. } => None,
            }
        })
    };
    panel(
        format!("{} transactions, {SHARE_OF_INDEXES} % distributed", of.name()),
        ("contention index", Scale::Logarithmic),
        ENGINES.into_iter().enumerate().map(line).collect(),
    )
}

fn tpcc(points: &Points) -> Panel {
    let line = |(color, engine): (usize, EngineKind)| {
        points.series(engine, (engine.label().to_owned(), Style { color, shape: color }), |setting| {
            match setting {
                Setting::Micro(_) => None,
                Setting::Tpcc { remote_percent } => Some(*remote_percent),
            }
        })
    };
    panel(
        "20 warehouses of each partition".to_owned(),
        ("New Orders and Payments with a remote warehouse, %", Scale::Linear),
        ENGINES.into_iter().enumerate().map(line).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::statements::as_stated;
    use super::*;

    #[test]
    fn every_case_is_a_comparison_of_all_engines() {
        let settings = Setting::all();
        // 3 shares at two indexes and two more indexes, of both lengths.
        assert_eq!(settings.len(), 2 * (2 * 3 + 2) + 3);
        let cases: Vec<Case> = settings.iter().map(Setting::case).collect();
        real::assert_cases(ENTRIES, &cases);
        let engine = |entry: &'static str| entry.split_whitespace().next().unwrap_or_default();
        let names: Vec<&str> = ENTRIES.split(',').map(engine).collect();
        assert_eq!(ENGINES.map(EngineKind::name).to_vec(), names);
    }

    #[test]
    fn figures_have_a_point_for_each_run() {
        let options = RealOptions { rounds: 3, seconds: 1.0 };
        let figures = figures(&as_stated(), &options);
        let counts = |figure: &Figure| -> Vec<Vec<usize>> {
            let panels = figure.panels.iter();
            panels.map(|panel| panel.series.iter().map(|series| series.points.len()).collect()).collect()
        };
        assert_eq!(counts(&figures[0].1), [[3; 8]; 2]);
        assert_eq!(counts(&figures[1].1), [[4; 4]; 2]);
        assert_eq!(counts(&figures[2].1), [[3; 4]]);
        assert!(figures.iter().all(|(_, figure)| figure.svg().contains("(not ACID)")));
    }
}
