//! Project automation, run as `cargo xtask <command>`.
//!
//! It replaces shell scripts and CI configuration: what a contributor runs and what the build server runs is the
//! same program, written in the language of the project, and it needs nothing but cargo (and git, if there is one).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool speaks to its user")]

mod ci;
mod clients;
mod kill_test;
mod tidy;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask <command>

  ci     everything that must pass before a change lands, in order: formatting, clippy, tests, docs.
         Changes no file; stops at the first failure.
  clients [--only NAME,...] [--skip-missing] [--of-tests]
         Builds the server, and lets psql, pgbench and drivers of several languages use it: docs/sql/clients.md tells what is
         installed for them, and where. With --skip-missing, those whose tools or packages cannot be had do not run.
         With --of-tests, the server is the one that `cargo test --workspace` has built.
  kill-test
         Builds `ordain` as it is released, and lets a cluster of real processes be killed, stopped, cut off and given disks
         that fail, under load: nothing acknowledged may be lost. Takes the options of `ordain kill-test`, for example
         --seconds 600; --help tells them. The last line is a summary.
  tidy   the rules of the house that no compiler knows (CONTRIBUTING.md explains them).
         Also runs as a test, so `cargo test --workspace --locked` and `ci` include it.
  help   this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["ci"] => ci::run(&workspace_root()),
        ["clients", options @ ..] => clients::run(&workspace_root(), options),
        ["kill-test", options @ ..] => kill_test::run(&workspace_root(), options),
        ["tidy"] => tidy::run(&workspace_root()),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        [] => {
            eprint!("xtask: say which command to run.\n\n{HELP}");
            ExitCode::from(2)
        }
        unknown => {
            eprint!("xtask: unknown command `{}`.\n\n{HELP}", unknown.join(" "));
            ExitCode::from(2)
        }
    }
}

/// The cargo that runs us, so that a toolchain named on the command line is used for what we run, too.
///
/// What cargo tells *us* by the environment it does not get: build scripts depend on it, and what was built by hand would be built once more,
/// and again when it is built by hand the next time.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_ours = |name: &str| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_");
        if name.to_str().is_some_and(is_ours) {
            command.env_remove(name);
        }
    }
    command
}

/// The folder of the workspace's Cargo.toml.
///
/// Cargo sets `CARGO_MANIFEST_DIR` when it runs a program or a test; asking at run time rather than at compile time
/// keeps a moved checkout working without a rebuild.
fn workspace_root() -> PathBuf {
    let of_xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = of_xtask.ancestors().nth(2).map(PathBuf::from);
    root.expect("xtask lives in crates/xtask, two folders below the root of the workspace")
}
