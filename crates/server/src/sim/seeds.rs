//! `ordain sim --seed` and `--seeds`: runs seeds over the cores, and says how to see a failure again.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ordain_db::engine::EngineKind;
use ordain_db::sequencer::EpochPolicy;
use ordain_sim::export::Format;
use ordain_sim::plan::{Bug, Plan, Replication, WorkloadKind, WorkloadPlan};
use ordain_sim::run::{Report, observe, run};
use ordain_sim::shrink::{Reductions, Shrunk, shrink};
use ordain_sim::swarm::{Fixed, draw};
use ordain_sim::time::{MILLISECOND, SECOND};
use ordain_sim::world::log;
use ordain_workload::append::Append;

use super::print;

/// Most runs to shrink one failing seed.
const SHRINK_RUNS_MAX: u32 = 300;

/// Which seeds to run, and what of them is fixed.
#[derive(clap::Args, Debug)]
pub struct SeedOptions {
    /// Run one seed and print what it did
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run the seeds from A to B, without B
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    seeds: Option<(u64, u64)>,
    /// Run so many seeds at a time [default: the cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Give every cluster so many partitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    partitions: Option<u16>,
    /// Give every cluster so many replicas
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=5))]
    replicas: Option<u16>,
    /// Let several replicas agree so: sync or async
    #[arg(long, value_name = "MODE", value_parser = parse_agreement)]
    replication: Option<Replication>,
    /// Make so many calls in every run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    transactions: Option<u64>,
    /// Run this engine only
    #[arg(long, value_name = "NAME")]
    engine: Option<EngineKind>,
    /// Run this workload only: append, bank, micro, sql, tpcc or ycsb
    #[arg(long, value_name = "NAME")]
    workload: Option<WorkloadKind>,
    /// Let epochs be made so, where the engine has epochs: adaptive, managed or managed-strictly
    #[arg(long, value_name = "POLICY")]
    epochs: Option<EpochPolicy>,
    /// Make a mistake in the code under test, to see that it is noticed
    #[arg(long, value_name = "BUG")]
    bug: Option<Bug>,
    /// Make the plan smaller: what a failing seed printed
    #[arg(long, value_name = "LIST", requires = "seed")]
    reduce: Option<Reductions>,
    /// Run each seed twice and compare the digests
    #[arg(long)]
    twice: bool,
    /// Print what happens, event by event
    #[arg(long, requires = "seed")]
    log: bool,
    /// Print a line with the digests for each seed
    #[arg(long)]
    digests: bool,
    /// Write the seed's history for another checker, in this format: elle, awdit or operations; the workload must be append
    #[arg(long, value_name = "FORMAT", requires = "seed", requires = "output")]
    export: Option<Format>,
    /// The file for the history
    #[arg(long, value_name = "FILE", requires = "export")]
    output: Option<PathBuf>,
    /// Go on after a failing seed
    #[arg(long)]
    keep_going: bool,
}

/// A way in which several replicas can agree.
fn parse_agreement(text: &str) -> Result<Replication, String> {
    let mode = text.parse().ok().filter(|mode| *mode != Replication::None);
    mode.ok_or_else(|| format!("several replicas cannot agree so: {text:?}; give sync or async"))
}

