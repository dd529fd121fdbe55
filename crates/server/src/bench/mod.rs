//! `ordain bench`: loads a workload, runs it, prints what it measured, and checks that the data is consistent.

mod children;
pub mod compare;
mod drive;
mod durable;
pub mod experiment;
mod limit;
pub mod options;
mod processes;
pub(crate) mod report;
pub(crate) mod rounds;
pub(crate) mod work;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use ordain_db::data::KeyRange;
use ordain_db::error::Error;
use ordain_db::node::Status;
use ordain_db::position::PartitionId;
use ordain_db::procedure::Catalog;
use ordain_workload::{CheckLine, SnapshotReader, Workload};
use serde::Serialize;

use self::drive::{Answer, BackgroundMeasured, Driver, Length, Load, Measured, OfProcedure};
use self::durable::DiskUse;
use self::options::{RunOptions, WorkloadOptions};
use self::report::ProcedureReport;
pub(crate) use self::report::Report;
use crate::connection::{Connection, Snapshot};
use crate::database::Database;
use crate::deadlocks::Deadlocks;
use crate::load::load;
use crate::port::Port;

/// What remains after a run.
struct Finished {
    measured: Measured,
    statuses: Vec<Status>,
    digest: String,
    lines: Vec<CheckLine>,
    /// What the disk did, if the data is kept.
    disk: Option<DiskUse>,
}

/// What was measured, as one flat object.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    pub(crate) report: Report,
    #[serde(flatten)]
    pub(crate) background: Option<BackgroundReport>,
}

/// The calls that were made in the background, where the workload makes some. They are in no other figure but the CPU time and what
/// is counted over the whole run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct BackgroundReport {
    /// Calls per second that the workload asks for.
    pub(crate) background_wanted_txn_s: f64,
    /// Calls per second that were made, and committed.
    pub(crate) background_txn_s: f64,
}

impl BackgroundReport {
    fn new(measured: &Measured) -> Option<BackgroundReport> {
        let BackgroundMeasured { wanted_per_second, committed } = measured.background?;
        Some(BackgroundReport {
            background_wanted_txn_s: wanted_per_second,
            background_txn_s: committed as f64 / measured.elapsed.as_secs_f64().max(1e-9),
        })
    }

    /// A line of the table.
    fn line(&self) -> String {
        let [made, wanted] = [self.background_txn_s, self.background_wanted_txn_s].map(report::thousands);
        format!("  {:<26}{made} calls/s, of {wanted} that were asked for\n", "in the background")
    }
}

/// Runs a benchmark; whether the data was consistent afterwards.
///
/// # Errors
/// When an option is wrong or the cluster fails; the message says what to do.
pub fn run(options: &RunOptions, workload_options: &WorkloadOptions) -> Result<bool, String> {
    options.check()?;
    if let Some(path) = options.json.as_deref().filter(|path| !is_output(path)) {
        check_writable(path)?;
    }
    let workload_options = &workload_options.calibrated()?;
    let workload = workload_options.workload(options.partitions, options.sites, options.seed)?;
    let workload = &*workload;
    let finished = finish(options, workload_options, workload)?;
    check_answered(options, &finished.measured)?;
    let limit = if options.limit_seconds > 0.0 {
        Some(limit::measure(workload, options.seed, Duration::from_secs_f64(options.limit_seconds))?)
    } else {
        None
    };
    let consistent = finished.lines.iter().all(|line| line.holds);
    let report = Report {
        work_rounds: workload_options.work_rounds(),
        work_us_per_record: workload_options.work_rounds().map(work::microseconds),
        ..summarise(options, workload, &finished, limit, consistent)
    };
    let background = BackgroundReport::new(&finished.measured);
    publish(options.json.as_deref(), &Figures { report, background }, &finished, consistent)?;
    match finished.measured.first_failure {
        Some(error) => Err(format!("{} requests failed; the first: {error}", finished.measured.failed)),
        None => Ok(consistent),
    }
}

/// That there is something to tell of: a run in which nothing was answered has no figures, and not zeros.
fn check_answered(options: &RunOptions, measured: &Measured) -> Result<(), String> {
    let Measured { committed, aborted, contended, failed, .. } = measured;
    if committed + aborted + contended + failed > 0 {
        return Ok(());
    }
    Err(format!(
        "nothing was answered in the {:.2} s that were measured, so that there are no figures: give more --seconds, or fewer --clients",
        measured.elapsed.as_secs_f64().max(options.seconds)
    ))
}

