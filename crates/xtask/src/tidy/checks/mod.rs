//! The rules, one file each.

mod crate_direction;
mod dependency_reasons;
mod leftovers;
mod lengths;
mod links;
mod module_direction;
mod names;
mod purity;
mod text;
mod unsafe_code;

use super::{Check, Violation, Workspace};

/// Every check. A new one is a file here and a line in this table.
pub(super) const ALL: &[Check] = &[
    Check { name: "lexer", violations: unlexed },
    Check { name: "crate direction", violations: crate_direction::violations },
    Check { name: "module direction", violations: module_direction::violations },
    Check { name: "purity", violations: purity::violations },
    Check { name: "unsafe", violations: unsafe_code::violations },
    Check { name: "names", violations: names::violations },
    Check { name: "leftovers", violations: leftovers::violations },
    Check { name: "dependency reasons", violations: dependency_reasons::violations },
    Check { name: "lengths", violations: lengths::violations },
    Check { name: "text", violations: text::violations },
    Check { name: "links", violations: links::violations },
];

/// Rust files that are no Rust: the other checks are blind to them.
fn unlexed(workspace: &Workspace) -> Vec<Violation> {
    let broken = workspace.rust.iter().filter_map(|file| file.lexer_error.map(|line| (file, line)));
    broken
        .map(|(file, line)| Violation::new(&file.path, line, "this is no Rust: close what is open"))
        .collect()
}

/// For the tests of a check: that it finds exactly one violation per expected `path:line`, each with the given words.
#[cfg(test)]
fn check(violations: fn(&Workspace) -> Vec<Violation>, files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let found: Vec<String> = violations(&Workspace::of(files)).iter().map(Violation::to_string).collect();
    let as_expected = found.len() == expected.len()
        && expected.iter().all(|(place, words)| {
            found.iter().any(|line| line.starts_with(&format!("{place}: ")) && line.contains(words))
        });
    assert!(as_expected, "expected {expected:#?}\nfound {found:#?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_lexed_bites() {
        check(
            unlexed,
            &[("crates/db/src/a.rs", "fn f() {}\nfn g( {\n")],
            &[("crates/db/src/a.rs:2", "close")],
        );
        check(unlexed, &[("crates/db/src/a.rs", "fn f() {}\n")], &[]);
    }
}
