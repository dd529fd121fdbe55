//! What a comparison prints: a table, bars for a terminal, a plot, and JSON for machines.

use std::fmt::Write as _;

use ordain_sim::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use serde::Serialize;

use super::super::report::{Report, thousands};
use super::super::rounds::Spread;
use super::super::work;
use super::options::{Case, Comparison};
use crate::deadlocks::Deadlocks;

/// Letters of the longest bar.
const BAR_LETTERS: f64 = 48.0;

/// Values of what is varied that differ by more than this factor are placed by their logarithm.
const LOGARITHMIC_FROM: f64 = 20.0;

/// The entry of a case as it was given, with the [label](ordain_db::engine::EngineKind::label) of its engine where that is no database.
fn label(case: &Case) -> String {
    let (engine, entry) = (case.run.engine, &case.entry);
    if engine.is_acid() {
        return entry.clone();
    }
    match entry.strip_prefix(engine.name()) {
        Some(options) => format!("{}{options}", engine.label()),
        None => format!("{entry}: {}", engine.label()),
    }
}

/// What a run of an entry at a value came to, round by round.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    value: Option<String>,
    /// As it was given; the bound without a commit protocol is labelled (DET-41).
    entry: String,
    /// Whether its engine keeps what a database promises.
    acid: bool,
    throughputs_txn_s: Vec<f64>,
    cpu_per_txn_us: Vec<f64>,
    latency_mean_us: Vec<f64>,
    latency_p50_us: Vec<u64>,
    latency_p99_us: Vec<u64>,
    restarts: Vec<u64>,
    /// Nothing for an engine that has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deadlocks: Vec<Deadlocks>,
    throughput_txn_s: Spread,
    ratio: Spread,
}

impl Row {
    pub(super) fn new(case: &Case) -> Row {
        let none = Spread::of(std::iter::empty());
        Row {
            value: case.value.clone(),
            entry: label(case),
            acid: case.run.engine.is_acid(),
            throughputs_txn_s: Vec::new(),
            cpu_per_txn_us: Vec::new(),
            latency_mean_us: Vec::new(),
            latency_p50_us: Vec::new(),
            latency_p99_us: Vec::new(),
            restarts: Vec::new(),
            deadlocks: Vec::new(),
            throughput_txn_s: none,
            ratio: none,
        }
    }

    pub(super) fn add(&mut self, report: Report) {
        self.throughputs_txn_s.push(report.throughput_txn_s);
        self.cpu_per_txn_us.push(report.cpu_per_txn_us);
        self.latency_mean_us.push(report.latency_mean_us);
        self.latency_p50_us.push(report.latency_p50_us);
        self.latency_p99_us.push(report.latency_p99_us);
        self.restarts.push(report.restarts);
        self.deadlocks.extend(report.deadlocks);
    }

    /// Transactions per second.
    pub(crate) fn throughput(&self) -> Spread {
        self.throughput_txn_s
    }

    /// Throughput over that of the first entry at the same value, of runs of the same round.
    pub(crate) fn ratio(&self) -> Spread {
        self.ratio
    }

    /// CPU time of the partitions for a transaction, in microseconds.
    pub(crate) fn cpu_us(&self) -> Spread {
        Spread::of(self.cpu_per_txn_us.iter().copied())
    }

    /// Mean latency in microseconds.
    pub(crate) fn latency_mean_us(&self) -> Spread {
        Spread::of(self.latency_mean_us.iter().copied())
    }
}

/// All rows, with what they were run for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Compared {
    workload: String,
    partitions: u16,
    seed: u64,
    seconds: f64,
    rounds: u16,
    varied: Option<String>,
    rows: Vec<Row>,
    /// What each run of the first entry was, where not varied.
    #[serde(skip)]
    heading: String,
}

/// What the busy work takes, as measured now, if there is any.
fn busy_work(comparison: &Comparison) -> String {
    let mut rounds: Vec<u32> =
        comparison.cases.iter().filter_map(|case| case.workload.work_rounds()).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let measured = |rounds: u32| {
        format!("; busy work of {rounds} rounds takes {:.2} us with each record", work::microseconds(rounds))
    };
    rounds.into_iter().map(measured).collect()
}

