//! A folder in which commands are run.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Long enough for any command of these tests.
const PATIENCE: Duration = Duration::from_secs(240);

/// A folder that is removed with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn create() -> Folder {
        let name = format!("folder-{:016x}", getrandom::u64().unwrap());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    /// A command that is run here, with nothing said in the environment.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ordain"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        command.env_remove("ORDAIN_LOG").current_dir(&self.0).args(arguments.split_whitespace());
        command
    }

    /// Runs a command that must end by itself.
    pub fn run(&self, command: &mut Command) -> Output {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.wait_with_output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
