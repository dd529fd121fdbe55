//! What the state at the end of a round is held against.

use std::time::{Duration, Instant};

use ordain::caller::random_number;
use ordain::cluster_file::ClusterFile;
use ordain::db::data::KeyRange;
use ordain::db::error::Error;
use ordain::db::message::{ClientId, ClientRequest, RequestId};
use ordain::db::node::Status;
use ordain::db::position::PartitionId;
use ordain::transport::client;
use ordain::wire::{ClientPayload, ServerPayload};
use ordain::{Connection, RemoteCluster, Snapshot};
use ordain_workload::{CheckLine, SnapshotReader, Workload};

use super::ledger::{Audit, Ledger};
use super::processes::{PARTITIONS, Process, group_of};
use ordain::bench::options::WorkloadOptions;

/// How long a process may take to tell its digest.
const STATUS_PATIENCE: Duration = Duration::from_secs(20);

/// How long it may take to tell whether it leads; it is about to be killed anyway.
const LEADS_PATIENCE: Duration = Duration::from_millis(300);

/// How long the state may take to be read.
const READ_PATIENCE: Duration = Duration::from_secs(90);

/// What was found.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Verdict {
    /// Whether the database agrees with what the clients were told.
    pub(super) audit: Audit,
    /// The workload's conditions.
    pub(super) lines: Vec<CheckLine>,
    /// The digest of each partition, the same at all replicas; empty if that was not found out.
    pub(super) digests: Vec<u128>,
}

impl Verdict {
    /// The conditions that do not hold.
    pub(super) fn violated(&self) -> impl Iterator<Item = &CheckLine> {
        self.lines.iter().filter(|line| !line.holds)
    }
}

/// Holds a state in which nothing is under way against the workload's conditions and what the clients were told.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn check(file: &ClusterFile, workload: &dyn Workload, ledger: &Ledger) -> Result<Verdict, String> {
    let wrong = |error: Error| format!("the state at the end cannot be read: {error}");
    let remote = RemoteCluster::connect(file, workload.catalog()).map_err(wrong)?;
    let connection =
        Connection::new(std::sync::Arc::new(remote), workload.catalog().clone()).map_err(wrong)?;
    let orders_loaded = match &file.workload {
        WorkloadOptions::Tpcc(options) => i64::from(options.customers),
        WorkloadOptions::ScaledTpcc(options) => i64::from(options.customers),
        _ => 0,
    };
    let deadline = Instant::now() + READ_PATIENCE;
    loop {
        let checked = connection.snapshot().and_then(|snapshot| {
            let lines = workload.check(&mut Reader(&snapshot), &ledger.totals)?;
            let audit = ledger.audit(&snapshot, connection.schema(), orders_loaded)?;
            Ok(Verdict { audit, lines, digests: Vec::new() })
        });
        match checked {
            Ok(verdict) => return Ok(verdict),
            // A snapshot does not outlive a node that starts again.
            Err(error) if Instant::now() > deadline => return Err(wrong(error)),
            Err(error) => tracing::info!(%error, "reading the state again"),
        }
    }
}

struct Reader<'a>(&'a Snapshot);

impl SnapshotReader for Reader<'_> {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.0.scan(range, |key, row| {
            visit(key, row);
            Ok(())
        })
    }
}

/// The digest of each partition.
///
/// # Errors
/// When the replicas of one differ, or one cannot be asked.
pub(super) fn digests(file: &ClusterFile) -> Result<Vec<u128>, String> {
    let mut digests = Vec::new();
    for partition in 0..PARTITIONS {
        let mut replicas = Vec::new();
        for process in group_of(partition) {
            let status = ask(file, process, true, STATUS_PATIENCE)?;
            replicas.push(status.digest.ok_or("a process did not tell its digest")?);
        }
        if replicas.iter().any(|digest| *digest != replicas[0]) {
            return Err(format!("the replicas of partition {partition} have the digests {replicas:x?}"));
        }
        digests.push(replicas[0]);
    }
    Ok(digests)
}

/// Whether a process leads its group, as far as it says so in time.
pub(super) fn leads(file: &ClusterFile, process: usize) -> bool {
    ask(file, process, false, LEADS_PATIENCE).is_ok_and(|status| status.leads)
}

fn ask(file: &ClusterFile, process: usize, digest: bool, patience: Duration) -> Result<Status, String> {
    let entry = &file.processes[process];
    let wrong = |problem: String| format!("process {} does not tell its status: {problem}", entry.name);
    let partition: PartitionId = Process::partition(process);
    let number = random_number().map_err(|error| error.to_string())? >> 1;
    let request = RequestId { client: ClientId { home: partition, number }, sequence: 0 };
    let request = ClientRequest::Status { request, digest };
    // 0 is any cluster.
    let (mut sender, mut receiver) =
        client::connect(&entry.address, 0).map_err(|error| wrong(error.to_string()))?;
    let payloads =
        ClientPayload::encode_requests(partition, &[request]).map_err(|error| wrong(error.to_string()))?;
    sender.send(&payloads).map_err(|error| wrong(error.to_string()))?;
    let payload = receiver.receive_within(patience).map_err(|error| wrong(error.to_string()))?;
    let payload = payload.ok_or_else(|| wrong(format!("no answer for {patience:?}")))?;
    match ServerPayload::decode(&payload).map_err(|error| wrong(error.to_string()))? {
        ServerPayload::Replies(replies) => {
            let reply = replies.into_iter().next().ok_or_else(|| wrong("an empty answer".to_owned()))?;
            let body = reply.outcome.map_err(|error| wrong(error.to_string()))?;
            postcard::from_bytes(&body).map_err(|error| wrong(error.to_string()))
        }
        _ => Err(wrong("it answered something else".to_owned())),
    }
}
