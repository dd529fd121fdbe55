//! Pinned digests: a seed gives the same run on every machine, in a debug build and in a release build.
//!
//! The golden script holds what was seen on one machine; every other one that runs this test compares itself with it. A
//! change of the code that changes what nodes do changes the digests, too: `UPDATE_GOLDENFILES=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::error::Error;

use ordain_sim::run::run;
use ordain_sim::swarm::{Fixed, draw};
use ordain_sim::time::MICROSECOND;

#[derive(goldenscript::Command)]
enum Command {
    /// Runs the plan of a seed.
    Seed(u64),
}

struct Runner;

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        let Command::Seed(seed) = command;
        let plan = draw(*seed, &Fixed::default());
        let report = run(&plan)?;
        if let Some(violation) = report.violations.first() {
            return Err(violation.to_string().into());
        }
        let workload = format!("{:?}", plan.workload);
        let workload = workload.split('(').next().unwrap_or_default().to_lowercase();
        let happened = report.happened;
        Ok(format!(
            "{} on {} partitions x {} replicas, {workload}, {} faults: {}\n{} events, {} packets, {} crashes, {} answers in {} us\n\
             trace {:016x}\nstate {}",
            plan.engine.name(),
            plan.partitions,
            plan.replicas,
            plan.faults.len(),
            if report.halted.is_some() { "ended at a damaged disk" } else { "ended well" },
            happened.events,
            happened.packets,
            happened.crashes,
            happened.answered,
            report.virtual_time / MICROSECOND,
            report.trace,
            report.state,
        ))
    }
}

#[test]
fn seeds_have_the_digests_that_they_had() {
    goldenscript::run(&mut Runner, "tests/golden/digests").unwrap();
}
