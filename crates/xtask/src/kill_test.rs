//! `cargo xtask kill-test`: builds the server as it is released, and lets it be killed (docs/kill-test.md).
//!
//! The test itself is a command of the server, `ordain kill-test`: it needs the library's clients and the workloads, which
//! this crate does not depend on.

use std::path::Path;
use std::process::ExitCode;

/// What is built and run; the options of the test follow.
const ARGUMENTS: &str = "run --release --package ordain --bin ordain --locked -- kill-test";

/// Runs the test with these options; its exit code is the test's.
pub(crate) fn run(root: &Path, options: &[&str]) -> ExitCode {
    let mut command = crate::cargo();
    command.args(arguments(options)).current_dir(root);
    match command.status() {
        Ok(status) => exit_code(status.code()),
        Err(error) => {
            eprintln!("kill-test: cargo did not start: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments<'a>(options: &[&'a str]) -> Vec<&'a str> {
    ARGUMENTS.split(' ').chain(options.iter().copied()).collect()
}

/// The exit code of a program; one that was ended by a signal has failed.
fn exit_code(code: Option<i32>) -> ExitCode {
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_test() {
        let line = arguments(&["--seconds", "5"]).join(" ");
        assert_eq!(line, "run --release --package ordain --bin ordain --locked -- kill-test --seconds 5");
    }

    #[test]
    fn a_failure_stays_one() {
        assert_eq!(exit_code(Some(0)), ExitCode::SUCCESS);
        assert_eq!(exit_code(Some(3)), ExitCode::from(3));
        assert_eq!(exit_code(None), ExitCode::FAILURE);
        assert_eq!(exit_code(Some(-1)), ExitCode::FAILURE);
    }
}
