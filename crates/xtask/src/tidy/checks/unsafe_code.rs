//! No `unsafe`.
//!
//! System calls are made through crates that make them safe. The workspace lint says the same, but a crate can opt out of a lint
//! without anyone noticing.

use super::{Violation, Workspace};

/// Finds the keyword, tests included.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &workspace.rust {
        for (_, line) in file.contents.keywords.iter().filter(|(word, _)| word == "unsafe") {
            let message = "`unsafe`: write it safely, or use a crate that makes the call safe";
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
        let expected = [("crates/server/src/a.rs:1", "write it safely")];
        check(violations, &[("crates/server/src/a.rs", "unsafe fn f() {}")], &expected);
    }

    #[test]
    fn safe_code_passes() {
        check(
            violations,
            &[("crates/db/src/a.rs", "#![forbid(unsafe_code)]\n/// Not unsafe.\nfn f() {}")],
            &[],
        );
    }
}
