//! Real runs beside the simulated ones: two partitions in one process on this machine, by `ordain bench compare`.
//!
//! What the simulator does not know is in these: caches, threads, the operating system. The load generator has its part of the same
//! cores. An experiment says what it compares, and everything is run in [rounds](crate::bench::rounds), all cases of a round before the
//! next one: what is compared are runs of the same round, of one case or of several.

use std::fmt::Write as _;

use ordain_db::engine::EngineKind;
use ordain_sim::scale::bars::{Bar, Bars};
use ordain_sim::scale::figure::{Series, Style};
use ordain_sim::scale::shapes::Judgement;
use serde::Serialize;

use super::print;
use crate::bench::Figures;
use crate::bench::compare::{self, Compared, Ran};
use crate::bench::options::SECONDS;
use crate::bench::report::thousands;
use crate::bench::rounds::Spread;
use crate::deadlocks::Deadlocks;
use crate::output::Output;
use crate::quantity::number_within;

/// How much is run for real.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct RealOptions {
    /// Rounds of real runs with two partitions on this machine; 0 for none
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=1_000))]
    pub rounds: u16,
    /// Seconds of each real run
    #[arg(long, default_value_t = 1.0, value_parser = number_within(SECONDS, "seconds"))]
    pub seconds: f64,
}

