//! `ordain start`: one process of a cluster, or a database of its own, from the command line to the exit code.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use ordain_db::engine::EngineKind;
use ordain_db::limits::PARTITIONS_MAX;
use ordain_db::position::PartitionId;
use ordain_db::sequencer::EpochPolicy;
use ordain_db::storage::Storage;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::bench::options::WorkloadOptions;
use crate::cluster_file::ClusterFile;
use crate::data_directory::{
    CLUSTER_FILE, Contents, DataDirectory, LogKind, keep_cluster_file, kept_cluster_file,
};
use crate::durable::{self, ReplicationMode};
use crate::load::{fill, load};
use crate::process::{ClusterOptions, LocalNode};
use crate::quantity::{EPOCH_MILLISECONDS, number_within, seconds};
use crate::server::{End, Lobby, Notice, Parts, Server, address, listen};
use crate::sql::options::{SqlOptions, SqlSockets};
use crate::sql::panic_is_caught;

/// The exit code after a second signal.
const CUT_SHORT: i32 = 130;

/// Where a database of its own is kept if nothing is said.
const DIRECTORY: &str = "ordain-data";

/// Where it listens if nothing is said.
const ADDRESS: &str = "127.0.0.1:7400";

/// What says where it listens.
const LISTEN: &str = "--listen HOST:PORT, or with a cluster file its `address` or `listen`";

/// What the process of a database of its own is called.
const SINGLE: &str = "ordain";

/// What `ordain start` is told.
#[derive(Args, Clone, Debug, Default)]
#[command(
    after_help = "Each option may also come from the environment (ORDAIN_DATA_DIR for --data-dir, and so on), or from the file of --config."
)]
pub struct StartOptions {
    /// A TOML file with options: `data_dir = "..."` for --data-dir, and so on. Those of the command line and of the environment count
    /// first.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How the log is written: text, or json, an object in each line. Default: text.
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// The cluster file, the same for all processes; see docs/cluster-file.md. Without one, this process is a database of
    /// its own, and durable.
    #[arg(long, value_name = "FILE", requires = "process", conflicts_with_all = SINGLE_OPTIONS)]
    pub cluster: Option<PathBuf>,
    /// The name of the process to start, as the cluster file has it.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub process: Option<String>,
    /// Where the data is kept. What is there goes on with the options with which it was made. Default: ordain-data.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where to listen for clients. Default: 127.0.0.1:7400.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub listen: Option<String>,
    /// Number of partitions of new data, each with a thread of its own. Default: 1.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=PARTITIONS_MAX as i64))]
    pub partitions: Option<u16>,
    /// The engine: serial, calvin, calvin-vll, aloha, two-phase, or two-phase-without-commit-protocol, which is no database. Default: calvin.
    #[arg(long)]
    pub engine: Option<EngineKind>,
    /// Who decides when epochs close: adaptive, managed or managed-strictly; see docs/cluster-file.md. Default: adaptive.
    #[arg(long)]
    pub epochs: Option<EpochPolicy>,
    /// The longest time in milliseconds for which requests are collected, or the length of a manager's epoch. Default: 10, with an
    /// epoch manager 25.
    #[arg(long, value_parser = number_within(EPOCH_MILLISECONDS, "milliseconds"))]
    pub epoch_milliseconds: Option<f64>,
    /// Clients of SQL have tables of their own beside those of the workload, and call its procedures. Always so without a workload.
    #[arg(long)]
    pub with_sql: bool,
    /// Clients of SQL.
    #[command(flatten)]
    pub sql: SqlOptions,
    /// End at once when the process with this number, which must be the parent, ends.
    #[arg(long, hide = true)]
    pub parent: Option<u32>,
    /// The tables, first rows and procedures of new data. Default: sql.
    #[command(subcommand)]
    pub workload: Option<WorkloadOptions>,
}

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For machines: an object in each line.
    Json,
}

/// What a cluster file says for itself.
const SINGLE_OPTIONS: [&str; 7] =
    ["data_dir", "listen", "partitions", "engine", "epochs", "epoch_milliseconds", "with_sql"];

/// Most times, for each node of the process, that nodes may have to be made again from their disks within [`RESTARTS_WITHIN`].
const RESTARTS_MAX: usize = 5;

/// See [`RESTARTS_MAX`].
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);

