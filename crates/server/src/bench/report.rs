//! What a benchmark prints: a table for people, one flat JSON object for machines.

use std::fmt::Write as _;

use ordain_workload::CheckLine;
use serde::Serialize;

use crate::deadlocks::Deadlocks;

/// The result of a run. Latencies are in microseconds, and until the answer that was asked for; CPU times in seconds over the measured part.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The workload's name.
    pub workload: String,
    /// The engine's name.
    pub engine: String,
    /// Its name in tables, which says of the bound without a commit protocol that it is not ACID.
    pub label: &'static str,
    /// Whether it keeps what a database promises (DET-41).
    pub acid: bool,
    /// Number of partitions.
    pub partitions: u16,
    /// Number of processes.
    pub processes: u16,
    /// Seed of the calls.
    pub seed: u64,
    /// Wall time of the measured part.
    pub seconds: f64,
    /// Requests kept outstanding, or `None` in an open loop.
    pub clients: Option<u32>,
    /// Requests begun per second, or `None` in a closed loop.
    pub rate: Option<f64>,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that their logic aborted.
    pub aborted: u64,
    /// Transactions that committed or that their logic aborted, over the whole run.
    pub ended: u64,
    /// Requests that gave up, since their footprint changed under every restart that is allowed.
    pub contended: u64,
    /// Requests that ended with another error.
    pub failed: u64,
    /// Restarts after a footprint miss, or of victims of deadlocks, over the whole run.
    pub restarts: u64,
    /// Deadlocks and the like over the whole run; `None` on an engine that has none.
    #[serde(flatten)]
    pub deadlocks: Option<Deadlocks>,
    /// Reconnaissance runs, over the whole run.
    pub reconnaissance: u64,
    /// Requests of an open loop that were due and had not begun when the time was over.
    pub not_begun: u64,
    /// Times that a partition took no more requests, and requests that were refused as busy, over the whole run.
    pub pushed_back: u64,
    /// Committed and aborted transactions per second.
    pub throughput_txn_s: f64,
    /// Mean latency.
    pub latency_mean_us: f64,
    /// Median latency.
    pub latency_p50_us: u64,
    /// 95th percentile.
    pub latency_p95_us: u64,
    /// 99th percentile.
    pub latency_p99_us: u64,
    /// 99.9th percentile.
    pub latency_p999_us: u64,
    /// The longest.
    pub latency_max_us: u64,
    /// When calls are answered: `ordered` or `computed`.
    pub answer: String,
    /// Median time until the outcome is known, where calls are answered before that.
    pub computed_p50_us: Option<u64>,
    /// 95th percentile of it.
    pub computed_p95_us: Option<u64>,
    /// 99th percentile of it.
    pub computed_p99_us: Option<u64>,
    /// CPU time of the partitions' threads.
    pub cpu_s: f64,
    /// CPU time of the partitions per transaction, in microseconds.
    pub cpu_per_txn_us: f64,
    /// CPU time of the load generator.
    pub load_cpu_s: f64,
    /// Messages between partitions, over the whole run.
    pub messages: u64,
    /// Their payload in bytes.
    pub message_bytes: u64,
    /// Epochs that were delivered, over the whole run.
    pub epochs: u64,
    /// How often the disk made writes durable over the whole run, if the data is kept.
    pub fsyncs: Option<u64>,
    /// Transactions that committed over the whole run, for each of these.
    pub commits_per_fsync: Option<f64>,
    /// Median time in microseconds of one alone, measured before the run in the same directory.
    pub fsync_us: Option<f64>,
    /// Rounds of busy work with each record, if there are any.
    pub work_rounds: Option<u32>,
    /// CPU time that they take, in microseconds, measured after the run.
    pub work_us_per_record: Option<f64>,
    /// Transactions per second of the plain single-threaded limit, if measured.
    pub limit_txn_s: Option<f64>,
    /// Throughput over the limit.
    pub ratio_to_limit: Option<f64>,
    /// The calls of each procedure, if more than one was called.
    pub procedures: Vec<ProcedureReport>,
    /// Digest of the final state, in hexadecimal.
    pub digest: String,
    /// Whether all conditions of the workload hold.
    pub consistent: bool,
}

/// The calls of one procedure in the measured part. Latencies are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct ProcedureReport {
    /// Its name.
    pub name: String,
    /// Its share of all calls that committed or were aborted, in percent.
    pub share_percent: f64,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that their logic aborted.
    pub aborted: u64,
    /// Calls that gave up, since their footprint changed under every restart that is allowed.
    pub contended: u64,
    /// Committed and aborted calls per second.
    pub throughput_txn_s: f64,
    /// Median latency.
    pub latency_p50_us: u64,
    /// 95th percentile.
    pub latency_p95_us: u64,
    /// 99th percentile.
    pub latency_p99_us: u64,
}