impl RealOptions {
    /// Checks that there is something to run where nothing is simulated.
    pub(super) fn check(&self, real_only: bool) -> Result<(), String> {
        match self.rounds {
            0 if real_only => {
                Err("--real-only with --rounds 0 runs nothing: leave one of them out".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// A note for figures: what was run. `load` says what the calls are.
    pub(super) fn note(&self, load: &str) -> String {
        format!(
            "For real: two partitions in one process, with the load generator on the same cores; {load}; medians of {} rounds of {} s \
             in which all took turns.",
            self.rounds, self.seconds
        )
    }
}

/// What is compared.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// For people.
    pub(super) name: String,
    /// What follows the entries on the command line of `ordain bench compare`.
    pub(super) workload: String,
}

impl Case {
    /// The command line after `ordain bench`.
    fn command(&self, entries: &str, options: &RealOptions) -> String {
        let RealOptions { rounds, seconds } = options;
        let workload = &self.workload;
        format!(
            "--partitions 2 --seconds {seconds} compare --entries \"{entries}\" --rounds {rounds} {workload}"
        )
    }
}

/// What an engine came to in a case, round by round.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Line {
    pub(super) engine: EngineKind,
    /// Transactions per second.
    pub(super) throughputs: Vec<f64>,
    /// Latencies in microseconds: the median and the 99th percentile.
    pub(super) p50_us: Vec<f64>,
    pub(super) p99_us: Vec<f64>,
    /// Over whole runs.
    pub(super) restarts: Vec<f64>,
    pub(super) local_deadlocks: Vec<f64>,
    pub(super) distributed_deadlocks: Vec<f64>,
    /// Calls that gave up in the measured part.
    pub(super) given_up: Vec<f64>,
    /// Updates of the index per second that were asked for, and that were made; none where there is no index to update.
    pub(super) updates_wanted: Vec<f64>,
    pub(super) updates: Vec<f64>,
}

impl Line {
    fn new(engine: EngineKind, rounds: &[Figures]) -> Line {
        let of = |value: &dyn Fn(&Figures) -> f64| rounds.iter().map(value).collect::<Vec<f64>>();
        let deadlocks = |count: fn(&Deadlocks) -> u64| {
            of(&|figures| figures.report.deadlocks.as_ref().map_or(0, count) as f64)
        };
        let updates = |value: fn(&crate::bench::BackgroundReport) -> f64| {
            rounds.iter().filter_map(|figures| figures.background.as_ref().map(value)).collect()
        };
        Line {
            engine,
            throughputs: of(&|figures| figures.report.throughput_txn_s),
            p50_us: of(&|figures| figures.report.latency_p50_us as f64),
            p99_us: of(&|figures| figures.report.latency_p99_us as f64),
            restarts: of(&|figures| figures.report.restarts as f64),
            local_deadlocks: deadlocks(|deadlocks| deadlocks.local_deadlocks),
            distributed_deadlocks: deadlocks(|deadlocks| deadlocks.distributed_deadlocks),
            given_up: of(&|figures| figures.report.contended as f64),
            updates_wanted: updates(|updates| updates.background_wanted_txn_s),
            updates: updates(|updates| updates.background_txn_s),
        }
    }

    /// Median throughput.
    pub(super) fn throughput(&self) -> f64 {
        median(&self.throughputs)
    }

    /// Throughput over that of another line, of runs of the same round.
    pub(super) fn over(&self, other: &Line) -> Spread {
        over(&self.throughputs, &other.throughputs)
    }
}

/// The middle of some rounds.
pub(super) fn median(rounds: &[f64]) -> f64 {
    Spread::of(rounds.iter().copied()).median
}

/// One over another, round by round.
pub(super) fn over(one: &[f64], other: &[f64]) -> Spread {
    Spread::of(one.iter().zip(other).filter(|(_, other)| **other > 0.0).map(|(one, other)| one / other))
}

/// What was measured with each setting.
pub(super) struct Points<S>(pub(super) Vec<(S, Vec<Line>)>);

impl<S: Copy + PartialEq> Points<S> {
    /// `settings` are those of the measured cases, in their order.
    pub(super) fn new(settings: Vec<S>, measured: &[Real]) -> Points<S> {
        let lines = measured.iter().map(|real| real.lines.clone());
        Points(settings.into_iter().zip(lines).collect())
    }

    /// What an engine did, where it did anything.
    pub(super) fn find(&self, engine: EngineKind, setting: S) -> Option<&Line> {
        let (_, lines) = self.0.iter().find(|(other, _)| *other == setting)?;
        lines.iter().find(|line| line.engine == engine && line.throughput() > 0.0)
    }

    /// Throughput of an engine with a setting over that of another, or with another: the median over the rounds.
    pub(super) fn over(&self, one: (EngineKind, S), other: (EngineKind, S)) -> Option<f64> {
        Some(self.find(one.0, one.1)?.over(self.find(other.0, other.1)?).median)
    }

    /// The points of an engine at those settings that have a place on an axis, ascending.
    pub(super) fn series(
        &self,
        engine: EngineKind,
        (name, style): (String, Style),
        place: impl Fn(&S) -> Option<f64>,
    ) -> Series {
        let at = |(setting, _): &(S, Vec<Line>)| {
            Some((place(setting)?, self.find(engine, *setting)?.throughput()))
        };
        let mut points: Vec<(f64, f64)> = self.0.iter().filter_map(at).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series { name, style, points }
    }
}

/// A comparison of engines.
#[derive(Serialize)]
pub(super) struct Real {
    name: String,
    /// What was run, after `ordain bench`.
    command: String,
    compared: Compared,
    /// A line for each engine, in their order.
    #[serde(skip)]
    pub(super) lines: Vec<Line>,
}

/// Runs all cases.
///
/// # Errors
/// When a run fails or leaves data that is not consistent.
pub(super) fn measure(entries: &str, cases: &[Case], options: &RealOptions) -> Result<Vec<Real>, String> {
    let commands: Vec<String> = cases.iter().map(|case| case.command(entries, options)).collect();
    commands.iter().for_each(|command| tracing::info!("ordain bench {command}"));
    let ran = compare::measured_together(&commands, options.rounds)?;
    let real = |((case, command), Ran { compared, runs }): ((&Case, String), Ran)| Real {
        name: case.name.clone(),
        command,
        compared,
        lines: runs.iter().map(|(engine, rounds)| Line::new(*engine, rounds)).collect(),
    };
    Ok(cases.iter().zip(commands).zip(ran).map(real).collect())
}

/// A line for each engine in each case.
pub(super) fn report(measured: &[Real]) -> String {
    let mut out = String::new();
    for Real { name, compared, lines, .. } in measured {
        let first = lines.first().map(|line| line.engine.label()).unwrap_or_default();
        for (row, line) in compared.rows().iter().zip(lines) {
            let (rate, ratio) = (row.throughput(), row.ratio());
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "REAL {name}: {} {}/s ({} to {}), {:.2} times {first} ({:.2} to {:.2}), mean latency {:.2} ms, CPU {:.2} us",
                line.engine.label(),
                thousands(rate.median),
                thousands(rate.least),
                thousands(rate.most),
                ratio.median,
                ratio.least,
                ratio.most,
                row.latency_mean_us().median / 1e3,
                row.cpu_us().median
            );
        }
    }
    out
}

/// Everything, round by round.
pub(super) fn json(measured: &[Real]) -> Result<String, String> {
    let text = serde_json::to_string_pretty(measured).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// Prints what was measured, and writes it: `real.json`, `real.csv` and `real.txt`. The note says what was run; `settings` are for
/// [`csv`].
pub(super) fn write(
    output: &Output,
    measured: &[Real],
    note: &str,
    settings: (&str, &[String]),
    judgements: &[Judgement],
) -> Result<(), String> {
    output.write("real.json", &json(measured)?)?;
    output.write("real.csv", &csv(measured, settings))?;
    let text = text(note, measured, judgements);
    print(&text)?;
    output.write("real.txt", &text)
}

/// What was measured for people: the note, a line for each engine in each case, and what the paper states beside them.
fn text(note: &str, measured: &[Real], judgements: &[Judgement]) -> String {
    let mut out = format!("{note}\n\n{}", report(measured));
    for judgement in judgements {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n{judgement}");
    }
    out
}

/// The names of the columns after those of the settings.
const COLUMNS: &str = "engine,acid,throughput_txn_s_least,throughput_txn_s,throughput_txn_s_most,\
                       ratio_to_first_least,ratio_to_first,ratio_to_first_most,cpu_us,latency_us_mean,\
                       latency_us_p50,latency_us_p99,restarts,local_deadlocks,distributed_deadlocks,given_up,\
                       updates_wanted_per_s,updates_per_s";

/// A line for each engine in each case, under a line with the names of the columns: medians of the rounds, unless the name says
/// otherwise. `settings` names the columns that say what a case is, and has their values for each.
fn csv(measured: &[Real], (columns, settings): (&str, &[String])) -> String {
    let mut out = format!("{columns},{COLUMNS}\n");
    for (Real { compared, lines, .. }, setting) in measured.iter().zip(settings) {
        for (row, line) in compared.rows().iter().zip(lines) {
            let acid = if line.engine.is_acid() { "yes" } else { "no" };
            let (rate, ratio) = (row.throughput(), row.ratio());
            // Writing to a string cannot fail.
            let _ = write!(out, "{setting},{},{acid}", line.engine.label());
            let _ = write!(out, ",{:.1},{:.1},{:.1}", rate.least, rate.median, rate.most);
            let _ = write!(out, ",{:.3},{:.3},{:.3}", ratio.least, ratio.median, ratio.most);
            let _ = write!(out, ",{:.2},{:.0}", row.cpu_us().median, row.latency_mean_us().median);
            let rest = [
                (&line.p50_us, 0),
                (&line.p99_us, 0),
                (&line.restarts, 0),
                (&line.local_deadlocks, 0),
                (&line.distributed_deadlocks, 0),
                (&line.given_up, 0),
                (&line.updates_wanted, 1),
                (&line.updates, 1),
            ];
            for (values, decimals) in rest {
                let _ = write!(out, ",{:.decimals$}", median(values));
            }
            out.push('\n');
        }
    }
    out
}

/// A bar for each engine in each case, of the highest there; `value` gives its length, and how it is told.
pub(super) fn bars(
    measured: &[Real],
    title: &str,
    value: impl Fn(&Line) -> (f64, String),
    note: String,
) -> Bars {
    let (mut bars, mut parts) = (Vec::new(), Vec::new());
    for Real { name, lines, .. } in measured {
        let highest = lines.iter().map(|line| value(line).0).fold(1e-9, f64::max);
        for (place, line) in lines.iter().enumerate() {
            let (length, told) = value(line);
            // A colour for each engine.
            let mut lengths = vec![0.0; place];
            // Divided first, so that the highest has 100 and not a rounding below it.
            lengths.push(length / highest * 100.0);
            if place == parts.len() {
                parts.push(line.engine.label().to_owned());
            }
            bars.push(Bar { name: format!("{name}: {}, {told}", line.engine.label()), parts: lengths });
        }
    }
    Bars { title: title.to_owned(), parts, bars, notes: vec![note] }
}

/// A line as if it had been measured, with no more than its throughput, for tests.
#[cfg(test)]
pub(super) fn synthetic(engine: EngineKind, throughput: f64) -> Line {
    Line {
        engine,
        throughputs: vec![throughput; 3],
        p50_us: vec![1_000.0; 3],
        p99_us: vec![9_000.0; 3],
        restarts: vec![0.0; 3],
        local_deadlocks: vec![0.0; 3],
        distributed_deadlocks: vec![0.0; 3],
        given_up: vec![0.0; 3],
        updates_wanted: Vec::new(),
        updates: Vec::new(),
    }
}

/// That every case is a comparison of so many engines, for tests.
#[cfg(test)]
pub(super) fn assert_cases(entries: &str, cases: &[Case]) {
    use crate::bench::compare::options::Comparison;
    let options = RealOptions { rounds: 1, seconds: 0.1 };
    for case in cases {
        let command = case.command(entries, &options);
        let engines = entries.split(',').count();
        assert_eq!(
            Comparison::parse_line(&command).map(|comparison| comparison.cases()),
            Ok(engines),
            "{}",
            case.name
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_run_nothing_is_refused() {
        let options = |rounds| RealOptions { rounds, seconds: 1.0 };
        assert!(options(0).check(false).is_ok() && options(1).check(true).is_ok());
        assert!(options(0).check(true).is_err_and(|problem| problem.contains("leave one of them out")));
    }

    #[test]
    fn comparisons_are_told_in_lines_bars_csv_and_json() {
        let case = |name: &str, workload: &str| Case { name: name.to_owned(), workload: workload.to_owned() };
        let cases = [
            case("few", "micro --records 40000 --transactions 200"),
            case("volatile", "micro --records 40000 --dependent 50 --volatility 5 --clients 8"),
        ];
        let options = RealOptions { rounds: 2, seconds: 0.1 };
        let measured = measure("calvin,two-phase-without-commit-protocol", &cases, &options).unwrap();
        let text = report(&measured);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[0].starts_with("REAL few: calvin ") && lines[0].contains(" 1.00 times calvin"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("REAL volatile: two-phase-without-commit-protocol (not ACID) "),
            "{text}"
        );
        let settings = ["200,0".to_owned(), "0,5".to_owned()];
        let csv = csv(&measured, ("transactions,volatility", &settings));
        let columns = COLUMNS.split(',').count() + 2;
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
        assert_eq!(csv.lines().filter(|line| line.contains(",no,")).count(), 2, "{csv}");
        assert!(csv.lines().nth(1).is_some_and(|line| line.starts_with("200,0,calvin,yes,")), "{csv}");
        assert!(
            measured[0].lines[0].updates.is_empty() && measured[1].lines[0].updates_wanted == [1_000.0; 2]
        );
        let bars =
            bars(&measured, "Throughput", |line| (line.throughput(), String::new()), options.note("few"));
        assert_eq!(bars.bars.iter().map(|bar| bar.parts.len()).collect::<Vec<_>>(), [1, 2, 1, 2]);
        assert!(bars.bars.iter().filter(|bar| bar.parts.contains(&100.0)).count() == 2, "{bars:?}");
        let judged = ordain_sim::scale::shapes::judgement(("DET-X02", "§3"), "it falls".to_owned(), None);
        let text = super::text("For real", &measured, &[judged]);
        assert!(
            text.starts_with("For real\n\nREAL few: ") && text.contains("\n\nDET-X02 (§3): not measured\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&json(&measured).unwrap()).unwrap();
        assert_eq!(json[1]["compared"]["rows"][0]["entry"], "calvin");
        assert_eq!(json[1]["compared"]["rows"][0]["throughputs_txn_s"].as_array().map(Vec::len), Some(2));
    }
}
