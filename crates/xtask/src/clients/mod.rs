//! `cargo xtask clients`: lets real clients of PostgreSQL use the server (docs/sql/clients.md).
//!
//! Their programs are in the folder `clients`, one folder each, and end with a message at the first mistake. Each is copied below the
//! target directory, gets its packages there, and has a server of its own with new data.
//!
//! - [`table`]: the clients.
//! - [`options`]: the options.
//! - [`build`], [`server`]: the server.
//! - [`bounded`]: commands with a time limit.

mod bounded;
mod build;
mod options;
mod server;
mod table;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use options::Options;
use server::Server;
use table::{CLIENTS, Client, Step};

/// How long the packages of a client may take.
const INSTALL: Duration = Duration::from_secs(300);

/// How long a client may take.
const RUN: Duration = Duration::from_secs(180);

/// How a client went.
enum Outcome {
    Passed,
    /// It cannot run here: what is to be installed, or cannot be had.
    Missing(String),
    Failed(String),
}

/// Runs the clients that the options name.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let names = CLIENTS.map(|client| client.name);
    let options = match Options::parse(arguments, &names) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("clients: {error}");
            return ExitCode::from(2);
        }
    };
    println!("clients: building the server");
    let executable = match build::server(root, options.of_tests) {
        Ok(executable) => executable,
        Err(error) => {
            eprintln!("clients: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), Vec::new());
    for client in CLIENTS.iter().filter(|client| options.include(client.name)) {
        let started = Instant::now();
        let outcome = Bench::new(root, &executable, client).run();
        let (name, seconds) = (client.name, started.elapsed().as_secs_f64());
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("clients: {name} passed in {seconds:.1} s");
            }
            Outcome::Missing(what) if options.skip_missing => {
                println!("clients: {name} does not run: {what}");
                skipped.push((name, what));
            }
            Outcome::Missing(what) | Outcome::Failed(what) => {
                println!("clients: {name} failed after {seconds:.1} s: {what}");
                failed.push(name);
            }
        }
    }
    println!("clients: {}", summary(passed, &failed, &skipped));
    for (name, what) in &skipped {
        println!("clients: not run: {name}: {}", what.lines().next().unwrap_or_default());
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many did what. Those that did not run come after it, each with what it lacks.
fn summary(passed: usize, failed: &[&str], skipped: &[(&str, String)]) -> String {
    let mut line = format!("{passed} passed");
    if !failed.is_empty() {
        line += &format!("; {} FAILED: {}", failed.len(), failed.join(", "));
    }
    if !skipped.is_empty() {
        line += &format!("; {} did not run, so nothing is known of them", skipped.len());
    }
    line
}

/// What installers say when packages came that are not the wanted ones.
const REFUSALS: [&str; 6] = [
    "EINTEGRITY",
    "not in sync",
    "checksum mismatch",
    "SECURITY ERROR",
    "DO NOT MATCH THE HASHES",
    "Checksum validation failed",
];

/// Whether a command that failed has found packages to be others than the wanted ones, rather than found none.
fn are_others(command: &str, said: &str) -> bool {
    command.starts_with("sha256sum ") || REFUSALS.iter().any(|words| said.contains(words))
}

/// A client in the folder where it runs.
struct Bench<'a> {
    client: &'a Client,
    executable: &'a Path,
    /// Its folder in the repository.
    source: PathBuf,
    /// Its folder below the target directory.
    folder: PathBuf,
    /// What the last command said.
    output: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(root: &Path, executable: &'a Path, client: &'a Client) -> Bench<'a> {
        let folder = executable.with_file_name("clients").join(client.name);
        let output = folder.join("output.txt");
        Bench { client, executable, source: root.join("clients").join(client.name), folder, output }
    }

    fn run(&self) -> Outcome {
        let missing: Vec<&str> =
            self.client.tools.iter().copied().filter(|tool| !is_installed(tool)).collect();
        if !missing.is_empty() {
            return Outcome::Missing(format!("install {}", missing.join(" and ")));
        }
        if let Err(error) = self.copy() {
            return Outcome::Failed(format!("{} cannot be copied: {error}", self.source.display()));
        }
        if let Err(outcome) = self.install() {
            return outcome;
        }
        let server = match Server::start(self.executable, &self.folder) {
            Ok(server) => server,
            Err(error) => return Outcome::Failed(error),
        };
        let deadline = Instant::now() + RUN;
        for step in self.client.steps {
            if let Err(error) = self.step(step, server.port, deadline) {
                let (command, log) = (step.command, server.log_tail());
                return Outcome::Failed(format!(
                    "`{command}` {error}\n--- the server's log ends with:\n{log}"
                ));
            }
        }
        Outcome::Passed
    }

    /// Copies the client's files. What is installed is in folders, and stays.
    fn copy(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.is_file() && !path.ends_with(INSTALLED) {
                std::fs::remove_file(path)?;
            }
        }
        for entry in std::fs::read_dir(&self.source)? {
            let entry = entry?;
            std::fs::copy(entry.path(), self.folder.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// Installs the packages, unless the same ones are there.
    fn install(&self) -> Result<(), Outcome> {
        let unknown =
            |error: std::io::Error| Outcome::Failed(format!("its packages cannot be told: {error}"));
        let mut wanted = String::new();
        for file in self.client.packages {
            wanted += &std::fs::read_to_string(self.source.join(file)).map_err(unknown)?;
        }
        let stamp = self.folder.join(INSTALLED);
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        for command in self.client.install {
            bounded::run(&mut self.command(command), &self.output, INSTALL).map_err(|error| {
                let said = self.said();
                let told = format!("its packages cannot be installed: `{command}`: {error}\n{said}");
                if are_others(command, &said) { Outcome::Failed(told) } else { Outcome::Missing(told) }
            })?;
        }
        std::fs::write(&stamp, wanted).map_err(unknown)
    }

    fn step(&self, step: &Step, port: u16, deadline: Instant) -> Result<(), String> {
        let mut command = self.command(step.command);
        // Whatever the user has set would lead elsewhere.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string());
        command.env("PGUSER", "ordain").env("PGDATABASE", "ordain");
        // What psql says itself is compared, too.
        command.env("LC_ALL", "C").env("PGCLIENTENCODING", "UTF8");
        if let Some(input) = step.input {
            let input = File::open(self.folder.join(input));
            command.stdin(input.map_err(|error| format!("has no input: {error}"))?);
        }
        let time = deadline.saturating_duration_since(Instant::now());
        bounded::run(&mut command, &self.output, time)
            .map_err(|error| format!("failed: {error}\n{}", self.said()))?;
        let Some(expected) = step.expected else { return Ok(()) };
        let text = std::fs::read_to_string(self.folder.join(expected)).map_err(|error| error.to_string())?;
        let difference = |difference| format!("printed something else than {expected} {difference}");
        first_difference(&text, &self.said()).map_or(Ok(()), |found| Err(difference(found)))
    }

    /// A command in the client's folder.
    fn command(&self, written: &str) -> Command {
        let mut words = written.split(' ');
        let program = words.next().unwrap_or_default();
        // A program with a path is one of the client's packages.
        let program = if program.contains('/') { self.folder.join(program) } else { program.into() };
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder).stdin(std::process::Stdio::null());
        command
    }

    /// What the last command said.
    fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.output).unwrap_or_default()).into_owned()
    }
}

