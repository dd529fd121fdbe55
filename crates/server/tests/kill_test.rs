//! The short form of the kill test: real processes, all faults that the machine allows, and every check.
//!
//! What must hold does not depend on how fast the machine is: no duration is asserted.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and print what tells why")]

use std::process::{Command, Output};

/// Runs the test; its output.
fn kill_test(options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ordain"));
    command.arg("kill-test").args(options.split(' ')).env_remove("ORDAIN_LOG");
    let output = command.output().unwrap();
    println!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    output
}

/// The last line of the standard output.
fn summary(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn nothing_acknowledged_is_lost_under_any_fault() {
    let output = kill_test("--seconds 10 --seed 1 --pause 0.7 --clients 12 --rate 300");
    let summary = summary(&output);
    assert!(output.status.success(), "{}: {summary}", output.status);
    assert!(summary.starts_with("kill-test: passed: seed 1, 10 s, faults: "), "{summary}");
    assert!(summary.contains(" 0 lost, 0 doubled, 0 unfounded, "), "{summary}");
    assert!(summary.contains("digests equal"), "{summary}");
}

/// Where the test may not make namespaces, it says what to do instead.
#[test]
fn nothing_acknowledged_is_lost_when_packets_are_dropped() {
    let output = kill_test("--links namespaces --seconds 5 --seed 2 --pause 0.5 --clients 12 --rate 300");
    let summary = summary(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    let lacks_rights = ["Operation not permitted", "Permission denied", "cannot run `ip`", "not supported"];
    if output.status.code() == Some(1) && lacks_rights.iter().any(|lack| said.contains(lack)) {
        assert!(said.contains("be root on Linux, or use --links proxies"), "{said}");
        return;
    }
    assert!(output.status.success(), "{}: {summary}", output.status);
    assert!(summary.contains(" 0 lost, 0 doubled, 0 unfounded, "), "{summary}");
    assert!(summary.contains("digests equal"), "{summary}");
    assert!(summary.contains("SKIPPED slow (links between namespaces cannot be)"), "{summary}");
}

#[test]
fn wrong_options_are_refused_with_what_to_do() {
    let output = kill_test("--seconds 0");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("from 0.1 to 86400"));
    let folder = env!("CARGO_MANIFEST_DIR");
    let output = kill_test(&format!("--directory {folder}"));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("choose another --directory"));
    let output = kill_test("--links namespaces --faults slow,cut");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("leave out slow, or --links"));
}
