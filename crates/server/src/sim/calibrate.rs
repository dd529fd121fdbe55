//! `ordain sim calibrate`: measures what the parts of a step cost on this machine, and writes the file of costs.
//!
//! The costs of the parts come from [`steps`](super::steps) that are timed alone, see
//! [`ordain_sim::machine::calibration`]. Two more come from a run of `ordain bench` with one partition:
//! - the cost of a call: the CPU time of the load generator for a transaction;
//! - what the thread of a partition costs beside its steps (the inbox, wake-ups, handing out replies): the CPU time of the
//!   partition for a transaction beyond that of the steps. Half of it is added to a request and half to a reply.
//!
//! What a byte of a checkpoint costs is measured alone: the rows of one partition become a checkpoint, in portions as a node takes
//! them, and nothing is written. What a trial run costs is measured alone, too: reconnaissance of dependent transactions of the
//! microbenchmark, over rows of one partition.
//!
//! All nodes of a measurement hold together what one node of an experiment holds, rows and requests under way, since they
//! share the caches of one core.
//!
//! Not in the costs: sockets, and the encoding of messages between processes.

use std::path::PathBuf;

use clap::Args;
use ordain_db::checkpoint::{CheckpointHeader, CheckpointIdentity, CheckpointWriter};
use ordain_db::engine::EngineKind;
use ordain_db::gateway::reconnaissance::{Reconnaissance, Scouted};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::storage::memory::MemoryStorage;
use ordain_db::storage::{RecordCursor, Storage};
use ordain_sim::machine::calibration::{self, Calibration, Sample, Scenario};
use ordain_sim::machine::cost::CostTable;
use ordain_sim::scale::{Benchmark, Costed, costs_file};
use ordain_workload::{Call, Part, Workload, micro};

use super::steps::{Phase, Stepper, quickest};
use super::{benchmark_workload, print};
use crate::bench::{self, options::RunOptions, options::SECONDS};
use crate::cpu::thread_cpu_nanoseconds;
use crate::quantity::number_within;

/// Partitions and percentages of multi-partition transactions that are measured.
const CLUSTERS: [(u16, u8); 7] = [(1, 0), (2, 0), (2, 10), (2, 100), (4, 0), (4, 10), (4, 100)];

/// What runs on each cluster: a warm-up, then a saturated server, then lighter loads with smaller steps.
const WARM_UP: Phase = Phase { outstanding: 1_024, transactions: 20_000 };
const PHASES: [Phase; 4] = [
    Phase { outstanding: 1_024, transactions: 30_000 },
    Phase { outstanding: 256, transactions: 12_000 },
    Phase { outstanding: 64, transactions: 6_000 },
    Phase { outstanding: 8, transactions: 2_000 },
];

/// Bytes of rows that a node scans for a checkpoint in one step while transactions go on.
const CHECKPOINT_PORTION_BYTES: usize = 64 * 1024;

/// Trial runs that are measured together.
const TRIALS: u64 = 20_000;

/// What `ordain sim calibrate` can be told.
#[derive(Args, Clone, Debug)]
pub struct CalibrateOptions {
    /// Where to write the file of costs.
    #[arg(long)]
    pub output: PathBuf,
    /// Measure this engine: calvin, aloha. May be given several times.
    #[arg(long = "engine", default_value = "calvin", value_parser = ordered_engine)]
    pub engines: Vec<EngineKind>,
    /// Measure this workload only: micro, new-order, payment, adds-arithmetic, adds-own or adds-whole. May be given several times;
    /// the first two by default.
    #[arg(long = "workload")]
    pub workloads: Vec<Benchmark>,
    /// Times that every step is measured; the quickest counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Records of micro, over all partitions.
    #[arg(long, default_value_t = 1_000_000)]
    pub records: u64,
    /// Warehouses of TPC-C, over all partitions; at least one each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(4..=1_000))]
    pub warehouses: u32,
    /// Seconds of each run of `ordain bench`, of which there are as many as rounds.
    #[arg(long, default_value_t = 2.0, value_parser = number_within(SECONDS, "seconds"))]
    pub seconds: f64,
}

/// An engine whose nodes execute an order, as those that are stepped here do.
fn ordered_engine(name: &str) -> Result<EngineKind, String> {
    let engine: EngineKind = name.parse()?;
    match engine.is_ordered() {
        true => Ok(engine),
        false => Err(format!("{name} has no order, whose costs these are: give calvin or aloha")),
    }
}

