//! Child processes that do not outlive this one.
//!
//! They are killed when the value is dropped, when this process is told to end by a signal, and (where the operating system
//! can do that) when it dies in any other way.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::processes::TemporaryFile;
use crate::cluster_file::ClusterFile;

/// How long children may take to end in good order.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// How often to look whether they have.
const STOP_PAUSE: Duration = Duration::from_millis(5);

/// How long a child may take to end after it has been seen to fail.
const TROUBLE_PATIENCE: Duration = Duration::from_millis(500);

/// What a child said last, in lines, to be shown if it fails.
const LAST_LINES: usize = 10;

/// The exit code of a benchmark that is interrupted.
const INTERRUPTED: i32 = 130;

/// Why a cluster of children is of no use.
pub(super) enum Trouble {
    /// A port that was free before is not any more.
    PortTaken,
    /// Anything else.
    Other(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::PortTaken => {
                write!(f, "ports on this machine are taken as fast as they are chosen: try again")
            }
            Trouble::Other(problem) => f.write_str(problem),
        }
    }
}

/// See the [module](self).
pub(super) struct Children {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    running: Vec<Running>,
    /// Kept as long as a child may read it.
    file: Option<TemporaryFile>,
}

struct Running {
    name: String,
    child: Child,
    last_lines: Arc<Mutex<VecDeque<String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Children {
    /// Starts all processes of a cluster file that is also on disk.
    pub(super) fn start(file: &ClusterFile, on_disk: TemporaryFile) -> Result<Children, String> {
        let path = on_disk.path().to_owned();
        let shared = Arc::new(Mutex::new(Shared { running: Vec::new(), file: Some(on_disk) }));
        let children = Children { shared: Arc::clone(&shared) };
        end_with_signals(shared)?;
        let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
        for process in &file.processes {
            let mut command = Command::new(&program);
            command.arg("start").arg("--cluster").arg(&path).args(["--process", &process.name]);
            command.arg("--parent").arg(std::process::id().to_string());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            if std::env::var_os("ORDAIN_LOG").is_none() {
                command.env("ORDAIN_LOG", "warn");
            }
            let mut child =
                command.spawn().map_err(|error| format!("cannot start {}: {error}", process.name))?;
            let last_lines = Arc::default();
            if let Some(log) = child.stderr.take() {
                pass_on(process.name.clone(), log, Arc::clone(&last_lines));
            }
            lock(&children.shared).running.push(Running { name: process.name.clone(), child, last_lines });
        }
        Ok(children)
    }

    /// The names of the processes.
    pub(super) fn names(&self) -> Vec<String> {
        lock(&self.shared).running.iter().map(|running| running.name.clone()).collect()
    }

    /// Makes sure that all children live.
    pub(super) fn check(&self) -> Result<(), Trouble> {
        match self.obituaries() {
            obituaries if obituaries.is_empty() => Ok(()),
            obituaries if obituaries.contains("cannot listen on") => Err(Trouble::PortTaken),
            obituaries => Err(Trouble::Other(obituaries.trim().to_owned())),
        }
    }

    /// A problem, with what is known of children that have ended. One that is about to end is given a moment.
    pub(super) fn trouble(&self, problem: &str) -> Trouble {
        let deadline = Instant::now() + TROUBLE_PATIENCE;
        loop {
            let obituaries = self.obituaries();
            if !obituaries.is_empty() || Instant::now() > deadline {
                return Trouble::Other(format!("{problem}{obituaries}"));
            }
            std::thread::sleep(STOP_PAUSE);
        }
    }

    /// How the children that have ended did so and what they said last; empty if all live.
    fn obituaries(&self) -> String {
        let mut shared = lock(&self.shared);
        shared.running.iter_mut().filter_map(Running::obituary).collect()
    }

    /// Ends all children in good order.
    ///
    /// # Errors
    /// When one does not end in time, and is killed, or ends with another exit code than 0.
    pub(super) fn stop(self) -> Result<(), String> {
        for running in &lock(&self.shared).running {
            // It may have ended already; then its exit code tells.
            let _ = kill_process(Pid::from_child(&running.child), Signal::TERM);
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while lock(&self.shared).running.iter_mut().any(Running::is_alive) {
            if Instant::now() > deadline {
                let mut shared = lock(&self.shared);
                let alive = shared.running.iter_mut().filter_map(|it| it.is_alive().then(|| it.name.clone()));
                let names: Vec<String> = alive.collect();
                return Err(format!(
                    "{} did not end within {STOP_PATIENCE:?} and was killed",
                    names.join(", ")
                ));
            }
            std::thread::sleep(STOP_PAUSE);
        }
        let mut failed = String::new();
        for running in &mut lock(&self.shared).running {
            if !running.status().is_some_and(|status| status.success()) {
                failed.extend(running.obituary());
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.trim().to_owned()) }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        lock(&self.shared).kill();
    }
}

impl Shared {
    fn kill(&mut self) {
        for Running { child, .. } in &mut self.running {
            // Both fail for a child that has ended and been waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.running.clear();
        self.file = None;
    }
}

impl Running {
    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn is_alive(&mut self) -> bool {
        self.status().is_none()
    }

    fn obituary(&mut self) -> Option<String> {
        let status = self.status()?;
        let last_lines: Vec<String> = lock(&self.last_lines).iter().cloned().collect();
        Some(format!("\n{} ended with {status}; its log ends with\n{}", self.name, last_lines.join("\n")))
    }
}

/// Passes a child's log on, line by line, and remembers the last lines.
fn pass_on(name: String, log: impl Read + Send + 'static, last_lines: Arc<Mutex<VecDeque<String>>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            // Without a place to write to nobody misses it.
            let _ = writeln!(std::io::stderr(), "[{name}] {line}");
            let mut last_lines = lock(&last_lines);
            if last_lines.len() == LAST_LINES {
                last_lines.pop_front();
            }
            last_lines.push_back(line);
        }
    });
}

/// A signal that ends this process first kills the children and removes the file.
fn end_with_signals(shared: Arc<Mutex<Shared>>) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| format!("cannot wait for signals: {error}"))?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            lock(&shared).kill();
            std::process::exit(INTERRUPTED);
        }
    });
    Ok(())
}