impl Compared {
    /// Holds the rows against the first entry at the same value, round by round.
    pub(super) fn new(comparison: &Comparison, mut rows: Vec<Row>) -> Compared {
        let mut first: Option<(Option<String>, Vec<f64>)> = None;
        for row in &mut rows {
            if first.as_ref().is_none_or(|(value, _)| *value != row.value) {
                first = Some((row.value.clone(), row.throughputs_txn_s.clone()));
            }
            let base = first.iter().flat_map(|(_, throughputs)| throughputs);
            row.ratio = Spread::of(row.throughputs_txn_s.iter().zip(base).map(|(own, base)| own / base));
            row.throughput_txn_s = Spread::of(row.throughputs_txn_s.iter().copied());
        }
        let case = &comparison.cases[0];
        let workload = case.name.to_owned();
        let (partitions, seconds) = (case.run.partitions, case.run.seconds);
        let length = match case.run.transactions {
            Some(transactions) => format!("{transactions} transactions"),
            None => format!("{seconds} s"),
        };
        Compared {
            heading: format!(
                "{workload}, {} rounds in turn, {length} each, seed {}{}",
                comparison.rounds,
                case.run.seed,
                busy_work(comparison)
            ),
            workload,
            partitions,
            seed: case.run.seed,
            seconds,
            rounds: comparison.rounds,
            varied: comparison.sweep.as_ref().map(|sweep| sweep.option.clone()),
            rows,
        }
    }

    /// A line for each value and entry.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The widths of the columns of values and of entries.
    fn widths(&self) -> (usize, usize) {
        let longest =
            |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let values = self.rows.iter().filter_map(|row| row.value.as_deref());
        let (varied, entries) = (self.varied.as_deref(), self.rows.iter().map(|row| row.entry.as_str()));
        (longest(&mut values.chain(varied)), longest(&mut entries.chain(std::iter::once("entry"))))
    }