/// What was measured of a workload on an engine.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The engine.
    pub engine: EngineKind,
    /// The workload.
    pub workload: Benchmark,
    /// The costs of the steps' parts alone, and how well they fit.
    pub steps: Calibration,
    /// CPU time of the thread of a single partition for a transaction, in nanoseconds.
    pub threaded: f64,
    /// What the steps of a single saturated partition take for a transaction, in nanoseconds.
    pub stepped: f64,
    /// CPU time of the load generator for a transaction, in nanoseconds.
    pub load: f64,
    /// CPU time for a byte of a checkpoint, in picoseconds.
    pub checkpoint_byte: u64,
    /// CPU time of a trial run, in picoseconds; 0 for a workload without dependent transactions.
    pub trial: u64,
}

impl Measured {
    /// What a thread costs beside its steps for a transaction, in nanoseconds; never negative.
    pub fn overhead(&self) -> f64 {
        (self.threaded - self.stepped).max(0.0)
    }

    /// The table for the simulator: of the steps, the thread around them, and the client.
    pub fn costs(&self) -> CostTable {
        let half = (self.overhead() * 1_000.0 / 2.0).round() as u64;
        CostTable {
            request: self.steps.costs.request + half,
            reply: self.steps.costs.reply + half,
            call: (self.load * 1_000.0).round() as u64,
            checkpoint_byte: self.checkpoint_byte,
            trial: self.trial,
            ..self.steps.costs
        }
    }

    /// The comparison of what was measured with what the costs predict, for people.
    pub fn report(&self) -> String {
        let mut out = format!(
            "{} on {}, the steps alone (R^2 {:.4})\n{:<34}{:>9}{:>9}{:>14}{:>14}{:>9}\n",
            self.workload.title(),
            self.engine.name(),
            self.steps.r_squared,
            "scenario",
            "calls",
            "steps",
            "measured us",
            "predicted us",
            "error"
        );
        for fit in &self.steps.fits {
            let per_call = |nanoseconds: u64| nanoseconds as f64 / 1e3 / fit.transactions.max(1) as f64;
            out.push_str(&format!(
                "{:<34}{:>9}{:>9}{:>14.3}{:>14.3}{:>8.1}%\n",
                fit.scenario,
                fit.transactions,
                fit.steps,
                per_call(fit.measured),
                per_call(fit.predicted),
                fit.relative_error() * 100.0
            ));
        }
        out.push_str(&format!(
            "  a thread takes {:.3} us for a call and its steps {:.3} us; a call costs its client {:.3} us\n  a byte of a checkpoint \
             takes {:.3} ns; a trial run takes {:.3} us\n",
            self.threaded / 1e3,
            self.stepped / 1e3,
            self.load / 1e3,
            self.checkpoint_byte as f64 / 1e3,
            self.trial as f64 / 1e6
        ));
        out
    }
}

/// Measures, prints how well the costs predict what was measured, and writes the file.
///
/// # Errors
/// When a workload cannot be made or run, or the file cannot be written.
pub fn run(options: &CalibrateOptions) -> Result<(), String> {
    let cannot_write = |error| format!("cannot write {}: {error}", options.output.display());
    // Found out before the measurement, not after it.
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(&options.output);
    opened.map_err(cannot_write)?;
    let measured = calibrate(options)?;
    let mut heading = heading(options);
    for one in &measured {
        heading.push('\n');
        heading.push_str(&one.report());
    }
    print(&heading)?;
    let tables: Vec<_> = measured.iter().map(|one| ((one.engine, one.workload), one.costs())).collect();
    std::fs::write(&options.output, costs_file(&heading, &tables)?).map_err(cannot_write)
}

/// Measures the workloads.
///
/// # Errors
/// When a workload cannot be made or run.
pub fn calibrate(options: &CalibrateOptions) -> Result<Vec<Measured>, String> {
    let mut chosen = options.workloads.clone();
    if chosen.is_empty() {
        chosen.extend(Benchmark::SCALING);
    }
    chosen.sort_unstable();
    chosen.dedup();
    let engines = EngineKind::ALL.into_iter().filter(|engine| options.engines.contains(engine));
    let all = engines.flat_map(|engine| chosen.iter().map(move |workload| (engine, *workload)));
    all.map(|of| measure(of, options)).collect()
}

fn heading(options: &CalibrateOptions) -> String {
    format!(
        "Costs in picoseconds, measured by `ordain sim calibrate`; see CostTable for what each part is.\n\
         The quickest of {} rounds; micro with {} records, TPC-C with {} warehouses, over all partitions.\n",
        options.rounds, options.records, options.warehouses
    )
}

