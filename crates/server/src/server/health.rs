//! What a process tells those who watch it, over HTTP.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ordain_db::engine::EngineKind;
use ordain_db::node::Details;

use super::front::Front;
use super::layout::Layout;
use crate::connection::{Connection, Opening};
use crate::http::{Answer, HttpServer};
use crate::port::Port;
use crate::process::Process;
use crate::sql::activity::{Activity, STATES};
use crate::sql::{Door, Listener};

/// How long nodes are given to tell how they stand; of those that do not, nothing is told.
const STATUS_PATIENCE: Duration = Duration::from_secs(1);

/// How long the database may take to answer a process that says of itself that it serves clients.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// What is told.
struct Health {
    process: Arc<Process>,
    front: Arc<Front>,
    sql: Option<(Door, Arc<crate::sql::Metrics>, Arc<Activity>)>,
    engine: EngineKind,
    /// To the nodes of this process.
    connection: Connection,
    /// A snapshot that was asked for and has not come.
    probe: Mutex<Option<Opening>>,
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
    layout: &Layout,
) -> Result<HttpServer, String> {
    let port: Arc<dyn Port> = Arc::<Process>::clone(process);
    let connection = Connection::new(port, layout.catalog.clone()).map_err(|error| error.to_string())?;
    let sql = sql
        .map(|listener| (listener.door(), Arc::clone(listener.metrics()), Arc::clone(listener.activity())));
    let engine = layout.file().engine;
    let (process, front, probe) = (Arc::clone(process), Arc::clone(front), Mutex::default());
    let health = Health { process, front, sql, engine, connection, probe };
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
            Some("the log is replayed and executed, or other processes are not reached yet\n")
        } else if self.sql.as_ref().is_some_and(|(door, ..)| door.is_closing()) {
            Some("the process ends\n")
        } else if self.sql.as_ref().is_some_and(|(door, ..)| !door.is_open()) {
            Some("clients of SQL are not let in yet\n")
        } else if !self.is_answered() {
            Some(
                "the partitions do not answer: one has no majority of its replicas, or a transaction takes long\n",
            )
        } else {
            None
        };
        Answer::of(problem.is_none(), problem.unwrap_or("ready\n"))
    }

    /// Whether the database gives a snapshot soon, for which every partition must be able to agree on something. One is asked for at a
    /// time.
    fn is_answered(&self) -> bool {
        let mut probe = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        let opening = probe.take().unwrap_or_else(|| self.connection.begin_snapshot());
        match opening.wait_for(PROBE_PATIENCE) {
            Some(outcome) => outcome.is_ok(),
            None => {
                *probe = Some(opening);
                false
            }
        }
    }

    fn metrics(&self) -> String {
        let mut out = String::new();
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(
            out,
            "# HELP ordain_build_info The release.\n# TYPE ordain_build_info gauge\nordain_build_info{{version=\"{version}\"}} 1"
        );
        let partitions = self.process.nodes().map(|node| node.partition).collect::<Vec<_>>();
        let details = self.connection.details_of(&partitions, STATUS_PATIENCE);
        let details: Vec<(u16, Details)> = (partitions.iter().zip(details))
            .filter_map(|(partition, details)| Some((partition.0, details.ok()?)))
            .collect();
        let deadlocks = deadlocks().into_iter().filter(|_| !self.engine.is_ordered());
        for (name, kind, help, value) in gauges().into_iter().chain(deadlocks) {
            let _ = writeln!(out, "# HELP ordain_{name} {help}\n# TYPE ordain_{name} {kind}");
            for (partition, details) in &details {
                let _ = writeln!(out, "ordain_{name}{{partition=\"{partition}\"}} {}", value(details));
            }
        }
        self.disk_text(&mut out);
        if let Some((_, metrics, activity)) = &self.sql {
            out.push_str(&metrics.text());
            let _ = writeln!(
                out,
                "# HELP ordain_sql_sessions Sessions of clients, by what they do.\n# TYPE ordain_sql_sessions gauge"
            );
            for (state, count) in STATES.iter().zip(activity.counts()) {
                let _ = writeln!(out, "ordain_sql_sessions{{state=\"{state}\"}} {count}");
            }
        }
        out
    }

    /// What the disks of the process have done.
    fn disk_text(&self, out: &mut String) {
        let (syncs, appends) = self.process.syncs();
        for (name, help, value) in [
            ("disk_syncs_total", "Times that the disks have made writes durable (fdatasync).", syncs),
            ("disk_appends_total", "Writes to the log that were made durable by these.", appends),
        ] {
            let _ = writeln!(
                out,
                "# HELP ordain_{name} {help}\n# TYPE ordain_{name} counter\nordain_{name} {value}"
            );
        }
    }
}