/// The file that says which packages are installed.
const INSTALLED: &str = "installed.txt";

/// Whether a program is in one of the folders where programs are looked for.
fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// The first line that differs, but for white space at its end.
fn first_difference(expected: &str, found: &str) -> Option<String> {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for number in 1.. {
        let (expected, found) = (expected.next(), found.next());
        if expected.is_none() && found.is_none() {
            break;
        }
        if expected.map(str::trim_end) != found.map(str::trim_end) {
            let shown = |line: Option<&str>| line.map_or("nothing".to_owned(), |line| format!("`{line}`"));
            let (expected, found) = (shown(expected), shown(found));
            return Some(format!("in line {number}\nexpected: {expected}\n   found: {found}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_differ_by_their_lines() {
        assert_eq!(first_difference("a  \nb\n", "a\nb"), None);
        assert_eq!(first_difference("", ""), None);
        let difference = first_difference("a\nb\n", "a\n c\n").unwrap();
        assert!(difference.contains("line 2") && difference.contains("`b`") && difference.contains("` c`"));
        assert!(first_difference("a\n", "a\nb\n").unwrap().contains("expected: nothing"));
        assert!(first_difference("a\nb\n", "a\n").unwrap().contains("found: nothing"));
    }

    #[test]
    fn what_did_not_run_is_counted() {
        assert_eq!(summary(6, &[], &[]), "6 passed");
        let skipped = ["node", "java"].map(|name| (name, "install it".to_owned()));
        assert_eq!(
            summary(3, &["go"], &skipped),
            "3 passed; 1 FAILED: go; 2 did not run, so nothing is known of them"
        );
    }

    #[test]
    fn packages_that_are_others_are_no_missing_ones() {
        assert!(are_others(
            "npm ci",
            "npm error code EINTEGRITY\nnpm error sha512-… integrity checksum failed"
        ));
        assert!(are_others("go mod download", "verifying github.com/a/b@v1: checksum mismatch"));
        assert!(are_others("sha256sum --check --strict SHA256SUMS", "packages/a.jar: FAILED"));
        assert!(!are_others("npm ci", "npm error code ENOTFOUND"));
        assert!(!are_others("go mod download", "dial tcp: lookup example.org: no such host"));
    }

    #[test]
    fn programs_are_looked_for() {
        assert!(is_installed("sh") && !is_installed("no-such-program-anywhere"));
    }
}
