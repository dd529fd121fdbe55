//! `ordain advise`: which engine suits a workload, with the figures and the reasons (Ren, Thomson and Abadi).
//!
//! A workload is run on each engine in two ways: on a simulated cluster with measured costs, and for real in this process, in
//! rounds. What it is like is counted over a sample of its calls. A [rule] makes a recommendation of all that.
//!
//! - [`advise`]: with any [`Workload`]. A program whose tables and procedures are its own takes a [`sample`] of its calls from
//!   the log of its data directory: [`Record::read`](sample::Record::read), [`Sample::new`](sample::Sample::new).
//! - [`run`]: the command.
//!
//! What calls read over snapshots, simulated clients read in the order: the report says so.
//!
//! Never recommended is `two-phase-without-commit-protocol`, which is no database. That is a comparison of systems with locks, and
//! of the engines that are here, and claims no more (DET-45).

pub mod costs;
pub mod figures;
pub mod options;
mod report;
pub mod rule;
pub mod sample;

use std::path::Path;
use std::sync::Arc;

use ordain_sim::scale::advice::{AdviceEffort, AdviceSetting, ENGINES, WORK_UNITS, simulate};
use ordain_workload::{Part, Workload, profile};

use self::costs::{Costs, costs, work_microseconds};
use self::figures::{EngineFigures, Figures, RealFigures};
use self::options::{AdviseOptions, Preference};
use self::rule::{Recommendation, recommend};
use self::sample::{Record, Sample};
use crate::bench;
use crate::bench::options::{MicroOptions, RunOptions, WorkloadOptions};
use crate::bench::rounds::in_rounds;
use crate::data_directory::DataDirectory;
use crate::output::Output;

/// What is noted where calls read snapshots.
const SNAPSHOTS: &str = "simulated clients call in the order what reads snapshots for real, where it costs more than that: figures of \
                         conflicts are without them";

/// How to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How often each engine is run for real, in turn.
    pub rounds: u16,
    /// Seconds of each real run, after a warm-up of a fifth of that.
    pub seconds: f64,
    /// Requests that are kept outstanding in the real runs, over all partitions; by default 1024 for each.
    pub clients: Option<u32>,
    /// The seed of the calls and of the simulation.
    pub seed: u64,
    /// How long and how hard a simulated cluster is driven.
    pub effort: AdviceEffort,
    /// What matters more.
    pub preference: Preference,
}

/// What is to be run.
pub struct Subject<'a> {
    /// The workload for the real runs, and the number of partitions.
    pub real: (&'a dyn Workload, u16),
    /// The same for the simulated cluster, and the number of nodes. Busy work is only to be counted in its procedures.
    pub simulated: (&'a dyn Workload, u16),
    /// What the parts of a step cost in the simulation, from the number of keys that a transaction touches.
    pub costs: &'a dyn Fn(f64) -> Result<Costs, String>,
    /// What else the report is to tell.
    pub notes: Vec<String>,
}

/// All figures, and what they recommend.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    /// The seed with which they were made.
    pub seed: u64,
    /// The number of real runs of each engine.
    pub rounds: u16,
    /// Where the costs of the simulation come from.
    pub costs: String,
    /// What else there is to tell.
    pub notes: Vec<String>,
    /// What was measured.
    pub figures: Figures,
    /// What that recommends.
    pub recommendation: Recommendation,
}

/// Runs a workload on each engine, and applies the rule.
///
/// # Errors
/// When the workload cannot be simulated, or a run fails or leaves data that is not consistent.
pub fn advise(subject: &Subject<'_>, settings: &Settings) -> Result<Advice, String> {
    let ((real, partitions), (simulated, nodes)) = (subject.real, subject.simulated);
    let wrong = |error: ordain_db::error::Error| error.to_string();
    // What decides is looked at: see the rule.
    let (looked_at, on) = if nodes > 1 { subject.simulated } else { subject.real };
    let profile = profile(looked_at, on, settings.seed).map_err(wrong)?;
    let mut notes = subject.notes.clone();
    if profile.snapshot_percent > 0.0 {
        notes.push(SNAPSHOTS.to_owned());
    }
    if let Some(background) = looked_at.background(settings.seed, 0, Part::WHOLE).map_err(wrong)? {
        let rate = bench::report::thousands(background.calls_per_second);
        notes.push(format!(
            "beside the calls of clients, {rate} a second change what others depend on: they use the same cores, and are not counted"
        ));
    }
    let Costs { table, source } = (subject.costs)(profile.keys)?;
    let setting = AdviceSetting { workload: simulated, nodes, seed: settings.seed, costs: table };
    let mut points = Vec::new();
    for engine in ENGINES {
        tracing::info!(engine = engine.name(), "simulating");
        points.push(simulate(&setting, engine, &settings.effort).map_err(wrong)?);
    }
    let runs = ENGINES.map(|engine| RunOptions {
        engine,
        clients: settings.clients,
        seed: settings.seed,
        ..RunOptions::closed_loop(partitions, settings.seconds)
    });
    let reports = in_rounds(settings.rounds, &runs, |run| {
        bench::measure(run, real).map_err(|problem| format!("{}: {problem}", run.engine.name()))
    })?;
    let together = |(simulated, reports): (_, Vec<bench::Report>)| EngineFigures {
        simulated,
        real: RealFigures::of(&reports),
    };
    let engines = points.into_iter().zip(reports).map(together).collect();
    let figures = Figures { workload: simulated.name().to_owned(), nodes, partitions, profile, engines };
    let recommendation = recommend(&figures, settings.preference)?;
    Ok(Advice { seed: settings.seed, rounds: settings.rounds, costs: source, notes, figures, recommendation })
}

