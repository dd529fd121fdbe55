//! The same workloads for real: two partitions in one process on this machine, both engines in turn.
//!
//! What the simulator does not know is in these: caches, threads, the operating system. The load generator has its part of the same
//! cores.

use std::ffi::OsString;
use std::fmt::Write as _;

use ordain_sim::scale::bars::{Bar, Bars};
use serde::Serialize;

use crate::bench::compare::{self, Compared};
use crate::bench::report::thousands;

/// Both engines; ratios are to the first.
const ENTRIES: &str = "calvin,aloha";

/// What is compared: a name, and what follows the entries on the command line of `ordain bench compare`.
const CASES: [(&str, &str); 11] = [
    ("New Orders, 1W", "tpcc --warehouses 2 --customers 300 --remote 100"),
    ("New Orders, 10W", "tpcc --warehouses 20 --customers 300 --remote 100"),
    ("New Orders, 1D", "scaled-tpcc --districts-per-partition 1 --customers 300"),
    ("New Orders, 10D", "scaled-tpcc --districts-per-partition 10 --customers 300"),
    ("Payments, 10W", "tpcc --warehouses 20 --customers 300 --new-order 0 --payment-remote 100 --by-name 0"),
    ("arithmetic, index 0.0001", "micro --multi-partition 100 --contention-index 0.0001 --adds arithmetic"),
    ("arithmetic, index 0.1", "micro --multi-partition 100 --contention-index 0.1 --adds arithmetic"),
    ("own functors, index 0.0001", "micro --multi-partition 100 --contention-index 0.0001 --adds own"),
    ("own functors, index 0.1", "micro --multi-partition 100 --contention-index 0.1 --adds own"),
    ("as a whole, index 0.0001", "micro --multi-partition 100 --contention-index 0.0001 --adds whole"),
    ("as a whole, index 0.1", "micro --multi-partition 100 --contention-index 0.1 --adds whole"),
];

/// A comparison of both engines.
#[derive(Serialize)]
pub(super) struct Real {
    name: &'static str,
    /// What was run, after `ordain bench`.
    command: String,
    compared: Compared,
}

/// Runs all of them.
///
/// # Errors
/// When a run fails or leaves data that is not consistent.
pub(super) fn measure(rounds: u16, seconds: f64) -> Result<Vec<Real>, String> {
    let case = |(name, workload): (&'static str, &str)| {
        let command = format!(
            "--partitions 2 --seconds {seconds} compare --entries {ENTRIES} --rounds {rounds} {workload}"
        );
        tracing::info!("ordain bench {command}");
        let compared = compare::measured(command.split_whitespace().map(OsString::from));
        let compared = compared.map_err(|problem| format!("{name}: {problem}"))?;
        Ok(Real { name, command, compared })
    };
    CASES.into_iter().map(case).collect()
}

/// A line for each engine with each workload.
pub(super) fn report(measured: &[Real]) -> String {
    let mut out = String::new();
    for Real { name, compared, .. } in measured {
        for row in compared.rows() {
            let (rate, ratio) = (row.throughput(), row.ratio());
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "REAL {name}: {} {}/s ({} to {}), {:.2} times calvin ({:.2} to {:.2}), mean latency {:.2} ms, CPU {:.2} us",
                row.entry(),
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

/// A bar for each engine with each workload: its throughput, of the higher of the two.
pub(super) fn bars(measured: &[Real], rounds: u16, seconds: f64) -> Bars {
    let mut bars = Vec::new();
    for Real { name, compared, .. } in measured {
        let median = |row: &compare::Row| row.throughput().median;
        let highest = compared.rows().iter().map(median).fold(1e-9, f64::max);
        for (place, row) in compared.rows().iter().enumerate() {
            // Divided first, so that the highest has 100 and not a rounding below it.
            let percent = median(row) / highest * 100.0;
            // A colour for each engine.
            let mut parts = vec![0.0; place];
            parts.push(percent);
            let (entry, rate) = (row.entry(), thousands(median(row)));
            bars.push(Bar { name: format!("{name}: {entry}, {rate}/s"), parts });
        }
    }
    Bars {
        title: "Throughput for real, of the higher of the two engines".to_owned(),
        parts: ENTRIES.split(',').map(str::to_owned).collect(),
        bars,
        notes: vec![format!(
            "Two partitions in one process, with the load generator on the same cores; all transactions distributed; medians of \
             {rounds} rounds of {seconds} s in which the engines took turns."
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare::options::Comparison;

    #[test]
    fn a_comparison_is_told_in_lines_bars_and_json() {
        let command = "--partitions 2 --transactions 200 compare --entries calvin,aloha --rounds 1 micro --records 40000 --adds own";
        let compared = compare::measured(command.split_whitespace().map(OsString::from)).unwrap();
        let measured = [Real { name: "few", command: command.to_owned(), compared }];
        let text = report(&measured);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[0].starts_with("REAL few: calvin ") && lines[0].contains(" 1.00 times calvin"),
            "{text}"
        );
        assert!(lines[1].starts_with("REAL few: aloha ") && lines[1].contains("mean latency "), "{text}");
        let bars = bars(&measured, 1, 0.1);
        assert_eq!(bars.bars.iter().map(|bar| bar.parts.len()).collect::<Vec<_>>(), [1, 2]);
        assert!(bars.bars.iter().any(|bar| bar.parts.contains(&100.0)), "{bars:?}");
        let json: serde_json::Value = serde_json::from_str(&json(&measured).unwrap()).unwrap();
        assert_eq!(json[0]["compared"]["rows"][1]["entry"], "aloha");
    }

    #[test]
    fn every_case_is_a_comparison() {
        for (name, workload) in CASES {
            let words = format!("--transactions 1 compare --entries {ENTRIES} --rounds 1 {workload}");
            let parsed = Comparison::parse(words.split_whitespace().map(OsString::from));
            assert_eq!(parsed.map(|comparison| comparison.cases()), Ok(2), "{name}");
        }
    }
}