fn measure((engine, workload): Costed, options: &CalibrateOptions) -> Result<Measured, String> {
    let mut rounds: Vec<Vec<Phases>> = CLUSTERS.iter().map(|_| Vec::new()).collect();
    // Round by round over all clusters: a time in which the machine is busy must not fall on one of them alone.
    for round in 1..=options.rounds {
        for ((partitions, percent), rounds) in CLUSTERS.into_iter().zip(&mut rounds) {
            let (engine_name, name) = (engine.name(), workload.name());
            tracing::info!(
                "{engine_name}, round {round}: {name} on {partitions} partitions, {percent} % multi-partition"
            );
            rounds.push(phases((engine, workload), partitions, percent, options)?);
        }
    }
    let mut scenarios = Vec::new();
    for ((partitions, percent), rounds) in CLUSTERS.into_iter().zip(&rounds) {
        scenarios.extend(summarise(partitions, percent, rounds)?);
    }
    let steps = calibration::calibrate(&scenarios)?;
    // The first is one partition and saturated, as the run with a thread is.
    let stepped = scenarios
        .first()
        .map_or(0.0, |saturated| saturated.measured() as f64 / saturated.transactions.max(1) as f64);
    let mut runs = Vec::new();
    for _ in 0..options.rounds {
        runs.push(threaded((engine, workload), options)?);
    }
    // As with the steps: noise only adds.
    let quickest = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
    let (threaded, load) = (quickest(|run| run.0), quickest(|run| run.1));
    let checkpoint_byte = checkpoint_byte(workload, options)?;
    let trial = trial(workload, options)?;
    Ok(Measured { engine, workload, steps, threaded, stepped, load, checkpoint_byte, trial })
}

/// CPU time of a trial run of a dependent transaction of one partition, in picoseconds; the quickest of the rounds counts.
fn trial(benchmark: Benchmark, options: &CalibrateOptions) -> Result<u64, String> {
    if benchmark != Benchmark::Micro {
        return Ok(0);
    }
    let wrong = |error: ordain_db::error::Error| error.to_string();
    let index = micro::IndexOptions { dependent_percent: 100.0, ..micro::IndexOptions::default() };
    let settings = micro::Options { records: options.records, index, ..micro::Options::default() };
    let workload = micro::Micro::new(settings).map_err(wrong)?;
    let mut storage = MemoryStorage::new();
    let loaded = workload.load(Part::WHOLE, &mut |key, row| {
        storage.put(key, key.hash(), row, Position::LOADED);
    });
    loaded.map_err(wrong)?;
    let mut generator = workload.generator(1, 0, Part::WHOLE).map_err(wrong)?;
    let calls: Vec<Call> = (0..TRIALS).map(|_| generator.next()).collect();
    let mut best = u64::MAX;
    for _ in 0..options.rounds {
        let begun = thread_cpu_nanoseconds();
        for call in &calls {
            let mut trial = Reconnaissance::new(PartitionId(0), 1);
            let scouted = trial.run(call.procedure, &call.arguments, workload.catalog(), &mut storage);
            if !matches!(scouted, Scouted::Footprint(_)) {
                return Err(format!("a trial run found no footprint: {scouted:?}"));
            }
        }
        best = best.min((thread_cpu_nanoseconds() - begun) * 1_000 / TRIALS);
    }
    Ok(best)
}

/// CPU time for a byte of a checkpoint of one partition, in picoseconds; the quickest of the rounds counts.
fn checkpoint_byte(benchmark: Benchmark, options: &CalibrateOptions) -> Result<u64, String> {
    let workload = benchmark_workload(benchmark, 1, 0.0, options.records, options.warehouses)?;
    let part = Part::of(PartitionId(0), 1);
    let mut storage = MemoryStorage::new();
    let loaded = workload.load(part, &mut |key, row| {
        storage.put(key, key.hash(), row, Position::LOADED);
    });
    loaded.map_err(|error| error.to_string())?;
    let identity = CheckpointIdentity { cluster: 0, partition: PartitionId(0), partitions: 1 };
    let header = CheckpointHeader { identity, epoch: Epoch(1), log_index: 1 };
    storage.open_snapshot(header.position());
    let mut best = u64::MAX;
    for _ in 0..options.rounds {
        let begun = thread_cpu_nanoseconds();
        let bytes = checkpoint_bytes(header, &mut storage);
        let took = thread_cpu_nanoseconds() - begun;
        best = best.min(took * 1_000 / bytes.max(1));
    }
    Ok(best)
}

/// Makes a checkpoint of all rows; how many bytes it has.
fn checkpoint_bytes(header: CheckpointHeader, storage: &mut dyn Storage) -> u64 {
    let mut writer = CheckpointWriter::new(header);
    let mut rest = Some(RecordCursor::START);
    while let Some(cursor) = rest {
        rest = writer.write_rows(storage, cursor, CHECKPOINT_PORTION_BYTES);
        while writer.take_chunk().is_some() {}
    }
    writer.finish().summary.bytes
}

/// The steps of each of the [`PHASES`].
type Phases = [Vec<Sample>; PHASES.len()];