    /// The table: a line for each value and entry.
    pub(super) fn table(&self) -> String {
        let (value_width, entry_width) = self.widths();
        let mut out = format!("  {}\n\n", self.heading);
        let mut line = |value: &str, entry: &str, cells: [String; 9]| {
            let mut text = format!("  {value:<value_width$}  {entry:<entry_width$}");
            for (place, cell) in cells.iter().enumerate() {
                let width = [12, 11, 11, 10, 8, 8, 10, 11, 11][place];
                let _ = write!(text, "{cell:>width$}");
            }
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}", text.trim_end());
        };
        let names = |names: [&str; 9]| names.map(str::to_owned);
        line("", "", names(["", "txn/s", "", "", "ratio", "", "CPU us", "mean us", "p50 us"]));
        let varied = self.varied.as_deref().unwrap_or_default();
        line(
            varied,
            "entry",
            names(["min", "median", "max", "min", "median", "max", "per txn", "latency", "latency"]),
        );
        for row in &self.rows {
            let (rate, ratio) = (row.throughput_txn_s, row.ratio);
            let (cpu, mean) = (row.cpu_us().median, row.latency_mean_us().median);
            let latency = Spread::of(row.latency_p50_us.iter().map(|latency| *latency as f64)).median;
            let [least, median, most] = [rate.least, rate.median, rate.most].map(thousands);
            let [ratio_least, ratio, ratio_most] =
                [ratio.least, ratio.median, ratio.most].map(|ratio| format!("{ratio:.2}"));
            let (cpu, mean, latency) = (format!("{cpu:.2}"), thousands(mean), thousands(latency));
            let value = row.value.as_deref().unwrap_or_default();
            let cells = [least, median, most, ratio_least, ratio, ratio_most, cpu, mean, latency];
            line(value, &row.entry, cells);
        }
        out + &self.deadlocks_table()
    }

    /// A line for each row of an engine that has deadlocks, with the sums over its rounds; or nothing.
    fn deadlocks_table(&self) -> String {
        let (value_width, entry_width) = self.widths();
        let mut out = String::new();
        for row in self.rows.iter().filter(|row| !row.deadlocks.is_empty()) {
            if out.is_empty() {
                out.push_str("\n  deadlocks over all rounds\n");
            }
            let value = row.value.as_deref().unwrap_or_default();
            let told = Deadlocks::sum(&row.deadlocks);
            let restarts: u64 = row.restarts.iter().sum();
            let _ = writeln!(
                out,
                "  {value:<value_width$}  {:<entry_width$}  {told}; {restarts} attempts begun again",
                row.entry
            );
        }
        out
    }

    /// A bar for each line of the table: the median, of the highest.
    pub(super) fn bars(&self) -> String {
        let (value_width, entry_width) = self.widths();
        let highest = self.rows.iter().map(|row| row.throughput_txn_s.median).fold(0.0, f64::max);
        let mut out = String::new();
        for row in &self.rows {
            let median = row.throughput_txn_s.median;
            let bar = "█".repeat((median / highest.max(1e-9) * BAR_LETTERS).round() as usize);
            let value = row.value.as_deref().unwrap_or_default();
            let _ = writeln!(
                out,
                "  {value:<value_width$}  {:<entry_width$}  {bar} {}",
                row.entry,
                thousands(median)
            );
        }
        out
    }

    /// The entries, each once, in their order.
    fn entries(&self) -> Vec<&str> {
        let mut entries: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !entries.contains(&row.entry.as_str()) {
                entries.push(&row.entry);
            }
        }
        entries
    }

    /// The axis below and where each row stands on it; `None` where nothing is varied.
    fn places(&self) -> Option<(Axis, Vec<f64>)> {
        let varied = self.varied.as_ref()?;
        let values: Vec<&str> = self.rows.iter().filter_map(|row| row.value.as_deref()).collect();
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
        let numbers = numbers.filter(|numbers: &Vec<f64>| numbers.iter().all(|number| number.is_finite()));
        Some(match numbers {
            Some(numbers) => {
                let (least, most) =
                    (Spread::of(numbers.iter().copied()).least, Spread::of(numbers.iter().copied()).most);
                let scale = if least > 0.0 && most / least > LOGARITHMIC_FROM {
                    Scale::Logarithmic
                } else {
                    Scale::Linear
                };
                (Axis { label: varied.clone(), scale }, numbers)
            }
            None => {
                let mut different: Vec<&str> = values.clone();
                different.dedup();
                let place = |value: &&str| {
                    different.iter().position(|other| other == value).map_or(0.0, |place| place as f64 + 1.0)
                };
                let label = format!("{varied}: {}", different.join(", "));
                (Axis { label, scale: Scale::Linear }, values.iter().map(place).collect())
            }
        })
    }
}

