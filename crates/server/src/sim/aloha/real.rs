//! The same workloads for real, beside the simulated ones: both engines in turn, by `ordain bench compare`.
//!
//! How many calls should be outstanding differs from engine to engine and from workload to workload: each entry is run once, for half as
//! long, with each of a few numbers, and then measured in [rounds](crate::bench::rounds) with the one with which it did the most.

mod cases;
mod statements;

use std::fmt::Write as _;

use ordain_sim::scale::bars::{Bar, Bars};
use serde::Serialize;

use self::cases::{CASES, Case};
use super::super::print;
use super::super::real::RealOptions;
use crate::bench::Figures;
use crate::bench::compare::{self, Compared, Ran};
use crate::bench::report::thousands;
use crate::bench::rounds::Spread;
use crate::output::Output;

/// A throughput that an entry came to with so many calls outstanding for each partition.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Tried {
    entry: String,
    clients_per_partition: u32,
    throughput_txn_s: f64,
}

/// What an entry came to, round by round.
#[derive(Clone, PartialEq, Debug)]
struct Line {
    /// With the calls outstanding, where they were chosen.
    entry: String,
    throughputs: Vec<f64>,
    latencies_us: Vec<f64>,
    cpu_us: Vec<f64>,
    /// Medians of the time until calls were computed that were answered before that.
    computed_us: Vec<f64>,
    /// Whether the most calls outstanding that were tried, or the fewest, were the best.
    at_an_end: bool,
}

impl Line {
    fn new(entry: String, at_an_end: bool, rounds: &[Figures]) -> Line {
        let of = |value: fn(&Figures) -> f64| rounds.iter().map(value).collect();
        let computed = rounds.iter().filter_map(|figures| figures.report.computed_p50_us);
        Line {
            entry,
            throughputs: of(|figures| figures.report.throughput_txn_s),
            latencies_us: of(|figures| figures.report.latency_mean_us),
            cpu_us: of(|figures| figures.report.cpu_per_txn_us),
            computed_us: computed.map(|time| time as f64).collect(),
            at_an_end,
        }
    }

    fn throughput(&self) -> f64 {
        median(&self.throughputs)
    }

    fn latency_us(&self) -> f64 {
        median(&self.latencies_us)
    }

    /// Throughput over that of another line, of runs of the same round.
    fn over(&self, other: &Line) -> Spread {
        let pairs = self.throughputs.iter().zip(&other.throughputs);
        Spread::of(pairs.filter(|(_, other)| **other > 0.0).map(|(own, other)| own / other))
    }
}

fn median(rounds: &[f64]) -> f64 {
    Spread::of(rounds.iter().copied()).median
}

/// A comparison of engines.
#[derive(Serialize)]
struct Real {
    name: &'static str,
    /// What was run, after `ordain bench`.
    command: String,
    /// What was run before, to find how many calls should be outstanding.
    tried: Vec<Tried>,
    compared: Compared,
    /// A line for each entry, in their order.
    #[serde(skip)]
    lines: Vec<Line>,
}

/// Runs all cases and writes `real.json`, `real.csv`, `real.txt` and `real.svg`.
///
/// # Errors
/// When a run fails or leaves data that is not consistent, or a file cannot be written.
pub(super) fn run(options: &RealOptions, output: &Output) -> Result<(), String> {
    let measured = measure(&CASES, options)?;
    let json = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
    output.write("real.json", &(json + "\n"))?;
    output.write("real.csv", &csv(&measured))?;
    output.write("real.svg", &bars(&measured, options).svg())?;
    let mut text = format!("{}\n\n{}", note(options), report(&measured));
    let lines: Vec<(&str, &[Line])> =
        measured.iter().map(|real| (real.name, real.lines.as_slice())).collect();
    for judgement in statements::judge(&lines) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{judgement}");
    }
    print(&text)?;
    output.write("real.txt", &text)
}

/// Runs some cases: first what finds out how many calls should be outstanding, then the rounds.
fn measure(cases: &[Case], options: &RealOptions) -> Result<Vec<Real>, String> {
    let tried = try_clients(cases, options)?;
    let chosen: Vec<Vec<(String, bool)>> =
        cases.iter().zip(&tried).map(|(case, tried)| choose(case, tried)).collect();
    let commands: Vec<String> = cases
        .iter()
        .zip(&chosen)
        .map(|(case, chosen)| {
            let entries: Vec<&str> = chosen.iter().map(|(entry, _)| entry.as_str()).collect();
            case.command(&entries.join(","), options.rounds, options.seconds)
        })
        .collect();
    commands.iter().for_each(|command| tracing::info!("ordain bench {command}"));
    let ran = compare::measured_together(&commands, options.rounds)?;
    let all = cases.iter().zip(commands).zip(tried).zip(chosen).zip(ran);
    let real = all.map(|((((case, command), tried), chosen), Ran { compared, runs })| {
        let lines = chosen.into_iter().zip(&runs);
        let lines = lines.map(|((entry, at_an_end), (_, rounds))| Line::new(entry, at_an_end, rounds));
        Real { name: case.name, command, tried, lines: lines.collect(), compared }
    });
    Ok(real.collect())
}

