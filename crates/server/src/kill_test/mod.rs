//! `ordain kill-test`: a cluster of real processes that are killed, stopped, cut off from each other and given disks that fail,
//! under load; nothing that was acknowledged may be lost. `docs/kill-test.md` tells what is done and what is checked.
//!
//! The simulator finds more, faster, and repeats it. What it cannot find is wrong below its models: in the threads, the
//! sockets, the files, the operating system. That is what this is for.

mod clients;
mod faults;
mod ledger;
mod network;
mod operator;
pub(crate) mod options;
mod processes;
mod report;
mod round;
mod shim;
mod verdict;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ordain::caller::random_number;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::faults::FaultKind;
use self::options::KillTestOptions;
use self::report::Measured;
use self::round::{Finished, Setting};
use self::shim::Shim;

/// What is logged if nothing is said: that connections are lost is no news here.
pub(crate) const LOG: &str = "info,ordain::remote=warn";

/// The exit code after a second signal.
const CUT_SHORT: i32 = 130;

/// Sums over all rounds.
#[derive(Default)]
struct Sums {
    rounds: Vec<Measured>,
    faults: BTreeMap<FaultKind, u64>,
    /// Calls that committed, aborted, were refused, and whose end is not known.
    calls: [u64; 4],
    restarts: u64,
    lost: u64,
    doubled: u64,
    unfounded: u64,
    /// Rounds after which all digests were equal.
    equal: usize,
    violations: Vec<String>,
}

