//! What `ordain advise` prints and writes: two tables and the recommendation, for people and for other tools.

use std::fmt::Write as _;

use ordain_workload::Profile;

use super::Advice;
use super::figures::EngineFigures;
use crate::bench::report::thousands;

/// The width of the lines that tell reasons.
const LINE_LETTERS: usize = 110;

/// The names of the columns of the simulated figures.
const SIMULATED: &str = "engine,nodes,window,throughput_txn_s,latency_us_p50,latency_us_p99,light_latency_us_p50,\
                         light_latency_us_p99,busy_percent,restarts_per_s,deadlocks_per_s,reconnaissance_per_s,slow_node_percent";

/// Those of the real ones.
const REAL: &str = "engine,partitions,throughput_least_txn_s,throughput_txn_s,throughput_most_txn_s,cpu_us,latency_us_p50,\
                    latency_us_p99,restarts_per_1000,deadlocks_per_1000,aborted_percent,missed_percent";

impl Advice {
    /// All of it, for people.
    pub fn report(&self) -> String {
        let figures = &self.figures;
        let mut out = format!(
            "  {} on {} simulated nodes, and for real on {} partitions in this process; seed {}\n{}  costs of the simulation: {}\n",
            figures.workload,
            figures.nodes,
            figures.partitions,
            self.seed,
            of_profile(&figures.profile),
            self.costs
        );
        self.notes.iter().for_each(|note| line(&mut out, &format!("  {note}")));
        out.push_str(&self.simulated_table());
        out.push_str(&self.real_table());
        line(&mut out, &format!("\n  recommended: {}", self.recommendation.engine.name()));
        for reason in &self.recommendation.reasons {
            out.push_str(&wrapped(&format!("{reason}")));
        }
        out
    }

    fn simulated_table(&self) -> String {
        let row = |EngineFigures { simulated, .. }: &EngineFigures| {
            let (full, light) = (&simulated.full, &simulated.light);
            let per_thousand = |count: f64| format!("{:.1}", count * 1e3 / full.throughput.max(1e-9));
            let cells = [
                thousands(full.throughput),
                thousands(full.latency_us_p50 as f64),
                thousands(full.latency_us_p99 as f64),
                thousands(light.latency_us_p50 as f64),
                thousands(light.latency_us_p99 as f64),
                per_thousand(full.restarts),
                per_thousand(full.deadlocks),
                format!("{:.0}%", simulated.slow_percent),
            ];
            (simulated.engine.name(), cells)
        };
        let names = ["txn/s", "p50", "p99", "light p50", "light p99", "restarts", "deadlocks", "slow node"];
        format!(
            "\n  simulated; latencies in us, restarts and deadlocks for each 1,000 transactions\n{}",
            table(names, self.figures.engines.iter().map(row))
        )
    }

    fn real_table(&self) -> String {
        let row = |figures: &EngineFigures| {
            let real = &figures.real;
            let cells = [
                thousands(real.throughput_least),
                thousands(real.throughput),
                thousands(real.throughput_most),
                format!("{:.2}", real.cpu_us),
                thousands(real.latency_us_p50),
                thousands(real.latency_us_p99),
                format!("{:.1}", real.restarts),
                format!("{:.1}", real.deadlocks),
                format!("{:.1}%", real.aborted_percent),
            ];
            (figures.name(), cells)
        };
        let names = ["least", "txn/s", "most", "CPU us", "p50", "p99", "restarts", "deadlocks", "aborted"];
        format!(
            "\n  for real, {} rounds in turn, the least, the median and the most; CPU for each transaction\n{}",
            self.rounds,
            table(names, self.figures.engines.iter().map(row))
        )
    }

    /// The simulated figures as comma-separated values: equal settings give equal ones.
    pub fn simulated_csv(&self) -> String {
        let mut out = format!("{SIMULATED}\n");
        for EngineFigures { simulated, .. } in &self.figures.engines {
            let (full, light) = (&simulated.full, &simulated.light);
            let (engine, nodes, window) = (simulated.engine.name(), self.figures.nodes, simulated.window);
            let latencies =
                [full.latency_us_p50, full.latency_us_p99, light.latency_us_p50, light.latency_us_p99];
            let latencies = latencies.map(|latency| latency.to_string()).join(",");
            let (busy, restarts, deadlocks) = (full.busy_percent, full.restarts, full.deadlocks);
            let slow = simulated.slow_percent;
            line(
                &mut out,
                &format!(
                    "{engine},{nodes},{window},{:.1},{latencies},{busy:.1},{restarts:.1},{deadlocks:.1},{:.1},{slow:.1}",
                    full.throughput, full.reconnaissance
                ),
            );
        }
        out
    }

    /// The real figures as comma-separated values.
    pub fn real_csv(&self) -> String {
        let mut out = format!("{REAL}\n");
        for figures in &self.figures.engines {
            let real = &figures.real;
            let numbers = [
                real.throughput_least,
                real.throughput,
                real.throughput_most,
                real.cpu_us,
                real.latency_us_p50,
                real.latency_us_p99,
                real.restarts,
                real.deadlocks,
                real.aborted_percent,
                real.missed_percent,
            ];
            let numbers = numbers.map(|number| format!("{number:.2}")).join(",");
            line(&mut out, &format!("{},{},{numbers}", figures.name(), self.figures.partitions));
        }
        out
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

/// A table: the names of the columns, and a line for each engine with a cell for each of them.
fn table<const COLUMNS: usize>(
    names: [&str; COLUMNS],
    rows: impl Iterator<Item = (&'static str, [String; COLUMNS])>,
) -> String {
    let mut out = String::new();
    let heading = ("", names.map(str::to_owned));
    for (name, cells) in std::iter::once(heading).chain(rows) {
        let cells: String = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        line(&mut out, format!("  {name:<12}{cells}").trim_end());
    }
    out
}

fn of_profile(profile: &Profile) -> String {
    let snapshots = match profile.snapshot_percent {
        0.0 => String::new(),
        percent => format!(", {percent:.1}% over snapshots"),
    };
    format!(
        "  {} calls{snapshots}: {:.1}% of the transactions span partitions, {:.1}% depend on data, {:.1}% write; {:.1} keys each;\n  \
         of two at a partition {:.2}% conflict (contention index {:.4}); functors for {:.0}% of the keys that are written\n",
        thousands(profile.calls as f64),
        profile.multi_partition_percent,
        profile.dependent_percent,
        profile.writing_percent,
        profile.keys,
        profile.contention_index * 100.0,
        profile.contention_index,
        profile.functor_percent
    )
}

/// A point of a list, in lines.
fn wrapped(text: &str) -> String {
    let (mut out, mut letters) = (String::from("  -"), 3);
    for word in text.split(' ') {
        let length = word.chars().count();
        if letters + 1 + length > LINE_LETTERS {
            out.push_str("\n   ");
            letters = 3;
        }
        out.push(' ');
        out.push_str(word);
        letters += 1 + length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_wrapped_at_words() {
        let text = wrapped(&"word ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() <= LINE_LETTERS), "{text}");
        assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 60);
        assert!(text.starts_with("  - word") && text.contains("\n    word"), "{text}");
    }

    #[test]
    fn tables_have_a_value_for_each_column() {
        assert_eq!(SIMULATED.split(',').count(), 13);
        assert_eq!(REAL.split(',').count(), 12);
        assert!(!SIMULATED.contains(' ') && !REAL.contains(' '));
    }
}