/// One round of all phases on one cluster.
fn phases(
    (engine, benchmark): Costed,
    partitions: u16,
    percent: u8,
    options: &CalibrateOptions,
) -> Result<Phases, String> {
    let percent = f64::from(percent);
    let workload = benchmark_workload(benchmark, partitions, percent, options.records, options.warehouses)?;
    let mut stepper = Stepper::new(engine, &*workload, partitions)?;
    stepper.run(WARM_UP)?;
    let mut phases = Phases::default();
    for (phase, samples) in PHASES.into_iter().zip(&mut phases) {
        *samples = stepper.run(phase)?;
    }
    Ok(phases)
}

/// The scenarios of one cluster, from its rounds.
fn summarise(partitions: u16, percent: u8, rounds: &[Phases]) -> Result<Vec<Scenario>, String> {
    let scenario = |(place, phase): (usize, &Phase)| {
        let rounds: Vec<&[Sample]> = rounds.iter().map(|phases| phases[place].as_slice()).collect();
        let samples = quickest(&rounds)?;
        let transactions = samples.iter().map(|sample| sample.work.replies).sum();
        let name = format!("{partitions} node(s), {percent} %, {} outstanding", phase.outstanding);
        Ok(Scenario { name, transactions, samples })
    };
    PHASES.iter().enumerate().map(scenario).collect()
}

/// Runs the benchmark with one partition; the CPU time of its thread and of the load for a transaction, in nanoseconds.
fn threaded((engine, benchmark): Costed, options: &CalibrateOptions) -> Result<(f64, f64), String> {
    let workload = benchmark_workload(benchmark, 1, 0.0, options.records, options.warehouses)?;
    let run = RunOptions { engine, ..RunOptions::closed_loop(1, options.seconds) };
    let report = bench::measure(&run, &*workload)?;
    let transactions = (report.committed + report.aborted).max(1) as f64;
    Ok((report.cpu_s * 1e9 / transactions, report.load_cpu_s * 1e9 / transactions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_around_the_steps_is_shared_by_request_and_reply() {
        let costs = CostTable { request: 100_000, reply: 50_000, delivered: 7, ..CostTable::default() };
        let steps = Calibration { costs, r_squared: 1.0, fits: Vec::new() };
        let measured = Measured {
            engine: EngineKind::Calvin,
            workload: Benchmark::Micro,
            steps,
            threaded: 3_000.0,
            stepped: 2_600.0,
            load: 800.0,
            checkpoint_byte: 9,
            trial: 5,
        };
        let expected = CostTable {
            request: 300_000,
            reply: 250_000,
            delivered: 7,
            call: 800_000,
            checkpoint_byte: 9,
            trial: 5,
            ..CostTable::default()
        };
        assert_eq!(measured.costs(), expected);
        // A measurement by chance says that threads cost nothing, never that they save something.
        let lucky = Measured { threaded: 2_000.0, ..measured };
        assert_eq!(lucky.costs(), CostTable { call: 800_000, checkpoint_byte: 9, trial: 5, ..costs });
    }

    #[test]
    fn a_small_cluster_can_be_measured() {
        let options = CalibrateOptions {
            output: PathBuf::new(),
            engines: vec![EngineKind::Aloha],
            workloads: Vec::new(),
            rounds: 1,
            records: 50_000,
            warehouses: 4,
            seconds: 0.1,
        };
        for (of, functors) in
            [((EngineKind::Calvin, Benchmark::Micro), false), ((EngineKind::Aloha, Benchmark::AddsOwn), true)]
        {
            let rounds = [(); 2].map(|()| phases(of, 2, 10, &options).unwrap());
            let scenarios = summarise(2, 10, &rounds).unwrap();
            assert_eq!(scenarios.len(), PHASES.len());
            for (phase, scenario) in PHASES.iter().zip(&scenarios) {
                assert!(scenario.transactions >= phase.transactions);
            }
            // What it costs is not asserted: a busy machine may make any of it look free.
            let counted = scenarios.iter().flat_map(|scenario| &scenario.samples);
            let (alone, functor) = counted.fold((0, 0), |(alone, functor), Sample { work, .. }| {
                (alone + work.executed_alone, functor + work.functors)
            });
            assert!(alone > 0 || functors, "{scenarios:?}");
            assert_eq!(functor > 0, functors, "{scenarios:?}");
            calibration::calibrate(&scenarios).unwrap();
        }
        let byte = checkpoint_byte(Benchmark::Micro, &options).unwrap();
        assert!((1..1_000_000).contains(&byte), "{byte} ps");
        assert!(trial(Benchmark::Micro, &options).unwrap() > 0);
        assert_eq!(trial(Benchmark::NewOrder, &options), Ok(0));
    }
}
