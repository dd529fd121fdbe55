//! `cargo xtask ci`: everything that must pass before a change lands, as one read-only command.
//!
//! There is nothing here but cargo's own commands: a check of our own is a test (see [`crate::tidy`]), so that
//! `cargo test` finds it too and the build server never knows more than a contributor's machine. Only [`crate::clients`] is no
//! test: it needs programs and packages that are not Rust's.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// One cargo command.
struct Step {
    arguments: &'static str,
    environment: Option<(&'static str, &'static str)>,
    /// What to do when the step fails.
    remedy: &'static str,
}

/// From the fastest answer to the slowest.
const STEPS: [Step; 7] = [
    Step { arguments: "fmt --all --check", environment: None, remedy: "run `cargo fmt --all`" },
    Step {
        arguments: "clippy --workspace --all-targets --locked -- -D warnings",
        environment: None,
        remedy: "fix the warnings above; an `#[allow]` or `#[expect]` needs a `reason`",
    },
    Step {
        arguments: "clippy --package ordain --no-default-features --locked -- -D warnings",
        environment: None,
        remedy: "fix the warnings above, which come without the feature `columns`",
    },
    Step {
        arguments: "test --workspace --locked",
        environment: None,
        remedy: "fix the tests named above; `cargo xtask tidy` runs the house rules alone",
    },
    Step {
        arguments: "doc --workspace --no-deps --locked --document-private-items",
        environment: Some(("RUSTDOCFLAGS", "-D warnings")),
        remedy: "fix the documentation above, most often a link to something that was renamed",
    },
    // The other tests ran with development builds: here the same digests must come out of optimised code.
    Step {
        arguments: "test --release --package ordain-sim --test digests --locked",
        environment: None,
        remedy: "if the digests are wrong in the development build, too, see crates/sim/tests/golden/digests; else find \
                 what makes a run depend on the build: a float, an overflow, an address, an order of iteration",
    },
    Step {
        arguments: "xtask clients --skip-missing --of-tests",
        environment: None,
        remedy: "see what the clients named above found; `cargo xtask clients --only NAME` runs one again",
    },
];

/// Runs all steps; stops at the first failure.
pub(crate) fn run(root: &Path) -> ExitCode {
    let started = Instant::now();
    match first_failure(&STEPS, |number, step| run_step(root, number, step)) {
        None => {
            println!("ci: all {} steps passed in {}", STEPS.len(), seconds(started));
            ExitCode::SUCCESS
        }
        Some(failure) => {
            eprintln!("ci: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs steps until one fails, and returns the message that says which one and what to do.
fn first_failure(
    steps: &[Step],
    mut run_step: impl FnMut(usize, &Step) -> Result<(), String>,
) -> Option<String> {
    for (index, step) in steps.iter().enumerate() {
        let number = index + 1;
        if let Err(reason) = run_step(number, step) {
            let (command, remedy, total) = (step.command_line(), step.remedy, steps.len());
            return Some(format!(
                "step {number} of {total} failed ({reason}): {command}\nci: to do: {remedy}"
            ));
        }
    }
    None
}

fn run_step(root: &Path, number: usize, step: &Step) -> Result<(), String> {
    println!("ci: [{number}/{}] {}", STEPS.len(), step.command_line());
    let started = Instant::now();
    let mut command = crate::cargo();
    command.args(step.arguments.split(' ')).envs(step.environment).current_dir(root);
    let status = command.status().map_err(|error| format!("cargo did not start: {error}"))?;
    println!("ci: [{number}/{}] took {}", STEPS.len(), seconds(started));
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

impl Step {
    /// The step as one would type it into a shell.
    fn command_line(&self) -> String {
        match self.environment {
            Some((name, value)) => format!("{name}='{value}' cargo {}", self.arguments),
            None => format!("cargo {}", self.arguments),
        }
    }
}

fn seconds(started: Instant) -> String {
    format!("{:.1} s", started.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_printed_as_one_would_type_them() {
        let lines: Vec<String> = STEPS.iter().map(Step::command_line).collect();
        assert_eq!(
            lines,
            [
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-targets --locked -- -D warnings",
                "cargo clippy --package ordain --no-default-features --locked -- -D warnings",
                "cargo test --workspace --locked",
                "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --document-private-items",
                "cargo test --release --package ordain-sim --test digests --locked",
                "cargo xtask clients --skip-missing --of-tests",
            ]
        );
    }

    #[test]
    fn the_first_failure_stops_the_run() {
        let mut ran = Vec::new();
        let failure = first_failure(&STEPS, |number, _| {
            ran.push(number);
            if number == 2 { Err("exit status: 101".into()) } else { Ok(()) }
        });
        assert_eq!(ran, [1, 2]);
        let message = failure.unwrap();
        assert!(message.starts_with("step 2 of 7 failed (exit status: 101): cargo clippy"), "{message}");
        assert!(message.contains("to do: "), "{message}");
    }

    #[test]
    fn no_failure_runs_every_step() {
        let mut count = 0;
        let failure = first_failure(&STEPS, |_, _| {
            count += 1;
            Ok(())
        });
        assert_eq!((failure, count), (None, STEPS.len()));
    }
}
