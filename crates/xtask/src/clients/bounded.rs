//! Commands with a time limit.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a command whose output goes to a file, what it says of mistakes in between. The error says how it ended.
pub(super) fn run(command: &mut Command, output: &Path, time: Duration) -> Result<(), String> {
    let started = Instant::now();
    let mut child = start(command, output).map_err(|error| format!("did not start: {error}"))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) if started.elapsed() < time => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                end(&mut child);
                return Err(format!("not at its end after {} s", time.as_secs()));
            }
            Err(error) => {
                end(&mut child);
                return Err(format!("cannot be waited for: {error}"));
            }
        }
    }
}

/// Starts a command in a process group of its own, so that what it starts can be ended with it.
pub(super) fn start(command: &mut Command, output: &Path) -> io::Result<Child> {
    let output = File::create(output)?;
    command.stdout(output.try_clone()?).stderr(output);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command.spawn()
}

/// Ends a process and those that it started, by force.
pub(super) fn end(child: &mut Child) {
    if cfg!(unix) {
        // Killing a group takes a system call that the standard library does not have.
        let group = format!("-{}", child.id());
        let mut kill = Command::new("kill");
        // What fails is over already.
        let _ = kill.args(["-KILL", "--", &group]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}