/// `A..B`, with A below B.
fn parse_seeds(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("{text:?} is no range of seeds: give A..B with A below B, such as 0..1000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
    if from < to { Ok((from, to)) } else { Err(wrong()) }
}

/// A seed that went well, and what is to be printed of it.
struct Ran {
    plan: Plan,
    report: Report,
    text: String,
}

/// A seed that failed.
struct Failure(u64);

/// What all runs came to.
#[derive(Default)]
struct Sums {
    seeds: u64,
    virtual_seconds: f64,
    faulty_seconds: f64,
    node_seconds: f64,
    events: u64,
    answered: u64,
    faults: u64,
    crashes: u64,
    halted: u64,
}

/// Runs the seeds; whether all went well.
///
/// # Errors
/// When an option is wrong.
pub fn run_seeds(options: &SeedOptions) -> Result<bool, String> {
    let (from, to) = match (options.seed, options.seeds) {
        (Some(seed), _) => {
            (seed, seed.checked_add(1).ok_or("the last seed cannot be run: give a smaller one")?)
        }
        (None, Some(seeds)) => seeds,
        (None, None) => return Err("give --seed N or --seeds A..B".to_owned()),
    };
    options.check()?;
    // What the code under test says when it panics is part of the report.
    std::panic::set_hook(Box::new(|_| {}));
    let verbose = options.seed.is_some();
    let started = Instant::now();
    let (next, sums, failures) = (AtomicU64::new(from), Mutex::new(Sums::default()), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to || (!options.keep_going && !lock(&failures).is_empty()) {
                return;
            }
            match run_seed(seed, options, verbose) {
                Ok(Ran { plan, report, text }) => {
                    lock(&sums).add(&plan, &report);
                    // Who closes the pipe has seen enough.
                    let _ = print(&text);
                }
                Err(text) => {
                    lock(&failures).push(Failure(seed));
                    let _ = print(&text);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let jobs = options.jobs.map_or(cores, NonZeroUsize::get);
        (0..jobs).for_each(|_| drop(scope.spawn(work)));
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    print(&summary(&lock(&sums), &failures, started.elapsed()))?;
    Ok(failures.is_empty())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SeedOptions {
    /// Checks what would have to be ignored.
    fn check(&self) -> Result<(), String> {
        let Some(engine) = self.engine.filter(|engine| !engine.is_ordered()) else { return Ok(()) };
        let lacks = |what: &str| {
            Err(format!("the engine {} has no {what}: choose another one, or leave that out", engine.name()))
        };
        if self.epochs.is_some_and(EpochPolicy::is_managed) {
            return lacks("epochs for a manager");
        }
        if self.replicas.is_some_and(|replicas| replicas > 1) || self.replication.is_some() {
            return lacks("replicas");
        }
        Ok(())
    }

    fn plan(&self, seed: u64) -> Plan {
        let Self { partitions, replicas, replication, transactions, engine, workload, epochs, .. } = *self;
        let fixed = Fixed { partitions, replicas, replication, transactions, engine, workload, epochs };
        let mut plan = draw(seed, &fixed);
        plan.bug = self.bug;
        match &self.reduce {
            Some(reductions) => reductions.apply(&plan),
            None => plan,
        }
    }

    /// The command that runs a seed again.
    fn command(&self, seed: u64) -> String {
        let mut command = format!("ordain sim --seed {seed}");
        if let Some(partitions) = self.partitions {
            let _ = write!(command, " --partitions {partitions}");
        }
        if let Some(replicas) = self.replicas {
            let _ = write!(command, " --replicas {replicas}");
        }
        if let Some(replication) = self.replication {
            let _ = write!(command, " --replication {}", replication.name());
        }
        if let Some(transactions) = self.transactions {
            let _ = write!(command, " --transactions {transactions}");
        }
        if let Some(engine) = self.engine {
            let _ = write!(command, " --engine {}", engine.name());
        }
        if let Some(workload) = self.workload {
            let _ = write!(command, " --workload {}", workload.name());
        }
        if let Some(epochs) = self.epochs {
            let _ = write!(command, " --epochs {epochs}");
        }
        if let Some(bug) = self.bug {
            let _ = write!(command, " --bug {}", bug.name());
        }
        if let Some(reductions) = &self.reduce {
            let _ = write!(command, " --reduce {reductions}");
        }
        command
    }
}

/// Runs one seed; the error is a report for people.
fn run_seed(seed: u64, options: &SeedOptions, verbose: bool) -> Result<Ran, String> {
    let (plan, mut text) = (options.plan(seed), String::new());
    if options.log {
        let lines = log::of_run(&plan).map_err(|error| format!("seed {seed} has no run: {error}"))?;
        lines.iter().for_each(|line| text.extend([line, "\n"]));
    }
    let report = match (options.export, &options.output) {
        (Some(format), Some(path)) => run_and_export(&plan, format, path),
        _ => run(&plan).map_err(|error| error.to_string()),
    };
    let report = report.map_err(|error| format!("seed {seed} has no run: {error}"))?;
    if options.digests {
        let _ = writeln!(text, "{seed} {:016x} {}", report.trace, report.state);
    }
    if verbose {
        text.push_str(&describe_run(&plan, &report));
    }
    if options.twice {
        let again = run(&plan).map_err(|error| error.to_string())?;
        if (again.trace, again.state) != (report.trace, report.state) {
            return Err(format!(
                "seed {seed}: two runs differ: trace {:016x} and {:016x}, state {} and {}",
                report.trace, again.trace, report.state, again.state
            ));
        }
    }
    let Some(violation) = report.violations.first() else {
        return Ok(Ran { plan, report, text });
    };
    let shrunk = options.reduce.is_none().then(|| shrink(&plan, violation.property, SHRINK_RUNS_MAX));
    text.push_str(&describe_failure(seed, options, &report, shrunk.as_ref()));
    Err(text)
}

/// Runs a plan and writes its history to a file.
fn run_and_export(plan: &Plan, format: Format, path: &Path) -> Result<Report, String> {
    let WorkloadPlan::Append(options) = &plan.workload else {
        return Err("only histories of append can be exported: give --workload append".to_owned());
    };
    let workload = Append::new(options.clone()).map_err(|error| error.to_string())?;
    let (report, history) = observe(plan, &workload).map_err(|error| error.to_string())?;
    let history = history.ok_or("the run was broken off by an assertion, so that there is no history")?;
    let text = format.export(&history, &workload).map_err(|error| error.to_string())?;
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(report)
}

fn describe_run(plan: &Plan, report: &Report) -> String {
    let happened = report.happened;
    let mut text = format!(
        "{plan}\n{} ms of virtual time: {} events, {} steps, {} packets ({} lost), {} crashes, {} calls answered\n",
        report.virtual_time / MILLISECOND,
        happened.events,
        happened.steps,
        happened.packets,
        happened.packets_lost,
        happened.crashes,
        happened.answered,
    );
    if let Some(reason) = &report.halted {
        let _ = writeln!(text, "ended early, as it must: {reason}");
    }
    let _ = writeln!(text, "trace {:016x}, state {}", report.trace, report.state);
    if report.violations.is_empty() {
        text.push_str("all properties hold\n");
    }
    text
}

fn describe_failure(seed: u64, options: &SeedOptions, report: &Report, shrunk: Option<&Shrunk>) -> String {
    let mut text = format!("seed {seed} FAILED\n");
    for violation in &report.violations {
        let _ = writeln!(text, "  violated: {violation}");
    }
    let _ = writeln!(text, "  again:    {}", options.command(seed));
    let Some(shrunk) = shrunk else { return text };
    let _ = writeln!(text, "  smaller:  {} --reduce {}", options.command(seed), shrunk.reductions);
    let _ = writeln!(text, "  the smallest plan that violates the first property, of {} tried:", shrunk.runs);
    for line in shrunk.plan.to_string().lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

impl Sums {
    fn add(&mut self, plan: &Plan, report: &Report) {
        let seconds = report.virtual_time as f64 / SECOND as f64;
        self.seeds += 1;
        self.virtual_seconds += seconds;
        self.faulty_seconds += report.happened.healed_at as f64 / SECOND as f64;
        self.node_seconds += seconds * f64::from(plan.partitions * plan.replicas);
        self.events += report.happened.events;
        self.answered += report.happened.answered;
        self.faults += plan.faults.len() as u64;
        self.crashes += report.happened.crashes;
        self.halted += u64::from(report.halted.is_some());
    }
}

fn summary(sums: &Sums, failures: &[Failure], elapsed: Duration) -> String {
    let mut text = String::new();
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let _ = writeln!(
        text,
        "{} seeds went well and {} failed in {seconds:.1} s: {:.0} seeds per hour",
        sums.seeds,
        failures.len(),
        (sums.seeds + failures.len() as u64) as f64 * 3600.0 / seconds
    );
    let _ = writeln!(
        text,
        "{:.1} hours of clusters ({:.1} before healing, {:.1} of nodes) in virtual time, {:.0} in an hour: {:.0} simulated seconds per second",
        sums.virtual_seconds / 3600.0,
        sums.faulty_seconds / 3600.0,
        sums.node_seconds / 3600.0,
        sums.virtual_seconds / seconds,
        sums.virtual_seconds / seconds
    );
    let _ = writeln!(
        text,
        "{} calls, {} faults planned, {} crashes, {} events ({:.0} per second); {} ended early at a damaged disk, as they must",
        sums.answered,
        sums.faults,
        sums.crashes,
        sums.events,
        sums.events as f64 / seconds,
        sums.halted
    );
    if !failures.is_empty() {
        let seeds: Vec<String> = failures.iter().map(|Failure(seed)| seed.to_string()).collect();
        let _ = writeln!(text, "failed: {}", seeds.join(" "));
    }
    text
}
