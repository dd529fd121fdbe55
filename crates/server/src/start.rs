//! `ordain start`: one process of a cluster, from the command line to the exit code.

use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cluster_file::ClusterFile;
use crate::load::load;
use crate::server::{Notice, Server, listen};

/// The exit code after a second signal.
const CUT_SHORT: i32 = 130;

/// What `ordain start` is told.
#[derive(Args, Clone, Debug)]
pub struct StartOptions {
    /// The cluster file, the same for all processes; see docs/cluster-file.md.
    #[arg(long, value_name = "FILE")]
    pub cluster: PathBuf,
    /// The name of the process to start, as the cluster file has it.
    #[arg(long, value_name = "NAME")]
    pub process: String,
    /// End at once when the process with this number, which must be the parent, ends.
    #[arg(long, hide = true)]
    pub parent: Option<u32>,
}

/// Starts a process and serves until a signal ends it.
///
/// # Errors
/// Why it could not start or go on.
pub fn run(options: &StartOptions) -> Result<(), String> {
    if let Some(parent) = options.parent {
        die_with_parent(parent)?;
    }
    let signals = SignalThread::start()?;
    let file = ClusterFile::read(&options.cluster)?;
    let number = file.number_of(&options.process)?;
    let entry = &file.processes[usize::from(number)];
    // Told before the rows are loaded, which may take long.
    drop(listen(entry.listen())?);
    let workload = file.workload()?;
    let partitions = entry.partitions();
    tracing::info!(process = entry.name, ?partitions, workload = workload.name(), "loading");
    let seeds = load(&*workload, &partitions, file.partitions)?;
    let server = Server::start(&file, number, workload.catalog(), seeds)?;
    stop_after_panics(server.notices());
    signals.hand_over(server.notices());
    server.serve()
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
