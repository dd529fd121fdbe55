//! `ordain bench compare`: one workload on several engines or with several options.
//!
//! All cases are run in [rounds](super::rounds), and what is compared are runs of the same round.

pub mod options;
mod report;

use std::ffi::OsString;

use ordain_db::engine::EngineKind;

use self::options::{Case, Comparison};
pub(crate) use self::report::Compared;
use self::report::{Row, figure};
use super::rounds::in_rounds;
use super::{Figures, check_writable, is_output, measure_as_told, write_out};

/// Runs the comparison that a command line asks for: its arguments after `ordain bench`.
///
/// # Errors
/// When an option is wrong, a run fails or leaves data that is not consistent, or a file cannot be written.
pub fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let comparison = Comparison::parse(arguments)?;
    let json = comparison.json.as_deref().filter(|path| !is_output(path));
    for path in json.into_iter().chain(comparison.svg.as_deref()) {
        check_writable(path)?;
    }
    let compared = compare(&comparison)?;
    let text = format!("\n{}\n{}", compared.table(), compared.bars());
    write_out(comparison.json.as_deref(), &text, &compared)?;
    match &comparison.svg {
        Some(path) => std::fs::write(path, figure(&compared).svg())
            .map_err(|error| format!("cannot write {}: {error}", path.display())),
        None => Ok(()),
    }
}

/// A comparison that was run.
pub(crate) struct Ran {
    /// What it came to.
    pub(crate) compared: Compared,
    /// What each case came to, round by round, with its engine.
    pub(crate) runs: Vec<(EngineKind, Vec<Figures>)>,
}

/// Runs the comparisons of such command lines, all of them in each of so many rounds, and prints and writes nothing.
///
/// # Errors
/// When an option is wrong, which is found out before the first run, or a run fails or leaves data that is not consistent.
pub(crate) fn measured_together(commands: &[String], rounds: u16) -> Result<Vec<Ran>, String> {
    let of = |command: &String, problem: String| format!("ordain bench {command}: {problem}");
    let parse = |command: &String| Comparison::parse_line(command).map_err(|problem| of(command, problem));
    let comparisons = commands.iter().map(parse).collect::<Result<Vec<Comparison>, String>>()?;
    let pairs = comparisons.iter().zip(commands);
    let all: Vec<(&Case, &String)> = pairs
        .flat_map(|(comparison, command)| comparison.cases.iter().map(move |case| (case, command)))
        .collect();
    let measure = |(case, command): &(&Case, &String)| measure(case).map_err(|problem| of(command, problem));
    let mut figures = in_rounds(rounds, &all, measure)?.into_iter();
    let ran = |comparison: &Comparison| {
        let own: Vec<Vec<Figures>> = figures.by_ref().take(comparison.cases.len()).collect();
        let engines = comparison.cases.iter().map(|case| case.run.engine);
        Ran { compared: compared(comparison, &own), runs: engines.zip(own).collect() }
    };
    Ok(comparisons.iter().map(ran).collect())
}

fn compare(comparison: &Comparison) -> Result<Compared, String> {
    Ok(compared(comparison, &in_rounds(comparison.rounds, &comparison.cases, measure)?))
}

/// Makes rows of what each case came to, round by round.
fn compared(comparison: &Comparison, figures: &[Vec<Figures>]) -> Compared {
    let row = |(case, rounds): (&Case, &Vec<Figures>)| {
        let mut row = Row::new(case);
        rounds.iter().for_each(|figures| row.add(figures.report.clone()));
        row
    };
    Compared::new(comparison, comparison.cases.iter().zip(figures).map(row).collect())
}

fn measure(case: &Case) -> Result<Figures, String> {
    let Case { entry, value, run, workload, .. } = case;
    let value = value.as_ref().map(|value| format!(" at {value}")).unwrap_or_default();
    measure_as_told(run, workload).map_err(|problem| format!("{entry}{value}: {problem}"))
}
