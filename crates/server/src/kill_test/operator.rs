//! What an operator does when a replica has lost its disks: removes it, and adds it again with empty ones.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command is run again and again before that counts as a mistake.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a command itself may wait for one of its steps.
const LIMIT_SECONDS: &str = "30";

/// What is being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Removing,
    Adding,
}

/// What has come of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// The command runs.
    UnderWay,
    /// The replica was removed: its data may go.
    Removed,
    /// The replica was added.
    Added,
    /// It does not work.
    Stuck(String),
}

/// See the [module](self).
pub(super) struct Operator {
    replica: usize,
    /// The cluster file.
    file: PathBuf,
    /// What the commands say.
    log: PathBuf,
    step: Step,
    begun: Instant,
    child: Option<Child>,
}

impl Operator {
    /// Begins to remove a replica.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub(super) fn remove(replica: usize, file: &Path, log: &Path) -> Result<Operator, String> {
        let mut operator = Operator {
            replica,
            file: file.to_owned(),
            log: log.to_owned(),
            step: Step::Removing,
            begun: Instant::now(),
            child: None,
        };
        operator.run()?;
        Ok(operator)
    }

    /// Begins to add the replica that was removed.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub(super) fn add(&mut self) -> Result<(), String> {
        (self.step, self.begun) = (Step::Adding, Instant::now());
        self.run()
    }

    fn run(&mut self) -> Result<(), String> {
        let wrong =
            |error| format!("cannot run `ordain replica`, with the log {}: {error}", self.log.display());
        let log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(wrong)?;
        let program = std::env::current_exe().map_err(wrong)?;
        let name = match self.step {
            Step::Removing => "remove",
            Step::Adding => "add",
        };
        let mut command = Command::new(program);
        command.args(["replica", name]).arg(self.replica.to_string()).arg("--cluster").arg(&self.file);
        command.args(["--limit-seconds", LIMIT_SECONDS]);
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(wrong)?).stderr(log);
        self.child = Some(command.spawn().map_err(wrong)?);
        Ok(())
    }

    /// Looks at the command, and runs it again if it has failed: it goes on where it was.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub(super) fn look(&mut self) -> Result<Progress, String> {
        let Some(child) = &mut self.child else { return Ok(Progress::UnderWay) };
        let status =
            child.try_wait().map_err(|error| format!("cannot wait for `ordain replica`: {error}"))?;
        let Some(status) = status else { return Ok(Progress::UnderWay) };
        self.child = None;
        match self.step {
            Step::Removing if status.success() => Ok(Progress::Removed),
            Step::Adding if status.success() => Ok(Progress::Added),
            step if self.begun.elapsed() > PATIENCE => {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default();
                Ok(Progress::Stuck(format!("{step:?} replica {} for {PATIENCE:?}: {last}", self.replica)))
            }
            _ => self.run().map(|()| Progress::UnderWay),
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail for one that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