/// Runs a workload where the options say.
fn finish(
    options: &RunOptions,
    workload_options: &WorkloadOptions,
    workload: &dyn Workload,
) -> Result<Finished, String> {
    options.check_calls(workload)?;
    if options.processes > 1 {
        processes::run(options, workload_options, workload)
    } else if options.durable {
        durable::run(options, workload)
    } else {
        in_this_process(options, workload)
    }
}

/// Runs a workload in this process without printing anything.
///
/// # Errors
/// When the run fails or leaves data that is not consistent.
pub(crate) fn measure(options: &RunOptions, workload: &dyn Workload) -> Result<Report, String> {
    options.check()?;
    options.check_calls(workload)?;
    verdict(options, workload, &in_this_process(options, workload)?)
}

/// Runs a workload where the options say, without printing anything.
fn measure_as_told(options: &RunOptions, workload_options: &WorkloadOptions) -> Result<Figures, String> {
    let workload = workload_options.workload(options.partitions, options.sites, options.seed)?;
    let finished = finish(options, workload_options, &*workload)?;
    let report = verdict(options, &*workload, &finished)?;
    Ok(Figures { report, background: BackgroundReport::new(&finished.measured) })
}

/// The report of a run that went well.
fn verdict(options: &RunOptions, workload: &dyn Workload, finished: &Finished) -> Result<Report, String> {
    if let Some(error) = &finished.measured.first_failure {
        return Err(format!("{} requests failed; the first: {error}", finished.measured.failed));
    }
    match finished.lines.iter().find(|line| !line.holds) {
        Some(line) => Err(format!("the data is not consistent: {}: {}", line.condition, line.detail)),
        None => {
            check_answered(options, &finished.measured)?;
            Ok(summarise(options, workload, finished, None, true))
        }
    }
}

fn in_this_process(options: &RunOptions, workload: &dyn Workload) -> Result<Finished, String> {
    let own: Vec<PartitionId> = (0..options.partitions).map(PartitionId).collect();
    let seeds = load(workload, &own, options.partitions)?;
    let database = Database::with_rows(&options.cluster(), workload.catalog().clone(), seeds)
        .map_err(|error| error.to_string())?;
    let finished = drive(options, workload, &**database.process(), &database)?;
    database.close().map_err(|error| error.to_string())?;
    Ok(finished)
}

/// Drives the load against a cluster and holds the workload's conditions against what it left.
fn drive(
    options: &RunOptions,
    workload: &dyn Workload,
    port: &dyn Port,
    connection: &Connection,
) -> Result<Finished, String> {
    let driver = Driver::new(port, workload, options.seed, options.transactions.is_some(), options.answer)?;
    let load = options.rate.map_or(Load::Closed(options.outstanding()), Load::Open);
    let time = Duration::from_secs_f64(options.seconds);
    let warm_up = (time / 5).min(Duration::from_secs(2));
    let length = options.transactions.map_or(Length::Time(warm_up, time), Length::Transactions);
    let measured = driver.run(load, length)?;
    // A reply comes from one participant: the snapshot opens when all have applied everything before it.
    let snapshot = connection.snapshot().map_err(|error| error.to_string())?;
    let statuses = connection.statuses(false).map_err(|error| error.to_string())?;
    let digest = connection.digest().map_err(|error| error.to_string())?;
    let lines = workload
        .check(&mut Reader(&snapshot), &measured.totals)
        .map_err(|error| format!("the state could not be read: {error}"))?;
    Ok(Finished { measured, statuses, digest: digest.to_string(), lines, disk: None })
}

struct Reader<'a>(&'a Snapshot);

impl SnapshotReader for Reader<'_> {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.0.scan(range, |key, row| {
            visit(key, row);
            Ok(())
        })
    }
}