/// Runs the test; whether nothing was lost.
///
/// # Errors
/// When it could not be run: says why.
pub(crate) fn run(options: &KillTestOptions) -> Result<bool, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let wrong = |error| format!("cannot wait for signals: {error}");
        // In this order: the second signal finds the flag set.
        signal_hook::flag::register_conditional_shutdown(signal, CUT_SHORT, Arc::clone(&interrupted))
            .map_err(wrong)?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(wrong)?;
    }
    let seed = match options.seed {
        Some(seed) => seed,
        None => random_number().map_err(|error| error.to_string())? >> 32,
    };
    let directory = Directory::create(options.directory.as_deref())?;
    let (shim, without_disks) = disks(options, &directory.path)?;
    let mut kinds = options.faults();
    kinds.retain(|kind| without_disks.is_none() || !kind.is_of_disks());
    let mut skipped: Vec<String> = Vec::new();
    skipped.extend(without_disks.map(|reason| format!("full-disk, failing-sync ({reason})")));
    if !options.links.can_be_slow() && kinds.contains(&FaultKind::Slow) {
        if !options.faults.is_empty() {
            return Err("links between namespaces cannot be slow: leave out slow, or --links".to_owned());
        }
        kinds.retain(|kind| *kind != FaultKind::Slow);
        skipped.push("slow (links between namespaces cannot be)".to_owned());
    }
    if kinds.is_empty() {
        return Err(format!("no fault is left: {}", skipped.join("; ")));
    }
    tracing::info!(seed, directory = %directory.path.display(), "kill test");
    let mut sums = Sums::default();
    for (number, lasts) in options.rounds().into_iter().enumerate() {
        let path = directory.path.join(format!("round-{number}"));
        let setting = Setting {
            options,
            seed,
            number: number as u64,
            lasts,
            kinds: kinds.clone(),
            directory: &path,
            shim: shim.as_ref().filter(|_| kinds.iter().any(|kind| kind.is_of_disks())),
            interrupted: &interrupted,
        };
        std::fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        sums.add(
            round::run(&setting).inspect_err(|_| directory.keep_if(!interrupted.load(Ordering::SeqCst)))?,
            number,
        );
        if !sums.holds(options) {
            break;
        }
        if options.directory.is_none() {
            // Only to save room: what is left goes with the directory.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    let passed = sums.holds(options);
    directory.keep_if(!passed);
    let note = format!("Seed {seed}.");
    if let Some(output) = &options.output {
        report::write(output, &sums.rounds, &note)?;
    }
    publish(&sums, options, seed, &skipped, &directory.path)?;
    Ok(passed)
}

/// The library by which disks fail, or why there is none although it is wanted.
fn disks(options: &KillTestOptions, directory: &Path) -> Result<(Option<Shim>, Option<String>), String> {
    if !options.faults().iter().any(|kind| kind.is_of_disks()) {
        return Ok((None, None));
    }
    match Shim::build(directory) {
        Ok(shim) => Ok((Some(shim), None)),
        Err(reason) if options.faults.is_empty() => {
            tracing::warn!(reason, "faults of disks are left out");
            Ok((None, Some(reason)))
        }
        Err(reason) => Err(format!("--faults asks for disks that fail: {reason}")),
    }
}

impl Sums {
    fn add(&mut self, finished: Finished, number: usize) {
        let Finished { seen, happened, restarts, away, verdict, violations } = finished;
        for happened in &happened {
            *self.faults.entry(happened.kind).or_default() += 1;
        }
        for (sum, count) in self.calls.iter_mut().zip(seen.ledger.counts) {
            *sum += count;
        }
        for trouble in &seen.troubles {
            tracing::info!(round = number, trouble, "clients were told");
        }
        tracing::info!(
            round = number,
            faults = happened.len(),
            committed = seen.ledger.committed(),
            slowest = ?seen.slowest,
            "round finished"
        );
        self.restarts += restarts;
        self.violations
            .extend(violations.into_iter().map(|violation| format!("round {number}: {violation}")));
        let broken = verdict.violated().map(|line| format!("{}: {}", line.condition, line.detail));
        let described = verdict.audit.described.iter().cloned();
        for violation in broken.chain(described) {
            self.violations.push(format!("round {number}: {violation}"));
        }
        self.lost += verdict.audit.lost;
        self.doubled += verdict.audit.doubled;
        self.unfounded += verdict.audit.unfounded;
        self.equal += usize::from(!verdict.digests.is_empty() && !verdict.lines.is_empty());
        self.rounds.push(Measured { commits: seen.commits, happened, away });
    }

    fn holds(&self, options: &KillTestOptions) -> bool {
        self.lost + self.doubled + self.unfounded == 0
            && self.violations.is_empty()
            && self.equal == self.rounds.len()
            && !self.stops_too_long(options)
    }

    fn stops_too_long(&self, options: &KillTestOptions) -> bool {
        let longest = f64::from(report::longest_stop_with_majority(&self.rounds)) / 1e3;
        options.gap_max.is_some_and(|most| longest > most)
    }
}

/// Prints what was found; the summary is the last line.
fn publish(
    sums: &Sums,
    options: &KillTestOptions,
    seed: u64,
    skipped: &[String],
    directory: &Path,
) -> Result<(), String> {
    let mut text = format!("\n{}\n", report::stops_table(&sums.rounds));
    for violation in &sums.violations {
        text.push_str(&format!("  VIOLATED  {violation}\n"));
    }
    if sums.stops_too_long(options) {
        text.push_str("  VIOLATED  calls stopped for longer than --gap-max\n");
    }
    let passed = sums.holds(options);
    if !passed {
        text.push_str(&format!("  The logs and the data are in {}\n", directory.display()));
    }
    text.push_str(&summary(sums, seed, skipped, options.seconds, passed));
    text.push('\n');
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}

fn summary(sums: &Sums, seed: u64, skipped: &[String], seconds: f64, passed: bool) -> String {
    let faults: Vec<String> =
        sums.faults.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    let [committed, aborted, refused, unknown] = sums.calls;
    let digests = if sums.equal == sums.rounds.len() { "digests equal" } else { "DIGESTS NOT EQUAL" };
    let verdict = if passed { "passed" } else { "FAILED" };
    let longest = f64::from(report::longest_stop_with_majority(&sums.rounds)) / 1e3;
    let skipped: String = skipped.iter().map(|what| format!("; SKIPPED {what}")).collect();
    format!(
        "kill-test: {verdict}: seed {seed}, {seconds} s, faults: {} ({} restarts asked for); {committed} acknowledged, \
         {} lost, {} doubled, {} unfounded, {aborted} aborted, {refused} refused, {unknown} unknown, {} violations, {digests}, \
         longest stop with a majority {longest:.1} s{}",
        if faults.is_empty() { "none".to_owned() } else { faults.join(", ") },
        sums.restarts,
        sums.lost,
        sums.doubled,
        sums.unfounded,
        sums.violations.len(),
        skipped,
    )
}

/// Where everything is; a temporary one goes with this value, unless it is kept.
struct Directory {
    path: PathBuf,
    is_temporary: std::cell::Cell<bool>,
}

impl Directory {
    fn create(wanted: Option<&Path>) -> Result<Directory, String> {
        let path = match wanted {
            Some(path) => path.to_owned(),
            None => {
                let number = random_number().map_err(|error| error.to_string())?;
                std::env::temp_dir().join(format!("ordain-kill-test-{number:016x}"))
            }
        };
        let wrong = |error| format!("cannot use the directory {}: {error}", path.display());
        std::fs::create_dir_all(&path).map_err(wrong)?;
        if std::fs::read_dir(&path).map_err(wrong)?.next().is_some() {
            return Err(format!("the directory {} is not empty: choose another --directory", path.display()));
        }
        // Processes may run elsewhere.
        let path = path.canonicalize().map_err(wrong)?;
        Ok(Directory { path, is_temporary: std::cell::Cell::new(wanted.is_none()) })
    }

    fn keep_if(&self, keep: bool) {
        self.is_temporary.set(self.is_temporary.get() && !keep);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_temporary.get() {
            // It may have been removed by somebody else.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
