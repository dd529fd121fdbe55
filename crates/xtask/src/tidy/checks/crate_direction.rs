//! Crates depend on each other in one direction only.
//!
//! The crate border is the purity border: what `ordain-db` cannot see, a node of the database cannot depend on, whoever
//! drives it. Cargo refuses cycles but not a wrong direction.

use super::super::manifest::{dependencies, package_name};
use super::{Violation, Workspace};

/// A crate, and the crates of this workspace that it may depend on, for its tests too.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ordain-db", &["ordain-consensus"]),
    ("ordain-consensus", &[]),
    ("ordain-workload", &["ordain-db"]),
    ("ordain-sim", &["ordain-db", "ordain-sql", "ordain-workload", "ordain-consensus"]),
    ("ordain-sql", &["ordain-db"]),
    ("ordain-columns", &["ordain-db", "ordain-sql"]),
    (
        "ordain",
        &["ordain-db", "ordain-sql", "ordain-columns", "ordain-workload", "ordain-consensus", "ordain-sim"],
    ),
    ("xtask", &[]),
];

/// Finds dependencies that the table does not allow, and crates that it does not know.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let crates: Vec<_> = workspace
        .manifests()
        .filter_map(|manifest| package_name(&manifest.text).map(|name| (name, manifest)))
        .collect();
    let is_ours = |package: &str| {
        ALLOWED.iter().any(|(name, _)| *name == package) || crates.iter().any(|(name, _)| name == package)
    };
    let mut found = Vec::new();
    for (name, manifest) in &crates {
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
            let message =
                format!("`{name}` is a new crate: say in the table of {} what it may depend on", file!());
            found.push(Violation::new(&manifest.path, 1, message));
            continue;
        };
        for dependency in dependencies(&manifest.text) {
            let package = dependency.package.as_str();
            if is_ours(package) && !allowed.contains(&package) && !dependency.of_workspace {
                let message = format!(
                    "`{name}` must not depend on `{package}`, only on {}: move the shared part into a crate that both \
                     may see, or turn the dependency round",
                    list(allowed)
                );
                found.push(Violation::new(&manifest.path, dependency.line, message));
            }
        }
    }
    found
}

fn list(crates: &[&str]) -> String {
    match crates {
        [] => "no crate of the workspace".into(),
        some => format!("`{}`", some.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn manifest(name: &str, dependencies: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{dependencies}\n")
    }

    #[test]
    fn a_wrong_direction_bites() {
        let db =
            manifest("ordain-db", "[dependencies]\nbytes = \"1\"\nordain-workload = { workspace = true }");
        check(
            violations,
            &[("crates/db/Cargo.toml", &db)],
            &[("crates/db/Cargo.toml:5", "only on `ordain-consensus`")],
        );
        let workload = manifest("ordain-workload", "[dev-dependencies]\nserver = { package = \"ordain\" }");
        check(
            violations,
            &[("crates/workload/Cargo.toml", &workload)],
            &[("crates/workload/Cargo.toml:4", "must not depend on `ordain`, only on `ordain-db`")],
        );
        let server = manifest("ordain", "[target.'cfg(unix)'.dependencies]\nxtask.path = \"../xtask\"");
        check(
            violations,
            &[("crates/server/Cargo.toml", &server)],
            &[("crates/server/Cargo.toml:4", "`xtask`")],
        );
    }

    #[test]
    fn an_unknown_crate_bites() {
        let new = manifest("ordain-new", "");
        check(violations, &[("crates/new/Cargo.toml", &new)], &[("crates/new/Cargo.toml:1", "a new crate")]);
        let db = manifest("ordain-db", "[dependencies]\nordain-new = \"1\"");
        let files = [("crates/new/Cargo.toml", new.as_str()), ("crates/db/Cargo.toml", db.as_str())];
        let expected =
            [("crates/new/Cargo.toml:1", "a new crate"), ("crates/db/Cargo.toml:4", "`ordain-new`")];
        check(violations, &files, &expected);
    }

    #[test]
    fn the_right_direction_passes() {
        let root = "[workspace.dependencies]\nordain-db = { path = \"crates/db\" }\n";
        let server = manifest(
            "ordain",
            "[dependencies]\nordain-db.workspace = true\nordain-workload.workspace = true",
        );
        let db = manifest("ordain-db", "[dependencies]\nbytes = \"1\"");
        check(
            violations,
            &[("Cargo.toml", root), ("crates/server/Cargo.toml", &server), ("crates/db/Cargo.toml", &db)],
            &[],
        );
    }
}
