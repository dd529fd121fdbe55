//! What `ordain bench compare` can be told, and what is run therefore.
//!
//! A run is the command line itself with options added at its end, where they replace those before. So an entry, or the option
//! that is varied, may set whatever `ordain bench` knows, and mistakes in any of them are found before the first run.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::super::options::{RunOptions, WorkloadOptions};

/// What `ordain bench` runs.
#[derive(Subcommand, Clone, Debug)]
pub enum Benchmark {
    /// One workload, once.
    #[command(flatten)]
    Workload(WorkloadOptions),
    /// Run a workload on several engines or with several options, in turn, and print one table with their ratios.
    Compare(CompareOptions),
}

/// See [`Benchmark::Compare`].
#[derive(Args, Clone, Debug)]
pub struct CompareOptions {
    /// What is compared, separated by commas: each an engine, and options of the bench or of the workload if there are any, as
    /// in "calvin,calvin-vll,calvin --clients 64". Ratios are to the first.
    #[arg(long, value_delimiter = ',', required = true)]
    entries: Vec<String>,
    /// An option of the bench or of the workload, and the values that it has in turn, as in "contention-index=0.01,0.0001".
    #[arg(long, value_name = "OPTION=VALUES", value_parser = parse_sweep)]
    sweep: Option<Sweep>,
    /// How often everything is run, in turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Write a plot to this file.
    #[arg(long)]
    svg: Option<PathBuf>,
    #[command(subcommand)]
    workload: WorkloadOptions,
}

/// An option that is varied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sweep {
    /// Its name, without dashes.
    pub(super) option: String,
    /// Its values, at least one.
    pub(super) values: Vec<String>,
}

fn parse_sweep(text: &str) -> Result<Sweep, String> {
    let wrong =
        || format!("{text:?} is no option with values: give some as in \"contention-index=0.01,0.0001\"");
    let (option, values) = text.split_once('=').ok_or_else(wrong)?;
    let option = option.trim_start_matches('-').to_owned();
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if option.is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(Sweep { option, values })
}

#[derive(Parser)]
#[command(name = "ordain bench", args_override_self = true)]
struct CommandLine {
    #[command(flatten)]
    run: RunOptions,
    #[command(subcommand)]
    benchmark: Benchmark,
}

/// One of the things that are compared, at one value of what is varied.
#[derive(Debug)]
pub(super) struct Case {
    /// The entry as it was given.
    pub(super) entry: String,
    /// The workload's name.
    pub(super) name: &'static str,
    /// The value as it was given; none if nothing is varied.
    pub(super) value: Option<String>,
    pub(super) run: RunOptions,
    pub(super) workload: WorkloadOptions,
}

/// All that is to be run.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(super) rounds: u16,
    pub(super) sweep: Option<Sweep>,
    pub(super) svg: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    /// Value by value, and for each the entries in their order.
    pub(super) cases: Vec<Case>,
}

impl Comparison {
    /// Reads what follows `ordain bench` on the command line.
    ///
    /// # Errors
    /// When a run's options are wrong.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Comparison, String> {
        let arguments: Vec<OsString> = std::iter::once("ordain bench".into()).chain(arguments).collect();
        let (run, options) = parse(arguments.clone())?;
        if options.entries.iter().any(|entry| entry.trim().is_empty()) {
            let problem = "an entry is empty: give an engine for each, as in --entries \"calvin,aloha\"";
            return Err(problem.to_owned());
        }
        let values = match &options.sweep {
            Some(sweep) => sweep.values.iter().cloned().map(Some).collect(),
            None => vec![None],
        };
        let mut cases = Vec::new();
        for value in values {
            for entry in options.entries.iter().map(|entry| entry.trim()) {
                let added = added(entry, options.sweep.as_ref().zip(value.as_deref()));
                let of =
                    value.as_ref().map_or_else(|| entry.to_owned(), |value| format!("{entry} at {value}"));
                let wrong = |problem: String| format!("{of}: {problem}");
                let all = arguments.iter().cloned().chain(added.into_iter().map(OsString::from));
                let (run, compare) = parse(all).map_err(wrong)?;
                run.check().map_err(wrong)?;
                let workload = compare.workload.calibrated().map_err(wrong)?;
                // Found out before the first run, not after the others.
                let made = workload.workload(run.partitions, run.sites, run.seed).map_err(wrong)?;
                run.check_calls(&*made).map_err(wrong)?;
                let name = made.name();
                cases.push(Case { entry: entry.to_owned(), name, value: value.clone(), run, workload });
            }
        }
        let CompareOptions { rounds, sweep, svg, .. } = options;
        Ok(Comparison { rounds, sweep, svg, json: run.json, cases })
    }

    /// The same from one text. What is in double quotes is one argument.
    ///
    /// # Errors
    /// When a run's options are wrong.
    pub(crate) fn parse_line(line: &str) -> Result<Comparison, String> {
        let words = line.split('"').enumerate().flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().map(OsString::from).collect::<Vec<_>>(),
            _ => vec![OsString::from(part)],
        });
        Comparison::parse(words)
    }
}

