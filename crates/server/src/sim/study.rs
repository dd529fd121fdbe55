//! `ordain sim study`: all experiments of Ren, Thomson and Abadi's study (DET-X02 to DET-X17), each with its usual options and into a folder of
//! its own.

use std::path::{Path, PathBuf};

use clap::{Args, Command};

use super::real::RealOptions;
use super::{dependent, evaluation, slow_node};

/// What `ordain sim study` can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct StudyOptions {
    /// The folder for the folders of the experiments: evaluation, dependent and slow-node
    #[arg(long)]
    pub output: PathBuf,
    /// What is run for real
    #[command(flatten)]
    pub real: RealOptions,
}

/// Carries out the experiments, one after the other. On two cores that takes about an hour.
///
/// # Errors
/// When one of them fails; those before it are written.
pub fn run(options: &StudyOptions) -> Result<(), String> {
    let StudyOptions { output, real } = options;
    evaluation::run(&evaluation::EvaluationOptions { real: *real, ..usual(&output.join("evaluation"))? })?;
    dependent::run(&dependent::DependentOptions { real: *real, ..usual(&output.join("dependent"))? })?;
    slow_node::run(&usual(&output.join("slow-node"))?)
}

/// The options of an experiment with what its command line has where only the folder is given.
fn usual<O: Args>(output: &Path) -> Result<O, String> {
    let command = O::augment_args(Command::new("ordain").no_binary_name(true));
    let given = ["--output".as_ref(), output.as_os_str()];
    let matches = command.try_get_matches_from(given).map_err(|error| error.to_string())?;
    O::from_arg_matches(&matches).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_its_usual_options() {
        let folder = Path::new("some folder/--x");
        let evaluation: evaluation::EvaluationOptions = usual(folder).unwrap();
        assert_eq!((evaluation.output.as_path(), evaluation.nodes), (folder, 4));
        let dependent: dependent::DependentOptions = usual(folder).unwrap();
        assert_eq!((dependent.output.as_path(), dependent.real.rounds), (folder, 3));
        let slow_node: slow_node::SlowNodeOptions = usual(folder).unwrap();
        assert_eq!(slow_node.multi_partition, [0, 5, 20, 50, 100]);
    }
}