/// Throughputs and ratios over what is varied, or over the rounds if nothing is.
pub(super) fn figure(compared: &Compared) -> Figure {
    let places = compared.places();
    let series = |rate: fn(&Row) -> f64, by_round: fn(&Compared, &Row, usize) -> f64| -> Vec<Series> {
        let line = |(number, entry): (usize, &str)| {
            let of_entry = || compared.rows.iter().enumerate().filter(move |(_, row)| row.entry == entry);
            let mut points: Vec<(f64, f64)> = match &places {
                Some((_, places)) => of_entry().map(|(place, row)| (places[place], rate(row))).collect(),
                None => of_entry()
                    .flat_map(|(_, row)| (0..row.throughputs_txn_s.len()).map(move |round| (row, round)))
                    .map(|(row, round)| (round as f64 + 1.0, by_round(compared, row, round)))
                    .collect(),
            };
            points.sort_by(|left, right| left.0.total_cmp(&right.0));
            Series { name: entry.to_owned(), style: Style { color: number, shape: number }, points }
        };
        compared.entries().into_iter().enumerate().map(line).collect()
    };
    let axis = || match &places {
        Some((axis, _)) => axis.clone(),
        None => Axis { label: "round".to_owned(), scale: Scale::Linear },
    };
    let panel = |title: &str, label: &str, series| Panel {
        title: title.to_owned(),
        x: axis(),
        y: Axis { label: label.to_owned(), scale: Scale::Linear },
        series,
    };
    let first = compared.entries().first().copied().unwrap_or_default();
    Figure {
        title: format!("{} on {}", compared.workload, compared.entries().join(", ")),
        panels: vec![
            panel(
                "Throughput",
                "thousand transactions per second",
                series(
                    |row| row.throughput_txn_s.median / 1e3,
                    |_, row, round| row.throughputs_txn_s[round] / 1e3,
                ),
            ),
            panel(
                "Ratio",
                &format!("throughput over that of {first}"),
                series(
                    |row| row.ratio.median,
                    |all, row, round| row.throughputs_txn_s[round] / all.rows[0].throughputs_txn_s[round],
                ),
            ),
        ],
        notes: vec![format!(
            "{}{}",
            compared.heading,
            if places.is_some() { "; medians, those of the ratios of runs of one round" } else { "" }
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(line: &str, throughputs: &[&[f64]]) -> Compared {
        let comparison = Comparison::parse_line(line).unwrap();
        let rows = comparison.cases.iter().zip(throughputs).map(|(case, throughputs)| Row {
            throughputs_txn_s: throughputs.to_vec(),
            cpu_per_txn_us: vec![3.5; throughputs.len()],
            latency_mean_us: vec![1_300.4; throughputs.len()],
            latency_p50_us: vec![1_200; throughputs.len()],
            ..Row::new(case)
        });
        Compared::new(&comparison, rows.collect())
    }

    const ROUNDS: [&[f64]; 2] = [&[1_000.0, 2_000.0, 4_000.0], &[500.0, 1_500.0, 1_000.0]];
    const LINE: &str = "compare --entries calvin,serial --rounds 3 bank --accounts 100";
    const SWEPT: &str = "compare --entries calvin,serial --rounds 3 --sweep accounts=100,10000 bank";

    #[test]
    fn ratios_are_those_of_runs_of_one_round() {
        let compared = compared(LINE, &ROUNDS);
        let spread = |least, median, most| Spread { least, median, most };
        assert_eq!(compared.rows[0].ratio, spread(1.0, 1.0, 1.0));
        assert_eq!(compared.rows[1].ratio, spread(0.25, 0.5, 0.75));
        assert_eq!(compared.rows[1].throughput_txn_s, spread(500.0, 1_000.0, 1_500.0));
    }

    #[test]
    fn the_table_has_a_line_for_each_value_and_entry() {
        let compared = compared(LINE, &ROUNDS);
        let table = compared.table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!((lines.len(), lines[0]), (6, "  bank, 3 rounds in turn, 5 s each, seed 1"), "{table}");
        let words: Vec<&str> = lines[3].split_whitespace().collect();
        let expected =
            ["entry", "min", "median", "max", "min", "median", "max", "per", "txn", "latency", "latency"];
        assert_eq!(words, expected);
        let cells: Vec<&str> = lines[5].split_whitespace().collect();
        let expected = ["serial", "500", "1,000", "1,500", "0.25", "0.50", "0.75", "3.50", "1,300", "1,200"];
        assert_eq!(cells, expected);
        let bars = compared.bars();
        let letters: Vec<usize> = bars.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(letters, [48, 24]);
    }

    #[test]
    fn what_is_no_database_is_labelled_everywhere() {
        let line =
            "compare --entries calvin,two-phase-without-commit-protocol --rounds 3 bank --accounts 100";
        let compared = compared(line, &ROUNDS);
        let label = "two-phase-without-commit-protocol (not ACID)";
        for text in [compared.table(), compared.bars(), figure(&compared).svg()] {
            assert!(text.contains(label), "{text}");
        }
        let json: serde_json::Value = serde_json::to_value(&compared).unwrap();
        assert_eq!((&json["rows"][0]["acid"], &json["rows"][0]["entry"]), (&true.into(), &"calvin".into()));
        assert_eq!((&json["rows"][1]["acid"], &json["rows"][1]["entry"]), (&false.into(), &label.into()));
        let with = |entry: &str| {
            let line = format!("compare --rounds 1 --entries {entry} bank --accounts 100");
            let mut arguments: Vec<_> = line.split_whitespace().map(std::ffi::OsString::from).collect();
            arguments[4] = format!("{entry} --clients 8").into();
            label_of(arguments)
        };
        assert_eq!(with("two-phase-without-commit-protocol"), format!("{label} --clients 8"));
        assert_eq!(with("serial"), "serial --clients 8");
    }

    fn label_of(arguments: Vec<std::ffi::OsString>) -> String {
        label(&Comparison::parse(arguments.into_iter()).unwrap().cases[0])
    }

    #[test]
    fn deadlocks_are_told_of_engines_that_have_them() {
        let line = "compare --entries calvin,two-phase --rounds 3 bank --accounts 100";
        let mut compared = compared(line, &ROUNDS);
        assert!(!compared.table().contains("deadlocks"), "{}", compared.table());
        let round = Deadlocks {
            distributed_deadlocks: 2,
            lock_timeouts: 2,
            false_timeouts: 1,
            ..Deadlocks::default()
        };
        compared.rows[1].deadlocks = vec![round; 3];
        compared.rows[1].restarts = vec![3, 4, 5];
        let table = compared.table();
        let expected = "  two-phase  0 local, 6 distributed, 0 phantom; 6 timeouts, 3 of them in no cycle (50.0%); 12 attempts begun \
                        again\n";
        assert!(table.ends_with(expected), "{table}");
        let json: serde_json::Value = serde_json::to_value(&compared).unwrap();
        assert_eq!(json["rows"][1]["deadlocks"][2]["false_timeouts"], 1);
        assert!(json["rows"][0].get("deadlocks").is_none(), "{json}");
    }

    #[test]
    fn ratios_are_to_the_first_entry_at_the_same_value() {
        let all = [ROUNDS[0], ROUNDS[1], &[10.0, 10.0, 10.0], &[40.0, 20.0, 30.0]];
        let compared = compared(SWEPT, &all);
        assert_eq!(compared.rows[2].ratio.median, 1.0);
        assert_eq!(compared.rows[3].ratio, Spread { least: 2.0, median: 3.0, most: 4.0 });
        let figure = figure(&compared);
        assert_eq!(figure.panels[0].x, Axis { label: "accounts".to_owned(), scale: Scale::Logarithmic });
        assert_eq!(figure.panels[0].series[1].points, [(100.0, 1.0), (10_000.0, 0.03)]);
        assert_eq!(figure.panels[1].series[1].points, [(100.0, 0.5), (10_000.0, 3.0)]);
        assert!(figure.svg().contains("serial"));
    }

    #[test]
    fn without_a_varied_option_rounds_are_plotted() {
        let compared = compared(LINE, &ROUNDS);
        let figure = figure(&compared);
        assert_eq!(figure.panels[0].series[0].points, [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0)]);
        assert_eq!(figure.panels[1].series[1].points, [(1.0, 0.5), (2.0, 0.75), (3.0, 0.25)]);
        let json: serde_json::Value = serde_json::to_value(&compared).unwrap();
        assert_eq!(json["rows"][1]["ratio"]["median"], 0.5);
    }

    #[test]
    fn values_that_are_no_numbers_stand_in_their_order() {
        let line = "compare --entries calvin --rounds 3 --sweep mix=b,a ycsb --records 1000";
        let figure = figure(&compared(line, &ROUNDS));
        assert_eq!(figure.panels[0].x.label, "mix: b, a");
        assert_eq!(figure.panels[0].series[0].points, [(1.0, 2.0), (2.0, 1.0)]);
    }
}
