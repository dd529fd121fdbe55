//! The `ordain` command.

mod kill_test;

use std::env::VarError;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use ordain::advise::{self, options::AdviseOptions};
use ordain::backup::options::{self as backup, BackupOptions, InspectOptions, RestoreOptions};
use ordain::bench::compare::options::Benchmark;
use ordain::bench::experiment::{self, ExperimentOptions};
use ordain::bench::options::RunOptions;
use ordain::bench::{self, compare};
use ordain::given;
use ordain::operate::checkpoint::{self, CheckpointOptions};
use ordain::operate::replica::{self, ReplicaOptions};
use ordain::operate::status::{self, StatusOptions};
use ordain::sim;
use ordain::sim::options::SimOptions;
use ordain::start::{self, LogFormat, StartOptions};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use self::kill_test::options::KillTestOptions;

/// Ordain: a strictly serializable database that agrees on the order of transactions first.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a workload on each engine, simulated and for real, and recommend one of them with the reasons.
    Advise(AdviseOptions),
    /// Copy what is new of a data directory to a place for backups; beside the process that uses it, or without one.
    Backup(BackupOptions),
    /// Load a standard workload, run it, print what was measured, and check the data.
    Bench {
        #[command(flatten)]
        options: RunOptions,
        #[command(subcommand)]
        benchmark: Benchmark,
    },
    /// Take a checkpoint of a running cluster, and wait until a replica has it on its disks.
    Checkpoint(CheckpointOptions),
    /// Measure what durability costs, and how fast it recovers.
    Experiment(ExperimentOptions),
    /// Tell what a data directory or a place for backups has, and verify all of it.
    Inspect(InspectOptions),
    /// Break a cluster of real processes in every way that is allowed, under load, and check that nothing is lost.
    KillTest(KillTestOptions),
    /// Add, remove or replace a replica of a running cluster.
    Replica(ReplicaOptions),
    /// Make a data directory of backups, with the state of any epoch or time that they have.
    Restore(RestoreOptions),
    /// Run whole clusters in virtual time, with faults, and check what they did.
    Sim(SimOptions),
    /// Start a database of its own, or one process of a cluster; SIGTERM ends it in good order.
    Start(StartOptions),
    /// Tell how the nodes of a running cluster stand, a line for each. Exit code 3 if one cannot be asked.
    Status(StatusOptions),
}

/// The run did not finish.
const FAILED: u8 = 1;

/// The command line is wrong.
const WRONG: u8 = 2;

/// The run finished, and its data is not consistent or a property does not hold. (2 is a wrong command line.)
const INCONSISTENT: u8 = 3;

fn main() -> ExitCode {
    let arguments = match read_arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            // Nothing logs yet, and without a place to write to nobody misses it.
            let _ = writeln!(std::io::stderr(), "ordain: {problem}");
            return ExitCode::from(WRONG);
        }
    };
    let usual = match arguments.command {
        Command::KillTest(_) => kill_test::LOG,
        _ => "info",
    };
    let filter = match log_filter(usual) {
        Ok(filter) => filter,
        Err(problem) => return fail(&problem),
    };
    // A log that nobody reads any more must not end a server.
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    match &arguments.command {
        Command::Start(StartOptions { log_format: Some(LogFormat::Json), .. }) => log.json().init(),
        _ => log.init(),
    }
    if matches!(arguments.command, Command::Start(_)) {
        warn_of_variables();
    }
    let result = match arguments.command {
        Command::Advise(options) => advise::run(&options).map(|()| true),
        Command::Backup(options) => backup::backup(&options).map(|()| true),
        Command::Bench { options, benchmark } => match benchmark {
            Benchmark::Workload(workload) => bench::run(&options, &workload),
            // Each run is of this command line with something added to it: what follows `ordain bench`.
            Benchmark::Compare(_) => compare::run(std::env::args_os().skip(2)).map(|()| true),
        },
        Command::Checkpoint(options) => checkpoint::run(&options).map(|()| true),
        Command::Experiment(options) => experiment::run(&options),
        Command::Inspect(options) => backup::inspect(&options),
        Command::KillTest(options) => kill_test::run(&options),
        Command::Replica(options) => replica::run(&options).map(|()| true),
        Command::Restore(options) => backup::run_restore(&options).map(|()| true),
        Command::Sim(options) => sim::options::run(&options),
        Command::Start(options) => start::run(&options).map(|()| true),
        Command::Status(options) => status::run(&options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(INCONSISTENT),
        Err(problem) => fail(&problem),
    }
}

/// The command line, with what the environment and a file add to it. One that is wrong ends the process, as clap does.
fn read_arguments() -> Result<Arguments, String> {
    let written = std::env::args_os().collect();
    let completed = given::complete(&Arguments::command(), written, &|name| std::env::var_os(name))?;
    Arguments::try_parse_from(completed.arguments).map_err(|error| {
        if completed.from_elsewhere.is_empty() || !error.use_stderr() {
            error.exit();
        }
        let from =
            completed.from_elsewhere.iter().map(|(option, origin)| format!("{option} is from {origin}"));
        format!("{error}\n{}", from.collect::<Vec<_>>().join("\n"))
    })
}

/// Tells of variables that would be read if they were not misspelt.
fn warn_of_variables() {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    for name in given::unread(&Arguments::command(), names.iter().map(String::as_str)) {
        tracing::warn!("{name} in the environment means nothing; see ordain start --help for what there is");
    }
}

/// What is logged.
fn log_filter(usual: &str) -> Result<EnvFilter, String> {
    match std::env::var(given::LOG) {
        Err(VarError::NotPresent) => Ok(EnvFilter::new(usual)),
        Err(error) => Err(format!("ORDAIN_LOG: {error}")),
        Ok(text) => filter_of(&text)
            .map_err(|error| format!("ORDAIN_LOG: {error}: give a level such as info, warn or off")),
    }
}

/// Also what the filter would take for the name of a part of the program, which there is not, has to be a level.
fn filter_of(text: &str) -> Result<EnvFilter, String> {
    let is_known =
        |part: &str| part.contains(['=', '[']) || !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    if let Some(wrong) = text.split(',').find(|part| !is_known(part)) {
        return Err(format!("there is no level \"{wrong}\""));
    }
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

/// Says why the command failed: in the log, or beside it if that has no errors.
fn fail(problem: &str) -> ExitCode {
    if tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!("{problem}");
    } else {
        // Without a place to write to nobody misses it.
        let _ = writeln!(std::io::stderr(), "ordain: {problem}");
    }
    ExitCode::from(FAILED)
}
