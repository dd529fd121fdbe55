//! `ordain sim aloha`: the experiments of the paper on functors, for real where this machine suffices, and simulated beyond.

mod real;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ordain_sim::scale::ablation::{self, Ablation, AblationPoint, AblationSetting, measure_ablation};
use ordain_sim::scale::aloha::{
    AlohaEffort, AlohaPoint, AlohaSetting, Figure, NODES, SIZES, Tables, breakdown, csv, drawings, judge,
    light_settings, measure_aloha, peaks, settings,
};
use ordain_sim::time::MILLISECOND;

use super::over_cores::over_cores;
use super::print;
use super::real::RealOptions;
use crate::output::Output;

/// What `ordain sim aloha` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct AlohaOptions {
    /// The folder for the figures, the tables and the report
    #[arg(long)]
    pub output: PathBuf,
    /// Simulate what these figures of the paper need, 6 to 11, and these experiments that it does not draw, x10, x11a, x11d, x11f and
    /// x11g, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pub figures: Vec<Wanted>,
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
    pub jobs: Option<NonZeroUsize>,
    /// What is run for real
    #[command(flatten)]
    pub real: RealOptions,
    /// Simulate nothing, and leave what was simulated before as it is
    #[arg(long, conflicts_with = "figures")]
    pub real_only: bool,
}

/// A figure of the paper, or an experiment that it does not draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// A figure.
    Figure(Figure),
    /// An experiment.
    Ablation(Ablation),
}

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(name: &str) -> Result<Wanted, String> {
        match name.strip_prefix('x') {
            Some(_) => name.parse().map(Wanted::Ablation),
            None => name.parse().map(Wanted::Figure),
        }
    }
}

/// Runs for real and writes `real.json`, `real.csv`, `real.txt` and `real.svg`; then simulates and writes `points.csv`, `ablations.csv`,
/// the figures and `report.txt`.
///
/// # Errors
/// When a real run fails, the costs cannot be read, a cluster cannot be made or a file cannot be written.
pub fn run(options: &AlohaOptions) -> Result<(), String> {
    options.real.check(options.real_only)?;
    let output = Output::create(&options.output)?;
    // Real runs come first, while nothing else keeps the machine busy.
    if options.real.rounds > 0 {
        real::run(&options.real, &output)?;
    }
    if options.real_only { Ok(()) } else { simulate_all(options, &output) }
}

fn simulate_all(options: &AlohaOptions, output: &Output) -> Result<(), String> {
    let mut report = String::new();
    let tables = tables(options)?;
    let notes = [notes(options)];
    let figures = chosen(options);
    if !figures.is_empty() {
        let points = simulate(options, &figures, &tables)?;
        write_figures(&points, &figures, options, &notes, output)?;
        report.push_str(&peaks(&points));
        for judgement in judge(&points, &figures, options.nodes) {
            // Writing to a string cannot fail.
            let _ = write!(report, "\n{judgement}");
        }
    }
    let ablations = chosen_ablations(options);
    if !ablations.is_empty() {
        let points = simulate_ablations(options, &ablations, &tables)?;
        output.write("ablations.csv", &ablation::csv(&points))?;
        for (name, drawing) in ablation::drawings(&points, &ablations, &notes) {
            output.write(name, &drawing.svg())?;
        }
        let _ = write!(report, "\n{}", ablation::peaks(&points));
        for judgement in ablation::judge(&points, &ablations) {
            let _ = write!(report, "\n{judgement}");
        }
    }
    print(&report)?;
    output.write("report.txt", &report)
}

fn write_figures(
    points: &[AlohaPoint],
    figures: &[Figure],
    options: &AlohaOptions,
    notes: &[String],
    output: &Output,
) -> Result<(), String> {
    output.write("points.csv", &csv(points))?;
    for (name, drawing) in drawings(points, figures, options.nodes, notes) {
        output.write(name, &drawing.svg())?;
    }
    if figures.contains(&Figure::Breakdown) {
        output.write("figure-10-stages.svg", &breakdown(points, options.nodes, notes).svg())?;
    }
    Ok(())
}

/// Whether something was asked for: all is where nothing is named.
fn asked(options: &AlohaOptions, wanted: Wanted) -> bool {
    options.figures.is_empty() || options.figures.contains(&wanted)
}