#[cfg(test)]
impl Comparison {
    /// How many runs a round has.
    pub(crate) fn cases(&self) -> usize {
        self.cases.len()
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<(RunOptions, CompareOptions), String> {
    let matches = CommandLine::command().try_get_matches_from(arguments);
    let parsed = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    match parsed.map_err(|error| error.to_string())? {
        CommandLine { run, benchmark: Benchmark::Compare(compare) } => Ok((run, compare)),
        CommandLine { .. } => Err("this compares nothing: give `compare` and a workload".to_owned()),
    }
}

/// What is added to the command line for an entry and a value.
fn added(entry: &str, varied: Option<(&Sweep, &str)>) -> Vec<String> {
    let mut words = entry.split_whitespace();
    let engine = words.next().map(|engine| format!("--engine={engine}"));
    let value = varied.map(|(sweep, value)| format!("--{}={value}", sweep.option));
    value.into_iter().chain(engine).chain(words.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind;

    use super::super::super::options::MicroOptions;
    use super::*;

    fn micro(case: &Case) -> &MicroOptions {
        match &case.workload {
            WorkloadOptions::Micro(micro) => micro,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_entry_is_run_at_every_value() {
        let comparison = Comparison::parse_line(
            "--seconds 2 --durable compare --entries \"serial, calvin --clients 7\" --rounds 3 \
             --sweep multi-partition=0,50 micro --partitions 2 --contention-index 0.01 --multi-partition 7",
        )
        .unwrap();
        assert_eq!((comparison.rounds, comparison.cases.len()), (3, 4));
        for (case, (entry, engine, clients, value, share)) in comparison.cases.iter().zip([
            ("serial", EngineKind::Serial, None, "0", 0.0),
            ("calvin --clients 7", EngineKind::Calvin, Some(7), "0", 0.0),
            ("serial", EngineKind::Serial, None, "50", 50.0),
            ("calvin --clients 7", EngineKind::Calvin, Some(7), "50", 50.0),
        ]) {
            assert_eq!((case.entry.as_str(), case.value.as_deref()), (entry, Some(value)));
            assert_eq!((case.run.engine, case.run.clients), (engine, clients));
            assert_eq!((case.run.seconds, case.run.partitions, case.run.durable), (2.0, 2, true));
            assert_eq!((micro(case).multi_partition_percent, micro(case).contention_index), (share, 0.01));
        }
    }

    #[test]
    fn what_is_varied_may_be_an_option_of_the_bench() {
        let comparison =
            Comparison::parse_line("compare --entries calvin --sweep partitions=1,2 micro --records 40000")
                .unwrap();
        let partitions: Vec<u16> = comparison.cases.iter().map(|case| case.run.partitions).collect();
        assert_eq!(partitions, [1, 2]);
    }

    #[test]
    fn all_runs_do_the_same_work() {
        let comparison =
            Comparison::parse_line("compare --entries calvin,serial --sweep work=0,15 micro").unwrap();
        let rounds: Vec<u32> = comparison.cases.iter().map(|case| micro(case).work_rounds).collect();
        assert_eq!((rounds[0], rounds[1]), (0, 0));
        assert!(rounds[2] > 0 && rounds[2] == rounds[3]);
    }

    #[test]
    fn mistakes_are_found_before_anything_runs() {
        for (line, expected) in [
            ("micro", "compares nothing"),
            ("compare micro", "--entries"),
            ("compare --entries magic micro", "magic: error: invalid value 'magic'"),
            ("compare --entries \"calvin --colour red\" micro", "unexpected argument '--colour'"),
            (
                "compare --entries calvin --sweep speed=1 micro",
                "calvin at 1: error: unexpected argument '--speed'",
            ),
            ("compare --entries calvin --sweep seconds micro", "no option with values"),
            ("compare --entries calvin --sweep seconds=1,,2 micro", "no option with values"),
            ("compare --entries calvin --sweep contention-index=1,2 micro", "calvin at 2: invalid: micro"),
            ("compare --entries calvin --sweep clients=8 micro --rate 5", "cannot be used with"),
            (
                "--transactions 9 compare --entries calvin --sweep volatility=0,1 micro --dependent 10",
                "calvin at 1: --transactions has one fixed order",
            ),
            ("compare --entries calvin --sweep volatility=0,-1 micro", "calvin at -1: error"),
            ("compare --entries calvin --sweep dependent-at=100,101 micro", "calvin at 101: error"),
        ] {
            let problem = Comparison::parse_line(line).unwrap_err();
            assert!(problem.contains(expected), "{line}: {problem}");
        }
    }
}
