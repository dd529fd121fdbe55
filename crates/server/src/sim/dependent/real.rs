//! Dependent transactions and latencies for real, on two partitions of this machine.
//!
//! The updates of the index take their part of the same two cores (DET-56), so that throughput is compared with that of the same
//! engine with the same updates and no dependent transactions. Latencies are those of each kind of calls by itself, at a rate that is
//! far below what the machine can do, and not of a mixture.

use ordain_db::engine::EngineKind;
use ordain_sim::scale::bars::Bars;
use ordain_sim::scale::dependent::latency;
use ordain_sim::scale::evaluation::LOW;
use ordain_sim::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};

use super::super::real::{self, Case, Line, Real, RealOptions, median};

/// What is compared; ratios are to the first.
const ENTRIES: &str = "calvin,two-phase";

/// The same as engines.
pub(super) const ENGINES: [EngineKind; 2] = [EngineKind::Calvin, EngineKind::TwoPhase];

/// Shares of distributed transactions, in percent.
pub(super) const DISTRIBUTED: [f64; 2] = [0.0, 100.0];

/// Shares of dependent transactions, in percent.
pub(super) const SHARES: [f64; 3] = [0.0, 50.0, 100.0];

/// How often each entry of the index is updated in a second.
pub(super) const VOLATILITIES: [f64; 4] = [0.0, 1.0, 10.0, 100.0];

/// Shares of the work that come before the index is read, in percent, where all are dependent and local, and nothing is updated.
pub(super) const POSITIONS: [u8; 3] = [0, 50, 100];

/// Calls outstanding over both partitions.
const OUTSTANDING: u32 = 128;

/// Calls per second, over both partitions, for latencies. Two cores do at most 13,333 long transactions of one partition, and half as many
/// of two.
const OFFERED: u32 = 1_500;

/// Records of each partition beyond the contended ones, as in the simulation.
const COLD_RECORDS: u64 = 50_000;

/// A kind of calls, for latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub(super) is_distributed: bool,
    pub(super) is_dependent: bool,
}

impl Kind {
    /// All four, as the paper has them.
    pub(super) const ALL: [Kind; 4] = [
        Kind { is_distributed: false, is_dependent: false },
        Kind { is_distributed: true, is_dependent: false },
        Kind { is_distributed: false, is_dependent: true },
        Kind { is_distributed: true, is_dependent: true },
    ];

    /// For people.
    pub(super) fn name(self) -> &'static str {
        match (self.is_distributed, self.is_dependent) {
            (false, false) => "local",
            (true, false) => "distributed",
            (false, true) => "dependent",
            (true, true) => "dependent distributed",
        }
    }
}

/// What is run on both engines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Setting {
    /// As many calls as can be done.
    Throughput { distributed_percent: f64, dependent_percent: f64, volatility: f64, position_percent: u8 },
    /// Calls of one kind at light load.
    Latency(Kind),
}

impl Setting {
    /// All, each once.
    pub(super) fn all() -> Vec<Setting> {
        let mut all = Vec::new();
        for distributed_percent in DISTRIBUTED {
            for volatility in VOLATILITIES {
                all.extend(SHARES.map(|dependent_percent| Setting::Throughput {
                    distributed_percent,
                    dependent_percent,
                    volatility,
                    position_percent: 0,
                }));
            }
        }
        let later = POSITIONS.into_iter().filter(|position| *position > 0);
        all.extend(later.map(Setting::at_position));
        all.extend(Kind::ALL.map(Setting::Latency));
        all
    }

    /// Everything is dependent and local, and reads the index after so much of its work.
    pub(super) fn at_position(position_percent: u8) -> Setting {
        let (distributed_percent, dependent_percent, volatility) = (0.0, 100.0, 0.0);
        Setting::Throughput { distributed_percent, dependent_percent, volatility, position_percent }
    }

