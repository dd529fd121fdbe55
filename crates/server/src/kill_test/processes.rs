//! The cluster: its files, and one process for each node.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use ordain::cluster_file::{ClusterFile, DurabilityEntry, ProcessEntry, ReplicationEntry};
use ordain::db::engine::two_phase::requests::LockRequests;
use ordain::db::node::CheckpointMode;
use ordain::db::position::PartitionId;
use ordain::durable::{LOG_BYTES_MIN, ReplicationMode};
use rustix::process::{Pid, Signal, kill_process};

use super::network::Network;
use super::options::KillTestOptions;
use super::shim::{Flag, Shim};

/// Replicas of the cluster.
pub(super) const REPLICAS: usize = 3;

/// Partitions of the cluster.
pub(super) const PARTITIONS: usize = 2;

/// Processes of the cluster: one for each node.
pub(super) const PROCESSES: usize = REPLICAS * PARTITIONS;

/// What a process says when it can serve.
const READY: &str = ": ready ";

/// Lines of a log that are shown when its process has failed.
const LAST_LINES: usize = 8;

/// The partition of a process.
pub(super) fn partition_of(process: usize) -> usize {
    process % PARTITIONS
}

/// The processes that run a partition.
pub(super) fn group_of(partition: usize) -> impl Iterator<Item = usize> {
    (partition..PROCESSES).step_by(PARTITIONS)
}

/// The processes of a replica.
pub(super) fn of_replica(replica: usize) -> impl Iterator<Item = usize> {
    replica * PARTITIONS..(replica + 1) * PARTITIONS
}

/// What a round's seed decides of the cluster. Rounds have ascending seeds: four of them have all that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Drawn {
    checkpoint_mode: CheckpointMode,
    /// Whether nodes that lag shed calls.
    throttle: bool,
}

impl Drawn {
    fn of(seed: u64) -> Drawn {
        let is_even = seed.is_multiple_of(2);
        Drawn {
            checkpoint_mode: if is_even { CheckpointMode::Concurrent } else { CheckpointMode::Freeze },
            throttle: seed % 4 < 2,
        }
    }
}

/// See the [module](self).
pub(super) struct Cluster {
    /// As clients see it.
    pub(super) file: ClusterFile,
    /// Where that file is.
    pub(super) path: PathBuf,
    /// They end before their network does.
    pub(super) processes: Vec<Process>,
    pub(super) network: Network,
}