impl Report {
    /// The table.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let mut row = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {name:<26}{value}");
        };
        row("workload", self.workload.clone());
        let partitions = format!("{} in {} process(es)", self.partitions, self.processes);
        row("engine, partitions", format!("{}, {partitions}", self.label));
        if !self.acid {
            row(
                "not a database",
                "a crash leaves transactions half done: a bound to compare with".to_owned(),
            );
        }
        row("measured", format!("{:.2} s", self.seconds));
        row("throughput", format!("{} transactions/s", thousands(self.throughput_txn_s)));
        if let (Some(limit), Some(ratio)) = (self.limit_txn_s, self.ratio_to_limit) {
            row("limit (plain, 1 thread)", format!("{} transactions/s, ratio {ratio:.2}", thousands(limit)));
        }
        if let (Some(fsyncs), Some(commits), Some(alone)) =
            (self.fsyncs, self.commits_per_fsync, self.fsync_us)
        {
            row("fsyncs", format!("{}, one alone takes {alone:.0} us", thousands(fsyncs as f64)));
            row("commits/fsync", format!("{commits:.1}"));
            // A call that comes while one fsync runs waits for its end and for its own.
            row("latency model", format!("{:.0} to {:.0} us: one to two fsyncs", alone, 2.0 * alone));
        }
        if let (Some(rounds), Some(work)) = (self.work_rounds, self.work_us_per_record) {
            row("busy work", format!("{work:.2} us with each record: {rounds} rounds"));
        }
        row("committed", thousands(self.committed as f64));
        row("aborted by logic", thousands(self.aborted as f64));
        row("failed", thousands(self.failed as f64));
        if self.contended > 0 {
            let limit = ordain_db::limits::RESTARTS_MAX;
            row("gave up", format!("{} after {limit} restarts", thousands(self.contended as f64)));
        }
        if self.pushed_back > 0 {
            row("pushed back", format!("{} times: nodes were busy", thousands(self.pushed_back as f64)));
        }
        if self.not_begun > 0 {
            row("due and not begun", format!("{}: the rate is too high", thousands(self.not_begun as f64)));
        }
        row("restarts", format!("{} ({} reconnaissance runs)", self.restarts, self.reconnaissance));
        if let Some(deadlocks) = &self.deadlocks {
            row("deadlocks", deadlocks.to_string());
        }
        row("latency mean", microseconds(self.latency_mean_us.round() as u64));
        row("latency p50", microseconds(self.latency_p50_us));
        row("latency p95", microseconds(self.latency_p95_us));
        row("latency p99", microseconds(self.latency_p99_us));
        row("latency p99.9", microseconds(self.latency_p999_us));
        row("latency max", microseconds(self.latency_max_us));
        self.outcomes().into_iter().for_each(|(name, value)| row(name, value));
        let per_transaction = format!("{:.2} us per transaction", self.cpu_per_txn_us);
        row("CPU of partitions", format!("{:.2} s, {per_transaction}", self.cpu_s));
        row("CPU of load generator", format!("{:.2} s", self.load_cpu_s));
        let bytes = format!("{} bytes", thousands(self.message_bytes as f64));
        row("partition messages", format!("{}, {bytes}", thousands(self.messages as f64)));
        if self.epochs > 0 {
            row("epochs", thousands(self.epochs as f64));
        }
        row("state digest", self.digest.clone());
        out + &self.procedures_table()
    }
}

impl Report {
    /// When outcomes were known, where calls are answered before that.
    fn outcomes(&self) -> Vec<(&'static str, String)> {
        let Report { computed_p50_us, computed_p95_us, computed_p99_us, .. } = *self;
        let (Some(p50), Some(p95), Some(p99)) = (computed_p50_us, computed_p95_us, computed_p99_us) else {
            return Vec::new();
        };
        vec![
            ("answered when", format!("{}: the latencies above are until then", self.answer)),
            ("outcome known p50", microseconds(p50)),
            ("outcome known p95", microseconds(p95)),
            ("outcome known p99", microseconds(p99)),
        ]
    }

    /// A line for each procedure, or nothing.
    fn procedures_table(&self) -> String {
        let mut out = String::new();
        if self.procedures.is_empty() {
            return out;
        }
        let _ = writeln!(
            out,
            "\n  {:<14}{:>8}{:>12}{:>12}{:>9}{:>9}{:>11}{:>11}{:>11}",
            "procedure", "share", "calls/s", "committed", "aborted", "gave up", "p50", "p95", "p99"
        );
        for of in &self.procedures {
            let _ = writeln!(
                out,
                "  {:<14}{:>7.2}%{:>12}{:>12}{:>9}{:>9}{:>11}{:>11}{:>11}",
                of.name,
                of.share_percent,
                thousands(of.throughput_txn_s),
                thousands(of.committed as f64),
                thousands(of.aborted as f64),
                thousands(of.contended as f64),
                microseconds(of.latency_p50_us),
                microseconds(of.latency_p95_us),
                microseconds(of.latency_p99_us),
            );
        }
        out
    }
}

/// The conditions, a line each.
pub fn conditions(lines: &[CheckLine]) -> String {
    let mut out = String::new();
    for line in lines {
        let mark = if line.holds { "holds   " } else { "VIOLATED" };
        let _ = write!(out, "  {mark}  {}", line.condition);
        if !line.holds {
            let _ = write!(out, ": {}", line.detail);
        }
        out.push('\n');
    }
    out
}

/// A number without decimals, its digits in groups of three.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn microseconds(value: u64) -> String {
    if value < 10_000 { format!("{value} us") } else { format!("{:.1} ms", value as f64 / 1000.0) }
}