    fn case(&self) -> Case {
        let records = 2 * ((1.0 / LOW).round() as u64 + COLD_RECORDS);
        let workload = format!("micro --records {records} --contention-index {LOW} --work 15");
        match *self {
            Setting::Throughput { distributed_percent, dependent_percent, volatility, position_percent } => {
                Case {
                    name: format!(
                        "{distributed_percent} % distributed, {dependent_percent} % dependent at {position_percent} % of the work, \
                         volatility {volatility}"
                    ),
                    workload: format!(
                        "{workload} --clients {OUTSTANDING} --multi-partition {distributed_percent} --dependent {dependent_percent} \
                         --dependent-at {position_percent} --volatility {volatility}"
                    ),
                }
            }
            Setting::Latency(kind) => {
                let percent = |is: bool| if is { 100 } else { 0 };
                let (distributed, dependent) = (percent(kind.is_distributed), percent(kind.is_dependent));
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
            Setting::Throughput { distributed_percent, dependent_percent, volatility, position_percent } => {
                format!(
                    "throughput,,{distributed_percent},{dependent_percent},{volatility},{position_percent}"
                )
            }
            Setting::Latency(kind) => {
                let percent = |is: bool| if is { 100 } else { 0 };
                let (distributed, dependent) = (percent(kind.is_distributed), percent(kind.is_dependent));
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

/// A line for each setting and engine.
pub(super) fn csv(measured: &[Real]) -> String {
    let settings: Vec<String> = Setting::all().iter().map(Setting::columns).collect();
    let columns = "of,offered_txn_s,distributed_percent,dependent_percent,volatility,position_percent";
    real::csv(measured, (columns, &settings))
}

/// What was measured of both engines.
pub(super) struct Points(pub(super) Vec<(Setting, Vec<Line>)>);

impl Points {
    pub(super) fn new(measured: &[Real]) -> Points {
        let lines = measured.iter().map(|real| real.lines.clone());
        Points(Setting::all().into_iter().zip(lines).collect())
    }

    /// What an engine did, where it did anything.
    pub(super) fn find(&self, engine: EngineKind, setting: Setting) -> Option<&Line> {
        let (_, lines) = self.0.iter().find(|(other, _)| *other == setting)?;
        lines.iter().find(|line| line.engine == engine && line.throughput() > 0.0)
    }

    /// The points of an engine at those settings that have a place on an axis, ascending.
    fn series(
        &self,
        engine: EngineKind,
        (name, style): (String, Style),
        place: impl Fn(&Setting) -> Option<f64>,
    ) -> Series {
        let at = |(setting, _): &(Setting, Vec<Line>)| {
            Some((place(setting)?, self.find(engine, *setting)?.throughput()))
        };
        let mut points: Vec<(f64, f64)> = self.0.iter().filter_map(at).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series { name, style, points }
    }

    /// A line for each engine, the marker, and volatility, the colour.
    fn lines(&self, volatilities: &[f64], place: impl Fn(&Setting) -> Option<f64>) -> Vec<Series> {
        let mut lines = Vec::new();
        for (shape, engine) in ENGINES.into_iter().enumerate() {
            for (color, volatility) in volatilities.iter().enumerate() {
                let label = (format!("{}, volatility {volatility}", engine.name()), Style { color, shape });
                lines.push(self.series(engine, label, |setting| match setting {
                    Setting::Throughput { volatility: own, .. } if own == volatility => place(setting),
                    _ => None,
                }));
            }
        }
        lines
    }
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
        let lines = points.lines(&VOLATILITIES, |setting| match setting {
            Setting::Throughput { distributed_percent, dependent_percent, position_percent: 0, .. } => {
                (*distributed_percent == distributed).then_some(*dependent_percent)
            }
            _ => None,
        });
        panel(format!("{distributed} % distributed"), "dependent transactions, %", lines)
    };
    let over_positions = points.lines(&VOLATILITIES[..1], |setting| match setting {
        Setting::Throughput { position_percent, .. } => {
            (*setting == Setting::at_position(*position_percent)).then_some(f64::from(*position_percent))
        }
        Setting::Latency(_) => None,
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
        assert_eq!(ENGINES.map(EngineKind::name).to_vec(), ENTRIES.split(',').collect::<Vec<_>>());
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