impl Cluster {
    /// Writes the files of a cluster; nothing runs yet.
    ///
    /// # Errors
    /// When there are no ports or files cannot be written.
    pub(super) fn create(
        directory: &Path,
        options: &KillTestOptions,
        seed: u64,
        shim: Option<&Shim>,
    ) -> Result<Cluster, String> {
        let network = Network::start(options.links, PROCESSES)?;
        let file = cluster_file(directory, options, seed, &network);
        file.check()?;
        for folder in ["data", "logs", "flags"] {
            let path = directory.join(folder);
            std::fs::create_dir_all(&path)
                .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        }
        let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
        let write = |path: &Path, file: &ClusterFile| {
            std::fs::write(path, file.to_text()?)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let own_path = directory.join("cluster.toml");
        write(&own_path, &file)?;
        let mut processes = Vec::new();
        for number in 0..PROCESSES {
            let mut own = file.clone();
            for (other, entry) in own.processes.iter_mut().enumerate().filter(|(other, _)| *other != number) {
                entry.address = network.address(number, other).to_string();
            }
            let name = file.processes[number].name.clone();
            let path = directory.join(format!("{name}.toml"));
            write(&path, &own)?;
            processes.push(Process {
                log: directory.join("logs").join(format!("{name}.log")),
                flag: Flag::new(directory.join("flags").join(&name)),
                command: Box::new(command(network.command(number, &program), &path, &name, shim)),
                name,
                child: None,
                log_begin: 0,
            });
        }
        for process in &mut processes {
            if let Some(shim) = shim {
                shim.load_into(&mut process.command, process.flag.path());
            }
        }
        Ok(Cluster { file, path: own_path, processes, network })
    }
}

/// What starts a process, from the command that runs the program at its place in the network.
fn command(mut command: Command, file: &Path, name: &str, shim: Option<&Shim>) -> Command {
    command.arg("start").arg("--cluster").arg(file).args(["--process", name]);
    command.arg("--parent").arg(std::process::id().to_string());
    command.env("ORDAIN_LOG", "info").env("NO_COLOR", "1").env("RUST_BACKTRACE", "1");
    if shim.is_none() {
        command.env_remove(super::shim::FLAG_VARIABLE);
    }
    command
}

fn cluster_file(directory: &Path, options: &KillTestOptions, seed: u64, network: &Network) -> ClusterFile {
    let Drawn { checkpoint_mode, throttle } = Drawn::of(seed);
    let process = |number: usize| {
        let (partition, replica) = (partition_of(number), number / PARTITIONS);
        let name = format!("p{partition}r{replica}");
        ProcessEntry {
            address: network.listening(number).to_string(),
            listen: None,
            partitions: vec![partition as u16],
            replica: replica as u16,
            data_directory: Some(directory.join("data").join(&name)),
            name,
        }
    };
    ClusterFile {
        partitions: PARTITIONS as u16,
        engine: options.engine,
        epoch_milliseconds: options.epochs.default_microseconds() as f64 / 1e3,
        epochs: options.epochs,
        lock_wait_milliseconds: None,
        locks: LockRequests::default(),
        load_control: true,
        throttle,
        // A number of a cluster file has 63 bits.
        seed: seed >> 1,
        sites: None,
        with_sql: false,
        workload: options.workload.options(),
        replication: ReplicationEntry { mode: ReplicationMode::Sync, ..ReplicationEntry::default() },
        // As often and as small as can be, so that checkpoints, cuts of the log and new segments fall together with faults.
        durability: DurabilityEntry {
            checkpoint_seconds: 1,
            checkpoint_mode,
            checkpoint_log_mib: 1,
            log_mib: LOG_BYTES_MIN >> 20,
            ..DurabilityEntry::default()
        },
        processes: (0..PROCESSES).map(process).collect(),
    }
}

/// One process; killed with this value.
pub(super) struct Process {
    pub(super) name: String,
    /// Its standard error, over all its lives.
    pub(super) log: PathBuf,
    /// Makes its disk fail.
    pub(super) flag: Flag,
    command: Box<Command>,
    child: Option<Child>,
    /// Where in the log its present life begins.
    log_begin: u64,
}

impl Process {
    /// Starts it, or starts it again. The thread that does must live as long as the process.
    ///
    /// # Errors
    /// When the operating system cannot.
    pub(super) fn start(&mut self) -> Result<(), String> {
        let wrong =
            |error| format!("cannot start {} with the log {}: {error}", self.name, self.log.display());
        let log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(wrong)?;
        self.log_begin = log.metadata().map_err(wrong)?.len();
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(self.command.spawn().map_err(wrong)?);
        Ok(())
    }

    /// Its number for the operating system, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends it a signal, if it runs.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // It may have ended, and not been waited for.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Ends it by SIGKILL.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail for one that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// How it ended, if it did; told once.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok().flatten()?;
        self.child = None;
        Some(status)
    }

    /// Whether it runs, as far as is known.
    pub(super) fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Whether it has said that it can serve.
    pub(super) fn is_ready(&self) -> bool {
        self.runs() && self.said().contains(READY)
    }

    /// What it has said in its present or last life.
    pub(super) fn said(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut log| {
            log.seek(SeekFrom::Start(self.log_begin))?;
            log.read_to_end(&mut text)
        });
        match read {
            Ok(_) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => format!("(cannot read {}: {error})", self.log.display()),
        }
    }

    /// What it has said last.
    pub(super) fn last_lines(&self) -> String {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Its partition in the cluster.
    pub(super) fn partition(number: usize) -> PartitionId {
        PartitionId(partition_of(number) as u16)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_rounds_have_all_that_is_drawn() {
        for seed in [0, 7, u64::MAX - 3] {
            let rounds: Vec<Drawn> = (seed..=seed + 3).map(Drawn::of).collect();
            for throttle in [false, true] {
                for checkpoint_mode in [CheckpointMode::Concurrent, CheckpointMode::Freeze] {
                    assert!(rounds.contains(&Drawn { checkpoint_mode, throttle }), "{rounds:?}");
                }
            }
        }
    }
}
