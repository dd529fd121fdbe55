//! A benchmark that is interrupted leaves nothing behind.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::support::*;

/// A benchmark in two processes that would run for long; `folder` is for its temporary file.
fn start(folder: &Path) -> Process {
    let arguments = "bench bank --accounts 400 --partitions 2 --processes 2 --seconds 600 --limit-seconds 0";
    let mut command = Command::new(env!("CARGO_BIN_EXE_ordain"));
    Process::spawn(command.args(arguments.split(' ')).env("TMPDIR", folder))
}

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // "number (name) state parent …"; the name may hold anything, so that what follows it is what counts.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent_of = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        if parent_of == Some(parent) {
            found.push(process);
        }
    }
    found
}

fn is_ordain(process: u32) -> bool {
    let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.windows(9).any(|words| words == b"--cluster")
}

/// Starts a benchmark and waits until its children have found each other; they are returned too.
fn start_with_children(folder: &Path) -> (Process, Vec<u32>) {
    let bench = start(folder);
    // The children's log comes through the benchmark's.
    eventually("both children are ready", || bench.log().matches(" ready ").count() == 2);
    let children = children(bench.child.id());
    assert_eq!(children.len(), 2);
    (bench, children)
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{:016x}", unique()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn check_nothing_is_left(signal: Signal, also_the_file: bool) {
    let folder = folder();
    let (mut bench, children) = start_with_children(&folder);
    bench.signal(signal);
    assert!(!bench.wait().success());
    eventually("the children have ended", || !children.iter().any(|child| is_ordain(*child)));
    if also_the_file {
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_benchmark_whose_child_dies_fails_and_says_which() {
    let folder = folder();
    let (mut bench, children) = start_with_children(&folder);
    let child = Pid::from_raw(children[0].cast_signed()).unwrap();
    kill_process(child, Signal::KILL).unwrap();
    assert_eq!(bench.wait().code(), Some(1));
    bench.says("ended with signal: 9");
    assert!(!children.iter().any(|child| is_ordain(*child)), "the other child has been ended");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_benchmark_that_is_terminated_leaves_no_processes_and_no_file() {
    check_nothing_is_left(Signal::TERM, true);
}

#[test]
fn a_benchmark_that_is_killed_leaves_no_processes() {
    check_nothing_is_left(Signal::KILL, false);
}
