//! `unsafe` only in the server crate.
//!
//! The pure crates and the tools have no reason for it: what the system calls need stays where the system calls are. The
//! workspace lint says the same, but a crate can opt out of a lint without anyone noticing.

use super::{Violation, Workspace};

const ALLOWED_CRATE: &str = "server";

/// Finds the keyword, tests included.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in workspace.rust.iter().filter(|file| file.crate_folder != ALLOWED_CRATE) {
        for (_, line) in file.contents.keywords.iter().filter(|(word, _)| word == "unsafe") {
            let message = "`unsafe` outside of the server crate: write it safely, or move what needs it into the server";
            found.push(Violation::new(&file.path, *line, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn unsafe_code_bites() {
        let path = "crates/db/src/a.rs";
        let expected = [("crates/db/src/a.rs:2", "write it safely")];
        check(violations, &[(path, "fn f() {\n  unsafe { g() }\n}")], &expected);
        check(violations, &[(path, "\nunsafe impl Send for S {}")], &expected);
        check(violations, &[(path, "#[cfg(test)]\nmod tests { unsafe fn f() {} }")], &expected);
        check(violations, &[(path, "\n#[unsafe(no_mangle)] fn f() {}")], &expected);
    }

    #[test]
    fn safe_code_and_the_server_pass() {
        check(violations, &[("crates/server/src/a.rs", "unsafe fn f() {}")], &[]);
        check(
            violations,
            &[("crates/db/src/a.rs", "#![forbid(unsafe_code)]\n/// Not unsafe.\nfn f() {}")],
            &[],
        );
    }
}
