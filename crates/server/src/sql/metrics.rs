//! What the listener for SQL counts, and its text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ordain_sql::error::SqlState;

use super::lock;

/// The kinds of statements that are told apart, by the first word of their command tags; all others are `other`.
const KINDS: [&str; 17] = [
    "select", "insert", "update", "delete", "copy", "begin", "commit", "rollback", "create", "alter", "drop",
    "truncate", "set", "show", "fetch", "explain", "other",
];

/// Upper ends of the classes of latency, in microseconds.
const BUCKETS: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000,
];

/// Counts since the start.
#[derive(Default)]
pub struct Metrics {
    connected: AtomicU64,
    disconnected: AtomicU64,
    refused: AtomicU64,
    statements: [AtomicU64; KINDS.len()],
    /// By the class of their codes. There are less than a hundred classes.
    errors: Mutex<BTreeMap<[u8; 2], u64>>,
    /// Statements that took no longer than the bucket says, and longer than the one before; the last is for those that took longer.
    latency: [AtomicU64; BUCKETS.len() + 1],
    latency_microseconds: AtomicU64,
}

impl Metrics {
    pub(super) fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn disconnected(&self) {
        self.disconnected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an error that ended a connection.
    pub(super) fn failed(&self, state: SqlState) {
        self.count_error(&state.0);
    }

    fn count_error(&self, state: &[u8]) {
        if let Some(class) = state.first_chunk() {
            *lock(&self.errors).entry(*class).or_default() += 1;
        }
    }

    /// Counts what a session has answered to a message of its client, after so long; what it has answered while a statement ran, and has
    /// [told](Metrics::told) already, is not among it.
    pub(super) fn answered(&self, sent: &[u8], took: Duration) {
        if self.told(sent) {
            let microseconds = took.as_micros() as u64;
            let bucket = BUCKETS.partition_point(|end| *end < microseconds);
            self.latency[bucket].fetch_add(1, Ordering::Relaxed);
            self.latency_microseconds.fetch_add(microseconds, Ordering::Relaxed);
        }
    }

    /// Counts statements and errors in what a session has answered; whether there are any.
    pub(super) fn told(&self, sent: &[u8]) -> bool {
        let mut rest = sent;
        let mut statements = false;
        while let Some((kind, body, after)) = split_message(rest) {
            rest = after;
            match kind {
                b'C' => {
                    statements = true;
                    self.statements[kind_of(body)].fetch_add(1, Ordering::Relaxed);
                }
                b'E' => {
                    statements = true;
                    self.count_error(code_of(body));
                }
                _ => {}
            }
        }
        statements
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let connected = load(&self.connected);
        let open = connected.saturating_sub(load(&self.disconnected));
        for (name, kind, help, value) in [
            ("connections", "gauge", "Connections of clients that are open.", open),
            ("connections_total", "counter", "Connections that were accepted.", connected),
            (
                "connections_refused_total",
                "counter",
                "Connections that there was no thread for.",
                load(&self.refused),
            ),
        ] {
            heading(&mut out, name, kind, help);
            let _ = writeln!(out, "ordain_sql_{name} {value}");
        }
        heading(&mut out, "statements_total", "counter", "Statements that succeeded, by kind.");
        for (kind, count) in KINDS.iter().zip(&self.statements) {
            let _ = writeln!(out, "ordain_sql_statements_total{{kind=\"{kind}\"}} {}", load(count));
        }
        heading(
            &mut out,
            "errors_total",
            "counter",
            "Errors that clients were told, by the class of their SQLSTATE.",
        );
        for (class, count) in &*lock(&self.errors) {
            let class: String =
                class.iter().map(|byte| char::from(*byte)).filter(char::is_ascii_alphanumeric).collect();
            let _ = writeln!(out, "ordain_sql_errors_total{{class=\"{class}\"}} {count}");
        }
        self.latency_text(&mut out);
        out
    }

    fn latency_text(&self, out: &mut String) {
        let name = "statement_seconds";
        heading(out, name, "histogram", "Time from a message of a client to the end of its statement.");
        let mut sum = 0;
        for (place, count) in self.latency.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let end = BUCKETS.get(place).map_or("+Inf".to_owned(), |end| (*end as f64 / 1e6).to_string());
            let _ = writeln!(out, "ordain_sql_{name}_bucket{{le=\"{end}\"}} {sum}");
        }
        let seconds = self.latency_microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "ordain_sql_{name}_sum {seconds}\nordain_sql_{name}_count {sum}");
    }
}

fn heading(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP ordain_sql_{name} {help}\n# TYPE ordain_sql_{name} {kind}");
}

/// The type and body of the first message, and what is behind it.
fn split_message(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
    let body = rest.get(4..length)?;
    Some((*kind, body, &rest[length..]))
}

/// The kind of a statement by its command tag.
fn kind_of(tag: &[u8]) -> usize {
    let word = tag.split(|byte| matches!(byte, b' ' | 0)).next().unwrap_or_default();
    let known = KINDS.iter().position(|kind| kind.as_bytes().eq_ignore_ascii_case(word));
    known.unwrap_or(KINDS.len() - 1)
}

/// The code among the fields of an error.
fn code_of(fields: &[u8]) -> &[u8] {
    let mut fields = fields.split(|byte| *byte == 0);
    fields.find_map(|field| field.strip_prefix(b"C")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ordain_sql::error::SqlError;
    use ordain_sql::protocol::backend::{Encoder, Severity, TransactionStatus};

    use super::*;

    #[test]
    fn answers_are_counted_by_what_they_say() {
        let metrics = Metrics::default();
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        for tag in ["INSERT 0 1", "SELECT 3", "CREATE TABLE", "LISTEN"] {
            encoder.command_complete(tag, None);
        }
        encoder.error(&SqlError::new(SqlState::UNIQUE_VIOLATION, "Common"), Severity::Error);
        encoder.ready_for_query(TransactionStatus::Idle);
        metrics.answered(&out, Duration::from_millis(3));
        metrics.answered(b"1\0\0\0\x04", Duration::from_millis(3));
        metrics.connected();
        let text = metrics.text();
        for line in [
            "ordain_sql_connections 1",
            "ordain_sql_statements_total{kind=\"insert\"} 1",
            "ordain_sql_statements_total{kind=\"create\"} 1",
            "ordain_sql_statements_total{kind=\"other\"} 1",
            "ordain_sql_errors_total{class=\"23\"} 1",
            "ordain_sql_statement_seconds_bucket{le=\"0.0025\"} 0",
            "ordain_sql_statement_seconds_bucket{le=\"0.005\"} 1",
            "ordain_sql_statement_seconds_bucket{le=\"+Inf\"} 1",
            "ordain_sql_statement_seconds_sum 0.003",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
