//! `ordain bench compare`: one workload on several engines or with several options.
//!
//! All cases are run in [rounds](super::rounds), and what is compared are runs of the same round.

pub mod options;
mod report;

use std::ffi::OsString;

use self::options::{Case, Comparison};
use self::report::figure;
pub(crate) use self::report::{Compared, Row};
use super::rounds::in_rounds;
use super::{Figures, Report, check_writable, is_output, measure_as_told, write_out};

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

/// Runs the comparison of such a command line, and prints and writes nothing.
///
/// # Errors
/// When an option is wrong, or a run fails or leaves data that is not consistent.
pub(crate) fn measured(arguments: impl Iterator<Item = OsString>) -> Result<Compared, String> {
    compare(&Comparison::parse(arguments)?)
}

fn compare(comparison: &Comparison) -> Result<Compared, String> {
    let reports = in_rounds(comparison.rounds, &comparison.cases, |case| Ok(measure(case)?.report))?;
    let row = |(case, reports): (&Case, Vec<Report>)| {
        let mut row = Row::new(case);
        reports.into_iter().for_each(|report| row.add(report));
        row
    };
    let rows = comparison.cases.iter().zip(reports).map(row).collect();
    Ok(Compared::new(comparison, rows))
}

fn measure(case: &Case) -> Result<Figures, String> {
    let Case { entry, value, run, workload, .. } = case;
    let value = value.as_ref().map(|value| format!(" at {value}")).unwrap_or_default();
    measure_as_told(run, workload).map_err(|problem| format!("{entry}{value}: {problem}"))
}
