//! Throughput over time while a checkpoint is taken (Calvin §5, Figure 3).

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ordain_sim::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use ordain_workload::Workload;

use super::super::{drive, options::RunOptions};
use super::{Place, rows};
use crate::connection::Connection;
use crate::database::Database;
use crate::output::Output;

/// How often the commits are counted.
const SAMPLE: Duration = Duration::from_millis(50);

/// A checkpoint is to cost less than this part of the throughput while it is taken.
const COST_MAX: f64 = 0.15;

/// How long it may take.
const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(600);

/// What the sampler has seen.
struct Seen {
    /// Seconds since the start, and the transactions that had ended by then.
    samples: Vec<(f64, u64)>,
    /// When the checkpoint began and ended, in seconds since the start.
    checkpoint: (f64, f64),
}

/// Runs a workload, takes a checkpoint in the middle of it, and compares; whether it was cheap enough.
pub(super) fn run(run: &RunOptions, workload: &dyn Workload, output: &Output) -> Result<bool, String> {
    let place = Place::new(run)?;
    let rows = rows(workload, run.partitions);
    let catalog = workload.catalog().clone();
    let database = Database::durable(&place.options(), &run.cluster(), &place.contents, catalog, &rows)
        .map_err(|error| error.to_string())?;
    let over = AtomicBool::new(false);
    let (finished, seen) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(&database, run.seconds, &over));
        let taker = scope.spawn(|| take(&database, run.seconds));
        let finished = drive(run, workload, &**database.process(), &database);
        over.store(true, Ordering::Release);
        let samples = sampler.join().map_err(|_| "the sampler panicked".to_owned())?;
        let checkpoint = taker.join().map_err(|_| "who takes the checkpoint panicked".to_owned())?;
        Ok::<_, String>((finished?, Seen { samples: samples?, checkpoint: checkpoint? }))
    })?;
    database.close().map_err(|error| error.to_string())?;
    if let Some(line) = finished.lines.iter().find(|line| !line.holds) {
        return Err(format!("the data is not consistent: {}: {}", line.condition, line.detail));
    }
    report(run, workload, &seen, output)
}

/// Takes a checkpoint after a third of the time.
fn take(database: &Connection, seconds: f64) -> Result<(f64, f64), String> {
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(seconds / 3.0));
    let begun = start.elapsed().as_secs_f64();
    database.checkpoint(CHECKPOINT_PATIENCE).map_err(|error| error.to_string())?;
    Ok((begun, start.elapsed().as_secs_f64()))
}

/// Counts what has ended, until the load is over.
fn sample(database: &Connection, seconds: f64, over: &AtomicBool) -> Result<Vec<(f64, u64)>, String> {
    let start = Instant::now();
    let mut samples = Vec::new();
    // The last fifth of a run is as long as the warm-up, which is not sampled apart.
    while !over.load(Ordering::Acquire) && start.elapsed().as_secs_f64() < seconds {
        let statuses = database.statuses(false).map_err(|error| error.to_string())?;
        let ended = statuses.iter().map(|status| status.counters.committed + status.counters.aborted).sum();
        samples.push((start.elapsed().as_secs_f64(), ended));
        std::thread::sleep(SAMPLE);
    }
    Ok(samples)
}

/// Transactions per second between two times.
fn throughput(samples: &[(f64, u64)], from: f64, to: f64) -> f64 {
    let mut within = samples.iter().filter(|(at, _)| (from..=to).contains(at));
    match (within.next(), within.next_back()) {
        (Some(first), Some(last)) => (last.1 - first.1) as f64 / (last.0 - first.0),
        _ => 0.0,
    }
}

fn report(run: &RunOptions, workload: &dyn Workload, seen: &Seen, output: &Output) -> Result<bool, String> {
    let Seen { samples, checkpoint: (begun, ended) } = seen;
    let (begun, ended) = (*begun, *ended);
    if ended > run.seconds {
        return Err(format!("the checkpoint took until {ended:.1} s: make --seconds longer"));
    }
    // Half a second to warm up.
    let before = throughput(samples, 0.5, begun);
    let during = throughput(samples, begun, ended);
    let after = throughput(samples, ended, run.seconds);
    let cost = 1.0 - during / before;
    let mut table = String::from("seconds,transactions_per_second,checkpoint\n");
    let mut points = Vec::new();
    for pair in samples.windows(2) {
        let [(from, first), (to, last)] = [pair[0], pair[1]];
        let rate = (last - first) as f64 / (to - from);
        let taking = u8::from(to >= begun && from <= ended);
        let _ = writeln!(table, "{to:.3},{rate:.0},{taking}");
        points.push((to, rate / 1000.0));
    }
    output.write("checkpoint.csv", &table)?;
    let most = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let line = |name: &str, color, points| Series {
        name: name.to_owned(),
        style: Style { color, shape: 0 },
        points,
    };
    let figure = Figure {
        title: "Throughput while a checkpoint is taken".to_owned(),
        panels: vec![Panel {
            title: format!("{}, {} partitions", workload.name(), run.partitions),
            x: Axis { label: "time in seconds".to_owned(), scale: Scale::Linear },
            y: Axis { label: "thousand transactions per second".to_owned(), scale: Scale::Linear },
            series: vec![
                line("transactions", 0, points),
                line("checkpoint begins", 1, vec![(begun, 0.0), (begun, most)]),
                line("checkpoint is stable", 2, vec![(ended, 0.0), (ended, most)]),
            ],
        }],
        notes: vec![format!(
            "Before {before:.0}/s, during {during:.0}/s, after {after:.0}/s: the checkpoint of {:.2} s costs {:.1}%.",
            ended - begun,
            cost * 100.0
        )],
    };
    output.write("checkpoint.svg", &figure.svg())?;
    let holds = cost < COST_MAX;
    crate::sim::print(&format!(
        "before: {before:.0} transactions/s; during the checkpoint of {:.2} s: {during:.0}; after: {after:.0}\n\
         it costs {:.1}% of the throughput ({} {:.0}%)\n",
        ended - begun,
        cost * 100.0,
        if holds { "less than" } else { "NOT LESS THAN" },
        COST_MAX * 100.0,
    ))?;
    Ok(holds)
}
