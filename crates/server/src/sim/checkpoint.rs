//! `ordain sim checkpoint`: what a checkpoint costs while it is taken, over time.

use std::fmt::Write as _;
use std::path::PathBuf;

use ordain_sim::scale::Benchmark;
use ordain_sim::scale::checkpoint::{
    CheckpointSetting, Course, REPLICAS, TIME_MAX, Way, capacity, csv, figure, judge, measure_checkpoint,
};
use ordain_sim::time::MILLISECOND;

use super::{costs_of, print};
use crate::output::Output;

/// Virtual milliseconds in which it is measured what the cluster can do.
const CAPACITY_MILLISECONDS: u64 = 400;

/// The longest time that can be measured, in virtual milliseconds.
const MILLISECONDS_MAX: u64 = TIME_MAX / MILLISECOND;

/// What `ordain sim checkpoint` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct CheckpointOptions {
    /// The folder for the figure, the table and the report
    #[arg(long)]
    pub output: PathBuf,
    /// Simulate clusters of so many partitions
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub partitions: u16,
    /// A file of costs that `ordain sim calibrate` wrote [default: the one in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Virtual milliseconds to measure in each run; the checkpoint is ordered after the first thousand
    #[arg(long, default_value_t = MILLISECONDS_MAX, value_parser = clap::value_parser!(u64).range(1_500..=MILLISECONDS_MAX))]
    pub milliseconds: u64,
    /// Shares of what the cluster can do, in percent, that clients ask for
    #[arg(long, value_delimiter = ',', default_values_t = [40, 60, 80], value_parser = clap::value_parser!(u64).range(1..=99))]
    pub loads: Vec<u64>,
    /// Rows of each partition
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(2_000..=10_000_000))]
    pub rows: u64,
    /// Bytes of checkpoints that each disk writes in a second; the default was measured with `dd oflag=dsync` in pieces of 1 MiB
    /// and of 256 KiB on the machine of the costs: 83 and 104 million
    #[arg(long, default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub disk_bytes_per_second: u64,
}

/// Simulates all settings and writes `samples.csv`, `checkpoint.svg` and `report.txt`.
///
/// # Errors
/// When the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &CheckpointOptions) -> Result<(), String> {
    let output = Output::create(&options.output)?;
    let costs = costs_of(options.costs.as_deref(), Benchmark::Micro)?;
    let most = capacity(options.partitions, &costs, CAPACITY_MILLISECONDS * MILLISECOND)
        .map_err(|error| error.to_string())?;
    tracing::info!("the cluster can do {most} calls/s for each partition");
    let all = settings(options, most);
    let mut courses = Vec::new();
    for setting in &all {
        let course = measure_checkpoint(setting, &costs, options.milliseconds * MILLISECOND);
        courses.push(course.map_err(|error| format!("{setting:?}: {error}"))?);
        tracing::info!("{} of {} runs", courses.len(), all.len());
    }
    output.write("samples.csv", &csv(&courses))?;
    output.write("checkpoint.svg", &figure(&courses, &[notes(options, most)]).svg())?;
    let report = report(&courses, most);
    print(&report)?;
    output.write("report.txt", &report)
}

fn settings(options: &CheckpointOptions, most: u64) -> Vec<CheckpointSetting> {
    let setting = |way, load_percent: u64| CheckpointSetting {
        partitions: options.partitions,
        way,
        load_percent,
        offered: most * load_percent / 100,
        rows: options.rows,
        bytes_per_second: options.disk_bytes_per_second,
    };
    Way::ALL.into_iter().flat_map(|way| options.loads.iter().map(move |load| setting(way, *load))).collect()
}

fn notes(options: &CheckpointOptions, most: u64) -> String {
    let CheckpointOptions { partitions, rows, disk_bytes_per_second, .. } = options;
    format!(
        "Simulated: {partitions} partitions of {rows} rows and {REPLICAS} replicas, a core for each node, disks that write \
         {disk_bytes_per_second} bytes/s; a load of 100 % is {most} calls/s for each partition."
    )
}

/// A line for each run, then what the paper states beside what was measured.
fn report(courses: &[Course], most: u64) -> String {
    // Writing to a string cannot fail.
    let mut report = format!("the cluster can do {most} calls/s for each partition\n\n");
    let _ = writeln!(
        report,
        "{:<15}{:>8}{:>12}{:>12}{:>12}",
        "way", "load %", "offered/s", "begins ms", "ends ms"
    );
    for Course { setting, begins_at, ends_at, .. } in courses {
        let time = |at: &Option<u64>| at.map_or("-".to_owned(), |at| (at / MILLISECOND).to_string());
        let (way, load, offered) = (setting.way.name(), setting.load_percent, setting.offered);
        let (begins, ends) = (time(begins_at), time(ends_at));
        let _ = writeln!(report, "{way:<15}{load:>8}{offered:>12}{begins:>12}{ends:>12}");
    }
    report.push('\n');
    for judgement in judge(courses) {
        let _ = writeln!(report, "{judgement}");
    }
    report
}
