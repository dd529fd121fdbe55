//! Every dependency has its reason beside it.
//!
//! A dependency is code that we ship and do not read. One line that says what it is for is the least, and what makes it
//! possible to ask later whether it is still true.

use super::super::manifest::dependencies;
use super::{Violation, Workspace};

/// Finds dependencies without a comment. What `[workspace.dependencies]` says about our own crates' folders needs none.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for manifest in workspace.manifests() {
        for dependency in dependencies(&manifest.text) {
            let is_exempt = dependency.of_workspace && dependency.by_path;
            if dependency.comment.is_none() && !is_exempt {
                let message = format!(
                    "`{}` has no reason: say in a `#` comment, after it or above it, what it is for",
                    dependency.package
                );
                found.push(Violation::new(&manifest.path, dependency.line, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_missing_reason_bites() {
        let expected = [("crates/db/Cargo.toml:2", "`bytes` has no reason")];
        check(violations, &[("crates/db/Cargo.toml", "[dependencies]\nbytes = \"1\"\n")], &expected);
        check(violations, &[("crates/db/Cargo.toml", "[dev-dependencies]\nbytes = \"1\" #\n")], &expected);
        check(
            violations,
            &[("crates/db/Cargo.toml", "\n[dependencies.bytes]\nversion = \"1\"\n")],
            &expected,
        );
        let by_path = "[dependencies]\nordain-db = { path = \"../db\" }\n";
        check(violations, &[("crates/x/Cargo.toml", by_path)], &[("crates/x/Cargo.toml:2", "`ordain-db`")]);
        let shared = "[workspace.dependencies]\nbytes = \"1\"\n";
        check(violations, &[("Cargo.toml", shared)], &[("Cargo.toml:2", "`bytes`")]);
    }

    #[test]
    fn a_reason_passes() {
        let text = "[dependencies]\nbytes = \"1\" # shared buffers\n# checksums\ncrc32c = \"0.6\"\n";
        check(violations, &[("crates/db/Cargo.toml", text)], &[]);
        let shared = "[workspace.dependencies]\nordain-db = { path = \"crates/db\" }\n";
        check(violations, &[("Cargo.toml", shared)], &[]);
    }
}
