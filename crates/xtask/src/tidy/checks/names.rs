//! Folders, files and modules are named after what they are, not after what they are good for.
//!
//! A `utils` takes in everything, and then everything depends on it. The nouns of the papers are the names to use.

use super::{Violation, Workspace};

/// Exact names: `lock_manager` is the papers' term and welcome.
const BANNED: &[&str] = &["common", "utils", "util", "helpers", "misc", "manager"];

/// Finds banned names of folders, files and inline modules in the crates.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for path in workspace.paths.iter().filter(|path| path.starts_with("crates/")) {
        for part in path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            if BANNED.contains(&stem) {
                found.push(Violation::new(path, 1, message(stem)));
            }
        }
    }
    for file in &workspace.rust {
        for module in file.contents.modules.iter().filter(|module| BANNED.contains(&module.name.as_str())) {
            found.push(Violation::new(&file.path, module.line, message(&module.name)));
        }
    }
    found
}

fn message(name: &str) -> String {
    format!("`{name}` says nothing: name it after the thing it holds, if possible with the paper's noun")
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn every_banned_name_bites() {
        for name in BANNED {
            let file = format!("crates/db/src/{name}.rs");
            check(violations, &[(&file, "")], &[(&format!("{file}:1"), "the paper's noun")]);
            let folder = format!("crates/{name}/data.txt");
            check(violations, &[(&folder, "")], &[(&format!("{folder}:1"), name)]);
            let inline = format!("\nmod {name} {{}}\n");
            check(violations, &[("crates/db/src/a.rs", &inline)], &[("crates/db/src/a.rs:2", name)]);
        }
    }

    #[test]
    fn nouns_pass() {
        let files = [("crates/db/src/engine/calvin/lock_manager.rs", "mod utility;\n"), ("docs/misc.md", "")];
        check(violations, &files, &[]);
    }
}
