//! `cargo xtask tidy`: the rules of the house that no compiler knows.
//!
//! Each rule is one file in [`checks`], with the reason for it, what to do instead, a test that it bites and a test that
//! it lets good code pass. A check sees only the [`Workspace`]: texts and paths, read once. So a test of a check is a
//! few lines of text, and all checks together take less than a second.
//!
//! - [`workspace`]: the files, found through git.
//! - [`rust_file`]: what the checks need to know of a Rust file, read from its tokens.
//! - [`manifest`]: what they need to know of a Cargo.toml, comments included.
//! - [`checks`]: the rules.

mod checks;
mod manifest;
mod rust_file;
mod workspace;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use workspace::Workspace;

/// A rule of the house: its name, as printed after each violation, and the function that finds the violations.
struct Check {
    name: &'static str,
    violations: fn(&Workspace) -> Vec<Violation>,
}

/// One place that breaks a rule, and what to do about it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Violation {
    /// Relative to the root of the workspace.
    path: String,
    /// From 1.
    line: usize,
    /// What is wrong, and what to do instead.
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Violation {
        Violation { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs every check and prints what it finds.
pub(crate) fn run(root: &Path) -> ExitCode {
    let workspace = match Workspace::load(root) {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("tidy: {} cannot be read: {error}", root.display());
            return ExitCode::FAILURE;
        }
    };
    let report = report(&workspace);
    if report.is_empty() {
        println!("tidy: {} files, {} checks, nothing to do", workspace.texts.len(), checks::ALL.len());
        return ExitCode::SUCCESS;
    }
    for line in &report {
        eprintln!("{line}");
    }
    eprintln!("tidy: {} to do; CONTRIBUTING.md has the reasons", report.len());
    ExitCode::FAILURE
}

/// One line per violation of any check, sorted by place.
fn report(workspace: &Workspace) -> Vec<String> {
    let mut found: Vec<(Violation, &str)> = Vec::new();
    for check in checks::ALL {
        found.extend((check.violations)(workspace).into_iter().map(|violation| (violation, check.name)));
    }
    found.sort();
    found.iter().map(|(violation, check)| format!("{violation} [{check}]")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let workspace = Workspace::load(&crate::workspace_root()).unwrap();
        assert!(
            workspace.texts.iter().any(|text| text.path == "crates/xtask/src/main.rs"),
            "the files were found"
        );
        let report = report(&workspace);
        assert!(report.is_empty(), "{} to do:\n{}", report.len(), report.join("\n"));
    }

    #[test]
    fn every_check_has_a_name_of_its_own() {
        let mut names: Vec<&str> = checks::ALL.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks::ALL.len());
    }

    #[test]
    fn a_report_is_sorted_by_place_and_names_the_check() {
        let workspace = Workspace::of(&[("b.md", "no newline at the end"), ("a.md", "trailing \n")]);
        let report = report(&workspace);
        assert_eq!(report.len(), 2, "{report:?}");
        assert!(report[0].starts_with("a.md:1: ") && report[0].ends_with(" [text]"), "{report:?}");
        assert!(report[1].starts_with("b.md:1: "), "{report:?}");
    }
}
