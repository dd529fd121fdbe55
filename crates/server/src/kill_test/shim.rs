//! Disks that fail, without rights that a user does not have: a small library that is loaded into the processes and makes
//! calls of the operating system fail on demand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library's text.
const SOURCE: &str = include_str!("shim.c");

/// How processes are told the name of their flag.
pub(super) const FLAG_VARIABLE: &str = "ORDAIN_KILL_TEST_FAULT";

/// How a library is loaded before all others.
pub(super) const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// What is wrong with a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskFault {
    /// There is no room.
    Full,
    /// What was written cannot be made durable.
    FailingSync,
}

/// The library, built.
pub(super) struct Shim {
    path: PathBuf,
}

impl Shim {
    /// Builds the library in a directory.
    ///
    /// # Errors
    /// Says what is missing on this machine.
    pub(super) fn build(directory: &Path) -> Result<Shim, String> {
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return Err("disks fail by a preloaded library, which is written for 64-bit Linux".to_owned());
        }
        let (source, path) = (directory.join("shim.c"), directory.join("shim.so"));
        std::fs::write(&source, SOURCE)
            .map_err(|error| format!("cannot write {}: {error}", source.display()))?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(&compiler);
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&path).arg(&source).arg("-ldl");
        let output = command.stdin(Stdio::null()).output().map_err(|error| {
            format!(
                "there is no C compiler `{}` ({error}): install one, or name it in CC",
                compiler.display()
            )
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the C compiler failed: {}", said.lines().next().unwrap_or_default()));
        }
        Ok(Shim { path })
    }

    /// Loads the library into a process that is about to start.
    pub(super) fn load_into(&self, command: &mut Command, flag: &Path) {
        command.env(PRELOAD_VARIABLE, &self.path).env(FLAG_VARIABLE, flag);
    }

    /// Whether the library is in a running process: one that is linked statically does not load it.
    pub(super) fn is_in(&self, process: u32) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps"));
        maps.is_ok_and(|maps| maps.contains(&*self.path.to_string_lossy()))
    }
}

/// The file by which a disk is made to fail.
pub(super) struct Flag(PathBuf);

impl Flag {
    /// The flag of a process; no fault yet.
    pub(super) fn new(path: PathBuf) -> Flag {
        Flag(path)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn hit(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".hit");
        name.into()
    }

    /// From now on the disk fails.
    ///
    /// # Errors
    /// When the flag cannot be written.
    pub(super) fn raise(&self, fault: DiskFault) -> Result<(), String> {
        // Of an earlier fault.
        let _ = std::fs::remove_file(self.hit());
        let letter = match fault {
            DiskFault::Full => "d",
            DiskFault::FailingSync => "s",
        };
        // Never empty for whoever reads it.
        let part = self.0.with_extension("part");
        let written = std::fs::write(&part, letter).and_then(|()| std::fs::rename(&part, &self.0));
        written.map_err(|error| format!("cannot write {}: {error}", self.0.display()))
    }

    /// The disk is well again.
    pub(super) fn lower(&self) {
        // It is there only while a disk fails.
        let _ = std::fs::remove_file(&self.0);
    }

    /// Whether a call has failed since the flag was last raised.
    pub(super) fn has_hit(&self) -> bool {
        self.hit().exists()
    }
}