/// Starts a process and serves until a signal ends it.
///
/// # Errors
/// Why it could not start or go on.
pub fn run(options: &StartOptions) -> Result<(), String> {
    if let Some(parent) = options.parent {
        die_with_parent(parent)?;
    }
    let signals = SignalThread::start()?;
    let mut restarts = Restarts::default();
    let mut socket: Option<TcpListener> = None;
    let mut sql: Option<SqlSockets> = None;
    loop {
        let (file, number) = read_file(options)?;
        let entry = &file.processes[usize::from(number)];
        if let Some(directory) = &entry.data_directory {
            // First, as a process that uses the directory has the port, too.
            DataDirectory::look(directory, &contents(options, &file, number)?)?;
        }
        let listening = match &socket {
            Some(socket) => socket,
            // Told before the rows are loaded, which may take long. Kept from one start to the next.
            None => socket.insert(listen(entry.listen(), LISTEN)?),
        };
        let sql = match &sql {
            Some(sockets) => sockets,
            None => {
                let workload = file.workload()?;
                sql.insert(options.sql.listen(&workload.catalog().schema, options.cluster.is_some())?)
            }
        };
        let server =
            start(options, &file, number, listening)?.with_sql(sql.start()?).with_http(sql.http())?;
        stop_after_panics(server.notices());
        signals.hand_over(server.notices());
        let end = server.serve()?;
        let told_to_stop = signals.take_back();
        match end {
            End::StartAgain(reason) if !told_to_stop => {
                tracing::warn!(process = entry.name, reason, "starting again from the disk");
                restarts.note(Instant::now(), entry.partitions.len(), &reason)?;
            }
            End::Removed => {
                if let Some(directory) = &entry.data_directory {
                    DataDirectory::open(directory, &contents(options, &file, number)?)?.note_removal()?;
                }
                return Ok(());
            }
            End::StartAgain(_) | End::Stopped => return Ok(()),
        }
    }
}

/// The cluster file and the number of the process.
fn read_file(options: &StartOptions) -> Result<(ClusterFile, u16), String> {
    match (&options.cluster, &options.process) {
        (Some(_), _) if options.workload.is_some() => {
            Err("the cluster file names the workload: leave it out of the command line".to_owned())
        }
        (Some(path), Some(name)) => {
            let file = ClusterFile::read(path)?;
            let number = file.number_of(name)?;
            Ok((as_grown(file, number, path)?, number))
        }
        _ => Ok((single(options)?, 0)),
    }
}

/// The file with the replicas that the cluster has got since, as the data directory has kept them; what is newly said of
/// addresses and limits counts.
fn as_grown(file: ClusterFile, number: u16, path: &Path) -> Result<ClusterFile, String> {
    let Some(directory) = &file.processes[usize::from(number)].data_directory else { return Ok(file) };
    let Some(kept) = kept_cluster_file(directory)? else { return Ok(file) };
    let workload = file.workload()?;
    let catalog = workload.catalog();
    if kept.grown_to(&file, catalog).is_ok() {
        return Ok(file);
    }
    let grown = file.grown_to(&kept, catalog).map_err(|problem| {
        format!(
            "cluster file {}: the cluster has grown since, by the file {}, and the two do not agree: {problem}",
            path.display(),
            directory.join(CLUSTER_FILE).display()
        )
    })?;
    tracing::warn!(
        replicas = grown.replicas(),
        "the cluster has grown since the cluster file was written: going on with its replicas of {}; use that file everywhere",
        directory.join(CLUSTER_FILE).display()
    );
    Ok(grown)
}

/// What is to be in the data directory.
fn contents(options: &StartOptions, file: &ClusterFile, number: u16) -> Result<Contents, String> {
    Ok(Contents {
        log: LogKind::of(file.engine),
        fingerprint: file.data_fingerprint(file.workload()?.catalog()),
        nodes: file.processes[usize::from(number)].nodes(),
        options: options.cluster.is_none().then(|| file.clone()),
    })
}

