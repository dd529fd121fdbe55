//! The command line of `ordain sim`.

use super::{
    aloha, calibrate, checkpoint, dependent, evaluation, replication, scale, seeds, slow_node, study,
};

/// What to simulate.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SimOptions {
    #[command(subcommand)]
    command: Option<SimCommand>,
    #[command(flatten)]
    seeds: seeds::SeedOptions,
}

#[derive(clap::Subcommand, Debug)]
enum SimCommand {
    /// Measure what the parts of a step cost on this machine, for the CPU model
    Calibrate(calibrate::CalibrateOptions),
    /// Run the paper's scaling experiments on simulated clusters of up to 100 nodes
    Scale(scale::ScaleOptions),
    /// Measure what replicas cost that are far apart, on simulated clusters
    Replication(replication::ReplicationOptions),
    /// Measure throughput and lag over time while a checkpoint is taken, on simulated clusters
    Checkpoint(checkpoint::CheckpointOptions),
    /// Measure over time what one slow node does to the others, and what throttling does about it
    SlowNode(slow_node::SlowNodeOptions),
    /// Compare deterministic and classical execution over contention, distribution and length, for real and on simulated clusters
    Evaluation(evaluation::EvaluationOptions),
    /// Compare aloha and calvin as the paper on functors does, for real and on simulated clusters of up to 20 nodes
    Aloha(aloha::AlohaOptions),
    /// Measure transactions that must read an index to know what they touch, and latencies, for real and on simulated clusters
    Dependent(dependent::DependentOptions),
    /// Run `evaluation`, `dependent` and `slow-node` one after the other, with their usual options: about an hour
    Study(study::StudyOptions),
}

/// Carries out `ordain sim`; whether all properties held.
///
/// # Errors
/// When an option is wrong or something cannot be measured.
pub fn run(options: &SimOptions) -> Result<bool, String> {
    match &options.command {
        Some(SimCommand::Calibrate(options)) => calibrate::run(options).map(|()| true),
        Some(SimCommand::Scale(options)) => scale::run(options).map(|()| true),
        Some(SimCommand::Replication(options)) => replication::run(options).map(|()| true),
        Some(SimCommand::Checkpoint(options)) => checkpoint::run(options).map(|()| true),
        Some(SimCommand::SlowNode(options)) => slow_node::run(options).map(|()| true),
        Some(SimCommand::Evaluation(options)) => evaluation::run(options).map(|()| true),
        Some(SimCommand::Aloha(options)) => aloha::run(options).map(|()| true),
        Some(SimCommand::Dependent(options)) => dependent::run(options).map(|()| true),
        Some(SimCommand::Study(options)) => study::run(options).map(|()| true),
        None => seeds::run_seeds(&options.seeds),
    }
}
