//! What a process tells those who watch it, over HTTP.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ordain_db::node::Status;
use ordain_db::procedure::Catalog;

use super::front::Front;
use crate::connection::Connection;
use crate::http::{Answer, HttpServer};
use crate::port::Port;
use crate::process::Process;
use crate::sql::{Door, Listener};

/// How long nodes are given to tell how they stand; of those that do not, nothing is told.
const STATUS_PATIENCE: Duration = Duration::from_secs(1);

/// What is told.
struct Health {
    process: Arc<Process>,
    front: Arc<Front>,
    sql: Option<(Door, Arc<crate::sql::Metrics>)>,
    /// To the nodes of this process.
    connection: Connection,
}

/// Begins to answer `/health`, `/ready` and `/metrics`.
///
/// # Errors
/// When the operating system gives no thread.
pub(super) fn start(
    socket: &TcpListener,
    process: &Arc<Process>,
    front: &Arc<Front>,
    sql: Option<&Listener>,
    catalog: &Catalog,
) -> Result<HttpServer, String> {
    let port: Arc<dyn Port> = Arc::<Process>::clone(process);
    let connection = Connection::new(port, catalog.clone()).map_err(|error| error.to_string())?;
    let sql = sql.map(|listener| (listener.door(), Arc::clone(listener.metrics())));
    let health = Health { process: Arc::clone(process), front: Arc::clone(front), sql, connection };
    let wrong = |error| format!("cannot answer over HTTP: {error}");
    let socket = socket.try_clone().map_err(wrong)?;
    let server = HttpServer::start(socket, Arc::new(move |path: &str| health.answer(path))).map_err(wrong)?;
    tracing::info!(address = %server.address(), "answering /health, /ready and /metrics over HTTP");
    Ok(server)
}

impl Health {
    fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/health" if self.process.has_failed() => Some(Answer::of(false, "a partition has stopped\n")),
            "/health" => Some(Answer::of(true, "ok\n")),
            "/ready" => Some(self.ready()),
            "/metrics" => Some(Answer::of(true, self.metrics())),
            _ => None,
        }
    }

    /// Whether clients are served.
    fn ready(&self) -> Answer {
        let problem = if self.process.has_failed() {
            Some("a partition has stopped\n")
        } else if !self.front.is_ready() {
            Some("the log is replayed, or other processes are not reached yet\n")
        } else if self.sql.as_ref().is_some_and(|(door, _)| door.is_closing()) {
            Some("the process ends\n")
        } else if self.sql.as_ref().is_some_and(|(door, _)| !door.is_open()) {
            Some("clients of SQL are not let in yet\n")
        } else {
            None
        };
        Answer::of(problem.is_none(), problem.unwrap_or("ready\n"))
    }

    fn metrics(&self) -> String {
        let mut out = String::new();
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(
            out,
            "# HELP ordain_build_info The release.\n# TYPE ordain_build_info gauge\nordain_build_info{{version=\"{version}\"}} 1"
        );
        let partitions = self.process.nodes().map(|node| node.partition).collect::<Vec<_>>();
        let statuses = self.connection.statuses_of(&partitions, STATUS_PATIENCE);
        let statuses: Vec<(u16, Status)> = (partitions.iter().zip(statuses))
            .filter_map(|(partition, status)| Some((partition.0, status.ok()?)))
            .collect();
        for (name, kind, help, value) in gauges() {
            let _ = writeln!(out, "# HELP ordain_{name} {help}\n# TYPE ordain_{name} {kind}");
            for (partition, status) in &statuses {
                let _ = writeln!(out, "ordain_{name}{{partition=\"{partition}\"}} {}", value(status));
            }
        }
        if let Some((_, metrics)) = &self.sql {
            out.push_str(&metrics.text());
        }
        out
    }
}

type Gauge = (&'static str, &'static str, &'static str, fn(&Status) -> u64);

/// What is told of each node.
fn gauges() -> [Gauge; 8] {
    [
        ("epoch", "counter", "The last epoch that was delivered.", |status| status.delivered.0),
        ("rows", "gauge", "Rows held.", |status| status.rows),
        (
            "old_versions",
            "gauge",
            "Versions and deleted rows kept for snapshots or not yet freed.",
            |status| status.garbage,
        ),
        ("transactions_waiting", "gauge", "Transactions that wait for an epoch.", |status| status.waiting),
        ("transactions_live", "gauge", "Delivered transactions that have not finished.", |status| {
            status.live
        }),
        ("leads", "gauge", "Whether the node leads its replication group.", |status| u64::from(status.leads)),
        (
            "checkpoint_epoch",
            "counter",
            "The newest epoch of which the replica has a checkpoint.",
            |status| status.stable.0,
        ),
        ("checkpoint_failed", "gauge", "Whether the last checkpoint was not written.", |status| {
            u64::from(status.checkpoint_problem.is_some())
        }),
    ]
}