/// Runs each entry of each case once with each number of calls outstanding.
fn try_clients(cases: &[Case], options: &RealOptions) -> Result<Vec<Vec<Tried>>, String> {
    let mut commands = Vec::new();
    let mut tried = Vec::new();
    for case in cases {
        let each = case.entries.iter().flat_map(|entry| case.clients.iter().map(move |each| (*entry, *each)));
        let each: Vec<(&str, u32)> = each.collect();
        if !each.is_empty() {
            let entries: Vec<String> =
                each.iter().map(|(entry, clients)| case.with_clients(entry, *clients)).collect();
            commands.push(case.command(&entries.join(","), 1, options.seconds / 2.0));
        }
        tried.push(each);
    }
    let mut ran = compare::measured_together(&commands, 1)?.into_iter();
    let told = |each: Vec<(&str, u32)>| {
        if each.is_empty() {
            return Vec::new();
        }
        let runs = ran.next().map(|ran| ran.runs).unwrap_or_default();
        let rate = |rounds: &[Figures]| rounds.first().map_or(0.0, |first| first.report.throughput_txn_s);
        let each = each.into_iter().zip(&runs);
        each.map(|((entry, clients), (_, rounds))| Tried {
            entry: entry.to_owned(),
            clients_per_partition: clients,
            throughput_txn_s: rate(rounds),
        })
        .collect()
    };
    Ok(tried.into_iter().map(told).collect())
}

/// The entries of a case with the calls outstanding that were best for each, and whether that is the least or the most that was tried.
fn choose(case: &Case, tried: &[Tried]) -> Vec<(String, bool)> {
    let entry = |entry: &&str| {
        let own = tried.iter().filter(|tried| tried.entry == **entry);
        let best = own.max_by(|one, other| one.throughput_txn_s.total_cmp(&other.throughput_txn_s));
        match best {
            Some(Tried { clients_per_partition: clients, .. }) => {
                let ends = [case.clients.first(), case.clients.last()];
                (case.with_clients(entry, *clients), ends.contains(&Some(clients)))
            }
            None => ((*entry).to_owned(), false),
        }
    };
    case.entries.iter().map(entry).collect()
}

fn note(options: &RealOptions) -> String {
    format!(
        "For real: two partitions in one process where nothing else is said, with the load generator on the same cores; all transactions \
         distributed but with one partition; medians of {} rounds of {} s in which all took turns, each entry with as many calls outstanding \
         as were best for it of those that were tried before.",
        options.rounds, options.seconds
    )
}

/// A line for each entry of each case.
fn report(measured: &[Real]) -> String {
    let mut out = String::new();
    for Real { name, lines, .. } in measured {
        for line in lines {
            let rate = Spread::of(line.throughputs.iter().copied());
            let ratio = lines.first().map_or(rate, |first| line.over(first));
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "REAL {name}: {} {}/s ({} to {}), {:.2} times the first ({:.2} to {:.2}), mean latency {:.2} ms, CPU {:.2} us",
                line.entry,
                thousands(rate.median),
                thousands(rate.least),
                thousands(rate.most),
                ratio.median,
                ratio.least,
                ratio.most,
                line.latency_us() / 1e3,
                median(&line.cpu_us)
            );
            if !line.computed_us.is_empty() {
                let _ =
                    write!(out, ", computed at the median after {:.2} ms", median(&line.computed_us) / 1e3);
            }
            if line.at_an_end {
                let _ = write!(out, "; calls outstanding at an end of what was tried");
            }
            out.push('\n');
        }
    }
    out
}

/// A line for each entry of each case, under a line with the names of the columns: medians of the rounds, unless the name says otherwise.
fn csv(measured: &[Real]) -> String {
    let mut out = "case,entry,throughput_txn_s_least,throughput_txn_s,throughput_txn_s_most,ratio_to_first_least,ratio_to_first,\
                   ratio_to_first_most,cpu_us,latency_us_mean,at_an_end_of_what_was_tried\n"
        .to_owned();
    for Real { name, lines, .. } in measured {
        for line in lines {
            let rate = Spread::of(line.throughputs.iter().copied());
            let ratio = lines.first().map_or(rate, |first| line.over(first));
            let end = if line.at_an_end { "yes" } else { "no" };
            // Writing to a string cannot fail.
            let _ = write!(out, "\"{name}\",{}", line.entry);
            let _ = write!(out, ",{:.1},{:.1},{:.1}", rate.least, rate.median, rate.most);
            let _ = write!(out, ",{:.3},{:.3},{:.3}", ratio.least, ratio.median, ratio.most);
            let _ = writeln!(out, ",{:.2},{:.0},{end}", median(&line.cpu_us), line.latency_us());
        }
    }
    out
}