type Gauge = (&'static str, &'static str, &'static str, fn(&Details) -> u64);

/// How many entries the follower that is furthest behind lacks, if the node leads.
fn lag(details: &Details) -> u64 {
    let group = details.status.group.as_ref();
    let lags = group.into_iter().flat_map(|group| {
        group.followers.iter().map(|follower| group.committed.saturating_sub(follower.matched))
    });
    lags.max().unwrap_or_default()
}

/// What is told of each node.
fn gauges() -> [Gauge; 20] {
    [
        ("epoch", "counter", "The last epoch that was delivered.", |node| node.status.delivered.0),
        ("rows", "gauge", "Rows held.", |node| node.status.rows),
        ("old_versions", "gauge", "Versions and deleted rows kept for snapshots or not yet freed.", |node| {
            node.status.garbage
        }),
        ("record_bytes", "gauge", "Bytes set aside for keys and rows.", |node| node.record_bytes),
        ("index_bytes", "gauge", "Bytes of the indexes of the storage.", |node| node.index_bytes),
        ("transactions_waiting", "gauge", "Transactions that wait for an epoch.", |node| node.status.waiting),
        ("transactions_live", "gauge", "Delivered transactions that have not finished.", |node| {
            node.status.live
        }),
        (
            "transactions_committed_total",
            "counter",
            "Requests of clients at home here that were committed.",
            |node| node.status.counters.committed,
        ),
        (
            "requests_refused_total",
            "counter",
            "Requests of clients that were refused before anything was done for them.",
            |node| node.status.counters.refused,
        ),
        (
            "requests_shed_total",
            "counter",
            "Those that were refused because a partition lags behind the others: see the option `throttle`.",
            |node| node.status.counters.shed,
        ),
        (
            "keys_contended",
            "gauge",
            "Keys and ranges that several of the transactions which have waited longest need.",
            |node| node.contended.len() as u64,
        ),
        ("snapshots_open", "gauge", "Snapshots that can be read.", |node| node.snapshots.len() as u64),
        ("snapshot_age_seconds", "gauge", "Age of the oldest open snapshot.", |node| {
            let ages = node.snapshots.iter().map(|snapshot| snapshot.age_microseconds / 1_000_000);
            ages.max().unwrap_or_default()
        }),
        ("messages_total", "counter", "Messages sent to other partitions.", |node| node.status.messages),
        ("message_bytes_total", "counter", "Payload of messages sent to other partitions.", |node| {
            node.status.message_bytes
        }),
        ("leads", "gauge", "Whether the node leads its replication group.", |node| {
            u64::from(node.status.leads)
        }),
        (
            "replica_lag_entries",
            "gauge",
            "Log entries that the last follower lacks, where the node leads.",
            lag,
        ),
        ("log_uncommitted_entries", "gauge", "Log entries that are not agreed on yet.", |node| {
            node.status.group.as_ref().map_or(0, |group| group.last.saturating_sub(group.committed))
        }),
        ("checkpoint_epoch", "counter", "The newest epoch of which the replica has a checkpoint.", |node| {
            node.status.stable.0
        }),
        ("checkpoint_failed", "gauge", "Whether the last checkpoint was not written.", |node| {
            u64::from(node.status.checkpoint_problem.is_some())
        }),
    ]
}

/// What is told besides of each node of the engine `two-phase`, whose transactions lock as they go (DET-37).
fn deadlocks() -> [Gauge; 8] {
    [
        (
            "local_deadlocks_total",
            "counter",
            "Cycles of transactions that wait for each other within the partition.",
            |node| node.status.deadlocks.local_deadlocks,
        ),
        (
            "distributed_deadlocks_total",
            "counter",
            "Victims that the detector named in cycles over several partitions.",
            |node| node.status.deadlocks.distributed_deadlocks,
        ),
        (
            "phantom_deadlocks_total",
            "counter",
            "Victims that were in no deadlock any more when they heard of it.",
            |node| node.status.deadlocks.phantom_deadlocks,
        ),
        (
            "lock_timeouts_total",
            "counter",
            "Transactions that waited too long for locks, where that is limited.",
            |node| node.status.deadlocks.lock_timeouts,
        ),
        (
            "false_lock_timeouts_total",
            "counter",
            "Those of them that were in no cycle within the partition.",
            |node| node.status.deadlocks.false_timeouts,
        ),
        ("deadlock_restarts_total", "counter", "Attempts that were given up and begun again.", |node| {
            node.status.deadlocks.restarts
        }),
        (
            "held_at_the_door_total",
            "counter",
            "Attempts that had to wait at the door while most of those at the partition waited for locks.",
            |node| node.status.deadlocks.held_at_the_door,
        ),
        (
            "in_doubt_at_start",
            "gauge",
            "Transactions that had promised to commit and had not heard the decision when the node started.",
            |node| node.status.deadlocks.in_doubt,
        ),
    ]
}