/// The figures that were asked for, each once.
fn chosen(options: &AlohaOptions) -> Vec<Figure> {
    Figure::ALL.into_iter().filter(|figure| asked(options, Wanted::Figure(*figure))).collect()
}

/// The experiments that were asked for, each once.
fn chosen_ablations(options: &AlohaOptions) -> Vec<Ablation> {
    Ablation::ALL.into_iter().filter(|ablation| asked(options, Wanted::Ablation(*ablation))).collect()
}

fn tables(options: &AlohaOptions) -> Result<Tables, String> {
    let Some(path) = &options.costs else { return Ok(Tables::measured()) };
    let text = std::fs::read_to_string(path);
    Tables::read(&text.map_err(|error| format!("cannot read {}: {error}", path.display()))?)
}

fn effort(options: &AlohaOptions) -> AlohaEffort {
    AlohaEffort {
        time: options.milliseconds * MILLISECOND,
        light_time: options.light_milliseconds * MILLISECOND,
        ..AlohaEffort::default()
    }
}

fn simulate_ablations(
    options: &AlohaOptions,
    ablations: &[Ablation],
    tables: &Tables,
) -> Result<Vec<AblationPoint>, String> {
    let effort = effort(options);
    let all = ablation::settings(ablations, options.nodes);
    let points = over_cores(&all, options.jobs, AblationSetting::weight, |setting| {
        let points = measure_ablation(setting, tables, &effort);
        points.map_err(|error| format!("{setting:?}: {error}"))
    })?;
    Ok(points.into_iter().flatten().collect())
}

/// All points: first those at full load, of which the others are a share.
fn simulate(options: &AlohaOptions, figures: &[Figure], tables: &Tables) -> Result<Vec<AlohaPoint>, String> {
    let effort = effort(options);
    let run = |all: &[AlohaSetting]| {
        let weight = |setting: &AlohaSetting| u64::from(setting.nodes);
        let points = over_cores(all, options.jobs, weight, |setting| {
            let points = measure_aloha(setting, tables, &effort);
            points.map_err(|error| format!("{setting:?}: {error}"))
        });
        points.map(|points| points.into_iter().flatten().collect::<Vec<AlohaPoint>>())
    };
    let mut points = run(&settings(figures, options.nodes, options.nodes_max))?;
    points.extend(run(&light_settings(figures, options.nodes, &points))?);
    Ok(points)
}

fn notes(options: &AlohaOptions) -> String {
    format!(
        "Simulated: {} nodes where their number does not vary, a core for each, no disks, no replicas; all transactions distributed; \
         costs measured for each engine and procedure; {} ms of virtual time, or the mean latency where that is longer, {} ms at light \
         load. Throughput is the best of several numbers of calls outstanding.",
        options.nodes, options.milliseconds, options.light_milliseconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(figures: Vec<Wanted>) -> AlohaOptions {
        AlohaOptions {
            output: PathBuf::new(),
            figures,
            nodes: 2,
            nodes_max: 2,
            costs: None,
            milliseconds: 4,
            light_milliseconds: 20,
            jobs: Some(NonZeroUsize::MIN),
            real: RealOptions { rounds: 0, seconds: 0.1 },
            real_only: false,
        }
    }

    #[test]
    fn figures_are_run_once_and_in_their_order() {
        assert_eq!(chosen(&options(Vec::new())), Figure::ALL);
        assert_eq!(chosen_ablations(&options(Vec::new())), Ablation::ALL);
        let asked = ["11", "6", "x11f", "11"].map(|name| name.parse().unwrap()).to_vec();
        assert_eq!(chosen(&options(asked.clone())), [Figure::Latency, Figure::Epochs]);
        assert_eq!(chosen_ablations(&options(asked)), [Ablation::OrderNumbers]);
        for unknown in ["5", "x12", "x11b"] {
            assert!(unknown.parse::<Wanted>().is_err(), "{unknown}");
        }
    }

    #[test]
    fn light_load_follows_from_full_load() {
        let options = options(vec![Wanted::Figure(Figure::Breakdown)]);
        let points = simulate(&options, &chosen(&options), &Tables::measured()).unwrap();
        let light: Vec<&AlohaPoint> = points.iter().filter(|point| point.run.stages.calls > 0).collect();
        assert_eq!(light.len(), 4 * 2, "{points:?}");
        assert!(light.iter().all(|point| point.run.busy_percent < 25.0), "{light:?}");
    }
}