/// Carries out `ordain advise`.
///
/// # Errors
/// When an option is wrong, a run fails, or a file cannot be written.
pub fn run(options: &AdviseOptions) -> Result<(), String> {
    let made = Made::of(options)?;
    let of_keys = |keys: f64| costs(made.options.as_ref(), keys, options.costs.as_deref());
    // Found out before the first run, and before anything is written.
    of_keys(0.0)?;
    let subject = Subject {
        real: (&*made.real, made.partitions),
        simulated: (&*made.simulated, made.nodes),
        costs: &of_keys,
        notes: made.notes,
    };
    let output = options.output.as_deref().map(Output::create).transpose()?;
    let advice = advise(&subject, &options.settings())?;
    let report = advice.report();
    crate::sim::print(&format!("\n{report}"))?;
    match output {
        Some(output) => {
            output.write("simulated.csv", &advice.simulated_csv())?;
            output.write("real.csv", &advice.real_csv())?;
            output.write("report.txt", &report)
        }
        None => Ok(()),
    }
}

/// The workloads that a command line asks for.
struct Made {
    real: Box<dyn Workload>,
    partitions: u16,
    simulated: Box<dyn Workload>,
    nodes: u16,
    /// What they were made from.
    options: Option<WorkloadOptions>,
    notes: Vec<String>,
}

impl Made {
    fn of(options: &AdviseOptions) -> Result<Made, String> {
        match (&options.sample, &options.workload) {
            (Some(directory), workload) => Made::sampled(directory, workload.as_ref(), options.seed),
            (None, Some(workload)) => {
                let calibrated = workload.calibrated()?;
                let real = calibrated.workload(options.partitions, None, options.seed)?;
                let simulated = with_counted_work(workload).workload(options.nodes, None, options.seed)?;
                Ok(Made {
                    real,
                    partitions: options.partitions,
                    simulated,
                    nodes: options.nodes,
                    options: Some(workload.clone()),
                    notes: Vec::new(),
                })
            }
            (None, None) => {
                Err("there is nothing to run: name a workload, or a data directory with --sample".to_owned())
            }
        }
    }

    /// The calls of a data directory, on as many partitions as it has.
    fn sampled(directory: &Path, workload: Option<&WorkloadOptions>, seed: u64) -> Result<Made, String> {
        let shown = directory.display();
        let record = Arc::new(Record::read(directory)?);
        let (workload, sites, seed) = match (DataDirectory::options_of(directory), workload) {
            (Ok(Some(_)), Some(_)) => {
                return Err(format!(
                    "the data in {shown} says with which workload it was made: leave it out"
                ));
            }
            (Ok(Some(file)), None) => (file.workload, file.sites, file.seed),
            // As `ordain bench --durable` makes it.
            (_, Some(workload)) => (workload.calibrated()?, None, seed),
            (Ok(None), None) => return Err(format!("{shown} has no data: name another directory")),
            (Err(_), None) => {
                return Err(format!(
                    "the data in {shown} does not say with which workload it was made: name it, with its options and --seed, as in \
                     the command that made it; a program of its own calls `ordain::advise::advise`"
                ));
            }
        };
        let partitions = record.partitions;
        let sample = |options: &WorkloadOptions| -> Result<Box<dyn Workload>, String> {
            let workload = options.workload(partitions, sites, seed)?;
            Ok(Box::new(Sample::of_workload(Arc::clone(&record), workload)?))
        };
        let (taken, found) = (record.calls.len(), record.found);
        let note = format!(
            "the calls: {taken} of {found} in the log, from the first on; runs that are longer call them again"
        );
        Ok(Made {
            real: sample(&workload)?,
            partitions,
            simulated: sample(&with_counted_work(&workload))?,
            nodes: partitions,
            options: Some(workload),
            notes: vec![note],
        })
    }
}

/// The workload for the simulation, which charges busy work instead of doing it: wherever a procedure runs, on trial too.
fn with_counted_work(workload: &WorkloadOptions) -> WorkloadOptions {
    match workload {
        WorkloadOptions::Micro(options) if work_microseconds(options) > 0 => {
            WorkloadOptions::Micro(MicroOptions {
                work_rounds: WORK_UNITS,
                work_microseconds: None,
                work_is_counted_only: true,
                ..options.clone()
            })
        }
        WorkloadOptions::Micro(options) => WorkloadOptions::Micro(MicroOptions {
            work_rounds: 0,
            work_microseconds: None,
            ..options.clone()
        }),
        other => other.clone(),
    }
}