/// Loads the rows of a process, or opens its data, and starts it.
fn start(
    options: &StartOptions,
    file: &ClusterFile,
    number: u16,
    socket: &TcpListener,
) -> Result<Server, String> {
    if !file.engine.is_acid() {
        tracing::warn!(
            "the engine {} is no database: a crash leaves transactions half done; it is there to be compared with",
            file.engine.label()
        );
    }
    let entry = &file.processes[usize::from(number)];
    let socket =
        || socket.try_clone().map_err(|error| format!("cannot listen on {}: {error}", entry.listen()));
    let workload = file.workload()?;
    let catalog = workload.catalog();
    let partitions = entry.partitions();
    let (nodes, directory) = match &entry.data_directory {
        None => {
            tracing::info!(process = entry.name, ?partitions, workload = workload.name(), "loading");
            let seeds = load(&*workload, &partitions, file.partitions)?;
            let cluster = file.options();
            let nodes = seeds.into_iter().map(|seed| LocalNode::volatile(&cluster, catalog, seed));
            (nodes.collect(), None)
        }
        Some(path) => {
            tracing::info!(process = entry.name, ?partitions, directory = %path.display(), "opening");
            let contents = contents(options, file, number)?;
            let mut directory = DataDirectory::open(path, &contents)?;
            let lobby = match file.replication.mode {
                ReplicationMode::None => None,
                _ => Some(Lobby::settle(file, number, catalog, &mut directory, socket()?)?),
            };
            let rows = |partition: PartitionId, storage: &mut dyn Storage| {
                fill(&*workload, partition, file.partitions, storage)
            };
            let durable = file.durable_options(path);
            let nodes =
                durable::open_nodes(&mut directory, &durable, &file.options(), &contents, catalog, &rows)?;
            if options.cluster.is_none() {
                let kept = keep_cluster_file(path, file)?;
                tracing::info!(file = %kept.display(), "clients connect with this cluster file");
            }
            // It answers as long as there are no nodes that could.
            drop(lobby);
            (nodes, Some(directory))
        }
    };
    let (file, catalog, socket) = (file.clone(), catalog.clone(), socket()?);
    Server::start(Parts { file, number, catalog, nodes, directory, socket })
}

/// When the nodes had to be made again from their disks.
#[derive(Default)]
struct Restarts(Vec<Instant>);

impl Restarts {
    /// Notes one of a process with so many nodes.
    ///
    /// # Errors
    /// When there were too many of late: something is wrong that starting again does not mend.
    fn note(&mut self, now: Instant, nodes: usize, reason: &str) -> Result<(), String> {
        let max = RESTARTS_MAX * nodes;
        self.0.retain(|at| now.duration_since(*at) < RESTARTS_WITHIN);
        self.0.push(now);
        if self.0.len() <= max {
            return Ok(());
        }
        Err(format!(
            "started again {max} times within {RESTARTS_WITHIN:?}, which did not help: {reason}; look at the logs of the other replicas, and if they go on, remove this one and add it again"
        ))
    }
}

/// The cluster of one process that the options describe, or that the data is of.
fn single(options: &StartOptions) -> Result<ClusterFile, String> {
    let directory = options.data_dir.clone().unwrap_or_else(|| PathBuf::from(DIRECTORY));
    let mut file = match DataDirectory::options_of(&directory)? {
        Some(made) => {
            check_options(options, &made, &directory)?;
            made
        }
        None => {
            let usual = ClusterOptions::default();
            let epochs = options.epochs.unwrap_or(usual.epochs);
            let epoch = options.epoch_milliseconds.unwrap_or(epochs.default_microseconds() as f64 / 1e3);
            let cluster = ClusterOptions {
                partitions: options.partitions.unwrap_or(usual.partitions),
                engine: options.engine.unwrap_or(usual.engine),
                epoch: seconds(epoch / 1e3),
                epochs,
                ..usual
            };
            let workload = options.workload.as_ref().unwrap_or(&WorkloadOptions::Sql);
            let single = ClusterFile::single(SINGLE, ADDRESS, &directory, &cluster, workload);
            ClusterFile { with_sql: options.with_sql, ..single }
        }
    };
    let entry = file.processes.first_mut().ok_or("the data was made without a process")?;
    entry.data_directory = Some(directory);
    if let Some(address) = &options.listen {
        entry.address.clone_from(address);
    }
    file.check()?;
    Ok(file)
}