/// A report for each procedure, if more than one was called.
fn of_procedures(catalog: &Catalog, measured: &Measured, seconds: f64) -> Vec<ProcedureReport> {
    let ended = |of: &OfProcedure| of.committed + of.aborted;
    let all: u64 = measured.procedures.values().map(ended).sum();
    let called = measured.procedures.iter().filter(|(_, of)| ended(of) + of.contended > 0);
    let reports: Vec<ProcedureReport> = called
        .map(|(id, of)| ProcedureReport {
            name: catalog.procedures.name(*id).to_owned(),
            share_percent: ended(of) as f64 * 100.0 / (all as f64).max(1.0),
            committed: of.committed,
            aborted: of.aborted,
            contended: of.contended,
            throughput_txn_s: ended(of) as f64 / seconds.max(1e-9),
            latency_p50_us: of.latency.value_at_quantile(0.5),
            latency_p95_us: of.latency.value_at_quantile(0.95),
            latency_p99_us: of.latency.value_at_quantile(0.99),
        })
        .collect();
    if reports.len() > 1 { reports } else { Vec::new() }
}

fn summarise(
    options: &RunOptions,
    workload: &dyn Workload,
    finished: &Finished,
    limit: Option<f64>,
    consistent: bool,
) -> Report {
    let Finished { measured, statuses, digest, .. } = finished;
    let catalog = workload.catalog();
    let seconds = measured.elapsed.as_secs_f64();
    let ended = measured.committed + measured.aborted;
    let throughput = ended as f64 / seconds.max(1e-9);
    let sum = |field: fn(&Status) -> u64| statuses.iter().map(field).sum::<u64>();
    let percentile = |quantile: f64| measured.latency.value_at_quantile(quantile);
    let is_early = options.answer == Answer::Ordered;
    let computed = |quantile: f64| is_early.then(|| measured.computed.value_at_quantile(quantile));
    Report {
        workload: workload.name().to_owned(),
        engine: options.engine.name().to_owned(),
        label: options.engine.label(),
        acid: options.engine.is_acid(),
        partitions: options.partitions,
        processes: options.processes,
        seed: options.seed,
        seconds,
        clients: options.rate.is_none().then(|| options.outstanding()),
        rate: options.rate,
        committed: measured.committed,
        aborted: measured.aborted,
        ended: sum(|status| status.counters.committed + status.counters.aborted),
        contended: measured.contended,
        failed: measured.failed,
        restarts: sum(|status| status.counters.restarts),
        deadlocks: (!options.engine.is_ordered())
            .then(|| Deadlocks::of(statuses.iter().map(|status| &status.deadlocks))),
        reconnaissance: sum(|status| status.counters.reconnaissance),
        not_begun: measured.not_begun,
        pushed_back: measured.pushed_back,
        throughput_txn_s: throughput,
        latency_mean_us: measured.latency.mean(),
        latency_p50_us: percentile(0.5),
        latency_p95_us: percentile(0.95),
        latency_p99_us: percentile(0.99),
        latency_p999_us: percentile(0.999),
        latency_max_us: measured.latency.max(),
        answer: options.answer.name().to_owned(),
        computed_p50_us: computed(0.5),
        computed_p95_us: computed(0.95),
        computed_p99_us: computed(0.99),
        cpu_s: measured.cpu.as_secs_f64(),
        cpu_per_txn_us: measured.cpu.as_secs_f64() * 1e6 / (ended as f64).max(1.0),
        load_cpu_s: measured.load_cpu.as_secs_f64(),
        messages: sum(|status| status.messages),
        message_bytes: sum(|status| status.message_bytes),
        epochs: epochs(options, statuses),
        fsyncs: finished.disk.as_ref().map(|disk| disk.fsyncs),
        commits_per_fsync: finished.disk.as_ref().map(DiskUse::commits_per_fsync),
        fsync_us: finished.disk.as_ref().map(|disk| disk.one_fsync.as_secs_f64() * 1e6),
        procedures: of_procedures(catalog, measured, seconds),
        work_rounds: None,
        work_us_per_record: None,
        limit_txn_s: limit,
        ratio_to_limit: limit.map(|limit| throughput / limit),
        digest: digest.clone(),
        consistent,
    }
}

/// How many epochs there were. Without an order there are none, and the node tells its clock instead.
fn epochs(options: &RunOptions, statuses: &[Status]) -> u64 {
    match options.engine.is_ordered() {
        true => statuses.iter().map(|status| status.delivered.0).max().unwrap_or(0),
        false => 0,
    }
}

