//! `ordain start`: one process of a cluster, or a database of its own, from the command line to the exit code.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use clap::Args;
use ordain_db::engine::EngineKind;
use ordain_db::position::PartitionId;
use ordain_db::storage::Storage;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::bench::options::{BankOptions, WorkloadOptions};
use crate::cluster_file::ClusterFile;
use crate::data_directory::{Contents, DataDirectory};
use crate::durable;
use crate::load::{fill, load};
use crate::process::{ClusterOptions, LocalNode};
use crate::server::{Notice, Server, listen};

/// The exit code after a second signal.
const CUT_SHORT: i32 = 130;

/// Where a database of its own is kept if nothing is said.
const DIRECTORY: &str = "ordain-data";

/// Where it listens if nothing is said.
const ADDRESS: &str = "127.0.0.1:7400";

/// What the process of a database of its own is called.
const SINGLE: &str = "ordain";

/// What clients connect with; it is written into the data directory.
const CLUSTER_FILE: &str = "cluster.toml";

/// What `ordain start` is told.
#[derive(Args, Clone, Debug, Default)]
pub struct StartOptions {
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
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Number of partitions of new data, each with a thread of its own. Default: 1.
    #[arg(long)]
    pub partitions: Option<u16>,
    /// The engine: serial or calvin. Default: calvin.
    #[arg(long)]
    pub engine: Option<EngineKind>,
    /// The longest time in milliseconds for which requests are collected. Default: 10.
    #[arg(long)]
    pub epoch_milliseconds: Option<f64>,
    /// End at once when the process with this number, which must be the parent, ends.
    #[arg(long, hide = true)]
    pub parent: Option<u32>,
    /// The tables, first rows and procedures of new data. Default: bank.
    #[command(subcommand)]
    pub workload: Option<WorkloadOptions>,
}

/// What a cluster file says for itself.
const SINGLE_OPTIONS: [&str; 5] = ["data_dir", "listen", "partitions", "engine", "epoch_milliseconds"];

/// Starts a process and serves until a signal ends it.
///
/// # Errors
/// Why it could not start or go on.
pub fn run(options: &StartOptions) -> Result<(), String> {
    if let Some(parent) = options.parent {
        die_with_parent(parent)?;
    }
    let signals = SignalThread::start()?;
    let (file, number) = match (&options.cluster, &options.process) {
        (Some(_), _) if options.workload.is_some() => {
            return Err("the cluster file names the workload: leave it out of the command line".to_owned());
        }
        (Some(path), Some(name)) => {
            let file = ClusterFile::read(path)?;
            let number = file.number_of(name)?;
            (file, number)
        }
        _ => (single(options)?, 0),
    };
    let entry = &file.processes[usize::from(number)];
    // Told before the rows are loaded, which may take long.
    drop(listen(entry.listen())?);
    let workload = file.workload()?;
    let catalog = workload.catalog();
    let partitions = entry.partitions();
    let server = match &entry.data_directory {
        None => {
            tracing::info!(process = entry.name, ?partitions, workload = workload.name(), "loading");
            let seeds = load(&*workload, &partitions, file.partitions)?;
            let cluster = file.options();
            let nodes = seeds.into_iter().map(|seed| LocalNode::volatile(&cluster, catalog, seed));
            Server::start(&file, number, catalog, nodes.collect(), None)?
        }
        Some(path) => {
            tracing::info!(process = entry.name, ?partitions, directory = %path.display(), "opening");
            let contents = Contents {
                fingerprint: file.data_fingerprint(catalog),
                nodes: entry.nodes(),
                options: options.cluster.is_none().then(|| file.clone()),
            };
            let rows = |partition: PartitionId, storage: &mut dyn Storage| {
                fill(&*workload, partition, file.partitions, storage)
            };
            let durable = file.durable_options(path);
            let (directory, nodes) = durable::open(&durable, &file.options(), &contents, catalog, &rows)?;
            if options.cluster.is_none() {
                write_cluster_file(path, &file)?;
            }
            Server::start(&file, number, catalog, nodes, Some(directory))?
        }
    };
    stop_after_panics(server.notices());
    signals.hand_over(server.notices());
    server.serve()
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
            let epoch = options.epoch_milliseconds.unwrap_or(usual.epoch.as_secs_f64() * 1e3);
            let cluster = ClusterOptions {
                partitions: options.partitions.unwrap_or(usual.partitions),
                engine: options.engine.unwrap_or(usual.engine),
                epoch: Duration::from_secs_f64((epoch / 1e3).clamp(0.0, 1e6)),
                ..usual
            };
            let bank = WorkloadOptions::Bank(BankOptions::default());
            let workload = options.workload.as_ref().unwrap_or(&bank);
            ClusterFile::single(SINGLE, ADDRESS, &directory, &cluster, workload)
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
    if options.epoch_milliseconds.is_some_and(|epoch| epoch != made.epoch_milliseconds) {
        return refuse("--epoch-milliseconds", made.epoch_milliseconds.to_string());
    }
    match &options.workload {
        Some(workload) if *workload != made.workload => {
            refuse("the workload", format!("{:?}", made.workload))
        }
        _ => Ok(()),
    }
}

/// Leaves clients what they connect with.
fn write_cluster_file(directory: &Path, file: &ClusterFile) -> Result<(), String> {
    let path = directory.join(CLUSTER_FILE);
    std::fs::write(&path, file.to_text()?)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    tracing::info!(file = %path.display(), "clients connect with this cluster file");
    Ok(())
}

/// The thread that waits for signals: the first makes the server stop in good order, a second ends the process at once, and
/// so does the first while there is no server yet.
struct SignalThread {
    serving: Arc<AtomicBool>,
    server: Sender<Sender<Notice>>,
}

impl SignalThread {
    fn start() -> Result<SignalThread, String> {
        let wrong = |error| format!("cannot wait for signals: {error}");
        let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(wrong)?;
        let serving = Arc::new(AtomicBool::new(false));
        let (server, servers) = std::sync::mpsc::channel::<Sender<Notice>>();
        let is_serving = Arc::clone(&serving);
        let wait = move || {
            let mut notices: Option<Sender<Notice>> = None;
            for signal in signals.forever() {
                let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
                if !is_serving.load(Ordering::SeqCst) {
                    tracing::info!(signal = name, "stopped before it served anybody");
                    process::exit(0);
                }
                if notices.is_some() {
                    tracing::warn!(signal = name, "second signal: stopping at once");
                    process::exit(CUT_SHORT);
                }
                notices = servers.recv().ok();
                if let Some(notices) = &notices {
                    // A server that has ended needs no notice.
                    let _ = notices.send(Notice::Stop(format!("received {name}")));
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(wrong)?;
        Ok(SignalThread { serving, server })
    }

    /// From now on a signal stops the server.
    fn hand_over(&self, notices: Sender<Notice>) {
        // The thread lives as long as the process.
        let _ = self.server.send(notices);
        self.serving.store(true, Ordering::SeqCst);
    }
}

/// A panic in any thread stops the process: what that thread should have done may be missing.
fn stop_after_panics(notices: Sender<Notice>) {
    std::panic::set_hook(Box::new(move |panic| {
        let trace = std::backtrace::Backtrace::capture();
        tracing::error!(%panic, %trace, "a thread panicked");
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
