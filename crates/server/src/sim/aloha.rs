//! `ordain sim aloha`: the experiments of the paper on functors, for real where this machine suffices, and simulated beyond.

mod real;

use std::fmt::Write as _;
use std::path::PathBuf;

use ordain_sim::scale::aloha::{
    AlohaEffort, AlohaPoint, AlohaSetting, Figure, NODES, SIZES, Tables, breakdown, csv, drawings, judge,
    light_settings, measure_aloha, settings,
};
use ordain_sim::time::MILLISECOND;

use super::over_cores::over_cores;
use super::print;
use crate::bench::options::SECONDS;
use crate::output::Output;
use crate::quantity::number_within;

/// What `ordain sim aloha` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct AlohaOptions {
    /// The folder for the figures, the tables and the report
    #[arg(long)]
    pub output: PathBuf,
    /// Simulate what these figures of the paper need, separated by commas: 6 to 11 [default: all]
    #[arg(long, value_delimiter = ',')]
    pub figures: Vec<Figure>,
    /// Simulate clusters of so many nodes, where their number does not vary
    #[arg(long, default_value_t = NODES, value_parser = clap::value_parser!(u16).range(2..=20))]
    pub nodes: u16,
    /// Simulate clusters of up to so many nodes, where their number varies
    #[arg(long, default_value_t = SIZES[SIZES.len() - 1], value_parser = clap::value_parser!(u16).range(2..=20))]
    pub nodes_max: u16,
    /// A file of costs that `ordain sim calibrate` wrote [default: those in the binary]
    #[arg(long)]
    pub costs: Option<PathBuf>,
    /// Virtual milliseconds to measure in each run
    #[arg(long, default_value_t = AlohaEffort::default().time / MILLISECOND, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub milliseconds: u64,
    /// Virtual milliseconds to measure in each run at light load
    #[arg(long, default_value_t = AlohaEffort::default().light_time / MILLISECOND, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub light_milliseconds: u64,
    /// Run so many clusters at a time [default: the cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Rounds of real runs with two partitions on this machine; 0 for none
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=1_000))]
    pub rounds: u16,
    /// Seconds of each real run
    #[arg(long, default_value_t = 1.0, value_parser = number_within(SECONDS, "seconds"))]
    pub seconds: f64,
}

/// Runs everything and writes `points.csv`, the figures, `real.json` and `report.txt`.
///
/// # Errors
/// When the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &AlohaOptions) -> Result<(), String> {
    let output = Output::create(&options.output)?;
    let mut report = String::new();
    // Real runs come first, while nothing else keeps the machine busy.
    if options.rounds > 0 {
        let measured = real::measure(options.rounds, options.seconds)?;
        report.push_str(&real::report(&measured));
        output.write("real.json", &real::json(&measured)?)?;
        output.write("real.svg", &real::bars(&measured, options.rounds, options.seconds).svg())?;
    }
    let figures = chosen(options);
    let points = simulate(options, &figures)?;
    let notes = [notes(options)];
    output.write("points.csv", &csv(&points))?;
    for (name, drawing) in drawings(&points, &figures, options.nodes, &notes) {
        output.write(name, &drawing.svg())?;
    }
    if figures.contains(&Figure::Breakdown) {
        output.write("figure-10-stages.svg", &breakdown(&points, options.nodes, &notes).svg())?;
    }
    for judgement in judge(&points, &figures, options.nodes) {
        // Writing to a string cannot fail.
        let _ = write!(report, "\n{judgement}");
    }
    print(&report)?;
    output.write("report.txt", &report)
}

/// The figures that were asked for, each once.
fn chosen(options: &AlohaOptions) -> Vec<Figure> {
    let asked = |figure: &Figure| options.figures.is_empty() || options.figures.contains(figure);
    Figure::ALL.into_iter().filter(asked).collect()
}

/// All points: first those at full load, of which the others are a share.
fn simulate(options: &AlohaOptions, figures: &[Figure]) -> Result<Vec<AlohaPoint>, String> {
    let tables = match &options.costs {
        None => Tables::measured(),
        Some(path) => {
            let text = std::fs::read_to_string(path);
            Tables::read(&text.map_err(|error| format!("cannot read {}: {error}", path.display()))?)?
        }
    };
    let effort = AlohaEffort {
        time: options.milliseconds * MILLISECOND,
        light_time: options.light_milliseconds * MILLISECOND,
        ..AlohaEffort::default()
    };
    let run = |all: &[AlohaSetting]| {
        let weight = |setting: &AlohaSetting| u64::from(setting.nodes);
        over_cores(all, options.jobs, weight, |setting| {
            let point = measure_aloha(setting, &tables, &effort);
            point.map_err(|error| format!("{setting:?}: {error}"))
        })
    };
    let mut points = run(&settings(figures, options.nodes, options.nodes_max))?;
    points.extend(run(&light_settings(figures, options.nodes, &points))?);
    Ok(points)
}

fn notes(options: &AlohaOptions) -> String {
    format!(
        "Simulated: {} nodes where their number does not vary, a core for each, no disks, no replicas; all transactions distributed; \
         costs measured for each engine and procedure; {} ms of virtual time, {} ms at light load. Throughput is the best of several \
         numbers of calls outstanding.",
        options.nodes, options.milliseconds, options.light_milliseconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(figures: Vec<Figure>) -> AlohaOptions {
        AlohaOptions {
            output: PathBuf::new(),
            figures,
            nodes: 2,
            nodes_max: 2,
            costs: None,
            milliseconds: 4,
            light_milliseconds: 20,
            jobs: Some(1),
            rounds: 0,
            seconds: 0.1,
        }
    }

    #[test]
    fn figures_are_run_once_and_in_their_order() {
        assert_eq!(chosen(&options(Vec::new())), Figure::ALL);
        let asked = vec![Figure::Epochs, Figure::Latency, Figure::Epochs];
        assert_eq!(chosen(&options(asked)), [Figure::Latency, Figure::Epochs]);
    }

    #[test]
    fn light_load_follows_from_full_load() {
        let options = options(vec![Figure::Breakdown]);
        let points = simulate(&options, &chosen(&options)).unwrap();
        let light: Vec<&AlohaPoint> = points.iter().filter(|point| point.run.stages.calls > 0).collect();
        assert_eq!(light.len(), 4 * 2, "{points:?}");
        assert!(light.iter().all(|point| point.run.busy_percent < 25.0), "{light:?}");
    }
}
