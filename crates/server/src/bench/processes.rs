//! A benchmark over several processes on this machine: children serve the partitions, this process drives them.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use ordain_workload::Workload;

use super::children::{Children, Trouble};
use super::options::{RunOptions, WorkloadOptions};
use super::{Finished, drive};
use crate::caller::random_number;
use crate::cluster_file::{ClusterFile, DurabilityEntry, ProcessEntry, ReplicationEntry};
use crate::connection::Connection;
use crate::port::Port;
use crate::remote::RemoteCluster;

/// How long the children may load their rows and find each other.
const READY_PATIENCE: Duration = Duration::from_secs(600);

/// How long to wait before a child that is not ready is looked at again.
const READY_PAUSE: Duration = Duration::from_millis(20);

/// How often to choose other ports when one of those chosen turns out to be taken.
const STARTS_MAX: u32 = 3;

/// Ports to choose from: below those that operating systems give to outgoing connections.
const PORTS: std::ops::Range<u64> = 10_240..32_000;

/// Runs the benchmark on a cluster of children.
///
/// # Errors
/// When a child fails or does not get ready; the message has what it said last.
pub(super) fn run(
    options: &RunOptions,
    workload_options: &WorkloadOptions,
    workload: &dyn Workload,
) -> Result<Finished, String> {
    let (children, cluster) = start(options, workload_options, workload)?;
    let port: Arc<dyn Port> = Arc::<RemoteCluster>::clone(&cluster);
    let connection = Connection::new(port, workload.catalog().clone()).map_err(|error| error.to_string())?;
    let finished = drive(options, workload, &*cluster, &connection)
        .map_err(|error| children.trouble(&error).to_string())?;
    for (usage, name) in cluster.usage()?.iter().zip(children.names()) {
        let [all, partitions] = [usage.process_cpu_nanoseconds, usage.partitions_cpu_nanoseconds]
            .map(|nanoseconds| Duration::from_nanos(nanoseconds).as_secs_f64());
        tracing::info!("{name}: {all:.2} s of CPU since its start, {partitions:.2} s of them in partitions");
    }
    drop((connection, cluster));
    children.stop()?;
    Ok(finished)
}

/// Starts children and waits until all are ready.
fn start(
    options: &RunOptions,
    workload_options: &WorkloadOptions,
    workload: &dyn Workload,
) -> Result<(Children, Arc<RemoteCluster>), String> {
    let mut attempt = 1;
    loop {
        let file = cluster_file(options, workload_options)?;
        let on_disk =
            TemporaryFile::create(&file.to_text().map_err(|problem| format!("--seed: {problem}"))?)?;
        let children = Children::start(&file, on_disk)?;
        match wait_until_ready(&file, &children, workload) {
            Ok(cluster) => return Ok((children, Arc::new(cluster))),
            Err(Trouble::PortTaken) if attempt < STARTS_MAX => attempt += 1,
            Err(trouble) => return Err(trouble.to_string()),
        }
    }
}

/// A cluster on this machine, with the partitions spread over the processes in turn.
fn cluster_file(options: &RunOptions, workload: &WorkloadOptions) -> Result<ClusterFile, String> {
    let ports = free_ports(options.processes)?;
    let process = |(number, port): (u16, u16)| ProcessEntry {
        name: format!("process-{number}"),
        address: format!("127.0.0.1:{port}"),
        listen: None,
        partitions: (number..options.partitions).step_by(usize::from(options.processes)).collect(),
        replica: 0,
        data_directory: None,
    };
    let file = ClusterFile {
        partitions: options.partitions,
        engine: options.engine,
        epoch_milliseconds: options.epoch().as_secs_f64() * 1e3,
        epochs: options.epochs,
        lock_wait_milliseconds: options.lock_wait_milliseconds,
        locks: options.locks,
        load_control: !options.without_load_control,
        throttle: options.throttle,
        seed: options.seed,
        sites: options.sites,
        with_sql: false,
        workload: workload.clone(),
        replication: ReplicationEntry::default(),
        durability: DurabilityEntry::default(),
        processes: (0..).zip(ports).map(process).collect(),
    };
    file.check()?;
    Ok(file)
}

/// Ports that nobody listens on at the moment.
fn free_ports(count: u16) -> Result<BTreeSet<u16>, String> {
    let mut ports = BTreeSet::new();
    for _ in 0..100 * u32::from(count) {
        if ports.len() == usize::from(count) {
            break;
        }
        let random = random_number().map_err(|error| error.to_string())?;
        let port = (PORTS.start + random % (PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            ports.insert(port);
        }
    }
    if ports.len() < usize::from(count) {
        return Err(format!("found no {count} free ports between {} and {}", PORTS.start, PORTS.end));
    }
    Ok(ports)
}

fn wait_until_ready(
    file: &ClusterFile,
    children: &Children,
    workload: &dyn Workload,
) -> Result<RemoteCluster, Trouble> {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    let deadline = Instant::now() + READY_PATIENCE;
    let mut cluster: Option<RemoteCluster> = None;
    loop {
        let waits_for = match &cluster {
            None => match RemoteCluster::connect(file, workload.catalog()) {
                Ok(connected) => {
                    cluster = Some(connected);
                    continue;
                }
                Err(error) => error.to_string(),
            },
            Some(connected) => {
                let ready = connected.usage().map_err(|problem| children.trouble(&problem))?;
                let ready = ready.iter().filter(|usage| usage.ready).count();
                if ready == file.processes.len() {
                    break;
                }
                format!("{ready} of {} processes are connected with all others", file.processes.len())
            }
        };
        children.check()?;
        if Instant::now() > deadline {
            return Err(children.trouble(&format!("not ready after {READY_PATIENCE:?}: {waits_for}")));
        }
        progress.set_message(format!("starting {} processes: {waits_for}", file.processes.len()));
        std::thread::sleep(READY_PAUSE);
    }
    progress.finish_and_clear();
    cluster.ok_or_else(|| children.trouble("not connected"))
}

/// A file that is removed with this value.
pub(super) struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create(text: &str) -> Result<TemporaryFile, String> {
        let number = random_number().map_err(|error| error.to_string())?;
        let path = std::env::temp_dir().join(format!("ordain-bench-{number:016x}.toml"));
        let file = TemporaryFile(path);
        std::fs::write(&file.0, text)
            .map_err(|error| format!("cannot write {}: {error}", file.0.display()))?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It may not have been written.
        let _ = std::fs::remove_file(&self.0);
    }
}