/// Options that are given must be those with which the data was made.
fn check_options(options: &StartOptions, made: &ClusterFile, directory: &Path) -> Result<(), String> {
    let refuse = |option: &str, made: String| {
        Err(format!(
            "{option}: the data in {} was made with {made}: leave the option out, or choose another --data-dir",
            directory.display()
        ))
    };
    if options.partitions.is_some_and(|partitions| partitions != made.partitions) {
        return refuse("--partitions", made.partitions.to_string());
    }
    if options.engine.is_some_and(|engine| engine != made.engine) {
        return refuse("--engine", made.engine.name().to_owned());
    }
    if options.epochs.is_some_and(|epochs| epochs != made.epochs) {
        return refuse("--epochs", made.epochs.to_string());
    }
    if options.epoch_milliseconds.is_some_and(|epoch| epoch != made.epoch_milliseconds) {
        return refuse("--epoch-milliseconds", made.epoch_milliseconds.to_string());
    }
    if options.with_sql && !made.with_sql && made.workload != WorkloadOptions::Sql {
        return refuse("--with-sql", "a workload alone".to_owned());
    }
    match &options.workload {
        Some(workload) if *workload != made.workload => {
            let made = toml::to_string(&made.workload).map_err(|error| error.to_string())?;
            refuse("the workload", made.lines().collect::<Vec<_>>().join(", "))
        }
        _ => Ok(()),
    }
}

/// The thread that waits for signals: the first makes the server stop in good order, a second ends the process at once, and
/// so does the first while there is no server.
struct SignalThread(Arc<Mutex<SignalState>>);

#[derive(Default)]
struct SignalState {
    /// The server that is to be told.
    server: Option<Sender<Notice>>,
    /// Whether one was told.
    told: bool,
}

impl SignalThread {
    fn start() -> Result<SignalThread, String> {
        let wrong = |error| format!("cannot wait for signals: {error}");
        let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(wrong)?;
        let thread = SignalThread(Arc::default());
        let state = Arc::clone(&thread.0);
        let wait = move || {
            for signal in signals.forever() {
                let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.told {
                    tracing::warn!(signal = name, "second signal: stopping at once");
                    process::exit(CUT_SHORT);
                }
                let Some(server) = &state.server else {
                    tracing::info!(signal = name, "stopped while it served nobody");
                    process::exit(0);
                };
                // A server that has ended needs no notice.
                let _ = server.send(Notice::Stop(format!("received {name}")));
                state.told = true;
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(wrong)?;
        Ok(thread)
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a signal stops the server.
    fn hand_over(&self, notices: Sender<Notice>) {
        self.lock().server = Some(notices);
    }

    /// The server has ended; whether it was told to by a signal.
    fn take_back(&self) -> bool {
        let mut state = self.lock();
        state.server = None;
        state.told
    }
}

/// A panic in any thread stops the process: what that thread should have done may be missing. A session of SQL is all that its thread
/// does, so a panic of it ends that session and nothing else.
fn stop_after_panics(notices: Sender<Notice>) {
    std::panic::set_hook(Box::new(move |panic| {
        let trace = std::backtrace::Backtrace::capture();
        tracing::error!(%panic, %trace, "a thread panicked");
        if panic_is_caught() {
            return;
        }
        let _ = notices.send(Notice::Failed(format!("a thread panicked: {panic}")));
    }));
}

/// Asks the operating system to end this process with its parent.
#[cfg(target_os = "linux")]
fn die_with_parent(parent: u32) -> Result<(), String> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot bind this process to its parent: {error}"))?;
    // It may have ended before the call.
    match getppid() {
        Some(own) if own.as_raw_nonzero().get().cast_unsigned() == parent => Ok(()),
        _ => Err(format!("process {parent} is not the parent of this one, or has ended")),
    }
}

/// There is no such call here; the parent ends its children as long as it can.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_parent: u32) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_again_has_a_limit_within_a_time() {
        let mut restarts = Restarts::default();
        let begun = Instant::now();
        for step in 0..20 {
            let now = begun + step * RESTARTS_WITHIN / RESTARTS_MAX as u32;
            assert_eq!(restarts.note(now, 1, "behind"), Ok(()));
        }
        let now = begun + 40 * RESTARTS_WITHIN;
        for _ in 0..RESTARTS_MAX {
            assert_eq!(restarts.note(now, 1, "behind"), Ok(()));
        }
        assert_eq!(restarts.note(now, 2, "each node may"), Ok(()));
        let error = restarts.note(now, 1, "behind").unwrap_err();
        assert!(error.contains("behind") && error.contains("add it again"), "{error}");
    }
}