/// Prints the table and the conditions, and writes the JSON where it is wanted.
fn publish(
    json: Option<&Path>,
    figures: &Figures,
    finished: &Finished,
    consistent: bool,
) -> Result<(), String> {
    let Figures { report, background } = figures;
    let background = background.as_ref().map(BackgroundReport::line).unwrap_or_default();
    let mut text = format!("\n{}{background}\n{}", report.table(), report::conditions(&finished.lines));
    if let Some(error) = &finished.measured.first_failure {
        text.push_str(&format!("  FAILED    {} requests; the first: {error}\n", report.failed));
    }
    text.push_str(if consistent { "\n  consistent\n" } else { "\n  NOT CONSISTENT\n" });
    write_out(json, &text, figures)
}

/// Whether a path stands for the standard output.
fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Finds out before a run, not after it, that its result cannot be written.
fn check_writable(path: &Path) -> Result<(), String> {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    opened.map(|_| ()).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Prints a text, and writes a result as a line of JSON where it is wanted. With JSON on the standard output, people read the
/// standard error.
fn write_out(json: Option<&Path>, text: &str, result: &impl Serialize) -> Result<(), String> {
    let to_output = json.is_some_and(is_output);
    let written = if to_output {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        std::io::stdout().write_all(text.as_bytes())
    };
    written.map_err(|error| format!("cannot print: {error}"))?;
    let Some(path) = json else { return Ok(()) };
    let mut line = serde_json::to_string(result).map_err(|error| error.to_string())?;
    line.push('\n');
    let written =
        if to_output { std::io::stdout().write_all(line.as_bytes()) } else { std::fs::write(path, line) };
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind;

    use super::options::MicroOptions;
    use super::*;

    fn dependent(entries_per_site: u32, volatility: f64) -> WorkloadOptions {
        WorkloadOptions::Micro(MicroOptions {
            records: 2_000,
            contention_index: 0.01,
            multi_partition_percent: 20.0,
            dependent_percent: 50.0,
            dependent_at_percent: 50,
            entries_per_site,
            volatility,
            ..MicroOptions::default()
        })
    }

    /// The index changes under transactions that look their records up, and all that is counted is right after that (the run fails
    /// otherwise). What changes it is among nothing that is measured (DET-57).
    #[test]
    fn the_index_is_updated_beside_the_load_on_every_engine() {
        for engine in [EngineKind::Serial, EngineKind::Calvin, EngineKind::Aloha, EngineKind::TwoPhase] {
            let options = RunOptions { engine, clients: Some(16), ..RunOptions::closed_loop(2, 0.3) };
            let Figures { report, background } = measure_as_told(&options, &dependent(10, 50.0)).unwrap();
            let background = background.unwrap();
            assert_eq!(background.background_wanted_txn_s, 1_000.0);
            assert!(background.background_txn_s > 0.0, "{engine:?}: {background:?}");
            let names: Vec<&str> = report.procedures.iter().map(|of| of.name.as_str()).collect();
            assert_eq!(names, ["increment", "increment-by-index"], "{engine:?}");
            assert_eq!((report.contended, report.failed), (0, 0), "{engine:?}");
            assert!(report.committed > 0, "{engine:?}");
            // Two-phase locking reads the index under a lock.
            assert_eq!(report.reconnaissance > 0, engine != EngineKind::TwoPhase, "{engine:?}");
        }
    }

    #[test]
    fn without_updates_nothing_is_told_of_them() {
        let options = RunOptions { transactions: Some(200), ..RunOptions::closed_loop(2, 1.0) };
        let calm = measure_as_told(&options, &dependent(10, 0.0)).unwrap();
        assert!(calm.background.is_none());
        let text = serde_json::to_string(&calm).unwrap();
        assert!(text.starts_with(r#"{"workload":"micro""#) && !text.contains("background"), "{text}");
        let volatile = measure_as_told(&options, &dependent(10, 1.0));
        assert!(volatile.is_err_and(|problem| problem.contains("leave --volatility")));
        let background = BackgroundReport { background_wanted_txn_s: 1_000.0, background_txn_s: 998.4 };
        assert!(background.line().ends_with("998 calls/s, of 1,000 that were asked for\n"));
        let told = serde_json::to_value(Figures { background: Some(background), ..calm }).unwrap();
        assert_eq!((&told["background_txn_s"], &told["partitions"]), (&998.4.into(), &2.into()));
    }
}