/// A bar for each entry of each case: its throughput, of the highest there; where the load is a given one, its mean latency.
fn bars(measured: &[Real], options: &RealOptions) -> Bars {
    let mut bars = Vec::new();
    for Real { name, lines, tried, .. } in measured {
        let given = tried.is_empty();
        let value = |line: &Line| if given { line.latency_us() } else { line.throughput() };
        let highest = lines.iter().map(value).fold(1e-9, f64::max);
        for line in lines {
            // A colour for each engine.
            let mut parts = if line.entry.starts_with("aloha") { vec![0.0] } else { Vec::new() };
            // Divided first, so that the highest has 100 and not a rounding below it.
            parts.push(value(line) / highest * 100.0);
            let told = match given {
                true => format!("{:.2} ms", line.latency_us() / 1e3),
                false => format!("{}/s", thousands(line.throughput())),
            };
            bars.push(Bar { name: format!("{name}: {}, {told}", line.entry), parts });
        }
    }
    Bars {
        title: "For real: throughput of the highest, or mean latency of the longest where the load is given"
            .to_owned(),
        parts: ["calvin", "aloha"].map(str::to_owned).to_vec(),
        bars,
        notes: vec![note(options)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare::options::Comparison;

    const OPTIONS: RealOptions = RealOptions { rounds: 2, seconds: 0.1 };

    #[test]
    fn every_case_is_a_comparison() {
        for case in &CASES {
            let entries: Vec<String> = match case.clients.last() {
                Some(most) => case.entries.iter().map(|entry| case.with_clients(entry, *most)).collect(),
                None => case.entries.iter().map(|entry| (*entry).to_owned()).collect(),
            };
            let command = case.command(&entries.join(","), OPTIONS.rounds, OPTIONS.seconds);
            let parsed = Comparison::parse_line(&command).map(|comparison| comparison.cases());
            assert_eq!(parsed, Ok(case.entries.len()), "{}", case.name);
        }
        let names: std::collections::BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
    }

    #[test]
    fn each_entry_has_the_calls_that_are_best_for_it() {
        let tried = |entry: &str, clients, rate| Tried {
            entry: entry.to_owned(),
            clients_per_partition: clients,
            throughput_txn_s: rate,
        };
        let all = [
            tried("calvin", 64, 9.0),
            tried("calvin", 256, 8.0),
            tried("calvin", 1_024, 1.0),
            tried("aloha", 64, 1.0),
            tried("aloha", 256, 8.0),
            tried("aloha", 1_024, 7.0),
        ];
        let chosen = choose(&CASES[0], &all);
        let expected = [("calvin --clients 128", true), ("aloha --clients 512", false)];
        assert_eq!(chosen, expected.map(|(entry, end)| (entry.to_owned(), end)));
        let given = CASES.iter().find(|case| case.clients.is_empty()).unwrap();
        let entries: Vec<String> = choose(given, &[]).into_iter().map(|(entry, _)| entry).collect();
        assert_eq!(entries, given.entries);
    }

    #[test]
    fn cases_are_run_and_told() {
        let micro = "micro --records 40000 --multi-partition 100";
        let cases = [
            Case { clients: &[2, 8], workload: micro, ..CASES[0] },
            Case { workload: "micro --records 40000 --rate 500", ..CASES[CASES.len() - 1] },
        ];
        let measured = measure(&cases, &OPTIONS).unwrap();
        assert_eq!(measured.iter().map(|real| real.tried.len()).collect::<Vec<_>>(), [4, 0]);
        assert!(
            measured[0].command.contains("--rounds 2") && measured[0].command.contains("calvin --clients ")
        );
        let text = report(&measured);
        assert_eq!(text.lines().count(), 4, "{text}");
        // Of two numbers each is an end.
        assert_eq!(text.matches("; calls outstanding at an end").count(), 2, "{text}");
        assert_eq!(text.matches(", computed at the median after ").count(), 1, "{text}");
        let csv = csv(&measured);
        let columns = |line: &str| line.rsplit('"').next().map_or(0, |rest| rest.split(',').count());
        // After the case, which is in quotes, a comma and as many as the header has.
        assert!(
            csv.lines().skip(1).all(|line| columns(line) == columns(csv.lines().next().unwrap())),
            "{csv}"
        );
        assert_eq!(bars(&measured, &OPTIONS).bars.len(), 4);
        let json: serde_json::Value = serde_json::to_value(&measured).unwrap();
        assert_eq!(json[0]["tried"][3]["clients_per_partition"], 8);
        assert_eq!(json[0]["compared"]["rows"].as_array().map(Vec::len), Some(2));
    }
}
